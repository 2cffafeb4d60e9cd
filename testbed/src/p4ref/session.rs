//! Clone sessions of the packet replication engine.

use std::collections::HashSet;

use p4runtime::Fault;
use p4runtime::bytestring::{canonical, parse_bytes};
use p4runtime::proto::p4::v1::replica::PortKind;
use p4runtime::proto::p4::v1::{CloneSessionEntry, Replica as Wire};

/// Ports have 9 bits.
const PORTS: u32 = 1 << 9;
/// Sessions have 15 bits in BMv2.
const SESSIONS: u32 = 1 << 15;

/// A copy of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Replica {
    pub(super) port: u16,
    pub(super) instance: u32,
}

/// A clone session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) replicas: Vec<Replica>,
    /// As it was written, ports in their shortest form.
    pub(super) wire: CloneSessionEntry,
}

/// The id of a session that a message names.
///
/// # Errors
/// `INVALID_ARGUMENT`: there can be no such session.
pub(super) fn id_of(entry: &CloneSessionEntry) -> Result<u32, Fault> {
    match entry.session_id {
        id @ 1..SESSIONS => Ok(id),
        id => Err(Fault::invalid_argument(format!("clone session {id}: ids are 1 to {}", SESSIONS - 1))),
    }
}

impl Session {
    /// Reads a session.
    ///
    /// # Errors
    /// Its code, if it is malformed or asks for what BMv2 lacks.
    pub(super) fn read(entry: &CloneSessionEntry) -> Result<Self, Fault> {
        let id = id_of(entry)?;
        let refuse = |what: String| Err(Fault::invalid_argument(format!("clone session {id}: {what}")));
        if entry.packet_length_bytes < 0 {
            return refuse(format!("packet length {}", entry.packet_length_bytes));
        }
        if entry.packet_length_bytes > 0 || entry.class_of_service != 0 {
            let what = format!("clone session {id}: copies are whole and of class 0");
            return Err(Fault::unimplemented(what));
        }
        let mut replicas = Vec::new();
        let mut wire = entry.clone();
        for replica in &mut wire.replicas {
            let port = port_of(replica)?;
            if !replica.backup_replicas.is_empty() {
                return Err(Fault::unimplemented(format!("clone session {id}: backup replicas")));
            }
            let Some(port) = u16::try_from(port).ok().filter(|_| port < PORTS) else {
                return refuse(format!("port {port} is not below {PORTS}"));
            };
            replicas.push(Replica { port, instance: replica.instance });
        }
        let distinct: HashSet<&Replica> = replicas.iter().collect();
        if distinct.len() != replicas.len() {
            return refuse("two replicas have the same port and instance".to_owned());
        }
        Ok(Session { replicas, wire })
    }
}

#[allow(deprecated)] // controllers still write `egress_port`
fn port_of(replica: &mut Wire) -> Result<u32, Fault> {
    match &mut replica.port_kind {
        Some(PortKind::EgressPort(port)) => Ok(*port),
        Some(PortKind::Port(bytes)) => {
            let port = parse_bytes(bytes, 32)?;
            *bytes = canonical(port);
            Ok(u32::try_from(port).unwrap_or(u32::MAX))
        }
        None => Err(Fault::invalid_argument("a replica has no port")),
    }
}
