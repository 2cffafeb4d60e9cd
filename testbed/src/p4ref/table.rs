//! Tables: entries by place, lookups by key.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::counter::Count;
use super::value::Value;

/// What a key's field must be. Fields that do not matter have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Exact(u128),
    Masked { value: u128, mask: u128 },
    Range { low: u128, high: u128 },
}

impl Pattern {
    fn matches(self, value: u128) -> bool {
        match self {
            Pattern::Exact(wanted) => value == wanted,
            Pattern::Masked { value: wanted, mask } => value & mask == wanted,
            Pattern::Range { low, high } => low <= value && value <= high,
        }
    }
}

/// An action and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Place of the action in the program.
    pub(super) action: usize,
    pub(super) args: Vec<Value>,
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// By place in the key.
    pub(super) patterns: Vec<(usize, Pattern)>,
    /// Larger wins; for LPM the prefix length.
    pub(super) rank: i64,
    pub(super) call: Call,
    pub(super) count: Count,
}

/// A table's entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    slots: Vec<Option<Row>>,
    free: BTreeSet<usize>,
    /// Where all fields are exact.
    exact: HashMap<Vec<u128>, usize>,
    /// Where not: best first. Among equals the lowest slot wins, as in BMv2, which fills the lowest free one.
    ranked: BTreeSet<(Reverse<i64>, usize)>,
    all_exact: bool,
}

impl Rows {
    pub(super) fn new(all_exact: bool) -> Self {
        Rows { all_exact, ..Rows::default() }
    }

    /// The whole key of a row whose fields are all exact.
    fn exact_key(row: &Row) -> Vec<u128> {
        let value = |pattern: &(usize, Pattern)| match pattern.1 {
            Pattern::Exact(value) | Pattern::Masked { value, .. } | Pattern::Range { low: value, .. } => {
                value
            }
        };
        row.patterns.iter().map(value).collect()
    }

    pub(super) fn insert(&mut self, row: Row) -> usize {
        let slot = self.free.pop_first().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        if self.all_exact {
            self.exact.insert(Self::exact_key(&row), slot);
        } else {
            self.ranked.insert((Reverse(row.rank), slot));
        }
        self.slots[slot] = Some(row);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let Some(row) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        if self.all_exact {
            self.exact.remove(&Self::exact_key(&row));
        } else {
            self.ranked.remove(&(Reverse(row.rank), slot));
        }
        self.free.insert(slot);
    }

    pub(super) fn row(&self, slot: usize) -> Option<&Row> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn row_mut(&mut self, slot: usize) -> Option<&mut Row> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(super) fn lookup(&self, key: &[u128]) -> Option<usize> {
        if self.all_exact {
            return self.exact.get(key).copied();
        }
        let hit = |row: &Row| {
            row.patterns
                .iter()
                .all(|(place, pattern)| key.get(*place).is_some_and(|value| pattern.matches(*value)))
        };
        self.ranked.iter().map(|(_, slot)| *slot).find(|slot| self.row(*slot).is_some_and(hit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: i64, patterns: Vec<(usize, Pattern)>) -> Row {
        Row { patterns, rank, call: Call { action: rank as usize, args: vec![] }, count: Count::default() }
    }

    fn action(rows: &Rows, key: &[u128]) -> Option<usize> {
        rows.lookup(key).and_then(|slot| rows.row(slot)).map(|row| row.call.action)
    }

    #[test]
    fn the_highest_rank_that_matches_wins() {
        let mut rows = Rows::new(false);
        rows.insert(row(1, vec![]));
        rows.insert(row(7, vec![(0, Pattern::Masked { value: 0x10, mask: 0xf0 })]));
        let range = rows.insert(row(9, vec![(1, Pattern::Range { low: 5, high: 6 })]));
        assert_eq!(action(&rows, &[0x15, 7]), Some(7));
        assert_eq!(action(&rows, &[0x15, 6]), Some(9));
        assert_eq!(action(&rows, &[0x25, 4]), Some(1));
        rows.remove(range);
        assert_eq!(action(&rows, &[0x15, 6]), Some(7));
    }

    #[test]
    fn among_equals_the_lowest_slot_wins() {
        let mut rows = Rows::new(false);
        let first = rows.insert(row(3, vec![]));
        let second = rows.insert(row(3, vec![]));
        assert_eq!(rows.lookup(&[0]), Some(first));
        rows.remove(first);
        assert_eq!(rows.lookup(&[0]), Some(second));
        assert_eq!(rows.insert(row(3, vec![])), first);
        assert_eq!(rows.lookup(&[0]), Some(first));
    }

    #[test]
    fn exact_keys_are_found_whole() {
        let mut rows = Rows::new(true);
        let slot = rows.insert(row(0, vec![(0, Pattern::Exact(1)), (1, Pattern::Exact(2))]));
        assert_eq!(rows.lookup(&[1, 2]), Some(slot));
        assert_eq!(rows.lookup(&[2, 1]), None);
        rows.remove(slot);
        assert_eq!(rows.lookup(&[1, 2]), None);
    }
}
