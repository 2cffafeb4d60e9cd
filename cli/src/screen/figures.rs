//! What the screen shows: the last reading, and what becomes visible only between readings.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use api::{Balancer, Count, Drops, Event, NewEvents, Pair, Unit};

/// Time-on-path is kept that long, a slot a second.
pub const HISTORY: u64 = 60;
/// Events that are kept.
const EVENTS: usize = 200;
/// Readings closer together say nothing about a rate.
const SHORTEST: Duration = Duration::from_millis(300);

/// What sluiced said at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Since the watching began.
    pub at: Duration,
    /// By the calendar.
    pub time: SystemTime,
    /// Units and pairs.
    pub balancer: Balancer,
    /// Verdicts of frames.
    pub drops: Drops,
    /// What happened since the last reading.
    pub news: NewEvents,
}

/// Something a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Frames.
    pub packets: f64,
    /// Bits of the frames.
    pub bits: f64,
}

/// A count that is read again and again.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    last: Option<Count>,
    rate: Option<Rate>,
}

impl Counter {
    /// `elapsed` since the last reading.
    fn read(&mut self, count: Option<Count>, elapsed: Option<Duration>) {
        self.rate = match (self.last, count, elapsed) {
            // One that went backwards began anew: its rate is not known yet.
            (Some(last), Some(now), Some(elapsed))
                if now.packets >= last.packets && now.bytes >= last.bytes =>
            {
                let a_second = |count: u64| count as f64 / elapsed.as_secs_f64();
                Some(Rate {
                    packets: a_second(now.packets - last.packets),
                    bits: a_second(now.bytes - last.bytes) * 8.0,
                })
            }
            _ => None,
        };
        self.last = count;
    }
}

/// What is known of a pair beside its last reading.
#[derive(Clone, Debug, Default)]
pub struct Track {
    up: Counter,
    down: Counter,
    sent: Counter,
    back: Counter,
    /// Second of the watching, and time-on-path in it in ns: that of the slower direction.
    delays: VecDeque<(u64, u64)>,
}

impl Track {
    /// To the appliance by its LAN port.
    pub fn up(&self) -> Option<Rate> {
        self.up.rate
    }

    /// To the appliance by its WAN port.
    pub fn down(&self) -> Option<Rate> {
        self.down.rate
    }

    /// To the appliance by either port.
    pub fn sent(&self) -> Option<Rate> {
        self.sent.rate
    }

    /// From the appliance to links.
    pub fn back(&self) -> Option<Rate> {
        self.back.rate
    }

    fn read(&mut self, pair: &Pair, second: u64, elapsed: Option<Duration>) {
        let total = |packets, bytes| Some(Count { packets, bytes });
        self.up.read(pair.up, elapsed);
        self.down.read(pair.down, elapsed);
        self.sent.read(total(pair.tx_packets, pair.tx_bytes), elapsed);
        self.back.read(total(pair.rx_packets, pair.rx_bytes), elapsed);
        self.delays.retain(|(then, _)| *then + HISTORY > second && *then < second);
        if let Some(delay) = slower(pair) {
            self.delays.push_back((second, delay));
        }
    }
}

/// Time-on-path of the slower direction, ns.
pub(super) fn slower(pair: &Pair) -> Option<u64> {
    pair.lan_to_wan_ns.max(pair.wan_to_lan_ns)
}

/// Frames a second with one verdict for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictRate {
    /// `to-ecofilter`, `return`, `to-controller`, `bypass` or `drop`.
    pub verdict: String,
    /// Why, where it is a bypass or a drop.
    pub reason: Option<String>,
    /// None where it is not known yet.
    pub rate: Option<Rate>,
}

/// sluiced does not answer.
#[derive(Clone, Debug)]
pub struct Away {
    /// Since then.
    pub since: SystemTime,
    /// What happens when it is asked.
    pub reason: String,
}

/// Everything that the screen shows.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    last: Option<Reading>,
    tracks: BTreeMap<(String, String), Track>,
    verdicts: BTreeMap<(String, Option<String>), Counter>,
    frames_in: Counter,
    events: VecDeque<Event>,
    missed: u64,
    away: Option<Away>,
}

impl Figures {
    /// A reading has come.
    pub fn read(&mut self, reading: Reading) {
        let elapsed = self.last.as_ref().map(|last| reading.at.saturating_sub(last.at));
        let elapsed = elapsed.filter(|elapsed| *elapsed >= SHORTEST);
        // Readings come a little late, never early: the second next to it is the one that it is for.
        let second = (reading.at + Duration::from_millis(500)).as_secs();
        let mut tracks = std::mem::take(&mut self.tracks);
        for unit in &reading.balancer.units {
            for pair in &unit.pairs {
                let name = (unit.name.clone(), pair.name.clone());
                let mut track = tracks.remove(&name).unwrap_or_default();
                track.read(pair, second, elapsed);
                self.tracks.insert(name, track);
            }
        }
        // What a reading does not name has not happened yet.
        let mut verdicts = std::mem::take(&mut self.verdicts);
        let began = self.last.is_some();
        for verdict in &reading.drops.verdicts {
            let name = (verdict.verdict.clone(), verdict.reason.clone());
            let fresh = Counter { last: began.then(Count::default), rate: None };
            let mut counter = verdicts.remove(&name).unwrap_or(fresh);
            counter.read(Some(Count { packets: verdict.packets, bytes: verdict.bytes }), elapsed);
            self.verdicts.insert(name, counter);
        }
        let frames_in = Count { packets: reading.drops.frames_in, bytes: 0 };
        self.frames_in.read(Some(frames_in), elapsed);
        self.events.extend(reading.news.events.iter().cloned());
        self.events.drain(..self.events.len().saturating_sub(EVENTS));
        self.missed += reading.news.missed;
        self.away = None;
        self.last = Some(reading);
    }

    /// sluiced did not answer, at that time.
    pub fn lose(&mut self, time: SystemTime, reason: String) {
        let since = self.away.as_ref().map_or(time, |away| away.since);
        self.away = Some(Away { since, reason });
    }

    /// The last reading; none before the first.
    pub fn last(&self) -> Option<&Reading> {
        self.last.as_ref()
    }

    /// Units in name order.
    pub fn units(&self) -> &[Unit] {
        self.last.as_ref().map_or(&[], |last| &last.balancer.units)
    }

    /// What is known of a pair beside the last reading.
    pub fn track(&self, unit: &str, pair: &str) -> Option<&Track> {
        self.tracks.get(&(unit.to_owned(), pair.to_owned()))
    }

    /// Frames to the appliances of a unit.
    pub fn sent_by(&self, unit: &Unit) -> Option<Rate> {
        let rates = unit.pairs.iter().map(|pair| self.track(&unit.name, &pair.name)?.sent());
        rates
            .flatten()
            .reduce(|sum, rate| Rate { packets: sum.packets + rate.packets, bits: sum.bits + rate.bits })
    }

    /// Part of the frames to all appliances that goes to those of a unit, percent.
    pub fn share_of(&self, unit: &Unit) -> Option<f64> {
        let packets = |unit: &Unit| self.sent_by(unit).map(|rate| rate.packets);
        let all: f64 = self.units().iter().filter_map(packets).sum();
        packets(unit).filter(|_| all > 0.0).map(|packets| packets * 100.0 / all)
    }

    /// Frames received on all ports, a second.
    pub fn frames_in(&self) -> Option<f64> {
        self.frames_in.rate.map(|rate| rate.packets)
    }

    /// Verdicts that frames ever had, in the order in which sluiced names them.
    pub fn verdicts(&self) -> Vec<VerdictRate> {
        let verdicts = self.last.as_ref().map_or(&[][..], |last| &last.drops.verdicts);
        let rate = |name| self.verdicts.get(&name).and_then(|counter: &Counter| counter.rate);
        verdicts
            .iter()
            .map(|verdict| VerdictRate {
                verdict: verdict.verdict.clone(),
                reason: verdict.reason.clone(),
                rate: rate((verdict.verdict.clone(), verdict.reason.clone())),
            })
            .collect()
    }

    /// What happened, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator {
        self.events.iter()
    }

    /// Events that sluiced forgot before they could be read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Since when sluiced does not answer; none where it does.
    pub fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    /// Time-on-path of a pair in so many columns, the last minute over all of them, the newest last: parts of the
    /// longest in it, 0..=1; none where nothing came back.
    pub fn history(&self, unit: &str, pair: &str, columns: usize) -> Vec<Option<f64>> {
        let mut longest = vec![None; columns];
        let (Some(track), Some(last)) = (self.track(unit, pair), &self.last) else {
            return vec![None; columns];
        };
        let newest = (last.at + Duration::from_millis(500)).as_secs();
        for (second, delay) in &track.delays {
            let age = newest.saturating_sub(*second);
            let from_left = HISTORY.saturating_sub(age + 1) as usize * columns / HISTORY as usize;
            if let Some(column) = longest.get_mut(from_left) {
                *column = (*column).max(Some(*delay));
            }
        }
        let top = longest.iter().flatten().copied().max().unwrap_or_default().max(1);
        longest.into_iter().map(|delay| delay.map(|delay| delay as f64 / top as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(readings: &[(u64, u64)]) -> Option<Rate> {
        let mut counter = Counter::default();
        let mut elapsed = None;
        for (packets, bytes) in readings {
            counter.read(Some(Count { packets: *packets, bytes: *bytes }), elapsed);
            elapsed = Some(Duration::from_secs(2));
        }
        counter.rate
    }

    #[test]
    fn a_rate_is_what_came_between_two_readings() {
        assert_eq!(counter(&[(100, 1000)]), None);
        assert_eq!(counter(&[(100, 1000), (300, 2000)]), Some(Rate { packets: 100.0, bits: 4000.0 }));
        // The data plane began anew.
        assert_eq!(counter(&[(100, 1000), (3, 20)]), None);
        assert_eq!(counter(&[(100, 1000), (3, 20), (5, 60)]), Some(Rate { packets: 1.0, bits: 160.0 }));
    }
}
