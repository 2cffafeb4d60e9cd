//! SNMP as a manager sees it: net-snmp's snmpd above, its tools asking, its snmptrapd listening. Everything on the
//! loopback, with files of its own. Skipped where the tools are not installed (Debian: snmpd snmp snmptrapd).

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)] // helpers of tests fail the test

#[path = "../lab/mod.rs"]
mod lab;
mod snmpd;

use std::path::Path;
use std::time::{Duration, Instant};

use api::{EventKind, UnitMode};
use controller::northbound;
use controller::telemetry::Telemetry;
use dataplane::PortId;
use dataplane::schema::counters;
use lab::{Lab, Plane, REST, site_text};
use snmpd::{BASE, MIB, Snmp, tools};
use swpipe::counters::{Count, Place};

/// A controller of `pairs` pairs with SNMP on; one pair down is a unit in bypass.
fn controller(pairs: usize, flows: &str, snmp: &Snmp, state: &Path) -> Lab {
    let (plane, packets) = Plane::new();
    let part = format!(
        r#"{{"sluice:snmp": {{"enabled": true, "agentx-address": "unix:{}"}},"#,
        snmp.master().display()
    );
    let text = site_text(pairs, "", flows)
        .replacen('{', &part, 1)
        .replace(r#""suspend-limit": 200"#, &format!(r#""suspend-limit": 200, "active-pairs": {pairs}"#));
    let lab = Lab::start(plane, packets, &text, state, 0.0);
    let telemetry = Telemetry::new(lab.desk.clone());
    tokio::spawn(northbound::snmp::serve(lab.desk.clone(), telemetry));
    lab
}

/// How often snmpd has taken the objects.
fn sessions(lab: &Lab) -> usize {
    lab.events().iter().filter(|event| event.reason.starts_with("snmpd takes the objects")).count()
}

/// Waits, without holding up the controller, for a notification whose line has all of these.
async fn told(snmp: &Snmp, from: usize, words: &[&str]) -> (usize, Instant) {
    tokio::task::block_in_place(|| snmp.trap(from, words))
}

/// Time from an event of the log to its notification.
fn delay(lab: &Lab, kind: EventKind, after: &str, at: Instant) -> Duration {
    let events = lab.events();
    let event =
        events.iter().rfind(|event| event.kind == kind && event.after.as_deref() == Some(after)).unwrap();
    let since = controller::clock::now().0 - event.monotonic_ns;
    Duration::from_nanos(since).saturating_sub(at.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_manager_reads_the_tables_and_hears_of_every_change() {
    if !tools() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut snmp = Snmp::new();
    snmp.listen();
    snmp.start();
    let lab = controller(2, REST, &snmp, state.path());
    lab.until("both pairs up", |lab| lab.pairs_up() == 2).await;
    lab.until("a session with snmpd", |lab| sessions(lab) == 1).await;

    // Every object that the MIB has and that can be read is there, and nothing that it does not have.
    let device = lab.plane.device.counters();
    let many = Count { packets: 5_000_000_000, bytes: 7_000_000_000_000 };
    device.set(Place::Array(counters::PORT_IN.id, counters::port(PortId(4))), many);
    lab.plane.freeze(PortId(8));
    lab.until("a pair down", |lab| lab.pairs_up() == 1).await;
    lab.plane.thaw(PortId(8));
    lab.until("both pairs up", |lab| lab.pairs_up() == 2).await;
    let walk = walk_until(&snmp, |walk| walk.contains("sluicePortInPackets.4 = Counter64: 5000000000"));
    let readable: Vec<&str> = snmpd::readable();
    for object in &readable {
        assert!(walk.contains(&format!("SLUICE-MIB::{object}.")), "{object} is not there:\n{walk}");
    }
    for line in walk.lines() {
        let object =
            line.strip_prefix("SLUICE-MIB::").and_then(|rest| rest.split_once('.')).unwrap_or_default().0;
        assert!(readable.contains(&object), "not of the MIB: {line}");
    }
    for value in [
        "sluiceBalancingMethod.0 = INTEGER: layer3(1)",
        "sluiceDataPlaneState.0 = INTEGER: primary(1)",
        "sluiceUnitState.1 = INTEGER: up(1)",
        "sluicePairState.1.1 = INTEGER: up(2)",
        "sluicePairFlaps.1.1 = Counter32: 1",
        "sluicePathPair.1.2.wanToLan = STRING: main/p1",
        "sluiceLinkLanInPackets.1 = Counter64: 5000000000",
        "sluiceFlowAction.'rest' = INTEGER: toEcofilter(3)",
    ] {
        assert!(walk.contains(value), "{value} is not in:\n{walk}");
    }

    let table = snmp.ask("snmptable", &["-CB", "-Ci", "-Cw", "400"], &["sluicePairTable"]);
    let row = table.lines().find(|line| line.contains("p1")).unwrap_or_default();
    assert!(row.contains("main") && row.contains("up") && row.contains("active"), "{table}");
    let refused = snmp.ask("snmpset", &[], &["sluiceUnitMode.1", "i", "2"]);
    assert!(refused.contains("notWritable"), "{refused}");

    // A manual bypass, and back.
    let mut from = snmp.traps();
    let mut delays = Vec::new();
    for (mode, name, unit) in [(UnitMode::Bypass, "bypass", "bypass"), (UnitMode::Auto, "auto", "up")] {
        lab.set_mode("main", mode).await.unwrap();
        let words = [
            "sluiceUnitModeChange",
            "sluiceEventUnit.0 = STRING: main",
            &format!("sluiceEventAfter.0 = STRING: {name}"),
            "sluiceUnitMode.1 =",
        ];
        let (next, at) = told(&snmp, from, &words).await;
        delays.push(("mode", delay(&lab, EventKind::Mode, name, at)));
        let words =
            ["sluiceUnitStateChange", &format!("sluiceEventAfter.0 = STRING: {unit}"), "sluiceUnitState.1 ="];
        let (other, at) = told(&snmp, from, &words).await;
        delays.push(("unit", delay(&lab, EventKind::Unit, unit, at)));
        from = next.max(other);
    }
    assert!(
        walk_until(&snmp, |walk| walk.contains("sluiceUnitFlaps.1 = Counter32: 2"))
            .contains("sluiceUnitLastChange.1")
    );

    // A pair down takes the unit, and up again.
    for (state, unit) in [("down", "bypass"), ("up", "up")] {
        match state {
            "down" => lab.plane.freeze(PortId(8)),
            _ => lab.plane.thaw(PortId(8)),
        }
        let words = [
            "sluicePairStateChange",
            "sluiceEventPair.0 = STRING: p0",
            &format!("sluiceEventAfter.0 = STRING: {state}"),
            &format!("sluicePairState.1.1 = INTEGER: {state}"),
            "sluiceEventReason.0 = STRING:",
        ];
        let (next, at) = told(&snmp, from, &words).await;
        delays.push(("pair", delay(&lab, EventKind::Pair, state, at)));
        let words = ["sluiceUnitStateChange", &format!("sluiceEventAfter.0 = STRING: {unit}")];
        let (other, at) = told(&snmp, from, &words).await;
        delays.push(("unit", delay(&lab, EventKind::Unit, unit, at)));
        from = next.max(other);
    }
    println!("from the event to snmptrapd: {delays:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_master_that_dies_or_hangs_holds_nothing_up_and_loses_nothing() {
    if !tools() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut snmp = Snmp::new();
    snmp.listen();
    let lab = controller(1, REST, &snmp, state.path());
    lab.until("the pair up", |lab| lab.pairs_up() == 1).await;
    lab.until("no snmpd yet", |lab| lab.events().iter().any(|event| event.subject == "snmp")).await;
    snmp.start();
    lab.until("a session with snmpd", |lab| sessions(lab) == 1).await;
    assert!(walk_until(&snmp, |walk| walk.contains("sluicePairState")).contains("up(2)"));

    let from = snmp.traps();
    snmp.kill();
    lab.set_mode("main", UnitMode::Bypass).await.unwrap();
    snmp.start();
    lab.until("a session with the next snmpd", |lab| sessions(lab) == 2).await;
    let words = ["sluiceUnitModeChange", "sluiceEventAfter.0 = STRING: bypass"];
    let (from, _) = told(&snmp, from, &words).await;
    assert!(
        walk_until(&snmp, |walk| walk.contains("sluiceUnitMode"))
            .contains("sluiceUnitMode.1 = INTEGER: bypass(2)")
    );

    let usual = changes(&lab).await;
    snmp.freeze();
    // One that waited for snmpd would wait for the session's timeout, seconds at each change.
    let frozen = tokio::time::timeout(Duration::from_secs(60), changes(&lab)).await;
    let frozen = frozen.expect("changes go on while snmpd is stopped");
    println!("200 changes with snmpd: {usual:?}, with snmpd stopped: {frozen:?}");
    assert_eq!(lab.pairs_up(), 1);
    snmp.thaw();
    let last = lab.events().iter().rfind(|event| event.kind == EventKind::Mode).unwrap().id.to_string();
    let id = format!("sluiceEventId.0 = STRING: {last}");
    told(&snmp, from, &["sluiceUnitModeChange", &id]).await;
}

/// Changes a mode 200 times, which is 400 notifications.
async fn changes(lab: &Lab) -> Duration {
    let begun = Instant::now();
    for _ in 0..100 {
        lab.set_mode("main", UnitMode::Auto).await.unwrap();
        lab.set_mode("main", UnitMode::Bypass).await.unwrap();
    }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_page_of_a_large_site_is_quick() {
    if !tools() {
        return;
    }
    const FLOWS: usize = 10_000;
    let state = tempfile::tempdir().unwrap();
    let mut snmp = Snmp::new();
    snmp.start();
    let flow = |number: usize| {
        let (high, low) = (number / 250, number % 250);
        format!(
            r#"{{"name": "flow-{number:05}", "priority": {}, "action": "bypass", "match": {{"dst-ip": "10.{high}.{low}.0/24"}}}}"#,
            number + 2
        )
    };
    let flows: Vec<String> = (0..FLOWS).map(flow).chain([REST.to_owned()]).collect();
    let lab = controller(128, &flows.join(","), &snmp, state.path());
    lab.until("all pairs up", |lab| lab.pairs_up() == 128).await;
    lab.until("a session with snmpd", |lab| sessions(lab) == 1).await;

    let mut pages = Vec::new();
    let mut cells = 0;
    // All of the paths, then flows from here and there. A page's time has the start of the tool in it.
    let mut at = format!("{BASE}.5.1.2");
    loop {
        let (next, count) = page(&snmp, &at, &mut pages);
        cells += count;
        match next {
            Some(next) if next.starts_with(&format!("{BASE}.5.")) => at = next,
            _ => break,
        }
    }
    assert!(cells >= 128 * 2 * 20, "{cells}");
    for number in (0..FLOWS).step_by(250) {
        let name: Vec<String> = format!("flow-{number:05}").bytes().map(|octet| octet.to_string()).collect();
        for column in [2, 7] {
            let (_, count) = page(&snmp, &format!("{BASE}.8.1.{column}.{}", name.join(".")), &mut pages);
            assert!(count > 0);
        }
    }
    pages.sort();
    let (median, longest) = (pages[pages.len() / 2], pages[pages.len() - 1]);
    println!("{} pages of 50: median {median:?}, longest {longest:?}", pages.len());

    let begun = Instant::now();
    let walk = snmp.ask("snmpbulkwalk", &["-Cr100", "-On"], &[&format!("{BASE}.8.1.7")]);
    println!("a walk over the packets of {FLOWS} flows: {:?}", begun.elapsed());
    assert_eq!(walk.lines().count(), FLOWS + 1);
}

/// Where a page ends, and how many instances it has.
fn page(snmp: &Snmp, at: &str, pages: &mut Vec<Duration>) -> (Option<String>, usize) {
    let begun = Instant::now();
    let page = tokio::task::block_in_place(|| snmp.ask("snmpbulkget", &["-Cr50", "-On"], &[at]));
    pages.push(begun.elapsed());
    let next = page.lines().last().and_then(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned());
    (next, page.lines().count())
}

/// Walks until the condition holds, for ten seconds at most.
fn walk_until(snmp: &Snmp, holds: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let walk = tokio::task::block_in_place(|| snmp.ask("snmpbulkwalk", &[], &["sluiceMIB"]));
        if holds(&walk) {
            return walk;
        }
        assert!(Instant::now() < deadline, "{walk}");
    }
}

/// What smilint has to say, with the modules that the MIB imports from.
#[test]
fn the_mib_is_clean() {
    let Some(base) = snmpd::base_modules() else {
        println!("skipped: smilint or the modules SNMPv2-SMI, SNMPv2-TC and SNMPv2-CONF are not installed");
        return;
    };
    let output = std::process::Command::new("smilint")
        .args(["-l", "6", "-s", MIB])
        .env("SMIPATH", base)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("SLUICE-MIB")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}
