//! What watches the appliances, when it is not simply one that hangs: a core of one, an overloaded one, a controller
//! that nobody ran for a while, and a fault of our own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fault::{OTHERS, Target, pass, set, target};
use super::load::{Load, lookup, symmetric};
use super::{consistency, fault};
use crate::appliance::{Change, Forgery};
use crate::check::Findings;
use crate::clock::ms_between;
use crate::error::Result;
use crate::frame::SessionKey;
use crate::lab::Lab;
use crate::scenario::Scenario;
use crate::sluice::{Counters, Event, Keepalives, Lookup, PairLiveness};

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

/// `forgeries`: an appliance answers with keep-alives that are not those that it got. Each kind is counted under its
/// verdict, and the pair goes down: none is believed.
pub(super) fn forgeries(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    let target = target(lab, scenario, true)?;
    let pair = target.pairs.join(", ");
    lab.wait_all_up()?;
    for forgery in Forgery::ALL {
        let before = keepalives(lab, &pair)?;
        let newest = lab.last_event()?;
        let change =
            |forgery| Change { pair: Some(pair.clone()), forgery: Some(forgery), ..Change::default() };
        let at = lab.change(&target.appliance, change(forgery))?;
        lab.wait_pairs(&target.pairs, "down", lab.detection_bound() + Duration::from_secs(10))?;
        let events = lab.sluice()?.events_after(newest)?;
        let after = keepalives(lab, &pair)?;
        lab.change(&target.appliance, change(Forgery::None))?;
        lab.wait_pairs(&target.pairs, "up", lab.recovery_time() + Duration::from_secs(10))?;
        let counted = match forgery {
            Forgery::Tag => after.wrong_tag - before.wrong_tag,
            Forgery::Instance => after.wrong_instance - before.wrong_instance,
            Forgery::Loop => after.looped - before.looped,
            Forgery::Replay => (after.stale + after.duplicate) - (before.stale + before.duplicate),
            Forgery::None => 0,
        };
        let wanted = 2 * lab.topology.liveness_value("probes-down-count");
        // One or two genuine ones were on their way.
        let good = after.good - before.good;
        let found = events.iter().find(|event| event.is_pair(&pair, "down"));
        let found = found.map(|event| ms_between(at, event.at_ns()));
        let bound = lab.detection_bound().as_secs_f64() * 1e3 + lab.slack_ms();
        findings.check(
            &format!("{forgery:?}: counted under its verdict, and not believed"),
            counted + 2 >= wanted && found.is_some_and(|ms| ms <= bound),
            format!(
                "{counted} counted, {good} genuine ones before; down after {:.0} ms",
                found.unwrap_or(f64::NAN)
            ),
        );
        if forgery == Forgery::Loop {
            let named = events.iter().any(|event| {
                event.is_about(&pair)
                    && event.reason.as_deref().is_some_and(|reason| reason.starts_with("looped"))
            });
            findings.check("the loop is named in the event log", named, format!("{named}"));
        }
    }
    Ok(())
}

fn keepalives(lab: &Lab, pair: &str) -> Result<Keepalives> {
    let status: Vec<PairLiveness> = lab.sluice()?.show("liveness profile-status")?;
    Ok(Keepalives::sum(status.iter().filter(|status| status.pair == pair)))
}

/// UDP port that the appliances' policy denies.
const DENIED: u16 = 9999;

/// `processing`: keep-alives pass an appliance whose processing has stopped, or whose policy is gone; probes tell.
pub(super) fn processing(lab: &mut Lab, scenario: &Scenario, findings: &mut Findings) -> Result<()> {
    let target = target(lab, scenario, true)?;
    let pair = target.pairs.join(", ");
    lab.wait_all_up()?;
    let one = |change: Change| Change { pair: Some(pair.clone()), ..change };
    let stopped = |stopped| one(Change { ip_stopped: Some(stopped), ..Change::default() });
    fails(lab, findings, &target, [stopped(true), stopped(false)], "ip-losses")?;

    // The policy first: what must not come back must not do so from the first probe on.
    for appliance in lab.emulated() {
        lab.change(&appliance, Change { drop_udp_port: Some(DENIED), ..Change::default() })?;
    }
    lab.sluice()?.configure(&[
        "set liveness profile default negative-probe source 192.0.2.1 destination 198.51.100.1",
        &format!(
            "set liveness profile default negative-probe source-port {DENIED} destination-port {DENIED}"
        ),
    ])?;
    let newest = lab.last_event()?;
    pass(lab, lab.detection_bound() + lab.recovery_time())?;
    let downs = lab.sluice()?.events_after(newest)?.iter().filter(|event| event.is_down()).count();
    findings.check("a policy that keeps the probe back is good", downs == 0, format!("{downs} downs"));
    let policy = |port| one(Change { drop_udp_port: Some(port), ..Change::default() });
    fails(lab, findings, &target, [policy(0), policy(DENIED)], "negative-returned")
}

/// A change makes a pair go down for this reason while its keep-alives pass, and another brings it back.
fn fails(
    lab: &mut Lab,
    findings: &mut Findings,
    target: &Target,
    [breaks, mends]: [Change; 2],
    reason: &str,
) -> Result<()> {
    let pair = target.pairs.join(", ");
    let newest = lab.last_event()?;
    let before = keepalives(lab, &pair)?;
    let at = lab.change(&target.appliance, breaks)?;
    lab.wait_pairs(&target.pairs, "down", lab.detection_bound() + Duration::from_secs(10))?;
    let after = keepalives(lab, &pair)?;
    let events = lab.sluice()?.events_after(newest)?;
    lab.change(&target.appliance, mends)?;
    lab.wait_pairs(&target.pairs, "up", lab.recovery_time() + Duration::from_secs(10))?;
    let down = events.iter().find(|event| event.is_pair(&pair, "down"));
    let why = down.and_then(|event| event.reason.clone()).unwrap_or_default();
    let ms = down.map_or(f64::NAN, |event| ms_between(at, event.at_ns()));
    let bound = lab.detection_bound().as_secs_f64() * 1e3 + lab.slack_ms();
    findings.check(
        &format!("{reason}: the pair goes down for it in time, and comes home"),
        why.starts_with(reason) && ms <= bound,
        format!("after {ms:.0} ms: {why}"),
    );
    let (good, lost) = (after.good - before.good, after.lost - before.lost);
    findings.check(
        "its keep-alives passed meanwhile",
        good > 0 && lost == 0,
        format!("{good} good, {lost} lost"),
    );
    Ok(())
}
