//! `Write`: a batch of updates, each with its own canonical answer. Nothing that is refused changes anything.

use std::collections::HashMap;

use p4runtime::Fault;
use p4runtime::proto::p4::v1::entity::Entity;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime::proto::p4::v1::update::Type;
use p4runtime::proto::p4::v1::write_request::Atomicity;
use p4runtime::proto::p4::v1::{
    CloneSessionEntry, CounterData, CounterEntry, DirectCounterEntry, TableEntry, Update,
};
use tonic::Code;

use super::counter::{Count, CounterId};
use super::entry::{Condition, Entry, Place};
use super::info::{FieldKind, Info, TableInfo, arguments};
use super::session::{self, Session};
use super::switch::{Stored, Switch};
use super::table::{Call, Pattern, Row};
use super::value::Value;

/// What an update is about: two updates of one batch must not be about the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    Entry(Place),
    Session(u32),
}

/// What an update asks for.
enum Step {
    Entry(Type, Entry, Option<Count>),
    Session(Type, u32, Session),
    Cells(CounterId, Vec<usize>, Option<Count>),
    Direct(Place, Option<Count>),
}

impl Step {
    fn subject(&self) -> Option<Subject> {
        match self {
            Step::Entry(_, entry, _) => Some(Subject::Entry(entry.place.clone())),
            Step::Session(_, id, _) => Some(Subject::Session(*id)),
            Step::Cells(..) | Step::Direct(..) => None,
        }
    }
}

impl Switch {
    /// Applies a batch of updates.
    ///
    /// # Errors
    /// One outcome for each update, in order, where any of them failed. With another atomicity than
    /// `CONTINUE_ON_ERROR` nothing was done then, and what was right is `ABORTED`.
    pub fn write(&mut self, updates: &[Update], atomicity: Atomicity) -> Result<(), Vec<Result<(), Fault>>> {
        let mut steps: Vec<Result<Step, Fault>> = updates.iter().map(|update| self.step(update)).collect();
        let mut first: HashMap<Subject, usize> = HashMap::new();
        let mut room: HashMap<u32, i64> = HashMap::new();
        for (index, step) in steps.iter_mut().enumerate() {
            let Ok(ready) = step else { continue };
            let subject = ready.subject();
            let other = subject.map_or(index, |subject| *first.entry(subject).or_insert(index));
            let admitted = if other == index {
                self.admit(ready, &mut room)
            } else {
                Err(Fault::invalid_argument(format!("update {other} of this batch is of the same entity")))
            };
            if let Err(fault) = admitted {
                *step = Err(fault);
            }
        }
        let failed = steps.iter().any(Result::is_err);
        let doomed = failed && atomicity != Atomicity::ContinueOnError;
        let outcomes: Vec<Result<(), Fault>> = steps
            .into_iter()
            .map(|step| match step? {
                _ if doomed => {
                    Err(Fault::aborted("not done: another update of this all-or-nothing batch failed"))
                }
                step => {
                    self.apply(step);
                    Ok(())
                }
            })
            .collect();
        if failed { Err(outcomes) } else { Ok(()) }
    }

    fn step(&self, update: &Update) -> Result<Step, Fault> {
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
        let entity = entity.ok_or_else(|| Fault::invalid_argument("the update has no entity"))?;
        let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
        if kind == Type::Unspecified {
            return Err(Fault::invalid_argument("the update's type is unspecified"));
        }
        match entity {
            Entity::TableEntry(wire) => self.entry_step(kind, wire),
            Entity::CounterEntry(wire) => self.counter_step(kind, wire),
            Entity::DirectCounterEntry(wire) => self.direct_step(kind, wire),
            Entity::PacketReplicationEngineEntry(wire) => match &wire.r#type {
                Some(Replication::CloneSessionEntry(session)) => session_step(kind, session),
                Some(_) => Err(Fault::unimplemented("multicast groups are not implemented")),
                None => Err(Fault::invalid_argument("the replication entry has no type")),
            },
            _ => Err(unimplemented()),
        }
    }

    fn info(&self) -> &Info {
        &self.program.info
    }

    fn entry_step(&self, kind: Type, wire: &TableEntry) -> Result<Step, Fault> {
        let count = wire.counter_data.as_ref().map(count_of).transpose()?;
        let info = self.info();
        match kind {
            // Whatever else is set does not matter (P4Runtime, "TableEntry").
            Type::Delete => Ok(Step::Entry(kind, bare(info.read_place(wire)?), None)),
            Type::Modify if wire.action.is_none() => Ok(Step::Entry(kind, self.without_action(wire)?, count)),
            _ => Ok(Step::Entry(kind, info.read_entry(wire)?, count)),
        }
    }

    /// A modify without action: an entry keeps its own, a default entry goes back to its first.
    fn without_action(&self, wire: &TableEntry) -> Result<Entry, Fault> {
        let place = self.info().read_place(wire)?;
        let table = self.info().known_table(place.table)?;
        if place.is_default {
            if table.const_default {
                return Err(table.const_default_fault());
            }
            return self.initial_default(table).ok_or_else(|| absent(table));
        }
        let stored = self.stored(&place).ok_or_else(|| absent(table))?;
        Ok(Entry { metadata: wire.metadata.clone(), ..stored.entry.clone() })
    }

    /// The default entry that the program begins with.
    pub(super) fn initial_default(&self, table: &TableInfo) -> Option<Entry> {
        let call = self.program.tables.get(table.table)?.default.as_ref()?;
        let action = table.of_program(call.action)?;
        let place = Place { table: table.id, key: Vec::new(), priority: 0, is_default: true };
        let params = call.args.iter().map(Value::low_u128).collect();
        Some(Entry { place, action: action.id, params, metadata: Vec::new() })
    }

    pub(super) fn stored(&self, place: &Place) -> Option<&Stored> {
        self.stored.get(self.place_of(place.table)?)?.get(place)
    }

    /// A table's place in the P4Info.
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        self.info().tables.iter().position(|table| table.id == id)
    }

    fn counter_step(&self, kind: Type, wire: &CounterEntry) -> Result<Step, Fault> {
        only_modify(kind)?;
        let counter = self.info().counter(wire.counter_id).ok_or_else(|| unknown_counter(wire.counter_id))?;
        let count = wire.data.as_ref().map(count_of).transpose()?;
        let size = self.state.counters.cells(counter.counter).len();
        let cells = cells(&counter.name, size, wire.index.as_ref().map(|index| index.index))?;
        Ok(Step::Cells(counter.counter, cells, count))
    }

    fn direct_step(&self, kind: Type, wire: &DirectCounterEntry) -> Result<Step, Fault> {
        only_modify(kind)?;
        let entry = wire.table_entry.as_ref();
        let entry =
            entry.ok_or_else(|| Fault::invalid_argument("the direct counter entry has no table entry"))?;
        let place = self.info().read_place(entry)?;
        let table = self.info().known_table(place.table)?;
        if !table.has_counter {
            return Err(Fault::invalid_argument(format!("{}: it has no direct counter", table.name)));
        }
        if self.stored(&place).is_none() {
            return Err(absent(table));
        }
        Ok(Step::Direct(place, wire.data.as_ref().map(count_of).transpose()?))
    }

    /// Checks that need the tables as they are.
    fn admit(&self, step: &Step, room: &mut HashMap<u32, i64>) -> Result<(), Fault> {
        let (kind, entry) = match step {
            Step::Entry(kind, entry, _) => (*kind, entry),
            Step::Session(kind, id, _) => {
                return match (kind, self.sessions.contains_key(id)) {
                    (Type::Insert, true) => {
                        Err(Fault::already_exists(format!("clone session {id} exists already")))
                    }
                    (Type::Modify | Type::Delete, false) => {
                        Err(Fault::not_found(format!("there is no clone session {id}")))
                    }
                    _ => Ok(()),
                };
            }
            Step::Cells(..) | Step::Direct(..) => return Ok(()),
        };
        let table = self.info().known_table(entry.place.table)?;
        if entry.place.is_default {
            // P4Runtime, "Default entry": there is always one.
            return match kind {
                Type::Modify => Ok(()),
                _ => Err(Fault::invalid_argument(format!(
                    "{}: a default entry is modified, not inserted or deleted",
                    table.name
                ))),
            };
        }
        if table.const_entries {
            return Err(table.const_entries_fault());
        }
        match (kind, self.stored(&entry.place).is_some()) {
            (Type::Insert, true) => Err(Fault::already_exists(format!(
                "{}: an entry with this match and priority exists already",
                table.name
            ))),
            (Type::Insert, false) => {
                let used = self.place_of(table.id).map_or(0, |place| self.stored[place].len());
                let change = room.entry(table.id).or_default();
                if used as i64 + *change >= table.size as i64 {
                    let what = format!("{} is full: it has {} entries", table.name, table.size);
                    return Err(Fault::resource_exhausted(what));
                }
                *change += 1;
                Ok(())
            }
            (_, false) => Err(absent(table)),
            (Type::Delete, true) => {
                *room.entry(table.id).or_default() -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Entry(kind, entry, count) => self.apply_entry(kind, entry, count),
            Step::Session(Type::Delete, id, _) => drop(self.sessions.remove(&id)),
            Step::Session(_, id, session) => drop(self.sessions.insert(id, session)),
            Step::Cells(counter, cells, Some(count)) => {
                for cell in cells {
                    if let Some(cell) = self.state.counters.cell_mut(counter, cell) {
                        *cell = count;
                    }
                }
            }
            Step::Direct(place, Some(count)) => self.set_count(&place, count),
            Step::Cells(_, _, None) | Step::Direct(_, None) => {}
        }
    }

    fn set_count(&mut self, place: &Place, count: Count) {
        let Some(slot) = self.stored(place).map(|stored| stored.slot) else { return };
        let table = self.info().table(place.table).map(|table| table.table);
        let state = table.and_then(|table| self.state.tables.get_mut(table));
        if let Some(row) = state.and_then(|state| state.rows.row_mut(slot)) {
            row.count = count;
        }
    }

    fn apply_entry(&mut self, kind: Type, entry: Entry, count: Option<Count>) {
        let program = self.program.clone();
        let (Some(position), Some(table)) =
            (self.place_of(entry.place.table), program.info.table(entry.place.table))
        else {
            return;
        };
        let rows = &mut self.state.tables[table.table].rows;
        let stored = &mut self.stored[position];
        if kind == Type::Delete {
            if let Some(stored) = stored.remove(&entry.place) {
                rows.remove(stored.slot);
            }
            return;
        }
        let Some(action) = table.action(entry.action) else { return };
        let call = Call { action: action.action, args: arguments(&entry.params) };
        if entry.place.is_default {
            self.state.tables[table.table].default = Some(call);
            self.defaults[position] = Some(entry);
            return;
        }
        match stored.get_mut(&entry.place) {
            Some(known) => {
                if let Some(row) = rows.row_mut(known.slot) {
                    row.call = call;
                    row.count = count.unwrap_or(row.count);
                }
                known.entry = entry;
            }
            None => {
                let row = row_of(table, &entry, call, count.unwrap_or_default());
                let slot = rows.insert(row);
                stored.insert(entry.place.clone(), Stored { entry, slot, is_const: false });
            }
        }
    }

    /// The entries that the program comes with, as controllers see them.
    pub(super) fn const_entries(&self) -> Vec<HashMap<Place, Stored>> {
        let stored = |table: &TableInfo| {
            let known = &self.program.tables[table.table];
            let rows = known.entries.iter().flatten().enumerate();
            rows.filter_map(|(slot, (row, priority))| {
                let entry = entry_of(table, row, *priority)?;
                Some((entry.place.clone(), Stored { entry, slot, is_const: true }))
            })
            .collect()
        };
        self.info().tables.iter().map(stored).collect()
    }
}

fn row_of(table: &TableInfo, entry: &Entry, call: Call, count: Count) -> Row {
    let key = &entry.place.key;
    let mut patterns: Vec<(usize, Pattern)> = key
        .iter()
        .filter_map(|(id, condition)| {
            table.field(*id).map(|field| (field.place, condition.pattern(field.bits)))
        })
        .collect();
    patterns.sort_by_key(|(place, _)| *place);
    let prefix = key.iter().find_map(|(_, condition)| match condition {
        Condition::Lpm { length, .. } => Some(i64::from(*length)),
        _ => None,
    });
    let rank = if table.has_priority() { entry.place.priority.into() } else { prefix.unwrap_or_default() };
    Row { patterns, rank, call, count }
}

/// The entry of a row of the program's own. BMv2's priorities count down from the largest integer.
fn entry_of(table: &TableInfo, row: &Row, priority: i64) -> Option<Entry> {
    let mut key = Vec::new();
    for field in &table.fields {
        let pattern = row.patterns.iter().find(|(place, _)| *place == field.place)?.1;
        let all = super::entry::all_ones(field.bits);
        let condition = match (pattern, field.kind) {
            (Pattern::Exact(value), _) => Condition::Exact(value),
            (Pattern::Masked { mask: 0, .. }, _) => continue,
            (Pattern::Masked { value, .. }, FieldKind::Optional) => Condition::Optional(value),
            (Pattern::Masked { value, mask }, FieldKind::Lpm) => {
                Condition::Lpm { value, length: mask.count_ones() }
            }
            (Pattern::Masked { value, mask }, _) => Condition::Ternary { value, mask },
            (Pattern::Range { low: 0, high }, _) if high == all => continue,
            (Pattern::Range { low, high }, _) => Condition::Range { low, high },
        };
        key.push((field.id, condition));
    }
    let priority = i32::try_from(i64::from(i32::MAX) - priority).unwrap_or(1);
    let place = Place {
        table: table.id,
        key,
        priority: if table.has_priority() { priority } else { 0 },
        is_default: false,
    };
    let action = table.of_program(row.call.action)?;
    let params = row.call.args.iter().map(Value::low_u128).collect();
    Some(Entry { place, action: action.id, params, metadata: Vec::new() })
}

fn session_step(kind: Type, wire: &CloneSessionEntry) -> Result<Step, Fault> {
    let id = session::id_of(wire)?;
    let session = match kind {
        Type::Delete => Session { replicas: Vec::new(), wire: CloneSessionEntry::default() },
        _ => Session::read(wire)?,
    };
    Ok(Step::Session(kind, id, session))
}

/// For entities that this interpreter lacks.
pub(super) fn unimplemented() -> Fault {
    Fault::unimplemented(
        "there are table entries, counter entries, direct counter entries and clone sessions only",
    )
}

pub(super) fn unknown_counter(id: u32) -> Fault {
    Fault::invalid_argument(format!("counter id {id:#010x} is unknown"))
}

fn absent(table: &TableInfo) -> Fault {
    Fault::not_found(format!("{}: there is no entry with this match and priority", table.name))
}

fn only_modify(kind: Type) -> Result<(), Fault> {
    if kind == Type::Modify {
        return Ok(());
    }
    Err(Fault::invalid_argument("counters are modified, not inserted or deleted"))
}

fn bare(place: Place) -> Entry {
    Entry { place, action: 0, params: Vec::new(), metadata: Vec::new() }
}

/// One cell of an array, or all.
pub(super) fn cells(name: &str, size: usize, index: Option<i64>) -> Result<Vec<usize>, Fault> {
    let Some(index) = index else { return Ok((0..size).collect()) };
    match usize::try_from(index) {
        Err(_) => Err(Fault::invalid_argument(format!("{name}: index {index} is negative"))),
        Ok(cell) if cell >= size => {
            Err(Fault::new(Code::OutOfRange, format!("{name}: index {index} is not below {size}")))
        }
        Ok(cell) => Ok(vec![cell]),
    }
}

fn count_of(data: &CounterData) -> Result<Count, Fault> {
    match (u64::try_from(data.packet_count), u64::try_from(data.byte_count)) {
        (Ok(packets), Ok(bytes)) => Ok(Count { packets, bytes }),
        _ => Err(Fault::invalid_argument("a counter cannot be set below 0")),
    }
}
