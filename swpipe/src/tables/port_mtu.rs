//! `port_mtu`: the longest frame that may leave by a port.

use dataplane::PortId;
use dataplane::frame::ETHERNET_HEADER;
use dataplane::schema::counters::PORTS;
use dataplane::tables::PortMtuEntry;

const NO_LIMIT: u32 = u32::MAX;

/// Longest frame of every port.
#[derive(Clone)]
pub struct PortMtus(Vec<u32>);

impl Default for PortMtus {
    fn default() -> Self {
        PortMtus(vec![NO_LIMIT; PORTS])
    }
}

impl PortMtus {
    #[inline(always)]
    pub(crate) fn view(&self) -> PortMtusView<'_> {
        PortMtusView(&self.0)
    }

    pub(super) fn set(&mut self, entry: &PortMtuEntry) {
        if let Some(cell) = self.0.get_mut(entry.port.index()) {
            *cell = u32::from(entry.mtu) + ETHERNET_HEADER as u32;
        }
    }

    pub(super) fn clear(&mut self, entry: &PortMtuEntry) {
        if let Some(cell) = self.0.get_mut(entry.port.index()) {
            *cell = NO_LIMIT;
        }
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct PortMtusView<'t>(&'t [u32]);

impl PortMtusView<'_> {
    /// Whether a frame of `length` bytes, Ethernet header included, may leave by the port.
    #[inline(always)]
    pub(crate) fn admits(self, port: PortId, length: usize) -> bool {
        self.0.get(port.index()).is_none_or(|longest| length as u64 <= u64::from(*longest))
    }
}
