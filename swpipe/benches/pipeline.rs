//! The whole pipeline without I/O, one core, batches of 32: parse, rules, hash, bucket, state, header, hand-over
//! to a sender, counters. Elements are frames, so criterion prints frames per second.
//!
//! Targets: 64-byte untagged IPv4/TCP with 8 rules at most 40 ns a frame, link1 captures at most 90 ns. The
//! `copied` ones copy every frame as well, 1500 bytes on average in the captures.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use arc_swap::Cache;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dataplane::PortId;
use dataplane::entry::Update;
use serde_json::json;
use site::{Condition, Ids, Site};
use swpipe::batch::Forwarder;
use swpipe::device::{Atomicity, Device};
use swpipe::io::{BATCH, Edit, Frame, Sender};
use swpipe::tables::Snapshot;
use swpipe::worker::Outlets;

const SLOTS: usize = 1024;

/// Takes frames as a zero-copy transmit ring does: where the rest of the frame is, and its new head. This is
/// the pipeline without I/O.
struct Ring {
    slots: Box<[(usize, usize, [u8; 16])]>,
    next: usize,
}

impl Ring {
    fn boxed() -> Box<dyn Sender> {
        Box::new(Ring { slots: vec![(0, 0, [0; 16]); SLOTS].into(), next: 0 })
    }
}

impl Sender for Ring {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        let Some((macs, rest)) = frame.split_first_chunk::<12>() else { return false };
        let (address, length, head) = &mut self.slots[self.next % SLOTS];
        self.next += 1;
        head[..12].copy_from_slice(macs);
        let rest = match edit {
            Edit::Keep => rest,
            Edit::Push(tag) => {
                head[12..].copy_from_slice(&tag);
                rest
            }
            Edit::Pop => &rest[4..],
        };
        (*address, *length) = (rest.as_ptr().addr(), rest.len());
        true
    }

    fn flush(&mut self) {
        black_box(&self.slots);
    }
}

/// Memory of a [`Copying`] sink.
const MEMORY: usize = 256 << 10;

/// Copies frames, as they leave, one behind the other into memory: what a mapped transmit ring costs on top.
struct Copying {
    memory: Box<[u8]>,
    at: usize,
}

impl Copying {
    fn boxed() -> Box<dyn Sender> {
        Box::new(Copying { memory: vec![0; MEMORY].into(), at: 0 })
    }

    fn put(&mut self, bytes: &[u8]) {
        self.memory[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

impl Sender for Copying {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        let Some((macs, rest)) = frame.split_first_chunk::<12>() else { return false };
        if self.at + frame.len() + 4 > MEMORY {
            self.at = 0;
        }
        self.put(macs);
        match edit {
            Edit::Keep => self.put(rest),
            Edit::Push(tag) => {
                self.put(&tag);
                self.put(rest);
            }
            Edit::Pop => self.put(&rest[4..]),
        }
        true
    }

    fn flush(&mut self) {
        black_box(&self.memory);
    }
}

/// The example site with eight flows, the last of which balances.
fn site() -> Site {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../configs/examples/site.json")).unwrap();
    let mut tree: serde_json::Value = serde_json::from_str(&text).unwrap();
    let flows = tree["sluice:ecofilter-balancer"]["flow"].as_array_mut().unwrap();
    flows.push(json!({"name": "dns", "priority": 170, "match": {"ip-proto": 17, "dst-port": "53"}, "action": "bypass"}));
    flows.push(
        json!({"name": "own", "priority": 160, "match": {"src-ip": "198.51.100.0/24"}, "action": "bypass"}),
    );
    flows.push(json!({"name": "no-smtp", "priority": 150, "match": {"ip-proto": 6, "dst-port": "25"}, "action": "drop"}));
    assert_eq!(flows.len(), 8);
    Site::from_json(&tree.to_string()).unwrap()
}

struct Bench {
    device: Device,
    forwarder: Forwarder,
    out: Outlets,
}

impl Bench {
    fn new(sender: fn() -> Box<dyn Sender>) -> Self {
        let site = site();
        let device = Device::default();
        let ids = Ids::allocate(&site, &Ids::default());
        let entries = site::desired(&site, &ids, &Condition::with_up(&site, |_| true));
        let updates: Vec<Update> = entries
            .into_iter()
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .collect();
        device.write(&updates, Atomicity::AllOrNothing).unwrap();
        let out = Outlets::new(site.ports.values().map(|port| (port.id, sender())).collect());
        let forwarder = Forwarder::new(device.counters().block());
        Bench { device, forwarder, out }
    }

    /// One pass over all frames, in batches of one port each.
    fn pass(
        &mut self,
        batches: &[(PortId, Vec<Frame<'_>>)],
        tables: &mut Cache<&arc_swap::ArcSwap<Snapshot>, Arc<Snapshot>>,
    ) {
        for (port, frames) in batches {
            let tables: &Snapshot = tables.load();
            self.forwarder.forward(tables, *port, black_box(frames), &mut self.out);
            self.out.flush();
        }
    }
}

fn in_batches(port: PortId, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<Frame<'_>>)> {
    frames.chunks(BATCH).map(|chunk| (port, chunk.iter().map(|bytes| Frame { bytes }).collect())).collect()
}

/// 64 bytes on the wire, 60 without FCS, each of another session.
fn small_frames() -> Vec<Vec<u8>> {
    (0..8192_u32)
        .map(|session| {
            let mut frame = vec![0; 60];
            frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
            frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
            frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
            frame[22..24].copy_from_slice(&[64, 6]);
            frame[26..30].copy_from_slice(&(0x0a00_0000 + session * 7).to_be_bytes());
            frame[30..34].copy_from_slice(&(0xcb00_7100 + session % 251).to_be_bytes());
            frame[34..36].copy_from_slice(&(1024 + session as u16).to_be_bytes());
            frame[36..38].copy_from_slice(&443_u16.to_be_bytes());
            frame[46] = 0x50;
            frame
        })
        .collect()
}

fn captured(side: &str) -> Vec<Vec<u8>> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let frames = swpipe::capture::read(&vectors.join(format!("link1-{side}.pcap"))).unwrap();
    frames.into_iter().map(|frame| frame.bytes).collect()
}

fn pipeline(criterion: &mut Criterion) {
    let (lan, wan) = (PortId(4 * 4 + 2), PortId(4 * 4 + 1));
    let small = small_frames();
    let (from_lan, from_wan) = (captured("lan"), captured("wan"));
    let captures = [in_batches(lan, &from_lan), in_batches(wan, &from_wan)].concat();
    let mut group = criterion.benchmark_group("pipeline");
    for (name, batches) in [("64-byte, 8 rules", in_batches(lan, &small)), ("link1 captures", captures)] {
        let frames: usize = batches.iter().map(|(_, frames)| frames.len()).sum();
        group.throughput(Throughput::Elements(frames as u64));
        for (suffix, sender) in [("", Ring::boxed as fn() -> _), (", copied", Copying::boxed)] {
            let mut bench = Bench::new(sender);
            let device = std::mem::take(&mut bench.device);
            let mut tables = Cache::new(device.snapshot());
            let id = format!("{name}{suffix}");
            group.bench_function(id, |bencher| bencher.iter(|| bench.pass(&batches, &mut tables)));
        }
    }
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
