//! What became of units since the controller started.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use api::{Event, EventKind};

/// A unit's past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitPast {
    /// Times that it went from up to another state.
    pub(super) flaps: u64,
    /// RFC 3339.
    pub(super) last_change: Option<String>,
}

/// Units by name.
#[derive(Default)]
pub(super) struct History {
    units: Mutex<HashMap<String, UnitPast>>,
}

impl History {
    /// Takes an event to account.
    pub(super) fn note(&self, event: &Event) {
        let (true, Some(before), Some(_)) = (event.kind == EventKind::Unit, &event.before, &event.after)
        else {
            return;
        };
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let unit = units.entry(event.subject.clone()).or_default();
        unit.flaps += u64::from(before == "up");
        unit.last_change = Some(event.time.clone());
    }

    pub(super) fn unit(&self, name: &str) -> UnitPast {
        self.units.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned().unwrap_or_default()
    }
}
