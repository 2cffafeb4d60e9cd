//! Who has locked which configuration (RFC 6241, 7.5).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::backend::Datastore;

/// A lock that someone holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Number of the session; of any kind, as the backend numbers them.
    pub session: u32,
    /// Since when.
    pub since: SystemTime,
}

/// The locks of all sessions, of NETCONF and of others alike.
#[derive(Debug, Default)]
pub struct Locks(Mutex<BTreeMap<Datastore, Held>>);

impl Locks {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Datastore, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock.
    ///
    /// # Errors
    /// Who has it, be it this session itself.
    pub fn lock(&self, datastore: Datastore, session: u32) -> Result<(), Held> {
        let mut held = self.held();
        if let Some(held) = held.get(&datastore) {
            return Err(*held);
        }
        held.insert(datastore, Held { session, since: SystemTime::now() });
        Ok(())
    }

    /// Gives a lock back.
    ///
    /// # Errors
    /// Who else has it, or `None` where nobody has.
    pub fn unlock(&self, datastore: Datastore, session: u32) -> Result<(), Option<Held>> {
        let mut held = self.held();
        match held.get(&datastore) {
            Some(lock) if lock.session == session => {
                held.remove(&datastore);
                Ok(())
            }
            other => Err(other.copied()),
        }
    }

    /// Gives all locks of a session back.
    pub fn release(&self, session: u32) {
        self.held().retain(|_, lock| lock.session != session);
    }

    /// Who has a lock.
    #[must_use]
    pub fn holder(&self, datastore: Datastore) -> Option<Held> {
        self.held().get(&datastore).copied()
    }

    /// Who has a lock, unless it is this session: what keeps it from changing the datastore.
    #[must_use]
    pub fn other_holder(&self, datastore: Datastore, session: u32) -> Option<Held> {
        self.holder(datastore).filter(|lock| lock.session != session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_sessions_until_it_gives_it_back() {
        let locks = Locks::default();
        locks.lock(Datastore::Running, 1).unwrap();
        locks.lock(Datastore::Candidate, 2).unwrap();
        assert_eq!(locks.lock(Datastore::Running, 2).unwrap_err().session, 1);
        assert_eq!(locks.lock(Datastore::Running, 1).unwrap_err().session, 1);
        assert_eq!(locks.unlock(Datastore::Running, 2).unwrap_err().unwrap().session, 1);
        assert_eq!(locks.unlock(Datastore::Startup, 2), Err(None));
        assert_eq!(locks.other_holder(Datastore::Running, 1), None);
        assert_eq!(locks.other_holder(Datastore::Running, 2).unwrap().session, 1);
        locks.unlock(Datastore::Running, 1).unwrap();
        locks.lock(Datastore::Running, 2).unwrap();
        locks.release(2);
        assert_eq!((locks.holder(Datastore::Running), locks.holder(Datastore::Candidate)), (None, None));
    }
}
