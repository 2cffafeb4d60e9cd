//! Clone sessions for data planes that make copies by them.

use dataplane::entry::Entry;
use dataplane::tables::TableEntry;
use p4runtime::bytestring::canonical;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type;
use p4runtime::proto::p4::v1::replica::PortKind;
use p4runtime::proto::p4::v1::{CloneSessionEntry, PacketReplicationEngineEntry, Replica};

/// One session with one replica for every pair port that the entries name: the port's number plus 1, since 0 is
/// reserved.
#[must_use]
pub fn clone_sessions(entries: &[Entry]) -> Vec<PacketReplicationEngineEntry> {
    let mut ports: Vec<u16> = entries
        .iter()
        .filter_map(|entry| match TableEntry::parse(entry) {
            Ok(TableEntry::PairPort(pair)) => Some(pair.port.0),
            _ => None,
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
        .into_iter()
        .map(|port| {
            let replica = Replica {
                port_kind: Some(PortKind::Port(canonical(port.into()))),
                instance: 1,
                ..Replica::default()
            };
            let session = CloneSessionEntry {
                session_id: u32::from(port) + 1,
                replicas: vec![replica],
                ..CloneSessionEntry::default()
            };
            PacketReplicationEngineEntry { r#type: Some(Type::CloneSessionEntry(session)) }
        })
        .collect()
}
