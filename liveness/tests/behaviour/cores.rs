//! A core hangs: it loses its own buckets, its pair stays.

use std::collections::BTreeMap;

use liveness::{
    ConfigureError, CoreState, Direction, Initial, Nanos, PairConfig, PairKey, PairState, ProbeKind, Profile,
    Reason, Side, SuspicionChange, UnitConfig, UnitKey,
};

use crate::rig::{Rig, UNIT, ms, profile, unit};

fn with_cores(profile: Profile, pairs: u16, cores: u16) -> UnitConfig {
    UnitConfig { cores, ..unit(profile, pairs) }
}

fn probing() -> Profile {
    profile(|p| p.probe_cores = true)
}

fn rig() -> Rig {
    Rig::all_up(&[with_cores(probing(), 3, 16)])
}

fn cores(rig: &Rig, pair: u16) -> Vec<CoreState> {
    rig.supervision.pair(PairKey(pair)).unwrap().cores.iter().map(|core| core.state).collect()
}

#[test]
fn cores_are_probed_only_where_the_profile_says_so() {
    let mut rig = Rig::all_up(&[with_cores(profile(|_| {}), 1, 16)]);
    rig.run_for(ms(500));
    assert!(rig.sent.iter().all(|(_, probe)| probe.kind == ProbeKind::Pair));
    assert!(cores(&rig, 0).is_empty());
    let mut rig = self::rig();
    rig.run_for(ms(1_000));
    for core in 0..16 {
        for direction in Direction::BOTH {
            assert_eq!(rig.sent_of(1, ProbeKind::Core(core), direction).len(), 10);
        }
    }
    assert_eq!(cores(&rig, 1), [CoreState::Up; 16]);
}

#[test]
fn a_hung_core_is_one_event_and_leaves_the_pair_and_the_other_cores_up() {
    let mut rig = rig();
    rig.lose(|probe| (probe.pair, probe.kind) == (PairKey(1), ProbeKind::Core(7)));
    let fault = rig.now;
    rig.run_for(ms(60_000));
    let [down] = rig.core_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!((down.pair, down.core, down.from, down.to), (PairKey(1), 7, CoreState::Up, CoreState::Down));
    assert_eq!(down.reason, Reason::Losses { direction: Direction::LanToWan, count: 5 });
    assert_eq!(down.tallies.lan_to_wan.consecutive_lost, 5);
    assert!(down.at <= fault + probing().detection_bound());
    assert_eq!(rig.events.len(), 1);
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    let back = rig.core_transitions()[1];
    assert_eq!((back.to, back.reason), (CoreState::Up, Reason::Good { count: 5 }));
    assert_eq!(rig.events.len(), 2);
    let status = rig.supervision.pair(PairKey(1)).unwrap().cores[7];
    assert_eq!((status.core, status.flaps, status.last_change), (7, 1, back.at));
}

#[test]
fn a_pair_that_is_cut_is_no_fault_of_its_cores() {
    for instant in (0..100).step_by(9) {
        for length in [350, 620, 1_030, 5_000] {
            let mut rig = rig();
            rig.run_for(ms(instant));
            rig.lose(|probe| probe.pair == PairKey(1));
            rig.run_for(ms(length));
            rig.lose_nothing();
            rig.run_for(ms(2_000));
            assert_eq!(rig.core_transitions(), [], "cut after {instant} ms for {length} ms");
            assert_eq!(rig.state(1), PairState::Up);
        }
    }
}

#[test]
fn when_every_core_is_down_so_is_the_pair_and_it_comes_back_with_the_first() {
    let mut rig = rig();
    rig.lose(|probe| probe.pair == PairKey(1) && probe.kind != ProbeKind::Pair);
    let fault = rig.now;
    rig.run_for(ms(10_000));
    assert_eq!(rig.core_transitions().len(), 16);
    let [down] = rig.pair_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!((down.pair, down.to), (PairKey(1), PairState::Down));
    assert_eq!(down.reason, Reason::AllCoresDown { cores: 16 });
    assert!(down.at <= fault + probing().detection_bound());
    rig.events.clear();
    rig.lose(|probe| probe.pair == PairKey(1) && !matches!(probe.kind, ProbeKind::Pair | ProbeKind::Core(3)));
    rig.run_for(ms(1_000));
    assert_eq!(rig.state(1), PairState::Up);
    assert_eq!(rig.core_transitions().len(), 1);
}

#[test]
fn a_new_pair_without_a_living_core_never_comes_up() {
    let mut rig = Rig::new(&[with_cores(probing(), 2, 4)]);
    rig.lose(|probe| probe.pair == PairKey(1) && probe.kind != ProbeKind::Pair);
    rig.run_for(ms(5_000));
    assert_eq!([rig.state(0), rig.state(1)], [PairState::Up, PairState::Down]);
    assert_eq!(rig.supervision.pair(PairKey(1)).unwrap().flaps, 0);
}

#[test]
fn when_no_core_of_any_pair_answers_the_fault_may_be_ours() {
    let mut rig = rig();
    rig.lose(|probe| probe.kind != ProbeKind::Pair);
    rig.run_for(ms(2_000));
    assert_eq!((rig.core_transitions(), rig.pair_transitions()), (vec![], vec![]));
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 3, .. }]));
    rig.run_for(ms(3_000));
    assert!((0..3).all(|pair| rig.state(pair) == PairState::Down));
}

#[test]
fn cores_of_pairs_in_service_come_and_go_with_the_configuration_without_harm() {
    let mut rig = Rig::all_up(&[with_cores(profile(|_| {}), 2, 4)]);
    rig.supervision.configure(&[with_cores(probing(), 2, 4)], rig.now).unwrap();
    assert_eq!(cores(&rig, 0), [CoreState::Init; 4]);
    assert!(CoreState::Init.carries() && CoreState::Up.carries() && !CoreState::Down.carries());
    rig.run_for(ms(1_000));
    assert_eq!(cores(&rig, 0), [CoreState::Up; 4]);
    rig.supervision.configure(&[with_cores(probing(), 2, 6)], rig.now).unwrap();
    rig.run_for(ms(1_000));
    assert_eq!(cores(&rig, 0), [CoreState::Up; 6]);
    rig.supervision.configure(&[with_cores(probing(), 2, 2)], rig.now).unwrap();
    rig.supervision.configure(&[with_cores(probing(), 2, 6)], rig.now).unwrap();
    rig.run_for(ms(1_000));
    assert!(rig.pair_transitions().is_empty());
    let mut seen = std::collections::BTreeSet::new();
    assert!(rig.sent.iter().all(|(_, p)| seen.insert((p.pair, p.kind, p.direction, p.sequence))));
}

#[test]
fn adopted_pairs_have_their_cores() {
    let mut config = with_cores(probing(), 1, 4);
    config.pairs[0].initial = Initial::AdoptedUp;
    let mut rig = Rig::new(&[config]);
    assert_eq!(cores(&rig, 0), [CoreState::Up; 4]);
    rig.run_for(ms(5_000));
    assert!(rig.events.is_empty());
}

#[test]
fn a_core_that_is_down_stays_so_while_carrier_is_away() {
    let mut rig = rig();
    rig.lose(|probe| probe.kind == ProbeKind::Core(2));
    rig.run_for(ms(1_000));
    rig.supervision.carrier(PairKey(0), Side::Lan, false, rig.now).unwrap();
    rig.run_for(ms(1_000));
    rig.supervision.carrier(PairKey(0), Side::Lan, true, rig.now).unwrap();
    rig.run_for(ms(3_000));
    assert_eq!((rig.state(0), cores(&rig, 0)[2]), (PairState::Up, CoreState::Down));
    assert_eq!(rig.core_transitions().iter().filter(|t| t.pair == PairKey(0)).count(), 1);
}

#[test]
fn more_cores_than_numbers_are_refused() {
    let mut rig = rig();
    let refused = rig.supervision.configure(&[with_cores(probing(), 1, 257)], rig.now);
    assert_eq!(refused, Err(ConfigureError::TooManyCores { unit: UNIT, cores: 257 }));
    assert_eq!(refused.unwrap_err().to_string(), "unit 1 has 257 cores, at most 256 can be probed");
    assert_eq!(rig.supervision.configure(&[with_cores(probing(), 1, 256)], rig.now), Ok(()));
}

/// 128 pairs x 16 cores at 10 ms: 4,352 keep-alives an interval, 44 in a hundredth of it if spread evenly.
#[test]
fn a_hundred_and_twenty_eight_pairs_of_sixteen_cores_are_spread_over_the_interval() {
    let fast = profile(|p| {
        p.interval_ms = 10;
        p.probe_cores = true;
    });
    let units: Vec<UnitConfig> = (0..8)
        .map(|u| {
            let pairs = (0..16).map(|p| PairConfig::new(PairKey(u * 16 + p))).collect();
            UnitConfig { cores: 16, ..UnitConfig::new(UnitKey(u), fast, pairs) }
        })
        .collect();
    let mut rig = Rig::all_up(&units);
    let begin = rig.now;
    rig.run_for(ms(1_000));
    assert_eq!(rig.sent.len(), 128 * 17 * 2 * 100);
    let mut instants: BTreeMap<Nanos, usize> = BTreeMap::new();
    let mut hundredths = [0usize; 100];
    for (at, _) in rig.sent.iter().filter(|(at, _)| *at < begin + ms(10)) {
        *instants.entry(*at).or_default() += 1;
        hundredths[(at.0 % ms(10).0 / ms(10).0.div_ceil(100)) as usize] += 1;
    }
    assert!(instants.values().all(|count| *count <= 4), "{:?}", instants.values().max());
    assert!(hundredths.iter().all(|count| (22..=66).contains(count)), "{hundredths:?}");
    assert!(rig.events.is_empty());
}
