use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::proto::p4::v1::stream_message_response::Update;
use crate::proto::p4::v1::{DigestList, IdleTimeoutNotification, PacketIn, StreamError};

/// What a server sends besides arbitration and packets.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamNotice {
    /// Digests of the data plane.
    Digest(DigestList),
    /// Entries that were not hit for their idle time.
    IdleTimeout(IdleTimeoutNotification),
    /// A message of ours could not be carried out.
    Error(StreamError),
    /// A message of the architecture.
    Other(prost_types::Any),
}

/// How many messages found their queue full, ever.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    packets: Arc<AtomicU64>,
    notices: Arc<AtomicU64>,
}

impl Dropped {
    /// Packet-ins dropped.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Notices dropped.
    pub fn notices(&self) -> u64 {
        self.notices.load(Ordering::Relaxed)
    }
}

/// The consumer's end of what a server sends. A slow consumer loses messages; it never holds up the stream.
#[derive(Debug)]
pub struct Inbox {
    /// Packet-ins.
    pub packets: mpsc::Receiver<PacketIn>,
    /// Everything else but arbitration.
    pub notices: mpsc::Receiver<StreamNotice>,
    /// Counts what was dropped.
    pub dropped: Dropped,
}

/// The stream's end of an [`Inbox`].
#[derive(Clone, Debug)]
pub(super) struct Feed {
    packets: mpsc::Sender<PacketIn>,
    notices: mpsc::Sender<StreamNotice>,
    dropped: Dropped,
}

pub(super) fn inbox(packets: usize, notices: usize) -> (Feed, Inbox) {
    let (packets_in, packets) = mpsc::channel(packets.max(1));
    let (notices_in, notices) = mpsc::channel(notices.max(1));
    let dropped = Dropped::default();
    (
        Feed { packets: packets_in, notices: notices_in, dropped: dropped.clone() },
        Inbox { packets, notices, dropped },
    )
}

impl Feed {
    /// Hands a message on without waiting. Arbitration is not for the inbox.
    pub(super) fn put(&self, update: Update) {
        let notice = match update {
            Update::Packet(packet) => return put(&self.packets, packet, &self.dropped.packets),
            Update::Digest(digest) => StreamNotice::Digest(digest),
            Update::IdleTimeoutNotification(notification) => StreamNotice::IdleTimeout(notification),
            Update::Error(error) => StreamNotice::Error(error),
            Update::Other(other) => StreamNotice::Other(other),
            Update::Arbitration(_) => return,
        };
        put(&self.notices, notice, &self.dropped.notices);
    }
}

/// A full queue is counted; a consumer that went away wants nothing.
fn put<T>(queue: &mpsc::Sender<T>, message: T, dropped: &AtomicU64) {
    if let Err(mpsc::error::TrySendError::Full(_)) = queue.try_send(message) {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u8) -> PacketIn {
        PacketIn { payload: vec![n], metadata: vec![] }
    }

    #[test]
    fn full_queues_are_counted_apart_and_keep_the_oldest() {
        let (feed, mut inbox) = inbox(2, 1);
        for n in 0..5 {
            feed.put(Update::Packet(packet(n)));
        }
        for digest_id in 0..3 {
            feed.put(Update::Digest(DigestList { digest_id, ..Default::default() }));
        }
        assert_eq!((inbox.dropped.packets(), inbox.dropped.notices()), (3, 2));
        assert_eq!(inbox.packets.try_recv().unwrap(), packet(0));
        assert_eq!(inbox.packets.try_recv().unwrap(), packet(1));
        assert!(matches!(inbox.notices.try_recv(), Ok(StreamNotice::Digest(d)) if d.digest_id == 0));
    }

    #[test]
    fn consumer_that_went_away_loses_nothing() {
        let (feed, inbox) = inbox(1, 1);
        let dropped = inbox.dropped.clone();
        drop(inbox);
        feed.put(Update::Packet(packet(0)));
        assert_eq!(dropped.packets(), 0);
    }
}
