//! A program at a pseudo terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::glass::Glass;
use super::{DEADLINE, eventually};

/// A program at a terminal, its keys and its screen.
pub struct Terminal {
    child: Child,
    pub keys: File,
    output: Receiver<Vec<u8>>,
    /// What was on the screen since the last thing that was awaited.
    seen: String,
}

impl Terminal {
    /// Starts a program at a terminal of its own.
    pub fn start(program: &Command, rows: u16) -> Self {
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
        command.args(["--ctty", "--wait"]).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
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
        Terminal { child, keys, output, seen: String::new() }
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

    /// Waits until the screen is as wanted.
    pub fn watch(&mut self, glass: &mut Glass, what: &str, wanted: impl Fn(&Glass) -> bool) {
        let end = Instant::now() + DEADLINE;
        glass.write(&std::mem::take(&mut self.seen));
        while !wanted(glass) {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => glass.write(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{what}: not in time ({error}); on the screen:\n{}", glass.text()),
            }
        }
    }

    /// Presses a key, again where nothing comes of it, until a text is on the screen.
    pub fn press_until(&mut self, key: &str, text: &str) -> String {
        let end = Instant::now() + DEADLINE;
        while !self.seen.contains(text) && Instant::now() < end {
            self.press(key);
            let again = Instant::now() + Duration::from_secs(5);
            while !self.seen.contains(text)
                && let Ok(bytes) = self.output.recv_timeout(again.saturating_duration_since(Instant::now()))
            {
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        self.see(text)
    }

    /// The exit status, as a shell has it.
    pub fn leave(mut self) -> i32 {
        eventually("sluice ends", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
