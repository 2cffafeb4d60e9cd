//! `ports`: what a port is for.

use dataplane::PortId;
use dataplane::schema::counters::PORTS;
use dataplane::tables::{PortEntry, PortRole};

/// Role of every port.
#[derive(Clone)]
pub struct Ports(Vec<Option<PortRole>>);

impl Default for Ports {
    fn default() -> Self {
        Ports(vec![None; PORTS])
    }
}

impl Ports {
    /// `None`: the port serves nothing.
    #[inline(always)]
    #[must_use]
    pub fn role(&self, port: PortId) -> Option<PortRole> {
        self.0.get(port.index()).copied().flatten()
    }

    pub(super) fn set(&mut self, entry: &PortEntry) {
        if let Some(cell) = self.0.get_mut(entry.port.index()) {
            *cell = Some(entry.role);
        }
    }

    pub(super) fn clear(&mut self, entry: &PortEntry) {
        if let Some(cell) = self.0.get_mut(entry.port.index()) {
            *cell = None;
        }
    }
}
