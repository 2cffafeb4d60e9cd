//! `links`: the port of each side of a link, for frames that come back, and the index that the controller's probes
//! come back by.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::{LinkIndex, PortId, Side};
use crate::schema::{Action, DefaultAction, Field, MatchKind, Table};

static TO_LINK_PORT: Action = Action {
    id: 0x0100_0014,
    name: "to_link_port",
    params: &[Field { id: 1, name: "port", bits: 9 }],
    restriction: None,
    brief: "Pop the steering header, send by this port.",
};

static TO_CONTROLLER: Action = Action {
    id: 0x0100_001c,
    name: "to_controller",
    params: &[],
    restriction: None,
    brief: "A steered probe: to the controller as it came.",
};

static UNKNOWN_LINK: Action = Action {
    id: 0x0100_0015,
    name: "unknown_link",
    params: &[],
    restriction: None,
    brief: "Drop: no such link.",
};

/// `links`.
pub static TABLE: Table = Table {
    id: 0x0200_0009,
    name: "links",
    key: &[
        (Field { id: 1, name: "link", bits: 8 }, MatchKind::Exact),
        (Field { id: 2, name: "side", bits: 1 }, MatchKind::Exact),
    ],
    actions: &[&TO_LINK_PORT, &TO_CONTROLLER],
    default: DefaultAction::Const(UNKNOWN_LINK.id),
    default_action: &UNKNOWN_LINK,
    size: 512,
    direct_counter: None,
    restriction: None,
    brief: "The port of each side of a link.",
};

/// Where frames of a link index go when they come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkForwarding {
    /// Without their steering header, out by this port.
    Port(PortId),
    /// To the controller as they came: its steered probes, which name an index that no link has.
    Controller,
}

impl LinkForwarding {
    /// The port, if it is one.
    #[inline(always)]
    #[must_use]
    pub const fn port(self) -> Option<PortId> {
        match self {
            LinkForwarding::Port(port) => Some(port),
            LinkForwarding::Controller => None,
        }
    }
}

/// One side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEntry {
    /// The link.
    pub link: LinkIndex,
    /// The side.
    pub side: Side,
    /// Where its frames go.
    pub forwarding: LinkForwarding,
}

impl LinkEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let key = [(1, self.link.0.into()), (2, self.side.bit().into())];
        match self.forwarding {
            LinkForwarding::Port(port) => exact_entry(&TABLE, &key, &TO_LINK_PORT, &[port.0.into()]),
            LinkForwarding::Controller => exact_entry(&TABLE, &key, &TO_CONTROLLER, &[]),
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let forwarding = match reader.entry.action {
            id if id == TO_LINK_PORT.id => LinkForwarding::Port(PortId(reader.param(0) as u16)),
            id if id == TO_CONTROLLER.id => LinkForwarding::Controller,
            _ => return Err(reader.unknown_action()),
        };
        Ok(LinkEntry {
            link: LinkIndex(reader.exact(1) as u8),
            side: Side::from_bit(reader.exact(2) != 0),
            forwarding,
        })
    }
}
