//! Time-on-path over all keep-alives since the pair was added, in fixed steps.

use crate::Nanos;

/// Upper bounds of the steps: 1 us to 1 s in steps of 1, 2 and 5.
pub const BOUNDS: [Nanos; 19] = [
    Nanos::from_micros(1),
    Nanos::from_micros(2),
    Nanos::from_micros(5),
    Nanos::from_micros(10),
    Nanos::from_micros(20),
    Nanos::from_micros(50),
    Nanos::from_micros(100),
    Nanos::from_micros(200),
    Nanos::from_micros(500),
    Nanos::from_millis(1),
    Nanos::from_millis(2),
    Nanos::from_millis(5),
    Nanos::from_millis(10),
    Nanos::from_millis(20),
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(200),
    Nanos::from_millis(500),
    Nanos::from_millis(1_000),
];

/// How many good keep-alives took how long. Nothing in it ever decreases while the pair is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Per step of [`BOUNDS`]: at most its bound, and more than the one before. The last: more than every bound.
    pub steps: [u64; BOUNDS.len() + 1],
    /// Sum of all times; saturates after 584 years of them.
    pub sum: Nanos,
}

impl Histogram {
    pub(crate) fn add(&mut self, time: Nanos) {
        self.steps[BOUNDS.partition_point(|bound| *bound < time)] += 1;
        self.sum = self.sum + time;
    }

    /// All that were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.steps.iter().sum()
    }

    /// Each bound with the number of times that do not exceed it, as Prometheus wants it (`+Inf` is the count).
    pub fn cumulative(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let mut below = 0;
        BOUNDS.into_iter().zip(self.steps).map(move |(bound, count)| {
            below += count;
            (bound, below)
        })
    }
}
