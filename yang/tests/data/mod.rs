//! Configurations for tests: the example site, and it with other values at JSON pointers.

use std::sync::OnceLock;

use serde_json::{Value, json};
use yang::{Fault, Yang};

pub(crate) const EXAMPLE: &str = include_str!("../../../configs/examples/site.json");
pub(crate) const BALANCER: &str = "/sluice:ecofilter-balancer";

/// One for all tests, as in sluiced.
pub(crate) fn yang() -> &'static Yang {
    static YANG: OnceLock<Yang> = OnceLock::new();
    YANG.get_or_init(|| Yang::load().unwrap())
}

pub(crate) fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

/// With a value at a JSON pointer, whose last step may be new; `-` appends, `null` removes.
pub(crate) fn with(mut tree: Value, pointer: &str, value: Value) -> Value {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    if let Some((above, name)) = parent.rsplit_once('/')
        && tree.pointer(parent).is_none()
    {
        let above = tree.pointer_mut(above).and_then(Value::as_object_mut);
        above.unwrap_or_else(|| panic!("{pointer}")).insert(name.to_owned(), json!({}));
    }
    match tree.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}")) {
        Value::Object(members) if value.is_null() => {
            members.shift_remove(last).unwrap_or_else(|| panic!("{pointer}"));
        }
        Value::Object(members) => {
            members.insert(last.to_owned(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer}: {other}"),
    }
    tree
}

/// The example with some values, and what is wrong then.
pub(crate) fn faults(changes: &[(String, Value)]) -> Vec<Fault> {
    let tree = changes.iter().cloned().fold(example(), |tree, (pointer, value)| with(tree, &pointer, value));
    yang().validate(&tree.to_string()).err().unwrap_or_default()
}
