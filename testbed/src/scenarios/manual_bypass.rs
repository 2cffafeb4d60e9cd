//! The engineer bypasses the unit and puts it back, under load.

use std::time::Duration;

use super::consistency;
use super::fault::pass;
use super::load::{Load, symmetric};
use crate::check::Findings;
use crate::error::Result;
use crate::lab::Lab;
use crate::scenario::Scenario;

/// Frames that the balancer had sent before the bypass are through the appliance after this.
const SETTLE: Duration = Duration::from_millis(200);

pub(super) fn run(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    lab.bridges_liberal(true)?;
    let before = consistency::snapshot(lab)?;
    lab.forget_sessions()?;
    let sluice = lab.sluice()?;
    let unit = lab.topology.units[0].name.clone();
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    let phase = Duration::from_secs_f64(scenario.seconds / 2.0);
    pass(lab, phase)?;
    let (mut leaked, mut idle) = (0, 0);
    for _ in 0..scenario.cycles {
        for (mode, state) in [("bypass", "bypass"), ("auto", "up")] {
            findings.say(&format!("unit {unit} to {mode}"));
            sluice.run(&format!("call ecofilter-balancer set-bypass-ecofilter-unit {unit} {mode}"))?;
            lab.wait_until(&format!("unit {unit} to be {state}"), Duration::from_secs(5), |_| {
                let now = sluice.balancer()?.units.iter().find(|u| u.name == unit).map(|u| u.state.clone());
                Ok(if now.as_deref() == Some(state) { Ok(()) } else { Err(format!("{now:?}")) })
            })?;
            pass(lab, SETTLE)?;
            let sent = frames_to_appliances(lab)?;
            pass(lab, phase)?;
            let more = frames_to_appliances(lab)? - sent;
            match mode {
                "bypass" => leaked += more,
                _ => idle += u64::from(more == 0),
            }
        }
    }
    let outcome = load.finish(lab)?;
    findings.check(
        "while bypassed no frame visits an appliance, after it they do",
        leaked == 0 && idle == 0,
        format!("{leaked} frames in {} bypasses, {idle} returns without traffic", scenario.cycles),
    );
    outcome.check_udp(findings);
    outcome.check_tcp(lab, findings)?;
    consistency::check_one_place(lab, findings, false)?;
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)
}

/// Frames that the balancer says it sent to appliances.
pub(super) fn frames_to_appliances(lab: &Lab) -> Result<u64> {
    Ok(lab.sluice()?.balancer()?.pairs().map(|pair| pair.tx_packets).sum())
}
