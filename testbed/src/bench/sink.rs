//! The sink: an XDP program at the far end of every cable, which counts the generator's frames by interface and
//! takes the time of those that bear a stamp. What it counts it drops, or hands on as an appliance would.

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use xdp::Operation::{And, Multiply, ShiftLeft, Subtract};
use xdp::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use xdp::{
    Action, Assembler, Attachment, Condition, DeviceMap, Mode, PerCpuArray, Program, Width, WordArray,
    context, helper,
};

use super::frames::{MAGIC, MAGIC_AT, SEEN, STAMP_AT};
use super::latency::Latency;
use crate::error::{Error, Result};

/// Interfaces are counted by index; namespaces of their own keep these small.
const INTERFACES: u32 = 1024;
/// Entry of the counters for frames that are not the generator's.
const OTHERS: u32 = 0;
/// Stamps that are kept of each core; then the oldest go.
const SAMPLES: usize = 1 << 15;
/// Cores that have a place for samples; others share theirs.
const CORES: usize = 4;
/// Words of a core: how many were taken, and the samples.
const WORDS: usize = 1 + SAMPLES;
/// Without a frame for so long, none is on the way any more.
const QUIET: Duration = Duration::from_millis(40);
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
        let ways = DeviceMap::new(INTERFACES)?;
        let program = |name, then| -> Result<Program> {
            let code = program(then, &frames, &bytes, &samples, &ways)?;
            Ok(Program::load(name, &code)?)
        };
        let (drop, hand_on) = (program("sink", Then::Drop)?, program("appliance", Then::HandOn)?);
        Ok(Sink { drop, hand_on, frames, bytes, samples, ways })
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

    /// Waits until nothing arrives any more; the frames that have arrived.
    ///
    /// # Errors
    /// [`Error::Deadline`], or the kernel refuses.
    pub fn settle(&self, interfaces: &[NonZeroU32]) -> Result<u64> {
        let began = Instant::now();
        let mut last = (self.frames(interfaces)?, Instant::now());
        loop {
            std::thread::sleep(QUIET / 4);
            let now = self.frames(interfaces)?;
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() >= QUIET {
                return Ok(now);
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::Deadline {
                    what: "frames to stop arriving".into(),
                    seconds: PATIENCE.as_secs_f64(),
                    seen: format!("{now} frames"),
                });
            }
        }
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

/// R6 is the context, R7 the frame without a tag, R8 its end, R9 the interface's index.
fn program(
    then: Then,
    frames: &PerCpuArray,
    bytes: &PerCpuArray,
    samples: &WordArray,
    ways: &DeviceMap,
) -> Result<Vec<xdp::Instruction>> {
    let mut code = Assembler::new();
    let (other, untagged, done) = (code.label(), code.label(), code.label());
    code.mov(R6, R1).load(Width::Word, R9, R6, context::INGRESS_INTERFACE);
    code.load(Width::Word, R7, R6, context::DATA).load(Width::Word, R8, R6, context::DATA_END);
    code.mov(R1, R7).add(R1, 14).jump_if(Condition::Greater, R1, R8, other);
    code.load(Width::Half, R1, R7, 12);
    code.jump_if(Condition::Equal, R1, i32::from(0x0800_u16.to_be()), untagged).add(R7, 4).place(untagged);
    code.mov(R1, R7).add(R1, SEEN).jump_if(Condition::Greater, R1, R8, other);
    code.load(Width::Double, R1, R7, MAGIC_AT).mov64(R2, MAGIC).jump_if(Condition::NotEqual, R1, R2, other);
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
    let missing = code.label();
    code.exit().place(other).mov(R1, OTHERS as i32).store(Width::Word, R10, -4, R1);
    code.map(R1, frames.as_fd()).mov(R2, R10).add(R2, -4).call(helper::MAP_LOOKUP);
    code.jump_if(Condition::Equal, R0, 0, missing).load(Width::Double, R1, R0, 0).add(R1, 1);
    code.store(Width::Double, R0, 0, R1).place(missing).mov(R0, Action::Drop as i32).exit();
    Ok(code.finish()?)
}
