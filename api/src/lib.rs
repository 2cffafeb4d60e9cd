//! What `sluiced` and its clients say to each other over the Unix socket.
//!
//! One JSON object a line each way: a [`Request`] is answered by one [`Response`]. The types of the
//! answers are the stable schema of `| json`: fields are added, never renamed or removed.
#![forbid(unsafe_code)]

mod client;
mod show;

pub use client::{Client, ClientError};
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
    },
    /// The running configuration as RFC 7951 JSON.
    ShowConfiguration,
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
