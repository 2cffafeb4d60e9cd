//! XDP programs by bpf(2) alone: written with a small assembler, loaded, attached and run without a compiler, an
//! ELF file or a library in C.
//!
//! A program is a few dozen instructions that decide what becomes of a frame before the kernel's stack sees it.
//!
//! ```no_run
//! use xdp::{Assembler, Action, Attachment, Mode, Program, Register::R0};
//!
//! # fn example(index: std::num::NonZeroU32) -> Result<(), xdp::XdpError> {
//! let mut code = Assembler::new();
//! code.mov(R0, Action::Drop as i32).exit();
//! let program = Program::load("drop_all", &code.finish()?)?;
//! let attachment = Attachment::to(&program, index, Mode::Native)?;
//! // Until it is dropped, or the process ends in whatever way, the interface receives nothing.
//! drop(attachment);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod assembler;
mod attachment;
mod error;
mod map;
mod program;
#[allow(unsafe_code)]
mod sys;

pub use assembler::{Assembler, Condition, Instruction, Label, Operand, Operation, Register, Width, context};
pub use attachment::{Attachment, Mode};
pub use error::XdpError;
pub use map::{DeviceMap, PerCpuArray, SocketMap, WordArray};
pub use program::{Action, LiveRun, Program, Verdict};

/// Helper functions of the kernel by number (`linux/bpf.h`), for [`Assembler::call`].
pub mod helper {
    /// `bpf_map_lookup_elem(map, key)`: address of the value, or 0.
    pub const MAP_LOOKUP: i32 = 1;
    /// `bpf_ktime_get_ns()`: ns of `CLOCK_MONOTONIC`.
    pub const KTIME_GET_NS: i32 = 5;
    /// `bpf_get_prandom_u32()`.
    pub const PRANDOM_U32: i32 = 7;
    /// `bpf_get_smp_processor_id()`.
    pub const PROCESSOR_ID: i32 = 8;
    /// `bpf_redirect(interface index, flags)`: the verdict.
    pub const REDIRECT: i32 = 23;
    /// `bpf_xdp_adjust_head(context, delta)`: 0, or negative where that leaves the buffer.
    pub const ADJUST_HEAD: i32 = 44;
    /// `bpf_redirect_map(map, key, flags)`: the verdict; the flags are the one where the key has no value.
    pub const REDIRECT_MAP: i32 = 51;
}
