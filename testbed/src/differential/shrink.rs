//! Shrinking: fewest entries and plainest frame on which two data planes still differ.

use std::time::{Duration, Instant};

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::tables::TableEntry;

use super::compare::{Difference, SideBySide};
use crate::error::Result;

/// Tries at most: each loads both planes.
const TRIES: usize = 4_000;
/// However long a try takes.
const AT_MOST: Duration = Duration::from_secs(120);

/// One frame and the entries that make it differ.
#[derive(Clone, Debug)]
pub struct Case {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Port that the frame comes in by.
    pub port: PortId,
    /// The frame.
    pub frame: Vec<u8>,
}

struct Shrink<'s, 'p> {
    planes: &'s mut SideBySide<'p>,
    case: Case,
    difference: Difference,
    tries: usize,
    begun: Instant,
}

/// The difference that the case shows by itself, if it does: of the frame, else of counters.
///
/// # Errors
/// A data plane refuses the entries, or broke.
pub fn try_case(planes: &mut SideBySide<'_>, case: &Case) -> Result<Option<Difference>> {
    planes.load(&case.entries)?;
    try_loaded(planes, case)
}

fn try_loaded(planes: &mut SideBySide<'_>, case: &Case) -> Result<Option<Difference>> {
    let (_, difference) = planes.frame(case.port, &case.frame)?;
    if difference.is_some() {
        return Ok(difference);
    }
    Ok(planes.counts()?.1)
}

/// Shrinks a case; the least one found and its difference. `None` where the case alone shows no difference, so that
/// earlier frames matter.
///
/// # Errors
/// A data plane broke.
pub fn shrink(planes: &mut SideBySide<'_>, case: Case) -> Result<Option<(Case, Difference)>> {
    let Some(difference) = try_case(planes, &case)? else { return Ok(None) };
    let mut shrink = Shrink { planes, case, difference, tries: 0, begun: Instant::now() };
    loop {
        let before = shrink.case.clone();
        shrink.drop_entries()?;
        shrink.drop_conditions()?;
        shrink.cut_frame()?;
        shrink.zero_frame()?;
        let same = before.entries == shrink.case.entries && before.frame == shrink.case.frame;
        if same || shrink.is_over() {
            return Ok(Some((shrink.case, shrink.difference)));
        }
    }
}

impl Shrink<'_, '_> {
    fn is_over(&self) -> bool {
        self.tries >= TRIES || self.begun.elapsed() > AT_MOST
    }

    /// Takes a simpler case if it still differs in the same way.
    fn take(&mut self, simpler: Case) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        self.tries += 1;
        if !self.planes.take(&simpler.frame) {
            return Ok(false);
        }
        // What one of them refuses is no case.
        if self.planes.load(&simpler.entries).is_err() {
            return Ok(false);
        }
        match try_loaded(self.planes, &simpler)? {
            Some(difference) if difference.is_like(&self.difference) => {
                self.case = simpler;
                self.difference = difference;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Leaves out runs of entries, halving their length.
    fn drop_entries(&mut self) -> Result<()> {
        let mut run = self.case.entries.len().div_ceil(2);
        while run > 0 {
            let mut at = 0;
            while at < self.case.entries.len() {
                let mut simpler = self.case.clone();
                let end = (at + run).min(simpler.entries.len());
                simpler.entries.drain(at..end);
                if !self.take(simpler)? {
                    at += run;
                }
            }
            run /= 2;
        }
        Ok(())
    }

    /// Leaves out conditions of rules.
    fn drop_conditions(&mut self) -> Result<()> {
        for index in 0..self.case.entries.len() {
            let mut condition = 0;
            while condition < self.case.entries[index].key.len() {
                let mut simpler = self.case.clone();
                simpler.entries[index].key.remove(condition);
                if TableEntry::parse(&simpler.entries[index]).is_err() || !self.take(simpler)? {
                    condition += 1;
                }
            }
        }
        Ok(())
    }

    /// Cuts the frame's end, and takes words out of its middle.
    fn cut_frame(&mut self) -> Result<()> {
        let mut run = self.case.frame.len().div_ceil(2);
        while run > 0 {
            while self.case.frame.len() >= run {
                let mut simpler = self.case.clone();
                simpler.frame.truncate(simpler.frame.len() - run);
                if !self.take(simpler)? {
                    break;
                }
            }
            run /= 2;
        }
        for run in [40, 20, 8, 4] {
            let mut at = 12;
            while at + run <= self.case.frame.len() {
                let mut simpler = self.case.clone();
                simpler.frame.drain(at..at + run);
                if !self.take(simpler)? {
                    at += 4;
                }
            }
        }
        Ok(())
    }

    /// Writes zeros over runs of bytes, halving their length.
    fn zero_frame(&mut self) -> Result<()> {
        let mut run = 64;
        while run > 0 {
            let mut at = 0;
            while at < self.case.frame.len() {
                let mut simpler = self.case.clone();
                let end = (at + run).min(simpler.frame.len());
                let bytes = &mut simpler.frame[at..end];
                if bytes.iter().any(|byte| *byte != 0) {
                    bytes.fill(0);
                    self.take(simpler)?;
                }
                at += run;
            }
            run /= 2;
        }
        Ok(())
    }
}
