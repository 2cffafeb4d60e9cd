//! The memory of a worker's frames (UMEM), cut into chunks: whose each chunk is, and which are free.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::io::interface::InterfaceIndex;

/// Bytes of a chunk: the greatest that the kernel takes.
pub(super) const CHUNK: usize = 4096;
/// Room in front of a received frame (`XDP_PACKET_HEADROOM`): the steering header goes there.
pub(super) const HEADROOM: usize = 256;
/// Chunks that a port has at most: received and waiting, and on their way out.
const CHUNKS_OF_PORT: usize = 8 << 10;
/// A port that would have fewer is none.
const LEAST_OF_PORT: usize = 120;
/// Chunks of a worker, where its ports are few enough: each socket costs the kernel some 130 bytes a chunk.
const CHUNKS_OF_ALL: usize = 32 << 10;
/// The part of a port's chunks that may be on their way out; and how many may in any case.
const SENDING_SHARE: usize = 8;
const LEAST_SENDING: usize = 32;

/// A chunk by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk(u32);

impl Chunk {
    /// Of an address as the kernel's rings have it: bytes from the start of the memory.
    pub(super) const fn at(address: u64) -> Self {
        // Beyond 2^44 bytes there is no memory, and no chunk of that number.
        Chunk(if address >> 44 == 0 { (address / CHUNK as u64) as u32 } else { u32::MAX })
    }

    /// Where it begins, likewise.
    pub(super) const fn address(self) -> u64 {
        self.0 as u64 * CHUNK as u64
    }
}

/// The number of a socket among those of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId(u32);

/// Whose a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Nobody's: in the list of free ones, or about to be used by who took it from there.
    Free,
    /// The kernel's, in one of the socket's rings.
    Kernel(SocketId),
    /// Handed out by a receiver: shared references to its bytes may be alive.
    Lent,
    /// Likewise, and queued by a sender.
    Taken(SocketId),
    /// The sender's alone: no reference to its bytes is alive.
    Sender(SocketId),
}

const KINDS: u32 = 8;

impl Holder {
    const fn bits(self) -> u32 {
        match self {
            Holder::Free => 0,
            Holder::Lent => 1,
            Holder::Kernel(socket) => 2 + socket.0 * KINDS,
            Holder::Taken(socket) => 3 + socket.0 * KINDS,
            Holder::Sender(socket) => 4 + socket.0 * KINDS,
        }
    }

    const fn of(bits: u32) -> Self {
        let socket = SocketId(bits / KINDS);
        match bits % KINDS {
            1 => Holder::Lent,
            2 => Holder::Kernel(socket),
            3 => Holder::Taken(socket),
            4 => Holder::Sender(socket),
            _ => Holder::Free,
        }
    }
}

/// The memory of one worker's frames. Every socket of its ports is registered with it, so that a frame moves from
/// port to port without a copy.
#[derive(Debug)]
pub(super) struct Umem {
    base: NonNull<u8>,
    holders: Box<[AtomicU32]>,
    free: Mutex<Vec<Chunk>>,
    /// Ports that it was made for, and sockets that take frames up and their ports.
    ports: usize,
    receiving: AtomicUsize,
    open_ports: AtomicUsize,
    next_socket: AtomicU32,
    /// Sockets that were closed and may have chunks.
    closed: Mutex<Vec<Closed>>,
}

/// A socket that was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) socket: SocketId,
    pub(super) interface: InterfaceIndex,
    pub(super) queue: u32,
}

// SAFETY: the mapping belongs to the process, not to a thread, and who may touch which bytes of it is settled by
// `holders`, chunk by chunk.
unsafe impl Send for Umem {}
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Memory for about so many ports of one worker.
    pub(super) fn of_ports(ports: usize) -> io::Result<Self> {
        // Room for some more: they may come later, and one whose interface is created anew is there twice for a while.
        // What a socket has waiting for frames, it keeps until frames come.
        let ports = (ports.max(1) + (ports / 2).max(2)).min(CHUNKS_OF_ALL / LEAST_OF_PORT);
        Self::of_chunks(ports, ports * (CHUNKS_OF_ALL / ports).min(CHUNKS_OF_PORT))
    }

    fn of_chunks(ports: usize, chunks: usize) -> io::Result<Self> {
        let length = NonZeroUsize::new(chunks * CHUNK).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)?
        };
        // SAFETY: the mapping just made. Few great pages cost fewer misses; without them it works as well.
        let _ = unsafe { madvise(base, length.get(), MmapAdvise::MADV_HUGEPAGE) };
        // A process that this one starts and that writes must not get the frames' pages.
        // SAFETY: as above.
        unsafe { madvise(base, length.get(), MmapAdvise::MADV_DONTFORK)? };
        Ok(Umem {
            base: base.cast(),
            holders: (0..chunks).map(|_| AtomicU32::new(Holder::Free.bits())).collect(),
            free: Mutex::new((0..chunks as u32).rev().map(Chunk).collect()),
            ports,
            receiving: AtomicUsize::new(0),
            open_ports: AtomicUsize::new(0),
            next_socket: AtomicU32::new(0),
            closed: Mutex::default(),
        })
    }

    /// Memory of one chunk.
    pub(super) fn least() -> io::Result<Self> {
        Self::of_chunks(1, 1)
    }

    /// Its address and length, for the kernel.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.base.as_ptr() as u64, (self.holders.len() * CHUNK) as u64)
    }

    /// How many chunks it has.
    pub(super) fn chunks(&self) -> usize {
        self.holders.len()
    }

    /// How many of them are free.
    pub(super) fn free_chunks(&self) -> usize {
        self.free().len()
    }

    /// Chunks that a port may have on their way out.
    pub(super) fn sending_share(&self) -> usize {
        let ports = self.ports.max(self.open_ports.load(Relaxed)).max(1);
        (self.chunks() / ports / SENDING_SHARE).max(LEAST_SENDING)
    }

    /// Chunks that a receiving socket has waiting for frames.
    pub(super) fn receiving_share(&self) -> usize {
        let ports = self.ports.max(self.open_ports.load(Relaxed)).max(1);
        let rest = self.chunks().saturating_sub(ports * self.sending_share());
        // A port with several queues has as many sockets.
        rest / ports.max(self.receiving.load(Relaxed))
    }

    /// Whether one more port has its least share.
    pub(super) fn has_room(&self) -> bool {
        let share = self.chunks() / (self.open_ports.load(Relaxed) + 1);
        share.min(self.free_chunks()) >= LEAST_OF_PORT
    }

    /// Shares what there is with one more port of so many queues.
    pub(super) fn join(&self, queues: usize) {
        self.open_ports.fetch_add(1, Relaxed);
        self.receiving.fetch_add(queues, Relaxed);
    }

    /// Takes one [`Umem::join`] back.
    pub(super) fn leave(&self, queues: usize) {
        self.open_ports.fetch_sub(1, Relaxed);
        self.receiving.fetch_sub(queues, Relaxed);
    }

    /// A number that no other socket had.
    pub(super) fn number_socket(&self) -> SocketId {
        SocketId(self.next_socket.fetch_add(1, Relaxed) % (u32::MAX / KINDS))
    }

    fn free(&self) -> MutexGuard<'_, Vec<Chunk>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves up to `most` free chunks to the end of `to`, within its capacity.
    pub(super) fn take(&self, most: usize, to: &mut Vec<Chunk>) {
        let mut free = self.free();
        let most = most.min(free.len()).min(to.capacity() - to.len());
        let from = free.len() - most;
        to.extend(free.drain(from..));
    }

    /// Makes chunks free that are the caller's.
    pub(super) fn give(&self, chunks: &mut Vec<Chunk>) {
        if chunks.is_empty() {
            return;
        }
        for chunk in chunks.iter() {
            self.set(*chunk, Holder::Free);
        }
        self.free().append(chunks);
    }

    /// Whose a chunk is; `None` where there is no such chunk.
    pub(super) fn holder(&self, chunk: Chunk) -> Option<Holder> {
        // The bytes of a lent chunk are the sender's from when it sees `Sender` on.
        self.holders.get(chunk.0 as usize).map(|holder| Holder::of(holder.load(Ordering::Acquire)))
    }

    /// The caller has it, and gives it to another.
    pub(super) fn set(&self, chunk: Chunk, holder: Holder) {
        if let Some(cell) = self.holders.get(chunk.0 as usize) {
            cell.store(holder.bits(), Ordering::Release);
        }
    }

    /// A sender takes a chunk that a receiver has lent; `false` where another sender, or this one, has done so before.
    pub(super) fn claim(&self, chunk: Chunk, socket: SocketId) -> bool {
        self.holders.get(chunk.0 as usize).is_some_and(|cell| {
            cell.compare_exchange(Holder::Lent.bits(), Holder::Taken(socket).bits(), Relaxed, Relaxed).is_ok()
        })
    }

    /// A sender does not send what it has queued.
    pub(super) fn give_up(&self, chunk: Chunk, socket: SocketId) {
        match self.holder(chunk) {
            Some(Holder::Sender(of)) if of == socket => {
                self.set(chunk, Holder::Free);
                self.free().push(chunk);
            }
            // Its receiver still has it, and goes on with it.
            Some(Holder::Taken(of)) if of == socket => {
                if let Some(cell) = self.holders.get(chunk.0 as usize) {
                    let (from, to) = (Holder::Taken(of).bits(), Holder::Lent.bits());
                    // It fails where the receiver is done with it meanwhile: it is free when the socket is closed.
                    let _ = cell.compare_exchange(from, to, Relaxed, Relaxed);
                }
            }
            _ => {}
        }
    }

    /// Takes note of a socket that was closed. The kernel may use its chunks for some time after that.
    pub(super) fn note_closed(&self, closed: Closed) {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).push(closed);
    }

    /// The sockets that were closed since the last call.
    pub(super) fn take_closed(&self) -> Vec<Closed> {
        std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes back what a closed socket had; the kernel uses none of it any more.
    pub(super) fn reclaim(&self, socket: SocketId) {
        let mut back = Vec::new();
        for number in 0..self.holders.len() as u32 {
            let chunk = Chunk(number);
            match self.holder(chunk) {
                Some(Holder::Kernel(of) | Holder::Sender(of)) if of == socket => back.push(chunk),
                Some(Holder::Taken(of)) if of == socket => self.give_up(chunk, socket),
                _ => {}
            }
        }
        self.give(&mut back);
    }

    /// Where in the memory bytes lie: the chunk, and their offset in it. `None` where they are elsewhere.
    #[inline]
    pub(super) fn locate(&self, bytes: &[u8]) -> Option<(Chunk, usize)> {
        let offset = (bytes.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        let is_inside = offset < self.holders.len() * CHUNK;
        is_inside.then_some((Chunk((offset / CHUNK) as u32), offset % CHUNK))
    }

    fn pointer(&self, chunk: Chunk, from: usize, to: usize) -> Option<*mut u8> {
        let is_inside = from <= to && to <= CHUNK && (chunk.0 as usize) < self.holders.len();
        // SAFETY: inside the mapping by the check.
        is_inside.then(|| unsafe { self.base.as_ptr().add(chunk.0 as usize * CHUNK + from) })
    }

    /// Bytes `from..to` of a chunk, to be read; none where that leaves it.
    ///
    /// # Safety
    /// Nobody writes into the chunk, the kernel included, while they are in use.
    #[inline]
    pub(super) unsafe fn bytes(&self, chunk: Chunk, from: usize, to: usize) -> Option<&[u8]> {
        let pointer = self.pointer(chunk, from, to)?;
        // SAFETY: inside the mapping, which lives as long as `self`; not written to by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts(pointer, to - from) })
    }

    /// Bytes `from..to` of a chunk, to be written; none where that leaves it.
    ///
    /// # Safety
    /// The chunk is the caller's alone, and no other reference to its bytes is alive.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "exclusive per chunk, by the caller's promise")]
    pub(super) unsafe fn bytes_mut(&self, chunk: Chunk, from: usize, to: usize) -> Option<&mut [u8]> {
        let pointer = self.pointer(chunk, from, to)?;
        // SAFETY: inside the mapping, which lives as long as `self`; exclusive by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts_mut(pointer, to - from) })
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: mapped by `of_ports` with this length, and nothing refers into it any more: whoever does holds an
        // `Arc` of this. Sockets that are open keep the pages by themselves.
        let _ = unsafe { munmap(self.base.cast(), self.holders.len() * CHUNK) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_ports_fit_into_the_memory() {
        for ports in [1, 2, 6, 10, 64, 80, 128, 260] {
            let memory = Umem::of_ports(ports).expect("memory");
            let mut taken = Vec::with_capacity(memory.chunks());
            for port in 0..ports {
                assert!(memory.has_room(), "port {port} of {ports}");
                memory.join(1);
                memory.take(memory.receiving_share(), &mut taken);
            }
            assert_eq!(taken.len(), ports * memory.receiving_share());
            let of_all = ports * (memory.sending_share() + memory.receiving_share());
            assert!(of_all <= memory.chunks() && memory.receiving_share() >= 88, "{ports} ports");
        }
        // More of them go another way.
        assert!(Umem::of_ports(300).expect("memory").chunks() <= CHUNKS_OF_ALL);
    }

    #[test]
    fn later_ports_share_until_there_is_too_little() {
        let memory = Umem::of_ports(2).expect("memory");
        let mut ports = 0;
        while memory.has_room() {
            memory.join(3);
            ports += 1;
            assert!(ports * memory.sending_share() + 3 * ports * memory.receiving_share() <= memory.chunks());
        }
        assert_eq!(ports, memory.chunks() / LEAST_OF_PORT);
        // Or all is with those that were there first.
        let memory = Umem::of_ports(2).expect("memory");
        memory.take(memory.chunks() - LEAST_OF_PORT + 1, &mut Vec::with_capacity(memory.chunks()));
        assert!(!memory.has_room());
    }

    #[test]
    fn holders_are_told_apart() {
        let socket = SocketId(77);
        for holder in [
            Holder::Free,
            Holder::Lent,
            Holder::Kernel(socket),
            Holder::Taken(socket),
            Holder::Sender(socket),
        ] {
            assert_eq!(Holder::of(holder.bits()), holder);
        }
    }

    #[test]
    fn a_closed_socket_leaves_nothing_behind() {
        let memory = Umem::of_ports(1).expect("memory");
        let all = memory.chunks();
        let (one, two) = (memory.number_socket(), memory.number_socket());
        let mut chunks = Vec::with_capacity(8);
        memory.take(8, &mut chunks);
        assert_eq!(memory.free_chunks(), all - 8);
        for (chunk, holder) in chunks.iter().zip([
            Holder::Kernel(one),
            Holder::Sender(one),
            Holder::Kernel(two),
            Holder::Taken(one),
            Holder::Lent,
        ]) {
            memory.set(*chunk, holder);
        }
        memory.reclaim(one);
        assert_eq!(memory.free_chunks(), all - 6);
        assert_eq!(memory.holder(chunks[3]), Some(Holder::Lent));
        assert!(memory.claim(chunks[4], two) && !memory.claim(chunks[4], two));
        memory.reclaim(two);
        assert_eq!(memory.free_chunks(), all - 5);
    }
}
