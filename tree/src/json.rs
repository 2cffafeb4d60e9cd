//! Data as JSON (RFC 7951).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;

use crate::data::{Data, Entries, Fields, Slot, Tree, Values};
use crate::defaults::{Defaults, Filled, Shown};
use crate::path::Path;
use crate::read::{DEEPEST, FaultKind, ReadFault, Reading, read_below};
use crate::schema::{Kind, Node, NodeId, Schema, Type};
use crate::value::shown;

/// Reads a whole tree. The module may be left out of names at the top; numbers may stand in quotes, and be bare also
/// where RFC 7951 wants quotes; an empty leaf may be `true`, or `false` where it is not there.
///
/// # Errors
/// All that is wrong, up to [`MOST_FAULTS`](crate::read::MOST_FAULTS).
pub fn read(schema: &Arc<Schema>, text: &str) -> Result<Tree, Vec<ReadFault>> {
    let mut text = serde_json::Deserializer::from_str(text);
    let json = Nested(0).deserialize(&mut text).and_then(|json| text.end().map(|()| json));
    let json = json.map_err(|error| vec![ReadFault::syntax(format!("is no JSON: {error}"))])?;
    read_json(schema, &Path::default(), &json)
}

/// Reads what is in the node at a path into a tree that has nothing else, as [`value`] gives it. For what an RPC is
/// given, the path of its [`Kind::Input`].
///
/// # Errors
/// As [`read`].
pub fn read_at(schema: &Arc<Schema>, at: &Path, value: &Value) -> Result<Tree, Vec<ReadFault>> {
    let json = Nested(0).deserialize(value);
    let json = json.map_err(|error| vec![ReadFault::syntax(format!("cannot be read: {error}"))])?;
    read_json(schema, at, &json)
}

/// Writes what is at a path: an object for a container, an entry or the whole tree, a list for a list or leaf-list,
/// else the value; `null` where nothing is.
#[must_use]
pub fn write(tree: &Tree, at: &Path, defaults: Defaults) -> String {
    let tree = &filled(tree, defaults);
    let filled = Filled::new(&tree.schema, defaults);
    serde_json::to_string_pretty(&At { filled: &filled, tree, path: at }).unwrap_or_else(|_| "null".into())
}

/// What [`write()`] writes, without defaults.
#[must_use]
pub fn value(tree: &Tree, at: &Path) -> Value {
    value_with(tree, at, Defaults::Explicit)
}

/// What [`write()`] writes.
#[must_use]
pub fn value_with(tree: &Tree, at: &Path, defaults: Defaults) -> Value {
    let tree = &filled(tree, defaults);
    let filled = Filled::new(&tree.schema, defaults);
    serde_json::to_value(At { filled: &filled, tree, path: at }).unwrap_or(Value::Null)
}

fn filled(tree: &Tree, defaults: Defaults) -> Tree {
    if defaults == Defaults::Trim { tree.without_defaults() } else { tree.clone() }
}

/// JSON with all members of an object, also those that are there twice.
enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Reads JSON; how many lists and objects it is in.
#[derive(Clone, Copy)]
struct Nested(usize);

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<Json, D::Error> {
        text.deserialize_any(self)
    }
}

impl Nested {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.0 < DEEPEST {
            Ok(Self(self.0 + 1))
        } else {
            Err(E::custom(format_args!("nested deeper than {DEEPEST} levels")))
        }
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let deeper = self.deeper::<A::Error>()?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            all.push(item);
        }
        Ok(Json::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let deeper = self.deeper::<A::Error>()?;
        let mut all = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.contains('\0') {
                return Err(A::Error::custom("a name has the character U+0000"));
            }
            all.push((name, members.next_value_seed(deeper)?));
        }
        Ok(Json::Object(all))
    }
}

impl Json {
    /// As a message names it.
    fn kind(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Number(value) => value.clone(),
            Self::Text(value) => shown(value),
            Self::Array(_) => "a list".into(),
            Self::Object(_) => "an object".into(),
        }
    }
}

fn read_json(schema: &Arc<Schema>, at: &Path, json: &Json) -> Result<Tree, Vec<ReadFault>> {
    read_below(schema, at, |reading, whole, fields| match (whole, json) {
        (Some(node), json) => node_of(reading, node, json, fields),
        (None, Json::Object(members)) => members_of(reading, members, fields),
        (None, other) => reading.fault(FaultKind::Shape, format!("must be an object (got {})", other.kind())),
    })
}

/// The node that a member's name means.
fn named<'a>(reading: &Reading<'a>, name: &str) -> Option<&'a Node> {
    let schema = reading.schema;
    let parent = reading.at.node();
    match name.split_once(':') {
        Some((module, name)) => {
            schema.below(parent).find(|node| node.name == name && schema.module_of(node).name == module)
        }
        None => {
            let own = parent.map(|parent| schema.node(parent).module);
            let mut named = schema.below(parent).filter(|node| node.name == name);
            let first = named.next()?;
            match (own, named.next()) {
                // RFC 7951, 4: without a module, of its parent's.
                (Some(own), Some(_)) => {
                    schema.below(parent).find(|node| node.name == name && node.module == own)
                }
                (None, Some(_)) => None,
                (_, None) => Some(first),
            }
        }
    }
}

fn members_of(reading: &mut Reading<'_>, members: &[(String, Json)], into: &mut Fields) {
    let mut seen: HashSet<NodeId> = HashSet::new();
    for (name, json) in members {
        if reading.is_over() {
            return;
        }
        match named(reading, name) {
            None => reading.unknown(name),
            Some(node) if !seen.insert(node.id) => {
                reading.fault_at(FaultKind::Twice, &node.name, "is given twice");
            }
            Some(node) => node_of(reading, node, json, into),
        }
    }
}

fn node_of(reading: &mut Reading<'_>, node: &Node, json: &Json, into: &mut Fields) {
    match (&node.kind, json) {
        (Kind::Leaf { ty, .. }, json) => leaf(reading, node, ty, json, into),
        (Kind::LeafList { ty, .. }, Json::Array(items)) => values(reading, node, ty, items, into),
        (Kind::List { .. }, Json::Array(items)) => entries(reading, node, items, into),
        (Kind::LeafList { .. } | Kind::List { .. }, other) => {
            let reason = format!("must be a list, in [ ] (got {})", other.kind());
            reading.fault_at(FaultKind::Shape, &node.name, reason);
        }
        (_, Json::Object(members)) => {
            let mut fields = Fields::default();
            reading.inside(node.id, Arc::default(), |reading| members_of(reading, members, &mut fields));
            reading.container(node, fields, into);
        }
        (_, other) => {
            let reason = format!("must be an object, in {{ }} (got {})", other.kind());
            reading.fault_at(FaultKind::Shape, &node.name, reason);
        }
    }
}

fn leaf(reading: &mut Reading<'_>, node: &Node, ty: &Type, json: &Json, into: &mut Fields) {
    let value = match scalar(ty, json) {
        Ok(Some(value)) => value,
        Ok(None) => return,
        Err(reason) => return reading.fault_at(FaultKind::Value, &node.name, reason),
    };
    match reading.key_of(node.id) {
        Some(key) if *key == *value => {}
        Some(key) => {
            let reason = format!("must be {}, as its entry (got {})", shown(key), shown(&value));
            reading.fault_at(FaultKind::Value, &node.name, reason);
        }
        None => into.put(node.id, Slot::Leaf(value.into())),
    }
}

/// The canonical value; `None` for an empty leaf that isn't there.
fn scalar(ty: &Type, json: &Json) -> Result<Option<String>, String> {
    let text = match json {
        Json::Text(text) | Json::Number(text) if *ty != Type::Empty => text.as_str(),
        Json::Bool(true) if *ty == Type::Empty => "",
        Json::Bool(false) if *ty == Type::Empty => return Ok(None),
        Json::Bool(true) => "true",
        Json::Bool(false) => "false",
        Json::Array(items) if matches!(&**items, [Json::Null]) && takes_empty(ty) => "",
        other if *ty == Type::Empty => return Err(format!("must be [null] (got {})", other.kind())),
        other => return Err(format!("must be {} (got {})", ty.expected(), other.kind())),
    };
    ty.check(text).map(Some)
}

fn takes_empty(ty: &Type) -> bool {
    match ty {
        Type::Empty => true,
        Type::Union(members) => members.iter().any(takes_empty),
        Type::Leafref { ty, .. } => takes_empty(ty),
        _ => false,
    }
}

fn values(reading: &mut Reading<'_>, node: &Node, ty: &Type, items: &[Json], into: &mut Fields) {
    let mut all = Vec::with_capacity(items.len());
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    for item in items {
        if reading.is_over() {
            return;
        }
        match scalar(ty, item) {
            Ok(Some(value)) => {
                let value: Arc<str> = value.into();
                if node.config && !seen.insert(Arc::clone(&value)) {
                    let reason = format!("has {} twice", shown(&value));
                    reading.fault_at(FaultKind::Twice, &node.name, reason);
                }
                all.push(value);
            }
            Ok(None) => {}
            Err(reason) => reading.fault_at(FaultKind::Value, &node.name, reason),
        }
    }
    Values::put(node, all, into);
}

fn entries(reading: &mut Reading<'_>, list: &Node, items: &[Json], into: &mut Fields) {
    let mut all = Entries::default();
    for (n, item) in items.iter().enumerate() {
        if reading.is_over() {
            return;
        }
        let Json::Object(members) = item else {
            let reason = format!("entry {} must be an object, in {{ }} (got {})", n + 1, item.kind());
            reading.fault_at(FaultKind::Shape, &list.name, reason);
            continue;
        };
        let Some(keys) = keys(reading, list, n, members) else { continue };
        let fields = if all.get(&keys).is_some() {
            reading.inside(list.id, keys, |reading| reading.fault(FaultKind::Twice, "is given twice"));
            continue;
        } else {
            all.entry(list, &keys)
        };
        reading.inside(list.id, keys, |reading| members_of(reading, members, Arc::make_mut(fields)));
    }
    if !all.is_empty() {
        into.put(list.id, Slot::Entries(Arc::new(all)));
    }
}

fn keys(
    reading: &mut Reading<'_>,
    list: &Node,
    n: usize,
    members: &[(String, Json)],
) -> Option<crate::data::Keys> {
    let schema = reading.schema;
    if list.keys().is_empty() {
        return Some(Arc::new([(n + 1).to_string().into()]));
    }
    let mut keys: Vec<Box<str>> = Vec::with_capacity(list.keys().len());
    for key in list.keys() {
        let key = schema.node(*key);
        let module = &schema.module_of(key).name;
        let own = |name: &str| match name.split_once(':') {
            Some((given, name)) => given == module && name == key.name,
            None => name == key.name,
        };
        let Some((_, json)) = members.iter().find(|(name, _)| own(name)) else {
            let reason = format!("entry {} lacks its key {}", n + 1, key.name);
            reading.fault_at(FaultKind::Missing, &list.name, reason);
            return None;
        };
        match key.ty().map(|ty| scalar(ty, json)) {
            Some(Ok(Some(value))) => keys.push(value.into()),
            Some(Err(reason)) => {
                let reason = format!("{} of entry {} {reason}", key.name, n + 1);
                reading.fault_at(FaultKind::Value, &list.name, reason);
                return None;
            }
            _ => return None,
        }
    }
    Some(keys.into())
}

/// What stands at a path.
struct At<'a> {
    filled: &'a Filled<'a>,
    tree: &'a Tree,
    path: &'a Path,
}

impl Serialize for At<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let node = self.path.node();
        match self.tree.get(self.path) {
            Some(Data::Fields(fields)) => {
                Object { filled: self.filled, node, fields: Some(fields) }.serialize(to)
            }
            Some(Data::Entries(entries)) => Array { filled: self.filled, node, entries }.serialize(to),
            Some(Data::Values(values)) => {
                Several { ty: self.ty(), values: values.iter().collect() }.serialize(to)
            }
            Some(Data::Leaf(value)) => One { ty: self.ty(), value }.serialize(to),
            None => to.serialize_unit(),
        }
    }
}

impl At<'_> {
    fn ty(&self) -> Option<&Type> {
        self.tree.schema.node(self.path.node()?).ty()
    }
}

struct Object<'a> {
    filled: &'a Filled<'a>,
    node: Option<NodeId>,
    fields: Option<&'a Fields>,
}

struct Array<'a> {
    filled: &'a Filled<'a>,
    node: Option<NodeId>,
    entries: &'a Entries,
}

struct Several<'a> {
    ty: Option<&'a Type>,
    values: Vec<&'a str>,
}

struct One<'a> {
    ty: Option<&'a Type>,
    value: &'a str,
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let filled = self.filled;
        let schema = filled.schema;
        let mut object = to.serialize_map(None)?;
        for (id, shown) in filled.below(self.node, self.fields) {
            let node = schema.node(id);
            // RFC 7951, 4: the module where it is another than the parent's.
            let qualified;
            let name = match self.node.map(|parent| schema.node(parent).module) {
                Some(module) if module == node.module => &node.name,
                _ => {
                    qualified = format!("{}:{}", schema.module_of(node).name, node.name);
                    &qualified
                }
            };
            let (ty, node) = (node.ty(), Some(id));
            match shown {
                Shown::Leaf(value, _) => object.serialize_entry(name, &One { ty, value })?,
                Shown::Values(values, _) => object.serialize_entry(name, &Several { ty, values })?,
                Shown::Fields(fields) => object.serialize_entry(name, &Object { filled, node, fields })?,
                Shown::Entries(entries) => object.serialize_entry(name, &Array { filled, node, entries })?,
            }
        }
        object.end()
    }
}

impl Serialize for Array<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut array = to.serialize_seq(Some(self.entries.len()))?;
        for (_, fields) in self.entries.iter() {
            array.serialize_element(&Object {
                filled: self.filled,
                node: self.node,
                fields: Some(fields),
            })?;
        }
        array.end()
    }
}

impl Serialize for Several<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.values.iter().map(|value| One { ty: self.ty, value }))
    }
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // RFC 7951, 6.
        match self.ty.map(|ty| ty.taking(self.value)) {
            Some(Type::Integer { bits: 8..=32, .. }) => match self.value.parse::<i64>() {
                Ok(number) => to.serialize_i64(number),
                Err(_) => to.serialize_str(self.value),
            },
            Some(Type::Boolean) => to.serialize_bool(self.value == "true"),
            Some(Type::Empty) => [()].serialize(to),
            _ => to.serialize_str(self.value),
        }
    }
}
