//! The P4Runtime server through this project's client, in one process: every answer has its canonical code,
//! and what is refused changes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod site_file;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dataplane::entry::{Entry, Update as Change};
use dataplane::keepalive::{KEEP_ALIVE_ETHERTYPE, TRANSMIT_TIME_OFFSET};
use dataplane::schema::counters;
use dataplane::tables::{
    BucketEntry, BucketForwarding, CLONE_SESSIONS, CloneSessionEntry, Family, PairForwarding, PairStateEntry,
    PortMtuEntry, RuleAction, RuleEntry, RuleField, RuleMatch, SteeringEntry,
};
use dataplane::target::TOFINO1;
use dataplane::{BucketIndex, Core, Nanos, PairId, PortId, Reason, SteeringMode, UnitId};
use p4runtime::ElectionId;
use p4runtime::client::{
    Atomicity, Error, Inbox, Options, PipelineAction, ResponseType, Session, Standing, StreamNotice, Target,
};
use p4runtime::entry::{
    every_entry, from_entity, p4info, p4info_of, place_to_wire, to_entity, to_wire, update_to_wire,
};
use p4runtime::metadata::{PACKET_IN, PACKET_OUT, PacketLayout};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::replica::PortKind;
use p4runtime::proto::p4::v1::{
    ActionProfileMember, CloneSessionEntry as WireSession, CounterData, CounterEntry, DirectCounterEntry,
    Entity, ForwardingPipelineConfig, Index, MulticastGroupEntry, PacketOut, Replica, TableEntry, Update,
    field_match,
};
use site_file::example_entries;
use swpipe::batch::Forwarder;
use swpipe::counters::Place;
use swpipe::device::{Atomicity as DeviceAtomicity, Device};
use swpipe::io::{Edit, Frame, KeepAliveSender, Sender};
use swpipe::packet_io;
use swpipe::server::Server;
use swpipe::worker::Outlets;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tonic::Code;

const DEVICE: u64 = 1;

struct Switch {
    device: Arc<Device>,
    server: Server,
    target: Target,
}

fn switch_with(packet_out: impl FnOnce(&Arc<Device>) -> Option<packet_io::PacketOut>) -> Switch {
    let device = Arc::new(Device::default());
    let server = Server::new(Arc::clone(&device), DEVICE, packet_out(&device));
    let target = Target::dial("test", server.connector());
    Switch { device, server, target }
}

fn switch() -> Switch {
    switch_with(|_| None)
}

impl Switch {
    async fn connect(&self, id: u128) -> (Session, Inbox) {
        Session::connect(&self.target, Options::new(DEVICE, Some(ElectionId(id)))).await.unwrap()
    }

    async fn primary(&self) -> (Session, Inbox) {
        let (session, inbox) = self.connect(10).await;
        assert_eq!(session.standing(), Standing::Primary);
        session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(1))).await.unwrap();
        (session, inbox)
    }
}

fn program(cookie: u64) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig::new(p4info(), b"opaque".to_vec(), cookie)
}

fn rule(priority: i32) -> Entry {
    let mut matches = RuleMatch::default();
    matches.set_exact(RuleField::IpVersion, 4, Family::V4);
    matches.set(RuleField::IpProto, 6, 0xff);
    let rule = RuleEntry { family: Family::V4, priority, matches, action: RuleAction::ToUnit(UnitId(0)) };
    Entry { metadata: format!("rule {priority}").into_bytes(), ..rule.entry() }
}

fn insert(entry: &Entry) -> Update {
    update_to_wire(&Change::Insert(entry.clone()))
}

fn modify(entry: &Entry) -> Update {
    update_to_wire(&Change::Modify(entry.clone()))
}

fn delete(entry: &Entry) -> Update {
    update_to_wire(&Change::Delete(entry.clone()))
}

/// Codes by index of what a write was refused for.
async fn refused(session: &Session, updates: Vec<Update>, atomicity: Atomicity) -> Vec<(usize, Code)> {
    let error = session.write(updates, atomicity).await.unwrap_err();
    assert!(error.stopped.is_none(), "{error}");
    error
        .rejections
        .iter()
        .map(|rejection| {
            assert!(!rejection.fault.message().is_empty());
            (rejection.index, rejection.fault.code())
        })
        .collect()
}

fn spoilt(entry: &Entry, spoil: impl FnOnce(&mut TableEntry)) -> Update {
    let mut wire = to_wire(entry);
    spoil(&mut wire);
    Update::insert(wire)
}

/// A clone session that was spoilt.
fn with_session(spoil: &dyn Fn(&mut WireSession)) -> Update {
    let mut wire = WireSession { session_id: 9, replicas: vec![replica(8)], ..Default::default() };
    spoil(&mut wire);
    Update::insert(wire)
}

fn replica(port: u8) -> Replica {
    Replica { port_kind: Some(PortKind::Port(vec![port])), instance: 1, ..Default::default() }
}

/// An insert whose first field is this byte string.
fn with_key(entry: &Entry, value: &[u8]) -> Update {
    let exact = field_match::FieldMatchType::Exact(field_match::Exact { value: value.to_vec() });
    spoilt(entry, |wire| wire.r#match[0].field_match_type = Some(exact))
}

async fn all_entries(session: &Session) -> Vec<Entry> {
    let mut entries: Vec<Entry> = session
        .read(every_entry())
        .await
        .unwrap()
        .into_iter()
        .map(|entity| from_entity(&entity).unwrap().unwrap())
        .collect();
    entries.sort();
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_written_and_read_back() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let mut entries = example_entries();
    let updates = entries.iter().map(|entry| if entry.is_default { modify(entry) } else { insert(entry) });
    session.write(updates.collect(), Atomicity::ContinueOnError).await.unwrap();
    entries.sort();
    assert!(entries.len() > 1000, "more than one part");
    assert_eq!(all_entries(&session).await, entries);
    assert_eq!(switch.device.entries(None), entries);
    let deletes = entries.iter().filter(|entry| !entry.is_default).map(delete);
    session.write(deletes.collect(), Atomicity::ContinueOnError).await.unwrap();
    assert_eq!(all_entries(&session).await.len(), 1, "the default entry stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_or_written_before_a_pipeline_is_set() {
    let switch = switch();
    let (session, _inbox) = switch.connect(10).await;
    let error = session.read(every_entry()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::FailedPrecondition));
    let error = session.write(vec![insert(&rule(1))], Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(error.stopped.unwrap().cause.code(), Some(Code::FailedPrecondition));
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipeline_actions_do_what_they_say() {
    let switch = switch();
    let (session, _inbox) = switch.connect(10).await;
    let code = |result: Result<(), Error>| result.unwrap_err().code();
    // Verify sets nothing.
    session.set_pipeline(PipelineAction::Verify, Some(program(1))).await.unwrap();
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), None);
    assert_eq!(code(session.set_pipeline(PipelineAction::Verify, None).await), Some(Code::InvalidArgument));
    assert_eq!(code(session.set_pipeline(PipelineAction::Commit, None).await), Some(Code::NotFound));
    let commit_with_config = session.set_pipeline(PipelineAction::Commit, Some(program(1))).await;
    assert_eq!(code(commit_with_config), Some(Code::InvalidArgument));

    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(1))).await.unwrap();
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), Some(program(1)));
    let cookie = session.pipeline(ResponseType::CookieOnly).await.unwrap().unwrap();
    assert_eq!((cookie.cookie, cookie.p4info), (program(1).cookie, None));
    let info = session.pipeline(ResponseType::P4infoAndCookie).await.unwrap().unwrap();
    assert_eq!((info.p4info, info.p4_device_config), (Some(p4info()), vec![]));
    let blob = session.pipeline(ResponseType::DeviceConfigAndCookie).await.unwrap().unwrap();
    assert_eq!((blob.p4info, blob.p4_device_config), (None, b"opaque".to_vec()));

    // Reconcile keeps entries, commit clears them.
    session.write(vec![insert(&rule(1))], Atomicity::ContinueOnError).await.unwrap();
    session.set_pipeline(PipelineAction::ReconcileAndCommit, Some(program(2))).await.unwrap();
    assert_eq!(switch.device.entries(None), [rule(1)]);
    // Saved: writes are kept apart until the commit puts them in the old entries' place.
    session.set_pipeline(PipelineAction::VerifyAndSave, Some(program(3))).await.unwrap();
    session.write(vec![insert(&rule(2))], Atomicity::ContinueOnError).await.unwrap();
    assert_eq!(switch.device.entries(None), [rule(1)]);
    session.set_pipeline(PipelineAction::Commit, None).await.unwrap();
    assert_eq!(switch.device.entries(None), [rule(2)]);
    let cookie = session.pipeline(ResponseType::CookieOnly).await.unwrap().unwrap();
    assert_eq!(cookie.cookie, program(3).cookie);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(4))).await.unwrap();
    assert!(switch.device.entries(None).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_is_refused_with_the_first_difference() {
    let switch = switch();
    let (session, _inbox) = switch.connect(10).await;
    let mut info = p4info();
    info.tables[1].match_fields[0].bitwidth = 16;
    let other = ForwardingPipelineConfig::new(info, vec![], 1);
    let error = session.set_pipeline(PipelineAction::VerifyAndCommit, Some(other)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidArgument));
    assert!(error.to_string().contains("ingress_port"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_update_has_its_code_and_changes_nothing() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    session.write(vec![insert(&rule(1))], Atomicity::ContinueOnError).await.unwrap();
    let before = switch.device.entries(None);

    let forwarding = BucketForwarding::Pair { pair: PairId(1), core: Core(0) };
    let bucket = BucketEntry { unit: UnitId(0), bucket: BucketIndex(7), forwarding }.entry();
    let pair_state = PairStateEntry { pair: PairId(1), forwarding: PairForwarding::Up }.entry();
    let r#const = TableEntry { is_default_action: true, r#match: vec![], priority: 0, ..to_wire(&rule(1)) };
    let cases: Vec<(&str, Update, Code)> = vec![
        ("no entity", Update { r#type: 1, entity: None }, Code::InvalidArgument),
        ("no type", Update { r#type: 0, ..insert(&rule(2)) }, Code::InvalidArgument),
        ("unknown table", spoilt(&rule(2), |wire| wire.table_id = 0x0200_00ff), Code::InvalidArgument),
        ("priority 0", spoilt(&rule(2), |wire| wire.priority = 0), Code::InvalidArgument),
        ("priority on exact", spoilt(&bucket, |wire| wire.priority = 3), Code::InvalidArgument),
        ("no action", spoilt(&rule(2), |wire| wire.action = None), Code::InvalidArgument),
        ("missing field", spoilt(&bucket, |wire| drop(wire.r#match.pop())), Code::InvalidArgument),
        ("unknown field", spoilt(&bucket, |wire| wire.r#match[0].field_id = 9), Code::InvalidArgument),
        (
            "another's action",
            spoilt(&rule(2), |wire| wire.action = to_wire(&bucket).action),
            Code::InvalidArgument,
        ),
        ("too wide", with_key(&bucket, &[1, 0]), Code::OutOfRange),
        ("empty value", with_key(&bucket, &[]), Code::OutOfRange),
        ("no such pair", with_key(&pair_state, &[2, 0]), Code::InvalidArgument),
        ("constant default", Update::modify(r#const), Code::PermissionDenied),
        ("idle timeout", spoilt(&rule(2), |wire| wire.idle_timeout_ns = 5), Code::InvalidArgument),
        ("exists", insert(&rule(1)), Code::AlreadyExists),
        ("modify of nothing", modify(&rule(3)), Code::NotFound),
        ("delete of nothing", delete(&rule(4)), Code::NotFound),
        ("delete of nothing exact", delete(&pair_state), Code::NotFound),
        (
            "counter without table counter",
            Update::modify(DirectCounterEntry {
                table_entry: Some(place_to_wire(&bucket.place())),
                data: None,
            }),
            Code::InvalidArgument,
        ),
        (
            "direct counter of nothing",
            Update::modify(DirectCounterEntry {
                table_entry: Some(place_to_wire(&rule(5).place())),
                data: None,
            }),
            Code::NotFound,
        ),
        (
            "counter insert",
            Update::insert(CounterEntry { counter_id: counters::VERDICTS.id, ..Default::default() }),
            Code::InvalidArgument,
        ),
        (
            "unknown counter",
            Update::modify(CounterEntry { counter_id: 7, ..Default::default() }),
            Code::InvalidArgument,
        ),
        (
            "negative index",
            Update::modify(CounterEntry {
                counter_id: counters::VERDICTS.id,
                index: Some(Index { index: -1 }),
                data: None,
            }),
            Code::InvalidArgument,
        ),
        (
            "index beyond",
            Update::modify(CounterEntry {
                counter_id: counters::VERDICTS.id,
                index: Some(Index { index: 32 }),
                data: None,
            }),
            Code::OutOfRange,
        ),
        (
            "rule without its IP version",
            spoilt(&rule(2), |wire| drop(wire.r#match.remove(0))),
            Code::InvalidArgument,
        ),
        ("clone session 0", with_session(&|wire| wire.session_id = 0), Code::InvalidArgument),
        ("clone session beyond ports", with_session(&|wire| wire.session_id = 600), Code::InvalidArgument),
        ("clone session in a class", with_session(&|wire| wire.class_of_service = 2), Code::Unimplemented),
        ("clone session that cuts", with_session(&|wire| wire.packet_length_bytes = 64), Code::Unimplemented),
        ("clone session without replica", with_session(&|wire| wire.replicas.clear()), Code::InvalidArgument),
        ("multicast group", Update::insert(MulticastGroupEntry::default()), Code::Unimplemented),
        (
            "clone session as an entry",
            Update::insert(TableEntry { table_id: CLONE_SESSIONS.id, ..Default::default() }),
            Code::InvalidArgument,
        ),
        ("delete of no clone session", delete(&CloneSessionEntry::to(PortId(9)).entry()), Code::NotFound),
        ("another entity", Update::insert(ActionProfileMember::default()), Code::Unimplemented),
    ];
    let wanted: Vec<(usize, Code)> = cases.iter().enumerate().map(|(index, case)| (index, case.2)).collect();
    for (name, update, code) in &cases {
        assert_eq!(
            refused(&session, vec![update.clone()], Atomicity::ContinueOnError).await,
            [(0, *code)],
            "{name}"
        );
    }
    let all: Vec<Update> = cases.iter().map(|case| case.1.clone()).collect();
    assert_eq!(refused(&session, all.clone(), Atomicity::ContinueOnError).await, wanted);
    let aborted = [all, vec![insert(&rule(6))]].concat();
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let wanted = [wanted.clone(), vec![(wanted.len(), Code::Aborted)]].concat();
        assert_eq!(refused(&session, aborted.clone(), atomicity).await, wanted);
    }
    assert_eq!(switch.device.entries(None), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_updates_of_one_entry_are_refused_with_the_index_of_the_first() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let broken = spoilt(&rule(9), |wire| wire.action = None);
    let batch = vec![insert(&rule(1)), broken, insert(&rule(2)), delete(&rule(2))];
    let error = session.write(batch, Atomicity::ContinueOnError).await.unwrap_err();
    let [_, twice] = error.rejections.as_slice() else { panic!("{error}") };
    assert_eq!((twice.index, twice.fault.code()), (3, Code::InvalidArgument));
    assert!(twice.fault.message().contains("update 2 of this batch"), "{}", twice.fault.message());
    assert_eq!(switch.device.entries(None), [rule(1), rule(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_batch_is_done_whole_or_not_at_all() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    session.write(vec![insert(&rule(1)), insert(&rule(2))], Atomicity::DataplaneAtomic).await.unwrap();
    let batch = vec![delete(&rule(1)), insert(&rule(3)), modify(&rule(4))];
    let codes = [(0, Code::Aborted), (1, Code::Aborted), (2, Code::NotFound)];
    assert_eq!(refused(&session, batch, Atomicity::DataplaneAtomic).await, codes);
    assert_eq!(switch.device.entries(None), [rule(1), rule(2)]);
    let batch = vec![delete(&rule(1)), insert(&rule(3))];
    session.write(batch, Atomicity::RollbackOnError).await.unwrap();
    assert_eq!(switch.device.entries(None), [rule(2), rule(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clone_sessions_are_written_read_and_deleted() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let [eight, nine] = [8, 9].map(|port| CloneSessionEntry::to(PortId(port)).entry());
    session.write(vec![insert(&eight), insert(&nine)], Atomicity::DataplaneAtomic).await.unwrap();
    assert_eq!(switch.device.entries(None), [eight.clone(), nine.clone()]);
    let read = async |session_id| {
        session.read(vec![WireSession { session_id, ..Default::default() }.into()]).await.unwrap()
    };
    assert_eq!(read(0).await, [to_entity(&eight), to_entity(&nine)]);
    assert_eq!(read(10).await, [to_entity(&nine)]);
    assert_eq!(read(11).await, []);
    assert_eq!(session.read(vec![TableEntry::default().into()]).await.unwrap(), [], "in no table");
    assert_eq!(
        refused(&session, vec![insert(&eight)], Atomicity::ContinueOnError).await,
        [(0, Code::AlreadyExists)]
    );

    let moved = WireSession { session_id: 9, replicas: vec![replica(7)], ..Default::default() };
    session.write(vec![Update::modify(moved)], Atomicity::ContinueOnError).await.unwrap();
    let eight = CloneSessionEntry { port: PortId(7), ..CloneSessionEntry::to(PortId(8)) }.entry();
    assert_eq!(switch.device.entries(None), [eight.clone(), nine.clone()]);
    session.write(vec![delete(&eight), delete(&nine)], Atomicity::ContinueOnError).await.unwrap();
    assert!(switch.device.entries(None).is_empty());
    assert_eq!(
        read_codes(&session, vec![MulticastGroupEntry::default().into()]).await,
        [(0, Code::Unimplemented)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_with_a_targets_limits_has_its_sizes_and_its_p4info() {
    let device = Arc::new(Device::new(&TOFINO1));
    let server = Server::new(Arc::clone(&device), DEVICE, None);
    let target = Target::dial("test", server.connector());
    let options = Options { batch: 4096, ..Options::new(DEVICE, Some(ElectionId(1))) };
    let (session, _inbox) = Session::connect(&target, options).await.unwrap();
    let error = session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(1))).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("tofino1") && text.contains("size is 131072, here it is 2048"), "{text}");
    let program = ForwardingPipelineConfig::new(p4info_of(&TOFINO1), vec![], 1);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
    let rules = |from, to| (from..=to).map(|priority| insert(&rule(priority))).collect::<Vec<_>>();
    session.write(rules(1, 2048), Atomicity::DataplaneAtomic).await.unwrap();
    let codes = refused(&session, rules(2049, 2049), Atomicity::ContinueOnError).await;
    assert_eq!(codes, [(0, Code::ResourceExhausted)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_table_refuses_one_more() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let size = dataplane::tables::by_id(rule(1).table).unwrap().size as i32;
    // All but the last past the server: the wire is not what is tested.
    let below = |priority: i32| Change::Insert(rule(size - priority));
    switch.device.write(&(1..size).map(below).collect::<Vec<_>>(), DeviceAtomicity::AllOrNothing).unwrap();
    session.write(vec![insert(&rule(size))], Atomicity::ContinueOnError).await.unwrap();
    let one_more = vec![insert(&rule(size + 1))];
    let found = refused(&session, one_more.clone(), Atomicity::ContinueOnError).await;
    assert_eq!(found, [(0, Code::ResourceExhausted)]);
    assert_eq!(switch.device.entries(None).len() as i32, size);
    // What is deleted makes room.
    session.write(vec![delete(&rule(1))], Atomicity::ContinueOnError).await.unwrap();
    session.write(one_more, Atomicity::ContinueOnError).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modify_without_action_keeps_it_and_a_default_goes_back() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let write = async |update| session.write(vec![update], Atomicity::ContinueOnError).await.unwrap();
    write(insert(&rule(1))).await;
    let renamed = TableEntry { metadata: b"renamed".to_vec(), ..place_to_wire(&rule(1).place()) };
    write(Update::modify(renamed)).await;
    assert_eq!(switch.device.entries(None), [Entry { metadata: b"renamed".to_vec(), ..rule(1) }]);

    let first: Vec<Entry> =
        all_entries(&session).await.into_iter().filter(|entry| entry.is_default).collect();
    let [steering] = first.as_slice() else { panic!("{first:?}") };
    let dot1q = SteeringEntry { mode: SteeringMode::Dot1q { tpid: 0x8100, base_vid: 7 } }.entry();
    write(modify(&dot1q)).await;
    assert!(all_entries(&session).await.contains(&dot1q));
    write(Update::modify(place_to_wire(&dot1q.place()))).await;
    assert!(all_entries(&session).await.contains(steering));
    for update in [insert(&dot1q), delete(&dot1q)] {
        let codes = refused(&session, vec![update], Atomicity::ContinueOnError).await;
        assert_eq!(codes, [(0, Code::InvalidArgument)]);
    }
}

async fn read_codes(session: &Session, filters: Vec<Entity>) -> Vec<(usize, Code)> {
    match session.read(filters).await.unwrap_err() {
        Error::Rejected { rejections, .. } => {
            rejections.iter().map(|rejection| (rejection.index, rejection.fault.code())).collect()
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_select_what_they_say() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let mtu = PortMtuEntry { port: PortId(3), mtu: 1500 }.entry();
    let entries = [rule(1), rule(2), mtu.clone()];
    session.write(entries.iter().map(insert).collect(), Atomicity::ContinueOnError).await.unwrap();
    let count = async |filter: TableEntry| session.read(vec![filter.into()]).await.unwrap().len();
    let table_id = rule(1).table;
    let table = TableEntry { table_id, ..Default::default() };
    assert_eq!(count(TableEntry::default()).await, 3);
    assert_eq!(count(table.clone()).await, 2);
    assert_eq!(count(TableEntry { priority: 2, ..table.clone() }).await, 1);
    assert_eq!(count(TableEntry { metadata: b"rule 1".to_vec(), ..table.clone() }).await, 1);
    assert_eq!(count(TableEntry { priority: 0, ..place_to_wire(&rule(1).place()) }).await, 2);
    assert_eq!(count(place_to_wire(&rule(2).place())).await, 1);
    assert_eq!(count(place_to_wire(&rule(3).place())).await, 0);
    assert_eq!(count(TableEntry { action: to_wire(&rule(1)).action, ..table.clone() }).await, 2);
    assert_eq!(count(TableEntry { is_default_action: true, ..table.clone() }).await, 1);
    assert_eq!(count(place_to_wire(&mtu.place())).await, 1);

    let wrong: Vec<(Entity, Code)> = vec![
        (Entity::default(), Code::InvalidArgument),
        (TableEntry { table_id: 5, ..Default::default() }.into(), Code::InvalidArgument),
        (TableEntry { table_id: 0, ..to_wire(&rule(1)) }.into(), Code::InvalidArgument),
        (ActionProfileMember::default().into(), Code::Unimplemented),
        (
            TableEntry { counter_data: Some(CounterData::default()), ..place_to_wire(&mtu.place()) }.into(),
            Code::InvalidArgument,
        ),
        (
            DirectCounterEntry { table_entry: Some(place_to_wire(&rule(7).place())), data: None }.into(),
            Code::NotFound,
        ),
    ];
    let codes: Vec<(usize, Code)> = wrong.iter().enumerate().map(|(index, case)| (index, case.1)).collect();
    assert_eq!(read_codes(&session, wrong.into_iter().map(|case| case.0).collect()).await, codes);
    // What is right is answered all the same.
    let mut stream = session.read_stream(vec![table.into(), Entity::default()]).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().len(), 2);
    assert!(stream.next().await.unwrap().is_err());
}

struct Sink;

impl Sender for Sink {
    fn send(&mut self, _: &[u8], _: Edit) -> bool {
        true
    }

    fn flush(&mut self) {}
}

fn captured() -> Vec<Vec<u8>> {
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let frames = swpipe::capture::read(&vectors.join("link1-lan.pcap")).unwrap();
    frames.into_iter().map(|frame| frame.bytes).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_add_up_to_frames_in() {
    let switch = switch();
    let (session, _inbox) = switch.primary().await;
    let entries = example_entries();
    let updates = entries.iter().map(|entry| if entry.is_default { modify(entry) } else { insert(entry) });
    session.write(updates.collect(), Atomicity::ContinueOnError).await.unwrap();
    let lan = PortId(4 * 4 + 2);
    // All ports but one of a pair: its share ends as port-full.
    let senders = (0..64).filter(|port| *port != 4 + 2);
    let senders = senders.map(|port| (PortId(port), Box::new(Sink) as Box<dyn Sender>)).collect();
    let mut out = Outlets::new(senders);
    let mut forwarder = Forwarder::new(switch.device.counters().block());
    let frames = captured();
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let tables = switch.device.snapshot().load_full();
    for frame in &frames {
        forwarder.forward(&tables, lan, &[Frame { bytes: frame }], &mut out);
    }
    // From a port that serves nothing.
    forwarder.forward(&tables, PortId(200), &[Frame { bytes: &frames[0] }], &mut out);

    let wildcard = vec![CounterEntry::default().into()];
    let mut sums: HashMap<u32, (i64, i64)> = HashMap::new();
    let mut port_full = 0;
    for entity in session.read(wildcard).await.unwrap() {
        let Some(Kind::CounterEntry(cell)) = entity.entity else { panic!("{entity:?}") };
        let data = cell.data.unwrap();
        let sum = sums.entry(cell.counter_id).or_default();
        *sum = (sum.0 + data.packet_count, sum.1 + data.byte_count);
        if cell.counter_id == counters::VERDICTS.id
            && cell.index.unwrap().index == Reason::PortFull.slot() as i64
        {
            port_full = data.packet_count;
        }
    }
    let all = (frames.len() as i64, bytes as i64);
    let with_unknown = (all.0 + 1, all.1 + frames[0].len() as i64);
    assert_eq!(sums[&counters::PORT_IN.id], with_unknown);
    assert_eq!(sums[&counters::VERDICTS.id], with_unknown);
    assert_eq!(sums[&counters::LINK_VERDICTS.id], all);
    assert!(port_full > 0);
    assert!(sums[&counters::PORT_OUT.id].0 < all.0);
    assert!(sums[&counters::PORT_OUT.id].0 + port_full <= all.0);

    // Rules: by the entry, by the direct counter, and set to another value.
    let rest =
        entries.iter().find(|entry| entry.metadata == b"rest" && entry.table == rule(1).table).unwrap();
    let with_counter = |entry: &Entry| TableEntry {
        counter_data: Some(CounterData::default()),
        ..place_to_wire(&entry.place())
    };
    let value = async |filter: Entity| match session.read(vec![filter]).await.unwrap().remove(0).entity {
        Some(Kind::TableEntry(entry)) => entry.counter_data.unwrap(),
        Some(Kind::DirectCounterEntry(entry)) => entry.data.unwrap(),
        other => panic!("{other:?}"),
    };
    let direct = DirectCounterEntry { table_entry: Some(place_to_wire(&rest.place())), data: None };
    let counted = value(with_counter(rest).into()).await;
    assert!(counted.packet_count > 0 && counted.packet_count <= all.0);
    assert_eq!(value(direct.clone().into()).await, counted);
    let set = CounterData { packet_count: 5, byte_count: 700 };
    let update = Update::modify(DirectCounterEntry { data: Some(set), ..direct.clone() });
    session.write(vec![update], Atomicity::ContinueOnError).await.unwrap();
    assert_eq!(value(direct.clone().into()).await, set);
    forwarder.forward(&tables, lan, &[Frame { bytes: &frames[0] }], &mut out);
    let cell = CounterEntry {
        counter_id: counters::PORT_IN.id,
        index: Some(Index { index: lan.0.into() }),
        data: None,
    };
    let cleared = Update::modify(CounterEntry { data: Some(CounterData::default()), ..cell });
    session.write(vec![cleared], Atomicity::ContinueOnError).await.unwrap();
    let Some(Kind::CounterEntry(cell)) = session.read(vec![cell.into()]).await.unwrap().remove(0).entity
    else {
        panic!()
    };
    assert_eq!(cell.data, Some(CounterData::default()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_reads_but_does_not_write() {
    let switch = switch();
    let (primary, _inbox) = switch.primary().await;
    primary.write(vec![insert(&rule(1))], Atomicity::ContinueOnError).await.unwrap();
    let (backup, _backup_inbox) = switch.connect(9).await;
    assert!(matches!(backup.standing(), Standing::Backup { primary: true, .. }));
    assert!(all_entries(&backup).await.contains(&rule(1)));
    let error = backup.write(vec![insert(&rule(2))], Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(error.stopped.unwrap().cause.code(), Some(Code::PermissionDenied));
    let error = backup.set_pipeline(PipelineAction::VerifyAndCommit, Some(program(2))).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::PermissionDenied));
    assert_eq!(switch.device.entries(None), [rule(1)]);
}

/// What left by a port: number of the port in the list, frame.
type Sent = mpsc::UnboundedReceiver<(usize, Vec<u8>)>;

struct Way(usize, mpsc::UnboundedSender<(usize, Vec<u8>)>);

impl Sender for Way {
    fn send(&mut self, frame: &[u8], _: Edit) -> bool {
        self.1.send((self.0, frame.to_vec())).is_ok()
    }

    fn flush(&mut self) {}
}

impl KeepAliveSender for Way {
    fn send(&mut self, interface: usize, frame: &mut [u8]) -> std::io::Result<Nanos> {
        frame[TRANSMIT_TIME_OFFSET] = 0x77;
        assert_eq!(interface, 0, "the way has one interface");
        self.1.send((self.0, frame.to_vec())).map_err(std::io::Error::other)?;
        Ok(Nanos(0x77))
    }
}

fn switch_with_ports(ports: &[u16]) -> (Switch, Sent) {
    let (sent, received) = mpsc::unbounded_channel();
    let switch = switch_with(|device| {
        let packet_out = packet_io::PacketOut::new(Arc::clone(device));
        for (at, port) in ports.iter().enumerate() {
            let way = || Box::new(Way(at, sent.clone()));
            packet_out.put(PortId(*port), packet_io::Way { keep_alives: Some(way()), sender: way() });
        }
        Some(packet_out)
    });
    (switch, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_out_leave_by_their_port_and_keep_alives_are_stamped() {
    let (switch, mut sent) = switch_with_ports(&[6, 5]);
    let (session, mut inbox) = switch.primary().await;
    let mtu = PortMtuEntry { port: PortId(5), mtu: 200 }.entry();
    session.write(vec![insert(&mtu)], Atomicity::ContinueOnError).await.unwrap();
    let layout = PacketLayout::of(&p4info(), PACKET_OUT).unwrap();
    let send = async |port: u128, payload: Vec<u8>| {
        let metadata = layout.encode(&[("egress_port", port)]).unwrap();
        session.send_packet(PacketOut { payload, metadata }).await.unwrap();
    };
    let mut plain = vec![0; 60];
    plain[12] = 0x08;
    let mut keep_alive = vec![0; 60];
    keep_alive[12..14].copy_from_slice(&KEEP_ALIVE_ETHERTYPE.to_be_bytes());
    send(5, plain.clone()).await;
    assert_eq!(soon(sent.recv()).await, Some((1, plain.clone())));
    send(6, keep_alive.clone()).await;
    // Stamped by the pipeline, and once more by the way, which knows better.
    let (way, mut stamped) = soon(sent.recv()).await.unwrap();
    assert_eq!((way, stamped[TRANSMIT_TIME_OFFSET]), (0, 0x77));
    stamped[TRANSMIT_TIME_OFFSET..TRANSMIT_TIME_OFFSET + 8].fill(0);
    assert_eq!(stamped, keep_alive);

    let mut wrong = async |port, payload| {
        send(port, payload).await;
        match soon(inbox.notices.recv()).await {
            Some(StreamNotice::Error(error)) => error.canonical_code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(wrong(7, plain.clone()).await, Code::InvalidArgument as i32);
    assert_eq!(wrong(300, plain.clone()).await, Code::InvalidArgument as i32);
    assert_eq!(wrong(5, vec![0; 13]).await, Code::InvalidArgument as i32);
    assert_eq!(wrong(5, vec![0; 215]).await, Code::InvalidArgument as i32);
    assert!(sent.try_recv().is_err(), "nothing else left");
    // Keep-alives alone are probes.
    for (array, port, frames) in [
        (&counters::PORT_OUT, 5, 1),
        (&counters::PROBES_OUT, 5, 0),
        (&counters::PORT_OUT, 6, 1),
        (&counters::PROBES_OUT, 6, 1),
    ] {
        let out = switch.device.counters().read(Place::Array(array.id, port));
        assert_eq!((out.packets, out.bytes), (frames, 60 * frames), "{} {port}", array.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_alives_reach_the_primary_alone_with_port_and_time() {
    let switch = switch();
    let deliver = switch.server.deliver();
    assert!(!deliver(PortId(5), &[1; 60], Nanos(1)), "nobody is there");
    let (_primary, mut inbox) = switch.primary().await;
    let (_backup, mut other) = switch.connect(9).await;
    assert!(deliver(PortId(5), &[2; 60], Nanos(123_456_789_000)));
    let packet = soon(inbox.packets.recv()).await.unwrap();
    assert_eq!(packet.payload, [2; 60]);
    let layout = PacketLayout::of(&p4info(), PACKET_IN).unwrap();
    let values = layout.decode(&packet.metadata).unwrap();
    assert_eq!((values["ingress_port"], values["receive_time"]), (5, 123_456_789_000));
    assert!(other.packets.try_recv().is_err());
    // Nobody reads: the path does not block, and says so.
    let flood = AtomicU64::new(0);
    for _ in 0..20_000 {
        flood.fetch_add(u64::from(!deliver(PortId(5), &[3; 60], Nanos(1))), Relaxed);
    }
    assert!(flood.load(Relaxed) > 0);
}

async fn soon<T>(event: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(20), event).await.expect("nothing within 20 s")
}
