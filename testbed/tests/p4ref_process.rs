//! `testbed p4ref`: frames between interfaces, P4Runtime on a socket, a clean end. Needs root; says so when it
//! can't run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod p4ref_fixture;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use p4ref_fixture::*;
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Options, Session, Target};
use p4runtime::proto::p4::v1::Update;
use testbed::netns::Run;
use testbed::raw::{Batch, PacketSocket};

const PATIENCE: Duration = Duration::from_secs(20);

fn within<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn program(socket: &Path) {
    let options = Options::new(4, Some(ElectionId(1)));
    let (session, _inbox) = Session::connect(&Target::Unix(socket.into()), options).await.unwrap();
    let entry = by_port(1, 0, call("forward", &[2]));
    session.write(vec![Update::insert(entry)], Atomicity::ContinueOnError).await.unwrap();
}

#[test]
fn the_process_moves_frames_and_ends_cleanly() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED the_process_moves_frames_and_ends_cleanly: network namespaces need root");
        return;
    }
    let run = Run::start(PathBuf::from(env!("CARGO_BIN_EXE_testbed"))).unwrap();
    run.ip(None, &[format!("netns add {}", run.name("sw"))]).unwrap();
    run.set_parameters("sw", &[("net/ipv6/conf/default/disable_ipv6", "1")]).unwrap();
    let lines = [1, 2].into_iter().flat_map(|port| {
        [
            format!("link add p{port} type veth peer name x{port}"),
            format!("link set p{port} up"),
            format!("link set x{port} up"),
        ]
    });
    run.ip(Some("sw"), &lines.collect::<Vec<_>>()).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4ref");
    let socket = run.directory().join("p4ref.sock");
    let mut command = run.agent("sw", "p4ref");
    command.args(["--interface", "1@p1", "--interface", "2@p2", "--device-id", "4"]);
    command.arg("--listen").arg(format!("unix:{}", socket.display()));
    command.arg("--program").arg(fixture.join("everything.json"));
    command.arg("--p4info").arg(fixture.join("everything.p4info.txtpb"));
    let mut process = command.stdout(Stdio::null()).spawn().unwrap();

    run.inside("sw", || {
        let (from, to) = (PacketSocket::open("x1")?, PacketSocket::open("x2")?);
        within("the socket", || std::os::unix::net::UnixStream::connect(&socket).ok());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(program(&socket));
        let sent = frame(0x1111, &[7; 46]);
        assert_eq!(from.send(&[&sent])?, 1);
        let mut batch = Batch::default();
        let found = within("the frame", || {
            to.receive(&mut batch).unwrap();
            batch.iter().next().map(<[u8]>::to_vec)
        });
        assert_eq!(split(&found).1, sent);
        Ok(())
    })
    .unwrap();

    kill(Pid::from_raw(process.id() as i32), Signal::SIGTERM).unwrap();
    let status = within("its end", || process.try_wait().unwrap());
    assert!(status.success(), "{status}");
    assert!(!socket.exists(), "the socket's file is gone");
}
