//! Contract, "Hash": the invariants, and an independent computation.

use dataplane::frame::Ports;
use dataplane::{Addresses, Method, Session, Side, hash, parse};
use proptest::prelude::*;

use crate::frames::{Around, Cut, Packet, around, packet};

/// The contract's byte strings through another CRC.
fn independent(session: &Session, method: Method, side: Side) -> u32 {
    let (src, dst) = match session.addresses {
        Addresses::V4 { src, dst } => (src.to_be_bytes().to_vec(), dst.to_be_bytes().to_vec()),
        Addresses::V6 { src, dst } => (src.to_be_bytes().to_vec(), dst.to_be_bytes().to_vec()),
    };
    let input = match method {
        Method::DstIp => {
            if side == Side::Lan {
                dst
            } else {
                src
            }
        }
        Method::SrcIp => {
            if side == Side::Lan {
                src
            } else {
                dst
            }
        }
        Method::Layer3 | Method::Layer4 => {
            let words = || src.chunks(4).zip(dst.chunks(4));
            let mut input: Vec<u8> = words().flat_map(|(a, b)| a.min(b)).copied().collect();
            input.extend(words().flat_map(|(a, b)| a.max(b)));
            input.push(session.proto);
            assert!(matches!(input.len(), 9 | 33));
            match session.ports {
                Some(Ports { src, dst }) if method == Method::Layer4 && !session.fragment => {
                    input.extend(src.min(dst).to_be_bytes());
                    input.extend(src.max(dst).to_be_bytes());
                }
                _ => {}
            }
            input
        }
    };
    crc32fast::hash(&input)
}

fn hash_of(frame: &[u8], method: Method, side: Side) -> u32 {
    hash(&parse(frame).session.expect("an IP header"), method, side)
}

fn side() -> impl Strategy<Value = Side> {
    prop::sample::select(&Side::BOTH[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_hash_is_the_crc_of_the_contract(packet in packet(), around in around(), side in side()) {
        let frame = around.frame(packet.ethertype(), &packet.bytes());
        for method in Method::ALL {
            prop_assert_eq!(hash_of(&frame, method, side), independent(&packet.session(), method, side));
        }
    }

    /// Requests come in by LAN, answers by WAN; each in whatever encapsulation and by whatever link.
    #[test]
    fn both_directions_hash_alike(packet in packet(), there in around(), back in around(), ttl: u8, side in side()) {
        let request = there.frame(packet.ethertype(), &packet.bytes());
        let answer = Packet { ttl, ..packet.reversed() };
        let answer = back.frame(answer.ethertype(), &answer.bytes());
        for method in Method::ALL {
            prop_assert_eq!(
                hash_of(&request, method, side),
                hash_of(&answer, method, side.opposite()),
                "{}", method
            );
        }
        // The symmetric methods do not even care for the side: asymmetric routing is theirs to bear.
        for method in [Method::Layer3, Method::Layer4] {
            prop_assert_eq!(hash_of(&request, method, side), hash_of(&answer, method, side), "{}", method);
        }
    }

    #[test]
    fn all_fragments_and_the_whole_packet_hash_alike(
        whole in packet(), offset in 1u16..0x2000, more: bool, id: u16, around in around()
    ) {
        let whole = Packet { cut: Cut::Whole, extensions: whole.extensions.iter().copied().take(3).collect(), ..whole };
        let expect = |method, side| hash_of(&Around::default().frame(whole.ethertype(), &whole.bytes()), method, side);
        let mut cuts = vec![Cut::First, Cut::Later(offset, more), Cut::Later(1, false)];
        if whole.addresses.version() == 6 {
            cuts.push(Cut::Atomic);
        }
        for cut in cuts {
            let part = Packet { cut, id, ..whole.clone() };
            let frame = around.frame(part.ethertype(), &part.bytes());
            for side in Side::BOTH {
                for method in [Method::Layer3, Method::DstIp, Method::SrcIp] {
                    prop_assert_eq!(hash_of(&frame, method, side), expect(method, side), "{:?}", cut);
                }
                let layer_4 = hash_of(&frame, Method::Layer4, side);
                if cut == Cut::Atomic {
                    prop_assert_eq!(layer_4, expect(Method::Layer4, side));
                } else {
                    prop_assert_eq!(layer_4, expect(Method::Layer3, side), "{:?}", cut);
                }
            }
        }
    }

    #[test]
    fn tags_labels_pppoe_ttl_and_macs_never_change_the_hash(
        packet in packet(), one in around(), other in around(), ttl: u8, id: u16, dont_fragment: bool, options in 0usize..=10
    ) {
        let changed = Packet { ttl, id, dont_fragment, options, ..packet.clone() };
        let one = one.frame(packet.ethertype(), &packet.bytes());
        let other = other.frame(changed.ethertype(), &changed.bytes());
        for method in Method::ALL {
            prop_assert_eq!(hash_of(&one, method, Side::Lan), hash_of(&other, method, Side::Lan));
        }
    }
}

/// Exact for IPv4: over one protocol, unordered pairs of addresses collide only as CRC-32 values do, and
/// CRC-32 of inputs that differ in no more than 32 adjacent bits never does.
#[test]
fn other_servers_of_one_host_never_collide() {
    let mut seen = std::collections::HashSet::new();
    for low in 0..=0xffffu32 {
        let addresses = Addresses::V4 { src: 0x0a00_0001, dst: 0x5000_0000 | low };
        let session = Session { addresses, proto: 6, fragment: false, ports: None };
        assert!(seen.insert(hash(&session, Method::Layer3, Side::Lan)), "{low:#x}");
    }
}
