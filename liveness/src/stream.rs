//! One stream of keep-alives: its grid of slots, what is under way, what came of it.

use crate::dice::mix;
use crate::flight::{Flights, KEPT, KEPT_OF_CORE, Outcome};
use crate::path::Path;
use crate::{Direction, Nanos, PerDirection, ProbeKind, ProbeMode, Profile, Verdict};

/// What a look at a stream came to.
pub(crate) enum Attended {
    /// A keep-alive's time ran out.
    Expired,
    /// Keep-alives with this number are to be sent, one per direction.
    Due(u64),
    /// Nothing was due.
    Idle,
}

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Place on the interval, in 2^-32 of it.
    phase: u32,
    /// Of the instants of burst mode.
    seed: u64,
    /// Those that come back are the bad ones.
    negative: bool,
    /// When the next keep-alives are due; `None` while nothing is sent.
    slot: Option<Nanos>,
    flights: Flights,
    pub(crate) paths: PerDirection<Path>,
    /// The entry of this stream in the queue of deadlines.
    pub(crate) timer: Option<Nanos>,
}

impl Stream {
    /// A stream whose paths keep times, unless it is a core's or of negative probes.
    pub(crate) fn new(kind: ProbeKind, phase: u32, seed: u64, sequence: u64, profile: &Profile) -> Stream {
        let (path, kept) = match kind {
            ProbeKind::Pair | ProbeKind::Ip => (Path::measuring(profile.samples()), KEPT),
            ProbeKind::Negative => (Path::counting(), KEPT),
            ProbeKind::Core(_) => (Path::counting(), KEPT_OF_CORE),
        };
        Stream {
            phase,
            seed,
            negative: kind == ProbeKind::Negative,
            slot: None,
            flights: Flights::starting_at(sequence, kept),
            paths: PerDirection { lan_to_wan: path.clone(), wan_to_lan: path },
            timer: None,
        }
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.flights.next_sequence()
    }

    /// When the stream wants attention: its next slot, or the age limit of its oldest keep-alive under way.
    pub(crate) fn deadline(&self, profile: &Profile) -> Option<Nanos> {
        let expiry = self.expiry(profile);
        match (self.slot, expiry) {
            (Some(slot), Some(expiry)) => Some(slot.min(expiry)),
            (slot, expiry) => slot.or(expiry),
        }
    }

    fn expiry(&self, profile: &Profile) -> Option<Nanos> {
        self.flights.oldest_sent().map(|sent| sent + profile.max_delay())
    }

    /// The first slot that is not before `earliest`. The grid of intervals is absolute: it does not move when a poll is
    /// late or the pair starts anew, so that pairs stay spread over the interval.
    fn slot_from(&self, earliest: Nanos, profile: &Profile) -> Nanos {
        let (interval, offset) = (profile.interval(), self.offset(profile));
        let since = earliest.since(offset).0;
        match profile.mode() {
            ProbeMode::Standard => offset + interval.times(since.div_ceil(interval.0)),
            ProbeMode::Burst => {
                let cell = since / interval.0;
                let instant = |cell: u64| {
                    let place = mix(self.seed ^ mix(cell)) % interval.0;
                    offset + interval.times(cell) + Nanos(place)
                };
                let this = instant(cell);
                if this >= earliest { this } else { instant(cell + 1) }
            }
        }
    }

    fn offset(&self, profile: &Profile) -> Nanos {
        Nanos(((u128::from(profile.interval().0) * u128::from(self.phase)) >> 32) as u64)
    }

    /// Where the interval of the grid ends that this slot lies in.
    fn end_of_cell(&self, slot: Nanos, profile: &Profile) -> Nanos {
        let (interval, offset) = (profile.interval(), self.offset(profile));
        if slot < offset {
            return offset;
        }
        offset + interval.times(slot.since(offset).0 / interval.0 + 1)
    }

    /// Sends from the first slot that is not before `earliest`.
    pub(crate) fn start(&mut self, earliest: Nanos, profile: &Profile) {
        self.slot = Some(self.slot_from(earliest, profile));
    }

    /// Stops sending.
    pub(crate) fn stop(&mut self) {
        self.slot = None;
        self.start_over();
    }

    /// Whether it sends.
    pub(crate) fn runs(&self) -> bool {
        self.slot.is_some()
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

    /// Does one thing that is due at `now`: the end of a keep-alive under way, or else a slot. `gap` names the gap that
    /// this poll ends, if it does.
    pub(crate) fn attend(&mut self, now: Nanos, gap: Option<u64>, profile: &Profile) -> Attended {
        if self.expiry(profile).is_some_and(|expiry| expiry <= now) {
            self.expire(now, gap);
            return Attended::Expired;
        }
        let Some(slot) = self.slot.filter(|slot| *slot <= now) else { return Attended::Idle };
        let sequence = self.flights.launch(now);
        for direction in Direction::BOTH {
            self.paths[direction].tally.counters.sent += 1;
        }
        // Slots that were missed are skipped, not made up for; an interval has one at most.
        let earliest = match profile.mode() {
            ProbeMode::Standard => now + Nanos(1),
            ProbeMode::Burst => self.end_of_cell(slot, profile).max(now + Nanos(1)),
        };
        self.slot = Some(self.slot_from(earliest, profile));
        Attended::Due(sequence)
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
                    None if self.negative => {
                        *outcome = Outcome::Good;
                        path.passed(now);
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

    /// One came back.
    pub(crate) fn receive(
        &mut self,
        direction: Direction,
        sequence: u64,
        delay: Option<Nanos>,
        max_delay: Nanos,
        now: Nanos,
    ) -> Verdict {
        let path = &mut self.paths[direction];
        let verdict = match (self.flights.outcome_mut(sequence, direction), delay) {
            (None, _) => Verdict::Stale,
            (Some(outcome), _) if self.negative => match *outcome {
                Outcome::UnderWay => {
                    *outcome = Outcome::Lost;
                    path.lost(now);
                    Verdict::Returned
                }
                Outcome::Good => {
                    *outcome = Outcome::Late;
                    path.tally.counters.late += 1;
                    path.failed(now);
                    Verdict::Returned
                }
                Outcome::Lost | Outcome::Late => Verdict::Duplicate,
                Outcome::Void => Verdict::Stale,
            },
            (_, None) => Verdict::Stale,
            (Some(outcome), Some(delay)) => match *outcome {
                Outcome::UnderWay if delay <= max_delay => {
                    *outcome = Outcome::Good;
                    path.good(delay, now);
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
            Verdict::Good | Verdict::Returned => {}
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

    /// Takes over another profile: keep-alives under way get the new max-delay, the next slot lies on the new grid.
    pub(crate) fn adopt(&mut self, old: &Profile, new: &Profile, earliest: Nanos) {
        for direction in Direction::BOTH {
            self.paths[direction].resize(new.samples());
        }
        if (new.interval(), new.mode()) != (old.interval(), old.mode()) && self.slot.is_some() {
            self.start(earliest, new);
        }
    }

    /// Good ones in a row: of the direction that has fewer.
    pub(crate) fn consecutive_good(&self) -> u32 {
        let good = |direction: Direction| self.paths[direction].tally.consecutive_good;
        good(Direction::LanToWan).min(good(Direction::WanToLan))
    }

    /// Bad ones of a direction in a row.
    pub(crate) fn losses(&self, direction: Direction) -> u32 {
        self.paths[direction].tally.consecutive_lost
    }

    /// Bad ones in a row, and their direction: the one that has more.
    pub(crate) fn longest_loss(&self) -> (Direction, u32) {
        let (there, back) = (self.losses(Direction::LanToWan), self.losses(Direction::WanToLan));
        if back > there { (Direction::WanToLan, back) } else { (Direction::LanToWan, there) }
    }

    /// Whether it has lost so many of probes-down-count in a row as any other does when everything fails at once and
    /// the first reaches the count, whatever their places on the interval.
    pub(crate) fn is_failing(&self, profile: &Profile) -> bool {
        self.longest_loss().1 >= profile.probes_down_count().saturating_sub(profile.lag()).max(1)
    }

    /// Whether both directions answer, since their last loss.
    pub(crate) fn does_well(&self) -> bool {
        self.consecutive_good() > 0
    }
}
