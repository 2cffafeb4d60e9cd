//! `links`: where frames of a link index go when they come back.

use dataplane::schema::counters::LINKS;
use dataplane::tables::{LinkEntry, LinkForwarding};
use dataplane::{LinkIndex, Side};

/// Both sides of every link index.
#[derive(Clone)]
pub struct Links(Vec<[Option<LinkForwarding>; 2]>);

impl Default for Links {
    fn default() -> Self {
        Links(vec![[None; 2]; LINKS])
    }
}

impl Links {
    #[inline(always)]
    pub(crate) fn view(&self) -> LinksView<'_> {
        LinksView(&self.0)
    }

    /// Indices that frames to the controller name, ascending.
    pub fn of_controller(&self) -> impl Iterator<Item = LinkIndex> {
        let indices = (0..=u8::MAX).map(LinkIndex).zip(&self.0);
        indices.filter(|(_, sides)| sides.contains(&Some(LinkForwarding::Controller))).map(|(index, _)| index)
    }

    fn write(&mut self, entry: &LinkEntry, forwarding: Option<LinkForwarding>) {
        if let Some([lan, wan]) = self.0.get_mut(entry.link.index()) {
            match entry.side {
                Side::Lan => *lan = forwarding,
                Side::Wan => *wan = forwarding,
            }
        }
    }

    pub(super) fn set(&mut self, entry: &LinkEntry) {
        self.write(entry, Some(entry.forwarding));
    }

    pub(super) fn clear(&mut self, entry: &LinkEntry) {
        self.write(entry, None);
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct LinksView<'t>(&'t [[Option<LinkForwarding>; 2]]);

impl LinksView<'_> {
    /// What one side of a link index is for; `None` where no link has it.
    #[inline(always)]
    pub(crate) fn forwarding(self, link: LinkIndex, side: Side) -> Option<LinkForwarding> {
        let [lan, wan] = self.0.get(link.index())?;
        match side {
            Side::Lan => *lan,
            Side::Wan => *wan,
        }
    }
}
