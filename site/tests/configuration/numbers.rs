//! Numbers of links, units, pairs and rules: given once, kept while the thing lives.

use std::collections::BTreeSet;

use dataplane::{LinkIndex, SteeringMode};
use proptest::prelude::*;
use serde_json::{Value, json};
use site::{Ids, Site};

use crate::generate;
use crate::{BALANCER, good, with};

fn lists_of(tree: &mut Value) -> Vec<&mut Vec<Value>> {
    let balancer = tree.pointer_mut(BALANCER).unwrap().as_object_mut().unwrap();
    let mut lists = Vec::new();
    for (name, list) in balancer {
        if name == "ecofilter-unit" {
            for unit in list.as_array_mut().unwrap() {
                lists.push(unit["pair"].as_array_mut().unwrap());
            }
        } else if let (true, Some(list)) = (["link", "flow"].contains(&name.as_str()), list.as_array_mut()) {
            lists.push(list);
        }
    }
    lists
}

/// The table priorities put flows in the order of the contract.
fn ordered(site: &Site, ids: &Ids) {
    for one in site.flows.values() {
        for other in site.flows.values() {
            let wins =
                one.priority > other.priority || one.priority == other.priority && one.name < other.name;
            assert!(!wins || ids.flows[&one.name] > ids.flows[&other.name], "{} {}", one.name, other.name);
        }
    }
}

fn unique(ids: &Ids) {
    assert_eq!(ids.links.values().collect::<BTreeSet<_>>().len(), ids.links.len());
    assert_eq!(ids.units.values().collect::<BTreeSet<_>>().len(), ids.units.len());
    assert_eq!(ids.pairs.values().collect::<BTreeSet<_>>().len(), ids.pairs.len());
    assert_eq!(ids.flows.values().collect::<BTreeSet<_>>().len(), ids.flows.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn numbers_stay_when_lists_are_reordered_and_things_come_and_go(
        tree in generate::site(), other in generate::site(), turns in prop::collection::vec(any::<prop::sample::Index>(), 40)
    ) {
        let first = good(&tree);
        let ids = Ids::allocate(&first, &Ids::default());
        unique(&ids);
        ordered(&first, &ids);
        prop_assert_eq!(&Ids::allocate(&first, &ids), &ids);

        let mut turned = tree.clone();
        let mut turns = turns.into_iter().cycle();
        for list in lists_of(&mut turned) {
            if !list.is_empty() {
                let by = turns.next().unwrap().index(list.len());
                list.rotate_left(by);
            }
        }
        prop_assert_eq!(&Ids::allocate(&good(&turned), &ids), &ids);

        // Another site altogether, some names in common: those keep their numbers.
        let second = good(&other);
        let next = Ids::allocate(&second, &ids);
        unique(&next);
        ordered(&second, &next);
        for (name, link) in &next.links {
            let kept = ids.links.get(name).filter(|link| second.steering.can_name(**link));
            prop_assert!(kept.is_none_or(|kept| kept == link));
        }
        for (name, unit) in &next.units {
            prop_assert!(ids.units.get(name).is_none_or(|kept| kept == unit));
        }
        for (name, pair) in &next.pairs {
            prop_assert!(ids.pairs.get(name).is_none_or(|kept| kept == pair));
        }
        prop_assert_eq!(next.links.len(), second.links.len());
        prop_assert_eq!(next.pairs.len(), second.pair_names().count());
    }

    #[test]
    fn one_flow_less_leaves_the_others_their_numbers(tree in generate::site(), gone: prop::sample::Index) {
        let site = good(&tree);
        prop_assume!(!site.flows.is_empty());
        let ids = Ids::allocate(&site, &Ids::default());
        let mut fewer = tree;
        let flows = fewer.pointer_mut(&format!("{BALANCER}/flow")).unwrap().as_array_mut().unwrap();
        let name = flows.remove(gone.index(flows.len()))["name"].as_str().unwrap().to_owned();
        let mut expect = ids.clone();
        expect.flows.remove(&name);
        prop_assert_eq!(Ids::allocate(&good(&fewer), &ids), expect);
    }
}

#[test]
fn a_link_never_gets_a_vid_beyond_the_last() {
    let port = |n: usize| json!({"name": format!("p{n}"), "number": n / 4 + 1, "lane": n % 4});
    let link = |n: usize| json!({"name": format!("l{n}"), "lan-port": format!("p{}", n * 2), "wan-port": format!("p{}", n * 2 + 1)});
    let ten = json!({
        "sluice:port": (0..20).map(port).collect::<Vec<_>>(),
        "sluice:ecofilter-balancer": {"link": (0..10).map(link).collect::<Vec<_>>()}
    });
    let ids = Ids::allocate(&good(&ten), &Ids::default());
    assert_eq!(ids.links["l9"], LinkIndex(9));
    // The last link alone, in a mode where its old number would need VID 4103.
    let one = with(ten, &format!("{BALANCER}/link"), json!([link(9)]));
    let one = with(one, &format!("{BALANCER}/steering-header"), json!({"mode": "dot1q", "base-vid": 4094}));
    let site = good(&one);
    assert_eq!(site.steering, SteeringMode::Dot1q { tpid: 0x8100, base_vid: 4094 });
    assert_eq!(Ids::allocate(&site, &ids).links["l9"], LinkIndex(0));
}
