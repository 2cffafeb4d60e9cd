//! `rules_v4` and `rules_v6`: flow rules, highest priority first.
//!
//! A few rules are compared one by one. More are kept by the shape of their masks ([`tuples`]), so that a frame's cost
//! is the number of shapes, not of rules; workers have a [`flow cache`](crate::flow_cache) in front of that.

mod compiled;
mod few;
mod ordered;
#[cfg(test)]
mod tests;
mod tuples;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dataplane::tables::{Family, RuleAction, RuleEntry};

use crate::cpu::{Baseline, Isa};
use crate::headers::{Headers, Ip, V4_WORDS, V6_WORDS};
use compiled::{compile_v4, compile_v6};
pub use ordered::Ordered;

/// Counter of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleSlot(pub u32);

/// Where a rule stands, beside its match: the same until it is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its counter.
    pub slot: RuleSlot,
    /// Its turn among the rules of its priority: lower ones come first.
    pub turn: u64,
}

/// The order of rules: from the highest priority to the lowest, then by turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(Reverse<i32>, u64);

impl Rank {
    /// Behind every rule.
    const LAST: Rank = Rank(Reverse(i32::MIN), u64::MAX);

    fn of(rule: &RuleEntry, seat: Seat) -> Self {
        Rank(Reverse(rule.priority), seat.turn)
    }
}

/// A rule that matched: its counter and what it does.
pub type Matched = (RuleSlot, RuleAction);

/// Numbers every state of every rule table, so that what was remembered of another one is known to be old.
static STATES: AtomicU64 = AtomicU64::new(0);

/// Rules of both tables.
#[derive(Clone, Default)]
pub struct Rules {
    /// For IPv4, and for frames without an IP header.
    pub v4: Ordered<V4_WORDS>,
    /// For IPv6.
    pub v6: Ordered<V6_WORDS>,
    state: u64,
}

impl Rules {
    /// The rule of highest priority that matches.
    #[must_use]
    pub fn lookup(&self, headers: &Headers) -> Option<Matched> {
        self.first_match(headers, Baseline)
    }

    #[inline(always)]
    pub(crate) fn first_match(&self, headers: &Headers, isa: impl Isa) -> Option<Matched> {
        match headers.ip {
            Ip::V6 => self.v6.first_match(&headers.words, headers.ports, isa),
            Ip::V4 | Ip::Not(_) => self.v4.first_match(headers.v4_words(), headers.ports, isa),
        }
    }

    /// Another number for every state that these rules were ever in, and no other rules'.
    #[inline]
    #[must_use]
    pub const fn state(&self) -> u64 {
        self.state
    }

    pub(super) fn set(&mut self, rule: &RuleEntry, seat: Seat) {
        let (rank, slot) = (Rank::of(rule, seat), seat.slot);
        match rule.family {
            Family::V4 => self.v4.set(rank, compile_v4(rule, slot)),
            Family::V6 => self.v6.set(rank, compile_v6(rule, slot)),
        }
        self.state = STATES.fetch_add(1, Relaxed) + 1;
    }

    pub(super) fn clear(&mut self, rule: &RuleEntry, seat: Seat) {
        let (rank, slot) = (Rank::of(rule, seat), seat.slot);
        match rule.family {
            Family::V4 => self.v4.clear(rank, &compile_v4(rule, slot)),
            Family::V6 => self.v6.clear(rank, &compile_v6(rule, slot)),
        }
        self.state = STATES.fetch_add(1, Relaxed) + 1;
    }
}
