//! What a P4Runtime client waits for while the pipeline has 100,000 flow rules: all of them in one write, then a
//! write of one rule at the top, in the middle and at the bottom of the priorities, and a read of everything. Each
//! flow is an entry of `rules_v4` and one of `rules_v6`.
//!
//! The client is in the same process, on a connection of its own; keep-alives are handed to it all the while.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

fn flows() -> impl Iterator<Item = Entry> {
    (0..FLOWS).flat_map(|number| flow(number, i32::try_from(number).unwrap_or(0) + 2))
}

/// A server with a controller, and another that receives keep-alives as fast as many pairs send them.
struct Bench {
    runtime: Runtime,
    session: Session,
    _inbox: Inbox,
    stop: Arc<AtomicBool>,
    probing: Option<std::thread::JoinHandle<u64>>,
}

impl Bench {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let server = Server::new(Arc::new(Device::default()), 1, None);
        let deliver = server.deliver();
        let (session, inbox) = runtime.block_on(async {
            let target = Target::dial("bench", server.connector());
            let options = Options {
                batch: 1 << 20,
                batch_bytes: 60 << 20,
                call_deadline: Duration::from_secs(60),
                ..Options::new(1, Some(ElectionId(1)))
            };
            let (session, inbox) = Session::connect(&target, options).await.unwrap();
            let program = ForwardingPipelineConfig::new(p4info(), vec![], 1);
            session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
            (session, inbox)
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
        Bench { runtime, session, _inbox: inbox, stop, probing: Some(probing) }
    }

    fn write(&self, updates: impl Iterator<Item = Update>) -> Duration {
        let wire = updates.map(|update| update_to_wire(&update)).collect();
        let begun = Instant::now();
        self.runtime.block_on(self.session.write(wire, Atomicity::DataplaneAtomic)).unwrap();
        begun.elapsed()
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

/// Memory of this process, MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn rules_write(criterion: &mut Criterion) {
    let bench = Bench::new();
    let before = resident();
    let all = bench.write(flows().map(Update::Insert));
    println!("{FLOWS} flows in one write: {all:?}; memory {before} -> {} MiB", resident());
    let mut group = criterion.benchmark_group("rules_write");
    group.sample_size(20);
    for (name, priority) in [("highest", 1_000_000), ("middle", 50_001), ("lowest", 1)] {
        let one = flow(FLOWS, priority);
        let other = one.clone().map(|entry| Entry { metadata: b"another".to_vec(), ..entry });
        let step = |kind: &'static str| {
            let (bench, one, other) = (&bench, &one, &other);
            move |bencher: &mut criterion::Bencher<'_>| {
                bencher.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        let insert = bench.write(one.iter().cloned().map(Update::Insert));
                        let modify = bench.write(other.iter().cloned().map(Update::Modify));
                        let delete = bench.write(one.iter().cloned().map(Update::Delete));
                        spent += match kind {
                            "insert" => insert,
                            "modify" => modify,
                            _ => delete,
                        };
                    }
                    spent
                });
            }
        };
        for kind in ["insert", "modify", "delete"] {
            group.bench_function(format!("{kind} one of {FLOWS}, {name} priority"), step(kind));
        }
    }
    group.bench_function(format!("read {FLOWS} flows"), |bencher| {
        bencher.iter(|| bench.runtime.block_on(bench.session.read(every_entry())).unwrap().len());
    });
    group.finish();
    println!("memory at the end {} MiB", resident());
}

criterion_group!(benches, rules_write);
criterion_main!(benches);
