//! Frames of the controller: keep-alives from pair ports up to the primary, packet-outs down to a port.
//! Neither shares a queue, a lock or a thread with data.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dataplane::frame::ETHERNET_HEADER;
use dataplane::keepalive::{KEEP_ALIVE_ETHERTYPE, TRANSMIT_TIME_OFFSET};
use dataplane::tables::PortRole;
use dataplane::{Nanos, PortId};

use crate::counters::Block;
use crate::device::Device;
use crate::io::interface::Interface;
use crate::io::{Edit, IoError, KeepAliveReceiver, KeepAliveSender, Sender, keep_alive};
use crate::tables::Ports;
use crate::worker::PortSenders;

/// Longest wait for keep-alives: how soon a change of the ports' roles, or the end, is noticed.
const WAIT: Duration = Duration::from_millis(50);
/// Pause after the kernel refused to hand keep-alives over.
const RETRY: Duration = Duration::from_millis(100);

/// Why a packet-out did not leave.
#[derive(Debug, thiserror::Error)]
pub enum PacketOutFault {
    /// No port of this number has an interface.
    #[error("egress_port {0}: this pipeline has no such port")]
    NoPort(u128),
    /// Shorter than its headers.
    #[error("a frame of {0} bytes has no Ethernet header, or no place for a keep-alive's transmit time")]
    Short(usize),
    /// Longer than the port's MTU.
    #[error("egress_port {port}: a frame of {length} bytes is longer than the port's MTU")]
    Long {
        /// The port.
        port: PortId,
        /// Length without FCS.
        length: usize,
    },
    /// The port has no room, or no carrier.
    #[error("egress_port {0}: the port has no room or is down")]
    Full(PortId),
    /// What the kernel says.
    #[error("egress_port {port}: {source}")]
    System {
        /// The port.
        port: PortId,
        /// The reason.
        source: std::io::Error,
    },
}

/// Sends packet-outs; clones share their ways.
#[derive(Clone)]
pub struct PacketOut {
    device: Arc<Device>,
    ways: Arc<Mutex<Ways>>,
}

struct Ways {
    counters: Arc<Block>,
    keep_alives: Option<Box<dyn KeepAliveSender>>,
    /// By port: place in the list that `keep_alives` was opened with, and a sender for all else.
    ports: HashMap<PortId, (usize, Box<dyn Sender>)>,
}

impl PacketOut {
    /// Sends keep-alives by `keep_alives`, which was opened with the interfaces of `ports` in this order,
    /// and other frames by the ports' senders.
    #[must_use]
    pub fn new(
        device: Arc<Device>,
        keep_alives: Option<Box<dyn KeepAliveSender>>,
        ports: PortSenders,
    ) -> Self {
        let counters = device.counters().block();
        let ports = ports.into_iter().enumerate().map(|(at, (port, sender))| (port, (at, sender))).collect();
        PacketOut { device, ways: Arc::new(Mutex::new(Ways { counters, keep_alives, ports })) }
    }

    /// Sends by `sender`, and keep-alives by the interface that now has the port's name.
    ///
    /// # Errors
    /// No such interface; the old ways stay then.
    pub fn reopen(&self, port: PortId, sender: Box<dyn Sender>) -> Result<(), IoError> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let Ways { keep_alives, ports, .. } = &mut *ways;
        if let Some((at, old)) = ports.get_mut(&port) {
            if let Some(keep_alives) = keep_alives {
                keep_alives.reopen(*at)?;
            }
            *old = sender;
        }
        Ok(())
    }

    /// Sends a frame by a port at once. A keep-alive gets its transmit time; another frame leaves as it is.
    ///
    /// # Errors
    /// See [`PacketOutFault`].
    pub fn send(&self, port: u128, mut frame: Vec<u8>) -> Result<(), PacketOutFault> {
        let number = u16::try_from(port).map_err(|_| PacketOutFault::NoPort(port))?;
        let id = PortId(number);
        let length = frame.len();
        let ethertype = frame.get(12..ETHERNET_HEADER).ok_or(PacketOutFault::Short(length))?;
        let is_keep_alive = ethertype == KEEP_ALIVE_ETHERTYPE.to_be_bytes();
        if is_keep_alive && length < TRANSMIT_TIME_OFFSET + size_of::<u64>() {
            return Err(PacketOutFault::Short(length));
        }
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let Ways { counters, keep_alives, ports } = &mut *ways;
        let (at, sender) = ports.get_mut(&id).ok_or(PacketOutFault::NoPort(port))?;
        if !self.device.snapshot().load().mtus.admits(id, length) {
            return Err(PacketOutFault::Long { port: id, length });
        }
        match keep_alives {
            Some(keep_alives) if is_keep_alive => {
                keep_alives
                    .send(*at, &mut frame)
                    .map_err(|source| PacketOutFault::System { port: id, source })?;
            }
            _ => {
                let queued = sender.send(&frame, Edit::Keep);
                sender.flush();
                if !queued || sender.lost() > 0 {
                    return Err(PacketOutFault::Full(id));
                }
            }
        }
        counters.count_sent(id, length);
        Ok(())
    }
}

/// Where arrived keep-alives go; must not block. `false` where there is no room or nobody to read.
pub type Deliver = Box<dyn Fn(PortId, &[u8], Nanos) -> bool + Send>;

/// An open path, and its ports in the order of its interfaces.
type Listening = (Option<Box<dyn KeepAliveReceiver>>, Vec<PortId>);

/// Receives keep-alives on the ports that the tables make pair ports.
pub struct KeepAliveInlet {
    device: Arc<Device>,
    /// Interfaces of ports.
    interfaces: Vec<(PortId, String)>,
    deliver: Deliver,
    undelivered: Arc<AtomicU64>,
    /// An interface was created anew: what listens by its old index hears nothing.
    stale: Arc<AtomicBool>,
}

impl KeepAliveInlet {
    /// An inlet for these ports; none of them is listened to before the tables say that it is a pair's.
    #[must_use]
    pub fn new(device: Arc<Device>, interfaces: Vec<(PortId, String)>, deliver: Deliver) -> Self {
        KeepAliveInlet { device, interfaces, deliver, undelivered: Arc::default(), stale: Arc::default() }
    }

    /// Keep-alives that found nobody to read them.
    #[must_use]
    pub fn undelivered(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.undelivered)
    }

    /// Set this where an interface was created anew; the path is opened again then.
    #[must_use]
    pub fn stale(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stale)
    }

    /// Receives until `stop` is set.
    pub fn run(self, stop: &AtomicBool) {
        let mut listening: BTreeSet<PortId> = BTreeSet::new();
        let mut ports: Vec<PortId> = Vec::new();
        let mut path: Option<Box<dyn KeepAliveReceiver>> = None;
        let mut seen: Option<Arc<Ports>> = None;
        while !stop.load(Relaxed) {
            if self.stale.swap(false, Relaxed) {
                seen = None;
                listening.clear();
            }
            let now = Arc::clone(&self.device.snapshot().load().ports);
            if !seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &now)) {
                let wanted = self.pair_ports(&now);
                if wanted != listening || (path.is_none() && !wanted.is_empty()) {
                    match self.open(&wanted) {
                        Ok(opened) => {
                            (path, ports) = opened;
                            listening = wanted;
                        }
                        Err(error) => {
                            tracing::warn!(%error, "cannot listen for keep-alives; trying again");
                            std::thread::sleep(RETRY);
                            continue;
                        }
                    }
                }
                seen = Some(now);
            }
            let Some(path) = path.as_mut() else {
                std::thread::sleep(WAIT);
                continue;
            };
            let received = path.receive(WAIT, &mut |at, frame, time| {
                let Some(port) = ports.get(at) else { return };
                // The port may have become a link's since the path was opened.
                let role = self.device.snapshot().load().ports.role(*port);
                if matches!(role, Some(PortRole::Pair { .. })) && !(self.deliver)(*port, frame, time) {
                    self.undelivered.fetch_add(1, Relaxed);
                }
            });
            if let Err(error) = received {
                tracing::warn!(%error, "cannot receive keep-alives; trying again");
                std::thread::sleep(RETRY);
            }
        }
    }

    fn pair_ports(&self, roles: &Ports) -> BTreeSet<PortId> {
        self.interfaces
            .iter()
            .map(|(port, _)| *port)
            .filter(|port| matches!(roles.role(*port), Some(PortRole::Pair { .. })))
            .collect()
    }

    /// A path that listens on those of these ports whose interface is there, and which they are: one that is
    /// gone for a while must not silence the others.
    fn open(&self, ports: &BTreeSet<PortId>) -> Result<Listening, IoError> {
        let (ports, names): (Vec<PortId>, Vec<&str>) = self
            .interfaces
            .iter()
            .filter(|(port, name)| ports.contains(port) && Interface::find(name).is_ok())
            .map(|(port, name)| (*port, name.as_str()))
            .unzip();
        if ports.is_empty() {
            return Ok((None, ports));
        }
        let (_, receiver) = keep_alive::open(&names)?;
        Ok((Some(Box::new(receiver)), ports))
    }
}
