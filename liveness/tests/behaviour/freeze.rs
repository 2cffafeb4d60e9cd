//! The process stands still for a while; that is not the appliances' fault.

use liveness::{Direction, Nanos, PairKey, PairState, Probe, Profile, SuspicionChange};

use crate::rig::{Rig, ms, profile, unit, us};

fn voided(rig: &Rig) -> u64 {
    rig.supervision.pairs().map(|pair| pair.paths.lan_to_wan.tally.counters.voided).sum()
}

fn lost(rig: &Rig) -> u64 {
    rig.supervision.pairs().map(|pair| pair.paths.lan_to_wan.tally.counters.lost).sum()
}

/// Stands still for 2 s at a moment when every keep-alive is under way.
fn frozen(profile: Profile) -> Rig {
    let mut rig = Rig::all_up(&[unit(profile, 4)]);
    rig.wire = Box::new(|_, _| vec![ms(90)]);
    rig.run_for(ms(1_000));
    rig.freeze_for(ms(2_000));
    rig
}

/// A single loss would take a pair down.
fn touchy() -> Profile {
    profile(|p| {
        p.probes_down_count = 1;
        p.suspend_limit_ms = 0;
    })
}

#[test]
fn two_seconds_of_standstill_flip_nothing_when_answers_are_read_first() {
    let mut rig = frozen(touchy());
    rig.turn();
    rig.run_for(ms(5_000));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    assert_eq!((lost(&rig), voided(&rig)), (0, 0), "answers that waited are good by their own time stamps");
}

#[test]
fn two_seconds_of_standstill_flip_nothing_when_the_poll_comes_first() {
    let mut rig = frozen(touchy());
    rig.poll();
    rig.turn();
    rig.run_for(ms(5_000));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    assert_eq!(lost(&rig), 0);
    assert!(voided(&rig) >= 3, "only {} voided", voided(&rig));
    let stale: u64 = rig.supervision.pairs().map(|pair| pair.paths.lan_to_wan.tally.counters.stale).sum();
    assert_eq!(stale, voided(&rig), "their answers came too late to be of use");
}

#[test]
fn everything_under_way_in_a_standstill_is_voided_however_much_it_is() {
    let many = profile(|p| {
        p.interval_ms = 10;
        p.max_delay_us = Some(200_000);
        p.probes_down_count = 2;
        p.suspend_limit_ms = 0;
    });
    let mut rig = Rig::all_up(&[unit(many, 4)]);
    rig.wire = Box::new(|_, _| vec![ms(190)]);
    rig.run_for(ms(1_000));
    rig.freeze_for(ms(2_000));
    rig.poll();
    rig.turn();
    rig.run_for(ms(1_000));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    assert_eq!((lost(&rig), voided(&rig)), (0, 4 * 19));
}

#[test]
fn standstill_after_standstill_flips_nothing_while_answers_come() {
    let mut rig = frozen(touchy());
    for _ in 0..50 {
        rig.turn();
        rig.run_for(ms(130));
        rig.freeze_for(ms(700));
    }
    rig.turn();
    assert!(rig.events.is_empty(), "{:?}", rig.events);
}

#[test]
fn a_controller_that_is_always_late_still_finds_a_dead_appliance() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 2)]);
    rig.lose(|probe| probe.pair == PairKey(1));
    for _ in 0..20 {
        let due = rig.supervision.next_deadline().unwrap();
        rig.now = rig.now.max(due) + ms(130);
        rig.turn();
    }
    assert_eq!([rig.state(0), rig.state(1)], [PairState::Up, PairState::Down]);
}

#[test]
fn a_poll_within_the_tolerance_counts_losses_as_ever() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    rig.lose_everything();
    for _ in 0..30 {
        let due = rig.supervision.next_deadline().unwrap();
        rig.now = rig.now.max(due) + liveness::GAP_TOLERANCE;
        rig.turn();
    }
    assert_eq!(rig.state(0), PairState::Down);
    assert_eq!(voided(&rig), 0);
}

#[test]
fn a_standstill_prolongs_a_suspension() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 2)]);
    rig.lose_everything();
    rig.run_for(ms(1_000));
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { .. }]));
    rig.freeze_for(ms(10_000));
    rig.turn();
    rig.run_for(ms(1_000));
    assert!(rig.pair_transitions().is_empty());
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    assert_eq!(rig.suspicion_changes().last(), Some(&SuspicionChange::Resumed));
    assert!(rig.pair_transitions().is_empty());
}

#[test]
fn keep_alives_that_could_not_be_sent_are_voided() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    rig.lose_everything();
    for _ in 0..30 {
        rig.run_for(ms(100));
        let probe = rig.sent.last().unwrap().1;
        for direction in Direction::BOTH {
            rig.supervision.probe_unsent(Probe { direction, ..probe }).unwrap();
        }
    }
    assert_eq!(rig.state(0), PairState::Up);
    assert_eq!((lost(&rig), voided(&rig)), (0, 30));
    // Too late to take back: it is lost already, or good.
    rig.run_for(ms(201));
    let [.., first, _, _, _] = rig.sent[..] else { panic!("sent too few") };
    rig.supervision.probe_unsent(first.1).unwrap();
    assert_eq!((lost(&rig), voided(&rig)), (1, 30));
}

#[test]
fn the_time_of_a_frozen_start_is_not_made_up_for() {
    let mut rig = Rig::new(&[unit(profile(|_| {}), 3)]);
    rig.freeze_for(ms(60_000));
    rig.turn();
    assert_eq!(rig.sent.len(), 6);
    rig.run_for(ms(1_000) + us(300));
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Up));
    assert!(rig.supervision.next_deadline().unwrap() > Nanos::ZERO);
}

/// Everything that can be asked, of pairs of which one is held.
#[test]
fn two_seconds_of_standstill_flip_nothing_of_any_kind() {
    for (first, base_ms) in [(true, 60_000), (false, 60_000), (true, 2_500), (false, 2_500)] {
        let all = profile(|p| {
            p.probes_down_count = 1;
            p.max_delay_us = Some(95_000);
            p.probe_cores = true;
            p.ip = true;
            p.negative = true;
            p.reference = Some(liveness::ReferenceKey(1));
            p.hold_down = Some(liveness::HoldDown { base_ms, ..liveness::HoldDown::default() });
        });
        let mut config = unit(all, 4);
        config.cores = 8;
        let mut rig = Rig::all_up(&[config]);
        rig.lose(|probe| probe.pair == PairKey(3));
        rig.run_for(ms(150));
        rig.wire = Box::new(|probe, _| match crate::rig::healthy(probe)[..] {
            [] => vec![],
            _ => vec![ms(90)],
        });
        rig.run_for(ms(1_000));
        assert_eq!(rig.state(3), PairState::Held);
        rig.events.clear();
        rig.freeze_for(ms(2_000));
        if first {
            rig.poll();
        }
        rig.turn();
        rig.run_for(ms(5_000));
        let flipped: Vec<_> = rig.pair_transitions().into_iter().filter(|t| t.pair != PairKey(3)).collect();
        assert_eq!(flipped, []);
        assert_eq!((rig.core_transitions(), rig.suspicion_changes()), (vec![], vec![]));
        let expected = if base_ms == 2_500 { PairState::Up } else { PairState::Held };
        assert_eq!(rig.state(3), expected, "the hold goes on, or its trial succeeds: {:?}", rig.events);
    }
}
