#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use dataplane::UnitId;
use dataplane::tables::{Family, PortRange, RuleField, RuleMatch};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::cpu::{Cpu, Work};
use crate::headers::shift;

/// Few values, so that rules meet frames and each other.
fn matches() -> impl Strategy<Value = RuleMatch> {
    let prefix = select(&[0_u32, 1, 8, 24, 31, 32][..]);
    let address = (prefix.clone(), 0_u32..6);
    let range = prop_oneof![
        3 => Just(PortRange::ALL),
        2 => (0_u16..8).prop_map(|port| PortRange { low: port, high: port }),
        3 => (0_u16..8, any::<u16>()).prop_map(|(low, span)| PortRange { low, high: low.saturating_add(span) }),
        1 => (0_u16..=u16::MAX, 0_u16..=u16::MAX).prop_map(|(a, b)| PortRange { low: a.min(b), high: a.max(b) }),
    ];
    let proto = select(&[None, Some(6_u128), Some(17)][..]);
    (address.clone(), address, proto, range.clone(), range).prop_map(
        |(src, dst, proto, src_port, dst_port)| {
            let mut matches = RuleMatch::default();
            for (field, (length, host)) in [(RuleField::SrcIp, src), (RuleField::DstIp, dst)] {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                matches.set(field, u128::from(0x0a00_0000 | host), u128::from(mask));
            }
            if let Some(proto) = proto {
                matches.set_exact(RuleField::IpProto, proto, Family::V4);
            }
            (matches.src_port, matches.dst_port) = (src_port, dst_port);
            matches
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    /// Priority and conditions.
    Insert(i32, Box<RuleMatch>),
    Modify(Index, u8),
    Delete(Index),
    /// Most of them, so that many become few.
    DeleteAllBut(usize),
    Keep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (1..9_i32, matches()).prop_map(|(priority, matches)| Step::Insert(priority, Box::new(matches))),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(which, unit)| Step::Modify(which, unit)),
        8 => any::<Index>().prop_map(Step::Delete),
        1 => (0..20_usize).prop_map(Step::DeleteAllBut),
        1 => Just(Step::Keep),
    ];
    prop::collection::vec(step, 0..500)
}

fn key() -> impl Strategy<Value = Headers> {
    let port = prop_oneof![4 => 0_u32..9, 1 => 0..=0xffff_u32];
    (0_u64..6, 0_u64..6, select(&[6_u64, 17, 1][..]), port.clone(), port).prop_map(
        |(src, dst, proto, from, to)| {
            let mut headers = Headers { ip: Ip::V4, ports: from << 16 | to, ..Headers::EMPTY };
            headers.words[0] = 4 << shift::IP_VERSION | proto << shift::IP_PROTO | 1 << shift::HAS_PORTS;
            headers.words[1] = (0x0a00_0000 | src) << 32 | 0x0a00_0000 | dst;
            headers
        },
    )
}

/// Every rule, by its rank.
type Model = BTreeMap<Rank, (RuleEntry, Seat)>;

/// The contract: the first in order whose conditions all hold.
fn expected(model: &Model, headers: &Headers) -> Option<Matched> {
    let (src_port, dst_port) = ((headers.ports >> 16) as u16, headers.ports as u16);
    let found = model.values().find(|(rule, _)| {
        let holds = |field: RuleField, value: u64| {
            let condition = rule.matches.get(field);
            u128::from(value) & condition.mask == condition.value
        };
        holds(RuleField::SrcIp, headers.words[1] >> 32)
            && holds(RuleField::DstIp, headers.words[1] & 0xffff_ffff)
            && holds(RuleField::IpProto, headers.words[0] >> shift::IP_PROTO & 0xff)
            && rule.matches.src_port.contains(src_port)
            && rule.matches.dst_port.contains(dst_port)
    });
    found.map(|(rule, seat)| (seat.slot, rule.action))
}

/// Looks a key up as a kind of processor does.
struct Lookup<'r>(&'r Rules, &'r Headers, &'r mut Option<Matched>);

impl Work for Lookup<'_> {
    #[inline(always)]
    fn run(self, isa: impl Isa) {
        *self.2 = self.0.first_match(self.1, isa);
    }
}

fn check(rules: &Rules, model: &Model, keys: &[Headers]) -> Result<(), TestCaseError> {
    prop_assert_eq!(rules.v4.len(), model.len());
    for key in keys {
        let wanted = expected(model, key);
        prop_assert_eq!(rules.lookup(key), wanted);
        for cpu in Cpu::all() {
            let mut found = None;
            cpu.run(Lookup(rules, key, &mut found));
            prop_assert_eq!(found, wanted, "{:?}", cpu);
        }
        // Keys that differ in nothing relevant are one flow to the cache.
        let (words, ports) = rules.v4.relevant(key.v4_words(), key.ports);
        let mut masked = Headers { ports, ip: Ip::V4, ..Headers::EMPTY };
        masked.words[..V4_WORDS].copy_from_slice(&words);
        prop_assert_eq!(rules.lookup(&masked), wanted);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn rules_of_any_number_and_shape_are_what_one_sorted_list_is(
        steps in steps(),
        keys in prop::collection::vec(key(), 20),
    ) {
        let (mut rules, mut model) = (Rules::default(), Model::new());
        let mut kept: Vec<(Rules, Model)> = Vec::new();
        let mut turn = 0;
        for step in steps {
            match step {
                Step::Insert(priority, matches) => {
                    turn += 1;
                    let seat = Seat { slot: RuleSlot(turn as u32), turn };
                    let rule = RuleEntry { family: Family::V4, priority, matches: *matches, action: RuleAction::Drop };
                    rules.set(&rule, seat);
                    model.insert(Rank::of(&rule, seat), (rule, seat));
                }
                Step::Modify(which, unit) if !model.is_empty() => {
                    let (_, (rule, seat)) = model.iter_mut().nth(which.index(turn as usize) % rules.v4.len()).unwrap();
                    rule.action = RuleAction::ToUnit(UnitId(unit));
                    rules.set(rule, *seat);
                }
                Step::Delete(which) if !model.is_empty() => {
                    let rank = *model.keys().nth(which.index(model.len())).unwrap();
                    let (rule, seat) = model.remove(&rank).unwrap();
                    rules.clear(&rule, seat);
                }
                Step::DeleteAllBut(left) => {
                    while model.len() > left {
                        let (_, (rule, seat)) = model.pop_first().unwrap();
                        rules.clear(&rule, seat);
                    }
                }
                Step::Keep => {
                    check(&rules, &model, &keys)?;
                    kept.push((rules.clone(), model.clone()));
                }
                Step::Modify(..) | Step::Delete(_) => {}
            }
        }
        check(&rules, &model, &keys)?;
        let states: std::collections::BTreeSet<u64> = kept.iter().map(|(rules, _)| rules.state()).collect();
        for (rules, model) in &kept {
            check(rules, model, &keys)?;
        }
        let distinct = kept.windows(2).filter(|pair| pair[0].0.state() != pair[1].0.state()).count();
        prop_assert!(states.len() >= distinct.min(1));
    }
}

/// A rule of one of twelve shapes.
fn of_shape(number: u32, priority: i32) -> RuleEntry {
    let mut matches = RuleMatch::default();
    let lengths = [8 + number % 12 * 2, 32];
    let mask = u128::from(u32::MAX << (32 - lengths[0]));
    matches.set(RuleField::SrcIp, u128::from(number.wrapping_mul(0x9e37_79b9)), mask);
    matches.set(RuleField::DstIp, u128::from(number), u128::from(u32::MAX));
    RuleEntry { family: Family::V4, priority, matches, action: RuleAction::Bypass }
}

#[test]
fn a_hundred_thousand_rules_come_and_go() {
    let mut rules = Rules::default();
    let seat = |number: u32| Seat { slot: RuleSlot(number), turn: number.into() };
    for number in 0..100_000 {
        rules.set(&of_shape(number, 1 + number as i32 % 97), seat(number));
    }
    let before = rules.clone();
    let look = |rules: &Rules, number: u32| {
        let mut headers = Headers { ip: Ip::V4, ..Headers::EMPTY };
        headers.words[1] = u64::from(number.wrapping_mul(0x9e37_79b9)) << 32 | u64::from(number);
        rules.lookup(&headers).map(|(slot, _)| slot.0)
    };
    assert!((0..100_000).all(|number| look(&rules, number) == Some(number)));
    assert_eq!(look(&rules, 100_000), None);
    for number in (0..100_000).filter(|number| number % 3 != 0) {
        rules.clear(&of_shape(number, 1 + number as i32 % 97), seat(number));
    }
    assert!((0..100_000).all(|number| look(&rules, number) == (number % 3 == 0).then_some(number)));
    for number in (0..100_000).filter(|number| number % 3 == 0) {
        rules.clear(&of_shape(number, 1 + number as i32 % 97), seat(number));
    }
    assert!(rules.v4.is_empty());
    assert!((0..100_000).step_by(7).all(|number| look(&before, number) == Some(number)), "a snapshot stays");
}

#[test]
fn rules_that_differ_in_ranges_alone_come_and_go() {
    let range =
        |number: u16| PortRange { low: number.wrapping_mul(37) % 30_000, high: 30_000 + number % 20_000 };
    let rule = |number: u16| {
        let mut matches = RuleMatch::default();
        if number.is_multiple_of(2) {
            matches.dst_port = range(number)
        } else {
            matches.src_port = range(number)
        }
        RuleEntry {
            family: Family::V4,
            priority: 1 + i32::from(number.wrapping_mul(7919) % 500),
            matches,
            action: RuleAction::Drop,
        }
    };
    let seat = |number: u16| Seat { slot: RuleSlot(number.into()), turn: number.into() };
    let (mut rules, mut model) = (Rules::default(), Model::new());
    let look_at_all = |rules: &Rules, model: &Model| {
        for ports in [0_u32, 0x0001_0001, 0x7530_0000, 0x0000_7530, 0x9c40_9c40, 0xffff_ffff, 0x1234_8765] {
            let headers = Headers { ip: Ip::V4, ports, ..Headers::EMPTY };
            assert_eq!(
                rules.lookup(&headers),
                expected(model, &headers),
                "{ports:#x}, {} rules",
                model.len()
            );
        }
    };
    for number in 0..4_000 {
        rules.set(&rule(number), seat(number));
        model.insert(Rank::of(&rule(number), seat(number)), (rule(number), seat(number)));
        if number % 100 == 0 {
            look_at_all(&rules, &model);
        }
    }
    for number in (0..4_000).rev() {
        rules.clear(&rule(number), seat(number));
        model.remove(&Rank::of(&rule(number), seat(number)));
        if number % 100 == 0 || number < 40 {
            look_at_all(&rules, &model);
        }
    }
    assert!(rules.v4.is_empty());
}
