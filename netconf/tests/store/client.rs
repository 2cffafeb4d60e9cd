//! A client over a pipe.

use std::sync::Arc;
use std::time::Duration;

use api::Role;
use netconf::framing::{Decoder, Framing, header, trailer};
use netconf::{Ending, Locks, PrivateKey, Server, Settings};
use roxmltree::{Document, Node};
use russh::keys::Algorithm;
use russh::keys::key::safe_rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use super::{Shared, Store, login};

/// How long an answer may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// A server over a store.
pub fn server(store: &Arc<Store>, settings: Settings) -> Server<Shared> {
    Server::new(Arc::new(Shared(Arc::clone(store))), Arc::new(Locks::default()), key(), settings)
}

/// A host key.
pub fn key() -> PrivateKey {
    PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap()
}

pub struct Client {
    stream: DuplexStream,
    decoder: Decoder,
    framing: Framing,
    pub hello: String,
    pub session: u32,
    pub ended: JoinHandle<Result<Ending, String>>,
    message: u32,
}

impl Client {
    /// A session of base:1.1.
    pub async fn new(server: &Server<Shared>, user: &str, role: Role) -> Self {
        Self::speaking(server, user, role, "1.1").await
    }

    pub async fn speaking(server: &Server<Shared>, user: &str, role: Role, version: &str) -> Self {
        let mut client = Self::silent(server, user, role).await;
        client.greet(version).await;
        client
    }

    /// Has got the server's hello and has said nothing.
    pub async fn silent(server: &Server<Shared>, user: &str, role: Role) -> Self {
        let (stream, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let (server, login) = (server.clone(), login(user, role));
        let ended = tokio::spawn(async move { server.serve_stream(login, reader, writer).await });
        let decoder = Decoder::new(256 << 20);
        let framing = Framing::EndOfMessage;
        let mut client =
            Self { stream, decoder, framing, hello: String::new(), session: 0, ended, message: 0 };
        client.hello = client.receive().await.unwrap_or_default();
        if let Ok(hello) = Document::parse(&client.hello) {
            client.session = text(hello.root_element(), "session-id").parse().unwrap();
        }
        client
    }

    pub async fn greet(&mut self, version: &str) {
        let hello = format!(
            "<hello xmlns=\"{BASE}\"><capabilities><capability>urn:ietf:params:netconf:base:{version}</capability></capabilities></hello>"
        );
        self.send(&hello).await;
        if version == "1.1" {
            self.framing = Framing::Chunked;
            self.decoder.switch_to_chunks();
        }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        tokio::time::timeout(DEADLINE, self.stream.write_all(bytes)).await.expect("nobody reads")
    }

    /// Says that nothing more comes.
    pub async fn shut(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Sends a message; a session that is over takes none.
    pub async fn send(&mut self, message: &str) {
        let mut wire = header(self.framing, message.len());
        wire.extend(message.as_bytes());
        wire.extend(trailer(self.framing));
        let _ = self.write(&wire).await;
    }

    /// The next message; `None` where the session is over.
    pub async fn receive(&mut self) -> Option<String> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            if let Some(message) = self.decoder.take().expect("the server keeps the framing") {
                return Some(String::from_utf8(message).expect("the server sends UTF-8"));
            }
            let read = tokio::time::timeout(DEADLINE, self.stream.read(&mut buffer));
            match read.await.expect("the server says nothing") {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.decoder.push(&buffer[..length]),
            }
        }
    }

    /// What an operation answers.
    pub async fn rpc(&mut self, operation: &str) -> String {
        self.message += 1;
        self.send(&format!("<rpc message-id=\"{}\" xmlns=\"{BASE}\">{operation}</rpc>", self.message)).await;
        self.receive().await.unwrap_or_else(|| panic!("the session ended at {operation}"))
    }

    /// An operation that must be done.
    pub async fn ok(&mut self, operation: &str) {
        let reply = self.rpc(operation).await;
        assert!(reply.ends_with("><ok/></rpc-reply>"), "{operation}\n{reply}");
    }

    /// An operation that must be refused: all errors, each as `tag` or `tag app-tag`, `path`, and `info=...`.
    pub async fn refused(&mut self, operation: &str) -> Vec<String> {
        let reply = self.rpc(operation).await;
        errors(&reply)
    }

    /// What is in `<data>`.
    pub async fn data(&mut self, operation: &str) -> String {
        let reply = self.rpc(operation).await;
        let inner = reply.split_once("<data>").and_then(|(_, rest)| rest.rsplit_once("</data>"));
        inner.unwrap_or_else(|| panic!("{operation}\n{reply}")).0.to_owned()
    }

    /// A change of the candidate.
    pub async fn edit(&mut self, config: &str) {
        self.ok(&edit(config)).await;
    }

    /// Ends the session, as the client's side does when it is gone.
    pub async fn gone(self) -> Ending {
        drop(self.stream);
        self.ended.await.unwrap().unwrap()
    }

    /// The end that comes by itself.
    pub async fn end(self) -> Ending {
        tokio::time::timeout(DEADLINE, self.ended).await.expect("the session does not end").unwrap().unwrap()
    }
}

pub fn edit(config: &str) -> String {
    format!("<edit-config><target><candidate/></target><config>{config}</config></edit-config>")
}

pub fn get(source: &str, filter: &str) -> String {
    format!("<get-config><source><{source}/></source>{filter}</get-config>")
}

/// The errors in a reply.
pub fn errors(reply: &str) -> Vec<String> {
    let document = Document::parse(reply).unwrap();
    let errors: Vec<String> = document
        .descendants()
        .filter(|node| node.has_tag_name((BASE, "rpc-error")))
        .map(|error| {
            assert!(!text(error, "error-message").is_empty() && text(error, "error-severity") == "error");
            let mut told = text(error, "error-tag");
            for name in ["error-app-tag", "error-path"] {
                if child(error, name).is_some() {
                    told = format!("{told} {}", text(error, name));
                }
            }
            for info in child(error, "error-info").iter().flat_map(Node::children) {
                told = format!("{told} {}={}", info.tag_name().name(), info.text().unwrap_or_default());
            }
            told
        })
        .collect();
    assert!(!errors.is_empty(), "no error: {reply}");
    errors
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.tag_name().name() == name)
}

fn text(node: Node<'_, '_>, name: &str) -> String {
    child(node, name).and_then(|child| child.text()).unwrap_or_default().to_owned()
}
