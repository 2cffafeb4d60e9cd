//! What is answered.

use std::sync::Arc;
use std::time::Duration;

use api::Response as Answer;
use status::v1::status_service_server::StatusService;
use status::v1::{
    GetPairsRequest, GetPairsResponse, GetUnitsRequest, GetUnitsResponse, GetVersionRequest,
    GetVersionResponse, LookupRequest, LookupResponse, WatchRequest, WatchResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::watch::Watch;
use super::{Caller, Peer, messages};
use crate::session::Session;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// Readings that began so long ago are answered again.
const OLDEST: Duration = Duration::from_millis(100);
/// Messages on their way to a client that watches, besides what its connection holds.
const ON_THE_WAY: usize = 16;

pub(super) struct Service<T> {
    pub(super) desk: Arc<Desk<T>>,
    pub(super) telemetry: Telemetry<T>,
}

/// What the server put beside a request before it came here.
fn beside<V: Clone + Send + Sync + 'static>(request: &tonic::Extensions) -> Result<V, Status> {
    request.get::<V>().cloned().ok_or_else(|| Status::internal("nobody asks"))
}

#[tonic::async_trait]
impl<T: Target> StatusService for Service<T> {
    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn get_version(
        &self,
        _: Request<GetVersionRequest>,
    ) -> Result<Response<GetVersionResponse>, Status> {
        let view = self.desk.view.load_full();
        Ok(Response::new(messages::version(&self.desk.version(&view))))
    }

    async fn get_units(
        &self,
        request: Request<GetUnitsRequest>,
    ) -> Result<Response<GetUnitsResponse>, Status> {
        let snapshot = self.telemetry.snapshot(OLDEST).await;
        Ok(Response::new(GetUnitsResponse {
            units: messages::units(&snapshot, &request.get_ref().name_prefix),
            data_plane: Some(messages::data_plane(&snapshot)),
        }))
    }

    async fn get_pairs(
        &self,
        request: Request<GetPairsRequest>,
    ) -> Result<Response<GetPairsResponse>, Status> {
        let snapshot = self.telemetry.snapshot(OLDEST).await;
        Ok(Response::new(GetPairsResponse {
            pairs: messages::pairs(&snapshot, &request.get_ref().name_prefix),
            data_plane: Some(messages::data_plane(&snapshot)),
        }))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let peer: Peer = beside(request.extensions())?;
        let request = request.into_inner();
        let refresh = messages::period(request.refresh.as_ref()).map_err(Status::invalid_argument)?;
        let (to, messages) = mpsc::channel(ON_THE_WAY);
        let watch = Watch {
            telemetry: self.telemetry.clone(),
            events: self.desk.events.clone(),
            datastores: self.desk.datastores.clone(),
            prefix: request.name_prefix,
            refresh,
            peer,
            to,
        };
        tokio::spawn(watch.run());
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn lookup(&self, request: Request<LookupRequest>) -> Result<Response<LookupResponse>, Status> {
        let caller: Caller = beside(request.extensions())?;
        let query = messages::query(request.get_ref()).map_err(Status::invalid_argument)?;
        let mut session = Session::new(caller.user, caller.role, &caller.origin);
        match self.desk.answer(&mut session, api::Request::Lookup(query)).await {
            Answer::Ok(found) => {
                let found = serde_json::from_value(found)
                    .map_err(|error| Status::internal(format!("the answer is not understood: {error}")))?;
                Ok(Response::new(messages::lookup(found)))
            }
            Answer::Error(reason) if self.desk.is_current() => Err(Status::invalid_argument(reason)),
            Answer::Error(reason) => Err(Status::failed_precondition(reason)),
        }
    }
}
