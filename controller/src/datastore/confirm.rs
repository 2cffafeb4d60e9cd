//! An apply that is rolled back unless it is confirmed.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{EventKind, Severity};
use tokio::task::AbortHandle;

use super::journal::{Journal, Unconfirmed};
use super::{ApplyError, Datastores, Options, Revision, Who};
use crate::clock;
use crate::event::News;

/// Between tries to roll back, while the data plane refuses.
const AGAIN: Duration = Duration::from_secs(1);

/// An apply that waits to be confirmed.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) unconfirmed: Unconfirmed,
    /// Sequence of the change.
    pub(super) sequence: u64,
    /// Whose session did it; 0 after a restart.
    pub(super) session: u32,
    user: String,
    timer: Option<AbortHandle>,
}

impl Pending {
    /// Milliseconds since 1970.
    pub(super) fn deadline_ms(&self) -> u64 {
        self.unconfirmed.deadline
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Whether somebody may apply while another apply waits.
pub(super) fn may(pending: Option<&Pending>, who: &Who, options: &Options) -> Result<(), ApplyError> {
    let Some(pending) = pending else {
        return match &options.persist_id {
            Some(id) => {
                let reason = format!("no apply waits to be confirmed by the persist-id {id:?}");
                Err(ApplyError::Confirm(reason))
            }
            None => Ok(()),
        };
    };
    match (&pending.unconfirmed.persist, &options.persist_id) {
        (Some(persist), Some(id)) if persist == id => Ok(()),
        (_, Some(id)) => Err(ApplyError::Confirm(format!(
            "{id:?} is not the persist-id of the apply that waits to be confirmed"
        ))),
        // What was named can only be confirmed by its name (RFC 6241, 8.4.1).
        (None, None) if pending.session == who.session || !pending.unconfirmed.of_session => Ok(()),
        _ => Err(ApplyError::Unconfirmed(format!(
            "an apply of {} waits to be confirmed until {}; it ends, or is confirmed, first",
            pending.user,
            clock::calendar_of(pending.deadline_ms())
        ))),
    }
}

/// What becomes of the next revision where nobody confirms it.
pub(super) fn of(pending: Option<&Pending>, running: &Revision, options: &Options) -> Option<Unconfirmed> {
    let timeout = options.confirmed?;
    Some(Unconfirmed {
        deadline: now_ms() + timeout.as_millis() as u64,
        // Several in a row go back to before the first.
        back_to: pending.map_or(running.sequence, |pending| pending.unconfirmed.back_to),
        persist: options.persist.clone().or_else(|| {
            pending
                .filter(|_| options.persist_id.is_some())
                .and_then(|pending| pending.unconfirmed.persist.clone())
        }),
        of_session: options.of_session && options.persist.is_none() && options.persist_id.is_none(),
    })
}

impl Datastores {
    /// Session and name of the apply that waits to be confirmed; session 0 where that has ended.
    #[must_use]
    pub fn pending(&self) -> Option<(u32, Option<String>)> {
        let known = self.known();
        known.pending.as_ref().map(|pending| (pending.session, pending.unconfirmed.persist.clone()))
    }

    /// Starts or ends the waiting for a revision that was just put in force.
    pub(super) fn arm(self: &Arc<Self>, who: &Who, revision: &Revision) {
        let timer =
            revision.unconfirmed.as_ref().map(|unconfirmed| self.timer(revision.sequence, unconfirmed));
        let mut known = self.known();
        if let Some(timer) = known.pending.take().and_then(|pending| pending.timer) {
            timer.abort();
        }
        known.pending = revision.unconfirmed.clone().map(|unconfirmed| Pending {
            unconfirmed,
            sequence: revision.sequence,
            session: who.session,
            user: who.user.clone(),
            timer,
        });
    }

    fn timer(self: &Arc<Self>, sequence: u64, unconfirmed: &Unconfirmed) -> AbortHandle {
        let left = Duration::from_millis(unconfirmed.deadline.saturating_sub(now_ms()));
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(left).await;
            let Some(this) = this.upgrade() else { return };
            let waits = this.known().pending.as_ref().is_some_and(|pending| pending.sequence == sequence);
            if waits {
                // On its own: the timer itself is ended by what it does.
                tokio::spawn(async move { this.roll_back(sequence, "nobody confirmed it").await });
            }
        })
        .abort_handle()
    }

    /// Goes on with what a process before this one had waiting.
    pub(super) fn resume_confirmation(self: &Arc<Self>) {
        let running = self.running();
        if let Some(unconfirmed) = &running.unconfirmed {
            let mut resumed = (*running).clone();
            // The session is gone.
            if unconfirmed.of_session {
                resumed.unconfirmed = Some(Unconfirmed { deadline: 0, ..unconfirmed.clone() });
            }
            let who = Who { user: running.by.user.clone(), origin: running.by.origin.clone(), session: 0 };
            self.arm(&who, &resumed);
        }
    }

    /// The waiting apply is confirmed.
    pub(super) async fn confirmed(&self, journal: &mut Journal, who: &Who) -> Result<(), ApplyError> {
        let Some(pending) = self.known().pending.clone() else { return Ok(()) };
        tokio::task::block_in_place(|| journal.confirm(pending.sequence))?;
        if let Some(timer) = &pending.timer {
            timer.abort();
        }
        self.known().pending = None;
        self.audit.record(who, "confirm", None, Ok(()));
        let reason = format!("confirmed by {} ({})", who.user, who.origin);
        self.events.log(News::now(Severity::Info, EventKind::Configuration, "running", reason));
        Ok(())
    }

    /// Takes back the waiting apply at once (RFC 6241, 8.4.4.1). Whoever asks has made sure that it may.
    ///
    /// # Errors
    /// [`ApplyError::Confirm`] where none waits.
    pub async fn cancel(self: &Arc<Self>, who: &Who) -> Result<(), ApplyError> {
        let Some(sequence) = self.known().pending.as_ref().map(|pending| pending.sequence) else {
            return Err(ApplyError::Confirm("no apply waits to be confirmed".to_owned()));
        };
        self.roll_back(sequence, &format!("it was cancelled by {}", who.user)).await;
        Ok(())
    }

    /// Goes back to before the apply of this sequence, if it still waits, however long the data plane refuses.
    pub(super) async fn roll_back(self: &Arc<Self>, sequence: u64, reason: &str) {
        let who = Who::sluiced("roll-back");
        loop {
            let result = {
                let mut journal = self.applying.lock().await;
                let waits = self.known().pending.clone().filter(|pending| pending.sequence == sequence);
                let Some(pending) = waits else { return };
                let Some(before) = self.known().revisions.of_sequence(pending.unconfirmed.back_to) else {
                    self.known().pending = None;
                    let reason = "the configuration to roll back to is not kept any more";
                    self.events.log(News::now(Severity::Error, EventKind::Configuration, "running", reason));
                    return;
                };
                let options = Options {
                    comment: Some(format!("rolled back the apply of {}: {reason}", pending.user)),
                    ..Options::default()
                };
                self.put(&mut journal, &who, before.tree.clone(), &options).await
            };
            match result {
                Ok(_) => {
                    let reason = format!("rolled back: {reason}");
                    self.events.log(News::now(
                        Severity::Warning,
                        EventKind::Configuration,
                        "running",
                        reason,
                    ));
                    return;
                }
                Err(ApplyError::Ending) => return,
                Err(error) => {
                    tracing::warn!("roll-back: {error}; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}
