//! From the entries that are to those that are wanted: the updates between, in an order that never sends
//! a frame astray on a device that applies them one by one.

use std::collections::HashMap;

use dataplane::entry::{Entry, EntryKey, P4Id, Update};
use dataplane::tables;

/// Entries by their places.
pub type Entries = HashMap<EntryKey, Entry>;

/// Entries by their places.
#[must_use]
pub fn by_place(entries: Vec<Entry>) -> Entries {
    entries.into_iter().map(|entry| (entry.place(), entry)).collect()
}

/// The updates from `actual` to `wanted`: new entries from the end of the frame's way to its beginning, then
/// changes in the same order, then what goes, the other way round. So nothing points to what is not there.
#[must_use]
pub fn difference(actual: &Entries, wanted: &Entries) -> Vec<Update> {
    let mut inserts = Vec::new();
    let mut changes = Vec::new();
    for (place, entry) in wanted {
        match actual.get(place) {
            Some(is) if is == entry => {}
            Some(_) => changes.push(entry),
            // A default action is always there.
            None if entry.is_default => changes.push(entry),
            None => inserts.push(entry),
        }
    }
    let mut deletes: Vec<&Entry> = actual
        .iter()
        .filter(|(place, entry)| !entry.is_default && !wanted.contains_key(*place))
        .map(|(_, entry)| entry)
        .collect();
    inserts.sort_by_key(|entry| (std::cmp::Reverse(rank(entry.table)), *entry));
    changes.sort_by_key(|entry| (std::cmp::Reverse(rank(entry.table)), *entry));
    deletes.sort_by_key(|entry| (rank(entry.table), *entry));
    inserts
        .into_iter()
        .map(|entry| Update::Insert(entry.clone()))
        .chain(changes.into_iter().map(|entry| Update::Modify(entry.clone())))
        .chain(deletes.into_iter().map(|entry| Update::Delete(entry.clone())))
        .collect()
}

/// Where on a frame's way the table stands.
fn rank(table: P4Id) -> usize {
    tables::ALL.iter().position(|other| other.id == table).unwrap_or(usize::MAX)
}

/// How many updates of each kind: inserts, changes, deletes.
#[must_use]
pub fn tally(updates: &[Update]) -> (usize, usize, usize) {
    updates.iter().fold((0, 0, 0), |(inserts, changes, deletes), update| match update {
        Update::Insert(_) => (inserts + 1, changes, deletes),
        Update::Modify(_) => (inserts, changes + 1, deletes),
        Update::Delete(_) => (inserts, changes, deletes + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::tables::{
        PairForwarding, PairPortEntry, PairStateEntry, PortEntry, PortRole, SteeringEntry,
    };
    use dataplane::{LinkIndex, PairId, PortId, Side, SteeringMode};

    fn entries(list: Vec<Entry>) -> Entries {
        by_place(list)
    }

    fn state(pair: u16, forwarding: PairForwarding) -> Entry {
        PairStateEntry { pair: PairId(pair), forwarding }.entry()
    }

    #[test]
    fn equal_tables_have_no_difference() {
        let same = entries(vec![state(1, PairForwarding::Up)]);
        assert!(difference(&same, &same).is_empty());
    }

    #[test]
    fn the_default_entry_is_modified_never_inserted() {
        let wanted = entries(vec![SteeringEntry { mode: SteeringMode::default() }.entry()]);
        assert!(matches!(difference(&Entries::new(), &wanted)[..], [Update::Modify(_)]));
        assert!(difference(&wanted, &Entries::new()).is_empty());
    }

    #[test]
    fn what_is_pointed_to_comes_before_what_points_and_goes_after_it() {
        let port = PortEntry {
            port: PortId(1),
            role: PortRole::Link { link: LinkIndex(0), side: Side::Lan, peer: PortId(2) },
        }
        .entry();
        let pair = PairPortEntry { pair: PairId(1), side: Side::Lan, port: PortId(9) }.entry();
        let all = entries(vec![port.clone(), pair.clone()]);
        assert_eq!(
            difference(&Entries::new(), &all),
            [Update::Insert(pair.clone()), Update::Insert(port.clone())]
        );
        assert_eq!(difference(&all, &Entries::new()), [Update::Delete(port), Update::Delete(pair)]);
    }

    #[test]
    fn one_changed_entry_is_one_update() {
        let before = entries(vec![state(1, PairForwarding::Up), state(2, PairForwarding::Up)]);
        let after = entries(vec![state(1, PairForwarding::Up), state(2, PairForwarding::Bypass)]);
        let updates = difference(&before, &after);
        assert_eq!(updates, [Update::Modify(state(2, PairForwarding::Bypass))]);
        assert_eq!(tally(&updates), (0, 1, 0));
    }
}
