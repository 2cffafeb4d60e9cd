//! `buckets`: pair and core of every bucket, or what else becomes of its share.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::{BucketIndex, Core, PairId, UnitId};
use crate::schema::{Action, BUCKETS, DefaultAction, Field, MatchKind, PAIR_RESTRICTION, Table};
use crate::verdict::Reason;

static TO_PAIR: Action = Action {
    id: 0x0100_000d,
    name: "to_pair",
    params: &[Field { id: 1, name: "pair", bits: 16 }, Field { id: 2, name: "core", bits: 8 }],
    restriction: Some(PAIR_RESTRICTION),
    brief: "The pair and worker core that serve the bucket.",
};

static BYPASS_BUCKET: Action = Action {
    id: 0x0100_001a,
    name: "bypass_bucket",
    params: &[Field { id: 1, name: "reason", bits: 8 }],
    restriction: Some("reason == 12 || reason == 13"),
    brief: "To the peer port; reason 12 core-down, 13 shed.",
};

static DROP_BUCKET: Action = Action {
    id: 0x0100_001b,
    name: "drop_bucket",
    params: &[],
    restriction: None,
    brief: "Dropped: the core is down (fail-action drop).",
};

static NO_BUCKET: Action = Action {
    id: 0x0100_000e,
    name: "no_bucket",
    params: &[],
    restriction: None,
    brief: "To the peer port: fail open.",
};

/// `buckets`.
pub static TABLE: Table = Table {
    id: 0x0200_0006,
    name: "buckets",
    key: &[
        (Field { id: 1, name: "unit", bits: 8 }, MatchKind::Exact),
        (Field { id: 2, name: "bucket", bits: 16 }, MatchKind::Exact),
    ],
    actions: &[&TO_PAIR, &BYPASS_BUCKET, &DROP_BUCKET],
    default: DefaultAction::Const(NO_BUCKET.id),
    default_action: &NO_BUCKET,
    size: BUCKETS,
    direct_counter: None,
    restriction: None,
    brief: "Pair and core of every bucket.",
};

/// What becomes of a bucket's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketForwarding {
    /// To an appliance, if the state of the pair admits it.
    Pair {
        /// The pair that serves it.
        pair: PairId,
        /// The worker core.
        core: Core,
    },
    /// To the peer port, whatever the state of any pair.
    Bypass(BucketBypass),
    /// Dropped, since its worker core is down; of a `copy` rule the frame goes to the peer port.
    Drop,
}

/// Why a bucket takes the peer port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketBypass {
    /// Its worker core is down.
    CoreDown,
    /// More comes than the appliance can carry.
    Shed,
}

impl BucketBypass {
    /// The counter that its frames end in.
    #[inline]
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            BucketBypass::CoreDown => Reason::CoreDownBypass,
            BucketBypass::Shed => Reason::Shed,
        }
    }
}

impl BucketForwarding {
    /// Pair and core that serve the bucket, if any do.
    #[inline(always)]
    #[must_use]
    pub const fn serving(self) -> Option<(PairId, Core)> {
        match self {
            BucketForwarding::Pair { pair, core } => Some((pair, core)),
            BucketForwarding::Bypass(_) | BucketForwarding::Drop => None,
        }
    }
}

/// One bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    /// The unit.
    pub unit: UnitId,
    /// The bucket.
    pub bucket: BucketIndex,
    /// What becomes of its share.
    pub forwarding: BucketForwarding,
}

impl BucketEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let key = [(1, self.unit.0.into()), (2, self.bucket.0.into())];
        match self.forwarding {
            BucketForwarding::Pair { pair, core } => {
                exact_entry(&TABLE, &key, &TO_PAIR, &[pair.0.into(), core.0.into()])
            }
            BucketForwarding::Bypass(why) => {
                exact_entry(&TABLE, &key, &BYPASS_BUCKET, &[why.reason() as u128])
            }
            BucketForwarding::Drop => exact_entry(&TABLE, &key, &DROP_BUCKET, &[]),
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let forwarding = match reader.entry.action {
            id if id == TO_PAIR.id => {
                BucketForwarding::Pair { pair: reader.pair_param(0)?, core: Core(reader.param(1) as u8) }
            }
            id if id == BYPASS_BUCKET.id => {
                let why = [BucketBypass::CoreDown, BucketBypass::Shed];
                let why = why.into_iter().find(|why| why.reason() as u128 == reader.param(0));
                BucketForwarding::Bypass(
                    why.ok_or_else(|| reader.bad_param(0, "12 (core-down) or 13 (shed)"))?,
                )
            }
            id if id == DROP_BUCKET.id => BucketForwarding::Drop,
            _ => return Err(reader.unknown_action()),
        };
        Ok(BucketEntry {
            unit: UnitId(reader.exact(1) as u8),
            bucket: BucketIndex(reader.exact(2) as u16),
            forwarding,
        })
    }
}
