//! What the protocol asks of whoever keeps the datastores.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::Role;
use tokio::sync::broadcast;
use tree::{NodeId, Schema, Tree};

use crate::credentials::Credentials;
use crate::error::{Refusal, RpcError};

/// Who logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// User's name.
    pub user: String,
    /// Role at the time of the login.
    pub role: Role,
    /// From where.
    pub from: IpAddr,
}

/// Who asks: a session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Number of the session, never 0, and of no other session of any kind while it lasts.
    pub session: u32,
    /// User's name.
    pub user: String,
    /// Role at the time of the login.
    pub role: Role,
    /// From where.
    pub from: IpAddr,
}

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Datastore {
    /// In force.
    Running,
    /// The caller's own.
    Candidate,
    /// What a start of the machine begins with.
    Startup,
}

impl Datastore {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Running, Self::Candidate, Self::Startup];

    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Candidate => "candidate",
            Self::Startup => "startup",
        }
    }

    /// By its word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|datastore| datastore.word() == word)
    }
}

/// What a user needs to be allowed to do for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: it concerns the session alone.
    Session,
    /// Look at configuration or state.
    Look,
    /// Call an RPC of the schema.
    Call,
    /// Change a configuration, keep others from doing so, or end their sessions.
    Configure,
}

/// An operation that someone asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action<'a> {
    /// Name of the operation, such as `edit-config`, or of the RPC.
    pub name: &'a str,
    /// What it takes.
    pub access: Access,
    /// The configuration that it reads or changes.
    pub datastore: Option<Datastore>,
    /// The RPC, where it is one of the schema.
    pub rpc: Option<NodeId>,
}

/// A confirmed commit that waits (RFC 6241, 8.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The session that began it; 0 where that has ended.
    pub session: u32,
    /// Given with `persist`.
    pub persist: Option<String>,
}

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// To be confirmed, or undone.
    pub confirmed: Option<Confirmed>,
    /// Confirms, or carries on, the one that persists with this token.
    pub persist_id: Option<String>,
}

/// How a commit is to be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Time after which it is undone.
    pub timeout: Duration,
    /// Outlives its session; who has the token may confirm.
    pub persist: Option<String>,
}

/// A YANG module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Name.
    pub name: String,
    /// Revision, YYYY-MM-DD.
    pub revision: Option<String>,
    /// XML namespace.
    pub namespace: String,
    /// Features that are there.
    pub features: Vec<String>,
    /// It has nodes, RPCs or notifications that are there; else only its types and groupings are used.
    pub implemented: bool,
    /// `yang-version 1.1`: then it is told in ietf-yang-library alone, else in the hello too (RFC 7950, 5.6.4).
    pub version_1_1: bool,
    /// The text, in YANG, for get-schema.
    pub text: Arc<str>,
}

/// Something that happened (RFC 5277).
#[derive(Clone, Debug)]
pub struct Notification {
    /// When.
    pub time: SystemTime,
    /// A notification of the schema and what it says.
    pub body: Arc<Tree>,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// close-session.
    Closed,
    /// kill-session, by the session with this number.
    Killed(u32),
    /// The client went, or said something that no message begins with.
    Dropped(String),
    /// Nothing was asked for too long.
    Idle,
    /// The server stops.
    Shutdown,
    /// The server failed at something; a fault of the program.
    Failed(String),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Killed(by) => write!(f, "killed by session {by}"),
            Self::Dropped(why) => write!(f, "dropped: {why}"),
            Self::Idle => f.write_str("idle for too long"),
            Self::Shutdown => f.write_str("the server stops"),
            Self::Failed(why) => write!(f, "a fault of the server: {why}"),
        }
    }
}

/// The datastores, users and RPCs behind the protocol.
///
/// Calls of one session come one after the other. Calls that change what all sessions share (`commit`,
/// `cancel_commit`, `write` and `remove` of startup) come one after the other over all NETCONF sessions, after the
/// locks were looked at. A call is never dropped half-way, whatever becomes of its client.
pub trait Backend: Send + Sync + 'static {
    /// The schema of the configuration, the state, the RPCs and the notifications.
    fn schema(&self) -> Arc<Schema>;

    /// Modules to tell of, with their texts.
    fn modules(&self) -> Vec<Module>;

    /// What is known of a user; `None` where there is none of this name.
    fn credentials(&self, user: &str) -> impl Future<Output = Option<Credentials>> + Send;

    /// Whether the caller may do this; every operation comes by here first.
    ///
    /// # Errors
    /// Why not, for an `access-denied`.
    fn permit(&self, caller: &Caller, action: &Action<'_>) -> Result<(), String>;

    /// Somebody tried to log in and was refused; `user` is what he called himself.
    fn turned_away(&self, user: &str, from: IpAddr, method: &str);

    /// A session begins: its number, not 0.
    ///
    /// # Errors
    /// Why there can be none now.
    fn open(&self, login: &Login) -> impl Future<Output = Result<u32, String>> + Send;

    /// A session is over, and its locks are released: its candidate goes, and the commit that it began and that
    /// was neither confirmed nor persists is undone.
    fn close(&self, caller: &Caller, ending: &Ending) -> impl Future<Output = ()> + Send;

    /// A configuration; the caller's own candidate, which is running until something is edited.
    ///
    /// # Errors
    /// Where it cannot be read; `data-missing` for a startup that was deleted.
    fn read(&self, caller: &Caller, from: Datastore) -> impl Future<Output = Result<Tree, Refusal>> + Send;

    /// Running and the state, in one tree.
    ///
    /// # Errors
    /// Where the state cannot be learnt.
    fn read_state(&self, caller: &Caller) -> impl Future<Output = Result<Tree, Refusal>> + Send;

    /// Puts a configuration in the place of the caller's candidate or of startup; never of running. A candidate need
    /// not be valid, a startup must. `before` is what [`Backend::read`] gave and the edits began on: where the caller
    /// had no candidate yet, this one begins there, so that what others committed in between is not taken for the
    /// caller's change. `None` where no edit made it: it begins on running as it is now.
    ///
    /// # Errors
    /// Where it cannot; nothing has changed then.
    fn write(
        &self,
        caller: &Caller,
        to: Datastore,
        tree: Tree,
        before: Option<Tree>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Removes startup.
    ///
    /// # Errors
    /// Where it cannot.
    fn remove_startup(&self, caller: &Caller) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Whether a configuration could be in force.
    ///
    /// # Errors
    /// All that is wrong with it, with paths.
    fn validate(&self, caller: &Caller, tree: &Tree) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Whether the caller's candidate has changes that were neither committed nor discarded.
    fn changed(&self, caller: &Caller) -> impl Future<Output = bool> + Send;

    /// The caller's candidate becomes running again.
    ///
    /// # Errors
    /// Where it cannot.
    fn discard(&self, caller: &Caller) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// The confirmed commit that waits, if one does.
    fn pending(&self) -> impl Future<Output = Option<Pending>> + Send;

    /// The caller's candidate becomes running, all or nothing. Without `confirmed` it also confirms a commit that
    /// waits; with it, it carries that on: an undo goes back to before the first. The rules about who may are kept by
    /// the protocol, on what [`Backend::pending`] says.
    ///
    /// # Errors
    /// What is wrong with it, or what someone else changed at the same time; running is as before then.
    fn commit(&self, caller: &Caller, commit: &Commit) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Undoes the confirmed commit that waits.
    ///
    /// # Errors
    /// Where it cannot.
    fn cancel_commit(&self, caller: &Caller) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// An RPC of the schema: `input` has the RPC's node on top and [`tree::Kind::Input`]'s children below it, as
    /// [`tree::xml`] reads them. What it answers, in a tree of the same kind; `None` for `<ok/>`.
    ///
    /// # Errors
    /// What the RPC says.
    fn call(
        &self,
        caller: &Caller,
        rpc: NodeId,
        input: Tree,
    ) -> impl Future<Output = Result<Option<Tree>, Refusal>> + Send;

    /// What of a tree an XPath expression selects, with what is above it and the keys; `None` where there is no
    /// XPath, and then the capability is not told. Prefix to namespace.
    ///
    /// # Errors
    /// Where the expression is wrong: `invalid-value`, or `bad-element` of `filter`.
    fn select(
        &self,
        tree: &Tree,
        expression: &str,
        prefixes: &BTreeMap<String, String>,
    ) -> Option<Result<Tree, RpcError>> {
        let _ = (tree, expression, prefixes);
        None
    }

    /// Whether [`Backend::select`] is there.
    fn has_xpath(&self) -> bool {
        false
    }

    /// What happens from now on.
    fn subscribe(&self) -> broadcast::Receiver<Notification>;
}
