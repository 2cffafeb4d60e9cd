//! Rules of one key that differ in their port ranges alone, however many: by the binary parts of the port space that a
//! range is made of, so that a port meets sixteen parts and no rule that it is not in.

use std::sync::Arc;

use dataplane::tables::PortRange;

use super::super::Rank;
use super::segment::Candidate;
use crate::shared_set::SharedSet;

/// The rules. A change copies the parts that it touches.
#[derive(Clone, Default)]
pub(super) struct Ranges {
    /// In order.
    all: SharedSet<ByRank>,
    /// Those with a range of destination ports.
    by_destination: Part,
    /// The others.
    by_source: Part,
}

#[derive(Clone, Copy)]
struct ByRank(Candidate);

impl std::borrow::Borrow<Rank> for ByRank {
    fn borrow(&self) -> &Rank {
        &self.0.rank
    }
}

impl PartialEq for ByRank {
    fn eq(&self, other: &Self) -> bool {
        self.0.rank == other.0.rank
    }
}

impl Eq for ByRank {}

impl PartialOrd for ByRank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByRank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.rank.cmp(&other.0.rank)
    }
}

/// A part of the port space, `None` where no range has anything to do with it.
type Part = Option<Arc<Node>>;

#[derive(Clone, Default)]
struct Node {
    /// Rules whose range is made of this part and others, in order.
    rules: Vec<Candidate>,
    /// The part's halves.
    halves: [Part; 2],
}

/// All ports.
const BITS: u32 = 16;

impl Ranges {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter().map(|ByRank(rule)| rule)
    }

    /// The first rule that admits the ports.
    pub(super) fn first(&self, ports: u32) -> Option<&Candidate> {
        let by_destination = first(&self.by_destination, ports as u16, ports);
        let by_source = first(&self.by_source, (ports >> 16) as u16, ports);
        [by_destination, by_source].into_iter().flatten().min_by_key(|rule| rule.rank)
    }

    fn part(&mut self, rule: &Candidate) -> (&mut Part, PortRange) {
        let of_one_port = rule.dst_port.low == rule.dst_port.high;
        if rule.dst_port == PortRange::ALL || of_one_port {
            (&mut self.by_source, rule.src_port)
        } else {
            (&mut self.by_destination, rule.dst_port)
        }
    }

    pub(super) fn set(&mut self, rule: Candidate) {
        let (part, range) = self.part(&rule);
        change(part, (0, BITS), range, &|rules| match rules
            .binary_search_by_key(&rule.rank, |other| other.rank)
        {
            Ok(at) => {
                if let Some(same) = rules.get_mut(at) {
                    *same = rule;
                }
            }
            Err(at) => rules.insert(at, rule),
        });
        self.all.replace(ByRank(rule));
    }

    pub(super) fn clear(&mut self, rank: Rank) {
        let Some(ByRank(rule)) = self.all.take(&rank) else { return };
        let (part, range) = self.part(&rule);
        change(part, (0, BITS), range, &|rules| rules.retain(|other| other.rank != rank));
    }
}

fn first(part: &Part, port: u16, ports: u32) -> Option<&Candidate> {
    let mut best: Option<&Candidate> = None;
    let (mut part, mut bit) = (part, BITS);
    while let Some(node) = part {
        let found = node.rules.iter().find(|rule| rule.matches(ports));
        if let Some(found) = found
            && best.is_none_or(|best| found.rank < best.rank)
        {
            best = Some(found);
        }
        if bit == 0 {
            break;
        }
        bit -= 1;
        let [low, high] = &node.halves;
        part = if port >> bit & 1 == 0 { low } else { high };
    }
    best
}

/// Changes the rules of all the parts that make a range; `at` is the first port of `part` and how many bits it has.
fn change(part: &mut Part, at: (u16, u32), range: PortRange, with: &impl Fn(&mut Vec<Candidate>)) {
    let (low, bits) = at;
    let high = low | ((1_u32 << bits) - 1) as u16;
    if range.high < low || high < range.low {
        return;
    }
    let node = Arc::make_mut(part.get_or_insert_default());
    if (range.low <= low && high <= range.high) || bits == 0 {
        with(&mut node.rules);
    } else {
        let [first, second] = &mut node.halves;
        change(first, (low, bits - 1), range, with);
        change(second, (low | 1 << (bits - 1), bits - 1), range, with);
    }
    if node.rules.is_empty() && node.halves.iter().all(Option::is_none) {
        *part = None;
    }
}
