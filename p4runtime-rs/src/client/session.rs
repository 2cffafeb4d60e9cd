use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::inbox::{Feed, inbox};
use super::{Error, Inbox, Options, P4RuntimeClient, PipelineAction, ResponseType, Target};
use crate::ElectionId;
use crate::proto::p4::v1::stream_message_request::Update as Request;
use crate::proto::p4::v1::stream_message_response::Update;
use crate::proto::p4::v1::{
    CapabilitiesRequest, DigestListAck, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    MasterArbitrationUpdate, PacketOut, SetForwardingPipelineConfigRequest, StreamMessageRequest,
    StreamMessageResponse,
};

/// Largest answer the client takes, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Messages to the server that wait for the connection.
const REQUESTS: usize = 256;

/// What this client is to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may change the device.
    Primary,
    /// It may only read.
    Backup {
        /// Whether another client is primary.
        primary: bool,
        /// Highest election id the server has accepted; a claim must reach it.
        highest: Option<ElectionId>,
    },
    /// The session has ended.
    Lost {
        /// Why.
        reason: String,
    },
}

impl Standing {
    fn of(update: &MasterArbitrationUpdate) -> Self {
        // A server that leaves the status out says OK.
        match update.status.as_ref().map_or(0, |status| status.code) {
            0 => Self::Primary,
            code => Self::Backup {
                primary: code == Code::AlreadyExists as i32,
                highest: update.election_id.map(Into::into),
            },
        }
    }
}

/// A session with one device. Clones share it; it ends with the last of them, with [`close`](Self::close),
/// or with its stream.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: P4RuntimeClient<Channel>,
    options: Options,
    election_id: Mutex<Option<ElectionId>>,
    /// Taken away when the session is closed.
    requests: Mutex<Option<mpsc::Sender<StreamMessageRequest>>>,
    standing: watch::Sender<Standing>,
    reader: AbortHandle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Session {
    /// Connects to a server and claims the device.
    ///
    /// # Errors
    /// There is no connection, or the server refuses the claim or does not answer it in time.
    pub async fn connect(target: &Target, options: Options) -> Result<(Self, Inbox), Error> {
        let channel = target.connect(options.connect_deadline).await?;
        Self::over(channel, options).await
    }

    /// Claims the device over a channel made elsewhere. Its limit on header lists should be well above
    /// 100 bytes for each update of a batch, or errors of a batch get lost.
    ///
    /// # Errors
    /// The server refuses the claim or does not answer it in time.
    pub async fn over(channel: Channel, options: Options) -> Result<(Self, Inbox), Error> {
        let (feed, inbox) = inbox(options.packets, options.notices);
        Ok((Self::feeding(channel, options, feed).await?, inbox))
    }

    pub(super) async fn feeding(channel: Channel, options: Options, feed: Feed) -> Result<Self, Error> {
        const CALL: &str = "claim of the device";
        let mut client = P4RuntimeClient::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
        let (requests, outgoing) = mpsc::channel(REQUESTS);
        let claim = claim(&options, options.election_id);
        if requests.try_send(claim).is_err() {
            return Err(Error::Lost { call: CALL, reason: "no room for the claim".into() });
        }
        let opening = async {
            let mut stream = client.stream_channel(ReceiverStream::new(outgoing)).await?.into_inner();
            loop {
                match stream.message().await?.and_then(|m| m.update) {
                    Some(Update::Arbitration(update)) => return Ok((stream, Standing::of(&update))),
                    Some(other) => feed.put(other),
                    None => return Err(Status::unavailable("the server closed the stream")),
                }
            }
        };
        let (stream, standing) = within(CALL, options.connect_deadline, opening).await?;
        let standing = watch::Sender::new(standing);
        let reader = tokio::spawn(read(stream, standing.clone(), feed)).abort_handle();
        let election_id = Mutex::new(options.election_id);
        let requests = Mutex::new(Some(requests));
        Ok(Self { shared: Arc::new(Shared { client, options, election_id, requests, standing, reader }) })
    }

    /// Ends the session for all clones.
    pub fn close(&self) {
        self.end("closed by this client");
    }

    pub(super) fn end(&self, reason: &str) {
        self.shared.reader.abort();
        lock(&self.shared.requests).take();
        lose(&self.shared.standing, reason.to_owned());
    }

    /// What this client is to the device now.
    pub fn standing(&self) -> Standing {
        self.shared.standing.borrow().clone()
    }

    /// Whether this client may change the device, as far as it knows.
    pub fn is_primary(&self) -> bool {
        *self.shared.standing.borrow() == Standing::Primary
    }

    /// Follows the standing.
    pub fn watch(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// The election id of this client's last claim.
    pub fn election_id(&self) -> Option<ElectionId> {
        *lock(&self.shared.election_id)
    }

    /// How this session behaves.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Claims the device anew: with a higher id to take over, with a lower one or none to step down. The
    /// answer is in the standing.
    ///
    /// # Errors
    /// The session has ended, or the connection takes nothing in time. A refused claim ends the session.
    pub async fn claim(&self, election_id: Option<ElectionId>) -> Result<(), Error> {
        let message = claim(&self.shared.options, election_id);
        self.send("claim of the device", message).await?;
        *lock(&self.shared.election_id) = election_id;
        Ok(())
    }

    /// Has the device send a frame. Whether it did is not told, but a
    /// [`StreamNotice::Error`](super::StreamNotice::Error) may tell that it did not.
    ///
    /// # Errors
    /// This client is not primary, the session has ended, or the connection takes nothing in time.
    pub async fn send_packet(&self, packet: PacketOut) -> Result<(), Error> {
        const CALL: &str = "packet-out";
        if let Standing::Backup { .. } = self.standing() {
            return Err(Error::NotPrimary { call: CALL });
        }
        self.send(CALL, StreamMessageRequest { update: Some(Request::Packet(packet)) }).await
    }

    /// Acknowledges a digest list.
    ///
    /// # Errors
    /// The session has ended, or the connection takes nothing in time.
    pub async fn acknowledge(&self, digest_id: u32, list_id: u64) -> Result<(), Error> {
        let ack = Request::DigestAck(DigestListAck { digest_id, list_id });
        self.send("digest acknowledgement", StreamMessageRequest { update: Some(ack) }).await
    }

    /// Checks, stores or starts a pipeline. `config` is left out for [`PipelineAction::Commit`] only.
    ///
    /// # Errors
    /// The server refuses, or does not answer within the pipeline deadline.
    pub async fn set_pipeline(
        &self,
        action: PipelineAction,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Error> {
        const CALL: &str = "SetForwardingPipelineConfig";
        let mut client = self.client(CALL)?;
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.shared.options.device_id,
            election_id: self.election_id().map(Into::into),
            action: action.into(),
            config,
            ..Default::default()
        };
        let deadline = self.shared.options.pipeline_deadline;
        within(CALL, deadline, client.set_forwarding_pipeline_config(request)).await?;
        Ok(())
    }

    /// The pipeline that runs, or the parts of it asked for; `None` if none runs.
    ///
    /// # Errors
    /// The server refuses, or does not answer within the pipeline deadline.
    pub async fn pipeline(&self, parts: ResponseType) -> Result<Option<ForwardingPipelineConfig>, Error> {
        const CALL: &str = "GetForwardingPipelineConfig";
        let mut client = self.client(CALL)?;
        let request = GetForwardingPipelineConfigRequest {
            device_id: self.shared.options.device_id,
            response_type: parts.into(),
        };
        let deadline = self.shared.options.pipeline_deadline;
        let answer = within(CALL, deadline, client.get_forwarding_pipeline_config(request)).await?;
        Ok(answer.into_inner().config)
    }

    /// Version of the protocol that the server speaks.
    ///
    /// # Errors
    /// The server refuses (one older than version 1.1 with `UNIMPLEMENTED`), or does not answer in time.
    pub async fn api_version(&self) -> Result<String, Error> {
        const CALL: &str = "Capabilities";
        let mut client = self.client(CALL)?;
        let request = CapabilitiesRequest { device_id: self.shared.options.device_id };
        let answer = within(CALL, self.shared.options.call_deadline, client.capabilities(request)).await?;
        Ok(answer.into_inner().p4runtime_api_version)
    }

    /// The client for calls beside the stream, unless the session has ended.
    pub(super) fn client(&self, call: &'static str) -> Result<P4RuntimeClient<Channel>, Error> {
        match &*self.shared.standing.borrow() {
            Standing::Lost { reason } => Err(Error::Lost { call, reason: reason.clone() }),
            Standing::Primary | Standing::Backup { .. } => Ok(self.shared.client.clone()),
        }
    }

    async fn send(&self, call: &'static str, message: StreamMessageRequest) -> Result<(), Error> {
        let after = self.shared.options.call_deadline;
        let requests = lock(&self.shared.requests).clone();
        if let Some(requests) = requests {
            match timeout(after, requests.send(message)).await {
                Err(_) => return Err(Error::Deadline { call, after }),
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => {}
            }
        }
        let reason = match self.standing() {
            Standing::Lost { reason } => reason,
            Standing::Primary | Standing::Backup { .. } => "the stream is closed".into(),
        };
        Err(Error::Lost { call, reason })
    }
}

fn claim(options: &Options, election_id: Option<ElectionId>) -> StreamMessageRequest {
    let claim = MasterArbitrationUpdate {
        device_id: options.device_id,
        election_id: election_id.map(Into::into),
        ..Default::default()
    };
    StreamMessageRequest { update: Some(Request::Arbitration(claim)) }
}

/// Reads the stream to its end. It waits for the server only.
async fn read(mut stream: Streaming<StreamMessageResponse>, standing: watch::Sender<Standing>, feed: Feed) {
    let reason = loop {
        match stream.message().await {
            Ok(Some(StreamMessageResponse { update: Some(Update::Arbitration(update)) })) => {
                standing.send_replace(Standing::of(&update));
            }
            Ok(Some(StreamMessageResponse { update: Some(update) })) => feed.put(update),
            Ok(Some(StreamMessageResponse { update: None })) => {}
            Ok(None) => break "the server closed the stream".to_owned(),
            Err(status) => break format!("{:?}: {}", status.code(), status.message()),
        }
    };
    lose(&standing, reason);
}

/// Marks a session as ended; the first reason stands.
fn lose(standing: &watch::Sender<Standing>, reason: String) {
    standing.send_if_modified(|now| {
        let ends = !matches!(now, Standing::Lost { .. });
        if ends {
            *now = Standing::Lost { reason };
        }
        ends
    });
}

/// Waits for an answer up to the deadline.
pub(super) async fn within<T>(
    call: &'static str,
    after: Duration,
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Error> {
    match timeout(after, answer).await {
        Err(_) => Err(Error::Deadline { call, after }),
        Ok(answer) => answer.map_err(|status| Error::refused(call, &status)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
