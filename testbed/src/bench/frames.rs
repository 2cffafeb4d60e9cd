//! What the generator sends: sizes as they are counted on a wire, and the layout of its frames.

use serde::Serialize;

/// Bytes that are on a wire and not in memory: the frame check sequence.
pub const FCS: u32 = 4;
/// Upper half of what marks a frame as the generator's; the lower half is the number of its load. At [`MARK_AT`], as
/// the host stores it.
const MARK: u64 = 0x534c_5549 << 32;
/// Offset of the mark in an untagged frame: right behind the UDP header.
pub const MARK_AT: i16 = 42;
/// Offset of the time stamp, ns of `CLOCK_MONOTONIC` as the host stores them, or 0.
pub const STAMP_AT: i16 = 50;
/// Bytes of an untagged frame up to the end of the time stamp.
pub const SEEN: i32 = 58;
/// Frames of different sessions, by source address and port.
pub const FLOWS: u32 = 1 << 16;
/// Destination MAC; nobody has it, so that no stack on the way takes the frames for its own.
pub const DESTINATION: [u8; 6] = [0x02, 0x5a, 0x02, 0xbe, 0x00, 0x01];
/// Source MAC.
pub const SOURCE: [u8; 6] = [0x02, 0x5a, 0x01, 0xbe, 0x00, 0x01];

/// A size on the wire, or a mix of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Size {
    /// Bytes with the FCS, 64..=1518.
    Fixed(u32),
    /// 7 frames of 64 bytes to 4 of 594 and 1 of 1518.
    Imix,
}

/// The sizes of the mix in the order in which they are sent.
const IMIX: [u32; 12] = [64, 594, 64, 64, 594, 1518, 64, 594, 64, 64, 594, 64];

impl Size {
    /// One round of sizes on the wire, in the order in which they are sent.
    #[must_use]
    pub fn round(self) -> Vec<u32> {
        match self {
            Size::Fixed(bytes) => vec![bytes],
            Size::Imix => IMIX.to_vec(),
        }
    }

    /// The largest frame in memory, bytes.
    #[must_use]
    pub fn longest(self) -> u32 {
        self.round().into_iter().max().unwrap_or(64) - FCS
    }

    /// Mean bytes on the wire, with FCS.
    #[must_use]
    pub fn mean(self) -> f64 {
        let round = self.round();
        f64::from(round.iter().sum::<u32>()) / round.len() as f64
    }
}

/// What marks the frames of a load.
#[must_use]
pub const fn mark(load: u32) -> u64 {
    MARK | load as u64
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        match size {
            Size::Fixed(bytes) => bytes.to_string(),
            Size::Imix => "IMIX".to_owned(),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&String::from(*self))
    }
}

/// The IPv4 header's checksum for a frame of `bytes` in memory, where the identification is the complement of the
/// lower half of the source address: it is the same for all flows (RFC 1071: one's complement sum).
#[must_use]
pub fn header_checksum(bytes: u32) -> u16 {
    let words = [0x4500, bytes - 14, 0xffff, 0, 0x4011, 0x0a01, 0xc612, 0x0001];
    let sum: u32 = words.iter().sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_seven_four_one() {
        let count = |size| IMIX.iter().filter(|bytes| **bytes == size).count();
        assert_eq!((count(64), count(594), count(1518)), (7, 4, 1));
        assert!((Size::Imix.mean() - 361.833).abs() < 0.001);
        assert_eq!(Size::Imix.longest(), 1514);
        assert_eq!(Size::Fixed(64).longest(), 60);
    }
}
