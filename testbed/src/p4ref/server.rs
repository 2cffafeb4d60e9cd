//! P4Runtime in front of a switch.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use p4runtime::proto::p4::v1::write_request::Atomicity;
use p4runtime::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, DigestListAckError, Entity,
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, PacketOut, ReadRequest,
    ReadResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamError,
    StreamMessageRequest, StreamOtherError, WriteRequest, WriteResponse, stream_error,
};
use p4runtime::server::{Controllers, Inbound, Limits, Listen, P4Runtime, ResponseStream, Serving, aside};
use p4runtime::{WriteErrors, server};
use tokio::io::DuplexStream;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::config::Config;
use super::switch::Output;

/// The version of the protocol that is served.
const API_VERSION: &str = "1.4.1";
/// Entities in one message of an answer.
const PART: usize = 1000;

/// Sends a packet by a port; ports that do not exist swallow it.
pub type Transmit = Box<dyn Fn(u16, &[u8]) + Send + Sync>;

/// The server of one switch. Clones serve the same switch.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    device_id: u64,
    controllers: Controllers,
    config: Mutex<Config>,
    transmit: Transmit,
    begin: Instant,
}

impl Server {
    /// A server for a device with this number, whose switch waits for a program.
    #[must_use]
    pub fn new(device_id: u64, cpu_port: u16, transmit: Transmit) -> Self {
        Server {
            shared: Arc::new(Shared {
                device_id,
                controllers: Controllers::new(device_id, Limits::default()),
                config: Mutex::new(Config::new(cpu_port)),
                transmit,
                begin: Instant::now(),
            }),
        }
    }

    /// Gives the switch a program to begin with, as if a controller had committed it.
    ///
    /// # Errors
    /// The program cannot be loaded.
    pub fn begin_with(
        &self,
        json: Vec<u8>,
        info: p4runtime::proto::p4::config::v1::P4Info,
    ) -> Result<(), Status> {
        let config = p4runtime::proto::p4::v1::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: json,
            cookie: None,
        };
        self.shared.config().commit(config)
    }

    /// Runs a packet that came in by a port, and sends what comes of it. Without a program it is dropped.
    pub fn receive(&self, port: u16, bytes: &[u8]) {
        let now = self.shared.now_ns();
        let output = self.shared.config().switch_mut().map(|switch| switch.process(port, bytes, now));
        if let Some(output) = output {
            self.shared.send(output);
        }
    }

    /// Serves an address until the answer is dropped.
    ///
    /// # Errors
    /// As [`Listen::serve`].
    pub async fn listen(&self, address: &Listen) -> io::Result<Serving> {
        address.serve(self.clone()).await
    }

    /// What opens streams to this server within the process. Call within a Tokio runtime, which serves them.
    pub fn connector(
        &self,
    ) -> impl Fn() -> std::future::Ready<io::Result<DuplexStream>> + Send + Sync + 'static {
        server::connector(self.clone())
    }
}

impl Shared {
    fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn send(&self, output: Output) {
        for (port, bytes) in &output.sent {
            (self.transmit)(*port, bytes);
        }
        for packet in output.to_cpu {
            self.controllers.packet_in(packet);
        }
    }

    fn check_device(&self, asked: u64) -> Result<(), Status> {
        if asked == self.device_id {
            return Ok(());
        }
        Err(Status::not_found(format!(
            "device {asked} is unknown; this server has device {}",
            self.device_id
        )))
    }

    fn write(&self, request: &WriteRequest) -> Result<WriteResponse, Status> {
        let _permit = self.controllers.admit(request)?;
        let atomicity = Atomicity::try_from(request.atomicity)
            .map_err(|_| Status::invalid_argument("the request's atomicity is unknown"))?;
        match self.config().tables_mut()?.write(&request.updates, atomicity) {
            Ok(()) => Ok(WriteResponse {}),
            Err(outcomes) => {
                outcomes.into_iter().collect::<WriteErrors>().into_result()?;
                Ok(WriteResponse {})
            }
        }
    }

    fn read(
        &self,
        request: &ReadRequest,
    ) -> Result<impl Stream<Item = Result<ReadResponse, Status>> + use<>, Status> {
        self.check_device(request.device_id)?;
        if !request.role.is_empty() {
            return Err(Status::not_found(format!("role `{}` is unknown; leave the role out", request.role)));
        }
        let (found, outcomes) = self.config().tables_mut()?.read(&request.entities);
        let mut parts: Vec<Result<ReadResponse, Status>> = Vec::new();
        let mut rest = found.into_iter().peekable();
        while rest.peek().is_some() {
            let entities: Vec<Entity> = rest.by_ref().take(PART).collect();
            parts.push(Ok(ReadResponse { entities }));
        }
        // What is right is answered all the same.
        parts.extend(outcomes.into_iter().collect::<WriteErrors>().into_result().err().map(Err));
        Ok(tokio_stream::iter(parts))
    }

    fn set_config(
        &self,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<SetForwardingPipelineConfigResponse, Status> {
        let _permit = self.controllers.admit(&request)?;
        let action = request.action();
        self.config().apply(action, request.config)?;
        Ok(SetForwardingPipelineConfigResponse {})
    }

    fn get_config(
        &self,
        request: &GetForwardingPipelineConfigRequest,
    ) -> Result<GetForwardingPipelineConfigResponse, Status> {
        self.check_device(request.device_id)?;
        Ok(GetForwardingPipelineConfigResponse { config: self.config().read(request.response_type()) })
    }

    /// Carries out what the primary sends on its stream.
    fn carry_out(&self, inbound: Inbound) -> Option<StreamError> {
        match inbound {
            Inbound::Packet(packet) => self.packet_out(packet),
            Inbound::DigestAck(ack) => {
                let details = DigestListAckError { digest_list_ack: Some(ack) };
                let details = stream_error::Details::DigestListAck(details);
                Some(fault(Code::InvalidArgument, "the P4Info has no digests".to_owned(), details))
            }
            Inbound::Other(other) => {
                let details = stream_error::Details::Other(StreamOtherError { other: Some(other) });
                let what = "messages of other architectures are unknown here".to_owned();
                Some(fault(Code::Unimplemented, what, details))
            }
        }
    }

    fn packet_out(&self, packet: PacketOut) -> Option<StreamError> {
        let now = self.now_ns();
        let outcome = match self.config().switch_mut() {
            Some(switch) => switch.packet_out(&packet, now),
            None => {
                let details = p4runtime::proto::p4::v1::PacketOutError { packet_out: Some(packet) };
                let details = stream_error::Details::PacketOut(details);
                return Some(fault(
                    Code::FailedPrecondition,
                    "no forwarding pipeline is set".to_owned(),
                    details,
                ));
            }
        };
        match outcome {
            Ok(output) => {
                self.send(output);
                None
            }
            Err(error) => Some(error.stream_error(packet)),
        }
    }
}

fn fault(code: Code, message: String, details: stream_error::Details) -> StreamError {
    StreamError { canonical_code: code as i32, message, details: Some(details), ..Default::default() }
}

#[tonic::async_trait]
impl P4Runtime for Server {
    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;
    type StreamChannelStream = ResponseStream;

    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let shared = Arc::clone(&self.shared);
        aside(move || shared.write(&request.into_inner())).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let shared = Arc::clone(&self.shared);
        let parts = aside(move || shared.read(&request.into_inner())).await?.into_inner();
        Ok(Response::new(Box::pin(parts)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let shared = Arc::clone(&self.shared);
        aside(move || shared.set_config(request.into_inner())).await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let shared = Arc::clone(&self.shared);
        aside(move || shared.get_config(request.get_ref())).await
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        let shared = Arc::clone(&self.shared);
        let stream =
            self.shared.controllers.serve(request.into_inner(), move |inbound| shared.carry_out(inbound));
        Ok(Response::new(stream))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device = request.get_ref().device_id;
        if device != 0 {
            self.shared.check_device(device)?;
        }
        let p4runtime_api_version = API_VERSION.to_owned();
        Ok(Response::new(CapabilitiesResponse { p4runtime_api_version, ..Default::default() }))
    }
}
