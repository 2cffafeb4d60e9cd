//! The tables, actions, counters and packet headers of the data plane, once: the P4Info is made from
//! this, entries are checked against it. Ids are stable and never reused.

use crate::entry::{Condition, Entry, EntryError, EntryKey, P4Id};

/// Buckets that surely fit, of all units together.
pub const BUCKETS: usize = 1 << 20;
/// Rules of one family that surely fit.
pub const RULES: usize = 131_072;

/// Pairs by their number.
pub(crate) const PAIR_RESTRICTION: &str = "pair < 512";

/// How a field matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// The whole value.
    Exact,
    /// Under a mask.
    Ternary,
    /// Within bounds.
    Range,
}

impl MatchKind {
    /// As P4 writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
        }
    }
}

/// A match field, parameter or packet header field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Id within its table, action or header, from 1.
    pub id: P4Id,
    /// Name.
    pub name: &'static str,
    /// Width.
    pub bits: u32,
}

/// An action.
#[derive(Debug)]
pub struct Action {
    /// Id.
    pub id: P4Id,
    /// Name.
    pub name: &'static str,
    /// Parameters, ids 1, 2, ...
    pub params: &'static [Field],
    /// What parameters must keep, in the language of p4-constraints: `@action_restriction`.
    pub restriction: Option<&'static str>,
    /// For the documentation in the P4Info.
    pub brief: &'static str,
}

/// What a table does with a frame that no entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// Always this action.
    Const(P4Id),
    /// This action, with these parameters until others are written.
    Settable(P4Id, &'static [u128]),
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Id.
    pub id: P4Id,
    /// Name.
    pub name: &'static str,
    /// Match fields with their kinds.
    pub key: &'static [(Field, MatchKind)],
    /// Actions that entries may have.
    pub actions: &'static [&'static Action],
    /// The default action, which entries may not have when it is not in `actions`.
    pub default: DefaultAction,
    /// Action of `default`, for its name.
    pub default_action: &'static Action,
    /// Entries that surely fit.
    pub size: usize,
    /// Id of its direct counter.
    pub direct_counter: Option<P4Id>,
    /// What matches must keep, in the language of p4-constraints: `@entry_restriction`.
    pub restriction: Option<&'static str>,
    /// For the documentation in the P4Info.
    pub brief: &'static str,
}

/// A counter array.
#[derive(Debug)]
pub struct Counter {
    /// Id.
    pub id: P4Id,
    /// Name.
    pub name: &'static str,
    /// Cells.
    pub size: usize,
    /// For the documentation in the P4Info.
    pub brief: &'static str,
}

/// Metadata of packets to or from the controller.
#[derive(Debug)]
pub struct PacketHeader {
    /// Id.
    pub id: P4Id,
    /// `packet_in` or `packet_out`.
    pub name: &'static str,
    /// Fields, ids 1, 2, ...
    pub fields: &'static [Field],
}

/// Packet-in metadata: the port that a keep-alive arrived on and when.
pub static PACKET_IN: PacketHeader = PacketHeader {
    id: 0x0400_0001,
    name: "packet_in",
    fields: &[
        Field { id: 1, name: "ingress_port", bits: 16 },
        Field { id: 2, name: "receive_time", bits: 64 },
    ],
};

/// Packet-out metadata: the port to send by.
pub static PACKET_OUT: PacketHeader = PacketHeader {
    id: 0x0400_0002,
    name: "packet_out",
    fields: &[Field { id: 1, name: "egress_port", bits: 16 }],
};

/// Counter arrays.
pub mod counters {
    use super::Counter;
    use crate::ids::{LinkIndex, PairId, PortId, Side};
    use crate::verdict::{REASON_SLOTS, Reason};

    /// Links that a steering header can name.
    pub const LINKS: usize = 256;
    /// Pairs that tables have room for.
    pub const PAIRS: usize = 512;
    /// Ports of the data plane.
    pub const PORTS: usize = 512;

    macro_rules! counter {
        ($name:ident, $id:literal, $text:literal, $size:expr, $brief:literal) => {
            #[doc = $brief]
            pub static $name: Counter = Counter { id: $id, name: $text, size: $size, brief: $brief };
        };
    }

    counter!(VERDICTS, 0x1200_0001, "verdicts", REASON_SLOTS, "Every frame, by reason.");
    counter!(
        LINK_VERDICTS,
        0x1200_0002,
        "link_verdicts",
        LINKS * REASON_SLOTS,
        "Frames from link ports: link * 32 + reason."
    );
    counter!(
        PAIR_VERDICTS,
        0x1200_0003,
        "pair_verdicts",
        PAIRS * REASON_SLOTS,
        "Frames from pair ports: pair * 32 + reason."
    );
    counter!(PAIR_OUT, 0x1200_0004, "pair_out", PAIRS * 2, "Frames sent to appliances: pair * 2 + side.");
    counter!(LINK_OUT, 0x1200_0005, "link_out", LINKS * 2, "Frames returned to links: link * 2 + side.");
    counter!(PORT_IN, 0x1200_0006, "port_in", PORTS, "Frames received, by port.");
    counter!(PORT_OUT, 0x1200_0007, "port_out", PORTS, "Frames sent, by port; keep-alives included.");
    counter!(COPIES, 0x1200_0008, "copies", PAIRS * 2, "Copies to appliances: pair * 2 + (1 if lost).");

    counter!(
        PORT_MISSED,
        0x1200_0009,
        "port_missed",
        PORTS,
        "Frames that the target could not take in, by port; not of the program's counting."
    );
    counter!(
        PORT_LOST,
        0x1200_000a,
        "port_lost",
        PORTS,
        "Frames that the target could not send after all, by port; not of the program's counting."
    );
    counter!(PROBES_OUT, 0x1200_000b, "probes_out", PORTS, "Keep-alives sent, by port.");

    /// All of them.
    pub static ALL: [&Counter; 11] = [
        &VERDICTS,
        &LINK_VERDICTS,
        &PAIR_VERDICTS,
        &PAIR_OUT,
        &LINK_OUT,
        &PORT_IN,
        &PORT_OUT,
        &COPIES,
        &PORT_MISSED,
        &PORT_LOST,
        &PROBES_OUT,
    ];

    /// Cell of [`LINK_VERDICTS`].
    #[inline]
    #[must_use]
    pub const fn link_verdict(link: LinkIndex, reason: Reason) -> usize {
        link.index() * REASON_SLOTS + reason.slot()
    }

    /// Cell of [`PAIR_VERDICTS`].
    #[inline]
    #[must_use]
    pub const fn pair_verdict(pair: PairId, reason: Reason) -> usize {
        pair.index() * REASON_SLOTS + reason.slot()
    }

    /// Cell of [`PAIR_OUT`].
    #[inline]
    #[must_use]
    pub const fn pair_out(pair: PairId, side: Side) -> usize {
        pair.index() * 2 + side.bit() as usize
    }

    /// Cell of [`LINK_OUT`].
    #[inline]
    #[must_use]
    pub const fn link_out(link: LinkIndex, side: Side) -> usize {
        link.index() * 2 + side.bit() as usize
    }

    /// Cell of [`COPIES`].
    #[inline]
    #[must_use]
    pub const fn copies(pair: PairId, lost: bool) -> usize {
        pair.index() * 2 + lost as usize
    }

    /// Cell of [`PORT_IN`], [`PORT_OUT`], [`PORT_MISSED`], [`PORT_LOST`] and [`PROBES_OUT`].
    #[inline]
    #[must_use]
    pub const fn port(port: PortId) -> usize {
        port.index()
    }
}

impl Table {
    /// Entries have priorities, since fields may overlap.
    #[must_use]
    pub fn has_priority(&self) -> bool {
        self.key.iter().any(|(_, kind)| *kind != MatchKind::Exact)
    }

    /// The field of this id.
    #[must_use]
    pub fn field(&self, id: P4Id) -> Option<&'static (Field, MatchKind)> {
        self.key.iter().find(|(field, _)| field.id == id)
    }

    /// Checks an entry of this table against widths, kinds, masks and priority.
    ///
    /// # Errors
    /// The first thing that the P4Runtime specification does not allow ("Match Format", "TableEntry").
    pub fn check(&'static self, entry: &Entry) -> Result<(), EntryError> {
        let action = self.check_action(entry)?;
        self.check_key(&entry.key, entry.priority, entry.is_default)?;
        if entry.params.len() != action.params.len() {
            return Err(EntryError::ParamCount {
                action: action.name,
                found: entry.params.len(),
                wanted: action.params.len(),
            });
        }
        for (param, value) in action.params.iter().zip(&entry.params) {
            fits(*value, param.bits).map_err(|()| too_wide(action.name, param.name, *value, param.bits))?;
        }
        Ok(())
    }

    fn check_action(&'static self, entry: &Entry) -> Result<&'static Action, EntryError> {
        if entry.is_default {
            return match self.default {
                DefaultAction::Const(_) => Err(EntryError::ConstDefault(self.name)),
                DefaultAction::Settable(id, _) if id == entry.action => Ok(self.default_action),
                DefaultAction::Settable(..) => {
                    Err(EntryError::UnknownAction { table: self.name, action: entry.action })
                }
            };
        }
        if self.key.is_empty() {
            return Err(EntryError::DefaultAction {
                table: self.name,
                what: "the table has no match fields; write its default action",
            });
        }
        self.actions
            .iter()
            .find(|action| action.id == entry.action)
            .copied()
            .ok_or(EntryError::UnknownAction { table: self.name, action: entry.action })
    }

    /// Checks the match and the priority alone, as a delete has them.
    ///
    /// # Errors
    /// As [`Table::check`].
    pub fn check_place(&'static self, place: &EntryKey) -> Result<(), EntryError> {
        self.check_key(&place.key, place.priority, place.is_default)
    }

    fn check_key(
        &'static self,
        key: &[(P4Id, Condition)],
        priority: i32,
        is_default: bool,
    ) -> Result<(), EntryError> {
        if is_default {
            if !key.is_empty() || priority != 0 {
                return Err(EntryError::DefaultAction {
                    table: self.name,
                    what: "a default entry has neither match fields nor priority",
                });
            }
            return Ok(());
        }
        let mut last = 0;
        for (id, condition) in key {
            let Some((field, kind)) = self.field(*id).filter(|_| *id > last) else {
                return Err(EntryError::UnknownField { table: self.name, field: *id });
            };
            last = *id;
            self.check_condition(field, *kind, *condition)?;
        }
        for (field, kind) in self.key {
            if *kind == MatchKind::Exact && !key.iter().any(|(id, _)| *id == field.id) {
                return Err(EntryError::MissingField { table: self.name, field: field.name });
            }
        }
        match (self.has_priority(), priority) {
            (true, 1..) | (false, 0) => Ok(()),
            (true, priority) => Err(EntryError::Priority { table: self.name, priority, wanted: "above 0" }),
            (false, priority) => {
                Err(EntryError::Priority { table: self.name, priority, wanted: "0, the match is exact" })
            }
        }
    }

    fn check_condition(
        &self,
        field: &'static Field,
        kind: MatchKind,
        condition: Condition,
    ) -> Result<(), EntryError> {
        let name = field.name;
        let width =
            |value| fits(value, field.bits).map_err(|()| too_wide(self.name, name, value, field.bits));
        match (kind, condition) {
            (MatchKind::Exact, Condition::Exact(value)) => width(value),
            (MatchKind::Ternary, Condition::Ternary { value, mask }) => {
                width(value)?;
                width(mask)?;
                if mask == 0 {
                    return Err(EntryError::DontCare { table: self.name, field: name });
                }
                if value & !mask != 0 {
                    return Err(EntryError::OutsideMask { table: self.name, field: name, value, mask });
                }
                Ok(())
            }
            (MatchKind::Range, Condition::Range { low, high }) => {
                width(low)?;
                width(high)?;
                if low > high {
                    return Err(EntryError::EmptyRange { table: self.name, field: name, low, high });
                }
                if low == 0 && high == all_ones(field.bits) {
                    return Err(EntryError::DontCare { table: self.name, field: name });
                }
                Ok(())
            }
            _ => Err(EntryError::WrongKind { table: self.name, field: name, wanted: kind.as_str() }),
        }
    }
}

/// The largest value of a width.
#[must_use]
pub const fn all_ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

const fn fits(value: u128, bits: u32) -> Result<(), ()> {
    if value <= all_ones(bits) { Ok(()) } else { Err(()) }
}

fn too_wide(of: &str, what: &str, value: u128, bits: u32) -> EntryError {
    EntryError::TooWide { what: format!("{of}.{what}"), value, bits }
}
