//! Frames of every kind that the contract's parse knows, well-formed and not, from a seed.

pub mod corpus;
mod ip;
mod mutation;

pub use mutation::{mutate, reversed};

use crate::rng::Rng;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_ARP: u16 = 0x0806;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_MPLS: u16 = 0x8847;
const TYPE_MPLS_MULTICAST: u16 = 0x8848;
const TYPE_PPPOE: u16 = 0x8864;
const TYPE_KEEP_ALIVE: u16 = 0x88b5;
const TYPE_STEERING: u16 = 0x88b6;
const TYPE_LLDP: u16 = 0x88cc;

/// TPIDs of tags that the contract parses.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// A frame without mistakes in its layers, most of the time; what it carries and how deep is the seed's.
pub fn generate(rng: &mut Rng) -> Vec<u8> {
    let mut frame = macs(rng);
    for _ in 0..rng.weighted(&[50, 18, 12, 10, 7, 3]) {
        let tpid = if rng.chance(1, 40) { 0x9200 } else { rng.any(TAGS) };
        frame.extend_from_slice(&tpid.to_be_bytes());
        frame.extend_from_slice(&(rng.next_u64() as u16).to_be_bytes());
    }
    let (ethertype, payload) = network(rng);
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend(payload);
    if frame.len() < 60 && rng.chance(1, 2) {
        frame.resize(60, 0);
    } else if rng.chance(1, 12) {
        let padding = rng.between(1, 40) as usize;
        frame.extend(rng.bytes(padding));
    }
    frame
}

/// A keep-alive's EtherType and what stands behind it.
pub fn keep_alive_frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = macs(rng);
    frame.extend_from_slice(&TYPE_KEEP_ALIVE.to_be_bytes());
    frame.extend(keep_alive(rng));
    frame
}

fn macs(rng: &mut Rng) -> Vec<u8> {
    let mut macs = rng.bytes(12);
    match rng.below(4) {
        0 => macs[..6].fill(0xff),
        1 => macs[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]),
        2 => macs[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, rng.below(16) as u8]),
        _ => {}
    }
    macs
}

/// What follows the tags, with its EtherType or length.
fn network(rng: &mut Rng) -> (u16, Vec<u8>) {
    match rng.weighted(&[54, 16, 10, 7, 2, 4, 3, 2, 2]) {
        0 => ip::plain(rng),
        1 => {
            let ethertype = if rng.chance(1, 5) { TYPE_MPLS_MULTICAST } else { TYPE_MPLS };
            (ethertype, labels(rng))
        }
        2 => (TYPE_PPPOE, pppoe(rng)),
        3 => llc(rng),
        4 => (TYPE_ARP, arp(rng)),
        5 => (TYPE_KEEP_ALIVE, keep_alive(rng)),
        6 => (TYPE_STEERING, steered(rng)),
        7 => (TYPE_LLDP, rng.bytes(46)),
        _ => {
            let length = rng.below(64) as usize;
            (rng.between(0x0600, 0xffff) as u16, rng.bytes(length))
        }
    }
}

fn labels(rng: &mut Rng) -> Vec<u8> {
    let depth = rng.weighted(&[0, 30, 20, 10, 8, 8, 12, 8, 4]);
    let mut stack = Vec::new();
    for label in 1..=depth {
        let mut entry = rng.bytes(4);
        let bottom = label == depth && !rng.chance(1, 30);
        entry[2] = entry[2] & 0xfe | u8::from(bottom);
        stack.extend(entry);
    }
    stack.extend(below_labels(rng));
    stack
}

/// What stands below labels: nothing there says what it is.
fn below_labels(rng: &mut Rng) -> Vec<u8> {
    match rng.weighted(&[50, 20, 22, 4, 4]) {
        0 => ip::v4_whole(rng),
        1 => ip::v6_whole(rng),
        2 => {
            // A pseudowire without a control word: the inner destination MAC comes first, and may begin like IP.
            let mut inner = generate_inner(rng);
            inner[0] = rng.any([0x45, 0x40, 0x4f, 0x46, 0x60, 0x6c, 0x00]);
            inner
        }
        3 => {
            // With a control word (RFC 4385): the first nibble is 0.
            let mut inner = vec![0, 0, 0, 0];
            inner.extend(generate_inner(rng));
            inner
        }
        _ => Vec::new(),
    }
}

/// An Ethernet frame within a pseudowire.
fn generate_inner(rng: &mut Rng) -> Vec<u8> {
    let mut frame = macs(rng);
    let (ethertype, payload) = ip::plain(rng);
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

fn pppoe(rng: &mut Rng) -> Vec<u8> {
    let version_type = if rng.chance(1, 12) { rng.next_u64() as u8 } else { 0x11 };
    let code = if rng.chance(1, 8) { rng.any([0x07, 0x09, 0x19, 0x65, 0xa7, 1]) } else { 0 };
    let (protocol, payload) = match rng.weighted(&[45, 40, 10, 5]) {
        0 => (0x0021u16, ip::v4_whole(rng)),
        1 => (0x0057, ip::v6_whole(rng)),
        2 => (0xc021, rng.bytes(20)),
        _ => (rng.any([0x0021, 0x0057, 0x0281, 0x8021]), rng.bytes(24)),
    };
    let mut bytes = vec![version_type, code];
    bytes.extend_from_slice(&(rng.next_u64() as u16).to_be_bytes());
    bytes.extend_from_slice(&(payload.len() as u16 + 2).to_be_bytes());
    bytes.extend_from_slice(&protocol.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// IEEE 802.2 behind a length, right or wrong; lengths that begin like an EtherType too.
fn llc(rng: &mut Rng) -> (u16, Vec<u8>) {
    let length = rng.any([0, 1, 2, 3, 35, 46, 100]);
    let mut payload = rng.bytes(length);
    let addresses = rng.any([[0x42, 0x42], [0xaa, 0xaa], [0xfe, 0xfe], [0xe0, 0xe0], [0xff, 0xff]]);
    for (byte, address) in payload.iter_mut().zip(addresses) {
        *byte = address;
    }
    let said = match rng.below(4) {
        0 => rng.below(0x600) as u16,
        1 => rng.any([0, 0x2ff, 0x3ff, 0x400, 0x4ff, 0x5dc, 0x5ff]),
        _ => length as u16,
    };
    (said, payload)
}

fn arp(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, rng.any([1, 2])];
    bytes.extend(rng.bytes(20));
    bytes
}

/// A keep-alive, whole or cut; whether its tag is right is not the data plane's affair.
fn keep_alive(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = b"SLKA\x01".to_vec();
    bytes.extend(rng.bytes(41));
    if rng.chance(1, 4) {
        bytes.truncate(rng.below(46) as usize);
    }
    bytes
}

/// What stands behind a steering TPID: core, link, and a frame's rest.
fn steered(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = rng.bytes(2);
    let (ethertype, payload) = ip::plain(rng);
    bytes.extend_from_slice(&ethertype.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use dataplane::{NotIp, parse};

    use super::*;

    #[test]
    fn the_generator_reaches_every_part_of_the_parse() {
        let mut rng = Rng::new(1);
        let (mut v4, mut v6, mut tunnels, mut fragments, mut ports) = (0, 0, 0, 0, 0);
        let (mut tags, mut labels, mut pppoe, mut llc, mut too_deep) = ([0; 4], [0; 7], 0, 0, [0; 2]);
        for _ in 0..20_000 {
            let parsed = parse(&generate(&mut rng));
            tags[parsed.vlans().len()] += 1;
            labels[usize::from(parsed.mpls_depth)] += 1;
            pppoe += u32::from(parsed.pppoe);
            llc += u32::from(parsed.llc.is_some());
            tunnels += u32::from(parsed.tunnel);
            match parsed.not_ip() {
                Some(NotIp::VlanTooDeep) => too_deep[0] += 1,
                Some(NotIp::MplsTooDeep) => too_deep[1] += 1,
                _ => {}
            }
            let Some(session) = parsed.session else { continue };
            match session.addresses.version() {
                4 => v4 += 1,
                _ => v6 += 1,
            }
            fragments += u32::from(session.fragment);
            ports += u32::from(session.ports.is_some());
        }
        let counts = [v4, v6, tunnels, fragments, ports, pppoe, llc, too_deep[0], too_deep[1]];
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
        assert!(tags.iter().chain(&labels).all(|count| *count > 100), "{tags:?} {labels:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_frames() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..200).map(|_| generate(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
