//! Events as JSON lines on disk. A thread of its own writes them: a slow disk slows nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use api::Event;

/// Events that may wait for the disk.
const WAITING: usize = 10_000;
const MEBIBYTE: u64 = 1 << 20;

/// What is written where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// The file; older ones have `.1`, `.2` and so on behind its name.
    pub path: PathBuf,
    /// It is put aside once it has this many MiB, 1..=4096.
    pub max_size: u32,
    /// Files that were put aside and are kept, 1..=100.
    pub files: u8,
}

/// A file of events.
pub struct EventFile {
    lines: SyncSender<Vec<u8>>,
    lost: Arc<AtomicU64>,
}

impl EventFile {
    /// Appends to a file.
    ///
    /// # Errors
    /// It cannot be opened, or the system gives no thread.
    pub fn open(settings: FileSettings) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::<AtomicU64>::default();
        let mut writer = Writer {
            file: None,
            size: 0,
            limit: u64::from(settings.max_size) * MEBIBYTE,
            settings,
            failed: false,
        };
        writer.reopen()?;
        let missed = lost.clone();
        thread::Builder::new().name("event-file".to_owned()).spawn(move || writer.run(&waiting, &missed))?;
        Ok(EventFile { lines, lost })
    }

    /// Writes a line, as soon as the disk takes it; one that finds too many waiting is counted as lost.
    pub fn write(&self, event: &Event) {
        // An event of ours has no form that JSON lacks.
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

struct Writer {
    settings: FileSettings,
    file: Option<File>,
    size: u64,
    limit: u64,
    /// The last try failed, and that has been said.
    failed: bool,
}

impl Writer {
    fn run(mut self, lines: &Receiver<Vec<u8>>, lost: &AtomicU64) {
        while let Ok(line) = lines.recv() {
            let result = self.write(&line);
            if let Err(error) = &result {
                // The next event tries again.
                self.file = None;
                lost.fetch_add(1, Relaxed);
                if !self.failed {
                    tracing::error!(
                        "event file {}: {error}; trying again with each event",
                        self.settings.path.display()
                    );
                }
            }
            if std::mem::replace(&mut self.failed, result.is_err()) && result.is_ok() {
                let lost = lost.swap(0, Relaxed);
                tracing::warn!(
                    "event file {}: written again, {lost} events are not in it",
                    self.settings.path.display()
                );
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + line.len() as u64 > self.limit {
            self.file = None;
            put_aside(&self.settings.path, self.settings.files)?;
        }
        if self.file.is_none() {
            self.reopen()?;
        }
        if let Some(file) = &mut self.file {
            file.write_all(line)?;
            self.size += line.len() as u64;
        }
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(&self.settings.path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }
}

/// Moves `path` to `path.1`, that to `path.2` and so on; the last one goes.
fn put_aside(path: &Path, files: u8) -> io::Result<()> {
    let numbered = |number: u8| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..files).rev() {
        match fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::event::{Events, News};
    use api::{EventKind, Severity};

    fn news(n: usize) -> News {
        News::now(Severity::Info, EventKind::Target, "embedded", format!("{n} {}", "x".repeat(1000)))
    }

    fn ids(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| Some(serde_json::from_str::<Event>(line).ok()?.id)).collect()
    }

    fn wait(what: &str, done: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(Instant::now() < end, "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn files_are_put_aside_in_order_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let settings = FileSettings { path: path.clone(), max_size: 1, files: 2 };
        let events = Events::new(1);
        events.keep_in(Some(EventFile::open(settings).unwrap()));
        for n in 0..4000 {
            events.log(news(n));
            // Never more than wait for the disk.
            if n % 1000 == 999 {
                wait("the last one of a thousand is written", || ids(&path).last() == Some(&(n as u64 + 1)));
            }
        }
        let of = |suffix: &str| ids(&folder.path().join(format!("events.jsonl{suffix}")));
        let all = [of(".2"), of(".1"), of("")].concat();
        assert!(all.len() > 2000 && all.len() < 4000, "{}", all.len());
        assert!(all.windows(2).all(|two| two[0] + 1 == two[1]));
        assert_eq!(all.last(), Some(&4000));
        assert!(!folder.path().join("events.jsonl.3").exists());
        assert!(fs::metadata(&path).unwrap().len() <= MEBIBYTE);
    }

    #[test]
    fn a_file_that_fails_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a");
        fs::create_dir(&inner).unwrap();
        let path = inner.join("events.jsonl");
        let settings = FileSettings { path: path.clone(), max_size: 1, files: 1 };
        let mut writer = Writer { file: None, size: 0, limit: 10, settings, failed: false };
        writer.write(b"12345\n").unwrap();
        fs::remove_dir_all(&inner).unwrap();
        assert!(writer.write(b"67890\n").is_err());
        fs::create_dir(&inner).unwrap();
        writer.file = None;
        writer.size = 0;
        writer.write(b"abcde\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcde\n");
    }
}
