//! XSD regular expressions (XML Schema part 2, appendix F), which YANG's patterns are, as those of the crate `regex`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use regex::Regex;

/// Each pattern is compiled once in a process; there are as many as the modules have.
static COMPILED: LazyLock<RwLock<HashMap<String, Arc<Regex>>>> = LazyLock::new(RwLock::default);

/// The compiled form of an XSD pattern; it matches whole texts.
///
/// # Errors
/// What is wrong with the pattern.
pub(crate) fn compiled(xsd: &str) -> Result<Arc<Regex>, String> {
    if let Some(regex) = COMPILED.read().unwrap_or_else(PoisonError::into_inner).get(xsd) {
        return Ok(Arc::clone(regex));
    }
    let regex = Regex::new(&format!(r"\A(?:{})\z", translated(xsd)))
        .map_err(|error| format!("pattern {xsd} of the module: {error}"))?;
    let regex = Arc::new(regex);
    let mut all = COMPILED.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(xsd.to_owned(), Arc::clone(&regex));
    Ok(regex)
}

/// XSD has neither anchors nor flags, and other classes.
fn translated(xsd: &str) -> String {
    let mut regex = String::with_capacity(xsd.len() + 8);
    let mut depth = 0_u32;
    let mut first_in_class = false;
    let mut chars = xsd.chars().peekable();
    while let Some(c) = chars.next() {
        let first = std::mem::take(&mut first_in_class);
        match c {
            '\\' => match chars.next() {
                Some(escaped) => regex.push_str(&escape(escaped, depth > 0)),
                None => regex.push_str(r"\\"),
            },
            '[' if depth == 0 => {
                depth = 1;
                first_in_class = true;
                regex.push('[');
            }
            // Subtraction: `[a-z-[aeiou]]`.
            '-' if depth > 0 && chars.peek() == Some(&'[') => {
                chars.next();
                depth += 1;
                first_in_class = true;
                regex.push_str("--[");
            }
            ']' if depth > 0 => {
                depth -= 1;
                regex.push(']');
            }
            '^' if first => {
                first_in_class = true;
                regex.push('^');
            }
            '[' | '&' | '~' | '^' | '$' => {
                regex.push('\\');
                regex.push(c);
            }
            '.' if depth == 0 => regex.push_str(r"[^\n\r]"),
            '-' if depth > 0 && (first || chars.peek() == Some(&']')) => regex.push_str(r"\-"),
            _ => regex.push(c),
        }
    }
    regex
}

/// What stands for an escape.
fn escape(escaped: char, in_class: bool) -> String {
    let set = match escaped {
        'i' => r"_:\p{L}",
        'c' => r"\-._:\p{L}\p{N}\p{M}",
        's' => r" \t\n\r",
        'w' => r"\p{L}\p{M}\p{N}\p{S}",
        'I' => return r"[^_:\p{L}]".into(),
        'C' => return r"[^\-._:\p{L}\p{N}\p{M}]".into(),
        'S' => return r"[^ \t\n\r]".into(),
        'W' => return r"[^\p{L}\p{M}\p{N}\p{S}]".into(),
        _ => return format!("\\{escaped}"),
    };
    if in_class { set.into() } else { format!("[{set}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compiled(pattern).unwrap().is_match(text)
    }

    #[test]
    fn the_whole_text_must_match() {
        assert!(matches("a|b", "a"));
        assert!(!matches("a|b", "ab"));
        assert!(!matches("a", "a\n"));
    }

    #[test]
    fn anchors_are_plain_characters() {
        assert!(matches("^a$", "^a$"));
        assert!(!matches("^a$", "a"));
        assert!(matches("[$^&~]+", "$^&~"));
        assert!(matches("[^^]", "a") && !matches("[^^]", "^"));
    }

    #[test]
    fn classes_of_xsd() {
        assert!(matches(r"\i\c*", "_a-b.c"));
        assert!(!matches(r"\i\c*", "-a"));
        assert!(matches("[a-z-[aeiou]]+", "xyz") && !matches("[a-z-[aeiou]]+", "xaz"));
        assert!(matches(r"[\w-]+", "a-b") && !matches(r"\w", "-"));
        assert!(matches(r"[a-zA-Z0-9\-_.]+", "p1-2_x.y"));
        assert!(matches(r"[-a]+", "a-a") && matches(r"[a-]+", "a-a"));
        assert!(!matches(".", "\n") && matches("[.]", ".") && !matches("[.]", "x"));
        assert!(matches(r"[&&]", "&"));
        assert!(matches(r"\p{L}+\d", "é1"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        assert!(compiled("(a").unwrap_err().contains("(a"));
    }
}
