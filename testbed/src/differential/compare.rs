//! Two data planes side by side: what they say to the same frame, and where they differ.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use dataplane::PortId;
use dataplane::entry::{Entry, EntryKey, P4Id};
use dataplane::schema::counters;
use dataplane::tables;
use swpipe::counters::Count;

use super::plane::{Counts, Outcome, Plane};
use crate::error::Result;

/// How two data planes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// About one frame.
    Outcome {
        /// What the left one does.
        left: Box<Outcome>,
        /// What the right one does.
        right: Box<Outcome>,
    },
    /// About counters after the same frames.
    Counts(Vec<CountDifference>),
}

/// A counter on which two data planes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountDifference {
    /// The counter.
    pub counter: Counter,
    /// What the left one counted.
    pub left: Count,
    /// What the right one counted.
    pub right: Count,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// A cell of an array.
    Cell(P4Id, usize),
    /// The direct counter of a rule.
    Rule(EntryKey),
}

impl Difference {
    /// Whether both are about frames, or both about counters.
    #[must_use]
    pub fn is_like(&self, other: &Difference) -> bool {
        matches!(
            (self, other),
            (Difference::Outcome { .. }, Difference::Outcome { .. })
                | (Difference::Counts(_), Difference::Counts(_))
        )
    }
}

/// Two data planes with the same tables.
pub struct SideBySide<'p> {
    /// The one that is believed until the contract says otherwise.
    pub left: &'p mut dyn Plane,
    /// The one that is compared with it.
    pub right: &'p mut dyn Plane,
}

impl SideBySide<'_> {
    /// Loads both.
    ///
    /// # Errors
    /// One of them refuses.
    pub fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.left.load(entries)?;
        self.right.load(entries)
    }

    /// Sends a frame into both; what the left one did, and how the right one differs.
    ///
    /// # Errors
    /// One of them broke.
    pub fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<(Outcome, Option<Difference>)> {
        let left = self.left.frame(port, bytes)?;
        self.right.expect(&left);
        let right = self.right.frame(port, bytes)?;
        let difference = (left != right)
            .then(|| Difference::Outcome { left: Box::new(left.clone()), right: Box::new(right) });
        Ok((left, difference))
    }

    /// Whether both can be sent such a frame.
    #[must_use]
    pub fn take(&self, frame: &[u8]) -> bool {
        self.left.takes(frame) && self.right.takes(frame)
    }

    /// Compares all counters; what the left one counted, and how the right one differs.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn counts(&mut self) -> Result<(Counts, Option<Difference>)> {
        let left = self.left.counts()?;
        let right = self.right.counts()?;
        let difference = (left != right).then(|| Difference::Counts(differing(&left, &right)));
        Ok((left, difference))
    }
}

fn differing(left: &Counts, right: &Counts) -> Vec<CountDifference> {
    let cells: BTreeSet<_> = left.cells.keys().chain(right.cells.keys()).copied().collect();
    let rules: BTreeSet<_> = left.rules.keys().chain(right.rules.keys()).cloned().collect();
    let of = |counts: &Counts, counter: &Counter| match counter {
        Counter::Cell(array, cell) => counts.cells.get(&(*array, *cell)).copied().unwrap_or_default(),
        Counter::Rule(rule) => counts.rules.get(rule).copied().unwrap_or_default(),
    };
    cells
        .into_iter()
        .map(|(array, cell)| Counter::Cell(array, cell))
        .chain(rules.into_iter().map(Counter::Rule))
        .map(|counter| {
            let (left, right) = (of(left, &counter), of(right, &counter));
            CountDifference { counter, left, right }
        })
        .filter(|difference| difference.left != difference.right)
        .collect()
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Counter::Cell(id, cell) => {
                let array = counters::ALL.iter().find(|array| array.id == *id);
                match array {
                    Some(array) => write!(f, "{}[{cell}]", array.name),
                    None => write!(f, "counter {id:#010x}[{cell}]"),
                }
            }
            Counter::Rule(rule) => {
                let table = tables::by_id(rule.table).map_or("?", |table| table.name);
                write!(f, "{table}, rule of priority {}", rule.priority)
            }
        }
    }
}

/// One data plane's answer in words.
#[must_use]
pub fn in_words(outcome: &Outcome) -> String {
    let mut words = outcome.ending.to_string();
    for (port, frame) in &outcome.sent {
        let _ = write!(words, "\n      out by port {port}: {} bytes {}", frame.len(), hex::encode(frame));
    }
    if let Some((port, frame)) = &outcome.to_controller {
        let _ = write!(
            words,
            "\n      to the controller from port {port}: {} bytes {}",
            frame.len(),
            hex::encode(frame)
        );
    }
    if outcome.sent.is_empty() && outcome.to_controller.is_none() {
        words.push_str("\n      nothing leaves");
    }
    words
}

/// A difference in words, one answer under the other.
#[must_use]
pub fn explain(difference: &Difference, left: &str, right: &str) -> String {
    match difference {
        Difference::Outcome { left: ours, right: theirs } => {
            format!("  {left}: {}\n  {right}: {}", in_words(ours), in_words(theirs))
        }
        Difference::Counts(counts) => {
            let mut text = String::from("  counters after the same frames:");
            for CountDifference { counter, left: ours, right: theirs } in counts {
                let _ = write!(
                    text,
                    "\n    {counter}: {left} {} frames, {} bytes; {right} {} frames, {} bytes",
                    ours.packets, ours.bytes, theirs.packets, theirs.bytes
                );
            }
            text
        }
    }
}
