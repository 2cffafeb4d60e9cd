//! A site that is made from another by a few flows, and what a change does to sessions.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use site::{Condition, FlowPart, Ids, Site, changed_flows, desired, desired_but_rules, rules, rules_of};

use super::generate;
use super::{BALANCER, example, good, with};

fn at(pointer: &str) -> String {
    format!("{BALANCER}{pointer}")
}

/// The parts of a tree: all but flows, and the flows.
fn parts(tree: &Value) -> (Value, Vec<Value>) {
    let mut rest = tree.clone();
    let flows = rest.pointer_mut(&at("/flow")).map(Value::take).unwrap_or_default();
    if let Some(balancer) = rest.pointer_mut(&at("")).and_then(Value::as_object_mut) {
        balancer.remove("flow");
    }
    (rest, flows.as_array().cloned().unwrap_or_default())
}

#[test]
fn parts_make_the_same_site_as_the_whole() {
    let (rest, flows) = parts(&example());
    assert_eq!(Site::from_parts(&rest, flows.into_iter().map(FlowPart::Written)).unwrap(), good(&example()));
}

#[test]
fn what_holds_between_flows_is_checked_for_a_few_too() {
    let site = good(&example());
    let copy = json!({"name": "mirror", "priority": 5, "action": "to-ecofilter", "ecofilter-unit": "main", "copy": [null]});
    let error = site.with_flows([("mirror".to_owned(), Some(copy))]).unwrap_err().to_string();
    assert!(error.contains("unit main gets copies by one flow and traffic by another"), "{error}");
    let nowhere = json!({"name": "x", "priority": 5, "action": "to-ecofilter", "ecofilter-unit": "nowhere"});
    assert!(site.with_flows([("x".to_owned(), Some(nowhere))]).is_err());
}

#[test]
fn effects_say_whose_sessions_move() {
    let site = good(&example());
    let effects = |pointer: &str, value: Value| site.effects(&good(&with(example(), &at(pointer), value)));
    assert_eq!(site.effects(&site), [""; 0]);
    assert_eq!(
        effects("/balancing-method", json!("layer-4")),
        ["moves all sessions of unit main (another balancing-method)"]
    );
    let cores = effects("/ecofilter-unit/0/cores", json!(16));
    assert!(cores[0].starts_with("moves") && cores[0].contains("unit main"), "{cores:?}");
    let mode = effects("/steering-header/mode", json!("dot1q"));
    assert!(mode[0].starts_with("changes steering headers (native, tpid"), "{mode:?}");
    assert_eq!(effects("/link/1/description", json!("other words")), [""; 0]);
    let first = example().pointer(&at("/link/0")).unwrap().clone();
    let gone = effects("/link", json!([first]));
    assert_eq!(gone, ["cuts link link2"]);
}

#[test]
fn the_index_of_a_link_that_goes_is_not_given_to_the_one_that_comes_with_the_same_change() {
    let site = good(&example());
    let ids = Ids::allocate(&site, &Ids::default());
    let other = good(&with(example(), &at("/link/1/name"), json!("link3")));
    let retired: BTreeSet<_> = ids.links.values().copied().collect();
    let next = Ids::allocate_but(&other, &ids, &retired);
    assert_eq!(next.links["link1"], ids.links["link1"]);
    assert!(!retired.contains(&next.links["link3"]));
}

proptest! {
    /// The difference by flows is the difference by entries.
    #[test]
    fn a_few_changed_flows_ask_for_what_the_whole_tree_asks_for(
        tree in generate::site(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 1..1000u16, any::<bool>()), 1..4),
    ) {
        let (rest, flows) = parts(&tree);
        prop_assume!(!flows.is_empty());
        let site = good(&tree);
        let ids = Ids::allocate(&site, &Ids::default());
        let mut next = flows.clone();
        let mut changes = Vec::new();
        for (pick, priority, gone) in picks {
            let Some(flow) = (!next.is_empty()).then(|| pick.index(next.len())) else { break };
            let name = next[flow]["name"].as_str().unwrap().to_owned();
            if gone {
                next.remove(flow);
                changes.push((name, None));
            } else {
                next[flow]["priority"] = priority.into();
                changes.push((name, Some(next[flow].clone())));
            }
        }
        // Flows that stay are not read again.
        let shared = next.iter().map(|flow| match flows.contains(flow) {
            true => FlowPart::Known(site.flows[flow["name"].as_str().unwrap()].clone()),
            false => FlowPart::Written(flow.clone()),
        });
        prop_assert_eq!(Site::from_parts(&rest, shared).unwrap(), good(&{
            let mut tree = rest.clone();
            tree[&BALANCER[1..]]["flow"] = next.clone().into();
            tree
        }));
        let whole = Site::from_parts(&rest, next.iter().cloned().map(FlowPart::Written)).unwrap();
        let few = site.with_flows(changes).unwrap();
        prop_assert_eq!(&few, &whole);
        let next_ids = Ids::allocate(&few, &ids);
        let changed = changed_flows((&site, &ids), (&few, &next_ids));
        let mut by_flows: Vec<_> = rules(&site, &ids);
        for flow in &changed {
            for rule in rules_of(&site, &ids, flow) {
                let at = by_flows.iter().position(|other| *other == rule).unwrap();
                by_flows.swap_remove(at);
            }
        }
        by_flows.extend(changed.iter().flat_map(|flow| rules_of(&few, &next_ids, flow)));
        by_flows.sort();
        let mut all = rules(&whole, &next_ids);
        all.sort();
        prop_assert_eq!(by_flows, all);
        // Flows that nothing happened to are not looked at.
        let untouched = few.flows.iter().filter(|(name, flow)| {
            site.flows.get(*name).is_some_and(|was| Arc::ptr_eq(was, flow)) && ids.flows[*name] == next_ids.flows[*name]
        });
        for (name, _) in untouched {
            prop_assert!(!changed.contains(&name.as_str()));
        }
        let condition = Condition::with_up(&few, |_| true);
        let mut entries = desired_but_rules(&few, &next_ids, &condition);
        entries.extend(rules(&few, &next_ids));
        prop_assert_eq!(entries, desired(&few, &next_ids, &condition));
    }
}
