//! What keeps a program from being loaded.

use thiserror::Error;

/// A program that is not run, and why. `at` is the place in the JSON, as keys and indices.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No JSON.
    #[error("the program is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// No P4Info text.
    #[error("the P4Info is no protobuf text of p4.config.v1.P4Info: {0}")]
    Text(String),
    /// A key is missing, or what it has is of another kind.
    #[error("{at}: {wanted} belongs here")]
    Shape {
        /// Where.
        at: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// A name or id that nothing has.
    #[error("{at}: there is no {kind} `{name}`")]
    Unknown {
        /// Where.
        at: String,
        /// Kind of the thing.
        kind: &'static str,
        /// Its name or id.
        name: String,
    },
    /// Something that this interpreter does not have.
    #[error("{at}: {kind} `{name}` is not implemented by this interpreter")]
    Unsupported {
        /// Where.
        at: String,
        /// Kind of the thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Program and P4Info contradict each other, or the P4Info itself.
    #[error("P4Info: {what}: {problem}")]
    Info {
        /// Table, action or counter.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// A restriction that cannot be read.
    #[error("P4Info: restriction of `{of}`: {problem}")]
    Restriction {
        /// Table or action.
        of: String,
        /// What is wrong, with the place.
        problem: String,
    },
}

impl LoadError {
    pub(super) fn info(what: impl Into<String>, problem: impl Into<String>) -> Self {
        LoadError::Info { what: what.into(), problem: problem.into() }
    }
}
