//! The P4Info of the data plane, from its schema.

use dataplane::schema::{self, DefaultAction, MatchKind};
use dataplane::tables;
use dataplane::target::{SWPIPE, TargetProfile};

use crate::bytestring::canonical;
use crate::proto::p4::config::v1::action_ref::Scope;
use crate::proto::p4::config::v1::counter_spec::Unit;
use crate::proto::p4::config::v1::match_field::{Match, MatchType};
use crate::proto::p4::config::v1::table_action_call::Argument;
use crate::proto::p4::config::v1::{
    Action, ActionRef, ControllerPacketMetadata, Counter, CounterSpec, DirectCounter, Documentation,
    MatchField, P4Info, PkgInfo, Preamble, Table, TableActionCall, action, controller_packet_metadata,
};

/// Everything that a controller may address, on the software pipeline.
///
/// ```
/// let info = p4runtime::entry::p4info();
/// assert_eq!(info.pkg_info.unwrap().name, "sluice");
/// ```
#[must_use]
pub fn p4info() -> P4Info {
    p4info_of(&SWPIPE)
}

/// Everything that a controller may address on a target: they differ in the sizes of tables.
#[must_use]
pub fn p4info_of(target: &TargetProfile) -> P4Info {
    P4Info {
        pkg_info: Some(PkgInfo {
            name: "sluice".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            doc: documentation("Balances links over inline appliances."),
            arch: target.architecture.to_owned(),
            ..Default::default()
        }),
        tables: tables::PROGRAM.iter().map(|table| table_info(table, target)).collect(),
        actions: tables::actions().into_iter().map(action_info).collect(),
        counters: schema::counters::ALL.iter().map(|counter| counter_info(counter)).collect(),
        direct_counters: tables::PROGRAM.iter().filter_map(|table| direct_counter_info(table)).collect(),
        controller_packet_metadata: [&schema::PACKET_IN, &schema::PACKET_OUT].map(header_info).to_vec(),
        ..Default::default()
    }
}

fn documentation(brief: &str) -> Option<Documentation> {
    Some(Documentation { brief: brief.to_owned(), description: String::new() })
}

fn preamble(id: u32, name: &str, brief: &str) -> Option<Preamble> {
    Some(Preamble {
        id,
        name: name.to_owned(),
        alias: name.to_owned(),
        doc: if brief.is_empty() { None } else { documentation(brief) },
        ..Default::default()
    })
}

/// A preamble with what its object must keep, in the language of p4-constraints.
fn restricted(
    mut preamble: Option<Preamble>,
    annotation: &str,
    restriction: Option<&str>,
) -> Option<Preamble> {
    if let (Some(preamble), Some(restriction)) = (&mut preamble, restriction) {
        preamble.annotations.push(format!("@{annotation}(\"{restriction}\")"));
    }
    preamble
}

fn table_info(table: &schema::Table, target: &TargetProfile) -> Table {
    let match_fields = table
        .key
        .iter()
        .map(|(field, kind)| MatchField {
            id: field.id,
            name: field.name.to_owned(),
            bitwidth: width(field.bits),
            r#match: Some(Match::MatchType(match_type(*kind).into())),
            ..Default::default()
        })
        .collect();
    let reference = |id, scope: Scope| ActionRef { id, scope: scope.into(), ..Default::default() };
    let mut action_refs: Vec<ActionRef> =
        table.actions.iter().map(|action| reference(action.id, Scope::TableAndDefault)).collect();
    let default = table.default_action.id;
    if table.actions.iter().all(|action| action.id != default) {
        action_refs.push(reference(default, Scope::DefaultOnly));
    }
    Table {
        preamble: restricted(
            preamble(table.id, table.name, table.brief),
            "entry_restriction",
            table.restriction,
        ),
        match_fields,
        action_refs,
        const_default_action_id: match table.default {
            DefaultAction::Const(id) => id,
            DefaultAction::Settable(..) => 0,
        },
        initial_default_action: match table.default {
            DefaultAction::Const(_) => None,
            DefaultAction::Settable(id, params) => Some(initial(id, params)),
        },
        direct_resource_ids: table.direct_counter.into_iter().collect(),
        size: count(target.table_size(table)),
        ..Default::default()
    }
}

fn initial(action_id: u32, params: &[u128]) -> TableActionCall {
    let arguments =
        (1..).zip(params).map(|(param_id, value)| Argument { param_id, value: canonical(*value) }).collect();
    TableActionCall { action_id, arguments }
}

fn match_type(kind: MatchKind) -> MatchType {
    match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Ternary => MatchType::Ternary,
        MatchKind::Range => MatchType::Range,
    }
}

fn action_info(action: &schema::Action) -> Action {
    let params = action
        .params
        .iter()
        .map(|param| action::Param {
            id: param.id,
            name: param.name.to_owned(),
            bitwidth: width(param.bits),
            ..Default::default()
        })
        .collect();
    let preamble = preamble(action.id, action.name, action.brief);
    Action { preamble: restricted(preamble, "action_restriction", action.restriction), params }
}

/// Frames and bytes.
fn both() -> Option<CounterSpec> {
    Some(CounterSpec { unit: Unit::Both.into() })
}

fn counter_info(counter: &schema::Counter) -> Counter {
    Counter {
        preamble: preamble(counter.id, counter.name, counter.brief),
        spec: both(),
        size: count(counter.size),
        ..Default::default()
    }
}

fn direct_counter_info(table: &schema::Table) -> Option<DirectCounter> {
    let id = table.direct_counter?;
    let name = format!("{}_counter", table.name);
    Some(DirectCounter {
        preamble: preamble(id, &name, "Frames that an entry matched."),
        spec: both(),
        direct_table_id: table.id,
    })
}

fn header_info(header: &schema::PacketHeader) -> ControllerPacketMetadata {
    let metadata = header
        .fields
        .iter()
        .map(|field| controller_packet_metadata::Metadata {
            id: field.id,
            name: field.name.to_owned(),
            bitwidth: width(field.bits),
            ..Default::default()
        })
        .collect();
    let mut preamble = preamble(header.id, header.name, "");
    if let Some(preamble) = &mut preamble {
        preamble.annotations = vec![format!("@controller_header(\"{}\")", header.name)];
    }
    ControllerPacketMetadata { preamble, metadata }
}

fn width(bits: u32) -> i32 {
    i32::try_from(bits).unwrap_or(i32::MAX)
}

fn count(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use dataplane::target::{BMV2, TOFINO1};

    use super::*;
    use crate::metadata::{PACKET_IN, PACKET_OUT, PacketLayout};
    use crate::proto::p4::config::v1::p4_ids::Prefix;

    fn preambles(info: &P4Info) -> Vec<(Prefix, &Preamble)> {
        let tables = info.tables.iter().map(|table| (Prefix::Table, table.preamble.as_ref()));
        let actions = info.actions.iter().map(|action| (Prefix::Action, action.preamble.as_ref()));
        let counters = info.counters.iter().map(|counter| (Prefix::Counter, counter.preamble.as_ref()));
        let direct =
            info.direct_counters.iter().map(|direct| (Prefix::DirectCounter, direct.preamble.as_ref()));
        let headers = info
            .controller_packet_metadata
            .iter()
            .map(|header| (Prefix::ControllerHeader, header.preamble.as_ref()));
        tables
            .chain(actions)
            .chain(counters)
            .chain(direct)
            .chain(headers)
            .map(|(prefix, preamble)| (prefix, preamble.unwrap()))
            .collect()
    }

    #[test]
    fn ids_are_unique_and_say_what_the_object_is() {
        let info = p4info();
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for (prefix, preamble) in preambles(&info) {
            assert_eq!(preamble.id >> 24, prefix as u32, "{}", preamble.name);
            assert!(ids.insert(preamble.id), "{} has an id that is taken", preamble.name);
            assert!(names.insert((prefix, &preamble.name)), "{} is there twice", preamble.name);
        }
        let counters = schema::counters::ALL.len();
        assert_eq!(ids.len(), 10 + info.actions.len() + counters + 2 + 2);
    }

    #[test]
    fn what_tables_refer_to_is_there() {
        let info = p4info();
        let actions: HashSet<u32> = info.actions.iter().map(|a| a.preamble.as_ref().unwrap().id).collect();
        for table in &info.tables {
            let id = table.preamble.as_ref().unwrap().id;
            assert!(table.action_refs.iter().all(|action| actions.contains(&action.id)));
            let default = table.const_default_action_id;
            assert!(default == 0 || table.action_refs.iter().any(|action| action.id == default));
            for resource in &table.direct_resource_ids {
                let owner = info.direct_counters.iter().find(|direct| {
                    direct.preamble.as_ref().unwrap().id == *resource && direct.direct_table_id == id
                });
                assert!(owner.is_some());
            }
        }
    }

    #[test]
    fn restrictions_are_annotations_of_their_tables_and_actions() {
        let info = p4info();
        let tables = info.tables.iter().map(|table| ("table", table.preamble.as_ref()));
        let actions = info.actions.iter().map(|action| ("action", action.preamble.as_ref()));
        let said: Vec<(String, String)> = tables
            .chain(actions)
            .flat_map(|(kind, preamble)| {
                let preamble = preamble.unwrap();
                let name = format!("{kind} {}", preamble.name);
                preamble.annotations.iter().map(move |annotation| (name.clone(), annotation.clone()))
            })
            .collect();
        let of =
            |name: &str| said.iter().find(|(of, _)| of == name).map(|(_, annotation)| annotation.as_str());
        assert_eq!(of("table pair_state"), Some("@entry_restriction(\"pair < 512\")"));
        assert_eq!(of("action to_pair"), Some("@action_restriction(\"pair < 512\")"));
        assert!(of("table rules_v4").unwrap().contains("ip_version::mask == 15"));
        assert_eq!(of("action bypass_bucket"), Some("@action_restriction(\"reason == 12 || reason == 13\")"));
        assert_eq!(said.len(), 4 + 8, "{said:#?}");
    }

    #[test]
    fn targets_differ_in_the_sizes_of_tables() {
        let sizes =
            |target| -> Vec<i64> { p4info_of(target).tables.iter().map(|table| table.size).collect() };
        assert_eq!(sizes(&BMV2), sizes(&SWPIPE));
        assert_eq!(sizes(&TOFINO1)[2..6], [2048, 512, 256, 131_072]);
    }

    #[test]
    fn packet_metadata_have_their_layouts() {
        let info = p4info();
        let packet_in = PacketLayout::of(&info, PACKET_IN).unwrap();
        packet_in.encode(&[("ingress_port", 511), ("receive_time", u64::MAX.into())]).unwrap();
        PacketLayout::of(&info, PACKET_OUT).unwrap().encode(&[("egress_port", 511)]).unwrap();
    }
}
