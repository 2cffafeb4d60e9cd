//! Data that follow a schema. Copies share everything until one of them is changed, and then all but what changed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::natural;
use crate::path::Path;
use crate::schema::{Kind, Node, NodeId, Schema};

/// The values of a list entry's keys.
pub type Keys = Arc<[Box<str>]>;

/// Data of a schema: a configuration, state, what an RPC is given or answers, a notification.
///
/// Values are canonical. Containers that mean nothing by themselves are there exactly where they hold something,
/// lists where they have entries. Entries stand in the order of their keys, f2 before f10, unless the schema leaves
/// the order to the user. A copy costs one reference count.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) schema: Arc<Schema>,
    pub(crate) root: Arc<Fields>,
}

/// Something in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// A leaf's value, or one of a leaf-list.
    Leaf(&'a str),
    /// A leaf-list.
    Values(&'a Values),
    /// What is in a container or in a list's entry, or the whole tree.
    Fields(&'a Fields),
    /// A list.
    Entries(&'a Entries),
}

/// What a [`Fields`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Leaf(Arc<str>),
    Values(Arc<Values>),
    Fields(Arc<Fields>),
    Entries(Arc<Entries>),
}

/// What is in a container, in a list's entry (its keys too), or at the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// By node.
    slots: Vec<(NodeId, Slot)>,
}

/// The values of a leaf-list; never none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub(crate) Vec<Arc<str>>);

/// The entries of a list; never none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    entries: BTreeMap<Key, Arc<Fields>>,
    /// All keys, where the user gives the order; else none.
    order: Vec<Key>,
}

/// Keys in natural order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key(Keys);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        natural::compare_all(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Tree {}

impl Slot {
    pub(crate) fn data(&self) -> Data<'_> {
        match self {
            Self::Leaf(value) => Data::Leaf(value),
            Self::Values(values) => Data::Values(values),
            Self::Fields(fields) => Data::Fields(fields),
            Self::Entries(entries) => Data::Entries(entries),
        }
    }

    /// Both are one and the same allocation.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(a), Self::Leaf(b)) => Arc::ptr_eq(a, b),
            (Self::Values(a), Self::Values(b)) => Arc::ptr_eq(a, b),
            (Self::Fields(a), Self::Fields(b)) => Arc::ptr_eq(a, b),
            (Self::Entries(a), Self::Entries(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Fields {
    /// Something by its node.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<Data<'_>> {
        self.slot(node).map(Slot::data)
    }

    /// The value of a leaf.
    #[must_use]
    pub fn leaf(&self, node: NodeId) -> Option<&str> {
        match self.slot(node)? {
            Slot::Leaf(value) => Some(value),
            _ => None,
        }
    }

    /// What is in a container.
    #[must_use]
    pub fn container(&self, node: NodeId) -> Option<&Self> {
        match self.slot(node)? {
            Slot::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// A list.
    #[must_use]
    pub fn list(&self, node: NodeId) -> Option<&Entries> {
        match self.slot(node)? {
            Slot::Entries(entries) => Some(entries),
            _ => None,
        }
    }

    /// A leaf-list.
    #[must_use]
    pub fn leaf_list(&self, node: NodeId) -> Option<&Values> {
        match self.slot(node)? {
            Slot::Values(values) => Some(values),
            _ => None,
        }
    }

    /// Everything, in the order of the schema.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, Data<'_>)> {
        self.slots.iter().map(|(node, slot)| (*node, slot.data()))
    }

    /// How many nodes are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Nothing is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (NodeId, &Slot)> {
        self.slots.iter().map(|(node, slot)| (*node, slot))
    }

    pub(crate) fn slot(&self, node: NodeId) -> Option<&Slot> {
        let at = self.slots.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        self.slots.get(at).map(|(_, slot)| slot)
    }

    pub(crate) fn slot_mut(&mut self, node: NodeId) -> Option<&mut Slot> {
        let at = self.slots.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        self.slots.get_mut(at).map(|(_, slot)| slot)
    }

    pub(crate) fn put(&mut self, node: NodeId, slot: Slot) {
        match self.slots.binary_search_by_key(&node, |(id, _)| *id) {
            Ok(at) => self.slots[at].1 = slot,
            Err(at) => self.slots.insert(at, (node, slot)),
        }
    }

    pub(crate) fn take(&mut self, node: NodeId) -> Option<Slot> {
        let at = self.slots.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        Some(self.slots.remove(at).1)
    }

    /// The nodes that one of two has.
    pub(crate) fn nodes(&self, other: &Self) -> BTreeSet<NodeId> {
        self.slots.iter().chain(&other.slots).map(|(node, _)| *node).collect()
    }
}

impl Values {
    /// The values in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.0.iter().map(AsRef::as_ref)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None; not so in a tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value is one of them.
    #[must_use]
    pub fn contains(&self, value: &str) -> bool {
        self.position(value).is_some()
    }

    /// Puts values, without duplicates where they are configuration, where they belong.
    pub(crate) fn put(node: &Node, mut values: Vec<Arc<str>>, into: &mut Fields) {
        if node.config && !is_ordered_by_user(node) {
            values.sort_by(|a, b| natural::compare(a, b));
        }
        if !values.is_empty() {
            into.put(node.id, Slot::Values(Arc::new(Self(values))));
        }
    }

    pub(crate) fn position(&self, value: &str) -> Option<usize> {
        self.0.iter().position(|own| **own == *value)
    }

    /// Adds a value where its node wants it; `false` where it is there already.
    pub(crate) fn add(&mut self, node: &Node, value: Arc<str>) -> bool {
        let Kind::LeafList { ordered_by_user, .. } = node.kind else { return false };
        if !node.config {
            self.0.push(value);
            return true;
        }
        if ordered_by_user {
            if self.contains(&value) {
                return false;
            }
            self.0.push(value);
            return true;
        }
        match self.0.binary_search_by(|own| natural::compare(own, &value)) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, value);
                true
            }
        }
    }
}

impl Entries {
    /// The entries in their order, with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Keys, &Fields)> {
        self.iter_shared().map(|(keys, fields)| (keys, &**fields))
    }

    /// What is in an entry.
    #[must_use]
    pub fn get(&self, keys: &Keys) -> Option<&Fields> {
        self.get_shared(keys).map(|fields| &**fields)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// None; not so in a tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter_shared(&self) -> impl Iterator<Item = (&Keys, &Arc<Fields>)> {
        let rest = if self.order.is_empty() { usize::MAX } else { 0 };
        self.order
            .iter()
            .filter_map(|key| self.entries.get_key_value(key))
            .chain(self.entries.iter().take(rest))
            .map(|(key, fields)| (&key.0, fields))
    }

    pub(crate) fn get_shared(&self, keys: &Keys) -> Option<&Arc<Fields>> {
        self.entries.get(&Key(Arc::clone(keys)))
    }

    /// What is in an entry, which is made if it isn't there.
    pub(crate) fn entry(&mut self, list: &Node, keys: &Keys) -> &mut Arc<Fields> {
        let key = Key(Arc::clone(keys));
        if is_ordered_by_user(list) && !self.entries.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.entries.entry(key).or_insert_with(|| Arc::new(new_entry(list, keys)))
    }

    /// Puts an entry at the end or in the place of the one that is there.
    pub(crate) fn put(&mut self, list: &Node, keys: &Keys, fields: Arc<Fields>) {
        *self.entry(list, keys) = fields;
    }

    pub(crate) fn take(&mut self, keys: &Keys) -> Option<Arc<Fields>> {
        let key = Key(Arc::clone(keys));
        let taken = self.entries.remove(&key)?;
        self.order.retain(|own| own != &key);
        Some(taken)
    }

    /// Gives the order: these first, the rest after them as before.
    pub(crate) fn arrange<'a>(&mut self, first: impl IntoIterator<Item = &'a Keys>) {
        if self.order.is_empty() {
            return;
        }
        let mut placed = BTreeSet::new();
        let mut order = Vec::with_capacity(self.order.len());
        let first: Vec<Key> = first.into_iter().map(|keys| Key(Arc::clone(keys))).collect();
        for key in first.into_iter().chain(std::mem::take(&mut self.order)) {
            if self.entries.contains_key(&key) && placed.insert(key.clone()) {
                order.push(key);
            }
        }
        self.order = order;
    }
}

/// An entry with nothing but its keys.
pub(crate) fn new_entry(list: &Node, keys: &Keys) -> Fields {
    let mut fields = Fields::default();
    for (node, value) in list.keys().iter().zip(keys.iter()) {
        fields.put(*node, Slot::Leaf(Arc::from(&**value)));
    }
    fields
}

/// The order of a list's entries, or of a leaf-list's values, is the user's.
pub(crate) fn is_ordered_by_user(node: &Node) -> bool {
    // RFC 7950, 7.7.7: ignored for state.
    node.config
        && matches!(
            node.kind,
            Kind::List { ordered_by_user: true, .. } | Kind::LeafList { ordered_by_user: true, .. }
        )
}

/// It is there also with nothing in it.
pub(crate) fn stands_alone(node: &Node) -> bool {
    match node.kind {
        Kind::Container { presence } => presence,
        Kind::Rpc | Kind::Input | Kind::Output | Kind::Notification => true,
        _ => false,
    }
}

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        Self { schema, root: Arc::default() }
    }

    /// What it follows.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// What is at the top.
    #[must_use]
    pub fn root(&self) -> &Fields {
        &self.root
    }

    /// What stands at a path.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<Data<'_>> {
        let mut here = Data::Fields(&self.root);
        for step in &path.0 {
            let Data::Fields(fields) = here else { return None };
            here = match (fields.slot(step.node)?, &*step.keys) {
                (slot, []) => slot.data(),
                (Slot::Entries(entries), _) => Data::Fields(entries.get(&step.keys)?),
                (Slot::Values(values), [value]) => {
                    let at = values.position(value)?;
                    Data::Leaf(values.0.get(at)?)
                }
                _ => return None,
            };
        }
        Some(here)
    }

    /// The value of a leaf.
    #[must_use]
    pub fn value(&self, path: &Path) -> Option<&str> {
        match self.get(path)? {
            Data::Leaf(value) => Some(value),
            _ => None,
        }
    }

    /// Something stands there.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    /// The entries of a list in their order, with their keys; none where there is no list.
    pub fn entries<'a>(&'a self, list: &Path) -> impl Iterator<Item = (&'a Keys, &'a Fields)> + use<'a> {
        let entries = match self.get(list) {
            Some(Data::Entries(entries)) => Some(entries),
            _ => None,
        };
        entries.into_iter().flat_map(Entries::iter)
    }

    /// The values of a leaf or leaf-list, each once, in natural order. A step to a list without keys stands for all
    /// its entries: what a [leafref](crate::Type::Leafref) may be.
    #[must_use]
    pub fn values(&self, leaf: &Path) -> Vec<&str> {
        let mut here = vec![Data::Fields(&self.root)];
        for step in &leaf.0 {
            let mut next = Vec::new();
            for data in here {
                let Data::Fields(fields) = data else { continue };
                match fields.get(step.node) {
                    Some(Data::Entries(entries)) if step.keys.is_empty() => {
                        next.extend(entries.iter().map(|(_, fields)| Data::Fields(fields)));
                    }
                    Some(Data::Entries(entries)) => next.extend(entries.get(&step.keys).map(Data::Fields)),
                    Some(Data::Values(values)) => next.extend(values.iter().map(Data::Leaf)),
                    Some(data) => next.push(data),
                    None => {}
                }
            }
            here = next;
        }
        let mut values: Vec<&str> = here
            .into_iter()
            .filter_map(|data| match data {
                Data::Leaf(value) => Some(value),
                _ => None,
            })
            .collect();
        values.sort_by(|a, b| natural::compare(a, b));
        values.dedup();
        values
    }

    /// The values that a list's next key has in the entries that have the given values for the keys before it;
    /// each once, in natural order.
    #[must_use]
    pub fn keys(&self, list: &Path, given: &[Box<str>]) -> Vec<&str> {
        let mut values: Vec<&str> = self
            .entries(list)
            .filter(|(keys, _)| keys.starts_with(given))
            .filter_map(|(keys, _)| keys.get(given.len()).map(AsRef::as_ref))
            .collect();
        values.sort_by(|a, b| natural::compare(a, b));
        values.dedup();
        values
    }

    /// What is at a path and nothing else, at the same place; empty where nothing is there.
    #[must_use]
    pub fn only(&self, path: &Path) -> Self {
        let mut only = Self::new(Arc::clone(&self.schema));
        if let Some(root) = only_in(&self.schema, &self.root, &path.0) {
            only.root = Arc::new(root);
        }
        only
    }

    /// The configuration in it, without state.
    #[must_use]
    pub fn configuration(&self) -> Self {
        let stateful = self.schema.stateful();
        let root = configured(&self.schema, &stateful, &self.root);
        Self { schema: Arc::clone(&self.schema), root: Arc::new(root) }
    }

    /// The first node in it that is no configuration.
    #[must_use]
    pub fn state(&self) -> Option<Path> {
        let stateful = self.schema.stateful();
        first_state(&self.schema, &stateful, &self.root, &Path::default())
    }
}

fn only_in(schema: &Schema, fields: &Fields, steps: &[crate::path::Step]) -> Option<Fields> {
    let Some((step, rest)) = steps.split_first() else { return Some(fields.clone()) };
    let node = schema.node(step.node);
    let slot = match (fields.slot(step.node)?, &*step.keys) {
        (Slot::Fields(inner), _) => Slot::Fields(Arc::new(only_in(schema, inner, rest)?)),
        (Slot::Entries(entries), [_, ..]) => {
            let inner = entries.get_shared(&step.keys)?;
            let mut only = Entries::default();
            if rest.is_empty() {
                only.put(node, &step.keys, Arc::clone(inner));
            } else {
                let found = only_in(schema, inner, rest)?;
                let entry = Arc::make_mut(only.entry(node, &step.keys));
                for (id, slot) in found.slots {
                    entry.put(id, slot);
                }
            }
            Slot::Entries(Arc::new(only))
        }
        (Slot::Values(values), [value]) => {
            Slot::Values(Arc::new(Values(vec![values.0.get(values.position(value)?)?.clone()])))
        }
        (slot, []) if rest.is_empty() => slot.clone(),
        _ => return None,
    };
    Some(Fields { slots: vec![(step.node, slot)] })
}

fn configured(schema: &Schema, stateful: &[bool], fields: &Fields) -> Fields {
    let mut kept = Fields::default();
    for (id, slot) in fields.slots() {
        let node = schema.node(id);
        if !node.config {
            continue;
        }
        let slot = match slot {
            slot if !stateful[usize::from(id.0)] => slot.clone(),
            Slot::Fields(inner) => {
                let inner = configured(schema, stateful, inner);
                if inner.is_empty() && !stands_alone(node) {
                    continue;
                }
                Slot::Fields(Arc::new(inner))
            }
            Slot::Entries(entries) => {
                let mut kept = Entries::default();
                for (keys, inner) in entries.iter_shared() {
                    kept.put(node, keys, Arc::new(configured(schema, stateful, inner)));
                }
                Slot::Entries(Arc::new(kept))
            }
            slot => slot.clone(),
        };
        kept.put(id, slot);
    }
    kept
}

fn first_state(schema: &Schema, stateful: &[bool], fields: &Fields, at: &Path) -> Option<Path> {
    for (id, data) in fields.iter() {
        if !schema.node(id).config {
            return Some(at.child(id));
        }
        if !stateful[usize::from(id.0)] {
            continue;
        }
        let found = match data {
            Data::Fields(inner) => first_state(schema, stateful, inner, &at.child(id)),
            Data::Entries(entries) => entries.iter().find_map(|(keys, inner)| {
                first_state(schema, stateful, inner, &at.step(id, Arc::clone(keys)))
            }),
            Data::Leaf(_) | Data::Values(_) => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
