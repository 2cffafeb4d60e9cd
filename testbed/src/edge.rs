//! The operator's edge in a host namespace: pushes and pops the tags of tagged hosts in user space, and watches
//! every uplink for frames that came in by another link.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::appliance::Side;
use crate::error::{Doing, Error, Result};
use crate::frame;
use crate::garbage;
use crate::plan::{self, MARK};
use crate::raw::{Batch, PacketSocket};

/// What the edge is told at its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// Which side this namespace is on.
    pub side: Side,
    /// One per link, in link order.
    pub uplinks: Vec<Uplink>,
}

/// An uplink and the inner interfaces of its tagged hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Uplink {
    /// The interface towards the balancer.
    pub device: String,
    /// Tags and the tagger's end of the inner interface.
    pub inner: Vec<Inner>,
}

/// Tagged hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inner {
    /// Outermost first.
    pub tags: Vec<(u16, u16)>,
    /// Interface.
    pub device: String,
}

/// Requests to a running edge.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Asks for [`Report`].
    Report,
    /// Sends garbage; answered when all is sent, by [`Injected`].
    Inject(Injection),
}

/// What garbage to send.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Injection {
    /// Number of the uplink.
    pub uplink: usize,
    /// Captures whose every frame is sent.
    pub captures: Vec<PathBuf>,
    /// Mutated frames after that.
    pub mutated: u64,
    /// Seed of the mutations.
    pub seed: u64,
    /// Frames per second.
    pub rate: u64,
}

/// What was sent.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Injected {
    /// Frames from captures.
    pub captured: u64,
    /// Mutated frames.
    pub mutated: u64,
    /// Sum of the frames' digests.
    pub digest: u64,
}

/// What came out of the balancer at one uplink.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct UplinkReport {
    /// Frames of hosts of this link.
    pub own: u64,
    /// Frames that were sent into another link, or come back to the side they were sent from.
    pub foreign: u64,
    /// The first few foreign ones in hex.
    pub listed: Vec<String>,
    /// Frames that none of our hosts sent.
    pub unknown: u64,
    /// Marked garbage.
    pub marked: u64,
    /// Sum of the digests of marked frames.
    pub marked_digest: u64,
    /// Frames that still wore a steering header or were keep-alives.
    pub leaked: u64,
}

/// Everything the edge saw.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Report {
    /// In link order.
    pub uplinks: Vec<UplinkReport>,
    /// Frames that the kernel dropped before we saw them.
    pub overruns: u64,
}

impl UplinkReport {
    /// Judges a frame that left the balancer at link number `link` on `side`.
    pub fn observe(&mut self, side: Side, link: usize, frame: &[u8]) {
        if matches!(frame::be16(frame, 12), Some(frame::KEEP_ALIVE | frame::STEERING_NATIVE))
            && !is_marked(frame)
        {
            self.leaked += 1;
        }
        match plan::origin(frame) {
            None => self.unknown += 1,
            Some(origin) if origin.link == link && origin.side == side.other() => {
                if is_marked(frame) {
                    self.marked += 1;
                    self.marked_digest = self.marked_digest.wrapping_add(garbage::digest(frame));
                } else {
                    self.own += 1;
                }
            }
            Some(_) => {
                self.foreign += 1;
                if self.listed.len() < 10 {
                    let head: String = frame.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
                    self.listed.push(head);
                }
            }
        }
    }
}

fn is_marked(frame: &[u8]) -> bool {
    frame.get(10) == Some(&MARK)
}

struct Ports {
    uplinks: Vec<PacketSocket>,
    tagged: Vec<Tagged>,
}

/// The tagger's end of tagged hosts.
struct Tagged {
    uplink: usize,
    tags: Vec<(u16, u16)>,
    socket: PacketSocket,
}

impl Ports {
    fn sockets(&self) -> impl Iterator<Item = &PacketSocket> {
        self.uplinks.iter().chain(self.tagged.iter().map(|tagged| &tagged.socket))
    }
}

/// Runs the edge as an agent until its input ends.
///
/// # Errors
/// When an interface can't be opened or fails.
pub fn run() -> Result<()> {
    let setup: Setup = agent::read_setup("edge")?;
    let ports = match open(&setup) {
        Ok(ports) => Arc::new(ports),
        Err(error) => {
            agent::respond(Err::<(), _>(&error));
            return Err(error);
        }
    };
    let reports = Arc::new(Mutex::new(vec![UplinkReport::default(); setup.uplinks.len()]));
    let carrier = (Arc::clone(&ports), Arc::clone(&reports));
    let side = setup.side;
    std::thread::spawn(move || {
        if let Err(error) = carry(side, &carrier.0, &carrier.1) {
            eprintln!("edge: {error}");
            std::process::exit(1);
        }
    });
    agent::respond(Ok::<_, String>(()));
    agent::serve(|request: Request| match request {
        Request::Report => {
            let mut report = Report { uplinks: lock(&reports).clone(), overruns: 0 };
            for socket in ports.sockets() {
                report.overruns += socket.take_drops().map_err(|error| error.to_string())?;
            }
            serde_json::to_value(report).map_err(|error| error.to_string())
        }
        Request::Inject(injection) => inject(&setup, &injection)
            .map_err(|error| error.to_string())
            .and_then(|done| serde_json::to_value(done).map_err(|error| error.to_string())),
    });
    Ok(())
}

fn open(setup: &Setup) -> Result<Ports> {
    let mut ports = Ports { uplinks: Vec::new(), tagged: Vec::new() };
    for (number, uplink) in setup.uplinks.iter().enumerate() {
        ports.uplinks.push(PacketSocket::open(&uplink.device)?);
        for inner in &uplink.inner {
            let socket = PacketSocket::open(&inner.device)?;
            ports.tagged.push(Tagged { uplink: number, tags: inner.tags.clone(), socket });
        }
    }
    Ok(ports)
}

fn lock(reports: &Mutex<Vec<UplinkReport>>) -> MutexGuard<'_, Vec<UplinkReport>> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carry(side: Side, ports: &Ports, reports: &Mutex<Vec<UplinkReport>>) -> Result<()> {
    let mut batch = Batch::default();
    let mut waiting: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
    loop {
        let sockets = ports.sockets();
        let mut polled: Vec<PollFd> = sockets.map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN)).collect();
        match poll(&mut polled, PollTimeout::from(200u16)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).doing(|| "waiting for frames".into()),
        }
        let ready = |at: usize| polled[at].revents().is_some_and(|events| !events.is_empty());
        for (link, socket) in ports.uplinks.iter().enumerate().filter(|(link, _)| ready(*link)) {
            socket.receive(&mut batch)?;
            let mut reports = lock(reports);
            for frame in batch.iter() {
                reports[link].observe(side, link, frame);
                let taker =
                    ports.tagged.iter().position(|t| t.uplink == link && frame::wears(frame, &t.tags));
                if let Some(taker) = taker {
                    let mut plain = Vec::with_capacity(frame.len());
                    frame::pop_tags(frame, ports.tagged[taker].tags.len(), &mut plain);
                    waiting.entry(taker).or_default().push(plain);
                }
            }
        }
        for (taker, frames) in std::mem::take(&mut waiting) {
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            ports.tagged[taker].socket.send(&frames)?;
        }
        for (number, tagged_hosts) in ports.tagged.iter().enumerate() {
            if !ready(ports.uplinks.len() + number) {
                continue;
            }
            tagged_hosts.socket.receive(&mut batch)?;
            let tagged: Vec<Vec<u8>> = batch
                .iter()
                .map(|frame| {
                    let mut out = Vec::with_capacity(frame.len() + 8);
                    frame::push_tags(frame, &tagged_hosts.tags, &mut out);
                    out
                })
                .collect();
            let tagged: Vec<&[u8]> = tagged.iter().map(Vec::as_slice).collect();
            ports.uplinks[tagged_hosts.uplink].send(&tagged)?;
        }
    }
}

fn inject(setup: &Setup, injection: &Injection) -> Result<Injected> {
    let uplink = setup
        .uplinks
        .get(injection.uplink)
        .ok_or_else(|| Error::Unsupported(format!("there is no uplink number {}", injection.uplink)))?;
    let socket = PacketSocket::open_sender(&uplink.device)?;
    let source = plan::mac(setup.side, injection.uplink, MARK);
    let mut frames = Vec::new();
    for capture in &injection.captures {
        frames.extend(garbage::read_capture(capture)?);
    }
    let mut done = Injected::default();
    let mut mutations = garbage::Mutations::new(injection.seed, frames.clone());
    let started = Instant::now();
    let total = frames.len() as u64 + injection.mutated;
    for number in 0..total {
        let from_capture = frames.get(number as usize);
        let frame = from_capture.cloned().unwrap_or_else(|| mutations.next_frame());
        let frame = garbage::mark(frame, source);
        if socket.send(&[&frame])? == 1 {
            done.digest = done.digest.wrapping_add(garbage::digest(&frame));
            if from_capture.is_some() {
                done.captured += 1;
            } else {
                done.mutated += 1;
            }
        }
        // Paced against absolute time, 16 frames at a stroke.
        if number % 16 == 15 {
            let due = Duration::from_nanos((number + 1) * 1_000_000_000 / injection.rate.max(1));
            if let Some(ahead) = due.checked_sub(started.elapsed()) {
                std::thread::sleep(ahead);
            }
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::samples::tcp4;

    fn from(side: Side, link: usize) -> Vec<u8> {
        let mut frame = tcp4(&[], b"");
        frame[6..12].copy_from_slice(&plan::mac(side, link, 0));
        frame
    }

    #[test]
    fn a_frame_of_another_link_is_foreign() {
        let mut report = UplinkReport::default();
        report.observe(Side::Wan, 1, &from(Side::Lan, 1));
        report.observe(Side::Wan, 1, &from(Side::Lan, 0));
        report.observe(Side::Wan, 1, &from(Side::Wan, 1));
        report.observe(Side::Wan, 1, &tcp4(&[], b""));
        assert_eq!((report.own, report.foreign, report.unknown), (1, 2, 1));
        assert_eq!(report.listed.len(), 2);
    }

    #[test]
    fn a_steering_header_that_leaks_is_noticed() {
        let mut leaked = Vec::new();
        frame::push_tags(&from(Side::Lan, 0), &[(frame::STEERING_NATIVE, 0)], &mut leaked);
        let mut report = UplinkReport::default();
        report.observe(Side::Wan, 0, &leaked);
        assert_eq!(report.leaked, 1);
    }
}
