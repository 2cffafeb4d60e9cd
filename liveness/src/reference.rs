//! A path of our own that takes no appliance. While it fails, the fault is not the appliances'.

use crate::stream::Stream;
use crate::{Nanos, PathStatus, PerDirection, Profile, ProfileSettings, ReferenceKey, Suspicion};

/// A reference, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceStatus {
    /// The reference.
    pub reference: ReferenceKey,
    /// Whether it fails, and how long it has been believed that the appliances do not.
    pub suspicion: Suspicion,
    /// Its keep-alives per direction.
    pub paths: PerDirection<PathStatus>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) profile: Profile,
    pub(crate) suspicion: Suspicion,
    pub(crate) stream: Stream,
}

impl Reference {
    pub(crate) fn status(&self, key: ReferenceKey) -> ReferenceStatus {
        ReferenceStatus {
            reference: key,
            suspicion: self.suspicion,
            paths: self.stream.paths.map(|path| path.status()),
        }
    }

    /// Whether its losses have reached the count.
    pub(crate) fn is_down(&self) -> bool {
        self.stream.longest_loss().1 >= self.profile.probes_down_count()
    }

    /// Whether a pair that reached its count at this moment may share the reference's fault.
    pub(crate) fn is_failing(&self) -> bool {
        self.stream.is_failing(&self.profile)
    }

    pub(crate) fn fail(&mut self, now: Nanos) -> Nanos {
        let until = now + self.profile.suspend_limit();
        self.suspicion = Suspicion::Suspended { since: now, until };
        until
    }
}

/// The profile by which a reference is probed: the strictest of all that name it, so that it never knows later than
/// they do.
pub(crate) fn strictest(one: &Profile, other: &Profile) -> Profile {
    let (a, b) = (one.settings(), other.settings());
    let quicker = if b.interval_ms < a.interval_ms { b } else { a };
    let max_delay = one.max_delay().min(other.max_delay()).0 / 1_000;
    // Zero would believe at once; those profiles ask nothing of the reference.
    let limits = [a.suspend_limit_ms, b.suspend_limit_ms];
    let limit = limits.into_iter().filter(|limit| *limit > 0).min().unwrap_or_default();
    let settings = ProfileSettings {
        initial_delay_ms: a.initial_delay_ms.min(b.initial_delay_ms),
        interval_ms: quicker.interval_ms,
        probes_down_count: a.probes_down_count.min(b.probes_down_count),
        probes_up_count: a.probes_up_count.min(b.probes_up_count),
        max_delay_us: Some(u32::try_from(max_delay).unwrap_or(u32::MAX)),
        sampling_count: a.sampling_count.max(b.sampling_count),
        suspend_limit_ms: limit,
        ..*quicker
    };
    // Each number comes from a profile whose ranges hold, and the shortest max-delay belongs to no longer an interval.
    Profile::new(settings).unwrap_or(*one)
}
