//! `docs/cli.md`, from the tables of commands and the schema. `UPDATE_REFERENCE=1 cargo test -p cli --test reference`
//! writes it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use cli::commands::{CONFIGURE, FILTERS, ROOT};
use cli::grammar::{Form, Step, forms};
use tree::{Kind, Node, NodeId, Schema, Type};

const HEAD: &str = include_str!("reference/head.md");

fn commands(text: &mut String, title: &str, about: &str, step: &'static Step) {
    let _ = writeln!(text, "\n## {title}\n\n{about}\n\n| Command | What it does |\n|---|---|");
    for form in forms(&[], step) {
        let _ = writeln!(text, "| `{}` | {} |", bars(&form.usage()), bars(form.help()));
        options(text, &form);
    }
}

fn options(text: &mut String, form: &Form) {
    for option in form.options {
        let value = &option.node.then.nodes[0];
        let usage = format!("{} {}", option.node.title(), value.title());
        let _ = writeln!(text, "| \u{2003}`{}` | {}: {} |", bars(&usage), option.node.help, bars(value.help));
    }
}

/// A bar would end a cell.
fn bars(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// As it is typed, with what stands for a value in capitals.
fn usage(schema: &Schema, node: &Node) -> String {
    let above = node.parent.map(|parent| usage(schema, schema.node(parent)) + " ").unwrap_or_default();
    let keys = node.keys().iter().map(|key| format!(" {}", schema.node(*key).name.to_uppercase()));
    format!("{above}{}{}", node.name, keys.collect::<String>())
}

/// What it takes, and what is in force without it.
fn takes(schema: &Schema, node: &Node) -> String {
    let (ty, units, default) = match &node.kind {
        Kind::Leaf { ty, units, default, mandatory, .. } => {
            (ty, units, default.clone().or(mandatory.then(|| "must be set".into())))
        }
        Kind::LeafList { ty, units, defaults, .. } => {
            (ty, units, Some(defaults.join(" ")).filter(|d| !d.is_empty()))
        }
        _ => return String::new(),
    };
    let mut text = match ty {
        Type::Empty => "alone".into(),
        ty => ty.expected(),
    };
    let _ = schema;
    if let Some(units) = units {
        text = format!("{text}, {units}");
    }
    match default {
        Some(default) => format!("{text} ({default})"),
        None => text,
    }
}

fn below(text: &mut String, schema: &Schema, parent: Option<NodeId>) {
    let keys = parent.map(|parent| schema.node(parent).keys()).unwrap_or_default();
    let nodes: Vec<&Node> = schema
        .below(parent)
        .filter(|node| node.config && !matches!(node.kind, Kind::Rpc | Kind::Notification))
        .filter(|node| !keys.contains(&node.id))
        .collect();
    let leaf = |node: &&&Node| matches!(node.kind, Kind::Leaf { .. } | Kind::LeafList { .. });
    if nodes.iter().any(|node| leaf(&node)) {
        text.push_str("\n| | Takes (without it) | What it is |\n|---|---|---|\n");
        for node in nodes.iter().filter(leaf) {
            let name = match node.kind {
                Kind::LeafList { .. } => format!("{} [ .. ]", node.name),
                _ => node.name.clone(),
            };
            let (takes, help) = (bars(&takes(schema, node)), bars(&node.description));
            let _ = writeln!(text, "| `{name}` | {takes} | {help} |");
        }
    }
    for node in nodes.iter().filter(|node| !leaf(node)) {
        let _ = writeln!(text, "\n### `{}`\n\n{}", usage(schema, node), node.description);
        for key in node.keys() {
            let key = schema.node(*key);
            let ty = key.ty().map(Type::expected).unwrap_or_default();
            let _ = writeln!(text, "\n{}: {ty}.", key.name.to_uppercase());
        }
        below(text, schema, Some(node.id));
    }
}

#[test]
fn the_reference_is_what_the_tables_and_the_schema_say() {
    let schema = yang::Yang::load().unwrap();
    let schema = schema.schema();
    let mut text = String::from(HEAD);
    commands(
        &mut text,
        "Operational mode",
        "The prompt ends in `>`. What is in capitals stands for a value; what is in brackets may be left out.",
        &ROOT,
    );
    commands(
        &mut text,
        "Configuration mode",
        "The prompt ends in `#`, and `[edit ...]` above it names the level. A `PATH` is the words of the tree below, \
         from that level on.",
        &CONFIGURE,
    );
    commands(&mut text, "Filters", "Behind a command, after `|`, several in a row.", &FILTERS);
    text.push_str("\n## What can be configured\n\nFrom the YANG modules in `configs/yang`.\n");
    below(&mut text, schema, None);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, written, "{} is not up to date: UPDATE_REFERENCE=1 writes it anew", file.display());
}
