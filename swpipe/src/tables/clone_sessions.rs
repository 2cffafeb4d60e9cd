//! Clone sessions: where the copy of a frame goes.

use dataplane::PortId;
use dataplane::schema::counters::PORTS;
use dataplane::tables::{CloneSessionEntry, CloneSessionId};

/// Replica of every session, by its number less 1.
#[derive(Clone)]
pub struct CloneSessions(Vec<Option<PortId>>);

impl Default for CloneSessions {
    fn default() -> Self {
        CloneSessions(vec![None; PORTS])
    }
}

impl CloneSessions {
    /// Where the session's copies go; `None` where there is no such session.
    #[inline]
    #[must_use]
    pub fn replica(&self, session: CloneSessionId) -> Option<PortId> {
        self.0.get(usize::from(session.number()).checked_sub(1)?).copied().flatten()
    }

    fn write(&mut self, entry: &CloneSessionEntry, port: Option<PortId>) {
        let cell = usize::from(entry.session.number()).checked_sub(1).and_then(|at| self.0.get_mut(at));
        if let Some(cell) = cell {
            *cell = port;
        }
    }

    pub(super) fn set(&mut self, entry: &CloneSessionEntry) {
        self.write(entry, Some(entry.port));
    }

    pub(super) fn clear(&mut self, entry: &CloneSessionEntry) {
        self.write(entry, None);
    }
}
