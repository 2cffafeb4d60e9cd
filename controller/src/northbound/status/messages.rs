//! Answers as the protocol has them.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use api::{DirectionLiveness, EventKind, LookupQuery};
use prost_types::Timestamp;
use status::v1;

use crate::telemetry::Snapshot;

/// Of a time as answers have it, RFC 3339.
fn timestamp(text: &str) -> Option<Timestamp> {
    humantime::parse_rfc3339(text).ok().map(Timestamp::from)
}

fn nanoseconds(ns: u64) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        nanos: (ns % 1_000_000_000) as i32,
    }
}

fn pair_state(name: &str) -> v1::PairState {
    match name {
        "init" => v1::PairState::Init,
        "up" => v1::PairState::Up,
        "down" => v1::PairState::Down,
        "admin-down" => v1::PairState::AdminDown,
        "draining" => v1::PairState::Draining,
        "held" => v1::PairState::Held,
        _ => v1::PairState::Unspecified,
    }
}

fn unit_state(name: &str) -> v1::UnitState {
    match name {
        "up" => v1::UnitState::Up,
        "bypass" => v1::UnitState::Bypass,
        "primary" => v1::UnitState::Primary,
        _ => v1::UnitState::Unspecified,
    }
}

fn mode(name: &str) -> v1::UnitMode {
    match name {
        "auto" => v1::UnitMode::Auto,
        "bypass" => v1::UnitMode::Bypass,
        "primary" => v1::UnitMode::Primary,
        _ => v1::UnitMode::Unspecified,
    }
}

fn severity(severity: api::Severity) -> v1::Severity {
    match severity {
        api::Severity::Info => v1::Severity::Info,
        api::Severity::Warning => v1::Severity::Warning,
        api::Severity::Error => v1::Severity::Error,
    }
}

pub(super) fn version(version: &api::Version) -> v1::GetVersionResponse {
    v1::GetVersionResponse {
        version: version.version.clone(),
        start_time: timestamp(&version.started),
        uptime: Some(prost_types::Duration {
            seconds: i64::try_from(version.uptime).unwrap_or(i64::MAX),
            nanos: 0,
        }),
        target: version.target.clone(),
        config_hash: version.config_hash.clone(),
    }
}

pub(super) fn data_plane(snapshot: &Snapshot) -> v1::DataPlane {
    let ago = snapshot.counted.map(|counted| Duration::from_nanos(snapshot.at.since(counted).0));
    v1::DataPlane {
        state: snapshot.balancer.data_plane.clone(),
        reason: snapshot.balancer.data_plane_reason.clone().unwrap_or_default(),
        liveness_suspended: snapshot.balancer.liveness_suspended,
        counters_time: ago.map(|ago| snapshot.time.checked_sub(ago).unwrap_or(UNIX_EPOCH).into()),
    }
}

/// Units whose names begin so.
pub(super) fn units(snapshot: &Snapshot, prefix: &str) -> Vec<v1::Unit> {
    let units = snapshot.balancer.units.iter().filter(|unit| unit.name.starts_with(prefix));
    units
        .map(|unit| v1::Unit {
            name: unit.name.clone(),
            state: unit_state(&unit.state).into(),
            mode: match unit.mode {
                api::UnitMode::Auto => v1::UnitMode::Auto,
                api::UnitMode::Bypass => v1::UnitMode::Bypass,
                api::UnitMode::Primary => v1::UnitMode::Primary,
            }
            .into(),
            reason: unit.reason.clone(),
            pairs_total: number(unit.pairs_total),
            pairs_up: number(unit.pairs_up),
            active_pairs: number(unit.active_pairs),
            buckets: unit.buckets,
            cores: unit.cores.into(),
            liveness_profile: unit.liveness_profile.clone(),
            config_hash: unit.config_hash.clone(),
        })
        .collect()
}

/// Pairs whose names, with those of their units, begin so.
pub(super) fn pairs(snapshot: &Snapshot, prefix: &str) -> Vec<v1::Pair> {
    let mut pairs = Vec::new();
    let measured: HashMap<(&str, &str), &api::PairLiveness> =
        snapshot.liveness.iter().map(|pair| ((pair.unit.as_str(), pair.pair.as_str()), pair)).collect();
    for unit in &snapshot.balancer.units {
        for pair in &unit.pairs {
            if !format!("{}/{}", unit.name, pair.name).starts_with(prefix) {
                continue;
            }
            let measured = measured.get(&(unit.name.as_str(), pair.name.as_str()));
            pairs.push(v1::Pair {
                unit: unit.name.clone(),
                pair: pair.name.clone(),
                state: pair_state(&pair.state).into(),
                last_reason: pair.last_reason.clone().unwrap_or_default(),
                last_change: pair.last_change.as_deref().and_then(timestamp),
                flaps: pair.flaps,
                role: pair.role.clone(),
                weight: pair.weight.into(),
                lan_port: pair.lan_port.clone(),
                wan_port: pair.wan_port.clone(),
                buckets_home: number(pair.buckets_home),
                buckets_now: number(pair.buckets_now),
                sent: Some(v1::Count { packets: pair.tx_packets, bytes: pair.tx_bytes }),
                returned: Some(v1::Count { packets: pair.rx_packets, bytes: pair.rx_bytes }),
                liveness_profile: unit.liveness_profile.clone(),
                lan_to_wan: measured.map(|measured| path(&measured.lan_to_wan)),
                wan_to_lan: measured.map(|measured| path(&measured.wan_to_lan)),
            });
        }
    }
    pairs
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn path(path: &DirectionLiveness) -> v1::Path {
    let time = |ns: Option<u64>| ns.map(nanoseconds);
    v1::Path {
        keep_alives: Some(v1::KeepAlives {
            sent: path.sent,
            good: path.good,
            lost: path.lost,
            late: path.late,
            duplicate: path.duplicate,
            stale: path.stale,
            voided: path.voided,
            wrong_tag: path.wrong_tag,
            wrong_instance: path.wrong_instance,
            looped: path.looped,
            wrong_pair: path.wrong_pair,
        }),
        time_on_path: path.avg_ns.map(|_| v1::TimeOnPath {
            samples: path.samples,
            failed: path.samples_failed,
            minimum: time(path.min_ns),
            average: time(path.avg_ns),
            maximum: time(path.max_ns),
            deviation: time(path.stddev_ns),
            median: time(path.p50_ns),
            p99: time(path.p99_ns),
        }),
        consecutive_good: path.consecutive_good,
        consecutive_lost: path.consecutive_lost,
        last_loss: path.last_loss.as_deref().and_then(timestamp),
    }
}

/// An event as a transition of something whose name begins so; `None` for other events.
pub(super) fn transition(event: &api::Event, prefix: &str) -> Option<v1::Transition> {
    if !event.subject.starts_with(prefix) {
        return None;
    }
    let (before, after) = (event.before.as_deref()?, event.after.as_deref()?);
    let change = match event.kind {
        EventKind::Pair => {
            let (unit, pair) = event.subject.split_once('/')?;
            v1::transition::Change::Pair(v1::PairChange {
                unit: unit.to_owned(),
                pair: pair.to_owned(),
                before: pair_state(before).into(),
                after: pair_state(after).into(),
            })
        }
        EventKind::Unit => v1::transition::Change::Unit(v1::UnitChange {
            unit: event.subject.clone(),
            before: unit_state(before).into(),
            after: unit_state(after).into(),
        }),
        EventKind::Mode => v1::transition::Change::Mode(v1::ModeChange {
            unit: event.subject.clone(),
            before: mode(before).into(),
            after: mode(after).into(),
        }),
        _ => return None,
    };
    Some(v1::Transition {
        event_id: event.id,
        time: timestamp(&event.time),
        change: Some(change),
        reason: event.reason.clone(),
        detail: event.detail.clone().unwrap_or_default(),
        data_plane_delay: event.data_plane_ns.map(nanoseconds),
        severity: severity(event.severity).into(),
    })
}

/// What is asked, or which field of it is no such thing.
pub(super) fn query(request: &v1::LookupRequest) -> Result<LookupQuery, String> {
    fn narrow<N: TryFrom<u32>>(field: &str, value: u32, most: u32) -> Result<N, String> {
        N::try_from(value).map_err(|_| format!("{field} {value} must be 0..{most}"))
    }
    let given = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
    let port = |field, port: Option<u32>| port.map(|port| narrow(field, port, 65_535)).transpose();
    Ok(LookupQuery {
        src: request.source.clone(),
        dst: request.destination.clone(),
        proto: request.protocol.map(|protocol| narrow("protocol", protocol, 255)).transpose()?,
        src_port: port("source_port", request.source_port)?,
        dst_port: port("destination_port", request.destination_port)?,
        vlan: request.vlans.iter().map(|vlan| narrow("vlans", *vlan, 4095)).collect::<Result<_, _>>()?,
        link: given(&request.link),
        side: given(&request.side),
    })
}

pub(super) fn lookup(lookup: api::Lookup) -> v1::LookupResponse {
    v1::LookupResponse {
        flow: lookup.flow.unwrap_or_default(),
        verdict: lookup.verdict,
        reason: lookup.reason.unwrap_or_default(),
        unit: lookup.unit.unwrap_or_default(),
        hash: lookup.hash.unwrap_or_default(),
        bucket: lookup.bucket.map(u32::from),
        pair: lookup.pair.unwrap_or_default(),
        core: lookup.core.map(u32::from),
        out_port: lookup.out_port.unwrap_or_default(),
    }
}

/// A period of a request; `None` where none is asked for.
pub(super) fn period(asked: Option<&prost_types::Duration>) -> Result<Option<Duration>, String> {
    let Some(asked) = asked else { return Ok(None) };
    match Duration::try_from(*asked) {
        Ok(period) if period >= Duration::from_secs(1) => Ok(Some(period)),
        _ => Err(format!("refresh {}.{:09} s must be at least 1 s", asked.seconds, asked.nanos)),
    }
}

#[cfg(test)]
mod tests {
    use liveness::{PairState, UnitState};

    use super::*;
    use crate::engine::{pair_state_name, unit_state_name};

    #[test]
    fn every_state_has_a_value_of_its_own() {
        use PairState::{AdminDown, Down, Draining, Held, Init, Up};
        let pairs =
            [Init, Up, Down, AdminDown, Draining, Held].map(|state| pair_state(pair_state_name(state)));
        let wanted = {
            use v1::PairState::{AdminDown, Down, Draining, Held, Init, Up};
            [Init, Up, Down, AdminDown, Draining, Held]
        };
        assert_eq!(pairs, wanted);
        let units = [UnitState::Up, UnitState::Bypass, UnitState::Primary];
        let units = units.map(|state| unit_state(unit_state_name(state)));
        assert_eq!(units, [v1::UnitState::Up, v1::UnitState::Bypass, v1::UnitState::Primary]);
    }

    #[test]
    fn a_query_out_of_range_is_named() {
        let request = |change: fn(&mut v1::LookupRequest)| {
            let mut request = v1::LookupRequest::default();
            change(&mut request);
            query(&request).unwrap_err()
        };
        assert_eq!(request(|request| request.protocol = Some(256)), "protocol 256 must be 0..255");
        assert!(request(|request| request.source_port = Some(70_000)).starts_with("source_port 70000"));
        assert!(request(|request| request.destination_port = Some(65_536)).starts_with("destination_port"));
        assert!(request(|request| request.vlans = vec![1, 70_000]).starts_with("vlans 70000"));
    }

    #[test]
    fn a_period_is_a_second_at_least() {
        let of = |seconds, nanos| period(Some(&prost_types::Duration { seconds, nanos }));
        assert_eq!(period(None), Ok(None));
        assert_eq!(of(1, 500_000_000), Ok(Some(Duration::from_millis(1500))));
        assert!(of(0, 999_999_999).is_err() && of(-5, 0).is_err());
    }
}
