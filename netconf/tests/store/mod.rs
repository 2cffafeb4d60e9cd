//! Datastores in memory, for the tests.
#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

pub mod client;
pub mod schema;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use api::Role;
use netconf::{
    Access, Action, Backend, Caller, Commit, Credentials, Datastore, Ending, ErrorPath, Login, Module,
    Notification, Pending, Refusal, RpcError, Tag,
};
use tokio::sync::broadcast;
use tree::{Kind, NodeId, Path, Schema, Tree};

/// What there is.
pub struct Store {
    pub schema: Arc<Schema>,
    inner: Mutex<Inner>,
    next: AtomicU32,
    events: broadcast::Sender<Notification>,
    pub users: HashMap<String, Credentials>,
}

struct Inner {
    running: Tree,
    startup: Option<Tree>,
    /// Begun on, and as it is.
    candidates: BTreeMap<u32, (Tree, Tree)>,
    /// The confirmed commit, the running before it, and its number.
    pending: Option<(Pending, Tree, u64)>,
    commits: u64,
    endings: Vec<(u32, Ending)>,
}

impl Store {
    pub fn new(users: HashMap<String, Credentials>) -> Arc<Self> {
        let schema = schema::schema();
        let running = Tree::new(Arc::clone(&schema));
        let inner = Inner {
            startup: Some(running.clone()),
            running,
            candidates: BTreeMap::new(),
            pending: None,
            commits: 0,
            endings: Vec::new(),
        };
        Arc::new(Self {
            schema,
            inner: Mutex::new(inner),
            next: AtomicU32::new(1),
            events: broadcast::Sender::new(100),
            users,
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub fn path(&self, xpath: &str) -> Path {
        Path::parse(&self.schema, xpath).unwrap()
    }

    pub fn running(&self) -> Tree {
        self.inner().running.clone()
    }

    pub fn set_running(&self, tree: Tree) {
        self.inner().running = tree;
    }

    /// Sessions that ended, and why.
    pub fn endings(&self) -> Vec<(u32, Ending)> {
        self.inner().endings.clone()
    }

    pub fn candidates(&self) -> usize {
        self.inner().candidates.len()
    }

    pub fn subscribers(&self) -> usize {
        self.events.receiver_count()
    }

    /// Tells that a port moved.
    pub fn moved(&self, port: &str) {
        let mut body = Tree::new(Arc::clone(&self.schema));
        body.set(&self.path("/plant:moved/port"), Some(port)).unwrap();
        body.set(&self.path("/plant:moved/up"), Some("true")).unwrap();
        let event = Notification { time: SystemTime::UNIX_EPOCH, body: Arc::new(body) };
        self.events.send(event).unwrap();
    }

    /// Each link's ports must be there.
    fn check(&self, tree: &Tree) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        let ports = tree.keys(&self.path("/plant:port"), &[]);
        let list = self.path("/plant:link");
        for (keys, fields) in tree.entries(&list) {
            for name in ["lan-port", "wan-port"] {
                let leaf = self.schema.at(&["link", name]).unwrap();
                if let Some(port) = fields.leaf(leaf.id).filter(|port| !ports.contains(port)) {
                    let at = Path::default().step(leaf.parent.unwrap(), Arc::clone(keys)).child(leaf.id);
                    let error = RpcError::new(Tag::DataMissing, format!("there is no port {port}"));
                    errors.push(error.app_tag("instance-required").at(ErrorPath::of(&self.schema, &at)));
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Refusal(errors)) }
    }

    fn undo(&self, number: u64) {
        let mut inner = self.inner();
        if inner.pending.as_ref().is_some_and(|pending| pending.2 == number)
            && let Some((_, before, _)) = inner.pending.take()
        {
            inner.running = before;
        }
    }
}

/// The store is behind an `Arc`, since a confirmed commit needs it later.
pub struct Shared(pub Arc<Store>);

impl Backend for Shared {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.0.schema)
    }

    fn modules(&self) -> Vec<Module> {
        let module = |name: &str, namespace: &str, version_1_1| Module {
            name: name.into(),
            revision: Some("2024-01-01".into()),
            namespace: namespace.into(),
            features: vec!["fast".into()],
            implemented: true,
            version_1_1,
            text: format!("module {name} {{ /* <&> */ }}").into(),
        };
        vec![module("plant", schema::NS, true), module("more", schema::MORE, false)]
    }

    async fn credentials(&self, user: &str) -> Option<Credentials> {
        self.0.users.get(user).cloned()
    }

    fn permit(&self, caller: &Caller, action: &Action<'_>) -> Result<(), String> {
        let needed = match action.access {
            Access::Session | Access::Look => Role::ReadOnly,
            Access::Call => Role::Operator,
            Access::Configure => Role::Admin,
        };
        if caller.role >= needed {
            return Ok(());
        }
        Err(format!("{} may not {}", caller.user, action.name))
    }

    fn turned_away(&self, _user: &str, _from: IpAddr, _method: &str) {}

    async fn open(&self, login: &Login) -> Result<u32, String> {
        if login.user == "late" {
            return Err("the store is closed".into());
        }
        Ok(self.0.next.fetch_add(1, Relaxed))
    }

    async fn close(&self, caller: &Caller, ending: &Ending) {
        let mut inner = self.0.inner();
        inner.candidates.remove(&caller.session);
        inner.endings.push((caller.session, ending.clone()));
        if let Some((pending, before, _)) =
            inner.pending.take_if(|(pending, ..)| pending.session == caller.session)
        {
            if pending.persist.is_some() {
                inner.pending = Some((Pending { session: 0, ..pending }, before, inner.commits));
            } else {
                inner.running = before;
            }
        }
    }

    async fn read(&self, caller: &Caller, from: Datastore) -> Result<Tree, Refusal> {
        let inner = self.0.inner();
        Ok(match from {
            Datastore::Running => inner.running.clone(),
            Datastore::Candidate => {
                inner.candidates.get(&caller.session).map_or(&inner.running, |(_, tree)| tree).clone()
            }
            Datastore::Startup => inner
                .startup
                .clone()
                .ok_or_else(|| RpcError::new(Tag::DataMissing, "there is no startup configuration"))?,
        })
    }

    async fn read_state(&self, _caller: &Caller) -> Result<Tree, Refusal> {
        let mut tree = self.0.running();
        let list = self.0.path("/plant:port");
        let names: Vec<String> = tree.keys(&list, &[]).into_iter().map(Into::into).collect();
        let node = |name: &str| self.0.schema.at(&["port", "state", name]).unwrap().id;
        let state = self.0.schema.at(&["port", "state"]).unwrap().id;
        for name in names {
            let entry = Path::default().entry(list.node().unwrap(), [name]).child(state);
            tree.set(&entry.child(node("speed")), Some("10g")).unwrap();
            tree.set(&entry.child(node("packets")), Some("7")).unwrap();
        }
        Ok(tree)
    }

    async fn write(
        &self,
        caller: &Caller,
        to: Datastore,
        tree: Tree,
        before: Option<Tree>,
    ) -> Result<(), Refusal> {
        if to == Datastore::Startup {
            self.0.check(&tree)?;
            self.0.inner().startup = Some(tree);
            return Ok(());
        }
        let mut inner = self.0.inner();
        let base = before.unwrap_or_else(|| inner.running.clone());
        inner.candidates.entry(caller.session).or_insert((base.clone(), base)).1 = tree;
        Ok(())
    }

    async fn remove_startup(&self, _caller: &Caller) -> Result<(), Refusal> {
        self.0.inner().startup = None;
        Ok(())
    }

    async fn validate(&self, _caller: &Caller, tree: &Tree) -> Result<(), Refusal> {
        self.0.check(tree)
    }

    async fn changed(&self, caller: &Caller) -> bool {
        self.0.inner().candidates.get(&caller.session).is_some_and(|(base, tree)| base != tree)
    }

    async fn discard(&self, caller: &Caller) -> Result<(), Refusal> {
        self.0.inner().candidates.remove(&caller.session);
        Ok(())
    }

    async fn pending(&self) -> Option<Pending> {
        self.0.inner().pending.as_ref().map(|(pending, ..)| pending.clone())
    }

    async fn commit(&self, caller: &Caller, commit: &Commit) -> Result<(), Refusal> {
        let candidate = self.0.inner().candidates.get(&caller.session).cloned();
        if let Some((_, tree)) = &candidate {
            self.0.check(tree)?;
        }
        let mut inner = self.0.inner();
        let before = inner.running.clone();
        if let Some((base, tree)) = candidate {
            let merged = tree::merge(&base, &tree, &inner.running).map_err(|conflicts| {
                let told = conflicts.into_iter().map(|conflict| {
                    let path = ErrorPath::of(&self.0.schema, &conflict.path);
                    RpcError::new(Tag::OperationFailed, "someone else changed this").at(path)
                });
                Refusal(told.collect())
            })?;
            inner.running = merged;
        }
        inner.candidates.remove(&caller.session);
        inner.commits += 1;
        let number = inner.commits;
        let before = inner.pending.take().map_or(before, |(_, before, _)| before);
        if let Some(confirmed) = &commit.confirmed {
            let pending = Pending { session: caller.session, persist: confirmed.persist.clone() };
            inner.pending = Some((pending, before, number));
            let (store, timeout) = (Arc::clone(&self.0), confirmed.timeout);
            tokio::spawn(async move {
                tokio::time::sleep(timeout).await;
                store.undo(number);
            });
        }
        Ok(())
    }

    async fn cancel_commit(&self, _caller: &Caller) -> Result<(), Refusal> {
        let number = self.0.inner().pending.as_ref().map_or(0, |pending| pending.2);
        self.0.undo(number);
        Ok(())
    }

    async fn call(&self, _caller: &Caller, rpc: NodeId, input: Tree) -> Result<Option<Tree>, Refusal> {
        let node = self.0.schema.node(rpc);
        assert_eq!((node.name.as_str(), &node.kind), ("reset", &Kind::Rpc));
        let port = input.value(&self.0.path("/plant:reset/input/port"));
        match port {
            None => Err(RpcError::missing_element("port", "reset needs a port").into()),
            Some("quiet") => Ok(None),
            Some("fault") => panic!("a fault of the backend"),
            Some(port) => {
                let items = input.entries(&self.0.path("/plant:reset/input/item")).count();
                let mut output = Tree::new(Arc::clone(&self.0.schema));
                let was = format!("{port} {items}");
                output.set(&self.0.path("/plant:reset/output/was"), Some(&was)).unwrap();
                output.set(&self.0.path("/plant:reset/output/done"), None).unwrap();
                Ok(Some(output))
            }
        }
    }

    fn subscribe(&self) -> broadcast::Receiver<Notification> {
        self.0.events.subscribe()
    }
}

/// Someone with a role.
pub fn login(user: &str, role: Role) -> Login {
    Login { user: user.into(), role, from: IpAddr::V4(Ipv4Addr::LOCALHOST) }
}
