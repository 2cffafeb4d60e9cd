//! An independent model of a pair, as simple as can be, agrees slot by slot.

use liveness::{Admin, Direction, PairState};
use proptest::prelude::*;

use crate::rig::{Rig, ms, profile, unit, us};

/// Good or lost, per slot: from LAN to WAN, from WAN to LAN.
type Slots = Vec<(bool, bool)>;

/// (slot, carries) at each change. A loss shows before the next slot's good ones do.
fn model(slots: &Slots, down: u32, up: u32) -> Vec<(usize, bool)> {
    let (mut good, mut lost) = ([0u32; 2], [0u32; 2]);
    let mut state: Option<bool> = None;
    let mut changes = Vec::new();
    for (slot, &(there, back)) in slots.iter().enumerate() {
        // First those that come back, then those that do not.
        for wanted in [true, false] {
            for (i, outcome) in [there, back].into_iter().enumerate() {
                if outcome == wanted {
                    if outcome {
                        (good[i], lost[i]) = (good[i] + 1, 0);
                    } else {
                        (good[i], lost[i]) = (0, lost[i] + 1);
                    }
                }
            }
            let verdict = if good.iter().all(|g| *g >= up) {
                Some(true)
            } else if lost.iter().any(|l| *l >= down) {
                Some(false)
            } else {
                None
            };
            if verdict.is_some() && verdict != state {
                state = verdict;
                changes.push((slot, state == Some(true)));
            }
        }
    }
    changes
}

fn slots() -> impl Strategy<Value = Slots> {
    // Runs of bad and good times, so that counts are reached.
    let run = (0u8..4, 1usize..8).prop_flat_map(|(kind, length)| {
        let chance = [0.02, 0.5, 0.98, 0.8][usize::from(kind)];
        prop::collection::vec((prop::bool::weighted(chance), prop::bool::weighted(chance)), length)
    });
    prop::collection::vec(run, 1..30).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_simple_model_agrees(slots in slots(), down in 1u32..6, up in 1u32..6, drain: bool) {
        let expected = model(&slots, down, up);
        let profile = profile(|p| {
            p.probes_down_count = down;
            p.probes_up_count = up;
            p.initial_delay_ms = 100;
        });
        let mut config = unit(profile, 1);
        if drain {
            config.pairs[0].admin = Admin::Drain;
        }
        let count = slots.len();
        let mut rig = Rig::new(&[config]);
        rig.wire = Box::new(move |probe, _| {
            let (there, back) = slots.get(usize::try_from(probe.sequence).unwrap()).copied().unwrap_or_default();
            let good = if probe.direction == Direction::LanToWan { there } else { back };
            if good { vec![us(200)] } else { vec![] }
        });
        // The last slot's losses are known one interval after it, when the next slot goes out.
        rig.run_until(ms(100 * (count as u64 + 1)));
        let carries = if drain { PairState::Draining } else { PairState::Up };
        let seen: Vec<(usize, bool)> = rig.pair_transitions().iter().map(|t| {
            let since_first = t.at.since(ms(100)).0;
            // Good ones show 200 us after their slot, losses 100 ms after it.
            let slot = if t.to == carries { since_first / ms(100).0 } else { since_first / ms(100).0 - 1 };
            (usize::try_from(slot).unwrap(), t.to == carries)
        }).collect();
        prop_assert_eq!(seen, expected);
    }
}
