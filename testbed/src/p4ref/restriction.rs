//! Restrictions of entries and actions, in the language of p4-constraints
//! (<https://github.com/p4lang/p4-constraints>, "Language specification").

use std::net::{Ipv4Addr, Ipv6Addr};

use super::value::Value;

/// What a restriction may name: match fields of a table, or parameters of an action.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) kind: SubjectKind,
}

/// What parts a subject has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectKind {
    /// A value alone: exact fields and parameters.
    Exact,
    /// Value and mask: ternary and optional fields.
    Ternary,
    /// Value and prefix length.
    Lpm,
    /// Bounds.
    Range,
}

/// A subject's value in an entry; one that the entry leaves out matches everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Exact(u128),
    Ternary { value: u128, mask: u128 },
    Lpm { value: u128, length: u32 },
    Range { low: u128, high: u128 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Value,
    Mask,
    Low,
    High,
    PrefixLength,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
enum Term {
    Number(Value),
    Part(usize, Part),
    Priority,
}

#[derive(Clone, Debug)]
enum Test {
    Const(bool),
    Compare(Compare, Term, Term),
    /// A whole key: set fully and equal.
    Is(usize, u32, Value),
    Same(Box<Test>, Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
}

/// Something that is parsed and has a type.
enum Typed {
    Test(Test),
    Term(Term),
    Key(usize),
}

/// A restriction.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// As it was written, on one line.
    pub(super) text: String,
    test: Test,
}

impl Restriction {
    /// Reads a restriction.
    ///
    /// # Errors
    /// A text that says what is wrong and where.
    pub(super) fn parse(text: &str, subjects: &[Subject]) -> Result<Self, String> {
        let mut reader = Reader { tokens: tokens(text)?, at: 0, subjects };
        let test = reader.all()?;
        Ok(Restriction { text: text.split_whitespace().collect::<Vec<_>>().join(" "), test })
    }

    /// Whether an entry holds to it. `given` are the subjects' values, in the order that they were named in.
    pub(super) fn holds(&self, given: &[Given], priority: i32) -> bool {
        self.test.holds(given, priority)
    }
}

impl Test {
    fn holds(&self, given: &[Given], priority: i32) -> bool {
        let term = |term: &Term| match term {
            Term::Number(value) => value.clone(),
            Term::Priority => Value::Small(priority.into()),
            Term::Part(subject, part) => {
                given.get(*subject).map(|given| given.part(*part)).unwrap_or_default()
            }
        };
        match self {
            Test::Const(value) => *value,
            Test::Compare(compare, left, right) => {
                let (left, right) = (term(left), term(right));
                match compare {
                    Compare::Equal => left == right,
                    Compare::NotEqual => left != right,
                    Compare::Less => left < right,
                    Compare::LessOrEqual => left <= right,
                    Compare::Greater => left > right,
                    Compare::GreaterOrEqual => left >= right,
                }
            }
            Test::Is(subject, bits, value) => given.get(*subject).is_some_and(|given| given.is(*bits, value)),
            Test::Same(left, right) => left.holds(given, priority) == right.holds(given, priority),
            Test::And(left, right) => left.holds(given, priority) && right.holds(given, priority),
            Test::Or(left, right) => left.holds(given, priority) || right.holds(given, priority),
            Test::Not(test) => !test.holds(given, priority),
        }
    }
}

impl Given {
    fn part(&self, part: Part) -> Value {
        match (*self, part) {
            (Given::Exact(value), Part::Value)
            | (Given::Ternary { value, .. } | Given::Lpm { value, .. }, Part::Value)
            | (Given::Ternary { mask: value, .. }, Part::Mask)
            | (Given::Range { low: value, .. }, Part::Low)
            | (Given::Range { high: value, .. }, Part::High) => value.into(),
            (Given::Lpm { length, .. }, Part::PrefixLength) => Value::Small(length.into()),
            _ => Value::ZERO,
        }
    }

    /// Whether the whole width is given, and is this value.
    fn is(&self, bits: u32, wanted: &Value) -> bool {
        match *self {
            Given::Exact(value) => *wanted == value.into(),
            Given::Ternary { value, mask } => mask == all_ones(bits) && *wanted == value.into(),
            Given::Lpm { value, length } => length == bits && *wanted == value.into(),
            Given::Range { low, high } => low == high && *wanted == low.into(),
        }
    }
}

const fn all_ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Number(Value),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 15] =
    ["::", "==", "!=", "<=", ">=", "&&", "||", "->", "<", ">", "!", "-", "(", ")", ";"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").ok_or("a comment has no end")?.1.trim_start();
            continue;
        }
        let word = |also: &str| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || also.contains(c)));
            rest.split_at(end.unwrap_or(rest.len()))
        };
        if first.is_ascii_digit() {
            let (digits, others) = word("");
            tokens.push(Token::Number(number(digits)?));
            rest = others;
        } else if first.is_ascii_alphabetic() || first == '_' {
            // Names of match fields may have validity as `$valid$` or an index in them.
            let (name, others) = word(".$[]");
            let name = name.trim_end_matches('.');
            if let ("ipv4" | "ipv6" | "mac", Some(address)) = (name, others.trim_start().strip_prefix('(')) {
                let (address, others) = address.split_once(')').ok_or("an address has no end")?;
                let address = address.trim().trim_matches('\'');
                tokens.push(Token::Number(
                    network_address(name, address).ok_or(format!("`{address}` is no {name} address"))?,
                ));
                rest = others;
            } else {
                tokens.push(Token::Name(name.to_owned()));
                rest = others;
            }
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or_else(|| format!("`{first}` is no part of the language"))?;
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

fn number(digits: &str) -> Result<Value, String> {
    let (radix, body) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0d" | "0D") => (10, &digits[2..]),
        _ => (10, digits),
    };
    u128::from_str_radix(body, radix)
        .map(Value::from)
        .map_err(|_| format!("`{digits}` is no number of at most 128 bits"))
}

fn network_address(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "ipv4" => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits()).into()),
        "ipv6" => text.parse::<Ipv6Addr>().ok().map(|address| address.to_bits().into()),
        _ => {
            let parts: Vec<&str> = text.split(':').collect();
            let bytes =
                parts.iter().map(|part| u8::from_str_radix(part, 16).ok()).collect::<Option<Vec<_>>>()?;
            (bytes.len() == 6).then(|| Value::from_bytes(&bytes))
        }
    }
}

struct Reader<'s> {
    tokens: Vec<Token>,
    at: usize,
    subjects: &'s [Subject],
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol);
        self.at += usize::from(found);
        found
    }

    /// The whole text: constraints with `;` between them, and perhaps after them.
    fn all(&mut self) -> Result<Test, String> {
        let test = self.list()?;
        match self.peek() {
            None => Ok(test),
            Some(token) => Err(format!("{token} does not belong here")),
        }
    }

    fn list(&mut self) -> Result<Test, String> {
        let mut test = self.test(Self::implication)?;
        while self.take(";") {
            if self.peek().is_none() || matches!(self.peek(), Some(Token::Symbol(")"))) {
                break;
            }
            test = Test::And(Box::new(test), Box::new(self.test(Self::implication)?));
        }
        Ok(test)
    }

    /// Something that must be true or false.
    fn test(&mut self, read: impl Fn(&mut Self) -> Result<Typed, String>) -> Result<Test, String> {
        let typed = read(self)?;
        self.as_test(typed)
    }

    fn as_test(&self, typed: Typed) -> Result<Test, String> {
        match typed {
            Typed::Test(test) => Ok(test),
            Typed::Term(_) => Err("a number stands where true or false belongs".to_owned()),
            Typed::Key(key) => {
                Err(format!("`{}` stands where true or false belongs", self.subjects[key].name))
            }
        }
    }

    fn implication(&mut self) -> Result<Typed, String> {
        let left = self.disjunction()?;
        if !self.take("->") {
            return Ok(left);
        }
        let left = self.as_test(left)?;
        let right = self.test(Self::disjunction)?;
        if self.take("->") {
            return Err("`->` of `->` needs parentheses".to_owned());
        }
        Ok(Typed::Test(Test::Or(Box::new(Test::Not(Box::new(left))), Box::new(right))))
    }

    fn disjunction(&mut self) -> Result<Typed, String> {
        let mut left = self.conjunction()?;
        while self.take("||") {
            let test = self.as_test(left)?;
            left = Typed::Test(Test::Or(Box::new(test), Box::new(self.test(Self::conjunction)?)));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Typed, String> {
        let mut left = self.comparison()?;
        while self.take("&&") {
            let test = self.as_test(left)?;
            left = Typed::Test(Test::And(Box::new(test), Box::new(self.test(Self::comparison)?)));
        }
        Ok(left)
    }

    fn compare(&mut self) -> Option<Compare> {
        [
            ("==", Compare::Equal),
            ("!=", Compare::NotEqual),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ]
        .into_iter()
        .find_map(|(symbol, compare)| self.take(symbol).then_some(compare))
    }

    fn comparison(&mut self) -> Result<Typed, String> {
        let left = self.unary()?;
        let Some(compare) = self.compare() else { return Ok(left) };
        let right = self.unary()?;
        if self.compare().is_some() {
            return Err("a comparison of a comparison needs parentheses".to_owned());
        }
        let negate = compare == Compare::NotEqual;
        let either = |test: Test| Typed::Test(if negate { Test::Not(Box::new(test)) } else { test });
        let equality = matches!(compare, Compare::Equal | Compare::NotEqual);
        match (self.plain(left), self.plain(right)) {
            (Typed::Test(left), Typed::Test(right)) if equality => {
                Ok(either(Test::Same(Box::new(left), Box::new(right))))
            }
            (Typed::Key(key), Typed::Term(Term::Number(number)))
            | (Typed::Term(Term::Number(number)), Typed::Key(key))
                if equality =>
            {
                let bits = self.subjects[key].bits;
                Ok(either(Test::Is(key, bits, self.fitted(key, number)?)))
            }
            (Typed::Term(left), Typed::Term(right)) => {
                let left_key = self.subject(&left);
                let left = self.fit(left, self.subject(&right))?;
                let right = self.fit(right, left_key)?;
                Ok(Typed::Test(Test::Compare(compare, left, right)))
            }
            (Typed::Key(key), _) | (_, Typed::Key(key)) => Err(format!(
                "`{}` as a whole can only be compared by == and != with a number; name a part with `::`",
                self.subjects[key].name
            )),
            _ => Err("the sides of a comparison have different types".to_owned()),
        }
    }

    /// An exact key is its value.
    fn plain(&self, typed: Typed) -> Typed {
        match typed {
            Typed::Key(key) if self.subjects[key].kind == SubjectKind::Exact => {
                Typed::Term(Term::Part(key, Part::Value))
            }
            other => other,
        }
    }

    /// The subject whose width a term has.
    fn subject(&self, term: &Term) -> Option<usize> {
        match term {
            Term::Part(key, part) if *part != Part::PrefixLength => Some(*key),
            _ => None,
        }
    }

    fn fit(&self, term: Term, key: Option<usize>) -> Result<Term, String> {
        match (term, key) {
            (Term::Number(number), Some(key)) => Ok(Term::Number(self.fitted(key, number)?)),
            (term, _) => Ok(term),
        }
    }

    /// A number as a value of the subject's width; a negative one is its two's complement.
    fn fitted(&self, key: usize, number: Value) -> Result<Value, String> {
        let Subject { name, bits, .. } = &self.subjects[key];
        let half = Value::Small(1).shifted_left(&Value::from(u64::from(bits - 1))).unwrap_or_default();
        if number > Value::from(all_ones(*bits)) || number.plus(&half) < Value::ZERO {
            return Err(format!("a number that `{name}` is compared with does not fit its {bits} bits"));
        }
        Ok(number.low_bits(*bits))
    }

    fn unary(&mut self) -> Result<Typed, String> {
        if self.take("!") {
            let test = self.test(Self::unary)?;
            return Ok(Typed::Test(Test::Not(Box::new(test))));
        }
        if self.take("-") {
            return match self.unary()? {
                Typed::Term(Term::Number(number)) => {
                    Ok(Typed::Term(Term::Number(Value::ZERO.minus(&number))))
                }
                _ => Err("`-` can stand before a number only".to_owned()),
            };
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Typed, String> {
        if self.take("(") {
            let typed = self.implication()?;
            let typed = if self.take(";") {
                let first = self.as_test(typed)?;
                Typed::Test(Test::And(Box::new(first), Box::new(self.list()?)))
            } else {
                typed
            };
            return if self.take(")") { Ok(typed) } else { Err("a `)` is missing".to_owned()) };
        }
        if self.take("::") {
            return match self.name()?.as_str() {
                "priority" => Ok(Typed::Term(Term::Priority)),
                other => Err(format!("entries have no attribute `{other}`")),
            };
        }
        let token = self.peek().cloned().ok_or("the text ends too early")?;
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Typed::Term(Term::Number(number))),
            Token::Name(name) if name == "true" || name == "false" => {
                Ok(Typed::Test(Test::Const(name == "true")))
            }
            Token::Name(name) => {
                let key = self.subjects.iter().position(|subject| subject.name == name);
                let key = key.ok_or_else(|| format!("there is no field or parameter `{name}`"))?;
                if self.take("::") { self.part(key) } else { Ok(Typed::Key(key)) }
            }
            token @ Token::Symbol(_) => Err(format!("{token} does not belong here")),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err("a name belongs after `::`".to_owned()),
        }
    }

    fn part(&mut self, key: usize) -> Result<Typed, String> {
        let name = self.name()?;
        let part = match (self.subjects[key].kind, name.as_str()) {
            (SubjectKind::Exact | SubjectKind::Ternary | SubjectKind::Lpm, "value") => Part::Value,
            (SubjectKind::Ternary, "mask") => Part::Mask,
            (SubjectKind::Lpm, "prefix_length") => Part::PrefixLength,
            (SubjectKind::Range, "low") => Part::Low,
            (SubjectKind::Range, "high") => Part::High,
            _ => return Err(format!("`{}` has no part `{name}`", self.subjects[key].name)),
        };
        Ok(Typed::Term(Term::Part(key, part)))
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Number(Value::Small(number)) => write!(f, "`{number}`"),
            Token::Number(_) => f.write_str("a number"),
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects() -> Vec<Subject> {
        [
            ("link", 8, SubjectKind::Exact),
            ("proto", 8, SubjectKind::Ternary),
            ("dst", 32, SubjectKind::Lpm),
            ("port", 16, SubjectKind::Range),
            ("hdr.tag[0].vid", 12, SubjectKind::Exact),
        ]
        .map(|(name, bits, kind)| Subject { name: name.to_owned(), bits, kind })
        .to_vec()
    }

    const ENTRY: [Given; 5] = [
        Given::Exact(7),
        Given::Ternary { value: 6, mask: 0xff },
        Given::Lpm { value: 0x0a00_0000, length: 8 },
        Given::Range { low: 80, high: 90 },
        Given::Exact(100),
    ];

    fn holds(text: &str) -> bool {
        Restriction::parse(text, &subjects()).unwrap().holds(&ENTRY, 5)
    }

    #[test]
    fn parts_and_attributes_are_compared() {
        for right in [
            "link == 7",
            "link::value < 8 && link >= 7 && link <= 0x7 && link != 0b110 && link > 6",
            "proto == 6; proto::mask == 0xff; proto::mask == -1;",
            "dst::prefix_length == 8",
            "dst::value == ipv4('10.0.0.0')",
            "port::low == 80 && port::high == 90",
            "::priority == 5 && ::priority < 0d6",
            "hdr.tag[0].vid == 100 // a comment\n && true",
            "!(link == 8) == true",
            "7 == link",
            "/* all */ true",
        ] {
            assert!(holds(right), "{right}");
        }
        for wrong in ["link == 8", "proto == 7", "dst == 0x0a000000", "port == 80", "proto != 6", "false"] {
            assert!(!holds(wrong), "{wrong}");
        }
    }

    #[test]
    fn implication_binds_weaker_than_or_and_that_weaker_than_and() {
        assert!(holds("link == 8 -> false"));
        assert!(!holds("link == 7 -> proto == 17"));
        assert!(holds("true || false && false"));
        assert!(holds("false || link == 8 -> false"));
        assert!(!holds("link == 7 -> true; false"));
        assert!(holds("(link == 7 -> true) && (true; true)"));
    }

    #[test]
    fn a_field_that_is_left_out_is_not_equal_to_anything() {
        let entry = [
            Given::Exact(0),
            Given::Ternary { value: 0, mask: 0 },
            Given::Lpm { value: 0, length: 0 },
            Given::Range { low: 0, high: 0xffff },
            Given::Exact(0),
        ];
        let holds = |text: &str| Restriction::parse(text, &subjects()).unwrap().holds(&entry, 1);
        assert!(holds("proto != 0 && dst != 0 && port != 0 && proto::mask == 0"));
        assert!(holds("proto::mask != 0 -> false"));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (text, said) in [
            ("", "ends too early"),
            ("link == ", "ends too early"),
            ("link", "true or false"),
            ("5", "true or false"),
            ("link == 1 == 1", "parentheses"),
            ("true -> true -> true", "parentheses"),
            ("links == 1", "`links`"),
            ("link::mask == 1", "no part `mask`"),
            ("proto < 6", "name a part"),
            ("link == 256", "8 bits"),
            ("link == -129", "8 bits"),
            ("::weight == 1", "`weight`"),
            ("(link == 1", "`)`"),
            ("link == 1 )", "`)`"),
            ("link & 1 == 1", "`&`"),
            ("link == 0x", "no number"),
            ("dst::value == ipv4('10.0.0')", "ipv4"),
            ("true == 1", "different types"),
            ("/* never", "no end"),
        ] {
            let error = Restriction::parse(text, &subjects()).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
