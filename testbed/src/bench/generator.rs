//! The generator: an XDP program over live frames, which writes each frame's addresses and hands it to the driver of
//! the cable. No socket and no packet buffer is made, so that it outruns whatever it loads.
//!
//! It paces itself frame by frame: the program looks at the clock and lets a frame fall that is not due yet.

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use xdp::Operation::{And, Modulo, Multiply, ShiftLeft, ShiftRight, Subtract, Xor};
use xdp::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9};
use xdp::{Action, Assembler, Condition, LiveRun, Program, Width, WordArray, context, helper};

use super::frames::{self, DESTINATION, FCS, MARK_AT, SEEN, SOURCE, STAMP_AT, Size};
use super::pin::pin_to;
use crate::error::Result;

/// `bpf_xdp_adjust_tail(context, delta)`.
const ADJUST_TAIL: i32 = 65;
/// Words that the program keeps: frames so far, when the next one is due, frames and bytes sent.
const COUNT: i16 = 0;
const DUE: i16 = 8;
const SENT: i16 = 16;
const BYTES: i16 = 24;
/// Fraction of a nanosecond in due times, as a power of two.
const FRACTION: i32 = 8;
/// Frames that may be made up for at once after a pause of the generator.
const BURST: f64 = 64.0;
/// Frames that the kernel makes before it hands them to the driver, all of them together.
const BATCH: u32 = 64;
/// Frames of one call, made or let fall: some tens of milliseconds.
const CALL: u32 = 1 << 18;

/// What to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Marks its frames, so that late ones of an earlier load are not taken for them.
    pub number: u32,
    /// Sizes.
    pub size: Size,
    /// Frames a second; `None` is as many as the generator can.
    pub rate: Option<f64>,
    /// Every so many frames one bears a time stamp; 0: none does.
    pub stamp_every: u32,
    /// Interfaces to send by, in turn: one or two, of the namespace that the generator runs in.
    pub interfaces: Vec<NonZeroU32>,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Their bytes in memory, without FCS.
    pub bytes: u64,
    /// From the first to the last.
    pub time: Duration,
}

/// The program and what it keeps.
#[derive(Debug)]
pub struct Generator {
    program: Program,
    state: WordArray,
    interface: NonZeroU32,
    template: Vec<u8>,
}

impl Generator {
    /// Loads the program.
    ///
    /// # Errors
    /// No interface to send by, or the kernel refuses.
    pub fn load(load: &Load) -> Result<Generator> {
        let state = WordArray::new(4)?;
        let code = program(load, &state)?;
        let interface = load.interfaces.first().copied().unwrap_or(NonZeroU32::MIN);
        Ok(Generator {
            program: Program::load("generator", &code)?,
            state,
            interface,
            template: vec![0; load.size.longest() as usize],
        })
    }

    /// Frames sent so far.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sent(&self) -> Result<u64> {
        Ok(self.state.get()?[SENT as usize / 8])
    }

    /// The next frame, which is made and does not leave.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn preview(&self) -> Result<Vec<u8>> {
        Ok(self.program.run(&self.template)?.frame)
    }

    /// Sends for a time, on this core. In the network namespace of the calling thread.
    ///
    /// # Errors
    /// An interface is down, or the kernel refuses.
    pub fn run(&self, time: Duration, core: usize) -> Result<Sent> {
        pin_to(core)?;
        let before = self.state.get()?;
        let began = Instant::now();
        while began.elapsed() < time {
            let how = LiveRun { frames: CALL, batch: BATCH, interface: self.interface, queue: 0 };
            self.program.run_live(&self.template, how)?;
        }
        let time = began.elapsed();
        let after = self.state.get()?;
        let since = |at: i16| after[at as usize / 8] - before[at as usize / 8];
        Ok(Sent { frames: since(SENT), bytes: since(BYTES), time })
    }
}

/// R6 is the context, R7 what a frame's length decides and then the frame, R8 the frame's number, R9 the state.
fn program(load: &Load, state: &WordArray) -> Result<Vec<xdp::Instruction>> {
    let mut code = Assembler::new();
    let fall = code.label();
    code.mov(R6, R1).map_value(R9, state.as_fd(), 0);
    if let Some(rate) = load.rate {
        let interval = 1e9 * f64::from(1 << FRACTION) / rate;
        let behind = code.label();
        code.call(helper::KTIME_GET_NS).alu(ShiftLeft, R0, FRACTION);
        code.load(Width::Double, R1, R9, DUE).jump_if(Condition::Greater, R1, R0, fall);
        code.mov64(R3, (interval * BURST) as u64).mov(R2, R0).alu(Subtract, R2, R1);
        code.jump_if(Condition::LessOrEqual, R2, R3, behind).mov(R1, R0).alu(Subtract, R1, R3);
        code.place(behind).mov64(R3, interval.round() as u64).add(R1, R3).store(Width::Double, R9, DUE, R1);
    }
    code.load(Width::Double, R8, R9, COUNT).mov(R1, R8).add(R1, 1).store(Width::Double, R9, COUNT, R1);
    lengths(&mut code, load.size);
    code.load(Width::Word, R1, R6, context::DATA).load(Width::Word, R2, R6, context::DATA_END);
    code.mov(R3, R1).add(R3, SEEN).jump_if(Condition::Greater, R3, R2, fall);
    addresses(&mut code);
    // R1 the frame, R2 its end.
    code.alu(Subtract, R2, R1).load(Width::Double, R3, R9, BYTES).add(R3, R2).store(
        Width::Double,
        R9,
        BYTES,
        R3,
    );
    code.load(Width::Double, R3, R9, SENT).add(R3, 1).store(Width::Double, R9, SENT, R3);
    code.mov64(R3, frames::mark(load.number)).store(Width::Double, R1, MARK_AT, R3);
    code.mov(R3, 0).store(Width::Double, R1, STAMP_AT, R3);
    if load.stamp_every > 0 {
        let plain = code.label();
        code.mov(R7, R1).mov(R1, R8).alu(Modulo, R1, load.stamp_every as i32);
        code.jump_if(Condition::NotEqual, R1, 0, plain);
        code.call(helper::KTIME_GET_NS).store(Width::Double, R7, STAMP_AT, R0).place(plain);
    }
    let index = |interface: NonZeroU32| interface.get() as i32;
    match load.interfaces.as_slice() {
        [one, other] => {
            let first = code.label();
            code.mov(R1, index(*one)).alu(And, R8, 1).jump_if(Condition::Equal, R8, 0, first);
            code.mov(R1, index(*other)).place(first);
        }
        others => {
            code.mov(R1, others.first().copied().map_or(0, index));
        }
    }
    code.mov(R2, 0).call(helper::REDIRECT).exit();
    code.place(fall).mov(R0, Action::Drop as i32).exit();
    Ok(code.finish()?)
}

/// Cuts the frame to its size; R7 is the total length of IPv4, and its checksum as the host stores it above bit 16.
fn lengths(code: &mut Assembler, size: Size) {
    let round = size.round();
    let done = code.label();
    if round.len() > 1 {
        code.mov(R3, R8).alu(Modulo, R3, round.len() as i32);
    }
    // The most frequent one last: it takes what is left.
    let mut sizes = round.clone();
    sizes.sort_by_key(|bytes| (round.iter().filter(|other| *other == bytes).count(), *bytes));
    sizes.dedup();
    for (number, bytes) in sizes.iter().enumerate() {
        let next = code.label();
        if number + 1 < sizes.len() {
            let here = code.label();
            for place in (0..round.len()).filter(|at| round[*at] == *bytes) {
                code.jump_if(Condition::Equal, R3, place as i32, here);
            }
            code.jump(next).place(here);
        }
        let bytes = bytes - FCS;
        let checksum = u64::from(frames::header_checksum(bytes).to_be());
        code.mov64(R7, checksum << 16 | u64::from(bytes - 14));
        let cut = size.longest() - bytes;
        if cut > 0 {
            code.mov(R1, R6).mov(R2, -(cut as i32)).call(ADJUST_TAIL);
        }
        if number + 1 < sizes.len() {
            code.jump(done);
        }
        code.place(next);
    }
    code.place(done);
}

/// Writes the headers into the frame at R1; R2 stays, R3 and R4 don't. The sessions differ by the lower half of the source address and by
/// the source port.
fn addresses(code: &mut Assembler) {
    let [s0, s1, s2, s3, s4, s5] = SOURCE;
    let [d0, d1, d2, d3, d4, d5] = DESTINATION;
    code.mov64(R3, u64::from_ne_bytes([d0, d1, d2, d3, d4, d5, s0, s1])).store(Width::Double, R1, 0, R3);
    code.mov64(R3, u64::from_ne_bytes([s2, s3, s4, s5, 0x08, 0x00, 0x45, 0x00])).store(
        Width::Double,
        R1,
        8,
        R3,
    );
    code.mov(R3, R7).swap_big_endian(R3, 16).store(Width::Half, R1, 16, R3);
    code.mov(R3, R7).alu(ShiftRight, R3, 16).store(Width::Half, R1, 24, R3);
    // An odd factor: every flow once in a round, neighbours far from each other.
    code.mov(R4, R8).alu(Multiply, R4, 40503).alu(And, R4, frames::FLOWS as i32 - 1);
    code.store(Width::Half, R1, 28, R4).store(Width::Half, R1, 34, R4);
    code.alu(Xor, R4, 0xffff).store(Width::Half, R1, 18, R4);
    code.store(Width::Half, R1, 20, 0);
    code.store(Width::Half, R1, 22, i32::from(u16::from_ne_bytes([64, 17])));
    code.store(Width::Half, R1, 26, i32::from(u16::from_ne_bytes([10, 1])));
    code.store(Width::Half, R1, 30, i32::from(u16::from_ne_bytes([198, 18])));
    code.store(Width::Half, R1, 32, i32::from(u16::from_ne_bytes([0, 1])));
    code.store(Width::Half, R1, 36, i32::from(u16::from_ne_bytes([0x01, 0xbb])));
    code.mov(R3, R7).add(R3, -20).swap_big_endian(R3, 16).store(Width::Half, R1, 38, R3);
    code.store(Width::Half, R1, 40, 0);
}
