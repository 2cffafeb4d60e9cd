//! The fast back end: `AF_XDP` (`Documentation/networking/af_xdp.rst`).
//!
//! A program on the interface ([`program`]) sends frames to sockets before the kernel makes packets of them; keep-alives
//! and probes pass to the kernel's stack, where the keep-alive path receives them with their times, and a small packet
//! ring shows them to the worker too. Frames lie in the memory of the worker ([`umem`]), which is registered with the
//! sockets of all of its ports: a frame that goes from port to port changes its holder, and the steering header is put
//! in front of it or taken away where it lies.
//!
//! The memory is registered with each socket by itself rather than shared between sockets (`XDP_SHARED_UMEM`): so no
//! socket depends on another's interface, and one port may be zero-copy beside one that is not.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use xdp::{Attachment, Mode, Program, SocketMap, XdpError};

mod program;
mod receiver;
mod ring;
mod sender;
mod socket;
mod umem;

use dataplane::frame::ETHERNET_HEADER;
use dataplane::steering::STEERING_HEADER;
pub use program::ProbePass;
pub use receiver::AfXdpReceiver;
use receiver::Queues;
pub use sender::AfXdpSender;
use sender::Outlet;
use socket::{Sizes, Socket};
use umem::{CHUNK, HEADROOM, Umem};

use super::af_packet::{self, Rings};
use super::error::IoError;
use super::ethtool::Ethtool;
use super::interface::{Interface, InterfaceIndex};

/// Greatest MTU of a port: a chunk holds the frame, its header, a tag beyond the MTU and the head room.
pub const MTU_MAX: u32 = (CHUNK - HEADROOM - ETHERNET_HEADER - STEERING_HEADER) as u32;
/// Entries of receiving rings at most: as many frames as wait while the worker does not run.
const RECEIVE: usize = 8192;
/// Of sending rings.
const SEND: usize = 1024;
/// Queues of an interface at most: sockets of one port.
const QUEUES: u32 = 64;

/// What the ports of one worker share: the memory of frames, and which probes their programs pass.
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pass: Arc<ProbePass>,
    /// Workers that ports are spread over; 0 stands for one.
    workers: usize,
    /// While a port is open.
    memory: Mutex<Weak<Umem>>,
    wires: Mutex<HashMap<InterfaceIndex, Weak<Wire>>>,
}

impl Share {
    /// Of one of so many workers that ports are spread over.
    #[must_use]
    pub fn new(pass: Arc<ProbePass>, workers: usize) -> Self {
        Share(Arc::new(Shared { pass, workers, ..Shared::default() }))
    }

    fn wires(&self) -> MutexGuard<'_, HashMap<InterfaceIndex, Weak<Wire>>> {
        self.0.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is open on an interface that is still the same.
    fn wire(&self, index: InterfaceIndex) -> Option<Arc<Wire>> {
        let mut wires = self.wires();
        wires.retain(|_, wire| wire.strong_count() > 0);
        let wire = wires.get(&index)?.upgrade()?;
        // An interface created anew may have the number of one that is gone; that one's program cannot be replaced.
        wire.attachment.replace(&wire.program).is_ok().then_some(wire)
    }

    fn held(&self) -> MutexGuard<'_, Weak<Umem>> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory; made for this worker's part of so many ports where there is none.
    fn memory(&self, ports: usize) -> std::io::Result<Arc<Umem>> {
        let mut held = self.held();
        if let Some(memory) = held.upgrade() {
            return Ok(memory);
        }
        let memory = Arc::new(Umem::of_ports(ports.div_ceil(self.0.workers.max(1)))?);
        *held = Arc::downgrade(&memory);
        Ok(memory)
    }

    /// Takes back what closed sockets had. Waits for the kernel to be done with it, a second at most for each.
    pub fn reclaim(&self) {
        let memory = self.held().upgrade();
        if let Some(memory) = memory {
            socket::reclaim_closed(&memory, None);
        }
    }

    /// Chunks that are free, and all there are; none while no port is open.
    #[must_use]
    pub fn chunks(&self) -> Option<(usize, usize)> {
        self.held().upgrade().map(|memory| (memory.free_chunks(), memory.chunks()))
    }
}

/// Why a port cannot be an AF_XDP one.
#[derive(Debug, thiserror::Error)]
pub enum AfXdpFault {
    /// Frames do not fit into a chunk.
    #[error("a frame of mtu {0} does not fit into a chunk of AF_XDP memory, which holds {MTU_MAX}")]
    Mtu(u32),
    /// Too many sockets.
    #[error("it has {0} receive queues, AF_XDP is used with {QUEUES} at most; `ethtool -L` makes them fewer")]
    Queues(u32),
    /// The memory was made for fewer ports.
    #[error("the worker's AF_XDP memory has no room for another port; restart to have it sized anew")]
    Full,
    /// The kernel or the driver.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The sockets.
    #[error("cannot open an AF_XDP socket on queue {queue}: {source}")]
    Socket {
        /// The queue.
        queue: u32,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The memory cannot be locked.
    #[error(
        "no permission to lock {0} MiB of memory for frames; give the process the capability CAP_IPC_LOCK (systemd: or LimitMEMLOCK=infinity)"
    )]
    Locked(usize),
    /// The memory.
    #[error("no memory for frames: {0}")]
    Memory(std::io::Error),
    /// What goes with it.
    #[error(transparent)]
    Interface(#[from] IoError),
}

/// An interface whose frames go to sockets: the program, the sockets, and the rings that halves share.
pub struct Wire {
    attachment: Attachment,
    program: Program,
    sockets: SocketMap,
    interface: Interface,
    /// Of the interface when last opened, bytes after the Ethernet header.
    mtu: AtomicU32,
    memory: Arc<Umem>,
    queue_count: usize,
    is_zero_copy: bool,
    queues: Mutex<Queues>,
    outlet: Mutex<Outlet>,
    /// Frames that the kernel has to send.
    under_way: AtomicUsize,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Wire { interface, queue_count, .. } = self;
        f.debug_struct("Wire")
            .field("interface", interface)
            .field("queues", queue_count)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Opens a port of `mtu` bytes, one of `ports` that share the memory; the one there is where the worker has it open
    /// already. Frames go on as before until a receiver is released. `may_be_generic`: also where the driver has no XDP
    /// of its own.
    ///
    /// # Errors
    /// See [`AfXdpFault`].
    pub fn open(
        interface: &Interface,
        mtu: u32,
        ports: usize,
        share: &Share,
        may_be_generic: bool,
    ) -> Result<Arc<Wire>, AfXdpFault> {
        if mtu > MTU_MAX {
            return Err(AfXdpFault::Mtu(mtu));
        }
        if let Some(wire) = share.wire(interface.index) {
            wire.mtu.store(interface.mtu, Relaxed);
            return Ok(wire);
        }
        let queues = Ethtool::open(&interface.name)?.receive_queues();
        if queues > QUEUES {
            return Err(AfXdpFault::Queues(queues));
        }
        let memory = share.memory(ports).map_err(AfXdpFault::Memory)?;
        if !memory.has_room() {
            return Err(AfXdpFault::Full);
        }
        let sockets = SocketMap::new(queues)?;
        let program = program::load(&share.0.pass, &sockets)?;
        let index = NonZeroU32::new(interface.index.0)
            .ok_or_else(|| IoError::NoInterface { interface: interface.name.clone() })?;
        let attachment = match Attachment::to(&program, index, Mode::Native) {
            Err(XdpError::Unsupported { .. }) if may_be_generic => {
                Attachment::to(&program, index, Mode::Generic)?
            }
            attached => attached?,
        };
        let sizes = Sizes { receive: RECEIVE as u32, send: SEND as u32 };
        let open = |queue| {
            Socket::open(&memory, interface.index, queue, sizes).map_err(|source| {
                match source.raw_os_error() {
                    // RLIMIT_MEMLOCK, says the kernel so.
                    Some(libc::ENOBUFS) => AfXdpFault::Locked((memory.chunks() * CHUNK) >> 20),
                    _ => AfXdpFault::Socket { queue, source },
                }
            })
        };
        let (first, outlet) = open(0)?;
        let mut rings = vec![first];
        for queue in 1..queues {
            rings.push(open(queue)?.0);
        }
        memory.join(rings.len());
        let wire = Arc::new(Wire {
            attachment,
            program,
            sockets,
            interface: interface.clone(),
            mtu: AtomicU32::new(interface.mtu),
            queue_count: rings.len(),
            is_zero_copy: outlet.socket.is_zero_copy(),
            queues: Mutex::new(Queues::new(rings)),
            outlet: Mutex::new(Outlet::new(outlet)),
            under_way: AtomicUsize::new(0),
            memory,
        });
        share.wires().insert(interface.index, Arc::downgrade(&wire));
        Ok(wire)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiving half, held.
    ///
    /// # Errors
    /// As for AF_PACKET.
    pub fn receiver(self: &Arc<Self>, mtu: u32) -> Result<AfXdpReceiver, IoError> {
        let passed = af_packet::receiver(&self.interface, mtu, Rings::least())?;
        AfXdpReceiver::new(Arc::clone(self), passed)
            .map_err(|error| IoError::from_system(&self.interface.name, "wait for its queues", error))
    }

    /// A sending half for the worker whose memory this is.
    #[must_use]
    pub fn sender(self: &Arc<Self>) -> AfXdpSender {
        let id = self.outlet().socket();
        AfXdpSender::new(Arc::clone(self), id)
    }

    /// Longest frame that the kernel sends by the interface.
    fn longest(&self, ethertype: [u8; 2]) -> usize {
        let tag = if ethertype == (libc::ETH_P_8021Q as u16).to_be_bytes() { STEERING_HEADER } else { 0 };
        (self.mtu.load(Relaxed) as usize + ETHERNET_HEADER + tag).min(CHUNK - HEADROOM)
    }

    /// In words: driver or generic, zero-copy or copying, how many queues.
    #[must_use]
    pub fn describe(&self) -> String {
        let mode = match self.attachment.mode() {
            Mode::Native => "native",
            Mode::Generic => "generic",
        };
        let copies = if self.is_zero_copy { "zero-copy" } else { "copying" };
        let queues = self.queue_count;
        format!("AF_XDP, {mode}, {copies}, {queues} queue{}", if queues == 1 { "" } else { "s" })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.memory.leave(self.queue_count);
    }
}
