//! All pairs of all units under one clock.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::dice::mix;
use crate::pair::{Change, Judgement, Pair};
use crate::reference::{Reference, strictest};
use crate::stream::{Attended, Stream};
use crate::unit::Unit;
use crate::{
    Actions, CablingFault, CoreState, Direction, Event, Nanos, PairKey, PairStatus, Probe, ProbeKind,
    Profile, Reason, ReferenceKey, ReferenceProbe, ReferenceStatus, Rejection, Side, Suspicion,
    SuspicionChange, SuspicionNotice, UnitConfig, UnitKey, UnitState, UnitStatus, Verdict,
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
    references: BTreeMap<ReferenceKey, Reference>,
    /// One entry per stream or hold with a deadline: the entry that its `timer` names.
    timers: BTreeSet<(Nanos, Timer)>,
    /// News since the last poll.
    news: Vec<Event>,
    suspicion: Suspicion,
    /// Counts the gaps.
    gaps: u64,
    /// No removed pair or reference used this sequence number or a greater one.
    fresh_sequence: u64,
    /// Of the instants of burst mode.
    seed: u64,
}

/// What a deadline is for. A hold that ends comes before the keep-alives of the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Hold(PairKey),
    Reference(ReferenceKey),
    Stream(PairKey, ProbeKind),
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
    /// A unit's appliances have more cores than there are numbers for.
    #[error("{unit} has {cores} cores, at most 256 can be probed")]
    TooManyCores {
        /// The unit.
        unit: UnitKey,
        /// What was given.
        cores: u16,
    },
}

/// A pair that is not configured, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not supervised, configure it first")]
pub struct UnknownPair(pub PairKey);

/// A reference that no profile names, or none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not supervised, name it in a profile first")]
pub struct UnknownReference(pub ReferenceKey);

impl Supervision {
    /// Supervises nothing yet. Two supervisions with the same configuration have the same instants of burst mode.
    pub fn new() -> Supervision {
        Supervision::default()
    }

    /// Supervises nothing yet; `seed` gives the instants of burst mode.
    pub fn seeded(seed: u64) -> Supervision {
        Supervision { seed, ..Supervision::default() }
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
    /// A key that is used twice, or too many cores; then nothing changes.
    pub fn configure(&mut self, units: &[UnitConfig], now: Nanos) -> Result<(), ConfigureError> {
        let mut unit_keys = BTreeSet::new();
        let mut pair_keys = BTreeSet::new();
        for unit in units {
            if !unit_keys.insert(unit.key) {
                return Err(ConfigureError::DuplicateUnit(unit.key));
            }
            if unit.cores > 256 {
                return Err(ConfigureError::TooManyCores { unit: unit.key, cores: unit.cores });
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
                self.unschedule_all(pair.key);
                let (unit, profile, cores) = (config.key, config.profile, config.cores);
                if let Some(known) = self.pairs.get_mut(&pair.key) {
                    // The units are settled below.
                    for change in known.reconfigure(pair, unit, profile, cores, now) {
                        self.news.extend(change.transition.map(Event::Pair));
                        self.news.extend(change.hold.map(Event::Hold));
                    }
                } else {
                    let phase = phases.remove(&pair.key).unwrap_or_default();
                    let (seed, sequence) = (self.seed, self.fresh_sequence);
                    let new = Pair::new(pair, unit, profile, cores, phase, seed, sequence, now);
                    self.pairs.insert(pair.key, new);
                }
                self.reschedule_all(pair.key);
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
        self.configure_references(units, now);
        self.lift_moot_suspicion(now);
        Ok(())
    }

    /// Has the references that profiles name, each probed by the strictest of them.
    fn configure_references(&mut self, units: &[UnitConfig], now: Nanos) {
        let mut wanted: BTreeMap<ReferenceKey, Profile> = BTreeMap::new();
        for unit in units.iter().filter(|unit| !unit.pairs.is_empty()) {
            if let Some(key) = unit.profile.reference() {
                wanted
                    .entry(key)
                    .and_modify(|profile| *profile = strictest(profile, &unit.profile))
                    .or_insert(unit.profile);
            }
        }
        let gone: Vec<ReferenceKey> =
            self.references.keys().copied().filter(|key| !wanted.contains_key(key)).collect();
        for key in gone {
            let was = self.references.remove(&key);
            if let Some(reference) = was {
                self.fresh_sequence = self.fresh_sequence.max(reference.stream.next_sequence());
                if let Some(due) = reference.stream.timer {
                    self.timers.remove(&(due, Timer::Reference(key)));
                }
                if reference.suspicion != Suspicion::None {
                    self.reference_returned(key, now);
                }
            }
        }
        let mut phase = 0x4000_0000u32;
        for (key, profile) in wanted {
            let earliest = now + profile.initial_delay();
            // Between the places of the pairs, as far as they are spread evenly.
            phase = phase.wrapping_add(0x9E37_79B9);
            match self.references.get_mut(&key) {
                Some(known) => {
                    let old = std::mem::replace(&mut known.profile, profile);
                    known.stream.adopt(&old, &profile, now + Nanos(1));
                }
                None => {
                    let seed = mix(self.seed ^ mix(u64::from(key.0)));
                    let mut stream = Stream::new(ProbeKind::Pair, phase, seed, self.fresh_sequence, &profile);
                    stream.start(earliest, &profile);
                    let reference = Reference { profile, suspicion: Suspicion::None, stream };
                    self.references.insert(key, reference);
                }
            }
            self.reschedule_reference(key);
        }
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
        let change = self.known(pair)?.set_carrier(side, present, now);
        self.reschedule_all(pair);
        self.report(change);
        self.lift_moot_suspicion(now);
        Ok(())
    }

    /// Ends the hold or the trial of a pair by hand and forgets its downs: it is in service at once if its keep-alives
    /// are good, and else when they are. Says whether there was one.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn clear_hold(&mut self, pair: PairKey, now: Nanos) -> Result<bool, UnknownPair> {
        let change = self.known(pair)?.clear_hold(now);
        self.reschedule_hold(pair);
        self.report(change);
        Ok(change.hold.is_some())
    }

    /// A keep-alive came back: its tag is right, it is of this instance, and it came the way it should.
    /// `transmit` and `receive` are its time stamps, of one clock.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_received(
        &mut self,
        probe: Probe,
        transmit: Nanos,
        receive: Nanos,
        now: Nanos,
    ) -> Result<Verdict, UnknownPair> {
        let known = self.known(probe.pair)?;
        let (verdict, dawned) = known.receive(probe, span(transmit, receive), now);
        if verdict == Verdict::Good && known.does_well() {
            self.take_heart(now);
        }
        self.judge(probe.pair, probe.kind, now);
        if dawned {
            self.reschedule_all(probe.pair);
        } else {
            self.reschedule(probe.pair, probe.kind);
        }
        Ok(verdict)
    }

    /// A keep-alive was turned away before its sequence number was looked at. Count it for the pair that it names, or,
    /// where its tag is wrong and its fields can't be trusted, for the pair whose port it came by. One of a kind that
    /// the pair is not asked for is of no interest.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_rejected(
        &mut self,
        pair: PairKey,
        kind: ProbeKind,
        direction: Direction,
        why: Rejection,
        now: Nanos,
    ) -> Result<(), UnknownPair> {
        let stream = self.known(pair)?.stream_mut(kind);
        let fault = stream.and_then(|stream| stream.paths[direction].reject(why));
        self.news.extend(fault.map(|fault| Event::Cabling(CablingFault { pair, direction, fault, at: now })));
        Ok(())
    }

    /// A keep-alive of [`Actions::probes`] could not be sent: what was never sent is not lost.
    ///
    /// # Errors
    /// The pair is unknown.
    pub fn probe_unsent(&mut self, probe: Probe) -> Result<(), UnknownPair> {
        if let Some(stream) = self.known(probe.pair)?.stream_mut(probe.kind) {
            stream.unsent(probe.direction, probe.sequence);
        }
        self.reschedule(probe.pair, probe.kind);
        Ok(())
    }

    /// A keep-alive came back by a reference, see [`Supervision::probe_received`].
    ///
    /// # Errors
    /// The reference is unknown.
    pub fn reference_received(
        &mut self,
        probe: ReferenceProbe,
        transmit: Nanos,
        receive: Nanos,
        now: Nanos,
    ) -> Result<Verdict, UnknownReference> {
        let key = probe.reference;
        let known = self.references.get_mut(&key).ok_or(UnknownReference(key))?;
        let (delay, max_delay) = (span(transmit, receive), known.profile.max_delay());
        let verdict = known.stream.receive(probe.direction, probe.sequence, delay, max_delay, now);
        if known.suspicion != Suspicion::None && known.stream.does_well() {
            known.suspicion = Suspicion::None;
            self.reference_returned(key, now);
        }
        self.reschedule_reference(key);
        Ok(verdict)
    }

    /// A keep-alive of [`Actions::references`] could not be sent.
    ///
    /// # Errors
    /// The reference is unknown.
    pub fn reference_unsent(&mut self, probe: ReferenceProbe) -> Result<(), UnknownReference> {
        let key = probe.reference;
        let known = self.references.get_mut(&key).ok_or(UnknownReference(key))?;
        known.stream.unsent(probe.direction, probe.sequence);
        self.reschedule_reference(key);
        Ok(())
    }

    /// When to poll next: an instant that has passed if there is news already, `None` if there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let news = self.news.first().map(Event::at);
        let timer = self.timers.first().map(|(due, _)| *due);
        let references = self.references.values().filter_map(|reference| reference.suspicion.until());
        [news, timer, self.suspicion.until()].into_iter().flatten().chain(references).min()
    }

    /// Does everything that is due at `now`: says which keep-alives to send and what changed since the last poll.
    ///
    /// A late poll neither moves later slots nor makes up for missed ones: each pair sends at most one keep-alive per
    /// kind and direction, and a slot never sent is not a loss. See also [`GAP_TOLERANCE`].
    pub fn poll(&mut self, now: Nanos) -> Actions {
        let late_by = self.timers.first().map_or(Nanos::ZERO, |(due, _)| now.since(*due));
        let gap = (late_by > GAP_TOLERANCE).then(|| {
            self.gaps += 1;
            self.suspicion.prolong(late_by);
            self.references.values_mut().for_each(|reference| reference.suspicion.prolong(late_by));
            self.gaps
        });
        let mut probes = Vec::new();
        let mut references = Vec::new();
        while let Some((_, timer)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            match timer {
                Timer::Stream(key, kind) => {
                    match self.pairs.get_mut(&key).and_then(|pair| pair.attend(kind, now, gap)) {
                        Some(sent) => probes.extend(sent),
                        None => self.judge(key, kind, now),
                    }
                    self.reschedule(key, kind);
                }
                Timer::Hold(key) => self.try_again(key, now),
                Timer::Reference(key) => references.extend(self.attend_reference(key, now, gap)),
            }
        }
        let over = |suspicion: Suspicion| suspicion.until().is_some_and(|until| until <= now);
        let doubtful = self.references.iter().filter(|(_, reference)| over(reference.suspicion));
        let believed: Vec<ReferenceKey> = doubtful.map(|(key, _)| *key).collect();
        for key in believed {
            self.believe_in_spite_of(key, now);
        }
        if over(self.suspicion) {
            self.believe(now);
        }
        Actions { probes, references, events: std::mem::take(&mut self.news) }
    }

    /// All pairs in the order of their keys.
    pub fn pairs(&self) -> impl Iterator<Item = PairStatus> {
        self.pairs.values().map(|pair| pair.status(self.unit_state(pair.unit)))
    }

    /// One pair.
    pub fn pair(&self, key: PairKey) -> Option<PairStatus> {
        self.pairs.get(&key).map(|pair| pair.status(self.unit_state(pair.unit)))
    }

    fn unit_state(&self, key: UnitKey) -> UnitState {
        self.units.get(&key).map_or(UnitState::Bypass, |unit| unit.status().state)
    }

    /// All units in the order of their keys.
    pub fn units(&self) -> impl Iterator<Item = &UnitStatus> {
        self.units.values().map(Unit::status)
    }

    /// One unit.
    pub fn unit(&self, key: UnitKey) -> Option<&UnitStatus> {
        self.units.get(&key).map(Unit::status)
    }

    /// All references in the order of their keys.
    pub fn references(&self) -> impl Iterator<Item = ReferenceStatus> {
        self.references.iter().map(|(key, reference)| reference.status(*key))
    }

    /// Whether the controller's own path is under suspicion: because every pair fails, or else because a reference
    /// does.
    pub fn suspicion(&self) -> Suspicion {
        if matches!(self.suspicion, Suspicion::Suspended { .. }) {
            return self.suspicion;
        }
        let suspended = |other: &Suspicion| matches!(other, Suspicion::Suspended { .. });
        let of_references = || self.references.values().map(|reference| reference.suspicion);
        let any = || of_references().find(|suspicion| *suspicion != Suspicion::None);
        let else_any = || if self.suspicion == Suspicion::None { any() } else { None };
        of_references().find(suspended).or_else(else_any).unwrap_or(self.suspicion)
    }

    fn known(&mut self, key: PairKey) -> Result<&mut Pair, UnknownPair> {
        self.pairs.get_mut(&key).ok_or(UnknownPair(key))
    }

    fn remove(&mut self, key: PairKey) {
        self.unschedule_all(key);
        if let Some(pair) = self.pairs.remove(&key) {
            self.fresh_sequence = self.fresh_sequence.max(pair.next_sequence());
        }
    }

    /// Brings the queue of deadlines in line with a stream of a pair.
    fn reschedule(&mut self, key: PairKey, kind: ProbeKind) {
        let Some(pair) = self.pairs.get_mut(&key) else { return };
        let profile = *pair.profile();
        if let Some(stream) = pair.stream_mut(kind) {
            let due = stream.deadline(&profile);
            requeue(&mut self.timers, Timer::Stream(key, kind), &mut stream.timer, due);
        }
    }

    fn reschedule_hold(&mut self, key: PairKey) {
        if let Some(pair) = self.pairs.get_mut(&key) {
            let due = pair.damping.deadline();
            requeue(&mut self.timers, Timer::Hold(key), &mut pair.damping.timer, due);
        }
    }

    fn reschedule_reference(&mut self, key: ReferenceKey) {
        if let Some(Reference { profile, stream, .. }) = self.references.get_mut(&key) {
            let due = stream.deadline(profile);
            requeue(&mut self.timers, Timer::Reference(key), &mut stream.timer, due);
        }
    }

    /// Brings the queue of deadlines in line with everything of a pair.
    fn reschedule_all(&mut self, key: PairKey) {
        for kind in self.kinds(key) {
            self.reschedule(key, kind);
        }
        self.reschedule_hold(key);
    }

    /// Takes everything of a pair out of the queue of deadlines.
    fn unschedule_all(&mut self, key: PairKey) {
        for kind in self.kinds(key) {
            if let Some(stream) = self.pairs.get_mut(&key).and_then(|pair| pair.stream_mut(kind)) {
                requeue(&mut self.timers, Timer::Stream(key, kind), &mut stream.timer, None);
            }
        }
        if let Some(pair) = self.pairs.get_mut(&key) {
            requeue(&mut self.timers, Timer::Hold(key), &mut pair.damping.timer, None);
        }
    }

    fn kinds(&self, key: PairKey) -> Vec<ProbeKind> {
        self.pairs.get(&key).map(|pair| pair.kinds().collect()).unwrap_or_default()
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

    /// Lets the consecutive outcomes of a pair, and of the core that `kind` names, have their effect.
    fn judge(&mut self, key: PairKey, kind: ProbeKind, now: Nanos) {
        if let ProbeKind::Core(core) = kind {
            self.judge_core(key, core, now);
        }
        let Some(pair) = self.pairs.get(&key) else { return };
        match pair.judge(self.doubts(pair)) {
            Judgement::Stay => {}
            Judgement::Rise(reason) => self.change(key, |pair| pair.rise(reason, now)),
            Judgement::Fall(reason) => self.fall(key, reason, now),
            Judgement::FailTrial => self.change(key, |pair| pair.fail_trial(now)),
        }
    }

    fn judge_core(&mut self, key: PairKey, core: u8, now: Nanos) {
        let Some(pair) = self.pairs.get(&key) else { return };
        let Some((to, reason)) = pair.judge_core(core) else { return };
        if to == CoreState::Down {
            // The fault may be ours if the whole pair is doubted, or no core of any pair answers.
            let alone = !pair.cores_fail();
            if self.doubts(pair) || self.reference_excuses(key, now) || !alone && self.is_common(key, now) {
                return;
            }
        }
        let transition = self.pairs.get_mut(&key).and_then(|pair| pair.change_core(core, to, reason, now));
        self.news.extend(transition.map(Event::Core));
    }

    fn fall(&mut self, key: PairKey, reason: Reason, now: Nanos) {
        let carried = self.pairs.get(&key).is_some_and(|pair| pair.state().carries());
        // What comes back although it must not is no loss of ours.
        let lost = !matches!(reason, Reason::NegativeReturned { .. });
        if carried && lost && (self.reference_excuses(key, now) || self.is_common(key, now)) {
            return;
        }
        self.change(key, |pair| pair.fall(reason, now));
    }

    // Whether the fault is ours

    /// Whether losses of the pair are not believed at present.
    fn doubts(&self, pair: &Pair) -> bool {
        let suspended = |suspicion: Suspicion| matches!(suspicion, Suspicion::Suspended { .. });
        suspended(self.suspicion)
            || self.reference_of(pair).is_some_and(|(_, other)| suspended(other.suspicion))
    }

    /// The reference that speaks for the pair.
    fn reference_of(&self, pair: &Pair) -> Option<(ReferenceKey, &Reference)> {
        let key = pair.profile().reference().filter(|_| pair.profile().suspend_limit() > Nanos::ZERO)?;
        self.references.get(&key).map(|reference| (key, reference))
    }

    /// A pair reached its count of losses: whether its reference fails as well, so that they are not believed.
    fn reference_excuses(&mut self, key: PairKey, now: Nanos) -> bool {
        let Some((reference, known)) = self.pairs.get(&key).and_then(|pair| self.reference_of(pair)) else {
            return false;
        };
        match known.suspicion {
            Suspicion::Suspended { .. } => true,
            Suspicion::None if known.is_failing() => {
                self.suspect_reference(reference, now);
                true
            }
            Suspicion::None | Suspicion::Believed { .. } => false,
        }
    }

    /// A pair reached its count of losses: whether all pairs fail, so that they are not believed.
    fn is_common(&mut self, key: PairKey, now: Nanos) -> bool {
        let believed_already = || {
            let (_, reference) = self.pairs.get(&key).and_then(|pair| self.reference_of(pair))?;
            Some(matches!(reference.suspicion, Suspicion::Believed { .. }))
        };
        match self.suspicion {
            Suspicion::Suspended { .. } => true,
            // The same fault has had its limit.
            Suspicion::None if believed_already() == Some(true) => false,
            Suspicion::None => self.suspect(now),
            Suspicion::Believed { .. } => false,
        }
    }

    /// A pair reached its count of losses: suspends belief if all the others that were up fail as well.
    fn suspect(&mut self, now: Nanos) -> bool {
        let carrying = self.pairs.values().filter(|pair| pair.state().carries());
        let window = carrying.map(|pair| pair.profile().spread()).max().unwrap_or_default();
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
        self.put_back(fallen, now);
        true
    }

    fn suspect_reference(&mut self, key: ReferenceKey, now: Nanos) {
        let Some(reference) = self.references.get_mut(&key) else { return };
        if reference.profile.suspend_limit() == Nanos::ZERO {
            return;
        }
        let until = reference.fail(now);
        let window = reference.profile.spread();
        self.notice(SuspicionChange::ReferenceFailed { reference: key, until }, now);
        let fallen = self.pairs.iter().filter(|(_, pair)| {
            self.reference_of(pair).is_some_and(|(other, _)| other == key) && pair.fell_within(window, now)
        });
        let fallen = fallen.map(|(key, _)| *key).collect();
        self.put_back(fallen, now);
    }

    /// Pairs that fell just before it was known that the fault may be ours.
    fn put_back(&mut self, fallen: Vec<PairKey>, now: Nanos) {
        for key in fallen {
            self.change(key, |pair| pair.restore(now));
        }
    }

    /// A pair does well, so the path that all share is not to blame.
    fn take_heart(&mut self, now: Nanos) {
        match self.suspicion {
            Suspicion::None => {}
            Suspicion::Believed { .. } => self.suspicion = Suspicion::None,
            Suspicion::Suspended { .. } => self.resume(now),
        }
    }

    /// Ends a suspension.
    fn resume(&mut self, now: Nanos) {
        self.suspicion = Suspicion::None;
        self.notice(SuspicionChange::Resumed, now);
        self.start_over(|_| true);
    }

    /// A reference comes back, or is asked no more.
    fn reference_returned(&mut self, key: ReferenceKey, now: Nanos) {
        self.notice(SuspicionChange::ReferenceReturned { reference: key }, now);
        self.start_over(|pair| pair.profile().reference() == Some(key));
    }

    /// Pairs that were kept up start over: what they lost meanwhile can't be told from what the common fault took, and
    /// their keep-alives under way were sent before it ended.
    fn start_over(&mut self, concerned: impl Fn(&Pair) -> bool) {
        let kept = self.pairs.iter_mut().filter(|(_, pair)| pair.is_at_stake() && concerned(pair));
        let keys: Vec<PairKey> = kept
            .map(|(key, pair)| {
                pair.start_over();
                *key
            })
            .collect();
        for key in keys {
            self.reschedule_all(key);
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
            self.judge(key, ProbeKind::Pair, now);
        }
    }

    /// The reference has failed for too long to excuse anybody.
    fn believe_in_spite_of(&mut self, key: ReferenceKey, now: Nanos) {
        if let Some(reference) = self.references.get_mut(&key) {
            reference.suspicion = Suspicion::Believed { since: now };
        }
        self.notice(SuspicionChange::ReferenceBelieved { reference: key }, now);
        let concerned = self.pairs.iter().filter(|(_, pair)| pair.profile().reference() == Some(key));
        let keys: Vec<PairKey> = concerned.map(|(key, _)| *key).collect();
        for key in keys {
            self.judge(key, ProbeKind::Pair, now);
        }
    }

    fn notice(&mut self, change: SuspicionChange, at: Nanos) {
        self.news.push(Event::Suspicion(SuspicionNotice { change, at }));
    }

    // References

    fn attend_reference(
        &mut self,
        key: ReferenceKey,
        now: Nanos,
        gap: Option<u64>,
    ) -> impl Iterator<Item = ReferenceProbe> + use<> {
        let attended = self.references.get_mut(&key).map(|reference| {
            let Reference { profile, stream, .. } = reference;
            stream.attend(now, gap, profile)
        });
        let sequence = if let Some(Attended::Due(sequence)) = attended { Some(sequence) } else { None };
        let fails = self
            .references
            .get(&key)
            .is_some_and(|known| known.suspicion == Suspicion::None && known.is_down());
        if fails {
            self.suspect_reference(key, now);
        }
        self.reschedule_reference(key);
        sequence.into_iter().flat_map(move |sequence| {
            Direction::BOTH.map(|direction| ReferenceProbe { reference: key, direction, sequence })
        })
    }

    // Changes

    fn try_again(&mut self, key: PairKey, now: Nanos) {
        self.change(key, |pair| pair.try_again(now));
        self.reschedule_all(key);
    }

    /// Changes a pair and makes it known.
    fn change(&mut self, key: PairKey, how: impl FnOnce(&mut Pair) -> Change) {
        let Some(pair) = self.pairs.get_mut(&key) else { return };
        let change = how(pair);
        self.reschedule_hold(key);
        self.report(change);
    }

    /// Makes a change of a pair known, and what follows from it for its unit.
    fn report(&mut self, change: Change) {
        if let Some(transition) = change.transition {
            self.news.push(Event::Pair(transition));
            self.settle_unit(transition.unit, transition.at);
        }
        self.news.extend(change.hold.map(Event::Hold));
    }

    fn settle_unit(&mut self, key: UnitKey, now: Nanos) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        let keys = unit.status().pairs.clone();
        let pairs = keys.iter().filter_map(|key| self.pairs.get(key)).map(|pair| (pair.role, pair.state()));
        self.news.extend(unit.settle(pairs, now).map(Event::Unit));
    }
}

/// Time on path by the stamps of a keep-alive; none where it was received before it was transmitted.
fn span(transmit: Nanos, receive: Nanos) -> Option<Nanos> {
    receive.0.checked_sub(transmit.0).map(Nanos)
}

/// Moves an entry of the queue of deadlines.
fn requeue(
    timers: &mut BTreeSet<(Nanos, Timer)>,
    timer: Timer,
    entry: &mut Option<Nanos>,
    due: Option<Nanos>,
) {
    let was = std::mem::replace(entry, due);
    if was != due {
        if let Some(was) = was {
            timers.remove(&(was, timer));
        }
        if let Some(due) = due {
            timers.insert((due, timer));
        }
    }
}
