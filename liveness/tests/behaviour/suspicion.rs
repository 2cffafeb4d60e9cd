//! When everything fails at once the fault may be ours.

use liveness::{
    Direction, Event, Initial, Nanos, PairConfig, PairKey, PairState, Profile, Reason, Side, Suspicion,
    SuspicionChange, UnitConfig, UnitKey, Verdict,
};

use crate::rig::{Rig, ms, profile, unit, us};

fn two_units(profile: Profile) -> [UnitConfig; 2] {
    let pairs = |from: u16| (from..from + 3).map(|key| PairConfig::new(PairKey(key))).collect();
    [UnitConfig::new(UnitKey(1), profile, pairs(0)), UnitConfig::new(UnitKey(2), profile, pairs(3))]
}

#[test]
fn when_every_pair_fails_states_stand_for_the_suspend_limit_and_then_fall() {
    let mut rig = Rig::all_up(&two_units(Profile::default()));
    rig.lose_everything();
    let fault = rig.now;
    rig.run_for(ms(700));
    let [Event::Suspicion(suspended)] = rig.events[..] else {
        panic!("only a suspension, not {:?}", rig.events)
    };
    let until = suspended.at + ms(3_000);
    assert_eq!(suspended.change, SuspicionChange::LivenessSuspended { pairs: 6, until });
    assert!(suspended.at <= fault + Profile::default().detection_bound());
    assert_eq!(rig.supervision.suspicion(), Suspicion::Suspended { since: suspended.at, until });

    rig.run_until(Nanos(until.0 - 1));
    assert_eq!(rig.events.len(), 1, "{:?}", rig.events);
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Up));

    rig.run_until(until);
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Down));
    assert_eq!(rig.suspicion_changes()[1..], [SuspicionChange::Believed]);
    assert!(matches!(rig.events[1], Event::Suspicion(_)), "belief comes before what follows from it");
    assert_eq!(rig.pair_transitions().len(), 6);

    rig.run_for(ms(20_000));
    assert_eq!(rig.suspicion_changes().len(), 2, "no second suspicion out of the same fault");
}

#[test]
fn a_fault_of_ours_that_ends_in_time_is_not_seen_by_any_pair() {
    for outage in (600..3_500).step_by(170) {
        let mut rig = Rig::all_up(&two_units(Profile::default()));
        rig.lose_everything();
        rig.run_for(ms(outage));
        rig.lose_nothing();
        rig.run_for(ms(3_000));
        assert!(rig.pair_transitions().is_empty(), "outage of {outage} ms: {:?}", rig.events);
        assert_eq!(rig.suspicion_changes().last(), Some(&SuspicionChange::Resumed), "outage of {outage} ms");
        assert_eq!(rig.supervision.suspicion(), Suspicion::None);
    }
}

#[test]
fn keep_alives_sent_before_a_suspension_ended_take_nobody_down() {
    for outage in (300..3_000).step_by(37) {
        let mut rig = Rig::all_up(&[unit(profile(|p| p.probes_down_count = 1), 5)]);
        rig.lose_everything();
        rig.run_for(ms(outage));
        rig.events.clear();
        rig.lose_nothing();
        rig.run_for(ms(2_000));
        assert!(rig.pair_transitions().is_empty(), "outage of {outage} ms: {:?}", rig.events);
        assert_eq!(rig.suspicion_changes(), [SuspicionChange::Resumed], "outage of {outage} ms");
    }
}

#[test]
fn the_rule_holds_for_any_count_and_instant_of_the_fault() {
    for down in 1..7 {
        for pairs in 2..6 {
            for instant in (0..100).step_by(7) {
                let profile = profile(|p| p.probes_down_count = down);
                let mut rig = Rig::all_up(&[unit(profile, pairs)]);
                rig.run_for(ms(instant));
                rig.lose_everything();
                rig.run_for(profile.detection_bound() + ms(100));
                let states: Vec<_> = rig.supervision.pairs().map(|pair| pair.state).collect();
                assert!(
                    states.iter().all(|state| *state == PairState::Up),
                    "count {down}, {pairs} pairs, {instant} ms: {states:?}"
                );
                let fell = rig.pair_transitions().iter().filter(|t| t.to == PairState::Down).count();
                // With a count of one nothing hints at the others before the first is down; it is put back.
                assert!(fell == 0 || down == 1, "count {down}, {pairs} pairs, {instant} ms: {fell} fell");
            }
        }
    }
}

#[test]
fn pairs_that_fell_just_before_the_suspicion_are_put_back() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.probes_down_count = 1), 3)]);
    rig.lose_everything();
    rig.run_for(ms(250));
    let back: Vec<_> =
        rig.pair_transitions().iter().filter(|t| t.to == PairState::Up).map(|t| t.reason).collect();
    assert_eq!(back, [Reason::Suspended, Reason::Suspended]);
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Up));
}

#[test]
fn a_pair_that_fell_and_then_lost_carrier_is_not_put_back() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.probes_down_count = 1), 3)]);
    rig.lose_everything();
    while rig.pair_transitions().is_empty() {
        rig.run_for(ms(1));
    }
    let fallen = rig.pair_transitions()[0].pair;
    rig.supervision.carrier(fallen, Side::Wan, false, rig.now).unwrap();
    rig.run_for(ms(250));
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 2, .. }]));
    assert_eq!(rig.state(fallen.0), PairState::Down);
}

#[test]
fn a_pair_that_fell_more_than_an_interval_earlier_is_not_put_back() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.probes_down_count = 1), 3)]);
    rig.lose(|probe| probe.pair == PairKey(0));
    while rig.pair_transitions().is_empty() {
        rig.run_for(ms(1));
    }
    let fell = rig.now;
    rig.lose_everything();
    rig.run_until(fell + ms(300));
    let [SuspicionChange::LivenessSuspended { pairs: 2, until }] = rig.suspicion_changes()[..] else {
        panic!("one suspicion, not {:?}", rig.events)
    };
    let after = until.since(fell + ms(3_000));
    assert!(after > ms(100) && after < ms(200), "the case lies between one and two intervals: {after}");
    assert_eq!([rig.state(0), rig.state(1), rig.state(2)], [PairState::Down, PairState::Up, PairState::Up]);
}

#[test]
fn a_copy_of_an_old_answer_ends_no_suspicion() {
    // The slow pair is down and has answered once since; its next keep-alive is far away.
    let slow = profile(|p| {
        p.interval_ms = 10_000;
        p.probes_up_count = 2;
        p.initial_delay_ms = 0;
    });
    let mut adopted = PairConfig::new(PairKey(9));
    adopted.initial = Initial::AdoptedDown;
    let units =
        [unit(profile(|p| p.initial_delay_ms = 0), 3), UnitConfig::new(UnitKey(2), slow, vec![adopted])];
    let mut rig = Rig::new(&units);
    rig.run_until(ms(9_000));
    assert_eq!([rig.state(0), rig.state(9)], [PairState::Up, PairState::Down]);
    let answered = rig.sent.iter().rev().find(|(_, probe)| probe.pair == PairKey(9)).unwrap().1;
    rig.lose_everything();
    rig.run_until(ms(9_700));
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { .. }]));
    let copy = rig.supervision.probe_received(answered, rig.now, rig.now, rig.now);
    assert_eq!(copy, Ok(Verdict::Duplicate));
    rig.turn();
    assert_eq!(rig.suspicion_changes().len(), 1);
}

#[test]
fn one_direction_failing_everywhere_is_suspect_too() {
    let mut rig = Rig::all_up(&two_units(Profile::default()));
    rig.lose(|probe| probe.direction == Direction::LanToWan);
    rig.run_for(ms(2_000));
    assert!(rig.pair_transitions().is_empty());
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 6, .. }]));
}

#[test]
fn a_single_pair_is_believed_at_once() {
    let mut rig = Rig::all_up(&[unit(Profile::default(), 1)]);
    rig.lose_everything();
    rig.run_for(ms(601));
    assert_eq!(rig.state(0), PairState::Down);
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn the_last_pair_of_several_is_believed_at_once() {
    let mut rig = Rig::all_up(&[unit(Profile::default(), 3)]);
    rig.lose(|probe| probe.pair != PairKey(2));
    rig.run_for(ms(2_000));
    rig.lose_everything();
    rig.run_for(ms(700));
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Down));
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn all_but_one_failing_is_no_fault_of_ours() {
    let mut rig = Rig::all_up(&two_units(Profile::default()));
    rig.lose(|probe| probe.pair != PairKey(4));
    rig.run_for(ms(601));
    let down = rig.supervision.pairs().filter(|pair| pair.state == PairState::Down).count();
    assert_eq!(down, 5);
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn carrier_loss_is_believed_during_a_suspension() {
    let mut rig = Rig::all_up(&two_units(Profile::default()));
    rig.lose_everything();
    rig.run_for(ms(1_000));
    for pair in 0..6 {
        rig.supervision.carrier(PairKey(pair), Side::Wan, false, rig.now).unwrap();
        assert_eq!(rig.state(pair), PairState::Down);
    }
    rig.turn();
    let [.., Event::Suspicion(lifted)] = rig.events[..] else { panic!("{:?}", rig.events) };
    assert_eq!(lifted.change, SuspicionChange::Resumed, "nobody is left to suspect on behalf of");
}

#[test]
fn a_pair_really_dead_is_found_within_the_bound_after_the_others_resume() {
    let profile = Profile::default();
    let mut rig = Rig::all_up(&two_units(profile));
    rig.lose_everything();
    rig.run_for(ms(1_000));
    rig.lose(|probe| probe.pair == PairKey(5));
    let resumed = rig.now + ms(101);
    rig.run_until(resumed + profile.detection_bound());
    let down: Vec<_> =
        rig.supervision.pairs().filter(|pair| pair.state == PairState::Down).map(|pair| pair.pair).collect();
    assert_eq!(down, [PairKey(5)]);
}

#[test]
fn after_belief_a_recovery_makes_the_next_fault_suspect_again() {
    let mut rig = Rig::all_up(&two_units(Profile::default()));
    for _ in 0..2 {
        rig.events.clear();
        rig.lose_everything();
        rig.run_for(ms(5_000));
        assert!(
            matches!(
                rig.suspicion_changes()[..],
                [SuspicionChange::LivenessSuspended { .. }, SuspicionChange::Believed]
            ),
            "{:?}",
            rig.events
        );
        rig.lose_nothing();
        rig.run_for(ms(2_000));
        assert_eq!(rig.supervision.suspicion(), Suspicion::None);
        assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Up));
    }
}

#[test]
fn a_suspend_limit_of_zero_believes_at_once() {
    let mut rig = Rig::all_up(&two_units(profile(|p| p.suspend_limit_ms = 0)));
    rig.lose_everything();
    rig.run_for(ms(601) + us(1));
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Down));
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn the_shortest_suspend_limit_of_the_units_holds() {
    let mut units = two_units(Profile::default());
    units[1].profile = profile(|p| p.suspend_limit_ms = 500);
    let mut rig = Rig::all_up(&units);
    rig.lose_everything();
    rig.run_for(ms(1_200));
    assert!(rig.supervision.pairs().all(|pair| pair.state == PairState::Down));
}

#[test]
fn pairs_not_in_service_have_no_say() {
    let mut rig = Rig::all_up(&[unit(Profile::default(), 3)]);
    rig.supervision.carrier(PairKey(0), Side::Lan, false, rig.now).unwrap();
    rig.turn();
    rig.events.clear();
    rig.lose_everything();
    rig.run_for(ms(1_000));
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 2, .. }]));
    assert_eq!(rig.state(0), PairState::Down);
}
