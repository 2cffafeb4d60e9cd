//! Contract, "Keep-alive".

use dataplane::keepalive::{
    Direction, KEEP_ALIVE_ETHERTYPE, KEEP_ALIVE_LENGTH, KeepAlive, KeepAliveFault, KeepAliveKey,
    TRANSMIT_TIME_OFFSET, is_keep_alive, stamp,
};
use dataplane::{Nanos, PairId, parse};
use proptest::prelude::*;

const KEY: KeepAliveKey = KeepAliveKey([7; 16]);

fn keep_alive() -> impl Strategy<Value = KeepAlive> {
    (any::<u16>(), prop::sample::select(&Direction::BOTH[..]), any::<u64>(), any::<u64>(), any::<u64>())
        .prop_map(|(pair, direction, instance, sequence, transmit)| KeepAlive {
            pair: PairId(pair),
            direction,
            instance,
            sequence,
            transmit: Nanos(transmit),
        })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(sent in keep_alive(), padding in 0usize..100, later: u64) {
        let mut frame = sent.encode(&KEY).to_vec();
        frame.resize(KEEP_ALIVE_LENGTH + padding, 0);
        prop_assert_eq!(KeepAlive::decode(&frame, &KEY, sent.instance), Ok(sent));
        // The data plane writes the transmit time later; the tag still fits.
        prop_assert!(is_keep_alive(&frame) && stamp(&mut frame, Nanos(later)));
        let found = KeepAlive::decode(&frame, &KEY, sent.instance);
        prop_assert_eq!(found, Ok(KeepAlive { transmit: Nanos(later), ..sent }));
    }

    #[test]
    fn every_flipped_bit_outside_the_transmit_time_is_refused(sent in keep_alive()) {
        let frame = sent.encode(&KEY);
        for bit in 0..KEEP_ALIVE_LENGTH * 8 {
            let mut flipped = frame;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = KeepAlive::decode(&flipped, &KEY, sent.instance);
            let is_time = (TRANSMIT_TIME_OFFSET..TRANSMIT_TIME_OFFSET + 8).contains(&(bit / 8));
            prop_assert_eq!(found.is_ok(), is_time, "bit {} of byte {}: {:?}", bit % 8, bit / 8, found);
        }
    }

    #[test]
    fn another_key_and_another_instance_are_told_apart(sent in keep_alive(), key: [u8; 16], instance: u64) {
        prop_assume!(key != KEY.0 && instance != sent.instance);
        let frame = sent.encode(&KEY);
        let wrong_key = KeepAlive::decode(&frame, &KeepAliveKey(key), sent.instance);
        prop_assert_eq!(wrong_key, Err(KeepAliveFault::WrongTag));
        let wrong_instance = KeepAlive::decode(&frame, &KEY, instance);
        prop_assert_eq!(wrong_instance, Err(KeepAliveFault::WrongInstance(sent.instance)));
    }

    #[test]
    fn a_cut_frame_and_noise_are_malformed(sent in keep_alive(), length in 0usize..KEEP_ALIVE_LENGTH, noise: Vec<u8>) {
        let frame = sent.encode(&KEY);
        let cut = KeepAlive::decode(&frame[..length], &KEY, sent.instance);
        prop_assert_eq!(cut, Err(KeepAliveFault::Malformed));
        let has_place = length >= TRANSMIT_TIME_OFFSET + 8;
        prop_assert_eq!(stamp(&mut frame[..length].to_vec(), Nanos(1)), has_place);
        prop_assert!(KeepAlive::decode(&noise, &KEY, sent.instance).is_err());
    }

    #[test]
    fn the_wire_needs_no_help(sent in keep_alive()) {
        let frame = sent.encode(&KEY);
        prop_assert!(frame.len() >= 60);
        prop_assert_eq!(&frame[12..14], &KEEP_ALIVE_ETHERTYPE.to_be_bytes());
        let parsed = parse(&frame);
        prop_assert!(parsed.session.is_none());
        for mac in [&frame[..6], &frame[6..12]] {
            prop_assert_eq!(mac[0] & 0b11, 0b10, "unicast and locally administered");
        }
        let opposite = match sent.direction {
            Direction::LanToWan => Direction::WanToLan,
            Direction::WanToLan => Direction::LanToWan,
        };
        let back = KeepAlive { direction: opposite, ..sent }.encode(&KEY);
        prop_assert_ne!(&frame[6..12], &back[6..12], "a learning bridge needs two sources");
        prop_assert_eq!(&frame[..6], &back[6..12], "each goes to where the other comes from");
        prop_assert_eq!(&frame[6..12], &back[..6]);
    }
}
