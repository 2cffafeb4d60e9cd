//! Steered probes (docs/probes.md).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use dataplane::keepalive::{Direction, KeepAlive, KeepAliveFault, KeepAliveKey};
use dataplane::probe::{self, Envelope, PROBE_BODY, PROBE_OFFSETS, Probe, ProbeKind};
use dataplane::{Addresses, Core, LinkIndex, Nanos, PairId, Side, SteeringMode, parse};
use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use proptest::prelude::*;

const KEY: KeepAliveKey = KeepAliveKey([7; 16]);
const INDEX: LinkIndex = LinkIndex(255);

fn kind() -> impl Strategy<Value = ProbeKind> {
    prop_oneof![
        any::<u8>().prop_map(|core| ProbeKind::Core(Core(core))),
        Just(ProbeKind::Ip),
        Just(ProbeKind::Negative),
    ]
}

fn any_probe() -> impl Strategy<Value = Probe> {
    let direction = prop::sample::select(&Direction::BOTH[..]);
    (any::<u16>(), direction, any::<u64>(), any::<u64>(), any::<u64>(), kind()).prop_map(
        |(pair, direction, instance, sequence, transmit, kind)| Probe {
            pair: PairId(pair),
            direction,
            instance,
            sequence,
            transmit: Nanos(transmit),
            kind,
        },
    )
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let v4 = any::<(u32, u16)>().prop_map(|(ip, port)| SocketAddrV4::new(Ipv4Addr::from(ip), port));
    let v6 = any::<(u128, u16)>().prop_map(|(ip, port)| SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, 0));
    prop_oneof![
        Just(Envelope::Ethernet),
        (v4.clone(), v4).prop_map(|(src, dst)| Envelope::UdpV4 { src, dst }),
        (v6.clone(), v6).prop_map(|(src, dst)| Envelope::UdpV6 { src, dst }),
    ]
}

fn steering() -> impl Strategy<Value = SteeringMode> {
    prop_oneof![
        Just(SteeringMode::default()),
        Just(SteeringMode::Dot1q { tpid: 0x8100, base_vid: 100 }),
        Just(SteeringMode::Native { tpid: 0x9100 }),
    ]
}

fn header(steering: SteeringMode, kind: ProbeKind) -> [u8; 4] {
    let core = if let ProbeKind::Core(core) = kind { core } else { Core(0) };
    steering.encode(core, INDEX)
}

fn without_header(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &frame[16..]].concat()
}

/// RFC 1071 over the UDP datagram and its pseudo header: 0xffff where the checksum is right.
fn udp_sum(frame: &[u8]) -> u16 {
    let frame = without_header(frame);
    let packet = PacketHeaders::from_ethernet_slice(&frame).unwrap();
    let Some(TransportHeader::Udp(udp)) = &packet.transport else { panic!("no UDP in {frame:02x?}") };
    let payload = packet.payload.slice();
    assert_eq!(usize::from(udp.length), 8 + payload.len());
    assert_ne!(udp.checksum, 0);
    let wanted = match &packet.net {
        Some(NetHeaders::Ipv4(ip, _)) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!(ip.time_to_live, 64);
            udp.calc_checksum_ipv4(ip, payload)
        }
        Some(NetHeaders::Ipv6(ip, _)) => {
            assert_eq!(ip.hop_limit, 64);
            udp.calc_checksum_ipv6(ip, payload)
        }
        other => panic!("no IP: {other:?}"),
    };
    let wanted = wanted.unwrap();
    assert_eq!(udp.checksum, wanted);
    wanted
}

proptest! {
    #[test]
    fn what_is_written_reads_back_with_any_time_and_padding(
        sent in any_probe(), envelope in envelope(), mode in steering(), padding in 0usize..100, later: u64,
    ) {
        let mut frame = sent.encode(&KEY, header(mode, sent.kind), envelope);
        prop_assert!(frame.len() >= 60);
        prop_assert_eq!(mode.decode(&frame).map(|found| found.link), Some(INDEX));
        frame.resize(frame.len() + padding, 0);
        prop_assert_eq!(Probe::decode(&frame, &KEY, sent.instance), Ok(sent));
        prop_assert!(probe::stamp(&mut frame, Nanos(later)));
        let found = Probe::decode(&frame, &KEY, sent.instance);
        prop_assert_eq!(found, Ok(Probe { transmit: Nanos(later), ..sent }));
    }

    #[test]
    fn a_transmit_time_that_is_written_later_leaves_the_udp_checksum_right(
        sent in any_probe(), envelope in envelope(), later: u64,
    ) {
        prop_assume!(envelope != Envelope::Ethernet);
        let unsent = Probe { transmit: Nanos(0), ..sent };
        let mut frame = unsent.encode(&KEY, header(SteeringMode::default(), sent.kind), envelope);
        let before = udp_sum(&frame);
        prop_assert!(probe::stamp(&mut frame, Nanos(later)));
        prop_assert_eq!(udp_sum(&frame), before);
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_refused(sent in any_probe(), envelope in envelope()) {
        let frame = sent.encode(&KEY, header(SteeringMode::default(), sent.kind), envelope);
        let body = probe::find(&frame).unwrap();
        prop_assert_eq!(frame.len(), body + PROBE_BODY);
        for bit in body * 8..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = Probe::decode(&flipped, &KEY, sent.instance);
            prop_assert!(found.is_err(), "bit {} of byte {}: {:?}", bit % 8, bit / 8 - body, found);
        }
    }

    #[test]
    fn another_key_and_another_instance_are_told_apart(sent in any_probe(), key: [u8; 16], instance: u64) {
        prop_assume!(key != KEY.0 && instance != sent.instance);
        let frame = sent.encode(&KEY, header(SteeringMode::default(), sent.kind), Envelope::Ethernet);
        let wrong_key = Probe::decode(&frame, &KeepAliveKey(key), sent.instance);
        prop_assert_eq!(wrong_key, Err(KeepAliveFault::WrongTag));
        let wrong_instance = Probe::decode(&frame, &KEY, instance);
        prop_assert_eq!(wrong_instance, Err(KeepAliveFault::WrongInstance(sent.instance)));
    }

    #[test]
    fn a_cut_probe_is_none(sent in any_probe(), envelope in envelope(), at: prop::sample::Index) {
        let mut frame = sent.encode(&KEY, header(SteeringMode::default(), sent.kind), envelope);
        let body = probe::find(&frame).unwrap();
        frame.truncate(at.index(frame.len()));
        prop_assert_eq!(Probe::decode(&frame, &KEY, sent.instance), Err(KeepAliveFault::Malformed));
        let has_place = frame.len() >= body + 40;
        prop_assert_eq!(probe::find(&frame).is_some(), has_place);
        let before = frame.clone();
        prop_assert_eq!(probe::stamp(&mut frame, Nanos(9)), has_place);
        prop_assert!(has_place || frame == before);
    }

    #[test]
    fn a_plain_keep_alive_is_no_steered_probe_nor_the_other_way_round(
        sent in any_probe(), envelope in envelope(), padding in 0usize..80,
    ) {
        let Probe { pair, direction, instance, sequence, transmit, .. } = sent;
        let mut plain = KeepAlive { pair, direction, instance, sequence, transmit }.encode(&KEY).to_vec();
        plain.resize(plain.len() + padding, 0);
        prop_assert_eq!(probe::find(&plain), None);
        let steered = sent.encode(&KEY, header(SteeringMode::default(), sent.kind), envelope);
        let found = KeepAlive::decode(&steered, &KEY, instance);
        prop_assert_eq!(found, Err(KeepAliveFault::Malformed));
        prop_assert_eq!(&plain[..12], &steered[..12], "one pair of addresses for both");
    }

    #[test]
    fn an_appliance_reads_an_ip_packet_behind_the_header(sent in any_probe(), envelope in envelope()) {
        let frame = sent.encode(&KEY, header(SteeringMode::default(), sent.kind), envelope);
        let parsed = parse(&without_header(&frame));
        let wanted = match envelope {
            Envelope::Ethernet => None,
            Envelope::UdpV4 { src, dst } => {
                let addresses = Addresses::V4 { src: (*src.ip()).into(), dst: (*dst.ip()).into() };
                Some((addresses, src.port(), dst.port()))
            }
            Envelope::UdpV6 { src, dst } => {
                let addresses = Addresses::V6 { src: (*src.ip()).into(), dst: (*dst.ip()).into() };
                Some((addresses, src.port(), dst.port()))
            }
        };
        let found = parsed.session.map(|session| {
            assert_eq!(session.proto, 17);
            let ports = session.ports.unwrap();
            (session.addresses, ports.src, ports.dst)
        });
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn what_only_looks_like_a_probe_keeps_its_bytes() {
    let sent = Probe {
        pair: PairId(3),
        direction: Direction::LanToWan,
        instance: 9,
        sequence: 1,
        transmit: Nanos(0),
        kind: ProbeKind::Ip,
    };
    let v4 = |text: &str| text.parse::<SocketAddrV4>().unwrap();
    let envelope = Envelope::UdpV4 { src: v4("192.0.2.1:7"), dst: v4("198.51.100.1:9") };
    let frame = sent.encode(&KEY, SteeringMode::default().encode(Core(0), INDEX), envelope);
    assert_eq!(probe::find(&frame), Some(PROBE_OFFSETS[1]));
    // EtherType, IHL, protocol, magic.
    for (at, value) in [(16, 0x09), (18, 0x46), (27, 6), (PROBE_OFFSETS[1], b's')] {
        let mut other = frame.clone();
        other[at] = value;
        let before = other.clone();
        assert!(!probe::stamp(&mut other, Nanos(5)), "byte {at}");
        assert_eq!(other, before);
    }
    // Any header is one.
    let mut other = frame;
    other[12..16].copy_from_slice(&[0x81, 0x00, 0x60, 0x64]);
    assert!(probe::stamp(&mut other, Nanos(5)));
}

#[test]
fn addresses_of_two_ip_versions_make_no_packet() {
    let v4: SocketAddr = "192.0.2.1:7".parse().unwrap();
    let v6: SocketAddr = "[2001:db8::1]:7".parse().unwrap();
    assert!(matches!(Envelope::udp(v4, v4), Some(Envelope::UdpV4 { .. })));
    assert!(matches!(Envelope::udp(v6, v6), Some(Envelope::UdpV6 { .. })));
    assert_eq!(Envelope::udp(v4, v6), None);
}

#[test]
fn the_macs_tell_the_directions_apart() {
    let of = |direction| {
        let sent = Probe {
            pair: PairId(1),
            direction,
            instance: 2,
            sequence: 3,
            transmit: Nanos(4),
            kind: ProbeKind::Core(Core(5)),
        };
        sent.encode(&KEY, SteeringMode::default().encode(Core(5), INDEX), Envelope::Ethernet)
    };
    let [there, back] = Direction::BOTH.map(of);
    assert_eq!(there[..6], back[6..12]);
    assert_eq!(there[6..12], back[..6]);
    assert_eq!(there[6..12][5], Side::Lan.bit());
}
