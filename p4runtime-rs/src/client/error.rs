use std::fmt;
use std::ops::Range;
use std::time::Duration;

use thiserror::Error;
use tonic::{Code, Status};

use crate::fault::{DetailsError, Rejection};

/// A session or a call that failed.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The address is none of the forms known.
    #[error("address `{address}`: expected grpc://HOST:PORT, http://HOST:PORT or unix:/PATH")]
    Address {
        /// What was given.
        address: String,
    },
    /// No connection.
    #[error("connect to {target}: {reason}")]
    Connect {
        /// Address of the server.
        target: String,
        /// What went wrong.
        reason: String,
    },
    /// The server did not answer in time. Whether it carried the call out is unknown.
    #[error("{call}: no answer within {after:?}")]
    Deadline {
        /// The call.
        call: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The server refused the call as a whole, or the connection broke.
    #[error("{call}: {code:?}: {message}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Canonical code.
        code: Code,
        /// What the server says.
        message: String,
    },
    /// The server refused some filters of a read.
    #[error("{call}: {}", listed(.rejections, *.items))]
    Rejected {
        /// The call.
        call: &'static str,
        /// Number of filters sent.
        items: usize,
        /// Those refused.
        rejections: Vec<Rejection>,
    },
    /// The server's answer breaks the protocol.
    #[error("{call}: the server broke the protocol: {reason}")]
    Protocol {
        /// The call.
        call: &'static str,
        /// How.
        reason: String,
    },
    /// All-or-none was asked for more updates than go into one request.
    #[error(
        "{updates} updates of {bytes} bytes do not fit one request ({limit} updates, {limit_bytes} bytes), so not all or none; raise the batch size or choose CONTINUE_ON_ERROR"
    )]
    TooLargeForAtomic {
        /// Number of updates.
        updates: usize,
        /// Their encoded size.
        bytes: usize,
        /// Updates in one request.
        limit: usize,
        /// Bytes in one request.
        limit_bytes: usize,
    },
    /// Only the primary may do this, and this client is not.
    #[error("{call}: this client is not primary")]
    NotPrimary {
        /// The call.
        call: &'static str,
    },
    /// This client did not become primary in time.
    #[error("not primary at {target} after {after:?}: {reason}")]
    StillNotPrimary {
        /// Address of the server.
        target: String,
        /// The time waited.
        after: Duration,
        /// How things stand instead.
        reason: String,
    },
    /// The session has ended.
    #[error("{call}: the session has ended: {reason}")]
    Lost {
        /// The call.
        call: &'static str,
        /// Why the session ended.
        reason: String,
    },
}

impl Error {
    pub(super) fn refused(call: &'static str, status: &Status) -> Self {
        Self::Refused { call, code: status.code(), message: status.message().to_owned() }
    }

    /// Reads a failed batch's status.
    pub(super) fn of_batch(call: &'static str, status: &Status, items: usize) -> Self {
        match crate::fault::rejections(status, items) {
            Ok(None) => Self::refused(call, status),
            Ok(Some(rejections)) if rejections.is_empty() => Self::refused(call, status),
            Ok(Some(rejections)) => Self::Rejected { call, items, rejections },
            Err(reason) => Self::broken_details(call, status, &reason),
        }
    }

    fn broken_details(call: &'static str, status: &Status, reason: &DetailsError) -> Self {
        Self::Protocol { call, reason: format!("{reason}; status {:?}: {}", status.code(), status.message()) }
    }

    /// The canonical code the server gave, if it answered at all.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Rejected { .. } => Some(Code::Unknown),
            _ => None,
        }
    }
}

/// Where a write stopped short.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Updates of the request that failed as a whole: if the cause is a deadline or a broken connection,
    /// some or all of them may have been carried out. Later updates were not sent.
    pub batch: Range<usize>,
    /// Why.
    pub cause: Error,
}

/// A write that did not fully succeed.
#[derive(Clone, Debug)]
pub struct WriteError {
    /// Number of updates to write.
    pub updates: usize,
    /// Updates that the server rejected one by one, in order. With an all-or-none atomicity none of the
    /// others took effect either.
    pub rejections: Vec<Rejection>,
    /// Set if a request failed as a whole.
    pub stopped: Option<Stopped>,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write: ")?;
        if !self.rejections.is_empty() {
            write!(f, "{}", listed(&self.rejections, self.updates))?;
        }
        let Some(stopped) = &self.stopped else { return Ok(()) };
        if !self.rejections.is_empty() {
            write!(f, "; ")?;
        }
        let Range { start, end } = stopped.batch;
        write!(f, "stopped in updates {start}..{end} of {}: {}", self.updates, stopped.cause)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.stopped.as_ref().map(|stopped| &stopped.cause as _)
    }
}

/// The number of rejections and the first of them.
fn listed(rejections: &[Rejection], items: usize) -> String {
    match rejections {
        [] => format!("none of {items} rejected"),
        [only] => format!("1 of {items} rejected: {only}"),
        [first, ..] => format!("{} of {items} rejected; first: {first}", rejections.len()),
    }
}
