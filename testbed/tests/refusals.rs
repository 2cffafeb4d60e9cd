//! Wrong writes over P4Runtime: the software pipeline and the compiled P4 program in its interpreter refuse the same
//! updates with the same canonical codes at the same indices, as the specification says, and stay as they were.
//! The interpreter knows nothing but the P4Info.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use dataplane::entry::{Entry, Update as Change};
use dataplane::hash::Method;
use dataplane::tables::{
    BucketEntry, BucketForwarding, Family, LinkEntry, LinkForwarding, PairForwarding, PairStateEntry,
    PortEntry, PortMtuEntry, PortRole, RuleAction, RuleEntry, RuleField, RuleMatch, SteeringEntry, UnitEntry,
    UnitMode,
};
use dataplane::{BucketIndex, Core, LinkIndex, PairId, PortId, Side, SteeringMode, UnitId};
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Options, PipelineAction, Session, Target};
use p4runtime::entry::{every_entry, p4info, place_to_wire, to_wire, update_to_wire};
use p4runtime::proto::p4::v1::field_match::{Exact, FieldMatchType, Range, Ternary};
use p4runtime::proto::p4::v1::{
    FieldMatch, ForwardingPipelineConfig, TableEntry, Update, action, table_action,
};
use swpipe::device::Device;
use testbed::p4ref;
use tonic::Code;

const DEVICE: u64 = 1;

/// One of the two, as a controller sees it.
struct Plane {
    name: &'static str,
    session: Session,
}

impl Plane {
    async fn connect(name: &'static str, target: Target, config: ForwardingPipelineConfig) -> Self {
        let options = Options::new(DEVICE, Some(ElectionId(1)));
        let (session, _inbox) = Session::connect(&target, options).await.unwrap();
        session.set_pipeline(PipelineAction::VerifyAndCommit, Some(config)).await.unwrap();
        Plane { name, session }
    }

    /// What is refused, and why.
    async fn write(&self, updates: &[Update], atomicity: Atomicity) -> Vec<(usize, Code)> {
        let Err(error) = self.session.write(updates.to_vec(), atomicity).await else { return Vec::new() };
        assert!(error.stopped.is_none(), "{}: {error}", self.name);
        for rejection in &error.rejections {
            assert!(!rejection.fault.message().is_empty(), "{}: a refusal says why", self.name);
        }
        error.rejections.iter().map(|rejection| (rejection.index, rejection.fault.code())).collect()
    }

    /// Everything that is in the tables, in one order.
    async fn entries(&self) -> Vec<String> {
        let read = self.session.read(every_entry()).await.unwrap();
        let mut entries: Vec<String> = read.iter().map(|entity| format!("{entity:?}")).collect();
        entries.sort();
        entries
    }
}

fn built(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn planes() -> [Plane; 2] {
    let swpipe = swpipe::server::Server::new(Arc::new(Device::default()), DEVICE, None);
    let target = Target::dial("swpipe", swpipe.connector());
    let swpipe = Plane::connect("swpipe", target, ForwardingPipelineConfig::new(p4info(), vec![], 1));
    let reference = p4ref::Server::new(DEVICE, 510, Box::new(|_, _| {}));
    let target = Target::dial("p4ref", reference.connector());
    let info = p4ref::read_info(&String::from_utf8(built("sluice.p4info.txtpb")).unwrap()).unwrap();
    let config = ForwardingPipelineConfig::new(info, built("sluice.bmv2.json"), 1);
    [swpipe.await, Plane::connect("p4ref", target, config).await]
}

fn rule(family: Family, priority: i32) -> Entry {
    let mut matches = RuleMatch::default();
    if family == Family::V4 {
        matches.set_exact(RuleField::IpVersion, 4, family);
    }
    matches.set_exact(RuleField::IpProto, 6, family);
    matches.set_exact(RuleField::HasPorts, 1, family);
    matches.src_port = dataplane::tables::PortRange { low: 1, high: 1023 };
    RuleEntry { family, priority, matches, action: RuleAction::ToUnit(UnitId(3)) }.entry()
}

fn v4(priority: i32) -> Entry {
    rule(Family::V4, priority)
}

fn bucket(number: u16) -> Entry {
    let forwarding = BucketForwarding::Pair { pair: PairId(1), core: Core(0) };
    BucketEntry { unit: UnitId(0), bucket: BucketIndex(number), forwarding }.entry()
}

fn pair_state() -> Entry {
    PairStateEntry { pair: PairId(1), forwarding: PairForwarding::Up }.entry()
}

fn unit() -> Entry {
    let mode = UnitMode::Balance { method: Method::Layer3, bucket_mask: 31, primary: false };
    UnitEntry { unit: UnitId(1), mode }.entry()
}

fn port() -> Entry {
    let role = PortRole::Link { link: LinkIndex(0), side: Side::Lan, peer: PortId(9) };
    PortEntry { port: PortId(8), role }.entry()
}

fn pair_port() -> Entry {
    let role = PortRole::Pair { pair: PairId(1), side: Side::Lan, copy: false };
    PortEntry { port: PortId(12), role }.entry()
}

fn link() -> Entry {
    let forwarding = LinkForwarding::Port(PortId(9));
    LinkEntry { link: LinkIndex(7), side: Side::Wan, forwarding }.entry()
}

fn steering() -> Entry {
    SteeringEntry { mode: SteeringMode::Dot1q { tpid: 0x8100, base_vid: 100 } }.entry()
}

fn mtu(port: u16) -> Entry {
    PortMtuEntry { port: PortId(port), mtu: 1600 }.entry()
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

/// An insert with something wrong about it.
fn spoilt(entry: &Entry, spoil: impl FnOnce(&mut TableEntry)) -> Update {
    let mut wire = to_wire(entry);
    spoil(&mut wire);
    Update::insert(wire)
}

fn field(entry: &Entry, id: u32, value: FieldMatchType) -> Update {
    spoilt(entry, |wire| {
        wire.r#match.retain(|field| field.field_id != id);
        wire.r#match.push(FieldMatch { field_id: id, field_match_type: Some(value) });
        wire.r#match.sort_by_key(|field| field.field_id);
    })
}

fn exact(value: &[u8]) -> FieldMatchType {
    FieldMatchType::Exact(Exact { value: value.to_vec() })
}

fn ternary(value: &[u8], mask: &[u8]) -> FieldMatchType {
    FieldMatchType::Ternary(Ternary { value: value.to_vec(), mask: mask.to_vec() })
}

fn range(low: &[u8], high: &[u8]) -> FieldMatchType {
    FieldMatchType::Range(Range { low: low.to_vec(), high: high.to_vec() })
}

fn with_action(entry: &Entry, spoil: impl FnOnce(&mut action::Param, &mut u32)) -> Update {
    spoilt(entry, |wire| {
        let Some(table_action::Type::Action(action)) = wire.action.as_mut().and_then(|a| a.r#type.as_mut())
        else {
            panic!("an action");
        };
        let mut none = action::Param::default();
        spoil(action.params.first_mut().unwrap_or(&mut none), &mut action.action_id);
    })
}

fn without_params(entry: &Entry) -> Update {
    spoilt(entry, |wire| {
        if let Some(table_action::Type::Action(action)) = wire.action.as_mut().and_then(|a| a.r#type.as_mut())
        {
            action.params.clear();
        }
    })
}

fn twice_the_param(entry: &Entry) -> Update {
    spoilt(entry, |wire| {
        if let Some(table_action::Type::Action(action)) = wire.action.as_mut().and_then(|a| a.r#type.as_mut())
        {
            let again = action.params[0].clone();
            action.params.push(again);
        }
    })
}

fn default_of(entry: &Entry) -> TableEntry {
    TableEntry { is_default_action: true, r#match: vec![], priority: 0, ..to_wire(entry) }
}

/// What is wrong, the update, and the code that the specification gives for it.
fn cases() -> Vec<(&'static str, Update, Code)> {
    use Code::{AlreadyExists, InvalidArgument, NotFound, OutOfRange, PermissionDenied};
    let v6 = || rule(Family::V6, 3);
    vec![
        ("unknown table", spoilt(&v4(2), |wire| wire.table_id = 0x0200_00ff), InvalidArgument),
        ("no table", spoilt(&v4(2), |wire| wire.table_id = 0), InvalidArgument),
        ("an action's id as a table", spoilt(&v4(2), |wire| wire.table_id = 0x0100_0001), InvalidArgument),
        ("unknown action", with_action(&v4(2), |_, id| *id = 0x0100_00ff), InvalidArgument),
        ("another table's action", with_action(&bucket(1), |_, id| *id = 0x0100_0008), InvalidArgument),
        ("an action for the default only", with_action(&v4(2), |_, id| *id = 0x0100_0018), InvalidArgument),
        ("no action", spoilt(&v4(2), |wire| wire.action = None), InvalidArgument),
        ("unknown parameter", with_action(&v4(2), |param, _| param.param_id = 9), InvalidArgument),
        ("missing parameter", without_params(&v4(2)), InvalidArgument),
        ("a parameter twice", twice_the_param(&v4(2)), InvalidArgument),
        ("parameter too wide", with_action(&v4(2), |param, _| param.value = vec![1, 0]), OutOfRange),
        ("parameter empty", with_action(&v4(2), |param, _| param.value = vec![]), OutOfRange),
        ("priority 0", spoilt(&v4(2), |wire| wire.priority = 0), InvalidArgument),
        ("priority below 0", spoilt(&v4(2), |wire| wire.priority = -4), InvalidArgument),
        ("priority 0 in the other family", spoilt(&v6(), |wire| wire.priority = 0), InvalidArgument),
        ("priority where all is exact", spoilt(&bucket(1), |wire| wire.priority = 3), InvalidArgument),
        ("unknown field", field(&bucket(1), 9, exact(&[1])), InvalidArgument),
        ("a field of the other family", field(&v6(), 12, ternary(&[4], &[15])), InvalidArgument),
        ("a field twice", spoilt(&bucket(1), |w| w.r#match.push(w.r#match[0].clone())), InvalidArgument),
        ("missing field", spoilt(&bucket(1), |wire| drop(wire.r#match.pop())), InvalidArgument),
        ("no match at all", spoilt(&bucket(1), |wire| wire.r#match.clear()), InvalidArgument),
        ("exact where ternary is", field(&v4(2), 15, exact(&[6])), InvalidArgument),
        ("ternary where exact is", field(&bucket(1), 1, ternary(&[1], &[255])), InvalidArgument),
        ("range where ternary is", field(&v4(2), 15, range(&[1], &[6])), InvalidArgument),
        ("key too wide", field(&bucket(1), 1, exact(&[1, 0])), OutOfRange),
        ("key too wide by a bit", field(&mtu(1), 1, exact(&[2, 0])), OutOfRange),
        ("key too wide, side", field(&link(), 2, exact(&[2])), OutOfRange),
        ("key empty", field(&bucket(1), 1, exact(&[])), OutOfRange),
        ("ternary value too wide", field(&v4(2), 3, ternary(&[0x20, 0], &[0x1f, 0xff])), OutOfRange),
        ("ternary mask too wide", field(&v4(2), 3, ternary(&[0x10, 0], &[0x3f, 0xff])), OutOfRange),
        ("address too wide", field(&v4(2), 13, ternary(&[1, 0, 0, 0, 0], &[255; 4])), OutOfRange),
        ("range too wide", field(&v4(2), 17, range(&[1], &[1, 0, 0])), OutOfRange),
        ("don't care as a zero mask", field(&v4(2), 13, ternary(&[0], &[0])), InvalidArgument),
        ("don't care as a full range", field(&v4(2), 18, range(&[0], &[255, 255])), InvalidArgument),
        ("value outside of its mask", field(&v4(2), 13, ternary(&[10, 1], &[255, 0])), InvalidArgument),
        ("range upside down", field(&v4(2), 17, range(&[9], &[8])), InvalidArgument),
        ("no such pair in a key", field(&pair_state(), 1, exact(&[2, 0])), InvalidArgument),
        (
            "no such pair as a parameter",
            with_action(&bucket(1), |p, _| p.value = vec![2, 0]),
            InvalidArgument,
        ),
        ("no such pair of a port", with_action(&pair_port(), |p, _| p.value = vec![2, 0]), InvalidArgument),
        ("no such method", with_action(&unit(), |param, _| param.value = vec![4]), InvalidArgument),
        ("addresses without IP", spoilt(&v4(2), |w| w.r#match.retain(|f| f.field_id != 12)), InvalidArgument),
        ("ports without ports", spoilt(&v4(2), |w| w.r#match.retain(|f| f.field_id != 16)), InvalidArgument),
        (
            "ports without ports, IPv6",
            spoilt(&v6(), |w| w.r#match.retain(|f| f.field_id != 16)),
            InvalidArgument,
        ),
        ("IP of a part of the version", field(&v4(2), 12, ternary(&[4], &[4])), InvalidArgument),
        ("constant default", Update::modify(default_of(&v4(2))), PermissionDenied),
        ("insert of a default", insert(&steering()), InvalidArgument),
        ("delete of a default", Update::delete(default_of(&steering())), InvalidArgument),
        (
            "an entry of a table without a key",
            spoilt(&steering(), |wire| wire.is_default_action = false),
            InvalidArgument,
        ),
        ("no such steering mode", with_mode(2), InvalidArgument),
        ("idle timeout", spoilt(&v4(2), |wire| wire.idle_timeout_ns = 5), InvalidArgument),
        ("exists", insert(&v4(1)), AlreadyExists),
        ("exists in an exact table", insert(&mtu(7)), AlreadyExists),
        ("exists, with another action", insert(&bypassing(1)), AlreadyExists),
        ("modify of nothing", modify(&v4(3)), NotFound),
        ("modify of nothing in an exact table", modify(&mtu(3)), NotFound),
        ("delete of nothing", delete(&v4(4)), NotFound),
        ("delete of another priority", delete(&v4(5)), NotFound),
        ("delete of nothing in an exact table", delete(&pair_state()), NotFound),
        (
            "delete with a key too wide",
            Update::delete(TableEntry {
                r#match: vec![FieldMatch { field_id: 1, field_match_type: Some(exact(&[2, 0])) }],
                ..place_to_wire(&mtu(1).place())
            }),
            OutOfRange,
        ),
        ("no entity", Update { r#type: 1, entity: None }, InvalidArgument),
        ("no type", Update { r#type: 0, ..insert(&v4(2)) }, InvalidArgument),
    ]
}

fn bypassing(priority: i32) -> Entry {
    let rule = v4(priority);
    Entry { action: 0x0100_0006, params: vec![], ..rule }
}

fn with_mode(mode: u8) -> Update {
    let mut wire = to_wire(&steering());
    if let Some(table_action::Type::Action(action)) = wire.action.as_mut().and_then(|a| a.r#type.as_mut()) {
        action.params[0].value = vec![mode];
    }
    Update::modify(wire)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_refuse_the_same_updates_and_stay_as_they_were() {
    let planes = planes().await;
    let there: Vec<Update> = [v4(1), mtu(7), port(), pair_port()].iter().map(insert).collect();
    let fine = [mtu(100), bucket(100), v4(100), unit()];
    for plane in &planes {
        assert_eq!(plane.write(&there, Atomicity::ContinueOnError).await, [], "{}", plane.name);
    }
    let before = [planes[0].entries().await, planes[1].entries().await];
    assert_eq!(before[0], before[1]);
    for (name, update, code) in cases() {
        for plane in &planes {
            let alone = plane.write(std::slice::from_ref(&update), Atomicity::ContinueOnError).await;
            assert_eq!(alone, [(0, code)], "{}: {name}", plane.name);
        }
    }
    // Among updates that are fine: the index is the update's, and the others are done.
    for (at, (name, update, code)) in cases().into_iter().enumerate() {
        let mut batch: Vec<Update> = fine.iter().map(insert).collect();
        let at = at % (batch.len() + 1);
        batch.insert(at, update);
        for plane in &planes {
            let found = plane.write(&batch, Atomicity::ContinueOnError).await;
            assert_eq!(found, [(at, code)], "{}: {name}, in a batch", plane.name);
            let undo: Vec<Update> = fine.iter().map(delete).collect();
            assert_eq!(plane.write(&undo, Atomicity::ContinueOnError).await, [], "{}: {name}", plane.name);
        }
    }
    assert_eq!([planes[0].entries().await, planes[1].entries().await], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_twice_in_a_batch_is_refused_alike() {
    let planes = planes().await;
    let batches = [
        vec![insert(&mtu(1)), insert(&mtu(2)), insert(&mtu(1))],
        vec![insert(&v4(1)), delete(&v4(1))],
        vec![insert(&v4(1)), modify(&v4(1)), insert(&bucket(3))],
        vec![insert(&v4(1)), insert(&v4(2))],
    ];
    for batch in &batches {
        let found = [
            planes[0].write(batch, Atomicity::ContinueOnError).await,
            planes[1].write(batch, Atomicity::ContinueOnError).await,
        ];
        assert_eq!(found[0], found[1]);
        assert_eq!(planes[0].entries().await, planes[1].entries().await);
        for plane in &planes {
            let all = [mtu(1), mtu(2), v4(1), v4(2), bucket(3)];
            let undo: Vec<Update> = all.iter().map(delete).collect();
            plane.write(&undo, Atomicity::ContinueOnError).await;
        }
    }
    let twice = planes[0].write(&batches[0], Atomicity::ContinueOnError).await;
    assert_eq!(twice, [(2, Code::InvalidArgument)]);
}
