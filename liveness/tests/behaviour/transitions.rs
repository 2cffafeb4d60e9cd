//! The pair state machine as a table: state x event -> state.

use liveness::{Admin, Direction, PairKey, PairState, Profile, Reason, Side, UnitConfig};

use crate::rig::{Rig, ms, unit};

/// Where a pair starts. `Drain` marks the states in which it shall drain, though it does not show yet.
#[derive(Clone, Copy, Debug)]
enum Start {
    Init,
    InitDrain,
    Up,
    Down,
    DownDrain,
    NoCarrier,
    AdminDown,
    Draining,
}

/// What happens. The profile's counts are 5 and 5.
#[derive(Clone, Copy, Debug)]
enum On {
    Good4,
    Good5,
    Lost4,
    Lost5,
    LostLanToWan5,
    LostWanToLan5,
    LanCarrierLost,
    WanCarrierLost,
    CarrierBack,
    AdminUp,
    AdminDown,
    AdminDrain,
}

use On::*;
use PairState::{AdminDown as Adm, Down, Draining as Drn, Init, Up};

const EVENTS: [On; 12] = [
    Good4,
    Good5,
    Lost4,
    Lost5,
    LostLanToWan5,
    LostWanToLan5,
    LanCarrierLost,
    WanCarrierLost,
    CarrierBack,
    AdminUp,
    AdminDown,
    AdminDrain,
];

#[rustfmt::skip]
const TABLE: [(Start, [PairState; 12]); 8] = [
    //                  Good4 Good5 Lost4 Lost5 LtoW5 WtoL5 LanCL WanCL CBack AdmUp AdmDn AdmDr
    (Start::Init,      [Init, Up,   Init, Down, Down, Down, Down, Down, Init, Init, Adm,  Init]),
    (Start::InitDrain, [Init, Drn,  Init, Down, Down, Down, Down, Down, Init, Init, Adm,  Init]),
    (Start::Up,        [Up,   Up,   Up,   Down, Down, Down, Down, Down, Up,   Up,   Adm,  Drn ]),
    (Start::Down,      [Down, Up,   Down, Down, Down, Down, Down, Down, Down, Down, Adm,  Down]),
    (Start::DownDrain, [Down, Drn,  Down, Down, Down, Down, Down, Down, Down, Down, Adm,  Down]),
    (Start::NoCarrier, [Down, Down, Down, Down, Down, Down, Down, Down, Down, Down, Adm,  Down]),
    (Start::AdminDown, [Adm,  Adm,  Adm,  Adm,  Adm,  Adm,  Adm,  Adm,  Adm,  Init, Adm,  Init]),
    (Start::Draining,  [Drn,  Drn,  Drn,  Down, Down, Down, Down, Down, Drn,  Up,   Adm,  Drn ]),
];

fn config(admin: Admin) -> UnitConfig {
    let mut config = unit(Profile::default(), 1);
    config.pairs[0].admin = admin;
    config
}

fn set_admin(rig: &mut Rig, admin: Admin) {
    rig.supervision.configure(&[config(admin)], rig.now).unwrap();
    rig.turn();
}

fn carrier(rig: &mut Rig, side: Side, present: bool) {
    rig.supervision.carrier(PairKey(0), side, present, rig.now).unwrap();
    rig.turn();
}

/// Up to just after the verdict on the `count`-th keep-alive from now. Slots lie at whole multiples of 100 ms.
fn outcomes(rig: &mut Rig, count: u64) {
    assert_eq!(rig.now.0 % ms(100).0, ms(50).0, "set-ups end between slots, with no keep-alive under way");
    rig.run_for(ms(100 * count + 1));
}

/// Ends at 50 ms after a slot, with nothing under way that is lost.
fn start(from: Start) -> Rig {
    let admin = match from {
        Start::InitDrain | Start::DownDrain | Start::Draining => Admin::Drain,
        Start::AdminDown => Admin::Down,
        Start::Init | Start::Up | Start::Down | Start::NoCarrier => Admin::Up,
    };
    let mut rig = Rig::new(&[config(admin)]);
    rig.run_until(ms(950));
    match from {
        Start::Init | Start::InitDrain | Start::AdminDown => {}
        Start::Up | Start::Draining => rig.run_for(ms(600)),
        Start::Down | Start::DownDrain => {
            rig.lose_everything();
            rig.run_for(ms(600));
            // So that nothing that is lost is under way.
            rig.lose_nothing();
            rig.run_for(ms(100));
        }
        Start::NoCarrier => {
            rig.run_for(ms(600));
            carrier(&mut rig, Side::Lan, false);
        }
    }
    rig.events.clear();
    rig
}

fn apply(rig: &mut Rig, on: On, up_so_far: u64) {
    match on {
        Good4 => outcomes(rig, 4 - up_so_far),
        Good5 => outcomes(rig, 5 - up_so_far),
        Lost4 | Lost5 => {
            rig.lose_everything();
            // A loss is known one max-delay after its slot.
            outcomes(rig, if matches!(on, Lost4) { 5 } else { 6 });
        }
        LostLanToWan5 => {
            rig.lose(|probe| probe.direction == Direction::LanToWan);
            outcomes(rig, 6);
        }
        LostWanToLan5 => {
            rig.lose(|probe| probe.direction == Direction::WanToLan);
            outcomes(rig, 6);
        }
        LanCarrierLost => carrier(rig, Side::Lan, false),
        WanCarrierLost => carrier(rig, Side::Wan, false),
        CarrierBack => {
            carrier(rig, Side::Lan, true);
            carrier(rig, Side::Wan, true);
        }
        AdminUp => set_admin(rig, Admin::Up),
        AdminDown => set_admin(rig, Admin::Down),
        AdminDrain => set_admin(rig, Admin::Drain),
    }
}

#[test]
fn every_state_answers_every_event_as_the_table_says() {
    let mut wrong = Vec::new();
    for (from, row) in TABLE {
        for (on, expected) in EVENTS.into_iter().zip(row) {
            let mut rig = start(from);
            let before = rig.state(0);
            // The set-up of a down pair ends with one good keep-alive.
            let up_so_far = u64::from(matches!(from, Start::Down | Start::DownDrain));
            apply(&mut rig, on, up_so_far);
            let after = rig.state(0);
            let transitions = rig.pair_transitions();
            if after != expected {
                wrong.push(format!("{from:?} on {on:?}: {after:?} instead of {expected:?}"));
            }
            // Exactly the changes that show are reported.
            let expected_reports = usize::from(before != after);
            if transitions.len() != expected_reports {
                wrong.push(format!("{from:?} on {on:?}: reported {transitions:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn starts_of_the_table_are_what_they_say() {
    for (from, row) in TABLE {
        // Carrier that was there already, or comes back to a pair that is down, changes nothing.
        let expected = row[8];
        assert_eq!(start(from).state(0), expected, "{from:?}");
    }
}

#[test]
fn reasons_name_direction_count_and_side() {
    let mut rig = start(Start::Up);
    rig.lose(|probe| probe.direction == Direction::WanToLan);
    rig.run_for(ms(601));
    let [down] = rig.pair_transitions()[..] else { panic!("one transition, not {:?}", rig.events) };
    assert_eq!(down.reason, Reason::Losses { direction: Direction::WanToLan, count: 5 });
    assert_eq!(down.tallies.wan_to_lan.consecutive_lost, 5);
    assert_eq!(down.tallies.wan_to_lan.counters.lost, 5);
    assert_eq!(down.tallies.lan_to_wan.counters.lost, 0);
    assert_eq!(down.at, rig.supervision.pair(PairKey(0)).unwrap().last_change);

    rig.events.clear();
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    let [up] = rig.pair_transitions()[..] else { panic!("one transition, not {:?}", rig.events) };
    assert_eq!(up.reason, Reason::Good { count: 5 });

    rig.events.clear();
    carrier(&mut rig, Side::Wan, false);
    let [down] = rig.pair_transitions()[..] else { panic!("one transition, not {:?}", rig.events) };
    assert_eq!(down.reason, Reason::CarrierLost { side: Side::Wan });
    assert_eq!(down.at, rig.now);
}

#[test]
fn carrier_that_returns_is_given_the_initial_delay_and_then_needs_the_up_count() {
    let mut rig = start(Start::Up);
    carrier(&mut rig, Side::Lan, false);
    rig.sent.clear();
    rig.run_for(ms(5_000));
    assert!(rig.sent.is_empty(), "no keep-alives without carrier");

    let back = rig.now;
    carrier(&mut rig, Side::Lan, true);
    rig.run_for(ms(3_000));
    let sent = rig.sent_by(0, Direction::LanToWan);
    assert!(sent[0] >= back + ms(1_000) && sent[0] < back + ms(1_100), "first at {}", sent[0]);
    let up = rig.pair_transitions().pop().unwrap();
    assert_eq!((up.to, up.reason), (Up, Reason::Good { count: 5 }));
    assert_eq!(up.at.since(sent[4]), crate::rig::us(200));
}

#[test]
fn one_port_back_of_two_is_still_no_carrier() {
    let mut rig = start(Start::Up);
    carrier(&mut rig, Side::Lan, false);
    carrier(&mut rig, Side::Wan, false);
    carrier(&mut rig, Side::Lan, true);
    rig.sent.clear();
    rig.run_for(ms(5_000));
    assert!(rig.sent.is_empty());
    assert_eq!(rig.state(0), Down);
    let carrier = rig.supervision.pair(PairKey(0)).unwrap().carrier;
    assert_eq!((carrier.lan, carrier.wan), (true, false));
}

#[test]
fn a_pair_enabled_without_carrier_goes_down_instead_of_waiting() {
    let mut rig = start(Start::AdminDown);
    carrier(&mut rig, Side::Lan, false);
    set_admin(&mut rig, Admin::Up);
    assert_eq!(rig.state(0), Down);
    let steps: Vec<_> = rig.pair_transitions().iter().map(|t| (t.from, t.to, t.reason)).collect();
    assert_eq!(steps, [(Adm, Down, Reason::CarrierLost { side: Side::Lan })]);
}

#[test]
fn carrier_that_went_and_came_while_a_pair_was_disabled_leaves_no_trace() {
    let mut rig = start(Start::AdminDown);
    carrier(&mut rig, Side::Lan, false);
    carrier(&mut rig, Side::Lan, true);
    set_admin(&mut rig, Admin::Up);
    assert_eq!(rig.state(0), Init);
}

#[test]
fn flaps_count_falls_from_service_only() {
    let mut rig = start(Start::Up);
    let flaps = |rig: &Rig| rig.supervision.pair(PairKey(0)).unwrap().flaps;
    assert_eq!(flaps(&rig), 0);
    for round in 1..=3 {
        rig.lose_everything();
        rig.run_for(ms(1_000));
        assert_eq!((rig.state(0), flaps(&rig)), (Down, round));
        rig.lose_nothing();
        rig.run_for(ms(1_000));
        assert_eq!((rig.state(0), flaps(&rig)), (Up, round));
    }
    set_admin(&mut rig, Admin::Down);
    assert_eq!(flaps(&rig), 3, "an administrator's doing is no flap");
}

#[test]
fn a_lone_good_keep_alive_starts_the_count_of_losses_anew() {
    let mut rig = start(Start::Up);
    for _ in 0..20 {
        rig.lose_everything();
        rig.run_for(ms(400));
        rig.lose_nothing();
        rig.run_for(ms(100));
    }
    assert_eq!(rig.state(0), Up);
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan.tally.counters.lost, 80);
}
