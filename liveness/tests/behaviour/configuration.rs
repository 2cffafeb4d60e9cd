//! Ranges of a profile, and what survives a change of configuration.

use liveness::{
    Admin, ConfigureError, Direction, Initial, PairConfig, PairKey, PairState, Profile, ProfileError,
    ProfileSettings, Reason, Supervision, UnitConfig, UnitKey, UnitState, UnknownPair,
};

use crate::rig::{Rig, UNIT, ms, profile, unit, us};

#[test]
fn defaults_are_those_of_the_manual() {
    let profile = Profile::default();
    assert_eq!(profile.initial_delay(), ms(1_000));
    assert_eq!(profile.interval(), ms(100));
    assert_eq!((profile.probes_down_count(), profile.probes_up_count()), (5, 5));
    assert_eq!(profile.max_delay(), ms(100));
    assert_eq!(profile.active_pairs(), 1);
    assert_eq!(profile.samples(), 20);
    assert_eq!(profile.suspend_limit(), ms(3_000));
    assert_eq!(Profile::new(ProfileSettings::default()), Ok(profile));
}

#[test]
fn every_parameter_is_taken_at_its_ends_and_refused_beyond() {
    type Set = fn(&mut ProfileSettings, u32);
    let parameters: [(&str, u32, u32, Set); 7] = [
        ("initial-delay", 0, 600_000, |p, v| p.initial_delay_ms = v),
        ("interval", 1, 60_000, |p, v| p.interval_ms = v),
        ("probes-down-count", 1, 1_000, |p, v| p.probes_down_count = v),
        ("probes-up-count", 1, 1_000, |p, v| p.probes_up_count = v),
        ("active-pairs", 1, 1_024, |p, v| p.active_pairs = u16::try_from(v).unwrap()),
        ("sampling-count", 1, 1_000, |p, v| p.sampling_count = u16::try_from(v).unwrap()),
        ("suspend-limit", 0, 60_000, |p, v| p.suspend_limit_ms = v),
    ];
    for (name, min, max, set) in parameters {
        let with = |value: u32| {
            let mut settings = ProfileSettings::default();
            set(&mut settings, value);
            Profile::new(settings)
        };
        assert!(with(min).is_ok(), "{name} {min}");
        assert!(with(max).is_ok(), "{name} {max}");
        for beyond in [min.checked_sub(1), Some(max + 1)].into_iter().flatten() {
            let Err(ProfileError::OutOfRange { parameter, value, .. }) = with(beyond) else {
                panic!("{name} {beyond} must be refused")
            };
            assert_eq!((parameter, value), (name, u64::from(beyond)));
        }
    }
}

#[test]
fn max_delay_is_at_most_sixty_four_intervals() {
    let with = |interval_ms, max_delay_us| {
        Profile::new(ProfileSettings { interval_ms, max_delay_us: Some(max_delay_us), ..Default::default() })
    };
    assert!(with(10, 640_000).is_ok());
    let refused = with(10, 640_001).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "max-delay 640001 us is more than 64 intervals of 10 ms, choose at most 640000 us or a longer interval"
    );
    assert!(with(60_000, 60_000_000).is_ok());
    assert_eq!(
        with(60_000, 60_000_001).unwrap_err().to_string(),
        "max-delay 60000001 us is out of range, choose 1..60000000 us"
    );
    assert!(with(10, 0).is_err());
}

#[test]
fn keys_used_twice_are_refused_and_change_nothing() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 2)]);
    let before: Vec<_> = rig.supervision.pairs().collect();
    let twice = [
        unit(profile(|_| {}), 1),
        UnitConfig::new(UnitKey(9), profile(|_| {}), vec![PairConfig::new(PairKey(0))]),
    ];
    assert_eq!(rig.supervision.configure(&twice, rig.now), Err(ConfigureError::DuplicatePair(PairKey(0))));
    let same_unit = [unit(profile(|_| {}), 1), UnitConfig::new(UNIT, profile(|_| {}), vec![])];
    assert_eq!(rig.supervision.configure(&same_unit, rig.now), Err(ConfigureError::DuplicateUnit(UNIT)));
    assert_eq!(rig.supervision.pairs().collect::<Vec<_>>(), before);
}

#[test]
fn unchanged_configuration_changes_nothing() {
    let config = [unit(profile(|_| {}), 3)];
    let mut rig = Rig::all_up(&config);
    let (before, due): (Vec<_>, _) = (rig.supervision.pairs().collect(), rig.supervision.next_deadline());
    rig.supervision.configure(&config, rig.now).unwrap();
    assert_eq!(rig.supervision.pairs().collect::<Vec<_>>(), before);
    assert_eq!(rig.supervision.next_deadline(), due);
    rig.turn();
    assert!(rig.events.is_empty());
}

#[test]
fn pairs_that_stay_keep_state_and_statistics_when_others_come_and_go() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 4)]);
    rig.run_for(ms(3_000));
    let before = rig.supervision.pair(PairKey(1)).unwrap();
    let mut config = unit(profile(|_| {}), 8);
    config.pairs.remove(0);
    rig.supervision.configure(&[config], rig.now).unwrap();
    assert_eq!(rig.supervision.pair(PairKey(1)).unwrap(), before);
    assert_eq!(rig.supervision.pair(PairKey(0)), None);
    assert_eq!(rig.state(7), PairState::Init);
}

#[test]
fn a_pair_keeps_state_and_statistics_under_another_profile_and_unit() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 2)]);
    let before = rig.supervision.pair(PairKey(0)).unwrap();
    let other = UnitConfig::new(
        UnitKey(2),
        profile(|p| {
            p.interval_ms = 10;
            p.probes_down_count = 3;
        }),
        vec![PairConfig::new(PairKey(0)), PairConfig::new(PairKey(1))],
    );
    rig.supervision.configure(&[other], rig.now).unwrap();
    let after = rig.supervision.pair(PairKey(0)).unwrap();
    assert_eq!((after.state, after.paths), (before.state, before.paths));
    assert_eq!(after.unit, UnitKey(2));
    assert_eq!(rig.supervision.unit(UNIT), None);
    rig.sent.clear();
    rig.run_for(ms(1_000));
    assert_eq!(rig.sent_by(0, Direction::LanToWan).len(), 100, "the new interval holds at once");
    rig.lose(|probe| probe.pair == PairKey(0));
    rig.run_for(ms(41));
    assert_eq!(rig.state(0), PairState::Down, "and so does the new count");
}

#[test]
fn removed_pairs_lose_their_statistics_at_once_and_never_reuse_a_sequence_number() {
    let config = [unit(profile(|_| {}), 1)];
    let mut rig = Rig::all_up(&config);
    rig.run_for(ms(1_000));
    let last = rig.sent.last().unwrap().1;
    rig.supervision.configure(&[], rig.now).unwrap();
    assert_eq!(rig.supervision.pairs().count(), 0);
    assert_eq!(rig.supervision.next_deadline(), None);
    let gone = rig.supervision.probe_received(last, rig.now, rig.now, rig.now);
    assert_eq!(gone, Err(UnknownPair(PairKey(0))));

    rig.supervision.configure(&config, rig.now).unwrap();
    let fresh = rig.supervision.pair(PairKey(0)).unwrap();
    assert_eq!(fresh.paths.lan_to_wan, liveness::PathStatus::default());
    rig.sent.clear();
    rig.run_for(ms(2_000));
    assert_eq!(rig.sent[0].1.sequence, last.sequence + 1);
}

#[test]
fn adopted_states_stand_without_a_transition() {
    let mut config = unit(profile(|p| p.active_pairs = 2), 3);
    config.pairs[0].initial = Initial::AdoptedUp;
    config.pairs[1].initial = Initial::AdoptedUp;
    config.pairs[2].initial = Initial::AdoptedDown;
    let mut rig = Rig::new(&[config]);
    assert_eq!([rig.state(0), rig.state(1), rig.state(2)], [PairState::Up, PairState::Up, PairState::Down]);
    assert_eq!(rig.supervision.unit(UNIT).unwrap().state, UnitState::Up);
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().last_reason, Reason::Adopted);
    rig.lose(|probe| probe.pair == PairKey(2));
    rig.run_for(ms(5_000));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
}

#[test]
fn an_adopted_state_is_ignored_for_a_pair_that_is_known() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    let mut config = unit(profile(|_| {}), 1);
    config.pairs[0].initial = Initial::AdoptedDown;
    rig.supervision.configure(&[config], rig.now).unwrap();
    assert_eq!(rig.state(0), PairState::Up);
}

#[test]
fn a_pair_enabled_again_starts_from_init_after_the_initial_delay() {
    let mut config = unit(profile(|_| {}), 1);
    let mut rig = Rig::all_up(std::slice::from_ref(&config));
    config.pairs[0].admin = Admin::Down;
    rig.supervision.configure(std::slice::from_ref(&config), rig.now).unwrap();
    rig.sent.clear();
    rig.run_for(ms(5_000));
    assert!(rig.sent.is_empty());
    config.pairs[0].admin = Admin::Up;
    rig.supervision.configure(&[config], rig.now).unwrap();
    assert_eq!(rig.state(0), PairState::Init);
    let enabled = rig.now;
    rig.run_for(ms(2_000));
    assert!(rig.sent[0].0 >= enabled + ms(1_000));
    assert_eq!(rig.state(0), PairState::Up);
}

#[test]
fn a_shorter_max_delay_holds_for_keep_alives_under_way() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.interval_ms = 1_000), 1)]);
    rig.lose_everything();
    rig.run_for(ms(1_000));
    let sent = rig.sent.last().unwrap().0;
    let quick = profile(|p| {
        p.interval_ms = 1_000;
        p.max_delay_us = Some(500_000);
    });
    rig.supervision.configure(&[unit(quick, 1)], rig.now).unwrap();
    rig.run_until(sent + ms(500) + us(1));
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan.tally.counters.lost, 1);
}

#[test]
fn another_interval_does_not_cut_the_initial_delay_short() {
    let mut rig = Rig::new(&[unit(profile(|_| {}), 1)]);
    rig.run_until(ms(300));
    rig.supervision.configure(&[unit(profile(|p| p.interval_ms = 10), 1)], rig.now).unwrap();
    rig.run_until(ms(1_500));
    assert_eq!(rig.sent[0].0, ms(1_000));
}

#[test]
fn nothing_configured_is_nothing_to_wait_for() {
    let mut supervision = Supervision::new();
    assert_eq!(supervision.next_deadline(), None);
    assert_eq!(supervision.poll(ms(5)), liveness::Actions::default());
}
