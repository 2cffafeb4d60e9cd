//! What is allowed but warned about.

use serde_json::{Value, json};

use crate::{BALANCER, example, good, with};

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

fn warned(tree: &Value, path: &str, text: &str) -> bool {
    good(tree).warnings().iter().any(|warning| warning.path.contains(path) && warning.text.contains(text))
}

#[test]
fn a_pair_mtu_below_the_links_and_the_header_is_warned_about() {
    assert!(warned(&example(), "pair f1-1", "9004"), "equal MTUs leave no room for the header");
    let ports = example()["sluice:port"].as_array().unwrap().len();
    for (pair_mtu, link_mtu, expect) in
        [(1504, 1500, false), (1503, 1500, true), (9000, 8996, false), (9000, 8997, true)]
    {
        let mut tree = example();
        for index in 0..ports {
            let mtu = if index < 4 { link_mtu } else { pair_mtu };
            tree = with(tree, &format!("/sluice:port/{index}/mtu"), json!(mtu));
        }
        assert_eq!(warned(&tree, "pair f2-1", "mtu-exceeded"), expect, "{pair_mtu} {link_mtu}");
    }
}

#[test]
fn all_pairs_required_is_warned_about_and_more_than_all_says_so() {
    let with_active = |count: u32| with(example(), "/sluice:liveness/profile/0/active-pairs", json!(count));
    assert!(!warned(&with_active(2), "ecofilter-unit main", "active-pairs"));
    assert!(warned(&with_active(3), "ecofilter-unit main", "one lost port"));
    assert!(warned(&with_active(4), "ecofilter-unit main", "always bypassed"));
}

#[test]
fn spares_that_never_stand_in_and_units_without_pairs_are_warned_about() {
    let spare = with(example(), &at("/ecofilter-unit/0/pair/2/role"), json!("spare"));
    assert!(warned(&spare, "ecofilter-unit main", "rebalance"));
    let used = with(spare, &at("/ecofilter-unit/0/rebalance"), json!("on"));
    assert!(!warned(&used, "ecofilter-unit main", "rebalance"));
    let empty = with(example(), &at("/ecofilter-unit/0/pair"), json!([]));
    assert!(warned(&empty, "ecofilter-unit main", "no active pair"));
}

#[test]
fn llc_conditions_are_for_frames_without_ipv6_and_a_flow_that_never_matches_is_warned_about() {
    use dataplane::tables::Family;
    let flow = |conditions: Value| with(example(), &at("/flow/0/match"), conditions);
    let families = |conditions: Value| -> Vec<Family> {
        good(&flow(conditions)).flows["bgp"].matches.iter().map(|(family, _)| *family).collect()
    };
    assert_eq!(families(json!({"llc-dsap": 66})), [Family::V4]);
    assert_eq!(families(json!({"llc-ssap": 66, "ip-version": 4})), [Family::V4]);
    assert_eq!(families(json!({"packet-type": "0x0806"})), Family::BOTH);
    let never = json!({"llc-dsap": 66, "ip-version": 6});
    assert_eq!(families(never.clone()), []);
    assert!(warned(&flow(never), "flow bgp", "never matches"));
    assert!(!warned(&flow(json!({"llc-dsap": 66})), "flow bgp", "never matches"));
}
