//! All pairs of all units under one clock.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::pair::{Judgement, Pair};
use crate::unit::Unit;
use crate::{
    Actions, CablingFault, Direction, Event, Nanos, PairKey, PairStatus, PairTransition, Reason, Rejection,
    Side, Suspicion, SuspicionChange, SuspicionNotice, UnitConfig, UnitKey, UnitStatus, Verdict,
};

/// A poll that comes later than this after the deadline it should have met ends a gap: a time in which nobody watched.
///
/// The process was stopped, or starved. Answers may wait unread, or may have been dropped for want of room; either
/// way the silence says nothing about the appliances. Keep-alives whose time ran out in the gap are voided, neither
/// good nor lost, and a running suspension is prolonged by the gap. Two gaps in a row, with nothing learnt about a
/// direction in between, void only once: a controller that is always late still finds a dead appliance.
pub const GAP_TOLERANCE: Nanos = Nanos::from_millis(20);

/// Supervises all pairs of all units. See the crate's page for a turn of the loop around it.
///
/// Every function that takes `now` wants the same monotonic clock. Time stamps of keep-alives may come from another
/// clock (that of the data plane), as long as transmit and receive time come from the same one.
///
/// Hand over everything that arrived before you poll: a keep-alive is judged by its own time stamps, so one that was
/// received in time and read late is good, unless a poll gave it up in between.
#[derive(Clone, Debug, Default)]
pub struct Supervision {
    pairs: BTreeMap<PairKey, Pair>,
    units: BTreeMap<UnitKey, Unit>,
    /// One entry per pair with a deadline: the entry that the pair's `timer` names.
    timers: BTreeSet<(Nanos, PairKey)>,
    /// News since the last poll.
    news: Vec<Event>,
    suspicion: Suspicion,
    /// Counts the gaps.
    gaps: u64,
    /// No removed pair used this sequence number or a greater one.
    fresh_sequence: u64,
}

/// Why a configuration is refused. Nothing of it has been applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigureError {
    /// Two units share a key.
    #[error("{0} is configured twice, give every unit a key of its own")]
    DuplicateUnit(UnitKey),
    /// Two pairs share a key, in one unit or in two.
    #[error("{0} is configured twice, a pair belongs to one unit and has a key of its own")]
    DuplicatePair(PairKey),
}

/// A pair that is not configured, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not supervised, configure it first")]
pub struct UnknownPair(pub PairKey);

impl Supervision {
    /// Supervises nothing yet.
    pub fn new() -> Supervision {
        Supervision::default()
    }

    /// Makes these the units and pairs.
    ///
    /// Pairs that stay keep their state and statistics, whatever else changes about them, and their place on the
    /// interval. New ones start with the initial delay. Removed ones lose everything at once; their keep-alives that
    /// still come back find an unknown pair. A changed initial-delay counts from the next start of a pair.
    ///
    /// Adding or removing is no transition; read [`Supervision::pairs`] and [`Supervision::units`] afterwards.
    ///
    /// # Errors
    /// A key that is used twice; then nothing changes.
    pub fn configure(&mut self, units: &[UnitConfig], now: Nanos) -> Result<(), ConfigureError> {
        let mut unit_keys = BTreeSet::new();
        let mut pair_keys = BTreeSet::new();
        for unit in units {
            if !unit_keys.insert(unit.key) {
                return Err(ConfigureError::DuplicateUnit(unit.key));
            }
            for pair in &unit.pairs {
                if !pair_keys.insert(pair.key) {
                    return Err(ConfigureError::DuplicatePair(pair.key));
                }
            }
        }

        let gone: Vec<PairKey> = self.pairs.keys().copied().filter(|key| !pair_keys.contains(key)).collect();
        for key in gone {
            self.remove(key);
        }
        self.units.retain(|key, _| unit_keys.contains(key));

        let mut phases = self.phases_for(&pair_keys);
        for config in units {
            for pair in &config.pairs {
                if let Some(known) = self.pairs.get_mut(&pair.key) {
                    self.news
                        .extend(known.reconfigure(pair, config.key, config.profile, now).map(Event::Pair));
                } else {
                    let phase = phases.remove(&pair.key).unwrap_or_default();
                    let new = Pair::new(pair, config.key, config.profile, phase, self.fresh_sequence, now);
                    self.pairs.insert(pair.key, new);
                }
                self.reschedule(pair.key);
            }
            match self.units.get_mut(&config.key) {
                Some(known) => known.reconfigure(config),
                None => {
                    // Its first state is no transition.
                    let mut unit = Unit::new(config, now);
                    let pairs = config.pairs.iter().filter_map(|pair| self.pairs.get(&pair.key));
                    unit.settle(pairs.map(|pair| (pair.role, pair.state())), now);
                    self.units.insert(config.key, unit);
                }
            }
        }
        for key in unit_keys {
            self.settle_unit(key, now);
        }
        self.lift_moot_suspicion(now);
        Ok(())
    }

    /// A port of a pair gained or lost carrier. Losing it takes the pair down at once, suspicion or not.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn carrier(
        &mut self,
        pair: PairKey,
        side: Side,
        present: bool,
        now: Nanos,
    ) -> Result<(), UnknownPair> {
        let transition = self.known(pair)?.set_carrier(side, present, now);
        self.reschedule(pair);
        self.report(transition);
        self.lift_moot_suspicion(now);
        Ok(())
    }

    /// A keep-alive came back: its tag is right, it is of this instance, and it came the way it should.
    /// `transmit` and `receive` are its time stamps, of one clock.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_received(
        &mut self,
        pair: PairKey,
        direction: Direction,
        sequence: u64,
        transmit: Nanos,
        receive: Nanos,
        now: Nanos,
    ) -> Result<Verdict, UnknownPair> {
        let known = self.known(pair)?;
        let verdict = known.receive(direction, sequence, transmit, receive, now);
        if verdict == Verdict::Good && known.does_well() {
            self.take_heart(now);
        }
        self.judge(pair, now);
        self.reschedule(pair);
        Ok(verdict)
    }

    /// A keep-alive was turned away before its sequence number was looked at. Count it for the pair that it names, or,
    /// where its tag is wrong and its fields can't be trusted, for the pair whose port it came by.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_rejected(
        &mut self,
        pair: PairKey,
        direction: Direction,
        why: Rejection,
        now: Nanos,
    ) -> Result<(), UnknownPair> {
        let fault = self.known(pair)?.path_mut(direction).reject(why);
        self.news.extend(fault.map(|fault| Event::Cabling(CablingFault { pair, direction, fault, at: now })));
        Ok(())
    }

    /// A keep-alive of [`Actions::probes`] could not be sent: what was never sent is not lost.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_unsent(
        &mut self,
        pair: PairKey,
        direction: Direction,
        sequence: u64,
    ) -> Result<(), UnknownPair> {
        self.known(pair)?.unsent(direction, sequence);
        self.reschedule(pair);
        Ok(())
    }

    /// When to poll next: an instant that has passed if there is news already, `None` if there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let news = self.news.first().map(Event::at);
        let timer = self.timers.first().map(|(due, _)| *due);
        [news, timer, self.suspicion.until()].into_iter().flatten().min()
    }

    /// Does everything that is due at `now`: says which keep-alives to send and what changed since the last poll.
    ///
    /// A late poll neither moves later slots nor makes up for missed ones: each pair sends at most one keep-alive per
    /// direction, and a slot never sent is not a loss. See also [`GAP_TOLERANCE`].
    pub fn poll(&mut self, now: Nanos) -> Actions {
        let late_by = self.timers.first().map_or(Nanos::ZERO, |(due, _)| now.since(*due));
        let gap = (late_by > GAP_TOLERANCE).then(|| {
            self.gaps += 1;
            if let Suspicion::Suspended { until, .. } = &mut self.suspicion {
                *until = *until + late_by;
            }
            self.gaps
        });
        let mut probes = Vec::new();
        while let Some((_, key)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            match self.pairs.get_mut(&key).and_then(|pair| pair.attend(now, gap)) {
                Some(sent) => probes.extend(sent),
                None => self.judge(key, now),
            }
            self.reschedule(key);
        }
        if self.suspicion.until().is_some_and(|until| until <= now) {
            self.believe(now);
        }
        Actions { probes, events: std::mem::take(&mut self.news) }
    }

    /// All pairs in the order of their keys.
    pub fn pairs(&self) -> impl Iterator<Item = PairStatus> {
        self.pairs.values().map(Pair::status)
    }

    /// One pair.
    pub fn pair(&self, key: PairKey) -> Option<PairStatus> {
        self.pairs.get(&key).map(Pair::status)
    }

    /// All units in the order of their keys.
    pub fn units(&self) -> impl Iterator<Item = &UnitStatus> {
        self.units.values().map(Unit::status)
    }

    /// One unit.
    pub fn unit(&self, key: UnitKey) -> Option<&UnitStatus> {
        self.units.get(&key).map(Unit::status)
    }

    /// Whether the controller's own path is under suspicion.
    pub fn suspicion(&self) -> Suspicion {
        self.suspicion
    }

    fn known(&mut self, key: PairKey) -> Result<&mut Pair, UnknownPair> {
        self.pairs.get_mut(&key).ok_or(UnknownPair(key))
    }

    fn remove(&mut self, key: PairKey) {
        if let Some(pair) = self.pairs.remove(&key) {
            self.fresh_sequence = self.fresh_sequence.max(pair.next_sequence());
            if let Some(due) = pair.timer {
                self.timers.remove(&(due, key));
            }
        }
    }

    /// Brings the queue of deadlines in line with the pair.
    fn reschedule(&mut self, key: PairKey) {
        if let Some(pair) = self.pairs.get_mut(&key) {
            let due = pair.deadline();
            let was = std::mem::replace(&mut pair.timer, due);
            if was != due {
                if let Some(was) = was {
                    self.timers.remove(&(was, key));
                }
                if let Some(due) = due {
                    self.timers.insert((due, key));
                }
            }
        }
    }

    /// Places on the interval for those of `wanted` that are new. The first pairs are spaced evenly; later ones each
    /// take the middle of the widest space, so that nobody's place ever moves.
    fn phases_for(&self, wanted: &BTreeSet<PairKey>) -> BTreeMap<PairKey, u32> {
        const TURN: u64 = 1 << 32;
        let new: Vec<PairKey> = wanted.iter().copied().filter(|key| !self.pairs.contains_key(key)).collect();
        if self.pairs.is_empty() {
            let count = new.len() as u64;
            return new.into_iter().zip(0u64..).map(|(key, i)| (key, (i * TURN / count) as u32)).collect();
        }
        let mut taken: Vec<u32> = self.pairs.values().map(Pair::phase).collect();
        taken.sort_unstable();
        let mut phases = BTreeMap::new();
        for key in new {
            let (mut widest, mut place) = (0, 0);
            for (i, &start) in taken.iter().enumerate() {
                // Around the turn from the last to the first; a single pair has the whole turn behind it.
                let end = taken.get(i + 1).map_or(u64::from(taken[0]) + TURN, |&next| u64::from(next));
                let width = end - u64::from(start);
                if width > widest {
                    (widest, place) = (width, (u64::from(start) + width / 2) as u32);
                }
            }
            let at = taken.partition_point(|&phase| phase < place);
            taken.insert(at, place);
            phases.insert(key, place);
        }
        phases
    }

    /// Lets the consecutive outcomes of a pair have their effect.
    fn judge(&mut self, key: PairKey, now: Nanos) {
        let Some(pair) = self.pairs.get_mut(&key) else { return };
        match pair.judge() {
            Judgement::Stay => {}
            Judgement::Rise(reason) => {
                let transition = pair.rise(reason, now);
                self.report(transition);
            }
            Judgement::Fall(reason) => self.fall(key, reason, now),
        }
    }

    fn fall(&mut self, key: PairKey, reason: Reason, now: Nanos) {
        let carried = self.pairs.get(&key).is_some_and(|pair| pair.state().carries());
        if carried {
            let doubted = match self.suspicion {
                Suspicion::Suspended { .. } => true,
                Suspicion::None => self.suspect(now),
                Suspicion::Believed { .. } => false,
            };
            if doubted {
                return;
            }
        }
        let transition = self.pairs.get_mut(&key).and_then(|pair| pair.fall(reason, now));
        self.report(transition);
    }

    /// A pair reached its count of losses: suspends belief if all the others that were up fail as well.
    fn suspect(&mut self, now: Nanos) -> bool {
        let carrying = self.pairs.values().filter(|pair| pair.state().carries());
        let window = carrying.map(|pair| pair.profile().interval()).max().unwrap_or_default();
        let mut pairs = 0;
        let mut limit = None;
        let mut fallen = Vec::new();
        for (key, pair) in &self.pairs {
            let fell = pair.fell_within(window, now);
            if fell {
                fallen.push(*key);
            } else if !pair.state().carries() {
                continue;
            }
            if !pair.is_failing() {
                return false;
            }
            pairs += 1;
            let own = pair.profile().suspend_limit();
            limit = Some(limit.map_or(own, |limit: Nanos| limit.min(own)));
        }
        let Some(limit) = limit.filter(|limit| pairs >= 2 && *limit > Nanos::ZERO) else { return false };
        let until = now + limit;
        self.suspicion = Suspicion::Suspended { since: now, until };
        self.notice(SuspicionChange::LivenessSuspended { pairs, until }, now);
        for key in fallen {
            let transition = self.pairs.get_mut(&key).and_then(|pair| pair.rise(Reason::Suspended, now));
            self.report(transition);
        }
        true
    }

    /// A pair does well, so the path that all share is not to blame.
    fn take_heart(&mut self, now: Nanos) {
        match self.suspicion {
            Suspicion::None => {}
            Suspicion::Believed { .. } => self.suspicion = Suspicion::None,
            Suspicion::Suspended { .. } => self.resume(now),
        }
    }

    /// Ends a suspension. Pairs that were kept up start over: what they lost meanwhile can't be told from what the
    /// common fault took, and their keep-alives under way were sent before it ended.
    fn resume(&mut self, now: Nanos) {
        self.suspicion = Suspicion::None;
        self.notice(SuspicionChange::Resumed, now);
        let kept = self.pairs.iter_mut().filter(|(_, pair)| pair.state().carries());
        let keys: Vec<PairKey> = kept
            .map(|(key, pair)| {
                pair.start_over();
                *key
            })
            .collect();
        for key in keys {
            self.reschedule(key);
        }
    }

    /// Ends a suspension that has no pair left to keep up.
    fn lift_moot_suspicion(&mut self, now: Nanos) {
        let moot = !self.pairs.values().any(|pair| pair.state().carries());
        if moot && matches!(self.suspicion, Suspicion::Suspended { .. }) {
            self.resume(now);
        }
    }

    fn believe(&mut self, now: Nanos) {
        self.suspicion = Suspicion::Believed { since: now };
        self.notice(SuspicionChange::Believed, now);
        let keys: Vec<PairKey> = self.pairs.keys().copied().collect();
        for key in keys {
            self.judge(key, now);
        }
    }

    fn notice(&mut self, change: SuspicionChange, at: Nanos) {
        self.news.push(Event::Suspicion(SuspicionNotice { change, at }));
    }

    /// Makes a transition of a pair known, and what follows from it for its unit.
    fn report(&mut self, transition: Option<PairTransition>) {
        if let Some(transition) = transition {
            self.news.push(Event::Pair(transition));
            self.settle_unit(transition.unit, transition.at);
        }
    }

    fn settle_unit(&mut self, key: UnitKey, now: Nanos) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        let keys = unit.status().pairs.clone();
        let pairs = keys.iter().filter_map(|key| self.pairs.get(key)).map(|pair| (pair.role, pair.state()));
        self.news.extend(unit.settle(pairs, now).map(Event::Unit));
    }
}
