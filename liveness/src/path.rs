//! One direction of a pair: counters, consecutive outcomes, samples.

use crate::samples::Samples;
use crate::{Fault, Histogram, Nanos, PairKey, Statistics};

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
    /// A negative probe came back: it counts against the pair.
    Returned,
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
    /// Over all keep-alives since the pair was added.
    pub histogram: Histogram,
    /// When the last loss was noticed.
    pub last_loss: Option<Nanos>,
}

/// Negative probes of one direction, for display. A good one is one that did not come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegativeStatus {
    /// Handed out to be sent.
    pub sent: u64,
    /// Did not come back within max-delay.
    pub silent: u64,
    /// Came back within max-delay.
    pub returned: u64,
    /// Of those counted as silent: came back after all. It counts against the pair as well.
    pub late: u64,
    /// Given up without a verdict.
    pub voided: u64,
    /// Silent ones since the last that came back.
    pub consecutive_silent: u32,
    /// Ones that came back since the last silent one.
    pub consecutive_returned: u32,
    /// When the last one came back.
    pub last_return: Option<Nanos>,
}

/// The living state behind [`PathStatus`].
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) tally: Tally,
    /// Times of good ones, where they are kept.
    measures: Option<Box<Measures>>,
    last_loss: Option<Nanos>,
    last_good: Option<Nanos>,
    /// The gap in which the last keep-alive was voided, while nothing was learnt since.
    voided_in: Option<u64>,
    /// The cabling fault last reported, until a good keep-alive disproves it.
    fault: Option<Fault>,
}

#[derive(Clone, Debug)]
struct Measures {
    samples: Samples,
    histogram: Histogram,
}

impl Path {
    /// A path that counts, and keeps no times.
    pub(crate) fn counting() -> Path {
        Path {
            tally: Tally::default(),
            measures: None,
            last_loss: None,
            last_good: None,
            voided_in: None,
            fault: None,
        }
    }

    /// A path that keeps the times of so many keep-alives.
    pub(crate) fn measuring(samples: usize) -> Path {
        let measures = Measures { samples: Samples::new(samples), histogram: Histogram::default() };
        Path { measures: Some(Box::new(measures)), ..Path::counting() }
    }

    pub(crate) fn resize(&mut self, samples: usize) {
        if let Some(measures) = &mut self.measures {
            measures.samples.resize(samples);
        }
    }

    /// One came back in time, after `delay`.
    pub(crate) fn good(&mut self, delay: Nanos, now: Nanos) {
        self.passed(now);
        if let Some(measures) = &mut self.measures {
            measures.samples.push(Some(delay));
            measures.histogram.add(delay);
        }
        self.fault = None;
    }

    /// A good outcome without a time: a negative probe that stayed away.
    pub(crate) fn passed(&mut self, now: Nanos) {
        self.tally.counters.good += 1;
        self.tally.consecutive_good = self.tally.consecutive_good.saturating_add(1);
        self.tally.consecutive_lost = 0;
        self.last_good = Some(now);
        self.voided_in = None;
    }

    pub(crate) fn lost(&mut self, now: Nanos) {
        self.tally.counters.lost += 1;
        self.failed(now);
        if let Some(measures) = &mut self.measures {
            measures.samples.push(None);
        }
    }

    /// Counts against the path in a row.
    pub(crate) fn failed(&mut self, now: Nanos) {
        self.tally.consecutive_lost = self.tally.consecutive_lost.saturating_add(1);
        self.tally.consecutive_good = 0;
        self.last_loss = Some(now);
        self.voided_in = None;
    }

    /// How long nothing good had come when the last loss was noticed; `None`: never yet.
    pub(crate) fn silence(&self) -> Option<Nanos> {
        Some(self.last_loss?.since(self.last_good?))
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

    pub(crate) fn statistics(&self) -> Statistics {
        self.measures.as_ref().map(|measures| measures.samples.statistics()).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> PathStatus {
        PathStatus {
            tally: self.tally,
            statistics: self.statistics(),
            histogram: self.measures.as_ref().map(|measures| measures.histogram).unwrap_or_default(),
            last_loss: self.last_loss,
        }
    }

    /// As the path of negative probes.
    pub(crate) fn negative_status(&self) -> NegativeStatus {
        let Tally { counters, consecutive_good, consecutive_lost } = self.tally;
        NegativeStatus {
            sent: counters.sent,
            silent: counters.good,
            returned: counters.lost,
            late: counters.late,
            voided: counters.voided,
            consecutive_silent: consecutive_good,
            consecutive_returned: consecutive_lost,
            last_return: self.last_loss,
        }
    }
}
