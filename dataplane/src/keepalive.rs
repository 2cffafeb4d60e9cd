//! The keep-alive frame (contract, "Keep-alive"). [`crate::probe`] has those behind a steering header.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0-5, 6-11 | destination and source MAC, unicast and locally administered, one end of the pair each |
//! | 12-13 | EtherType 0x88b5 |
//! | 14-17 | magic `SLKA` |
//! | 18 | version 1 |
//! | 19 | direction: 0 LAN to WAN, 1 WAN to LAN |
//! | 20-21 | pair |
//! | 22-29 | controller instance |
//! | 30-37 | sequence |
//! | 38-45 | transmit time, ns; written by the data plane as late as it can |
//! | 46-53 | SipHash-2-4 over everything but the transmit time and the tag itself |
//! | 54-59 | zero |
//!
//! All numbers are big-endian.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

use crate::ids::{Nanos, PairId, Side};
use crate::probe;

/// EtherType of keep-alives (IEEE 802 local experimental 1).
pub const KEEP_ALIVE_ETHERTYPE: u16 = 0x88b5;
/// Bytes of the frame, without FCS.
pub const KEEP_ALIVE_LENGTH: usize = 60;
/// Where the data plane writes the transmit time.
pub const TRANSMIT_TIME_OFFSET: usize = 38;

/// How keep-alives begin behind the EtherType, and steered probes their body.
pub const KEEP_ALIVE_MAGIC: [u8; 4] = *b"SLKA";

const VERSION: u8 = 1;
const TAG_OFFSET: usize = 46;

/// Direction that a keep-alive travels through the appliance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Leaves by the pair's LAN port, expected on its WAN port.
    LanToWan,
    /// Leaves by the pair's WAN port, expected on its LAN port.
    WanToLan,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::LanToWan, Direction::WanToLan];

    /// The side of the pair port that it leaves by.
    #[must_use]
    pub const fn from_side(self) -> Side {
        match self {
            Direction::LanToWan => Side::Lan,
            Direction::WanToLan => Side::Wan,
        }
    }
}

/// The secret of the tag: 128 bits of the controller instance's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeepAliveKey(pub [u8; 16]);

/// What a keep-alive says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The pair it measures.
    pub pair: PairId,
    /// The way it travels.
    pub direction: Direction,
    /// Controller instance that sent it.
    pub instance: u64,
    /// Sequence number of the pair and direction.
    pub sequence: u64,
    /// When the data plane sent it, on the data plane's clock.
    pub transmit: Nanos,
}

/// Why a frame is no keep-alive of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepAliveFault {
    /// Not the EtherType, magic, version or length, or fields that no keep-alive has.
    #[error("no keep-alive")]
    Malformed,
    /// Of another controller.
    #[error("keep-alive of controller instance {0:#018x}")]
    WrongInstance(u64),
    /// The tag does not fit the rest.
    #[error("keep-alive with a wrong tag")]
    WrongTag,
}

impl KeepAlive {
    /// The frame, with its transmit time as given.
    #[must_use]
    pub fn encode(&self, key: &KeepAliveKey) -> [u8; KEEP_ALIVE_LENGTH] {
        let mut frame = Writer { frame: [0; KEEP_ALIVE_LENGTH], at: 0 };
        frame.put(end_mac(self.pair, self.direction.from_side().opposite(), self.instance));
        frame.put(end_mac(self.pair, self.direction.from_side(), self.instance));
        frame.put(KEEP_ALIVE_ETHERTYPE.to_be_bytes());
        frame.put(KEEP_ALIVE_MAGIC);
        frame.put([VERSION, self.direction.from_side().bit()]);
        frame.put(self.pair.0.to_be_bytes());
        frame.put(self.instance.to_be_bytes());
        frame.put(self.sequence.to_be_bytes());
        frame.put(self.transmit.0.to_be_bytes());
        let tag = tag(&frame.frame, key);
        frame.put(tag.to_be_bytes());
        frame.frame
    }

    /// Reads a frame; longer ones are padded and fine.
    ///
    /// # Errors
    /// The first fault in the order malformed, wrong instance, wrong tag.
    pub fn decode(frame: &[u8], key: &KeepAliveKey, instance: u64) -> Result<Self, KeepAliveFault> {
        let frame: &[u8; KEEP_ALIVE_LENGTH] = frame.first_chunk().ok_or(KeepAliveFault::Malformed)?;
        let mut reader = Reader { frame, at: 12 };
        let ethertype = u16::from_be_bytes(reader.take());
        let magic: [u8; 4] = reader.take();
        let [version, direction] = reader.take();
        if ethertype != KEEP_ALIVE_ETHERTYPE
            || magic != KEEP_ALIVE_MAGIC
            || version != VERSION
            || direction > 1
        {
            return Err(KeepAliveFault::Malformed);
        }
        let found = KeepAlive {
            direction: if direction == 0 { Direction::LanToWan } else { Direction::WanToLan },
            pair: PairId(u16::from_be_bytes(reader.take())),
            instance: u64::from_be_bytes(reader.take()),
            sequence: u64::from_be_bytes(reader.take()),
            transmit: Nanos(u64::from_be_bytes(reader.take())),
        };
        if found.instance != instance {
            return Err(KeepAliveFault::WrongInstance(found.instance));
        }
        if u64::from_be_bytes(reader.take()) != tag(frame, key) {
            return Err(KeepAliveFault::WrongTag);
        }
        Ok(found)
    }
}

/// Whether a frame of the controller is to get its transmit time, plain or steered, by its form alone.
#[must_use]
pub fn is_keep_alive(frame: &[u8]) -> bool {
    is_plain(frame) || probe::find(frame).is_some()
}

/// Writes the transmit time into a keep-alive, plain or steered; `false` where there is no place for it.
#[must_use]
pub fn stamp(frame: &mut [u8], now: Nanos) -> bool {
    if !is_plain(frame) {
        return probe::stamp(frame, now);
    }
    let place = frame.get_mut(TRANSMIT_TIME_OFFSET..).and_then(|rest| rest.first_chunk_mut());
    let Some(place) = place else { return false };
    *place = now.0.to_be_bytes();
    true
}

fn is_plain(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&KEEP_ALIVE_ETHERTYPE.to_be_bytes())
}

/// MAC of one end of a pair: locally administered, unicast, different per end, so that a learning bridge
/// between the ends passes both directions.
#[must_use]
pub fn end_mac(pair: PairId, side: Side, instance: u64) -> [u8; 6] {
    let [high, low] = pair.0.to_be_bytes();
    let [.., i0, i1] = instance.to_be_bytes();
    [0x02, i0, i1, high, low, side.bit()]
}

fn tag(frame: &[u8; KEEP_ALIVE_LENGTH], key: &KeepAliveKey) -> u64 {
    let (before, rest) = frame.split_at(TRANSMIT_TIME_OFFSET);
    let (_, after) = rest.split_at(TAG_OFFSET + 8 - TRANSMIT_TIME_OFFSET);
    let mut hasher = SipHasher24::new_with_key(&key.0);
    hasher.write(before);
    hasher.write(after);
    hasher.finish()
}

struct Writer {
    frame: [u8; KEEP_ALIVE_LENGTH],
    at: usize,
}

impl Writer {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(slot) = self.frame.get_mut(self.at..self.at + N) {
            slot.copy_from_slice(&bytes);
        }
        self.at += N;
    }
}

struct Reader<'f> {
    frame: &'f [u8; KEEP_ALIVE_LENGTH],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.frame.get(self.at..).and_then(|rest| rest.first_chunk()).copied();
        self.at += N;
        bytes.unwrap_or([0; N])
    }
}
