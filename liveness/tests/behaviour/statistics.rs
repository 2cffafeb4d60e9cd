//! Figures over the last keep-alives.

use liveness::{BOUNDS, Direction, Nanos, PairKey, Statistics};
use proptest::prelude::*;

use crate::rig::{Rig, ms, profile, unit, us};

/// Statistics of the LAN-to-WAN direction after these fates, one per slot; `None`: lost.
fn after(fates: Vec<Option<Nanos>>, sampling_count: u16) -> Statistics {
    let count = fates.len() as u64;
    let profile = profile(|p| {
        p.sampling_count = sampling_count;
        p.initial_delay_ms = 0;
    });
    let mut rig = Rig::new(&[unit(profile, 1)]);
    rig.wire = Box::new(move |probe, _| {
        let fate = fates.get(usize::try_from(probe.sequence).unwrap()).copied().flatten();
        if probe.direction == Direction::LanToWan { fate.into_iter().collect() } else { vec![us(1)] }
    });
    // The last slot's loss shows together with the next slot, whose own loss would show one slot later.
    rig.run_until(Nanos(ms(100 * (count + 1)).0 - 1));
    let path = rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan;
    assert_eq!(path.tally.counters.sent, count + 1);
    path.statistics
}

#[test]
fn a_fresh_pair_has_no_figures() {
    let rig = Rig::new(&[unit(profile(|_| {}), 1)]);
    let status = rig.supervision.pair(PairKey(0)).unwrap();
    assert_eq!(status.paths.lan_to_wan.statistics, Statistics::default());
}

#[test]
fn a_single_sample_deviates_by_half_of_its_average() {
    let statistics = after(vec![Some(us(300))], 10);
    let delay = statistics.delay.unwrap();
    assert_eq!((statistics.all, statistics.fail), (1, 0));
    assert_eq!((delay.min, delay.average, delay.max), (us(300), us(300), us(300)));
    assert_eq!(delay.deviation, us(150));
    assert_eq!((delay.p50, delay.p99), (us(300), us(300)));
}

#[test]
fn known_samples_give_known_figures() {
    // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares of distances sum to 32, 32 / 7 = 4.571..., root 2.13808...
    let fates = [2, 4, 4, 4, 5, 5, 7, 9].map(|d| Some(Nanos(d * 1_000_000))).to_vec();
    let delay = after(fates, 10).delay.unwrap();
    assert_eq!(delay.average, ms(5));
    assert_eq!(delay.deviation, Nanos(2_138_089));
    assert_eq!((delay.p50, delay.p99), (ms(4), ms(9)));
}

#[test]
fn losses_count_as_failed_and_leave_the_times_alone() {
    let statistics = after(vec![Some(us(100)), None, Some(us(300)), None, Some(us(100))], 10);
    assert_eq!((statistics.all, statistics.fail), (5, 2));
    assert_eq!(statistics.delay.unwrap().average, Nanos(166_666));
    let lost = after(vec![None, None, None, None], 10);
    assert_eq!((lost.all, lost.fail, lost.delay), (4, 4, None));
}

#[test]
fn only_the_last_twice_sampling_count_are_looked_at() {
    let mut fates = vec![None; 50];
    fates.extend([Some(us(100)); 6]);
    let statistics = after(fates, 3);
    assert_eq!((statistics.all, statistics.fail), (6, 0));
}

#[test]
fn a_smaller_sampling_count_forgets_the_oldest() {
    let mut rig = Rig::new(&[unit(profile(|p| p.initial_delay_ms = 0), 1)]);
    rig.wire = Box::new(|probe, _| vec![us(100 + probe.sequence)]);
    rig.run_until(ms(1_950));
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().paths.wan_to_lan.statistics.all, 20);
    let smaller = profile(|p| p.sampling_count = 2);
    rig.supervision.configure(&[unit(smaller, 1)], rig.now).unwrap();
    let statistics = rig.supervision.pair(PairKey(0)).unwrap().paths.wan_to_lan.statistics;
    assert_eq!(statistics.all, 4);
    assert_eq!(statistics.delay.unwrap().min, us(100 + 16));
}

#[test]
fn the_last_loss_is_remembered() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    let last_loss = |rig: &Rig| rig.supervision.pair(PairKey(0)).unwrap().paths.wan_to_lan.last_loss;
    assert_eq!(last_loss(&rig), None);
    rig.lose(|probe| probe.direction == Direction::WanToLan);
    rig.run_for(ms(100));
    rig.lose_nothing();
    rig.run_for(ms(5_000));
    assert_eq!(last_loss(&rig), Some(rig.sent[0].0 + ms(100)));
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan.last_loss, None);
}

#[test]
fn the_histogram_counts_every_good_one_since_the_pair_was_added() {
    let mut rig = Rig::all_up(&[unit(profile(|p| p.sampling_count = 1), 1)]);
    let before = rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan.histogram;
    assert_eq!(before.steps[7], before.count(), "200 us is at most 200 us");
    let times = [us(1), Nanos(1_001), us(200), Nanos(200_001), ms(99), us(3)];
    rig.wire = Box::new(move |probe, _| {
        let index = usize::try_from(probe.sequence).unwrap() % 8;
        times.get(index).copied().into_iter().collect()
    });
    // Whole rounds of eight, two of them lost.
    rig.run_for(ms(8_000));
    rig.lose_nothing();
    let after = rig.supervision.pair(PairKey(0)).unwrap().paths.lan_to_wan.histogram;
    assert_eq!(after.count() - before.count(), 60);
    let steps = [(0, 10), (1, 10), (2, 10), (7, 10), (8, 10), (15, 10)];
    for (step, count) in steps {
        assert_eq!(after.steps[step] - before.steps[step], count, "step {step}");
    }
    assert_eq!(after.sum.since(before.sum).0, times.iter().map(|time| time.0 * 10).sum::<u64>());
    let cumulative: Vec<_> = after.cumulative().collect();
    assert_eq!(cumulative.len(), BOUNDS.len());
    assert_eq!(cumulative.last(), Some(&(ms(1_000), after.count())));
    assert!(cumulative.windows(2).all(|two| two[0].1 <= two[1].1 && two[0].0 < two[1].0));
}

#[test]
fn a_pair_shows_its_cost_once_both_directions_have_figures() {
    let mut rig = Rig::new(&[unit(profile(|_| {}), 1)]);
    assert_eq!(rig.supervision.pair(PairKey(0)).unwrap().cost, None);
    rig.run_for(ms(3_000));
    let status = rig.supervision.pair(PairKey(0)).unwrap();
    assert_eq!(status.cost, Some(us(3 * 400)));
}

proptest! {
    /// Against floating point, from the definitions.
    #[test]
    fn figures_equal_a_naive_recomputation(
        fates in prop::collection::vec(prop::option::weighted(0.9, 1u64..99_000_000), 1..60),
        sampling_count in 1u16..20,
    ) {
        let seen = after(fates.iter().map(|fate| fate.map(Nanos)).collect(), sampling_count);
        let window = &fates[fates.len().saturating_sub(usize::from(sampling_count) * 2)..];
        let mut good: Vec<u64> = window.iter().copied().flatten().collect();
        prop_assert_eq!(seen.all as usize, window.len());
        prop_assert_eq!(seen.fail as usize, window.len() - good.len());
        prop_assert_eq!(seen.delay.is_some(), !good.is_empty());
        if let Some(delay) = seen.delay {
            good.sort_unstable();
            let n = good.len() as f64;
            let mean = good.iter().map(|x| *x as f64).sum::<f64>() / n;
            let deviation = if good.len() == 1 {
                mean / 2.0
            } else {
                (good.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
            };
            let close = |ours: Nanos, theirs: f64| (ours.0 as f64 - theirs).abs() <= 1.5;
            prop_assert_eq!((delay.min.0, delay.max.0), (good[0], good[good.len() - 1]));
            prop_assert!(close(delay.average, mean), "{delay:?} against mean {mean}");
            prop_assert!(close(delay.deviation, deviation), "{delay:?} against deviation {deviation}");
            for (percent, ours) in [(50, delay.p50), (99, delay.p99)] {
                let at_most = good.iter().filter(|x| **x <= ours.0).count();
                let below = good.iter().filter(|x| **x < ours.0).count();
                prop_assert!(at_most * 100 >= percent * good.len() && below * 100 < percent * good.len());
            }
        }
    }
}
