//! The scenarios: what is done to a site, and what must hold meanwhile.

mod baseline;
mod consistency;
mod controller_kill;
mod detection;
mod fault;
mod garbage;
mod load;
mod manual_bypass;
mod miscabled;
mod programs;
mod rebalance;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;

use crate::check::Findings;
use crate::error::{Doing, Error, Result};
use crate::lab::{Cabling, Lab, Middle, Programs};
use crate::netns::{Run, remove_on_signal};
use crate::plane::DataPlane;
use crate::scenario::{Procedure, Scenario};
use crate::screen::Screen;
use crate::topology::Topology;

/// What the command line says for all scenarios.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs under test.
    pub programs: Programs,
    /// Captures for `garbage`.
    pub captures: PathBuf,
    /// Shorter.
    pub quick: bool,
    /// Keep logs.
    pub keep: bool,
}

/// What `testbed all` runs: topology and scenarios.
pub const ALL: &[(&str, &[&str])] = &[
    (
        "demo",
        &[
            "baseline",
            "asymmetric",
            "pair-down",
            "appliance-hang",
            "appliance-flap",
            "manual-bypass",
            "controller-kill",
            "garbage",
            "miscabled",
        ],
    ),
    ("rebalance", &["rebalance"]),
    ("tagged", &["baseline", "asymmetric"]),
    ("jumbo", &["baseline"]),
    ("bridge", &["baseline", "asymmetric", "pair-down", "manual-bypass", "controller-kill"]),
    ("fast", &["pair-down", "appliance-hang"]),
    ("watched", &["core-hang", "controller-freeze", "suspended", "forgeries", "processing"]),
    ("overloaded", &["overload"]),
];

/// What takes the whole machine, and so is run by hand.
pub const BY_HAND: &[(&str, &[&str])] = &[("dense", &["cuts"]), ("crowded", &["soak"])];

/// One line per scenario.
pub fn overview(all: &[Findings]) -> String {
    let mut text = String::from("\n");
    for findings in all {
        let failed = findings.checks.iter().filter(|check| !check.passed).count();
        let verdict = match (&findings.skipped, findings.passed()) {
            (Some(_), _) => "SKIPPED".to_string(),
            (None, true) => "ok".to_string(),
            (None, false) => format!("{failed} FAILED"),
        };
        let what = format!("{} on {}", findings.scenario, findings.topology);
        text += &format!(
            "  {what:<32} {:>3} checks  {:>6.1} s  {verdict}\n",
            findings.checks.len(),
            findings.seconds
        );
    }
    let run = all.iter().filter(|findings| findings.skipped.is_none());
    let good = run.clone().filter(|findings| findings.passed()).count();
    text += &format!(
        "  {good} of {} scenarios passed, {} skipped\n",
        run.clone().count(),
        all.len() - run.count()
    );
    text
}

/// Builds a site, runs one scenario on it, takes the site down. A scenario that can't go on counts as a failed
/// check, not as an error, so that others still run.
///
/// # Errors
/// When this machine can't run it: not root, programs missing, a scenario that the topology doesn't allow.
pub fn run(
    topology: &Topology,
    scenario: &Scenario,
    options: &Options,
    screen: &Arc<Screen>,
) -> Result<Findings> {
    let mut findings = Findings::new(&scenario.name, &topology.name, Arc::clone(screen));
    let plane = options.programs.plane;
    let skipped = match plane.missing() {
        None if scenario.procedure == Procedure::ControllerKill && plane == DataPlane::Embedded => {
            Some("with --embedded the data plane is in the controller and dies with it".to_owned())
        }
        missing => missing,
    };
    if let Some(why) = skipped {
        findings.skip(&why);
        findings.close();
        return Ok(findings);
    }
    match build(topology, scenario, options, &findings) {
        Ok(mut lab) => {
            let outcome = perform(&mut lab, scenario, options, &mut findings);
            conclude(lab, outcome, options, &mut findings);
        }
        // What this machine can't do is no finding about the balancer.
        Err(error @ (Error::Unsupported(_) | Error::MissingProgram { .. })) => return Err(error),
        Err(error) => {
            findings.check("the site was built", false, error.to_string());
            findings.close();
        }
    }
    Ok(findings)
}

fn build(topology: &Topology, scenario: &Scenario, options: &Options, findings: &Findings) -> Result<Lab> {
    remove_on_signal()?;
    let this = std::env::current_exe().doing(|| "finding the test bed's own program".into())?;
    let run = Run::start(this)?;
    let plane = options.programs.plane.name();
    let (site, name) = (&topology.name, &scenario.name);
    findings.say(&format!("building {site} with {plane} for {name} in namespaces {}-*", run.id()));
    let cabling = match scenario.procedure {
        Procedure::Miscabled => Cabling { swapped_wan: Some(miscabled::swapped(topology)?) },
        _ => Cabling::default(),
    };
    Lab::build(run, topology.clone(), &Middle::Balancer(options.programs.clone()), &cabling)
}

fn perform(lab: &mut Lab, scenario: &Scenario, options: &Options, findings: &mut Findings) -> Result<()> {
    match scenario.procedure {
        Procedure::Baseline => baseline::run(lab, scenario, findings, baseline::Routes::OneLink),
        Procedure::Asymmetric => baseline::run(lab, scenario, findings, baseline::Routes::TwoLinks),
        Procedure::PairDown => fault::pair_down(lab, scenario, findings),
        Procedure::ApplianceHang => fault::appliance_hang(lab, scenario, findings),
        Procedure::ApplianceFlap => fault::appliance_flap(lab, scenario, findings),
        Procedure::ManualBypass => manual_bypass::run(lab, scenario, findings),
        Procedure::ControllerKill => controller_kill::run(lab, scenario, findings),
        Procedure::Rebalance => rebalance::run(lab, scenario, findings),
        Procedure::Garbage => garbage::run(lab, scenario, findings, &options.captures),
        Procedure::Miscabled => miscabled::run(lab, scenario, findings),
        Procedure::Soak => detection::soak(lab, scenario, findings),
        Procedure::Cuts => detection::cuts(lab, scenario, findings),
        Procedure::CoreHang => watching::core_hang(lab, scenario, findings),
        Procedure::Overload => watching::overload(lab, scenario, findings),
        Procedure::ControllerFreeze => watching::controller_freeze(lab, scenario, findings),
        Procedure::Suspended => watching::suspended(lab, findings),
        Procedure::Forgeries => watching::forgeries(lab, scenario, findings),
        Procedure::Processing => watching::processing(lab, scenario, findings),
    }
}

fn conclude(mut lab: Lab, outcome: Result<()>, options: &Options, findings: &mut Findings) {
    let alive = lab.still_running();
    findings.check(
        &format!("{} and sluiced ran to the end", lab.plane_name()),
        alive.is_ok(),
        alive.map_or_else(|error| error.to_string(), |()| "both alive".into()),
    );
    if let Err(error) = outcome {
        findings.check("the scenario went through", false, error.to_string());
    }
    if options.keep || !findings.passed() {
        lab.run().keep_directory();
        findings.note(format!("logs and configuration are in {}", lab.run().directory().display()));
    }
    findings.close();
}

/// Baseline, then an appliance that hangs, on one site, with a live table of the pairs; ends with a summary in
/// words.
///
/// # Errors
/// When the site can't be built.
pub fn demo(topology: &Topology, options: &Options) -> Result<Vec<Findings>> {
    let screen = Arc::new(Screen::default());
    let scenarios = ["baseline", "appliance-hang"];
    let scenarios = scenarios.map(Scenario::load).into_iter().collect::<Result<Vec<_>>>()?;
    let plane = options.programs.plane;
    if let Some(why) = plane.missing() {
        return Err(Error::Unsupported(why));
    }
    let topology = &if plane.is_slow() { topology.clone().slow() } else { topology.clone() };
    let mut all = Vec::new();
    for scenario in scenarios {
        let scenario = if plane.is_slow() { scenario.slow() } else { scenario };
        let scenario = if scenario.procedure == Procedure::Baseline || options.quick {
            scenario.quick()
        } else {
            scenario
        };
        screen.say(&format!("{}: {}", scenario.name, scenario.about));
        let mut findings = Findings::new(&scenario.name, &topology.name, Arc::clone(&screen));
        let mut lab = build(topology, &scenario, options, &findings)?;
        let watch = screen.watch(lab.sluice()?);
        let outcome = perform(&mut lab, &scenario, options, &mut findings);
        drop(watch);
        conclude(lab, outcome, options, &mut findings);
        screen.print(&findings.table());
        all.push(findings);
    }
    screen.print(&words(topology, &all));
    Ok(all)
}

/// The summary in words.
fn words(topology: &Topology, all: &[Findings]) -> String {
    let mut text = format!(
        "\nTwo directions of every session met on one appliance and core, on {} links, {} appliances and {} pairs.\n",
        topology.links.len(),
        topology.appliances.len(),
        topology.pairs().count()
    );
    let failed: Vec<String> = all
        .iter()
        .flat_map(|f| {
            f.checks.iter().filter(|c| !c.passed).map(move |c| format!("{}: {}", f.scenario, c.name))
        })
        .collect();
    let figure = |name: &str| {
        let found = all.iter().flat_map(|f| &f.checks).find(|check| check.name.starts_with(name));
        found.map_or("not measured".to_string(), |check| check.figure.clone())
    };
    if failed.is_empty() {
        text += &format!(
            "An appliance was frozen with its carrier up. Detection: {}.\n",
            figure(fault::DETECTED)
        );
        text += &format!("Its share alone was bypassed: {}.\n", figure(fault::BYPASSED));
        text += &format!("The sessions of the other pairs: {}.\n", figure(fault::OTHERS));
        text += &format!("It came home by itself: {}.\n", figure(fault::HOME));
        text += "Every check passed.\n";
    } else {
        text = format!("\nNot everything held:\n  {}\n", failed.join("\n  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_topology_and_scenario_is_run() {
        for (name, _) in crate::topology::SHIPPED {
            assert!(ALL.iter().chain(BY_HAND).any(|(topology, _)| topology == name), "{name}");
        }
        for (name, _) in crate::scenario::SHIPPED {
            assert!(ALL.iter().chain(BY_HAND).any(|(_, scenarios)| scenarios.contains(name)), "{name}");
        }
    }

    #[test]
    fn the_overview_counts() {
        let mut good = Findings::new("a", "t", Arc::new(Screen::silent()));
        good.check("x", true, "");
        let mut bad = Findings::new("b", "t", Arc::new(Screen::silent()));
        bad.check("y", false, "");
        let text = overview(&[good, bad]);
        assert!(text.contains("1 FAILED") && text.contains("1 of 2 scenarios passed"), "{text}");
    }
}
