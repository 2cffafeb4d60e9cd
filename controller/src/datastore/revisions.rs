//! Configurations that are or were in force, newest last.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Revision;
use super::confirm::Pending;
use super::journal::KEPT;
use crate::clock;

pub(super) struct Revisions(VecDeque<Arc<Revision>>);

impl Revisions {
    /// Of a list that is not empty.
    pub(super) fn new(list: Vec<Revision>) -> Self {
        debug_assert!(!list.is_empty(), "running is always there");
        Revisions(list.into_iter().map(Arc::new).collect())
    }

    pub(super) fn newest(&self) -> Arc<Revision> {
        match self.0.back() {
            Some(newest) => newest.clone(),
            None => unreachable!("running is always there"),
        }
    }

    pub(super) fn add(&mut self, revision: Arc<Revision>) {
        self.0.push_back(revision);
        while self.0.len() > KEPT + 1 {
            self.0.pop_front();
        }
    }

    /// So many changes ago.
    pub(super) fn back(&self, number: u32) -> Option<Arc<Revision>> {
        let index = self.0.len().checked_sub(number as usize + 1)?;
        self.0.get(index).cloned()
    }

    pub(super) fn of_sequence(&self, sequence: u64) -> Option<Arc<Revision>> {
        self.0.iter().find(|revision| revision.sequence == sequence).cloned()
    }

    pub(super) fn last_number(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    pub(super) fn list(&self, pending: Option<&Pending>) -> Vec<api::Revision> {
        let newest_first: Vec<&Arc<Revision>> = self.0.iter().rev().collect();
        newest_first
            .iter()
            .enumerate()
            .map(|(number, revision)| api::Revision {
                number: number as u32,
                user: revision.by.user.clone(),
                origin: revision.by.origin.clone(),
                time: revision.by.time.clone(),
                comment: revision.by.comment.clone(),
                changes: newest_first
                    .get(number + 1)
                    .map_or(0, |before| tree::diff(&before.tree, &revision.tree).len()),
                confirm_by: pending
                    .filter(|_| number == 0)
                    .map(|pending| clock::calendar_of(pending.deadline_ms())),
            })
            .collect()
    }
}
