//! `Write`: a batch of updates, each with its own canonical answer.

use dataplane::entry::{self, Entry, EntryError, P4Id};
use dataplane::schema::{self, DefaultAction};
use dataplane::tables;
use p4runtime::entry::{clone_session_from_wire, clone_session_place_from_wire, from_wire, place_from_wire};
use p4runtime::proto::p4::v1::entity::Entity;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime::proto::p4::v1::update::Type;
use p4runtime::proto::p4::v1::write_request::Atomicity as AskedAtomicity;
use p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, PacketReplicationEngineEntry, TableEntry, Update,
    WriteRequest, WriteResponse,
};
use p4runtime::{Fault, WriteErrors};
use tonic::{Code, Status};

use super::Shared;
use crate::counters::{Count, Place};
use crate::device::{Atomicity, Device, UpdateFault};

impl From<UpdateFault> for Fault {
    /// P4Runtime, "Write RPC" and "Error Reporting Messages".
    fn from(fault: UpdateFault) -> Self {
        let text = fault.to_string();
        match fault {
            UpdateFault::Invalid(error) => error.into(),
            UpdateFault::Exists(_) => Fault::already_exists(text),
            UpdateFault::Absent(_) => Fault::not_found(text),
            UpdateFault::Full { .. } => Fault::resource_exhausted(text),
            UpdateFault::Twice { .. } => Fault::invalid_argument(text),
            UpdateFault::Aborted => Fault::aborted(text),
        }
    }
}

/// What an update asks for.
enum Asked {
    /// Change an entry, and set its counter where a value is given.
    Entry(entry::Update, Option<Count>),
    /// Set counters.
    Counters(Vec<Place>, Option<Count>),
}

/// What is left to do once the device has the entries.
enum Step {
    /// Set the counter of the entry that is this one of the device's batch, where a value is given.
    Entry(usize, Option<Count>),
    /// Set counters.
    Counters(Vec<Place>, Option<Count>),
}

impl Shared {
    pub(super) fn write(&self, request: &WriteRequest) -> Result<WriteResponse, Status> {
        let _permit = self.controllers.admit(request)?;
        let atomicity = match AskedAtomicity::try_from(request.atomicity) {
            Ok(AskedAtomicity::ContinueOnError) => Atomicity::ContinueOnError,
            // One snapshot holds the whole batch, so both are as strict as the stricter one.
            Ok(AskedAtomicity::RollbackOnError | AskedAtomicity::DataplaneAtomic) => Atomicity::AllOrNothing,
            Err(_) => return Err(Status::invalid_argument("the request's atomicity is unknown")),
        };
        let forwarding = self.forwarding();
        let device = forwarding.tables()?;
        write_batch(device, &request.updates, atomicity).into_result()?;
        Ok(WriteResponse {})
    }
}

fn write_batch(device: &Device, updates: &[Update], atomicity: Atomicity) -> WriteErrors {
    // The device sees entries alone: `positions` are their places in the request.
    let (mut positions, mut entries) = (Vec::new(), Vec::with_capacity(updates.len()));
    let mut steps: Vec<Result<Step, Fault>> = updates
        .iter()
        .enumerate()
        .map(|(position, update)| match asked(device, update)? {
            Asked::Entry(update, count) => {
                positions.push(position);
                entries.push(update);
                Ok(Step::Entry(entries.len() - 1, count))
            }
            Asked::Counters(places, count) => Ok(Step::Counters(places, count)),
        })
        .collect();
    let doomed = atomicity == Atomicity::AllOrNothing && steps.iter().any(Result::is_err);
    let results = if doomed {
        device.check(&entries)
    } else {
        match device.write(&entries, atomicity) {
            Ok(()) => Vec::new(),
            Err(results) => results,
        }
    };
    for (position, result) in positions.iter().zip(results) {
        if let (Err(fault), Some(step)) = (result, steps.get_mut(*position)) {
            *step = Err(in_request(fault, &positions).into());
        }
    }
    let doomed = atomicity == Atomicity::AllOrNothing && steps.iter().any(Result::is_err);
    steps
        .into_iter()
        .map(|step| match step? {
            _ if doomed => Err(UpdateFault::Aborted.into()),
            Step::Entry(at, count) => {
                let entry = count.and(entries.get(at)).map(entry::Update::entry);
                let slot = entry.and_then(|entry| device.rule_slot(&entry.place()));
                if let Some((count, slot)) = count.zip(slot) {
                    device.counters().set(Place::Rule(slot), count);
                }
                Ok(())
            }
            Step::Counters(places, count) => {
                if let Some(count) = count {
                    places.into_iter().for_each(|place| device.counters().set(place, count));
                }
                Ok(())
            }
        })
        .collect()
}

/// The fault with indices of the request, where it has indices of the device's batch.
fn in_request(fault: UpdateFault, positions: &[usize]) -> UpdateFault {
    match fault {
        UpdateFault::Twice { table, other } => {
            UpdateFault::Twice { table, other: positions.get(other).copied().unwrap_or(other) }
        }
        other => other,
    }
}

fn asked(device: &Device, update: &Update) -> Result<Asked, Fault> {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    let entity = entity.ok_or_else(|| Fault::invalid_argument("the update has no entity"))?;
    let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
    if kind == Type::Unspecified {
        return Err(Fault::invalid_argument("the update's type is unspecified"));
    }
    match entity {
        Entity::TableEntry(wire) => asked_entry(device, kind, wire),
        Entity::CounterEntry(wire) => asked_counter(kind, wire),
        Entity::DirectCounterEntry(wire) => asked_direct_counter(device, kind, wire),
        Entity::PacketReplicationEngineEntry(wire) => asked_replication(kind, wire),
        _ => Err(unimplemented()),
    }
}

/// For entities that the program does not have.
pub(super) fn unimplemented() -> Fault {
    Fault::unimplemented(
        "this device has table entries, counter entries, direct counter entries and clone sessions only",
    )
}

fn asked_replication(kind: Type, wire: &PacketReplicationEngineEntry) -> Result<Asked, Fault> {
    let Some(Replication::CloneSessionEntry(wire)) = &wire.r#type else { return Err(unimplemented()) };
    let update = match kind {
        Type::Delete => entry::Update::Delete(bare(clone_session_place_from_wire(wire)?)),
        Type::Insert => entry::Update::Insert(clone_session_from_wire(wire)?),
        _ => entry::Update::Modify(clone_session_from_wire(wire)?),
    };
    Ok(Asked::Entry(update, None))
}

fn asked_entry(device: &Device, kind: Type, wire: &TableEntry) -> Result<Asked, Fault> {
    let count = wire.counter_data.as_ref().map(count_of).transpose()?;
    let update = match kind {
        Type::Insert => entry::Update::Insert(from_wire(wire)?),
        Type::Delete => {
            // Whatever else is set does not matter (P4Runtime, "TableEntry").
            let place = place_from_wire(wire)?;
            return Ok(Asked::Entry(entry::Update::Delete(bare(place)), None));
        }
        _ if wire.action.is_some() => entry::Update::Modify(from_wire(wire)?),
        _ => entry::Update::Modify(without_action(device, wire)?),
    };
    Ok(Asked::Entry(update, count))
}

fn bare(place: entry::EntryKey) -> Entry {
    Entry {
        table: place.table,
        key: place.key,
        priority: place.priority,
        action: 0,
        params: Vec::new(),
        metadata: Vec::new(),
        is_default: place.is_default,
    }
}

/// A modify without action: an entry keeps its own, a default entry goes back to its first (P4Runtime,
/// "Action Specification" and "Default Entry").
fn without_action(device: &Device, wire: &TableEntry) -> Result<Entry, Fault> {
    let place = place_from_wire(wire)?;
    let table = tables::by_id(place.table).ok_or(EntryError::UnknownTable(place.table))?;
    if place.is_default {
        return initial_default(table).ok_or_else(|| EntryError::ConstDefault(table.name).into());
    }
    let entry = device.entry(&place).ok_or(UpdateFault::Absent(table.name))?;
    Ok(Entry { metadata: wire.metadata.clone(), ..entry })
}

/// A table's default entry before it is written; `None` where it is constant.
pub(super) fn initial_default(table: &schema::Table) -> Option<Entry> {
    let DefaultAction::Settable(action, params) = table.default else { return None };
    let place = entry::EntryKey { table: table.id, key: Vec::new(), priority: 0, is_default: true };
    Some(Entry { action, params: params.to_vec(), ..bare(place) })
}

fn asked_counter(kind: Type, wire: &CounterEntry) -> Result<Asked, Fault> {
    only_modify(kind)?;
    let counter = counter_of(wire.counter_id)?;
    let count = wire.data.as_ref().map(count_of).transpose()?;
    Ok(Asked::Counters(cells(counter, wire.index.as_ref().map(|index| index.index))?, count))
}

fn asked_direct_counter(device: &Device, kind: Type, wire: &DirectCounterEntry) -> Result<Asked, Fault> {
    only_modify(kind)?;
    let entry = wire
        .table_entry
        .as_ref()
        .ok_or_else(|| Fault::invalid_argument("the direct counter entry has no table entry"))?;
    let place = place_from_wire(entry)?;
    let table = with_direct_counter(place.table)?;
    let slot = device.rule_slot(&place).ok_or(UpdateFault::Absent(table.name))?;
    let count = wire.data.as_ref().map(count_of).transpose()?;
    Ok(Asked::Counters(vec![Place::Rule(slot)], count))
}

fn only_modify(kind: Type) -> Result<(), Fault> {
    if kind == Type::Modify {
        return Ok(());
    }
    Err(Fault::invalid_argument("counters are modified, not inserted or deleted"))
}

/// The table, if its entries have counters.
pub(super) fn with_direct_counter(id: P4Id) -> Result<&'static schema::Table, Fault> {
    let table = tables::of_program(id).ok_or(EntryError::UnknownTable(id))?;
    match table.direct_counter {
        Some(_) => Ok(table),
        None => Err(Fault::invalid_argument(format!("table {}: it has no direct counter", table.name))),
    }
}

/// The counter array of this id.
pub(super) fn counter_of(id: P4Id) -> Result<&'static schema::Counter, Fault> {
    schema::counters::ALL
        .iter()
        .find(|counter| counter.id == id)
        .copied()
        .ok_or_else(|| Fault::invalid_argument(format!("counter id {id:#010x} is unknown")))
}

/// One cell of an array, or all (P4Runtime, "CounterEntry").
pub(super) fn cells(counter: &schema::Counter, index: Option<i64>) -> Result<Vec<Place>, Fault> {
    let Some(index) = index else {
        return Ok((0..counter.size).map(|index| Place::Array(counter.id, index)).collect());
    };
    let name = counter.name;
    match usize::try_from(index) {
        Err(_) => Err(Fault::invalid_argument(format!("counter {name}: index {index} is negative"))),
        Ok(at) if at >= counter.size => {
            let size = counter.size;
            Err(Fault::new(Code::OutOfRange, format!("counter {name}: index {index} is not below {size}")))
        }
        Ok(at) => Ok(vec![Place::Array(counter.id, at)]),
    }
}

fn count_of(data: &CounterData) -> Result<Count, Fault> {
    match (u64::try_from(data.packet_count), u64::try_from(data.byte_count)) {
        (Ok(packets), Ok(bytes)) => Ok(Count { packets, bytes }),
        _ => Err(Fault::invalid_argument("a counter cannot be set below 0")),
    }
}
