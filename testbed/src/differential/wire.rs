//! What data planes behind P4Runtime are asked, and what their answers mean.

use dataplane::PortId;
use dataplane::entry::{Entry, Update};
use dataplane::schema::counters;
use dataplane::tables::{CLONE_SESSIONS, Family};
use p4runtime::entry::{place_from_wire, place_to_entity, update_to_wire};
use p4runtime::metadata::{PACKET_IN, PacketLayout};
use p4runtime::proto::p4::config::v1::P4Info;
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::{
    self as wire, CounterData, CounterEntry, DirectCounterEntry, Entity, PacketIn, TableEntry,
};
use swpipe::counters::Count;

use super::bytes::{links_of, without_steering_header};
use super::plane::Counts;

/// Port of the controller in the program for BMv2.
pub(super) const CPU_PORT: u16 = 510;

/// The updates that write these entries into an empty data plane.
pub(super) fn updates(entries: &[Entry]) -> Vec<wire::Update> {
    entries
        .iter()
        .cloned()
        .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
        .map(|update| update_to_wire(&update))
        .collect()
}

/// The clone sessions among entries.
pub(super) fn sessions(entries: &[Entry]) -> Vec<Entity> {
    let sessions = entries.iter().filter(|entry| entry.table == CLONE_SESSIONS.id);
    sessions.map(|entry| place_to_entity(&entry.place())).collect()
}

/// Asks for all cells of a counter array.
pub(super) fn array(id: u32) -> Entity {
    CounterEntry { counter_id: id, ..CounterEntry::default() }.into()
}

/// Asks for all counters of arrays and of rules.
pub(super) fn all_counters() -> Vec<Entity> {
    let rules = Family::BOTH.map(|family| {
        let table_entry = Some(TableEntry { table_id: family.table(), ..TableEntry::default() });
        Entity::from(DirectCounterEntry { table_entry, data: None })
    });
    counters::ALL.iter().map(|counter| array(counter.id)).chain(rules).collect()
}

fn count(data: Option<&CounterData>) -> Count {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or_default();
    data.map_or(Count::default(), |data| Count {
        packets: unsigned(data.packet_count),
        bytes: unsigned(data.byte_count),
    })
}

/// The cells of one array, in order.
pub(super) fn cells(entities: Vec<Entity>) -> Vec<Count> {
    let mut cells: Vec<(i64, Count)> = entities
        .into_iter()
        .filter_map(|entity| match entity.entity? {
            Kind::CounterEntry(cell) => Some((cell.index?.index, count(cell.data.as_ref()))),
            _ => None,
        })
        .collect();
    cells.sort_by_key(|(index, _)| *index);
    cells.into_iter().map(|(_, count)| count).collect()
}

/// The counters of an answer, bytes as the contract counts them where these entries are written.
///
/// # Errors
/// A rule that is none of the schema's.
pub(super) fn counts(entities: Vec<Entity>, entries: &[Entry]) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for entity in entities {
        match entity.entity {
            Some(Kind::CounterEntry(cell)) => {
                let index =
                    cell.index.and_then(|index| usize::try_from(index.index).ok()).unwrap_or_default();
                counts.cells.insert((cell.counter_id, index), count(cell.data.as_ref()));
            }
            Some(Kind::DirectCounterEntry(direct)) => {
                let place = direct.table_entry.ok_or("a direct counter of no entry")?;
                let place = place_from_wire(&place).map_err(|fault| fault.to_string())?;
                counts.rules.insert(place, count(direct.data.as_ref()));
            }
            other => return Err(format!("counters were asked for, {other:?} came")),
        }
    }
    counts.cells.retain(|_, count| *count != Count::default());
    counts.rules.retain(|_, count| *count != Count::default());
    Ok(without_steering_header(counts, &links_of(entries)))
}

/// Reads packet-ins.
pub(super) struct PacketIns(PacketLayout);

impl PacketIns {
    /// By the P4Info.
    ///
    /// # Errors
    /// It has no `packet_in`.
    pub(super) fn of(info: &P4Info) -> Result<Self, String> {
        PacketLayout::of(info, PACKET_IN).map(PacketIns).map_err(|error| error.to_string())
    }

    /// Port and frame.
    ///
    /// # Errors
    /// The metadata do not fit.
    pub(super) fn read(&self, packet: &PacketIn) -> Result<(PortId, Vec<u8>), String> {
        let values = self.0.decode(&packet.metadata).map_err(|error| error.to_string())?;
        let port = values.get("ingress_port").copied().unwrap_or(u128::MAX);
        let port = u16::try_from(port).map_err(|_| format!("packet-in from port {port}"))?;
        Ok((PortId(port), packet.payload.clone()))
    }
}
