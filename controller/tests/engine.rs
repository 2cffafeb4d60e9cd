//! The engine over a data plane of tables: what a change, a failing pair, a restart and chaos leave behind.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod lab;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use api::{Request, UnitMode};
use dataplane::target::{SWPIPE, TOFINO1};
use lab::{Lab, Plane, REST, site_text};
use site::Site;

fn port(text: &str, name: &str) -> dataplane::PortId {
    Site::from_json(text).unwrap().ports[name].id
}

#[tokio::test(flavor = "multi_thread")]
async fn pairs_come_up_and_the_tables_follow() {
    let state = tempfile::tempdir().unwrap();
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane, packets, &site_text(3, "", REST), state.path(), 0.0);
    lab.until("three pairs up", |lab| lab.pairs_up() == 3).await;
    lab.until("tables as wanted", |lab| lab.plane.tables() == lab.wanted()).await;
    let balancer = lab.ask(Request::ShowBalancer).await;
    assert_eq!(balancer["units"][0]["state"], "up");
    assert_eq!(balancer["units"][0]["pairs-up"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_appliance_costs_one_pair_state_and_comes_home() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("three pairs up", |lab| lab.pairs_up() == 3).await;
    let before = plane.updates.load(Ordering::SeqCst);
    plane.freeze(port(&text, "pl1"));
    lab.until("one pair down", |lab| lab.pairs_up() == 2).await;
    assert_eq!(plane.updates.load(Ordering::SeqCst) - before, 1, "one table write takes the pair out");
    let down = lab.events().into_iter().find(|event| event.after.as_deref() == Some("down")).unwrap();
    assert_eq!(down.subject, "main/p1");
    assert!(down.data_plane_ns.is_some());
    plane.thaw(port(&text, "pl1"));
    lab.until("the pair is home", |lab| lab.pairs_up() == 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_rebalance_only_the_down_pairs_buckets_move_and_come_back() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(4, r#""rebalance": "on","#, REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 4 && lab.plane.tables() == lab.wanted()).await;
    let home = plane.tables();
    plane.freeze(port(&text, "pl2"));
    lab.until("moved", |lab| lab.pairs_up() == 3 && lab.plane.tables() == lab.wanted()).await;
    let moved = plane.tables();
    let changed = home.rest.iter().filter(|(place, entry)| moved.get(place) != Some(*entry)).count();
    assert_eq!(changed, 256 + 1, "a quarter of 1024 buckets, and the pair's state");
    plane.thaw(port(&text, "pl2"));
    lab.until("home", |lab| lab.plane.tables() == home).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_the_same_configuration_writes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3 && lab.plane.tables() == lab.wanted()).await;
    drop(lab);
    let before = plane.updates.load(Ordering::SeqCst);
    let packets = plane.reopen();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("connected", |lab| {
        lab.desk.view.load().epoch > 0 && lab.plane.tables() == lab.wanted() && lab.pairs_up() == 3
    })
    .await;
    // It goes on measuring: a frozen appliance is still found.
    plane.freeze(port(&text, "pl0"));
    lab.until("one down", |lab| lab.pairs_up() == 2).await;
    assert_eq!(plane.updates.load(Ordering::SeqCst) - before, 1, "nothing but the pair that failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_on_another_interface_of_the_same_port_is_measured_afresh() {
    let state = tempfile::tempdir().unwrap();
    let on = |interface: &str| {
        let named = format!(r#"{{"name": "pl0", "interface": "{interface}", "#);
        site_text(3, "", REST).replace(r#"{"name": "pl0", "#, &named)
    };
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &on("eth9"), state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3).await;
    plane.freeze(port(&on("eth9"), "pl0"));
    lab.apply(&on("eth10")).await.unwrap();
    assert_eq!(lab.pairs_up(), 2, "not believed to be up on an interface that was never measured");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_survive_a_restart_and_a_reordered_configuration() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3).await;
    drop(lab);
    // A pair less: the others keep their numbers, and their tables.
    let fewer = text.replace(r#"{"name": "p0", "lan-port": "pl0", "wan-port": "pw0"},"#, "");
    assert_ne!(fewer, text);
    let packets = plane.reopen();
    let lab = Lab::start(plane.clone(), packets, &fewer, state.path(), 0.0);
    lab.until("two", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
    let view = lab.desk.view.load();
    let ids: Vec<u16> = view.ids.pairs.values().map(|id| id.0).collect();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_flow_is_one_more_entry() {
    let state = tempfile::tempdir().unwrap();
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &site_text(2, "", REST), state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 2).await;
    let bgp = r#"{"name": "bgp", "priority": 9, "match": {"ip-version": 4, "ip-proto": 6, "dst-port": "179"}, "action": "bypass"}"#;
    let applied = lab.apply(&site_text(2, "", &format!("{bgp},{REST}"))).await.unwrap();
    assert_eq!((applied.inserted, applied.modified, applied.deleted), (1, 0, 0));
    assert_eq!(lab.plane.tables(), lab.wanted());
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_bypass_is_in_the_tables_when_it_is_answered_and_survives_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(2, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
    let auto = plane.tables();
    lab.set_mode("main", UnitMode::Bypass).await.unwrap();
    assert_ne!(plane.tables(), auto);
    let bypass = plane.tables();
    assert!(lab.set_mode("nobody", UnitMode::Bypass).await.unwrap_err().to_string().contains("main"));
    drop(lab);
    let packets = plane.reopen();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("connected", |lab| lab.desk.view.load().epoch > 0).await;
    assert_eq!(plane.tables(), bypass);
    lab.set_mode("main", UnitMode::Auto).await.unwrap();
    assert_eq!(plane.tables(), auto);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_chaos_an_apply_is_all_or_nothing() {
    let state = tempfile::tempdir().unwrap();
    let sites = [
        site_text(3, "", REST),
        site_text(5, r#""rebalance": "on","#, REST),
        site_text(2, r#""fail-action": "drop","#, REST),
        site_text(4, "", ""),
    ];
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &sites[0], state.path(), 0.3);
    let (mut refused, mut done) = (0, 0);
    for round in 0..60 {
        let text = &sites[(round * 7 + round / 4) % sites.len()];
        let before = lab.desk.view.load().site.clone();
        match lab.apply(text).await {
            Ok(_) => {
                done += 1;
                assert_eq!(*lab.desk.view.load().site, Site::from_json(text).unwrap());
            }
            Err(_) => {
                refused += 1;
                assert!(Arc::ptr_eq(&lab.desk.view.load().site, &before), "running stays");
            }
        }
        // Pairs go on changing and their writes fail too; the device always comes to what is wanted.
        lab.until("tables as wanted", |lab| lab.plane.tables() == lab.wanted()).await;
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_data_plane_is_gone_changes_are_refused_and_looking_still_works() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(2, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 2).await;
    plane.lose();
    lab.until("noticed", |lab| lab.events().iter().any(|event| event.after.as_deref() == Some("lost"))).await;
    let error = lab.apply(&site_text(3, "", REST)).await.unwrap_err().to_string();
    assert!(error.contains("lab") && error.contains("cut"), "{error}");
    assert_eq!(lab.ask(Request::ShowBalancer).await["units"][0]["name"], "main");
    assert_eq!(lab.ask(Request::ShowTarget).await["state"], "lost");
    // Silence is not held against appliances: what was never sent is not lost.
    plane.regain(2);
    lab.until("back", |lab| lab.ask_state() == "primary").await;
    let downs = lab.events().iter().filter(|event| event.after.as_deref() == Some("down")).count();
    assert_eq!(downs, 0, "{:#?}", lab.events());
    assert_eq!(lab.pairs_up(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_cables_are_named() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3).await;
    for (from, to) in [("pl0", "pw1"), ("pw1", "pl0"), ("pl1", "pw0"), ("pw0", "pl1")] {
        plane.cable(port(&text, from), port(&text, to));
    }
    lab.until("two down", |lab| lab.pairs_up() == 1).await;
    let named: Vec<String> = lab
        .events()
        .into_iter()
        .filter(|event| event.reason.starts_with("miscabled"))
        .map(|event| event.reason)
        .collect();
    assert!(named.iter().any(|reason| reason.contains("main/p0") && reason.contains("main/p1")), "{named:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_stays_where_it_stands_in_over_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let mut text = site_text(5, r#""rebalance": "on","#, REST);
    for spare in ["p3", "p4"] {
        text = text
            .replace(&format!(r#""name": "{spare}","#), &format!(r#""name": "{spare}", "role": "spare","#));
    }
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 5 && lab.plane.tables() == lab.wanted()).await;
    // The later name first: p1 gets the first spare, p0 the second; names alone would have it the other way.
    for (frozen, up) in [("pl1", 4), ("pl0", 3)] {
        plane.freeze(port(&text, frozen));
        lab.until("down", |lab| lab.pairs_up() == up && lab.plane.tables() == lab.wanted()).await;
    }
    let moved = plane.tables();
    assert_eq!(lab.desk.view.load().condition.stand_ins_of("main")["p1"], "p3");
    drop(lab);
    let packets = plane.reopen();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("connected", |lab| lab.desk.view.load().epoch > 0).await;
    assert_eq!(plane.tables(), moved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_on_other_ports_is_measured_afresh() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3).await;
    // No appliance answers on the new port.
    let recabled = text
        .replace(r#"{"name": "pl0", "number": 2, "lane": 0}"#, r#"{"name": "pl0", "number": 60, "lane": 0}"#);
    assert_ne!(recabled, text);
    lab.apply(&recabled).await.unwrap();
    assert_eq!(lab.pairs_up(), 2, "not believed to be up on ports that were never measured");
    lab.until("found dead", |lab| {
        lab.events().iter().any(|event| event.subject == "main/p0" && event.after.as_deref() == Some("down"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_survive_a_restart_where_the_data_plane_keeps_no_names() {
    let state = tempfile::tempdir().unwrap();
    let text = site_text(3, "", REST);
    let (plane, packets) = Plane::of(&TOFINO1);
    let lab = Lab::start(plane.clone(), packets, &text, state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 3 && lab.plane.tables() == lab.wanted()).await;
    let fewer = text.replace(r#"{"name": "p0", "lan-port": "pl0", "wan-port": "pw0"},"#, "");
    assert_ne!(fewer, text);
    // An apply between two starts counts too.
    lab.apply(&fewer).await.unwrap();
    lab.until("two", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
    drop(lab);
    let before = (plane.tables(), plane.updates.load(Ordering::SeqCst));
    let packets = plane.reopen();
    let lab = Lab::start(plane.clone(), packets, &fewer, state.path(), 0.0);
    lab.until("connected", |lab| lab.desk.view.load().epoch > 0 && lab.pairs_up() == 2).await;
    let ids: Vec<u16> = lab.desk.view.load().ids.pairs.values().map(|id| id.0).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!((plane.tables(), plane.updates.load(Ordering::SeqCst)), before, "a restart writes nothing");
    // Their names are known all the same.
    assert_eq!(lab.desk.view.load().tables, lab.wanted().into());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_is_refused_leaves_nothing_behind_on_any_target() {
    let bgp = r#"{"name": "bgp", "priority": 9, "match": {"ip-version": 4, "dst-port": "179"}, "action": "bypass"}"#;
    for profile in [&SWPIPE, &TOFINO1] {
        let state = tempfile::tempdir().unwrap();
        let (plane, packets) = Plane::of(profile);
        let lab = Lab::start(plane.clone(), packets, &site_text(2, "", REST), state.path(), 0.0);
        lab.until("up", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
        let before = plane.tables();
        plane.refuse(Some("bgp"));
        let next = site_text(4, r#""fail-action": "drop","#, &format!("{bgp},{REST}"));
        let error = lab.apply(&next).await.unwrap_err().to_string();
        assert!(error.contains("refuses"), "{error}");
        assert_eq!(plane.tables(), before, "{profile}");
        assert_eq!(lab.ask(Request::ShowTarget).await["state"], "primary");
        plane.refuse(None);
        lab.apply(&next).await.unwrap();
        lab.until("applied", |lab| lab.plane.tables() == lab.wanted()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_the_target_has_no_room_for_is_refused_before_anything_is_written() {
    let state = tempfile::tempdir().unwrap();
    let (plane, packets) = Plane::of(&TOFINO1);
    let lab = Lab::start(plane.clone(), packets, &site_text(2, "", REST), state.path(), 0.0);
    lab.until("up", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
    let before = plane.updates.load(Ordering::SeqCst);
    let flows: Vec<String> = (0..2049)
        .map(|n| {
            format!(r#"{{"name": "f{n}", "priority": 9, "match": {{"ip-version": 4}}, "action": "bypass"}}"#)
        })
        .collect();
    let error = lab.apply(&site_text(2, "", &flows.join(","))).await.unwrap_err().to_string();
    assert!(error.contains("need 2,049 entries in rules_v4; target tofino1 has 2,048"), "{error}");
    assert_eq!(plane.updates.load(Ordering::SeqCst), before);
    let target = lab.ask(Request::ShowTarget).await;
    assert_eq!((&target["profile"], &target["pipeline"]), (&"tofino1".into(), &"lab".into()));
    let rules =
        target["tables"].as_array().unwrap().iter().find(|table| table["name"] == "rules_v4").unwrap();
    assert_eq!(rules["size"], 2048);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_plane_that_cannot_be_brought_to_what_is_wanted_says_why_until_it_can() {
    let state = tempfile::tempdir().unwrap();
    let (plane, packets) = Plane::new();
    plane.refuse(Some("rest"));
    let lab = Lab::start(plane.clone(), packets, &site_text(2, "", REST), state.path(), 0.0);
    lab.until("said", |lab| lab.events().iter().any(|event| event.severity == api::Severity::Error)).await;
    let target = lab.ask(Request::ShowTarget).await;
    assert_eq!(target["state"], "unusable");
    assert!(target["reason"].as_str().unwrap().contains("by its name"), "{target}");
    let balancer = lab.ask(Request::ShowBalancer).await;
    assert_eq!(balancer["data-plane"], "unusable");
    assert_eq!(balancer["data-plane-reason"], target["reason"]);
    // It is tried again and again, and said once.
    let tries = plane.writes.load(Ordering::SeqCst);
    lab.until("tried again", |lab| lab.plane.writes.load(Ordering::SeqCst) > tries + 1).await;
    assert_eq!(lab.events().iter().filter(|event| event.severity == api::Severity::Error).count(), 1);
    plane.refuse(None);
    lab.until("usable", |lab| lab.desk.trouble.borrow().is_none()).await;
    assert_eq!(lab.ask(Request::ShowTarget).await["state"], "primary");
    lab.until("up", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
}
