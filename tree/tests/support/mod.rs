//! A schema of two modules with a node of every kind, and trees that grow from numbers.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::{Arc, LazyLock};

use tree::schema::{Module, ModuleId, Pattern, Word};
use tree::{Data, Kind, Node, NodeId, Path, Schema, Tree, Type};

/// A node to be, before it has a number.
pub(crate) struct Plan {
    name: &'static str,
    kind: Kind,
    keys: Vec<&'static str>,
    target: Option<&'static str>,
    module: u16,
    state: bool,
    when: bool,
    below: Vec<Plan>,
}

fn plan(name: &'static str, kind: Kind, below: Vec<Plan>) -> Plan {
    Plan { name, kind, keys: vec![], target: None, module: 0, state: false, when: false, below }
}

impl Plan {
    fn state(mut self) -> Self {
        self.state = true;
        self
    }

    fn extra(mut self) -> Self {
        self.module = 1;
        self
    }

    fn when(mut self) -> Self {
        self.when = true;
        self
    }

    fn default(mut self, value: &str) -> Self {
        match &mut self.kind {
            Kind::Leaf { default, .. } => *default = Some(value.into()),
            Kind::LeafList { defaults, .. } => defaults.push(value.into()),
            _ => unreachable!(),
        }
        self
    }

    fn by_user(mut self) -> Self {
        match &mut self.kind {
            Kind::List { ordered_by_user, .. } | Kind::LeafList { ordered_by_user, .. } => {
                *ordered_by_user = true;
            }
            _ => unreachable!(),
        }
        self
    }
}

fn container(name: &'static str, below: Vec<Plan>) -> Plan {
    plan(name, Kind::Container { presence: false }, below)
}

fn presence(name: &'static str, below: Vec<Plan>) -> Plan {
    plan(name, Kind::Container { presence: true }, below)
}

fn list(name: &'static str, keys: &[&'static str], below: Vec<Plan>) -> Plan {
    let kind = Kind::List { keys: vec![], ordered_by_user: false, min: 0, max: None };
    Plan { keys: keys.to_vec(), ..plan(name, kind, below) }
}

fn leaf(name: &'static str, ty: Type) -> Plan {
    plan(name, Kind::Leaf { ty, default: None, mandatory: false, units: None }, vec![])
}

fn leaf_list(name: &'static str, ty: Type) -> Plan {
    let kind =
        Kind::LeafList { ty, defaults: vec![], units: None, ordered_by_user: false, min: 0, max: None };
    plan(name, kind, vec![])
}

fn reference(name: &'static str, path: &str, target: &'static str) -> Plan {
    Plan { target: Some(target), ..leaf(name, refers(path)) }
}

fn refers(path: &str) -> Type {
    let ty = Box::new(name());
    Type::Leafref { target: NodeId(0), path: path.into(), require_instance: true, ty }
}

pub(crate) fn number(bits: u8, first: i128, last: i128) -> Type {
    Type::Integer { bits, signed: first < 0, ranges: vec![(first, last)], message: None }
}

pub(crate) fn name() -> Type {
    let pattern = Pattern { regex: r"[a-zA-Z0-9\-_.]*".into(), inverted: false, message: None };
    Type::String { lengths: vec![(1, 63)], patterns: vec![pattern], message: None }
}

pub(crate) fn text() -> Type {
    Type::String { lengths: vec![], patterns: vec![], message: None }
}

pub(crate) fn words(words: &[&str]) -> Vec<Word> {
    words.iter().map(|name| Word { name: (*name).into(), description: format!("means {name}") }).collect()
}

fn choice(names: &[&str]) -> Type {
    Type::Enumeration(words(names))
}

fn port_or_range() -> Type {
    let pattern = Pattern { regex: "[0-9]+-[0-9]+".into(), inverted: false, message: None };
    let range = Type::String { lengths: vec![], patterns: vec![pattern], message: None };
    Type::Union(vec![number(16, 0, 65535), range, choice(&["any"])])
}

fn plans() -> Vec<Plan> {
    vec![
        list(
            "port",
            &["name"],
            vec![
                leaf("name", name()),
                leaf("number", number(8, 1, 65)),
                leaf("lane", number(8, 0, 3)).default("0"),
                leaf("speed", choice(&["10g", "25g", "40g", "100g"])),
                leaf("mtu", number(16, 64, 10240)).default("9000"),
                leaf("description", text()),
                container("state", vec![leaf("up", Type::Boolean), leaf("octets", number(64, 0, 1 << 63))])
                    .state(),
                leaf("colour", choice(&["red", "green"])).extra(),
                container("optics", vec![leaf("power", decimal())]).extra(),
            ],
        ),
        container(
            "ecofilter-balancer",
            vec![
                leaf("balancing-method", choice(&["layer-3", "layer-4", "dst-ip"])).default("layer-3"),
                container(
                    "steering-header",
                    vec![
                        leaf("mode", choice(&["native", "dot1q"])).default("native"),
                        leaf("base-vid", number(16, 1, 4094)).default("100").when(),
                    ],
                ),
                list(
                    "link",
                    &["name"],
                    vec![
                        leaf("name", name()),
                        reference("lan-port", "/sl:port/sl:name", "port/name"),
                        reference("wan-port", "/sl:port/sl:name", "port/name"),
                    ],
                )
                .by_user(),
                list(
                    "ecofilter-unit",
                    &["name"],
                    vec![
                        leaf("name", name()),
                        leaf("cores", number(16, 1, 256)).default("1"),
                        leaf("rebalance", choice(&["on", "off"])),
                        list(
                            "pair",
                            &["name"],
                            vec![leaf("name", name()), leaf("weight", number(8, 1, 100)).default("1")],
                        ),
                        reference(
                            "first-pair",
                            "../sl:pair/sl:name",
                            "ecofilter-balancer/ecofilter-unit/pair/name",
                        ),
                    ],
                ),
                list(
                    "flow",
                    &["name"],
                    vec![
                        leaf("name", name()),
                        leaf("priority", number(16, 1, 65535)),
                        Plan {
                            target: Some("ecofilter-balancer/link/name"),
                            ..leaf_list("apply-to-links", refers("../../sl:link/sl:name"))
                        },
                        container(
                            "match",
                            vec![
                                leaf("ip-proto", number(8, 0, 255)),
                                leaf("src-port", port_or_range()),
                                leaf("dst-port", port_or_range()),
                            ],
                        ),
                        leaf("action", choice(&["bypass", "drop", "to-ecofilter"])),
                        leaf("copy", Type::Empty),
                    ],
                ),
            ],
        ),
        list(
            "route",
            &["prefix", "table"],
            vec![
                leaf("prefix", text()),
                leaf("table", Type::Union(vec![number(8, 0, 255), choice(&["main", "local"])])),
                leaf_list("hop", text()).by_user(),
                leaf_list("tag", number(32, -5, 1000)),
                presence("blackhole", vec![leaf("why", text())]),
                leaf("secret", Type::Binary { lengths: vec![] }),
                leaf("flags", Type::Bits(words(&["a", "b", "c"]))),
                leaf("kind", Type::Identity(words(&["sluice:static", "extra:static", "extra:learned"]))),
            ],
        ),
        list("event", &[], vec![leaf("what", text()), leaf_list("seen", number(8, 0, 9))]).state(),
        leaf("hostname", text()).extra(),
        leaf_list("server", text()).default("a").default("b").extra(),
        plan(
            "lookup",
            Kind::Rpc,
            vec![
                plan(
                    "input",
                    Kind::Input,
                    vec![
                        leaf("src", text()),
                        leaf("proto", number(8, 0, 255)).default("6"),
                        reference(
                            "link",
                            "/sl:ecofilter-balancer/sl:link/sl:name",
                            "ecofilter-balancer/link/name",
                        ),
                    ],
                ),
                plan(
                    "output",
                    Kind::Output,
                    vec![leaf("unit", name()), leaf("bucket", number(16, 0, 65535))],
                ),
            ],
        )
        .state(),
        plan("unit-state-change", Kind::Notification, vec![leaf("unit", name())]).state(),
    ]
}

fn decimal() -> Type {
    Type::Decimal { fraction_digits: 2, ranges: vec![(-10_000, 10_000)] }
}

fn add(
    schema: &mut Schema,
    targets: &mut Vec<(NodeId, &'static str)>,
    parent: Option<NodeId>,
    plan: Plan,
) -> NodeId {
    let id = NodeId(schema.nodes.len() as u16);
    let above = parent.map(|parent| schema.node(parent));
    let config = !plan.state && above.is_none_or(|above| above.config);
    let module = above.map_or(ModuleId(0), |above| above.module).max(ModuleId(plan.module));
    schema.nodes.push(Node {
        id,
        parent,
        module,
        name: plan.name.into(),
        kind: plan.kind,
        config,
        description: format!("The {}.", plan.name),
        musts: vec![],
        whens: if plan.when { vec!["../mode = 'dot1q'".into()] } else { vec![] },
        children: vec![],
    });
    targets.extend(plan.target.map(|target| (id, target)));
    for below in plan.below {
        let child = add(schema, targets, Some(id), below);
        schema.nodes[usize::from(id.0)].children.push(child);
    }
    let found: Vec<NodeId> = plan.keys.iter().map(|key| schema.child(Some(id), key).unwrap().id).collect();
    if let Kind::List { keys, .. } = &mut schema.nodes[usize::from(id.0)].kind {
        *keys = found;
    }
    id
}

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let module = |name: &str, prefix: &str| Module {
        name: name.into(),
        namespace: format!("urn:test:{name}"),
        prefix: prefix.into(),
        revision: None,
    };
    let mut schema =
        Schema { modules: vec![module("sluice", "sl"), module("extra", "ex")], nodes: vec![], roots: vec![] };
    let mut targets = Vec::new();
    for plan in plans() {
        let root = add(&mut schema, &mut targets, None, plan);
        schema.roots.push(root);
    }
    for (id, names) in targets {
        let names: Vec<&str> = names.split('/').collect();
        let found = schema.at(&names).unwrap().id;
        match &mut schema.nodes[usize::from(id.0)].kind {
            Kind::Leaf { ty: Type::Leafref { target, .. }, .. }
            | Kind::LeafList { ty: Type::Leafref { target, .. }, .. } => *target = found,
            _ => unreachable!(),
        }
    }
    Arc::new(schema)
});

/// The schema of all tests.
pub(crate) fn schema() -> Arc<Schema> {
    Arc::clone(&SCHEMA)
}

/// A tree from lines of `set`.
pub(crate) fn tree(lines: &str) -> Tree {
    let mut tree = Tree::new(schema());
    tree::set_lines::read(&mut tree, lines).unwrap();
    tree
}

/// A path from its words.
pub(crate) fn path(words: &str) -> Path {
    let words: Vec<&str> = words.split_whitespace().collect();
    tree::line::show(&schema(), &Path::default(), &words).unwrap()
}

/// A node by its names from the top, separated by blanks.
pub(crate) fn node(names: &str) -> NodeId {
    let names: Vec<&str> = names.split_whitespace().collect();
    schema().at(&names).unwrap().id
}

/// What a number decides, one thing after the other.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A value that a type takes.
    pub(crate) fn value(&mut self, ty: &Type) -> String {
        const TEXTS: [&str; 16] = [
            "",
            "a",
            "b c",
            "[",
            "]",
            "\"",
            "\\",
            "it's \"so\"",
            "#x",
            "a|b",
            "<&>]]>",
            "two\nlines",
            "\ttab ",
            "é ß",
            "set",
            "x\r\ny",
        ];
        match ty {
            Type::Integer { ranges, .. } => {
                let (first, last) = ranges[0];
                (first + self.below(12) as i128 % (last - first + 1)).to_string()
            }
            Type::Decimal { .. } => ["0.0", "-1.5", "12.34"][self.below(3)].into(),
            Type::String { lengths, patterns, .. } => match (lengths.is_empty(), patterns.is_empty()) {
                (false, _) => ["x1", "x2", "x10", "a.b-c_D"][self.below(4)].into(),
                (true, false) => ["1-2", "10-20"][self.below(2)].into(),
                (true, true) => (*self.one(&TEXTS)).into(),
            },
            Type::Enumeration(words) | Type::Identity(words) => self.one(words).name.clone(),
            Type::Bits(words) => {
                let some: Vec<&str> =
                    words.iter().filter(|_| self.below(2) == 0).map(|word| word.name.as_str()).collect();
                some.join(" ")
            }
            Type::Boolean => ["true", "false"][self.below(2)].into(),
            Type::Empty => String::new(),
            Type::Binary { .. } => ["", "AQ==", "AQID"][self.below(3)].into(),
            Type::Leafref { ty, .. } => self.value(ty),
            Type::Union(members) => {
                let value = self.one(members).clone();
                self.value(&value)
            }
            Type::InstanceIdentifier => "/sluice:port".into(),
        }
    }

    /// Sets or removes something, configuration alone where wanted.
    pub(crate) fn edit(&mut self, tree: &mut Tree, config: bool) {
        let schema = Arc::clone(tree.schema());
        let mut at = Path::default();
        loop {
            let below: Vec<&Node> = schema
                .below(at.node())
                .filter(|node| !config || node.config)
                .filter(|node| at.node().is_none_or(|above| !schema.node(above).keys().contains(&node.id)))
                .collect();
            if below.is_empty() {
                return;
            }
            let node = *self.one(&below);
            if self.below(14) == 0 {
                tree.remove(&at.child(node.id));
                return;
            }
            match &node.kind {
                Kind::Leaf { ty, .. } => {
                    let path = at.child(node.id);
                    let value = self.value(ty);
                    tree.set(&path, Some(&value)).unwrap();
                    return;
                }
                Kind::LeafList { ty, .. } => {
                    let value = self.value(ty);
                    let value = ty.check(&value).unwrap();
                    let path = at.value(node.id, &value);
                    if self.below(4) == 0 {
                        tree.remove(&path);
                    } else {
                        tree.set(&path, None).unwrap();
                    }
                    return;
                }
                Kind::List { keys, .. } => {
                    let mut values = Vec::new();
                    for key in keys {
                        let ty = schema.node(*key).ty().unwrap();
                        values.push(ty.check(&self.value(ty)).unwrap());
                    }
                    if keys.is_empty() {
                        // Positions without gaps.
                        let count = tree.entries(&at.child(node.id)).count();
                        values.push((1 + self.below(count + 1)).to_string());
                    }
                    at = at.entry(node.id, values);
                    let leave = self.below(8);
                    if leave == 0 && !keys.is_empty() {
                        tree.remove(&at);
                        return;
                    }
                    if leave == 1 {
                        tree.set(&at, None).unwrap();
                        return;
                    }
                }
                _ => {
                    at = at.child(node.id);
                    if self.below(4) == 0 {
                        tree.set(&at, None).unwrap();
                        return;
                    }
                }
            }
        }
    }
}

/// A tree that the numbers make of another.
pub(crate) fn changed(tree: &Tree, numbers: &[u64], config: bool) -> Tree {
    let mut tree = tree.clone();
    for number in numbers {
        Dice(*number).edit(&mut tree, config);
    }
    tree
}

/// A tree that the numbers make.
pub(crate) fn grown(numbers: &[u64], config: bool) -> Tree {
    changed(&Tree::new(schema()), numbers, config)
}

/// Checks what holds for every tree.
pub(crate) fn keeps_its_rules(tree: &Tree) {
    fn fields(schema: &Schema, data: Data<'_>, node: Option<NodeId>) {
        match data {
            Data::Leaf(value) => {
                let ty = schema.node(node.unwrap()).ty().unwrap();
                assert_eq!(ty.check(value).as_deref(), Ok(value));
            }
            Data::Values(values) => {
                assert!(!values.is_empty());
                values.iter().for_each(|value| fields(schema, Data::Leaf(value), node));
            }
            Data::Entries(entries) => {
                assert!(!entries.is_empty());
                for (keys, inner) in entries.iter() {
                    for (key, value) in schema.node(node.unwrap()).keys().iter().zip(keys.iter()) {
                        assert_eq!(inner.leaf(*key), Some(&**value));
                    }
                    fields(schema, Data::Fields(inner), node);
                }
            }
            Data::Fields(inner) => {
                for (id, data) in inner.iter() {
                    assert_eq!(schema.node(id).parent, node);
                    if let (Kind::Container { presence: false }, Data::Fields(inner)) =
                        (&schema.node(id).kind, data)
                    {
                        assert!(!inner.is_empty(), "{} is empty", schema.node(id).name);
                    }
                    fields(schema, data, Some(id));
                }
            }
        }
    }
    fields(tree.schema(), Data::Fields(tree.root()), None);
}
