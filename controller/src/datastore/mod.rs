//! Startup, running, the candidates of sessions, and the way from a candidate to the data plane: all or nothing.
//!
//! An apply walks: conflicts with what others applied meanwhile ([`tree::merge`]), the YANG modules ([`validation`]),
//! the site's numbers and entries ([`crate::engine`]), the data plane, the journal. Whatever refuses, running and the
//! device stay exactly as they were.

mod beginning;
mod candidate;
mod confirm;
mod files;
pub mod journal;
mod revisions;
mod validation;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Applied, EventKind, Severity};
use netconf::{Datastore, Locks};
use site::Site;
use tokio::sync::{broadcast, mpsc, oneshot};
use tree::{Path, Schema, Tree};
use yang::Yang;

use crate::audit::Audit;
use crate::clock;
use crate::engine::{Command, EngineError};
use crate::event::{Events, News};

pub use beginning::{Beginning, BeginningError};
pub use candidate::Candidate;
pub use files::{StartupError, read_text, xml_document};
pub use journal::{Authorship, Journal, JournalError, Revision};
pub use validation::{Invalid, path_to, site_of, without};

use confirm::Pending;
use revisions::Revisions;

/// Who does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// User.
    pub user: String,
    /// `cli`, `netconf 192.0.2.1` and such.
    pub origin: String,
    /// Number of the session.
    pub session: u32,
}

impl Who {
    /// The controller itself, such as when nobody confirmed.
    #[must_use]
    pub fn sluiced(origin: &str) -> Self {
        Who { user: "sluiced".to_owned(), origin: origin.to_owned(), session: 0 }
    }

    fn authorship(&self, comment: Option<String>) -> Authorship {
        Authorship {
            user: self.user.clone(),
            origin: self.origin.clone(),
            time: clock::calendar(clock::now()),
            comment,
        }
    }
}

/// A change was applied.
#[derive(Clone, Debug)]
pub struct Change {
    /// The new revision.
    pub revision: Arc<Revision>,
    /// The one before.
    pub before: Arc<Revision>,
    /// Whose session it was; 0 for the controller itself.
    pub session: u32,
}

/// Why the configuration was not changed. Running and the device are as they were.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Others changed the same nodes since the candidate was made.
    #[error(
        "{}\nthe candidate stays as it is: `compare` shows it, `rollback 0` takes what is running now",
        conflicts(.0)
    )]
    Conflict(Vec<Conflict>),
    /// The configuration breaks rules.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Another session has locked it.
    #[error(transparent)]
    Locked(#[from] Locked),
    /// An apply of somebody else waits to be confirmed.
    #[error("{0}")]
    Unconfirmed(String),
    /// There is nothing to confirm, or not by this.
    #[error("{0}")]
    Confirm(String),
    /// The data plane, or the state directory.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The startup file.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// No such revision.
    #[error("there is no revision {number}; there are 0 (running) to {last}")]
    NoRevision {
        /// As asked for.
        number: u32,
        /// The oldest.
        last: usize,
    },
    /// The process ends.
    #[error("sluiced is shutting down")]
    Ending,
}

/// Another session has locked a datastore.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("session {session} has locked the {} datastore", .datastore.word())]
pub struct Locked {
    /// Which.
    pub datastore: Datastore,
    /// Whose session it is.
    pub session: u32,
}

/// A node that two sessions changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The node.
    pub path: Path,
    /// In words, for people.
    pub words: String,
    /// Who changed it in running.
    pub by: String,
}

fn conflicts(all: &[Conflict]) -> String {
    let lines: Vec<String> = all
        .iter()
        .map(|conflict| {
            format!("{}: was changed by {} since this candidate was made", conflict.words, conflict.by)
        })
        .collect();
    lines.join("\n")
}

/// What an apply is to do beside applying.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rolled back after this time unless an apply follows.
    pub confirmed: Option<Duration>,
    /// Outlives its session under this name.
    pub persist: Option<String>,
    /// Confirms or extends the apply of this name.
    pub persist_id: Option<String>,
    /// It ends with its session where it is not confirmed and not named.
    pub of_session: bool,
    /// Kept with the revision.
    pub comment: Option<String>,
}

/// The datastores.
pub struct Datastores {
    yang: Arc<Yang>,
    schema: Arc<Schema>,
    engine: mpsc::Sender<Command>,
    events: Arc<Events>,
    audit: Arc<Audit>,
    startup: PathBuf,
    locks: Arc<Locks>,
    known: Mutex<Known>,
    /// One apply at a time.
    applying: tokio::sync::Mutex<Journal>,
    changes: broadcast::Sender<Change>,
}

struct Known {
    revisions: Revisions,
    /// What running asks of the data plane; the engine has the same.
    site: Arc<Site>,
    pending: Option<Pending>,
}

impl Datastores {
    /// Datastores whose running is the newest of some revisions, which the engine has.
    #[must_use]
    pub fn new(
        yang: Arc<Yang>,
        engine: mpsc::Sender<Command>,
        events: Arc<Events>,
        audit: Arc<Audit>,
        beginning: Beginning,
    ) -> Arc<Self> {
        let Beginning { startup, journal, revisions, site, .. } = beginning;
        let datastores = Arc::new(Datastores {
            schema: yang.schema().clone(),
            yang,
            engine,
            events,
            audit,
            startup,
            locks: Arc::default(),
            known: Mutex::new(Known { revisions: Revisions::new(revisions), site, pending: None }),
            applying: tokio::sync::Mutex::new(journal),
            changes: broadcast::Sender::new(64),
        });
        datastores.resume_confirmation();
        datastores
    }

    /// The schema of everything.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The modules.
    #[must_use]
    pub fn yang(&self) -> &Arc<Yang> {
        &self.yang
    }

    /// Follows what is applied.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done by whoever held it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configuration in force.
    #[must_use]
    pub fn running(&self) -> Arc<Revision> {
        self.known().revisions.newest()
    }

    /// A candidate that equals running.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate::of(self.running())
    }

    /// A candidate that equals what running was when somebody read it.
    #[must_use]
    pub fn candidate_from(&self, before: Tree) -> Candidate {
        let running = self.running();
        if running.tree == before { Candidate::of(running) } else { Candidate::of_past(before, &running) }
    }

    /// An earlier configuration, 0 being running.
    ///
    /// # Errors
    /// [`ApplyError::NoRevision`].
    pub fn revision(&self, number: u32) -> Result<Arc<Revision>, ApplyError> {
        let known = self.known();
        known
            .revisions
            .back(number)
            .ok_or(ApplyError::NoRevision { number, last: known.revisions.last_number() })
    }

    /// Earlier configurations, running first.
    #[must_use]
    pub fn revisions(&self) -> Vec<api::Revision> {
        let known = self.known();
        known.revisions.list(known.pending.as_ref())
    }

    /// Checks what an apply of the candidate would put in force.
    ///
    /// # Errors
    /// [`ApplyError::Conflict`], [`ApplyError::Invalid`].
    pub async fn check(self: &Arc<Self>, candidate: &Candidate) -> Result<api::Checked, ApplyError> {
        let (running, site) = self.in_force();
        let next = candidate.onto(&running)?;
        let (yang, next_tree, before) = (self.yang.clone(), next.clone(), running.clone());
        let next_site = Arc::new(blocking(move || site_of(&yang, (&before.tree, &site), &next_tree)).await??);
        let (answer, effects) = oneshot::channel();
        let command = Command::Effects { site: next_site.clone(), answer };
        self.engine.send(command).await.map_err(|_| ApplyError::Ending)?;
        let effects = effects.await.map_err(|_| ApplyError::Ending)??;
        Ok(api::Checked {
            warnings: next_site.warnings().iter().map(ToString::to_string).collect(),
            effects,
            changes: tree::diff(&running.tree, &next).len(),
        })
    }

    /// The locks of NETCONF sessions, which hold for everybody.
    #[must_use]
    pub fn locks(&self) -> &Arc<Locks> {
        &self.locks
    }

    fn unlocked(&self, datastore: Datastore, who: &Who) -> Result<(), Locked> {
        match self.locks.other_holder(datastore, who.session) {
            Some(held) => Err(Locked { datastore, session: held.session }),
            None => Ok(()),
        }
    }

    /// Checks a configuration by itself.
    ///
    /// # Errors
    /// [`ApplyError::Invalid`].
    pub async fn validate(&self, tree: Tree) -> Result<(), ApplyError> {
        let (running, site) = self.in_force();
        let yang = self.yang.clone();
        blocking(move || site_of(&yang, (&running.tree, &site), &tree)).await??;
        Ok(())
    }

    /// A session ended: its locks go, and what it applied and nobody can confirm any more is rolled back.
    pub async fn session_ended(self: &Arc<Self>, who: &Who) {
        self.locks.release(who.session);
        let orphaned = {
            let known = self.known();
            let pending = known.pending.as_ref();
            pending
                .filter(|pending| pending.session == who.session && pending.unconfirmed.of_session)
                .map(|pending| pending.sequence)
        };
        if let Some(sequence) = orphaned {
            self.roll_back(sequence, "its session ended before it was confirmed").await;
        }
    }

    fn in_force(&self) -> (Arc<Revision>, Arc<Site>) {
        let known = self.known();
        (known.revisions.newest(), known.site.clone())
    }

    /// Puts a candidate in force; on success it is made anew from running. An apply of what is in force already
    /// confirms the one that waits for it.
    ///
    /// # Errors
    /// [`ApplyError`]; then nothing has changed, the candidate neither.
    pub async fn apply(
        self: &Arc<Self>,
        who: &Who,
        candidate: &mut Candidate,
        options: Options,
    ) -> Result<Applied, ApplyError> {
        // Done to its end even where the one who asked goes away in between.
        let (this, who_, taken) = (self.clone(), who.clone(), candidate.clone());
        let task = tokio::spawn(async move {
            let result = this.apply_now(&who_, &taken, &options).await;
            if let Err(error) = &result {
                this.audit.record(&who_, "apply", options.comment.as_deref(), Err(&error.to_string()));
            }
            result
        });
        let applied = task.await.map_err(|_| ApplyError::Ending)??;
        *candidate = self.candidate();
        Ok(applied)
    }

    async fn apply_now(
        self: &Arc<Self>,
        who: &Who,
        candidate: &Candidate,
        options: &Options,
    ) -> Result<Applied, ApplyError> {
        let mut journal = self.applying.lock().await;
        self.unlocked(Datastore::Running, who)?;
        self.unlocked(Datastore::Candidate, who)?;
        confirm::may(self.known().pending.as_ref(), who, options)?;
        let (running, _) = self.in_force();
        let next = candidate.onto(&running)?;
        let applied = self.put(&mut journal, who, next, options).await?;
        Ok(applied)
    }

    /// Puts a configuration in force and in the journal.
    async fn put(
        self: &Arc<Self>,
        journal: &mut Journal,
        who: &Who,
        next: Tree,
        options: &Options,
    ) -> Result<Applied, ApplyError> {
        let (running, site) = self.in_force();
        let pending = self.known().pending.clone();
        let unconfirmed = confirm::of(pending.as_ref(), &running, options);
        let same = next == running.tree;
        if same && unconfirmed.is_none() {
            if pending.is_some() {
                self.confirmed(journal, who).await?;
            }
            return Ok(Applied { confirmed: pending.is_some(), ..Applied::default() });
        }
        let (applied, site) = if same {
            (Applied::default(), site)
        } else {
            let (yang, tree, before) = (self.yang.clone(), next.clone(), running.clone());
            let site = Arc::new(blocking(move || site_of(&yang, (&before.tree, &site), &tree)).await??);
            let (answer, result) = oneshot::channel();
            let origin = format!("{} by {}", who.origin, who.user);
            let command = Command::Apply { site: site.clone(), origin, answer };
            self.engine.send(command).await.map_err(|_| ApplyError::Ending)?;
            (result.await.map_err(|_| ApplyError::Ending)??, site)
        };
        let after = Arc::new(Revision {
            sequence: running.sequence + 1,
            by: who.authorship(options.comment.clone()),
            tree: next,
            unconfirmed,
        });
        let mut applied = applied;
        // The tables are changed already: a full disk is no reason to take that back, but it is told.
        if let Err(error) = tokio::task::block_in_place(|| journal.change(&running, &after)) {
            applied.warnings.push(format!("it is in force, but a restart would not find it: {error}"));
            self.events.log(News::now(
                Severity::Error,
                EventKind::Configuration,
                "running",
                error.to_string(),
            ));
        }
        {
            let mut known = self.known();
            known.site = site;
            known.revisions.add(after.clone());
        }
        self.arm(who, &after);
        let changes = tree::diff(&running.tree, &after.tree);
        let lines: Vec<String> =
            journal::lines_of(&self.schema, &changes).take(crate::audit::LINES).collect();
        self.audit.changed(who, options.comment.as_deref(), &lines, changes.len());
        applied.changes = changes.len();
        // An apply that is none of its own confirms the one before.
        applied.confirmed = pending.is_some() && after.unconfirmed.is_none();
        drop(changes);
        // Nobody needs to listen.
        let _ = self.changes.send(Change { revision: after, before: running, session: who.session });
        Ok(applied)
    }
}

async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, ApplyError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApplyError::Ending)
}
