//! The codec against itself, against octets by hand, and against rubbish.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::num::NonZeroU8;

use agentx::{
    Binding, Body, ByteOrder, CloseReason, Indexes, Objects, Oid, Pdu, Registration, ResponseError,
    SearchRange, Value, answer,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn oid() -> impl Strategy<Value = Oid> {
    let any_parts = vec(any::<u32>(), 0..=128);
    let internet = (0u32..=300, vec(any::<u32>(), 0..20))
        .prop_map(|(branch, rest)| [vec![1, 3, 6, 1, branch], rest].concat());
    prop_oneof![any_parts, internet].prop_map(Oid::new)
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..70)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::Integer),
        octets().prop_map(Value::OctetString),
        Just(Value::Null),
        oid().prop_map(Value::ObjectIdentifier),
        any::<[u8; 4]>().prop_map(Value::IpAddress),
        any::<u32>().prop_map(Value::Counter32),
        any::<u32>().prop_map(Value::Gauge32),
        any::<u32>().prop_map(Value::TimeTicks),
        octets().prop_map(Value::Opaque),
        any::<u64>().prop_map(Value::Counter64),
        Just(Value::NoSuchObject),
        Just(Value::NoSuchInstance),
        Just(Value::EndOfMibView),
    ]
}

fn bindings() -> impl Strategy<Value = Vec<Binding>> {
    vec((oid(), value()).prop_map(|(name, value)| Binding { name, value }), 0..6)
}

fn ranges() -> impl Strategy<Value = Vec<SearchRange>> {
    let range =
        (oid(), any::<bool>(), oid()).prop_map(|(start, include, end)| SearchRange { start, include, end });
    vec(range, 0..6)
}

fn context() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(octets())
}

fn registration(full: bool) -> impl Strategy<Value = Registration> {
    let range = option::of((1..=255u8, any::<u32>()));
    (context(), any::<u8>(), any::<u8>(), oid(), range, any::<bool>()).prop_map(
        move |(context, timeout, priority, subtree, range, instance)| Registration {
            context,
            timeout: if full { timeout } else { 0 },
            priority,
            subtree,
            range: range.map(|(range, bound)| (NonZeroU8::new(range).unwrap(), bound)),
            instance: full && instance,
        },
    )
}

fn indexes() -> impl Strategy<Value = Indexes> {
    (context(), any::<bool>(), any::<bool>(), bindings()).prop_map(|(context, new, any, bindings)| Indexes {
        context,
        new,
        any,
        bindings,
    })
}

fn body() -> impl Strategy<Value = Body> {
    let reason = prop_oneof![
        Just(CloseReason::Other),
        Just(CloseReason::Shutdown),
        Just(CloseReason::ByManager),
        (7u8..).prop_map(CloseReason::Unknown),
    ];
    prop_oneof![
        (any::<u8>(), oid(), octets()).prop_map(|(timeout, id, description)| Body::Open {
            timeout,
            id,
            description
        }),
        reason.prop_map(|reason| Body::Close { reason }),
        registration(true).prop_map(Body::Register),
        registration(false).prop_map(Body::Unregister),
        (context(), ranges()).prop_map(|(context, ranges)| Body::Get { context, ranges }),
        (context(), ranges()).prop_map(|(context, ranges)| Body::GetNext { context, ranges }),
        (context(), any::<u16>(), any::<u16>(), ranges()).prop_map(
            |(context, non_repeaters, max_repetitions, ranges)| Body::GetBulk {
                context,
                non_repeaters,
                max_repetitions,
                ranges
            }
        ),
        (context(), bindings()).prop_map(|(context, bindings)| Body::TestSet { context, bindings }),
        Just(Body::CommitSet),
        Just(Body::UndoSet),
        Just(Body::CleanupSet),
        (context(), bindings()).prop_map(|(context, bindings)| Body::Notify { context, bindings }),
        context().prop_map(|context| Body::Ping { context }),
        indexes().prop_map(Body::IndexAllocate),
        indexes().prop_map(Body::IndexDeallocate),
        (context(), oid(), octets()).prop_map(|(context, id, description)| Body::AddAgentCaps {
            context,
            id,
            description
        }),
        (context(), oid()).prop_map(|(context, id)| Body::RemoveAgentCaps { context, id }),
        (any::<u32>(), any::<u16>(), any::<u16>(), bindings()).prop_map(
            |(uptime, error, index, bindings)| {
                Body::Response { uptime, error: ResponseError(error), index, bindings }
            }
        ),
    ]
}

fn pdu() -> impl Strategy<Value = Pdu> {
    let order = prop_oneof![Just(ByteOrder::Network), Just(ByteOrder::Little)];
    (order, any::<u32>(), any::<u32>(), any::<u32>(), body()).prop_map(
        |(order, session, transaction, packet, body)| Pdu { order, session, transaction, packet, body },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_written_is_read(pdu in pdu()) {
        let octets = pdu.encode();
        prop_assert_eq!(octets.len() % 4, 0);
        prop_assert_eq!(Pdu::decode(&octets), Ok(pdu));
    }

    #[test]
    fn cut_off_anywhere_it_is_an_error(pdu in pdu(), at in any::<prop::sample::Index>()) {
        let octets = pdu.encode();
        prop_assert!(Pdu::decode(&octets[..at.index(octets.len())]).is_err());
    }

    /// Whatever is taken is written and read as the same, so it was understood whole.
    #[test]
    fn mutated_octets_are_an_error_or_another_pdu(
        pdu in pdu(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut octets = pdu.encode();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if let Ok(other) = Pdu::decode(&octets) {
            prop_assert_eq!(Pdu::decode(&other.encode()), Ok(other.clone()));
            // Whatever is asked, it is answered.
            let _ = answer(&Objects::default(), &other.body);
        }
    }

    #[test]
    fn rubbish_is_an_error_or_a_pdu(octets in vec(any::<u8>(), 0..200)) {
        if let Ok(other) = Pdu::decode(&octets) {
            prop_assert_eq!(Pdu::decode(&other.encode()), Ok(other));
        }
    }
}

/// The octets of RFC 2741 section 5.1's and 5.4's examples and of a Get as net-snmp's snmpd sends it.
#[test]
fn octets_by_hand() {
    let get = Pdu {
        order: ByteOrder::Network,
        session: 0x11,
        transaction: 0x2222,
        packet: 0x3333_3333,
        body: Body::Get {
            context: None,
            ranges: vec![SearchRange {
                start: "1.3.6.1.2.1.1.1.0".parse().unwrap(),
                include: true,
                end: Oid::default(),
            }],
        },
    };
    let octets = [
        1, 5, 0x10, 0, 0, 0, 0, 0x11, 0, 0, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33, 0, 0, 0, 24, // header
        4, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        0, // sysDescr.0: 1.3.6.1.2 is the prefix
        0, 0, 0, 0, // no end
    ];
    assert_eq!(get.encode(), octets);
    assert_eq!(Pdu::decode(&octets), Ok(get));

    let ping = Pdu {
        order: ByteOrder::Little,
        session: 1,
        transaction: 2,
        packet: 3,
        body: Body::Ping { context: Some(b"abcde".to_vec()) },
    };
    let octets = [
        1, 13, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 12, 0, 0, 0, // header
        5, 0, 0, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0,
    ];
    assert_eq!(ping.encode(), octets);
    assert_eq!(Pdu::decode(&octets), Ok(ping));
}

#[test]
fn what_is_wrong_is_said() {
    let error = |change: fn(&mut Vec<u8>)| {
        let body = Body::Ping { context: None };
        let pdu = Pdu { order: ByteOrder::Network, session: 1, transaction: 1, packet: 1, body };
        let mut octets = pdu.encode();
        change(&mut octets);
        Pdu::decode(&octets).unwrap_err().to_string()
    };
    assert_eq!(error(|octets| octets[0] = 2), "AgentX version 2; this is version 1");
    assert_eq!(error(|octets| octets[1] = 19), "PDU type 19; there are 1 to 18");
    assert!(error(|octets| octets[19] = 3).starts_with("payload of 3 octets; it must be a multiple of 4"));
    assert_eq!(error(|octets| octets.push(0)), "1 octets too many");
    assert_eq!(error(|octets| octets.truncate(7)), "a header needs 20 octets, 7 are left");
}
