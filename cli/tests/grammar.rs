//! The table of commands, walked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use cli::commands::{CONFIGURE, FILTERS, ROOT};
use cli::grammar::{
    Args, Command, Fault, Following, Kind, Names, Node, Run, Source, Step, What, forms, list,
};

fn parse(line: &str) -> Result<Option<Command>, Fault> {
    cli::grammar::parse(&ROOT, line)
}

fn following(line: &str, names: &dyn Names) -> Result<Following, Fault> {
    cli::grammar::following(&ROOT, line, names)
}

fn question_mark_is_literal(line: &str) -> bool {
    cli::grammar::question_mark_is_literal(&ROOT, line)
}

struct Fixed;

impl Names for Fixed {
    fn names(&self, source: Source, args: &Args) -> Vec<String> {
        let names: &[&str] = match source {
            Source::Units => &["main", "eco.2"],
            Source::Ports => &["p1-1", "p1-2", "p10"],
            Source::Flows => &["bgp", "rest"],
            Source::Profiles => &["default"],
            Source::Links => &["link1", "link2"],
            Source::Subjects => &["main", "main/f1-1", "main/f1-2"],
            Source::Pairs if args.text("unit").as_deref() == Some("main") => &["f1-1", "f1-2"],
            Source::Pairs => &[],
        };
        names.iter().map(|name| String::from(*name)).collect()
    }
}

fn example(kind: &Kind) -> &'static str {
    match kind {
        Kind::Name(_) => "a-b_c.1",
        Kind::Number { .. } => "5",
        Kind::Address => "2001:db8::1",
        Kind::Protocol => "udp",
        Kind::Vlans => "100,20",
        Kind::Choice(choices) => choices[0].0,
        Kind::File => "\"a file.json\"",
        Kind::Beginning(_) => "main/f1",
        Kind::Text => "\"two words\"",
        Kind::Pattern => "\"^a|b$\"",
    }
}

/// The shortest beginning of a keyword that means it among the words beside it.
fn shortest(node: &'static Node, beside: &[&'static Node]) -> String {
    let What::Word(word) = node.what else { return full(node) };
    let clashes = |begin: &str| {
        beside
            .iter()
            .filter(|other| matches!(other.what, What::Word(other) if other.starts_with(begin)))
            .count()
            > 1
    };
    (1..word.len()).map(|length| &word[..length]).find(|begin| !clashes(begin)).unwrap_or(word).into()
}

fn full(node: &'static Node) -> String {
    match &node.what {
        What::Word(word) => String::from(*word),
        What::Value(value) => example(&value.kind).into(),
        What::Tree(_) => "port p1 speed".into(),
    }
}

fn beside(step: &'static Step) -> Vec<&'static Node> {
    step.nodes.iter().chain(step.options.iter().map(|option| &option.node)).collect()
}

/// Every command in full and as short as can be, with every option it takes.
fn lines(step: &'static Step) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for form in forms(&[], step) {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        let mut at = step;
        for node in &form.nodes {
            long.push(full(node));
            short.push(shortest(node, &beside(at)));
            at = &node.then;
        }
        for (index, option) in form.options.iter().enumerate() {
            let value = full(&option.node.then.nodes[0]);
            // Options that were given already are no longer in the way.
            let left: Vec<_> = form.options[index..].iter().map(|option| &option.node).collect();
            // A word that is given already must not be meant again: `src` before `src-port`.
            let word = if form.options[..index].iter().any(|o| full(&option.node).starts_with(&full(&o.node)))
            {
                full(&option.node)
            } else {
                shortest(&option.node, &left)
            };
            long.extend([full(&option.node), value.clone()]);
            short.extend([word, value]);
        }
        lines.push((long.join(" "), short.join(" ")));
    }
    lines
}

#[test]
fn every_command_parses_in_full_and_as_short_as_can_be() {
    for (root, least) in [(&ROOT, 35), (&CONFIGURE, 30)] {
        let all = lines(root);
        assert!(all.len() >= least, "{all:#?}");
        for (long, short) in all {
            let long = if long == "run" { "run show ports".into() } else { long };
            let short = if short == "ru" { "ru sh ports".into() } else { short };
            let parse = |line: &str| {
                let command = cli::grammar::parse(root, line);
                command.unwrap_or_else(|fault| panic!("{line}: {fault}")).unwrap()
            };
            let (a, b) = (parse(&long), parse(&short));
            assert!(short.len() <= long.len());
            if let (Run::Ask { request: one, .. }, Run::Ask { request: other, .. }) = (a.run, b.run) {
                assert_eq!(one(&a.args), other(&b.args), "{short}");
            } else {
                assert_eq!(std::mem::discriminant(a.run), std::mem::discriminant(b.run), "{short}");
            }
            let texts = |command: &Command| {
                let tokens = command.tree.iter().flat_map(|tree| &tree.tokens);
                tokens.map(|token| token.text.clone()).collect::<Vec<_>>()
            };
            assert_eq!(texts(&a), texts(&b), "{short}");
        }
    }
}

#[test]
fn every_filter_parses_in_full_and_as_short_as_can_be() {
    for (long, short) in lines(&FILTERS) {
        for filter in [long, short] {
            let command = parse(&format!("show configuration | {filter}"))
                .unwrap_or_else(|fault| panic!("{filter}: {fault}"));
            assert_eq!(command.unwrap().filters.len(), 1);
        }
    }
}

fn visit(root: &'static Step, line: &str, step: &'static Step, count: &mut usize) {
    let found = cli::grammar::following(root, line, &Fixed);
    let found = found.unwrap_or_else(|fault| panic!("{line}: {fault}"));
    for node in beside(step) {
        *count += 1;
        assert!(
            node.help.split_whitespace().count() >= 3,
            "{line}{}: {:?} says little",
            node.title(),
            node.help
        );
        let listed = match &node.what {
            What::Word(word) => found.items.iter().any(|item| item.text == *word && item.help == node.help),
            What::Value(value) => match &value.kind {
                Kind::Choice(choices) => choices
                    .iter()
                    .all(|(word, help)| found.items.iter().any(|i| i.text == *word && i.help == *help)),
                _ => found.items.iter().any(|i| i.text == format!("<{}>", value.name) && i.help == node.help),
            },
            // Without a schema there is nothing to list.
            What::Tree(_) => continue,
        };
        assert!(listed, "{line}? does not list {}:\n{}", node.title(), list(&found.items));
        visit(root, &format!("{line}{} ", full(node)), &node.then, count);
    }
}

#[test]
fn a_question_mark_lists_every_word_with_what_it_means() {
    let mut count = 0;
    visit(&ROOT, "", &ROOT, &mut count);
    visit(&CONFIGURE, "", &CONFIGURE, &mut count);
    visit(&CONFIGURE, "show | ", &FILTERS, &mut count);
    assert!(count > 100, "only {count} nodes");
}

fn texts(line: &str) -> Vec<String> {
    following(line, &Fixed).unwrap().items.into_iter().map(|item| item.text).collect()
}

#[test]
fn a_question_mark_narrows_to_the_word_being_typed() {
    assert_eq!(texts("sh"), ["show"]);
    assert_eq!(texts("show ev"), ["events"]);
    assert_eq!(texts("sh po"), ["ports", "port"]);
    assert_eq!(texts("show port p1-"), ["<name>", "p1-1", "p1-2"]);
    assert_eq!(texts("show port "), ["<name>", "p1-1", "p1-2", "p10"]);
    assert_eq!(texts("show ecof ecof ma"), ["<name>", "main"]);
    assert_eq!(texts("show ports "), ["<Enter>", "|"]);
    assert_eq!(texts("exit "), ["<Enter>"]);
    assert_eq!(texts("show ports | m"), ["match"]);
    assert_eq!(texts("show ports | count "), ["<Enter>", "|"]);
    assert_eq!(texts("show ecof look dst 10.0.0.1 s"), ["src", "src-port", "side"]);
    assert!(!texts("show ecof look dst 10.0.0.1 ").contains(&"dst".into()));
    assert!(!texts("show ecof look dst 10.0.0.1 ").contains(&"<Enter>".into()));
    assert!(texts("show ecof look dst 10.0.0.1 src 10.0.0.2 ").contains(&"<Enter>".into()));
    assert_eq!(texts("show ecof look proto ic"), ["icmp", "icmpv6"]);
    assert_eq!(texts("help show ev"), ["events"]);
    assert_eq!(texts("call ecof set main b"), ["bypass"]);
}

#[test]
fn values_of_the_lookup_come_in_any_order() {
    let command =
        parse("show ecof lookup vlan 100,20 dst 10.0.0.2 side w proto icmp src 10.0.0.1 link l.1").unwrap();
    let command = command.unwrap();
    let Run::Ask { request, .. } = command.run else { panic!("lookup asks") };
    let api::Request::Lookup(query) = request(&command.args) else { panic!("it asks for a lookup") };
    assert_eq!(
        query,
        api::LookupQuery {
            src: "10.0.0.1".into(),
            dst: "10.0.0.2".into(),
            proto: Some(1),
            src_port: None,
            dst_port: None,
            vlan: vec![100, 20],
            link: Some("l.1".into()),
            side: Some("wan".into()),
        }
    );
}

/// The word that is pointed at, and what is said.
#[test]
fn events_are_narrowed_in_any_order() {
    let command = parse("sh ev last 3 sub main/f1 sev w kind pa").unwrap().unwrap();
    let filter = cli::commands::event_filter(&command.args);
    assert_eq!(filter.kind, Some(api::EventKind::Pair));
    assert_eq!(filter.severity, Some(api::Severity::Warning));
    assert_eq!(filter.subject.as_deref(), Some("main/f1"));
    assert_eq!(command.args.number("last"), Some(3_u64));
    assert!(cli::commands::event_filter(&parse("monitor events last 3").unwrap().unwrap().args).is_open());
    assert_eq!(texts("monitor events kind c"), ["core", "configuration"]);
    assert_eq!(texts("show events severity "), ["info", "warning", "error"]);
    assert!(texts("show events kind pair subject main/").contains(&"main/f1-2".into()));
    assert!(texts("show events kind pair ").iter().all(|word| word != "kind"));
    for kind in api::EventKind::ALL {
        assert!(parse(&format!("show events kind {kind}")).is_ok(), "{kind}");
    }
}

fn fault(line: &str) -> (String, String) {
    let fault = parse(line).expect_err(line);
    let caret = fault.caret(line, 0);
    let start = caret.find('^').unwrap();
    let word: String = line.chars().skip(start).take(caret.chars().count() - start).collect();
    (word, fault.message)
}

#[test]
fn a_fault_points_at_the_word_and_says_what_was_expected() {
    for (line, word, message) in [
        (
            "shwo ports",
            "shwo",
            "\"shwo\" is unknown here; expected one of: show, call, load, monitor, ping, configure, edit, \
             help, exit, quit",
        ),
        ("show e", "e", "\"e\" is ambiguous: ecofilter-balancer, events"),
        ("show po", "po", "\"po\" is ambiguous: ports, port"),
        ("show port", "", "the command is not complete; expected NAME"),
        ("show port p1", "", "the command is not complete; expected statistics"),
        (
            "show port \"a b\" statistics",
            "\"a b\"",
            "\"a b\" is not a name; a name is 1 to 63 letters, digits, - _ .",
        ),
        ("show events last 0", "0", "\"0\" is not a number from 1 to 1000000"),
        ("show events last many", "many", "\"many\" is not a number from 1 to 1000000"),
        ("show ports now", "now", "\"now\" is one word too many; expected one of: Enter, |"),
        (
            "show ports | mach a",
            "mach",
            "\"mach\" is unknown here; expected one of: match, except, count, json, no-more",
        ),
        ("show ports | match", "", "the command is not complete; expected REGEX"),
        ("show ports | match \"(\"", "\"(\"", "\"(\" is not a regular expression: unclosed group"),
        ("help | json", "json", "\"json\" is unknown here; expected one of: match, except, count, no-more"),
        ("show ports | count | json", "json", "json must come before match, except and count"),
        (
            "show configuration | xml | json",
            "json",
            "json must come before match, except and count, and alone",
        ),
        ("show configuration | count | defaults", "defaults", "defaults must come before match"),
        ("show ports |", "", "the command is not complete; expected one of: match, except"),
        ("show port | count", "|", "the command before | is not complete; expected NAME"),
        ("exit | count", "|", "this command has no output to filter; expected Enter"),
        ("show ecof look src 10.0.0.1", "", "the command is not complete; expected dst"),
        ("show ecof look src 10.0.0.1 src 10.0.0.2", "src", "\"src\" is given twice; expected dst"),
        ("show ecof look src 10.0.0", "10.0.0", "\"10.0.0\" is not an IPv4 or IPv6 address"),
        ("show ecof look vlan 4096", "4096", "\"4096\" is not a list of VLAN ids"),
        ("show ecof look proto 256", "256", "\"256\" is not a protocol; expected 0 to 255"),
        ("show ecof look side up", "up", "\"up\" is not one of: lan, wan"),
        ("call ecof set main off", "off", "\"off\" is not one of: auto, bypass, primary"),
        ("load replace \"a", "\"a", "this quote has no end; expected a closing \""),
        ("\"show\" ports", "\"show\"", "\"show\" is unknown here"),
    ] {
        let (at, said) = fault(line);
        assert_eq!(at, word, "{line}: {said}");
        assert!(said.starts_with(message), "{line}: {said}");
    }
}

#[test]
fn empty_lines_are_nothing() {
    assert!(parse("").unwrap().is_none());
    assert!(parse("  \t ").unwrap().is_none());
}

#[test]
fn a_question_mark_belongs_to_quotes_and_regular_expressions() {
    for line in ["show ports | match a", "show ports | match \"", "show \"x", "show ports | except \"a b"] {
        assert!(question_mark_is_literal(line), "{line}");
    }
    for line in [
        "",
        "sh",
        "show ports ",
        "show ports | match ",
        "show ports | m",
        "show wrong words",
        "load replace \"a b\" ",
    ] {
        assert!(!question_mark_is_literal(line), "{line}");
    }
}

proptest::proptest! {
    /// Words of the grammar, half words, quotes, bars and noise.
    #[test]
    fn no_line_is_too_strange(
        words in proptest::collection::vec("show|ecof|flow|look|src|vlan|\\||match|\"|\\\\|10\\.0\\.0\\.1|é|.{0,3}", 0..9),
        blank in "[ \t]?",
    ) {
        let line = words.join(" ") + &blank;
        if let Err(fault) = parse(&line) {
            assert!(fault.caret(&line, 3).contains('^'));
        }
        for (at, _) in line.char_indices() {
            question_mark_is_literal(&line[..at]);
            if let Ok(found) = following(&line[..at], &Fixed) {
                assert!(line.is_char_boundary(found.start) && found.start <= at);
            }
        }
    }
}
