//! The flow cache: what rules said of a flow, by all that the rules look at. One worker's own.
//!
//! An entry holds for one state of the rules, so that nothing is left of it once they change. What is remembered is the
//! rule, not what came of it: every frame is counted by its rule and goes the way of the tables as they are.

use dataplane::tables::RuleAction;

use crate::cpu::Isa;
use crate::headers::{Headers, Ip, V4_WORDS, V6_WORDS};
use crate::prefetch::prefetch;
use crate::tables::{Matched, Ordered, RuleSlot, Rules};
use crate::word_hash::WordHash;

/// Entries for IPv4 and frames without an IP header, 64 bytes each. Twice as many as flows that a core's second-level
/// cache holds, so that few of those are pushed out by others.
const V4_ENTRIES: usize = 1 << 15;
/// Entries for IPv6, 128 bytes each.
const V6_ENTRIES: usize = 1 << 13;
/// Entries of which a flow has one: it is in either of two.
const WAYS: usize = 2;
/// Rules up to which comparing them all is less work than remembering.
const NOT_WORTH: usize = 16;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry<const N: usize> {
    words: [u64; N],
    ports: u32,
    /// The age of the rules that it holds for; 0 in an entry that was never used.
    age: u32,
    slot: RuleSlot,
    /// `None` where no rule matches.
    action: Option<RuleAction>,
}

const _: () = assert!(size_of::<Entry<V4_WORDS>>() == 64 && size_of::<Entry<V6_WORDS>>() == 128);

struct Table<const N: usize> {
    entries: Box<[[Entry<N>; WAYS]]>,
}

/// Of one worker.
pub struct FlowCache {
    v4: Table<V4_WORDS>,
    v6: Table<V6_WORDS>,
    hash: WordHash,
    /// The rules that entries of this age hold for.
    state: u64,
    age: u32,
}

/// Where in the cache a flow is, if it is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(u64);

impl<const N: usize> Table<N> {
    fn new(entries: usize) -> Self {
        let empty = Entry { words: [0; N], ports: 0, age: 0, slot: RuleSlot(0), action: None };
        Table { entries: vec![[empty; WAYS]; entries / WAYS].into() }
    }

    fn forget(&mut self) {
        self.entries.iter_mut().flatten().for_each(|entry| entry.age = 0);
    }

    #[inline(always)]
    fn set(&self, hash: u64) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        if let Some(set) = self.entries.get(self.set(hash)) {
            set.iter().for_each(prefetch);
        }
    }

    #[inline(always)]
    fn get(
        &mut self,
        hash: u64,
        age: u32,
        rules: &Ordered<N>,
        words: &[u64; N],
        ports: u32,
        isa: impl Isa,
    ) -> Option<Matched> {
        let at = self.set(hash);
        let Some(set) = self.entries.get_mut(at) else { return rules.first_match(words, ports, isa) };
        let (relevant, relevant_ports) = rules.relevant(words, ports);
        let is_it = |entry: &Entry<N>| {
            let differs = entry.words.iter().zip(&relevant).fold(0, |all, (a, b)| all | (a ^ b));
            differs | u64::from((entry.ports ^ relevant_ports) | (entry.age ^ age)) == 0
        };
        for entry in set.iter() {
            if is_it(entry) {
                return entry.action.map(|action| (entry.slot, action));
            }
        }
        let found = rules.first_match(words, ports, isa);
        // The way of another age, else one by chance.
        let way = if set[0].age != age {
            0
        } else if set[1].age != age {
            1
        } else {
            (hash >> 63) as usize
        };
        let (slot, action) = (found.map_or(RuleSlot(0), |(slot, _)| slot), found.map(|(_, action)| action));
        set[way] = Entry { words: relevant, ports: relevant_ports, age, slot, action };
        found
    }
}

impl Default for FlowCache {
    fn default() -> Self {
        FlowCache {
            v4: Table::new(V4_ENTRIES),
            v6: Table::new(V6_ENTRIES),
            hash: WordHash::default(),
            state: 0,
            age: 1,
        }
    }
}

impl FlowCache {
    /// Holds for these rules from now on; what was remembered of others is forgotten.
    #[inline(always)]
    pub fn follow(&mut self, rules: &Rules) {
        if self.state != rules.state() {
            self.renew(rules.state());
        }
    }

    #[inline(never)]
    fn renew(&mut self, state: u64) {
        self.state = state;
        self.age = self.age.wrapping_add(1);
        // After four thousand million changes ages come again.
        if self.age == 0 {
            self.v4.forget();
            self.v6.forget();
            self.age = 1;
        }
    }

    /// Whether there are so many rules that flows are remembered.
    #[inline(always)]
    #[must_use]
    pub fn is_worth(&self, rules: &Rules) -> bool {
        rules.v4.len().max(rules.v6.len()) > NOT_WORTH
    }

    /// Says where a flow is, and has it brought near.
    #[inline(always)]
    #[must_use]
    pub fn seek(&self, rules: &Rules, headers: &Headers) -> Place {
        match headers.ip {
            Ip::V6 if rules.v6.len() > NOT_WORTH => {
                let (words, ports) = rules.v6.relevant(&headers.words, headers.ports);
                let hash = self.hash.of(&words, ports);
                self.v6.prefetch(hash);
                Place(hash)
            }
            Ip::V4 | Ip::Not(_) if rules.v4.len() > NOT_WORTH => {
                let (words, ports) = rules.v4.relevant(headers.v4_words(), headers.ports);
                let hash = self.hash.of(&words, ports);
                self.v4.prefetch(hash);
                Place(hash)
            }
            _ => Place(0),
        }
    }

    /// The rule of a flow; `place` is where [`FlowCache::seek`] said it is, by the same rules.
    #[inline(always)]
    pub(crate) fn lookup(
        &mut self,
        rules: &Rules,
        headers: &Headers,
        place: Place,
        isa: impl Isa,
    ) -> Option<Matched> {
        let ports = headers.ports;
        match headers.ip {
            Ip::V6 if rules.v6.len() > NOT_WORTH => {
                self.v6.get(place.0, self.age, &rules.v6, &headers.words, ports, isa)
            }
            Ip::V4 | Ip::Not(_) if rules.v4.len() > NOT_WORTH => {
                self.v4.get(place.0, self.age, &rules.v4, headers.v4_words(), ports, isa)
            }
            _ => rules.first_match(headers, isa),
        }
    }
}
