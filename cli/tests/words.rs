//! Words about the configuration, against the modules that come with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, OnceLock};

use cli::commands::CONFIGURE;
use cli::grammar::{Args, Names, Source, following, list, parse};
use cli::words;
use tree::{Kind, Node, NodeId, Schema, Type};

fn schema() -> Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    Arc::clone(SCHEMA.get_or_init(|| Arc::clone(yang::Yang::load().unwrap().schema())))
}

/// At a level.
struct At(&'static [&'static str]);

impl Names for At {
    fn names(&self, _: Source, _: &Args) -> Vec<String> {
        Vec::new()
    }

    fn schema(&self) -> Option<Arc<Schema>> {
        Some(schema())
    }

    fn level(&self) -> Vec<String> {
        self.0.iter().map(|word| String::from(*word)).collect()
    }

    fn keys(&self, list: &[String], prefix: &str) -> Vec<String> {
        let keys = [format!("{}-1", list.last().unwrap()), "a b".into()];
        keys.into_iter().filter(|key| key.starts_with(prefix)).collect()
    }

    fn values(&self, _: &[String], _: &str) -> Vec<String> {
        vec!["of the leaf-list".into()]
    }
}

fn texts(level: &'static [&'static str], line: &str) -> Vec<String> {
    let found = following(&CONFIGURE, line, &At(level)).unwrap_or_else(|fault| panic!("{line}: {fault}"));
    found.items.into_iter().map(|item| item.text).collect()
}

/// What stands at every node that can be configured, on the way to it as it is typed.
fn visit(parent: Option<NodeId>, line: &str, each: &mut impl FnMut(&Node, &str)) {
    let schema = schema();
    let keys = parent.map(|parent| schema.node(parent).keys()).unwrap_or_default();
    for node in schema.below(parent).filter(|node| node.config && !keys.contains(&node.id)) {
        let mut line = format!("{line} {}", node.name);
        if matches!(node.kind, Kind::Rpc | Kind::Notification) {
            continue;
        }
        each(node, &line);
        line += &" x".repeat(node.keys().len());
        visit(Some(node.id), &line, each);
    }
}

#[test]
fn a_question_mark_lists_every_node_with_what_it_means() {
    let mut count = 0;
    visit(None, "set", &mut |node, line| {
        count += 1;
        let above = line.rsplit_once(' ').unwrap().0;
        let found = following(&CONFIGURE, &format!("{above} "), &At(&[])).unwrap();
        let item = found.items.iter().find(|item| item.text == node.name).unwrap_or_else(|| panic!("{line}"));
        assert!(
            item.help.split_whitespace().count() >= 1 && !item.help.contains('\n'),
            "{line}: {}",
            item.help
        );
        let all = list(&found.items);
        assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
        // And what its value may be, with range, unit, words or a reference.
        if let Some(ty) = node.ty().filter(|ty| **ty != Type::Empty) {
            let found = following(&CONFIGURE, &format!("{line} "), &At(&[])).unwrap();
            let all = list(&found.items);
            assert!(all.lines().count() >= 1, "{line}: nothing");
            if let Type::Integer { ranges, .. } = ty {
                let range = format!("{}..{}", ranges[0].0, ranges[ranges.len() - 1].1);
                assert!(ranges.len() > 1 || all.contains(&range), "{line}: {all}");
            }
            if let Type::Enumeration(words) = ty {
                assert!(
                    words.iter().all(|word| found.items.iter().any(|i| i.text == word.name)),
                    "{line}: {all}"
                );
            }
            if let Kind::Leaf { units: Some(units), .. } = &node.kind {
                assert!(all.replace('\n', " ").contains(units.as_str()), "{line}: {all}");
            }
        }
    });
    assert!(count > 60, "only {count} nodes");
}

#[test]
fn names_and_references_come_from_the_candidate() {
    assert_eq!(texts(&[], "edit port "), ["<name>", "port-1", "a b"]);
    assert_eq!(texts(&[], "edit port port-"), ["<name>", "port-1"]);
    assert_eq!(texts(&["ecofilter-balancer"], "set link x lan-port "), ["<name>", "port-1", "a b"]);
    assert_eq!(
        texts(&["ecofilter-balancer", "ecofilter-unit", "main"], "show pair "),
        ["<name>", "pair-1", "a b", "<Enter>", "|"]
    );
    let values = texts(&[], "del ecofilter-balancer flow x apply-to-links ");
    assert!(values.contains(&"of the leaf-list".into()), "{values:?}");
    // What is shown of what runs begins at the top, whatever the level.
    assert!(texts(&["port", "p1"], "run show configuration ").contains(&"ecofilter-balancer".into()));
}

#[test]
fn a_level_that_is_unknown_is_no_top() {
    let level = [String::from("no-such-level")];
    let command = parse(&CONFIGURE, "set port p1 mtu 1500").unwrap().unwrap();
    let fault = words::changes(&schema(), &level, command.tree.as_ref().unwrap()).unwrap_err();
    assert!(fault.message.contains("no-such-level") && fault.message.contains("top"), "{fault}");
}

#[test]
fn lines_are_in_full_and_quoted() {
    for (line, full) in [
        ("set port \"p1\" desc \"a \\\"b\\\"\"", vec!["set port p1 description \"a \\\"b\\\"\""]),
        ("se po p1 num 007 lan 2", vec!["set port p1 number 7", "set port p1 lane 2"]),
        ("set po p1", vec!["set port p1"]),
        ("delete po p1", vec!["del port p1"]),
        ("del ecof fl x app l1", vec!["del ecofilter-balancer flow x apply-to-links l1"]),
    ] {
        let command = parse(&CONFIGURE, line).unwrap().unwrap();
        assert_eq!(words::changes(&schema(), &[], command.tree.as_ref().unwrap()).unwrap(), full, "{line}");
    }
}

proptest::proptest! {
    /// Words of the tree, half words, values and noise.
    #[test]
    fn no_line_is_too_strange(
        words in proptest::collection::vec(
            "set|del|edit|show|port|ecof|flow|match|ip-proto|apply-to-links|\\[|\\]|6|p1|\\||\"|é|.{0,3}", 0..10),
        blank in "[ \t]?",
    ) {
        let line = words.join(" ") + &blank;
        if let Ok(Some(command)) = parse(&CONFIGURE, &line)
            && let Some(tree) = &command.tree
        {
            for fault in [
                words::changes(&schema(), &[], tree).err(),
                words::place_of(&schema(), &[], tree).err(),
                words::explained(&schema(), &[], tree).err(),
            ].into_iter().flatten() {
                proptest::prop_assert!(fault.caret(&line, 3).contains('^'));
            }
        }
        if let Ok(found) = following(&CONFIGURE, &line, &At(&[])) {
            proptest::prop_assert!(line.is_char_boundary(found.start) && found.start <= line.len());
        }
    }
}
