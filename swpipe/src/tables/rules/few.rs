//! A few rules in their order, compared all at once: eight of them side by side, word by word, which a processor with
//! wide registers does in one step a word.

use dataplane::tables::RuleAction;

use super::compiled::Compiled;
use super::{Matched, Rank, RuleSlot};
use crate::cpu::{Isa, LANES};

/// Eight rules, word by word.
#[derive(Clone)]
#[repr(align(64))]
struct Group<const N: usize> {
    mask: [[u64; LANES]; N],
    value: [[u64; LANES]; N],
    /// Lowest source port, and how many more there are; the same of the destination.
    src_low: [u16; LANES],
    src_span: [u16; LANES],
    dst_low: [u16; LANES],
    dst_span: [u16; LANES],
    /// A bit for every place that has a rule.
    used: u8,
    matched: [Matched; LANES],
}

impl<const N: usize> Group<N> {
    fn of(rules: &[Compiled<N>]) -> Self {
        let mut group = Group {
            mask: [[0; LANES]; N],
            value: [[0; LANES]; N],
            src_low: [0; LANES],
            src_span: [0; LANES],
            dst_low: [0; LANES],
            dst_span: [0; LANES],
            used: 0,
            matched: [(RuleSlot(0), RuleAction::Bypass); LANES],
        };
        for (lane, rule) in rules.iter().enumerate().take(LANES) {
            for word in 0..N {
                group.mask[word][lane] = rule.mask[word];
                group.value[word][lane] = rule.value[word];
            }
            group.src_low[lane] = rule.src_port.low;
            group.src_span[lane] = rule.src_port.high.wrapping_sub(rule.src_port.low);
            group.dst_low[lane] = rule.dst_port.low;
            group.dst_span[lane] = rule.dst_port.high.wrapping_sub(rule.dst_port.low);
            group.used |= 1 << lane;
            group.matched[lane] = (rule.slot, rule.action);
        }
        group
    }

    /// A bit for every rule that matches.
    #[inline(always)]
    fn matching(&self, words: &[u64; N], ports: u32, isa: impl Isa) -> u8 {
        isa.equal(words, &self.mask, &self.value)
            & isa.within((ports >> 16) as u16, &self.src_low, &self.src_span)
            & isa.within(ports as u16, &self.dst_low, &self.dst_span)
            & self.used
    }
}

#[derive(Clone)]
pub(super) struct Few<const N: usize> {
    /// All rules, eight by eight.
    groups: Vec<Group<N>>,
    rules: Vec<Compiled<N>>,
    /// Of the rules.
    ranks: Vec<Rank>,
}

impl<const N: usize> Few<N> {
    pub(super) const EMPTY: Self = Few { groups: Vec::new(), rules: Vec::new(), ranks: Vec::new() };

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    #[inline(always)]
    pub(super) fn first_match(&self, words: &[u64; N], ports: u32, isa: impl Isa) -> Option<Matched> {
        for group in &self.groups {
            let matching = group.matching(words, ports, isa);
            if matching != 0 {
                return group.matched.get(matching.trailing_zeros() as usize).copied();
            }
        }
        None
    }

    /// Puts a rule in; one of the same rank is replaced.
    pub(super) fn set(&mut self, rank: Rank, rule: Compiled<N>) {
        match self.ranks.binary_search(&rank) {
            Ok(place) => {
                if let Some(same) = self.rules.get_mut(place) {
                    *same = rule;
                }
            }
            Err(place) => {
                self.ranks.insert(place, rank);
                self.rules.insert(place, rule);
            }
        }
        self.group();
    }

    pub(super) fn clear(&mut self, rank: Rank) {
        if let Ok(place) = self.ranks.binary_search(&rank) {
            self.ranks.remove(place);
            self.rules.remove(place);
            self.group();
        }
    }

    fn group(&mut self) {
        self.groups = self.rules.chunks(LANES).map(Group::of).collect();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Rank, &Compiled<N>)> {
        self.ranks.iter().copied().zip(&self.rules)
    }
}
