//! What the readers of JSON and XML have in common: where they are, and what was wrong on the way.

use std::fmt;
use std::sync::Arc;

use crate::data::{Data, Fields, Keys, Slot, Tree, stands_alone};
use crate::edit::within;
use crate::path::{Path, Step};
use crate::schema::{Kind, Node, NodeId, Schema};
use crate::words::quote;

/// Deepest nesting of a text, in levels; that of schemas is far less.
pub const DEEPEST: usize = 64;

/// A text is no longer read after so many faults.
pub const MOST_FAULTS: usize = 20;

/// What is wrong with a text, by the error-tags of RFC 6241, appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is no JSON or XML, or too deep.
    Syntax,
    /// A name that nothing has here (`unknown-element`).
    Unknown,
    /// A namespace that no module has (`unknown-namespace`).
    Namespace,
    /// An attribute that means nothing here (`unknown-attribute`).
    Attribute,
    /// A value that the type does not take (`invalid-value`).
    Value,
    /// A list's entry without one of its keys (`missing-element`).
    Missing,
    /// Something twice (`bad-element`).
    Twice,
    /// A list where an object belongs and such (`bad-element`).
    Shape,
}

/// Something wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFault {
    /// What kind of thing.
    pub kind: FaultKind,
    /// Where, as far as the schema knows it.
    pub path: Path,
    /// Where, in the engineer's words, with the name that isn't known; empty at the top.
    pub place: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.reason),
            place => write!(f, "{place}: {}", self.reason),
        }
    }
}

impl std::error::Error for ReadFault {}

impl ReadFault {
    pub(crate) fn syntax(reason: String) -> Self {
        Self { kind: FaultKind::Syntax, path: Path::default(), place: String::new(), reason }
    }
}

/// A reading under way.
pub(crate) struct Reading<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) at: Path,
    pub(crate) faults: Vec<ReadFault>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(schema: &'a Schema, at: Path) -> Self {
        Self { schema, at, faults: Vec::new() }
    }

    /// No more faults are wanted.
    pub(crate) fn is_over(&self) -> bool {
        self.faults.len() >= MOST_FAULTS
    }

    /// Something wrong where the reading is.
    pub(crate) fn fault(&mut self, kind: FaultKind, reason: impl Into<String>) {
        self.fault_of(kind, None, reason.into());
    }

    /// Something wrong with a name below.
    pub(crate) fn fault_at(&mut self, kind: FaultKind, name: &str, reason: impl Into<String>) {
        self.fault_of(kind, Some(name), reason.into());
    }

    fn fault_of(&mut self, kind: FaultKind, name: Option<&str>, reason: String) {
        if self.is_over() {
            return;
        }
        let mut place = self.at.words(self.schema);
        if let Some(name) = name {
            if !place.is_empty() {
                place.push(' ');
            }
            place.push_str(&quote(&crate::value::shown(name)));
        }
        self.faults.push(ReadFault { kind, path: self.at.clone(), place, reason });
    }

    /// Goes into a node, and out again.
    pub(crate) fn inside<T>(&mut self, node: NodeId, keys: Keys, read: impl FnOnce(&mut Self) -> T) -> T {
        self.at.0.push(Step { node, keys });
        let result = read(self);
        self.at.0.pop();
        result
    }

    /// A name that nothing has where the reading is.
    pub(crate) fn unknown(&mut self, name: &str) {
        let parent = self.at.node();
        let mut known: Vec<&str> = self.schema.below(parent).map(|node| node.name.as_str()).collect();
        known.sort_unstable();
        let reason = match (known.is_empty(), parent) {
            (true, _) => "is not known: nothing stands here".into(),
            (false, _) => format!("is not known; known here: {}", known.join(", ")),
        };
        self.fault_at(FaultKind::Unknown, name, reason);
    }

    /// Value of the key that the entry, in which the reading is, has at a node.
    pub(crate) fn key_of(&self, node: NodeId) -> Option<&str> {
        let entry = self.at.0.last()?;
        let at = self.schema.node(entry.node).keys().iter().position(|key| *key == node)?;
        entry.keys.get(at).map(AsRef::as_ref)
    }

    /// Puts a container where it holds something, or means something by itself.
    pub(crate) fn container(&self, node: &Node, fields: Fields, into: &mut Fields) {
        if !fields.is_empty() || stands_alone(node) {
            into.put(node.id, Slot::Fields(Arc::new(fields)));
        }
    }

    /// The result, unless something was wrong.
    pub(crate) fn end<T>(self, result: T) -> Result<T, Vec<ReadFault>> {
        if self.faults.is_empty() { Ok(result) } else { Err(self.faults) }
    }
}

/// Reads what is in the node at a path into a tree that has nothing else. Of lists, leaf-lists and leaves as a whole
/// `read` is given their name's place, the parent.
pub(crate) fn read_below<'a>(
    schema: &'a Arc<Schema>,
    at: &Path,
    read: impl FnOnce(&mut Reading<'a>, Option<&'a Node>, &mut Fields),
) -> Result<Tree, Vec<ReadFault>> {
    let mut tree = Tree::new(Arc::clone(schema));
    let refused = |reason: String| vec![ReadFault { reason, ..ReadFault::syntax(String::new()) }];
    let whole = at.0.last().filter(|step| {
        let kind = schema.nodes.get(usize::from(step.node.0)).map(|node| &node.kind);
        step.keys.is_empty()
            && matches!(kind, Some(Kind::List { .. } | Kind::LeafList { .. } | Kind::Leaf { .. }))
    });
    let inside = if whole.is_some() { at.parent().unwrap_or_default() } else { at.clone() };
    if !inside.is_empty() {
        // Checks the path and makes its entries.
        tree.set(&inside, None).map_err(|fault| refused(fault.to_string()))?;
    }
    let mut fields = Arc::make_mut(&mut tree.root);
    for step in &inside.0 {
        match within(schema, fields, step) {
            Some(inner) => fields = inner,
            None => return Err(refused(format!("{}: holds nothing", inside.words(schema)))),
        }
    }
    let mut reading = Reading::new(schema, inside.clone());
    read(&mut reading, whole.map(|step| schema.node(step.node)), fields);
    let emptied = fields.is_empty() && inside.node().is_some_and(|node| !stands_alone(schema.node(node)));
    if emptied && matches!(tree.get(&inside), Some(Data::Fields(_))) {
        tree.remove(&inside);
    }
    reading.end(tree)
}
