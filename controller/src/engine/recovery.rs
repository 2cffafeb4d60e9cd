//! What a device's entries tell a controller that did not write them.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::tables::{BucketForwarding, PairForwarding, TableEntry};
use dataplane::{PairId, UnitId};
use site::{Ids, PairName, Site, Unit};

use crate::difference::Tables;

/// Numbers in force and pairs that are up.
pub(super) struct Recovered {
    pub(super) ids: Ids,
    pub(super) up: BTreeSet<PairName>,
}

/// Reads the numbers in force, or takes those that were kept, and the pairs that are up.
pub(super) fn recover(entries: &Tables, kept: Option<Ids>) -> Recovered {
    let mut ids = Ids::default();
    let mut up_ids = BTreeSet::new();
    for entry in entries.values() {
        let name = || String::from_utf8_lossy(&entry.metadata).into_owned();
        match TableEntry::parse(entry) {
            Ok(TableEntry::Link(link)) if link.forwarding.port().is_some() => {
                ids.links.insert(name(), link.link);
            }
            Ok(TableEntry::Link(link)) => ids.probe = Some(link.link),
            Ok(TableEntry::Unit(unit)) => {
                ids.units.insert(name(), unit.unit);
            }
            Ok(TableEntry::PairPort(port)) => {
                if let Ok(pair) = name().parse() {
                    ids.pairs.insert(pair, port.pair);
                }
            }
            Ok(TableEntry::Rule(rule)) => {
                ids.flows.insert(name(), rule.priority);
            }
            Ok(TableEntry::PairState(state)) if state.forwarding == PairForwarding::Up => {
                up_ids.insert(state.pair);
            }
            _ => {}
        }
    }
    let ids = kept.unwrap_or(ids);
    let up = ids.pairs.iter().filter(|(_, id)| up_ids.contains(id)).map(|(name, _)| name.clone()).collect();
    Recovered { ids, up }
}

/// Why buckets of a device are not at home.
#[derive(Default)]
pub(super) struct Standings {
    /// By unit: spares that stand in, by the pair they stand in for.
    pub(super) stand_ins: BTreeMap<String, BTreeMap<String, String>>,
    /// Cores that hang.
    pub(super) hung: BTreeMap<PairName, BTreeSet<u8>>,
    /// By unit: buckets that were moved by cost.
    pub(super) moved: BTreeMap<String, BTreeMap<u16, String>>,
}

impl Standings {
    /// Of a device with these entries, where pairs with these names are up.
    pub(super) fn of(site: &Site, ids: &Ids, up: &BTreeSet<PairName>, entries: &Tables) -> Self {
        let mut serving: BTreeMap<(UnitId, u16), BucketForwarding> = BTreeMap::new();
        for entry in entries.values() {
            if let Ok(TableEntry::Bucket(bucket)) = TableEntry::parse(entry) {
                serving.insert((bucket.unit, bucket.bucket.0), bucket.forwarding);
            }
        }
        let names: BTreeMap<PairId, &PairName> = ids.pairs.iter().map(|(name, id)| (*id, name)).collect();
        let mut standings = Standings::default();
        for unit in site.units.values() {
            if let Some(id) = ids.units.get(&unit.name) {
                let now = |bucket| serving.get(&(*id, bucket)).copied();
                standings.read(site, unit, &names, up, now);
            }
        }
        standings
    }

    fn read(
        &mut self,
        site: &Site,
        unit: &Unit,
        names: &BTreeMap<PairId, &PairName>,
        up: &BTreeSet<PairName>,
        now: impl Fn(u16) -> Option<BucketForwarding>,
    ) {
        let Some(table) = unit.bucket_table() else { return };
        let spares = unit.shape().spares;
        let probes_cores = site.profile_of(unit).probe_cores;
        let auto = |pair: &str| unit.pairs.get(pair).is_some_and(|pair| pair.weight_auto);
        let mut stand_ins = BTreeMap::new();
        for (bucket, (home, core)) in (0..).zip(table.home()) {
            let name = PairName { unit: unit.name.clone(), pair: home.to_owned() };
            let server = match now(bucket) {
                Some(BucketForwarding::Pair { pair, .. }) => {
                    names.get(&pair).filter(|pair| pair.unit == unit.name)
                }
                Some(
                    BucketForwarding::Bypass(dataplane::tables::BucketBypass::CoreDown)
                    | BucketForwarding::Drop,
                ) => {
                    self.hung.entry(name).or_default().insert(core.0);
                    continue;
                }
                Some(BucketForwarding::Bypass(_)) | None => continue,
            };
            let Some(server) = server.filter(|server| server.pair != home) else { continue };
            if spares.contains(&server.pair) && !up.contains(&name) {
                stand_ins.insert(home.to_owned(), server.pair.clone());
            } else if auto(home) && auto(&server.pair) {
                self.moved.entry(unit.name.clone()).or_default().insert(bucket, server.pair.clone());
            } else if unit.rebalance && probes_cores && up.contains(&name) {
                self.hung.entry(name).or_default().insert(core.0);
            }
        }
        self.stand_ins.insert(unit.name.clone(), stand_ins);
    }
}

/// Those cores that are still there and still probed.
pub(super) fn still_probed(
    site: &Site,
    hung: &BTreeMap<PairName, BTreeSet<u8>>,
) -> BTreeMap<PairName, BTreeSet<u8>> {
    hung.iter()
        .filter_map(|(name, cores)| {
            let unit = site.units.get(&name.unit)?;
            let probed = site.is_probed_by_header(unit)
                && site.profile_of(unit).probe_cores
                && unit.pairs.contains_key(&name.pair);
            let cores: BTreeSet<u8> =
                cores.iter().copied().filter(|core| probed && u16::from(*core) < unit.cores).collect();
            (!cores.is_empty()).then(|| (name.clone(), cores))
        })
        .collect()
}

/// Those buckets that are still there, and whose pairs both still have `weight auto`.
pub(super) fn still_moved(
    site: &Site,
    moved: &BTreeMap<String, BTreeMap<u16, String>>,
) -> BTreeMap<String, BTreeMap<u16, String>> {
    moved
        .iter()
        .filter_map(|(name, buckets)| {
            let unit = site.units.get(name)?;
            let auto = |pair: &str| unit.pairs.get(pair).is_some_and(|pair| pair.weight_auto);
            if !unit.pairs.values().any(|pair| pair.weight_auto) {
                return None;
            }
            let table = unit.bucket_table()?;
            let homes: Vec<&str> = table.home().map(|(pair, _)| pair).collect();
            let kept: BTreeMap<u16, String> = buckets
                .iter()
                .filter(|(bucket, pair)| {
                    homes.get(usize::from(**bucket)).is_some_and(|home| auto(home) && home != pair)
                        && auto(pair)
                })
                .map(|(bucket, pair)| (*bucket, pair.clone()))
                .collect();
            (!kept.is_empty()).then(|| (name.clone(), kept))
        })
        .collect()
}
