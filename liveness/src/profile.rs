//! Keep-alive profiles: the numbers as typed, and the same numbers once their ranges hold.

use thiserror::Error;

use crate::{Nanos, ReferenceKey};

/// A `liveness profile` as it is typed. [`Profile::new`] checks the ranges given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSettings {
    /// Milliseconds between a pair's start, or the return of its carrier, and its first keep-alive. 0..=600000.
    pub initial_delay_ms: u32,
    /// Milliseconds between keep-alives of one direction of a pair. 1..=60000.
    pub interval_ms: u32,
    /// Consecutive losses in either direction after which the pair is down. 1..=1000.
    pub probes_down_count: u32,
    /// Consecutive good keep-alives in both directions after which the pair is up. 1..=1000.
    pub probes_up_count: u32,
    /// Microseconds after which a keep-alive is lost. 1..=60000000 and at most 64 intervals; `None`: one interval.
    pub max_delay_us: Option<u32>,
    /// Pairs in service below which the unit is bypassed. 1..=1024.
    pub active_pairs: u16,
    /// Half of the number of keep-alives per direction that the statistics look back on. 1..=1000.
    pub sampling_count: u16,
    /// Milliseconds for which the failure of every pair at once, or of the reference, is not believed. 0..=60000; 0
    /// believes at once.
    pub suspend_limit_ms: u32,
    /// When in its interval a keep-alive goes out.
    pub mode: ProbeMode,
    /// Damping of flaps; `None`: off.
    pub hold_down: Option<HoldDown>,
    /// While this path fails, losses are not held against the appliances.
    pub reference: Option<ReferenceKey>,
    /// Also probe every core of the unit, each with its own up and down.
    pub probe_cores: bool,
    /// Also send an `ip` probe, which must come back.
    pub ip: bool,
    /// Also send a `negative` probe, which must not come back.
    pub negative: bool,
}

/// When in its interval a keep-alive goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProbeMode {
    /// Always at the same place: evenly spaced.
    #[default]
    Standard,
    /// At a random instant of each interval, so at sampling-count random instants in each window of sampling-count
    /// intervals: no rhythm that could beat with the load.
    Burst,
}

/// Damping of flaps: the k-th down within `window` holds the pair down for `base` x 2^(k-1), at most `ceiling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HoldDown {
    /// Milliseconds within which downs are counted. 1..=86400000.
    pub window_ms: u32,
    /// Milliseconds of the first hold. 1..=3600000.
    pub base_ms: u32,
    /// Milliseconds of the longest hold. base..=3600000.
    pub ceiling_ms: u32,
}

impl Default for HoldDown {
    fn default() -> Self {
        HoldDown { window_ms: 600_000, base_ms: 5_000, ceiling_ms: 300_000 }
    }
}

impl HoldDown {
    /// Span in which downs are counted.
    pub fn window(&self) -> Nanos {
        Nanos::from_millis(self.window_ms.into())
    }

    /// The first hold.
    pub fn base(&self) -> Nanos {
        Nanos::from_millis(self.base_ms.into())
    }

    /// How long the `down`-th down, from 1, holds a pair.
    pub fn hold(&self, down: u32) -> Nanos {
        let doubled = 1u64.checked_shl(down.saturating_sub(1)).unwrap_or(u64::MAX);
        self.base().times(doubled).min(Nanos::from_millis(self.ceiling_ms.into()))
    }
}

impl Default for ProfileSettings {
    fn default() -> Self {
        ProfileSettings {
            initial_delay_ms: 1_000,
            interval_ms: 100,
            probes_down_count: 5,
            probes_up_count: 5,
            max_delay_us: None,
            active_pairs: 1,
            sampling_count: 10,
            suspend_limit_ms: 3_000,
            mode: ProbeMode::Standard,
            hold_down: None,
            reference: None,
            probe_cores: false,
            ip: false,
            negative: false,
        }
    }
}

/// Why settings are no profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// A number outside its range.
    #[error("{parameter} {value}{unit} is out of range, choose {min}..{max}{unit}")]
    OutOfRange {
        /// Name as in the configuration.
        parameter: &'static str,
        /// What was given.
        value: u64,
        /// Smallest allowed.
        min: u64,
        /// Greatest allowed.
        max: u64,
        /// Unit with a leading space, or empty.
        unit: &'static str,
    },
    /// So many keep-alives would be under way at once that the window of sequence numbers overflows.
    #[error(
        "max-delay {max_delay_us} us is more than 64 intervals of {interval_ms} ms, choose at most {limit_us} us or a longer interval"
    )]
    MaxDelayBeyondWindow {
        /// What was given.
        max_delay_us: u64,
        /// The interval that goes with it.
        interval_ms: u64,
        /// Greatest max-delay for this interval.
        limit_us: u64,
    },
}

/// A profile whose ranges hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    settings: ProfileSettings,
}

/// Keep-alives of one direction that may be under way at once.
pub(crate) const MAX_UNDER_WAY: u64 = 64;

impl Default for Profile {
    /// The defaults of the configuration: down within 600 ms.
    fn default() -> Self {
        Profile { settings: ProfileSettings::default() }
    }
}

impl Profile {
    /// Checks the ranges of [`ProfileSettings`].
    ///
    /// # Errors
    /// Names the first parameter outside its range.
    pub fn new(settings: ProfileSettings) -> Result<Profile, ProfileError> {
        within("initial-delay", settings.initial_delay_ms, 0, 600_000, " ms")?;
        within("interval", settings.interval_ms, 1, 60_000, " ms")?;
        within("probes-down-count", settings.probes_down_count, 1, 1_000, "")?;
        within("probes-up-count", settings.probes_up_count, 1, 1_000, "")?;
        within("active-pairs", settings.active_pairs, 1, 1_024, "")?;
        within("sampling-count", settings.sampling_count, 1, 1_000, "")?;
        within("suspend-limit", settings.suspend_limit_ms, 0, 60_000, " ms")?;
        if let Some(hold_down) = settings.hold_down {
            within("hold-down window", hold_down.window_ms, 1, 86_400_000, " ms")?;
            within("hold-down base", hold_down.base_ms, 1, 3_600_000, " ms")?;
            within("hold-down ceiling", hold_down.ceiling_ms, hold_down.base_ms.into(), 3_600_000, " ms")?;
        }
        if let Some(max_delay) = settings.max_delay_us {
            within("max-delay", max_delay, 1, 60_000_000, " us")?;
            let limit_us = u64::from(settings.interval_ms) * 1_000 * MAX_UNDER_WAY;
            if u64::from(max_delay) > limit_us {
                return Err(ProfileError::MaxDelayBeyondWindow {
                    max_delay_us: max_delay.into(),
                    interval_ms: settings.interval_ms.into(),
                    limit_us,
                });
            }
        }
        Ok(Profile { settings })
    }

    /// The numbers as typed.
    pub fn settings(&self) -> &ProfileSettings {
        &self.settings
    }

    /// Pause before the first keep-alive.
    pub fn initial_delay(&self) -> Nanos {
        Nanos::from_millis(self.settings.initial_delay_ms.into())
    }

    /// Span between keep-alives of one direction.
    pub fn interval(&self) -> Nanos {
        Nanos::from_millis(self.settings.interval_ms.into())
    }

    /// Consecutive losses that take a pair down.
    pub fn probes_down_count(&self) -> u32 {
        self.settings.probes_down_count
    }

    /// Consecutive good keep-alives that bring a pair up.
    pub fn probes_up_count(&self) -> u32 {
        self.settings.probes_up_count
    }

    /// Age at which a keep-alive is lost.
    pub fn max_delay(&self) -> Nanos {
        self.settings.max_delay_us.map_or(self.interval(), |us| Nanos::from_micros(us.into()))
    }

    /// Pairs in service that keep the unit out of bypass.
    pub fn active_pairs(&self) -> u16 {
        self.settings.active_pairs
    }

    /// Keep-alives per direction that the statistics look back on: twice the sampling-count.
    pub fn samples(&self) -> usize {
        usize::from(self.settings.sampling_count) * 2
    }

    /// How long the failure of every pair at once is not believed; zero: not at all.
    pub fn suspend_limit(&self) -> Nanos {
        Nanos::from_millis(self.settings.suspend_limit_ms.into())
    }

    /// When in its interval a keep-alive goes out.
    pub fn mode(&self) -> ProbeMode {
        self.settings.mode
    }

    /// Damping of flaps, if any.
    pub fn hold_down(&self) -> Option<HoldDown> {
        self.settings.hold_down
    }

    /// The path of our own that is watched, if any.
    pub fn reference(&self) -> Option<ReferenceKey> {
        self.settings.reference
    }

    /// Whether every core is probed.
    pub fn probe_cores(&self) -> bool {
        self.settings.probe_cores
    }

    /// Whether an `ip` probe is sent.
    pub fn ip(&self) -> bool {
        self.settings.ip
    }

    /// Whether a `negative` probe is sent.
    pub fn negative(&self) -> bool {
        self.settings.negative
    }

    /// Longest span between two consecutive keep-alives of one direction, exclusive for `burst`.
    ///
    /// `standard`: one interval. `burst`: each interval has one keep-alive at a random instant of its own, so that two
    /// in a row may lie at the start of one interval and at the end of the next: less than two intervals.
    pub fn longest_gap(&self) -> Nanos {
        match self.settings.mode {
            ProbeMode::Standard => self.interval(),
            ProbeMode::Burst => self.interval().times(2),
        }
    }

    /// Longest time from the fault of a pair (or core) to its state `down`.
    ///
    /// `standard`: interval x probes-down-count + max-delay. A fault just after a keep-alive passed waits one interval
    /// for the first that is lost, and one more for each further one; the last is known to be lost after max-delay.
    ///
    /// `burst`: interval x (probes-down-count + 1) + max-delay. The interval that the fault falls into may have had
    /// its keep-alive already; each of the next probes-down-count intervals has one, the last at its very end.
    ///
    /// It holds while the caller polls at each deadline; how late a poll comes adds to it, and so does a suspension.
    pub fn detection_bound(&self) -> Nanos {
        let count = u64::from(self.probes_down_count());
        let intervals = match self.settings.mode {
            ProbeMode::Standard => count,
            ProbeMode::Burst => count + 1,
        };
        self.interval().times(intervals) + self.max_delay()
    }

    /// How many losses a path may be behind another when both fail at once and the other has reached its count: the
    /// places on the interval account for one. In burst mode the other's keep-alives may lie within little more than
    /// probes-down-count - 2 intervals, of which probes-down-count - 3 are whole ones here.
    pub(crate) fn lag(&self) -> u32 {
        match self.settings.mode {
            ProbeMode::Standard => 1,
            ProbeMode::Burst => 3,
        }
    }

    /// How long after another a path may reach a count of losses that leaves no lag, when both fail at once.
    pub(crate) fn spread(&self) -> Nanos {
        match self.settings.mode {
            ProbeMode::Standard => self.interval(),
            ProbeMode::Burst => self.interval().times(4),
        }
    }
}

fn within(
    parameter: &'static str,
    value: impl Into<u64>,
    min: u64,
    max: u64,
    unit: &'static str,
) -> Result<(), ProfileError> {
    let value = value.into();
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::OutOfRange { parameter, value, min, max, unit })
    }
}
