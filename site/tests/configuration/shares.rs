//! What becomes of the shares of units that shed, of cores that hang, of pairs whose buckets were moved, and of units
//! that others stand in for.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::tables::{BucketBypass, BucketForwarding, TableEntry, UnitMode};
use dataplane::{PairId, UnitId};
use serde_json::{Value, json};
use site::{Condition, Ids, PairName, Site, UnitForwarding, desired_but_rules};

use crate::{BALANCER, example, good, with};

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

fn cores(tree: Value) -> Value {
    let tree = with(tree, &at("/ecofilter-unit/0/cores"), json!(4));
    with(tree, "/sluice:liveness/profile/0/probe-cores", json!("on"))
}

fn name(unit: &str, pair: &str) -> PairName {
    PairName { unit: unit.to_owned(), pair: pair.to_owned() }
}

/// Buckets of a unit in their order.
fn buckets(site: &Site, condition: &Condition, unit: &str) -> Vec<BucketForwarding> {
    let ids = Ids::allocate(site, &Ids::default());
    let mut found = BTreeMap::new();
    for entry in desired_but_rules(site, &ids, condition) {
        if let Ok(TableEntry::Bucket(bucket)) = TableEntry::parse(&entry)
            && bucket.unit == ids.units[unit]
        {
            found.insert(bucket.bucket.0, bucket.forwarding);
        }
    }
    found.into_values().collect()
}

fn mode(site: &Site, condition: &Condition, unit: &str) -> UnitMode {
    let ids = Ids::allocate(site, &Ids::default());
    let units = desired_but_rules(site, &ids, condition);
    units
        .iter()
        .find_map(|entry| match TableEntry::parse(entry) {
            Ok(TableEntry::Unit(found)) if found.unit == ids.units[unit] => Some(found.mode),
            _ => None,
        })
        .unwrap()
}

fn id(site: &Site, unit: &str, pair: &str) -> PairId {
    Ids::allocate(site, &Ids::default()).pairs[&name(unit, pair)]
}

#[test]
fn a_share_that_is_shed_is_exact_spread_and_grows() {
    let shed = |percent: u8| {
        let site = good(&with(example(), &at("/ecofilter-unit/0/shed"), json!(percent)));
        let all = buckets(&site, &Condition::with_up(&site, |_| true), "main");
        (all, site)
    };
    let (home, _) = shed(0);
    let mut before: BTreeSet<usize> = BTreeSet::new();
    for percent in [1, 10, 50, 99, 100] {
        let (all, _) = shed(percent);
        let gone = BucketForwarding::Bypass(BucketBypass::Shed);
        let now: BTreeSet<usize> = (0..all.len()).filter(|bucket| all[*bucket] == gone).collect();
        assert_eq!(now.len(), all.len() * usize::from(percent) / 100, "{percent}");
        assert!(now.is_superset(&before));
        assert!((0..all.len()).all(|bucket| now.contains(&bucket) || all[bucket] == home[bucket]));
        if percent == 50 {
            let mut by_pair: BTreeMap<PairId, usize> = BTreeMap::new();
            for bucket in &now {
                *by_pair.entry(home[*bucket].serving().unwrap().0).or_default() += 1;
            }
            let (least, most) = (by_pair.values().min().unwrap(), by_pair.values().max().unwrap());
            assert!(by_pair.len() == 3 && most * 10 < least * 13, "{by_pair:?}");
        }
        before = now;
    }
}

#[test]
fn a_core_that_hangs_loses_its_own_buckets_alone() {
    let tree = cores(example());
    let site = good(&tree);
    let mut condition = Condition::with_up(&site, |_| true);
    let home = buckets(&site, &condition, "main");
    condition.hung.insert(name("main", "f1-1"), BTreeSet::from([2]));
    let f1 = id(&site, "main", "f1-1");
    let is_hung =
        |home: &BucketForwarding| home.serving().is_some_and(|(pair, core)| pair == f1 && core.0 == 2);
    let down = BucketForwarding::Bypass(BucketBypass::CoreDown);
    let now = buckets(&site, &condition, "main");
    assert!(home.iter().any(is_hung));
    assert!(home.iter().zip(&now).all(|(home, now)| if is_hung(home) { *now == down } else { home == now }));

    let dropping = good(&with(tree.clone(), &at("/ecofilter-unit/0/fail-action"), json!("drop")));
    let now = buckets(&dropping, &condition, "main");
    assert!(home.iter().zip(&now).all(|(home, now)| is_hung(home) == (*now == BucketForwarding::Drop)));

    // With rebalance others take them, core by core, and nothing else moves.
    let sharing = good(&with(tree, &at("/ecofilter-unit/0/rebalance"), json!("on")));
    let now = buckets(&sharing, &condition, "main");
    for (home, now) in home.iter().zip(&now).filter(|(home, _)| is_hung(home)) {
        let (pair, core) = now.serving().unwrap();
        assert!(pair != f1 && core.0 == 2, "{home:?} {now:?}");
    }
    assert!(home.iter().zip(&now).all(|(home, now)| is_hung(home) || home == now));
    // Unless nobody has that core.
    for pair in ["f1-2", "f2-1"] {
        condition.hung.insert(name("main", pair), BTreeSet::from([2]));
    }
    let now = buckets(&sharing, &condition, "main");
    let of_core = |home: &BucketForwarding| home.serving().is_some_and(|(_, core)| core.0 == 2);
    assert!(home.iter().zip(&now).all(|(home, now)| of_core(home) == (*now == down)));
    // By hand, states do not count.
    condition.units.insert("main".to_owned(), UnitForwarding::Primary);
    assert_eq!(buckets(&sharing, &condition, "main"), home);
}

#[test]
fn a_moved_bucket_is_where_it_was_moved_while_that_pair_is_up() {
    let auto = |tree: Value, pair: usize| {
        with(tree, &at(&format!("/ecofilter-unit/0/pair/{pair}/weight")), json!("auto"))
    };
    let site = good(&auto(auto(auto(example(), 0), 1), 2));
    let mut condition = Condition::with_up(&site, |_| true);
    let home = buckets(&site, &condition, "main");
    let target = id(&site, "main", "f1-2");
    let bucket = home.iter().position(|home| home.serving().unwrap().0 != target).unwrap();
    condition.moved.insert("main".to_owned(), BTreeMap::from([(bucket as u16, "f1-2".to_owned())]));
    let now = buckets(&site, &condition, "main");
    let (pair, core) = now[bucket].serving().unwrap();
    assert_eq!((pair, core), (target, home[bucket].serving().unwrap().1));
    assert!((0..home.len()).all(|other| other == bucket || home[other] == now[other]));
    condition.up.remove(&name("main", "f1-2"));
    assert_eq!(buckets(&site, &condition, "main")[bucket], home[bucket]);
}

#[test]
fn the_first_backup_that_balances_takes_over_and_nobody_by_hand() {
    let mut tree = with(example(), &at("/ecofilter-unit/0/backup"), json!("b"));
    for (unit, backup, ports) in [("b", Some("c"), ["q0", "q1"]), ("c", None, ["q2", "q3"])] {
        for (lane, port) in (0..).zip(ports) {
            let number = if unit == "b" { 60 } else { 61 };
            tree = with(tree, "/sluice:port/-", json!({"name": port, "number": number, "lane": lane}));
        }
        let mut config =
            json!({"name": unit, "pair": [{"name": "p", "lan-port": ports[0], "wan-port": ports[1]}]});
        if let Some(backup) = backup {
            config["backup"] = json!(backup);
        }
        tree = with(tree, &at("/ecofilter-unit/-"), config);
    }
    let site = good(&tree);
    let ids = Ids::allocate(&site, &Ids::default());
    let condition = |up: &[&str], by_hand: &[&str]| {
        let mut condition = Condition::with_up(&site, |pair| up.contains(&pair.unit.as_str()));
        for unit in by_hand {
            condition.units.insert((*unit).to_owned(), UnitForwarding::Bypass);
        }
        condition.back_up(&site, |unit| by_hand.contains(&unit));
        condition
    };
    let target = |condition: &Condition, unit: &str| match mode(&site, condition, unit) {
        UnitMode::Backup { unit, bucket_mask, .. } => Some((unit, bucket_mask)),
        _ => None,
    };
    let to = |unit: &str| {
        let mask = site.units[unit].shape().bucket_count() - 1;
        Some::<(UnitId, u16)>((ids.units[unit], mask as u16))
    };
    let all = condition(&["main", "b", "c"], &[]);
    assert!(["main", "b", "c"].iter().all(|unit| target(&all, unit).is_none()));
    assert_eq!(target(&condition(&["b", "c"], &[]), "main"), to("b"));
    let first_is_down = condition(&["c"], &[]);
    assert_eq!((target(&first_is_down, "main"), target(&first_is_down, "b")), (to("c"), to("c")));
    assert_eq!(target(&condition(&["b", "c"], &["b"]), "main"), to("c"));
    let by_hand = condition(&["b", "c"], &["main"]);
    assert_eq!(mode(&site, &by_hand, "main"), UnitMode::Bypass);
    assert_eq!(mode(&site, &condition(&[], &[]), "main"), UnitMode::Bypass);
}
