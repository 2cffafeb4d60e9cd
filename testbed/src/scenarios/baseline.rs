//! Every kind of traffic over every path, and nothing breaks. `asymmetric` is the same over paths whose requests
//! and answers take different links.

use super::consistency;
use super::load::{Outcome, crossing, first_few, lookup, symmetric};
use super::programs;
use crate::appliance::{Change, Side};
use crate::check::Findings;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::plan::{Path, sides};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::sluice::Lookup;
use crate::traffic::{Ends, tcp, udp};

/// Which paths are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Routes {
    OneLink,
    TwoLinks,
}

/// Datagrams of each UDP session.
const DATAGRAMS: u64 = 150;
/// Sessions that are looked up with the CLI.
const LOOKED_UP: usize = 24;

pub(super) fn run(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings, routes: Routes) -> Result<()> {
    let paths = match routes {
        Routes::OneLink => symmetric(lab),
        Routes::TwoLinks => crossing(lab),
    };
    if paths.is_empty() {
        return Err(Error::Unsupported("asymmetric needs a topology with two links or more".into()));
    }
    lab.wait_all_up()?;
    if let Some(tracking) = lab.tracking {
        findings.note(format!("bridge appliances track connections by {tracking:?}"));
    }
    let before = consistency::snapshot(lab)?;
    lab.forget_sessions()?;

    findings.say(&format!(
        "{} TCP and {} UDP sessions over {} paths",
        scenario.load.tcp,
        scenario.load.udp,
        paths.len()
    ));
    let (sessions, outcome) = sessions(lab, scenario, &paths)?;
    outcome.check_tcp(lab, findings)?;
    outcome.check_udp(findings);
    consistency::check_one_place(lab, findings, true)?;
    check_spread(lab, findings, &sessions)?;

    findings.say("ping, curl, iperf3");
    programs::check_all(lab, findings, &paths, scenario.seconds / 2.0)?;
    consistency::check_one_place(lab, findings, false)?;
    for name in lab.bridges() {
        let counted = lab.bridge_counted(&name)?;
        findings.check(
            &format!("bridge {name} dropped nothing as invalid"),
            counted.dropped == 0 && counted.established > 0,
            format!(
                "{} begun, {} established, {} dropped",
                counted.begun, counted.established, counted.dropped
            ),
        );
    }
    consistency::check_links_kept(lab, findings)?;
    consistency::check_counters(lab, findings, &before)?;
    check_appliance_counters(lab, findings)?;
    check_resets(lab, scenario, findings, &paths)
}

/// TCP and UDP sessions opened from both sides, to their end.
fn sessions(lab: &mut Lab, scenario: &Scenario, paths: &[Path]) -> Result<(Vec<Ends>, Outcome)> {
    let mut rng = Rng::new(scenario.seed);
    let mut drawn = Vec::new();
    let load = &scenario.load;
    let share = |total: u64, side: Side| if side == Side::Lan { total - total / 4 } else { total / 4 };
    for side in sides() {
        let tcp = lab.draw_sessions(&mut rng, share(load.tcp, side), side, paths);
        let udp = lab.draw_sessions(&mut rng, share(load.udp, side), side, paths);
        let work = tcp::Work { rounds: Some(3), bytes: (1, 60_000), pause_ms: 0, seed: scenario.seed };
        let pace = udp::Pace {
            interval_us: load.udp_interval_us,
            payload: load.udp_payload,
            count: Some(DATAGRAMS),
        };
        lab.start_tcp(side, "tcp", &tcp, work)?;
        lab.start_udp(side, "udp", &udp, pace)?;
        drawn.extend(tcp);
    }
    let finished = lab.finish_all(&["tcp", "udp"])?;
    Ok((drawn, Outcome { tcp: finished.tcp, udp: finished.udp }))
}

/// Sessions reach every pair and core that has buckets, and the CLI's lookup knows where each one went.
fn check_spread(lab: &mut Lab, findings: &mut Findings, sessions: &[Ends]) -> Result<()> {
    if lab.emulated().is_empty() {
        return Ok(());
    }
    let cells = consistency::cells(lab)?;
    let mut per_pair = std::collections::BTreeMap::new();
    for (pair, _) in cells.values().flatten() {
        *per_pair.entry(pair.clone()).or_insert(0u64) += 1;
    }
    let words: Vec<String> = per_pair.iter().map(|(pair, count)| format!("{pair} {count}")).collect();
    let active = lab.topology.pairs().filter(|(_, pair)| pair.role == "active").count();
    // Fewer sessions than this may miss a pair by chance.
    let enough = cells.len() >= active * 12;
    findings.check(
        "sessions are spread over every pair",
        per_pair.len() >= active || !enough,
        words.join(", "),
    );

    let sluice = lab.sluice()?;
    let mut wrong = Vec::new();
    let mut agreed = 0;
    for ends in sessions.iter().take(LOOKED_UP) {
        let Some(went) = cells.get(&ends.key(6)).and_then(|set| set.first()) else {
            continue;
        };
        let told: Lookup = sluice.show(&lookup(ends, 6, &lab.topology.links[0].name))?;
        let same_core = told.core.is_none() || told.core == Some(went.1);
        if told.pair.as_deref() == Some(went.0.as_str()) && same_core {
            agreed += 1;
        } else {
            wrong.push(format!("{} -> {} went to {went:?}, lookup says {told:?}", ends.client, ends.server));
        }
    }
    findings.check(
        "lookup names the pair and core that the session used",
        wrong.is_empty() && agreed > 0,
        if wrong.is_empty() { format!("{agreed} sessions") } else { first_few(&wrong) },
    );
    Ok(())
}

/// What the balancer says it sent to each pair is what the appliance counted.
fn check_appliance_counters(lab: &mut Lab, findings: &mut Findings) -> Result<()> {
    let balancer = lab.sluice()?.balancer()?;
    let mut wrong = Vec::new();
    let mut frames = 0;
    let mut unsteered = 0;
    for name in lab.emulated() {
        for pair in lab.appliance_report(&name)?.pairs {
            let counted = pair.lan_frames + pair.wan_frames;
            let told = balancer.pairs().find(|known| known.name == pair.name).map(|known| known.tx_packets);
            frames += counted;
            unsteered += pair.unsteered;
            if told != Some(counted) {
                wrong.push(format!("{}: appliance {counted}, balancer {told:?}", pair.name));
            }
        }
    }
    if frames == 0 {
        return Ok(());
    }
    findings.check(
        "frames sent to each pair = frames the appliance counted",
        wrong.is_empty(),
        if wrong.is_empty() { format!("equal, {frames} frames") } else { first_few(&wrong) },
    );
    findings.check(
        "every frame at an appliance had its steering header",
        unsteered == 0,
        format!("{unsteered} had not"),
    );
    Ok(())
}

/// A reset that the appliance forges reaches the client that it is meant for.
fn check_resets(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings, paths: &[Path]) -> Result<()> {
    if lab.emulated().is_empty() {
        return Ok(());
    }
    let mut rng = Rng::new(scenario.seed + 1);
    let set = |lab: &mut Lab, port: u16| {
        for name in lab.emulated() {
            lab.change(&name, Change { reset_port: Some(port), ..Change::default() })?;
        }
        Ok::<_, Error>(())
    };
    let sessions = lab.draw_sessions(&mut rng, 2 * paths.len() as u64, Side::Lan, paths);
    let on_emulated = lab.bridges().is_empty();
    set(lab, crate::traffic::PORT)?;
    let work = tcp::Work { rounds: Some(1), bytes: (1, 10), pause_ms: 0, seed: 1 };
    lab.start_tcp(Side::Lan, "refused", &sessions, work)?;
    let reports = lab.finish_all(&["refused"])?.tcp;
    set(lab, 0)?;
    let refused = |error: &Option<String>| error.as_ref().is_some_and(|text| text.contains("refused"));
    let count = reports.iter().filter(|report| refused(&report.error)).count();
    findings.check(
        "a reset by the appliance comes back to the client on its link",
        count == reports.len() || (!on_emulated && count > 0),
        format!("{count} of {} connections refused by the appliance", reports.len()),
    );
    let mut foreign = 0;
    for side in sides() {
        foreign += lab.edge_report(side)?.uplinks.iter().map(|uplink| uplink.foreign).sum::<u64>();
    }
    findings.check("no reset left by another link", foreign == 0, format!("{foreign} foreign frames"));
    Ok(())
}
