//! What the user watches: lines of progress, and on a terminal a table of pairs that is redrawn in place.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::sluice::{Balancer, Sluice};

/// How often the table is refreshed.
const REFRESH: Duration = Duration::from_millis(200);

/// Standard output, shared by the scenario and the live table.
#[derive(Debug)]
pub struct Screen {
    began: Instant,
    terminal: bool,
    silent: bool,
    table: Mutex<Vec<String>>,
}

impl Default for Screen {
    fn default() -> Self {
        Screen {
            began: Instant::now(),
            terminal: std::io::stdout().is_terminal(),
            silent: false,
            table: Mutex::new(Vec::new()),
        }
    }
}

impl Screen {
    /// A screen that shows nothing.
    pub fn silent() -> Self {
        Screen { silent: true, ..Screen::default() }
    }

    /// Prints a line of progress, with the seconds since the start; above the table if there is one.
    pub fn say(&self, text: &str) {
        let table = self.lock();
        let lines = table.iter().map(|line| format!("\x1b[2K{line}\n")).collect::<String>();
        let up = if table.is_empty() { String::new() } else { format!("\x1b[{}A\x1b[2K", table.len()) };
        self.print(&format!("{up}{:6.1} s  {text}\n{lines}", self.began.elapsed().as_secs_f64()));
    }

    /// Prints text as it is.
    pub fn print(&self, text: &str) {
        if self.silent {
            return;
        }
        let mut output = std::io::stdout().lock();
        // Nobody may be reading; the exit status still says how it ended.
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn redraw(&self, lines: Vec<String>) {
        let mut table = self.lock();
        let up = if table.is_empty() { String::new() } else { format!("\x1b[{}A", table.len()) };
        let body: String = lines.iter().map(|line| format!("\x1b[2K{line}\n")).collect();
        self.print(&format!("{up}{body}"));
        *table = lines;
    }

    /// Shows the pairs until the returned guard is dropped: a table on a terminal, else a line per change.
    pub fn watch(self: &Arc<Self>, sluice: Sluice) -> Watch {
        let ended = Arc::new(AtomicBool::new(false));
        let (screen, end) = (Arc::clone(self), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            let mut before: Option<Balancer> = None;
            while !end.load(Ordering::Relaxed) {
                // While the controller is away the last table stays.
                if let Ok(now) = sluice.balancer() {
                    if screen.terminal {
                        screen.redraw(table(&now, before.as_ref()));
                    } else {
                        changes(&now, before.as_ref()).iter().for_each(|line| screen.say(line));
                    }
                    before = Some(now);
                }
                std::thread::sleep(REFRESH);
            }
            screen.lock().clear();
        });
        Watch { ended, thread: Some(thread) }
    }
}

/// Ends the live table when dropped.
#[derive(Debug)]
pub struct Watch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The table of pairs; rates come from the counters of the refresh before.
fn table(now: &Balancer, before: Option<&Balancer>) -> Vec<String> {
    let mut lines = Vec::new();
    for unit in &now.units {
        lines.push(format!("  unit {} is {} (mode {})", unit.name, unit.state, unit.mode));
        lines.push(
            "  pair         state        share    to appliance   returned   frames/s   reason".to_string(),
        );
        for pair in &unit.pairs {
            let earlier = before.and_then(|b| b.pairs().find(|p| p.name == pair.name));
            let sent = earlier.map_or(0, |earlier| pair.tx_packets.saturating_sub(earlier.tx_packets));
            let rate = sent as f64 / REFRESH.as_secs_f64();
            lines.push(format!(
                "  {:<12} {:<10} {:>6.1} % {:>14} {:>10} {:>10.0}   {}",
                pair.name,
                pair.state,
                pair.share_percent,
                pair.tx_packets,
                pair.rx_packets,
                rate,
                pair.last_reason.as_deref().unwrap_or("")
            ));
        }
    }
    lines
}

fn changes(now: &Balancer, before: Option<&Balancer>) -> Vec<String> {
    let mut lines = Vec::new();
    for unit in &now.units {
        let earlier = before.and_then(|b| b.units.iter().find(|u| u.name == unit.name));
        if earlier.is_none_or(|earlier| earlier.state != unit.state) {
            lines.push(format!("unit {} is {}", unit.name, unit.state));
        }
        for pair in &unit.pairs {
            let was = before.map_or("absent", |b| b.state(&pair.name));
            if was != pair.state {
                let reason = pair.last_reason.as_deref().unwrap_or("no reason given");
                lines.push(format!("pair {} is {} ({reason})", pair.name, pair.state));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer(state: &str, sent: u64) -> Balancer {
        serde_json::from_value(serde_json::json!({"units": [{"name": "main", "state": "up", "mode": "auto",
            "pairs": [{"name": "a", "state": state, "tx-packets": sent}]}]}))
        .expect("balancer")
    }

    #[test]
    fn only_changes_make_lines() {
        let up = balancer("up", 0);
        assert_eq!(changes(&up, None).len(), 2);
        assert_eq!(changes(&up, Some(&up)), Vec::<String>::new());
        assert_eq!(changes(&balancer("down", 0), Some(&up)), ["pair a is down (no reason given)"]);
    }

    #[test]
    fn the_table_shows_rates() {
        let lines = table(&balancer("up", 300), Some(&balancer("up", 100)));
        assert_eq!(lines.len(), 3);
        assert!(lines[2].contains("1000"), "{}", lines[2]);
    }
}
