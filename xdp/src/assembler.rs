//! Instructions (RFC 9669) and an assembler with labels.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::XdpError;

/// One instruction as the kernel reads it: operation, registers, offset, immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Instruction(pub u64);

impl Instruction {
    fn new(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Self {
        let [o0, o1] = offset.to_ne_bytes();
        let [i0, i1, i2, i3] = immediate.to_ne_bytes();
        // Two bit-fields in one byte: the first one is in the low half where bytes are little-endian.
        let registers = if cfg!(target_endian = "little") { to | (from << 4) } else { (to << 4) | from };
        Instruction(u64::from_ne_bytes([code, registers, o0, o1, i0, i1, i2, i3]))
    }

    fn with_offset(self, offset: i16) -> Self {
        let mut bytes = self.0.to_ne_bytes();
        bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
        Instruction(u64::from_ne_bytes(bytes))
    }
}

/// A register. At entry R1 is the context; calls take R1 to R5, answer in R0, and leave only R6 to R10 as they were;
/// R10 is the end of a stack of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are numbers")]
#[repr(u8)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// A register's value, or one that is in the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Of a register.
    Register(Register),
    /// Sign-extended to 64 bits.
    Immediate(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Operand::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(immediate: i32) -> Self {
        Operand::Immediate(immediate)
    }
}

/// Arithmetic on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as RFC 9669, 4.1 has them")]
#[repr(u8)]
pub enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Modulo = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
}

/// When to jump; unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as RFC 9669, 4.3 has them")]
#[repr(u8)]
pub enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    /// They have a bit in common.
    Overlap = 0x40,
    NotEqual = 0x50,
    Less = 0xa0,
    LessOrEqual = 0xb0,
}

/// How much a load or a store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 8 bits.
    Byte = 0x10,
    /// 16 bits.
    Half = 0x08,
    /// 32 bits.
    Word = 0x00,
    /// 64 bits.
    Double = 0x18,
}

/// Offsets in an XDP program's context (`struct xdp_md`), each of a [`Width::Word`].
pub mod context {
    /// Address of the frame's first byte.
    pub const DATA: i16 = 0;
    /// Address behind its last one.
    pub const DATA_END: i16 = 4;
    /// Index of the interface that it came in by.
    pub const INGRESS_INTERFACE: i16 = 12;
    /// Queue of the interface that it came in by.
    pub const QUEUE: i16 = 16;
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

const LOAD_IMMEDIATE_64: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE_IMMEDIATE: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC: u8 = 0xc3;
const ALU_64: u8 = 0x07;
const ALU_32: u8 = 0x04;
const JUMP: u8 = 0x05;
const FROM_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xdc;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const PSEUDO_MAP: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

/// Writes a program, instruction after instruction.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// Where labels are, once placed.
    places: Vec<Option<usize>>,
    /// Instructions whose offset is a label's.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// An empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A label that is not placed yet.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label here, before the next instruction.
    pub fn place(&mut self, label: Label) -> &mut Self {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = Some(self.code.len());
        }
        self
    }

    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> &mut Self {
        self.code.push(Instruction::new(code, to, from, offset, immediate));
        self
    }

    fn of(&mut self, code: u8, to: Register, with: Operand, offset: i16) -> &mut Self {
        match with {
            Operand::Register(from) => self.push(code | FROM_REGISTER, to as u8, from as u8, offset, 0),
            Operand::Immediate(value) => self.push(code, to as u8, 0, offset, value),
        }
    }

    /// `to = to OPERATION with`.
    pub fn alu(&mut self, operation: Operation, to: Register, with: impl Into<Operand>) -> &mut Self {
        self.of(ALU_64 | operation as u8, to, with.into(), 0)
    }

    /// The same on the lower 32 bits; the upper ones become 0.
    pub fn alu32(&mut self, operation: Operation, to: Register, with: impl Into<Operand>) -> &mut Self {
        self.of(ALU_32 | operation as u8, to, with.into(), 0)
    }

    /// `to = with`.
    pub fn mov(&mut self, to: Register, with: impl Into<Operand>) -> &mut Self {
        self.alu(Operation::Move, to, with)
    }

    /// `to = to + with`.
    pub fn add(&mut self, to: Register, with: impl Into<Operand>) -> &mut Self {
        self.alu(Operation::Add, to, with)
    }

    /// A value of 64 bits.
    pub fn mov64(&mut self, to: Register, value: u64) -> &mut Self {
        self.wide(to, 0, value as u32 as i32, (value >> 32) as u32 as i32)
    }

    fn wide(&mut self, to: Register, kind: u8, low: i32, high: i32) -> &mut Self {
        self.push(LOAD_IMMEDIATE_64, to as u8, kind, 0, low).push(0, 0, 0, 0, high)
    }

    /// A map, as calls take it. The program holds it open once loaded.
    pub fn map(&mut self, to: Register, map: BorrowedFd<'_>) -> &mut Self {
        self.wide(to, PSEUDO_MAP, map.as_raw_fd(), 0)
    }

    /// Address of byte `offset` of the values of an array map that is not per CPU.
    pub fn map_value(&mut self, to: Register, map: BorrowedFd<'_>, offset: u32) -> &mut Self {
        self.wide(to, PSEUDO_MAP_VALUE, map.as_raw_fd(), offset as i32)
    }

    /// `to = *(from + offset)`, zero-extended.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) -> &mut Self {
        self.push(LOAD | width as u8, to as u8, from as u8, offset, 0)
    }

    /// `*(to + offset) = value`.
    pub fn store(&mut self, width: Width, to: Register, offset: i16, value: impl Into<Operand>) -> &mut Self {
        match value.into() {
            Operand::Register(from) => self.push(STORE | width as u8, to as u8, from as u8, offset, 0),
            Operand::Immediate(value) => self.push(STORE_IMMEDIATE | width as u8, to as u8, 0, offset, value),
        }
    }

    /// `*(to + offset) += value`, atomically, 64 bits.
    pub fn atomic_add(&mut self, to: Register, offset: i16, value: Register) -> &mut Self {
        self.push(ATOMIC | Width::Double as u8, to as u8, value as u8, offset, 0)
    }

    /// Turns the lower `bits` (16, 32 or 64) from the host's order into big-endian, or back.
    pub fn swap_big_endian(&mut self, register: Register, bits: i32) -> &mut Self {
        self.push(TO_BIG_ENDIAN, register as u8, 0, 0, bits)
    }

    /// Goes on at the label.
    pub fn jump(&mut self, label: Label) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP, 0, 0, 0, 0)
    }

    /// Goes on at the label if `left CONDITION right`, on 64 bits.
    pub fn jump_if(
        &mut self,
        condition: Condition,
        left: Register,
        right: impl Into<Operand>,
        label: Label,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.of(JUMP | condition as u8, left, right.into(), 0)
    }

    /// Calls one of [`helper`](crate::helper).
    pub fn call(&mut self, helper: i32) -> &mut Self {
        self.push(CALL, 0, 0, 0, helper)
    }

    /// Ends with the verdict in R0.
    pub fn exit(&mut self) -> &mut Self {
        self.push(EXIT, 0, 0, 0, 0)
    }

    /// The program, its jumps filled in.
    ///
    /// # Errors
    /// [`XdpError::Jump`].
    pub fn finish(&self) -> Result<Vec<Instruction>, XdpError> {
        let mut code = self.code.clone();
        for (at, label) in &self.jumps {
            let jump = |fault| XdpError::Jump { at: *at, fault };
            let place =
                self.places.get(label.0).copied().flatten().ok_or_else(|| jump("is placed nowhere"))?;
            let offset = place as i64 - *at as i64 - 1;
            let offset = i16::try_from(offset).map_err(|_| jump("is more than 32767 instructions away"))?;
            if let Some(instruction) = code.get_mut(*at) {
                *instruction = instruction.with_offset(offset);
            }
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::Register::{R0, R1, R2};
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_those_of_rfc_9669() {
        let mut code = Assembler::new();
        let out = code.label();
        code.mov(R0, 2).load(Width::Word, R2, R1, 4).jump_if(Condition::Greater, R1, R2, out);
        code.mov64(R0, 0x1122_3344_5566_7788).atomic_add(R1, 8, R2).place(out).exit();
        let words: Vec<u64> = code.finish().expect("whole").iter().map(|code| code.0).collect();
        assert_eq!(
            words,
            [
                0x0000_0002_0000_00b7,
                0x0000_0000_0004_1261,
                0x0000_0000_0003_212d,
                0x5566_7788_0000_0018,
                0x1122_3344_0000_0000,
                0x0000_0000_0008_21db,
                0x0000_0000_0000_0095,
            ]
        );
    }

    #[test]
    fn jumps_go_backwards_too() {
        let mut code = Assembler::new();
        let start = code.label();
        code.place(start).mov(R0, 0).jump(start);
        let offset = code.finish().expect("whole")[1].0.to_ne_bytes();
        assert_eq!(i16::from_ne_bytes([offset[2], offset[3]]), -2);
    }

    #[test]
    fn a_label_that_is_nowhere_is_named() {
        let mut code = Assembler::new();
        let lost = code.label();
        code.mov(R0, 0).jump(lost);
        assert!(matches!(code.finish(), Err(XdpError::Jump { at: 1, .. })));
    }
}
