//! Nanoseconds on a monotonic clock.

use std::fmt;
use std::ops::Add;

/// An instant or a span in nanoseconds. Instants count from any fixed origin of one monotonic clock.
/// Sums saturate: 2^64 ns are 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, and the empty span.
    pub const ZERO: Nanos = Nanos(0);

    /// A span of so many microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    /// A span of so many milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// The span from `earlier` to this instant; zero when it lies ahead.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This span so many times.
    pub const fn times(self, count: u64) -> Nanos {
        Nanos(self.0.saturating_mul(count))
    }
}

impl Add for Nanos {
    type Output = Nanos;

    fn add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
