//! A client's session with one device, and what keeps a session up.
//!
//! [`Session`] is one stream with its arbitration and the calls beside it; it ends when the stream does.
//! [`Supervisor`] makes sessions one after the other and reports on its [`Uplink`].

mod error;
mod inbox;
mod options;
mod read;
mod session;
mod supervisor;
mod target;
mod write;

pub use crate::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
pub use crate::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
pub use crate::proto::p4::v1::set_forwarding_pipeline_config_request::Action as PipelineAction;
pub use crate::proto::p4::v1::write_request::Atomicity;
pub use error::{Error, Stopped, WriteError};
pub use inbox::{Dropped, Inbox, StreamNotice};
pub use options::Options;
pub use read::Entities;
pub use session::{Session, Standing};
pub use supervisor::{Retry, State, Supervisor, Uplink};
pub use target::{ByteStream, Target};
