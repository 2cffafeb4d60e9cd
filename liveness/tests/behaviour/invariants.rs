//! Whatever happens in whatever order, the books balance.

use std::collections::{BTreeMap, BTreeSet};

use liveness::{
    Admin, Direction, Event, HoldDown, Initial, PairConfig, PairKey, PairState, ProbeMode, ReferenceKey,
    Rejection, Role, Side, UnitConfig, UnitKey, UnitMode, UnitState,
};
use proptest::prelude::*;

use crate::rig::{Dice, Rig, ms, profile, us};

fn random_units(dice: &mut Dice) -> Vec<UnitConfig> {
    let mut key = 0;
    (0..dice.below(3))
        .map(|unit| {
            let profile = profile(|p| {
                p.interval_ms = [10, 30, 100][dice.below(3) as usize];
                p.probes_down_count = 1 + dice.below(5) as u32;
                p.probes_up_count = 1 + dice.below(5) as u32;
                p.max_delay_us = [None, Some(5_000), Some(150_000)][dice.below(3) as usize];
                p.initial_delay_ms = 50;
                p.active_pairs = 1 + dice.below(3) as u16;
                p.suspend_limit_ms = [0, 300][dice.below(2) as usize];
                p.mode = [ProbeMode::Standard, ProbeMode::Burst][dice.below(2) as usize];
                let rule = HoldDown { window_ms: 5_000, base_ms: 200, ceiling_ms: 1_000 };
                p.hold_down = dice.percent(50).then_some(rule);
                p.reference = dice.percent(50).then_some(ReferenceKey(dice.below(2) as u16));
                p.probe_cores = dice.percent(40);
                p.ip = dice.percent(30);
                p.negative = dice.percent(30);
            });
            let pairs = (0..dice.below(5))
                .map(|_| {
                    key += 1 + dice.below(2) as u16;
                    PairConfig {
                        key: PairKey(key),
                        role: [Role::Active, Role::Active, Role::Spare][dice.below(3) as usize],
                        admin: [Admin::Up, Admin::Up, Admin::Drain, Admin::Down][dice.below(4) as usize],
                        initial: [Initial::Fresh, Initial::AdoptedUp, Initial::AdoptedDown]
                            [dice.below(3) as usize],
                    }
                })
                .collect();
            UnitConfig {
                cores: dice.below(4) as u16,
                rebalance: dice.percent(50),
                mode: [UnitMode::Auto, UnitMode::Auto, UnitMode::Bypass, UnitMode::Primary]
                    [dice.below(4) as usize],
                ..UnitConfig::new(UnitKey(unit as u16), profile, pairs)
            }
        })
        .collect()
}

/// What the events alone say about the pairs and units that have been there since the last configuration.
#[derive(Default)]
struct Follower {
    pairs: BTreeMap<PairKey, PairState>,
    units: BTreeMap<UnitKey, UnitState>,
}

impl Follower {
    fn start_from(&mut self, rig: &Rig) {
        self.pairs = rig.supervision.pairs().map(|pair| (pair.pair, pair.state)).collect();
        self.units = rig.supervision.units().map(|unit| (unit.unit, unit.state)).collect();
    }

    fn follow(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Pair(t) => assert_eq!(self.pairs.insert(t.pair, t.to), Some(t.from), "{event:?}"),
                Event::Unit(t) => assert_eq!(self.units.insert(t.unit, t.to), Some(t.from), "{event:?}"),
                Event::Core(_) | Event::Hold(_) | Event::Suspicion(_) | Event::Cabling(_) => {}
            }
        }
    }

    fn agrees_with(&self, rig: &Rig) {
        for pair in rig.supervision.pairs() {
            assert_eq!(self.pairs.get(&pair.pair), Some(&pair.state));
        }
        for unit in rig.supervision.units() {
            assert_eq!(self.units.get(&unit.unit), Some(&unit.state));
        }
    }
}

fn books_balance(rig: &Rig, units: &[UnitConfig]) {
    for pair in rig.supervision.pairs() {
        for direction in Direction::BOTH {
            let path = pair.paths[direction];
            let counters = path.tally.counters;
            let settled = counters.good + counters.lost + counters.voided;
            assert!(settled <= counters.sent && counters.sent - settled <= 64, "{pair:?}");
            assert!(counters.late <= counters.lost, "{pair:?}");
            assert!(path.tally.consecutive_good == 0 || path.tally.consecutive_lost == 0, "{pair:?}");
        }
        assert!(pair.state != PairState::Held || pair.hold.is_some(), "{pair:?}");
        assert!(pair.hold.is_none() || !pair.state.carries(), "{pair:?}");
        if !(pair.carrier.lan && pair.carrier.wan) {
            assert!(matches!(pair.state, PairState::Down | PairState::AdminDown), "{pair:?}");
        }
    }
    for config in units {
        let unit = rig.supervision.unit(config.key).unwrap();
        let states: Vec<_> =
            config.pairs.iter().map(|p| (p.role, rig.supervision.pair(p.key).unwrap().state)).collect();
        let of = |role| states.iter().filter(move |(r, _)| *r == role);
        let carrying = of(Role::Active).filter(|(_, state)| state.carries()).count();
        let spares = of(Role::Spare).filter(|(_, state)| *state == PairState::Up).count();
        let in_service = (carrying + if config.rebalance { spares } else { 0 }).min(of(Role::Active).count());
        assert_eq!(usize::from(unit.in_service), in_service, "{unit:?} of {states:?}");
        let expected = match config.mode {
            UnitMode::Bypass => UnitState::Bypass,
            UnitMode::Primary => UnitState::Primary,
            UnitMode::Auto if in_service >= usize::from(config.profile.active_pairs()) => UnitState::Up,
            UnitMode::Auto => UnitState::Bypass,
        };
        assert_eq!(unit.state, expected, "{unit:?} of {states:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_books_balance_whatever_happens(seed: u64) {
        let mut dice = Dice(seed);
        let mut units = random_units(&mut dice);
        let mut rig = Rig::new(&units);
        let mut follower = Follower::default();
        follower.start_from(&rig);
        let mut fate = Dice(seed ^ 0xFEED);
        let mut references = Dice(seed ^ 0xFACE);
        rig.reference = Box::new(move |_, _| references.percent(60));
        rig.wire = Box::new(move |_, _| match fate.below(10) {
            0..3 => vec![],
            3 => vec![us(100), us(90)],
            4 => vec![ms(fate.below(200))],
            _ => vec![us(fate.below(1_000))],
        });
        for _ in 0..120 {
            match dice.below(12) {
                0 => {
                    // News from before the change is told before it.
                    rig.turn();
                    follower.follow(&std::mem::take(&mut rig.events));
                    follower.agrees_with(&rig);
                    let before: BTreeSet<_> = rig.supervision.pairs().map(|pair| pair.pair).collect();
                    units = random_units(&mut dice);
                    rig.supervision.configure(&units, rig.now).unwrap();
                    let mut fresh = Follower::default();
                    fresh.start_from(&rig);
                    follower.pairs.retain(|key, _| fresh.pairs.contains_key(key));
                    follower.units.retain(|key, _| fresh.units.contains_key(key));
                    // Those added start without an event.
                    for (key, state) in fresh.pairs {
                        if !before.contains(&key) {
                            follower.pairs.insert(key, state);
                        }
                    }
                    for (key, state) in fresh.units {
                        follower.units.entry(key).or_insert(state);
                    }
                }
                1 | 2 => {
                    let pairs: Vec<_> = rig.supervision.pairs().map(|pair| pair.pair).collect();
                    if !pairs.is_empty() {
                        let pair = pairs[dice.below(pairs.len() as u64) as usize];
                        let side = if dice.percent(50) { Side::Lan } else { Side::Wan };
                        rig.supervision.carrier(pair, side, dice.percent(70), rig.now).unwrap();
                    }
                }
                3 => rig.freeze_for(ms(dice.below(1_500))),
                4 => {
                    for (_, probe) in rig.sent.iter().rev().take(3) {
                        // Of a pair removed meanwhile: unknown, as it should be.
                        let _ = rig.supervision.probe_unsent(*probe);
                        let why = Rejection::WrongPair(PairKey(9));
                        let _ = rig.supervision.probe_rejected(probe.pair, probe.kind, probe.direction, why, rig.now);
                    }
                }
                5 => rig.poll(),
                6 => {
                    let pairs: Vec<_> = rig.supervision.pairs().map(|pair| pair.pair).collect();
                    for pair in pairs {
                        rig.supervision.clear_hold(pair, rig.now).unwrap();
                    }
                }
                _ => rig.run_for(ms(dice.below(700))),
            }
            books_balance(&rig, &units);
        }
        rig.turn();
        follower.follow(&rig.events);
        follower.agrees_with(&rig);
        let mut seen = BTreeSet::new();
        for (_, probe) in &rig.references {
            prop_assert!(
                seen.insert((PairKey(probe.reference.0), None, probe.direction, probe.sequence)),
                "sent twice: {probe:?}"
            );
        }
        for (_, probe) in &rig.sent {
            prop_assert!(
                seen.insert((probe.pair, Some(probe.kind), probe.direction, probe.sequence)),
                "sent twice: {probe:?}"
            );
        }
    }
}
