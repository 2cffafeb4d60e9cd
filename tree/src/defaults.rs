//! Values that nobody set (RFC 6243).

use std::sync::Arc;

use crate::data::{Entries, Fields, Slot, Tree, stands_alone};
use crate::schema::{Kind, Node, NodeId, Schema};

/// What becomes of defaults in what is written (RFC 6243, 3). Below a node whose being there depends on others
/// (`when`) no default is added: only a validation knows whether it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// What was set and nothing else.
    #[default]
    Explicit,
    /// With the defaults that are in use (`report-all`).
    All,
    /// The same; in XML with the mark of RFC 6243, 3.4 at what was not set (`report-all-tagged`).
    Tagged,
    /// Without what is set to its default.
    Trim,
}

/// What there is to write, with or without defaults.
pub(crate) struct Filled<'a> {
    pub(crate) schema: &'a Schema,
    /// By number: a default stands at the node or below it; empty where none is to be added.
    holds: Vec<bool>,
}

/// Something to write.
pub(crate) enum Shown<'a> {
    /// A leaf; the value is its default and not set.
    Leaf(&'a str, bool),
    /// A leaf-list; the values are its defaults and not set.
    Values(Vec<&'a str>, bool),
    /// A container; `None` where it has defaults alone.
    Fields(Option<&'a Fields>),
    /// A list.
    Entries(&'a Entries),
}

impl<'a> Filled<'a> {
    pub(crate) fn new(schema: &'a Schema, defaults: Defaults) -> Self {
        let holds = match defaults {
            Defaults::All | Defaults::Tagged => holding(schema),
            Defaults::Explicit | Defaults::Trim => Vec::new(),
        };
        Self { schema, holds }
    }

    /// What is below a node, keys first.
    pub(crate) fn below(
        &self,
        parent: Option<NodeId>,
        fields: Option<&'a Fields>,
    ) -> Vec<(NodeId, Shown<'a>)> {
        let keys = parent.map_or(&[][..], |parent| self.schema.node(parent).keys());
        let mut all = Vec::new();
        let given = |id: NodeId| fields.and_then(|fields| fields.slot(id)).map(|slot| (id, shown(slot)));
        all.extend(keys.iter().filter_map(|key| given(*key)));
        if self.holds.is_empty() {
            let rest = fields.into_iter().flat_map(Fields::slots);
            let rest = rest.filter(|(id, _)| !keys.contains(id));
            all.extend(rest.map(|(id, slot)| (id, shown(slot))));
        } else {
            let state = parent.is_some_and(|parent| !self.schema.node(parent).config);
            for node in self.schema.below(parent).filter(|node| !keys.contains(&node.id)) {
                let wanted = self.holds[usize::from(node.id.0)] && (node.config || state);
                let default = || if wanted { default(node) } else { None };
                all.extend(given(node.id).or_else(|| Some((node.id, default()?))));
            }
        }
        all
    }
}

fn shown(slot: &Slot) -> Shown<'_> {
    match slot {
        Slot::Leaf(value) => Shown::Leaf(value, false),
        Slot::Values(values) => Shown::Values(values.iter().collect(), false),
        Slot::Fields(fields) => Shown::Fields(Some(fields)),
        Slot::Entries(entries) => Shown::Entries(entries),
    }
}

fn default(node: &Node) -> Option<Shown<'_>> {
    match &node.kind {
        Kind::Leaf { default: Some(value), .. } => Some(Shown::Leaf(value, true)),
        Kind::LeafList { defaults, .. } if !defaults.is_empty() => {
            Some(Shown::Values(defaults.iter().map(String::as_str).collect(), true))
        }
        Kind::Container { presence: false } => Some(Shown::Fields(None)),
        _ => None,
    }
}

/// By number: a default that is in use wherever its parent is stands at the node or below it.
fn holding(schema: &Schema) -> Vec<bool> {
    let mut holds = vec![false; schema.nodes.len()];
    for node in schema.nodes.iter().rev().filter(|node| node.whens.is_empty()) {
        let at = usize::from(node.id.0);
        holds[at] = match &node.kind {
            Kind::Leaf { default, .. } => default.is_some(),
            Kind::LeafList { defaults, .. } => !defaults.is_empty(),
            Kind::Container { presence: false } => holds[at],
            _ => false,
        };
        if let Some(parent) = node.parent
            && holds[at]
        {
            holds[usize::from(parent.0)] = true;
        }
    }
    holds
}

impl Tree {
    /// Without the leaves that are set to their default.
    #[must_use]
    pub fn without_defaults(&self) -> Self {
        let root = trimmed(&self.schema, &self.root);
        Self { schema: Arc::clone(&self.schema), root: Arc::new(root) }
    }
}

fn trimmed(schema: &Schema, fields: &Fields) -> Fields {
    let mut kept = Fields::default();
    for (id, slot) in fields.slots() {
        let node = schema.node(id);
        let slot = match (&node.kind, slot) {
            (Kind::Leaf { default: Some(default), .. }, Slot::Leaf(value)) if **default == **value => {
                continue;
            }
            (Kind::LeafList { defaults, .. }, Slot::Values(values))
                if values.iter().eq(defaults.iter().map(String::as_str)) =>
            {
                continue;
            }
            (_, Slot::Fields(inner)) => {
                let inner = trimmed(schema, inner);
                if inner.is_empty() && !stands_alone(node) {
                    continue;
                }
                Slot::Fields(Arc::new(inner))
            }
            (_, Slot::Entries(entries)) => {
                let mut kept = Entries::default();
                for (keys, inner) in entries.iter_shared() {
                    let mut fields = trimmed(schema, inner);
                    // A key is no less a key for being what it would be anyway.
                    for key in node.keys() {
                        if let Some(slot) = inner.slot(*key) {
                            fields.put(*key, slot.clone());
                        }
                    }
                    kept.put(node, keys, Arc::new(fields));
                }
                Slot::Entries(Arc::new(kept))
            }
            _ => slot.clone(),
        };
        kept.put(id, slot);
    }
    kept
}
