//! Candidates, applies, confirmations, revisions and the startup file, over a data plane of tables.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod lab;

use std::time::Duration;

use api::{LoadMode, Request, Response, Role, Source};
use controller::datastore::{ApplyError, Options, Who};
use controller::session::Session;
use lab::{Lab, Plane, REST, site_text};

fn who(name: &str) -> Who {
    Session::new(name.to_owned(), Role::Admin, "test").who
}

async fn lab(state: &std::path::Path) -> Lab {
    let (plane, packets) = Plane::new();
    let lab = Lab::start(plane, packets, &site_text(2, "", REST), state, 0.0);
    lab.until("up", |lab| lab.pairs_up() == 2 && lab.plane.tables() == lab.wanted()).await;
    lab
}

/// A session that asks, and must be answered.
async fn ask(lab: &Lab, session: &mut Session, request: Request) -> serde_json::Value {
    match lab.desk.answer(session, request).await {
        Response::Ok(value) => value,
        Response::Error(reason) => panic!("refused: {reason}"),
    }
}

async fn refused(lab: &Lab, session: &mut Session, request: Request) -> String {
    match lab.desk.answer(session, request).await {
        Response::Ok(value) => panic!("done: {value}"),
        Response::Error(reason) => reason,
    }
}

fn edit(line: &str) -> Request {
    Request::Edit { lines: vec![line.to_owned()] }
}

const APPLY: Request = Request::Apply { confirmed: None, comment: None };

fn description(lab: &Lab) -> String {
    let running = lab.desk.datastores.running();
    tree::set_lines::write(&running.tree, &tree::Path::default())
        .lines()
        .find_map(|line| {
            line.strip_prefix("set ecofilter-balancer link link1 description ").map(str::to_owned)
        })
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_edit_one_node_conflict_and_others_do_not() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let (mut a, mut b, mut c) = (lab.session(), lab.session(), lab.session());
    ask(&lab, &mut a, edit("set ecofilter-balancer link link1 description a")).await;
    ask(&lab, &mut b, edit("set ecofilter-balancer link link1 description b")).await;
    ask(&lab, &mut c, edit("set ecofilter-balancer ecofilter-unit main cores 3")).await;
    ask(&lab, &mut a, APPLY).await;
    let reason = refused(&lab, &mut b, APPLY).await;
    assert!(
        reason.contains("ecofilter-balancer link link1 description") && reason.contains("root"),
        "{reason}"
    );
    assert_eq!(description(&lab), "a");
    // Another node goes through, on top of what runs now.
    ask(&lab, &mut c, APPLY).await;
    assert_eq!(description(&lab), "a");
    assert_eq!(lab.desk.view.load().site.units["main"].cores, 3);
    // The candidate that conflicts is still there; what runs can be taken instead.
    let lines = ask(&lab, &mut b, Request::Compare { with: Source::Running }).await;
    assert!(lines.to_string().contains("description b"), "{lines}");
    ask(&lab, &mut b, Request::Rollback { number: 0 }).await;
    ask(&lab, &mut b, edit("set ecofilter-balancer link link1 description b")).await;
    ask(&lab, &mut b, APPLY).await;
    assert_eq!(description(&lab), "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_the_data_plane_refuses_leaves_running_device_and_candidate() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let mut session = lab.session();
    let (before, tables) = (lab.desk.datastores.running().sequence, lab.plane.tables());
    lab.plane.refuse(Some("bgp"));
    ask(&lab, &mut session, edit("set ecofilter-balancer flow bgp priority 9 action bypass")).await;
    assert!(refused(&lab, &mut session, APPLY).await.contains("refuses"));
    assert_eq!((lab.desk.datastores.running().sequence, lab.plane.tables()), (before, tables));
    lab.plane.refuse(None);
    ask(&lab, &mut session, APPLY).await;
    assert!(lab.desk.view.load().site.flows.contains_key("bgp"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_rule_is_named_with_its_path_at_check_and_at_apply() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let mut session = lab.session();
    ask(
        &lab,
        &mut session,
        edit("set ecofilter-balancer flow x priority 5 action to-ecofilter ecofilter-unit nowhere"),
    )
    .await;
    for request in [Request::Check, APPLY] {
        let reason = refused(&lab, &mut session, request).await;
        assert!(reason.contains("ecofilter-balancer flow x ecofilter-unit: \"nowhere\""), "{reason}");
    }
    let reason =
        refused(&lab, &mut session, edit("set ecofilter-balancer ecofilter-unit main cores 300")).await;
    assert!(reason.contains("1..256"), "{reason}");
    assert!(refused(&lab, &mut session, edit("set nonsense 1")).await.contains("nonsense"));
    // So many that the rules between them would take minutes.
    let lines = (0..60_000).map(|n| format!("set port q{n} number 1")).collect();
    ask(&lab, &mut session, Request::Edit { lines }).await;
    let reason = refused(&lab, &mut session, Request::Check).await;
    assert!(reason.contains("port: \"60006 entries\": at most 260"), "{reason}");
    let text = "x".repeat(2000);
    let reason = refused(&lab, &mut session, Request::Apply { confirmed: None, comment: Some(text) }).await;
    assert!(reason.contains("at most 1000 characters"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_confirmed_is_rolled_back() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let datastores = lab.desk.datastores.clone();
    let confirmed = |ms| Options { confirmed: Some(Duration::from_millis(ms)), ..Options::default() };
    let change = |text: &str| {
        let mut candidate = datastores.candidate();
        let line = format!("set ecofilter-balancer link link1 description {text}");
        tree::set_lines::read(candidate.tree_mut(), &line).unwrap();
        candidate
    };
    let somebody = who("somebody");
    datastores.apply(&somebody, &mut change("first"), confirmed(200)).await.unwrap();
    assert_eq!(description(&lab), "first");
    lab.until("rolled back", |lab| description(lab).is_empty()).await;
    lab.until("said", |lab| lab.events().iter().any(|event| event.reason.contains("nobody confirmed it")))
        .await;

    // Confirmed by an apply without changes, from any session of the CLI.
    datastores.apply(&somebody, &mut change("second"), confirmed(60_000)).await.unwrap();
    datastores.apply(&who("other"), &mut datastores.candidate(), Options::default()).await.unwrap();
    assert_eq!((description(&lab).as_str(), datastores.pending()), ("second", None));

    // Two in a row go back to before the first.
    datastores.apply(&somebody, &mut change("third"), confirmed(60_000)).await.unwrap();
    datastores.apply(&somebody, &mut change("fourth"), confirmed(200)).await.unwrap();
    lab.until("rolled back", |lab| description(lab) == "second").await;

    // Bound to its session: others cannot confirm it, and it ends with the session.
    let bound = Options { of_session: true, ..confirmed(60_000) };
    datastores.apply(&somebody, &mut change("fifth"), bound).await.unwrap();
    let other = datastores.apply(&who("other"), &mut datastores.candidate(), Options::default()).await;
    assert!(matches!(other, Err(ApplyError::Unconfirmed(_))), "{other:?}");
    datastores.session_ended(&somebody).await;
    assert_eq!((description(&lab).as_str(), datastores.pending()), ("second", None));

    // By its name only.
    let named = Options { persist: Some("token".to_owned()), of_session: true, ..confirmed(60_000) };
    datastores.apply(&somebody, &mut change("sixth"), named).await.unwrap();
    datastores.session_ended(&somebody).await;
    assert_eq!(description(&lab), "sixth");
    let with = |id: &str| Options { persist_id: Some(id.to_owned()), ..Options::default() };
    assert!(datastores.apply(&who("other"), &mut datastores.candidate(), with("wrong")).await.is_err());
    datastores.apply(&who("other"), &mut datastores.candidate(), with("token")).await.unwrap();
    assert_eq!((description(&lab).as_str(), datastores.pending()), ("sixth", None));
    assert!(datastores.apply(&who("other"), &mut datastores.candidate(), with("token")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_back_waits_for_the_data_plane_and_then_happens() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let datastores = lab.desk.datastores.clone();
    let mut candidate = datastores.candidate();
    tree::set_lines::read(candidate.tree_mut(), "set ecofilter-balancer ecofilter-unit main cores 9")
        .unwrap();
    let options = Options { confirmed: Some(Duration::from_millis(300)), ..Options::default() };
    datastores.apply(&who("somebody"), &mut candidate, options).await.unwrap();
    lab.plane.lose();
    lab.until("noticed", |lab| lab.ask_state() == "lost").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(lab.desk.view.load().site.units["main"].cores, 9, "nothing can be written yet");
    lab.plane.regain(2);
    lab.until("rolled back", |lab| lab.desk.view.load().site.units["main"].cores != 9).await;
    lab.until("tables", |lab| lab.plane.tables() == lab.wanted()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_with_what_waits_and_knows_the_revisions() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let mut session = lab.session();
    for n in 1..=60 {
        ask(&lab, &mut session, edit(&format!("set ecofilter-balancer link link1 description d{n}"))).await;
        let comment = Some(format!("change {n}"));
        ask(&lab, &mut session, Request::Apply { confirmed: None, comment }).await;
    }
    // One that moves the order of links cannot be said by lines alone.
    ask(&lab, &mut session, edit("set ecofilter-balancer link link1 description \"two words\"")).await;
    ask(&lab, &mut session, Request::Apply { confirmed: Some(60), comment: None }).await;
    let revisions = ask(&lab, &mut session, Request::ShowRollbacks).await;
    let plane = lab.plane.clone();
    drop(lab);
    let packets = plane.reopen();
    let lab = Lab::start(plane, packets, &site_text(2, "", REST), state.path(), 0.0);
    lab.until("connected", |lab| lab.desk.view.load().epoch > 0).await;
    let mut session = lab.session();
    let again = ask(&lab, &mut session, Request::ShowRollbacks).await;
    let shown = |all: &serde_json::Value| -> Vec<(u64, String, u64)> {
        let all = all.as_array().unwrap();
        all.iter()
            .map(|one| {
                let comment = one["comment"].as_str().unwrap_or_default().to_owned();
                (one["number"].as_u64().unwrap(), comment, one["changes"].as_u64().unwrap())
            })
            .collect()
    };
    assert_eq!(shown(&again)[..50], shown(&revisions)[..50]);
    assert_eq!(revisions.as_array().unwrap().len(), 51);
    assert_eq!(again.as_array().unwrap().last().unwrap()["user"], "root");
    assert!(again[0]["confirm-by"].is_string(), "{}", again[0]);
    assert_eq!(description(&lab), "\"two words\"");
    ask(&lab, &mut session, Request::Rollback { number: 31 }).await;
    ask(&lab, &mut session, APPLY).await;
    assert_eq!(description(&lab), "d30");
    let reason = refused(&lab, &mut session, Request::Rollback { number: 51 }).await;
    assert!(reason.contains("there is no revision 51"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_becomes_startup_and_nothing_else_changes_the_file() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let mut session = lab.session();
    let file = state.path().join("site.json");
    let before = std::fs::read_to_string(&file).unwrap();
    ask(&lab, &mut session, edit("set ecofilter-balancer link link1 description saved")).await;
    ask(&lab, &mut session, APPLY).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    ask(&lab, &mut session, Request::Save).await;
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.contains("saved") && site::Site::from_json(&after).is_ok(), "{after}");
    let startup = Request::ShowTree {
        source: Source::Startup,
        path: Vec::new(),
        format: api::Format::Set,
        defaults: false,
    };
    assert!(ask(&lab, &mut session, startup).await.to_string().contains("description saved"));
    // A disk that refuses leaves the file, and says so; what is applied is in force all the same.
    std::fs::remove_dir_all(state.path().join("history")).unwrap();
    ask(&lab, &mut session, edit("set ecofilter-balancer link link1 description later")).await;
    assert!(
        ask(&lab, &mut session, APPLY).await["warnings"].to_string().contains("a restart would not find it")
    );
    assert!(refused(&lab, &mut session, Request::Save).await.contains("journal"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
    let names: Vec<String> = std::fs::read_dir(state.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with(".sluice-startup-")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_held_to_what_it_may() {
    let state = tempfile::tempdir().unwrap();
    let lab = lab(state.path()).await;
    let hash =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g";
    let mut admin = lab.session();
    ask(&lab, &mut admin, edit("set access user eve role read-only")).await;
    ask(&lab, &mut admin, edit(&format!("set access user eve password-hash {hash}"))).await;
    ask(&lab, &mut admin, APPLY).await;
    let mut reader = Session::new("eve".to_owned(), Role::ReadOnly, "cli");
    let mut operator = Session::new("op".to_owned(), Role::Operator, "cli");
    let mode = || Request::SetUnitMode { unit: "main".to_owned(), mode: api::UnitMode::Bypass };
    for request in [edit("set ecofilter-balancer link link1 description x"), APPLY, Request::Save, mode()] {
        let reason = refused(&lab, &mut reader, request).await;
        assert!(reason.contains("eve is read-only"), "{reason}");
    }
    ask(&lab, &mut operator, mode()).await;
    let load = Request::Load { mode: LoadMode::Replace, text: "{}".to_owned() };
    assert!(refused(&lab, &mut operator, load).await.contains("op is operator; this needs the role admin"));
    // Keys and hashes are for admins.
    assert!(!ask(&lab, &mut reader, Request::ShowConfiguration).await.to_string().contains("argon2"));
    assert!(ask(&lab, &mut admin, Request::ShowConfiguration).await.to_string().contains("argon2"));
    let log = std::fs::read_to_string(state.path().join("audit.log")).unwrap();
    for part in
        ["\"user\":\"eve\"", "\"result\":\"refused\"", "SetUnitMode", "set access user eve role read-only"]
    {
        assert!(log.contains(part), "{part} is not in: {log}");
    }
}
