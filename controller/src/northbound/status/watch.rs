//! A client that watches: the present state, then every transition in order.

use std::sync::Arc;
use std::time::Duration;

use api::{Event, EventKind};
use liveness::Nanos;
use status::v1::{Missed, Present, WatchResponse, watch_response::Kind};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tonic::Status;

use super::{Peer, messages};
use crate::datastore::Datastores;
use crate::event::Events;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// One client. It waits for the client and nobody waits for it: events that it is too slow for are gone.
pub(super) struct Watch<T> {
    pub(super) telemetry: Telemetry<T>,
    pub(super) events: Arc<Events>,
    pub(super) datastores: Arc<Datastores>,
    pub(super) prefix: String,
    pub(super) refresh: Option<Duration>,
    pub(super) peer: Peer,
    pub(super) to: mpsc::Sender<Result<WatchResponse, Status>>,
}

/// The client is gone.
struct Gone;

impl<T: Target> Watch<T> {
    /// Until the client goes, or may not look any more.
    pub(super) async fn run(self) {
        tokio::select! {
            _ = self.tell() => {}
            () = self.to.closed() => {}
            denied = self.denied() => {
                // Who reads nothing is not told.
                let _ = self.to.try_send(Err(denied));
            }
        }
    }

    /// Waits until a change of the configuration takes the client's role away.
    async fn denied(&self) -> Status {
        let mut changes = self.datastores.changes();
        loop {
            if let Err(denied) = self.peer.permit(&self.datastores) {
                return Status::permission_denied(denied.to_string());
            }
            if matches!(changes.recv().await, Err(RecvError::Closed)) {
                return Status::unavailable("sluiced is shutting down");
            }
        }
    }

    async fn tell(&self) -> Result<(), Gone> {
        let (mut events, mut last) = self.events.follow_from();
        let mut known = self.present(last).await?;
        let mut again = self.refresh.and_then(|period| {
            let mut again = interval_at(Instant::now().checked_add(period)?, period);
            again.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Some(again)
        });
        loop {
            let refresh = async {
                match &mut again {
                    Some(again) => again.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Ok(event) => {
                        last = event.id;
                        if !is_known(&event, known)
                            && let Some(transition) = messages::transition(&event, &self.prefix)
                        {
                            self.send(Kind::Transition(transition)).await?;
                        }
                    }
                    Err(RecvError::Lagged(missed)) => {
                        let missed = missed + skip(&mut events, &mut last);
                        self.send(Kind::Missed(Missed { events: missed })).await?;
                        known = self.present(last).await?;
                    }
                    Err(RecvError::Closed) => return Ok(()),
                },
                _ = refresh => known = self.present(last).await?,
            }
        }
    }

    /// Sends the present state; when it was so.
    async fn present(&self, event_id: u64) -> Result<Nanos, Gone> {
        let snapshot = self.telemetry.snapshot(Duration::ZERO).await;
        let present = Present {
            event_id,
            units: messages::units(&snapshot, &self.prefix),
            pairs: messages::pairs(&snapshot, &self.prefix),
            data_plane: Some(messages::data_plane(&snapshot)),
        };
        self.send(Kind::Present(present)).await?;
        Ok(snapshot.measured)
    }

    async fn send(&self, kind: Kind) -> Result<(), Gone> {
        self.to.send(Ok(WatchResponse { kind: Some(kind) })).await.map_err(|_| Gone)
    }
}

/// Whether the state that the client was told has this change in it: those of pairs and units bear the instant at
/// which the state was read.
fn is_known(event: &Event, known: Nanos) -> bool {
    matches!(event.kind, EventKind::Pair | EventKind::Unit) && event.monotonic_ns <= known.0
}

/// Skips what has happened so far; how many events.
fn skip(events: &mut broadcast::Receiver<Event>, last: &mut u64) -> u64 {
    let mut skipped = 0;
    loop {
        match events.try_recv() {
            Ok(event) => {
                *last = event.id;
                skipped += 1;
            }
            Err(TryRecvError::Lagged(missed)) => skipped += missed,
            Err(TryRecvError::Empty | TryRecvError::Closed) => return skipped,
        }
    }
}
