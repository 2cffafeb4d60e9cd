//! Every rule of the modules: a configuration that breaks it and nothing else, and the message that says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod data;

use std::collections::BTreeSet;

use data::{BALANCER, EXAMPLE, example, faults, with, yang};
use serde_json::{Value, json};
use tree::{Kind, Node, Type};
use yang::FaultKind;

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

fn flow(matches: Value) -> Vec<(String, Value)> {
    vec![(at("/flow/-"), json!({"name": "new", "priority": 7, "match": matches, "action": "bypass"}))]
}

fn steering(value: Value) -> Vec<(String, Value)> {
    vec![(at("/steering-header"), value)]
}

fn profile(leaf: &str, value: Value) -> Vec<(String, Value)> {
    vec![(format!("/sluice:liveness/profile/0/{leaf}"), value)]
}

fn user(leaf: &str, value: Value) -> Vec<(String, Value)> {
    let user = json!({"name": "ann", "role": "admin"});
    vec![("/sluice:access".into(), json!({"user": [with(user, &format!("/{leaf}"), value)]}))]
}

fn grpc(value: Value) -> Vec<(String, Value)> {
    vec![("/sluice:access".into(), json!({"grpc": value}))]
}

fn probe() -> Value {
    json!({"source": "10.0.0.1", "destination": "10.0.0.2"})
}

/// With a port that nothing else uses.
fn free_port(mut changes: Vec<(String, Value)>) -> Vec<(String, Value)> {
    changes.insert(0, ("/sluice:port/-".into(), json!({"name": "q0", "number": 65})));
    changes
}

/// Headers whose last VLAN id the last link has.
fn high() -> Vec<(String, Value)> {
    steering(json!({"mode": "dot1q", "base-vid": 4093}))
}

fn ports(count: usize) -> Value {
    (0..count).map(|n| json!({"name": format!("q{n}"), "number": 11 + n / 4, "lane": n % 4})).collect()
}

/// Changes of the example, and the lines of the faults that follow.
struct Case {
    changes: Vec<(String, Value)>,
    faults: Vec<&'static str>,
    kind: FaultKind,
    app_tag: Option<&'static str>,
}

fn case(
    changes: Vec<(String, Value)>,
    faults: &[&'static str],
    kind: FaultKind,
    app_tag: impl Into<Option<&'static str>>,
) -> Case {
    Case { changes, faults: faults.to_vec(), kind, app_tag: app_tag.into() }
}

fn musts() -> Vec<Case> {
    use FaultKind::Must;
    let unit = at("/ecofilter-unit/0");
    let set = |pointer: &str, value: Value| vec![(at(pointer), value)];
    let twice = "port-serves-twice";
    let versions = "ip-versions-differ";
    vec![
        case(
            set("/link/1/lan-port", json!("p4-1")),
            &[
                "ecofilter-balancer link link1 wan-port: \"p4-1\": a port serves one purpose only: one side of one link or pair",
                "ecofilter-balancer link link2 lan-port: \"p4-1\": a port serves one purpose only: one side of one link or pair",
            ],
            Must,
            twice,
        ),
        case(
            set("/ecofilter-unit/0/pair/0/wan-port", json!("p9")),
            &[
                "ecofilter-balancer link link2 wan-port: \"p9\": a port serves one purpose only: one side of one link or pair",
                "ecofilter-balancer ecofilter-unit main pair f1-1 wan-port: \"p9\": a port serves one purpose only: one side of one link or pair",
            ],
            Must,
            twice,
        ),
        case(
            set("/ecofilter-unit/0/pair/0/lan-port", json!("p1-1")),
            &[
                "ecofilter-balancer ecofilter-unit main pair f1-1 lan-port: \"p1-1\": a port serves one purpose only: one side of one link or pair",
                "ecofilter-balancer ecofilter-unit main pair f1-1 wan-port: \"p1-1\": a port serves one purpose only: one side of one link or pair",
            ],
            Must,
            twice,
        ),
        case(
            vec![("/sluice:port/0/speed".into(), json!("25g"))],
            &[
                "port p4-1 speed: \"10g\": lanes of one connector need equal speed",
                "port p4-2 speed: \"25g\": lanes of one connector need equal speed",
            ],
            Must,
            "lanes-differ-in-speed",
        ),
        case(
            profile("reference", json!("ports")),
            &[
                "liveness profile default reference: \"ports\": needs reference-lan-port and reference-wan-port",
            ],
            Must,
            "needs-reference-ports",
        ),
        case(
            free_port(profile("reference-lan-port", json!("q0"))),
            &["liveness profile default reference-lan-port: \"q0\": has a meaning with reference ports only"],
            Must,
            "needs-reference",
        ),
        case(
            free_port(profile("reference-wan-port", json!("q0"))),
            &["liveness profile default reference-wan-port: \"q0\": has a meaning with reference ports only"],
            Must,
            "needs-reference",
        ),
        case(
            free_port(
                [
                    profile("reference", json!("ports")),
                    profile("reference-lan-port", json!("q0")),
                    profile("reference-wan-port", json!("q0")),
                ]
                .concat(),
            ),
            &[
                "liveness profile default reference-wan-port: \"q0\": is the reference's LAN port too; a cable joins two ports",
            ],
            Must,
            twice,
        ),
        case(
            profile("hold-down-base", json!(301)),
            &["liveness profile default hold-down-base: \"301\": is more than hold-down-ceiling"],
            Must,
            "base-above-ceiling",
        ),
        case(
            [steering(json!({"mode": "dot1q"})), profile("probe-cores", json!("on"))].concat(),
            &[
                "liveness profile default probe-cores: \"on\": needs steering headers of mode native; dot1q conveys no core",
            ],
            Must,
            "needs-native",
        ),
        case(
            [high(), profile("ip-probe", probe())].concat(),
            &[
                "liveness profile default ip-probe: needs a VLAN id behind those of the links; choose a lower base-vid",
            ],
            Must,
            "base-vid-too-high",
        ),
        case(
            [high(), profile("negative-probe", probe())].concat(),
            &[
                "liveness profile default negative-probe: needs a VLAN id behind those of the links; choose a lower base-vid",
            ],
            Must,
            "base-vid-too-high",
        ),
        case(
            profile("ip-probe", json!({"source": "10.0.0.1", "destination": "2001:db8::1"})),
            &[
                "liveness profile default ip-probe destination: \"2001:db8::1\": is of another IP version than source",
            ],
            Must,
            versions,
        ),
        case(
            profile("negative-probe", json!({"source": "2001:db8::1", "destination": "10.0.0.1"})),
            &[
                "liveness profile default negative-probe destination: \"10.0.0.1\": is of another IP version than source",
            ],
            Must,
            versions,
        ),
        case(
            vec![(format!("{unit}/backup"), json!("main"))],
            &["ecofilter-balancer ecofilter-unit main backup: \"main\": a unit is no backup of its own"],
            Must,
            "own-backup",
        ),
        case(
            vec![("/sluice:prometheus".into(), json!({"tls": {"certificate": "/etc/c.pem"}}))],
            &["prometheus tls certificate: \"/etc/c.pem\": needs the key that belongs to it"],
            Must,
            "needs-key",
        ),
        case(
            vec![("/sluice:prometheus".into(), json!({"tls": {"key": "/etc/k.pem"}}))],
            &["prometheus tls key: \"/etc/k.pem\": needs the certificate that belongs to it"],
            Must,
            "needs-certificate",
        ),
        case(
            grpc(json!({"tls": {"certificate": "/etc/c.pem"}})),
            &["access grpc tls certificate: \"/etc/c.pem\": needs the key that belongs to it"],
            Must,
            "needs-key",
        ),
        case(
            grpc(json!({"tls": {"key": "/etc/k.pem"}})),
            &["access grpc tls key: \"/etc/k.pem\": needs the certificate that belongs to it"],
            Must,
            "needs-certificate",
        ),
        case(
            grpc(json!({"enabled": true})),
            &["access grpc enabled: \"true\": needs tls client-ca: a client's certificate says who it is"],
            Must,
            "needs-client-ca",
        ),
        case(
            vec![(format!("{unit}/liveness-profile"), json!("fast"))],
            &[
                "ecofilter-balancer ecofilter-unit main liveness-profile: \"fast\": there is no such liveness profile",
            ],
            Must,
            "no-such-profile",
        ),
        case(
            set(
                "/flow/-",
                json!({"name": "tap", "priority": 9, "action": "to-ecofilter", "ecofilter-unit": "main", "copy": [null]}),
            ),
            &[
                "ecofilter-balancer ecofilter-unit main: gets copies by one flow and traffic by another; what comes back from a copy is dropped, so a unit is for one of the two",
            ],
            Must,
            "copies-and-traffic",
        ),
        case(
            steering(json!({"tpid": "0x8100"})),
            &[
                "ecofilter-balancer steering-header tpid: \"0x8100\": operators' frames carry this EtherType; choose one that they do not, such as 0x88b6",
            ],
            Must,
            "ethertype-taken",
        ),
        case(
            steering(json!({"mode": "dot1q", "tpid": "0x88b5"})),
            &[
                "ecofilter-balancer steering-header tpid: \"0x88b5\": operators' frames or keep-alives carry this EtherType; choose a VLAN's, such as 0x8100",
            ],
            Must,
            "ethertype-taken",
        ),
        case(
            steering(json!({"base-vid": 100})),
            &["ecofilter-balancer steering-header base-vid: \"100\": has a meaning in mode dot1q only"],
            Must,
            "needs-dot1q",
        ),
        case(
            steering(json!({"mode": "dot1q", "base-vid": 4094})),
            &[
                "ecofilter-balancer steering-header base-vid: \"4094\": each link needs a VLAN id of its own, from this one upwards, and the last is 4094; choose a lower one",
            ],
            Must,
            "base-vid-too-high",
        ),
        case(
            set("/flow/4", json!({"name": "rest", "priority": 1, "action": "to-ecofilter"})),
            &["ecofilter-balancer flow rest action: \"to-ecofilter\": needs an ecofilter-unit to send to"],
            Must,
            "needs-unit",
        ),
        case(
            set("/flow/4/action", json!("bypass")),
            &[
                "ecofilter-balancer flow rest ecofilter-unit: \"main\": has a meaning with action to-ecofilter only",
            ],
            Must,
            "needs-to-ecofilter",
        ),
        case(
            set("/flow/0/copy", json!([null])),
            &["ecofilter-balancer flow bgp copy: has a meaning with action to-ecofilter only"],
            Must,
            "needs-to-ecofilter",
        ),
        case(
            flow(json!({"ip-version": 6, "src-ip": "10.0.0.0/8"})),
            &[
                "ecofilter-balancer flow new match src-ip: \"10.0.0.0/8\": is of another IP version than ip-version says",
            ],
            Must,
            versions,
        ),
        case(
            flow(json!({"ip-version": 4, "dst-ip": "2001:db8::/32"})),
            &[
                "ecofilter-balancer flow new match dst-ip: \"2001:db8::/32\": is of another IP version than ip-version says",
            ],
            Must,
            versions,
        ),
        case(
            flow(json!({"src-ip": "10.0.0.0/8", "dst-ip": "::1"})),
            &["ecofilter-balancer flow new match dst-ip: \"::1\": is of another IP version than src-ip"],
            Must,
            versions,
        ),
        case(
            flow(json!({"src-port": "2000-1000"})),
            &["ecofilter-balancer flow new match src-port: \"2000-1000\": the range ends below its start"],
            Must,
            "range-falls",
        ),
        case(
            flow(json!({"dst-port": "1000 .. 999"})),
            &["ecofilter-balancer flow new match dst-port: \"1000 .. 999\": the range ends below its start"],
            Must,
            "range-falls",
        ),
    ]
}

/// 513 pairs need more ports than there are numbers, so that this one rule never stands alone.
#[test]
fn pairs_of_all_units_are_counted() {
    let pair = |n: usize| json!({"name": format!("x{n}"), "lan-port": "p1-1", "wan-port": "p1-2"});
    let units: Value = [257, 256]
        .into_iter()
        .map(|count| json!({"name": format!("u{count}"), "pair": (0..count).map(pair).collect::<Value>()}))
        .collect();
    let found = faults(&[(at("/ecofilter-unit"), units), (at("/flow"), json!([]))]);
    let line = "ecofilter-balancer: at most 512 pairs in all units";
    let fault = found.iter().find(|fault| fault.to_string() == line).expect(line);
    assert_eq!((fault.kind, fault.app_tag.as_deref()), (FaultKind::Must, Some("too-many-pairs")));
}

fn others() -> Vec<Case> {
    use FaultKind::*;
    let set = |pointer: &str, value: Value| vec![(at(pointer), value)];
    let port = |leaf: &str, value: Value| vec![(format!("/sluice:port/0/{leaf}"), value)];
    vec![
        case(
            port("lane", json!(1)),
            &["port p4-1: \"4/1\": port p4-2 has this number and lane already"],
            Unique,
            "data-not-unique",
        ),
        case(
            vec![
                ("/sluice:port/0/interface".into(), json!("eth0")),
                ("/sluice:port/1/interface".into(), json!("eth0")),
            ],
            &["port p4-1 interface: \"eth0\": port p4-2 has this interface already"],
            Unique,
            "data-not-unique",
        ),
        case(
            set("/link/0/wan-port", json!("p77")),
            &["ecofilter-balancer link link1 wan-port: \"p77\": there is no such port"],
            Leafref,
            "instance-required",
        ),
        case(
            set("/ecofilter-unit/0/pair/2/lan-port", json!("p77")),
            &["ecofilter-balancer ecofilter-unit main pair f2-1 lan-port: \"p77\": there is no such port"],
            Leafref,
            "instance-required",
        ),
        case(
            set("/flow/4/ecofilter-unit", json!("mane")),
            &["ecofilter-balancer flow rest ecofilter-unit: \"mane\": there is no such ecofilter-unit"],
            Leafref,
            "instance-required",
        ),
        case(
            set("/flow/3/apply-to-links", json!(["link1", "link3"])),
            &["ecofilter-balancer flow service-vlan apply-to-links: \"link3\": there is no such link"],
            Leafref,
            "instance-required",
        ),
        case(
            set("/flow/3/apply-to-links", json!(["link1", "link1"])),
            &["ecofilter-balancer flow service-vlan apply-to-links: \"link1\": is given twice"],
            Duplicate,
            None,
        ),
        case(
            set("/flow/1/name", json!("bgp")),
            &["ecofilter-balancer flow bgp: is there twice"],
            Duplicate,
            None,
        ),
        case(port("number", Value::Null), &["port p4-2 number: must be set"], Mandatory, None),
        case(
            set("/link/0/lan-port", Value::Null),
            &["ecofilter-balancer link link1 lan-port: must be set"],
            Mandatory,
            None,
        ),
        case(
            set("/ecofilter-unit/0/pair/0/wan-port", Value::Null),
            &["ecofilter-balancer ecofilter-unit main pair f1-1 wan-port: must be set"],
            Mandatory,
            None,
        ),
        case(
            set("/flow/0/priority", Value::Null),
            &["ecofilter-balancer flow bgp priority: must be set"],
            Mandatory,
            None,
        ),
        case(
            set("/flow/0/action", Value::Null),
            &["ecofilter-balancer flow bgp action: must be set"],
            Mandatory,
            None,
        ),
        case(user("role", Value::Null), &["access user ann role: must be set"], Mandatory, None),
        case(
            set(
                "/ecofilter-unit",
                std::iter::once(example()[&BALANCER[1..]]["ecofilter-unit"][0].clone())
                    .chain((0..256).map(|n| json!({"name": format!("u{n}")})))
                    .collect(),
            ),
            &["ecofilter-balancer ecofilter-unit: at most 256"],
            Elements,
            "too-many-elements",
        ),
        case(
            port("interface", json!("a-name-that-is-16")),
            &[
                "port p4-2 interface: \"a-name-that-is-16\": a Linux interface has a name of 1..15 characters, none of them '/', ':' or a blank",
            ],
            Pattern,
            None,
        ),
        case(
            port("speed", json!("1g")),
            &["port p4-2 speed: \"1g\": must be one of 10g, 25g, 40g, 50g, 100g"],
            Type,
            None,
        ),
        case(
            set("/ecofilter-unit/0/buckets", json!(1000)),
            &[
                "ecofilter-balancer ecofilter-unit main buckets: \"1000\": must be a power of two within 1024..65536",
            ],
            Range,
            None,
        ),
        case(
            steering(json!({"tpid": "0x05ff"})),
            &[
                "ecofilter-balancer steering-header tpid: \"0x05ff\": must be an EtherType 0x0600..0xffff, such as 0x88b6",
            ],
            Type,
            None,
        ),
        case(
            flow(json!({"vlan0-tag": 4096})),
            &["ecofilter-balancer flow new match vlan0-tag: \"4096\": must be a VLAN id 0..4095"],
            Type,
            None,
        ),
        case(
            flow(json!({"src-mac": "00:11:22:33:44"})),
            &[
                "ecofilter-balancer flow new match src-mac: \"00:11:22:33:44\": must be a MAC such as 00:11:22:33:44:55, alone or with /mask or a prefix length /0../48",
            ],
            Pattern,
            None,
        ),
        case(
            flow(json!({"src-ip": "10.0.0.256"})),
            &[
                "ecofilter-balancer flow new match src-ip: \"10.0.0.256\": must be an address, a prefix such as 10.0.0.0/8 or 2001:db8::/32, or address/mask such as 10.0.0.1/255.0.0.255",
            ],
            Type,
            None,
        ),
        case(
            flow(json!({"dst-port": "http"})),
            &[
                "ecofilter-balancer flow new match dst-port: \"http\": must be a port 0..65535 or a range such as 1024-65535",
            ],
            Type,
            None,
        ),
        case(
            user("password-hash", json!("secret")),
            &[
                "access user ann password-hash: \"secret\": must be an Argon2 hash such as $argon2id$v=19$m=19456,t=2,p=1$..., as sluiced --hash-password makes it; never the password itself",
            ],
            Pattern,
            None,
        ),
        case(
            user("ssh-key", json!(["AAAA"])),
            &[
                "access user ann ssh-key: \"AAAA\": must be a public key as in authorized_keys, such as ssh-ed25519 AAAA... name",
            ],
            Pattern,
            None,
        ),
        case(
            vec![("/sluice:access".into(), json!({"netconf": {"listen-address": ["10.0.0.0/8"]}}))],
            &[
                "access netconf listen-address: \"10.0.0.0/8\": must be an IPv4 or IPv6 address without a mask",
            ],
            Type,
            None,
        ),
        case(
            port("nix", json!(1)),
            &["port p4-2: Node \"nix\" not found as a child of \"port\" node."],
            Unknown,
            None,
        ),
    ]
}

fn check(case: &Case) {
    let found = faults(&case.changes);
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, case.faults, "{:?}", case.changes);
    for fault in &found {
        assert_eq!((fault.kind, fault.app_tag.as_deref()), (case.kind, case.app_tag), "{fault}");
        assert!(fault.instance.starts_with("/sluice:"), "{fault:?}");
    }
}

#[test]
fn a_broken_rule_is_told_in_words_and_no_other() {
    musts().iter().for_each(check);
}

#[test]
fn wrong_values_and_references_are_told_in_words() {
    others().iter().for_each(check);
}

#[test]
fn no_rule_of_the_modules_is_without_a_case() {
    let schema = yang().schema();
    let broken: BTreeSet<(u16, String)> = musts()
        .iter()
        .flat_map(|case| faults(&case.changes))
        .map(|fault| (fault.at.0.last().unwrap().node.0, fault.message))
        .collect();
    for node in &schema.nodes {
        for must in &node.musts {
            let message = must.message.clone().unwrap();
            // Its case is `pairs_of_all_units_are_counted`.
            let apart = must.app_tag.as_deref() == Some("too-many-pairs");
            assert!(apart || broken.contains(&(node.id.0, message)), "{}: {}", node.name, must.condition);
        }
    }
}

/// The JSON pointer of a node's value in [`everything`].
fn pointer(node: &Node) -> String {
    let schema = yang().schema();
    let mut steps = Vec::new();
    let mut at = Some(node.id);
    while let Some(id) = at {
        let node = schema.node(id);
        if matches!(node.kind, Kind::List { .. }) {
            steps.push("0".to_owned());
        }
        steps.push(if node.parent.is_none() { format!("sluice:{}", node.name) } else { node.name.clone() });
        at = node.parent;
    }
    steps.iter().rev().fold(String::new(), |path, step| format!("{path}/{step}"))
}

/// The example with something in every list and container.
fn everything() -> Value {
    [
        ("/sluice:access", json!({"user": [{"name": "ann", "role": "admin"}], "netconf": {}, "grpc": {}})),
        ("/sluice:prometheus", json!({})),
        ("/sluice:logger", json!({"event-file": {"path": "/var/log/events"}})),
        ("/sluice:liveness/profile/0/ip-probe", probe()),
        ("/sluice:liveness/profile/0/negative-probe", probe()),
    ]
    .into_iter()
    .fold(example(), |tree, (pointer, value)| with(tree, pointer, value))
}

#[test]
fn a_number_next_to_its_range_is_refused_and_one_at_its_end_is_a_number() {
    let schema = yang().schema();
    let mut seen = 0;
    for node in schema.nodes.iter().filter(|node| node.config) {
        let Some(Type::Integer { ranges, message: Some(message), .. }) = node.ty() else { continue };
        let (first, last) = (ranges.first().unwrap().0, ranges.last().unwrap().1);
        for (value, fits) in [(first - 1, false), (first, true), (last, true), (last + 1, false)] {
            let tree = with(everything(), &pointer(node), json!(i64::try_from(value).unwrap()));
            let found = yang().validate(&tree.to_string()).err().unwrap_or_default();
            let out: Vec<_> = found
                .iter()
                .filter(|fault| fault.kind == FaultKind::Range || fault.kind == FaultKind::Type)
                .collect();
            assert_eq!(out.is_empty(), fits, "{} {value}: {found:?}", node.name);
            for fault in out {
                assert_eq!((&fault.message, fault.value.clone()), (message, Some(value.to_string())));
                assert!(fault.path.ends_with(&node.name));
            }
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_name_is_refused_that_no_name_is() {
    for list in [
        "/sluice:port/0",
        "/sluice:liveness/profile/0",
        &at("/link/0"),
        &at("/ecofilter-unit/0"),
        &at("/ecofilter-unit/0/pair/0"),
        &at("/flow/0"),
    ] {
        for name in ["", "a b", "a/b", "größe", "a\nb", &"n".repeat(64)] {
            let found = faults(&[(format!("{list}/name"), json!(name))]);
            assert_eq!(
                found[0].message, "a name is 1..63 of letters, digits, '-', '_' and '.'",
                "{list} {name:?}"
            );
        }
    }
}

#[test]
fn all_faults_are_told_not_the_first_alone() {
    let found = faults(&[
        (at("/link/0/lan-port"), json!("nowhere")),
        (at("/flow/4/ecofilter-unit"), json!("mane")),
        (at("/flow/0/copy"), json!([null])),
        (at("/flow/1/priority"), Value::Null),
    ]);
    assert_eq!(found.len(), 4, "{found:?}");
    let found = faults(&[(at("/flow/0/priority"), json!(0)), (at("/ecofilter-unit/0/cores"), json!(0))]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn more_faults_than_anyone_reads_are_cut_short() {
    let flows: Value = (0..1100)
        .map(|n| json!({"name": format!("f{n}"), "priority": 1, "action": "to-ecofilter"}))
        .collect();
    assert_eq!(faults(&[(at("/flow"), flows)]).len(), 1000);
}

#[test]
fn what_is_fine_leaves_no_fault_of_before() {
    assert_eq!(faults(&[(at("/flow/0/priority"), json!(0))]).len(), 1);
    assert_eq!(yang().validate(EXAMPLE), Ok(()));
    assert_eq!(faults(&[(at("/flow/1/priority"), json!(0))]).len(), 1);
}

#[test]
fn text_that_is_no_data_is_refused() {
    for text in ["", "[]", "null", "{\"sluice:port\": [", "{\"port\": [}", "{} \0", "{\"sluice:nothing\": 1}"]
    {
        let found = yang().validate(text).unwrap_err();
        assert!(
            !found.is_empty() && found.iter().all(|fault| fault.kind == FaultKind::Unknown),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn state_is_no_configuration() {
    let found = faults(&[(at("/state"), json!({"liveness-suspended": true}))]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, FaultKind::Unknown);
}

#[test]
fn ports_enough_for_every_number_are_fine() {
    let tree = json!({"sluice:port": ports(4 * 55)});
    assert_eq!(yang().validate(&tree.to_string()), Ok(()));
}

#[test]
fn threads_validate_at_once_and_get_their_own_faults() {
    let cases = musts();
    std::thread::scope(|scope| {
        for start in 0..4 {
            let cases = &cases;
            scope.spawn(move || {
                for case in cases.iter().cycle().skip(start * 5).take(cases.len()) {
                    check(case);
                }
            });
        }
    });
}
