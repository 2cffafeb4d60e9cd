//! The one writer of tables: takes changes of configuration, of pairs and units and of the connection, and
//! brings the data plane to what they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::{Applied, EventKind, Severity, UnitMode};
use arc_swap::ArcSwap;
use dataplane::entry::Update;
use dataplane::tables::{PairForwarding, TableEntry};
use dataplane::{LinkIndex, PairId, UnitId};
use liveness::{
    Admin, Event, Initial, PairConfig, PairState, PerDirection, Profile, ProfileSettings, Role, UnitConfig,
    UnitKey, UnitState,
};
use site::{Condition, Ids, PairName, PairRole, Site, UnitForwarding};
use swpipe::port_set::PortSet;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock;
use crate::difference::{Entries, Tables, Updates, by_place, tally};
use crate::event::{Events, News};
use crate::keepalives::{Command as LivenessCommand, Keepalives, PairPorts, Status};
use crate::state_dir::{Kept, Numbers, StateDir, StateDirError};
use crate::target::{Standing, Target, TargetError};
use crate::view::View;

mod apply;
mod news;

/// Tries to bring the device back to the running configuration after a failed apply, before answering.
const REPAIRS: usize = 20;
/// Cabling faults of one pair that follow one another within this, ns, are one.
const CABLING_EVERY: u64 = 1_000_000_000;
/// Between repairs that go on in the background.
const REPAIR_AFTER: Duration = Duration::from_millis(250);

/// What the engine is asked.
pub enum Command {
    /// Put this configuration in the place of the running one.
    Apply {
        /// Read and checked.
        site: Arc<Site>,
        /// Who asks, for the event log.
        origin: String,
        /// What it did.
        answer: oneshot::Sender<Result<Applied, EngineError>>,
    },
    /// What an [`Command::Apply`] would do to traffic, or why it would be refused.
    Effects {
        /// Read and checked.
        site: Arc<Site>,
        /// A line each.
        answer: oneshot::Sender<Result<Vec<String>, EngineError>>,
    },
    /// A unit's mode by hand.
    SetUnitMode {
        /// The unit.
        unit: String,
        /// The mode.
        mode: UnitMode,
        /// Done, or why not.
        answer: oneshot::Sender<Result<(), EngineError>>,
    },
    /// All units into bypass, as before a shutdown.
    Drain(oneshot::Sender<Result<(), EngineError>>),
}

/// Why a change was refused; then nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The data plane.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateDirError),
    /// A name that is not there.
    #[error("ecofilter-unit {unit:?} does not exist; there are: {known}")]
    UnknownUnit {
        /// The name.
        unit: String,
        /// The names there are.
        known: String,
    },
    /// A profile that `liveness` does not take.
    #[error("liveness profile {profile}: {reason}")]
    Profile {
        /// Its name.
        profile: String,
        /// Why.
        reason: String,
    },
    /// The apply failed and the device could not be brought back yet.
    #[error("{cause}; the data plane is being brought back to the running configuration")]
    Repairing {
        /// Why the apply failed.
        cause: TargetError,
    },
    /// A device that is left as it is.
    #[error("{0}")]
    Held(String),
    /// Ports that the embedded pipeline cannot open.
    #[error(transparent)]
    Ports(#[from] swpipe::run::RunError),
    /// A configuration that the target has no room for.
    #[error(transparent)]
    Site(#[from] site::SiteError),
    /// The liveness thread.
    #[error(transparent)]
    Liveness(#[from] crate::keepalives::Ended),
}

/// The engine.
pub struct Engine<T> {
    target: Arc<T>,
    keepalives: Keepalives,
    events: Arc<Events>,
    state_dir: StateDir,
    kept: Kept,
    site: Arc<Site>,
    ids: Ids,
    condition: Condition,
    /// What the device has, as far as is known; `None` where it is not known.
    actual: Option<Tables>,
    /// The rules of `actual` are those of `site`.
    rules_known: bool,
    /// The device's tables have been read once and pairs are measured.
    started: bool,
    /// Why a device that has links is left as it is until something is applied.
    held: Option<String>,
    epoch: u64,
    /// There is no connection, and that has been said.
    lost: bool,
    /// Indices of links that are gone, and since when.
    retired: BTreeMap<LinkIndex, liveness::Nanos>,
    /// When a cabling fault of a pair was last logged: a storm of stray keep-alives is one fault.
    cabling: BTreeMap<u16, liveness::Nanos>,
    view: Arc<ArcSwap<View>>,
    /// Why the device, although it is connected, cannot be brought to what is wanted.
    trouble: watch::Sender<Option<String>>,
    /// Ports of an embedded pipeline.
    ports: Option<PortSet>,
}

impl<T: Target> Engine<T> {
    /// An engine for a configuration; it touches the device once it is connected.
    pub fn new(
        target: Arc<T>,
        keepalives: Keepalives,
        events: Arc<Events>,
        state_dir: StateDir,
        kept: Kept,
        site: Arc<Site>,
        ports: Option<PortSet>,
    ) -> Self {
        let ids = Ids::allocate(&site, &Ids::default());
        let condition = Condition::with_up(&site, |_| false);
        let view = View::new(
            site.clone(),
            Arc::new(ids.clone()),
            Arc::new(condition.clone()),
            Arc::new(kept.unit_modes.clone()),
            Arc::default(),
            0,
            target.profile(),
        );
        Engine {
            target,
            keepalives,
            events,
            state_dir,
            kept,
            site,
            ids,
            condition,
            actual: None,
            rules_known: false,
            started: false,
            held: None,
            epoch: 0,
            lost: true,
            retired: BTreeMap::new(),
            cabling: BTreeMap::new(),
            view: Arc::new(ArcSwap::from_pointee(view)),
            trouble: watch::Sender::new(None),
            ports,
        }
    }

    /// Touches no device that has links until something is applied: `reason` says why what there is to begin with may
    /// not be what is wanted.
    pub fn hold(&mut self, reason: String) {
        self.held = Some(reason);
    }

    /// What is known, for everything that only looks.
    #[must_use]
    pub fn view(&self) -> Arc<ArcSwap<View>> {
        self.view.clone()
    }

    /// Follows why the device, although it is connected, cannot be brought to what is wanted.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Runs until nobody commands any more.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut changes: mpsc::UnboundedReceiver<Event>,
    ) {
        let mut standing = self.target.standing();
        let first = standing.borrow_and_update().clone();
        self.follow(first).await;
        loop {
            let broken = self.actual.is_none() && matches!(*standing.borrow(), Standing::Primary(_));
            tokio::select! {
                biased;
                change = changes.recv() => match change {
                    Some(change) => {
                        let mut all = vec![change];
                        while let Ok(change) = changes.try_recv() {
                            all.push(change);
                        }
                        self.take(all).await;
                    }
                    None => return,
                },
                changed = standing.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let now = standing.borrow_and_update().clone();
                    self.follow(now).await;
                }
                command = commands.recv() => match command {
                    Some(command) => self.obey(command, &standing).await,
                    None => return,
                },
                () = tokio::time::sleep(REPAIR_AFTER), if broken => {
                    self.connect().await;
                }
            }
        }
    }

    /// The connection changed.
    async fn follow(&mut self, standing: Standing) {
        let address = self.target.address();
        let was_lost = std::mem::replace(&mut self.lost, matches!(standing, Standing::Lost(_)));
        match standing {
            Standing::Primary(_) => {
                self.events.log(
                    News::now(Severity::Info, EventKind::Target, &address, "connected as primary")
                        .change("lost", "primary"),
                );
                self.actual = None;
                self.connect().await;
            }
            Standing::Backup => {
                self.actual = None;
                self.events.log(News::now(
                    Severity::Error,
                    EventKind::Target,
                    &address,
                    "another controller is its primary",
                ));
            }
            Standing::Lost(reason) => {
                self.actual = None;
                // Each try that fails is not news.
                if !was_lost {
                    self.events.log(
                        News::now(Severity::Warning, EventKind::Target, &address, reason)
                            .change("primary", "lost"),
                    );
                }
            }
        }
    }

    /// Reads the device, starts measuring on the first time, and writes what differs.
    async fn connect(&mut self) {
        match self.try_connect().await {
            Ok(()) => {
                self.trouble.send_replace(None);
            }
            Err(error) => {
                self.actual = None;
                self.note_trouble(&error);
            }
        }
    }

    /// Says why it does not go on, once and not with every try.
    fn note_trouble(&self, error: &EngineError) {
        if let EngineError::Target(TargetError::Lost { .. }) = error {
            return; // the standing says so
        }
        let text = error.to_string();
        let is_new = self.trouble.send_if_modified(|trouble| {
            let is_new = trouble.as_ref() != Some(&text);
            *trouble = Some(text.clone());
            is_new
        });
        if is_new {
            self.events.log(News::now(
                Severity::Error,
                EventKind::Target,
                &self.target.address(),
                format!("{text}; trying again"),
            ));
        }
    }

    async fn try_connect(&mut self) -> Result<(), EngineError> {
        self.target.prepare().await?;
        let found = Tables::of(self.target.entries().await?);
        if let Some(reason) = self.held.clone().filter(|_| has_links(&found)) {
            return Err(EngineError::Held(reason));
        }
        if !self.started {
            let kept = self.kept.numbers.clone().filter(|_| !self.target.profile().keeps_metadata);
            let recovered = recover(&found, kept.map(Ids::from));
            self.ids = Ids::allocate(&self.site, &recovered.ids);
            self.keep_numbers();
            if let Err(error) = self.state_dir.save(&self.kept) {
                self.events.log(News::now(
                    Severity::Error,
                    EventKind::Configuration,
                    "running",
                    error.to_string(),
                ));
            }
            self.condition.stand_ins = standing_in(&self.site, &self.ids, &found);
            self.condition = self.condition_of(&self.site, &recovered.up);
            self.measure(&self.site.clone(), &self.ids.clone(), &recovered.up)?;
            self.started = true;
        }
        let updates = self.bring(found).await?;
        let (inserted, modified, deleted) = tally(&updates);
        if updates.is_empty() {
            tracing::info!("the data plane has the running configuration");
        } else {
            self.events.log(News::now(
                Severity::Info,
                EventKind::Target,
                &self.target.address(),
                format!("brought to the running configuration: {inserted} inserted, {modified} modified, {deleted} deleted"),
            ));
        }
        self.settle().await?;
        Ok(())
    }

    /// Keeps the numbers in force, where the device does not tell them.
    fn keep_numbers(&mut self) {
        self.kept.numbers = (!self.target.profile().keeps_metadata).then(|| Numbers::from(&self.ids));
    }

    /// The entries that were found, with the names that a device may have dropped: at the same place stands the same
    /// thing, since numbers are kept.
    fn named(&self, mut found: Tables, wanted: &Tables) -> Tables {
        if !self.target.profile().keeps_metadata {
            for (place, entry) in found.values_mut() {
                entry.metadata = wanted.get(place).map(|wanted| wanted.metadata.clone()).unwrap_or_default();
            }
        }
        found
    }

    /// Brings a device with these tables to the running configuration, rules included.
    async fn bring(&mut self, found: Tables) -> Result<Vec<Update>, TargetError> {
        let updates = tokio::task::block_in_place(|| {
            let wanted = Tables { rules: by_place(site::rules(&self.site, &self.ids)), rest: self.wanted() };
            let found = self.named(found, &wanted);
            let mut updates = Updates::default();
            updates.add(&found.rest, &wanted.rest);
            updates.add(&found.rules, &wanted.rules);
            self.actual = Some(found);
            self.rules_known = false;
            updates.in_order()
        });
        self.write(updates).await
    }

    /// Brings what depends on pairs and units to `wanted`.
    async fn change_to(&mut self, wanted: Entries) -> Result<Vec<Update>, TargetError> {
        let updates = tokio::task::block_in_place(|| {
            let mut updates = Updates::default();
            updates.add(&self.actual.clone().unwrap_or_default().rest, &wanted);
            updates.in_order()
        });
        self.write(updates).await
    }

    /// Writes; on success the device is known to have it, otherwise its state is unknown.
    async fn write(&mut self, updates: Vec<Update>) -> Result<Vec<Update>, TargetError> {
        if let Err(error) = self.target.write(updates.clone()).await {
            // A refusal is all or nothing; anything else leaves us ignorant, and the device is read again.
            if !matches!(error, TargetError::Refused { .. }) {
                self.actual = None;
            }
            return Err(error);
        }
        self.wrote(&updates);
        Ok(updates)
    }

    /// The device has taken them.
    fn wrote(&mut self, updates: &[Update]) {
        self.rules_known = true;
        self.actual.get_or_insert_default().take(updates);
        self.epoch += 1;
        self.publish();
    }

    /// The entries that are wanted now, without rules. Large sites take a while: other tasks go on meanwhile.
    fn wanted(&self) -> Entries {
        tokio::task::block_in_place(|| {
            by_place(site::desired_but_rules(&self.site, &self.ids, &self.condition))
        })
    }

    fn publish(&self) {
        let tables = self.actual.clone().unwrap_or_default();
        self.view.store(Arc::new(View::new(
            self.site.clone(),
            Arc::new(self.ids.clone()),
            Arc::new(self.condition.clone()),
            Arc::new(self.kept.unit_modes.clone()),
            Arc::new(tables),
            self.epoch,
            self.target.profile(),
        )));
    }

    /// Tells the liveness thread what to measure; pairs in `up` start as up.
    fn measure(&self, site: &Site, ids: &Ids, up: &BTreeSet<PairName>) -> Result<(), EngineError> {
        let (units, ports) = supervised(site, ids, &self.kept.unit_modes, up)?;
        self.keepalives.tell(LivenessCommand::Configure { units, ports })?;
        Ok(())
    }

    /// The condition that follows from the pairs in `up`, with units' modes by hand.
    fn condition_of(&self, site: &Site, up: &BTreeSet<PairName>) -> Condition {
        let mut condition = Condition::with_up(site, |pair| up.contains(pair));
        for unit in site.units.keys() {
            match self.kept.unit_modes.get(unit) {
                Some(UnitMode::Bypass) => {
                    condition.units.insert(unit.clone(), UnitForwarding::Bypass);
                }
                Some(UnitMode::Primary) => {
                    condition.units.insert(unit.clone(), UnitForwarding::Primary);
                }
                Some(UnitMode::Auto) | None => {}
            }
        }
        // Spares stay where they stand in, as far as they can.
        for unit in site.units.values() {
            let mut seed = condition.clone();
            seed.stand_ins.insert(unit.name.clone(), self.condition.stand_ins_of(&unit.name));
            let stand_ins = seed.next_stand_ins(unit);
            condition.stand_ins.insert(unit.name.clone(), stand_ins);
        }
        condition
    }

    /// Reads the liveness thread's state and brings the tables to it, as after a new configuration.
    async fn settle(&mut self) -> Result<(), EngineError> {
        let status = self.keepalives.status().await?;
        self.condition = self.condition_from(&status);
        let wanted = self.wanted();
        self.change_to(wanted).await?;
        Ok(())
    }

    fn condition_from(&self, status: &Status) -> Condition {
        let name_of: BTreeMap<u16, &PairName> =
            self.ids.pairs.iter().map(|(name, id)| (id.0, name)).collect();
        let up = status
            .pairs
            .iter()
            .filter(|pair| pair.state.carries())
            .filter_map(|pair| name_of.get(&pair.pair.0).map(|name| (*name).clone()))
            .collect();
        self.condition_of(&self.site, &up)
    }

    /// Pairs and units changed: first the tables, one small write, then the log, then shares that move.
    async fn take(&mut self, changes: Vec<Event>) {
        for change in &changes {
            if let Event::Pair(transition) = change
                && let Some(name) = self.pair_name(PairId(transition.pair.0))
            {
                if transition.to.carries() {
                    self.condition.up.insert(name);
                } else {
                    self.condition.up.remove(&name);
                }
            }
        }
        self.condition = self.condition_of(&self.site, &self.condition.up.clone());
        let quick = self.quick_updates();
        let mut written = None;
        if let Some(actual) = self.actual.as_mut().filter(|_| !quick.is_empty()) {
            match self.target.write(quick.clone()).await {
                Ok(()) => {
                    written = Some(clock::now());
                    actual.take(&quick);
                }
                Err(error) => {
                    tracing::warn!("{error}");
                    self.actual = None;
                }
            }
        }
        for change in changes {
            if let Event::Cabling(fault) = &change {
                let last = self.cabling.insert(fault.pair.0, fault.at);
                if last.is_some_and(|last| fault.at.since(last).0 < CABLING_EVERY) {
                    continue;
                }
            }
            if let Some(mut news) = news::of(&change, &self.ids) {
                news.written = written;
                self.events.log(news);
            }
        }
        if self.actual.is_some() && self.site.units.values().any(|unit| unit.rebalance) {
            let wanted = self.wanted();
            if let Err(error) = self.change_to(wanted).await {
                tracing::warn!("{error}; trying again");
            }
        } else {
            self.publish();
        }
    }

    /// Changes of pair states and units alone: what takes a pair or a unit out at once.
    fn quick_updates(&self) -> Vec<Update> {
        let Some(actual) = &self.actual else { return Vec::new() };
        let wanted = site::states(&self.site, &self.ids, &self.condition);
        let mut ups = Vec::new();
        let mut downs = Vec::new();
        for entry in wanted {
            let state = match TableEntry::parse(&entry) {
                Ok(TableEntry::PairState(state)) => Some(state.forwarding),
                Ok(TableEntry::Unit(_)) => None,
                _ => continue,
            };
            if actual.get(&entry.place()).is_some_and(|is| *is != entry) {
                match state {
                    Some(PairForwarding::Up) => ups.push(Update::Modify(entry)),
                    _ => downs.push(Update::Modify(entry)),
                }
            }
        }
        downs.extend(ups);
        downs
    }

    fn pair_name(&self, id: PairId) -> Option<PairName> {
        self.ids.pairs.iter().find(|(_, other)| **other == id).map(|(name, _)| name.clone())
    }

    async fn obey(&mut self, command: Command, standing: &watch::Receiver<Standing>) {
        // Whoever asked may have gone; what was asked is done all the same.
        match command {
            Command::Apply { site, origin, answer } => {
                let result = self.apply(site, &origin, standing).await;
                let _ = answer.send(result);
            }
            Command::Effects { site, answer } => {
                let _ = answer.send(self.effects(&site));
            }
            Command::SetUnitMode { unit, mode, answer } => {
                let _ = answer.send(self.set_unit_mode(&unit, mode, standing).await);
            }
            Command::Drain(answer) => {
                let _ = answer.send(self.drain().await);
            }
        }
    }

    /// There is a device that this controller programs.
    fn connected(&self, standing: &watch::Receiver<Standing>) -> Result<(), EngineError> {
        let reason = match standing.borrow().clone() {
            Standing::Primary(_) => return Ok(()),
            Standing::Backup => "another controller is its primary".to_owned(),
            Standing::Lost(reason) => reason,
        };
        Err(TargetError::Lost { address: self.target.address(), reason }.into())
    }

    /// The device's tables must be known before they are changed.
    async fn reachable(&mut self, standing: &watch::Receiver<Standing>) -> Result<(), EngineError> {
        if self.actual.is_none() {
            self.connected(standing)?;
            self.repair().await?;
        }
        Ok(())
    }

    /// Reads the device and brings it to the running configuration, trying several times.
    async fn repair(&mut self) -> Result<(), TargetError> {
        let mut last = None;
        for _ in 0..REPAIRS {
            let read = match self.target.entries().await {
                Ok(read) => Tables::of(read),
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            match self.bring(read).await {
                Ok(_) => {
                    self.trouble.send_replace(None);
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
        }
        self.actual = None;
        Err(last.unwrap_or_else(|| TargetError::Lost {
            address: self.target.address(),
            reason: "it cannot be repaired".to_owned(),
        }))
    }

    async fn set_unit_mode(
        &mut self,
        unit: &str,
        mode: UnitMode,
        standing: &watch::Receiver<Standing>,
    ) -> Result<(), EngineError> {
        if !self.site.units.contains_key(unit) {
            return Err(EngineError::UnknownUnit {
                unit: unit.to_owned(),
                known: self.site.units.keys().cloned().collect::<Vec<_>>().join(", "),
            });
        }
        self.reachable(standing).await?;
        let before = self.kept.clone();
        match mode {
            UnitMode::Auto => self.kept.unit_modes.remove(unit),
            UnitMode::Bypass | UnitMode::Primary => self.kept.unit_modes.insert(unit.to_owned(), mode),
        };
        let old = self.condition.clone();
        self.condition = self.condition_of(&self.site, &self.condition.up.clone());
        let wanted = self.wanted();
        if let Err(error) = self.change_to(wanted).await {
            self.kept = before;
            self.condition = old;
            if self.actual.is_none() && self.repair().await.is_err() {
                return Err(EngineError::Repairing { cause: error });
            }
            return Err(error.into());
        }
        let was = before.unit_modes.get(unit).copied().unwrap_or(UnitMode::Auto);
        if was != mode {
            let severity = if mode == UnitMode::Auto { Severity::Info } else { Severity::Warning };
            let news = News::now(severity, EventKind::Mode, unit, "set by hand");
            self.events.log(news.change(mode_name(was), mode_name(mode)));
        }
        // In an emergency the traffic comes first: a full disk must not stand in the way of a bypass.
        if let Err(error) = self.state_dir.save(&self.kept) {
            let reason = format!("mode {mode:?} is in force, but a restart would not find it: {error}");
            self.events.log(News::now(Severity::Error, EventKind::Unit, unit, reason));
        }
        self.measure(&self.site.clone(), &self.ids.clone(), &self.condition.up.clone())?;
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), EngineError> {
        for unit in self.site.units.keys() {
            self.condition.units.insert(unit.clone(), UnitForwarding::Bypass);
        }
        let wanted = self.wanted();
        self.change_to(wanted).await?;
        Ok(())
    }
}

/// What a device's entries tell a controller that did not write them.
struct Recovered {
    ids: Ids,
    up: BTreeSet<PairName>,
}

/// Operators' traffic may depend on the device.
fn has_links(tables: &Tables) -> bool {
    tables.rest.values().any(|entry| entry.table == dataplane::tables::LINKS.id)
}

/// Reads the numbers in force, or takes those that were kept, and the pairs that are up.
fn recover(entries: &Tables, kept: Option<Ids>) -> Recovered {
    let mut ids = Ids::default();
    let mut up_ids = BTreeSet::new();
    for entry in entries.values() {
        let name = || String::from_utf8_lossy(&entry.metadata).into_owned();
        match TableEntry::parse(entry) {
            Ok(TableEntry::Link(link)) if link.forwarding.port().is_some() => {
                ids.links.insert(name(), link.link);
            }
            Ok(TableEntry::Unit(unit)) => {
                ids.units.insert(name(), unit.unit);
            }
            Ok(TableEntry::PairPort(port)) => {
                if let Ok(pair) = name().parse() {
                    ids.pairs.insert(pair, port.pair);
                }
            }
            Ok(TableEntry::Rule(rule)) => {
                ids.flows.insert(name(), rule.priority);
            }
            Ok(TableEntry::PairState(state)) if state.forwarding == PairForwarding::Up => {
                up_ids.insert(state.pair);
            }
            _ => {}
        }
    }
    let ids = kept.unwrap_or(ids);
    let up = ids.pairs.iter().filter(|(_, id)| up_ids.contains(id)).map(|(name, _)| name.clone()).collect();
    Recovered { ids, up }
}

/// Which spares stand in on a device: those that serve buckets of others.
fn standing_in(site: &Site, ids: &Ids, entries: &Tables) -> BTreeMap<String, BTreeMap<String, String>> {
    let names: BTreeMap<PairId, &PairName> = ids.pairs.iter().map(|(name, id)| (*id, name)).collect();
    let mut serving: BTreeMap<(UnitId, u16), PairId> = BTreeMap::new();
    for entry in entries.values() {
        if let Ok(TableEntry::Bucket(bucket)) = TableEntry::parse(entry)
            && let Some((pair, _)) = bucket.forwarding.serving()
        {
            serving.insert((bucket.unit, bucket.bucket.0), pair);
        }
    }
    let mut all = BTreeMap::new();
    for unit in site.units.values() {
        let (Some(id), Some(table)) = (ids.units.get(&unit.name), unit.bucket_table()) else { continue };
        let spares = unit.shape().spares;
        let mut stand_ins = BTreeMap::new();
        for (bucket, (home, _)) in (0..).zip(table.home()) {
            let now = serving.get(&(*id, bucket)).and_then(|pair| names.get(pair));
            if let Some(spare) = now.filter(|now| now.unit == unit.name && spares.contains(&now.pair)) {
                stand_ins.insert(home.to_owned(), spare.pair.clone());
            }
        }
        all.insert(unit.name.clone(), stand_ins);
    }
    all
}

/// What the liveness thread measures for a site.
fn supervised(
    site: &Site,
    ids: &Ids,
    modes: &BTreeMap<String, UnitMode>,
    up: &BTreeSet<PairName>,
) -> Result<(Vec<UnitConfig>, PairPorts), EngineError> {
    let mut units = Vec::new();
    let mut ports = PairPorts::new();
    for unit in site.units.values() {
        let Some(unit_id) = ids.units.get(&unit.name) else { continue };
        let config = site.profile_of(unit);
        let profile = Profile::new(ProfileSettings {
            initial_delay_ms: config.initial_delay,
            interval_ms: config.interval,
            probes_down_count: config.probes_down_count,
            probes_up_count: config.probes_up_count,
            max_delay_us: config.max_delay,
            active_pairs: config.active_pairs as u16,
            sampling_count: config.sampling_count as u16,
            suspend_limit_ms: config.suspend_limit,
            ..ProfileSettings::default()
        })
        .map_err(|error| EngineError::Profile { profile: config.name.clone(), reason: error.to_string() })?;
        let mut pairs = Vec::new();
        for pair in unit.pairs.values() {
            let name = PairName { unit: unit.name.clone(), pair: pair.name.clone() };
            let (Some(id), Some(lan), Some(wan)) =
                (ids.pairs.get(&name), site.ports.get(&pair.lan_port), site.ports.get(&pair.wan_port))
            else {
                continue; // the check has made sure of ports and numbers
            };
            ports.insert(*id, PerDirection { lan_to_wan: lan.id, wan_to_lan: wan.id });
            let mut measured = PairConfig::new(liveness::PairKey(id.0));
            measured.role = match pair.role {
                PairRole::Active => Role::Active,
                PairRole::Spare => Role::Spare,
            };
            measured.admin = match pair.admin {
                site::Admin::Up => Admin::Up,
                site::Admin::Down => Admin::Down,
                site::Admin::Drain => Admin::Drain,
            };
            measured.initial = if up.contains(&name) { Initial::AdoptedUp } else { Initial::Fresh };
            pairs.push(measured);
        }
        let mut unit_config = UnitConfig::new(UnitKey(unit_id.0.into()), profile, pairs);
        unit_config.rebalance = unit.rebalance;
        unit_config.mode = match modes.get(&unit.name) {
            Some(UnitMode::Bypass) => liveness::UnitMode::Bypass,
            Some(UnitMode::Primary) => liveness::UnitMode::Primary,
            Some(UnitMode::Auto) | None => liveness::UnitMode::Auto,
        };
        units.push(unit_config);
    }
    Ok((units, ports))
}

/// The name of a mode as clients see it.
fn mode_name(mode: UnitMode) -> &'static str {
    match mode {
        UnitMode::Auto => "auto",
        UnitMode::Bypass => "bypass",
        UnitMode::Primary => "primary",
    }
}

/// The name of a state as clients see it.
#[must_use]
pub fn pair_state_name(state: PairState) -> &'static str {
    match state {
        PairState::Init => "init",
        PairState::Up => "up",
        PairState::Down => "down",
        PairState::AdminDown => "admin-down",
        PairState::Draining => "draining",
        PairState::Held => "held",
    }
}

/// The name of a state as clients see it.
#[must_use]
pub fn unit_state_name(state: UnitState) -> &'static str {
    match state {
        UnitState::Up => "up",
        UnitState::Bypass => "bypass",
        UnitState::Primary => "primary",
    }
}

/// A unit's number as liveness has it.
#[must_use]
pub fn unit_id(key: UnitKey) -> UnitId {
    UnitId(key.0 as u8)
}
