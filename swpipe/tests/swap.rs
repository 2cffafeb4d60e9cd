//! Tables are swapped whole: while a controller goes back and forth between two configurations under load, no
//! frame sees a part of each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use dataplane::entry::{Entry, Update};
use dataplane::tables::{
    BucketEntry, BucketForwarding, Family, LinkEntry, LinkForwarding, PairForwarding, PairPortEntry,
    PairStateEntry, PortEntry, PortRole, RuleAction, RuleEntry, RuleMatch, SteeringEntry, UnitEntry,
    UnitMode,
};
use dataplane::{BucketIndex, Core, LinkIndex, Method, PairId, PortId, Side, SteeringMode, UnitId};
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Options, PipelineAction, Session, Target};
use p4runtime::entry::{p4info, update_to_wire};
use p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use swpipe::device::Device;
use swpipe::io::{BATCH, Edit, Frame, Receiver, Sender};
use swpipe::server::Server;
use swpipe::worker::{Inlet, Outlets, Worker};

const LAN: PortId = PortId(1);
const BUCKETS: u16 = 1024;

/// What tells one configuration from the other: every table on a frame's way has another value.
struct Variant {
    unit: UnitId,
    pair: PairId,
    core: Core,
    out: PortId,
    tpid: u16,
}

const A: Variant = Variant { unit: UnitId(1), pair: PairId(1), core: Core(1), out: PortId(11), tpid: 0x88b6 };
const B: Variant = Variant { unit: UnitId(2), pair: PairId(2), core: Core(2), out: PortId(12), tpid: 0x88b7 };

impl Variant {
    fn entries(&self) -> Vec<Entry> {
        let rule = RuleEntry {
            family: Family::V4,
            priority: 1,
            matches: RuleMatch::default(),
            action: RuleAction::ToUnit(self.unit),
        };
        let mode = UnitMode::Balance { method: Method::Layer3, bucket_mask: BUCKETS - 1, primary: false };
        let mut entries = vec![
            SteeringEntry { mode: SteeringMode::Native { tpid: self.tpid } }.entry(),
            rule.entry(),
            UnitEntry { unit: self.unit, mode }.entry(),
            PairStateEntry { pair: self.pair, forwarding: PairForwarding::Up }.entry(),
            PairPortEntry { pair: self.pair, side: Side::Lan, port: self.out }.entry(),
        ];
        entries.extend((0..BUCKETS).map(|bucket| {
            let bucket = BucketIndex(bucket);
            let forwarding = BucketForwarding::Pair { pair: self.pair, core: self.core };
            BucketEntry { unit: self.unit, bucket, forwarding }.entry()
        }));
        entries
    }

    fn edit(&self) -> Edit {
        let mode = SteeringMode::Native { tpid: self.tpid };
        Edit::Push(mode.encode(self.core, LinkIndex(0)))
    }
}

/// From one configuration to the other, in one batch: rule and steering header change, the rest comes and goes.
fn swap(from: &Variant, to: &Variant) -> Vec<Update> {
    let changed = |entry: &Entry| entry.is_default || entry.priority == 1;
    let (modified, inserted): (Vec<Entry>, Vec<Entry>) = to.entries().into_iter().partition(changed);
    let deleted = from.entries().into_iter().filter(|entry| !changed(entry)).map(Update::Delete);
    deleted
        .chain(inserted.into_iter().map(Update::Insert))
        .chain(modified.into_iter().map(Update::Modify))
        .collect()
}

/// Endless frames of many sessions.
struct Source(Vec<Vec<u8>>, usize);

impl Receiver for Source {
    fn receive(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        self.1 = (self.1 + BATCH) % self.0.len();
        let frames: Vec<Frame<'_>> =
            self.0[self.1..self.1 + BATCH].iter().map(|bytes| Frame { bytes }).collect();
        take(&frames);
        BATCH
    }

    fn hold(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn release(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn missed(&mut self) -> u64 {
        0
    }
}

#[derive(Default)]
struct Seen {
    a: AtomicU64,
    b: AtomicU64,
    mixed: AtomicU64,
}

/// Sees which configuration a frame was sent under.
struct Watch(PortId, Arc<Seen>);

impl Sender for Watch {
    fn send(&mut self, _: &[u8], edit: Edit) -> bool {
        let seen = match (self.0, edit) {
            (port, edit) if port == A.out && edit == A.edit() => &self.1.a,
            (port, edit) if port == B.out && edit == B.edit() => &self.1.b,
            _ => &self.1.mixed,
        };
        seen.fetch_add(1, Relaxed);
        true
    }

    fn flush(&mut self) {}
}

fn frames() -> Vec<Vec<u8>> {
    (0..4096_u16)
        .map(|session| {
            let mut frame = vec![0; 60];
            frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
            frame[22..24].copy_from_slice(&[64, 6]);
            frame[26..28].copy_from_slice(&[10, 0]);
            frame[28..30].copy_from_slice(&session.to_be_bytes());
            frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
            frame
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_frame_sees_half_a_change() {
    let device = Arc::new(Device::default());
    let server = Server::new(Arc::clone(&device), 1, None);
    let target = Target::dial("test", server.connector());
    let options = Options { batch: 10_000, ..Options::new(1, Some(ElectionId(1))) };
    let (session, _inbox) = Session::connect(&target, options).await.unwrap();
    let program = ForwardingPipelineConfig::new(p4info(), vec![], 1);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
    let write = async |updates: Vec<Update>| {
        let wire = updates.iter().map(update_to_wire).collect();
        session.write(wire, Atomicity::DataplaneAtomic).await.unwrap();
    };
    let peer = PortId(2);
    let role = PortRole::Link { link: LinkIndex(0), side: Side::Lan, peer };
    let standing = [
        PortEntry { port: LAN, role }.entry(),
        LinkEntry { link: LinkIndex(0), side: Side::Lan, forwarding: LinkForwarding::Port(LAN) }.entry(),
    ];
    let first = standing.into_iter().chain(A.entries());
    write(
        first
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .collect(),
    )
    .await;

    let seen = Arc::new(Seen::default());
    let senders =
        [A.out, B.out, peer].map(|port| (port, Box::new(Watch(port, Arc::clone(&seen))) as Box<dyn Sender>));
    let receiver = Box::new(Source(frames(), 0));
    let inlet = Inlet { port: LAN, interface: "source".to_owned(), receiver };
    let worker = Worker::new(Arc::clone(&device), vec![inlet], Outlets::new(senders.into())).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || worker.run(&stop)
    });

    for _ in 0..40 {
        write(swap(&A, &B)).await;
        write(swap(&B, &A)).await;
    }
    stop.store(true, Relaxed);
    thread.join().unwrap();
    let (a, b, mixed) = (seen.a.load(Relaxed), seen.b.load(Relaxed), seen.mixed.load(Relaxed));
    assert_eq!(mixed, 0, "of {} frames", a + b + mixed);
    assert!(a > 1000 && b > 1000, "only {a} frames under one configuration and {b} under the other");
}
