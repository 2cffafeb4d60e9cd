//! Whether the fault may be ours.

use crate::Nanos;

/// Standing of the rule that doubts the controller's own path when everything fails at once.
///
/// It applies when every pair that was up fails within one interval, and only if there were at least two: with a
/// single pair the rule would do nothing but delay the detection of a fault that is just as likely the pair's.
/// A pair whose losses reached probes-down-count and whose fellows have all lost at least one fewer (the places of
/// the pairs on the interval account for the difference), or went down within the last interval, makes the case.
/// Losses of carrier are always believed at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspicion {
    /// Losses count.
    #[default]
    None,
    /// The states of all pairs stand; losses are counted but take nobody down.
    Suspended {
        /// Since when.
        since: Nanos,
        /// When the losses will be believed.
        until: Nanos,
    },
    /// The suspend-limit has passed: losses count, and no new suspicion arises before a pair does well again.
    Believed {
        /// Since when.
        since: Nanos,
    },
}

impl Suspicion {
    pub(crate) fn until(self) -> Option<Nanos> {
        match self {
            Suspicion::Suspended { until, .. } => Some(until),
            Suspicion::None | Suspicion::Believed { .. } => None,
        }
    }

    /// Nobody watched for so long.
    pub(crate) fn prolong(&mut self, span: Nanos) {
        if let Suspicion::Suspended { until, .. } = self {
            *until = *until + span;
        }
    }
}
