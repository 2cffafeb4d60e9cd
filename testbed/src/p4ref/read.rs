//! `Read`: entries, counters and clone sessions by filter.

use p4runtime::Fault;
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime::proto::p4::v1::{
    CloneSessionEntry, CounterData, CounterEntry, DirectCounterEntry, Entity, Index, TableEntry, table_action,
};

use super::counter::Count;
use super::entry::{Entry, Place, place_to_wire};
use super::info::TableInfo;
use super::session;
use super::switch::{Stored, Switch};
use super::write::{cells, unimplemented, unknown_counter};

fn data(count: Count) -> CounterData {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    CounterData { packet_count: signed(count.packets), byte_count: signed(count.bytes) }
}

impl Switch {
    /// All that the filters match; a filter that is wrong has its fault in the second list, by its index.
    pub fn read(&self, filters: &[Entity]) -> (Vec<Entity>, Vec<Result<(), Fault>>) {
        let mut found = Vec::new();
        let outcomes = filters
            .iter()
            .map(|filter| match &filter.entity {
                None => Err(Fault::invalid_argument("the filter has no entity")),
                Some(Kind::TableEntry(filter)) => {
                    for entry in self.entries(filter)? {
                        found.push(self.entry_message(entry, filter.counter_data.is_some()).into());
                    }
                    Ok(())
                }
                Some(Kind::CounterEntry(filter)) => self.read_counters(filter, &mut found),
                Some(Kind::DirectCounterEntry(filter)) => self.read_direct(filter, &mut found),
                Some(Kind::PacketReplicationEngineEntry(filter)) => match &filter.r#type {
                    Some(Replication::CloneSessionEntry(filter)) => self.read_sessions(filter, &mut found),
                    _ => Err(Fault::unimplemented("multicast groups are not implemented")),
                },
                Some(_) => Err(unimplemented()),
            })
            .collect();
        (found, outcomes)
    }

    /// Number of entries of all tables, those of the program's own and written default entries included.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.stored.iter().map(std::collections::HashMap::len).sum::<usize>()
            + self.defaults.iter().flatten().count()
    }

    /// Default entries that were written.
    pub(super) fn written_defaults(&self) -> Vec<TableEntry> {
        self.defaults.iter().flatten().map(|entry| self.program.info.entry_to_wire(entry)).collect()
    }

    /// P4Runtime, "Wildcard Reads" of table entries.
    fn entries(&self, filter: &TableEntry) -> Result<Vec<(Entry, bool)>, Fault> {
        let table = self.named_table(filter)?;
        if let Some(table) = table {
            let refuse = |what: &str| Err(Fault::invalid_argument(format!("{}: {what}", table.name)));
            if filter.meter_config.is_some() || filter.meter_counter_data.is_some() {
                return refuse("it has no direct meter");
            }
            if filter.idle_timeout_ns != 0 || filter.time_since_last_hit.is_some() {
                return refuse("its entries have no idle timeout");
            }
            if filter.counter_data.is_some() && !table.has_counter {
                return refuse("it has no direct counter");
            }
        }
        let tables = self.program.info.tables.iter().enumerate();
        let wanted = tables.filter(|(_, of)| table.is_none_or(|table| table.id == of.id));
        if filter.is_default_action {
            return Ok(wanted.filter_map(|(at, of)| self.default_of(at, of, table.is_some())).collect());
        }
        let action = match filter.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => None,
            Some(table_action::Type::Action(action)) => Some(action.action_id),
            Some(_) => return Err(Fault::invalid_argument("there are no action profiles to filter by")),
        };
        let place = match table {
            Some(table) if !filter.r#match.is_empty() => Some(self.match_of(table, filter)?),
            _ => None,
        };
        let matched = |stored: &&Stored| {
            let entry = &stored.entry;
            place.as_ref().is_none_or(|place| place.key == entry.place.key)
                && (filter.priority == 0 || filter.priority == entry.place.priority)
                && action.is_none_or(|action| action == entry.action)
                && (filter.metadata.is_empty() || filter.metadata == entry.metadata)
        };
        // One entry alone needs no look at the others.
        if let Some(place) = place.as_ref().filter(|place| place.priority == filter.priority) {
            let found = self.stored(place).filter(matched);
            return Ok(found.map(|stored| (stored.entry.clone(), stored.is_const)).into_iter().collect());
        }
        let mut found: Vec<(Entry, bool)> = wanted
            .flat_map(|(at, _)| self.stored[at].values().filter(matched))
            .map(|stored| (stored.entry.clone(), stored.is_const))
            .collect();
        found.sort();
        Ok(found)
    }

    /// The table that a filter names; `None` for all of them, where a match means nothing.
    fn named_table(&self, filter: &TableEntry) -> Result<Option<&TableInfo>, Fault> {
        if filter.table_id != 0 {
            return self.program.info.known_table(filter.table_id).map(Some);
        }
        if filter.r#match.is_empty() {
            return Ok(None);
        }
        Err(Fault::invalid_argument("a filter for all tables has no match"))
    }

    /// The match of a filter as a place; its priority may be left out.
    fn match_of(&self, table: &TableInfo, filter: &TableEntry) -> Result<Place, Fault> {
        let any = i32::from(table.has_priority());
        let priority = if filter.priority == 0 { any } else { filter.priority };
        self.program.info.read_place(&TableEntry { priority, ..filter.clone() })
    }

    /// A table's default entry. A constant one is found only where its table is asked for by name.
    fn default_of(&self, at: usize, table: &TableInfo, named: bool) -> Option<(Entry, bool)> {
        if table.const_default && !named {
            return None;
        }
        let written = self.defaults.get(at).cloned().flatten();
        Some((written.or_else(|| self.initial_default(table))?, table.const_default))
    }

    fn count_of(&self, place: &Place) -> Option<Count> {
        let table = self.program.info.table(place.table).filter(|table| table.has_counter)?;
        let slot = self.stored(place)?.slot;
        self.state.tables.get(table.table)?.rows.row(slot).map(|row| row.count)
    }

    fn entry_message(&self, (entry, is_const): (Entry, bool), with_counter: bool) -> TableEntry {
        let count = if with_counter { self.count_of(&entry.place) } else { None };
        TableEntry { counter_data: count.map(data), is_const, ..self.program.info.entry_to_wire(&entry) }
    }

    fn read_counters(&self, filter: &CounterEntry, found: &mut Vec<Entity>) -> Result<(), Fault> {
        let all = &self.program.info.counters;
        if filter.counter_id != 0 && !all.iter().any(|counter| counter.id == filter.counter_id) {
            return Err(unknown_counter(filter.counter_id));
        }
        let index = filter.index.as_ref().map(|index| index.index).filter(|_| filter.counter_id != 0);
        for counter in all.iter().filter(|counter| [0, counter.id].contains(&filter.counter_id)) {
            let values = self.state.counters.cells(counter.counter);
            for cell in cells(&counter.name, values.len(), index)? {
                let entry = CounterEntry {
                    counter_id: counter.id,
                    index: i64::try_from(cell).ok().map(|index| Index { index }),
                    data: values.get(cell).copied().map(data),
                };
                found.push(entry.into());
            }
        }
        Ok(())
    }

    fn read_direct(&self, filter: &DirectCounterEntry, found: &mut Vec<Entity>) -> Result<(), Fault> {
        let any = TableEntry::default();
        let filter = filter.table_entry.as_ref().unwrap_or(&any);
        let table = self.named_table(filter)?;
        if let Some(table) = table.filter(|table| !table.has_counter) {
            return Err(Fault::invalid_argument(format!("{}: it has no direct counter", table.name)));
        }
        let entries = self.entries(filter)?;
        if entries.is_empty() && !filter.r#match.is_empty() {
            let name = table.map_or("", |table| &table.name);
            return Err(Fault::not_found(format!("{name}: there is no entry with this match")));
        }
        for (entry, _) in entries {
            if let Some(count) = self.count_of(&entry.place) {
                let table_entry = Some(place_to_wire(&entry.place));
                found.push(DirectCounterEntry { table_entry, data: Some(data(count)) }.into());
            }
        }
        Ok(())
    }

    fn read_sessions(&self, filter: &CloneSessionEntry, found: &mut Vec<Entity>) -> Result<(), Fault> {
        if filter.session_id != 0 {
            let id = session::id_of(filter)?;
            found.extend(self.sessions.get(&id).map(|session| Entity::from(session.wire.clone())));
            return Ok(());
        }
        found.extend(self.sessions.values().map(|session| Entity::from(session.wire.clone())));
        Ok(())
    }
}
