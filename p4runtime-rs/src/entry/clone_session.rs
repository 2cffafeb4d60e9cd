//! Clone sessions on the wire (P4Runtime, "CloneSessionEntry").

use dataplane::entry::{Condition, Entry, EntryKey};
use dataplane::tables::{CLONE_SESSIONS, TableEntry};

use super::value_fault;
use crate::Fault;
use crate::bytestring::parse_bytes;
use crate::proto::p4::v1::replica::PortKind;
use crate::proto::p4::v1::{CloneSessionEntry, Replica};

/// Bits of a port of the data plane.
const PORT_BITS: u32 = 9;

/// A value that the schema has checked to fit.
fn word(value: u128) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// An entry of [`CLONE_SESSIONS`] as the protocol has it.
pub(super) fn to_wire(entry: &Entry) -> CloneSessionEntry {
    let mut wire = place_to_wire(&entry.place());
    let [port, instance] = [0, 1].map(|at| word(entry.params.get(at).copied().unwrap_or_default()));
    // Every version of the protocol knows this kind of port.
    #[allow(deprecated)]
    let port_kind = Some(PortKind::EgressPort(port));
    wire.replicas = vec![Replica { port_kind, instance, ..Default::default() }];
    wire
}

/// Its number alone: what a delete and a read need.
pub(super) fn place_to_wire(place: &EntryKey) -> CloneSessionEntry {
    let session_id = match place.key.as_slice() {
        [(_, Condition::Exact(number))] => word(*number),
        _ => 0,
    };
    CloneSessionEntry { session_id, ..Default::default() }
}

/// Reads a clone session and checks it.
///
/// # Errors
/// What the protocol does not allow or this data plane does not have, with its canonical code.
pub(super) fn from_wire(wire: &CloneSessionEntry) -> Result<Entry, Fault> {
    let number = wire.session_id;
    let place = place_from_wire(wire)?;
    let lacks = |what: &str| Err(Fault::unimplemented(format!("clone session {number}: {what}")));
    if wire.class_of_service != 0 {
        return lacks("class_of_service must be 0, copies have no other");
    }
    if wire.packet_length_bytes != 0 {
        return lacks("packet_length_bytes must be 0, copies are whole");
    }
    let replica = match wire.replicas.as_slice() {
        [replica] => replica,
        [] => {
            return Err(Fault::invalid_argument(format!("clone session {number}: give it one replica")));
        }
        _ => return lacks("it can have one replica only"),
    };
    if !replica.backup_replicas.is_empty() {
        return lacks("its replica can have no backups");
    }
    #[allow(deprecated)] // and yet what most clients send
    let port = match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => u128::from(*port),
        Some(PortKind::Port(bytes)) => parse_bytes(bytes, PORT_BITS)
            .map_err(|error| value_fault("clone session", "replica port", error))?,
        None => {
            return Err(Fault::invalid_argument(format!("clone session {number}: its replica has no port")));
        }
    };
    let entry = Entry {
        table: CLONE_SESSIONS.id,
        key: place.key,
        priority: 0,
        action: CLONE_SESSIONS.actions.first().map_or(0, |action| action.id),
        params: vec![port, replica.instance.into()],
        metadata: Vec::new(),
        is_default: false,
    };
    TableEntry::parse(&entry)?;
    Ok(entry)
}

/// Reads the number alone.
///
/// # Errors
/// It is 0, which names no session.
pub(super) fn place_from_wire(wire: &CloneSessionEntry) -> Result<EntryKey, Fault> {
    if wire.session_id == 0 {
        return Err(Fault::invalid_argument("clone session 0 is reserved; a session_id is above 0"));
    }
    Ok(EntryKey {
        table: CLONE_SESSIONS.id,
        key: vec![(1, Condition::Exact(wire.session_id.into()))],
        priority: 0,
        is_default: false,
    })
}

#[cfg(test)]
mod tests {
    use dataplane::PortId;
    use dataplane::tables::CloneSessionEntry as Session;
    use tonic::Code;

    use super::*;
    use crate::proto::p4::v1::BackupReplica;

    fn wire() -> CloneSessionEntry {
        to_wire(&Session::to(PortId(8)).entry())
    }

    #[test]
    fn sessions_come_back_as_they_were() {
        for port in [0, 8, 511] {
            let entry = Session::to(PortId(port)).entry();
            let wire = to_wire(&entry);
            assert_eq!((wire.session_id, wire.replicas.len()), (u32::from(port) + 1, 1));
            assert_eq!(from_wire(&wire), Ok(entry.clone()));
            assert_eq!(place_from_wire(&place_to_wire(&entry.place())), Ok(entry.place()));
        }
    }

    #[test]
    fn ports_may_be_byte_strings() {
        let mut wire = wire();
        wire.replicas[0].port_kind = Some(PortKind::Port(vec![0, 8]));
        assert_eq!(from_wire(&wire), Ok(Session::to(PortId(8)).entry()));
        wire.replicas[0].port_kind = Some(PortKind::Port(vec![2, 0]));
        assert_eq!(from_wire(&wire).unwrap_err().code(), Code::OutOfRange);
    }

    #[test]
    fn what_the_protocol_or_the_device_does_not_have_has_its_code() {
        let spoilt = |spoil: &dyn Fn(&mut CloneSessionEntry)| {
            let mut wire = wire();
            spoil(&mut wire);
            from_wire(&wire).unwrap_err().code()
        };
        assert_eq!(spoilt(&|wire| wire.session_id = 0), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.session_id = 513), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.session_id = 70_000), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.replicas.clear()), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.replicas[0].port_kind = None), Code::InvalidArgument);
        #[allow(deprecated)]
        let beyond = spoilt(&|wire| wire.replicas[0].port_kind = Some(PortKind::EgressPort(512)));
        assert_eq!(beyond, Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.replicas.push(Replica::default())), Code::Unimplemented);
        assert_eq!(spoilt(&|wire| wire.class_of_service = 1), Code::Unimplemented);
        assert_eq!(spoilt(&|wire| wire.packet_length_bytes = 64), Code::Unimplemented);
        let backup = BackupReplica::default();
        assert_eq!(
            spoilt(&|wire| wire.replicas[0].backup_replicas.push(backup.clone())),
            Code::Unimplemented
        );
    }
}
