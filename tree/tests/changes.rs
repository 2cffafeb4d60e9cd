//! Edits, differences and merges.

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use support::{changed, grown, keeps_its_rules, node, path, schema, tree};
use tree::{Content, Data, Edit, EditFault, Keys, Path, Place, Tree, compare_lines, diff, merge, set_lines};

fn keys(keys: &[&str]) -> Keys {
    keys.iter().map(|key| (*key).into()).collect()
}

fn lines(tree: &Tree) -> String {
    set_lines::write(tree, &Path::default())
}

fn edited(before: &str, line: &str) -> Tree {
    let mut tree = tree(before);
    set_lines::read(&mut tree, line).unwrap();
    tree
}

#[test]
fn edits_keep_types_and_say_what_is_wrong() {
    let mut tree = tree("set port p1 number 1");
    let at = |words: &str| path(words);
    assert_eq!(tree.set(&at("port p1 number"), Some("007")), Ok(true));
    assert_eq!(tree.value(&at("port p1 number")), Some("7"));
    assert_eq!(tree.set(&at("port p1 number"), Some("7")), Ok(false));
    let before = tree.clone();
    let mut fails = |path: Path, value: Option<&str>, said: &str| {
        assert_eq!(tree.set(&path, value).unwrap_err().to_string(), said);
        assert_eq!(tree, before);
    };
    fails(at("port p1 number"), Some("70"), "port p1 number: must be 1..65 (got 70)");
    fails(at("port p1 number"), None, "port p1 number: needs a value: 1..65");
    fails(at("port p1"), Some("x"), "port p1: takes no value (got x)");
    fails(at("port"), None, "port: needs a value: name");
    fails(Path::default(), None, ": is the whole tree");
    let name = at("port p1").child(node("port name"));
    fails(
        name.clone(),
        Some("p2"),
        "port p1 name: is a key of its entry and stays p1; make another entry instead",
    );
    fails(
        Path::default().entry(node("port"), ["a b"]),
        None,
        "port \"a b\": must match [a-zA-Z0-9\\-_.]* (got \"a b\")",
    );
    fails(Path::default().entry(node("route"), ["a", "07"]), None, "route a 07: must be written 7 (got 07)");
    fails(Path::default().entry(node("route"), ["a"]), None, "route a: needs 2 keys (got 1)");
    fails(Path::default().child(node("port number")), Some("1"), ": node 2 of the schema is not below it");
    fails(Path::default().child(tree::NodeId(u16::MAX)), None, ": node 65535 of the schema is not below it");
    let key = tree.apply(&Edit::Delete(name.clone())).unwrap_err();
    assert!(matches!(key, EditFault::Key { .. }));
    assert!(!tree.remove(&name));
    assert!(!tree.remove(&at("port p2")));
    assert!(tree.remove(&Path::default()));
    assert!(tree.is_empty());
}

#[test]
fn containers_are_there_where_they_hold_something() {
    let mut tree = tree("set ecof flow f match ip-proto 6");
    assert_eq!(tree.set(&path("ecof steering-header"), None), Ok(false));
    assert!(!tree.contains(&path("ecof steering-header")));
    assert!(tree.remove(&path("ecof flow f match ip-proto")));
    assert!(!tree.contains(&path("ecof flow f match")));
    assert!(tree.remove(&path("ecof flow f")));
    assert!(tree.is_empty());
    // But an entry that is on the way is made.
    assert_eq!(tree.set(&path("ecof flow g match"), None), Ok(true));
    assert_eq!(lines(&tree), "set ecofilter-balancer flow g\n");
    tree.set(&path("route r 1 blackhole why"), Some("x")).unwrap();
    tree.remove(&path("route r 1 blackhole why"));
    assert!(
        matches!(tree.get(&path("route r 1 blackhole")), Some(Data::Fields(fields)) if fields.is_empty())
    );
}

#[test]
fn the_users_order() {
    let mut tree = tree("set ecof link a\nset ecof link b\nset ecof link c\nset route r 1 hop [ x y z ]");
    let list = path("ecof link");
    let names = |tree: &Tree| -> String { tree.entries(&list).map(|(keys, _)| keys.concat()).collect() };
    let mut place = |name: &str, place: Place, order: &str| {
        let edit =
            Edit::Place(path("ecofilter-balancer").entry(node("ecofilter-balancer link"), [name]), place);
        let changed = tree.apply(&edit);
        assert_eq!(names(&tree), order);
        changed
    };
    assert_eq!(place("c", Place::First, "cab"), Ok(true));
    assert_eq!(place("c", Place::First, "cab"), Ok(false));
    assert_eq!(place("c", Place::After(keys(&["a"])), "acb"), Ok(true));
    assert_eq!(place("b", Place::Before(keys(&["c"])), "abc"), Ok(true));
    assert_eq!(place("a", Place::Last, "bca"), Ok(true));
    let said = place("a", Place::After(keys(&["q"])), "bca").unwrap_err().to_string();
    assert_eq!(said, "ecofilter-balancer link a: cannot stand beside link q, which is not there");
    assert!(place("q", Place::Last, "bca").is_err());
    tree.apply(&Edit::Place(path("route r 1").value(node("route hop"), "z"), Place::First)).unwrap();
    assert!(lines(&tree).contains("hop [ z x y ]"));
    let said = tree.apply(&Edit::Place(path("route r 1"), Place::First)).unwrap_err().to_string();
    assert_eq!(said, "route r 1: the order here is that of the names, not the user's");
}

#[test]
fn paths_as_instance_identifiers() {
    let check = |path: Path, text: &str| {
        assert_eq!(path.xpath(&schema()), text);
        assert_eq!(Path::parse(&schema(), text), Ok(path));
    };
    check(Path::default(), "/");
    check(path("ecof flow bgp"), "/sl:ecofilter-balancer/sl:flow[sl:name='bgp']");
    check(path("port p1 optics power"), "/sl:port[sl:name='p1']/ex:optics/ex:power");
    check(
        path("ecof flow f").value(node("ecofilter-balancer flow apply-to-links"), "a"),
        "/sl:ecofilter-balancer/sl:flow[sl:name='f']/sl:apply-to-links[.='a']",
    );
    let route = |prefix: &str| Path::default().entry(node("route"), [prefix, "main"]);
    check(route("it's"), "/sl:route[sl:prefix=\"it's\"][sl:table='main']");
    check(
        route("\"]/["),
        "/sl:route[sl:prefix='\"]/[']['sl:table'".replace("['sl:table'", "[sl:table='main']").as_str(),
    );
    check(route("'\"'"), "/sl:route[sl:prefix=concat('',\"'\",'\"',\"'\",'')][sl:table='main']");
    check(Path::default().entry(node("event"), ["3"]), "/sl:event[3]");
    let input =
        Path::default().child(node("lookup")).child(node("lookup input")).child(node("lookup input src"));
    check(input.clone(), "/sl:lookup/sl:src");
    assert_eq!(Path::parse(&schema(), "/sluice:lookup/input/src"), Ok(input));
    // As libyang has them, keys in any order, with blanks.
    assert_eq!(
        Path::parse(&schema(), "/sluice:route[ table = '007' ][prefix=\"a\"]/blackhole"),
        Ok(path("route a 7 blackhole"))
    );
    for (text, said) in [
        ("port", "expected / before port"),
        ("/port[name='p1'", "expected ] before nothing"),
        ("/port[name='p1]", "a quote has no end"),
        ("/port[nme='p1']", "nme is no key of port; its keys: name"),
        ("/port[name='p1'][name='p1']", "name is given twice"),
        ("/route[prefix='a']", "route lacks its key table"),
        ("/event[0]", "expected a position after event[, not 0"),
        ("/hostname[.='x']", "nothing in brackets may follow hostname"),
        ("/sl:hostname", "there is no hostname; known here: port"),
        ("/port[name='a b']", "port name must match"),
        ("/", ""),
        ("//", "expected a name after /"),
        ("", "expected a path"),
    ] {
        match Path::parse(&schema(), text) {
            Ok(path) => assert!(said.is_empty() && path.is_empty(), "{text}"),
            Err(fault) => assert!(fault.reason.starts_with(said), "{text}: {fault}"),
        }
    }
}

#[test]
fn paths_within_paths() {
    assert!(path("port p1 number").is_within(&path("port p1")));
    assert!(path("port p1").is_within(&path("port")));
    assert!(path("port p1").is_within(&path("port p1")));
    assert!(path("port p1").is_within(&Path::default()));
    assert!(!path("port").is_within(&path("port p1")));
    assert!(!path("port p2 number").is_within(&path("port p1")));
    assert_eq!(
        path("ecof flow bgp match ip-proto").words(&schema()),
        "ecofilter-balancer flow bgp match ip-proto"
    );
    let spaced = Path::default().entry(node("route"), ["a b", "main"]);
    assert_eq!(spaced.words(&schema()), "route \"a b\" main");
    assert_eq!(spaced.to_words(&schema()), ["route", "a b", "main"]);
}

#[test]
fn differences_as_lines() {
    let before = tree(
        "set port p1 number 1\nset port p2 number 2 lane 1\nset ecof link a\nset ecof link b\n\
         set ecof flow f match ip-proto 6 copy\nset ecof flow f apply [ a b ]\nset route r 1 blackhole",
    );
    let mut after = before.clone();
    set_lines::read(
        &mut after,
        "set port p1 number 3\ndel port p2\nset port p10\nset port p9 lane 1 number 9\ndel ecof flow f copy\n\
         del ecof flow f apply b\nset ecof flow f apply c\ndel ecof link a\nset ecof link a\ndel route r 1 blackhole",
    )
    .unwrap();
    assert_eq!(
        compare_lines(&before, &after),
        [
            "- set port p2 number 2",
            "- set port p2 lane 1",
            "- set port p1 number 1",
            "+ set port p1 number 3",
            "+ set port p9 number 9",
            "+ set port p9 lane 1",
            "+ set port p10",
            "~ ecofilter-balancer link: order b, a",
            "- set ecofilter-balancer flow f apply-to-links b",
            "+ set ecofilter-balancer flow f apply-to-links c",
            "- set ecofilter-balancer flow f copy",
            "- set route r 1 blackhole",
        ]
    );
    assert!(compare_lines(&after, &after.clone()).is_empty());
}

#[test]
fn a_difference_names_nodes_and_values() {
    let before = tree("set port p1 number 1\nset ecof link a\nset ecof link b");
    let after =
        edited(&lines(&before), "set port p1 number 2\nset port p2\ndel ecof link a\nset ecof link a");
    let changes = diff(&before, &after);
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.path.words(&schema()), change.before.clone(), change.after.clone()))
        .collect();
    let value = |text: &str| Some(Content::Value(text.into()));
    let order = |names: &[&str]| Some(Content::Order(names.iter().map(|name| keys(&[name])).collect()));
    assert_eq!(
        told,
        [
            ("port p1 number".into(), value("1"), value("2")),
            ("port p2".into(), None, Some(Content::There)),
            ("ecofilter-balancer link".into(), order(&["a", "b"]), order(&["b", "a"])),
        ]
    );
    assert_eq!(changes[1].edit(), Some(Edit::Set(path("port p2"), None)));
}

const BASE: &str = "set port p1 number 1 lane 1\nset port p2 number 2\nset ecof flow f match ip-proto 6 priority 5\n\
                    set ecof link a\nset ecof link b\nset ecof link c\nset route r 1 tag [ 1 2 3 ]\n\
                    set ecof steering-header mode native";

fn merged(mine: &str, theirs: &str) -> Result<Tree, Vec<String>> {
    merge(&tree(BASE), &edited(BASE, mine), &edited(BASE, theirs))
        .map_err(|conflicts| conflicts.iter().map(ToString::to_string).collect())
}

#[test]
fn changes_of_different_things_merge() {
    let both = |mine: &str, theirs: &str| {
        assert_eq!(merged(mine, theirs), Ok(edited(BASE, &format!("{theirs}\n{mine}"))), "{mine} | {theirs}");
    };
    both("set port p1 number 9", "set port p1 lane 2");
    both("set port p3", "set port p4 number 4");
    both("del port p1", "del port p2");
    both("set port p1 number 9", "set port p1 number 9");
    both("del port p1", "del port p1");
    both("set port p3 number 3", "set port p3 lane 3");
    both("set route r 1 tag 4\ndel route r 1 tag 1", "del route r 1 tag 2\nset route r 1 tag 4");
    both("del ecof flow f match ip-proto", "set ecof flow f priority 6");
    both("set route r 1 hop a", "set route r 1 blackhole");
    both("", "del ecofilter-balancer");
    both("del route r 1 tag", "del route r 1 tag 1");
}

#[test]
fn changes_of_the_same_thing_conflict() {
    let conflict = |mine: &str, theirs: &str, said: &str| {
        assert_eq!(merged(mine, theirs), Err(vec![said.to_owned()]), "{mine} | {theirs}");
    };
    conflict(
        "set port p1 number 8",
        "set port p1 number 9",
        "port p1 number: was 1, is 8 here, but meanwhile 9",
    );
    conflict(
        "del port p1 number",
        "set port p1 number 9",
        "port p1 number: was 1, is not there here, but meanwhile 9",
    );
    conflict(
        "del port p1",
        "set port p1 number 9",
        "port p1: was there, is not there here, but meanwhile changed",
    );
    conflict(
        "set port p1 mtu 64",
        "del port p1",
        "port p1: was there, is changed here, but meanwhile not there",
    );
    conflict(
        "set port p3 lane 1",
        "set port p3 lane 2",
        "port p3 lane: was not there, is 1 here, but meanwhile 2",
    );
    conflict(
        "del ecof steering-header",
        "set ecof steering-header base-vid 7",
        "ecofilter-balancer steering-header: was there, is not there here, but meanwhile changed",
    );
    assert_eq!(
        merged("del port p1\nset port p2 number 3", "set port p1 lane 3\ndel port p2").unwrap_err().len(),
        2
    );
}

#[test]
fn the_users_order_merges_where_one_side_changed_it() {
    let mut base = tree(BASE);
    let link = node("ecofilter-balancer link");
    let at = |name: &str| path("ecofilter-balancer").entry(link, [name]);
    let moved = |base: &Tree, name: &str, place: Place| {
        let mut tree = base.clone();
        tree.apply(&Edit::Place(at(name), place)).unwrap();
        tree
    };
    let names =
        |tree: &Tree| -> String { tree.entries(&path("ecof link")).map(|(keys, _)| keys.concat()).collect() };
    let first = moved(&base, "c", Place::First);
    let mut more = base.clone();
    set_lines::read(&mut more, "set ecof link d lan-port p1\ndel ecof link b").unwrap();
    assert_eq!(merge(&base, &first, &more).map(|tree| names(&tree)), Ok("cda".into()));
    assert_eq!(merge(&base, &more, &first).map(|tree| names(&tree)), Ok("cda".into()));
    let last = moved(&base, "a", Place::Last);
    let conflicts = merge(&base, &first, &last).unwrap_err();
    assert_eq!(
        conflicts[0].to_string(),
        "ecofilter-balancer link: was \"a, b, c\", is \"c, a, b\" here, but meanwhile \"b, c, a\""
    );
    base = moved(&base, "c", Place::First);
    assert_eq!(names(&base), "cab");
}

proptest! {
    #[test]
    fn a_difference_makes_one_tree_the_other(
        first in prop::collection::vec(any::<u64>(), 0..40),
        more in prop::collection::vec(any::<u64>(), 0..30),
    ) {
        let before = grown(&first, true);
        let after = changed(&before, &more, true);
        let mut again = before.clone();
        for change in diff(&before, &after) {
            prop_assert_ne!(&change.before, &change.after);
            change.apply(&mut again).unwrap();
        }
        prop_assert_eq!(&again, &after);
        keeps_its_rules(&again);
        prop_assert_eq!(diff(&before, &after).is_empty(), before == after);
        prop_assert_eq!(compare_lines(&before, &after).is_empty(), before == after);
    }

    #[test]
    fn differences_of_unrelated_trees(
        first in prop::collection::vec(any::<u64>(), 0..40),
        other in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        let (before, after) = (grown(&first, true), grown(&other, true));
        let mut again = before.clone();
        diff(&before, &after).iter().for_each(|change| change.apply(&mut again).unwrap());
        prop_assert_eq!(again, after);
    }

    #[test]
    fn merges_keep_their_laws(
        first in prop::collection::vec(any::<u64>(), 0..30),
        mine in prop::collection::vec(any::<u64>(), 0..6),
        theirs in prop::collection::vec(any::<u64>(), 0..6),
    ) {
        let base = grown(&first, true);
        let (mine, theirs) = (changed(&base, &mine, true), changed(&base, &theirs, true));
        prop_assert_eq!(&merge(&base, &base, &theirs).unwrap(), &theirs);
        prop_assert_eq!(&merge(&base, &mine, &base).unwrap(), &mine);
        prop_assert_eq!(&merge(&base, &mine, &mine).unwrap(), &mine);
        let (one, other) = (merge(&base, &mine, &theirs), merge(&base, &theirs, &mine));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        match (one, other) {
            (Ok(one), Ok(other)) => {
                keeps_its_rules(&one);
                // Alike but for the order of what both added.
                let sorted = |tree: &Tree| {
                    let mut lines: Vec<String> = compare_lines(&Tree::new(schema()), tree);
                    lines.sort();
                    lines.retain(|line| !line.contains(" hop "));
                    lines
                };
                prop_assert_eq!(sorted(&one), sorted(&other));
                // What neither changed is as it was, and no change is lost.
                for change in diff(&base, &mine) {
                    if !matches!(change.after, Some(Content::Order(_))) {
                        prop_assert_eq!(one.value(&change.path), mine.value(&change.path));
                        prop_assert_eq!(one.contains(&change.path), mine.contains(&change.path));
                    }
                }
            }
            (Err(one), Err(other)) => prop_assert_eq!(one.len(), other.len()),
            _ => {}
        }
    }

    #[test]
    fn instance_identifiers_lead_back(prefix in "(?s)[^\\p{C}]{0,8}", name in "[a-z]{1,3}") {
        for path in [
            Path::default().entry(node("route"), [prefix.as_str(), "1"]),
            Path::default().entry(node("port"), [name.as_str()]).child(node("port optics")),
        ] {
            prop_assert_eq!(Path::parse(&schema(), &path.xpath(&schema())), Ok(path));
        }
    }

    #[test]
    fn any_text_is_a_path_or_a_fault(text in "(/|port|route|sl:|\\[|\\]|name|=|'|\"|concat\\(|\\)|,|1|\\.|event|lookup|src| ){0,16}") {
        if let Ok(path) = Path::parse(&schema(), &text) {
            prop_assert_eq!(Path::parse(&schema(), &path.xpath(&schema())), Ok(path));
        }
    }

    #[test]
    fn laying_over_adds_and_replaces(
        first in prop::collection::vec(any::<u64>(), 0..30),
        other in prop::collection::vec(any::<u64>(), 0..30),
    ) {
        let (below, above) = (grown(&first, true), grown(&other, true));
        let mut both = below.clone();
        both.overlay(&above);
        keeps_its_rules(&both);
        // Whatever the upper has is there, and what only the lower has.
        for change in diff(&both, &above) {
            prop_assert!(!matches!(change.after, Some(Content::There | Content::Value(_))), "{:?}", change);
        }
        for change in diff(&both, &below) {
            prop_assert!(!matches!(change.after, Some(Content::There)), "{:?}", change);
        }
    }
}

#[test]
fn a_hundred_thousand_entries_share_what_is_not_changed() {
    let flow = node("ecofilter-balancer flow");
    let priority = node("ecofilter-balancer flow priority");
    let top = path("ecofilter-balancer");
    let mut tree = Tree::new(schema());
    for n in 0..100_000_u32 {
        let entry = top.entry(flow, [format!("f{n}")]);
        tree.set(&entry.child(priority), Some(&(n % 65_535 + 1).to_string())).unwrap();
    }
    let at = |tree: &Tree, n: u32| -> *const tree::Fields {
        match tree.get(&top.entry(flow, [format!("f{n}")])) {
            Some(Data::Fields(fields)) => fields,
            _ => unreachable!(),
        }
    };
    let before = tree.clone();
    tree.set(&top.entry(flow, ["f5"]).child(priority), Some("7")).unwrap();
    assert!(std::ptr::eq(at(&tree, 99_999), at(&before, 99_999)));
    assert!(!std::ptr::eq(at(&tree, 5), at(&before, 5)));
    assert_eq!(diff(&before, &tree).len(), 1);
    let mut other = before.clone();
    other.set(&top.entry(flow, ["f6"]).child(priority), Some("8")).unwrap();
    let merged = merge(&before, &tree, &other).unwrap();
    assert_eq!(compare_lines(&before, &merged).len(), 4);
    let json =
        tree::json::read(&schema(), &tree::json::write(&merged, &Path::default(), tree::Defaults::Explicit));
    assert_eq!(json.as_ref(), Ok(&merged));
    let mut again = Tree::new(schema());
    assert_eq!(set_lines::read(&mut again, &lines(&merged)), Ok(100_000));
    assert_eq!(again, merged);
    let names = tree.entries(&path("ecof flow")).map(|(keys, _)| Arc::clone(keys)).take(3);
    assert_eq!(names.collect::<Vec<_>>(), [keys(&["f0"]), keys(&["f1"]), keys(&["f2"])]);
}
