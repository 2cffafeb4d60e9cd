//! Table entries as both ends of P4Runtime understand them, without its wire format.

use std::fmt;

/// Number of a table, action, field, counter or packet header in the P4Info.
pub type P4Id = u32;

/// One match field's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Equal.
    Exact(u128),
    /// Equal where the mask has ones.
    Ternary {
        /// Wanted bits; zero outside the mask.
        value: u128,
        /// Never zero: a field that does not matter is left out.
        mask: u128,
    },
    /// Within bounds, both included; never the whole range.
    Range {
        /// Lowest value.
        low: u128,
        /// Highest value.
        high: u128,
    },
}

/// One entry of a table, or its default action where `is_default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The table.
    pub table: P4Id,
    /// Conditions by field id, in rising order; fields that do not matter are absent.
    pub key: Vec<(P4Id, Condition)>,
    /// Larger wins; 0 where the table has none.
    pub priority: i32,
    /// The action.
    pub action: P4Id,
    /// Its parameters in the order of their ids.
    pub params: Vec<u128>,
    /// Opaque to the data plane; the controller keeps the configuration's name for the thing here.
    pub metadata: Vec<u8>,
    /// The table's default action.
    pub is_default: bool,
}

/// What makes two entries of a table the same place: table, match and priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The table.
    pub table: P4Id,
    /// The match.
    pub key: Vec<(P4Id, Condition)>,
    /// The priority.
    pub priority: i32,
    /// The table's default action.
    pub is_default: bool,
}

impl Entry {
    /// The entry's place.
    #[must_use]
    pub fn place(&self) -> EntryKey {
        EntryKey {
            table: self.table,
            key: self.key.clone(),
            priority: self.priority,
            is_default: self.is_default,
        }
    }
}

/// A change of one place of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// The place must be free.
    Insert(Entry),
    /// The place must be taken.
    Modify(Entry),
    /// The place must be taken; action and parameters do not matter.
    Delete(Entry),
}

impl Update {
    /// The entry in question.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        match self {
            Update::Insert(entry) | Update::Modify(entry) | Update::Delete(entry) => entry,
        }
    }
}

/// An entry that the schema does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// No such table.
    #[error("table id {0:#010x} is unknown")]
    UnknownTable(P4Id),
    /// No such action, or not in this table.
    #[error("table {table}: action id {action:#010x} is not one of its actions")]
    UnknownAction {
        /// The table's name.
        table: &'static str,
        /// The action's id.
        action: P4Id,
    },
    /// A field id that the table does not have, or has twice here.
    #[error("table {table}: match field id {field} is unknown or given twice")]
    UnknownField {
        /// The table's name.
        table: &'static str,
        /// The field's id.
        field: P4Id,
    },
    /// An exact field is missing.
    #[error("table {table}: match field {field} is missing; an exact field cannot be left out")]
    MissingField {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// The condition is of another kind than the field.
    #[error("table {table}: match field {field} is {wanted}, the entry has another kind of match")]
    WrongKind {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
        /// The kind that the field is.
        wanted: &'static str,
    },
    /// Bits beyond the width.
    #[error("{what}: {value:#x} does not fit {bits} bits")]
    TooWide {
        /// Table and field, or action and parameter.
        what: String,
        /// The value.
        value: u128,
        /// The width.
        bits: u32,
    },
    /// A zero mask or a whole range: it must be left out.
    #[error("table {table}: match field {field} matches everything; leave it out instead")]
    DontCare {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// `value & !mask` is not 0.
    #[error("table {table}: match field {field}: value {value:#x} has bits outside mask {mask:#x}")]
    OutsideMask {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
        /// The value.
        value: u128,
        /// The mask.
        mask: u128,
    },
    /// low > high.
    #[error("table {table}: match field {field}: range {low}-{high} is empty")]
    EmptyRange {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
        /// The lower bound.
        low: u128,
        /// The upper bound.
        high: u128,
    },
    /// A table with ternary or range fields wants a priority, an exact one wants none.
    #[error("table {table}: priority is {priority}; it must be {wanted}")]
    Priority {
        /// The table's name.
        table: &'static str,
        /// What the entry has.
        priority: i32,
        /// What would be right.
        wanted: &'static str,
    },
    /// Too few or too many parameters.
    #[error("action {action}: {found} parameters given, it has {wanted}")]
    ParamCount {
        /// The action's name.
        action: &'static str,
        /// Parameters given.
        found: usize,
        /// Parameters it has.
        wanted: usize,
    },
    /// A parameter's value has no meaning.
    #[error("action {action}: parameter {param} is {value}; it must be {wanted}")]
    Param {
        /// The action's name.
        action: &'static str,
        /// The parameter's name.
        param: &'static str,
        /// The value.
        value: u128,
        /// What would be right.
        wanted: &'static str,
    },
    /// A match value has no meaning.
    #[error("table {table}: match field {field} is {value}; it must be {wanted}")]
    Key {
        /// The table's name.
        table: &'static str,
        /// The field's name.
        field: &'static str,
        /// The value.
        value: u128,
        /// What would be right.
        wanted: &'static str,
    },
    /// A condition that another one needs is absent or another.
    #[error(
        "table {table}: match field {field} is {}; with a condition on {with} it must be {wanted}",
        .found.map_or("left out".to_owned(), |found| found.to_string())
    )]
    Needs {
        /// The table's name.
        table: &'static str,
        /// The field that is needed.
        field: &'static str,
        /// Its condition, if it has one.
        found: Option<Condition>,
        /// The field that needs it.
        with: &'static str,
        /// What would be right.
        wanted: &'static str,
    },
    /// A default action that cannot be written.
    #[error("table {0}: the default action is constant and cannot be written")]
    ConstDefault(&'static str),
    /// A default entry with a match, or an entry in a table that has none.
    #[error("table {table}: {what}")]
    DefaultAction {
        /// The table's name.
        table: &'static str,
        /// What is wrong.
        what: &'static str,
    },
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Exact(value) => write!(f, "{value:#x}"),
            Condition::Ternary { value, mask } => write!(f, "{value:#x}&{mask:#x}"),
            Condition::Range { low, high } => write!(f, "{low}-{high}"),
        }
    }
}
