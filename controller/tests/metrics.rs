//! `/metrics`: what Prometheus' own parsers make of it, who is let in, and what bad clients can do. Rules, dashboard and
//! documentation name what is served.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod lab;
mod watching;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::EventKind;
use controller::northbound::{certificate, metrics};
use controller::telemetry::Telemetry;
use dataplane::schema::counters;
use lab::{Lab, Plane, REST, site_text};
use swpipe::counters::{Count, Place};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use watching::{Authority, Script, free_port, python, script};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Names of all series.
fn series() -> BTreeSet<String> {
    metrics::FAMILIES.iter().flat_map(|family| family.series()).collect()
}

/// A controller with all pairs up that serves metrics.
async fn begin(state: &Path, port: u16, more: &str) -> Lab {
    let (plane, packets) = Plane::new();
    let text = site_text(2, "", REST)
        .replace(
            r#""lan-port": "l0""#,
            r#""lan-port": "l0", "description": "up \"north\"\\\nof {all}, über""#,
        )
        .replacen('{', &format!(r#"{{"sluice:prometheus": {{"enabled": true, "port": {port}{more}}},"#), 1);
    let lab = Lab::start(plane, packets, &text, state, 0.0);
    let telemetry = Telemetry::new(lab.desk.clone());
    tokio::spawn(metrics::serve(lab.desk.clone(), telemetry, state.to_owned()));
    lab.until("pairs and listener up", |lab| {
        let listens = lab
            .events()
            .iter()
            .any(|event| event.kind == EventKind::Configuration && event.reason.starts_with("listens on"));
        lab.pairs_up() == 2 && listens
    })
    .await;
    lab
}

/// A TLS connection to the port, which trusts this authority.
fn connect(
    port: u16,
    authority: &Path,
    identity: Option<(&Path, &Path)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        Some((certificate, key)) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_file(certificate).unwrap()],
                PrivateKeyDer::from_pem_file(key).unwrap(),
            )
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

/// What comes back to this request, to the end of the connection.
fn exchange(stream: &mut StreamOwned<ClientConnection, TcpStream>, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // Closed without a farewell.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error),
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_formats_are_what_prometheus_own_parsers_read() {
    let Some(python) = python() else { return };
    let state = tempfile::tempdir().unwrap();
    let port = free_port();
    let lab = begin(state.path(), port, "").await;
    let cell = counters::port(lab.desk.view.load().site.ports["l0"].id);
    let count = Count { packets: 7, bytes: 700 };
    lab.plane.device.counters().set(Place::Array(counters::PORT_IN.id, cell), count);
    let families: Vec<(String, &[&str])> = metrics::FAMILIES
        .iter()
        .flat_map(|family| family.series().into_iter().map(|name| (name, family.labels)))
        .collect();
    let mut command = script(&python, "scrape.py");
    command
        .arg(format!("https://localhost:{port}/metrics"))
        .arg(state.path().join(certificate::FILE))
        .arg(serde_json::to_string(&families).unwrap());
    // The reading before the counter was set is served for a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    tokio::task::block_in_place(|| Script::start(command).ends_well());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_a_client_ca_a_client_must_show_a_certificate() {
    let state = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ours");
    let (certificate, key) = authority.sign("server", &["localhost"]);
    let (client, clients_key) = authority.sign("prometheus", &[]);
    let port = free_port();
    let tls = format!(
        r#", "tls": {{"certificate": {certificate:?}, "key": {key:?}, "client-ca": {:?}}}"#,
        authority.file
    );
    let _lab = begin(state.path(), port, &tls).await;
    tokio::task::block_in_place(|| {
        let mut with = connect(port, &authority.file, Some((&client, &clients_key)));
        assert!(exchange(&mut with, GET).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
        let mut without = connect(port, &authority.file, None);
        let refused = exchange(&mut without, GET);
        assert!(!refused.as_ref().is_ok_and(|answer| answer.contains("200 OK")), "{refused:?}");
    });
    assert!(!state.path().join(certificate::FILE).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bad_clients_get_no_further() {
    let state = tempfile::tempdir().unwrap();
    let port = free_port();
    let _lab = begin(state.path(), port, "").await;
    let own = state.path().join(certificate::FILE);
    tokio::task::block_in_place(|| {
        let answer = |request: &str| exchange(&mut connect(port, &own, None), request).unwrap();
        assert!(answer(GET).starts_with("HTTP/1.1 200 OK\r\n"));
        let other = GET.replace("GET /metrics", "GET /");
        assert!(answer(&other).starts_with("HTTP/1.1 404 "));
        let posted = answer(&GET.replace("GET", "POST"));
        assert!(posted.starts_with("HTTP/1.1 405 ") && posted.contains("allow: GET, HEAD"), "{posted}");
        assert!(answer("no HTTP at all\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = GET.replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "x".repeat(20_000)));
        assert!(answer(&long).starts_with("HTTP/1.1 431 "));
        let many = GET.replace("\r\n\r\n", &format!("{}\r\n\r\n", "\r\nX: 1".repeat(100)));
        assert!(answer(&many).starts_with("HTTP/1.1 431 "));
        let head = answer(&GET.replace("GET", "HEAD"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");

        // Without TLS.
        let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
        plain.write_all(GET.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"), "{answer:?}");

        // Half a request ends in time, and so do connections that never begin; others are served meanwhile.
        let begun = Instant::now();
        let idle: Vec<TcpStream> =
            (0..40).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let mut half = connect(port, &own, None);
        half.write_all(b"GET /metrics HTTP/1.1\r\nHost").unwrap();
        assert!(exchange(&mut connect(port, &own, None), GET).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
        let mut rest = Vec::new();
        let _ = half.read_to_end(&mut rest);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        for mut socket in idle {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            assert!(matches!(socket.read(&mut [0; 16]), Ok(0) | Err(_)));
        }
        // More than there is room for.
        let many: Vec<TcpStream> =
            (0..80).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let closed = |socket: &TcpStream| {
            socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            matches!(socket.take(1).read(&mut [0; 1]), Ok(0))
        };
        assert!(many.iter().rev().take(10).all(closed));
        drop(many);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !exchange(&mut connect(port, &own, None), GET).is_ok_and(|answer| answer.contains("200 OK")) {
            assert!(Instant::now() < deadline);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_of_the_configuration_moves_the_listener_and_ends_it() {
    let state = tempfile::tempdir().unwrap();
    let (port, next) = (free_port(), free_port());
    let lab = begin(state.path(), port, "").await;
    let own = state.path().join(certificate::FILE);
    let mut session = lab.session();
    let mut apply = async |line: String| {
        for request in
            [api::Request::Edit { lines: vec![line] }, api::Request::Apply { confirmed: None, comment: None }]
        {
            let answer = lab.desk.answer(&mut session, request).await;
            assert!(matches!(answer, api::Response::Ok(_)), "{answer:?}");
        }
    };
    apply(format!("set prometheus port {next}")).await;
    let there = format!("listens on 127.0.0.1:{next}");
    lab.until("the other port", |lab| lab.events().iter().any(|event| event.reason == there)).await;
    tokio::task::block_in_place(|| {
        assert!(exchange(&mut connect(next, &own, None), GET).unwrap().contains("200 OK"));
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    });
    apply("set prometheus enabled false".to_owned()).await;
    let gone = |_: &Lab| TcpStream::connect(("127.0.0.1", next)).is_err();
    lab.until("it does not listen", gone).await;
}

#[test]
fn the_format_is_the_one_that_is_asked_for() {
    use metrics::Format::{self, OpenMetrics, Text};
    let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
    for (accept, format) in [
        (prometheus, OpenMetrics),
        ("", Text),
        ("*/*", Text),
        ("text/html, */*;q=0.1", Text),
        ("text/plain;version=0.0.4", Text),
        ("application/openmetrics-text", OpenMetrics),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.5", Text),
        ("application/openmetrics-text;q=0", Text),
        ("application/openmetrics-text;q=x", Text),
    ] {
        assert_eq!(Format::of(accept), format, "{accept}");
    }
}

/// The documentation's table.
fn table() -> String {
    let mut table = String::from("| metric | type | labels | what it tells |\n| --- | --- | --- | --- |\n");
    for family in metrics::FAMILIES {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(
            table,
            "| `{}` | {} | {} | {}. |",
            family.name,
            family.kind.as_str(),
            labels.join(" "),
            family.help
        )
        .unwrap();
    }
    table
}

/// `UPDATE_METRICS=1` writes it anew.
#[test]
fn the_documentation_has_every_metric() {
    let path = repository().join("docs/metrics.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- metrics -->\n").unwrap();
    let (found, after) = rest.split_once("<!-- /metrics -->\n").unwrap();
    let wanted = table();
    if std::env::var_os("UPDATE_METRICS").is_some() {
        let text = format!("{before}<!-- metrics -->\n{wanted}<!-- /metrics -->\n{after}");
        std::fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(found, wanted, "UPDATE_METRICS=1 writes it anew");
}

/// What looks like the name of a series of ours.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .filter(|word| word.starts_with("sluice_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn rules_dashboard_and_documentation_name_what_is_served() {
    let known = series();
    for path in [
        "configs/prometheus/sluice-alerts.yml",
        "configs/prometheus/sluice-alerts-test.yml",
        "configs/grafana/sluice.json",
        "docs/metrics.md",
    ] {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        let mut named = named(&text);
        assert!(named.len() > 5, "{path}: {named:?}");
        if path.starts_with("docs") {
            // A histogram stands there by the name of its family, and several by what they have in common.
            named.retain(|name| !known.iter().any(|known| known.starts_with(name.as_str())));
        }
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    let dashboard = std::fs::read(repository().join("configs/grafana/sluice.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_slice(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queried = panels.iter().filter(|panel| panel["type"] != "row");
    assert!(queried.clone().count() > 15);
    for panel in queried {
        let targets = panel["targets"].as_array().unwrap();
        assert!(targets.iter().all(|target| target["expr"].as_str().is_some_and(|expr| !expr.is_empty())));
    }
}

#[test]
fn promtool_takes_the_rules_and_their_tests_pass() {
    if Command::new("promtool").arg("--version").output().is_err() {
        println!("skipped: without promtool (apt prometheus)");
        return;
    }
    for arguments in [["check", "rules", "sluice-alerts.yml"], ["test", "rules", "sluice-alerts-test.yml"]] {
        let directory = repository().join("configs/prometheus");
        let output = Command::new("promtool").args(arguments).current_dir(directory).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
