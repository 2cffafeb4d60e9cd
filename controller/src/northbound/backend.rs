//! NETCONF's side of the datastores: sessions, candidates, commits, RPCs, and where the server listens.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{LookupQuery, Request, Response, Severity, UnitMode};
use netconf::{
    Access as Needed, Action, Backend, Caller, Commit, Credentials, Datastore, Ending, ErrorPath, Login,
    Module, Notification, Pending, Refusal, RpcError, Tag,
};
use serde_json::Value;
use tokio::sync::broadcast;
use tree::{NodeId, Path, Schema, Tree};

use crate::access::{self, Access};
use crate::datastore::{ApplyError, Datastores, Invalid, Options, Who};
use crate::session::Session;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// Notifications that a slow subscriber may be behind.
const BEHIND: usize = 1024;

/// The backend of the NETCONF server.
pub struct Northbound<T> {
    desk: Arc<Desk<T>>,
    telemetry: Telemetry<T>,
    sessions: Mutex<HashMap<u32, Session>>,
    notifications: broadcast::Sender<Notification>,
}

impl<T: Target> Northbound<T> {
    /// For a desk that answers, and what it reads.
    #[must_use]
    pub fn new(desk: Arc<Desk<T>>, telemetry: Telemetry<T>) -> Arc<Self> {
        Arc::new(Northbound {
            desk,
            telemetry,
            sessions: Mutex::default(),
            notifications: broadcast::Sender::new(BEHIND),
        })
    }

    /// Where notifications go in.
    #[must_use]
    pub fn notifications(&self) -> broadcast::Sender<Notification> {
        self.notifications.clone()
    }

    fn datastores(&self) -> &Arc<Datastores> {
        &self.desk.datastores
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u32, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the session for as long as something is done in its name: calls of one session never overlap.
    fn take(&self, caller: &Caller) -> Result<Session, Refusal> {
        self.sessions()
            .remove(&caller.session)
            .ok_or_else(|| Refusal::from(RpcError::new(Tag::OperationFailed, "the session is over")))
    }

    fn put_back(&self, session: Session) {
        self.sessions().insert(session.who.session, session);
    }

    /// Asks the desk what a CLI would ask.
    async fn ask(&self, caller: &Caller, request: Request) -> Result<Value, Refusal> {
        let mut session = self.take(caller)?;
        let response = self.desk.answer(&mut session, request).await;
        self.put_back(session);
        match response {
            Response::Ok(value) => Ok(value),
            Response::Error(reason) => Err(RpcError::new(Tag::OperationFailed, reason).into()),
        }
    }

    fn refusal(&self, error: &ApplyError) -> Refusal {
        let schema = self.datastores().schema();
        match error {
            ApplyError::Invalid(invalid) => refusal_of(schema, invalid),
            ApplyError::Conflict(conflicts) => {
                let errors = conflicts.iter().map(|conflict| {
                    let text = format!(
                        "{}: was changed by {} since this candidate was made",
                        conflict.words, conflict.by
                    );
                    let error = RpcError::new(Tag::InUse, text).app_tag("edit-conflict");
                    error.at(ErrorPath::of(schema, &conflict.path))
                });
                Refusal(errors.collect())
            }
            ApplyError::Unconfirmed(reason) => RpcError::new(Tag::InUse, reason).into(),
            ApplyError::Confirm(reason) => RpcError::new(Tag::InvalidValue, reason).into(),
            error => RpcError::new(Tag::OperationFailed, error.to_string()).into(),
        }
    }
}

/// Every fault of a configuration, with its path.
fn refusal_of(schema: &Schema, invalid: &Invalid) -> Refusal {
    match invalid {
        Invalid::Model(faults) => {
            let errors = faults.iter().map(|fault| {
                let mut error = RpcError::new(tag_of(fault.kind), fault.to_string());
                error.app_tag.clone_from(&fault.app_tag);
                error.at(ErrorPath::of(schema, &fault.at))
            });
            Refusal(errors.collect())
        }
        invalid => RpcError::new(Tag::OperationFailed, invalid.to_string()).into(),
    }
}

/// The error-tag that RFC 7950, 15 has for a broken rule.
fn tag_of(kind: yang::FaultKind) -> Tag {
    match kind {
        yang::FaultKind::Leafref | yang::FaultKind::Mandatory => Tag::DataMissing,
        yang::FaultKind::Range
        | yang::FaultKind::Length
        | yang::FaultKind::Pattern
        | yang::FaultKind::Type => Tag::InvalidValue,
        yang::FaultKind::Unknown | yang::FaultKind::When => Tag::UnknownElement,
        yang::FaultKind::Must
        | yang::FaultKind::Unique
        | yang::FaultKind::Elements
        | yang::FaultKind::Duplicate => Tag::OperationFailed,
    }
}

impl<T: Target> Backend for Northbound<T> {
    fn schema(&self) -> Arc<Schema> {
        self.datastores().schema().clone()
    }

    fn modules(&self) -> Vec<Module> {
        let schema = self.datastores().schema();
        yang::MODULES
            .iter()
            .map(|module| Module {
                name: module.name.to_owned(),
                revision: Some(module.revision.to_owned()),
                namespace: module.namespace.to_owned(),
                features: Vec::new(),
                // The others have nothing but types.
                implemented: schema
                    .roots
                    .iter()
                    .any(|id| schema.module_of(schema.node(*id)).name == module.name),
                version_1_1: true,
                text: module.text.into(),
            })
            .collect()
    }

    async fn credentials(&self, user: &str) -> Option<Credentials> {
        let access = Access::of(&self.datastores().running().tree);
        access.accounts.get(user).map(|account| Credentials {
            role: account.role,
            keys: account.ssh_key.clone(),
            password_hash: account.password_hash.clone(),
        })
    }

    fn permit(&self, caller: &Caller, action: &Action<'_>) -> Result<(), String> {
        let needed = match action.access {
            Needed::Session => return Ok(()),
            Needed::Look => access::Action::Look,
            // Of our RPCs one changes the configuration, and one only looks.
            Needed::Call if action.name == "rollback" => access::Action::Configure,
            Needed::Call if action.name == "lookup" => access::Action::Look,
            Needed::Call => access::Action::Call,
            Needed::Configure => access::Action::Configure,
        };
        // As it is now: who was taken out is out.
        let access = Access::of(&self.datastores().running().tree);
        let role = access.accounts.get(&caller.user).map(|account| account.role);
        let Some(role) = role else { return Err(format!("user {} has no role any more", caller.user)) };
        access::permit(&caller.user, role.min(caller.role), needed).map_err(|denied| denied.to_string())
    }

    fn turned_away(&self, user: &str, from: IpAddr, method: &str) {
        let reason = format!("NETCONF login by {method} from {from} refused");
        self.desk.access_event(Severity::Warning, user, reason);
    }

    async fn open(&self, login: &Login) -> Result<u32, String> {
        let session = Session::new(login.user.clone(), login.role, &format!("netconf {}", login.from));
        let number = session.who.session;
        self.desk.audit.record(&session.who, "login", None, Ok(()));
        let reason = format!("NETCONF login from {}, session {number}", login.from);
        self.desk.access_event(Severity::Info, &login.user, reason);
        self.put_back(session);
        Ok(number)
    }

    async fn close(&self, caller: &Caller, ending: &Ending) {
        let session = self.sessions().remove(&caller.session);
        if let Some(session) = session {
            self.datastores().session_ended(&session.who).await;
            self.desk.audit.record(&session.who, "logout", Some(&ending.to_string()), Ok(()));
            let reason = format!("NETCONF session {} ended: {ending}", caller.session);
            self.desk.access_event(Severity::Info, &session.who.user, reason);
        }
    }

    async fn read(&self, caller: &Caller, from: Datastore) -> Result<Tree, Refusal> {
        let tree = match from {
            Datastore::Running => self.datastores().running().tree.clone(),
            Datastore::Candidate => {
                let sessions = self.sessions();
                match sessions.get(&caller.session).and_then(Session::candidate) {
                    Some(candidate) => candidate.tree().clone(),
                    None => self.datastores().running().tree.clone(),
                }
            }
            Datastore::Startup => {
                let datastores = self.datastores().clone();
                tokio::task::block_in_place(|| datastores.startup())
                    .map_err(|error| Refusal::from(RpcError::new(Tag::OperationFailed, error.to_string())))?
            }
        };
        Ok(access::visible(&tree, caller.role))
    }

    async fn read_state(&self, caller: &Caller) -> Result<Tree, Refusal> {
        let schema = self.datastores().schema();
        let state = self.telemetry.state(schema).await;
        let state =
            state.map_err(|error| Refusal::from(RpcError::new(Tag::OperationFailed, error.to_string())))?;
        let mut tree = access::visible(&self.datastores().running().tree, caller.role);
        tree.overlay(&state);
        Ok(tree)
    }

    async fn write(
        &self,
        caller: &Caller,
        to: Datastore,
        tree: Tree,
        before: Option<Tree>,
    ) -> Result<(), Refusal> {
        let mut session = self.take(caller)?;
        let result = match to {
            Datastore::Startup => {
                self.datastores().save_tree(&session.who, tree).await.map_err(|error| self.refusal(&error))
            }
            Datastore::Candidate | Datastore::Running => {
                // What others have applied since it was read is a conflict, not overwritten.
                session.candidate_from(self.datastores(), before).replace(tree);
                Ok(())
            }
        };
        self.put_back(session);
        result
    }

    async fn remove_startup(&self, caller: &Caller) -> Result<(), Refusal> {
        let empty = Tree::new(self.datastores().schema().clone());
        self.write(caller, Datastore::Startup, empty, None).await
    }

    async fn validate(&self, _: &Caller, tree: &Tree) -> Result<(), Refusal> {
        self.datastores().validate(tree.clone()).await.map_err(|error| self.refusal(&error))
    }

    async fn changed(&self, caller: &Caller) -> bool {
        let sessions = self.sessions();
        let candidate = sessions.get(&caller.session).and_then(Session::candidate);
        candidate.is_some_and(|candidate| candidate.is_changed())
    }

    async fn discard(&self, caller: &Caller) -> Result<(), Refusal> {
        if let Some(session) = self.sessions().get_mut(&caller.session) {
            session.discard();
        }
        Ok(())
    }

    async fn pending(&self) -> Option<Pending> {
        self.datastores().pending().map(|(session, persist)| Pending { session, persist })
    }

    async fn commit(&self, caller: &Caller, commit: &Commit) -> Result<(), Refusal> {
        let mut session = self.take(caller)?;
        let confirmed = commit.confirmed.as_ref();
        let options = Options {
            confirmed: confirmed.map(|confirmed| confirmed.timeout),
            persist: confirmed.and_then(|confirmed| confirmed.persist.clone()),
            persist_id: commit.persist_id.clone(),
            of_session: true,
            comment: None,
        };
        let who = session.who.clone();
        let candidate = session.candidate_mut(self.datastores());
        let result = self.datastores().apply(&who, candidate, options).await;
        self.put_back(session);
        result.map(drop).map_err(|error| self.refusal(&error))
    }

    async fn cancel_commit(&self, caller: &Caller) -> Result<(), Refusal> {
        let who = Who {
            user: caller.user.clone(),
            origin: format!("netconf {}", caller.from),
            session: caller.session,
        };
        self.datastores().cancel(&who).await.map_err(|error| self.refusal(&error))
    }

    async fn call(&self, caller: &Caller, rpc: NodeId, input: Tree) -> Result<Option<Tree>, Refusal> {
        let schema = self.datastores().schema().clone();
        let name = schema.node(rpc).name.clone();
        let part = |name: &str| {
            let below = schema.child(Some(rpc), name).map(|node| node.id);
            below.map_or_else(Path::default, |below| Path::default().child(rpc).child(below))
        };
        let given = tree::json::value(&input, &part("input"));
        let text = |leaf: &str| given[leaf].as_str().unwrap_or_default().to_owned();
        match name.as_str() {
            "set-bypass-ecofilter-unit" => {
                let mode = match text("mode").as_str() {
                    "bypass" => UnitMode::Bypass,
                    "primary" => UnitMode::Primary,
                    _ => UnitMode::Auto,
                };
                self.ask(caller, Request::SetUnitMode { unit: text("unit"), mode }).await?;
                Ok(None)
            }
            "clear-hold" => {
                self.ask(caller, Request::ClearHold { unit: text("unit"), pair: text("pair") }).await?;
                Ok(None)
            }
            "lookup" => {
                let query: LookupQuery = serde_json::from_value(numbers(given))
                    .map_err(|error| Refusal::from(RpcError::new(Tag::InvalidValue, error.to_string())))?;
                let answer = self.ask(caller, Request::Lookup(query)).await?;
                let answer: serde_json::Map<String, Value> = answer
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                let output = tree::json::read_at(&schema, &part("output"), &answer.into());
                let output = output.map_err(|faults| {
                    let reasons: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    Refusal::from(RpcError::new(Tag::OperationFailed, reasons.join("; ")))
                })?;
                Ok(Some(output))
            }
            "rollback" => {
                let number = given["number"].as_u64().unwrap_or_default() as u32;
                self.ask(caller, Request::Rollback { number }).await?;
                self.ask(
                    caller,
                    Request::Apply { confirmed: None, comment: Some(format!("rollback {number}")) },
                )
                .await?;
                Ok(None)
            }
            name => Err(RpcError::new(Tag::OperationNotSupported, format!("{name} is not there")).into()),
        }
    }

    fn has_xpath(&self) -> bool {
        true
    }

    fn select(
        &self,
        tree: &Tree,
        expression: &str,
        prefixes: &BTreeMap<String, String>,
    ) -> Option<Result<Tree, RpcError>> {
        let data = tree::json::write(tree, &Path::default(), tree::Defaults::Explicit);
        let prefixes: Vec<(String, String)> =
            prefixes.iter().map(|(prefix, namespace)| (prefix.clone(), namespace.clone())).collect();
        Some(match self.datastores().yang().xpath(&data, expression, &prefixes) {
            Ok(paths) => {
                let mut selected = Tree::new(tree.schema().clone());
                for path in paths {
                    selected.overlay(&tree.only(&path));
                }
                Ok(selected)
            }
            Err(error) => Err(RpcError::bad_element("filter", error.to_string())),
        })
    }

    fn subscribe(&self) -> broadcast::Receiver<Notification> {
        self.notifications.subscribe()
    }
}

/// Numbers that the tree has as texts, as numbers.
fn numbers(mut given: Value) -> Value {
    for leaf in ["proto", "src-port", "dst-port"] {
        if let Some(number) = given[leaf].as_str().and_then(|text| text.parse::<u64>().ok()) {
            given[leaf] = number.into();
        }
    }
    given
}
