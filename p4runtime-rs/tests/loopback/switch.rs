//! A switch with one table in memory, and the wire to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use p4runtime::client::{Atomicity, PipelineAction, ResponseType, Target};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::update::Type;
use p4runtime::proto::p4::v1::*;
use p4runtime::server::{Controllers, Inbound, Limits, P4Runtime, ResponseStream, service};
use p4runtime::{Fault, WriteErrors};
use tokio::io::DuplexStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

pub(crate) const DEVICE: u64 = 1;
pub(crate) const TABLE: u32 = 0x0200_0001;
pub(crate) const VERSION: &str = "1.4.1";

type Entries = BTreeMap<Vec<u8>, TableEntry>;

#[derive(Default)]
struct Forwarding {
    pipeline: Option<ForwardingPipelineConfig>,
    entries: Entries,
    requests: usize,
}

/// Clones are the same switch.
#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) controllers: Controllers,
    forwarding: Arc<Mutex<Forwarding>>,
    capacity: usize,
    packets_out: mpsc::UnboundedSender<PacketOut>,
    /// Makes every unary call wait for ever.
    pub(crate) hangs: Arc<AtomicBool>,
}

/// The entry whose match is `key`; an empty one is malformed to this switch.
pub(crate) fn entry(key: &[u8]) -> TableEntry {
    let exact = FieldMatch {
        field_id: 1,
        field_match_type: Some(field_match::FieldMatchType::Exact(field_match::Exact {
            value: key.to_vec(),
        })),
    };
    TableEntry { table_id: TABLE, r#match: vec![exact], ..Default::default() }
}

fn key(entry: &TableEntry) -> Result<Vec<u8>, Fault> {
    match entry.r#match.first().and_then(|m| m.field_match_type.as_ref()) {
        Some(field_match::FieldMatchType::Exact(exact)) => {
            p4runtime::bytestring::parse_bytes(&exact.value, 32)?;
            Ok(exact.value.clone())
        }
        _ => Err(Fault::invalid_argument("field 1 is missing")),
    }
}

impl Switch {
    pub(crate) fn new(capacity: usize) -> (Self, mpsc::UnboundedReceiver<PacketOut>) {
        let (packets_out, received) = mpsc::unbounded_channel();
        let switch = Self {
            controllers: Controllers::new(DEVICE, Limits { packets: 100_000, ..Limits::default() }),
            forwarding: Arc::default(),
            capacity,
            packets_out,
            hangs: Arc::default(),
        };
        (switch, received)
    }

    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        self.forwarding.lock().unwrap().entries.keys().cloned().collect()
    }

    /// Number of write requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.forwarding.lock().unwrap().requests
    }

    fn apply(&self, entries: &mut Entries, update: &Update) -> Result<(), Fault> {
        let Some(Entity { entity: Some(Kind::TableEntry(entry)) }) = &update.entity else {
            return Err(Fault::unimplemented("only table entries"));
        };
        let key = key(entry)?;
        match (update.r#type(), entries.contains_key(&key)) {
            (Type::Insert, true) => return Err(Fault::already_exists(format!("entry {key:02x?} exists"))),
            (Type::Insert, false) if entries.len() >= self.capacity => {
                return Err(Fault::resource_exhausted("table is full").with_vendor_code("test", 500));
            }
            (Type::Insert, false) | (Type::Modify, true) => drop(entries.insert(key, entry.clone())),
            (Type::Delete, true) => drop(entries.remove(&key)),
            (Type::Modify | Type::Delete, false) => {
                return Err(Fault::not_found(format!("no entry {key:02x?}")));
            }
            (Type::Unspecified, _) => return Err(Fault::invalid_argument("update type is unspecified")),
        }
        Ok(())
    }

    async fn answer(&self) {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

#[tonic::async_trait]
impl P4Runtime for Switch {
    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;
    type StreamChannelStream = ResponseStream;

    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        self.answer().await;
        let request = request.into_inner();
        let _permit = self.controllers.admit(&request)?;
        let mut forwarding = self.forwarding.lock().unwrap();
        forwarding.requests += 1;
        if forwarding.pipeline.is_none() {
            return Err(Status::failed_precondition("no pipeline is set"));
        }
        let mut entries = forwarding.entries.clone();
        let outcomes: WriteErrors = request.updates.iter().map(|u| self.apply(&mut entries, u)).collect();
        if request.atomicity() == Atomicity::ContinueOnError || !outcomes.any() {
            forwarding.entries = entries;
        }
        outcomes.into_result()?;
        Ok(Response::new(WriteResponse {}))
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.answer().await;
        let mut parts = Vec::new();
        let mut outcomes = WriteErrors::default();
        for filter in request.into_inner().entities {
            let Some(Kind::TableEntry(filter)) = filter.entity else {
                outcomes.push(Err(Fault::invalid_argument("only table entries")));
                continue;
            };
            outcomes.push(Ok(()));
            let forwarding = self.forwarding.lock().unwrap();
            for entry in forwarding.entries.values() {
                let table = filter.table_id == 0 || filter.table_id == entry.table_id;
                if table && (filter.r#match.is_empty() || filter.r#match == entry.r#match) {
                    parts.push(Ok(ReadResponse { entities: vec![entry.clone().into()] }));
                }
            }
        }
        parts.extend(outcomes.into_result().err().map(Err));
        let (sender, receiver) = mpsc::channel(parts.len().max(1));
        for part in parts {
            sender.try_send(part).unwrap();
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        self.answer().await;
        let request = request.into_inner();
        let _permit = self.controllers.admit(&request)?;
        match request.action() {
            PipelineAction::VerifyAndCommit => {}
            other => return Err(Status::unimplemented(format!("action {other:?}"))),
        }
        let mut forwarding = self.forwarding.lock().unwrap();
        forwarding.pipeline = request.config;
        forwarding.entries.clear();
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        self.answer().await;
        let mut config = self.forwarding.lock().unwrap().pipeline.clone();
        if request.get_ref().response_type() == ResponseType::CookieOnly {
            config =
                config.map(|config| ForwardingPipelineConfig { cookie: config.cookie, ..Default::default() });
        }
        Ok(Response::new(GetForwardingPipelineConfigResponse { config }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        let packets_out = self.packets_out.clone();
        let stream = self.controllers.serve(request.into_inner(), move |inbound| {
            if let Inbound::Packet(packet) = inbound {
                if packet.payload.is_empty() {
                    return Some(StreamError { message: "empty frame".into(), ..Default::default() });
                }
                packets_out.send(packet).unwrap();
            }
            None
        });
        Ok(Response::new(stream))
    }

    async fn capabilities(
        &self,
        _: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        self.answer().await;
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: VERSION.into(),
            ..Default::default()
        }))
    }
}

type Incoming = mpsc::UnboundedSender<io::Result<DuplexStream>>;

/// A wire in the same process to whichever server is plugged in.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    plugged: Arc<Mutex<Option<Incoming>>>,
}

impl Wire {
    pub(crate) fn target(&self) -> Target {
        let plugged = Arc::clone(&self.plugged);
        Target::dial("in-process wire", move || {
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            let server = plugged.lock().unwrap().clone();
            let sent = server.is_some_and(|server| server.send(Ok(theirs)).is_ok());
            async move { if sent { Ok(ours) } else { Err(io::ErrorKind::ConnectionRefused.into()) } }
        })
    }

    /// Serves the switch on this wire, in a runtime of its own so that it can be killed whole.
    pub(crate) fn plug(&self, switch: &Switch) -> PluggedServer {
        let (sender, incoming) = mpsc::unbounded_channel();
        let runtime = Runtime::new().unwrap();
        runtime.spawn(
            Server::builder()
                .add_service(service(switch.clone()))
                .serve_with_incoming(UnboundedReceiverStream::new(incoming)),
        );
        *self.plugged.lock().unwrap() = Some(sender);
        PluggedServer { runtime: Some(runtime), plugged: Arc::clone(&self.plugged) }
    }
}

/// A running server. Dropping it is a crash: connections break, nothing is told.
pub(crate) struct PluggedServer {
    runtime: Option<Runtime>,
    plugged: Arc<Mutex<Option<Incoming>>>,
}

impl Drop for PluggedServer {
    fn drop(&mut self) {
        self.plugged.lock().unwrap().take();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
