//! etherparse, which nobody here wrote, reads the same frames: what it finds, we find.

use std::fs;
use std::path::Path;

use dataplane::{Addresses, parse};
use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv4Options, Ipv6Extensions, Ipv6FragmentHeader,
    Ipv6Header, Ipv6RawExtHeader, LaxNetSlice, LaxSlicedPacket, PacketBuilder, TransportSlice, VlanId,
    ip_number,
};
use proptest::prelude::*;

use crate::frames::{around, packet};
use crate::parse::vectors;

/// Compares where etherparse finds an IP header and no tunnel comes into it; whether it did.
fn agrees(frame: &[u8]) -> bool {
    let Ok(theirs) = LaxSlicedPacket::from_ethernet(frame) else { return false };
    let ours = parse(frame);
    let (addresses, payload) = match &theirs.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let src = u32::from(header.source_addr());
            let dst = u32::from(header.destination_addr());
            (Addresses::V4 { src, dst }, ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let src = u128::from(header.source_addr());
            let dst = u128::from(header.destination_addr());
            (Addresses::V6 { src, dst }, ip.payload())
        }
        _ => return false,
    };
    // In its lax mode it believes the version nibble over the EtherType; the contract does not.
    if ours.packet_type != if addresses.version() == 4 { 0x0800 } else { 0x86dd } {
        return false;
    }
    let session = ours.session.unwrap_or_else(|| panic!("etherparse finds {addresses:?} in {frame:02x?}"));
    // etherparse reads through AH and through more extension headers than the contract wants read.
    if ours.tunnel || theirs.stop_err.is_some() || [0, 43, 44, 51, 60].contains(&session.proto) {
        return false;
    }
    assert_eq!(session.addresses, addresses);
    assert_eq!(session.proto, payload.ip_number.0, "{frame:02x?}");
    assert_eq!(session.fragment, payload.fragmented, "{frame:02x?}");
    let ports = session.ports.map(|ports| (ports.src, ports.dst));
    match &theirs.transport {
        Some(TransportSlice::Udp(udp)) => {
            assert_eq!(ports, Some((udp.source_port(), udp.destination_port())))
        }
        Some(TransportSlice::Tcp(tcp)) => {
            assert_eq!(ports, Some((tcp.source_port(), tcp.destination_port())))
        }
        _ => {}
    }
    let vids: Vec<u16> = theirs.vlan_ids().iter().map(|vid| vid.value()).collect();
    assert_eq!(ours.vlans(), vids);
    true
}

#[test]
fn vectors_read_alike() {
    let read = vectors().iter().filter(|(_, frame)| agrees(frame)).count();
    assert!(read >= 20, "etherparse understands {read} vectors only");
}

#[test]
fn captured_frames_read_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let (mut read, mut all) = (0, 0);
    for side in ["lan", "wan"] {
        let file = fs::File::open(folder.join(format!("link1-{side}.pcap"))).unwrap();
        let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
        while let Some(frame) = reader.next_packet() {
            read += usize::from(agrees(&frame.unwrap().data));
            all += 1;
        }
    }
    println!("etherparse understands {read} of {all} captured frames");
    assert!(read * 3 > all, "{read} of {all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn our_frames_read_alike(packet in packet(), around in around()) {
        agrees(&around.frame(packet.ethertype(), &packet.bytes()));
    }

    #[test]
    fn frames_that_it_built_read_alike(
        ends in any::<([u8; 4], [u8; 4], [u8; 16], [u8; 16])>(),
        ports in any::<(u16, u16)>(),
        vids in prop::collection::vec(0u16..4096, 0..=2),
        shape in any::<(bool, bool, bool, bool, bool, bool)>(),
        offset in 0u16..0x2000, options in 0usize..=10, payload in prop::collection::vec(any::<u8>(), 8..64)
    ) {
        let (v6, tcp, more, hop_by_hop, destination, routing_before) = shape;
        let (src4, dst4, src6, dst6) = ends;
        let next = if tcp { ip_number::TCP } else { ip_number::UDP };
        let ip = if v6 {
            let raw = |length: usize| Ipv6RawExtHeader::new_raw(IpNumber(0), &vec![0x11; 6 + length * 8]).unwrap();
            let mut extensions = Ipv6Extensions {
                hop_by_hop_options: hop_by_hop.then(|| raw(options % 3)),
                destination_options: (destination || routing_before).then(|| raw(options % 4)),
                fragment: (more || offset % 2 == 0).then(|| {
                    let offset = IpFragOffset::try_new(offset).unwrap();
                    Ipv6FragmentHeader::new(next, offset, more, 7)
                }),
                ..Ipv6Extensions::default()
            };
            let first = extensions.set_next_headers(next);
            let header = Ipv6Header { source: src6, destination: dst6, next_header: first, hop_limit: 9, ..Ipv6Header::default() };
            IpHeaders::Ipv6(header, extensions)
        } else {
            let mut header = Ipv4Header::new(0, 9, next, src4, dst4).unwrap();
            header.options = Ipv4Options::try_from(&vec![1u8; options * 4][..]).unwrap();
            header.more_fragments = more;
            header.dont_fragment = hop_by_hop;
            header.fragment_offset = IpFragOffset::try_new(if destination { offset } else { 0 }).unwrap();
            IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default())
        };
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let vid = |vid: &u16| VlanId::try_new(*vid).unwrap();
        let step = match &vids[..] {
            [] => ethernet.ip(ip),
            [one] => ethernet.single_vlan(vid(one)).ip(ip),
            [one, two, ..] => ethernet.double_vlan(vid(one), vid(two)).ip(ip),
        };
        let mut frame = Vec::new();
        let (src, dst) = ports;
        if tcp {
            step.tcp(src, dst, 1, 2).write(&mut frame, &payload).unwrap();
        } else {
            step.udp(src, dst).write(&mut frame, &payload).unwrap();
        }
        prop_assert!(agrees(&frame), "{:02x?}", frame);
    }
}
