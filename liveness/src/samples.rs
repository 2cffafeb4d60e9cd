//! The last keep-alives of a direction and the figures over them.

use std::collections::VecDeque;

use crate::Nanos;

/// Outcomes of the last keep-alives: time-on-path of a good one, `None` for a loss.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    ring: VecDeque<Option<Nanos>>,
    capacity: usize,
}

/// Figures over the last `2 x sampling-count` keep-alives of one direction. Times are time-on-path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Keep-alives looked at, good and lost.
    pub all: u32,
    /// Lost ones among them.
    pub fail: u32,
    /// Times over the good ones; `None` when all were lost or none was sent yet.
    pub delay: Option<Delay>,
}

/// Spread of time-on-path over good keep-alives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Shortest.
    pub min: Nanos,
    /// Mean, rounded down.
    pub average: Nanos,
    /// Longest.
    pub max: Nanos,
    /// Sample standard deviation (divisor n - 1), rounded down. Of a single sample: half of the average, so that a
    /// fresh pair does not look steadier than the others.
    pub deviation: Nanos,
    /// Median by nearest rank: the smallest time that half of the samples do not exceed.
    pub p50: Nanos,
    /// 99th percentile by nearest rank.
    pub p99: Nanos,
}

impl Samples {
    pub(crate) fn new(capacity: usize) -> Samples {
        Samples { ring: VecDeque::with_capacity(capacity), capacity }
    }

    /// Makes room for more or fewer; the oldest go first.
    pub(crate) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.ring.len() > capacity {
            self.ring.pop_front();
        }
    }

    pub(crate) fn push(&mut self, sample: Option<Nanos>) {
        if self.ring.len() >= self.capacity {
            self.ring.pop_front();
        }
        self.ring.push_back(sample);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let mut good: Vec<Nanos> = self.ring.iter().copied().flatten().collect();
        good.sort_unstable();
        let all = count(self.ring.len());
        Statistics { all, fail: all - count(good.len()), delay: Delay::of_sorted(&good) }
    }
}

impl Delay {
    fn of_sorted(good: &[Nanos]) -> Option<Delay> {
        let (min, max) = (*good.first()?, *good.last()?);
        let n = good.len() as u128;
        let sum: u128 = good.iter().map(|x| u128::from(x.0)).sum();
        let average = Nanos((sum / n) as u64);
        let deviation = if n == 1 {
            Nanos(average.0 / 2)
        } else {
            // At most 2000 squares of at most a minute in ns: far from 128 bits.
            let squares: u128 = good.iter().map(|x| u128::from(x.0).pow(2)).sum();
            Nanos(((n * squares - sum * sum) / (n * (n - 1))).isqrt() as u64)
        };
        let rank = |percent: usize| good[(good.len() * percent).div_ceil(100) - 1];
        Some(Delay { min, average, max, deviation, p50: rank(50), p99: rank(99) })
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
