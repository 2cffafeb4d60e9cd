//! Frames through AF_XDP ports, byte for byte. Hosts have their transmit offloads off, as the back end asks for.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod io_wire;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Instant;

use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use io_wire::{DEADLINE, Host, SILENCE, frame, in_namespace, run, settle, silent, tagged, take, wire};
use swpipe::io::af_xdp::Share;
use swpipe::io::{
    Backend, Edit, KeepAliveReceiver, Notice, ProbeHeaders, Receiver, Sender, keep_alive, open, open_among,
};

/// Host `h1` - port `p1`, port `p2` - host `h2`, the ports of one worker.
struct Wires {
    from: Host,
    receiver: Box<dyn Receiver>,
    sender: Box<dyn Sender>,
    to: Host,
    share: Share,
}

fn two_wires(mtu: u32) -> Wires {
    wire("h1", "p1", mtu);
    wire("h2", "p2", mtu + 4);
    let share = Share::default();
    let one = open_among(Backend::AfXdp, "p1", mtu, &share, 2).expect("p1");
    let two = open_among(Backend::AfXdp, "p2", mtu + 4, &share, 2).expect("p2");
    let receiver = one.receiver().expect("receiver");
    let sender = two.owner_sender().expect("sender");
    Wires { from: Host::on("h1"), receiver, sender, to: Host::on("h2"), share }
}

impl Wires {
    /// Sends one frame all the way; what the far host gets.
    fn through(&mut self, bytes: &[u8], edit: Edit) -> Vec<u8> {
        self.from.send(bytes);
        self.forward(1, |_, frame| {
            assert_eq!(frame, bytes, "received otherwise than sent, {} bytes", bytes.len());
            vec![edit]
        });
        self.to.receive(DEADLINE).expect("arrives")
    }

    /// Takes `count` frames and sends each as often as it has edits.
    fn forward(&mut self, count: usize, mut edits: impl FnMut(usize, &[u8]) -> Vec<Edit>) {
        let until = Instant::now() + DEADLINE;
        let mut seen = 0;
        while seen < count {
            let sender = &mut self.sender;
            let received = self.receiver.receive(&mut |frames| {
                for frame in frames {
                    for edit in edits(seen, frame.bytes) {
                        assert!(sender.send(frame.bytes, edit), "{} bytes not queued", frame.bytes.len());
                    }
                    seen += 1;
                }
            });
            self.sender.flush();
            if received == 0 {
                assert!(Instant::now() < until, "{seen} of {count} frames came");
                io_wire::readable(self.receiver.descriptor().expect("a descriptor"), until);
            }
        }
    }
}

#[test]
fn frames_of_every_size_pass_byte_for_byte_with_each_edit() {
    in_namespace(|| {
        let mut wires = two_wires(3400);
        let sizes = (60..=200).chain((201..3400).step_by(37)).chain(3401..=3414);
        for (count, size) in sizes.enumerate() {
            let bytes = frame(size, count as u8);
            assert_eq!(wires.through(&bytes, Edit::Keep), bytes);
            let header = [0x88, 0xb6, 3, count as u8];
            let steered = wires.through(&bytes, Edit::Push(header));
            assert_eq!(steered, [&bytes[..12], &header, &bytes[12..]].concat());
            if steered.len() <= 3414 {
                assert_eq!(wires.through(&steered, Edit::Pop), bytes);
            }
        }
        let Wires { receiver, sender, .. } = &mut wires;
        assert_eq!((receiver.missed(), receiver.truncated(), receiver.unfinished_checksums()), (0, 0, 0));
        assert_eq!(sender.lost(), 0);
    });
}

#[test]
fn tags_of_every_kind_pass() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        let plain = frame(300, 7);
        for tags in [
            &[(0x8100, 5)][..],
            &[(0x8100, 0)],
            &[(0x8100, 0xffff)],
            &[(0x88a8, 100)],
            &[(0x88a8, 100), (0x8100, 200)],
            &[(0x8100, 7), (0x8100, 7)],
            &[(0x9100, 9), (0x8100, 10)],
            &[(0x88a8, 1), (0x8100, 2), (0x8100, 3)],
        ] {
            let bytes = tagged(&plain, tags);
            assert_eq!(wires.through(&bytes, Edit::Keep), bytes, "{tags:x?}");
        }
    });
}

#[test]
fn a_frame_sent_twice_is_two_frames() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        let header = [0x88, 0xb6, 1, 2];
        for (first, second) in [
            (Edit::Keep, Edit::Push(header)),
            (Edit::Push(header), Edit::Keep),
            (Edit::Pop, Edit::Push(header)),
        ] {
            let bytes = frame(200, 9);
            wires.from.send(&bytes);
            wires.forward(1, |_, _| vec![first, second]);
            for edit in [first, second] {
                assert_eq!(wires.to.receive(DEADLINE), Some(swpipe::edit::edited(&bytes, edit)));
            }
        }
    });
}

#[test]
fn what_a_port_sends_it_does_not_receive() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::AfXdp, "p1", 1500).expect("p1");
        let (mut receiver, mut sender) =
            (port.receiver().expect("receiver"), port.owner_sender().expect("sender"));
        let host = Host::on("h1");
        assert!(sender.send(&frame(100, 1), Edit::Keep));
        sender.flush();
        assert_eq!(host.receive(DEADLINE), Some(frame(100, 1)));
        host.send(&frame(100, 2));
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 2)]);
        assert!(silent(receiver.as_mut()));
    });
}

#[test]
fn batches_keep_order_and_a_burst_beyond_the_ring_is_counted_once() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        let numbered = |number: u32| {
            let mut bytes = frame(1514, 0);
            bytes[14..18].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        let sent = 10_000_u32;
        for number in 0..sent {
            wires.from.send(&numbered(number));
        }
        let receiver = &mut wires.receiver;
        let mut next = 0;
        let mut batch = 0;
        loop {
            let taken = receiver.receive(&mut |frames| {
                for frame in frames {
                    assert_eq!(frame.bytes, numbered(next), "out of order at {next}");
                    next += 1;
                }
            });
            batch = batch.max(taken);
            if taken == 0 {
                break;
            }
        }
        assert_eq!(batch, swpipe::io::BATCH);
        assert!(next > 1000, "a ring of {next} frames");
        assert_eq!(u64::from(next) + receiver.missed(), u64::from(sent));
        assert_eq!(receiver.missed(), 0, "counted since the last call");
        wires.from.send(&frame(60, 1));
        assert_eq!(take(receiver.as_mut(), 1), [frame(60, 1)]);
    });
}

#[test]
fn a_full_queue_refuses_and_goes_on_after_a_flush() {
    in_namespace(|| {
        let Wires { mut sender, to, .. } = two_wires(1500);
        let mut queued = 0_u64;
        while sender.send(&frame(200, queued as u8), Edit::Keep) {
            queued += 1;
            assert!(queued < 100_000, "never full");
        }
        assert!(queued >= 256, "{queued}");
        for round in 0..3 {
            if round > 0 {
                for number in 0..queued {
                    assert!(sender.send(&frame(200, number as u8), Edit::Keep), "round {round}, {number}");
                }
            }
            sender.flush();
            let mut got = 0;
            let mut expected = (0..queued).peekable();
            while got + sender.lost() < queued && expected.peek().is_some() {
                let bytes = to.receive(DEADLINE).expect("arrives");
                assert_eq!(bytes, frame(200, expected.next().expect("more") as u8));
                got += 1;
                sender.flush();
            }
            assert_eq!(got, queued);
            assert!(!sender.pending());
        }
    });
}

#[test]
fn frames_that_the_port_does_not_carry_are_refused() {
    in_namespace(|| {
        let Wires { mut sender, to, .. } = two_wires(1500);
        // p2 carries 1504 bytes after the header, and a VLAN tag beyond that.
        let longest = frame(1518, 1);
        let with_tag = tagged(&longest, &[(0x8100, 5)]);
        for bytes in [longest, with_tag] {
            assert!(sender.send(&bytes, Edit::Keep), "{} bytes", bytes.len());
            sender.flush();
            assert_eq!(to.receive(DEADLINE), Some(bytes));
        }
        assert!(!sender.send(&frame(1519, 1), Edit::Keep));
        assert!(!sender.send(&frame(1518, 1), Edit::Push([0x88, 0xb6, 0, 0])));
        assert!(!sender.send(&frame(20_000, 1), Edit::Keep));
        assert!(!sender.send(&[0; 13], Edit::Keep));
        assert!(!sender.send(&[0; 17], Edit::Pop));
        assert!(!sender.send(&[], Edit::Push([0; 4])));
        sender.flush();
        assert_eq!(to.receive(SILENCE), None);
        assert_eq!(sender.lost(), 0, "refused, not lost");
    });
}

#[test]
fn a_port_goes_on_after_its_link_was_down() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        let Wires { from, receiver, sender, to, .. } = &mut wires;
        let mut flush_down = |what: &str| {
            let mut queued = 0_u64;
            let mut lost = 0;
            // Many times the ring: it must not jam.
            for number in 0..3000_u32 {
                if sender.send(&frame(100, number as u8), Edit::Keep) {
                    queued += 1;
                }
                if number % 8 == 7 {
                    sender.flush();
                    lost += sender.lost();
                }
            }
            sender.flush();
            sender.flush();
            lost += sender.lost();
            assert_eq!(lost, queued, "{what}: lost of queued");
            assert_eq!(queued, 3000, "{what}: the ring has room again after each flush");
        };
        run("ip link set h2 down");
        flush_down("no carrier");
        run("ip link set p2 down");
        flush_down("down");
        run("ip link set h2 up");
        run("ip link set p2 up");
        run("ip link set p1 down");
        assert!(silent(receiver.as_mut()));
        run("ip link set p1 up");
        settle("h1");
        settle("p2");

        // Nothing of what was lost comes late.
        assert_eq!(to.receive(SILENCE), None);
        from.send(&frame(333, 9));
        let frames = take(receiver.as_mut(), 1);
        assert_eq!(frames, [frame(333, 9)]);
        assert!(sender.send(&frames[0], Edit::Keep));
        sender.flush();
        assert_eq!(to.receive(DEADLINE), Some(frame(333, 9)));
        assert_eq!(sender.lost(), 0);
    });
}

#[test]
fn a_port_whose_interface_is_deleted_falls_silent_and_a_new_one_works() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        let Wires { from, receiver, sender, share, .. } = &mut wires;
        from.send(&frame(100, 1));
        assert!(sender.send(&frame(100, 2), Edit::Keep));
        run("ip link del p1");
        run("ip link del p2");
        // What came before is still there.
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 1)]);
        assert!(silent(receiver.as_mut()));
        let mut ready = 0;
        for _ in 0..200 {
            receiver.receive(&mut |_| {});
            ready +=
                u32::from(io_wire::readable(receiver.descriptor().expect("a descriptor"), Instant::now()));
        }
        assert!(ready <= 64, "{ready} of 200 polls");
        sender.flush();
        assert_eq!(sender.lost(), 1);
        for number in 0..2000_u32 {
            assert!(sender.send(&frame(100, number as u8), Edit::Keep));
            sender.flush();
        }
        assert_eq!(sender.lost(), 2000);
        // A new interface of the name is another port; the old halves are still there.
        wire("h1", "p1", 1500);
        let again = open_among(Backend::AfXdp, "p1", 1500, share, 2).expect("p1");
        let mut receiver = again.receiver().expect("receiver");
        let host = Host::on("h1");
        host.send(&frame(100, 4));
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 4)]);
    });
}

#[test]
fn keep_alives_pass_to_their_own_path_and_are_handed_over_too() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::AfXdp, "p1", 1500).expect("p1");
        let mut receiver = port.receiver().expect("receiver");
        let mut path = keep_alive::receiver(&["p1"], &ProbeHeaders::default()).expect("path");
        let (stack, host) = (Host::on("p1"), Host::on("h1"));
        let mut keep_alive = frame(64, 1);
        keep_alive[12..14].copy_from_slice(&KEEP_ALIVE_ETHERTYPE.to_be_bytes());
        let begin = keep_alive::monotonic();
        host.send(&frame(64, 2));
        host.send(&keep_alive);
        host.send(&frame(64, 3));
        let mut all = take(receiver.as_mut(), 3);
        all.sort();
        let mut expected = [keep_alive.clone(), frame(64, 2), frame(64, 3)];
        expected.sort();
        assert_eq!(all, expected);
        assert!(silent(receiver.as_mut()));
        assert_eq!(stack.receive(DEADLINE), Some(keep_alive.clone()));
        assert_eq!(stack.receive(SILENCE), None, "the host sees nothing else");
        let mut arrived = Vec::new();
        path.receive(DEADLINE, &mut |at, bytes, time| arrived.push((at, bytes.to_vec(), time)))
            .expect("received");
        let [(0, bytes, time)] = &arrived[..] else { panic!("{arrived:?}") };
        assert_eq!(*bytes, keep_alive);
        assert!(*time >= begin && *time <= keep_alive::monotonic());
        assert_eq!(receiver.missed(), 0);
    });
}

#[test]
fn a_held_receiver_takes_nothing_and_halves_of_one_interface_change_without_a_gap() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let share = Share::default();
        let host = Host::on("h1");
        let old = open_among(Backend::AfXdp, "p1", 1500, &share, 1).expect("p1");
        let mut first = old.held_receiver().expect("receiver");
        host.send(&frame(64, 1));
        assert!(silent(first.as_mut()));
        first.release().expect("released");
        host.send(&frame(64, 2));
        assert_eq!(take(first.as_mut(), 1), [frame(64, 2)]);
        let new = open_among(Backend::AfXdp, "p1", 1500, &share, 1).expect("p1 again");
        let mut second = new.held_receiver().expect("receiver");
        second.release().expect("released");
        host.send(&frame(64, 3));
        first.hold().expect("held");
        host.send(&frame(64, 4));
        assert_eq!(take(second.as_mut(), 2), [frame(64, 3), frame(64, 4)]);
        drop((first, old));
        host.send(&frame(64, 5));
        assert_eq!(take(second.as_mut(), 1), [frame(64, 5)]);
        second.hold().expect("held");
        host.send(&frame(64, 6));
        assert!(silent(second.as_mut()));
        drop((second, new));
        assert!(!run("ip link show p1").contains("xdp"));
    });
}

#[test]
fn no_chunk_is_lost_in_a_million_frames() {
    in_namespace(|| {
        let mut wires = two_wires(1500);
        wire("h3", "p3", 1500);
        // Keeps the memory; its rings have no chunk, since no receiver is released.
        let kept = open_among(Backend::AfXdp, "p3", 1500, &wires.share, 2).expect("p3");
        let mut frames_seen = 0_u64;
        let bytes = frame(64, 1);
        let header = [0x88, 0xb6, 0, 1];
        while frames_seen < 1_000_000 {
            for _ in 0..256 {
                wires.from.send(&bytes);
            }
            let mut batches = 0;
            loop {
                let sender = &mut wires.sender;
                let received = wires.receiver.receive(&mut |frames| {
                    for frame in frames {
                        frames_seen += 1;
                        // Passed on, steered, dropped, copied, refused.
                        match frames_seen % 7 {
                            0 => {}
                            1 => drop((
                                sender.send(frame.bytes, Edit::Keep),
                                sender.send(frame.bytes, Edit::Pop),
                            )),
                            2 => drop(sender.send(&frame.bytes[..40], Edit::Keep)),
                            3 => drop(sender.send(&bytes, Edit::Push(header))),
                            4 => drop(sender.send(&frame.bytes[..10], Edit::Keep)),
                            _ => drop(sender.send(frame.bytes, Edit::Push(header))),
                        }
                    }
                });
                batches += 1;
                if batches % 3 == 0 || received == 0 {
                    wires.sender.flush();
                }
                if received == 0 {
                    break;
                }
            }
        }
        assert_eq!(wires.receiver.missed(), 0);
        let Wires { receiver, mut sender, share, .. } = wires;
        // Queued and never flushed.
        assert!(sender.send(&bytes, Edit::Keep));
        drop((receiver, sender));
        share.reclaim();
        let (free, all) = share.chunks().expect("a port is open");
        assert_eq!(free, all);
        drop(kept);
        assert_eq!(share.chunks(), None);
    });
}

#[test]
fn another_workers_sender_stands_beside() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::AfXdp, "p1", 1500).expect("p1");
        let _receiver = port.receiver().expect("receiver");
        let (mut own, mut other) = (port.owner_sender().expect("sender"), port.sender().expect("another"));
        let host = Host::on("h1");
        for number in 0..100 {
            let sender = if number % 2 == 0 { &mut own } else { &mut other };
            assert!(sender.send(&frame(100, number), Edit::Keep));
            sender.flush();
            assert_eq!(host.receive(DEADLINE), Some(frame(100, number)));
        }
    });
}

#[test]
fn auto_is_af_packet_on_veth_and_says_what_a_port_has() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let auto = open(Backend::Auto, "p1", 1500).expect("p1");
        assert_eq!(auto.describe(), "AF_PACKET");
        assert!(auto.notices().is_empty());
        let port = open(Backend::AfXdp, "p1", 1500).expect("p1");
        assert_eq!(port.describe(), "AF_XDP, native, copying, 1 queue");
        let notices = port.notices();
        assert_eq!(notices, [Notice::PeerOffloads { interface: "p1".to_owned() }]);
        assert!(notices[0].to_string().contains("ethtool -K PEER txvlan off"), "{}", notices[0]);
    });
}

#[test]
fn every_queue_of_an_interface_is_received() {
    in_namespace(|| {
        run("ip link add h1 numtxqueues 4 numrxqueues 4 type veth peer name p1 numtxqueues 4 numrxqueues 4");
        run("ethtool -K h1 tx off tso off gso off gro off txvlan off");
        run("ip link set h1 up");
        run("ip link set p1 up");
        settle("h1");
        let port = open(Backend::AfXdp, "p1", 1500).expect("p1");
        assert_eq!(port.describe(), "AF_XDP, native, copying, 4 queues");
        let mut receiver = port.receiver().expect("receiver");
        let host = Host::on("h1");
        // UDP, whose ports choose the queue.
        for number in 0..64 {
            let mut bytes = frame(100, 0);
            bytes[12..14].copy_from_slice(&[8, 0]);
            bytes[14..24].copy_from_slice(&[0x45, 0, 0, 86, 0, 0, 0, 0, 64, 17]);
            bytes[34..38].copy_from_slice(&[number, 1, 2, number]);
            host.send(&bytes);
            assert_eq!(take(receiver.as_mut(), 1), [bytes]);
        }
        let counted = run("ethtool -S p1");
        let busy = counted
            .lines()
            .filter_map(|line| line.trim().strip_prefix("rx_queue_")?.split_once("_xdp_packets: "))
            .filter(|(_, frames)| *frames != "0");
        assert!(busy.count() > 1, "{counted}");
    });
}

#[test]
fn what_does_not_fit_says_so() {
    in_namespace(|| {
        run("ip link add h1 mtu 9000 type veth peer name p1 mtu 9000");
        let refused = open(Backend::AfXdp, "p1", 9000).expect_err("refused").to_string();
        assert!(refused.contains("interface p1") && refused.contains("3822"), "{refused}");
        // The driver does not have the program where its peer's frames may be longer than a page.
        let port = open(Backend::AfXdp, "p1", 1500).expect("generic then");
        assert_eq!(port.describe(), "AF_XDP, generic, copying, 1 queue");
        run("ethtool -K h1 tx off tso off gso off gro off txvlan off");
        run("ip link set h1 up");
        settle("h1");
        let (mut receiver, host) = (port.receiver().expect("receiver"), Host::on("h1"));
        for bytes in [frame(60, 1), frame(1514, 2), tagged(&frame(1514, 3), &[(0x8100, 9)])] {
            host.send(&bytes);
            assert_eq!(take(receiver.as_mut(), 1), [bytes]);
        }
        assert!(silent(receiver.as_mut()), "none comes a second time");
    });
}

/// A tap device: an interface whose wire is a file.
struct Tap(std::fs::File);

impl Tap {
    /// `None` where the system has none.
    fn named(name: &str) -> Option<Self> {
        const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
        let file = std::fs::File::options().read(true).write(true).open("/dev/net/tun").ok()?;
        // SAFETY: all-zero bytes are an ifreq: an empty name and a union of integers and arrays.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        // SAFETY: the request is a whole ifreq.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Some(Tap(file))
    }

    fn receive(&self) -> Option<Vec<u8>> {
        io_wire::readable(&self.0, Instant::now() + DEADLINE).then(|| {
            let mut bytes = vec![0; 4096];
            let length = (&self.0).read(&mut bytes).expect("a frame");
            bytes.truncate(length);
            bytes
        })
    }
}

#[test]
fn auto_is_af_xdp_where_the_driver_has_it_and_frames_pass() {
    in_namespace(|| {
        let Some(tap) = Tap::named("t1") else {
            eprintln!("SKIPPED, NOTHING WAS TESTED: this system has no tap devices");
            return;
        };
        let port = open(Backend::Auto, "t1", 1500).expect("t1");
        assert_eq!(port.describe(), "AF_XDP, native, copying, 1 queue");
        assert!(port.notices().is_empty());
        let (mut receiver, mut sender) =
            (port.receiver().expect("receiver"), port.owner_sender().expect("sender"));
        for size in [60, 61, 500, 1514] {
            let bytes = tagged(&frame(size, size as u8), &[(0x8100, 5)]);
            (&tap.0).write_all(&bytes).expect("written");
            assert_eq!(take(receiver.as_mut(), 1)[0], bytes);
            assert!(sender.send(&bytes, Edit::Keep));
            sender.flush();
            assert_eq!(tap.receive(), Some(bytes));
        }
        // No driver of its own: the interface is one of the stack alone.
        run("ip link add b1 type bridge");
        assert_eq!(open(Backend::Auto, "b1", 1500).expect("b1").describe(), "AF_PACKET");
    });
}

#[test]
fn third_parties_see_the_same_frames() {
    in_namespace(|| {
        if Command::new("tcpdump").arg("--version").output().is_err() {
            eprintln!("SKIPPED, NOTHING WAS TESTED: tcpdump is not on PATH");
            return;
        }
        let mut wires = two_wires(1500);
        let mut dump = Command::new("tcpdump")
            .args(["-i", "h2", "-n", "-e", "-l", "-c", "3", "-xx", "--immediate-mode"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump");
        let mut said = BufReader::new(dump.stderr.take().expect("its messages"));
        let mut line = String::new();
        while !line.contains("listening on h2") {
            line.clear();
            assert!(said.read_line(&mut line).expect("a line") > 0, "tcpdump has ended");
        }
        let bytes = tagged(&frame(90, 5), &[(0x88a8, 100), (0x8100, 200)]);
        let header = [0x88, 0xb6, 3, 4];
        let steered = swpipe::edit::edited(&bytes, Edit::Push(header));
        assert_eq!(wires.through(&bytes, Edit::Keep), bytes);
        assert_eq!(wires.through(&bytes, Edit::Push(header)), steered);
        assert_eq!(wires.through(&steered, Edit::Pop), bytes);
        let mut text = String::new();
        dump.stdout.take().expect("its output").read_to_string(&mut text).expect("text");
        assert!(dump.wait().expect("its end").success());
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for line in text.lines() {
            match line.trim().strip_prefix("0x") {
                Some(dumped) => {
                    let hexed: String = dumped.split(':').nth(1).expect("bytes").split_whitespace().collect();
                    seen.last_mut().expect("a frame").extend(hex::decode(hexed).expect("hex"));
                }
                None => seen.push(Vec::new()),
            }
        }
        assert_eq!(seen, [bytes.clone(), steered, bytes]);
    });
}

#[test]
fn nothing_stays_attached_after_a_kill() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        run("ip link set lo up");
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("site.json");
        let site = r#"{"sluice:port": [{"name": "one", "number": 1, "mtu": 1500, "interface": "p1"}]}"#;
        std::fs::write(&config, site).expect("written");
        let mut process = Command::new(env!("CARGO_BIN_EXE_swpipe"))
            .args(["run", "--listen", "127.0.0.1:0", "--io", "af-xdp", "--config"])
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("swpipe");
        let mut lines = BufReader::new(process.stderr.take().expect("its log")).lines();
        assert!(lines.any(|line| line.expect("a line").contains("ready")));
        assert!(run("ip link show p1").contains("xdp"));
        process.kill().expect("SIGKILL");
        process.wait().expect("its end");
        assert!(!run("ip link show p1").contains("xdp"));
    });
}
