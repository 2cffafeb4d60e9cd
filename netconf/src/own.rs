//! State that the protocol itself keeps: ietf-netconf-monitoring (RFC 6022), the streams (RFC 5277, 3.2.5), and
//! ietf-yang-library (RFC 7895).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use tree::schema::{Module, Node};
use tree::{EditFault, Kind, NodeId, Path, Schema, Tree, Type};

use crate::backend::{Backend, Datastore};
use crate::hello::{capabilities, module_set_id};
use crate::name::{MONITORING, NETMOD_NOTIFICATION, YANG_LIBRARY};
use crate::server::{Inner, RpcCounts};
use crate::subscription::STREAM;
use crate::time::date_and_time;

/// The nodes: `+` a container, `*` a list with its keys, `-` a leaf-list, a leaf otherwise; two blanks a level.
const OUTLINE: [(&str, &str, &str); 3] = [
    (
        "ietf-netconf-monitoring",
        MONITORING,
        "\
+ netconf-state
  + capabilities
    - capability
  + datastores
    * datastore name
      name
      + locks
        + global-lock
          locked-by-session
          locked-time
  + schemas
    * schema identifier version format
      identifier
      version
      format
      namespace
      - location
  + sessions
    * session session-id
      session-id
      transport
      username
      source-host
      login-time
      in-rpcs
      in-bad-rpcs
      out-rpc-errors
      out-notifications
  + statistics
    netconf-start-time
    in-bad-hellos
    in-sessions
    dropped-sessions
    in-rpcs
    in-bad-rpcs
    out-rpc-errors
    out-notifications
",
    ),
    (
        "nc-notifications",
        NETMOD_NOTIFICATION,
        "\
+ netconf
  + streams
    * stream name
      name
      description
      replaySupport
",
    ),
    (
        "ietf-yang-library",
        YANG_LIBRARY,
        "\
+ modules-state
  module-set-id
  * module name revision
    name
    revision
    namespace
    - feature
    conformance-type
",
    ),
];

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(schema()));

/// The schema of the outline: all texts, all state.
fn schema() -> Schema {
    let mut schema = Schema::default();
    for (number, (name, namespace, outline)) in (0..).zip(OUTLINE) {
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        let module = Module { prefix: name.clone(), name, namespace, revision: None };
        schema.modules.push(module);
        // The nodes above, by level.
        let mut above: Vec<NodeId> = Vec::new();
        for line in outline.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            above.truncate((line.len() - line.trim_start().len()) / 2);
            let ty = || Type::String { lengths: Vec::new(), patterns: Vec::new(), message: None };
            let (kind, name) = match &words[..] {
                ["+", name] => (Kind::Container { presence: false }, name),
                ["*", name, ..] => {
                    (Kind::List { keys: Vec::new(), ordered_by_user: false, min: 0, max: None }, name)
                }
                ["-", name] => {
                    let kind = Kind::LeafList {
                        ty: ty(),
                        defaults: Vec::new(),
                        units: None,
                        ordered_by_user: true,
                        min: 0,
                        max: None,
                    };
                    (kind, name)
                }
                [name, ..] => (Kind::Leaf { ty: ty(), default: None, mandatory: false, units: None }, name),
                [] => continue,
            };
            let Ok(id) = u16::try_from(schema.nodes.len()) else { break };
            let (id, parent) = (NodeId(id), above.last().copied());
            match parent.and_then(|parent| schema.nodes.get_mut(usize::from(parent.0))) {
                Some(parent) => {
                    parent.children.push(id);
                    if let Kind::List { keys, .. } = &mut parent.kind
                        && is_key(outline, &parent.name, name)
                    {
                        keys.push(id);
                    }
                }
                None => schema.roots.push(id),
            }
            schema.nodes.push(Node {
                id,
                parent,
                module: tree::schema::ModuleId(number),
                name: (*name).to_owned(),
                kind,
                config: false,
                description: String::new(),
                musts: Vec::new(),
                whens: Vec::new(),
                children: Vec::new(),
            });
            above.push(id);
        }
    }
    schema
}

/// The outline names it behind the list.
fn is_key(outline: &str, list: &str, name: &str) -> bool {
    let mut lines = outline.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.any(|words| {
        words.starts_with(&["*", list]) && words.get(2..).is_some_and(|keys| keys.contains(&name))
    })
}

/// The state now.
///
/// # Errors
/// A fault of the outline.
pub(crate) fn state<B: Backend>(inner: &Inner<B>) -> Result<Tree, EditFault> {
    let mut tree = Tree::new(Arc::clone(&SCHEMA));
    let mut own = Own { tree: &mut tree };
    let monitoring = own.at(&Path::default(), "netconf-state");
    let all = own.at(&monitoring, "capabilities");
    for capability in capabilities(&*inner.backend) {
        own.set(&all, "capability", &capability)?;
    }
    for datastore in Datastore::ALL {
        let entry = own.entry(&own.at(&monitoring, "datastores"), "datastore", &[datastore.word()])?;
        if let Some(held) = inner.locks.holder(datastore) {
            let lock = own.at(&own.at(&entry, "locks"), "global-lock");
            // A session of another kind is told as 0, as in lock-denied.
            let session = inner.session(held.session).map_or(0, |live| live.caller.session);
            own.set(&lock, "locked-by-session", &session.to_string())?;
            own.set(&lock, "locked-time", &date_and_time(held.since))?;
        }
    }
    let modules = inner.backend.modules();
    for module in modules.iter().filter(|module| !module.text.is_empty()) {
        let version = module.revision.as_deref().unwrap_or_default();
        let entry =
            own.entry(&own.at(&monitoring, "schemas"), "schema", &[module.name.as_str(), version, "yang"])?;
        own.set(&entry, "namespace", &module.namespace)?;
        own.set(&entry, "location", "NETCONF")?;
    }
    for live in inner.sessions() {
        let number = live.caller.session.to_string();
        let entry = own.entry(&own.at(&monitoring, "sessions"), "session", &[number.as_str()])?;
        own.set(&entry, "transport", "netconf-ssh")?;
        own.set(&entry, "username", &live.caller.user)?;
        own.set(&entry, "source-host", &live.caller.from.to_string())?;
        own.set(&entry, "login-time", &date_and_time(live.since))?;
        own.counts(&entry, &live.counts)?;
    }
    let statistics = own.at(&monitoring, "statistics");
    own.set(&statistics, "netconf-start-time", &date_and_time(inner.since))?;
    let counts = &inner.counts;
    for (name, count) in [
        ("in-bad-hellos", &counts.in_bad_hellos),
        ("in-sessions", &counts.in_sessions),
        ("dropped-sessions", &counts.dropped_sessions),
    ] {
        own.set(&statistics, name, &count.load(Relaxed).to_string())?;
    }
    own.counts(&statistics, &counts.rpcs)?;
    let streams = own.at(&own.at(&Path::default(), "netconf"), "streams");
    let stream = own.entry(&streams, "stream", &[STREAM])?;
    own.set(&stream, "description", "All that happens")?;
    own.set(&stream, "replaySupport", "false")?;
    let library = own.at(&Path::default(), "modules-state");
    own.set(&library, "module-set-id", &module_set_id(&modules))?;
    for module in &modules {
        let revision = module.revision.as_deref().unwrap_or_default();
        let entry = own.entry(&library, "module", &[module.name.as_str(), revision])?;
        own.set(&entry, "namespace", &module.namespace)?;
        for feature in &module.features {
            own.set(&entry, "feature", feature)?;
        }
        let conformance = if module.implemented { "implement" } else { "import" };
        own.set(&entry, "conformance-type", conformance)?;
    }
    Ok(tree)
}

/// Sets nodes by their names.
struct Own<'tree> {
    tree: &'tree mut Tree,
}

impl Own<'_> {
    fn at(&self, parent: &Path, name: &str) -> Path {
        let node = self.tree.schema().child(parent.node(), name);
        node.map_or_else(Path::default, |node| parent.child(node.id))
    }

    fn entry(&mut self, parent: &Path, list: &str, keys: &[&str]) -> Result<Path, EditFault> {
        let list = self.at(parent, list);
        let entry = match (list.parent(), list.node()) {
            (Some(parent), Some(node)) => parent.entry(node, keys.iter().copied()),
            _ => list,
        };
        self.tree.set(&entry, None)?;
        Ok(entry)
    }

    fn set(&mut self, parent: &Path, name: &str, value: &str) -> Result<(), EditFault> {
        self.tree.set(&self.at(parent, name), Some(value)).map(drop)
    }

    fn counts(&mut self, parent: &Path, counts: &RpcCounts) -> Result<(), EditFault> {
        for (name, count) in [
            ("in-rpcs", &counts.in_rpcs),
            ("in-bad-rpcs", &counts.in_bad_rpcs),
            ("out-rpc-errors", &counts.out_rpc_errors),
            ("out-notifications", &counts.out_notifications),
        ] {
            self.set(parent, name, &count.load(Relaxed).to_string())?;
        }
        Ok(())
    }
}
