//! The outcome in Markdown, for the screen and for the page on performance.

use std::fmt::Write;
use std::path::Path;

use super::outcome::{Outcome, Row};
use super::system::System;
use super::yard::Way;
use crate::error::{Doing, Error, Result};

/// What the section stands between.
const BEGIN: &str = "<!-- testbed bench: begin -->";
const END: &str = "<!-- testbed bench: end -->";

/// A table in Markdown whose columns are aligned.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    debug_assert!(rows.iter().all(|row| row.len() == head.len()), "a cell of {head:?} is missing");
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let mut text = line(&mut head.iter().copied());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    text.push_str(&line(&mut rules.iter().map(String::as_str)));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

fn mpps(rate: f64) -> String {
    format!("{:.3}", rate / 1e6)
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn saturated(row: &Row) -> String {
    let figure = row.saturated;
    format!("{} ({}-{})", mpps(figure.median), mpps(figure.least), mpps(figure.most))
}

fn share(row: &Row) -> String {
    format!("{:.1}-{:.1}", row.spread.least * 100.0, row.spread.most * 100.0)
}

/// All tables.
#[must_use]
pub fn tables(outcome: &Outcome) -> String {
    let mut text = String::new();
    let ratio = |row: &Row, to| or_dash(outcome.ratio(row, to).map(|ratio| format!("{ratio:.2}")));
    let compared: Vec<Vec<String>> = outcome
        .compared
        .iter()
        .map(|row| {
            vec![
                row.system.title().to_owned(),
                row.size.to_string(),
                saturated(row),
                or_dash(row.loss_free.map(|trial| mpps(trial.rate))),
                format!("{:.0}", row.core_ns.median),
                ratio(row, System::OvsAfXdp),
                ratio(row, System::XdpRedirect),
                share(row),
            ]
        })
        .collect();
    if !compared.is_empty() {
        text.push_str(
            "Link's LAN port to the pairs' LAN ports, million frames a second (least-most of the repetitions); the \
             ratios are of the rates at saturation; core is the system's time on its core for each frame that arrived; the share \
             is of the mean of the pairs, in percent.\n\n",
        );
        let head = [
            "system",
            "bytes",
            "saturated",
            "no loss",
            "core, ns",
            "of OVS AF_XDP",
            "of XDP redirect",
            "share",
        ];
        text.push_str(&table(&head, &compared));
    }
    let timed = outcome.compared.iter().filter_map(|row| row.latency.map(|timing| (row, timing)));
    let timed: Vec<Vec<String>> = timed
        .map(|(row, timing)| {
            let [p50, p99, p999] = timing.added().map(|added| format!("{added:.1}"));
            let cable = timing.cable;
            let cable =
                [cable.p50, cable.p99, cable.p999].map(|ns| format!("{:.1}", ns as f64 / 1e3)).join(" / ");
            let samples = timing.system.samples.to_string();
            vec![
                row.system.title().to_owned(),
                row.size.to_string(),
                mpps(timing.rate),
                p50,
                p99,
                p999,
                cable,
                samples,
            ]
        })
        .collect();
    if !timed.is_empty() {
        text.push_str("\nTime that the system adds at half of the rate without loss, µs.\n\n");
        let head = ["system", "bytes", "load, Mpps", "p50", "p99", "p99.9", "cable alone", "samples"];
        text.push_str(&table(&head, &timed));
    }
    let through: Vec<Vec<String>> = outcome
        .through
        .iter()
        .map(|row| {
            let size = row.size.to_string();
            vec![
                row.system.title().to_owned(),
                size,
                saturated(row),
                format!("{:.0}", row.core_ns.median),
                ratio(row, System::XdpRedirect),
                share(row),
            ]
        })
        .collect();
    if !through.is_empty() {
        text.push_str(
            "\nThe whole way: link, pair, appliance, pair, link; every frame passes the system twice.\n\n",
        );
        text.push_str(&table(
            &["system", "bytes", "saturated", "core, ns", "of XDP redirect", "share"],
            &through,
        ));
    }
    let scaled: Vec<Vec<String>> = outcome
        .scaled
        .iter()
        .map(|row| {
            let (pairs, workers) = (row.pairs.to_string(), row.workers.to_string());
            let core = format!("{:.0}", row.core_ns.median);
            let inlets = if row.way == Way::BothWays { "both link ports" } else { "LAN port" };
            vec![
                row.system.title().to_owned(),
                inlets.to_owned(),
                pairs,
                workers,
                row.size.to_string(),
                saturated(row),
                core,
                share(row),
            ]
        })
        .collect();
    if !scaled.is_empty() {
        text.push_str("\nPairs and workers. Of two workers, one shares its core with the generator, and each has one of the \
                       link's ports.\n\n");
        text.push_str(&table(
            &["system", "frames by", "pairs", "workers", "bytes", "saturated", "core, ns", "share"],
            &scaled,
        ));
    }
    let idle: Vec<Vec<String>> = outcome
        .idle
        .iter()
        .map(|idle| {
            let share = format!("{:.2} %", idle.share * 100.0);
            vec![
                idle.system.title().to_owned(),
                idle.ports.to_string(),
                share,
                format!("{:.0}", idle.seconds),
            ]
        })
        .collect();
    if !idle.is_empty() {
        text.push_str("\nWithout a frame: processor time of the process.\n\n");
        text.push_str(&table(&["system", "ports", "of one core", "seconds"], &idle));
    }
    for missing in &outcome.missing {
        let _ = writeln!(
            text,
            "\n{}: not measured, {}.",
            missing.system.title(),
            missing.why.trim_end_matches('.')
        );
    }
    text
}

/// The section: where and how it was measured, and the tables.
#[must_use]
pub fn section(outcome: &Outcome) -> String {
    let machine = &outcome.machine;
    let kind = if machine.is_virtual { "virtual machine" } else { "machine" };
    let mut text = format!(
        "{}: {kind}, {} cores of {}, Linux {}, load average before {:.1}; `{}`, {:.0} s.\n\n",
        machine.date,
        machine.cores,
        machine.processor,
        machine.kernel,
        machine.load_before,
        outcome.command,
        outcome.seconds
    );
    text.push_str(&tables(outcome));
    text.push_str("\nHow it was measured:\n\n");
    for sentence in &outcome.method {
        let _ = writeln!(text, "- {sentence}");
    }
    text.push_str("\nWhat each does for a frame:\n\n");
    for version in &outcome.versions {
        let _ =
            writeln!(text, "- {} ({}): {}.", version.system.title(), version.version, version.system.work());
    }
    text
}

/// Puts the section between the two marks of a page; a page that isn't there is made.
///
/// # Errors
/// The page has no marks, or can't be read or written.
pub fn splice(page: &Path, section: &str) -> Result<()> {
    splice_between(page, (BEGIN, END), section)
}

/// The same, between other marks.
///
/// # Errors
/// As [`splice`].
pub(super) fn splice_between(page: &Path, (begin, end): (&str, &str), section: &str) -> Result<()> {
    let name = page.display().to_string();
    let old = match std::fs::read_to_string(page) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => format!("{begin}\n{end}\n"),
        Err(error) => return Err(error).doing(|| format!("reading {name}")),
    };
    let new = spliced(&old, (begin, end), section).ok_or_else(|| Error::Input {
        file: name.clone(),
        reason: format!("needs a line `{begin}` and one `{end}` after it"),
    })?;
    std::fs::write(page, new).doing(|| format!("writing {name}"))
}

fn spliced(page: &str, (begin, end): (&str, &str), section: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{section}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_goes_between_the_marks_again_and_again() {
        let page = format!("# Page\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let once = spliced(&page, (BEGIN, END), "new\n").expect("has marks");
        assert_eq!(once, format!("# Page\n\n{BEGIN}\nnew\n{END}\n\nmore\n"));
        assert_eq!(spliced(&once, (BEGIN, END), "new\n").expect("has marks"), once);
        assert_eq!(spliced("# Page\n", (BEGIN, END), "new\n"), None);
        assert_eq!(spliced(&format!("{END}\n{BEGIN}\n"), (BEGIN, END), "new\n"), None);
    }

    #[test]
    fn tables_are_aligned() {
        let text = table(&["a", "bb"], &[vec!["1".into(), "2".into()], vec!["123".into(), "µ".into()]]);
        assert_eq!(text, "| a   | bb |\n| --- | -- |\n| 1   | 2  |\n| 123 | µ  |\n");
    }
}
