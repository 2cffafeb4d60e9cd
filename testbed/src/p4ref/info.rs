//! What controllers may address: the P4Info, bound to the program by names.

use std::collections::HashMap;

use p4runtime::proto::p4::config::v1::action_ref::Scope;
use p4runtime::proto::p4::config::v1::match_field::{Match, MatchType};
use p4runtime::proto::p4::config::v1::{self, P4Info, Preamble};
use prost_reflect::{DescriptorPool, DynamicMessage};

use super::action::Action;
use super::counter::{CounterArrays, CounterId};
use super::error::LoadError;
use super::pipeline::{Kind, Table};
use super::restriction::{Restriction, Subject, SubjectKind};
use super::value::Value;

/// Reads a P4Info as p4c writes it: protobuf text.
///
/// # Errors
/// The text is no P4Info.
pub fn read_info(text: &str) -> Result<P4Info, LoadError> {
    let wrong = |error: &dyn std::fmt::Display| LoadError::Text(error.to_string());
    let pool =
        DescriptorPool::decode(p4runtime::proto::FILE_DESCRIPTOR_SET).map_err(|error| wrong(&error))?;
    let descriptor = pool
        .get_message_by_name("p4.config.v1.P4Info")
        .ok_or_else(|| wrong(&"the bindings lack p4.config.v1.P4Info"))?;
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|error| wrong(&error))?;
    message.transcode_to().map_err(|error| wrong(&error))
}

/// How a match field matches, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
}

impl FieldKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            FieldKind::Exact => "exact",
            FieldKind::Lpm => "lpm",
            FieldKind::Ternary => "ternary",
            FieldKind::Range => "range",
            FieldKind::Optional => "optional",
        }
    }
}

/// A match field.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) kind: FieldKind,
    /// Its place in the program's key.
    pub(super) place: usize,
}

/// An action's parameter, or a field of a packet header.
#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) bits: u32,
}

/// An action of a table.
#[derive(Clone, Debug)]
pub(super) struct ActionInfo {
    pub(super) id: u32,
    pub(super) name: String,
    /// In the order of the program's parameters.
    pub(super) params: Vec<Param>,
    /// Its place in the program.
    pub(super) action: usize,
    pub(super) for_entries: bool,
    pub(super) for_default: bool,
    pub(super) restrictions: Vec<Restriction>,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct TableInfo {
    pub(super) id: u32,
    pub(super) name: String,
    /// Its place in the program.
    pub(super) table: usize,
    pub(super) size: usize,
    pub(super) fields: Vec<Field>,
    pub(super) actions: Vec<ActionInfo>,
    /// Whether the default action is constant.
    pub(super) const_default: bool,
    /// Whether the entries are.
    pub(super) const_entries: bool,
    pub(super) has_counter: bool,
    pub(super) restrictions: Vec<Restriction>,
}

impl TableInfo {
    /// Entries have priorities, since fields may overlap.
    pub(super) fn has_priority(&self) -> bool {
        let overlapping =
            |field: &Field| matches!(field.kind, FieldKind::Ternary | FieldKind::Range | FieldKind::Optional);
        self.fields.iter().any(overlapping)
    }

    pub(super) fn field(&self, id: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    pub(super) fn action(&self, id: u32) -> Option<&ActionInfo> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// The action at a place in the program.
    pub(super) fn of_program(&self, action: usize) -> Option<&ActionInfo> {
        self.actions.iter().find(|known| known.action == action)
    }
}

/// A counter array.
#[derive(Clone, Debug)]
pub(super) struct CounterInfo {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) counter: CounterId,
}

/// Everything that controllers may address.
#[derive(Clone, Debug)]
pub(super) struct Info {
    pub(super) p4info: P4Info,
    pub(super) tables: Vec<TableInfo>,
    pub(super) counters: Vec<CounterInfo>,
    table_places: HashMap<u32, usize>,
    /// Fields in front of packets to the controller and from it.
    pub(super) packet_in: Option<Vec<Param>>,
    pub(super) packet_out: Option<Vec<Param>>,
}

fn label(preamble: &Option<Preamble>) -> (u32, String) {
    preamble.as_ref().map_or_else(Default::default, |preamble| (preamble.id, preamble.name.clone()))
}

fn width(of: &str, name: &str, bits: i32) -> Result<u32, LoadError> {
    u32::try_from(bits).ok().filter(|bits| (1..=128).contains(bits)).ok_or_else(|| {
        LoadError::info(
            of,
            format!("`{name}` has {bits} bits; 1 to 128 are implemented, translated types are not"),
        )
    })
}

impl Info {
    /// Binds a P4Info to a program.
    pub(super) fn bind(
        p4info: &P4Info,
        tables: &[Table],
        actions: &[Action],
        counters: &CounterArrays,
    ) -> Result<Self, LoadError> {
        refuse_others(p4info)?;
        let by_id: HashMap<u32, &v1::Action> =
            p4info.actions.iter().map(|action| (label(&action.preamble).0, action)).collect();
        let tables = p4info
            .tables
            .iter()
            .map(|table| bind_table(table, p4info, &by_id, tables, actions))
            .collect::<Result<Vec<_>, _>>()?;
        let table_places = tables.iter().enumerate().map(|(place, table)| (table.id, place)).collect();
        let counters = p4info
            .counters
            .iter()
            .map(|counter| {
                let (id, name) = label(&counter.preamble);
                let found = counters.find(&name);
                let found = found.ok_or_else(|| LoadError::info(&name, "the program has no such counter"))?;
                let cells = counters.cells(found).len();
                if i64::try_from(cells) != Ok(counter.size) {
                    let problem = format!("it has {cells} cells in the program, {} here", counter.size);
                    return Err(LoadError::info(&name, problem));
                }
                Ok(CounterInfo { id, name, counter: found })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Info {
            packet_in: packet_header(p4info, p4runtime::metadata::PACKET_IN)?,
            packet_out: packet_header(p4info, p4runtime::metadata::PACKET_OUT)?,
            p4info: p4info.clone(),
            tables,
            counters,
            table_places,
        })
    }

    pub(super) fn table(&self, id: u32) -> Option<&TableInfo> {
        self.table_places.get(&id).and_then(|place| self.tables.get(*place))
    }

    pub(super) fn counter(&self, id: u32) -> Option<&CounterInfo> {
        self.counters.iter().find(|counter| counter.id == id)
    }
}

/// Kinds of objects that this interpreter lacks.
fn refuse_others(info: &P4Info) -> Result<(), LoadError> {
    let others = [
        ("action profile", info.action_profiles.iter().map(|it| &it.preamble).collect::<Vec<_>>()),
        ("meter", info.meters.iter().map(|it| &it.preamble).collect()),
        ("direct meter", info.direct_meters.iter().map(|it| &it.preamble).collect()),
        ("value set", info.value_sets.iter().map(|it| &it.preamble).collect()),
        ("register", info.registers.iter().map(|it| &it.preamble).collect()),
        ("digest", info.digests.iter().map(|it| &it.preamble).collect()),
        ("extern", info.externs.iter().flat_map(|it| it.instances.iter().map(|it| &it.preamble)).collect()),
    ];
    for (kind, preambles) in others {
        if let Some(first) = preambles.first() {
            let name = label(first).1;
            return Err(LoadError::Unsupported { at: "P4Info".to_owned(), kind, name });
        }
    }
    Ok(())
}

fn bind_table(
    table: &v1::Table,
    p4info: &P4Info,
    by_id: &HashMap<u32, &v1::Action>,
    tables: &[Table],
    actions: &[Action],
) -> Result<TableInfo, LoadError> {
    let (id, name) = label(&table.preamble);
    let wrong = |problem: String| LoadError::info(&name, problem);
    let place = tables.iter().position(|known| known.name == name);
    let place = place.ok_or_else(|| wrong("the program has no such table".to_owned()))?;
    let known = &tables[place];
    if table.implementation_id != 0 {
        return Err(wrong("action profiles are not implemented".to_owned()));
    }
    if table.idle_timeout_behavior != 0 {
        return Err(wrong("idle timeouts are not implemented".to_owned()));
    }
    if known.key.len() != table.match_fields.len() {
        return Err(wrong(format!(
            "{} match fields, the program has {}",
            table.match_fields.len(),
            known.key.len()
        )));
    }
    let mut fields = Vec::new();
    for field in &table.match_fields {
        fields.push(bind_field(field, known).map_err(wrong)?);
    }
    fields.sort_by_key(|field| field.id);
    let mut own = Vec::new();
    for reference in &table.action_refs {
        let action = by_id.get(&reference.id);
        let action = action.ok_or_else(|| wrong(format!("action id {:#010x} is unknown", reference.id)))?;
        own.push(bind_action(action, reference.scope(), known, actions)?);
    }
    if own.len() != known.actions.len() {
        return Err(wrong(format!("{} actions, the program has {}", own.len(), known.actions.len())));
    }
    let default = known.default.as_ref().map(|call| actions[call.action].name.as_str());
    let constant = by_id.get(&table.const_default_action_id).map(|action| label(&action.preamble).1);
    if constant.is_some() && constant.as_deref() != default {
        return Err(wrong("its constant default action is another one in the program".to_owned()));
    }
    let direct = p4info.direct_counters.iter().any(|counter| counter.direct_table_id == id);
    if direct != known.with_counters {
        return Err(wrong("the program and this do not agree on its direct counter".to_owned()));
    }
    if table.is_const_table != known.entries.is_some() {
        return Err(wrong("the program and this do not agree on constant entries".to_owned()));
    }
    let subjects: Vec<Subject> = fields
        .iter()
        .map(|field| Subject {
            name: field.name.clone(),
            bits: field.bits,
            kind: match field.kind {
                FieldKind::Exact => SubjectKind::Exact,
                FieldKind::Lpm => SubjectKind::Lpm,
                FieldKind::Ternary | FieldKind::Optional => SubjectKind::Ternary,
                FieldKind::Range => SubjectKind::Range,
            },
        })
        .collect();
    Ok(TableInfo {
        id,
        table: place,
        size: usize::try_from(table.size).unwrap_or_default(),
        fields,
        actions: own,
        const_default: constant.is_some(),
        const_entries: table.is_const_table,
        has_counter: direct,
        restrictions: restrictions(&table.preamble, "entry_restriction", &subjects)?,
        name,
    })
}

fn bind_field(field: &v1::MatchField, table: &Table) -> Result<Field, String> {
    let name = &field.name;
    let place = table.key.iter().position(|known| known.name == *name);
    let place = place.ok_or_else(|| format!("the program's key has no field `{name}`"))?;
    let known = &table.key[place];
    if i64::from(field.bitwidth) != i64::from(known.bits) {
        return Err(format!("field `{name}` has {} bits, {} in the program", field.bitwidth, known.bits));
    }
    let match_type = match field.r#match {
        Some(Match::MatchType(number)) => MatchType::try_from(number).unwrap_or(MatchType::Unspecified),
        _ => MatchType::Unspecified,
    };
    let kind = match (match_type, known.kind) {
        (MatchType::Exact, Kind::Exact) => FieldKind::Exact,
        (MatchType::Lpm, Kind::Lpm) => FieldKind::Lpm,
        (MatchType::Ternary, Kind::Ternary) => FieldKind::Ternary,
        (MatchType::Range, Kind::Range) => FieldKind::Range,
        (MatchType::Optional, Kind::Ternary) => FieldKind::Optional,
        (kind, known) => return Err(format!("field `{name}` is {kind:?}, {known:?} in the program")),
    };
    Ok(Field { id: field.id, name: name.clone(), bits: known.bits, kind, place })
}

fn bind_action(
    action: &v1::Action,
    scope: Scope,
    table: &Table,
    actions: &[Action],
) -> Result<ActionInfo, LoadError> {
    let (id, name) = label(&action.preamble);
    let found = table.actions.iter().copied().find(|known| actions[*known].name == name);
    let found = found.ok_or_else(|| {
        LoadError::info(&name, format!("table `{}` of the program has no such action", table.name))
    })?;
    let known = &actions[found];
    let mut params = Vec::new();
    for param in &action.params {
        let bits = width(&name, &param.name, param.bitwidth)?;
        params.push(Param { id: param.id, name: param.name.clone(), bits });
    }
    let same = |(ours, theirs): (&Param, &(String, u32))| ours.name == theirs.0 && ours.bits == theirs.1;
    if params.len() != known.params.len() || !params.iter().zip(&known.params).all(same) {
        return Err(LoadError::info(&name, "its parameters are others in the program"));
    }
    let subjects: Vec<Subject> = params
        .iter()
        .map(|param| Subject { name: param.name.clone(), bits: param.bits, kind: SubjectKind::Exact })
        .collect();
    Ok(ActionInfo {
        id,
        action: found,
        params,
        for_entries: scope != Scope::DefaultOnly,
        for_default: scope != Scope::TableOnly,
        restrictions: restrictions(&action.preamble, "action_restriction", &subjects)?,
        name,
    })
}

fn packet_header(info: &P4Info, name: &str) -> Result<Option<Vec<Param>>, LoadError> {
    let header = info.controller_packet_metadata.iter().find(|header| label(&header.preamble).1 == name);
    let Some(header) = header else { return Ok(None) };
    let mut fields = Vec::new();
    for field in &header.metadata {
        let bits = width(name, &field.name, field.bitwidth)?;
        fields.push(Param { id: field.id, name: field.name.clone(), bits });
    }
    if fields.iter().map(|field| field.bits).sum::<u32>() % 8 != 0 {
        return Err(LoadError::info(name, "its fields are no whole number of bytes"));
    }
    Ok(Some(fields))
}

/// Restrictions among annotations.
fn restrictions(
    preamble: &Option<Preamble>,
    name: &str,
    subjects: &[Subject],
) -> Result<Vec<Restriction>, LoadError> {
    let Some(preamble) = preamble else { return Ok(Vec::new()) };
    let wrong = |problem: String| LoadError::Restriction { of: preamble.name.clone(), problem };
    if preamble.structured_annotations.iter().any(|annotation| annotation.name == name) {
        return Err(wrong(format!("@{name} must be an annotation with a string")));
    }
    let prefix = format!("@{name}(");
    let bodies = preamble.annotations.iter().filter_map(|text| text.trim().strip_prefix(prefix.as_str()));
    bodies
        .map(|body| {
            let body = body.strip_suffix(')').ok_or_else(|| wrong(format!("@{name} has no end")))?;
            let text = strings(body).ok_or_else(|| wrong(format!("@{name} has no string")))?;
            Restriction::parse(&text, subjects).map_err(wrong)
        })
        .collect()
}

/// String literals one after another, as one text.
fn strings(body: &str) -> Option<String> {
    let mut text = String::new();
    let mut inside = false;
    let mut any = false;
    let mut chars = body.chars();
    while let Some(char) = chars.next() {
        match (inside, char) {
            (false, '"') => (inside, any) = (true, true),
            (false, c) if c.is_whitespace() => {}
            (false, _) => return None,
            (true, '"') => inside = false,
            (true, '\\') => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            (true, other) => text.push(other),
        }
    }
    (any && !inside).then_some(text)
}

/// Arguments as the program's actions take them.
pub(super) fn arguments(params: &[u128]) -> Vec<Value> {
    params.iter().map(|value| Value::from(*value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_annotations_are_joined_and_unescaped() {
        assert_eq!(strings(r#""a\nb" "c\"d""#).as_deref(), Some("a\nbc\"d"));
        assert_eq!(strings("\"open"), None);
        assert_eq!(strings("word"), None);
        assert_eq!(strings(""), None);
    }

    #[test]
    fn a_text_that_is_no_p4info_is_refused() {
        let info =
            read_info("pkg_info { arch: \"v1model\" }\ntables { preamble { id: 5 } size: 7 }").unwrap();
        assert_eq!(info.tables[0].size, 7);
        assert!(matches!(read_info("table { }"), Err(LoadError::Text(_))));
    }
}
