//! x86-64 with wide registers.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_cmpeq_epi16, _mm_cmple_epu16_mask, _mm_loadu_si128, _mm_min_epu16,
    _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16, _mm_setzero_si128, _mm_sub_epi16, _mm256_and_si256,
    _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_or_si256,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256, _mm512_and_si512, _mm512_loadu_si512,
    _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_testn_epi64_mask, _mm512_xor_si512,
};

use dataplane::Side;
use dataplane::hash::Method;

use super::{Isa, LANES, Work, crc};
use crate::headers::Headers;

/// Proof of x86-64-v3 and carry-less multiplication.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Proof of x86-64-v4 and carry-less multiplication.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx2 {
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        let v3 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("movbe");
        (v3 && has!("pclmulqdq")).then_some(Avx2(()))
    }

    #[inline(always)]
    pub(super) fn run(self, work: impl Work) {
        // SAFETY: a value of this type is a proof of the features.
        unsafe { run_avx2(self, work) };
    }
}

impl Avx512 {
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        let v4 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        (v4 && Avx2::detect().is_some()).then_some(Avx512(()))
    }

    #[inline(always)]
    pub(super) fn run(self, work: impl Work) {
        // SAFETY: a value of this type is a proof of the features.
        unsafe { run_avx512(self, work) };
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,pclmulqdq")]
fn run_avx2(isa: Avx2, work: impl Work) {
    work.run(isa);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,pclmulqdq,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512(isa: Avx512, work: impl Work) {
    work.run(isa);
}

impl Isa for Avx2 {
    #[inline(always)]
    fn equal<const N: usize>(
        self,
        words: &[u64; N],
        masks: &[[u64; LANES]; N],
        values: &[[u64; LANES]; N],
    ) -> u8 {
        // SAFETY: `self` is a proof of the features.
        unsafe { equal_avx2(words, masks, values) }
    }

    #[inline(always)]
    fn within(self, value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8 {
        // SAFETY: `self` is a proof of the features.
        unsafe { within_avx2(value, lows, spans) }
    }

    #[inline(always)]
    fn hash(self, headers: &Headers, method: Method, side: Side) -> u32 {
        // SAFETY: `self` is a proof of the features.
        unsafe { crc::hash(headers, method, side) }
    }
}

impl Isa for Avx512 {
    #[inline(always)]
    fn equal<const N: usize>(
        self,
        words: &[u64; N],
        masks: &[[u64; LANES]; N],
        values: &[[u64; LANES]; N],
    ) -> u8 {
        // SAFETY: `self` is a proof of the features.
        unsafe { equal_avx512(words, masks, values) }
    }

    #[inline(always)]
    fn within(self, value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8 {
        // SAFETY: `self` is a proof of the features.
        unsafe { within_avx512(value, lows, spans) }
    }

    #[inline(always)]
    fn hash(self, headers: &Headers, method: Method, side: Side) -> u32 {
        // SAFETY: `self` is a proof of the features.
        unsafe { crc::hash(headers, method, side) }
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(lanes: &[u64; LANES]) -> [__m256i; 2] {
    let from = lanes.as_ptr().cast::<__m256i>();
    // SAFETY: two loads of four of the eight lanes each, which need no alignment.
    unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal_avx2<const N: usize>(words: &[u64; N], masks: &[[u64; LANES]; N], values: &[[u64; LANES]; N]) -> u8 {
    let zero = _mm256_setzero_si256();
    let mut differs = [zero; 2];
    for ((word, masks), values) in words.iter().zip(masks).zip(values) {
        let word = _mm256_set1_epi64x(word.cast_signed());
        for ((differs, mask), value) in differs.iter_mut().zip(halves(masks)).zip(halves(values)) {
            *differs = _mm256_or_si256(*differs, _mm256_xor_si256(_mm256_and_si256(word, mask), value));
        }
    }
    let [low, high] =
        differs.map(|differs| _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(differs, zero))));
    (high << 4 | low) as u8
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(lanes: &[u64; LANES]) -> __m512i {
    // SAFETY: a load of all eight lanes, which needs no alignment.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn equal_avx512<const N: usize>(
    words: &[u64; N],
    masks: &[[u64; LANES]; N],
    values: &[[u64; LANES]; N],
) -> u8 {
    let mut differs = _mm512_setzero_si512();
    for ((word, masks), values) in words.iter().zip(masks).zip(values) {
        let masked = _mm512_and_si512(_mm512_set1_epi64(word.cast_signed()), load(masks));
        differs = _mm512_or_si512(differs, _mm512_xor_si512(masked, load(values)));
    }
    _mm512_testn_epi64_mask(differs, differs)
}

#[target_feature(enable = "sse2")]
#[inline]
fn shorts(lanes: &[u16; LANES]) -> __m128i {
    // SAFETY: a load of all eight lanes, which needs no alignment.
    unsafe { _mm_loadu_si128(lanes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn within_avx2(value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8 {
    let beyond = _mm_sub_epi16(_mm_set1_epi16(value.cast_signed()), shorts(lows));
    // At most the span: the smaller of both is itself.
    let within = _mm_cmpeq_epi16(_mm_min_epu16(beyond, shorts(spans)), beyond);
    _mm_movemask_epi8(_mm_packs_epi16(within, _mm_setzero_si128())) as u8
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn within_avx512(value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8 {
    let beyond = _mm_sub_epi16(_mm_set1_epi16(value.cast_signed()), shorts(lows));
    _mm_cmple_epu16_mask(beyond, shorts(spans))
}
