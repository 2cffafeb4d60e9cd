//! The event log: a ring in memory, JSON lines on disk where asked for ([`EventFile`]), and the log of the process.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use api::{Event, EventKind, Severity};
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
    file: Option<EventFile>,
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
            log: Mutex::new(Log { ring: VecDeque::new(), next, file: None }),
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

    /// Events behind `after`, oldest first, the newest `last` of them.
    #[must_use]
    pub fn list(&self, after: u64, last: Option<usize>) -> Vec<Event> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let start = log.ring.partition_point(|event| event.id <= after);
        let skip = last.map_or(start, |last| start.max(log.ring.len().saturating_sub(last)));
        log.ring.iter().skip(skip).cloned().collect()
    }
}
