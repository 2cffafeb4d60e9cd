//! `Read`: entries and counters by filter, in parts.

use std::sync::Arc;
use std::vec::IntoIter;

use dataplane::entry::{Entry, EntryError, EntryKey, P4Id};
use dataplane::schema::{self, DefaultAction};
use dataplane::tables::{self, CLONE_SESSIONS};
use p4runtime::entry::{clone_session_place_from_wire, place_from_wire, place_to_wire, to_entity, to_wire};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, Index, PacketReplicationEngineEntry, ReadRequest,
    ReadResponse, TableEntry, table_action,
};
use p4runtime::{Fault, WriteErrors};
use tokio_stream::Stream;
use tonic::Status;

use super::Shared;
use super::write::{cells, counter_of, initial_default, unimplemented, with_direct_counter};
use crate::counters::Place;
use crate::device::{Device, Held, Rows};

/// Entities in one message of an answer.
const PART: usize = 1000;

/// What a filter matched; it becomes a message only when its part is sent.
enum Found {
    /// An entry, with its counter where that was asked for.
    Entry(Held, Option<Place>),
    /// A default action that was not written since the pipeline was set.
    Initial(Entry),
    /// A default action that cannot be written.
    ConstDefault(&'static schema::Table),
    /// A cell of a counter array.
    Counter(P4Id, usize),
    /// An entry's counter.
    DirectCounter(Held, Place),
}

impl Shared {
    /// All that the filters match, as it is between two writes; an error of some filters comes last.
    pub(super) fn read(
        &self,
        request: &ReadRequest,
    ) -> Result<impl Stream<Item = Result<ReadResponse, Status>> + use<>, Status> {
        self.check_device(request.device_id)?;
        if !request.role.is_empty() {
            return Err(Status::not_found(format!("role `{}` is unknown; leave the role out", request.role)));
        }
        // Writes go on meanwhile.
        let device = Arc::clone(self.forwarding().tables()?);
        let rows = &device.rows();
        let mut found = Vec::new();
        let outcomes: WriteErrors = request
            .entities
            .iter()
            .map(|filter| match &filter.entity {
                None => Err(Fault::invalid_argument("the filter has no entity")),
                Some(Kind::TableEntry(filter)) => entries(rows, filter, &mut found),
                Some(Kind::CounterEntry(filter)) => counters(filter, &mut found),
                Some(Kind::DirectCounterEntry(filter)) => direct_counters(rows, filter, &mut found),
                Some(Kind::PacketReplicationEngineEntry(filter)) => replication(rows, filter, &mut found),
                Some(_) => Err(unimplemented()),
            })
            .collect();
        let parts = Parts { found: found.into_iter(), device };
        let error = outcomes.into_result().err();
        Ok(tokio_stream::iter(parts.map(Ok).chain(error.map(Err))))
    }
}

/// P4Runtime, "Wildcard Reads" of table entries.
fn entries(rows: &Rows, filter: &TableEntry, found: &mut Vec<Found>) -> Result<(), Fault> {
    let table = named_table(filter)?;
    if let Some(table) = table {
        let refuse = |what: &str| Err(Fault::invalid_argument(format!("table {}: {what}", table.name)));
        if filter.meter_config.is_some() || filter.meter_counter_data.is_some() {
            return refuse("it has no direct meter");
        }
        if filter.idle_timeout_ns != 0 || filter.time_since_last_hit.is_some() {
            return refuse("its entries have no idle timeout");
        }
        if filter.counter_data.is_some() {
            with_direct_counter(table.id)?;
        }
    }
    if filter.is_default_action {
        let wanted = tables::PROGRAM.iter().filter(|of| table.is_none_or(|table| table.id == of.id));
        found.extend(wanted.filter_map(|of| default_of(rows, of, table.is_some())));
        return Ok(());
    }
    let action = match filter.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => None,
        Some(table_action::Type::Action(action)) => Some(action.action_id),
        Some(_) => return Err(Fault::invalid_argument("there are no action profiles to filter by")),
    };
    let place = match table {
        Some(table) if !filter.r#match.is_empty() => Some(match_of(table, filter)?),
        _ => None,
    };
    let matched = |held: &Held| {
        let at = held.place();
        place.as_ref().is_none_or(|place| place.key == at.key)
            && (filter.priority == 0 || filter.priority == at.priority)
            && action.is_none_or(|action| action == held.action())
            && (filter.metadata.is_empty() || filter.metadata == held.metadata())
            && !at.is_default
            && at.table != CLONE_SESSIONS.id
    };
    // One entry alone needs no look at the others.
    let mut find = |held: &Held| {
        if matched(held) {
            let counter = filter.counter_data.and_then(|_| direct_counter(held));
            found.push(Found::Entry(held.clone(), counter));
        }
    };
    match &place {
        Some(place) if filter.priority == place.priority => rows.at(place).into_iter().for_each(&mut find),
        _ => rows.of(table.map(|table| table.id)).for_each(&mut find),
    }
    Ok(())
}

/// Clone sessions: all, or the one that is named.
fn replication(
    rows: &Rows,
    filter: &PacketReplicationEngineEntry,
    found: &mut Vec<Found>,
) -> Result<(), Fault> {
    let Some(Replication::CloneSessionEntry(filter)) = &filter.r#type else { return Err(unimplemented()) };
    let sessions = if filter.session_id == 0 {
        rows.of(Some(CLONE_SESSIONS.id)).cloned().collect()
    } else {
        Vec::from_iter(rows.at(&clone_session_place_from_wire(filter)?).cloned())
    };
    found.extend(sessions.into_iter().map(|session| Found::Entry(session, None)));
    Ok(())
}

/// The table that a filter names; `None` for all of them, where a match means nothing.
fn named_table(filter: &TableEntry) -> Result<Option<&'static schema::Table>, Fault> {
    if filter.table_id == 0 {
        if filter.r#match.is_empty() {
            return Ok(None);
        }
        return Err(Fault::invalid_argument("a filter for all tables has no match"));
    }
    let table = tables::of_program(filter.table_id).ok_or(EntryError::UnknownTable(filter.table_id))?;
    Ok(Some(table))
}

/// The match of a filter as a place; its priority may be left out.
fn match_of(table: &schema::Table, filter: &TableEntry) -> Result<EntryKey, Fault> {
    let any = i32::from(table.has_priority());
    let priority = if filter.priority == 0 { any } else { filter.priority };
    let wire = TableEntry { priority, ..filter.clone() };
    place_from_wire(&wire)
}

/// A table's default entry. A constant one is found only where its table is asked for by name: to a reader
/// of everything it is no entry.
fn default_of(rows: &Rows, table: &'static schema::Table, named: bool) -> Option<Found> {
    if let DefaultAction::Const(_) = table.default {
        return named.then_some(Found::ConstDefault(table));
    }
    let initial = initial_default(table)?;
    let written = rows.at(&initial.place()).cloned();
    Some(written.map_or(Found::Initial(initial), |held| Found::Entry(held, None)))
}

fn direct_counter(held: &Held) -> Option<Place> {
    tables::by_id(held.place().table)?.direct_counter?;
    Some(Place::Rule(held.slot()))
}

fn counters(filter: &CounterEntry, found: &mut Vec<Found>) -> Result<(), Fault> {
    let index = filter.index.as_ref().map(|index| index.index);
    let wanted = match filter.counter_id {
        0 => schema::counters::ALL.to_vec(),
        id => vec![counter_of(id)?],
    };
    for counter in wanted {
        let index = if filter.counter_id == 0 { None } else { index };
        found.extend(cells(counter, index)?.into_iter().filter_map(|place| match place {
            Place::Array(array, index) => Some(Found::Counter(array, index)),
            Place::Rule(_) => None,
        }));
    }
    Ok(())
}

fn direct_counters(rows: &Rows, filter: &DirectCounterEntry, found: &mut Vec<Found>) -> Result<(), Fault> {
    let any = TableEntry::default();
    let filter = filter.table_entry.as_ref().unwrap_or(&any);
    let table = named_table(filter)?;
    if let Some(table) = table {
        with_direct_counter(table.id)?;
    }
    let mut matched = Vec::new();
    entries(rows, filter, &mut matched)?;
    if matched.is_empty() && !filter.r#match.is_empty() {
        let name = table.map_or("", |table| table.name);
        return Err(Fault::not_found(format!("table {name}: there is no entry with this match")));
    }
    found.extend(matched.into_iter().filter_map(|entry| match entry {
        Found::Entry(held, _) => {
            let counter = direct_counter(&held)?;
            Some(Found::DirectCounter(held, counter))
        }
        _ => None,
    }));
    Ok(())
}

/// The messages of an answer.
struct Parts {
    found: IntoIter<Found>,
    device: Arc<Device>,
}

impl Parts {
    fn message(&self, found: Found) -> Entity {
        match found {
            Found::Entry(held, _) if held.place().table == CLONE_SESSIONS.id => to_entity(&held.entry()),
            Found::Entry(held, counter) => {
                let counter_data = counter.map(|place| self.value(place));
                TableEntry { counter_data, ..to_wire(&held.entry()) }.into()
            }
            Found::Initial(entry) => to_wire(&entry).into(),
            Found::ConstDefault(table) => {
                let action = table.default_action;
                let entry = Entry {
                    table: table.id,
                    key: Vec::new(),
                    priority: 0,
                    action: action.id,
                    params: Vec::new(),
                    metadata: Vec::new(),
                    is_default: true,
                };
                TableEntry { is_const: true, ..to_wire(&entry) }.into()
            }
            Found::Counter(counter_id, index) => CounterEntry {
                counter_id,
                index: i64::try_from(index).ok().map(|index| Index { index }),
                data: Some(self.value(Place::Array(counter_id, index))),
            }
            .into(),
            Found::DirectCounter(held, counter) => DirectCounterEntry {
                table_entry: Some(place_to_wire(held.place())),
                data: Some(self.value(counter)),
            }
            .into(),
        }
    }

    fn value(&self, place: Place) -> CounterData {
        let count = self.device.counters().read(place);
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        CounterData { packet_count: signed(count.packets), byte_count: signed(count.bytes) }
    }
}

impl Iterator for Parts {
    type Item = ReadResponse;

    fn next(&mut self) -> Option<ReadResponse> {
        let part: Vec<Found> = self.found.by_ref().take(PART).collect();
        if part.is_empty() {
            return None;
        }
        Some(ReadResponse { entities: part.into_iter().map(|found| self.message(found)).collect() })
    }
}
