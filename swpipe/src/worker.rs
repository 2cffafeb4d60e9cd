//! Workers: each owns the receivers of some ports and a sender of its own for every port, so that no lock
//! stands between two of them. Per frame: no allocation, no lock, no system call.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::Cache;
use dataplane::frame::{Limits, Unlimited};
use dataplane::schema::counters::PORTS;
use dataplane::{PortId, Reason};
use nix::poll::{PollFd, PollFlags, poll};

use crate::counters::Block;
use crate::device::Device;
use crate::io::{Edit, Frame, Receiver, Sender};
use crate::pipeline::decide_as;
use crate::tables::Snapshot;

/// Longest wait for frames, ms: how soon a worker notices that it shall stop.
const WAIT: u8 = 100;
/// Wait for frames, ms, while a sender has frames that the kernel did not take.
const WAIT_PENDING: u8 = 1;
/// How often losses below the pipeline are looked for.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Rounds between two looks at the clock while frames arrive.
const ROUNDS_PER_LOOK: u32 = 4096;

const NO_SENDER: u16 = u16::MAX;

/// Senders with the ports they belong to.
pub type PortSenders = Vec<(PortId, Box<dyn Sender>)>;

/// A worker's senders, by port.
pub struct Outlets {
    /// Position in `senders` by port; [`NO_SENDER`] where the port has no interface.
    positions: Box<[u16; PORTS]>,
    senders: Vec<Outlet>,
    /// Positions of senders with frames to flush.
    dirty: Vec<u16>,
}

struct Outlet {
    port: PortId,
    sender: Box<dyn Sender>,
    dirty: bool,
}

impl Outlets {
    /// Of these senders; a port outside of 0..=511 gets none.
    #[must_use]
    pub fn new(senders: PortSenders) -> Self {
        let mut positions = Box::new([NO_SENDER; PORTS]);
        for (position, (port, _)) in (0..NO_SENDER).zip(&senders) {
            if let Some(cell) = positions.get_mut(port.index()) {
                *cell = position;
            }
        }
        let dirty = Vec::with_capacity(senders.len());
        let senders =
            senders.into_iter().map(|(port, sender)| Outlet { port, sender, dirty: false }).collect();
        Outlets { positions, senders, dirty }
    }

    /// Queues a frame; `false` where the port has no interface or no room.
    #[inline(always)]
    pub fn send(&mut self, port: PortId, frame: &[u8], edit: Edit) -> bool {
        let position = self.positions.get(port.index()).copied().unwrap_or(NO_SENDER);
        let Some(outlet) = self.senders.get_mut(usize::from(position)) else { return false };
        if !outlet.dirty {
            outlet.dirty = true;
            self.dirty.push(position);
        }
        outlet.sender.send(frame, edit)
    }

    /// Sends what is queued; senders whose kernel queue is full stay for the next flush.
    pub fn flush(&mut self) {
        let senders = &mut self.senders;
        self.dirty.retain(|position| {
            let Some(outlet) = senders.get_mut(usize::from(*position)) else { return false };
            outlet.sender.flush();
            outlet.dirty = outlet.sender.pending();
            outlet.dirty
        });
    }

    /// Sends by another sender from now on.
    fn replace(&mut self, port: PortId, sender: Box<dyn Sender>) {
        if let Some(outlet) = self.senders.iter_mut().find(|outlet| outlet.port == port) {
            outlet.sender = sender;
        }
    }

    fn pending(&self) -> bool {
        !self.dirty.is_empty()
    }
}

fn descriptors(inlets: &[Inlet]) -> io::Result<Vec<OwnedFd>> {
    inlets
        .iter()
        .filter_map(|inlet| inlet.receiver.descriptor())
        .map(|descriptor| descriptor.try_clone_to_owned())
        .collect()
}

/// Runs one batch of a port through the pipeline: decides, sends and counts every frame.
#[inline]
pub fn forward(tables: &Snapshot, counters: &Block, port: PortId, frames: &[Frame<'_>], out: &mut Outlets) {
    if tables.limits.is_none() {
        forward_within(tables, Unlimited, counters, port, frames, out);
    } else {
        forward_limited(tables, counters, port, frames, out);
    }
}

/// Apart, so that the way without limits is compiled as if there were no other.
#[inline(never)]
fn forward_limited(
    tables: &Snapshot,
    counters: &Block,
    port: PortId,
    frames: &[Frame<'_>],
    out: &mut Outlets,
) {
    forward_within(tables, tables.limits, counters, port, frames, out);
}

#[inline(always)]
fn forward_within(
    tables: &Snapshot,
    limits: impl Limits,
    counters: &Block,
    port: PortId,
    frames: &[Frame<'_>],
    out: &mut Outlets,
) {
    let role = tables.ports.role(port);
    for frame in frames {
        let mut decision = decide_as(tables, role, limits, frame.bytes);
        if let Some(copy) = &decision.copy {
            let sent = copy.exit.as_ref().is_some_and(|exit| out.send(exit.port, frame.bytes, exit.edit));
            counters.count_copy(&decision, sent);
        }
        if let Some(exit) = &decision.exit
            && !out.send(exit.port, frame.bytes, exit.edit)
        {
            decision.reason = Reason::PortFull;
        }
        counters.count(port, &decision);
    }
}

/// A receiver and the port it belongs to.
pub struct Inlet {
    /// The port.
    pub port: PortId,
    /// Its interface, for messages.
    pub interface: String,
    /// Its receiving half.
    pub receiver: Box<dyn Receiver>,
}

/// New halves of a port whose interface was created anew.
pub struct Replacement {
    /// The port.
    pub port: PortId,
    /// For the worker that owns the port's receiver.
    pub receiver: Option<Box<dyn Receiver>>,
    /// For every worker.
    pub sender: Box<dyn Sender>,
}

/// Replacements that a worker has not taken yet.
#[derive(Default)]
pub struct Mailbox {
    /// All that is looked at while there are none.
    full: AtomicBool,
    replacements: Mutex<Vec<Replacement>>,
}

impl Mailbox {
    /// Puts a replacement in; the worker takes it within its next round.
    pub fn put(&self, replacement: Replacement) {
        let mut replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        replacements.push(replacement);
        self.full.store(true, Relaxed);
    }

    fn take(&self) -> Vec<Replacement> {
        let mut replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        self.full.store(false, Relaxed);
        std::mem::take(&mut *replacements)
    }
}

/// One worker.
pub struct Worker {
    device: Arc<Device>,
    counters: Arc<Block>,
    inlets: Vec<Inlet>,
    /// What polls readable when the inlets have frames.
    descriptors: Vec<OwnedFd>,
    out: Outlets,
    mailbox: Arc<Mailbox>,
}

impl Worker {
    /// A worker that is not running yet.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new(device: Arc<Device>, inlets: Vec<Inlet>, out: Outlets) -> io::Result<Self> {
        let counters = device.counters().block();
        let descriptors = descriptors(&inlets)?;
        Ok(Worker { device, counters, inlets, descriptors, out, mailbox: Arc::default() })
    }

    /// Where it takes replacements from while it runs.
    #[must_use]
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Forwards frames until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        let device = Arc::clone(&self.device);
        let mut tables = Cache::new(device.snapshot());
        let mut rounds = 0_u32;
        let mut next_report = Instant::now() + REPORT_EVERY;
        while !stop.load(Relaxed) {
            let descriptors = std::mem::take(&mut self.descriptors);
            let mut polled: Vec<PollFd<'_>> = descriptors
                .iter()
                .map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN))
                .collect();
            while !stop.load(Relaxed) && !self.mailbox.full.load(Relaxed) {
                let mut received = 0;
                for inlet in &mut self.inlets {
                    // One snapshot for the whole batch: no frame sees half a change.
                    let tables: &Snapshot = tables.load();
                    let (counters, out, port) = (&*self.counters, &mut self.out, inlet.port);
                    received += inlet.receiver.receive(&mut |frames| {
                        forward(tables, counters, port, frames, out);
                    });
                }
                self.out.flush();
                rounds = rounds.wrapping_add(1);
                if received == 0 {
                    // EINTR and the like are another round.
                    let _ = poll(&mut polled, if self.out.pending() { WAIT_PENDING } else { WAIT });
                }
                if (received == 0 || rounds.is_multiple_of(ROUNDS_PER_LOOK)) && Instant::now() >= next_report
                {
                    self.report();
                    next_report = Instant::now() + REPORT_EVERY;
                }
            }
            self.replace();
        }
    }

    /// Takes what the mailbox has into use; what the old halves lost is counted first.
    fn replace(&mut self) {
        self.report();
        for Replacement { port, receiver, sender } in self.mailbox.take() {
            self.out.replace(port, sender);
            if let Some(receiver) = receiver
                && let Some(inlet) = self.inlets.iter_mut().find(|inlet| inlet.port == port)
            {
                inlet.receiver = receiver;
            }
        }
        match descriptors(&self.inlets) {
            Ok(descriptors) => self.descriptors = descriptors,
            Err(error) => {
                tracing::warn!(%error, "a worker cannot wait for frames and looks for them at times")
            }
        }
    }

    /// Counts and says what was lost below the pipeline.
    fn report(&mut self) {
        for inlet in &mut self.inlets {
            let (missed, truncated) = (inlet.receiver.missed(), inlet.receiver.truncated());
            let unfinished = inlet.receiver.unfinished_checksums();
            self.counters.count_missed(inlet.port, missed + truncated);
            if missed + truncated + unfinished > 0 {
                tracing::warn!(
                    port = inlet.port.0, interface = %inlet.interface, missed, truncated,
                    unfinished_checksums = unfinished,
                    "frames lost before the pipeline (missed, truncated) or received with unfinished checksums"
                );
            }
        }
        for outlet in &mut self.out.senders {
            let lost = outlet.sender.lost();
            self.counters.count_lost(outlet.port, lost);
            if lost > 0 {
                tracing::warn!(
                    port = outlet.port.0,
                    lost,
                    "frames sent by the pipeline that the interface lost"
                );
            }
        }
    }
}
