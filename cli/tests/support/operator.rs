//! Somebody at a pseudo terminal.

use std::ops::{Deref, DerefMut};
use std::process::Command;

use super::Daemon;
use super::terminal::Terminal;

/// Somebody at a terminal.
pub struct Operator(Terminal);

impl Operator {
    pub fn sit_down(daemon: &Daemon, rows: u16) -> Self {
        Operator::sit_down_with(daemon, rows, "")
    }

    pub fn sit_down_with(daemon: &Daemon, rows: u16, no_color: &str) -> Self {
        let mut operator = Operator::start(daemon, rows, no_color, &[]);
        operator.see("> ");
        operator
    }

    /// Sluice with arguments, as over ssh with a terminal.
    pub fn start(daemon: &Daemon, rows: u16, no_color: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command
            .arg("--socket")
            .arg(&daemon.socket)
            .args(arguments)
            .env("TERM", "xterm")
            .env("USER", "eng")
            .env("HOME", daemon.directory.path())
            .env("NO_COLOR", no_color);
        Operator(Terminal::start(&command, rows))
    }

    pub fn leave(self) -> i32 {
        self.0.leave()
    }
}

impl Deref for Operator {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.0
    }
}

impl DerefMut for Operator {
    fn deref_mut(&mut self) -> &mut Terminal {
        &mut self.0
    }
}
