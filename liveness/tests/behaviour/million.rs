//! A million random outcomes against an independent model of the state table: plain keep-alives, cores, `ip` and
//! `negative` probes, hold-down.

use std::cell::RefCell;
use std::rc::Rc;

use liveness::{CoreState, Direction, HoldDown, Nanos, PairState, ProbeKind, UnitConfig};

use crate::rig::{Dice, Rig, ms, profile, unit, us};

/// Consecutive outcomes of a stream, both directions.
#[derive(Clone, Default)]
struct Row {
    good: [u32; 2],
    bad: [u32; 2],
    last_good: [Option<Nanos>; 2],
    last_bad: [Nanos; 2],
}

impl Row {
    fn put(&mut self, direction: usize, good: bool, at: Nanos) {
        if good {
            (self.good[direction], self.bad[direction]) = (self.good[direction] + 1, 0);
            self.last_good[direction] = Some(at);
        } else {
            (self.good[direction], self.bad[direction]) = (0, self.bad[direction] + 1);
            self.last_bad[direction] = at;
        }
    }

    fn clear(&mut self) {
        (self.good, self.bad) = ([0; 2], [0; 2]);
    }

    fn both(&self) -> u32 {
        self.good[0].min(self.good[1])
    }

    fn worst(&self) -> u32 {
        self.bad[0].max(self.bad[1])
    }
}

struct Hold {
    until: Nanos,
    number: u32,
    trial: bool,
}

struct Model {
    down: u32,
    up: u32,
    rule: Option<HoldDown>,
    plain: Row,
    ip: Option<Row>,
    negative: Option<Row>,
    cores: Vec<(Row, CoreState)>,
    works: Option<bool>,
    hold: Option<Hold>,
    downs: Vec<Nanos>,
    /// The plain ones fail: the cores are not looked at.
    dark: bool,
    /// What was sent before counts no more: of the conditions, of the cores.
    from: Nanos,
    cores_from: Nanos,
    state: PairState,
    pair_log: Vec<(Nanos, PairState)>,
    core_log: Vec<(Nanos, u8, CoreState)>,
}

impl Model {
    fn rows(&self) -> Vec<&Row> {
        [Some(&self.plain), self.ip.as_ref(), self.negative.as_ref()].into_iter().flatten().collect()
    }

    fn start_hold(&mut self, number: u32, at: Nanos) {
        let Some(rule) = self.rule else { return };
        let doubled = u64::from(rule.base_ms) << (number - 1).min(20);
        let until = at + ms(doubled.min(rule.ceiling_ms.into()));
        self.downs.push(at);
        self.hold = Some(Hold { until, number, trial: false });
    }

    /// Outcomes of one stream at one instant.
    fn step(&mut self, at: Nanos, kind: ProbeKind, outcomes: &[(usize, Nanos, bool)]) {
        if let Some(hold) = self.hold.as_mut().filter(|hold| !hold.trial && hold.until <= at) {
            hold.trial = true;
            self.from = hold.until;
            self.plain.clear();
            self.ip.iter_mut().for_each(Row::clear);
            self.negative.iter_mut().for_each(Row::clear);
        }
        let (row, from) = match kind {
            ProbeKind::Pair => (Some(&mut self.plain), self.from),
            ProbeKind::Ip => (self.ip.as_mut(), self.from),
            ProbeKind::Negative => (self.negative.as_mut(), self.from),
            ProbeKind::Core(core) => (Some(&mut self.cores[usize::from(core)].0), self.cores_from),
        };
        let row = row.unwrap();
        let counted: Vec<_> = outcomes.iter().filter(|(_, sent, _)| *sent >= from).collect();
        if counted.is_empty() {
            return;
        }
        for (direction, _, good) in counted {
            row.put(*direction, *good, at);
        }
        self.dark |= self.plain.worst() >= (self.down - 1).max(1);
        if self.dark && self.plain.both() > 0 {
            self.dark = false;
            self.cores_from = at;
            self.cores.iter_mut().for_each(|(row, _)| row.clear());
        }
        if let ProbeKind::Core(number) = kind {
            let (row, state) = &mut self.cores[usize::from(number)];
            let to = if row.both() >= self.up {
                CoreState::Up
            } else if row.worst() >= self.down && !self.dark {
                CoreState::Down
            } else {
                *state
            };
            if to != *state {
                *state = to;
                self.core_log.push((at, number, to));
            }
        }
        self.judge(at);
        let to = match (self.works, &self.hold) {
            (None, _) => PairState::Init,
            (Some(false), _) => PairState::Down,
            (Some(true), Some(_)) => PairState::Held,
            (Some(true), None) => PairState::Up,
        };
        if to != self.state {
            self.state = to;
            self.pair_log.push((at, to));
        }
    }

    fn judge(&mut self, at: Nanos) {
        let ready = self.rows().iter().all(|row| row.both() >= self.up)
            && (self.cores.is_empty() || self.cores.iter().any(|(_, state)| *state == CoreState::Up));
        let no_core = !self.cores.is_empty() && self.cores.iter().all(|(_, state)| *state == CoreState::Down);
        if let Some(number) = self.hold.as_ref().filter(|hold| hold.trial).map(|hold| hold.number) {
            let failed = self.rows().iter().any(|row| row.worst() > 0);
            if failed || no_core && self.plain.both() >= self.up {
                self.start_hold(number + 1, at);
            } else if ready {
                (self.works, self.hold) = (Some(true), None);
            }
        } else if self.works != Some(true) && ready {
            self.works = Some(true);
        } else if self.works != Some(false) && self.complains(no_core) {
            self.works = Some(false);
            if let Some(rule) = self.rule.filter(|_| self.state == PairState::Up) {
                self.downs.retain(|down| *down + rule.window() >= at);
                self.start_hold(u32::try_from(self.downs.len()).unwrap() + 1, at);
            }
        }
    }

    fn complains(&self, no_core: bool) -> bool {
        let patience = self.rule.filter(|_| self.hold.is_some()).map_or(Nanos::ZERO, |rule| rule.base());
        let bad = |row: &Row| {
            (0..2).any(|i| {
                row.bad[i] >= self.down
                    && row.last_good[i].is_none_or(|good| good + patience <= row.last_bad[i])
            })
        };
        let excused = self.plain.worst() >= (self.down - 1).max(1);
        bad(&self.plain)
            || self.negative.as_ref().is_some_and(bad)
            || !excused && (self.ip.as_ref().is_some_and(bad) || no_core)
    }
}

/// One direction after the other, so that no two come back at once.
fn back_after(direction: usize) -> Nanos {
    us([200, 211][direction])
}

type Fates = Rc<RefCell<Vec<(Nanos, ProbeKind, usize, bool)>>>;

/// Outcomes that the world decided, and how many transitions came of them.
fn agree(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let rule = HoldDown { window_ms: 20_000, base_ms: 203, ceiling_ms: 1_709 };
    let profile = profile(|p| {
        p.interval_ms = 10;
        p.max_delay_us = Some(7_301);
        p.initial_delay_ms = 10;
        p.probes_down_count = 1 + dice.below(5) as u32;
        p.probes_up_count = 1 + dice.below(5) as u32;
        p.suspend_limit_ms = 0;
        p.hold_down = dice.percent(70).then_some(rule);
        p.probe_cores = dice.percent(60);
        p.ip = dice.percent(50);
        p.negative = dice.percent(40);
    });
    let cores = 1 + dice.below(3) as u16;
    let mut rig = Rig::new(&[UnitConfig { cores, ..unit(profile, 1) }]);
    let fates: Fates = Rc::default();
    let kept = Rc::clone(&fates);
    let mut moods = [(0u64, 0u64); 8];
    rig.wire = Box::new(move |probe, now| {
        let mood = &mut moods[match probe.kind {
            ProbeKind::Pair => 0,
            ProbeKind::Ip => 1,
            ProbeKind::Negative => 2,
            ProbeKind::Core(core) => 3 + usize::from(core),
        }];
        if mood.0 == 0 {
            // Good and bad times, so that counts are reached.
            *mood = (4 + dice.below(60), [1, 3, 15, 40, 97][dice.below(5) as usize]);
        }
        mood.0 -= 1;
        let good = !dice.percent(mood.1);
        let direction = usize::from(probe.direction == Direction::WanToLan);
        kept.borrow_mut().push((now, probe.kind, direction, good));
        if good == (probe.kind == ProbeKind::Negative) { vec![] } else { vec![back_after(direction)] }
    });
    rig.run_until(ms(20_000));

    let mut model = Model {
        down: profile.probes_down_count(),
        up: profile.probes_up_count(),
        rule: profile.hold_down(),
        plain: Row::default(),
        ip: profile.ip().then(Row::default),
        negative: profile.negative().then(Row::default),
        cores: if profile.probe_cores() {
            vec![(Row::default(), CoreState::Init); usize::from(cores)]
        } else {
            vec![]
        },
        works: None,
        hold: None,
        downs: Vec::new(),
        dark: false,
        from: Nanos::ZERO,
        cores_from: Nanos::ZERO,
        state: PairState::Init,
        pair_log: Vec::new(),
        core_log: Vec::new(),
    };
    let fates = fates.borrow();
    let known = |(sent, kind, direction, good): &(Nanos, ProbeKind, usize, bool)| {
        // What comes back is known then, what stays away when its time is over.
        let back = *good != (*kind == ProbeKind::Negative);
        *sent + if back { back_after(*direction) } else { us(7_301) }
    };
    let mut outcomes: Vec<_> =
        fates.iter().map(|fate| (known(fate), fate.1, fate.2, fate.0, fate.3)).collect();
    outcomes.retain(|outcome| outcome.0 <= rig.now);
    outcomes.sort_by_key(|outcome| (outcome.0, outcome.1, outcome.2));
    for batch in outcomes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let rows: Vec<_> = batch.iter().map(|outcome| (outcome.2, outcome.3, outcome.4)).collect();
        model.step(batch[0].0, batch[0].1, &rows);
    }
    let seen: Vec<_> = rig.pair_transitions().iter().map(|t| (t.at, t.to)).collect();
    let settings = profile.settings();
    assert_eq!(seen, model.pair_log, "seed {seed}: {settings:?}");
    let seen: Vec<_> = rig.core_transitions().iter().map(|t| (t.at, t.core, t.to)).collect();
    assert_eq!(seen, model.core_log, "seed {seed}: {settings:?}");
    (outcomes.len(), model.pair_log.len() + model.core_log.len())
}

#[test]
fn a_million_random_outcomes_agree_with_an_independent_model() {
    let (mut outcomes, mut transitions, mut seed) = (0, 0, 0);
    while outcomes < 1_000_000 {
        let (more, changes) = agree(seed);
        (outcomes, transitions, seed) = (outcomes + more, transitions + changes, seed + 1);
    }
    println!("{outcomes} outcomes, {transitions} transitions, {seed} profiles");
    assert!(transitions > 10_000, "{transitions} transitions are too few to mean something");
}
