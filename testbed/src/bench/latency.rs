//! How long stamped frames took.

use serde::Serialize;

/// Times from stamp to arrival, ns, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency(Vec<u64>);

/// What is told of them; ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Quantiles {
    /// Half took no longer.
    pub p50: u64,
    /// 99 of 100 took no longer.
    pub p99: u64,
    /// 999 of 1000 took no longer.
    pub p999: u64,
    /// How many frames.
    pub samples: usize,
}

impl Latency {
    /// Of these times, in any order.
    #[must_use]
    pub fn of(mut times: Vec<u64>) -> Latency {
        times.sort_unstable();
        Latency(times)
    }

    /// The quantiles; `None` without a sample.
    #[must_use]
    pub fn quantiles(&self) -> Option<Quantiles> {
        // Nearest rank.
        let at = |thousandths: usize| {
            let rank = (self.0.len() * thousandths).div_ceil(1000).max(1);
            self.0.get(rank - 1).copied()
        };
        Some(Quantiles { p50: at(500)?, p99: at(990)?, p999: at(999)?, samples: self.0.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let latency = Latency::of((1..=1000).rev().collect());
        assert_eq!(latency.quantiles(), Some(Quantiles { p50: 500, p99: 990, p999: 999, samples: 1000 }));
        assert_eq!(Latency::of(vec![7]).quantiles(), Some(Quantiles { p50: 7, p99: 7, p999: 7, samples: 1 }));
        assert_eq!(Latency::default().quantiles(), None);
    }
}
