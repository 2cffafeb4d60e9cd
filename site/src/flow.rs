//! Flows: what an engineer writes, and the conditions it stands for.

use dataplane::tables::{Family, LLC_PRESENT, Masked, RuleField, RuleMatch, VLAN_PRESENT};

use crate::fault::Fault;
use crate::tree::{MatchTree, Number};
use crate::value;

/// A checked flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// 1..=65535, the higher wins; equal ones by name.
    pub priority: u16,
    /// Names of the links it applies to; empty for all.
    pub links: Vec<String>,
    /// Conditions, for each family that they can match.
    pub matches: Vec<(Family, RuleMatch)>,
    /// What it does.
    pub action: FlowAction,
    /// Conditions as written, for `show`.
    pub written: serde_json::Value,
}

/// What a flow does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// To the peer port.
    Bypass,
    /// Drop.
    Drop,
    /// Balance over a unit.
    ToUnit {
        /// The unit's name.
        unit: String,
        /// The frame itself takes the peer port, the appliance gets a copy.
        copy: bool,
    },
}

impl FlowAction {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            FlowAction::Bypass => "bypass",
            FlowAction::Drop => "drop",
            FlowAction::ToUnit { .. } => "to-ecofilter",
        }
    }
}

/// Conditions common to both families, and those that a family adds.
#[derive(Default)]
struct Conditions {
    exact: Vec<(RuleField, u128)>,
    masked: Vec<(RuleField, Masked)>,
    version: Option<u8>,
    needs_ip: bool,
}

/// Turns written conditions into matches; faults go to `faults` under `path`.
pub(crate) fn matches(tree: &MatchTree, path: &str, faults: &mut Vec<Fault>) -> Vec<(Family, RuleMatch)> {
    let mut c = Conditions::default();
    let mut fault = |leaf: &str, value: &dyn std::fmt::Display, reason: String| {
        faults.push(Fault { path: format!("{path} match {leaf}"), value: value.to_string(), reason });
    };

    // Leaf, value, field, bounds, and the bit that says "present".
    type NumberLeaf<'t> = (&'static str, &'t Option<Number>, RuleField, u64, u64, u128);
    let numbers: [NumberLeaf<'_>; 9] = [
        ("vlan0-tag", &tree.vlan0_tag, RuleField::Vlan0, 0, 4095, VLAN_PRESENT),
        ("vlan1-tag", &tree.vlan1_tag, RuleField::Vlan1, 0, 4095, VLAN_PRESENT),
        ("vlan2-tag", &tree.vlan2_tag, RuleField::Vlan2, 0, 4095, VLAN_PRESENT),
        ("vlan-depth", &tree.vlan_depth, RuleField::VlanDepth, 0, 3, 0),
        ("mpls-depth", &tree.mpls_depth, RuleField::MplsDepth, 0, 6, 0),
        ("packet-type", &tree.packet_type, RuleField::PacketType, 0x0600, 0xffff, 0),
        ("llc-dsap", &tree.llc_dsap, RuleField::LlcDsap, 0, 255, LLC_PRESENT),
        ("llc-ssap", &tree.llc_ssap, RuleField::LlcSsap, 0, 255, LLC_PRESENT),
        ("ip-proto", &tree.ip_proto, RuleField::IpProto, 0, 255, 0),
    ];
    for (leaf, text, field, low, high, flag) in numbers {
        let Some(text) = text else { continue };
        match value::number(text, low, high) {
            Ok(number) => c.exact.push((field, u128::from(number) | flag)),
            Err(reason) => fault(leaf, text, reason),
        }
        c.needs_ip |= field == RuleField::IpProto;
    }
    for (leaf, text, field) in
        [("src-mac", &tree.src_mac, RuleField::SrcMac), ("dst-mac", &tree.dst_mac, RuleField::DstMac)]
    {
        let Some(text) = text else { continue };
        match value::mac(text) {
            Ok(masked) => c.masked.push((field, masked)),
            Err(reason) => fault(leaf, text, reason),
        }
    }
    if let Some(text) = &tree.ip_version {
        match value::number(text, 4, 6) {
            Ok(4) => c.version = Some(4),
            Ok(6) => c.version = Some(6),
            _ => fault("ip-version", text, "must be 4 or 6".to_owned()),
        }
    }
    for (leaf, text, field) in
        [("src-ip", &tree.src_ip, RuleField::SrcIp), ("dst-ip", &tree.dst_ip, RuleField::DstIp)]
    {
        let Some(text) = text else { continue };
        match value::address(text) {
            Ok((version, masked)) => {
                if c.version.is_some_and(|other| other != version) {
                    let other = if version == 4 { 6 } else { 4 };
                    fault(leaf, text, format!("is IPv{version}, but the rule is for IPv{other} elsewhere"));
                }
                c.version = Some(version);
                c.masked.push((field, masked));
            }
            Err(reason) => fault(leaf, text, reason),
        }
    }
    let mut ports = [None, None];
    for ((leaf, text), slot) in
        [("src-port", &tree.src_port), ("dst-port", &tree.dst_port)].into_iter().zip(&mut ports)
    {
        let Some(text) = text else { continue };
        match value::port_range(text) {
            Ok(range) => {
                *slot = Some(range);
                c.needs_ip = true;
            }
            Err(reason) => fault(leaf, text, reason),
        }
    }

    let families: &[Family] = match c.version {
        Some(4) => &[Family::V4],
        Some(_) => &[Family::V6],
        None => &Family::BOTH,
    };
    // A table that lacks a field holds no frame that has it: no IPv6 frame is one of IEEE 802.2.
    let fields = || c.exact.iter().map(|(field, _)| field).chain(c.masked.iter().map(|(field, _)| field));
    let holds = |family: &&Family| fields().all(|field| field.bits(**family) > 0);
    let ipv4_only = c.version == Some(4) || c.needs_ip;
    families
        .iter()
        .filter(holds)
        .map(|family| {
            let mut rule = RuleMatch::default();
            for (field, value) in &c.exact {
                rule.set_exact(*field, *value, *family);
            }
            for (field, masked) in &c.masked {
                rule.set(*field, masked.value, masked.mask);
            }
            if *family == Family::V4 && ipv4_only {
                rule.set_exact(RuleField::IpVersion, 4, *family);
            }
            let [src_port, dst_port] = ports;
            if src_port.is_some() || dst_port.is_some() {
                rule.set_exact(RuleField::HasPorts, 1, *family);
            }
            rule.src_port = src_port.unwrap_or(rule.src_port);
            rule.dst_port = dst_port.unwrap_or(rule.dst_port);
            (*family, rule)
        })
        .collect()
}
