//! `testbed differential` and `testbed vectors`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dataplane::PortId;
use dataplane::target::TargetProfile;

use super::bmv2;
use super::compare::explain;
use super::entry_text::EntryText;
use super::frames::corpus;
use super::plane::{Outcome, Plane};
use super::reference::{Compiled, Reference};
use super::run::{self, Found, run};
use super::software::Software;
use super::vector::{FrameText, VectorFile};
use crate::error::{Doing, Error, Result};

/// How often a run that goes on says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);

/// What the software pipeline is compared with, or a vector file is run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The software pipeline, in this process.
    Swpipe,
    /// The compiled P4 program in the reference interpreter.
    P4ref,
    /// The compiled P4 program in BMv2's simple_switch_grpc, which must be on PATH; as root.
    Bmv2,
}

/// Frames of a run, when nobody says: BMv2 takes a millisecond each.
fn default_frames(target: Target) -> u64 {
    if target == Target::Bmv2 { 10_000 } else { 300_000 }
}

/// Compares the software pipeline with the compiled P4 program on random tables and frames.
#[derive(clap::Args)]
pub struct Differential {
    /// Frames to send; by default 300,000, or 10,000 to BMv2.
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    /// The same seed gives the same run; by default the clock's.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Goes on until the first difference.
    #[arg(long, conflicts_with = "frames")]
    forever: bool,
    /// What to compare with.
    #[arg(long, value_enum, default_value_t = Target::P4ref)]
    target: Target,
    /// Where a difference is written as a vector file.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    inputs: Inputs,
}

/// Runs vector files on a data plane.
#[derive(clap::Args)]
pub struct Vectors {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The data plane.
    #[arg(long, value_enum, default_value_t = Target::Swpipe)]
    target: Target,
    #[command(flatten)]
    inputs: Inputs,
}

#[derive(clap::Args)]
struct Inputs {
    /// Where the compiled program is; by default in p4/build, of --profile tofino1 in p4/build/tofino1-limits.
    #[arg(long, value_name = "DIR")]
    program: Option<PathBuf>,
    /// Whose limits the software pipeline has, and the program: bmv2 (none) or tofino1.
    #[arg(long, value_name = "TARGET", default_value = "bmv2")]
    profile: &'static TargetProfile,
    /// Where the published vectors are.
    #[arg(long, value_name = "DIR", default_value = "dataplane/vectors")]
    vectors: PathBuf,
    /// Captures of odd frames.
    #[arg(long, value_name = "DIR", default_value = "../shared/captures/odd")]
    captures: PathBuf,
}

impl Inputs {
    fn compiled(&self) -> Result<Compiled> {
        let built = if self.profile.parse.is_none() { "p4/build" } else { "p4/build/tofino1-limits" };
        Compiled::load(self.program.as_deref().unwrap_or(Path::new(built)))
    }

    /// Hands the data plane over to `then`; where this machine has none, says so, and all is well.
    fn with(
        &self,
        target: Target,
        ports: &[PortId],
        then: impl FnOnce(&mut dyn Plane) -> Result<bool> + Send,
    ) -> Result<bool> {
        match target {
            Target::Swpipe => then(&mut Software::new(self.profile)),
            Target::P4ref => then(&mut Reference::new(&self.compiled()?)?),
            Target::Bmv2 => match bmv2::find() {
                Ok(switch) => {
                    let this =
                        std::env::current_exe().doing(|| "finding the test bed's own program".into())?;
                    bmv2::within(&this, &switch, &self.compiled()?, ports, then)
                }
                Err(why) => {
                    println!("skipped: {why}");
                    Ok(true)
                }
            },
        }
    }

    /// Frames of others; says what is not there.
    fn corpus(&self) -> Result<Vec<Vec<u8>>> {
        let mut frames = corpus::published(&self.vectors)?;
        println!("{} frames of published vectors and captures", frames.len());
        match corpus::captured(&self.captures) {
            Some(odd) => {
                println!("{} frames of captures in {}", odd.len(), self.captures.display());
                frames.extend(odd);
            }
            None => println!("no captures in {}: it is not there", self.captures.display()),
        }
        Ok(frames)
    }
}

impl Differential {
    /// Runs it; whether the data planes agree and every reason was seen.
    ///
    /// # Errors
    /// Something is missing, or a data plane broke.
    pub fn run(&self) -> Result<bool> {
        let ports = if self.target == Target::Bmv2 { bmv2::ports() } else { run::ports() };
        self.inputs.with(self.target, &ports, |right| self.against(right, &ports))
    }

    fn against(&self, right: &mut dyn Plane, ports: &[PortId]) -> Result<bool> {
        let frames = self.frames.unwrap_or_else(|| default_frames(self.target));
        let options = run::Options {
            frames: (!self.forever).then_some(frames),
            seed: self.seed.unwrap_or_else(clock_seed),
            ports: ports.to_vec(),
            corpus: self.inputs.corpus()?,
            shrink: true,
        };
        let mut left = Software::new(self.inputs.profile);
        println!("swpipe --profile {} and {}, seed {}", self.inputs.profile, right.name(), options.seed);
        let began = Instant::now();
        let mut told = began;
        let mut progress = |frames: u64, _: &_| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                println!("  {frames} frames, {:.0} a second", rate(frames, began.elapsed()));
            }
        };
        let finished = run(&mut left, right, &options, &mut progress)?;
        println!("{}", finished.coverage);
        println!(
            "{} frames in {:.1} s, {:.0} a second",
            finished.frames,
            finished.took.as_secs_f64(),
            rate(finished.frames, finished.took)
        );
        if let Some(found) = &finished.found {
            self.report(found, options.seed, &mut left, right)?;
            return Ok(false);
        }
        let missing = finished.coverage.missing();
        if !missing.is_empty() {
            println!("FAILED: no frame ended in {missing:?}; more frames, or another seed");
            return Ok(false);
        }
        println!("no difference");
        Ok(true)
    }

    fn report(&self, found: &Found, seed: u64, left: &mut Software, right: &mut dyn Plane) -> Result<()> {
        println!("FAILED: they differ after {} frames (tables {} of the seed)", found.frames, found.tables);
        if !found.alone {
            println!("  not by this frame alone: earlier frames matter, nothing was shrunk");
        }
        println!("  port {}, frame {}", found.case.port, hex::encode(&found.case.frame));
        let words = explain(&found.difference, left.name(), right.name());
        println!("{words}");
        left.load(&found.case.entries)?;
        let outcome = left.frame(found.case.port, &found.case.frame)?;
        let about = format!(
            "swpipe and {} differ, seed {seed}; expected is what swpipe does.\n{words}",
            right.name()
        );
        let file = self.out.join(format!("difference-{seed}.json"));
        write_difference(&file, about, found, &outcome)?;
        println!("written to {}", file.display());
        Ok(())
    }
}

fn write_difference(file: &Path, about: String, found: &Found, outcome: &Outcome) -> Result<()> {
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).doing(|| format!("making {}", parent.display()))?;
    }
    let vectors = VectorFile {
        about,
        entries: found.case.entries.iter().filter_map(EntryText::of).collect(),
        frames: FrameText::of("differs", found.case.port, &found.case.frame, outcome).into_iter().collect(),
        ..VectorFile::default()
    };
    vectors.save(file)
}

fn rate(frames: u64, took: Duration) -> f64 {
    frames as f64 / took.as_secs_f64().max(1e-9)
}

fn clock_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

impl Vectors {
    /// Runs them; whether all is as the files say.
    ///
    /// # Errors
    /// A file is wrong, or the data plane broke.
    pub fn run(&self) -> Result<bool> {
        let files: Vec<(&PathBuf, VectorFile)> =
            self.files.iter().map(|file| Ok((file, VectorFile::load(file)?))).collect::<Result<_>>()?;
        let ports: BTreeSet<PortId> = files.iter().flat_map(|(_, vectors)| vectors.ports()).collect();
        let ports: Vec<PortId> = ports.into_iter().collect();
        self.inputs.with(self.target, &ports, |plane| Self::on(&files, plane))
    }

    fn on(files: &[(&PathBuf, VectorFile)], plane: &mut dyn Plane) -> Result<bool> {
        let (mut right, mut wrong) = (0, 0);
        for (file, vectors) in files {
            println!("{}", file.display());
            let checked = vectors.run(plane).map_err(|error| Error::Input {
                file: file.display().to_string(),
                reason: error.to_string(),
            })?;
            for frame in checked {
                match frame.differs {
                    None => {
                        right += 1;
                        println!("  ok       {}", frame.name);
                    }
                    Some(words) => {
                        wrong += 1;
                        println!("  DIFFERS  {}\n{words}", frame.name);
                    }
                }
            }
        }
        println!("{}: {right} as the files say, {wrong} not", plane.name());
        Ok(wrong == 0)
    }
}
