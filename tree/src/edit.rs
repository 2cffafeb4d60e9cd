//! Changes of a tree. Each leaves a tree that keeps the schema's types, or the tree as it was.

use std::sync::Arc;

use crate::data::{Data, Entries, Fields, Keys, Slot, Tree, Values, is_ordered_by_user, stands_alone};
use crate::path::{Path, Step};
use crate::schema::{Kind, Node, Schema, Type};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets a leaf, or adds a value to a leaf-list; without a value makes a list's entry or a container, sets an
    /// empty leaf, or adds the leaf-list's value that the path names. Entries on the way there are made.
    Set(Path, Option<String>),
    /// Removes whatever stands there.
    Delete(Path),
    /// Moves an entry, or a leaf-list's value, whose order is the user's.
    Place(Path, Place),
}

/// A place in the user's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Right before the entry with these keys, or this value.
    Before(Keys),
    /// Right after it.
    After(Keys),
}

/// Why a tree cannot be changed so. Paths are in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditFault {
    /// A path that the schema doesn't have.
    #[error("{path}: {reason}")]
    Path {
        /// The path as far as it is one.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that the type does not take.
    #[error("{path}: {reason}")]
    Value {
        /// Of the leaf or the entry.
        path: String,
        /// The value.
        value: String,
        /// What it must be.
        reason: String,
    },
    /// A leaf without its value.
    #[error("{path}: needs a value: {expected}")]
    NoValue {
        /// Of the leaf.
        path: String,
        /// What it takes.
        expected: String,
    },
    /// A key of an entry that is there.
    #[error("{path}: is a key of its entry and stays {value}; make another entry instead")]
    Key {
        /// Of the key.
        path: String,
        /// Its value.
        value: String,
    },
    /// A place beside something that isn't there, or where the order isn't the user's.
    #[error("{path}: {reason}")]
    Place {
        /// What was to be moved.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl Tree {
    /// Sets a leaf, adds a value, makes an entry or a container, as [`Edit::Set`] says; `false` where it is so
    /// already.
    ///
    /// # Errors
    /// A path that is not the schema's, a value that the type doesn't take, a value too much or too few. Nothing is
    /// changed then.
    pub fn set(&mut self, path: &Path, value: Option<&str>) -> Result<bool, EditFault> {
        let schema = Arc::clone(&self.schema);
        let node = self.check(&schema, path)?;
        let Some((last, above)) = path.0.split_last() else { return Ok(false) };
        let value = match (&node.kind, &*last.keys, value) {
            (Kind::Leaf { ty, .. }, _, value) => Some(self.canonical(path, ty, value)?),
            (Kind::LeafList { ty, .. }, [], value) => Some(self.canonical(path, ty, value)?),
            (Kind::LeafList { ty, .. }, [own], None) => Some(self.canonical(path, ty, Some(own))?),
            (Kind::List { keys, .. }, [], None) => {
                let names: Vec<&str> = keys.iter().map(|key| schema.node(*key).name.as_str()).collect();
                let expected = if names.is_empty() { "a position".into() } else { names.join(" and ") };
                return Err(EditFault::NoValue { path: path.words(&schema), expected });
            }
            (_, _, None) => None,
            (_, _, Some(value)) => {
                return Err(EditFault::Value {
                    path: path.words(&schema),
                    value: value.into(),
                    reason: format!("takes no value (got {})", crate::value::shown(value)),
                });
            }
        };
        if let (Kind::Leaf { .. }, Some(value), Some(key)) = (&node.kind, &value, self.key(path)) {
            return if *key == **value {
                // The entry may yet have to be made.
                self.set(&Path(above.to_vec()), None)
            } else {
                Err(EditFault::Key { path: path.words(&schema), value: key.into() })
            };
        }
        if self.has(node, path, value.as_deref()) {
            return Ok(false);
        }
        if matches!(node.kind, Kind::Container { presence: false }) {
            // Nothing by itself; but entries that it is in are.
            let entry = above.iter().rposition(|step| !step.keys.is_empty());
            return match entry {
                Some(entry) => self.set(&Path(above[..=entry].to_vec()), None),
                None => Ok(false),
            };
        }
        let mut fields = Arc::make_mut(&mut self.root);
        for step in above {
            match within(&schema, fields, step) {
                Some(inner) => fields = inner,
                None => return Ok(false),
            }
        }
        match (&node.kind, value) {
            (Kind::Leaf { .. }, Some(value)) => fields.put(node.id, Slot::Leaf(value.into())),
            (Kind::LeafList { .. }, Some(value)) => {
                if fields.slot(node.id).is_none() {
                    fields.put(node.id, Slot::Values(Arc::default()));
                }
                if let Some(Slot::Values(values)) = fields.slot_mut(node.id) {
                    Arc::make_mut(values).add(node, value.into());
                }
            }
            _ => {
                within(&schema, fields, last);
            }
        }
        Ok(true)
    }

    /// Removes whatever stands at a path, with the containers that hold nothing then. `false` where nothing was
    /// there, and of an entry's key, which goes with its entry alone.
    pub fn remove(&mut self, path: &Path) -> bool {
        if path.is_empty() {
            let was = !self.is_empty();
            self.root = Arc::default();
            return was;
        }
        if !self.contains(path) || self.key(path).is_some() {
            return false;
        }
        remove_in(&self.schema, Arc::make_mut(&mut self.root), &path.0);
        true
    }

    /// Makes a change; `false` where nothing is other than before.
    ///
    /// # Errors
    /// As [`Tree::set`]; also a key to be removed, and a place that isn't there. Nothing is changed then.
    pub fn apply(&mut self, edit: &Edit) -> Result<bool, EditFault> {
        match edit {
            Edit::Set(path, value) => self.set(path, value.as_deref()),
            Edit::Delete(path) => {
                let schema = Arc::clone(&self.schema);
                self.check(&schema, path)?;
                if let Some(key) = self.key(path) {
                    return Err(EditFault::Key { path: path.words(&schema), value: key.into() });
                }
                Ok(self.remove(path))
            }
            Edit::Place(path, place) => self.place(path, place),
        }
    }

    /// Gives the order of a list, or leaf-list, whose order is the user's: the named ones first, as named.
    pub fn arrange(&mut self, list: &Path, first: &[Keys]) {
        let Some((last, above)) = list.0.split_last() else { return };
        if !is_ordered_by_user(self.schema.node(last.node)) || !self.contains(list) {
            return;
        }
        let schema = Arc::clone(&self.schema);
        let mut fields = Arc::make_mut(&mut self.root);
        for step in above {
            match within(&schema, fields, step) {
                Some(inner) => fields = inner,
                None => return,
            }
        }
        match fields.slot_mut(last.node) {
            Some(Slot::Entries(entries)) => Arc::make_mut(entries).arrange(first),
            Some(Slot::Values(values)) => {
                let values = Arc::make_mut(values);
                let rank: std::collections::HashMap<&str, usize> =
                    first.iter().enumerate().filter_map(|(n, keys)| Some((&**keys.first()?, n))).collect();
                values.0.sort_by_key(|value| rank.get(&**value).copied().unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }

    /// Puts everything that is in another tree of the same schema into this one; what is only here stays.
    pub fn overlay(&mut self, other: &Self) {
        overlay_in(&self.schema, &mut self.root, &other.root);
    }

    fn place(&mut self, path: &Path, place: &Place) -> Result<bool, EditFault> {
        let schema = Arc::clone(&self.schema);
        let node = self.check(&schema, path)?;
        let fault = |reason: String| EditFault::Place { path: path.words(&schema), reason };
        let Some((last, above)) = path.0.split_last() else { return Ok(false) };
        if !is_ordered_by_user(node) {
            return Err(fault("the order here is that of the names, not the user's".into()));
        }
        if last.keys.is_empty() || !self.contains(path) {
            return Err(fault("is not there to be moved".into()));
        }
        let list = Path(above.to_vec()).child(last.node);
        let before: Vec<Keys> = match self.get(&list) {
            Some(Data::Entries(entries)) => entries.iter().map(|(keys, _)| Arc::clone(keys)).collect(),
            Some(Data::Values(values)) => {
                values.iter().map(|value| Arc::new([value.into()]) as Keys).collect()
            }
            _ => return Ok(false),
        };
        let mut order: Vec<Keys> = before.iter().filter(|keys| **keys != last.keys).cloned().collect();
        let beside = |keys: &Keys| {
            order.iter().position(|own| own == keys).ok_or_else(|| {
                let name = Path::default().step(last.node, Arc::clone(keys)).words(&schema);
                fault(format!("cannot stand beside {name}, which is not there"))
            })
        };
        let at = match place {
            Place::First => 0,
            Place::Last => order.len(),
            Place::Before(keys) => beside(keys)?,
            Place::After(keys) => beside(keys)? + 1,
        };
        order.insert(at, Arc::clone(&last.keys));
        if order == before {
            return Ok(false);
        }
        self.arrange(&list, &order);
        Ok(true)
    }

    /// The node at a path, which must be the schema's, with keys that their types take.
    fn check<'a>(&self, schema: &'a Schema, path: &Path) -> Result<&'a Node, EditFault> {
        let mut above: Option<&Node> = None;
        let mut here = Some(Data::Fields(self.root()));
        for (n, step) in path.0.iter().enumerate() {
            let so_far = || Path(path.0[..n].to_vec());
            let last = n + 1 == path.0.len();
            let node = schema.nodes.get(usize::from(step.node.0));
            let Some(node) = node.filter(|node| node.parent == above.map(|above| above.id)) else {
                let reason = format!("node {} of the schema is not below it", step.node.0);
                return Err(EditFault::Path { path: so_far().words(schema), reason });
            };
            let wanted = match &node.kind {
                Kind::List { keys, .. } => keys.len().max(1),
                Kind::LeafList { .. } => 1,
                _ => 0,
            };
            if step.keys.len() != wanted && !(last && step.keys.is_empty()) {
                let path = so_far().step(node.id, Arc::clone(&step.keys)).words(schema);
                return Err(EditFault::Path {
                    path,
                    reason: format!("needs {wanted} keys (got {})", step.keys.len()),
                });
            }
            here = match here {
                Some(Data::Fields(fields)) => match fields.get(node.id) {
                    Some(Data::Entries(entries)) if !step.keys.is_empty() => {
                        entries.get(&step.keys).map(Data::Fields)
                    }
                    found => found,
                },
                _ => None,
            };
            if here.is_none() && !step.keys.is_empty() {
                check_keys(schema, node, &step.keys).map_err(|(value, reason)| EditFault::Value {
                    path: so_far().step(node.id, Arc::clone(&step.keys)).words(schema),
                    value,
                    reason,
                })?;
            }
            above = Some(node);
        }
        above.ok_or_else(|| EditFault::Path { path: String::new(), reason: "is the whole tree".into() })
    }

    fn canonical(&self, path: &Path, ty: &Type, value: Option<&str>) -> Result<String, EditFault> {
        match value {
            None if *ty == Type::Empty => Ok(String::new()),
            None => Err(EditFault::NoValue { path: path.words(&self.schema), expected: ty.expected() }),
            Some(value) => ty.check(value).map_err(|reason| EditFault::Value {
                path: path.words(&self.schema),
                value: value.into(),
                reason,
            }),
        }
    }

    /// The value that the entry's step has for a key of it.
    fn key<'a>(&self, path: &'a Path) -> Option<&'a str> {
        let [.., entry, leaf] = &*path.0 else { return None };
        let at = self.schema.node(entry.node).keys().iter().position(|key| *key == leaf.node)?;
        entry.keys.get(at).map(AsRef::as_ref)
    }

    fn has(&self, node: &Node, path: &Path, value: Option<&str>) -> bool {
        match (self.get(path), value) {
            (Some(Data::Values(values)), Some(value)) => node.config && values.contains(value),
            (Some(Data::Leaf(own)), Some(value)) => own == value,
            (Some(_), None) => true,
            _ => false,
        }
    }
}

/// Keys of an entry, or a leaf-list's value, must be what their types take, in canonical form.
pub(crate) fn check_keys(schema: &Schema, node: &Node, keys: &[Box<str>]) -> Result<(), (String, String)> {
    let types: Vec<&Type> = match &node.kind {
        Kind::List { keys, .. } => keys.iter().filter_map(|key| schema.node(*key).ty()).collect(),
        Kind::LeafList { ty, .. } => vec![ty],
        _ => Vec::new(),
    };
    if types.is_empty() {
        return match keys {
            [position] if position.parse::<u32>().is_ok_and(|n| n > 0 && n.to_string() == **position) => {
                Ok(())
            }
            _ => Err((
                keys.concat(),
                format!("must be a position from 1 (got {})", crate::value::shown(&keys.concat())),
            )),
        };
    }
    for (ty, value) in types.iter().zip(keys) {
        let canonical = ty.check(value).map_err(|reason| (value.to_string(), reason))?;
        if canonical != **value {
            return Err((value.to_string(), format!("must be written {canonical} (got {value})")));
        }
    }
    Ok(())
}

/// What is in a container or entry, which is made if it isn't there.
pub(crate) fn within<'a>(schema: &Schema, fields: &'a mut Fields, step: &Step) -> Option<&'a mut Fields> {
    let node = schema.node(step.node);
    if fields.slot(node.id).is_none() {
        fields.put(
            node.id,
            match node.kind {
                Kind::List { .. } => Slot::Entries(Arc::default()),
                Kind::Leaf { .. } | Kind::LeafList { .. } => return None,
                _ => Slot::Fields(Arc::default()),
            },
        );
    }
    match fields.slot_mut(node.id)? {
        Slot::Fields(inner) => Some(Arc::make_mut(inner)),
        Slot::Entries(entries) if !step.keys.is_empty() => {
            Some(Arc::make_mut(Arc::make_mut(entries).entry(node, &step.keys)))
        }
        _ => None,
    }
}

/// Removes what is at the steps, which is there.
fn remove_in(schema: &Schema, fields: &mut Fields, steps: &[Step]) {
    let Some((step, rest)) = steps.split_first() else { return };
    let empty = match fields.slot_mut(step.node) {
        Some(Slot::Fields(inner)) if !rest.is_empty() => {
            let inner = Arc::make_mut(inner);
            remove_in(schema, inner, rest);
            inner.is_empty() && !stands_alone(schema.node(step.node))
        }
        Some(Slot::Entries(entries)) if !step.keys.is_empty() => {
            let entries = Arc::make_mut(entries);
            if rest.is_empty() {
                entries.take(&step.keys);
            } else {
                let inner = entries.entry(schema.node(step.node), &step.keys);
                remove_in(schema, Arc::make_mut(inner), rest);
            }
            entries.is_empty()
        }
        Some(Slot::Values(values)) if !step.keys.is_empty() => {
            let values: &mut Values = Arc::make_mut(values);
            values.0.retain(|value| step.keys.first().is_none_or(|key| **key != **value));
            values.is_empty()
        }
        _ => true,
    };
    if empty {
        fields.take(step.node);
    }
}

fn overlay_in(schema: &Schema, fields: &mut Arc<Fields>, other: &Arc<Fields>) {
    if Arc::ptr_eq(fields, other) {
        return;
    }
    let fields = Arc::make_mut(fields);
    for (id, slot) in other.slots() {
        let node = schema.node(id);
        match (fields.slot_mut(id), slot) {
            (Some(Slot::Fields(inner)), Slot::Fields(other)) => overlay_in(schema, inner, other),
            (Some(Slot::Entries(entries)), Slot::Entries(other)) => {
                if !Arc::ptr_eq(entries, other) {
                    let entries: &mut Entries = Arc::make_mut(entries);
                    for (keys, inner) in other.iter_shared() {
                        if entries.get_shared(keys).is_some() {
                            overlay_in(schema, entries.entry(node, keys), inner);
                        } else {
                            entries.put(node, keys, Arc::clone(inner));
                        }
                    }
                }
            }
            (Some(Slot::Values(values)), Slot::Values(other)) if node.config => {
                if !Arc::ptr_eq(values, other) {
                    let values = Arc::make_mut(values);
                    for value in &other.0 {
                        values.add(node, Arc::clone(value));
                    }
                }
            }
            _ => fields.put(id, slot.clone()),
        }
    }
}
