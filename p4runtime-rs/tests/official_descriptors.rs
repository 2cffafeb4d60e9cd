//! Our declarations against those that p4.org publishes on PyPI, in both directions.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use p4runtime::proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

/// The published package and what its modules need to load, each at a fixed version.
const PACKAGES: [&str; 3] = ["p4runtime==1.6.0", "protobuf==4.25.8", "googleapis-common-protos==1.63.2"];

/// Packages that must agree in full: nothing is left out on purpose.
const COMPARED: [&str; 3] = ["p4.v1", "p4.config.v1", "google.rpc"];

#[test]
fn declarations_are_the_published_ones() {
    let published = match published() {
        Ok(published) => published,
        Err(reason) if std::env::var_os("SLUICE_OFFLINE").is_some_and(|v| v == "1") => {
            println!("skipped: SLUICE_OFFLINE=1 and the published descriptors are not at hand: {reason}");
            return;
        }
        Err(reason) => panic!(
            "cannot load the published descriptors: {reason}\n\
             this test needs python3 with venv and pip, and PyPI; set SLUICE_OFFLINE=1 to go without"
        ),
    };
    let ours = facts(&FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap());
    let theirs = facts(&published);
    assert!(theirs.len() > 500, "only {} facts in the published descriptors", theirs.len());

    let mut differences = Vec::new();
    for (name, fact) in &theirs {
        match ours.get(name) {
            None => differences.push(format!("{name}: published as `{fact}`, missing here")),
            Some(own) if own != fact => {
                differences.push(format!("{name}: published as `{fact}`, here `{own}`"));
            }
            Some(_) => {}
        }
    }
    for (name, own) in &ours {
        if !theirs.contains_key(name) {
            differences.push(format!("{name}: here as `{own}`, not published"));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_kind_of_difference_is_a_different_fact() {
    let ours = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let before = facts(&ours);
    let changes: [fn(&mut DescriptorProto); 6] = [
        |m| m.field[0].number = Some(77),
        |m| m.field[0].name = Some("other".into()),
        |m| m.field[0].set_label(Label::Repeated),
        |m| m.field[0].set_type(Type::Sint64),
        |m| m.enum_type[0].value[1].number = Some(9),
        |m| drop(m.field.pop()),
    ];
    for (nth, change) in changes.iter().enumerate() {
        let mut changed = ours.clone();
        let message = changed
            .file
            .iter_mut()
            .flat_map(|f| &mut f.message_type)
            .find(|m| m.name() == "WriteRequest")
            .unwrap();
        change(message);
        assert_ne!(before, facts(&changed), "change {nth} goes unseen");
    }
}

/// Every declared thing of the compared packages by its full name, with all that the wire or a generated
/// binding sees of it.
fn facts(set: &FileDescriptorSet) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for file in &set.file {
        let package = file.package();
        if !COMPARED.contains(&package) {
            continue;
        }
        facts.insert(format!("file {}", file.name()), format!("{package} {}", file.syntax()));
        for message in &file.message_type {
            message_facts(package, message, &mut facts);
        }
        for declared in &file.enum_type {
            enum_facts(package, declared, &mut facts);
        }
        for extension in &file.extension {
            field_facts(package, extension, &[], &mut facts);
        }
        for service in &file.service {
            for method in &service.method {
                facts.insert(
                    format!("{package}.{}.{}", service.name(), method.name()),
                    format!(
                        "rpc {}{} -> {}{}",
                        if method.client_streaming() { "stream " } else { "" },
                        method.input_type(),
                        if method.server_streaming() { "stream " } else { "" },
                        method.output_type()
                    ),
                );
            }
        }
    }
    facts
}

fn message_facts(scope: &str, message: &DescriptorProto, facts: &mut BTreeMap<String, String>) {
    let name = format!("{scope}.{}", message.name());
    let map_entry = message.options.as_ref().is_some_and(|o| o.map_entry());
    let reserved: Vec<_> = message.reserved_range.iter().map(|r| (r.start(), r.end())).collect();
    facts.insert(
        name.clone(),
        format!("message, map entry {map_entry}, reserved {reserved:?} {:?}", message.reserved_name),
    );
    let oneofs: Vec<&str> = message.oneof_decl.iter().map(|o| o.name()).collect();
    for field in message.field.iter().chain(&message.extension) {
        field_facts(&name, field, &oneofs, facts);
    }
    for nested in &message.nested_type {
        message_facts(&name, nested, facts);
    }
    for declared in &message.enum_type {
        enum_facts(&name, declared, facts);
    }
}

fn field_facts(
    scope: &str,
    field: &FieldDescriptorProto,
    oneofs: &[&str],
    facts: &mut BTreeMap<String, String>,
) {
    let oneof = field.oneof_index.map_or("none", |i| oneofs[usize::try_from(i).unwrap()]);
    let deprecated = field.options.as_ref().is_some_and(|o| o.deprecated());
    facts.insert(
        format!("{scope}.{}", field.name()),
        format!(
            "number {}, {:?}, {:?} {}, oneof {oneof}, explicit presence {}, deprecated {deprecated}",
            field.number(),
            field.label(),
            field.r#type(),
            field.type_name(),
            field.proto3_optional()
        ),
    );
}

fn enum_facts(scope: &str, declared: &EnumDescriptorProto, facts: &mut BTreeMap<String, String>) {
    let name = format!("{scope}.{}", declared.name());
    let alias = declared.options.as_ref().is_some_and(|o| o.allow_alias());
    facts.insert(name.clone(), format!("enum, aliases {alias}"));
    for value in &declared.value {
        let deprecated = value.options.as_ref().is_some_and(|o| o.deprecated());
        facts.insert(
            format!("{name}.{}", value.name()),
            format!("value {}, deprecated {deprecated}", value.number()),
        );
    }
}

/// Loads the published descriptors, from a virtual environment that is made on first use.
fn published() -> Result<FileDescriptorSet, String> {
    let venv = std::env::var_os("SLUICE_VENV")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("p4runtime-published"), PathBuf::from);
    let python = venv.join("bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/official_descriptors.py");

    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    // pip leaves a satisfied environment alone, without asking PyPI.
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(PACKAGES))?;
    let encoded = run(Command::new(&python).arg(script))?;
    FileDescriptorSet::decode(encoded.as_slice()).map_err(|e| format!("output of {script}: {e}"))
}

fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
