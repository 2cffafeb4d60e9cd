//! The protocol's messages, client and service, as generated from `proto/`.
//!
//! Names, numbers and types are those of P4Runtime 1.x; a test compares them with the descriptors that
//! p4.org publishes.

/// Packages below `p4`.
pub mod p4 {
    /// `p4.v1`: entities, requests, responses, the service.
    #[allow(missing_docs, clippy::all, unused_qualifications, unreachable_pub)]
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }

    /// Packages below `p4.config`.
    pub mod config {
        /// `p4.config.v1`: what a compiled program offers (P4Info).
        #[allow(missing_docs, clippy::all, unused_qualifications, unreachable_pub)]
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// Packages below `google`.
pub mod google {
    /// `google.rpc`: the status that carries error details.
    #[allow(missing_docs, clippy::all, unused_qualifications, unreachable_pub)]
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// Encoded `FileDescriptorSet` of every file with its imports, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4runtime.fds"));
