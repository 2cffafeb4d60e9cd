//! `/metrics` for Prometheus, over HTTPS.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::http::{HeaderValue, Method, StatusCode};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use liveness::Nanos;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::listeners::addresses;
use super::tls::{self, Listening, Service};
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

mod family;
mod page;

pub use family::{FAMILIES, Family, Kind};
pub use page::{Format, Page};

const PORT: u16 = 9464;
const MAX_FLOWS: usize = 10_000;
/// Readings that began so long ago are served again: many scrapers cost the data plane one reading a second.
const OLDEST: Duration = Duration::from_secs(1);
/// Likewise for flows.
const OLDEST_FLOWS: Duration = Duration::from_secs(5);
/// Connections at once; more are closed.
const CONNECTIONS: usize = 64;
/// A request's head must have come by then; a connection without requests ends.
const HEAD: Duration = Duration::from_secs(10);
/// A connection ends after so long, however slowly its client reads.
const CONNECTION: Duration = Duration::from_secs(120);
/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 16 * 1024;
const HEADERS: usize = 64;

/// Serves for as long as the process lives, where and as running says.
pub async fn serve<T: Target>(desk: Arc<Desk<T>>, telemetry: Telemetry<T>, state_dir: PathBuf) {
    let endpoint = Arc::new(Endpoint { desk: desk.clone(), telemetry, pages: Mutex::default() });
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let service = Service {
        name: "prometheus",
        at: &["prometheus"],
        protocol: b"http/1.1",
        addresses: |listening| addresses(&listening.listen_address, listening.port.unwrap_or(PORT)),
    };
    let serve = move |listener, credentials, closing| {
        let (endpoint, room) = (endpoint.clone(), room.clone());
        let connection = move |stream, from| {
            let endpoint = endpoint.clone();
            async move {
                if timeout(CONNECTION, attend(stream, endpoint)).await.is_err() {
                    tracing::debug!("{from}: too slow, or long enough");
                }
            }
        };
        tls::accept(listener, credentials, room, closing, connection)
    };
    service.follow(&desk.datastores, &desk.events, &state_dir, serve).await;
}

async fn attend<T: Target>(stream: TlsStream<TcpStream>, endpoint: Arc<Endpoint<T>>) {
    let answer = service_fn(move |request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.answer(&request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), answer);
    if let Err(error) = connection.await {
        tracing::debug!("scraper: {error}");
    }
}

/// A page that was made, and of which readings.
#[derive(Default)]
struct Made {
    of: Option<(Nanos, Option<Nanos>, usize)>,
    text: Bytes,
}

struct Endpoint<T> {
    desk: Arc<Desk<T>>,
    telemetry: Telemetry<T>,
    /// OpenMetrics and text: scrapers of one reading get the same page.
    pages: Mutex<[Made; 2]>,
}

impl<T: Target> Endpoint<T> {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        let text = |status, content_type, text| {
            let mut response = Response::new(Full::new(text));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        };
        if request.uri().path() != "/metrics" {
            return text(StatusCode::NOT_FOUND, plain, Bytes::from_static(b"only /metrics is here\n"));
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let only = Bytes::from_static(b"only GET and HEAD\n");
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, plain, only);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let accepts: Vec<&str> =
            request.headers().get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok()).collect();
        let format = Format::of(&accepts.join(","));
        match self.page(format).await {
            Ok(page) => {
                let content_type = HeaderValue::from_static(format.content_type());
                let mut response = text(StatusCode::OK, content_type, page);
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, plain, format!("{error}\n").into()),
        }
    }

    async fn page(&self, format: Format) -> Result<Bytes, std::fmt::Error> {
        let snapshot = self.telemetry.snapshot(OLDEST).await;
        let running = self.desk.datastores.running();
        let max_flows = Listening::of(&running.tree, &["prometheus"]).max_flows.unwrap_or(MAX_FLOWS);
        let view = self.desk.view.load_full();
        let flows = if max_flows == 0 { None } else { Some(self.telemetry.flows(OLDEST_FLOWS).await) };
        let of = Some((snapshot.at, flows.as_ref().map(|flows| flows.at), max_flows));
        let mut pages = self.pages.lock().await;
        let made = &mut pages[usize::from(format == Format::Text)];
        if made.of != of {
            let page = Page {
                snapshot,
                flows,
                max_flows,
                flow_count: view.site.flows.len(),
                version: self.desk.version(&view),
                events: self.desk.events.counts(),
            };
            made.text = tokio::task::block_in_place(|| page.encode(format))?.into();
            made.of = of;
        }
        Ok(made.text.clone())
    }
}
