//! The whole pipeline without I/O: parse, rules, hash, bucket, state, header, hand-over to a sender, counters; batches of
//! 32, one worker but where two are named. Elements are frames, so criterion prints frames per second.
//!
//! What is to be reached, ns a frame: 64-byte untagged IPv4/TCP with 8 rules 25, with 100,000 rules of twelve shapes 45,
//! captures of link1 55, every frame a new flow 90; 100,000 rules or 128 pairs less than a quarter slower than ten rules
//! or eight pairs; two workers 1.7 times one. The `copied` ones copy every frame as well, 1500 bytes on average in the
//! captures.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench")]

mod frames;
mod sinks;
mod tables;

use std::hash::{DefaultHasher, Hasher};
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use arc_swap::Cache;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dataplane::{Method, PortId};
use swpipe::batch::Forwarder;
use swpipe::device::Device;
use swpipe::io::{BATCH, Frame, Sender};
use swpipe::tables::Snapshot;
use swpipe::worker::Outlets;

use frames::{LAN, WAN};
use sinks::{Copying, Ring};

/// Frames of one port each.
type Batches<'f> = Vec<(PortId, Vec<Frame<'f>>)>;

/// A worker without I/O.
struct Worker {
    forwarder: Forwarder,
    out: Outlets,
}

impl Worker {
    fn new(device: &Device, sender: fn() -> Box<dyn Sender>) -> Self {
        let out = Outlets::new((0..512).map(|port| (PortId(port), sender())).collect());
        Worker { forwarder: Forwarder::new(device.counters().block()), out }
    }

    /// One pass over all frames.
    fn pass(
        &mut self,
        batches: &Batches<'_>,
        tables: &mut Cache<&arc_swap::ArcSwap<Snapshot>, Arc<Snapshot>>,
    ) {
        for (port, frames) in batches {
            let tables: &Snapshot = tables.load();
            self.forwarder.forward(tables, *port, black_box(frames), &mut self.out);
            self.out.flush();
        }
    }
}

fn in_batches(port: PortId, frames: &[Vec<u8>]) -> Batches<'_> {
    frames.chunks(BATCH).map(|chunk| (port, chunk.iter().map(|bytes| Frame { bytes }).collect())).collect()
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, device: &Device, batches: &Batches<'_>) {
    measure_into(group, name, device, batches, Ring::boxed);
}

fn measure_into(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    device: &Device,
    batches: &Batches<'_>,
    sender: fn() -> Box<dyn Sender>,
) {
    let frames: usize = batches.iter().map(|(_, frames)| frames.len()).sum();
    group.throughput(Throughput::Elements(frames as u64));
    let mut worker = Worker::new(device, sender);
    let mut tables = Cache::new(device.snapshot());
    group.bench_function(name, |bencher| bencher.iter(|| worker.pass(batches, &mut tables)));
}

/// The example site with eight flows.
fn pipeline(criterion: &mut Criterion) {
    let small = frames::small();
    let (from_lan, from_wan) = (frames::captured("lan"), frames::captured("wan"));
    let captures = [in_batches(LAN, &from_lan), in_batches(WAN, &from_wan)].concat();
    let device = tables::of_eight_flows(Method::Layer3);
    let mut group = criterion.benchmark_group("pipeline");
    for (name, batches) in [("64-byte, 8 rules", in_batches(LAN, &small)), ("link1 captures", captures)] {
        measure(&mut group, name, &device, &batches);
        measure_into(&mut group, &format!("{name}, copied"), &device, &batches, Copying::boxed);
    }
    group.finish();
}

fn encapsulations(criterion: &mut Criterion) {
    let device = tables::of_eight_flows(Method::Layer3);
    let mut group = criterion.benchmark_group("encapsulation");
    for (name, frames) in frames::encapsulated() {
        measure(&mut group, name, &device, &in_batches(LAN, &frames));
    }
    group.finish();
}

fn methods(criterion: &mut Criterion) {
    let small = frames::small();
    let six = frames::six();
    let mut group = criterion.benchmark_group("method");
    for method in Method::ALL {
        let device = tables::of_eight_flows(method);
        measure(&mut group, &format!("{method}, IPv4"), &device, &in_batches(LAN, &small));
        measure(&mut group, &format!("{method}, IPv6"), &device, &in_batches(LAN, &six));
    }
    group.finish();
}

/// Rules of twelve shapes, half of the sessions matching one; then with every frame of a session of its own.
fn rules(criterion: &mut Criterion) {
    let small = frames::small();
    let batches = in_batches(LAN, &small);
    let memory = frames::sessions(1 << 20);
    let cold: Batches<'_> = memory
        .chunks(BATCH * frames::SLOT)
        .map(|chunk| {
            let frames = chunk.chunks(frames::SLOT).map(|slot| Frame { bytes: &slot[..60] });
            (LAN, frames.collect())
        })
        .collect();
    let mut group = criterion.benchmark_group("rules");
    for count in [0, 10, 1_000, 100_000] {
        let device = tables::of_shapes(count);
        measure(&mut group, &count.to_string(), &device, &batches);
    }
    group.sample_size(20);
    for count in [8, 1_000, 100_000] {
        let device = tables::of_shapes(count);
        measure(&mut group, &format!("{count}, each frame a new flow"), &device, &cold);
    }
    group.finish();
}

fn pairs(criterion: &mut Criterion) {
    let small = frames::small();
    let mut group = criterion.benchmark_group("pairs");
    for count in [1, 8, 80, 128] {
        let device = tables::of_pairs(count);
        measure(&mut group, &count.to_string(), &device, &in_batches(tables::LAN_OF_PAIRS, &small));
    }
    group.finish();
}

/// Workers side by side, each with frames of its own: the time that all take for the frames of all.
fn workers(criterion: &mut Criterion) {
    let small = frames::small();
    let device = tables::of_eight_flows(Method::Layer3);
    let mut group = criterion.benchmark_group("workers");
    for count in [1, 2] {
        group.throughput(Throughput::Elements((small.len() * count) as u64));
        group.bench_function(count.to_string(), |bencher| {
            bencher.iter_custom(|rounds| side_by_side(&device, &small, count, rounds));
        });
    }
    group.finish();
}

fn side_by_side(device: &Device, frames: &[Vec<u8>], workers: usize, rounds: u64) -> Duration {
    let (ready, go) = (Barrier::new(workers + 1), Barrier::new(workers + 1));
    let run = || {
        let frames = frames.to_vec();
        let batches = in_batches(LAN, &frames);
        let mut worker = Worker::new(device, Ring::boxed);
        let mut tables = Cache::new(device.snapshot());
        worker.pass(&batches, &mut tables);
        ready.wait();
        go.wait();
        (0..rounds).for_each(|_| worker.pass(&batches, &mut tables));
        ready.wait();
    };
    std::thread::scope(|scope| {
        (0..workers).for_each(|_| drop(scope.spawn(run)));
        ready.wait();
        let begun = Instant::now();
        go.wait();
        ready.wait();
        begun.elapsed()
    })
}

/// Work that is none of ours, by which `make bench-check` tells a slow machine from slow code.
fn yardstick(criterion: &mut Criterion) {
    let bytes: Vec<u8> = (0..64 << 10).map(|at: u32| (at * 7) as u8).collect();
    let mut group = criterion.benchmark_group("yardstick");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("SipHash of the standard library", |bencher| {
        bencher.iter(|| {
            let mut hasher = DefaultHasher::new();
            hasher.write(black_box(&bytes));
            hasher.finish()
        });
    });
    group.finish();
}

criterion_group!(benches, yardstick, pipeline, encapsulations, methods, rules, pairs, workers);
criterion_main!(benches);
