//! What a scenario found: named checks with figures.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::screen::Screen;

/// One promise and how it was kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Check {
    /// The promise.
    pub name: String,
    /// Kept or not.
    pub passed: bool,
    /// What was measured.
    pub figure: String,
}

/// The findings of one scenario on one topology.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the topology.
    pub topology: String,
    /// In order.
    pub checks: Vec<Check>,
    /// What should be known but is no promise.
    pub notes: Vec<String>,
    /// Why it wasn't run, if it wasn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    #[serde(skip)]
    began: Instant,
    #[serde(skip)]
    screen: Arc<Screen>,
}

impl Findings {
    /// Nothing found yet.
    pub fn new(scenario: &str, topology: &str, screen: Arc<Screen>) -> Self {
        Findings {
            scenario: scenario.into(),
            topology: topology.into(),
            checks: Vec::new(),
            notes: Vec::new(),
            skipped: None,
            seconds: 0.0,
            began: Instant::now(),
            screen,
        }
    }

    /// Tells the user what is going on.
    pub fn say(&self, text: &str) {
        self.screen.say(text);
    }

    /// Records a check.
    pub fn check(&mut self, name: &str, passed: bool, figure: impl Into<String>) {
        let figure = figure.into();
        if !passed {
            self.say(&format!("FAILED {name}: {figure}"));
        }
        self.checks.push(Check { name: name.into(), passed, figure });
    }

    /// Records something worth knowing, once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.say(&text);
            self.notes.push(text);
        }
    }

    /// Stops the clock.
    pub fn close(&mut self) {
        self.seconds = self.began.elapsed().as_secs_f64();
    }

    /// Says that and why the scenario isn't run.
    pub fn skip(&mut self, why: &str) {
        self.say(&format!("SKIPPED {}: {why}", self.scenario));
        self.skipped = Some(why.into());
    }

    /// True when there are checks and all passed, or the scenario was skipped.
    pub fn passed(&self) -> bool {
        self.skipped.is_some() || !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }

    /// A table of the checks and a closing line.
    pub fn table(&self) -> String {
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(text, "\nscenario {} on topology {}", self.scenario, self.topology);
        for check in &self.checks {
            let mark = if check.passed { "ok    " } else { "FAILED" };
            let _ = writeln!(text, "  {mark} {:<width$}  {}", check.name, check.figure);
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note   {note}");
        }
        if let Some(why) = &self.skipped {
            let _ = writeln!(text, "  SKIPPED {why}");
            return text;
        }
        let kept = self.checks.iter().filter(|check| check.passed).count();
        let _ = writeln!(text, "  {kept} of {} checks passed in {:.1} s", self.checks.len(), self.seconds);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_check_fails_the_scenario_and_none_is_no_success() {
        let mut findings = Findings::new("s", "t", Arc::new(Screen::silent()));
        assert!(!findings.passed());
        findings.check("good", true, "1");
        assert!(findings.passed());
        findings.check("bad", false, "2 of 3");
        assert!(!findings.passed());
        let table = findings.table();
        assert!(table.contains("FAILED bad   2 of 3") && table.contains("1 of 2 checks passed"), "{table}");
        let json = serde_json::to_value(&findings).expect("JSON");
        assert_eq!(json["checks"][1]["passed"], false);
    }

    #[test]
    fn a_skipped_scenario_says_so() {
        let mut findings = Findings::new("s", "t", Arc::new(Screen::silent()));
        findings.skip("no such thing here");
        assert!(findings.passed());
        assert!(findings.table().contains("SKIPPED no such thing here"));
    }
}
