//! Workers: each owns the receivers of some ports and a sender of its own for every port, so that no lock
//! stands between two of them. Per frame: no allocation, no lock, no system call.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use arc_swap::Cache;
use dataplane::PortId;
use dataplane::schema::counters::PORTS;
use nix::poll::{PollFd, PollFlags, poll};
use rustix::event::{EventfdFlags, eventfd};

use crate::batch::Forwarder;
use crate::counters::{Block, Sum};
use crate::device::Device;
use crate::io::{BATCH, Edit, Receiver, Sender};
use crate::tables::Snapshot;

/// Longest wait for frames, ms: how soon a worker notices that it shall stop.
const WAIT: u8 = 100;
/// Wait for frames, ms, while a sender has frames that the kernel did not take.
const WAIT_PENDING: u8 = 1;
/// How often losses below the pipeline are looked for.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Rounds between two looks at the clock while frames arrive.
const ROUNDS_PER_LOOK: u32 = 4096;

/// Rounds of full batches until all is sent that is queued: some hundred microseconds.
const ROUNDS_PER_FLUSH: u32 = 8;
/// Frames of a port that are sent though more are waiting to be received.
const WORTH_A_CALL: usize = 32;

/// Batches that a receiver out of use is read for at most.
const LEFT_BATCHES: u32 = 4096;

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
    /// Positions of senders with frames to count.
    uncounted: Vec<u16>,
}

struct Outlet {
    port: PortId,
    sender: Box<dyn Sender>,
    dirty: bool,
    /// Not counted yet.
    sent: Sum,
    /// Frames since the last flush.
    queued: usize,
}

impl Outlets {
    /// Of these senders; a port outside of 0..=511 gets none.
    #[must_use]
    pub fn new(senders: PortSenders) -> Self {
        let mut outlets = Outlets {
            positions: Box::new([NO_SENDER; PORTS]),
            senders: Vec::new(),
            dirty: Vec::new(),
            uncounted: Vec::new(),
        };
        outlets.exchange(senders, &[]);
        outlets
    }

    /// Queues a frame, which counts as so many bytes; `false` where the port has no interface or no room.
    #[inline(always)]
    pub fn send(&mut self, port: PortId, frame: &[u8], edit: Edit, counted: usize) -> bool {
        let position = self.positions.get(port.index()).copied().unwrap_or(NO_SENDER);
        let Some(outlet) = self.senders.get_mut(usize::from(position)) else { return false };
        if !outlet.sender.send(frame, edit) {
            return false;
        }
        if outlet.sent.frames == 0 {
            self.uncounted.push(position);
            if !outlet.dirty {
                outlet.dirty = true;
                self.dirty.push(position);
            }
        }
        outlet.sent.add(counted);
        outlet.queued += 1;
        true
    }

    /// Counts what was queued since the last call.
    #[inline(always)]
    pub(crate) fn count(&mut self, counters: &Block) {
        for position in self.uncounted.drain(..) {
            if let Some(outlet) = self.senders.get_mut(usize::from(position)) {
                counters.count_out(outlet.port, std::mem::take(&mut outlet.sent));
            }
        }
    }

    /// Sends what is queued; senders whose kernel queue is full stay for the next flush.
    pub fn flush(&mut self) {
        self.flush_from(0);
    }

    /// Sends what is queued where that is so many frames at least: while more frames wait to be received, a system call
    /// for a few of them is put off.
    fn flush_from(&mut self, least: usize) {
        let senders = &mut self.senders;
        self.dirty.retain(|position| {
            let Some(outlet) = senders.get_mut(usize::from(*position)) else { return false };
            if outlet.queued < least {
                return true;
            }
            outlet.queued = 0;
            outlet.sender.flush();
            outlet.dirty = outlet.sender.pending();
            outlet.dirty
        });
    }

    /// Begins with senders, each in the place of the port's old one, and ends those of the ports `ended`; what
    /// is out of use.
    fn exchange(&mut self, begin: PortSenders, ended: &[PortId]) -> PortSenders {
        self.flush();
        let is_old = |port| ended.contains(&port) || begin.iter().any(|(new, _)| *new == port);
        let (old, kept): (Vec<Outlet>, Vec<Outlet>) =
            self.senders.drain(..).partition(|outlet| is_old(outlet.port));
        self.senders = kept;
        self.senders.extend(begin.into_iter().map(|(port, sender)| Outlet {
            port,
            sender,
            dirty: false,
            sent: Sum::default(),
            queued: 0,
        }));
        self.positions.fill(NO_SENDER);
        self.dirty.clear();
        // Room for all, so that the frame path does not allocate.
        self.dirty.reserve(self.senders.len());
        self.uncounted.reserve(self.senders.len());
        for (position, outlet) in (0..NO_SENDER).zip(&self.senders) {
            if let Some(cell) = self.positions.get_mut(outlet.port.index()) {
                *cell = position;
            }
            if outlet.dirty {
                self.dirty.push(position);
            }
        }
        old.into_iter().map(|outlet| (outlet.port, outlet.sender)).collect()
    }

    fn pending(&self) -> bool {
        !self.dirty.is_empty()
    }
}

fn descriptors(inlets: &[Inlet], mailbox: &Mailbox) -> io::Result<Vec<OwnedFd>> {
    inlets
        .iter()
        .filter_map(|inlet| inlet.receiver.descriptor())
        .chain([mailbox.bell.as_fd()])
        .map(|descriptor| descriptor.try_clone_to_owned())
        .collect()
}

/// How often a worker looks at empty rings before it sleeps: more often the shorter its sleeps are. A busy worker does
/// not sleep and wake between two frames that way, and an idle one costs nothing.
#[derive(Debug, Default)]
struct Patience {
    /// Looks that it takes.
    limit: u32,
    /// Looks that found nothing since the last frame or sleep.
    looks: u32,
}

/// Looks at most: some ten microseconds.
const MOST_LOOKS: u32 = 256;
/// Looks at least, if any.
const LEAST_LOOKS: u32 = 16;
/// A sleep shorter than this was not worth it.
const SHORT_SLEEP: Duration = Duration::from_micros(20);

impl Patience {
    /// Whether to sleep after a round that received so many frames.
    #[inline]
    fn is_over(&mut self, received: usize) -> bool {
        if received > 0 {
            self.looks = 0;
            return false;
        }
        self.looks += 1;
        if self.looks > self.limit {
            self.looks = 0;
            return true;
        }
        std::hint::spin_loop();
        false
    }

    /// Takes note of a sleep.
    fn slept(&mut self, spent: Duration) {
        self.limit = if spent < SHORT_SLEEP {
            (2 * self.limit).clamp(LEAST_LOOKS, MOST_LOOKS)
        } else if self.limit <= LEAST_LOOKS {
            0
        } else {
            self.limit / 2
        };
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

/// A change of a worker's ports, taken up between two batches.
pub struct Exchange {
    /// Receivers to begin with, held until then; each takes the place of the port's old one.
    pub inlets: Vec<Inlet>,
    /// Senders to begin with, likewise.
    pub senders: PortSenders,
    /// Ports whose receiver ends.
    pub inlets_end: Vec<PortId>,
    /// Ports whose sender ends.
    pub senders_end: Vec<PortId>,
}

/// Halves that are out of use. Closing them takes the kernel milliseconds each, which no worker has.
#[derive(Default)]
pub struct OldHalves {
    /// Receivers: held, and empty.
    pub inlets: Vec<Inlet>,
    /// Senders.
    pub senders: PortSenders,
}

/// An exchange, and where what it gives back goes.
type Asked = (Exchange, mpsc::Sender<OldHalves>);

/// Exchanges that a worker has not taken up yet.
pub struct Mailbox {
    /// All that is looked at while there are none.
    full: AtomicBool,
    /// `None` once the worker has ended.
    exchanges: Mutex<Option<Vec<Asked>>>,
    /// Ends the worker's wait for frames.
    bell: OwnedFd,
}

impl Mailbox {
    fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { full: AtomicBool::new(false), exchanges: Mutex::new(Some(Vec::new())), bell })
    }

    /// Puts an exchange in; the worker takes it up within its next round. The answer is what it gives back, and
    /// an error where it has ended, or ends meanwhile.
    pub fn put(&self, exchange: Exchange) -> mpsc::Receiver<OldHalves> {
        let (old, answer) = mpsc::channel();
        if let Some(exchanges) = self.exchanges().as_mut() {
            exchanges.push((exchange, old));
            self.full.store(true, Relaxed);
        }
        self.ring();
        answer
    }

    /// Ends the worker's wait for frames.
    pub fn ring(&self) {
        // Fails only where it rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn exchanges(&self) -> MutexGuard<'_, Option<Vec<Asked>>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Asked> {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        let mut exchanges = self.exchanges();
        self.full.store(false, Relaxed);
        exchanges.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// One worker.
pub struct Worker {
    device: Arc<Device>,
    forwarder: Forwarder,
    inlets: Vec<Inlet>,
    /// What polls readable when the inlets have frames, or the mailbox an exchange.
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
        let forwarder = Forwarder::new(device.counters().block());
        let mailbox = Arc::new(Mailbox::new()?);
        let descriptors = descriptors(&inlets, &mailbox)?;
        Ok(Worker { device, forwarder, inlets, descriptors, out, mailbox })
    }

    /// Where it takes exchanges from while it runs.
    #[must_use]
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Forwards frames until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        let device = Arc::clone(&self.device);
        let mut tables = Cache::new(device.snapshot());
        let mut rounds = 0_u32;
        let mut patience = Patience::default();
        let mut unflushed = 0;
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
                    let (forwarder, out, port) = (&mut self.forwarder, &mut self.out, inlet.port);
                    received += inlet.receiver.receive(&mut |frames| {
                        forwarder.forward(tables, port, frames, out);
                    });
                }
                // Full batches: more are waiting, most likely.
                unflushed = if received >= BATCH { unflushed + 1 } else { ROUNDS_PER_FLUSH };
                if unflushed >= ROUNDS_PER_FLUSH {
                    self.out.flush();
                    unflushed = 0;
                } else {
                    self.out.flush_from(WORTH_A_CALL);
                }
                rounds = rounds.wrapping_add(1);
                if patience.is_over(received) {
                    // EINTR and the like are another round.
                    let begun = Instant::now();
                    let _ = poll(&mut polled, if self.out.pending() { WAIT_PENDING } else { WAIT });
                    patience.slept(begun.elapsed());
                }
                if (received == 0 || rounds.is_multiple_of(ROUNDS_PER_LOOK)) && Instant::now() >= next_report
                {
                    self.report();
                    next_report = Instant::now() + REPORT_EVERY;
                }
            }
            self.exchange(tables.load());
        }
        self.out.flush();
    }

    /// Takes up what the mailbox has. The old receivers are emptied by the tables as they are.
    fn exchange(&mut self, tables: &Snapshot) {
        for (exchange, answer) in self.mailbox.take() {
            let Exchange { inlets, senders, inlets_end, senders_end } = exchange;
            let mut old = OldHalves::default();
            for inlet in inlets {
                old.inlets.extend(self.begin(inlet));
            }
            for port in inlets_end {
                if let Some(at) = self.inlets.iter().position(|inlet| inlet.port == port) {
                    let mut inlet = self.inlets.remove(at);
                    inlet.hold();
                    old.inlets.push(inlet);
                }
            }
            match descriptors(&self.inlets, &self.mailbox) {
                Ok(descriptors) => self.descriptors = descriptors,
                Err(error) => {
                    tracing::warn!(%error, "a worker cannot wait for frames and looks for them at times");
                }
            }
            for inlet in &mut old.inlets {
                self.empty(inlet, tables);
            }
            old.senders = self.out.exchange(senders, &senders_end);
            for inlet in &mut old.inlets {
                inlet.report(self.forwarder.counters());
            }
            for (port, sender) in &mut old.senders {
                report_lost(*port, sender.as_mut(), self.forwarder.counters());
            }
            // Whoever asked may have gone.
            let _ = answer.send(old);
        }
    }

    /// Begins with a receiver; the one that it takes the place of.
    fn begin(&mut self, mut inlet: Inlet) -> Option<Inlet> {
        let old = self.inlets.iter_mut().find(|old| old.port == inlet.port);
        // The new one first: where both are on one interface, no frame falls between them.
        if let Err(error) = inlet.receiver.release() {
            tracing::error!(port = inlet.port.0, interface = %inlet.interface, %error, "the port stays deaf");
        }
        match old {
            Some(old) => {
                old.hold();
                Some(std::mem::replace(old, inlet))
            }
            None => {
                self.inlets.push(inlet);
                None
            }
        }
    }

    /// Forwards what a held receiver has left.
    fn empty(&mut self, inlet: &mut Inlet, tables: &Snapshot) {
        let (forwarder, out, port) = (&mut self.forwarder, &mut self.out, inlet.port);
        // A ring's worth and more; one that could not be held would never end.
        for _ in 0..LEFT_BATCHES {
            let received = inlet.receiver.receive(&mut |frames| forwarder.forward(tables, port, frames, out));
            out.flush();
            if received == 0 {
                break;
            }
        }
    }

    /// Counts and says what was lost below the pipeline.
    fn report(&mut self) {
        for inlet in &mut self.inlets {
            inlet.report(self.forwarder.counters());
        }
        for outlet in &mut self.out.senders {
            report_lost(outlet.port, outlet.sender.as_mut(), self.forwarder.counters());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Whoever waits for an answer learns that there will be none.
        self.mailbox.exchanges().take();
    }
}

impl Inlet {
    fn hold(&mut self) {
        if let Err(error) = self.receiver.hold() {
            tracing::warn!(port = self.port.0, interface = %self.interface, %error, "a receiver cannot be held");
        }
    }

    fn report(&mut self, counters: &Block) {
        let (missed, truncated) = (self.receiver.missed(), self.receiver.truncated());
        let unfinished = self.receiver.unfinished_checksums();
        counters.count_missed(self.port, missed + truncated);
        if missed + truncated + unfinished > 0 {
            tracing::warn!(
                port = self.port.0, interface = %self.interface, missed, truncated,
                unfinished_checksums = unfinished,
                "frames lost before the pipeline (missed, truncated) or received with unfinished checksums (their sender leaves \
                 them to an offload; on the other end of a veth, `ethtool -K PEER tx off`)"
            );
        }
    }
}

fn report_lost(port: PortId, sender: &mut dyn Sender, counters: &Block) {
    let lost = sender.lost();
    counters.count_lost(port, lost);
    if lost > 0 {
        tracing::warn!(port = port.0, lost, "frames sent by the pipeline that the interface lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks before the next sleep.
    fn looks(patience: &mut Patience) -> u32 {
        (0..).find(|_| patience.is_over(0)).unwrap()
    }

    #[test]
    fn short_sleeps_make_patient_and_long_ones_do_not() {
        let mut patience = Patience::default();
        assert_eq!(looks(&mut patience), 0, "an idle worker sleeps at once");
        for wanted in [LEAST_LOOKS, 32, 64, 128, MOST_LOOKS, MOST_LOOKS] {
            patience.slept(Duration::from_micros(5));
            assert_eq!(looks(&mut patience), wanted);
        }
        // A frame begins the looks anew.
        (0..MOST_LOOKS).for_each(|_| assert!(!patience.is_over(0)));
        assert!(!patience.is_over(1));
        assert_eq!(looks(&mut patience), MOST_LOOKS);
        for wanted in [128, 64, 32, LEAST_LOOKS, 0, 0] {
            patience.slept(Duration::from_millis(1));
            assert_eq!(looks(&mut patience), wanted);
        }
    }
}
