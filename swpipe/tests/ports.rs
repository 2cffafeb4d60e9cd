//! Ports that come, go and move while the pipeline runs, over veth pairs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod io_wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use dataplane::entry::Update;
use dataplane::tables::{LinkEntry, LinkForwarding, PortEntry, PortRole};
use dataplane::{LinkIndex, PortId, Side};
use io_wire::{DEADLINE, Host, SILENCE, backend, frame, great_mtu, in_namespace, run, wire};
use swpipe::device::{Atomicity, Device};
use swpipe::io::IoError;
use swpipe::run::{Options, Pipeline, PortSpec, RunError};

fn options() -> Options {
    Options { backend: backend(), ..Options::default() }
}

fn spec(id: u16, interface: &str, mtu: u32) -> PortSpec {
    PortSpec { id: PortId(id), name: format!("port-{id}"), interface: interface.to_owned(), mtu }
}

/// Wires by number: host `hN`, interface `pN`, port N.
fn wires(numbers: impl IntoIterator<Item = u16>) {
    for number in numbers {
        wire(&format!("h{number}"), &format!("p{number}"), 1500);
    }
}

fn specs(numbers: impl IntoIterator<Item = u16>) -> Vec<PortSpec> {
    numbers.into_iter().map(|number| spec(number, &format!("p{number}"), 1500)).collect()
}

fn host(number: u16) -> Host {
    Host::on(&format!("h{number}"))
}

/// Entries of a link between two ports; what comes in by one leaves by the other.
fn link(index: u8, lan: u16, wan: u16) -> Vec<Update> {
    let ends = [(Side::Lan, lan, wan), (Side::Wan, wan, lan)];
    ends.into_iter()
        .flat_map(|(side, port, peer)| {
            let (link, port, peer) = (LinkIndex(index), PortId(port), PortId(peer));
            let role = PortRole::Link { link, side, peer };
            let forwarding = LinkForwarding::Port(port);
            [PortEntry { port, role }.entry(), LinkEntry { link, side, forwarding }.entry()]
        })
        .map(Update::Insert)
        .collect()
}

fn without(updates: Vec<Update>) -> Vec<Update> {
    updates.into_iter().map(|update| Update::Delete(update.entry().clone())).collect()
}

fn write(device: &Device, updates: &[Update]) {
    device.write(updates, Atomicity::AllOrNothing).unwrap();
}

fn start(ports: &[PortSpec], workers: usize) -> Pipeline {
    Pipeline::start(ports, &Options { workers: Some(workers), ..options() }).unwrap()
}

/// Tries again while a process that another test starts holds a claim that this one has given back, until it runs
/// its program.
fn unclaimed<T>(attempt: impl Fn() -> Result<T, RunError>) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        match attempt() {
            Err(RunError::Port { source: IoError::Claimed { .. }, .. }) if Instant::now() < until => {}
            other => return other.unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

#[track_caller]
fn passes(from: &Host, to: &Host, seed: u8) {
    from.send(&frame(100, seed));
    assert_eq!(to.receive(DEADLINE), Some(frame(100, seed)));
}

fn silent(from: &Host, to: &Host) -> bool {
    from.send(&frame(100, 1));
    to.receive(SILENCE).is_none()
}

/// What came of a stream of numbered frames.
#[derive(Debug, PartialEq, Eq)]
struct Stream {
    sent: u64,
    lost: u64,
    twice: u64,
}

/// Sends numbered frames from `from` to `to` as fast as they arrive, a few hundred being on the way, while `change`
/// runs, and for as long as it takes to send some thousands.
fn under_traffic(from: Host, to: Host, change: impl FnOnce()) -> Stream {
    let (done, arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let sender = std::thread::spawn({
        let (done, arrived) = (Arc::clone(&done), Arc::clone(&arrived));
        move || {
            let mut sent = 0_u64;
            let mut last = (0, Instant::now());
            while !done.load(SeqCst) || sent < 5000 {
                let now = arrived.load(SeqCst);
                if last.0 != now {
                    last = (now, Instant::now());
                }
                // A frame that is lost leaves its place; the stream stops where none of them arrive any more.
                if sent >= now + 256 {
                    if last.1.elapsed() > DEADLINE {
                        break;
                    }
                    std::thread::yield_now();
                    continue;
                }
                let mut bytes = frame(100, 3);
                bytes[14..22].copy_from_slice(&sent.to_be_bytes());
                from.send(&bytes);
                sent += 1;
            }
            sent
        }
    });
    let receiver = std::thread::spawn({
        let (done, arrived) = (Arc::clone(&done), Arc::clone(&arrived));
        move || {
            let (mut next, mut lost, mut twice) = (0, 0, 0);
            loop {
                let Some(bytes) = to.receive(Duration::from_millis(500)) else {
                    if done.load(SeqCst) {
                        break;
                    }
                    continue;
                };
                let number = u64::from_be_bytes(bytes[14..22].try_into().unwrap());
                if number < next {
                    twice += 1;
                } else {
                    lost += number - next;
                    next = number + 1;
                }
                arrived.store(next, SeqCst);
            }
            (next, lost, twice)
        }
    });
    change();
    done.store(true, SeqCst);
    let sent = sender.join().unwrap();
    let (next, lost, twice) = receiver.join().unwrap();
    Stream { sent, lost: lost + (sent - next), twice }
}

#[test]
fn links_come_to_a_pipeline_that_began_with_none() {
    in_namespace(|| {
        wires(1..=4);
        let pipeline = start(&[], 2);
        assert!(pipeline.ports().is_empty());
        write(pipeline.device(), &link(0, 1, 2));
        pipeline.set_ports(&specs([1, 2])).unwrap();
        let hosts = [1, 2, 3, 4].map(host);
        passes(&hosts[0], &hosts[1], 1);
        pipeline.set_ports(&specs(1..=4)).unwrap();
        assert!(silent(&hosts[2], &hosts[3]), "nothing is forwarded before tables are written");
        write(pipeline.device(), &link(1, 3, 4));
        for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            passes(&hosts[from], &hosts[to], 2);
        }
        assert_eq!(pipeline.ports().specs(), specs(1..=4));

        // A port that came later has its interface followed as well.
        run("ip link del p4");
        passes(&hosts[0], &hosts[1], 3);
        wire("h4", "p4", 1500);
        let again = host(4);
        let until = Instant::now() + DEADLINE;
        while silent(&hosts[2], &again) {
            assert!(Instant::now() < until, "nothing by the interface that was created anew");
        }
        passes(&again, &hosts[2], 4);
    });
}

#[test]
fn no_frame_is_lost_on_a_link_while_another_comes_and_goes() {
    for workers in [1, 2] {
        in_namespace(move || {
            wires(1..=4);
            let pipeline = start(&specs([1, 2]), workers);
            write(pipeline.device(), &link(0, 1, 2));
            let stream = under_traffic(host(1), host(2), || {
                for round in 0..5 {
                    unclaimed(|| pipeline.set_ports(&specs(1..=4)));
                    write(pipeline.device(), &link(1, 3, 4));
                    passes(&host(3), &host(4), round);
                    write(pipeline.device(), &without(link(1, 3, 4)));
                    pipeline.set_ports(&specs([1, 2])).unwrap();
                }
            });
            assert!(stream.sent >= 5000, "{stream:?}");
            assert_eq!((stream.lost, stream.twice), (0, 0), "{workers} workers: {stream:?}");
        });
    }
}

#[test]
fn a_port_that_goes_gives_its_interface_back() {
    in_namespace(|| {
        wires(1..=4);
        let pipeline = start(&specs(1..=4), 2);
        write(pipeline.device(), &[link(0, 1, 2), link(1, 3, 4)].concat());
        let hosts = [1, 2, 3, 4].map(host);
        passes(&hosts[2], &hosts[3], 1);
        pipeline.set_ports(&specs([1, 2])).unwrap();
        assert!(silent(&hosts[2], &hosts[3]));
        assert!(silent(&hosts[3], &hosts[2]));
        for interface in ["p3", "p4"] {
            let shown = run(&format!("ip -d link show {interface}"));
            assert!(shown.contains("promiscuity 0"), "{shown}");
        }
        let other = unclaimed(|| Pipeline::start(&specs([3, 4]), &options()));
        write(other.device(), &link(0, 3, 4));
        passes(&hosts[2], &hosts[3], 2);
        passes(&hosts[0], &hosts[1], 3);
        // And it cannot be taken from whoever has it.
        let refused = pipeline.set_ports(&specs(1..=3)).unwrap_err().to_string();
        assert!(refused.contains("port-3") && refused.contains("another pipeline"), "{refused}");
        pipeline.set_ports(&[]).unwrap();
        assert!(silent(&hosts[0], &hosts[1]));
    });
}

#[test]
fn an_interface_moves_to_another_port_number() {
    in_namespace(|| {
        wires(1..=6);
        let pipeline = start(&specs(1..=4), 2);
        write(pipeline.device(), &[link(0, 1, 2), link(1, 3, 4)].concat());
        let hosts = [1, 2, 3, 4, 5, 6].map(host);
        // p3 and p4 are ports 7 and 8 from now on.
        let mut next = specs([1, 2]);
        next.extend([spec(7, "p3", 1500), spec(8, "p4", 1500)]);
        let opening = pipeline.ports().open(&next).unwrap();
        passes(&hosts[2], &hosts[3], 1);
        let changes = [without(link(1, 3, 4)), vec![]].concat();
        write(pipeline.device(), &changes);
        write(pipeline.device(), &link(1, 7, 8));
        opening.commit();
        passes(&hosts[2], &hosts[3], 2);
        passes(&hosts[3], &hosts[2], 3);
        passes(&hosts[0], &hosts[1], 4);

        // Two links change cables; port 1 gets an interface that was none's.
        let swapped = [spec(1, "p5", 1500), spec(2, "p4", 1500), spec(7, "p3", 1500), spec(8, "p2", 1500)];
        pipeline.set_ports(&swapped).unwrap();
        for (from, to) in [(4, 3), (3, 4), (2, 1), (1, 2)] {
            passes(&hosts[from], &hosts[to], 5);
        }
        for host in &hosts {
            assert_eq!(host.receive(SILENCE), None);
        }
        let shown = run("ip -d link show p1");
        assert!(shown.contains("promiscuity 0"), "{shown}");
    });
}

#[test]
fn a_refused_change_names_the_port_and_changes_nothing() {
    in_namespace(|| {
        wires(1..=3);
        // A macvlan goes no further than the interface below it.
        run("ip link add link h3 name m0 type macvlan");
        let pipeline = start(&specs([1, 2]), 2);
        write(pipeline.device(), &link(0, 1, 2));
        let (lan, wan) = (host(1), host(2));
        let refused = |next: &[PortSpec]| {
            let error = pipeline.set_ports(next).unwrap_err().to_string();
            assert_eq!(pipeline.ports().specs(), specs([1, 2]), "{error}");
            passes(&lan, &wan, 1);
            passes(&wan, &lan, 1);
            for interface in ["p1", "p3"] {
                assert!(run(&format!("ip link show {interface}")).contains("mtu 1500"), "{error}");
            }
            error
        };
        let grown = [spec(1, "p1", 3000), spec(2, "p2", 1500), spec(3, "p3", 3000)];
        let missing = refused(&[&grown[..], &[spec(4, "nowhere", 1500)]].concat());
        assert!(missing.contains("port-4") && missing.contains("nowhere"), "{missing}");
        let narrow = refused(&[&grown[..], &[spec(4, "m0", 3000)]].concat());
        assert!(narrow.contains("port-4") && narrow.contains("m0"), "{narrow}");
        let twice = refused(&[spec(1, "p1", 1500), spec(1, "p3", 1500)]);
        assert!(twice.contains("number 1"), "{twice}");
        let shared = refused(&[spec(1, "p1", 1500), spec(3, "p1", 1500)]);
        assert!(shared.contains("port-1") && shared.contains("port-3"), "{shared}");
        // Nothing is held of what was opened on the way.
        let other = unclaimed(|| Pipeline::start(&specs([3]), &options()));
        let gone = other.ports().clone();
        other.stop();
        assert!(matches!(gone.set(&specs([3])), Err(RunError::Stopped)));
        pipeline.set_ports(&specs([1, 2])).unwrap();
    });
}

#[test]
fn a_change_that_is_not_committed_is_taken_back() {
    in_namespace(|| {
        wires(1..=5);
        let pipeline = start(&specs(1..=4), 2);
        write(pipeline.device(), &[link(0, 1, 2), link(1, 3, 4)].concat());
        let hosts = [1, 2, 3, 4, 5].map(host);
        // Port 1 widened, 2 on another interface, 3 gone, and 9 on the one of 2.
        let next = [spec(1, "p1", 3000), spec(2, "p5", 1500), spec(4, "p4", 1500), spec(9, "p2", 1500)];
        let opening = pipeline.ports().open(&next).unwrap();
        assert!(matches!(pipeline.set_ports(&[]), Err(RunError::Changing)));
        assert!(silent(&hosts[0], &hosts[1]), "port 2 is on the way to another interface");
        assert_eq!(hosts[4].receive(SILENCE), None);
        passes(&hosts[2], &hosts[3], 1);
        drop(opening);
        for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            passes(&hosts[from], &hosts[to], 2);
        }
        assert_eq!(pipeline.ports().specs(), specs(1..=4));
        assert!(run("ip link show p1").contains("mtu 1500"));
        assert!(run("ip -d link show p5").contains("promiscuity 0"));
        pipeline.set_ports(&specs([1, 2])).unwrap();
        passes(&hosts[0], &hosts[1], 3);
    });
}

#[test]
fn a_greater_mtu_takes_no_frame_of_the_port() {
    in_namespace(|| {
        wires([1, 2]);
        for host in ["h1", "h2"] {
            run(&format!("ip link set {host} mtu {}", great_mtu()));
        }
        let pipeline = start(&specs([1, 2]), 1);
        write(pipeline.device(), &link(0, 1, 2));
        let (lan, wan) = (host(1), host(2));
        let stream = under_traffic(host(1), host(2), || {
            for mtu in [1600, 2000, 3000, great_mtu()] {
                pipeline.set_ports(&[spec(1, "p1", mtu), spec(2, "p2", mtu)]).unwrap();
            }
        });
        assert_eq!(stream.lost, 0, "{stream:?}");
        // Both rings hear what comes between two system calls.
        assert!(stream.twice < 256, "{stream:?}");
        while wan.receive(SILENCE).is_some() {}
        let longest = frame(great_mtu() as usize + 14, 7);
        lan.send(&longest);
        assert_eq!(wan.receive(DEADLINE), Some(longest));
        // A smaller one is the tables' matter.
        pipeline.set_ports(&specs([1, 2])).unwrap();
        passes(&lan, &wan, 8);
        assert!(run("ip link show p1").contains(&format!("mtu {}", great_mtu())));
    });
}
