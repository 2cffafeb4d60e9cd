//! The software pipeline as a data plane under test: the worker's own frame path, with ports in memory.

use std::sync::{Arc, Mutex, PoisonError};

use dataplane::entry::{Entry, EntryKey, Update};
use dataplane::schema::counters;
use dataplane::tables::Family;
use dataplane::target::{SWPIPE, TargetProfile};
use dataplane::{PortId, Reason};
use swpipe::batch::Forwarder;
use swpipe::counters::{Count, Place};
use swpipe::device::{Atomicity, Device};
use swpipe::edit::edited;
use swpipe::io::{Edit, Frame, Sender};
use swpipe::pipeline::decide;
use swpipe::tables::Snapshot;
use swpipe::worker::Outlets;

use super::plane::{Counts, Ending, Outcome, Plane};
use crate::error::{Error, Result};

type Sent = Arc<Mutex<Vec<(PortId, Vec<u8>)>>>;

/// A port that keeps what is sent by it.
struct Shelf {
    port: PortId,
    sent: Sent,
}

impl Sender for Shelf {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        let frame = (self.port, edited(frame, edit));
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
        true
    }

    fn flush(&mut self) {}
}

/// The software pipeline in this process.
pub struct Software {
    device: Device,
    forwarder: Forwarder,
    snapshot: Arc<Snapshot>,
    rules: Vec<EntryKey>,
    outlets: Outlets,
    sent: Sent,
}

impl Default for Software {
    fn default() -> Self {
        Software::new(&SWPIPE)
    }
}

impl Software {
    /// With the limits of a target.
    #[must_use]
    pub fn new(profile: &'static TargetProfile) -> Self {
        let sent = Sent::default();
        let senders = (0..counters::PORTS as u16)
            .map(|port| {
                let shelf = Shelf { port: PortId(port), sent: Arc::clone(&sent) };
                (PortId(port), Box::new(shelf) as Box<dyn Sender>)
            })
            .collect();
        let device = Device::new(profile);
        Software {
            forwarder: Forwarder::new(device.counters().block()),
            snapshot: device.snapshot().load_full(),
            device,
            rules: Vec::new(),
            outlets: Outlets::new(senders),
            sent,
        }
    }
}

impl Plane for Software {
    fn name(&self) -> &str {
        "swpipe"
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.device = Device::new(self.device.profile());
        self.forwarder = Forwarder::new(self.device.counters().block());
        let updates: Vec<Update> = entries
            .iter()
            .cloned()
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .collect();
        self.device.write(&updates, Atomicity::AllOrNothing).map_err(|results| {
            let fault = results
                .iter()
                .zip(entries)
                .find_map(|(result, entry)| Some(format!("{}: {entry:?}", result.as_ref().err()?)));
            Error::Plane { plane: "swpipe".into(), reason: fault.unwrap_or_default() }
        })?;
        self.snapshot = self.device.snapshot().load_full();
        let is_rule = |entry: &&Entry| Family::BOTH.iter().any(|family| family.table() == entry.table);
        self.rules = entries.iter().filter(is_rule).map(Entry::place).collect();
        Ok(())
    }

    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome> {
        let reason = decide(&self.snapshot, port, bytes).reason;
        self.forwarder.forward(&self.snapshot, port, &[Frame { bytes }], &mut self.outlets);
        self.outlets.flush();
        let mut sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        sent.sort();
        Ok(Outcome {
            sent,
            to_controller: (reason == Reason::KeepAlive).then(|| (port, bytes.to_vec())),
            ending: Ending::Counted(reason),
        })
    }

    fn counts(&mut self) -> Result<Counts> {
        let mut counts = Counts::default();
        for array in counters::ALL {
            for cell in 0..array.size {
                let count = self.device.counters().read(Place::Array(array.id, cell));
                if count != Count::default() {
                    counts.cells.insert((array.id, cell), count);
                }
            }
        }
        for rule in &self.rules {
            let Some(slot) = self.device.rule_slot(rule) else { continue };
            let count = self.device.counters().read(Place::Rule(slot));
            if count != Count::default() {
                counts.rules.insert(rule.clone(), count);
            }
        }
        Ok(counts)
    }
}
