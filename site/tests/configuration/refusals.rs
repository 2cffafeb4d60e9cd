//! Bad input: each gives an error that names path and value.

use serde_json::{Value, json};
use site::SiteError;

use crate::{BALANCER, EXAMPLE, example, read, with};

/// Changes as JSON pointers and values; path and value that the refusal must name.
type Case = (&'static str, Vec<(String, Value)>, &'static str, &'static str);

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

fn one(name: &'static str, pointer: String, value: Value, path: &'static str, shown: &'static str) -> Case {
    (name, vec![(pointer, value)], path, shown)
}

fn flow(matches: Value) -> Value {
    json!({"name": "new", "priority": 7, "match": matches, "action": "bypass"})
}

fn bad_match(leaf: &'static str, value: Value, shown: &'static str) -> Case {
    let path: &'static str = match leaf {
        "vlan0-tag" => "flow new match vlan0-tag",
        "vlan-depth" => "flow new match vlan-depth",
        "mpls-depth" => "flow new match mpls-depth",
        "packet-type" => "flow new match packet-type",
        "llc-dsap" => "flow new match llc-dsap",
        "llc-ssap" => "flow new match llc-ssap",
        "src-mac" => "flow new match src-mac",
        "dst-mac" => "flow new match dst-mac",
        "ip-version" => "flow new match ip-version",
        "src-ip" => "flow new match src-ip",
        "dst-ip" => "flow new match dst-ip",
        "ip-proto" => "flow new match ip-proto",
        "src-port" => "flow new match src-port",
        "dst-port" => "flow new match dst-port",
        other => panic!("{other}"),
    };
    one(leaf, at("/flow/-"), flow(json!({leaf: value})), path, shown)
}

fn rules() -> Vec<Case> {
    let unit = "/ecofilter-unit/0";
    let steering = |value: Value| (at("/steering-header"), value);
    vec![
        one("port used twice by links", at("/link/1/lan-port"), json!("p4-1"), "link link2 lan-port", "p4-1"),
        one(
            "port of a link used by a pair",
            at("/ecofilter-unit/0/pair/0/wan-port"),
            json!("p9"),
            "pair f1-1 wan-port",
            "p9",
        ),
        one("one port for both sides", at("/link/0/wan-port"), json!("p4-2"), "link link1 wan-port", "p4-2"),
        one("no such port", at("/link/0/wan-port"), json!("p77"), "link link1 wan-port", "p77"),
        one(
            "no such port for a pair",
            at("/ecofilter-unit/0/pair/2/lan-port"),
            json!(""),
            "pair f2-1 lan-port",
            "\"\"",
        ),
        one("no such unit", at("/flow/4/ecofilter-unit"), json!("mane"), "flow rest ecofilter-unit", "mane"),
        one(
            "no such profile",
            at("/ecofilter-unit/0/liveness-profile"),
            json!("fast"),
            "ecofilter-unit main liveness-profile",
            "fast",
        ),
        one(
            "no such link",
            at("/flow/3/apply-to-links"),
            json!(["link3"]),
            "flow service-vlan apply-to-links",
            "link3",
        ),
        one(
            "link twice",
            at("/flow/3/apply-to-links"),
            json!(["link1", "link1"]),
            "flow service-vlan apply-to-links",
            "link1",
        ),
        one(
            "no unit to send to",
            at("/flow/4"),
            json!({"name": "rest", "priority": 1, "action": "to-ecofilter"}),
            "flow rest action",
            "to-ecofilter",
        ),
        one("unit with bypass", at("/flow/4/action"), json!("bypass"), "flow rest ecofilter-unit", "main"),
        one(
            "copy with drop",
            at("/flow/0"),
            json!({"name": "bgp", "priority": 1, "action": "drop", "copy": [null]}),
            "flow bgp copy",
            "true",
        ),
        one("unknown action", at("/flow/0/action"), json!("forward"), "flow bgp action", "forward"),
        one(
            "copy and traffic",
            at("/flow/-"),
            json!({"name": "tap", "priority": 9, "action": "to-ecofilter", "ecofilter-unit": "main", "copy": [null]}),
            "flow tap copy",
            "true",
        ),
        one("space in a link's name", at("/link/0/name"), json!("link 1"), "link link 1", "link 1"),
        one("space in a port's name", "/sluice:port/0/name".into(), json!("p 4"), "port p 4", "p 4"),
        one(
            "slash in a unit's name",
            at("/ecofilter-unit/0/name"),
            json!("a/b"),
            "ecofilter-unit a/b",
            "a/b",
        ),
        one(
            "empty name of a pair",
            at("/ecofilter-unit/0/pair/0/name"),
            json!(""),
            "ecofilter-unit main pair",
            "\"\"",
        ),
        one("long name of a flow", at("/flow/0/name"), json!("n".repeat(64)), "flow nnnn", "nnnn"),
        one("umlaut", at("/flow/0/name"), json!("größe"), "flow größe", "größe"),
        one("newline", "/sluice:liveness/profile/0/name".into(), json!("a\nb"), "liveness profile", "a\\nb"),
        one("priority 0", at("/flow/0/priority"), json!(0), "flow bgp priority", "0"),
        one("priority 65536", at("/flow/0/priority"), json!(65536), "flow bgp priority", "65536"),
        one("priority -1", at("/flow/0/priority"), json!(-1), "flow bgp priority", "-1"),
        one("cores 0", at(&format!("{unit}/cores")), json!(0), "ecofilter-unit main cores", "0"),
        one("cores 300", at(&format!("{unit}/cores")), json!(300), "ecofilter-unit main cores", "300"),
        one("cores 257", at(&format!("{unit}/cores")), json!(257), "ecofilter-unit main cores", "257"),
        one(
            "buckets 1000",
            at(&format!("{unit}/buckets")),
            json!(1000),
            "ecofilter-unit main buckets",
            "1000",
        ),
        one("buckets 512", at(&format!("{unit}/buckets")), json!(512), "ecofilter-unit main buckets", "512"),
        one(
            "buckets 131072",
            at(&format!("{unit}/buckets")),
            json!(131_072),
            "ecofilter-unit main buckets",
            "131072",
        ),
        one(
            "buckets -1024",
            at(&format!("{unit}/buckets")),
            json!(i64::MIN),
            "ecofilter-unit main buckets",
            "-9223372036854775808",
        ),
        one(
            "fail-action",
            at(&format!("{unit}/fail-action")),
            json!("open"),
            "ecofilter-unit main fail-action",
            "open",
        ),
        one("weight 0", at(&format!("{unit}/pair/0/weight")), json!(0), "pair f1-1 weight", "0"),
        one("weight 101", at(&format!("{unit}/pair/0/weight")), json!(101), "pair f1-1 weight", "101"),
        one("role", at(&format!("{unit}/pair/0/role")), json!("idle"), "pair f1-1 role", "idle"),
        one("backup", at(&format!("{unit}/backup")), json!("other"), "ecofilter-unit main backup", "other"),
        one("own backup", at(&format!("{unit}/backup")), json!("main"), "ecofilter-unit main backup", "main"),
        one("shed 101", at(&format!("{unit}/shed")), json!(101), "ecofilter-unit main shed", "101"),
        one("weight word", at(&format!("{unit}/pair/0/weight")), json!("much"), "pair f1-1 weight", "much"),
        one("port number 0", "/sluice:port/0/number".into(), json!(0), "port p4-2 number", "0"),
        one("port number 66", "/sluice:port/0/number".into(), json!(66), "port p4-2 number", "66"),
        one("lane 4", "/sluice:port/0/lane".into(), json!(4), "port p4-2 lane", "4"),
        one("same number and lane", "/sluice:port/0/lane".into(), json!(1), "port p4-1 number", "4/1"),
        one("speed", "/sluice:port/0/speed".into(), json!("1g"), "port p4-2 speed", "1g"),
        one("unequal speeds", "/sluice:port/0/speed".into(), json!("25g"), "port p4-1 speed", "10g"),
        one("mtu 63", "/sluice:port/0/mtu".into(), json!(63), "port p4-2 mtu", "63"),
        one("mtu 10241", "/sluice:port/0/mtu".into(), json!(10241), "port p4-2 mtu", "10241"),
        one(
            "interface",
            "/sluice:port/0/interface".into(),
            json!("a-name-that-is-16"),
            "port p4-2 interface",
            "a-name-that-is-16",
        ),
        (
            "interface twice",
            vec![
                ("/sluice:port/0/interface".into(), json!("eth0")),
                ("/sluice:port/1/interface".into(), json!("eth0")),
            ],
            "port p4-1 interface",
            "eth0",
        ),
        one(
            "interval 0",
            "/sluice:liveness/profile/0/interval".into(),
            json!(0),
            "liveness profile default interval",
            "0",
        ),
        one(
            "max-delay 0",
            "/sluice:liveness/profile/0/max-delay".into(),
            json!(0),
            "liveness profile default max-delay",
            "0",
        ),
        one(
            "active-pairs 0",
            "/sluice:liveness/profile/0/active-pairs".into(),
            json!(0),
            "liveness profile default active-pairs",
            "0",
        ),
        one(
            "probes-down-count 0",
            "/sluice:liveness/profile/0/probes-down-count".into(),
            json!(0),
            "liveness profile default probes-down-count",
            "0",
        ),
        one(
            "mode",
            "/sluice:liveness/profile/0/mode".into(),
            json!("bursts"),
            "liveness profile default mode",
            "bursts",
        ),
        one(
            "reference without its ports",
            "/sluice:liveness/profile/0/reference".into(),
            json!("ports"),
            "liveness profile default reference",
            "ports",
        ),
        one(
            "reference port without reference",
            "/sluice:liveness/profile/0/reference-lan-port".into(),
            json!("p4-2"),
            "liveness profile default reference-lan-port",
            "p4-2",
        ),
        one(
            "hold base above ceiling",
            "/sluice:liveness/profile/0/hold-down-base".into(),
            json!(301),
            "liveness profile default hold-down-base",
            "301",
        ),
        one(
            "probe between two IP versions",
            "/sluice:liveness/profile/0/ip-probe".into(),
            json!({"source": "10.0.0.1", "destination": "2001:db8::1"}),
            "liveness profile default ip-probe destination",
            "2001:db8::1",
        ),
        one(
            "probe to a prefix",
            "/sluice:liveness/profile/0/negative-probe".into(),
            json!({"source": "10.0.0.1", "destination": "10.0.0.0/8"}),
            "liveness profile default negative-probe destination",
            "10.0.0.0/8",
        ),
        one("two ports of one name", "/sluice:port/1/name".into(), json!("p4-2"), "port p4-2", "p4-2"),
        one("two links of one name", at("/link/1/name"), json!("link1"), "link link1", "link1"),
        one("two pairs of one name", at("/ecofilter-unit/0/pair/1/name"), json!("f1-1"), "pair f1-1", "f1-1"),
        one(
            "two units of one name",
            at("/ecofilter-unit/-"),
            json!({"name": "main"}),
            "ecofilter-unit main",
            "main",
        ),
        one("two flows of one name", at("/flow/1/name"), json!("bgp"), "flow bgp", "bgp"),
        one(
            "two profiles of one name",
            "/sluice:liveness/profile/-".into(),
            json!({"name": "default"}),
            "liveness profile default",
            "default",
        ),
        ("mode of the header", vec![steering(json!({"mode": "qinq"}))], "steering-header mode", "qinq"),
        (
            "native header like a VLAN tag",
            vec![steering(json!({"tpid": "0x8100"}))],
            "steering-header tpid",
            "0x8100",
        ),
        ("native header like IPv4", vec![steering(json!({"tpid": 2048}))], "steering-header tpid", "0x0800"),
        (
            "native header like a keep-alive",
            vec![steering(json!({"tpid": "0x88b5"}))],
            "steering-header tpid",
            "0x88b5",
        ),
        (
            "dot1q header like a keep-alive",
            vec![steering(json!({"mode": "dot1q", "tpid": "0x88b5"}))],
            "steering-header tpid",
            "0x88b5",
        ),
        (
            "dot1q header like IPv6",
            vec![steering(json!({"mode": "dot1q", "tpid": "0x86dd"}))],
            "steering-header tpid",
            "0x86dd",
        ),
        ("header like a length", vec![steering(json!({"tpid": "0x05ff"}))], "steering-header tpid", "0x05ff"),
        ("tpid of 17 bits", vec![steering(json!({"tpid": "0x18100"}))], "steering-header tpid", "0x18100"),
        (
            "base-vid in native mode",
            vec![steering(json!({"base-vid": 100}))],
            "steering-header base-vid",
            "100",
        ),
        (
            "base-vid 0",
            vec![steering(json!({"mode": "dot1q", "base-vid": 0}))],
            "steering-header base-vid",
            "0",
        ),
        (
            "base-vid beyond the last VID",
            vec![steering(json!({"mode": "dot1q", "base-vid": 4094}))],
            "steering-header base-vid",
            "4094",
        ),
        bad_match("vlan0-tag", json!(4096), "4096"),
        bad_match("vlan0-tag", json!("ten"), "ten"),
        bad_match("vlan-depth", json!(4), "4"),
        bad_match("mpls-depth", json!(7), "7"),
        bad_match("packet-type", json!("0x05ff"), "0x05ff"),
        bad_match("packet-type", json!(65536), "65536"),
        bad_match("llc-dsap", json!(256), "256"),
        bad_match("llc-ssap", json!(-1), "-1"),
        bad_match("src-mac", json!("00:11:22:33:44"), "00:11:22:33:44"),
        bad_match("dst-mac", json!("00:11:22:33:44:5g"), "00:11:22:33:44:5g"),
        bad_match("dst-mac", json!("00:11:22:33:44:55/49"), "00:11:22:33:44:55/49"),
        bad_match(
            "src-mac",
            json!("00:11:22:33:44:55/ff:ff:ff:00:00:00"),
            "00:11:22:33:44:55/ff:ff:ff:00:00:00",
        ),
        bad_match("src-mac", json!("00:11:22:33:44:+5"), "00:11:22:33:44:+5"),
        bad_match("ip-version", json!(5), "5"),
        bad_match("src-ip", json!("10.0.0.256"), "10.0.0.256"),
        bad_match("src-ip", json!("10.0.0.0/33"), "10.0.0.0/33"),
        bad_match("src-ip", json!("10.0.0.1/8"), "10.0.0.1/8"),
        bad_match("dst-ip", json!("10.0.0.1/255.0.255"), "10.0.0.1/255.0.255"),
        bad_match("dst-ip", json!("10.0.0.1/"), "10.0.0.1/"),
        bad_match("dst-ip", json!("2001:db8::/129"), "2001:db8::/129"),
        bad_match("dst-ip", json!("2001:db8::1/ffff::1"), "2001:db8::1/ffff::1"),
        bad_match("ip-proto", json!(256), "256"),
        bad_match("ip-proto", json!("+6"), "+6"),
        bad_match("src-port", json!(65536), "65536"),
        bad_match("src-port", json!("1024-"), "1024-"),
        bad_match("dst-port", json!("2000-1000"), "2000-1000"),
        bad_match("dst-port", json!("http"), "http"),
        one(
            "two versions",
            at("/flow/-"),
            flow(json!({"src-ip": "10.0.0.0/8", "dst-ip": "::1"})),
            "flow new match dst-ip",
            "::1",
        ),
        one(
            "version and address",
            at("/flow/-"),
            flow(json!({"ip-version": 6, "dst-ip": "10.0.0.0/8"})),
            "flow new match dst-ip",
            "10.0.0.0/8",
        ),
    ]
}

#[test]
fn a_broken_rule_is_named_with_path_and_value() {
    for (name, changes, path, shown) in rules() {
        let tree = changes.into_iter().fold(example(), |tree, (pointer, value)| with(tree, &pointer, value));
        let Err(error) = read(&tree) else { panic!("{name}: accepted") };
        let SiteError::Faults(faults) = &error else { panic!("{name}: {error}") };
        let named = faults.iter().any(|fault| {
            let line = fault.to_string();
            fault.path.contains(path) && line.contains(shown) && !fault.reason.is_empty()
        });
        assert!(named, "{name}: wanted {path} and {shown}, got\n{error}");
    }
}

#[test]
fn every_fault_is_listed_not_the_first_alone() {
    let tree = with(example(), &at("/flow/0/priority"), json!(0));
    let tree = with(tree, &at("/ecofilter-unit/0/cores"), json!(0));
    let tree = with(tree, &at("/link/0/lan-port"), json!("nowhere"));
    let Err(SiteError::Faults(faults)) = read(&tree) else { panic!("accepted") };
    assert_eq!(faults.len(), 3, "{faults:?}");
}

#[test]
fn what_is_no_tree_is_refused_with_its_place() {
    let cases = [
        (with(example(), &at("/pair"), json!([])), "sluice:ecofilter-balancer", "pair"),
        (with(example(), "/sluice:pair", json!([])), "unknown field", "sluice:pair"),
        (with(example(), &at("/ecofilter-unit/0/core"), json!(1)), "ecofilter-unit[0]", "core"),
        (with(example(), &at("/flow/0/match/vlan3-tag"), json!(1)), "flow[0].match", "vlan3-tag"),
        (with(example(), &at("/ecofilter-unit/0/cores"), json!("many")), "ecofilter-unit[0].cores", "many"),
        (with(example(), &at("/ecofilter-unit/0/cores"), json!(1.5)), "ecofilter-unit[0].cores", "1.5"),
        (
            with(example(), &at("/ecofilter-unit/0/cores"), json!(u64::MAX)),
            "ecofilter-unit[0].cores",
            "18446744073709551615",
        ),
        (
            with(example(), &at("/ecofilter-unit/0/rebalance"), json!("yes")),
            "ecofilter-unit[0].rebalance",
            "yes",
        ),
        (
            with(example(), &at("/ecofilter-unit/0/rebalance"), json!(true)),
            "ecofilter-unit[0].rebalance",
            "rebalance",
        ),
        (with(example(), &at("/ecofilter-unit/0/pair/0/admin"), json!("off")), "pair[0].admin", "off"),
        (with(example(), &at("/balancing-method"), json!("layer-2")), "balancing-method", "layer-2"),
        (with(example(), &at("/link"), json!({})), "sluice:ecofilter-balancer.link", "map"),
        (with(example(), &at("/flow/4/copy"), json!("yes")), "flow[4].copy", "[null]"),
        (with(example(), &at("/flow/4/copy"), json!([])), "flow[4].copy", "[null]"),
        (with(example(), &at("/flow/3/apply-to-links"), json!("link1")), "flow[3].apply-to-links", "link1"),
        (with(example(), &at("/link/0"), json!({"name": "x", "lan-port": "p9"})), "link[0]", "wan-port"),
        (with(example(), "/sluice:port/0/number", json!(null)), "sluice:port[0].number", "null"),
        (json!([]), "configuration", "a list"),
        (
            with(example(), &at("/link/0"), json!(["link1", "p4-2", "p4-1", null])),
            "sluice:ecofilter-balancer.link[0]",
            "a list",
        ),
        (
            with(example(), &at("/flow/0/match"), json!([])),
            "sluice:ecofilter-balancer.flow[0].match",
            "a list",
        ),
        (
            with(example(), &at("/steering-header"), json!([])),
            "sluice:ecofilter-balancer.steering-header",
            "a list",
        ),
        (with(example(), "/sluice:liveness", json!([[]])), "sluice:liveness", "a list"),
        (json!(null), "configuration", "null"),
    ];
    for (tree, place, value) in cases {
        let Err(SiteError::Shape(text)) = read(&tree) else { panic!("{place} {value}: accepted or misread") };
        let error = SiteError::Shape(text).to_string();
        assert!(error.contains(place) && error.contains(value), "wanted {place} and {value}: {error}");
    }
}

#[test]
fn a_key_given_twice_is_refused() {
    let text = EXAMPLE.replacen(
        "\"balancing-method\"",
        "\"balancing-method\": \"layer-4\", \"balancing-method\"",
        1,
    );
    let error = site::Site::from_json(&text).unwrap_err().to_string();
    assert!(error.contains("balancing-method"), "{error}");
}

#[test]
fn truncated_text_and_trailing_text_say_where() {
    for length in 0..EXAMPLE.trim_end().len() {
        let error = site::Site::from_json(&EXAMPLE[..length]).expect_err("cut");
        assert!(error.to_string().contains("line"), "{length}: {error}");
    }
    let error = site::Site::from_json(&format!("{EXAMPLE}}}")).expect_err("one brace too many");
    assert!(error.to_string().contains("trailing"), "{error}");
    let deep = format!("{{\"sluice:access\": {}", "[".repeat(100_000));
    assert!(site::Site::from_json(&deep).is_err());
}

/// A site of `count` links, each with two ports of its own.
fn links(count: usize) -> Value {
    let name = |n: usize| format!("p{n}");
    // 65 connectors of four lanes are not enough for 257 links, so the last ports clash as well.
    let ports: Vec<Value> =
        (0..count * 2).map(|n| json!({"name": name(n), "number": (n / 4) % 65 + 1, "lane": n % 4})).collect();
    let links: Vec<Value> = (0..count)
        .map(|n| json!({"name": format!("l{n}"), "lan-port": name(n * 2), "wan-port": name(n * 2 + 1)}))
        .collect();
    json!({"sluice:port": ports, "sluice:ecofilter-balancer": {"link": links}})
}

#[test]
fn more_links_than_a_header_can_name_are_refused() {
    let faults = |count| match read(&links(count)) {
        Ok(_) => Vec::new(),
        Err(SiteError::Faults(faults)) => faults,
        Err(error) => panic!("{error}"),
    };
    assert!(faults(130).is_empty());
    let about_links = |count| faults(count).iter().any(|fault| fault.value == format!("{count} links"));
    assert!(!about_links(256));
    assert!(about_links(257));
}

#[test]
fn tables_that_would_not_hold_the_site_are_named_before_the_device_refuses() {
    let units: Vec<Value> =
        (0..17).map(|n| json!({"name": format!("u{n}"), "buckets": 65536, "pair": []})).collect();
    // Units without pairs have no buckets.
    let tree = with(example(), &at("/ecofilter-unit"), json!(units.clone()));
    let tree = with(tree, &at("/flow"), json!([]));
    assert!(read(&tree).is_ok());
    let ports: Vec<Value> =
        (0..34).map(|n| json!({"name": format!("q{n}"), "number": 20 + n / 4, "lane": n % 4})).collect();
    let units: Vec<Value> = (0..17)
        .map(|n| {
            let (lan, wan) = (format!("q{}", n * 2), format!("q{}", n * 2 + 1));
            json!({"name": format!("u{n}"), "buckets": 65536, "pair": [{"name": "a", "lan-port": lan, "wan-port": wan}]})
        })
        .collect();
    let all: Vec<Value> = example()["sluice:port"].as_array().unwrap().iter().cloned().chain(ports).collect();
    let tree = with(with(tree, "/sluice:port", json!(all)), &at("/ecofilter-unit"), json!(units));
    let error = read(&tree).expect_err("17 x 65536 buckets").to_string();
    assert!(error.contains("ecofilter-unit") && error.contains("1,114,112 buckets"), "{error}");
    let tree = with(tree, &at("/ecofilter-unit/3/pair"), json!([]));
    assert!(read(&tree).is_ok());

    let flows = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|n| json!({"name": format!("f{n}"), "priority": 5, "apply-to-links": ["link1", "link2"], "action": "bypass"}))
            .collect()
    };
    let rules = |count| read(&with(example(), &at("/flow"), json!(flows(count))));
    assert!(rules(65_536).is_ok());
    let error = rules(65_537).expect_err("131074 rules").to_string();
    assert!(
        error.contains("flow") && error.contains("131,074 entries in rules_v4; target swpipe has 131,072"),
        "{error}"
    );
}
