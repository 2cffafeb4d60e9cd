//! What a command line can be, and how a line is read against it.
//!
//! The table in [`crate::commands`] is a tree of [`Node`]s. Parsing, abbreviations, `?`, Tab, `help`
//! and the errors all walk the same tree, so none of them can disagree with another.

mod following;
mod form;
mod kind;
mod position;

pub use following::{Following, Item, following, list, question_mark_is_literal, rows};
pub use form::{Form, forms};
pub use position::parse;

use std::ops::Range;
use std::sync::Arc;

use api::{LoadMode, Request};
use regex::Regex;
use serde_json::Value as Json;
use tree::Schema;
use tree::line::Verb;

use crate::render::Style;
use crate::token::Token;

/// A word or value, and what can follow it.
#[derive(Debug)]
pub struct Node {
    /// What stands here.
    pub what: What,
    /// What it means, for `?` and `help`.
    pub help: &'static str,
    /// What can follow.
    pub then: Step,
}

/// What can stand at a place.
#[derive(Debug)]
pub enum What {
    /// A keyword; any unambiguous beginning of it will do.
    Word(&'static str),
    /// A value.
    Value(Value),
    /// Words about the configuration, up to a bar or the end; the schema says which.
    Tree(Verb),
}

/// A value.
#[derive(Debug)]
pub struct Value {
    /// Key in [`Args`]; in capitals it stands for the value in help.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
}

/// Types of values.
#[derive(Debug)]
pub enum Kind {
    /// A configured thing's name.
    Name(Source),
    /// A whole number.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// The beginning of such a name; any text.
    Beginning(Source),
    /// An IPv4 or IPv6 address.
    Address,
    /// An IP protocol by number or by one of [`PROTOCOLS`].
    Protocol,
    /// VLAN ids, outermost first, separated by commas.
    Vlans,
    /// One of some words, with what each means.
    Choice(&'static [(&'static str, &'static str)]),
    /// A file on this machine.
    File,
    /// Any text.
    Text,
    /// A regular expression.
    Pattern,
}

/// Which names of the daemon complete a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Ecofilter units.
    Units,
    /// Ports.
    Ports,
    /// Flows.
    Flows,
    /// Liveness profiles in use.
    Profiles,
    /// Links.
    Links,
    /// Pairs of the unit that was given.
    Pairs,
    /// What events of late are about.
    Subjects,
}

/// What can follow a node.
#[derive(Debug)]
pub struct Step {
    /// One of these.
    pub nodes: &'static [Node],
    /// Any of these, each once, in any order.
    pub options: &'static [Opt],
    /// What the end of the line means here.
    pub end: End,
}

/// A keyword with its value, one of a set in any order.
#[derive(Debug)]
pub struct Opt {
    /// The keyword; its value's step ends in [`End::Back`].
    pub node: Node,
    /// The command needs it.
    pub required: bool,
}

/// What the end of the line, or a bar, means.
#[derive(Debug)]
pub enum End {
    /// Something is missing.
    More,
    /// A command.
    Run(Run),
    /// An option's value is complete: back to the set.
    Back,
    /// A command of another table follows.
    Table(&'static Step),
    /// A filter.
    Filter(fn(&Args) -> Filter),
}

/// What a command does.
#[derive(Debug)]
pub enum Run {
    /// Asks sluiced and shows the answer.
    Ask {
        /// What it asks.
        request: fn(&Args) -> Request,
        /// Turns the answer into text.
        render: fn(Json, &Args, Style) -> serde_json::Result<String>,
    },
    /// Reads a file and asks sluiced to run it.
    LoadReplace,
    /// Shows a configuration, or a part of it.
    ShowTree(fn(&Args) -> api::Source),
    /// Something about the candidate, or where one is in it.
    Configure(Action),
    /// Round trips to sluiced and its data plane.
    Ping,
    /// Keep-alives of a pair as they come back.
    PingPair,
    /// New events as they come.
    MonitorEvents,
    /// The balancer as it is, on the whole screen.
    MonitorBalancer,
    /// Says what the words after it mean; they are those of the same table.
    Help,
    /// Ends the session.
    Exit,
}

/// What is done in configuration mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begins it, at a level.
    Enter,
    /// To another level.
    Edit,
    /// One level up or more.
    Up,
    /// To the top.
    Top,
    /// What is at a level.
    Dir,
    /// Sets or deletes.
    Change,
    /// A text into the candidate.
    Load(LoadMode),
    /// Puts the candidate in force.
    Apply,
    /// Running to startup, or the candidate to a file.
    Save,
    /// Out of the level, at the top out of configuration mode.
    Exit,
    /// Out of configuration mode.
    Quit,
}

/// One stage of a pipe.
#[derive(Clone, Debug)]
pub enum Filter {
    /// Lines that match.
    Match(Regex),
    /// Lines that do not.
    Except(Regex),
    /// The number of lines.
    Count,
    /// The answer as JSON.
    Json,
    /// A configuration as XML.
    Xml,
    /// A configuration as set lines.
    Set,
    /// A configuration with what is in force without being set.
    Defaults,
    /// No pager.
    NoMore,
}

/// A value that was read.
#[derive(Clone, Debug)]
pub enum Argument {
    /// Names, addresses, files, choices.
    Text(String),
    /// A number.
    Number(u64),
    /// VLAN ids.
    Numbers(Vec<u16>),
    /// A regular expression.
    Pattern(Regex),
}

/// The values of a command by their names.
#[derive(Clone, Debug, Default)]
pub struct Args(Vec<(&'static str, Argument)>);

impl Args {
    fn get(&self, name: &str) -> Option<&Argument> {
        self.0.iter().rev().find(|(key, _)| *key == name).map(|(_, argument)| argument)
    }

    /// A name, address, file or choice.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Argument::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// A number, where it was given and fits.
    pub fn number<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        match self.get(name)? {
            Argument::Number(number) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    /// VLAN ids; empty where none were given.
    pub fn numbers(&self, name: &str) -> Vec<u16> {
        match self.get(name) {
            Some(Argument::Numbers(numbers)) => numbers.clone(),
            _ => Vec::new(),
        }
    }

    /// A regular expression.
    pub fn pattern(&self, name: &str) -> Option<Regex> {
        match self.get(name)? {
            Argument::Pattern(regex) => Some(regex.clone()),
            _ => None,
        }
    }
}

/// A command that was read.
#[derive(Debug)]
pub struct Command {
    /// What it does.
    pub run: &'static Run,
    /// Its values.
    pub args: Args,
    /// Its filters, in order.
    pub filters: Vec<Filter>,
    /// The words after `help`.
    pub topic: Vec<&'static Node>,
    /// Its words about the configuration.
    pub tree: Option<TreeWords>,
}

/// Words about the configuration, not yet read against the schema.
#[derive(Clone, Debug)]
pub struct TreeWords {
    /// What they are for.
    pub verb: Verb,
    /// They begin at the top, whatever the level.
    pub from_top: bool,
    /// The words.
    pub tokens: Vec<Token>,
}

/// What is wrong with a line, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Bytes of the line that are wrong; empty at the end where something is missing.
    pub at: Range<usize>,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl Fault {
    /// A fault at some bytes of the line.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Fault { at, message: message.into() }
    }

    /// The line as it can be shown above the carets: every character stays where it is, but does nothing
    /// to a terminal.
    pub fn shown(line: &str) -> String {
        let shown = |c: char| match c {
            '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        line.chars().map(shown).collect()
    }

    /// Blanks, then carets under the words that are wrong; `indent` columns stand before the line.
    pub fn caret(&self, line: &str, indent: usize) -> String {
        let width = |range: Range<usize>| line.get(range).unwrap_or_default().chars().count();
        // What is missing is missing after the end of the line.
        let beyond = self.at.start.saturating_sub(line.len());
        let before = indent + width(0..self.at.start.min(line.len())) + beyond;
        format!("{}{}", " ".repeat(before), "^".repeat(width(self.at.clone()).max(1)))
    }
}

/// What completes a line.
pub trait Names {
    /// Names of that kind now, beside the values given already; empty where they cannot be had.
    fn names(&self, source: Source, args: &Args) -> Vec<String>;

    /// What can be configured; `None` where it cannot be had.
    fn schema(&self) -> Option<Arc<Schema>> {
        None
    }

    /// The words that lead to where in the configuration one is.
    fn level(&self) -> Vec<String> {
        Vec::new()
    }

    /// Keys of the list at these words from the top that begin with a text.
    fn keys(&self, _list: &[String], _prefix: &str) -> Vec<String> {
        Vec::new()
    }

    /// Values of the leaf-list at these words from the top that begin with a text.
    fn values(&self, _leaf: &[String], _prefix: &str) -> Vec<String> {
        Vec::new()
    }
}

/// No names at all.
impl Names for () {
    fn names(&self, _: Source, _: &Args) -> Vec<String> {
        Vec::new()
    }
}

impl Node {
    /// As it is written in a description of the command: the keyword, or the value's name in capitals.
    pub fn title(&self) -> String {
        match &self.what {
            What::Word(word) => String::from(*word),
            What::Value(Value { kind: Kind::Choice(choices), .. }) => {
                choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|")
            }
            What::Value(value) => value.name.to_uppercase(),
            What::Tree(_) => "PATH".into(),
        }
    }
}

impl End {
    /// A configuration that has no level where one could be.
    fn is_from_top(&self) -> bool {
        matches!(self, End::Run(Run::ShowTree(source)) if source(&Args::default()) != api::Source::Candidate)
    }
}

impl Filter {
    /// It works on lines of text, not on what they are made of.
    pub(crate) fn is_textual(&self) -> bool {
        matches!(self, Filter::Match(_) | Filter::Except(_) | Filter::Count)
    }
}

impl Run {
    /// Its output can be filtered.
    fn filters(&self) -> bool {
        match self {
            Run::Exit => false,
            Run::Configure(action) => {
                matches!(action, Action::Dir | Action::Apply | Action::Load(_))
            }
            _ => true,
        }
    }

    /// The filter means something for its output.
    fn takes(&self, filter: &str) -> bool {
        let tree = matches!(self, Run::ShowTree(_));
        match filter {
            "json" => !matches!(self, Run::Help | Run::Ping | Run::PingPair),
            "xml" | "set" | "defaults" => tree,
            _ => true,
        }
    }
}
