use std::fmt;

use crate::proto::p4::v1::Uint128;

/// An election id: among the clients of a device, the highest is primary (P4Runtime, client arbitration).
///
/// A client without one (`Option::None` wherever it may be left out) never becomes primary. Id 0 is an
/// ordinary id, the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElectionId(pub u128);

impl fmt::Display for ElectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Uint128> for ElectionId {
    fn from(wire: Uint128) -> Self {
        Self((u128::from(wire.high) << 64) | u128::from(wire.low))
    }
}

impl From<ElectionId> for Uint128 {
    #[allow(clippy::cast_possible_truncation)] // both halves are exactly 64 bits
    fn from(id: ElectionId) -> Self {
        Self { high: (id.0 >> 64) as u64, low: id.0 as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_keep_their_order() {
        let id = ElectionId(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let wire = Uint128::from(id);
        assert_eq!((wire.high, wire.low), (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210));
        assert_eq!(ElectionId::from(wire), id);
        assert!(ElectionId(1 << 64) > ElectionId(u128::from(u64::MAX)));
    }
}
