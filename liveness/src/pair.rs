//! A pair: its state machine, its streams of keep-alives, its cores, its damping.

use crate::cores::Core;
use crate::cost::cost;
use crate::dice::mix;
use crate::hold::Damping;
use crate::path::Path;
use crate::stream::{Attended, Stream};
use crate::{
    CoreState, CoreStatus, CoreTransition, Direction, Frames, HoldChange, HoldNotice, HoldStatus, Nanos,
    NegativeStatus, PairKey, PairTransition, PathStatus, PerDirection, Probe, ProbeKind, Probes, Profile,
    Reason, Side, UnitKey, UnitState, Verdict, matrix,
};

/// State of a pair. [`PairState::carries`] is what the data plane needs of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PairState {
    /// Not yet known: since it was added, or taken out of `admin-down`.
    Init,
    /// In service.
    Up,
    /// Out of service: lost keep-alives, or carrier.
    Down,
    /// Out of service by configuration; not probed.
    AdminDown,
    /// In service for the buckets it has, no target for others; probed like any.
    Draining,
    /// Out of service though its keep-alives are good: it went down too often, and a hold or its trial runs.
    Held,
}

impl PairState {
    /// Whether the data plane sends the pair's buckets through it.
    pub fn carries(self) -> bool {
        matches!(self, PairState::Up | PairState::Draining)
    }
}

/// What the configuration wants of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admin {
    /// In service when its keep-alives are good.
    #[default]
    Up,
    /// Out of service, not probed.
    Down,
    /// In service for the buckets it has, no target for others.
    Drain,
}

/// Part of a pair in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Has buckets of its own.
    #[default]
    Active,
    /// Stands in for an active pair that is down.
    Spare,
}

/// What was known of a pair when it was added; of no effect on a pair that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initial {
    /// Nothing: `init`.
    #[default]
    Fresh,
    /// The data plane has it up.
    AdoptedUp,
    /// The data plane has it down.
    AdoptedDown,
}

/// A pair as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairConfig {
    /// Unique over all units.
    pub key: PairKey,
    /// Active or spare.
    pub role: Role,
    /// What is wanted of it.
    pub admin: Admin,
    /// What was known of it.
    pub initial: Initial,
}

impl PairConfig {
    /// An active pair, administratively up, nothing known of it.
    pub fn new(key: PairKey) -> PairConfig {
        PairConfig { key, role: Role::default(), admin: Admin::default(), initial: Initial::default() }
    }
}

/// Carrier of both ports; taken to be there until told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The LAN port has carrier.
    pub lan: bool,
    /// The WAN port has carrier.
    pub wan: bool,
}

impl Carrier {
    fn both(self) -> bool {
        self.lan && self.wan
    }

    fn missing(self) -> Option<Side> {
        match self {
            Carrier { lan: false, .. } => Some(Side::Lan),
            Carrier { wan: false, .. } => Some(Side::Wan),
            _ => None,
        }
    }
}

/// A pair, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairStatus {
    /// The pair.
    pub pair: PairKey,
    /// Its unit.
    pub unit: UnitKey,
    /// Part in the unit.
    pub role: Role,
    /// What is wanted of it.
    pub admin: Admin,
    /// State.
    pub state: PairState,
    /// What its keep-alives alone say.
    pub probes: Probes,
    /// Carrier of its ports.
    pub carrier: Carrier,
    /// Since when it is in this state.
    pub last_change: Nanos,
    /// Why it is in this state.
    pub last_reason: Reason,
    /// How often it went from carrying to down.
    pub flaps: u64,
    /// Plain keep-alives per direction.
    pub paths: PerDirection<PathStatus>,
    /// The hold or trial that runs.
    pub hold: Option<HoldStatus>,
    /// Its cores, where they are probed.
    pub cores: Vec<CoreStatus>,
    /// The `ip` probes, where they are sent.
    pub ip: Option<PerDirection<PathStatus>>,
    /// The `negative` probes, where they are sent.
    pub negative: Option<PerDirection<NegativeStatus>>,
    /// What an exchange through it would take, see [`crate::cost`].
    pub cost: Option<Nanos>,
    /// What happens to the frames of its buckets.
    pub frames: Frames,
}

/// What the consecutive outcomes ask for.
pub(crate) enum Judgement {
    Stay,
    Rise(Reason),
    Fall(Reason),
    /// The trial has failed.
    FailTrial,
}

/// A change to be made known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    pub(crate) transition: Option<PairTransition>,
    pub(crate) hold: Option<HoldNotice>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pair {
    key: PairKey,
    pub(crate) unit: UnitKey,
    pub(crate) role: Role,
    admin: Admin,
    profile: Profile,
    /// Place on the interval, in 2^-32 of it.
    phase: u32,
    /// Of the instants of burst mode.
    seed: u64,
    probes: Probes,
    carrier: Carrier,
    /// No keep-alive before this.
    quiet_until: Nanos,
    plain: Stream,
    ip: Option<Stream>,
    negative: Option<Stream>,
    cores: Vec<Core>,
    /// The plain keep-alives failed and have not come back since: nothing speaks against a core of its own.
    eclipsed: bool,
    pub(crate) damping: Damping,
    /// No stream that is gone used this sequence number or a greater one.
    fresh_sequence: u64,
    flaps: u64,
    last_change: Nanos,
    last_reason: Reason,
}

/// Places of the kinds of keep-alives behind the pair's own: multiples of the golden section of the interval, so that
/// any number of them is spread, over that of one pair and over all.
fn place(kind: ProbeKind) -> u32 {
    const GOLDEN: u32 = 0x9E37_79B9;
    let ordinal = match kind {
        ProbeKind::Pair => 0,
        ProbeKind::Ip => 1,
        ProbeKind::Negative => 2,
        ProbeKind::Core(core) => 3 + u32::from(core),
    };
    GOLDEN.wrapping_mul(ordinal)
}

impl Pair {
    #[allow(clippy::too_many_arguments, reason = "what a pair is made of; one caller")]
    pub(crate) fn new(
        config: &PairConfig,
        unit: UnitKey,
        profile: Profile,
        cores: u16,
        phase: u32,
        seed: u64,
        sequence: u64,
        now: Nanos,
    ) -> Pair {
        let (probes, last_reason) = match config.initial {
            Initial::Fresh => (Probes::Unknown, Reason::Added),
            Initial::AdoptedUp => (Probes::Good, Reason::Adopted),
            Initial::AdoptedDown => (Probes::Bad, Reason::Adopted),
        };
        let seed = mix(seed ^ u64::from(config.key.0));
        let mut pair = Pair {
            key: config.key,
            unit,
            role: config.role,
            admin: config.admin,
            profile,
            phase,
            seed,
            probes,
            carrier: Carrier { lan: true, wan: true },
            quiet_until: now,
            plain: Stream::new(ProbeKind::Pair, phase, seed, sequence, &profile),
            ip: None,
            negative: None,
            cores: Vec::new(),
            eclipsed: false,
            damping: Damping::default(),
            fresh_sequence: sequence,
            flaps: 0,
            last_change: now,
            last_reason,
        };
        pair.equip(cores, now);
        // The data plane had all of its cores, or none would be up.
        if config.initial == Initial::AdoptedUp {
            for core in &mut pair.cores {
                core.state = CoreState::Up;
            }
        }
        pair.start(now);
        pair
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase
    }

    /// No keep-alive of the pair has used this number or a greater one.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.streams().map(Stream::next_sequence).fold(self.fresh_sequence, u64::max)
    }

    pub(crate) fn state(&self) -> PairState {
        matrix::pair_state(self.admin, self.carrier.both(), self.probes, self.damping.is_held())
    }

    pub(crate) fn status(&self, unit: UnitState) -> PairStatus {
        let statistics = self.plain.paths.map(Path::statistics);
        PairStatus {
            pair: self.key,
            unit: self.unit,
            role: self.role,
            admin: self.admin,
            state: self.state(),
            probes: self.probes,
            carrier: self.carrier,
            last_change: self.last_change,
            last_reason: self.last_reason,
            flaps: self.flaps,
            paths: self.plain.paths.map(Path::status),
            hold: self.damping.status(),
            cores: self.cores.iter().map(Core::status).collect(),
            ip: self.ip.as_ref().map(|stream| stream.paths.map(Path::status)),
            negative: self.negative.as_ref().map(|stream| stream.paths.map(Path::negative_status)),
            cost: cost(&statistics),
            frames: matrix::frames(unit, self.state()),
        }
    }

    // Streams

    fn conditions(&self) -> impl Iterator<Item = &Stream> {
        [Some(&self.plain), self.ip.as_ref(), self.negative.as_ref()].into_iter().flatten()
    }

    fn conditions_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        [Some(&mut self.plain), self.ip.as_mut(), self.negative.as_mut()].into_iter().flatten()
    }

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.conditions().chain(self.cores.iter().map(|core| &core.stream))
    }

    fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        let cores = self.cores.iter_mut().map(|core| &mut core.stream);
        [Some(&mut self.plain), self.ip.as_mut(), self.negative.as_mut()].into_iter().flatten().chain(cores)
    }

    /// The kinds of keep-alives that there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = ProbeKind> {
        let ip = self.ip.as_ref().map(|_| ProbeKind::Ip);
        let negative = self.negative.as_ref().map(|_| ProbeKind::Negative);
        let cores = (0..=u8::MAX).take(self.cores.len()).map(ProbeKind::Core);
        [Some(ProbeKind::Pair), ip, negative].into_iter().flatten().chain(cores)
    }

    pub(crate) fn stream_mut(&mut self, kind: ProbeKind) -> Option<&mut Stream> {
        match kind {
            ProbeKind::Pair => Some(&mut self.plain),
            ProbeKind::Ip => self.ip.as_mut(),
            ProbeKind::Negative => self.negative.as_mut(),
            ProbeKind::Core(core) => self.cores.get_mut(usize::from(core)).map(|core| &mut core.stream),
        }
    }

    /// Has the streams that the profile asks for, no others; those that are new start when the pair is probed next.
    fn equip(&mut self, cores: u16, now: Nanos) {
        self.fresh_sequence = self.next_sequence();
        let (phase, seed, sequence, profile) = (self.phase, self.seed, self.fresh_sequence, self.profile);
        let earliest = self.plain.runs().then(|| self.quiet_until.max(now + Nanos(1)));
        let new = |kind: ProbeKind| {
            let (phase, seed) = (phase.wrapping_add(place(kind)), mix(seed ^ u64::from(place(kind))));
            let mut stream = Stream::new(kind, phase, seed, sequence, &profile);
            if let Some(earliest) = earliest {
                stream.start(earliest, &profile);
            }
            stream
        };
        let wanted = |there: Option<Stream>, wanted: bool, kind: ProbeKind| {
            wanted.then(|| there.unwrap_or_else(|| new(kind)))
        };
        self.ip = wanted(self.ip.take(), profile.ip(), ProbeKind::Ip);
        self.negative = wanted(self.negative.take(), profile.negative(), ProbeKind::Negative);
        let cores = if profile.probe_cores() { usize::from(cores) } else { 0 };
        self.cores.truncate(cores);
        for number in (0..=u8::MAX).take(cores).skip(self.cores.len()) {
            let stream = new(ProbeKind::Core(number));
            self.cores.push(Core::new(number, CoreState::Init, stream, Reason::Added, now));
        }
    }

    /// Probes after the initial delay, if the pair is to be probed at all.
    fn start(&mut self, now: Nanos) {
        self.quiet_until = now + self.profile.initial_delay();
        if self.admin != Admin::Down && self.carrier.both() {
            let (earliest, profile) = (self.quiet_until, self.profile);
            self.streams_mut().for_each(|stream| stream.start(earliest, &profile));
        }
    }

    /// Stops probing.
    fn stop(&mut self) {
        self.eclipsed = false;
        self.streams_mut().for_each(Stream::stop);
    }

    /// Gives up what is under way and starts the consecutive outcomes anew.
    pub(crate) fn start_over(&mut self) {
        self.eclipsed = false;
        self.streams_mut().for_each(Stream::start_over);
    }

    /// Does one thing of a stream that is due at `now`, see [`Stream::attend`].
    pub(crate) fn attend(&mut self, kind: ProbeKind, now: Nanos, gap: Option<u64>) -> Option<[Probe; 2]> {
        let (pair, profile) = (self.key, self.profile);
        match self.stream_mut(kind)?.attend(now, gap, &profile) {
            Attended::Due(sequence) => {
                Some(Direction::BOTH.map(|direction| Probe { pair, kind, direction, sequence }))
            }
            Attended::Expired => {
                self.eclipse();
                None
            }
            Attended::Idle => None,
        }
    }

    /// A keep-alive came back. Yields its verdict, and whether the cores start over for it.
    pub(crate) fn receive(&mut self, probe: Probe, delay: Option<Nanos>, now: Nanos) -> (Verdict, bool) {
        let max_delay = self.profile.max_delay();
        let verdict = self.stream_mut(probe.kind).map_or(Verdict::Stale, |stream| {
            stream.receive(probe.direction, probe.sequence, delay, max_delay, now)
        });
        self.eclipse();
        let dawned = self.eclipsed && self.plain.does_well();
        if dawned {
            self.eclipsed = false;
            // What they lost meanwhile can't be told from what the pair lost.
            self.cores.iter_mut().for_each(|core| core.stream.start_over());
        }
        (verdict, dawned)
    }

    fn eclipse(&mut self) {
        self.eclipsed |= self.plain.is_failing(&self.profile);
    }

    // State machine

    /// Whether both directions of all that is asked of the pair have been good long enough.
    fn is_ready(&self) -> bool {
        let wanted = self.profile.probes_up_count();
        self.conditions().all(|stream| stream.consecutive_good() >= wanted)
            && (self.cores.is_empty() || self.cores.iter().any(|core| core.state == CoreState::Up))
    }

    /// Whether every core is down.
    fn has_no_core(&self) -> bool {
        !self.cores.is_empty() && !self.cores.iter().any(|core| core.state.carries())
    }

    /// What speaks against the pair: a count of losses that has been reached. The plain keep-alives are the first to
    /// be blamed: when they fail, so does everything else.
    fn complaint(&self) -> Option<Reason> {
        let limit = self.profile.probes_down_count();
        let reached = |stream: &Stream| {
            let losses = Direction::BOTH.map(|direction| (direction, stream.losses(direction)));
            let counted = losses.into_iter().rev().filter(|(_, count)| *count >= limit);
            counted
                .filter(|(direction, _)| self.has_lasted(stream, *direction))
                .max_by_key(|(_, count)| *count)
        };
        if let Some((direction, count)) = reached(&self.plain) {
            return Some(Reason::Losses { direction, count });
        }
        if let Some((direction, count)) = self.negative.as_ref().and_then(reached) {
            return Some(Reason::NegativeReturned { direction, count });
        }
        if self.plain.is_failing(&self.profile) {
            return None;
        }
        if let Some((direction, count)) = self.ip.as_ref().and_then(reached) {
            return Some(Reason::IpLosses { direction, count });
        }
        let cores = u16::try_from(self.cores.len()).unwrap_or(u16::MAX);
        self.has_no_core().then_some(Reason::AllCoresDown { cores })
    }

    /// While a hold runs, `held` goes back to `down` only when nothing good has come for as long as the shortest hold:
    /// an appliance that loses some keep-alives would flap between the two.
    fn has_lasted(&self, stream: &Stream, direction: Direction) -> bool {
        match self.profile.hold_down().filter(|_| self.damping.is_held()) {
            Some(rule) => stream.paths[direction].silence().is_none_or(|silence| silence >= rule.base()),
            None => true,
        }
    }

    /// What the consecutive outcomes ask for. While the controller's own path is in doubt, no trial fails.
    pub(crate) fn judge(&self, doubted: bool) -> Judgement {
        if !self.plain.runs() {
            return Judgement::Stay;
        }
        let count = self.plain.consecutive_good();
        if self.damping.is_on_trial() {
            return if self.conditions().any(|stream| stream.longest_loss().1 > 0) {
                if doubted { Judgement::Stay } else { Judgement::FailTrial }
            } else if self.is_ready() {
                Judgement::Rise(Reason::Good { count })
            } else if self.has_no_core() && count >= self.profile.probes_up_count() && !doubted {
                Judgement::FailTrial
            } else {
                Judgement::Stay
            };
        }
        if self.probes != Probes::Good && self.is_ready() {
            return Judgement::Rise(Reason::Good { count });
        }
        match self.complaint() {
            Some(reason) if self.probes != Probes::Bad => Judgement::Fall(reason),
            _ => Judgement::Stay,
        }
    }

    /// What the consecutive outcomes of a core ask for. While the plain keep-alives fail, its losses are the pair's.
    pub(crate) fn judge_core(&self, core: u8) -> Option<(CoreState, Reason)> {
        let core = self.cores.get(usize::from(core)).filter(|core| core.stream.runs())?;
        let (to, reason) = core.judge(&self.profile)?;
        (to == CoreState::Up || !self.eclipsed).then_some((to, reason))
    }

    pub(crate) fn change_core(
        &mut self,
        number: u8,
        to: CoreState,
        reason: Reason,
        now: Nanos,
    ) -> Option<CoreTransition> {
        let core = self.cores.get_mut(usize::from(number))?;
        let from = core.state;
        core.change(to, reason, now);
        let tallies = core.stream.paths.map(|path| path.tally);
        Some(CoreTransition {
            pair: self.key,
            unit: self.unit,
            core: number,
            from,
            to,
            reason,
            tallies,
            at: now,
        })
    }

    /// Whether its cores fail, all of them.
    pub(crate) fn cores_fail(&self) -> bool {
        !self.cores.is_empty() && self.cores.iter().all(|core| core.stream.is_failing(&self.profile))
    }

    /// Whether something that is asked of it has lost all but one of probes-down-count in a row. When everything fails
    /// at once, this is how far every other pair has come when the first one reaches its count, whatever their places
    /// on the interval.
    pub(crate) fn is_failing(&self) -> bool {
        let lost = [Some(&self.plain), self.ip.as_ref()];
        lost.into_iter().flatten().any(|stream| stream.is_failing(&self.profile)) || self.cores_fail()
    }

    /// Whether everything that is asked of it answers in both directions, since the last loss.
    pub(crate) fn does_well(&self) -> bool {
        self.plain.does_well()
            && self.ip.as_ref().is_none_or(Stream::does_well)
            && (self.cores.is_empty() || self.cores.iter().any(|core| core.stream.does_well()))
    }

    /// Whether losses, and nothing else since, took it down not longer than `window` ago.
    pub(crate) fn fell_within(&self, window: Nanos, now: Nanos) -> bool {
        self.state() == PairState::Down
            && self.carrier.both()
            && matches!(
                self.last_reason,
                Reason::Losses { .. } | Reason::IpLosses { .. } | Reason::AllCoresDown { .. }
            )
            && self.last_change + window >= now
    }

    /// Whether what it loses now counts for its being in service, or coming into it.
    pub(crate) fn is_at_stake(&self) -> bool {
        self.state().carries() || self.damping.is_on_trial()
    }

    /// The keep-alives are good: in service, unless a hold runs.
    pub(crate) fn rise(&mut self, reason: Reason, now: Nanos) -> Change {
        let on_trial = self.damping.is_on_trial();
        let mut hold = None;
        let transition = self.change(reason, now, |pair| {
            pair.probes = Probes::Good;
            if on_trial {
                hold = pair.damping.passed();
            }
        });
        self.with_notice(transition, hold, now)
    }

    /// A fall that is not believed after all.
    pub(crate) fn restore(&mut self, now: Nanos) -> Change {
        let mut hold = None;
        let transition = self.change(Reason::Suspended, now, |pair| {
            pair.probes = Probes::Good;
            hold = pair.damping.take_back();
        });
        self.with_notice(transition, hold, now)
    }

    /// Out of service; a fall from service starts a hold where flaps are damped.
    pub(crate) fn fall(&mut self, reason: Reason, now: Nanos) -> Change {
        let carried = self.state().carries();
        self.put_down(reason, now, |pair| {
            let rule = pair.profile.hold_down().filter(|_| carried)?;
            Some(pair.damping.fell(&rule, now))
        })
    }

    fn put_down(
        &mut self,
        reason: Reason,
        now: Nanos,
        damp: impl FnOnce(&mut Pair) -> Option<HoldChange>,
    ) -> Change {
        let mut hold = None;
        let transition = self.change(reason, now, |pair| {
            pair.probes = Probes::Bad;
            hold = damp(pair);
        });
        self.with_notice(transition, hold, now)
    }

    fn with_notice(
        &self,
        transition: Option<PairTransition>,
        hold: Option<HoldChange>,
        now: Nanos,
    ) -> Change {
        let (pair, unit) = (self.key, self.unit);
        Change { transition, hold: hold.map(|change| HoldNotice { pair, unit, change, at: now }) }
    }

    // Holds

    /// The hold has run out: what is sent from now on decides.
    pub(crate) fn try_again(&mut self, now: Nanos) -> Change {
        let change = self.damping.try_again();
        self.conditions_mut().for_each(Stream::start_over);
        self.with_notice(None, Some(change), now)
    }

    /// A failure in the trial: the next hold, at once. The state stays.
    pub(crate) fn fail_trial(&mut self, now: Nanos) -> Change {
        let hold = self.profile.hold_down().map(|rule| self.damping.failed(&rule, now));
        self.with_notice(None, hold, now)
    }

    /// Ends the hold or the trial by hand and forgets the downs; a pair whose keep-alives are good is in service at
    /// once.
    pub(crate) fn clear_hold(&mut self, now: Nanos) -> Change {
        let mut hold = None;
        let transition = self.change(Reason::HoldCleared, now, |pair| hold = pair.damping.clear());
        self.with_notice(transition, hold, now)
    }

    // Carrier and configuration

    /// Carrier came or went. Without carrier on both ports the pair is down at once and not probed; with it, probing
    /// starts after the initial delay.
    pub(crate) fn set_carrier(&mut self, side: Side, present: bool, now: Nanos) -> Change {
        let had_both = self.carrier.both();
        let mut carrier = self.carrier;
        match side {
            Side::Lan => carrier.lan = present,
            Side::Wan => carrier.wan = present,
        }
        match (had_both, carrier.both()) {
            (true, false) => {
                let (carried, on_trial) = (self.state().carries(), self.damping.is_on_trial());
                self.stop();
                self.put_down(Reason::CarrierLost { side }, now, |pair| {
                    pair.carrier = carrier;
                    let rule = pair.profile.hold_down()?;
                    if carried {
                        Some(pair.damping.fell(&rule, now))
                    } else if on_trial {
                        Some(pair.damping.failed(&rule, now))
                    } else {
                        None
                    }
                })
            }
            (false, true) => {
                self.carrier = carrier;
                self.start(now);
                Change::default()
            }
            _ => {
                self.carrier = carrier;
                Change::default()
            }
        }
    }

    /// Takes over what the configuration says now; yields the changes that follow from it.
    pub(crate) fn reconfigure(
        &mut self,
        config: &PairConfig,
        unit: UnitKey,
        profile: Profile,
        cores: u16,
        now: Nanos,
    ) -> [Change; 2] {
        self.unit = unit;
        self.role = config.role;
        let by_profile = self.adopt(profile, cores, now);
        let was = self.admin;
        if config.admin == was {
            return [by_profile, Change::default()];
        }
        // Nobody looks while it is disabled; without carrier it is down all the same.
        let disabled = config.admin == Admin::Down || was == Admin::Down;
        let reason = match self.carrier.missing() {
            Some(side) if config.admin != Admin::Down => Reason::CarrierLost { side },
            _ => Reason::Admin(config.admin),
        };
        let mut hold = None;
        let transition = self.change(reason, now, |pair| {
            pair.admin = config.admin;
            if config.admin == Admin::Down {
                pair.stop();
                hold = pair.damping.clear();
            }
            if disabled {
                pair.probes = if pair.carrier.both() { Probes::Unknown } else { Probes::Bad };
            }
        });
        if was == Admin::Down {
            self.start(now);
        }
        [by_profile, self.with_notice(transition, hold, now)]
    }

    fn adopt(&mut self, profile: Profile, cores: u16, now: Nanos) -> Change {
        let old = std::mem::replace(&mut self.profile, profile);
        if profile != old {
            let earliest = self.quiet_until.max(now + Nanos(1));
            self.streams_mut().for_each(|stream| stream.adopt(&old, &profile, earliest));
        }
        self.equip(cores, now);
        match profile.hold_down() {
            Some(rule) => {
                if Some(rule) != old.hold_down() {
                    self.damping.adopt(&rule);
                }
                Change::default()
            }
            None if self.damping.is_held() => self.clear_hold(now),
            None => Change::default(),
        }
    }

    fn change(
        &mut self,
        reason: Reason,
        now: Nanos,
        effect: impl FnOnce(&mut Pair),
    ) -> Option<PairTransition> {
        let from = self.state();
        effect(self);
        let to = self.state();
        if from == to {
            return None;
        }
        self.last_change = now;
        self.last_reason = reason;
        if from.carries() && to == PairState::Down {
            self.flaps += 1;
        }
        let tallies = self.plain.paths.map(|path| path.tally);
        Some(PairTransition { pair: self.key, unit: self.unit, from, to, reason, tallies, at: now })
    }
}
