//! The sending half of a port, for the worker that has its receiver.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use dataplane::steering::{STEERING_HEADER, STEERING_OFFSET};
use libc::xdp_desc;

use super::Wire;
use super::socket::SendRings;
use super::umem::{Chunk, HEADROOM, Holder};
use crate::io::{BATCH, Edit, Sender};

/// Chunks for copies that are taken from the list of free ones at once.
const SPARE: usize = BATCH;
/// Calls of a flush at most: kernels before 6.17 send 32 frames a call.
const CALLS: usize = 64;
/// No chunk: the kernel skips an entry with it.
const NOWHERE: xdp_desc = xdp_desc { addr: u64::MAX, len: 0, options: 0 };

/// A sending half of a port.
pub struct AfXdpSender {
    rings: SendRings,
    wire: Arc<Wire>,
    /// What was queued since the last flush.
    queued: VecDeque<Queued>,
    /// Chunks with the kernel that have not come back.
    under_way: usize,
    /// For copies.
    spare: Vec<Chunk>,
    /// Those that came back.
    back: Vec<Chunk>,
    /// The kernel took nothing at the last flush.
    refused: bool,
    /// It is down, or gone, as of the last flush.
    down: bool,
    lost: u64,
}

/// A frame that waits for the flush.
#[derive(Clone, Copy)]
struct Queued {
    chunk: Chunk,
    /// Where the frame begins and ends in the chunk, its edit not made yet.
    from: usize,
    to: usize,
    edit: Edit,
}

impl AfXdpSender {
    pub(super) fn new(rings: SendRings, wire: Arc<Wire>) -> Self {
        let size = rings.size as usize;
        AfXdpSender {
            rings,
            wire,
            queued: VecDeque::with_capacity(size),
            under_way: 0,
            spare: Vec::with_capacity(SPARE),
            back: Vec::with_capacity(size),
            refused: false,
            down: false,
            lost: 0,
        }
    }

    /// Length of the frame with its edit; `None` where the port does not carry it.
    fn edited_length(&self, frame: &[u8], edit: Edit) -> Option<usize> {
        let rest = frame.get(STEERING_OFFSET..)?;
        let (length, ethertype): (usize, [u8; 2]) = match &edit {
            Edit::Keep => (frame.len(), *rest.first_chunk()?),
            Edit::Push([t0, t1, ..]) => (frame.len() + STEERING_HEADER, [*t0, *t1]),
            Edit::Pop => (frame.len() - STEERING_HEADER, *rest.get(STEERING_HEADER..)?.first_chunk()?),
        };
        (length <= self.wire.longest(ethertype)).then_some(length)
    }

    fn queue(&mut self, frame: &[u8], edit: Edit) -> Option<()> {
        let length = self.edited_length(frame, edit)?;
        if self.under_way + self.queued.len() >= self.room() {
            self.reap();
            if self.under_way + self.queued.len() >= self.room() {
                return None;
            }
        }
        let memory = &self.wire.memory;
        if let Some((chunk, from)) = memory.locate(frame)
            && from >= STEERING_HEADER
            && memory.claim(chunk, self.rings.socket.id())
        {
            self.queued.push_back(Queued { chunk, from, to: from + frame.len(), edit });
            return Some(());
        }
        self.copy(frame, edit, length)
    }

    /// Queues a copy: of what is not in the memory, or has been queued before.
    fn copy(&mut self, frame: &[u8], edit: Edit, length: usize) -> Option<()> {
        let memory = &self.wire.memory;
        if self.spare.is_empty() {
            memory.take(SPARE, &mut self.spare);
        }
        let chunk = self.spare.pop()?;
        let (from, to) = (HEADROOM, HEADROOM + length);
        // SAFETY: it was free, and is this sender's alone.
        let Some(bytes) = (unsafe { memory.bytes_mut(chunk, from, to) }) else {
            self.spare.push(chunk);
            return None;
        };
        let (macs, rest) = frame.split_at(STEERING_OFFSET);
        let (tag, rest): (&[u8], &[u8]) = match &edit {
            Edit::Keep => (&[], rest),
            Edit::Push(tag) => (tag, rest),
            Edit::Pop => (&[], rest.get(STEERING_HEADER..).unwrap_or_default()),
        };
        let (to_macs, bytes) = bytes.split_at_mut(STEERING_OFFSET);
        let (to_tag, to_rest) = bytes.split_at_mut(tag.len());
        to_macs.copy_from_slice(macs);
        to_tag.copy_from_slice(tag);
        to_rest.copy_from_slice(rest);
        memory.set(chunk, Holder::Sender(self.rings.socket.id()));
        self.queued.push_back(Queued { chunk, from, to, edit: Edit::Keep });
        Some(())
    }

    /// Frames that may be queued and under way.
    fn room(&self) -> usize {
        self.wire.memory.sending_share().min(self.rings.size as usize)
    }

    /// Shows the kernel what is queued, edited. A frame that its receiver still has out waits.
    fn publish(&mut self) {
        let memory = &self.wire.memory;
        let id = self.rings.socket.id();
        let room = self.rings.transmit.room(self.queued.len() as u32) as usize;
        for _ in 0..room {
            let Some(next) = self.queued.front() else { break };
            if memory.holder(next.chunk) != Some(Holder::Sender(id)) {
                break;
            }
            let Queued { chunk, from, to, edit } = *next;
            self.queued.pop_front();
            let from = match edit {
                Edit::Keep => from,
                Edit::Push(tag) => {
                    let start = from - STEERING_HEADER;
                    // SAFETY: the chunk is this sender's, and no reference to it is alive, as its holder says.
                    if let Some(bytes) = unsafe { memory.bytes_mut(chunk, start, to) } {
                        bytes.copy_within(STEERING_HEADER..STEERING_HEADER + STEERING_OFFSET, 0);
                        bytes[STEERING_OFFSET..STEERING_OFFSET + STEERING_HEADER].copy_from_slice(&tag);
                    }
                    start
                }
                Edit::Pop => {
                    // SAFETY: as above.
                    if let Some(bytes) = unsafe { memory.bytes_mut(chunk, from, to) } {
                        bytes.copy_within(0..STEERING_OFFSET, STEERING_HEADER);
                    }
                    from + STEERING_HEADER
                }
            };
            memory.set(chunk, Holder::Kernel(id));
            let addr = chunk.address() + from as u64;
            self.rings.transmit.put(xdp_desc { addr, len: (to - from) as u32, options: 0 });
            self.under_way += 1;
        }
        self.rings.transmit.publish();
    }

    /// Takes back the chunks of frames that have been sent.
    fn reap(&mut self) {
        let memory = &self.wire.memory;
        let sent = self.rings.sent.arrived(self.rings.size);
        for _ in 0..sent {
            let chunk = Chunk::at(self.rings.sent.take());
            if memory.holder(chunk) == Some(Holder::Kernel(self.rings.socket.id())) {
                // At once: an entry may be there a second time, see `take_back`.
                memory.set(chunk, Holder::Free);
                self.under_way = self.under_way.saturating_sub(1);
                self.back.push(chunk);
            }
        }
        self.rings.sent.release();
        memory.give(&mut self.back);
    }

    /// Has the kernel send.
    fn drive(&mut self) {
        for _ in 0..CALLS {
            let before = self.rings.transmit.untaken();
            if before == 0 || (self.rings.socket.is_zero_copy() && !self.rings.transmit.needs_wakeup()) {
                (self.refused, self.down) = (false, false);
                return;
            }
            let result = self.rings.socket.send();
            let has_moved = self.rings.transmit.untaken() < before;
            self.down = false;
            match result.map_err(|error| error.raw_os_error()) {
                Ok(()) if self.rings.socket.is_zero_copy() || !has_moved => {
                    self.refused = false;
                    return;
                }
                Ok(()) => {}
                // The device refused one frame, which is gone, or will take the next one later.
                Err(Some(
                    error @ (libc::EBUSY | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR),
                )) => {
                    let is_lost = error == libc::EBUSY && !self.rings.socket.is_zero_copy();
                    self.lost += u64::from(is_lost);
                    if has_moved {
                        self.refused = false;
                        continue;
                    }
                    // A frame that is refused twice would come late; EBUSY is also what an interface without carrier
                    // says.
                    if self.refused {
                        self.take_back();
                    }
                    self.refused = !self.refused;
                    return;
                }
                // Down or removed.
                Err(_) => {
                    self.take_back();
                    (self.refused, self.down) = (false, true);
                    return;
                }
            }
        }
    }

    /// Takes back what the kernel does not take, rather than send it late.
    fn take_back(&mut self) {
        self.reap();
        let memory = &self.wire.memory;
        let id = self.rings.socket.id();
        if !self.rings.socket.is_zero_copy() {
            // The kernel reads the ring within our calls alone. Where it has read further than it says, the chunks
            // are back by now, and perhaps queued again behind.
            let (back, under_way, lost) = (&mut self.back, &mut self.under_way, &mut self.lost);
            self.rings.transmit.change_untaken(|entry| {
                let chunk = Chunk::at(entry.addr);
                if memory.holder(chunk) == Some(Holder::Kernel(id)) {
                    memory.set(chunk, Holder::Free);
                    back.push(chunk);
                    *under_way = under_way.saturating_sub(1);
                    *lost += 1;
                }
                NOWHERE
            });
        }
        memory.give(&mut self.back);
        self.drop_queued();
    }

    /// Loses what is queued.
    fn drop_queued(&mut self) {
        let id = self.rings.socket.id();
        while let Some(next) = self.queued.front() {
            if self.wire.memory.holder(next.chunk) != Some(Holder::Sender(id)) {
                break;
            }
            self.back.push(next.chunk);
            self.queued.pop_front();
            self.lost += 1;
        }
        self.wire.memory.give(&mut self.back);
    }
}

impl Sender for AfXdpSender {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        self.queue(frame, edit).is_some()
    }

    fn flush(&mut self) {
        if self.down {
            // Nothing is put into a ring that nobody reads.
            match self.rings.socket.send() {
                Err(error) if is_down(&error) => {
                    self.drop_queued();
                    return;
                }
                _ => self.down = false,
            }
        }
        self.publish();
        self.drive();
        self.reap();
    }

    fn pending(&self) -> bool {
        !self.queued.is_empty() || self.refused
    }

    fn lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

impl Drop for AfXdpSender {
    fn drop(&mut self) {
        // What is queued or under way comes back when the socket is closed.
        self.wire.memory.give(&mut self.spare);
    }
}

fn is_down(error: &io::Error) -> bool {
    !matches!(
        error.raw_os_error(),
        Some(libc::EBUSY | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR)
    )
}
