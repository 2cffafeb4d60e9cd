//! Many pairs and short intervals: nobody is found down who is not, and who hangs is found in time, whenever he does.

use std::time::{Duration, Instant};

use super::fault;
use super::load::{Load, symmetric};
use crate::check::Findings;
use crate::clock::ms_between;
use crate::error::Result;
use crate::lab::Lab;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::sluice::{Keepalives, PairLiveness};

/// `soak`: all pairs are watched under load for as long as the scenario says; nobody may be found down.
pub(super) fn soak(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    let newest = lab.last_event()?;
    let before = keepalives(lab)?;
    let began = Instant::now();
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    fault::pass(lab, Duration::from_secs_f64(scenario.seconds))?;
    let after = keepalives(lab)?;
    let seconds = began.elapsed().as_secs_f64();
    let events = lab.sluice()?.events_after(newest)?;
    let outcome = load.finish(lab)?;
    let downs: Vec<String> =
        events.iter().filter(|event| event.is_down()).map(|event| event.subject.clone()).collect();
    let pairs = lab.pair_names().len();
    findings.check(
        "nobody was found down",
        downs.is_empty(),
        format!("{} downs of {pairs} pairs in {seconds:.0} s {}", downs.len(), downs.join(", ")),
    );
    let sent = after.sent - before.sent;
    findings.check(
        "keep-alives went out at their rate",
        sent as f64 >= 0.95 * seconds * lab.keepalive_rate(),
        format!(
            "{:.0} a second of {:.0}; {} lost, {} late, {} voided",
            sent as f64 / seconds,
            lab.keepalive_rate(),
            after.lost - before.lost,
            after.late - before.late,
            after.voided - before.voided
        ),
    );
    let datagrams: u64 = outcome.udp.iter().map(|report| report.sent).sum();
    let lost: usize = outcome.udp.iter().map(|report| report.lost.len()).sum();
    let bytes: u64 = outcome.tcp.iter().map(|report| report.up + report.down).sum();
    findings.note(format!(
        "data beside them: {:.0} datagrams a second ({lost} of {datagrams} lost), {:.1} MB/s by TCP",
        datagrams as f64 / seconds,
        bytes as f64 / 1e6 / seconds
    ));
    Ok(())
}

/// `cuts`: one pair after the other hangs at a random instant.
pub(super) fn cuts(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    let mut rng = Rng::new(scenario.seed);
    let pairs: Vec<(String, String)> = lab
        .topology
        .appliances
        .iter()
        .flat_map(|appliance| appliance.pairs.iter().map(|pair| (appliance.name.clone(), pair.clone())))
        .collect();
    let interval_us = lab.topology.liveness_value("interval") * 1000;
    let bound = lab.detection_bound().as_secs_f64() * 1e3;
    let began = lab.last_event()?;
    let mut times = Vec::new();
    let mut writes = Vec::new();
    for _ in 0..scenario.cycles {
        let (appliance, pair) = pairs[rng.below(pairs.len() as u64) as usize].clone();
        std::thread::sleep(Duration::from_micros(rng.below(10 * interval_us)));
        let newest = lab.last_event()?;
        let target = fault::Target { appliance, pairs: vec![pair.clone()] };
        let at = fault::set(lab, &target, fault::Fault::Hang, true)?;
        lab.wait_pairs(&target.pairs, "down", lab.detection_bound() + Duration::from_secs(10))?;
        let events = lab.sluice()?.events_after(newest)?;
        if let Some(event) = events.iter().find(|event| event.is_pair(&pair, "down")) {
            times.push(ms_between(at, event.at_ns()));
            writes.extend(event.data_plane_ns.map(|ns| ns as f64 / 1e6));
        }
        fault::set(lab, &target, fault::Fault::Hang, false)?;
        lab.wait_pairs(&target.pairs, "up", lab.recovery_time() + Duration::from_secs(10))?;
    }
    times.sort_by(f64::total_cmp);
    writes.sort_by(f64::total_cmp);
    let worst = times.last().copied().unwrap_or(f64::MAX);
    findings.check(
        "each hang was found within interval x probes-down-count + max-delay",
        times.len() == scenario.cycles as usize && worst <= bound + lab.slack_ms(),
        format!("{} of {}; {}; bound {bound:.0} ms", times.len(), scenario.cycles, spread(&times)),
    );
    findings.note(format!("from the event until the data plane had it: {}", spread(&writes)));
    let downs = lab.sluice()?.events_after(began)?.iter().filter(|event| event.is_down()).count();
    findings.check(
        "nobody else was found down",
        downs == times.len(),
        format!("{downs} downs for {} hangs", times.len()),
    );
    Ok(())
}

/// Minimum, median, 99th percentile and maximum of sorted figures in ms.
fn spread(sorted: &[f64]) -> String {
    let at = |share: f64| sorted.get(((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1));
    match (sorted.first(), at(0.5), at(0.99), sorted.last()) {
        (Some(min), Some(median), Some(p99), Some(max)) => {
            format!("min {min:.1}, median {median:.1}, p99 {p99:.1}, max {max:.1} ms")
        }
        _ => "nothing measured".to_owned(),
    }
}

fn keepalives(lab: &Lab) -> Result<Keepalives> {
    let status: Vec<PairLiveness> = lab.sluice()?.show("liveness profile-status")?;
    Ok(Keepalives::sum(&status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_by_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(spread(&hundred), "min 1.0, median 50.0, p99 99.0, max 100.0 ms");
        assert_eq!(spread(&[7.0]), "min 7.0, median 7.0, p99 7.0, max 7.0 ms");
        assert_eq!(spread(&[]), "nothing measured");
    }
}
