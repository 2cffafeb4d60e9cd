//! `monitor ecofilter-balancer` on the whole screen.
//!
//! A thread of its own asks sluiced ([`reader`]); [`figures`] makes rates and history of the answers, [`view`] is
//! what of them is looked at, [`draw`] puts it on the [`stage`].

mod draw;
mod figures;
mod keys;
mod reader;
mod stage;
mod view;

pub use draw::{Looks, draw};
pub use figures::{Away, Figures, HISTORY, Rate, Reading, Track, VerdictRate};
pub use keys::{Key, Keyboard};
pub use stage::{Bell, Stage, Woken};
pub use view::{Row, Sort, Then, View};

use std::sync::mpsc::TryRecvError;
use std::time::{Duration, SystemTime};

use api::Request;

use crate::execute::{Executor, Failure};
use reader::{Heard, Reader};

/// Shows the balancer until q, Ctrl-C, SIGINT, or until nobody is at the terminal.
///
/// # Errors
/// sluiced was away from the start or refused; the terminal cannot be used.
pub fn run(executor: &mut Executor) -> Result<(), Failure> {
    // Who cannot be answered is told so where it stays to be read.
    executor.ask(&Request::ShowBalancer)?;
    let looks = Looks::of_this_process(executor.terminal.colour);
    let mut stage = Stage::enter()?;
    let reader = Reader::start(executor.desk.session().socket(), stage.bell()?);
    let mut figures = Figures::default();
    let mut view = View::default();
    loop {
        loop {
            match reader.heard() {
                Ok(Heard::Reading(reading)) => figures.read(*reading),
                Ok(Heard::Nothing(reason)) => figures.lose(SystemTime::now(), reason),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(std::io::Error::other("the thread that asks sluiced has ended").into());
                }
            }
        }
        let now = SystemTime::now();
        stage.draw(|frame| draw(frame, &figures, &mut view, looks, now))?;
        let woken = stage.wait(to_next_second(now))?;
        if woken.over || executor.interrupt.pressed() {
            return Ok(());
        }
        if woken.continued {
            stage.refresh()?;
        }
        for key in woken.keys {
            match view.press(key, &figures) {
                Then::Draw => {}
                Then::Refresh => stage.refresh()?,
                Then::Leave => return Ok(()),
            }
        }
    }
}

/// Until the clock on the screen is to be changed.
fn to_next_second(now: SystemTime) -> Duration {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(1) - Duration::from_nanos(since.subsec_nanos().into())
}
