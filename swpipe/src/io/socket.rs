//! Packet sockets (packet(7)), the few calls on them that a port needs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

use super::interface::InterfaceIndex;

/// `PACKET_VERSION` 2 (`linux/if_packet.h`): frames are handed over one by one.
const TPACKET_V2: c_int = 1;

/// An `AF_PACKET` socket of type `SOCK_RAW`.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A socket that receives nothing until it is bound to a protocol.
    pub(super) fn open() -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor is checked before it is owned.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and nobody else's.
        Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Receives frames of `ethertype` (0: none) from `interface` (`None`: every one) from now on, and sends
    /// by `interface`.
    pub(super) fn bind(&self, ethertype: u16, interface: Option<InterfaceIndex>) -> io::Result<()> {
        let address = link_address(ethertype, interface);
        // SAFETY: `address` is a whole sockaddr_ll of the length given.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as socklen_t,
            )
        };
        check(result)
    }

    /// Every frame that reaches the interface, whatever its destination, until the socket is closed or
    /// [`PacketSocket::leave_promiscuous`].
    pub(super) fn join_promiscuous(&self, interface: InterfaceIndex) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous(interface))
    }

    /// Takes one [`PacketSocket::join_promiscuous`] back.
    pub(super) fn leave_promiscuous(&self, interface: InterfaceIndex) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &promiscuous(interface))
    }

    /// Does not receive what this host sends by the interface.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)
    }

    /// Sends past the queueing discipline.
    pub(super) fn bypass_qdisc(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Drops a frame of the transmit ring that the kernel cannot send, in place of halting the ring at it.
    pub(super) fn skip_malformed(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_LOSS, &1)
    }

    /// Room in front of every frame of a receive ring, in bytes; before the ring is set up.
    pub(super) fn reserve_headroom(&self, bytes: u32) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &bytes)
    }

    /// Rings whose frames are handed over one by one.
    pub(super) fn use_ring_version_2(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)
    }

    /// Sets a ring up; `option` is `PACKET_RX_RING` or `PACKET_TX_RING`.
    pub(super) fn set_ring(&self, option: c_int, request: &libc::tpacket_req) -> io::Result<()> {
        self.set(libc::SOL_PACKET, option, request)
    }

    /// Bytes that may be under way to the device, beyond the system's limit where permitted.
    pub(super) fn set_send_buffer(&self, bytes: c_int) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes)
            .or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes))
    }

    /// Bytes of frames that may wait in the socket, beyond the system's limit where permitted.
    pub(super) fn set_receive_buffer(&self, bytes: c_int) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
            .or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
    }

    /// Every frame carries the time of its arrival, ns of `CLOCK_REALTIME`.
    pub(super) fn stamp_arrivals(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
    }

    /// Every frame carries the tag that the kernel took out of it.
    pub(super) fn tell_tags(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)
    }

    /// Receives what the program lets through (classic BPF) from now on.
    pub(super) fn attach_filter(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // The pointer in the structure is to a program of the length in the structure.
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Receives what there is from now on.
    pub(super) fn detach_filter(&self) -> io::Result<()> {
        self.set::<c_int>(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
    }

    /// A second descriptor of the same socket.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(PacketSocket(self.0.try_clone()?))
    }

    /// Sends a frame by the interface of the address, without waiting.
    pub(super) fn send_to(&self, frame: &[u8], address: &libc::sockaddr_ll) -> io::Result<()> {
        // SAFETY: buffer and address are whole and of the lengths given.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(address).cast(),
                size_of::<libc::sockaddr_ll>() as socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Frames that the socket had no room for since the last call.
    pub(super) fn take_drops(&self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        match self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics) {
            Ok(()) => u64::from(statistics.tp_drops),
            Err(_) => 0,
        }
    }

    /// Clears the pending error (the interface went down): it would make every poll return at once.
    pub(super) fn clear_error(&self) {
        let mut error: c_int = 0;
        // The error itself says nothing that the link watch does not say better.
        let _ = self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    }

    /// Sends what the transmit ring holds without waiting; the bytes sent.
    pub(super) fn send_ring(&self) -> io::Result<usize> {
        // SAFETY: no buffer and no address are passed.
        let sent = unsafe {
            libc::sendto(self.0.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        // SAFETY: the kernel reads size_of::<T>() bytes of `value`, which are there.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(value).cast::<c_void>(),
                size_of::<T>() as socklen_t,
            )
        };
        check(result)
    }

    /// Only for plain C structures of integers: any bytes that the kernel writes are a value of `T`.
    fn get<T: Copy>(&self, level: c_int, option: c_int, value: &mut T) -> io::Result<()> {
        let mut length = size_of::<T>() as socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `value`, which has them.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                level,
                option,
                std::ptr::from_mut(value).cast::<c_void>(),
                &raw mut length,
            )
        };
        check(result)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<PacketSocket> for OwnedFd {
    fn from(socket: PacketSocket) -> OwnedFd {
        socket.0
    }
}

fn promiscuous(interface: InterfaceIndex) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: interface.0 as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

/// The address of an EtherType on an interface (`None`: any).
pub(super) fn link_address(ethertype: u16, interface: Option<InterfaceIndex>) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: interface.map_or(0, |index| index.0 as c_int),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [0; 8],
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
