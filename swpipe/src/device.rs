//! The device: entries of all tables, checked and applied, published to workers as snapshots.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use dataplane::entry::{Entry, EntryError, EntryKey, P4Id, Update};
use dataplane::tables::{self, TableEntry};
use dataplane::target::{SWPIPE, TargetProfile};

use crate::counters::{Count, Counters, Place, RULE_SLOTS};
use crate::shared_set::SharedSet;
use crate::tables::{RuleSlot, Seat, Snapshot};

/// Whether a batch is taken as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// What is right is done, what is wrong is reported.
    ContinueOnError,
    /// All or nothing; workers see all of it at once.
    AllOrNothing,
}

/// Why an update was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateFault {
    /// Against the schema.
    #[error(transparent)]
    Invalid(#[from] EntryError),
    /// An insert where something is.
    #[error("table {0}: an entry with this match and priority exists already")]
    Exists(&'static str),
    /// A modify or delete where nothing is.
    #[error("table {0}: there is no entry with this match and priority")]
    Absent(&'static str),
    /// No room.
    #[error("table {table} is full: it has {size} entries")]
    Full {
        /// The table's name.
        table: &'static str,
        /// Its size.
        size: usize,
    },
    /// Two updates of one batch name the same entry: their order would be undefined.
    #[error("table {table}: update {other} of this batch is of the same entry")]
    Twice {
        /// The table's name.
        table: &'static str,
        /// Index of the first such update.
        other: usize,
    },
    /// Fine by itself, but another update of an all-or-nothing batch is not.
    #[error("not done: another update of this all-or-nothing batch failed")]
    Aborted,
}

/// An entry as the device holds it. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Held(Arc<Row>);

#[derive(Debug)]
struct Row {
    place: EntryKey,
    action: P4Id,
    params: Box<[u128]>,
    metadata: Box<[u8]>,
    seat: Seat,
}

impl Held {
    fn new(place: EntryKey, entry: &Entry, seat: Seat) -> Self {
        let (params, metadata) = (entry.params.as_slice().into(), entry.metadata.as_slice().into());
        Held(Arc::new(Row { place, action: entry.action, params, metadata, seat }))
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &EntryKey {
        &self.0.place
    }

    /// What it does.
    #[must_use]
    pub fn action(&self) -> P4Id {
        self.0.action
    }

    /// What it was written with.
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.0.metadata
    }

    /// The counter of a rule.
    #[must_use]
    pub fn slot(&self) -> RuleSlot {
        self.0.seat.slot
    }

    /// The entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let Row { place, action, params, metadata, .. } = &*self.0;
        Entry {
            table: place.table,
            key: place.key.clone(),
            priority: place.priority,
            action: *action,
            params: params.to_vec(),
            metadata: metadata.to_vec(),
            is_default: place.is_default,
        }
    }
}

// A place has one entry at most, and sets of entries are looked into by place.
impl Borrow<EntryKey> for Held {
    fn borrow(&self) -> &EntryKey {
        &self.0.place
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.0.place == other.0.place
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.place.cmp(&other.0.place)
    }
}

/// The entries of all tables at one instant. A clone takes microseconds, so that no write waits for a read.
#[derive(Clone, Debug, Default)]
pub struct Rows(BTreeMap<P4Id, SharedSet<Held>>);

impl Rows {
    /// Entries of a table, or of all, in the order of their places; a settable default action is among them once
    /// it was written.
    pub fn of(&self, table: Option<P4Id>) -> impl Iterator<Item = &Held> {
        let rows = self.0.iter().filter(move |(id, _)| table.is_none_or(|wanted| wanted == **id));
        rows.flat_map(|(_, rows)| rows.iter())
    }

    /// The entry at a place.
    #[must_use]
    pub fn at(&self, place: &EntryKey) -> Option<&Held> {
        self.0.get(&place.table)?.get(place)
    }

    fn count(&self, table: P4Id) -> usize {
        self.0.get(&table).map_or(0, SharedSet::len)
    }

    /// Of all rules.
    fn rules(&self) -> impl Iterator<Item = &Held> {
        tables::Family::BOTH.into_iter().flat_map(|family| self.of(Some(family.table())))
    }
}

struct State {
    rows: Rows,
    free_slots: VecDeque<RuleSlot>,
    next_slot: u32,
    next_turn: u64,
}

/// The device.
pub struct Device {
    profile: &'static TargetProfile,
    state: Mutex<State>,
    snapshot: ArcSwap<Snapshot>,
    counters: Counters,
}

impl Default for Device {
    fn default() -> Self {
        Device::new(&SWPIPE)
    }
}

/// Checks that need the rows as they are; the batch names no entry twice, so updates are independent.
fn admissible(
    profile: &TargetProfile,
    state: &State,
    update: &Update,
    place: &EntryKey,
    room: &mut HashMap<P4Id, i64>,
) -> Result<(), UpdateFault> {
    let entry = update.entry();
    let table = tables::by_id(entry.table).ok_or(EntryError::UnknownTable(entry.table))?;
    let exists = state.rows.at(place).is_some();
    match update {
        Update::Insert(entry) => {
            TableEntry::parse(entry)?;
            if entry.is_default {
                // P4Runtime, "Default entry": there is always one, it is modified.
                return Err(EntryError::DefaultAction {
                    table: table.name,
                    what: "a default entry is modified, not inserted or deleted",
                }
                .into());
            }
            if exists {
                return Err(UpdateFault::Exists(table.name));
            }
            let used = state.rows.count(table.id) as i64 + room.get(&table.id).copied().unwrap_or(0);
            let size = profile.table_size(table);
            if used >= size as i64 {
                return Err(UpdateFault::Full { table: table.name, size });
            }
            *room.entry(table.id).or_default() += 1;
            Ok(())
        }
        Update::Modify(entry) => {
            TableEntry::parse(entry)?;
            if exists || entry.is_default { Ok(()) } else { Err(UpdateFault::Absent(table.name)) }
        }
        Update::Delete(entry) => {
            if entry.is_default {
                return Err(EntryError::DefaultAction {
                    table: table.name,
                    what: "a default entry is modified, not inserted or deleted",
                }
                .into());
            }
            table.check_place(place)?;
            if !exists {
                return Err(UpdateFault::Absent(table.name));
            }
            *room.entry(table.id).or_default() -= 1;
            Ok(())
        }
    }
}

/// Where each update of a batch is.
fn places_of(updates: &[Update]) -> Vec<EntryKey> {
    updates.iter().map(|update| update.entry().place()).collect()
}

/// What would come of each update of a batch.
fn check(
    profile: &TargetProfile,
    state: &State,
    updates: &[Update],
    places: &[EntryKey],
) -> Vec<Result<(), UpdateFault>> {
    let mut room = HashMap::new();
    let mut first_of: HashMap<&EntryKey, usize> = HashMap::with_capacity(updates.len());
    updates
        .iter()
        .zip(places)
        .enumerate()
        .map(|(index, (update, place))| {
            let other = *first_of.entry(place).or_insert(index);
            if other != index {
                let table = tables::by_id(place.table).map_or("", |table| table.name);
                return Err(UpdateFault::Twice { table, other });
            }
            admissible(profile, state, update, place, &mut room)
        })
        .collect()
}

impl Device {
    /// A device with the limits of a target: how far it parses, how many entries its tables take.
    #[must_use]
    pub fn new(profile: &'static TargetProfile) -> Self {
        Device {
            profile,
            state: Mutex::new(State {
                rows: Rows::default(),
                free_slots: VecDeque::new(),
                next_slot: 0,
                next_turn: 0,
            }),
            snapshot: ArcSwap::from_pointee(Snapshot::empty(profile.parse)),
            counters: Counters::default(),
        }
    }

    /// The target whose limits it has.
    #[must_use]
    pub fn profile(&self) -> &'static TargetProfile {
        self.profile
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables as they are; a worker takes one for each batch.
    #[must_use]
    pub fn snapshot(&self) -> &ArcSwap<Snapshot> {
        &self.snapshot
    }

    /// Counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Applies a batch. Workers see its effect at once, in one new snapshot.
    ///
    /// # Errors
    /// One result for each update, in order, where any of them failed.
    pub fn write(
        &self,
        updates: &[Update],
        atomicity: Atomicity,
    ) -> Result<(), Vec<Result<(), UpdateFault>>> {
        let places = places_of(updates);
        let mut state = self.state();
        let mut results = check(self.profile, &state, updates, &places);
        let failed = results.iter().any(Result::is_err);
        if failed && atomicity == Atomicity::AllOrNothing {
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(UpdateFault::Aborted);
            }
            return Err(results);
        }
        let mut next = Snapshot::clone(&self.snapshot.load());
        for ((update, place), _) in
            updates.iter().zip(places).zip(&results).filter(|(_, result)| result.is_ok())
        {
            self.apply(&mut state, &mut next, update, place);
        }
        self.snapshot.store(Arc::new(next));
        if failed { Err(results) } else { Ok(()) }
    }

    /// What [`Device::write`] would say to each update; changes nothing.
    ///
    /// # Errors
    /// One result for each update, in order.
    pub fn check(&self, updates: &[Update]) -> Vec<Result<(), UpdateFault>> {
        check(self.profile, &self.state(), updates, &places_of(updates))
    }

    /// Applies an admissible update of a place.
    fn apply(&self, state: &mut State, next: &mut Snapshot, update: &Update, place: EntryKey) {
        let entry = update.entry();
        match update {
            Update::Insert(_) | Update::Modify(_) => {
                let Ok(parsed) = TableEntry::parse(entry) else { return };
                let known = state.rows.at(&place).map(|held| held.0.seat);
                let seat = match (known, &parsed) {
                    (Some(seat), _) => seat,
                    (None, TableEntry::Rule(_)) => {
                        state.next_turn += 1;
                        Seat { slot: self.take_slot(state), turn: state.next_turn }
                    }
                    (None, _) => Seat::default(),
                };
                next.set(&parsed, seat);
                state.rows.0.entry(entry.table).or_default().replace(Held::new(place, entry, seat));
            }
            Update::Delete(_) => {
                let Some(held) = state.rows.0.get_mut(&entry.table).and_then(|rows| rows.take(&place)) else {
                    return;
                };
                if let Ok(parsed) = TableEntry::parse(&held.entry()) {
                    next.clear(&parsed, held.0.seat);
                    if matches!(parsed, TableEntry::Rule(_)) {
                        state.free_slots.push_back(held.slot());
                    }
                }
            }
        }
    }

    /// A counter for a new rule, at zero. The longest-freed one is taken, since a worker may still count
    /// into one of its last batch.
    fn take_slot(&self, state: &mut State) -> RuleSlot {
        let slot = if (state.next_slot as usize) < RULE_SLOTS {
            state.next_slot += 1;
            RuleSlot(state.next_slot - 1)
        } else {
            // The rule tables hold as many rules as there are slots, so one is free.
            state.free_slots.pop_front().unwrap_or_default()
        };
        self.counters.set(Place::Rule(slot), Count::default());
        slot
    }

    /// The entries as they are.
    #[must_use]
    pub fn rows(&self) -> Rows {
        self.state().rows.clone()
    }

    /// Entries of a table, or of all; a settable default action is among them once it was written.
    #[must_use]
    pub fn entries(&self, table: Option<P4Id>) -> Vec<Entry> {
        self.rows().of(table).map(Held::entry).collect()
    }

    /// The entry at a place.
    #[must_use]
    pub fn entry(&self, place: &EntryKey) -> Option<Entry> {
        self.state().rows.at(place).map(Held::entry)
    }

    /// Counter of the rule at a place.
    #[must_use]
    pub fn rule_slot(&self, place: &EntryKey) -> Option<RuleSlot> {
        self.state().rows.at(place).map(Held::slot)
    }

    /// Names of rules by their counters: the metadata that they were written with.
    #[must_use]
    pub fn rule_names(&self) -> HashMap<RuleSlot, String> {
        self.rows()
            .rules()
            .map(|held| (held.slot(), String::from_utf8_lossy(held.metadata()).into_owned()))
            .collect()
    }

    /// Puts these entries in the place of all there are, as a new pipeline configuration does. Workers see
    /// it at once, in one new snapshot; entries that the schema does not allow are left out.
    pub fn replace(&self, entries: &[Entry]) {
        let mut state = self.state();
        let before = std::mem::take(&mut state.rows);
        state.free_slots.extend(before.rules().map(Held::slot));
        let mut next = Snapshot::empty(self.profile.parse);
        for entry in entries {
            self.apply(&mut state, &mut next, &Update::Insert(entry.clone()), entry.place());
        }
        self.snapshot.store(Arc::new(next));
    }
}
