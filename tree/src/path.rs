//! Where something stands in a data tree.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::natural;
use crate::schema::{Kind, Node, NodeId, Schema};
use crate::words::quote;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The node.
    pub node: NodeId,
    /// Of a list's entry: the values of all keys, in the order of the schema, canonical; of an entry of a list
    /// without keys its position, from 1. Of a leaf-list's value: that value. Empty for everything else, and for a
    /// list or leaf-list as a whole.
    pub keys: Arc<[Box<str>]>,
}

impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        self.node.cmp(&other.node).then_with(|| natural::compare_all(&self.keys, &other.keys))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A data node by the nodes from the top; the whole tree where it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Step>);

/// A text that is no path of the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {reason}")]
pub struct PathFault {
    /// The text.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl Path {
    /// The path of a node below this one: of a container, a leaf, a list or leaf-list as a whole.
    #[must_use]
    pub fn child(&self, node: NodeId) -> Self {
        self.step(node, Arc::default())
    }

    /// The path of a list's entry below this one; the keys in the order of the schema, canonical.
    #[must_use]
    pub fn entry<K: Into<Box<str>>>(&self, list: NodeId, keys: impl IntoIterator<Item = K>) -> Self {
        self.step(list, keys.into_iter().map(Into::into).collect())
    }

    /// The path of a value of a leaf-list below this one; the value canonical.
    #[must_use]
    pub fn value(&self, leaf_list: NodeId, value: &str) -> Self {
        self.entry(leaf_list, [value])
    }

    /// This path and one step more.
    #[must_use]
    pub fn step(&self, node: NodeId, keys: Arc<[Box<str>]>) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(Step { node, keys });
        Self(steps)
    }

    /// The path of what this one stands in; `None` of the whole tree.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, above)| Self(above.to_vec()))
    }

    /// The node that the path leads to; `None` of the whole tree.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        self.0.last().map(|step| step.node)
    }

    /// It is the whole tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// It is the same as another, or leads to something within it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
            || match other.0.split_last() {
                // A whole list, or leaf-list, has its entries within.
                Some((last, above)) if last.keys.is_empty() => {
                    self.0.starts_with(above)
                        && self.0.get(above.len()).is_some_and(|step| step.node == last.node)
                }
                _ => false,
            }
    }

    /// The path as the words of a command: names, and the keys of entries after the names of their lists.
    #[must_use]
    pub fn to_words(&self, schema: &Schema) -> Vec<String> {
        let mut words = Vec::new();
        for step in &self.0 {
            let node = schema.node(step.node);
            if !matches!(node.kind, Kind::Input | Kind::Output) {
                words.push(node.name.clone());
                words.extend(step.keys.iter().map(|key| key.to_string()));
            }
        }
        words
    }

    /// The path in the engineer's words: `ecofilter-balancer flow bgp match ip-proto`.
    #[must_use]
    pub fn words(&self, schema: &Schema) -> String {
        let mut line = String::new();
        for word in self.to_words(schema) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&quote(&word));
        }
        line
    }

    /// The path as an instance identifier (RFC 7950, 9.13) with the prefixes that the modules give themselves:
    /// `/sl:ecofilter-balancer/sl:flow[sl:name='bgp']`. `/` for the whole tree.
    #[must_use]
    pub fn xpath(&self, schema: &Schema) -> String {
        if self.0.is_empty() {
            return "/".into();
        }
        let mut path = String::new();
        for step in &self.0 {
            let node = schema.node(step.node);
            let prefix = &schema.module_of(node).prefix;
            if matches!(node.kind, Kind::Input | Kind::Output) {
                continue;
            }
            let _ = write!(path, "/{prefix}:{}", node.name);
            match &node.kind {
                Kind::List { keys, .. } if keys.is_empty() => {
                    for position in step.keys.iter() {
                        let _ = write!(path, "[{position}]");
                    }
                }
                Kind::List { keys, .. } => {
                    for (key, value) in keys.iter().zip(step.keys.iter()) {
                        let key = schema.node(*key);
                        let prefix = &schema.module_of(key).prefix;
                        let _ = write!(path, "[{prefix}:{}={}]", key.name, literal(value));
                    }
                }
                _ => {
                    for value in step.keys.iter() {
                        let _ = write!(path, "[.={}]", literal(value));
                    }
                }
            }
        }
        path
    }

    /// Reads an instance identifier. A prefix may be a module's name or the prefix that it gives itself; without
    /// one a node is of its parent's module, or of any where no other fits. The nodes `input` and `output` of an
    /// RPC may be left out. Values are made canonical.
    ///
    /// # Errors
    /// What is no path, and what would be one.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, PathFault> {
        let fault = |reason: String| PathFault { text: text.into(), reason };
        let mut reader = Reader { rest: text };
        let mut path = Self::default();
        if text.trim() == "/" {
            return Ok(path);
        }
        while !reader.rest.trim_start().is_empty() {
            if !reader.takes('/') {
                return Err(fault(format!("expected / before {}", crate::value::shown(reader.rest))));
            }
            let name = reader.name().ok_or_else(|| fault("expected a name after /".into()))?;
            let node = path.named(schema, name).map_err(fault)?;
            let keys = reader.predicates(schema, node).map_err(fault)?;
            if let Some(parent) = node.parent
                && path.node() != Some(parent)
            {
                path = path.child(parent);
            }
            path = path.step(node.id, keys);
        }
        if path.is_empty() {
            return Err(fault("expected a path such as /module:container/leaf".into()));
        }
        Ok(path)
    }

    /// The node of this name below the path; that of an RPC's input or output also without these.
    fn named<'a>(&self, schema: &'a Schema, name: &str) -> Result<&'a Node, String> {
        let (prefix, name) = name.split_once(':').map_or((None, name), |(prefix, name)| (Some(prefix), name));
        let parent = self.node();
        let fits = |node: &&Node| {
            let module = schema.module_of(node);
            node.name == name && prefix.is_none_or(|prefix| prefix == module.name || prefix == module.prefix)
        };
        let own = |node: &&Node| parent.is_some_and(|parent| schema.node(parent).module == node.module);
        let found = schema.below(parent).find(|node| fits(node) && own(node));
        let found = found.or_else(|| schema.below(parent).find(fits));
        let found = found.or_else(|| {
            schema
                .below(parent)
                .filter(|node| matches!(node.kind, Kind::Input | Kind::Output))
                .find_map(|body| schema.below(Some(body.id)).find(fits))
        });
        found.ok_or_else(|| {
            let known: Vec<&str> = schema.below(parent).map(|node| node.name.as_str()).collect();
            format!("there is no {}; known here: {}", crate::value::shown(name), known.join(", "))
        })
    }
}

/// A text as an XPath literal; there is no way to escape a quote in one (XPath 1.0, 3.7).
fn literal(text: &str) -> String {
    match (text.contains('\''), text.contains('"')) {
        (false, _) => format!("'{text}'"),
        (true, false) => format!("\"{text}\""),
        (true, true) => {
            let parts: Vec<String> = text.split('\'').map(|part| format!("'{part}'")).collect();
            format!("concat({})", parts.join(",\"'\","))
        }
    }
}

/// Reads an instance identifier from its beginning.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Takes a character, and blanks before it.
    fn takes(&mut self, c: char) -> bool {
        match self.rest.trim_start().strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')))
            .unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    /// `'...'`, `"..."` or `concat` of these.
    fn literal(&mut self) -> Result<String, String> {
        let rest = self.rest.trim_start();
        if let Some(arguments) = rest.strip_prefix("concat(") {
            self.rest = arguments;
            let mut text = self.quoted()?;
            while self.takes(',') {
                text.push_str(&self.quoted()?);
            }
            return if self.takes(')') { Ok(text) } else { Err("expected ) after concat(...".into()) };
        }
        self.quoted()
    }

    fn quoted(&mut self) -> Result<String, String> {
        for quote in ['\'', '"'] {
            if self.takes(quote) {
                let (text, rest) = self.rest.split_once(quote).ok_or("a quote has no end")?;
                self.rest = rest;
                return Ok(text.into());
            }
        }
        Err(format!("expected a value in quotes, not {}", crate::value::shown(self.rest)))
    }

    /// All that stands in brackets after the name of a node.
    fn predicates(&mut self, schema: &Schema, node: &Node) -> Result<Arc<[Box<str>]>, String> {
        let names: Vec<&Node> = node.keys().iter().map(|key| schema.node(*key)).collect();
        let mut values: Vec<Option<Box<str>>> = vec![None; names.len()];
        let mut single: Option<Box<str>> = None;
        let mut any = false;
        while self.takes('[') {
            any = true;
            let name = self.name().ok_or("expected the name of a key after [")?;
            let (slot, ty) = match &node.kind {
                Kind::List { keys, .. } if keys.is_empty() => {
                    if !name.bytes().all(|c| c.is_ascii_digit()) || name.starts_with('0') {
                        return Err(format!("expected a position after {}[, not {name}", node.name));
                    }
                    (&mut single, None)
                }
                Kind::List { .. } => {
                    let bare = name.rsplit_once(':').map_or(name, |(_, name)| name);
                    let at = names.iter().position(|key| key.name == bare).ok_or_else(|| {
                        let known: Vec<&str> = names.iter().map(|key| key.name.as_str()).collect();
                        format!("{} is no key of {}; its keys: {}", bare, node.name, known.join(", "))
                    })?;
                    (&mut values[at], names[at].ty())
                }
                Kind::LeafList { ty, .. } if name == "." => (&mut single, Some(ty)),
                _ => return Err(format!("nothing in brackets may follow {}", node.name)),
            };
            if slot.is_some() {
                return Err(format!("{name} is given twice"));
            }
            *slot = Some(match ty {
                Some(ty) => {
                    if !self.takes('=') {
                        return Err(format!("expected = after {name}"));
                    }
                    let value = self.literal()?;
                    ty.check(&value).map_err(|reason| format!("{} {name} {reason}", node.name))?.into()
                }
                None => name.into(),
            });
            if !self.takes(']') {
                return Err(format!("expected ] before {}", crate::value::shown(self.rest)));
            }
        }
        if !any {
            return Ok(Arc::default());
        }
        if let Some(value) = single {
            return Ok(Arc::new([value]));
        }
        let missing = names.iter().zip(&values).find(|(_, value)| value.is_none());
        if let Some((key, _)) = missing {
            return Err(format!("{} lacks its key {}", node.name, key.name));
        }
        Ok(values.into_iter().flatten().collect())
    }
}
