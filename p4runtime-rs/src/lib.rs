//! P4Runtime and P4Info bindings.
#![forbid(unsafe_code)]

pub mod bytestring;
pub mod client;
mod election;
mod entity;
mod fault;
pub mod metadata;
pub mod proto;
pub mod server;

pub use election::ElectionId;
pub use fault::{DetailsError, Fault, Rejection, WriteErrors, rejections};
