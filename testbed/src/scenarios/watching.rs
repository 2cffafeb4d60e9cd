//! What watches the appliances, when it is not simply one that hangs: a core of one, an overloaded one, a controller
//! that nobody ran for a while, and a fault of our own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fault::{OTHERS, Target, pass, set, target};
use super::load::{Load, lookup, symmetric};
use super::{consistency, fault};
use crate::appliance::Change;
use crate::check::Findings;
use crate::clock::ms_between;
use crate::error::Result;
use crate::frame::SessionKey;
use crate::lab::Lab;
use crate::scenario::Scenario;
use crate::sluice::{Counters, Event, Lookup};

/// The data-plane write follows the detection within this.
const WRITE_MS: f64 = 5.0;
/// The core that hangs.
const CORE: u8 = 1;
/// Of frames that the overloaded appliance is sent.
const LOSS_PPM: u64 = 300_000;

/// `core-hang`: one core of an appliance swallows its frames while all the others work.
pub(super) fn core_hang(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    let target = target(lab, scenario, true)?;
    let pair = target.pairs.join(", ");
    lab.wait_all_up()?;
    lab.forget_sessions()?;
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    let places = core_places(lab, &load)?;
    let hit = |key: &SessionKey| places.get(key).is_some_and(|place| *place == (pair.clone(), CORE));
    pass(lab, Duration::from_secs_f64(scenario.seconds))?;

    let newest = lab.last_event()?;
    findings.say(&format!("core {CORE} of {pair} hangs"));
    let change = |cores| Change { pair: Some(pair.clone()), hung_cores: Some(cores), ..Change::default() };
    let at = lab.change(&target.appliance, change(vec![CORE]))?;
    let down = await_core(lab, newest, &pair, "down")?;
    pass(lab, Duration::from_secs_f64(scenario.seconds))?;
    let state = lab.sluice()?.balancer()?;
    let drops: Counters = lab.sluice()?.show("counters drops")?;
    let newest = lab.last_event()?;
    lab.change(&target.appliance, change(vec![]))?;
    await_core(lab, newest, &pair, "up")?;
    let home = lab.sluice()?.balancer()?;
    let outcome = load.finish(lab)?;

    let bound = lab.detection_bound().as_secs_f64() * 1e3;
    let found = ms_between(at, down.at_ns());
    findings.check(
        "the core was found within interval x probes-down-count + max-delay",
        found <= bound + lab.slack_ms(),
        format!("after {found:.1} ms, bound {bound:.0} ms"),
    );
    let written = down.data_plane_ns.map(|ns| ns as f64 / 1e6);
    findings.check(
        "the data plane had it within 5 ms of the detection",
        written.is_some_and(|ms| ms <= WRITE_MS + lab.slack_ms()),
        written.map_or("no event says when".into(), |ms| format!("{ms:.2} ms")),
    );
    let cores = |state: &crate::sluice::Balancer| {
        let found = state.pairs().find(|found| found.name == pair);
        found.map(|found| (found.state.clone(), found.cores_down.clone())).unwrap_or_default()
    };
    findings.check(
        "the pair stayed up, without that core",
        cores(&state) == ("up".into(), vec![CORE]),
        format!("{:?}", cores(&state)),
    );
    let bypassed = drops.of_reason("core-down");
    findings.check("its share was bypassed", bypassed > 0, format!("{bypassed} frames as core-down"));
    let late: Vec<f64> = outcome
        .losses(hit)
        .into_iter()
        .map(|sent| ms_between(down.at_ns(), sent))
        .filter(|ms| *ms > WRITE_MS + lab.slack_ms())
        .collect();
    findings.check(
        "its share lost nothing after that",
        late.is_empty() && places.values().any(|place| *place == (pair.clone(), CORE)),
        format!("{} datagrams lost in all, {} of them late", outcome.losses(hit).len(), late.len()),
    );
    outcome.check_udp_of(OTHERS, findings, |key| !hit(key));
    findings.check("it came home by itself", cores(&home).1.is_empty(), format!("{:?}", cores(&home)));
    outcome.check_tcp(lab, findings)?;
    consistency::check_links_kept(lab, findings)
}

/// Pair and core of every session.
fn core_places(lab: &Lab, load: &Load) -> Result<BTreeMap<SessionKey, (String, u8)>> {
    let sluice = lab.sluice()?;
    let link = &lab.topology.links[0].name;
    let mut places = BTreeMap::new();
    for (key, ends) in load.keys() {
        let found: Lookup = sluice.show(&lookup(&ends, key.proto, link))?;
        if let (Some(pair), Some(core)) = (found.pair, found.core) {
            places.insert(key, (pair, core));
        }
    }
    Ok(places)
}

fn await_core(lab: &mut Lab, after: u64, pair: &str, state: &str) -> Result<Event> {
    let patience = lab.detection_bound() + lab.recovery_time() + Duration::from_secs(10);
    let sluice = lab.sluice()?;
    lab.wait_until(&format!("core {CORE} of {pair} to be {state}"), patience, |lab| {
        lab.still_running()?;
        let events = sluice.events_after(after)?;
        let subject = format!("/{pair}/{CORE}");
        let found = events.into_iter().find(|event| {
            event.kind == "core" && event.subject.ends_with(&subject) && event.after.as_deref() == Some(state)
        });
        Ok(found.ok_or_else(|| "no such event".to_owned()))
    })
}

/// What a time with an overloaded appliance cost.
struct Toll {
    transitions: usize,
    lost: usize,
    sent: u64,
}

/// `overload`: an appliance loses 30 % of what it is sent, first without `hold-down`, then with it.
pub(super) fn overload(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    let target = target(lab, scenario, true)?;
    lab.wait_all_up()?;
    let without = suffer(lab, scenario, &target)?;
    lab.sluice()?.configure(&["set liveness profile default hold-down on"])?;
    lab.wait_all_up()?;
    let with = suffer(lab, scenario, &target)?;
    let words = |toll: &Toll| {
        format!("{} transitions, {} of {} datagrams lost", toll.transitions, toll.lost, toll.sent)
    };
    findings.check(
        "without hold-down it flaps",
        without.transitions > with.transitions,
        format!("in {:.0} s {}", scenario.seconds, words(&without)),
    );
    findings.check(
        "with hold-down at most 6 transitions",
        with.transitions <= 6,
        format!("in {:.0} s {}", scenario.seconds, words(&with)),
    );
    findings.check(
        "and less traffic is lost",
        with.lost < without.lost,
        format!("{} instead of {} datagrams", with.lost, without.lost),
    );
    let pair = target.pairs.join(", ");
    lab.sluice()?
        .run(&format!("call ecofilter-balancer clear-hold {} {pair}", lab.topology.units[0].name))
        .or_else(
        // It may have been in its trial just then.
        |_| Ok::<_, crate::error::Error>(String::new()),
    )?;
    lab.wait_pairs(&target.pairs, "up", lab.recovery_time() + Duration::from_secs(10))?;
    findings.check("clear-hold brought it back", true, format!("{pair} up"));
    consistency::check_links_kept(lab, findings)
}

fn suffer(lab: &mut Lab, scenario: &Scenario, target: &Target) -> Result<Toll> {
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    let newest = lab.last_event()?;
    let change =
        |loss| Change { pair: target.pairs.first().cloned(), loss_ppm: Some(loss), ..Change::default() };
    lab.change(&target.appliance, change(LOSS_PPM))?;
    pass(lab, Duration::from_secs_f64(scenario.seconds))?;
    let events = lab.sluice()?.events_after(newest)?;
    lab.change(&target.appliance, change(0))?;
    let outcome = load.finish(lab)?;
    let transitions = events.iter().filter(|event| event.kind == "pair" && event.after.is_some()).count();
    let lost = outcome.udp.iter().map(|report| report.lost.len()).sum();
    let sent = outcome.udp.iter().map(|report| report.sent).sum();
    Ok(Toll { transitions, lost, sent })
}

/// `controller-freeze`: the controller is stopped for two seconds and goes on; no pair changes.
pub(super) fn controller_freeze(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    let load = Load::start(lab, scenario, &symmetric(lab))?;
    let newest = lab.last_event()?;
    for _ in 0..scenario.cycles {
        findings.say("the controller is stopped for 2 s");
        lab.stop_controller_for(Duration::from_secs(2))?;
        pass(lab, Duration::from_secs_f64(scenario.seconds))?;
    }
    let events = lab.sluice()?.events_after(newest)?;
    let outcome = load.finish(lab)?;
    let changes: Vec<String> = events
        .iter()
        .filter(|event| ["pair", "unit", "core"].contains(&event.kind.as_str()))
        .map(|event| format!("{} {:?}", event.subject, event.after))
        .collect();
    findings.check(
        "no pair and no unit changed",
        changes.is_empty(),
        format!("{} stops; {} changes {}", scenario.cycles, changes.len(), changes.join(", ")),
    );
    outcome.check_udp(findings);
    outcome.check_tcp(lab, findings)?;
    consistency::check_links_kept(lab, findings)
}

/// `suspended`: every appliance stops answering at once, as when the controller's own path is cut.
pub(super) fn suspended(lab: &mut Lab, findings: &mut Findings) -> Result<()> {
    lab.wait_all_up()?;
    let all: Vec<Target> = lab
        .topology
        .appliances
        .iter()
        .map(|appliance| Target { appliance: appliance.name.clone(), pairs: appliance.pairs.clone() })
        .collect();
    let limit = match lab.topology.liveness_value("suspend-limit") {
        1 => 3000.0,
        limit => limit as f64,
    };
    let word = |event: &&Event, word: &str| {
        event.kind == "liveness" && event.reason.as_deref().is_some_and(|reason| reason.starts_with(word))
    };
    // First for less than the limit: nobody goes down.
    for (short, broken) in [(true, Duration::from_millis(limit as u64 / 2)), (false, Duration::from_secs(30))]
    {
        let newest = lab.last_event()?;
        for target in &all {
            set(lab, target, fault::Fault::Hang, true)?;
        }
        if short {
            pass(lab, broken + lab.detection_bound())?;
        } else {
            lab.wait_pairs(&lab.pair_names(), "down", broken)?;
        }
        let events = lab.sluice()?.events_after(newest)?;
        for target in &all {
            set(lab, target, fault::Fault::Hang, false)?;
        }
        lab.wait_all_up()?;
        if short {
            let sluice = lab.sluice()?;
            lab.wait_until("liveness to resume", lab.detection_bound() + Duration::from_secs(10), |_| {
                let resumed =
                    sluice.events_after(newest)?.iter().any(|event| word(&event, "liveness-resumed"));
                Ok(if resumed { Ok(()) } else { Err("not yet".to_owned()) })
            })?;
        }
        let suspended = events.iter().find(|event| word(event, "liveness-suspended"));
        let downs: Vec<&Event> = events.iter().filter(|event| event.is_down()).collect();
        findings.check(
            if short { "liveness-suspended is said" } else { "liveness-suspended is said again" },
            suspended.is_some(),
            suspended.and_then(|event| event.reason.clone()).unwrap_or_default(),
        );
        if short {
            findings.check("states were kept", downs.is_empty(), format!("{} downs", downs.len()));
            continue;
        }
        let kept =
            suspended.zip(downs.first()).map(|(suspended, down)| ms_between(suspended.at_ns(), down.at_ns()));
        findings.check(
            "after suspend-limit the losses are believed",
            kept.is_some_and(|ms| ms >= limit && ms <= limit + 100.0 + lab.slack_ms())
                && events.iter().any(|event| word(&event, "liveness-believed")),
            kept.map_or("nobody went down".into(), |ms| format!("after {ms:.0} ms, limit {limit:.0} ms")),
        );
    }
    Ok(())
}
