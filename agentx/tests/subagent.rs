//! A subagent whose master agent comes and goes on a real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use agentx::{
    Address, Body, ByteOrder, HEADER, Header, Master, Notification, Objects, Oid, Pdu, ResponseError,
    SearchRange, Settings, Source, State, Subagent, View,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);

struct Nothing;

impl Source for Nothing {
    async fn view(&self, _: Master, _: &[SearchRange]) -> Option<Arc<dyn View>> {
        Some(Arc::new(Objects::default()))
    }
}

async fn read(wire: &mut (impl AsyncRead + Unpin)) -> Pdu {
    let mut octets = vec![0; HEADER];
    wire.read_exact(&mut octets).await.unwrap();
    let header = Header::decode(octets.first_chunk().unwrap()).unwrap();
    octets.resize(HEADER + header.payload, 0);
    wire.read_exact(&mut octets[HEADER..]).await.unwrap();
    Pdu::decode(&octets).unwrap()
}

/// Takes what comes, with success, until a notification or the end; answers with the notification's type.
async fn serve(mut wire: impl AsyncRead + AsyncWrite + Unpin) -> Oid {
    loop {
        let Pdu { transaction, packet, body, .. } = timeout(DEADLINE, read(&mut wire)).await.unwrap();
        let response =
            Body::Response { uptime: 1, error: ResponseError::NONE, index: 0, bindings: Vec::new() };
        let pdu = Pdu { order: ByteOrder::Network, session: 3, transaction, packet, body: response };
        wire.write_all(&pdu.encode()).await.unwrap();
        if let Body::Notify { bindings, .. } = body {
            let agentx::Value::ObjectIdentifier(kind) = &bindings[0].value else { panic!("{bindings:?}") };
            return kind.clone();
        }
    }
}

fn start(address: Address) -> Subagent {
    let settings = Settings { address, subtree: Oid::new([1, 3, 9]), description: "test".to_owned() };
    Subagent::start(settings, Arc::new(Nothing))
}

fn news(number: u32) -> Notification {
    Notification { kind: Oid::new([1, 3, 9, 0, number]), objects: Vec::new() }
}

#[tokio::test]
async fn it_waits_for_a_master_and_for_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("master");
    let subagent = start(Address::Unix(path.clone()));
    let mut state = subagent.state();
    let missing = |state: &State| matches!(state, State::Down(reason) if reason.contains("No such file"));
    timeout(DEADLINE, state.wait_for(missing)).await.unwrap().unwrap();
    subagent.notify(news(1));
    for number in 1..=3 {
        let listener = UnixListener::bind(&path).unwrap();
        let (wire, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
        // What happened while nobody listened comes first.
        assert_eq!(serve(wire).await, news(number).kind);
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        timeout(DEADLINE, state.wait_for(|state| *state != State::Up)).await.unwrap().unwrap();
        subagent.notify(news(number + 1));
    }
    timeout(DEADLINE, subagent.close()).await.unwrap();
}

#[tokio::test]
async fn rubbish_from_the_socket_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("master");
    let listener = UnixListener::bind(&path).unwrap();
    let subagent = start(Address::Unix(path.clone()));
    for round in 0..4u8 {
        let (mut wire, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
        let rubbish: Vec<u8> = (0..4000u32).map(|at| (at.wrapping_mul(7919) >> round) as u8).collect();
        // It may be gone before it has read all.
        let _ = wire.write_all(&rubbish).await;
    }
    subagent.notify(news(5));
    let (wire, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(serve(wire).await, news(5).kind);
}

#[tokio::test]
async fn tcp_does_as_well() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap()).parse().unwrap();
    let subagent = start(address);
    subagent.notify(news(1));
    let (wire, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(serve(wire).await, news(1).kind);
    assert_eq!(subagent.dropped(), 0);
}

#[test]
fn addresses_are_of_this_machine() {
    for good in ["unix:/var/agentx/master", "tcp:127.0.0.1:705", "tcp:[::1]:705"] {
        assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
    }
    assert_eq!("/var/agentx/master".parse::<Address>().unwrap().to_string(), "unix:/var/agentx/master");
    for wrong in ["", "unix:", "unix:master", "tcp:192.0.2.1:705", "tcp:localhost:705"] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
}
