//! The target over P4Runtime with BMv2's `simple_switch_grpc` behind it, where that is on PATH.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use controller::difference::{Entries, by_place, difference};
use controller::target::{P4rt, Program, Standing, Target, TargetError};
use dataplane::entry::Update;
use dataplane::schema::counters;
use dataplane::tables::{PairForwarding, PairStateEntry, SteeringEntry};
use dataplane::target::BMV2;
use dataplane::{PairId, SteeringMode};
use site::{Condition, Ids, Site};
use swpipe::counters::Count;

const SITE: &str = include_str!("../../configs/examples/site.json");

/// A running switch without ports; it is killed when dropped.
struct Switch {
    child: Child,
    address: String,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

impl Switch {
    /// `None`, and a word about it, where there is no such program.
    fn start() -> Option<Self> {
        let address = format!("127.0.0.1:{}", free_port());
        let thrift = free_port().to_string();
        let child = Command::new("simple_switch_grpc")
            .args(["--no-p4", "--device-id", "1", "--thrift-port", &thrift])
            .args(["--", "--grpc-server-addr", &address, "--cpu-port", "510"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Switch { child, address }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED, NOTHING WAS TESTED: simple_switch_grpc is not on PATH");
                None
            }
            Err(error) => panic!("simple_switch_grpc: {error}"),
        }
    }

    /// A controller's target, once it is primary.
    async fn connect(&self, election_id: u128) -> P4rt {
        let address = format!("grpc://{}", self.address).parse().unwrap();
        let program = Program::of(&BMV2, None).unwrap();
        let (target, _packets) = P4rt::start(address, self.address.clone(), 1, election_id, program).unwrap();
        let mut standing = target.standing();
        let primary = standing.wait_for(|standing| matches!(standing, Standing::Primary(_)));
        tokio::time::timeout(Duration::from_secs(20), primary).await.unwrap().unwrap();
        target
    }
}

fn wanted() -> Entries {
    let site = Site::from_json(SITE).unwrap();
    let ids = Ids::allocate(&site, &Ids::default());
    by_place(site::desired(&site, &ids, &Condition::with_up(&site, |_| true)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_programmed_and_found_again_with_its_names() {
    let Some(switch) = Switch::start() else { return };
    let wanted = wanted();
    let first = switch.connect(1).await;
    assert!(first.prepare().await.unwrap());
    let empty = by_place(first.entries().await.unwrap());
    first.write(difference(&empty, &wanted)).await.unwrap();
    drop(first);

    let second = switch.connect(2).await;
    assert!(!second.prepare().await.unwrap(), "it runs our pipeline");
    let found = by_place(second.entries().await.unwrap());
    assert_eq!(found, wanted);
    let rules = second.rule_counters().await.unwrap();
    let flows = wanted.values().filter(|entry| entry.priority > 0).count();
    assert_eq!(rules.len(), flows);
    assert!(rules.iter().all(|(entry, count)| wanted[&entry.place()] == *entry && count.packets == 0));
    let cells = counters::ALL.iter().flat_map(|counter| [(counter.id, 0), (counter.id, counter.size - 1)]);
    let cells: Vec<_> = cells.collect();
    assert_eq!(second.counters(cells.clone()).await.unwrap(), vec![Count::default(); cells.len()]);

    second.write(difference(&found, &Entries::new())).await.unwrap();
    let left = by_place(second.entries().await.unwrap());
    assert!(left.values().all(|entry| entry.is_default), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_refuses_is_named_and_the_rest_is_done() {
    let Some(switch) = Switch::start() else { return };
    let target = switch.connect(1).await;
    target.prepare().await.unwrap();
    let state = |pair, forwarding| PairStateEntry { pair: PairId(pair), forwarding }.entry();
    let steering = SteeringEntry { mode: SteeringMode::Dot1q { tpid: 0x8100, base_vid: 4000 } }.entry();
    let mut missing = state(2, PairForwarding::Up);
    missing.metadata = b"nobody".to_vec();
    let updates = vec![
        Update::Insert(state(1, PairForwarding::Drop)),
        Update::Modify(missing),
        Update::Modify(steering.clone()),
    ];
    let error = target.write(updates).await.unwrap_err();
    assert!(matches!(error, TargetError::Partly { .. }), "{error:?}");
    assert!(error.to_string().contains("pair_state nobody"), "{error}");
    let found = by_place(target.entries().await.unwrap());
    assert_eq!(found, by_place(vec![state(1, PairForwarding::Drop), steering]));
}
