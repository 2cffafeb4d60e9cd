//! The configuration in braces, and one level of it.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tree::{Kind, Node, NodeId, Path, Schema, Type};

use super::{Fields, Style, harmless};
use crate::token::quote;

/// RFC 7951 JSON of what is below a path as `name value;` and `name { ... }`; entries of a list as
/// `list KEY { ... }`.
pub fn configuration(below: &Value, schema: &Schema, at: &Path) -> String {
    let node = at.0.last().map(|step| schema.node(step.node));
    let mut text = String::new();
    match below {
        Value::Object(members) => {
            // The keys of the entry where one is are in the words that led there.
            let keys = keys_of(schema, node, members);
            block(&mut text, schema, node, members, 0, keys.len());
        }
        // Nothing is set there.
        Value::Null => {}
        below => {
            if let Some(node) = node {
                statement(&mut text, schema, node, below, 0);
            }
        }
    }
    text
}

/// A member's node: the module's name is before it at the top, and where the module is another.
fn child<'a>(schema: &'a Schema, parent: Option<&Node>, name: &str) -> Option<&'a Node> {
    let name = name.split_once(':').map_or(name, |(_, name)| name);
    schema.child(parent.map(|parent| parent.id), name)
}

/// The values of an entry's keys, in their order.
fn keys_of<'a>(schema: &Schema, list: Option<&Node>, entry: &'a Map<String, Value>) -> Vec<&'a Value> {
    let name = |key: &NodeId| schema.node(*key).name.as_str();
    let keys = list.map(Node::keys).unwrap_or_default();
    keys.iter().filter_map(|key| entry.get(name(key))).collect()
}

fn block(
    text: &mut String,
    schema: &Schema,
    parent: Option<&Node>,
    members: &Map<String, Value>,
    depth: usize,
    said: usize,
) {
    let keys = &parent.map(Node::keys).unwrap_or_default();
    for (name, value) in members {
        if let Some(node) = child(schema, parent, name)
            && !keys.iter().take(said).any(|key| *key == node.id)
        {
            statement(text, schema, node, value, depth);
        }
    }
}

fn statement(text: &mut String, schema: &Schema, node: &Node, value: &Value, depth: usize) {
    let indent = "    ".repeat(depth);
    let name = harmless(&node.name);
    let mut braces = |title: String, members: &Map<String, Value>, said: usize| {
        let mut inner = String::new();
        block(&mut inner, schema, Some(node), members, depth + 1, said);
        if inner.is_empty() {
            let _ = writeln!(text, "{indent}{title};");
        } else {
            let _ = writeln!(text, "{indent}{title} {{\n{inner}{indent}}}");
        }
    };
    match (&node.kind, value) {
        (Kind::List { .. }, Value::Array(entries)) => {
            for entry in entries.iter().filter_map(Value::as_object) {
                let keys = keys_of(schema, Some(node), entry);
                let title = keys.iter().fold(name.clone(), |title, key| title + " " + &scalar(key));
                braces(title, entry, keys.len());
            }
        }
        (_, Value::Object(members)) => braces(name, members, 0),
        (_, value) => {
            let _ = match leaf(node, value) {
                Some(value) => writeln!(text, "{indent}{name} {value};"),
                None => writeln!(text, "{indent}{name};"),
            };
        }
    }
}

/// The value of a leaf or leaf-list; none of an empty leaf.
fn leaf(node: &Node, value: &Value) -> Option<String> {
    match value {
        // RFC 7951, 6.9: a leaf of type empty is [null].
        Value::Array(_) if matches!(node.ty(), Some(Type::Empty)) => None,
        Value::Array(values) => {
            Some(format!("[ {} ]", values.iter().map(scalar).collect::<Vec<_>>().join(" ")))
        }
        value => Some(scalar(value)),
    }
}

fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let text = harmless(text);
    if text.contains(['{', '}', '[', ']', ';', '#']) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        quote(&text)
    }
}

/// `dir`: what is at a level, without what is below it. What has more below it ends in `/`.
pub fn directory(below: &Value, schema: &Schema, at: &Path, style: Style) -> String {
    let parent = at.0.last().map(|step| schema.node(step.node));
    let mut fields = Fields::new();
    match below {
        Value::Object(members) => {
            for (name, value) in members {
                let Some(node) = child(schema, parent, name) else { continue };
                let slashed = format!("{}/", node.name);
                match (&node.kind, value) {
                    (Kind::List { .. }, Value::Array(entries)) if entries.len() == 1 => {
                        fields.field(&slashed, "1 entry");
                    }
                    (Kind::List { .. }, Value::Array(entries)) => {
                        fields.field(&slashed, format!("{} entries", entries.len()));
                    }
                    (_, Value::Object(_)) => fields.field(&slashed, "{...}"),
                    (_, value) => fields.field(&node.name, leaf(node, value).unwrap_or("(set)".into())),
                }
            }
        }
        Value::Array(entries) => {
            for entry in entries.iter().filter_map(Value::as_object) {
                let keys = keys_of(schema, parent, entry);
                let title = keys.iter().map(|key| scalar(key)).collect::<Vec<_>>().join(" ");
                fields.field(&format!("{title}/"), format!("{} set", entry.len() - keys.len()));
            }
        }
        value => {
            if let Some(node) = parent {
                fields.field(&node.name, leaf(node, value).unwrap_or("(set)".into()));
            }
        }
    }
    fields.render(0, style)
}
