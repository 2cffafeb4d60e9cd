//! Asking sluiced, in a thread of its own: keys work while it does not answer.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use api::{Client, ClientError, Event, EventFilter, NewEvents, Request};

use super::figures::Reading;
use super::stage::Bell;

/// A reading so often; it takes three requests.
const EVERY: Duration = Duration::from_secs(1);
/// Who does not answer so long is away.
const PATIENCE: Duration = Duration::from_secs(3);
/// Events from before the watching began.
const BEFORE: usize = 50;

/// What came of a reading.
#[derive(Debug)]
pub(super) enum Heard {
    /// Everything.
    Reading(Box<Reading>),
    /// sluiced is away, or refuses.
    Nothing(String),
}

/// The thread; it ends some time after this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    heard: Receiver<Heard>,
    /// Closed when dropped.
    _stop: Sender<()>,
}

impl Reader {
    /// Begins to ask. The bell is rung for everything that is heard.
    pub(super) fn start(socket: &Path, bell: Bell) -> Self {
        let (send, heard) = mpsc::channel();
        let (keep, stop) = mpsc::channel();
        let mut desk = Desk { socket: socket.into(), client: None, began: Instant::now(), after: None };
        thread::spawn(move || {
            let mut next = Instant::now();
            loop {
                let said = match desk.read() {
                    Ok(reading) => Heard::Reading(Box::new(reading)),
                    Err(error) => {
                        desk.client = None;
                        Heard::Nothing(error.to_string())
                    }
                };
                if send.send(said).is_err() {
                    return;
                }
                bell.ring();
                // Readings that took too long are left out, not caught up with.
                let now = Instant::now();
                while next <= now {
                    next += EVERY;
                }
                if stop.recv_timeout(next - now) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Reader { heard, _stop: keep }
    }

    /// What was heard and not yet taken.
    pub(super) fn heard(&self) -> Result<Heard, TryRecvError> {
        self.heard.try_recv()
    }
}

struct Desk {
    socket: PathBuf,
    client: Option<Client>,
    began: Instant,
    /// Newest event that is known.
    after: Option<u64>,
}

impl Desk {
    fn read(&mut self) -> Result<Reading, ClientError> {
        let client = match &mut self.client {
            Some(client) => client,
            none => {
                let mut client = Client::connect(&self.socket)?;
                client.set_patience(PATIENCE)?;
                none.insert(client)
            }
        };
        let balancer = client.ask_as(&Request::ShowBalancer)?;
        let (at, time) = (self.began.elapsed(), SystemTime::now());
        let drops = client.ask_as(&Request::ShowDrops)?;
        let news = match self.after {
            Some(after) => client.ask_as(&Request::FollowEvents { after, filter: EventFilter::default() })?,
            None => {
                let filter = EventFilter::default();
                let request = Request::ShowEvents { after: 0, last: Some(BEFORE), filter };
                let events: Vec<Event> = client.ask_as(&request)?;
                NewEvents { newest: events.last().map_or(0, |event| event.id), missed: 0, events }
            }
        };
        self.after = Some(news.newest);
        Ok(Reading { at, time, balancer, drops, news })
    }
}
