//! The four rings that a socket shares with the kernel (`linux/if_xdp.h`, `Documentation/networking/af_xdp.rst`).

use std::io;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::xdp_ring_offset;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// A ring of entries `T`, mapped. One thread at a time is at our end of it.
pub(super) struct Ring<T> {
    base: NonNull<u8>,
    length: usize,
    offsets: xdp_ring_offset,
    size: u32,
    /// Where we are: what we write as producer or consumer next.
    ours: u32,
    /// Where the kernel was when last looked at.
    theirs: u32,
    entries: PhantomData<T>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and there is one owner.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `size` entries, a power of two, that the socket has been given.
    pub(super) fn map(
        socket: impl AsFd,
        page_offset: libc::off_t,
        offsets: xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let length = offsets.desc as usize + size as usize * size_of::<T>();
        let mapped = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of the length that the ring has.
        let base = unsafe {
            mmap(
                None,
                mapped,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
                socket,
                page_offset,
            )?
        };
        Ok(Ring { base: base.cast(), length, offsets, size, ours: 0, theirs: 0, entries: PhantomData })
    }

    const fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel's offset of a word in this mapping, aligned; both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset as usize).cast()) }
    }

    const fn entry(&self, at: u32) -> *mut T {
        let at = (at & (self.size - 1)) as usize;
        // SAFETY: inside the mapping by the mask: it has `size` entries from there on.
        unsafe { self.base.as_ptr().add(self.offsets.desc as usize).cast::<T>().add(at) }
    }

    /// Whether the kernel waits for a system call to go on with this ring.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    // Where the kernel puts entries in and we take them out.

    /// Entries that are there to be taken, `most` at most.
    pub(super) fn arrived(&mut self, most: u32) -> u32 {
        if self.theirs.wrapping_sub(self.ours) < most {
            self.theirs = self.word(self.offsets.producer).load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.ours).min(most)
    }

    /// The next entry, of those that have arrived.
    pub(super) fn take(&mut self) -> T {
        // SAFETY: an entry that the kernel has written and left to us; `T` is plain integers.
        let entry = unsafe { self.entry(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        entry
    }

    /// Gives the places of taken entries back.
    pub(super) fn release(&mut self) {
        self.word(self.offsets.consumer).store(self.ours, Ordering::Release);
    }

    // Where we put entries in and the kernel takes them out.

    /// Places that are free, of those looked for.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        if self.size - self.ours.wrapping_sub(self.theirs) < wanted {
            self.theirs = self.word(self.offsets.consumer).load(Ordering::Acquire);
        }
        (self.size - self.ours.wrapping_sub(self.theirs)).min(wanted)
    }

    /// Writes the next entry; there is room.
    pub(super) fn put(&mut self, entry: T) {
        // SAFETY: a place that the kernel does not read before it is published.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// Shows the kernel what was put.
    pub(super) fn publish(&mut self) {
        self.word(self.offsets.producer).store(self.ours, Ordering::Release);
    }

    /// Entries that the kernel has not taken.
    pub(super) fn untaken(&mut self) -> u32 {
        self.theirs = self.word(self.offsets.consumer).load(Ordering::Acquire);
        self.ours.wrapping_sub(self.theirs)
    }

    /// Changes the entries that the kernel has not taken. It must not read any meanwhile: true between two calls to
    /// it while it reads within calls of ours alone.
    pub(super) fn change_untaken(&mut self, mut change: impl FnMut(T) -> T) {
        for back in (1..=self.untaken()).rev() {
            let entry = self.entry(self.ours.wrapping_sub(back));
            // SAFETY: written by us before, and not read meanwhile, see above.
            unsafe { entry.write(change(entry.read())) };
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing refers into it any more.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}
