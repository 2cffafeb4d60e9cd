//! Where frames go in the benches.

use std::hint::black_box;

use swpipe::io::{Edit, Sender};

const SLOTS: usize = 256;

/// Takes frames as a zero-copy transmit ring does: where the rest of the frame is, and its new head. This is
/// the pipeline without I/O.
pub(crate) struct Ring {
    slots: Box<[(usize, usize, [u8; 16])]>,
    next: usize,
}

impl Ring {
    pub(crate) fn boxed() -> Box<dyn Sender> {
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
pub(crate) struct Copying {
    memory: Box<[u8]>,
    at: usize,
}

impl Copying {
    pub(crate) fn boxed() -> Box<dyn Sender> {
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
