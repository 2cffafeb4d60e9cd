//! A page of the documentation as what it tells to do, and what is seen then.

use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Clone, Debug)]
pub struct Block {
    /// `sluice`, `sh`, `text`, ...
    pub language: String,
    /// The rest of the fence's line.
    pub mark: String,
    /// What is inside.
    pub text: String,
    /// Line of the fence.
    pub line: usize,
    /// The heading above it.
    pub heading: String,
}

/// A page.
#[derive(Debug)]
pub struct Page {
    /// As in messages, such as `docs/cookbook.md`.
    pub name: String,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

impl Page {
    /// Reads a page of the repository.
    pub fn read(name: &str) -> Self {
        let path: PathBuf = crate::support::repository().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        Page { name: name.to_owned(), blocks: blocks(&text) }
    }

    /// Where a block is.
    pub fn place(&self, block: &Block) -> String {
        format!("{}:{} ({})", self.name, block.line, block.heading)
    }

    /// Leaves out blocks of a language, and what they say.
    pub fn without(&mut self, language: &str) {
        let mut said = false;
        self.blocks.retain(|block| {
            said = block.language == language || (said && block.language == "text");
            !said
        });
    }

    /// Leaves out a section.
    pub fn without_section(&mut self, heading: &str) {
        self.blocks.retain(|block| block.heading != heading);
    }

    /// The page up to the end of its first section with blocks.
    pub fn first_section(mut self) -> Self {
        let heading = self.blocks[0].heading.clone();
        self.blocks.retain(|block| block.heading == heading);
        self
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut open, mut heading) = (None::<Block>, String::new());
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(fence)) => {
                let (language, mark) = fence.split_once(' ').unwrap_or((fence, ""));
                open = Some(Block {
                    language: language.to_owned(),
                    mark: mark.to_owned(),
                    text: String::new(),
                    line: index + 1,
                    heading: heading.clone(),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                if let Some(title) = line.strip_prefix('#') {
                    heading = title.trim_start_matches('#').trim().to_owned();
                }
            }
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

impl Block {
    /// The file that a comment in its first line names.
    pub fn file(&self) -> Option<&Path> {
        let first = self.text.lines().next()?;
        let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- ")?.strip_suffix(" -->"))?;
        let is_name = name.contains('.') && !name.contains(char::is_whitespace);
        is_name.then(|| Path::new(name))
    }

    /// It does nothing but look, and can be done again.
    pub fn only_looks(&self) -> bool {
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty());
        match self.language.as_str() {
            "sluice" => lines.all(|line| line.starts_with("show ") || line.starts_with("run show ")),
            "sh" => lines.all(|line| line.starts_with("sluice -c \"show ")),
            _ => false,
        }
    }
}

/// The first line of `expected` that does not occur in `seen`, behind those before it. `...` is anything; how many
/// blanks there are doesn't matter.
pub fn missing<'e>(expected: &'e str, seen: &str) -> Option<&'e str> {
    let seen: Vec<String> = seen.lines().map(squeezed).collect();
    let mut from = 0;
    for line in expected.lines().filter(|line| !line.trim().is_empty() && line.trim() != "...") {
        let pattern = squeezed(line);
        match seen[from..].iter().position(|line| fits(&pattern, line)) {
            Some(at) => from += at + 1,
            None => return Some(line),
        }
    }
    None
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fits(pattern: &str, line: &str) -> bool {
    let parts: Vec<&str> = pattern.split("...").collect();
    let (first, rest) = (parts[0], &parts[1..]);
    let Some(mut line) = line.strip_prefix(first) else { return false };
    let Some((last, middle)) = rest.split_last() else { return line.is_empty() };
    for part in middle {
        match line.find(part) {
            Some(at) => line = &line[at + part.len()..],
            None => return false,
        }
    }
    line.ends_with(last)
}

#[test]
fn a_line_fits_as_a_whole_with_anything_for_dots() {
    assert!(fits("a ... b", "a 1 2 b") && fits("...", "") && fits("a...", "abc") && fits("a", "a"));
    assert!(!fits("a", "a b") && !fits("a ... b", "a c") && !fits("a...b...c", "abd"));
    assert_eq!(missing("one\n...\nthree  3\n", "zero\none\ntwo\nthree 3\n"), None);
    assert_eq!(missing("one\ntwo\n", "two\none\n"), Some("two"));
}

#[test]
fn blocks_know_their_line_language_and_heading() {
    let blocks = blocks("# T\n\n## A\n```sh refused\nfalse\n```\nx\n```yaml\n# play.yml\na: 1\n```\n");
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].line, blocks[0].mark.as_str(), blocks[0].heading.as_str()), (4, "refused", "A"));
    assert_eq!(blocks[1].file(), Some(Path::new("play.yml")));
    assert!(blocks[0].file().is_none() && !blocks[0].only_looks());
}
