//! Words about the configuration, read against the schema.

use std::fmt::Write as _;

use tree::line::{self, Candidate, CandidateKind, Verb, WordFault};
use tree::words::quote;
use tree::{Edit, Kind, NodeId, Path, Schema};

use crate::grammar::{Fault, Item, Names, TreeWords, list};
use crate::help::wrap;
use crate::token::Token;

/// The place that the words of a level lead to.
///
/// # Errors
/// This schema has no such level: sluiced is another than when one went there.
pub fn place(schema: &Schema, level: &[String]) -> Result<Path, Fault> {
    if level.is_empty() {
        return Ok(Path::default());
    }
    let words: Vec<&str> = level.iter().map(String::as_str).collect();
    line::edit(schema, &Path::default(), &words).map_err(|_| {
        let level = level.join(" ");
        Fault::new(0..0, format!("this sluiced knows no level {level}; \"top\" leads out of it"))
    })
}

/// Where words lead from a level.
///
/// # Errors
/// The first word that cannot stand where it stands, or that one is missing.
pub fn place_of(schema: &Schema, level: &[String], words: &TreeWords) -> Result<Path, Fault> {
    let level = if words.from_top { Path::default() } else { place(schema, level)? };
    let texts = texts(&words.tokens);
    let place = match words.verb {
        Verb::Edit => line::edit(schema, &level, &texts),
        Verb::Set | Verb::Del | Verb::Show => line::show(schema, &level, &texts),
    };
    place.map_err(|fault| at_word(&fault, &words.tokens, None))
}

/// The lines of `set` and `del`, from the top and in full, that words mean at a level.
///
/// # Errors
/// The first word that cannot stand where it stands, or that one is missing.
pub fn changes(schema: &Schema, level: &[String], words: &TreeWords) -> Result<Vec<String>, Fault> {
    let level = place(schema, level)?;
    let texts = texts(&words.tokens);
    let edits = match words.verb {
        Verb::Del => line::del(schema, &level, &texts),
        Verb::Set | Verb::Show | Verb::Edit => line::set(schema, &level, &texts),
    };
    let edits = edits.map_err(|fault| at_word(&fault, &words.tokens, None))?;
    Ok(edits.iter().filter_map(|edit| in_full(schema, edit)).collect())
}

/// An edit as a line; a `set` and a `del` are never about the order of entries.
fn in_full(schema: &Schema, edit: &Edit) -> Option<String> {
    match edit {
        Edit::Set(path, None) => Some(format!("set {}", path.words(schema))),
        Edit::Set(path, Some(value)) => Some(format!("set {} {}", path.words(schema), quote(value))),
        Edit::Delete(path) => Some(format!("del {}", path.words(schema))),
        Edit::Place(..) => None,
    }
}

fn texts(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|token| token.text.as_str()).collect()
}

/// The fault with the place of its word in the line. What is missing is missing at the end of the words.
fn at_word(fault: &WordFault, tokens: &[Token], end: Option<usize>) -> Fault {
    let at = match tokens.get(fault.word) {
        Some(token) => token.start..token.end,
        None => {
            let end = end.or(tokens.last().map(|token| token.end + 1)).unwrap_or_default();
            end..end
        }
    };
    // Not twice what it must be.
    match &fault.expected[..] {
        [one] if fault.message.contains(one.as_str()) => Fault::new(at, fault.message.clone()),
        _ => Fault::new(at, fault.to_string()),
    }
}

/// What can follow some words.
#[derive(Debug, Default)]
pub struct Found {
    /// What the next word can become.
    pub items: Vec<Item>,
    /// The words can end here.
    pub complete: bool,
}

/// What can follow words, all of which are complete, where the next begins with a text. `end` is where the line
/// ends.
///
/// # Errors
/// The first word that cannot stand where it stands.
pub fn following(words: &TreeWords, end: usize, partial: &str, names: &dyn Names) -> Result<Found, Fault> {
    let Some(schema) = names.schema() else { return Ok(Found::default()) };
    let level = if words.from_top { Path::default() } else { place(&schema, &names.level())? };
    let candidates = line::following(&schema, &level, &texts(&words.tokens), words.verb)
        .map_err(|fault| at_word(&fault, &words.tokens, Some(end)))?;
    let mut found = Found::default();
    let mut open = Vec::new();
    for candidate in candidates {
        if candidate.kind == CandidateKind::End {
            found.complete = true;
        } else if candidate.literal {
            if candidate.text.starts_with(partial) {
                let help = help_of(&schema, &candidate);
                found.items.push(Item { text: candidate.text, help, literal: true });
            }
        } else {
            let help = help_of(&schema, &candidate);
            let known = known(&schema, &candidate.kind, partial, names);
            open.extend(known.into_iter().map(|text| Item { text, help: help.clone(), literal: true }));
            // What stands for any value is listed before the values that are there.
            let any = Item { text: candidate.text, help, literal: false };
            if !found.items.iter().any(|item| item.text == any.text) {
                found.items.push(any);
            }
        }
    }
    for item in open {
        if !found.items.iter().any(|known| known.literal && known.text == item.text) {
            found.items.push(item);
        }
    }
    Ok(found)
}

/// What the words of a `help` lead to, as far as they lead anywhere, with all that the schema says of it.
///
/// # Errors
/// The first word leads nowhere.
pub fn explained(schema: &Schema, level: &[String], words: &TreeWords) -> Result<String, Fault> {
    let level = if words.from_top { Path::default() } else { place(schema, level)? };
    let all = texts(&words.tokens);
    let found = (1..=all.len()).rev().find_map(|count| line::show(schema, &level, &all[..count]).ok());
    let Some(place) = found else {
        let fault = line::show(schema, &level, &all).err();
        return Err(fault.map_or_else(|| Fault::new(0..0, ""), |fault| at_word(&fault, &words.tokens, None)));
    };
    let mut text = String::new();
    let Some(node) = place.node().map(|node| schema.node(node)) else { return Ok(text) };
    let _ = writeln!(text, "{}", place.words(schema));
    let mut say = |said: &str| {
        for line in said.lines().flat_map(|line| wrap(line, 76)) {
            let _ = writeln!(text, "    {line}");
        }
    };
    say(&node.description);
    match &node.kind {
        Kind::Leaf { ty, units, default, mandatory } => {
            let units = units.iter().map(|units| format!(", {units}")).collect::<String>();
            say(&format!("Takes {}{units}.", ty.expected()));
            match default {
                Some(default) => say(&format!("{default} if not set.")),
                None if *mandatory => say("Must be set."),
                None => {}
            }
        }
        Kind::LeafList { ty, .. } => say(&format!("Takes one or more, each {}.", ty.expected())),
        _ => {}
    }
    let rules: Vec<&String> = node.musts.iter().filter_map(|must| must.message.as_ref()).collect();
    if !rules.is_empty() {
        say("Refused where:");
        rules.into_iter().for_each(|rule| say(&format!("- {rule}")));
    }
    let below: Vec<Item> = schema
        .below(Some(node.id))
        .filter(|below| below.config && !node.keys().contains(&below.id))
        .map(|below| Item {
            text: below.name.clone(),
            help: first_sentence(&below.description),
            literal: true,
        })
        .collect();
    if !below.is_empty() {
        let _ = write!(text, "\n{}", list(&below));
    }
    Ok(text)
}

/// What a candidate means, in one sentence; of a value also what it must be and what is in force without one.
fn help_of(schema: &Schema, candidate: &Candidate) -> String {
    let CandidateKind::Value(node) = candidate.kind else { return first_sentence(&candidate.help) };
    let node = schema.node(node);
    // The range stands beside it already.
    let range = candidate.text.trim_matches(['<', '>']);
    let must = candidate.help.strip_prefix(range).map_or(candidate.help.as_str(), |rest| rest);
    let mut parts = vec![first_sentence(&node.description), first_sentence(must.trim_start_matches(", "))];
    if let Kind::Leaf { default: Some(default), .. } = &node.kind {
        parts.push(format!("{default} if not set"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// Up to the first full stop.
fn first_sentence(text: &str) -> String {
    let end = [". ", ".\n", "\n"].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].trim_end_matches('.').into()
}

/// Values that are there.
fn known(schema: &Schema, kind: &CandidateKind, partial: &str, names: &dyn Names) -> Vec<String> {
    let (list, given) = match kind {
        CandidateKind::Key { list, given } => (list.clone(), given.as_slice()),
        CandidateKind::Reference { leaf } => match (leaf.node(), leaf.parent()) {
            (Some(node), Some(above)) if is_only_key(schema, &above, node) => (whole(&above), &[][..]),
            _ => return names.values(&leaf.to_words(schema), partial),
        },
        CandidateKind::Keyword(_) | CandidateKind::Word | CandidateKind::Value(_) | CandidateKind::End => {
            return Vec::new();
        }
    };
    let mut words = list.to_words(schema);
    words.extend(given.iter().map(|key| key.to_string()));
    names.keys(&words, partial)
}

/// A list's only key.
fn is_only_key(schema: &Schema, list: &Path, key: NodeId) -> bool {
    list.node().is_some_and(|list| schema.node(list).keys() == [key])
}

/// The list of an entry.
fn whole(entry: &Path) -> Path {
    match (entry.parent(), entry.node()) {
        (Some(above), Some(list)) => above.child(list),
        _ => Path::default(),
    }
}
