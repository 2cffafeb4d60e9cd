//! Keep-alives by their own path.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use std::time::{Duration, Instant};

use dataplane::keepalive::{Direction, KeepAlive, KeepAliveKey};
use dataplane::{Nanos, PairId};
use io_wire::{DEADLINE, Host, SILENCE, frame, in_namespace, run, tagged, wire};
use swpipe::io::{KeepAliveReceiver, KeepAliveSender, keep_alive};

const KEY: KeepAliveKey = KeepAliveKey([7; 16]);

fn keep_alive_frame(sequence: u64) -> [u8; 60] {
    KeepAlive { pair: PairId(3), direction: Direction::LanToWan, instance: 9, sequence, transmit: Nanos(0) }
        .encode(&KEY)
}

fn take(receiver: &mut impl KeepAliveReceiver, count: usize) -> Vec<(usize, Vec<u8>, Nanos)> {
    let until = Instant::now() + DEADLINE;
    let mut taken = Vec::new();
    while taken.len() < count {
        assert!(Instant::now() < until, "{} of {count} keep-alives came", taken.len());
        receiver
            .receive(DEADLINE, &mut |interface, frame, at| taken.push((interface, frame.to_vec(), at)))
            .expect("receive");
    }
    taken
}

fn nothing_comes(receiver: &mut impl KeepAliveReceiver) -> bool {
    receiver.receive(SILENCE, &mut |_, _, _| {}).expect("receive") == 0
}

#[test]
fn a_round_trip_takes_a_plausible_time_and_arrives_at_the_far_end_alone() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        let (mut sender, mut receiver) = keep_alive::open(&["lan", "wan"]).expect("path");
        for sequence in 0..200 {
            let (interface, far) = if sequence % 2 == 0 { (0, 1) } else { (1, 0) };
            let before = keep_alive::monotonic();
            let sent = sender.send(interface, &mut keep_alive_frame(sequence)).expect("send");
            let taken = take(&mut receiver, 1);
            let after = keep_alive::monotonic();
            let [(at, bytes, received)] = &taken[..] else { panic!("{taken:?}") };
            assert_eq!(*at, far);
            let read = KeepAlive::decode(bytes, &KEY, 9).expect("one of ours");
            assert_eq!((read.sequence, read.transmit), (sequence, sent));
            assert!(before.0 <= sent.0 && sent.0 <= received.0 && received.0 <= after.0);
        }
        assert!(nothing_comes(&mut receiver), "own frames do not come back");
    });
}

#[test]
fn the_receive_time_is_that_of_arrival_not_of_reading() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        let (mut sender, mut receiver) = keep_alive::open(&["lan", "wan"]).expect("path");
        // Nanoseconds from sending to receive time, with a receiver that is busy for 20 ms meanwhile.
        let mut probe = || {
            let sent = sender.send(0, &mut keep_alive_frame(1)).expect("send");
            while keep_alive::monotonic().0 - sent.0 < 20_000_000 {
                std::hint::spin_loop();
            }
            take(&mut receiver, 1)[0].2.0 - sent.0
        };
        // The kernel begins to stamp a moment after it was asked to.
        let until = Instant::now() + DEADLINE;
        while probe() >= 10_000_000 {
            assert!(Instant::now() < until);
        }
        for _ in 0..5 {
            let time = probe();
            assert!(time < 10_000_000, "{time} ns");
        }
    });
}

#[test]
fn other_ethertypes_tags_and_interfaces_are_left_alone() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        wire("other", "outside", 1500);
        let (mut sender, mut receiver) = keep_alive::open(&["wan"]).expect("path");
        let host = Host::on("lan");
        host.send(&frame(60, 1));
        host.send(&tagged(&keep_alive_frame(1), &[(0x8100, 5)]));
        host.send(&tagged(&keep_alive_frame(2), &[(0x8100, 0)]));
        Host::on("other").send(&keep_alive_frame(3));
        assert!(nothing_comes(&mut receiver));
        host.send(&keep_alive_frame(4));
        let taken = take(&mut receiver, 1);
        assert_eq!(KeepAlive::decode(&taken[0].1, &KEY, 9).map(|read| read.sequence), Ok(4));
        assert!(sender.send(1, &mut keep_alive_frame(5)).is_err(), "one interface is open");
        assert!(sender.send(0, &mut [0; 45]).is_err(), "no room for the transmit time");
    });
}

#[test]
fn a_burst_arrives_whole_and_in_order() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        let (mut sender, mut receiver) = keep_alive::open(&["lan", "wan"]).expect("path");
        let times: Vec<Nanos> = (0..1000)
            .map(|sequence| sender.send(0, &mut keep_alive_frame(sequence)).expect("send"))
            .collect();
        let taken = take(&mut receiver, 1000);
        for (sequence, (_, bytes, received)) in taken.iter().enumerate() {
            let read = KeepAlive::decode(bytes, &KEY, 9).expect("one of ours");
            assert_eq!((read.sequence, read.transmit), (sequence as u64, times[sequence]));
            assert!(received.0 >= read.transmit.0);
        }
        assert_eq!(receiver.missed(), 0);
    });
}

#[test]
fn a_link_that_is_down_is_named_and_the_path_survives_it() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        wire("lan2", "wan2", 1500);
        let (mut sender, mut receiver) = keep_alive::open(&["lan", "wan", "lan2", "wan2"]).expect("path");
        run("ip link set lan down");
        let error = sender.send(0, &mut keep_alive_frame(1)).expect_err("down");
        assert!(error.to_string().contains("lan"), "{error}");
        run("ip link del lan2");
        let error = sender.send(2, &mut keep_alive_frame(1)).expect_err("gone");
        assert!(error.to_string().contains("lan2"), "{error}");
        assert!(nothing_comes(&mut receiver));
        run("ip link set lan up");
        // Carrier comes back a moment after the link is up.
        let until = Instant::now() + DEADLINE;
        while sender.send(0, &mut keep_alive_frame(2)).is_err() {
            assert!(Instant::now() < until);
        }
        assert_eq!(take(&mut receiver, 1)[0].0, 1);
        // Halves work from two threads.
        let reading = std::thread::spawn(move || take(&mut receiver, 50).len());
        for sequence in 0..50 {
            sender.send(1, &mut keep_alive_frame(sequence)).expect("send");
        }
        assert_eq!(reading.join().expect("reader"), 50);
    });
}

#[test]
fn waiting_ends_at_the_timeout() {
    in_namespace(|| {
        wire("lan", "wan", 1500);
        let (_sender, mut receiver) = keep_alive::open(&["lan", "wan"]).expect("path");
        let before = Instant::now();
        assert_eq!(receiver.receive(Duration::from_millis(20), &mut |_, _, _| {}).expect("receive"), 0);
        let waited = before.elapsed();
        assert!(waited >= Duration::from_millis(20) && waited < DEADLINE, "{waited:?}");
        let error = keep_alive::open(&["lan", "nowhere0"]).err().expect("missing");
        assert!(error.to_string().contains("nowhere0"), "{error}");
    });
}
