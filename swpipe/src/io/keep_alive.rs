//! The path of keep-alives, plain and steered: one socket that receives them from every pair port, and one that sends
//! them. No queue is shared with data.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use dataplane::Nanos;
use dataplane::keepalive::stamp;
use dataplane::steering::{STEERING_HEADER, STEERING_OFFSET};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::error::IoError;
use super::interface::{Interface, InterfaceIndex};
use super::socket::{PacketSocket, link_address};
use super::{KeepAliveReceiver, KeepAliveSender, ProbeHeaders, filter};

/// Keep-alives read by one system call.
const BATCH: usize = 32;
/// Batches handed over by one call at most: a flood does not keep the caller from its timers.
const BATCHES: usize = 8;
/// Bytes of a frame that are handed over at most; what follows is padding.
const FRAME: usize = 256;
/// Words of control messages: one time stamp needs four, what the kernel says of a frame's tag five.
const CONTROL: usize = 12;
/// Frames that may wait: some ten thousand keep-alives.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// How much later than its stamp a frame may reach the socket.
const TO_SOCKET: i64 = 1_000_000;
/// A change of the clocks' difference beyond what reading them one after the other explains: a step.
const STEP: i64 = 100_000;

/// Opens both halves on pair ports by name, for plain keep-alives alone and for the calling thread's network namespace. An interface that is
/// created anew is another one: open the path again.
///
/// # Errors
/// A missing interface, or no permission.
pub fn open<Name: AsRef<str>>(
    interfaces: &[Name],
) -> Result<(PacketKeepAliveSender, PacketKeepAliveReceiver), IoError> {
    let names: Vec<&str> = interfaces.iter().map(AsRef::as_ref).collect();
    let receiver = receiver(&names, &ProbeHeaders::default())?;
    Ok((sender(&names)?, receiver))
}

/// Opens the sending half, likewise.
///
/// # Errors
/// As [`open`].
pub fn sender(interfaces: &[&str]) -> Result<PacketKeepAliveSender, IoError> {
    let found = find(interfaces)?;
    let all = interfaces.join(", ");
    let socket =
        PacketSocket::open().map_err(|error| IoError::from_system(&all, "open a packet socket", error))?;
    // Not every kernel has it; the queueing discipline costs time, not frames.
    if let Err(error) = socket.bypass_qdisc() {
        tracing::debug!(interfaces = %all, %error, "keep-alives pass the queueing discipline");
    }
    let ways =
        found.into_iter().map(|interface| Way { index: interface.index, name: interface.name }).collect();
    Ok(PacketKeepAliveSender { socket, ways })
}

/// Opens the receiving half, likewise; for probes with these steering headers too.
///
/// # Errors
/// As [`open`].
pub fn receiver(interfaces: &[&str], probes: &ProbeHeaders) -> Result<PacketKeepAliveReceiver, IoError> {
    let all = interfaces.join(", ");
    let say = |doing| {
        let all = &all;
        move |error: io::Error| IoError::from_system(all, doing, error)
    };
    let socket = PacketSocket::open().map_err(say("open a packet socket"))?;
    socket.ignore_outgoing().map_err(say("leave outgoing frames out"))?;
    socket.set_receive_buffer(RECEIVE_BUFFER).map_err(say("enlarge the receive buffer"))?;
    socket.stamp_arrivals().map_err(say("stamp arrivals"))?;
    socket.tell_tags().map_err(say("learn of tags"))?;
    let clocks = Clocks::read();
    let mut receiver = PacketKeepAliveReceiver {
        socket,
        order: Vec::new(),
        storage: Box::new([Arrival::EMPTY; BATCH]),
        seen_empty: clocks.monotonic,
        offset: clocks.offset(),
    };
    // Filters it, so that it holds nothing of other interfaces.
    receiver.listen(interfaces, probes)?;
    receiver.socket.bind(libc::ETH_P_ALL as u16, None).map_err(say("bind a packet socket"))?;
    Ok(receiver)
}

fn find(interfaces: &[&str]) -> Result<Vec<Interface>, IoError> {
    interfaces.iter().map(|name| Interface::find(name)).collect()
}

/// The sending half.
pub struct PacketKeepAliveSender {
    socket: PacketSocket,
    ways: Vec<Way>,
}

struct Way {
    name: String,
    index: InterfaceIndex,
}

impl KeepAliveSender for PacketKeepAliveSender {
    fn send(&mut self, interface: usize, frame: &mut [u8]) -> io::Result<Nanos> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let way = self
            .ways
            .get(interface)
            .ok_or_else(|| invalid(format!("keep-alive by interface {interface} of {}", self.ways.len())))?;
        let length = frame.len();
        let ethertype = frame.get(12..14).and_then(|bytes| bytes.first_chunk()).copied();
        let address = link_address(ethertype.map_or(0, u16::from_be_bytes), Some(way.index));
        let now = monotonic();
        if !stamp(frame, now) {
            return Err(invalid(format!("keep-alive of {length} bytes has no transmit time")));
        }
        self.socket
            .send_to(frame, &address)
            .map_err(|error| io::Error::new(error.kind(), format!("keep-alive by {}: {error}", way.name)))?;
        Ok(now)
    }
}

/// The receiving half.
pub struct PacketKeepAliveReceiver {
    socket: PacketSocket,
    /// Position of an interface in the caller's list, by its index.
    order: Vec<(InterfaceIndex, usize)>,
    storage: Box<[Arrival; BATCH]>,
    /// When the socket was last known to be empty, ns of `CLOCK_MONOTONIC`: nothing in it arrived earlier.
    seen_empty: i64,
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC` when last read.
    offset: i64,
}

/// What the kernel writes for one frame.
#[derive(Clone, Copy)]
struct Arrival {
    /// The frame, behind room for the tag that the kernel took out of it.
    frame: [u8; STEERING_HEADER + FRAME],
    control: [u64; CONTROL],
    address: libc::sockaddr_ll,
    length: usize,
    /// ns of `CLOCK_REALTIME`.
    stamp: Option<i64>,
    /// What the kernel took out.
    tag: Option<[u8; STEERING_HEADER]>,
}

impl Arrival {
    /// The frame as it was on the wire.
    fn whole(&mut self) -> &[u8] {
        let Some(tag) = self.tag.filter(|_| self.length >= STEERING_OFFSET) else {
            return &self.frame[STEERING_HEADER..STEERING_HEADER + self.length];
        };
        self.frame.copy_within(STEERING_HEADER..STEERING_HEADER + STEERING_OFFSET, 0);
        self.frame[STEERING_OFFSET..STEERING_OFFSET + STEERING_HEADER].copy_from_slice(&tag);
        &self.frame[..STEERING_HEADER + self.length]
    }

    const EMPTY: Arrival = Arrival {
        frame: [0; STEERING_HEADER + FRAME],
        control: [0; CONTROL],
        address: libc::sockaddr_ll {
            sll_family: 0,
            sll_protocol: 0,
            sll_ifindex: 0,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        },
        length: 0,
        stamp: None,
        tag: None,
    };
}

impl PacketKeepAliveReceiver {
    /// Descriptor that polls readable when keep-alives have arrived.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Keep-alives that the kernel had no room for since the last call.
    pub fn missed(&mut self) -> u64 {
        self.socket.take_drops()
    }

    fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut polled, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads a batch into the storage; how many.
    fn read(&mut self) -> io::Result<usize> {
        // SAFETY: all-zero bytes are an iovec and an mmsghdr: null pointers and zero lengths.
        let mut vectors: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for ((arrival, vector), message) in self.storage.iter_mut().zip(&mut vectors).zip(&mut messages) {
            vector.iov_base = arrival.frame[STEERING_HEADER..].as_mut_ptr().cast();
            vector.iov_len = FRAME;
            let header = &mut message.msg_hdr;
            header.msg_name = (&raw mut arrival.address).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            header.msg_iov = &raw mut *vector;
            header.msg_iovlen = 1;
            header.msg_control = arrival.control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&arrival.control) as _;
        }
        // SAFETY: every message points to storage and to a vector that outlive the call, with their lengths.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            // ENETDOWN: one of the interfaces went down; it says so once.
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(0),
                _ => Err(error),
            };
        }
        let count = count.unsigned_abs() as usize;
        for (arrival, message) in self.storage.iter_mut().zip(&messages).take(count) {
            arrival.length = (message.msg_len as usize).min(FRAME);
            (arrival.stamp, arrival.tag) = said(&message.msg_hdr);
        }
        Ok(count)
    }
}

impl KeepAliveReceiver for PacketKeepAliveReceiver {
    fn listen(&mut self, interfaces: &[&str], probes: &ProbeHeaders) -> Result<(), IoError> {
        let found = find(interfaces)?;
        let is_new = |index: InterfaceIndex| !self.order.iter().any(|(known, _)| *known == index);
        let mut joined = Vec::new();
        let listened = found
            .iter()
            .filter(|interface| is_new(interface.index))
            .try_for_each(|interface| {
                let say = |error| IoError::from_system(&interface.name, "make it promiscuous", error);
                self.socket.join_promiscuous(interface.index).map_err(say)?;
                joined.push(interface.index);
                Ok(())
            })
            .and_then(|()| {
                // Those of other interfaces must not take the room of ours, and plain ones behind a tag are ordinary
                // frames: an appliance that tags them loses data too. Only a socket for every protocol is told of the
                // tag; one for the EtherType gets the frame when the tag is forgotten.
                let indices = found.iter().map(|interface| interface.index);
                let mut program = filter::keep_alives(probes, indices);
                let say = |error| IoError::from_system(&interfaces.join(", "), "filter keep-alives", error);
                self.socket.attach_filter(&mut program).map_err(say)
            });
        let mut order: Vec<(InterfaceIndex, usize)> =
            found.iter().enumerate().map(|(at, interface)| (interface.index, at)).collect();
        order.sort_unstable();
        let left: Vec<InterfaceIndex> = match &listened {
            Ok(()) => {
                let before = std::mem::replace(&mut self.order, order);
                let stays = |index| self.order.iter().any(|(known, _)| *known == index);
                before.into_iter().map(|(index, _)| index).filter(|index| !stays(*index)).collect()
            }
            Err(_) => joined,
        };
        for index in left {
            // Fails where the interface is gone, and its membership with it.
            let _ = self.socket.leave_promiscuous(index);
        }
        listened
    }

    fn receive(&mut self, timeout: Duration, take: &mut dyn FnMut(usize, &[u8], Nanos)) -> io::Result<usize> {
        if !self.wait(timeout)? {
            return Ok(0);
        }
        let mut taken = 0;
        for _ in 0..BATCHES {
            let before = monotonic().0 as i64;
            let count = self.read()?;
            let clocks = Clocks::read();
            let stepped = (clocks.offset() - self.offset).abs() > STEP;
            self.offset = clocks.offset();
            for arrival in self.storage.iter_mut().take(count) {
                let index = InterfaceIndex(arrival.address.sll_ifindex.unsigned_abs());
                if arrival.address.sll_pkttype == libc::PACKET_OUTGOING {
                    continue;
                }
                let Ok(found) = self.order.binary_search_by_key(&index, |&(index, _)| index) else {
                    continue;
                };
                let stamp = arrival.stamp.filter(|_| !stepped);
                let received = clocks.arrival(stamp, self.seen_empty - TO_SOCKET);
                take(self.order[found].1, arrival.whole(), received);
                taken += 1;
            }
            if count < BATCH {
                self.seen_empty = before;
                break;
            }
        }
        Ok(taken)
    }
}

/// What the control messages say: the time stamp, ns, and the tag that the kernel took out.
fn said(header: &libc::msghdr) -> (Option<i64>, Option<[u8; STEERING_HEADER]>) {
    let (mut stamp, mut tag) = (None, None);
    // SAFETY: the header is as recvmmsg left it, its control buffer alive and of the length it says; the macros
    // stay inside.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time = libc::CMSG_DATA(at).cast::<libc::timespec>().read_unaligned();
                stamp = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
            }
            if (*at).cmsg_level == libc::SOL_PACKET && (*at).cmsg_type == libc::PACKET_AUXDATA {
                tag = taken_out(&libc::CMSG_DATA(at).cast::<libc::tpacket_auxdata>().read_unaligned());
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    (stamp, tag)
}

/// The tag that the kernel took out of a frame.
fn taken_out(auxiliary: &libc::tpacket_auxdata) -> Option<[u8; STEERING_HEADER]> {
    let has = |flag| auxiliary.tp_status & flag != 0;
    if !has(libc::TP_STATUS_VLAN_VALID) {
        return None;
    }
    let tpid =
        if has(libc::TP_STATUS_VLAN_TPID_VALID) { auxiliary.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([t0, t1], [c0, c1]) = (tpid.to_be_bytes(), auxiliary.tp_vlan_tci.to_be_bytes());
    Some([t0, t1, c0, c1])
}

/// Both clocks at one moment, ns.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    monotonic: i64,
    realtime: i64,
}

impl Clocks {
    /// Reads them as close together as three tries allow.
    fn read() -> Self {
        let mut best = (i64::MAX, Clocks { monotonic: 0, realtime: 0 });
        for _ in 0..3 {
            let before = monotonic().0 as i64;
            let realtime = nanoseconds(ClockId::CLOCK_REALTIME);
            let after = monotonic().0 as i64;
            if after - before < best.0 {
                best = (after - before, Clocks { monotonic: before + (after - before) / 2, realtime });
            }
        }
        best.1
    }

    const fn offset(self) -> i64 {
        self.realtime - self.monotonic
    }

    /// The moment of a `CLOCK_REALTIME` stamp on `CLOCK_MONOTONIC`; now, where it has none or one outside of
    /// `earliest` to now, which a step of the realtime clock makes.
    fn arrival(self, stamp: Option<i64>, earliest: i64) -> Nanos {
        let at = stamp.map(|stamp| stamp - self.offset());
        let at = at.filter(|at| (earliest..=self.monotonic).contains(at)).unwrap_or(self.monotonic);
        Nanos(at.unsigned_abs())
    }
}

/// `CLOCK_MONOTONIC`, the clock of transmit and receive times.
#[must_use]
pub fn monotonic() -> Nanos {
    Nanos(nanoseconds(ClockId::CLOCK_MONOTONIC).unsigned_abs())
}

fn nanoseconds(clock: ClockId) -> i64 {
    // Both clocks exist on every Linux; the call cannot fail.
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: Clocks = Clocks { monotonic: 5_000_000_000, realtime: 1_700_000_000_000_000_000 };

    #[test]
    fn a_stamp_is_moved_to_the_monotonic_clock() {
        let stamp = CLOCKS.realtime - 40_000;
        assert_eq!(CLOCKS.arrival(Some(stamp), 4_000_000_000), Nanos(5_000_000_000 - 40_000));
    }

    #[test]
    fn a_stamp_from_before_or_after_a_clock_step_is_not_believed() {
        let now = Nanos(5_000_000_000);
        assert_eq!(CLOCKS.arrival(Some(CLOCKS.realtime + 1), 4_000_000_000), now);
        assert_eq!(CLOCKS.arrival(Some(CLOCKS.realtime - 1_000_000_001), 4_000_000_000), now);
        assert_eq!(CLOCKS.arrival(None, 4_000_000_000), now);
    }
}
