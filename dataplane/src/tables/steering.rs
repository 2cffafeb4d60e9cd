//! `steering`: how steering headers look. No key; the default action is the setting.

use super::EntryReader;
use crate::entry::{Entry, EntryError};
use crate::frame::FIRST_ETHERTYPE;
use crate::keepalive::KEEP_ALIVE_ETHERTYPE;
use crate::schema::{Action, DefaultAction, Field, Table};
use crate::steering::{NATIVE_TPID, SteeringMode};

const NATIVE: u128 = 0;
const DOT1Q: u128 = 1;
/// A VID has 12 bits.
const MAX_VID: u16 = 4095;
/// EtherTypes that the parse reads or that mean keep-alives: a header that looks like one would hide the frame's
/// own, or pass for a keep-alive.
pub const FORBIDDEN_TPIDS: [u16; 6] = [0x0800, 0x86dd, 0x8847, 0x8848, 0x8864, KEEP_ALIVE_ETHERTYPE];

const RESTRICTION: &str = "mode < 2; base_vid <= 4095; tpid >= 0x0600 && tpid != 0x0800 && tpid != 0x86dd && \
    tpid != 0x8847 && tpid != 0x8848 && tpid != 0x8864 && tpid != 0x88b5";

static SET_STEERING: Action = Action {
    id: 0x0100_0001,
    name: "set_steering",
    params: &[
        Field { id: 1, name: "mode", bits: 8 },
        Field { id: 2, name: "tpid", bits: 16 },
        Field { id: 3, name: "base_vid", bits: 16 },
    ],
    restriction: Some(RESTRICTION),
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
    restriction: None,
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
        if base_vid > MAX_VID {
            return Err(reader.bad_param(2, "a VID, 0..4095"));
        }
        if tpid < FIRST_ETHERTYPE || FORBIDDEN_TPIDS.contains(&tpid) {
            return Err(reader.bad_param(
                1,
                "1536 (0x0600) or more and none of 0x0800, 0x86dd, 0x8847, 0x8848, 0x8864 and 0x88b5",
            ));
        }
        let mode = match reader.param(0) {
            mode if mode == NATIVE => SteeringMode::Native { tpid },
            mode if mode == DOT1Q => SteeringMode::Dot1q { tpid, base_vid },
            _ => return Err(reader.bad_param(0, "0 (native) or 1 (dot1q)")),
        };
        Ok(SteeringEntry { mode })
    }
}
