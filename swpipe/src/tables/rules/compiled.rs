//! A rule as the frame path compares it: whole words, value and mask.

use dataplane::tables::{PortRange, RuleAction, RuleEntry, RuleField, RuleMatch};

use super::RuleSlot;
use crate::headers::{V4_WORDS, V6_WORDS, shift};

/// A rule.
#[derive(Clone, Copy)]
pub(super) struct Compiled<const N: usize> {
    pub(super) mask: [u64; N],
    pub(super) value: [u64; N],
    pub(super) src_port: PortRange,
    pub(super) dst_port: PortRange,
    pub(super) action: RuleAction,
    pub(super) slot: RuleSlot,
}

impl<const N: usize> Compiled<N> {
    /// Mask of the ports as far as they are conditions of one value, and that value.
    pub(super) fn exact_ports(&self) -> (u32, u32) {
        let exact = |range: PortRange| match range.low == range.high {
            true => (0xffff, u32::from(range.low)),
            false => (0, 0),
        };
        let ((src_mask, src), (dst_mask, dst)) = (exact(self.src_port), exact(self.dst_port));
        (src_mask << 16 | dst_mask, src << 16 | dst)
    }

    /// Mask of the ports that are looked at.
    pub(super) fn ports_mask(&self) -> u32 {
        let looked_at = |range: PortRange| if range == PortRange::ALL { 0 } else { 0xffff };
        looked_at(self.src_port) << 16 | looked_at(self.dst_port)
    }
}

/// The conditions of the first word and of tags and MACs, as value or mask.
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

pub(super) fn compile_v4(rule: &RuleEntry, slot: RuleSlot) -> Compiled<V4_WORDS> {
    let words = |pick: fn(&RuleMatch, RuleField) -> u64| {
        let ([first], [tags, src_mac, dst_mac]) = packed(&rule.matches, pick);
        let addresses = pick(&rule.matches, RuleField::SrcIp) << 32 | pick(&rule.matches, RuleField::DstIp);
        [first, addresses, tags, src_mac, dst_mac]
    };
    compiled(rule, slot, words(mask_of), words(value_of))
}

pub(super) fn compile_v6(rule: &RuleEntry, slot: RuleSlot) -> Compiled<V6_WORDS> {
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
