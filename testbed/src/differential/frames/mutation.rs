//! Mutations: what makes another frame of one, broken or not.

use super::{TAGS, ip};
use crate::frame;
use crate::rng::Rng;

/// Where the headers are: changes beyond hardly matter.
const HEADERS: u64 = 80;

/// EtherTypes that mean something to somebody.
const ETHERTYPES: [u16; 14] = [
    0x0800, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x8847, 0x8848, 0x8864, 0x88b5, 0x88b6, 0x0806, 0x05ff, 0x0600, 0,
];

/// Bytes that mean something: versions, header lengths, protocol and PPP numbers.
const BYTES: [u8; 24] = [
    0, 1, 4, 6, 17, 0x11, 0x21, 33, 41, 43, 44, 0x45, 0x46, 0x4f, 47, 50, 51, 0x57, 60, 0x60, 132, 135, 136,
    255,
];

/// One to four changes; IPv4 checksums may be made right again afterwards.
pub fn mutate(rng: &mut Rng, frame: &mut Vec<u8>) {
    for _ in 0..rng.weighted(&[0, 50, 25, 15, 10]) {
        change(rng, frame);
    }
    if rng.chance(1, 3) {
        repair(frame);
    }
}

fn change(rng: &mut Rng, frame: &mut Vec<u8>) {
    if frame.is_empty() {
        let length = rng.below(20) as usize;
        frame.extend(rng.bytes(length));
        return;
    }
    let length = frame.len() as u64;
    let at = if rng.chance(4, 5) { rng.below(length.min(HEADERS)) } else { rng.below(length) } as usize;
    match rng.weighted(&[20, 12, 12, 14, 8, 8, 6, 5, 5, 6, 4]) {
        0 => frame[at] ^= 1 << rng.below(8),
        1 => frame[at] = rng.next_u64() as u8,
        2 => frame[at] = rng.any(BYTES),
        3 => frame.truncate(at),
        4 => {
            // EtherTypes stand at even places, below tags at multiples of four behind the MACs.
            let at = if rng.chance(2, 3) { 12 + 4 * rng.below(5) as usize } else { at };
            put(frame, at, &rng.any(ETHERTYPES).to_be_bytes());
        }
        5 => insert_tag(rng, frame),
        6 => remove(frame, 12 + 4 * rng.below(6) as usize, 4),
        7 => {
            let at = 14 + 4 * rng.below(5) as usize;
            let again: Vec<u8> = frame.iter().skip(at).take(4).copied().collect();
            insert(frame, at, &again);
        }
        8 => {
            let more = rng.between(1, 64) as usize;
            frame.extend(rng.bytes(more));
        }
        9 => *frame = reversed(frame),
        _ => break_length(rng, frame),
    }
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in frame.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

fn insert(frame: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let at = at.min(frame.len());
    frame.splice(at..at, bytes.iter().copied());
}

fn remove(frame: &mut Vec<u8>, at: usize, count: usize) {
    let from = at.min(frame.len());
    let to = (at + count).min(frame.len());
    frame.drain(from..to);
}

/// Another tag outermost, or the outermost one twice.
fn insert_tag(rng: &mut Rng, frame: &mut Vec<u8>) {
    let outermost: Vec<u8> = frame.iter().skip(12).take(4).copied().collect();
    if rng.chance(1, 3) && outermost.len() == 4 {
        insert(frame, 12, &outermost);
        return;
    }
    let mut tag = rng.any(TAGS).to_be_bytes().to_vec();
    tag.extend(rng.bytes(2));
    insert(frame, 12, &tag);
}

/// The frame as the other end of its session would send it: addresses and ports swapped, MACs too.
#[must_use]
pub fn reversed(frame: &[u8]) -> Vec<u8> {
    let mut back = frame.to_vec();
    if frame.len() >= 12 {
        back[..6].copy_from_slice(&frame[6..12]);
        back[6..12].copy_from_slice(&frame[..6]);
    }
    let Some(packet) = frame::parse(frame, 12) else { return back };
    let mut swap = |at: usize, size: usize| {
        if let (Some(first), Some(second)) = (frame.get(at..at + size), frame.get(at + size..at + 2 * size)) {
            back[at..at + size].copy_from_slice(second);
            back[at + size..at + 2 * size].copy_from_slice(first);
        }
    };
    if packet.src.is_ipv4() {
        swap(packet.ip + 12, 4);
    } else {
        swap(packet.ip + 8, 16);
    }
    if packet.ports.is_some() {
        swap(packet.l4, 2);
    }
    back
}

/// Writes a length that is not so into an IP header; nothing in the contract looks at it.
fn break_length(rng: &mut Rng, frame: &mut [u8]) {
    if let Some(packet) = frame::parse(frame, 12) {
        let at = packet.ip + if packet.src.is_ipv4() { 2 } else { 4 };
        put(frame, at, &(rng.next_u64() as u16).to_be_bytes());
    }
}

/// Makes the checksum of an IPv4 header behind tags or labels right.
fn repair(frame: &mut [u8]) {
    let Some(at) = ipv4_header(frame) else { return };
    let words = usize::from(frame[at] & 15);
    if words < 5 {
        return;
    }
    if let Some(header) = frame.get_mut(at..at + 4 * words) {
        ip::set_checksum(header);
    }
}

/// Where an IPv4 header begins behind tags, or behind the bottom one of any number of labels.
fn ipv4_header(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    while TAGS.contains(&frame::be16(frame, at)?) {
        at += 4;
    }
    let ethertype = frame::be16(frame, at)?;
    at += 2;
    if matches!(ethertype, super::TYPE_MPLS | super::TYPE_MPLS_MULTICAST) {
        while frame.get(at + 2)? & 1 == 0 {
            at += 4;
        }
        at += 4;
    }
    (frame.get(at)? >> 4 == 4).then_some(at)
}

#[cfg(test)]
mod tests {
    use dataplane::{Method, Side, hash, parse};

    use super::*;
    use crate::differential::frames::generate;

    #[test]
    fn a_reversed_frame_hashes_like_the_frame() {
        let mut rng = Rng::new(11);
        let mut seen = 0;
        for _ in 0..5_000 {
            let frame = generate(&mut rng);
            let back = reversed(&frame);
            assert_eq!(reversed(&back), frame);
            let (Some(there), Some(here)) = (parse(&frame).session, parse(&back).session) else { continue };
            if parse(&frame).tunnel || frame::parse(&frame, 12).is_none() {
                continue;
            }
            seen += 1;
            let layer_3 = |session| hash(session, Method::Layer3, Side::Lan);
            assert_eq!(layer_3(&there), layer_3(&here), "{}", hex::encode(&frame));
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn a_repaired_header_below_labels_is_ip_again() {
        let mut rng = Rng::new(12);
        let mut repaired = 0;
        for _ in 0..20_000 {
            let mut frame = generate(&mut rng);
            let before = parse(&frame);
            repair(&mut frame);
            if before.mpls_depth > 0 && before.session.is_none() && parse(&frame).session.is_some() {
                repaired += 1;
            }
        }
        assert!(repaired > 50, "{repaired}");
    }
}
