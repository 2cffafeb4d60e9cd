//! Pairs and units as they were measured.

use std::collections::BTreeMap;

use api::{
    CoreLiveness, DirectionLiveness, HistogramStep, Hold, NegativeDirection, NegativeLiveness, PairLiveness,
    ProbeLiveness, Unit, UnitMode,
};
use dataplane::schema::counters as cells;
use dataplane::{PairId, Reason, Side};
use liveness::{
    CoreState, CoreStatus, Direction, HoldStatus, Nanos, NegativeStatus, PairStatus, PathStatus,
    PerDirection, Suspicion, UnitStatus,
};
use site::{PairName, PairRole, UnitForwarding};

use super::{Cells, shown};
use crate::clock;
use crate::engine::{pair_state_name, unit_id, unit_state_name};
use crate::keepalives::Status;
use crate::view::View;

/// Buckets that each pair serves, by the tables as they are.
pub(super) fn buckets_served(view: &View) -> BTreeMap<PairId, usize> {
    let mut served = BTreeMap::new();
    for entry in view.tables.rest.values() {
        if let Ok(dataplane::tables::TableEntry::Bucket(bucket)) = dataplane::tables::TableEntry::parse(entry)
            && let Some((pair, _)) = bucket.forwarding.serving()
        {
            *served.entry(pair).or_default() += 1;
        }
    }
    served
}

pub(crate) fn unit_of(
    view: &View,
    unit: &site::Unit,
    digest: &str,
    status: &Status,
    read: &Cells,
    served: &BTreeMap<PairId, usize>,
) -> Unit {
    let id = view.ids.units.get(&unit.name).copied();
    let state: Option<&UnitStatus> = status.units.iter().find(|other| Some(unit_id(other.unit)) == id);
    let shares = unit.bucket_table();
    let shares = shares.as_ref().map(dataplane::BucketTable::shares).unwrap_or_default();
    let stand_ins = view.condition.stand_ins_of(&unit.name);
    let buckets = unit.shape().bucket_count();
    let mut pairs_up = 0;
    let pairs: Vec<api::Pair> = unit
        .pairs
        .values()
        .map(|pair| {
            let name = PairName { unit: unit.name.clone(), pair: pair.name.clone() };
            let id = view.ids.pairs.get(&name).copied().unwrap_or_default();
            let state: Option<&PairStatus> = status.pairs.iter().find(|other| other.pair.0 == id.0);
            pairs_up += usize::from(state.is_some_and(|state| state.state.carries()));
            let buckets_now = served.get(&id).copied().unwrap_or_default();
            let out = |side| read.get(&cells::PAIR_OUT, cells::pair_out(id, side));
            let (up, down) = (out(Side::Lan), out(Side::Wan));
            let rx = read.get(&cells::PAIR_VERDICTS, cells::pair_verdict(id, Reason::Returned));
            let average = |direction: Direction| {
                state.and_then(|state| state.paths[direction].statistics.delay).map(|delay| delay.average.0)
            };
            api::Pair {
                name: pair.name.clone(),
                state: state.map_or("init", |state| pair_state_name(state.state)).to_owned(),
                admin: match pair.admin {
                    site::Admin::Up => "up".to_owned(),
                    site::Admin::Down => "down".to_owned(),
                    site::Admin::Drain => "drain".to_owned(),
                },
                role: match pair.role {
                    PairRole::Active => "active".to_owned(),
                    PairRole::Spare => "spare".to_owned(),
                },
                weight: pair.weight,
                weight_auto: pair.weight_auto,
                hold: state.and_then(|state| state.hold).map(hold_of),
                cores_down: state.map(cores_down).unwrap_or_default(),
                cost_ns: state.and_then(|state| state.cost).map(|cost| cost.0),
                lan_port: pair.lan_port.clone(),
                wan_port: pair.wan_port.clone(),
                buckets_home: shares.get(pair.name.as_str()).copied().unwrap_or_default(),
                buckets_now,
                share_percent: buckets_now as f64 * 100.0 / f64::from(buckets.max(1)),
                stands_with: stand_ins.get(&pair.name).cloned().or_else(|| {
                    stand_ins.iter().find(|(_, spare)| **spare == pair.name).map(|(down, _)| down.clone())
                }),
                last_reason: state.map(|state| reason_name(state.last_reason)),
                last_change: state.map(|state| clock::calendar(state.last_change)),
                flaps: state.map_or(0, |state| state.flaps),
                tx_packets: up.packets + down.packets,
                tx_bytes: up.bytes + down.bytes,
                up: Some(up),
                down: Some(down),
                rx_packets: rx.packets,
                rx_bytes: rx.bytes,
                lan_to_wan_ns: average(Direction::LanToWan),
                wan_to_lan_ns: average(Direction::WanToLan),
            }
        })
        .collect();
    let mode = view.modes.get(&unit.name).copied().unwrap_or(UnitMode::Auto);
    let served_by = match view.condition.units.get(&unit.name) {
        Some(UnitForwarding::Backup(backup)) => Some(backup),
        _ => None,
    };
    Unit {
        name: unit.name.clone(),
        state: match (served_by, state) {
            (Some(_), _) => "backup".to_owned(),
            (None, state) => state.map_or("bypass", |state| unit_state_name(state.state)).to_owned(),
        },
        last_change: state.map(|state| clock::calendar(state.last_change)),
        flaps: state.map_or(0, |state| state.flaps),
        backup: unit.backup.clone(),
        served_by: served_by.cloned(),
        shed: unit.shed,
        mode,
        reason: match (mode, state) {
            (UnitMode::Auto, Some(state)) => {
                format!("{} pairs in service, active-pairs {}", state.in_service, state.needed)
            }
            (UnitMode::Auto, None) => "no measurement yet".to_owned(),
            _ => "by hand".to_owned(),
        },
        cores: unit.cores,
        buckets,
        rebalance: if unit.rebalance { "on" } else { "off" }.to_owned(),
        fail_action: match unit.fail_action {
            site::FailAction::Bypass => "bypass".to_owned(),
            site::FailAction::Drop => "drop".to_owned(),
        },
        liveness_profile: unit.profile.clone(),
        pairs_up,
        pairs_total: pairs.len(),
        active_pairs: view.site.profile_of(unit).active_pairs as usize,
        config_hash: shown(digest),
        pairs,
    }
}

fn reason_name(reason: liveness::Reason) -> String {
    match reason {
        liveness::Reason::Added => "added".to_owned(),
        liveness::Reason::Adopted => "adopted".to_owned(),
        liveness::Reason::Good { count } => format!("{count} good"),
        liveness::Reason::Losses { direction, count } => format!("{count} lost {direction}"),
        liveness::Reason::CarrierLost { side } => format!("carrier lost on {side} port"),
        liveness::Reason::Admin(admin) => format!("admin {}", format!("{admin:?}").to_lowercase()),
        liveness::Reason::Suspended => "liveness suspended".to_owned(),
        liveness::Reason::IpLosses { direction, count } => format!("{count} ip probes lost {direction}"),
        liveness::Reason::NegativeReturned { direction, count } => {
            format!("{count} negative probes came back {direction}")
        }
        liveness::Reason::AllCoresDown { cores } => format!("all {cores} cores down"),
        liveness::Reason::HoldCleared => "hold cleared".to_owned(),
    }
}

pub(crate) fn liveness_of(view: &View, status: &Status, profile: Option<&str>) -> Vec<PairLiveness> {
    let mut shown = Vec::new();
    for unit in view.site.units.values() {
        if profile.is_some_and(|profile| profile != unit.profile) {
            continue;
        }
        for pair in unit.pairs.keys() {
            let name = PairName { unit: unit.name.clone(), pair: pair.clone() };
            let id = view.ids.pairs.get(&name).map(|id| id.0);
            let state = status.pairs.iter().find(|other| Some(other.pair.0) == id);
            let path = |direction: Direction| {
                state.map_or_else(DirectionLiveness::default, |state| path_of(&state.paths[direction]))
            };
            shown.push(PairLiveness {
                profile: unit.profile.clone(),
                unit: unit.name.clone(),
                pair: pair.clone(),
                state: state.map_or("init", |state| pair_state_name(state.state)).to_owned(),
                flaps: state.map_or(0, |state| state.flaps),
                last_reason: state.map(|state| reason_name(state.last_reason)),
                last_change: state.map(|state| clock::calendar(state.last_change)),
                hold: state.and_then(|state| state.hold).map(hold_of),
                cost_ns: state.and_then(|state| state.cost).map(|cost| cost.0),
                lan_to_wan: path(Direction::LanToWan),
                wan_to_lan: path(Direction::WanToLan),
                cores: state.map(|state| state.cores.iter().map(core_of).collect()).unwrap_or_default(),
                ip_probe: state.and_then(|state| state.ip.as_ref()).map(|paths| ProbeLiveness {
                    lan_to_wan: path_of(&paths.lan_to_wan),
                    wan_to_lan: path_of(&paths.wan_to_lan),
                }),
                negative_probe: state.and_then(|state| state.negative.as_ref()).map(negative_of),
            });
        }
    }
    shown
}

fn path_of(path: &PathStatus) -> DirectionLiveness {
    let counters = &path.tally.counters;
    let delay = path.statistics.delay;
    let ns = |pick: fn(&liveness::Delay) -> Nanos| delay.as_ref().map(|delay| pick(delay).0);
    DirectionLiveness {
        sent: counters.sent,
        good: counters.good,
        lost: counters.lost,
        late: counters.late,
        duplicate: counters.duplicate,
        stale: counters.stale,
        voided: counters.voided,
        wrong_tag: counters.wrong_tag,
        wrong_instance: counters.wrong_instance,
        looped: counters.looped,
        wrong_pair: counters.wrong_pair,
        consecutive_good: path.tally.consecutive_good.into(),
        consecutive_lost: path.tally.consecutive_lost.into(),
        samples: path.statistics.all.into(),
        samples_failed: path.statistics.fail.into(),
        min_ns: ns(|delay| delay.min),
        avg_ns: ns(|delay| delay.average),
        max_ns: ns(|delay| delay.max),
        stddev_ns: ns(|delay| delay.deviation),
        p50_ns: ns(|delay| delay.p50),
        p99_ns: ns(|delay| delay.p99),
        last_loss: path.last_loss.map(clock::calendar),
        histogram: path
            .histogram
            .cumulative()
            .map(|(bound, count)| HistogramStep { le_ns: bound.0, count })
            .collect(),
        sum_ns: path.histogram.sum.0,
    }
}

fn hold_of(hold: HoldStatus) -> Hold {
    Hold { until: clock::calendar(hold.until), down: hold.down, trial: hold.trial }
}

fn cores_down(pair: &PairStatus) -> Vec<u8> {
    pair.cores.iter().filter(|core| core.state == CoreState::Down).map(|core| core.core).collect()
}

fn core_of(core: &CoreStatus) -> CoreLiveness {
    let sum = |pick: fn(&liveness::Counters) -> u64| {
        pick(&core.tallies.lan_to_wan.counters) + pick(&core.tallies.wan_to_lan.counters)
    };
    CoreLiveness {
        core: core.core,
        state: match core.state {
            CoreState::Init => "init".to_owned(),
            CoreState::Up => "up".to_owned(),
            CoreState::Down => "down".to_owned(),
        },
        flaps: core.flaps,
        last_reason: reason_name(core.last_reason),
        last_change: clock::calendar(core.last_change),
        sent: sum(|counters| counters.sent),
        good: sum(|counters| counters.good),
        lost: sum(|counters| counters.lost),
    }
}

fn negative_of(paths: &PerDirection<NegativeStatus>) -> NegativeLiveness {
    let direction = |path: &NegativeStatus| NegativeDirection {
        sent: path.sent,
        silent: path.silent,
        returned: path.returned,
        late: path.late,
        consecutive_returned: path.consecutive_returned.into(),
        last_return: path.last_return.map(clock::calendar),
    };
    NegativeLiveness { lan_to_wan: direction(&paths.lan_to_wan), wan_to_lan: direction(&paths.wan_to_lan) }
}

/// Paths of our own, by name.
pub(crate) fn references_of(view: &View, status: &Status) -> Vec<api::Reference> {
    status
        .references
        .iter()
        .filter_map(|reference| {
            let name = view.pair_name(PairId(reference.reference.0))?;
            Some(api::Reference {
                name: name.pair.clone(),
                state: match reference.suspicion {
                    Suspicion::None => "good".to_owned(),
                    Suspicion::Suspended { .. } => "failing".to_owned(),
                    Suspicion::Believed { .. } => "believed".to_owned(),
                },
                lan_to_wan: path_of(&reference.paths.lan_to_wan),
                wan_to_lan: path_of(&reference.paths.wan_to_lan),
            })
        })
        .collect()
}
