//! Frames through AF_PACKET ports, byte for byte.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use std::time::Instant;

use io_wire::{DEADLINE, Host, SILENCE, frame, in_namespace, run, settle, silent, tagged, take, wire};
use swpipe::io::{Backend, Edit, IoError, Receiver, Sender, open};

/// Host `h1` - port `p1`, port `p2` - host `h2`.
fn two_wires(mtu: u32) -> (Host, Box<dyn Receiver>, Box<dyn Sender>, Host) {
    wire("h1", "p1", mtu);
    wire("h2", "p2", mtu + 4);
    let one = open(Backend::AfPacket, "p1", mtu).expect("p1");
    let two = open(Backend::AfPacket, "p2", mtu + 4).expect("p2");
    let receiver = one.receiver().expect("receiver");
    let sender = two.sender().expect("sender");
    (Host::on("h1"), receiver, sender, Host::on("h2"))
}

/// Sends one frame all the way; what the far host gets.
fn through(
    from: &Host,
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    to: &Host,
    bytes: &[u8],
    edit: Edit,
) -> Vec<u8> {
    from.send(bytes);
    let frames = take(receiver, 1);
    assert_eq!(frames[0], bytes, "received otherwise than sent, {} bytes", bytes.len());
    assert!(sender.send(&frames[0], edit), "{} bytes not queued", bytes.len());
    sender.flush();
    to.receive(DEADLINE).expect("arrives")
}

#[test]
fn frames_of_every_size_pass_byte_for_byte_with_each_edit() {
    in_namespace(|| {
        let (from, mut receiver, mut sender, to) = two_wires(9000);
        let sizes = (60..=200).chain((201..9000).step_by(97)).chain(9001..=9014);
        for (count, size) in sizes.enumerate() {
            let bytes = frame(size, count as u8);
            let mut pass =
                |edit, bytes: &[u8]| through(&from, receiver.as_mut(), sender.as_mut(), &to, bytes, edit);
            assert_eq!(pass(Edit::Keep, &bytes), bytes);
            let header = [0x88, 0xb6, 3, count as u8];
            let steered = pass(Edit::Push(header), &bytes);
            assert_eq!(steered, [&bytes[..12], &header, &bytes[12..]].concat());
            if steered.len() <= 9014 {
                assert_eq!(pass(Edit::Pop, &steered), bytes);
            }
        }
        assert_eq!((receiver.missed(), receiver.truncated(), receiver.unfinished_checksums()), (0, 0, 0));
        assert_eq!(sender.lost(), 0);
    });
}

#[test]
fn tags_that_the_kernel_took_out_are_back_in_place() {
    in_namespace(|| {
        let (from, mut receiver, mut sender, to) = two_wires(1500);
        let plain = frame(300, 7);
        for tags in [
            &[(0x8100, 5)][..],
            &[(0x8100, 0)],
            &[(0x8100, 0xffff)],
            &[(0x88a8, 100)],
            &[(0x88a8, 100), (0x8100, 200)],
            &[(0x88a8, 100), (0x88a8, 100)],
            &[(0x8100, 7), (0x8100, 7)],
            &[(0x9100, 9), (0x8100, 10)],
            &[(0x88a8, 1), (0x8100, 2), (0x8100, 3)],
        ] {
            let bytes = tagged(&plain, tags);
            let out = through(&from, receiver.as_mut(), sender.as_mut(), &to, &bytes, Edit::Keep);
            assert_eq!(out, bytes, "{tags:x?}");
        }
    });
}

#[test]
fn what_a_port_sends_it_does_not_receive() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::AfPacket, "p1", 1500).expect("p1");
        let (mut receiver, mut sender) = (port.receiver().expect("receiver"), port.sender().expect("sender"));
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
fn batches_keep_order_and_a_burst_beyond_the_ring_is_counted() {
    in_namespace(|| {
        let (from, mut receiver, _, _) = two_wires(1500);
        let numbered = |number: u32| {
            let mut bytes = frame(1514, 0);
            bytes[14..18].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        let sent = 10_000_u32;
        for number in 0..sent {
            from.send(&numbered(number));
        }
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
        // The ring goes on where the burst left it.
        from.send(&frame(60, 1));
        assert_eq!(take(receiver.as_mut(), 1), [frame(60, 1)]);
    });
}

#[test]
fn a_full_transmit_ring_refuses_and_goes_on_after_a_flush() {
    in_namespace(|| {
        let (_from, _receiver, mut sender, to) = two_wires(1500);
        let mut queued = 0_u64;
        while sender.send(&frame(200, queued as u8), Edit::Keep) {
            queued += 1;
            assert!(queued < 100_000, "never full");
        }
        assert!(queued >= 256);
        for round in 0..3 {
            if round > 0 {
                for number in 0..queued {
                    assert!(sender.send(&frame(200, number as u8), Edit::Keep), "round {round}, {number}");
                }
            }
            // A veth's queue is shorter than the ring; what it refuses is tried again.
            let mut got = 0;
            let until = Instant::now() + DEADLINE;
            while got < queued {
                sender.flush();
                assert_eq!(sender.lost(), 0);
                let bytes = to.receive(DEADLINE).expect("arrives");
                assert_eq!(bytes, frame(200, got as u8));
                got += 1;
                assert!(Instant::now() < until);
            }
            assert!(!sender.pending());
        }
    });
}

#[test]
fn frames_that_the_port_does_not_carry_are_refused() {
    in_namespace(|| {
        let (_from, _receiver, mut sender, to) = two_wires(1500);
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
fn an_mtu_lowered_later_is_learned_and_its_victim_counted() {
    in_namespace(|| {
        let (_from, _receiver, mut sender, to) = two_wires(1500);
        run("ip link set p2 mtu 1400");
        assert!(sender.send(&frame(1500, 1), Edit::Keep));
        assert!(sender.send(&frame(1414, 2), Edit::Keep));
        sender.flush();
        assert_eq!(to.receive(DEADLINE), Some(frame(1414, 2)));
        assert_eq!(sender.lost(), 1);
        assert!(!sender.send(&frame(1500, 3), Edit::Keep));
    });
}

#[test]
fn a_port_goes_on_after_its_link_was_down() {
    in_namespace(|| {
        let (from, mut receiver, mut sender, to) = two_wires(1500);
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
fn a_port_whose_interface_is_deleted_falls_silent() {
    in_namespace(|| {
        let (from, mut receiver, mut sender, _to) = two_wires(1500);
        from.send(&frame(100, 1));
        assert!(sender.send(&frame(100, 2), Edit::Keep));
        run("ip link del p1");
        run("ip link del p2");
        // What came before is still there.
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 1)]);
        assert!(silent(receiver.as_mut()));
        sender.flush();
        assert_eq!(sender.lost(), 1);
        for number in 0..2000_u32 {
            assert!(sender.send(&frame(100, number as u8), Edit::Keep));
            sender.flush();
        }
        assert_eq!(sender.lost(), 2000);
        // A new interface of the name is another port.
        wire("h1", "p1", 1500);
        Host::on("h1").send(&frame(100, 3));
        assert!(silent(receiver.as_mut()));
        let again = open(Backend::AfPacket, "p1", 1500).expect("p1");
        let mut receiver = again.receiver().expect("receiver");
        Host::on("h1").send(&frame(100, 4));
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 4)]);
    });
}

#[test]
fn a_receiver_whose_link_went_down_does_not_poll_ready_for_ever() {
    in_namespace(|| {
        let (_from, mut receiver, _sender, _to) = two_wires(1500);
        run("ip link set p1 down");
        let mut ready = 0;
        for _ in 0..200 {
            receiver.receive(&mut |_| {});
            ready +=
                u32::from(io_wire::readable(receiver.descriptor().expect("a descriptor"), Instant::now()));
        }
        assert!(ready <= 64, "{ready} of 200 polls");
    });
}

#[test]
fn super_frames_are_counted_and_not_handed_over() {
    in_namespace(|| {
        run("ip link add h1 mtu 65000 type veth peer name p1 mtu 1500");
        run("ip link set h1 up");
        run("ip link set p1 up");
        let port = open(Backend::AfPacket, "p1", 1500).expect("p1");
        let mut receiver = port.receiver().expect("receiver");
        // The port's MTU is 1500: veth drops longer frames that are no super-frames, so it is raised behind us.
        run("ip link set p1 mtu 65000");
        let host = Host::on("h1");
        host.send(&frame(1600, 1));
        host.send(&frame(60_000, 2));
        host.send(&frame(1514, 3));
        assert_eq!(take(receiver.as_mut(), 1), [frame(1514, 3)]);
        assert_eq!(receiver.truncated(), 2);
        assert_eq!(receiver.truncated(), 0, "counted since the last call");
    });
}

#[test]
fn unfinished_checksums_are_counted() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        run("ethtool -K h1 tx on");
        run("ip addr add 10.0.0.1/24 dev h1");
        run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev h1");
        let port = open(Backend::AfPacket, "p1", 1500).expect("p1");
        let mut receiver = port.receiver().expect("receiver");
        let socket = std::net::UdpSocket::bind("10.0.0.1:0").expect("bind");
        socket.send_to(b"unfinished", "10.0.0.2:9").expect("send");
        assert_eq!(take(receiver.as_mut(), 1).len(), 1);
        assert_eq!(receiver.unfinished_checksums(), 1);
        run("ethtool -K h1 tx off");
        socket.send_to(b"finished", "10.0.0.2:9").expect("send");
        assert_eq!(take(receiver.as_mut(), 1).len(), 1);
        assert_eq!(receiver.unfinished_checksums(), 0);
    });
}

#[test]
fn the_host_answers_nothing_on_a_port() {
    in_namespace(|| {
        run("ip link set lo up");
        run("ip addr add 192.0.2.1/32 dev lo");
        // Here the host speaks IPv6.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0").expect("sysctl");
        run("ip link add h1 type veth peer name p1");
        std::fs::write("/proc/sys/net/ipv6/conf/h1/disable_ipv6", "1").expect("sysctl");
        run("ip link set h1 up");
        let host = Host::on("h1");
        let _port = open(Backend::AfPacket, "p1", 1500).expect("p1");
        // Who has 192.0.2.1? Linux answers by any interface.
        let mut ask = vec![0xff; 6];
        ask.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 9]);
        ask.extend([0, 0, 0, 0, 0, 0, 192, 0, 2, 1]);
        ask.resize(60, 0);
        host.send(&ask);
        // Multicast listener reports come at once, router solicitations within a second of that.
        assert_eq!(host.receive(std::time::Duration::from_millis(1200)), None);
    });
}

#[test]
fn bad_interfaces_are_named_and_say_what_to_do() {
    in_namespace(|| {
        let error = |name: &str, mtu| open(Backend::AfPacket, name, mtu).expect_err("refused");
        let missing = error("nowhere0", 1500);
        assert!(matches!(missing, IoError::NoInterface { .. }));
        assert!(
            missing.to_string().contains("nowhere0") && missing.to_string().contains("ip link"),
            "{missing}"
        );
        assert!(matches!(error("a-name-of-more-than-15-bytes", 1500), IoError::NoInterface { .. }));
        assert!(matches!(error("", 1500), IoError::NoInterface { .. }));
        assert!(matches!(error("lo", 1500), IoError::NotEthernet { .. }));
        run("ip link add h1 type veth peer name p1");
        let small = error("p1", 1504);
        assert!(matches!(small, IoError::InterfaceMtu { actual: 1500, wanted: 1504, .. }));
        assert!(small.to_string().contains("ip link set dev p1 mtu 1504"), "{small}");
        assert!(matches!(error("p1", 67), IoError::MtuRange { .. }));
        assert!(matches!(error("p1", 10_241), IoError::MtuRange { .. }));

        // Without the capabilities: this thread alone gives them up.
        run("ip link set p1 up");
        let user = nix::unistd::Uid::from_raw(65_534);
        // SAFETY: a system call without pointers; on this thread, not the process (setresuid(2), "C library").
        let result =
            unsafe { libc::syscall(libc::SYS_setresuid, user.as_raw(), user.as_raw(), user.as_raw()) };
        assert_eq!(result, 0);
        let denied = error("p1", 1500);
        assert!(matches!(denied, IoError::Permission { .. }), "{denied}");
        assert!(denied.to_string().contains("CAP_NET_RAW"), "{denied}");
    });
}
