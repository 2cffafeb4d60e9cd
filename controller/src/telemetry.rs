//! What everything that watches reads: one reading of the data plane and of the measurements, shared by all who ask at
//! the same time.
//!
//! A reading runs as a task of its own: whoever asked may go away, be slow, or ask again; neither the engine nor the
//! thread of keep-alives waits for it.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::{Balancer, Drops, Flow, Link, PairLiveness, Port};
use arc_swap::ArcSwapOption;
use liveness::{Nanos, PairStatus, UnitStatus};
use site::PairName;

use crate::clock;
use crate::engine::unit_id;
use crate::keepalives::Status;
use crate::show::{Cells, Desk, Refusal, drops_of, links_of, liveness_of};
use crate::target::Target;
use crate::view::View;

/// A data plane that takes longer than this to tell its counters does not tell them.
const PATIENCE: Duration = Duration::from_secs(5);
/// Likewise for the counters of flows, of which there may be 100,000.
const FLOW_PATIENCE: Duration = Duration::from_secs(30);

/// Everything but flows at one instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When the reading began, on the controller's monotonic clock.
    pub at: Nanos,
    /// The same by the calendar.
    pub time: SystemTime,
    /// When the counters were read; `None` where the data plane has not told any yet, and all of them are zero.
    /// Before `at` where the data plane does not answer.
    pub counted: Option<Nanos>,
    /// When the states of units and pairs were so: changes of later instants are not in it, all before are.
    pub measured: Nanos,
    /// Units and pairs.
    pub balancer: Balancer,
    /// Keep-alives of every pair.
    pub liveness: Vec<PairLiveness>,
    /// Pairs as liveness has them, with what no screen shows.
    pub pair_status: BTreeMap<PairName, PairStatus>,
    /// Units, likewise.
    pub unit_status: BTreeMap<String, UnitStatus>,
    /// Ports in the order of their names.
    pub ports: Vec<Port>,
    /// Links in the order of the configuration.
    pub links: Vec<Link>,
    /// Verdicts of all frames.
    pub drops: Drops,
    /// The data plane.
    pub target: api::Target,
    /// Why counters are those of an earlier reading; states and measurements of keep-alives are of this one.
    pub stale: Option<String>,
}

/// All flows at one instant.
#[derive(Clone, Debug)]
pub struct FlowSnapshot {
    /// When the reading began, on the controller's monotonic clock.
    pub at: Nanos,
    /// The same by the calendar.
    pub time: SystemTime,
    /// When the counters were read; `None` where the data plane has not told any yet, and there are no flows here.
    pub counted: Option<Nanos>,
    /// Flows, the highest priority first.
    pub flows: Vec<Flow>,
    /// Why this is an earlier reading.
    pub stale: Option<String>,
}

/// Readings of the whole controller. Clones share them.
pub struct Telemetry<T> {
    desk: Arc<Desk<T>>,
    snapshot: Arc<Kept<Snapshot>>,
    flows: Arc<Kept<FlowSnapshot>>,
}

impl<T> Clone for Telemetry<T> {
    fn clone(&self) -> Self {
        Telemetry { desk: self.desk.clone(), snapshot: self.snapshot.clone(), flows: self.flows.clone() }
    }
}

impl<T: Target> Telemetry<T> {
    /// Readings of what this desk knows.
    #[must_use]
    pub fn new(desk: Arc<Desk<T>>) -> Self {
        Telemetry { desk, snapshot: Arc::default(), flows: Arc::default() }
    }

    /// Everything but flows, by a reading that began at most `oldest` ago: the kept one, the one under way, or a new
    /// one. Never fails: see [`Snapshot::stale`].
    pub async fn snapshot(&self, oldest: Duration) -> Arc<Snapshot> {
        let desk = self.desk.clone();
        Kept::get(&self.snapshot, oldest, move |last| read(desk, last)).await
    }

    /// All flows, likewise; apart, since 100,000 of them take a second or more.
    pub async fn flows(&self, oldest: Duration) -> Arc<FlowSnapshot> {
        let desk = self.desk.clone();
        Kept::get(&self.flows, oldest, move |last| read_flows(desk, last)).await
    }
}

/// The last reading of something.
struct Kept<S> {
    last: ArcSwapOption<S>,
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Kept { last: ArcSwapOption::empty(), reading: Arc::default() }
    }
}

/// A reading that knows when it began.
trait Reading: Send + Sync + 'static {
    fn at(&self) -> Nanos;
}

impl Reading for Snapshot {
    fn at(&self) -> Nanos {
        self.at
    }
}

impl Reading for FlowSnapshot {
    fn at(&self) -> Nanos {
        self.at
    }
}

impl<S: Reading> Kept<S> {
    fn since(&self, earliest: Nanos) -> Option<Arc<S>> {
        self.last.load_full().filter(|last| last.at() >= earliest)
    }

    /// A reading that began at most `oldest` before now; all who wait meanwhile get the same.
    async fn get<F>(
        kept: &Arc<Self>,
        oldest: Duration,
        read: impl FnOnce(Option<Arc<S>>) -> F + Send + 'static,
    ) -> Arc<S>
    where
        F: Future<Output = S> + Send + 'static,
    {
        let oldest = u64::try_from(oldest.as_nanos()).unwrap_or(u64::MAX);
        let earliest = Nanos(clock::now().0.saturating_sub(oldest));
        if let Some(last) = kept.since(earliest) {
            return last;
        }
        let turn = {
            let kept = kept.clone();
            async move {
                let _reading = kept.reading.lock().await;
                if let Some(last) = kept.since(earliest) {
                    return last;
                }
                let new = Arc::new(read(kept.last.load_full()).await);
                kept.last.store(Some(new.clone()));
                new
            }
        };
        match tokio::spawn(turn).await {
            Ok(reading) => reading,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        }
    }
}

async fn read<T: Target>(desk: Arc<Desk<T>>, last: Option<Arc<Snapshot>>) -> Snapshot {
    let (at, time) = (clock::now(), SystemTime::now());
    let view = desk.view.load_full();
    let mut stale = None;
    let status = desk.keepalives.status().await.unwrap_or_else(|ended| {
        stale = Some(ended.to_string());
        Status {
            pairs: Vec::new(),
            units: Vec::new(),
            suspicion: liveness::Suspicion::None,
            references: Vec::new(),
            now: at,
        }
    });
    let cells = match tokio::time::timeout(PATIENCE, desk.read_all(&view)).await {
        Ok(Ok(cells)) => Some(cells),
        Ok(Err(refusal)) => {
            stale = Some(refusal.to_string());
            None
        }
        Err(_) => {
            stale = Some(unanswered(PATIENCE));
            None
        }
    };
    tokio::task::block_in_place(|| {
        let counts = cells.as_ref();
        let none = Cells::default();
        let read = counts.unwrap_or(&none);
        let mut snapshot = Snapshot {
            at,
            time,
            counted: counts.map(|_| at),
            measured: status.now,
            balancer: desk.balancer_of(&view, &status, read),
            liveness: liveness_of(&view, &status, None),
            pair_status: pairs_by_name(&view, &status),
            unit_status: units_by_name(&view, &status),
            ports: desk.ports_of(&view, None, read),
            links: links_of(&view, read),
            drops: drops_of(&view, read),
            target: desk.target_of(&view),
            stale,
        };
        if let (None, Some(last)) = (counts, last) {
            recall(&mut snapshot, &last);
        }
        snapshot
    })
}

fn pairs_by_name(view: &View, status: &Status) -> BTreeMap<PairName, PairStatus> {
    let by_key: HashMap<u16, &PairStatus> = status.pairs.iter().map(|pair| (pair.pair.0, pair)).collect();
    let known = |id: &dataplane::PairId| by_key.get(&id.0).map(|status| (*status).clone());
    view.ids.pairs.iter().filter_map(|(name, id)| Some((name.clone(), known(id)?))).collect()
}

fn units_by_name(view: &View, status: &Status) -> BTreeMap<String, UnitStatus> {
    let known = |id: dataplane::UnitId| status.units.iter().find(|unit| unit_id(unit.unit) == id).cloned();
    view.ids.units.iter().filter_map(|(name, id)| Some((name.clone(), known(*id)?))).collect()
}

/// Counters as they were when the data plane last told them.
fn recall(snapshot: &mut Snapshot, last: &Snapshot) {
    snapshot.counted = last.counted;
    snapshot.drops = last.drops.clone();
    let links: HashMap<&str, &Link> = last.links.iter().map(|link| (link.name.as_str(), link)).collect();
    for link in &mut snapshot.links {
        if let Some(last) = links.get(link.name.as_str()) {
            (link.lan, link.wan) = (last.lan, last.wan);
            link.verdicts.clone_from(&last.verdicts);
        }
    }
    let ports: HashMap<&str, &Port> = last.ports.iter().map(|port| (port.name.as_str(), port)).collect();
    for port in &mut snapshot.ports {
        if let Some(last) = ports.get(port.name.as_str()) {
            (port.rx, port.tx) = (last.rx, last.tx);
        }
    }
    let units = last.balancer.units.iter();
    let pairs: HashMap<(&str, &str), &api::Pair> = units
        .flat_map(|unit| unit.pairs.iter().map(|pair| ((unit.name.as_str(), pair.name.as_str()), pair)))
        .collect();
    for unit in &mut snapshot.balancer.units {
        for pair in &mut unit.pairs {
            if let Some(last) = pairs.get(&(unit.name.as_str(), pair.name.as_str())) {
                (pair.tx_packets, pair.tx_bytes) = (last.tx_packets, last.tx_bytes);
                (pair.rx_packets, pair.rx_bytes) = (last.rx_packets, last.rx_bytes);
            }
        }
    }
}

async fn read_flows<T: Target>(desk: Arc<Desk<T>>, last: Option<Arc<FlowSnapshot>>) -> FlowSnapshot {
    let (at, time) = (clock::now(), SystemTime::now());
    let view = desk.view.load_full();
    let read: Result<Vec<Flow>, String> = match tokio::time::timeout(FLOW_PATIENCE, desk.flows(&view)).await {
        Ok(read) => read.map_err(|refusal: Refusal| refusal.to_string()),
        Err(_) => Err(unanswered(FLOW_PATIENCE)),
    };
    match read {
        Ok(flows) => FlowSnapshot { at, time, counted: Some(at), flows, stale: None },
        Err(reason) => FlowSnapshot {
            at,
            time,
            counted: last.as_ref().and_then(|last| last.counted),
            flows: last.map(|last| last.flows.clone()).unwrap_or_default(),
            stale: Some(reason),
        },
    }
}

fn unanswered(patience: Duration) -> String {
    format!("the data plane did not tell its counters within {} s", patience.as_secs())
}
