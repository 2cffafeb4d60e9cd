//! What a change does to traffic that is under way: what an engineer wants to know before, not after.

use dataplane::SteeringMode;

use crate::check::{FailAction, Link, Site, Unit};
use crate::tree::Admin;

impl Site {
    /// What putting `next` in the place of this site does to sessions, a line each; nothing for what goes unnoticed.
    #[must_use]
    pub fn effects(&self, next: &Site) -> Vec<String> {
        let mut effects = Vec::new();
        if self.steering != next.steering && !self.units.is_empty() {
            effects.push(format!(
                "changes steering headers ({} to {}): all units are bypassed for a second meanwhile, and what is \
                 inside an appliance longer than that is dropped",
                steering(self.steering),
                steering(next.steering)
            ));
        }
        for link in &self.links {
            match next.links.iter().find(|other| other.name == link.name) {
                None => effects.push(format!("cuts link {}", link.name)),
                Some(other) if self.ports_of(link) != next.ports_of(other) => effects.push(format!(
                    "moves link {} to other ports: what is inside an appliance for it is dropped",
                    link.name
                )),
                Some(_) => {}
            }
        }
        for unit in self.units.values() {
            if let Some(other) = next.units.get(&unit.name) {
                effects.extend(self.moved(unit, other, next));
                effects.extend(self.recabled(unit, other, next));
                effects.extend(taken_out(unit, other));
            }
        }
        let new = next.units.values().filter(|unit| !self.units.contains_key(&unit.name));
        effects.extend(new.map(|unit| format!("unit {} is bypassed until its pairs are up", unit.name)));
        effects
    }

    /// Data plane numbers of a link's ports.
    fn ports_of(&self, link: &Link) -> Option<[dataplane::PortId; 2]> {
        Some([self.ports.get(&link.lan_port)?.id, self.ports.get(&link.wan_port)?.id])
    }

    /// Links of both sites that have other ports in the next one.
    pub fn moved_links<'s>(&'s self, next: &'s Site) -> impl Iterator<Item = &'s str> {
        self.links.iter().filter_map(|link| {
            let other = next.links.iter().find(|other| other.name == link.name)?;
            (self.ports_of(link) != next.ports_of(other)).then_some(link.name.as_str())
        })
    }

    fn moved(&self, unit: &Unit, other: &Unit, next: &Site) -> Option<String> {
        let name = &unit.name;
        if self.method != next.method {
            return Some(format!("moves all sessions of unit {name} (another balancing-method)"));
        }
        let (Some(before), Some(after)) = (unit.bucket_table(), other.bucket_table()) else {
            return match (unit.bucket_table(), other.bucket_table()) {
                (Some(_), None) => Some(format!("unit {name} has no active pair any more: it is bypassed")),
                _ => None,
            };
        };
        let before: Vec<(&str, _)> = before.home().collect();
        let after: Vec<(&str, _)> = after.home().collect();
        // Both are powers of two: a bucket of the smaller table is several of the larger one.
        let all = before.len().max(after.len());
        let moved = (0..all)
            .filter(|bucket| before.get(bucket % before.len()) != after.get(bucket % after.len()))
            .count();
        match moved {
            0 => None,
            moved if moved == all => Some(format!("moves all sessions of unit {name}")),
            moved => Some(format!(
                "moves {moved} of {all} buckets of unit {name} to another pair or core ({:.1} % of its sessions)",
                100.0 * moved as f64 / all as f64
            )),
        }
    }

    fn recabled(&self, unit: &Unit, other: &Unit, next: &Site) -> Vec<String> {
        let id = |site: &Site, port: &str| site.ports.get(port).map(|port| port.id);
        unit.pairs
            .values()
            .filter_map(|pair| {
                let after = other.pairs.get(&pair.name)?;
                let moved = id(self, &pair.lan_port) != id(next, &after.lan_port)
                    || id(self, &pair.wan_port) != id(next, &after.wan_port);
                moved.then(|| {
                    format!(
                        "pair {} of unit {} has other ports: its share is bypassed until it is up there",
                        pair.name, unit.name
                    )
                })
            })
            .collect()
    }
}

/// Pairs that the engineer takes out of service, or gives back.
fn taken_out(unit: &Unit, other: &Unit) -> Vec<String> {
    let shares = unit.shape();
    let all: u32 = shares.active.values().map(|weight| u32::from(*weight)).sum();
    unit.pairs
        .values()
        .filter_map(|pair| {
            let after = other.pairs.get(&pair.name)?;
            let weight = shares.active.get(&pair.name)?;
            let share = 100.0 * f64::from(*weight) / f64::from(all);
            let what = match (pair.admin, after.admin) {
                (before, after) if before == after => return None,
                (Admin::Down, _) => "is measured, and takes its share back once it is up".to_owned(),
                (_, Admin::Down) if other.rebalance => {
                    format!("goes out of service: its {share:.1} % of the sessions move to the others")
                }
                (_, Admin::Down) => match other.fail_action {
                    FailAction::Bypass => {
                        format!("goes out of service: its {share:.1} % of the sessions are bypassed")
                    }
                    FailAction::Drop => {
                        format!("goes out of service: its {share:.1} % of the sessions are dropped")
                    }
                },
                (_, Admin::Drain) => "keeps its share, and takes none of others".to_owned(),
                (_, Admin::Up) => "takes shares of others again".to_owned(),
            };
            Some(format!("pair {} of unit {} {what}", pair.name, unit.name))
        })
        .collect()
}

fn steering(mode: SteeringMode) -> String {
    match mode {
        SteeringMode::Native { tpid } => format!("native, tpid {tpid:#06x}"),
        SteeringMode::Dot1q { tpid, base_vid } => format!("dot1q, tpid {tpid:#06x}, base-vid {base_vid}"),
    }
}
