//! JSON, read and written.

mod support;

use proptest::prelude::*;
use serde_json::json;
use support::{grown, keeps_its_rules, node, path, schema, tree};
use tree::{Defaults, FaultKind, Path, Tree, json as rfc7951};

fn read(value: &serde_json::Value) -> Tree {
    let tree = rfc7951::read(&schema(), &value.to_string()).unwrap();
    keeps_its_rules(&tree);
    tree
}

fn faults(text: &str) -> Vec<String> {
    let faults = rfc7951::read(&schema(), text).unwrap_err();
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

#[test]
fn names_have_their_module_where_it_changes() {
    let tree = tree("set port p1 number 1 colour red optics power 1.50\nset hostname h\nset server [ x a ]");
    let expected = json!({
        "sluice:port": [{"name": "p1", "number": 1, "extra:colour": "red", "extra:optics": {"power": "1.5"}}],
        "extra:hostname": "h",
        "extra:server": ["a", "x"],
    });
    assert_eq!(rfc7951::value(&tree, &Path::default()), expected);
    assert_eq!(read(&expected), tree);
}

#[test]
fn values_by_their_types() {
    let value = json!({
        "sluice:port": [{"name": "p1", "state": {"up": true, "octets": "9223372036854775808"}}],
        "sluice:ecofilter-balancer": {"flow": [{
            "name": "f", "apply-to-links": ["b", "a"], "match": {"src-port": 7, "dst-port": "1-2"}, "copy": [null]
        }]},
        "sluice:route": [{
            "prefix": "", "table": "main", "hop": ["z", "a"], "tag": [-5, 10, 9], "blackhole": {},
            "secret": "AQ==", "flags": "a c", "kind": "extra:learned"
        }, {"prefix": "", "table": 7}],
        "sluice:event": [{"what": "x", "seen": [3, 3]}, {"what": "x"}],
    });
    let written = rfc7951::value(&read(&value), &Path::default());
    let mut expected = value;
    expected["sluice:ecofilter-balancer"]["flow"][0]["apply-to-links"] = json!(["a", "b"]);
    expected["sluice:route"][0]["tag"] = json!([-5, 9, 10]);
    expected["sluice:route"].as_array_mut().unwrap().reverse();
    assert_eq!(written, expected);
}

#[test]
fn what_people_write_is_taken() {
    let tree = read(&json!({
        "port": [{"name": "p1", "number": "07", "state": {"octets": 5}}],
        "ecofilter-balancer": {"steering-header": {}, "flow": [
            {"name": "f", "copy": true}, {"name": "g", "copy": false, "sluice:action": "drop"}
        ]},
    }));
    let expected = json!({
        "sluice:port": [{"name": "p1", "number": 7, "state": {"octets": "5"}}],
        "sluice:ecofilter-balancer": {"flow": [{"name": "f", "copy": [null]}, {"name": "g", "action": "drop"}]},
    });
    assert_eq!(rfc7951::value(&tree, &Path::default()), expected);
}

#[test]
fn entries_stand_in_natural_order_or_the_users() {
    let tree = read(&json!({
        "sluice:port": [{"name": "p10"}, {"name": "p9"}, {"name": "p1-2"}],
        "sluice:ecofilter-balancer": {"link": [{"name": "l2"}, {"name": "l10"}, {"name": "l1"}]},
    }));
    let names = |list: &str| -> Vec<String> {
        tree.entries(&path(list)).map(|(keys, _)| keys[0].to_string()).collect()
    };
    assert_eq!(names("port"), ["p1-2", "p9", "p10"]);
    assert_eq!(names("ecofilter-balancer link"), ["l2", "l10", "l1"]);
}

#[test]
fn faults_are_in_the_engineers_words() {
    let check = |value: serde_json::Value, said: &[&str]| assert_eq!(faults(&value.to_string()), said);
    check(
        json!({"sluice:ecofilter-balancer": {"link": [{"name": "link1", "lan-port": "p 1"}]}}),
        &[
            "ecofilter-balancer link link1 lan-port: must be name of a port: must match [a-zA-Z0-9\\-_.]* (got \"p 1\")",
        ],
    );
    check(
        json!({"port": [{"name": "p1", "number": 70, "speed": "1g", "lane": 1.5}]}),
        &[
            "port p1 number: must be 1..65 (got 70)",
            "port p1 speed: must be one of 10g, 25g, 40g, 100g (got 1g)",
            "port p1 lane: must be 0..3 (got 1.5)",
        ],
    );
    check(
        json!({"port": [{"name": "p1", "nmber": 1}], "sluice:hostname": "x"}),
        &[
            "port p1 nmber: is not known; known here: colour, description, lane, mtu, name, number, optics, speed, state",
            "sluice:hostname: is not known; known here: ecofilter-balancer, event, hostname, lookup, port, route, \
             server, unit-state-change",
        ],
    );
    check(json!({"port": {"name": "p1"}}), &["port: must be a list, in [ ] (got an object)"]);
    check(json!({"port": ["p1"]}), &["port: entry 1 must be an object, in { } (got p1)"]);
    check(json!({"ecofilter-balancer": []}), &["ecofilter-balancer: must be an object, in { } (got a list)"]);
    check(json!({"server": "a"}), &["server: must be a list, in [ ] (got a)"]);
    check(json!({"server": ["a", "a"]}), &["server: has a twice"]);
    check(json!({"hostname": ["a"]}), &["hostname: must be text (got a list)"]);
    check(json!({"hostname": null}), &["hostname: must be text (got null)"]);
    check(json!([]), &["must be an object (got a list)"]);
    check(
        json!({"port": [{"number": 1}, {"name": "p1"}, {"name": "p1"}, {"name": ""}]}),
        &[
            "port: entry 1 lacks its key name",
            "port p1: is given twice",
            "port: name of entry 4 must have 1..63 characters (got nothing)",
        ],
    );
    check(
        json!({"ecofilter-balancer": {"flow": [{"name": "f", "copy": "yes", "match": {"src-port": "0x10"}}]}}),
        &[
            "ecofilter-balancer flow f copy: must be [null] (got yes)",
            "ecofilter-balancer flow f match src-port: must be 0..65535 or text that matches [0-9]+-[0-9]+ or any \
             (got 0x10)",
        ],
    );
    assert_eq!(
        faults(r#"{"hostname": "a", "extra:hostname": "b", "port": [{"name": "p1", "name": "p2"}]}"#),
        ["hostname: is given twice", "port p1 name: is given twice"]
    );
    assert!(faults("{\n \"port\": [}")[0].starts_with("is no JSON: "));
    assert!(faults("{} x")[0].contains("line 1 column 4"));
}

#[test]
fn faults_say_of_what_kind_and_where() {
    let faults =
        rfc7951::read(&schema(), r#"{"port": [{"name": "p1", "number": 70, "x": 1}, {}]}"#).unwrap_err();
    let kinds: Vec<FaultKind> = faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::Value, FaultKind::Unknown, FaultKind::Missing]);
    assert_eq!(faults[1].path, path("port p1"));
}

#[test]
fn no_more_than_twenty_faults() {
    let ports: Vec<_> = (0..100).map(|n| json!({"name": format!("p{n}"), "number": 99})).collect();
    assert_eq!(faults(&json!({"port": ports, "x": 1}).to_string()).len(), 20);
}

#[test]
fn nesting_has_an_end() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(faults(&deep(64))[0].starts_with("must be an object"));
    for text in [deep(65), "[".repeat(2_000_000), "{\"a\":".repeat(2_000_000)] {
        assert!(faults(&text)[0].contains("nested deeper than 64 levels"), "{}", faults(&text)[0]);
    }
}

#[test]
fn part_of_a_tree() {
    let whole =
        tree("set port p1 number 1 lane 2\nset port p2\nset ecof flow f apply [ a b ] match ip-proto 6");
    let value = |words: &str| rfc7951::value(&whole, &path(words));
    assert_eq!(value("port p1"), json!({"name": "p1", "number": 1, "lane": 2}));
    assert_eq!(value("port p1 number"), json!(1));
    assert_eq!(value("ecof flow f apply"), json!(["a", "b"]));
    assert_eq!(value("ecof flow f match"), json!({"ip-proto": 6}));
    assert_eq!(value("ecof flow g"), json!(null));
    for words in ["port", "port p1", "port p1 number", "ecof flow f apply", "ecof flow f match", "ecof"] {
        let at = path(words);
        let part = rfc7951::read_at(&schema(), &at, &rfc7951::value(&whole, &at)).unwrap();
        assert_eq!(rfc7951::value(&part, &at), value(words), "{words}");
        // Nothing but the part, and the entries that it is in.
        keeps_its_rules(&part);
        let mut again = whole.clone();
        again.overlay(&part);
        assert_eq!(again, whole);
        assert_eq!(whole.only(&at), part, "{words}");
    }
    let fault = &rfc7951::read_at(&schema(), &path("port p1"), &json!({"name": "p2"})).unwrap_err()[0];
    assert_eq!(fault.to_string(), "port p1 name: must be p1, as its entry (got p2)");
}

#[test]
fn what_a_call_is_given() {
    let input = Path::default().child(node("lookup")).child(node("lookup input"));
    let given = rfc7951::read_at(&schema(), &input, &json!({"src": "1.2.3.4", "link": "l"})).unwrap();
    assert_eq!(given.value(&input.child(node("lookup input src"))), Some("1.2.3.4"));
    assert_eq!(
        rfc7951::value_with(&given, &input, Defaults::All),
        json!({"src": "1.2.3.4", "proto": 6, "link": "l"})
    );
    let fault = &rfc7951::read_at(&schema(), &input, &json!({"proto": "x"})).unwrap_err()[0];
    assert_eq!(fault.to_string(), "lookup proto: must be 0..255 (got x)");
}

#[test]
fn state_is_told_from_configuration() {
    let all = read(&json!({
        "port": [{"name": "p1", "number": 1, "state": {"up": true}}], "event": [{"what": "x"}]
    }));
    assert_eq!(all.state().unwrap().words(&schema()), "port p1 state");
    let configuration = all.configuration();
    assert_eq!(configuration, tree("set port p1 number 1"));
    assert_eq!(configuration.state(), None);
}

#[test]
fn defaults() {
    let tree = tree("set port p1 lane 0 mtu 1500\nset server [ a b ]\nset ecof steering-header mode native");
    let with = |defaults| rfc7951::value_with(&tree, &Path::default(), defaults);
    assert_eq!(with(Defaults::Trim), json!({"sluice:port": [{"name": "p1", "mtu": 1500}]}));
    let all = json!({
        "sluice:port": [{"name": "p1", "lane": 0, "mtu": 1500}],
        // `base-vid` depends on the mode, and is not for this page to say.
        "sluice:ecofilter-balancer": {"balancing-method": "layer-3", "steering-header": {"mode": "native"}},
        "extra:server": ["a", "b"],
    });
    assert_eq!(with(Defaults::All), all);
    let empty = rfc7951::value_with(&Tree::new(schema()), &Path::default(), Defaults::All);
    assert_eq!(
        empty,
        json!({
            "sluice:ecofilter-balancer": {"balancing-method": "layer-3", "steering-header": {"mode": "native"}},
            "extra:server": ["a", "b"],
        })
    );
}

proptest! {
    #[test]
    fn json_makes_the_same_tree_again(numbers in prop::collection::vec(any::<u64>(), 0..60)) {
        let tree = grown(&numbers, false);
        keeps_its_rules(&tree);
        let text = rfc7951::write(&tree, &Path::default(), Defaults::Explicit);
        let again = rfc7951::read(&schema(), &text);
        prop_assert!(again.is_ok(), "{}: {:?}", text, again);
        prop_assert_eq!(again.unwrap(), tree);
    }

    #[test]
    fn trimming_takes_away_what_filling_adds(numbers in prop::collection::vec(any::<u64>(), 0..40)) {
        let tree = grown(&numbers, false);
        let all = rfc7951::write(&tree, &Path::default(), Defaults::All);
        let all = rfc7951::read(&schema(), &all).unwrap();
        prop_assert_eq!(all.without_defaults(), tree.without_defaults());
    }

    #[test]
    fn any_text_is_a_tree_or_a_fault(text in "(\\{|\\}|\\[|\\]|,|:|null|true|1|\"port\"|\"name\"|\"a\"|\"match\"){0,30}") {
        if let Ok(tree) = rfc7951::read(&schema(), &text) {
            keeps_its_rules(&tree);
        }
    }
}

/// JSON of the right names and any shape.
fn shapes() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!([null])),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        "\\PC{0,4}".prop_map(|s| json!(s)),
    ];
    let names = prop::sample::select(vec![
        "port",
        "sluice:port",
        "name",
        "number",
        "state",
        "ecofilter-balancer",
        "flow",
        "match",
        "copy",
        "event",
        "server",
        "apply-to-links",
        "lookup",
        "input",
        "route",
        "prefix",
        "table",
        "extra:colour",
        "x",
    ]);
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map(names.clone(), inner, 0..5).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_a_tree_or_faults(value in shapes()) {
        match rfc7951::read(&schema(), &value.to_string()) {
            Ok(tree) => keeps_its_rules(&tree),
            Err(faults) => prop_assert!(!faults.is_empty() && faults.len() <= 20),
        }
        for words in ["port", "port p1", "ecof flow f match", "server"] {
            let at = path(words);
            if let Ok(tree) = rfc7951::read_at(&schema(), &at, &value) {
                keeps_its_rules(&tree);
            }
        }
    }
}
