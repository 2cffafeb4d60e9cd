//! Ingress and egress: tables, conditions, calls of actions.

use std::collections::HashMap;

use super::action::{Action, Machine};
use super::counter::{Count, CounterArrays};
use super::error::LoadError;
use super::expression::{Bool, Scope, View};
use super::layout::{FieldId, HeaderId, Layout, Named};
use super::node::Node;
use super::packet::Packet;
use super::table::{Call, Pattern, Row, Rows};

/// Where control goes next; `None` is the pipeline's end.
type Next = Option<usize>;

/// How a key's field matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exact,
    Lpm,
    /// Optional fields are ternary here.
    Ternary,
    Range,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Field(FieldId),
    Valid(HeaderId),
}

/// A field of a table's key.
#[derive(Clone, Debug)]
pub(super) struct KeyField {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) bits: u32,
    source: Source,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) key: Vec<KeyField>,
    /// Places of its actions in the program.
    pub(super) actions: Vec<usize>,
    pub(super) default: Option<Call>,
    pub(super) with_counters: bool,
    /// Entries that the program comes with; the table can then not be written. BMv2's priorities, lowest first.
    pub(super) entries: Option<Vec<(Row, i64)>>,
    by_action: HashMap<usize, Next>,
    /// Hit, miss.
    by_result: Option<(Next, Next)>,
    /// After a miss without a default action.
    otherwise: Next,
}

#[derive(Debug)]
enum Control {
    Table(usize),
    Condition { expression: Bool, yes: Next, no: Next },
    Call { action: usize, next: Next },
}

/// A control block.
#[derive(Debug)]
pub(super) struct Pipeline {
    controls: Vec<Control>,
    first: Next,
}

/// A table's entries and default action at run time.
#[derive(Clone, Debug)]
pub(super) struct TableState {
    pub(super) rows: Rows,
    pub(super) default: Option<Call>,
}

/// Actions by number and by the id that the JSON gives them.
pub(super) struct ActionNames<'a> {
    pub(super) list: &'a [Action],
    pub(super) ids: &'a HashMap<usize, usize>,
}

impl ActionNames<'_> {
    fn by_id(&self, node: &Node<'_>) -> Result<usize, LoadError> {
        let id = node.number()?;
        self.ids.get(&id).copied().ok_or_else(|| node.unknown("action id", id.to_string()))
    }

    fn call(&self, node: &Node<'_>) -> Result<Call, LoadError> {
        let action = self.by_id(&node.get("action_id"))?;
        let data = node.get("action_data");
        let args = data.list()?.iter().map(Node::hex).collect::<Result<Vec<_>, _>>()?;
        if args.len() != self.list[action].params.len() {
            return data.wrong("as many values as the action has parameters");
        }
        Ok(Call { action, args })
    }
}

impl Pipeline {
    /// Loads the control block of a name; its tables join the program's.
    pub(super) fn load(
        root: &Node<'_>,
        name: &str,
        layout: &Layout,
        actions: &ActionNames<'_>,
        tables: &mut Vec<Table>,
    ) -> Result<Self, LoadError> {
        let pipelines = root.get("pipelines").list()?;
        let node = pipelines.iter().find(|node| node.get("name").text().is_ok_and(|found| found == name));
        let node = node.ok_or_else(|| root.get("pipelines").unknown("pipeline", name))?;
        node.get("action_profiles").none_of("action profile")?;
        let table_nodes = node.get("tables").list()?;
        let conditions = node.get("conditionals").list()?;
        let calls = node.get("action_calls").list()?;
        let mut numbers = HashMap::new();
        for (number, control) in table_nodes.iter().chain(&conditions).chain(&calls).enumerate() {
            if numbers.insert(control.get("name").text()?, number).is_some() {
                return control.get("name").wrong("a name of its own");
            }
        }
        let next = |node: &Node<'_>| match node.maybe_text()? {
            None => Ok(None),
            Some(name) => match numbers.get(name) {
                Some(number) => Ok(Some(*number)),
                None => Err(node.unknown("table, condition or call", name)),
            },
        };
        let mut controls = Vec::new();
        for table in &table_nodes {
            controls.push(Control::Table(tables.len()));
            tables.push(Table::load(table, layout, actions, &next)?);
        }
        let scope = Scope { layout, params: 0 };
        for condition in &conditions {
            controls.push(Control::Condition {
                expression: scope.bool(&condition.get("expression"))?,
                yes: next(&condition.get("true_next"))?,
                no: next(&condition.get("false_next"))?,
            });
        }
        for call in &calls {
            let action = actions.by_id(&call.get("action_id"))?;
            if !actions.list[action].params.is_empty() {
                return call.wrong("an action without parameters");
            }
            controls.push(Control::Call { action, next: next(&call.get("next_node"))? });
        }
        Ok(Pipeline { controls, first: next(&node.get("init_table"))? })
    }

    /// Runs the block. `exit` ends it before the next table, condition or call.
    pub(super) fn run(
        &self,
        tables: &[Table],
        actions: &[Action],
        states: &mut [TableState],
        machine: &mut Machine<'_>,
        key: &mut Vec<u128>,
    ) {
        let mut next = self.first;
        while let Some(control) = next.and_then(|number| self.controls.get(number)) {
            if machine.packet.exit {
                return;
            }
            next = match control {
                Control::Table(number) => tables[*number].apply(actions, &mut states[*number], machine, key),
                Control::Condition { expression, yes, no } => {
                    let view = View { layout: machine.layout, packet: machine.packet, params: &[] };
                    if view.bool(expression) { *yes } else { *no }
                }
                Control::Call { action, next } => {
                    actions[*action].run(machine, &[]);
                    *next
                }
            };
        }
    }
}

impl Table {
    fn load(
        node: &Node<'_>,
        layout: &Layout,
        actions: &ActionNames<'_>,
        next: &dyn Fn(&Node<'_>) -> Result<Next, LoadError>,
    ) -> Result<Self, LoadError> {
        let name = node.get("name").text()?.to_owned();
        let kind = node.get("type").text()?;
        if kind != "simple" {
            return node.get("type").unsupported("type of table", kind);
        }
        if !node.get("direct_meters").is_null() {
            let meter = node.get("direct_meters");
            return meter.unsupported("direct meter", meter.text().unwrap_or_default());
        }
        if node.get("support_timeout").flag_or(false)? {
            return node.get("support_timeout").unsupported("idle timeout of table", name);
        }
        let key = node.get("key").list()?;
        let key = key.iter().map(|field| KeyField::load(field, layout)).collect::<Result<Vec<_>, _>>()?;
        let ids = node.get("action_ids").list()?;
        let own = ids.iter().map(|id| actions.by_id(id)).collect::<Result<Vec<_>, _>>()?;
        let mut by_action = HashMap::new();
        let mut hit = None;
        let mut miss = None;
        for (label, target) in node.get("next_tables").entries()? {
            let target_next = next(&target)?;
            match label {
                "__HIT__" => hit = Some(target_next),
                "__MISS__" => miss = Some(target_next),
                _ => {
                    let of_name = own.iter().filter(|action| actions.list[**action].name == label);
                    by_action.extend(of_name.map(|action| (*action, target_next)));
                }
            }
        }
        let by_result = match (hit, miss) {
            (Some(hit), Some(miss)) => Some((hit, miss)),
            (None, None) => None,
            _ => return node.get("next_tables").wrong("both __HIT__ and __MISS__"),
        };
        if by_result.is_none() && own.iter().any(|action| !by_action.contains_key(action)) {
            return node.get("next_tables").wrong("a key for each action");
        }
        let default = node.get("default_entry");
        let default = if default.is_null() { None } else { Some(actions.call(&default)?) };
        if by_result.is_none() && default.as_ref().is_some_and(|call| !by_action.contains_key(&call.action)) {
            return node.get("default_entry").wrong("one of the table's actions");
        }
        let entries = node.get("entries");
        let entries = if entries.is_null() {
            None
        } else {
            let rows = entries.list()?;
            Some(rows.iter().map(|entry| const_row(entry, &key, actions)).collect::<Result<Vec<_>, _>>()?)
        };
        Ok(Table {
            name,
            key,
            actions: own,
            default,
            with_counters: node.get("with_counters").flag_or(false)?,
            entries,
            by_action,
            by_result,
            otherwise: next(&node.get("base_default_next"))?,
        })
    }

    /// Whether all fields are exact, so that an entry is found by its whole key.
    pub(super) fn all_exact(&self) -> bool {
        self.key.iter().all(|field| field.kind == Kind::Exact)
    }

    /// The state that the table begins with.
    pub(super) fn initial(&self) -> TableState {
        let mut rows = Rows::new(self.all_exact());
        for (row, _) in self.entries.iter().flatten() {
            rows.insert(row.clone());
        }
        TableState { rows, default: self.default.clone() }
    }

    fn apply(
        &self,
        actions: &[Action],
        state: &mut TableState,
        machine: &mut Machine<'_>,
        key: &mut Vec<u128>,
    ) -> Next {
        key.clear();
        key.extend(self.key.iter().map(|field| field.value(machine.layout, machine.packet)));
        // A table without a key has no entries: it always misses.
        let slot = if self.key.is_empty() { None } else { state.rows.lookup(key) };
        let found = slot.and_then(|slot| state.rows.row_mut(slot));
        let hit = found.is_some();
        let call = match found {
            Some(row) => {
                if self.with_counters {
                    row.count.add(machine.packet.ingress_length);
                }
                Some(&row.call)
            }
            None => state.default.as_ref(),
        };
        if let Some(call) = call {
            actions[call.action].run(machine, &call.args);
        }
        match (self.by_result, call) {
            (Some((on_hit, on_miss)), _) => {
                if hit {
                    on_hit
                } else {
                    on_miss
                }
            }
            (None, Some(call)) => self.by_action.get(&call.action).copied().flatten(),
            (None, None) => self.otherwise,
        }
    }
}

impl KeyField {
    fn load(node: &Node<'_>, layout: &Layout) -> Result<Self, LoadError> {
        let target = node.get("target");
        if !node.get("mask").is_null() {
            return node
                .get("mask")
                .unsupported("static mask of a key", node.get("name").text().unwrap_or(""));
        }
        let kind = match node.get("match_type").text()? {
            "exact" | "valid" => Kind::Exact,
            "lpm" => Kind::Lpm,
            "ternary" | "optional" => Kind::Ternary,
            "range" => Kind::Range,
            other => return node.get("match_type").unsupported("match type", other),
        };
        let (source, bits, own_name) = if target.is_text() {
            (Source::Valid(layout.named_header(&target)?), 1, target.text()?.to_owned())
        } else {
            match layout.named(&target)? {
                Named::Valid(header) => {
                    (Source::Valid(header), 1, format!("{}.$valid$", layout.header(header).name))
                }
                Named::Field(field) => {
                    let bits = layout.field(field).width;
                    if !(1..=128).contains(&bits) {
                        return target.unsupported("key field", format!("of {bits} bits"));
                    }
                    (Source::Field(field), bits, layout.field_name(field))
                }
            }
        };
        let name = node.get("name").maybe_text()?.map_or(own_name, str::to_owned);
        Ok(KeyField { name, kind, bits, source })
    }

    /// The value to look up: 0 for a field of an invalid header, as in BMv2.
    fn value(&self, layout: &Layout, packet: &Packet) -> u128 {
        match self.source {
            Source::Valid(header) => packet.is_valid(header).into(),
            Source::Field(field) if packet.is_valid(layout.field(field).header) => {
                packet.raw(field).low_bits(self.bits).low_u128()
            }
            Source::Field(_) => 0,
        }
    }

    fn all_ones(&self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }

    /// The mask of a prefix.
    pub(super) fn prefix_mask(&self, length: u32) -> u128 {
        let below = u128::MAX.checked_shr(128 - self.bits + length).unwrap_or(0);
        self.all_ones() & !below
    }
}

/// An entry of the program's own, and BMv2's priority of it.
fn const_row(node: &Node<'_>, key: &[KeyField], actions: &ActionNames<'_>) -> Result<(Row, i64), LoadError> {
    let fields = node.get("match_key").list()?;
    if fields.len() != key.len() {
        return node.get("match_key").wrong("as many fields as the table's key has");
    }
    let priority = node.get("priority");
    let priority = if priority.is_null() { 0 } else { priority.integer()? };
    let mut prefix = None;
    let mut patterns = Vec::new();
    for (place, (node, field)) in fields.iter().zip(key).enumerate() {
        let value = |key: &str| node.get(key).hex().map(|value| value.low_u128());
        let pattern = match field.kind {
            Kind::Exact if node.get("match_type").text()? == "valid" => {
                Pattern::Exact(node.get("key").flag()?.into())
            }
            Kind::Exact => Pattern::Exact(value("key")?),
            Kind::Lpm => {
                let length = u32::try_from(node.get("prefix_length").number()?).unwrap_or(u32::MAX);
                if length > field.bits {
                    return node.get("prefix_length").wrong("a length of at most the field's width");
                }
                prefix = Some(length);
                let mask = field.prefix_mask(length);
                Pattern::Masked { value: value("key")? & mask, mask }
            }
            Kind::Ternary => {
                let mask = value("mask")?;
                Pattern::Masked { value: value("key")? & mask, mask }
            }
            Kind::Range => Pattern::Range { low: value("start")?, high: value("end")? },
        };
        patterns.push((place, pattern));
    }
    let has_priority = key.iter().any(|field| matches!(field.kind, Kind::Ternary | Kind::Range));
    // BMv2: the lowest number wins.
    let rank = if has_priority { -priority } else { prefix.unwrap_or(0).into() };
    let call = actions.call(&node.get("action_entry"))?;
    Ok((Row { patterns, rank, call, count: Count::default() }, priority))
}

/// Everything of a program that packets and controllers change.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) tables: Vec<TableState>,
    pub(super) counters: CounterArrays,
}
