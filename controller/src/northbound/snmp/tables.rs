//! The tables: what a row is, and its columns.

use std::sync::Arc;

use agentx::{Column, Table, View};
use api::{Count, DirectionLiveness, UnitMode};
use dataplane::{LinkIndex, PairId, Reason, UnitId};
use site::{Admin, PairName};

use super::date::date;
use super::objects::{
    ACTIONS, FAIL_ACTIONS, FLOW, LINK, METHODS, PAIR, PAIR_STATES, PATH, PORT, ROLES, STANDINGS, STEERING,
    SYSTEM, UNIT, UNIT_STATES, VERDICT, VERDICTS, counter, counter32, gauge, objects, optional, stamp, text,
    truth, word,
};
use crate::clock;
use crate::telemetry::{FlowSnapshot, Snapshot};

/// Indices begin at 1.
pub(super) fn unit_index(id: UnitId) -> u32 {
    u32::from(id.0) + 1
}

/// Likewise.
pub(super) fn pair_index(id: PairId) -> u32 {
    u32::from(id.0) + 1
}

fn link_index(id: LinkIndex) -> u32 {
    u32::from(id.0) + 1
}

/// What rows are made of beside the snapshot.
pub(super) struct Sources<'a> {
    pub(super) view: &'a crate::view::View,
    /// Version, start and data plane of the controller.
    pub(super) version: api::Version,
    /// TimeStamp of the data plane's counters.
    pub(super) counters_since: u32,
    /// TimeStamp of a pair's keep-alives.
    pub(super) pair_since: &'a dyn Fn(&str, &str) -> u32,
}

/// All tables but the one of flows, in the order of the MIB.
pub(super) fn tables(snapshot: &Arc<Snapshot>, sources: &Sources<'_>) -> Vec<Arc<dyn View>> {
    let system = SystemRow {
        snapshot: snapshot.clone(),
        version: sources.version.clone(),
        since: sources.counters_since,
    };
    vec![
        Arc::new(Table::scalars(objects([SYSTEM]), SYSTEM_COLUMNS, system)),
        Arc::new(Table::new(objects([LINK, 1]), LINK_COLUMNS, links(snapshot))),
        Arc::new(Table::new(objects([UNIT, 1]), UNIT_COLUMNS, units(snapshot, sources))),
        Arc::new(Table::new(objects([PAIR, 1]), PAIR_COLUMNS, pairs(snapshot, sources))),
        Arc::new(Table::new(objects([PATH, 1]), PATH_COLUMNS, paths(snapshot, sources))),
        Arc::new(Table::new(objects([PORT, 1]), PORT_COLUMNS, ports(snapshot))),
        Arc::new(Table::new(objects([VERDICT, 1]), VERDICT_COLUMNS, verdicts(snapshot))),
    ]
}

struct SystemRow {
    snapshot: Arc<Snapshot>,
    version: api::Version,
    since: u32,
}

static SYSTEM_COLUMNS: &[Column<SystemRow>] = &[
    Column { number: 1, name: "sluiceVersion", value: |row| text(&row.version.version) },
    Column { number: 2, name: "sluiceStarted", value: |row| date(&row.version.started) },
    Column {
        number: 3,
        name: "sluiceBalancingMethod",
        value: |row| word(&row.snapshot.balancer.balancing_method, METHODS),
    },
    Column {
        number: 4,
        name: "sluiceSteeringMode",
        value: |row| word(&row.snapshot.balancer.steering_mode, STEERING),
    },
    Column { number: 5, name: "sluiceConfigHash", value: |row| text(&row.snapshot.balancer.config_hash) },
    Column {
        number: 6,
        name: "sluiceLivenessSuspended",
        value: |row| truth(row.snapshot.balancer.liveness_suspended),
    },
    Column {
        number: 7,
        name: "sluiceDataPlaneState",
        value: |row| word(&row.snapshot.balancer.data_plane, STANDINGS),
    },
    Column {
        number: 8,
        name: "sluiceDataPlaneReason",
        value: |row| optional(row.snapshot.balancer.data_plane_reason.as_ref()),
    },
    Column { number: 9, name: "sluiceDataPlaneAddress", value: |row| text(&row.version.target) },
    Column {
        number: 10,
        name: "sluiceReadingAge",
        value: |row| {
            gauge(row.snapshot.counted.map_or(u64::MAX, |counted| clock::now().since(counted).0 / 1_000_000))
        },
    },
    Column { number: 11, name: "sluiceReadingFault", value: |row| optional(row.snapshot.stale.as_ref()) },
    Column { number: 12, name: "sluiceCounterDiscontinuityTime", value: |row| stamp(row.since) },
    Column { number: 13, name: "sluiceFramesIn", value: |row| counter(row.snapshot.drops.frames_in) },
];

static LINK_COLUMNS: &[Column<api::Link>] = &[
    Column { number: 2, name: "sluiceLinkName", value: |link| text(&link.name) },
    Column { number: 3, name: "sluiceLinkSteeringIndex", value: |link| gauge(link.index.into()) },
    Column { number: 4, name: "sluiceLinkLanPort", value: |link| text(&link.lan_port) },
    Column { number: 5, name: "sluiceLinkWanPort", value: |link| text(&link.wan_port) },
    Column { number: 6, name: "sluiceLinkLanInPackets", value: |link| counter(link.lan.rx_packets) },
    Column { number: 7, name: "sluiceLinkLanInOctets", value: |link| counter(link.lan.rx_bytes) },
    Column { number: 8, name: "sluiceLinkLanOutPackets", value: |link| counter(link.lan.tx_packets) },
    Column { number: 9, name: "sluiceLinkLanOutOctets", value: |link| counter(link.lan.tx_bytes) },
    Column { number: 10, name: "sluiceLinkWanInPackets", value: |link| counter(link.wan.rx_packets) },
    Column { number: 11, name: "sluiceLinkWanInOctets", value: |link| counter(link.wan.rx_bytes) },
    Column { number: 12, name: "sluiceLinkWanOutPackets", value: |link| counter(link.wan.tx_packets) },
    Column { number: 13, name: "sluiceLinkWanOutOctets", value: |link| counter(link.wan.tx_bytes) },
    Column { number: 14, name: "sluiceLinkDescription", value: |link| optional(link.description.as_ref()) },
];

fn links(snapshot: &Snapshot) -> Vec<(Vec<u32>, api::Link)> {
    snapshot.links.iter().map(|link| (vec![link_index(LinkIndex(link.index))], link.clone())).collect()
}

static UNIT_COLUMNS: &[Column<api::Unit>] = &[
    Column { number: 2, name: "sluiceUnitName", value: |unit| text(&unit.name) },
    Column { number: 3, name: "sluiceUnitState", value: |unit| word(&unit.state, UNIT_STATES) },
    Column {
        number: 4,
        name: "sluiceUnitMode",
        value: |unit| {
            Some(agentx::Value::Integer(match unit.mode {
                UnitMode::Auto => 1,
                UnitMode::Bypass => 2,
                UnitMode::Primary => 3,
            }))
        },
    },
    Column { number: 5, name: "sluiceUnitReason", value: |unit| text(&unit.reason) },
    Column {
        number: 6,
        name: "sluiceUnitBypassReason",
        value: |unit| {
            Some(agentx::Value::Integer(match (unit.state.as_str(), unit.mode) {
                ("up" | "primary", _) => 1,
                (_, UnitMode::Bypass) => 2,
                _ => 3,
            }))
        },
    },
    Column { number: 7, name: "sluiceUnitPairsUp", value: |unit| gauge(unit.pairs_up as u64) },
    Column { number: 8, name: "sluiceUnitPairsTotal", value: |unit| gauge(unit.pairs_total as u64) },
    Column { number: 9, name: "sluiceUnitActivePairs", value: |unit| gauge(unit.active_pairs as u64) },
    Column { number: 10, name: "sluiceUnitFlaps", value: |unit| counter32(unit.flaps) },
    Column {
        number: 11,
        name: "sluiceUnitLastChange",
        value: |unit| unit.last_change.as_deref().and_then(date),
    },
    Column { number: 12, name: "sluiceUnitFailAction", value: |unit| word(&unit.fail_action, FAIL_ACTIONS) },
    Column { number: 13, name: "sluiceUnitRebalance", value: |unit| truth(unit.rebalance == "on") },
    Column { number: 14, name: "sluiceUnitCores", value: |unit| gauge(unit.cores.into()) },
    Column { number: 15, name: "sluiceUnitBuckets", value: |unit| gauge(unit.buckets.into()) },
    Column { number: 16, name: "sluiceUnitProfile", value: |unit| text(&unit.liveness_profile) },
    Column { number: 17, name: "sluiceUnitConfigHash", value: |unit| text(&unit.config_hash) },
    Column { number: 18, name: "sluiceUnitBackup", value: |unit| optional(unit.backup.as_ref()) },
    Column { number: 19, name: "sluiceUnitServedBy", value: |unit| optional(unit.served_by.as_ref()) },
    Column { number: 20, name: "sluiceUnitShed", value: |unit| gauge(unit.shed.into()) },
];

fn units(snapshot: &Snapshot, sources: &Sources<'_>) -> Vec<(Vec<u32>, api::Unit)> {
    let units = snapshot.balancer.units.iter();
    units
        .filter_map(|unit| {
            let index = unit_index(*sources.view.ids.units.get(&unit.name)?);
            Some((vec![index], api::Unit { pairs: Vec::new(), ..unit.clone() }))
        })
        .collect()
}

struct PairRow {
    unit: String,
    pair: api::Pair,
    admin: Option<Admin>,
    since: u32,
}

static PAIR_COLUMNS: &[Column<PairRow>] = &[
    Column { number: 2, name: "sluicePairUnit", value: |row| text(&row.unit) },
    Column { number: 3, name: "sluicePairName", value: |row| text(&row.pair.name) },
    Column { number: 4, name: "sluicePairState", value: |row| word(&row.pair.state, PAIR_STATES) },
    Column {
        number: 5,
        name: "sluicePairAdmin",
        value: |row| {
            Some(agentx::Value::Integer(match row.admin? {
                Admin::Up => 1,
                Admin::Down => 2,
                Admin::Drain => 3,
            }))
        },
    },
    Column { number: 6, name: "sluicePairRole", value: |row| word(&row.pair.role, ROLES) },
    Column { number: 7, name: "sluicePairReason", value: |row| optional(row.pair.last_reason.as_ref()) },
    Column { number: 8, name: "sluicePairFlaps", value: |row| counter32(row.pair.flaps) },
    Column {
        number: 9,
        name: "sluicePairLastChange",
        value: |row| row.pair.last_change.as_deref().and_then(date),
    },
    Column { number: 10, name: "sluicePairBucketsNow", value: |row| gauge(row.pair.buckets_now as u64) },
    Column { number: 11, name: "sluicePairBucketsHome", value: |row| gauge(row.pair.buckets_home as u64) },
    Column { number: 12, name: "sluicePairWeight", value: |row| gauge(row.pair.weight.into()) },
    Column { number: 13, name: "sluicePairStandsWith", value: |row| optional(row.pair.stands_with.as_ref()) },
    Column { number: 14, name: "sluicePairLanPort", value: |row| text(&row.pair.lan_port) },
    Column { number: 15, name: "sluicePairWanPort", value: |row| text(&row.pair.wan_port) },
    Column { number: 16, name: "sluicePairTxPackets", value: |row| counter(row.pair.tx_packets) },
    Column { number: 17, name: "sluicePairTxOctets", value: |row| counter(row.pair.tx_bytes) },
    Column { number: 18, name: "sluicePairRxPackets", value: |row| counter(row.pair.rx_packets) },
    Column { number: 19, name: "sluicePairRxOctets", value: |row| counter(row.pair.rx_bytes) },
    Column { number: 20, name: "sluicePairDiscontinuityTime", value: |row| stamp(row.since) },
    Column { number: 21, name: "sluicePairCost", value: |row| gauge(row.pair.cost_ns?) },
    Column { number: 22, name: "sluicePairCoresDown", value: |row| gauge(row.pair.cores_down.len() as u64) },
];

/// Index of a pair by its names.
fn index_of(sources: &Sources<'_>, unit: &str, pair: &str) -> Option<[u32; 2]> {
    let ids = &sources.view.ids;
    let name = PairName { unit: unit.to_owned(), pair: pair.to_owned() };
    Some([unit_index(*ids.units.get(unit)?), pair_index(*ids.pairs.get(&name)?)])
}

fn pairs(snapshot: &Snapshot, sources: &Sources<'_>) -> Vec<(Vec<u32>, PairRow)> {
    let mut rows = Vec::new();
    for unit in &snapshot.balancer.units {
        for pair in &unit.pairs {
            let Some(index) = index_of(sources, &unit.name, &pair.name) else { continue };
            let name = PairName { unit: unit.name.clone(), pair: pair.name.clone() };
            let admin = sources.view.site.pair(&name).map(|pair| pair.admin);
            let since = (sources.pair_since)(&unit.name, &pair.name);
            rows.push((index.to_vec(), PairRow { unit: name.unit, pair: pair.clone(), admin, since }));
        }
    }
    rows
}

struct PathRow {
    name: String,
    direction: i32,
    path: DirectionLiveness,
}

static PATH_COLUMNS: &[Column<PathRow>] = &[
    Column { number: 2, name: "sluicePathPair", value: |row| text(&row.name) },
    Column { number: 3, name: "sluicePathWay", value: |row| Some(agentx::Value::Integer(row.direction)) },
    Column { number: 4, name: "sluicePathMin", value: |row| gauge(row.path.min_ns?) },
    Column { number: 5, name: "sluicePathAvg", value: |row| gauge(row.path.avg_ns?) },
    Column { number: 6, name: "sluicePathMax", value: |row| gauge(row.path.max_ns?) },
    Column { number: 7, name: "sluicePathStdDev", value: |row| gauge(row.path.stddev_ns?) },
    Column { number: 8, name: "sluicePathP50", value: |row| gauge(row.path.p50_ns?) },
    Column { number: 9, name: "sluicePathP99", value: |row| gauge(row.path.p99_ns?) },
    Column { number: 10, name: "sluicePathSamples", value: |row| gauge(row.path.samples) },
    Column { number: 11, name: "sluicePathSamplesLost", value: |row| gauge(row.path.samples_failed) },
    Column { number: 12, name: "sluicePathSent", value: |row| counter(row.path.sent) },
    Column { number: 13, name: "sluicePathGood", value: |row| counter(row.path.good) },
    Column { number: 14, name: "sluicePathLost", value: |row| counter(row.path.lost) },
    Column { number: 15, name: "sluicePathLate", value: |row| counter(row.path.late) },
    Column { number: 16, name: "sluicePathDuplicate", value: |row| counter(row.path.duplicate) },
    Column { number: 17, name: "sluicePathStale", value: |row| counter(row.path.stale) },
    Column { number: 18, name: "sluicePathVoided", value: |row| counter(row.path.voided) },
    Column { number: 19, name: "sluicePathWrongTag", value: |row| counter(row.path.wrong_tag) },
    Column { number: 20, name: "sluicePathWrongInstance", value: |row| counter(row.path.wrong_instance) },
    Column { number: 21, name: "sluicePathLooped", value: |row| counter(row.path.looped) },
    Column { number: 22, name: "sluicePathWrongPair", value: |row| counter(row.path.wrong_pair) },
    Column { number: 23, name: "sluicePathConsecutiveGood", value: |row| gauge(row.path.consecutive_good) },
    Column { number: 24, name: "sluicePathConsecutiveLost", value: |row| gauge(row.path.consecutive_lost) },
    Column {
        number: 25,
        name: "sluicePathLastLoss",
        value: |row| row.path.last_loss.as_deref().and_then(date),
    },
];

fn paths(snapshot: &Snapshot, sources: &Sources<'_>) -> Vec<(Vec<u32>, PathRow)> {
    let mut rows = Vec::new();
    for pair in &snapshot.liveness {
        let Some([unit, index]) = index_of(sources, &pair.unit, &pair.pair) else { continue };
        for (direction, path) in [(1, &pair.lan_to_wan), (2, &pair.wan_to_lan)] {
            let name = format!("{}/{}", pair.unit, pair.pair);
            rows.push((vec![unit, index, direction as u32], PathRow { name, direction, path: path.clone() }));
        }
    }
    rows
}

struct PortRow {
    port: api::Port,
    missed: u64,
    lost: u64,
}

static PORT_COLUMNS: &[Column<PortRow>] = &[
    Column { number: 2, name: "sluicePortName", value: |row| text(&row.port.name) },
    Column {
        number: 3,
        name: "sluicePortCarrier",
        value: |row| {
            Some(agentx::Value::Integer(match row.port.carrier {
                Some(true) => 1,
                Some(false) => 2,
                None => 3,
            }))
        },
    },
    Column { number: 4, name: "sluicePortRole", value: |row| optional(row.port.role.as_ref()) },
    Column { number: 5, name: "sluicePortNumber", value: |row| gauge(row.port.number.into()) },
    Column { number: 6, name: "sluicePortLane", value: |row| gauge(row.port.lane.into()) },
    Column { number: 7, name: "sluicePortInterface", value: |row| optional(row.port.interface.as_ref()) },
    Column { number: 8, name: "sluicePortSpeed", value: |row| optional(row.port.speed.as_ref()) },
    Column { number: 9, name: "sluicePortMtu", value: |row| gauge(row.port.mtu.into()) },
    Column { number: 10, name: "sluicePortInPackets", value: |row| counter(row.port.rx.packets) },
    Column { number: 11, name: "sluicePortInOctets", value: |row| counter(row.port.rx.bytes) },
    Column { number: 12, name: "sluicePortOutPackets", value: |row| counter(row.port.tx.packets) },
    Column { number: 13, name: "sluicePortOutOctets", value: |row| counter(row.port.tx.bytes) },
    Column { number: 14, name: "sluicePortMissed", value: |row| counter(row.missed) },
    Column { number: 15, name: "sluicePortLost", value: |row| counter(row.lost) },
    Column {
        number: 16,
        name: "sluicePortDescription",
        value: |row| optional(row.port.description.as_ref()),
    },
];

fn ports(snapshot: &Snapshot) -> Vec<(Vec<u32>, PortRow)> {
    let row = |port: &api::Port| {
        let outside = snapshot.drops.outside.iter().find(|losses| losses.port == port.name);
        let (missed, lost) = outside.map_or((0, 0), |losses| (losses.missed, losses.lost));
        (vec![port.port_id.into()], PortRow { port: port.clone(), missed, lost })
    };
    snapshot.ports.iter().map(row).collect()
}

struct VerdictRow {
    reason: Reason,
    count: Count,
}

static VERDICT_COLUMNS: &[Column<VerdictRow>] = &[
    Column {
        number: 2,
        name: "sluiceVerdictVerdict",
        value: |row| word(row.reason.verdict().as_str(), VERDICTS),
    },
    Column {
        number: 3,
        name: "sluiceVerdictReason",
        value: |row| text(row.reason.as_str().unwrap_or_default()),
    },
    Column { number: 4, name: "sluiceVerdictPackets", value: |row| counter(row.count.packets) },
    Column { number: 5, name: "sluiceVerdictOctets", value: |row| counter(row.count.bytes) },
];

/// All of them, also those that were never given.
fn verdicts(snapshot: &Snapshot) -> Vec<(Vec<u32>, VerdictRow)> {
    let row = |reason: &Reason| {
        let counted = snapshot.drops.verdicts.iter().find(|counted| {
            counted.verdict == reason.verdict().as_str() && counted.reason.as_deref() == reason.as_str()
        });
        let count = counted
            .map(|counted| Count { packets: counted.packets, bytes: counted.bytes })
            .unwrap_or_default();
        (vec![reason.slot() as u32 + 1], VerdictRow { reason: *reason, count })
    };
    Reason::ALL.iter().map(row).collect()
}

/// A flow by its place in the reading: a hundred thousand need no copies.
pub(super) struct FlowRow {
    flows: Arc<FlowSnapshot>,
    at: usize,
    since: u32,
}

impl FlowRow {
    fn flow(&self) -> &api::Flow {
        // Made of the places that the reading has.
        &self.flows.flows[self.at]
    }
}

static FLOW_COLUMNS: &[Column<FlowRow>] = &[
    Column { number: 2, name: "sluiceFlowName", value: |row| text(&row.flow().name) },
    Column { number: 3, name: "sluiceFlowPriority", value: |row| gauge(row.flow().priority.into()) },
    Column { number: 4, name: "sluiceFlowAction", value: |row| word(&row.flow().action, ACTIONS) },
    Column { number: 5, name: "sluiceFlowUnit", value: |row| optional(row.flow().unit.as_ref()) },
    Column { number: 6, name: "sluiceFlowCopy", value: |row| truth(row.flow().copy) },
    Column { number: 7, name: "sluiceFlowPackets", value: |row| counter(row.flow().packets) },
    Column { number: 8, name: "sluiceFlowOctets", value: |row| counter(row.flow().bytes) },
    Column { number: 9, name: "sluiceFlowDiscontinuityTime", value: |row| stamp(row.since) },
];

/// The table of flows, indexed by their names.
pub(super) fn flows(flows: &Arc<FlowSnapshot>, since: &dyn Fn(&str) -> u32) -> Arc<dyn View> {
    let rows = flows.flows.iter().enumerate().map(|(at, flow)| {
        let index: Vec<u32> = flow.name.bytes().map(u32::from).collect();
        (index, FlowRow { flows: flows.clone(), at, since: since(&flow.name) })
    });
    Arc::new(Table::new(objects([FLOW, 1]), FLOW_COLUMNS, rows.collect()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MIB: &str = include_str!("../../../../configs/mib/SLUICE-MIB.txt");

    /// Where a name is in the MIB: its parent and its number.
    fn place(name: &str) -> (String, u32) {
        // Not where a row lists its columns.
        let mut lines = MIB.lines().skip_while(|line| {
            let mut words = line.split_whitespace();
            words.next() != Some(name)
                || !["OBJECT-TYPE", "OBJECT", "MODULE-IDENTITY", "NOTIFICATION-TYPE"]
                    .contains(&words.next().unwrap_or_default())
        });
        let at = lines.find_map(|line| line.split_once("::= {")).unwrap_or_else(|| panic!("no {name}")).1;
        let words: Vec<&str> = at.trim_end_matches('}').split_whitespace().collect();
        (words[0].to_owned(), words[1].parse().unwrap())
    }

    /// The numbers from `enterprises` down to a name.
    fn path(name: &str) -> Vec<u32> {
        if name == "enterprises" {
            return vec![1, 3, 6, 1, 4, 1];
        }
        let (parent, number) = place(name);
        [path(&parent), vec![number]].concat()
    }

    fn check<R>(base: &[u32], columns: &[Column<R>], seen: &mut BTreeSet<String>) {
        for column in columns {
            let of_code = objects(base.iter().copied().chain([column.number]));
            assert_eq!(of_code.parts(), path(column.name), "{}", column.name);
            assert!(seen.insert(column.name.to_owned()), "{}", column.name);
        }
    }

    #[test]
    fn objects_are_where_the_mib_has_them_and_none_is_missing() {
        let mut seen = BTreeSet::new();
        check(&[SYSTEM], SYSTEM_COLUMNS, &mut seen);
        check(&[LINK, 1], LINK_COLUMNS, &mut seen);
        check(&[UNIT, 1], UNIT_COLUMNS, &mut seen);
        check(&[PAIR, 1], PAIR_COLUMNS, &mut seen);
        check(&[PATH, 1], PATH_COLUMNS, &mut seen);
        check(&[PORT, 1], PORT_COLUMNS, &mut seen);
        check(&[VERDICT, 1], VERDICT_COLUMNS, &mut seen);
        check(&[FLOW, 1], FLOW_COLUMNS, &mut seen);
        let mut name = "";
        for line in MIB.lines() {
            if let Some(object) = line.strip_suffix(" OBJECT-TYPE") {
                name = object;
            } else if line.trim() == "MAX-ACCESS  read-only" {
                assert!(seen.remove(name), "{name} is not implemented");
            }
        }
        assert!(seen.is_empty(), "not readable by the MIB: {seen:?}");
    }

    #[test]
    fn words_of_states_are_all_known() {
        use liveness::{PairState, UnitState};
        let pairs = [
            PairState::Init,
            PairState::Up,
            PairState::Down,
            PairState::AdminDown,
            PairState::Draining,
            PairState::Held,
        ];
        for state in pairs {
            let name = crate::engine::pair_state_name(state);
            assert!(word(name, PAIR_STATES).is_some(), "{name}");
        }
        for state in [UnitState::Up, UnitState::Bypass, UnitState::Primary] {
            let name = crate::engine::unit_state_name(state);
            assert!(word(name, UNIT_STATES).is_some(), "{name}");
        }
    }
}
