//! The event log: a ring in memory, JSON lines on disk where asked for, and the log of the process.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use api::Event;
use liveness::Nanos;
use tokio::sync::broadcast;

use crate::clock;

/// Events kept in memory.
const RING: usize = 10_000;

/// What happened, before it is numbered.
#[derive(Clone, Debug)]
pub struct News {
    /// When, on the monotonic clock.
    pub at: Nanos,
    /// `info`, `warning` or `error`.
    pub severity: &'static str,
    /// `pair`, `unit`, `mode`, `port`, `configuration`, `target` or `liveness`.
    pub kind: &'static str,
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
    pub fn now(severity: &'static str, kind: &'static str, subject: &str, reason: impl Into<String>) -> Self {
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
    file: Option<File>,
}

/// Events that a slow follower may be behind.
const BEHIND: usize = 1024;

/// The event log.
pub struct Events {
    log: Mutex<Log>,
    followers: broadcast::Sender<Event>,
}

impl Events {
    /// A log whose first event has the number `next`; lines are appended to `file`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(next: u64, file: Option<&Path>) -> io::Result<Self> {
        let file = file.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Events {
            log: Mutex::new(Log { ring: VecDeque::new(), next, file }),
            followers: broadcast::Sender::new(BEHIND),
        })
    }

    /// Numbers and logs.
    pub fn log(&self, news: News) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event {
            id: log.next,
            time: clock::calendar(news.at),
            monotonic_ns: news.at.0,
            severity: news.severity.to_owned(),
            kind: news.kind.to_owned(),
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
        match event.severity.as_str() {
            "error" => tracing::error!(event = event.id, "{text}"),
            "warning" => tracing::warn!(event = event.id, "{text}"),
            _ => tracing::info!(event = event.id, "{text}"),
        }
        if let Some(file) = &mut log.file {
            let written = serde_json::to_vec(&event).map_err(io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                file.write_all(&line)
            });
            if let Err(error) = written {
                tracing::error!("the event file cannot be written and is given up: {error}");
                log.file = None;
            }
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
