use std::time::Duration;

use crate::ElectionId;

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device to control; not 0.
    pub device_id: u64,
    /// Claim to be primary; `None` for a client that only stands by.
    pub election_id: Option<ElectionId>,
    /// Updates in one write request, at least 1.
    pub batch: usize,
    /// Encoded bytes of one write request. gRPC servers take 4 MiB unless told otherwise.
    pub batch_bytes: usize,
    /// Time to connect and to get the answer to the first claim, each.
    pub connect_deadline: Duration,
    /// Time for a unary call, and for each message of a read.
    pub call_deadline: Duration,
    /// Time for setting or getting a pipeline.
    pub pipeline_deadline: Duration,
    /// Packet-ins that wait for the consumer; more are dropped and counted.
    pub packets: usize,
    /// Digests, notifications and errors that wait for the consumer; more are dropped and counted.
    pub notices: usize,
}

impl Options {
    /// Usual values: 512 updates or 3 MiB in a batch, 5 s for a call, 60 s for a pipeline.
    pub fn new(device_id: u64, election_id: Option<ElectionId>) -> Self {
        Self {
            device_id,
            election_id,
            batch: 512,
            batch_bytes: 3 << 20,
            connect_deadline: Duration::from_secs(5),
            call_deadline: Duration::from_secs(5),
            pipeline_deadline: Duration::from_secs(60),
            packets: 1024,
            notices: 256,
        }
    }
}
