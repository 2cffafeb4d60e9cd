//! Flap damping: holds, trials, and the golden timeline.

use std::fmt::Write as _;

use liveness::{
    Admin, Event, HoldChange, HoldDown, Nanos, PairKey, PairState, Profile, ProfileSettings, Reason, Side,
    UnitConfig,
};

use crate::page;
use crate::rig::{Dice, Rig, healthy, ms, profile, unit, us};

fn damped(change: impl FnOnce(&mut ProfileSettings)) -> Profile {
    profile(|p| {
        p.hold_down = Some(HoldDown::default());
        change(p);
    })
}

fn rig() -> Rig {
    Rig::all_up(&[unit(damped(|_| {}), 3)])
}

/// Pair 0 loses everything until it is down; then everything is well again.
fn knock_down(rig: &mut Rig) {
    rig.lose(|probe| probe.pair == PairKey(0));
    while rig.state(0).carries() {
        rig.run_for(ms(1));
    }
    rig.lose_nothing();
}

fn hold(rig: &Rig) -> Option<liveness::HoldStatus> {
    rig.supervision.pair(PairKey(0)).unwrap().hold
}

#[test]
fn each_down_within_the_window_doubles_the_hold_up_to_the_ceiling() {
    let rule = HoldDown::default();
    let holds: Vec<u64> = (1..=9).map(|down| rule.hold(down).0 / ms(1_000).0).collect();
    assert_eq!(holds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
    assert_eq!(rule.hold(u32::MAX), ms(300_000));

    let mut rig = rig();
    for (down, seconds) in (1..).zip([5, 10, 20, 40]) {
        knock_down(&mut rig);
        let status = hold(&rig).unwrap();
        assert_eq!((status.down, status.trial), (down, false));
        assert_eq!(status.until.since(rig.pair_transitions().last().unwrap().at), ms(seconds * 1_000));
        rig.run_until(status.until + ms(1_000));
        assert_eq!((rig.state(0), hold(&rig)), (PairState::Up, None));
    }
    assert!((1..3).all(|pair| rig.state(pair) == PairState::Up), "nothing else shares its fate");
}

#[test]
fn downs_older_than_the_window_are_forgotten() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_for(ms(601_000));
    knock_down(&mut rig);
    assert_eq!(hold(&rig).unwrap().down, 1);
}

#[test]
fn good_keep_alives_while_held_show_as_held_and_carry_nothing() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    assert_eq!(rig.state(0), PairState::Held);
    assert!(!PairState::Held.carries());
    let states: Vec<_> = rig.pair_transitions().iter().map(|t| (t.from, t.to)).collect();
    assert_eq!(states, [(PairState::Up, PairState::Down), (PairState::Down, PairState::Held)]);
}

#[test]
fn the_trial_is_exactly_up_count_keep_alives_sent_after_the_hold() {
    for lost in 0..6u64 {
        let mut rig = rig();
        knock_down(&mut rig);
        let until = hold(&rig).unwrap().until;
        // One of the slots from then on is lost; the sixth is none of the trial's.
        let from = until + ms(100).times(lost);
        rig.wire = Box::new(move |probe, now| {
            let hit = probe.pair == PairKey(0) && now >= from && now < from + ms(100);
            if hit { vec![] } else { healthy(probe) }
        });
        rig.run_until(until);
        assert!(hold(&rig).unwrap().trial);
        rig.run_until(until + ms(750));
        let expected = if lost == 5 { PairState::Up } else { PairState::Held };
        assert_eq!(rig.state(0), expected, "slot {lost} of the trial lost");
        match rig.holds()[..] {
            [HoldChange::Started { .. }, HoldChange::Trial, HoldChange::Passed] => assert_eq!(lost, 5),
            [_, HoldChange::Trial, HoldChange::Started { down: 2, until: next, trial_failed: true }] => {
                // At once: when the loss is known, one max-delay after its slot.
                assert_eq!(next.since(rig.events.last().unwrap().at()), ms(10_000));
            }
            ref other => panic!("slot {lost}: {other:?}"),
        }
    }
}

#[test]
fn what_was_under_way_when_the_trial_began_decides_nothing() {
    let mut rig = rig();
    knock_down(&mut rig);
    let until = hold(&rig).unwrap().until;
    rig.lose(|probe| probe.pair == PairKey(0));
    rig.run_until(Nanos(until.0 - 1));
    rig.lose_nothing();
    rig.run_until(until + ms(1_000));
    assert_eq!(rig.state(0), PairState::Up);
}

#[test]
fn a_dead_appliance_under_a_hold_shows_as_down_after_the_shortest_hold() {
    let mut rig = Rig::all_up(&[unit(
        damped(|p| p.hold_down = Some(HoldDown { base_ms: 2_000, ..HoldDown::default() })),
        2,
    )]);
    for _ in 0..4 {
        knock_down(&mut rig);
        rig.run_until(hold(&rig).unwrap().until + ms(1_000));
    }
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    assert_eq!(rig.state(0), PairState::Held);
    rig.lose(|probe| probe.pair == PairKey(0));
    rig.run_for(ms(1_800));
    assert_eq!(rig.state(0), PairState::Held);
    rig.run_for(ms(500));
    assert_eq!(rig.state(0), PairState::Down);
    let flaps = rig.supervision.pair(PairKey(0)).unwrap().flaps;
    assert_eq!(flaps, 5, "it was out of service already");
}

#[test]
fn carrier_lost_under_a_hold_leaves_the_hold_and_its_trial_waits_for_carrier() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    let before = hold(&rig);
    rig.supervision.carrier(PairKey(0), Side::Wan, false, rig.now).unwrap();
    assert_eq!((rig.state(0), hold(&rig)), (PairState::Down, before));
    rig.run_for(ms(60_000));
    assert!(hold(&rig).unwrap().trial);
    rig.supervision.carrier(PairKey(0), Side::Wan, true, rig.now).unwrap();
    rig.run_for(ms(900));
    assert_eq!(rig.state(0), PairState::Down);
    rig.run_for(ms(700));
    assert_eq!((rig.state(0), hold(&rig)), (PairState::Up, None));
}

#[test]
fn carrier_lost_in_the_trial_fails_it() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_until(hold(&rig).unwrap().until + ms(150));
    rig.supervision.carrier(PairKey(0), Side::Lan, false, rig.now).unwrap();
    assert_eq!(rig.state(0), PairState::Down);
    assert_eq!(hold(&rig).unwrap().down, 2);
}

#[test]
fn carrier_that_flaps_is_damped_as_well() {
    let mut rig = rig();
    rig.supervision.carrier(PairKey(0), Side::Lan, false, rig.now).unwrap();
    rig.supervision.carrier(PairKey(0), Side::Lan, true, rig.now).unwrap();
    rig.run_for(ms(4_000));
    assert_eq!(rig.state(0), PairState::Held);
    rig.run_for(ms(2_000));
    assert_eq!(rig.state(0), PairState::Up);
}

#[test]
fn a_hold_cleared_by_hand_is_over_and_its_downs_are_forgotten() {
    let mut rig = rig();
    assert_eq!(rig.supervision.clear_hold(PairKey(0), rig.now), Ok(false));
    assert!(rig.supervision.clear_hold(PairKey(9), rig.now).is_err());
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    rig.events.clear();
    assert_eq!(rig.supervision.clear_hold(PairKey(0), rig.now), Ok(true));
    rig.turn();
    let [up] = rig.pair_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!((up.from, up.to, up.reason), (PairState::Held, PairState::Up, Reason::HoldCleared));
    assert_eq!(rig.holds(), [HoldChange::Cleared]);
    knock_down(&mut rig);
    assert_eq!(hold(&rig).unwrap().down, 1);
    // Of a pair whose keep-alives are not good yet: the counts decide.
    rig.supervision.clear_hold(PairKey(0), rig.now).unwrap();
    assert_eq!(rig.state(0), PairState::Down);
    rig.run_for(ms(700));
    assert_eq!(rig.state(0), PairState::Up);
}

fn configure(rig: &mut Rig, profile: Profile, admin: Admin) {
    let mut config: UnitConfig = unit(profile, 3);
    config.pairs[0].admin = admin;
    rig.supervision.configure(&[config], rig.now).unwrap();
    rig.turn();
}

#[test]
fn administration_ends_a_hold_and_draining_does_not() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    configure(&mut rig, damped(|_| {}), Admin::Drain);
    assert_eq!(rig.state(0), PairState::Held);
    rig.run_for(ms(5_000));
    assert_eq!(rig.state(0), PairState::Draining);
    configure(&mut rig, damped(|_| {}), Admin::Up);
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    configure(&mut rig, damped(|_| {}), Admin::Down);
    assert_eq!((rig.state(0), hold(&rig)), (PairState::AdminDown, None));
    configure(&mut rig, damped(|_| {}), Admin::Up);
    rig.run_for(ms(1_700));
    assert_eq!(rig.state(0), PairState::Up);
}

#[test]
fn a_profile_changed_under_a_hold_shortens_or_ends_it_and_never_lengthens_it() {
    let mut rig = rig();
    knock_down(&mut rig);
    rig.run_for(ms(1_000));
    let until = hold(&rig).unwrap().until;
    let with = |base_ms| damped(|p| p.hold_down = Some(HoldDown { base_ms, ..HoldDown::default() }));
    configure(&mut rig, with(60_000), Admin::Up);
    assert_eq!(hold(&rig).unwrap().until, until);
    configure(&mut rig, with(3_000), Admin::Up);
    assert_eq!(hold(&rig).unwrap().until, Nanos(until.0 - ms(2_000).0));
    configure(&mut rig, profile(|_| {}), Admin::Up);
    assert_eq!((rig.state(0), hold(&rig)), (PairState::Up, None));
}

#[test]
fn a_down_that_is_not_believed_after_all_holds_nobody() {
    let mut rig = Rig::all_up(&[unit(damped(|p| p.probes_down_count = 1), 3)]);
    rig.lose_everything();
    rig.run_for(ms(250));
    assert!((0..3).all(|pair| rig.state(pair) == PairState::Up));
    assert!(rig.supervision.pairs().all(|pair| pair.hold.is_none()));
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    knock_down(&mut rig);
    assert_eq!(hold(&rig).unwrap().down, 1);
}

/// Losses of ours do not fail a trial, once it is known that they are ours.
#[test]
fn a_trial_during_a_suspension_goes_on_after_it() {
    let mut rig = rig();
    knock_down(&mut rig);
    let until = hold(&rig).unwrap().until;
    rig.run_until(Nanos(until.0 - ms(1_000).0));
    rig.lose_everything();
    rig.run_until(until + ms(1_000));
    assert!(hold(&rig).unwrap().trial);
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    assert_eq!((rig.state(0), hold(&rig)), (PairState::Up, None));
}

/// Pair transitions in ten minutes of an appliance that loses 30 % of its keep-alives in each direction.
fn overloaded(profile: Profile, seed: u64) -> (usize, u64) {
    let mut rig = Rig::all_up(&[unit(profile, 2)]);
    let mut dice = Dice(seed);
    rig.wire = Box::new(
        move |probe, _| {
            if probe.pair == PairKey(0) && dice.percent(30) { vec![] } else { vec![us(200)] }
        },
    );
    rig.run_for(ms(600_000));
    (rig.pair_transitions().len(), rig.supervision.pair(PairKey(0)).unwrap().flaps)
}

#[test]
fn an_overloaded_appliance_flaps_without_hold_down_and_hardly_with_it() {
    let (mut most, mut least) = (0, usize::MAX);
    for seed in 0..20 {
        let (plain, plain_flaps) = overloaded(profile(|_| {}), seed);
        let (held, held_flaps) = overloaded(damped(|_| {}), seed);
        println!(
            "30 % loss, 10 min, seed {seed}: {plain} transitions ({plain_flaps} falls from service) without \
             hold-down, {held} ({held_flaps}) with it"
        );
        (most, least) = (most.max(held), least.min(plain));
    }
    assert!(least >= 12, "without hold-down it flaps: {least}");
    assert!(most <= 6, "with hold-down it does not: {most}");
}

/// What happens to a pair, told second by second.
fn golden() -> String {
    let mut rig = Rig::new(&[unit(damped(|_| {}), 1)]);
    // Cut from 10 s to 12 s and from 20 s to 21 s; from 40 s to 100 s every other keep-alive is lost.
    rig.wire = Box::new(|probe, now| {
        let cut = (ms(10_000)..ms(12_000)).contains(&now) || (ms(20_000)..ms(21_000)).contains(&now);
        let cut = cut || (ms(40_000)..ms(41_000)).contains(&now);
        let lame = (ms(41_000)..ms(100_000)).contains(&now) && probe.sequence % 3 == 0;
        if cut || lame { vec![] } else { vec![us(200)] }
    });
    rig.run_until(ms(60_000));
    rig.run_until(ms(240_000));
    // Down once more, and cleared by hand.
    let cut = rig.now;
    rig.wire = Box::new(move |_, now| if now < cut + ms(1_000) { vec![] } else { vec![us(200)] });
    rig.run_for(ms(5_000));
    rig.supervision.clear_hold(PairKey(0), rig.now).unwrap();
    rig.run_for(ms(1_000));
    let mut text = String::from("time          state       why\n");
    for event in &rig.events {
        let (state, hold) = match event {
            Event::Pair(change) => {
                let reason = match change.reason {
                    Reason::Good { count } => format!("{count} good in a row"),
                    Reason::Losses { count, .. } => format!("{count} lost in a row"),
                    other => format!("{other:?}"),
                };
                (format!("{:?}", change.to).to_lowercase(), reason)
            }
            Event::Hold(notice) => {
                let text = match notice.change {
                    HoldChange::Started { down, until, trial_failed } => format!(
                        "down {down}{}: held for {} s",
                        if trial_failed { " (trial failed)" } else { "" },
                        until.since(notice.at).0 / 1_000_000_000
                    ),
                    HoldChange::Trial => "trial of 5".to_owned(),
                    HoldChange::Passed => "trial passed".to_owned(),
                    HoldChange::Cleared => "cleared by hand".to_owned(),
                };
                (String::new(), text)
            }
            _ => continue,
        };
        let at = event.at().0 / 100_000;
        let _ = writeln!(text, "{:>7}.{:04} s  {state:<10}  {hold}", at / 10_000, at % 10_000);
    }
    text
}

#[test]
fn the_golden_timeline_is_the_published_one() {
    page::compare("timeline", &format!("```\n{}```\n", golden()));
}
