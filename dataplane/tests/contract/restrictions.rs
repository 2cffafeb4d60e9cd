//! What an entry must keep is said twice: to the P4 compiler as text, to Rust as code. Both refuse the same entries.

use std::collections::BTreeMap;

use dataplane::entry::{Condition, Entry, EntryError};
use dataplane::schema::{Field, MatchKind, Table, all_ones};
use dataplane::tables::{self, TableEntry};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Evaluates a restriction of p4-constraints: numbers, keys such as `port::low`, comparisons, `&&`, `||`, `->`,
/// `;` and brackets, each binding weaker than the one before.
struct Text<'t> {
    rest: &'t str,
    values: &'t BTreeMap<String, u128>,
}

impl<'t> Text<'t> {
    fn holds(text: &'t str, values: &'t BTreeMap<String, u128>) -> bool {
        let mut text = Text { rest: text, values };
        let mut holds = text.implication();
        while text.takes(";") {
            holds &= text.implication();
        }
        assert_eq!(text.rest.trim(), "");
        holds
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn implication(&mut self) -> bool {
        let left = self.any();
        if self.takes("->") { self.implication() || !left } else { left }
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.takes("||") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.comparison();
        while self.takes("&&") {
            holds &= self.comparison();
        }
        holds
    }

    fn comparison(&mut self) -> bool {
        if self.takes("(") {
            let holds = self.implication();
            assert!(self.takes(")"), "{}", self.rest);
            return holds;
        }
        let left = self.number();
        for (token, holds) in [
            ("==", (|a, b| a == b) as fn(u128, u128) -> bool),
            ("!=", |a, b| a != b),
            ("<=", |a, b| a <= b),
            (">=", |a, b| a >= b),
            ("<", |a, b| a < b),
            (">", |a, b| a > b),
        ] {
            if self.takes(token) {
                return holds(left, self.number());
            }
        }
        panic!("no comparison at {}", self.rest)
    }

    fn number(&mut self) -> u128 {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        match word.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16).unwrap(),
            None if word.starts_with(|c: char| c.is_ascii_digit()) => word.parse().unwrap(),
            None => self.values[word],
        }
    }
}

/// What the texts say of an entry that the schema takes.
fn text_allows(table: &Table, entry: &Entry) -> bool {
    let action = table.actions.iter().find(|action| action.id == entry.action).unwrap();
    let params: BTreeMap<String, u128> = action
        .params
        .iter()
        .zip(&entry.params)
        .map(|(param, value)| (param.name.to_owned(), *value))
        .collect();
    let mut key = BTreeMap::new();
    for (field, kind) in table.key {
        let condition = entry.key.iter().find(|(id, _)| *id == field.id).map(|(_, condition)| *condition);
        let mut note = |part: &str, value| key.insert(format!("{}{part}", field.name), value);
        match (kind, condition) {
            (_, Some(Condition::Exact(value))) => drop(note("", value)),
            (_, Some(Condition::Ternary { value, mask })) => {
                note("::value", value);
                note("::mask", mask);
            }
            (_, Some(Condition::Range { low, high })) => {
                note("::low", low);
                note("::high", high);
            }
            (MatchKind::Range, None) => {
                note("::low", 0);
                note("::high", all_ones(field.bits));
            }
            (_, None) => {
                note("::value", 0);
                note("::mask", 0);
            }
        }
    }
    table.restriction.is_none_or(|text| Text::holds(text, &key))
        && action.restriction.is_none_or(|text| Text::holds(text, &params))
}

/// Values near the edges of what a width and a restriction allow.
fn value(field: Field) -> BoxedStrategy<u128> {
    let all = all_ones(field.bits);
    let edges = [
        0, 1, 2, 3, 4, 11, 12, 13, 14, 15, 511, 512, 0x5ff, 0x600, 1023, 4095, 4096, 0x0800, 0x86dd, 0x8847,
        0x8848, 0x8864, 0x88b5, 0x88b6, 0xffff,
    ];
    let fitting: Vec<u128> = edges.into_iter().filter(|edge| *edge <= all).collect();
    prop_oneof![3 => select(fitting), 1 => any::<u128>().prop_map(move |value| value & all)].boxed()
}

fn condition((field, kind): (Field, MatchKind)) -> BoxedStrategy<Option<(u32, Condition)>> {
    let all = all_ones(field.bits);
    let condition = match kind {
        MatchKind::Exact => {
            return value(field).prop_map(move |v| Some((field.id, Condition::Exact(v)))).boxed();
        }
        MatchKind::Ternary => (value(field), prop_oneof![3 => Just(all), 1 => value(field)])
            .prop_map(|(value, mask)| Condition::Ternary { value: value & mask, mask })
            .boxed(),
        MatchKind::Range => (value(field), value(field))
            .prop_map(|(a, b)| Condition::Range { low: a.min(b), high: a.max(b) })
            .boxed(),
    };
    prop::option::weighted(0.3, condition.prop_map(move |condition| (field.id, condition))).boxed()
}

fn entry(table: &'static Table) -> BoxedStrategy<(&'static Table, Entry)> {
    let key: Vec<_> = table.key.iter().map(|field| condition(*field)).collect();
    let params: Vec<Vec<_>> = table
        .actions
        .iter()
        .map(|action| action.params.iter().map(|param| value(*param)).collect())
        .collect();
    (key, params, any::<Index>())
        .prop_map(move |(key, params, action)| {
            let action = action.index(params.len());
            let entry = Entry {
                table: table.id,
                key: key.into_iter().flatten().collect(),
                priority: i32::from(table.has_priority()),
                action: table.actions[action].id,
                params: params[action].clone(),
                metadata: Vec::new(),
                is_default: table.key.is_empty(),
            };
            (table, entry)
        })
        .boxed()
}

fn any_entry() -> impl Strategy<Value = (&'static Table, Entry)> {
    proptest::strategy::Union::new(tables::PROGRAM.iter().copied().map(entry))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn text_and_code_refuse_the_same_entries((table, entry) in any_entry()) {
        prop_assume!(table.check(&entry).is_ok());
        let parsed = TableEntry::parse(&entry);
        prop_assert_eq!(parsed.is_ok(), text_allows(table, &entry), "{:?} {:?}", parsed, entry);
    }
}

#[test]
fn what_is_refused_names_field_value_and_what_would_be_right() {
    let refused = |table: u32, action: u32, key: &[(u32, Condition)], params: &[u128]| {
        let entry = Entry {
            table,
            key: key.to_vec(),
            priority: i32::from(tables::by_id(table).unwrap().has_priority()),
            action,
            params: params.to_vec(),
            metadata: Vec::new(),
            is_default: key.is_empty(),
        };
        TableEntry::parse(&entry).unwrap_err()
    };
    let tcp = (15, Condition::Ternary { value: 6, mask: 0xff });
    let v6 = (12, Condition::Ternary { value: 6, mask: 0xf });
    let ports = (18, Condition::Range { low: 80, high: 443 });
    let says = |error: EntryError, parts: &[&str]| {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    says(
        refused(0x0200_0003, 0x0100_0007, &[tcp], &[]),
        &["rules_v4", "ip_version", "left out", "ip_proto", "0x4&0xf"],
    );
    says(
        refused(0x0200_0003, 0x0100_0007, &[v6, tcp], &[]),
        &["ip_version", "0x6&0xf", "ip_proto", "0x4&0xf"],
    );
    says(refused(0x0200_0004, 0x0100_0007, &[ports], &[]), &["rules_v6", "has_ports", "dst_port", "0x1&0x1"]);
    let steering = |params: &[u128]| refused(0x0200_0001, 0x0100_0001, &[], params);
    says(steering(&[0, 0x0800, 0]), &["tpid", "2048", "0x0600"]);
    says(steering(&[1, 0x8100, 4096]), &["base_vid", "4096", "4095"]);
    says(steering(&[2, 0x8100, 1]), &["mode", "2", "dot1q"]);
    let bucket = [(1, Condition::Exact(0)), (2, Condition::Exact(7))];
    says(refused(0x0200_0006, 0x0100_001a, &bucket, &[9]), &["reason", "9", "core-down", "shed"]);
    let backup = |mask| refused(0x0200_0005, 0x0100_0019, &[(1, Condition::Exact(0))], &[0, mask, 1]);
    says(backup(1000), &["unit_backup", "bucket_mask", "1000", "power of two"]);
}
