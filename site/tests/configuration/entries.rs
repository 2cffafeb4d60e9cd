//! The table entries that a site asks for.

use std::collections::BTreeSet;

use dataplane::entry::{Entry, EntryKey};
use dataplane::tables::{RuleAction, TableEntry};
use proptest::prelude::*;
use serde_json::json;
use site::{Condition, Ids, PairName, Site, UnitForwarding, desired, states};

use crate::generate;
use crate::{BALANCER, example, good, with};

fn entries(site: &Site, condition: &Condition) -> Vec<Entry> {
    desired(site, &Ids::allocate(site, &Ids::default()), condition)
}

fn buckets(entries: &[Entry]) -> Vec<(u8, u16, u16, u8)> {
    entries
        .iter()
        .filter_map(|entry| match TableEntry::parse(entry).unwrap() {
            TableEntry::Bucket(bucket) => {
                let (pair, core) = bucket.forwarding.serving()?;
                Some((bucket.unit.0, bucket.bucket.0, pair.0, core.0))
            }
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_entry_of_a_valid_site_passes_the_schema(tree in generate::site(), down: u32) {
        let site = good(&tree);
        let names: Vec<PairName> = site.pair_names().collect();
        let up = |pair: &PairName| {
            names.iter().position(|name| name == pair).is_some_and(|index| down >> (index % 32) & 1 == 0)
        };
        let condition = Condition::with_up(&site, up);
        let ids = Ids::allocate(&site, &Ids::default());
        let entries = desired(&site, &ids, &condition);
        let mut places = BTreeSet::<EntryKey>::new();
        for entry in &entries {
            prop_assert!(TableEntry::parse(entry).is_ok(), "{:?}", TableEntry::parse(entry));
            prop_assert!(places.insert(entry.place()), "twice: {:?}", entry);
        }
        // What a failing pair changes first is part of the whole.
        let all: BTreeSet<&Entry> = entries.iter().collect();
        for state in states(&site, &ids, &condition) {
            prop_assert!(all.contains(&state), "{:?}", state);
        }
        // Every bucket of a unit with pairs has an entry, and only pairs of that unit.
        for unit in site.units.values() {
            let id = ids.units[&unit.name].0;
            let own: BTreeSet<u16> = unit.pairs.keys()
                .map(|pair| ids.pairs[&PairName { unit: unit.name.clone(), pair: pair.clone() }].0).collect();
            let served: Vec<_> = buckets(&entries).into_iter().filter(|bucket| bucket.0 == id).collect();
            let wanted = unit.bucket_table().map_or(0, |table| table.len());
            prop_assert_eq!(served.len(), wanted);
            prop_assert!(served.iter().all(|bucket| own.contains(&bucket.2) && u16::from(bucket.3) < unit.cores));
        }
        // A flow is a rule for each family that it can match and each link that it names.
        for flow in site.flows.values() {
            let own = entries.iter().filter(|entry| entry.metadata == flow.name.as_bytes()).count();
            prop_assert_eq!(own, flow.matches.len() * flow.links.len().max(1));
        }
    }

    #[test]
    fn one_more_flow_is_its_own_entries_and_nothing_else(tree in generate::site(), new in generate::site(), priority in 1u16..6) {
        let flows = new["sluice:ecofilter-balancer"]["flow"].as_array().unwrap();
        prop_assume!(!flows.is_empty());
        let mut flow = json!({"name": "the-new-one", "priority": priority, "action": "drop"});
        flow["match"] = flows[0]["match"].clone();
        let before = good(&tree);
        let after = good(&with(tree, &format!("{BALANCER}/flow/-"), flow));
        let ids = Ids::allocate(&before, &Ids::default());
        let next = Ids::allocate(&after, &ids);
        let old: BTreeSet<Entry> = desired(&before, &ids, &Condition::default()).into_iter().collect();
        let new: BTreeSet<Entry> = desired(&after, &next, &Condition::default()).into_iter().collect();
        prop_assert!(old.is_subset(&new), "{:?}", old.difference(&new).collect::<Vec<_>>());
        for entry in new.difference(&old) {
            prop_assert_eq!(&entry.metadata[..], &b"the-new-one"[..]);
        }
    }

    #[test]
    fn without_rebalance_the_table_never_changes(tree in generate::site(), down: u32) {
        let site = good(&tree);
        let names: Vec<PairName> = site.pair_names().collect();
        let all = Condition::with_up(&site, |_| true);
        let some = Condition::with_up(&site, |pair| {
            names.iter().position(|name| name == pair).is_some_and(|index| down >> (index % 32) & 1 == 0)
        });
        let ids = Ids::allocate(&site, &Ids::default());
        let fixed: BTreeSet<u8> =
            site.units.values().filter(|unit| !unit.rebalance).map(|unit| ids.units[&unit.name].0).collect();
        let of_fixed = |condition: &Condition| -> Vec<_> {
            buckets(&desired(&site, &ids, condition)).into_iter().filter(|bucket| fixed.contains(&bucket.0)).collect()
        };
        prop_assert_eq!(of_fixed(&all), of_fixed(&some));
    }
}

#[test]
fn units_order_and_pairs_order_in_the_file_do_not_matter() {
    let mut tree = example();
    let pairs =
        tree.pointer_mut(&format!("{BALANCER}/ecofilter-unit/0/pair")).unwrap().as_array_mut().unwrap();
    pairs.reverse();
    assert_eq!(good(&tree).config_hashes(), good(&example()).config_hashes());
    let (units, device) = good(&example()).config_hashes();
    let once = dataplane::buckets::device_hash([units["main"].as_str()].into_iter());
    assert_eq!(device, once);
}

#[test]
fn primary_ignores_the_state_of_pairs_in_the_buckets_too() {
    let tree = with(example(), &format!("{BALANCER}/ecofilter-unit/0/rebalance"), json!("on"));
    let site = good(&tree);
    let all_up = buckets(&entries(&site, &Condition::with_up(&site, |_| true)));
    let mut one_down = Condition::with_up(&site, |pair| pair.pair != "f1-2");
    assert_ne!(buckets(&entries(&site, &one_down)), all_up);
    one_down.units.insert("main".to_owned(), UnitForwarding::Primary);
    assert_eq!(buckets(&entries(&site, &one_down)), all_up);
}

#[test]
fn fewer_than_active_pairs_bypass_the_unit_exactly() {
    let site = |active: u32| good(&with(example(), "/sluice:liveness/profile/0/active-pairs", json!(active)));
    for active in 1..=4 {
        for down in 0..=3usize {
            let site = site(active);
            let gone: Vec<PairName> = site.pair_names().take(down).collect();
            let condition = Condition::with_up(&site, |pair| !gone.contains(pair));
            let bypassed = condition.units.get("main") == Some(&UnitForwarding::Bypass);
            assert_eq!(bypassed, 3 - down < active as usize, "{active} wanted, {down} down");
        }
    }
}

#[test]
fn actions_reach_the_rules() {
    let site = good(&with(example(), &format!("{BALANCER}/flow/4/copy"), json!([null])));
    let mut found = BTreeSet::new();
    for entry in entries(&site, &Condition::default()) {
        if let TableEntry::Rule(rule) = TableEntry::parse(&entry).unwrap() {
            let name = String::from_utf8(entry.metadata.clone()).unwrap();
            found.insert((
                name,
                matches!(rule.action, RuleAction::CopyToUnit(_)),
                rule.action == RuleAction::Bypass,
            ));
        }
    }
    assert!(found.contains(&("rest".to_owned(), true, false)), "{found:?}");
    assert!(found.contains(&("bgp".to_owned(), false, true)), "{found:?}");
    assert_eq!(found.len(), 5);
}
