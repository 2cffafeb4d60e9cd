//! Ports: Linux interfaces behind two traits. A worker owns receivers, and a sender of its own for every
//! port, so that no lock stands between two workers.
//!
//! Frames are handed over as they were on the wire, without FCS: a VLAN tag that the kernel moved to
//! auxiliary data is back in its place.

#[allow(unsafe_code)]
pub mod af_packet;
#[allow(unsafe_code)]
pub mod af_xdp;
mod claim;
pub mod datalink;
mod error;
#[allow(unsafe_code)]
mod ethtool;
mod filter;
#[allow(unsafe_code)]
pub mod interface;
#[allow(unsafe_code)]
pub mod keep_alive;
pub mod link_watch;
pub mod offload;
mod port;
#[allow(unsafe_code)]
mod ring;
#[allow(unsafe_code)]
mod socket;

use dataplane::Nanos;

pub use claim::Claim;
pub use error::IoError;
pub use filter::ProbeHeaders;
pub use port::{Backend, Notice, Port, open, open_among};

/// Smallest MTU of a port: what every IPv4 link carries (RFC 791).
pub const MTU_MIN: u32 = 68;
/// Greatest MTU of a port.
pub const MTU_MAX: u32 = 10240;

/// Frames in a batch at most.
pub const BATCH: usize = 32;

/// A received frame; it lives in the receiver's ring until the call that handed it over returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'ring> {
    /// From the destination MAC, without FCS.
    pub bytes: &'ring [u8],
}

/// What to change on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Nothing.
    Keep,
    /// Put these four bytes behind the MACs.
    Push([u8; 4]),
    /// Take the four bytes behind the MACs away.
    Pop,
}

/// The receiving half of a port.
pub trait Receiver: Send {
    /// Hands over what has arrived, at most [`BATCH`] frames, without waiting; the number handed over.
    fn receive(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize;

    /// Takes nothing that arrives from now on; what has arrived stays to be handed over.
    ///
    /// # Errors
    /// What the kernel says; it goes on taking then.
    fn hold(&mut self) -> std::io::Result<()>;

    /// Takes what arrives from now on.
    ///
    /// # Errors
    /// What the kernel says.
    fn release(&mut self) -> std::io::Result<()>;

    /// Descriptor that polls readable when frames have arrived.
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>>;

    /// Frames that the kernel had no room for since the last call.
    fn missed(&mut self) -> u64;

    /// Frames since the last call that the ring holds only in part: super-frames of an offload, or longer than
    /// the port's MTU by far. They are not handed over.
    fn truncated(&mut self) -> u64 {
        0
    }

    /// Frames since the last call whose checksum the sender left to an offload. They are handed over as they
    /// are; whoever receives them will find the checksum wrong.
    fn unfinished_checksums(&mut self) -> u64 {
        0
    }
}

/// The sending half of a port.
pub trait Sender: Send {
    /// Queues a frame with its edit; `false` where the port has no room for it or carries none that long (the
    /// frame is lost).
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool;

    /// Sends what is queued: one system call at most.
    fn flush(&mut self);

    /// Frames are queued that the last flush did not get rid of: flush again soon, also without new frames.
    fn pending(&self) -> bool {
        false
    }

    /// Frames since the last call that were queued and never sent: the interface is down, gone, or refused
    /// them twice.
    fn lost(&mut self) -> u64 {
        0
    }
}

/// Where keep-alives leave, apart from data: nothing of a data queue stands in their way.
pub trait KeepAliveSender: Send {
    /// Sends a keep-alive by the interface of this index in the list that the path was opened with,
    /// plain or steered, writing the transmit time into it at the last moment. The time written (`CLOCK_MONOTONIC`).
    ///
    /// # Errors
    /// What the kernel says, naming the interface.
    fn send(&mut self, interface: usize, frame: &mut [u8]) -> std::io::Result<Nanos>;
}

/// Where keep-alives arrive, apart from data.
pub trait KeepAliveReceiver: Send {
    /// Listens on these interfaces in place of those before, for plain keep-alives and for frames with these steering
    /// headers. On those that stay nothing is lost meanwhile.
    ///
    /// # Errors
    /// A missing interface, or what the kernel says; it listens where it did then.
    fn listen(&mut self, interfaces: &[&str], probes: &ProbeHeaders) -> Result<(), IoError>;

    /// Waits at most `timeout` and hands over keep-alives that have arrived: index of the interface in the list
    /// that it listens on, frame, receive time (`CLOCK_MONOTONIC`). How many.
    ///
    /// # Errors
    /// What the kernel says.
    fn receive(
        &mut self,
        timeout: std::time::Duration,
        take: &mut dyn FnMut(usize, &[u8], Nanos),
    ) -> std::io::Result<usize>;
}
