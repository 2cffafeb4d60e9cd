//! When keep-alives go out, and how soon a fault shows.

use std::collections::BTreeMap;

use liveness::{Direction, Nanos, PairConfig, PairKey, PairState, UnitConfig};
use proptest::prelude::*;

use crate::rig::{Dice, Rig, ms, profile, unit, us};

#[test]
fn the_first_keep_alive_waits_for_the_initial_delay() {
    let mut rig = Rig::new(&[unit(profile(|p| p.initial_delay_ms = 250), 8)]);
    rig.run_until(ms(5_000));
    for pair in 0..8 {
        let first = rig.sent_by(pair, Direction::LanToWan)[0];
        assert!(first >= ms(250) && first < ms(350), "pair {pair} began at {first}");
    }
}

#[test]
fn both_directions_are_probed_in_every_slot() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 3)]);
    rig.run_for(ms(2_000));
    for pair in 0..3 {
        let there = rig.sent_by(pair, Direction::LanToWan);
        assert_eq!(there.len(), 20);
        assert_eq!(there, rig.sent_by(pair, Direction::WanToLan));
    }
}

#[test]
fn keep_alives_never_drift() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.interval_ms = 10), 7)]);
    rig.run_for(ms(60_000));
    for pair in 0..7 {
        let sent = rig.sent_by(pair, Direction::LanToWan);
        assert_eq!(sent.len(), 6_000);
        for (k, at) in sent.iter().enumerate() {
            assert_eq!(*at, sent[0] + ms(10).times(k as u64));
        }
    }
}

/// Spaces between the pairs' places on the interval, around the circle.
fn spaces(rig: &Rig, pairs: impl Iterator<Item = u16>, interval: Nanos) -> Vec<u64> {
    let mut places: Vec<u64> =
        pairs.map(|pair| rig.sent_by(pair, Direction::LanToWan)[0].0 % interval.0).collect();
    places.sort_unstable();
    let first = places[0];
    places.push(first + interval.0);
    places.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn pairs_are_spread_evenly_over_the_interval() {
    for count in [1, 2, 3, 17, 21, 128] {
        let mut rig = Rig::new(&[unit(profile(|p| p.interval_ms = 10), count)]);
        rig.run_until(ms(1_100));
        let even = ms(10).0 / u64::from(count);
        for space in spaces(&rig, 0..count, ms(10)) {
            assert!(
                space.abs_diff(even) <= u64::from(count),
                "{count} pairs: {space} ns instead of {even} ns"
            );
        }
    }
}

#[test]
fn pairs_added_later_take_the_widest_spaces_and_move_nobody() {
    let few = unit(profile(|_| {}), 5);
    let many = unit(profile(|_| {}), 40);
    let mut rig = Rig::all_up(&[few]);
    rig.run_for(ms(200));
    let before: Vec<u64> = (0..5).map(|p| rig.sent_by(p, Direction::LanToWan)[0].0 % ms(100).0).collect();
    rig.supervision.configure(&[many], rig.now).unwrap();
    rig.sent.clear();
    rig.run_for(ms(2_000));
    let after: Vec<u64> = (0..5).map(|p| rig.sent_by(p, Direction::LanToWan)[0].0 % ms(100).0).collect();
    assert_eq!(before, after);
    let spaces = spaces(&rig, 0..40, ms(100));
    assert!(spaces.iter().max().unwrap() <= &(2 * spaces.iter().min().unwrap() + 40), "{spaces:?}");
}

#[test]
fn places_stay_spread_when_pairs_start_at_different_times() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 10)]);
    for pair in 0..10 {
        rig.run_for(ms(37));
        rig.supervision.carrier(PairKey(pair), liveness::Side::Lan, false, rig.now).unwrap();
        rig.run_for(ms(23));
        rig.supervision.carrier(PairKey(pair), liveness::Side::Lan, true, rig.now).unwrap();
    }
    rig.run_for(ms(2_000));
    rig.sent.clear();
    rig.run_for(ms(200));
    assert!(spaces(&rig, 0..10, ms(100)).iter().all(|space| space.abs_diff(ms(10).0) <= 10));
}

#[test]
fn missed_slots_are_skipped_and_are_no_losses() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 4)]);
    rig.freeze_for(ms(1_234));
    rig.turn();
    let mut at_once = BTreeMap::new();
    for (at, probe) in rig.sent.iter().filter(|(at, _)| *at == rig.now) {
        *at_once.entry((*at, probe.pair, probe.direction)).or_insert(0) += 1;
    }
    assert!(at_once.values().all(|count| *count == 1), "{at_once:?}");
    rig.run_for(ms(1_000));
    assert!(rig.supervision.pairs().all(|pair| pair.paths.lan_to_wan.tally.counters.lost == 0));
    let places = |from: Nanos| {
        let sent = rig.sent.iter().filter(move |(at, probe)| *at > from && probe.pair == PairKey(1));
        sent.map(|(at, _)| at.0 % ms(100).0).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(places(rig.now.since(ms(1_000)) + ms(1)), std::collections::BTreeSet::from([ms(25).0]));
}

#[test]
fn a_hundred_and_twenty_eight_pairs_at_ten_milliseconds_miss_no_slot() {
    let fast = profile(|p| p.interval_ms = 10);
    let units: Vec<UnitConfig> = (0..8)
        .map(|u| {
            let pairs = (0..16).map(|p| PairConfig::new(PairKey(u * 16 + p))).collect();
            UnitConfig::new(liveness::UnitKey(u), fast, pairs)
        })
        .collect();
    let mut rig = Rig::all_up(&units);
    rig.run_for(ms(10_000));
    assert_eq!(rig.sent.len(), 128 * 2 * 1_000);
    assert!(rig.events.is_empty(), "{:?}", rig.events);
}

#[test]
fn the_detection_bound_is_interval_times_count_plus_max_delay() {
    assert_eq!(profile(|_| {}).detection_bound(), ms(600));
    let quick = profile(|p| {
        p.interval_ms = 10;
        p.probes_down_count = 3;
        p.max_delay_us = Some(2_000);
    });
    assert_eq!(quick.detection_bound(), ms(32));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A fault at any instant, in any direction, with any profile: never later than the bound, and never before
    /// probes-down-count keep-alives are lost.
    #[test]
    fn a_fault_shows_within_the_bound_and_not_before_the_count(
        interval in 1u32..300,
        max_delay_percent in 1u64..400,
        down in 1u32..12,
        pairs in 1u16..6,
        fault_after in 0u64..1_000_000,
        which in 0u8..3,
        seed: u64,
    ) {
        let max_delay = us(u64::from(interval) * 10 * max_delay_percent);
        let profile = profile(|p| {
            p.interval_ms = interval;
            p.probes_down_count = down;
            p.max_delay_us = Some(u32::try_from(max_delay.0 / 1_000).unwrap());
            p.initial_delay_ms = 10;
            // Any pairs that fail alone do so without delay.
            p.suspend_limit_ms = 0;
        });
        let mut rig = Rig::new(&[unit(profile, pairs)]);
        let mut dice = Dice(seed);
        let broken = PairKey(u16::try_from(dice.below(pairs.into())).unwrap());
        let warm = ms(10) + profile.interval().times(8) + max_delay;
        let fault = warm + Nanos(fault_after * u64::from(interval));
        rig.wire = Box::new(move |probe, now| {
            let hit = match which { 0 => probe.direction == Direction::LanToWan, 1 => probe.direction == Direction::WanToLan, _ => true };
            if probe.pair == broken && now >= fault && hit { vec![] } else { vec![Nanos(dice.below(max_delay.0))] }
        });
        rig.run_until(fault + profile.detection_bound());
        prop_assert_eq!(rig.state(broken.0), PairState::Down);
        for other in (0..pairs).filter(|p| *p != broken.0) {
            prop_assert_eq!(rig.state(other), PairState::Up);
        }
        let fell = rig.pair_transitions().into_iter().find(|t| t.to == PairState::Down).unwrap();
        let count = fell.tallies.lan_to_wan.consecutive_lost.max(fell.tallies.wan_to_lan.consecutive_lost);
        prop_assert_eq!(count, down);
        let first_lost = rig.sent_by(broken.0, Direction::LanToWan).into_iter().find(|at| *at >= fault).unwrap();
        prop_assert_eq!(fell.at, first_lost + profile.interval().times(u64::from(down) - 1) + max_delay);
    }

    /// However late each poll is: never two keep-alives for one slot, never before the slot, and the slots stay
    /// where they were.
    #[test]
    fn late_polls_neither_move_slots_nor_send_twice(lateness in prop::collection::vec(0u64..400, 1..200)) {
        let mut rig = Rig::new(&[unit(profile(|_| {}), 3)]);
        for late in lateness {
            rig.now = rig.now.max(rig.supervision.next_deadline().unwrap()) + ms(late);
            rig.turn();
        }
        for pair in 0..3u16 {
            let place = ((u64::from(pair) * (1 << 32) / 3) * ms(100).0) >> 32;
            let slots: Vec<u64> = rig.sent_by(pair, Direction::WanToLan).iter()
                .map(|at| (at.0 - place) / ms(100).0).collect();
            prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "two in one slot: {slots:?}");
        }
    }
}
