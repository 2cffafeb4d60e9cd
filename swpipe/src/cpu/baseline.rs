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
        let mut differs = [0; LANES];
        for ((word, masks), values) in words.iter().zip(masks).zip(values) {
            for ((differs, mask), value) in differs.iter_mut().zip(masks).zip(values) {
                *differs |= (word & mask) ^ value;
            }
        }
        bits(differs.map(|differs| differs == 0))
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
