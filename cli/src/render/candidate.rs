//! What is said about the candidate and about revisions.

use std::fmt::Write as _;

use api::{Applied, Changed, Checked, Revision};

use super::{Style, Table, Tone, harmless};

/// A number of things.
fn some(count: usize, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {one}{s}")
}

fn lines(text: &mut String, style: Style, tone: Tone, word: &str, said: &[String]) {
    for line in said {
        let _ = writeln!(text, "{} {}", style.paint(tone, word), harmless(line));
    }
}

/// `load`, `rollback` and `discard`.
pub fn changed(changed: &Changed, style: Style) -> String {
    let mut text = match changed.changes {
        0 => "the candidate is as it was\n".into(),
        changes => format!("{} in the candidate\n", some(changes, "change")),
    };
    lines(&mut text, style, Tone::Warning, "note:", &changed.notes);
    text
}

/// `check`.
pub fn checked(checked: &Checked, style: Style) -> String {
    let mut text = match checked.changes {
        0 => "the candidate is valid, and is what runs\n".into(),
        changes => format!("the candidate is valid; {} to what runs\n", some(changes, "change")),
    };
    lines(&mut text, style, Tone::Heading, "apply:", &checked.effects);
    lines(&mut text, style, Tone::Warning, "warning:", &checked.warnings);
    text
}

/// `apply`, and until when it waits.
pub fn in_force(applied: &Applied, minutes: Option<u32>, style: Style) -> String {
    let mut text = match (applied.confirmed, applied.changes, minutes) {
        (true, 0, _) => "confirmed\n".to_owned(),
        (false, 0, None) => "nothing to apply: the candidate is what runs\n".to_owned(),
        (confirmed, ..) => format!(
            "applied{}; table entries inserted {}, modified {}, deleted {}\n",
            if confirmed { ", which confirms the apply before it" } else { "" },
            applied.inserted,
            applied.modified,
            applied.deleted
        ),
    };
    lines(&mut text, style, Tone::Warning, "warning:", &applied.warnings);
    if let Some(minutes) = minutes {
        let minutes = some(minutes as usize, "minute");
        let _ = writeln!(text, "it is rolled back in {minutes} unless \"apply\" confirms it before");
    }
    text
}

/// `compare`: lines of difference in their colours.
pub fn differences(lines: &[String], style: Style) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let tone = match line.chars().next() {
            Some('+') => Tone::Good,
            Some('-') => Tone::Bad,
            Some('~') => Tone::Warning,
            _ => Tone::Plain,
        };
        let _ = writeln!(text, "{}", style.paint(tone, &harmless(line)));
        text
    })
}

/// `show rollbacks`.
pub fn rollbacks(revisions: &[Revision], style: Style) -> String {
    let mut table = Table::new(&[">No", "Time", "User", "From", ">Changes", "Comment"]);
    for revision in revisions {
        table.row([
            revision.number.into(),
            (&revision.time).into(),
            (&revision.user).into(),
            // Cells hold no blanks, so that scripts can cut them.
            revision.origin.replace(' ', ",").into(),
            revision.changes.into(),
            revision.comment.as_deref().unwrap_or_default().into(),
        ]);
    }
    let mut text = table.render(0, style);
    for revision in revisions {
        if let Some(by) = &revision.confirm_by {
            let said =
                format!("{} is rolled back at {} unless confirmed by apply", revision.number, harmless(by));
            let _ = writeln!(text, "{}", style.paint(Tone::Warning, &said));
        }
    }
    text
}
