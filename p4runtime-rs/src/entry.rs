//! Table entries of the data plane on the wire, both ways, and the P4Info that both ends share.
//!
//! ```
//! use dataplane::tables::PortMtuEntry;
//! use dataplane::PortId;
//! use p4runtime::entry;
//!
//! let ours = PortMtuEntry { port: PortId(8), mtu: 1600 }.entry();
//! let wire = entry::to_wire(&ours);
//! assert_eq!(entry::from_wire(&wire), Ok(ours));
//! ```

mod clone_session;
mod info;

use dataplane::entry::{Condition, Entry, EntryError, EntryKey, Update};
use dataplane::schema::{self, DefaultAction, MatchKind};
use dataplane::tables::{self, CLONE_SESSIONS};
use tonic::Code;

pub use info::{p4info, p4info_of};

use crate::Fault;
use crate::bytestring::{BytestringError, canonical, parse_bytes};
use crate::proto::p4::v1::entity::Entity as Kind;
use crate::proto::p4::v1::field_match::{Exact, FieldMatchType, Range, Ternary};
use crate::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use crate::proto::p4::v1::{
    self, Action, FieldMatch, PacketReplicationEngineEntry, TableAction, TableEntry, action, table_action,
};

impl From<EntryError> for Fault {
    /// P4Runtime, "Write RPC": malformed entities are `INVALID_ARGUMENT` unless a more specific code applies.
    fn from(error: EntryError) -> Self {
        let code = match error {
            EntryError::TooWide { .. } => Code::OutOfRange,
            EntryError::ConstDefault(_) => Code::PermissionDenied,
            _ => Code::InvalidArgument,
        };
        Fault::new(code, error.to_string())
    }
}

/// The entry as the protocol has it, action and metadata included.
#[must_use]
pub fn to_wire(entry: &Entry) -> TableEntry {
    let mut wire = place_to_wire(&entry.place());
    let params = (1..)
        .zip(&entry.params)
        .map(|(param_id, value)| action::Param { param_id, value: canonical(*value) })
        .collect();
    let action = Action { action_id: entry.action, params };
    wire.action = Some(TableAction { r#type: Some(table_action::Type::Action(action)) });
    wire.metadata = entry.metadata.clone();
    wire
}

/// The place alone: what a delete and a read need.
#[must_use]
pub fn place_to_wire(place: &EntryKey) -> TableEntry {
    let r#match = place
        .key
        .iter()
        .map(|(field_id, condition)| FieldMatch {
            field_id: *field_id,
            field_match_type: Some(match *condition {
                Condition::Exact(value) => FieldMatchType::Exact(Exact { value: canonical(value) }),
                Condition::Ternary { value, mask } => {
                    FieldMatchType::Ternary(Ternary { value: canonical(value), mask: canonical(mask) })
                }
                Condition::Range { low, high } => {
                    FieldMatchType::Range(Range { low: canonical(low), high: canonical(high) })
                }
            }),
        })
        .collect();
    TableEntry {
        table_id: place.table,
        r#match,
        priority: place.priority,
        is_default_action: place.is_default,
        ..Default::default()
    }
}

/// Any entry as the protocol's entity, clone sessions as such.
#[must_use]
pub fn to_entity(entry: &Entry) -> v1::Entity {
    if entry.table == CLONE_SESSIONS.id {
        clone_session::to_wire(entry).into()
    } else {
        to_wire(entry).into()
    }
}

/// The place alone, of any entry.
#[must_use]
pub fn place_to_entity(place: &EntryKey) -> v1::Entity {
    if place.table == CLONE_SESSIONS.id {
        clone_session::place_to_wire(place).into()
    } else {
        place_to_wire(place).into()
    }
}

/// The update as the protocol has it; a delete names the place alone.
#[must_use]
pub fn update_to_wire(update: &Update) -> v1::Update {
    match update {
        Update::Insert(entry) => v1::Update::insert(to_entity(entry)),
        Update::Modify(entry) => v1::Update::modify(to_entity(entry)),
        Update::Delete(entry) => v1::Update::delete(place_to_entity(&entry.place())),
    }
}

/// Reads a clone session with its replica, and checks it.
///
/// # Errors
/// What the protocol does not allow or the data plane does not have, with its canonical code.
pub fn clone_session_from_wire(wire: &v1::CloneSessionEntry) -> Result<Entry, Fault> {
    clone_session::from_wire(wire)
}

/// Reads the place of a clone session; whatever else is set does not matter.
///
/// # Errors
/// Session 0.
pub fn clone_session_place_from_wire(wire: &v1::CloneSessionEntry) -> Result<EntryKey, Fault> {
    clone_session::place_from_wire(wire)
}

/// The entry that an entity of a read is; `None` where it is of another kind, such as a counter.
///
/// # Errors
/// As [`from_wire`].
pub fn from_entity(entity: &v1::Entity) -> Result<Option<Entry>, Fault> {
    match &entity.entity {
        Some(Kind::TableEntry(wire)) => from_wire(wire).map(Some),
        Some(Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Replication::CloneSessionEntry(wire)),
        })) => clone_session::from_wire(wire).map(Some),
        _ => Ok(None),
    }
}

/// Reads an entry with its action, and checks it against the schema.
///
/// # Errors
/// The first thing that the schema or the protocol does not allow, with its canonical code.
pub fn from_wire(wire: &TableEntry) -> Result<Entry, Fault> {
    let table = table_of(wire)?;
    unsupported(table, wire)?;
    let place = read_place(table, wire)?;
    let action = action_of(table, wire)?
        .ok_or_else(|| Fault::invalid_argument(format!("table {}: the entry has no action", table.name)))?;
    let entry = Entry {
        table: table.id,
        key: place.key,
        priority: place.priority,
        action: action.0,
        params: action.1,
        metadata: wire.metadata.clone(),
        is_default: place.is_default,
    };
    tables::TableEntry::parse(&entry)?;
    Ok(entry)
}

/// Reads the place of an entry, and checks it against the schema; whatever else is set does not matter.
///
/// # Errors
/// As [`from_wire`].
pub fn place_from_wire(wire: &TableEntry) -> Result<EntryKey, Fault> {
    let table = table_of(wire)?;
    let place = read_place(table, wire)?;
    table.check_place(&place)?;
    Ok(place)
}

/// Filters that read every entry of every table: a wildcard read leaves default entries out, which are asked
/// for by table (P4Runtime, "Wildcard Reads"), and clone sessions are in no table.
#[must_use]
pub fn every_entry() -> Vec<v1::Entity> {
    let settable =
        tables::PROGRAM.iter().filter(|table| matches!(table.default, DefaultAction::Settable(..)));
    let defaults = settable.map(|table| TableEntry {
        table_id: table.id,
        is_default_action: true,
        ..Default::default()
    });
    let mut filters: Vec<v1::Entity> =
        [TableEntry::default()].into_iter().chain(defaults).map(Into::into).collect();
    filters.push(v1::CloneSessionEntry::default().into());
    filters
}

fn table_of(wire: &TableEntry) -> Result<&'static schema::Table, Fault> {
    Ok(tables::of_program(wire.table_id).ok_or(EntryError::UnknownTable(wire.table_id))?)
}

/// What an entry may not bring along here.
fn unsupported(table: &'static schema::Table, wire: &TableEntry) -> Result<(), Fault> {
    let name = table.name;
    let refuse = |what: &str| Err(Fault::invalid_argument(format!("table {name}: {what}")));
    if wire.meter_config.is_some() || wire.meter_counter_data.is_some() {
        return refuse("it has no direct meter");
    }
    if wire.counter_data.is_some() && table.direct_counter.is_none() {
        return refuse("it has no direct counter");
    }
    if wire.idle_timeout_ns != 0 || wire.time_since_last_hit.is_some() {
        return refuse("its entries have no idle timeout");
    }
    if wire.is_const {
        return refuse("is_const is the server's to set");
    }
    #[allow(deprecated)] // old clients still send it
    if wire.controller_metadata != 0 {
        return Err(Fault::unimplemented("controller_metadata is not kept; use metadata"));
    }
    Ok(())
}

fn read_place(table: &'static schema::Table, wire: &TableEntry) -> Result<EntryKey, Fault> {
    let mut key = Vec::with_capacity(wire.r#match.len());
    for field_match in &wire.r#match {
        let id = field_match.field_id;
        let unknown = EntryError::UnknownField { table: table.name, field: id };
        let (field, kind) = table.field(id).ok_or(unknown)?;
        let read = |bytes: &[u8]| {
            parse_bytes(bytes, field.bits).map_err(|error| value_fault(table.name, field.name, error))
        };
        let condition = match (&field_match.field_match_type, kind) {
            (Some(FieldMatchType::Exact(exact)), MatchKind::Exact) => Condition::Exact(read(&exact.value)?),
            (Some(FieldMatchType::Ternary(ternary)), MatchKind::Ternary) => {
                Condition::Ternary { value: read(&ternary.value)?, mask: read(&ternary.mask)? }
            }
            (Some(FieldMatchType::Range(range)), MatchKind::Range) => {
                Condition::Range { low: read(&range.low)?, high: read(&range.high)? }
            }
            _ => {
                let wanted = kind.as_str();
                return Err(EntryError::WrongKind { table: table.name, field: field.name, wanted }.into());
            }
        };
        key.push((id, condition));
    }
    // The protocol leaves the order of fields open; a field given twice stays, and is found by the check.
    key.sort_by_key(|(id, _)| *id);
    Ok(EntryKey { table: table.id, key, priority: wire.priority, is_default: wire.is_default_action })
}

/// Id and parameters of an entry's action; `None` where it has none.
fn action_of(table: &'static schema::Table, wire: &TableEntry) -> Result<Option<(u32, Vec<u128>)>, Fault> {
    let action = match wire.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => return Ok(None),
        Some(table_action::Type::Action(action)) => action,
        Some(_) => {
            let reason = format!("table {}: it has no action profile, give it an action", table.name);
            return Err(Fault::invalid_argument(reason));
        }
    };
    let known = table
        .actions
        .iter()
        .copied()
        .chain([table.default_action])
        .find(|known| known.id == action.action_id)
        .ok_or(EntryError::UnknownAction { table: table.name, action: action.action_id })?;
    let mut params = vec![None; known.params.len()];
    for param in &action.params {
        let place = known.params.iter().zip(&mut params).find(|(known, _)| known.id == param.param_id);
        let (field, place) = match place {
            Some((field, place)) if place.is_none() => (field, place),
            _ => {
                return Err(Fault::invalid_argument(format!(
                    "action {}: parameter id {} is unknown or given twice",
                    known.name, param.param_id
                )));
            }
        };
        let value = parse_bytes(&param.value, field.bits)
            .map_err(|error| value_fault(known.name, field.name, error))?;
        *place = Some(value);
    }
    let found = action.params.len();
    let params: Option<Vec<u128>> = params.into_iter().collect();
    let params =
        params.ok_or(EntryError::ParamCount { action: known.name, found, wanted: known.params.len() })?;
    Ok(Some((known.id, params)))
}

fn value_fault(of: &str, what: &str, error: BytestringError) -> Fault {
    Fault::new(error.code(), format!("{of}.{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use dataplane::PortId;
    use dataplane::tables::{
        BucketEntry, BucketForwarding, CloneSessionEntry, Family, PortRange, RuleAction, RuleEntry,
        RuleField, RuleMatch, SteeringEntry,
    };
    use dataplane::{BucketIndex, Core, PairId, SteeringMode, UnitId};
    use proptest::prelude::*;

    use super::*;

    fn rule() -> RuleEntry {
        let mut matches = RuleMatch::default();
        matches.set_exact(RuleField::Link, 0, Family::V4);
        matches.set_exact(RuleField::IpVersion, 4, Family::V4);
        matches.set_exact(RuleField::HasPorts, 1, Family::V4);
        matches.set(RuleField::SrcIp, 0x0a00_0000, 0xff00_0000);
        matches.dst_port = PortRange { low: 0, high: 1023 };
        RuleEntry { family: Family::V4, priority: 7, matches, action: RuleAction::ToUnit(UnitId(3)) }
    }

    fn named() -> Entry {
        Entry { metadata: b"web".to_vec(), ..rule().entry() }
    }

    fn steering() -> Entry {
        SteeringEntry { mode: SteeringMode::Dot1q { tpid: 0x8100, base_vid: 100 } }.entry()
    }

    fn bucket() -> Entry {
        let forwarding = BucketForwarding::Pair { pair: PairId(300), core: Core(16) };
        BucketEntry { unit: UnitId(0), bucket: BucketIndex(65535), forwarding }.entry()
    }

    fn code(wire: &TableEntry) -> Code {
        from_wire(wire).unwrap_err().code()
    }

    #[test]
    fn wire_form_is_canonical() {
        let wire = to_wire(&named());
        assert_eq!(wire.r#match.len(), 5, "fields that do not matter are left out");
        let link = Ternary { value: vec![0], mask: vec![0xff] };
        assert_eq!(wire.r#match[0].field_match_type, Some(FieldMatchType::Ternary(link)));
        let port = wire.r#match.iter().find(|field| field.field_id == 18).unwrap();
        let range = Range { low: vec![0], high: vec![3, 0xff] };
        assert_eq!(port.field_match_type, Some(FieldMatchType::Range(range)));
        assert_eq!(wire.metadata, b"web");
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let session = CloneSessionEntry::to(PortId(9)).entry();
        for entry in [named(), steering(), bucket(), session] {
            assert_eq!(from_entity(&to_entity(&entry)), Ok(Some(entry.clone())));
        }
        for entry in [named(), steering(), bucket()] {
            assert_eq!(from_wire(&to_wire(&entry)), Ok(entry.clone()));
            assert_eq!(place_from_wire(&place_to_wire(&entry.place())), Ok(entry.place()));
        }
    }

    #[test]
    fn fields_and_parameters_may_come_in_any_order_and_padded() {
        let mut wire = to_wire(&named());
        wire.r#match.reverse();
        assert_eq!(from_wire(&wire), Ok(named()));
        let mut wire = to_wire(&bucket());
        let Some(table_action::Type::Action(action)) = wire.action.as_mut().unwrap().r#type.as_mut() else {
            panic!("no action")
        };
        action.params.reverse();
        action.params[0].value.insert(0, 0);
        assert_eq!(from_wire(&wire), Ok(bucket()));
    }

    #[test]
    fn a_delete_names_the_place_alone() {
        let wire = update_to_wire(&Update::Delete(named()));
        let Some(v1::entity::Entity::TableEntry(entry)) = wire.entity.unwrap().entity else { panic!() };
        assert!(entry.action.is_none() && entry.metadata.is_empty());
        assert_eq!(place_from_wire(&entry), Ok(named().place()));
    }

    #[test]
    fn what_the_protocol_does_not_allow_has_its_code() {
        let spoilt = |spoil: &dyn Fn(&mut TableEntry)| {
            let mut wire = to_wire(&named());
            spoil(&mut wire);
            code(&wire)
        };
        assert_eq!(spoilt(&|wire| wire.table_id = 0x0200_00ff), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.table_id = CLONE_SESSIONS.id), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.priority = 0), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.action = None), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.r#match[1].field_id = 99), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.r#match.push(wire.r#match[0].clone())), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.r#match[1].field_match_type = None), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.idle_timeout_ns = 1), Code::InvalidArgument);
        assert_eq!(spoilt(&|wire| wire.is_const = true), Code::InvalidArgument);
        assert_eq!(
            spoilt(&|wire| wire.meter_config = Some(v1::MeterConfig::default())),
            Code::InvalidArgument
        );
        #[allow(deprecated)]
        let numbered = spoilt(&|wire| wire.controller_metadata = 1);
        assert_eq!(numbered, Code::Unimplemented);
        let ternary = |value: &[u8], mask: &[u8]| {
            let condition = FieldMatchType::Ternary(Ternary { value: value.into(), mask: mask.into() });
            spoilt(&|wire| wire.r#match[0].field_match_type = Some(condition.clone()))
        };
        assert_eq!(ternary(&[2], &[1]), Code::InvalidArgument);
        assert_eq!(ternary(&[0], &[0]), Code::InvalidArgument);
        assert_eq!(ternary(&[], &[1]), Code::OutOfRange);
        assert_eq!(ternary(&[1, 0], &[1, 0]), Code::OutOfRange);
        let with_params = |params: &[(u32, &[u8])]| {
            let params = params
                .iter()
                .map(|(param_id, value)| action::Param { param_id: *param_id, value: value.to_vec() })
                .collect::<Vec<_>>();
            spoilt(&|wire| {
                let Some(table_action::Type::Action(action)) = wire.action.as_mut().unwrap().r#type.as_mut()
                else {
                    panic!("no action")
                };
                action.params = params.clone();
            })
        };
        assert_eq!(with_params(&[]), Code::InvalidArgument);
        assert_eq!(with_params(&[(1, &[1]), (1, &[1])]), Code::InvalidArgument);
        assert_eq!(with_params(&[(2, &[1])]), Code::InvalidArgument);
        assert_eq!(with_params(&[(1, &[1, 0])]), Code::OutOfRange);
    }

    #[test]
    fn a_constant_default_is_not_to_be_written() {
        let table = tables::by_id(rule().family.table()).unwrap();
        let action = Action { action_id: table.default_action.id, params: vec![] };
        let wire = TableEntry {
            table_id: table.id,
            is_default_action: true,
            action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
            ..Default::default()
        };
        assert_eq!(code(&wire), Code::PermissionDenied);
        let with_match = TableEntry { r#match: to_wire(&named()).r#match, ..to_wire(&steering()) };
        assert_eq!(code(&with_match), Code::InvalidArgument);
    }

    proptest! {
        #[test]
        fn any_rule_comes_back(
            src: u128, mask: u128, proto: u8, low: u16, high: u16, priority in 1..i32::MAX, metadata: Vec<u8>,
        ) {
            let mut matches = RuleMatch::default();
            matches.set(RuleField::SrcIp, src, mask);
            matches.set_exact(RuleField::IpProto, proto.into(), Family::V6);
            matches.set_exact(RuleField::HasPorts, 1, Family::V6);
            matches.src_port = PortRange { low: low.min(high), high: low.max(high) };
            let rule = RuleEntry { family: Family::V6, priority, matches, action: RuleAction::Drop };
            let entry = Entry { metadata, ..rule.entry() };
            prop_assert_eq!(from_wire(&to_wire(&entry)), Ok(entry));
        }
    }
}
