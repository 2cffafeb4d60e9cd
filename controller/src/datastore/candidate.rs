//! A session's configuration in the making.

use std::sync::Arc;

use tree::Tree;

use super::{ApplyError, Conflict, Revision};

/// A candidate: what running was when it was made, and what has become of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    base: Arc<Revision>,
    tree: Tree,
}

impl Candidate {
    pub(super) fn of(running: Arc<Revision>) -> Self {
        Candidate { tree: running.tree.clone(), base: running }
    }

    /// Of what was running some changes ago.
    pub(super) fn of_past(tree: Tree, running: &Revision) -> Self {
        let base = Revision { sequence: 0, by: running.by.clone(), tree, unconfirmed: None };
        Candidate::of(Arc::new(base))
    }

    /// What it is now.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// To be edited; who edits does all of a request or nothing.
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Puts another configuration in its place; how many nodes differ.
    pub fn replace(&mut self, tree: Tree) -> usize {
        let changes = tree::diff(&self.tree, &tree).len();
        self.tree = tree;
        changes
    }

    /// It differs from what running was when it was made.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.tree != self.base.tree
    }

    /// Its changes on what is running now.
    ///
    /// # Errors
    /// [`ApplyError::Conflict`] with every node that both have changed.
    pub(super) fn onto(&self, running: &Revision) -> Result<Tree, ApplyError> {
        if self.base.sequence == running.sequence {
            return Ok(self.tree.clone());
        }
        tree::merge(&self.base.tree, &self.tree, &running.tree).map_err(|conflicts| {
            let by = format!("{} ({})", running.by.user, running.by.origin);
            let schema = running.tree.schema();
            let conflict = |conflict: tree::Conflict| Conflict {
                words: conflict.path.words(schema),
                path: conflict.path,
                by: by.clone(),
            };
            ApplyError::Conflict(conflicts.into_iter().map(conflict).collect())
        })
    }
}
