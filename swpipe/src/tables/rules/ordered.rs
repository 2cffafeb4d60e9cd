//! The rules of one table, however many.

use super::compiled::Compiled;
use super::few::Few;
use super::tuples::Tuples;
use super::{Matched, Rank};
use crate::cpu::Isa;

/// Rules that are compared one by one at most.
const FEW: usize = 32;
/// Tuples with no more rules become a few again; apart from [`FEW`], so that one rule to and fro does not build all anew.
const FEW_AGAIN: usize = 16;

#[derive(Clone)]
enum Kind<const N: usize> {
    Few(Few<N>),
    Many(Tuples<N>),
}

/// Rules in order, of which no two have one rank. A change copies what it touches; the rest is shared with the
/// snapshot before.
#[derive(Clone)]
pub struct Ordered<const N: usize> {
    kind: Kind<N>,
    /// Bits that any rule looks at; after a deletion maybe more.
    looked_at: [u64; N],
    ports_looked_at: u32,
}

impl<const N: usize> Default for Ordered<N> {
    fn default() -> Self {
        Ordered { kind: Kind::Few(Few::EMPTY), looked_at: [0; N], ports_looked_at: 0 }
    }
}

impl<const N: usize> Ordered<N> {
    /// The rule of highest priority that matches.
    #[inline(always)]
    #[must_use]
    pub(crate) fn first_match(&self, words: &[u64; N], ports: u32, isa: impl Isa) -> Option<Matched> {
        match &self.kind {
            Kind::Few(few) => few.first_match(words, ports, isa),
            Kind::Many(tuples) => tuples.first_match(words, ports),
        }
    }

    /// How many rules.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Few(few) => few.len(),
            Kind::Many(tuples) => tuples.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What of a key makes a difference to the rules.
    #[inline(always)]
    #[must_use]
    pub fn relevant(&self, words: &[u64; N], ports: u32) -> ([u64; N], u32) {
        let mut relevant = *words;
        relevant.iter_mut().zip(&self.looked_at).for_each(|(word, mask)| *word &= mask);
        (relevant, ports & self.ports_looked_at)
    }

    fn look_at(&mut self, rule: &Compiled<N>) {
        self.looked_at.iter_mut().zip(&rule.mask).for_each(|(all, mask)| *all |= mask);
        self.ports_looked_at |= rule.ports_mask();
    }

    pub(super) fn set(&mut self, rank: Rank, rule: Compiled<N>) {
        self.look_at(&rule);
        match &mut self.kind {
            Kind::Few(few) if few.len() < FEW => few.set(rank, rule),
            Kind::Few(few) => {
                let mut tuples = Tuples::default();
                few.iter().for_each(|(rank, rule)| tuples.set(rank, *rule));
                tuples.set(rank, rule);
                self.kind = Kind::Many(tuples);
            }
            Kind::Many(tuples) => tuples.set(rank, rule),
        }
    }

    /// Takes a rule out; `rule` has the conditions that it was put in with.
    pub(super) fn clear(&mut self, rank: Rank, rule: &Compiled<N>) {
        match &mut self.kind {
            Kind::Few(few) => few.clear(rank),
            Kind::Many(tuples) => {
                tuples.clear(rank, rule);
                if tuples.len() > FEW_AGAIN {
                    return;
                }
                let mut few = Few::EMPTY;
                tuples.rules().into_iter().for_each(|(rank, rule)| few.set(rank, rule));
                self.kind = Kind::Few(few);
            }
        }
        let Kind::Few(few) = &self.kind else { return };
        let rules: Vec<Compiled<N>> = few.iter().map(|(_, rule)| *rule).collect();
        (self.looked_at, self.ports_looked_at) = ([0; N], 0);
        rules.iter().for_each(|rule| self.look_at(rule));
    }
}
