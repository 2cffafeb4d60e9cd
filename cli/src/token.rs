//! Words of a command line.
//!
//! Words are separated by blanks. `"..."` makes one word of anything, with `\"` and `\\` inside. A
//! bare `|` separates a command from its filters, with or without blanks around it.

use crate::grammar::Fault;

/// A word, or the bar before a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Without quotes and escapes.
    pub text: String,
    /// First byte in the line.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Written in quotes, at least in part: never a keyword.
    pub quoted: bool,
    /// The bare `|`.
    pub bar: bool,
}

/// Splits a line.
///
/// # Errors
/// A quote that does not end; the fault is where it began.
pub fn split(line: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut word: Option<Token> = None;
    let mut quote: Option<usize> = None;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = at + c.len_utf8();
        if quote.is_some() {
            let Some(word) = word.as_mut() else { continue };
            word.end = next;
            match c {
                '"' => quote = None,
                '\\' => match chars.next_if(|(_, c)| matches!(c, '"' | '\\')) {
                    Some((_, escaped)) => word.text.push(escaped),
                    None => word.text.push(c),
                },
                _ => word.text.push(c),
            }
            continue;
        }
        if c.is_whitespace() || c == '|' {
            tokens.extend(word.take());
            if c == '|' {
                tokens.push(Token { text: c.into(), start: at, end: next, quoted: false, bar: true });
            }
            continue;
        }
        let word = word.get_or_insert(Token {
            text: String::new(),
            start: at,
            end: next,
            quoted: false,
            bar: false,
        });
        word.end = next;
        if c == '"' {
            word.quoted = true;
            quote = Some(at);
        } else {
            word.text.push(c);
        }
    }
    if let Some(start) = quote {
        return Err(Fault::new(start..line.len(), "this quote has no end; expected a closing \""));
    }
    tokens.extend(word);
    Ok(tokens)
}

/// A text as one word of a line, in quotes where it needs them.
pub fn quote(text: &str) -> String {
    if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '|')) {
        return text.into();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_quoted_is_one_word_again(text in ".*", other in "[a-z]+") {
            assert_eq!(texts(&format!("{other} {}", quote(&text))), [other, text]);
        }
    }

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn blanks_separate_and_quotes_join() {
        assert_eq!(texts("  show  ports "), ["show", "ports"]);
        assert_eq!(texts(r#"load "my file.json""#), ["load", "my file.json"]);
        assert_eq!(texts(r#"match "a\"b\\c\d""#), ["match", r#"a"b\c\d"#]);
        assert_eq!(texts(r#"a"b c"d"#), ["ab cd"]);
        assert_eq!(texts(r"match \d+"), ["match", r"\d+"]);
    }

    #[test]
    fn a_bar_stands_alone_unless_quoted() {
        assert_eq!(texts("show ports|count"), ["show", "ports", "|", "count"]);
        let tokens = split(r#"match "a|b""#).unwrap();
        assert_eq!(tokens.len(), 2);
        assert!(tokens[1].quoted && !tokens[1].bar);
    }

    #[test]
    fn words_know_where_they_stand() {
        let tokens = split("é show").unwrap();
        assert_eq!((tokens[1].start, tokens[1].end), (3, 7));
    }

    #[test]
    fn an_open_quote_is_a_fault_where_it_began() {
        assert_eq!(split("match \"ab").unwrap_err().at, 6..9);
    }
}
