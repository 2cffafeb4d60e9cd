//! Commands in full, for help and the reference.

use super::{End, Node, Opt, Run, Step, What};

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
        match self.nodes.last().map(|node| &node.then.end) {
            Some(End::Table(_)) => words.push("COMMAND".into()),
            Some(End::Run(Run::Help)) => words.push("[COMMAND]".into()),
            _ => {}
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
    if matches!(then.end, End::Run(_) | End::Filter(_) | End::Table(_)) {
        forms.push(Form { nodes: path.to_vec(), options: then.options });
    }
    for node in then.nodes {
        let path: Vec<_> = path.iter().copied().chain([node]).collect();
        forms.extend(self::forms(&path, &node.then));
    }
    forms
}
