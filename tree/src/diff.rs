//! What is other between two trees. Parts that they share are not looked at.

use std::sync::Arc;

use crate::data::{Entries, Fields, Keys, Slot, Tree, Values, is_ordered_by_user, stands_alone};
use crate::edit::{Edit, EditFault};
use crate::path::Path;
use crate::schema::{Node, NodeId, Schema};
use crate::set_lines::Writer;

/// Something that is other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where. An entry that comes or goes is a change, and each leaf in it but its keys is one.
    pub path: Path,
    /// As it was.
    pub before: Option<Content>,
    /// As it is.
    pub after: Option<Content>,
}

/// What a [`Change`] tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An entry, a container that means something by itself, or a leaf-list's value: it is there.
    There,
    /// A leaf's value.
    Value(String),
    /// The order of a list, or of a leaf-list, whose order is the user's.
    Order(Vec<Keys>),
}

impl Change {
    /// Makes the change in a tree.
    ///
    /// # Errors
    /// As [`Tree::set`].
    pub fn apply(&self, tree: &mut Tree) -> Result<(), EditFault> {
        match &self.after {
            None => {
                tree.remove(&self.path);
            }
            Some(Content::There) => {
                tree.set(&self.path, None)?;
            }
            Some(Content::Value(value)) => {
                tree.set(&self.path, Some(value))?;
            }
            Some(Content::Order(order)) => tree.arrange(&self.path, order),
        }
        Ok(())
    }

    /// The edit that makes it; `None` for an order, which takes more than one.
    #[must_use]
    pub fn edit(&self) -> Option<Edit> {
        match &self.after {
            None => Some(Edit::Delete(self.path.clone())),
            Some(Content::There) => Some(Edit::Set(self.path.clone(), None)),
            Some(Content::Value(value)) => Some(Edit::Set(self.path.clone(), Some(value.clone()))),
            Some(Content::Order(_)) => None,
        }
    }
}

/// What makes one tree the other: applied in their order the changes do so.
#[must_use]
pub fn diff(before: &Tree, after: &Tree) -> Vec<Change> {
    let mut diff = Diff { schema: &after.schema, at: Path::default(), changes: Vec::new() };
    if !Arc::ptr_eq(&before.root, &after.root) {
        diff.fields(&before.root, &after.root);
    }
    diff.changes
}

struct Diff<'a> {
    schema: &'a Schema,
    at: Path,
    changes: Vec<Change>,
}

impl Diff<'_> {
    fn change(&mut self, path: Path, before: Option<Content>, after: Option<Content>) {
        self.changes.push(Change { path, before, after });
    }

    fn fields(&mut self, before: &Fields, after: &Fields) {
        let keys = self.at.node().map_or(&[][..], |node| self.schema.node(node).keys());
        for id in before.nodes(after) {
            if !keys.contains(&id) {
                self.slots(id, before.slot(id), after.slot(id));
            }
        }
    }

    fn slots(&mut self, id: NodeId, before: Option<&Slot>, after: Option<&Slot>) {
        let node = self.schema.node(id);
        match (before, after) {
            (Some(before), Some(after)) if before.is_same(after) => {}
            (Some(Slot::Leaf(before)), Some(Slot::Leaf(after))) if before == after => {}
            (Some(Slot::Leaf(_)), _) | (_, Some(Slot::Leaf(_))) => {
                let content = |slot: Option<&Slot>| match slot {
                    Some(Slot::Leaf(value)) => Some(Content::Value(value.to_string())),
                    _ => None,
                };
                self.change(self.at.child(id), content(before), content(after));
            }
            (Some(Slot::Values(_)), _) | (_, Some(Slot::Values(_))) => {
                let values = |slot: Option<&Slot>| match slot {
                    Some(Slot::Values(values)) => Arc::clone(values),
                    _ => Arc::default(),
                };
                self.values(node, &values(before), &values(after));
            }
            (Some(Slot::Entries(_)), _) | (_, Some(Slot::Entries(_))) => {
                let entries = |slot: Option<&Slot>| match slot {
                    Some(Slot::Entries(entries)) => Arc::clone(entries),
                    _ => Arc::default(),
                };
                self.entries(node, &entries(before), &entries(after));
            }
            (Some(Slot::Fields(before)), Some(Slot::Fields(after))) => {
                self.inside(id, Arc::default(), before, after);
            }
            (Some(Slot::Fields(before)), None) => {
                self.alone(node, true);
                self.inside(id, Arc::default(), before, &Fields::default());
            }
            (None, Some(Slot::Fields(after))) => {
                self.alone(node, false);
                self.inside(id, Arc::default(), &Fields::default(), after);
            }
            (None, None) => {}
        }
    }

    fn inside(&mut self, id: NodeId, keys: Keys, before: &Fields, after: &Fields) {
        self.at = self.at.step(id, keys);
        self.fields(before, after);
        self.at.0.pop();
    }

    /// A container that means something by itself goes or comes.
    fn alone(&mut self, node: &Node, goes: bool) {
        if stands_alone(node) {
            let (before, after) =
                if goes { (Some(Content::There), None) } else { (None, Some(Content::There)) };
            self.change(self.at.child(node.id), before, after);
        }
    }

    fn values(&mut self, node: &Node, before: &Values, after: &Values) {
        let path = |value: &str| self.at.value(node.id, value);
        if !node.config {
            // State may have a value twice: all goes and comes.
            if before != after {
                let gone = before.iter().map(|value| (path(value), Some(Content::There), None));
                let come = after.iter().map(|value| (path(value), None, Some(Content::There)));
                let changes: Vec<_> = gone.chain(come).collect();
                changes.into_iter().for_each(|(path, before, after)| self.change(path, before, after));
            }
            return;
        }
        let known: std::collections::HashSet<&str> = before.iter().collect();
        let kept: std::collections::HashSet<&str> = after.iter().collect();
        let gone = before.iter().filter(|value| !kept.contains(value));
        let come = after.iter().filter(|value| !known.contains(value));
        let changes: Vec<_> = gone
            .map(|value| (path(value), Some(Content::There), None))
            .chain(come.clone().map(|value| (path(value), None, Some(Content::There))))
            .collect();
        changes.into_iter().for_each(|(path, before, after)| self.change(path, before, after));
        let keys = |value: &str| -> Keys { Arc::new([value.into()]) };
        let so_far = before.iter().filter(|value| kept.contains(value)).chain(come);
        if is_ordered_by_user(node) && !so_far.eq(after.iter()) {
            let order = |values: &Values| Some(Content::Order(values.iter().map(keys).collect()));
            self.change(self.at.child(node.id), order(before), order(after));
        }
    }

    fn entries(&mut self, node: &Node, before: &Entries, after: &Entries) {
        let nothing = Fields::default();
        for (keys, fields) in before.iter() {
            if after.get(keys).is_none() {
                let entry = self.at.step(node.id, Arc::clone(keys));
                self.change(entry, Some(Content::There), None);
                self.inside(node.id, Arc::clone(keys), fields, &nothing);
            }
        }
        for (keys, fields) in after.iter_shared() {
            match before.get_shared(keys) {
                Some(own) if Arc::ptr_eq(own, fields) => {}
                Some(own) => self.inside(node.id, Arc::clone(keys), own, fields),
                None => {
                    let entry = self.at.step(node.id, Arc::clone(keys));
                    self.change(entry, None, Some(Content::There));
                    self.inside(node.id, Arc::clone(keys), &nothing, fields);
                }
            }
        }
        if is_ordered_by_user(node) {
            let kept = before.iter().map(|(keys, _)| keys).filter(|keys| after.get(keys).is_some());
            let come = after.iter().map(|(keys, _)| keys).filter(|keys| before.get(keys).is_none());
            if !kept.chain(come).eq(after.iter().map(|(keys, _)| keys)) {
                let order = |entries: &Entries| {
                    Some(Content::Order(entries.iter().map(|(keys, _)| Arc::clone(keys)).collect()))
                };
                self.change(self.at.child(node.id), order(before), order(after));
            }
        }
    }
}

/// The differences as lines: `- set ...` for what is gone, `+ set ...` for what has come, and `~ PATH: order ...`
/// where the user's order is another.
#[must_use]
pub fn compare_lines(before: &Tree, after: &Tree) -> Vec<String> {
    let mut lines = Lines { lines: Vec::new() };
    let changes = diff(before, after);
    let mut changes = changes.iter().peekable();
    while let Some(change) = changes.next() {
        match (&change.before, &change.after) {
            (_, Some(Content::Order(order))) => lines.order(after, &change.path, order),
            (Some(Content::There), None) => {
                // What goes with it is told by its own lines.
                while changes.next_if(|next| is_inside(&next.path, &change.path)).is_some() {}
                lines.all("- set ", before, &change.path);
            }
            (None, Some(Content::There)) => {
                while changes.next_if(|next| is_inside(&next.path, &change.path)).is_some() {}
                lines.all("+ set ", after, &change.path);
            }
            (was, is) => {
                if was.is_some() {
                    lines.all("- set ", before, &change.path);
                }
                if is.is_some() {
                    lines.all("+ set ", after, &change.path);
                }
            }
        }
    }
    lines.lines
}

/// It is below the other path, not the same.
fn is_inside(path: &Path, other: &Path) -> bool {
    path.0.len() > other.0.len() && path.0.starts_with(&other.0)
}

struct Lines {
    lines: Vec<String>,
}

impl Lines {
    fn all(&mut self, sign: &str, tree: &Tree, path: &Path) {
        Writer::lines(tree, path, &mut |line| self.lines.push(format!("{sign}{line}")));
    }

    fn order(&mut self, tree: &Tree, path: &Path, order: &[Keys]) {
        let names: Vec<String> = order
            .iter()
            .map(|keys| keys.iter().map(|key| crate::words::quote(key)).collect::<Vec<_>>().join(" "))
            .collect();
        self.lines.push(format!("~ {}: order {}", path.words(tree.schema()), names.join(", ")));
    }
}
