//! A data plane of tables without wires: keep-alives come back by the pair's other port unless told not to.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{Applied, Event, Request, Response, UnitMode};
use controller::access::Access;
use controller::audit::Audit;
use controller::carriers;
use controller::clock;
use controller::datastore::{Beginning, Datastores};
use controller::difference::Tables;
use controller::engine::{Command, Engine, EngineError};
use controller::event::Events;
use controller::keepalives::Keepalives;
use controller::session::Session;
use controller::show::{Desk, Rates};
use controller::state_dir::{Kept, StateDir};
use controller::target::{Chaos, PacketIn, Standing, Target, TargetError};
use dataplane::entry::{Entry, P4Id, Update};
use dataplane::tables::{Family, PairForwarding, TableEntry};
use dataplane::target::{SWPIPE, TargetProfile};
use dataplane::{PortId, keepalive};
use site::Site;
use swpipe::counters::{Count, Place};
use swpipe::device::{Atomicity, Device};
use tokio::sync::{mpsc, oneshot, watch};

/// Tables, and cables between the ports of pairs.
pub(crate) struct Plane {
    pub(crate) device: Device,
    /// Where a frame that leaves by a port comes back.
    cables: Mutex<HashMap<PortId, PortId>>,
    /// Ports whose appliance is frozen.
    frozen: Mutex<BTreeSet<PortId>>,
    packets: Mutex<mpsc::Sender<PacketIn>>,
    standing: watch::Sender<Standing>,
    pub(crate) writes: AtomicUsize,
    pub(crate) updates: AtomicUsize,
    /// Name of entries that are not taken.
    refused: Mutex<Option<String>>,
    /// Readings of counters begun.
    pub(crate) readings: AtomicUsize,
    /// Readings of counters wait.
    slow: watch::Sender<bool>,
}

impl Plane {
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<PacketIn>) {
        Plane::of(&SWPIPE)
    }

    /// With the limits and habits of a target.
    pub(crate) fn of(profile: &'static TargetProfile) -> (Arc<Self>, mpsc::Receiver<PacketIn>) {
        let (packets, received) = mpsc::channel(4096);
        let plane = Plane {
            device: Device::new(profile),
            cables: Mutex::default(),
            frozen: Mutex::default(),
            packets: Mutex::new(packets),
            standing: watch::channel(Standing::Primary(1)).0,
            writes: AtomicUsize::new(0),
            updates: AtomicUsize::new(0),
            refused: Mutex::default(),
            readings: AtomicUsize::new(0),
            slow: watch::channel(false).0,
        };
        (Arc::new(plane), received)
    }

    /// The next controller's inbox.
    pub(crate) fn reopen(&self) -> mpsc::Receiver<PacketIn> {
        let (packets, received) = mpsc::channel(4096);
        *self.packets.lock().unwrap() = packets;
        received
    }

    pub(crate) fn cable(&self, from: PortId, to: PortId) {
        self.cables.lock().unwrap().insert(from, to);
    }

    pub(crate) fn freeze(&self, port: PortId) {
        self.frozen.lock().unwrap().insert(port);
    }

    pub(crate) fn thaw(&self, port: PortId) {
        self.frozen.lock().unwrap().remove(&port);
    }

    /// Takes no entry of this name from now on; `None` for all.
    pub(crate) fn refuse(&self, name: Option<&str>) {
        *self.refused.lock().unwrap() = name.map(str::to_owned);
    }

    /// Whether readings of counters wait until they may go on.
    pub(crate) fn hold_readings(&self, hold: bool) {
        self.slow.send_replace(hold);
    }

    pub(crate) fn lose(&self) {
        self.standing.send_replace(Standing::Lost("cut".to_owned()));
    }

    pub(crate) fn regain(&self, connection: u64) {
        self.standing.send_replace(Standing::Primary(connection));
    }

    pub(crate) fn tables(&self) -> Tables {
        Tables::of(self.device.entries(None))
    }

    fn gone(&self) -> Result<(), TargetError> {
        match &*self.standing.borrow() {
            Standing::Lost(reason) => {
                Err(TargetError::Lost { address: "lab".to_owned(), reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Shares a plane with the test.
pub(crate) struct Shared(pub(crate) Arc<Plane>);

impl Target for Shared {
    fn address(&self) -> String {
        "lab".to_owned()
    }

    fn profile(&self) -> &'static TargetProfile {
        self.0.device.profile()
    }

    fn pipeline(&self) -> String {
        "lab".to_owned()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.0.standing.subscribe()
    }

    async fn prepare(&self) -> Result<bool, TargetError> {
        self.0.gone().map(|()| false)
    }

    async fn write(&self, updates: Vec<Update>) -> Result<(), TargetError> {
        self.0.gone()?;
        if updates.is_empty() {
            return Ok(());
        }
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        self.0.updates.fetch_add(updates.len(), Ordering::SeqCst);
        let (address, what) = ("lab".to_owned(), "a write".to_owned());
        let refused = self.0.refused.lock().unwrap().clone();
        let is_refused =
            |update: &Update| refused.as_ref().is_some_and(|name| update.entry().metadata == name.as_bytes());
        if self.profile().writes.all_or_nothing {
            if updates.iter().any(is_refused) {
                return Err(TargetError::Refused { address, what, reason: "by its name".to_owned() });
            }
            return self.0.device.write(&updates, Atomicity::AllOrNothing).map_err(|results| {
                let reason = format!("{:?}", results.into_iter().find_map(Result::err));
                TargetError::Refused { address, what, reason }
            });
        }
        let (bad, good): (Vec<Update>, Vec<Update>) = updates.into_iter().partition(is_refused);
        let written = self.0.device.write(&good, Atomicity::ContinueOnError);
        if bad.is_empty() && written.is_ok() {
            return Ok(());
        }
        Err(TargetError::Partly { address, what, reason: format!("{bad:?} {written:?}") })
    }

    async fn entries(&self) -> Result<Vec<Entry>, TargetError> {
        self.0.gone()?;
        let mut entries = self.0.device.entries(None);
        if !self.profile().keeps_metadata {
            entries.iter_mut().for_each(|entry| entry.metadata.clear());
        }
        Ok(entries)
    }

    async fn counters(&self, cells: Vec<(P4Id, usize)>) -> Result<Vec<Count>, TargetError> {
        self.0.gone()?;
        self.0.readings.fetch_add(1, Ordering::SeqCst);
        let _ = self.0.slow.subscribe().wait_for(|slow| !slow).await;
        let counters = self.0.device.counters();
        Ok(cells.into_iter().map(|(array, index)| counters.read(Place::Array(array, index))).collect())
    }

    async fn rule_counters(&self) -> Result<Vec<(Entry, Count)>, TargetError> {
        self.0.gone()?;
        let (rows, counters) = (self.0.device.rows(), self.0.device.counters());
        let rules = Family::BOTH.into_iter().flat_map(|family| rows.of(Some(family.table())));
        Ok(rules.map(|rule| (rule.entry(), counters.read(Place::Rule(rule.slot())))).collect())
    }

    async fn send(&self, port: PortId, mut frame: Vec<u8>) -> Result<(), TargetError> {
        self.0.gone()?;
        let sent = clock::now().0;
        let at = keepalive::TRANSMIT_TIME_OFFSET;
        frame[at..at + 8].copy_from_slice(&sent.to_be_bytes());
        let to = self.0.cables.lock().unwrap().get(&port).copied();
        let frozen = self.0.frozen.lock().unwrap();
        if let Some(to) = to.filter(|to| !frozen.contains(&port) && !frozen.contains(to)) {
            let packet = PacketIn { port: to, received: clock::now().0, frame };
            let _ = self.0.packets.lock().unwrap().try_send(packet);
        }
        Ok(())
    }
}

/// A controller over a plane.
pub(crate) struct Lab {
    pub(crate) plane: Arc<Plane>,
    pub(crate) desk: Arc<Desk<Chaos<Shared>>>,
    pub(crate) commands: mpsc::Sender<Command>,
    engine: tokio::task::JoinHandle<()>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.engine.abort();
    }
}

/// Cables every pair of a site as its appliance would.
pub(crate) fn cable(plane: &Plane, site: &Site) {
    for unit in site.units.values() {
        for pair in unit.pairs.values() {
            let (lan, wan) = (site.ports[&pair.lan_port].id, site.ports[&pair.wan_port].id);
            plane.cable(lan, wan);
            plane.cable(wan, lan);
        }
    }
}

impl Lab {
    /// Starts a controller with this configuration; `state` is its state directory.
    pub(crate) fn start(
        plane: Arc<Plane>,
        packets: mpsc::Receiver<PacketIn>,
        text: &str,
        state: &Path,
        chaos: f64,
    ) -> Self {
        cable(&plane, &Site::from_json(text).unwrap());
        let config_file = state.join("site.json");
        std::fs::write(&config_file, text).unwrap();
        let yang = Arc::new(yang::Yang::load().unwrap());
        let target = Arc::new(Chaos::new(Shared(plane.clone()), chaos));
        let events = Arc::new(Events::new(1));
        let (keepalives, changes) = Keepalives::start(target.clone(), packets).unwrap();
        // The engine of a lab before this one may still be ending.
        let deadline = Instant::now() + Duration::from_secs(10);
        let state_dir = loop {
            match StateDir::open(state) {
                Ok(state_dir) => break state_dir,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let kept: Kept = state_dir.load().unwrap();
        let beginning = Beginning::find(&yang, Some(&config_file), state).unwrap();
        let site = beginning.site.clone();
        let engine =
            Engine::new(target.clone(), keepalives.clone(), events.clone(), state_dir, kept, site, None);
        let (commands, received) = mpsc::channel(16);
        let audit = Arc::new(Audit::open(state).unwrap());
        let datastores = Datastores::new(yang, commands.clone(), events.clone(), audit.clone(), beginning);
        let desk = Arc::new(Desk {
            target,
            view: engine.view(),
            keepalives,
            events,
            commands: commands.clone(),
            carriers: carriers::Known::default(),
            started: clock::now(),
            datastores,
            audit,
            device_id: 1,
            election_id: 1,
            rates: Mutex::new(Rates::default()),
            trouble: engine.trouble(),
        });
        let engine = tokio::spawn(engine.run(received, changes));
        Lab { plane, desk, commands, engine }
    }

    pub(crate) async fn apply(&self, text: &str) -> Result<Applied, EngineError> {
        let (answer, result) = oneshot::channel();
        let site = Arc::new(Site::from_json(text).unwrap());
        let origin = "test".to_owned();
        self.commands.send(Command::Apply { site, origin, answer }).await.unwrap();
        result.await.unwrap()
    }

    pub(crate) async fn set_mode(&self, unit: &str, mode: UnitMode) -> Result<(), EngineError> {
        let (answer, result) = oneshot::channel();
        let unit = unit.to_owned();
        self.commands.send(Command::SetUnitMode { unit, mode, answer }).await.unwrap();
        result.await.unwrap()
    }

    pub(crate) async fn ask(&self, request: Request) -> serde_json::Value {
        match self.desk.answer(&mut self.session(), request).await {
            Response::Ok(value) => value,
            Response::Error(reason) => panic!("refused: {reason}"),
        }
    }

    /// A session of root at the Unix socket.
    pub(crate) fn session(&self) -> Session {
        let (user, role) = Access::default().of_peer(0).unwrap();
        Session::new(user, role, "cli")
    }

    pub(crate) fn ask_state(&self) -> &'static str {
        match &*self.desk.target.standing().borrow() {
            Standing::Primary(_) => "primary",
            Standing::Backup => "backup",
            Standing::Lost(_) => "lost",
        }
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.desk.events.list(0, None)
    }

    /// Waits until the condition holds, ten seconds at most.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Lab) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !holds(self) {
            assert!(Instant::now() < deadline, "not within 10 s: {what}; events: {:#?}", self.events());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// How many pairs the tables have up.
    pub(crate) fn pairs_up(&self) -> usize {
        self.plane
            .tables()
            .values()
            .filter(|entry| {
                matches!(
                    TableEntry::parse(entry),
                    Ok(TableEntry::PairState(state)) if state.forwarding == PairForwarding::Up
                )
            })
            .count()
    }

    /// What the tables should be by what the controller knows.
    pub(crate) fn wanted(&self) -> Tables {
        let view = self.desk.view.load();
        Tables::of(site::desired(&view.site, &view.ids, &view.condition))
    }
}

/// A site of one link and `pairs` pairs in one unit, with keep-alives each 10 ms.
pub(crate) fn site_text(pairs: usize, unit: &str, flows: &str) -> String {
    let mut ports = vec![
        r#"{"name": "l0", "number": 1, "lane": 0, "mtu": 1500}"#.to_owned(),
        r#"{"name": "w0", "number": 1, "lane": 1, "mtu": 1500}"#.to_owned(),
    ];
    let mut list = Vec::new();
    for pair in 0..pairs {
        let (number, lane) = (pair % 64 + 2, pair / 64 * 2);
        ports.push(format!(r#"{{"name": "pl{pair}", "number": {number}, "lane": {lane}}}"#));
        ports.push(format!(r#"{{"name": "pw{pair}", "number": {number}, "lane": {}}}"#, lane + 1));
        list.push(format!(r#"{{"name": "p{pair}", "lan-port": "pl{pair}", "wan-port": "pw{pair}"}}"#));
    }
    format!(
        r#"{{"sluice:port": [{}],
        "sluice:liveness": {{"profile": [{{"name": "fast", "initial-delay": 10, "interval": 10,
            "probes-down-count": 3, "probes-up-count": 3, "suspend-limit": 200}}]}},
        "sluice:ecofilter-balancer": {{
            "link": [{{"name": "link1", "lan-port": "l0", "wan-port": "w0"}}],
            "ecofilter-unit": [{{"name": "main", "cores": 2, "liveness-profile": "fast", {unit} "pair": [{}]}}],
            "flow": [{flows}]}}}}"#,
        ports.join(","),
        list.join(",")
    )
}

/// Everything to the unit.
pub(crate) const REST: &str =
    r#"{"name": "rest", "priority": 1, "action": "to-ecofilter", "ecofilter-unit": "main"}"#;
