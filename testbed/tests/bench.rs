//! The bench: what its generator sends, and that its figures add up. Needs root; says so when it can't run.

#![allow(clippy::expect_used, clippy::panic)] // helpers of tests fail by panicking too

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::process::Command;

use serde_json::Value;
use testbed::bench::frames::{Size, mark};
use testbed::bench::generator::{Generator, Load};

fn can_run(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: XDP programs and network namespaces need root");
    }
    root
}

fn generator(size: Size, rate: Option<f64>) -> Generator {
    let load = Load { number: 7, size, rate, stamp_every: 2, interfaces: vec![NonZeroU32::MIN] };
    Generator::load(&load).expect("the kernel takes the program")
}

/// The one's complement sum of a header, which is all ones when its checksum is right.
fn sum(header: &[u8]) -> u32 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn frames_are_right_ipv4_and_of_many_sessions() {
    if !can_run("frames_are_right_ipv4_and_of_many_sessions") {
        return;
    }
    for size in [Size::Fixed(64), Size::Fixed(1518), Size::Imix] {
        let generator = generator(size, None);
        let mut sessions = BTreeSet::new();
        for (number, expected) in size.round().into_iter().cycle().take(3000).enumerate() {
            let frame = generator.preview().expect("a frame");
            assert_eq!(frame.len(), expected as usize - 4, "frame {number} of {size}");
            assert_eq!(sum(&frame[14..34]), 0xffff, "frame {number} of {size}: {:02x?}", &frame[..42]);
            assert_eq!(usize::from(frame[16]) << 8 | usize::from(frame[17]), frame.len() - 14);
            assert_eq!(usize::from(frame[38]) << 8 | usize::from(frame[39]), frame.len() - 34);
            assert_eq!(frame[42..50], mark(7).to_ne_bytes());
            assert_eq!(frame[50..58] != [0; 8], number % 2 == 0, "every second frame bears a stamp");
            sessions.insert(frame[26..38].to_vec());
        }
        assert_eq!(sessions.len(), 3000);
    }
}

#[test]
fn a_paced_frame_waits_until_it_is_due() {
    if !can_run("a_paced_frame_waits_until_it_is_due") {
        return;
    }
    // One in a day: the first is due at once, no other.
    let generator = generator(Size::Fixed(64), Some(1.0 / 86400.0));
    for _ in 0..3 {
        generator.preview().expect("a frame");
    }
    assert_eq!(generator.sent().expect("a count"), 1);
}

#[test]
fn a_quick_run_counts_every_frame() {
    if !can_run("a_quick_run_counts_every_frame") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (json, page) = (directory.path().join("bench.json"), directory.path().join("page.md"));
    let output = Command::new(env!("CARGO_BIN_EXE_testbed"))
        .args(["bench", "--quick", "--systems", "xdp-redirect", "--tolerance", "1000000", "--json"])
        .arg(&json)
        .arg("--page")
        .arg(&page)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(outcome["foreign-frames"].as_u64(), Some(0), "{outcome}");
    let row = &outcome["compared"][0];
    let trial = &row["loss-free"];
    let count = |name: &str| trial[name].as_u64().unwrap_or_else(|| panic!("{name} of {trial}"));
    // Any trial passes with this tolerance: it has found a rate, and nothing arrives that was not sent.
    assert!(count("sent") > 0 && count("taken") <= count("sent"), "{trial}");
    assert!(count("received") > 0 && count("received") <= count("taken"), "{trial}");
    assert_eq!(count("sent"), count("received") + count("lost"), "{trial}");
    // The split is real.
    let share = |name: &str| row["spread"][name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"));
    assert!(share("least") > 0.9 && share("most") < 1.1, "{row}");
    assert!(row["latency"]["system"]["samples"].as_u64() > Some(0), "{row}");
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("kernel, XDP redirect"), "{page}");
}
