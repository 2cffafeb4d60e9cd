//! Liveness profiles: how the appliances of a unit are watched.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use dataplane::schema::counters::PAIRS;

use crate::check::{Check, Port};
use crate::tree::{ProfileTree, Switch, UdpProbeTree};

/// UDP port of a probe where none is set: that of BFD's control packets, which pass where BFD does (RFC 5881, 4).
const PROBE_PORT: u16 = 3784;

/// A liveness profile; see the `liveness` crate for what the numbers do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileConfig {
    /// Name.
    pub name: String,
    /// ms, 0..=600000.
    pub initial_delay: u32,
    /// ms, 1..=60000.
    pub interval: u32,
    /// 1..=1000.
    pub probes_down_count: u32,
    /// 1..=1000.
    pub probes_up_count: u32,
    /// us, 1..=60000000; the interval where it is not set.
    pub max_delay: Option<u32>,
    /// 1..=512.
    pub active_pairs: u32,
    /// Keep-alives at random instants of each window.
    pub burst: bool,
    /// 1..=1000.
    pub sampling_count: u32,
    /// ms, 0..=60000.
    pub suspend_limit: u32,
    /// What must answer for a loss to count.
    pub reference: Reference,
    /// Pairs that flap are held down.
    pub hold_down: Option<HoldDown>,
    /// Every core of an appliance is probed.
    pub probe_cores: bool,
    /// A datagram that must come back.
    pub ip_probe: Option<UdpProbe>,
    /// A datagram that must not.
    pub negative_probe: Option<UdpProbe>,
}

/// What must answer for a loss to count against an appliance.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// Nothing is probed.
    #[default]
    None,
    /// The controller's own way into the data plane and back.
    Controller,
    /// Two ports that a cable joins, by name.
    Ports {
        /// Stands for a pair's LAN port.
        lan_port: String,
        /// Stands for a pair's WAN port.
        wan_port: String,
    },
}

/// Flap damping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// s, 1..=86400.
    pub window: u32,
    /// s, 1..=3600.
    pub base: u32,
    /// s, 1..=3600, not below `base`.
    pub ceiling: u32,
}

/// A datagram between two addresses of one IP version, as sent from the LAN side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpProbe {
    /// Source from the LAN side, destination from the WAN side.
    pub source: SocketAddr,
    /// The other one.
    pub destination: SocketAddr,
}

impl ProfileConfig {
    pub(crate) fn named(name: &str) -> Self {
        ProfileConfig {
            name: name.to_owned(),
            initial_delay: 1000,
            interval: 100,
            probes_down_count: 5,
            probes_up_count: 5,
            max_delay: None,
            active_pairs: 1,
            burst: false,
            sampling_count: 10,
            suspend_limit: 3000,
            reference: Reference::None,
            hold_down: None,
            probe_cores: false,
            ip_probe: None,
            negative_probe: None,
        }
    }

    /// Probes carry steering headers, for which an index is kept that no link has.
    #[must_use]
    pub fn is_steered(&self) -> bool {
        self.probe_cores || self.ip_probe.is_some() || self.negative_probe.is_some()
    }
}

impl Check {
    pub(crate) fn profiles(
        &mut self,
        trees: &[ProfileTree],
        ports: &BTreeMap<String, Port>,
    ) -> BTreeMap<String, ProfileConfig> {
        let mut profiles = BTreeMap::from([("default".to_owned(), ProfileConfig::named("default"))]);
        let mut seen = BTreeSet::new();
        for tree in trees {
            let path = format!("liveness profile {}", tree.name);
            self.name(&path, &tree.name);
            if !seen.insert(&tree.name) {
                self.fault(&path, &tree.name, "two profiles have this name");
            }
            let profile = self.profile(&path, tree, ports);
            profiles.insert(tree.name.clone(), profile);
        }
        profiles
    }

    fn profile(&mut self, path: &str, tree: &ProfileTree, ports: &BTreeMap<String, Port>) -> ProfileConfig {
        let defaults = ProfileConfig::named(&tree.name);
        let mut number = |leaf: &str, value: Option<i64>, default: u32, low: i64, high: i64| {
            value.map_or(default, |value| self.number(&format!("{path} {leaf}"), value, low, high) as u32)
        };
        let mut profile = ProfileConfig {
            initial_delay: number("initial-delay", tree.initial_delay, defaults.initial_delay, 0, 600_000),
            interval: number("interval", tree.interval, defaults.interval, 1, 60_000),
            probes_down_count: number("probes-down-count", tree.probes_down_count, 5, 1, 1000),
            probes_up_count: number("probes-up-count", tree.probes_up_count, 5, 1, 1000),
            max_delay: tree.max_delay.map(|value| number("max-delay", Some(value), 0, 1, 60_000_000)),
            active_pairs: number("active-pairs", tree.active_pairs, 1, 1, PAIRS as i64),
            sampling_count: number("sampling-count", tree.sampling_count, 10, 1, 1000),
            suspend_limit: number("suspend-limit", tree.suspend_limit, 3000, 0, 60_000),
            probe_cores: tree.probe_cores == Some(Switch::On),
            ..defaults
        };
        let hold_down = HoldDown {
            window: number("hold-down-window", tree.hold_down_window, 600, 1, 86_400),
            base: number("hold-down-base", tree.hold_down_base, 5, 1, 3600),
            ceiling: number("hold-down-ceiling", tree.hold_down_ceiling, 300, 1, 3600),
        };
        if hold_down.base > hold_down.ceiling {
            self.fault(format!("{path} hold-down-base"), hold_down.base, "is more than hold-down-ceiling");
        }
        profile.hold_down = (tree.hold_down == Some(Switch::On)).then_some(hold_down);
        let mode = self.word(&format!("{path} mode"), tree.mode.as_deref(), &["standard", "burst"]);
        profile.burst = mode == "burst";
        profile.reference = self.reference(path, tree, ports);
        profile.ip_probe =
            tree.ip_probe.as_ref().and_then(|tree| self.probe(&format!("{path} ip-probe"), tree));
        profile.negative_probe =
            tree.negative_probe.as_ref().and_then(|tree| self.probe(&format!("{path} negative-probe"), tree));
        profile
    }

    fn reference(&mut self, path: &str, tree: &ProfileTree, ports: &BTreeMap<String, Port>) -> Reference {
        let words = ["none", "controller", "ports"];
        let word = self.word(&format!("{path} reference"), tree.reference.as_deref(), &words);
        let [lan_port, wan_port] = [("lan", &tree.reference_lan_port), ("wan", &tree.reference_wan_port)]
            .map(|(side, port)| {
                let path = format!("{path} reference-{side}-port");
                if let Some(port) = port {
                    if word != "ports" {
                        self.fault(&path, port, "has a meaning with reference ports only");
                    }
                    // Profiles may share the two.
                    let purpose = "the reference of liveness profiles".to_owned();
                    if self.serving.get(port) != Some(&purpose) {
                        self.serve(path, port, purpose, ports);
                    }
                }
                port.clone()
            });
        match (word, lan_port, wan_port) {
            ("controller", ..) => Reference::Controller,
            ("ports", Some(lan_port), Some(wan_port)) => {
                if lan_port == wan_port {
                    let reason = "is the reference's LAN port too; a cable joins two ports";
                    self.fault(format!("{path} reference-wan-port"), &wan_port, reason);
                }
                Reference::Ports { lan_port, wan_port }
            }
            ("ports", ..) => {
                let reason = "needs reference-lan-port and reference-wan-port";
                self.fault(format!("{path} reference"), word, reason);
                Reference::None
            }
            _ => Reference::None,
        }
    }

    fn probe(&mut self, path: &str, tree: &UdpProbeTree) -> Option<UdpProbe> {
        let mut end = |leaf: &str, address: &str, port: Option<i64>| {
            let port = port.map_or(PROBE_PORT, |port| {
                self.number(&format!("{path} {leaf}-port"), port, 1, u16::MAX.into()) as u16
            });
            match address.parse::<IpAddr>() {
                Ok(address) => Some(SocketAddr::new(address, port)),
                Err(_) => {
                    self.fault(
                        format!("{path} {leaf}"),
                        address,
                        "must be an IPv4 or IPv6 address without a mask",
                    );
                    None
                }
            }
        };
        let source = end("source", &tree.source, tree.source_port);
        let destination = end("destination", &tree.destination, tree.destination_port);
        let (source, destination) = (source?, destination?);
        if source.is_ipv4() != destination.is_ipv4() {
            self.fault(
                format!("{path} destination"),
                destination.ip(),
                "is of another IP version than source",
            );
        }
        Some(UdpProbe { source, destination })
    }
}
