//! Outcomes of the single items of a batch, and how a status carries them (P4Runtime, "Error Reporting
//! Messages").

use std::fmt;

use prost::Message;
use prost_types::Any;
use thiserror::Error;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1;

const ERROR_TYPE: &str = "p4.v1.Error";

/// Why one item of a batch failed. The code is never OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    code: Code,
    message: String,
    space: String,
    vendor_code: i32,
}

impl Fault {
    /// A fault with a canonical code and a text for the developer. OK, which would read as success,
    /// becomes `UNKNOWN`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let code = if code == Code::Ok { Code::Unknown } else { code };
        Self { code, message: message.into(), space: String::new(), vendor_code: 0 }
    }

    /// `INVALID_ARGUMENT`: the entity is malformed.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// `NOT_FOUND`: there is no such entity.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// `ALREADY_EXISTS`: the entity to insert is there.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(Code::AlreadyExists, message)
    }

    /// `RESOURCE_EXHAUSTED`: the table is full.
    pub fn resource_exhausted(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, message)
    }

    /// `UNIMPLEMENTED`: this target has no such entity or operation.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// `ABORTED`: nothing wrong with this item, but it was taken back because another failed.
    pub fn aborted(message: impl Into<String>) -> Self {
        Self::new(Code::Aborted, message)
    }

    /// The same fault with a code of the vendor's own.
    #[must_use]
    pub fn with_vendor_code(mut self, space: impl Into<String>, code: i32) -> Self {
        self.space = space.into();
        self.vendor_code = code;
        self
    }

    /// Canonical code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Text for the developer; may be empty.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The vendor's error space and code, if it named one.
    pub fn vendor_code(&self) -> Option<(&str, i32)> {
        (!self.space.is_empty()).then_some((self.space.as_str(), self.vendor_code))
    }

    fn decode(error: v1::Error) -> Result<(), Self> {
        if error.canonical_code == 0 {
            return Ok(());
        }
        Err(Self {
            code: Code::from_i32(error.canonical_code),
            message: error.message,
            space: error.space,
            vendor_code: error.code,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)?;
        match self.vendor_code() {
            Some((space, code)) => write!(f, " ({space} {code})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

impl From<crate::bytestring::BytestringError> for Fault {
    fn from(error: crate::bytestring::BytestringError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// One item of a batch that the server did not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Place of the item in the caller's list, from 0.
    pub index: usize,
    /// What the server says about it.
    pub fault: Fault,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}: {}", self.index, self.fault)
    }
}

/// Outcomes of every item of a batch in order, on the server's side.
///
/// ```
/// use p4runtime::{Fault, WriteErrors};
/// let outcomes: WriteErrors = [Ok(()), Err(Fault::not_found("no such entry"))].into_iter().collect();
/// let status = outcomes.into_result().unwrap_err();
/// assert_eq!(status.code(), tonic::Code::Unknown);
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteErrors {
    outcomes: Vec<Result<(), Fault>>,
}

impl WriteErrors {
    /// Notes the outcome of the next item.
    pub fn push(&mut self, outcome: Result<(), Fault>) {
        self.outcomes.push(outcome);
    }

    /// Whether some item failed.
    pub fn any(&self) -> bool {
        self.outcomes.iter().any(Result::is_err)
    }

    /// `Ok` if every item succeeded.
    ///
    /// # Errors
    /// The status that the protocol demands otherwise: `UNKNOWN`, with one `p4.v1.Error` for every item,
    /// those that succeeded included.
    pub fn into_result(self) -> Result<(), Status> {
        let failed = self.outcomes.iter().filter(|o| o.is_err()).count();
        if failed == 0 {
            return Ok(());
        }
        let message = format!("{failed} of {} failed", self.outcomes.len());
        let details = self.outcomes.into_iter().map(encode).collect();
        let status = rpc::Status { code: Code::Unknown as i32, message: message.clone(), details };
        Err(Status::with_details(Code::Unknown, message, status.encode_to_vec().into()))
    }
}

impl FromIterator<Result<(), Fault>> for WriteErrors {
    fn from_iter<I: IntoIterator<Item = Result<(), Fault>>>(outcomes: I) -> Self {
        Self { outcomes: outcomes.into_iter().collect() }
    }
}

fn encode(outcome: Result<(), Fault>) -> Any {
    let error = match outcome {
        Ok(()) => v1::Error::default(),
        Err(fault) => v1::Error {
            canonical_code: fault.code as i32,
            message: fault.message,
            space: fault.space,
            code: fault.vendor_code,
            details: None,
        },
    };
    Any { type_url: format!("type.googleapis.com/{ERROR_TYPE}"), value: error.encode_to_vec() }
}

/// Details of a status that are not what the protocol says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DetailsError {
    /// The trailer is no `google.rpc.Status`.
    #[error("error details are no google.rpc.Status: {0}")]
    Status(prost::DecodeError),
    /// A detail is of another type.
    #[error("error detail {index} is a `{type_url}`, expected {ERROR_TYPE}")]
    Type {
        /// Place in the list.
        index: usize,
        /// Type that was found.
        type_url: String,
    },
    /// A detail is no `p4.v1.Error`.
    #[error("error detail {index} is no {ERROR_TYPE}: {source}")]
    Detail {
        /// Place in the list.
        index: usize,
        /// What is wrong with its encoding.
        source: prost::DecodeError,
    },
    /// The number of details differs from the number of items.
    #[error("{details} error details for a batch of {items}")]
    Count {
        /// Number of details.
        details: usize,
        /// Number of items sent.
        items: usize,
    },
}

/// Reads what a status says about each of `items` items; `None` if the status is about the call as a
/// whole.
///
/// # Errors
/// There are details, but not one `p4.v1.Error` for each item.
pub fn rejections(status: &Status, items: usize) -> Result<Option<Vec<Rejection>>, DetailsError> {
    if status.details().is_empty() {
        return Ok(None);
    }
    let details = rpc::Status::decode(status.details()).map_err(DetailsError::Status)?.details;
    if details.is_empty() {
        return Ok(None);
    }
    if details.len() != items {
        return Err(DetailsError::Count { details: details.len(), items });
    }
    let mut rejections = Vec::new();
    for (index, detail) in details.into_iter().enumerate() {
        if detail.type_url.rsplit('/').next() != Some(ERROR_TYPE) {
            return Err(DetailsError::Type { index, type_url: detail.type_url });
        }
        let error = v1::Error::decode(detail.value.as_slice())
            .map_err(|source| DetailsError::Detail { index, source })?;
        if let Err(fault) = Fault::decode(error) {
            rejections.push(Rejection { index, fault });
        }
    }
    Ok(Some(rejections))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Fault {
        Fault::resource_exhausted("table is full").with_vendor_code("sluice", 500)
    }

    #[test]
    fn status_has_one_detail_for_every_update_in_order() {
        let outcomes: WriteErrors =
            [Err(full()), Ok(()), Err(Fault::already_exists("is there"))].into_iter().collect();
        let status = outcomes.into_result().unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unknown, "2 of 3 failed"));

        let inner = rpc::Status::decode(status.details()).unwrap();
        assert_eq!((inner.code, inner.message.as_str()), (2, "2 of 3 failed"));
        let errors: Vec<v1::Error> = inner
            .details
            .iter()
            .map(|any| {
                assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
                v1::Error::decode(any.value.as_slice()).unwrap()
            })
            .collect();
        assert_eq!(errors.iter().map(|e| e.canonical_code).collect::<Vec<_>>(), [8, 0, 6]);
        assert_eq!((errors[0].space.as_str(), errors[0].code), ("sluice", 500));
        assert_eq!(errors[1], v1::Error::default());

        let read = rejections(&status, 3).unwrap().unwrap();
        assert_eq!(read.iter().map(|r| r.index).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(read[0].fault, full());
        assert_eq!(read[0].to_string(), "item 0: ResourceExhausted: table is full (sluice 500)");
    }

    #[test]
    fn success_of_every_update_is_no_error() {
        assert!([Ok(()), Ok(())].into_iter().collect::<WriteErrors>().into_result().is_ok());
        assert!(WriteErrors::default().into_result().is_ok());
    }

    #[test]
    fn a_fault_never_reads_as_success() {
        assert_eq!(Fault::new(Code::Ok, "").code(), Code::Unknown);
        let unknown = Fault::decode(v1::Error { canonical_code: 99, ..Default::default() });
        assert_eq!(unknown.unwrap_err().code(), Code::Unknown);
    }

    #[test]
    fn status_without_details_is_about_the_call() {
        assert_eq!(rejections(&Status::unavailable("not yet"), 3), Ok(None));
        let bare = rpc::Status { code: 14, ..Default::default() }.encode_to_vec();
        assert_eq!(rejections(&Status::with_details(Code::Unavailable, "", bare.into()), 3), Ok(None));
    }

    #[test]
    fn details_that_break_the_protocol_are_named() {
        let of = |details: Vec<Any>| {
            let inner = rpc::Status { code: 2, message: String::new(), details };
            Status::with_details(Code::Unknown, "", inner.encode_to_vec().into())
        };
        let garbage = Status::with_details(Code::Unknown, "", vec![0xff, 0xff].into());
        assert!(matches!(rejections(&garbage, 1), Err(DetailsError::Status(_))));
        assert_eq!(
            rejections(&of(vec![encode(Err(full()))]), 2),
            Err(DetailsError::Count { details: 1, items: 2 })
        );
        let other = Any { type_url: "type.googleapis.com/p4.v1.Entity".into(), value: vec![] };
        assert!(matches!(rejections(&of(vec![other]), 1), Err(DetailsError::Type { index: 0, .. })));
        let broken = Any { type_url: "type.googleapis.com/p4.v1.Error".into(), value: vec![0xff] };
        assert!(matches!(rejections(&of(vec![broken]), 1), Err(DetailsError::Detail { index: 0, .. })));
    }
}
