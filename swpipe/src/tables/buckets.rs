//! `buckets`: pair and core of every bucket, or what else becomes of its share.

use std::sync::Arc;

use dataplane::tables::{BucketEntry, BucketForwarding};
use dataplane::{BucketIndex, UnitId};

use crate::prefetch::prefetch;

type Cell = Option<BucketForwarding>;

// A million buckets are 4 MiB.
const _: () = assert!(size_of::<Cell>() == 4);

/// Buckets of every unit; units that a change does not touch are shared with the previous snapshot.
#[derive(Clone)]
pub struct Buckets(Vec<Arc<Vec<Cell>>>);

impl Default for Buckets {
    fn default() -> Self {
        Buckets((0..256).map(|_| Arc::new(Vec::new())).collect())
    }
}

impl Buckets {
    #[inline(always)]
    pub(crate) fn view(&self) -> BucketsView<'_> {
        BucketsView(&self.0)
    }

    pub(super) fn set(&mut self, entry: &BucketEntry) {
        if let Some(unit) = self.0.get_mut(entry.unit.index()) {
            let cells = Arc::make_mut(unit);
            let index = entry.bucket.index();
            if cells.len() <= index {
                cells.resize((index + 1).next_power_of_two(), None);
            }
            if let Some(slot) = cells.get_mut(index) {
                *slot = Some(entry.forwarding);
            }
        }
    }

    pub(super) fn clear(&mut self, entry: &BucketEntry) {
        if let Some(unit) = self.0.get_mut(entry.unit.index())
            && let Some(slot) = Arc::make_mut(unit).get_mut(entry.bucket.index())
        {
            *slot = None;
        }
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct BucketsView<'t>(&'t [Arc<Vec<Cell>>]);

impl BucketsView<'_> {
    /// `None` where the bucket has no entry.
    #[inline(always)]
    pub(crate) fn forwarding(self, unit: UnitId, bucket: BucketIndex) -> Option<BucketForwarding> {
        self.0.get(unit.index())?.get(bucket.index()).copied().flatten()
    }

    /// Has the entry of a bucket brought near.
    #[inline(always)]
    pub(crate) fn prefetch(self, unit: UnitId, bucket: BucketIndex) {
        if let Some(cell) = self.0.get(unit.index()).and_then(|cells| cells.get(bucket.index())) {
            prefetch(cell);
        }
    }
}
