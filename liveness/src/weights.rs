//! `weight auto`: buckets move, a few at a time, from pairs that cost much to pairs that cost little.
//!
//! A pair's share of the buckets is in proportion to 1 / cost, from half to twice the share of the median pair. A
//! bucket moves only while its giver and its taker are together half of an even share (at least two buckets) away from
//! their shares. Each move brings both nearer, so with steady costs it ends; and to move it back the shares themselves
//! must change by as much, so that noise moves nothing to and fro.

use crate::{Nanos, PairKey};

/// A pair that may give and take buckets: active, `up`, with a known cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// The pair.
    pub pair: PairKey,
    /// See [`crate::cost()`].
    pub cost: Nanos,
}

/// A bucket that is to go to another pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its place in the table.
    pub bucket: usize,
    /// The pair that has it.
    pub from: PairKey,
    /// The pair that is to have it.
    pub to: PairKey,
}

/// Shares are counted in these parts of a bucket.
const PARTS: i128 = 1 << 16;

/// Which buckets move, at most `allowed`. `assignment` is the pair of each bucket; buckets of pairs that are not
/// weighed stay where they are.
#[must_use]
pub fn moves(pairs: &[Weighed], assignment: &[PairKey], allowed: usize) -> Vec<Move> {
    let mut seats: Vec<Seat> = seats(pairs, assignment);
    let held: i128 = seats.iter().map(|seat| seat.buckets.len() as i128).sum();
    let tolerance = (held * PARTS / (4 * seats.len().max(1) as i128)).max(PARTS);
    let mut moves = Vec::new();
    while moves.len() < allowed {
        // The first of equals, so that the same figures give the same moves.
        let giver = (0..seats.len()).rev().max_by_key(|&i| seats[i].excess());
        let taker = (0..seats.len()).min_by_key(|&i| seats[i].excess());
        let (Some(giver), Some(taker)) = (giver, taker) else { break };
        if seats[giver].excess() - seats[taker].excess() < 2 * tolerance {
            break;
        }
        let Some(bucket) = seats[giver].buckets.pop() else { break };
        seats[taker].buckets.push(bucket);
        moves.push(Move { bucket, from: seats[giver].pair, to: seats[taker].pair });
    }
    moves
}

/// A pair with its buckets.
struct Seat {
    pair: PairKey,
    /// The last one goes first.
    buckets: Vec<usize>,
    /// In parts of a bucket.
    share: i128,
}

impl Seat {
    fn excess(&self) -> i128 {
        self.buckets.len() as i128 * PARTS - self.share
    }
}

fn seats(pairs: &[Weighed], assignment: &[PairKey]) -> Vec<Seat> {
    let mut costs: Vec<u64> = pairs.iter().map(|pair| pair.cost.0.max(1)).collect();
    costs.sort_unstable();
    let Some(&median) = costs.get(costs.len() / 2) else { return Vec::new() };
    let weight = |pair: &Weighed| {
        let weight = PARTS * i128::from(median) / i128::from(pair.cost.0.max(1));
        weight.clamp(PARTS / 2, PARTS * 2)
    };
    let of = |pair: PairKey| (0..assignment.len()).rev().filter(move |&bucket| assignment[bucket] == pair);
    let mut seats: Vec<Seat> = pairs
        .iter()
        .map(|pair| Seat { pair: pair.pair, buckets: of(pair.pair).collect(), share: 0 })
        .collect();
    let held: i128 = seats.iter().map(|seat| seat.buckets.len() as i128).sum();
    let total: i128 = pairs.iter().map(weight).sum();
    for (seat, pair) in seats.iter_mut().zip(pairs) {
        seat.share = held * PARTS * weight(pair) / total;
    }
    seats
}

/// The rate limit of a unit: one bucket in a hundred per minute, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Between two moves.
    pace: Nanos,
    next: Nanos,
}

impl Allowance {
    /// For a unit of so many buckets; the first may move when one has fallen due.
    #[must_use]
    pub fn new(buckets: usize, now: Nanos) -> Allowance {
        const HUNDRED_MINUTES: u64 = 6_000_000_000_000;
        let pace = Nanos(HUNDRED_MINUTES.div_ceil((buckets as u64).max(1)));
        Allowance { pace, next: now + pace }
    }

    /// When the next bucket may move.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// How many buckets may move now: one or none. What was not used is not made up for, or a minute could see more
    /// than its share.
    #[must_use]
    pub fn available(&self, now: Nanos) -> usize {
        usize::from(now >= self.next)
    }

    /// A bucket moved.
    pub fn spend(&mut self, now: Nanos) {
        self.next = now + self.pace;
    }
}
