//! The thread that measures pairs: sends keep-alives, reads what comes back, and says what changed.
//!
//! It has a runtime of its own and waits for nobody: neither configuration nor clients stand in its way.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use dataplane::keepalive::{Direction as Way, KEEP_ALIVE_ETHERTYPE, KeepAlive, KeepAliveFault, KeepAliveKey};
use dataplane::probe::{self, Envelope};
use dataplane::{Core, LinkIndex, Nanos as Stamp, PairId, PortId, Side as End, SteeringMode};
use liveness::{
    Actions, Direction, Event, Nanos, PairKey, PairStatus, PerDirection, Probe, ProbeKind, ReferenceKey,
    ReferenceProbe, ReferenceStatus, Rejection, Side, Supervision, Suspicion, UnitConfig, UnitStatus,
};
use tokio::sync::{mpsc, oneshot};

use crate::alarm::Alarm;
use crate::clock;
use crate::target::{PacketIn, Packets, Target};

/// Frames read in one turn.
const TURN: usize = 1024;

/// Longest sleep where nothing is due, ns.
const IDLE: u64 = 1_000_000_000;

/// By the way a keep-alive leaves: LAN port for `lan_to_wan`, WAN port for the other.
pub type Ports = PerDirection<PortId>;

/// How a pair is probed.
#[derive(Clone, Debug)]
pub struct PairWay {
    /// Its ports.
    pub ports: Ports,
    /// What is around a datagram that must come back.
    pub ip: Option<PerDirection<Envelope>>,
    /// And around one that must not.
    pub negative: Option<PerDirection<Envelope>>,
}

/// Everything that is measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Units with their pairs.
    pub units: Vec<UnitConfig>,
    /// How each pair is probed.
    pub pairs: HashMap<PairId, PairWay>,
    /// Ports of the references, by the numbers that they have among the pairs; `None` for the controller's own port.
    pub references: HashMap<PairId, Option<Ports>>,
    /// Headers of steered probes.
    pub steering: SteeringMode,
    /// The index in these headers.
    pub probe: Option<LinkIndex>,
}

/// What the thread is told.
pub enum Command {
    /// What is measured from now on.
    Configure(Box<Measured>),
    /// Ends the hold of a pair by hand; answers whether there was one.
    ClearHold {
        /// The pair.
        pair: PairId,
        /// Whether there was one.
        answer: oneshot::Sender<bool>,
    },
    /// A port gained or lost carrier.
    Carrier {
        /// The port.
        port: PortId,
        /// Whether it has one.
        present: bool,
    },
    /// Asks for the state of everything.
    Status(oneshot::Sender<Status>),
}

/// The state of everything.
#[derive(Clone, Debug)]
pub struct Status {
    /// Pairs in the order of their keys.
    pub pairs: Vec<PairStatus>,
    /// Units in the order of their keys.
    pub units: Vec<UnitStatus>,
    /// Whether the fault may be ours.
    pub suspicion: Suspicion,
    /// Paths of our own.
    pub references: Vec<ReferenceStatus>,
    /// When.
    pub now: Nanos,
}

/// The handle to the thread.
#[derive(Clone)]
pub struct Keepalives {
    commands: mpsc::UnboundedSender<Command>,
}

/// The thread has ended; the process is about to.
#[derive(Debug, thiserror::Error)]
#[error("the liveness thread has ended")]
pub struct Ended;

impl Keepalives {
    /// Starts the thread; what changes comes out of the receiver, in order.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start<T: Target, P: Packets>(
        target: Arc<T>,
        packets: P,
    ) -> std::io::Result<(Self, mpsc::UnboundedReceiver<Event>)> {
        let (commands, received) = mpsc::unbounded_channel();
        let (report, events) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("keepalives".to_owned()).spawn(move || {
            let prober = Prober {
                target,
                packets,
                report,
                supervision: Supervision::seeded(rand::random()),
                measured: Measured::default(),
                pair_of: HashMap::new(),
                instance: rand::random(),
                key: KeepAliveKey(rand::random()),
            };
            runtime.block_on(prober.run(received));
        })?;
        Ok((Keepalives { commands }, events))
    }

    /// Tells the thread.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn tell(&self, command: Command) -> Result<(), Ended> {
        self.commands.send(command).map_err(|_| Ended)
    }

    /// The state of everything.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn status(&self) -> Result<Status, Ended> {
        let (answer, status) = oneshot::channel();
        self.tell(Command::Status(answer))?;
        status.await.map_err(|_| Ended)
    }
}

struct Prober<T, P> {
    target: Arc<T>,
    packets: P,
    report: mpsc::UnboundedSender<Event>,
    supervision: Supervision,
    measured: Measured,
    /// Which pair or reference a port belongs to, and its side.
    pair_of: HashMap<PortId, (PairId, End)>,
    instance: u64,
    key: KeepAliveKey,
}

fn key(pair: PairId) -> PairKey {
    PairKey(pair.0)
}

fn way(direction: Direction) -> Way {
    match direction {
        Direction::LanToWan => Way::LanToWan,
        Direction::WanToLan => Way::WanToLan,
    }
}

fn direction(way: Way) -> Direction {
    match way {
        Way::LanToWan => Direction::LanToWan,
        Way::WanToLan => Direction::WanToLan,
    }
}

fn side(end: End) -> Side {
    match end {
        End::Lan => Side::Lan,
        End::Wan => Side::Wan,
    }
}

/// The way of a keep-alive that arrives on this side.
fn arriving(end: End) -> Direction {
    match end {
        End::Lan => Direction::WanToLan,
        End::Wan => Direction::LanToWan,
    }
}

impl<T: Target, P: Packets> Prober<T, P> {
    async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let alarm = match Alarm::new() {
            Ok(alarm) => alarm,
            Err(error) => {
                tracing::error!("no timer for keep-alives: {error}");
                return;
            }
        };
        loop {
            let due = self.supervision.next_deadline().unwrap_or(Nanos(clock::now().0 + IDLE));
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                packet = self.packets.next() => match packet {
                    Some(packet) => self.read(&packet),
                    None => return,
                },
                rung = alarm.until(due) => if let Err(error) = rung {
                    tracing::error!("the timer for keep-alives fails: {error}");
                    return;
                },
            }
            // Everything that has arrived is judged before anything is given up.
            for _ in 0..TURN {
                let Some(packet) = self.packets.ready() else { break };
                self.read(&packet);
            }
            let actions = self.supervision.poll(clock::now());
            if !self.act(actions).await {
                return;
            }
        }
    }

    async fn act(&mut self, actions: Actions) -> bool {
        for event in actions.events {
            if self.report.send(event).is_err() {
                return false;
            }
        }
        for probe in actions.probes {
            let sent = match self.frame(&probe) {
                Some((port, frame)) => self.target.send(port, frame).await.is_ok(),
                None => false,
            };
            if !sent {
                // What was never sent is not lost; an unknown pair was just removed.
                let _ = self.supervision.probe_unsent(probe);
            }
        }
        for probe in actions.references {
            let id = PairId(probe.reference.0);
            let port = match self.measured.references.get(&id) {
                Some(Some(ports)) => Some(ports[probe.direction]),
                Some(None) => Some(self.target.profile().cpu_port),
                None => None,
            };
            let sent = match port {
                Some(port) => {
                    let frame = self.plain(id, probe.direction, probe.sequence);
                    self.target.send(port, frame).await.is_ok()
                }
                None => false,
            };
            if !sent {
                let _ = self.supervision.reference_unsent(probe);
            }
        }
        true
    }

    /// The frame of a probe, and the port that it leaves by.
    fn frame(&self, probe: &Probe) -> Option<(PortId, Vec<u8>)> {
        let pair = PairId(probe.pair.0);
        let way = self.measured.pairs.get(&pair)?;
        let port = way.ports[probe.direction];
        let envelope = |of: &Option<PerDirection<Envelope>>| Some((*of)?[probe.direction]);
        let (kind, core, envelope) = match probe.kind {
            ProbeKind::Pair => return Some((port, self.plain(pair, probe.direction, probe.sequence))),
            ProbeKind::Core(core) => (probe::ProbeKind::Core(Core(core)), Core(core), Envelope::Ethernet),
            ProbeKind::Ip => (probe::ProbeKind::Ip, Core(0), envelope(&way.ip)?),
            ProbeKind::Negative => (probe::ProbeKind::Negative, Core(0), envelope(&way.negative)?),
        };
        let steered = probe::Probe {
            pair,
            direction: self::way(probe.direction),
            instance: self.instance,
            sequence: probe.sequence,
            transmit: Stamp(0),
            kind,
        };
        let header = self.measured.steering.encode(core, self.measured.probe?);
        Some((port, steered.encode(&self.key, header, envelope)))
    }

    /// A plain keep-alive.
    fn plain(&self, pair: PairId, direction: Direction, sequence: u64) -> Vec<u8> {
        let keepalive = KeepAlive {
            pair,
            direction: way(direction),
            instance: self.instance,
            sequence,
            transmit: Stamp(0),
        };
        keepalive.encode(&self.key).to_vec()
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure(measured) => {
                if let Err(error) = self.supervision.configure(&measured.units, clock::now()) {
                    tracing::error!("liveness refuses the configuration: {error}");
                    return;
                }
                let pairs = measured.pairs.iter().map(|(pair, way)| (*pair, way.ports));
                let references =
                    measured.references.iter().filter_map(|(reference, ports)| Some((*reference, (*ports)?)));
                self.pair_of = pairs
                    .chain(references)
                    .flat_map(|(pair, ports)| {
                        [(ports.lan_to_wan, (pair, End::Lan)), (ports.wan_to_lan, (pair, End::Wan))]
                    })
                    .collect();
                self.measured = *measured;
            }
            Command::ClearHold { pair, answer } => {
                let cleared = self.supervision.clear_hold(key(pair), clock::now());
                // Who asked may have gone.
                let _ = answer.send(cleared.unwrap_or_default());
            }
            Command::Carrier { port, present } => {
                if let Some((pair, end)) = self.pair_of.get(&port) {
                    // An unknown pair was just removed.
                    let _ = self.supervision.carrier(key(*pair), side(*end), present, clock::now());
                }
            }
            Command::Status(answer) => {
                // Who asked may have gone.
                let _ = answer.send(Status {
                    pairs: self.supervision.pairs().collect(),
                    units: self.supervision.units().cloned().collect(),
                    suspicion: self.supervision.suspicion(),
                    references: self.supervision.references().collect(),
                    now: clock::now(),
                });
            }
        }
    }

    /// Judges a frame; unknown pairs were just removed and matter to nobody.
    fn read(&mut self, packet: &PacketIn) {
        let now = clock::now();
        let found = match Returned::decode(&packet.frame, &self.key, self.instance) {
            Ok(found) => found,
            Err(fault) => {
                let why = match fault {
                    KeepAliveFault::Malformed => return,
                    KeepAliveFault::WrongInstance(_) => Rejection::WrongInstance,
                    KeepAliveFault::WrongTag => Rejection::WrongTag,
                };
                if let Some((pair, end)) = self.pair_of.get(&packet.port) {
                    let (pair, way) = (key(*pair), arriving(*end));
                    let _ = self.supervision.probe_rejected(pair, ProbeKind::Pair, way, why, now);
                }
                return;
            }
        };
        let times = (Nanos(found.transmit.0), Nanos(packet.received));
        if packet.port == self.target.profile().cpu_port {
            // Only what the controller sent to itself comes in by its own port.
            self.reference_returned(&found, times, now);
            return;
        }
        let Some((arrived_at, end)) = self.pair_of.get(&packet.port).copied() else { return };
        let (pair, way) = (key(found.pair), direction(found.way));
        if found.pair != arrived_at {
            let why = Rejection::WrongPair(key(arrived_at));
            let _ = self.supervision.probe_rejected(pair, found.kind, way, why, now);
        } else if found.way.from_side() == end {
            let _ = self.supervision.probe_rejected(pair, found.kind, way, Rejection::Looped, now);
        } else if self.measured.references.contains_key(&found.pair) {
            self.reference_returned(&found, times, now);
        } else {
            let probe = Probe { pair, kind: found.kind, direction: way, sequence: found.sequence };
            let _ = self.supervision.probe_received(probe, times.0, times.1, now);
        }
    }

    fn reference_returned(&mut self, found: &Returned, (transmit, received): (Nanos, Nanos), now: Nanos) {
        let probe = ReferenceProbe {
            reference: ReferenceKey(found.pair.0),
            direction: direction(found.way),
            sequence: found.sequence,
        };
        // An unknown one was just removed.
        let _ = self.supervision.reference_received(probe, transmit, received, now);
    }
}

/// A keep-alive of ours that came back, of either form.
struct Returned {
    pair: PairId,
    way: Way,
    kind: ProbeKind,
    sequence: u64,
    transmit: Stamp,
}

impl Returned {
    fn decode(frame: &[u8], key: &KeepAliveKey, instance: u64) -> Result<Self, KeepAliveFault> {
        if frame.get(12..14) == Some(&KEEP_ALIVE_ETHERTYPE.to_be_bytes()) {
            let KeepAlive { pair, direction, sequence, transmit, .. } =
                KeepAlive::decode(frame, key, instance)?;
            return Ok(Returned { pair, way: direction, kind: ProbeKind::Pair, sequence, transmit });
        }
        let probe::Probe { pair, direction, sequence, transmit, kind, .. } =
            probe::Probe::decode(frame, key, instance)?;
        let kind = match kind {
            probe::ProbeKind::Core(core) => ProbeKind::Core(core.0),
            probe::ProbeKind::Ip => ProbeKind::Ip,
            probe::ProbeKind::Negative => ProbeKind::Negative,
        };
        Ok(Returned { pair, way: direction, kind, sequence, transmit })
    }
}
