//! `weight auto`: a bucket at a time goes from pairs that cost much to pairs that cost little.

use std::collections::BTreeMap;

use liveness::weights::{Allowance, Weighed, moves};
use liveness::{Nanos, PairKey, PairState};
use site::{BucketNow, PairName, PairRole, Unit, UnitForwarding};

use super::Engine;
use crate::clock;
use crate::keepalives::Status;
use crate::target::Target;

/// How many buckets each unit may move, by its name; anew when its number of buckets changes.
#[derive(Default)]
pub(super) struct Allowances(BTreeMap<String, (usize, Allowance)>);

impl Allowances {
    fn of(&mut self, unit: &str, buckets: usize, now: Nanos) -> &mut Allowance {
        let fresh = || (buckets, Allowance::new(buckets, now));
        let (of, allowance) = self.0.entry(unit.to_owned()).or_insert_with(fresh);
        if *of != buckets {
            (*of, *allowance) = fresh();
        }
        allowance
    }
}

/// Some pair of the unit has `weight auto`.
pub(super) fn is_auto(unit: &Unit) -> bool {
    unit.pairs.values().any(|pair| pair.weight_auto)
}

impl<T: Target> Engine<T> {
    /// Moves what is due to move.
    pub(super) async fn balance_by_cost(&mut self) {
        if self.actual.is_none() {
            return;
        }
        let Ok(status) = self.keepalives.status().await else { return };
        let now = clock::now();
        let units: Vec<Unit> = self.site.units.values().filter(|unit| is_auto(unit)).cloned().collect();
        let mut moved = false;
        for unit in &units {
            let buckets = unit.shape().bucket_count() as usize;
            let forwarding = self.condition.units.get(&unit.name);
            if !matches!(forwarding, None | Some(UnitForwarding::Balance)) {
                continue;
            }
            let allowed = self.allowances.of(&unit.name, buckets, now).available(now);
            if allowed > 0 && self.move_buckets(unit, &status, allowed) {
                self.allowances.of(&unit.name, buckets, now).spend(now);
                moved = true;
            }
        }
        if moved {
            let wanted = self.wanted();
            if let Err(error) = self.change_to(wanted).await {
                tracing::warn!("{error}; trying again");
            }
        }
    }

    /// Notes where buckets of a unit go; whether any go anywhere.
    fn move_buckets(&mut self, unit: &Unit, status: &Status, allowed: usize) -> bool {
        let Some(table) = unit.bucket_table() else { return false };
        let key = |pair: &str| {
            let name = PairName { unit: unit.name.clone(), pair: pair.to_owned() };
            self.ids.pairs.get(&name).map(|id| PairKey(id.0))
        };
        let mut names: BTreeMap<PairKey, &str> = BTreeMap::new();
        let mut weighed = Vec::new();
        for pair in unit.pairs.values().filter(|pair| pair.weight_auto && pair.role == PairRole::Active) {
            let Some(key) = key(&pair.name) else { continue };
            let measured = status.pairs.iter().find(|measured| measured.pair == key);
            let cost = measured.filter(|measured| measured.state == PairState::Up).and_then(|pair| pair.cost);
            if let Some(cost) = cost {
                names.insert(key, &pair.name);
                weighed.push(Weighed { pair: key, cost });
            }
        }
        // What no pair serves is of a pair that nobody weighs.
        const NOBODY: PairKey = PairKey(u16::MAX);
        let assignment: Vec<PairKey> = site::buckets_now(unit, &table, &self.condition)
            .into_iter()
            .map(|now| match now {
                BucketNow::Pair { pair, .. } => key(pair).unwrap_or(NOBODY),
                BucketNow::CoreDown | BucketNow::Shed => NOBODY,
            })
            .collect();
        let homes: Vec<&str> = table.home().map(|(pair, _)| pair).collect();
        let moves = moves(&weighed, &assignment, allowed);
        let moved = self.condition.moved.entry(unit.name.clone()).or_default();
        let mut any = false;
        for step in moves {
            let (Some(to), Some(home), Ok(bucket)) =
                (names.get(&step.to), homes.get(step.bucket), u16::try_from(step.bucket))
            else {
                continue;
            };
            any = true;
            if to == home {
                moved.remove(&bucket);
            } else {
                moved.insert(bucket, (*to).to_owned());
            }
        }
        if moved.is_empty() {
            self.condition.moved.remove(&unit.name);
        }
        any
    }
}
