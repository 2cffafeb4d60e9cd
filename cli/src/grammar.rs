//! What a command line can be, and how a line is read against it.
//!
//! The table in [`crate::commands`] is a tree of [`Node`]s. Parsing, abbreviations, `?`, Tab, `help`
//! and the errors all walk the same tree, so none of them can disagree with another.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::Range;

use api::Request;
use regex::Regex;
use serde_json::Value as Json;

use crate::commands::{FILTERS, PROTOCOLS, ROOT};
use crate::render::{Style, brief};
use crate::token::{Token, split};

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
    Load,
    /// New events as they come.
    MonitorEvents,
    /// The balancer's screen once a second.
    MonitorBalancer,
    /// Says what the words after it mean.
    Help,
    /// Ends the session.
    Exit,
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

/// Where names come from that complete a value.
pub trait Names {
    /// Names of that kind now; empty where they cannot be had.
    fn names(&self, source: Source) -> Vec<String>;
}

/// No names at all.
impl Names for () {
    fn names(&self, _: Source) -> Vec<String> {
        Vec::new()
    }
}

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

impl Kind {
    /// Reads a value.
    ///
    /// # Errors
    /// Says what the value is not.
    pub fn read(&self, text: &str) -> Result<Argument, String> {
        let said = brief(text);
        let number = |min: u64, max: u64| match text.parse::<u64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(format!("\"{said}\" is not a number from {min} to {max}")),
        };
        match self {
            Kind::Name(_) => {
                let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                if (1..=63).contains(&text.len()) && text.chars().all(valid) {
                    Ok(Argument::Text(text.into()))
                } else {
                    Err(format!("\"{said}\" is not a name; a name is 1 to 63 letters, digits, - _ ."))
                }
            }
            Kind::Number { min, max } => number(*min, *max).map(Argument::Number),
            Kind::Address => match text.parse::<IpAddr>() {
                Ok(address) => Ok(Argument::Text(address.to_string())),
                Err(_) => Err(format!("\"{said}\" is not an IPv4 or IPv6 address")),
            },
            Kind::Protocol => match PROTOCOLS.iter().find(|(name, ..)| *name == text) {
                Some((_, number, _)) => Ok(Argument::Number(u64::from(*number))),
                None => number(0, 255).map(Argument::Number).map_err(|_| {
                    format!("\"{said}\" is not a protocol; expected 0 to 255 or a name such as tcp")
                }),
            },
            Kind::Vlans => text
                .split(',')
                .map(|id| id.parse().ok().filter(|id| *id < 4096))
                .collect::<Option<Vec<u16>>>()
                .map(Argument::Numbers)
                .ok_or_else(|| {
                    format!("\"{said}\" is not a list of VLAN ids; expected 0 to 4095, separated by commas")
                }),
            Kind::Choice(choices) => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                match resolve(text, &words) {
                    Found::One(index) => Ok(Argument::Text(words[index].into())),
                    Found::Many(some) => Err(format!("\"{said}\" is ambiguous: {}", some.join(", "))),
                    Found::None => Err(format!("\"{said}\" is not one of: {}", words.join(", "))),
                }
            }
            Kind::File if text.is_empty() => Err("a file needs a name".into()),
            Kind::File => Ok(Argument::Text(text.into())),
            Kind::Pattern => Regex::new(text).map(Argument::Pattern).map_err(|error| {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim();
                format!("\"{said}\" is not a regular expression: {}", reason.trim_start_matches("error: "))
            }),
        }
    }

    /// What the value can be now, with what each means where that differs.
    fn candidates(&self, partial: &str, names: &dyn Names) -> Vec<(String, Option<String>)> {
        match self {
            Kind::Name(source) => names.names(*source).into_iter().map(|name| (name, None)).collect(),
            Kind::Protocol => PROTOCOLS
                .iter()
                .map(|(name, number, help)| (String::from(*name), Some(format!("{help}, {number}"))))
                .collect(),
            Kind::Choice(choices) => {
                choices.iter().map(|(word, help)| (String::from(*word), Some(String::from(*help)))).collect()
            }
            Kind::File => files(partial).into_iter().map(|file| (file, None)).collect(),
            Kind::Number { .. } | Kind::Address | Kind::Vlans | Kind::Pattern => Vec::new(),
        }
    }

    /// All values are listed: no placeholder is needed.
    fn closed(&self) -> bool {
        matches!(self, Kind::Choice(_))
    }
}

/// Files and directories that begin with what was typed.
fn files(partial: &str) -> Vec<String> {
    let (directory, _) = partial.rfind('/').map_or(("", partial), |at| partial.split_at(at + 1));
    let Ok(entries) = std::fs::read_dir(if directory.is_empty() { "." } else { directory }) else {
        return Vec::new();
    };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{directory}{}{slash}", entry.file_name().to_str()?))
        })
        .collect();
    files.sort();
    files
}

enum Found {
    One(usize),
    Many(Vec<&'static str>),
    None,
}

/// The word that `text` is, or is the only beginning of.
fn resolve(text: &str, words: &[&'static str]) -> Found {
    if let Some(index) = words.iter().position(|word| *word == text) {
        return Found::One(index);
    }
    let begin: Vec<usize> =
        (0..words.len()).filter(|index| !text.is_empty() && words[*index].starts_with(text)).collect();
    match begin[..] {
        [] => Found::None,
        [index] => Found::One(index),
        _ => Found::Many(begin.iter().map(|index| words[*index]).collect()),
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
        }
    }
}

impl Run {
    /// Its output can be filtered.
    fn filters(&self) -> bool {
        !matches!(self, Run::MonitorBalancer | Run::Exit)
    }
}

/// How far a line has been read.
#[derive(Debug)]
struct Position {
    step: &'static Step,
    /// The set of options being filled, and which were given.
    set: Option<(&'static Step, Vec<bool>)>,
    /// After `help` every place is an end.
    help: Option<&'static Run>,
    run: Option<&'static Run>,
    path: Vec<&'static Node>,
    /// Option whose value comes next.
    option: Option<&'static str>,
    args: Args,
    filters: Vec<Filter>,
}

impl Position {
    fn start() -> Self {
        Position {
            step: &ROOT,
            set: None,
            help: None,
            run: None,
            path: Vec::new(),
            option: None,
            args: Args::default(),
            filters: Vec::new(),
        }
    }

    /// What can stand here.
    fn nodes(&self) -> Vec<&'static Node> {
        let used = |index: usize| {
            self.set.as_ref().is_some_and(|(step, used)| std::ptr::eq(*step, self.step) && used[index])
        };
        let options = self.step.options.iter().enumerate().filter(|(index, _)| !used(*index));
        let nodes = self.step.nodes.iter().chain(options.map(|(_, option)| &option.node));
        // Only what sluiced answers can be had as JSON.
        let text_only = matches!(self.run, Some(Run::Help));
        nodes.filter(|node| !(text_only && matches!(node.what, What::Word("json")))).collect()
    }

    /// Options that the command needs and were not given.
    fn missing(&self) -> Vec<&'static Node> {
        let used = |index: usize| self.set.as_ref().is_some_and(|(_, used)| used[index]);
        let options = self.step.options.iter().enumerate();
        options.filter(|(index, o)| o.required && !used(*index)).map(|(_, o)| &o.node).collect()
    }

    /// The command that would run if the line ended here.
    fn command(&self) -> Option<&'static Run> {
        match &self.step.end {
            End::Filter(_) => self.run,
            _ if self.help.is_some() => self.help,
            End::Run(run) if self.missing().is_empty() => Some(run),
            End::Run(_) | End::More | End::Back => None,
        }
    }

    fn expected(&self) -> String {
        let mut words: Vec<String> = match self.missing()[..] {
            [] => self.nodes().iter().map(|node| node.title()).collect(),
            ref missing => missing.iter().map(|node| node.title()).collect(),
        };
        if let Some(run) = self.command() {
            words.push("Enter".into());
            if run.filters() {
                words.push("|".into());
            }
        }
        match &words[..] {
            [word] => format!("expected {word}"),
            words => format!("expected one of: {}", words.join(", ")),
        }
    }

    fn advance(&mut self, token: &Token) -> Result<(), Fault> {
        let at = token.start..token.end;
        let text = &token.text;
        let said = brief(text);
        if token.bar {
            return self.bar(at);
        }
        let nodes = self.nodes();
        let again = self.step.options.iter().map(|option| &option.node).find(|node| node.title() == *text);
        if again.is_some_and(|again| !nodes.iter().any(|node| std::ptr::eq(*node, again))) {
            return Err(Fault::new(at, format!("\"{said}\" is given twice; {}", self.expected())));
        }
        let words: Vec<(&'static Node, &'static str)> = nodes
            .iter()
            .filter_map(|node| match node.what {
                What::Word(word) if !token.quoted => Some((*node, word)),
                _ => None,
            })
            .collect();
        match resolve(text, &words.iter().map(|(_, word)| *word).collect::<Vec<_>>()) {
            Found::One(index) => {
                self.take(words[index].0);
                return Ok(());
            }
            Found::Many(some) => {
                return Err(Fault::new(at, format!("\"{said}\" is ambiguous: {}", some.join(", "))));
            }
            Found::None => {}
        }
        let value = nodes.iter().find_map(|node| match &node.what {
            What::Value(value) => Some((*node, value)),
            What::Word(_) => None,
        });
        if let Some((node, value)) = value {
            let argument = value.kind.read(text).map_err(|reason| Fault::new(at, reason))?;
            self.args.0.push((self.option.take().unwrap_or(value.name), argument));
            self.take(node);
            return Ok(());
        }
        let what = if nodes.is_empty() { "one word too many" } else { "unknown here" };
        Err(Fault::new(at, format!("\"{said}\" is {what}; {}", self.expected())))
    }

    /// A bar: the command before it is complete.
    fn bar(&mut self, at: Range<usize>) -> Result<(), Fault> {
        let Some(run) = self.command() else {
            return Err(Fault::new(at, format!("the command before | is not complete; {}", self.expected())));
        };
        if !run.filters() {
            return Err(Fault::new(at, "this command has no output to filter; expected Enter"));
        }
        self.run = Some(run);
        self.step = &FILTERS;
        self.set = None;
        Ok(())
    }

    fn take(&mut self, node: &'static Node) {
        let option = self.step.options.iter().position(|option| std::ptr::eq(&raw const option.node, node));
        if let (Some(index), What::Word(word)) = (option, &node.what) {
            self.option = Some(word);
            let step = self.step;
            let (_, used) = self.set.get_or_insert_with(|| (step, vec![false; step.options.len()]));
            used[index] = true;
        }
        self.step = &node.then;
        match &node.then.end {
            End::Back => {
                if let Some((step, _)) = &self.set {
                    self.step = step;
                }
            }
            End::Filter(filter) => self.filters.push(filter(&self.args)),
            End::Run(run @ Run::Help) => self.help = Some(run),
            End::Run(_) | End::More => {}
        }
        if self.run.is_none() && !matches!(node.then.end, End::Run(Run::Help)) {
            self.path.push(node);
        }
    }
}

/// Reads a line. `None` for an empty one.
///
/// # Errors
/// The first word that cannot stand where it stands, or what is missing at the end.
pub fn parse(line: &str) -> Result<Option<Command>, Fault> {
    let tokens = split(line)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut position = Position::start();
    for token in &tokens {
        let filters = position.filters.len();
        position.advance(token)?;
        let text_before = position.filters[..filters].iter().any(|f| !matches!(f, Filter::NoMore));
        if text_before && matches!(position.filters[filters..], [Filter::Json]) {
            return Err(Fault::new(token.start..token.end, "json must come before match, except and count"));
        }
    }
    let end = line.trim_end().len();
    let Some(run) = position.command() else {
        return Err(Fault::new(
            end + 1..end + 1,
            format!("the command is not complete; {}", position.expected()),
        ));
    };
    let topic = if position.help.is_some() { position.path } else { Vec::new() };
    Ok(Some(Command { run, args: position.args, filters: position.filters, topic }))
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
pub fn following(line: &str, names: &dyn Names) -> Result<Following, Fault> {
    let (tokens, word, start) = partial(line)?;
    let mut position = Position::start();
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
            What::Word(_) => {}
            What::Value(value) => {
                let values = value.kind.candidates(&word, names).into_iter();
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
    if word.is_empty()
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
pub fn question_mark_is_literal(line: &str) -> bool {
    if split(line).is_err() {
        return true;
    }
    let Ok((tokens, word, _)) = partial(line) else { return false };
    let mut position = Position::start();
    if word.is_empty() || tokens.iter().any(|token| position.advance(token).is_err()) {
        return false;
    }
    position.nodes().iter().any(|node| matches!(&node.what, What::Value(Value { kind: Kind::Pattern, .. })))
}

/// Items as `?` lists them.
pub fn list(items: &[Item]) -> String {
    let width = items.iter().map(|item| item.text.chars().count()).max().unwrap_or_default();
    items.iter().fold(String::new(), |mut text, item| {
        let _ = writeln!(text, "  {:width$}  {}", item.text, item.help);
        text
    })
}

/// A command of the table in full.
#[derive(Clone, Debug)]
pub struct Form {
    /// From the first keyword on.
    pub nodes: Vec<&'static Node>,
    /// Options that it takes.
    pub options: &'static [Opt],
}

impl Form {
    /// As it is written in help.
    pub fn usage(&self) -> String {
        let mut words: Vec<String> = self.nodes.iter().map(|node| node.title()).collect();
        for option in self.options {
            let value = option.node.then.nodes.iter().map(Node::title).collect::<String>();
            let word = format!("{} {value}", option.node.title());
            words.push(if option.required { word } else { format!("[{word}]") });
        }
        words.join(" ")
    }

    /// What the last keyword says of it.
    pub fn help(&self) -> &'static str {
        let word = self.nodes.iter().rev().find(|node| matches!(node.what, What::Word(_)));
        word.or(self.nodes.last()).map_or("", |node| node.help)
    }
}

/// All commands that begin with these nodes; `then` is what follows the last.
pub fn forms(path: &[&'static Node], then: &'static Step) -> Vec<Form> {
    let mut forms = Vec::new();
    if matches!(then.end, End::Run(_) | End::Filter(_)) {
        forms.push(Form { nodes: path.to_vec(), options: then.options });
    }
    if !matches!(then.end, End::Run(Run::Help)) {
        for node in then.nodes {
            let path: Vec<_> = path.iter().copied().chain([node]).collect();
            forms.extend(self::forms(&path, &node.then));
        }
    }
    forms
}
