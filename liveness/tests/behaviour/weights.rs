//! `cost` and `weight auto`.

use std::collections::{BTreeMap, BTreeSet};

use liveness::weights::{Allowance, Move, Weighed, moves};
use liveness::{Delay, Nanos, PairKey, PerDirection, Statistics, cost};
use proptest::prelude::*;

use crate::rig::{Dice, ms, us};

fn figures(all: u32, fail: u32, average: Nanos, deviation: Nanos) -> Statistics {
    let delay = Delay { min: average, average, max: average, deviation, p50: average, p99: average };
    Statistics { all, fail, delay: Some(delay) }
}

fn both(statistics: Statistics) -> PerDirection<Statistics> {
    PerDirection { lan_to_wan: statistics, wan_to_lan: statistics }
}

#[test]
fn cost_is_what_the_formula_says() {
    let quiet = both(figures(20, 0, us(100), us(10)));
    assert_eq!(cost(&quiet), Some(us(3 * 220)));
    // 19 of 20 pass each way: (400 - 361) / 361 lost per frame that passes, 46 frames, 200 ms each.
    let lossy = both(figures(20, 1, us(100), us(10)));
    assert_eq!(cost(&lossy), Some(Nanos(660_000 + 46 * 39 * 200_000_000 / 361)));
    assert_eq!(cost(&both(Statistics::default())), None);
}

#[test]
fn a_fresh_pair_is_not_preferred_to_a_steady_one() {
    let steady = both(figures(20, 0, us(100), us(5)));
    let fresh = both(figures(1, 0, us(100), us(50)));
    assert!(cost(&fresh) > cost(&steady));
}

proptest! {
    #[test]
    fn cost_grows_with_loss_delay_and_spread(
        all in 2u32..2_000, fail in 0u32..2_000, average in 1u64..60_000_000_000, deviation in 0u64..60_000_000_000,
        more in 1u64..1_000_000_000, back_average in 1u64..1_000_000_000,
    ) {
        let fail = fail % (all - 1);
        let back = figures(20, 1, Nanos(back_average), us(7));
        let price = |there: Statistics| cost(&PerDirection { lan_to_wan: there, wan_to_lan: back }).unwrap();
        let base = price(figures(all, fail, Nanos(average), Nanos(deviation)));
        prop_assert!(price(figures(all, fail + 1, Nanos(average), Nanos(deviation))) > base);
        prop_assert!(price(figures(all, fail, Nanos(average + more), Nanos(deviation))) > base);
        prop_assert!(price(figures(all, fail, Nanos(average), Nanos(deviation + more))) > base);
        let swapped = PerDirection { lan_to_wan: back, wan_to_lan: figures(all, fail, Nanos(average), Nanos(deviation)) };
        prop_assert_eq!(cost(&swapped), Some(base));
    }
}

fn weighed(costs: &[u64]) -> Vec<Weighed> {
    costs.iter().zip(0..).map(|(cost, key)| Weighed { pair: PairKey(key), cost: Nanos(*cost) }).collect()
}

fn evenly(buckets: usize, pairs: usize) -> Vec<PairKey> {
    (0..buckets).map(|bucket| PairKey((bucket % pairs) as u16)).collect()
}

fn apply(assignment: &mut [PairKey], moves: &[Move]) {
    for step in moves {
        assert_eq!(assignment[step.bucket], step.from);
        assert_ne!(step.from, step.to);
        assignment[step.bucket] = step.to;
    }
}

fn counts(assignment: &[PairKey]) -> BTreeMap<PairKey, usize> {
    let mut counts = BTreeMap::new();
    for pair in assignment {
        *counts.entry(*pair).or_default() += 1;
    }
    counts
}

#[test]
fn a_slow_pair_gives_and_the_quick_ones_take() {
    let pairs = weighed(&[1_000, 1_000, 1_000, 10_000]);
    let mut table = evenly(1_024, 4);
    let all = moves(&pairs, &table, usize::MAX);
    apply(&mut table, &all);
    assert!(all.iter().all(|step| step.from == PairKey(3)));
    let counts = counts(&table);
    // Its share is 1 in 7, half of the others'; the tolerance leaves it at most a quarter of an even share more.
    let left = counts[&PairKey(3)];
    assert!((146..=146 + 128).contains(&left), "{left}");
    assert!(moves(&pairs, &table, usize::MAX).is_empty(), "then it is at rest");
}

#[test]
fn equal_costs_and_unknown_pairs_move_nothing() {
    assert!(moves(&weighed(&[500; 8]), &evenly(256, 8), usize::MAX).is_empty());
    assert!(moves(&[], &evenly(256, 8), usize::MAX).is_empty());
    let table = vec![PairKey(77); 64];
    assert!(moves(&weighed(&[1, 1_000]), &table, usize::MAX).is_empty());
}

#[test]
fn the_allowance_is_one_in_a_hundred_per_minute() {
    for (buckets, per_hour) in [(64, 38), (100, 60), (1_024, 614), (4_096, 2_457)] {
        let mut allowance = Allowance::new(buckets, Nanos::ZERO);
        let (mut now, mut moved) = (Nanos::ZERO, Vec::new());
        while now < ms(3_600_000) {
            if allowance.available(now) > 0 {
                allowance.spend(now);
                moved.push(now);
            }
            now = now + us(500);
        }
        assert!(moved.len().abs_diff(per_hour) <= 1 + per_hour / 100, "{buckets}: {}", moved.len());
        let minute = |from: Nanos| moved.iter().filter(|at| **at >= from && **at < from + ms(60_000)).count();
        assert!(moved.iter().all(|from| minute(*from) <= buckets.div_ceil(100)), "{buckets}");
    }
    let mut allowance = Allowance::new(100, Nanos::ZERO);
    assert_eq!(allowance.available(ms(600_000)), 1, "ten minutes unused are not made up for");
    allowance.spend(ms(600_000));
    assert_eq!((allowance.available(ms(659_999)), allowance.next()), (0, ms(660_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any start, any costs: it obeys the limit, comes to rest, and every step is from dear to cheap in shares.
    #[test]
    fn it_obeys_the_limit_and_comes_to_rest(
        costs in prop::collection::vec(1u64..1_000_000, 1..24), buckets in 1usize..600, allowed in 0usize..9, seed: u64,
    ) {
        let mut dice = Dice(seed);
        let mut table: Vec<PairKey> =
            (0..buckets).map(|_| PairKey(dice.below(costs.len() as u64 + 1) as u16)).collect();
        let strangers = |table: &[PairKey]| table.iter().filter(|pair| usize::from(pair.0) == costs.len()).count();
        let before = strangers(&table);
        let pairs = weighed(&costs);
        let mut rounds = 0;
        loop {
            let some = moves(&pairs, &table, allowed);
            prop_assert!(some.len() <= allowed);
            apply(&mut table, &some);
            rounds += 1;
            prop_assert!(rounds <= 1 + buckets, "no rest");
            if some.is_empty() {
                break;
            }
        }
        prop_assert_eq!(strangers(&table), before);
    }

    /// Costs that are noisy by a tenth: after it has come to rest by the true ones, no bucket moves twice.
    #[test]
    fn noise_makes_no_ping_pong(
        costs in prop::collection::vec(200u64..5_000, 2..17), per_pair in 2usize..40, seed: u64,
    ) {
        let mut table = evenly(per_pair * costs.len(), costs.len());
        let rest = moves(&weighed(&costs), &table, usize::MAX);
        apply(&mut table, &rest);
        let mut dice = Dice(seed);
        let mut moved = BTreeSet::new();
        for _ in 0..200 {
            let noisy: Vec<u64> = costs.iter().map(|cost| cost * (950 + dice.below(101)) / 1_000).collect();
            for step in moves(&weighed(&noisy), &table, 1) {
                prop_assert!(moved.insert(step.bucket), "bucket {} moved again", step.bucket);
                table[step.bucket] = step.to;
            }
        }
        // What noise moves at most is what a steady change of the costs by as much would.
        prop_assert!(moved.len() <= table.len() / 5 + 1, "{} of {}", moved.len(), table.len());
    }
}
