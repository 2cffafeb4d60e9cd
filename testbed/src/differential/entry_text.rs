//! Table entries as vector files have them: by the names of the schema.

use dataplane::entry::{Condition, Entry};
use dataplane::schema::{Action, MatchKind, Table};
use dataplane::tables::{self, TableEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// An entry, by names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryText {
    /// The table.
    pub table: String,
    /// Conditions by field: a number, `VALUE&MASK`, or `LOW-HIGH`. Absent for a default action.
    #[serde(default, rename = "match", skip_serializing_if = "Map::is_empty")]
    pub matches: Map<String, Value>,
    /// Larger wins; absent where the table has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// The action.
    pub action: String,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Large numbers are written as hexadecimal digits, since not every reader of JSON has them.
fn number(value: u128) -> Value {
    match u32::try_from(value) {
        Ok(small) => small.into(),
        Err(_) => format!("{value:#x}").into(),
    }
}

fn wrong(of: &str, reason: String) -> Error {
    Error::Input { file: format!("entry of table {of}"), reason }
}

fn read_number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn read_value(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => number.as_u64().map(u128::from),
        Value::String(text) => read_number(text),
        _ => None,
    }
}

fn read_condition(kind: MatchKind, value: &Value) -> Option<Condition> {
    let split = |by| {
        let (first, second) = value.as_str()?.split_once(by)?;
        Some((read_number(first)?, read_number(second)?))
    };
    match kind {
        MatchKind::Exact => read_value(value).map(Condition::Exact),
        MatchKind::Ternary => split('&').map(|(value, mask)| Condition::Ternary { value, mask }),
        MatchKind::Range => split('-').map(|(low, high)| Condition::Range { low, high }),
    }
}

fn write_condition(condition: Condition) -> Value {
    match condition {
        Condition::Exact(value) => number(value),
        other => other.to_string().into(),
    }
}

fn actions_of(table: &'static Table) -> impl Iterator<Item = &'static Action> {
    table.actions.iter().copied().chain([table.default_action])
}

impl EntryText {
    /// An entry by names; none where the schema has no such table or action.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        let table = tables::by_id(entry.table)?;
        let action = actions_of(table).find(|action| action.id == entry.action)?;
        let name_of = |id| table.field(id).map(|(field, _)| field.name.to_owned());
        Some(EntryText {
            table: table.name.to_owned(),
            matches: entry
                .key
                .iter()
                .map(|(id, condition)| Some((name_of(*id)?, write_condition(*condition))))
                .collect::<Option<_>>()?,
            priority: entry.priority,
            action: action.name.to_owned(),
            params: action
                .params
                .iter()
                .zip(&entry.params)
                .map(|(field, value)| (field.name.to_owned(), number(*value)))
                .collect(),
        })
    }

    /// The entry.
    ///
    /// # Errors
    /// A name, number or condition that the schema does not have or allow.
    pub fn entry(&self) -> Result<Entry> {
        let wrong = |reason: String| wrong(&self.table, reason);
        let table = tables::ALL
            .iter()
            .copied()
            .find(|table| table.name == self.table)
            .ok_or_else(|| wrong("there is no such table".into()))?;
        let action = actions_of(table)
            .find(|action| action.name == self.action)
            .ok_or_else(|| wrong(format!("it has no action {}", self.action)))?;
        let mut key = Vec::new();
        for (name, value) in &self.matches {
            let (field, kind) = table
                .key
                .iter()
                .find(|(field, _)| field.name == name)
                .ok_or_else(|| wrong(format!("it has no match field {name}")))?;
            let condition = read_condition(*kind, value).ok_or_else(|| {
                wrong(format!("{name} is {value}; {} wants {}", kind.as_str(), wanted(*kind)))
            })?;
            key.push((field.id, condition));
        }
        key.sort_unstable();
        let params = action
            .params
            .iter()
            .map(|field| {
                let value = self.params.get(field.name);
                value
                    .and_then(read_value)
                    .ok_or_else(|| wrong(format!("action {} wants a number for {}", action.name, field.name)))
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some(name) =
            self.params.keys().find(|name| action.params.iter().all(|field| field.name != *name))
        {
            return Err(wrong(format!("action {} has no parameter {name}", action.name)));
        }
        let entry = Entry {
            table: table.id,
            key,
            priority: self.priority,
            action: action.id,
            params,
            metadata: Vec::new(),
            is_default: table.key.is_empty(),
        };
        TableEntry::parse(&entry).map_err(|error| wrong(error.to_string()))?;
        Ok(entry)
    }
}

fn wanted(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "a number",
        MatchKind::Ternary => "\"VALUE&MASK\"",
        MatchKind::Range => "\"LOW-HIGH\"",
    }
}

#[cfg(test)]
mod tests {
    use dataplane::PortId;

    use super::*;
    use crate::differential::contents::Contents;
    use crate::differential::frames::generate;
    use crate::rng::Rng;

    #[test]
    fn entries_are_read_back_as_they_were() {
        let mut rng = Rng::new(31);
        let ports: Vec<PortId> = (0..60).map(PortId).collect();
        for _ in 0..20 {
            let frames: Vec<_> = (0..40).map(|_| generate(&mut rng)).collect();
            for entry in Contents::draw(&mut rng, &ports, &frames).entries {
                let text = EntryText::of(&entry).expect("names");
                let json = serde_json::to_string(&text).expect("JSON");
                let again: EntryText = serde_json::from_str(&json).expect("JSON");
                assert_eq!(again.entry().expect("an entry"), entry, "{json}");
            }
        }
    }

    #[test]
    fn a_wrong_name_or_number_is_named() {
        let mut text = EntryText {
            table: "ports".into(),
            matches: [("ingress_port".to_owned(), Value::from(5))].into_iter().collect(),
            priority: 0,
            action: "pair_port".into(),
            params: [("pair".to_owned(), Value::from(9)), ("side".to_owned(), Value::from(1))]
                .into_iter()
                .collect(),
        };
        assert_eq!(text.entry().map(|entry| entry.params).expect("an entry"), [9, 1]);
        text.params.insert("pair".into(), 600.into());
        assert!(text.entry().expect_err("pair").to_string().contains("600"));
        text.params.insert("core".into(), 1.into());
        assert!(text.entry().expect_err("core").to_string().contains("core"));
        text.matches.insert("egress_port".into(), 1.into());
        assert!(text.entry().expect_err("field").to_string().contains("egress_port"));
        text.table = "portal".into();
        assert!(text.entry().expect_err("table").to_string().contains("portal"));
    }
}
