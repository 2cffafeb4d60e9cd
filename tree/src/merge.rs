//! Two trees that come from one: what either changed, in one tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::data::{Entries, Fields, Keys, Slot, Tree, Values, is_ordered_by_user, stands_alone};
use crate::path::Path;
use crate::schema::{Node, NodeId, Schema};

/// Something that both sides changed, each in its own way, or that one changed within what the other removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: Path,
    /// In the engineer's words.
    pub place: String,
    /// As it was: a value, `there` for more than a value, or the order of entries; `None` where it was not there.
    pub base: Option<String>,
    /// As the one side has it.
    pub mine: Option<String>,
    /// As the other side has it.
    pub theirs: Option<String>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |side: &Option<String>| match side {
            Some(value) => crate::value::shown(value),
            None => "not there".into(),
        };
        write!(
            f,
            "{}: was {}, is {} here, but meanwhile {}",
            self.place,
            said(&self.base),
            said(&self.mine),
            said(&self.theirs)
        )
    }
}

impl std::error::Error for Conflict {}

/// What `mine` changed of `base`, put into `theirs`, which changed something else of it. The same change on both
/// sides is no conflict, nor are entries or values that each side adds or removes in one list.
///
/// # Errors
/// All that both changed differently, and what one changed in a container or entry that the other removed.
pub fn merge(base: &Tree, mine: &Tree, theirs: &Tree) -> Result<Tree, Vec<Conflict>> {
    let mut merge = Merge { schema: &theirs.schema, at: Path::default(), conflicts: Vec::new() };
    let root = merge.fields(&base.root, &mine.root, &theirs.root);
    if merge.conflicts.is_empty() {
        Ok(Tree { schema: Arc::clone(&theirs.schema), root })
    } else {
        Err(merge.conflicts)
    }
}

struct Merge<'a> {
    schema: &'a Schema,
    at: Path,
    conflicts: Vec<Conflict>,
}

/// The side that is right where one of them changed nothing, or both the same.
fn unchanged<T: PartialEq>(base: T, mine: T, theirs: T) -> Option<T> {
    if mine == base || mine == theirs {
        Some(theirs)
    } else if theirs == base {
        Some(mine)
    } else {
        None
    }
}

impl Merge<'_> {
    fn conflict(&mut self, path: Path, base: Option<String>, mine: Option<String>, theirs: Option<String>) {
        let place = path.words(self.schema);
        self.conflicts.push(Conflict { path, place, base, mine, theirs });
    }

    /// A whole that one side removed and the other changed.
    fn removed(&mut self, path: Path, base: bool, mine: bool, theirs: bool) {
        let there = |is: bool| is.then(|| "there".to_owned());
        let changed = |is: bool| is.then(|| "changed".to_owned());
        self.conflict(path, there(base), changed(mine), changed(theirs));
    }

    fn fields(&mut self, base: &Arc<Fields>, mine: &Arc<Fields>, theirs: &Arc<Fields>) -> Arc<Fields> {
        if let Some(side) = unchanged(base, mine, theirs) {
            return Arc::clone(side);
        }
        let mut merged = Fields::clone(theirs);
        for id in mine.nodes(base).union(&theirs.nodes(base)) {
            match self.slot(*id, base.slot(*id), mine.slot(*id), theirs.slot(*id)) {
                Some(slot) => merged.put(*id, slot),
                None => {
                    merged.take(*id);
                }
            }
        }
        Arc::new(merged)
    }

    fn slot(
        &mut self,
        id: NodeId,
        base: Option<&Slot>,
        mine: Option<&Slot>,
        theirs: Option<&Slot>,
    ) -> Option<Slot> {
        if let Some(side) = unchanged(base, mine, theirs) {
            return side.cloned();
        }
        let node = self.schema.node(id);
        let path = self.at.child(id);
        match (mine.or(theirs)?, mine, theirs) {
            (Slot::Leaf(_), ..) => {
                let value = |slot: Option<&Slot>| match slot {
                    Some(Slot::Leaf(value)) => Some(value.to_string()),
                    _ => None,
                };
                self.conflict(path, value(base), value(mine), value(theirs));
                None
            }
            (Slot::Values(_), ..) => {
                let values = |slot: Option<&Slot>| match slot {
                    Some(Slot::Values(values)) => Arc::clone(values),
                    _ => Arc::default(),
                };
                self.values(node, &values(base), &values(mine), &values(theirs))
            }
            (Slot::Entries(_), ..) => {
                let entries = |slot: Option<&Slot>| match slot {
                    Some(Slot::Entries(entries)) => Arc::clone(entries),
                    _ => Arc::default(),
                };
                self.entries(node, &entries(base), &entries(mine), &entries(theirs))
            }
            (Slot::Fields(_), Some(Slot::Fields(mine)), Some(Slot::Fields(theirs))) => {
                let nothing = Arc::default();
                let base = match base {
                    Some(Slot::Fields(base)) => base,
                    _ => &nothing,
                };
                let merged = self.inside(id, Arc::default(), base, mine, theirs);
                (!merged.is_empty() || stands_alone(node)).then_some(Slot::Fields(merged))
            }
            (Slot::Fields(_), ..) => {
                self.removed(path, base.is_some(), mine.is_some(), theirs.is_some());
                None
            }
        }
    }

    fn inside(
        &mut self,
        id: NodeId,
        keys: Keys,
        base: &Arc<Fields>,
        mine: &Arc<Fields>,
        theirs: &Arc<Fields>,
    ) -> Arc<Fields> {
        self.at = self.at.step(id, keys);
        let merged = self.fields(base, mine, theirs);
        self.at.0.pop();
        merged
    }

    fn values(&mut self, node: &Node, base: &Values, mine: &Values, theirs: &Values) -> Option<Slot> {
        let all = |values: &Values| values.0.iter().cloned().collect::<BTreeSet<Arc<str>>>();
        let (was, own, other) = (all(base), all(mine), all(theirs));
        let order = |values: &Values| values.0.clone();
        let order = self.order(node, &order(base), &order(mine), &order(theirs), |values| {
            let values: Vec<_> = values.iter().map(|value| crate::words::quote(value)).collect();
            values.join(" ")
        });
        let stays = |value: &Arc<str>| {
            unchanged(was.contains(value), own.contains(value), other.contains(value)).unwrap_or(true)
        };
        let mut merged = Fields::default();
        Values::put(node, order.into_iter().filter(stays).collect(), &mut merged);
        merged.take(node.id)
    }

    fn entries(
        &mut self,
        node: &Node,
        base: &Arc<Entries>,
        mine: &Arc<Entries>,
        theirs: &Arc<Entries>,
    ) -> Option<Slot> {
        let mut merged = Entries::clone(theirs);
        let nothing = Arc::default();
        let gone = base.iter_shared().filter(|(keys, _)| mine.get_shared(keys).is_none());
        for (keys, own) in
            mine.iter_shared().map(|(keys, own)| (keys, Some(own))).chain(gone.map(|(keys, _)| (keys, None)))
        {
            let (was, other) = (base.get_shared(keys), theirs.get_shared(keys));
            match (unchanged(was, own, other), own, other) {
                (Some(Some(side)), ..) => {
                    if !other.is_some_and(|other| Arc::ptr_eq(other, side)) {
                        merged.put(node, keys, Arc::clone(side));
                    }
                }
                (Some(None), ..) => {
                    merged.take(keys);
                }
                (None, Some(own), Some(other)) => {
                    let was = match was {
                        Some(was) => was,
                        None => &nothing,
                    };
                    let fields = self.inside(node.id, Arc::clone(keys), was, own, other);
                    merged.put(node, keys, fields);
                }
                (None, own, other) => {
                    let path = self.at.step(node.id, Arc::clone(keys));
                    self.removed(path, was.is_some(), own.is_some(), other.is_some());
                }
            }
        }
        if is_ordered_by_user(node) {
            let keys = |entries: &Entries| -> Vec<Keys> {
                entries.iter().map(|(keys, _)| Arc::clone(keys)).collect()
            };
            let order = self.order(node, &keys(base), &keys(mine), &keys(theirs), |order| {
                let names: Vec<String> = order.iter().map(|keys| keys.join(" ")).collect();
                names.join(", ")
            });
            merged.arrange(&order);
        }
        (!merged.is_empty()).then(|| Slot::Entries(Arc::new(merged)))
    }

    /// The order of all that `mine` or `theirs` has: of the side that changed it; what only the other side has stands
    /// after what it stands after there.
    fn order<T: Clone + Ord>(
        &mut self,
        node: &Node,
        base: &[T],
        mine: &[T],
        theirs: &[T],
        shown: impl Fn(&[T]) -> String,
    ) -> Vec<T> {
        let all = |side: &[T]| side.iter().cloned().collect::<BTreeSet<T>>();
        let (was, own, other) = (all(base), all(mine), all(theirs));
        let kept = |side: &[T]| -> Vec<T> {
            let everywhere = |one: &&T| was.contains(one) && own.contains(one) && other.contains(one);
            side.iter().filter(everywhere).cloned().collect()
        };
        let (before, first, second) = (kept(base), kept(mine), kept(theirs));
        let (leading, following) = match unchanged(&before, &first, &second) {
            // Both as they were, or both the same: theirs is what is there.
            Some(side) if *side == second => (theirs, mine),
            Some(_) => (mine, theirs),
            None => {
                if is_ordered_by_user(node) {
                    let path = self.at.child(node.id);
                    self.conflict(path, Some(shown(base)), Some(shown(mine)), Some(shown(theirs)));
                }
                (theirs, mine)
            }
        };
        let leads = all(leading);
        let mut after: BTreeMap<Option<&T>, Vec<&T>> = BTreeMap::new();
        let mut last = None;
        for one in following {
            if leads.contains(one) {
                last = Some(one);
            } else {
                after.entry(last).or_default().push(one);
            }
        }
        std::iter::once(None)
            .chain(leading.iter().map(Some))
            .flat_map(|one| one.into_iter().chain(after.get(&one).into_iter().flatten().copied()))
            .cloned()
            .collect()
    }
}
