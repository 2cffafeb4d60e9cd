//! A second, naive reading of the contract, on the configuration as it is written, against the device.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use dataplane::buckets::stand_ins;
use dataplane::frame::NotIp;
use dataplane::schema::counters;
use dataplane::tables::TableEntry;
use dataplane::{Addresses, BucketTable, Method, Parsed, Reason, Side, UnitShape, hash, parse};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use swpipe::counters::Place;
use swpipe::cpu::Cpu;

use crate::frames::{Around, Cut, Packet, Wrap};
use crate::rig::{Line, Outcome, Rig};

const V4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 1, 1], [80, 0, 0, 1], [0, 0, 0, 0]];
const V6: [&str; 4] = ["2001:db8::1", "2001:db8:1::1", "fe80::1", "::"];
const PORTS: [u16; 5] = [0, 53, 179, 443, 65535];
const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [255; 6]];
const KINDS: [u16; 5] = [0x0806, 0x88b5, 0x88b6, 0x88cc, 0x8863];

fn text_of(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn condition() -> impl Strategy<Value = (&'static str, Value)> {
    let ip = prop_oneof![
        (select(&V4[..]), 0u32..=32).prop_map(|(ip, length)| {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            format!("{}/{length}", std::net::Ipv4Addr::from(u32::from_be_bytes(ip) & mask))
        }),
        (select(&V4[..]), any::<u32>()).prop_map(|(ip, mask)| {
            let ip = std::net::Ipv4Addr::from(u32::from_be_bytes(ip) & mask);
            format!("{ip}/{}", std::net::Ipv4Addr::from(mask))
        }),
        select(&V6[..]).prop_map(str::to_owned),
        (select(&V6[..]), 0u32..=128).prop_map(|(ip, length)| {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            let ip: std::net::Ipv6Addr = ip.parse().unwrap();
            format!("{}/{length}", std::net::Ipv6Addr::from(u128::from(ip) & mask))
        }),
    ];
    let range = (select(&PORTS[..]), select(&PORTS[..]))
        .prop_map(|(a, b)| json!(format!("{}-{}", a.min(b), a.max(b))));
    prop_oneof![
        (select(&["vlan0-tag", "vlan1-tag", "vlan2-tag"][..]), 0u16..3)
            .prop_map(|(leaf, vid)| (leaf, json!(vid))),
        (0u8..4).prop_map(|depth| ("vlan-depth", json!(depth))),
        (0u8..3).prop_map(|depth| ("mpls-depth", json!(depth))),
        select(&[0x0800u16, 0x86dd, 0x0806, 0x8847, 0x8864, 0x8100][..])
            .prop_map(|kind| ("packet-type", json!(kind))),
        (select(&["llc-dsap", "llc-ssap"][..]), select(&[0u8, 0x42][..]))
            .prop_map(|(leaf, sap)| (leaf, json!(sap))),
        (select(&["src-mac", "dst-mac"][..]), select(&MACS[..]))
            .prop_map(|(leaf, mac)| (leaf, json!(text_of(mac)))),
        select(&[4, 6][..]).prop_map(|version| ("ip-version", json!(version))),
        (select(&["src-ip", "dst-ip"][..]), ip).prop_map(|(leaf, ip)| (leaf, json!(ip))),
        select(&[0u8, 1, 6, 17, 47][..]).prop_map(|proto| ("ip-proto", json!(proto))),
        (select(&["src-port", "dst-port"][..]), range).prop_map(|(leaf, range)| (leaf, range)),
    ]
}

fn matches() -> impl Strategy<Value = Value> {
    prop::collection::vec(condition(), 0..3).prop_map(|conditions| {
        let mut object = Map::new();
        let mut version = None;
        for (leaf, value) in conditions {
            let own = match leaf {
                "ip-version" => Some(value == json!(6)),
                "src-ip" | "dst-ip" => Some(value.as_str().unwrap().contains(':')),
                _ => None,
            };
            if own.is_none() || version.is_none() || own == version {
                version = own.or(version);
                object.insert(leaf.to_owned(), value);
            }
        }
        Value::Object(object)
    })
}

/// Three links; a unit that fails as it likes, one that rebalances and has a spare, one that gets copies.
fn site() -> impl Strategy<Value = Value> {
    let flow = (1u16..4, prop::collection::btree_set(0u8..3, 0..3), matches(), 0u8..5);
    (
        select(&["layer-3", "layer-4", "dst-ip", "src-ip"][..]),
        select(&[r#"{}"#, r#"{"mode": "dot1q", "base-vid": 1}"#, r#"{"tpid": "0x9999"}"#][..]),
        select(&["bypass", "drop"][..]),
        prop::collection::vec(flow, 0..10),
        prop::collection::vec(80u16..120, 22),
    )
        .prop_map(|(method, steering, fail, flows, mtus)| {
            let ports: Vec<Value> = (0..22)
                .map(|n| json!({"name": format!("p{n}"), "number": n + 1, "mtu": if n % 3 == 0 { mtus[n] } else { 9000 }}))
                .collect();
            let two = |name: &str, n: usize| {
                json!({"name": name, "lan-port": format!("p{n}"), "wan-port": format!("p{}", n + 1)})
            };
            let pair = |name: &str, n: usize, weight: u8, role: &str| {
                let mut pair = two(name, n);
                pair["weight"] = json!(weight);
                pair["role"] = json!(role);
                pair
            };
            let flows: Vec<Value> = flows
                .into_iter()
                .enumerate()
                .map(|(n, (priority, links, matches, action))| {
                    let links: Vec<String> = links.into_iter().map(|link| format!("link{link}")).collect();
                    // Names that fall as the list goes on, so that neither order alone is right.
                    let mut flow = json!({
                        "name": format!("f{}", 9 - n), "priority": priority, "apply-to-links": links, "match": matches
                    });
                    flow["action"] = json!(["bypass", "drop", "to-ecofilter", "to-ecofilter", "to-ecofilter"][usize::from(action)]);
                    if action >= 2 {
                        flow["ecofilter-unit"] = json!(format!("u{}", action - 2));
                    }
                    if action == 4 {
                        flow["copy"] = json!([null]);
                    }
                    flow
                })
                .collect();
            json!({
                "sluice:port": ports,
                "sluice:ecofilter-balancer": {
                    "balancing-method": method,
                    "steering-header": serde_json::from_str::<Value>(steering).unwrap(),
                    "link": [two("link0", 0), two("link1", 2), two("link2", 4)],
                    "ecofilter-unit": [
                        {"name": "u0", "cores": 5, "fail-action": fail,
                         "pair": [pair("a", 6, 1, "active"), pair("b", 8, 3, "active")]},
                        {"name": "u1", "cores": 2, "rebalance": "on", "fail-action": fail,
                         "pair": [pair("c", 10, 1, "active"), pair("d", 12, 1, "active"), pair("e", 14, 2, "active"), pair("s", 16, 1, "spare")]},
                        {"name": "u2", "pair": [pair("t", 18, 1, "active")]}
                    ],
                    "flow": flows
                }
            })
        })
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let addresses = prop_oneof![
        (select(&V4[..]), select(&V4[..])).prop_map(|(src, dst)| Addresses::V4 {
            src: u32::from_be_bytes(src),
            dst: u32::from_be_bytes(dst)
        }),
        (select(&V6[..]), select(&V6[..])).prop_map(|(src, dst)| {
            let number = |text: &str| u128::from(text.parse::<std::net::Ipv6Addr>().unwrap());
            Addresses::V6 { src: number(src), dst: number(dst) }
        }),
    ];
    let cut = select(&[Cut::Whole, Cut::Whole, Cut::Whole, Cut::First, Cut::Later(3, true)][..]);
    let packet =
        (addresses, select(&[1u8, 6, 17, 47][..]), select(&PORTS[..]), select(&PORTS[..]), cut, any::<u8>())
            .prop_map(|(addresses, proto, src, dst, cut, ttl)| Packet {
                addresses,
                proto,
                ports: dataplane::frame::Ports { src, dst },
                cut,
                ttl,
                ..Packet::v4([0; 4], [0; 4], 0)
            });
    let wrap = select(vec![
        Wrap::Plain,
        Wrap::Plain,
        Wrap::Plain,
        Wrap::Mpls(vec![0x40]),
        Wrap::Mpls(vec![0x40; 2]),
        Wrap::Pppoe(1),
    ]);
    let tags = prop::collection::vec((select(&[0x8100u16, 0x88a8][..]), 0u16..3), 0..5);
    let content = prop_oneof![
        4 => packet.prop_map(|packet| (packet.ethertype(), packet.bytes(), true)),
        1 => select(&KINDS[..]).prop_map(|kind| (kind, vec![0; 46], false)),
        1 => (select(&[0u8, 0x42][..]), select(&[0u8, 0x42][..])).prop_map(|(dsap, ssap)| (38, [vec![dsap, ssap, 3], vec![0; 43]].concat(), false)),
    ];
    (content, wrap, tags, select(&MACS[..]), select(&MACS[..]), 60usize..140, prop::bool::weighted(0.1))
        .prop_map(|((ethertype, bytes, is_ip), wrap, tags, src_mac, dst_mac, length, cut)| {
            let wrap = if is_ip { wrap } else { Wrap::Plain };
            let tags = if tags.len() == 4 && length % 2 == 0 { tags[..2].to_vec() } else { tags };
            let mut frame = Around { dst_mac, src_mac, tags, wrap, padding: 0 }.frame(ethertype, &bytes);
            if cut || frame.len() < length {
                frame.resize(length, 0);
            }
            frame
        })
}

fn side_of(name: &str) -> Side {
    // Even ports are LAN ports.
    if name[1..].parse::<u16>().unwrap() % 2 == 0 { Side::Lan } else { Side::Wan }
}

fn bits(ip: IpAddr) -> Vec<bool> {
    let bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

fn address_matches(found: IpAddr, wanted: &str) -> bool {
    let (ip, mask) = wanted.split_once('/').unwrap_or((wanted, ""));
    let ip = bits(ip.parse().unwrap());
    let found = bits(found);
    if ip.len() != found.len() {
        return false;
    }
    let mask: Vec<bool> = match (mask, mask.parse::<usize>(), mask.parse::<IpAddr>()) {
        ("", ..) => vec![true; ip.len()],
        (_, Ok(length), _) => (0..ip.len()).map(|bit| bit < length).collect(),
        (_, _, Ok(mask)) => bits(mask),
        other => panic!("{other:?}"),
    };
    (0..ip.len()).all(|bit| !mask[bit] || ip[bit] == found[bit])
}

fn holds(leaf: &str, wanted: &Value, frame: &[u8], parsed: &Parsed) -> bool {
    let number = wanted.as_u64();
    let text = wanted.as_str().unwrap_or_default();
    let ends = parsed.session.map(|session| match session.addresses {
        Addresses::V4 { src, dst } => [IpAddr::V4(src.into()), IpAddr::V4(dst.into())],
        Addresses::V6 { src, dst } => [IpAddr::V6(src.into()), IpAddr::V6(dst.into())],
    });
    let ports = parsed.session.and_then(|session| session.ports);
    let vid = |at: usize| parsed.vlans().get(at).map(|vid| u64::from(*vid));
    let within = |port: Option<u16>| {
        let (low, high) = text.split_once('-').unwrap();
        port.is_some_and(|port| (low.parse().unwrap()..=high.parse().unwrap()).contains(&port))
    };
    let mac = |at: usize| frame.len() >= 14 && text == text_of(frame[at..at + 6].try_into().unwrap());
    match leaf {
        "vlan0-tag" => vid(0) == number,
        "vlan1-tag" => vid(1) == number,
        "vlan2-tag" => vid(2) == number,
        "vlan-depth" => Some(parsed.vlans().len() as u64) == number,
        "mpls-depth" => Some(parsed.mpls_depth.into()) == number,
        "packet-type" => parsed.packet_type != 0 && Some(parsed.packet_type.into()) == number,
        "llc-dsap" => parsed.llc.map(|llc| llc.dsap.into()) == number,
        "llc-ssap" => parsed.llc.map(|llc| llc.ssap.into()) == number,
        "src-mac" => mac(6),
        "dst-mac" => mac(0),
        "ip-version" => parsed.session.map(|session| session.addresses.version().into()) == number,
        "ip-proto" => parsed.session.map(|session| session.proto.into()) == number,
        "src-ip" => ends.is_some_and(|[src, _]| address_matches(src, text)),
        "dst-ip" => ends.is_some_and(|[_, dst]| address_matches(dst, text)),
        "src-port" => within(ports.map(|ports| ports.src)),
        "dst-port" => within(ports.map(|ports| ports.dst)),
        other => panic!("{other}"),
    }
}

/// The configuration and what is down, read naively.
struct Naive<'t> {
    tree: &'t Value,
    down: &'t BTreeSet<&'static str>,
}

impl Naive<'_> {
    fn list(&self, name: &str) -> &Vec<Value> {
        self.tree["sluice:ecofilter-balancer"][name].as_array().unwrap()
    }

    fn fits(&self, port: &str, length: usize) -> bool {
        let ports = self.tree["sluice:port"].as_array().unwrap();
        let mtu = ports.iter().find(|tree| tree["name"] == *port).unwrap()["mtu"].as_u64().unwrap();
        length as u64 <= mtu + 14
    }

    /// Out by a link's port, unless it is too long.
    fn out(&self, reason: Reason, flow: Option<&str>, port: &str, bytes: Vec<u8>) -> Outcome {
        let fits = self.fits(port, bytes.len());
        Outcome {
            reason: if fits { reason } else { Reason::MtuExceeded },
            flow: flow.map(str::to_owned),
            out: fits.then(|| (port.to_owned(), bytes)),
            copy: None,
        }
    }

    fn dropped(reason: Reason, flow: Option<&str>) -> Outcome {
        Outcome { reason, flow: flow.map(str::to_owned), out: None, copy: None }
    }

    fn header(&self, core: u16, link: usize) -> [u8; 4] {
        let steering = &self.tree["sluice:ecofilter-balancer"]["steering-header"];
        if steering["mode"] == "dot1q" {
            let [high, low] = (1 + link as u16).to_be_bytes();
            [0x81, 0, high, low]
        } else if steering["tpid"] == "0x9999" {
            [0x99, 0x99, core as u8, link as u8]
        } else {
            [0x88, 0xb6, core as u8, link as u8]
        }
    }

    fn outcome(&self, port: &str, frame: &[u8]) -> Outcome {
        let is = |tree: &Value| tree["lan-port"] == *port || tree["wan-port"] == *port;
        if let Some(index) = self.list("link").iter().position(is) {
            return self.by_link_port(index, port, frame);
        }
        for unit in self.list("ecofilter-unit") {
            if unit["pair"].as_array().unwrap().iter().any(is) {
                return self.by_pair_port(unit["name"] == "u2", port, frame);
            }
        }
        Naive::dropped(Reason::UnknownPort, None)
    }

    fn by_pair_port(&self, is_copy: bool, port: &str, frame: &[u8]) -> Outcome {
        if frame.get(12..14) == Some(&[0x88, 0xb5]) {
            return Naive::dropped(Reason::KeepAlive, None);
        }
        // The unit gets copies once a flow says so.
        if is_copy && self.list("flow").iter().any(|flow| flow["ecofilter-unit"] == "u2") {
            return Naive::dropped(Reason::CopyReturn, None);
        }
        for link in 0..256 {
            let Some(found) = frame.get(12..18) else { break };
            let wanted = self.header(0, link);
            let dot1q = wanted[0] == 0x81;
            let vid = u16::from_be_bytes([found[2], found[3]]) & 0xfff;
            let same = found[..2] == wanted[..2]
                && if dot1q { vid == 1 + link as u16 } else { found[3] == link as u8 };
            if !same {
                continue;
            }
            let Some(tree) = self.list("link").get(link) else {
                return Naive::dropped(Reason::UnknownLink, None);
            };
            let leaf = if side_of(port) == Side::Lan { "lan-port" } else { "wan-port" };
            let bytes = [&frame[..12], &frame[16..]].concat();
            return self.out(Reason::Returned, None, tree[leaf].as_str().unwrap(), bytes);
        }
        Naive::dropped(Reason::NoSteeringHeader, None)
    }

    fn by_link_port(&self, link: usize, port: &str, frame: &[u8]) -> Outcome {
        let tree = &self.list("link")[link];
        let peer = if side_of(port) == Side::Lan { &tree["wan-port"] } else { &tree["lan-port"] };
        let peer = peer.as_str().unwrap();
        let parsed = parse(frame);
        let applies = |flow: &&Value| {
            let links = flow["apply-to-links"].as_array().unwrap();
            let bound = links.is_empty() || links.contains(&tree["name"]);
            bound
                && flow["match"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .all(|(leaf, wanted)| holds(leaf, wanted, frame, &parsed))
        };
        let rank = |flow: &&Value| {
            (std::cmp::Reverse(flow["priority"].as_u64()), flow["name"].as_str().unwrap().to_owned())
        };
        let Some(flow) = self.list("flow").iter().filter(applies).min_by_key(rank) else {
            return self.out(Reason::NoFlow, None, peer, frame.to_vec());
        };
        let name = flow["name"].as_str();
        match flow["action"].as_str().unwrap() {
            "bypass" => return self.out(Reason::FlowBypass, name, peer, frame.to_vec()),
            "drop" => return Naive::dropped(Reason::FlowDrop, name),
            _ => {}
        }
        let Some(session) = parsed.session else {
            let reason = match parsed.not_ip() {
                Some(NotIp::VlanTooDeep) => Reason::VlanTooDeep,
                Some(NotIp::MplsTooDeep) => Reason::MplsTooDeep,
                _ => Reason::NotIp,
            };
            return self.out(reason, name, peer, frame.to_vec());
        };
        let unit =
            self.list("ecofilter-unit").iter().find(|unit| unit["name"] == flow["ecofilter-unit"]).unwrap();
        let pairs = unit["pair"].as_array().unwrap();
        let of_role = |role: &'static str| pairs.iter().filter(move |pair| pair["role"] == role);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shape = UnitShape {
            active: of_role("active")
                .map(|pair| (text(&pair["name"]), pair["weight"].as_u64().unwrap() as u8))
                .collect(),
            spares: of_role("spare").map(|pair| text(&pair["name"])).collect(),
            cores: unit["cores"].as_u64().unwrap_or(1) as u16,
            buckets: None,
        };
        let up = |pair: &str| !self.down.contains(pair);
        let rebalance = unit["rebalance"] == "on";
        let standing = if rebalance { stand_ins(&shape, &BTreeMap::new(), up) } else { BTreeMap::new() };
        if shape.active.keys().filter(|pair| up(pair)).count() + standing.len() < 1 {
            return self.out(Reason::UnitBypass, name, peer, frame.to_vec());
        }
        let method: Method =
            self.tree["sluice:ecofilter-balancer"]["balancing-method"].as_str().unwrap().parse().unwrap();
        let table = BucketTable::build(&shape).unwrap();
        let bucket = hash(&session, method, side_of(port)) as usize % table.len();
        let (home, core) = table.home().nth(bucket).unwrap();
        let serving = if rebalance { table.now(up, |_| true, &standing)[bucket] } else { home };
        let copy = flow.get("copy").is_some();
        if !up(serving) {
            if unit["fail-action"] == "drop" && !copy {
                return Naive::dropped(Reason::PairDownDrop, name);
            }
            return self.out(Reason::PairDownBypass, name, peer, frame.to_vec());
        }
        let pair = pairs.iter().find(|pair| pair["name"] == *serving).unwrap();
        let port = text(&pair[if side_of(port) == Side::Lan { "lan-port" } else { "wan-port" }]);
        let steered = [&frame[..12], &self.header(core.0.into(), link), &frame[12..]].concat();
        if copy {
            let mut outcome = self.out(Reason::Copy, name, peer, frame.to_vec());
            outcome.copy = self.fits(&port, steered.len()).then_some((port, steered));
            return outcome;
        }
        self.out(Reason::Forwarded, name, &port, steered)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_device_does_what_the_contract_says_and_counts_it(
        tree in site(),
        down in prop::collection::btree_set(select(&["a", "b", "c", "d", "e", "s"][..]), 0..4),
        frames in prop::collection::vec((0u16..21, frame(), any::<prop::sample::Index>()), 30)
    ) {
        let gone: Vec<&str> = down.iter().copied().collect();
        let rig = Rig::down(&tree, &gone);
        let naive = Naive { tree: &tree, down: &down };
        // Turn by turn: what any kind of processor does is the same, and counts together.
        let mut lines: Vec<Line> = Cpu::all().map(|cpu| rig.line(cpu)).collect();
        let mut reasons: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut flows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut outs: BTreeMap<String, u64> = BTreeMap::new();
        let mut ins: BTreeMap<String, u64> = BTreeMap::new();
        let mut returns = 0;
        for (turn, (port, frame, link)) in frames.iter().enumerate() {
            let port = format!("p{port}");
            // What comes from an appliance mostly carries a header.
            let frame = if port[1..].parse::<u16>().unwrap() >= 6 && frame.len() % 4 != 0 {
                [&frame[..12], &naive.header(9, link.index(4)), &frame[12..]].concat()
            } else {
                frame.clone()
            };
            let decision = rig.decide(&port, &frame);
            let outcome = rig.outcome(&decision, &frame);
            let expect = naive.outcome(&port, &frame);
            prop_assert_eq!(&outcome, &expect, "in by {}: {:02x?}", port, frame);
            let line = turn % lines.len();
            let sent = lines[line].pass(&rig, rig.port(&port), std::slice::from_ref(&frame));
            let wanted = [&expect.copy, &expect.out].into_iter().flatten();
            let wanted: Vec<_> = wanted.map(|(port, bytes)| (rig.port(port), bytes.clone())).collect();
            prop_assert_eq!(sent, wanted, "in by {} on processor {}: {:02x?}", port, line, frame);
            let bytes = match expect.reason {
                Reason::Returned | Reason::UnknownLink => frame.len() - 4,
                Reason::MtuExceeded if port[1..].parse::<u16>().unwrap() >= 6 => frame.len() - 4,
                _ => frame.len(),
            } as u64;
            let add = |count: &mut (u64, u64)| { count.0 += 1; count.1 += bytes };
            add(reasons.entry(expect.reason.slot()).or_default());
            if let Some(flow) = expect.flow {
                add(flows.entry(flow).or_default());
            }
            *ins.entry(port).or_default() += 1;
            returns += u64::from(expect.reason == Reason::Returned);
            for (port, _) in [expect.out, expect.copy].into_iter().flatten() {
                *outs.entry(port).or_default() += 1;
            }
        }
        let sum = |array: &dataplane::schema::Counter| -> u64 {
            (0..array.size).map(|index| rig.read(array.id, index).packets).sum()
        };
        prop_assert_eq!(sum(&counters::VERDICTS), frames.len() as u64);
        prop_assert_eq!(sum(&counters::PORT_IN), frames.len() as u64);
        prop_assert_eq!(sum(&counters::LINK_OUT), returns);
        for reason in Reason::ALL {
            let count = rig.read(counters::VERDICTS.id, reason.slot());
            let (packets, bytes) = reasons.get(&reason.slot()).copied().unwrap_or_default();
            prop_assert_eq!((count.packets, count.bytes), (packets, bytes), "{:?}", reason);
        }
        for port in rig.site.ports.values() {
            let out = rig.read(counters::PORT_OUT.id, counters::port(port.id)).packets;
            prop_assert_eq!(out, outs.get(&port.name).copied().unwrap_or(0), "out by {}", &port.name);
            let came = rig.read(counters::PORT_IN.id, counters::port(port.id)).packets;
            prop_assert_eq!(came, ins.get(&port.name).copied().unwrap_or(0), "in by {}", &port.name);
        }
        // A flow may be several rules; together they count what it matched.
        let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for entry in rig.device.entries(None) {
            if let Ok(TableEntry::Rule(_)) = TableEntry::parse(&entry) {
                let slot = rig.device.rule_slot(&entry.place()).unwrap();
                let count = rig.device.counters().read(Place::Rule(slot));
                let sum = counted.entry(String::from_utf8(entry.metadata.clone()).unwrap()).or_default();
                *sum = (sum.0 + count.packets, sum.1 + count.bytes);
            }
        }
        counted.retain(|_, count| count.0 > 0);
        prop_assert_eq!(counted, flows);
    }
}
