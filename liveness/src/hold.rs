//! Flap damping: holds and trials.

use std::collections::VecDeque;

use crate::{HoldChange, HoldDown, Nanos};

/// Downs beyond these change nothing: the ceiling was reached long before.
const REMEMBERED: usize = 64;

/// A hold or a trial, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldStatus {
    /// When the hold ends and the trial begins; in the past during the trial.
    pub until: Nanos,
    /// Which down within the window this is, from 1.
    pub down: u32,
    /// The hold is over: the next probes-up-count keep-alives decide.
    pub trial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    since: Nanos,
    status: HoldStatus,
}

/// What damping knows of a pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damping {
    /// When the last downs were, failed trials among them; the oldest first.
    downs: VecDeque<Nanos>,
    hold: Option<Hold>,
    /// The entry of this hold in the queue of deadlines.
    pub(crate) timer: Option<Nanos>,
}

impl Damping {
    pub(crate) fn status(&self) -> Option<HoldStatus> {
        self.hold.map(|hold| hold.status)
    }

    pub(crate) fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    pub(crate) fn is_on_trial(&self) -> bool {
        self.hold.is_some_and(|hold| hold.status.trial)
    }

    /// When the hold ends, while it runs.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.hold.filter(|hold| !hold.status.trial).map(|hold| hold.status.until)
    }

    /// A fall from service: the k-th within the window holds for the k-th span.
    pub(crate) fn fell(&mut self, rule: &HoldDown, now: Nanos) -> HoldChange {
        while self.downs.front().is_some_and(|down| *down + rule.window() < now) {
            self.downs.pop_front();
        }
        let down = u32::try_from(self.downs.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.start(down, rule, now, false)
    }

    /// A failure in the trial: the next hold, at once.
    pub(crate) fn failed(&mut self, rule: &HoldDown, now: Nanos) -> HoldChange {
        let down = self.hold.map_or(0, |hold| hold.status.down).saturating_add(1);
        self.start(down, rule, now, true)
    }

    fn start(&mut self, down: u32, rule: &HoldDown, now: Nanos, trial_failed: bool) -> HoldChange {
        if self.downs.len() == REMEMBERED {
            self.downs.pop_front();
        }
        self.downs.push_back(now);
        let until = now + rule.hold(down);
        self.hold = Some(Hold { since: now, status: HoldStatus { until, down, trial: false } });
        HoldChange::Started { down, until, trial_failed }
    }

    /// The hold has run out.
    pub(crate) fn try_again(&mut self) -> HoldChange {
        if let Some(hold) = &mut self.hold {
            hold.status.trial = true;
        }
        HoldChange::Trial
    }

    /// The trial succeeded. The downs stay remembered.
    pub(crate) fn passed(&mut self) -> Option<HoldChange> {
        self.hold.take().map(|_| HoldChange::Passed)
    }

    /// Ends the hold and forgets the downs.
    pub(crate) fn clear(&mut self) -> Option<HoldChange> {
        self.downs.clear();
        self.hold.take().map(|_| HoldChange::Cleared)
    }

    /// The last down was none.
    pub(crate) fn take_back(&mut self) -> Option<HoldChange> {
        let hold = self.hold.take()?;
        self.downs.pop_back();
        (!hold.status.trial).then_some(HoldChange::Cleared)
    }

    /// Takes over another rule: a hold that runs gets no longer than it gives.
    pub(crate) fn adopt(&mut self, rule: &HoldDown) {
        if let Some(Hold { since, status }) = &mut self.hold {
            status.until = status.until.min(*since + rule.hold(status.down));
        }
    }
}
