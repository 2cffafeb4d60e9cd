//! Carrier as the kernel tells it.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use std::time::Instant;

use io_wire::{DEADLINE, SILENCE, in_namespace, run, wire};
use swpipe::io::interface::Interface;
use swpipe::io::link_watch::{LinkChange, LinkState, LinkWatch};

/// Waits until `port` is in `state`; the change that said so.
fn until(watch: &mut LinkWatch, port: usize, state: LinkState) -> LinkChange {
    let deadline = Instant::now() + DEADLINE;
    let mut found = None;
    while found.is_none() {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{:?} did not become {state:?}", watch.name(port));
        watch
            .wait(Some(left), &mut |change| {
                if change.port == port && change.state == state {
                    found = Some(change);
                }
            })
            .expect("wait");
    }
    found.expect("just seen")
}

fn first_states(watch: &mut LinkWatch, count: usize) -> Vec<LinkState> {
    let mut states = vec![None; count];
    let deadline = Instant::now() + DEADLINE;
    while states.iter().any(Option::is_none) {
        assert!(Instant::now() < deadline, "{states:?}");
        watch.wait(Some(DEADLINE), &mut |change| states[change.port] = Some(change.state)).expect("wait");
    }
    states.into_iter().flatten().collect()
}

#[test]
fn every_port_has_a_first_state() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        run("ip link add h2 type veth peer name p2");
        run("ip link set p2 up");
        let names = ["p1", "p2", "h2", "nowhere0"];
        let mut watch = LinkWatch::open(&names).expect("watch");
        let states = first_states(&mut watch, 4);
        assert_eq!(states, [LinkState::Up, LinkState::NoCarrier, LinkState::AdminDown, LinkState::Absent]);
        assert_eq!(watch.wait(Some(SILENCE), &mut |_| {}).expect("wait"), 0, "and no other until it changes");
    });
}

#[test]
fn the_peer_going_down_takes_the_carrier() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let mut watch = LinkWatch::open(&["p1"]).expect("watch");
        until(&mut watch, 0, LinkState::Up);
        for _ in 0..3 {
            run("ip link set h1 down");
            let before = Instant::now();
            until(&mut watch, 0, LinkState::NoCarrier);
            assert!(before.elapsed() < DEADLINE / 5);
            run("ip link set h1 up");
            until(&mut watch, 0, LinkState::Up);
        }
        run("ip link set p1 down");
        until(&mut watch, 0, LinkState::AdminDown);
    });
}

#[test]
fn an_interface_that_is_removed_renamed_or_created_anew_is_told() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let mut watch = LinkWatch::open(&["p1"]).expect("watch");
        let first = until(&mut watch, 0, LinkState::Up);
        assert_eq!(first.interface, Some(Interface::find("p1").expect("p1").index));
        run("ip link del p1");
        assert_eq!(until(&mut watch, 0, LinkState::Absent).interface, None);
        wire("h1", "p1", 1500);
        let second = until(&mut watch, 0, LinkState::Up);
        assert_ne!(second.interface, first.interface);
        run("ip link set p1 down");
        run("ip link set p1 name q1");
        until(&mut watch, 0, LinkState::Absent);
        run("ip link set q1 name p1");
        until(&mut watch, 0, LinkState::AdminDown);
    });
}

#[test]
fn a_storm_of_changes_ends_in_the_right_state() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let mut watch = LinkWatch::open(&["p1"]).expect("watch");
        until(&mut watch, 0, LinkState::Up);
        // More than the socket holds: the watch reads the whole list again.
        run("ip link add h2 type veth peer name p2");
        let mut batch = String::new();
        for _ in 0..1500 {
            batch.push_str("link set h2 up\nlink set p2 up\nlink set h2 down\nlink set p2 down\n");
        }
        batch.push_str("link del h1\n");
        let mut ip = std::process::Command::new("ip")
            .args(["-batch", "-"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("ip");
        std::io::Write::write_all(&mut ip.stdin.take().expect("stdin"), batch.as_bytes()).expect("batch");
        assert!(ip.wait().expect("ip").success());
        until(&mut watch, 0, LinkState::Absent);
    });
}
