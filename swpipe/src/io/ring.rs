//! Rings of frames shared with the kernel (`Documentation/networking/packet_mmap.rst`), version 2.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use libc::{c_int, tpacket_req, tpacket2_hdr};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::socket::PacketSocket;

/// Rings are made of blocks of this many bytes; slots do not cross them.
const BLOCK: usize = 1 << 16;
/// Slots begin at multiples of this (`TPACKET_ALIGNMENT`).
const ALIGNMENT: usize = 16;

/// A mapped ring. One thread at a time walks it.
pub(super) struct Ring {
    base: NonNull<u8>,
    length: usize,
    slot: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and there is one owner.
unsafe impl Send for Ring {}

/// Offset of a slot from the ring's start; made by [`Ring::first`] and [`Ring::after`] alone, and so inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

impl Ring {
    /// Sets up and maps a ring of about `bytes`, at least `least` slots that hold `payload` bytes each;
    /// `option` is `PACKET_RX_RING` or `PACKET_TX_RING`.
    pub(super) fn map(
        socket: &PacketSocket,
        option: c_int,
        payload: usize,
        bytes: usize,
        least: usize,
    ) -> io::Result<Self> {
        let slot = payload.next_multiple_of(ALIGNMENT);
        let per_block = BLOCK / slot;
        if per_block == 0 {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let blocks = (bytes / BLOCK).max(least.div_ceil(per_block));
        let request = tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (per_block * blocks) as u32,
        };
        socket.set_ring(option, &request)?;
        let length = NonZeroUsize::new(BLOCK * blocks).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of the length that the ring has.
        let base = unsafe {
            mmap(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
                socket,
                0,
            )?
        };
        Ok(Ring { base: base.cast(), length: length.get(), slot })
    }

    /// The slot that the kernel begins with.
    pub(super) const fn first() -> Slot {
        Slot(0)
    }

    /// The slot after this one.
    pub(super) const fn after(&self, at: Slot) -> Slot {
        let next = at.0 + self.slot;
        let next = if next % BLOCK + self.slot > BLOCK { next.next_multiple_of(BLOCK) } else { next };
        Slot(if next >= self.length { 0 } else { next })
    }

    /// Who owns the slot, and what the kernel says of it (`TP_STATUS_*`).
    pub(super) const fn status(&self, at: Slot) -> &AtomicU32 {
        // SAFETY: `tp_status` is the header's first member, four bytes, aligned as slots are; the mapping
        // lives as long as `self`, and both sides access this word atomically.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at.0).cast()) }
    }

    /// A copy of the slot's header.
    ///
    /// # Safety
    /// The slot is ours: the kernel handed it over.
    pub(super) unsafe fn header(&self, at: Slot) -> tpacket2_hdr {
        // SAFETY: inside the mapping and aligned; the kernel does not write by the caller's promise.
        unsafe { self.base.as_ptr().add(at.0).cast::<tpacket2_hdr>().read() }
    }

    /// Writes the length of the frame in a transmit slot.
    ///
    /// # Safety
    /// The slot is ours: free to be filled.
    pub(super) unsafe fn set_length(&mut self, at: Slot, length: u32) {
        // SAFETY: inside the mapping and aligned; the kernel does not read by the caller's promise.
        unsafe { (&raw mut (*self.base.as_ptr().add(at.0).cast::<tpacket2_hdr>()).tp_len).write(length) }
    }

    /// Bytes `from..to` of the slot, or none where that leaves the slot.
    ///
    /// # Safety
    /// The slot is ours, and no other reference into it is in use.
    #[expect(clippy::mut_from_ref, reason = "a batch refers into many slots at once; exclusive per slot")]
    pub(super) unsafe fn bytes(&self, at: Slot, from: usize, to: usize) -> Option<&mut [u8]> {
        if from > to || to > self.slot {
            return None;
        }
        // SAFETY: inside the mapping by the check above; exclusive by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at.0 + from), to - from) })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing refers into it any more.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}
