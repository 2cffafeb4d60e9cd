//! Follows the interfaces of a running pipeline's ports: where one is deleted and created anew its sockets are
//! dead, and the port gets new ones.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::io::link_watch::{LinkChange, LinkWatch};
use crate::port_set::PortSet;

/// Longest wait for changes, and pause between two tries to open a port.
const WAIT: Duration = Duration::from_millis(100);

/// A set of ports, and a watch on their interfaces.
pub struct PortLinks {
    /// The ports.
    pub ports: PortSet,
    /// The watch until the ports change.
    pub watch: LinkWatch,
}

impl PortLinks {
    /// Watches, and has ports opened again, until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        let mut changes: Vec<LinkChange> = Vec::new();
        while !stop.load(Relaxed) {
            if let Some(watch) = self.ports.take_watch() {
                self.watch = watch;
            }
            if let Err(error) = self.watch.wait(Some(WAIT), &mut |change| changes.push(change)) {
                tracing::warn!(%error, "cannot watch the ports' interfaces; trying again");
                std::thread::sleep(WAIT);
            }
            let named: Vec<(String, LinkChange)> = changes
                .drain(..)
                .filter_map(|change| Some((self.watch.name(change.port)?.to_owned(), change)))
                .collect();
            self.ports.follow(&named);
        }
    }
}
