//! Frames through pnet's datalink.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use io_wire::{DEADLINE, Host, frame, in_namespace, run, settle, silent, tagged, take, wire};
use swpipe::io::{Backend, Edit, Notice, open};

#[test]
fn frames_pass_byte_for_byte_with_each_edit() {
    in_namespace(|| {
        wire("h1", "p1", 9000);
        wire("h2", "p2", 9004);
        let mut receiver = open(Backend::Datalink, "p1", 9000).expect("p1").receiver().expect("receiver");
        let mut sender = open(Backend::Datalink, "p2", 9004).expect("p2").sender().expect("sender");
        let (from, to) = (Host::on("h1"), Host::on("h2"));
        for (count, size) in (60..9000).step_by(211).chain(9010..=9014).enumerate() {
            let bytes = frame(size, count as u8);
            from.send(&bytes);
            assert_eq!(take(receiver.as_mut(), 1)[0], bytes);
            let header = [0x88, 0xb6, 3, 4];
            let steered = [&bytes[..12], &header, &bytes[12..]].concat();
            for (input, edit, output) in [
                (&bytes, Edit::Keep, &bytes),
                (&bytes, Edit::Push(header), &steered),
                (&steered, Edit::Pop, &bytes),
            ] {
                assert!(sender.send(input, edit), "{size} bytes, {edit:?}");
                sender.flush();
                assert_eq!(to.receive(DEADLINE).as_ref(), Some(output), "{size} bytes, {edit:?}");
            }
        }
        assert!(!sender.send(&frame(20_000, 1), Edit::Keep));
        assert!(!sender.send(&[0; 11], Edit::Keep));
        assert_eq!((receiver.missed(), receiver.truncated()), (0, 0));
    });
}

#[test]
fn it_says_that_it_cannot_see_tags_and_does_not_pass_frames_on_without_them() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::Datalink, "p1", 1500).expect("p1");
        assert_eq!(port.notices(), [Notice::TagsUnseen { interface: "p1".to_owned() }]);
        let text = port.notices()[0].to_string();
        assert!(text.contains("p1") && text.contains("VLAN"), "{text}");
        assert!(open(Backend::AfPacket, "p1", 1500).expect("p1").notices().is_empty());
        let mut receiver = port.receiver().expect("receiver");
        let host = Host::on("h1");
        host.send(&tagged(&frame(100, 1), &[(0x8100, 5)]));
        host.send(&tagged(&frame(100, 2), &[(0x88a8, 5), (0x8100, 6)]));
        assert!(silent(receiver.as_mut()));
        host.send(&frame(100, 3));
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 3)]);
    });
}

#[test]
fn own_frames_are_not_received_and_a_lost_link_is_survived() {
    in_namespace(|| {
        wire("h1", "p1", 1500);
        let port = open(Backend::Datalink, "p1", 1500).expect("p1");
        let (mut receiver, mut sender) = (port.receiver().expect("receiver"), port.sender().expect("sender"));
        let host = Host::on("h1");
        assert!(sender.send(&frame(100, 1), Edit::Keep));
        assert_eq!(host.receive(DEADLINE), Some(frame(100, 1)));
        assert!(silent(receiver.as_mut()));
        run("ip link set p1 down");
        assert!(!sender.send(&frame(100, 1), Edit::Keep));
        assert!(silent(receiver.as_mut()));
        run("ip link set p1 up");
        settle("h1");
        host.send(&frame(100, 2));
        assert_eq!(take(receiver.as_mut(), 1), [frame(100, 2)]);
        run("ip link del p1");
        assert!(!sender.send(&frame(100, 3), Edit::Keep));
        assert!(silent(receiver.as_mut()));
    });
}
