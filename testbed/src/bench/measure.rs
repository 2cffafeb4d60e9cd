//! One system under one load: how much passes, how much passes without loss, how long it takes.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::frames::Size;
use super::generator::{Generator, Load, Sent};
use super::latency::Latency;
use super::pin;
use super::search::Trial;
use super::system::Running;
use super::yard::{BOX, OUTSIDE, Yard, link_port};
use crate::error::{Error, Result};
use crate::lab::interface_counters;
use crate::plan::sides;

/// Before counting begins: caches and tables of flows fill.
const WARM_UP: Duration = Duration::from_millis(400);
/// Between two stamped frames: a prime, so that the stamps go through all places of a batch.
const STAMP_EVERY: u32 = 61;

/// How evenly pairs are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spread {
    /// Frames of the least loaded pair over the mean.
    pub least: f64,
    /// Frames of the most loaded pair over the mean.
    pub most: f64,
}

/// What passed while the generator gave all it could.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Saturation {
    /// Frames a second that arrived.
    pub rate: f64,
    /// Frames a second that were sent meanwhile.
    pub offered: f64,
    /// Time on a core for each frame that arrived, ns: of what forwards, its sends and the far ends of the cables
    /// included. Hardly touched by others that want the core. 0 where none arrived.
    pub core_ns: f64,
    /// How evenly they were split.
    pub spread: Spread,
}

/// What every measurement starts from.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The cables.
    pub yard: &'a Yard,
    /// The system between them.
    pub running: &'a mut Running,
}

impl Bench<'_> {
    fn load(&self, size: Size, rate: Option<f64>, stamp_every: u32) -> Result<Load> {
        let number = self.yard.sink().next_load()?;
        Ok(Load { number, size, rate, stamp_every, interfaces: self.yard.sources()? })
    }

    /// Sends all that the generator can, and counts for a time in the middle of it.
    ///
    /// # Errors
    /// The system has ended, or the kernel refuses.
    pub fn saturate(&mut self, size: Size, time: Duration) -> Result<Saturation> {
        let load = self.load(size, None, 0)?;
        let (ends, split) = (self.yard.ends()?, self.yard.split()?);
        let sink = self.yard.sink();
        let (generator, at_pairs) =
            self.yard.run().inside(OUTSIDE, || Ok((Generator::load(&load)?, sink.each(&split)?)))?;
        let system = &*self.running;
        let counted = std::thread::scope(|scope| -> Result<(u64, u64, Duration, Duration)> {
            let sending = scope.spawn(|| run(self.yard, &generator, WARM_UP + time + WARM_UP / 4));
            std::thread::sleep(WARM_UP);
            let used = system.core_time()?;
            let (before, sent, began) = (sink.frames(&ends)?, generator.sent()?, Instant::now());
            std::thread::sleep(time);
            let (after, then, took) = (sink.frames(&ends)?, generator.sent()?, began.elapsed());
            let used = system.core_time()? - used;
            sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((after - before, then - sent, took, used))
        });
        self.running.check()?;
        let (received, sent, took, used) = counted?;
        let shares: Vec<u64> =
            sink.each(&split)?.iter().zip(&at_pairs).map(|(now, then)| now - then).collect();
        let seconds = took.as_secs_f64();
        Ok(Saturation {
            rate: received as f64 / seconds,
            offered: sent as f64 / seconds,
            core_ns: if received == 0 { 0.0 } else { used.as_nanos() as f64 / received as f64 },
            spread: spread(&shares),
        })
    }

    /// Sends at a rate for a time, waits for the last frame, and counts what arrived.
    ///
    /// # Errors
    /// The system has ended, or the kernel refuses.
    pub fn trial(&mut self, size: Size, rate: f64, time: Duration) -> Result<Trial> {
        self.paced(size, rate, time, 0)
    }

    fn paced(&mut self, size: Size, rate: f64, time: Duration, stamp_every: u32) -> Result<Trial> {
        let load = self.load(size, Some(rate), stamp_every)?;
        let ends = self.yard.ends()?;
        let sink = self.yard.sink();
        let (before, untaken) = (sink.frames(&ends)?, self.taken()?);
        let sent = send(self.yard, &load, time)?;
        let received = sink.settle(&ends, before + sent.frames)? - before;
        let taken = self.taken()? - untaken;
        self.running.check()?;
        let lost = sent.frames.checked_sub(received).ok_or_else(|| {
            Error::Unsupported(format!(
                "{received} frames arrived of {} sent: the counts do not add up",
                sent.frames
            ))
        })?;
        let per_second = sent.frames as f64 / sent.time.as_secs_f64();
        Ok(Trial { asked: rate, rate: per_second, sent: sent.frames, taken, received, lost })
    }

    /// Frames that the link's ports took so far.
    fn taken(&self) -> Result<u64> {
        let counters = self.yard.run().inside(BOX, interface_counters)?;
        let links = sides().map(link_port);
        Ok(links.filter_map(|port| counters.get(&port)).map(|port| port.rx_packets).sum())
    }

    /// How long frames of such a load take from the generator's program to the sink's.
    ///
    /// # Errors
    /// As [`Bench::trial`].
    pub fn latency(&mut self, size: Size, rate: f64, time: Duration) -> Result<Latency> {
        self.paced(size, rate, WARM_UP, 0)?;
        self.yard.sink().forget_samples()?;
        self.paced(size, rate, time, STAMP_EVERY)?;
        self.yard.sink().latency()
    }
}

/// The same for a cable without a system: what generator and sink take themselves.
///
/// # Errors
/// The kernel refuses.
pub fn cable_latency(yard: &Yard, size: Size, rate: f64, time: Duration) -> Result<Latency> {
    let ends = yard.cable()?;
    let number = yard.sink().next_load()?;
    let load =
        Load { number, size, rate: Some(rate), stamp_every: STAMP_EVERY, interfaces: ends[..1].to_vec() };
    let before = yard.sink().frames(&ends)?;
    yard.sink().forget_samples()?;
    let sent = send(yard, &load, time)?;
    yard.sink().settle(&ends, before + sent.frames)?;
    yard.sink().latency()
}

fn send(yard: &Yard, load: &Load, time: Duration) -> Result<Sent> {
    yard.run().inside(OUTSIDE, || Generator::load(load)?.run(time, pin::GENERATOR))
}

fn run(yard: &Yard, generator: &Generator, time: Duration) -> Result<Sent> {
    yard.run().inside(OUTSIDE, || generator.run(time, pin::GENERATOR))
}

fn spread(shares: &[u64]) -> Spread {
    let mean = shares.iter().sum::<u64>() as f64 / shares.len().max(1) as f64;
    let over = |share: Option<&u64>| share.map_or(0.0, |share| *share as f64 / mean.max(1.0));
    Spread { least: over(shares.iter().min()), most: over(shares.iter().max()) }
}

/// Share of one core that a system uses over a time without load.
///
/// # Errors
/// It has ended.
pub fn idle_share(running: &mut Running, time: Duration) -> Result<f64> {
    let (before, began) = (running.core_time()?, Instant::now());
    std::thread::sleep(time);
    let used = running.core_time()?.saturating_sub(before);
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
    running.check()?;
    Ok(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_over_the_mean() {
        assert_eq!(spread(&[90, 100, 110]), Spread { least: 0.9, most: 1.1 });
        assert_eq!(spread(&[]), Spread { least: 0.0, most: 0.0 });
    }
}
