//! The table entries that a site asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dataplane::entry::Entry;
use dataplane::tables::{
    BucketBypass, BucketEntry, BucketForwarding, CloneSessionEntry, LinkEntry, LinkForwarding,
    PairForwarding, PairPortEntry, PairStateEntry, PortEntry, PortMtuEntry, PortRole, RuleAction, RuleEntry,
    RuleField, SteeringEntry, UnitEntry, UnitMode,
};
use dataplane::{BucketIndex, BucketTable, Core, PortId, Side, UnitShape, buckets};

use crate::check::{FailAction, Link, PairConfig, PairRole, Site, Unit};
use crate::flow::FlowAction;
use crate::ids::{Ids, PairName};
use crate::profile::Reference;
use crate::tree::Admin;

/// What a unit does with its traffic now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnitForwarding {
    /// Balance.
    #[default]
    Balance,
    /// Balance whatever the state of pairs.
    Primary,
    /// Everything to the peer port.
    Bypass,
    /// Everything to this unit, which stands in for it.
    Backup(String),
}

/// Pairs and units as they are now, beside the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Pairs that carry traffic.
    pub up: BTreeSet<PairName>,
    /// Units that do not just balance.
    pub units: BTreeMap<String, UnitForwarding>,
    /// By unit: down pair to the spare that stands in for it.
    pub stand_ins: BTreeMap<String, BTreeMap<String, String>>,
    /// Worker cores that are down behind pairs that are up.
    pub hung: BTreeMap<PairName, BTreeSet<u8>>,
    /// By unit: buckets that `weight auto` has moved, with the name of the pair that has each now.
    pub moved: BTreeMap<String, BTreeMap<u16, String>>,
}

impl Condition {
    /// The condition where exactly the pairs that `up` names are up: units with fewer than `active-pairs`
    /// of them are in bypass, spares stand in.
    pub fn with_up(site: &Site, up: impl Fn(&PairName) -> bool) -> Self {
        let mut condition = Condition::default();
        for unit in site.units.values() {
            let is_up = |pair: &str| {
                let name = PairName { unit: unit.name.clone(), pair: pair.to_owned() };
                unit.pairs.get(pair).is_some_and(|config| config.admin != Admin::Down) && up(&name)
            };
            let shape = unit.shape();
            condition.up.extend(
                unit.pairs
                    .keys()
                    .filter(|pair| is_up(pair))
                    .map(|pair| PairName { unit: unit.name.clone(), pair: pair.clone() }),
            );
            let spares = condition.next_stand_ins(unit);
            let in_service = shape.active.keys().filter(|pair| is_up(pair)).count() + spares.len();
            let wanted = site.profile_of(unit).active_pairs as usize;
            if shape.active.is_empty() || in_service < wanted {
                condition.units.insert(unit.name.clone(), UnitForwarding::Bypass);
            }
            condition.stand_ins.insert(unit.name.clone(), spares);
        }
        condition
    }

    /// Lets backups take the place of units that are bypassed for want of pairs: the first one in turn that balances.
    /// Units for which `by_hand` holds stay as they are.
    pub fn back_up(&mut self, site: &Site, by_hand: impl Fn(&str) -> bool) {
        let serves = |condition: &Condition, unit: &Unit| {
            let forwarding = condition.units.get(&unit.name);
            matches!(forwarding, None | Some(UnitForwarding::Balance | UnitForwarding::Primary))
                && !unit.shape().active.is_empty()
        };
        let taken: Vec<(String, String)> = site
            .units
            .values()
            .filter(|unit| !by_hand(&unit.name) && !serves(self, unit))
            .filter_map(|unit| {
                let backup = site.backups_of(unit).find(|backup| serves(self, backup))?;
                Some((unit.name.clone(), backup.name.clone()))
            })
            .collect();
        for (unit, backup) in taken {
            self.units.insert(unit, UnitForwarding::Backup(backup));
        }
    }

    /// Which spares of a unit stand in for which down pairs, those of `self` staying where they can.
    #[must_use]
    pub fn next_stand_ins(&self, unit: &Unit) -> BTreeMap<String, String> {
        if !unit.rebalance {
            return BTreeMap::new();
        }
        let is_up = |pair: &str| {
            self.up.contains(&PairName { unit: unit.name.clone(), pair: pair.to_owned() })
                && !is_draining_spare(unit, pair)
        };
        buckets::stand_ins(&unit.shape(), &self.stand_ins_of(&unit.name), is_up)
    }

    /// Spares of a unit that stand in, by the pair they stand in for.
    #[must_use]
    pub fn stand_ins_of(&self, unit: &str) -> BTreeMap<String, String> {
        self.stand_ins.get(unit).cloned().unwrap_or_default()
    }
}

/// A draining spare takes no share of another pair.
fn is_draining_spare(unit: &Unit, pair: &str) -> bool {
    unit.pairs.get(pair).is_some_and(|config| config.role == PairRole::Spare && config.admin == Admin::Drain)
}

/// All entries that `site` asks for with these numbers under this condition.
///
/// Links, units, pairs and rules carry their names as metadata, so that a controller finds its numbers
/// again on a device that it did not program itself.
#[must_use]
pub fn desired(site: &Site, ids: &Ids, condition: &Condition) -> Vec<Entry> {
    let mut entries = desired_but_rules(site, ids, condition);
    entries.extend(rules(site, ids));
    entries
}

/// [`desired`] without the rules: what depends on the condition.
#[must_use]
pub fn desired_but_rules(site: &Site, ids: &Ids, condition: &Condition) -> Vec<Entry> {
    let mut entries = vec![SteeringEntry { mode: site.steering }.entry()];
    for link in &site.links {
        link_entries(site, ids, link, &mut entries);
    }
    probe_entries(site, ids, &mut entries);
    for unit in site.units.values() {
        unit_entries(site, ids, condition, unit, &mut entries);
    }
    entries
}

/// The rules of [`desired`].
#[must_use]
pub fn rules(site: &Site, ids: &Ids) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(2 * site.flows.len());
    for flow in site.flows.values() {
        rule_entries(ids, flow, &mut entries);
    }
    entries
}

/// The rules of one flow; none of a flow that is not there.
#[must_use]
pub fn rules_of(site: &Site, ids: &Ids, flow: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Some(flow) = site.flows.get(flow) {
        rule_entries(ids, flow, &mut entries);
    }
    entries
}

/// Flows whose rules may differ between two sites, each with its numbers. Flows that both share, with the same
/// numbers, are not even looked into: that is what makes one flow of 100,000 a small change.
#[must_use]
pub fn changed_flows<'s>(before: (&'s Site, &Ids), after: (&'s Site, &Ids)) -> Vec<&'s str> {
    let ((old, old_ids), (new, new_ids)) = (before, after);
    let renumbered = old_ids.links != new_ids.links || old_ids.units != new_ids.units;
    let same_numbers = |flow: &crate::Flow| {
        let unit = match &flow.action {
            FlowAction::ToUnit { unit, .. } => old_ids.units.get(unit) == new_ids.units.get(unit),
            FlowAction::Bypass | FlowAction::Drop => true,
        };
        unit && flow.links.iter().all(|link| old_ids.links.get(link) == new_ids.links.get(link))
    };
    let gone = old.flows.keys().filter(|name| !new.flows.contains_key(*name)).map(String::as_str);
    let others = new.flows.iter().filter(|(name, flow)| {
        let shared = old.flows.get(*name).is_some_and(|was| Arc::ptr_eq(was, flow));
        !(shared
            && old_ids.flows.get(*name) == new_ids.flows.get(*name)
            && (!renumbered || same_numbers(flow)))
    });
    gone.chain(others.map(|(name, _)| name.as_str())).collect()
}

fn port_id(site: &Site, name: &str) -> Option<PortId> {
    site.ports.get(name).map(|port| port.id)
}

fn mtu_entry(site: &Site, name: &str) -> Option<Entry> {
    site.ports.get(name).map(|port| PortMtuEntry { port: port.id, mtu: port.mtu }.entry())
}

fn named(mut entry: Entry, name: &str) -> Entry {
    entry.metadata = name.as_bytes().to_vec();
    entry
}

fn link_entries(site: &Site, ids: &Ids, link: &Link, entries: &mut Vec<Entry>) {
    let (Some(lan), Some(wan), Some(index)) =
        (port_id(site, &link.lan_port), port_id(site, &link.wan_port), ids.links.get(&link.name))
    else {
        return; // the check has made sure of ports and numbers
    };
    for (side, port, peer) in [(Side::Lan, lan, wan), (Side::Wan, wan, lan)] {
        let forwarding = LinkForwarding::Port(port);
        entries.push(named(LinkEntry { link: *index, side, forwarding }.entry(), &link.name));
        let role = PortRole::Link { link: *index, side, peer };
        entries.push(PortEntry { port, role }.entry());
    }
    entries.extend(mtu_entry(site, &link.lan_port));
    entries.extend(mtu_entry(site, &link.wan_port));
}

/// The way back of probes that carry steering headers, and the ports of references.
fn probe_entries(site: &Site, ids: &Ids, entries: &mut Vec<Entry>) {
    if let Some(link) = ids.probe.filter(|_| site.units.values().any(|unit| site.is_probed_by_header(unit))) {
        for side in [Side::Lan, Side::Wan] {
            let forwarding = LinkForwarding::Controller;
            entries.push(LinkEntry { link, side, forwarding }.entry());
        }
    }
    let references: BTreeSet<Reference> =
        site.units.values().map(|unit| site.profile_of(unit).reference).collect();
    for reference in &references {
        if let (Reference::Ports { lan_port, wan_port }, Some(name)) =
            (reference, PairName::of_reference(reference))
        {
            pair_port_entries(site, ids, &name, [lan_port, wan_port], false, entries);
        }
    }
}

/// State of a unit.
fn unit_entry(site: &Site, ids: &Ids, condition: &Condition, unit: &Unit) -> Option<Entry> {
    let shape = unit.shape();
    let mask = |shape: &UnitShape| (shape.bucket_count() - 1) as u16;
    let mode = match condition.units.get(&unit.name) {
        Some(UnitForwarding::Backup(backup)) => UnitMode::Backup {
            method: site.method,
            bucket_mask: mask(&site.units.get(backup)?.shape()),
            unit: *ids.units.get(backup)?,
        },
        Some(UnitForwarding::Bypass) => UnitMode::Bypass,
        _ if shape.active.is_empty() => UnitMode::Bypass,
        forwarding => UnitMode::Balance {
            method: site.method,
            bucket_mask: mask(&shape),
            primary: forwarding == Some(&UnitForwarding::Primary),
        },
    };
    let entry = UnitEntry { unit: *ids.units.get(&unit.name)?, mode }.entry();
    Some(named(entry, &unit.name))
}

/// State of a pair.
fn pair_state_entry(ids: &Ids, condition: &Condition, unit: &Unit, pair: &str) -> Option<Entry> {
    let name = PairName { unit: unit.name.clone(), pair: pair.to_owned() };
    let forwarding = match (condition.up.contains(&name), unit.fail_action) {
        (true, _) => PairForwarding::Up,
        (false, FailAction::Bypass) => PairForwarding::Bypass,
        (false, FailAction::Drop) => PairForwarding::Drop,
    };
    Some(PairStateEntry { pair: *ids.pairs.get(&name)?, forwarding }.entry())
}

/// The entries of [`desired`] that say how units and pairs are: what a failing pair changes first.
#[must_use]
pub fn states(site: &Site, ids: &Ids, condition: &Condition) -> Vec<Entry> {
    let units = site.units.values();
    units
        .flat_map(|unit| {
            let pairs = unit.pairs.keys().map(|pair| pair_state_entry(ids, condition, unit, pair));
            pairs.chain([unit_entry(site, ids, condition, unit)])
        })
        .flatten()
        .collect()
}

fn unit_entries(site: &Site, ids: &Ids, condition: &Condition, unit: &Unit, entries: &mut Vec<Entry>) {
    entries.extend(unit_entry(site, ids, condition, unit));
    for pair in unit.pairs.values() {
        pair_entries(site, ids, condition, unit, pair, entries);
    }
    bucket_entries(ids, condition, unit, entries);
}

/// What becomes of each bucket of a unit, in their order.
#[must_use]
pub fn buckets_now<'t>(
    unit: &'t Unit,
    table: &'t BucketTable,
    condition: &'t Condition,
) -> Vec<BucketNow<'t>> {
    let name = |pair: &str| PairName { unit: unit.name.clone(), pair: pair.to_owned() };
    // `primary` ignores the state of pairs, so nobody takes a down pair's share either.
    let primary = condition.units.get(&unit.name) == Some(&UnitForwarding::Primary);
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    let stand_ins = condition.stand_ins.get(&unit.name).unwrap_or(&NONE);
    let up: BTreeSet<&str> =
        unit.pairs.keys().map(String::as_str).filter(|pair| condition.up.contains(&name(pair))).collect();
    let takes = |pair: &str| unit.pairs.get(pair).is_some_and(|config| config.admin == Admin::Up);
    let table_without = |down: Option<&str>| -> Vec<&'t str> {
        if !unit.rebalance || primary {
            return table.home().map(|(pair, _)| pair).collect();
        }
        table.now(|pair| up.contains(pair) && Some(pair) != down, takes, stand_ins)
    };
    let hung: BTreeMap<&str, &BTreeSet<u8>> = unit
        .pairs
        .keys()
        .filter(|_| !primary)
        .filter_map(|pair| Some((pair.as_str(), condition.hung.get(&name(pair))?)))
        .collect();
    let hangs = |pair: &str, core: Core| hung.get(pair).is_some_and(|cores| cores.contains(&core.0));
    // Where the buckets of a pair's hung cores go, if others take them.
    let instead: BTreeMap<&str, Vec<&'t str>> =
        hung.keys().map(|pair| (*pair, table_without(Some(pair)))).collect();
    let moved = condition.moved.get(&unit.name).filter(|_| !primary);
    let shed = shed_buckets(table.home().count(), unit.shed);
    let share = |bucket: usize, core: Core, now: &'t str| -> BucketNow<'t> {
        if shed.get(bucket) == Some(&true) {
            return BucketNow::Shed;
        }
        let by_cost = moved.and_then(|moved| moved.get(&(bucket as u16))).map(String::as_str);
        let pair = by_cost.filter(|pair| up.contains(pair)).unwrap_or(now);
        if !hangs(pair, core) {
            return BucketNow::Pair { pair, core };
        }
        let other = instead.get(pair).and_then(|others| others.get(bucket)).copied();
        match other.filter(|other| *other != pair && up.contains(other) && !hangs(other, core)) {
            Some(other) => BucketNow::Pair { pair: other, core },
            None => BucketNow::CoreDown,
        }
    };
    table
        .home()
        .zip(table_without(None))
        .enumerate()
        .map(|(bucket, ((_, core), now))| share(bucket, core, now))
        .collect()
}

/// What becomes of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketNow<'t> {
    /// A pair serves it, if it is up.
    Pair {
        /// Name in its unit.
        pair: &'t str,
        /// Worker core.
        core: Core,
    },
    /// Its core hangs, and nobody takes it: the unit's `fail-action`.
    CoreDown,
    /// Bypassed on purpose.
    Shed,
}

/// Which of so many buckets this share in percent bypasses: spread over all pairs and cores, and of a greater share
/// those of a smaller one and more.
fn shed_buckets(count: usize, percent: u8) -> Vec<bool> {
    let mut shed = vec![false; count];
    if percent == 0 {
        return shed;
    }
    let mut order: Vec<(u64, usize)> =
        (0..count).map(|bucket| (buckets::scatter(bucket as u64), bucket)).collect();
    order.sort_unstable();
    for (_, bucket) in order.into_iter().take(count * usize::from(percent) / 100) {
        if let Some(shed) = shed.get_mut(bucket) {
            *shed = true;
        }
    }
    shed
}

fn bucket_entries(ids: &Ids, condition: &Condition, unit: &Unit, entries: &mut Vec<Entry>) {
    let (Some(unit_id), Some(table)) = (ids.units.get(&unit.name).copied(), unit.bucket_table()) else {
        return;
    };
    let name = |pair: &str| PairName { unit: unit.name.clone(), pair: pair.to_owned() };
    let numbers: BTreeMap<&str, _> =
        unit.pairs.keys().filter_map(|pair| Some((pair.as_str(), *ids.pairs.get(&name(pair))?))).collect();
    for (bucket, now) in (0..).zip(buckets_now(unit, &table, condition)) {
        let forwarding = match now {
            BucketNow::Pair { pair, core } => match numbers.get(pair) {
                Some(pair) => BucketForwarding::Pair { pair: *pair, core },
                None => continue, // the check has made sure of numbers
            },
            BucketNow::CoreDown => core_down(unit),
            BucketNow::Shed => BucketForwarding::Bypass(BucketBypass::Shed),
        };
        entries.push(BucketEntry { unit: unit_id, bucket: BucketIndex(bucket), forwarding }.entry());
    }
}

/// What becomes of the buckets of a core that hangs.
#[must_use]
pub fn core_down(unit: &Unit) -> BucketForwarding {
    match unit.fail_action {
        FailAction::Bypass => BucketForwarding::Bypass(BucketBypass::CoreDown),
        FailAction::Drop => BucketForwarding::Drop,
    }
}

fn pair_entries(
    site: &Site,
    ids: &Ids,
    condition: &Condition,
    unit: &Unit,
    pair: &PairConfig,
    entries: &mut Vec<Entry>,
) {
    let name = PairName { unit: unit.name.clone(), pair: pair.name.clone() };
    let copy = site.is_copy_unit(&unit.name);
    pair_port_entries(site, ids, &name, [&pair.lan_port, &pair.wan_port], copy, entries);
    entries.extend(pair_state_entry(ids, condition, unit, &pair.name));
}

/// The ports of a pair, or of a reference.
fn pair_port_entries(
    site: &Site,
    ids: &Ids,
    name: &PairName,
    ports: [&String; 2],
    copy: bool,
    entries: &mut Vec<Entry>,
) {
    let [lan_port, wan_port] = ports;
    let (Some(lan), Some(wan), Some(id)) =
        (port_id(site, lan_port), port_id(site, wan_port), ids.pairs.get(name))
    else {
        return; // the check has made sure of ports and numbers
    };
    for (side, port) in [(Side::Lan, lan), (Side::Wan, wan)] {
        let entry = PairPortEntry { pair: *id, side, port }.entry();
        entries.push(named(entry, &name.to_string()));
        entries.push(PortEntry { port, role: PortRole::Pair { pair: *id, side, copy } }.entry());
        // For copies, whether or not a flow asks for them now: a flow that does needs nothing else then.
        if !name.is_reference() {
            entries.push(CloneSessionEntry::to(port).entry());
        }
    }
    entries.extend(mtu_entry(site, lan_port));
    entries.extend(mtu_entry(site, wan_port));
}

fn rule_entries(ids: &Ids, flow: &crate::Flow, entries: &mut Vec<Entry>) {
    let Some(priority) = ids.flows.get(&flow.name).copied() else { return };
    let action = match &flow.action {
        FlowAction::Bypass => RuleAction::Bypass,
        FlowAction::Drop => RuleAction::Drop,
        FlowAction::ToUnit { unit, copy } => {
            let Some(unit) = ids.units.get(unit).copied() else { return };
            if *copy { RuleAction::CopyToUnit(unit) } else { RuleAction::ToUnit(unit) }
        }
    };
    for (family, matches) in &flow.matches {
        let rule = RuleEntry { family: *family, priority, matches: *matches, action };
        if flow.links.is_empty() {
            entries.push(named(rule.entry(), &flow.name));
        }
        for link in flow.links.iter().filter_map(|link| ids.links.get(link)) {
            let mut rule = rule;
            rule.matches.set_exact(RuleField::Link, link.0.into(), *family);
            entries.push(named(rule.entry(), &flow.name));
        }
    }
}
