//! The event log: a ring in memory, JSON lines on disk where asked for ([`EventFile`]), and the log of the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use api::{Event, EventFilter, EventKind, NewEvents, Severity};
use liveness::Nanos;
use tokio::sync::broadcast;

use crate::clock;

mod file;

pub use file::{EventFile, FileSettings};

/// Events kept in memory.
const RING: usize = 10_000;

/// What happened, before it is numbered.
#[derive(Clone, Debug)]
pub struct News {
    /// When, on the monotonic clock.
    pub at: Nanos,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub kind: EventKind,
    /// The thing's name.
    pub subject: String,
    /// State before.
    pub before: Option<String>,
    /// State after.
    pub after: Option<String>,
    /// Why.
    pub reason: String,
    /// More, in words.
    pub detail: Option<String>,
    /// When the data plane had it.
    pub written: Option<Nanos>,
}

impl News {
    /// News of now, without states.
    #[must_use]
    pub fn now(severity: Severity, kind: EventKind, subject: &str, reason: impl Into<String>) -> Self {
        News {
            at: clock::now(),
            severity,
            kind,
            subject: subject.to_owned(),
            before: None,
            after: None,
            reason: reason.into(),
            detail: None,
            written: None,
        }
    }

    /// With states before and after.
    #[must_use]
    pub fn change(mut self, before: impl Into<String>, after: impl Into<String>) -> Self {
        self.before = Some(before.into());
        self.after = Some(after.into());
        self
    }
}

struct Log {
    ring: VecDeque<Event>,
    next: u64,
    /// Events that the ring had no room for any more: those before its first, of this process.
    forgotten: u64,
    /// Since the start.
    counts: BTreeMap<(EventKind, Severity), u64>,
    file: Option<EventFile>,
}

impl Log {
    fn behind(&self, after: u64, last: Option<usize>, filter: &EventFilter) -> Vec<Event> {
        let start = self.ring.partition_point(|event| event.id <= after);
        let wanted = self.ring.range(start..).rev().filter(|event| filter.admits(event));
        let mut events: Vec<Event> = wanted.take(last.unwrap_or(usize::MAX)).cloned().collect();
        events.reverse();
        events
    }
}

/// Events that a slow follower may be behind.
const BEHIND: usize = 1024;

/// The event log.
pub struct Events {
    log: Mutex<Log>,
    followers: broadcast::Sender<Event>,
}

impl Events {
    /// A log whose first event has the number `next`.
    #[must_use]
    pub fn new(next: u64) -> Self {
        Events {
            log: Mutex::new(Log {
                ring: VecDeque::new(),
                next,
                forgotten: 0,
                counts: BTreeMap::new(),
                file: None,
            }),
            followers: broadcast::Sender::new(BEHIND),
        }
    }

    /// Writes what happens from now on to this file too, or to none; the one before gets what came before.
    pub fn keep_in(&self, file: Option<EventFile>) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).file = file;
    }

    /// Numbers and logs.
    pub fn log(&self, news: News) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event {
            id: log.next,
            time: clock::calendar(news.at),
            monotonic_ns: news.at.0,
            severity: news.severity,
            kind: news.kind,
            subject: news.subject,
            before: news.before,
            after: news.after,
            reason: news.reason,
            detail: news.detail,
            data_plane_ns: news.written.map(|written| written.since(news.at).0),
        };
        log.next += 1;
        *log.counts.entry((event.kind, event.severity)).or_default() += 1;
        let change = match (&event.before, &event.after) {
            (Some(before), Some(after)) => format!(" {before} -> {after}"),
            _ => String::new(),
        };
        let text = format!(
            "{} {}{change}: {}{}",
            event.kind,
            event.subject,
            event.reason,
            event.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default()
        );
        match event.severity {
            Severity::Error => tracing::error!(
                event = event.id,
                kind = event.kind.as_str(),
                subject = event.subject,
                "{text}"
            ),
            Severity::Warning => tracing::warn!(
                event = event.id,
                kind = event.kind.as_str(),
                subject = event.subject,
                "{text}"
            ),
            Severity::Info => tracing::info!(
                event = event.id,
                kind = event.kind.as_str(),
                subject = event.subject,
                "{text}"
            ),
        }
        if let Some(file) = &log.file {
            file.write(&event);
        }
        if log.ring.len() == RING {
            log.ring.pop_front();
            log.forgotten += 1;
        }
        // Nobody needs to follow.
        let _ = self.followers.send(event.clone());
        log.ring.push_back(event);
    }

    /// Follows what happens from now on.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Event> {
        self.followers.subscribe()
    }

    /// Follows what happens from now on, that is, behind the event with this id; 0 where there was none yet.
    #[must_use]
    pub fn follow_from(&self) -> (broadcast::Receiver<Event>, u64) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        (self.followers.subscribe(), log.ring.back().map_or(0, |event| event.id))
    }

    /// How many there were since the start, of every kind and severity that there may be.
    #[must_use]
    pub fn counts(&self) -> Vec<(EventKind, Severity, u64)> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |kind, severity| log.counts.get(&(kind, severity)).copied().unwrap_or_default();
        EventKind::ALL
            .into_iter()
            .flat_map(|kind| Severity::ALL.map(|severity| (kind, severity, of(kind, severity))))
            .collect()
    }

    /// Events behind `after`, oldest first, the newest `last` of them.
    #[must_use]
    pub fn list(&self, after: u64, last: Option<usize>) -> Vec<Event> {
        self.select(after, last, &EventFilter::default())
    }

    /// Those of [`Events::list`] that are wanted, the newest `last` of them.
    #[must_use]
    pub fn select(&self, after: u64, last: Option<usize>, filter: &EventFilter) -> Vec<Event> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).behind(after, last, filter)
    }

    /// What a follower who knows everything up to `after` has to learn.
    #[must_use]
    pub fn since(&self, after: u64, filter: &EventFilter) -> NewEvents {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = log.ring.front().map_or(log.next, |event| event.id);
        NewEvents {
            newest: after.max(log.next.saturating_sub(1)),
            // What was before this process is not in its ring, but nobody forgot it either.
            missed: oldest.saturating_sub(after.saturating_add(1)).min(log.forgotten),
            events: log.behind(after, None, filter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: EventKind, severity: Severity, subject: &str) -> News {
        News::now(severity, kind, subject, "because")
    }

    fn subjects(events: &[Event]) -> Vec<&str> {
        events.iter().map(|event| event.subject.as_str()).collect()
    }

    #[test]
    fn a_filter_leaves_what_was_asked_for() {
        let log = Events::new(1);
        log.log(of(EventKind::Pair, Severity::Warning, "main/f1"));
        log.log(of(EventKind::Unit, Severity::Error, "main"));
        log.log(of(EventKind::Pair, Severity::Info, "main/f1"));
        log.log(of(EventKind::Pair, Severity::Error, "other/f1"));
        let list = |last, filter: EventFilter| log.select(0, last, &filter);
        let pairs = EventFilter { kind: Some(EventKind::Pair), ..EventFilter::default() };
        assert_eq!(subjects(&list(None, pairs.clone())), ["main/f1", "main/f1", "other/f1"]);
        // The newest of those that are wanted, not the wanted among the newest.
        let mine = EventFilter { subject: Some("main/".into()), ..pairs.clone() };
        assert_eq!(list(Some(1), mine).iter().map(|event| event.id).collect::<Vec<_>>(), [3]);
        let bad = EventFilter { severity: Some(Severity::Warning), ..EventFilter::default() };
        assert_eq!(subjects(&list(None, bad)), ["main/f1", "main", "other/f1"]);
        assert_eq!(log.select(3, None, &pairs).len(), 1);
    }

    #[test]
    fn a_follower_learns_how_many_events_it_missed() {
        let log = Events::new(1000);
        let units = EventFilter { kind: Some(EventKind::Unit), ..EventFilter::default() };
        // It followed another process before: what that one said is not missed here.
        assert_eq!(log.since(3, &units), NewEvents { events: vec![], newest: 999, missed: 0 });
        for _ in 0..RING + 5 {
            log.log(of(EventKind::Pair, Severity::Info, "main/f1"));
        }
        let newest = 999 + RING as u64 + 5;
        assert_eq!(log.since(3, &units), NewEvents { events: vec![], newest, missed: 5 });
        assert_eq!(log.since(1001, &units).missed, 3);
        assert_eq!(log.since(1004, &units).missed, 0);
        assert_eq!(log.since(newest, &units), NewEvents { events: vec![], newest, missed: 0 });
    }
}
