//! The differential run: random tables, random frames, two data planes, until they differ or the frames are used up.

use std::time::{Duration, Instant};

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::tables::Family;

use super::compare::{Difference, SideBySide};
use super::contents::Contents;
use super::coverage::Coverage;
use super::plane::Plane;
use super::shrink::{Case, shrink};
use super::traffic;
use crate::error::Result;
use crate::rng::Rng;

/// Frames between two changes of all tables.
const FRAMES_PER_TABLES: u64 = 400;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Frames at most; none for no end.
    pub frames: Option<u64>,
    /// The seed; the same gives the same run.
    pub seed: u64,
    /// Ports that the data planes have.
    pub ports: Vec<PortId>,
    /// Frames of others that are among the base frames.
    pub corpus: Vec<Vec<u8>>,
    /// Shrink a difference; else the case is as it was found.
    pub shrink: bool,
}

/// A difference, shrunk.
#[derive(Clone, Debug)]
pub struct Found {
    /// Frames until then.
    pub frames: u64,
    /// Number of the tables, from 0.
    pub tables: u64,
    /// Entries, port and frame.
    pub case: Case,
    /// How the data planes differ.
    pub difference: Difference,
    /// The case alone shows it and was shrunk; else earlier frames matter.
    pub alone: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Frames sent.
    pub frames: u64,
    /// How long it took.
    pub took: Duration,
    /// What was seen.
    pub coverage: Coverage,
    /// The first difference, if there is one.
    pub found: Option<Box<Found>>,
}

/// A frame with its port.
type Sent = (PortId, Vec<u8>);

/// Runs until the first difference, or to the end; `progress` is told after each set of tables.
///
/// # Errors
/// A data plane refuses valid tables, or broke.
pub fn run(
    left: &mut dyn Plane,
    right: &mut dyn Plane,
    options: &Options,
    progress: &mut dyn FnMut(u64, &Coverage),
) -> Result<Finished> {
    let began = Instant::now();
    let mut planes = SideBySide { left, right };
    let mut coverage = Coverage::default();
    let mut frames = 0;
    let mut found = None;
    let left_over = |frames: u64| options.frames.map_or(FRAMES_PER_TABLES, |all| all.saturating_sub(frames));
    for tables in 0.. {
        let count = left_over(frames).min(FRAMES_PER_TABLES);
        if count == 0 {
            break;
        }
        // Each set of tables has a seed of its own, so that one can be run again without those before.
        let mut rng = Rng::new(options.seed.wrapping_add(tables << 32));
        let pool = traffic::pool(&mut rng, &options.corpus);
        let contents = Contents::draw(&mut rng, &options.ports, &pool);
        let sent: Vec<Sent> = std::iter::repeat_with(|| traffic::draw(&mut rng, &contents, &pool))
            .filter(|(_, frame)| planes.take(frame))
            .take(count as usize)
            .collect();
        let difference = compare(&mut planes, &contents, &sent, &mut frames, &mut coverage)?;
        progress(frames, &coverage);
        if let Some((at, difference)) = difference {
            let (port, frame) = sent.get(at).cloned().unwrap_or_default();
            let case = Case { entries: contents.entries, port, frame };
            let shrunk = if options.shrink { shrink(&mut planes, case.clone())? } else { None };
            let alone = shrunk.is_some();
            let (case, difference) = shrunk.unwrap_or((case, difference));
            found = Some(Box::new(Found { frames, tables, case, difference, alone }));
            break;
        }
    }
    Ok(Finished { frames, took: began.elapsed(), coverage, found })
}

/// One set of tables; the index of the frame about which the planes differ.
fn compare(
    planes: &mut SideBySide<'_>,
    contents: &Contents,
    sent: &[Sent],
    frames: &mut u64,
    coverage: &mut Coverage,
) -> Result<Option<(usize, Difference)>> {
    let entries = contents.entries.as_slice();
    planes.load(entries)?;
    for (index, (port, frame)) in sent.iter().enumerate() {
        let (outcome, difference) = planes.frame(*port, frame)?;
        *frames += 1;
        coverage.note(frame, &outcome, contents.link_ports.contains(port));
        if let Some(difference) = difference {
            return Ok(Some((index, difference)));
        }
    }
    let (counts, difference) = planes.counts()?;
    let is_rule = |entry: &&Entry| Family::BOTH.iter().any(|family| family.table() == entry.table);
    coverage.note_rules(entries.iter().filter(is_rule).count(), &counts);
    match difference {
        None => Ok(None),
        Some(difference) => first_miscount(planes, entries, sent, difference).map(Some),
    }
}

/// Sends the frames once more and looks at the counters after each, for the one that is counted differently.
fn first_miscount(
    planes: &mut SideBySide<'_>,
    entries: &[Entry],
    sent: &[Sent],
    after_all: Difference,
) -> Result<(usize, Difference)> {
    planes.load(entries)?;
    for (index, (port, frame)) in sent.iter().enumerate() {
        planes.frame(*port, frame)?;
        if let (_, Some(difference)) = planes.counts()? {
            return Ok((index, difference));
        }
    }
    Ok((sent.len().saturating_sub(1), after_all))
}

/// Ports that every target has for frames: the last three are BMv2's drop port, the controller's, and the one that
/// the P4 program drops by.
#[must_use]
pub fn ports() -> Vec<PortId> {
    (0..509).map(PortId).collect()
}
