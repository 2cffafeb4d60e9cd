//! Random flow rules whose values come from frames, so that they match some of them.

use dataplane::entry::Entry;
use dataplane::tables::{
    Family, LLC_PRESENT, PortRange, RuleAction, RuleEntry, RuleField, RuleMatch, VLAN_PRESENT,
};
use dataplane::{Addresses, LinkIndex, Parsed, UnitId, parse};

use crate::rng::Rng;

/// Most rules of one draw.
const MOST: u64 = 60;

/// Draws rules of both families, no two of a table with one priority: which of them wins were nobody's promise.
pub(super) fn draw(rng: &mut Rng, links: &[LinkIndex], units: &[UnitId], frames: &[Vec<u8>]) -> Vec<Entry> {
    let samples: Vec<Parsed> = frames.iter().map(|frame| parse(frame)).collect();
    let count = match rng.below(8) {
        0 => 0,
        1 => MOST,
        _ => rng.below(MOST),
    };
    let mut rules = Vec::new();
    for rank in 0..count {
        let Some(sample) = rng.pick(&samples) else { break };
        let priority = 10 + rank as i32 * 7 + rng.below(7) as i32;
        let matches = conditions(rng, links, sample);
        rules.push(RuleEntry {
            family: family(sample),
            priority,
            matches,
            action: narrow_action(rng, units),
        });
    }
    // What no other rule matches goes to a unit, mostly.
    for (number, link) in (1..).zip(links) {
        for family in Family::BOTH {
            if rng.chance(1, 8) {
                continue;
            }
            let mut matches = RuleMatch::default();
            matches.set_exact(RuleField::Link, link.0.into(), family);
            let unit = rng.pick(units).copied().unwrap_or_default();
            let action =
                if rng.chance(1, 4) { RuleAction::CopyToUnit(unit) } else { RuleAction::ToUnit(unit) };
            rules.push(RuleEntry { family, priority: number, matches, action });
        }
    }
    rng.shuffle(&mut rules);
    rules.iter().map(RuleEntry::entry).collect()
}

fn family(sample: &Parsed) -> Family {
    match sample.session.map(|session| session.addresses) {
        Some(Addresses::V6 { .. }) => Family::V6,
        _ => Family::V4,
    }
}

fn narrow_action(rng: &mut Rng, units: &[UnitId]) -> RuleAction {
    let unit = rng.pick(units).copied().unwrap_or_default();
    match rng.weighted(&[40, 20, 25, 15]) {
        0 => RuleAction::ToUnit(unit),
        1 => RuleAction::CopyToUnit(unit),
        2 => RuleAction::Bypass,
        _ => RuleAction::Drop,
    }
}

/// The value of a field in a frame.
fn value_of(sample: &Parsed, field: RuleField) -> u128 {
    let tag = |index: usize| sample.vlans().get(index).map_or(0, |vid| VLAN_PRESENT | u128::from(*vid));
    let addresses = sample.session.map(|session| match session.addresses {
        Addresses::V4 { src, dst } => (u128::from(src), u128::from(dst)),
        Addresses::V6 { src, dst } => (src, dst),
    });
    match field {
        RuleField::Link => 0,
        RuleField::VlanDepth => sample.vlans().len() as u128,
        RuleField::Vlan0 => tag(0),
        RuleField::Vlan1 => tag(1),
        RuleField::Vlan2 => tag(2),
        RuleField::MplsDepth => sample.mpls_depth.into(),
        RuleField::PacketType => sample.packet_type.into(),
        RuleField::LlcDsap => sample.llc.map_or(0, |llc| LLC_PRESENT | u128::from(llc.dsap)),
        RuleField::LlcSsap => sample.llc.map_or(0, |llc| LLC_PRESENT | u128::from(llc.ssap)),
        RuleField::SrcMac => sample.src_mac.into(),
        RuleField::DstMac => sample.dst_mac.into(),
        RuleField::IpVersion => match sample.session.map(|session| session.addresses) {
            Some(Addresses::V4 { .. }) => 4,
            _ => 0,
        },
        RuleField::SrcIp => addresses.map_or(0, |(src, _)| src),
        RuleField::DstIp => addresses.map_or(0, |(_, dst)| dst),
        RuleField::IpProto => sample.session.map_or(0, |session| session.proto.into()),
        RuleField::HasPorts => sample.session.is_some_and(|session| session.ports.is_some()).into(),
    }
}

fn conditions(rng: &mut Rng, links: &[LinkIndex], sample: &Parsed) -> RuleMatch {
    let family = family(sample);
    let mut matches = RuleMatch::default();
    for _ in 0..rng.weighted(&[2, 30, 30, 20, 10, 8]) {
        let field = *rng.pick(RuleField::ALL).unwrap_or(&RuleField::Link);
        let bits = field.bits(family);
        if bits == 0 {
            continue;
        }
        let value = match field {
            RuleField::Link => rng.pick(links).map_or(0, |link| u128::from(link.0)),
            _ if rng.chance(1, 12) => random_bits(rng, bits),
            _ => value_of(sample, field),
        };
        matches.set(field, value, mask(rng, bits));
    }
    if rng.chance(1, 4)
        && let Some(ports) = sample.session.and_then(|session| session.ports)
    {
        if rng.chance(2, 3) {
            matches.src_port = range_about(rng, ports.src);
        }
        if rng.chance(2, 3) {
            matches.dst_port = range_about(rng, ports.dst);
        }
    }
    imply(&mut matches, family);
    matches
}

/// Conditions on a header that a frame may not have say that it has one: `has_ports` for ports, and `ip_version`
/// for whatever IP has (contract, step 2).
fn imply(matches: &mut RuleMatch, family: Family) {
    if matches.src_port != PortRange::ALL || matches.dst_port != PortRange::ALL {
        matches.set_exact(RuleField::HasPorts, 1, family);
    }
    let of_ip = [RuleField::SrcIp, RuleField::DstIp, RuleField::IpProto, RuleField::HasPorts];
    if family == Family::V4 && of_ip.iter().any(|field| matches.get(*field).mask != 0) {
        matches.set_exact(RuleField::IpVersion, 4, family);
    }
}

fn random_bits(rng: &mut Rng, bits: u32) -> u128 {
    let wide = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    wide & dataplane::schema::all_ones(bits)
}

/// The whole field, a prefix, a suffix, one bit, or anything but nothing.
fn mask(rng: &mut Rng, bits: u32) -> u128 {
    let all = dataplane::schema::all_ones(bits);
    let length = rng.between(1, bits.into()) as u32;
    let mask = match rng.weighted(&[50, 20, 8, 10, 12]) {
        0 => all,
        1 => all & !dataplane::schema::all_ones(bits - length),
        2 => dataplane::schema::all_ones(length),
        3 => 1 << (length - 1),
        _ => random_bits(rng, bits),
    };
    if mask == 0 { all } else { mask }
}

/// A range that begins, ends, or lies about a port, or misses it by one.
fn range_about(rng: &mut Rng, port: u16) -> PortRange {
    let below = port.saturating_sub(rng.below(2000) as u16);
    let above = port.saturating_add(rng.below(2000) as u16);
    match rng.below(6) {
        0 => PortRange { low: port, high: port },
        1 => PortRange { low: port, high: above },
        2 => PortRange { low: below, high: port },
        3 => PortRange { low: below, high: above },
        4 => PortRange { low: port.saturating_add(1), high: above.saturating_add(1) },
        _ => PortRange { low: below.saturating_sub(1), high: port.saturating_sub(1) },
    }
}
