//! `links`: the port of each side of a link, for frames that come back.

use dataplane::schema::counters::LINKS;
use dataplane::tables::LinkEntry;
use dataplane::{LinkIndex, PortId, Side};

/// Ports of every link.
#[derive(Clone)]
pub struct Links(Vec<[Option<PortId>; 2]>);

impl Default for Links {
    fn default() -> Self {
        Links(vec![[None; 2]; LINKS])
    }
}

impl Links {
    /// The link's port of one side.
    #[inline(always)]
    #[must_use]
    pub fn port(&self, link: LinkIndex, side: Side) -> Option<PortId> {
        let [lan, wan] = self.0.get(link.index())?;
        match side {
            Side::Lan => *lan,
            Side::Wan => *wan,
        }
    }

    fn write(&mut self, entry: &LinkEntry, port: Option<PortId>) {
        if let Some([lan, wan]) = self.0.get_mut(entry.link.index()) {
            match entry.side {
                Side::Lan => *lan = port,
                Side::Wan => *wan = port,
            }
        }
    }

    pub(super) fn set(&mut self, entry: &LinkEntry) {
        self.write(entry, Some(entry.port));
    }

    pub(super) fn clear(&mut self, entry: &LinkEntry) {
        self.write(entry, None);
    }
}
