//! Keep-alives under way, and the window of those that lately were.

use std::collections::VecDeque;

use crate::profile::MAX_UNDER_WAY;
use crate::{Direction, Nanos, PerDirection};

/// How a keep-alive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    UnderWay,
    Good,
    Lost,
    /// Lost, and came back after all.
    Late,
    /// Given up without a verdict.
    Void,
}

/// One slot: the keep-alives of both directions, sent together under one sequence number.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) sent: Nanos,
    pub(crate) outcomes: PerDirection<Outcome>,
}

impl Flight {
    fn is_under_way(&self) -> bool {
        Direction::BOTH.iter().any(|&direction| self.outcomes[direction] == Outcome::UnderWay)
    }
}

/// Settled flights that are kept so that a late or second copy is told from a stale one.
pub(crate) const KEPT: usize = 64 + MAX_UNDER_WAY as usize;

/// As [`KEPT`], of the many cores.
pub(crate) const KEPT_OF_CORE: usize = 8;

/// Flights by sequence number, the oldest first and without holes.
#[derive(Clone, Debug)]
pub(crate) struct Flights {
    window: VecDeque<Flight>,
    /// Sequence number of the first flight in the window.
    first: u64,
    /// How many flights at the front of the window have nothing under way.
    settled: usize,
    /// Length of the window beyond which settled flights are forgotten.
    kept: usize,
}

impl Flights {
    pub(crate) fn starting_at(sequence: u64, kept: usize) -> Flights {
        Flights { window: VecDeque::new(), first: sequence, settled: 0, kept }
    }

    /// The number that the next flight will carry.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    pub(crate) fn launch(&mut self, now: Nanos) -> u64 {
        let sequence = self.next_sequence();
        let under_way = PerDirection { lan_to_wan: Outcome::UnderWay, wan_to_lan: Outcome::UnderWay };
        self.window.push_back(Flight { sent: now, outcomes: under_way });
        self.settle();
        sequence
    }

    pub(crate) fn outcome_mut(&mut self, sequence: u64, direction: Direction) -> Option<&mut Outcome> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        Some(&mut self.window.get_mut(index)?.outcomes[direction])
    }

    /// The oldest flight with something under way.
    pub(crate) fn oldest_mut(&mut self) -> Option<&mut Flight> {
        self.window.get_mut(self.settled)
    }

    pub(crate) fn oldest_sent(&self) -> Option<Nanos> {
        self.window.get(self.settled).map(|flight| flight.sent)
    }

    pub(crate) fn under_way_mut(&mut self) -> impl Iterator<Item = &mut Flight> {
        self.window.iter_mut().skip(self.settled)
    }

    /// To be called after outcomes changed: moves the front on and forgets what is too old.
    pub(crate) fn settle(&mut self) {
        while self.window.get(self.settled).is_some_and(|flight| !flight.is_under_way()) {
            self.settled += 1;
        }
        while self.settled > 0 && self.window.len() > self.kept {
            self.window.pop_front();
            self.first += 1;
            self.settled -= 1;
        }
    }
}
