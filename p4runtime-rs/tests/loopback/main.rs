//! Client and server of this crate against each other, in one process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod switch;

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use p4runtime::client::{
    Atomicity, Error, Inbox, Options, PipelineAction, ResponseType, Retry, Session, Standing, State,
    StreamNotice, Supervisor, Target, Uplink,
};
use p4runtime::proto::p4::config::v1::{P4Info, PkgInfo};
use p4runtime::proto::p4::v1::{
    CounterEntry, Entity, ForwardingPipelineConfig, PacketIn, PacketOut, TableEntry, Update,
};
use p4runtime::server::{Delivery, service};
use p4runtime::{ElectionId, WriteErrors};
use switch::{DEVICE, Switch, TABLE, VERSION, Wire, entry};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Code;
use tonic::transport::Server;

const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(event: impl Future<Output = T>) -> T {
    timeout(SOON, event).await.expect("nothing within 20 s")
}

fn options(id: u128) -> Options {
    Options::new(DEVICE, Some(ElectionId(id)))
}

fn program(cookie: u64) -> ForwardingPipelineConfig {
    let pkg_info = Some(PkgInfo { name: "sluice".into(), ..Default::default() });
    ForwardingPipelineConfig::new(P4Info { pkg_info, ..Default::default() }, b"opaque".to_vec(), cookie)
}

async fn connect(wire: &Wire, options: Options) -> (Session, Inbox) {
    Session::connect(&wire.target(), options).await.unwrap()
}

async fn standing(session: &Session, wanted: impl Fn(&Standing) -> bool) -> Standing {
    soon(session.watch().wait_for(|now| wanted(now))).await.unwrap().clone()
}

async fn state(uplink: &Uplink, wanted: impl Fn(&State) -> bool) -> State {
    soon(uplink.watch().wait_for(|now| wanted(now))).await.unwrap().clone()
}

/// A primary with its pipeline set.
async fn primary(wire: &Wire, options: Options) -> (Session, Inbox) {
    let (session, inbox) = connect(wire, options).await;
    assert_eq!(session.standing(), Standing::Primary);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(7))).await.unwrap();
    (session, inbox)
}

fn inserts(keys: std::ops::Range<u16>) -> Vec<Update> {
    keys.map(|key| Update::insert(entry(&p4runtime::bytestring::canonical(key.into())))).collect()
}

#[tokio::test]
async fn pipeline_is_set_by_the_primary_and_read_back() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let (session, _inbox) = connect(&wire, options(2)).await;
    assert!(session.pipeline(ResponseType::All).await.unwrap().is_none());
    let early = session.write(inserts(0..1), Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(early.stopped.unwrap().cause.code(), Some(Code::FailedPrecondition));

    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(7))).await.unwrap();
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), Some(program(7)));
    let cookie = session.pipeline(ResponseType::CookieOnly).await.unwrap().unwrap();
    assert_eq!((cookie.cookie, cookie.p4info), (program(7).cookie, None));
    assert_eq!(session.api_version().await.unwrap(), VERSION);

    let refused = session.set_pipeline(PipelineAction::Commit, None).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::Unimplemented));
}

#[tokio::test]
async fn backup_takes_over_when_the_primary_fails() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let (a, _inbox_a) = primary(&wire, options(10)).await;
    let (b, _inbox_b) = connect(&wire, options(9)).await;
    assert_eq!(b.standing(), Standing::Backup { primary: true, highest: Some(ElectionId(10)) });

    let refused = b.write(inserts(0..1), Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(refused.stopped.unwrap().cause.code(), Some(Code::PermissionDenied));
    let refused = b.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(8))).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::PermissionDenied));
    assert_eq!(b.read(vec![TableEntry::default().into()]).await.unwrap(), [], "a backup may read");

    drop(a);
    let alone = standing(&b, |now| matches!(now, Standing::Backup { primary: false, .. })).await;
    assert_eq!(alone, Standing::Backup { primary: false, highest: Some(ElectionId(10)) });
    b.claim(Some(ElectionId(11))).await.unwrap();
    standing(&b, |now| *now == Standing::Primary).await;
    b.write(inserts(0..1), Atomicity::ContinueOnError).await.unwrap();

    // The former primary comes back with its old id and stays behind.
    let (a, _inbox_a) = connect(&wire, options(10)).await;
    assert_eq!(a.standing(), Standing::Backup { primary: true, highest: Some(ElectionId(11)) });
    // Then it takes the device over while b lives.
    a.claim(Some(ElectionId(12))).await.unwrap();
    standing(&a, |now| *now == Standing::Primary).await;
    standing(&b, |now| matches!(now, Standing::Backup { primary: true, .. })).await;
    // And steps down.
    a.claim(None).await.unwrap();
    standing(&a, |now| matches!(now, Standing::Backup { primary: false, .. })).await;
    standing(&b, |now| matches!(now, Standing::Backup { primary: false, .. })).await;
}

#[tokio::test]
async fn taken_election_id_is_refused_and_ends_the_session() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let (a, _inbox_a) = connect(&wire, options(2)).await;
    let refused = Session::connect(&wire.target(), options(2)).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidArgument));
    let (b, _inbox_b) = connect(&wire, options(1)).await;
    b.claim(Some(ElectionId(2))).await.unwrap();
    let Standing::Lost { reason } = standing(&b, |now| matches!(now, Standing::Lost { .. })).await else {
        unreachable!()
    };
    assert!(reason.contains("election id 2 is in use"), "{reason}");
    assert!(matches!(b.api_version().await, Err(Error::Lost { .. })));
    assert_eq!(a.standing(), Standing::Primary);

    let elsewhere = Options { device_id: 99, ..options(3) };
    let refused = Session::connect(&wire.target(), elsewhere).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::NotFound));
}

#[tokio::test]
async fn each_update_has_its_own_error_across_batches() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(100));
    let _server = wire.plug(&switch);
    let (session, _inbox) = primary(&wire, Options { batch: 3, ..options(1) }).await;
    let mut updates = inserts(0..8);
    updates[1] = Update::insert(entry(&[]));
    updates[3] = Update::insert(entry(&[0])); // there since updates[0]
    updates[6] = Update::delete(entry(&[0xee]));
    updates[7] = Update::insert(CounterEntry::default());
    let error = session.write(updates, Atomicity::ContinueOnError).await.unwrap_err();
    assert!(error.stopped.is_none(), "{error}");
    let seen: Vec<_> = error.rejections.iter().map(|r| (r.index, r.fault.code())).collect();
    assert_eq!(
        seen,
        [(1, Code::OutOfRange), (3, Code::AlreadyExists), (6, Code::NotFound), (7, Code::Unimplemented)]
    );
    assert_eq!(
        error.to_string(),
        "write: 4 of 8 rejected; first: item 1: OutOfRange: empty byte string where a value of 32 bits \
         belongs; zero is one byte 0x00"
    );
    assert_eq!(switch.requests(), 3);
    assert_eq!(switch.keys(), [[0], [2], [4], [5]]);
}

#[tokio::test]
async fn full_table_names_the_vendors_code() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(2));
    let _server = wire.plug(&switch);
    let (session, _inbox) = primary(&wire, options(1)).await;
    let error = session.write(inserts(0..3), Atomicity::ContinueOnError).await.unwrap_err();
    let [rejection] = error.rejections.as_slice() else { panic!("{error}") };
    assert_eq!((rejection.index, rejection.fault.code()), (2, Code::ResourceExhausted));
    assert_eq!(rejection.fault.vendor_code(), Some(("test", 500)));
}

#[tokio::test]
async fn all_or_none_is_one_request_or_none() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(100));
    let _server = wire.plug(&switch);
    let (session, _inbox) = primary(&wire, Options { batch: 4, ..options(1) }).await;
    let mut updates = inserts(0..4);
    updates[2] = Update::delete(entry(&[0xee]));
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let error = session.write(updates.clone(), atomicity).await.unwrap_err();
        assert_eq!(error.rejections.iter().map(|r| r.index).collect::<Vec<_>>(), [2]);
        assert!(switch.keys().is_empty());
    }
    let requests = switch.requests();
    let error = session.write(inserts(0..5), Atomicity::RollbackOnError).await.unwrap_err();
    assert!(matches!(error.stopped.unwrap().cause, Error::TooLargeForAtomic { updates: 5, limit: 4, .. }));
    assert_eq!(switch.requests(), requests, "nothing was sent");
    session.write(inserts(0..4), Atomicity::RollbackOnError).await.unwrap();
    assert_eq!(switch.keys().len(), 4);
}

#[tokio::test]
async fn status_of_a_large_batch_arrives_whole() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(0));
    let _server = wire.plug(&switch);
    let (session, _inbox) = primary(&wire, Options { batch: 5000, ..options(1) }).await;
    let error = session.write(inserts(0..5000), Atomicity::ContinueOnError).await.unwrap_err();
    assert!(error.stopped.is_none(), "{error}");
    assert_eq!(error.rejections.len(), 5000);
    assert_eq!(switch.requests(), 1);
}

#[tokio::test]
async fn reads_take_wildcards_and_name_the_filter_at_fault() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(100));
    let _server = wire.plug(&switch);
    let (session, _inbox) = primary(&wire, options(1)).await;
    session.write(inserts(0..10), Atomicity::ContinueOnError).await.unwrap();

    let table = |table_id| Entity::from(TableEntry { table_id, ..Default::default() });
    assert_eq!(session.read(vec![table(0)]).await.unwrap().len(), 10);
    assert_eq!(session.read(vec![table(TABLE)]).await.unwrap().len(), 10);
    assert_eq!(session.read(vec![table(TABLE + 1)]).await.unwrap(), []);
    assert_eq!(session.read(vec![entry(&[3]).into()]).await.unwrap(), [entry(&[3]).into()]);

    let filters = vec![entry(&[3]).into(), CounterEntry::default().into()];
    let Err(Error::Rejected { items: 2, rejections, .. }) = session.read(filters.clone()).await else {
        panic!("expected a rejection")
    };
    assert_eq!((rejections.len(), rejections[0].index), (1, 1));

    let mut stream = session.read_stream(filters).await.unwrap();
    assert_eq!(soon(stream.next()).await.unwrap().unwrap(), [entry(&[3]).into()]);
    assert!(matches!(soon(stream.next()).await, Some(Err(Error::Rejected { .. }))));
    assert!(soon(stream.next()).await.is_none());
}

#[tokio::test]
async fn packets_go_both_ways_and_errors_come_back() {
    let (wire, (switch, mut sent)) = (Wire::default(), Switch::new(1));
    let _server = wire.plug(&switch);
    let (session, mut inbox) = connect(&wire, options(2)).await;
    let out = PacketOut { payload: vec![1, 2, 3], metadata: vec![] };
    session.send_packet(out.clone()).await.unwrap();
    assert_eq!(soon(sent.recv()).await.unwrap(), out);
    session.send_packet(PacketOut::default()).await.unwrap();
    match soon(inbox.notices.recv()).await.unwrap() {
        StreamNotice::Error(error) => assert_eq!(error.message, "empty frame"),
        other => panic!("expected an error, got {other:?}"),
    }
    let packet = PacketIn { payload: vec![9], metadata: vec![] };
    assert_eq!(switch.controllers.packet_in(packet.clone()), Delivery::Queued);
    assert_eq!(soon(inbox.packets.recv()).await.unwrap(), packet);

    let (backup, _inbox) = connect(&wire, options(1)).await;
    assert!(matches!(backup.send_packet(out).await, Err(Error::NotPrimary { .. })));
}

#[tokio::test]
async fn flood_of_packets_blocks_nothing() {
    const FLOOD: u64 = 20_000;
    const KEPT: usize = 8;
    let (wire, (switch, _)) = (Wire::default(), Switch::new(100));
    let _server = wire.plug(&switch);
    let (session, mut inbox) = primary(&wire, Options { packets: KEPT, ..options(1) }).await;
    for n in 0..FLOOD {
        let packet = PacketIn { payload: n.to_be_bytes().to_vec(), metadata: vec![] };
        assert_eq!(switch.controllers.packet_in(packet), Delivery::Queued);
    }
    // Nobody reads; calls and arbitration go on.
    session.write(inserts(0..10), Atomicity::ContinueOnError).await.unwrap();
    let (other, _inbox) = connect(&wire, options(2)).await;
    assert_eq!(other.standing(), Standing::Primary);
    standing(&session, |now| matches!(now, Standing::Backup { primary: true, .. })).await;

    soon(async {
        while inbox.dropped.packets() < FLOOD - KEPT as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for n in 0..KEPT as u64 {
        assert_eq!(soon(inbox.packets.recv()).await.unwrap().payload, n.to_be_bytes());
    }
    assert!(inbox.packets.try_recv().is_err());
    assert_eq!(inbox.dropped.packets(), FLOOD - KEPT as u64);
}

#[tokio::test]
async fn silent_server_costs_no_more_than_the_deadline() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(100));
    let _server = wire.plug(&switch);
    let short = Duration::from_millis(200);
    let options = Options { call_deadline: short, pipeline_deadline: short, batch: 2, ..options(1) };
    let (session, _inbox) = primary(&wire, options).await;
    switch.hangs.store(true, Ordering::SeqCst);

    let error = soon(session.write(inserts(0..6), Atomicity::ContinueOnError)).await.unwrap_err();
    let stopped = error.stopped.unwrap();
    assert_eq!(stopped.batch, 0..2);
    assert!(matches!(stopped.cause, Error::Deadline { call: "Write", .. }));
    let filter = || vec![Entity::from(TableEntry::default())];
    assert!(matches!(soon(session.read(filter())).await, Err(Error::Deadline { .. })));
    assert!(matches!(soon(session.pipeline(ResponseType::All)).await, Err(Error::Deadline { .. })));
    let set = session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(1)));
    assert!(matches!(soon(set).await, Err(Error::Deadline { .. })));
    assert!(matches!(soon(session.api_version()).await, Err(Error::Deadline { .. })));
}

#[tokio::test]
async fn server_that_never_answers_the_claim_is_given_up() {
    let (open, _held) = tokio::sync::mpsc::unbounded_channel();
    let target = Target::dial("black hole", move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        open.send(theirs).unwrap();
        async move { Ok(ours) }
    });
    let options = Options { connect_deadline: Duration::from_millis(200), ..options(1) };
    let error = soon(Session::connect(&target, options)).await.unwrap_err();
    assert!(matches!(error, Error::Deadline { call: "claim of the device", .. }), "{error}");
}

fn quick() -> Retry {
    Retry {
        first: Duration::from_millis(10),
        most: Duration::from_millis(50),
        probe: Duration::from_millis(50),
    }
}

#[tokio::test]
async fn session_comes_back_after_the_server_is_restarted() {
    let wire = Wire::default();
    let (supervisor, uplink, mut inbox) = Supervisor::new(wire.target(), options(5), quick());
    let running = tokio::spawn(supervisor.run());
    let State::Lost { reason, .. } = state(&uplink, |now| matches!(now, State::Lost { .. })).await else {
        unreachable!()
    };
    assert!(reason.starts_with("connect to in-process wire: "), "{reason}");

    let (switch, _) = Switch::new(10);
    let server = wire.plug(&switch);
    let first = uplink.wait_primary(SOON).await.unwrap();
    first.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(1))).await.unwrap();

    drop(server);
    state(&uplink, |now| matches!(now, State::Lost { .. })).await;
    let error = first.write(inserts(0..1), Atomicity::ContinueOnError).await.unwrap_err();
    assert!(matches!(error.stopped.unwrap().cause, Error::Lost { .. }));

    // A server that has forgotten everything, as after a crash.
    let (switch, _) = Switch::new(10);
    let _server = wire.plug(&switch);
    let second = uplink.wait_primary(SOON).await.unwrap();
    assert!(second.pipeline(ResponseType::CookieOnly).await.unwrap().is_none());
    // The inbox outlives the sessions.
    let packet = PacketIn { payload: vec![9], metadata: vec![] };
    assert_eq!(switch.controllers.packet_in(packet.clone()), Delivery::Queued);
    assert_eq!(soon(inbox.packets.recv()).await.unwrap(), packet);

    drop(uplink);
    soon(running).await.unwrap();
}

#[tokio::test]
async fn supervised_backup_reports_and_takes_over() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let (other, _inbox) = connect(&wire, options(7)).await;
    let (supervisor, uplink, _inbox) = Supervisor::new(wire.target(), options(5), quick());
    let running = tokio::spawn(supervisor.run());
    let backup = state(&uplink, |now| matches!(now, State::Backup { .. })).await;
    assert!(matches!(backup, State::Backup { primary: true, highest: Some(ElectionId(7)), .. }));
    let error = uplink.wait_primary(Duration::from_millis(10)).await.unwrap_err().to_string();
    assert_eq!(error, "not primary at in-process wire after 10ms: another client is primary");

    drop(other);
    state(&uplink, |now| matches!(now, State::Backup { primary: false, .. })).await;
    uplink.claim(Some(ElectionId(8)));
    let session = uplink.wait_primary(SOON).await.unwrap();
    assert_eq!(session.election_id(), Some(ElectionId(8)));
    running.abort();
}

#[tokio::test]
async fn server_that_hangs_is_lost_and_found_again() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let options = Options { call_deadline: Duration::from_millis(200), ..options(5) };
    let (supervisor, uplink, _inbox) = Supervisor::new(wire.target(), options, quick());
    let running = tokio::spawn(supervisor.run());
    // This clone must not keep the lost session's election id in use.
    let held = uplink.wait_primary(SOON).await.unwrap();
    switch.hangs.store(true, Ordering::SeqCst);
    let State::Lost { reason, .. } = state(&uplink, |now| matches!(now, State::Lost { .. })).await else {
        unreachable!()
    };
    assert_eq!(reason, "Capabilities: no answer within 200ms");
    switch.hangs.store(false, Ordering::SeqCst);
    let session = soon(async {
        loop {
            let session = uplink.wait_primary(SOON).await.unwrap();
            if session.api_version().await.is_ok() {
                return session;
            }
        }
    })
    .await;
    assert_eq!(session.standing(), Standing::Primary);
    assert!(matches!(held.standing(), Standing::Lost { .. }));
    running.abort();
}

#[tokio::test]
async fn unix_and_tcp_sockets_carry_a_session() {
    let (switch, _) = Switch::new(10);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p4.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let unix = tokio::spawn(
        Server::builder()
            .add_service(service(switch.clone()))
            .serve_with_incoming(UnixListenerStream::new(listener)),
    );
    let target: Target = format!("unix:{}", path.display()).parse().unwrap();
    let (session, _inbox) = Session::connect(&target, options(1)).await.unwrap();
    assert_eq!(session.api_version().await.unwrap(), VERSION);

    let incoming = tonic::transport::server::TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let tcp =
        tokio::spawn(Server::builder().add_service(service(switch.clone())).serve_with_incoming(incoming));
    let target: Target = format!("grpc://{address}").parse().unwrap();
    let (session, _inbox) = Session::connect(&target, options(2)).await.unwrap();
    assert_eq!(session.standing(), Standing::Primary);
    assert_eq!(session.api_version().await.unwrap(), VERSION);
    unix.abort();
    tcp.abort();
}

#[tokio::test]
async fn closing_a_session_frees_its_election_id() {
    let (wire, (switch, _)) = (Wire::default(), Switch::new(10));
    let _server = wire.plug(&switch);
    let (backup, _inbox) = connect(&wire, options(1)).await;
    let (session, _inbox) = connect(&wire, options(2)).await;
    let clone = session.clone();
    session.close();
    assert_eq!(clone.standing(), Standing::Lost { reason: "closed by this client".into() });
    assert!(matches!(clone.claim(None).await, Err(Error::Lost { .. })));
    standing(&backup, |now| *now == Standing::Backup { primary: false, highest: Some(ElectionId(2)) }).await;
    let (_again, _inbox) = connect(&wire, options(2)).await;
}

#[test]
fn outcomes_may_be_collected_one_by_one() {
    let mut outcomes = WriteErrors::default();
    outcomes.push(Ok(()));
    assert!(!outcomes.any());
    assert!(outcomes.into_result().is_ok());
}
