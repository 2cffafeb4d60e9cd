//! Interfaces that are deleted and created anew under a running pipeline: their sockets are dead, and the port
//! gets new ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::io::interface::{Interface, InterfaceIndex};
use crate::io::link_watch::{LinkChange, LinkWatch};
use crate::io::{Backend, IoError, open};
use crate::packet_io::PacketOut;
use crate::run::PortSpec;
use crate::worker::{Mailbox, Replacement};

/// Longest wait for changes, and pause between two tries to open a port.
const WAIT: Duration = Duration::from_millis(100);

/// The ports, and whoever has sockets on them.
pub struct PortLinks {
    /// Of the ports' interfaces, in the order of `ports`.
    pub watch: LinkWatch,
    /// The ports, with the interface that their sockets are on; `None` once it is gone.
    pub ports: Vec<(PortSpec, Option<InterfaceIndex>)>,
    /// How they are opened.
    pub backend: Backend,
    /// Of all workers; the receiver of the port at `n` is that of worker `n` modulo their number.
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// Sends packet-outs.
    pub packet_out: PacketOut,
    /// Tells the inlet of keep-alives to open its path again.
    pub keep_alives: Arc<AtomicBool>,
}

impl PortLinks {
    /// Watches and opens ports again until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        let mut changes: Vec<LinkChange> = Vec::new();
        // To be opened again, with why that failed when last tried.
        let mut stale: BTreeMap<usize, String> = BTreeMap::new();
        while !stop.load(Relaxed) {
            if let Err(error) = self.watch.wait(Some(WAIT), &mut |change| changes.push(change)) {
                tracing::warn!(%error, "cannot watch the ports' interfaces; trying again");
                std::thread::sleep(WAIT);
            }
            for change in changes.drain(..) {
                let Some((spec, index)) = self.ports.get_mut(change.port) else { continue };
                match change.interface {
                    None => {
                        stale.remove(&change.port);
                        *index = None;
                        tracing::warn!(port = %spec.name, interface = %spec.interface, "the interface is gone");
                    }
                    now if now != *index => {
                        stale.entry(change.port).or_default();
                    }
                    Some(_) => {}
                }
            }
            stale.retain(|port, said| match self.reopen(*port) {
                Ok(()) => false,
                Err(error) => {
                    let error = error.to_string();
                    if *said != error {
                        tracing::warn!(error, "cannot open a port again; trying again");
                        *said = error;
                    }
                    true
                }
            });
        }
    }

    fn reopen(&mut self, at: usize) -> Result<(), IoError> {
        let Some((spec, index)) = self.ports.get_mut(at) else { return Ok(()) };
        Interface::raise_mtu(&spec.interface, spec.mtu)?;
        let port = open(self.backend, &spec.interface, spec.mtu)?;
        let mut receiver = Some(port.receiver()?);
        let senders = self.mailboxes.iter().map(|_| port.sender()).collect::<Result<Vec<_>, _>>()?;
        self.packet_out.reopen(spec.id, port.sender()?)?;
        let owner = at % self.mailboxes.len().max(1);
        for (worker, (mailbox, sender)) in self.mailboxes.iter().zip(senders).enumerate() {
            let receiver = if worker == owner { receiver.take() } else { None };
            mailbox.put(Replacement { port: spec.id, receiver, sender });
        }
        self.keep_alives.store(true, Relaxed);
        *index = Some(port.interface().index);
        tracing::info!(port = %spec.name, interface = %spec.interface, "the interface is back");
        Ok(())
    }
}
