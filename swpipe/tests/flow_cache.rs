//! Batches through a worker's flow cache while tables change, against one decision at a time without it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod site_file;

use std::sync::{Arc, Mutex};

use dataplane::entry::Update;
use dataplane::tables::{Family, PortRange, RuleAction, RuleEntry, RuleField, RuleMatch};
use dataplane::{PortId, Reason, UnitId};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use swpipe::batch::Forwarder;
use swpipe::counters::{Count, Place};
use swpipe::cpu::Cpu;
use swpipe::device::{Atomicity, Device};
use swpipe::edit::edited;
use swpipe::io::{BATCH, Edit, Frame, Sender};
use swpipe::pipeline::decide;
use swpipe::worker::Outlets;

const LAN: PortId = PortId(4 * 4 + 2);

type Sent = Arc<Mutex<Vec<(PortId, Vec<u8>)>>>;

struct Shelf(PortId, Sent);

impl Sender for Shelf {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        self.1.lock().unwrap().push((self.0, edited(frame, edit)));
        true
    }

    fn flush(&mut self) {}
}

/// A frame of one of a few sessions: what rules tell apart, and what they do not.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    (0..8_u8, 0..8_u8, select(&[6_u8, 17, 1][..]), 0..4_u16, any::<bool>(), any::<u8>()).prop_map(
        |(src, dst, proto, port, v6, other)| {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, other];
            if v6 {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, proto, 64]);
                for host in [src, dst] {
                    frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
                }
            } else {
                frame.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, proto, 0, 0]);
                frame.extend([10, 0, 0, src, 10, 0, 0, dst]);
            }
            frame.extend([1000 + port, 440 + port].map(u16::to_be_bytes).concat());
            frame.extend([other; 30]);
            frame
        },
    )
}

fn rule() -> impl Strategy<Value = RuleEntry> {
    let action = prop_oneof![
        1 => Just(RuleAction::Bypass),
        1 => Just(RuleAction::Drop),
        4 => Just(RuleAction::ToUnit(UnitId(0))),
        1 => Just(RuleAction::CopyToUnit(UnitId(0))),
    ];
    let bits = prop::option::of(0..8_u128);
    let port = prop::option::of((440..444_u16, 0..3_u16));
    (any::<bool>(), 1..6_i32, bits.clone(), bits, port, action).prop_map(
        |(v6, priority, src, dst, port, action)| {
            let family = if v6 { Family::V6 } else { Family::V4 };
            let mut matches = RuleMatch::default();
            for (field, value) in [(RuleField::SrcIp, src), (RuleField::DstIp, dst)] {
                if let Some(value) = value {
                    matches.set(field, value, 7);
                }
            }
            let of_ip = src.is_some() || dst.is_some() || port.is_some();
            if of_ip && family == Family::V4 {
                matches.set_exact(RuleField::IpVersion, 4, family);
            }
            if let Some((low, span)) = port {
                matches.set_exact(RuleField::HasPorts, 1, family);
                matches.dst_port = PortRange { low, high: low + span };
            }
            RuleEntry { family, priority, matches, action }
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    /// A burst, in which sessions come again.
    Frames(Vec<Vec<u8>>),
    Insert(Vec<RuleEntry>),
    Delete(Vec<Index>),
    /// Of any table but the rules: what is remembered stays right.
    Other(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::collection::vec(frame(), 1..2 * BATCH).prop_map(Step::Frames),
        3 => prop::collection::vec(rule(), 1..30).prop_map(Step::Insert),
        2 => prop::collection::vec(any::<Index>(), 1..20).prop_map(Step::Delete),
        1 => any::<Index>().prop_map(Step::Other),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn a_flow_is_served_and_counted_by_the_rules_as_they_are(steps in steps(), cpu in select(Cpu::all().collect::<Vec<_>>())) {
        let device = Device::default();
        let is_rule = |table: u32| Family::BOTH.iter().any(|family| family.table() == table);
        let (rules, others): (Vec<_>, Vec<_>) =
            site_file::example_entries().into_iter().partition(|entry| is_rule(entry.table));
        let write = |update: Update| device.write(&[update], Atomicity::AllOrNothing).is_ok();
        for entry in others.iter().chain(&rules).cloned() {
            let update = if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) };
            prop_assert!(write(update));
        }
        let sent = Sent::default();
        let senders = (0..64).map(|port| {
            (PortId(port), Box::new(Shelf(PortId(port), Arc::clone(&sent))) as Box<dyn Sender>)
        });
        let mut out = Outlets::new(senders.collect());
        let mut forwarder = Forwarder::with_cpu(device.counters().block(), cpu);
        for step in steps {
            match step {
                Step::Frames(frames) => {
                    let tables = device.snapshot().load_full();
                    let (mut wanted, mut hits) = (Vec::new(), std::collections::BTreeMap::new());
                    for frame in &frames {
                        let decision = decide(&tables, LAN, frame);
                        prop_assert_ne!(decision.reason, Reason::UnknownPort);
                        let exits = [decision.copy.and_then(|copy| copy.exit), decision.exit];
                        let exits = exits.into_iter().flatten();
                        wanted.extend(exits.map(|exit| (exit.port, edited(frame, exit.edit))));
                        if let Some(rule) = decision.rule {
                            let count: &mut Count = hits.entry(rule).or_default();
                            *count = Count { packets: count.packets + 1, bytes: count.bytes + frame.len() as u64 };
                        }
                    }
                    let places: Vec<_> = device.rule_names().into_keys().collect();
                    let read = || places.iter().map(|slot| device.counters().read(Place::Rule(*slot))).collect::<Vec<_>>();
                    let before = read();
                    let frames: Vec<Frame<'_>> = frames.iter().map(|bytes| Frame { bytes }).collect();
                    forwarder.forward(&tables, LAN, &frames, &mut out);
                    prop_assert_eq!(std::mem::take(&mut *sent.lock().unwrap()), wanted);
                    for ((slot, before), after) in places.iter().zip(before).zip(read()) {
                        let counted = Count { packets: after.packets - before.packets, bytes: after.bytes - before.bytes };
                        prop_assert_eq!(counted, hits.get(slot).copied().unwrap_or_default(), "{:?}", slot);
                    }
                }
                Step::Insert(rules) => rules.iter().for_each(|rule| { write(Update::Insert(rule.entry())); }),
                Step::Delete(which) => {
                    for which in which {
                        let rules: Vec<_> = device.entries(None).into_iter().filter(|entry| is_rule(entry.table)).collect();
                        if !rules.is_empty() {
                            prop_assert!(write(Update::Delete(rules[which.index(rules.len())].clone())));
                        }
                    }
                }
                Step::Other(which) => {
                    let entry = &others[which.index(others.len())];
                    if !entry.is_default {
                        prop_assert!(write(Update::Delete(entry.clone())));
                        prop_assert!(write(Update::Insert(entry.clone())));
                    }
                }
            }
        }
    }
}
