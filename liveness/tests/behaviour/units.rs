//! A unit is up while enough of its pairs are in service.

use liveness::{
    Admin, Event, PairConfig, PairKey, Profile, Role, Side, UnitConfig, UnitMode, UnitReason, UnitState,
    UnitTransition,
};

use crate::rig::{Rig, UNIT, ms, profile, unit};

fn state(rig: &Rig) -> UnitState {
    rig.supervision.unit(UNIT).unwrap().state
}

fn in_service(rig: &Rig) -> u16 {
    rig.supervision.unit(UNIT).unwrap().in_service
}

fn fail(rig: &mut Rig, pair: u16) {
    rig.supervision.carrier(PairKey(pair), Side::Lan, false, rig.now).unwrap();
    rig.turn();
}

fn repair(rig: &mut Rig, pair: u16) {
    rig.supervision.carrier(PairKey(pair), Side::Lan, true, rig.now).unwrap();
    rig.run_for(ms(2_000));
}

fn needing(active_pairs: u16) -> Profile {
    profile(|p| p.active_pairs = active_pairs)
}

fn with_spares(actives: u16, spares: u16, needed: u16, rebalance: bool) -> UnitConfig {
    let mut config = unit(needing(needed), actives + spares);
    config.rebalance = rebalance;
    for pair in &mut config.pairs[usize::from(actives)..] {
        pair.role = Role::Spare;
    }
    config
}

fn transitions(rig: &Rig) -> Vec<UnitTransition> {
    let pick = |event: &Event| if let Event::Unit(transition) = event { Some(*transition) } else { None };
    rig.events.iter().filter_map(pick).collect()
}

#[test]
fn a_unit_is_bypassed_exactly_below_active_pairs() {
    for needed in 1..=4 {
        let mut rig = Rig::all_up(&[unit(needing(needed), 4)]);
        for failed in 1..=4u16 {
            fail(&mut rig, failed - 1);
            let left = 4 - failed;
            let expected = if left >= needed { UnitState::Up } else { UnitState::Bypass };
            assert_eq!((in_service(&rig), state(&rig)), (left, expected), "{needed} needed, {left} left");
        }
        for repaired in 1..=4u16 {
            repair(&mut rig, repaired - 1);
            let expected = if repaired >= needed { UnitState::Up } else { UnitState::Bypass };
            assert_eq!(
                (in_service(&rig), state(&rig)),
                (repaired, expected),
                "{needed} needed, {repaired} back"
            );
        }
        let changes: Vec<_> = transitions(&rig).iter().map(|t| (t.from, t.to, t.reason)).collect();
        let reason = |in_service| UnitReason::PairsInService { in_service, needed };
        assert_eq!(
            changes,
            [
                (UnitState::Up, UnitState::Bypass, reason(needed - 1)),
                (UnitState::Bypass, UnitState::Up, reason(needed)),
            ]
        );
    }
}

#[test]
fn a_unit_starts_in_bypass_and_rises_with_its_pairs() {
    let mut rig = Rig::new(&[unit(needing(2), 2)]);
    assert_eq!(state(&rig), UnitState::Bypass);
    rig.run_for(ms(2_000));
    assert_eq!(state(&rig), UnitState::Up);
    // The pair's transition comes first, the unit's follows from it.
    let order: Vec<_> = rig.events.iter().map(|event| matches!(event, Event::Unit(_))).collect();
    assert_eq!(order, [false, false, true]);
}

#[test]
fn spares_count_only_with_rebalance_and_only_in_place_of_actives() {
    for (rebalance, actives_down, spares_down, expected) in [
        (false, 0, 0, 3),
        (false, 1, 0, 2),
        (true, 0, 0, 3),
        (true, 0, 2, 3),
        (true, 1, 0, 3),
        (true, 2, 0, 3),
        (true, 3, 0, 2),
        (true, 2, 1, 2),
        (true, 3, 2, 0),
        (false, 3, 0, 0),
    ] {
        let mut rig = Rig::all_up(&[with_spares(3, 2, 1, rebalance)]);
        for pair in (0..actives_down).chain(3..3 + spares_down) {
            fail(&mut rig, pair);
        }
        let case = format!("rebalance {rebalance}, {actives_down} actives and {spares_down} spares down");
        assert_eq!(in_service(&rig), expected, "{case}");
        let up = if expected >= 1 { UnitState::Up } else { UnitState::Bypass };
        assert_eq!(state(&rig), up, "{case}");
    }
}

#[test]
fn draining_actives_are_in_service_and_draining_spares_stand_in_for_nobody() {
    let mut config = with_spares(2, 1, 2, true);
    let mut rig = Rig::all_up(std::slice::from_ref(&config));
    config.pairs[0].admin = Admin::Drain;
    rig.supervision.configure(std::slice::from_ref(&config), rig.now).unwrap();
    assert_eq!((in_service(&rig), state(&rig)), (2, UnitState::Up));
    config.pairs[2].admin = Admin::Drain;
    rig.supervision.configure(&[config], rig.now).unwrap();
    fail(&mut rig, 1);
    assert_eq!((in_service(&rig), state(&rig)), (1, UnitState::Bypass));
}

#[test]
fn a_unit_set_by_hand_stays_whatever_its_pairs_do() {
    for (mode, held) in [(UnitMode::Bypass, UnitState::Bypass), (UnitMode::Primary, UnitState::Primary)] {
        let mut config = unit(needing(1), 2);
        let mut rig = Rig::all_up(std::slice::from_ref(&config));
        config.mode = mode;
        rig.supervision.configure(std::slice::from_ref(&config), rig.now).unwrap();
        rig.turn();
        assert_eq!(state(&rig), held);
        assert_eq!(transitions(&rig).pop().unwrap().reason, UnitReason::Manual(mode));
        rig.events.clear();
        for pair in 0..2 {
            fail(&mut rig, pair);
        }
        for pair in 0..2 {
            repair(&mut rig, pair);
        }
        assert_eq!(state(&rig), held);
        assert!(transitions(&rig).is_empty());
        fail(&mut rig, 0);
        fail(&mut rig, 1);
        config.mode = UnitMode::Auto;
        rig.supervision.configure(std::slice::from_ref(&config), rig.now).unwrap();
        rig.turn();
        assert_eq!(state(&rig), UnitState::Bypass, "auto looks at the pairs as they are now");
        repair(&mut rig, 0);
        assert_eq!(state(&rig), UnitState::Up);
    }
}

#[test]
fn bypass_by_hand_of_a_bypassed_unit_shows_its_new_reason() {
    let mut config = unit(needing(1), 1);
    let mut rig = Rig::new(std::slice::from_ref(&config));
    config.mode = UnitMode::Bypass;
    rig.supervision.configure(&[config], rig.now).unwrap();
    rig.turn();
    assert!(transitions(&rig).is_empty());
    assert_eq!(rig.supervision.unit(UNIT).unwrap().last_reason, UnitReason::Manual(UnitMode::Bypass));
}

#[test]
fn a_change_of_active_pairs_holds_at_once() {
    let mut rig = Rig::all_up(&[unit(needing(2), 3)]);
    fail(&mut rig, 0);
    assert_eq!(state(&rig), UnitState::Up);
    rig.supervision.configure(&[unit(needing(3), 3)], rig.now).unwrap();
    assert_eq!(state(&rig), UnitState::Bypass);
    rig.supervision.configure(&[unit(needing(2), 3)], rig.now).unwrap();
    assert_eq!(state(&rig), UnitState::Up);
}

#[test]
fn removing_a_pair_can_bypass_its_unit() {
    let mut rig = Rig::all_up(&[unit(needing(2), 2)]);
    rig.supervision.configure(&[unit(needing(2), 1)], rig.now).unwrap();
    rig.turn();
    assert_eq!(state(&rig), UnitState::Bypass);
    assert_eq!(transitions(&rig).len(), 1);
}

#[test]
fn a_unit_without_pairs_is_bypassed() {
    let rig = Rig::new(&[UnitConfig::new(UNIT, Profile::default(), Vec::<PairConfig>::new())]);
    assert_eq!((in_service(&rig), state(&rig)), (0, UnitState::Bypass));
}
