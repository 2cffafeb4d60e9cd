//! What is wrong with data, and where.

use std::fmt;
use std::sync::Arc;

use tree::{Kind, Node, Path, Schema, Type};

use crate::ffi::Raw;
use crate::instance;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where; the nearest node that is known, if it is about something that is not in the schema.
    pub at: Path,
    /// Where, in the words of a `set` line, such as `ecofilter-balancer link link1 lan-port`.
    pub path: String,
    /// Where, as an instance identifier (RFC 7950, 9.13) with module names, such as
    /// `/sluice:ecofilter-balancer/link[name='link1']/lan-port`.
    pub instance: String,
    /// The value found there, where it has one.
    pub value: Option<String>,
    /// What is wrong, or what would be right.
    pub message: String,
    /// error-app-tag of the module or of RFC 7950, 15.
    pub app_tag: Option<String>,
    /// Which kind of rule is broken.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value:?}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Kinds of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A `must` of the module.
    Must,
    /// A node that must be there.
    Mandatory,
    /// A value that no other leaf has.
    Leafref,
    /// Leaves of a list's entries that must differ.
    Unique,
    /// Too many or too few entries.
    Elements,
    /// The same entry or value twice.
    Duplicate,
    /// A node whose condition does not hold.
    When,
    /// A number out of its range.
    Range,
    /// A text of a wrong length.
    Length,
    /// A text of a wrong form.
    Pattern,
    /// A value that is none of the type for another reason.
    Type,
    /// A node that the schema does not have, or no data at all.
    Unknown,
}

/// When libyang found an error: of one with a text from the module nothing else tells what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reading: values and nodes.
    Read,
    /// Looking at all data.
    Validate,
}

/// Looks up the value of a leaf.
pub(crate) type Values<'v> = &'v dyn Fn(&Path, &str) -> Option<String>;

/// Turns libyang's errors into faults, without repetitions.
pub(crate) fn faults(schema: &Schema, raw: Vec<Raw>, stage: Stage, values: Values<'_>) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for raw in raw {
        let fault = fault(schema, raw, stage, values);
        // An entry whose key is wrong is said to have none, and both of two equal entries are named.
        let said = faults.iter().rev().take(2).any(|other| {
            *other == fault || (fault.kind == FaultKind::Mandatory && other.instance == fault.instance)
        });
        if !said {
            faults.push(fault);
        }
    }
    faults
}

fn fault(schema: &Schema, raw: Raw, stage: Stage, values: Values<'_>) -> Fault {
    let instance = raw.data_path.or(raw.schema_path).unwrap_or_default();
    let mut fault = Fault {
        at: Path::default(),
        path: String::new(),
        instance,
        value: None,
        message: joined(&raw.message),
        app_tag: raw.app_tag,
        kind: FaultKind::Unknown,
    };
    fault.stand_at(schema, values);
    match stage {
        Stage::Read => fault.explain_reading(schema, values),
        Stage::Validate => fault.explain_validation(schema, values),
    }
    fault
}

impl Fault {
    /// Takes path and value from the instance identifier.
    fn stand_at(&mut self, schema: &Schema, values: Values<'_>) {
        self.at = instance::path(schema, &self.instance).unwrap_or_default();
        self.path = instance::words(schema, &self.at);
        let is_empty = self.node(schema).and_then(Node::ty) == Some(&Type::Empty);
        self.value = if is_empty { None } else { values(&self.at, &self.instance) };
    }

    /// Moves to a node below.
    fn descend(&mut self, name: &str, schema: &Schema, values: Values<'_>) {
        self.instance = format!("{}/{name}", self.instance);
        self.stand_at(schema, values);
    }

    /// The node it is about.
    fn node<'s>(&self, schema: &'s Schema) -> Option<&'s Node> {
        self.at.0.last().map(|step| schema.node(step.node))
    }

    fn explain_reading(&mut self, schema: &Schema, values: Values<'_>) {
        if let Some(key) = after(&self.message, "List instance is missing its key ") {
            self.descend(&key, schema, values);
            self.mandatory();
            return;
        }
        let about_a_node =
            ["Node ", "Unexpected ", "Duplicate "].iter().any(|begin| self.message.starts_with(begin));
        let Some(ty) = self.node(schema).and_then(Node::ty).filter(|_| !about_a_node) else { return };
        self.kind = kind(ty, self.value.as_deref());
        if let Some(expected) = expected(ty) {
            self.message = expected;
        }
    }

    fn mandatory(&mut self) {
        self.kind = FaultKind::Mandatory;
        self.message = "must be set".to_owned();
    }

    fn explain_validation(&mut self, schema: &Schema, values: Values<'_>) {
        let message = self.message.clone();
        if let Some(name) = after(&message, "Mandatory node ") {
            self.descend(&name, schema, values);
            self.mandatory();
        } else if message.starts_with("Invalid leafref value ") {
            self.kind = FaultKind::Leafref;
            let referred = self.node(schema).and_then(Node::ty).and_then(|ty| match ty {
                Type::Leafref { target, .. } => schema.node(*target).parent,
                _ => None,
            });
            if let Some(list) = referred {
                self.message = format!("there is no such {}", schema.node(list).name);
            }
        } else if let Some(leaves) = after(&message, "Unique data leaf(s) ") {
            self.kind = FaultKind::Unique;
            let leaves: Vec<&str> =
                leaves.split(' ').map(|leaf| leaf.rsplit(':').next().unwrap_or(leaf)).collect();
            let found: Vec<String> = leaves
                .iter()
                .filter_map(|leaf| values(&self.at, &format!("{}/{leaf}", self.instance)))
                .collect();
            let other = [1, 2].into_iter().filter_map(|index| quoted(&message, index));
            let other =
                other.filter(|other| *other != self.instance).find_map(|other| instance::path(schema, other));
            let other = other.map(|other| instance::words(schema, &other)).unwrap_or_default();
            self.value = Some(found.join("/"));
            self.message = format!("{other} has this {} already", leaves.join(" and "));
            if let [leaf] = leaves.as_slice() {
                self.descend(leaf, schema, values);
            }
        } else if message.starts_with("Too many ") || message.starts_with("Too few ") {
            self.kind = FaultKind::Elements;
            // libyang names the last entry.
            if let Some(step) = self.at.0.last_mut() {
                step.keys = Arc::from([]);
            }
            let bounds = self.node(schema).and_then(|node| match &node.kind {
                Kind::List { min, max, .. } | Kind::LeafList { min, max, .. } => Some((*min, *max)),
                _ => None,
            });
            self.path = instance::words(schema, &self.at);
            if let Some((entry, _)) = self.instance.rsplit_once('[') {
                self.instance = entry.to_owned();
            }
            self.value = None;
            match bounds {
                Some((_, Some(max))) if message.starts_with("Too many ") => {
                    self.message = format!("at most {max}")
                }
                Some((min, _)) if message.starts_with("Too few ") => self.message = format!("at least {min}"),
                _ => {}
            }
        } else if message.starts_with("Duplicate instance of ") {
            self.kind = FaultKind::Duplicate;
            self.message = match self.node(schema).map(|node| &node.kind) {
                Some(Kind::List { .. }) => "is there twice",
                _ => "is given twice",
            }
            .to_owned();
        } else if let Some(condition) = after(&message, "When condition ") {
            self.kind = FaultKind::When;
            self.message = format!("has a meaning only where {condition}");
        } else {
            self.kind = FaultKind::Must;
        }
    }
}

/// Lines joined by blanks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The n-th text in quotation marks, from 0.
fn quoted(text: &str, index: usize) -> Option<&str> {
    text.split('"').nth(2 * index + 1)
}

/// The text in quotation marks after `begin`.
fn after(text: &str, begin: &str) -> Option<String> {
    let rest = text.strip_prefix(begin)?.strip_prefix('"')?;
    // A condition has quotation marks of its own.
    let end = if begin.starts_with("When ") { rest.rfind('"') } else { rest.find('"') };
    rest.get(..end?).map(str::to_owned)
}

/// Which rule of its type a value breaks.
fn kind(ty: &Type, value: Option<&str>) -> FaultKind {
    match (ty, value) {
        (Type::Integer { .. } | Type::Decimal { .. }, Some(value)) if value.parse::<i128>().is_ok() => {
            FaultKind::Range
        }
        (Type::String { lengths, .. }, Some(value)) => {
            let length = value.chars().count() as u64;
            let fits =
                lengths.is_empty() || lengths.iter().any(|(low, high)| (*low..=*high).contains(&length));
            if fits { FaultKind::Pattern } else { FaultKind::Length }
        }
        (Type::String { .. }, None) => FaultKind::Pattern,
        (Type::Leafref { ty, .. }, value) => kind(ty, value),
        _ => FaultKind::Type,
    }
}

/// What a value must be; `None` where libyang says it.
fn expected(ty: &Type) -> Option<String> {
    match ty {
        Type::Integer { message: Some(message), .. } => Some(message.clone()),
        Type::Integer { ranges, .. } => {
            let parts = ranges
                .iter()
                .map(|(low, high)| if low == high { low.to_string() } else { format!("{low}..{high}") });
            Some(format!("must be {}", parts.collect::<Vec<_>>().join(" or ")))
        }
        // The last is of the narrowest type.
        Type::String { patterns, .. } => patterns.iter().rev().find_map(|pattern| pattern.message.clone()),
        Type::Enumeration(words) => {
            let words: Vec<&str> = words.iter().map(|word| word.name.as_str()).collect();
            Some(format!("must be one of {}", words.join(", ")))
        }
        Type::Boolean => Some("must be true or false".to_owned()),
        Type::Empty => Some("takes no value".to_owned()),
        Type::Leafref { ty, .. } => expected(ty),
        Type::Union(types) => {
            let mut texts: Vec<String> = Vec::new();
            for text in types.iter().filter_map(expected) {
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            let first = texts.first()?.clone();
            Some(texts.iter().skip(1).fold(first, |all, text| {
                format!("{all}; or {}", text.strip_prefix("must be ").unwrap_or(text))
            }))
        }
        _ => None,
    }
}
