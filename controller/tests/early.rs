//! Configurations of the early generation: they ask for the same entries as their counterparts of today, say what they
//! lose, and rubbish is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests fail the test

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use controller::early::{self, Early, EarlyError};
use dataplane::entry::Entry;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use site::{Condition, Ids, Site};
use tree::{Defaults, Path, Schema, Tree, json};
use yang::Yang;

static YANG: LazyLock<Yang> = LazyLock::new(|| Yang::load().unwrap());

fn schema() -> &'static Arc<Schema> {
    YANG.schema()
}

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs/examples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(text: &str) -> Early {
    early::read(schema(), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What a configuration asks of the data plane while all pairs are up.
fn entries(tree: &Tree) -> Vec<Entry> {
    let text = json::write(tree, &Path::default(), Defaults::Explicit);
    YANG.validate(&text).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    let site = Site::from_json(&text).unwrap();
    let ids = Ids::allocate(&site, &Ids::default());
    site::desired(&site, &ids, &Condition::with_up(&site, |_| true))
}

#[test]
fn examples_ask_for_the_same_entries_in_both_generations() {
    for (today, early, notes) in
        [("site.json", "early/site.conf", 0), ("two-units.json", "early/two-units.conf", 0)]
    {
        let today = json::read(schema(), &example(today)).unwrap();
        let early = read(&example(early));
        assert_eq!(early.notes.len(), notes, "{:?}", early.notes);
        let (wanted, found) = (entries(&today), entries(&early.tree));
        assert!(wanted.len() > 20, "{}", wanted.len());
        assert_eq!(found, wanted);
    }
}

#[test]
fn an_example_goes_round_by_todays_set_lines() {
    let early = read(&example("early/site.conf"));
    let lines = tree::set_lines::write(&early.tree, &Path::default());
    let mut again = Tree::new(schema().clone());
    tree::set_lines::read(&mut again, &lines).unwrap();
    assert_eq!(again, early.tree);
}

#[test]
fn what_has_no_counterpart_is_told_in_a_line_each() {
    let early = read(
        "snmp { community public }
         balance-groups {
             a { balancing-as mag-hash; filter a-1 { lan-port p1; wan-port p2; colour red }; watchdog 5 }
             b { balancing-as src-ip; rebalance maybe; filter-group nowhere }
             c { balancing-as round-robin }
         }
         filter-group unused { filter u-1 { lan-port p3; wan-port p4 } }
         filters {
             first { match { ip-proto 6; geo CH }; log; bypass }
             second { action to-balance-group a copy }
             third { priority 7 }
         }",
    );
    let expected = [
        "snmp: has no counterpart and is left out",
        "balance-groups a filter a-1 colour: has no counterpart and is left out",
        "balance-groups a watchdog: has no counterpart and is left out",
        "balance-groups b balancing-as src-ip: there is one balancing-method for all units, \
         and balance-groups a balancing-as mag-hash has made it layer-3",
        "balance-groups b rebalance maybe: is neither on nor off; taken as off",
        "balance-groups b filter-group nowhere: there is no such filter group",
        "balance-groups c balancing-as round-robin: has no counterpart; balancing-method stays layer-3",
        "filter-group unused: no balance group names it; its pairs are left out",
        "filters first match geo: has no counterpart and is left out",
        "filters first log: has no counterpart and is left out",
        "filters first: has no priority; 3 by its place, earlier ones win",
        "filters second: has no priority; 2 by its place, earlier ones win",
        "filters third: has no action that is known here; it bypasses",
    ];
    let mut missing: Vec<&str> = expected.to_vec();
    missing.retain(|line| !early.notes.iter().any(|note| note == line));
    assert!(missing.is_empty(), "{missing:#?}\nnot in {:#?}", early.notes);
    assert_eq!(early.notes.len(), expected.len(), "{:#?}", early.notes);
    let lines = tree::set_lines::write(&early.tree, &Path::default());
    for line in [
        "set ecofilter-balancer balancing-method layer-3",
        "set ecofilter-balancer ecofilter-unit a pair a-1 lan-port p1",
        "set ecofilter-balancer flow first priority 3",
        "set ecofilter-balancer flow second copy",
        "set ecofilter-balancer flow third action bypass",
    ] {
        assert!(lines.lines().any(|found| found == line), "{line}\nnot in\n{lines}");
    }
}

#[test]
fn todays_names_alone_are_sent_to_the_other_load() {
    let error = early::read(schema(), &example("site.json")).unwrap_err();
    assert!(matches!(error, EarlyError::Nothing), "{error}");
    assert!(error.to_string().contains("`load merge` and `load replace`"), "{error}");
}

#[test]
fn a_value_that_is_not_possible_is_refused_with_its_path() {
    let error = early::read(schema(), "balance-groups { a { nat-unit-queues 1000 } }").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cores") && text.contains("1000"), "{text}");
}

/// One of the texts with some of its characters, words and lines taken, doubled, swapped or put elsewhere.
fn mutated(rng: &mut StdRng, texts: &[String]) -> String {
    let mut text = texts.choose(rng).unwrap().clone();
    for _ in 0..rng.random_range(1..8) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            break;
        }
        let at = rng.random_range(0..lines.len());
        match rng.random_range(0..7) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines.choose(rng).unwrap().clone()),
            2 => lines.insert(at, texts.choose(rng).unwrap().lines().next().unwrap_or_default().to_owned()),
            kind => {
                let mut chars: Vec<char> = lines[at].chars().collect();
                let place = rng.random_range(0..=chars.len());
                let odd = ['{', '}', '[', ']', ';', '"', '\\', '#', ' ', '0', 'ä', '\u{1}', '\u{fffd}', ':'];
                match kind {
                    3 if place < chars.len() => drop(chars.remove(place)),
                    4 if place < chars.len() => chars.truncate(place),
                    _ => chars.insert(place, *odd.choose(rng).unwrap()),
                }
                lines[at] = chars.into_iter().collect();
            }
        }
        text = lines.join("\n");
    }
    text
}

#[test]
fn rubbish_gets_an_answer() {
    let texts = [example("early/site.conf"), example("early/two-units.conf"), example("site.json"), {
        r#"{"balance-groups": [{"name": "a", "filter": [{"name": "x", "lan-port": "p1", "wan-port": "p2"}]}],
"filters": [{"name": "f", "priority": 5,
"action": "bypass"}]}"#
            .to_owned()
    }];
    let mut rng = StdRng::seed_from_u64(20);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..4000 {
        let text = mutated(&mut rng, &texts);
        match early::read(schema(), &text) {
            Ok(early) => {
                taken += 1;
                // What was taken can be shown and checked, whatever the check says.
                let text = json::write(&early.tree, &Path::default(), Defaults::Explicit);
                if taken % 20 == 0 && YANG.validate(&text).is_ok() {
                    let _ = Site::from_json(&text);
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty(), "{text}");
            }
        }
    }
    assert!(taken > 500 && refused > 500, "taken {taken}, refused {refused}");
}
