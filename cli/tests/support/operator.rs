//! Somebody at a pseudo terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{DEADLINE, Daemon, eventually};

/// Somebody at a terminal.
pub struct Operator {
    child: Child,
    pub keys: File,
    output: Receiver<Vec<u8>>,
    /// What was on the screen since the last thing that was awaited.
    seen: String,
}

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
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let terminal = ptsname(&master, Vec::new()).unwrap();
        let open = || {
            let terminal = File::options().read(true).write(true).open(terminal.to_str().unwrap()).unwrap();
            Stdio::from(terminal)
        };
        // setsid makes the terminal the controlling one, so that Ctrl-C becomes a signal.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_sluice"), "--socket"]).arg(&daemon.socket);
        command
            .args(arguments)
            .env("TERM", "xterm")
            .env("USER", "eng")
            .env("HOME", daemon.directory.path())
            .env("NO_COLOR", no_color);
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let (send, output) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal is gone with an error when sluice has left.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                if send.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Operator { child, keys, output, seen: String::new() }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text on the screen; what came up to it is returned and forgotten.
    pub fn see(&mut self, text: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{text:?} did not come ({error}); on the screen: {:?}", self.seen),
            }
        }
    }

    pub fn leave(mut self) -> i32 {
        eventually("sluice ends", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
