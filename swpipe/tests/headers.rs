//! The fast way to the headers against the parse of the data-plane model, and the hash of every kind of processor.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;

use dataplane::frame::Unlimited;
use dataplane::{LinkIndex, Method, Side, hash, parse};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use swpipe::cpu::Cpu;
use swpipe::headers::Headers;

fn agree(frame: &[u8]) {
    let link = LinkIndex(7);
    let parsed = parse(frame);
    // Of another frame before: nothing of it is left.
    let mut headers = Headers { words: [u64::MAX; 8], ports: u32::MAX, fragment: true, ..Headers::EMPTY };
    headers.read(link, Unlimited, frame);
    assert_eq!(headers, Headers::of(link, &parsed), "{frame:02x?}");
    let Some(session) = &parsed.session else { return };
    for (method, side) in
        Method::ALL.into_iter().flat_map(|method| [(method, Side::Lan), (method, Side::Wan)])
    {
        let wanted = hash(session, method, side);
        for cpu in Cpu::all() {
            assert_eq!(cpu.hash(&headers, method, side), wanted, "{cpu:?} {method} {side:?} {frame:02x?}");
        }
    }
}

fn captures() -> Vec<Vec<u8>> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let files = ["link1-lan.pcap", "link1-wan.pcap"];
    let frames = files.iter().flat_map(|file| swpipe::capture::read(&vectors.join(file)).unwrap());
    frames.map(|frame| frame.bytes).collect()
}

#[test]
fn captured_frames_are_read_alike_at_every_length() {
    for (number, frame) in captures().iter().enumerate() {
        agree(frame);
        // Headers, cut anywhere.
        if number % 7 == 0 {
            (0..frame.len().min(100)).for_each(|length| agree(&frame[..length]));
        }
    }
}

/// A common frame: tags, then IPv4 or IPv6.
fn common() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![4 => Just(None), 3 => select(&[0x8100_u16, 0x88a8, 0x9100][..]).prop_map(Some)];
    let proto = prop_oneof![
        4 => select(&[6_u8, 17, 132, 33, 136][..]),
        2 => select(&[0_u8, 4, 41, 43, 44, 47, 60, 50, 51, 1, 58][..]),
        1 => any::<u8>(),
    ];
    let inner = prop::collection::vec(any::<u8>(), 0..80);
    (any::<[u8; 12]>(), tag, any::<u16>(), any::<bool>(), proto, any::<[u8; 32]>(), inner).prop_map(
        |(macs, tag, tci, v6, proto, addresses, rest)| {
            let mut frame = macs.to_vec();
            if let Some(tpid) = tag {
                frame.extend([tpid.to_be_bytes(), tci.to_be_bytes()].concat());
            }
            if v6 {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, proto, 64]);
                frame.extend(addresses);
            } else {
                frame.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, proto, 0, 0]);
                frame.extend(&addresses[..8]);
            }
            frame.extend(rest);
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn common_frames_are_read_alike_with_any_byte_changed_and_cut_anywhere(
        frame in common(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..3),
        cut in any::<Index>(),
    ) {
        agree(&frame);
        let mut changed = frame.clone();
        for (at, value) in changes {
            // Where it matters: nothing behind the first headers.
            let at = at.index(frame.len().min(64));
            changed[at] = value;
        }
        agree(&changed);
        agree(&changed[..cut.index(changed.len() + 1)]);
    }

    #[test]
    fn any_bytes_are_read_alike(frame in prop::collection::vec(any::<u8>(), 0..120)) {
        agree(&frame);
    }
}
