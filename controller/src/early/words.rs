//! Blocks, `set` lines and JSON as one thing: words below words.

use serde_json::Value;

/// Deeper nesting is refused.
const DEEPEST: usize = 32;

/// A word and what stands below it, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<(String, Words)>);

/// A text that is neither blocks nor `set` lines nor JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// In a line.
    #[error("line {line}: {reason}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// In JSON.
    #[error("{0}")]
    Json(String),
}

impl Words {
    pub(super) fn get(&self, word: &str) -> Option<&Words> {
        self.0.iter().find(|(name, _)| name == word).map(|(_, below)| below)
    }

    /// The word below, where a value is wanted.
    pub(super) fn value(&self) -> Option<&str> {
        self.0.first().map(|(word, _)| word.as_str())
    }

    /// All words below.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(word, _)| word.as_str())
    }

    /// What stands below a word, made where it is not there yet.
    fn below(&mut self, word: &str) -> &mut Words {
        let at = match self.0.iter().position(|(name, _)| name == word) {
            Some(at) => at,
            None => {
                self.0.push((word.to_owned(), Words::default()));
                self.0.len() - 1
            }
        };
        &mut self.0[at].1
    }

    fn put(&mut self, path: &[String]) -> &mut Words {
        path.iter().fold(self, |at, word| at.below(word))
    }
}

pub(super) fn read(text: &str) -> Result<Words, WordsError> {
    if text.trim_start().starts_with(['{', '[']) {
        let value = serde_json::from_str(text).map_err(|error| WordsError::Json(error.to_string()))?;
        let mut words = Words::default();
        of_json(&value, &mut words, 0)?;
        return Ok(words);
    }
    of_text(text)
}

fn of_json(value: &Value, into: &mut Words, depth: usize) -> Result<(), WordsError> {
    if depth > DEEPEST {
        return Err(WordsError::Json(format!("nested more than {DEEPEST} deep")));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.rsplit_once(':').map_or(name.as_str(), |(_, name)| name);
                of_json(member, into.below(name), depth + 1)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                match item.get("name").and_then(Value::as_str) {
                    Some(name) => {
                        let below = into.below(name);
                        for (member, value) in item.as_object().into_iter().flatten() {
                            if member != "name" {
                                of_json(value, below.below(member), depth + 1)?;
                            }
                        }
                    }
                    None => of_json(item, into, depth + 1)?,
                }
            }
        }
        Value::String(text) => {
            into.below(text);
        }
        Value::Null => {}
        other => {
            into.below(&other.to_string());
        }
    }
    Ok(())
}

fn of_text(text: &str) -> Result<Words, WordsError> {
    let mut root = Words::default();
    // Words that lead to the block that is open, and how many each brace added.
    let mut path: Vec<String> = Vec::new();
    let mut opened: Vec<usize> = Vec::new();
    let mut statement: Vec<String> = Vec::new();
    let mut list: Option<Vec<String>> = None;
    let fault = |line: usize, reason: &str| WordsError::Line { line, reason: reason.to_owned() };
    let mut last = 0;
    for (number, text) in text.lines().enumerate() {
        let line = number + 1;
        last = line;
        for token in tokens(text).map_err(|reason| fault(line, &reason))? {
            match token {
                Token::Word(word) => match &mut list {
                    Some(items) => items.push(word),
                    None => statement.push(word),
                },
                Token::Mark('[') if list.is_none() && !statement.is_empty() => list = Some(Vec::new()),
                Token::Mark(']') if list.is_some() => {
                    let at = [path.as_slice(), statement.as_slice()].concat();
                    let below = root.put(without_set(&at, path.is_empty()));
                    for item in list.take().unwrap_or_default() {
                        below.below(&item);
                    }
                    statement.clear();
                }
                Token::Mark('{') if list.is_none() && !statement.is_empty() => {
                    if opened.len() >= DEEPEST {
                        return Err(fault(line, &format!("blocks nested more than {DEEPEST} deep")));
                    }
                    opened.push(statement.len());
                    path.append(&mut statement);
                }
                Token::Mark('}') if list.is_none() => {
                    finish(&mut root, &path, &mut statement);
                    let Some(words) = opened.pop() else {
                        return Err(fault(line, "a } without its {"));
                    };
                    // A block with nothing in it is there all the same.
                    root.put(&path);
                    path.truncate(path.len() - words);
                }
                Token::Mark(';') if list.is_none() => finish(&mut root, &path, &mut statement),
                Token::Mark(mark) => {
                    return Err(fault(line, &format!("{mark:?} cannot stand here")));
                }
            }
        }
        if list.is_none() {
            finish(&mut root, &path, &mut statement);
        }
    }
    if !opened.is_empty() || list.is_some() {
        return Err(fault(last, "the text ends inside a block or a list"));
    }
    Ok(root)
}

fn finish(root: &mut Words, path: &[String], statement: &mut Vec<String>) {
    if !statement.is_empty() {
        let at = [path, statement.as_slice()].concat();
        root.put(without_set(&at, path.is_empty()));
        statement.clear();
    }
}

/// The words of a `set` line without `set`.
fn without_set(words: &[String], at_top: bool) -> &[String] {
    match words {
        [first, rest @ ..] if at_top && first == "set" => rest,
        words => words,
    }
}

enum Token {
    Word(String),
    Mark(char),
}

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' => break,
            c if c.is_whitespace() => {}
            '{' | '}' | '[' | ']' | ';' => tokens.push(Token::Mark(c)),
            '"' => {
                let mut word = String::new();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(chars.next()),
                        Some(c) => word.push(c),
                        None => return Err("this quote has no end".to_owned()),
                    }
                }
                tokens.push(Token::Word(word));
            }
            c => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"{}[];\"".contains(*c)) {
                    word.push(c);
                }
                tokens.push(Token::Word(word));
            }
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_set_lines_and_json_say_the_same() {
        let blocks =
            "filters {\n  bgp {\n priority 200; apply-to-links [ a b ]\n  match { dst-port 179 } } }\n";
        let lines = "set filters bgp priority 200\nset filters bgp apply-to-links [ a\n b ]\n# a comment\n\
                     set filters bgp match dst-port 179\n";
        let json = r#"{"filters": [{"name": "bgp", "priority": 200, "apply-to-links": ["a", "b"],
                      "match": {"dst-port": "179"}}]}"#;
        let words = read(blocks).unwrap();
        assert_eq!(read(lines).unwrap(), words);
        assert_eq!(read(json).unwrap(), words);
    }

    #[test]
    fn what_does_not_close_is_told_with_its_line() {
        for (text, line) in
            [("a {\n b 1\n", 2), ("a }\n", 1), ("a [ b\n", 1), ("\n\"x", 2), ("{;", 0), ("a\n[ b ]", 2)]
        {
            match read(text) {
                Err(WordsError::Line { line: found, .. }) => assert_eq!(found, line, "{text}"),
                Err(WordsError::Json(_)) => assert_eq!(line, 0, "{text}"),
                Ok(words) => panic!("{text}: {words:?}"),
            }
        }
        assert!(read(&"a {\n".repeat(1000)).is_err());
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
