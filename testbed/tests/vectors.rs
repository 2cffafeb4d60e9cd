//! The vector files of `dataplane/vectors/frames` on the software pipeline and on the compiled program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use dataplane::{PortId, Reason};
use testbed::differential::bmv2;
use testbed::differential::plane::Plane;
use testbed::differential::reference::{Compiled, Reference};
use testbed::differential::software::Software;
use testbed::differential::vector::VectorFile;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors")
}

fn files() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(vectors().join("frames")).expect("dataplane/vectors/frames");
    let mut files: Vec<PathBuf> = folder.map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    files
}

fn all_are_as_the_files_say(plane: &mut dyn Plane) {
    let mut frames = 0;
    for file in files() {
        let checked = VectorFile::load(&file).expect("a vector file").run(plane).expect("it runs");
        for frame in checked {
            frames += 1;
            if let Some(words) = frame.differs {
                panic!("{}, {}:\n{words}", file.display(), frame.name);
            }
        }
    }
    println!("{}: {frames} frames and counters", plane.name());
}

#[test]
fn the_software_pipeline_does_what_the_files_say() {
    all_are_as_the_files_say(&mut Software::default());
}

#[test]
fn the_compiled_program_does_what_the_files_say() {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build");
    let compiled = Compiled::load(&build).expect("the compiled program in p4/build");
    all_are_as_the_files_say(&mut Reference::new(&compiled).expect("the program"));
}

#[test]
fn bmv2_does_what_the_files_say() {
    let switch = match bmv2::find() {
        Ok(switch) => switch,
        Err(why) => return println!("skipped: {why}"),
    };
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build");
    let compiled = Compiled::load(&build).expect("the compiled program in p4/build");
    let ports: BTreeSet<PortId> =
        files().iter().flat_map(|file| VectorFile::load(file).expect("a vector file").ports()).collect();
    let ports: Vec<PortId> = ports.into_iter().collect();
    let testbed = Path::new(env!("CARGO_BIN_EXE_testbed"));
    let run = bmv2::within(testbed, &switch, &compiled, &ports, |plane| {
        all_are_as_the_files_say(plane);
        Ok(())
    });
    run.expect("BMv2 runs");
}

#[test]
fn every_reason_and_both_steering_modes_are_in_the_files() {
    let mut seen = BTreeSet::new();
    let mut tagged = BTreeSet::new();
    for file in files() {
        let file = VectorFile::load(&file).expect("a vector file");
        seen.extend(file.frames.iter().map(|frame| (frame.verdict, frame.reason.clone())));
        tagged.insert(file.entries.iter().any(|entry| entry.table == "steering"));
    }
    let missing: Vec<_> = Reason::ALL
        .iter()
        // No data plane of the test has a port that is full.
        .filter(|reason| **reason != Reason::PortFull)
        .filter(|reason| !seen.contains(&(reason.verdict(), reason.as_str().map(str::to_owned))))
        .collect();
    assert_eq!(missing, Vec::<&Reason>::new());
    assert_eq!(tagged.len(), 2);
}

#[test]
fn the_files_are_what_the_script_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut script = Command::new("python3");
    script.arg(vectors().join("make_frames.py")).arg(folder.path());
    let Ok(status) = script.status() else {
        println!("skipped: there is no python3");
        return;
    };
    assert!(status.success());
    for file in files() {
        let written = folder.path().join(file.file_name().expect("a name"));
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        assert!(read(&file) == read(&written), "{} differs: run make_frames.py", file.display());
    }
}

#[test]
fn a_wrong_answer_is_told_in_words() {
    let mut file = VectorFile::load(&vectors().join("frames/mtu.json")).expect("a vector file");
    file.frames[1].outputs = vec![];
    file.frames[0].reason = Some("flow".into());
    file.counters[0].packets += 1;
    let checked = file.run(&mut Software::default()).expect("it runs");
    let wrong: Vec<_> = checked.iter().filter(|checked| checked.differs.is_some()).collect();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].differs.as_ref().is_some_and(|words| words.contains("no-flow")));
    assert!(wrong[1].name.contains("copies"));
    file.frames[0].reason = Some("no-such".into());
    assert!(file.run(&mut Software::default()).expect_err("a reason").to_string().contains("no-such"));
}
