//! What p4c made of the P4 program, against its source and against what the Rust side declares.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use dataplane::target::BMV2;
use p4runtime::bytestring::canonical;
use p4runtime::entry::p4info_of;
use p4runtime::proto::p4::config::v1::{P4Info, P4TypeInfo, Preamble};
use sha2::{Digest, Sha256};
use testbed::p4ref::read_info;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn p4_build_is_of_the_present_source() {
    let project = project();
    let noted: BTreeMap<String, String> = String::from_utf8(read(&project.join("p4/build/SOURCE")))
        .unwrap()
        .lines()
        .map(|line| {
            let (digest, file) = line.split_once("  ").expect("SOURCE has lines of sha256sum");
            (file.to_owned(), digest.to_owned())
        })
        .collect();
    let present: BTreeMap<String, String> = ["core", "v1model", "tna"]
        .iter()
        .flat_map(|folder| fs::read_dir(project.join("p4").join(folder)).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "p4"))
        .map(|path| {
            let name = path.strip_prefix(&project).unwrap().to_str().unwrap().to_owned();
            (name, digest(&read(&path)))
        })
        .collect();
    assert_eq!(noted, present, "p4/build is not of this source: run `make p4`, which needs p4c");
}

/// What does not matter to a controller, taken away: notes to the compiler, and ways to write the same.
fn plain(mut info: P4Info) -> P4Info {
    let said = |preamble: &mut Option<Preamble>| {
        if let Some(preamble) = preamble {
            preamble.annotations.retain(|annotation| annotation.contains("restriction"));
            preamble.annotation_locations.clear();
        }
    };
    if let Some(package) = &mut info.pkg_info {
        package.platform_properties = None;
    }
    // p4c says that it has no types of its own.
    info.type_info = info.type_info.filter(|types| *types != P4TypeInfo::default());
    for table in &mut info.tables {
        said(&mut table.preamble);
        for action in &mut table.action_refs {
            action.annotations.clear();
            action.annotation_locations.clear();
        }
        table.action_refs.sort_by_key(|action| action.id);
        // p4c says a constant default action twice.
        if table.const_default_action_id != 0 {
            table.initial_default_action = None;
        }
        for argument in table.initial_default_action.iter_mut().flat_map(|call| &mut call.arguments) {
            let value = argument.value.iter().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
            argument.value = canonical(value);
        }
        for field in &mut table.match_fields {
            field.annotations.clear();
        }
    }
    for action in &mut info.actions {
        said(&mut action.preamble);
    }
    for counter in &mut info.counters {
        said(&mut counter.preamble);
        counter.index_type_name = None;
    }
    for counter in &mut info.direct_counters {
        said(&mut counter.preamble);
    }
    for header in &mut info.controller_packet_metadata {
        said(&mut header.preamble);
        for field in &mut header.metadata {
            field.annotations.clear();
        }
    }
    info
}

/// One by one, so that a difference names the thing.
fn same<T: Debug + PartialEq>(what: &str, id: impl Fn(&T) -> u32, compiled: Vec<T>, declared: Vec<T>) {
    let by_id = |all: Vec<T>| -> BTreeMap<u32, T> {
        let count = all.len();
        let map: BTreeMap<u32, T> = all.into_iter().map(|one| (id(&one), one)).collect();
        assert_eq!(map.len(), count, "{what}: an id is there twice");
        map
    };
    let (compiled, declared) = (by_id(compiled), by_id(declared));
    let ids = |map: &BTreeMap<u32, T>| map.keys().map(|id| format!("{id:#010x}")).collect::<Vec<_>>();
    assert_eq!(ids(&compiled), ids(&declared), "{what}: P4 left, Rust right");
    for (id, one) in compiled {
        assert_eq!(Some(&one), declared.get(&id), "{what} {id:#010x}: P4 left, Rust right");
    }
}

fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

#[test]
fn the_p4info_is_what_the_rust_tables_declare() {
    let text = String::from_utf8(read(&project().join("p4/build/sluice.p4info.txtpb"))).unwrap();
    let compiled = plain(read_info(&text).unwrap());
    let declared = plain(p4info_of(&BMV2));
    let only_package = P4Info { pkg_info: declared.pkg_info.clone(), ..Default::default() };
    let rest = P4Info {
        tables: Vec::new(),
        actions: Vec::new(),
        counters: Vec::new(),
        direct_counters: Vec::new(),
        controller_packet_metadata: Vec::new(),
        ..compiled.clone()
    };
    same("table", |table| id(&table.preamble), compiled.tables, declared.tables);
    same("action", |action| id(&action.preamble), compiled.actions, declared.actions);
    same("counter", |counter| id(&counter.preamble), compiled.counters, declared.counters);
    same("direct counter", |one| id(&one.preamble), compiled.direct_counters, declared.direct_counters);
    same(
        "controller header",
        |header| id(&header.preamble),
        compiled.controller_packet_metadata,
        declared.controller_packet_metadata,
    );
    assert_eq!(rest, only_package, "left: P4 has what Rust does not know (meters, registers, digests ...)");
}
