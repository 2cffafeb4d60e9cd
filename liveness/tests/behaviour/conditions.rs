//! `ip` and `negative` probes: further conditions of a pair's health.

use liveness::{Direction, PairKey, PairState, Probe, ProbeKind, Profile, Reason, SuspicionChange, Verdict};

use crate::rig::{Rig, healthy, ms, profile, unit, us};

fn asking() -> Profile {
    profile(|p| {
        p.ip = true;
        p.negative = true;
    })
}

fn rig() -> Rig {
    Rig::all_up(&[unit(asking(), 2)])
}

#[test]
fn a_pair_comes_up_only_when_everything_that_is_asked_is_good() {
    for missing in [ProbeKind::Ip, ProbeKind::Negative] {
        let mut rig = Rig::new(&[unit(asking(), 2)]);
        rig.wire = Box::new(move |probe, _| match probe.kind {
            kind if kind == missing && probe.pair == PairKey(1) => {
                if missing == ProbeKind::Negative {
                    vec![us(100)]
                } else {
                    vec![]
                }
            }
            _ => healthy(probe),
        });
        rig.run_for(ms(5_000));
        assert_eq!([rig.state(0), rig.state(1)], [PairState::Up, PairState::Down], "{missing}");
    }
}

#[test]
fn lost_ip_probes_take_the_pair_down_and_are_named() {
    let mut rig = rig();
    rig.lose(|probe| {
        (probe.pair, probe.kind, probe.direction) == (PairKey(1), ProbeKind::Ip, Direction::WanToLan)
    });
    let fault = rig.now;
    rig.run_for(ms(5_000));
    let [down] = rig.pair_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!(down.reason, Reason::IpLosses { direction: Direction::WanToLan, count: 5 });
    assert!(down.at <= fault + asking().detection_bound());
    assert_eq!(down.tallies.wan_to_lan.counters.lost, 0, "the plain ones are good");
    let ip = rig.supervision.pair(PairKey(1)).unwrap().ip.unwrap();
    assert!(ip.wan_to_lan.tally.counters.lost >= 40 && ip.lan_to_wan.tally.counters.lost == 0);
    assert_eq!(ip.lan_to_wan.statistics.delay.unwrap().average, us(200));
    rig.lose_nothing();
    rig.run_for(ms(1_000));
    assert_eq!(rig.state(1), PairState::Up);
}

#[test]
fn a_pair_that_is_cut_is_down_for_its_plain_keep_alives() {
    for instant in (0..100).step_by(7) {
        let mut rig = rig();
        rig.run_for(ms(instant));
        rig.lose(|probe| probe.pair == PairKey(0));
        rig.run_for(ms(1_000));
        assert!(matches!(rig.pair_transitions()[0].reason, Reason::Losses { .. }), "after {instant} ms");
    }
}

#[test]
fn negative_probes_that_come_back_take_the_pair_down_and_silence_brings_it_up() {
    let mut rig = rig();
    let leak = |probe: &Probe, pair: u16| {
        probe.kind == ProbeKind::Negative
            && probe.pair == PairKey(pair)
            && probe.direction == Direction::LanToWan
    };
    rig.wire = Box::new(move |probe, _| if leak(probe, 1) { vec![us(90)] } else { healthy(probe) });
    let fault = rig.now;
    rig.run_for(ms(2_000));
    let [down] = rig.pair_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!(down.reason, Reason::NegativeReturned { direction: Direction::LanToWan, count: 5 });
    assert!(down.at <= fault + asking().detection_bound());
    let status = rig.supervision.pair(PairKey(1)).unwrap().negative.unwrap();
    assert_eq!(status.lan_to_wan.returned, 20);
    assert_eq!((status.wan_to_lan.returned, status.wan_to_lan.last_return), (0, None));
    rig.events.clear();
    rig.lose_nothing();
    let cured = rig.now;
    rig.run_for(ms(2_000));
    let [up] = rig.pair_transitions()[..] else { panic!("{:?}", rig.events) };
    assert_eq!(up.to, PairState::Up);
    assert!(
        up.at >= cured + ms(500) && up.at <= cured + ms(700),
        "five silences, and max-delay to know the last"
    );
}

#[test]
fn a_leak_of_every_pair_is_no_fault_of_ours() {
    let mut rig = rig();
    rig.wire = Box::new(|_, _| vec![us(90)]);
    rig.run_for(ms(1_000));
    assert!((0..2).all(|pair| rig.state(pair) == PairState::Down));
    assert!(rig.suspicion_changes().is_empty());
}

#[test]
fn ip_probes_lost_everywhere_may_be_a_fault_of_ours() {
    let mut rig = rig();
    rig.lose(|probe| probe.kind == ProbeKind::Ip);
    rig.run_for(ms(1_000));
    assert!(rig.pair_transitions().is_empty());
    assert!(matches!(rig.suspicion_changes()[..], [SuspicionChange::LivenessSuspended { pairs: 2, .. }]));
}

#[test]
fn a_negative_probe_has_one_verdict() {
    let mut rig = rig();
    rig.run_until(rig.supervision.next_deadline().unwrap());
    while rig.sent.last().is_none_or(|(_, probe)| probe.kind != ProbeKind::Negative) {
        rig.run_until(rig.supervision.next_deadline().unwrap());
    }
    let probe = rig.sent.last().unwrap().1;
    let count = |rig: &Rig| rig.supervision.pair(probe.pair).unwrap().negative.unwrap()[probe.direction];
    let receive = |rig: &mut Rig, probe: Probe| {
        rig.supervision.probe_received(probe, rig.now, rig.now + us(1), rig.now)
    };
    let before = count(&rig);
    assert_eq!(receive(&mut rig, probe), Ok(Verdict::Returned));
    assert_eq!(receive(&mut rig, probe), Ok(Verdict::Duplicate));
    assert_eq!((count(&rig).returned, count(&rig).consecutive_silent), (before.returned + 1, 0));
    // One that was taken for silent and comes back after all counts against the pair as well.
    let late = Probe { sequence: probe.sequence - 3, ..probe };
    assert_eq!(receive(&mut rig, late), Ok(Verdict::Returned));
    assert_eq!(receive(&mut rig, late), Ok(Verdict::Duplicate));
    assert_eq!((count(&rig).late, count(&rig).consecutive_returned), (1, 2));
    let unknown = Probe { sequence: u64::MAX, ..probe };
    assert_eq!(receive(&mut rig, unknown), Ok(Verdict::Stale));
    let not_asked = Probe { kind: ProbeKind::Core(3), ..probe };
    assert_eq!(receive(&mut rig, not_asked), Ok(Verdict::Stale));
}

#[test]
fn unsent_probes_of_every_kind_are_voided() {
    let mut rig = Rig::all_up(&[unit(asking(), 1)]);
    rig.lose_everything();
    for _ in 0..300 {
        let due = rig.supervision.next_deadline().unwrap();
        rig.now = rig.now.max(due);
        let sent = rig.sent.len();
        rig.turn();
        for (_, probe) in rig.sent[sent..].iter().copied() {
            rig.supervision.probe_unsent(probe).unwrap();
        }
    }
    let status = rig.supervision.pair(PairKey(0)).unwrap();
    assert_eq!(status.state, PairState::Up);
    assert!(status.ip.unwrap().lan_to_wan.tally.counters.voided >= 90);
    assert!(status.negative.unwrap().wan_to_lan.voided >= 90);
}
