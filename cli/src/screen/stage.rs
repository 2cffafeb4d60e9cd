//! The terminal while the screen is on it, and as it was before once it is not.

use std::fmt;
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::os::unix::net::UnixStream;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::Frame;
use ratatui::backend::TermionBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp,
    tcsetattr,
};
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use super::keys::{Key, Keyboard};

/// To the alternate screen.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J";
/// Back, with a cursor and without colours.
const LEAVE: &[u8] = b"\x1b[?25h\x1b[0m\x1b[?1049l";

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// SIGTERM and SIGHUP. They end the process as they do by default, but not before the terminal is restored.
#[derive(Clone)]
struct Ending {
    by_default: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

/// Taken over once: what is taken over cannot be given back.
static ENDING: Mutex<Option<Ending>> = Mutex::new(None);

impl Ending {
    fn of_this_process() -> io::Result<Self> {
        let mut known = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ending) = &*known {
            return Ok(ending.clone());
        }
        let ending =
            Ending { by_default: Arc::new(AtomicBool::new(true)), signal: Arc::new(AtomicUsize::new(0)) };
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&ending.by_default))?;
            signal_hook::flag::register_usize(
                signal,
                Arc::clone(&ending.signal),
                signal.unsigned_abs() as usize,
            )?;
        }
        Ok(known.insert(ending).clone())
    }
}

/// Why [`Stage::wait`] came back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// Keys that were pressed.
    pub keys: Vec<Key>,
    /// Nobody is at the terminal any more, or wants the process to be there.
    pub over: bool,
    /// The process was stopped meanwhile: the terminal may be as anybody left it.
    pub continued: bool,
}

/// Wakes [`Stage::wait`].
#[derive(Debug)]
pub struct Bell(UnixStream);

impl Bell {
    /// From any thread.
    pub fn ring(&self) {
        // One that rings already need not be rung.
        let _ = (&self.0).write(&[0]);
    }
}

/// The whole terminal, until dropped.
pub struct Stage {
    terminal: ratatui::Terminal<TermionBackend<BufWriter<Stdout>>>,
    before: Option<Termios>,
    keyboard: Keyboard,
    /// Standard input can be closed by the other end.
    closable: bool,
    hook: Arc<Hook>,
    ending: Ending,
    wake: UnixStream,
    bell: UnixStream,
    continued: Arc<AtomicBool>,
    signals: Vec<SigId>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl Stage {
    /// Takes the terminal of this process. Ctrl-C and the like are keys from now on.
    ///
    /// # Errors
    /// What the system says; the terminal is as it was.
    pub fn enter() -> io::Result<Self> {
        let (wake, bell) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let ending = Ending::of_this_process()?;
        let terminal =
            ratatui::Terminal::new(TermionBackend::new(BufWriter::with_capacity(1 << 16, io::stdout())))?;
        let kind = rustix::fs::fstat(stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        // As for [`crate::terminal::Keys`].
        let closable = isatty(stdin()) || matches!(kind, Ok(FileType::Fifo | FileType::Socket));
        // A job in the background would be stopped if it touched the terminal.
        let foreground = tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        let before = tcgetattr(stdin()).ok().filter(|_| foreground);
        let hook: Arc<Hook> = Arc::from(std::panic::take_hook());
        let (then, owner) = (Arc::clone(&hook), thread::current().id());
        let attributes = before.clone();
        std::panic::set_hook(Box::new(move |panic| {
            // What it says would vanish with the alternate screen.
            if thread::current().id() == owner {
                restore(attributes.as_ref());
            }
            then(panic);
        }));
        let mut stage = Stage {
            terminal,
            before,
            keyboard: Keyboard::default(),
            closable,
            hook,
            ending,
            wake,
            bell,
            continued: Arc::default(),
            signals: Vec::new(),
        };
        stage.ending.signal.store(0, Ordering::SeqCst);
        stage.ending.by_default.store(false, Ordering::SeqCst);
        stage.signals.push(signal_hook::flag::register(SIGCONT, Arc::clone(&stage.continued))?);
        for signal in [SIGWINCH, SIGCONT, SIGINT, SIGTERM, SIGHUP] {
            let bell = stage.bell.try_clone()?;
            stage.signals.push(signal_hook::low_level::pipe::register(signal, bell)?);
        }
        stage.take()?;
        Ok(stage)
    }

    /// To the alternate screen, keys one by one.
    fn take(&self) -> io::Result<()> {
        if let Some(before) = &self.before {
            let mut raw = before.clone();
            raw.local_modes &=
                !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
            raw.input_modes &= !(InputModes::ICRNL | InputModes::IXON);
            raw.special_codes[SpecialCodeIndex::VMIN] = 1;
            raw.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        }
        write_all(ENTER)
    }

    /// Wakes [`Stage::wait`] from elsewhere.
    ///
    /// # Errors
    /// What the system says.
    pub fn bell(&self) -> io::Result<Bell> {
        Ok(Bell(self.bell.try_clone()?))
    }

    /// Draws what differs from the last time; all of it where the terminal has another size.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw)?;
        Ok(())
    }

    /// Draws everything the next time: something else wrote on the screen.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn refresh(&mut self) -> io::Result<()> {
        self.take()?;
        let size = self.terminal.size()?;
        self.terminal.resize(ratatui::layout::Rect::new(0, 0, size.width, size.height))
    }

    /// Waits for keys, a signal or the bell, that long at most.
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub fn wait(&mut self, time: Duration) -> io::Result<Woken> {
        let timeout = Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // What waits to be read belongs to the script there; only the end of it matters here.
        let wanted = if self.before.is_some() { PollFlags::IN } else { PollFlags::RDHUP };
        let (input, output) = (stdin(), stdout());
        let mut fds = [
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::new(&output, PollFlags::empty()),
            PollFd::new(&input, wanted),
        ];
        let watched = if self.closable { &mut fds[..] } else { &mut fds[..2] };
        match poll(watched, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [rung, output, input] = fds.map(|fd| fd.revents());
        let mut woken = Woken { over: !output.is_empty(), ..Woken::default() };
        if !rung.is_empty() {
            let mut bytes = [0; 64];
            while matches!((&self.wake).read(&mut bytes), Ok(1..)) {}
        }
        if self.closable && input.contains(PollFlags::IN) && self.before.is_some() {
            let mut bytes = [0; 256];
            match rustix::io::read(stdin(), &mut bytes) {
                Ok(0) => woken.over = true,
                Ok(length) => woken.keys = self.keyboard.read(&bytes[..length]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => woken.over = true,
            }
        } else if self.closable && !input.is_empty() {
            woken.over = true;
        }
        woken.continued = self.continued.swap(false, Ordering::SeqCst);
        woken.over |= self.ending.signal.load(Ordering::SeqCst) != 0;
        Ok(woken)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
        restore(self.before.as_ref());
        // A thread that panics may not change what happens then.
        if !thread::panicking() {
            drop(std::panic::take_hook());
            let hook = Arc::clone(&self.hook);
            std::panic::set_hook(Box::new(move |panic| hook(panic)));
        }
        self.ending.by_default.store(true, Ordering::SeqCst);
        let signal = self.ending.signal.load(Ordering::SeqCst);
        if let Ok(signal @ 1..) = i32::try_from(signal) {
            // Ends the process, with the status that tells of the signal.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// The terminal as it was. Where it cannot be written to there is nobody to see it.
fn restore(before: Option<&Termios>) {
    let _ = write_all(LEAVE);
    if let Some(before) = before {
        let _ = tcsetattr(stdin(), OptionalActions::Now, before);
    }
}

/// Past every buffer and lock: whoever panics may hold one.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
