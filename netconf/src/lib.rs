//! NETCONF 1.0 and 1.1 over SSH, as a server: RFC 6241 (operations), 6242 (SSH), 6022 (monitoring, get-schema),
//! 5277 (notifications), 6243 (defaults).
//!
//! What is configured, and how it gets into force, is the [`Backend`]'s. A request goes by file: [`ssh`] lets someone
//! in, [`framing`] finds the messages, `session` takes them one by one, `request` does what they ask for with `edit`
//! (XML to configuration), `filter` and `retrieval` (configuration to XML).
#![forbid(unsafe_code)]

pub mod backend;
pub mod credentials;
mod document;
mod edit;
pub mod error;
mod filter;
pub mod framing;
mod hello;
pub mod host_key;
pub mod locks;
pub mod name;
mod own;
mod parameters;
mod request;
mod retrieval;
pub mod server;
mod session;
mod socket;
pub mod ssh;
mod subscription;
mod time;
mod writer;

pub use backend::{
    Access, Action, Backend, Caller, Commit, Confirmed, Datastore, Ending, Login, Module, Notification,
    Pending,
};
pub use credentials::Credentials;
pub use document::XmlLimits;
pub use error::{ErrorPath, Info, Layer, Refusal, RpcError, Tag};
pub use locks::{Held, Locks};
pub use russh::keys::PrivateKey;
pub use server::{Server, Settings};
