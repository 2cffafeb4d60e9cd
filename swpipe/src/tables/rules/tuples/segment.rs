//! A part of a tuple's hash table: keys whose hashes begin alike.

use std::cmp::Ordering;

use dataplane::tables::{PortRange, RuleAction};

use super::super::compiled::Compiled;
use super::super::{Rank, RuleSlot};
use super::ranges::Ranges;
use crate::word_hash::WordHash;

/// Keys with a tag, beyond which a segment is split.
const SLOTS: usize = 32;

/// What a key's rules have apart from the key.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) rank: Rank,
    pub(super) src_port: PortRange,
    pub(super) dst_port: PortRange,
    pub(super) slot: RuleSlot,
    pub(super) action: RuleAction,
}

impl Candidate {
    pub(super) fn of<const N: usize>(rank: Rank, rule: &Compiled<N>) -> Self {
        let Compiled { src_port, dst_port, slot, action, .. } = *rule;
        Candidate { rank, src_port, dst_port, slot, action }
    }

    #[inline(always)]
    pub(super) fn matches(&self, ports: u32) -> bool {
        self.src_port.contains((ports >> 16) as u16) && self.dst_port.contains(ports as u16)
    }
}

/// The rules of one key.
#[derive(Clone)]
struct Keyed<const N: usize> {
    words: [u64; N],
    ports: u32,
    /// Of the highest rank.
    first: Candidate,
    /// The others: the same key with other port ranges or a lower rank.
    others: Others,
}

#[derive(Clone)]
enum Others {
    /// In order.
    Few(Vec<Candidate>),
    Many(Box<Ranges>),
}

/// Others that are compared one by one at most.
const FEW_OTHERS: usize = 16;

impl<const N: usize> Keyed<N> {
    fn has_key(&self, words: &[u64; N], ports: u32) -> bool {
        self.words == *words && self.ports == ports
    }

    /// All, in no order.
    fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        let (few, many) = match &self.others {
            Others::Few(few) => (Some(few), None),
            Others::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten();
        std::iter::once(&self.first).chain(few).chain(many.into_iter().flat_map(|many| many.iter()))
    }

    /// The best that admits the ports.
    #[inline(always)]
    fn first(&self, ports: u32) -> Option<&Candidate> {
        if self.first.matches(ports) {
            return Some(&self.first);
        }
        match &self.others {
            Others::Few(few) => few.iter().find(|rule| rule.matches(ports)),
            Others::Many(many) => many.first(ports),
        }
    }

    fn set(&mut self, rule: Candidate) {
        let other = match rule.rank.cmp(&self.first.rank) {
            Ordering::Less => std::mem::replace(&mut self.first, rule),
            Ordering::Equal => {
                self.first = rule;
                return;
            }
            Ordering::Greater => rule,
        };
        match &mut self.others {
            Others::Few(few) => {
                let at = few.partition_point(|rule| rule.rank < other.rank);
                match few.get_mut(at).filter(|same| same.rank == other.rank) {
                    Some(same) => *same = other,
                    None => few.insert(at, other),
                }
                if few.len() > FEW_OTHERS {
                    let mut many = Ranges::default();
                    few.drain(..).for_each(|rule| many.set(rule));
                    self.others = Others::Many(Box::new(many));
                }
            }
            Others::Many(many) => many.set(other),
        }
    }

    /// Takes a rule out; whether none is left.
    fn clear(&mut self, rank: Rank) -> bool {
        let next = match &self.others {
            Others::Few(few) => few.first().copied(),
            Others::Many(many) => many.iter().next().copied(),
        };
        let gone = if rank == self.first.rank {
            let Some(next) = next else { return true };
            self.first = next;
            next.rank
        } else {
            rank
        };
        match &mut self.others {
            Others::Few(few) => few.retain(|rule| rule.rank != gone),
            Others::Many(many) => {
                many.clear(gone);
                if many.len() <= FEW_OTHERS / 2 {
                    self.others = Others::Few(many.iter().copied().collect());
                }
            }
        }
        false
    }
}

/// Some hundred bytes in front, so that a key that is not there costs one line of the cache.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Segment<const N: usize> {
    /// Sixteen bits of the hash of each of the first keys.
    tags: [u16; SLOTS],
    keyed: Vec<Keyed<N>>,
    /// Bits that all hashes here begin with.
    depth: u8,
}

/// What a segment is split into.
pub(super) struct Split<const N: usize> {
    /// Keys whose next bit is 0.
    pub(super) zero: Segment<N>,
    /// Keys whose next bit is 1.
    pub(super) one: Segment<N>,
}

const fn tag(hash: u64) -> u16 {
    hash as u16
}

impl<const N: usize> Segment<N> {
    pub(super) const fn empty(depth: u8) -> Self {
        Segment { tags: [0; SLOTS], keyed: Vec::new(), depth }
    }

    pub(super) const fn depth(&self) -> u8 {
        self.depth
    }

    fn position(&self, words: &[u64; N], ports: u32) -> Option<usize> {
        self.keyed.iter().position(|keyed| keyed.has_key(words, ports))
    }

    /// The best rule with this key that admits the ports; `masked` are those of the key.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, words: &[u64; N], masked: u32, ports: u32) -> Option<&Candidate> {
        let tag = tag(hash);
        let mut hits = self
            .tags
            .iter()
            .enumerate()
            .fold(0_u32, |hits, (at, other)| hits | u32::from(*other == tag) << at);
        while hits != 0 {
            let at = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            if let Some(keyed) = self.keyed.get(at)
                && keyed.has_key(words, masked)
            {
                return keyed.first(ports);
            }
        }
        // Without a tag: only where the hashes of very many keys begin alike.
        self.keyed.get(SLOTS..)?.iter().find(|keyed| keyed.has_key(words, masked))?.first(ports)
    }

    /// Whether a rule of this key has room.
    pub(super) fn has_room(&self, words: &[u64; N], ports: u32) -> bool {
        self.keyed.len() < SLOTS || self.position(words, ports).is_some()
    }

    /// Puts a rule in.
    pub(super) fn set(&mut self, hash: u64, words: &[u64; N], ports: u32, rule: Candidate) {
        let Some(keyed) = self.position(words, ports).and_then(|at| self.keyed.get_mut(at)) else {
            if let Some(place) = self.tags.get_mut(self.keyed.len()) {
                *place = tag(hash);
            }
            self.keyed.push(Keyed { words: *words, ports, first: rule, others: Others::Few(Vec::new()) });
            return;
        };
        keyed.set(rule);
    }

    /// Takes the rule of this rank out.
    pub(super) fn clear(&mut self, words: &[u64; N], ports: u32, rank: Rank, hasher: WordHash) {
        let Some(at) = self.position(words, ports) else { return };
        let Some(keyed) = self.keyed.get_mut(at) else { return };
        if keyed.clear(rank) {
            self.keyed.swap_remove(at);
            self.tag_all(hasher);
        }
    }

    fn tag_all(&mut self, hasher: WordHash) {
        self.tags = [0; SLOTS];
        for (place, keyed) in self.tags.iter_mut().zip(&self.keyed) {
            *place = tag(hasher.of(&keyed.words, keyed.ports));
        }
    }

    /// By the bit behind those that all have in common.
    pub(super) fn split(&self, hasher: WordHash) -> Split<N> {
        let bit = 63 - u32::from(self.depth);
        let is_one = |keyed: &&Keyed<N>| hasher.of(&keyed.words, keyed.ports) >> bit & 1 != 0;
        let (one, zero): (Vec<&Keyed<N>>, Vec<_>) = self.keyed.iter().partition(is_one);
        let part = |keyed: Vec<&Keyed<N>>| {
            let keyed = keyed.into_iter().cloned().collect();
            let mut part = Segment { keyed, ..Segment::empty(self.depth + 1) };
            part.tag_all(hasher);
            part
        };
        Split { zero: part(zero), one: part(one) }
    }

    /// All rules, whose masks are `mask`.
    pub(super) fn rules(&self, mask: [u64; N]) -> impl Iterator<Item = (Rank, Compiled<N>)> {
        self.keyed.iter().flat_map(move |keyed| {
            keyed.candidates().map(move |candidate| {
                let Candidate { rank, src_port, dst_port, slot, action } = *candidate;
                (rank, Compiled { mask, value: keyed.words, src_port, dst_port, action, slot })
            })
        })
    }
}
