//! `units`: balancing method, bucket mask and state of a unit.

use dataplane::UnitId;
use dataplane::tables::{UnitEntry, UnitMode};

/// Mode of every unit.
#[derive(Clone)]
pub struct Units(Vec<UnitMode>);

impl Default for Units {
    fn default() -> Self {
        Units(vec![UnitMode::Bypass; 256])
    }
}

impl Units {
    #[inline(always)]
    pub(crate) fn view(&self) -> UnitsView<'_> {
        UnitsView(&self.0)
    }

    pub(super) fn set(&mut self, entry: &UnitEntry) {
        if let Some(cell) = self.0.get_mut(entry.unit.index()) {
            *cell = entry.mode;
        }
    }

    pub(super) fn clear(&mut self, entry: &UnitEntry) {
        if let Some(cell) = self.0.get_mut(entry.unit.index()) {
            *cell = UnitMode::Bypass;
        }
    }
}

/// The table as frames read it.
#[derive(Clone, Copy)]
pub(crate) struct UnitsView<'t>(&'t [UnitMode]);

impl UnitsView<'_> {
    /// Bypass where the unit is unknown.
    #[inline(always)]
    pub(crate) fn mode(self, unit: UnitId) -> UnitMode {
        self.0.get(unit.index()).copied().unwrap_or(UnitMode::Bypass)
    }
}
