//! The gRPC status service, by clients from PyPI that learn the protocol from server reflection.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod lab;
mod watching;

use std::path::Path;
use std::time::{Duration, Instant};

use api::{EventKind, Request, Severity};
use controller::event::News;
use controller::northbound::status;
use controller::socket;
use controller::telemetry::Telemetry;
use lab::{Lab, Plane, REST, site_text};
use watching::{Authority, Script, free_port, python, script};

/// A controller with all pairs up, and its status service on the socket in its state directory.
async fn begin(pairs: usize, state: &Path, more: &str) -> Lab {
    let (plane, packets) = Plane::new();
    let text = site_text(pairs, "", REST);
    let text = text.replacen('{', &format!("{{{more}"), 1);
    let lab = Lab::start(plane, packets, &text, state, 0.0);
    let listener = socket::open(&state.join(status::SOCKET)).await.unwrap();
    let telemetry = Telemetry::new(lab.desk.clone());
    tokio::spawn(status::serve(lab.desk.clone(), telemetry, listener, state.to_owned()));
    lab.until("all pairs up", |lab| lab.pairs_up() == pairs).await;
    lab
}

fn local(state: &Path) -> String {
    format!("unix:{}", state.join(status::SOCKET).display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_learns_the_service_and_gets_what_it_asks_for() {
    let Some(python) = python() else { return };
    let state = tempfile::tempdir().unwrap();
    let _lab = begin(3, state.path(), "").await;
    let mut command = script(&python, "grpc_client.py");
    command.arg("get").arg(local(state.path()));
    tokio::task::block_in_place(|| Script::start(command).ends_well());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_watches_sees_every_transition_in_order() {
    let Some(python) = python() else { return };
    let state = tempfile::tempdir().unwrap();
    let lab = begin(3, state.path(), "").await;
    let mut command = script(&python, "grpc_client.py");
    command.arg("watch").arg(local(state.path())).arg("100");
    let mut client = Script::start(command);
    assert_eq!(tokio::task::block_in_place(|| client.line()), "watching");
    let port = lab.desk.view.load().site.ports["pl0"].id;
    for _ in 0..50 {
        lab.plane.freeze(port);
        lab.until("the pair down", |lab| lab.pairs_up() == 2).await;
        lab.plane.thaw(port);
        lab.until("the pair up", |lab| lab.pairs_up() == 3).await;
    }
    tokio::task::block_in_place(|| client.ends_well());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_is_slow_is_told_and_holds_up_nobody() {
    const EVENTS: u64 = 30_000;
    let Some(python) = python() else { return };
    let state = tempfile::tempdir().unwrap();
    let lab = begin(1, state.path(), "").await;
    let mut command = script(&python, "grpc_client.py");
    command.arg("slow").arg(local(state.path()));
    let mut client = Script::start(command);
    assert_eq!(tokio::task::block_in_place(|| client.line()), "watching");
    let begun = Instant::now();
    for _ in 0..EVENTS {
        let mut news = News::now(Severity::Warning, EventKind::Pair, "main/p0", "test").change("up", "down");
        // More than what connection and client hold.
        news.detail = Some("x".repeat(1000));
        lab.desk.events.log(news);
    }
    let took = begun.elapsed();
    let newest = lab.desk.events.list(0, Some(1)).last().map_or(0, |event| event.id);
    client.tell(&format!("go on to {newest}"));
    let line = tokio::task::block_in_place(|| client.line());
    println!("{EVENTS} events logged in {took:?} beside a client that does not read; it got: {line}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(line.starts_with("missed") && numbers[0] > 0, "{line}");
    // What the present state covers is neither.
    assert!(numbers[0] + numbers[1] <= EVENTS, "{line}");
    tokio::task::block_in_place(|| client.ends_well());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_tcp_a_certificate_says_who_it_is() {
    let Some(python) = python() else { return };
    let state = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ours");
    let stranger = Authority::new(directory.path(), "other");
    let (certificate, key) = authority.sign("server", &["localhost"]);
    let port = free_port();
    let more = format!(
        r#""sluice:access": {{"user": [{{"name": "bob", "role": "read-only"}}], "grpc": {{"enabled": true, "port": {port},
            "tls": {{"certificate": {certificate:?}, "key": {key:?}, "client-ca": {:?}}}}}}},"#,
        authority.file
    );
    let lab = begin(2, state.path(), &more).await;
    lab.until("it listens", |lab| lab.events().iter().any(|event| event.reason.starts_with("listens on")))
        .await;
    let call = |part: &str, (certificate, key): (&Path, &Path)| {
        let mut command = script(&python, "grpc_client.py");
        command.arg(part).arg(format!("localhost:{port}")).arg(&authority.file).arg(certificate).arg(key);
        Script::start(command)
    };
    let code = |files: (&Path, &Path)| tokio::task::block_in_place(|| call("code", files).line());
    let (bob, bobs_key) = authority.sign("bob", &[]);
    let (eve, eves_key) = authority.sign("eve", &[]);
    let (other, others_key) = stranger.sign("bob2", &[]);
    assert_eq!(code((&bob, &bobs_key)), "OK");
    let unknown = code((&eve, &eves_key));
    assert!(unknown.starts_with("PERMISSION_DENIED user eve has no role here"), "{unknown}");
    let none = code((Path::new("-"), Path::new("-")));
    assert!(none.starts_with("UNAVAILABLE"), "{none}");
    let strange = code((&other, &others_key));
    assert!(strange.starts_with("UNAVAILABLE"), "{strange}");
    tokio::task::block_in_place(|| call("get", (&bob, &bobs_key)).ends_well());
    assert!(lab.events().iter().any(|event| event.kind == EventKind::Access && event.subject == "eve"));

    // Who is taken out is out, in the middle of his watching too.
    let mut watching = call("ended", (&bob, &bobs_key));
    assert_eq!(tokio::task::block_in_place(|| watching.line()), "watching");
    let mut session = lab.session();
    for request in [
        Request::Edit { lines: vec!["del access user bob".to_owned()] },
        Request::Apply { confirmed: None, comment: None },
    ] {
        let answer = lab.desk.answer(&mut session, request).await;
        assert!(matches!(answer, api::Response::Ok(_)), "{answer:?}");
    }
    let line = tokio::task::block_in_place(|| watching.line());
    assert!(line.starts_with("PERMISSION_DENIED user bob has no role here"), "{line}");
    assert!(code((&bob, &bobs_key)).starts_with("PERMISSION_DENIED"));
}
