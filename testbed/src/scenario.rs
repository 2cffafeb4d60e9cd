//! The scenario file: which procedure, under which load, how long and how often.

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::topology::names;

/// A scenario, as a user writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Shown in reports.
    pub name: String,
    /// One line on what it shows.
    #[serde(default)]
    pub about: String,
    /// What is done.
    pub procedure: Procedure,
    /// Traffic while it is done.
    #[serde(default)]
    pub load: Load,
    /// The pair or appliance that is hit; by default the last appliance, or its last pair.
    #[serde(default)]
    pub target: Option<String>,
    /// How often it is hit.
    #[serde(default = "one")]
    pub cycles: u32,
    /// Length of each phase in seconds.
    #[serde(default = "default_seconds")]
    pub seconds: f64,
    /// Mutated frames of `garbage`.
    #[serde(default)]
    pub mutated: u64,
    /// Seed of everything drawn at random.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// What a scenario does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Procedure {
    /// Every kind of traffic, nothing breaks.
    Baseline,
    /// The same, requests by one link, answers by another.
    Asymmetric,
    /// A pair's cables lose carrier and come back.
    PairDown,
    /// An appliance freezes, carrier stays, and comes back.
    ApplianceHang,
    /// An appliance freezes and comes back again and again, some freezes too short to count.
    ApplianceFlap,
    /// The unit is bypassed by hand and put back.
    ManualBypass,
    /// The controller is killed and started again.
    ControllerKill,
    /// A pair goes down in a unit with `rebalance on`.
    Rebalance,
    /// Broken frames among the sessions.
    Garbage,
    /// The WAN cables of two pairs are swapped.
    Miscabled,
    /// Nothing breaks for a long time, and nobody is found down.
    Soak,
    /// One pair after the other hangs at a random instant.
    Cuts,
    /// A core of an appliance hangs.
    CoreHang,
    /// An appliance loses much of what it is sent, without and with `hold-down`.
    Overload,
    /// The controller is stopped for a while.
    ControllerFreeze,
    /// Every appliance stops answering at once.
    Suspended,
    /// An appliance answers with keep-alives that are not those that it got.
    Forgeries,
    /// An appliance passes keep-alives but does not do its work.
    Processing,
}

/// Traffic.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Load {
    /// TCP sessions.
    pub tcp: u64,
    /// UDP sessions.
    pub udp: u64,
    /// Time between two datagrams of a UDP session, in microseconds.
    pub udp_interval_us: u64,
    /// UDP payload in bytes.
    pub udp_payload: usize,
}

impl Default for Load {
    fn default() -> Self {
        Load { tcp: 32, udp: 96, udp_interval_us: 20_000, udp_payload: 200 }
    }
}

fn one() -> u32 {
    1
}
fn default_seconds() -> f64 {
    2.0
}
fn default_seed() -> u64 {
    1
}

/// The scenarios that come with the program: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("baseline", include_str!("../scenarios/baseline.yaml")),
    ("asymmetric", include_str!("../scenarios/asymmetric.yaml")),
    ("pair-down", include_str!("../scenarios/pair-down.yaml")),
    ("appliance-hang", include_str!("../scenarios/appliance-hang.yaml")),
    ("appliance-flap", include_str!("../scenarios/appliance-flap.yaml")),
    ("manual-bypass", include_str!("../scenarios/manual-bypass.yaml")),
    ("controller-kill", include_str!("../scenarios/controller-kill.yaml")),
    ("rebalance", include_str!("../scenarios/rebalance.yaml")),
    ("garbage", include_str!("../scenarios/garbage.yaml")),
    ("miscabled", include_str!("../scenarios/miscabled.yaml")),
    ("soak", include_str!("../scenarios/soak.yaml")),
    ("cuts", include_str!("../scenarios/cuts.yaml")),
    ("core-hang", include_str!("../scenarios/core-hang.yaml")),
    ("overload", include_str!("../scenarios/overload.yaml")),
    ("controller-freeze", include_str!("../scenarios/controller-freeze.yaml")),
    ("suspended", include_str!("../scenarios/suspended.yaml")),
    ("forgeries", include_str!("../scenarios/forgeries.yaml")),
    ("processing", include_str!("../scenarios/processing.yaml")),
];

impl Scenario {
    /// The shipped scenario of that name, or a file.
    ///
    /// # Errors
    /// [`Error::Input`] names the file, the element and what would be right.
    pub fn load(name: &str) -> Result<Scenario> {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Scenario::parse(name, text);
        }
        match std::fs::read_to_string(Path::new(name)) {
            Ok(text) => Scenario::parse(name, &text),
            Err(error) => Err(Error::Input {
                file: name.into(),
                reason: format!("{error}; shipped scenarios are {}", names(SHIPPED)),
            }),
        }
    }

    /// Parses and checks a scenario; `file` is for messages only.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(file: &str, text: &str) -> Result<Scenario> {
        let wrong = |reason: String| Error::Input { file: file.into(), reason };
        let scenario: Scenario = serde_norway::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if !(0.1..=3600.0).contains(&scenario.seconds) {
            return Err(wrong(format!("seconds is {}: it must be 0.1..3600", scenario.seconds)));
        }
        if !(1..=1000).contains(&scenario.cycles) {
            return Err(wrong(format!("cycles is {}: it must be 1..1000", scenario.cycles)));
        }
        let load = &scenario.load;
        if load.tcp > 10_000 || load.udp > 10_000 {
            return Err(wrong(format!("load is {} tcp and {} udp: at most 10000 each", load.tcp, load.udp)));
        }
        if load.udp_interval_us < 100 || !(20..=8900).contains(&load.udp_payload) {
            return Err(wrong("load: udp-interval-us is at least 100, udp-payload 20..8900".into()));
        }
        Ok(scenario)
    }

    /// Less traffic with the same checks, for data planes that take microseconds for a frame.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.load.tcp = self.load.tcp.div_ceil(4);
        self.load.udp = self.load.udp.div_ceil(4);
        self.load.udp_interval_us = self.load.udp_interval_us.max(20_000);
        self.mutated /= 10;
        self
    }

    /// A shorter version with the same checks.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.load.tcp = self.load.tcp.div_ceil(4);
        self.load.udp = self.load.udp.div_ceil(2);
        self.cycles = self.cycles.div_ceil(2);
        self.seconds /= 2.0;
        self.mutated /= 10;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_scenarios_parse_and_are_named_as_their_file() {
        for (name, text) in SHIPPED {
            let scenario = Scenario::parse(name, text).expect(name);
            assert_eq!(scenario.name, *name);
            assert!(!scenario.about.is_empty());
        }
    }

    #[test]
    fn errors_name_file_element_and_remedy() {
        let refused = |text: &str| Scenario::parse("s.yaml", text).expect_err("refused").to_string();
        let good = "name: x\nprocedure: baseline\n";
        assert!(refused("name: x\nprocedure: earthquake\n").contains("earthquake"));
        assert!(refused(&format!("{good}cycles: 0\n")).contains("cycles is 0: it must be 1..1000"));
        assert!(refused(&format!("{good}second: 5\n")).contains("second"));
        assert!(refused(&format!("{good}load: {{udp-payload: 4}}\n")).contains("udp-payload 20..8900"));
        let missing = Scenario::load("/nowhere").expect_err("refused").to_string();
        assert!(missing.contains("shipped scenarios are baseline"), "{missing}");
    }

    #[test]
    fn quick_is_smaller_but_never_nothing() {
        let scenario = Scenario::load("garbage").expect("shipped").quick();
        assert!(scenario.cycles >= 1 && scenario.load.tcp >= 1 && scenario.mutated == 5000);
    }
}
