//! `buckets`: pair and core of every bucket.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::{BucketIndex, Core, PairId, UnitId};
use crate::schema::{Action, BUCKETS, DefaultAction, Field, MatchKind, PAIR_RESTRICTION, Table};

static TO_PAIR: Action = Action {
    id: 0x0100_000d,
    name: "to_pair",
    params: &[Field { id: 1, name: "pair", bits: 16 }, Field { id: 2, name: "core", bits: 8 }],
    restriction: Some(PAIR_RESTRICTION),
    brief: "The pair and worker core that serve the bucket.",
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
    actions: &[&TO_PAIR],
    default: DefaultAction::Const(NO_BUCKET.id),
    default_action: &NO_BUCKET,
    size: BUCKETS,
    direct_counter: None,
    restriction: None,
    brief: "Pair and core of every bucket.",
};

/// One bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    /// The unit.
    pub unit: UnitId,
    /// The bucket.
    pub bucket: BucketIndex,
    /// The pair that serves it.
    pub pair: PairId,
    /// The worker core.
    pub core: Core,
}

impl BucketEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        exact_entry(
            &TABLE,
            &[(1, self.unit.0.into()), (2, self.bucket.0.into())],
            &TO_PAIR,
            &[self.pair.0.into(), self.core.0.into()],
        )
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        Ok(BucketEntry {
            unit: UnitId(reader.exact(1) as u8),
            bucket: BucketIndex(reader.exact(2) as u16),
            pair: reader.pair_param(0)?,
            core: Core(reader.param(1) as u8),
        })
    }
}
