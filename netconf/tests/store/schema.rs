//! A schema with one of everything, as a YANG compiler would give it.

use std::sync::Arc;

use tree::schema::{Module, ModuleId, Must, Node, Word};
use tree::{Kind, NodeId, Schema, Type};

/// Namespace of the first module.
pub const NS: &str = "urn:test:plant";
/// Namespace of the second, which has a top-level container of the same name and augments the first.
pub const MORE: &str = "urn:test:more";

/// Nodes are put in the order of the modules, parents first.
struct Builder {
    schema: Schema,
    module: u16,
    config: bool,
}

impl Builder {
    fn add(&mut self, parent: Option<NodeId>, name: &str, kind: Kind) -> NodeId {
        let id = NodeId(u16::try_from(self.schema.nodes.len()).unwrap());
        match parent {
            Some(parent) => self.schema.nodes[usize::from(parent.0)].children.push(id),
            None => self.schema.roots.push(id),
        }
        self.schema.nodes.push(Node {
            id,
            parent,
            module: ModuleId(self.module),
            name: name.into(),
            kind,
            config: self.config,
            description: String::new(),
            musts: Vec::<Must>::new(),
            whens: Vec::new(),
            children: Vec::new(),
        });
        id
    }

    fn container(&mut self, parent: Option<NodeId>, name: &str) -> NodeId {
        self.add(parent, name, Kind::Container { presence: false })
    }

    fn leaf(&mut self, parent: NodeId, name: &str, ty: Type, default: Option<&str>) -> NodeId {
        let default = default.map(Into::into);
        self.add(Some(parent), name, Kind::Leaf { ty, default, mandatory: false, units: None })
    }

    fn leaf_list(&mut self, parent: NodeId, name: &str, ordered_by_user: bool, defaults: &[&str]) -> NodeId {
        let defaults = defaults.iter().map(|text| (*text).into()).collect();
        let kind = Kind::LeafList { ty: text(), defaults, units: None, ordered_by_user, min: 0, max: None };
        self.add(Some(parent), name, kind)
    }

    /// A list with these keys, all texts.
    fn list(&mut self, parent: Option<NodeId>, name: &str, keys: &[&str], ordered_by_user: bool) -> NodeId {
        let list = self.add(parent, name, Kind::List { keys: vec![], ordered_by_user, min: 0, max: None });
        let ids: Vec<NodeId> = keys.iter().map(|key| self.leaf(list, key, text(), None)).collect();
        if let Kind::List { keys, .. } = &mut self.schema.nodes[usize::from(list.0)].kind {
            *keys = ids;
        }
        list
    }
}

fn text() -> Type {
    Type::String { lengths: vec![], patterns: vec![], message: None }
}

fn number(first: i128, last: i128) -> Type {
    Type::Integer { bits: 32, signed: false, ranges: vec![(first, last)], message: None }
}

fn words(words: &[&str]) -> Vec<Word> {
    words.iter().map(|name| Word { name: (*name).into(), description: String::new() }).collect()
}

/// ```text
/// plant:port* [name]        number 1..65, lane 0..3, mtu 64..10240 = 9000, description, up, kind (identity),
///                           more:label, state { speed packets }
/// plant:link* [name]        (user's order) lan-port wan-port, stop* (user's order)
/// plant:balancer            method, header? { tpid }, flow* [name zone] { priority tags* = a b, match { vlan = 1 } }
/// plant:rpc reset           in: port mode, item*  out: was, done
/// plant:notification moved  port, up
/// more:balancer             note
/// ```
pub fn schema() -> Arc<Schema> {
    let module = |name: &str, namespace: &str, prefix: &str| Module {
        name: name.into(),
        namespace: namespace.into(),
        prefix: prefix.into(),
        revision: Some("2024-01-01".into()),
    };
    let modules = vec![module("plant", NS, "pl"), module("more", MORE, "mo")];
    let mut b = Builder { schema: Schema { modules, ..Schema::default() }, module: 0, config: true };
    let port = b.list(None, "port", &["name"], false);
    b.leaf(port, "number", number(1, 65), None);
    b.leaf(port, "lane", number(0, 3), None);
    b.leaf(port, "mtu", number(64, 10240), Some("9000"));
    b.leaf(port, "description", text(), None);
    b.leaf(port, "up", Type::Empty, None);
    b.leaf(port, "kind", Type::Identity(words(&["plant:copper", "more:fibre"])), None);
    b.module = 1;
    b.leaf(port, "label", text(), None);
    b.module = 0;
    b.config = false;
    let state = b.container(Some(port), "state");
    b.leaf(state, "speed", text(), None);
    b.leaf(state, "packets", number(0, 1 << 31), None);
    b.config = true;
    let link = b.list(None, "link", &["name"], true);
    b.leaf(link, "lan-port", text(), None);
    b.leaf(link, "wan-port", text(), None);
    b.leaf_list(link, "stop", true, &[]);
    let balancer = b.container(None, "balancer");
    b.leaf(balancer, "method", Type::Enumeration(words(&["layer-3", "layer-4"])), Some("layer-3"));
    let header = b.add(Some(balancer), "header", Kind::Container { presence: true });
    b.leaf(header, "tpid", number(0, 65535), None);
    let flow = b.list(Some(balancer), "flow", &["name", "zone"], false);
    b.leaf(flow, "priority", number(1, 65535), None);
    b.leaf_list(flow, "tags", false, &["a", "b"]);
    let matching = b.container(Some(flow), "match");
    b.leaf(matching, "vlan", number(0, 4095), Some("1"));
    b.leaf(matching, "text", text(), None);
    b.config = false;
    let reset = b.add(None, "reset", Kind::Rpc);
    let input = b.add(Some(reset), "input", Kind::Input);
    b.leaf(input, "port", text(), None);
    b.leaf(input, "mode", Type::Enumeration(words(&["soft", "hard"])), None);
    let item = b.list(Some(input), "item", &[], false);
    b.leaf(item, "size", number(0, 9), None);
    let output = b.add(Some(reset), "output", Kind::Output);
    b.leaf(output, "was", text(), None);
    b.leaf(output, "done", Type::Empty, None);
    let moved = b.add(None, "moved", Kind::Notification);
    b.leaf(moved, "port", text(), None);
    b.leaf(moved, "up", Type::Boolean, None);
    b.module = 1;
    b.config = true;
    let other = b.container(None, "balancer");
    b.leaf(other, "note", text(), None);
    Arc::new(b.schema)
}
