//! One direction of a pair: counters, consecutive outcomes, samples.

use crate::samples::Samples;
use crate::{Fault, Nanos, PairKey, Statistics};

/// What became of a keep-alive that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within max-delay.
    Good,
    /// Another copy of one that already came back.
    Duplicate,
    /// After max-delay: it has been counted as lost, and stays so.
    Late,
    /// Of no use any more: voided, older than the window of sequence numbers, never sent, or received before it was
    /// transmitted by its own time stamps.
    Stale,
}

/// Why a keep-alive was turned away before its sequence number was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its keyed tag does not match its fields. Count it for the pair whose port it came by.
    WrongTag,
    /// Sent by another controller instance.
    WrongInstance,
    /// Came back on the port that it left by.
    Looped,
    /// Came back on a port of this other pair.
    WrongPair(PairKey),
}

/// What happened to the keep-alives of one direction since the pair was added.
///
/// `sent = good + lost + voided + under way`; `late` are those of `lost` that came back after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Handed out to be sent.
    pub sent: u64,
    /// Came back within max-delay.
    pub good: u64,
    /// Did not.
    pub lost: u64,
    /// Came back after max-delay.
    pub late: u64,
    /// Further copies of one that came back.
    pub duplicate: u64,
    /// Came back, but of no use any more.
    pub stale: u64,
    /// Given up without a verdict: nobody was watching, carrier, administration or the end of a suspension cut them
    /// off, or they could not be sent.
    pub voided: u64,
    /// Turned away: the tag did not match.
    pub wrong_tag: u64,
    /// Turned away: sent by another controller instance.
    pub wrong_instance: u64,
    /// Turned away: came back on the port it left by.
    pub looped: u64,
    /// Turned away: came back on another pair.
    pub wrong_pair: u64,
}

/// Counters and consecutive outcomes of one direction at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Since the pair was added.
    pub counters: Counters,
    /// Good ones since the last loss.
    pub consecutive_good: u32,
    /// Losses since the last good one.
    pub consecutive_lost: u32,
}

/// One direction of a pair, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStatus {
    /// Counters and consecutive outcomes.
    pub tally: Tally,
    /// Over the last keep-alives.
    pub statistics: Statistics,
    /// When the last loss was noticed.
    pub last_loss: Option<Nanos>,
}

/// The living state behind [`PathStatus`].
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) tally: Tally,
    samples: Samples,
    last_loss: Option<Nanos>,
    /// The gap in which the last keep-alive was voided, while nothing was learnt since.
    voided_in: Option<u64>,
    /// The cabling fault last reported, until a good keep-alive disproves it.
    fault: Option<Fault>,
}

impl Path {
    pub(crate) fn new(samples: usize) -> Path {
        Path {
            tally: Tally::default(),
            samples: Samples::new(samples),
            last_loss: None,
            voided_in: None,
            fault: None,
        }
    }

    pub(crate) fn resize(&mut self, samples: usize) {
        self.samples.resize(samples);
    }

    pub(crate) fn good(&mut self, delay: Nanos) {
        self.tally.counters.good += 1;
        self.tally.consecutive_good = self.tally.consecutive_good.saturating_add(1);
        self.tally.consecutive_lost = 0;
        self.samples.push(Some(delay));
        self.voided_in = None;
        self.fault = None;
    }

    pub(crate) fn lost(&mut self, now: Nanos) {
        self.tally.counters.lost += 1;
        self.tally.consecutive_lost = self.tally.consecutive_lost.saturating_add(1);
        self.tally.consecutive_good = 0;
        self.samples.push(None);
        self.last_loss = Some(now);
        self.voided_in = None;
    }

    /// Whether a keep-alive that ran out in this gap may be voided. A second gap in a row may not: a controller that
    /// is late at every turn would otherwise never see a fault.
    pub(crate) fn may_void(&self, gap: u64) -> bool {
        self.voided_in.is_none_or(|voided_in| voided_in == gap)
    }

    pub(crate) fn void_in_gap(&mut self, gap: u64) {
        self.tally.counters.voided += 1;
        self.voided_in = Some(gap);
    }

    /// Starts the consecutive outcomes anew.
    pub(crate) fn restart(&mut self) {
        self.tally.consecutive_good = 0;
        self.tally.consecutive_lost = 0;
    }

    /// Counts it; a fault in the cabling is returned when it is news.
    pub(crate) fn reject(&mut self, why: Rejection) -> Option<Fault> {
        let counters = &mut self.tally.counters;
        let fault = match why {
            Rejection::WrongTag => {
                counters.wrong_tag += 1;
                return None;
            }
            Rejection::WrongInstance => {
                counters.wrong_instance += 1;
                return None;
            }
            Rejection::Looped => {
                counters.looped += 1;
                Fault::Looped
            }
            Rejection::WrongPair(seen_on) => {
                counters.wrong_pair += 1;
                Fault::OtherPair(seen_on)
            }
        };
        (self.fault.replace(fault) != Some(fault)).then_some(fault)
    }

    pub(crate) fn status(&self) -> PathStatus {
        PathStatus { tally: self.tally, statistics: self.samples.statistics(), last_loss: self.last_loss }
    }
}
