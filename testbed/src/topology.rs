//! The topology file: links, units with pairs, appliances, hosts, and how the balancer is to be configured.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A site in miniature, as a user writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Topology {
    /// Shown in reports.
    pub name: String,
    /// One line on what the site is for.
    #[serde(default)]
    pub about: String,
    /// IP MTU of the hosts in bytes, 1280..=9000. Ports of the balancer get room for tags and steering header.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Steering header mode.
    #[serde(default)]
    pub steering: Steering,
    /// Balancing method of the configuration.
    #[serde(default = "default_method")]
    pub balancing_method: String,
    /// Host addresses on each side of every path, 1..=200.
    #[serde(default = "default_hosts")]
    pub hosts: u32,
    /// The operator's channels, 1..=60.
    pub links: Vec<Link>,
    /// The ecofilter-units.
    pub units: Vec<Unit>,
    /// The appliances and which pairs end at them.
    pub appliances: Vec<Appliance>,
    /// Leaves of the liveness profile `default`.
    #[serde(default)]
    pub liveness: serde_json::Map<String, serde_json::Value>,
    /// Flow rules as in the configuration tree; by default everything goes to the first unit.
    #[serde(default)]
    pub flows: Vec<serde_json::Value>,
}

/// How the steering header is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Steering {
    /// TPID 0x88b6, core, link index.
    #[default]
    Native,
    /// An 802.1Q tag whose VID names the link.
    Dot1q,
}

impl Steering {
    /// The mode's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Steering::Native => "native",
            Steering::Dot1q => "dot1q",
        }
    }
}

/// A link and what its frames wear.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// The link's name in the configuration.
    pub name: String,
    /// One group of hosts per encapsulation.
    #[serde(default = "default_encapsulations")]
    pub encapsulations: Vec<Encapsulation>,
}

/// VLAN tags outermost first, as (TPID, VID). Written `untagged`, `vlan 100`, `qinq 200.300` (0x8100 twice) or
/// `802.1ad 200.300` (0x88a8, then 0x8100).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Encapsulation {
    /// The tags.
    pub tags: Vec<(u16, u16)>,
}

impl TryFrom<String> for Encapsulation {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let right = "write `untagged`, `vlan VID`, `qinq OUTER.INNER` or `802.1ad OUTER.INNER`, VID 1..4094";
        let wrong = || format!("encapsulation {text:?} is unknown: {right}");
        let vid = |word: &str| match word.trim().parse::<u16>() {
            Ok(vid) if (1..=4094).contains(&vid) => Ok(vid),
            _ => Err(format!("encapsulation {text:?}: VID {word:?} is out of range: {right}")),
        };
        if text == "untagged" {
            return Ok(Encapsulation { tags: Vec::new() });
        }
        let (kind, ids) = text.split_once(' ').ok_or_else(wrong)?;
        let outer_tpid = match kind {
            "vlan" => return Ok(Encapsulation { tags: vec![(0x8100, vid(ids)?)] }),
            "qinq" => 0x8100,
            "802.1ad" => 0x88a8,
            _ => return Err(wrong()),
        };
        let (outer, inner) = ids.split_once('.').ok_or_else(wrong)?;
        Ok(Encapsulation { tags: vec![(outer_tpid, vid(outer)?), (0x8100, vid(inner)?)] })
    }
}

impl From<Encapsulation> for String {
    fn from(encapsulation: Encapsulation) -> String {
        match encapsulation.tags.as_slice() {
            [] => "untagged".into(),
            [(_, vid)] => format!("vlan {vid}"),
            [(0x88a8, outer), (_, inner), ..] => format!("802.1ad {outer}.{inner}"),
            [(_, outer), (_, inner), ..] => format!("qinq {outer}.{inner}"),
        }
    }
}

/// An ecofilter-unit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unit {
    /// The unit's name.
    pub name: String,
    /// Worker cores behind each pair, 1..=256.
    #[serde(default = "one")]
    pub cores: u32,
    /// `on` or `off`.
    #[serde(default = "off")]
    pub rebalance: String,
    /// The pairs in order.
    pub pairs: Vec<Pair>,
}

/// A pair: its name alone, or a map with weight and role.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "PairText")]
pub struct Pair {
    /// The pair's name.
    pub name: String,
    /// 1..=100.
    pub weight: u32,
    /// `active` or `spare`.
    pub role: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PairText {
    Name(String),
    #[serde(rename_all = "kebab-case")]
    Full {
        name: String,
        #[serde(default = "one")]
        weight: u32,
        #[serde(default = "active")]
        role: String,
    },
}

impl From<PairText> for Pair {
    fn from(text: PairText) -> Self {
        match text {
            PairText::Name(name) => Pair { name, weight: 1, role: active() },
            PairText::Full { name, weight, role } => Pair { name, weight, role },
        }
    }
}

/// An appliance.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Appliance {
    /// Its name; also part of its namespace's name.
    pub name: String,
    /// What stands there.
    pub kind: ApplianceKind,
    /// The pairs whose cables end here.
    pub pairs: Vec<String>,
}

/// Kind of an appliance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApplianceKind {
    /// Ours: checks the steering header and keeps per-core session tables.
    Emulated,
    /// A Linux bridge with stateful nftables rules.
    Bridge,
    /// A Linux bridge for each pair that passes everything: an appliance that takes no time.
    Wire,
}

fn default_mtu() -> u32 {
    1500
}
fn default_method() -> String {
    "layer-3".into()
}
fn default_hosts() -> u32 {
    16
}
fn default_encapsulations() -> Vec<Encapsulation> {
    vec![Encapsulation { tags: Vec::new() }]
}
fn one() -> u32 {
    1
}
fn off() -> String {
    "off".into()
}
fn active() -> String {
    "active".into()
}

/// The topologies that come with the program: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("demo", include_str!("../topologies/demo.yaml")),
    ("tagged", include_str!("../topologies/tagged.yaml")),
    ("jumbo", include_str!("../topologies/jumbo.yaml")),
    ("bridge", include_str!("../topologies/bridge.yaml")),
    ("rebalance", include_str!("../topologies/rebalance.yaml")),
    ("fast", include_str!("../topologies/fast.yaml")),
    ("dense", include_str!("../topologies/dense.yaml")),
    ("crowded", include_str!("../topologies/crowded.yaml")),
    ("watched", include_str!("../topologies/watched.yaml")),
    ("overloaded", include_str!("../topologies/overloaded.yaml")),
];

impl Topology {
    /// Reads a file, or the shipped topology of that name when there is no such file.
    ///
    /// # Errors
    /// [`Error::Input`] names the file, the element and what would be right.
    pub fn load(file: &Path) -> Result<Topology> {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => Topology::parse(&name, &text),
            Err(error) => match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
                Some((_, text)) => Topology::parse(&name, text),
                None => Err(Error::Input {
                    file: name,
                    reason: format!("{error}; shipped topologies are {}", names(SHIPPED)),
                }),
            },
        }
    }

    /// Parses and checks a topology; `file` is for messages only.
    ///
    /// # Errors
    /// As [`Topology::load`].
    pub fn parse(file: &str, text: &str) -> Result<Topology> {
        let wrong = |reason: String| Error::Input { file: file.into(), reason };
        let topology: Topology = serde_norway::from_str(text).map_err(|error| wrong(error.to_string()))?;
        topology.check().map_err(wrong)?;
        Ok(topology)
    }

    fn check(&self) -> std::result::Result<(), String> {
        in_range("mtu", self.mtu, 1280, 9000)?;
        in_range("hosts", self.hosts, 1, 200)?;
        in_range("number of links", self.links.len() as u32, 1, 60)?;
        in_range("number of units", self.units.len() as u32, 1, 32)?;
        in_range("number of appliances", self.appliances.len() as u32, 1, 64)?;
        let paths: usize = self.links.iter().map(|link| link.encapsulations.len()).sum();
        in_range("number of encapsulations over all links", paths as u32, 1, 100)?;
        distinct("link", self.links.iter().map(|link| link.name.as_str()))?;
        distinct("unit", self.units.iter().map(|unit| unit.name.as_str()))?;
        distinct("appliance", self.appliances.iter().map(|appliance| appliance.name.as_str()))?;
        distinct("pair", self.pairs().map(|(_, pair)| pair.name.as_str()))?;
        distinct(
            "pair at an appliance",
            self.appliances.iter().flat_map(|appliance| appliance.pairs.iter().map(String::as_str)),
        )?;
        for link in &self.links {
            in_range(
                &format!("encapsulations of link {}", link.name),
                link.encapsulations.len() as u32,
                1,
                16,
            )?;
        }
        for unit in &self.units {
            in_range(&format!("cores of unit {}", unit.name), unit.cores, 1, 256)?;
            if !["on", "off"].contains(&unit.rebalance.as_str()) {
                return Err(format!("rebalance of unit {} is {:?}: on or off", unit.name, unit.rebalance));
            }
            for pair in &unit.pairs {
                in_range(&format!("weight of pair {}", pair.name), pair.weight, 1, 100)?;
                if !["active", "spare"].contains(&pair.role.as_str()) {
                    return Err(format!("role of pair {} is {:?}: active or spare", pair.name, pair.role));
                }
                if !self.appliances.iter().any(|appliance| appliance.pairs.contains(&pair.name)) {
                    return Err(format!("pair {} ends at no appliance: list it under one", pair.name));
                }
            }
        }
        for appliance in &self.appliances {
            let name = &appliance.name;
            if name.len() > 12 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
                return Err(format!("appliance name {name:?}: at most 12 letters, digits, `-`, `_`"));
            }
            if appliance.kind == ApplianceKind::Bridge && self.steering != Steering::Dot1q {
                return Err(format!(
                    "appliance {name} is a bridge, which reads VLAN tags: set `steering: dot1q`"
                ));
            }
            for pair in &appliance.pairs {
                if !self.pairs().any(|(_, known)| known.name == *pair) {
                    return Err(format!("appliance {name} has pair {pair}, which no unit has"));
                }
            }
        }
        Ok(())
    }

    /// The same site with keep-alives at least 200 ms apart, for data planes that take microseconds for a frame.
    #[must_use]
    pub fn slow(mut self) -> Self {
        let interval = self.liveness_value("interval").max(200);
        self.liveness.insert("interval".to_owned(), interval.into());
        self.liveness.remove("max-delay");
        self
    }

    /// Every pair with the unit it is in, in file order.
    pub fn pairs(&self) -> impl Iterator<Item = (&Unit, &Pair)> {
        self.units.iter().flat_map(|unit| unit.pairs.iter().map(move |pair| (unit, pair)))
    }

    /// The appliance at which a pair ends.
    pub fn appliance_of(&self, pair: &str) -> Option<&Appliance> {
        self.appliances.iter().find(|appliance| appliance.pairs.iter().any(|name| name == pair))
    }

    /// A number of the liveness profile in its own unit, with the default of the design.
    pub fn liveness_value(&self, leaf: &str) -> u64 {
        let default = match leaf {
            "initial-delay" => 1000,
            "interval" => 100,
            "probes-down-count" | "probes-up-count" => 5,
            "max-delay" => self.liveness_value("interval") * 1000,
            _ => 1,
        };
        self.liveness.get(leaf).and_then(serde_json::Value::as_u64).unwrap_or(default)
    }
}

/// The names of shipped files, for messages.
pub fn names(shipped: &[(&str, &str)]) -> String {
    shipped.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn in_range(what: &str, value: u32, low: u32, high: u32) -> std::result::Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} is {value}: it must be {low}..{high}"))
    }
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> std::result::Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what} {name} is there twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
name: small
links: [{name: l1}]
units: [{name: main, pairs: [a, {name: b, weight: 2}]}]
appliances: [{name: x, kind: emulated, pairs: [a, b]}]
";

    fn reason(text: &str) -> String {
        Topology::parse("t.yaml", text).expect_err("must be refused").to_string()
    }

    #[test]
    fn shipped_topologies_parse() {
        for (name, text) in SHIPPED {
            Topology::parse(name, text).expect(name);
        }
    }

    #[test]
    fn defaults_are_filled_in() {
        let topology = Topology::parse("t.yaml", SMALL).expect("valid");
        assert_eq!(topology.mtu, 1500);
        assert_eq!(topology.links[0].encapsulations[0].tags, []);
        assert_eq!(topology.units[0].pairs[1].weight, 2);
        assert_eq!(topology.liveness_value("max-delay"), 100_000);
    }

    #[test]
    fn errors_name_file_element_and_remedy() {
        assert!(reason(&SMALL.replace("name: x", "nam: x")).starts_with("t.yaml: "));
        assert_eq!(
            reason(&SMALL.replace("[a, b]}", "[a]}")),
            "t.yaml: pair b ends at no appliance: list it under one"
        );
        assert_eq!(reason(&format!("{SMALL}mtu: 40\n")), "t.yaml: mtu is 40: it must be 1280..9000");
        assert!(reason(&SMALL.replace("emulated", "bridge")).contains("steering: dot1q"));
        assert!(reason(&SMALL.replace("weight: 2", "weight: 0")).contains("weight of pair b is 0"));
        let tags = SMALL.replace("{name: l1}", "{name: l1, encapsulations: [qinq 5]}");
        assert!(reason(&tags).contains("qinq OUTER.INNER"), "{}", reason(&tags));
    }

    #[test]
    fn encapsulations_read_and_write_alike() {
        for text in ["untagged", "vlan 100", "qinq 200.300", "802.1ad 7.4094"] {
            let parsed = Encapsulation::try_from(text.to_string()).expect(text);
            assert_eq!(String::from(parsed), text);
        }
        assert!(Encapsulation::try_from("vlan 4095".to_string()).is_err());
    }

    #[test]
    fn missing_file_lists_the_shipped_ones() {
        let error = Topology::load(Path::new("/nowhere.yaml")).expect_err("missing").to_string();
        assert!(error.contains("shipped topologies are demo"), "{error}");
    }
}
