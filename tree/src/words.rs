//! Words of a line, as the engineer writes them: separated by blanks, `"..."` around what has blanks in it, with
//! `\"` and `\\` inside.

use std::borrow::Cow;

/// A text as one word of a line, in quotes where it needs them.
#[must_use]
pub fn quote(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '|');
    if !text.is_empty() && !text.starts_with('#') && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// A line of a text of commands: one line, or more where a word in quotes goes over its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it begins, from 1.
    pub number: usize,
    /// Its words, without quotes and escapes.
    pub words: Vec<String>,
}

/// The lines of a text, without empty ones and those that begin with `#`. Ends after a fault.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: std::str::Chars<'a>,
    number: usize,
}

/// A quote that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: this quote has no end; expected a closing \"")]
pub struct OpenQuote {
    /// The line on which it begins, from 1.
    pub line: usize,
}

impl<'a> Lines<'a> {
    /// The lines of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), number: 0 }
    }

    /// What is between quotes, to the closing one.
    fn quoted(&mut self, word: &mut String) -> Result<(), OpenQuote> {
        let open = OpenQuote { line: self.number };
        loop {
            match self.rest.next().ok_or(open)? {
                '"' => return Ok(()),
                '\\' => {
                    let mut ahead = self.rest.clone();
                    match ahead.next() {
                        Some(escaped @ ('"' | '\\')) => {
                            self.rest = ahead;
                            word.push(escaped);
                        }
                        _ => word.push('\\'),
                    }
                }
                c => {
                    self.number += usize::from(c == '\n');
                    word.push(c);
                }
            }
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, OpenQuote>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.as_str().is_empty() {
            self.number += 1;
            let mut line = Line { number: self.number, words: Vec::new() };
            let mut word: Option<String> = None;
            loop {
                match self.rest.next() {
                    Some('#') if line.words.is_empty() && word.is_none() => {
                        let end = self.rest.as_str().find('\n').map_or(self.rest.as_str().len(), |n| n + 1);
                        self.rest = self.rest.as_str()[end..].chars();
                        break;
                    }
                    Some('"') => {
                        if let Err(open) = self.quoted(word.get_or_insert_default()) {
                            self.rest = "".chars();
                            return Some(Err(open));
                        }
                    }
                    None | Some('\n') => break,
                    Some(c) if c.is_whitespace() => line.words.extend(word.take()),
                    Some(c) => word.get_or_insert_default().push(c),
                }
            }
            line.words.extend(word);
            if !line.words.is_empty() {
                return Some(Ok(line));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(usize, Vec<String>)> {
        Lines::new(text).map(|line| line.unwrap()).map(|line| (line.number, line.words)).collect()
    }

    #[test]
    fn words_quotes_and_comments() {
        let text = "# first\n\n set a\tb\r\n  # c\nset \"x y\" \"\" a\"b\\\"c\"#d\nset \"1\n2\" z\nlast";
        let expected: [(usize, &[&str]); 4] = [
            (3, &["set", "a", "b"]),
            (5, &["set", "x y", "", "ab\"c#d"]),
            (6, &["set", "1\n2", "z"]),
            (8, &["last"]),
        ];
        let lines = lines(text);
        assert_eq!(lines.len(), expected.len());
        for ((number, words), (expected_number, expected)) in lines.iter().zip(expected) {
            assert_eq!(*number, expected_number);
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn an_open_quote_is_a_fault_where_it_begins() {
        let mut lines = Lines::new("set a\nset \"b\nset c");
        assert!(lines.next().unwrap().is_ok());
        assert_eq!(lines.next(), Some(Err(OpenQuote { line: 2 })));
        assert_eq!(lines.next(), None);
    }

    proptest::proptest! {
        #[test]
        fn what_is_quoted_is_one_word_again(words in proptest::collection::vec("(?s).{0,6}", 1..4)) {
            let line: Vec<_> = words.iter().map(|word| quote(word)).collect();
            assert_eq!(lines(&line.join(" "))[0].1, words);
        }
    }
}
