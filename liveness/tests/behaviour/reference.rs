//! While the reference fails, losses are not held against the appliances.

use liveness::{
    Direction, Event, PairKey, PairState, Profile, ProfileSettings, ReferenceKey, Suspicion, SuspicionChange,
    UnitConfig, UnitKey, Verdict,
};

use crate::rig::{Rig, ms, profile, unit, us};

const LOOP: ReferenceKey = ReferenceKey(3);

fn watching(change: impl FnOnce(&mut ProfileSettings)) -> Profile {
    profile(|p| {
        p.reference = Some(LOOP);
        change(p);
    })
}

fn cut(rig: &mut Rig, lost: impl Fn(PairKey) -> bool + 'static) {
    rig.lose(move |probe| lost(probe.pair));
    rig.reference = Box::new(|_, _| false);
}

fn mend(rig: &mut Rig) {
    rig.lose_nothing();
    rig.reference = Box::new(|_, _| true);
}

#[test]
fn a_reference_is_probed_at_the_interval_both_ways() {
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 2)]);
    rig.references.clear();
    rig.run_for(ms(10_000));
    for direction in Direction::BOTH {
        assert_eq!(rig.references.iter().filter(|(_, probe)| probe.direction == direction).count(), 100);
    }
    assert!(rig.references.iter().all(|(_, probe)| probe.reference == LOOP));
    let [status] = rig.supervision.references().collect::<Vec<_>>()[..] else { panic!("one reference") };
    assert_eq!((status.reference, status.suspicion), (LOOP, Suspicion::None));
    assert_eq!(status.paths.lan_to_wan.statistics.delay.unwrap().average, us(50));
}

/// One pair alone makes no case for the rule about all pairs: it is the reference that speaks for it.
#[test]
fn while_it_fails_states_stand_for_the_limit_and_then_fall() {
    for instant in (0..100).step_by(7) {
        let mut rig = Rig::all_up(&[unit(watching(|_| {}), 2)]);
        rig.run_for(ms(instant));
        let fault = rig.now;
        cut(&mut rig, |pair| pair == PairKey(0));
        rig.run_for(ms(3_000));
        let [Event::Suspicion(notice)] = rig.events[..] else {
            panic!("after {instant} ms: {:?}", rig.events)
        };
        let until = notice.at + ms(3_000);
        assert_eq!(notice.change, SuspicionChange::ReferenceFailed { reference: LOOP, until });
        assert!(notice.at <= fault + Profile::default().detection_bound());
        assert_eq!(rig.supervision.suspicion(), Suspicion::Suspended { since: notice.at, until });
        assert_eq!(rig.state(0), PairState::Up);
        rig.run_until(until + ms(50));
        assert_eq!(rig.suspicion_changes()[1..], [SuspicionChange::ReferenceBelieved { reference: LOOP }]);
        assert_eq!([rig.state(0), rig.state(1)], [PairState::Down, PairState::Up]);
        rig.run_for(ms(10_000));
        assert_eq!(rig.events.len(), 3, "no second suspicion out of the same fault: {:?}", rig.events);
        mend(&mut rig);
        rig.run_for(ms(1_000));
        assert_eq!(rig.suspicion_changes()[2..], [SuspicionChange::ReferenceReturned { reference: LOOP }]);
        assert_eq!(rig.state(0), PairState::Up);
    }
}

#[test]
fn a_cut_of_our_path_that_ends_in_time_is_not_seen_by_any_pair() {
    for outage in (100..3_500).step_by(130) {
        let mut rig = Rig::all_up(&[unit(watching(|_| {}), 3)]);
        cut(&mut rig, |_| true);
        rig.run_for(ms(outage));
        mend(&mut rig);
        rig.run_for(ms(2_000));
        assert!(rig.pair_transitions().is_empty(), "{outage} ms: {:?}", rig.events);
        assert_eq!(rig.supervision.suspicion(), Suspicion::None);
    }
}

#[test]
fn a_whole_path_cut_is_believed_once_after_one_limit() {
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 3)]);
    cut(&mut rig, |_| true);
    rig.run_for(ms(10_000));
    assert_eq!(rig.suspicion_changes().len(), 2, "{:?}", rig.suspicion_changes());
    assert_eq!(rig.pair_transitions().len(), 3);
    let spent = rig.pair_transitions()[2].at.since(rig.events[0].at());
    assert!(spent >= ms(3_000) && spent < ms(3_200));
}

#[test]
fn a_count_of_one_puts_back_who_fell_before_the_reference() {
    for instant in (0..100).step_by(3) {
        let mut rig = Rig::all_up(&[unit(watching(|p| p.probes_down_count = 1), 1)]);
        rig.run_for(ms(instant));
        cut(&mut rig, |_| true);
        rig.run_for(ms(300));
        assert_eq!(rig.state(0), PairState::Up, "after {instant} ms: {:?}", rig.events);
    }
}

#[test]
fn a_reference_that_is_good_lets_every_loss_count() {
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 1)]);
    rig.lose_everything();
    rig.run_for(ms(601));
    assert_eq!(rig.state(0), PairState::Down);
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn pairs_whose_profile_names_no_reference_are_not_excused() {
    let other = UnitConfig::new(UnitKey(2), profile(|_| {}), vec![liveness::PairConfig::new(PairKey(9))]);
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 2), other]);
    cut(&mut rig, |pair| pair != PairKey(1));
    rig.run_for(ms(1_000));
    assert_eq!([rig.state(0), rig.state(9)], [PairState::Up, PairState::Down]);
}

#[test]
fn a_reference_of_several_profiles_is_probed_by_the_strictest() {
    let pairs = |key| vec![liveness::PairConfig::new(PairKey(key))];
    let quick = watching(|p| p.interval_ms = 10);
    let units = [unit(watching(|_| {}), 1), UnitConfig::new(UnitKey(2), quick, pairs(9))];
    let mut rig = Rig::all_up(&units);
    rig.references.clear();
    rig.run_for(ms(1_000));
    assert_eq!(rig.references.len(), 200);
    rig.supervision.configure(&units[..1], rig.now).unwrap();
    rig.references.clear();
    rig.run_for(ms(1_000));
    assert_eq!(rig.references.len(), 20);
}

#[test]
fn a_reference_asked_no_more_excuses_nobody_and_its_numbers_are_not_used_again() {
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 2)]);
    cut(&mut rig, |pair| pair == PairKey(0));
    rig.run_for(ms(1_000));
    let last = rig.references.last().unwrap().1;
    rig.supervision.configure(&[unit(profile(|_| {}), 2)], rig.now).unwrap();
    assert!(rig.supervision.reference_received(last, rig.now, rig.now, rig.now).is_err());
    rig.turn();
    assert_eq!(rig.suspicion_changes().last(), Some(&SuspicionChange::ReferenceReturned { reference: LOOP }));
    rig.run_for(ms(1_000));
    assert_eq!(rig.state(0), PairState::Down);
    rig.supervision.configure(&[unit(watching(|_| {}), 2)], rig.now).unwrap();
    rig.references.clear();
    rig.run_for(ms(2_000));
    assert!(rig.references[0].1.sequence > last.sequence);
    let stale = rig.supervision.reference_received(last, rig.now, rig.now, rig.now);
    assert_eq!(stale, Ok(Verdict::Stale));
}

#[test]
fn reference_probes_that_could_not_be_sent_are_not_lost() {
    let mut rig = Rig::all_up(&[unit(watching(|_| {}), 2)]);
    rig.reference = Box::new(|_, _| false);
    for _ in 0..200 {
        rig.now = rig.now.max(rig.supervision.next_deadline().unwrap());
        let sent = rig.references.len();
        rig.turn();
        for (_, probe) in rig.references[sent..].iter().copied() {
            rig.supervision.reference_unsent(probe).unwrap();
        }
    }
    assert!(rig.events.is_empty(), "{:?}", rig.events);
}

#[test]
fn suspend_limit_zero_asks_nothing_of_the_reference() {
    let mut rig = Rig::all_up(&[unit(watching(|p| p.suspend_limit_ms = 0), 2)]);
    cut(&mut rig, |pair| pair == PairKey(0));
    rig.run_for(ms(700));
    assert_eq!(rig.state(0), PairState::Down);
    assert!(rig.suspicion_changes().is_empty());
}
