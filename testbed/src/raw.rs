//! AF_PACKET sockets and the ethtool ioctl: the only module with `unsafe`.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{Doing, Error, Result};

/// Frames that one system call moves at most.
pub const BATCH: usize = 64;
/// Bytes of the largest frame that is received whole.
const FRAME: usize = 9216 + 64;
/// A tag that the kernel took off is put back into this space before the frame.
const HEADROOM: usize = 4;
/// Of each socket's receive buffer, so that a burst waits rather than gets lost.
const RECEIVE_BUFFER: libc::c_int = 32 << 20;

const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// An AF_PACKET socket bound to one interface. Sees what comes in, never what it or others send.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    interface: String,
}

/// Room for one batch of received frames; shared by the sockets of a thread.
pub struct Batch {
    space: Vec<u8>,
    frames: Vec<(usize, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { space: vec![0; BATCH * (HEADROOM + FRAME)], frames: Vec::with_capacity(BATCH) }
    }
}

impl Batch {
    /// The frames as they were on the wire, tags included.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|(start, end)| &self.space[*start..*end])
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True when the last receive found nothing.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// Space for the one control message that we ask for, aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

impl PacketSocket {
    /// Opens a socket on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Io`] names the interface.
    pub fn open(interface: &str) -> Result<Self> {
        Self::bind(interface, libc::ETH_P_ALL as u16)
    }

    /// Opens a socket that only sends.
    ///
    /// # Errors
    /// [`Error::Io`] names the interface.
    pub fn open_sender(interface: &str) -> Result<Self> {
        Self::bind(interface, 0)
    }

    fn bind(interface: &str, protocol: u16) -> Result<Self> {
        let index =
            nix::net::if_::if_nametoindex(interface).doing(|| format!("looking up interface {interface}"))?;
        // Protocol 0 receives nothing: no foreign frame gets in before the bind.
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain system call; the result is checked before use.
        let raw = unsafe { libc::socket(libc::AF_PACKET, flags, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error())
                .doing(|| format!("opening a packet socket on {interface}"));
        }
        // SAFETY: `raw` is a fresh descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let socket = PacketSocket { fd, interface: interface.into() };
        socket.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        socket.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
        socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, RECEIVE_BUFFER)?;
        // SAFETY: sockaddr_ll is plain data, valid when zeroed.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        let bound = unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error())
                .doing(|| format!("binding a packet socket to {interface}"));
        }
        Ok(socket)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> Result<()> {
        // SAFETY: the option's value is one int, which outlives the call.
        let done = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error())
                .doing(|| format!("setting packet socket option {option} on {}", self.interface));
        }
        Ok(())
    }

    /// Receives what is there, up to a batch, without waiting.
    ///
    /// # Errors
    /// [`Error::Io`]; an interface that is down is no error, there is just nothing.
    pub fn receive(&self, batch: &mut Batch) -> Result<()> {
        batch.frames.clear();
        let mut control = [Control([0; 64]); BATCH];
        // SAFETY: iovec and mmsghdr are plain data, valid when zeroed.
        let mut vectors: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        for (slot, chunk) in batch.space.chunks_exact_mut(HEADROOM + FRAME).enumerate() {
            vectors[slot].iov_base = chunk[HEADROOM..].as_mut_ptr().cast();
            vectors[slot].iov_len = FRAME;
            headers[slot].msg_hdr.msg_iov = &raw mut vectors[slot];
            headers[slot].msg_hdr.msg_iovlen = 1;
            headers[slot].msg_hdr.msg_control = control[slot].0.as_mut_ptr().cast();
            headers[slot].msg_hdr.msg_controllen = size_of::<Control>();
        }
        // SAFETY: every header points at its own iovec, frame space and control space, all alive during the call.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(()),
                _ => Err(error).doing(|| format!("receiving on {}", self.interface)),
            };
        }
        for (slot, header) in headers.iter().enumerate().take(received as usize) {
            let space = &mut batch.space[slot * (HEADROOM + FRAME)..(slot + 1) * (HEADROOM + FRAME)];
            let end = HEADROOM + header.msg_len as usize;
            let start = match stripped_tag(&header.msg_hdr) {
                Some((tpid, tci)) if end >= HEADROOM + 12 => {
                    space.copy_within(HEADROOM..HEADROOM + 12, 0);
                    space[12..14].copy_from_slice(&tpid.to_be_bytes());
                    space[14..16].copy_from_slice(&tci.to_be_bytes());
                    0
                }
                _ => HEADROOM,
            };
            let base = slot * (HEADROOM + FRAME);
            batch.frames.push((base + start, base + end));
        }
        Ok(())
    }

    /// Sends frames in order; returns how many the kernel took (the rest is lost, as on a full wire).
    ///
    /// # Errors
    /// [`Error::Io`] for anything but a full queue, a frame over the MTU or an interface that is down.
    pub fn send(&self, frames: &[&[u8]]) -> Result<usize> {
        let mut sent = 0;
        for chunk in frames.chunks(BATCH) {
            // SAFETY: iovec and mmsghdr are plain data, valid when zeroed.
            let mut vectors: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
            // SAFETY: as above.
            let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
            for (slot, frame) in chunk.iter().enumerate() {
                vectors[slot].iov_base = frame.as_ptr().cast_mut().cast();
                vectors[slot].iov_len = frame.len();
                headers[slot].msg_hdr.msg_iov = &raw mut vectors[slot];
                headers[slot].msg_hdr.msg_iovlen = 1;
            }
            let mut first = 0;
            while first < chunk.len() {
                // SAFETY: headers first..chunk.len() point at iovecs of frames that are alive; the kernel only
                // reads them.
                let done = unsafe {
                    libc::sendmmsg(
                        self.fd.as_raw_fd(),
                        headers.as_mut_ptr().add(first),
                        (chunk.len() - first) as libc::c_uint,
                        0,
                    )
                };
                if done > 0 {
                    first += done as usize;
                    sent += done as usize;
                    continue;
                }
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // This one frame can't go: like a wire, skip it and go on.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EMSGSIZE | libc::ENETDOWN | libc::EINVAL) => {
                        first += 1
                    }
                    _ => return Err(error).doing(|| format!("sending on {}", self.interface)),
                }
            }
        }
        Ok(sent)
    }

    /// Frames that the kernel dropped since the last call because nobody fetched them in time.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn take_drops(&self) -> Result<u64> {
        // SAFETY: tpacket_stats is plain data, valid when zeroed.
        let mut stats: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: pointer and length describe `stats`, which outlives the call.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error()).doing(|| format!("reading drops of {}", self.interface));
        }
        Ok(u64::from(stats.tp_drops))
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The tag that the kernel moved to auxiliary data, as (TPID, TCI).
fn stripped_tag(header: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the kernel filled `header`, whose control space is alive and aligned (see `Control`).
    let first = unsafe { libc::CMSG_FIRSTHDR(header) };
    if first.is_null() {
        return None;
    }
    // SAFETY: CMSG_FIRSTHDR gave a header that lies within the control space.
    let message = unsafe { &*first };
    if message.cmsg_level != libc::SOL_PACKET || message.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    // SAFETY: a PACKET_AUXDATA message carries a tpacket_auxdata; read unaligned to ask nothing of its place.
    let data: libc::tpacket_auxdata = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(first).cast()) };
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = if data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { data.tp_vlan_tpid } else { 0x8100 };
    Some((tpid, data.tp_vlan_tci))
}

/// Turns off what would merge frames or leave their checksums unfinished, on an interface of the calling thread's
/// namespace (linux/ethtool.h: SIOCETHTOOL).
///
/// # Errors
/// [`Error::Io`] names the interface; a feature that the driver doesn't know is no error.
pub fn offloads_off(interface: &str) -> Result<()> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    // Receive and transmit checksum, scatter-gather, TSO, GSO, GRO: ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO, SGRO.
    const COMMANDS: [u32; 6] = [0x1f, 0x24, 0x2c, 0x17, 0x15, 0x19];
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    // SAFETY: plain system call; the result is checked before use.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error()).doing(|| "opening a socket for ethtool".into());
    }
    // SAFETY: `raw` is a fresh descriptor that nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    for command in COMMANDS {
        let mut value = Value { command, data: 0 };
        // SAFETY: ifreq is plain data, valid when zeroed.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return Err(Error::Unsupported(format!("interface name {interface} is longer than 15 bytes")));
        }
        for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *slot = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names the interface and points at an ethtool_value, both alive during the call.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if done < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error).doing(|| format!("turning off offload {command:#x} on {interface}"));
            }
        }
    }
    Ok(())
}
