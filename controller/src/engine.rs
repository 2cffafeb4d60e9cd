//! The one writer of tables: takes changes of configuration, of pairs and units and of the connection, and
//! brings the data plane to what they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::{Applied, EventKind, Severity, UnitMode};
use arc_swap::ArcSwap;
use dataplane::entry::Update;
use dataplane::tables::{BucketForwarding, PairForwarding, TableEntry};
use dataplane::{LinkIndex, PairId, UnitId};
use liveness::{CoreState, Event, PairState, UnitKey, UnitState};
use site::{Condition, Ids, PairName, Site, UnitForwarding};
use swpipe::port_set::PortSet;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::clock;
use crate::difference::{Entries, Tables, Updates, by_place, tally};
use crate::event::{Events, News};
use crate::keepalives::{Command as LivenessCommand, Keepalives, Status};
use crate::state_dir::{Kept, Numbers, StateDir, StateDirError};
use crate::target::{Standing, Target, TargetError};
use crate::view::View;
use by_cost::Allowances;
use recovery::{Standings, recover, still_moved, still_probed};
use supervised::supervised;

mod apply;
mod by_cost;
mod news;
mod recovery;
mod supervised;

/// Tries to bring the device back to the running configuration after a failed apply, before answering.
const REPAIRS: usize = 20;
/// Cabling faults of one pair that follow one another within this, ns, are one.
const CABLING_EVERY: u64 = 1_000_000_000;
/// How often the costs of pairs with `weight auto` are looked at.
const COSTS_EVERY: Duration = Duration::from_secs(1);
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
    /// How soon `weight auto` may move buckets.
    allowances: Allowances,
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
            allowances: Allowances::default(),
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
        let mut costs = tokio::time::interval(COSTS_EVERY);
        costs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let by_cost = self.site.units.values().any(by_cost::is_auto);
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
                _ = costs.tick(), if by_cost => self.balance_by_cost().await,
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
            let standing = Standings::of(&self.site, &self.ids, &recovered.up, &found);
            self.condition.stand_ins = standing.stand_ins;
            self.condition.hung = standing.hung;
            self.condition.moved = standing.moved;
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
        let measured = supervised(site, ids, &self.kept.unit_modes, up)?;
        self.keepalives.tell(LivenessCommand::Configure(Box::new(measured)))?;
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
        condition.hung = still_probed(site, &self.condition.hung);
        condition.moved = still_moved(site, &self.condition.moved);
        condition.back_up(site, |unit| self.kept.unit_modes.contains_key(unit));
        condition
    }

    /// Reads the liveness thread's state and brings the tables to it, as after a new configuration.
    async fn settle(&mut self) -> Result<(), EngineError> {
        let status = self.keepalives.status().await?;
        self.see_cores(&status);
        let before = self.condition.units.clone();
        self.condition = self.condition_from(&status);
        self.tell_backups(&before, None);
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
        let cores = self.take_cores(&changes);
        let before = self.condition.units.clone();
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
        self.tell_backups(&before, written);
        let moves = cores
            || !self.condition.hung.is_empty()
            || !self.condition.moved.is_empty()
            || self.site.units.values().any(|unit| unit.rebalance);
        if self.actual.is_some() && moves {
            let wanted = self.wanted();
            if let Err(error) = self.change_to(wanted).await {
                tracing::warn!("{error}; trying again");
            }
        } else {
            self.publish();
        }
    }

    /// Logs which units others stand in for now, and which have their traffic back.
    fn tell_backups(&self, before: &BTreeMap<String, UnitForwarding>, written: Option<liveness::Nanos>) {
        let backup = |of: &BTreeMap<String, UnitForwarding>, unit: &str| match of.get(unit) {
            Some(UnitForwarding::Backup(backup)) => Some(backup.clone()),
            _ => None,
        };
        for unit in self.site.units.keys() {
            let (was, is) = (backup(before, unit), backup(&self.condition.units, unit));
            if was == is {
                continue;
            }
            let state = |backup: &Option<String>, other: &Option<UnitForwarding>| match (backup, other) {
                (Some(_), _) => "backup",
                (None, Some(UnitForwarding::Bypass)) => "bypass",
                (None, Some(UnitForwarding::Primary)) => "primary",
                (None, _) => "up",
            };
            let (severity, reason) = match &is {
                Some(backup) => (Severity::Warning, format!("backup: unit {backup} has its traffic")),
                None => (Severity::Info, "backup: no unit stands in for it any more".to_owned()),
            };
            let mut news = News::now(severity, EventKind::Unit, unit, reason).change(
                state(&was, &before.get(unit).cloned()),
                state(&is, &self.condition.units.get(unit).cloned()),
            );
            news.written = written;
            self.events.log(news);
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
        downs.extend(self.hung_buckets(actual));
        downs.extend(ups);
        downs
    }

    /// Takes the buckets of cores that hang out of service, wherever they are on the device.
    fn hung_buckets(&self, actual: &Tables) -> Vec<Update> {
        let mut hung: BTreeMap<(PairId, u8), BucketForwarding> = BTreeMap::new();
        for (pair, cores) in &self.condition.hung {
            let primary = self.condition.units.get(&pair.unit) == Some(&UnitForwarding::Primary);
            let (Some(id), Some(unit)) = (self.ids.pairs.get(pair), self.site.units.get(&pair.unit)) else {
                continue;
            };
            if !primary {
                hung.extend(cores.iter().map(|core| ((*id, *core), site::core_down(unit))));
            }
        }
        if hung.is_empty() {
            return Vec::new();
        }
        let buckets = actual.rest.values().filter(|entry| entry.table == dataplane::tables::BUCKETS.id);
        buckets
            .filter_map(|entry| {
                let Ok(TableEntry::Bucket(mut bucket)) = TableEntry::parse(entry) else { return None };
                let (pair, core) = bucket.forwarding.serving()?;
                bucket.forwarding = *hung.get(&(pair, core.0))?;
                Some(Update::Modify(bucket.entry()))
            })
            .collect()
    }

    /// Notes which cores hang. Of one that nothing is known of yet, what was known before stands.
    fn see_cores(&mut self, status: &Status) {
        for pair in status.pairs.iter().filter(|pair| !pair.cores.is_empty()) {
            let Some(name) = self.pair_name(PairId(pair.pair.0)) else { continue };
            let cores = self.condition.hung.entry(name).or_default();
            for core in &pair.cores {
                match core.state {
                    CoreState::Down => drop(cores.insert(core.core)),
                    CoreState::Up => drop(cores.remove(&core.core)),
                    CoreState::Init => {}
                }
            }
        }
        self.condition.hung.retain(|_, cores| !cores.is_empty());
    }

    /// Notes which cores hang; whether any changed.
    fn take_cores(&mut self, changes: &[Event]) -> bool {
        let mut changed = false;
        for change in changes {
            let Event::Core(transition) = change else { continue };
            let Some(name) = self.pair_name(PairId(transition.pair.0)) else { continue };
            let cores = self.condition.hung.entry(name).or_default();
            changed |= match transition.to {
                CoreState::Down => cores.insert(transition.core),
                CoreState::Up => cores.remove(&transition.core),
                CoreState::Init => false,
            };
        }
        self.condition.hung.retain(|_, cores| !cores.is_empty());
        changed
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
        self.tell_backups(&old.units, None);
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

/// Operators' traffic may depend on the device.
fn has_links(tables: &Tables) -> bool {
    tables.rest.values().any(|entry| entry.table == dataplane::tables::LINKS.id)
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
