//! `pair_ports`: the port of each side of a pair.

use dataplane::schema::counters::PAIRS;
use dataplane::tables::PairPortEntry;
use dataplane::{PairId, PortId, Side};

/// Ports of every pair.
#[derive(Clone)]
pub struct PairPorts(Vec<[Option<PortId>; 2]>);

impl Default for PairPorts {
    fn default() -> Self {
        PairPorts(vec![[None; 2]; PAIRS])
    }
}

impl PairPorts {
    #[inline(always)]
    pub(crate) fn view(&self) -> PairPortsView<'_> {
        PairPortsView(&self.0)
    }

    fn write(&mut self, entry: &PairPortEntry, port: Option<PortId>) {
        if let Some([lan, wan]) = self.0.get_mut(entry.pair.index()) {
            match entry.side {
                Side::Lan => *lan = port,
                Side::Wan => *wan = port,
            }
        }
    }

    pub(super) fn set(&mut self, entry: &PairPortEntry) {
        self.write(entry, Some(entry.port));
    }

    pub(super) fn clear(&mut self, entry: &PairPortEntry) {
        self.write(entry, None);
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct PairPortsView<'t>(&'t [[Option<PortId>; 2]]);

impl PairPortsView<'_> {
    /// The pair's port of one side.
    #[inline(always)]
    pub(crate) fn port(self, pair: PairId, side: Side) -> Option<PortId> {
        let [lan, wan] = self.0.get(pair.index())?;
        match side {
            Side::Lan => *lan,
            Side::Wan => *wan,
        }
    }
}
