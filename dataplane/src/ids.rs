//! Newtypes for the numbers that the data plane knows things by.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an array index.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A port of the data plane, 0..=511 (9 bits, as on Tofino and BMv2).
    PortId(u16)
}
id! {
    /// A link as the steering header names it, 0..=255.
    LinkIndex(u8)
}
id! {
    /// An ecofilter-unit, 0..=255.
    UnitId(u8)
}
id! {
    /// A pair of ports towards an appliance, 0..=511.
    PairId(u16)
}
id! {
    /// A worker core behind a pair, 0..=255.
    Core(u8)
}
id! {
    /// A bucket of one unit, 0..=65535.
    BucketIndex(u16)
}

/// Nanoseconds on one monotonic clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// The side of a link or of a pair: `lan` towards subscribers, `wan` towards the internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Towards the subscribers.
    Lan,
    /// Towards the internet.
    Wan,
}

impl Side {
    /// Both sides, LAN first.
    pub const BOTH: [Side; 2] = [Side::Lan, Side::Wan];

    /// 0 for LAN, 1 for WAN, as table keys and counter indices have it.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u8 {
        match self {
            Side::Lan => 0,
            Side::Wan => 1,
        }
    }

    /// The side of a table key's bit.
    #[inline]
    #[must_use]
    pub const fn from_bit(bit: bool) -> Self {
        if bit { Side::Wan } else { Side::Lan }
    }

    /// The other side.
    #[inline]
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Side::Lan => Side::Wan,
            Side::Wan => Side::Lan,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Lan => "lan",
            Side::Wan => "wan",
        })
    }
}
