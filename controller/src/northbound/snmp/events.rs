//! Events as notifications.

use std::collections::VecDeque;
use std::sync::Arc;

use agentx::{Binding, Notification, Value};
use api::{Event, EventKind, Severity};
use site::PairName;
use tokio::sync::broadcast::{self, error::RecvError};

use super::date::date;
use super::objects::{self, PAIR_STATES, UNIT_MODES, UNIT_STATES, ascii, text, word};
use super::tables::{pair_index, unit_index};
use crate::event::Events;
use crate::view::View;

/// Goes through the event log and misses nothing that is still in its ring.
pub(super) struct Cursor {
    events: Arc<Events>,
    follower: broadcast::Receiver<Event>,
    last: u64,
    missed: VecDeque<Event>,
}

impl Cursor {
    /// Behind what has happened so far.
    pub(super) fn new(events: Arc<Events>) -> Self {
        let follower = events.follow();
        let last = events.list(0, Some(1)).last().map_or(0, |event| event.id);
        Cursor { events, follower, last, missed: VecDeque::new() }
    }

    /// The next event; `None` where there will be no more. Loses nothing where the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.missed.pop_front() {
                self.last = event.id;
                return Some(event);
            }
            match self.follower.recv().await {
                Ok(event) if event.id > self.last => {
                    self.last = event.id;
                    return Some(event);
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.missed = self.events.list(self.last, None).into(),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

const PAIR_STATE_CHANGE: u32 = 1;
const UNIT_STATE_CHANGE: u32 = 2;
const UNIT_MODE_CHANGE: u32 = 3;
const LIVENESS_CHANGE: u32 = 4;
const DATA_PLANE_CHANGE: u32 = 5;
const CORE_STATE_CHANGE: u32 = 6;

/// Columns that follow the objects of a notification.
const UNIT_STATE: [u32; 3] = [3, 1, 3];
const UNIT_MODE: [u32; 3] = [3, 1, 4];
const PAIR_STATE: [u32; 3] = [4, 1, 4];

/// The notification of an event; `None` where it has none.
pub(super) fn notification(event: &Event, view: &View) -> Option<Notification> {
    let changed = event.after.is_some();
    let unit_of = |name: &str| view.ids.units.get(name).map(|id| unit_index(*id));
    let mut core = None;
    let (kind, unit, pair, also) = match event.kind {
        EventKind::Pair if changed => {
            let name: PairName = event.subject.parse().ok()?;
            let state = event.after.as_deref().and_then(|state| word(state, PAIR_STATES));
            let index = unit_of(&name.unit).zip(view.ids.pairs.get(&name).map(|id| pair_index(*id)));
            let also =
                index.zip(state).map(|((unit, pair), state)| instance(PAIR_STATE, &[unit, pair], state));
            (PAIR_STATE_CHANGE, Some(name.unit), Some(name.pair), also)
        }
        EventKind::Unit | EventKind::Mode if changed => {
            let (kind, column, words) = match event.kind {
                EventKind::Unit => (UNIT_STATE_CHANGE, UNIT_STATE, UNIT_STATES),
                _ => (UNIT_MODE_CHANGE, UNIT_MODE, UNIT_MODES),
            };
            let value = event.after.as_deref().and_then(|after| word(after, words));
            let also =
                unit_of(&event.subject).zip(value).map(|(unit, value)| instance(column, &[unit], value));
            (kind, Some(event.subject.clone()), None, also)
        }
        EventKind::Core if changed => {
            let (pair, number) = event.subject.rsplit_once('/')?;
            core = Some(Value::gauge(number.parse().ok()?));
            let name: PairName = pair.parse().ok()?;
            (CORE_STATE_CHANGE, Some(name.unit), Some(name.pair), None)
        }
        EventKind::Liveness => (LIVENESS_CHANGE, None, None, None),
        EventKind::Target if changed => (DATA_PLANE_CHANGE, None, None, None),
        _ => return None,
    };
    let mut told = vec![
        Some((1, Value::text(&event.id.to_string()))),
        date(&event.time).map(|time| (2, time)),
        Some((3, severity(event.severity))),
        unit.as_deref().and_then(text).map(|unit| (4, unit)),
        pair.as_deref().and_then(text).map(|pair| (5, pair)),
    ];
    told.push(core.map(|core| (9, core)));
    if kind != LIVENESS_CHANGE {
        told.push(event.before.as_deref().and_then(text).map(|before| (6, before)));
        told.push(event.after.as_deref().and_then(text).map(|after| (7, after)));
    }
    told.push(Some((8, Value::OctetString(ascii(&event.reason)))));
    let objects = told
        .into_iter()
        .flatten()
        .map(|(number, value)| Binding { name: objects::objects([objects::EVENT, number, 0]), value });
    Some(Notification { kind: objects::root().child([0, kind]), objects: objects.chain(also).collect() })
}

fn instance(column: [u32; 3], index: &[u32], value: Value) -> Binding {
    Binding { name: objects::objects(column.into_iter().chain(index.iter().copied())), value }
}

fn severity(severity: Severity) -> Value {
    Value::Integer(match severity {
        Severity::Info => 1,
        Severity::Warning => 2,
        Severity::Error => 3,
    })
}
