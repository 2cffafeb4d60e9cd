//! Two ends under one virtual clock: the supervision here, an appliance there, between them a wire that loses,
//! delays, doubles and reorders.

use std::cell::RefCell;
use std::rc::Rc;

use liveness::{Direction, Nanos, PairKey, PairState, PerDirection, Profile};

use crate::rig::{Dice, Rig, ms, profile, unit, us};

const PAIRS: u16 = 8;

/// What the far end knows it did to the keep-alives of one direction of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ledger {
    good: u64,
    lost: u64,
    late: u64,
    duplicate: u64,
}

/// An appliance that works off keep-alives one after the other, behind a bad wire.
struct Appliance {
    busy_until: Nanos,
    dice: Dice,
    loss: u64,
    doubling: u64,
    stall: u64,
}

impl Appliance {
    /// Delays after which the copies come back.
    fn pass(&mut self, now: Nanos) -> Vec<Nanos> {
        if self.dice.percent(self.loss) {
            return vec![];
        }
        if self.dice.percent(self.stall) {
            self.busy_until = self.busy_until.max(now) + ms(self.dice.below(150));
        }
        self.busy_until = self.busy_until.max(now) + us(20);
        let wire = us(self.dice.below(3_000));
        let mut copies = vec![self.busy_until.since(now) + wire];
        if self.dice.percent(self.doubling) {
            copies.push(self.busy_until.since(now) + us(self.dice.below(30_000)));
        }
        copies
    }
}

type Ledgers = Rc<RefCell<Vec<PerDirection<Ledger>>>>;

fn connect(rig: &mut Rig, seed: u64, (loss, doubling, stall): (u64, u64, u64), max_delay: Nanos) -> Ledgers {
    let ledgers: Ledgers = Rc::new(RefCell::new(vec![PerDirection::default(); usize::from(PAIRS)]));
    let kept = Rc::clone(&ledgers);
    let mut appliances: Vec<Appliance> = (0..PAIRS)
        .map(|pair| Appliance {
            busy_until: Nanos::ZERO,
            dice: Dice(seed + u64::from(pair)),
            loss,
            doubling,
            stall,
        })
        .collect();
    rig.wire = Box::new(move |probe, now| {
        let pair = usize::from(probe.pair.0);
        let copies = appliances[pair].pass(now);
        let ledger = &mut kept.borrow_mut()[pair][probe.direction];
        match copies.iter().min() {
            Some(first) if *first <= max_delay => ledger.good += 1,
            Some(_) => {
                ledger.lost += 1;
                ledger.late += 1;
            }
            None => ledger.lost += 1,
        }
        ledger.duplicate += copies.len().saturating_sub(1) as u64;
        copies
    });
    ledgers
}

/// Runs on with a quiet wire until nothing of the bad times is under way, then compares both ends.
fn compare(rig: &mut Rig, ledgers: &Ledgers, before: u64) {
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    let quiet = rig.sent.len();
    rig.run_for(ms(1_000));
    assert!(rig.sent.len() > quiet);
    for pair in 0..PAIRS {
        for direction in Direction::BOTH {
            let ledger = ledgers.borrow()[usize::from(pair)][direction];
            let counters = rig.supervision.pair(PairKey(pair)).unwrap().paths[direction].tally.counters;
            let after = counters.sent - before - ledger.good - ledger.lost;
            let seen = Ledger {
                good: counters.good - before - after,
                lost: counters.lost,
                late: counters.late,
                duplicate: counters.duplicate,
            };
            assert_eq!(seen, ledger, "pair {pair} {direction}: {counters:?}");
            assert_eq!((counters.stale, counters.voided), (0, 0), "pair {pair} {direction}");
        }
    }
}

fn rig_of(profile: Profile) -> (Rig, u64) {
    let rig = Rig::all_up(&[unit(profile, PAIRS)]);
    let sent: Vec<u64> =
        rig.supervision.pairs().map(|pair| pair.paths.lan_to_wan.tally.counters.sent).collect();
    (rig, sent[0])
}

/// All pairs have sent the same number before the wire goes bad.
fn settled(profile: Profile) -> (Rig, u64) {
    let (mut rig, _) = rig_of(profile);
    rig.run_until(Nanos(rig.now.0.div_ceil(profile.interval().0) * profile.interval().0 - 1));
    let sent: Vec<u64> =
        rig.supervision.pairs().map(|pair| pair.paths.lan_to_wan.tally.counters.sent).collect();
    assert!(sent.iter().all(|count| *count == sent[0]), "{sent:?}");
    (rig, sent[0])
}

#[test]
fn both_ends_agree_on_every_keep_alive_over_a_bad_wire() {
    for seed in 0..20 {
        let profile = profile(|p| p.suspend_limit_ms = 0);
        let (mut rig, before) = settled(profile);
        let ledgers = connect(&mut rig, seed, (20, 20, 5), profile.max_delay());
        rig.run_for(ms(60_000));
        compare(&mut rig, &ledgers, before);
        let total = ledgers.borrow().iter().fold(Ledger::default(), |sum, pair| Ledger {
            good: sum.good + pair.lan_to_wan.good,
            lost: sum.lost + pair.lan_to_wan.lost,
            late: sum.late + pair.lan_to_wan.late,
            duplicate: sum.duplicate + pair.lan_to_wan.duplicate,
        });
        assert!(total.good > 0 && total.lost > 0 && total.late > 0 && total.duplicate > 0, "{total:?}");
    }
}

#[test]
fn both_ends_agree_when_several_keep_alives_overtake_each_other() {
    for seed in 100..120 {
        // Up to twenty under way at once, so that the reordering crosses slots.
        let profile = profile(|p| {
            p.interval_ms = 10;
            p.max_delay_us = Some(200_000);
            p.suspend_limit_ms = 0;
        });
        let (mut rig, before) = settled(profile);
        let ledgers = connect(&mut rig, seed, (5, 20, 3), profile.max_delay());
        rig.run_for(ms(3_000));
        compare(&mut rig, &ledgers, before);
    }
}

#[test]
fn a_wire_that_loses_one_in_a_hundred_takes_no_pair_down() {
    let profile = Profile::default();
    let (mut rig, _) = settled(profile);
    let ledgers = connect(&mut rig, 7, (1, 10, 0), profile.max_delay());
    rig.run_for(ms(600_000));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    assert!(ledgers.borrow().iter().all(|pair| pair.lan_to_wan.lost > 30));
}

#[test]
fn pairs_come_back_when_the_wire_does() {
    let (mut rig, _) = settled(Profile::default());
    for round in 0..5 {
        let dead = PairKey(round);
        rig.lose(move |probe| probe.pair == dead);
        rig.run_for(ms(700));
        assert_eq!(rig.state(round), PairState::Down);
        connect(&mut rig, u64::from(round), (0, 30, 0), ms(100));
        rig.run_for(ms(700));
        assert_eq!(rig.state(round), PairState::Up);
    }
    assert_eq!(rig.pair_transitions().len(), 10);
}
