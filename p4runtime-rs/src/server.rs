//! What a P4Runtime server needs besides its entities: arbitration, the clients' streams, error statuses.
//!
//! Implement [`P4Runtime`] and wrap it with [`service`]. [`Controllers`] serves `StreamChannel` and tells
//! which requests may change the device; [`Listen`] is where it is served; [`WriteErrors`](crate::WriteErrors) makes the status of a batch.

mod arbitration;
mod controllers;
mod listen;

pub use crate::proto::p4::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
pub use arbitration::{Arbitration, Claim, ClientId, Notice, Refusal};
pub use controllers::{Controllers, Delivery, Inbound, Limits, ResponseStream, WritePermit};
pub use listen::{Listen, ListenError, Serving, connector};

/// Largest request the service takes, in bytes: device configurations exceed gRPC's usual 4 MiB.
pub const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The tonic service of an implementation, with [`MAX_REQUEST_BYTES`].
pub fn service<T: P4Runtime>(implementation: T) -> P4RuntimeServer<T> {
    P4RuntimeServer::new(implementation).max_decoding_message_size(MAX_REQUEST_BYTES)
}

/// Runs what holds locks or takes long apart from the tasks that carry packets.
///
/// # Errors
/// What `work` answers; `INTERNAL` where it did not come to its end.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, tonic::Status> + Send + 'static,
) -> Result<tonic::Response<T>, tonic::Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(tonic::Response::new),
        Err(_) => Err(tonic::Status::internal("the call was cut off")),
    }
}
