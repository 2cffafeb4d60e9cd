//! Frames of the controller: keep-alives from pair ports up to the primary, packet-outs down to a port, or straight back.
//! Neither shares a queue, a lock or a thread with data.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dataplane::frame::ETHERNET_HEADER;
use dataplane::keepalive::{is_keep_alive, stamp};
use dataplane::tables::PortRole;
use dataplane::{Nanos, PortId, Reason, SteeringMode};

use crate::counters::Block;
use crate::device::Device;
use crate::io::af_xdp::ProbePass;
use crate::io::interface::Interface;
use crate::io::{Edit, IoError, KeepAliveReceiver, KeepAliveSender, ProbeHeaders, Sender, keep_alive};
use crate::pipeline::decide;
use crate::tables::{Links, Ports, Snapshot};

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
    ports: HashMap<PortId, Way>,
}

/// How packets leave by a port.
pub struct Way {
    /// For keep-alives, opened with the port's interface alone; without it they leave as all else does.
    pub keep_alives: Option<Box<dyn KeepAliveSender>>,
    /// For all else.
    pub sender: Box<dyn Sender>,
}

impl PacketOut {
    /// Sends by the ports that are put in.
    #[must_use]
    pub fn new(device: Arc<Device>) -> Self {
        let counters = device.counters().block();
        PacketOut { device, ways: Arc::new(Mutex::new(Ways { counters, ports: HashMap::new() })) }
    }

    /// Sends by this way from now on; the port's old one.
    pub fn put(&self, port: PortId, way: Way) -> Option<Way> {
        self.ways().ports.insert(port, way)
    }

    /// Sends no more by a port; its way.
    pub fn take(&self, port: PortId) -> Option<Way> {
        self.ways().ports.remove(&port)
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a frame by a port at once. A keep-alive, plain or steered, gets its transmit time; another frame leaves as
    /// it is. By the port to the controller itself the frame comes back.
    ///
    /// # Errors
    /// See [`PacketOutFault`].
    pub fn send(&self, port: u128, mut frame: Vec<u8>) -> Result<Sent, PacketOutFault> {
        let number = u16::try_from(port).map_err(|_| PacketOutFault::NoPort(port))?;
        let id = PortId(number);
        let length = frame.len();
        let is_keep_alive = is_keep_alive(&frame);
        let mut ways = self.ways();
        let Ways { counters, ports } = &mut *ways;
        let way = ports.get_mut(&id);
        let is_back = id == self.device.profile().cpu_port;
        if way.is_none() && !is_back {
            return Err(PacketOutFault::NoPort(port));
        }
        // The way writes it once more, later.
        let now = keep_alive::monotonic();
        if length < ETHERNET_HEADER || (is_keep_alive && !stamp(&mut frame, now)) {
            return Err(PacketOutFault::Short(length));
        }
        if !self.device.snapshot().load().mtus.admits(id, length) {
            return Err(PacketOutFault::Long { port: id, length });
        }
        let sent = match way {
            Some(Way { keep_alives: Some(keep_alives), .. }) if is_keep_alive => {
                keep_alives
                    .send(0, &mut frame)
                    .map_err(|source| PacketOutFault::System { port: id, source })?;
                Sent::Out
            }
            Some(Way { sender, .. }) => {
                let queued = sender.send(&frame, Edit::Keep);
                sender.flush();
                if !queued || sender.lost() > 0 {
                    return Err(PacketOutFault::Full(id));
                }
                Sent::Out
            }
            None => Sent::Back { port: id, frame, received: keep_alive::monotonic() },
        };
        counters.count_sent(id, length, is_keep_alive);
        Ok(sent)
    }
}

/// What became of a packet-out.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// It left by its port.
    Out,
    /// It is for the controller itself: to be handed back at once.
    Back {
        /// The port to the controller.
        port: PortId,
        /// With its transmit time.
        frame: Vec<u8>,
        /// When it was back.
        received: Nanos,
    },
}

/// Where arrived keep-alives go; must not block. `false` where there is no room or nobody to read.
pub type Deliver = Box<dyn Fn(PortId, &[u8], Nanos) -> bool + Send>;

/// The ports of a [`KeepAliveInlet`], which may change while it runs.
#[derive(Clone, Default)]
pub struct InletPorts(Arc<Listed>);

#[derive(Default)]
struct Listed {
    interfaces: Mutex<Vec<(PortId, String)>>,
    /// The list is another, or an interface was created anew: what listens by its old index hears nothing.
    stale: AtomicBool,
    /// What the ports' own programs leave to the path of keep-alives.
    pass: Arc<ProbePass>,
}

impl InletPorts {
    /// These ports from now on, with their interfaces.
    pub fn set(&self, interfaces: Vec<(PortId, String)>) {
        *self.0.interfaces.lock().unwrap_or_else(PoisonError::into_inner) = interfaces;
        self.refresh();
    }

    /// Listens anew: an interface was created anew.
    pub fn refresh(&self) {
        self.0.stale.store(true, Relaxed);
    }

    /// Which probes the programs of AF_XDP ports are to pass; the inlet keeps it as the tables say.
    #[must_use]
    pub fn probe_pass(&self) -> Arc<ProbePass> {
        Arc::clone(&self.0.pass)
    }

    fn list(&self) -> Vec<(PortId, String)> {
        self.0.interfaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Receives keep-alives on the ports that the tables make pair ports: plain ones, and what comes back with a link index
/// that the tables give to the controller.
pub struct KeepAliveInlet {
    device: Arc<Device>,
    ports: InletPorts,
    deliver: Deliver,
    undelivered: Arc<AtomicU64>,
}

impl KeepAliveInlet {
    /// An inlet for these ports; none of them is listened to before the tables say that it is a pair's.
    #[must_use]
    pub fn new(device: Arc<Device>, ports: InletPorts, deliver: Deliver) -> Self {
        KeepAliveInlet { device, ports, deliver, undelivered: Arc::default() }
    }

    /// Keep-alives that found nobody to read them.
    #[must_use]
    pub fn undelivered(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.undelivered)
    }

    /// Receives until `stop` is set.
    pub fn run(self, stop: &AtomicBool) {
        let mut listening: Option<(BTreeSet<PortId>, ProbeHeaders)> = None;
        let mut ports: Vec<PortId> = Vec::new();
        let mut path: Option<Box<dyn KeepAliveReceiver>> = None;
        let mut seen: Option<Seen> = None;
        while !stop.load(Relaxed) {
            if self.ports.0.stale.swap(false, Relaxed) {
                seen = None;
                listening = None;
            }
            let now = Seen::of(&self.device.snapshot().load());
            if seen.as_ref() != Some(&now) {
                if let Err(error) = self.ports.0.pass.set(&now.probes()) {
                    tracing::warn!(%error, "probes that come back are not told from data on AF_XDP ports");
                }
                let interfaces = self.ports.list();
                let wanted = (pair_ports(&interfaces, &now.ports), now.probes());
                if listening.as_ref() != Some(&wanted) || (path.is_none() && !wanted.0.is_empty()) {
                    match listen(&mut path, &interfaces, &wanted.0, &wanted.1) {
                        Ok(on) => {
                            ports = on;
                            listening = Some(wanted);
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
                // The tables may have become others since the path was opened. Counting is the worker's.
                let decision = decide(&self.device.snapshot().load(), *port, frame);
                if decision.reason == Reason::KeepAlive && !(self.deliver)(*port, frame, time) {
                    self.undelivered.fetch_add(1, Relaxed);
                }
            });
            if let Err(error) = received {
                tracing::warn!(%error, "cannot receive keep-alives; trying again");
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// The tables that say where to listen for what.
struct Seen {
    ports: Arc<Ports>,
    links: Arc<Links>,
    mode: SteeringMode,
}

impl Seen {
    fn of(tables: &Snapshot) -> Self {
        let Snapshot { ports, links, steering, .. } = tables;
        Seen { ports: Arc::clone(ports), links: Arc::clone(links), mode: *steering }
    }

    fn probes(&self) -> ProbeHeaders {
        ProbeHeaders { mode: self.mode, indices: self.links.of_controller().collect() }
    }
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ports, &other.ports)
            && Arc::ptr_eq(&self.links, &other.links)
            && self.mode == other.mode
    }
}

fn pair_ports(interfaces: &[(PortId, String)], roles: &Ports) -> BTreeSet<PortId> {
    interfaces
        .iter()
        .map(|(port, _)| *port)
        .filter(|port| matches!(roles.role(*port), Some(PortRole::Pair { .. })))
        .collect()
}

/// Makes the path listen on those of these ports whose interface is there; which they are, in its order. One that
/// is gone for a while must not silence the others.
fn listen(
    path: &mut Option<Box<dyn KeepAliveReceiver>>,
    interfaces: &[(PortId, String)],
    ports: &BTreeSet<PortId>,
    probes: &ProbeHeaders,
) -> Result<Vec<PortId>, IoError> {
    let (ports, names): (Vec<PortId>, Vec<&str>) = interfaces
        .iter()
        .filter(|(port, name)| ports.contains(port) && Interface::find(name).is_ok())
        .map(|(port, name)| (*port, name.as_str()))
        .unzip();
    match path {
        _ if ports.is_empty() => *path = None,
        Some(path) => path.listen(&names, probes)?,
        None => *path = Some(Box::new(keep_alive::receiver(&names, probes)?)),
    }
    Ok(ports)
}
