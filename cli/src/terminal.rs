//! What a terminal can do: its size, single keys, pages.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

use crate::render::{Style, harmless_lines};
use crate::session::Interrupt;

/// Which of standard input and output are a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Keys can be read.
    pub keys: bool,
    /// A screen can be drawn.
    pub screen: bool,
    /// The cursor can be moved about on the screen.
    pub full_screen: bool,
    /// Colours are wanted.
    pub colour: bool,
}

impl Terminal {
    /// Looks at this process's standard input and output, `NO_COLOR` and `TERM`.
    pub fn of_this_process() -> Self {
        let screen = io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let term = std::env::var("TERM").unwrap_or_default();
        let dumb = matches!(term.as_str(), "" | "dumb" | "unknown");
        // The terminals of old, and what calls itself one of them.
        let mono = term.starts_with("vt1")
            || term.starts_with("vt2")
            || term.ends_with("-m")
            || term.contains("mono");
        Terminal {
            keys: io::stdin().is_terminal(),
            screen,
            full_screen: screen && !dumb,
            colour: screen && !set("NO_COLOR") && !dumb && !mono,
        }
    }

    /// How text looks here.
    pub fn style(self) -> Style {
        Style { colour: self.colour }
    }

    /// Text is shown in pages.
    pub fn pages(self) -> bool {
        self.keys && self.screen
    }
}

/// Says something on standard error, without control characters. Where that cannot be written there is
/// nobody to tell.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(format!("{}\n", harmless_lines(text)).as_bytes());
}

/// Columns and rows; 80 by 24 where the terminal does not say.
pub fn size() -> (usize, usize) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// What came from standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A screen on.
    Page,
    /// A screen back.
    PageBack,
    /// A line on.
    Line,
    /// A line back.
    LineBack,
    /// To the first line.
    Top,
    /// To the last line.
    Bottom,
    /// No more: q, Ctrl-C, Ctrl-D, or the other end of standard input or output is closed.
    Quit,
    /// Some other key.
    Other,
    /// None in that time.
    Nothing,
}

/// Single keys without echo, until dropped.
#[derive(Debug)]
pub struct Keys {
    before: Option<Termios>,
    interrupt: Interrupt,
    /// Standard input can be closed by the other end.
    closable: bool,
}

impl Keys {
    /// Standard input, key by key where it is a terminal.
    pub fn new(interrupt: Interrupt) -> Self {
        // A job in the background would be stopped if it touched the terminal.
        let foreground = tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        let before = tcgetattr(stdin()).ok().filter(|_| foreground);
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
            raw.special_codes[SpecialCodeIndex::VMIN] = 1;
            raw.special_codes[SpecialCodeIndex::VTIME] = 0;
            // Without it keys work after Enter only.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &raw);
        }
        let kind = rustix::fs::fstat(stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        // A file or /dev/null was never open to anybody: it cannot be closed either.
        let closable = isatty(stdin()) || matches!(kind, Ok(FileType::Fifo | FileType::Socket));
        Keys { before, interrupt, closable }
    }

    /// Standard input is a terminal of this process.
    pub fn are_there(&self) -> bool {
        self.before.is_some()
    }

    /// Ctrl-C was pressed.
    pub fn interrupted(&self) -> bool {
        self.interrupt.pressed()
    }

    /// Waits for a key; for ever without a time.
    pub fn wait(&self, time: Option<Duration>) -> Key {
        let timeout = time.map(|time| Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        // What waits to be read belongs to the script there; only the end of it matters here.
        let wanted = if self.before.is_some() { PollFlags::IN } else { PollFlags::RDHUP };
        let (input, output) = (stdin(), stdout());
        // Of the output only an error matters: nobody reads it any more.
        let mut fds = [PollFd::new(&output, PollFlags::empty()), PollFd::new(&input, wanted)];
        let watched = if self.closable { &mut fds[..] } else { &mut fds[..1] };
        let ready = poll(watched, timeout.as_ref());
        if self.interrupt.pressed() {
            return Key::Quit;
        }
        match ready {
            Ok(0) | Err(Errno::INTR) => Key::Nothing,
            Ok(_) if self.before.is_some() && fds[1].revents().contains(PollFlags::IN) => self.read(),
            Ok(_) | Err(_) => Key::Quit,
        }
    }

    fn read(&self) -> Key {
        let mut bytes = [0; 8];
        let Ok(length) = rustix::io::read(stdin(), &mut bytes) else { return Key::Quit };
        match &bytes[..length] {
            b"" | b"q" | b"Q" | b"\x03" | b"\x04" => Key::Quit,
            b" " | b"f" | b"\x1b[6~" => Key::Page,
            b"b" | b"\x1b[5~" => Key::PageBack,
            b"\n" | b"\r" | b"j" | b"\x1b[B" | b"\x1bOB" => Key::Line,
            b"k" | b"\x1b[A" | b"\x1bOA" => Key::LineBack,
            b"g" | b"\x1b[H" | b"\x1b[1~" | b"\x1bOH" => Key::Top,
            b"G" | b"\x1b[F" | b"\x1b[4~" | b"\x1bOF" => Key::Bottom,
            _ => Key::Other,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// Rows that a line takes on a screen of so many columns. Colours take none.
fn rows(line: &str, columns: usize) -> usize {
    let mut width: usize = 0;
    let mut escape = false;
    for c in line.chars() {
        match c {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            _ if escape => {}
            _ => width += 1,
        }
    }
    width.div_ceil(columns.max(1)).max(1)
}

/// Number of lines from `top` on that fit the screen, one row left for the prompt; at least one.
fn fitting(lines: &[String], top: usize) -> usize {
    let (columns, height) = size();
    let mut left = height.saturating_sub(1);
    let fit = lines[top.min(lines.len())..].iter().take_while(|line| {
        let rows = rows(line, columns);
        let fits = rows <= left;
        left = left.saturating_sub(rows);
        fits
    });
    fit.count().max(1)
}

/// Writes lines, a screen at a time where a terminal asks for it.
///
/// # Errors
/// Of writing; a closed pipe among them.
pub fn show(lines: &[String], pages: bool, interrupt: &Interrupt) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if !pages || fitting(lines, 0) >= lines.len() {
        for line in lines {
            if interrupt.pressed() {
                break;
            }
            writeln!(out, "{line}")?;
        }
        return out.flush();
    }
    let keys = Keys::new(interrupt.clone());
    let mut top: usize = 0;
    let mut bottom = fitting(lines, 0);
    write_lines(&mut out, &lines[..bottom])?;
    while bottom < lines.len() {
        write!(out, "\x1b[7m--More-- {}%\x1b[0m", bottom * 100 / lines.len())?;
        out.flush()?;
        let key = keys.wait(None);
        write!(out, "\r\x1b[K")?;
        let shown = bottom;
        let back = |lines_back: usize| top.saturating_sub(lines_back);
        match key {
            Key::Quit => break,
            Key::Page => bottom += fitting(lines, bottom),
            Key::Line => bottom += 1,
            Key::Bottom => bottom = lines.len(),
            Key::PageBack | Key::LineBack | Key::Top => {
                top = match key {
                    Key::PageBack => back(bottom - top),
                    Key::LineBack => back(1),
                    _ => 0,
                };
                bottom = (top + fitting(lines, top)).min(lines.len());
                write!(out, "\x1b[H\x1b[2J")?;
                write_lines(&mut out, &lines[top..bottom])?;
                continue;
            }
            Key::Other | Key::Nothing => continue,
        }
        bottom = bottom.min(lines.len());
        write_lines(&mut out, &lines[shown..bottom])?;
        // The first line that is still on the screen.
        while fitting(lines, top) < bottom - top {
            top += 1;
        }
    }
    out.flush()
}

fn write_lines(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_take_more_rows_and_colours_none() {
        assert_eq!(rows("", 80), 1);
        assert_eq!(rows(&"x".repeat(80), 80), 1);
        assert_eq!(rows(&"x".repeat(81), 80), 2);
        assert_eq!(rows(&format!("\x1b[32m{}\x1b[0m", "x".repeat(80)), 80), 1);
    }
}
