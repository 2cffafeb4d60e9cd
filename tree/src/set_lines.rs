//! A configuration as lines of `set`.

use std::fmt::Write as _;

use crate::data::{Data, Fields, Tree};
use crate::edit::EditFault;
use crate::line::{self, WordFault};
use crate::path::Path;
use crate::schema::NodeId;
use crate::words::{Line, Lines, quote};

/// A line that cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LineFault {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub message: String,
    /// The word, where one is to blame; counted with the `set`, from 0.
    pub word: Option<usize>,
    /// What could stand there.
    pub expected: Vec<String>,
}

/// Does lines of `set` and `del` (or `delete`), one after the other, all from the top; empty ones and those that
/// begin with `#` are nothing. How many there were.
///
/// # Errors
/// The first line that cannot be done; nothing is changed then.
pub fn read(tree: &mut Tree, text: &str) -> Result<usize, LineFault> {
    let mut changed = tree.clone();
    let mut count = 0;
    for line in Lines::new(text) {
        let line = line.map_err(|open| LineFault {
            line: open.line,
            message: "this quote has no end; expected a closing \"".into(),
            word: None,
            expected: Vec::new(),
        })?;
        apply(&mut changed, &line)?;
        count += 1;
    }
    *tree = changed;
    Ok(count)
}

fn apply(tree: &mut Tree, line: &Line) -> Result<(), LineFault> {
    let schema = std::sync::Arc::clone(tree.schema());
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let top = Path::default();
    let edits = match words.split_first() {
        Some((&"set", words)) => line::set(&schema, &top, words),
        Some((&("del" | "delete"), words)) => line::del(&schema, &top, words),
        _ => {
            return Err(LineFault {
                line: line.number,
                message: "must begin with set or del".into(),
                word: Some(0),
                expected: vec!["set".into(), "del".into()],
            });
        }
    };
    let fault = |fault: WordFault| LineFault {
        line: line.number,
        message: fault.to_string(),
        word: Some(fault.word + 1),
        expected: fault.expected,
    };
    for edit in edits.map_err(fault)? {
        tree.apply(&edit).map_err(|fault: EditFault| LineFault {
            line: line.number,
            message: fault.to_string(),
            word: None,
            expected: Vec::new(),
        })?;
    }
    Ok(())
}

/// The `set` lines, from the top, of what stands at a path; a leaf, or a leaf-list, in each. Read into an empty tree
/// they make the same again.
#[must_use]
pub fn write(tree: &Tree, at: &Path) -> String {
    let mut text = String::new();
    Writer::lines(tree, at, &mut |line| {
        text.push_str("set ");
        text.push_str(line);
        text.push('\n');
    });
    text
}

/// Writes lines, each of which begins with the words of where it is.
pub(crate) struct Writer<'a, F: FnMut(&str)> {
    tree: &'a Tree,
    line: String,
    each: &'a mut F,
}

impl<F: FnMut(&str)> Writer<'_, F> {
    /// The lines of what stands at a path, without `set`.
    pub(crate) fn lines(tree: &Tree, at: &Path, each: &mut F) {
        let Some(data) = tree.get(at) else { return };
        let mut writer = Writer { tree, line: String::new(), each };
        match (data, at.node(), at.parent()) {
            (Data::Leaf(_) | Data::Values(_) | Data::Entries(_), Some(node), Some(above)) => {
                writer.line = above.words(tree.schema());
                let value =
                    matches!(data, Data::Leaf(_)) && at.0.last().is_some_and(|step| !step.keys.is_empty());
                if value {
                    writer.line = at.words(tree.schema());
                    (writer.each)(&writer.line);
                } else {
                    writer.node(node, data);
                }
            }
            _ => {
                writer.line = at.words(tree.schema());
                writer.fields(at.node(), data);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if !self.line.is_empty() {
            self.line.push(' ');
        }
        self.line.push_str(&quote(word));
    }

    /// What is in a container or entry, which itself is written where it holds nothing else.
    fn fields(&mut self, node: Option<NodeId>, data: Data<'_>) {
        let Data::Fields(fields) = data else { return };
        let keys = node.map_or(&[][..], |node| self.tree.schema.node(node).keys());
        let mut any = false;
        for (id, data) in fields.iter().filter(|(id, _)| !keys.contains(id)) {
            any = true;
            self.node(id, data);
        }
        if !any && node.is_some() {
            (self.each)(&self.line);
        }
    }

    /// A node in what the line leads to.
    fn node(&mut self, id: NodeId, data: Data<'_>) {
        let length = self.line.len();
        self.word(&self.tree.schema.node(id).name.clone());
        match data {
            Data::Leaf("") if self.is_empty_leaf(id) => (self.each)(&self.line),
            Data::Leaf(value) => {
                self.word(value);
                (self.each)(&self.line);
            }
            Data::Values(values) => self.values(values.iter()),
            Data::Fields(_) => self.fields(Some(id), data),
            Data::Entries(entries) => {
                for (keys, fields) in entries.iter() {
                    self.entry(id, keys, fields);
                }
            }
        }
        self.line.truncate(length);
    }

    /// An entry of the list that the line leads to.
    fn entry(&mut self, list: NodeId, keys: &[Box<str>], fields: &Fields) {
        let length = self.line.len();
        for key in keys {
            self.word(key);
        }
        self.fields(Some(list), Data::Fields(fields));
        self.line.truncate(length);
    }

    /// Values in brackets; what would be taken for one goes on a line of its own.
    fn values<'v>(&mut self, values: impl Iterator<Item = &'v str>) {
        let mut together: Vec<&str> = Vec::new();
        for value in values {
            if matches!(value, "[" | "]") {
                self.together(&together);
                together.clear();
                self.together(&[value]);
            } else {
                together.push(value);
            }
        }
        self.together(&together);
    }

    fn together(&mut self, values: &[&str]) {
        let length = self.line.len();
        match values {
            [] => return,
            [only] => self.word(only),
            several => {
                self.line.push_str(" [");
                for value in several {
                    self.line.push(' ');
                    let _ = write!(self.line, "{}", quote(value));
                }
                self.line.push_str(" ]");
            }
        }
        (self.each)(&self.line);
        self.line.truncate(length);
    }

    fn is_empty_leaf(&self, id: NodeId) -> bool {
        self.tree.schema.node(id).ty() == Some(&crate::schema::Type::Empty)
    }
}
