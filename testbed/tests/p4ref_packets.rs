//! What the reference interpreter makes of packets: one test for each meaning.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod p4ref_fixture;

use p4ref_fixture::*;
use p4runtime::proto::p4::v1::{PacketMetadata, PacketOut, Update};
use proptest::prelude::*;
use testbed::p4ref::Undefined;

fn trace_of(frame: &[u8]) -> (Trace, Vec<u8>) {
    let output = forwarding().process(1, frame, 0);
    assert_eq!(output.undefined, []);
    let (port, trace, rest) = only(&output);
    assert_eq!(port, 9);
    (trace, rest)
}

#[test]
fn what_the_parser_does_not_take_is_payload() {
    let sent = frame(0x1234, &[1, 2, 3, 4, 5]);
    let (trace, rest) = trace_of(&sent);
    assert_eq!(rest, sent);
    assert_eq!(
        trace,
        Trace {
            ingress_port: 1,
            egress_port: 9,
            packet_length: 19,
            // The ternary table's default, and the default of the table of prefixes.
            action_taken: 0x4001 + 0x2000,
            kept: 1,
            sum: crc16(&[0x12, 0x34, 0x12, 0x34]),
            ..Trace::default()
        }
    );
}

#[test]
fn calculations_leave_invalid_headers_out() {
    let (trace, _) = trace_of(&tags(&[(0xabc, 3, true)], &[]));
    assert_eq!(trace.sum, crc16(&[0xab, 0xc7, 0x88, 0xf0, 0x12, 0x34]));
    let (trace, _) = trace_of(&tags(&[(0xabc, 3, false), (1, 0, true)], &[]));
    assert_eq!(trace.sum, crc16(&[0xab, 0xc6, 0x88, 0xf0, 0, 0x11, 0x12, 0x34]));
}

#[test]
fn a_packet_that_is_too_short_keeps_what_was_extracted() {
    let (trace, rest) = trace_of(&[0xff; 13]);
    assert_eq!((trace.parser_error, rest), (1, vec![0xff; 13]));
    // The Ethernet header was taken, the IPv4 header was not.
    let whole = ipv4(&[], 0, 64, 17, 7, &[]);
    let (trace, rest) = trace_of(&whole[..20]);
    assert_eq!((trace.parser_error, trace.checksum_error), (1, 0));
    assert_eq!(rest, whole[..20]);
    // A lookahead that finds nothing.
    let (trace, _) = trace_of(&whole[..14]);
    assert_eq!(trace.parser_error, 1);
}

#[test]
fn verify_records_its_error() {
    let mut version = ipv4(&[], 0, 64, 17, 7, &[]);
    version[14] = 0x65;
    assert_eq!(trace_of(&version).0.parser_error, 100);
    version[14] = 0x44;
    assert_eq!(trace_of(&version).0.parser_error, 4);
    assert_eq!(trace_of(&frame(0x88f2, &[0xde, 0xad, 0, 0])).0.parser_error, 101);
}

#[test]
fn lookahead_does_not_consume_and_advance_does() {
    // Two bits of the type do not matter in the select; `advance` skips what the lookahead's low nibble says.
    let (trace, rest) = trace_of(&frame(0x88f3, &[0x00, 0x02, 0xaa, 0xbb]));
    assert_eq!(trace.parser_error, 0);
    let ethernet = &frame(0x88f3, &[])[..];
    assert_eq!(rest, [ethernet, ethernet, &[0xaa, 0xbb]].concat(), "header, its copy, what is left");
    assert_eq!(trace_of(&frame(0x88f2, &[0x00, 0x0f, 1])).0.parser_error, 1);
}

#[test]
fn varbit_fields_have_the_length_that_the_packet_says() {
    for words in [0, 1, 4, 10] {
        let options: Vec<u8> = (0..words * 4).map(|byte| byte as u8 ^ 0x91).collect();
        let sent = ipv4(&options, 0, 64, 17, 0x0a00_0002, &[9; 7]);
        let (trace, rest) = trace_of(&sent);
        assert_eq!((trace.parser_error, trace.checksum_error), (0, 0), "{words} words");
        let mut wanted = ipv4(&options, 0, 63, 17, 0x0a00_0002, &[9; 7]);
        assert_eq!(rest, wanted, "{words} words");
        // One byte short of the header.
        wanted.truncate(14 + 20 + options.len() - 1);
        assert_eq!(trace_of(&wanted).0.parser_error, 1);
    }
}

#[test]
fn checksums_are_verified_and_updated_where_their_conditions_hold() {
    let mut wrong = ipv4(&[], 0, 64, 17, 7, &[]);
    wrong[24] ^= 1;
    let (trace, rest) = trace_of(&wrong);
    assert_eq!(trace.checksum_error, 1);
    assert_eq!(rest, ipv4(&[], 0, 63, 17, 7, &[]), "written anew");
    // The program leaves this one alone.
    let kept = ipv4(&[], 0xff, 64, 17, 7, &[]);
    let (_, rest) = trace_of(&kept);
    assert_eq!(rest[24..26], kept[24..26]);
}

#[test]
fn a_stack_takes_as_many_headers_as_it_has() {
    let (trace, rest) = trace_of(&tags(&[(1, 0, false), (2, 0, false), (3, 0, true)], &[7]));
    assert_eq!((trace.parser_error, trace.tags), (0, 3));
    assert_eq!(rest, tags(&[(1, 0, false), (2, 0, false), (3, 0, true)], &[7]));
    let four = tags(&[(1, 0, false), (2, 0, false), (3, 0, false), (4, 0, true)], &[7]);
    let (trace, rest) = trace_of(&four);
    assert_eq!((trace.parser_error, trace.tags), (3, 3));
    assert_eq!(rest, four);
}

#[test]
fn stacks_are_pushed_popped_and_indexed() {
    let pushed = trace_of(&tags(&[(1, 5, false), (2, 0, true)], &[7])).1;
    assert_eq!(pushed, tags(&[(0xabc, 0, false), (1, 5, false), (2, 0, true)], &[7]));
    let overflow = trace_of(&tags(&[(1, 5, false), (2, 0, false), (3, 0, true)], &[])).1;
    assert_eq!(overflow, tags(&[(0xabc, 0, false), (1, 5, false), (2, 0, false)], &[]));
    let popped = trace_of(&tags(&[(1, 6, false), (2, 0, true)], &[7])).1;
    assert_eq!(popped, tags(&[(2, 0, true)], &[7]));
    let indexed = trace_of(&tags(&[(1, 7, false), (2, 0, true)], &[])).1;
    assert_eq!(indexed, tags(&[(1, 7, false), (3, 0, true)], &[]));
}

#[test]
fn constant_entries_go_by_their_order() {
    for (label, kind, wanted) in
        [(0x1ff, 1, 0x100), (0x2ff, 1, 0x200), (0x123, 2, 0x300), (0x124, 2, 0), (0x123, 3, 0)]
    {
        let (trace, _) = trace_of(&tags(&[(label, kind, true)], &[]));
        assert_eq!(trace.action_taken, 0x6001 + wanted, "{label:#x} {kind}");
    }
}

#[test]
fn the_larger_priority_wins_and_an_invalid_header_matches_as_zero() {
    let mut switch = forwarding();
    write(
        &mut switch,
        &[
            Update::insert(by_header(5, vec![ternary(1, 17, 0xff)], call("note", &[5]))),
            Update::insert(by_header(9, vec![ternary(1, 17, 0xff), ternary(2, 64, 0xff)], call("drop", &[]))),
            Update::insert(by_header(3, vec![range(3, 5, 8)], call("note", &[3]))),
            Update::insert(by_header(7, vec![optional(4, 0x28)], call("note", &[7]))),
            Update::insert(by_header(2, vec![ternary(1, 0, 0xff)], call("note", &[0x20]))),
        ],
    );
    let mut note = |frame: Vec<u8>| {
        let output = switch.process(1, &frame, 0);
        (!output.sent.is_empty()).then(|| only(&output).1.action_taken & 0x1fff)
    };
    assert_eq!(note(ipv4(&[], 0, 64, 17, 7, &[])), None, "the drop has the larger priority");
    assert_eq!(note(ipv4(&[], 0, 63, 17, 7, &[])), Some(5 + 1));
    assert_eq!(note(ipv4(&[], 0x28, 63, 17, 7, &[])), Some(7 + 1));
    assert_eq!(note(ipv4(&[], 0, 63, 6, 7, &[])), Some(3 + 1));
    // A lookahead of 9 is outside of the range; there is no IPv4 header, whose protocol reads as 0.
    assert_eq!(note(frame(0x88f2, &[0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0])), Some(0x20 + 1));
}

#[test]
fn the_longest_prefix_wins() {
    let mut switch = forwarding();
    write(
        &mut switch,
        &[
            Update::insert(by_prefix(0x0a00_0000, 8, 8)),
            Update::insert(by_prefix(0x0a01_0203, 32, 32)),
            Update::insert(by_prefix(0x0a01_0000, 16, 16)),
        ],
    );
    let mut note = |dst| only(&switch.process(1, &ipv4(&[], 0, 64, 17, dst, &[]), 0)).1.action_taken;
    assert_eq!(note(0x0a01_0203), 0x4001 + 32);
    assert_eq!(note(0x0a01_0204), 0x4001 + 16);
    assert_eq!(note(0x0aff_0000), 0x4001 + 8);
    assert_eq!(note(0x0b00_0000), 0x4001 + 0x2000);
}

#[test]
fn exit_ends_the_ingress_and_a_drop_ends_the_packet() {
    let mut switch = switch();
    write(
        &mut switch,
        &[
            Update::insert(by_port(1, 0, call("stop", &[4]))),
            Update::insert(by_port(2, 0, call("drop", &[]))),
        ],
    );
    let (port, trace, _) = only(&switch.process(1, &frame(1, &[]), 0));
    assert_eq!((port, trace.action_taken, trace.kept), (4, 0, 0), "nothing after it, but the egress");
    assert_eq!(switch.process(2, &frame(1, &[]), 0).sent, []);
    // Dropped at the end of egress: the time to live is over.
    assert_eq!(forwarding().process(1, &ipv4(&[], 0, 1, 17, 7, &[]), 0).sent, []);
    // Nothing says where to: port 0.
    assert_eq!(only(&switch.process(3, &frame(1, &[]), 0)).0, 0);
}

#[test]
fn a_clone_is_the_packet_as_it_came_in_with_the_kept_fields() {
    let mut switch = forwarding();
    let entry = by_header(1, vec![ternary(1, 17, 0xff)], call("clone_to", &[7]));
    write(&mut switch, &[Update::insert(entry)]);
    let sent = ipv4(&[1, 2, 3, 4], 0, 64, 17, 7, &[5]);
    // The session does not exist: no copy is made.
    let output = switch.process(1, &sent, 0);
    assert_eq!((output.sent.len(), output.undefined.len()), (1, 0));
    write(&mut switch, &[Update::insert(session(7, &[(3, 1), (4, 2)]))]);
    let output = switch.process(1, &sent, 0);
    let ports: Vec<u16> = output.sent.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [3, 4, 9]);
    for ((_, packet), (port, rid)) in output.sent.iter().zip([(3, 1), (4, 2)]) {
        let (trace, rest) = split(packet);
        let wanted = Trace {
            instance: 1,
            egress_port: port,
            rid,
            kept: 0x1234,
            packet_length: sent.len() as u32,
            sum: crc16(&[0x08, 0x00, 0x12, 0x34]),
            ..Trace::default()
        };
        assert_eq!(trace, wanted, "all metadata but the kept one are cleared");
        assert_eq!(rest, ipv4(&[1, 2, 3, 4], 0, 63, 17, 7, &[5]));
    }
    let (trace, _) = split(&output.sent[2].1);
    assert_eq!((trace.instance, trace.kept, trace.lost), (0, 0x1234, 0x5679));
}

#[test]
fn counters_count_the_length_at_ingress_and_nothing_beyond_their_end() {
    let mut switch = forwarding();
    let entry = by_header(1, vec![ternary(1, 17, 0xff)], call("note", &[1]));
    write(&mut switch, &[Update::insert(entry.clone())]);
    let sent = ipv4(&[], 0, 64, 17, 7, &[0; 10]);
    for _ in 0..3 {
        assert_eq!(switch.process(2, &sent, 0).undefined, []);
    }
    assert_eq!(switch.counter("EverythingIngress.by_port", 2).unwrap().packets, 3);
    assert_eq!(switch.counter("EverythingIngress.few", 2).unwrap().bytes, 3 * sent.len() as u64);
    assert_eq!(switch.counter("EverythingIngress.few", 4), None);
    assert_eq!(switch.counter("EverythingIngress.none", 0), None);
}

#[test]
fn packets_of_the_controller_come_by_the_cpu_port_with_their_header() {
    let mut switch = switch();
    let metadata = vec![PacketMetadata { metadata_id: 1, value: vec![4] }];
    let packet = PacketOut { payload: frame(0x0101, &[1, 2]), metadata };
    let (port, trace, rest) = only(&switch.packet_out(&packet, 0).unwrap());
    assert_eq!((port, trace.ingress_port), (4, 510));
    assert_eq!(rest, packet.payload);
    // The header counted when it came in, and no more when it left.
    assert_eq!(trace.packet_length, 16);
    assert_eq!(switch.counter("EverythingIngress.by_port", 510 & 15).unwrap().bytes, 18);
    let wrong = PacketOut { metadata: vec![], ..packet };
    assert!(switch.packet_out(&wrong, 0).is_err());
}

#[test]
fn packets_to_the_cpu_port_lose_their_header_to_the_metadata() {
    let mut switch = switch();
    let entry = by_header(1, vec![], call("to_controller", &[0x55]));
    write(&mut switch, &[Update::insert(entry)]);
    let output = switch.process(3, &frame(0x0101, &[1]), 0);
    assert_eq!(output.sent, []);
    let [packet] = output.to_cpu.as_slice() else { panic!("{output:?}") };
    let values: Vec<(u32, &[u8])> =
        packet.metadata.iter().map(|field| (field.metadata_id, field.value.as_slice())).collect();
    assert_eq!(values, [(1, &[3][..]), (2, &[0x55]), (3, &[1, 0xaa])]);
    let (trace, rest) = split(&packet.payload);
    assert_eq!((trace.egress_port, rest), (510, &frame(0x0101, &[1])[..]));
    // Four bytes longer than it came in: add_header changes BMv2's length.
    assert_eq!(trace.packet_length, 19);
}

#[test]
fn reads_of_invalid_headers_are_noted() {
    // The tag that the label names is not there.
    let output = forwarding().process(1, &tags(&[(2, 7, true)], &[]), 0);
    assert_eq!(output.undefined, [Undefined::InvalidField("tags[2].label".to_owned())]);
    assert_eq!(only(&output).2, tags(&[(2, 7, true)], &[]));
}

/// The calculator's results, by field widths in bits.
fn results(frame: &[u8]) -> Vec<u128> {
    let widths = [
        16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 32, 8, 16, 16, 8, 8, 8, 8, 128, 128, 160, 32, 16, 16,
        16, 32, 64,
    ];
    let (_, rest) = trace_of(frame);
    let mut at = 14 + 21;
    widths
        .iter()
        .map(|bits| {
            let bytes = &rest[at..at + bits / 8];
            at += bits / 8;
            // Of the widest, the lower part.
            bytes[bytes.len().saturating_sub(16)..]
                .iter()
                .fold(0, |value, byte| (value << 8) | u128::from(*byte))
        })
        .collect()
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8)
            .fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn expressions_are_those_of_p4(a: u16, b: u16, small in 0u8..40, wide: u128) {
        let r = results(&calc(a, b, small, wide));
        let (s, t) = (a as i8, b as i8);
        let narrow = |value: u16| u128::from(value);
        prop_assert_eq!(r[0], narrow(a.wrapping_add(b)));
        prop_assert_eq!(r[1], narrow(a.wrapping_sub(b)));
        prop_assert_eq!(r[2], narrow(a.wrapping_mul(b)));
        prop_assert_eq!(r[3], narrow(a.checked_shl(small.into()).unwrap_or(0)));
        prop_assert_eq!(r[4], narrow(a.checked_shr(small.into()).unwrap_or(0)));
        prop_assert_eq!(r[5], narrow(a & b));
        prop_assert_eq!(r[6], narrow(a | b));
        prop_assert_eq!(r[7], narrow(a ^ b));
        prop_assert_eq!(r[8], narrow(!a));
        prop_assert_eq!(r[9], narrow(a.saturating_add(b)));
        prop_assert_eq!(r[10], narrow(a.saturating_sub(b)));
        prop_assert_eq!(r[11], narrow(a.max(b)));
        prop_assert_eq!(r[12], u128::from(a) << 16 | u128::from(b));
        prop_assert_eq!(r[13], narrow(a >> 4 & 0xff));
        prop_assert_eq!(r[14], u128::from(small));
        prop_assert_eq!(r[15], narrow((a as i16 >> 3) as u16));
        prop_assert_eq!(r[16] as u8 as i8, s.wrapping_neg());
        prop_assert_eq!(r[17] as u8 as i8, s.wrapping_add(t));
        prop_assert_eq!(r[18] as u8 as i8, s.saturating_add(t));
        let bits = [a == b, a != b, a < b, a <= b, a > b && a != 5, a >= b || b != 1, s < t, s >= t];
        prop_assert_eq!(r[19], bits.iter().fold(0, |value, bit| value << 1 | u128::from(*bit)));
        prop_assert_eq!(r[20], wide.wrapping_add(a.into()));
        prop_assert_eq!(r[21], wide << 17);
        prop_assert_eq!(r[22], wide << 32 | u128::from(a) << 16 | u128::from(b));
        let words = [&a.to_be_bytes()[..], &b.to_be_bytes()].concat();
        let all = [&words[..], &wide.to_be_bytes(), &[5 << 5 | 1]].concat();
        prop_assert_eq!(r[23], crc32fast::hash(&all).into());
        prop_assert_eq!(r[24], narrow(crc16(&words)));
        let odd = [&a.to_be_bytes()[..], &[small], &b.to_be_bytes()].concat();
        let folded = a ^ (u16::from(small) << 8 | b >> 8) ^ (b << 8);
        prop_assert_eq!(r[26], narrow(folded));
        prop_assert_eq!(r[27], u128::from(crc32fast::hash(&words) % 37) + 100);
        let identity = odd.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        prop_assert_eq!(r[28], u128::from(identity));
    }

    /// Whatever comes in, nothing panics, and the program relies on nothing that is undefined.
    #[test]
    fn any_bytes_pass(kind in prop::sample::select(vec![0x0800u16, 0x88f0, 0x88f1, 0x88f2, 0x1111]),
                      rest in proptest::collection::vec(any::<u8>(), 0..80), port in 0u16..8) {
        let output = forwarding().process(port, &frame(kind, &rest), 0);
        // But for the one place that a test of its own shows.
        let shown = |it: &Undefined| matches!(it, Undefined::InvalidField(name) if name.starts_with("tags["));
        prop_assert!(output.undefined.iter().all(shown), "{:?}", output.undefined);
    }
}
