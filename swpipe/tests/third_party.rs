//! Clients that nobody here wrote, from PyPI, against the server: they connect, become primary, read the
//! P4Info, write and read a rule, get its counters, receive a keep-alive; a backup may not write.
//!
//! Each has a virtual environment of its own (crate `thirdparty`), since they want different protobufs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod site_file;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dataplane::entry::Update;
use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use dataplane::{Nanos, PortId};
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Options, PipelineAction, Session, Target};
use p4runtime::entry::{p4info, update_to_wire};
use p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use swpipe::batch::Forwarder;
use swpipe::device::Device;
use swpipe::io::Frame;
use swpipe::server::{Listen, Server};
use swpipe::worker::Outlets;

/// How long a client may take.
const DEADLINE: Duration = Duration::from_secs(120);

const SHELL: [&str; 4] =
    ["p4runtime-shell==0.0.6", "p4runtime==1.4.1", "protobuf==3.20.3", "googleapis-common-protos==1.73.0"];
const FINSY: [&str; 2] = ["finsy==0.30.0", "protobuf==6.33.6"];

/// Programs the example site, as a controller that then leaves.
async fn program(server: &Server) {
    let target = Target::dial("test", server.connector());
    let (session, _inbox) = Session::connect(&target, Options::new(1, Some(ElectionId(1)))).await.unwrap();
    let program = ForwardingPipelineConfig::new(p4info(), vec![], 1);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
    let updates =
        site_file::example_entries().into_iter().filter(|entry| entry.metadata != b"rest").map(|entry| {
            update_to_wire(&if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
        });
    session.write(updates.collect(), Atomicity::ContinueOnError).await.unwrap();
    session.close();
}

/// Frames of TCP through the pipeline and keep-alives to the primary, until `stop`.
fn traffic(device: &Device, server: &Server, stop: &AtomicBool) {
    let mut tcp = vec![0; 60];
    tcp[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    tcp[16..18].copy_from_slice(&46_u16.to_be_bytes());
    tcp[22..24].copy_from_slice(&[64, 6]);
    tcp[26..34].copy_from_slice(&[10, 0, 0, 1, 192, 0, 2, 1]);
    let mut keep_alive = vec![0; 60];
    keep_alive[12..14].copy_from_slice(&KEEP_ALIVE_ETHERTYPE.to_be_bytes());
    let (mut forwarder, deliver) = (Forwarder::new(device.counters().block()), server.deliver());
    let mut out = Outlets::new(Vec::new());
    while !stop.load(Relaxed) {
        let tables = device.snapshot().load_full();
        forwarder.forward(&tables, PortId(4 * 4 + 2), &[Frame { bytes: &tcp }], &mut out);
        deliver(PortId(6), &keep_alive, Nanos(123_456_789));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run_client(name: &str, packages: &[&str], script: &str) {
    let Some(python) = thirdparty::python(name, packages) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let device = Arc::new(Device::default());
    let server = Server::new(Arc::clone(&device), 1, None);
    let serving = runtime.block_on(async {
        program(&server).await;
        server.listen(&Listen::Tcp(([127, 0, 0, 1], 0).into())).await.unwrap()
    });
    let Listen::Tcp(address) = serving.address() else { panic!("no TCP address") };
    let stop = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| traffic(&device, &server, &stop));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party").join(script);
        let child = Command::new(python)
            .arg(script)
            .arg(address.to_string())
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        // A client that hangs is ended, so that its output can be shown.
        let until = Instant::now() + DEADLINE;
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Relaxed) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            if !stop.load(Relaxed) {
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
        });
        let output = child.wait_with_output().unwrap();
        stop.store(true, Relaxed);
        output
    });
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.ends_with("done\n"), "{}\n{text}\n{errors}", output.status);
    print!("{text}");
}

#[test]
fn p4runtime_shell_controls_the_pipeline() {
    run_client("p4runtime-shell", &SHELL, "shell_client.py");
}

#[test]
fn finsy_controls_the_pipeline() {
    run_client("finsy", &FINSY, "finsy_client.py");
}
