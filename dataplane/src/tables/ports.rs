//! `ports`: what a port is for.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::{LinkIndex, PairId, PortId, Side};
use crate::schema::{Action, DefaultAction, Field, MatchKind, PAIR_RESTRICTION, Table};

static LINK_PORT: Action = Action {
    id: 0x0100_0002,
    name: "link_port",
    params: &[
        Field { id: 1, name: "link", bits: 8 },
        Field { id: 2, name: "side", bits: 1 },
        Field { id: 3, name: "peer_port", bits: 9 },
    ],
    restriction: None,
    brief: "A link's port; side 0 LAN, 1 WAN.",
};

static PAIR_PORT: Action = Action {
    id: 0x0100_0003,
    name: "pair_port",
    params: &[Field { id: 1, name: "pair", bits: 16 }, Field { id: 2, name: "side", bits: 1 }],
    restriction: Some(PAIR_RESTRICTION),
    brief: "A pair's port; side 0 LAN, 1 WAN.",
};

static COPY_PAIR_PORT: Action = Action {
    id: 0x0100_0004,
    name: "copy_pair_port",
    params: &[Field { id: 1, name: "pair", bits: 16 }, Field { id: 2, name: "side", bits: 1 }],
    restriction: Some(PAIR_RESTRICTION),
    brief: "A port of a pair that only gets copies: nothing but keep-alives is taken from it.",
};

static UNKNOWN_PORT: Action = Action {
    id: 0x0100_0005,
    name: "unknown_port",
    params: &[],
    restriction: None,
    brief: "Drop: the port serves nothing.",
};

pub(super) static TABLE: Table = Table {
    id: 0x0200_0002,
    name: "ports",
    key: &[(Field { id: 1, name: "ingress_port", bits: 9 }, MatchKind::Exact)],
    actions: &[&LINK_PORT, &PAIR_PORT, &COPY_PAIR_PORT],
    default: DefaultAction::Const(UNKNOWN_PORT.id),
    default_action: &UNKNOWN_PORT,
    size: 512,
    direct_counter: None,
    restriction: None,
    brief: "What a port is for.",
};

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// Towards the operator's channel.
    Link {
        /// The link.
        link: LinkIndex,
        /// Its side.
        side: Side,
        /// The other port of the link.
        peer: PortId,
    },
    /// Towards an appliance.
    Pair {
        /// The pair.
        pair: PairId,
        /// Its side.
        side: Side,
        /// The pair's unit only gets copies.
        copy: bool,
    },
}

/// Role of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortEntry {
    /// The port.
    pub port: PortId,
    /// Its role.
    pub role: PortRole,
}

impl PortEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let key = [(1, self.port.0.into())];
        match self.role {
            PortRole::Link { link, side, peer } => {
                exact_entry(&TABLE, &key, &LINK_PORT, &[link.0.into(), side.bit().into(), peer.0.into()])
            }
            PortRole::Pair { pair, side, copy } => {
                let action = if copy { &COPY_PAIR_PORT } else { &PAIR_PORT };
                exact_entry(&TABLE, &key, action, &[pair.0.into(), side.bit().into()])
            }
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let port = PortId(reader.exact(1) as u16);
        let side = Side::from_bit(reader.param(1) != 0);
        let action = reader.entry.action;
        let role = if action == LINK_PORT.id {
            PortRole::Link {
                link: LinkIndex(reader.param(0) as u8),
                side,
                peer: PortId(reader.param(2) as u16),
            }
        } else if action == PAIR_PORT.id || action == COPY_PAIR_PORT.id {
            PortRole::Pair { pair: reader.pair_param(0)?, side, copy: action == COPY_PAIR_PORT.id }
        } else {
            return Err(reader.unknown_action());
        };
        Ok(PortEntry { port, role })
    }
}
