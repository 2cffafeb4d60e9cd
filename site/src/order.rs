//! Table priorities of rules: numbers in the order of the flows, kept as stable as the order allows, so
//! that one more flow means one more entry and not a new number for every other.

use std::collections::BTreeMap;

/// Gives each of `ordered` (lowest first) a number from 1, rising; numbers in `previous` are kept wherever
/// they still rise, new ones go half way into the gaps. Where a gap is full, all are numbered anew.
pub(crate) fn number(ordered: &[&str], previous: &BTreeMap<String, i32>) -> BTreeMap<String, i32> {
    let kept = longest_rising(ordered, previous);
    let mut numbers: Vec<Option<i32>> = vec![None; ordered.len()];
    for (index, number) in kept {
        if let Some(slot) = numbers.get_mut(index) {
            *slot = Some(number);
        }
    }
    let filled = fill(&numbers).unwrap_or_else(|| spread(0, i64::from(i32::MAX), ordered.len()));
    ordered.iter().zip(filled).map(|(name, number)| ((*name).to_owned(), number)).collect()
}

/// Fills runs of `None` evenly between their neighbours; `None` where a run does not fit.
fn fill(numbers: &[Option<i32>]) -> Option<Vec<i32>> {
    let mut filled = Vec::with_capacity(numbers.len());
    let mut below = 0i64;
    let mut run = 0usize;
    for number in numbers.iter().copied().chain([Some(i32::MAX)]) {
        let Some(number) = number else {
            run += 1;
            continue;
        };
        let above = i64::from(number);
        if run > 0 {
            if above - below - 1 < run as i64 {
                return None;
            }
            filled.extend(spread(below, above, run));
            run = 0;
        }
        filled.push(number);
        below = above;
    }
    filled.pop(); // the upper bound
    Some(filled)
}

/// `count` numbers evenly between the bounds, neither included; there is room for them.
fn spread(below: i64, above: i64, count: usize) -> Vec<i32> {
    let gap = above - below;
    let parts = count as i64 + 1;
    (1..parts).map(|part| (below + gap * part / parts) as i32).collect()
}

/// The longest subsequence of `ordered` whose previous numbers rise, as index and number.
fn longest_rising(ordered: &[&str], previous: &BTreeMap<String, i32>) -> Vec<(usize, i32)> {
    let known: Vec<(usize, i32)> = ordered
        .iter()
        .enumerate()
        .filter_map(|(index, name)| previous.get(*name).map(|number| (index, *number)))
        .filter(|(_, number)| (1..i32::MAX).contains(number))
        .collect();
    // Patience: tails[k] ends the rising run of length k + 1 with the smallest last number.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; known.len()];
    let number_at = |at: usize| known.get(at).map_or(i32::MAX, |(_, number)| *number);
    for (at, (_, number)) in known.iter().enumerate() {
        let length = tails.partition_point(|tail| number_at(*tail) < *number);
        if let Some(slot) = before.get_mut(at) {
            *slot = length.checked_sub(1).and_then(|shorter| tails.get(shorter).copied());
        }
        match tails.get_mut(length) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut rising = Vec::new();
    let mut at = tails.last().copied();
    while let Some(index) = at {
        rising.extend(known.get(index).copied());
        at = before.get(index).copied().flatten();
    }
    rising.reverse();
    rising
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rises(ordered: &[&str], numbers: &BTreeMap<String, i32>) -> bool {
        ordered.windows(2).all(|pair| numbers[pair[0]] < numbers[pair[1]])
            && ordered.first().is_none_or(|first| numbers[*first] > 0)
    }

    #[test]
    fn an_inserted_flow_leaves_the_others_their_numbers() {
        let first = number(&["a", "c"], &BTreeMap::new());
        let second = number(&["a", "b", "c"], &first);
        assert_eq!((first["a"], first["c"]), (second["a"], second["c"]));
        assert!(rises(&["a", "b", "c"], &second));
    }

    #[test]
    fn a_full_gap_numbers_all_anew() {
        let tight = BTreeMap::from([("a".to_owned(), 5), ("c".to_owned(), 6)]);
        assert!(rises(&["a", "b", "c"], &number(&["a", "b", "c"], &tight)));
    }

    #[test]
    fn a_hundred_thousand_of_one_priority_fit() {
        let names: Vec<String> = (0..100_000).map(|n| format!("f{n:06}")).collect();
        let ordered: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(rises(&ordered, &number(&ordered, &BTreeMap::new())));
    }

    proptest! {
        #[test]
        fn numbers_always_rise_and_most_stay(
            order in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(),
            keep in 0usize..40,
            numbers in prop::collection::vec(any::<i32>(), 40),
        ) {
            let names: Vec<String> = order.iter().map(|n| format!("n{n}")).collect();
            let ordered: Vec<&str> = names.iter().map(String::as_str).collect();
            let previous: BTreeMap<String, i32> =
                ordered.iter().zip(numbers).take(keep).map(|(n, p)| ((*n).to_owned(), p)).collect();
            let first = number(&ordered, &previous);
            prop_assert!(rises(&ordered, &first));
            prop_assert_eq!(number(&ordered, &first), first);
        }
    }
}
