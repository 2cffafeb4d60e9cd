//! Reading a line word by word.

use std::ops::Range;

use super::kind::{Found, resolve};
use super::{Args, Command, End, Fault, Filter, Node, Run, Step, TreeWords, What};
use crate::commands::FILTERS;
use crate::render::brief;
use crate::token::{Token, split};

/// How far a line has been read.
#[derive(Debug)]
pub(super) struct Position {
    root: &'static Step,
    step: &'static Step,
    /// The set of options being filled, and which were given.
    set: Option<(&'static Step, Vec<bool>)>,
    /// After `help` every place is an end.
    help: Option<&'static Run>,
    run: Option<&'static Run>,
    path: Vec<&'static Node>,
    /// Option whose value comes next.
    option: Option<&'static str>,
    pub(super) args: Args,
    filters: Vec<Filter>,
    /// The words about the configuration; while they go on, no others can come.
    pub(super) tree: Option<TreeWords>,
    in_tree: bool,
}

impl Position {
    pub(super) fn start(root: &'static Step) -> Self {
        Position {
            root,
            step: root,
            set: None,
            help: None,
            run: None,
            path: Vec::new(),
            option: None,
            args: Args::default(),
            filters: Vec::new(),
            tree: None,
            in_tree: false,
        }
    }

    /// What can stand here.
    pub(super) fn nodes(&self) -> Vec<&'static Node> {
        let used = |index: usize| {
            self.set.as_ref().is_some_and(|(step, used)| std::ptr::eq(*step, self.step) && used[index])
        };
        let options = self.step.options.iter().enumerate().filter(|(index, _)| !used(*index));
        let nodes = self.step.nodes.iter().chain(options.map(|(_, option)| &option.node));
        // Only what sluiced answers can be had as JSON, and only a configuration otherwise.
        let left_out = |node: &Node| match node.what {
            What::Word(word) => self.run.is_some_and(|run| !run.takes(word)),
            What::Value(_) | What::Tree(_) => false,
        };
        // Help on help would say nothing.
        let again = |node: &Node| self.help.is_some() && matches!(node.then.end, End::Run(Run::Help));
        nodes.filter(|node| !left_out(node) && !again(node)).collect()
    }

    /// Options that the command needs and were not given.
    fn missing(&self) -> Vec<&'static Node> {
        let used = |index: usize| self.set.as_ref().is_some_and(|(_, used)| used[index]);
        let options = self.step.options.iter().enumerate();
        options.filter(|(index, o)| o.required && !used(*index)).map(|(_, o)| &o.node).collect()
    }

    /// The command that would run if the line ended here.
    pub(super) fn command(&self) -> Option<&'static Run> {
        match &self.step.end {
            End::Filter(_) => self.run,
            _ if self.help.is_some() => self.help,
            End::Run(run) if self.missing().is_empty() => Some(run),
            End::Run(_) | End::More | End::Back | End::Table(_) => None,
        }
    }

    pub(super) fn expected(&self) -> String {
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

    pub(super) fn advance(&mut self, token: &Token) -> Result<(), Fault> {
        let at = token.start..token.end;
        let text = &token.text;
        let said = brief(text);
        if token.bar {
            return self.bar(at);
        }
        if let Some(tree) = self.tree.as_mut().filter(|_| self.in_tree) {
            tree.tokens.push(token.clone());
            return Ok(());
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
            What::Word(_) | What::Tree(_) => None,
        });
        if let Some((node, value)) = value {
            let argument = value.kind.read(text).map_err(|reason| Fault::new(at, reason))?;
            self.args.0.push((self.option.take().unwrap_or(value.name), argument));
            self.take(node);
            return Ok(());
        }
        if let Some((node, verb)) = self.tree_node() {
            let from_top = node.then.end.is_from_top();
            self.tree = Some(TreeWords { verb, from_top, tokens: vec![token.clone()] });
            self.in_tree = true;
            self.take(node);
            return Ok(());
        }
        let what = if nodes.is_empty() { "one word too many" } else { "unknown here" };
        Err(Fault::new(at, format!("\"{said}\" is {what}; {}", self.expected())))
    }

    /// Words about the configuration can begin here.
    pub(super) fn tree_node(&self) -> Option<(&'static Node, tree::line::Verb)> {
        self.nodes().into_iter().find_map(|node| match node.what {
            What::Tree(verb) => Some((node, verb)),
            What::Word(_) | What::Value(_) => None,
        })
    }

    /// The words about the configuration go on, or can begin, here.
    pub(super) fn tree_words(&self) -> Option<TreeWords> {
        match &self.tree {
            Some(tree) => Some(tree.clone()).filter(|_| self.in_tree),
            None => self.tree_node().map(|(node, verb)| TreeWords {
                verb,
                from_top: node.then.end.is_from_top(),
                tokens: Vec::new(),
            }),
        }
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
        self.in_tree = false;
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
            End::Run(run @ Run::Help) => {
                self.help = Some(run);
                self.step = self.root;
            }
            End::Table(table) => self.step = table,
            End::Run(_) | End::More => {}
        }
        if self.run.is_none() && !matches!(node.then.end, End::Run(Run::Help)) {
            self.path.push(node);
        }
    }
}

/// Reads a line against a table. `None` for an empty one. Words about the configuration are left for
/// [`crate::words`].
///
/// # Errors
/// The first word that cannot stand where it stands, or what is missing at the end.
pub fn parse(root: &'static Step, line: &str) -> Result<Option<Command>, Fault> {
    let tokens = split(line)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut position = Position::start(root);
    for token in &tokens {
        let filters = position.filters.len();
        position.advance(token)?;
        let (before, new) = position.filters.split_at(filters);
        let format = |filter: &Filter| matches!(filter, Filter::Json | Filter::Xml | Filter::Set);
        let late = match new {
            [new] if before.iter().any(Filter::is_textual) => format(new) || matches!(new, Filter::Defaults),
            [new] => format(new) && before.iter().any(format),
            _ => false,
        };
        if late {
            let message = format!("{} must come before match, except and count, and alone", token.text);
            return Err(Fault::new(token.start..token.end, message));
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
    Ok(Some(Command { run, args: position.args, filters: position.filters, topic, tree: position.tree }))
}
