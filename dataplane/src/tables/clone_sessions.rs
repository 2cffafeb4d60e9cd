//! Clone sessions: where the copy of a frame goes. No table of the program, but of the packet replication engine
//! (P4Runtime, "CloneSessionEntry"); the program asks for the session of a port, and makes no copy where there is
//! none.

use super::{EntryReader, exact_entry};
use crate::entry::{Entry, EntryError};
use crate::ids::PortId;
use crate::schema::{Action, DefaultAction, Field, MatchKind, Table};

/// Instance that our replicas have; the program does not look at it.
const INSTANCE: u32 = 1;

static TO_REPLICA: Action = Action {
    id: 0x0000_0001,
    name: "replica",
    params: &[Field { id: 1, name: "egress_port", bits: 32 }, Field { id: 2, name: "instance", bits: 32 }],
    restriction: None,
    brief: "The session's one replica.",
};

static NO_SESSION: Action =
    Action { id: 0x0000_0002, name: "no_session", params: &[], restriction: None, brief: "No copy." };

/// Clone sessions. The ids are of no kind that a P4Info has.
pub static TABLE: Table = Table {
    id: 0x0000_0001,
    name: "clone_sessions",
    key: &[(Field { id: 1, name: "session_id", bits: 32 }, MatchKind::Exact)],
    actions: &[&TO_REPLICA],
    default: DefaultAction::Const(NO_SESSION.id),
    default_action: &NO_SESSION,
    size: 512,
    direct_counter: None,
    restriction: None,
    brief: "Where copies go.",
};

/// Number of a clone session, 1..=512: the port of the copy plus 1, since 0 is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloneSessionId(u16);

impl CloneSessionId {
    /// The session that the program asks for where a copy shall leave by `port`.
    #[must_use]
    pub const fn of(port: PortId) -> Self {
        CloneSessionId(port.0 + 1)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// One clone session with one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneSessionEntry {
    /// The session.
    pub session: CloneSessionId,
    /// Where copies go.
    pub port: PortId,
    /// Told apart by the program if it likes.
    pub instance: u32,
}

impl CloneSessionEntry {
    /// The session by which copies leave by `port`.
    #[must_use]
    pub const fn to(port: PortId) -> Self {
        CloneSessionEntry { session: CloneSessionId::of(port), port, instance: INSTANCE }
    }

    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        exact_entry(
            &TABLE,
            &[(1, self.session.0.into())],
            &TO_REPLICA,
            &[self.port.0.into(), self.instance.into()],
        )
    }

    pub(super) fn read(reader: &EntryReader<'_>) -> Result<Self, EntryError> {
        let session = match u16::try_from(reader.exact(1)) {
            Ok(number @ 1..=512) => CloneSessionId(number),
            _ => {
                let wanted = "1..512, the port of the copy plus 1";
                return Err(reader.bad_key(1, wanted));
            }
        };
        let port = match u16::try_from(reader.param(0)) {
            Ok(number @ 0..=511) => PortId(number),
            _ => return Err(reader.bad_param(0, "0..511")),
        };
        Ok(CloneSessionEntry { session, port, instance: reader.param(1) as u32 })
    }
}
