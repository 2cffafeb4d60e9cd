//! Configurations: good ones, bad ones, and what they ask of the tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod changes;
mod entries;
mod generate;
mod numbers;
mod refusals;
mod shape;
mod shares;
mod warnings;
mod watching;

use serde_json::Value;
use site::{Site, SiteError};

pub(crate) const EXAMPLE: &str = include_str!("example-site.json");
pub(crate) const BALANCER: &str = "/sluice:ecofilter-balancer";

pub(crate) fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

/// The example with the value at a JSON pointer replaced or, in an object or at a list's end, added.
pub(crate) fn with(mut tree: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match tree.pointer_mut(parent).unwrap_or_else(|| panic!("{parent}")) {
        Value::Object(object) => {
            object.insert(key.to_owned(), value);
        }
        Value::Array(list) => match key.parse::<usize>() {
            Ok(index) => list[index] = value,
            Err(_) => list.push(value),
        },
        other => panic!("{parent} is {other}"),
    }
    tree
}

pub(crate) fn read(tree: &Value) -> Result<Site, SiteError> {
    Site::from_json(&tree.to_string())
}

pub(crate) fn good(tree: &Value) -> Site {
    read(tree).unwrap_or_else(|error| panic!("{error}\n{tree:#}"))
}
