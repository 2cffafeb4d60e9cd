//! Burst mode: random instants, and what still holds.

use std::collections::BTreeSet;

use liveness::{Direction, Nanos, PairKey, PairState, ProbeMode, Profile, Supervision, SuspicionChange};
use proptest::prelude::*;

use crate::rig::{Dice, Rig, ms, profile, unit, us};

fn burst(interval: u32) -> Profile {
    profile(|p| {
        p.mode = ProbeMode::Burst;
        p.interval_ms = interval;
    })
}

#[test]
fn every_window_has_sampling_count_keep_alives_at_instants_of_their_own() {
    let mut rig = Rig::all_up(&[unit(burst(100), 4)]);
    rig.run_for(ms(100_000));
    for pair in 0..4 {
        let sent = rig.sent_by(pair, Direction::LanToWan);
        assert_eq!(sent, rig.sent_by(pair, Direction::WanToLan), "both directions go together");
        let place = u64::from(pair) * ms(25).0;
        let windows = sent.iter().map(|at| (at.0 - place) / ms(1_000).0);
        let mut counts = std::collections::BTreeMap::new();
        windows.for_each(|window| *counts.entry(window).or_insert(0) += 1);
        let whole: Vec<u32> = counts.values().copied().skip(1).take(98).collect();
        assert!(whole.iter().all(|count| *count == 10), "pair {pair}: {whole:?}");
        let places: BTreeSet<u64> = sent.iter().map(|at| at.0 % ms(100).0 / ms(5).0).collect();
        assert_eq!(places.len(), 20, "pair {pair}: every twentieth of the interval is met");
        let gaps: Vec<u64> = sent.windows(2).map(|two| two[1].0 - two[0].0).collect();
        assert!(gaps.iter().all(|gap| *gap < burst(100).longest_gap().0));
        assert!(gaps.iter().any(|gap| *gap > ms(150).0) && gaps.iter().any(|gap| *gap < ms(50).0));
    }
}

#[test]
fn the_same_seed_gives_the_same_instants_and_another_gives_others() {
    let instants = |seed| {
        let mut rig = Rig::of(Supervision::seeded(seed), &[unit(burst(100), 3)]);
        rig.run_for(ms(5_000));
        rig.sent
    };
    assert_eq!(instants(1), instants(1));
    assert_ne!(instants(1), instants(2));
}

#[test]
fn pairs_have_instants_of_their_own() {
    let mut rig = Rig::all_up(&[unit(burst(100), 2)]);
    rig.run_for(ms(10_000));
    let places = |pair: u16| -> Vec<u64> {
        let sent = rig.sent_by(pair, Direction::LanToWan);
        sent.iter().map(|at| (at.0 - u64::from(pair) * ms(50).0) % ms(100).0).collect()
    };
    assert_ne!(places(0), places(1));
}

#[test]
fn the_bound_of_burst_is_one_interval_longer() {
    assert_eq!(burst(100).detection_bound(), ms(700));
    assert_eq!(burst(100).longest_gap(), ms(200));
    assert_eq!(profile(|_| {}).longest_gap(), ms(100));
}

#[test]
fn late_polls_send_once_per_interval_at_most() {
    let mut rig = Rig::new(&[unit(burst(100), 2)]);
    let mut dice = Dice(3);
    for _ in 0..400 {
        rig.now = rig.now.max(rig.supervision.next_deadline().unwrap()) + ms(dice.below(250));
        rig.turn();
    }
    let sent = rig.sent_by(0, Direction::LanToWan);
    assert!(sent.len() > 100 && sent.windows(2).all(|two| two[0] < two[1]));
}

#[test]
fn when_every_pair_fails_in_burst_mode_states_stand() {
    for down in 1..8 {
        for seed in 0..40 {
            let profile = profile(|p| {
                p.mode = ProbeMode::Burst;
                p.probes_down_count = down;
            });
            let mut rig = Rig::of(Supervision::seeded(seed), &[unit(profile, 5)]);
            rig.run_for(ms(2_500));
            assert!((0..5).all(|pair| rig.state(pair) == PairState::Up));
            rig.events.clear();
            rig.lose_everything();
            rig.run_for(profile.detection_bound() + ms(1));
            assert!((0..5).all(|pair| rig.state(pair) == PairState::Up), "count {down}, seed {seed}");
            assert!(
                matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 5, .. }]),
                "count {down}, seed {seed}: {:?}",
                rig.events
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Outages of random length at random instants: down never later than the bound, never before the count of losses,
    /// and not at all when fewer are lost.
    #[test]
    fn random_outages_show_within_the_bound_and_not_before_the_count(
        interval in 1u32..200, down in 1u32..10, standard: bool, seed: u64, outages in prop::collection::vec(0u64..2_000, 1..12),
    ) {
        let max_delay = ms(interval.into()).0 / 2;
        let profile = profile(|p| {
            p.mode = if standard { ProbeMode::Standard } else { ProbeMode::Burst };
            p.interval_ms = interval;
            p.probes_down_count = down;
            p.initial_delay_ms = 10;
            p.max_delay_us = Some(u32::try_from(max_delay / 1_000).unwrap());
        });
        let mut rig = Rig::of(Supervision::seeded(seed), &[unit(profile, 3)]);
        rig.wire = Box::new(|_, _| vec![us(20)]);
        rig.run_for(ms(20) + profile.interval().times(9));
        let mut dice = Dice(seed);
        for percent in outages {
            prop_assert_eq!(rig.state(1), PairState::Up);
            let begun = rig.now + Nanos(dice.below(profile.interval().0));
            rig.run_until(Nanos(begun.0 - 1));
            rig.events.clear();
            rig.sent.clear();
            let length = Nanos(profile.detection_bound().0 * percent / 1_000);
            let end = begun + length;
            rig.wire = Box::new(move |probe, now| {
                if probe.pair == PairKey(1) && now >= begun && now < end { vec![] } else { vec![us(20)] }
            });
            rig.run_until(end + profile.max_delay() + ms(1));
            let lost = rig.sent_by(1, Direction::LanToWan).iter().filter(|at| **at >= begun && **at < end).count();
            let fell = rig.pair_transitions().into_iter().find(|t| t.to == PairState::Down);
            if standard {
                prop_assert_eq!(fell.is_some(), lost >= down as usize, "{} lost", lost);
            } else {
                // A good one right after the outage may be back before the last loss is known.
                prop_assert!(fell.is_none() || lost >= down as usize, "{} lost", lost);
                prop_assert!(fell.is_some() || lost <= down as usize || length < profile.detection_bound());
            }
            if let Some(fell) = fell {
                prop_assert_eq!(fell.tallies.lan_to_wan.consecutive_lost, down);
                prop_assert!(fell.at <= begun + profile.detection_bound(), "{} after {begun}", fell.at);
            }
            rig.run_for(profile.interval().times(10));
        }
    }
}
