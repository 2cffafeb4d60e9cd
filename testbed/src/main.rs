//! `testbed`: builds a site in network namespaces and runs scenarios on it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use swpipe::io::Backend;
use testbed::check::Findings;
use testbed::differential::command;
use testbed::error::{Doing, Result};
use testbed::lab::Programs;
use testbed::netns;
use testbed::plane::DataPlane;
use testbed::scenario::Scenario;
use testbed::scenarios;
use testbed::screen::Screen;
use testbed::topology::Topology;

/// Sites in network namespaces, with appliances, traffic and faults.
#[derive(Parser)]
#[command(name = "testbed", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds a topology and runs scenarios on it. Exit status 0 only when every check passed.
    Run {
        /// A topology file, or the name of a shipped one (see `testbed list`).
        topology: PathBuf,
        /// A shipped scenario or a file; may be given several times. Each gets a site of its own.
        #[arg(long, required = true)]
        scenario: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Runs every scenario on the topologies that suit it.
    All {
        #[command(flatten)]
        options: Options,
    },
    /// Shows baseline and appliance-hang on two links, three appliances, five pairs, with a live table of pairs.
    Demo {
        #[command(flatten)]
        options: Options,
    },
    /// Compares the software pipeline with the compiled P4 program on random tables and frames. Exit status 0 only
    /// when they agree and every reason was seen.
    Differential(command::Differential),
    /// Runs vector files on a data plane. Exit status 0 only when all is as they say.
    Vectors(command::Vectors),
    /// Lists the shipped topologies and scenarios.
    List,
    /// Runs a compiled P4 program on Linux interfaces, with P4Runtime, until SIGTERM.
    P4ref(testbed::p4ref::run::Options),
    /// Measures the software pipeline over virtual cables, and other systems on the same cables.
    Bench(testbed::bench::Options),
    /// Compares what `cargo bench -p swpipe --bench pipeline` measured with figures that were kept. Exit status 0 only
    /// when nothing is slower beyond noise.
    BenchCheck(testbed::bench::memory::Options),
    /// Removes what crashed runs left behind.
    Clean,
    #[command(hide = true)]
    Held {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    #[command(hide = true)]
    Appliance,
    #[command(hide = true)]
    Edge,
    #[command(hide = true)]
    Traffic,
}

#[derive(clap::Args)]
struct Options {
    /// Writes the findings as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where swpipe, sluiced and sluice are; by default beside this program.
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Less traffic and shorter phases, the same checks.
    #[arg(long)]
    quick: bool,
    /// The data plane: the software pipeline, or the compiled P4 program in the reference interpreter or on BMv2.
    #[arg(long, value_enum, default_value_t = DataPlane::Swpipe)]
    target: DataPlane,
    /// The software pipeline inside the controller instead of a process of its own.
    #[arg(long, conflicts_with = "target")]
    embedded: bool,
    /// How the software pipeline reads and writes its interfaces. Veths carry tags within frames for af-xdp.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    io: Backend,
    /// Leaves logs and configuration of the run in /run/sluice-testbed.
    #[arg(long)]
    keep: bool,
    /// Milliseconds that timed checks grant beyond their bounds; the figures are shown all the same. For machines
    /// that others use too.
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    slack: f64,
    /// Captures of odd frames for `garbage`.
    #[arg(long, value_name = "DIR", default_value = "../shared/captures/odd")]
    captures: PathBuf,
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("testbed: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute(command: Command) -> Result<bool> {
    match command {
        Command::Run { topology, scenario, options } => {
            let topology = Topology::load(&topology)?;
            let scenarios = scenario.iter().map(|name| Scenario::load(name)).collect::<Result<Vec<_>>>()?;
            let runs = scenarios.into_iter().map(|scenario| (topology.clone(), scenario)).collect();
            run(runs, &options)
        }
        Command::All { options } => {
            let mut runs = Vec::new();
            for (topology, names) in scenarios::ALL {
                let topology = Topology::load(topology.as_ref())?;
                for name in *names {
                    runs.push((topology.clone(), Scenario::load(name)?));
                }
            }
            run(runs, &options)
        }
        Command::Demo { options } => {
            let topology = Topology::load("demo".as_ref())?;
            scenarios::demo(&topology, &options.common()?).and_then(|findings| report(&findings, &options))
        }
        Command::Differential(differential) => differential.run(),
        Command::Vectors(vectors) => vectors.run(),
        Command::List => {
            println!("topologies:");
            for (name, _) in testbed::topology::SHIPPED {
                println!("  {name:<16} {}", Topology::load(name.as_ref())?.about);
            }
            println!("scenarios:");
            for (name, _) in testbed::scenario::SHIPPED {
                println!("  {name:<16} {}", Scenario::load(name)?.about);
            }
            Ok(true)
        }
        Command::P4ref(options) => testbed::p4ref::run::run(&options).map(|()| true),
        Command::BenchCheck(options) => testbed::bench::memory::run(&options),
        Command::Bench(options) => testbed::bench::run(&options),
        Command::Clean => {
            for id in netns::remove_leftovers()? {
                println!("removed {id}");
            }
            Ok(true)
        }
        Command::Held { command } => netns::hold(&command).map(|()| true),
        Command::Appliance => testbed::appliance::run().map(|()| true),
        Command::Edge => testbed::edge::run().map(|()| true),
        Command::Traffic => testbed::traffic::run().map(|()| true),
    }
}

impl Options {
    fn plane(&self) -> DataPlane {
        if self.embedded { DataPlane::Embedded } else { self.target }
    }

    fn common(&self) -> Result<scenarios::Options> {
        let beside = || -> Result<PathBuf> {
            let this = std::env::current_exe().doing(|| "finding the test bed's own program".into())?;
            Ok(this.parent().map(PathBuf::from).unwrap_or_default())
        };
        let directory = self.bin_dir.clone().map_or_else(beside, Ok)?;
        Ok(scenarios::Options {
            programs: Programs { directory, plane: self.plane(), io: self.io, slack_ms: self.slack },
            captures: self.captures.clone(),
            quick: self.quick,
            keep: self.keep,
        })
    }
}

fn run(runs: Vec<(Topology, Scenario)>, options: &Options) -> Result<bool> {
    let common = options.common()?;
    if let Some(why) = common.programs.plane.missing() {
        println!("SKIPPED: {} scenarios with {}: {why}", runs.len(), common.programs.plane.name());
    } else {
        common.programs.check()?;
    }
    let screen = Arc::new(Screen::default());
    let mut findings = Vec::new();
    for (topology, scenario) in runs {
        let (topology, scenario) = if common.programs.plane.is_slow() {
            (topology.slow(), scenario.slow())
        } else {
            (topology, scenario)
        };
        let scenario = if options.quick { scenario.quick() } else { scenario };
        let found = scenarios::run(&topology, &scenario, &common, &screen)?;
        screen.print(&found.table());
        findings.push(found);
    }
    if findings.len() > 1 {
        screen.print(&scenarios::overview(&findings));
    }
    report(&findings, options)
}

fn report(findings: &[Findings], options: &Options) -> Result<bool> {
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(findings).unwrap_or_default();
        std::fs::write(file, text + "\n").doing(|| format!("writing {}", file.display()))?;
    }
    Ok(findings.iter().all(Findings::passed))
}
