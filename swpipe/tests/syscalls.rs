//! System calls of a running pipeline, as strace counts them: some for a batch, none for a frame.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod io_wire;
mod site_file;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dataplane::PortId;
use io_wire::{DEADLINE, Host, in_namespace, wire};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// No more than a ring of ten ports' share of memory holds.
const FRAMES: usize = 1_500;

/// Ended with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Waits for a word on its standard error.
    fn says(&mut self, word: &str) {
        let stderr = self.0.stderr.take().unwrap();
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(word)), "it ended before it said {word:?}");
        // What follows must find a reader.
        std::thread::spawn(move || lines.for_each(drop));
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id() as i32)
    }
}

fn calls_for(backend: &'static str) {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: strace is not installed");
        return;
    }
    in_namespace(move || {
        let folder = tempfile::tempdir().unwrap();
        let (config, counts) = (folder.path().join("site.json"), folder.path().join("calls"));
        let mut json = site_file::wired_json();
        for port in json["sluice:port"].as_array_mut().unwrap() {
            port["mtu"] = 1504.into();
        }
        std::fs::write(&config, json.to_string()).unwrap();
        let site = site::Site::from_json(&json.to_string()).unwrap();
        for port in site.ports.keys() {
            wire(&format!("h{port}"), port, 1500);
        }
        let host = |id: PortId| {
            let port = site.ports.values().find(|port| port.id == id).unwrap();
            Host::on(&format!("h{}", port.name))
        };
        let (lan, wan) = (host(PortId(4 * 4 + 2)), host(PortId(4 * 4 + 1)));
        let spawn = |command: &mut Command| Process(command.stderr(Stdio::piped()).spawn().unwrap());
        let listen = format!("unix:{}", folder.path().join("p4.sock").display());
        let mut pipeline = spawn(
            Command::new(env!("CARGO_BIN_EXE_swpipe"))
                .args(["run", "--workers", "1", "--io", backend, "--listen", &listen, "--config"])
                .arg(&config),
        );
        pipeline.says("ready");
        // It bypasses, as nobody has programmed it. What comes while it stands still is there when it goes on.
        lan.send(&frame(0));
        assert!(wan.receive(DEADLINE).is_some());
        kill(pipeline.pid(), Signal::SIGSTOP).unwrap();
        (0..FRAMES).for_each(|number| lan.send(&frame(number)));
        let mut strace = spawn(
            Command::new("strace").args(["-f", "-c", "-p", &pipeline.pid().to_string(), "-o"]).arg(&counts),
        );
        strace.says("attached");
        kill(pipeline.pid(), Signal::SIGCONT).unwrap();
        for number in 0..FRAMES {
            let came = wan.receive(DEADLINE).unwrap_or_else(|| panic!("{number} of {FRAMES} frames came"));
            assert_eq!(came, frame(number), "in their order");
        }
        kill(strace.pid(), Signal::SIGINT).unwrap();
        strace.0.wait().unwrap();
        let calls = total(&counts);
        println!(
            "{backend}: {calls} system calls for {FRAMES} frames, those of all other threads among them"
        );
        assert!(calls > 0 && calls < FRAMES / 4, "{}", std::fs::read_to_string(&counts).unwrap());
    });
}

fn frame(number: usize) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[52..].copy_from_slice(&(number as u64).to_be_bytes());
    frame
}

/// The last line's third or fourth word, behind percent, seconds and maybe microseconds a call.
fn total(counts: &Path) -> usize {
    let text = std::fs::read_to_string(counts).unwrap();
    let line = text.lines().find(|line| line.ends_with("total")).unwrap_or_else(|| panic!("{text}"));
    let numbers: Vec<&str> = line.split_whitespace().collect();
    let whole = numbers.iter().skip(2).filter_map(|word| word.parse::<usize>().ok());
    // Microseconds a call come first where they are there; calls are more than errors.
    whole.max().unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn af_packet_makes_no_call_for_a_frame() {
    calls_for("af-packet");
}

#[test]
fn af_xdp_makes_no_call_for_a_frame() {
    calls_for("af-xdp");
}
