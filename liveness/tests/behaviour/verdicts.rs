//! What a keep-alive that came back is worth.

use liveness::{
    CablingFault, Counters, Direction, Event, Fault, Nanos, PairKey, Probe, ProbeKind, Rejection, Side,
    UnknownPair, Verdict,
};

use crate::rig::{Rig, ms, profile, unit, us};

const THERE: Direction = Direction::LanToWan;

/// One pair, up, whose keep-alives the test answers itself; the latest one of LAN to WAN, sent just now.
fn one_under_way() -> (Rig, Probe) {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    rig.lose(|probe| probe.direction == THERE);
    rig.run_until(rig.supervision.next_deadline().unwrap());
    let probe =
        rig.sent.iter().rev().map(|(_, probe)| *probe).find(|probe| probe.direction == THERE).unwrap();
    (rig, probe)
}

fn receive(rig: &mut Rig, probe: Probe, transmit: Nanos, receive: Nanos) -> Verdict {
    rig.supervision.probe_received(probe, transmit, receive, rig.now).unwrap()
}

fn counters(rig: &Rig) -> Counters {
    rig.supervision.pair(PairKey(0)).unwrap().paths[THERE].tally.counters
}

#[test]
fn max_delay_itself_is_still_good_and_one_nanosecond_more_is_late() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    assert_eq!(receive(&mut rig, probe, sent, sent + ms(100)), Verdict::Good);
    let (mut rig, probe) = one_under_way();
    let lost = counters(&rig).lost;
    assert_eq!(receive(&mut rig, probe, sent, sent + ms(100) + Nanos(1)), Verdict::Late);
    assert_eq!((counters(&rig).late, counters(&rig).lost), (1, lost + 1));
}

#[test]
fn second_copies_are_duplicates_whatever_the_first_was() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    assert_eq!(receive(&mut rig, probe, sent, sent + us(5)), Verdict::Good);
    assert_eq!(receive(&mut rig, probe, sent, sent + us(6)), Verdict::Duplicate);
    let (mut rig, probe) = one_under_way();
    rig.run_for(ms(150));
    assert_eq!(receive(&mut rig, probe, sent, sent + ms(140)), Verdict::Late);
    assert_eq!(receive(&mut rig, probe, sent, sent + ms(140)), Verdict::Duplicate);
    let counted = counters(&rig);
    assert_eq!((counted.late, counted.duplicate, counted.lost), (1, 1, 1));
}

#[test]
fn late_ones_never_count_as_good() {
    let mut rig = Rig::all_up(&[unit(profile(|_| {}), 1)]);
    let before = counters(&rig).good;
    rig.wire = Box::new(|_, _| vec![ms(101)]);
    rig.run_for(ms(3_000));
    assert_eq!(rig.state(0), liveness::PairState::Down);
    let counted = counters(&rig);
    assert_eq!(counted.good, before);
    assert!(counted.late >= 28 && counted.late <= counted.lost, "{counted:?}");
}

#[test]
fn numbers_never_sent_or_long_forgotten_are_stale() {
    let (mut rig, probe) = one_under_way();
    let now = rig.now;
    for sequence in [probe.sequence + 1, probe.sequence + 1_000, u64::MAX] {
        assert_eq!(receive(&mut rig, Probe { sequence, ..probe }, now, now), Verdict::Stale, "{sequence}");
    }
    rig.lose_nothing();
    rig.run_for(ms(100 * 200));
    assert_eq!(receive(&mut rig, probe, now, now), Verdict::Stale);
    assert_eq!(counters(&rig).stale, 4);
}

#[test]
fn a_receive_time_before_the_transmit_time_is_stale_and_leaves_the_keep_alive_under_way() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    assert_eq!(receive(&mut rig, probe, sent + us(1), sent), Verdict::Stale);
    assert_eq!(receive(&mut rig, probe, sent, sent + us(1)), Verdict::Good);
}

#[test]
fn time_stamps_may_come_from_another_clock() {
    let (mut rig, probe) = one_under_way();
    let theirs = Nanos(77);
    assert_eq!(receive(&mut rig, probe, theirs, theirs + us(9)), Verdict::Good);
    let statistics = rig.supervision.pair(PairKey(0)).unwrap().paths[THERE].statistics;
    assert_eq!(statistics.delay.unwrap().min, us(9));
}

#[test]
fn a_direction_answers_for_itself_alone() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    assert_eq!(receive(&mut rig, probe, sent, sent + us(1)), Verdict::Good);
    let other = Probe { direction: Direction::WanToLan, ..probe };
    assert_eq!(
        receive(&mut rig, other, sent, sent + us(1)),
        Verdict::Good,
        "not a copy of the other direction's"
    );
}

#[test]
fn answers_to_keep_alives_that_carrier_loss_ended_are_stale() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    rig.supervision.carrier(PairKey(0), Side::Lan, false, sent).unwrap();
    assert_eq!(receive(&mut rig, probe, sent, sent + us(1)), Verdict::Stale);
    assert_eq!((counters(&rig).voided, counters(&rig).stale), (1, 1));
}

#[test]
fn unknown_pairs_are_named() {
    let mut rig = Rig::new(&[]);
    let error = rig.supervision.carrier(PairKey(3), Side::Lan, true, Nanos::ZERO).unwrap_err();
    assert_eq!(error, UnknownPair(PairKey(3)));
    assert_eq!(error.to_string(), "pair 3 is not supervised, configure it first");
}

#[test]
fn rejections_are_counted_each_by_its_reason_and_are_never_good() {
    let (mut rig, _) = one_under_way();
    let before = counters(&rig);
    for (why, times) in [
        (Rejection::WrongTag, 1),
        (Rejection::WrongInstance, 2),
        (Rejection::Looped, 3),
        (Rejection::WrongPair(PairKey(9)), 4),
    ] {
        for _ in 0..times {
            rig.supervision.probe_rejected(PairKey(0), ProbeKind::Pair, THERE, why, rig.now).unwrap();
        }
    }
    let expected = Counters { wrong_tag: 1, wrong_instance: 2, looped: 3, wrong_pair: 4, ..before };
    assert_eq!(counters(&rig), expected);
}

#[test]
fn a_cabling_fault_is_named_once_until_it_changes_or_is_disproved() {
    let (mut rig, probe) = one_under_way();
    let sent = rig.now;
    let named = |rig: &mut Rig, why| {
        rig.events.clear();
        rig.supervision.probe_rejected(PairKey(0), ProbeKind::Pair, THERE, why, rig.now).unwrap();
        rig.events = rig.supervision.poll(rig.now).events;
        rig.events.clone()
    };
    let fault =
        |fault| vec![Event::Cabling(CablingFault { pair: PairKey(0), direction: THERE, fault, at: sent })];
    let other = |pair| Rejection::WrongPair(PairKey(pair));
    assert_eq!(named(&mut rig, other(4)), fault(Fault::OtherPair(PairKey(4))));
    assert_eq!(named(&mut rig, other(4)), []);
    assert_eq!(named(&mut rig, other(5)), fault(Fault::OtherPair(PairKey(5))));
    assert_eq!(named(&mut rig, Rejection::WrongTag), []);
    assert_eq!(named(&mut rig, Rejection::Looped), fault(Fault::Looped));
    assert_eq!(named(&mut rig, Rejection::Looped), []);
    assert_eq!(receive(&mut rig, probe, sent, sent + us(1)), Verdict::Good);
    assert_eq!(named(&mut rig, Rejection::Looped), fault(Fault::Looped));
}

#[test]
fn news_is_a_reason_to_poll_at_once() {
    let (mut rig, _) = one_under_way();
    rig.run_for(ms(50));
    rig.supervision.carrier(PairKey(0), Side::Lan, false, rig.now).unwrap();
    assert_eq!(rig.supervision.next_deadline(), Some(rig.now));
    assert!(!rig.supervision.poll(rig.now).events.is_empty());
    assert_eq!(rig.supervision.next_deadline(), None, "without carrier there is nothing to wait for");
}
