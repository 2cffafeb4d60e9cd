//! The data plane behind one trait: whatever can be programmed over P4Runtime, here or elsewhere.

mod chaos;
mod p4rt;
mod program;

use std::future::Future;

use dataplane::PortId;
use dataplane::entry::{Entry, P4Id, Update};
use dataplane::target::TargetProfile;
use swpipe::counters::Count;
use tokio::sync::{mpsc, watch};

pub use chaos::Chaos;
pub use p4rt::{P4rt, P4rtPackets};
pub use program::{Program, ProgramError};

/// Why the data plane did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TargetError {
    /// It cannot be reached now.
    #[error("the data plane {address} is not there: {reason}")]
    Lost {
        /// Its address.
        address: String,
        /// Why.
        reason: String,
    },
    /// It answered and refused; nothing of the request was done where it was all or nothing.
    #[error("the data plane {address} refuses {what}: {reason}")]
    Refused {
        /// Its address.
        address: String,
        /// What it was asked.
        what: String,
        /// Its reason.
        reason: String,
    },
    /// It refused part of a request whose updates each stand for themselves; others of them were done.
    #[error("the data plane {address} refuses {what}: {reason}")]
    Partly {
        /// Its address.
        address: String,
        /// What it was asked.
        what: String,
        /// Its reason.
        reason: String,
    },
    /// It does not run our pipeline, and will not.
    #[error(
        "the data plane {address} does not take this controller's pipeline {digest} for {profile}: {reason}; \
         start sluiced with the --target-profile of that data plane, and both of one version"
    )]
    Pipeline {
        /// Its address.
        address: String,
        /// Of the pipeline.
        digest: String,
        /// The target that it is for.
        profile: &'static TargetProfile,
        /// Its reason.
        reason: String,
    },
    /// It broke off; whether the request was done is not known.
    #[error("the data plane {address} did not answer {what}: {reason}")]
    Unanswered {
        /// Its address.
        address: String,
        /// What it was asked.
        what: String,
        /// Why.
        reason: String,
    },
}

/// How the connection stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This controller programs it. The number rises with every new connection.
    Primary(u64),
    /// Another controller does.
    Backup,
    /// No connection.
    Lost(String),
}

/// A frame that the data plane hands over.
#[derive(Clone, Debug)]
pub struct PacketIn {
    /// The port it came in by.
    pub port: PortId,
    /// When, ns on the data plane's clock.
    pub received: u64,
    /// The frame.
    pub frame: Vec<u8>,
}

/// Where frames from the data plane come out.
pub trait Packets: Send + 'static {
    /// The next frame; `None` when there will be none any more.
    fn next(&mut self) -> impl Future<Output = Option<PacketIn>> + Send;

    /// A frame that is there already.
    fn ready(&mut self) -> Option<PacketIn>;
}

impl Packets for mpsc::Receiver<PacketIn> {
    async fn next(&mut self) -> Option<PacketIn> {
        self.recv().await
    }

    fn ready(&mut self) -> Option<PacketIn> {
        self.try_recv().ok()
    }
}

/// A data plane.
pub trait Target: Send + Sync + 'static {
    /// Address, or `embedded`.
    fn address(&self) -> String;

    /// The target that it is taken for.
    fn profile(&self) -> &'static TargetProfile;

    /// Digest of the pipeline that it is set to run.
    fn pipeline(&self) -> String;

    /// Follows the connection.
    fn standing(&self) -> watch::Receiver<Standing>;

    /// Makes sure that it runs our pipeline; `true` where it had to be set, and tables are empty now.
    fn prepare(&self) -> impl Future<Output = Result<bool, TargetError>> + Send;

    /// Applies a batch, all or nothing; [`TargetError::Partly`] where the target cannot do so and part was done.
    fn write(&self, updates: Vec<Update>) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// All entries.
    fn entries(&self) -> impl Future<Output = Result<Vec<Entry>, TargetError>> + Send;

    /// Values of counter cells, in the order asked for.
    fn counters(
        &self,
        cells: Vec<(P4Id, usize)>,
    ) -> impl Future<Output = Result<Vec<Count>, TargetError>> + Send;

    /// Entries of the rule tables with their counters.
    fn rule_counters(&self) -> impl Future<Output = Result<Vec<(Entry, Count)>, TargetError>> + Send;

    /// Sends a frame by a port.
    fn send(&self, port: PortId, frame: Vec<u8>) -> impl Future<Output = Result<(), TargetError>> + Send;
}
