//! `links`: the port of each side of a link, for frames that come back.

use super::{EntryReader, exact_entry};
use crate::entry::Entry;
use crate::ids::{LinkIndex, PortId, Side};
use crate::schema::{Action, DefaultAction, Field, MatchKind, Table};

static TO_LINK_PORT: Action = Action {
    id: 0x0100_0014,
    name: "to_link_port",
    params: &[Field { id: 1, name: "port", bits: 9 }],
    restriction: None,
    brief: "Pop the steering header, send by this port.",
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
    actions: &[&TO_LINK_PORT],
    default: DefaultAction::Const(UNKNOWN_LINK.id),
    default_action: &UNKNOWN_LINK,
    size: 512,
    direct_counter: None,
    restriction: None,
    brief: "The port of each side of a link.",
};

/// Port of one side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEntry {
    /// The link.
    pub link: LinkIndex,
    /// The side.
    pub side: Side,
    /// The port.
    pub port: PortId,
}

impl LinkEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        exact_entry(
            &TABLE,
            &[(1, self.link.0.into()), (2, self.side.bit().into())],
            &TO_LINK_PORT,
            &[self.port.0.into()],
        )
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Self {
        LinkEntry {
            link: LinkIndex(reader.exact(1) as u8),
            side: Side::from_bit(reader.exact(2) != 0),
            port: PortId(reader.param(0) as u16),
        }
    }
}
