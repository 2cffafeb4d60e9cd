//! The sink: an XDP program at the far end of every cable, which counts the generator's frames by interface and
//! takes the time of those that bear a stamp. What it counts it drops, or hands on as an appliance would.

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use xdp::Operation::{And, Multiply, ShiftLeft, ShiftRight, Subtract};
use xdp::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use xdp::{
    Action, Assembler, Attachment, Condition, DeviceMap, Mode, PerCpuArray, Program, Width, WordArray,
    context, helper,
};

use super::frames::{self, MARK_AT, SEEN, STAMP_AT};
use super::latency::Latency;
use crate::error::{Error, Result};

/// Interfaces are counted by index; namespaces of their own keep these small.
const INTERFACES: u32 = 1024;
/// Entry of the counters for frames that are not the generator's.
const OTHERS: u32 = 0;
/// Entry for frames of an earlier load: index 1 is the loopback interface's.
const LATE: u32 = 1;
/// Stamps that are kept of each core; then the oldest go.
const SAMPLES: usize = 1 << 15;
/// Cores that have a place for samples; others share theirs.
const CORES: usize = 4;
/// Words of a core: how many were taken, and the samples.
const WORDS: usize = 1 + SAMPLES;
/// Without a frame for so long, none is on the way any more.
const QUIET: Duration = Duration::from_millis(200);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(3);

/// What becomes of a frame that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Drop,
    HandOn,
}

/// Counters, samples and the programs that fill them.
#[derive(Debug)]
pub struct Sink {
    drop: Program,
    hand_on: Program,
    frames: PerCpuArray,
    bytes: PerCpuArray,
    samples: WordArray,
    /// The mark of the frames that count.
    mark: WordArray,
    /// How often that was set.
    loads: AtomicU32,
    ways: DeviceMap,
}

impl Sink {
    /// Loads the programs, which are at no interface yet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn load() -> Result<Sink> {
        let frames = PerCpuArray::new(INTERFACES)?;
        let bytes = PerCpuArray::new(INTERFACES)?;
        let samples = WordArray::new((CORES * WORDS) as u32)?;
        let mark = WordArray::new(1)?;
        let ways = DeviceMap::new(INTERFACES)?;
        let maps = Maps { frames: &frames, bytes: &bytes, samples: &samples, mark: &mark, ways: &ways };
        let drop = Program::load("sink", &program(Then::Drop, &maps)?)?;
        let hand_on = Program::load("appliance", &program(Then::HandOn, &maps)?)?;
        Ok(Sink { drop, hand_on, frames, bytes, samples, mark, loads: AtomicU32::new(0), ways })
    }

    /// Counts and drops what an interface of the calling thread's namespace receives.
    ///
    /// # Errors
    /// The kernel refuses, or the interface's index is too great.
    pub fn end(&self, interface: NonZeroU32) -> Result<Attachment> {
        countable(interface)?;
        Ok(Attachment::to(&self.drop, interface, Mode::Native)?)
    }

    /// Counts what an interface receives and sends it by another one, unchanged.
    ///
    /// # Errors
    /// As [`Sink::end`].
    pub fn pass_on(&self, interface: NonZeroU32, other: NonZeroU32) -> Result<Attachment> {
        countable(interface)?;
        self.ways.put(interface.get(), other.get())?;
        Ok(Attachment::to(&self.hand_on, interface, Mode::Native)?)
    }

    /// Counts only the frames of the load with the number that this gives; all before are late from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn next_load(&self) -> Result<u32> {
        let number = self.loads.fetch_add(1, Relaxed) + 1;
        self.mark.set(&[frames::mark(number)])?;
        Ok(number)
    }

    /// The generator's frames that these interfaces received.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn frames(&self, interfaces: &[NonZeroU32]) -> Result<u64> {
        Ok(self.each(interfaces)?.into_iter().sum())
    }

    /// The same, for each interface.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn each(&self, interfaces: &[NonZeroU32]) -> Result<Vec<u64>> {
        interfaces.iter().map(|interface| Ok(self.frames.sum(interface.get())?)).collect()
    }

    /// Bytes in memory of these frames, without a tag.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn bytes(&self, interfaces: &[NonZeroU32]) -> Result<u64> {
        interfaces.iter().map(|interface| Ok(self.bytes.sum(interface.get())?)).sum()
    }

    /// Frames that were not the generator's, or not as it made them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn others(&self) -> Result<u64> {
        Ok(self.frames.sum(OTHERS)?)
    }

    /// Waits until so many frames have arrived at these interfaces, or nothing arrives any more; the frames that
    /// have arrived.
    ///
    /// # Errors
    /// [`Error::Deadline`], or the kernel refuses.
    pub fn settle(&self, interfaces: &[NonZeroU32], wanted: u64) -> Result<u64> {
        let began = Instant::now();
        let mut last = (self.frames(interfaces)?, Instant::now());
        while last.0 < wanted && last.1.elapsed() < QUIET {
            if began.elapsed() > PATIENCE {
                return Err(Error::Deadline {
                    what: "frames to stop arriving".into(),
                    seconds: PATIENCE.as_secs_f64(),
                    seen: format!("{} frames", last.0),
                });
            }
            std::thread::sleep(PAUSE);
            let now = self.frames(interfaces)?;
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(last.0)
    }

    /// Forgets all samples.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn forget_samples(&self) -> Result<()> {
        Ok(self.samples.set(&vec![0; CORES * WORDS])?)
    }

    /// The times between stamp and arrival since samples were forgotten.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn latency(&self) -> Result<Latency> {
        let words = self.samples.get()?;
        let taken = words.chunks_exact(WORDS).flat_map(|core| {
            let kept = (core[0] as usize).min(SAMPLES);
            core[1..=kept].iter().copied()
        });
        Ok(Latency::of(taken.collect()))
    }
}

fn countable(interface: NonZeroU32) -> Result<()> {
    if interface.get() < INTERFACES {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "interface index {interface} is not below {INTERFACES}, so it has no counter"
    )))
}

/// What the programs look into.
struct Maps<'a> {
    frames: &'a PerCpuArray,
    bytes: &'a PerCpuArray,
    samples: &'a WordArray,
    mark: &'a WordArray,
    ways: &'a DeviceMap,
}

/// R6 is the context, R7 the frame without a tag, R8 its end, R9 the interface's index.
fn program(then: Then, maps: &Maps<'_>) -> Result<Vec<xdp::Instruction>> {
    let Maps { frames, bytes, samples, mark, ways } = maps;
    let mut code = Assembler::new();
    let (other, untagged, done) = (code.label(), code.label(), code.label());
    code.mov(R6, R1).load(Width::Word, R9, R6, context::INGRESS_INTERFACE);
    code.load(Width::Word, R7, R6, context::DATA).load(Width::Word, R8, R6, context::DATA_END);
    code.mov(R1, R7).add(R1, 14).jump_if(Condition::Greater, R1, R8, other);
    code.load(Width::Half, R1, R7, 12);
    code.jump_if(Condition::Equal, R1, i32::from(0x0800_u16.to_be()), untagged).add(R7, 4).place(untagged);
    code.mov(R1, R7).add(R1, SEEN).jump_if(Condition::Greater, R1, R8, other);
    code.load(Width::Double, R1, R7, MARK_AT).map_value(R2, mark.as_fd(), 0).load(Width::Double, R2, R2, 0);
    let (counted, late) = (code.label(), code.label());
    code.jump_if(Condition::Equal, R1, R2, counted).alu(ShiftRight, R1, 32).alu(ShiftRight, R2, 32);
    code.jump_if(Condition::Equal, R1, R2, late).jump(other).place(counted);
    code.alu(Subtract, R8, R7).load(Width::Double, R7, R7, STAMP_AT);
    // The frame is not needed any more: R7 is its stamp now, R8 its length.
    for (map, amount) in [(frames, None), (bytes, Some(R8))] {
        let missing = code.label();
        code.store(Width::Word, R10, -4, R9)
            .map(R1, map.as_fd())
            .mov(R2, R10)
            .add(R2, -4)
            .call(helper::MAP_LOOKUP);
        code.jump_if(Condition::Equal, R0, 0, missing).load(Width::Double, R1, R0, 0);
        match amount {
            Some(amount) => code.add(R1, amount),
            None => code.add(R1, 1),
        };
        code.store(Width::Double, R0, 0, R1).place(missing);
    }
    code.jump_if(Condition::Equal, R7, 0, done);
    code.call(helper::KTIME_GET_NS).alu(Subtract, R0, R7).mov(R7, R0);
    code.call(helper::PROCESSOR_ID).alu(And, R0, CORES as i32 - 1).alu(Multiply, R0, 8 * WORDS as i32);
    code.map_value(R1, samples.as_fd(), 0).add(R1, R0);
    code.load(Width::Double, R2, R1, 0).mov(R3, R2).add(R3, 1).store(Width::Double, R1, 0, R3);
    code.alu(And, R2, SAMPLES as i32 - 1).alu(ShiftLeft, R2, 3).add(R1, R2).store(Width::Double, R1, 8, R7);
    code.place(done);
    match then {
        Then::Drop => code.mov(R0, Action::Drop as i32),
        Then::HandOn => {
            code.map(R1, ways.as_fd()).mov(R2, R9).mov(R3, Action::Drop as i32).call(helper::REDIRECT_MAP)
        }
    };
    let (missing, aside) = (code.label(), code.label());
    code.exit().place(late).mov(R1, LATE as i32).jump(aside).place(other).mov(R1, OTHERS as i32);
    code.place(aside).store(Width::Word, R10, -4, R1);
    code.map(R1, frames.as_fd()).mov(R2, R10).add(R2, -4).call(helper::MAP_LOOKUP);
    code.jump_if(Condition::Equal, R0, 0, missing).load(Width::Double, R1, R0, 0).add(R1, 1);
    code.store(Width::Double, R0, 0, R1).place(missing).mov(R0, Action::Drop as i32).exit();
    Ok(code.finish()?)
}
