//! The schema that comes out of the modules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use tree::schema::Schema;
use tree::{Kind, Node, Type};
use yang::Yang;

fn names(schema: &Schema, node: &Node) -> String {
    let mut names = vec![node.name.clone()];
    let mut parent = node.parent;
    while let Some(id) = parent {
        names.push(schema.node(id).name.clone());
        parent = schema.node(id).parent;
    }
    names.reverse();
    names.join(" ")
}

fn leaf_type<'s>(schema: &'s Schema, path: &[&str]) -> &'s Type {
    schema.at(path).and_then(Node::ty).unwrap_or_else(|| panic!("no leaf {path:?}"))
}

#[test]
fn nodes_have_numbers_in_order_and_know_their_parents() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    for (index, node) in schema.nodes.iter().enumerate() {
        assert_eq!(usize::from(node.id.0), index);
        assert!(node.parent.is_none_or(|parent| parent < node.id), "{}", node.name);
        assert!(node.children.iter().all(|child| schema.node(*child).parent == Some(node.id)));
        assert_eq!(schema.module_of(node).name, "sluice");
    }
    let roots: Vec<&str> = schema.below(None).map(|node| node.name.as_str()).collect();
    assert_eq!(
        roots,
        [
            "port",
            "liveness",
            "ecofilter-balancer",
            "snmp",
            "prometheus",
            "logger",
            "access",
            "set-bypass-ecofilter-unit",
            "clear-hold",
            "lookup",
            "rollback",
            "configuration-applied",
            "pair-state-change",
            "unit-state-change",
            "manual-bypass"
        ]
    );
}

#[test]
fn every_node_has_a_line_of_help() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    for node in &schema.nodes {
        if matches!(node.kind, Kind::Input | Kind::Output) {
            continue;
        }
        let help = node.description.lines().next().unwrap_or_default();
        let what = names(schema, node);
        assert!((1..=70).contains(&help.len()) && help.ends_with('.'), "{what}: {help:?}");
        words(node.ty(), &mut |word| {
            let help = &word.description;
            assert!((1..=70).contains(&help.len()) && help.ends_with('.'), "{what} {}: {help:?}", word.name);
        });
    }
}

fn words(ty: Option<&Type>, look: &mut dyn FnMut(&tree::schema::Word)) {
    match ty {
        Some(Type::Enumeration(all)) => all.iter().for_each(look),
        Some(Type::Leafref { ty, .. }) => words(Some(ty), look),
        Some(Type::Union(types)) => types.iter().for_each(|ty| words(Some(ty), look)),
        _ => {}
    }
}

type Ranges = [(i128, i128)];

/// Calls `look` with each number's ranges and message.
fn numbers(ty: &Type, look: &mut dyn FnMut(&Ranges, Option<&str>)) {
    match ty {
        Type::Integer { ranges, message, .. } => look(ranges, message.as_deref()),
        Type::Leafref { ty, .. } => numbers(ty, look),
        Type::Union(types) => types.iter().for_each(|ty| numbers(ty, look)),
        _ => {}
    }
}

#[test]
fn every_number_that_is_set_has_a_range_and_says_it() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    let mut seen = 0;
    for node in schema.nodes.iter().filter(|node| node.config) {
        numbers(node.ty().unwrap_or(&Type::Empty), &mut |ranges, message| {
            seen += 1;
            let what = names(schema, node);
            assert!(
                !ranges.is_empty() && message.is_some_and(|message| message.starts_with("must be ")),
                "{what}"
            );
        });
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn every_rule_has_a_message_and_a_tag() {
    let yang = Yang::load().unwrap();
    let musts: Vec<_> = yang.schema().nodes.iter().flat_map(|node| &node.musts).collect();
    assert!(musts.len() > 20, "{}", musts.len());
    for must in musts {
        assert!(must.message.as_ref().is_some_and(|message| !message.contains('\n')), "{}", must.condition);
        assert!(must.app_tag.is_some(), "{}", must.condition);
    }
}

#[test]
fn types_are_resolved() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    let number = Type::Integer {
        bits: 8,
        signed: false,
        ranges: vec![(1, 65)],
        message: Some("must be 1..65".into()),
    };
    assert_eq!(leaf_type(schema, &["port", "number"]), &number);
    let Type::Enumeration(speeds) = leaf_type(schema, &["port", "speed"]) else { panic!("no enumeration") };
    assert_eq!(speeds[4].name, "100g");
    assert_eq!(speeds[4].description, "100 Gbit/s, four lanes.");
    let Type::Integer { ranges, .. } =
        leaf_type(schema, &["ecofilter-balancer", "ecofilter-unit", "buckets"])
    else {
        panic!("no number");
    };
    assert_eq!((ranges.len(), ranges[6]), (7, (65536, 65536)));
    let Type::Leafref { target, ty, require_instance: true, .. } =
        leaf_type(schema, &["ecofilter-balancer", "ecofilter-unit", "pair", "lan-port"])
    else {
        panic!("no leafref");
    };
    assert_eq!(names(schema, schema.node(*target)), "port name");
    let Type::String { lengths, patterns, .. } = &**ty else { panic!("no text") };
    assert_eq!((lengths.as_slice(), patterns[0].regex.as_str()), ([(1, 63)].as_slice(), r"[A-Za-z0-9_.\-]*"));
    let Type::Leafref { target, .. } = leaf_type(schema, &["clear-hold", "input", "pair"]) else {
        panic!("no leafref")
    };
    assert_eq!(names(schema, schema.node(*target)), "ecofilter-balancer ecofilter-unit pair name");
    let Type::Union(tpid) = leaf_type(schema, &["ecofilter-balancer", "steering-header", "tpid"]) else {
        panic!("no union");
    };
    assert_eq!(tpid.len(), 2);
    let share =
        leaf_type(schema, &["ecofilter-balancer", "ecofilter-unit", "pair", "state", "share-percent"]);
    assert_eq!(share, &Type::Decimal { fraction_digits: 2, ranges: vec![(0, 10_000)] });
}

#[test]
fn lists_have_their_keys_orders_and_bounds() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    let list = |path: &[&str]| {
        let node = schema.at(path).unwrap();
        let Kind::List { keys, ordered_by_user, max, .. } = &node.kind else { panic!("{path:?}") };
        let keys: Vec<&str> = keys.iter().map(|key| schema.node(*key).name.as_str()).collect();
        (keys, *ordered_by_user, *max, node.config)
    };
    assert_eq!(list(&["port"]), (vec!["name"], false, Some(260), true));
    assert_eq!(list(&["ecofilter-balancer", "link"]), (vec!["name"], true, Some(256), true));
    assert_eq!(
        list(&["ecofilter-balancer", "link", "state", "verdicts"]),
        (vec!["verdict", "reason"], true, None, false)
    );
    assert_eq!(
        list(&["ecofilter-balancer", "ecofilter-unit", "pair"]),
        (vec!["name"], false, Some(512), true)
    );
}

#[test]
fn defaults_units_and_mandatory_are_there() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    let leaf = |path: &[&str]| match &schema.at(path).unwrap().kind {
        Kind::Leaf { default, mandatory, units, .. } => (default.as_deref(), *mandatory, units.as_deref()),
        other => panic!("{other:?}"),
    };
    assert_eq!(leaf(&["port", "mtu"]), (Some("9000"), false, Some("octets")));
    assert_eq!(leaf(&["port", "number"]), (None, true, None));
    assert_eq!(leaf(&["liveness", "profile", "interval"]), (Some("100"), false, Some("milliseconds")));
    let listen = schema.at(&["access", "netconf", "listen-address"]).unwrap();
    assert!(matches!(&listen.kind, Kind::LeafList { defaults, .. } if defaults == &["127.0.0.1"]));
}

#[test]
fn an_rpc_has_its_input_and_its_output() {
    let yang = Yang::load().unwrap();
    let schema = yang.schema();
    for rpc in schema.below(None).filter(|node| node.kind == Kind::Rpc) {
        let below: Vec<&Kind> = schema.below(Some(rpc.id)).map(|node| &node.kind).collect();
        assert_eq!(below, [&Kind::Input, &Kind::Output], "{}", rpc.name);
        assert!(!rpc.config);
    }
    assert!(schema.at(&["lookup", "output", "out-port"]).is_some());
}

#[test]
fn the_schema_survives_json() {
    let yang = Yang::load().unwrap();
    let text = serde_json::to_string(&**yang.schema()).unwrap();
    assert_eq!(serde_json::from_str::<Schema>(&text).unwrap(), **yang.schema());
}

#[test]
fn texts_are_of_the_modules_that_are_loaded() {
    let yang = Yang::load().unwrap();
    for module in &yang.schema().modules {
        let text = yang::MODULES.iter().find(|text| text.name == module.name).unwrap();
        assert_eq!(Some(text.revision), module.revision.as_deref());
        assert_eq!(text.namespace, module.namespace);
    }
    for text in yang::MODULES {
        assert!(text.text.starts_with(&format!("module {} {{", text.name)));
        assert!(text.text.contains(&format!("namespace \"{}\";", text.namespace)));
        assert!(text.text.contains(&format!("revision {} {{", text.revision)));
    }
}
