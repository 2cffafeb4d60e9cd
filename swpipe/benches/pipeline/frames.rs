//! Frames for the benches.

use std::path::Path;

use dataplane::PortId;

/// Ports of the example site's first link.
pub(crate) const LAN: PortId = PortId(4 * 4 + 2);
pub(crate) const WAN: PortId = PortId(4 * 4 + 1);

/// Sessions of most benches.
const SESSIONS: u32 = 8192;
/// Bytes of a frame's place in [`sessions`].
pub(crate) const SLOT: usize = 64;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

/// Addresses of a session; no two are alike.
fn addresses(session: u32) -> [u8; 8] {
    let (src, dst) = (0x0a00_0000 + session * 7, 0xcb00_7100 + session % 251);
    let mut addresses = [0; 8];
    addresses[..4].copy_from_slice(&src.to_be_bytes());
    addresses[4..].copy_from_slice(&dst.to_be_bytes());
    addresses
}

fn ports(session: u32) -> [u8; 4] {
    let [a, b] = (1024 + session as u16).to_be_bytes();
    let [c, d] = 443_u16.to_be_bytes();
    [a, b, c, d]
}

/// IPv4 with TCP in it.
fn v4(session: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend(addresses(session));
    packet.extend(ports(session));
    packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50]);
    packet.resize(46, 0);
    packet
}

/// IPv6 with TCP in it.
fn v6(session: u32) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
    for host in addresses(session).chunks(4) {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(host);
    }
    packet.extend(ports(session));
    packet.resize(60, 0);
    packet
}

fn framed(between: &[u8], packet: impl Fn(u32) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..SESSIONS).map(|session| [&MACS, between, &packet(session)].concat()).collect()
}

/// 64 bytes on the wire, 60 without FCS, each of another session.
pub(crate) fn small() -> Vec<Vec<u8>> {
    framed(&[0x08, 0x00], v4)
}

/// The shortest of IPv6 with TCP.
pub(crate) fn six() -> Vec<Vec<u8>> {
    framed(&[0x86, 0xdd], v6)
}

/// By what stands around the packet.
pub(crate) fn encapsulated() -> [(&'static str, Vec<Vec<u8>>); 8] {
    let inside_gre = |session| {
        let mut packet = vec![0x45, 0, 0, 70, 0, 0, 0, 0, 64, 47, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet.extend([0, 0, 0x08, 0x00]);
        packet.extend(v4(session));
        packet
    };
    // A label's packet is IPv4 only with the right checksum.
    let with_checksum = |session| {
        let mut packet = v4(session);
        let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    [
        ("untagged IPv4", small()),
        ("untagged IPv6", six()),
        ("one tag, IPv4", framed(&[0x81, 0x00, 0, 100, 0x08, 0x00], v4)),
        ("one tag, IPv6", framed(&[0x81, 0x00, 0, 100, 0x86, 0xdd], v6)),
        ("two tags, IPv4", framed(&[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 100, 0x08, 0x00], v4)),
        ("MPLS, two labels", framed(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], with_checksum)),
        ("PPPoE", framed(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 48, 0, 0x21], v4)),
        ("GRE", framed(&[0x08, 0x00], inside_gre)),
    ]
}

/// So many 60-byte frames, each of a session of its own, one behind the other in memory, [`SLOT`] bytes apart.
pub(crate) fn sessions(count: u32) -> Vec<u8> {
    let mut memory = Vec::with_capacity(count as usize * SLOT);
    for session in 0..count {
        memory.extend(MACS);
        memory.extend([0x08, 0x00]);
        memory.extend(v4(session));
        memory.resize(memory.len().next_multiple_of(SLOT), 0);
    }
    memory
}

pub(crate) fn captured(side: &str) -> Vec<Vec<u8>> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let frames = swpipe::capture::read(&vectors.join(format!("link1-{side}.pcap"))).unwrap();
    frames.into_iter().map(|frame| frame.bytes).collect()
}
