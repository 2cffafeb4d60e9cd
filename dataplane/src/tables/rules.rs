//! `rules_v4` and `rules_v6`: flow rules. A frame meets one of them: `rules_v6` if its header is IPv6,
//! else `rules_v4`, which frames without an IP header meet with `ip_version` 0.

use super::EntryReader;
use crate::entry::{Condition, Entry, EntryError, P4Id};
use crate::ids::UnitId;
use crate::schema::{Action, DefaultAction, Field, MatchKind, RULES, Table, all_ones};

/// Set in [`RuleField::Vlan0`] to `Vlan2` where the tag is there; the VID is below.
pub const VLAN_PRESENT: u128 = 0x1000;
/// Set in [`RuleField::LlcDsap`] and `LlcSsap` where the frame is IEEE 802.2.
pub const LLC_PRESENT: u128 = 0x100;

static BYPASS: Action = Action {
    id: 0x0100_0006,
    name: "rule_bypass",
    params: &[],
    restriction: None,
    brief: "To the peer port.",
};
static DROP: Action =
    Action { id: 0x0100_0007, name: "rule_drop", params: &[], restriction: None, brief: "Drop." };
static TO_UNIT: Action = Action {
    id: 0x0100_0008,
    name: "rule_to_unit",
    params: &[Field { id: 1, name: "unit", bits: 8 }],
    restriction: None,
    brief: "Balance over the unit's pairs.",
};
static COPY_TO_UNIT: Action = Action {
    id: 0x0100_0009,
    name: "rule_copy_to_unit",
    params: &[Field { id: 1, name: "unit", bits: 8 }],
    restriction: None,
    brief: "To the peer port, and a copy to the unit.",
};
static NO_RULE: Action = Action {
    id: 0x0100_0018,
    name: "no_rule",
    params: &[],
    restriction: None,
    brief: "To the peer port: no rule matches.",
};

macro_rules! rule_fields {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $text:literal, $v4:literal, $v6:literal;)*) => {
        /// Ternary fields of a rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RuleField {
            $($(#[$doc])* $name = $id,)*
        }

        impl RuleField {
            /// All, in the order of their ids.
            pub const ALL: &'static [RuleField] = &[$(RuleField::$name),*];

            /// Name in the P4Info.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(RuleField::$name => $text,)* }
            }

            /// Width in the table of a family; 0 where it is not in that table.
            #[must_use]
            pub const fn bits(self, family: Family) -> u32 {
                match (self, family) {
                    $((RuleField::$name, Family::V4) => $v4, (RuleField::$name, Family::V6) => $v6,)*
                }
            }
        }
    };
}

rule_fields! {
    /// Index of the link that the frame came in by.
    Link = 1, "link", 8, 8;
    /// VLAN tags, 0..=3.
    VlanDepth = 2, "vlan_depth", 2, 2;
    /// Outermost tag: [`VLAN_PRESENT`] and VID, or 0.
    Vlan0 = 3, "vlan0", 13, 13;
    /// Second tag, likewise.
    Vlan1 = 4, "vlan1", 13, 13;
    /// Third tag, likewise.
    Vlan2 = 5, "vlan2", 13, 13;
    /// MPLS labels, 0..=6.
    MplsDepth = 6, "mpls_depth", 3, 3;
    /// EtherType after the tags; 0 in an LLC frame.
    PacketType = 7, "packet_type", 16, 16;
    /// [`LLC_PRESENT`] and destination SAP, or 0; not in `rules_v6`, since such a frame is no IPv6.
    LlcDsap = 8, "llc_dsap", 9, 0;
    /// [`LLC_PRESENT`] and source SAP, or 0; not in `rules_v6`.
    LlcSsap = 9, "llc_ssap", 9, 0;
    /// Source MAC.
    SrcMac = 10, "src_mac", 48, 48;
    /// Destination MAC.
    DstMac = 11, "dst_mac", 48, 48;
    /// 4, or 0 where there is no IP header; not in `rules_v6`.
    IpVersion = 12, "ip_version", 4, 0;
    /// Source address.
    SrcIp = 13, "src_ip", 32, 128;
    /// Destination address.
    DstIp = 14, "dst_ip", 32, 128;
    /// Protocol.
    IpProto = 15, "ip_proto", 8, 8;
    /// 1 where there are layer-4 ports.
    HasPorts = 16, "has_ports", 1, 1;
}

const SRC_PORT: Field = Field { id: 17, name: "src_port", bits: 16 };
const DST_PORT: Field = Field { id: 18, name: "dst_port", bits: 16 };

const fn ternary(field: RuleField, family: Family) -> (Field, MatchKind) {
    (Field { id: field as P4Id, name: field.name(), bits: field.bits(family) }, MatchKind::Ternary)
}

const PORTS_RESTRICTION: &str = "(src_port::low != 0 || src_port::high != 65535 || dst_port::low != 0 || \
    dst_port::high != 65535) -> (has_ports::value == 1 && has_ports::mask == 1)";
/// `rules_v4` holds frames without an IP header too, whose addresses and protocol are 0 in the key.
const V4_RESTRICTION: &str = "(src_ip::mask != 0 || dst_ip::mask != 0 || ip_proto::mask != 0 || \
    has_ports::mask != 0) -> (ip_version::value == 4 && ip_version::mask == 15); \
    (src_port::low != 0 || src_port::high != 65535 || dst_port::low != 0 || \
    dst_port::high != 65535) -> (has_ports::value == 1 && has_ports::mask == 1)";

macro_rules! rule_table {
    ($name:ident, $id:literal, $text:literal, $family:expr, [$($field:ident),*], $counter:literal, $restriction:expr,
     $brief:literal) => {
        pub(super) static $name: Table = Table {
            id: $id,
            name: $text,
            key: &[
                $(ternary(RuleField::$field, $family),)*
                (SRC_PORT, MatchKind::Range),
                (DST_PORT, MatchKind::Range),
            ],
            actions: &[&BYPASS, &DROP, &TO_UNIT, &COPY_TO_UNIT],
            default: DefaultAction::Const(NO_RULE.id),
            default_action: &NO_RULE,
            size: RULES,
            direct_counter: Some($counter),
            restriction: Some($restriction),
            brief: $brief,
        };
    };
}

// Fields in the order of the P4 program: BMv2's P4Runtime server takes that of the P4Info for that of its key.
rule_table!(
    TABLE_V4,
    0x0200_0003,
    "rules_v4",
    Family::V4,
    [
        Link, VlanDepth, Vlan0, Vlan1, Vlan2, MplsDepth, PacketType, LlcDsap, LlcSsap, SrcMac, DstMac,
        IpVersion, SrcIp, DstIp, IpProto, HasPorts
    ],
    0x1300_0001,
    V4_RESTRICTION,
    "Flow rules for IPv4 and for frames without an IP header."
);
rule_table!(
    TABLE_V6,
    0x0200_0004,
    "rules_v6",
    Family::V6,
    [
        Link, VlanDepth, Vlan0, Vlan1, Vlan2, MplsDepth, PacketType, SrcMac, DstMac, SrcIp, DstIp, IpProto,
        HasPorts
    ],
    0x1300_0002,
    PORTS_RESTRICTION,
    "Flow rules for IPv6."
);

/// Which of the two rule tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `rules_v4`: IPv4 and frames without an IP header.
    V4,
    /// `rules_v6`.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    /// Id of the table.
    #[must_use]
    pub fn table(self) -> P4Id {
        match self {
            Family::V4 => TABLE_V4.id,
            Family::V6 => TABLE_V6.id,
        }
    }
}

/// A value under a mask; mask 0 matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Masked {
    /// Wanted bits; zero outside the mask.
    pub value: u128,
    /// Bits that matter.
    pub mask: u128,
}

impl Masked {
    /// Whether `found` has the wanted bits.
    #[inline]
    #[must_use]
    pub const fn matches(&self, found: u128) -> bool {
        found & self.mask == self.value
    }
}

/// Ports within bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// Lowest port.
    pub low: u16,
    /// Highest port.
    pub high: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: PortRange = PortRange { low: 0, high: u16::MAX };

    /// Whether `port` lies within.
    #[inline]
    #[must_use]
    pub const fn contains(&self, port: u16) -> bool {
        self.low <= port && port <= self.high
    }
}

/// Conditions of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleMatch {
    fields: [Masked; RuleField::ALL.len()],
    /// Source port; [`PortRange::ALL`] where it does not matter.
    pub src_port: PortRange,
    /// Destination port; [`PortRange::ALL`] where it does not matter.
    pub dst_port: PortRange,
}

impl Default for RuleMatch {
    fn default() -> Self {
        RuleMatch {
            fields: [Masked::default(); RuleField::ALL.len()],
            src_port: PortRange::ALL,
            dst_port: PortRange::ALL,
        }
    }
}

impl RuleMatch {
    /// Sets the condition of a field; bits of `value` outside `mask` are ignored.
    pub fn set(&mut self, field: RuleField, value: u128, mask: u128) {
        if let Some(slot) = self.fields.get_mut(field as usize - 1) {
            *slot = Masked { value: value & mask, mask };
        }
    }

    /// Sets a field to one value, all bits of it.
    pub fn set_exact(&mut self, field: RuleField, value: u128, family: Family) {
        self.set(field, value, all_ones(field.bits(family)));
    }

    /// What the program's key cannot tell apart: a value of 0 where nothing is.
    fn keep_restrictions(&self, reader: &EntryReader<'_>, family: Family) -> Result<(), EntryError> {
        let needs = |field: RuleField, value: u128, with: &'static str, wanted| {
            let found = self.get(field);
            if found == (Masked { value, mask: all_ones(field.bits(family)) }) {
                return Ok(());
            }
            Err(EntryError::Needs {
                table: reader.table.name,
                field: field.name(),
                found: (found.mask != 0)
                    .then_some(Condition::Ternary { value: found.value, mask: found.mask }),
                with,
                wanted,
            })
        };
        let of_ip = [RuleField::SrcIp, RuleField::DstIp, RuleField::IpProto, RuleField::HasPorts];
        if family == Family::V4
            && let Some(field) = of_ip.into_iter().find(|field| self.get(*field).mask != 0)
        {
            needs(RuleField::IpVersion, 4, field.name(), "0x4&0xf")?;
        }
        let ports = [(SRC_PORT, self.src_port), (DST_PORT, self.dst_port)];
        match ports.into_iter().find(|(_, range)| *range != PortRange::ALL) {
            Some((field, _)) => needs(RuleField::HasPorts, 1, field.name, "0x1&0x1"),
            None => Ok(()),
        }
    }

    /// The condition of a field.
    #[inline]
    #[must_use]
    pub fn get(&self, field: RuleField) -> Masked {
        self.fields.get(field as usize - 1).copied().unwrap_or_default()
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// To the peer port.
    Bypass,
    /// Drop.
    Drop,
    /// Balance over the unit's pairs.
    ToUnit(UnitId),
    /// To the peer port, and a copy to the unit.
    CopyToUnit(UnitId),
}

/// One rule of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleEntry {
    /// The table.
    pub family: Family,
    /// Larger wins, from 1.
    pub priority: i32,
    /// Conditions.
    pub matches: RuleMatch,
    /// What it does.
    pub action: RuleAction,
}

impl RuleEntry {
    /// As a table entry.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let mut key: Vec<(P4Id, Condition)> = RuleField::ALL
            .iter()
            .map(|field| (*field, self.matches.get(*field)))
            .filter(|(_, masked)| masked.mask != 0)
            .map(|(field, masked)| {
                (field as P4Id, Condition::Ternary { value: masked.value, mask: masked.mask })
            })
            .collect();
        for (field, range) in [(SRC_PORT, self.matches.src_port), (DST_PORT, self.matches.dst_port)] {
            if range != PortRange::ALL {
                let condition = Condition::Range { low: range.low.into(), high: range.high.into() };
                key.push((field.id, condition));
            }
        }
        let (action, params) = match self.action {
            RuleAction::Bypass => (&BYPASS, vec![]),
            RuleAction::Drop => (&DROP, vec![]),
            RuleAction::ToUnit(unit) => (&TO_UNIT, vec![u128::from(unit.0)]),
            RuleAction::CopyToUnit(unit) => (&COPY_TO_UNIT, vec![u128::from(unit.0)]),
        };
        Entry {
            table: self.family.table(),
            key,
            priority: self.priority,
            action: action.id,
            params,
            metadata: Vec::new(),
            is_default: false,
        }
    }

    pub(super) fn read(reader: &EntryReader<'_>, family: Family) -> Result<Self, EntryError> {
        let mut matches = RuleMatch::default();
        for field in RuleField::ALL {
            if let Some(Condition::Ternary { value, mask }) = reader.condition(*field as P4Id) {
                matches.set(*field, value, mask);
            }
        }
        for (field, range) in [(SRC_PORT, &mut matches.src_port), (DST_PORT, &mut matches.dst_port)] {
            if let Some(Condition::Range { low, high }) = reader.condition(field.id) {
                *range = PortRange { low: low as u16, high: high as u16 };
            }
        }
        matches.keep_restrictions(reader, family)?;
        let unit = UnitId(reader.param(0) as u8);
        let action = match reader.entry.action {
            id if id == BYPASS.id => RuleAction::Bypass,
            id if id == DROP.id => RuleAction::Drop,
            id if id == TO_UNIT.id => RuleAction::ToUnit(unit),
            id if id == COPY_TO_UNIT.id => RuleAction::CopyToUnit(unit),
            _ => return Err(reader.unknown_action()),
        };
        Ok(RuleEntry { family, priority: reader.entry.priority, matches, action })
    }
}
