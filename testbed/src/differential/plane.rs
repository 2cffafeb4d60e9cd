//! A data plane under test: tables in, frames in, frames and counters out.

use std::collections::BTreeMap;
use std::fmt;

use dataplane::entry::{Entry, EntryKey, P4Id};
use dataplane::{PortId, Reason};
use swpipe::counters::Count;

use crate::error::Result;

/// How a frame ended, by the counter that rose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// One cell of `verdicts` rose, by one.
    Counted(Reason),
    /// Anything else, in words.
    Odd(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Counted(reason) => match reason.as_str() {
                Some(why) => write!(f, "{} ({why})", reason.verdict()),
                None => write!(f, "{}", reason.verdict()),
            },
            Ending::Odd(what) => f.write_str(what),
        }
    }
}

/// What became of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that left, with the ports they left by, sorted.
    pub sent: Vec<(PortId, Vec<u8>)>,
    /// What the controller got, with the port that it came in by.
    pub to_controller: Option<(PortId, Vec<u8>)>,
    /// The counter that it ended in.
    pub ending: Ending,
}

/// Counters that are not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cells of counter arrays, by the array's id and the cell.
    pub cells: BTreeMap<(P4Id, usize), Count>,
    /// Direct counters of rules.
    pub rules: BTreeMap<EntryKey, Count>,
}

/// A data plane under test.
pub trait Plane {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Empties it, counters included, and puts these entries in.
    ///
    /// # Errors
    /// [`crate::error::Error::Plane`] when it refuses one of them.
    fn load(&mut self, entries: &[Entry]) -> Result<()>;

    /// Sends a frame in by a port, and waits for all that comes of it.
    ///
    /// # Errors
    /// [`crate::error::Error::Plane`] when it broke.
    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome>;

    /// Its counters since it was loaded, bytes as the contract counts them.
    ///
    /// # Errors
    /// [`crate::error::Error::Plane`] when they cannot be read.
    fn counts(&mut self) -> Result<Counts>;

    /// What another data plane did with the frame that comes next: how much to wait for.
    fn expect(&mut self, _outcome: &Outcome) {}

    /// Whether it can be sent such a frame at all.
    fn takes(&self, _frame: &[u8]) -> bool {
        true
    }
}

/// How a frame ended, by the cells of `verdicts` before and after it.
#[must_use]
pub fn ending(before: &[Count], after: &[Count]) -> Ending {
    let rose: Vec<(usize, u64)> = before
        .iter()
        .zip(after)
        .enumerate()
        .map(|(slot, (before, after))| (slot, after.packets.wrapping_sub(before.packets)))
        .filter(|(_, packets)| *packets != 0)
        .collect();
    let reason = |slot| Reason::ALL.iter().copied().find(|reason: &Reason| reason.slot() == slot);
    match rose.as_slice() {
        [] => Ending::Odd("counted in no cell of verdicts".into()),
        [(slot, 1)] => match reason(*slot) {
            Some(reason) => Ending::Counted(reason),
            None => Ending::Odd(format!("counted in verdicts[{slot}], which is no reason")),
        },
        several => Ending::Odd(format!("counted in several cells of verdicts: {several:?}")),
    }
}
