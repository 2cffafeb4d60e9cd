//! `steering`: how steering headers look. No key; the default action is the setting.

use super::EntryReader;
use crate::entry::{Entry, EntryError};
use crate::schema::{Action, DefaultAction, Field, Table};
use crate::steering::{NATIVE_TPID, SteeringMode};

const NATIVE: u128 = 0;
const DOT1Q: u128 = 1;

static SET_STEERING: Action = Action {
    id: 0x0100_0001,
    name: "set_steering",
    params: &[
        Field { id: 1, name: "mode", bits: 8 },
        Field { id: 2, name: "tpid", bits: 16 },
        Field { id: 3, name: "base_vid", bits: 16 },
    ],
    brief: "Header format: mode 0 native, 1 dot1q.",
};

pub(super) static TABLE: Table = Table {
    id: 0x0200_0001,
    name: "steering",
    key: &[],
    actions: &[&SET_STEERING],
    default: DefaultAction::Settable(SET_STEERING.id, &[NATIVE, NATIVE_TPID as u128, 0]),
    default_action: &SET_STEERING,
    size: 1,
    direct_counter: None,
    brief: "How steering headers look.",
};

/// The format of steering headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringEntry {
    /// Mode, TPID and base VID.
    pub mode: SteeringMode,
}

impl SteeringEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let (mode, tpid, base_vid) = match self.mode {
            SteeringMode::Native { tpid } => (NATIVE, tpid, 0),
            SteeringMode::Dot1q { tpid, base_vid } => (DOT1Q, tpid, base_vid),
        };
        Entry {
            table: TABLE.id,
            key: Vec::new(),
            priority: 0,
            action: SET_STEERING.id,
            params: vec![mode, tpid.into(), base_vid.into()],
            metadata: Vec::new(),
            is_default: true,
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let tpid = reader.param(1) as u16;
        let base_vid = reader.param(2) as u16;
        if base_vid > 4095 {
            return Err(reader.bad_param(2, "a VID, 0..4095"));
        }
        let mode = match reader.param(0) {
            mode if mode == NATIVE => SteeringMode::Native { tpid },
            mode if mode == DOT1Q => SteeringMode::Dot1q { tpid, base_vid },
            _ => return Err(reader.bad_param(0, "0 (native) or 1 (dot1q)")),
        };
        Ok(SteeringEntry { mode })
    }
}
