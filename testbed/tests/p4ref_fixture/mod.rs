//! The fixture `everything.p4`: its switch, its frames, its entries.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::{Arc, OnceLock};

use p4runtime::bytestring::canonical;
use p4runtime::proto::p4::config::v1::P4Info;
use p4runtime::proto::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
use p4runtime::proto::p4::v1::write_request::Atomicity;
use p4runtime::proto::p4::v1::{
    Action, CloneSessionEntry, FieldMatch, Replica, TableAction, TableEntry, Update, action, replica,
    table_action,
};
use testbed::p4ref::{Output, Program, Switch, read_info};

pub(crate) const JSON: &str = include_str!("../p4ref/everything.json");
pub(crate) const INFO: &str = include_str!("../p4ref/everything.p4info.txtpb");
pub(crate) const CPU_PORT: u16 = 510;

pub(crate) fn info() -> P4Info {
    static READ: OnceLock<P4Info> = OnceLock::new();
    READ.get_or_init(|| read_info(INFO).unwrap()).clone()
}

pub(crate) fn program() -> Arc<Program> {
    static LOADED: OnceLock<Arc<Program>> = OnceLock::new();
    Arc::clone(LOADED.get_or_init(|| Arc::new(Program::load(JSON, &info()).unwrap())))
}

pub(crate) fn switch() -> Switch {
    Switch::new(program()).with_cpu_port(CPU_PORT)
}

/// Id of a table, action or counter, by its alias.
pub(crate) fn id(alias: &str) -> u32 {
    let info = info();
    let tables = info.tables.iter().map(|it| &it.preamble);
    let actions = info.actions.iter().map(|it| &it.preamble);
    let counters = info.counters.iter().map(|it| &it.preamble);
    let direct = info.direct_counters.iter().map(|it| &it.preamble);
    let mut all = tables.chain(actions).chain(counters).chain(direct).flatten();
    all.find(|preamble| preamble.alias == alias).unwrap_or_else(|| panic!("no {alias}")).id
}

pub(crate) fn call(name: &str, params: &[u128]) -> Option<TableAction> {
    let params =
        (1..).zip(params).map(|(param_id, value)| action::Param { param_id, value: canonical(*value) });
    let action = Action { action_id: id(name), params: params.collect() };
    Some(TableAction { r#type: Some(table_action::Type::Action(action)) })
}

fn field(field_id: u32, kind: FieldMatchType) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(kind) }
}

pub(crate) fn exact(id: u32, value: u128) -> FieldMatch {
    field(id, FieldMatchType::Exact(Exact { value: canonical(value) }))
}

pub(crate) fn ternary(id: u32, value: u128, mask: u128) -> FieldMatch {
    field(id, FieldMatchType::Ternary(Ternary { value: canonical(value), mask: canonical(mask) }))
}

pub(crate) fn range(id: u32, low: u128, high: u128) -> FieldMatch {
    field(id, FieldMatchType::Range(Range { low: canonical(low), high: canonical(high) }))
}

pub(crate) fn optional(id: u32, value: u128) -> FieldMatch {
    field(id, FieldMatchType::Optional(Optional { value: canonical(value) }))
}

pub(crate) fn lpm(id: u32, value: u128, prefix_len: i32) -> FieldMatch {
    field(id, FieldMatchType::Lpm(Lpm { value: canonical(value), prefix_len }))
}

/// An entry of `exact_t`.
pub(crate) fn by_port(port: u128, is_ip: u128, action: Option<TableAction>) -> TableEntry {
    TableEntry {
        table_id: id("exact_t"),
        r#match: vec![exact(1, port), exact(2, is_ip)],
        action,
        ..Default::default()
    }
}

/// An entry of `ternary_t`.
pub(crate) fn by_header(priority: i32, fields: Vec<FieldMatch>, action: Option<TableAction>) -> TableEntry {
    TableEntry { table_id: id("ternary_t"), r#match: fields, priority, action, ..Default::default() }
}

/// An entry of `lpm_t`.
pub(crate) fn by_prefix(value: u128, length: i32, note: u128) -> TableEntry {
    TableEntry {
        table_id: id("lpm_t"),
        r#match: vec![lpm(1, value, length)],
        action: call("note", &[note]),
        ..Default::default()
    }
}

pub(crate) fn session(session_id: u32, replicas: &[(u16, u32)]) -> CloneSessionEntry {
    let replica = |(port, instance): &(u16, u32)| Replica {
        port_kind: Some(replica::PortKind::Port(canonical((*port).into()))),
        instance: *instance,
        ..Default::default()
    };
    CloneSessionEntry { session_id, replicas: replicas.iter().map(replica).collect(), ..Default::default() }
}

pub(crate) fn write(switch: &mut Switch, updates: &[Update]) {
    switch.write(updates, Atomicity::ContinueOnError).unwrap();
}

/// A switch that forwards all that comes by ports 1 to 5 to port 9.
pub(crate) fn forwarding() -> Switch {
    let mut switch = switch();
    let entries = (1..4).flat_map(|port| [(port, 0), (port, 1)]);
    let entries = entries.map(|(port, is_ip)| Update::insert(by_port(port, is_ip, call("forward", &[9]))));
    write(&mut switch, &entries.collect::<Vec<_>>());
    switch
}

/// Ethernet header with a type, then the rest.
pub(crate) fn frame(kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01];
    frame.extend(kind.to_be_bytes());
    frame.extend(rest);
    frame
}

fn csum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv4 header with options, its checksum right, and a payload.
pub(crate) fn ipv4(options: &[u8], tos: u8, ttl: u8, protocol: u8, dst: u32, payload: &[u8]) -> Vec<u8> {
    let ihl = 5 + options.len() / 4;
    let mut header = vec![0x40 | ihl as u8, tos, 0, 0, 0x12, 0x34, 0x40, 0, ttl, protocol, 0, 0, 10, 0, 0, 1];
    header.extend(dst.to_be_bytes());
    header.extend(options);
    let sum = csum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header.extend(payload);
    frame(0x0800, &header)
}

/// A frame of the calculator.
pub(crate) fn calc(a: u16, b: u16, small: u8, wide: u128) -> Vec<u8> {
    let mut rest = Vec::new();
    rest.extend(a.to_be_bytes());
    rest.extend(b.to_be_bytes());
    rest.push(small);
    rest.extend(wide.to_be_bytes());
    frame(0x88f1, &rest)
}

/// Tags: label, kind, last.
pub(crate) fn tags(tags: &[(u16, u16, bool)], payload: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    for (label, kind, last) in tags {
        rest.extend((label << 4 | kind << 1 | u16::from(*last)).to_be_bytes());
    }
    rest.extend(payload);
    frame(0x88f0, &rest)
}

/// The trace that the program puts in front of what it sends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) parser_error: u32,
    pub(crate) checksum_error: u8,
    pub(crate) instance: u8,
    pub(crate) ingress_port: u16,
    pub(crate) egress_port: u16,
    pub(crate) packet_length: u32,
    pub(crate) action_taken: u16,
    pub(crate) kept: u16,
    pub(crate) lost: u16,
    pub(crate) rid: u16,
    pub(crate) tags: u8,
    pub(crate) sum: u16,
}

pub(crate) const TRACE: usize = 25;

/// Splits a packet that was sent into its trace and the rest.
pub(crate) fn split(packet: &[u8]) -> (Trace, &[u8]) {
    let (head, rest) = packet.split_at(TRACE);
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
    let trace = Trace {
        parser_error: u32_at(0),
        checksum_error: head[4],
        instance: head[5],
        ingress_port: u16_at(6),
        egress_port: u16_at(8),
        packet_length: u32_at(10),
        action_taken: u16_at(14),
        kept: u16_at(16),
        lost: u16_at(18),
        rid: u16_at(20),
        tags: head[22],
        sum: u16_at(23),
    };
    (trace, rest)
}

/// The one packet that left.
pub(crate) fn only(output: &Output) -> (u16, Trace, Vec<u8>) {
    let [(port, packet)] = output.sent.as_slice() else { panic!("{output:?}") };
    let (trace, rest) = split(packet);
    (*port, trace, rest.to_vec())
}
