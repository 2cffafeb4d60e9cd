//! The symmetric hash (contract, "Hash"): CRC-32 as in IEEE 802.3 and zlib over word-wise min and max.

use std::fmt;
use std::str::FromStr;

use crate::frame::{Addresses, Session};
use crate::ids::Side;

/// What goes into the hash: `balancing-method` of the configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[repr(u8)]
pub enum Method {
    /// Addresses word by word as min then max, then the protocol: 9 or 33 bytes.
    #[default]
    #[serde(rename = "layer-3")]
    Layer3 = 0,
    /// The same and both ports as min then max; layer-3 input for fragments and where there are no ports.
    #[serde(rename = "layer-4")]
    Layer4 = 1,
    /// The internet-side address alone.
    #[serde(rename = "dst-ip")]
    DstIp = 2,
    /// The subscriber-side address alone.
    #[serde(rename = "src-ip")]
    SrcIp = 3,
}

impl Method {
    /// All methods, in the order of their numbers.
    pub const ALL: [Method; 4] = [Method::Layer3, Method::Layer4, Method::DstIp, Method::SrcIp];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Layer3 => "layer-3",
            Method::Layer4 => "layer-4",
            Method::DstIp => "dst-ip",
            Method::SrcIp => "src-ip",
        }
    }

    /// The method of a table entry's number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Method::Layer3),
            1 => Some(Method::Layer4),
            2 => Some(Method::DstIp),
            3 => Some(Method::SrcIp),
            _ => None,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        Method::ALL
            .into_iter()
            .find(|method| method.as_str() == name)
            .ok_or_else(|| UnknownMethod { name: name.to_owned() })
    }
}

/// A name that is no balancing method.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("balancing-method {name:?} is unknown; it is one of layer-3, layer-4, dst-ip, src-ip")]
pub struct UnknownMethod {
    name: String,
}

const POLYNOMIAL: u32 = 0xedb8_8320;

/// Tables for eight bytes a step (slicing-by-8).
static TABLES: [[u32; 256]; 8] = tables();

#[allow(clippy::indexing_slicing)] // constant evaluation: an index out of bounds does not compile
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut byte = 0;
        while byte < 256 {
            let previous = tables[slice - 1][byte];
            tables[slice][byte] = (previous >> 8) ^ tables[0][(previous & 0xff) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
}

/// A running CRC-32 of big-endian fields.
#[derive(Clone, Copy)]
struct Crc(u32);

impl Crc {
    const fn new() -> Self {
        Crc(0xffff_ffff)
    }

    /// Eight bytes: two 32-bit words as they stand on the wire.
    #[inline(always)]
    fn words(self, first: u32, second: u32) -> Self {
        let low = self.0 ^ first.swap_bytes();
        let [a, b, c, d] = low.to_le_bytes();
        let [e, f, g, h] = second.to_be_bytes();
        let lookup = |slice: usize, byte: u8| TABLES[slice][usize::from(byte)];
        Crc(lookup(7, a)
            ^ lookup(6, b)
            ^ lookup(5, c)
            ^ lookup(4, d)
            ^ lookup(3, e)
            ^ lookup(2, f)
            ^ lookup(1, g)
            ^ lookup(0, h))
    }

    /// Four bytes: one word.
    #[inline(always)]
    fn word(self, word: u32) -> Self {
        let [a, b, c, d] = (self.0 ^ word.swap_bytes()).to_le_bytes();
        let lookup = |slice: usize, byte: u8| TABLES[slice][usize::from(byte)];
        Crc(lookup(3, a) ^ lookup(2, b) ^ lookup(1, c) ^ lookup(0, d))
    }

    #[inline(always)]
    fn byte(self, byte: u8) -> Self {
        let index = (self.0 as u8) ^ byte;
        Crc((self.0 >> 8) ^ TABLES[0][usize::from(index)])
    }

    const fn finish(self) -> u32 {
        !self.0
    }
}

#[inline(always)]
fn words_of(address: u128) -> [u32; 4] {
    [(address >> 96) as u32, (address >> 64) as u32, (address >> 32) as u32, address as u32]
}

/// The hash of a session; `side` is the side of the link that the frame came in on.
///
/// `side` changes nothing for `layer-3` and `layer-4`; for `dst-ip` and `src-ip` it says which address
/// is the internet's and which the subscriber's.
#[inline(always)]
#[must_use]
pub fn hash(session: &Session, method: Method, side: Side) -> u32 {
    match method {
        Method::Layer3 => layer_3(session).finish(),
        Method::Layer4 => match session.ports {
            Some(ports) if !session.fragment => {
                let low = ports.src.min(ports.dst);
                let high = ports.src.max(ports.dst);
                layer_3(session).word(u32::from(low) << 16 | u32::from(high)).finish()
            }
            _ => layer_3(session).finish(),
        },
        Method::DstIp => one_address(session, side == Side::Wan),
        Method::SrcIp => one_address(session, side == Side::Lan),
    }
}

#[inline(always)]
fn layer_3(session: &Session) -> Crc {
    let crc = match session.addresses {
        Addresses::V4 { src, dst } => Crc::new().words(src.min(dst), src.max(dst)),
        Addresses::V6 { src, dst } => {
            let [s0, s1, s2, s3] = words_of(src);
            let [d0, d1, d2, d3] = words_of(dst);
            Crc::new()
                .words(s0.min(d0), s1.min(d1))
                .words(s2.min(d2), s3.min(d3))
                .words(s0.max(d0), s1.max(d1))
                .words(s2.max(d2), s3.max(d3))
        }
    };
    crc.byte(session.proto)
}

fn one_address(session: &Session, source: bool) -> u32 {
    match session.addresses {
        Addresses::V4 { src, dst } => Crc::new().word(if source { src } else { dst }).finish(),
        Addresses::V6 { src, dst } => {
            let [w0, w1, w2, w3] = words_of(if source { src } else { dst });
            Crc::new().words(w0, w1).words(w2, w3).finish()
        }
    }
}
