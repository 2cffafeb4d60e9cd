//! What a target with a shorter parser sees: less, never something else.

use dataplane::frame::{NotIp, ParseLimits, parse_within};
use dataplane::target::TOFINO1;
use dataplane::{Session, parse};
use proptest::prelude::*;

use crate::frames::{Around, Cut, Packet, TCP, UDP, Wrap, around, gre, packet, plain};
use crate::parse::vectors;

fn limits() -> impl Strategy<Value = ParseLimits> {
    let extension = prop_oneof![Just(8), Just(16), Just(2048), (1u16..=256).prop_map(|units| units * 8)];
    (0u8..=10, 0u8..=10, extension, 0u8..=4).prop_map(
        |(ipv4_options, inner_ipv4_options, ipv6_extension, inner_ipv6_extensions)| ParseLimits {
            ipv4_options,
            inner_ipv4_options,
            ipv6_extension,
            inner_ipv6_extensions,
        },
    )
}

/// The packet with no header longer than the limits.
fn within(mut packet: Packet, options: u8, limits: ParseLimits) -> Packet {
    packet.options = packet.options.min(options.into());
    for (_, units) in &mut packet.extensions {
        *units = (*units).min((limits.ipv6_extension / 8 - 1).min(255) as u8);
    }
    packet
}

/// The same, as the inner packet of a tunnel.
fn inner_within(packet: Packet, limits: ParseLimits) -> Packet {
    let mut packet = within(packet, limits.inner_ipv4_options, limits);
    let room = usize::from(limits.inner_ipv6_extensions);
    if packet.addresses.version() == 6 && room == 0 {
        packet.cut = Cut::Whole; // a fragment header is one of them
    }
    let fragment = usize::from(packet.cut != Cut::Whole);
    packet.extensions.truncate(room.saturating_sub(fragment));
    packet
}

fn frame(packet: &Packet, around: &Around) -> Vec<u8> {
    around.frame(packet.ethertype(), &packet.bytes())
}

const SHORT: ParseLimits =
    ParseLimits { ipv4_options: 2, inner_ipv4_options: 1, ipv6_extension: 8, inner_ipv6_extensions: 1 };

/// The inner packet below GRE.
fn tunnel(inner: &Packet) -> Vec<u8> {
    let outer = Packet { proto: 47, ..Packet::v4([192, 0, 2, 1], [192, 0, 2, 2], 47) };
    Around::default().frame(0x0800, &outer.around(&[gre(0, inner.ethertype()), inner.bytes()].concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn without_limits_any_bytes_are_parsed_alike(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(parse_within(&noise, ParseLimits::NONE), parse(&noise));
    }

    #[test]
    fn what_is_within_the_limits_is_parsed_alike(
        outer in packet(), inner in packet(), around in around(), limits in limits(), tunnel: bool
    ) {
        let (outer, inner) = (within(outer, limits.ipv4_options, limits), inner_within(inner, limits));
        let bytes = if tunnel {
            let body = [gre(0, inner.ethertype()), inner.bytes()].concat();
            let outer = Packet { proto: 47, ..outer };
            around.frame(outer.ethertype(), &outer.around(&body))
        } else {
            frame(&outer, &around)
        };
        prop_assert_eq!(parse_within(&bytes, limits), parse(&bytes));
    }

    /// Of a whole frame: same tags, labels and addresses or none; ports as they are or none.
    #[test]
    fn limits_take_away_and_never_add(packet in packet(), around in around(), limits in limits()) {
        let bytes = frame(&packet, &around);
        let (all, less) = (parse(&bytes), parse_within(&bytes, limits));
        prop_assert_eq!(all.vlans(), less.vlans());
        prop_assert_eq!((all.mpls_depth, all.packet_type, all.pppoe), (less.mpls_depth, less.packet_type, less.pppoe));
        match (all.session, less.session) {
            (Some(all), Some(less)) => {
                prop_assert_eq!(all.addresses, less.addresses);
                prop_assert!(less.ports.is_none() || less.ports == all.ports);
                prop_assert!(all.fragment || !less.fragment);
                prop_assert!(packet.addresses.version() == 6 || all.proto == less.proto);
            }
            (None, found) => prop_assert!(found.is_none()),
            (Some(_), None) => {
                prop_assert!(matches!(around.wrap, Wrap::Mpls(_)) && packet.addresses.version() == 4);
                prop_assert_eq!(less.not_ip(), Some(NotIp::NotIp));
            }
        }
    }
}

#[test]
fn a_long_extension_header_ends_the_walk_at_its_own_number() {
    let packet = Packet {
        extensions: vec![(0, 0), (60, 1), (43, 0)],
        ..Packet::v6("2001:db8::1", "2001:db8::2", TCP)
    };
    let bytes = plain(&packet);
    assert_eq!(parse(&bytes).session, Some(packet.session()));
    let expected = Session { proto: 60, ports: None, ..packet.session() };
    assert_eq!(parse_within(&bytes, SHORT).session, Some(expected));
    assert_eq!(parse_within(&bytes, TOFINO1.parse).session, Some(expected));
    let roomy = ParseLimits { ipv6_extension: 16, ..SHORT };
    assert_eq!(parse_within(&bytes, roomy).session, Some(packet.session()));
}

#[test]
fn a_long_ipv4_header_stands_without_what_follows_it() {
    for (options, whole) in [(2, true), (3, false)] {
        let packet = Packet { options, ..Packet::v4([10, 0, 0, 1], [10, 0, 0, 2], UDP) };
        let bytes = plain(&packet);
        let ports = packet.session().ports.filter(|_| whole);
        assert_eq!(parse_within(&bytes, SHORT).session, Some(Session { ports, ..packet.session() }));
        // Its options need not be there.
        let cut = parse_within(&bytes[..14 + 20], SHORT).session;
        assert_eq!(cut, (!whole).then_some(Session { ports: None, ..packet.session() }));
    }
}

#[test]
fn behind_a_long_ipv4_header_there_is_no_tunnel() {
    let inner = Packet::v4([10, 0, 0, 1], [10, 0, 0, 2], UDP);
    let outer = Packet { options: 3, ..Packet::v4([192, 0, 2, 1], [192, 0, 2, 2], 4) };
    let bytes = Around::default().frame(0x0800, &outer.around(&inner.bytes()));
    assert!(parse(&bytes).tunnel);
    let parsed = parse_within(&bytes, SHORT);
    assert!(!parsed.tunnel);
    assert_eq!(parsed.session, Some(outer.session()));
}

#[test]
fn a_long_inner_ipv4_header_stands_without_what_follows_it() {
    for (options, whole) in [(1, true), (2, false)] {
        let inner = Packet { options, cut: Cut::First, ..Packet::v4([10, 0, 0, 1], [10, 0, 0, 2], UDP) };
        let bytes = tunnel(&inner);
        assert_eq!(parse(&bytes).session, Some(inner.session()));
        let bare = Session { ports: None, fragment: false, ..inner.session() };
        let parsed = parse_within(&bytes, SHORT);
        assert_eq!((parsed.session, parsed.tunnel), (Some(if whole { inner.session() } else { bare }), true));
        assert_eq!(parse_within(&bytes, TOFINO1.parse).session, Some(bare));
    }
}

#[test]
fn inner_extension_headers_are_walked_as_far_as_the_limit_says() {
    let inner = Packet { extensions: vec![(0, 0), (43, 0)], ..Packet::v6("2001:db8::1", "2001:db8::2", TCP) };
    let bytes = tunnel(&inner);
    assert_eq!(parse(&bytes).session, Some(inner.session()));
    let ends_at = |limits, proto| {
        let expected = Session { proto, ports: None, ..inner.session() };
        assert_eq!(parse_within(&bytes, limits).session, Some(expected));
    };
    ends_at(SHORT, 43);
    ends_at(TOFINO1.parse, 0);
    // A fragment header is one of them.
    let first = Packet { cut: Cut::First, ..Packet::v6("2001:db8::1", "2001:db8::2", TCP) };
    let expected = Session { proto: 44, ports: None, fragment: false, ..first.session() };
    assert_eq!(parse_within(&tunnel(&first), TOFINO1.parse).session, Some(expected));
}

#[test]
fn a_long_ipv4_header_below_labels_is_not_ip() {
    let packet = Packet { options: 3, ..Packet::v4([10, 0, 0, 1], [10, 0, 0, 2], UDP) };
    let around = Around { wrap: Wrap::Mpls(vec![100]), ..Around::default() };
    let bytes = frame(&packet, &around);
    assert_eq!(parse(&bytes).session, Some(packet.session()));
    assert_eq!(parse_within(&bytes, SHORT).not_ip(), Some(NotIp::NotIp));
}

#[test]
fn vectors_are_parsed_alike_on_every_target() {
    for (name, frame) in vectors() {
        assert_eq!(parse_within(&frame, TOFINO1.parse), parse(&frame), "{name}");
    }
}
