//! Valid sites by chance.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// One condition of a flow.
fn condition() -> impl Strategy<Value = (&'static str, Value)> {
    let mac = any::<[u8; 6]>().prop_map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
    let range = any::<(u16, u16)>().prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    prop_oneof![
        (0u16..4096).prop_map(|vid| ("vlan0-tag", json!(vid))),
        (0u16..4096).prop_map(|vid| ("vlan1-tag", json!(vid))),
        (0u16..4096).prop_map(|vid| ("vlan2-tag", json!(vid.to_string()))),
        (0u8..4).prop_map(|depth| ("vlan-depth", json!(depth))),
        (0u8..7).prop_map(|depth| ("mpls-depth", json!(depth))),
        (0x0600u16..).prop_map(|kind| ("packet-type", json!(format!("{kind:#06x}")))),
        any::<u8>().prop_map(|sap| ("llc-dsap", json!(sap))),
        any::<u8>().prop_map(|sap| ("llc-ssap", json!(sap))),
        mac.clone().prop_map(|mac| ("src-mac", json!(mac))),
        (any::<[u8; 6]>(), 0u32..=48).prop_map(|(mac, length)| {
            let [a, b, c, d, e, f] = mac;
            let number = u64::from_be_bytes([0, 0, a, b, c, d, e, f]) >> (48 - length) << (48 - length);
            let [_, _, mac @ ..] = number.to_be_bytes();
            ("dst-mac", json!(format!("{}/{length}", mac.map(|byte| format!("{byte:02x}")).join(":"))))
        }),
        prop::sample::select(&[4, 6][..]).prop_map(|version| ("ip-version", json!(version))),
        any::<u8>().prop_map(|proto| ("ip-proto", json!(proto))),
        range.clone().prop_map(|range| ("src-port", json!(range))),
        any::<u16>().prop_map(|port| ("dst-port", json!(port))),
        (any::<u32>(), 0u32..=32).prop_map(|(ip, length)| {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            ("src-ip", json!(format!("{}/{length}", std::net::Ipv4Addr::from(ip & mask))))
        }),
        any::<(u32, u32)>().prop_map(|(ip, mask)| {
            let (ip, mask) = (std::net::Ipv4Addr::from(ip & mask), std::net::Ipv4Addr::from(mask));
            ("dst-ip", json!(format!("{ip}/{mask}")))
        }),
        (any::<u128>(), 0u32..=128).prop_map(|(ip, length)| {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            ("dst-ip", json!(format!("{}/{length}", std::net::Ipv6Addr::from(ip & mask))))
        }),
    ]
}

/// Conditions that do not contradict each other in their IP version.
fn matches() -> impl Strategy<Value = Value> {
    prop::collection::vec(condition(), 0..5).prop_map(|conditions| {
        let mut version: Option<bool> = None;
        let mut object = Map::new();
        for (leaf, value) in conditions {
            let is_v6 = match leaf {
                "ip-version" => Some(value == json!(6)),
                "src-ip" | "dst-ip" => Some(value.as_str().is_some_and(|text| text.contains(':'))),
                _ => None,
            };
            match (version, is_v6) {
                (Some(one), Some(other)) if one != other => continue,
                (None, Some(_)) => version = is_v6,
                _ => {}
            }
            object.insert(leaf.to_owned(), value);
        }
        Value::Object(object)
    })
}

fn steering() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"mode": "native", "tpid": "0x9999"})),
        (1u16..=4000).prop_map(|vid| json!({"mode": "dot1q", "base-vid": vid})),
        Just(json!({"mode": "dot1q", "tpid": "0x88a8", "base-vid": 7})),
    ]
}

type PairSpec = (u8, bool, &'static str);

fn unit() -> impl Strategy<Value = (u16, bool, Option<u32>, bool, Vec<PairSpec>)> {
    let admin = prop::sample::select(&["up", "up", "up", "down", "drain"][..]);
    (
        1u16..=20,
        any::<bool>(),
        prop::option::of(prop::sample::select(&[1024u32, 2048, 4096][..])),
        any::<bool>(),
        prop::collection::vec((1u8..=5, prop::bool::weighted(0.25), admin), 0..5),
    )
}

/// A valid site: up to 12 links, up to 4 units, up to 12 flows.
pub(crate) fn site() -> impl Strategy<Value = Value> {
    let flow = (
        1u16..6,
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        matches(),
        0u8..4,
        any::<prop::sample::Index>(),
    );
    (
        prop::sample::select(&["layer-3", "layer-4", "dst-ip", "src-ip"][..]),
        steering(),
        1usize..12,
        prop::collection::vec(unit(), 0..4),
        prop::collection::vec(flow, 0..12),
        prop::collection::vec(64u16..=10240, 60),
    )
        .prop_map(|(method, steering, links, units, flows, mtus)| {
            let mut ports: Vec<Value> = Vec::new();
            let mut port = || {
                let n = ports.len();
                let name = format!("port-{n}");
                ports.push(json!({
                    "name": name, "number": n / 4 + 1, "lane": n % 4, "mtu": mtus[n % mtus.len()]
                }));
                name
            };
            let links: Vec<Value> = (0..links)
                .map(|n| json!({"name": format!("link{n}"), "lan-port": port(), "wan-port": port()}))
                .collect();
            let units: Vec<Value> = units
                .into_iter()
                .enumerate()
                .map(|(n, (cores, rebalance, buckets, drop, pairs))| {
                    let pairs: Vec<Value> = pairs
                        .into_iter()
                        .enumerate()
                        .map(|(p, (weight, spare, admin))| {
                            json!({
                                "name": format!("p{p}"), "lan-port": port(), "wan-port": port(), "weight": weight,
                                "role": if spare { "spare" } else { "active" }, "admin": admin
                            })
                        })
                        .collect();
                    let mut unit = json!({
                        "name": format!("unit{n}"), "cores": cores, "pair": pairs,
                        "rebalance": if rebalance { "on" } else { "off" },
                        "fail-action": if drop { "drop" } else { "bypass" }
                    });
                    if let Some(buckets) = buckets {
                        unit["buckets"] = json!(buckets);
                    }
                    unit
                })
                .collect();
            let flows: Vec<Value> = flows
                .into_iter()
                .enumerate()
                .map(|(n, (priority, applied, matches, action, unit))| {
                    let mut applied: Vec<String> =
                        applied.into_iter().map(|link| format!("link{}", link.index(links.len()))).collect();
                    applied.sort();
                    applied.dedup();
                    let mut flow = json!({
                        "name": format!("flow{n}"), "priority": priority, "apply-to-links": applied, "match": matches
                    });
                    match action {
                        2.. if !units.is_empty() => {
                            let unit = unit.index(units.len());
                            flow["action"] = json!("to-ecofilter");
                            flow["ecofilter-unit"] = json!(format!("unit{unit}"));
                            if unit == 3 {
                                flow["copy"] = json!([null]); // the last unit only gets copies
                            }
                        }
                        1 => flow["action"] = json!("drop"),
                        _ => flow["action"] = json!("bypass"),
                    }
                    flow
                })
                .collect();
            json!({
                "sluice:port": ports,
                "sluice:ecofilter-balancer": {
                    "balancing-method": method, "steering-header": steering,
                    "link": links, "ecofilter-unit": units, "flow": flows
                }
            })
        })
}
