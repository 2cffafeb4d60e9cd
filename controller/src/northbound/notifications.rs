//! Events as notifications of the YANG modules (RFC 5277).

use std::sync::Arc;
use std::time::SystemTime;

use api::{Event, EventKind};
use netconf::Notification;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tree::{Path, Schema};

use crate::datastore::Change;

/// Sends on what happens, until nothing happens any more.
pub(super) async fn forward(
    schema: Arc<Schema>,
    mut events: broadcast::Receiver<Event>,
    mut changes: broadcast::Receiver<Change>,
    to: broadcast::Sender<Notification>,
) {
    use broadcast::error::RecvError::{Closed, Lagged};
    loop {
        let (name, body) = tokio::select! {
            event = events.recv() => match event {
                Ok(event) => match of_event(&event) {
                    Some(notification) => notification,
                    None => continue,
                },
                Err(Lagged(missed)) => {
                    tracing::warn!(missed, "events came faster than notifications go out");
                    continue;
                }
                Err(Closed) => return,
            },
            change = changes.recv() => match change {
                Ok(change) => of_change(&change),
                Err(Lagged(_)) => continue,
                Err(Closed) => return,
            },
        };
        match tree::json::read_at(&schema, &Path::default(), &json!({ format!("sluice:{name}"): body })) {
            // Nobody needs to listen.
            Ok(body) => drop(to.send(Notification { time: SystemTime::now(), body: Arc::new(body) })),
            Err(faults) => {
                let reasons: Vec<String> = faults.iter().map(ToString::to_string).collect();
                tracing::error!("notification {name} does not follow the model: {}", reasons.join("; "));
            }
        }
    }
}

/// What every event tells.
fn common(event: &Event) -> Map<String, Value> {
    let all = serde_json::to_value(event).unwrap_or_default();
    let fields = all.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| *name != "kind" && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn of_event(event: &Event) -> Option<(&'static str, Map<String, Value>)> {
    let mut body = common(event);
    let name = match event.kind {
        EventKind::Pair => {
            event.after.as_ref()?;
            let (unit, pair) = event.subject.split_once('/')?;
            body.insert("unit".to_owned(), unit.into());
            body.insert("pair".to_owned(), pair.into());
            "pair-state-change"
        }
        EventKind::Unit => {
            event.after.as_ref()?;
            body.insert("unit".to_owned(), event.subject.clone().into());
            "unit-state-change"
        }
        EventKind::Mode => {
            body.insert("unit".to_owned(), event.subject.clone().into());
            body.insert("mode".to_owned(), event.after.clone()?.into());
            "manual-bypass"
        }
        _ => return None,
    };
    Some((name, body))
}

fn of_change(change: &Change) -> (&'static str, Map<String, Value>) {
    let by = &change.revision.by;
    let mut body = Map::new();
    body.insert("id".to_owned(), change.revision.sequence.to_string().into());
    body.insert("time".to_owned(), by.time.clone().into());
    body.insert("severity".to_owned(), "info".into());
    body.insert("subject".to_owned(), "running".into());
    body.insert("user".to_owned(), by.user.clone().into());
    body.insert("origin".to_owned(), by.origin.clone().into());
    if let Some(comment) = &by.comment {
        body.insert("comment".to_owned(), comment.clone().into());
    }
    ("configuration-applied", body)
}
