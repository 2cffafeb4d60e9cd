//! `rules_v4` and `rules_v6`: flow rules, highest priority first.

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
    priority: i32,
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
    v4: Vec<Compiled<V4_WORDS>>,
    v6: Vec<Compiled<V6_WORDS>>,
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
                first_match(&self.v6, &Key { words, src_port, dst_port })
            }
            Some(&Addresses::V4 { src, dst }) => {
                let addresses = u64::from(src) << 32 | u64::from(dst);
                let words = [first_word(link, parsed, 4), addresses, tags, src_mac, dst_mac];
                first_match(&self.v4, &Key { words, src_port, dst_port })
            }
            None => {
                let words = [first_word(link, parsed, 0), 0, tags, src_mac, dst_mac];
                first_match(&self.v4, &Key { words, src_port, dst_port })
            }
        }
    }

    pub(super) fn set(&mut self, rule: &RuleEntry, slot: RuleSlot) {
        match rule.family {
            Family::V4 => place(&mut self.v4, compile_v4(rule, slot)),
            Family::V6 => place(&mut self.v6, compile_v6(rule, slot)),
        }
    }

    pub(super) fn clear(&mut self, family: Family, slot: RuleSlot) {
        match family {
            Family::V4 => self.v4.retain(|rule| rule.slot != slot),
            Family::V6 => self.v6.retain(|rule| rule.slot != slot),
        }
    }
}

#[inline(always)]
fn first_match<const N: usize>(rules: &[Compiled<N>], key: &Key<N>) -> Option<(RuleSlot, RuleAction)> {
    rules.iter().find(|rule| rule.matches(key)).map(|rule| (rule.slot, rule.action))
}

/// Puts a rule behind those of higher or equal priority; a rule with the same slot is replaced.
fn place<const N: usize>(rules: &mut Vec<Compiled<N>>, rule: Compiled<N>) {
    let from = rules.partition_point(|other| other.priority > rule.priority);
    let to = rules.partition_point(|other| other.priority >= rule.priority);
    if let Some(same) =
        rules.get_mut(from..to).and_then(|equal| equal.iter_mut().find(|other| other.slot == rule.slot))
    {
        *same = rule;
    } else {
        rules.insert(to, rule);
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
        priority: rule.priority,
    }
}
