//! The XDP program of a port: keep-alives and probes to the kernel's stack, where the keep-alive path stamps and
//! receives them; everything else to the socket of the queue that it came in by.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dataplane::frame::ETHERNET_HEADER;
use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use dataplane::steering::{STEERING_HEADER, STEERING_OFFSET};
use xdp::Register::{R0, R1, R2, R3, R4, R5, R6};
use xdp::{
    Action, Assembler, Condition, Operation, Program, SocketMap, Width, WordArray, XdpError, context, helper,
};

use crate::io::ProbeHeaders;

/// Words of the settings: TPID, mask and base of the steering header's second half, then a bit for each link index.
const TPID: usize = 0;
const MASK: usize = 1;
const BASE: usize = 2;
const BITS: usize = 3;
const WORDS: usize = BITS + 4;
/// Link indices: the bits of four words.
const INDICES: i32 = 256;

const fn offset(word: usize) -> i16 {
    8 * word as i16
}

/// Which probes pass to the kernel's stack: a setting of the programs of all ports, which may change at any time.
#[derive(Debug, Default)]
pub struct ProbePass(Mutex<Setting>);

#[derive(Debug, Default)]
struct Setting {
    headers: ProbeHeaders,
    /// Made with the first program.
    words: Option<WordArray>,
}

impl ProbePass {
    fn setting(&self) -> MutexGuard<'_, Setting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes with these steering headers pass from now on, and no others.
    ///
    /// # Errors
    /// What the kernel says; those before pass then.
    pub fn set(&self, headers: &ProbeHeaders) -> Result<(), XdpError> {
        let mut setting = self.setting();
        if let Some(words) = &setting.words {
            words.set(&headers.words())?;
        }
        setting.headers = headers.clone();
        Ok(())
    }
}

impl ProbeHeaders {
    fn words(&self) -> [u64; WORDS] {
        let (mask, base) = self.second();
        let mut words = [0; WORDS];
        words[TPID] = self.tpid().into();
        words[MASK] = mask.into();
        words[BASE] = base.into();
        for index in &self.indices {
            let index = usize::from(index.0);
            words[BITS + index / 64] |= 1 << (index % 64);
        }
        words
    }
}

/// Loads the program for a port whose sockets are in `sockets`.
pub(super) fn load(pass: &ProbePass, sockets: &SocketMap) -> Result<Program, XdpError> {
    let mut setting = pass.setting();
    let words = match setting.words.take() {
        Some(words) => words,
        None => {
            let words = WordArray::new(WORDS as u32)?;
            words.set(&setting.headers.words())?;
            words
        }
    };
    let program = Program::load("sluice_port", &assemble(&words, sockets)?);
    setting.words = Some(words);
    program
}

fn assemble(words: &WordArray, sockets: &SocketMap) -> Result<Vec<xdp::Instruction>, XdpError> {
    const DATA: xdp::Register = R2;
    const TYPE: xdp::Register = R4;
    const SECOND: xdp::Register = R5;
    const SETTINGS: xdp::Register = R6;
    let mut code = Assembler::new();
    let (to_socket, pass) = (code.label(), code.label());
    code.load(Width::Word, DATA, R1, context::DATA);
    code.load(Width::Word, R3, R1, context::DATA_END);
    code.mov(R0, DATA).add(R0, (STEERING_OFFSET + STEERING_HEADER) as i32);
    code.jump_if(Condition::Greater, R0, R3, to_socket);
    code.load(Width::Half, TYPE, DATA, ETHERNET_HEADER as i16 - 2).swap_big_endian(TYPE, 16);
    code.jump_if(Condition::Equal, TYPE, i32::from(KEEP_ALIVE_ETHERTYPE), pass);
    code.map_value(SETTINGS, words.as_fd(), 0);
    code.load(Width::Double, R0, SETTINGS, offset(TPID));
    code.jump_if(Condition::NotEqual, TYPE, R0, to_socket);
    code.load(Width::Half, SECOND, DATA, STEERING_OFFSET as i16 + 2).swap_big_endian(SECOND, 16);
    code.load(Width::Double, R0, SETTINGS, offset(MASK)).alu(Operation::And, SECOND, R0);
    code.load(Width::Double, R0, SETTINGS, offset(BASE)).alu(Operation::Subtract, SECOND, R0);
    code.jump_if(Condition::GreaterOrEqual, SECOND, INDICES, to_socket);
    // The word of the index, and its bit there: a shift takes the lower six bits of the number.
    code.mov(R0, SECOND).alu(Operation::ShiftRight, R0, 6).alu(Operation::ShiftLeft, R0, 3);
    code.add(SETTINGS, R0).load(Width::Double, R0, SETTINGS, offset(BITS));
    code.alu(Operation::And, SECOND, 63).alu(Operation::ShiftRight, R0, SECOND);
    code.jump_if(Condition::Overlap, R0, 1, pass);
    // A queue without a socket: to the stack, where the port's packet ring sees it.
    code.place(to_socket);
    code.load(Width::Word, R2, R1, context::QUEUE);
    code.map(R1, sockets.as_fd()).mov(R3, Action::Pass as i32);
    code.call(helper::REDIRECT_MAP).exit();
    code.place(pass).mov(R0, Action::Pass as i32).exit();
    code.finish()
}

#[cfg(test)]
mod tests {
    use dataplane::{LinkIndex, SteeringMode};

    use super::*;

    fn frame(head: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(head);
        frame.resize(64, 0);
        frame
    }

    #[test]
    fn keep_alives_and_probes_pass_and_nothing_else() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED, NOTHING WAS TESTED: needs root to load a program");
            return;
        }
        let pass = ProbePass::default();
        // No socket is there: what goes to one passes too, so a program is told apart by its fallback.
        let sockets = SocketMap::new(1).expect("a map");
        let native = SteeringMode::Native { tpid: 0x88b6 };
        let tagged = SteeringMode::Dot1q { tpid: 0x8100, base_vid: 100 };
        let indices = vec![LinkIndex(0), LinkIndex(63), LinkIndex(64), LinkIndex(255)];
        let program = {
            let _first = load(&pass, &sockets).expect("loaded");
            let words = pass.setting().words.take().expect("made");
            let code = assemble(&words, &sockets).expect("assembled");
            // The fallback is another action.
            let fallback: Vec<xdp::Instruction> = code
                .iter()
                .map(|code| match code.0.to_ne_bytes() {
                    [0xb7, 0x03, 0, 0, 2, 0, 0, 0] => {
                        xdp::Instruction(u64::from_ne_bytes([0xb7, 0x03, 0, 0, 1, 0, 0, 0]))
                    }
                    _ => *code,
                })
                .collect();
            assert_ne!(fallback, code);
            let program = Program::load("fallback", &fallback).expect("loaded");
            pass.setting().words = Some(words);
            program
        };
        let passes = |head: &[u8]| {
            let run = program.run(&frame(head)).expect("run");
            assert_eq!(run.frame, frame(head));
            run.action == Action::Pass
        };
        assert!(passes(&[0x88, 0xb5, 1, 2]));
        assert!(!passes(&[0x08, 0, 0x88, 0xb5]));
        assert!(!passes(&[0x88, 0xb6, 0, 0]), "no probe has been named");
        pass.set(&ProbeHeaders { mode: native, indices: indices.clone() }).expect("set");
        for index in 0..=255 {
            let is_probe = indices.contains(&LinkIndex(index));
            assert_eq!(passes(&[0x88, 0xb6, 9, index]), is_probe, "{index}");
            assert!(!passes(&[0x81, 0x00, 0, index]));
        }
        pass.set(&ProbeHeaders { mode: tagged, indices: indices.clone() }).expect("set");
        for vid in 0..0x1000_u16 {
            let is_probe = indices.iter().any(|index| u16::from(index.0) + 100 == vid);
            let [high, low] = (vid | 0xe000).to_be_bytes();
            assert_eq!(passes(&[0x81, 0, high, low]), is_probe, "{vid}");
        }
        assert!(!program.run(&frame(&[0x88, 0xb5])[..15]).is_ok_and(|run| run.action == Action::Pass));
    }
}
