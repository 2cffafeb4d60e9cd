//! The P4Runtime server of a device: one file per call.

mod config;
mod packets;
mod read;
mod write;

use std::future::Ready;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::entry::Entry;
use p4runtime::entry::p4info_of;
use p4runtime::metadata::{PACKET_IN, PACKET_OUT, PacketLayout};
use p4runtime::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, WriteRequest, WriteResponse,
};
use p4runtime::server::{Controllers, Limits, P4Runtime, ResponseStream, aside, connector};
use tokio::io::DuplexStream;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::device::Device;
use crate::packet_io::{Deliver, PacketOut};

pub use p4runtime::server::{Listen, Serving};

/// The version of the protocol that is served.
const API_VERSION: &str = "1.4.1";

/// The server of one device. Clones serve the same device.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    device_id: u64,
    controllers: Controllers,
    /// Held for the whole of a write: they follow one another (P4Runtime, "Batching and Ordering of Updates"). A
    /// read looks at the entries between two of them.
    forwarding: Mutex<config::Forwarding>,
    packet_in: Option<PacketLayout>,
    packet_out_layout: Option<PacketLayout>,
    packet_out: Option<PacketOut>,
}

impl Server {
    /// A server for a device with this number. Without a way for them, packet-outs are refused.
    #[must_use]
    pub fn new(device: Arc<Device>, device_id: u64, packet_out: Option<PacketOut>) -> Self {
        let info = p4info_of(device.profile());
        Server {
            shared: Arc::new(Shared {
                device_id,
                controllers: Controllers::new(device_id, Limits::default()),
                forwarding: Mutex::new(config::Forwarding::new(device)),
                packet_in: PacketLayout::of(&info, PACKET_IN).ok(),
                packet_out_layout: PacketLayout::of(&info, PACKET_OUT).ok(),
                packet_out,
            }),
        }
    }

    /// Puts these entries in the place of all there are, unless a controller has set the pipeline; whether it did.
    pub fn set_initial_tables(&self, entries: &[Entry]) -> bool {
        self.shared.forwarding().set_initial_tables(entries)
    }

    /// What hands keep-alives to the primary.
    #[must_use]
    pub fn deliver(&self) -> Deliver {
        let server = self.clone();
        Box::new(move |port, frame, time| server.shared.packet_in(port, frame, time))
    }

    /// Serves an address until the answer is dropped.
    ///
    /// # Errors
    /// As [`Listen::serve`].
    pub async fn listen(&self, address: &Listen) -> io::Result<Serving> {
        address.serve(self.clone()).await
    }

    /// What opens streams to this server within the process. Call within a Tokio runtime, which serves them.
    pub fn connector(&self) -> impl Fn() -> Ready<io::Result<DuplexStream>> + Send + Sync + 'static {
        connector(self.clone())
    }
}

impl Shared {
    fn forwarding(&self) -> MutexGuard<'_, config::Forwarding> {
        self.forwarding.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p4.sock");
        let address = Listen::Unix(path.clone());
        let server = Server::new(Default::default(), 1, None);
        let serving = server.listen(&address).await.unwrap();
        let error = server.listen(&address).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(serving);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a crash leaves the file");
        drop(server.listen(&address).await.unwrap());
        std::fs::write(&path, "precious").unwrap();
        assert!(server.listen(&address).await.unwrap_err().to_string().contains("no socket"));
        assert!(path.exists());
    }
}
