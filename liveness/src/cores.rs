//! The cores of a pair, each with its own up and down.

use crate::stream::Stream;
use crate::{Nanos, PerDirection, Profile, Reason, Tally};

/// State of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CoreState {
    /// Nothing is known yet; nothing speaks against it, so its buckets are not taken from it.
    #[default]
    Init,
    /// In service.
    Up,
    /// Its own keep-alives are lost while the pair's come back.
    Down,
}

impl CoreState {
    /// Whether the core keeps its buckets.
    pub fn carries(self) -> bool {
        self != CoreState::Down
    }
}

/// A core, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreStatus {
    /// From 0.
    pub core: u8,
    /// State.
    pub state: CoreState,
    /// Since when it is in this state.
    pub last_change: Nanos,
    /// Why it is in this state.
    pub last_reason: Reason,
    /// How often it went down.
    pub flaps: u64,
    /// Counters and consecutive outcomes of its own keep-alives.
    pub tallies: PerDirection<Tally>,
}

#[derive(Clone, Debug)]
pub(crate) struct Core {
    number: u8,
    pub(crate) state: CoreState,
    pub(crate) stream: Stream,
    last_change: Nanos,
    last_reason: Reason,
    flaps: u64,
}

impl Core {
    pub(crate) fn new(number: u8, state: CoreState, stream: Stream, reason: Reason, now: Nanos) -> Core {
        Core { number, state, stream, last_change: now, last_reason: reason, flaps: 0 }
    }

    pub(crate) fn status(&self) -> CoreStatus {
        CoreStatus {
            core: self.number,
            state: self.state,
            last_change: self.last_change,
            last_reason: self.last_reason,
            flaps: self.flaps,
            tallies: self.stream.paths.map(|path| path.tally),
        }
    }

    /// What its consecutive outcomes ask for.
    pub(crate) fn judge(&self, profile: &Profile) -> Option<(CoreState, Reason)> {
        let count = self.stream.consecutive_good();
        if self.state != CoreState::Up && count >= profile.probes_up_count() {
            return Some((CoreState::Up, Reason::Good { count }));
        }
        let (direction, count) = self.stream.longest_loss();
        if self.state != CoreState::Down && count >= profile.probes_down_count() {
            return Some((CoreState::Down, Reason::Losses { direction, count }));
        }
        None
    }

    pub(crate) fn change(&mut self, to: CoreState, reason: Reason, now: Nanos) {
        self.flaps += u64::from(to == CoreState::Down);
        (self.state, self.last_change, self.last_reason) = (to, now, reason);
    }
}
