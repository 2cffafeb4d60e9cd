//! Whether a target has room for a site: entries of its tables, numbers of its ports.

use std::collections::BTreeMap;

use dataplane::schema::Table;
use dataplane::tables::{self, Family};
use dataplane::target::TargetProfile;

use crate::check::{Flows, Port, Site, Unit};
use crate::fault::{Fault, SiteError};

impl Site {
    /// Checks the site against what a target has room for; [`Site::from_json`] has done so for `swpipe`.
    ///
    /// # Errors
    /// Tables that would not hold the site, ports that the target keeps for itself.
    pub fn fits(&self, target: &TargetProfile) -> Result<(), SiteError> {
        let faults = faults(&self.ports, &self.units, &self.flows, target);
        if faults.is_empty() { Ok(()) } else { Err(SiteError::Faults(faults)) }
    }
}

/// What `target` has no room for.
pub(crate) fn faults(
    ports: &BTreeMap<String, Port>,
    units: &BTreeMap<String, Unit>,
    flows: &Flows,
    target: &TargetProfile,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut check = |path: &str, what: String, table: &Table, entries: usize, advice: &str| {
        let room = target.table_size(table);
        if entries > room {
            faults.push(Fault {
                path: path.to_owned(),
                value: what,
                reason: format!(
                    "need {} entries in {}; target {target} has {}: {advice}",
                    grouped(entries),
                    table.name,
                    grouped(room)
                ),
            });
        }
    };
    let shapes = units.values().map(Unit::shape).filter(|shape| !shape.active.is_empty());
    let buckets: usize = shapes.map(|shape| shape.bucket_count() as usize).sum();
    let what = format!("{} buckets", grouped(buckets));
    let advice = "use fewer units, cores or buckets";
    check("ecofilter-balancer ecofilter-unit", what, &tables::BUCKETS, buckets, advice);
    for family in Family::BOTH {
        let of_family =
            || flows.values().filter(move |flow| flow.matches.iter().any(|(of, _)| *of == family));
        let entries = of_family().map(|flow| flow.links.len().max(1)).sum();
        let Some(table) = tables::by_id(family.table()) else { continue };
        let what = format!("{} rules", grouped(of_family().count()));
        let advice = "a flow takes one in the table of each IP version that it can match, for each link of apply-to-links";
        check("ecofilter-balancer flow", what, table, entries, advice);
    }
    let taken = ports.values().filter(|port| port.id == target.cpu_port);
    faults.extend(taken.map(|port| Fault {
        path: format!("port {}", port.name),
        value: format!("number {}, lane {}", port.number, port.lane),
        reason: format!("is port {} of target {target}, by which its CPU is reached", port.id),
    }));
    faults
}

/// The number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 12, 123, 1234, 123_456, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }
}
