//! A timer with the kernel's resolution: the runtime's own has a millisecond, too coarse for probes.

use std::io;
use std::os::fd::OwnedFd;

use liveness::Nanos;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// An alarm on the clock of [`crate::clock::now`].
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// An alarm that is not set. Call within a runtime with I/O.
    ///
    /// # Errors
    /// The system gives no timer.
    pub fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that may be closed meanwhile; an OwnedFd is not"
        )]
        Ok(Alarm(AsyncFd::new(timer)?))
    }

    /// Waits until `due`; an instant in the past has come already.
    ///
    /// # Errors
    /// The system refuses the timer.
    pub async fn until(&self, due: Nanos) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would disarm it.
        let at = due.0.max(1);
        let value = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
        timerfd_settime(
            self.0.get_ref(),
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval: zero, it_value: value },
        )?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut count = [0; 8];
            match ready.try_io(|timer| rustix::io::read(timer, &mut count).map_err(io::Error::from)) {
                Ok(read) => return read.map(|_| ()),
                // Rung before it was set anew.
                Err(_) => continue,
            }
        }
    }
}
