//! A pair goes down in a unit with `rebalance on`: its sessions go to the pairs that are up, nobody else's move,
//! and when it returns everything is as it was.

use std::collections::BTreeSet;
use std::time::Duration;

use super::consistency::{self, Cells};
use super::fault::{Fault, OTHERS, pass, set, target};
use super::load::{Load, first_few, symmetric};
use crate::check::Findings;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::scenario::Scenario;

pub(super) fn run(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    if lab.topology.units.iter().any(|unit| unit.rebalance != "on") || !lab.bridges().is_empty() {
        let needs =
            "rebalance needs units with `rebalance: on` and emulated appliances: see topology `rebalance`";
        return Err(Error::Unsupported(needs.into()));
    }
    let target = target(lab, scenario, true)?;
    lab.wait_all_up()?;
    let before = consistency::snapshot(lab)?;
    lab.forget_sessions()?;
    let phase = Duration::from_secs_f64(scenario.seconds);
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    pass(lab, phase)?;
    let home = consistency::cells(lab)?;
    findings.check(
        "before: every session at one place",
        consistency::split(&home).is_empty() && !home.is_empty(),
        format!("{} sessions", home.len()),
    );

    findings.say(&format!("{} fails", target.pairs.join(", ")));
    set(lab, &target, Fault::Hang, true)?;
    lab.wait_pairs(&target.pairs, "down", lab.detection_bound() + Duration::from_secs(10))?;
    pass(lab, Duration::from_millis(500))?;
    lab.forget_sessions()?;
    pass(lab, phase)?;
    let moved = consistency::cells(lab)?;
    check_moves(findings, "while it is down", &home, &moved, &target.pairs);

    findings.say(&format!("{} is whole again", target.pairs.join(", ")));
    set(lab, &target, Fault::Hang, false)?;
    let patience = lab.recovery_time() + Duration::from_secs(10);
    lab.wait_pairs(&target.pairs, "up", patience)?;
    pass(lab, Duration::from_millis(500))?;
    lab.forget_sessions()?;
    pass(lab, phase)?;
    let back = consistency::cells(lab)?;
    let strayed: Vec<String> = back
        .iter()
        .filter(|(key, at)| home.get(key).is_some_and(|was| was != *at))
        .map(|(key, _)| key.to_string())
        .collect();
    findings.check(
        "after: every session is at home again",
        strayed.is_empty() && !back.is_empty(),
        if strayed.is_empty() { format!("{} sessions", back.len()) } else { first_few(&strayed) },
    );

    let outcome = load.finish(lab)?;
    let at_target = |at: &BTreeSet<(String, u8)>| at.iter().any(|(pair, _)| target.pairs.contains(pair));
    outcome.check_udp_of(OTHERS, findings, |key| !home.get(key).is_some_and(at_target));
    outcome.check_tcp(lab, findings)?;
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)
}

/// Only sessions of the pairs that are down have moved, each of them to one pair that is up, on the same core.
fn check_moves(findings: &mut Findings, when: &str, home: &Cells, now: &Cells, down: &[String]) {
    let mut strayed = Vec::new();
    let (mut moved, mut stayed) = (0, 0);
    for (key, at) in now {
        let Some(was) = home.get(key) else { continue };
        let was_down = was.iter().any(|(pair, _)| down.contains(pair));
        let cores = |set: &BTreeSet<(String, u8)>| set.iter().map(|(_, core)| *core).collect::<BTreeSet<_>>();
        if was_down {
            let away =
                at.len() == 1 && at.iter().all(|(pair, _)| !down.contains(pair)) && cores(at) == cores(was);
            moved += u64::from(away);
            if !away {
                strayed.push(format!("{key}: {was:?} to {at:?}"));
            }
        } else if at == was {
            stayed += 1;
        } else {
            strayed.push(format!("{key}: {was:?} to {at:?}"));
        }
    }
    findings.check(
        &format!("{when}: only the down pair's sessions moved, each to one pair and its core"),
        strayed.is_empty() && moved > 0 && stayed > 0,
        if strayed.is_empty() { format!("{moved} moved, {stayed} stayed") } else { first_few(&strayed) },
    );
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::frame::SessionKey;
    use crate::screen::Screen;

    fn cells(entries: &[(u16, &str, u8)]) -> Cells {
        let key = |port| SessionKey::new(([10, 1, 0, 1].into(), port), ([10, 129, 0, 1].into(), 7000), 6);
        entries
            .iter()
            .map(|(port, pair, core)| (key(*port), BTreeSet::from([(pair.to_string(), *core)])))
            .collect()
    }

    fn verdict(now: &[(u16, &str, u8)]) -> bool {
        let home = cells(&[(1, "a", 0), (2, "b", 1)]);
        let mut findings = Findings::new("s", "t", Arc::new(Screen::silent()));
        check_moves(&mut findings, "now", &home, &cells(now), &["b".to_string()]);
        findings.passed()
    }

    #[test]
    fn only_the_down_pairs_sessions_may_move_and_keep_their_core() {
        assert!(verdict(&[(1, "a", 0), (2, "a", 1)]));
        assert!(!verdict(&[(1, "a", 0), (2, "a", 0)]), "core changed");
        assert!(!verdict(&[(1, "c", 0), (2, "a", 1)]), "a healthy pair's session moved");
        assert!(!verdict(&[(1, "a", 0), (2, "b", 1)]), "still at the down pair");
    }
}
