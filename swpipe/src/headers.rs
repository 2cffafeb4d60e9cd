//! What of a frame the rules and the hash look at, in whole words.
//!
//! Nearly every frame is IPv4 or IPv6 with no tag or one, without options, extension headers, fragments and tunnels.
//! Those are read at fixed places; whatever is not quite so goes the way of [`dataplane::frame`]'s parse, which gives
//! the same answer for these too.

use dataplane::frame::{Limits, Ports, parse_into};
use dataplane::hash::{Method, hash};
use dataplane::tables::{LLC_PRESENT, VLAN_PRESENT};
use dataplane::{Addresses, LinkIndex, NotIp, Parsed, Session, Side};

/// Words of an IPv4 key, also that of a frame without an IP header: fields, addresses, tags, source MAC, destination
/// MAC.
pub const V4_WORDS: usize = 5;
/// Words of an IPv6 key: fields, source (two), destination (two), tags, source MAC, destination MAC.
pub const V6_WORDS: usize = 8;

/// Shifts of the fields in the first word, and of the ids in the word of tags.
pub mod shift {
    /// Link index.
    pub const LINK: u32 = 0;
    /// VLAN tags.
    pub const VLAN_DEPTH: u32 = 8;
    /// MPLS labels.
    pub const MPLS_DEPTH: u32 = 10;
    /// 4, or 0; IPv6 has a table of its own.
    pub const IP_VERSION: u32 = 13;
    /// Protocol.
    pub const IP_PROTO: u32 = 17;
    /// Whether there are layer-4 ports.
    pub const HAS_PORTS: u32 = 25;
    /// EtherType after the tags.
    pub const PACKET_TYPE: u32 = 26;
    /// LLC destination, with the bit that says that there is one.
    pub const LLC_DSAP: u32 = 42;
    /// LLC source, likewise.
    pub const LLC_SSAP: u32 = 51;
    /// Second tag, in the word of tags.
    pub const VLAN1: u32 = 13;
    /// Third tag, likewise.
    pub const VLAN2: u32 = 26;
}

/// Which IP header was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// None, and why.
    Not(NotIp),
}

/// The headers of a frame of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The key: [`V4_WORDS`] or [`V6_WORDS`] of them, the others are 0.
    pub words: [u64; V6_WORDS],
    /// Source port above destination port; 0 without ports.
    pub ports: u32,
    /// Which of the two.
    pub ip: Ip,
    /// The session is of fragments.
    pub fragment: bool,
}

/// What a protocol number means for the fast path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upper {
    Plain,
    WithPorts,
    /// A tunnel or an extension header: not for the fast path.
    Deeper,
}

const fn uppers(deeper: &[u8]) -> [Upper; 256] {
    let mut table = [Upper::Plain; 256];
    // TCP, UDP, DCCP, SCTP, UDP-Lite.
    let with_ports = [6_u8, 17, 33, 132, 136];
    let mut at = 0;
    while at < with_ports.len() {
        table[with_ports[at] as usize] = Upper::WithPorts;
        at += 1;
    }
    let mut at = 0;
    while at < deeper.len() {
        table[deeper[at] as usize] = Upper::Deeper;
        at += 1;
    }
    table
}

/// IP-in-IP and GRE.
static UPPER_V4: [Upper; 256] = uppers(&[4, 41, 47]);
/// And the extension headers that the parse walks.
static UPPER_V6: [Upper; 256] = uppers(&[4, 41, 47, 0, 43, 44, 60]);

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Up to the ports of the shortest frame that the fast path takes: Ethernet, IPv4, ports.
const SHORTEST: usize = 14 + IPV4_TO_PORTS;
const IPV4_TO_PORTS: usize = 24;
const IPV6_TO_PORTS: usize = 44;

/// What stands in front of the IP header of a common frame.
#[derive(Clone, Copy)]
struct L2 {
    link: LinkIndex,
    tags: u64,
    depth: u64,
    src_mac: u64,
    dst_mac: u64,
}

/// Eight bytes of a head as a number.
#[inline(always)]
fn word_at<const AT: usize>(head: &[u8; SHORTEST]) -> u64 {
    const { assert!(AT + 8 <= SHORTEST) };
    let bytes = head.split_at(AT).1.first_chunk();
    u64::from_be_bytes(*bytes.unwrap_or(&[0; 8]))
}

impl L2 {
    /// The first word, but for the version.
    #[inline(always)]
    fn fields(&self, ethertype: u16, proto: u8, has_ports: bool) -> u64 {
        u64::from(self.link.0) << shift::LINK
            | self.depth << shift::VLAN_DEPTH
            | u64::from(proto) << shift::IP_PROTO
            | u64::from(has_ports) << shift::HAS_PORTS
            | u64::from(ethertype) << shift::PACKET_TYPE
    }
}

impl Headers {
    /// Of no frame.
    pub const EMPTY: Headers =
        Headers { words: [0; V6_WORDS], ports: 0, ip: Ip::Not(NotIp::NotIp), fragment: false };

    /// Of a frame of `link`, in place: `self` may be of any other frame before.
    #[inline(always)]
    pub fn read(&mut self, link: LinkIndex, limits: impl Limits, frame: &[u8]) {
        if !self.read_common(link, frame) {
            self.read_any(link, limits, frame);
        }
    }

    /// Of any frame.
    #[inline(never)]
    fn read_any(&mut self, link: LinkIndex, limits: impl Limits, frame: &[u8]) {
        let mut parsed = Parsed::EMPTY;
        parse_into(frame, limits, &mut parsed);
        *self = Headers::of(link, &parsed);
    }

    /// Of a common frame; `false` where it is not quite common, and `self` is of no use then.
    #[inline(always)]
    fn read_common(&mut self, link: LinkIndex, frame: &[u8]) -> bool {
        let Some(head) = frame.first_chunk::<SHORTEST>() else { return false };
        let [.., t0, t1, c0, c1, i0, i1] = *head.first_chunk::<18>().unwrap_or(&[0; 18]);
        let l2 = L2 {
            link,
            tags: 0,
            depth: 0,
            // Eight bytes each, which is one load, less the two behind the address.
            src_mac: word_at::<6>(head) >> 16,
            dst_mac: word_at::<0>(head) >> 16,
        };
        match u16::from_be_bytes([t0, t1]) {
            // All of it is there, by the length of the head.
            IPV4 => head.last_chunk().is_some_and(|packet| self.read_v4(&l2, packet)),
            IPV6 => {
                frame.get(14..).and_then(<[u8]>::first_chunk).is_some_and(|packet| self.read_v6(&l2, packet))
            }
            0x8100 | 0x88a8 | 0x9100 => {
                let tags = VLAN_PRESENT as u64 | u64::from(u16::from_be_bytes([c0, c1]) & 0x0fff);
                let l2 = L2 { tags, depth: 1, ..l2 };
                let Some(packet) = frame.get(18..) else { return false };
                match u16::from_be_bytes([i0, i1]) {
                    IPV4 => packet.first_chunk().is_some_and(|packet| self.read_v4(&l2, packet)),
                    IPV6 => packet.first_chunk().is_some_and(|packet| self.read_v6(&l2, packet)),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn read_v4(&mut self, l2: &L2, ip: &[u8; IPV4_TO_PORTS]) -> bool {
        let upper = UPPER_V4[usize::from(ip[9])];
        // Version, no options; neither more fragments nor an offset.
        let plain = ip[0] == 0x45 && u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff == 0;
        if !plain || upper == Upper::Deeper {
            return false;
        }
        let has_ports = upper == Upper::WithPorts;
        let fields = l2.fields(IPV4, ip[9], has_ports) | 4 << shift::IP_VERSION;
        let [.., a0, a1, a2, a3, a4, a5, a6, a7, p0, p1, p2, p3] = *ip;
        let addresses = u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]);
        self.words = [fields, addresses, l2.tags, l2.src_mac, l2.dst_mac, 0, 0, 0];
        self.ports = if has_ports { u32::from_be_bytes([p0, p1, p2, p3]) } else { 0 };
        (self.ip, self.fragment) = (Ip::V4, false);
        true
    }

    #[inline(always)]
    fn read_v6(&mut self, l2: &L2, ip: &[u8; IPV6_TO_PORTS]) -> bool {
        let upper = UPPER_V6[usize::from(ip[6])];
        if ip[0] >> 4 != 6 || upper == Upper::Deeper {
            return false;
        }
        let has_ports = upper == Upper::WithPorts;
        let fields = l2.fields(IPV6, ip[6], has_ports);
        let (_, rest) = ip.split_at(8);
        let ([a, b, c, d], [p0, p1, p2, p3]) = rest.as_chunks::<8>() else { return false };
        let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        self.words = [fields, word(a), word(b), word(c), word(d), l2.tags, l2.src_mac, l2.dst_mac];
        self.ports = if has_ports { u32::from_be_bytes([*p0, *p1, *p2, *p3]) } else { 0 };
        (self.ip, self.fragment) = (Ip::V6, false);
        true
    }

    /// Of a parsed frame.
    #[must_use]
    pub fn of(link: LinkIndex, parsed: &Parsed) -> Headers {
        let mut fields = u64::from(link.0) << shift::LINK
            | (parsed.vlans().len() as u64) << shift::VLAN_DEPTH
            | u64::from(parsed.mpls_depth) << shift::MPLS_DEPTH
            | u64::from(parsed.packet_type) << shift::PACKET_TYPE;
        if let Some(llc) = parsed.llc {
            fields |= (LLC_PRESENT as u64 | u64::from(llc.dsap)) << shift::LLC_DSAP
                | (LLC_PRESENT as u64 | u64::from(llc.ssap)) << shift::LLC_SSAP;
        }
        let tags = parsed
            .vlans()
            .iter()
            .zip([0, shift::VLAN1, shift::VLAN2])
            .fold(0, |word, (vid, shift)| word | (VLAN_PRESENT as u64 | u64::from(*vid)) << shift);
        let (src_mac, dst_mac) = (parsed.src_mac, parsed.dst_mac);
        let Some(session) = &parsed.session else {
            let words = [fields, 0, tags, src_mac, dst_mac, 0, 0, 0];
            let why = parsed.not_ip().unwrap_or(NotIp::NotIp);
            return Headers { words, ports: 0, ip: Ip::Not(why), fragment: false };
        };
        fields |= u64::from(session.proto) << shift::IP_PROTO
            | u64::from(session.ports.is_some()) << shift::HAS_PORTS;
        let ports = session.ports.map_or(0, |ports| u32::from(ports.src) << 16 | u32::from(ports.dst));
        let (words, ip) = match session.addresses {
            Addresses::V4 { src, dst } => {
                fields |= 4 << shift::IP_VERSION;
                let addresses = u64::from(src) << 32 | u64::from(dst);
                ([fields, addresses, tags, src_mac, dst_mac, 0, 0, 0], Ip::V4)
            }
            Addresses::V6 { src, dst } => {
                let [s, d] = [src, dst].map(|address| [(address >> 64) as u64, address as u64]);
                ([fields, s[0], s[1], d[0], d[1], tags, src_mac, dst_mac], Ip::V6)
            }
        };
        Headers { words, ports, ip, fragment: session.fragment }
    }

    /// The key of frames that are not IPv6.
    #[inline(always)]
    #[must_use]
    pub fn v4_words(&self) -> &[u64; V4_WORDS] {
        // As many as there are, and more.
        self.words.first_chunk().unwrap_or(&[0; V4_WORDS])
    }

    /// Why there is no IP header; `None` where there is one.
    #[inline(always)]
    #[must_use]
    pub const fn not_ip(&self) -> Option<NotIp> {
        match self.ip {
            Ip::Not(why) => Some(why),
            Ip::V4 | Ip::V6 => None,
        }
    }

    /// Protocol; 0 in a frame without an IP header.
    #[inline(always)]
    pub(crate) const fn proto(&self) -> u8 {
        (self.words[0] >> shift::IP_PROTO) as u8
    }

    /// Whether it has layer-4 ports.
    #[inline(always)]
    pub(crate) const fn has_ports(&self) -> bool {
        self.words[0] >> shift::HAS_PORTS & 1 != 0
    }

    /// The session; of zeros in a frame without an IP header.
    #[inline(always)]
    fn session(&self) -> Session {
        let [_, a, b, c, d, ..] = self.words;
        let addresses = match self.ip {
            Ip::V6 => {
                let address = |high, low| u128::from(high) << 64 | u128::from(low);
                Addresses::V6 { src: address(a, b), dst: address(c, d) }
            }
            Ip::V4 | Ip::Not(_) => Addresses::V4 { src: (a >> 32) as u32, dst: a as u32 },
        };
        let ports = Ports { src: (self.ports >> 16) as u16, dst: self.ports as u16 };
        Session {
            addresses,
            proto: self.proto(),
            fragment: self.fragment,
            ports: self.has_ports().then_some(ports),
        }
    }

    /// The hash of the session (contract, "Hash"); `side` is that of the port that the frame came in by.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, method: Method, side: Side) -> u32 {
        hash(&self.session(), method, side)
    }
}
