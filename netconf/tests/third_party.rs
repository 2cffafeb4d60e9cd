//! Clients that nobody here wrote: ncclient from PyPI and OpenSSH's `ssh`, over TCP.
//!
//! Crate `thirdparty` has where ncclient comes from, and how to go without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod store;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use api::Role;
use netconf::{Credentials, Locks, PrivateKey, Server, Settings, credentials, host_key};
use russh::keys::Algorithm;
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::LineEnding;
use store::{Shared, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// How long a client may take.
const DEADLINE: Duration = Duration::from_secs(300);

const NCCLIENT: [&str; 1] = ["ncclient==0.7.1"];

/// A server that listens, and what a client needs.
struct Listening {
    store: Arc<Store>,
    server: Server<Shared>,
    locks: Arc<Locks>,
    address: SocketAddr,
    /// The administrator's private key, and its directory.
    key: PathBuf,
    directory: tempfile::TempDir,
}

impl Listening {
    async fn new(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap();
        let path = directory.path().join("id");
        key.write_openssh_file(&path, LineEnding::LF).unwrap();
        let keys = vec!["broken".to_owned(), key.public_key().to_openssh().unwrap()];
        let user = |role, password| Credentials {
            role,
            keys: keys.clone(),
            password_hash: Some(credentials::hash(password).unwrap()),
        };
        let users = HashMap::from([
            ("admin".to_owned(), user(Role::Admin, "secret")),
            ("guest".to_owned(), user(Role::ReadOnly, "guess")),
            ("late".to_owned(), user(Role::Admin, "late")),
        ]);
        let store = Store::new(users);
        let host_key = host_key::load_or_make(directory.path()).unwrap();
        let (backend, locks) = (Arc::new(Shared(Arc::clone(&store))), Arc::new(Locks::default()));
        let server = Server::new(backend, Arc::clone(&locks), host_key, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
        Self { store, server, locks, address, key: path, directory }
    }

    /// OpenSSH's client, where it is installed.
    fn ssh(&self, user: &str, options: &[&str], command: &str) -> Option<tokio::process::Command> {
        let version = Command::new("ssh").arg("-V").output();
        if version.is_err() {
            eprintln!("without ssh (apt openssh-client)");
            return None;
        }
        let known = self.directory.path().join("known_hosts");
        let mut ssh = tokio::process::Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"])
            .args(["-o", "StrictHostKeyChecking=accept-new", "-o"])
            .arg(format!("UserKnownHostsFile={}", known.display()))
            .arg("-i")
            .arg(&self.key)
            .args(["-p", &self.address.port().to_string(), "-l", user])
            .args(options)
            .arg("127.0.0.1");
        if !command.is_empty() {
            ssh.arg(command);
        }
        ssh.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Some(ssh)
    }

    /// Runs a part of the script.
    async fn python(&self, part: &str) {
        let Some(python) = thirdparty::python("ncclient", &NCCLIENT) else { return };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/life.py");
        let mut command = tokio::process::Command::new(python);
        command.arg(script).arg(self.address.port().to_string()).arg(&self.key).arg(part);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(DEADLINE, command.output()).await.expect("in time").unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.ends_with("ok\n"), "{part}: {out}\n{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_edits_and_commits() {
    Listening::new(Settings::default()).await.python("thin").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_goes_through_the_life_of_a_configuration() {
    let listening = Listening::new(Settings::default()).await;
    listening.python("life").await;
    assert_eq!(listening.store.candidates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_is_told_what_happens() {
    let listening = Listening::new(Settings::default()).await;
    let store = Arc::clone(&listening.store);
    let telling = tokio::spawn(async move {
        while store.subscribers() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        store.moved("p7");
    });
    listening.python("subscribed").await;
    telling.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_with_a_readers_password_reads() {
    Listening::new(Settings::default()).await.python("reader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_of_ncclient_at_a_time() {
    Listening::new(Settings::default()).await.python("many").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_with_thirteen_megabytes() {
    Listening::new(Settings::default()).await.python("big").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_beyond_the_last_session() {
    Listening::new(Settings { max_sessions: 2, ..Settings::default() }).await.python("full").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_of_a_stranger_stays_out() {
    Listening::new(Settings::default()).await.python("strangers").await;
}

const HELLO: &str = "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities>\
    <capability>urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>]]>]]>";

fn rpc(operation: &str) -> String {
    format!("<rpc xmlns=\"{}\" message-id=\"1\">{operation}</rpc>]]>]]>", store::client::BASE)
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_starts_the_subsystem() {
    let listening = Listening::new(Settings::default()).await;
    let Some(ssh) = listening.ssh("admin", &["-s"], "netconf") else { return };
    let said = format!(
        "{HELLO}{}{}",
        rpc("<get-config><source><running/></source></get-config>"),
        rpc("<close-session/>")
    );
    let (code, out, err) = run(ssh, &said).await;
    assert!(out.starts_with("<?xml") && out.contains("<data></data></rpc-reply>]]>]]>"), "{out} {err}");
    assert!(out.ends_with("<ok/></rpc-reply>]]>]]>"), "{out} {err}");
    assert_eq!(code, Some(0), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_gets_nothing_but_the_subsystem() {
    let listening = Listening::new(Settings::default()).await;
    for (options, command) in [(&["-s"][..], "sftp"), (&[], "id"), (&["-tt"], ""), (&["-T"], "")] {
        let Some(ssh) = listening.ssh("admin", options, command) else { return };
        let (code, out, err) = run(ssh, "").await;
        assert!(out.is_empty() && code != Some(0), "{options:?} {command}: {code:?} {out} {err}");
    }
    // Nor a way to somewhere else.
    let forward = format!("127.0.0.1:{}", listening.address.port());
    let Some(ssh) = listening.ssh("admin", &["-W", &forward], "") else { return };
    let (code, out, _) = run(ssh, "x").await;
    assert!(out.is_empty() && code != Some(0), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_is_told_why_there_is_no_session() {
    let listening = Listening::new(Settings { max_sessions: 1, ..Settings::default() }).await;
    let Some(ssh) = listening.ssh("late", &["-s"], "netconf") else { return };
    let (code, _, err) = run(ssh, HELLO).await;
    assert!(err.contains("the store is closed") && code != Some(0), "{code:?} {err}");
    let mut first =
        listening.ssh("admin", &["-s"], "netconf").unwrap().stdin(Stdio::piped()).spawn().unwrap();
    until(|| !listening.server.callers().is_empty()).await;
    let (code, _, err) = run(listening.ssh("admin", &["-s"], "netconf").unwrap(), HELLO).await;
    assert!(err.contains("all 1 NETCONF sessions are in use") && code != Some(0), "{code:?} {err}");
    first.kill().await.unwrap();
    until(|| listening.server.callers().is_empty()).await;
    let (code, out, err) = run(
        listening.ssh("admin", &["-s"], "netconf").unwrap(),
        &format!("{HELLO}{}", rpc("<close-session/>")),
    )
    .await;
    assert!(code == Some(0) && out.contains("<ok/>"), "{code:?} {out} {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_without_a_login_are_few_and_do_not_stay() {
    let login_timeout = Duration::from_secs(2);
    let settings = Settings { max_connecting: 4, login_timeout, ..Settings::default() };
    let listening = Listening::new(settings).await;
    let connect = async || tokio::net::TcpStream::connect(listening.address).await.unwrap();
    let mut waiting = [connect().await, connect().await];
    for stream in &mut waiting {
        assert!(first_line(stream).await.starts_with("SSH-2.0-"));
    }
    let mut third = connect().await;
    assert!(first_line(&mut third).await.starts_with("too many connections"));
    for stream in &mut waiting {
        // They are closed, not merely forgotten.
        let mut rest = Vec::new();
        let read =
            tokio::time::timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("closed in time");
        drop(read);
    }
    assert!(first_line(&mut connect().await).await.starts_with("SSH-2.0-"));
}

/// A store with more than a connection's buffers take.
fn fill(store: &Store) {
    let mut running = store.running();
    for number in 0..20_000 {
        let entry = format!("/plant:balancer/flow[name='{number}'][zone='z']/match/text");
        running.set(&store.path(&entry), Some(&"text ".repeat(60))).unwrap();
    }
    store.set_running(running);
}

/// Sends a signal to a client.
fn signal(child: &tokio::process::Child, name: &str) {
    let killed = Command::new("kill").args([name, &child.id().unwrap().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stands_still_holds_nothing_for_long() {
    let timeouts = Duration::from_secs(1);
    for (what, settings) in [
        // It is in the middle of a reply.
        ("<get/>", Settings { write_timeout: timeouts, ..Settings::default() }),
        // It is silent.
        ("", Settings { keepalive: timeouts, ..Settings::default() }),
    ] {
        let listening = Listening::new(settings).await;
        fill(&listening.store);
        let Some(mut ssh) = listening.ssh("admin", &["-s"], "netconf") else { return };
        let mut child = ssh.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let said = format!("{HELLO}{}", rpc("<lock><target><running/></target></lock>"));
        stdin.write_all(said.as_bytes()).await.unwrap();
        let locks = Arc::clone(&listening.locks);
        until(|| locks.holder(netconf::Datastore::Running).is_some()).await;
        if !what.is_empty() {
            // Nobody reads what the client writes, so that it stops reading, too.
            stdin.write_all(rpc(what).as_bytes()).await.unwrap();
        } else {
            signal(&child, "-STOP");
        }
        until(|| locks.holder(netconf::Datastore::Running).is_none()).await;
        until(|| listening.store.endings().len() == 1).await;
        // Nor does its connection stay.
        if what.is_empty() {
            signal(&child, "-CONT");
        }
        drop(stdin);
        let output =
            tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("in time").unwrap();
        assert!(!output.status.success());
    }
}

/// The first line that the server says.
async fn first_line(stream: &mut tokio::net::TcpStream) -> String {
    let mut line = String::new();
    while !line.ends_with('\n') {
        let byte = tokio::time::timeout(DEADLINE, stream.read_u8()).await.expect("in time").unwrap();
        line.push(char::from(byte));
    }
    line
}

/// Waits for something.
async fn until(there: impl Fn() -> bool) {
    let waiting = async {
        while !there() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("in time");
}

/// Runs a client to its end: its code, and what it wrote.
async fn run(mut command: tokio::process::Command, input: &str) -> (Option<i32>, String, String) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeding = tokio::spawn(async move {
        // It may be gone already.
        let _ = stdin.write_all(input.as_bytes()).await;
        stdin
    });
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("in time").unwrap();
    drop(feeding.await);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
