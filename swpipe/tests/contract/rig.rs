//! A device with a site on it.

use std::sync::{Arc, Mutex};

use dataplane::entry::Update;
use dataplane::{PortId, Reason};
use serde_json::{Value, json};
use site::{Condition, Ids, Site};
use swpipe::batch::Forwarder;
use swpipe::counters::{Count, Place};
use swpipe::cpu::Cpu;
use swpipe::device::{Atomicity, Device};
use swpipe::edit::edited;
use swpipe::io::{Edit, Frame, Sender};
use swpipe::pipeline::{Decision, decide};
use swpipe::worker::Outlets;

pub(crate) struct Rig {
    pub(crate) site: Site,
    pub(crate) ids: Ids,
    pub(crate) device: Device,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) reason: Reason,
    pub(crate) flow: Option<String>,
    /// Port and bytes of the frame itself.
    pub(crate) out: Option<(String, Vec<u8>)>,
    /// Port and bytes of the copy to an appliance.
    pub(crate) copy: Option<(String, Vec<u8>)>,
}

/// Frames that were sent, and by which port.
type Sent = Arc<Mutex<Vec<(PortId, Vec<u8>)>>>;

struct Shelf {
    port: PortId,
    sent: Sent,
}

impl Sender for Shelf {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        self.sent.lock().unwrap().push((self.port, edited(frame, edit)));
        true
    }

    fn flush(&mut self) {}
}

/// A worker's part of the frame path, with something at the other end.
pub(crate) struct Line {
    forwarder: Forwarder,
    out: Outlets,
    sent: Sent,
}

impl Line {
    /// Runs frames that came in by a port as batches; what was sent, in order.
    pub(crate) fn pass(&mut self, rig: &Rig, port: PortId, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<u8>)> {
        let frames: Vec<Frame<'_>> = frames.iter().map(|bytes| Frame { bytes }).collect();
        self.forwarder.forward(&rig.device.snapshot().load(), port, &frames, &mut self.out);
        self.out.flush();
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

impl Rig {
    /// A line that counts in the rig's device.
    pub(crate) fn line(&self, cpu: Cpu) -> Line {
        let sent = Sent::default();
        let shelf = |port| Shelf { port, sent: Arc::clone(&sent) };
        let senders =
            self.site.ports.values().map(|port| (port.id, Box::new(shelf(port.id)) as Box<dyn Sender>));
        let out = Outlets::new(senders.collect());
        Line { forwarder: Forwarder::with_cpu(self.device.counters().block(), cpu), out, sent }
    }

    pub(crate) fn new(tree: &Value, condition: impl FnOnce(&Site) -> Condition) -> Self {
        let site = Site::from_json(&tree.to_string()).unwrap_or_else(|error| panic!("{error}\n{tree:#}"));
        let ids = Ids::allocate(&site, &Ids::default());
        let device = Device::default();
        let updates: Vec<Update> = site::desired(&site, &ids, &condition(&site))
            .into_iter()
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .collect();
        device.write(&updates, Atomicity::AllOrNothing).unwrap();
        Rig { site, ids, device }
    }

    pub(crate) fn up(tree: &Value) -> Self {
        Rig::new(tree, |site| Condition::with_up(site, |_| true))
    }

    pub(crate) fn down(tree: &Value, pairs: &[&str]) -> Self {
        Rig::new(tree, |site| Condition::with_up(site, |pair| !pairs.contains(&pair.pair.as_str())))
    }

    pub(crate) fn port(&self, name: &str) -> PortId {
        self.site.ports[name].id
    }

    pub(crate) fn decide(&self, port: &str, frame: &[u8]) -> Decision {
        decide(&self.device.snapshot().load(), self.port(port), frame)
    }

    pub(crate) fn send(&self, port: &str, frame: &[u8]) -> Outcome {
        self.outcome(&self.decide(port, frame), frame)
    }

    pub(crate) fn outcome(&self, decision: &Decision, frame: &[u8]) -> Outcome {
        let name = |id: PortId| self.site.ports.values().find(|port| port.id == id).unwrap().name.clone();
        let names = self.device.rule_names();
        let out = |exit: swpipe::pipeline::Exit| {
            let bytes = edited(frame, exit.edit);
            assert_eq!(bytes.len(), exit.length);
            (name(exit.port), bytes)
        };
        Outcome {
            reason: decision.reason,
            flow: decision.rule.map(|slot| names[&slot].clone()),
            out: decision.exit.map(out),
            copy: decision.copy.and_then(|copy| copy.exit).map(out),
        }
    }

    pub(crate) fn read(&self, array: u32, index: usize) -> Count {
        self.device.counters().read(Place::Array(array, index))
    }
}

/// Two links, one unit of two pairs, everything to the unit.
pub(crate) fn small() -> Value {
    let port = |name: &str, number: u16| json!({"name": name, "number": number, "mtu": 1500});
    json!({
        "sluice:port": [
            port("l1", 1), port("w1", 2), port("l2", 3), port("w2", 4),
            port("al", 5), port("aw", 6), port("bl", 7), port("bw", 8)
        ],
        "sluice:ecofilter-balancer": {
            "link": [
                {"name": "link1", "lan-port": "l1", "wan-port": "w1"},
                {"name": "link2", "lan-port": "l2", "wan-port": "w2"}
            ],
            "ecofilter-unit": [{
                "name": "main", "cores": 3,
                "pair": [
                    {"name": "a", "lan-port": "al", "wan-port": "aw"},
                    {"name": "b", "lan-port": "bl", "wan-port": "bw"}
                ]
            }],
            "flow": [{"name": "all", "priority": 1, "action": "to-ecofilter", "ecofilter-unit": "main"}]
        }
    })
}
