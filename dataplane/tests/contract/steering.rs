//! Contract, "Steering header".

use dataplane::{Core, LinkIndex, SteeringHeader, SteeringMode};
use proptest::prelude::*;

use crate::frames::{around, packet};

fn mode() -> impl Strategy<Value = SteeringMode> {
    prop_oneof![
        Just(SteeringMode::default()),
        (0x0600u16..).prop_map(|tpid| SteeringMode::Native { tpid }),
        (prop::sample::select(&[0x8100u16, 0x88a8, 0x9100, 0x9200][..]), 1u16..=4094 - 255)
            .prop_map(|(tpid, base_vid)| SteeringMode::Dot1q { tpid, base_vid }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_pushed_reads_back_and_pops_off(
        mode in mode(), core: u8, link: u8, packet in packet(), around in around(), priority in 0u8..16
    ) {
        let frame = around.frame(packet.ethertype(), &packet.bytes());
        let mut out = vec![0xee; frame.len() + 4];
        prop_assert_eq!(mode.push(&frame, Core(core), LinkIndex(link), &mut out), Some(frame.len() + 4));
        prop_assert_eq!(&out[..12], &frame[..12]);
        prop_assert_eq!(&out[16..], &frame[12..]);
        let (tpid, core) = match mode {
            SteeringMode::Native { tpid } => {
                prop_assert_eq!(&out[14..16], &[core, link]);
                (tpid, Some(Core(core)))
            }
            SteeringMode::Dot1q { tpid, base_vid } => {
                prop_assert_eq!(&out[14..16], &(base_vid + u16::from(link)).to_be_bytes());
                (tpid, None)
            }
        };
        prop_assert_eq!(&out[12..14], &tpid.to_be_bytes());
        let header = SteeringHeader { core, link: LinkIndex(link) };
        prop_assert_eq!(mode.decode(&out), Some(header));
        if matches!(mode, SteeringMode::Dot1q { .. }) {
            out[14] |= priority << 4; // an appliance that marks priorities
            prop_assert_eq!(mode.decode(&out), Some(header));
        }
    }

    #[test]
    fn a_frame_with_another_tag_has_no_header(mode in mode(), tpid: u16, tci: u16, length in 0usize..40) {
        let mut frame = vec![0u8; 40];
        frame[12..14].copy_from_slice(&tpid.to_be_bytes());
        frame[14..16].copy_from_slice(&tci.to_be_bytes());
        let ours = match mode {
            SteeringMode::Native { tpid: wanted } => tpid == wanted,
            SteeringMode::Dot1q { tpid: wanted, base_vid } => {
                tpid == wanted && (base_vid..=base_vid + 255).contains(&(tci & 0x0fff))
            }
        };
        prop_assert_eq!(mode.decode(&frame).is_some(), ours);
        frame.truncate(length);
        prop_assert_eq!(mode.decode(&frame).is_some(), ours && length >= 18);
    }

    #[test]
    fn no_room_or_no_ethernet_header_writes_nothing(mode in mode(), length in 0usize..40, room in 0usize..48) {
        let frame = vec![7u8; length];
        let mut out = vec![0xeeu8; room];
        let written = mode.push(&frame, Core(1), LinkIndex(1), &mut out);
        prop_assert_eq!(written.is_some(), length >= 12 && room >= length + 4);
        if written.is_none() {
            prop_assert!(out.iter().all(|byte| *byte == 0xee));
        }
    }
}
