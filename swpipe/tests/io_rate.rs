//! What ports do over veth, in figures: `cargo test --release -p swpipe --test io_rate -- --ignored --nocapture`.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use io_wire::{DEADLINE, Host, enter, frame, in_namespace, readable, run, wire};
use swpipe::io::af_xdp::Share;
use swpipe::io::interface::Interface;
use swpipe::io::{Backend, Edit, Sender, af_packet, keep_alive, open_among};
use xdp::Register::{R1, R2, R3};
use xdp::{Action, Assembler, DeviceMap, LiveRun, Program, helper};

const WHILE: Duration = Duration::from_secs(3);

/// Frames that the kernel counted as received by an interface.
fn received_by(interface: &str) -> u64 {
    let text = run(&format!("ip -s -o link show {interface}"));
    let words: Vec<&str> = text.split("RX:").nth(1).expect("counters").split_whitespace().collect();
    let first = words.iter().position(|word| word.starts_with(|c: char| c.is_ascii_digit())).expect("bytes");
    words[first + 1].parse().expect("packets")
}

/// Where the generator's frames come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    /// Packets of the kernel's, as a host sends them.
    Packets,
    /// Frames that no packet was made of, as a network card's driver has them.
    Frames,
}

/// Sends by `h1`.
enum Bursts {
    Packets { out: Box<dyn Sender>, bytes: Vec<u8> },
    Frames { program: Program, _out: DeviceMap, interface: NonZeroU32, bytes: Vec<u8> },
}

impl Bursts {
    fn new(how: Generator, size: usize) -> Self {
        let bytes = frame(size, 1);
        let interface = Interface::find("h1").expect("h1");
        if how == Generator::Packets {
            let out = af_packet::sender(&interface, 1500, af_packet::Rings::among(1)).expect("sender");
            return Bursts::Packets { out: Box::new(out), bytes };
        }
        let interface = NonZeroU32::new(interface.index.0).expect("an index");
        let out = DeviceMap::new(1).expect("a map");
        out.put(0, interface.get()).expect("put");
        let mut code = Assembler::new();
        code.map(R1, out.as_fd()).mov(R2, 0).mov(R3, Action::Aborted as i32);
        code.call(helper::REDIRECT_MAP).exit();
        let program = Program::load("generator", &code.finish().expect("whole")).expect("loaded");
        Bursts::Frames { program, _out: out, interface, bytes }
    }

    /// Sends about so many; how many.
    fn send(&mut self, frames: u32) -> u64 {
        match self {
            Bursts::Packets { out, bytes } => {
                let mut sent = 0;
                for _ in 0..frames.div_ceil(swpipe::io::BATCH as u32) {
                    for _ in 0..swpipe::io::BATCH {
                        sent += u64::from(out.send(bytes, Edit::Keep));
                    }
                    out.flush();
                }
                sent
            }
            Bursts::Frames { program, interface, bytes, .. } => {
                let run = LiveRun { frames, batch: 64, interface: *interface, queue: 0 };
                program.run_live(bytes, run).expect("run");
                u64::from(frames)
            }
        }
    }
}

/// Sends by `h1` until told to stop; how many.
fn generate(how: Generator, size: usize, stop: &AtomicBool) -> u64 {
    let mut generator = Bursts::new(how, size);
    let mut sent = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        // Frames come by whole runs, which begin with tens of milliseconds of setting up.
        sent += generator.send(if how == Generator::Frames { 1 << 19 } else { 32 });
    }
    sent
}

/// A generator on `h1` and one worker from `p1` to `p2`, on a thread each.
fn rate(backend: Backend, how: Generator, size: usize, keep_alives: bool) {
    wire("h1", "p1", 1500);
    wire("h2", "p2", 1504);
    let _path = keep_alives.then(|| keep_alive::open(&["p1", "p2"]).expect("path"));
    let share = Share::default();
    let open = |name, mtu| open_among(backend, name, mtu, &share, 2).expect("a port");
    let mut receiver = open("p1", 1500).receiver().expect("receiver");
    let mut sender = open("p2", 1504).owner_sender().expect("sender");
    if how == Generator::Frames && backend == Backend::AfPacket {
        // Without it a veth takes no frames that are no packets.
        run("ethtool -K p1 gro on");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let namespace = std::fs::File::open("/proc/thread-self/ns/net").expect("namespace");
    let generator = std::thread::spawn({
        let stop = stop.clone();
        move || {
            enter(namespace);
            generate(how, size, &stop)
        }
    });
    let begin = Instant::now();
    let mut forwarded = 0_u64;
    while begin.elapsed() < WHILE {
        receiver.receive(&mut |frames| {
            for frame in frames {
                forwarded += u64::from(sender.send(frame.bytes, Edit::Push([0x88, 0xb6, 0, 1])));
            }
        });
        sender.flush();
    }
    let seconds = begin.elapsed().as_secs_f64();
    let arrived = received_by("h2");
    stop.store(true, Ordering::Relaxed);
    let sent = generator.join().expect("generator");
    println!(
        "{backend:?}, {how:?}, {size} bytes{}: sent {:.0}/s, forwarded {:.0}/s, arrived {:.0}/s, missed {}, lost {}",
        if keep_alives { ", keep-alive path open" } else { "" },
        sent as f64 / seconds,
        forwarded as f64 / seconds,
        arrived as f64 / seconds,
        receiver.missed(),
        sender.lost()
    );
    assert!(arrived > 0 && arrived <= forwarded);
}

#[test]
#[ignore = "a measurement"]
fn frames_per_second() {
    for (size, keep_alives) in [(64, false), (64, true), (1514, false), (64, false), (64, true)] {
        for backend in [Backend::AfPacket, Backend::AfXdp] {
            for how in [Generator::Packets, Generator::Frames] {
                in_namespace(move || rate(backend, how, size, keep_alives));
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn time_through_a_port_that_sleeps_until_a_frame_comes() {
    for backend in [Backend::AfPacket, Backend::AfXdp] {
        in_namespace(move || time_through(backend));
    }
}

fn time_through(backend: Backend) {
    wire("h1", "p1", 1500);
    wire("h2", "p2", 1500);
    let share = Share::default();
    let open = |name| open_among(backend, name, 1500, &share, 2).expect("a port");
    let mut receiver = open("p1").receiver().expect("receiver");
    let mut sender = open("p2").owner_sender().expect("sender");
    let worker = std::thread::spawn(move || {
        let mut passed = 0;
        while passed < 5000 {
            passed += receiver.receive(&mut |frames| {
                for frame in frames {
                    sender.send(frame.bytes, Edit::Keep);
                }
            });
            sender.flush();
            readable(receiver.descriptor().expect("a descriptor"), Instant::now() + DEADLINE);
        }
    });
    let (from, to) = (Host::on("h1"), Host::on("h2"));
    let mut times: Vec<Duration> = (0..5000)
        .map(|number| {
            let begin = Instant::now();
            from.send(&frame(200, number as u8));
            to.receive(DEADLINE).expect("arrives");
            begin.elapsed()
        })
        .collect();
    worker.join().expect("worker");
    times.sort_unstable();
    println!(
        "{backend:?}, host to host: median {:?}, 99 % {:?}, longest {:?}",
        times[2500], times[4950], times[4999]
    );
}

/// CPU time of the calling thread: what others do with the machine is not in it.
fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    Duration::from(time)
}

/// Brings bursts to `p1`, then takes them from `p1` to `p2`, on one thread; CPU time of each part a frame.
fn cost(backend: Backend, how: Generator, size: usize) {
    const BURST: u32 = 2048;
    const BURSTS: u32 = 200;
    wire("h1", "p1", 1500);
    wire("h2", "p2", 1504);
    let share = Share::default();
    let open = |name, mtu| open_among(backend, name, mtu, &share, 2).expect("a port");
    let mut receiver = open("p1", 1500).receiver().expect("receiver");
    let mut sender = open("p2", 1504).owner_sender().expect("sender");
    if how == Generator::Frames && backend == Backend::AfPacket {
        // Without it a veth takes no frames that are no packets.
        run("ethtool -K p1 gro on");
    }
    let mut generator = Bursts::new(how, size);
    let (mut bringing, mut taking, mut forwarded) = (Duration::ZERO, Duration::ZERO, 0_u64);
    for _ in 0..BURSTS {
        let begin = cpu_time();
        generator.send(BURST);
        let brought = cpu_time();
        loop {
            let received = receiver.receive(&mut |frames| {
                for frame in frames {
                    forwarded += u64::from(sender.send(frame.bytes, Edit::Push([0x88, 0xb6, 0, 1])));
                }
            });
            sender.flush();
            if received == 0 {
                break;
            }
        }
        bringing += brought - begin;
        taking += cpu_time() - brought;
    }
    let each = |time: Duration| time.as_nanos() as u64 / forwarded.max(1);
    println!(
        "{backend:?}, {how:?}, {size} bytes: {} ns to bring a frame to the port, {} ns to forward it; {forwarded} frames, missed {}, lost {}",
        each(bringing),
        each(taking),
        receiver.missed(),
        sender.lost()
    );
    assert!(forwarded > u64::from(BURST * BURSTS) / 2);
}

#[test]
#[ignore = "a measurement"]
fn cpu_time_of_a_frame() {
    for size in [64, 1514] {
        for how in [Generator::Packets, Generator::Frames] {
            for backend in [Backend::AfPacket, Backend::AfXdp, Backend::AfPacket, Backend::AfXdp] {
                in_namespace(move || cost(backend, how, size));
            }
        }
    }
}
