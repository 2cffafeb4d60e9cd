//! Any processor.

use dataplane::Side;
use dataplane::hash::Method;

use super::{Isa, LANES};
use crate::headers::Headers;

/// Proof of nothing.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

impl Isa for Baseline {
    #[inline(always)]
    fn equal<const N: usize>(
        self,
        words: &[u64; N],
        masks: &[[u64; LANES]; N],
        values: &[[u64; LANES]; N],
    ) -> u8 {
        let differs = |word: usize, lane: usize| {
            let at = |lanes: &[[u64; LANES]; N]| lanes.get(word).and_then(|lanes| lanes.get(lane)).copied();
            (words.get(word).copied().unwrap_or_default() & at(masks).unwrap_or_default())
                ^ at(values).unwrap_or_default()
        };
        // The first two words decide nearly always, one rule after the other.
        let mut equal = 0;
        for lane in 0..LANES {
            if differs(0, lane) | differs(1, lane) == 0 {
                let rest = (2..N).fold(0, |all, word| all | differs(word, lane));
                equal |= u8::from(rest == 0) << lane;
            }
        }
        equal
    }

    #[inline(always)]
    fn within(self, value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8 {
        let mut within = [false; LANES];
        for ((within, low), span) in within.iter_mut().zip(lows).zip(spans) {
            *within = value.wrapping_sub(*low) <= *span;
        }
        bits(within)
    }

    #[inline(always)]
    fn hash(self, headers: &Headers, method: Method, side: Side) -> u32 {
        headers.hash(method, side)
    }
}

#[inline(always)]
fn bits(lanes: [bool; LANES]) -> u8 {
    lanes.iter().rev().fold(0, |bits, lane| bits << 1 | u8::from(*lane))
}
