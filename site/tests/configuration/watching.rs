//! Backups, references and probes.

use serde_json::{Value, json};
use site::{Ids, PairName, Reference, SiteError};

use crate::{BALANCER, example, good, read, with};

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

fn refusals_of(tree: &Value) -> Vec<String> {
    match read(tree) {
        Err(SiteError::Faults(faults)) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

fn profile(leaf: &str, value: Value) -> Value {
    with(example(), &format!("/sluice:liveness/profile/0/{leaf}"), value)
}

fn unit(name: &str, backup: Option<&str>) -> Value {
    let mut unit = json!({"name": name});
    if let Some(backup) = backup {
        unit["backup"] = json!(backup);
    }
    unit
}

/// The example with units `b` and `c` beside `main`, each with this backup.
fn backed(main: &str, b: Option<&str>, c: Option<&str>) -> Value {
    let tree = with(example(), &at("/ecofilter-unit/0/backup"), json!(main));
    let tree = with(tree, &at("/ecofilter-unit/-"), unit("b", b));
    with(tree, &at("/ecofilter-unit/-"), unit("c", c))
}

#[test]
fn backups_follow_one_another_and_never_in_a_ring() {
    let site = good(&backed("b", Some("c"), None));
    let order: Vec<&str> = site.backups_of(&site.units["main"]).map(|unit| unit.name.as_str()).collect();
    assert_eq!(order, ["b", "c"]);
    let ring = refusals_of(&backed("b", Some("c"), Some("b")));
    assert!(
        ring.iter().any(|line| line.contains("ecofilter-unit b backup") && line.contains("ring")),
        "{ring:?}"
    );
    assert!(!ring.iter().any(|line| line.contains("unit main backup")), "{ring:?}");
    let nowhere = refusals_of(&backed("d", None, None));
    assert_eq!(
        nowhere,
        ["ecofilter-balancer ecofilter-unit main backup: \"d\": there is no such ecofilter-unit"]
    );
}

#[test]
fn a_backup_gets_what_the_unit_gets() {
    let tree = backed("b", None, None);
    assert!(!good(&tree).is_copy_unit("b"));
    let flow = |unit: &str, copy: bool| {
        let mut flow =
            json!({"name": "tap", "priority": 9, "action": "to-ecofilter", "ecofilter-unit": unit});
        if copy {
            flow["copy"] = json!([null]);
        }
        flow
    };
    // `main` gets traffic, so that its backup can get no copies.
    let mixed = refusals_of(&with(tree.clone(), &at("/flow/-"), flow("b", true)));
    assert!(mixed[0].contains("unit b gets copies"), "{mixed:?}");
    // A unit of copies makes its backup one.
    let tree = with(example(), &at("/ecofilter-unit/-"), unit("b", Some("c")));
    let tree = with(tree, &at("/ecofilter-unit/-"), unit("c", None));
    let site = good(&with(tree, &at("/flow/-"), flow("b", true)));
    assert!(site.is_copy_unit("b") && site.is_copy_unit("c") && !site.is_copy_unit("main"));
}

#[test]
fn references_are_measured_as_pairs_are_and_shared() {
    assert_eq!(good(&example()).references().count(), 0);
    let site = good(&profile("reference", json!("controller")));
    let controller = PairName::of_reference(&Reference::Controller).unwrap();
    assert_eq!(site.references().collect::<Vec<_>>(), std::slice::from_ref(&controller));
    let ids = Ids::allocate(&site, &Ids::default());
    assert!(ids.pairs.contains_key(&controller) && controller.is_reference());
    assert_eq!(controller.to_string().parse(), Ok(controller));

    let ports = json!([{"name": "q0", "number": 64}, {"name": "q1", "number": 65}]);
    let mut tree = example();
    tree["sluice:port"].as_array_mut().unwrap().extend(ports.as_array().unwrap().clone());
    let loops = |name: &str| json!({"name": name, "reference": "ports", "reference-lan-port": "q0", "reference-wan-port": "q1"});
    let tree = with(tree, "/sluice:liveness/profile", json!([loops("default"), loops("other")]));
    let site = good(&tree);
    assert_eq!(site.references().map(|name| name.pair).collect::<Vec<_>>(), ["q0:q1"]);
    let taken = refusals_of(&with(tree, &at("/link/0/lan-port"), json!("q0")));
    assert!(taken[0].contains("serves"), "{taken:?}");
}

#[test]
fn the_index_of_probes_is_none_of_a_link_and_stays() {
    let site = good(&example());
    let ids = Ids::allocate(&site, &Ids::default());
    let probe = ids.probe.unwrap();
    assert_eq!(probe.0, 255);
    assert!(!ids.links.values().any(|link| *link == probe));
    let before = Ids { probe: Some(dataplane::LinkIndex(77)), ..Ids::default() };
    assert_eq!(Ids::allocate(&site, &before).probe.unwrap().0, 77);
    // A header of VLAN ids ends sooner.
    let tree = with(example(), &at("/steering-header"), json!({"mode": "dot1q", "base-vid": 4092}));
    assert_eq!(Ids::allocate(&good(&tree), &before).probe.unwrap().0, 2);
    let tree = with(
        tree,
        "/sluice:liveness/profile/0/ip-probe",
        json!({"source": "10.0.0.1", "destination": "10.0.0.2"}),
    );
    good(&tree);
    let full = refusals_of(&with(tree, &at("/steering-header/base-vid"), json!(4093)));
    assert!(full[0].contains("at most 1 links, or a lower base-vid"), "{full:?}");
    let dot1q =
        refusals_of(&with(profile("probe-cores", json!("on")), &at("/steering-header/mode"), json!("dot1q")));
    assert!(dot1q[0].contains("needs steering headers of mode native"), "{dot1q:?}");
}

#[test]
fn everything_about_watching_is_read() {
    let site = good(&with(
        example(),
        "/sluice:liveness/profile/0",
        json!({
            "name": "default", "mode": "burst", "reference": "controller", "hold-down": "on",
            "hold-down-window": 60, "hold-down-base": 2, "hold-down-ceiling": 30, "probe-cores": "on",
            "ip-probe": {"source": "192.0.2.1", "destination": "198.51.100.1", "destination-port": 53},
            "negative-probe": {"source": "2001:db8::1", "destination": "2001:db8::2", "source-port": 9}
        }),
    ));
    let profile = site.profile_of(&site.units["main"]);
    assert!(profile.burst && profile.probe_cores && profile.is_steered());
    assert_eq!(profile.reference, Reference::Controller);
    assert_eq!(profile.hold_down, Some(site::HoldDown { window: 60, base: 2, ceiling: 30 }));
    let ip = profile.ip_probe.unwrap();
    assert_eq!(
        (ip.source.to_string(), ip.destination.to_string()),
        ("192.0.2.1:3784".into(), "198.51.100.1:53".into())
    );
    assert_eq!(profile.negative_probe.unwrap().source.to_string(), "[2001:db8::1]:9");
    let unit = good(&with(example(), &at("/ecofilter-unit/0/pair/0/weight"), json!("auto")));
    let pair = &unit.units["main"].pairs["f1-1"];
    assert!(pair.weight_auto && pair.weight == 1);
}
