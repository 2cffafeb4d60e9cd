//! Fixed answers.

use api::{
    Applied, Balancer, ConfigHash, Count, DirectionLiveness, Drops, Event, EventKind, Flow, Link, Lookup,
    NamedVerdicts, Pair, PairLiveness, Port, Severity, SideCounts, TableUsage, Target, Unit, UnitHash,
    UnitMode, VerdictCount, Version,
};
use std::time::{Duration, SystemTime};

use api::NewEvents;
use cli::screen::Reading;
use serde_json::{Value, json};

pub const HASH: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

pub fn version() -> Version {
    Version {
        version: "0.1.0".into(),
        started: "2026-11-30T00:35:55Z".into(),
        uptime: 273_906,
        target: "grpc://10.0.0.1:9559".into(),
        config_hash: HASH[..16].into(),
    }
}

/// Two ports for each of so many pairs, as a full device has them.
pub fn ports(pairs: usize) -> Vec<Port> {
    let port = |id: usize, pair: usize, side: &str| Port {
        name: format!("p{}-{}", id / 4 + 1, id % 4),
        port_id: id as u16,
        number: (id / 4 + 1) as u8,
        lane: (id % 4) as u8,
        interface: (id < 2).then(|| format!("eth{id}")),
        speed: Some("100g".into()),
        mtu: 9000,
        description: None,
        role: (id != 1).then(|| format!("pair f{pair} {side}")),
        carrier: [Some(true), Some(false), None][id.min(2)],
        flaps: 0,
        last_change: None,
        rx: Count { packets: 1_234_567_890_123, bytes: 987_654_321_098_765 },
        tx: Count { packets: id as u64, bytes: 64 * id as u64 },
    };
    (0..pairs).flat_map(|pair| [port(2 * pair, pair, "lan"), port(2 * pair + 1, pair, "wan")]).collect()
}

pub fn verdict(verdict: &str, reason: Option<&str>, packets: u64) -> VerdictCount {
    VerdictCount { verdict: verdict.into(), reason: reason.map(Into::into), packets, bytes: packets * 100 }
}

pub fn links() -> Vec<Link> {
    let side = |packets: u64| SideCounts {
        rx_packets: packets,
        rx_bytes: packets * 1500,
        tx_packets: packets / 2,
        tx_bytes: packets * 750,
    };
    vec![
        Link {
            name: "link1".into(),
            index: 0,
            description: Some("10G to the edge router".into()),
            lan_port: "p4-2".into(),
            wan_port: "p4-1".into(),
            lan: side(2_000_000),
            wan: side(40_000),
            verdicts: vec![
                verdict("to-ecofilter", None, 2_000_000),
                verdict("bypass", Some("no-pair-up"), 39_990),
                verdict("drop", Some("malformed"), 10),
            ],
        },
        Link {
            name: "link2".into(),
            index: 1,
            description: None,
            lan_port: "p10".into(),
            wan_port: "p9".into(),
            lan: side(0),
            wan: side(0),
            verdicts: vec![],
        },
    ]
}

/// The last pair is down, the others share its unit.
pub fn pairs(count: usize) -> Vec<Pair> {
    (0..count)
        .map(|index| {
            let down = index + 1 == count;
            Pair {
                name: format!("f{}-{}", index / 8 + 1, index % 8 + 1),
                state: if down { "down".into() } else { "up".into() },
                role: "active".into(),
                admin: "up".into(),
                weight_auto: false,
                hold: None,
                cores_down: Vec::new(),
                cost_ns: None,
                weight: 1,
                lan_port: format!("p{}-0", index + 1),
                wan_port: format!("p{}-1", index + 1),
                buckets_home: 8192 / count,
                buckets_now: if down { 0 } else { 8192 / count },
                share_percent: if down { 0.0 } else { 100.0 / count as f64 },
                stands_with: None,
                last_reason: Some(if down {
                    "5 keep-alives lost in a row".into()
                } else {
                    "5 keep-alives good".into()
                }),
                last_change: Some("2026-11-30T00:36:01.123456Z".into()),
                flaps: u64::from(down),
                tx_packets: 1_234_567_890,
                tx_bytes: 1_234_567_890_000,
                rx_packets: 1_234_000_000,
                rx_bytes: 1_234_000_000_000,
                up: Some(Count { packets: 1_000_000_000, bytes: 1_000_000_000_000 }),
                down: Some(Count { packets: 234_567_890, bytes: 234_567_890_000 }),
                lan_to_wan_ns: (!down).then_some(123_456),
                wan_to_lan_ns: (!down).then_some(98_765),
            }
        })
        .collect()
}

pub fn unit(name: &str, count: usize) -> Unit {
    Unit {
        name: name.into(),
        state: "up".into(),
        mode: UnitMode::Auto,
        last_change: None,
        flaps: 0,
        backup: None,
        served_by: None,
        shed: 0,
        reason: "enough pairs are up".into(),
        cores: 17,
        buckets: 8192,
        rebalance: "off".into(),
        fail_action: "bypass".into(),
        liveness_profile: "default".into(),
        pairs_up: count - 1,
        pairs_total: count,
        active_pairs: 1,
        config_hash: HASH[..16].into(),
        pairs: pairs(count),
    }
}

pub fn balancer(count: usize) -> Balancer {
    Balancer {
        balancing_method: "layer-3".into(),
        steering_mode: "native".into(),
        config_hash: HASH[..16].into(),
        data_plane: "primary".into(),
        data_plane_reason: None,
        references: Vec::new(),
        liveness_suspended: false,
        units: vec![unit("main", count)],
    }
}

/// A unit in bypass by hand, a spare that stands in, liveness suspended.
pub fn troubled() -> Balancer {
    let mut balancer = balancer(3);
    balancer.liveness_suspended = true;
    let unit = &mut balancer.units[0];
    unit.mode = UnitMode::Bypass;
    unit.state = "bypass".into();
    unit.reason = "by hand".into();
    unit.pairs[0].role = "spare".into();
    unit.pairs[0].stands_with = Some("f1-3".into());
    unit.pairs[1].state = "admin-down".into();
    unit.pairs[1].last_reason = None;
    unit.pairs[2].stands_with = Some("f1-1".into());
    balancer
}

pub fn flows() -> Vec<Flow> {
    let flow = |name: &str, priority, action: &str, unit: Option<&str>, matches: Value| Flow {
        name: name.into(),
        priority,
        action: action.into(),
        unit: unit.map(Into::into),
        copy: false,
        links: vec![],
        matches,
        packets: 1_234_567,
        bytes: 1_234_567_000,
        packets_per_second: 1234.5,
        bits_per_second: 9_876_543.2,
    };
    vec![
        Flow {
            links: vec!["link1".into(), "link2".into()],
            ..flow("bgp", 200, "bypass", None, json!({"ip-proto": 6, "dst-port": "179"}))
        },
        Flow {
            copy: true,
            ..flow("mirror.tap", 100, "to-ecofilter", Some("main"), json!({"vlan0-tag": 4000}))
        },
        flow("rest", 1, "to-ecofilter", Some("main"), json!({})),
    ]
}

pub fn config_hash() -> ConfigHash {
    let unit = UnitHash { name: "main".into(), config_hash: HASH.repeat(2), buckets: 8192 };
    ConfigHash { device: HASH.chars().rev().collect::<String>().repeat(2), units: vec![unit] }
}

pub fn liveness(count: usize) -> Vec<PairLiveness> {
    let direction = |lost: u64| DirectionLiveness {
        sent: 864_000,
        good: 864_000 - lost,
        lost,
        late: lost / 2,
        consecutive_good: 5,
        samples: 100,
        samples_failed: lost,
        min_ns: Some(90_000),
        avg_ns: Some(123_456),
        max_ns: Some(2_345_678),
        stddev_ns: Some(850),
        p50_ns: Some(120_000),
        p99_ns: Some(1_234_567),
        last_loss: (lost > 0).then(|| "2026-11-30T00:36:01.123456Z".into()),
        ..DirectionLiveness::default()
    };
    let pairs = pairs(count).into_iter();
    pairs
        .map(|pair| PairLiveness {
            profile: "default".into(),
            unit: "main".into(),
            pair: pair.name,
            state: pair.state,
            flaps: pair.flaps,
            last_reason: pair.last_reason,
            last_change: pair.last_change,
            hold: None,
            cost_ns: None,
            cores: Vec::new(),
            ip_probe: None,
            negative_probe: None,
            lan_to_wan: direction(pair.flaps * 6),
            wan_to_lan: direction(0),
        })
        .collect()
}

pub fn drops() -> Drops {
    Drops {
        frames_in: 2_100_000,
        outside: vec![api::PortLosses { port: "p4-2".into(), missed: 12, lost: 0 }],
        verdicts: vec![
            verdict("to-ecofilter", None, 1_000_000),
            verdict("return", None, 1_000_000),
            verdict("bypass", Some("no-pair-up"), 99_990),
            verdict("drop", Some("malformed"), 10),
        ],
        links: vec![NamedVerdicts {
            name: "link1".into(),
            verdicts: vec![
                verdict("to-ecofilter", None, 1_000_000),
                verdict("bypass", Some("no-pair-up"), 99_990),
            ],
        }],
        pairs: vec![NamedVerdicts {
            name: "f1-1".into(),
            verdicts: vec![verdict("return", None, 1_000_000)],
        }],
    }
}

pub fn event(id: u64, subject: &str, before: &str, after: &str) -> Event {
    Event {
        id,
        time: "2026-11-30T00:36:01.123456Z".into(),
        monotonic_ns: 5_000_000_000,
        severity: Severity::Warning,
        kind: EventKind::Pair,
        subject: subject.into(),
        before: Some(before.into()),
        after: Some(after.into()),
        reason: "5 keep-alives lost in a row".into(),
        detail: None,
        data_plane_ns: Some(1_234_567),
    }
}

pub fn events() -> Vec<Event> {
    let applied = Event {
        severity: Severity::Info,
        kind: EventKind::Configuration,
        before: None,
        after: None,
        reason: "applied".into(),
        detail: Some("12 entries inserted".into()),
        data_plane_ns: None,
        ..event(7, "site.json", "", "")
    };
    let lost = Event {
        severity: Severity::Error,
        kind: EventKind::Target,
        ..event(9, "embedded", "primary", "lost")
    };
    vec![applied, event(8, "f1-2", "up", "down"), lost]
}

pub fn configuration() -> Value {
    json!({
        "sluice:port": [{"name": "p4-2", "number": 4, "lane": 2, "speed": "10g", "description": "segment 1 (LAN)"}],
        "sluice:ecofilter-balancer": {
            "balancing-method": "layer-3",
            "steering-header": {"mode": "native"},
            "flow": [{"name": "rest", "priority": 1, "apply-to-links": ["link1"], "action": "to-ecofilter"}]
        }
    })
}

pub fn target() -> Target {
    Target {
        address: "grpc://10.0.0.1:9559".into(),
        profile: "bmv2".into(),
        pipeline: "0123456789abcdef".into(),
        state: "lost".into(),
        reason: Some("connection refused".into()),
        device_id: 1,
        election_id: "1764462955".into(),
        epoch: 3,
        tables: vec![
            TableUsage { name: "ingress.rules".into(), entries: 5, size: 4096 },
            TableUsage { name: "ingress.buckets".into(), entries: 8192, size: 8192 },
        ],
    }
}

pub fn lookup() -> Lookup {
    Lookup {
        flow: Some("rest".into()),
        verdict: "to-ecofilter".into(),
        reason: None,
        unit: Some("main".into()),
        hash: Some("0f1e2d3c".into()),
        bucket: Some(1234),
        pair: Some("f1-1".into()),
        core: Some(12),
        out_port: Some("p1-2".into()),
    }
}

pub fn applied() -> Applied {
    Applied {
        inserted: 12,
        modified: 3,
        deleted: 0,
        warnings: vec!["link2 has no rule".into()],
        changes: 4,
        confirmed: false,
    }
}

/// What sluiced says in a second of the watching: every pair goes on at its own pace, and half the frames of the
/// last are bypassed.
pub fn reading(pairs: usize, second: u64) -> Reading {
    let mut balancer = balancer(pairs);
    for (number, pair) in (1..).zip(&mut balancer.units[0].pairs) {
        // Sample pairs never stand still for long.
        let wave = (second * 7 + number * 13) % 40;
        let go = |count: &mut u64, rate: u64| *count += rate * second;
        if let (Some(up), Some(down)) = (&mut pair.up, &mut pair.down) {
            go(&mut up.packets, 1_000 * number);
            go(&mut up.bytes, 1_000 * number * 800);
            go(&mut down.packets, 250 * number);
            go(&mut down.bytes, 250 * number * 100);
        }
        go(&mut pair.tx_packets, 1_250 * number);
        go(&mut pair.tx_bytes, 1_000 * number * 800 + 250 * number * 100);
        go(&mut pair.rx_packets, 1_200 * number);
        go(&mut pair.rx_bytes, 1_200 * number * 650);
        pair.lan_to_wan_ns = pair.lan_to_wan_ns.map(|delay| delay + wave * 10_000);
    }
    let mut drops = drops();
    drops.frames_in += 100_000 * second;
    for verdict in &mut drops.verdicts {
        let rate = match verdict.verdict.as_str() {
            "bypass" => 20,
            "drop" => 0,
            _ => 50_000,
        };
        verdict.packets += rate * second;
    }
    Reading {
        at: Duration::from_millis(1000 * second + 20),
        time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000 + second),
        balancer,
        drops,
        news: NewEvents { events: if second == 0 { events() } else { vec![] }, newest: 9, missed: 0 },
    }
}
