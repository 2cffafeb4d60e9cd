//! Table entries on the wire, checked against the P4Info alone.

use p4runtime::Fault;
use p4runtime::bytestring::{BytestringError, canonical, parse_bytes};
use p4runtime::proto::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use p4runtime::proto::p4::v1::{Action, FieldMatch, TableAction, TableEntry, action, table_action};
use tonic::Code;

use super::info::{ActionInfo, Field, FieldKind, Info, TableInfo};
use super::restriction::{Given, Restriction};
use super::table::Pattern;

/// A match field's condition. A field that does not matter has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Condition {
    Exact(u128),
    Ternary { value: u128, mask: u128 },
    Lpm { value: u128, length: u32 },
    Range { low: u128, high: u128 },
    Optional(u128),
}

/// What makes two entries of a table the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) table: u32,
    /// By field id, in rising order.
    pub(super) key: Vec<(u32, Condition)>,
    pub(super) priority: i32,
    pub(super) is_default: bool,
}

/// An entry, or a default entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) action: u32,
    /// In the order of the program's parameters.
    pub(super) params: Vec<u128>,
    pub(super) metadata: Vec<u8>,
}

pub(super) fn all_ones(bits: u32) -> u128 {
    u128::MAX >> (128 - bits.clamp(1, 128))
}

/// The mask of a prefix of a field.
pub(super) fn prefix_mask(bits: u32, length: u32) -> u128 {
    all_ones(bits) & !u128::MAX.checked_shr(128 - bits + length).unwrap_or(0)
}

fn refuse<T>(of: &str, what: impl std::fmt::Display) -> Result<T, Fault> {
    Err(Fault::invalid_argument(format!("{of}: {what}")))
}

impl Condition {
    /// How the table finds it.
    pub(super) fn pattern(self, bits: u32) -> Pattern {
        match self {
            Condition::Exact(value) | Condition::Optional(value) => Pattern::Exact(value),
            Condition::Ternary { value, mask } => Pattern::Masked { value, mask },
            Condition::Lpm { value, length } => Pattern::Masked { value, mask: prefix_mask(bits, length) },
            Condition::Range { low, high } => Pattern::Range { low, high },
        }
    }

    fn given(self, bits: u32) -> Given {
        match self {
            Condition::Exact(value) => Given::Exact(value),
            Condition::Optional(value) => Given::Ternary { value, mask: all_ones(bits) },
            Condition::Ternary { value, mask } => Given::Ternary { value, mask },
            Condition::Lpm { value, length } => Given::Lpm { value, length },
            Condition::Range { low, high } => Given::Range { low, high },
        }
    }
}

impl Field {
    fn anything(&self) -> Given {
        match self.kind {
            FieldKind::Exact => Given::Exact(0),
            FieldKind::Ternary | FieldKind::Optional => Given::Ternary { value: 0, mask: 0 },
            FieldKind::Lpm => Given::Lpm { value: 0, length: 0 },
            FieldKind::Range => Given::Range { low: 0, high: all_ones(self.bits) },
        }
    }

    /// The condition on the wire.
    fn read(&self, table: &TableInfo, wire: &FieldMatch) -> Result<Condition, Fault> {
        let value = |bytes: &[u8]| {
            parse_bytes(bytes, self.bits).map_err(|error| value_fault(&table.name, &self.name, error))
        };
        Ok(match (&wire.field_match_type, self.kind) {
            (Some(FieldMatchType::Exact(exact)), FieldKind::Exact) => Condition::Exact(value(&exact.value)?),
            (Some(FieldMatchType::Ternary(ternary)), FieldKind::Ternary) => {
                Condition::Ternary { value: value(&ternary.value)?, mask: value(&ternary.mask)? }
            }
            (Some(FieldMatchType::Lpm(lpm)), FieldKind::Lpm) => {
                let read = value(&lpm.value)?;
                match u32::try_from(lpm.prefix_len) {
                    Ok(length) if length <= self.bits => Condition::Lpm { value: read, length },
                    _ => {
                        return refuse(
                            &table.name,
                            format!("prefix length {} of {}", lpm.prefix_len, self.name),
                        );
                    }
                }
            }
            (Some(FieldMatchType::Range(range)), FieldKind::Range) => {
                Condition::Range { low: value(&range.low)?, high: value(&range.high)? }
            }
            (Some(FieldMatchType::Optional(optional)), FieldKind::Optional) => {
                Condition::Optional(value(&optional.value)?)
            }
            _ => {
                let wanted = self.kind.as_str();
                return refuse(
                    &table.name,
                    format!("match field {} is {wanted}, the entry has another kind of match", self.name),
                );
            }
        })
    }

    /// P4Runtime, "Match Format": what does not matter is left out, bits outside of a mask are 0.
    fn check(&self, table: &TableInfo, condition: Condition) -> Result<(), Fault> {
        let wrong = |what: String| refuse(&table.name, format!("match field {}: {what}", self.name));
        let everything = || wrong("it matches everything; leave it out instead".to_owned());
        let masked = |value: u128, mask: u128| {
            if value & !mask == 0 {
                Ok(())
            } else {
                wrong(format!("{value:#x} has bits outside of {mask:#x}"))
            }
        };
        match condition {
            Condition::Exact(_) | Condition::Optional(_) => Ok(()),
            Condition::Ternary { mask: 0, .. } | Condition::Lpm { length: 0, .. } => everything(),
            Condition::Ternary { value, mask } => masked(value, mask),
            Condition::Lpm { value, length } => masked(value, prefix_mask(self.bits, length)),
            Condition::Range { low, high } if low > high => wrong(format!("range {low}-{high} is empty")),
            Condition::Range { low: 0, high } if high == all_ones(self.bits) => everything(),
            Condition::Range { .. } => Ok(()),
        }
    }
}

fn value_fault(of: &str, what: &str, error: BytestringError) -> Fault {
    Fault::new(error.code(), format!("{of}.{what}: {error}"))
}

impl Info {
    /// The table of an id.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: there is none.
    pub(super) fn known_table(&self, id: u32) -> Result<&TableInfo, Fault> {
        self.table(id).ok_or_else(|| Fault::invalid_argument(format!("table id {id:#010x} is unknown")))
    }

    /// Reads an entry with its action and checks all of it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its canonical code.
    pub(super) fn read_entry(&self, wire: &TableEntry) -> Result<Entry, Fault> {
        let table = self.known_table(wire.table_id)?;
        table.unsupported(wire)?;
        let place = table.read_place(wire)?;
        let (action, params) = table.read_action(wire)?;
        table.check_action(&place, action)?;
        table.check_place(&place)?;
        let entry = Entry { place, action: action.id, params, metadata: wire.metadata.clone() };
        table.check_restrictions(&entry, action)?;
        Ok(entry)
    }

    /// Reads an entry's place alone, as a delete or a filter has it.
    ///
    /// # Errors
    /// As [`Info::read_entry`].
    pub(super) fn read_place(&self, wire: &TableEntry) -> Result<Place, Fault> {
        let table = self.known_table(wire.table_id)?;
        let place = table.read_place(wire)?;
        table.check_place(&place)?;
        Ok(place)
    }

    /// The entry as it is sent.
    pub(super) fn entry_to_wire(&self, entry: &Entry) -> TableEntry {
        let mut wire = place_to_wire(&entry.place);
        let action = self.table(entry.place.table).and_then(|table| table.action(entry.action));
        let params = action.map(|action| action.params.as_slice()).unwrap_or_default();
        let params = params
            .iter()
            .zip(&entry.params)
            .map(|(param, value)| action::Param { param_id: param.id, value: canonical(*value) })
            .collect();
        let action = Action { action_id: entry.action, params };
        wire.action = Some(TableAction { r#type: Some(table_action::Type::Action(action)) });
        wire.metadata = entry.metadata.clone();
        wire
    }
}

/// The place as it is sent: values in their shortest form.
pub(super) fn place_to_wire(place: &Place) -> TableEntry {
    let field = |(field_id, condition): &(u32, Condition)| {
        let kind = match *condition {
            Condition::Exact(value) => FieldMatchType::Exact(Exact { value: canonical(value) }),
            Condition::Optional(value) => FieldMatchType::Optional(Optional { value: canonical(value) }),
            Condition::Ternary { value, mask } => {
                FieldMatchType::Ternary(Ternary { value: canonical(value), mask: canonical(mask) })
            }
            Condition::Lpm { value, length } => {
                let prefix_len = i32::try_from(length).unwrap_or(i32::MAX);
                FieldMatchType::Lpm(Lpm { value: canonical(value), prefix_len })
            }
            Condition::Range { low, high } => {
                FieldMatchType::Range(Range { low: canonical(low), high: canonical(high) })
            }
        };
        FieldMatch { field_id: *field_id, field_match_type: Some(kind) }
    };
    TableEntry {
        table_id: place.table,
        r#match: place.key.iter().map(field).collect(),
        priority: place.priority,
        is_default_action: place.is_default,
        ..Default::default()
    }
}

impl TableInfo {
    /// What an entry may not bring along.
    fn unsupported(&self, wire: &TableEntry) -> Result<(), Fault> {
        if wire.meter_config.is_some() || wire.meter_counter_data.is_some() {
            return refuse(&self.name, "it has no direct meter");
        }
        if wire.counter_data.is_some() && !self.has_counter {
            return refuse(&self.name, "it has no direct counter");
        }
        if wire.idle_timeout_ns != 0 || wire.time_since_last_hit.is_some() {
            return refuse(&self.name, "its entries have no idle timeout");
        }
        if wire.is_const {
            return refuse(&self.name, "is_const is the server's to set");
        }
        #[allow(deprecated)] // old clients still send it
        if wire.controller_metadata != 0 {
            return Err(Fault::unimplemented("controller_metadata is not kept; use metadata"));
        }
        Ok(())
    }

    fn read_place(&self, wire: &TableEntry) -> Result<Place, Fault> {
        let mut key = Vec::with_capacity(wire.r#match.len());
        for given in &wire.r#match {
            let Some(field) = self.field(given.field_id) else {
                return refuse(&self.name, format!("match field id {} is unknown", given.field_id));
            };
            key.push((field.id, field.read(self, given)?));
        }
        key.sort_by_key(|(id, _)| *id);
        Ok(Place { table: self.id, key, priority: wire.priority, is_default: wire.is_default_action })
    }

    fn read_action(&self, wire: &TableEntry) -> Result<(&ActionInfo, Vec<u128>), Fault> {
        let action = match wire.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => return refuse(&self.name, "the entry has no action"),
            Some(table_action::Type::Action(action)) => action,
            Some(_) => return refuse(&self.name, "it has no action profile, give it an action"),
        };
        let Some(known) = self.action(action.action_id) else {
            return refuse(
                &self.name,
                format!("action id {:#010x} is not one of its actions", action.action_id),
            );
        };
        let mut values = vec![None; known.params.len()];
        for given in &action.params {
            let place = known.params.iter().position(|param| param.id == given.param_id);
            let Some(place) = place.filter(|place| values[*place].is_none()) else {
                let what = format!("parameter id {} is unknown or given twice", given.param_id);
                return refuse(&known.name, what);
            };
            let param = &known.params[place];
            let value = parse_bytes(&given.value, param.bits);
            values[place] = Some(value.map_err(|error| value_fault(&known.name, &param.name, error))?);
        }
        match values.into_iter().collect() {
            Some(values) => Ok((known, values)),
            None => refuse(
                &known.name,
                format!("{} parameters given, it has {}", action.params.len(), known.params.len()),
            ),
        }
    }

    fn check_action(&self, place: &Place, action: &ActionInfo) -> Result<(), Fault> {
        if place.is_default {
            if self.const_default {
                return Err(self.const_default_fault());
            }
            if !action.for_default {
                return refuse(&self.name, format!("action {} is for entries only", action.name));
            }
            return Ok(());
        }
        if self.fields.is_empty() {
            return refuse(&self.name, "it has no match fields; write its default action");
        }
        if !action.for_entries {
            return refuse(&self.name, format!("action {} is for the default entry only", action.name));
        }
        if self.const_entries {
            return Err(self.const_entries_fault());
        }
        Ok(())
    }

    pub(super) fn const_default_fault(&self) -> Fault {
        Fault::new(Code::PermissionDenied, format!("{}: the default action is constant", self.name))
    }

    pub(super) fn const_entries_fault(&self) -> Fault {
        Fault::new(
            Code::PermissionDenied,
            format!("{}: its entries are the program's and constant", self.name),
        )
    }

    fn check_place(&self, place: &Place) -> Result<(), Fault> {
        if place.is_default {
            if !place.key.is_empty() || place.priority != 0 {
                return refuse(&self.name, "a default entry has neither match fields nor priority");
            }
            return Ok(());
        }
        if let Some(pair) = place.key.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return refuse(&self.name, format!("match field id {} is given twice", pair[0].0));
        }
        for (id, condition) in &place.key {
            if let Some(field) = self.field(*id) {
                field.check(self, *condition)?;
            }
        }
        for field in self.fields.iter().filter(|field| field.kind == FieldKind::Exact) {
            if !place.key.iter().any(|(id, _)| *id == field.id) {
                return refuse(
                    &self.name,
                    format!("match field {} is missing; an exact field cannot be left out", field.name),
                );
            }
        }
        match (self.has_priority(), place.priority) {
            (true, 1..) | (false, 0) => Ok(()),
            (true, priority) => refuse(&self.name, format!("priority is {priority}; it must be above 0")),
            (false, priority) => {
                refuse(&self.name, format!("priority is {priority}; entries of this table have none"))
            }
        }
    }

    /// Entry restrictions are of entries with a match; action restrictions of default entries too.
    fn check_restrictions(&self, entry: &Entry, action: &ActionInfo) -> Result<(), Fault> {
        let params: Vec<Given> = entry.params.iter().map(|value| Given::Exact(*value)).collect();
        let priority = entry.place.priority;
        let broken = |restrictions: &[Restriction], given: &[Given]| {
            let broken = restrictions.iter().find(|restriction| !restriction.holds(given, priority));
            broken.map(|restriction| restriction.text.clone())
        };
        if let Some(text) = broken(&action.restrictions, &params) {
            return refuse(
                &action.name,
                format!("the parameters are against @action_restriction(\"{text}\")"),
            );
        }
        if entry.place.is_default {
            return Ok(());
        }
        let given: Vec<Given> = self
            .fields
            .iter()
            .map(|field| {
                let condition = entry.place.key.iter().find(|(id, _)| *id == field.id);
                condition.map_or(field.anything(), |(_, condition)| condition.given(field.bits))
            })
            .collect();
        if let Some(text) = broken(&self.restrictions, &given) {
            return refuse(&self.name, format!("the entry is against @entry_restriction(\"{text}\")"));
        }
        Ok(())
    }
}
