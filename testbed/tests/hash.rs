//! The program's hash and ours, over a million pairs of addresses: which bucket a frame falls into, seen from outside.
//!
//! Every bucket of a unit of 65,536 has a (pair, core) of its own, so port and steering header of a frame to an
//! appliance name the bucket: the low 16 bits of the hash.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use dataplane::entry::Entry;
use dataplane::tables::{
    BucketEntry, BucketForwarding, Family, PairForwarding, PairPortEntry, PairStateEntry, PortEntry,
    PortRole, RuleAction, RuleEntry, RuleField, RuleMatch, UnitEntry, UnitMode,
};
use dataplane::{BucketIndex, Core, LinkIndex, Method, PairId, PortId, Session, Side, UnitId, hash, parse};
use p4runtime::entry::to_wire;
use p4runtime::proto::p4::v1::Update;
use p4runtime::proto::p4::v1::write_request::Atomicity;
use testbed::differential::reference::Compiled;
use testbed::p4ref::{Program, Switch, read_info};
use testbed::rng::Rng;

const PAIRS_OF_ADDRESSES: u64 = 1_000_000;
const PAIRS: u16 = 256;
const LAN: PortId = PortId(500);
const WAN: PortId = PortId(501);
/// Of the pairs' LAN ports.
const FIRST_PORT: u16 = 1;
const MASK: u16 = 0xffff;

fn compiled() -> Compiled {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build");
    Compiled::load(&build).expect("the compiled program in p4/build")
}

fn switch(compiled: &Compiled) -> Switch {
    let info = read_info(&compiled.p4info).expect("P4Info");
    let mut switch = Switch::new(Arc::new(Program::load(&compiled.json, &info).expect("the program")));
    let updates: Vec<Update> = entries().iter().map(to_wire).map(Update::insert).collect();
    switch.write(&updates, Atomicity::ContinueOnError).expect("entries");
    switch
}

/// A unit for each method, chosen by the last byte of the source MAC.
fn entries() -> Vec<Entry> {
    let role = PortRole::Link { link: LinkIndex(0), side: Side::Lan, peer: WAN };
    let mut entries = vec![PortEntry { port: LAN, role }.entry()];
    for method in Method::ALL {
        let unit = UnitId(method as u8);
        let mode = UnitMode::Balance { method, bucket_mask: MASK, primary: false };
        entries.push(UnitEntry { unit, mode }.entry());
        for bucket in 0..=MASK {
            let [pair, core] = bucket.to_be_bytes();
            let forwarding = BucketForwarding::Pair { pair: PairId(pair.into()), core: Core(core) };
            entries.push(BucketEntry { unit, bucket: BucketIndex(bucket), forwarding }.entry());
        }
        for family in Family::BOTH {
            let mut matches = RuleMatch::default();
            matches.set(RuleField::SrcMac, unit.0.into(), 0xff);
            let priority = 1 + i32::from(unit.0);
            let action = RuleAction::ToUnit(unit);
            entries.push(RuleEntry { family, priority, matches, action }.entry());
        }
    }
    for pair in (0..PAIRS).map(PairId) {
        let port = PortId(FIRST_PORT + pair.0);
        entries.push(PairPortEntry { pair, side: Side::Lan, port }.entry());
        entries.push(PairStateEntry { pair, forwarding: PairForwarding::Up }.entry());
    }
    entries
}

/// A frame that goes to the unit of a method.
fn frame(method: Method, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, method as u8];
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

fn v4(method: Method, src: u32, dst: u32, proto: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, 64, proto, 0, 0];
    packet.extend([src, dst].iter().flat_map(|address| address.to_be_bytes()));
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    frame(method, 0x0800, &packet)
}

fn v6(method: Method, src: u128, dst: u128, proto: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 4, proto, 64];
    packet.extend([src, dst].iter().flat_map(|address| address.to_be_bytes()));
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    frame(method, 0x86dd, &packet)
}

fn session(frame: &[u8]) -> Session {
    parse(frame).session.expect("a session")
}

/// The bucket that the program chose.
fn bucket(switch: &mut Switch, frame: &[u8]) -> u16 {
    let output = switch.process(LAN.0, frame, 0);
    let [(port, sent)] = output.sent.as_slice() else { panic!("one frame to an appliance: {output:?}") };
    assert_eq!(sent[12..14], [0x88, 0xb6], "a steering header");
    u16::from_be_bytes([u8::try_from(port - FIRST_PORT).expect("a pair's port"), sent[14]])
}

fn random_frame(rng: &mut Rng, number: u64) -> (Method, Vec<u8>) {
    let method = Method::ALL[(number / 2 % 4) as usize];
    let proto = if number % 16 < 12 { rng.any([6, 17, 132]) } else { 1 };
    let ports = [rng.next_u64() as u16, rng.next_u64() as u16];
    if number.is_multiple_of(2) {
        let (src, dst) = (rng.next_u64() as u32, rng.next_u64() as u32);
        // Structured plans too: neighbours in one network.
        let src = if number.is_multiple_of(10) { dst ^ rng.below(256) as u32 } else { src };
        return (method, v4(method, src, dst, proto, ports));
    }
    let mut wide = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let (src, dst) = (wide(), wide());
    let src = if number % 10 == 1 { dst ^ (src & 0xffff) } else { src };
    (method, v6(method, src, dst, proto, ports))
}

#[test]
fn a_million_pairs_of_addresses_fall_into_the_same_buckets() {
    let compiled = compiled();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let compiled = &compiled;
            scope.spawn(move || {
                let mut switch = switch(compiled);
                let mut rng = Rng::new(7 + thread);
                for number in (thread..PAIRS_OF_ADDRESSES).step_by(threads as usize) {
                    // Neighbours of a number have other methods and families whatever the number of threads.
                    let (method, frame) = random_frame(&mut rng, number / threads);
                    let ours = hash(&session(&frame), method, Side::Lan) as u16;
                    assert_eq!(bucket(&mut switch, &frame), ours, "{method} {}", hex::encode(&frame));
                }
            });
        }
    });
}

/// Sessions whose hash is all ones. v1model's `hash` computes base + H % max: with a max of 0xffffffff these alone fall
/// into bucket 0 (contract, "Hash").
fn all_ones() -> Vec<(Method, Vec<u8>)> {
    let network = 0x2001_0db8_u128 << 96;
    let high = network | 0xff << 64 | 2 << 32 | 0xd96b_b046;
    vec![
        (Method::Layer3, v4(Method::Layer3, 0x0a00_0001, 0x54ef_b470, 6, [1, 2])),
        (Method::Layer3, v4(Method::Layer3, 0x54ef_b470, 0x0a00_0001, 6, [1, 2])),
        (Method::Layer4, v4(Method::Layer4, 0x0a00_0001, 0xd557_74af, 17, [40000, 53])),
        (Method::DstIp, v4(Method::DstIp, 0x0a00_0001, 0xffff_ffff, 6, [1, 2])),
        (Method::SrcIp, v4(Method::SrcIp, 0xffff_ffff, 0x0a00_0001, 6, [1, 2])),
        (Method::Layer3, v6(Method::Layer3, network | 1, high, 6, [1, 2])),
        (Method::DstIp, v6(Method::DstIp, 1, network | 7 << 32 | 0x3e41_b3c5, 6, [1, 2])),
        (Method::SrcIp, v6(Method::SrcIp, network | 7 << 32 | 0x3e41_b3c5, 1, 6, [1, 2])),
    ]
}

#[test]
fn a_hash_of_all_ones_falls_into_the_last_bucket() {
    let mut switch = switch(&compiled());
    for (method, frame) in all_ones() {
        assert_eq!(hash(&session(&frame), method, Side::Lan), u32::MAX, "{method}");
        assert_eq!(bucket(&mut switch, &frame), MASK, "{method}");
    }
}

#[test]
fn a_modulus_of_all_ones_is_found_by_them() {
    let mut compiled = compiled();
    let wrong = compiled.json.replace("0x0000000100000000", "0x00000000ffffffff");
    assert_ne!(wrong, compiled.json);
    compiled.json = wrong;
    let mut switch = switch(&compiled);
    for (method, frame) in all_ones() {
        assert_eq!(bucket(&mut switch, &frame), 0, "{method}");
    }
}
