//! `load early`: the early generation of the vendor's names, turned into this tree.
//!
//! | early | here |
//! | --- | --- |
//! | `balance-groups NAME` | `ecofilter-balancer ecofilter-unit NAME` |
//! | `nat-unit-queues N` of a group | `cores N` |
//! | `balancing-as mag-hash` | `balancing-method layer-3` |
//! | `rebalance`, alone or with a word for on or off | `rebalance on`, `rebalance off` |
//! | `filter-group NAME` with `filter NAME { lan-port; wan-port }` | the `pair`s of the unit whose group names it |
//! | `filters NAME` with `apply-to-links`, `match`, and an action | `flow NAME` |
//! | `to-balance-group NAME` | `action to-ecofilter`, `ecofilter-unit NAME` |
//! | `links`, `ports` | `link`, `port` |
//!
//! Leaves that have kept their names are taken as they are. Whatever has no counterpart gets a line of its own.

mod convert;
mod words;

use std::sync::Arc;

use tree::{Schema, Tree, json};

pub use words::WordsError;

/// A configuration of the early generation, in today's tree.
#[derive(Debug)]
pub struct Early {
    /// What has a counterpart.
    pub tree: Tree,
    /// What has none, or was decided for it, a line each.
    pub notes: Vec<String>,
}

/// A configuration of the early generation that cannot be turned into this tree.
#[derive(Debug, thiserror::Error)]
pub enum EarlyError {
    /// It cannot be read.
    #[error(transparent)]
    Words(#[from] WordsError),
    /// There is nothing of the early generation in it.
    #[error(
        "nothing here is of the early generation; expected balance-groups, filter-group or filters. \
         `load merge` and `load replace` take today's names"
    )]
    Nothing,
    /// What it says is not possible here.
    #[error("{}", .0.join("\n"))]
    Values(Vec<String>),
}

/// Reads blocks (`balance-groups { main { ... } }`), `set` lines or JSON.
///
/// # Errors
/// [`EarlyError`].
pub fn read(schema: &Arc<Schema>, text: &str) -> Result<Early, EarlyError> {
    let words = words::read(text)?;
    let (value, notes) = convert::convert(schema, &words).ok_or(EarlyError::Nothing)?;
    let tree = json::read_at(schema, &tree::Path::default(), &value)
        .map_err(|faults| EarlyError::Values(faults.iter().map(ToString::to_string).collect()))?;
    Ok(Early { tree, notes })
}
