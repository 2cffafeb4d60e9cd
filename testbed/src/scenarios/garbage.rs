//! Broken frames among the sessions: nothing crashes, no session notices, and what comes out is byte for byte what
//! went in, by its own link.

use std::path::Path;

use super::consistency;
use super::load::{Load, first_few, symmetric};
use crate::appliance::Side;
use crate::check::Findings;
use crate::edge::Injection;
use crate::error::Result;
use crate::garbage;
use crate::lab::Lab;
use crate::plan::sides;
use crate::scenario::Scenario;
use crate::sluice::Counters;

/// Garbage per second and side.
const RATE: u64 = 5000;

pub(super) fn run(
    lab: &mut Lab,
    scenario: &Scenario,
    findings: &mut Findings,
    directory: &Path,
) -> Result<()> {
    let captures = garbage::captures(directory).unwrap_or_else(|| {
        findings
            .note(format!("no captures at {}: mutated frames only (--captures DIR)", directory.display()));
        Vec::new()
    });
    let captures: Vec<_> =
        captures.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
    lab.wait_all_up()?;
    let before = consistency::snapshot(lab)?;
    let drops_before: Counters = lab.sluice()?.show("counters drops")?;
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    findings.say(&format!("{} captures and {} mutated frames", captures.len(), scenario.mutated));
    let last = lab.topology.links.len() - 1;
    for (side, uplink) in sides().zip([0, last]) {
        let mutated =
            if side == Side::Lan { scenario.mutated - scenario.mutated / 2 } else { scenario.mutated / 2 };
        let seed = scenario.seed + side as u64;
        lab.inject(side, Injection { uplink, captures: captures.clone(), mutated, seed, rate: RATE })?;
    }
    let mut sent = Vec::new();
    for side in sides() {
        sent.push(lab.injected(side)?);
    }
    let outcome = load.finish(lab)?;
    lab.still_running()?;
    outcome.check_udp(findings);
    outcome.check_tcp(lab, findings)?;

    let after = consistency::snapshot(lab)?;
    drop(after);
    let drops: Counters = lab.sluice()?.show("counters drops")?;
    let dropped = drops.of("drop") - drops_before.of("drop");
    let mut came = Vec::new();
    for side in sides() {
        let report = lab.edge_report(side.other())?;
        let marked: u64 = report.uplinks.iter().map(|uplink| uplink.marked).sum();
        let digest = report.uplinks.iter().fold(0u64, |sum, uplink| sum.wrapping_add(uplink.marked_digest));
        came.push((marked, digest));
    }
    let total: u64 = sent.iter().map(|sent| sent.captured + sent.mutated).sum();
    let arrived: u64 = came.iter().map(|(count, _)| count).sum();
    findings.check(
        "every broken frame came out or is counted as dropped",
        total == arrived + dropped && total > 0,
        format!(
            "{total} sent ({} from captures), {arrived} came out, {dropped} dropped ({})",
            sent.iter().map(|sent| sent.captured).sum::<u64>(),
            drops.reasons("drop")
        ),
    );
    let changed: Vec<String> = sides()
        .zip(sent.iter().zip(&came))
        .filter(|(_, (sent, (count, digest)))| {
            sent.captured + sent.mutated == *count && sent.digest != *digest
        })
        .map(|(side, _)| format!("from {side:?}"))
        .collect();
    findings.check(
        "what came out is byte for byte what went in",
        changed.is_empty() && arrived > 0,
        if changed.is_empty() { format!("digests over {arrived} frames agree") } else { first_few(&changed) },
    );
    consistency::check_own_sessions(lab, findings)?;
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)
}
