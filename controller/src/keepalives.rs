//! The thread that measures pairs: sends keep-alives, reads what comes back, and says what changed.
//!
//! It has a runtime of its own and waits for nobody: neither configuration nor clients stand in its way.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use dataplane::keepalive::{Direction as Way, KeepAlive, KeepAliveFault, KeepAliveKey};
use dataplane::{Nanos as Stamp, PairId, PortId, Side as End};
use liveness::{
    Actions, Direction, Event, Nanos, PairKey, PairStatus, PerDirection, Probe, ProbeKind, Rejection, Side,
    Supervision, Suspicion, UnitConfig, UnitStatus,
};
use tokio::sync::{mpsc, oneshot};

use crate::alarm::Alarm;
use crate::clock;
use crate::target::{PacketIn, Packets, Target};

/// Frames read in one turn.
const TURN: usize = 1024;

/// Longest sleep where nothing is due, ns.
const IDLE: u64 = 1_000_000_000;

/// Ports of every pair.
pub type PairPorts = HashMap<PairId, PerDirection<PortId>>;

/// What the thread is told.
pub enum Command {
    /// Units, pairs and their ports from now on.
    Configure {
        /// Units with their pairs.
        units: Vec<UnitConfig>,
        /// By the way a keep-alive leaves: LAN port for `lan_to_wan`, WAN port for the other.
        ports: PairPorts,
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
                supervision: Supervision::new(),
                ports: PairPorts::new(),
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
    ports: PairPorts,
    /// Which pair a port belongs to, and its side.
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
            let pair = PairId(probe.pair.0);
            let frame = KeepAlive {
                pair,
                direction: way(probe.direction),
                instance: self.instance,
                sequence: probe.sequence,
                transmit: Stamp(0),
            }
            .encode(&self.key);
            let sent = match self.ports.get(&pair) {
                Some(ports) => self.target.send(ports[probe.direction], frame.to_vec()).await.is_ok(),
                None => false,
            };
            if !sent {
                // What was never sent is not lost; an unknown pair was just removed.
                let _ = self.supervision.probe_unsent(probe);
            }
        }
        true
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure { units, ports } => {
                if let Err(error) = self.supervision.configure(&units, clock::now()) {
                    tracing::error!("liveness refuses the configuration: {error}");
                    return;
                }
                self.pair_of = ports
                    .iter()
                    .flat_map(|(pair, ports)| {
                        [(ports.lan_to_wan, (*pair, End::Lan)), (ports.wan_to_lan, (*pair, End::Wan))]
                    })
                    .collect();
                self.ports = ports;
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
                    now: clock::now(),
                });
            }
        }
    }

    /// Judges a frame; unknown pairs were just removed and matter to nobody.
    fn read(&mut self, packet: &PacketIn) {
        let Some((arrived_at, end)) = self.pair_of.get(&packet.port).copied() else { return };
        let now = clock::now();
        let keepalive = match KeepAlive::decode(&packet.frame, &self.key, self.instance) {
            Ok(keepalive) => keepalive,
            Err(fault) => {
                let why = match fault {
                    KeepAliveFault::Malformed => return,
                    KeepAliveFault::WrongInstance(_) => Rejection::WrongInstance,
                    KeepAliveFault::WrongTag => Rejection::WrongTag,
                };
                let pair = key(arrived_at);
                let _ = self.supervision.probe_rejected(pair, ProbeKind::Pair, arriving(end), why, now);
                return;
            }
        };
        let (pair, way) = (key(keepalive.pair), direction(keepalive.direction));
        if keepalive.pair != arrived_at {
            let _ = self.supervision.probe_rejected(
                pair,
                ProbeKind::Pair,
                way,
                Rejection::WrongPair(key(arrived_at)),
                now,
            );
        } else if keepalive.direction.from_side() == end {
            let _ = self.supervision.probe_rejected(pair, ProbeKind::Pair, way, Rejection::Looped, now);
        } else {
            let probe = Probe { pair, kind: ProbeKind::Pair, direction: way, sequence: keepalive.sequence };
            let (transmit, received) = (Nanos(keepalive.transmit.0), Nanos(packet.received));
            let _ = self.supervision.probe_received(probe, transmit, received, now);
        }
    }
}
