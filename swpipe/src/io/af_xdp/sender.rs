//! The sending half of a port, for the worker that has its receiver.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use dataplane::steering::{STEERING_HEADER, STEERING_OFFSET};
use libc::xdp_desc;

use super::socket::SendRings;
use super::umem::{Chunk, HEADROOM, Holder, SocketId};
use super::{SEND, Wire};
use crate::io::{BATCH, Edit, Sender};

/// Chunks for copies that are taken from the list of free ones at once.
const SPARE: usize = BATCH;
/// Calls of a flush at most: kernels before 6.17 send 32 frames a call.
const CALLS: usize = 64;
/// No chunk: the kernel skips an entry with it.
const NOWHERE: xdp_desc = xdp_desc { addr: u64::MAX, len: 0, options: 0 };

/// A sending half of a port, for the worker whose memory the interface's sockets are registered with.
pub struct AfXdpSender {
    wire: Arc<Wire>,
    /// Of the wire's first queue, by which frames leave.
    id: SocketId,
    /// For copies.
    spare: Vec<Chunk>,
    way: Way,
}

/// What is on its way from a sending half to the rings.
struct Way {
    /// What was queued since the last flush.
    queued: VecDeque<Queued>,
    /// The kernel took nothing at the last flush.
    refused: bool,
    /// It is down, or gone, as of the last flush.
    down: bool,
    lost: u64,
}

/// The sending rings of an interface, which all of its sending halves fill.
pub(super) struct Outlet {
    rings: SendRings,
    /// Chunks that came back.
    back: Vec<Chunk>,
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
    pub(super) fn new(wire: Arc<Wire>, id: SocketId) -> Self {
        AfXdpSender {
            wire,
            id,
            spare: Vec::with_capacity(SPARE),
            way: Way { queued: VecDeque::with_capacity(SEND), refused: false, down: false, lost: 0 },
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
        if !self.has_room() {
            self.wire.outlet().reap(&self.wire);
            if !self.has_room() {
                return None;
            }
        }
        let memory = &self.wire.memory;
        if let Some((chunk, from)) = memory.locate(frame)
            && from >= STEERING_HEADER
            && memory.claim(chunk, self.id)
        {
            self.way.queued.push_back(Queued { chunk, from, to: from + frame.len(), edit });
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
        memory.set(chunk, Holder::Sender(self.id));
        self.way.queued.push_back(Queued { chunk, from, to, edit: Edit::Keep });
        Some(())
    }

    /// Whether one frame more may be queued.
    fn has_room(&self) -> bool {
        let room = self.wire.memory.sending_share().min(SEND);
        self.wire.under_way.load(Relaxed) + self.way.queued.len() < room
    }
}

impl Way {
    /// Has the kernel send.
    fn drive(&mut self, outlet: &mut Outlet, wire: &Wire) {
        let is_zero_copy = outlet.rings.socket.is_zero_copy();
        for _ in 0..CALLS {
            let before = outlet.rings.transmit.untaken();
            if before == 0 || (is_zero_copy && !outlet.rings.transmit.needs_wakeup()) {
                (self.refused, self.down) = (false, false);
                return;
            }
            let result = outlet.rings.socket.send();
            let has_moved = outlet.rings.transmit.untaken() < before;
            self.down = false;
            match result.map_err(|error| error.raw_os_error()) {
                Ok(()) if is_zero_copy || !has_moved => {
                    self.refused = false;
                    return;
                }
                Ok(()) => {}
                // The device refused one frame, which is gone, or will take the next one later.
                Err(Some(error)) if is_passing(error) => {
                    self.lost += u64::from(error == libc::EBUSY && !is_zero_copy);
                    if has_moved {
                        self.refused = false;
                        continue;
                    }
                    // A frame that is refused twice would come late; EBUSY is also what an interface without carrier
                    // says.
                    if self.refused {
                        self.take_back(outlet, wire);
                    }
                    self.refused = !self.refused;
                    return;
                }
                // Down or removed.
                Err(_) => {
                    self.take_back(outlet, wire);
                    (self.refused, self.down) = (false, true);
                    return;
                }
            }
        }
    }

    /// Takes back what the kernel does not take, rather than send it late.
    fn take_back(&mut self, outlet: &mut Outlet, wire: &Wire) {
        self.lost += outlet.take_back(wire);
        self.drop_queued(outlet, wire);
    }

    /// Loses what is queued.
    fn drop_queued(&mut self, outlet: &mut Outlet, wire: &Wire) {
        while let Some(next) = self.queued.front() {
            if wire.memory.holder(next.chunk) != Some(Holder::Sender(outlet.socket())) {
                break;
            }
            outlet.back.push(next.chunk);
            self.queued.pop_front();
            self.lost += 1;
        }
        wire.memory.give(&mut outlet.back);
    }
}

impl Outlet {
    pub(super) fn new(rings: SendRings) -> Self {
        Outlet { rings, back: Vec::with_capacity(SEND) }
    }

    pub(super) fn socket(&self) -> SocketId {
        self.rings.socket.id()
    }

    /// Shows the kernel what is queued, edited. A frame that its receiver still has out waits.
    fn publish(&mut self, wire: &Wire, queued: &mut VecDeque<Queued>) {
        let memory = &wire.memory;
        let id = self.rings.socket.id();
        let room = self.rings.transmit.room(queued.len() as u32) as usize;
        let before = queued.len();
        for _ in 0..room {
            let Some(next) = queued.front() else { break };
            if memory.holder(next.chunk) != Some(Holder::Sender(id)) {
                break;
            }
            let Queued { chunk, from, to, edit } = *next;
            queued.pop_front();
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
        }
        wire.under_way.fetch_add(before - queued.len(), Relaxed);
        self.rings.transmit.publish();
    }

    /// Takes the chunks of frames that have been sent.
    fn reap(&mut self, wire: &Wire) {
        let sent = self.rings.sent.arrived(SEND as u32);
        for _ in 0..sent {
            let chunk = Chunk::at(self.rings.sent.take());
            come_back(chunk, wire, self.rings.socket.id(), &mut self.back);
        }
        self.rings.sent.release();
        self.give_back(wire);
    }

    /// Takes back what the kernel has not taken; how many frames.
    fn take_back(&mut self, wire: &Wire) -> u64 {
        self.reap(wire);
        if self.rings.socket.is_zero_copy() {
            // A driver may be reading.
            return 0;
        }
        // The kernel reads the ring within our calls alone. Where it has read further than it says, the chunks are
        // back by now, and perhaps queued again behind.
        let id = self.rings.socket.id();
        let mut frames = 0;
        self.rings.transmit.change_untaken(|entry| {
            frames += u64::from(come_back(Chunk::at(entry.addr), wire, id, &mut self.back));
            NOWHERE
        });
        self.give_back(wire);
        frames
    }

    fn give_back(&mut self, wire: &Wire) {
        wire.under_way.fetch_sub(self.back.len(), Relaxed);
        wire.memory.give(&mut self.back);
    }
}

impl Sender for AfXdpSender {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        self.queue(frame, edit).is_some()
    }

    fn flush(&mut self) {
        let Self { wire, way, .. } = self;
        let mut outlet = wire.outlet();
        if way.down {
            // Nothing is put into a ring that nobody reads.
            match outlet.rings.socket.send().map_err(|error| error.raw_os_error()) {
                Err(error) if !error.is_some_and(is_passing) => {
                    way.drop_queued(&mut outlet, wire);
                    return;
                }
                _ => way.down = false,
            }
        }
        outlet.publish(wire, &mut way.queued);
        way.drive(&mut outlet, wire);
        outlet.reap(wire);
    }

    fn pending(&self) -> bool {
        !self.way.queued.is_empty() || self.way.refused
    }

    fn lost(&mut self) -> u64 {
        std::mem::take(&mut self.way.lost)
    }
}

impl Drop for AfXdpSender {
    fn drop(&mut self) {
        let memory = &self.wire.memory;
        memory.give(&mut self.spare);
        for Queued { chunk, .. } in self.way.queued.drain(..) {
            memory.give_up(chunk, self.id);
        }
    }
}

/// A chunk is the kernel's no more; whether it was until now.
fn come_back(chunk: Chunk, wire: &Wire, socket: SocketId, back: &mut Vec<Chunk>) -> bool {
    let was_under_way = wire.memory.holder(chunk) == Some(Holder::Kernel(socket));
    if was_under_way {
        // At once: an entry may be there a second time.
        wire.memory.set(chunk, Holder::Free);
        back.push(chunk);
    }
    was_under_way
}

/// Congestion, which passes; all else is an interface that is down or gone.
const fn is_passing(error: i32) -> bool {
    matches!(error, libc::EBUSY | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR)
}
