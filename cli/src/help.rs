//! `help`, from the table of commands.

use std::fmt::Write as _;

use crate::commands::FILTERS;
use crate::grammar::{Form, Node, Step, forms};

/// What `help` and the words after it say.
pub fn help(root: &'static Step, topic: &[&'static Node]) -> String {
    let mut text = String::new();
    if topic.is_empty() {
        usage(&mut text, &forms(&[], root));
        text.push_str("\nThe output of a command can be filtered:\n");
        usage(&mut text, &forms(&[], &FILTERS).into_iter().map(piped).collect::<Vec<_>>());
        text.push_str(
            "\n? lists what can follow, Tab completes, unambiguous beginnings of words will do.\n\
             \"...\" makes one value of words with blanks. Ctrl-C cancels, Ctrl-D leaves.\n",
        );
        return text;
    }
    // An option and its value are described with their command.
    let command = topic.iter().rposition(|node| !forms(&[], &node.then).is_empty());
    let command = command.unwrap_or(topic.len() - 1);
    for node in topic {
        let _ = writeln!(text, "{}: {}", node.title(), node.help);
    }
    text.push('\n');
    let path = &topic[..=command];
    let found = forms(path, &topic[command].then);
    usage(&mut text, &found);
    if let [form] = &found[..] {
        options(&mut text, form);
    }
    text
}

fn piped(mut form: Form) -> Form {
    form.nodes.insert(0, &BAR);
    form
}

static BAR: Node = Node {
    what: crate::grammar::What::Word("|"),
    help: "Pass the output through a filter",
    then: Step { nodes: &[], options: &[], end: crate::grammar::End::More },
};

/// The command on a line, what it does below it.
fn usage(text: &mut String, forms: &[Form]) {
    for form in forms {
        let _ = writeln!(text, "  {}\n      {}", wrap(&form.usage(), 76).join("\n    "), form.help());
    }
}

fn options(text: &mut String, form: &Form) {
    if !form.options.is_empty() {
        text.push_str("\nin any order:\n");
    }
    for option in form.options {
        let _ = writeln!(text, "  {:10}  {}", option.node.title(), option.node.help);
    }
}

/// Lines of at most so many columns.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                let _ = write!(line, " {word}");
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ROOT;
    use crate::grammar::parse;

    fn of(line: &str) -> String {
        help(&ROOT, &parse(&ROOT, line).unwrap().unwrap().topic)
    }

    #[test]
    fn help_names_every_command() {
        let text = of("help");
        // Whatever was wrapped.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for form in forms(&[], &ROOT) {
            assert!(words.contains(&form.usage()), "{}", form.usage());
        }
        assert!(text.contains("| match REGEX"));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn help_on_a_command_narrows() {
        assert!(of("help sh port").contains("show port NAME statistics"));
        assert!(!of("help sh port").contains("show version"));
        assert!(of("help show ecof look").contains("Source address of the session"));
        assert!(of("help show ecof look src").contains("Source address of the session"));
    }
}
