//! What there is to read: scalars and tables, in the order of a MIB.

use std::sync::Arc;

use crate::{Binding, Oid, Value};

/// Objects that can be read; a picture of one instant.
pub trait View: Send + Sync {
    /// The value, [`Value::NoSuchInstance`] where the object has no such instance, or [`Value::NoSuchObject`].
    fn get(&self, name: &Oid) -> Value;

    /// The first instance behind `after`, or `after` itself where it counts and is there.
    fn next(&self, after: &Oid, inclusive: bool) -> Option<Binding>;
}

/// A column of a table, or a scalar.
pub struct Column<R> {
    /// Last sub-identifier of the object.
    pub number: u32,
    /// Descriptor in the MIB.
    pub name: &'static str,
    /// The row's value; rows without one have no such instance.
    pub value: fn(&R) -> Option<Value>,
}

/// A table, or a group of scalars: those are a table of one row with the index 0.
pub struct Table<R: 'static> {
    entry: Oid,
    columns: &'static [Column<R>],
    rows: Vec<(Vec<u32>, R)>,
}

impl<R> Table<R> {
    /// Below `entry`, the object that the columns are below; columns must be in order of their numbers. Of two rows
    /// with one index the first stands.
    #[must_use]
    pub fn new(entry: Oid, columns: &'static [Column<R>], mut rows: Vec<(Vec<u32>, R)>) -> Self {
        debug_assert!(columns.is_sorted_by_key(|column| column.number));
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        rows.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Table { entry, columns, rows }
    }

    /// A group of scalars.
    #[must_use]
    pub fn scalars(group: Oid, columns: &'static [Column<R>], row: R) -> Self {
        Table { entry: group, columns, rows: vec![(vec![0], row)] }
    }

    /// First instance at or behind a cell, going down the columns.
    fn from(&self, mut column: usize, mut row: usize) -> Option<Binding> {
        while let Some(object) = self.columns.get(column) {
            while let Some((index, values)) = self.rows.get(row) {
                if let Some(value) = (object.value)(values) {
                    let name = self.entry.child([object.number].into_iter().chain(index.iter().copied()));
                    return Some(Binding { name, value });
                }
                row += 1;
            }
            (column, row) = (column + 1, 0);
        }
        None
    }
}

impl<R: Send + Sync> View for Table<R> {
    fn get(&self, name: &Oid) -> Value {
        let Some([number, index @ ..]) = name.below(&self.entry) else { return Value::NoSuchObject };
        let Ok(column) = self.columns.binary_search_by_key(number, |column| column.number) else {
            return Value::NoSuchObject;
        };
        self.rows
            .binary_search_by(|(other, _)| other.as_slice().cmp(index))
            .ok()
            .and_then(|row| (self.columns[column].value)(&self.rows[row].1))
            .unwrap_or(Value::NoSuchInstance)
    }

    fn next(&self, after: &Oid, inclusive: bool) -> Option<Binding> {
        let Some(below) = after.below(&self.entry) else {
            return if *after < self.entry { self.from(0, 0) } else { None };
        };
        let [number, index @ ..] = below else { return self.from(0, 0) };
        let column = self.columns.partition_point(|column| column.number < *number);
        if self.columns.get(column)?.number != *number {
            return self.from(column, 0);
        }
        let row = self.rows.partition_point(|(other, _)| {
            let other = other.as_slice();
            if inclusive { other < index } else { other <= index }
        });
        self.from(column, row)
    }
}

/// Several views, one behind the other.
#[derive(Clone, Default)]
pub struct Objects {
    groups: Vec<Arc<dyn View>>,
}

impl Objects {
    /// Of views in the order of the MIB, none within another.
    #[must_use]
    pub fn new(groups: Vec<Arc<dyn View>>) -> Self {
        Objects { groups }
    }
}

impl View for Objects {
    fn get(&self, name: &Oid) -> Value {
        let mut values = self.groups.iter().map(|group| group.get(name));
        values.find(|value| *value != Value::NoSuchObject).unwrap_or(Value::NoSuchObject)
    }

    fn next(&self, after: &Oid, inclusive: bool) -> Option<Binding> {
        self.groups.iter().find_map(|group| group.next(after, inclusive))
    }
}
