//! The WAN cables of two pairs are swapped: the event log names the fault, the pairs stay down, traffic goes on.

use std::time::Duration;

use super::consistency;
use super::fault::pass;
use super::load::{Load, symmetric};
use crate::check::Findings;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::scenario::Scenario;
use crate::sluice::Event;
use crate::topology::{ApplianceKind, Topology};

/// The pairs whose WAN cables are swapped: the first two at one emulated appliance, or of any two.
pub(super) fn swapped(topology: &Topology) -> Result<(String, String)> {
    let names: Vec<String> = topology.pairs().map(|(_, pair)| pair.name.clone()).collect();
    if names.len() < 3 {
        return Err(Error::Unsupported("miscabled needs a topology with three pairs or more".into()));
    }
    let emulated =
        topology.appliances.iter().find(|a| a.kind == ApplianceKind::Emulated && a.pairs.len() >= 2);
    Ok(match emulated {
        Some(appliance) => (appliance.pairs[0].clone(), appliance.pairs[1].clone()),
        None => (names[0].clone(), names[1].clone()),
    })
}

pub(super) fn run(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    let (one, other) = swapped(&lab.topology)?;
    let swapped = [one.clone(), other.clone()];
    let whole: Vec<String> = lab.pair_names().into_iter().filter(|pair| !swapped.contains(pair)).collect();
    findings.say(&format!("WAN cables of {one} and {other} are swapped"));
    let patience = lab.recovery_time() + Duration::from_secs(15);
    lab.wait_pairs(&whole, "up", patience)?;
    let patience = lab.detection_bound() + Duration::from_secs(10);
    lab.wait_pairs(&swapped, "down", patience)?;
    let before = consistency::snapshot(lab)?;
    lab.forget_sessions()?;
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    pass(lab, Duration::from_secs_f64(scenario.seconds) + lab.recovery_time())?;

    let state = lab.sluice()?.balancer()?;
    findings.check(
        "the miscabled pairs stay down, the others are up",
        swapped.iter().all(|pair| state.state(pair) == "down")
            && whole.iter().all(|pair| state.state(pair) == "up"),
        state.pairs().map(|pair| format!("{} {}", pair.name, pair.state)).collect::<Vec<_>>().join(", "),
    );
    let events: Vec<Event> = lab.sluice()?.show("events")?;
    let named = events.iter().map(text).find(|text| text.contains(&one) && text.contains(&other));
    findings.check(
        "the event log names both pairs of the cabling fault",
        named.is_some(),
        named.unwrap_or_else(|| format!("none of {} events has both {one} and {other}", events.len())),
    );
    let outcome = load.finish(lab)?;
    outcome.check_udp(findings);
    outcome.check_tcp(lab, findings)?;
    consistency::check_one_place(lab, findings, true)?;
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)
}

fn text(event: &Event) -> String {
    let detail = match &event.detail {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    [&event.kind, &event.subject, event.reason.as_deref().unwrap_or_default(), &detail]
        .join(" ")
        .trim()
        .to_string()
}
