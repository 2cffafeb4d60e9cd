//! TLS of what listens on TCP.

use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::{EventKind, Severity};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tree::{Tree, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificate::{self, CertificateError};
use super::listeners::{AGAIN, Closing, Listeners};
use crate::datastore::{Datastores, path_to};
use crate::event::{Events, News};

/// Between looks whether files of certificates are other ones.
const LOOK: Duration = Duration::from_secs(60);
/// A client that has not shaken hands by then is sent away.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Files of certificates, PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Files {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) client_ca: Option<PathBuf>,
}

/// Where something listens, as the configuration has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Listening {
    pub(super) enabled: bool,
    /// Addresses; the loopback where none is set.
    pub(super) listen_address: Vec<String>,
    pub(super) port: Option<u16>,
    /// Of `prometheus` alone.
    pub(super) max_flows: Option<usize>,
    pub(super) tls: Files,
}

impl Listening {
    /// Of the container at a path of a configuration that keeps the rules of the modules.
    pub(super) fn of(tree: &Tree, at: &[&str]) -> Self {
        let Some(path) = path_to(tree.schema(), at).filter(|path| tree.contains(path)) else {
            return Listening::default();
        };
        serde_json::from_value(json::value(tree, &path)).unwrap_or_else(|error| {
            // Nothing listens then.
            tracing::error!("{}: {error}", at.join(" "));
            Listening::default()
        })
    }
}

/// A service on TCP that is as running says.
pub(super) struct Service {
    /// Of events.
    pub(super) name: &'static str,
    /// The container of its configuration.
    pub(super) at: &'static [&'static str],
    /// What is spoken inside TLS (ALPN).
    pub(super) protocol: &'static [u8],
    /// Where it listens by that.
    pub(super) addresses: fn(&Listening) -> Vec<SocketAddr>,
}

impl Service {
    /// Listens where it shall, with the certificates that it shall show, for as long as the process lives. Other
    /// certificates end what is connected.
    pub(super) async fn follow<F>(
        &self,
        datastores: &Datastores,
        events: &Events,
        state_dir: &Path,
        serve: impl Fn(TcpListener, Credentials, Closing) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut changes = datastores.changes();
        let mut listeners = Listeners::new(self.name);
        let mut shown: Option<Credentials> = None;
        // Said once.
        let mut trouble: Option<String> = None;
        loop {
            let wanted = Listening::of(&datastores.running().tree, self.at);
            let credentials = wanted
                .enabled
                .then(|| {
                    tokio::task::block_in_place(|| Credentials::load(&wanted.tls, state_dir, self.protocol))
                })
                .transpose();
            let mut failed = false;
            match credentials {
                Ok(Some(credentials)) => {
                    trouble = None;
                    if shown.as_ref() != Some(&credentials) {
                        listeners.close_all().await;
                        shown = Some(credentials.clone());
                    }
                    let addresses = (self.addresses)(&wanted);
                    let serve = |listener, closing| serve(listener, credentials.clone(), closing);
                    failed = listeners.follow(&addresses, events, serve).await;
                }
                Ok(None) => {
                    trouble = None;
                    listeners.close_all().await;
                }
                Err(error) => {
                    failed = true;
                    listeners.close_all().await;
                    let reason = format!("does not listen: {error}; trying again");
                    if trouble.as_ref() != Some(&reason) {
                        let news = News::now(Severity::Error, EventKind::Configuration, self.name, &reason);
                        events.log(news);
                    }
                    trouble = Some(reason);
                }
            }
            tokio::select! {
                change = changes.recv() => {
                    if matches!(change, Err(broadcast::error::RecvError::Closed)) {
                        return;
                    }
                }
                // Files of certificates are renewed without a word.
                () = sleep(if failed { AGAIN } else { LOOK }), if wanted.enabled => {}
            }
        }
    }
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error("{what} {}: {reason}", .path.display())]
    File { what: &'static str, path: PathBuf, reason: String },
    #[error(transparent)]
    SelfSigned(#[from] CertificateError),
    #[error("certificate and key: {0}")]
    Identity(rustls::Error),
    #[error("tls client-ca {}: {error}", .path.display())]
    ClientCa { path: PathBuf, error: VerifierBuilderError },
}

/// What a server shows and asks for.
#[derive(Clone)]
pub(super) struct Credentials {
    config: Arc<ServerConfig>,
    /// Of the files that they are from.
    digest: [u8; 32],
}

impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Credentials {
    /// Reads the files; without a certificate the self-signed one of the state directory, and with a `client-ca`
    /// clients must show a certificate of it. `protocol` is what is spoken inside (ALPN).
    pub(super) fn load(files: &Files, state_dir: &Path, protocol: &[u8]) -> Result<Self, TlsError> {
        let read = |what, path: &PathBuf| {
            fs::read(path).map_err(|error| TlsError::File {
                what,
                path: path.clone(),
                reason: error.to_string(),
            })
        };
        let (chain, key, chain_file, key_file) = match (&files.certificate, &files.key) {
            (Some(certificate), Some(key)) => (
                read("tls certificate", certificate)?,
                read("tls key", key)?,
                certificate.clone(),
                key.clone(),
            ),
            _ => {
                let own = certificate::load_or_make(state_dir, SystemTime::now())?.into_bytes();
                let file = state_dir.join(certificate::FILE);
                (own.clone(), own, file.clone(), file)
            }
        };
        let client_ca = files.client_ca.as_ref().map(|path| read("tls client-ca", path)).transpose()?;
        let mut digest = Sha256::new();
        for part in [Some(&chain), Some(&key), client_ca.as_ref()] {
            digest.update(part.map_or(0, |part| part.len() as u64 + 1).to_be_bytes());
            digest.update(part.map(Vec::as_slice).unwrap_or_default());
        }
        let chain = certificates("tls certificate", &chain_file, &chain)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| TlsError::File {
            what: "tls key",
            path: key_file,
            reason: format!("no private key: {error}"),
        })?;
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Identity)?;
        let builder = match (&files.client_ca, client_ca) {
            (Some(path), Some(text)) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates("tls client-ca", path, &text)? {
                    roots.add(authority).map_err(|error| TlsError::File {
                        what: "tls client-ca",
                        path: path.clone(),
                        reason: error.to_string(),
                    })?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| TlsError::ClientCa { path: path.clone(), error })?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Identity)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Credentials { config: Arc::new(config), digest: digest.finalize().into() })
    }
}

fn certificates(
    what: &'static str,
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fault = |reason: String| TlsError::File { what, path: path.to_owned(), reason };
    let found: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| fault(format!("no certificate: {error}")))?;
    if found.is_empty() {
        return Err(fault("has no certificate; PEM is wanted".to_owned()));
    }
    Ok(found)
}

/// The common name in the certificate that the client has shown, which is a user's.
pub(super) fn common_name(stream: &TlsStream<TcpStream>) -> Option<String> {
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    match (names.next(), names.next()) {
        (Some(name), None) => name.as_str().ok().map(str::to_owned),
        // Two names are nobody's.
        _ => None,
    }
}

/// Takes connections and has those served that have shaken hands; as many at once as there is room for, others are
/// closed. Ends, with all of them, when it is told to.
pub(super) async fn accept<S, F>(
    listener: TcpListener,
    credentials: Credentials,
    room: Arc<Semaphore>,
    closing: Closing,
    serve: S,
) where
    S: Fn(TlsStream<TcpStream>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let acceptor = TlsAcceptor::from(credentials.config);
    let closed = closing.clone().closed();
    tokio::pin!(closed);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut closed => return,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                // Out of files, most likely: nothing tells when there are some again.
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            tracing::debug!("{from}: too many connections");
            continue;
        };
        let (shaking, closing, serve) = (acceptor.accept(stream), closing.clone(), serve.clone());
        tokio::spawn(async move {
            let connection = async {
                match timeout(HANDSHAKE, shaking).await {
                    Ok(Ok(stream)) => serve(stream, from).await,
                    Ok(Err(error)) => tracing::debug!("{from}: {error}"),
                    Err(_) => tracing::debug!("{from}: no handshake"),
                }
            };
            tokio::select! {
                () = connection => {}
                () = closing.closed() => {}
            }
            drop(place);
        });
    }
}
