//! From the entries that are to those that are wanted: the updates between, in an order that never sends
//! a frame astray on a device that applies them one by one.

use dataplane::entry::{Entry, EntryKey, P4Id, Update};
use dataplane::tables::{self, Family};
use site::{Ids, Site};

/// Entries by their places. A copy shares what neither changes.
pub type Entries = imbl::HashMap<EntryKey, Entry>;

/// The entries of a data plane. Rules, which can be many and follow from the configuration alone, stand apart from
/// the others, which follow from the state of pairs and units as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// Of the rule tables.
    pub rules: Entries,
    /// Of all others.
    pub rest: Entries,
}

/// Entries by their places.
#[must_use]
pub fn by_place(entries: impl IntoIterator<Item = Entry>) -> Entries {
    entries.into_iter().map(|entry| (entry.place(), entry)).collect()
}

fn is_rule(table: P4Id) -> bool {
    Family::BOTH.iter().any(|family| family.table() == table)
}

impl Tables {
    /// What was read.
    #[must_use]
    pub fn of(entries: Vec<Entry>) -> Self {
        let (rules, rest): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| is_rule(entry.table));
        Tables { rules: by_place(rules), rest: by_place(rest) }
    }

    /// The entry at a place.
    #[must_use]
    pub fn get(&self, place: &EntryKey) -> Option<&Entry> {
        if is_rule(place.table) { self.rules.get(place) } else { self.rest.get(place) }
    }

    /// All entries.
    pub fn values(&self) -> impl Iterator<Item = &Entry> {
        self.rest.values().chain(self.rules.values())
    }

    /// All entries, to be changed in place.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (&EntryKey, &mut Entry)> {
        self.rest.iter_mut().chain(self.rules.iter_mut())
    }

    /// Takes in what was written.
    pub fn take(&mut self, updates: &[Update]) {
        for update in updates {
            match update {
                Update::Insert(entry) | Update::Modify(entry) => {
                    let part = if is_rule(entry.table) { &mut self.rules } else { &mut self.rest };
                    part.insert(entry.place(), entry.clone());
                }
                Update::Delete(entry) => {
                    let part = if is_rule(entry.table) { &mut self.rules } else { &mut self.rest };
                    part.remove(&entry.place());
                }
            }
        }
    }
}

/// Updates between tables, not in their order yet.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    inserts: Vec<Entry>,
    changes: Vec<Entry>,
    deletes: Vec<Entry>,
}

impl Updates {
    /// Adds those from some entries to the ones that are wanted in their stead.
    pub fn add(&mut self, actual: &Entries, wanted: &Entries) {
        for (place, entry) in wanted {
            match actual.get(place) {
                Some(is) if is == entry => {}
                Some(_) => self.changes.push(entry.clone()),
                // A default action is always there.
                None if entry.is_default => self.changes.push(entry.clone()),
                None => self.inserts.push(entry.clone()),
            }
        }
        let gone = actual.iter().filter(|(place, entry)| !entry.is_default && !wanted.contains_key(*place));
        self.deletes.extend(gone.map(|(_, entry)| entry.clone()));
    }

    /// Adds those of the rules between two sites, where the tables are known to have the first one's.
    pub fn add_rules(&mut self, before: (&Site, &Ids), after: (&Site, &Ids)) {
        // All of them together: a flow may take the place of another.
        let changed = site::changed_flows(before, after);
        let rules = |(site, ids): (&Site, &Ids)| {
            by_place(changed.iter().flat_map(|flow| site::rules_of(site, ids, flow)))
        };
        self.add(&rules(before), &rules(after));
    }

    /// New entries from the end of the frame's way to its beginning, then changes in the same order, then what goes,
    /// the other way round. So nothing points to what is not there.
    #[must_use]
    pub fn in_order(mut self) -> Vec<Update> {
        self.inserts.sort_by(|a, b| (rank(b.table), a).cmp(&(rank(a.table), b)));
        self.changes.sort_by(|a, b| (rank(b.table), a).cmp(&(rank(a.table), b)));
        self.deletes.sort_by(|a, b| (rank(a.table), a).cmp(&(rank(b.table), b)));
        self.inserts
            .into_iter()
            .map(Update::Insert)
            .chain(self.changes.into_iter().map(Update::Modify))
            .chain(self.deletes.into_iter().map(Update::Delete))
            .collect()
    }
}

/// The updates from `actual` to `wanted`, in their order.
#[must_use]
pub fn difference(actual: &Entries, wanted: &Entries) -> Vec<Update> {
    let mut updates = Updates::default();
    updates.add(actual, wanted);
    updates.in_order()
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
