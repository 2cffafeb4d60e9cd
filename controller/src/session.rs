//! One client at the Unix socket: who it is, and its candidate.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use api::Role;
use tree::Tree;

use crate::datastore::{Candidate, Datastores, Who};

/// Numbers of sessions, of the CLI and of NETCONF alike.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The next number.
pub fn number() -> u32 {
    // A wrap after four thousand million sessions would give 0, which means the controller itself.
    NEXT.fetch_add(1, Relaxed).max(1)
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Who it is.
    pub who: Who,
    /// What he may do.
    pub role: Role,
    /// Made with the first request that needs one.
    candidate: Option<Candidate>,
}

impl Session {
    /// A session without a candidate yet.
    #[must_use]
    pub fn new(user: String, role: Role, origin: &str) -> Self {
        Session { who: Who { user, origin: origin.to_owned(), session: number() }, role, candidate: None }
    }

    /// Its candidate, where there is one.
    #[must_use]
    pub fn candidate(&self) -> Option<&Candidate> {
        self.candidate.as_ref()
    }

    /// Its candidate; made from running where there is none yet, or where it was never changed.
    pub fn candidate_mut(&mut self, datastores: &Datastores) -> &mut Candidate {
        match &mut self.candidate {
            Some(candidate) if candidate.is_changed() => {}
            slot => *slot = Some(datastores.candidate()),
        }
        self.candidate.get_or_insert_with(|| datastores.candidate())
    }

    /// Its candidate; where there is none yet, one that begins with what running was when it was read.
    pub fn candidate_from(&mut self, datastores: &Datastores, before: Option<Tree>) -> &mut Candidate {
        let changed = self.candidate.as_ref().is_some_and(Candidate::is_changed);
        match before {
            Some(before) if !changed => self.candidate.insert(datastores.candidate_from(before)),
            _ => self.candidate_mut(datastores),
        }
    }

    /// Forgets its candidate.
    pub fn discard(&mut self) {
        self.candidate = None;
    }
}
