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

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use xdp::{Attachment, Mode, SocketMap, XdpError};

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
pub use sender::AfXdpSender;
use socket::{ReceiveRings, SendRings, Sizes, Socket};
use umem::{CHUNK, HEADROOM, Umem};

use super::af_packet::{self, Rings};
use super::error::IoError;
use super::ethtool::Ethtool;
use super::interface::Interface;

/// Greatest MTU of a port: a chunk holds the frame, its header, a tag beyond the MTU and the head room.
pub const MTU_MAX: u32 = (CHUNK - HEADROOM - ETHERNET_HEADER - STEERING_HEADER) as u32;
/// Entries of receiving rings at most.
const RECEIVE: usize = 4096;
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
}

impl Share {
    /// Of one of so many workers that ports are spread over.
    #[must_use]
    pub fn new(pass: Arc<ProbePass>, workers: usize) -> Self {
        Share(Arc::new(Shared { pass, workers, memory: Mutex::default() }))
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

    /// Chunks that are free and all there are, once closed sockets have given theirs back; none while no port is open.
    #[must_use]
    pub fn chunks(&self) -> Option<(usize, usize)> {
        let memory = self.held().upgrade()?;
        socket::reclaim_closed(&memory, None);
        Some((memory.free_chunks(), memory.chunks()))
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
    /// The memory.
    #[error("no memory for frames: {0}")]
    Memory(std::io::Error),
    /// What goes with it.
    #[error(transparent)]
    Interface(#[from] IoError),
}

/// An interface whose frames go to sockets: program, sockets, and the halves until they are taken.
pub struct Wire {
    attachment: Attachment,
    sockets: SocketMap,
    interface: Interface,
    memory: Arc<Umem>,
    queues: usize,
    is_zero_copy: bool,
    receive: Mutex<Option<Vec<ReceiveRings>>>,
    send: Mutex<Option<SendRings>>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("interface", &self.interface)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Opens a port of `mtu` bytes, one of `ports` that share the memory. Frames go on as before until a receiver is
    /// released. `may_be_generic`: also where the driver has no XDP of its own.
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
        let mut receive = Vec::with_capacity(queues as usize);
        let mut send = None;
        for queue in 0..queues {
            let (receiving, sending) = Socket::open(&memory, interface.index, queue, sizes)
                .map_err(|source| AfXdpFault::Socket { queue, source })?;
            receive.push(receiving);
            send.get_or_insert(sending);
        }
        memory.join(receive.len());
        let is_zero_copy = send.as_ref().is_some_and(|rings: &SendRings| rings.socket.is_zero_copy());
        Ok(Arc::new(Wire {
            attachment,
            sockets,
            interface: interface.clone(),
            memory,
            queues: receive.len(),
            is_zero_copy,
            receive: Mutex::new(Some(receive)),
            send: Mutex::new(send),
        }))
    }

    /// The receiving half, held; there is one.
    ///
    /// # Errors
    /// It has been taken, or as for AF_PACKET.
    pub fn receiver(self: &Arc<Self>, mtu: u32) -> Result<AfXdpReceiver, IoError> {
        let say = |doing| move |error| IoError::from_system(&self.interface.name, doing, error);
        let passed = af_packet::receiver(&self.interface, mtu, Rings::least())?;
        let rings = self.receive.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rings = rings
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::ResourceBusy))
            .map_err(say("receive by it twice"))?;
        AfXdpReceiver::new(rings, passed, Arc::clone(self)).map_err(say("wait for its queues"))
    }

    /// The sending half for the worker whose memory this is; once.
    #[must_use]
    pub fn sender(self: &Arc<Self>) -> Option<AfXdpSender> {
        let rings = self.send.lock().unwrap_or_else(PoisonError::into_inner).take();
        rings.map(|rings| AfXdpSender::new(rings, Arc::clone(self)))
    }

    /// Longest frame that the kernel sends by the interface.
    fn longest(&self, ethertype: [u8; 2]) -> usize {
        let tag = if ethertype == (libc::ETH_P_8021Q as u16).to_be_bytes() { STEERING_HEADER } else { 0 };
        (self.interface.mtu as usize + ETHERNET_HEADER + tag).min(CHUNK - HEADROOM)
    }

    /// In words: driver or generic, zero-copy or copying, how many queues.
    #[must_use]
    pub fn describe(&self) -> String {
        let mode = match self.attachment.mode() {
            Mode::Native => "native",
            Mode::Generic => "generic",
        };
        let copies = if self.is_zero_copy { "zero-copy" } else { "copying" };
        let queues = self.queues;
        format!("AF_XDP, {mode}, {copies}, {queues} queue{}", if queues == 1 { "" } else { "s" })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.memory.leave(self.queues);
    }
}
