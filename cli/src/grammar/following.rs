//! What can stand at the end of a line that is being typed: `?` and Tab.

use std::fmt::Write as _;

use super::position::Position;
use super::{Fault, Kind, Names, Step, Value, What};
use crate::help::wrap;
use crate::render::harmless;
use crate::token::{Token, split};
use crate::words;

/// Something that can stand at a place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// As it is listed.
    pub text: String,
    /// What it means.
    pub help: String,
    /// Can be typed as it is listed; else it stands for something.
    pub literal: bool,
}

/// What can stand at the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Following {
    /// First byte of the word that is being typed.
    pub start: usize,
    /// What it can become.
    pub items: Vec<Item>,
}

/// Splits a line that is being typed into the words that are complete and the one that is not.
fn partial(line: &str) -> Result<(Vec<Token>, String, usize), Fault> {
    // A quote that is still open is closed for the time being: its word is the one being typed.
    let (mut tokens, open) = match split(line) {
        Ok(tokens) => (tokens, false),
        Err(_) => (split(&format!("{line}\""))?, true),
    };
    let typing = open || tokens.last().is_some_and(|token| token.end == line.len() && !token.bar);
    match typing.then(|| tokens.pop()).flatten() {
        Some(token) => Ok((tokens, token.text, token.start)),
        None => Ok((tokens, String::new(), line.len())),
    }
}

/// What can stand at the end of a line that is being typed.
///
/// # Errors
/// A word before the end that cannot stand where it stands.
pub fn following(root: &'static Step, line: &str, names: &dyn Names) -> Result<Following, Fault> {
    let (tokens, word, start) = partial(line)?;
    let mut position = Position::start(root);
    for token in &tokens {
        position.advance(token)?;
    }
    let quoted = line[start..].starts_with('"');
    let mut items = Vec::new();
    for node in position.nodes() {
        match &node.what {
            What::Word(text) if !quoted && text.starts_with(&word) => {
                items.push(Item { text: String::from(*text), help: node.help.into(), literal: true });
            }
            What::Word(_) | What::Tree(_) => {}
            What::Value(value) => {
                let values = value.kind.candidates(&word, &position.args, names).into_iter();
                let some: Vec<Item> = values
                    .filter(|(text, _)| text.starts_with(&word))
                    .map(|(text, help)| Item {
                        text,
                        help: help.unwrap_or_else(|| node.help.into()),
                        literal: true,
                    })
                    .collect();
                let readable = word.is_empty() || value.kind.read(&word).is_ok();
                if !value.kind.closed() && (readable || some.is_empty()) {
                    let text = format!("<{}>", value.name);
                    items.push(Item { text, help: node.help.into(), literal: false });
                }
                items.extend(some);
            }
        }
    }
    let mut complete = true;
    if let Some(tree) = position.tree_words() {
        let found = words::following(&tree, line.len(), &word, names)?;
        items.extend(found.items);
        complete = found.complete || tree.tokens.is_empty();
    }
    if word.is_empty()
        && complete
        && let Some(run) = position.command()
    {
        items.push(Item { text: "<Enter>".into(), help: "Run this command".into(), literal: false });
        if run.filters() {
            let help = "Pass the output through a filter".into();
            items.push(Item { text: "|".into(), help, literal: true });
        }
    }
    Ok(Following { start, items })
}

/// A `?` typed at the end of this line is a part of a word: inside quotes, or in a regular expression.
pub fn question_mark_is_literal(root: &'static Step, line: &str) -> bool {
    if split(line).is_err() {
        return true;
    }
    let Ok((tokens, word, _)) = partial(line) else { return false };
    let mut position = Position::start(root);
    if word.is_empty() || tokens.iter().any(|token| position.advance(token).is_err()) {
        return false;
    }
    position.nodes().iter().any(|node| matches!(&node.what, What::Value(Value { kind: Kind::Pattern, .. })))
}

/// Columns of a screen.
const SCREEN: usize = 80;

/// Items as `?` lists them, what they mean wrapped beside them.
pub fn list(items: &[Item]) -> String {
    let width = column(items);
    items.iter().fold(String::new(), |mut text, item| {
        let lines = wrap(&harmless(&item.help), SCREEN.saturating_sub(width + 4).max(20));
        let _ = write!(text, "  {:width$}", harmless(&item.text));
        for (number, line) in lines.iter().enumerate() {
            let _ = match number {
                0 => writeln!(text, "  {line}"),
                _ => writeln!(text, "  {:width$}  {line}", ""),
            };
        }
        text
    })
}

/// Items a row each, what they mean cut off at the edge of a screen of so many columns.
pub fn rows(items: &[Item], columns: usize) -> Vec<String> {
    let width = column(items);
    let row = |item: &Item| {
        let row = format!("  {:width$}  {}", harmless(&item.text), harmless(&item.help));
        match row.char_indices().nth(columns.saturating_sub(1)) {
            Some((end, _)) => format!("{}\u{2026}", row[..end].trim_end()),
            None => row,
        }
    };
    items.iter().map(row).collect()
}

/// Of what is listed; a long one among short ones stands out.
fn column(items: &[Item]) -> usize {
    items.iter().map(|item| harmless(&item.text).chars().count()).max().unwrap_or_default().min(SCREEN / 2)
}
