//! IP headers and what they carry: options, extension headers, fragments, tunnels, layer 4.

use super::{TYPE_IPV4, TYPE_IPV6};
use crate::rng::Rng;

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;
const OPTIONS: u8 = 60;
const SCTP: u8 = 132;
const MOBILITY: u8 = 135;
const UDP_LITE: u8 = 136;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Tunnels within tunnels within tunnels are enough: the contract looks at one level.
const DEEPEST: u8 = 3;

/// An IP packet and its EtherType.
pub(super) fn plain(rng: &mut Rng) -> (u16, Vec<u8>) {
    match rng.weighted(&[50, 46, 4]) {
        0 => (TYPE_IPV4, v4(rng, 0)),
        1 => (TYPE_IPV6, v6(rng, 0)),
        // The wrong EtherType.
        _ => (TYPE_IPV4, v6(rng, 0)),
    }
}

/// An IPv4 packet where nothing says that it is one.
pub(super) fn v4_whole(rng: &mut Rng) -> Vec<u8> {
    v4(rng, 0)
}

/// An IPv6 packet where nothing says that it is one.
pub(super) fn v6_whole(rng: &mut Rng) -> Vec<u8> {
    v6(rng, 0)
}

fn v4(rng: &mut Rng, depth: u8) -> Vec<u8> {
    let (protocol, payload) = upper(rng, depth);
    let words = if rng.chance(1, 4) { rng.between(1, 10) as usize } else { 0 };
    let mut header = vec![0x45 + words as u8, rng.next_u64() as u8];
    header.extend_from_slice(&((20 + 4 * words + payload.len()) as u16).to_be_bytes());
    header.extend(rng.bytes(2));
    let fragment: u16 = match rng.weighted(&[50, 22, 8, 8, 5, 4, 3]) {
        0 => 0,
        1 => 0x4000,
        2 => 0x2000,
        3 => 0x2000 | rng.between(1, 0x1fff) as u16,
        4 => rng.between(1, 0x1fff) as u16,
        // The reserved bit is no fragment.
        5 => 0x8000,
        _ => 0x1fff & (1 << rng.below(13)),
    };
    header.extend_from_slice(&fragment.to_be_bytes());
    header.extend([rng.next_u64() as u8, protocol, 0, 0]);
    header.extend(address_pair(rng, 1));
    header.extend(rng.bytes(4 * words));
    match rng.below(20) {
        0 => header[0] = rng.next_u64() as u8,
        1 => header[0] = 0x40 | rng.below(16) as u8,
        _ => {}
    }
    match rng.weighted(&[70, 15, 15]) {
        0 => set_checksum(&mut header),
        1 => set_double_zero(&mut header, rng),
        _ => header[10..12].copy_from_slice(&(rng.next_u64() as u16).to_be_bytes()),
    }
    header.extend(payload);
    header
}

/// Writes the right checksum (RFC 791) over all of `header`.
pub(super) fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = ones_complement_sum(header);
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
}

/// Makes the rest of the header sum up to 0xffff, by its identification, so that 0 and 0xffff are both right
/// checksums; writes one of them.
fn set_double_zero(header: &mut [u8], rng: &mut Rng) {
    header[10..12].fill(0);
    header[4..6].fill(0);
    let id = 0xffff - ones_complement_sum(header);
    header[4..6].copy_from_slice(&id.to_be_bytes());
    header[10..12].fill(rng.any([0, 0xff]));
}

fn ones_complement_sum(header: &[u8]) -> u16 {
    let mut sum: u32 =
        header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn v6(rng: &mut Rng, depth: u8) -> Vec<u8> {
    let (mut next, mut rest) = upper(rng, depth);
    for _ in 0..rng.weighted(&[45, 18, 12, 10, 9, 6]) {
        (next, rest) = extension(rng, next, rest);
    }
    let mut header = vec![0x60 | rng.below(16) as u8];
    header.extend(rng.bytes(3));
    header.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    header.extend([next, rng.next_u64() as u8]);
    header.extend(address_pair(rng, 4));
    if rng.chance(1, 30) {
        header[0] = rng.next_u64() as u8;
    }
    header.extend(rest);
    header
}

/// Puts an extension header in front of `rest`; its number and all of it.
fn extension(rng: &mut Rng, next: u8, rest: Vec<u8>) -> (u8, Vec<u8>) {
    let mut kind = rng.any([HOP_BY_HOP, ROUTING, OPTIONS, FRAGMENT, FRAGMENT, OPTIONS]);
    if rng.chance(1, 12) {
        kind = rng.any([ESP, AUTHENTICATION, MOBILITY, HIP, SHIM6, 253]);
    }
    let mut header;
    if kind == FRAGMENT {
        let offset_more: u16 = match rng.weighted(&[40, 20, 20, 10, 10]) {
            0 => 0,
            1 => 1,
            2 => (rng.between(1, 0x1fff) as u16) << 3 | rng.below(2) as u16,
            // Reserved bits alone: atomic.
            3 => rng.any([2, 4, 6]),
            _ => 8 << rng.below(13),
        };
        header = vec![next, rng.any([0, 0, 1, 0xff])];
        header.extend_from_slice(&offset_more.to_be_bytes());
        header.extend(rng.bytes(4));
    } else {
        let units = rng.weighted(&[50, 20, 10, 5, 5, 5]);
        let units = if rng.chance(1, 200) { 255 } else { units };
        let said = if rng.chance(1, 40) { rng.next_u64() as u8 } else { units as u8 };
        header = vec![next, said];
        header.extend(rng.bytes(6 + 8 * units));
    }
    header.extend(rest);
    (kind, header)
}

/// Source and destination of so many words: ordinary ones, equal ones, and those where minimum and maximum show.
fn address_pair(rng: &mut Rng, words: usize) -> Vec<u8> {
    let mut pair = rng.bytes(8 * words);
    let (src, dst) = pair.split_at_mut(4 * words);
    match rng.below(10) {
        0 => dst.copy_from_slice(src),
        1 => src.fill(rng.any([0, 0xff])),
        2 => dst.fill(rng.any([0, 0xff])),
        // Structured plans: the same network, few hosts.
        3 | 4 => {
            let host = src.len() - 1;
            src[..host].fill(10);
            dst[..host].fill(10);
        }
        // Some words equal, the others not.
        5 => {
            for (to, from) in dst.chunks_exact_mut(4).zip(src.chunks_exact(4)) {
                if rng.chance(1, 2) {
                    to.copy_from_slice(from);
                }
            }
        }
        // The sign bit of a word must not matter.
        6 => {
            src[0] |= 0x80;
            dst[0] &= 0x7f;
        }
        _ => {}
    }
    pair
}

/// What an IP header carries, and its number.
fn upper(rng: &mut Rng, depth: u8) -> (u8, Vec<u8>) {
    let tunnels = if depth < DEEPEST { 11 } else { 0 };
    match rng.weighted(&[52, tunnels, tunnels, tunnels, 6, 8]) {
        0 => (rng.any([TCP, UDP, DCCP, SCTP, UDP_LITE, TCP, UDP]), layer_4(rng)),
        1 => (GRE, gre(rng, depth + 1)),
        2 => (if rng.chance(1, 20) { IPV6 } else { IPV4 }, v4(rng, depth + 1)),
        3 => (if rng.chance(1, 20) { IPV4 } else { IPV6 }, v6(rng, depth + 1)),
        4 => (rng.any([ICMP, ICMPV6]), rng.bytes(16)),
        _ => {
            let known = [ESP, AUTHENTICATION, HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS, MOBILITY, 59, 103];
            let number = if rng.chance(1, 2) { rng.any(known) } else { rng.next_u64() as u8 };
            let length = rng.below(40) as usize;
            (number, rng.bytes(length))
        }
    }
}

/// Ports and what follows; cut within the ports now and then.
fn layer_4(rng: &mut Rng) -> Vec<u8> {
    let length = if rng.chance(1, 15) { rng.below(6) as usize } else { 8 + rng.below(40) as usize };
    let mut bytes = rng.bytes(length);
    if length >= 4 {
        match rng.below(5) {
            0 => bytes[..4].copy_from_slice(&[0, 53, 0, 53]),
            1 => bytes[..2].copy_from_slice(&[1, 0xbb]),
            2 => bytes[2..4].copy_from_slice(&[1, 0xbb]),
            3 => bytes[..4].copy_from_slice(&[0, 0, 0xff, 0xff]),
            _ => {}
        }
    }
    bytes
}

/// GRE with any of its flags (RFC 2784, RFC 2890, RFC 1701), IP or something else within.
fn gre(rng: &mut Rng, depth: u8) -> Vec<u8> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING_FLAG: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    let mut flags = 0;
    for flag in [CHECKSUM, KEY, SEQUENCE] {
        if rng.chance(1, 2) {
            flags |= flag;
        }
    }
    match rng.below(16) {
        0 => flags |= ROUTING_FLAG,
        1 => flags |= 1,
        2 => flags |= rng.below(8) as u16,
        3 => flags |= 0x0ff8 & rng.next_u64() as u16,
        _ => {}
    }
    let (protocol, payload) = match rng.weighted(&[45, 40, 5, 5, 5]) {
        0 => (TYPE_IPV4, v4(rng, depth)),
        1 => (TYPE_IPV6, v6(rng, depth)),
        2 => (0x6558u16, rng.bytes(30)),
        3 => (0x880b, rng.bytes(30)),
        _ => (rng.any([TYPE_IPV4, TYPE_IPV6, 0x8847, 0x88be]), rng.bytes(44)),
    };
    let mut bytes = flags.to_be_bytes().to_vec();
    bytes.extend_from_slice(&protocol.to_be_bytes());
    let words = [CHECKSUM, KEY, SEQUENCE].iter().filter(|flag| flags & **flag != 0).count();
    bytes.extend(rng.bytes(4 * words));
    bytes.extend(payload);
    bytes
}
