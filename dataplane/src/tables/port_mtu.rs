//! `port_mtu`: the longest frame that may leave by a port.

use super::{EntryReader, exact_entry};
use crate::entry::Entry;
use crate::ids::PortId;
use crate::schema::{Action, DefaultAction, Field, MatchKind, Table};

static SET_MTU: Action = Action {
    id: 0x0100_0016,
    name: "set_mtu",
    params: &[Field { id: 1, name: "mtu", bits: 16 }],
    restriction: None,
    brief: "Bytes after the 14 of the Ethernet header.",
};

static NO_LIMIT: Action = Action {
    id: 0x0100_0017,
    name: "no_limit",
    params: &[],
    restriction: None,
    brief: "The port sends frames of any length.",
};

pub(super) static TABLE: Table = Table {
    id: 0x0200_000a,
    name: "port_mtu",
    key: &[(Field { id: 1, name: "egress_port", bits: 9 }, MatchKind::Exact)],
    actions: &[&SET_MTU],
    default: DefaultAction::Const(NO_LIMIT.id),
    default_action: &NO_LIMIT,
    size: 512,
    direct_counter: None,
    restriction: None,
    brief: "The longest frame that may leave by a port.",
};

/// MTU of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMtuEntry {
    /// The port.
    pub port: PortId,
    /// Bytes after the 14 of the Ethernet header; tags and the steering header count.
    pub mtu: u16,
}

impl PortMtuEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        exact_entry(&TABLE, &[(1, self.port.0.into())], &SET_MTU, &[self.mtu.into()])
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Self {
        PortMtuEntry { port: PortId(reader.exact(1) as u16), mtu: reader.param(0) as u16 }
    }
}
