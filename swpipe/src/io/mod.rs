//! Ports: Linux interfaces behind two traits. A worker owns receivers, and a sender of its own for every
//! port, so that no lock stands between two workers.
//!
//! Frames are handed over as they were on the wire, without FCS: a VLAN tag that the kernel moved to
//! auxiliary data is back in its place.

use dataplane::Nanos;

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

    /// Descriptor that polls readable when frames have arrived.
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>>;

    /// Frames that the kernel had no room for since the last call.
    fn missed(&mut self) -> u64;
}

/// The sending half of a port.
pub trait Sender: Send {
    /// Queues a frame with its edit; `false` where the port has no room for it (the frame is lost).
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool;

    /// Sends what is queued: one system call at most.
    fn flush(&mut self);
}

/// Where keep-alives leave and arrive, apart from data: nothing of a data queue stands in their way.
pub trait KeepAlivePath: Send {
    /// Sends a keep-alive by the interface of this index in the list that the path was opened with,
    /// writing the transmit time into it at the last moment. The time written.
    ///
    /// # Errors
    /// What the kernel says, naming the interface.
    fn send(&mut self, interface: usize, frame: &mut [u8]) -> std::io::Result<Nanos>;

    /// Waits at most `timeout` and hands over keep-alives that have arrived: interface, frame, receive time.
    ///
    /// # Errors
    /// What the kernel says.
    fn receive(
        &mut self,
        timeout: std::time::Duration,
        take: &mut dyn FnMut(usize, &[u8], Nanos),
    ) -> std::io::Result<usize>;
}
