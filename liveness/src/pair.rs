//! A pair: its state machine, its grid of slots, its keep-alives.

use crate::flight::{Flights, Outcome};
use crate::path::Path;
use crate::{
    Direction, Nanos, PairKey, PairTransition, PathStatus, PerDirection, Probe, Profile, Reason, Side,
    UnitKey, Verdict,
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
    /// Carrier of its ports.
    pub carrier: Carrier,
    /// Since when it is in this state.
    pub last_change: Nanos,
    /// Why it is in this state.
    pub last_reason: Reason,
    /// How often it went from carrying to down.
    pub flaps: u64,
    /// Keep-alives per direction.
    pub paths: PerDirection<PathStatus>,
}

/// What the keep-alives alone say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Unknown,
    Good,
    Bad,
}

/// What the consecutive outcomes ask for.
pub(crate) enum Judgement {
    Stay,
    Rise(Reason),
    Fall(Reason),
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
    health: Health,
    carrier: Carrier,
    /// No keep-alive before this.
    quiet_until: Nanos,
    /// When the next keep-alives are due; `None` while the pair is not probed.
    slot: Option<Nanos>,
    flights: Flights,
    paths: PerDirection<Path>,
    flaps: u64,
    last_change: Nanos,
    last_reason: Reason,
    /// The entry of this pair in the queue of deadlines.
    pub(crate) timer: Option<Nanos>,
}

impl Pair {
    pub(crate) fn new(
        config: &PairConfig,
        unit: UnitKey,
        profile: Profile,
        phase: u32,
        sequence: u64,
        now: Nanos,
    ) -> Pair {
        let (health, last_reason) = match config.initial {
            Initial::Fresh => (Health::Unknown, Reason::Added),
            Initial::AdoptedUp => (Health::Good, Reason::Adopted),
            Initial::AdoptedDown => (Health::Bad, Reason::Adopted),
        };
        let path = Path::new(profile.samples());
        let mut pair = Pair {
            key: config.key,
            unit,
            role: config.role,
            admin: config.admin,
            profile,
            phase,
            health,
            carrier: Carrier { lan: true, wan: true },
            quiet_until: now,
            slot: None,
            flights: Flights::starting_at(sequence),
            paths: PerDirection { lan_to_wan: path.clone(), wan_to_lan: path },
            flaps: 0,
            last_change: now,
            last_reason,
            timer: None,
        };
        pair.start(now);
        pair
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.flights.next_sequence()
    }

    pub(crate) fn state(&self) -> PairState {
        match (self.admin, self.health) {
            (Admin::Down, _) => PairState::AdminDown,
            (_, Health::Unknown) => PairState::Init,
            (_, Health::Bad) => PairState::Down,
            (Admin::Up, Health::Good) => PairState::Up,
            (Admin::Drain, Health::Good) => PairState::Draining,
        }
    }

    pub(crate) fn status(&self) -> PairStatus {
        PairStatus {
            pair: self.key,
            unit: self.unit,
            role: self.role,
            admin: self.admin,
            state: self.state(),
            carrier: self.carrier,
            last_change: self.last_change,
            last_reason: self.last_reason,
            flaps: self.flaps,
            paths: self.paths.map(Path::status),
        }
    }

    /// When the pair wants attention: its next slot, or the age limit of its oldest keep-alive under way.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let expiry = self.expiry();
        match (self.slot, expiry) {
            (Some(slot), Some(expiry)) => Some(slot.min(expiry)),
            (slot, expiry) => slot.or(expiry),
        }
    }

    fn expiry(&self) -> Option<Nanos> {
        self.flights.oldest_sent().map(|sent| sent + self.profile.max_delay())
    }

    // Timers

    /// The first instant of the pair's grid that is not before `earliest`. The grid is absolute: it does not move
    /// when a poll is late or the pair starts anew, so that pairs stay spread over the interval.
    fn grid_from(&self, earliest: Nanos) -> Nanos {
        let interval = self.profile.interval().0;
        let offset = ((u128::from(interval) * u128::from(self.phase)) >> 32) as u64;
        let steps = earliest.0.saturating_sub(offset).div_ceil(interval);
        Nanos(offset) + Nanos(interval).times(steps)
    }

    /// Probes after the initial delay, if the pair is to be probed at all.
    fn start(&mut self, now: Nanos) {
        self.quiet_until = now + self.profile.initial_delay();
        self.slot =
            (self.admin != Admin::Down && self.carrier.both()).then(|| self.grid_from(self.quiet_until));
    }

    /// Stops probing.
    fn stop(&mut self) {
        self.slot = None;
        self.start_over();
    }

    /// Gives up what is under way and starts the consecutive outcomes anew.
    pub(crate) fn start_over(&mut self) {
        for flight in self.flights.under_way_mut() {
            for direction in Direction::BOTH {
                if flight.outcomes[direction] == Outcome::UnderWay {
                    flight.outcomes[direction] = Outcome::Void;
                    self.paths[direction].tally.counters.voided += 1;
                }
            }
        }
        self.flights.settle();
        for direction in Direction::BOTH {
            self.paths[direction].restart();
        }
    }

    /// Does one thing that is due at `now`: the end of a keep-alive under way, or else a slot. `gap` names the gap that this
    /// poll ends, if it does.
    pub(crate) fn attend(&mut self, now: Nanos, gap: Option<u64>) -> Option<[Probe; 2]> {
        if self.expiry().is_some_and(|expiry| expiry <= now) {
            self.expire(now, gap);
            return None;
        }
        self.slot.filter(|slot| *slot <= now)?;
        let sequence = self.flights.launch(now);
        for direction in Direction::BOTH {
            self.paths[direction].tally.counters.sent += 1;
        }
        // Slots that were missed are skipped, not made up for.
        self.slot = Some(self.grid_from(now + Nanos(1)));
        Some(Direction::BOTH.map(|direction| Probe { pair: self.key, direction, sequence }))
    }

    fn expire(&mut self, now: Nanos, gap: Option<u64>) {
        if let Some(flight) = self.flights.oldest_mut() {
            for direction in Direction::BOTH {
                let (outcome, path) = (&mut flight.outcomes[direction], &mut self.paths[direction]);
                match gap.filter(|&gap| path.may_void(gap)) {
                    _ if *outcome != Outcome::UnderWay => {}
                    Some(gap) => {
                        *outcome = Outcome::Void;
                        path.void_in_gap(gap);
                    }
                    None => {
                        *outcome = Outcome::Lost;
                        path.lost(now);
                    }
                }
            }
        }
        self.flights.settle();
    }

    // Keep-alives that came back

    pub(crate) fn receive(
        &mut self,
        direction: Direction,
        sequence: u64,
        transmit: Nanos,
        receive: Nanos,
        now: Nanos,
    ) -> Verdict {
        let path = &mut self.paths[direction];
        let verdict = match (self.flights.outcome_mut(sequence, direction), receive.0.checked_sub(transmit.0))
        {
            (None, _) | (_, None) => Verdict::Stale,
            (Some(outcome), Some(delay)) => match *outcome {
                Outcome::UnderWay if Nanos(delay) <= self.profile.max_delay() => {
                    *outcome = Outcome::Good;
                    path.good(Nanos(delay));
                    Verdict::Good
                }
                Outcome::UnderWay => {
                    *outcome = Outcome::Late;
                    path.lost(now);
                    Verdict::Late
                }
                Outcome::Lost => {
                    *outcome = Outcome::Late;
                    Verdict::Late
                }
                Outcome::Good | Outcome::Late => Verdict::Duplicate,
                Outcome::Void => Verdict::Stale,
            },
        };
        let counters = &mut path.tally.counters;
        match verdict {
            Verdict::Good => {}
            Verdict::Late => counters.late += 1,
            Verdict::Duplicate => counters.duplicate += 1,
            Verdict::Stale => counters.stale += 1,
        }
        self.flights.settle();
        verdict
    }

    /// Gives up a keep-alive that could not be sent.
    pub(crate) fn unsent(&mut self, direction: Direction, sequence: u64) {
        if let Some(outcome) = self.flights.outcome_mut(sequence, direction)
            && *outcome == Outcome::UnderWay
        {
            *outcome = Outcome::Void;
            self.paths[direction].tally.counters.voided += 1;
            self.flights.settle();
        }
    }

    pub(crate) fn path_mut(&mut self, direction: Direction) -> &mut Path {
        &mut self.paths[direction]
    }

    // State machine

    /// What the consecutive outcomes ask for.
    pub(crate) fn judge(&self) -> Judgement {
        if self.slot.is_none() {
            return Judgement::Stay;
        }
        let tallies = self.paths.map(|path| path.tally);
        let count = tallies.lan_to_wan.consecutive_good.min(tallies.wan_to_lan.consecutive_good);
        if self.health != Health::Good && count >= self.profile.probes_up_count() {
            return Judgement::Rise(Reason::Good { count });
        }
        let (direction, count) = self.longest_loss();
        if self.health != Health::Bad && count >= self.profile.probes_down_count() {
            return Judgement::Fall(Reason::Losses { direction, count });
        }
        Judgement::Stay
    }

    fn longest_loss(&self) -> (Direction, u32) {
        let lost = self.paths.map(|path| path.tally.consecutive_lost);
        if lost.wan_to_lan > lost.lan_to_wan {
            (Direction::WanToLan, lost.wan_to_lan)
        } else {
            (Direction::LanToWan, lost.lan_to_wan)
        }
    }

    /// Whether it has lost all but one of probes-down-count in a row. When everything fails at once, this is how far
    /// every other pair has come when the first one reaches its count, whatever their places on the interval.
    pub(crate) fn is_failing(&self) -> bool {
        self.longest_loss().1 >= (self.profile.probes_down_count() - 1).max(1)
    }

    /// Whether both directions answer, since their last loss.
    pub(crate) fn does_well(&self) -> bool {
        Direction::BOTH.iter().all(|&direction| self.paths[direction].tally.consecutive_good > 0)
    }

    /// Whether losses, and nothing else since, took it down not longer than `window` ago.
    pub(crate) fn fell_within(&self, window: Nanos, now: Nanos) -> bool {
        self.state() == PairState::Down
            && self.carrier.both()
            && matches!(self.last_reason, Reason::Losses { .. })
            && self.last_change + window >= now
    }

    pub(crate) fn rise(&mut self, reason: Reason, now: Nanos) -> Option<PairTransition> {
        self.change(reason, now, |pair| pair.health = Health::Good)
    }

    pub(crate) fn fall(&mut self, reason: Reason, now: Nanos) -> Option<PairTransition> {
        self.change(reason, now, |pair| pair.health = Health::Bad)
    }

    /// Carrier came or went. Without carrier on both ports the pair is down at once and not probed; with it, probing
    /// starts after the initial delay.
    pub(crate) fn set_carrier(&mut self, side: Side, present: bool, now: Nanos) -> Option<PairTransition> {
        let had_both = self.carrier.both();
        match side {
            Side::Lan => self.carrier.lan = present,
            Side::Wan => self.carrier.wan = present,
        }
        match (had_both, self.carrier.both()) {
            (true, false) => {
                self.stop();
                self.fall(Reason::CarrierLost { side }, now)
            }
            (false, true) => {
                self.start(now);
                None
            }
            _ => None,
        }
    }

    /// Takes over what the configuration says now; yields the transitions that follow from it.
    pub(crate) fn reconfigure(
        &mut self,
        config: &PairConfig,
        unit: UnitKey,
        profile: Profile,
        now: Nanos,
    ) -> impl Iterator<Item = PairTransition> {
        self.unit = unit;
        self.role = config.role;
        if profile != self.profile {
            self.adopt(profile, now);
        }
        let was = self.admin;
        let by_admin = (config.admin != was).then(|| {
            self.change(Reason::Admin(config.admin), now, |pair| {
                pair.admin = config.admin;
                if config.admin == Admin::Down {
                    pair.stop();
                }
                // Nobody looked while it was disabled.
                if config.admin == Admin::Down || was == Admin::Down {
                    pair.health = Health::Unknown;
                }
            })
        });
        if was == Admin::Down && config.admin != Admin::Down {
            self.start(now);
        }
        let missing = self.carrier.missing().filter(|_| self.state() == PairState::Init);
        let by_carrier = missing.and_then(|side| self.fall(Reason::CarrierLost { side }, now));
        by_admin.flatten().into_iter().chain(by_carrier)
    }

    /// Changes the profile in flight: keep-alives under way get the new max-delay, the next slot lies on the new grid.
    fn adopt(&mut self, profile: Profile, now: Nanos) {
        let old = std::mem::replace(&mut self.profile, profile);
        for direction in Direction::BOTH {
            self.paths[direction].resize(profile.samples());
        }
        if profile.interval() != old.interval() && self.slot.is_some() {
            self.slot = Some(self.grid_from(self.quiet_until.max(now + Nanos(1))));
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
        let tallies = self.paths.map(|path| path.tally);
        Some(PairTransition { pair: self.key, unit: self.unit, from, to, reason, tallies, at: now })
    }
}
