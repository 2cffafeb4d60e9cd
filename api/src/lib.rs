//! What `sluiced` and its clients say to each other over the Unix socket.
//!
//! One JSON object a line each way: a [`Request`] is answered by one [`Response`]. The types of the
//! answers are the stable schema of `| json`: fields are added, never renamed or removed.
#![forbid(unsafe_code)]

mod client;
mod configuration;
mod show;

pub use client::{Client, ClientError};
pub use configuration::*;
pub use show::*;

use serde::{Deserialize, Serialize};

/// Where `sluiced` listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/sluice/sluice.sock";

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// [`Version`].
    ShowVersion,
    /// List of [`Port`].
    ShowPorts,
    /// [`Port`].
    ShowPortStatistics {
        /// The port's name.
        port: String,
    },
    /// List of [`Link`].
    ShowLink,
    /// [`Balancer`].
    ShowBalancer,
    /// List of [`Unit`].
    ShowUnit {
        /// One unit's name; all without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
    },
    /// List of [`Flow`].
    ShowFlow {
        /// One flow's name; all without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
    },
    /// [`ConfigHash`].
    ShowConfigHash,
    /// List of [`PairLiveness`].
    ShowLiveness {
        /// One profile's name; all without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    },
    /// [`Drops`].
    ShowDrops,
    /// List of [`Event`], oldest first.
    ShowEvents {
        /// Only events with a larger id.
        #[serde(default)]
        after: u64,
        /// The newest so many at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<usize>,
        /// Only such events.
        #[serde(default, skip_serializing_if = "EventFilter::is_open")]
        filter: EventFilter,
    },
    /// [`NewEvents`]: for who asks again and again.
    FollowEvents {
        /// Only events with a larger id: [`NewEvents::newest`] of the last answer.
        after: u64,
        /// Only such events.
        #[serde(default, skip_serializing_if = "EventFilter::is_open")]
        filter: EventFilter,
    },
    /// The running configuration as RFC 7951 JSON.
    ShowConfiguration,
    /// [`WhoAmI`].
    WhoAmI,
    /// `tree::Schema`: everything that can be configured, with types and descriptions.
    Schema,
    /// A text: a configuration, or what is below a path of it.
    ShowTree {
        /// Which.
        source: Source,
        /// Words from the top as in a `set` line; empty for all of it.
        #[serde(default)]
        path: Vec<String>,
        /// How.
        format: Format,
        /// With values that are not set but in force.
        #[serde(default)]
        defaults: bool,
    },
    /// List of texts: keys of a list's entries in the candidate, or of running where there is no candidate.
    Keys {
        /// Words from the top to the list, keys of lists above it included.
        path: Vec<String>,
        /// Only keys that begin so, a thousand at most.
        prefix: String,
    },
    /// [`Changed`]: `set` and `del` lines from the top; all of them or none.
    Edit {
        /// The lines.
        lines: Vec<String>,
    },
    /// [`Changed`]: puts a text into the candidate, all of it or nothing.
    Load {
        /// How.
        mode: LoadMode,
        /// Set lines, JSON or XML, which its beginning tells.
        text: String,
    },
    /// [`Changed`]: the candidate becomes what a revision was.
    Rollback {
        /// 0 is running.
        number: u32,
    },
    /// [`Changed`]: the candidate becomes what running is.
    Discard,
    /// List of texts: lines of difference, `+ set ...` and `- set ...`, from `with` to the candidate, or to running
    /// where there is no candidate.
    Compare {
        /// From what.
        with: Source,
    },
    /// [`Checked`]: whether the candidate could be applied.
    Check,
    /// [`Applied`]: puts the candidate in force; confirms an apply that waits for it.
    Apply {
        /// Minutes until it is rolled back by itself unless an apply follows.
        #[serde(default)]
        confirmed: Option<u32>,
        /// Kept with the revision.
        #[serde(default)]
        comment: Option<String>,
    },
    /// Nothing: running becomes startup.
    Save,
    /// List of [`Revision`].
    ShowRollbacks,
    /// Nothing; ends the hold of a damped pair.
    ClearHold {
        /// The unit's name.
        unit: String,
        /// The pair's name.
        pair: String,
    },
    /// [`Target`].
    ShowTarget,
    /// [`Lookup`].
    Lookup(LookupQuery),
    /// Nothing; refused with a reason where the unit is unknown or the data plane refuses.
    SetUnitMode {
        /// The unit's name.
        unit: String,
        /// The mode by hand, or back to `auto`.
        mode: UnitMode,
    },
    /// [`Applied`]: checks a whole configuration and puts it in the place of the running one.
    LoadReplace {
        /// RFC 7951 JSON.
        text: String,
        /// Where it came from, for the event log.
        origin: String,
    },
}

/// `auto`, or a state by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitMode {
    /// Up while enough pairs are.
    Auto,
    /// All traffic to the peer port.
    Bypass,
    /// Balance whatever the state of pairs.
    Primary,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Done; the request's type of answer.
    Ok(serde_json::Value),
    /// Refused; nothing was changed. One line a reason.
    Error(String),
}
