//! What a P4Runtime client waits for where the pipeline has 100,000 flow rules: all of them in one write, a write
//! of one flow more at the top, in the middle and at the bottom of the priorities, a read of everything; and what
//! memory `swpipe run` has then. Each flow is an entry of `rules_v4` and one of `rules_v6`.
//!
//! A write of one flow is to take 50 ms at most. Keep-alives are handed to the client all the while.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use dataplane::entry::{Entry, Update};
use dataplane::tables::{Family, RuleAction, RuleEntry, RuleField, RuleMatch};
use dataplane::{Nanos, PortId};
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Inbox, Options, PipelineAction, Session, Target};
use p4runtime::entry::{every_entry, p4info, update_to_wire};
use p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use swpipe::device::Device;
use swpipe::server::Server;
use tokio::runtime::Runtime;

/// Flows; entries are twice as many.
const FLOWS: u32 = 100_000;
/// Above all flows, among them, and below them.
const PRIORITIES: [(&str, i32); 3] = [("the top", 1_000_000), ("the middle", 50_001), ("the bottom", 1)];
/// Between two keep-alives: 100 pairs, both ways, every 10 ms.
const KEEP_ALIVES_EVERY: Duration = Duration::from_micros(50);

/// A flow as the site's model makes it: a destination prefix for IPv4 and one for IPv6, a name.
fn flow(number: u32, priority: i32) -> [Entry; 2] {
    Family::BOTH.map(|family| {
        let mut matches = RuleMatch::default();
        match family {
            Family::V4 => {
                matches.set_exact(RuleField::IpVersion, 4, family);
                matches.set(RuleField::DstIp, u128::from(number) << 8, 0xffff_ff00);
            }
            Family::V6 => matches.set(RuleField::DstIp, u128::from(number) << 80, u128::MAX << 80),
        }
        let rule = RuleEntry { family, priority, matches, action: RuleAction::Bypass };
        Entry { metadata: format!("flow-{number:06}").into_bytes(), ..rule.entry() }
    })
}

/// All flows, each of a priority of its own or all of the same.
fn flows(one_priority: bool) -> impl Iterator<Item = Update> {
    let priority = move |number| if one_priority { 50_001 } else { i32::try_from(number).unwrap_or(0) + 2 };
    (0..FLOWS).flat_map(move |number| flow(number, priority(number))).map(Update::Insert)
}

async fn connect(target: &Target, election: Option<ElectionId>) -> (Session, Inbox) {
    let options = Options {
        batch: 1 << 20,
        batch_bytes: 60 << 20,
        call_deadline: Duration::from_secs(60),
        ..Options::new(1, election)
    };
    Session::connect(target, options).await.unwrap()
}

async fn primary(target: &Target) -> (Session, Inbox) {
    let (session, inbox) = connect(target, Some(ElectionId(1))).await;
    let program = ForwardingPipelineConfig::new(p4info(), vec![], 1);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
    (session, inbox)
}

async fn write(session: &Session, updates: impl Iterator<Item = Update>) -> Duration {
    let wire = updates.map(|update| update_to_wire(&update)).collect();
    let begun = Instant::now();
    session.write(wire, Atomicity::DataplaneAtomic).await.unwrap();
    begun.elapsed()
}

/// A server, its primary, and keep-alives that go to it as fast as many pairs send them.
struct Bench {
    runtime: Runtime,
    target: Target,
    session: Session,
    _inbox: Inbox,
    stop: Arc<AtomicBool>,
    probing: Option<JoinHandle<u64>>,
}

impl Bench {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let server = Server::new(Arc::new(Device::default()), 1, None);
        let deliver = server.deliver();
        let (target, (session, inbox)) = runtime.block_on(async {
            let target = Target::dial("bench", server.connector());
            let primary = primary(&target).await;
            (target, primary)
        });
        let stop = Arc::new(AtomicBool::new(false));
        let probing = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut delivered = 0;
                while !stop.load(Relaxed) {
                    delivered += u64::from(deliver(PortId(5), &[2; 60], Nanos(1)));
                    std::thread::sleep(KEEP_ALIVES_EVERY);
                }
                delivered
            }
        });
        Bench { runtime, target, session, _inbox: inbox, stop, probing: Some(probing) }
    }

    /// Inserts, modifies and deletes one flow; how long each took.
    fn round(&self, priority: i32) -> [Duration; 3] {
        let one = flow(FLOWS, priority);
        let other = one.clone().map(|entry| Entry { metadata: b"another".to_vec(), ..entry });
        self.runtime.block_on(async {
            [
                write(&self.session, one.iter().cloned().map(Update::Insert)).await,
                write(&self.session, other.into_iter().map(Update::Modify)).await,
                write(&self.session, one.into_iter().map(Update::Delete)).await,
            ]
        })
    }

    /// The slowest of many writes of one flow while another client reads everything all the time.
    fn slowest_during_reads(&self) -> Duration {
        let (backup, _inbox) = self.runtime.block_on(connect(&self.target, None));
        let reading = self.runtime.spawn(async move { while backup.read(every_entry()).await.is_ok() {} });
        let rounds = (0..100).flat_map(|_| PRIORITIES.map(|(_, priority)| self.round(priority)));
        let slowest = rounds.flatten().max().unwrap_or_default();
        assert!(!reading.is_finished(), "a read failed");
        reading.abort();
        slowest
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(probing) = self.probing.take() {
            assert!(probing.join().unwrap() > 0, "no keep-alive was delivered");
        }
    }
}

/// Memory of a process, MiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// What all flows take of the program's memory.
fn memory_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p4.sock");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/examples/site.json");
    let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_swpipe"))
        .args(["run", "--config", config.to_str().unwrap()])
        .args(["--listen", &format!("unix:{}", socket.display())])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("ready")), "it did not start");
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (session, _inbox) = primary(&Target::Unix(socket.clone())).await;
        let before = resident(process.id());
        let spent = write(&session, flows(false)).await;
        let written = resident(process.id());
        let begun = Instant::now();
        let read = session.read(every_entry()).await.unwrap().len();
        println!(
            "swpipe run: {FLOWS} flows in one write {spent:?}, {read} entries read {:?}; memory {before} -> {written} \
             -> {} MiB",
            begun.elapsed(),
            resident(process.id()),
        );
    });
    process.kill().unwrap();
    process.wait().unwrap();
}

fn rules_write(criterion: &mut Criterion) {
    memory_of_the_program();
    for (spread, one_priority) in [("", false), (" of one priority", true)] {
        let bench = Bench::new();
        let all = bench.runtime.block_on(write(&bench.session, flows(one_priority)));
        println!("{FLOWS} flows{spread} in one write: {all:?}");
        let mut group = criterion.benchmark_group(format!("beside {FLOWS} flows{spread}"));
        group.sample_size(20);
        for (name, priority) in PRIORITIES {
            for (at, kind) in ["insert", "modify", "delete"].into_iter().enumerate() {
                group.bench_function(format!("{kind} at {name}"), |bencher| {
                    bencher.iter_custom(|rounds| (0..rounds).map(|_| bench.round(priority)[at]).sum());
                });
            }
        }
        group.sample_size(10);
        group.bench_function("read all", |bencher| {
            bencher.iter(|| bench.runtime.block_on(bench.session.read(every_entry())).unwrap().len());
        });
        group.finish();
        println!("slowest write of 900 while all is read: {:?}", bench.slowest_during_reads());
    }
}

criterion_group!(benches, rules_write);
criterion_main!(benches);
