//! Input of RPCs, and XPath.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod data;

use data::{BALANCER, EXAMPLE, example, faults, with, yang};
use serde_json::json;
use tree::{Kind, Path};
use yang::{FaultKind, XpathError};

fn rpc(input: &serde_json::Value) -> Vec<String> {
    let found = yang().validate_rpc(&input.to_string(), EXAMPLE).err().unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn input_that_fits_is_fine() {
    for input in [
        json!({"sluice:set-bypass-ecofilter-unit": {"unit": "main", "mode": "bypass"}}),
        json!({"sluice:clear-hold": {"unit": "main", "pair": "f1-2"}}),
        json!({"sluice:lookup": {"src": "10.0.0.1", "dst": "2001:db8::1"}}),
        json!({"sluice:lookup": {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": 17, "src-port": 1, "dst-port": 65535, "vlan": [100, 100, 7], "link": "link2", "side": "wan"}}),
        json!({"sluice:rollback": {"number": 50}}),
    ] {
        assert_eq!(rpc(&input), Vec::<String>::new(), "{input}");
    }
}

#[test]
fn input_that_does_not_fit_is_told_in_words() {
    for (input, lines) in [
        (
            json!({"sluice:set-bypass-ecofilter-unit": {"unit": "mane", "mode": "bypass"}}),
            vec!["set-bypass-ecofilter-unit unit: \"mane\": there is no such ecofilter-unit"],
        ),
        (
            json!({"sluice:set-bypass-ecofilter-unit": {"unit": "main", "mode": "open"}}),
            vec!["set-bypass-ecofilter-unit mode: \"open\": must be one of auto, bypass, primary"],
        ),
        (
            json!({"sluice:set-bypass-ecofilter-unit": {"unit": "main"}}),
            vec!["set-bypass-ecofilter-unit mode: must be set"],
        ),
        (
            json!({"sluice:clear-hold": {"unit": "main", "pair": "f9"}}),
            vec!["clear-hold pair: \"f9\": there is no such pair"],
        ),
        (json!({"sluice:rollback": {"number": 51}}), vec!["rollback number: \"51\": must be 0..50"]),
        (json!({"sluice:rollback": {}}), vec!["rollback number: must be set"]),
        (
            json!({"sluice:lookup": {"src": "10.0.0.0/8", "dst": "10.0.0.2"}}),
            vec!["lookup src: \"10.0.0.0/8\": must be an IPv4 or IPv6 address without a mask"],
        ),
        (
            json!({"sluice:lookup": {"src": "10.0.0.1", "dst": "10.0.0.2", "link": "link9"}}),
            vec!["lookup link: \"link9\": there is no such link"],
        ),
    ] {
        assert_eq!(rpc(&input), lines, "{input}");
    }
}

#[test]
fn input_of_no_rpc_is_refused() {
    for input in ["{}", "{\"sluice:reboot\": {}}", "{\"sluice:port\": []}", "[]", "", "\0", EXAMPLE] {
        let found = yang().validate_rpc(input, EXAMPLE).unwrap_err();
        assert!(!found.is_empty(), "{input}");
        assert!(found.iter().all(|fault| fault.kind == FaultKind::Unknown), "{input}: {found:?}");
    }
}

/// What an expression selects, as words and the value of a leaf-list.
fn select(expression: &str) -> Vec<String> {
    let state = json!({"buckets": 2048, "state": "up"});
    let tree = with(example(), &format!("{BALANCER}/ecofilter-unit/0/state"), state);
    let prefixes = [("s".to_owned(), "urn:sluice:yang:sluice".to_owned())];
    let found = yang().xpath(&tree.to_string(), expression, &prefixes);
    let schema = yang().schema();
    let words = |path: &Path| {
        let words = path.0.iter().flat_map(|step| {
            let name = schema.node(step.node).name.as_str();
            let list = matches!(schema.node(step.node).kind, Kind::List { .. } | Kind::LeafList { .. });
            std::iter::once(name).chain(step.keys.iter().map(|key| &**key).filter(move |_| list))
        });
        words.collect::<Vec<_>>().join(" ")
    };
    found.unwrap_or_else(|error| panic!("{error}")).iter().map(words).collect()
}

#[test]
fn expressions_select_nodes_of_configuration_and_state() {
    for (expression, selected) in [
        ("/s:port[s:number=10]", vec!["port p10"]),
        ("/s:port[s:name='p10' or s:name=\"p9\"]/s:number", vec!["port p10 number", "port p9 number"]),
        (
            "/s:ecofilter-balancer/s:link/s:lan-port",
            vec!["ecofilter-balancer link link1 lan-port", "ecofilter-balancer link link2 lan-port"],
        ),
        ("//s:buckets", vec!["ecofilter-balancer ecofilter-unit main state buckets"]),
        ("/s:ecofilter-balancer/s:flow[s:match/s:dst-port='179']", vec!["ecofilter-balancer flow bgp"]),
        (
            "/s:ecofilter-balancer/s:flow/s:apply-to-links",
            vec!["ecofilter-balancer flow service-vlan apply-to-links link1"],
        ),
        (
            "/s:port[count(child::*) > 4 and starts-with(s:description, 'bypass 1, segment 1, Mon0')]",
            vec!["port p4-2"],
        ),
        ("/s:port[s:description='s:nothing']", vec![]),
        ("/s:liveness | /s:access", vec!["liveness"]),
        ("/s:liveness/s:*", vec!["liveness profile default"]),
        ("/sluice:liveness".replace("sluice:", "s:").as_str(), vec!["liveness"]),
        ("/liveness", vec!["liveness"]),
    ] {
        assert_eq!(select(expression), selected, "{expression}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_text() {
    let none: [(String, String); 1] = [("x".to_owned(), "urn:other".to_owned())];
    for (expression, named) in [("/s:port", "\"s\""), ("/x:port", "\"x\"")] {
        let error = yang().xpath(EXAMPLE, expression, &none).unwrap_err();
        assert!(matches!(error, XpathError::Prefix { .. }) && error.to_string().contains(named), "{error}");
    }
    for expression in
        ["/port[", "", "count(/port)", "'text'", "/port]", "\0", "/port[$x]", "/port[nothing()]"]
    {
        let error = yang().xpath(EXAMPLE, expression, &[]).unwrap_err();
        assert!(matches!(error, XpathError::Expression { .. }), "{expression}: {error}");
    }
    assert!(matches!(yang().xpath("[]", "/port", &[]), Err(XpathError::Data(_))));
}

#[test]
fn an_expression_may_nest_too_deep_without_harm() {
    for (open, close) in [("(", ")"), ("/port[", "]"), ("-", ""), ("not(", ")")] {
        let deep = format!("{}1{}", open.repeat(50_000), close.repeat(50_000));
        assert!(yang().xpath(EXAMPLE, &deep, &[]).is_err(), "{open}");
    }
}

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!(yang().xpath("{}", "/port", &[]).unwrap(), []);
    assert_eq!(faults(&[]), []);
}
