//! `pair_state`: whether a pair carries traffic.

use dataplane::PairId;
use dataplane::schema::counters::PAIRS;
use dataplane::tables::{PairForwarding, PairStateEntry};

/// State of every pair.
#[derive(Clone)]
pub struct PairStates(Vec<PairForwarding>);

impl Default for PairStates {
    fn default() -> Self {
        PairStates(vec![PairForwarding::Bypass; PAIRS])
    }
}

impl PairStates {
    #[inline(always)]
    pub(crate) fn view(&self) -> PairStatesView<'_> {
        PairStatesView(&self.0)
    }

    pub(super) fn set(&mut self, entry: &PairStateEntry) {
        if let Some(cell) = self.0.get_mut(entry.pair.index()) {
            *cell = entry.forwarding;
        }
    }

    pub(super) fn clear(&mut self, entry: &PairStateEntry) {
        if let Some(cell) = self.0.get_mut(entry.pair.index()) {
            *cell = PairForwarding::Bypass;
        }
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct PairStatesView<'t>(&'t [PairForwarding]);

impl PairStatesView<'_> {
    /// Bypass where the pair is unknown.
    #[inline(always)]
    pub(crate) fn forwarding(self, pair: PairId) -> PairForwarding {
        self.0.get(pair.index()).copied().unwrap_or(PairForwarding::Bypass)
    }
}
