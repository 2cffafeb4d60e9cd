//! Frames built field by field, and what the contract says about them.

use std::net::{Ipv4Addr, Ipv6Addr};

use dataplane::frame::Ports;
use dataplane::{Addresses, Session};
use proptest::prelude::*;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
pub(crate) const TPIDS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    /// IPv6 only: a fragment header that cuts nothing (RFC 6946).
    Atomic,
    First,
    /// Offset in units of eight bytes, not 0, and whether more follow.
    Later(u16, bool),
}

impl Cut {
    fn is_fragment(self) -> bool {
        matches!(self, Cut::First | Cut::Later(..))
    }
}

/// An IP packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) addresses: Addresses,
    pub(crate) proto: u8,
    pub(crate) ports: Ports,
    pub(crate) cut: Cut,
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) dont_fragment: bool,
    /// Words of IPv4 options, 0..=10.
    pub(crate) options: usize,
    /// IPv6 extension headers before a fragment header: type and length in units of eight bytes less one.
    pub(crate) extensions: Vec<(u8, u8)>,
    pub(crate) payload: Vec<u8>,
}

impl Packet {
    pub(crate) fn v4(src: [u8; 4], dst: [u8; 4], proto: u8) -> Self {
        let addresses = Addresses::V4 { src: u32::from_be_bytes(src), dst: u32::from_be_bytes(dst) };
        Packet::between(addresses, proto)
    }

    pub(crate) fn v6(src: &str, dst: &str, proto: u8) -> Self {
        let number = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
        Packet::between(Addresses::V6 { src: number(src), dst: number(dst) }, proto)
    }

    fn between(addresses: Addresses, proto: u8) -> Self {
        Packet {
            addresses,
            proto,
            ports: Ports { src: 40_000, dst: 443 },
            cut: Cut::Whole,
            ttl: 64,
            id: 0x1234,
            dont_fragment: false,
            options: 0,
            extensions: Vec::new(),
            payload: vec![0x5a; 24],
        }
    }

    pub(crate) fn reversed(&self) -> Self {
        let ports = Ports { src: self.ports.dst, dst: self.ports.src };
        Packet { addresses: self.addresses.reversed(), ports, ..self.clone() }
    }

    /// What rules and hash see of it.
    pub(crate) fn session(&self) -> Session {
        let later = matches!(self.cut, Cut::Later(..));
        Session {
            addresses: self.addresses,
            proto: self.proto,
            fragment: self.cut.is_fragment(),
            ports: (WITH_PORTS.contains(&self.proto) && !later).then_some(self.ports),
        }
    }

    pub(crate) fn ethertype(&self) -> u16 {
        match self.addresses {
            Addresses::V4 { .. } => 0x0800,
            Addresses::V6 { .. } => 0x86dd,
        }
    }

    /// What stands behind the IP header: ports where the protocol has them and this is where they are.
    fn body(&self) -> Vec<u8> {
        if WITH_PORTS.contains(&self.proto) && !matches!(self.cut, Cut::Later(..)) {
            let ports = [self.ports.src.to_be_bytes(), self.ports.dst.to_be_bytes()].concat();
            [ports.as_slice(), &self.payload].concat()
        } else {
            self.payload.clone()
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.around(&self.body())
    }

    /// The packet's header around another body, as a tunnel has it.
    pub(crate) fn around(&self, body: &[u8]) -> Vec<u8> {
        match self.addresses {
            Addresses::V4 { src, dst } => self.v4_bytes(src.into(), dst.into(), body),
            Addresses::V6 { src, dst } => self.v6_bytes(src.into(), dst.into(), body),
        }
    }

    fn v4_bytes(&self, src: Ipv4Addr, dst: Ipv4Addr, body: &[u8]) -> Vec<u8> {
        let length = 20 + self.options * 4;
        let flags_offset = match self.cut {
            Cut::Whole | Cut::Atomic => 0,
            Cut::First => 0x2000,
            Cut::Later(offset, more) => offset | if more { 0x2000 } else { 0 },
        } | if self.dont_fragment { 0x4000 } else { 0 };
        let mut header = vec![0x40 | (length / 4) as u8, 0];
        header.extend(((length + body.len()) as u16).to_be_bytes());
        header.extend(self.id.to_be_bytes());
        header.extend(flags_offset.to_be_bytes());
        header.extend([self.ttl, self.proto, 0, 0]);
        header.extend(src.octets());
        header.extend(dst.octets());
        header.resize(length, 1); // no-operation
        let sum: u32 =
            header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        [header.as_slice(), body].concat()
    }

    fn v6_bytes(&self, src: Ipv6Addr, dst: Ipv6Addr, body: &[u8]) -> Vec<u8> {
        let mut chain: Vec<(u8, Vec<u8>)> = self
            .extensions
            .iter()
            .map(|(kind, units)| {
                // A type of 0x5a under the length: anybody who reads options as headers goes astray.
                let mut header = vec![0, *units];
                header.resize(8 + usize::from(*units) * 8, 0x11);
                (*kind, header)
            })
            .collect();
        let fragment = match self.cut {
            Cut::Whole => None,
            Cut::Atomic => Some(0),
            Cut::First => Some(1),
            Cut::Later(offset, more) => Some(offset << 3 | u16::from(more)),
        };
        if let Some(field) = fragment {
            let [high, low] = field.to_be_bytes();
            chain.push((44, vec![0, 0, high, low, 0, 0, 0, 7]));
        }
        let kinds: Vec<u8> = chain.iter().map(|(kind, _)| *kind).chain([self.proto]).collect();
        let mut rest = Vec::new();
        for ((_, mut header), next) in chain.into_iter().zip(&kinds[1..]) {
            header[0] = *next;
            rest.extend(header);
        }
        rest.extend(body);
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((rest.len() as u16).to_be_bytes());
        packet.extend([kinds[0], self.ttl]);
        packet.extend(src.octets());
        packet.extend(dst.octets());
        packet.extend(rest);
        packet
    }
}

/// What stands between tags and IP header.
#[derive(Clone, Debug)]
pub(crate) enum Wrap {
    Plain,
    /// Label entries without the bottom bit.
    Mpls(Vec<u32>),
    Pppoe(u16),
}

/// What stands around an IP packet.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) dst_mac: [u8; 6],
    pub(crate) src_mac: [u8; 6],
    pub(crate) tags: Vec<(u16, u16)>,
    pub(crate) wrap: Wrap,
    pub(crate) padding: usize,
}

impl Default for Around {
    fn default() -> Self {
        Around {
            dst_mac: [2, 0, 0, 0, 0, 2],
            src_mac: [2, 0, 0, 0, 0, 1],
            tags: Vec::new(),
            wrap: Wrap::Plain,
            padding: 0,
        }
    }
}

impl Around {
    pub(crate) fn frame(&self, ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = [self.dst_mac, self.src_mac].concat();
        for (tpid, tci) in &self.tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        match &self.wrap {
            Wrap::Plain => frame.extend(ethertype.to_be_bytes()),
            Wrap::Mpls(labels) => {
                frame.extend(0x8847u16.to_be_bytes());
                for (index, label) in labels.iter().enumerate() {
                    let bottom = if index + 1 == labels.len() { 0x100 } else { 0 };
                    frame.extend((label & !0x100 | bottom).to_be_bytes());
                }
            }
            Wrap::Pppoe(session) => {
                frame.extend(0x8864u16.to_be_bytes());
                frame.extend([0x11, 0]);
                frame.extend(session.to_be_bytes());
                frame.extend((packet.len() as u16 + 2).to_be_bytes());
                let protocol: u16 = if ethertype == 0x0800 { 0x0021 } else { 0x0057 };
                frame.extend(protocol.to_be_bytes());
            }
        }
        frame.extend(packet);
        frame.resize(frame.len() + self.padding, 0);
        frame
    }
}

/// The packet in an untagged frame.
pub(crate) fn plain(packet: &Packet) -> Vec<u8> {
    Around::default().frame(packet.ethertype(), &packet.bytes())
}

/// A GRE header: flag bits in place, the optional words that they announce filled with noise.
pub(crate) fn gre(flags: u16, protocol: u16) -> Vec<u8> {
    let words = [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count();
    let mut header = [flags.to_be_bytes(), protocol.to_be_bytes()].concat();
    header.resize(4 + words * 4, 0x45);
    header
}

pub(crate) fn addresses() -> impl Strategy<Value = Addresses> {
    prop_oneof![
        any::<(u32, u32)>().prop_map(|(src, dst)| Addresses::V4 { src, dst }),
        any::<(u128, u128)>().prop_map(|(src, dst)| Addresses::V6 { src, dst }),
        // Near ones, equal ones and odd ones: 0.0.0.0, broadcast, multicast.
        (0u32..3, 0u32..3).prop_map(|(src, dst)| Addresses::V4 {
            src: src.wrapping_mul(0xe000_0001),
            dst: dst.wrapping_mul(0x7fff_ffff)
        }),
        (0u128..3, 0u128..3)
            .prop_map(|(src, dst)| Addresses::V6 { src: src << 127 | dst << 3, dst: dst << 64 }),
    ]
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        4 => Just(Cut::Whole),
        1 => Just(Cut::First),
        1 => (1u16..0x2000, any::<bool>()).prop_map(|(offset, more)| Cut::Later(offset, more)),
    ]
}

/// A protocol that ends the walk: not an extension header, not a tunnel.
pub(crate) fn leaf_proto() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => prop::sample::select(&WITH_PORTS[..]),
        1 => any::<u8>().prop_filter("leaf", |proto| ![0, 4, 41, 43, 44, 47, 60].contains(proto)),
    ]
}

pub(crate) fn packet() -> impl Strategy<Value = Packet> {
    (
        (addresses(), leaf_proto(), any::<(u16, u16)>(), cut(), any::<bool>()),
        (any::<u8>(), any::<u16>(), any::<bool>(), 0usize..=10),
        prop::collection::vec((prop::sample::select(&[0u8, 43, 60][..]), 0u8..4), 0..=4),
        prop::collection::vec(any::<u8>(), 0..64),
    )
        .prop_map(|((addresses, proto, (src, dst), cut, atomic), head, mut extensions, payload)| {
            let (ttl, id, dont_fragment, options) = head;
            let is_v6 = addresses.version() == 6;
            let cut = if is_v6 && atomic && cut == Cut::Whole { Cut::Atomic } else { cut };
            if cut != Cut::Whole {
                extensions.truncate(3); // the fragment header is one of the four
            }
            Packet {
                addresses,
                proto,
                ports: Ports { src, dst },
                cut,
                ttl,
                id,
                dont_fragment,
                options,
                extensions,
                payload,
            }
        })
}

pub(crate) fn around() -> impl Strategy<Value = Around> {
    let wrap = prop_oneof![
        2 => Just(Wrap::Plain),
        1 => prop::collection::vec(any::<u32>(), 1..=6).prop_map(Wrap::Mpls),
        1 => any::<u16>().prop_map(Wrap::Pppoe),
    ];
    (
        any::<([u8; 6], [u8; 6])>(),
        prop::collection::vec((prop::sample::select(&TPIDS[..]), any::<u16>()), 0..=3),
        wrap,
        0usize..20,
    )
        .prop_map(|((dst_mac, src_mac), tags, wrap, padding)| Around {
            dst_mac,
            src_mac,
            tags,
            wrap,
            padding,
        })
}
