//! Tables against a plain list of all their instances, and requests against them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use agentx::{Binding, Body, Column, Objects, Oid, ResponseError, SearchRange, Table, Value, View, answer};
use proptest::prelude::*;

type Row = [Option<u32>; 3];

static COLUMNS: [Column<Row>; 3] = [
    Column { number: 2, name: "first", value: |row| row[0].map(Value::Gauge32) },
    Column { number: 3, name: "second", value: |row| row[1].map(Value::Counter32) },
    Column { number: 7, name: "third", value: |row| row[2].map(|value| Value::Counter64(value.into())) },
];

fn entry() -> Oid {
    Oid::new([1, 3, 5, 1])
}

/// All instances in order.
fn instances(rows: &[(Vec<u32>, Row)]) -> BTreeMap<Oid, Value> {
    let mut all = BTreeMap::new();
    for (index, row) in rows {
        for column in &COLUMNS {
            let name = entry().child([column.number].into_iter().chain(index.iter().copied()));
            if let Some(value) = (column.value)(row) {
                all.entry(name).or_insert(value);
            }
        }
    }
    all
}

fn name() -> impl Strategy<Value = Oid> {
    prop_oneof![
        prop::collection::vec(0u32..9, 0..6).prop_map(Oid::new),
        prop::collection::vec(0u32..9, 0..4).prop_map(|below| entry().child(below)),
    ]
}

proptest! {
    #[test]
    fn a_table_answers_as_a_plain_list_would(
        rows in prop::collection::vec(
            (prop::collection::vec(0u32..4, 1..3), any::<[Option<u32>; 3]>()), 0..12),
        names in prop::collection::vec((name(), any::<bool>()), 1..30),
    ) {
        // Of two rows with one index the first stands.
        let mut once: Vec<(Vec<u32>, Row)> = Vec::new();
        for row in rows {
            if !once.iter().any(|(index, _)| *index == row.0) {
                once.push(row);
            }
        }
        let all = instances(&once);
        let table = Table::new(entry(), &COLUMNS, once);
        for (name, inclusive) in names {
            let expected = all.iter().find(|(other, _)| **other > name || inclusive && **other == name);
            let found = table.next(&name, inclusive);
            prop_assert_eq!(found.as_ref().map(|found| (&found.name, &found.value)), expected);
            let value = table.get(&name);
            match all.get(&name) {
                Some(expected) => prop_assert_eq!(&value, expected),
                None => prop_assert!(matches!(value, Value::NoSuchObject | Value::NoSuchInstance)),
            }
        }
    }
}

fn row(value: u32) -> Row {
    [Some(value), None, Some(value)]
}

fn objects() -> Objects {
    let scalars = Table::scalars(Oid::new([1, 3, 4]), &COLUMNS, row(9));
    let table = Table::new(entry(), &COLUMNS, (1..=3).map(|index| (vec![index], row(index))).collect());
    Objects::new(vec![Arc::new(scalars), Arc::new(table)])
}

fn range(start: &str, include: bool, end: &str) -> SearchRange {
    let oid = |text: &str| if text.is_empty() { Oid::default() } else { text.parse().unwrap() };
    SearchRange { start: oid(start), include, end: oid(end) }
}

fn answered(body: &Body) -> (ResponseError, u16, Vec<String>) {
    let Some(Body::Response { error, index, bindings, .. }) = answer(&objects(), body) else {
        panic!("no response to {body:?}");
    };
    let shown = |Binding { name, value }: &Binding| format!("{name} {value:?}");
    (error, index, bindings.iter().map(shown).collect())
}

#[test]
fn get_tells_objects_from_instances() {
    let names = ["1.3.4.2.0", "1.3.4.3.0", "1.3.4.4.0", "1.3.5.1.7.2", "1.3.5.1.7.4", "1.3.9"];
    let body = Body::Get { context: None, ranges: names.map(|name| range(name, false, "")).to_vec() };
    let expected = [
        "1.3.4.2.0 Gauge32(9)",
        "1.3.4.3.0 NoSuchInstance",
        "1.3.4.4.0 NoSuchObject",
        "1.3.5.1.7.2 Counter64(2)",
        "1.3.5.1.7.4 NoSuchInstance",
        "1.3.9 NoSuchObject",
    ];
    assert_eq!(answered(&body), (ResponseError::NONE, 0, expected.map(str::to_owned).to_vec()));
}

#[test]
fn get_next_goes_over_holes_and_stops_at_the_end_of_its_range() {
    let ranges = vec![
        range("1.3", false, ""),
        range("1.3.4.2.0", true, ""),
        range("1.3.4.2.0", false, "1.3.5"),
        range("1.3.4.7.0", false, "1.3.5"),
        range("1.3.5.1.2.3", false, ""),
        range("1.3.5.1.7.3", false, ""),
    ];
    let expected = [
        "1.3.4.2.0 Gauge32(9)",
        "1.3.4.2.0 Gauge32(9)",
        "1.3.4.7.0 Counter64(9)",
        "1.3.4.7.0 EndOfMibView",
        "1.3.5.1.7.1 Counter64(1)",
        "1.3.5.1.7.3 EndOfMibView",
    ];
    let body = Body::GetNext { context: None, ranges };
    assert_eq!(answered(&body).2, expected);
}

#[test]
fn get_bulk_repeats_and_ends_with_the_view() {
    let body = Body::GetBulk {
        context: None,
        non_repeaters: 1,
        max_repetitions: 9,
        ranges: vec![
            range("1.3.4", false, ""),
            range("1.3.5.1.2.2", false, ""),
            range("1.3.5.1.7.2", false, ""),
        ],
    };
    let expected = [
        "1.3.4.2.0 Gauge32(9)",
        "1.3.5.1.2.3 Gauge32(3)",
        "1.3.5.1.7.3 Counter64(3)",
        "1.3.5.1.7.1 Counter64(1)",
        "1.3.5.1.7.3 EndOfMibView",
        "1.3.5.1.7.2 Counter64(2)",
        "1.3.5.1.7.3 EndOfMibView",
        "1.3.5.1.7.3 Counter64(3)",
        "1.3.5.1.7.3 EndOfMibView",
        "1.3.5.1.7.3 EndOfMibView",
        "1.3.5.1.7.3 EndOfMibView",
    ];
    assert_eq!(answered(&body).2, expected);
}

#[test]
fn get_bulk_is_cut_short_where_it_would_be_too_long() {
    let text = Value::OctetString(vec![b'x'; 1000]);
    struct Endless(Value);
    impl View for Endless {
        fn get(&self, _: &Oid) -> Value {
            self.0.clone()
        }
        fn next(&self, after: &Oid, _: bool) -> Option<Binding> {
            Some(Binding::new(after.child([1]), self.0.clone()))
        }
    }
    let ranges = vec![range("1.3", false, ""); 2];
    let body = Body::GetBulk { context: None, non_repeaters: 0, max_repetitions: u16::MAX, ranges };
    let Some(Body::Response { bindings, .. }) = answer(&Endless(text), &body) else { panic!("no response") };
    assert!(bindings.len() % 2 == 0 && (40..60).contains(&bindings.len()), "{}", bindings.len());
}

#[test]
fn nothing_can_be_set_and_other_contexts_are_empty() {
    let bindings = vec![Binding::new("1.3.4.2.0".parse().unwrap(), Value::Gauge32(1))];
    let set = Body::TestSet { context: None, bindings };
    assert_eq!(answered(&set), (ResponseError::NOT_WRITABLE, 1, Vec::new()));
    assert_eq!(answered(&Body::CommitSet).0, ResponseError::COMMIT_FAILED);
    assert_eq!(answered(&Body::UndoSet).0, ResponseError::UNDO_FAILED);
    assert!(answer(&objects(), &Body::CleanupSet).is_none());
    let context = Some(b"other".to_vec());
    let get = Body::Get { context: context.clone(), ranges: vec![range("1.3.4.2.0", false, "")] };
    assert_eq!(answered(&get).2, ["1.3.4.2.0 NoSuchObject"]);
    let next = Body::GetNext { context, ranges: vec![range("1.3", false, "")] };
    assert_eq!(answered(&next).2, ["1.3 EndOfMibView"]);
}
