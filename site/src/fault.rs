//! What is wrong with a configuration, by path and value.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, as `ecofilter-balancer link link1 lan-port`.
    pub path: String,
    /// The value found there.
    pub value: String,
    /// What would be right.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.path, self.value, self.reason)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// No JSON of the tree's shape.
    #[error("the configuration cannot be read: {0}")]
    Shape(String),
    /// Breaks rules; all of them are listed.
    #[error("{}", list(.0))]
    Faults(Vec<Fault>),
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}
