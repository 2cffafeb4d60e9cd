//! Views of telemetry's readings, made once for each, and kept fresh while somebody asks.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentx::{Master, Objects, SearchRange, Source, View};
use liveness::Nanos;
use tokio::sync::Notify;

use super::objects::{FLOW, PORT, objects};
use super::tables::{Sources, flows, tables};
use crate::clock;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::{FlowSnapshot, Snapshot, Telemetry};

/// How old something may be, and what is done about it.
struct Ages {
    /// Older readings are not shown while newer ones can be had.
    oldest: Duration,
    /// While somebody asks, a reading begins at this age of the last one.
    renewed: Duration,
    /// While newer ones cannot be had soon, such an old one is shown after [`SOON`].
    tolerated: Duration,
}

const EVERYTHING: Ages = Ages {
    oldest: Duration::from_secs(1),
    renewed: Duration::from_millis(500),
    tolerated: Duration::from_secs(15),
};
const FLOWS: Ages = Ages {
    oldest: Duration::from_secs(5),
    renewed: Duration::from_secs(3),
    tolerated: Duration::from_secs(40),
};

/// A page waits no longer for a reading where an older one is at hand.
const SOON: Duration = Duration::from_millis(120);
/// It waits so long where that one is older than tolerated.
const LATER: Duration = Duration::from_secs(1);
/// For so long after a request readings are kept fresh.
const INTEREST: Duration = Duration::from_secs(30);
/// Between looks at what must be renewed.
const LOOK: Duration = Duration::from_millis(100);

/// When something was asked for last.
#[derive(Default)]
struct Interest {
    last: Mutex<Option<Instant>>,
    news: Notify,
}

impl Interest {
    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self) {
        *self.last() = Some(Instant::now());
        self.news.notify_one();
    }

    /// Waits until somebody has asked lately.
    async fn wait(&self) {
        while !self.last().is_some_and(|last| last.elapsed() < INTEREST) {
            self.news.notified().await;
        }
    }
}

/// A view of the newest reading, what it was made of, and for which master agent.
struct Made<S, V> {
    of: Arc<S>,
    master: Master,
    view: V,
}

/// Since when counters count.
#[derive(Default)]
struct Since {
    frames_in: u64,
    counters: Option<Instant>,
    /// Keep-alives sent and since when they count, by unit and pair.
    pairs: HashMap<(String, String), (u64, Instant)>,
    /// Flows whose counters have begun again.
    flows: HashMap<String, Instant>,
}

/// Views of everything but flows.
type Everything = Made<Snapshot, Vec<Arc<dyn View>>>;

/// Where the subagent's views come from.
pub(super) struct Readings<T> {
    desk: Arc<Desk<T>>,
    telemetry: Telemetry<T>,
    /// When the controller started.
    started: Instant,
    /// The data plane began with the controller.
    embedded: bool,
    since: Mutex<Since>,
    everything: Mutex<Option<Everything>>,
    flows: Mutex<Option<Made<FlowSnapshot, Arc<dyn View>>>>,
    asked: Interest,
    asked_flows: Interest,
    /// When a state last changed: who hears of it and asks must not get an earlier reading.
    changed: AtomicU64,
}

fn locked<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // Nothing is left half done by whoever held it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An instant of the controller's clock.
fn instant(at: Nanos) -> Instant {
    let now = Instant::now();
    now.checked_sub(Duration::from_nanos(clock::now().since(at).0)).unwrap_or(now)
}

fn age(at: Nanos) -> Duration {
    Duration::from_nanos(clock::now().since(at).0)
}

impl<T: Target> Readings<T> {
    pub(super) fn new(desk: Arc<Desk<T>>, telemetry: Telemetry<T>) -> Self {
        let started = instant(desk.started);
        let embedded = desk.target.address() == "embedded";
        let since = Since { counters: embedded.then_some(started), ..Since::default() };
        Readings {
            desk,
            telemetry,
            started,
            embedded,
            since: Mutex::new(since),
            everything: Mutex::default(),
            flows: Mutex::default(),
            asked: Interest::default(),
            asked_flows: Interest::default(),
            changed: AtomicU64::new(0),
        }
    }

    /// A state has changed just now.
    pub(super) fn outdate(&self) {
        self.changed.store(clock::now().0, Ordering::Relaxed);
    }

    /// Reads again and again while somebody asks. Never ends.
    pub(super) async fn keep_fresh(&self) {
        let everything = async {
            loop {
                self.asked.wait().await;
                self.telemetry.snapshot(EVERYTHING.renewed).await;
                tokio::time::sleep(LOOK).await;
            }
        };
        let flows = async {
            loop {
                self.asked_flows.wait().await;
                let read = self.telemetry.flows(FLOWS.renewed).await;
                // Made here, so that no page waits for it.
                let master = locked(&self.flows).as_ref().map(|made| made.master);
                if let Some(master) = master {
                    self.of_flows(&read, master);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::join!(everything, flows);
    }

    /// The view of a reading.
    fn of_everything(&self, snapshot: &Arc<Snapshot>, master: Master) -> Vec<Arc<dyn View>> {
        let mut made = locked(&self.everything);
        if let Some(made) =
            made.as_ref().filter(|made| Arc::ptr_eq(&made.of, snapshot) && made.master == master)
        {
            return made.view.clone();
        }
        let since = &mut *locked(&self.since);
        if since.frames_in > snapshot.drops.frames_in {
            since.counters = Some(instant(snapshot.at));
        }
        since.frames_in = snapshot.drops.frames_in;
        self.note_pairs(since, snapshot, made.is_none());
        let view = self.desk.view.load();
        let stamp = |at: Instant| master.stamp(at);
        let pair_since = |unit: &str, pair: &str| {
            let pair = since.pairs.get(&(unit.to_owned(), pair.to_owned()));
            stamp(pair.map_or(self.started, |(_, since)| *since))
        };
        let sources = Sources {
            view: &view,
            version: self.desk.version(&view),
            counters_since: since.counters.map_or(0, stamp),
            pair_since: &pair_since,
        };
        let view = tables(snapshot, &sources);
        *made = Some(Made { of: snapshot.clone(), master, view: view.clone() });
        view
    }

    /// Pairs whose counters have begun again since the last reading.
    fn note_pairs(&self, since: &mut Since, snapshot: &Snapshot, first: bool) {
        let at = instant(snapshot.at);
        let mut before = std::mem::take(&mut since.pairs);
        for pair in &snapshot.liveness {
            let name = (pair.unit.clone(), pair.pair.clone());
            let sent = pair.lan_to_wan.sent + pair.wan_to_lan.sent;
            let begun = match before.remove(&name) {
                Some((last, begun)) if last <= sent => begun,
                None if first => self.started,
                _ => at,
            };
            since.pairs.insert(name, (sent, begun));
        }
    }

    /// The view of a reading of flows.
    fn of_flows(&self, read: &Arc<FlowSnapshot>, master: Master) -> Arc<dyn View> {
        let mut made = locked(&self.flows);
        if let Some(made) = made.as_ref().filter(|made| Arc::ptr_eq(&made.of, read) && made.master == master)
        {
            return made.view.clone();
        }
        let since = &mut *locked(&self.since);
        if let Some(last) = made.as_ref().filter(|made| !Arc::ptr_eq(&made.of, read)) {
            let counts: HashMap<&str, u64> =
                last.of.flows.iter().map(|flow| (flow.name.as_str(), flow.packets)).collect();
            for flow in &read.flows {
                if counts.get(flow.name.as_str()).is_some_and(|last| *last > flow.packets) {
                    since.flows.insert(flow.name.clone(), instant(read.at));
                }
            }
        }
        let begun = if self.embedded { master.stamp(self.started) } else { 0 };
        let of_flow = |name: &str| since.flows.get(name).map_or(begun, |at| master.stamp(*at));
        let view = flows(read, &of_flow);
        *made = Some(Made { of: read.clone(), master, view: view.clone() });
        view
    }

    async fn everything(&self) -> Arc<Snapshot> {
        self.asked.show();
        let last = locked(&self.everything).as_ref().map(|made| made.of.clone());
        let last = last.map(|last| (age(last.at), last));
        let oldest = EVERYTHING.oldest.min(age(Nanos(self.changed.load(Ordering::Relaxed))));
        fresh(&EVERYTHING, last, self.telemetry.snapshot(oldest)).await
    }

    async fn all_flows(&self) -> Arc<FlowSnapshot> {
        self.asked_flows.show();
        let last = locked(&self.flows).as_ref().map(|made| made.of.clone());
        let last = last.map(|last| (age(last.at), last));
        fresh(&FLOWS, last, self.telemetry.flows(FLOWS.oldest)).await
    }
}

/// A reading that is fresh, or the last one where that takes too long.
async fn fresh<S>(
    ages: &Ages,
    last: Option<(Duration, Arc<S>)>,
    new: impl Future<Output = Arc<S>>,
) -> Arc<S> {
    let Some((age, last)) = last else { return new.await };
    let patience = if age <= ages.tolerated { SOON } else { LATER };
    tokio::time::timeout(patience, new).await.unwrap_or(last)
}

/// Whether an answer may have flows in it. A page that begins in the table of ports goes through its rest and the one
/// of verdicts before it comes to flows.
fn reaches_flows(asked: &[SearchRange]) -> bool {
    let (from, to) = (objects([PORT]), objects([FLOW + 1]));
    asked.iter().any(|range| range.start >= from && range.start < to)
}

impl<T: Target> Source for Readings<T> {
    async fn view(&self, master: Master, asked: &[SearchRange]) -> Option<Arc<dyn View>> {
        let mut groups = self.of_everything(&self.everything().await, master);
        let flows = if reaches_flows(asked) {
            Some(self.all_flows().await)
        } else {
            locked(&self.flows).as_ref().map(|made| made.of.clone())
        };
        if let Some(read) = flows {
            groups.push(self.of_flows(&read, master));
        }
        Some(Arc::new(Objects::new(groups)))
    }
}
