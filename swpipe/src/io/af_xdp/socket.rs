//! `AF_XDP` sockets: a queue of an interface, and the rings on it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{c_int, c_void, socklen_t, xdp_desc};

use super::ring::Ring;
use super::umem::{CHUNK, Closed, SocketId, Umem};
use crate::io::interface::InterfaceIndex;

/// `XDP_MAX_TX_SKB_BUDGET` (`linux/if_xdp.h`, Linux 6.17): frames that one system call sends.
const MAX_TX_BUDGET: c_int = 9;
/// How long a queue that was in use may take to be free: the kernel frees it after the socket is closed.
const QUEUE_FREE: Duration = Duration::from_secs(1);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// Room for frames on their way out, bytes: the ring is the limit, not the socket's share of memory.
const SEND_BUFFER: c_int = 16 << 20;

/// Entries of a socket's rings, powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of the fill ring and the one of received frames.
    pub(super) receive: u32,
    /// Of the transmit ring and the one of sent frames.
    pub(super) send: u32,
}

/// A bound socket. Closed once the last half of it is dropped.
pub(super) struct Socket {
    /// `None` only while it is dropped.
    descriptor: Option<OwnedFd>,
    memory: Arc<Umem>,
    id: SocketId,
    interface: InterfaceIndex,
    queue: u32,
    is_zero_copy: bool,
}

/// The receiving rings of a socket.
pub(super) struct ReceiveRings {
    pub(super) socket: Arc<Socket>,
    pub(super) arrived: Ring<xdp_desc>,
    pub(super) fill: Ring<u64>,
}

/// The sending rings of a socket.
pub(super) struct SendRings {
    pub(super) socket: Arc<Socket>,
    pub(super) transmit: Ring<xdp_desc>,
    pub(super) sent: Ring<u64>,
}

impl Socket {
    /// Opens a socket on a queue, zero-copy where the driver has that.
    pub(super) fn open(
        memory: &Arc<Umem>,
        interface: InterfaceIndex,
        queue: u32,
        sizes: Sizes,
    ) -> io::Result<(ReceiveRings, SendRings)> {
        let descriptor = unbound()?;
        register(&descriptor, memory.range())?;
        set(&descriptor, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &sizes.receive)?;
        set(&descriptor, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &sizes.send)?;
        set(&descriptor, libc::SOL_XDP, libc::XDP_RX_RING, &sizes.receive)?;
        set(&descriptor, libc::SOL_XDP, libc::XDP_TX_RING, &sizes.send)?;
        // Limits of the copying mode. Older kernels send 32 frames a call: then it takes some calls more.
        let _ = set(&descriptor, libc::SOL_XDP, MAX_TX_BUDGET, &sizes.send);
        let _ = set(&descriptor, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
        let offsets = offsets(&descriptor)?;
        let arrived = Ring::map(&descriptor, libc::XDP_PGOFF_RX_RING, offsets.rx, sizes.receive)?;
        let transmit = Ring::map(&descriptor, libc::XDP_PGOFF_TX_RING, offsets.tx, sizes.send)?;
        let fill =
            Ring::map(&descriptor, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, offsets.fr, sizes.receive)?;
        let sent = Ring::map(
            &descriptor,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
            offsets.cr,
            sizes.send,
        )?;
        bind_once_free(&descriptor, interface, queue, libc::XDP_USE_NEED_WAKEUP)?;
        reclaim_closed(memory, Some((interface, queue)));
        let mut options = libc::xdp_options { flags: 0 };
        get(&descriptor, libc::SOL_XDP, libc::XDP_OPTIONS, &mut options)?;
        let socket = Arc::new(Socket {
            descriptor: Some(descriptor),
            id: memory.number_socket(),
            memory: Arc::clone(memory),
            interface,
            queue,
            is_zero_copy: options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0,
        });
        let receive = ReceiveRings { socket: Arc::clone(&socket), arrived, fill };
        Ok((receive, SendRings { socket, transmit, sent }))
    }

    pub(super) const fn id(&self) -> SocketId {
        self.id
    }

    /// The driver reads and writes the memory itself; else the kernel copies frames.
    pub(super) const fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    fn raw(&self) -> c_int {
        self.descriptor.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Has the kernel send what the transmit ring holds, without waiting.
    pub(super) fn send(&self) -> io::Result<()> {
        // SAFETY: no buffer and no address are passed.
        let sent =
            unsafe { libc::sendto(self.raw(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Has the driver go on with the fill ring.
    pub(super) fn wake_receiving(&self) {
        // SAFETY: no buffer and no address are passed. What it says of a link that is down, the link watch says better.
        let _ = unsafe {
            libc::recvfrom(
                self.raw(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
    }

    /// Clears the pending error (the interface is gone): it would make every poll return at once.
    pub(super) fn clear_error(&self) {
        let mut error: c_int = 0;
        if let Some(descriptor) = &self.descriptor {
            let _ = get(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
        }
    }

    /// Frames for this socket, since it was opened, that were too long for a chunk or found no chunk or no room in
    /// its ring.
    pub(super) fn missed(&self) -> u64 {
        // SAFETY: all-zero bytes are a structure of integers.
        let mut statistics: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        match &self.descriptor {
            Some(descriptor)
                if get(descriptor, libc::SOL_XDP, libc::XDP_STATISTICS, &mut statistics).is_ok() =>
            {
                // `rx_fill_ring_empty_descs` counts tries, and those that cost a frame are in `rx_dropped` already.
                statistics.rx_dropped + statistics.rx_ring_full
            }
            _ => 0,
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        drop(self.descriptor.take());
        let Socket { id, interface, queue, .. } = *self;
        self.memory.note_closed(Closed { socket: id, interface, queue });
    }
}

/// Takes back the chunks of sockets that were closed. Frames under way and a driver's queue may have some until the
/// queue can be bound again; where that takes too long, another program has the queue.
pub(super) fn reclaim_closed(memory: &Umem, bound: Option<(InterfaceIndex, u32)>) {
    for Closed { socket, interface, queue } in memory.take_closed() {
        if bound != Some((interface, queue))
            && let Ok(probe) = probe()
        {
            let _ = bind_once_free(&probe.0, interface, queue, libc::XDP_COPY);
        }
        memory.reclaim(socket);
    }
}

fn unbound() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor is checked before it is owned.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: open, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A socket that can be bound and receives nothing, with the memory that it needs for that.
fn probe() -> io::Result<(OwnedFd, Umem)> {
    let memory = Umem::least()?;
    let descriptor = unbound()?;
    register(&descriptor, memory.range())?;
    for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING] {
        set(&descriptor, libc::SOL_XDP, ring, &1_u32)?;
    }
    Ok((descriptor, memory))
}

fn register(descriptor: &OwnedFd, (address, length): (u64, u64)) -> io::Result<()> {
    let registration = libc::xdp_umem_reg {
        addr: address,
        len: length,
        chunk_size: CHUNK as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(descriptor, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

/// Binds; where the queue is in use, as soon as it is not.
fn bind_once_free(descriptor: &OwnedFd, interface: InterfaceIndex, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface.0,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let until = Instant::now() + QUEUE_FREE;
    loop {
        // SAFETY: `address` is a whole sockaddr_xdp of the length given.
        let result = unsafe {
            libc::bind(
                descriptor.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as socklen_t,
            )
        };
        match check(result) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                std::thread::sleep(LOOK);
            }
            result => return result,
        }
    }
}

fn offsets(descriptor: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero bytes are a structure of integers.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    get(descriptor, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

fn set<T>(descriptor: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes of `value`, which are there.
    let result = unsafe {
        libc::setsockopt(
            descriptor.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    check(result)
}

/// Only for plain C structures of integers: any bytes that the kernel writes are a value of `T`.
fn get<T: Copy>(descriptor: &OwnedFd, level: c_int, option: c_int, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, which has them.
    let result = unsafe {
        libc::getsockopt(
            descriptor.as_raw_fd(),
            level,
            option,
            std::ptr::from_mut(value).cast::<c_void>(),
            &raw mut length,
        )
    };
    check(result)
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
