//! The rules of the tree: what is written, checked as a whole. Every fault is reported, not the first alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dataplane::buckets::{MAX_BUCKETS, MAX_CORES, MIN_BUCKETS};
use dataplane::frame::VLAN_TPIDS;
use dataplane::schema::counters::{LINKS, PAIRS};
use dataplane::steering::{DOT1Q_TPID, NATIVE_TPID};
use dataplane::tables::FORBIDDEN_TPIDS;
use dataplane::target::SWPIPE;
use dataplane::{BucketTable, LinkIndex, Method, PortId, SteeringMode, UnitShape};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::fault::{Fault, SiteError};
use crate::flow::{self, Flow, FlowAction};
use crate::ids::PairName;
use crate::profile::{ProfileConfig, Reference};
use crate::room;
use crate::tree::{
    self, Admin, FlowTree, LinkTree, Number, PairTree, PortTree, SteeringTree, Switch, Tree, UnitTree,
    WeightTree,
};
use crate::value;

/// VID of link 0 in `dot1q` mode where none is configured.
const DEFAULT_BASE_VID: u16 = 100;
const SPEEDS: [&str; 5] = ["10g", "25g", "40g", "50g", "100g"];

/// A site's configuration that keeps all rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Ports by name.
    pub ports: BTreeMap<String, Port>,
    /// Liveness profiles by name; `default` is always there.
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Hash input.
    pub method: Method,
    /// Steering headers.
    pub steering: SteeringMode,
    /// Links in the order of the configuration.
    pub links: Vec<Link>,
    /// Units by name.
    pub units: BTreeMap<String, Unit>,
    /// Flows by name. Sites that differ in a few share the others.
    pub flows: Flows,
    /// Units that only get copies.
    copy_units: BTreeSet<String>,
    /// What is allowed but worth knowing, of everything but flows.
    warnings: Vec<Warning>,
}

/// Flows by name.
pub type Flows = BTreeMap<String, Arc<Flow>>;

/// A flow of a site in parts.
#[derive(Clone, Debug)]
pub enum FlowPart {
    /// An entry of the list, to be read.
    Written(Value),
    /// One of another site, whose entry is the same.
    Known(Arc<Flow>),
}

/// Something that is allowed but worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub path: String,
    /// What.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name.
    pub name: String,
    /// In the data plane: number * 4 + lane.
    pub id: PortId,
    /// Front panel number, 1..=65.
    pub number: u8,
    /// 0..=3.
    pub lane: u8,
    /// Of the lane.
    pub speed: Option<String>,
    /// Bytes after the Ethernet header, 64..=10240.
    pub mtu: u16,
    /// As written.
    pub description: Option<String>,
    /// Linux interface, on the software pipeline.
    pub interface: Option<String>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name.
    pub name: String,
    /// Name of the LAN port.
    pub lan_port: String,
    /// Name of the WAN port.
    pub wan_port: String,
    /// As written.
    pub description: Option<String>,
}

/// What happens to a down pair's share with `rebalance off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailAction {
    /// Soft bypass.
    #[default]
    Bypass,
    /// Drop.
    Drop,
}

/// A unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Name.
    pub name: String,
    /// Behind each pair, 1..=256.
    pub cores: u16,
    /// Name of the profile.
    pub profile: String,
    /// Others take a down pair's share.
    pub rebalance: bool,
    /// Set by hand.
    pub buckets: Option<u32>,
    /// For a down pair's share.
    pub fail_action: FailAction,
    /// Name of the unit that takes the traffic when this one would be bypassed.
    pub backup: Option<String>,
    /// Percent of the buckets that are bypassed on purpose, 0..=100.
    pub shed: u8,
    /// Pairs by name.
    pub pairs: BTreeMap<String, PairConfig>,
}

/// `active` or `spare`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairRole {
    /// Has a share of its own.
    #[default]
    Active,
    /// Stands in for a down pair.
    Spare,
}

/// A pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairConfig {
    /// Name.
    pub name: String,
    /// Name of the LAN port.
    pub lan_port: String,
    /// Name of the WAN port.
    pub wan_port: String,
    /// 1..=100.
    pub weight: u8,
    /// Buckets move by the pair's cost; `weight` is what it begins with.
    pub weight_auto: bool,
    /// Active or spare.
    pub role: PairRole,
    /// By the engineer.
    pub admin: Admin,
}

/// A flow that uses a unit for copies, and one that uses it for traffic.
#[derive(Clone, Copy, Debug, Default)]
struct Uses<'f> {
    copy: Option<&'f str>,
    traffic: Option<&'f str>,
}

impl Unit {
    /// What the bucket table depends on.
    #[must_use]
    pub fn shape(&self) -> UnitShape {
        let of_role = |role| self.pairs.values().filter(move |pair| pair.role == role);
        UnitShape {
            active: of_role(PairRole::Active).map(|pair| (pair.name.clone(), pair.weight)).collect(),
            spares: of_role(PairRole::Spare).map(|pair| pair.name.clone()).collect(),
            cores: self.cores,
            buckets: self.buckets,
        }
    }

    /// The home table; `None` where the unit has no active pair.
    #[must_use]
    pub fn bucket_table(&self) -> Option<BucketTable> {
        BucketTable::build(&self.shape()).ok()
    }
}

impl Site {
    /// Reads a configuration: RFC 7951 JSON of the module `sluice`.
    ///
    /// # Errors
    /// [`SiteError::Shape`] with path, line and column where it is no JSON of the tree's shape, else all
    /// faults.
    pub fn from_json(text: &str) -> Result<Self, SiteError> {
        let written = serde_json::from_str(text);
        if let Ok(written) = &written {
            tree::objects(written, "").map_err(SiteError::Shape)?;
        }
        written.map_err(|error| SiteError::Shape(error.to_string()))?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let tree: Tree = read(&mut deserializer)?;
        deserializer.end().map_err(|error| SiteError::Shape(error.to_string()))?;
        Site::of(&tree)
    }

    /// A site of a configuration in parts: everything but flows, and the flows one by one. Large sites are read so
    /// without a copy of all of it in between, and share the flows that stay as they are.
    ///
    /// # Errors
    /// As [`Site::from_json`].
    pub fn from_parts(rest: &Value, flows: impl IntoIterator<Item = FlowPart>) -> Result<Self, SiteError> {
        tree::objects(rest, "").map_err(SiteError::Shape)?;
        let mut check = Check::default();
        let mut site = check.site(&read(rest)?);
        for flow in flows {
            let flow = match flow {
                FlowPart::Written(value) => Arc::new(check.flow(&read(&value)?)),
                FlowPart::Known(flow) => flow,
            };
            check.put(&mut site.flows, flow);
        }
        check.across(&mut site);
        check.end(site)
    }

    fn of(tree: &Tree) -> Result<Self, SiteError> {
        let mut check = Check::default();
        let mut site = check.site(tree);
        check.across(&mut site);
        check.end(site)
    }

    /// This site with some flows changed: an entry of the list, or `None` where the flow of that name goes. The
    /// others are neither read nor checked again.
    ///
    /// # Errors
    /// As [`Site::from_json`].
    pub fn with_flows(
        &self,
        changed: impl IntoIterator<Item = (String, Option<Value>)>,
    ) -> Result<Self, SiteError> {
        let mut check = Check::default();
        let mut site = self.clone();
        for (name, flow) in changed {
            match flow {
                Some(flow) => {
                    let tree: FlowTree = read(&flow)?;
                    let flow = check.flow(&tree);
                    site.flows.insert(name, Arc::new(flow));
                }
                None => {
                    site.flows.remove(&name);
                }
            }
        }
        check.across(&mut site);
        check.end(site)
    }

    /// What is allowed but worth knowing.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let never = self.flows.values().filter(|flow| flow.matches.is_empty()).map(|flow| Warning {
            path: format!("ecofilter-balancer flow {}", flow.name),
            text: "never matches: a frame with LLC addresses has no IPv6 header".to_owned(),
        });
        self.warnings.iter().cloned().chain(never).collect()
    }

    /// All pairs: units in name order, pairs in name order.
    pub fn pair_names(&self) -> impl Iterator<Item = PairName> {
        self.units.values().flat_map(|unit| {
            unit.pairs.keys().map(|pair| PairName { unit: unit.name.clone(), pair: pair.clone() })
        })
    }

    /// The references that profiles of units ask for, each once, in the order of their names.
    pub fn references(&self) -> impl Iterator<Item = PairName> + use<> {
        let all: BTreeSet<PairName> = self
            .units
            .values()
            .filter_map(|unit| PairName::of_reference(&self.profile_of(unit).reference))
            .collect();
        all.into_iter()
    }

    /// Probes of a unit's pairs may carry steering headers: what comes back from copies is dropped.
    #[must_use]
    pub fn is_probed_by_header(&self, unit: &Unit) -> bool {
        self.profile_of(unit).is_steered() && !self.is_copy_unit(&unit.name)
    }

    /// A pair's configuration.
    #[must_use]
    pub fn pair(&self, name: &PairName) -> Option<&PairConfig> {
        self.units.get(&name.unit)?.pairs.get(&name.pair)
    }

    /// The profile of a unit.
    #[must_use]
    pub fn profile_of(&self, unit: &Unit) -> ProfileConfig {
        self.profiles.get(&unit.profile).cloned().unwrap_or_else(|| ProfileConfig::named(&unit.profile))
    }

    /// The units that take a unit's traffic in turn, the first one first; where backups go in a ring, the unit itself
    /// ends it.
    pub fn backups_of<'s>(&'s self, unit: &'s Unit) -> impl Iterator<Item = &'s Unit> {
        let mut seen = BTreeSet::new();
        let next = move |of: &&'s Unit| of.backup.as_ref().and_then(|name| self.units.get(name));
        std::iter::successors(next(&unit), next).take_while(move |unit| seen.insert(unit.name.as_str()))
    }

    /// The unit only gets copies, by a flow or in the place of a unit that does.
    #[must_use]
    pub fn is_copy_unit(&self, unit: &str) -> bool {
        self.copy_units.contains(unit)
    }

    /// What flows use units for, themselves or in the place of others.
    fn uses(&self) -> BTreeMap<&str, Uses<'_>> {
        let mut uses: BTreeMap<&str, Uses<'_>> = BTreeMap::new();
        for flow in self.flows.values() {
            let FlowAction::ToUnit { unit, copy } = &flow.action else { continue };
            let of = uses.entry(unit).or_default();
            let first = if *copy { &mut of.copy } else { &mut of.traffic };
            first.get_or_insert(flow.name.as_str());
        }
        for unit in self.units.values().filter(|unit| unit.backup.is_some()) {
            let Some(own) = uses.get(unit.name.as_str()).copied() else { continue };
            for backup in self.backups_of(unit) {
                let of = uses.entry(&backup.name).or_default();
                of.copy = of.copy.or(own.copy);
                of.traffic = of.traffic.or(own.traffic);
            }
        }
        uses
    }

    /// Digests of the units by name, and of the device.
    #[must_use]
    pub fn config_hashes(&self) -> (BTreeMap<String, String>, String) {
        let units: BTreeMap<String, String> = self
            .units
            .values()
            .filter_map(|unit| Some((unit.name.clone(), unit.bucket_table()?.config_hash(self.method))))
            .collect();
        let device = dataplane::buckets::device_hash(units.values().map(String::as_str));
        (units, device)
    }
}

fn read<'de, T: Deserialize<'de>>(deserializer: impl Deserializer<'de>) -> Result<T, SiteError> {
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!("at {path}: ") };
        SiteError::Shape(format!("{at}{}", error.into_inner()))
    })
}

#[derive(Default)]
pub(crate) struct Check {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
    /// Port name to what serves it.
    pub(crate) serving: BTreeMap<String, String>,
}

impl Check {
    pub(crate) fn fault(
        &mut self,
        path: impl Into<String>,
        value: impl fmt::Display,
        reason: impl Into<String>,
    ) {
        self.faults.push(Fault { path: path.into(), value: value.to_string(), reason: reason.into() });
    }

    fn warn(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.warnings.push(Warning { path: path.into(), text: text.into() });
    }

    pub(crate) fn name(&mut self, path: &str, name: &str) {
        let fine = (1..=63).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !fine {
            self.fault(path, name, "a name is 1..63 of letters, digits, '-', '_', '.'");
        }
    }

    pub(crate) fn number(&mut self, path: &str, value: i64, low: i64, high: i64) -> i64 {
        if !(low..=high).contains(&value) {
            self.fault(path, value, format!("must be {low}..{high}"));
        }
        value.clamp(low, high)
    }

    pub(crate) fn word<'w>(&mut self, path: &str, value: Option<&'w str>, words: &[&'w str]) -> &'w str {
        let first = words.first().copied().unwrap_or_default();
        let Some(value) = value else { return first };
        if words.contains(&value) {
            return value;
        }
        self.fault(path, value, format!("must be one of {}", words.join(", ")));
        first
    }

    fn site(&mut self, tree: &Tree) -> Site {
        let ports = self.ports(&tree.port);
        let profiles = self.profiles(&tree.liveness.profile, &ports);
        let balancer = &tree.balancer;
        let links = self.links(&balancer.link, &ports);
        let steering = self.steering(&balancer.steering_header, links.len());
        let units = self.units(&balancer.ecofilter_unit, &ports, &profiles);
        let flows = self.flows(&balancer.flow);
        let references: BTreeSet<&Reference> = units
            .values()
            .filter_map(|unit| profiles.get(&unit.profile))
            .map(|profile| &profile.reference)
            .filter(|reference| **reference != Reference::None)
            .collect();
        let measured = references.len() + units.values().map(|unit| unit.pairs.len()).sum::<usize>();
        if measured > PAIRS && !references.is_empty() {
            let value = format!("{measured} pairs and references");
            self.fault("liveness", value, format!("at most {PAIRS} in all"));
        }
        self.check_mtus(&ports, &links, &units);
        Site {
            ports,
            profiles,
            method: balancer.balancing_method,
            steering,
            links,
            units,
            flows,
            copy_units: BTreeSet::new(),
            warnings: std::mem::take(&mut self.warnings),
        }
    }

    /// The rules between flows and everything else, themselves included.
    fn across(&mut self, site: &mut Site) {
        let links: BTreeSet<&str> = site.links.iter().map(|link| link.name.as_str()).collect();
        for flow in site.flows.values() {
            for link in flow.links.iter().filter(|link| !links.contains(link.as_str())) {
                let path = format!("ecofilter-balancer flow {} apply-to-links", flow.name);
                self.fault(path, link, "there is no such link");
            }
            if let FlowAction::ToUnit { unit, .. } = &flow.action
                && !site.units.contains_key(unit)
            {
                let path = format!("ecofilter-balancer flow {} ecofilter-unit", flow.name);
                self.fault(path, unit, "there is no such ecofilter-unit");
            }
        }
        self.check_backups(site);
        let uses = site.uses();
        for (unit, uses) in &uses {
            let Uses { copy: Some(copy), traffic: Some(traffic) } = *uses else { continue };
            let reason = format!(
                "unit {unit} gets copies by one flow and traffic by another (flow {traffic}), itself or as a backup; \
                 what comes back from a copy is dropped, so a unit is for one of the two"
            );
            self.fault(format!("ecofilter-balancer flow {copy} copy"), true, reason);
        }
        let copies = uses.into_iter().filter(|(_, uses)| uses.copy.is_some());
        site.copy_units = copies.map(|(unit, _)| unit.to_owned()).collect();
        self.check_probes(site);
        self.faults.extend(room::faults(&site.ports, &site.units, &site.flows, &SWPIPE));
    }

    /// A unit's backup exists, gets what the unit gets, and is not backed by it in turn.
    fn check_backups(&mut self, site: &Site) {
        for unit in site.units.values() {
            let Some(backup) = &unit.backup else { continue };
            let path = format!("ecofilter-balancer ecofilter-unit {} backup", unit.name);
            if !site.units.contains_key(backup) {
                self.fault(path, backup, "there is no such ecofilter-unit");
            } else if site.backups_of(unit).any(|other| other.name == unit.name) {
                let ring: Vec<&str> = site.backups_of(unit).map(|other| other.name.as_str()).collect();
                let reason = format!(
                    "backs the unit up in a ring ({}); the last must have no backup",
                    ring.join(", ")
                );
                self.fault(path, backup, reason);
            }
        }
    }

    /// Probes with steering headers need an index of their own, and those of cores a header that names the core.
    fn check_probes(&mut self, site: &Site) {
        for profile in site.profiles.values().filter(|profile| profile.is_steered()) {
            let path = format!("liveness profile {}", profile.name);
            if profile.probe_cores && !matches!(site.steering, SteeringMode::Native { .. }) {
                let reason = "needs steering headers of mode native; dot1q conveys no core";
                self.fault(format!("{path} probe-cores"), "on", reason);
            }
            let named = (0..=u8::MAX).filter(|link| site.steering.can_name(LinkIndex(*link))).count();
            if site.links.len() >= named {
                let reason = format!(
                    "its probes need an index in steering headers that no link has: at most {} links, or a lower base-vid",
                    named.saturating_sub(1)
                );
                self.fault(path, format!("{} links", site.links.len()), reason);
            }
        }
    }

    fn end(self, site: Site) -> Result<Site, SiteError> {
        if self.faults.is_empty() { Ok(site) } else { Err(SiteError::Faults(self.faults)) }
    }

    fn ports(&mut self, trees: &[PortTree]) -> BTreeMap<String, Port> {
        let mut ports = BTreeMap::new();
        let mut lanes: BTreeMap<(i64, i64), String> = BTreeMap::new();
        let mut interfaces: BTreeMap<String, String> = BTreeMap::new();
        let mut speeds: BTreeMap<i64, (String, String)> = BTreeMap::new();
        for tree in trees {
            let path = format!("port {}", tree.name);
            self.name(&path, &tree.name);
            let number = self.number(&format!("{path} number"), tree.number, 1, 65);
            let lane = self.number(&format!("{path} lane"), tree.lane, 0, 3);
            let mtu = self.number(&format!("{path} mtu"), tree.mtu, 64, 10240);
            if let Some(speed) = &tree.speed {
                self.word(&format!("{path} speed"), Some(speed), &SPEEDS);
                let (other, other_speed) =
                    speeds.entry(number).or_insert_with(|| (tree.name.clone(), speed.clone()));
                if other_speed != speed {
                    let reason =
                        format!("lanes of one connector need equal speed; port {other} is {other_speed}");
                    self.fault(format!("{path} speed"), speed, reason);
                }
            }
            if let Some(other) = lanes.insert((number, lane), tree.name.clone()) {
                let reason = format!("port {other} has this number and lane already");
                self.fault(format!("{path} number"), format!("{number}/{lane}"), reason);
            }
            if let Some(interface) = &tree.interface {
                // IFNAMSIZ less the terminating zero.
                if !(1..=15).contains(&interface.len()) || interface.contains(['/', ' ']) {
                    self.fault(format!("{path} interface"), interface, "is no name of a Linux interface");
                }
                if let Some(other) = interfaces.insert(interface.clone(), tree.name.clone()) {
                    self.fault(
                        format!("{path} interface"),
                        interface,
                        format!("port {other} has this interface already"),
                    );
                }
            }
            let port = Port {
                name: tree.name.clone(),
                id: PortId((number * 4 + lane) as u16),
                number: number as u8,
                lane: lane as u8,
                speed: tree.speed.clone(),
                mtu: mtu as u16,
                description: tree.description.clone(),
                interface: tree.interface.clone(),
            };
            if ports.insert(tree.name.clone(), port).is_some() {
                self.fault(&path, &tree.name, "two ports have this name");
            }
        }
        ports
    }

    /// A port that exists and that nothing else uses.
    pub(crate) fn serve(
        &mut self,
        path: String,
        port: &str,
        purpose: String,
        ports: &BTreeMap<String, Port>,
    ) {
        if !ports.contains_key(port) {
            self.fault(path, port, "there is no such port");
            return;
        }
        if let Some(other) = self.serving.get(port) {
            let reason = format!("the port serves {other} already; a port serves one purpose only");
            self.fault(path, port, reason);
            return;
        }
        self.serving.insert(port.to_owned(), purpose);
    }

    fn links(&mut self, trees: &[LinkTree], ports: &BTreeMap<String, Port>) -> Vec<Link> {
        if trees.len() > LINKS {
            self.fault(
                "ecofilter-balancer link",
                format!("{} links", trees.len()),
                format!("a steering header can name at most {LINKS}"),
            );
        }
        let mut seen = BTreeSet::new();
        for tree in trees {
            let path = format!("ecofilter-balancer link {}", tree.name);
            self.name(&path, &tree.name);
            if !seen.insert(&tree.name) {
                self.fault(&path, &tree.name, "two links have this name");
            }
            for (side, port) in [("lan", &tree.lan_port), ("wan", &tree.wan_port)] {
                let purpose = format!("link {} {side}", tree.name);
                self.serve(format!("{path} {side}-port"), port, purpose, ports);
            }
        }
        trees
            .iter()
            .map(|tree| Link {
                name: tree.name.clone(),
                lan_port: tree.lan_port.clone(),
                wan_port: tree.wan_port.clone(),
                description: tree.description.clone(),
            })
            .collect()
    }

    fn steering(&mut self, tree: &SteeringTree, links: usize) -> SteeringMode {
        let path = "ecofilter-balancer steering-header";
        let mode = self.word(&format!("{path} mode"), tree.mode.as_deref(), &["native", "dot1q"]);
        let default = if mode == "native" { NATIVE_TPID } else { DOT1Q_TPID };
        let tpid = tree.tpid.as_ref().map_or(default, |text: &Number| {
            value::number(text, 0x0600, 0xffff).map_or_else(
                |reason| {
                    self.fault(format!("{path} tpid"), text, reason);
                    default
                },
                |number| number as u16,
            )
        });
        if mode == "native" {
            if FORBIDDEN_TPIDS.contains(&tpid) || VLAN_TPIDS.contains(&tpid) {
                self.fault(
                    format!("{path} tpid"),
                    format!("{tpid:#06x}"),
                    "operators' frames carry this EtherType; choose one that they do not, such as 0x88b6",
                );
            }
            if let Some(vid) = tree.base_vid {
                self.fault(format!("{path} base-vid"), vid, "has a meaning in mode dot1q only");
            }
            return SteeringMode::Native { tpid };
        }
        // With one of these a frame without a header could pass for one with it, or a returned frame for a
        // keep-alive.
        if FORBIDDEN_TPIDS.contains(&tpid) {
            self.fault(
                format!("{path} tpid"),
                format!("{tpid:#06x}"),
                "operators' frames or keep-alives carry this EtherType; choose a VLAN's, such as 0x8100",
            );
        }
        let last = 4094 - (links.max(1) as i64 - 1);
        let base = tree.base_vid.unwrap_or(DEFAULT_BASE_VID.into());
        let base_vid = self.number(&format!("{path} base-vid"), base, 1, last.max(1)) as u16;
        SteeringMode::Dot1q { tpid, base_vid }
    }

    fn units(
        &mut self,
        trees: &[UnitTree],
        ports: &BTreeMap<String, Port>,
        profiles: &BTreeMap<String, ProfileConfig>,
    ) -> BTreeMap<String, Unit> {
        if trees.len() > 256 {
            let value = format!("{} units", trees.len());
            self.fault("ecofilter-balancer ecofilter-unit", value, "at most 256 units");
        }
        let pairs: usize = trees.iter().map(|tree| tree.pair.len()).sum();
        if pairs > PAIRS {
            let value = format!("{pairs} pairs");
            self.fault("ecofilter-balancer ecofilter-unit", value, format!("at most {PAIRS} pairs in all"));
        }
        let mut units = BTreeMap::new();
        for tree in trees {
            let unit = self.unit(tree, ports, profiles);
            if units.insert(tree.name.clone(), unit).is_some() {
                let path = format!("ecofilter-balancer ecofilter-unit {}", tree.name);
                self.fault(path, &tree.name, "two units have this name");
            }
        }
        units
    }

    fn unit(
        &mut self,
        tree: &UnitTree,
        ports: &BTreeMap<String, Port>,
        profiles: &BTreeMap<String, ProfileConfig>,
    ) -> Unit {
        let path = format!("ecofilter-balancer ecofilter-unit {}", tree.name);
        self.name(&path, &tree.name);
        let cores = self.number(&format!("{path} cores"), tree.cores, 1, MAX_CORES.into()) as u16;
        let profile = tree.liveness_profile.clone().unwrap_or_else(|| "default".to_owned());
        if !profiles.contains_key(&profile) {
            self.fault(format!("{path} liveness-profile"), &profile, "there is no such liveness profile");
        }
        let buckets = tree.buckets.map(|buckets| {
            let fine = (i64::from(MIN_BUCKETS)..=i64::from(MAX_BUCKETS)).contains(&buckets)
                && buckets.count_ones() == 1;
            if !fine {
                self.fault(format!("{path} buckets"), buckets, "must be a power of two within 1024..65536");
            }
            buckets.clamp(i64::from(MIN_BUCKETS), i64::from(MAX_BUCKETS)) as u32
        });
        let fail_action =
            match self.word(&format!("{path} fail-action"), tree.fail_action.as_deref(), &["bypass", "drop"])
            {
                "drop" => FailAction::Drop,
                _ => FailAction::Bypass,
            };
        let shed = tree.shed.map_or(0, |shed| self.number(&format!("{path} shed"), shed, 0, 100) as u8);
        let mut pairs = BTreeMap::new();
        for pair in &tree.pair {
            let config = self.pair(&path, &tree.name, pair, ports);
            if pairs.insert(pair.name.clone(), config).is_some() {
                self.fault(format!("{path} pair {}", pair.name), &pair.name, "two pairs have this name");
            }
        }
        let unit = Unit {
            name: tree.name.clone(),
            cores,
            profile,
            rebalance: tree.rebalance == Some(Switch::On),
            buckets,
            fail_action,
            backup: tree.backup.clone(),
            shed,
            pairs,
        };
        self.check_pairs(&path, &unit, profiles);
        unit
    }

    fn check_pairs(&mut self, path: &str, unit: &Unit, profiles: &BTreeMap<String, ProfileConfig>) {
        let active = unit.pairs.values().filter(|pair| pair.role == PairRole::Active).count();
        let spares = unit.pairs.len() - active;
        if active == 0 {
            self.warn(path, "has no active pair: its traffic is bypassed");
        }
        if spares > 0 && !unit.rebalance {
            self.warn(path, "has spare pairs, but they only stand in with rebalance on");
        }
        let wanted = profiles.get(&unit.profile).map_or(1, |profile| profile.active_pairs) as usize;
        let can_be = active.min(if unit.rebalance { active + spares } else { active });
        if active > 0 && wanted > can_be {
            self.warn(
                path,
                format!(
                    "active-pairs is {wanted}, more than its {active} active pairs: it is always bypassed"
                ),
            );
        } else if active > 1 && wanted == active {
            self.warn(
                path,
                format!("active-pairs is {wanted}, all of its pairs: one lost port bypasses the unit"),
            );
        }
    }

    fn pair(
        &mut self,
        unit_path: &str,
        unit: &str,
        tree: &PairTree,
        ports: &BTreeMap<String, Port>,
    ) -> PairConfig {
        let path = format!("{unit_path} pair {}", tree.name);
        self.name(&path, &tree.name);
        for (side, port) in [("lan", &tree.lan_port), ("wan", &tree.wan_port)] {
            let purpose = format!("pair {} {side} of unit {unit}", tree.name);
            self.serve(format!("{path} {side}-port"), port, purpose, ports);
        }
        let (weight, weight_auto) = match &tree.weight {
            WeightTree::Number(weight) if (1..=100).contains(weight) => (*weight as u8, false),
            WeightTree::Word(word) if word == "auto" => (1, true),
            other => {
                self.fault(format!("{path} weight"), other, "must be 1..100 or auto");
                (1, false)
            }
        };
        let role = match self.word(&format!("{path} role"), tree.role.as_deref(), &["active", "spare"]) {
            "spare" => PairRole::Spare,
            _ => PairRole::Active,
        };
        PairConfig {
            name: tree.name.clone(),
            lan_port: tree.lan_port.clone(),
            wan_port: tree.wan_port.clone(),
            weight,
            weight_auto,
            role,
            admin: tree.admin.unwrap_or_default(),
        }
    }

    fn flows(&mut self, trees: &[FlowTree]) -> Flows {
        let mut flows = Flows::new();
        for tree in trees {
            let flow = Arc::new(self.flow(tree));
            self.put(&mut flows, flow);
        }
        flows
    }

    fn put(&mut self, flows: &mut Flows, flow: Arc<Flow>) {
        let name = flow.name.clone();
        if flows.insert(name.clone(), flow).is_some() {
            self.fault(format!("ecofilter-balancer flow {name}"), &name, "two flows have this name");
        }
    }

    fn flow(&mut self, tree: &FlowTree) -> Flow {
        let path = format!("ecofilter-balancer flow {}", tree.name);
        self.name(&path, &tree.name);
        let priority = self.number(&format!("{path} priority"), tree.priority, 1, 65535) as u16;
        let mut applied = BTreeSet::new();
        for link in &tree.apply_to_links {
            if !applied.insert(link) {
                self.fault(format!("{path} apply-to-links"), link, "is given twice");
            }
        }
        let action = self.action(&path, tree);
        Flow {
            name: tree.name.clone(),
            priority,
            links: tree.apply_to_links.clone(),
            matches: flow::matches(&tree.matches, &path, &mut self.faults),
            action,
            written: serde_json::to_value(&tree.matches).unwrap_or_default(),
        }
    }

    fn action(&mut self, path: &str, tree: &FlowTree) -> FlowAction {
        let words = ["bypass", "drop", "to-ecofilter"];
        let word = self.word(&format!("{path} action"), Some(&tree.action), &words);
        if word != "to-ecofilter" {
            if let Some(unit) = &tree.ecofilter_unit {
                let reason = "has a meaning with action to-ecofilter only";
                self.fault(format!("{path} ecofilter-unit"), unit, reason);
            }
            if tree.copy {
                self.fault(format!("{path} copy"), "true", "has a meaning with action to-ecofilter only");
            }
            return if word == "drop" { FlowAction::Drop } else { FlowAction::Bypass };
        }
        let Some(unit) = &tree.ecofilter_unit else {
            self.fault(format!("{path} action"), word, "needs an ecofilter-unit to send to");
            return FlowAction::Bypass;
        };
        FlowAction::ToUnit { unit: unit.clone(), copy: tree.copy }
    }

    fn check_mtus(&mut self, ports: &BTreeMap<String, Port>, links: &[Link], units: &BTreeMap<String, Unit>) {
        let mtu = |port: &str| ports.get(port).map(|port| port.mtu);
        let Some(largest) =
            links.iter().flat_map(|link| [mtu(&link.lan_port), mtu(&link.wan_port)]).flatten().max()
        else {
            return;
        };
        for unit in units.values() {
            for pair in unit.pairs.values() {
                let Some(smallest) = [mtu(&pair.lan_port), mtu(&pair.wan_port)].into_iter().flatten().min()
                else {
                    continue;
                };
                if u32::from(smallest) < u32::from(largest) + 4 {
                    self.warn(
                        format!("ecofilter-balancer ecofilter-unit {} pair {}", unit.name, pair.name),
                        format!(
                            "port mtu {smallest} is below {} (links' mtu {largest} + 4 of the steering header): \
                             full frames will be dropped as mtu-exceeded",
                            u32::from(largest) + 4
                        ),
                    );
                }
            }
        }
    }
}
