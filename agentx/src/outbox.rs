//! Notifications that wait to be sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::{Binding, Oid, Value};

/// Notifications that wait at most; the oldest goes where another comes.
const ROOM: usize = 1024;

/// `snmpTrapOID.0` (RFC 3418).
const TRAP_OID: [u32; 11] = [1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The NOTIFICATION-TYPE.
    pub kind: Oid,
    /// Its objects, in the order of the MIB, and others behind them.
    pub objects: Vec<Binding>,
}

impl Notification {
    /// With the type in front; sysUpTime the master agent adds (RFC 2741 section 7.1.10).
    pub(crate) fn bindings(&self) -> Vec<Binding> {
        let kind = Binding::new(Oid::new(TRAP_OID), Value::ObjectIdentifier(self.kind.clone()));
        [kind].into_iter().chain(self.objects.iter().cloned()).collect()
    }
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Notification>,
    dropped: u64,
}

/// Taking in never waits.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

impl Outbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, notification: Notification) {
        let mut waiting = self.waiting();
        if waiting.queue.len() == ROOM {
            waiting.queue.pop_front();
            waiting.dropped += 1;
        }
        waiting.queue.push_back(notification);
        drop(waiting);
        self.ready.notify_one();
    }

    /// The oldest, once there is one. Loses nothing where the future is dropped.
    pub(crate) async fn take(&self) -> Notification {
        loop {
            // Bound first: the lock is not held over the wait.
            let oldest = self.waiting().queue.pop_front();
            match oldest {
                Some(notification) => return notification,
                None => self.ready.notified().await,
            }
        }
    }

    /// Gives back what was taken, oldest first, and sent to nobody for sure.
    pub(crate) fn give_back(&self, notifications: Vec<Notification>) {
        let mut waiting = self.waiting();
        for notification in notifications.into_iter().rev() {
            if waiting.queue.len() == ROOM {
                waiting.dropped += 1;
            } else {
                waiting.queue.push_front(notification);
            }
        }
        drop(waiting);
        self.ready.notify_one();
    }

    /// Notifications that nobody will get.
    pub(crate) fn dropped(&self) -> u64 {
        self.waiting().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u32) -> Notification {
        Notification { kind: Oid::new([number]), objects: Vec::new() }
    }

    #[tokio::test]
    async fn the_oldest_make_room_and_what_is_given_back_comes_first() {
        let outbox = Outbox::default();
        (0..ROOM as u32 + 3).for_each(|number| outbox.put(numbered(number)));
        assert_eq!(outbox.dropped(), 3);
        let taken = [outbox.take().await, outbox.take().await];
        assert_eq!(taken, [numbered(3), numbered(4)]);
        outbox.give_back(taken.to_vec());
        assert_eq!(outbox.take().await, numbered(3));
        assert_eq!(outbox.take().await, numbered(4));
        assert_eq!(outbox.take().await, numbered(5));
        outbox.put(numbered(0));
        outbox.put(numbered(1));
        outbox.put(numbered(2));
        outbox.give_back(vec![numbered(4), numbered(5)]);
        assert_eq!(outbox.dropped(), 5, "there is no room for what is older than all that waits");
    }
}
