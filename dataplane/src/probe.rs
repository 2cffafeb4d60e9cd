//! Steered probes: keep-alives that an appliance takes for data of one of its worker cores, and hands on as such
//! (contract, "Keep-alive"; docs/probes.md).
//!
//! | bytes | field |
//! | --- | --- |
//! | 0-11 | destination and source MAC, as in a plain keep-alive |
//! | 12-15 | steering header: the core, and a link index that no link has |
//! | 16-17 | EtherType: 0x88b5 and the body behind it, or IPv4 or IPv6 with UDP and the body as its payload |
//!
//! The body, version 2, all numbers big-endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0-3 | magic `SLKA` |
//! | 4 | version 2 |
//! | 5 | direction: 0 LAN to WAN, 1 WAN to LAN |
//! | 6-7 | pair |
//! | 8-15 | controller instance |
//! | 16-23 | sequence |
//! | 24-31 | transmit time, ns; written by the data plane as late as it can |
//! | 32-39 | one's complement of the transmit time, written with it: the two add up to what a checksum does not see |
//! | 40 | kind: 1 core, 2 ip, 3 negative |
//! | 41 | core; 0 for the other kinds |
//! | 42-45 | zero |
//! | 46-53 | SipHash-2-4 over everything but the transmit time, its complement and the tag itself |

use std::hash::Hasher as _;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use siphasher::sip::SipHasher24;

use crate::ids::{Core, Nanos, PairId};
use crate::keepalive::{
    Direction, KEEP_ALIVE_ETHERTYPE, KEEP_ALIVE_MAGIC, KeepAliveFault, KeepAliveKey, end_mac,
};
use crate::steering::{STEERING_HEADER, STEERING_OFFSET};

/// Bytes of the body.
pub const PROBE_BODY: usize = 54;
/// Where the body stands in the frame, by what is around it: none, IPv4 and UDP, IPv6 and UDP.
pub const PROBE_OFFSETS: [usize; 3] = [
    BEHIND_ETHERTYPE,
    BEHIND_ETHERTYPE + IPV4_HEADER + UDP_HEADER,
    BEHIND_ETHERTYPE + IPV6_HEADER + UDP_HEADER,
];

const BEHIND_ETHERTYPE: usize = STEERING_OFFSET + STEERING_HEADER + 2;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PROTO_UDP: u8 = 17;
/// TTL and hop limit.
const HOPS: u8 = 64;
/// Version 4, five words.
const IPV4_START: u8 = 0x45;
const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0x00];

const VERSION: u8 = 2;
/// Of the transmit time, in the body.
const TIME: usize = 24;
/// Of the kind: behind time and complement.
const KIND: usize = 40;
const TAG: usize = 46;

/// What a steered probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// Whether one worker core passes frames on.
    Core(Core),
    /// Whether the appliance passes an IP packet on.
    Ip,
    /// Whether the appliance drops an IP packet that its policy is to drop.
    Negative,
}

impl ProbeKind {
    /// Kind and core as on the wire.
    const fn encode(self) -> [u8; 2] {
        match self {
            ProbeKind::Core(core) => [1, core.0],
            ProbeKind::Ip => [2, 0],
            ProbeKind::Negative => [3, 0],
        }
    }

    const fn decode(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [1, core] => Some(ProbeKind::Core(Core(core))),
            [2, 0] => Some(ProbeKind::Ip),
            [3, 0] => Some(ProbeKind::Negative),
            _ => None,
        }
    }
}

/// What is around the body of a steered probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Envelope {
    /// Nothing: the EtherType of keep-alives.
    Ethernet,
    /// UDP over IPv4.
    UdpV4 {
        /// Source address and port.
        src: SocketAddrV4,
        /// Destination address and port.
        dst: SocketAddrV4,
    },
    /// UDP over IPv6.
    UdpV6 {
        /// Source address and port.
        src: SocketAddrV6,
        /// Destination address and port.
        dst: SocketAddrV6,
    },
}

impl Envelope {
    /// UDP between two addresses of one IP version; `None` where they are of different ones.
    #[must_use]
    pub const fn udp(src: SocketAddr, dst: SocketAddr) -> Option<Self> {
        match (src, dst) {
            (SocketAddr::V4(src), SocketAddr::V4(dst)) => Some(Envelope::UdpV4 { src, dst }),
            (SocketAddr::V6(src), SocketAddr::V6(dst)) => Some(Envelope::UdpV6 { src, dst }),
            _ => None,
        }
    }
}

/// What a steered probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The pair it measures.
    pub pair: PairId,
    /// The way it travels.
    pub direction: Direction,
    /// Controller instance that sent it.
    pub instance: u64,
    /// Sequence number of the pair, direction and kind.
    pub sequence: u64,
    /// When the data plane sent it, on the data plane's clock.
    pub transmit: Nanos,
    /// What it asks.
    pub kind: ProbeKind,
}

impl Probe {
    /// The frame, with its transmit time as given. `header` is what [`crate::SteeringMode::encode`] makes of the
    /// core that the probe goes to and of the probe index.
    #[must_use]
    pub fn encode(&self, key: &KeepAliveKey, header: [u8; STEERING_HEADER], envelope: Envelope) -> Vec<u8> {
        let body = self.body(key);
        let mut frame = Vec::with_capacity(BEHIND_ETHERTYPE + IPV6_HEADER + UDP_HEADER + PROBE_BODY);
        frame.extend(end_mac(self.pair, self.direction.from_side().opposite(), self.instance));
        frame.extend(end_mac(self.pair, self.direction.from_side(), self.instance));
        frame.extend(header);
        match envelope {
            Envelope::Ethernet => frame.extend(KEEP_ALIVE_ETHERTYPE.to_be_bytes()),
            Envelope::UdpV4 { src, dst } => {
                frame.extend(TYPE_IPV4.to_be_bytes());
                frame.extend(ipv4(src, dst));
                let pseudo = [src.ip().octets(), dst.ip().octets()].concat();
                frame.extend(udp(src.port(), dst.port(), &pseudo, &body));
            }
            Envelope::UdpV6 { src, dst } => {
                frame.extend(TYPE_IPV6.to_be_bytes());
                frame.extend(ipv6(src, dst));
                let pseudo = [src.ip().octets(), dst.ip().octets()].concat();
                frame.extend(udp(src.port(), dst.port(), &pseudo, &body));
            }
        }
        frame.extend(body);
        frame
    }

    /// Reads a frame; longer ones are padded and fine.
    ///
    /// # Errors
    /// The first fault in the order malformed, wrong instance, wrong tag.
    pub fn decode(frame: &[u8], key: &KeepAliveKey, instance: u64) -> Result<Self, KeepAliveFault> {
        let body = find(frame).and_then(|at| frame.get(at..)?.first_chunk::<PROBE_BODY>());
        let body = body.ok_or(KeepAliveFault::Malformed)?;
        let [version, direction] = field(body, 4);
        let complement = u64::from_be_bytes(field(body, TIME + 8));
        let transmit = u64::from_be_bytes(field(body, TIME));
        let kind = ProbeKind::decode(field(body, KIND)).ok_or(KeepAliveFault::Malformed)?;
        if version != VERSION || direction > 1 || complement != !transmit {
            return Err(KeepAliveFault::Malformed);
        }
        let found = Probe {
            pair: PairId(u16::from_be_bytes(field(body, 6))),
            direction: if direction == 0 { Direction::LanToWan } else { Direction::WanToLan },
            instance: u64::from_be_bytes(field(body, 8)),
            sequence: u64::from_be_bytes(field(body, 16)),
            transmit: Nanos(transmit),
            kind,
        };
        if found.instance != instance {
            return Err(KeepAliveFault::WrongInstance(found.instance));
        }
        if u64::from_be_bytes(field(body, TAG)) != tag(body, key) {
            return Err(KeepAliveFault::WrongTag);
        }
        Ok(found)
    }

    fn body(&self, key: &KeepAliveKey) -> [u8; PROBE_BODY] {
        let mut body = [0; PROBE_BODY];
        put(&mut body, 0, KEEP_ALIVE_MAGIC);
        put(&mut body, 4, [VERSION, self.direction.from_side().bit()]);
        put(&mut body, 6, self.pair.0.to_be_bytes());
        put(&mut body, 8, self.instance.to_be_bytes());
        put(&mut body, 16, self.sequence.to_be_bytes());
        put(&mut body, TIME, self.transmit.0.to_be_bytes());
        put(&mut body, TIME + 8, (!self.transmit.0).to_be_bytes());
        put(&mut body, KIND, self.kind.encode());
        let tag = tag(&body, key);
        put(&mut body, TAG, tag.to_be_bytes());
        body
    }
}

/// Where the body of a steered probe begins; `None` where the frame has not the form of one, or ends before the
/// complement of the transmit time does.
///
/// The form alone is looked at: four bytes of any header behind the MACs, then 0x88b5, or IPv4 without options, or
/// IPv6, and UDP; then the magic.
#[must_use]
pub fn find(frame: &[u8]) -> Option<usize> {
    let behind = frame.get(STEERING_OFFSET + STEERING_HEADER..)?;
    let [plain, ipv4, ipv6] = PROBE_OFFSETS;
    let at = match *behind {
        [0x88, 0xb5, ..] => plain,
        [0x08, 0x00, IPV4_START, _, _, _, _, _, _, _, _, PROTO_UDP, ..] => ipv4,
        [0x86, 0xdd, version, _, _, _, _, _, PROTO_UDP, ..] if version >> 4 == 6 => ipv6,
        _ => return None,
    };
    let body = frame.get(at..)?;
    (body.starts_with(&KEEP_ALIVE_MAGIC) && body.len() >= KIND).then_some(at)
}

/// Writes the transmit time and its complement into a steered probe; whether it is one.
#[must_use]
pub fn stamp(frame: &mut [u8], now: Nanos) -> bool {
    let place = find(frame).and_then(|at| frame.get_mut(at + TIME..)?.first_chunk_mut::<16>());
    let Some(place) = place else { return false };
    let time = (u128::from(now.0) << 64) | u128::from(!now.0);
    *place = time.to_be_bytes();
    true
}

fn tag(body: &[u8; PROBE_BODY], key: &KeepAliveKey) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&key.0);
    let (before, rest) = body.split_at(TIME);
    let (_, rest) = rest.split_at(KIND - TIME);
    let (after, _) = rest.split_at(TAG - KIND);
    hasher.write(before);
    hasher.write(after);
    hasher.finish()
}

fn field<const N: usize>(body: &[u8; PROBE_BODY], at: usize) -> [u8; N] {
    body.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn put<const N: usize>(body: &mut [u8; PROBE_BODY], at: usize, bytes: [u8; N]) {
    if let Some(place) = body.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}

/// RFC 791, 3.1.
fn ipv4(src: SocketAddrV4, dst: SocketAddrV4) -> [u8; IPV4_HEADER] {
    let [l0, l1] = ((IPV4_HEADER + UDP_HEADER + PROBE_BODY) as u16).to_be_bytes();
    let [f0, f1] = DO_NOT_FRAGMENT;
    let [s0, s1, s2, s3] = src.ip().octets();
    let [d0, d1, d2, d3] = dst.ip().octets();
    let [c0, c1] = checksum(&[
        &[IPV4_START, 0, l0, l1, 0, 0, f0, f1, HOPS, PROTO_UDP],
        &src.ip().octets(),
        &dst.ip().octets(),
    ])
    .to_be_bytes();
    [IPV4_START, 0, l0, l1, 0, 0, f0, f1, HOPS, PROTO_UDP, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3]
}

/// RFC 8200, 3.
fn ipv6(src: SocketAddrV6, dst: SocketAddrV6) -> [u8; IPV6_HEADER] {
    let mut header = [0; IPV6_HEADER];
    let [l0, l1] = ((UDP_HEADER + PROBE_BODY) as u16).to_be_bytes();
    let parts =
        [&[0x60, 0, 0, 0, l0, l1, PROTO_UDP, HOPS][..], &src.ip().octets(), &dst.ip().octets()].concat();
    header.copy_from_slice(&parts);
    header
}

/// RFC 768. What the data plane writes into the body later leaves the checksum right: time and complement add up to
/// the same as zeros and ones do.
fn udp(src: u16, dst: u16, addresses: &[u8], body: &[u8; PROBE_BODY]) -> [u8; UDP_HEADER] {
    let length = (UDP_HEADER + PROBE_BODY) as u16;
    let [s0, s1] = src.to_be_bytes();
    let [d0, d1] = dst.to_be_bytes();
    let [l0, l1] = length.to_be_bytes();
    let header = [s0, s1, d0, d1, l0, l1];
    // The pseudo header: addresses, protocol, length.
    let sum = checksum(&[addresses, &[0, PROTO_UDP], &[l0, l1], &header, body]);
    let [c0, c1] = if sum == 0 { [0xff, 0xff] } else { sum.to_be_bytes() };
    [s0, s1, d0, d1, l0, l1, c0, c1]
}

/// RFC 1071, over parts of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.as_chunks::<2>().0);
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
