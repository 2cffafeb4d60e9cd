//! A program: p4c's output for BMv2, loaded.

use std::collections::HashMap;

use p4runtime::proto::p4::config::v1::P4Info;

use super::action::{Action, Names};
use super::calculation::{Calculations, Checksum};
use super::counter::CounterArrays;
use super::error::LoadError;
use super::info::Info;
use super::layout::{FieldId, HeaderId, Layout};
use super::node::Node;
use super::parser::Parser;
use super::pipeline::{ActionNames, Pipeline, State, Table};

/// Fields that the target itself reads and writes; a program need not have all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intrinsic {
    pub(super) ingress_port: Option<FieldId>,
    pub(super) packet_length: Option<FieldId>,
    pub(super) instance_type: Option<FieldId>,
    pub(super) egress_spec: Option<FieldId>,
    pub(super) egress_port: Option<FieldId>,
    pub(super) parser_error: Option<FieldId>,
    pub(super) checksum_error: Option<FieldId>,
    pub(super) mcast_grp: Option<FieldId>,
    pub(super) egress_rid: Option<FieldId>,
    pub(super) ingress_timestamp: Option<FieldId>,
    pub(super) egress_timestamp: Option<FieldId>,
    pub(super) enq_timestamp: Option<FieldId>,
}

impl Intrinsic {
    fn of(layout: &Layout) -> Self {
        let standard = |name| layout.intrinsic("standard_metadata", name);
        let intrinsic = |name| layout.intrinsic("intrinsic_metadata", name);
        Intrinsic {
            ingress_port: standard("ingress_port"),
            packet_length: standard("packet_length"),
            instance_type: standard("instance_type"),
            egress_spec: standard("egress_spec"),
            egress_port: standard("egress_port"),
            parser_error: standard("parser_error"),
            checksum_error: standard("checksum_error"),
            mcast_grp: intrinsic("mcast_grp"),
            egress_rid: intrinsic("egress_rid"),
            ingress_timestamp: intrinsic("ingress_global_timestamp"),
            egress_timestamp: intrinsic("egress_global_timestamp"),
            enq_timestamp: layout.intrinsic("queueing_metadata", "enq_timestamp"),
        }
    }
}

/// A program that is ready to run.
#[derive(Debug)]
pub struct Program {
    pub(super) layout: Layout,
    pub(super) calculations: Calculations,
    counters: CounterArrays,
    pub(super) checksums: Vec<Checksum>,
    pub(super) actions: Vec<Action>,
    pub(super) tables: Vec<Table>,
    pub(super) parser: Parser,
    pub(super) ingress: Pipeline,
    pub(super) egress: Pipeline,
    pub(super) emitted: Vec<HeaderId>,
    pub(super) deparser_actions: Vec<Action>,
    /// Fields that a clone keeps, by the list's id.
    pub(super) field_lists: HashMap<usize, Vec<FieldId>>,
    pub(super) intrinsic: Intrinsic,
    pub(super) info: Info,
}

impl Program {
    /// Loads p4c's JSON for BMv2 (v1model), and what controllers may address in it.
    ///
    /// # Errors
    /// What is malformed, unknown, contradictory, or not implemented here, by name and place.
    pub fn load(json: &str, p4info: &P4Info) -> Result<Self, LoadError> {
        let json: serde_json::Value = serde_json::from_str(json)?;
        let root = Node::root(&json);
        for (key, kind) in [
            ("meter_arrays", "meter"),
            ("register_arrays", "register"),
            ("learn_lists", "digest"),
            ("extern_instances", "extern instance"),
            ("parse_vsets", "parser value set"),
        ] {
            root.get(key).none_of(kind)?;
        }
        let layout = Layout::load(&root)?;
        let calculations = Calculations::load(&root, &layout)?;
        let counters = CounterArrays::load(&root)?;
        let names = Names { layout: &layout, calculations: &calculations, counters: &counters };
        let parser = Parser::load(&root, names)?;
        let mut actions = Vec::new();
        let mut ids = HashMap::new();
        for node in root.get("actions").list()? {
            ids.insert(node.get("id").number()?, actions.len());
            actions.push(Action::load(&node, names)?);
        }
        let mut tables = Vec::new();
        let action_names = ActionNames { list: &actions, ids: &ids };
        let ingress = Pipeline::load(&root, "ingress", &layout, &action_names, &mut tables)?;
        let egress = Pipeline::load(&root, "egress", &layout, &action_names, &mut tables)?;
        let checksums = Checksum::load_all(&root, &layout, &calculations)?;
        let (emitted, deparser_actions) = deparser(&root, names)?;
        let field_lists = field_lists(&root, &layout)?;
        let info = Info::bind(p4info, &tables, &actions, &counters)?;
        Ok(Program {
            intrinsic: Intrinsic::of(&layout),
            layout,
            calculations,
            counters,
            checksums,
            actions,
            tables,
            parser,
            ingress,
            egress,
            emitted,
            deparser_actions,
            field_lists,
            info,
        })
    }

    /// Tables and counters as they begin.
    pub(super) fn initial(&self) -> State {
        State { tables: self.tables.iter().map(Table::initial).collect(), counters: self.counters.clone() }
    }
}

fn deparser(root: &Node<'_>, names: Names<'_>) -> Result<(Vec<HeaderId>, Vec<Action>), LoadError> {
    let [node] = root.get("deparsers").exactly("one deparser")?;
    let order = node.get("order").list()?;
    let order =
        order.iter().map(|header| names.layout.named_header(header)).collect::<Result<Vec<_>, _>>()?;
    let primitives = node.get("primitives").list()?;
    let primitives = primitives
        .iter()
        .map(|primitive| Action::single(primitive, names, "the deparser"))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((order, primitives))
}

fn field_lists(root: &Node<'_>, layout: &Layout) -> Result<HashMap<usize, Vec<FieldId>>, LoadError> {
    let mut lists = HashMap::new();
    for node in root.get("field_lists").list()? {
        let mut fields = Vec::new();
        for element in node.get("elements").list()? {
            match element.get("type").text()? {
                "field" => fields.push(layout.named_field(&element.get("value"))?),
                // Constants have nothing to keep.
                "hexstr" => {}
                other => return element.unsupported("element of a field list", other),
            }
        }
        lists.insert(node.get("id").number()?, fields);
    }
    Ok(lists)
}
