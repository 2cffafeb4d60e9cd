//! Each numbered step.

use dataplane::entry::Update;
use dataplane::keepalive::{Direction, KeepAlive, KeepAliveKey};
use dataplane::schema::counters;
use dataplane::tables::CloneSessionEntry;
use dataplane::{LinkIndex, Nanos, PairId, PortId, Reason};
use serde_json::{Value, json};
use site::{Condition, UnitForwarding};
use swpipe::cpu::Cpu;
use swpipe::device::{Atomicity, Device};
use swpipe::pipeline::decide;

use crate::frames::{Around, Packet, TCP, UDP, plain};
use crate::rig::{Rig, small};

fn with(mut tree: Value, leaf: &str, value: Value) -> Value {
    tree.pointer_mut("/sluice:ecofilter-balancer").unwrap()[leaf] = value;
    tree
}

fn unit_with(mut tree: Value, leaf: &str, value: Value) -> Value {
    tree.pointer_mut("/sluice:ecofilter-balancer/ecofilter-unit/0").unwrap()[leaf] = value;
    tree
}

fn flows(flows: Value) -> Value {
    with(small(), "flow", flows)
}

/// A session that the unit of [`small`] gives to this pair.
fn session_of(rig: &Rig, pair: &str) -> Packet {
    (1..=255)
        .map(|host| Packet::v4([10, 0, 0, host], [80, 0, 0, 1], TCP))
        .find(|packet| {
            let serving = rig.decide("l1", &plain(packet)).balanced.and_then(|balanced| balanced.serving);
            let id = rig.ids.pairs.iter().find(|(name, _)| name.pair == pair).map(|(_, id)| *id).unwrap();
            serving.is_some_and(|(serving, _)| serving == id)
        })
        .unwrap()
}

fn sized(packet: &Packet, length: usize) -> Vec<u8> {
    let mut frame = plain(packet);
    frame.resize(length, 0xcc);
    frame
}

const KINDS: [&str; 4] = ["v4", "v6", "arp", "llc"];

fn kind(name: &str) -> Vec<u8> {
    match name {
        "v4" => plain(&Packet::v4([10, 0, 0, 1], [80, 0, 0, 1], TCP)),
        "v6" => plain(&Packet::v6("2001:db8::1", "2001:db8::2", UDP)),
        "arp" => Around::default().frame(0x0806, &[0; 46]),
        _ => Around::default().frame(38, &[[0x42, 0x42, 3].as_slice(), &[0; 40]].concat()),
    }
}

/// Which of the four kinds of frame a rule with these conditions matches.
fn matched(conditions: Value) -> Vec<&'static str> {
    let rig = Rig::up(&flows(json!([{"name": "f", "priority": 9, "match": conditions, "action": "drop"}])));
    KINDS.into_iter().filter(|name| rig.send("l1", &kind(name)).reason == Reason::FlowDrop).collect()
}

#[test]
fn conditions_match_the_kinds_of_frames_that_they_can() {
    let (all, ip): (&[&str], &[&str]) = (&KINDS, &["v4", "v6"]);
    let table: &[(Value, &[&str])] = &[
        (json!({}), all),
        (json!({"vlan-depth": 0}), all),
        (json!({"mpls-depth": 0}), all),
        (json!({"vlan-depth": 1}), &[]),
        (json!({"src-mac": "02:00:00:00:00:01"}), all),
        (json!({"dst-mac": "02:00:00:00:00:00/24"}), all),
        (json!({"dst-mac": "00:00:00:00:00:00/0"}), all),
        (json!({"dst-mac": "02:00:00:00:00:01"}), &[]),
        (json!({"packet-type": "0x0800"}), &["v4"]),
        (json!({"packet-type": "0x86dd"}), &["v6"]),
        (json!({"packet-type": 2054}), &["arp"]),
        (json!({"llc-dsap": 66}), &["llc"]),
        (json!({"llc-ssap": 66, "llc-dsap": 66}), &["llc"]),
        (json!({"llc-dsap": 0}), &[]),
        (json!({"llc-dsap": 66, "packet-type": 2054}), &[]),
        (json!({"ip-version": 4}), &["v4"]),
        (json!({"ip-version": 6}), &["v6"]),
        (json!({"src-ip": "0.0.0.0/0"}), &["v4"]),
        (json!({"src-ip": "::/0"}), &["v6"]),
        (json!({"dst-ip": "80.0.0.0/8"}), &["v4"]),
        (json!({"dst-ip": "80.0.0.1/255.0.0.255"}), &["v4"]),
        (json!({"dst-ip": "80.0.0.2/255.0.0.255"}), &[]),
        (json!({"dst-ip": "2001:db8::2"}), &["v6"]),
        (json!({"dst-ip": "::2/::ffff"}), &["v6"]),
        (json!({"ip-proto": 6}), &["v4"]),
        (json!({"ip-proto": 17}), &["v6"]),
        (json!({"ip-proto": 0}), &[]),
        (json!({"src-port": "0-65535"}), ip),
        (json!({"dst-port": 443}), ip),
        (json!({"dst-port": 443, "ip-version": 6}), &["v6"]),
        (json!({"dst-port": "0-442"}), &[]),
        (json!({"dst-port": 0}), &[]),
        (json!({"src-port": "40000-40001", "dst-port": "400-443", "ip-proto": "0x11"}), &["v6"]),
    ];
    for (conditions, expect) in table {
        assert_eq!(matched(conditions.clone()), *expect, "{conditions}");
    }
}

#[test]
fn tags_match_where_they_stand_and_by_vid_alone() {
    let tags = |tags: &[(u16, u16)]| {
        Around { tags: tags.to_vec(), ..Around::default() }
            .frame(0x0800, &Packet::v4([1; 4], [2; 4], TCP).bytes())
    };
    let frame = tags(&[(0x88a8, 0x6000 | 7), (0x8100, 0x1000 | 8), (0x9100, 9)]);
    let zero = tags(&[(0x8100, 0)]);
    let deep = tags(&[(0x8100, 7), (0x8100, 8), (0x8100, 9), (0x8100, 10)]);
    let hit = |conditions: Value, frame: &[u8]| {
        let rig =
            Rig::up(&flows(json!([{"name": "f", "priority": 9, "match": conditions, "action": "drop"}])));
        rig.send("w2", frame).reason == Reason::FlowDrop
    };
    assert!(hit(json!({"vlan0-tag": 7, "vlan1-tag": 8, "vlan2-tag": 9, "vlan-depth": 3}), &frame));
    assert!(!hit(json!({"vlan0-tag": 8}), &frame));
    assert!(!hit(json!({"vlan1-tag": 0}), &zero));
    assert!(hit(json!({"vlan0-tag": 0}), &zero));
    assert!(!hit(json!({"vlan0-tag": 0}), &kind("v4")));
    assert!(hit(json!({"vlan2-tag": 9, "vlan-depth": 3}), &deep));
    assert!(!hit(json!({"ip-version": 4}), &deep));
    assert!(hit(json!({"packet-type": "0x0800"}), &frame));
    let mut later = plain(&Packet::v4([1; 4], [2; 4], UDP));
    later[21] = 5; // a later fragment has no ports
    assert!(!hit(json!({"src-port": "0-65535"}), &later));
    assert!(hit(json!({"ip-proto": 17}), &later));
}

#[test]
fn the_highest_number_wins_and_of_equals_the_earlier_name() {
    let rule = |name: &str, priority: u16, action: &str| json!({"name": name, "priority": priority, "action": action});
    let rig = Rig::up(&flows(json!([rule("low", 1, "drop"), rule("high", 65535, "bypass")])));
    assert_eq!(rig.send("l1", &kind("v4")).flow.as_deref(), Some("high"));
    for order in [["b", "a", "c"], ["c", "b", "a"], ["a", "b", "c"]] {
        let rig = Rig::up(&flows(json!(order.map(|name| rule(
            name,
            7,
            if name == "a" { "drop" } else { "bypass" }
        )))));
        for name in KINDS {
            let outcome = rig.send("l1", &kind(name));
            assert_eq!((outcome.flow.as_deref(), outcome.reason), (Some("a"), Reason::FlowDrop));
        }
    }
}

#[test]
fn a_rule_is_bound_to_its_links_and_a_frame_without_a_rule_is_bypassed() {
    let rule = json!([{"name": "f", "priority": 1, "apply-to-links": ["link2"], "action": "drop"}]);
    let rig = Rig::up(&flows(rule));
    for (port, peer) in [("l1", "w1"), ("w1", "l1")] {
        let outcome = rig.send(port, &kind("v6"));
        assert_eq!((outcome.reason, outcome.flow), (Reason::NoFlow, None));
        assert_eq!(outcome.out, Some((peer.to_owned(), kind("v6"))));
    }
    for port in ["l2", "w2"] {
        assert_eq!(rig.send(port, &kind("v6")).reason, Reason::FlowDrop);
    }
}

#[test]
fn without_an_ip_header_the_peer_port_with_the_reason() {
    let rig = Rig::up(&small());
    let tagged =
        |count| Around { tags: vec![(0x8100, 1); count], ..Around::default() }.frame(0x0800, &[0x45; 60]);
    let labels =
        Around { wrap: crate::frames::Wrap::Mpls(vec![0; 7]), ..Around::default() }.frame(0, &[0x45; 60]);
    let keep_alive = KeepAlive {
        pair: PairId(0),
        direction: Direction::LanToWan,
        instance: 1,
        sequence: 1,
        transmit: Nanos(1),
    }
    .encode(&KeepAliveKey([0; 16]));
    let steered = Around::default()
        .frame(0x88b6, &[[0, 0, 8, 0].as_slice(), &Packet::v4([1; 4], [2; 4], TCP).bytes()].concat());
    for (frame, reason) in [
        (kind("arp"), Reason::NotIp),
        (kind("llc"), Reason::NotIp),
        (tagged(4), Reason::VlanTooDeep),
        (labels, Reason::MplsTooDeep),
        (keep_alive.to_vec(), Reason::NotIp),
        (steered, Reason::NotIp),
        (vec![0xff; 9], Reason::NotIp),
        (Vec::new(), Reason::NotIp),
    ] {
        for (port, peer) in [("l1", "w1"), ("w1", "l1"), ("l2", "w2"), ("w2", "l2")] {
            let outcome = rig.send(port, &frame);
            assert_eq!(outcome.reason, reason);
            assert_eq!(outcome.flow.as_deref(), Some("all"));
            assert_eq!(outcome.out, Some((peer.to_owned(), frame.clone())));
        }
    }
}

#[test]
fn to_the_pair_by_the_side_it_came_in_on_and_back_by_the_side_it_returns_on() {
    for steering in [json!({}), json!({"mode": "dot1q", "base-vid": 200}), json!({"tpid": "0x9abc"})] {
        let rig = Rig::up(&with(small(), "steering-header", steering));
        for pair in ["a", "b"] {
            let packet = session_of(&rig, pair);
            let frame =
                Around { tags: vec![(0x8100, 201)], ..Around::default() }.frame(0x0800, &packet.bytes());
            for (port, side) in [("l1", "l"), ("w1", "w"), ("l2", "l"), ("w2", "w")] {
                let outcome = rig.send(port, &frame);
                assert_eq!(outcome.reason, Reason::Forwarded);
                let (out, steered) = outcome.out.unwrap();
                assert_eq!(out, format!("{pair}{side}"));
                assert_eq!(steered.len(), frame.len() + 4);
                // The appliance's other port, and the same one for an answer of its own.
                let link = port.chars().last().unwrap();
                for back in ["l", "w"] {
                    let returned = rig.send(&format!("{pair}{back}"), &steered);
                    assert_eq!(returned.reason, Reason::Returned);
                    assert_eq!(returned.out, Some((format!("{back}{link}"), frame.clone())));
                }
            }
        }
    }
}

#[test]
fn from_a_pair_port_only_headers_of_known_links_and_keep_alives_pass() {
    for steering in [json!({}), json!({"mode": "dot1q", "base-vid": 200})] {
        let rig = Rig::up(&with(small(), "steering-header", steering));
        let frame = plain(&session_of(&rig, "a"));
        for port in ["al", "aw", "bl", "bw"] {
            assert_eq!(rig.send(port, &frame).reason, Reason::NoSteeringHeader);
            assert_eq!(rig.send(port, &frame[..13]).reason, Reason::NoSteeringHeader);
            for link in 0..=255u8 {
                let mut header = vec![0u8; frame.len() + 4];
                let length =
                    rig.site.steering.push(&frame, dataplane::Core(0), LinkIndex(link), &mut header).unwrap();
                let outcome = rig.send(port, &header[..length]);
                let expect = if link < 2 { Reason::Returned } else { Reason::UnknownLink };
                assert_eq!(outcome.reason, expect, "link {link}");
                assert_eq!(outcome.out.is_some(), link < 2);
            }
            // Nothing leaves that is no Ethernet frame.
            let mut header = vec![0u8; frame.len() + 4];
            rig.site.steering.push(&frame, dataplane::Core(0), LinkIndex(0), &mut header).unwrap();
            assert_eq!(rig.send(port, &header[..17]).reason, Reason::NoSteeringHeader);
            assert_eq!(rig.send(port, &header[..18]).reason, Reason::Returned);
            let keep_alive = Around::default().frame(0x88b5, &[0; 46]);
            let outcome = rig.send(port, &keep_alive);
            assert_eq!((outcome.reason, outcome.out, outcome.copy), (Reason::KeepAlive, None, None));
        }
    }
}

#[test]
fn the_state_of_unit_and_pair_decides() {
    let fails_closed = unit_with(small(), "fail-action", json!("drop"));
    for (tree, reason) in [(small(), Reason::PairDownBypass), (fails_closed.clone(), Reason::PairDownDrop)] {
        let up = Rig::up(&tree);
        let (of_a, of_b) = (plain(&session_of(&up, "a")), plain(&session_of(&up, "b")));
        let rig = Rig::down(&tree, &["a"]);
        let outcome = rig.send("w1", &of_a);
        assert_eq!(outcome.reason, reason);
        assert_eq!(outcome.out, (reason == Reason::PairDownBypass).then(|| ("l1".to_owned(), of_a.clone())));
        assert_eq!(rig.send("w1", &of_b), up.send("w1", &of_b), "the others notice nothing");
        // Fewer than active-pairs: the unit steps aside, whatever the fail-action.
        let none = Rig::down(&tree, &["a", "b"]);
        let outcome = none.send("l1", &of_a);
        assert_eq!(
            (outcome.reason, outcome.out),
            (Reason::UnitBypass, Some(("w1".to_owned(), of_a.clone())))
        );
        // By hand.
        let by_hand = |mode| {
            Rig::new(&tree, |site| {
                let mut condition = Condition::with_up(site, |_| false);
                condition.units.insert("main".to_owned(), mode);
                condition
            })
        };
        assert_eq!(by_hand(UnitForwarding::Bypass).send("l1", &of_a).reason, Reason::UnitBypass);
        assert_eq!(by_hand(UnitForwarding::Primary).send("l1", &of_a), up.send("l1", &of_a));
    }
}

#[test]
fn with_rebalance_only_the_down_pairs_sessions_move_and_spares_take_them_whole() {
    let mut tree = unit_with(small(), "rebalance", json!("on"));
    for (name, number, role) in [("c", 10, "active"), ("s", 12, "spare")] {
        for (side, number) in [("l", number), ("w", number + 1)] {
            let port = json!({"name": format!("{name}{side}"), "number": number, "mtu": 1500});
            tree["sluice:port"].as_array_mut().unwrap().push(port);
        }
        let pair = json!({"name": name, "lan-port": format!("{name}l"), "wan-port": format!("{name}w"), "role": role});
        tree["sluice:ecofilter-balancer"]["ecofilter-unit"][0]["pair"].as_array_mut().unwrap().push(pair);
    }
    let up = Rig::up(&tree);
    let with_spare = Rig::down(&tree, &["a"]);
    let without = Rig::down(&tree, &["a", "s"]);
    let mut moved = 0;
    for host in 0..=255 {
        let frame = plain(&Packet::v4([10, 9, 8, host], [80, 1, 2, 3], UDP));
        let (home, out) = (up.send("l1", &frame), with_spare.send("l1", &frame));
        let port = home.out.clone().unwrap().0;
        assert_ne!(port, "sl", "a spare has no share of its own");
        if port == "al" {
            let (spare, bytes) = out.out.unwrap();
            assert_eq!((spare.as_str(), &bytes), ("sl", &home.out.unwrap().1), "the core stays the bucket's");
            let taken = without.send("l1", &frame).out.unwrap().0;
            assert!(["bl", "cl"].contains(&taken.as_str()));
            moved += 1;
        } else {
            assert_eq!(out, home);
            assert_eq!(without.send("l1", &frame), home);
        }
    }
    assert!((60..110).contains(&moved), "{moved}");
}

#[test]
fn copies_go_to_the_appliance_and_what_comes_back_is_dropped() {
    let copy = json!([{"name": "tap", "priority": 1, "action": "to-ecofilter", "ecofilter-unit": "main", "copy": [null]}]);
    let rig = Rig::up(&flows(copy.clone()));
    let plain_rig = Rig::up(&small());
    let frame = plain(&session_of(&plain_rig, "b"));
    let outcome = rig.send("l2", &frame);
    assert_eq!(outcome.reason, Reason::Copy);
    assert_eq!(outcome.out, Some(("w2".to_owned(), frame.clone())));
    let steered = plain_rig.send("l2", &frame).out;
    assert_eq!(outcome.copy, steered);
    for port in ["al", "aw", "bl", "bw"] {
        assert_eq!(rig.send(port, &steered.as_ref().unwrap().1).reason, Reason::CopyReturn);
        assert_eq!(rig.send(port, &frame).reason, Reason::CopyReturn);
        assert_eq!(rig.send(port, &Around::default().frame(0x88b5, &[0; 46])).reason, Reason::KeepAlive);
    }
    // A copy is the replication engine's: none without the session, and by the session's port.
    let port = plain_rig.port(&steered.as_ref().unwrap().0);
    let session = CloneSessionEntry::to(port);
    let write = |update| rig.device.write(&[update], Atomicity::AllOrNothing).unwrap();
    write(Update::Delete(session.entry()));
    let outcome = rig.send("l2", &frame);
    assert_eq!((outcome.reason, outcome.copy), (Reason::Copy, None));
    assert_eq!(outcome.out, Some(("w2".to_owned(), frame.clone())));
    write(Update::Insert(CloneSessionEntry { port: rig.port("l1"), ..session }.entry()));
    let elsewhere = rig.send("l2", &frame).copy;
    assert_eq!(elsewhere, steered.map(|(_, bytes)| ("l1".to_owned(), bytes)));
    // No copy where the pair is down or there is no IP header, never a lost frame.
    let closed = unit_with(flows(copy), "fail-action", json!("drop"));
    let outcome = Rig::down(&closed, &["b"]).send("l2", &frame);
    assert_eq!((outcome.out, outcome.copy), (Some(("w2".to_owned(), frame)), None));
    assert_eq!(rig.send("l2", &kind("arp")).copy, None);
}

#[test]
fn mtu_is_what_follows_the_ethernet_header_at_every_port_that_a_frame_leaves_by() {
    let mut tree = small();
    for (index, mtu) in [(0, 1400), (1, 1500), (2, 1500), (3, 1300), (4, 1200), (5, 1201)] {
        tree["sluice:port"][index]["mtu"] = json!(mtu);
    }
    let rig = Rig::up(&tree);
    let packet = session_of(&rig, "a");
    // The pair's port: the header counts.
    for (port, mtu) in [("l1", 1200), ("w1", 1201)] {
        let fits = sized(&packet, 14 + mtu - 4);
        let (_, bytes) = rig.send(port, &fits).out.unwrap();
        assert_eq!(bytes.len(), 14 + mtu);
        let long = rig.send(port, &sized(&packet, 14 + mtu - 3));
        assert_eq!((long.reason, long.out), (Reason::MtuExceeded, None));
        assert_eq!(long.flow.as_deref(), Some("all"));
    }
    // The peer port.
    for (port, mtu) in [("w1", 1400), ("l2", 1300)] {
        let mut fits = kind("arp");
        fits.resize(14 + mtu, 0);
        assert_eq!(rig.send(port, &fits).reason, Reason::NotIp);
        fits.push(0);
        let long = rig.send(port, &fits);
        assert_eq!((long.reason, long.out), (Reason::MtuExceeded, None));
    }
    // The link's port on the way back: the header is off by then.
    for (port, link, mtu) in [("bl", 0, 1400), ("bw", 1, 1300)] {
        let steered = |length: usize| {
            let frame = sized(&packet, length);
            let mut out = vec![0; length + 4];
            rig.site.steering.push(&frame, dataplane::Core(0), LinkIndex(link), &mut out).unwrap();
            out
        };
        assert_eq!(rig.send(port, &steered(14 + mtu)).out.unwrap().1.len(), 14 + mtu);
        let long = rig.send(port, &steered(14 + mtu + 1));
        assert_eq!((long.reason, long.out), (Reason::MtuExceeded, None));
    }
}

#[test]
fn a_port_that_serves_nothing_drops_and_says_so() {
    let device = Device::default();
    let tables = device.snapshot().load();
    for port in [0, 4, 511, 512, u16::MAX] {
        let decision = decide(&tables, PortId(port), &kind("v4"));
        assert_eq!((decision.reason, decision.exit), (Reason::UnknownPort, None));
    }
}

#[test]
fn bytes_are_the_frame_as_it_was_on_the_link() {
    let rig = Rig::up(&small());
    let mut line = rig.line(Cpu::detect());
    let frame = plain(&session_of(&rig, "a"));
    let length = frame.len() as u64;
    let there = line.pass(&rig, rig.port("l1"), &[frame]);
    let [(out, steered)] = there.as_slice() else { panic!("{there:?}") };
    assert_eq!(*out, rig.port("al"));
    line.pass(&rig, rig.port("aw"), std::slice::from_ref(steered));
    let bytes = |array: u32, index: usize| rig.read(array, index).bytes;
    assert_eq!(bytes(counters::VERDICTS.id, Reason::Forwarded.slot()), length);
    assert_eq!(bytes(counters::VERDICTS.id, Reason::Returned.slot()), length);
    // A port's own counter has what came in by it, the steering header included.
    for (port, length) in [("l1", length), ("aw", length + 4)] {
        assert_eq!(bytes(counters::PORT_IN.id, counters::port(rig.port(port))), length, "{port}");
    }
    for port in ["al", "w1"] {
        assert_eq!(bytes(counters::PORT_OUT.id, counters::port(rig.port(port))), length, "{port}");
    }
}
