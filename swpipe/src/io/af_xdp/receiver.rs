//! The receiving half of a port: the sockets of its queues, and a packet ring for what its program passes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dataplane::frame::ETHERNET_HEADER;
use rustix::event::epoll;

use super::Wire;
use super::socket::ReceiveRings;
use super::umem::{CHUNK, Chunk, Holder, Umem};
use crate::io::af_packet::AfPacketReceiver;
use crate::io::{BATCH, Frame, Receiver};

/// Empty looks until the sockets' pending errors are cleared.
const LOOKS_PER_CLEAR: u32 = 64;
/// Looks until what the program passed is looked at before the queues: they may never be empty.
const LOOKS_PER_PASSED: u32 = 16;
/// Chunks by which a fill ring is short before it gets more: so that the list of free ones is seldom locked.
const REFILL: usize = 2 * BATCH;

/// A receiving half of a port. Halves of one interface, as there are while a port changes, read the same queues.
pub struct AfXdpReceiver {
    wire: Arc<Wire>,
    /// Keep-alives, probes, and whatever comes by a queue without a socket.
    passed: AfPacketReceiver,
    /// What polls readable when one of them has frames.
    all: OwnedFd,
    is_released: bool,
    looks: u32,
    empty_looks: u32,
    runts: u64,
}

/// The queues of an interface.
pub(super) struct Queues {
    queues: Vec<Queue>,
    /// The one to begin with.
    next: usize,
    /// Halves that are not held.
    released: usize,
}

/// A queue's receiving rings.
struct Queue {
    rings: ReceiveRings,
    number: u32,
    /// Chunks that the kernel has: waiting, or with a frame that was not taken yet.
    filled: usize,
    /// Those to be given to the kernel next.
    spare: Vec<Chunk>,
    missed: u64,
}

impl Queues {
    /// Of these sockets' rings, in the order of the queues.
    pub(super) fn new(rings: Vec<ReceiveRings>) -> Self {
        let spare = || Vec::with_capacity(REFILL);
        let queue = |(number, rings)| Queue { rings, number, filled: 0, spare: spare(), missed: 0 };
        Queues { queues: (0..).zip(rings).map(queue).collect(), next: 0, released: 0 }
    }

    fn receive(&mut self, memory: &Umem, runts: &mut u64, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        let mut received = 0;
        for _ in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(self.next) else { break };
            received += queue.receive(memory, BATCH - received, runts, take);
            self.next = (self.next + 1) % self.queues.len();
            if received >= BATCH {
                break;
            }
        }
        received
    }
}

impl Queue {
    fn receive(
        &mut self,
        memory: &Umem,
        most: usize,
        runts: &mut u64,
        take: &mut dyn FnMut(&[Frame<'_>]),
    ) -> usize {
        let arrived = self.rings.arrived.arrived(most as u32) as usize;
        if arrived == 0 {
            // There may have been no chunk, and so no frame.
            self.refill(memory);
            return 0;
        }
        let mut lent = [None; BATCH];
        let mut frames = [Frame::default(); BATCH];
        let mut whole = 0;
        for lent in lent.iter_mut().take(arrived) {
            let descriptor = self.rings.arrived.take();
            let chunk = Chunk::at(descriptor.addr);
            if memory.holder(chunk) != Some(Holder::Kernel(self.rings.socket.id())) {
                continue;
            }
            self.filled = self.filled.saturating_sub(1);
            *lent = Some(chunk);
            memory.set(chunk, Holder::Lent);
            let (from, length) = ((descriptor.addr % CHUNK as u64) as usize, descriptor.len as usize);
            // SAFETY: the kernel gave the chunk back; senders write into it after these references are dead, which
            // is when its holder is `Sender`.
            match unsafe { memory.bytes(chunk, from, from + length) } {
                Some(bytes) if length >= ETHERNET_HEADER => {
                    frames[whole] = Frame { bytes };
                    whole += 1;
                }
                _ => *runts += 1,
            }
        }
        self.rings.arrived.release();
        if whole > 0 {
            take(&frames[..whole]);
        }
        for chunk in lent.into_iter().flatten() {
            match memory.holder(chunk) {
                Some(Holder::Taken(sender)) => memory.set(chunk, Holder::Sender(sender)),
                // Nobody took it: the next frame's.
                _ => self.spare.push(chunk),
            }
        }
        self.refill(memory);
        whole
    }

    /// Gives the kernel chunks for frames to come.
    fn refill(&mut self, memory: &Umem) {
        let wanted = memory.receiving_share();
        let missing = wanted.saturating_sub(self.filled + self.spare.len());
        if missing >= REFILL.min(wanted) {
            memory.take(missing, &mut self.spare);
        }
        if self.spare.is_empty() {
            return;
        }
        let room = self.rings.fill.room(self.spare.len() as u32) as usize;
        let most = room.min(wanted.saturating_sub(self.filled)).min(self.spare.len());
        for chunk in self.spare.drain(..most) {
            memory.set(chunk, Holder::Kernel(self.rings.socket.id()));
            self.rings.fill.put(chunk.address());
            self.filled += 1;
        }
        self.rings.fill.publish();
        // More than its share, which has become smaller.
        memory.give(&mut self.spare);
        if self.rings.fill.needs_wakeup() {
            self.rings.socket.wake_receiving();
        }
    }

    fn fill_up(&mut self, memory: &Umem) {
        loop {
            let before = self.filled;
            self.refill(memory);
            if self.filled == before {
                return;
            }
        }
    }

    fn take_missed(&mut self) -> u64 {
        let now = self.rings.socket.missed();
        now.saturating_sub(std::mem::replace(&mut self.missed, now))
    }
}

impl AfXdpReceiver {
    /// A half that is held.
    pub(super) fn new(wire: Arc<Wire>, passed: AfPacketReceiver) -> io::Result<Self> {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let add = |descriptor: Option<BorrowedFd<'_>>| match descriptor {
            Some(descriptor) => {
                epoll::add(&all, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
            }
            None => Ok(()),
        };
        add(passed.descriptor())?;
        for queue in &wire.queues().queues {
            add(queue.rings.socket.descriptor())?;
        }
        Ok(AfXdpReceiver { wire, passed, all, is_released: false, looks: 0, empty_looks: 0, runts: 0 })
    }

    fn receive_queues(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        let mut queues = self.wire.queues();
        // What another half goes on with is left to that.
        if !self.is_released && queues.released > 0 {
            return 0;
        }
        queues.receive(&self.wire.memory, &mut self.runts, take)
    }

    /// Sends frames of all queues elsewhere once no half takes any.
    fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_released) {
            return Ok(());
        }
        let mut queues = self.wire.queues();
        queues.released -= 1;
        if queues.released == 0 {
            for queue in &queues.queues {
                self.wire.sockets.take(queue.number).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

impl Receiver for AfXdpReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_PASSED) {
            let received = self.passed.receive(take);
            if received > 0 {
                return received;
            }
        }
        let mut received = self.receive_queues(take);
        if received == 0 {
            received = self.passed.receive(take);
        }
        if received == 0 {
            self.empty_looks += 1;
            if self.empty_looks >= LOOKS_PER_CLEAR {
                self.empty_looks = 0;
                for queue in &self.wire.queues().queues {
                    queue.rings.socket.clear_error();
                }
            }
        }
        received
    }

    fn hold(&mut self) -> io::Result<()> {
        // What the program passes from now on, the packet ring does not take either.
        self.passed.hold()?;
        self.leave()
    }

    fn release(&mut self) -> io::Result<()> {
        self.passed.release()?;
        if self.is_released {
            return Ok(());
        }
        let mut queues = self.wire.queues();
        if queues.released == 0 {
            for queue in &mut queues.queues {
                queue.fill_up(&self.wire.memory);
                if let Some(descriptor) = queue.rings.socket.descriptor() {
                    self.wire.sockets.put(queue.number, descriptor).map_err(io::Error::other)?;
                }
            }
        }
        queues.released += 1;
        drop(queues);
        self.is_released = true;
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.all.as_fd())
    }

    fn missed(&mut self) -> u64 {
        self.passed.missed() + self.wire.queues().queues.iter_mut().map(Queue::take_missed).sum::<u64>()
    }

    fn truncated(&mut self) -> u64 {
        self.passed.truncated() + std::mem::take(&mut self.runts)
    }

    fn unfinished_checksums(&mut self) -> u64 {
        self.passed.unfinished_checksums()
    }
}

impl Drop for AfXdpReceiver {
    fn drop(&mut self) {
        // Fails where the interface is gone, and has no frames then.
        let _ = self.leave();
    }
}
