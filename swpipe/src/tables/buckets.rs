//! `buckets`: pair and core of every bucket.

use std::sync::Arc;

use dataplane::tables::BucketEntry;
use dataplane::{BucketIndex, Core, PairId, UnitId};

#[derive(Clone, Copy)]
struct Cell {
    pair: u16,
    core: u8,
    present: bool,
}

const ABSENT: Cell = Cell { pair: 0, core: 0, present: false };

/// Buckets of every unit; units that a change does not touch are shared with the previous snapshot.
#[derive(Clone)]
pub struct Buckets(Vec<Arc<Vec<Cell>>>);

impl Default for Buckets {
    fn default() -> Self {
        Buckets((0..256).map(|_| Arc::new(Vec::new())).collect())
    }
}

impl Buckets {
    /// `None` where the bucket has no entry.
    #[inline(always)]
    #[must_use]
    pub fn serving(&self, unit: UnitId, bucket: BucketIndex) -> Option<(PairId, Core)> {
        let cell = self.0.get(unit.index())?.get(bucket.index())?;
        cell.present.then_some((PairId(cell.pair), Core(cell.core)))
    }

    pub(super) fn set(&mut self, entry: &BucketEntry) {
        let cell = Cell { pair: entry.pair.0, core: entry.core.0, present: true };
        if let Some(unit) = self.0.get_mut(entry.unit.index()) {
            let cells = Arc::make_mut(unit);
            let index = entry.bucket.index();
            if cells.len() <= index {
                cells.resize((index + 1).next_power_of_two(), ABSENT);
            }
            if let Some(slot) = cells.get_mut(index) {
                *slot = cell;
            }
        }
    }

    pub(super) fn clear(&mut self, entry: &BucketEntry) {
        if let Some(unit) = self.0.get_mut(entry.unit.index())
            && let Some(slot) = Arc::make_mut(unit).get_mut(entry.bucket.index())
        {
            *slot = ABSENT;
        }
    }
}
