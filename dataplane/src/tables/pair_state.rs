//! `pair_state`: whether a pair carries traffic. One write takes a pair out.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::PairId;
use crate::schema::{Action, DefaultAction, Field, MatchKind, PAIR_RESTRICTION, Table};

static UP: Action = Action {
    id: 0x0100_000f,
    name: "pair_up",
    params: &[],
    restriction: None,
    brief: "The pair carries traffic.",
};
static BYPASS: Action = Action {
    id: 0x0100_0010,
    name: "pair_bypass",
    params: &[],
    restriction: None,
    brief: "Its share takes the peer port; also where the pair is unknown.",
};
static DROP: Action = Action {
    id: 0x0100_0011,
    name: "pair_drop",
    params: &[],
    restriction: None,
    brief: "Its share is dropped (fail-action drop).",
};

pub(super) static TABLE: Table = Table {
    id: 0x0200_0007,
    name: "pair_state",
    key: &[(Field { id: 1, name: "pair", bits: 16 }, MatchKind::Exact)],
    actions: &[&UP, &BYPASS, &DROP],
    default: DefaultAction::Const(BYPASS.id),
    default_action: &BYPASS,
    size: 512,
    direct_counter: None,
    restriction: Some(PAIR_RESTRICTION),
    brief: "Whether a pair carries traffic.",
};

/// What happens to a pair's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PairForwarding {
    /// To the appliance.
    Up,
    /// Soft bypass.
    #[default]
    Bypass,
    /// Dropped.
    Drop,
}

/// State of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairStateEntry {
    /// The pair.
    pub pair: PairId,
    /// What happens to its share.
    pub forwarding: PairForwarding,
}

impl PairStateEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let action = match self.forwarding {
            PairForwarding::Up => &UP,
            PairForwarding::Bypass => &BYPASS,
            PairForwarding::Drop => &DROP,
        };
        exact_entry(&TABLE, &[(1, self.pair.0.into())], action, &[])
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let forwarding = match reader.entry.action {
            id if id == UP.id => PairForwarding::Up,
            id if id == BYPASS.id => PairForwarding::Bypass,
            id if id == DROP.id => PairForwarding::Drop,
            _ => return Err(reader.unknown_action()),
        };
        Ok(PairStateEntry { pair: reader.pair_key(1)?, forwarding })
    }
}
