//! A supervision, a virtual clock, and a wire whose behaviour each test gives.

use std::collections::BTreeMap;

use liveness::{
    CoreTransition, Direction, Event, HoldChange, Nanos, PairConfig, PairKey, PairState, PairTransition,
    Probe, ProbeKind, Profile, ProfileSettings, ReferenceProbe, Supervision, SuspicionChange, UnitConfig,
    UnitKey,
};

pub(crate) const UNIT: UnitKey = UnitKey(1);

pub(crate) fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

pub(crate) fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

pub(crate) fn profile(change: impl FnOnce(&mut ProfileSettings)) -> Profile {
    let mut settings = ProfileSettings::default();
    change(&mut settings);
    Profile::new(settings).unwrap()
}

/// A unit of so many active pairs, numbered from 0.
pub(crate) fn unit(profile: Profile, pairs: u16) -> UnitConfig {
    UnitConfig::new(UNIT, profile, (0..pairs).map(|key| PairConfig::new(PairKey(key))).collect())
}

/// splitmix64: a fixed seed gives the same run on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) probe: Probe,
    pub(crate) transmit: Nanos,
    pub(crate) receive: Nanos,
}

/// Delays after which copies of a keep-alive sent at an instant come back; empty: lost.
pub(crate) type Wire = Box<dyn FnMut(&Probe, Nanos) -> Vec<Nanos>>;

/// Whether a keep-alive by a reference comes back.
pub(crate) type ReferenceWire = Box<dyn FnMut(&ReferenceProbe, Nanos) -> bool>;

/// What comes back when nothing is wrong.
pub(crate) fn healthy(probe: &Probe) -> Vec<Nanos> {
    if probe.kind == ProbeKind::Negative { vec![] } else { vec![us(200)] }
}

pub(crate) struct Rig {
    pub(crate) supervision: Supervision,
    pub(crate) now: Nanos,
    pub(crate) wire: Wire,
    /// By time of arrival and a running number.
    arrivals: BTreeMap<(Nanos, u64), Arrival>,
    arrived: u64,
    /// Whether a keep-alive by a reference comes back, after 50 us.
    pub(crate) reference: ReferenceWire,
    reference_arrivals: Vec<(Nanos, ReferenceProbe)>,
    pub(crate) references: Vec<(Nanos, ReferenceProbe)>,
    pub(crate) events: Vec<Event>,
    pub(crate) sent: Vec<(Nanos, Probe)>,
}

impl Rig {
    /// Everything that should come back does after 200 us.
    pub(crate) fn new(units: &[UnitConfig]) -> Rig {
        Rig::of(Supervision::new(), units)
    }

    pub(crate) fn of(mut supervision: Supervision, units: &[UnitConfig]) -> Rig {
        supervision.configure(units, Nanos::ZERO).unwrap();
        Rig {
            supervision,
            now: Nanos::ZERO,
            wire: Box::new(|probe, _| healthy(probe)),
            arrivals: BTreeMap::new(),
            arrived: 0,
            reference: Box::new(|_, _| true),
            reference_arrivals: Vec::new(),
            references: Vec::new(),
            events: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// A rig in which every pair is up and nothing has been noted yet.
    pub(crate) fn all_up(units: &[UnitConfig]) -> Rig {
        let mut rig = Rig::new(units);
        let longest = units.iter().map(|unit| {
            // A negative probe is good when its time is over.
            unit.profile.initial_delay()
                + unit.profile.interval().times(u64::from(unit.profile.probes_up_count()) + 2)
                + unit.profile.max_delay()
        });
        rig.run_for(longest.max().unwrap() + ms(1));
        assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Up));
        rig.events.clear();
        rig.sent.clear();
        rig
    }

    pub(crate) fn lose(&mut self, lost: impl Fn(&Probe) -> bool + 'static) {
        self.wire = Box::new(move |probe, _| if lost(probe) { vec![] } else { healthy(probe) });
    }

    pub(crate) fn lose_everything(&mut self) {
        self.lose(|_| true);
    }

    pub(crate) fn lose_nothing(&mut self) {
        self.lose(|_| false);
    }

    pub(crate) fn run_for(&mut self, span: Nanos) {
        self.run_until(self.now + span);
    }

    /// Meets every deadline and every arrival up to `end` at its instant.
    pub(crate) fn run_until(&mut self, end: Nanos) {
        loop {
            let arrival = self.arrivals.first_key_value().map(|((at, _), _)| *at);
            let reference = self.reference_arrivals.first().map(|(at, _)| *at);
            let next = [arrival, reference, self.supervision.next_deadline()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.turn();
        }
        self.now = self.now.max(end);
    }

    /// One turn at the present instant: hands over what arrived, then polls.
    pub(crate) fn turn(&mut self) {
        self.deliver();
        self.poll();
    }

    pub(crate) fn deliver(&mut self) {
        let due = self.reference_arrivals.partition_point(|(at, _)| *at <= self.now);
        for (at, probe) in self.reference_arrivals.drain(..due) {
            // Of a reference removed meanwhile: unknown, as it should be.
            let _ = self.supervision.reference_received(probe, at.since(us(50)), at, self.now);
        }
        while let Some(entry) = self.arrivals.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Arrival { probe, transmit, receive } = entry.remove();
            // Of a pair removed meanwhile: unknown, as it should be.
            let _ = self.supervision.probe_received(probe, transmit, receive, self.now);
        }
    }

    pub(crate) fn poll(&mut self) {
        let actions = self.supervision.poll(self.now);
        self.events.extend(actions.events);
        for probe in actions.references {
            self.references.push((self.now, probe));
            if (self.reference)(&probe, self.now) {
                self.reference_arrivals.push((self.now + us(50), probe));
            }
        }
        for probe in actions.probes {
            self.sent.push((self.now, probe));
            for delay in (self.wire)(&probe, self.now) {
                self.arrived += 1;
                let arrival = Arrival { probe, transmit: self.now, receive: self.now + delay };
                self.arrivals.insert((arrival.receive, self.arrived), arrival);
            }
        }
    }

    /// The process does not run: arrivals wait.
    pub(crate) fn freeze_for(&mut self, span: Nanos) {
        self.now = self.now + span;
    }

    pub(crate) fn state(&self, pair: u16) -> PairState {
        self.supervision.pair(PairKey(pair)).unwrap().state
    }

    pub(crate) fn pair_transitions(&self) -> Vec<PairTransition> {
        let pick = |event: &Event| if let Event::Pair(transition) = event { Some(*transition) } else { None };
        self.events.iter().filter_map(pick).collect()
    }

    pub(crate) fn core_transitions(&self) -> Vec<CoreTransition> {
        let pick = |event: &Event| if let Event::Core(transition) = event { Some(*transition) } else { None };
        self.events.iter().filter_map(pick).collect()
    }

    pub(crate) fn holds(&self) -> Vec<HoldChange> {
        let pick = |event: &Event| if let Event::Hold(notice) = event { Some(notice.change) } else { None };
        self.events.iter().filter_map(pick).collect()
    }

    pub(crate) fn suspicion_changes(&self) -> Vec<SuspicionChange> {
        let pick =
            |event: &Event| if let Event::Suspicion(notice) = event { Some(notice.change) } else { None };
        self.events.iter().filter_map(pick).collect()
    }

    pub(crate) fn sent_by(&self, pair: u16, direction: Direction) -> Vec<Nanos> {
        self.sent_of(pair, ProbeKind::Pair, direction)
    }

    pub(crate) fn sent_of(&self, pair: u16, kind: ProbeKind, direction: Direction) -> Vec<Nanos> {
        let of = |(_, probe): &&(Nanos, Probe)| {
            (probe.pair, probe.kind, probe.direction) == (PairKey(pair), kind, direction)
        };
        self.sent.iter().filter(of).map(|(at, _)| *at).collect()
    }
}
