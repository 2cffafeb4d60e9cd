//! Steering header (contract, "Steering header"): four bytes after the MACs, shaped like a VLAN tag.

use crate::ids::{Core, LinkIndex};

/// Bytes of the header.
pub const STEERING_HEADER: usize = 4;
/// Where it stands: behind destination and source MAC.
pub const STEERING_OFFSET: usize = 12;
/// Default TPID of `native` mode.
pub const NATIVE_TPID: u16 = 0x88b6;
/// Default TPID of `dot1q` mode.
pub const DOT1Q_TPID: u16 = 0x8100;

/// The format on the wire, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SteeringMode {
    /// TPID, then core and link index of eight bits each.
    Native {
        /// EtherType of the header.
        tpid: u16,
    },
    /// An ordinary VLAN tag with VID = base + link index; the core is not conveyed.
    Dot1q {
        /// TPID of the tag.
        tpid: u16,
        /// VID of link 0; every link's VID must be within 1..=4094.
        base_vid: u16,
    },
}

impl Default for SteeringMode {
    fn default() -> Self {
        SteeringMode::Native { tpid: NATIVE_TPID }
    }
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringHeader {
    /// Worker core of the appliance; `None` in `dot1q` mode.
    pub core: Option<Core>,
    /// The link that the frame came from.
    pub link: LinkIndex,
}

impl SteeringMode {
    /// Whether a header can name the link: in `dot1q` mode its VID must lie within 1..=4094.
    #[must_use]
    pub const fn can_name(self, link: LinkIndex) -> bool {
        match self {
            SteeringMode::Native { .. } => true,
            SteeringMode::Dot1q { base_vid, .. } => base_vid >= 1 && base_vid as u32 + link.0 as u32 <= 4094,
        }
    }

    /// The four bytes of the header for a frame of `link` to `core`.
    #[inline(always)]
    #[must_use]
    pub const fn encode(self, core: Core, link: LinkIndex) -> [u8; STEERING_HEADER] {
        match self {
            SteeringMode::Native { tpid } => {
                let [t0, t1] = tpid.to_be_bytes();
                [t0, t1, core.0, link.0]
            }
            SteeringMode::Dot1q { tpid, base_vid } => {
                let [t0, t1] = tpid.to_be_bytes();
                let [v0, v1] = (base_vid.wrapping_add(link.0 as u16) & 0x0fff).to_be_bytes();
                [t0, t1, v0, v1]
            }
        }
    }

    /// Reads the header of a frame that came back; `None` where there is none.
    ///
    /// In `dot1q` mode priority bits are the appliance's business and are ignored; a VID outside
    /// base..base+255 is no steering header.
    #[inline]
    #[must_use]
    pub fn decode(self, frame: &[u8]) -> Option<SteeringHeader> {
        // The EtherType that it stands in front of must be there too: without it, what is left after the pop
        // is no Ethernet frame and no port could send it.
        let &[t0, t1, b0, b1, _, _] =
            frame.get(STEERING_OFFSET..)?.first_chunk::<{ STEERING_HEADER + 2 }>()?;
        let found = u16::from_be_bytes([t0, t1]);
        match self {
            SteeringMode::Native { tpid } => {
                (found == tpid).then_some(SteeringHeader { core: Some(Core(b0)), link: LinkIndex(b1) })
            }
            SteeringMode::Dot1q { tpid, base_vid } => {
                let vid = u16::from_be_bytes([b0, b1]) & 0x0fff;
                let index = vid.checked_sub(base_vid)?;
                let link = u8::try_from(index).ok()?;
                (found == tpid).then_some(SteeringHeader { core: None, link: LinkIndex(link) })
            }
        }
    }

    /// Writes `frame` with the header pushed into `out`; the length written, or `None` where `out` is too
    /// short or `frame` has no Ethernet header.
    #[must_use]
    pub fn push(self, frame: &[u8], core: Core, link: LinkIndex, out: &mut [u8]) -> Option<usize> {
        let (macs, rest) = frame.split_at_checked(STEERING_OFFSET)?;
        let length = frame.len() + STEERING_HEADER;
        let out = out.get_mut(..length)?;
        let (head, tail) = out.split_at_mut_checked(STEERING_OFFSET)?;
        let (header, payload) = tail.split_at_mut_checked(STEERING_HEADER)?;
        head.copy_from_slice(macs);
        header.copy_from_slice(&self.encode(core, link));
        payload.copy_from_slice(rest);
        Some(length)
    }
}
