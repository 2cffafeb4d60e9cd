//! P4Runtime in front of the reference interpreter: every answer has its canonical code, and what is refused
//! changes nothing. The same codes and indices as the software pipeline gives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod p4ref_fixture;

use std::sync::{Arc, Mutex};

use p4ref_fixture::*;
use p4runtime::ElectionId;
use p4runtime::client::{
    Atomicity, Error, Inbox, Options, PipelineAction, ResponseType, Session, Standing, StreamNotice, Target,
};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::write_request::Atomicity as Wire;
use p4runtime::proto::p4::v1::{
    ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry, DirectCounterEntry, Entity,
    ForwardingPipelineConfig, Index, MulticastGroupEntry, PacketMetadata, PacketOut,
    PacketReplicationEngineEntry, TableEntry, Update,
};
use testbed::p4ref::{LoadError, Program, Server, Switch, read_info};
use tonic::Code;

const DEVICE: u64 = 3;

/// Everything that can be read, as messages.
fn state(switch: &Switch) -> Vec<Entity> {
    let sessions = PacketReplicationEngineEntry {
        r#type: Some(p4runtime::proto::p4::v1::packet_replication_engine_entry::Type::CloneSessionEntry(
            CloneSessionEntry::default(),
        )),
    };
    let defaults = TableEntry { is_default_action: true, ..Default::default() };
    let (found, outcomes) = switch.read(&[
        TableEntry::default().into(),
        defaults.into(),
        CounterEntry::default().into(),
        DirectCounterEntry::default().into(),
        sessions.into(),
    ]);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    found
}

/// Codes by index of what a batch is refused for.
fn codes(switch: &mut Switch, updates: &[Update], atomicity: Wire) -> Vec<(usize, Code)> {
    let Err(outcomes) = switch.write(updates, atomicity) else { return Vec::new() };
    assert_eq!(outcomes.len(), updates.len(), "one outcome for each");
    let faults = outcomes.into_iter().enumerate();
    faults.filter_map(|(index, outcome)| Some((index, outcome.err()?.code()))).collect()
}

fn plain(priority: i32) -> TableEntry {
    let fields = vec![ternary(1, 17, 0xff), range(3, 5, 80)];
    TableEntry { metadata: b"plain".to_vec(), ..by_header(priority, fields, call("note", &[1])) }
}

fn spoilt(mut entry: TableEntry, spoil: impl FnOnce(&mut TableEntry)) -> Update {
    spoil(&mut entry);
    Update::insert(entry)
}

fn with_field(field: p4runtime::proto::p4::v1::FieldMatch) -> Update {
    Update::insert(by_header(5, vec![field], call("note", &[1])))
}

fn default_of(table: &str, action: Option<p4runtime::proto::p4::v1::TableAction>) -> TableEntry {
    TableEntry { table_id: id(table), is_default_action: true, action, ..Default::default() }
}

fn raw(field_id: u32, value: &[u8], mask: &[u8]) -> p4runtime::proto::p4::v1::FieldMatch {
    let ternary = p4runtime::proto::p4::v1::field_match::Ternary { value: value.into(), mask: mask.into() };
    p4runtime::proto::p4::v1::FieldMatch {
        field_id,
        field_match_type: Some(p4runtime::proto::p4::v1::field_match::FieldMatchType::Ternary(ternary)),
    }
}

/// What is wrong by itself, whatever the tables hold.
fn malformed() -> Vec<(&'static str, Update, Code)> {
    use Code::{InvalidArgument, OutOfRange, PermissionDenied, Unimplemented};
    let exact_entry = || by_port(3, 0, call("forward", &[1]));
    let counter = |counter_id, index| CounterEntry {
        counter_id,
        index: Some(Index { index }),
        data: Some(CounterData { packet_count: 1, byte_count: 1 }),
    };
    #[allow(deprecated)]
    let numbered = spoilt(plain(1), |entry| entry.controller_metadata = 1);
    vec![
        ("no entity", Update { r#type: 1, entity: None }, InvalidArgument),
        ("no type", Update { r#type: 0, ..Update::insert(plain(1)) }, InvalidArgument),
        ("unknown table", spoilt(plain(1), |entry| entry.table_id = 77), InvalidArgument),
        ("unknown action", spoilt(plain(1), |entry| entry.action = call("stop", &[1])), InvalidArgument),
        ("no action", spoilt(plain(1), |entry| entry.action = None), InvalidArgument),
        ("unknown field", with_field(ternary(9, 1, 1)), InvalidArgument),
        ("another kind of match", with_field(exact(1, 17)), InvalidArgument),
        ("field twice", spoilt(plain(1), |entry| entry.r#match.push(ternary(1, 1, 1))), InvalidArgument),
        ("missing exact field", spoilt(exact_entry(), |entry| drop(entry.r#match.pop())), InvalidArgument),
        ("priority 0", spoilt(plain(1), |entry| entry.priority = 0), InvalidArgument),
        ("negative priority", spoilt(plain(1), |entry| entry.priority = -4), InvalidArgument),
        ("priority where all is exact", spoilt(exact_entry(), |entry| entry.priority = 2), InvalidArgument),
        (
            "priority of a prefix",
            spoilt(by_prefix(0x0a00_0000, 8, 1), |entry| entry.priority = 2),
            InvalidArgument,
        ),
        ("value too wide", with_field(ternary(1, 0x100, 0x100)), OutOfRange),
        ("empty value", with_field(raw(1, &[], &[1])), OutOfRange),
        ("parameter too wide", Update::insert(by_port(3, 0, call("forward", &[512]))), OutOfRange),
        ("no parameter", Update::insert(by_port(3, 0, call("forward", &[]))), InvalidArgument),
        ("one parameter more", Update::insert(by_port(3, 0, call("forward", &[1, 1]))), InvalidArgument),
        ("zero mask", with_field(ternary(1, 0, 0)), InvalidArgument),
        ("bits outside of the mask", with_field(ternary(1, 3, 1)), InvalidArgument),
        ("empty range", with_field(range(3, 6, 5)), InvalidArgument),
        ("full range", with_field(range(3, 0, 0xffff)), InvalidArgument),
        ("prefix of 0", Update::insert(by_prefix(0, 0, 1)), InvalidArgument),
        ("prefix too long", Update::insert(by_prefix(1, 33, 1)), InvalidArgument),
        ("negative prefix", Update::insert(by_prefix(1, -1, 1)), InvalidArgument),
        ("bits outside of the prefix", Update::insert(by_prefix(0x0a00_0001, 8, 1)), InvalidArgument),
        (
            "action for the default alone",
            Update::insert(by_port(3, 0, call("NoAction", &[]))),
            InvalidArgument,
        ),
        (
            "action for entries alone",
            Update::modify(default_of("ternary_t", call("forward", &[1]))),
            InvalidArgument,
        ),
        ("constant default", Update::modify(default_of("lpm_t", call("note", &[1]))), PermissionDenied),
        ("constant default again", Update::modify(default_of("lpm_t", None)), PermissionDenied),
        ("insert of a default", Update::insert(default_of("exact_t", call("drop", &[]))), InvalidArgument),
        ("delete of a default", Update::delete(default_of("exact_t", None)), InvalidArgument),
        (
            "default with a match",
            Update::modify(TableEntry {
                r#match: vec![exact(1, 3), exact(2, 0)],
                ..default_of("exact_t", call("drop", &[]))
            }),
            InvalidArgument,
        ),
        (
            "constant entries",
            Update::insert(TableEntry {
                table_id: id("const_t"),
                r#match: vec![exact(2, 4)],
                priority: 3,
                action: call("note", &[1]),
                ..Default::default()
            }),
            PermissionDenied,
        ),
        ("restricted port", Update::insert(by_port(77, 0, call("forward", &[1]))), InvalidArgument),
        ("restricted range", Update::insert(by_port(300, 0, call("forward", &[1]))), InvalidArgument),
        ("restricted implication", with_field(ternary(2, 64, 0xff)), InvalidArgument),
        ("restricted priority", Update::insert(plain(1000)), InvalidArgument),
        ("idle timeout", spoilt(plain(1), |entry| entry.idle_timeout_ns = 5), InvalidArgument),
        ("is_const", spoilt(plain(1), |entry| entry.is_const = true), InvalidArgument),
        ("controller_metadata", numbered, Unimplemented),
        (
            "counter of a table without",
            spoilt(exact_entry(), |entry| entry.counter_data = Some(CounterData::default())),
            InvalidArgument,
        ),
        (
            "negative count",
            spoilt(plain(1), |entry| {
                entry.counter_data = Some(CounterData { packet_count: -1, byte_count: 0 });
            }),
            InvalidArgument,
        ),
        ("counter insert", Update::insert(counter(id("by_port"), 1)), InvalidArgument),
        ("unknown counter", Update::modify(counter(77, 1)), InvalidArgument),
        ("negative cell", Update::modify(counter(id("by_port"), -1)), InvalidArgument),
        ("cell beyond", Update::modify(counter(id("by_port"), 16)), OutOfRange),
        (
            "direct counter of nothing",
            Update::modify(DirectCounterEntry { table_entry: Some(plain(7)), data: None }),
            Code::NotFound,
        ),
        (
            "direct counter of a table without",
            Update::modify(DirectCounterEntry { table_entry: Some(exact_entry()), data: None }),
            InvalidArgument,
        ),
        ("direct counter without entry", Update::modify(DirectCounterEntry::default()), InvalidArgument),
        ("clone session 0", Update::insert(session(0, &[(1, 1)])), InvalidArgument),
        ("clone session beyond", Update::insert(session(1 << 15, &[(1, 1)])), InvalidArgument),
        ("replica twice", Update::insert(session(9, &[(1, 1), (1, 1)])), InvalidArgument),
        ("replica's port beyond", Update::insert(session(9, &[(512, 1)])), InvalidArgument),
        (
            "cut copies",
            Update::insert(CloneSessionEntry { packet_length_bytes: 64, ..session(9, &[(1, 1)]) }),
            Unimplemented,
        ),
        ("multicast group", Update::insert(MulticastGroupEntry::default()), Unimplemented),
        ("another entity", Update::insert(ActionProfileMember::default()), Unimplemented),
    ]
}

#[test]
fn every_wrong_update_has_its_code_and_changes_nothing() {
    let mut switch = switch();
    let there = [
        Update::insert(plain(1)),
        Update::insert(session(7, &[(1, 1)])),
        Update::insert(by_port(4, 0, call("drop", &[]))),
    ];
    write(&mut switch, &there);
    let before = state(&switch);
    let mut cases = malformed();
    cases.extend([
        ("exists", Update::insert(plain(1)), Code::AlreadyExists),
        ("modify of nothing", Update::modify(plain(2)), Code::NotFound),
        (
            "modify of nothing without action",
            Update::modify(TableEntry { action: None, ..plain(2) }),
            Code::NotFound,
        ),
        ("delete of nothing", Update::delete(plain(3)), Code::NotFound),
        ("session exists", Update::insert(session(7, &[(2, 1)])), Code::AlreadyExists),
        ("modify of no session", Update::modify(session(8, &[(2, 1)])), Code::NotFound),
        ("delete of no session", Update::delete(session(10, &[])), Code::NotFound),
    ]);
    for (name, update, code) in &cases {
        let found = codes(&mut switch, std::slice::from_ref(update), Wire::ContinueOnError);
        assert_eq!(found, [(0, *code)], "{name}");
    }
    assert_eq!(state(&switch), before);

    // Together with a right one: with their indices; and nothing is done where all must be.
    let fine = Update::insert(plain(6));
    let all: Vec<Update> = [fine].into_iter().chain(cases.iter().map(|case| case.1.clone())).collect();
    for atomicity in [Wire::RollbackOnError, Wire::DataplaneAtomic] {
        let found = codes(&mut switch, &all, atomicity);
        assert_eq!(found[0], (0, Code::Aborted));
        assert_eq!(found.len(), all.len());
        assert_eq!(state(&switch), before);
    }
}

#[test]
fn restrictions_are_named() {
    let mut switch = switch();
    let refused = Update::insert(by_port(77, 0, call("drop", &[])));
    let outcomes = switch.write(&[refused], Wire::ContinueOnError).unwrap_err();
    let message = outcomes[0].as_ref().unwrap_err().message().to_owned();
    assert!(message.contains("@entry_restriction(\"port < 300; port != 77\")"), "{message}");
}

#[test]
fn two_updates_of_one_entry_are_refused_with_the_index_of_the_first() {
    let mut switch = switch();
    let broken = spoilt(plain(9), |entry| entry.action = None);
    let batch = [Update::insert(plain(1)), broken, Update::insert(plain(2)), Update::delete(plain(2))];
    let outcomes = switch.write(&batch, Wire::ContinueOnError).unwrap_err();
    let fault = outcomes[3].as_ref().unwrap_err();
    assert_eq!(fault.code(), Code::InvalidArgument);
    assert!(fault.message().contains("update 2 of this batch"), "{}", fault.message());
    assert!(outcomes[0].is_ok() && outcomes[1].is_err() && outcomes[2].is_ok());
    let sessions = [Update::insert(session(1, &[])), Update::modify(session(1, &[]))];
    assert_eq!(codes(&mut switch, &sessions, Wire::ContinueOnError), [(1, Code::InvalidArgument)]);
}

#[test]
fn a_full_table_refuses_one_more_and_a_delete_makes_room() {
    let mut switch = switch();
    let entry = |port| Update::insert(by_port(port, 0, call("drop", &[])));
    let nine: Vec<Update> = (0..9).map(entry).collect();
    assert_eq!(codes(&mut switch, &nine, Wire::ContinueOnError), [(8, Code::ResourceExhausted)]);
    let change = [Update::delete(by_port(0, 0, None)), entry(8)];
    assert_eq!(codes(&mut switch, &change, Wire::DataplaneAtomic), []);
}

#[test]
fn an_atomic_batch_is_done_whole_or_not_at_all() {
    let mut switch = switch();
    write(&mut switch, &[Update::insert(plain(1)), Update::insert(plain(2))]);
    let before = state(&switch);
    let batch = [Update::delete(plain(1)), Update::insert(plain(3)), Update::modify(plain(4))];
    let wanted = [(0, Code::Aborted), (1, Code::Aborted), (2, Code::NotFound)];
    assert_eq!(codes(&mut switch, &batch, Wire::RollbackOnError), wanted);
    assert_eq!(state(&switch), before);
    assert_eq!(codes(&mut switch, &batch, Wire::ContinueOnError), [(2, Code::NotFound)]);
    let priorities: Vec<i32> =
        entries(&switch, &plain(0).table_id).iter().map(|entry| entry.priority).collect();
    assert_eq!(priorities, [2, 3]);
}

fn entries(switch: &Switch, table_id: &u32) -> Vec<TableEntry> {
    read(switch, TableEntry { table_id: *table_id, ..Default::default() })
}

fn read(switch: &Switch, filter: TableEntry) -> Vec<TableEntry> {
    let (found, outcomes) = switch.read(&[filter.into()]);
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    let entry = |entity: Entity| match entity.entity {
        Some(Kind::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    found.into_iter().map(entry).collect()
}

#[test]
fn what_is_written_is_read_in_its_shortest_form() {
    let mut switch = switch();
    let mut padded = plain(3);
    padded.r#match = vec![range(3, 5, 80), raw(1, &[0, 0, 17], &[0, 0xff])];
    write(&mut switch, &[Update::insert(padded)]);
    assert_eq!(entries(&switch, &id("ternary_t")), [plain(3)]);
    let optional_and_prefix =
        [by_header(4, vec![optional(4, 0x28)], call("drop", &[])), by_prefix(0x0a00_0000, 8, 1)];
    for entry in optional_and_prefix {
        write(&mut switch, &[Update::insert(entry.clone())]);
        assert_eq!(read(&switch, TableEntry { action: None, ..entry.clone() }), [entry]);
    }
}

#[test]
fn constant_entries_and_defaults_are_read() {
    let switch = switch();
    let constant = entries(&switch, &id("const_t"));
    assert_eq!(constant.len(), 3);
    assert!(constant.iter().all(|entry| entry.is_const));
    assert!(constant.iter().map(|entry| entry.priority).all(|priority| priority > i32::MAX - 10));
    let default = |table| read(&switch, default_of(table, None));
    assert_eq!(default("ternary_t"), [default_of("ternary_t", call("note", &[0x4000]))]);
    let lpm = default("lpm_t");
    assert_eq!((lpm[0].is_const, &lpm[0].action), (true, &call("note", &[0x2000])));
    let settable = read(&switch, TableEntry { is_default_action: true, ..Default::default() });
    assert_eq!(settable.len(), 2, "constant ones are found only where their table is named");
}

#[test]
fn filters_select_what_they_say() {
    let mut switch = switch();
    let other = TableEntry { metadata: vec![], action: call("drop", &[]), ..plain(2) };
    write(&mut switch, &[plain(1), other, by_prefix(0x0a00_0000, 8, 1)].map(Update::insert));
    let table = TableEntry { table_id: id("ternary_t"), ..Default::default() };
    let count = |filter| read(&switch, filter).len();
    assert_eq!(count(TableEntry::default()), 3 + 3);
    assert_eq!(count(table.clone()), 2);
    assert_eq!(count(TableEntry { priority: 2, ..table.clone() }), 1);
    assert_eq!(count(TableEntry { metadata: b"plain".to_vec(), ..table.clone() }), 1);
    assert_eq!(count(TableEntry { action: call("drop", &[]), ..table.clone() }), 1);
    assert_eq!(count(TableEntry { priority: 0, action: None, metadata: vec![], ..plain(1) }), 2);
    assert_eq!(count(TableEntry { action: None, metadata: vec![], ..plain(3) }), 0);
    let wrong: Vec<(Entity, Code)> = vec![
        (Entity::default(), Code::InvalidArgument),
        (TableEntry { table_id: 5, ..Default::default() }.into(), Code::InvalidArgument),
        (TableEntry { table_id: 0, ..plain(1) }.into(), Code::InvalidArgument),
        (ActionProfileMember::default().into(), Code::Unimplemented),
        (
            TableEntry { counter_data: Some(CounterData::default()), ..default_of("lpm_t", None) }.into(),
            Code::InvalidArgument,
        ),
        (DirectCounterEntry { table_entry: Some(plain(7)), data: None }.into(), Code::NotFound),
        (CounterEntry { counter_id: 9, ..Default::default() }.into(), Code::InvalidArgument),
    ];
    let filters: Vec<Entity> = wrong.iter().map(|case| case.0.clone()).collect();
    let (_, outcomes) = switch.read(&filters);
    let found: Vec<Code> = outcomes.into_iter().map(|outcome| outcome.unwrap_err().code()).collect();
    assert_eq!(found, wrong.iter().map(|case| case.1).collect::<Vec<_>>());
}

#[test]
fn a_modify_without_action_keeps_it_and_a_default_goes_back() {
    let mut switch = switch();
    write(&mut switch, &[Update::insert(plain(1))]);
    let renamed = TableEntry { metadata: b"renamed".to_vec(), action: None, ..plain(1) };
    write(&mut switch, &[Update::modify(renamed)]);
    let found = entries(&switch, &id("ternary_t"));
    assert_eq!(found, [TableEntry { metadata: b"renamed".to_vec(), ..plain(1) }]);

    let changed = default_of("ternary_t", call("note", &[7]));
    write(&mut switch, &[Update::modify(changed.clone())]);
    assert_eq!(read(&switch, default_of("ternary_t", None)), [changed]);
    write(&mut switch, &[Update::insert(by_port(1, 0, call("forward", &[9])))]);
    assert_eq!(only(&switch.process(1, &frame(1, &[]), 0)).1.action_taken, 0x2001 + 7);
    write(&mut switch, &[Update::modify(default_of("ternary_t", None))]);
    assert_eq!(only(&switch.process(1, &frame(1, &[]), 0)).1.action_taken, 0x6001);
}

#[test]
fn counters_are_read_and_set() {
    let mut switch = switch();
    write(&mut switch, &[Update::insert(plain(1)), Update::insert(by_port(1, 1, call("forward", &[9])))]);
    let data = |packets: i64, bytes: i64| CounterData { packet_count: packets, byte_count: bytes };
    // A lookahead of 7 stands where there is none.
    let sent = ipv4(&[], 0, 64, 17, 7, &[]);
    let length = sent.len() as i64;
    for _ in 0..3 {
        switch.process(1, &sent, 0);
    }
    let with_counter = TableEntry { counter_data: Some(CounterData::default()), ..plain(1) };
    let direct = DirectCounterEntry {
        table_entry: Some(TableEntry { action: None, metadata: vec![], ..plain(1) }),
        data: None,
    };
    let counted = |switch: &Switch| {
        let [entry] = &read(switch, with_counter.clone())[..] else { panic!() };
        let (found, _) = switch.read(&[direct.clone().into()]);
        let Some(Kind::DirectCounterEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        assert_eq!(found.table_entry, direct.table_entry);
        assert_eq!(found.data, entry.counter_data);
        found.data.unwrap()
    };
    assert_eq!(counted(&switch), data(3, 3 * length));
    write(&mut switch, &[Update::modify(DirectCounterEntry { data: Some(data(5, 50)), ..direct.clone() })]);
    switch.process(1, &sent, 0);
    assert_eq!(counted(&switch), data(6, 50 + length));
    // A modify of the entry keeps its counter unless it sets it.
    write(&mut switch, &[Update::modify(plain(1))]);
    assert_eq!(counted(&switch), data(6, 50 + length));
    write(&mut switch, &[Update::modify(TableEntry { counter_data: Some(data(1, 2)), ..plain(1) })]);
    assert_eq!(counted(&switch), data(1, 2));

    let cell = |index| CounterEntry {
        counter_id: id("by_port"),
        index: Some(Index { index }),
        data: Some(data(0, 0)),
    };
    let (all, _) = switch.read(&[CounterEntry::default().into()]);
    assert_eq!(all.len(), 16 + 4);
    let (one, _) = switch.read(&[cell(1).into()]);
    assert_eq!(one, [CounterEntry { data: Some(data(4, 4 * length)), ..cell(1) }.into()]);
    let whole = CounterEntry { counter_id: id("by_port"), index: None, data: Some(data(0, 0)) };
    write(&mut switch, &[Update::modify(whole)]);
    assert_eq!(switch.read(&[cell(1).into()]).0, [cell(1).into()]);
}

#[test]
fn programs_that_are_not_understood_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        assert!(JSON.contains(from), "{from}");
        Program::load(&JSON.replacen(from, to, 1), &info()).unwrap_err().to_string()
    };
    for (from, to, said) in [
        ("\"mark_to_drop\"", "\"recirculate\"", "primitive `recirculate`"),
        ("\"clone_ingress_pkt_to_egress\"", "\"resubmit\"", "primitive `resubmit`"),
        ("\"usat_cast\"", "\"isat_cast\"", "operation `isat_cast`"),
        ("\"algo\" : \"crc32\"", "\"algo\" : \"toeplitz\"", "hash algorithm `toeplitz`"),
        ("\"meter_arrays\" : []", "\"meter_arrays\" : [{\"name\": \"m\"}]", "meter `m`"),
        ("\"register_arrays\" : []", "\"register_arrays\" : [{\"name\": \"r\"}]", "register `r`"),
        ("\"learn_lists\" : []", "\"learn_lists\" : [{\"name\": \"l\"}]", "digest `l`"),
        ("\"extern_instances\" : []", "\"extern_instances\" : [{\"name\": \"e\"}]", "extern instance `e`"),
        ("\"parse_vsets\" : []", "\"parse_vsets\" : [{\"name\": \"v\"}]", "parser value set `v`"),
        ("\"header_unions\" : []", "\"header_unions\" : [{\"name\": \"u\"}]", "header union `u`"),
        ("\"type\" : \"simple\"", "\"type\" : \"indirect\"", "type of table `indirect`"),
        ("\"op\" : \"advance\"", "\"op\" : \"rewind\"", "parser operation `rewind`"),
        ("\"name\" : \"EverythingIngress.exact_t\"", "\"name\" : \"other\"", "EverythingIngress.exact_t"),
        ("\"actions\" : [", "\"acts\" : [", "action id"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(said), "{from}: {error}");
    }
    assert!(matches!(Program::load("{", &info()), Err(LoadError::Json(_))));
    let spoilt = |from: &str, to: &str| {
        assert!(INFO.contains(from), "{from}");
        Program::load(JSON, &read_info(&INFO.replacen(from, to, 1)).unwrap()).unwrap_err().to_string()
    };
    for (from, to, said) in [
        ("bitwidth: 9", "bitwidth: 10", "`port`"),
        ("match_type: RANGE", "match_type: EXACT", "`look`"),
        ("port < 300", "ports < 300", "`ports`"),
        ("port < 300", "port <", "restriction of `EverythingIngress.exact_t`"),
        ("is_const_table: true", "is_const_table: false", "constant entries"),
        ("unit: BOTH\n  }\n  size: 16", "unit: BOTH\n  }\n  size: 17", "17"),
    ] {
        let error = spoilt(from, to);
        assert!(error.contains(said), "{from}: {error}");
    }
}

/// Port and packet.
type Sent = Arc<Mutex<Vec<(u16, Vec<u8>)>>>;

/// A server, and what it sent by its ports.
struct Served {
    server: Server,
    target: Target,
    sent: Sent,
}

impl Served {
    fn new() -> Self {
        let sent = Sent::default();
        let out = Arc::clone(&sent);
        let transmit =
            Box::new(move |port: u16, bytes: &[u8]| out.lock().unwrap().push((port, bytes.to_vec())));
        let server = Server::new(DEVICE, CPU_PORT, transmit);
        let target = Target::dial("test", server.connector());
        Served { server, target, sent }
    }

    async fn connect(&self, id: u128) -> (Session, Inbox) {
        Session::connect(&self.target, Options::new(DEVICE, Some(ElectionId(id)))).await.unwrap()
    }
}

fn config(cookie: u64) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig::new(info(), JSON.as_bytes().to_vec(), cookie)
}

async fn table(session: &Session) -> usize {
    let filter = TableEntry { table_id: id("ternary_t"), ..Default::default() };
    session.read(vec![filter.into()]).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_are_set_saved_and_reconciled() {
    let served = Served::new();
    let (session, _inbox) = served.connect(10).await;
    let error = session.read(vec![TableEntry::default().into()]).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::FailedPrecondition));
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), None);
    let code = |result: Result<(), Error>| result.unwrap_err().code();
    session.set_pipeline(PipelineAction::Verify, Some(config(1))).await.unwrap();
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), None);
    let broken = ForwardingPipelineConfig { p4_device_config: b"{}".to_vec(), ..config(1) };
    let refused = session.set_pipeline(PipelineAction::VerifyAndCommit, Some(broken)).await;
    assert_eq!(code(refused), Some(Code::InvalidArgument));
    assert_eq!(code(session.set_pipeline(PipelineAction::Commit, None).await), Some(Code::NotFound));

    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(config(2))).await.unwrap();
    assert_eq!(session.pipeline(ResponseType::All).await.unwrap(), Some(config(2)));
    let cookie = session.pipeline(ResponseType::CookieOnly).await.unwrap().unwrap();
    assert_eq!((cookie.cookie, cookie.p4info, cookie.p4_device_config), (config(2).cookie, None, vec![]));
    let write = async |entry| {
        session.write(vec![Update::insert(entry)], Atomicity::ContinueOnError).await.unwrap();
    };
    write(plain(1)).await;
    session.set_pipeline(PipelineAction::ReconcileAndCommit, Some(config(3))).await.unwrap();
    assert_eq!(table(&session).await, 1);
    // Another program that the entries fit.
    let mut other = config(4);
    other.p4_device_config.push(b'\n');
    session.set_pipeline(PipelineAction::ReconcileAndCommit, Some(other)).await.unwrap();
    assert_eq!(table(&session).await, 1);
    session.set_pipeline(PipelineAction::VerifyAndSave, Some(config(5))).await.unwrap();
    assert_eq!(table(&session).await, 0, "the saved one's tables");
    write(plain(2)).await;
    write(plain(3)).await;
    session.set_pipeline(PipelineAction::Commit, None).await.unwrap();
    assert_eq!(table(&session).await, 2);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(config(6))).await.unwrap();
    assert_eq!(table(&session).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_between_ports_and_the_primary() {
    let served = Served::new();
    served.server.receive(1, &frame(1, &[]));
    let (session, mut inbox) = served.connect(10).await;
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(config(1))).await.unwrap();
    let entry = by_header(1, vec![ternary(1, 17, 0xff)], call("to_controller", &[1]));
    session.write(vec![Update::insert(entry)], Atomicity::ContinueOnError).await.unwrap();
    served.server.receive(3, &ipv4(&[], 0, 64, 17, 7, &[]));
    let packet = soon(inbox.packets.recv()).await.unwrap();
    assert_eq!(packet.metadata[0], PacketMetadata { metadata_id: 1, value: vec![3] });
    assert!(served.sent.lock().unwrap().is_empty());

    let metadata = vec![PacketMetadata { metadata_id: 1, value: vec![6] }];
    session.send_packet(PacketOut { payload: frame(1, &[7]), metadata }).await.unwrap();
    session.send_packet(PacketOut { payload: frame(1, &[7]), metadata: vec![] }).await.unwrap();
    match soon(inbox.notices.recv()).await {
        Some(StreamNotice::Error(error)) => assert_eq!(error.canonical_code, Code::InvalidArgument as i32),
        other => panic!("{other:?}"),
    }
    let sent = served.sent.lock().unwrap();
    let [(6, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(split(packet).1, frame(1, &[7]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_reads_but_does_not_write() {
    let served = Served::new();
    let (primary, _inbox) = served.connect(10).await;
    primary.set_pipeline(PipelineAction::VerifyAndCommit, Some(config(1))).await.unwrap();
    let (backup, _other) = served.connect(9).await;
    assert!(matches!(backup.standing(), Standing::Backup { primary: true, .. }));
    assert_eq!(table(&backup).await, 0);
    let error = backup.write(vec![Update::insert(plain(1))], Atomicity::ContinueOnError).await.unwrap_err();
    assert_eq!(error.stopped.unwrap().cause.code(), Some(Code::PermissionDenied));
    let error = backup.set_pipeline(PipelineAction::VerifyAndCommit, Some(config(2))).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::PermissionDenied));
}

async fn soon<T>(event: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(20), event).await.expect("nothing within 20 s")
}
