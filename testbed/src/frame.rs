//! An independent, small reader of frames: enough to name a session, push and pop tags, and forge a reset.
//! It shares no code with the balancer, so that the two can disagree.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// EtherType of keep-alives.
pub const KEEP_ALIVE: u16 = 0x88b5;
/// TPID of the native steering header.
pub const STEERING_NATIVE: u16 = 0x88b6;
/// TPID of an 802.1Q tag.
pub const DOT1Q: u16 = 0x8100;

const TAGS: [u16; 3] = [DOT1Q, 0x88a8, 0x9100];
const TCP: u8 = 6;

/// Both directions of a session give the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The lower end (address, port).
    pub low: (IpAddr, u16),
    /// The higher end.
    pub high: (IpAddr, u16),
    /// IP protocol.
    pub proto: u8,
}

impl SessionKey {
    /// The key of a session between these two ends.
    pub fn new(one: (IpAddr, u16), other: (IpAddr, u16), proto: u8) -> Self {
        SessionKey { low: one.min(other), high: one.max(other), proto }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} port {} - {} port {} proto {}",
            self.low.0, self.low.1, self.high.0, self.high.1, self.proto
        )
    }
}

/// Where the parts of an IP frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpFrame {
    /// Offset of the IP header.
    pub ip: usize,
    /// Offset of the transport header.
    pub l4: usize,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Ports, when the frame has them.
    pub ports: Option<(u16, u16)>,
    /// IP protocol.
    pub proto: u8,
}

impl IpFrame {
    /// The session that this frame belongs to.
    pub fn key(&self) -> SessionKey {
        let (sport, dport) = self.ports.unwrap_or((0, 0));
        SessionKey::new((self.src, sport), (self.dst, dport), self.proto)
    }
}

/// The 16 bits at `at`, big-endian.
pub fn be16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

fn be32(frame: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?))
}

/// Reads the IP header behind at most three VLAN tags; `ethertype_at` is 12, or 16 behind a steering header.
pub fn parse(frame: &[u8], ethertype_at: usize) -> Option<IpFrame> {
    let mut at = ethertype_at;
    for _ in 0..3 {
        if TAGS.contains(&be16(frame, at)?) {
            at += 4;
        }
    }
    let ip = at + 2;
    match be16(frame, at)? {
        0x0800 => parse_ipv4(frame, ip),
        0x86dd => parse_ipv6(frame, ip),
        _ => None,
    }
}

fn parse_ipv4(frame: &[u8], ip: usize) -> Option<IpFrame> {
    let first = *frame.get(ip)?;
    let length = usize::from(first & 15) * 4;
    if first >> 4 != 4 || length < 20 || frame.len() < ip + length {
        return None;
    }
    let address = |at: usize| be32(frame, at).map(|bits| IpAddr::V4(bits.into()));
    let fragment = be16(frame, ip + 6)? & 0x3fff != 0;
    let proto = *frame.get(ip + 9)?;
    let l4 = ip + length;
    let ports = if fragment { None } else { ports(frame, l4, proto) };
    Some(IpFrame { ip, l4, src: address(ip + 12)?, dst: address(ip + 16)?, ports, proto })
}

fn parse_ipv6(frame: &[u8], ip: usize) -> Option<IpFrame> {
    if frame.len() < ip + 40 || frame.get(ip)? >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = frame.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(bytes.into()))
    };
    let proto = *frame.get(ip + 6)?;
    let l4 = ip + 40;
    Some(IpFrame {
        ip,
        l4,
        src: address(ip + 8)?,
        dst: address(ip + 24)?,
        ports: ports(frame, l4, proto),
        proto,
    })
}

fn ports(frame: &[u8], l4: usize, proto: u8) -> Option<(u16, u16)> {
    matches!(proto, TCP | 17).then_some(())?;
    Some((be16(frame, l4)?, be16(frame, l4 + 2)?))
}

/// Puts tags between the MACs and the EtherType, the first one outermost.
pub fn push_tags(frame: &[u8], tags: &[(u16, u16)], out: &mut Vec<u8>) {
    let macs = frame.len().min(12);
    out.clear();
    out.extend_from_slice(&frame[..macs]);
    for (tpid, vid) in tags {
        out.extend_from_slice(&tpid.to_be_bytes());
        out.extend_from_slice(&vid.to_be_bytes());
    }
    out.extend_from_slice(&frame[macs..]);
}

/// True when the frame wears these tags and no further VLAN tag below them. Priority bits are not looked at.
pub fn wears(frame: &[u8], tags: &[(u16, u16)]) -> bool {
    let mut at = 12;
    for (tpid, vid) in tags {
        let found = (be16(frame, at), be16(frame, at + 2).map(|tci| tci & 0x0fff));
        if found != (Some(*tpid), Some(*vid)) {
            return false;
        }
        at += 4;
    }
    be16(frame, at).is_some_and(|next| !TAGS.contains(&next))
}

/// Takes `count` tags of 4 bytes off.
pub fn pop_tags(frame: &[u8], count: usize, out: &mut Vec<u8>) {
    let macs = frame.len().min(12);
    out.clear();
    out.extend_from_slice(&frame[..macs]);
    out.extend_from_slice(frame.get(12 + 4 * count..).unwrap_or_default());
}

/// The reset with which a TCP receiver would refuse this segment (RFC 9293, 3.5.2), as a frame that goes back to
/// its sender: same tags and steering header, MACs, addresses and ports swapped. None for anything but TCP, and
/// for a reset (never answered).
pub fn forge_reset(frame: &[u8], ethertype_at: usize) -> Option<Vec<u8>> {
    let packet = parse(frame, ethertype_at)?;
    let (sport, dport) = packet.ports?;
    let flags = *frame.get(packet.l4 + 13)?;
    if packet.proto != TCP || flags & 0x04 != 0 {
        return None;
    }
    let (their_seq, their_ack) = (be32(frame, packet.l4 + 4)?, be32(frame, packet.l4 + 8)?);
    let header = usize::from(frame.get(packet.l4 + 12)? >> 4) * 4;
    let end = match packet.src {
        IpAddr::V4(_) => packet.ip + usize::from(be16(frame, packet.ip + 2)?),
        IpAddr::V6(_) => packet.ip + 40 + usize::from(be16(frame, packet.ip + 4)?),
    };
    let mut consumed = end.saturating_sub(packet.l4 + header) as u32;
    consumed += u32::from(flags & 0x02 != 0) + u32::from(flags & 0x01 != 0);

    let mut reset = Vec::with_capacity(96);
    reset.extend_from_slice(&frame[6..12]);
    reset.extend_from_slice(&frame[0..6]);
    reset.extend_from_slice(&frame[12..packet.ip]);
    let ip = reset.len();
    match (packet.src, packet.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            reset.extend_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0]);
            reset.extend_from_slice(&dst.octets());
            reset.extend_from_slice(&src.octets());
            let sum = checksum(0, &reset[ip..]);
            reset[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            reset.extend_from_slice(&[0x60, 0, 0, 0, 0, 20, TCP, 64]);
            reset.extend_from_slice(&dst.octets());
            reset.extend_from_slice(&src.octets());
        }
        _ => return None,
    }
    let l4 = reset.len();
    // With an ACK in hand the reset takes its number; without, it acknowledges what came.
    let (seq, ack, reset_flags) =
        if flags & 0x10 != 0 { (their_ack, 0, 0x04) } else { (0, their_seq.wrapping_add(consumed), 0x14) };
    reset.extend_from_slice(&dport.to_be_bytes());
    reset.extend_from_slice(&sport.to_be_bytes());
    reset.extend_from_slice(&seq.to_be_bytes());
    reset.extend_from_slice(&ack.to_be_bytes());
    reset.extend_from_slice(&[0x50, reset_flags, 0, 0, 0, 0, 0, 0]);
    let addresses = match packet.src {
        IpAddr::V4(_) => ip + 12..ip + 20,
        IpAddr::V6(_) => ip + 8..ip + 40,
    };
    let pseudo = sum_words(u32::from(TCP) + 20, &reset[addresses]);
    let sum = checksum(pseudo, &reset[l4..]);
    reset[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
    Some(reset)
}

fn sum_words(start: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(start, |sum, pair| {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        sum + u32::from(word)
    })
}

/// Internet checksum (RFC 1071) of `bytes`, on top of a partial sum.
pub fn checksum(partial: u32, bytes: &[u8]) -> u16 {
    let mut sum = sum_words(partial, bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
pub(crate) mod samples {
    /// An IPv4 TCP segment 10.1.0.1:2000 -> 10.129.0.2:80 with `payload`, ACK set, right checksums not needed.
    pub(crate) fn tcp4(tags: &[(u16, u16)], payload: &[u8]) -> Vec<u8> {
        let mut plain = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let total = (40 + payload.len()) as u16;
        plain.extend_from_slice(&[0x45, 0]);
        plain.extend_from_slice(&total.to_be_bytes());
        plain.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 129, 0, 2]);
        plain.extend_from_slice(&[7, 208, 0, 80, 0, 0, 1, 0, 0, 0, 2, 0, 0x50, 0x10, 255, 255, 0, 0, 0, 0]);
        plain.extend_from_slice(payload);
        let mut out = Vec::new();
        super::push_tags(&plain, tags, &mut out);
        out
    }

    /// The answer's direction of [`tcp4`].
    pub(crate) fn tcp4_back(tags: &[(u16, u16)]) -> Vec<u8> {
        let mut frame = tcp4(&[], b"");
        let (ip, l4) = (14, 34);
        let (src, dst) = ([10, 129, 0, 2], [10, 1, 0, 1]);
        frame[ip + 12..ip + 16].copy_from_slice(&src);
        frame[ip + 16..ip + 20].copy_from_slice(&dst);
        frame[l4..l4 + 4].copy_from_slice(&[0, 80, 7, 208]);
        let mut out = Vec::new();
        super::push_tags(&frame, tags, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::samples::{tcp4, tcp4_back};
    use super::*;

    #[test]
    fn both_directions_have_one_key_whatever_the_tags() {
        let there = parse(&tcp4(&[], b"x"), 12).expect("IP");
        let back = parse(&tcp4_back(&[(0x88a8, 17), (DOT1Q, 18)]), 12).expect("IP");
        assert_eq!(there.key(), back.key());
        assert_eq!(there.key().to_string(), "10.1.0.1 port 2000 - 10.129.0.2 port 80 proto 6");
    }

    #[test]
    fn pop_undoes_push() {
        let plain = tcp4(&[], b"payload");
        let tags = [(0x88a8, 200), (DOT1Q, 300)];
        let (mut tagged, mut back) = (Vec::new(), Vec::new());
        push_tags(&plain, &tags, &mut tagged);
        assert!(wears(&tagged, &tags));
        assert!(!wears(&tagged, &tags[..1]), "a further tag below must be noticed");
        assert!(!wears(&plain, &tags));
        assert!(wears(&plain, &[]));
        pop_tags(&tagged, 2, &mut back);
        assert_eq!(back, plain);
    }

    #[test]
    fn reset_goes_back_with_right_numbers_and_checksums() {
        let frame = tcp4(&[(DOT1Q, 5)], b"hello");
        let reset = forge_reset(&frame, 12).expect("TCP");
        assert_eq!(reset[0..6], frame[6..12]);
        assert_eq!(reset[6..12], frame[0..6]);
        let packet = parse(&reset, 12).expect("IP");
        assert_eq!(packet.key(), parse(&frame, 12).expect("IP").key());
        assert_eq!(be32(&reset, packet.l4 + 4), Some(0x200), "sequence is the segment's acknowledgment");
        assert_eq!(reset[packet.l4 + 13], 0x04);
        assert_eq!(checksum(0, &reset[packet.ip..packet.l4]), 0);
        let pseudo = sum_words(6 + 20, &reset[packet.ip + 12..packet.ip + 20]);
        assert_eq!(checksum(pseudo, &reset[packet.l4..]), 0);
        assert_eq!(forge_reset(&reset, 12), None, "a reset is never answered");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(frame in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&frame, 12);
            let _ = parse(&frame, 16);
            let _ = forge_reset(&frame, 12);
            let _ = wears(&frame, &[(DOT1Q, 1)]);
            let mut out = Vec::new();
            pop_tags(&frame, 2, &mut out);
            push_tags(&frame, &[(DOT1Q, 1)], &mut out);
        }

        #[test]
        fn mutated_segments_never_panic(at in 0usize..60, byte in any::<u8>(), cut in 0usize..64) {
            let mut frame = tcp4(&[(DOT1Q, 5)], b"hello");
            if let Some(slot) = frame.get_mut(at) { *slot = byte; }
            frame.truncate(frame.len().saturating_sub(cut));
            let _ = forge_reset(&frame, 12);
        }
    }
}
