//! Reads the syntax of YANG (RFC 7950, 6.3) as far as libyang writes it for compiled modules: statements with an
//! argument, which may be quoted, and statements below them.

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) keyword: String,
    pub(crate) argument: String,
    pub(crate) below: Vec<Statement>,
}

impl Statement {
    /// The first statement below with this keyword.
    pub(crate) fn get(&self, keyword: &str) -> Option<&Statement> {
        self.below.iter().find(|statement| statement.keyword == keyword)
    }

    /// All statements below with this keyword.
    pub(crate) fn all<'s>(&'s self, keyword: &'s str) -> impl Iterator<Item = &'s Statement> {
        self.below.iter().filter(move |statement| statement.keyword == keyword)
    }

    /// The argument of the first statement below with this keyword.
    pub(crate) fn argument_of(&self, keyword: &str) -> Option<&str> {
        self.get(keyword).map(|statement| statement.argument.as_str())
    }

    /// A prose argument below: the lines of a paragraph joined by blanks, paragraphs by line feeds.
    pub(crate) fn prose(&self, keyword: &str) -> Option<String> {
        let text = self.argument_of(keyword)?;
        let mut prose = String::new();
        let mut between = "";
        for line in text.lines().map(str::trim) {
            if line.is_empty() {
                between = if prose.is_empty() { "" } else { "\n" };
                continue;
            }
            prose.push_str(between);
            prose.push_str(line);
            between = " ";
        }
        Some(prose)
    }
}

/// Reads one statement.
pub(crate) fn read(text: &str) -> Result<Statement, String> {
    // libyang 5.4.9 leaves the quotation of `unique` open; nobody asks for it here.
    let text: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("unique \""))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut reader = Reader { rest: &text };
    let statement = reader.statement()?;
    match reader.skip_blanks() {
        "" => Ok(statement),
        more => Err(format!("something follows the module: {:?}", beginning(more))),
    }
}

struct Reader<'t> {
    rest: &'t str,
}

fn beginning(text: &str) -> String {
    text.chars().take(30).collect()
}

impl<'t> Reader<'t> {
    fn skip_blanks(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    /// Up to a blank or a character with a meaning of its own.
    fn word(&mut self) -> &'t str {
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn statement(&mut self) -> Result<Statement, String> {
        self.skip_blanks();
        let keyword = self.word();
        if keyword.is_empty() {
            return Err(format!("a keyword is missing at {:?}", beginning(self.rest)));
        }
        self.skip_blanks();
        let argument = match self.rest.strip_prefix('"') {
            Some(rest) => {
                self.rest = rest;
                self.quoted(keyword)?
            }
            None => self.word().to_owned(),
        };
        let mut below = Vec::new();
        let rest = self.skip_blanks();
        if let Some(rest) = rest.strip_prefix(';') {
            self.rest = rest;
        } else if let Some(rest) = rest.strip_prefix('{') {
            self.rest = rest;
            loop {
                if let Some(rest) = self.skip_blanks().strip_prefix('}') {
                    self.rest = rest;
                    break;
                }
                below.push(self.statement()?);
            }
        } else {
            return Err(format!("{keyword} {argument:?} does not end, at {:?}", beginning(rest)));
        }
        Ok(Statement { keyword: keyword.to_owned(), argument, below })
    }

    /// After the opening quotation mark.
    fn quoted(&mut self, keyword: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    other => return Err(format!("{keyword}: no such escape: {other:?}")),
                },
                other => text.push(other),
            }
        }
        Err(format!("the quotation of {keyword} does not end"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn statements_nest_and_arguments_may_be_quoted() {
        let text = "list a {\n  key \"name\";\n unique \"b, c;\n  pattern \"x\\\\.\\\"\" {\n modifier invert-match;\n }\n input {\n }\n}\n";
        let list = read(text).unwrap();
        assert_eq!((list.keyword.as_str(), list.argument.as_str()), ("list", "a"));
        assert_eq!(list.argument_of("key"), Some("name"));
        assert_eq!(list.argument_of("pattern"), Some("x\\.\""));
        assert_eq!(list.get("pattern").unwrap().argument_of("modifier"), Some("invert-match"));
        assert!(list.get("input").unwrap().below.is_empty());
        assert!(list.get("unique").is_none());
    }

    #[test]
    fn paragraphs_are_lines_and_lines_are_joined() {
        let text = "leaf a {\n  description\n    \"First\n     line.\n\n     Then\n     more.\";\n}";
        assert_eq!(read(text).unwrap().prose("description").unwrap(), "First line.\nThen more.");
    }

    #[test]
    fn what_is_no_statement_is_refused_with_its_place() {
        for (text, named) in [
            ("leaf a", "does not end"),
            ("leaf a { type string;", "keyword is missing"),
            ("leaf \"a", "quotation of leaf"),
            ("leaf \"\\d\";", "escape"),
            ("leaf a; leaf b;", "follows"),
        ] {
            let reason = read(text).unwrap_err();
            assert!(reason.contains(named), "{text}: {reason}");
        }
    }
}
