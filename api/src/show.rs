//! Types of the answers. Counts of bytes are of frames as they were on the link, without FCS.

use serde::{Deserialize, Serialize};

use crate::UnitMode;

/// `show version`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Version {
    /// Of sluiced.
    pub version: String,
    /// RFC 3339.
    pub started: String,
    /// Seconds since then.
    pub uptime: u64,
    /// `embedded` or the address of the data plane.
    pub target: String,
    /// Hash of the device's bucket tables, 16 hex digits.
    pub config_hash: String,
}

/// A port of `show ports` and `show port NAME statistics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Port {
    /// Name.
    pub name: String,
    /// Number of the port in the data plane.
    pub port_id: u16,
    /// Front panel number.
    pub number: u8,
    /// Lane, 0..=3.
    pub lane: u8,
    /// Linux interface, on the software pipeline.
    pub interface: Option<String>,
    /// As configured.
    pub speed: Option<String>,
    /// Bytes after the Ethernet header.
    pub mtu: u16,
    /// As configured.
    pub description: Option<String>,
    /// What it serves, such as `link link1 lan` or `pair f1-1 wan`; none where it serves nothing.
    pub role: Option<String>,
    /// `None` where the data plane does not tell.
    pub carrier: Option<bool>,
    /// Times it lost carrier since the controller started.
    #[serde(default)]
    pub flaps: u64,
    /// Of the carrier, RFC 3339.
    #[serde(default)]
    pub last_change: Option<String>,
    /// Received, as the frames came in: what returns from an appliance with its steering header.
    pub rx: Count,
    /// Sent, without steering headers; keep-alives included.
    pub tx: Count,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Count {
    /// Frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts of one side of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideCounts {
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
}

/// How many frames ended in a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VerdictCount {
    /// `to-ecofilter`, `return`, `to-controller`, `bypass` or `drop`.
    pub verdict: String,
    /// Why, where it is a bypass or a drop.
    pub reason: Option<String>,
    /// Frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A link of `show link`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// Name.
    pub name: String,
    /// Index in steering headers.
    pub index: u8,
    /// As configured.
    pub description: Option<String>,
    /// Name of the LAN port.
    pub lan_port: String,
    /// Name of the WAN port.
    pub wan_port: String,
    /// LAN side.
    pub lan: SideCounts,
    /// WAN side.
    pub wan: SideCounts,
    /// Frames that came in by this link's ports.
    pub verdicts: Vec<VerdictCount>,
}

/// `show ecofilter-balancer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Balancer {
    /// `layer-3`, `layer-4`, `dst-ip` or `src-ip`.
    pub balancing_method: String,
    /// `native` or `dot1q`.
    pub steering_mode: String,
    /// Of the device, 16 hex digits.
    pub config_hash: String,
    /// `primary` where this controller programs the data plane and what is shown is true of it; else `backup`,
    /// `lost` or `unusable` (connected, but it does not take pipeline or tables), and states and measurements are
    /// those of before.
    pub data_plane: String,
    /// Why, where it is not `primary`, and what to do.
    pub data_plane_reason: Option<String>,
    /// Every pair failed at once: the fault may be the controller's own path, and losses do not count yet.
    pub liveness_suspended: bool,
    /// What must answer for a loss to count against an appliance.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// Units in name order.
    pub units: Vec<Unit>,
}

/// A path that takes no appliance: while it fails, the fault is ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reference {
    /// `controller`, or the names of its two ports with a colon between.
    pub name: String,
    /// `good`, `failing` (losses of pairs do not count yet) or `believed` (they count although it fails).
    pub state: String,
    /// Keep-alives sent by the first port.
    pub lan_to_wan: DirectionLiveness,
    /// Keep-alives sent by the second port.
    pub wan_to_lan: DirectionLiveness,
}

/// A unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unit {
    /// Name.
    pub name: String,
    /// `up`, `bypass`, `primary` or `backup`: another unit has its traffic.
    pub state: String,
    /// By hand or `auto`.
    pub mode: UnitMode,
    /// Why the state is what it is.
    pub reason: String,
    /// Of the state, RFC 3339.
    #[serde(default)]
    pub last_change: Option<String>,
    /// Times that its traffic left its pairs.
    #[serde(default)]
    pub flaps: u64,
    /// The unit that stands in for it, as configured.
    #[serde(default)]
    pub backup: Option<String>,
    /// The unit that has its traffic now.
    #[serde(default)]
    pub served_by: Option<String>,
    /// Percent of its buckets that are bypassed on purpose.
    #[serde(default)]
    pub shed: u8,
    /// Worker cores behind each pair.
    pub cores: u16,
    /// Number of buckets.
    pub buckets: u32,
    /// `on` or `off`.
    pub rebalance: String,
    /// `bypass` or `drop`.
    pub fail_action: String,
    /// Name of the liveness profile.
    pub liveness_profile: String,
    /// Pairs that are up.
    pub pairs_up: usize,
    /// All pairs.
    pub pairs_total: usize,
    /// Fewer than this up: bypass.
    pub active_pairs: usize,
    /// Of the unit, 16 hex digits.
    pub config_hash: String,
    /// Pairs in name order.
    pub pairs: Vec<Pair>,
}

/// A pair of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pair {
    /// Name.
    pub name: String,
    /// `init`, `up`, `down`, `held`, `admin-down` or `draining`.
    pub state: String,
    /// `up`, `down` or `drain`, as configured.
    #[serde(default)]
    pub admin: String,
    /// `active` or `spare`.
    pub role: String,
    /// 1..=100.
    pub weight: u8,
    /// Buckets move by cost.
    #[serde(default)]
    pub weight_auto: bool,
    /// The hold or trial that runs.
    #[serde(default)]
    pub hold: Option<Hold>,
    /// Worker cores that do not answer.
    #[serde(default)]
    pub cores_down: Vec<u8>,
    /// What an exchange of 64 KiB through it would take, ns; losses raise it.
    #[serde(default)]
    pub cost_ns: Option<u64>,
    /// Name of the LAN port.
    pub lan_port: String,
    /// Name of the WAN port.
    pub wan_port: String,
    /// Buckets that have their home here.
    pub buckets_home: usize,
    /// Buckets that are served here now.
    pub buckets_now: usize,
    /// Share of the unit's buckets served here now, percent.
    pub share_percent: f64,
    /// Spare that stands in, or the pair that this spare stands in for.
    pub stands_with: Option<String>,
    /// Of the last change.
    pub last_reason: Option<String>,
    /// RFC 3339.
    pub last_change: Option<String>,
    /// Times it went from up to down.
    pub flaps: u64,
    /// Frames sent to the appliance.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames returned to links.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Of the frames sent to the appliance those by its LAN port: what goes up to the WAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Count>,
    /// Of the frames sent to the appliance those by its WAN port: what comes down to the LAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Count>,
    /// Average time-on-path, ns.
    pub lan_to_wan_ns: Option<u64>,
    /// Average time-on-path, ns.
    pub wan_to_lan_ns: Option<u64>,
}

/// The damping of a pair that flaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hold {
    /// When the hold ends, RFC 3339; in the past during the trial.
    pub until: String,
    /// Which fall within the window this is, from 1; each doubles the hold.
    pub down: u32,
    /// The hold is over: the next probes-up-count keep-alives decide.
    pub trial: bool,
}

/// A flow of `show ecofilter-balancer flow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Flow {
    /// Name.
    pub name: String,
    /// The higher wins.
    pub priority: u16,
    /// `bypass`, `drop` or `to-ecofilter`.
    pub action: String,
    /// Where the action is `to-ecofilter`.
    pub unit: Option<String>,
    /// The appliance gets a copy only.
    pub copy: bool,
    /// Links it applies to; empty for all.
    pub links: Vec<String>,
    /// Conditions as configured.
    #[serde(rename = "match")]
    pub matches: serde_json::Value,
    /// Frames that it decided about.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames a second since the previous reading, at least one second apart.
    pub packets_per_second: f64,
    /// Bits a second, likewise.
    pub bits_per_second: f64,
}

/// `show ecofilter-balancer balancing-config-hash`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigHash {
    /// Of the device, 64 hex digits.
    pub device: String,
    /// Of each unit.
    pub units: Vec<UnitHash>,
}

/// A unit's digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnitHash {
    /// Name.
    pub name: String,
    /// 64 hex digits.
    pub config_hash: String,
    /// Number of buckets.
    pub buckets: u32,
}

/// A pair of `show liveness profile-status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairLiveness {
    /// Profile in force.
    pub profile: String,
    /// Unit.
    pub unit: String,
    /// Pair.
    pub pair: String,
    /// State.
    pub state: String,
    /// Times it went from up to down.
    pub flaps: u64,
    /// Of the last change.
    pub last_reason: Option<String>,
    /// RFC 3339.
    pub last_change: Option<String>,
    /// The hold or trial that runs.
    #[serde(default)]
    pub hold: Option<Hold>,
    /// What an exchange of 64 KiB through it would take, ns; losses raise it.
    #[serde(default)]
    pub cost_ns: Option<u64>,
    /// Keep-alives sent by the LAN port.
    pub lan_to_wan: DirectionLiveness,
    /// Keep-alives sent by the WAN port.
    pub wan_to_lan: DirectionLiveness,
    /// Its worker cores, where they are probed.
    #[serde(default)]
    pub cores: Vec<CoreLiveness>,
    /// Datagrams that must come back, where they are sent.
    #[serde(default)]
    pub ip_probe: Option<ProbeLiveness>,
    /// Datagrams that must not come back, where they are sent.
    #[serde(default)]
    pub negative_probe: Option<NegativeLiveness>,
}

/// Probes of both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProbeLiveness {
    /// Sent by the LAN port.
    pub lan_to_wan: DirectionLiveness,
    /// Sent by the WAN port.
    pub wan_to_lan: DirectionLiveness,
}

/// Probes that must not come back, of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NegativeLiveness {
    /// Sent by the LAN port.
    pub lan_to_wan: NegativeDirection,
    /// Sent by the WAN port.
    pub wan_to_lan: NegativeDirection,
}

/// Probes of one direction that must not come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NegativeDirection {
    /// Sent since the pair was configured.
    pub sent: u64,
    /// Did not come back in time, as it should be.
    pub silent: u64,
    /// Came back.
    pub returned: u64,
    /// Came back later; counted silent too.
    pub late: u64,
    /// Consecutive ones that came back.
    pub consecutive_returned: u64,
    /// Of the last one that came back, RFC 3339.
    pub last_return: Option<String>,
}

/// A worker core behind a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoreLiveness {
    /// From 0.
    pub core: u8,
    /// `init`, `up` or `down`.
    pub state: String,
    /// Times it went down.
    pub flaps: u64,
    /// Of the last change.
    pub last_reason: String,
    /// RFC 3339.
    pub last_change: String,
    /// Keep-alives sent, both directions.
    pub sent: u64,
    /// Came back in time.
    pub good: u64,
    /// Did not.
    pub lost: u64,
}

/// Keep-alives of one direction. Times are time-on-path in ns over the last samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DirectionLiveness {
    /// Sent since the pair was configured.
    pub sent: u64,
    /// Came back in time.
    pub good: u64,
    /// Did not.
    pub lost: u64,
    /// Came back too late; counted lost too.
    pub late: u64,
    /// Came back twice.
    pub duplicate: u64,
    /// Of a time long past.
    pub stale: u64,
    /// In flight while the controller was not running: neither good nor lost.
    pub voided: u64,
    /// With a wrong tag.
    pub wrong_tag: u64,
    /// Of another controller.
    pub wrong_instance: u64,
    /// Came back on the port it left by.
    pub looped: u64,
    /// Came back on another pair.
    pub wrong_pair: u64,
    /// Consecutive good ones.
    pub consecutive_good: u64,
    /// Consecutive losses.
    pub consecutive_lost: u64,
    /// Samples in the window.
    pub samples: u64,
    /// Losses in the window.
    pub samples_failed: u64,
    /// Shortest.
    pub min_ns: Option<u64>,
    /// Average.
    pub avg_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
    /// Standard deviation; half the average for a single sample.
    pub stddev_ns: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Good ones since the pair was configured, by time-on-path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<HistogramStep>,
    /// Their times-on-path added up.
    #[serde(default)]
    pub sum_ns: u64,
    /// RFC 3339.
    pub last_loss: Option<String>,
}

/// How many took at most so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HistogramStep {
    /// Greatest time-on-path.
    pub le_ns: u64,
    /// Keep-alives that took no longer; those of smaller steps included.
    pub count: u64,
}

/// `show counters drops`: every frame ends in exactly one of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Drops {
    /// Frames received on all ports.
    pub frames_in: u64,
    /// Their verdicts; the packets sum up to `frames_in`.
    pub verdicts: Vec<VerdictCount>,
    /// Frames that the pipeline never saw, or that an interface lost after it; ports with neither are left out.
    pub outside: Vec<PortLosses>,
    /// By the link that they came in by.
    pub links: Vec<NamedVerdicts>,
    /// By the pair that they came in by.
    pub pairs: Vec<NamedVerdicts>,
}

/// Frames of a port that have no verdict, or lost theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PortLosses {
    /// The port's name.
    pub port: String,
    /// Arrived at the interface, but the pipeline had no room for them, or they were too long for its buffers.
    pub missed: u64,
    /// Sent by the pipeline, but the interface did not take them: no carrier, queue full, MTU lowered.
    pub lost: u64,
}

/// Verdicts of a link or pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NamedVerdicts {
    /// Name.
    pub name: String,
    /// Verdicts that are not zero.
    pub verdicts: Vec<VerdictCount>,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Somebody has to do something.
    Error,
}

impl Severity {
    /// All, the least first.
    pub const ALL: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Error];

    /// The word that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an event is about; its `subject` is the name of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A pair, `UNIT/PAIR`.
    Pair,
    /// A worker core behind a pair, `UNIT/PAIR/CORE`.
    Core,
    /// A unit.
    Unit,
    /// A unit's mode by hand.
    Mode,
    /// A port.
    Port,
    /// A configuration, or a part of the controller that follows it.
    Configuration,
    /// Somebody who came in, or was kept out.
    Access,
    /// The data plane.
    Target,
    /// The watching itself.
    Liveness,
}

impl EventKind {
    /// All of them.
    pub const ALL: [EventKind; 9] = [
        EventKind::Pair,
        EventKind::Core,
        EventKind::Unit,
        EventKind::Mode,
        EventKind::Port,
        EventKind::Configuration,
        EventKind::Access,
        EventKind::Target,
        EventKind::Liveness,
    ];

    /// The word that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventKind::Pair => "pair",
            EventKind::Core => "core",
            EventKind::Unit => "unit",
            EventKind::Mode => "mode",
            EventKind::Port => "port",
            EventKind::Configuration => "configuration",
            EventKind::Access => "access",
            EventKind::Target => "target",
            EventKind::Liveness => "liveness",
        }
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// An event of `show events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Event {
    /// Rising; unique over restarts.
    pub id: u64,
    /// RFC 3339, UTC, microseconds.
    pub time: String,
    /// Monotonic clock of the controller's machine, ns.
    pub monotonic_ns: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub kind: EventKind,
    /// The thing's name.
    pub subject: String,
    /// State before.
    pub before: Option<String>,
    /// State after.
    pub after: Option<String>,
    /// Why.
    pub reason: String,
    /// More, in words.
    pub detail: Option<String>,
    /// For changes of pairs and units: when the data plane had it, ns after `monotonic_ns`.
    pub data_plane_ns: Option<u64>,
}

/// Which events are wanted; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventFilter {
    /// About that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EventKind>,
    /// As severe as this, or worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Subjects that begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl EventFilter {
    /// Every event is wanted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == EventFilter::default()
    }

    /// The event is wanted.
    #[must_use]
    pub fn admits(&self, event: &Event) -> bool {
        self.kind.is_none_or(|kind| event.kind == kind)
            && self.severity.is_none_or(|least| event.severity >= least)
            && self.subject.as_ref().is_none_or(|begin| event.subject.starts_with(begin.as_str()))
    }
}

/// What happened since a follower asked last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewEvents {
    /// Those that were wanted, oldest first.
    pub events: Vec<Event>,
    /// Id of the newest event, wanted or not; what the follower asked with where there is none.
    pub newest: u64,
    /// Events, of whatever kind, that were forgotten before the follower asked for them.
    pub missed: u64,
}

/// `show target`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Target {
    /// `embedded` or an address.
    pub address: String,
    /// `swpipe`, `bmv2` or `tofino1`: the limits that the controller keeps.
    pub profile: String,
    /// Digest of the pipeline, 16 hex digits; the data plane has it as its configuration's cookie.
    pub pipeline: String,
    /// `primary`, `backup`, `lost` or `unusable`: connected, but it does not take pipeline or tables.
    pub state: String,
    /// Why, where it is not primary, and what to do.
    pub reason: Option<String>,
    /// Device id.
    pub device_id: u64,
    /// Election id.
    pub election_id: String,
    /// Applied configurations and repairs since the start.
    pub epoch: u64,
    /// Entries of each table.
    pub tables: Vec<TableUsage>,
}

/// Entries of one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableUsage {
    /// Name.
    pub name: String,
    /// Entries now.
    pub entries: usize,
    /// Entries that surely fit.
    pub size: usize,
}

/// What [`crate::Request::Lookup`] asks about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct LookupQuery {
    /// Source address.
    pub src: String,
    /// Destination address.
    pub dst: String,
    /// IP protocol; 6 without it.
    pub proto: Option<u8>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// VLAN ids, outermost first.
    pub vlan: Vec<u16>,
    /// Link that the frame comes in by; the first without it.
    pub link: Option<String>,
    /// `lan` (without it) or `wan`: the side that it comes in by.
    pub side: Option<String>,
}

/// Where a session goes now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lookup {
    /// Rule that decides; none where no rule matches.
    pub flow: Option<String>,
    /// `to-ecofilter`, `bypass` or `drop`.
    pub verdict: String,
    /// Why, where it is a bypass or a drop.
    pub reason: Option<String>,
    /// Unit.
    pub unit: Option<String>,
    /// 8 hex digits.
    pub hash: Option<String>,
    /// Bucket.
    pub bucket: Option<u16>,
    /// Pair.
    pub pair: Option<String>,
    /// Worker core.
    pub core: Option<u8>,
    /// Name of the port that it leaves by.
    pub out_port: Option<String>,
}

/// What an apply did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Applied {
    /// Table entries inserted.
    pub inserted: usize,
    /// Table entries changed.
    pub modified: usize,
    /// Table entries deleted.
    pub deleted: usize,
    /// What is allowed but worth knowing.
    pub warnings: Vec<String>,
    /// Nodes of the configuration that are other than before.
    #[serde(default)]
    pub changes: usize,
    /// It confirmed an apply that waited for it.
    #[serde(default)]
    pub confirmed: bool,
}
