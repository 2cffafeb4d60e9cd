//! `testbed bench-check`: what criterion measured of the frame path in memory, as a table, and against figures that were
//! kept. A machine that is slower by the yardstick is no regression.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::page::{self, table};
use crate::error::{Doing, Error, Result};

/// The benchmark that is none of ours.
const YARDSTICK: &str = "yardstick/";
/// The part of the page.
const BEGIN: &str = "<!-- in memory: begin -->";
const END: &str = "<!-- in memory: end -->";

/// How to run it.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Where criterion has left its figures.
    #[arg(long, value_name = "DIR", default_value = "target/criterion")]
    criterion: PathBuf,
    /// The figures that were kept.
    #[arg(long, value_name = "FILE", default_value = "swpipe/benches/baseline.json")]
    baseline: PathBuf,
    /// Percent slower that pass as noise, beyond the intervals of both.
    #[arg(long, default_value_t = 10.0)]
    noise: f64,
    /// Keeps these figures instead of comparing with those that were kept.
    #[arg(long)]
    record: bool,
    /// Writes the table into this page, between the marks for it.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Nanoseconds for an element, which is a frame, or a byte of the yardstick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Figure {
    median: f64,
    /// Interval of the median, 95 %.
    lower: f64,
    upper: f64,
}

/// Figures by the names of their benchmarks.
type Figures = BTreeMap<String, Figure>;

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Baseline {
    processor: String,
    date: String,
    figures: Figures,
}

/// Shows the figures; whether none is a regression.
///
/// # Errors
/// Nothing was measured, or a file can't be read or written.
pub fn run(options: &Options) -> Result<bool> {
    let figures = read(&options.criterion)?;
    let machine = Machine::of_now();
    if let Some(page) = &options.page {
        page::splice_between(page, (BEGIN, END), &section(&figures, &machine))?;
    }
    if options.record {
        let kept = Baseline { processor: machine.processor, date: machine.date, figures };
        let text = serde_json::to_string_pretty(&kept).unwrap_or_default() + "\n";
        std::fs::write(&options.baseline, text)
            .doing(|| format!("writing {}", options.baseline.display()))?;
        println!("{} figures kept in {}", kept.figures.len(), options.baseline.display());
        return Ok(true);
    }
    let text = std::fs::read_to_string(&options.baseline).doing(|| {
        format!("reading {}: `testbed bench-check --record` writes it", options.baseline.display())
    })?;
    let kept: Baseline = serde_json::from_str(&text).map_err(|error| Error::Input {
        file: options.baseline.display().to_string(),
        reason: error.to_string(),
    })?;
    for (file, figures) in [(&options.criterion, &figures), (&options.baseline, &kept.figures)] {
        if !figures.keys().any(|name| name.starts_with(YARDSTICK)) {
            let reason = format!("the benchmark {YARDSTICK}... is missing, by which machines are compared");
            return Err(Error::Input { file: file.display().to_string(), reason });
        }
    }
    let (text, slower) = comparison(&figures, &kept.figures, options.noise / 100.0);
    println!("against {} of {}\n\n{text}", kept.processor, kept.date);
    match slower {
        0 => println!("no regression beyond noise"),
        slower => println!("{slower} slower beyond noise"),
    }
    Ok(slower == 0)
}

/// What criterion measured last.
fn read(criterion: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let mut folders = vec![criterion.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).doing(|| {
            format!("reading {}: `cargo bench -p swpipe --bench pipeline` fills it", folder.display())
        })?;
        folders.extend(
            entries
                .filter_map(std::result::Result::ok)
                .map(|entry| entry.path())
                .filter(|path| path.is_dir()),
        );
        if folder.file_name().is_some_and(|name| name == "new") {
            let (name, figure) = figure_of(&folder)?;
            figures.insert(name, figure);
        }
    }
    if figures.is_empty() {
        let reason = "nothing was measured; run `cargo bench -p swpipe --bench pipeline`".to_owned();
        return Err(Error::Input { file: criterion.display().to_string(), reason });
    }
    Ok(figures)
}

fn figure_of(folder: &Path) -> Result<(String, Figure)> {
    let json = |file: &str| -> Result<serde_json::Value> {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Input { file: path.display().to_string(), reason: error.to_string() })
    };
    let (benchmark, estimates) = (json("benchmark.json")?, json("estimates.json")?);
    let name = benchmark["full_id"].as_str().unwrap_or_default().to_owned();
    let throughput = &benchmark["throughput"];
    let elements = throughput["Elements"].as_f64().or(throughput["Bytes"].as_f64()).unwrap_or(1.0);
    let median = &estimates["median"];
    let of = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN) / elements;
    let interval = &median["confidence_interval"];
    let figure = Figure {
        median: of(&median["point_estimate"]),
        lower: of(&interval["lower_bound"]),
        upper: of(&interval["upper_bound"]),
    };
    Ok((name, figure))
}

fn section(figures: &Figures, machine: &Machine) -> String {
    let rows: Vec<Vec<String>> = figures
        .iter()
        .filter(|(name, _)| !name.starts_with(YARDSTICK))
        .map(|(name, figure)| {
            let Figure { median, lower, upper } = figure;
            let rate = format!("{:.1}", 1e3 / median);
            vec![name.clone(), format!("{median:.1}"), format!("{lower:.1}-{upper:.1}"), rate]
        })
        .collect();
    let mut text = String::new();
    let Machine { processor, cores, kernel, date, load_before, .. } = machine;
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "`cargo bench -p swpipe --bench pipeline`, {date}: {processor}, {cores} cores, Linux {kernel}, load {load_before} \
         when it was written down. One core but where two workers are named.\n"
    );
    text + &table(&["benchmark", "ns a frame", "95 % of the median", "million frames a second"], &rows) + "\n"
}

/// A line for each benchmark, and how many are slower than they were.
fn comparison(now: &Figures, kept: &Figures, noise: f64) -> (String, usize) {
    let yardstick = |figures: &Figures| {
        figures.iter().find(|(name, _)| name.starts_with(YARDSTICK)).map_or(1.0, |(_, figure)| figure.median)
    };
    let machine = yardstick(now) / yardstick(kept);
    let mut slower = 0;
    let rows: Vec<Vec<String>> = now
        .iter()
        .filter(|(name, _)| !name.starts_with(YARDSTICK))
        .map(|(name, figure)| {
            let Some(old) = kept.get(name) else {
                return vec![name.clone(), "-".to_owned(), format!("{:.1}", figure.median), "new".to_owned()];
            };
            let change = figure.median / (old.median * machine) - 1.0;
            let is_slower = figure.lower > old.upper * machine * (1.0 + noise);
            slower += usize::from(is_slower);
            let verdict = if is_slower { "SLOWER" } else { "" };
            vec![
                name.clone(),
                format!("{:.1}", old.median * machine),
                format!("{:.1}", figure.median),
                format!("{:+.1} % {verdict}", change * 100.0).trim_end().to_owned(),
            ]
        })
        .collect();
    let text = format!(
        "The yardstick takes {machine:.2} times what it took then; the figures kept are multiplied by that.\n\n{}",
        table(&["benchmark", "kept, ns", "now, ns", "change"], &rows)
    );
    (text, slower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(median: f64) -> Figure {
        Figure { median, lower: median * 0.98, upper: median * 1.02 }
    }

    fn figures(of: &[(&str, f64)]) -> Figures {
        of.iter().map(|(name, median)| ((*name).to_owned(), figure(*median))).collect()
    }

    #[test]
    fn slower_code_is_told_from_a_slower_machine() {
        let kept = figures(&[("yardstick/hash", 1.0), ("rules/10", 30.0), ("rules/1000", 40.0)]);
        for (now, wanted) in [
            (figures(&[("yardstick/hash", 1.0), ("rules/10", 30.5), ("rules/1000", 41.0)]), 0),
            // Twice as slow all over.
            (figures(&[("yardstick/hash", 2.0), ("rules/10", 60.0), ("rules/1000", 81.0)]), 0),
            (figures(&[("yardstick/hash", 1.0), ("rules/10", 36.0), ("rules/1000", 40.0)]), 1),
            (
                figures(&[
                    ("yardstick/hash", 0.5),
                    ("rules/10", 30.0),
                    ("rules/1000", 40.0),
                    ("pairs/1", 1.0),
                ]),
                2,
            ),
        ] {
            let (text, slower) = comparison(&now, &kept, 0.1);
            assert_eq!(slower, wanted, "{text}");
            assert_eq!(text.matches("SLOWER").count(), wanted, "{text}");
        }
    }

    #[test]
    fn figures_are_read_as_criterion_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("rules/10/new");
        std::fs::create_dir_all(&new).unwrap();
        std::fs::write(
            new.join("benchmark.json"),
            r#"{"full_id": "rules/10", "throughput": {"Elements": 100}}"#,
        )
        .unwrap();
        let estimates = r#"{"median": {"confidence_interval": {"lower_bound": 2900.0, "upper_bound": 3100.0}, "point_estimate": 3000.0}}"#;
        std::fs::write(new.join("estimates.json"), estimates).unwrap();
        let read = read(folder.path()).unwrap();
        assert_eq!(read["rules/10"], Figure { median: 30.0, lower: 29.0, upper: 31.0 });
        let error = super::read(&folder.path().join("rules/10/other")).unwrap_err().to_string();
        assert!(error.contains("cargo bench"), "{error}");
    }
}
