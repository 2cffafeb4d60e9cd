//! `kill -9` at any instant of an apply or a save: the files are whole, the data plane is what running says, and a
//! change is there or absent, never half.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod process;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use api::{Client, LoadMode, Request};
use dataplane::tables::{Family, RuleField, TableEntry};
use serde_json::Value;

use process::{Daemon, Plane, SITE, site_dir, until};

/// Kills, spread over applies and saves.
const KILLS: u64 = 200;

/// Configuration number `n`: its number is in a flow of its own, in the cores of the unit, and in a link's description.
fn version(n: u64) -> String {
    let marker = format!(
        r#"{{"name": "marker", "priority": 500, "match": {{"ip-version": 4, "vlan0-tag": {}}}, "action": "drop"}},"#,
        n % 4000 + 1
    );
    SITE.replace("\"flow\": [", &format!("\"flow\": [{marker}"))
        .replace("\"cores\": 17", &format!("\"cores\": {}", n % 200 + 1))
        .replace("10G to the edge router", &format!("version {n}"))
}

/// The number in a configuration, which must be the same at each of its places.
fn number_in(configuration: &Value) -> Option<u64> {
    let balancer = &configuration["sluice:ecofilter-balancer"];
    let text = balancer["link"][0]["description"].as_str()?;
    let n: u64 = text.strip_prefix("version ")?.parse().ok()?;
    let marker = balancer["flow"].as_array()?.iter().find(|flow| flow["name"] == "marker")?;
    assert_eq!(marker["match"]["vlan0-tag"], n % 4000 + 1, "half a change: {configuration}");
    assert_eq!(balancer["ecofilter-unit"][0]["cores"], n % 200 + 1, "half a change: {configuration}");
    Some(n)
}

/// The marker's tag and the highest core on the device; both must be of one version.
fn on_device(plane: &Plane) -> (BTreeSet<u64>, u64) {
    let mut tags = BTreeSet::new();
    let mut cores = 0;
    for entry in plane.device.entries(None) {
        match TableEntry::parse(&entry) {
            Ok(TableEntry::Rule(rule)) if rule.family == Family::V4 && entry.metadata == b"marker" => {
                tags.insert((rule.matches.get(RuleField::Vlan0).value & 0xfff) as u64);
            }
            Ok(TableEntry::Bucket(bucket)) => {
                let core = bucket.forwarding.serving().map_or(0, |(_, core)| core.0);
                cores = cores.max(u64::from(core) + 1);
            }
            _ => {}
        }
    }
    (tags, cores)
}

/// Every JSON file of a directory can be read to its end.
fn whole(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.ends_with(".unreadable"), "{name}");
        if path.extension().is_some_and(|extension| extension == "json") && !name.starts_with('.') {
            let text = std::fs::read(&path).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn a_kill_at_any_instant_leaves_a_change_whole_or_absent() {
    let dir = site_dir(&version(0));
    let plane = Plane::start(dir.path(), Arc::default());
    let asked = Arc::new(AtomicU64::new(0));
    // Repeatable, and different each time.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut before = 0;
    let (mut changed, mut absent) = (0, 0);
    for round in 0..KILLS {
        let daemon = Daemon::start(dir.path());
        until("primary", || daemon.target()["state"] == "primary" && daemon.target()["epoch"] != 0);
        let running = number_in(&daemon.ask(&Request::ShowConfiguration).unwrap()).unwrap();
        assert!(
            running == before || running == asked.load(SeqCst),
            "{running}, not {before} or what was asked"
        );
        if round > 0 {
            if running == before { absent += 1 } else { changed += 1 }
        }
        until("the device is what running says", || {
            on_device(&plane) == (BTreeSet::from([running % 4000 + 1]), running % 200 + 1)
        });
        before = running;
        let next = running + 1;
        asked.store(next, SeqCst);
        let socket = daemon.socket.clone();
        let client = std::thread::spawn(move || {
            // It ends in the middle, wherever that is.
            let Ok(mut client) = Client::connect(&socket) else { return };
            let load = Request::Load { mode: LoadMode::Replace, text: version(next) };
            for request in [load, Request::Apply { confirmed: None, comment: None }, Request::Save] {
                if client.ask(&request).is_err() {
                    return;
                }
            }
        });
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        std::thread::sleep(Duration::from_micros(seed % 60_000));
        drop(daemon); // kill -9
        client.join().unwrap();
        // Before anything mends it.
        let (tags, cores) = on_device(&plane);
        let versions = [before, next].map(|n| (BTreeSet::from([n % 4000 + 1]), n % 200 + 1));
        assert!(versions.contains(&(tags.clone(), cores)), "{tags:?} {cores}: half of version {next}");
        whole(dir.path());
        whole(&dir.path().join("state/history"));
    }
    assert!(changed > 5 && absent > 5, "the kills all came at one side: {changed} after, {absent} before");
}
