//! `testbed bench`: the software pipeline and other systems over virtual cables, in one run on one machine.
//!
//! A [`generator::Generator`] that outruns them all sends by the far end of a link's cable; the [`system::System`]
//! under test splits the frames over its pairs; a [`sink::Sink`] counts them at the far ends of the pairs' cables.
//! [`run`] goes through the systems and gathers an [`outcome::Outcome`].

pub mod frames;
pub mod generator;
pub mod latency;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod outcome;
pub mod page;
pub mod pin;
pub mod search;
pub mod sink;
pub mod system;
pub mod yard;

mod plan;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use machine::Machine;
use outcome::{Missing, Outcome, Row, Timing, Version};
use plan::Plan;
use system::{Programs, Running, Start, System};
use yard::{Way, Yard};

use crate::error::{Doing, Error, Result};
use crate::netns::{self, Run};
use crate::screen::Screen;
use measure::Bench;

/// Load average of a machine that nobody else uses.
const QUIET: f64 = 0.5;

/// How to run it.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Systems to measure, by commas; by default all.
    #[arg(long, value_enum, value_delimiter = ',')]
    systems: Vec<System>,
    /// Shorter: one size, one repetition, coarse search; for tests and a first look.
    #[arg(long)]
    quick: bool,
    /// Pairs in the comparison.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=128))]
    pairs: u16,
    /// Frames lost of a million that pass as no loss.
    #[arg(long, value_name = "PPM", default_value_t = 0.0)]
    tolerance: f64,
    /// Writes everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the section into this page, between the marks for it.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Where swpipe is; by default beside this program.
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Where Open vSwitch is unpacked, if it isn't installed.
    #[arg(long, value_name = "DIR", default_value = "target/openvswitch")]
    openvswitch: PathBuf,
    /// Where the compiled P4 program is.
    #[arg(long, value_name = "DIR", default_value = "p4/build")]
    compiled: PathBuf,
}

/// Measures, shows the tables, and writes what was asked for.
///
/// # Errors
/// A system that is there does not run, a file can't be written, or the machine can't do it: it takes root and two cores.
pub fn run(options: &Options) -> Result<bool> {
    netns::remove_on_signal()?;
    pin::check()?;
    let this = std::env::current_exe().doing(|| "finding the test bed's own program".into())?;
    let beside = this.parent().map(PathBuf::from).unwrap_or_default();
    let programs = Programs {
        directory: options.bin_dir.clone().unwrap_or(beside),
        openvswitch: options.openvswitch.clone(),
        compiled: options.compiled.clone(),
    };
    let plan = if options.quick { Plan::quick(options.tolerance) } else { Plan::full(options.tolerance) };
    let systems = if options.systems.is_empty() { System::ALL.to_vec() } else { options.systems.clone() };
    let outcome = Outcome {
        machine: Machine::of_now(),
        command: std::env::args().skip(1).fold("testbed".to_owned(), |line, word| line + " " + &word),
        method: plan.method(),
        versions: Vec::new(),
        missing: Vec::new(),
        compared: Vec::new(),
        through: Vec::new(),
        scaled: Vec::new(),
        idle: Vec::new(),
        foreign_frames: 0,
        seconds: 0.0,
    };
    let pairs = options.pairs.into();
    let mut session = Session { this, programs, plan, outcome, screen: Arc::new(Screen::default()) };
    let before = session.outcome.machine.load_before;
    if before > QUIET {
        session.screen.say(&format!("others use this machine (load average {before:.1}): rates will be low"));
    }
    let began = Instant::now();
    session.compare(&systems, pairs)?;
    let systems: Vec<System> = session.outcome.versions.iter().map(|version| version.system).collect();
    session.go_through(&systems, pairs)?;
    session.scale(&systems, pairs)?;
    session.idle(&systems)?;
    let Session { mut outcome, screen, .. } = session;
    outcome.seconds = began.elapsed().as_secs_f64();
    screen.print(&format!("\n{}", page::tables(&outcome)));
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&outcome).unwrap_or_default();
        std::fs::write(file, text + "\n").doing(|| format!("writing {}", file.display()))?;
    }
    if let Some(file) = &options.page {
        page::splice(file, &page::section(&outcome))?;
    }
    Ok(!outcome.compared.is_empty())
}

/// A run that is under way.
struct Session {
    this: PathBuf,
    programs: Programs,
    plan: Plan,
    outcome: Outcome,
    screen: Arc<Screen>,
}

impl Session {
    /// Starts a system between cables of its own; `None` where it can't run here.
    fn start(&self, system: System, pairs: usize, workers: usize, way: Way) -> Result<Started> {
        let yard = Yard::lay(Run::start(self.this.clone())?, pairs, way)?;
        Ok(match system.start(&yard, &self.programs, workers)? {
            Start::Running(running) => Started::Running { running, yard },
            Start::Missing(why) => Started::Missing(why),
        })
    }

    fn say(&self, row: &Row) {
        let mpps = |rate: f64| rate / 1e6;
        let free =
            row.loss_free.map(|trial| format!(", {:.3} without loss", mpps(trial.rate))).unwrap_or_default();
        self.screen.say(&format!(
            "{}, {} pairs, {} bytes: {:.3} Mpps of {:.3}, {:.0} ns of a core{free}",
            row.system.title(),
            row.pairs,
            row.size,
            mpps(row.saturated.median),
            mpps(row.offered.median),
            row.core_ns.median
        ));
    }

    /// Every system, every size: saturation, search, latency.
    fn compare(&mut self, systems: &[System], pairs: usize) -> Result<()> {
        for system in systems.iter().copied() {
            match self.start(system, pairs, 1, Way::ToAppliance)? {
                Started::Missing(why) => {
                    self.screen.say(&format!("{}: {why}", system.title()));
                    self.outcome.missing.push(Missing { system, why });
                }
                Started::Running { mut running, yard } => {
                    let version = running.version().to_owned();
                    self.outcome.versions.push(Version { system, version });
                    let mut bench = Bench { yard: &yard, running: &mut running };
                    for size in self.plan.sizes.clone() {
                        let mut row = self.saturate(system, size, 1, &mut bench)?;
                        let top = row.saturated.most * 1.1;
                        let trial = |rate| bench.trial(size, rate, self.plan.trial);
                        row.loss_free = search::loss_free(top, self.plan.effort, trial)?;
                        row.latency = self.time(&row, &mut bench)?;
                        self.say(&row);
                        self.outcome.compared.push(row);
                    }
                    self.outcome.foreign_frames += yard.sink().others()?;
                }
            }
        }
        Ok(())
    }

    fn saturate(
        &self,
        system: System,
        size: frames::Size,
        workers: usize,
        bench: &mut Bench<'_>,
    ) -> Result<Row> {
        let runs = (0..self.plan.repetitions)
            .map(|_| bench.saturate(size, self.plan.saturation))
            .collect::<Result<Vec<_>>>()?;
        Ok(Row::of(system, size, bench.yard.way(), bench.yard.pairs(), workers, &runs))
    }

    fn time(&self, row: &Row, bench: &mut Bench<'_>) -> Result<Option<Timing>> {
        let Some(rate) = row.loss_free.map(|trial| trial.rate / 2.0) else { return Ok(None) };
        let system = bench.latency(row.size, rate, self.plan.latency)?.quantiles();
        let cable = measure::cable_latency(bench.yard, row.size, rate, self.plan.latency)?.quantiles();
        Ok(system.zip(cable).map(|(system, cable)| Timing { rate, system, cable }))
    }

    /// The whole way, by appliances that take no time.
    fn go_through(&mut self, systems: &[System], pairs: usize) -> Result<()> {
        let Some(size) = self.plan.through else { return Ok(()) };
        for system in systems.iter().copied().filter(|system| system.does(Way::Through)) {
            self.row_of(system, size, pairs, 1, Way::Through, |outcome| &mut outcome.through)?;
        }
        Ok(())
    }

    /// Our pipeline with other numbers of pairs, and with two workers.
    fn scale(&mut self, systems: &[System], pairs: usize) -> Result<()> {
        let Some(size) = self.plan.through else { return Ok(()) };
        for system in systems.iter().copied().filter(|system| system.is_swpipe()) {
            for pairs in self.plan.pairs.clone() {
                self.row_of(system, size, pairs, 1, Way::ToAppliance, |outcome| &mut outcome.scaled)?;
            }
            for workers in [1, 2] {
                self.row_of(system, size, pairs, workers, Way::BothWays, |outcome| &mut outcome.scaled)?;
            }
        }
        Ok(())
    }

    fn row_of(
        &mut self,
        system: System,
        size: frames::Size,
        pairs: usize,
        workers: usize,
        way: Way,
        to: impl FnOnce(&mut Outcome) -> &mut Vec<Row>,
    ) -> Result<()> {
        let (mut running, yard) = match self.start(system, pairs, workers, way) {
            Ok(Started::Running { running, yard }) => (running, yard),
            Ok(Started::Missing(_)) => return Ok(()),
            // A limit of the system's is a finding: the others go on.
            Err(error @ Error::Agent { .. }) => {
                let said = error.to_string();
                let why = format!(
                    "with {pairs} pairs and {workers} workers: {}",
                    said.lines().last().unwrap_or(&said)
                );
                self.screen.say(&format!("{} {why}", system.title()));
                self.outcome.missing.push(Missing { system, why });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut bench = Bench { yard: &yard, running: &mut running };
        let row = self.saturate(system, size, workers, &mut bench)?;
        self.say(&row);
        self.outcome.foreign_frames += yard.sink().others()?;
        to(&mut self.outcome).push(row);
        Ok(())
    }

    /// Processor time of the processes with four ports and no frame.
    fn idle(&mut self, systems: &[System]) -> Result<()> {
        for system in systems.iter().copied().filter(|system| system.has_process()) {
            let Started::Running { mut running, yard } = self.start(system, 1, 1, Way::ToAppliance)? else {
                continue;
            };
            let share = measure::idle_share(&mut running, self.plan.idle)?;
            let (ports, seconds) = (yard.ports().len(), self.plan.idle.as_secs_f64());
            self.screen.say(&format!("{}: {:.2} % of a core without a frame", system.title(), share * 100.0));
            self.outcome.idle.push(outcome::Idle { system, ports, share, seconds });
        }
        Ok(())
    }
}

/// A system between its cables. It ends before they do.
enum Started {
    Running { running: Box<Running>, yard: Yard },
    Missing(String),
}
