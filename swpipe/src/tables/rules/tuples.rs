//! Tuple-space search: rules of one shape of masks are in one hash table, and a frame is looked up once a shape.
//!
//! Shapes are asked in the order of their best rules, and no further than a better rule could be. A port condition of
//! one value belongs to the shape; other ranges are compared behind the look-up.

mod ranges;
mod segment;

use std::sync::Arc;

use super::compiled::Compiled;
use super::{Matched, Rank};
use crate::shared_set::SharedSet;
use crate::word_hash::WordHash;
use segment::{Candidate, Segment, Split};

/// Bits of the hash that choose a segment at most; segments grow beyond their size then.
const DEEPEST: u8 = 20;

/// Rules by the shapes of their masks.
#[derive(Clone, Default)]
pub(super) struct Tuples<const N: usize> {
    /// In the order of their best ranks; none is empty.
    tuples: Vec<Arc<Tuple<N>>>,
    hash: WordHash,
    len: usize,
}

/// All rules of one shape. The table is an extendible hash table, of which a change copies one segment.
#[derive(Clone)]
struct Tuple<const N: usize> {
    mask: [u64; N],
    /// Of ports whose condition is one value.
    ports_mask: u32,
    /// The first of `ranks`.
    best: Rank,
    /// Bits of the hash that choose a segment.
    depth: u8,
    /// By the first `depth` bits of the hash. A segment of a smaller depth stands at all places that begin with its bits.
    segments: Vec<Arc<Segment<N>>>,
    ranks: SharedSet<Rank>,
}

impl<const N: usize> Tuples<N> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first_match(&self, words: &[u64; N], ports: u32) -> Option<Matched> {
        let mut best: Option<&Candidate> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|best| best.rank < tuple.best) {
                break;
            }
            let found = tuple.find(words, ports, self.hash);
            if let Some(found) = found
                && best.is_none_or(|best| found.rank < best.rank)
            {
                best = Some(found);
            }
        }
        best.map(|best| (best.slot, best.action))
    }

    fn position(&self, rule: &Compiled<N>) -> Option<usize> {
        let (ports_mask, _) = rule.exact_ports();
        self.tuples.iter().position(|tuple| tuple.ports_mask == ports_mask && tuple.mask == rule.mask)
    }

    /// Puts a rule in; one of the same rank and conditions is replaced.
    pub(super) fn set(&mut self, rank: Rank, rule: Compiled<N>) {
        let at = self.position(&rule).unwrap_or_else(|| {
            self.tuples.push(Arc::new(Tuple::empty(&rule)));
            self.tuples.len() - 1
        });
        if let Some(tuple) = self.tuples.get_mut(at).map(Arc::make_mut) {
            self.len += usize::from(tuple.set(rank, rule, self.hash));
        }
        self.settle(at);
    }

    /// Takes a rule out.
    pub(super) fn clear(&mut self, rank: Rank, rule: &Compiled<N>) {
        let Some(at) = self.position(rule) else { return };
        let Some(tuple) = self.tuples.get_mut(at).map(Arc::make_mut) else { return };
        self.len -= usize::from(tuple.clear(rank, rule, self.hash));
        if tuple.ranks.is_empty() {
            self.tuples.remove(at);
        } else {
            self.settle(at);
        }
    }

    /// Brings the tuple at a place, whose best rank may have changed, to its own.
    fn settle(&mut self, at: usize) {
        if at >= self.tuples.len() {
            return;
        }
        let tuple = self.tuples.remove(at);
        let place = self.tuples.partition_point(|other| other.best < tuple.best);
        self.tuples.insert(place, tuple);
    }

    /// All rules, in no order.
    pub(super) fn rules(&self) -> Vec<(Rank, Compiled<N>)> {
        self.tuples.iter().flat_map(|tuple| tuple.rules()).collect()
    }
}

impl<const N: usize> Tuple<N> {
    fn empty(rule: &Compiled<N>) -> Self {
        Tuple {
            mask: rule.mask,
            ports_mask: rule.exact_ports().0,
            best: Rank::LAST,
            depth: 0,
            segments: vec![Arc::new(Segment::empty(0))],
            ranks: SharedSet::default(),
        }
    }

    /// Place of the segment of a hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        // In two steps, since no bit at all is 64 of them.
        (hash >> 1 >> (63 - self.depth)) as usize
    }

    #[inline(always)]
    fn find(&self, words: &[u64; N], ports: u32, hash: WordHash) -> Option<&Candidate> {
        let mut key = *words;
        key.iter_mut().zip(&self.mask).for_each(|(word, mask)| *word &= mask);
        let masked = ports & self.ports_mask;
        let hash = hash.of(&key, masked);
        self.segments.get(self.place(hash))?.find(hash, &key, masked, ports)
    }

    /// Whether the rule is one more.
    fn set(&mut self, rank: Rank, rule: Compiled<N>, hasher: WordHash) -> bool {
        let (_, ports) = rule.exact_ports();
        let hash = hasher.of(&rule.value, ports);
        loop {
            let place = self.place(hash);
            let Some(segment) = self.segments.get_mut(place) else { return false };
            if segment.has_room(&rule.value, ports) || segment.depth() == DEEPEST {
                let (depth, mut next) = (segment.depth(), Segment::clone(segment));
                next.set(hash, &rule.value, ports, Candidate::of(rank, &rule));
                self.replace(place, depth, next);
                break;
            }
            self.split(place, hasher);
        }
        let is_new = self.ranks.get(&rank).is_none();
        self.ranks.replace(rank);
        self.best = self.best.min(rank);
        is_new
    }

    /// Two segments in the place of the one that stands there.
    fn split(&mut self, place: usize, hasher: WordHash) {
        let Some(segment) = self.segments.get(place) else { return };
        if segment.depth() == self.depth {
            self.segments =
                self.segments.iter().flat_map(|segment| [segment.clone(), segment.clone()]).collect();
            self.depth += 1;
            return;
        }
        let Split { zero, one } = segment.split(hasher);
        let (depth, span) = (segment.depth(), 1_usize << (self.depth - segment.depth()));
        let first = place >> (self.depth - depth) << (self.depth - depth);
        let (zero, one) = (Arc::new(zero), Arc::new(one));
        for (number, at) in (first..first + span).enumerate() {
            if let Some(segment) = self.segments.get_mut(at) {
                *segment = if number < span / 2 { zero.clone() } else { one.clone() };
            }
        }
    }

    /// Whether there was such a rule.
    fn clear(&mut self, rank: Rank, rule: &Compiled<N>, hasher: WordHash) -> bool {
        if self.ranks.take(&rank).is_none() {
            return false;
        }
        let (_, ports) = rule.exact_ports();
        let hash = hasher.of(&rule.value, ports);
        let place = self.place(hash);
        // A segment at several places is one: all of them get the copy.
        if let Some(segment) = self.segments.get(place) {
            let (depth, mut next) = (segment.depth(), Segment::clone(segment));
            next.clear(&rule.value, ports, rank, hasher);
            self.replace(place, depth, next);
        }
        self.best = self.ranks.first().copied().unwrap_or(Rank::LAST);
        true
    }

    fn replace(&mut self, place: usize, depth: u8, segment: Segment<N>) {
        let shift = self.depth - depth;
        let first = place >> shift << shift;
        let segment = Arc::new(segment);
        for at in first..first + (1 << shift) {
            if let Some(old) = self.segments.get_mut(at) {
                *old = segment.clone();
            }
        }
    }

    fn rules(&self) -> impl Iterator<Item = (Rank, Compiled<N>)> {
        // Each segment once: at the first of its places.
        let once = self
            .segments
            .iter()
            .enumerate()
            .filter(|(at, segment)| at.trailing_zeros() >= u32::from(self.depth - segment.depth()));
        once.flat_map(|(_, segment)| segment.rules(self.mask))
    }
}
