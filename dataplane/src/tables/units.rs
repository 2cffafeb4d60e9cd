//! `units`: balancing method, bucket mask and state of a unit.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::hash::Method;
use crate::ids::UnitId;
use crate::schema::{Action, DefaultAction, Field, MatchKind, Table};

/// That a mask is a power of two less one takes bit operators to say, which the language lacks.
const RESTRICTION: &str = "method < 4; bucket_mask == 0 || bucket_mask == 1 || bucket_mask == 3 || \
    bucket_mask == 7 || bucket_mask == 15 || bucket_mask == 31 || bucket_mask == 63 || bucket_mask == 127 || \
    bucket_mask == 255 || bucket_mask == 511 || bucket_mask == 1023 || bucket_mask == 2047 || \
    bucket_mask == 4095 || bucket_mask == 8191 || bucket_mask == 16383 || bucket_mask == 32767 || \
    bucket_mask == 65535";

static BALANCE: Action = Action {
    id: 0x0100_000a,
    name: "unit_balance",
    params: &[Field { id: 1, name: "method", bits: 8 }, Field { id: 2, name: "bucket_mask", bits: 16 }],
    restriction: Some(RESTRICTION),
    brief: "Balance; method 0 layer-3, 1 layer-4, 2 dst-ip, 3 src-ip.",
};

static PRIMARY: Action = Action {
    id: 0x0100_000b,
    name: "unit_primary",
    params: &[Field { id: 1, name: "method", bits: 8 }, Field { id: 2, name: "bucket_mask", bits: 16 }],
    restriction: Some(RESTRICTION),
    brief: "Balance and ignore the state of pairs.",
};

static BACKUP: Action = Action {
    id: 0x0100_0019,
    name: "unit_backup",
    params: &[
        Field { id: 1, name: "method", bits: 8 },
        Field { id: 2, name: "bucket_mask", bits: 16 },
        Field { id: 3, name: "unit", bits: 8 },
    ],
    restriction: Some(RESTRICTION),
    brief: "Balance with the buckets of another unit; the state of its pairs counts.",
};

static BYPASS: Action = Action {
    id: 0x0100_000c,
    name: "unit_bypass",
    params: &[],
    restriction: None,
    brief: "Everything to the peer port; also where the unit is unknown.",
};

pub(super) static TABLE: Table = Table {
    id: 0x0200_0005,
    name: "units",
    key: &[(Field { id: 1, name: "unit", bits: 8 }, MatchKind::Exact)],
    actions: &[&BALANCE, &PRIMARY, &BACKUP, &BYPASS],
    default: DefaultAction::Const(BYPASS.id),
    default_action: &BYPASS,
    size: 256,
    direct_counter: None,
    restriction: None,
    brief: "Method, bucket mask and state of a unit.",
};

/// What a unit does with its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitMode {
    /// Balance over its pairs.
    Balance {
        /// Hash input.
        method: Method,
        /// Number of buckets - 1.
        bucket_mask: u16,
        /// Ignore pair states.
        primary: bool,
    },
    /// Balance with the buckets of another unit, and so over its pairs; their state counts.
    Backup {
        /// Hash input.
        method: Method,
        /// Number of the other unit's buckets - 1.
        bucket_mask: u16,
        /// The other unit; whatever its own mode is.
        unit: UnitId,
    },
    /// Everything to the peer port.
    Bypass,
}

/// One unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitEntry {
    /// The unit.
    pub unit: UnitId,
    /// What it does.
    pub mode: UnitMode,
}

impl UnitEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let key = [(1, self.unit.0.into())];
        match self.mode {
            UnitMode::Bypass => exact_entry(&TABLE, &key, &BYPASS, &[]),
            UnitMode::Balance { method, bucket_mask, primary } => {
                let action = if primary { &PRIMARY } else { &BALANCE };
                exact_entry(&TABLE, &key, action, &[method as u128, bucket_mask.into()])
            }
            UnitMode::Backup { method, bucket_mask, unit } => {
                exact_entry(&TABLE, &key, &BACKUP, &[method as u128, bucket_mask.into(), unit.0.into()])
            }
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let unit = UnitId(reader.exact(1) as u8);
        let action = reader.entry.action;
        if action == BYPASS.id {
            return Ok(UnitEntry { unit, mode: UnitMode::Bypass });
        }
        let method = Method::from_number(reader.param(0) as u8)
            .ok_or_else(|| reader.bad_param(0, "0 layer-3, 1 layer-4, 2 dst-ip or 3 src-ip"))?;
        let bucket_mask = reader.param(1) as u16;
        if bucket_mask & bucket_mask.wrapping_add(1) != 0 {
            return Err(reader.bad_param(1, "a power of two less 1"));
        }
        let mode = if action == BACKUP.id {
            UnitMode::Backup { method, bucket_mask, unit: UnitId(reader.param(2) as u8) }
        } else {
            UnitMode::Balance { method, bucket_mask, primary: action == PRIMARY.id }
        };
        Ok(UnitEntry { unit, mode })
    }
}
