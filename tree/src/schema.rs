//! What can stand in a tree: the compiled YANG modules (RFC 7950) without choices, groupings and typedefs.

use serde::{Deserialize, Serialize};

/// Number of a node in its [`Schema`]; in the order of the modules, parents before their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u16);

/// Number of a module in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModuleId(pub u16);

/// The schema of everything that can be configured, looked at, called and told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Modules with data, RPCs or notifications.
    pub modules: Vec<Module>,
    /// All nodes by number.
    pub nodes: Vec<Node>,
    /// Top-level nodes, RPCs and notifications in the order of the modules.
    pub roots: Vec<NodeId>,
}

/// A YANG module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Name.
    pub name: String,
    /// XML namespace.
    pub namespace: String,
    /// Prefix that the module gives itself.
    pub prefix: String,
    /// Newest revision, YYYY-MM-DD.
    pub revision: Option<String>,
}

/// A node of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// `None` at the top.
    pub parent: Option<NodeId>,
    /// Whose it is.
    pub module: ModuleId,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Configuration; else state, or a part of an RPC or notification.
    pub config: bool,
    /// The YANG description, its lines joined.
    pub description: String,
    /// Rules of the module about it.
    pub musts: Vec<Must>,
    /// Conditions under which it may be there, XPath.
    pub whens: Vec<String>,
    /// Data nodes below, choices and cases left out, in the order of the module.
    pub children: Vec<NodeId>,
}

/// A `must` statement (RFC 7950, 7.5.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Must {
    /// XPath.
    pub condition: String,
    /// What to say where it does not hold.
    pub message: Option<String>,
    /// For programs.
    pub app_tag: Option<String>,
}

/// Kinds of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// A container.
    Container {
        /// Its being there means something by itself.
        presence: bool,
    },
    /// A list.
    List {
        /// Its keys, leaves below it, in their order.
        keys: Vec<NodeId>,
        /// The order of entries has a meaning; else they are kept in the order of their keys.
        ordered_by_user: bool,
        /// Fewest entries.
        min: u32,
        /// Most entries.
        max: Option<u32>,
    },
    /// A leaf.
    Leaf {
        /// Its type.
        ty: Type,
        /// Value where none is set.
        default: Option<String>,
        /// It must be set.
        mandatory: bool,
        /// Of the value, such as `milliseconds`.
        units: Option<String>,
    },
    /// A list of values.
    LeafList {
        /// Type of each.
        ty: Type,
        /// Values where none is set.
        defaults: Vec<String>,
        /// Of the values.
        units: Option<String>,
        /// The order of values has a meaning; else they are kept sorted.
        ordered_by_user: bool,
        /// Fewest values.
        min: u32,
        /// Most values.
        max: Option<u32>,
    },
    /// An RPC; its children are one [`Kind::Input`] and one [`Kind::Output`].
    Rpc,
    /// What an RPC is given.
    Input,
    /// What an RPC answers.
    Output,
    /// A notification.
    Notification,
}

/// Types of values (RFC 7950, 9), typedefs resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Type {
    /// int8 to uint64.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Takes negative numbers.
        signed: bool,
        /// First and last of each part, rising; never empty.
        ranges: Vec<(i128, i128)>,
        /// What to say of another number.
        message: Option<String>,
    },
    /// decimal64.
    Decimal {
        /// 1..=18.
        fraction_digits: u8,
        /// First and last of each part, in units of the last digit; never empty.
        ranges: Vec<(i128, i128)>,
    },
    /// A text.
    String {
        /// Shortest and longest of each part, in characters; empty for any.
        lengths: Vec<(u64, u64)>,
        /// All of these must match.
        patterns: Vec<Pattern>,
        /// What to say of another length.
        message: Option<String>,
    },
    /// One of some words.
    Enumeration(Vec<Word>),
    /// Some of these words, separated by blanks.
    Bits(Vec<Word>),
    /// `true` or `false`.
    Boolean,
    /// Nothing but its being there.
    Empty,
    /// Base64.
    Binary {
        /// Shortest and longest of each part, in bytes; empty for any.
        lengths: Vec<(u64, u64)>,
    },
    /// The value of another leaf.
    Leafref {
        /// The leaf, in the data tree.
        target: NodeId,
        /// The path as the module has it.
        path: String,
        /// That leaf need not be there.
        require_instance: bool,
        /// Type of that leaf.
        ty: Box<Type>,
    },
    /// Any of these, the first that fits.
    Union(Vec<Type>),
    /// An identity by `MODULE:NAME`.
    Identity(Vec<Word>),
    /// A path to data.
    InstanceIdentifier,
}

/// A pattern (RFC 7950, 9.4.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// XSD regular expression; the whole value must match.
    pub regex: String,
    /// `invert-match`: the value must not match.
    pub inverted: bool,
    /// What to say of another value.
    pub message: Option<String>,
}

/// A word of an enumeration, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The word.
    pub name: String,
    /// Its description, lines joined.
    pub description: String,
}

impl Schema {
    /// A node by its number; numbers come from this very schema.
    ///
    /// # Panics
    /// With the number of another schema's node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id.0)]
    }

    /// The module of a node.
    ///
    /// # Panics
    /// With another schema's node.
    #[must_use]
    pub fn module_of(&self, node: &Node) -> &Module {
        &self.modules[usize::from(node.module.0)]
    }

    /// What stands below a node, or at the top.
    pub fn below(&self, parent: Option<NodeId>) -> impl Iterator<Item = &Node> {
        let children = parent.map_or(&self.roots, |parent| &self.node(parent).children);
        children.iter().map(|id| self.node(*id))
    }

    /// The node with this name below a parent, or at the top.
    #[must_use]
    pub fn child(&self, parent: Option<NodeId>, name: &str) -> Option<&Node> {
        self.below(parent).find(|node| node.name == name)
    }

    /// The node at these names from the top.
    #[must_use]
    pub fn at(&self, names: &[&str]) -> Option<&Node> {
        let mut node: Option<&Node> = None;
        for name in names {
            node = Some(self.child(node.map(|node| node.id), name)?);
        }
        node
    }
}

impl Schema {
    /// What is wrong with patterns that cannot be used, a line each: no value would keep these. None in a module that
    /// may be shipped.
    #[must_use]
    pub fn unusable_patterns(&self) -> Vec<String> {
        fn faults(ty: &Type) -> Vec<String> {
            match ty {
                Type::String { patterns, .. } => patterns
                    .iter()
                    .filter_map(|pattern| crate::pattern::compiled(&pattern.regex).err())
                    .collect(),
                Type::Leafref { ty, .. } => faults(ty),
                Type::Union(members) => members.iter().flat_map(faults).collect(),
                _ => Vec::new(),
            }
        }
        let of = |node: &Node| {
            let faults = node.ty().map(faults).unwrap_or_default();
            faults.into_iter().map(|fault| format!("{}: {fault}", node.name)).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of).collect()
    }

    /// By number: the node, or something below it, is no configuration.
    pub(crate) fn stateful(&self) -> Vec<bool> {
        let mut stateful: Vec<bool> = self.nodes.iter().map(|node| !node.config).collect();
        for node in self.nodes.iter().rev() {
            if let Some(parent) = node.parent
                && stateful[usize::from(node.id.0)]
            {
                stateful[usize::from(parent.0)] = true;
            }
        }
        stateful
    }
}

impl Node {
    /// The keys of a list; none of anything else.
    #[must_use]
    pub fn keys(&self) -> &[NodeId] {
        match &self.kind {
            Kind::List { keys, .. } => keys,
            _ => &[],
        }
    }

    /// The type of a leaf or leaf-list.
    #[must_use]
    pub fn ty(&self) -> Option<&Type> {
        match &self.kind {
            Kind::Leaf { ty, .. } | Kind::LeafList { ty, .. } => Some(ty),
            _ => None,
        }
    }
}
