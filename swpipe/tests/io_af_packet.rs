//! Frames through AF_PACKET ports, byte for byte.

mod io_wire;

use io_wire::{DEADLINE, Host, frame, in_namespace, tagged, take, wire};
use swpipe::io::{Backend, Edit, Receiver, Sender, open};

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
