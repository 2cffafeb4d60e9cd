//! The hash by carry-less multiplication (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction", Intel 2009): a session is one block of sixteen bytes, or three. Zeros in front of a message change
//! nothing, once the initial value has been put into its first bytes.
//!
//! With AVX2, so that no instruction of the old encoding stands among those that use wide registers, which is slow.

use std::arch::x86_64::{
    __m128i, _mm_alignr_epi8, _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32, _mm_max_epu32,
    _mm_min_epu32, _mm_set_epi8, _mm_set_epi64x, _mm_shuffle_epi8, _mm_slli_si128, _mm_srli_si128,
    _mm_xor_si128,
};

use dataplane::Side;
use dataplane::hash::Method;

use crate::headers::{Headers, Ip};

/// x^n mod P for reflected operands: by n = 128 + 64 and 128 (folding a block into the next), 96 - 32, 64; then P and
/// the quotient of x^64 by P.
const FOLD_LOW: i64 = 0x1_7519_97d0;
const FOLD_HIGH: i64 = 0x0_ccaa_009e;
const FOLD_64: i64 = 0x1_63cd_6124;
const POLYNOMIAL: i64 = 0x1_db71_0641;
const QUOTIENT: i64 = 0x1_f701_1641;

#[target_feature(enable = "pclmulqdq,avx2")]
#[inline]
pub(super) fn hash(headers: &Headers, method: Method, side: Side) -> u32 {
    let with_ports = match method {
        Method::Layer3 => false,
        Method::Layer4 => headers.has_ports() && !headers.fragment,
        Method::DstIp | Method::SrcIp => return headers.hash(method, side),
    };
    let proto = u64::from(headers.proto());
    let [_, a, b, c, d, ..] = headers.words;
    // As they stand behind the protocol: the lower port, then the higher.
    let ports = {
        let (src, dst) = ((headers.ports >> 16) as u16, headers.ports as u16);
        u64::from(src.min(dst).swap_bytes()) | u64::from(src.max(dst).swap_bytes()) << 16
    };
    match headers.ip {
        Ip::V4 | Ip::Not(_) => {
            let (src, dst) = ((a >> 32) as u32, a as u32);
            let low = u64::from(!src.min(dst).swap_bytes());
            let addresses = low | u64::from(src.max(dst).swap_bytes()) << 32;
            let block = if with_ports {
                _mm_set_epi64x(
                    (addresses >> 40 | proto << 24 | ports << 32).cast_signed(),
                    (addresses << 24).cast_signed(),
                )
            } else {
                _mm_set_epi64x((addresses >> 8 | proto << 56).cast_signed(), (addresses << 56).cast_signed())
            };
            reduced(block)
        }
        Ip::V6 => {
            // 32-bit words as numbers, the first one lowest.
            let words = |high: u64, low: u64| {
                _mm_set_epi64x(low.rotate_left(32).cast_signed(), high.rotate_left(32).cast_signed())
            };
            let (src, dst) = (words(a, b), words(c, d));
            let wire = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
            let low = _mm_shuffle_epi8(_mm_min_epu32(src, dst), wire);
            let low = _mm_xor_si128(low, _mm_set_epi64x(0, 0xffff_ffff));
            let high = _mm_shuffle_epi8(_mm_max_epu32(src, dst), wire);
            let block = if with_ports {
                let tail = _mm_set_epi64x(0, (proto | ports << 8).cast_signed());
                let block = folded(_mm_slli_si128::<11>(low), _mm_alignr_epi8::<5>(high, low));
                folded(block, _mm_alignr_epi8::<5>(tail, high))
            } else {
                let tail = _mm_set_epi64x(0, proto.cast_signed());
                let block = folded(_mm_slli_si128::<15>(low), _mm_alignr_epi8::<1>(high, low));
                folded(block, _mm_alignr_epi8::<1>(tail, high))
            };
            reduced(block)
        }
    }
}

/// A block and the one behind it as one.
#[target_feature(enable = "pclmulqdq,avx2")]
#[inline]
fn folded(block: __m128i, next: __m128i) -> __m128i {
    let by = _mm_set_epi64x(FOLD_HIGH, FOLD_LOW);
    let low = _mm_clmulepi64_si128::<0x00>(block, by);
    let high = _mm_clmulepi64_si128::<0x11>(block, by);
    _mm_xor_si128(_mm_xor_si128(low, high), next)
}

/// The CRC of a block.
#[target_feature(enable = "pclmulqdq,avx2")]
#[inline]
fn reduced(block: __m128i) -> u32 {
    let word = _mm_set_epi64x(0, 0xffff_ffff);
    // 128 bits to 96, to 64.
    let x = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x10>(block, _mm_set_epi64x(FOLD_HIGH, FOLD_LOW)),
        _mm_srli_si128::<8>(block),
    );
    let x = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x00>(_mm_and_si128(x, word), _mm_set_epi64x(0, FOLD_64)),
        _mm_srli_si128::<4>(x),
    );
    // Barrett: how often P goes into it, and what is left.
    let by = _mm_set_epi64x(QUOTIENT, POLYNOMIAL);
    let times = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(x, word), by);
    let left = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(times, word), by);
    !(_mm_extract_epi32::<1>(_mm_xor_si128(x, left)).cast_unsigned())
}
