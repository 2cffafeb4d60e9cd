//! `testbed bench`: the software pipeline and other systems over virtual cables, in one run on one machine.
//!
//! A [`generator::Generator`] that outruns them all sends by the far end of a link's cable; the
//! [`system::System`] under test splits the frames over its pairs; a [`sink::Sink`] counts them at the far ends of the pairs' cables.

pub mod frames;
pub mod generator;
pub mod latency;
pub mod measure;
pub mod pin;
pub mod search;
pub mod sink;
pub mod system;
pub mod yard;

use std::path::PathBuf;
use std::time::Duration;

use frames::Size;
use measure::Bench;
use system::{Programs, Start, System};
use yard::{Way, Yard};

use crate::error::{Doing, Result};
use crate::netns::{self, Run};

/// How to run it.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Systems to measure; by default all.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Where swpipe is; by default beside this program.
    #[arg(long, value_name = "DIR")]
    pub bin_dir: Option<PathBuf>,
    /// Where Open vSwitch is unpacked, if it isn't installed.
    #[arg(long, value_name = "DIR", default_value = "target/openvswitch")]
    pub openvswitch: PathBuf,
    /// Where the compiled P4 program is.
    #[arg(long, value_name = "DIR", default_value = "p4/build")]
    pub compiled: PathBuf,
    /// Pairs.
    #[arg(long, default_value_t = 8)]
    pub pairs: usize,
}

/// Measures.
///
/// # Errors
/// A system that is there does not run, or the machine can't do it.
pub fn run(options: &Options) -> Result<bool> {
    netns::remove_on_signal()?;
    let program = std::env::current_exe().doing(|| "finding the test bed's own program".into())?;
    let beside = program.parent().map(PathBuf::from).unwrap_or_default();
    let programs = Programs {
        directory: options.bin_dir.clone().unwrap_or(beside),
        openvswitch: options.openvswitch.clone(),
        compiled: options.compiled.clone(),
        workers: 1,
    };
    let systems = if options.systems.is_empty() { System::ALL.to_vec() } else { options.systems.clone() };
    for system in systems {
        let yard = Yard::lay(Run::start(program.clone())?, options.pairs, Way::ToAppliance)?;
        match system.start(&yard, &programs)? {
            Start::Missing(why) => println!("{}: {why}", system.title()),
            Start::Running(mut running) => {
                let mut bench = Bench { yard: &yard, running: &mut running };
                for size in [Size::Fixed(64), Size::Imix] {
                    let s = bench.saturate(size, Duration::from_secs(2))?;
                    println!("{} {size} {s:?}", system.title());
                }
                println!("others {}", yard.sink().others()?);
            }
        }
    }
    Ok(true)
}
