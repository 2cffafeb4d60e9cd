//! The P4Runtime server through this project's client, in one process: every answer has its canonical code,
//! and what is refused changes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod site_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dataplane::entry::{Entry, Update as Change};
use dataplane::schema::counters;
use dataplane::tables::{BucketEntry, Family, PairForwarding, PairStateEntry, RuleAction, RuleEntry, RuleField, RuleMatch};
use dataplane::{BucketIndex, Core, Nanos, PairId, PortId, Reason, UnitId};
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Error, Inbox, Options, PipelineAction, ResponseType, Session, Standing, Target};
use p4runtime::entry::{every_entry, from_wire, p4info, place_to_wire, to_wire, update_to_wire};
use p4runtime::metadata::{PACKET_IN, PACKET_OUT, PacketLayout};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::{
    ActionProfileMember, CounterData, CounterEntry, DirectCounterEntry, Entity, ForwardingPipelineConfig, Index,
    PacketOut, TableEntry, Update,
};
use site_file::example_entries;
use swpipe::counters::Place;
use swpipe::device::Device;
use swpipe::io::{Edit, Frame, KeepAliveSender, Sender};
use swpipe::packet_io;
use swpipe::server::Server;
use swpipe::worker::{Outlets, forward};
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

async fn all_entries(session: &Session) -> Vec<Entry> {
    let mut entries: Vec<Entry> = session
        .read(every_entry())
        .await
        .unwrap()
        .into_iter()
        .map(|entity| match entity.entity {
            Some(Kind::TableEntry(wire)) => from_wire(&wire).unwrap(),
            other => panic!("{other:?}"),
        })
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

    let bucket = BucketEntry { unit: UnitId(0), bucket: BucketIndex(7), pair: PairId(1), core: Core(0) }.entry();
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
        ("another's action", spoilt(&rule(2), |wire| wire.action = to_wire(&bucket).action), Code::InvalidArgument),
        ("too wide", spoilt(&bucket, |wire| wire.r#match[0] = to_wire(&bucket).r#match[1].clone()), Code::InvalidArgument),
        ("constant default", Update::modify(r#const), Code::PermissionDenied),
        ("idle timeout", spoilt(&rule(2), |wire| wire.idle_timeout_ns = 5), Code::InvalidArgument),
        ("exists", insert(&rule(1)), Code::AlreadyExists),
        ("modify of nothing", modify(&rule(3)), Code::NotFound),
        ("delete of nothing", delete(&rule(4)), Code::NotFound),
        ("delete of nothing exact", delete(&pair_state), Code::NotFound),
        ("counter without table counter", Update::modify(DirectCounterEntry { table_entry: Some(place_to_wire(&bucket.place())), data: None }), Code::InvalidArgument),
        ("direct counter of nothing", Update::modify(DirectCounterEntry { table_entry: Some(place_to_wire(&rule(5).place())), data: None }), Code::NotFound),
        ("counter insert", Update::insert(CounterEntry { counter_id: counters::VERDICTS.id, ..Default::default() }), Code::InvalidArgument),
        ("unknown counter", Update::modify(CounterEntry { counter_id: 7, ..Default::default() }), Code::InvalidArgument),
        ("negative index", Update::modify(CounterEntry { counter_id: counters::VERDICTS.id, index: Some(Index { index: -1 }), data: None }), Code::InvalidArgument),
        ("index beyond", Update::modify(CounterEntry { counter_id: counters::VERDICTS.id, index: Some(Index { index: 32 }), data: None }), Code::OutOfRange),
        ("another entity", Update::insert(ActionProfileMember::default()), Code::Unimplemented),
    ];
    let wanted: Vec<(usize, Code)> = cases.iter().enumerate().map(|(index, case)| (index, case.2)).collect();
    for (name, update, code) in &cases {
        assert_eq!(refused(&session, vec![update.clone()], Atomicity::ContinueOnError).await, [(0, *code)], "{name}");
    }
    let all: Vec<Update> = cases.iter().map(|case| case.1.clone()).collect();
    let found = refused(&session, all, Atomicity::ContinueOnError).await;
    // In one batch "unknown entries of the same place" are twice: those keep their index and get another code.
    assert_eq!(found.len(), wanted.len());
    assert_eq!(switch.device.entries(None), before);
}
