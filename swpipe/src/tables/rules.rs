//! `rules_v4` and `rules_v6`: flow rules, highest priority first.

use std::cmp::Reverse;
use std::sync::Arc;

use dataplane::tables::{
    Family, LLC_PRESENT, PortRange, RuleAction, RuleEntry, RuleField, RuleMatch, VLAN_PRESENT,
};
use dataplane::{Addresses, LinkIndex, Parsed};

/// Counter of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleSlot(pub u32);

/// Words of a packed key: fields of the first word, addresses, tags, source MAC, destination MAC.
const V4_WORDS: usize = 5;
const V6_WORDS: usize = 8;

/// A rule as the frame path compares it.
#[derive(Clone)]
struct Compiled<const N: usize> {
    mask: [u64; N],
    value: [u64; N],
    src_port: PortRange,
    dst_port: PortRange,
    action: RuleAction,
    slot: RuleSlot,
}

/// What of a frame rules look at.
struct Key<const N: usize> {
    words: [u64; N],
    src_port: u16,
    dst_port: u16,
}

impl<const N: usize> Compiled<N> {
    #[inline(always)]
    fn matches(&self, key: &Key<N>) -> bool {
        let differs = |word: usize| (key.words[word] & self.mask[word]) ^ self.value[word];
        // The first two words decide nearly always.
        if differs(0) | differs(1) != 0 {
            return false;
        }
        (2..N).fold(0, |all, word| all | differs(word)) == 0
            && self.src_port.contains(key.src_port)
            && self.dst_port.contains(key.dst_port)
    }
}

/// Rules of both tables.
#[derive(Clone, Default)]
pub struct Rules {
    v4: Ordered<V4_WORDS>,
    v6: Ordered<V6_WORDS>,
}

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
struct Rank(Reverse<i32>, u64);

impl Rank {
    fn of(rule: &RuleEntry, seat: Seat) -> Self {
        Rank(Reverse(rule.priority), seat.turn)
    }
}

/// Rules in a block at most.
const BLOCK: usize = 256;

/// Rules in order, of which no two have one rank.
#[derive(Clone)]
struct Block<const N: usize> {
    rules: Vec<Compiled<N>>,
    /// Of the rules.
    ranks: Vec<Rank>,
}

/// All rules in order. A change copies the blocks that it touches; the others are shared with the snapshot before.
#[derive(Clone)]
struct Ordered<const N: usize> {
    /// The first block, where most frames find their rule. Empty only if there are no rules.
    head: Block<N>,
    /// The others; none is empty.
    tail: Vec<Arc<Block<N>>>,
}

impl<const N: usize> Block<N> {
    const EMPTY: Self = Block { rules: Vec::new(), ranks: Vec::new() };

    fn len(&self) -> usize {
        self.ranks.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        let rest = Block { rules: self.rules.split_off(at), ranks: self.ranks.split_off(at) };
        self.rules.shrink_to_fit();
        self.ranks.shrink_to_fit();
        rest
    }
}

impl<const N: usize> Default for Ordered<N> {
    fn default() -> Self {
        Ordered { head: Block::EMPTY, tail: Vec::new() }
    }
}

impl<const N: usize> Ordered<N> {
    #[inline(always)]
    fn first_match(&self, key: &Key<N>) -> Option<(RuleSlot, RuleAction)> {
        match self.head.rules.iter().find(|rule| rule.matches(key)) {
            Some(rule) => Some((rule.slot, rule.action)),
            None if self.tail.is_empty() => None,
            None => self.match_in_tail(key),
        }
    }

    /// Apart, so that the way of a site with few rules is compiled as if there were no other.
    #[inline(never)]
    fn match_in_tail(&self, key: &Key<N>) -> Option<(RuleSlot, RuleAction)> {
        let mut rules = self.tail.iter().flat_map(|block| block.rules.iter());
        rules.find(|rule| rule.matches(key)).map(|rule| (rule.slot, rule.action))
    }

    fn block_mut(&mut self, at: usize) -> &mut Block<N> {
        match at.checked_sub(1).and_then(|at| self.tail.get_mut(at)) {
            None => &mut self.head,
            Some(block) => Arc::make_mut(block),
        }
    }

    /// The block that has the rank, or is to have it: the last that does not begin behind it.
    fn block_of(&self, rank: Rank) -> usize {
        self.tail.partition_point(|block| block.ranks.first().is_some_and(|first| *first <= rank))
    }

    /// Puts a rule in; one of the same rank is replaced.
    fn set(&mut self, rank: Rank, rule: Compiled<N>) {
        let at = self.block_of(rank);
        let block = self.block_mut(at);
        match block.ranks.binary_search(&rank) {
            Ok(place) => {
                if let Some(same) = block.rules.get_mut(place) {
                    *same = rule;
                }
            }
            Err(place) => {
                block.ranks.insert(place, rank);
                block.rules.insert(place, rule);
                if block.len() > BLOCK {
                    // What is appended in order fills blocks.
                    let rest = block.split_off(if place == BLOCK { BLOCK } else { BLOCK / 2 });
                    self.tail.insert(at, Arc::new(rest));
                }
            }
        }
    }

    fn clear(&mut self, rank: Rank) {
        let at = self.block_of(rank);
        let block = self.block_mut(at);
        let Ok(place) = block.ranks.binary_search(&rank) else { return };
        block.ranks.remove(place);
        block.rules.remove(place);
        let left = block.len();
        // Neighbours that together fill half a block become one, lest blocks grow small and many.
        if self.tail.get(at).is_some_and(|next| left + next.len() <= BLOCK / 2) {
            let next = Arc::unwrap_or_clone(self.tail.remove(at));
            let block = self.block_mut(at);
            block.ranks.extend(next.ranks);
            block.rules.extend(next.rules);
        } else if left == 0 && at > 0 {
            self.tail.remove(at - 1);
        } else if left == 0 && !self.tail.is_empty() {
            self.head = Arc::unwrap_or_clone(self.tail.remove(0));
        }
    }
}

impl Rules {
    /// The rule of highest priority that matches.
    #[inline(always)]
    #[must_use]
    pub fn lookup(&self, link: LinkIndex, parsed: &Parsed) -> Option<(RuleSlot, RuleAction)> {
        // By reference throughout: a copy of the session would wait for its narrow stores.
        let session = parsed.session.as_ref();
        let ports = session.and_then(|session| session.ports.as_ref());
        let (src_port, dst_port) = ports.map_or((0, 0), |ports| (ports.src, ports.dst));
        let [tags, src_mac, dst_mac] = l2_words(parsed);
        match session.map(|session| &session.addresses) {
            Some(&Addresses::V6 { src, dst }) => {
                let words = [
                    first_word(link, parsed, 0),
                    (src >> 64) as u64,
                    src as u64,
                    (dst >> 64) as u64,
                    dst as u64,
                    tags,
                    src_mac,
                    dst_mac,
                ];
                self.v6.first_match(&Key { words, src_port, dst_port })
            }
            Some(&Addresses::V4 { src, dst }) => {
                let addresses = u64::from(src) << 32 | u64::from(dst);
                let words = [first_word(link, parsed, 4), addresses, tags, src_mac, dst_mac];
                self.v4.first_match(&Key { words, src_port, dst_port })
            }
            None => {
                let words = [first_word(link, parsed, 0), 0, tags, src_mac, dst_mac];
                self.v4.first_match(&Key { words, src_port, dst_port })
            }
        }
    }

    pub(super) fn set(&mut self, rule: &RuleEntry, seat: Seat) {
        let (rank, slot) = (Rank::of(rule, seat), seat.slot);
        match rule.family {
            Family::V4 => self.v4.set(rank, compile_v4(rule, slot)),
            Family::V6 => self.v6.set(rank, compile_v6(rule, slot)),
        }
    }

    pub(super) fn clear(&mut self, rule: &RuleEntry, seat: Seat) {
        let rank = Rank::of(rule, seat);
        match rule.family {
            Family::V4 => self.v4.clear(rank),
            Family::V6 => self.v6.clear(rank),
        }
    }
}

/// Shifts of the first word's fields: 60 bits in all.
mod shift {
    pub(super) const LINK: u32 = 0;
    pub(super) const VLAN_DEPTH: u32 = 8;
    pub(super) const MPLS_DEPTH: u32 = 10;
    pub(super) const IP_VERSION: u32 = 13;
    pub(super) const IP_PROTO: u32 = 17;
    pub(super) const HAS_PORTS: u32 = 25;
    pub(super) const PACKET_TYPE: u32 = 26;
    pub(super) const LLC_DSAP: u32 = 42;
    pub(super) const LLC_SSAP: u32 = 51;
    pub(super) const VLAN1: u32 = 13;
    pub(super) const VLAN2: u32 = 26;
}

#[inline(always)]
fn first_word(link: LinkIndex, parsed: &Parsed, ip_version: u64) -> u64 {
    let mut word = u64::from(link.0) << shift::LINK
        | (parsed.vlans().len() as u64) << shift::VLAN_DEPTH
        | u64::from(parsed.mpls_depth) << shift::MPLS_DEPTH
        | ip_version << shift::IP_VERSION
        | u64::from(parsed.packet_type) << shift::PACKET_TYPE;
    if let Some(session) = &parsed.session {
        word |= u64::from(session.proto) << shift::IP_PROTO
            | u64::from(session.ports.is_some()) << shift::HAS_PORTS;
    }
    if let Some(llc) = parsed.llc {
        word |= (LLC_PRESENT as u64 | u64::from(llc.dsap)) << shift::LLC_DSAP
            | (LLC_PRESENT as u64 | u64::from(llc.ssap)) << shift::LLC_SSAP;
    }
    word
}

#[inline(always)]
fn l2_words(parsed: &Parsed) -> [u64; 3] {
    let tags = parsed
        .vlans()
        .iter()
        .zip([0, shift::VLAN1, shift::VLAN2])
        .fold(0, |word, (vid, shift)| word | (VLAN_PRESENT as u64 | u64::from(*vid)) << shift);
    [tags, parsed.src_mac, parsed.dst_mac]
}

/// The conditions of the first word and of tags and MACs, as value and mask.
fn packed(matches: &RuleMatch, pick: impl Fn(&RuleMatch, RuleField) -> u64) -> ([u64; 1], [u64; 3]) {
    let at = |field, shift: u32| pick(matches, field) << shift;
    let first = at(RuleField::Link, shift::LINK)
        | at(RuleField::VlanDepth, shift::VLAN_DEPTH)
        | at(RuleField::MplsDepth, shift::MPLS_DEPTH)
        | at(RuleField::IpVersion, shift::IP_VERSION)
        | at(RuleField::IpProto, shift::IP_PROTO)
        | at(RuleField::HasPorts, shift::HAS_PORTS)
        | at(RuleField::PacketType, shift::PACKET_TYPE)
        | at(RuleField::LlcDsap, shift::LLC_DSAP)
        | at(RuleField::LlcSsap, shift::LLC_SSAP);
    let tags =
        at(RuleField::Vlan0, 0) | at(RuleField::Vlan1, shift::VLAN1) | at(RuleField::Vlan2, shift::VLAN2);
    ([first], [tags, at(RuleField::SrcMac, 0), at(RuleField::DstMac, 0)])
}

fn value_of(matches: &RuleMatch, field: RuleField) -> u64 {
    matches.get(field).value as u64
}

fn mask_of(matches: &RuleMatch, field: RuleField) -> u64 {
    matches.get(field).mask as u64
}

fn compile_v4(rule: &RuleEntry, slot: RuleSlot) -> Compiled<V4_WORDS> {
    let words = |pick: fn(&RuleMatch, RuleField) -> u64| {
        let ([first], [tags, src_mac, dst_mac]) = packed(&rule.matches, pick);
        let addresses = pick(&rule.matches, RuleField::SrcIp) << 32 | pick(&rule.matches, RuleField::DstIp);
        [first, addresses, tags, src_mac, dst_mac]
    };
    compiled(rule, slot, words(mask_of), words(value_of))
}

fn compile_v6(rule: &RuleEntry, slot: RuleSlot) -> Compiled<V6_WORDS> {
    let src = rule.matches.get(RuleField::SrcIp);
    let dst = rule.matches.get(RuleField::DstIp);
    let words = |pick: fn(&RuleMatch, RuleField) -> u64, src: u128, dst: u128| {
        let ([first], [tags, src_mac, dst_mac]) = packed(&rule.matches, pick);
        [first, (src >> 64) as u64, src as u64, (dst >> 64) as u64, dst as u64, tags, src_mac, dst_mac]
    };
    compiled(rule, slot, words(mask_of, src.mask, dst.mask), words(value_of, src.value, dst.value))
}

fn compiled<const N: usize>(
    rule: &RuleEntry,
    slot: RuleSlot,
    mask: [u64; N],
    value: [u64; N],
) -> Compiled<N> {
    Compiled {
        mask,
        value,
        src_port: rule.matches.src_port,
        dst_port: rule.matches.dst_port,
        action: rule.action,
        slot,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(slot: u64) -> Compiled<1> {
        Compiled {
            mask: [0],
            value: [0],
            src_port: PortRange::ALL,
            dst_port: PortRange::ALL,
            action: RuleAction::Bypass,
            slot: RuleSlot(slot as u32),
        }
    }

    fn rank(priority: i32, turn: u64) -> Rank {
        Rank(Reverse(priority), turn)
    }

    /// Priority, turn and slot of each, in order.
    fn listed(rules: &Ordered<1>) -> Vec<(i32, u64, u32)> {
        let blocks = std::iter::once(&rules.head).chain(rules.tail.iter().map(Arc::as_ref));
        blocks
            .flat_map(|block| block.ranks.iter().zip(&block.rules))
            .map(|(rank, rule)| (rank.0.0, rank.1, rule.slot.0))
            .collect()
    }

    fn sound(rules: &Ordered<1>) {
        assert!(rules.head.len() <= BLOCK && (rules.head.len() > 0 || rules.tail.is_empty()));
        assert!(rules.tail.iter().all(|block| (1..=BLOCK).contains(&block.len())));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(i32),
        Change(usize, u32),
        Clear(usize),
        Snapshot,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            10 => (1..20_i32).prop_map(Step::Set),
            2 => (any::<usize>(), any::<u32>()).prop_map(|(which, slot)| Step::Change(which, slot)),
            6 => any::<usize>().prop_map(Step::Clear),
            1 => Just(Step::Snapshot),
        ];
        proptest::collection::vec(step, 0..3000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn blocks_hold_what_one_sorted_list_holds(steps in steps()) {
            let mut rules = Ordered::<1>::default();
            let mut model: Vec<(i32, u64, u32)> = Vec::new();
            let mut next = 0;
            type Order = Vec<(i32, u64, u32)>;
            let mut before: Option<(Ordered<1>, Order)> = None;
            for step in steps {
                match step {
                    Step::Set(priority) => {
                        next += 1;
                        rules.set(rank(priority, next), rule(next));
                        // Behind those of higher or equal priority, as they were inserted.
                        let at = model.partition_point(|other| other.0 >= priority);
                        model.insert(at, (priority, next, next as u32));
                    }
                    Step::Change(which, slot) if !model.is_empty() => {
                        let at = which % model.len();
                        model[at].2 = slot;
                        rules.set(rank(model[at].0, model[at].1), rule(slot.into()));
                    }
                    Step::Clear(which) if !model.is_empty() => {
                        let (priority, turn, _) = model.remove(which % model.len());
                        rules.clear(rank(priority, turn));
                    }
                    Step::Snapshot => before = Some((rules.clone(), model.clone())),
                    Step::Change(..) | Step::Clear(_) => {}
                }
                sound(&rules);
            }
            prop_assert_eq!(listed(&rules), model);
            if let Some((rules, model)) = before {
                prop_assert_eq!(listed(&rules), model, "a snapshot stays as it was");
            }
        }
    }

    #[test]
    fn a_change_copies_one_block_of_many() {
        for one_priority in [false, true] {
            let rank_of = |turn: u64| rank(if one_priority { 7 } else { turn as i32 }, turn);
            let mut rules = Ordered::<1>::default();
            (0..10_000).for_each(|turn| rules.set(rank_of(2 * turn), rule(turn)));
            sound(&rules);
            let shared = |next: &Ordered<1>| {
                let known = |block| rules.tail.iter().any(|other| Arc::ptr_eq(other, block));
                next.tail.iter().filter(|block| known(block)).count()
            };
            for turn in [1, 10_001, 19_997] {
                let mut next = rules.clone();
                next.set(rank_of(turn), rule(turn));
                assert!(shared(&next) + 1 >= rules.tail.len(), "turn {turn}");
                next.clear(rank_of(turn));
                assert!(shared(&next) + 1 >= rules.tail.len(), "turn {turn}");
                assert_eq!(listed(&next), listed(&rules));
            }
            (0..10_000).for_each(|turn| {
                rules.clear(rank_of(2 * turn));
                sound(&rules);
            });
            assert_eq!(listed(&rules), []);
        }
    }
}
