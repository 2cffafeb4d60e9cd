use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Status};

use super::arbitration::{Arbitration, Claim, ClientId, Notice};
use crate::proto::p4::v1::stream_message_request::Update as Request;
use crate::proto::p4::v1::stream_message_response::Update as Response;
use crate::proto::p4::v1::{
    DigestListAck, DigestListAckError, PacketIn, PacketOut, PacketOutError, StreamError,
    StreamMessageRequest, StreamMessageResponse, StreamOtherError, stream_error,
};

/// Sizes of a server's queues.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Live clients at a time.
    pub clients: usize,
    /// Packet-ins that wait for one client; more are dropped.
    pub packets: usize,
    /// Other messages that wait for one client; a client that leaves more unread loses its stream.
    pub notices: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 16, packets: 1024, notices: 256 }
    }
}

/// A message of the primary that the server has to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Inbound {
    /// A frame to send.
    Packet(PacketOut),
    /// A digest list has arrived.
    DigestAck(DigestListAck),
    /// A message of the architecture.
    Other(prost_types::Any),
}

/// What became of a message for the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It waits for the primary to read it.
    Queued,
    /// There is no primary; it is dropped.
    NoPrimary,
    /// The primary reads too slowly; it is dropped.
    QueueFull,
}

type Item = Result<StreamMessageResponse, Status>;

/// A client's queues. The last place of `notices` is kept for the status that ends the stream.
#[derive(Debug)]
struct Queues {
    notices: mpsc::Sender<Item>,
    packets: mpsc::Sender<PacketIn>,
    /// Dropped with the queues, which stops the task that reads the client's requests.
    _open: oneshot::Sender<()>,
}

#[derive(Debug)]
struct State {
    arbitration: Arbitration,
    queues: BTreeMap<ClientId, Queues>,
}

impl State {
    /// Queues notices, and ends the streams of clients that have no room for theirs.
    fn send(&mut self, notices: Vec<Notice>) {
        let mut due = VecDeque::from(notices);
        while let Some(notice) = due.pop_front() {
            let client = notice.client;
            if !self.queue(client, notice.into()) {
                due.extend(
                    self.end(client, Some(Status::resource_exhausted("too many messages left unread"))),
                );
            }
        }
    }

    /// Queues a message unless that would take the last place. A client that is gone has room.
    fn queue(&self, client: ClientId, message: StreamMessageResponse) -> bool {
        let Some(queues) = self.queues.get(&client) else { return true };
        if queues.notices.capacity() < 2 {
            return false;
        }
        // Closed means that the client left; its stream's end will say so.
        let _ = queues.notices.try_send(Ok(message));
        true
    }

    /// Ends a client's stream, with a status or as the client did. Says whom to tell.
    fn end(&mut self, client: ClientId, status: Option<Status>) -> Vec<Notice> {
        if let (Some(queues), Some(status)) = (self.queues.remove(&client), status) {
            let _ = queues.notices.try_send(Err(status));
        }
        self.arbitration.close(client)
    }
}

/// The clients of one device: serves their streams and decides who may change the device.
///
/// Clones share the same clients. No method waits for a client.
#[derive(Clone, Debug)]
pub struct Controllers {
    state: Arc<Mutex<State>>,
    limits: Limits,
}

impl Controllers {
    /// No clients yet, for the device with this id (not 0, which names no device).
    pub fn new(device_id: u64, limits: Limits) -> Self {
        let arbitration = Arbitration::new(device_id, limits.clients);
        Self { state: Arc::new(Mutex::new(State { arbitration, queues: BTreeMap::new() })), limits }
    }

    /// Serves one `StreamChannel`: reads `requests` in a task of its own until either side ends the stream.
    ///
    /// `carry_out` gets the primary's messages and may answer with an error for the client; it must not
    /// block. Messages of other clients are refused here. Call within a Tokio runtime.
    pub fn serve<S, F>(&self, requests: S, carry_out: F) -> ResponseStream
    where
        S: Stream<Item = Result<StreamMessageRequest, Status>> + Send + 'static,
        F: FnMut(Inbound) -> Option<StreamError> + Send + 'static,
    {
        let (notices_in, notices) = mpsc::channel(self.limits.notices.max(1) + 1);
        let (packets_in, packets) = mpsc::channel(self.limits.packets.max(1));
        let (open, ended) = oneshot::channel();
        let left = notices_in.clone();
        let client = {
            let mut state = self.lock();
            let client = state.arbitration.open();
            state.queues.insert(client, Queues { notices: notices_in, packets: packets_in, _open: open });
            client
        };
        let controllers = self.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                () = left.closed() => None,
                _ = ended => None,
                end = controllers.read(client, requests, carry_out) => end,
            };
            drop(left);
            let mut state = controllers.lock();
            let notices = state.end(client, end);
            state.send(notices);
        });
        ResponseStream { notices, packets }
    }

    /// Reads a client's requests to their end; the status with which to end the stream, if any.
    async fn read<S, F>(&self, client: ClientId, requests: S, mut carry_out: F) -> Option<Status>
    where
        S: Stream<Item = Result<StreamMessageRequest, Status>>,
        F: FnMut(Inbound) -> Option<StreamError>,
    {
        tokio::pin!(requests);
        while let Some(Ok(request)) = requests.next().await {
            let inbound = match request.update {
                Some(Request::Arbitration(claim)) => {
                    let mut state = self.lock();
                    match state.arbitration.claim(client, &claim) {
                        Ok(notices) => state.send(notices),
                        Err(refusal) => return Some(refusal.into()),
                    }
                    continue;
                }
                Some(Request::Packet(packet)) => Inbound::Packet(packet),
                Some(Request::DigestAck(ack)) => Inbound::DigestAck(ack),
                Some(Request::Other(other)) => Inbound::Other(other),
                None => continue,
            };
            let error = if self.lock().arbitration.primary() == Some(client) {
                carry_out(inbound)
            } else {
                Some(not_primary(inbound))
            };
            if let Some(error) = error {
                // Errors are a courtesy: one that finds no room is dropped.
                let message = StreamMessageResponse { update: Some(Response::Error(error)) };
                self.lock().queue(client, message);
            }
        }
        None
    }

    /// Admits a write until the permit is dropped. Hold it while the request changes the device: a new
    /// primary is told that it is one only afterwards.
    ///
    /// # Errors
    /// `NOT_FOUND` for another device or role, `PERMISSION_DENIED` unless the sender is the primary.
    pub fn admit<'a>(&self, claim: impl Into<Claim<'a>>) -> Result<WritePermit, Status> {
        self.lock().arbitration.begin_write(claim.into())?;
        Ok(WritePermit { controllers: self.clone() })
    }

    /// Hands a frame to the primary, or drops it.
    pub fn packet_in(&self, packet: PacketIn) -> Delivery {
        let state = self.lock();
        let Some(queues) = state.arbitration.primary().and_then(|client| state.queues.get(&client)) else {
            return Delivery::NoPrimary;
        };
        match queues.packets.try_send(packet) {
            Ok(()) => Delivery::Queued,
            Err(mpsc::error::TrySendError::Full(_)) => Delivery::QueueFull,
            Err(mpsc::error::TrySendError::Closed(_)) => Delivery::NoPrimary,
        }
    }

    /// Hands a digest, an idle-timeout notification or another message to the primary, or drops it.
    pub fn notify(&self, message: Response) -> Delivery {
        let state = self.lock();
        match state.arbitration.primary() {
            None => Delivery::NoPrimary,
            Some(client) if state.queue(client, StreamMessageResponse { update: Some(message) }) => {
                Delivery::Queued
            }
            Some(_) => Delivery::QueueFull,
        }
    }

    /// Whether some client is primary.
    pub fn has_primary(&self) -> bool {
        self.lock().arbitration.primary().is_some()
    }

    /// Number of live clients.
    pub fn clients(&self) -> usize {
        self.lock().arbitration.clients()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_primary(inbound: Inbound) -> StreamError {
    let details = match inbound {
        Inbound::Packet(packet) => {
            stream_error::Details::PacketOut(PacketOutError { packet_out: Some(packet) })
        }
        Inbound::DigestAck(ack) => {
            stream_error::Details::DigestListAck(DigestListAckError { digest_list_ack: Some(ack) })
        }
        Inbound::Other(other) => stream_error::Details::Other(StreamOtherError { other: Some(other) }),
    };
    StreamError {
        canonical_code: Code::PermissionDenied as i32,
        message: "only the primary may send this".into(),
        details: Some(details),
        ..Default::default()
    }
}

/// A write under way.
#[derive(Debug)]
#[must_use = "the write counts as done when the permit is dropped"]
pub struct WritePermit {
    controllers: Controllers,
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        let mut state = self.controllers.lock();
        let notices = state.arbitration.finish_write();
        state.send(notices);
    }
}

/// Messages for one client: what `StreamChannel` returns. Notices go before packets.
#[derive(Debug)]
pub struct ResponseStream {
    notices: mpsc::Receiver<Item>,
    packets: mpsc::Receiver<PacketIn>,
}

impl Stream for ResponseStream {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        match self.notices.poll_recv(cx) {
            Poll::Ready(item) => return Poll::Ready(item),
            Poll::Pending => {}
        }
        match self.packets.poll_recv(cx) {
            Poll::Ready(Some(packet)) => {
                Poll::Ready(Some(Ok(StreamMessageResponse { update: Some(Response::Packet(packet)) })))
            }
            // The end is told by the notices.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;
    use crate::ElectionId;
    use crate::proto::p4::v1::{MasterArbitrationUpdate, WriteRequest};

    const DEVICE: u64 = 7;

    struct Client {
        requests: mpsc::Sender<Result<StreamMessageRequest, Status>>,
        responses: ResponseStream,
        carried_out: mpsc::UnboundedReceiver<Inbound>,
    }

    impl Client {
        fn connect(controllers: &Controllers) -> Self {
            let (requests, received) = mpsc::channel(64);
            let (done, carried_out) = mpsc::unbounded_channel();
            let responses = controllers.serve(ReceiverStream::new(received), move |inbound| {
                done.send(inbound).unwrap();
                None
            });
            Self { requests, responses, carried_out }
        }

        async fn send(&self, update: Request) {
            self.requests.send(Ok(StreamMessageRequest { update: Some(update) })).await.unwrap();
        }

        async fn claim(&self, id: u128) {
            self.send(Request::Arbitration(MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(ElectionId(id).into()),
                ..Default::default()
            }))
            .await;
        }

        async fn next(&mut self) -> Option<Item> {
            timeout(Duration::from_secs(10), self.responses.next()).await.expect("no message within 10 s")
        }

        async fn told(&mut self) -> i32 {
            match self.next().await.unwrap().unwrap().update.unwrap() {
                Response::Arbitration(update) => update.status.unwrap().code,
                other => panic!("expected an arbitration update, got {other:?}"),
            }
        }
    }

    fn write(id: u128) -> WriteRequest {
        WriteRequest { device_id: DEVICE, election_id: Some(ElectionId(id).into()), ..Default::default() }
    }

    fn packet(n: u8) -> PacketIn {
        PacketIn { payload: vec![n], metadata: vec![] }
    }

    #[tokio::test]
    async fn backup_hears_of_the_primary_leaving() {
        let controllers = Controllers::new(DEVICE, Limits::default());
        let mut a = Client::connect(&controllers);
        a.claim(2).await;
        assert_eq!(a.told().await, 0);
        let mut b = Client::connect(&controllers);
        b.claim(1).await;
        assert_eq!(b.told().await, 6);
        // The client's side of the stream ends, the server's side follows.
        drop(a.requests);
        assert!(timeout(Duration::from_secs(10), a.responses.next()).await.unwrap().is_none());
        assert_eq!(b.told().await, 5);
        // The client goes away without a word.
        b.claim(2).await;
        assert_eq!(b.told().await, 0);
        let mut c = Client::connect(&controllers);
        c.claim(1).await;
        assert_eq!(c.told().await, 6);
        drop(b.responses);
        assert_eq!(c.told().await, 5);
        assert_eq!(controllers.clients(), 1);
    }

    #[tokio::test]
    async fn refused_claim_ends_the_stream_with_its_code() {
        let controllers = Controllers::new(DEVICE, Limits::default());
        let mut a = Client::connect(&controllers);
        a.claim(2).await;
        assert_eq!(a.told().await, 0);
        let mut b = Client::connect(&controllers);
        b.claim(2).await;
        assert_eq!(b.next().await.unwrap().unwrap_err().code(), Code::InvalidArgument);
        assert!(b.next().await.is_none());
        assert!(controllers.has_primary());
    }

    #[tokio::test]
    async fn only_the_primary_sends_packets() {
        let controllers = Controllers::new(DEVICE, Limits::default());
        let mut a = Client::connect(&controllers);
        a.claim(2).await;
        assert_eq!(a.told().await, 0);
        let mut b = Client::connect(&controllers);
        b.claim(1).await;
        assert_eq!(b.told().await, 6);
        let out = PacketOut { payload: vec![1], metadata: vec![] };
        b.send(Request::Packet(out.clone())).await;
        match b.next().await.unwrap().unwrap().update.unwrap() {
            Response::Error(error) => assert_eq!(error.canonical_code, Code::PermissionDenied as i32),
            other => panic!("expected an error, got {other:?}"),
        }
        a.send(Request::Packet(out.clone())).await;
        assert_eq!(a.carried_out.recv().await, Some(Inbound::Packet(out)));
        assert!(b.carried_out.try_recv().is_err());
    }

    #[tokio::test]
    async fn packet_ins_are_dropped_when_nobody_reads() {
        let controllers = Controllers::new(DEVICE, Limits { packets: 2, ..Limits::default() });
        assert_eq!(controllers.packet_in(packet(0)), Delivery::NoPrimary);
        let mut a = Client::connect(&controllers);
        a.claim(2).await;
        assert_eq!(a.told().await, 0);
        let fates = [1, 2, 3].map(|n| controllers.packet_in(packet(n)));
        assert_eq!(fates, [Delivery::Queued, Delivery::Queued, Delivery::QueueFull]);
        // A notice overtakes them.
        a.claim(3).await;
        let mut b = Client::connect(&controllers);
        b.claim(1).await;
        assert_eq!(b.told().await, 6);
        assert_eq!(a.told().await, 0);
        for n in [1, 2] {
            assert_eq!(a.next().await.unwrap().unwrap().update, Some(Response::Packet(packet(n))));
        }
    }

    #[tokio::test]
    async fn client_that_reads_no_notices_loses_its_stream() {
        let controllers = Controllers::new(DEVICE, Limits { notices: 2, ..Limits::default() });
        let mut sleepy = Client::connect(&controllers);
        sleepy.claim(1).await;
        let mut busy = Client::connect(&controllers);
        for id in 2..6 {
            busy.claim(id).await;
            assert_eq!(busy.told().await, 0);
        }
        let mut read = Vec::new();
        while let Some(item) = sleepy.next().await {
            read.push(item.map(drop).map_err(|s| s.code()));
        }
        assert_eq!(read, [Ok(()), Ok(()), Err(Code::ResourceExhausted)]);
        assert_eq!(controllers.clients(), 1);
    }

    #[tokio::test]
    async fn takeover_waits_for_the_permit() {
        let controllers = Controllers::new(DEVICE, Limits::default());
        let mut a = Client::connect(&controllers);
        a.claim(2).await;
        assert_eq!(a.told().await, 0);
        assert_eq!(controllers.admit(&write(1)).unwrap_err().code(), Code::PermissionDenied);
        let permit = controllers.admit(&write(2)).unwrap();
        let mut b = Client::connect(&controllers);
        b.claim(3).await;
        assert_eq!(a.told().await, 6);
        assert_eq!(controllers.admit(&write(3)).unwrap_err().code(), Code::PermissionDenied);
        assert!(b.responses.notices.try_recv().is_err(), "told before the write was done");
        drop(permit);
        assert_eq!(b.told().await, 0);
        drop(controllers.admit(&write(3)).unwrap());
    }
}
