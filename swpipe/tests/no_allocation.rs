//! The frame path allocates nothing, whatever the frames, the rules and the processor.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use dataplane::entry::Update;
use dataplane::tables::{Family, RuleAction, RuleEntry, RuleField, RuleMatch};
use dataplane::{PortId, UnitId};
use swpipe::batch::Forwarder;
use swpipe::cpu::Cpu;
use swpipe::device::{Atomicity, Device};
use swpipe::io::{BATCH, Edit, Frame, Sender};
use swpipe::worker::Outlets;

mod site_file;

/// The system's, with a count of this thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it is the system's allocator, and counting does not allocate: the cell is initialised at compile time.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Sink;

impl Sender for Sink {
    fn send(&mut self, frame: &[u8], _: Edit) -> bool {
        // Some ports are full at times.
        !frame.len().is_multiple_of(5)
    }

    fn flush(&mut self) {}
}

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn no_frame_of_any_kind_allocates() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) > 0, "the count counts");
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for file in ["link1-lan.pcap", "link1-wan.pcap"] {
        frames
            .extend(swpipe::capture::read(&vectors.join(file)).unwrap().into_iter().map(|frame| frame.bytes));
    }
    // Cut, and as an appliance sends them back.
    let cut = frames.iter().enumerate().map(|(at, frame)| frame[..frame.len().min(at % 120)].to_vec());
    let steered = frames.iter().map(|frame| [&frame[..12], &[0x88, 0xb6, 3, 0], &frame[12..]].concat());
    let extra: Vec<Vec<u8>> = cut.chain(steered).collect();
    frames.extend(extra);

    for (rules, cpu) in [0, 20, 3_000].into_iter().flat_map(|rules| Cpu::all().map(move |cpu| (rules, cpu))) {
        let device = Device::default();
        let mut updates: Vec<Update> = site_file::example_entries()
            .into_iter()
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .collect();
        updates.extend((0..rules).map(|number: u32| {
            let mut matches = RuleMatch::default();
            matches.set_exact(RuleField::IpVersion, 4, Family::V4);
            matches.set(RuleField::DstIp, u128::from(number) << 8, u128::from(u32::MAX << (number % 20)));
            let action =
                if number.is_multiple_of(2) { RuleAction::CopyToUnit(UnitId(0)) } else { RuleAction::Drop };
            Update::Insert(
                RuleEntry { family: Family::V4, priority: 10_000 + number as i32, matches, action }.entry(),
            )
        }));
        device.write(&updates, Atomicity::AllOrNothing).unwrap();
        let mut out =
            Outlets::new((0..512).map(|port| (PortId(port), Box::new(Sink) as Box<dyn Sender>)).collect());
        let mut forwarder = Forwarder::with_cpu(device.counters().block(), cpu);
        let batch: Vec<Frame<'_>> = frames.iter().map(|bytes| Frame { bytes }).collect();
        let tables = device.snapshot().load_full();
        let allocated = allocations(|| {
            // Link ports, pair ports, one of nobody.
            for (port, frames) in
                (0..64).flat_map(|port| batch.chunks(BATCH).map(move |frames| (port, frames)))
            {
                forwarder.forward(&tables, PortId(port), frames, &mut out);
                out.flush();
            }
        });
        assert_eq!(allocated, 0, "{rules} rules, {cpu:?}");
    }
}
