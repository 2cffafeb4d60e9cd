//! Where something stands in a data tree.

use std::sync::Arc;

use crate::schema::NodeId;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The node.
    pub node: NodeId,
    /// Of a list's entry: the values of all keys, in the order of the schema, canonical. Of a leaf-list's value:
    /// that value. Empty for everything else, and for a list or leaf-list as a whole.
    pub keys: Arc<[Box<str>]>,
}

/// A data node by the nodes from the top; the whole tree where it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<Step>);
