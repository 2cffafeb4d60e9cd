//! Values of leaves: what their types take, and the one canonical text of each value (RFC 7950, 9).

use std::fmt::Write as _;

use crate::pattern;
use crate::schema::{Pattern, Type, Word};

impl Type {
    /// The canonical text of a value (RFC 7950, 9.1).
    ///
    /// # Errors
    /// What the value must be, and what it is: `must be 1..65 (got 70)`.
    pub fn check(&self, text: &str) -> Result<String, String> {
        self.canonical(text).map_err(|reason| match reason {
            Reason::Expected => format!("must be {} (got {})", self.expected(), shown(text)),
            Reason::Said(said) => format!("{said} (got {})", shown(text)),
        })
    }

    /// What it takes, in a few words: `1..65`, `one of on, off`, `name of a port`.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Integer { ranges, .. } => parts(ranges, |n| n.to_string()),
            Self::Decimal { fraction_digits, ranges } => {
                parts(ranges, |n| decimal_text(*n, *fraction_digits))
            }
            Self::String { lengths, patterns, message } => {
                expected_text(lengths, patterns, message.as_deref())
            }
            Self::Enumeration(words) | Self::Identity(words) => one_of(words),
            Self::Bits(words) => format!("some of {}", names(words)),
            Self::Boolean => "true or false".into(),
            Self::Empty => "nothing but its name".into(),
            Self::Binary { lengths } if lengths.is_empty() => "base64".into(),
            Self::Binary { lengths } => format!("base64 of {} bytes", parts(lengths, u64::to_string)),
            Self::Leafref { path, .. } => referred(path),
            Self::Union(members) => {
                let mut all: Vec<String> = Vec::new();
                for member in members {
                    let expected = member.expected();
                    if !all.contains(&expected) {
                        all.push(expected);
                    }
                }
                all.join(" or ")
            }
            Self::InstanceIdentifier => "path of something, such as /module:container/leaf".into(),
        }
    }

    /// The type that takes a value: of a union the first member that does, of a leafref that of the leaf it
    /// refers to. The type itself where nothing takes it.
    #[must_use]
    pub fn taking(&self, text: &str) -> &Self {
        match self {
            Self::Leafref { ty, .. } => ty.taking(text),
            Self::Union(members) => members
                .iter()
                .find(|member| member.canonical(text).is_ok())
                .map_or(self, |member| member.taking(text)),
            _ => self,
        }
    }

    fn canonical(&self, text: &str) -> Result<String, Reason> {
        match self {
            Self::Integer { ranges, message, .. } => {
                let number = integer(text).ok_or(Reason::Expected)?;
                if !within(ranges, &number) {
                    return Err(Reason::said(message.as_deref()));
                }
                Ok(number.to_string())
            }
            Self::Decimal { fraction_digits, ranges } => {
                let number = decimal(text, *fraction_digits).ok_or(Reason::Expected)?;
                if !within(ranges, &number) {
                    return Err(Reason::Expected);
                }
                Ok(decimal_text(number, *fraction_digits))
            }
            Self::String { lengths, patterns, message } => {
                if let Some(c) = text.chars().find(|c| !is_character(*c)) {
                    return Err(Reason::Said(format!("has the character U+{:04X}", u32::from(c))));
                }
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                if !lengths.is_empty() && !within(lengths, &length) {
                    return Err(match message {
                        Some(message) => Reason::Said(message.clone()),
                        None => {
                            Reason::Said(format!("must have {} characters", parts(lengths, u64::to_string)))
                        }
                    });
                }
                for pattern in patterns {
                    pattern_holds(pattern, text)?;
                }
                Ok(text.into())
            }
            Self::Enumeration(words) => words
                .iter()
                .find(|word| word.name == text)
                .map(|word| word.name.clone())
                .ok_or(Reason::Expected),
            Self::Bits(words) => bits(words, text),
            Self::Boolean => match text {
                "true" | "false" => Ok(text.into()),
                _ => Err(Reason::Expected),
            },
            Self::Empty => match text {
                "" => Ok(String::new()),
                _ => Err(Reason::Said("takes no value".into())),
            },
            Self::Binary { lengths } => binary(lengths, text),
            Self::Leafref { ty, .. } => ty.canonical(text).map_err(|reason| match reason {
                Reason::Expected => Reason::Said(format!("must be {}: {}", self.expected(), ty.expected())),
                Reason::Said(said) => Reason::Said(format!("must be {}: {said}", self.expected())),
            }),
            Self::Union(members) => {
                let mut single = Reason::Expected;
                for member in members {
                    match member.canonical(text) {
                        Ok(canonical) => return Ok(canonical),
                        Err(reason) => single = reason,
                    }
                }
                Err(if members.len() == 1 { single } else { Reason::Expected })
            }
            Self::Identity(words) => {
                let mut named = words.iter().filter(|word| {
                    word.name == text
                        || (!text.contains(':')
                            && word.name.rsplit_once(':').is_some_and(|(_, name)| name == text))
                });
                match (named.next(), named.next()) {
                    (Some(word), None) => Ok(word.name.clone()),
                    _ => Err(Reason::Expected),
                }
            }
            Self::InstanceIdentifier => {
                if text.starts_with('/') && text.len() > 1 && text.chars().all(is_character) {
                    Ok(text.into())
                } else {
                    Err(Reason::Expected)
                }
            }
        }
    }
}

/// Why a value is not taken.
enum Reason {
    /// It is not what the type expects.
    Expected,
    /// In these words.
    Said(String),
}

impl Reason {
    fn said(message: Option<&str>) -> Self {
        message.map_or(Self::Expected, |message| Self::Said(without_stop(message)))
    }
}

fn without_stop(message: &str) -> String {
    message.trim_end_matches('.').into()
}

/// A value as a message shows it: short, and without what could upset a terminal.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.is_empty() {
        return "nothing".into();
    }
    let mut shown = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            shown.push_str("...");
            break;
        }
        if c.is_control() {
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if shown.contains(char::is_whitespace) { format!("\"{shown}\"") } else { shown }
}

/// RFC 7950, 9.4: XML's characters without the control characters.
fn is_character(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
        && !matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
        && !matches!(c, '\u{fdd0}'..='\u{fdef}')
}

fn pattern_holds(pattern: &Pattern, text: &str) -> Result<(), Reason> {
    let regex = pattern::compiled(&pattern.regex).map_err(Reason::Said)?;
    if regex.is_match(text) != pattern.inverted {
        return Ok(());
    }
    Err(Reason::Said(match (&pattern.message, pattern.inverted) {
        (Some(message), _) => without_stop(message),
        (None, false) => format!("must match {}", pattern.regex),
        (None, true) => format!("must not match {}", pattern.regex),
    }))
}

/// RFC 7950, 9.2.1, decimal alone: hexadecimal and octal are for the texts of modules.
fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// RFC 7950, 9.3.1, in units of the last digit.
fn decimal(text: &str, fraction_digits: u8) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (digits, ""),
    };
    let fraction = fraction.trim_end_matches('0');
    let width = usize::from(fraction_digits);
    if whole.is_empty()
        || fraction.len() > width
        || !whole.bytes().chain(fraction.bytes()).all(|c| c.is_ascii_digit())
    {
        return None;
    }
    format!("{whole}{fraction:0<width$}").parse::<i128>().ok().map(|units| sign * units)
}

/// RFC 7950, 9.3.2: at least one digit on each side of the point, no more zeros than that.
fn decimal_text(units: i128, fraction_digits: u8) -> String {
    let width = usize::from(fraction_digits);
    let digits = format!("{:0>1$}", units.unsigned_abs(), width + 1);
    let (whole, fraction) = digits.split_at(digits.len() - width);
    let fraction = fraction.trim_end_matches('0');
    let sign = if units < 0 { "-" } else { "" };
    format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

/// RFC 7950, 9.7.2: in the order of the module.
fn bits(words: &[Word], text: &str) -> Result<String, Reason> {
    let mut set = vec![false; words.len()];
    for name in text.split_ascii_whitespace() {
        match words.iter().position(|word| word.name == name) {
            Some(bit) if set[bit] => return Err(Reason::Said(format!("has {name} twice"))),
            Some(bit) => set[bit] = true,
            None => return Err(Reason::Expected),
        }
    }
    let set: Vec<&str> =
        words.iter().zip(set).filter(|(_, set)| *set).map(|(word, _)| word.name.as_str()).collect();
    Ok(set.join(" "))
}

/// RFC 4648, 4; blanks and line ends are no part of the value.
fn binary(lengths: &[(u64, u64)], text: &str) -> Result<String, Reason> {
    let canonical: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let data = canonical.trim_end_matches('=');
    let padding = canonical.len() - data.len();
    let alphabet = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    if padding > 2 || !canonical.len().is_multiple_of(4) || !data.bytes().all(alphabet) {
        return Err(Reason::Expected);
    }
    let bytes = u64::try_from(canonical.len() / 4 * 3 - padding).unwrap_or(u64::MAX);
    if !lengths.is_empty() && !within(lengths, &bytes) {
        return Err(Reason::Expected);
    }
    Ok(canonical)
}

fn within<N: PartialOrd>(parts: &[(N, N)], number: &N) -> bool {
    parts.iter().any(|(first, last)| first <= number && number <= last)
}

fn parts<N: PartialEq>(parts: &[(N, N)], text: impl Fn(&N) -> String) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(
            |(first, last)| {
                if first == last { text(first) } else { format!("{}..{}", text(first), text(last)) }
            },
        )
        .collect();
    parts.join(" or ")
}

fn expected_text(lengths: &[(u64, u64)], patterns: &[Pattern], message: Option<&str>) -> String {
    let said = patterns.iter().find_map(|pattern| pattern.message.as_deref()).or(message);
    let said = said.map(|said| {
        let said = without_stop(said);
        said.strip_prefix("must be ").map(str::to_owned).unwrap_or(said)
    });
    match (said, lengths, patterns.first()) {
        (Some(said), _, _) => said,
        (None, [], Some(pattern)) => format!("text that matches {}", pattern.regex),
        (None, [], None) => "text".into(),
        (None, lengths, _) => format!("text of {} characters", parts(lengths, u64::to_string)),
    }
}

fn names(words: &[Word]) -> String {
    let names: Vec<&str> = words.iter().map(|word| word.name.as_str()).collect();
    names.join(", ")
}

fn one_of(words: &[Word]) -> String {
    match words {
        [only] => only.name.clone(),
        _ => format!("one of {}", names(words)),
    }
}

/// `/sl:port/sl:name` is the name of a port.
fn referred(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    let mut from = 0;
    let mut depth = 0_u32;
    for (at, c) in path.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => {
                steps.push(&path[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    steps.push(&path[from..]);
    let mut names = steps.iter().rev().map(|step| {
        let name = step.split('[').next().unwrap_or(step).trim();
        name.rsplit_once(':').map_or(name, |(_, name)| name)
    });
    let leaf = names.next().unwrap_or_default();
    match names.next() {
        Some(list) if !matches!(list, "" | ".." | "." | "current()") => {
            let article = if list.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            format!("{leaf} of {article} {list}")
        }
        _ => format!("a {leaf} that is there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(name: &str) -> Word {
        Word { name: name.into(), description: String::new() }
    }

    fn small(first: i128, last: i128) -> Type {
        Type::Integer { bits: 8, signed: false, ranges: vec![(first, last)], message: None }
    }

    fn text(lengths: &[(u64, u64)], pattern: Option<(&str, Option<&str>)>) -> Type {
        Type::String {
            lengths: lengths.to_vec(),
            patterns: pattern
                .map(|(regex, message)| Pattern {
                    regex: regex.into(),
                    inverted: false,
                    message: message.map(Into::into),
                })
                .into_iter()
                .collect(),
            message: None,
        }
    }

    #[test]
    fn integers() {
        let ty = small(1, 65);
        assert_eq!(ty.check("007").unwrap(), "7");
        assert_eq!(ty.check("+7").unwrap(), "7");
        assert_eq!(ty.check("70").unwrap_err(), "must be 1..65 (got 70)");
        assert_eq!(ty.check("0x7").unwrap_err(), "must be 1..65 (got 0x7)");
        for bad in ["", "-", "+-1", " 1", "1 ", "1.0", "99999999999999999999999999999999999999999999"] {
            ty.check(bad).unwrap_err();
        }
        let split = Type::Integer { bits: 16, signed: true, ranges: vec![(-5, -1), (7, 7)], message: None };
        assert_eq!(split.expected(), "-5..-1 or 7");
        assert_eq!(split.check("-0").unwrap_err(), "must be -5..-1 or 7 (got -0)");
    }

    #[test]
    fn decimals() {
        let ty = Type::Decimal { fraction_digits: 2, ranges: vec![(-150, 1000)] };
        assert_eq!(ty.expected(), "-1.5..10.0");
        for (given, canonical) in
            [("1", "1.0"), ("01.50", "1.5"), ("-0.05", "-0.05"), ("+1.000", "1.0"), ("-0", "0.0")]
        {
            assert_eq!(ty.check(given).unwrap(), canonical);
        }
        for bad in ["", ".", "1.", ".5", "1.005", "11", "1e1", "--1", "-"] {
            ty.check(bad).unwrap_err();
        }
    }

    #[test]
    fn texts() {
        let ty = text(&[(1, 3)], Some(("[a-z]*", Some("must be lower case."))));
        assert_eq!(ty.check("abc").unwrap(), "abc");
        assert_eq!(ty.check("abcd").unwrap_err(), "must have 1..3 characters (got abcd)");
        assert_eq!(ty.check("A").unwrap_err(), "must be lower case (got A)");
        assert_eq!(ty.check("").unwrap_err(), "must have 1..3 characters (got nothing)");
        assert_eq!(ty.expected(), "lower case");
        assert_eq!(text(&[(2, 2)], None).check("éé").unwrap(), "éé");
        assert_eq!(text(&[], None).check("a\0b").unwrap_err(), "has the character U+0000 (got a\\u{0}b)");
        assert_eq!(text(&[], None).check("a\tb\nc").unwrap(), "a\tb\nc");
    }

    #[test]
    fn words() {
        let ty = Type::Enumeration(vec![word("on"), word("off")]);
        assert_eq!(ty.check("On").unwrap_err(), "must be one of on, off (got On)");
        let ty = Type::Bits(vec![word("a"), word("b")]);
        assert_eq!(ty.check(" b  a ").unwrap(), "a b");
        assert_eq!(ty.check("a a").unwrap_err(), "has a twice (got \"a a\")");
        assert_eq!(ty.check("").unwrap(), "");
        let ty = Type::Identity(vec![word("m:x"), word("n:x"), word("m:y")]);
        assert_eq!(ty.check("y").unwrap(), "m:y");
        assert_eq!(ty.check("n:x").unwrap(), "n:x");
        ty.check("x").unwrap_err();
        Type::Empty.check("x").unwrap_err();
        Type::Boolean.check("yes").unwrap_err();
    }

    #[test]
    fn base64() {
        let ty = Type::Binary { lengths: vec![(1, 2)] };
        assert_eq!(ty.check("AQ ==\n").unwrap(), "AQ==");
        for bad in ["", "AQ", "AQID", "A===", "A!==", "=AQ="] {
            ty.check(bad).unwrap_err();
        }
    }

    #[test]
    fn unions_take_what_fits_first() {
        let ty = Type::Union(vec![small(0, 9), Type::Enumeration(vec![word("any")])]);
        assert_eq!(ty.check("05").unwrap(), "5");
        assert_eq!(ty.check("ten").unwrap_err(), "must be 0..9 or any (got ten)");
        assert_eq!(ty.taking("any"), &Type::Enumeration(vec![word("any")]));
    }

    #[test]
    fn references_say_whose_value_they_are() {
        for (path, said) in [
            ("/sl:port/sl:name", "name of a port"),
            ("../../../sl:ecofilter-unit/sl:name", "name of an ecofilter-unit"),
            ("/sl:a[sl:k=current()/../x]/b", "b of an a"),
            ("../x", "a x that is there"),
        ] {
            assert_eq!(referred(path), said);
        }
    }

    #[test]
    fn a_message_shows_no_more_than_a_person_reads() {
        assert_eq!(shown("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert!(shown(&"x".repeat(5000)).len() < 80);
    }

    proptest::proptest! {
        #[test]
        fn canonical_texts_stay(text in "\\PC{0,12}|[-+]?[0-9]{0,4}(\\.[0-9]{0,3})?") {
            for ty in [
                small(0, 200),
                Type::Decimal { fraction_digits: 3, ranges: vec![(-100_000, 100_000)] },
                Type::Bits(vec![word("a"), word("b")]),
                Type::Binary { lengths: vec![] },
                Type::String { lengths: vec![], patterns: vec![], message: None },
            ] {
                if let Ok(canonical) = ty.check(&text) {
                    assert_eq!(ty.check(&canonical), Ok(canonical.clone()));
                }
            }
        }
    }
}
