//! The gRPC status service of `sluiced`: messages, the service's trait and a client.
//!
//! `api/proto/sluice/status/v1/status.proto` says what each field means.
#![forbid(unsafe_code)]

/// `sluice.status.v1`.
#[allow(missing_docs, clippy::all, unused_qualifications, unreachable_pub, reason = "made from the protocol")]
pub mod v1 {
    tonic::include_proto!("sluice.status.v1");
}

/// Encoded `FileDescriptorSet` of every file with its imports, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/status.fds"));
