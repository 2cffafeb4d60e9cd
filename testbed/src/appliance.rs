//! The emulated inline appliance: carries frames between the two ports of its pairs, wants a steering header,
//! keeps session tables per pair and core, and complains when a session meets two of them. Delay, loss, hang of all or
//! of single cores, TCP resets and a policy can be set while it runs.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::probe;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::clock::now_ns;
use crate::error::{Doing, Result};
use crate::frame::{self, SessionKey};
use crate::raw::{Batch, PacketSocket};
use crate::rng::Rng;
use crate::topology::Steering;

/// Complaints that are kept in words; the others are only counted.
const LISTED: usize = 20;
const UDP: u8 = 17;

/// What the appliance is told at its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// How the steering header looks.
    pub steering: Steering,
    /// Worker cores; a steering header that names a higher one is complained about.
    pub cores: u32,
    /// The pairs that end here.
    pub pairs: Vec<PairPorts>,
}

/// A pair's name and the interfaces at which its cables end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairPorts {
    /// Name in the configuration.
    pub name: String,
    /// Interface of the LAN cable.
    pub lan: String,
    /// Interface of the WAN cable.
    pub wan: String,
}

/// Requests to a running appliance.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Changes how it treats frames; answered by the instant at which the change took effect, in ns.
    Set(Change),
    /// Asks for [`Report`].
    Report,
    /// Asks for every [`Session`].
    Sessions,
    /// Empties session tables and complaints, not the counters.
    Forget,
}

/// What to change; absent members stay as they are.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Change {
    /// The pair, or all of them.
    pub pair: Option<String>,
    /// Frozen: takes frames and does nothing with them; the carrier stays.
    pub frozen: Option<bool>,
    /// Extra time on path per frame, in microseconds.
    pub delay_us: Option<u64>,
    /// Loss in parts per million.
    pub loss_ppm: Option<u64>,
    /// Answers TCP segments to or from this port with a reset; 0 stops that.
    pub reset_port: Option<u16>,
    /// Worker cores that hang: frames whose steering header names one of them are swallowed, nothing else. In place of
    /// those that hung before; without a core in the header (`dot1q`) all frames are core 0's.
    pub hung_cores: Option<Vec<u8>>,
    /// Loss of keep-alives, plain and steered, in parts per million.
    pub keep_alive_loss_ppm: Option<u64>,
    /// Steered frames with an IP header are swallowed; all else, plain keep-alives among it, is carried.
    pub ip_stopped: Option<bool>,
    /// The policy: UDP to this port is dropped; 0 lets it pass.
    pub drop_udp_port: Option<u16>,
    /// What it makes of plain keep-alives instead of passing them on.
    pub forgery: Option<Forgery>,
}

/// What becomes of plain keep-alives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forgery {
    /// They pass.
    #[default]
    None,
    /// Their sequence number is another, so that the tag is wrong.
    Tag,
    /// They say that another controller sent them.
    Instance,
    /// They come back by the port that they came in by.
    Loop,
    /// An old one comes in the place of each.
    Replay,
}

impl Forgery {
    /// Those that must never pass for a good keep-alive.
    pub const ALL: [Forgery; 4] = [Forgery::Tag, Forgery::Instance, Forgery::Loop, Forgery::Replay];
}

/// Counters of one pair.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct PairReport {
    /// Name of the pair.
    pub name: String,
    /// Steered frames that came in by the LAN cable, without probes.
    pub lan_frames: u64,
    /// Steered frames that came in by the WAN cable, likewise.
    pub wan_frames: u64,
    /// Plain keep-alives that came in while it was not frozen.
    pub keep_alives: u64,
    /// Steered probes of the controller, likewise.
    pub probes: u64,
    /// Frames swallowed by cores that hang, and IP packets while these are not processed.
    pub hung: u64,
    /// Packets that the policy dropped.
    pub denied: u64,
    /// Frames swallowed while frozen.
    pub frozen: u64,
    /// Frames lost on purpose.
    pub lost: u64,
    /// Resets sent.
    pub resets: u64,
    /// Frames without a steering header.
    pub unsteered: u64,
}

/// What the appliance has seen.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Report {
    /// In the order of the set-up.
    pub pairs: Vec<PairReport>,
    /// Number of complaints.
    pub complaints: u64,
    /// The first few in words.
    pub listed: Vec<String>,
    /// Frames that the kernel dropped before we saw them.
    pub overruns: u64,
}

/// One session at one (pair, core).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// Addresses, ports, protocol.
    pub key: SessionKey,
    /// The pair it used.
    pub pair: String,
    /// The core it used.
    pub core: u8,
    /// Frames from the LAN side.
    pub lan_frames: u64,
    /// Frames from the WAN side.
    pub wan_frames: u64,
}

/// Side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Subscribers.
    Lan,
    /// Internet.
    Wan,
}

impl Side {
    /// The opposite side.
    pub fn other(self) -> Side {
        match self {
            Side::Lan => Side::Wan,
            Side::Wan => Side::Lan,
        }
    }
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Out of the other port, unchanged.
    Forward,
    /// The same, but only at this instant (ns).
    ForwardAt(u64),
    /// Gone.
    Drop,
    /// This frame goes back to where the other came from.
    Answer(Vec<u8>),
    /// This one goes out of the other port instead.
    Instead(Vec<u8>),
}

#[derive(Debug, Default, Clone)]
struct Settings {
    frozen: bool,
    delay_us: u64,
    loss_ppm: u64,
    reset_port: u16,
    hung_cores: Vec<u8>,
    keep_alive_loss_ppm: u64,
    ip_stopped: bool,
    drop_udp_port: u16,
    forgery: Forgery,
}

type Cell = (usize, u8);

#[derive(Debug, Default)]
struct SessionState {
    last: Option<Cell>,
    counts: BTreeMap<Cell, (u64, u64)>,
}

/// The appliance without its ports.
#[derive(Debug)]
pub struct Appliance {
    setup: Setup,
    settings: Vec<Settings>,
    pairs: Vec<PairReport>,
    sessions: HashMap<SessionKey, SessionState>,
    complaints: u64,
    listed: Vec<String>,
    rng: Rng,
    /// The last genuine keep-alive by pair and side.
    kept: BTreeMap<(usize, Side), Vec<u8>>,
}

impl Appliance {
    /// An appliance that carries everything.
    pub fn new(setup: Setup) -> Self {
        let pairs = setup
            .pairs
            .iter()
            .map(|p| PairReport { name: p.name.clone(), ..PairReport::default() })
            .collect();
        Appliance {
            settings: vec![Settings::default(); setup.pairs.len()],
            pairs,
            sessions: HashMap::new(),
            complaints: 0,
            listed: Vec::new(),
            rng: Rng::new(1),
            kept: BTreeMap::new(),
            setup,
        }
    }

    /// Applies a change.
    ///
    /// # Errors
    /// A sentence, when the pair isn't here.
    pub fn change(&mut self, change: &Change) -> std::result::Result<(), String> {
        let mut found = false;
        for (settings, pair) in self.settings.iter_mut().zip(&self.setup.pairs) {
            if change.pair.as_ref().is_some_and(|name| *name != pair.name) {
                continue;
            }
            found = true;
            settings.frozen = change.frozen.unwrap_or(settings.frozen);
            settings.delay_us = change.delay_us.unwrap_or(settings.delay_us);
            settings.loss_ppm = change.loss_ppm.unwrap_or(settings.loss_ppm);
            settings.reset_port = change.reset_port.unwrap_or(settings.reset_port);
            if let Some(cores) = &change.hung_cores {
                settings.hung_cores.clone_from(cores);
            }
            settings.keep_alive_loss_ppm = change.keep_alive_loss_ppm.unwrap_or(settings.keep_alive_loss_ppm);
            settings.ip_stopped = change.ip_stopped.unwrap_or(settings.ip_stopped);
            settings.drop_udp_port = change.drop_udp_port.unwrap_or(settings.drop_udp_port);
            settings.forgery = change.forgery.unwrap_or(settings.forgery);
        }
        if found { Ok(()) } else { Err(format!("no pair {:?} ends here", change.pair)) }
    }

    /// Decides about a frame that came in by `side` of pair number `pair` at `now` (ns).
    pub fn receive(&mut self, pair: usize, side: Side, frame: &[u8], now: u64) -> Verdict {
        let (Some(settings), Some(report)) = (self.settings.get(pair).cloned(), self.pairs.get_mut(pair))
        else {
            return Verdict::Drop;
        };
        if settings.frozen {
            report.frozen += 1;
            return Verdict::Drop;
        }
        let is_plain = frame::be16(frame, 12) == Some(frame::KEEP_ALIVE);
        let is_probe = probe::find(frame).is_some();
        if is_plain {
            report.keep_alives += 1;
            if let Some(forged) = forge(settings.forgery, frame, self.kept.entry((pair, side)).or_default()) {
                return forged;
            }
        } else if let Some(core) = self.steering_core(frame, pair) {
            let report = &mut self.pairs[pair];
            match side {
                _ if is_probe => report.probes += 1,
                Side::Lan => report.lan_frames += 1,
                Side::Wan => report.wan_frames += 1,
            }
            if settings.hung_cores.contains(&core) {
                report.hung += 1;
                return Verdict::Drop;
            }
            if let Some(packet) = frame::parse(frame, 16) {
                if settings.ip_stopped {
                    report.hung += 1;
                    return Verdict::Drop;
                }
                let denied = settings.drop_udp_port;
                if denied != 0 && packet.proto == UDP && packet.ports.is_some_and(|(_, d)| d == denied) {
                    report.denied += 1;
                    return Verdict::Drop;
                }
                // A probe is no session: it comes by every pair and core alike.
                if !is_probe {
                    self.meet(packet.key(), (pair, core), side);
                }
                let wanted = settings.reset_port;
                if wanted != 0
                    && packet.ports.is_some_and(|(s, d)| s == wanted || d == wanted)
                    && let Some(reset) = frame::forge_reset(frame, 16)
                {
                    self.pairs[pair].resets += 1;
                    return Verdict::Answer(reset);
                }
            }
        }
        let loss_ppm = if is_plain || is_probe { settings.keep_alive_loss_ppm } else { 0 };
        if loss_ppm > 0 && self.rng.below(1_000_000) < loss_ppm {
            self.pairs[pair].lost += 1;
            return Verdict::Drop;
        }
        if settings.loss_ppm > 0 && self.rng.below(1_000_000) < settings.loss_ppm {
            self.pairs[pair].lost += 1;
            return Verdict::Drop;
        }
        if settings.delay_us > 0 {
            Verdict::ForwardAt(now + settings.delay_us * 1000)
        } else {
            Verdict::Forward
        }
    }

    fn steering_core(&mut self, frame: &[u8], pair: usize) -> Option<u8> {
        let name = &self.setup.pairs[pair].name;
        let (tpid, value) = (frame::be16(frame, 12), frame::be16(frame, 14));
        match (self.setup.steering, tpid, value) {
            (Steering::Native, Some(frame::STEERING_NATIVE), Some(value)) => {
                let core = (value >> 8) as u8;
                if u32::from(core) >= self.setup.cores {
                    let line = format!("pair {name}: core {core}, but there are only {}", self.setup.cores);
                    self.complain(line);
                }
                Some(core)
            }
            (Steering::Dot1q, Some(frame::DOT1Q), Some(_)) => Some(0),
            _ => {
                let line = format!("pair {name}: frame of {} bytes without steering header", frame.len());
                self.pairs[pair].unsteered += 1;
                self.complain(line);
                None
            }
        }
    }

    fn meet(&mut self, key: SessionKey, cell: Cell, side: Side) {
        let session = self.sessions.entry(key).or_default();
        let before = session.last.replace(cell);
        let (lan, wan) = session.counts.entry(cell).or_default();
        match side {
            Side::Lan => *lan += 1,
            Side::Wan => *wan += 1,
        }
        if let Some(before) = before
            && before != cell
        {
            let place = |(pair, core): Cell| format!("pair {} core {core}", self.setup.pairs[pair].name);
            let line = format!("session {key} was at {}, now at {}", place(before), place(cell));
            self.complain(line);
        }
    }

    fn complain(&mut self, line: String) {
        self.complaints += 1;
        if self.listed.len() < LISTED {
            self.listed.push(line);
        }
    }

    /// Every session and place.
    pub fn sessions(&self) -> Vec<Session> {
        let one = |key: &SessionKey, (pair, core): &Cell, (lan_frames, wan_frames): &(u64, u64)| Session {
            key: *key,
            pair: self.setup.pairs[*pair].name.clone(),
            core: *core,
            lan_frames: *lan_frames,
            wan_frames: *wan_frames,
        };
        let places = |(key, state): (&SessionKey, &SessionState)| {
            state.counts.iter().map(|(cell, counts)| one(key, cell, counts)).collect::<Vec<_>>()
        };
        self.sessions.iter().flat_map(places).collect()
    }

    /// Counters and complaints.
    pub fn report(&self) -> Report {
        Report {
            pairs: self.pairs.clone(),
            complaints: self.complaints,
            listed: self.listed.clone(),
            overruns: 0,
        }
    }

    /// Empties session tables and complaints.
    pub fn forget(&mut self) {
        self.sessions.clear();
        self.complaints = 0;
        self.listed.clear();
    }
}

/// What comes of a keep-alive that is not passed on as it is; `kept` is the last one that was.
fn forge(forgery: Forgery, frame: &[u8], kept: &mut Vec<u8>) -> Option<Verdict> {
    /// The last byte of each (docs/probes.md).
    const INSTANCE: usize = 29;
    const SEQUENCE: usize = 37;
    let changed = |at: usize| {
        let mut forged = frame.to_vec();
        if let Some(byte) = forged.get_mut(at) {
            *byte ^= 1;
        }
        Some(Verdict::Instead(forged))
    };
    match forgery {
        Forgery::None => {
            kept.clear();
            kept.extend_from_slice(frame);
            None
        }
        Forgery::Tag => changed(SEQUENCE),
        Forgery::Instance => changed(INSTANCE),
        Forgery::Loop => Some(Verdict::Answer(frame.to_vec())),
        Forgery::Replay => Some(Verdict::Instead(kept.clone())),
    }
}

struct Ports {
    /// Two per pair: LAN, WAN.
    sockets: Vec<PacketSocket>,
}

impl Ports {
    fn index(pair: usize, side: Side) -> usize {
        pair * 2 + usize::from(side == Side::Wan)
    }
}

/// Runs the appliance as an agent until its input ends.
///
/// # Errors
/// When a port can't be opened or fails.
pub fn run() -> Result<()> {
    let setup: Setup = agent::read_setup("appliance")?;
    let open = || {
        let names = setup.pairs.iter().flat_map(|pair| [&pair.lan, &pair.wan]);
        names.map(|name| PacketSocket::open(name)).collect::<Result<Vec<_>>>()
    };
    let ports = match open() {
        Ok(sockets) => Arc::new(Ports { sockets }),
        Err(error) => {
            agent::respond(Err::<(), _>(&error));
            return Err(error);
        }
    };
    let appliance = Arc::new(Mutex::new(Appliance::new(setup)));
    let carrier = { (Arc::clone(&ports), Arc::clone(&appliance)) };
    std::thread::spawn(move || {
        if let Err(error) = carry(&carrier.0, &carrier.1) {
            eprintln!("appliance: {error}");
            std::process::exit(1);
        }
    });
    agent::respond(Ok::<_, String>(()));
    agent::serve(|request: Request| {
        let mut appliance = lock(&appliance);
        match request {
            Request::Set(change) => appliance.change(&change).map(|()| serde_json::json!(now_ns())),
            Request::Report => {
                let mut report = appliance.report();
                for socket in &ports.sockets {
                    report.overruns += socket.take_drops().map_err(|error| error.to_string())?;
                }
                serde_json::to_value(report).map_err(|error| error.to_string())
            }
            Request::Sessions => {
                serde_json::to_value(appliance.sessions()).map_err(|error| error.to_string())
            }
            Request::Forget => {
                appliance.forget();
                Ok(serde_json::Value::Null)
            }
        }
    });
    Ok(())
}

fn lock(appliance: &Mutex<Appliance>) -> MutexGuard<'_, Appliance> {
    appliance.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carry(ports: &Ports, appliance: &Mutex<Appliance>) -> Result<()> {
    let mut batch = Batch::default();
    // Frames on their way, by the instant at which they are due and order of arrival.
    let mut delayed: BTreeMap<(u64, u64), (usize, Vec<u8>)> = BTreeMap::new();
    let mut arrivals = 0u64;
    loop {
        let now = now_ns();
        while let Some(entry) = delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (port, frame) = entry.remove();
            ports.sockets[port].send(&[&frame])?;
        }
        let wait = delayed.first_key_value().map_or(200_000_000, |((due, _), _)| due - now);
        let mut polled: Vec<PollFd> =
            ports.sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = PollTimeout::from(wait.div_ceil(1_000_000).min(200) as u16);
        match poll(&mut polled, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).doing(|| "waiting for frames".into()),
        }
        let ready: Vec<usize> = polled
            .iter()
            .enumerate()
            .filter(|(_, fd)| fd.revents().is_some_and(|events| !events.is_empty()))
            .map(|(port, _)| port)
            .collect();
        for port in ready {
            let (pair, side) = (port / 2, if port % 2 == 0 { Side::Lan } else { Side::Wan });
            ports.sockets[port].receive(&mut batch)?;
            let across = Ports::index(pair, side.other());
            let mut forged: Vec<Vec<u8>> = Vec::new();
            let mut onward: Vec<&[u8]> = Vec::with_capacity(batch.len());
            let mut answers = Vec::new();
            {
                let mut appliance = lock(appliance);
                let now = now_ns();
                for frame in batch.iter() {
                    match appliance.receive(pair, side, frame, now) {
                        Verdict::Forward => onward.push(frame),
                        Verdict::ForwardAt(due) => {
                            arrivals += 1;
                            delayed.insert((due, arrivals), (across, frame.to_vec()));
                        }
                        Verdict::Drop => {}
                        Verdict::Answer(answer) => answers.push(answer),
                        Verdict::Instead(other) => forged.push(other),
                    }
                }
            }
            ports.sockets[across].send(&onward)?;
            let forged: Vec<&[u8]> = forged.iter().map(Vec::as_slice).collect();
            ports.sockets[across].send(&forged)?;
            let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
            ports.sockets[port].send(&answers)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use dataplane::keepalive::{Direction, KeepAliveKey};
    use dataplane::probe::{Envelope, Probe, ProbeKind};
    use dataplane::{Core, LinkIndex, Nanos, PairId, SteeringMode};

    use super::*;
    use crate::frame::samples::{tcp4, tcp4_back};

    fn appliance(steering: Steering) -> Appliance {
        let pair = |name: &str| PairPorts { name: name.into(), lan: String::new(), wan: String::new() };
        Appliance::new(Setup { steering, cores: 4, pairs: vec![pair("a"), pair("b")] })
    }

    fn steered(frame: &[u8], core: u8, link: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let value = u16::from_be_bytes([core, link]);
        frame::push_tags(frame, &[(frame::STEERING_NATIVE, value)], &mut out);
        out
    }

    #[test]
    fn a_session_on_one_core_is_no_complaint() {
        let mut appliance = appliance(Steering::Native);
        let tags = [(0x8100, 100)];
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&tags, b""), 2, 0), 0), Verdict::Forward);
        assert_eq!(appliance.receive(0, Side::Wan, &steered(&tcp4_back(&[]), 2, 1), 0), Verdict::Forward);
        assert_eq!(appliance.report().complaints, 0);
        let sessions = appliance.sessions();
        assert_eq!(sessions.len(), 1);
        assert_eq!((sessions[0].lan_frames, sessions[0].wan_frames), (1, 1));
    }

    #[test]
    fn directions_on_two_cores_or_pairs_are_complained_about() {
        let mut appliance = appliance(Steering::Native);
        appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 2, 0), 0);
        appliance.receive(0, Side::Wan, &steered(&tcp4_back(&[]), 3, 0), 0);
        assert_eq!(appliance.report().complaints, 1);
        appliance.receive(1, Side::Wan, &steered(&tcp4_back(&[]), 3, 0), 0);
        let report = appliance.report();
        assert_eq!(report.complaints, 2);
        assert!(report.listed[1].ends_with("was at pair a core 3, now at pair b core 3"), "{report:?}");
        appliance.forget();
        assert_eq!(appliance.report().complaints, 0);
    }

    #[test]
    fn frames_without_header_or_with_a_core_too_high_are_complained_about() {
        let mut appliance = appliance(Steering::Native);
        appliance.receive(0, Side::Lan, &tcp4(&[], b""), 0);
        appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 4, 0), 0);
        let report = appliance.report();
        assert_eq!(report.pairs[0].unsteered, 1);
        assert_eq!(report.complaints, 2);
    }

    #[test]
    fn keep_alives_pass_without_a_header() {
        let mut appliance = appliance(Steering::Native);
        let mut probe = tcp4(&[], b"");
        probe[12..14].copy_from_slice(&frame::KEEP_ALIVE.to_be_bytes());
        assert_eq!(appliance.receive(0, Side::Lan, &probe, 0), Verdict::Forward);
        assert_eq!(appliance.report().pairs[0].keep_alives, 1);
        assert_eq!(appliance.report().complaints, 0);
    }

    fn probe(kind: ProbeKind, envelope: Envelope) -> Vec<u8> {
        let core = if let ProbeKind::Core(core) = kind { core } else { Core(0) };
        let sent = Probe {
            pair: PairId(1),
            direction: Direction::LanToWan,
            instance: 2,
            sequence: 3,
            transmit: Nanos(4),
            kind,
        };
        let header = SteeringMode::default().encode(core, LinkIndex(255));
        sent.encode(&KeepAliveKey([1; 16]), header, envelope)
    }

    fn datagram() -> Envelope {
        let address = |text: &str| text.parse().expect("an address");
        Envelope::udp(address("192.0.2.1:49152"), address("198.51.100.1:9999")).expect("one IP version")
    }

    #[test]
    fn a_core_that_hangs_swallows_its_frames_alone() {
        let mut appliance = appliance(Steering::Native);
        let hangs = Change { hung_cores: Some(vec![2]), ..Change::default() };
        appliance.change(&hangs).expect("all pairs");
        let of_core = |core| probe(ProbeKind::Core(Core(core)), Envelope::Ethernet);
        assert_eq!(appliance.receive(0, Side::Lan, &of_core(2), 0), Verdict::Drop);
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 2, 0), 0), Verdict::Drop);
        assert_eq!(appliance.receive(0, Side::Lan, &of_core(1), 0), Verdict::Forward);
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 1, 0), 0), Verdict::Forward);
        let mut plain = tcp4(&[], b"");
        plain[12..14].copy_from_slice(&frame::KEEP_ALIVE.to_be_bytes());
        assert_eq!(appliance.receive(0, Side::Lan, &plain, 0), Verdict::Forward);
        let report = appliance.report();
        assert_eq!((report.pairs[0].hung, report.pairs[0].probes, report.complaints), (2, 2, 0));
        appliance.change(&Change { hung_cores: Some(vec![]), ..Change::default() }).expect("all pairs");
        assert_eq!(appliance.receive(0, Side::Lan, &of_core(2), 0), Verdict::Forward);
    }

    #[test]
    fn keep_alives_alone_can_be_lost() {
        let mut appliance = appliance(Steering::Native);
        let loses = Change { keep_alive_loss_ppm: Some(1_000_000), ..Change::default() };
        appliance.change(&loses).expect("all pairs");
        let mut plain = tcp4(&[], b"");
        plain[12..14].copy_from_slice(&frame::KEEP_ALIVE.to_be_bytes());
        assert_eq!(appliance.receive(0, Side::Lan, &plain, 0), Verdict::Drop);
        for envelope in [Envelope::Ethernet, datagram()] {
            let sent = probe(ProbeKind::Core(Core(1)), envelope);
            assert_eq!(appliance.receive(0, Side::Lan, &sent, 0), Verdict::Drop);
        }
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 1, 0), 0), Verdict::Forward);
        assert_eq!(appliance.report().pairs[0].lost, 3);
    }

    #[test]
    fn without_ip_processing_all_else_is_carried() {
        let mut appliance = appliance(Steering::Native);
        appliance.change(&Change { ip_stopped: Some(true), ..Change::default() }).expect("all pairs");
        let mut plain = tcp4(&[], b"");
        plain[12..14].copy_from_slice(&frame::KEEP_ALIVE.to_be_bytes());
        assert_eq!(appliance.receive(0, Side::Lan, &plain, 0), Verdict::Forward);
        let of_core = probe(ProbeKind::Core(Core(1)), Envelope::Ethernet);
        assert_eq!(appliance.receive(0, Side::Lan, &of_core, 0), Verdict::Forward);
        assert_eq!(appliance.receive(0, Side::Lan, &probe(ProbeKind::Ip, datagram()), 0), Verdict::Drop);
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 1, 0), 0), Verdict::Drop);
    }

    #[test]
    fn the_policy_drops_datagrams_to_its_port() {
        let mut appliance = appliance(Steering::Native);
        let denied = probe(ProbeKind::Negative, datagram());
        assert_eq!(appliance.receive(0, Side::Lan, &denied, 0), Verdict::Forward);
        appliance.change(&Change { drop_udp_port: Some(9999), ..Change::default() }).expect("all pairs");
        assert_eq!(appliance.receive(0, Side::Lan, &denied, 0), Verdict::Drop);
        assert_eq!(appliance.receive(0, Side::Lan, &steered(&tcp4(&[], b""), 1, 0), 0), Verdict::Forward);
        assert_eq!((appliance.report().pairs[0].denied, appliance.sessions().len()), (1, 1));
    }

    #[test]
    fn dot1q_conveys_no_core() {
        let mut appliance = appliance(Steering::Dot1q);
        appliance.receive(0, Side::Lan, &tcp4(&[(0x8100, 3001)], b""), 0);
        appliance.receive(0, Side::Wan, &tcp4_back(&[(0x8100, 3002)]), 0);
        assert_eq!(appliance.report().complaints, 0);
        assert_eq!(appliance.sessions().len(), 1);
    }

    #[test]
    fn hang_delay_loss_and_reset_do_what_they_say() {
        let mut appliance = appliance(Steering::Native);
        let frame = steered(&tcp4(&[], b"x"), 0, 0);
        let set =
            |appliance: &mut Appliance, change: Change| appliance.change(&change).expect("pair is here");
        set(&mut appliance, Change { pair: Some("a".into()), frozen: Some(true), ..Change::default() });
        assert_eq!(appliance.receive(0, Side::Lan, &frame, 0), Verdict::Drop);
        assert_eq!(appliance.receive(1, Side::Lan, &frame, 0), Verdict::Forward);
        set(&mut appliance, Change { frozen: Some(false), delay_us: Some(5), ..Change::default() });
        assert_eq!(appliance.receive(0, Side::Lan, &frame, 100), Verdict::ForwardAt(5100));
        set(&mut appliance, Change { delay_us: Some(0), loss_ppm: Some(1_000_000), ..Change::default() });
        assert_eq!(appliance.receive(0, Side::Lan, &frame, 0), Verdict::Drop);
        set(&mut appliance, Change { loss_ppm: Some(0), reset_port: Some(80), ..Change::default() });
        let Verdict::Answer(reset) = appliance.receive(0, Side::Lan, &frame, 0) else {
            panic!("no reset");
        };
        assert_eq!(reset[12..16], frame[12..16], "the steering header goes back unchanged");
        assert!(appliance.change(&Change { pair: Some("z".into()), ..Change::default() }).is_err());
    }
}
