//! Parse (contract, "Parse"): from the bytes of a frame to the header that rules and hash look at.
//!
//! Nothing here is trusted: every read is bounded by the frame, and what is not there ends the parse.

/// TPIDs that open a VLAN tag: IEEE 802.1Q, 802.1ad and the old QinQ one.
pub const VLAN_TPIDS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags that are parsed; one more makes the frame [`NotIp::VlanTooDeep`].
pub const MAX_VLAN_TAGS: usize = 3;
/// Labels that are parsed; one more makes the frame [`NotIp::MplsTooDeep`].
pub const MAX_MPLS_LABELS: usize = 6;
/// IPv6 extension headers that are walked; the number of the next one then stands as the protocol.
pub const MAX_IPV6_EXTENSIONS: usize = 4;
/// Bytes of an Ethernet header, which `mtu` does not count.
pub const ETHERNET_HEADER: usize = 14;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_MPLS: u16 = 0x8847;
const ETHERTYPE_MPLS_MULTICAST: u16 = 0x8848;
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
/// Below this the field after the MACs is an LLC length (IEEE 802.3, 3.2.6).
pub(crate) const FIRST_ETHERTYPE: u16 = 0x0600;

/// IP protocol numbers that the parse itself knows (IANA).
mod proto {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const DCCP: u8 = 33;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
    pub(super) const SCTP: u8 = 132;
    pub(super) const UDP_LITE: u8 = 136;
}

/// Source and destination of the header that the parse settled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPv4, as big-endian numbers.
    V4 {
        /// Source address.
        src: u32,
        /// Destination address.
        dst: u32,
    },
    /// IPv6, as big-endian numbers.
    V6 {
        /// Source address.
        src: u128,
        /// Destination address.
        dst: u128,
    },
}

impl Addresses {
    /// 4 or 6.
    #[must_use]
    pub const fn version(&self) -> u8 {
        match self {
            Addresses::V4 { .. } => 4,
            Addresses::V6 { .. } => 6,
        }
    }

    /// The same conversation seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Addresses::V4 { src, dst } => Addresses::V4 { src: dst, dst: src },
            Addresses::V6 { src, dst } => Addresses::V6 { src: dst, dst: src },
        }
    }
}

/// Source and destination port of TCP, UDP, SCTP, DCCP or UDP-Lite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
}

/// The IP header that rules and hash look at: the inner one of a tunnel, else the outer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Both addresses.
    pub addresses: Addresses,
    /// IPv4 protocol, or the IPv6 next-header value at which the walk ended.
    pub proto: u8,
    /// A first, middle or last fragment; an atomic fragment (RFC 6946) is none.
    pub fragment: bool,
    /// Layer-4 ports, where their four bytes are there and this is no later fragment.
    pub ports: Option<Ports>,
}

/// Why no IP header was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotIp {
    /// Another protocol, or a header that is cut or malformed.
    NotIp,
    /// A fourth VLAN tag.
    VlanTooDeep,
    /// A seventh MPLS label.
    MplsTooDeep,
}

impl NotIp {
    /// The name in vectors, verdicts and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            NotIp::NotIp => "not-ip",
            NotIp::VlanTooDeep => "vlan-too-deep",
            NotIp::MplsTooDeep => "mpls-too-deep",
        }
    }
}

/// LLC addresses of an IEEE 802.2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Llc {
    /// Destination service access point.
    pub dsap: u8,
    /// Source service access point.
    pub ssap: u8,
}

/// What the parse found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Destination MAC as a big-endian number; 0 in a frame that has none.
    pub dst_mac: u64,
    /// Source MAC as a big-endian number; 0 in a frame that has none.
    pub src_mac: u64,
    vlan: [u16; MAX_VLAN_TAGS],
    vlan_depth: u8,
    /// MPLS labels parsed, 0..=6.
    pub mpls_depth: u8,
    /// A PPPoE session header was passed.
    pub pppoe: bool,
    /// [`Parsed::session`] is the inner header of a tunnel.
    pub tunnel: bool,
    /// The EtherType after the tags; 0 where a length (LLC) or nothing stands there.
    pub packet_type: u16,
    /// LLC addresses, where the frame is IEEE 802.2 and has them.
    pub llc: Option<Llc>,
    /// The IP header, if there is one.
    pub session: Option<Session>,
    /// Why there is none; [`NotIp::NotIp`] is the answer where `session` is set too, and has no meaning there.
    why: NotIp,
}

impl Parsed {
    /// Of a frame without any header.
    pub const EMPTY: Parsed = Parsed {
        dst_mac: 0,
        src_mac: 0,
        vlan: [0; MAX_VLAN_TAGS],
        vlan_depth: 0,
        mpls_depth: 0,
        pppoe: false,
        tunnel: false,
        packet_type: 0,
        llc: None,
        session: None,
        why: NotIp::NotIp,
    };

    /// VLAN ids (12 bits each), outermost first, at most three.
    #[inline]
    #[must_use]
    pub fn vlans(&self) -> &[u16] {
        self.vlan.get(..usize::from(self.vlan_depth)).unwrap_or(&[])
    }

    /// Why no IP header was found; `None` where one was.
    #[inline]
    #[must_use]
    pub fn not_ip(&self) -> Option<NotIp> {
        if self.session.is_some() { None } else { Some(self.why) }
    }
}

#[inline(always)]
fn array<const N: usize>(frame: &[u8], at: usize) -> Option<&[u8; N]> {
    frame.get(at..)?.first_chunk::<N>()
}

#[inline(always)]
fn be16(frame: &[u8], at: usize) -> Option<u16> {
    array::<2>(frame, at).map(|b| u16::from_be_bytes(*b))
}

#[inline(always)]
fn be32(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

#[inline(always)]
const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

/// How far a target parses; see [`parse_within`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParseLimits {
    /// 32-bit words of options of an IPv4 header, 0..=10. A longer header stands bare: its addresses and protocol,
    /// no ports, no tunnel, no fragment, its options not even looked for. Below MPLS it is no IP header, since its
    /// checksum is not known.
    pub ipv4_options: u8,
    /// The same of the inner header of a tunnel.
    pub inner_ipv4_options: u8,
    /// Bytes of an IPv6 extension header, 8..=2048: a longer one ends the walk at its own number.
    pub ipv6_extension: u16,
    /// Extension headers of the inner header of a tunnel, 0..=4: the number of the next one stands as the protocol.
    pub inner_ipv6_extensions: u8,
}

impl ParseLimits {
    /// As far as the contract says.
    pub const NONE: ParseLimits = ParseLimits {
        ipv4_options: MAX_IPV4_OPTIONS as u8,
        inner_ipv4_options: MAX_IPV4_OPTIONS as u8,
        ipv6_extension: MAX_IPV6_EXTENSION as u16,
        inner_ipv6_extensions: MAX_IPV6_EXTENSIONS as u8,
    };

    /// Whether these limits change nothing.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.ipv4_options >= Self::NONE.ipv4_options
            && self.inner_ipv4_options >= Self::NONE.inner_ipv4_options
            && self.ipv6_extension >= Self::NONE.ipv6_extension
            && self.inner_ipv6_extensions >= Self::NONE.inner_ipv6_extensions
    }
}

/// Words of options that an IPv4 header can have.
const MAX_IPV4_OPTIONS: usize = 10;
/// Bytes that an IPv6 extension header can have.
const MAX_IPV6_EXTENSION: usize = 2048;

/// What the parse asks of limits. It is compiled once for each answer, so that no limit costs nothing.
pub trait Limits: Copy {
    /// Limits of one IP header.
    type Header: HeaderLimits;
    /// Of the outer header.
    fn outer(self) -> Self::Header;
    /// Of the inner header of a tunnel.
    fn inner(self) -> Self::Header;
}

/// Limits of one IP header.
pub trait HeaderLimits: Copy {
    /// Words of IPv4 options.
    fn options(self) -> usize;
    /// IPv6 extension headers.
    fn extensions(self) -> usize;
    /// Bytes of each of them.
    fn extension(self) -> usize;
}

/// No limit but the contract's.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

impl Limits for Unlimited {
    type Header = Unlimited;

    #[inline(always)]
    fn outer(self) -> Unlimited {
        self
    }

    #[inline(always)]
    fn inner(self) -> Unlimited {
        self
    }
}

impl HeaderLimits for Unlimited {
    #[inline(always)]
    fn options(self) -> usize {
        MAX_IPV4_OPTIONS
    }

    #[inline(always)]
    fn extensions(self) -> usize {
        MAX_IPV6_EXTENSIONS
    }

    #[inline(always)]
    fn extension(self) -> usize {
        MAX_IPV6_EXTENSION
    }
}

/// Limits of one header, as [`ParseLimits`] has them.
#[derive(Clone, Copy, Debug)]
pub struct LimitedHeader {
    options: u8,
    extensions: u8,
    extension: u16,
}

impl Limits for ParseLimits {
    type Header = LimitedHeader;

    #[inline(always)]
    fn outer(self) -> LimitedHeader {
        LimitedHeader {
            options: self.ipv4_options,
            extensions: Self::NONE.inner_ipv6_extensions,
            extension: self.ipv6_extension,
        }
    }

    #[inline(always)]
    fn inner(self) -> LimitedHeader {
        LimitedHeader {
            options: self.inner_ipv4_options,
            extensions: self.inner_ipv6_extensions,
            extension: self.ipv6_extension,
        }
    }
}

impl HeaderLimits for LimitedHeader {
    #[inline(always)]
    fn options(self) -> usize {
        self.options.into()
    }

    #[inline(always)]
    fn extensions(self) -> usize {
        self.extensions.into()
    }

    #[inline(always)]
    fn extension(self) -> usize {
        self.extension.into()
    }
}

/// Reads `frame` (from the destination MAC, without FCS) as the contract's Parse section says.
#[inline]
#[must_use]
pub fn parse(frame: &[u8]) -> Parsed {
    let mut parsed = Parsed::EMPTY;
    parse_into(frame, Unlimited, &mut parsed);
    parsed
}

/// [`parse`] as a target with these limits does it.
#[must_use]
pub fn parse_within(frame: &[u8], limits: ParseLimits) -> Parsed {
    let mut parsed = Parsed::EMPTY;
    parse_into(frame, limits, &mut parsed);
    parsed
}

/// [`parse`] in place: `parsed` must be [`Parsed::EMPTY`]. For the frame path, where a copy would wait for the
/// fields that were just written.
#[inline(always)]
pub fn parse_into(frame: &[u8], limits: impl Limits, parsed: &mut Parsed) {
    let Some(head) = frame.first_chunk::<ETHERNET_HEADER>() else {
        return;
    };
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *head;
    parsed.dst_mac = u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]);
    parsed.src_mac = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
    let mut ethertype = u16::from_be_bytes([t0, t1]);
    let mut at = ETHERNET_HEADER;

    while is_vlan(ethertype) {
        if usize::from(parsed.vlan_depth) == MAX_VLAN_TAGS {
            parsed.packet_type = ethertype;
            parsed.why = NotIp::VlanTooDeep;
            return;
        }
        let Some(&[tci0, tci1, type0, type1]) = array::<4>(frame, at) else {
            parsed.packet_type = ethertype;
            return;
        };
        if let Some(slot) = parsed.vlan.get_mut(usize::from(parsed.vlan_depth)) {
            *slot = u16::from_be_bytes([tci0, tci1]) & 0x0fff;
        }
        parsed.vlan_depth += 1;
        ethertype = u16::from_be_bytes([type0, type1]);
        at += 4;
    }

    if ethertype < FIRST_ETHERTYPE {
        parsed.llc = array::<2>(frame, at).map(|&[dsap, ssap]| Llc { dsap, ssap });
        return;
    }
    parsed.packet_type = ethertype;

    // Each kind settles by itself: plain IP stays in registers that way.
    match ethertype {
        ETHERTYPE_IPV4 => settle(frame, ipv4(frame, at, limits.outer()), limits, parsed),
        ETHERTYPE_IPV6 => settle(frame, ipv6(frame, at, limits.outer()), limits, parsed),
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_MULTICAST => {
            let outer = mpls(frame, at, limits.outer(), parsed);
            settle(frame, outer, limits, parsed);
        }
        ETHERTYPE_PPPOE_SESSION => {
            let outer = pppoe(frame, at, limits.outer(), parsed);
            settle(frame, outer, limits, parsed);
        }
        _ => {}
    }
}

/// Takes the inner header of a tunnel, else the outer one.
#[inline(always)]
fn settle(frame: &[u8], outer: Option<Header>, limits: impl Limits, parsed: &mut Parsed) {
    let Some(outer) = outer else { return };
    if outer.upper.is_tunnel()
        && let Some(inner) = inner(frame, outer.upper.proto, outer.upper.at, limits.inner())
    {
        parsed.tunnel = true;
        parsed.session = Some(inner.session(frame));
        return;
    }
    parsed.session = Some(outer.session(frame));
}

/// An IP header.
struct Header {
    addresses: Addresses,
    upper: Upper,
}

/// What an IP header carries.
#[derive(Clone, Copy)]
struct Upper {
    proto: u8,
    fragment: bool,
    /// A fragment that does not begin its packet: no layer-4 header in it.
    later_fragment: bool,
    /// Where it begins; [`BEYOND`] where that is not known.
    at: usize,
}

/// Behind the end of any frame: nothing is read there.
const BEYOND: usize = usize::MAX / 2;

impl Upper {
    /// IP-in-IP or GRE; one level, never below a fragment.
    #[inline(always)]
    const fn is_tunnel(&self) -> bool {
        matches!(self.proto, proto::IPV4 | proto::IPV6 | proto::GRE) && !self.fragment
    }
}

impl Header {
    #[inline(always)]
    fn session(&self, frame: &[u8]) -> Session {
        let Upper { proto, fragment, later_fragment, at } = self.upper;
        let has_ports =
            matches!(proto, proto::TCP | proto::UDP | proto::DCCP | proto::SCTP | proto::UDP_LITE)
                && !later_fragment;
        let ports = if has_ports {
            array::<4>(frame, at).map(|&[s0, s1, d0, d1]| Ports {
                src: u16::from_be_bytes([s0, s1]),
                dst: u16::from_be_bytes([d0, d1]),
            })
        } else {
            None
        };
        Session { addresses: self.addresses, proto, fragment, ports }
    }
}

#[inline(always)]
fn ipv4(frame: &[u8], at: usize, limits: impl HeaderLimits) -> Option<Header> {
    let h = array::<20>(frame, at)?;
    let ihl = usize::from(h[0] & 0x0f);
    if h[0] >> 4 != 4 || ihl < 5 {
        return None;
    }
    let addresses =
        Addresses::V4 { src: be32([h[12], h[13], h[14], h[15]]), dst: be32([h[16], h[17], h[18], h[19]]) };
    if ihl - 5 > limits.options() {
        let upper = Upper { proto: h[9], fragment: false, later_fragment: false, at: BEYOND };
        return Some(Header { addresses, upper });
    }
    let payload = at + ihl * 4;
    if frame.len() < payload {
        return None;
    }
    // RFC 791: flags in the top three bits (DF is no fragment), then the offset.
    let flags_offset = u16::from_be_bytes([h[6], h[7]]);
    let later_fragment = flags_offset & 0x1fff != 0;
    Some(Header {
        addresses,
        upper: Upper {
            proto: h[9],
            fragment: later_fragment || flags_offset & 0x2000 != 0,
            later_fragment,
            at: payload,
        },
    })
}

#[inline(always)]
fn ipv6(frame: &[u8], at: usize, limits: impl HeaderLimits) -> Option<Header> {
    let h = array::<40>(frame, at)?;
    if h[0] >> 4 != 6 {
        return None;
    }
    let (_, addresses) = h.split_at(8);
    let (src, dst) = addresses.split_at(16);
    let addresses = Addresses::V6 {
        src: u128::from_be_bytes(*src.first_chunk()?),
        dst: u128::from_be_bytes(*dst.first_chunk()?),
    };
    let mut upper = Upper { proto: h[6], fragment: false, later_fragment: false, at: at + 40 };
    if matches!(
        upper.proto,
        proto::HOP_BY_HOP | proto::ROUTING | proto::FRAGMENT | proto::DESTINATION_OPTIONS
    ) {
        upper = walk_extensions(frame, upper, limits);
    }
    Some(Header { addresses, upper })
}

/// Walks the extension headers (RFC 8200, 4); one that is not wholly there, or too long for the target, ends the
/// walk at its own number.
fn walk_extensions(frame: &[u8], mut upper: Upper, limits: impl HeaderLimits) -> Upper {
    for _ in 0..limits.extensions() {
        match upper.proto {
            proto::HOP_BY_HOP | proto::ROUTING | proto::DESTINATION_OPTIONS => {
                let Some(&[next, length]) = array::<2>(frame, upper.at) else { break };
                let bytes = 8 + usize::from(length) * 8;
                let end = upper.at + bytes;
                if frame.len() < end || bytes > limits.extension() {
                    break;
                }
                upper.proto = next;
                upper.at = end;
            }
            proto::FRAGMENT => {
                let Some(&[next, _, f0, f1, ..]) = array::<8>(frame, upper.at) else { break };
                let offset_more = u16::from_be_bytes([f0, f1]);
                upper.proto = next;
                upper.at += 8;
                if offset_more & 0xfff9 != 0 {
                    upper.fragment = true;
                    upper.later_fragment = offset_more & 0xfff8 != 0;
                    break;
                }
            }
            _ => break,
        }
    }
    upper
}

fn mpls(frame: &[u8], mut at: usize, limits: impl HeaderLimits, parsed: &mut Parsed) -> Option<Header> {
    loop {
        if usize::from(parsed.mpls_depth) == MAX_MPLS_LABELS {
            parsed.why = NotIp::MplsTooDeep;
            return None;
        }
        // RFC 3032, 2.1: label, traffic class, bottom of stack, TTL.
        let entry = array::<4>(frame, at)?;
        parsed.mpls_depth += 1;
        at += 4;
        if entry[2] & 1 != 0 {
            break;
        }
    }
    match frame.get(at)? >> 4 {
        // An Ethernet pseudowire's inner MAC may begin with 4 too: only a right checksum makes it IPv4.
        4 => ipv4(frame, at, limits).filter(|header| {
            frame.get(at..header.upper.at).is_some_and(|bytes| ones_complement_sum(bytes) == 0xffff)
        }),
        6 => ipv6(frame, at, limits),
        _ => None,
    }
}

/// RFC 1071 sum; 0xffff over a header whose checksum is right.
fn ones_complement_sum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks_exact(2).fold(0, |sum, pair| match pair {
        [high, low] => sum + u32::from(u16::from_be_bytes([*high, *low])),
        _ => sum,
    });
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) as u16
}

fn pppoe(frame: &[u8], at: usize, limits: impl HeaderLimits, parsed: &mut Parsed) -> Option<Header> {
    // RFC 2516, 4: version and type, code, session, length; then the PPP protocol.
    let h = array::<8>(frame, at)?;
    if h[0] != 0x11 || h[1] != 0 {
        return None;
    }
    parsed.pppoe = true;
    match u16::from_be_bytes([h[6], h[7]]) {
        0x0021 => ipv4(frame, at + 8, limits),
        0x0057 => ipv6(frame, at + 8, limits),
        _ => None,
    }
}

/// The inner header of IP-in-IP or GRE.
fn inner(frame: &[u8], proto: u8, at: usize, limits: impl HeaderLimits) -> Option<Header> {
    match proto {
        proto::IPV4 => ipv4(frame, at, limits),
        proto::IPV6 => ipv6(frame, at, limits),
        proto::GRE => gre(frame, at, limits),
        _ => None,
    }
}

fn gre(frame: &[u8], at: usize, limits: impl HeaderLimits) -> Option<Header> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    // RFC 2784, 2.1 and RFC 2890, 2.
    let flags = be16(frame, at)?;
    let protocol = be16(frame, at + 2)?;
    if flags & (ROUTING | VERSION) != 0 {
        return None;
    }
    let options = [CHECKSUM, KEY, SEQUENCE].iter().filter(|bit| flags & **bit != 0).count();
    let payload = at + 4 + options * 4;
    match protocol {
        ETHERTYPE_IPV4 => ipv4(frame, payload, limits),
        ETHERTYPE_IPV6 => ipv6(frame, payload, limits),
        _ => None,
    }
}
