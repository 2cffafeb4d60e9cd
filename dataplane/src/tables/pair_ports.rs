//! `pair_ports`: the port of each side of a pair.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::{PairId, PortId, Side};
use crate::schema::{Action, DefaultAction, Field, MatchKind, PAIR_RESTRICTION, Table};

static TO_PAIR_PORT: Action = Action {
    id: 0x0100_0012,
    name: "to_pair_port",
    params: &[Field { id: 1, name: "port", bits: 9 }],
    restriction: None,
    brief: "Push the steering header, send by this port.",
};

static NO_PAIR_PORT: Action = Action {
    id: 0x0100_0013,
    name: "no_pair_port",
    params: &[],
    restriction: None,
    brief: "To the peer port: fail open.",
};

/// `pair_ports`.
pub static TABLE: Table = Table {
    id: 0x0200_0008,
    name: "pair_ports",
    key: &[
        (Field { id: 1, name: "pair", bits: 16 }, MatchKind::Exact),
        (Field { id: 2, name: "side", bits: 1 }, MatchKind::Exact),
    ],
    actions: &[&TO_PAIR_PORT],
    default: DefaultAction::Const(NO_PAIR_PORT.id),
    default_action: &NO_PAIR_PORT,
    size: 1024,
    direct_counter: None,
    restriction: Some(PAIR_RESTRICTION),
    brief: "The port of each side of a pair.",
};

/// Port of one side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPortEntry {
    /// The pair.
    pub pair: PairId,
    /// The side.
    pub side: Side,
    /// The port.
    pub port: PortId,
}

impl PairPortEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        exact_entry(
            &TABLE,
            &[(1, self.pair.0.into()), (2, self.side.bit().into())],
            &TO_PAIR_PORT,
            &[self.port.0.into()],
        )
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        Ok(PairPortEntry {
            pair: reader.pair_key(1)?,
            side: Side::from_bit(reader.exact(2) != 0),
            port: PortId(reader.param(0) as u16),
        })
    }
}
