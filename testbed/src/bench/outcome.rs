//! What a run found.

use serde::Serialize;

use super::frames::Size;
use super::latency::Quantiles;
use super::machine::Machine;
use super::measure::{Saturation, Spread};
use super::search::Trial;
use super::system::System;
use super::yard::Way;

/// A figure that was taken several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Repeated {
    /// The one in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Repeated {
    /// Of these values; all 0 without any.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Repeated {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
        Repeated { median: at(values.len() / 2), least: at(0), most: at(values.len().saturating_sub(1)) }
    }
}

/// A system under one kind of load.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// The system.
    pub system: System,
    /// Sizes of the frames.
    pub size: Size,
    /// How they went.
    pub way: Way,
    /// Pairs that they were split over.
    pub pairs: usize,
    /// Workers of the system.
    pub workers: usize,
    /// Frames a second that arrived while more were sent than pass.
    pub saturated: Repeated,
    /// Frames a second that were sent then.
    pub offered: Repeated,
    /// Time on a core for each frame that arrived then, ns, the far ends of the cables included.
    pub core_ns: Repeated,
    /// The least even split of these runs.
    pub spread: Spread,
    /// The fastest trial without loss, where that was looked for.
    pub loss_free: Option<Trial>,
    /// Times at half of that rate, where they were taken.
    pub latency: Option<Timing>,
}

/// Times from generator to sink, at a rate.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timing {
    /// Frames a second.
    pub rate: f64,
    /// With the system.
    pub system: Quantiles,
    /// By a cable alone.
    pub cable: Quantiles,
}

impl Timing {
    /// What the system adds to the cable, µs: median, 99 of 100, 999 of 1000. Differences of quantiles, not quantiles
    /// of differences.
    #[must_use]
    pub fn added(&self) -> [f64; 3] {
        let added = |system: u64, cable: u64| (system as f64 - cable as f64) / 1e3;
        [
            added(self.system.p50, self.cable.p50),
            added(self.system.p99, self.cable.p99),
            added(self.system.p999, self.cable.p999),
        ]
    }
}

/// What a system's process uses without a frame.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Idle {
    /// The system.
    pub system: System,
    /// Its ports.
    pub ports: usize,
    /// Share of one core, 0..=1 for each.
    pub share: f64,
    /// Seconds it was watched.
    pub seconds: f64,
}

/// A system that could not run, and why.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Missing {
    /// The system.
    pub system: System,
    /// Why.
    pub why: String,
}

/// A system's version.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Version {
    /// The system.
    pub system: System,
    /// In its own words.
    pub version: String,
}

/// All of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// Where and when.
    pub machine: Machine,
    /// The command.
    pub command: String,
    /// How it was measured, one sentence each.
    pub method: Vec<String>,
    /// The systems that ran.
    pub versions: Vec<Version>,
    /// Those that did not.
    pub missing: Vec<Missing>,
    /// Comparison of the systems: to the appliances.
    pub compared: Vec<Row>,
    /// The whole way, by the appliances and back.
    pub through: Vec<Row>,
    /// Our pipeline with other numbers of pairs and workers.
    pub scaled: Vec<Row>,
    /// Without load.
    pub idle: Vec<Idle>,
    /// Frames that arrived and were not the generator's.
    pub foreign_frames: u64,
    /// Seconds that the run took.
    pub seconds: f64,
}

impl Outcome {
    /// The rate at saturation of a system over that of another one, for the same size.
    #[must_use]
    pub fn ratio(&self, row: &Row, to: System) -> Option<f64> {
        let rows = if row.way == Way::Through { &self.through } else { &self.compared };
        let base = rows.iter().find(|other| other.system == to && other.size == row.size)?;
        (base.saturated.median > 0.0).then(|| row.saturated.median / base.saturated.median)
    }
}

impl Row {
    /// Of runs at saturation, without the rest.
    #[must_use]
    pub fn of(
        system: System,
        size: Size,
        way: Way,
        pairs: usize,
        workers: usize,
        runs: &[Saturation],
    ) -> Row {
        let each = |figure: fn(&Saturation) -> f64| Repeated::of(runs.iter().map(figure).collect());
        Row {
            system,
            size,
            way,
            pairs,
            workers,
            saturated: each(|run| run.rate),
            offered: each(|run| run.offered),
            core_ns: each(|run| run.core_ns),
            spread: Spread {
                least: each(|run| run.spread.least).least,
                most: each(|run| run.spread.most).most,
            },
            loss_free: None,
            latency: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let figure = Repeated::of(vec![3.0, 1.0, 2.0]);
        assert_eq!(figure, Repeated { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Repeated::of(vec![]).median, 0.0);
    }

    #[test]
    fn a_system_that_is_as_fast_as_the_cable_adds_nothing() {
        let quantiles = |p50| Quantiles { p50, p99: 9000, p999: 9500, samples: 10 };
        let timing = Timing { rate: 1.0, system: quantiles(5500), cable: quantiles(4000) };
        assert_eq!(timing.added(), [1.5, 0.0, 0.0]);
    }
}
