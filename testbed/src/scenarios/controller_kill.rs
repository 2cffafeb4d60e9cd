//! The controller gets SIGKILL under load and is started again: the data plane must not notice.

use std::time::Duration;

use super::consistency;
use super::fault::pass;
use super::load::{Load, symmetric};
use crate::check::Findings;
use crate::error::Result;
use crate::lab::Lab;
use crate::scenario::Scenario;

pub(super) fn run(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    let before = consistency::snapshot(lab)?;
    lab.forget_sessions()?;
    let phase = Duration::from_secs_f64(scenario.seconds / 2.0);
    let hash = lab.sluice()?.balancer()?.config_hash;
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    pass(lab, phase)?;
    let mut dead_time_frames = u64::MAX;
    for _ in 0..scenario.cycles {
        findings.say("kill -9 of the controller");
        let seen = frames_at_appliances(lab)?;
        lab.kill_controller()?;
        pass(lab, phase)?;
        dead_time_frames = dead_time_frames.min(frames_at_appliances(lab)? - seen);
        findings.say("controller started again");
        lab.start_controller()?;
        lab.wait_all_up()?;
        pass(lab, phase)?;
    }
    let outcome = load.finish(lab)?;
    outcome.check_udp(findings);
    outcome.check_tcp(lab, findings)?;
    if !lab.emulated().is_empty() {
        findings.check(
            "without a controller the data plane goes on",
            dead_time_frames > 0,
            format!("at least {dead_time_frames} frames through the appliances while it was dead"),
        );
    }
    let again = lab.sluice()?.balancer()?.config_hash;
    findings.check("the bucket tables have the same digest", hash == again && !hash.is_empty(), again);
    // Session tables were not emptied: a session that moved would be at two places.
    consistency::check_one_place(lab, findings, false)?;
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)
}

fn frames_at_appliances(lab: &mut Lab) -> Result<u64> {
    let mut frames = 0;
    for name in lab.emulated() {
        frames += lab
            .appliance_report(&name)?
            .pairs
            .iter()
            .map(|pair| pair.lan_frames + pair.wan_frames)
            .sum::<u64>();
    }
    Ok(frames)
}
