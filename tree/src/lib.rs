//! A configuration as a tree: the schema that it follows, the data, and what can be done with both.
//!
//! Nothing here knows the balancer: names, types and texts all come from the YANG modules (crate `yang`), as a
//! [`Schema`]. Pure.
#![forbid(unsafe_code)]

pub mod path;
pub mod schema;

pub use path::{Path, Step};
pub use schema::{Kind, Node, NodeId, Schema, Type};
