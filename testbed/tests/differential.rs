//! The differential test itself: that it finds and shrinks differences, and that there are none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::target::TOFINO1;
use testbed::differential::bmv2;
use testbed::differential::compare::{Difference, explain};
use testbed::differential::coverage::Coverage;
use testbed::differential::frames::corpus;
use testbed::differential::plane::{Counts, Outcome, Plane};
use testbed::differential::reference::{Compiled, Reference};
use testbed::differential::run::{Options, ports, run};
use testbed::differential::software::Software;
use testbed::error::Result;

fn options(frames: u64, seed: u64) -> Options {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../dataplane/vectors");
    Options {
        frames: Some(frames),
        seed,
        ports: ports(),
        corpus: corpus::published(vectors.as_ref()).expect("published vectors"),
        shrink: true,
    }
}

/// The software pipeline with a mistake.
struct Mistaken {
    plane: Software,
    mistake: Mistake,
}

enum Mistake {
    /// Frames with a second tag lose it on the way in.
    Tag,
    /// Counters of rules stay at 0.
    RuleCounters,
}

impl Plane for Mistaken {
    fn name(&self) -> &str {
        "mistaken"
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.plane.load(entries)
    }

    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome> {
        let mut frame = bytes.to_vec();
        if matches!(self.mistake, Mistake::Tag) && matches!(bytes.get(12..18), Some([0x81, 0, _, _, 0x81, 0]))
        {
            frame.drain(12..16);
        }
        self.plane.frame(port, &frame)
    }

    fn counts(&mut self) -> Result<Counts> {
        let mut counts = self.plane.counts()?;
        if matches!(self.mistake, Mistake::RuleCounters) {
            counts.rules.clear();
        }
        Ok(counts)
    }
}

fn quiet(_: u64, _: &Coverage) {}

#[test]
fn one_pipeline_twice_agrees_and_every_reason_is_seen() {
    let finished = run(&mut Software::default(), &mut Software::default(), &options(40_000, 1), &mut quiet)
        .expect("both run");
    println!("{}", finished.coverage);
    assert!(finished.found.is_none());
    assert_eq!(finished.coverage.missing(), []);
    assert_eq!(finished.frames, 40_000);
}

/// Frames of others, the odd ones where they are.
fn with_odd_captures(mut options: Options) -> Options {
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/captures/odd");
    match corpus::captured(odd.as_ref()) {
        Some(frames) => options.corpus.extend(frames),
        None => println!("{odd} is not there: without its captures"),
    }
    options
}

fn compiled(folder: &str) -> Compiled {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build").join(folder);
    Compiled::load(&build).expect("the compiled program in p4/build")
}

fn agree(left: &mut dyn Plane, right: &mut dyn Plane, options: &Options) -> Coverage {
    let finished = run(left, right, options, &mut quiet).expect("both run");
    println!("{} frames in {:?}\n{}", finished.frames, finished.took, finished.coverage);
    if let Some(found) = finished.found {
        let frame = hex::encode(&found.case.frame);
        let words = explain(&found.difference, left.name(), right.name());
        panic!("port {}, frame {frame}, entries {:?}\n{words}", found.case.port, found.case.entries);
    }
    finished.coverage
}

#[test]
fn the_compiled_program_does_what_the_software_pipeline_does() {
    let mut reference = Reference::new(&compiled("")).expect("the program");
    let options = with_odd_captures(options(60_000, 5));
    let coverage = agree(&mut Software::default(), &mut reference, &options);
    assert_eq!(coverage.missing(), []);
}

#[test]
fn the_profile_of_tofino_has_the_limits_of_the_program_for_tofino() {
    let mut limited = Reference::new(&compiled("tofino1-limits")).expect("the program");
    let options = with_odd_captures(options(60_000, 6));
    let coverage = agree(&mut Software::new(&TOFINO1), &mut limited, &options);
    assert_eq!(coverage.missing(), []);
    // They are limits: without them the two differ soon.
    let finished = run(&mut Software::default(), &mut limited, &options, &mut quiet).expect("both run");
    assert!(finished.found.is_some());
}

#[test]
fn bmv2_does_what_the_software_pipeline_does() {
    let switch = match bmv2::find() {
        Ok(switch) => switch,
        Err(why) => return println!("skipped: {why}"),
    };
    let testbed = Path::new(env!("CARGO_BIN_EXE_testbed"));
    let options = Options { ports: bmv2::ports(), ..options(6_000, 8) };
    let coverage = bmv2::within(testbed, &switch, &compiled(""), &bmv2::ports(), |right| {
        Ok(agree(&mut Software::default(), right, &options))
    });
    assert_eq!(coverage.expect("BMv2 runs").missing(), []);
}

#[test]
fn a_mistake_about_frames_is_found_and_shrunk() {
    let mut mistaken = Mistaken { plane: Software::default(), mistake: Mistake::Tag };
    let finished =
        run(&mut Software::default(), &mut mistaken, &options(40_000, 2), &mut quiet).expect("both run");
    let found = finished.found.expect("a difference");
    println!("{}", explain(&found.difference, "swpipe", "mistaken"));
    assert!(found.alone);
    assert!(matches!(found.difference, Difference::Outcome { .. }));
    // The port's role and nothing else; MACs of zeros, both tags, and hardly more.
    assert_eq!(found.case.entries.len(), 1, "{:?}", found.case.entries);
    assert!(found.case.frame.len() <= 18, "{}", hex::encode(&found.case.frame));
    assert_eq!(found.case.frame[..12], [0; 12]);
}

#[test]
fn a_mistake_about_counters_is_found_and_shrunk() {
    let mut mistaken = Mistaken { plane: Software::default(), mistake: Mistake::RuleCounters };
    let finished =
        run(&mut Software::default(), &mut mistaken, &options(40_000, 3), &mut quiet).expect("both run");
    let found = finished.found.expect("a difference");
    println!("{}", explain(&found.difference, "swpipe", "mistaken"));
    assert!(matches!(&found.difference, Difference::Counts(counts) if counts.len() == 1));
    // A link's port, and a rule that matches everything.
    assert_eq!(found.case.entries.len(), 2, "{:?}", found.case.entries);
    assert!(found.case.entries.iter().any(|entry| entry.priority > 0 && entry.key.is_empty()));
    // No frame, or just the header that makes it IPv6.
    assert!(found.case.frame.len() <= 54, "{}", hex::encode(&found.case.frame));
}
