//! A hash of whole words for tables of ours: three multiplications, keyed anew by every process, so that nobody outside
//! can make frames that fall into one place. It is none of the wire's.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Words of a key at most, with the one of its ports.
const WORDS: usize = 10;

static KEYS: LazyLock<[u64; WORDS]> = LazyLock::new(|| {
    let random = RandomState::new();
    std::array::from_fn(|at| random.hash_one(at))
});

/// The hash, with the keys of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordHash([u64; WORDS]);

impl Default for WordHash {
    fn default() -> Self {
        WordHash(*KEYS)
    }
}

impl WordHash {
    /// Of a key.
    #[inline(always)]
    #[must_use]
    pub(crate) fn of<const N: usize>(&self, words: &[u64; N], ports: u32) -> u64 {
        const { assert!(N < WORDS) };
        let (pairs, last) = words.as_chunks::<2>();
        let (keys, _) = self.0.as_chunks::<2>();
        let mut sum = 0;
        for ([a, b], [key_a, key_b]) in pairs.iter().zip(keys) {
            sum ^= folded(a ^ key_a, b ^ key_b);
        }
        let last = last.first().copied().unwrap_or_default();
        sum ^ folded(last ^ self.0[WORDS - 2], u64::from(ports) ^ self.0[WORDS - 1])
    }
}

/// Both halves of the product.
#[inline(always)]
const fn folded(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
