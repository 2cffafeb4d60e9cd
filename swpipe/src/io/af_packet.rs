//! The first back end: `AF_PACKET` with mmap rings.
//!
//! Both rings are version 2. Version 3 hands blocks over when they are full or when a timer of at least a
//! millisecond ends (measured over veth: median 1 ms, against 7 us from host to host through a version 2 port); a
//! soft bypass stands in the operator's wire, so frames are handed over one by one.
//!
//! A frame that carries the steering header 0x88b6 is no VLAN frame to the kernel: it does not get the four
//! bytes beyond the MTU that a VLAN tag gets. The interface of a pair port needs the MTU of its links + 4.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use super::error::IoError;
use super::interface::Interface;
use super::ring::{Ring, Slot};
use super::socket::PacketSocket;
use super::{BATCH, Edit, Frame, Receiver, Sender, filter};

/// Ethernet header.
const HEADER: usize = 14;
/// Both MACs.
const MACS: usize = 12;
/// A VLAN tag, or the steering header.
const TAG: usize = 4;
/// Room beyond the MTU, so that a frame somewhat too long is seen whole and counted by the pipeline.
const BEYOND_MTU: usize = 64;
/// Room in front of a received frame for the tag that the kernel took out.
const HEADROOM: usize = 16;
/// Where the kernel puts the network header of a received frame at most, headroom aside:
/// `TPACKET_ALIGN(TPACKET2_HDRLEN + 16)`.
const RECEIVE_OFFSET: usize = 80;
/// Where the kernel expects a frame in a transmit slot: `TPACKET2_HDRLEN - sizeof(struct sockaddr_ll)`.
const SEND_OFFSET: usize = 32;
/// A receive ring's size: a few milliseconds of small frames while the worker does not run.
const RECEIVE_BYTES: usize = 16 << 20;
/// A transmit ring's size.
const SEND_BYTES: usize = 1 << 20;
/// Slots of a ring at least, where frames are long.
const SLOTS: usize = 256;
/// Memory of all receive rings, which a great number of ports shares out.
const RECEIVE_BYTES_OF_ALL: usize = 1 << 30;
/// A receive ring never has less.
const LEAST_RECEIVE_BYTES: usize = 1 << 20;
/// Ports beyond which transmit rings are smaller, and by how much: what they have in flight is a batch.
const MANY_PORTS: usize = 64;
const MANY_SHARE: usize = 4;
/// A batch, and as many frames that were left of the one before.
const MANY_SLOTS: usize = 2 * BATCH;

/// Sizes of a port's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    receive_bytes: usize,
    send_bytes: usize,
    slots: usize,
}

impl Rings {
    /// Of a port whose data goes another way.
    #[must_use]
    pub const fn least() -> Self {
        let (receive_bytes, send_bytes) = (LEAST_RECEIVE_BYTES, SEND_BYTES / MANY_SHARE);
        Rings { receive_bytes, send_bytes, slots: MANY_SLOTS }
    }

    /// Of one port of so many.
    #[must_use]
    pub fn among(ports: usize) -> Self {
        let share = if ports > MANY_PORTS { MANY_SHARE } else { 1 };
        Rings {
            receive_bytes: (RECEIVE_BYTES_OF_ALL / ports.max(1)).clamp(LEAST_RECEIVE_BYTES, RECEIVE_BYTES),
            send_bytes: SEND_BYTES / share,
            slots: if ports > MANY_PORTS { MANY_SLOTS } else { SLOTS },
        }
    }
}
/// Empty looks at a ring until the socket's pending error is cleared.
const LOOKS_PER_CLEAR: u32 = 64;

/// Opens the receiving half; it takes nothing before it is released.
///
/// # Errors
/// No permission, no memory for the ring, interface gone.
pub fn receiver(interface: &Interface, mtu: u32, rings: Rings) -> Result<AfPacketReceiver, IoError> {
    let say = |doing| move |error: io::Error| IoError::from_system(&interface.name, doing, error);
    let socket = PacketSocket::open().map_err(say("open a packet socket"))?;
    socket.use_ring_version_2().map_err(say("choose the ring version"))?;
    socket.reserve_headroom(HEADROOM as u32).map_err(say("reserve headroom in the receive ring"))?;
    socket.ignore_outgoing().map_err(say("leave outgoing frames out"))?;
    let payload = RECEIVE_OFFSET + HEADROOM + mtu as usize + BEYOND_MTU;
    let ring = Ring::map(&socket, libc::PACKET_RX_RING, payload, rings.receive_bytes, rings.slots)
        .map_err(say("map a receive ring"))?;
    socket.join_promiscuous(interface.index).map_err(say("make it promiscuous"))?;
    socket.attach_filter(&mut filter::nothing()).map_err(say("hold frames back"))?;
    // Last, so that the ring holds nothing of another interface.
    socket.bind(libc::ETH_P_ALL as u16, Some(interface.index)).map_err(say("bind a packet socket"))?;
    Ok(AfPacketReceiver {
        socket,
        ring,
        next: Ring::first(),
        truncated: 0,
        unfinished_checksums: 0,
        empty_looks: 0,
    })
}

/// The receiving half of a port.
pub struct AfPacketReceiver {
    // Unmapped before the socket is closed.
    ring: Ring,
    socket: PacketSocket,
    next: Slot,
    truncated: u64,
    unfinished_checksums: u64,
    empty_looks: u32,
}

impl AfPacketReceiver {
    /// The frame in a slot that the kernel handed over, its VLAN tag back in place; `None` where it is not whole.
    fn frame(ring: &Ring, at: Slot) -> Option<Frame<'_>> {
        // SAFETY: the caller saw TP_STATUS_USER in this slot, and hands it back only after the frame's use.
        let header = unsafe { ring.header(at) };
        let length = header.tp_snaplen as usize;
        if header.tp_len > header.tp_snaplen || length < HEADER {
            return None;
        }
        let mac = header.tp_mac as usize;
        if header.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            // SAFETY: as above; one reference per slot.
            let bytes = unsafe { ring.bytes(at, mac, mac + length) }?;
            return Some(Frame { bytes });
        }
        let tpid = match header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => libc::ETH_P_8021Q as u16,
            _ => header.tp_vlan_tpid,
        };
        // SAFETY: as above; one reference per slot.
        let bytes = unsafe { ring.bytes(at, mac.checked_sub(TAG)?, mac + length) }?;
        bytes.copy_within(TAG..TAG + MACS, 0);
        let tag = bytes.get_mut(MACS..MACS + TAG)?;
        tag[..2].copy_from_slice(&tpid.to_be_bytes());
        tag[2..].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
        Some(Frame { bytes })
    }
}

impl Receiver for AfPacketReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        let mut slots = [Ring::first(); BATCH];
        let mut frames = [Frame::default(); BATCH];
        let mut seen = 0;
        let mut whole = 0;
        for slot in &mut slots {
            let status = self.ring.status(self.next).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            *slot = self.next;
            seen += 1;
            self.next = self.ring.after(self.next);
            if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
                self.unfinished_checksums += 1;
            }
            match Self::frame(&self.ring, *slot) {
                Some(frame) => {
                    frames[whole] = frame;
                    whole += 1;
                }
                None => self.truncated += 1,
            }
        }
        if whole > 0 {
            take(&frames[..whole]);
        }
        for slot in &slots[..seen] {
            self.ring.status(*slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        if seen == 0 {
            self.empty_looks += 1;
            if self.empty_looks >= LOOKS_PER_CLEAR {
                self.empty_looks = 0;
                self.socket.clear_error();
            }
        }
        whole
    }

    fn hold(&mut self) -> io::Result<()> {
        self.socket.attach_filter(&mut filter::nothing())
    }

    fn release(&mut self) -> io::Result<()> {
        self.socket.detach_filter()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn missed(&mut self) -> u64 {
        self.socket.take_drops()
    }

    fn truncated(&mut self) -> u64 {
        std::mem::take(&mut self.truncated)
    }

    fn unfinished_checksums(&mut self) -> u64 {
        std::mem::take(&mut self.unfinished_checksums)
    }
}

/// Opens a sending half; every worker has its own.
///
/// # Errors
/// No permission, no memory for the ring, interface gone.
pub fn sender(interface: &Interface, mtu: u32, rings: Rings) -> Result<AfPacketSender, IoError> {
    let say = |doing| move |error: io::Error| IoError::from_system(&interface.name, doing, error);
    let socket = PacketSocket::open().map_err(say("open a packet socket"))?;
    socket.use_ring_version_2().map_err(say("choose the ring version"))?;
    socket.skip_malformed().map_err(say("set the transmit ring's error handling"))?;
    // Not every kernel has it; the queueing discipline costs time, not frames.
    if let Err(error) = socket.bypass_qdisc() {
        tracing::debug!(interface = %interface.name, %error, "sends through the queueing discipline");
    }
    let payload = SEND_OFFSET + HEADER + mtu as usize + BEYOND_MTU;
    let ring = Ring::map(&socket, libc::PACKET_TX_RING, payload, rings.send_bytes, rings.slots)
        .map_err(say("map a transmit ring"))?;
    // The ring is the limit, not the socket's share of memory.
    socket.set_send_buffer(8 * SEND_BYTES as libc::c_int).map_err(say("enlarge the send buffer"))?;
    // Protocol 0: this socket receives nothing.
    socket.bind(0, Some(interface.index)).map_err(say("bind a packet socket"))?;
    Ok(AfPacketSender {
        socket,
        ring,
        interface: interface.clone(),
        next: Ring::first(),
        oldest: Ring::first(),
        queued: 0,
        refused: false,
        lost: 0,
    })
}

/// A sending half of a port.
pub struct AfPacketSender {
    // Unmapped before the socket is closed.
    ring: Ring,
    socket: PacketSocket,
    interface: Interface,
    /// The slot to fill next.
    next: Slot,
    /// The first slot that the kernel has not taken: where it goes on.
    oldest: Slot,
    /// Slots from `oldest` to `next`.
    queued: usize,
    /// The kernel did not take the oldest frame at the last flush.
    refused: bool,
    lost: u64,
}

impl AfPacketSender {
    /// Longest frame that the kernel sends by the interface.
    fn longest(&self, ethertype: [u8; 2]) -> usize {
        let tag = if ethertype == (libc::ETH_P_8021Q as u16).to_be_bytes() { TAG } else { 0 };
        self.interface.mtu as usize + HEADER + tag
    }

    /// Fills the next slot; `None` where the frame has no room or no header, or no slot is free.
    fn fill(&mut self, frame: &[u8], edit: Edit) -> Option<()> {
        let (macs, rest) = frame.split_at_checked(MACS)?;
        let (tag, rest): (&[u8], _) = match &edit {
            Edit::Keep => (&[], rest),
            Edit::Push(tag) => (tag, rest),
            Edit::Pop => (&[], rest.get(TAG..)?),
        };
        let length = MACS + tag.len() + rest.len();
        let ethertype = if tag.is_empty() { rest.first_chunk() } else { tag.first_chunk() }?;
        if length > self.longest(*ethertype) {
            return None;
        }
        let status = self.ring.status(self.next).load(Ordering::Acquire);
        if status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING) != 0 {
            return None;
        }
        // SAFETY: the slot is neither waiting nor under way, so it is ours until its status says otherwise.
        let bytes = unsafe { self.ring.bytes(self.next, SEND_OFFSET, SEND_OFFSET + length) }?;
        let (to_macs, to) = bytes.split_at_mut(MACS);
        let (to_tag, to_rest) = to.split_at_mut(tag.len());
        to_macs.copy_from_slice(macs);
        to_tag.copy_from_slice(tag);
        to_rest.copy_from_slice(rest);
        // SAFETY: as above.
        unsafe { self.ring.set_length(self.next, length as u32) };
        self.ring.status(self.next).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = self.ring.after(self.next);
        self.queued += 1;
        Some(())
    }

    /// Steps over the slots that the kernel has taken; the bytes that were in them.
    fn step_over_taken(&mut self) -> usize {
        let mut bytes = 0;
        while self.queued > 0 {
            let status = self.ring.status(self.oldest).load(Ordering::Acquire);
            if status & libc::TP_STATUS_SEND_REQUEST != 0 {
                break;
            }
            bytes += self.length(self.oldest);
            self.oldest = self.ring.after(self.oldest);
            self.queued -= 1;
        }
        bytes
    }

    /// Takes back what the kernel does not take, rather than send it late.
    fn take_back(&mut self) {
        let mut at = self.oldest;
        for _ in 0..self.queued {
            self.ring.status(at).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            at = self.ring.after(at);
        }
        self.lost += self.queued as u64;
        self.queued = 0;
        self.next = self.oldest;
        self.refused = false;
    }

    /// Counts the frames among `slots` from `from` on that the kernel skipped, and learns the new limit.
    fn count_skipped(&mut self, from: Slot, slots: usize) {
        match Interface::find(&self.interface.name) {
            Ok(now) if now.index == self.interface.index => self.interface.mtu = now.mtu,
            _ => {}
        }
        let mut at = from;
        for _ in 0..slots {
            // SAFETY: the slots were taken in this flush, and none has been filled again.
            let ethertype = unsafe { self.ring.bytes(at, SEND_OFFSET + MACS, SEND_OFFSET + HEADER) };
            let ethertype = ethertype.and_then(|bytes| bytes.first_chunk().copied()).unwrap_or_default();
            if self.length(at) > self.longest(ethertype) {
                self.lost += 1;
            }
            at = self.ring.after(at);
        }
    }

    fn length(&self, at: Slot) -> usize {
        // SAFETY: the length of a transmit slot is written by us alone.
        unsafe { self.ring.header(at) }.tp_len as usize
    }
}

impl Sender for AfPacketSender {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        self.fill(frame, edit).is_some()
    }

    fn flush(&mut self) {
        if self.queued == 0 {
            return;
        }
        let before = self.queued;
        let from = self.oldest;
        let result = self.socket.send_ring();
        let taken = self.step_over_taken();
        match result {
            // The kernel skips frames longer than the interface's MTU: it was lowered after the port was opened.
            Ok(sent) if sent < taken => self.count_skipped(from, before - self.queued),
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS)) => {}
            // Down or removed.
            Err(_) => self.take_back(),
        }
        // Congestion passes until the next flush. A frame that is refused twice would come late (ENOBUFS is
        // also what an interface without carrier says).
        if self.queued > 0 && self.queued == before && self.refused {
            self.take_back();
        }
        self.refused = self.queued > 0;
    }

    fn pending(&self) -> bool {
        self.queued > 0
    }

    fn lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_of_many_ports_fit_in_memory() {
        let few = Rings::among(4);
        assert_eq!((few.receive_bytes, few.send_bytes, few.slots), (RECEIVE_BYTES, SEND_BYTES, SLOTS));
        for ports in [1, 64, 65, 130, 260] {
            let rings = Rings::among(ports);
            assert!(
                rings.receive_bytes * ports <= RECEIVE_BYTES_OF_ALL
                    && rings.receive_bytes >= LEAST_RECEIVE_BYTES
            );
        }
    }
}
