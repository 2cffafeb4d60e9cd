//! Frames through AF_XDP ports, byte for byte. Hosts have their transmit offloads off, as the back end asks for.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use std::time::Instant;

use io_wire::{DEADLINE, Host, SILENCE, frame, in_namespace, run, settle, silent, tagged, take, wire};
use swpipe::io::af_xdp::Share;
use swpipe::io::{Backend, Edit, Receiver, Sender, open, open_among};

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
