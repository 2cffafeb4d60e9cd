//! Contract, "Parse".

use std::fs;
use std::path::Path;

use dataplane::frame::{Llc, NotIp, Ports};
use dataplane::{Session, parse};
use proptest::prelude::*;

use crate::frames::{Around, Cut, Packet, TCP, TPIDS, UDP, WITH_PORTS, Wrap, around, gre, packet, plain};

pub(crate) fn vectors() -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/hash.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    vectors
        .iter()
        .map(|v| (v["name"].as_str().unwrap().to_owned(), hex::decode(v["frame"].as_str().unwrap()).unwrap()))
        .collect()
}

fn session(frame: &[u8]) -> Option<Session> {
    parse(frame).session
}

/// What must be so of any bytes at all.
fn sound(frame: &[u8]) {
    let parsed = parse(frame);
    assert_eq!(parsed.session.is_none(), parsed.not_ip().is_some());
    assert!(parsed.vlans().len() <= 3 && parsed.mpls_depth <= 6);
    assert!(parsed.vlans().iter().all(|vid| *vid < 4096));
    assert!(parsed.session.is_some() || !parsed.tunnel);
    if let Some(Session { ports: Some(_), proto, .. }) = parsed.session {
        assert!(WITH_PORTS.contains(&proto));
    }
    // Nothing in front of the frame or behind it is read.
    let mut buffer = vec![0xa5; frame.len() + 128];
    buffer[64..64 + frame.len()].copy_from_slice(frame);
    assert_eq!(parse(&buffer[64..64 + frame.len()]), parsed);
}

#[test]
fn vectors_cut_at_every_length_and_flipped_in_every_byte_stay_sound() {
    for (_, frame) in vectors() {
        for length in 0..=frame.len() {
            sound(&frame[..length]);
        }
        for at in 0..frame.len() {
            for flip in [0x01, 0x10, 0x40, 0x80, 0xff] {
                let mut flipped = frame.clone();
                flipped[at] ^= flip;
                sound(&flipped);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_bytes_are_sound(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        sound(&noise);
    }

    #[test]
    fn mutated_frames_are_sound(
        packet in packet(), around in around(), changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..6), cut: u16
    ) {
        let mut frame = around.frame(packet.ethertype(), &packet.bytes());
        let length = frame.len();
        for (at, byte) in changes {
            frame[usize::from(at) % length] = byte;
        }
        frame.truncate(usize::from(cut) % (length + 1));
        sound(&frame);
    }

    #[test]
    fn what_was_built_is_found(packet in packet(), around in around()) {
        let frame = around.frame(packet.ethertype(), &packet.bytes());
        let parsed = parse(&frame);
        prop_assert_eq!(parsed.session, Some(packet.session()));
        let vids: Vec<u16> = around.tags.iter().map(|(_, tci)| tci & 0xfff).collect();
        prop_assert_eq!(parsed.vlans(), &vids[..]);
        let (labels, pppoe) = match &around.wrap {
            Wrap::Plain => (0, false),
            Wrap::Mpls(labels) => (labels.len() as u8, false),
            Wrap::Pppoe(_) => (0, true),
        };
        prop_assert_eq!((parsed.mpls_depth, parsed.pppoe, parsed.tunnel), (labels, pppoe, false));
    }

    /// A shorter frame may show less, never something else.
    #[test]
    fn a_cut_frame_never_shows_other_addresses(packet in packet(), around in around()) {
        let frame = around.frame(packet.ethertype(), &packet.bytes());
        for length in 0..frame.len() {
            if let Some(found) = session(&frame[..length]) {
                prop_assert_eq!(found.addresses, packet.addresses);
                if let Some(ports) = found.ports {
                    prop_assert_eq!(ports, packet.ports);
                }
            }
        }
    }

    #[test]
    fn tunnels_show_their_inner_header(
        outer in packet(), inner in packet(), around in around(), kind in 0u8..2, flags in 0u16..16
    ) {
        let gre_header = gre((flags & 1) << 15 | (flags & 2) << 12 | (flags & 4) << 10, inner.ethertype());
        let (proto, header) = match (kind, inner.addresses.version()) {
            (0, 4) => (4, Vec::new()),
            (0, _) => (41, Vec::new()),
            _ => (47, gre_header),
        };
        let outer = Packet { proto, ..outer };
        let body = [header.as_slice(), &inner.bytes()].concat();
        let parsed = parse(&around.frame(outer.ethertype(), &outer.around(&body)));
        let below_fragment = outer.session().fragment;
        let expect = if below_fragment { outer.session() } else { inner.session() };
        prop_assert_eq!(parsed.session, Some(expect));
        prop_assert_eq!(parsed.tunnel, !below_fragment);
        // One level only.
        let three = outer.around(&[header.as_slice(), &outer.around(&body)].concat());
        let found = session(&around.frame(outer.ethertype(), &three)).unwrap();
prop_assert_eq!((found.addresses, found.proto, found.ports), (outer.addresses, proto, None));
    }
}

fn tcp4() -> Packet {
    Packet::v4([10, 0, 0, 1], [80, 0, 0, 1], TCP)
}

fn udp6() -> Packet {
    Packet::v6("2001:db8::1", "2001:db8:ffff::2", UDP)
}

#[test]
fn do_not_fragment_is_no_fragment() {
    let packet = Packet { dont_fragment: true, ..tcp4() };
    let found = session(&plain(&packet)).unwrap();
    assert!(!found.fragment);
    assert_eq!(found.ports, Some(packet.ports));
    // The reserved bit of RFC 791 is none either.
    let mut frame = plain(&tcp4());
    frame[20] |= 0x80;
    assert!(!session(&frame).unwrap().fragment);
}

#[test]
fn a_fourth_tag_and_a_seventh_label_have_verdicts_of_their_own() {
    for depth in 0..=5usize {
        for tpid in TPIDS {
            let around =
                Around { tags: (0..depth).map(|vid| (tpid, vid as u16)).collect(), ..Around::default() };
            let parsed = parse(&around.frame(0x0800, &tcp4().bytes()));
            assert_eq!(parsed.not_ip(), (depth > 3).then_some(NotIp::VlanTooDeep), "{depth} tags");
            assert_eq!(parsed.vlans().len(), depth.min(3));
        }
    }
    for depth in 1..=12usize {
        let around = Around { wrap: Wrap::Mpls(vec![0x0001_0040; depth]), ..Around::default() };
        let parsed = parse(&around.frame(0x0800, &tcp4().bytes()));
        assert_eq!(parsed.not_ip(), (depth > 6).then_some(NotIp::MplsTooDeep), "{depth} labels");
        assert_eq!(usize::from(parsed.mpls_depth), depth.min(6));
    }
}

#[test]
fn a_fifth_extension_header_is_not_walked() {
    let options = |count| Packet { extensions: vec![(60, 0); count], ..udp6() };
    for count in 0..=4 {
        assert_eq!(session(&plain(&options(count))), Some(udp6().session()), "{count}");
    }
    let found = session(&plain(&options(5))).unwrap();
    assert_eq!((found.proto, found.ports, found.fragment), (60, None, false));
    // A fragment header is one of the four.
    let found = session(&plain(&Packet { cut: Cut::First, ..options(4) })).unwrap();
    assert_eq!((found.proto, found.fragment), (44, false));
    assert!(session(&plain(&Packet { cut: Cut::First, ..options(3) })).unwrap().fragment);
}

#[test]
fn an_extension_header_that_is_not_wholly_there_ends_the_walk() {
    let packet = Packet { extensions: vec![(0, 1)], payload: vec![], ..udp6() };
    let frame = plain(&packet);
    for length in 54..54 + 16 {
        let found = session(&frame[..length]).unwrap();
        assert_eq!((found.proto, found.ports), (0, None), "{length}");
    }
    assert_eq!(session(&frame[..54 + 16]).unwrap().proto, UDP);
    assert_eq!(session(&frame[..54 + 19]).unwrap().ports, None);
    assert_eq!(session(&frame).unwrap().ports, Some(packet.ports));
}

#[test]
fn an_unknown_next_header_authentication_and_encryption_end_the_walk() {
    for proto in [50, 51, 59, 135, 139, 140, 253, 254] {
        let packet = Packet { extensions: vec![(0, 0)], ..Packet::v6("::1", "::2", proto) };
        // The body could be read as an extension header that leads to UDP.
        let packet = Packet { payload: [vec![UDP, 0], vec![0; 40]].concat(), ..packet };
        let found = session(&plain(&packet)).unwrap();
        assert_eq!((found.proto, found.ports), (proto, None));
    }
}

#[test]
fn only_version_0_of_gre_without_routing_is_opened() {
    let inner = tcp4();
    let outer = Packet::v4([1, 1, 1, 1], [2, 2, 2, 2], 47);
    let through = |flags: u16, protocol: u16| {
        let body = [gre(flags, protocol), inner.bytes()].concat();
        parse(&Around::default().frame(0x0800, &outer.around(&body)))
    };
    for bits in 0..8u16 {
        let flags = (bits & 1) << 15 | (bits & 2) << 12 | (bits & 4) << 10;
        assert_eq!(through(flags, 0x0800).session, Some(inner.session()), "{flags:#06x}");
        for closed in [flags | 0x4000, flags | 1, flags | 2, flags | 4] {
            let parsed = through(closed, 0x0800);
            assert_eq!((parsed.session, parsed.tunnel), (Some(outer.session()), false), "{closed:#06x}");
        }
        for protocol in [0x86dd, 0x6558, 0x8847, 0x88be] {
            assert_eq!(through(flags, protocol).session, Some(outer.session()), "{protocol:#06x}");
        }
    }
}

#[test]
fn a_tunnel_that_announces_the_other_version_stays_outer() {
    for (proto, inner) in [(4, udp6()), (41, tcp4())] {
        let outer = Packet::v4([1, 1, 1, 1], [2, 2, 2, 2], proto);
        let parsed = parse(&Around::default().frame(0x0800, &outer.around(&inner.bytes())));
        assert_eq!((parsed.session, parsed.tunnel), (Some(outer.session()), false));
    }
}

#[test]
fn ports_need_their_four_bytes_and_a_protocol_that_has_them() {
    for proto in 0..=255 {
        let packet = Packet { payload: vec![], ..Packet::v4([1, 0, 0, 1], [1, 0, 0, 2], proto) };
        if [4, 41, 47].contains(&proto) {
            continue;
        }
        let frame = plain(&packet);
        let expect = WITH_PORTS.contains(&proto).then_some(Ports { src: 40_000, dst: 443 });
        assert_eq!(session(&frame).unwrap().ports, expect, "{proto}");
        for cut in 1..=frame.len() - 34 {
            assert_eq!(session(&frame[..frame.len() - cut]).unwrap().ports, None, "{proto}");
        }
    }
}

#[test]
fn behind_labels_only_a_right_checksum_makes_ipv4() {
    let around = Around { wrap: Wrap::Mpls(vec![0x0001_0040]), ..Around::default() };
    for options in [0, 3, 10] {
        let packet = Packet { options, ..tcp4() };
        let frame = around.frame(0x0800, &packet.bytes());
        assert_eq!(session(&frame), Some(packet.session()));
        for at in 18..18 + 20 + options * 4 {
            let mut wrong = frame.clone();
            wrong[at] ^= 0x08;
            assert_eq!(session(&wrong), None, "byte {at}");
        }
    }
    // Elsewhere nobody asks for it: offload leaves it unfinished on its way to the appliance.
    let mut frame = plain(&tcp4());
    frame[24] ^= 0xff;
    assert_eq!(session(&frame), Some(tcp4().session()));
    // IPv6 has none; a nibble of 0 is a control word, and the rest is nothing that we know.
    assert_eq!(session(&around.frame(0x86dd, &udp6().bytes())), Some(udp6().session()));
    for nibble in (0..16u8).filter(|nibble| ![4, 6].contains(nibble)) {
        let mut frame = around.frame(0x0800, &tcp4().bytes());
        frame[18] = nibble << 4 | 5;
        assert_eq!(session(&frame), None);
    }
}

#[test]
fn pppoe_is_a_session_of_version_1() {
    let around = Around { wrap: Wrap::Pppoe(77), ..Around::default() };
    let frame = around.frame(0x0800, &tcp4().bytes());
    assert_eq!(session(&frame), Some(tcp4().session()));
    for (at, value) in [(14, 0x12), (14, 0x21), (15, 0xa7), (20, 0xc0), (21, 0x57)] {
        let mut other = frame.clone();
        other[at] = value;
        assert_eq!(session(&other), None, "byte {at}");
    }
    // Inside labels or after another EtherType it is not looked for.
    let mut other = frame.clone();
    other[13] = 0x63;
    assert_eq!(session(&other), None);
}

#[test]
fn our_own_ethertypes_are_opaque_whatever_follows() {
    for ethertype in [0x88b5, 0x88b6] {
        for tags in 0..=3usize {
            let around = Around { tags: vec![(0x8100, 5); tags], ..Around::default() };
            let body = [vec![0, 0], 0x0800u16.to_be_bytes().to_vec(), tcp4().bytes()].concat();
            let parsed = parse(&around.frame(ethertype, &body));
            assert_eq!((parsed.not_ip(), parsed.packet_type), (Some(NotIp::NotIp), ethertype));
        }
    }
}

#[test]
fn a_length_in_place_of_the_ethertype_means_llc() {
    for length in [0u16, 38, 0x05dc, 0x05ff] {
        for tags in 0..=3usize {
            let around = Around { tags: vec![(0x88a8, 5); tags], ..Around::default() };
            let frame = around.frame(length, &[0x42, 0x43, 3, 0, 0]);
            let parsed = parse(&frame);
            assert_eq!(parsed.llc, Some(Llc { dsap: 0x42, ssap: 0x43 }));
            assert_eq!((parsed.packet_type, parsed.session), (0, None));
            assert_eq!(parse(&frame[..frame.len() - 4]).llc, None);
        }
    }
    assert_eq!(parse(&Around::default().frame(0x0600, &[0x42, 0x42, 3])).llc, None);
}

#[test]
fn macs_and_the_ethertype_after_the_tags_are_found_in_any_frame() {
    let around = Around {
        dst_mac: [0xff; 6],
        src_mac: [0x02, 0x11, 0x22, 0x33, 0x44, 0x55],
        tags: vec![(0x88a8, 0xf001), (0x8100, 0x0fff)],
        ..Around::default()
    };
    let parsed = parse(&around.frame(0x0806, &[0; 28]));
    assert_eq!((parsed.dst_mac, parsed.src_mac), (0xffff_ffff_ffff, 0x0211_2233_4455));
    assert_eq!((parsed.vlans(), parsed.packet_type), (&[1u16, 4095][..], 0x0806));
    let short = parse(&[0xff; 13]);
    assert_eq!((short.dst_mac, short.packet_type, short.not_ip()), (0, 0, Some(NotIp::NotIp)));
}

#[test]
fn odd_addresses_are_ordinary_ones() {
    let ends = [[0; 4], [255; 4], [224, 0, 0, 1], [127, 0, 0, 1], [10, 0, 0, 1]];
    for src in ends {
        for dst in ends {
            let packet = Packet::v4(src, dst, UDP);
            assert_eq!(session(&plain(&packet)), Some(packet.session()));
        }
    }
}
