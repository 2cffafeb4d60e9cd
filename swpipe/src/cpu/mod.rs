//! What the processor has, found out at run time: the frame path is compiled once for each kind, with the few steps
//! that want it said how ([`Isa`]). The results are the same on all.

mod baseline;
#[cfg(target_arch = "x86_64")]
mod crc;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use baseline::Baseline;

use dataplane::Side;
use dataplane::hash::Method;

use crate::headers::Headers;

/// Rules that are compared side by side.
pub(crate) const LANES: usize = 8;

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cpu {
    /// What every processor of the architecture has.
    Baseline,
    /// x86-64-v3 and carry-less multiplication: registers of 256 bits.
    Avx2,
    /// x86-64-v4 as well: registers of 512 bits.
    Avx512,
}

/// How a kind of processor does what it does in its own way. A value is a proof that the processor is of that kind.
pub(crate) trait Isa: Copy {
    /// A bit for each of eight rules whose value is what its mask leaves of the words.
    fn equal<const N: usize>(
        self,
        words: &[u64; N],
        masks: &[[u64; LANES]; N],
        values: &[[u64; LANES]; N],
    ) -> u8;

    /// A bit for each of eight ranges, of a lowest value and how many more there are, that has the value in it.
    fn within(self, value: u16, lows: &[u16; LANES], spans: &[u16; LANES]) -> u8;

    /// The hash of a session (contract, "Hash").
    fn hash(self, headers: &Headers, method: Method, side: Side) -> u32;
}

/// What is to be run.
pub(crate) trait Work {
    /// Runs it. To be inlined, always: so it is compiled for the processor that it runs on.
    fn run(self, isa: impl Isa);
}

impl Cpu {
    /// The best kind that this processor is.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return match (x86::Avx2::detect(), x86::Avx512::detect()) {
            (Some(_), Some(_)) => Cpu::Avx512,
            (Some(_), None) => Cpu::Avx2,
            (None, _) => Cpu::Baseline,
        };
        #[cfg(not(target_arch = "x86_64"))]
        Cpu::Baseline
    }

    /// Every kind that this processor is.
    pub fn all() -> impl Iterator<Item = Cpu> {
        let best = Cpu::detect();
        [Cpu::Baseline, Cpu::Avx2, Cpu::Avx512].into_iter().filter(move |cpu| *cpu <= best)
    }

    /// The hash of a session (contract, "Hash"), as this kind computes it.
    #[must_use]
    pub fn hash(self, headers: &Headers, method: Method, side: Side) -> u32 {
        let mut hash = 0;
        self.run(Hash { headers, method, side, hash: &mut hash });
        hash
    }

    /// Runs work, compiled for this kind; as [`Cpu::Baseline`] where the processor is not of it.
    #[inline(always)]
    pub(crate) fn run(self, work: impl Work) {
        #[cfg(target_arch = "x86_64")]
        {
            if self == Cpu::Avx512
                && let Some(isa) = x86::Avx512::detect()
            {
                return isa.run(work);
            }
            if self >= Cpu::Avx2
                && let Some(isa) = x86::Avx2::detect()
            {
                return isa.run(work);
            }
        }
        work.run(Baseline);
    }
}

struct Hash<'h> {
    headers: &'h Headers,
    method: Method,
    side: Side,
    hash: &'h mut u32,
}

impl Work for Hash<'_> {
    #[inline(always)]
    fn run(self, isa: impl Isa) {
        *self.hash = isa.hash(self.headers, self.method, self.side);
    }
}
