//! Types of requests about the configuration and of their answers.
//!
//! A connection is a session. Its candidate is made from running by the first request that needs one, is its own,
//! and goes with the connection.

use serde::{Deserialize, Serialize};

/// How a configuration is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `set` lines.
    #[default]
    Set,
    /// RFC 7951 JSON.
    Json,
    /// XML (RFC 7950).
    Xml,
}

/// A configuration to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// In force.
    #[default]
    Running,
    /// This session's.
    Candidate,
    /// What a start of the machine begins with.
    Startup,
    /// As it was, 0 being running and 1 the one before.
    Rollback(u32),
}

/// How a text is put into the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMode {
    /// What it has is set, the rest stays.
    Merge,
    /// In the place of the whole candidate.
    Replace,
    /// `set` and `del` lines, one after the other.
    Set,
    /// In the place of the whole candidate, from the vendor's early names.
    Early,
}

/// A role, by what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Look.
    ReadOnly,
    /// And `call`, and clear.
    Operator,
    /// And configure.
    Admin,
}

/// Who one is to sluiced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WhoAmI {
    /// User's name.
    pub user: String,
    /// Role.
    pub role: Role,
    /// Number of the session.
    pub session: u32,
}

/// What a change of the candidate did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Changed {
    /// Nodes that are other than before.
    pub changes: usize,
    /// Things that have no counterpart, a line each (`load early`).
    pub notes: Vec<String>,
}

/// What `check` found: nothing wrong, but maybe something worth knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// What is allowed but worth knowing.
    pub warnings: Vec<String>,
    /// What an apply would do to traffic, such as "moves all sessions of unit main".
    pub effects: Vec<String>,
    /// Nodes that differ from running.
    pub changes: usize,
}

/// An earlier configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Revision {
    /// 0 is running.
    pub number: u32,
    /// Who applied it.
    pub user: String,
    /// From where: `cli`, `netconf 192.0.2.1`, `startup` and such.
    pub origin: String,
    /// RFC 3339.
    pub time: String,
    /// As given with the apply.
    pub comment: Option<String>,
    /// Lines of `compare` to the one before.
    pub changes: usize,
    /// RFC 3339: rolled back then unless confirmed; of number 0 alone.
    pub confirm_by: Option<String>,
}
