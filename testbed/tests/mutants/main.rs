//! Deliberate mistakes in the compiled program, and in what is written to it: the differential test must find each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod edit;
mod list;

use std::collections::HashMap;
use std::path::Path;

use dataplane::PortId;
use dataplane::entry::{Entry, EntryKey};
use serde_json::Value;
use testbed::differential::coverage::Coverage;
use testbed::differential::frames::corpus;
use testbed::differential::plane::{Counts, Outcome, Plane};
use testbed::differential::reference::{Compiled, Reference};
use testbed::differential::run::{Options, ports, run};
use testbed::differential::software::Software;
use testbed::error::Result;

use list::{MUTANTS, Mistake};

/// Within so many frames each must be found.
const FRAMES: u64 = 200_000;
const SEED: u64 = 4242;

fn options(frames: u64) -> Options {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    Options {
        frames: Some(frames),
        seed: SEED,
        ports: ports(),
        corpus: corpus::published(&vectors).expect("published vectors"),
        shrink: false,
    }
}

fn compiled() -> Compiled {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build");
    Compiled::load(&build).expect("the compiled program in p4/build")
}

/// The program with entries that are not as they were asked for.
struct Miswritten {
    plane: Reference,
    edit: fn(&mut Entry),
    /// Places as they were asked for, by places as they were written.
    places: HashMap<EntryKey, EntryKey>,
}

impl Plane for Miswritten {
    fn name(&self) -> &str {
        self.plane.name()
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        let mut written = entries.to_vec();
        written.iter_mut().for_each(self.edit);
        self.places =
            written.iter().zip(entries).map(|(written, asked)| (written.place(), asked.place())).collect();
        self.plane.load(&written)
    }

    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome> {
        self.plane.frame(port, bytes)
    }

    fn counts(&mut self) -> Result<Counts> {
        let mut counts = self.plane.counts()?;
        let rules = std::mem::take(&mut counts.rules);
        counts.rules = rules
            .into_iter()
            .map(|(place, count)| (self.places.get(&place).cloned().unwrap_or(place), count))
            .collect();
        Ok(counts)
    }
}

fn frames_until_found(right: &mut dyn Plane) -> Option<u64> {
    let finished = run(&mut Software::default(), right, &options(FRAMES), &mut |_, _: &Coverage| ());
    finished.expect("both run").found.map(|found| found.frames)
}

fn mutated(compiled: &Compiled, name: &str, edit: fn(&mut Value)) -> Reference {
    let original: Value = serde_json::from_str(&compiled.json).expect("JSON");
    let mut program = original.clone();
    edit(&mut program);
    assert!(program != original, "{name} changes nothing");
    let program = Compiled { json: program.to_string(), p4info: compiled.p4info.clone() };
    Reference::new(&program).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn without_a_mistake_nothing_is_found() {
    let mut right = Reference::new(&compiled()).expect("the program");
    assert_eq!(frames_until_found(&mut right), None);
}

#[test]
fn every_mistake_is_found() {
    let compiled = compiled();
    let mut survivors = Vec::new();
    for (name, mistake) in MUTANTS {
        let found = match mistake {
            Mistake::Program(edit) => frames_until_found(&mut mutated(&compiled, name, *edit)),
            Mistake::Entries(edit) => {
                let plane = Reference::new(&compiled).expect("the program");
                frames_until_found(&mut Miswritten { plane, edit: *edit, places: HashMap::new() })
            }
        };
        match found {
            Some(frames) => println!("{frames:>8} frames  {name}"),
            None => {
                println!("{:>8}         {name}", "NOT");
                survivors.push(*name);
            }
        }
    }
    println!("{} mistakes", MUTANTS.len());
    assert!(survivors.is_empty(), "not found within {FRAMES} frames: {survivors:?}");
}
