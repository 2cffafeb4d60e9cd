//! A tree into XML: what a filter lets through, with the defaults that the client wants (RFC 6243).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tree::{Data, Fields, Keys, Kind, Node, NodeId, Schema, Tree, Type};

use crate::filter::Siblings;
use crate::name::DEFAULT_ATTRIBUTE;
use crate::writer::Writer;

/// What is told of values that are the default (RFC 6243, 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Defaults {
    /// What someone set.
    #[default]
    Explicit,
    /// All values.
    ReportAll,
    /// All values, and which of them are the default.
    ReportAllTagged,
    /// What is not the default.
    Trim,
}

impl Defaults {
    fn all(self) -> bool {
        matches!(self, Self::ReportAll | Self::ReportAllTagged)
    }
}

/// Writes the elements of a tree.
pub(crate) fn write(out: &mut Writer, tree: &Tree, filter: Option<&Siblings>, defaults: Defaults) {
    let schema = tree.schema();
    let implied = if defaults.all() { implied(schema) } else { Arc::default() };
    let mut retrieval = Retrieval { schema, defaults, implied, out };
    let sets: Option<Vec<&Siblings>> = filter.map(|filter| vec![filter]);
    retrieval.fields(None, tree.root(), sets.as_deref());
}

/// Writes what is below a node of a tree: an RPC's output.
pub(crate) fn write_below(out: &mut Writer, tree: &Tree, path: &tree::Path) {
    let schema = tree.schema();
    let Some(Data::Fields(fields)) = tree.get(path) else { return };
    let mut retrieval = Retrieval { schema, defaults: Defaults::Explicit, implied: Arc::default(), out };
    let nodes: Vec<(NodeId, Item<'_>)> = fields.iter().map(|(id, data)| (id, Item::Data(data))).collect();
    for (id, item) in nodes {
        retrieval.item(None, schema.node(id), item, None);
    }
}

/// By number: the container is there only by defaults within it, where it isn't there by itself.
type Implied = Arc<Vec<bool>>;

/// As it takes a walk of the schema; by the schema's place, which lives as long as it does.
fn implied(schema: &Arc<Schema>) -> Implied {
    static KNOWN: Mutex<Option<(Arc<Schema>, Implied)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, implied)) = &*known
        && Arc::ptr_eq(of, schema)
    {
        return Arc::clone(implied);
    }
    let mut implied = vec![false; schema.nodes.len()];
    for node in schema.nodes.iter().rev() {
        let own = implied.get(usize::from(node.id.0)).copied().unwrap_or_default();
        let by_itself = match &node.kind {
            Kind::Leaf { default, .. } => default.is_some(),
            Kind::LeafList { defaults, .. } => !defaults.is_empty(),
            Kind::Container { presence } => own && !presence,
            _ => false,
        };
        let here = by_itself && node.config && node.whens.is_empty();
        for (at, set) in [(Some(node.id), here), (node.parent.filter(|_| here), true)] {
            if let Some(slot) = at.and_then(|id| implied.get_mut(usize::from(id.0))) {
                *slot = set;
            }
        }
    }
    let implied = Arc::new(implied);
    *known = Some((Arc::clone(schema), Arc::clone(&implied)));
    implied
}

/// Something to be written.
#[derive(Clone, Copy)]
enum Item<'tree> {
    Data(Data<'tree>),
    /// Not there: its default, or those within it.
    Default,
}

struct Retrieval<'a> {
    schema: &'a Schema,
    defaults: Defaults,
    implied: Implied,
    out: &'a mut Writer,
}

impl Retrieval<'_> {
    /// Writes what is in a container, in an entry or at the top. Whether something of it was selected.
    fn fields(&mut self, parent: Option<&Node>, fields: &Fields, sets: Option<&[&Siblings]>) -> bool {
        let active: Option<Vec<&Siblings>> = match sets {
            None => None,
            Some(sets) => {
                let holding = |set: &&&Siblings| set.hold(|node, value| self.has(fields, node, value));
                let active: Vec<&Siblings> = sets.iter().filter(holding).copied().collect();
                if active.is_empty() {
                    return false;
                }
                if active.iter().any(|set| set.select_all()) { None } else { Some(active) }
            }
        };
        let keys = parent.map_or(&[][..], Node::keys);
        let mut any = active.is_none();
        // An entry's keys come first (RFC 7950, 7.8.5) and always, so that it can be told from the others.
        for key in keys {
            if let Some(value) = fields.leaf(*key) {
                let asked = |set: &&Siblings| {
                    set.compares(*key, value) || set.pick(*key).is_some_and(|pick| pick.whole)
                };
                any |= active.as_ref().is_some_and(|active| active.iter().any(asked));
                self.leaf(parent, self.schema.node(*key), value, false);
            }
        }
        for (id, item) in self.items(parent, fields) {
            if !keys.contains(&id) {
                any |= self.item(parent, self.schema.node(id), item, active.as_deref());
            }
        }
        any
    }

    /// What is there, and where they are wanted the defaults of what is not, in the order of the schema.
    fn items<'tree>(&self, parent: Option<&Node>, fields: &'tree Fields) -> Vec<(NodeId, Item<'tree>)> {
        let there = fields.iter().map(|(id, data)| (id, Item::Data(data)));
        if !self.defaults.all() {
            return there.collect();
        }
        let absent = self
            .schema
            .below(parent.map(|parent| parent.id))
            .filter(|node| self.is_implied(node.id) && fields.get(node.id).is_none())
            .map(|node| (node.id, Item::Default));
        let mut items: Vec<_> = there.chain(absent).collect();
        items.sort_by_key(|(id, _)| *id);
        items
    }

    fn is_implied(&self, node: NodeId) -> bool {
        self.implied.get(usize::from(node.0)).copied().unwrap_or_default()
    }

    /// Whether a leaf has a value, its default counted where defaults are told.
    fn has(&self, fields: &Fields, node: NodeId, value: &str) -> bool {
        match fields.get(node) {
            Some(Data::Leaf(own)) => own == value && !self.trimmed(self.schema.node(node), own),
            Some(Data::Values(values)) => values.contains(value),
            Some(_) => false,
            None if !self.is_implied(node) => false,
            None => match &self.schema.node(node).kind {
                Kind::Leaf { default: Some(default), .. } => default == value,
                Kind::LeafList { defaults, .. } => defaults.iter().any(|default| default == value),
                _ => false,
            },
        }
    }

    fn trimmed(&self, node: &Node, value: &str) -> bool {
        self.defaults == Defaults::Trim
            && node.config
            && matches!(&node.kind, Kind::Leaf { default: Some(default), .. } if default == value)
    }

    /// Writes a node where the sets select it, or where there are none. Whether they do.
    fn item(
        &mut self,
        parent: Option<&Node>,
        node: &Node,
        item: Item<'_>,
        sets: Option<&[&Siblings]>,
    ) -> bool {
        let picks = || sets.unwrap_or_default().iter().filter_map(|set| set.pick(node.id));
        let whole = sets.is_none() || picks().any(|pick| pick.whole);
        let compared =
            |value: &str| whole || sets.unwrap_or_default().iter().any(|set| set.compares(node.id, value));
        match item {
            Item::Data(Data::Leaf(value)) => {
                let wanted = compared(value) && !self.trimmed(node, value);
                if wanted {
                    self.leaf(parent, node, value, self.is_default(node, value));
                }
                wanted
            }
            Item::Data(Data::Values(values)) => {
                let Kind::LeafList { defaults, .. } = &node.kind else { return false };
                let default = !defaults.is_empty() && node.config && values.iter().eq(defaults.iter());
                if default && self.defaults == Defaults::Trim {
                    return false;
                }
                let wanted: Vec<&str> = values.iter().filter(|value| compared(value)).collect();
                for value in &wanted {
                    self.leaf(parent, node, value, default);
                }
                !wanted.is_empty()
            }
            Item::Default => match &node.kind {
                Kind::Leaf { default: Some(default), .. } if compared(default) => {
                    self.leaf(parent, node, default, true);
                    true
                }
                Kind::LeafList { defaults, .. } => {
                    let wanted: Vec<&String> = defaults.iter().filter(|value| compared(value)).collect();
                    for value in &wanted {
                        self.leaf(parent, node, value, true);
                    }
                    !wanted.is_empty()
                }
                Kind::Container { .. } => {
                    let inner: Vec<&Siblings> = picks().flat_map(|pick| &pick.searches).collect();
                    self.inner(parent, node, &Fields::default(), if whole { None } else { Some(&inner) })
                }
                _ => false,
            },
            Item::Data(Data::Fields(fields)) => {
                let inner: Vec<&Siblings> = picks().flat_map(|pick| &pick.searches).collect();
                self.inner(parent, node, fields, if whole { None } else { Some(&inner) })
            }
            Item::Data(Data::Entries(entries)) if whole => {
                for (_, fields) in entries.iter() {
                    self.inner(parent, node, fields, None);
                }
                true
            }
            Item::Data(Data::Entries(entries)) => {
                let searches: Vec<&Siblings> = picks().flat_map(|pick| &pick.searches).collect();
                let named: Vec<&HashMap<Keys, Vec<Siblings>>> = picks().map(|pick| &pick.by_keys).collect();
                let count: usize = named.iter().map(|named| named.len()).sum();
                let mut any = false;
                if searches.is_empty() && count <= 1 {
                    for (keys, sets) in named.iter().flat_map(|named| named.iter()) {
                        if let Some(fields) = entries.get(keys) {
                            let sets: Vec<&Siblings> = sets.iter().collect();
                            any |= self.inner(parent, node, fields, Some(&sets));
                        }
                    }
                    return any;
                }
                if searches.is_empty() && count == 0 {
                    return false;
                }
                for (keys, fields) in entries.iter() {
                    let of_it = named.iter().filter_map(|named| named.get(keys)).flatten();
                    let sets: Vec<&Siblings> = searches.iter().copied().chain(of_it).collect();
                    if !sets.is_empty() {
                        any |= self.inner(parent, node, fields, Some(&sets));
                    }
                }
                any
            }
        }
    }

    /// Writes a container or an entry, unless nothing in it is selected.
    fn inner(
        &mut self,
        parent: Option<&Node>,
        node: &Node,
        fields: &Fields,
        sets: Option<&[&Siblings]>,
    ) -> bool {
        if sets.is_some_and(<[_]>::is_empty) {
            return false;
        }
        let before = self.out.len();
        self.begin(parent, node);
        self.out.raw(">");
        let within = self.out.len();
        let any = self.fields(Some(node), fields, sets);
        if !any {
            self.out.truncate(before);
        } else if self.out.len() == within {
            let implied = matches!(node.kind, Kind::Container { presence: false });
            self.out.truncate(if implied { before } else { within - 1 });
            if !implied {
                self.out.raw("/>");
            }
        } else {
            self.out.close(&node.name);
        }
        any
    }

    /// A value that is there and is the default.
    fn is_default(&self, node: &Node, value: &str) -> bool {
        node.config && matches!(&node.kind, Kind::Leaf { default: Some(default), .. } if default == value)
    }

    fn leaf(&mut self, parent: Option<&Node>, node: &Node, value: &str, default: bool) {
        self.begin(parent, node);
        if default && self.defaults == Defaults::ReportAllTagged {
            self.out.attribute("xmlns:wd", DEFAULT_ATTRIBUTE);
            self.out.attribute("wd:default", "true");
        }
        let mut value = value;
        if let (Some(Type::Identity(_)), Some((module, name))) = (node.ty(), value.split_once(':')) {
            if module == self.schema.module_of(node).name {
                value = name;
            } else if let Some(of) = self.schema.modules.iter().find(|known| known.name == module) {
                self.out.attribute(&format!("xmlns:{module}"), &of.namespace);
            }
        }
        if value.is_empty() {
            self.out.raw("/>");
            return;
        }
        self.out.raw(">");
        self.out.text(value);
        self.out.close(&node.name);
    }

    /// The begin of an element, with its namespace where that is not its parent's.
    fn begin(&mut self, parent: Option<&Node>, node: &Node) {
        self.out.begin(&node.name);
        if parent.is_none_or(|parent| parent.module != node.module) {
            let namespace = &self.schema.module_of(node).namespace;
            self.out.attribute("xmlns", namespace);
        }
    }
}
