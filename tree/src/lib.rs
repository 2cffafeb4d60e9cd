//! A configuration as a tree: the schema that it follows, the data, and what can be done with both.
//!
//! Nothing here knows the balancer: names, types and texts all come from the YANG modules (crate `yang`), as a
//! [`Schema`]. Pure.
#![forbid(unsafe_code)]

pub mod data;
pub mod defaults;
pub mod diff;
pub mod edit;
pub mod json;
pub mod line;
pub mod merge;
pub mod natural;
pub mod path;
mod pattern;
pub mod read;
pub mod schema;
pub mod set_lines;
mod value;
pub mod words;
pub mod xml;

pub use data::{Data, Entries, Fields, Keys, Tree, Values};
pub use defaults::Defaults;
pub use diff::{Change, Content, compare_lines, diff};
pub use edit::{Edit, EditFault, Place};
pub use line::{Candidate, CandidateKind, Verb, WordFault};
pub use merge::{Conflict, merge};
pub use path::{Path, PathFault, Step};
pub use read::{FaultKind, ReadFault};
pub use schema::{Kind, Node, NodeId, Schema, Type};
pub use set_lines::LineFault;
