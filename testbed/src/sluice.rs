//! The balancer's CLI, as an engineer's script uses it, and its answers.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock;
use crate::error::{Doing, Error, Result};

/// Where the CLI is and whom it asks.
#[derive(Debug, Clone)]
pub struct Sluice {
    /// The `sluice` binary.
    pub program: PathBuf,
    /// The controller's socket.
    pub socket: PathBuf,
}

/// `show ecofilter-balancer | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Balancer {
    /// Digest of the device's bucket tables.
    #[serde(default)]
    pub config_hash: String,
    /// The units.
    pub units: Vec<Unit>,
}

/// A unit.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unit {
    /// Name.
    pub name: String,
    /// `up` or `bypass`.
    pub state: String,
    /// `auto`, `bypass` or `primary`.
    pub mode: String,
    /// Pairs.
    pub pairs: Vec<Pair>,
}

/// A pair.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pair {
    /// Name.
    pub name: String,
    /// `init`, `up`, `down`, ...
    pub state: String,
    /// Share of the unit's buckets in percent.
    #[serde(default)]
    pub share_percent: f64,
    /// Buckets by configuration.
    #[serde(default)]
    pub buckets_home: u64,
    /// Buckets now.
    #[serde(default)]
    pub buckets_now: u64,
    /// Why it is in its state.
    #[serde(default)]
    pub last_reason: Option<String>,
    /// Downs.
    #[serde(default)]
    pub flaps: u64,
    /// Frames sent to the appliance.
    #[serde(default)]
    pub tx_packets: u64,
    /// Frames that came back.
    #[serde(default)]
    pub rx_packets: u64,
    /// Worker cores that do not answer.
    #[serde(default)]
    pub cores_down: Vec<u8>,
}

impl Balancer {
    /// All pairs of all units.
    pub fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.units.iter().flat_map(|unit| &unit.pairs)
    }

    /// The state of a pair, or "absent".
    pub fn state(&self, pair: &str) -> &str {
        self.pairs().find(|known| known.name == pair).map_or("absent", |known| known.state.as_str())
    }
}

/// `show counters drops | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Frames that came in by any port.
    pub frames_in: u64,
    /// What became of them.
    pub verdicts: Vec<Verdict>,
}

/// A verdict's counter.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// `to-ecofilter`, `return`, `to-controller`, `bypass`, `drop`.
    pub verdict: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// Frames.
    pub packets: u64,
}

impl Counters {
    /// Frames with a verdict, over all reasons.
    pub fn of(&self, verdict: &str) -> u64 {
        self.verdicts.iter().filter(|entry| entry.verdict == verdict).map(|entry| entry.packets).sum()
    }

    /// Frames with a reason, over all verdicts.
    pub fn of_reason(&self, reason: &str) -> u64 {
        let with = |entry: &&Verdict| entry.reason.as_deref() == Some(reason);
        self.verdicts.iter().filter(with).map(|entry| entry.packets).sum()
    }

    /// Sum over all verdicts.
    pub fn total(&self) -> u64 {
        self.verdicts.iter().map(|entry| entry.packets).sum()
    }

    /// The reasons of a verdict that counted anything, in words.
    pub fn reasons(&self, verdict: &str) -> String {
        let counted = self.verdicts.iter().filter(|entry| entry.verdict == verdict && entry.packets > 0);
        let words: Vec<String> = counted
            .map(|entry| format!("{} {}", entry.reason.as_deref().unwrap_or("no reason"), entry.packets))
            .collect();
        if words.is_empty() { "none".into() } else { words.join(", ") }
    }
}

/// One of `show link | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// Name.
    pub name: String,
    /// LAN port.
    pub lan: PortCounters,
    /// WAN port.
    pub wan: PortCounters,
}

/// Counters of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PortCounters {
    /// Frames in.
    pub rx_packets: u64,
    /// Bytes in.
    pub rx_bytes: u64,
    /// Frames out.
    pub tx_packets: u64,
    /// Bytes out.
    pub tx_bytes: u64,
}

/// One of `show events | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Event {
    /// Rises by one.
    pub id: u64,
    /// RFC 3339.
    pub time: String,
    /// `pair`, `unit`, `port`, `configuration`, `target`, `liveness`.
    pub kind: String,
    /// Whom it is about.
    #[serde(default)]
    pub subject: String,
    /// State before.
    #[serde(default)]
    pub before: Option<String>,
    /// State after.
    #[serde(default)]
    pub after: Option<String>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// More.
    #[serde(default)]
    pub detail: serde_json::Value,
    /// When the data plane had the change, in ns after `time`.
    #[serde(default)]
    pub data_plane_ns: Option<u64>,
}

impl Event {
    /// Its instant in ns since 1970; 0 when it isn't RFC 3339.
    pub fn at_ns(&self) -> u64 {
        clock::from_rfc3339(&self.time).unwrap_or(0)
    }

    /// True where a pair was found down.
    pub fn is_down(&self) -> bool {
        self.kind == "pair" && self.after.as_deref() == Some("down")
    }

    /// True for this change of this pair. A subject may be written `unit/pair`.
    pub fn is_pair(&self, pair: &str, after: &str) -> bool {
        self.is_about(pair) && self.after.as_deref() == Some(after)
    }

    /// True where it is about this pair.
    pub fn is_about(&self, pair: &str) -> bool {
        let named = self.subject == pair || self.subject.rsplit(['/', ' ']).next() == Some(pair);
        self.kind == "pair" && named
    }
}

/// One of `show liveness profile-status | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairLiveness {
    /// The pair.
    pub pair: String,
    /// Keep-alives sent by the LAN port.
    pub lan_to_wan: Keepalives,
    /// Keep-alives sent by the WAN port.
    pub wan_to_lan: Keepalives,
}

/// Keep-alives, since the pair was configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Keepalives {
    /// Sent.
    pub sent: u64,
    /// Lost.
    pub lost: u64,
    /// Of the lost ones: came back after all.
    pub late: u64,
    /// Given up without a verdict.
    pub voided: u64,
    /// Came back in time.
    pub good: u64,
    /// Came back twice.
    pub duplicate: u64,
    /// Of a time long past.
    pub stale: u64,
    /// With a wrong tag.
    pub wrong_tag: u64,
    /// Of another controller.
    pub wrong_instance: u64,
    /// Came back on the port that they left by.
    pub looped: u64,
    /// Came back on another pair.
    pub wrong_pair: u64,
}

impl Keepalives {
    /// Of these pairs and both directions.
    pub fn sum<'p>(status: impl IntoIterator<Item = &'p PairLiveness>) -> Self {
        let mut sum = Keepalives::default();
        for one in status.into_iter().flat_map(|pair| [&pair.lan_to_wan, &pair.wan_to_lan]) {
            sum.sent += one.sent;
            sum.lost += one.lost;
            sum.late += one.late;
            sum.voided += one.voided;
            sum.good += one.good;
            sum.duplicate += one.duplicate;
            sum.stale += one.stale;
            sum.wrong_tag += one.wrong_tag;
            sum.wrong_instance += one.wrong_instance;
            sum.looped += one.looped;
            sum.wrong_pair += one.wrong_pair;
        }
        sum
    }
}

/// `show ecofilter-balancer lookup ... | json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lookup {
    /// The pair that serves the session now.
    #[serde(default)]
    pub pair: Option<String>,
    /// The core.
    #[serde(default)]
    pub core: Option<u8>,
    /// What would happen to its frames.
    pub verdict: String,
}

impl Sluice {
    /// Runs one command; its output.
    ///
    /// # Errors
    /// [`Error::Sluice`] with what it said when its exit status isn't 0.
    pub fn run(&self, command: &str) -> Result<String> {
        let output = Command::new(&self.program)
            .arg("--socket")
            .arg(&self.socket)
            .args(["-c", command])
            .output()
            .doing(|| format!("starting {}", self.program.display()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = [&output.stderr[..], &output.stdout[..]]
            .map(|part| String::from_utf8_lossy(part).trim().to_string());
        Err(Error::Sluice {
            command: command.into(),
            reason: format!("{}: {}", output.status, said.join(" ")),
        })
    }

    /// Applies some lines of configuration mode.
    ///
    /// # Errors
    /// As [`Sluice::run`].
    pub fn configure(&self, lines: &[&str]) -> Result<String> {
        let script = ["configure"]
            .iter()
            .chain(lines)
            .chain(&["apply", "exit", "exit"])
            .fold(String::new(), |script, line| script + line + "\n");
        let mut child = Command::new(&self.program)
            .arg("--socket")
            .arg(&self.socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(|| format!("starting {}", self.program.display()))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).doing(|| "giving the shell its script".into())?;
        }
        let output = child.wait_with_output().doing(|| "waiting for the shell".into())?;
        let [said, complaints] = [&output.stdout[..], &output.stderr[..]]
            .map(|part| String::from_utf8_lossy(part).trim().to_string());
        if output.status.success() {
            return Ok(said);
        }
        Err(Error::Sluice {
            command: lines.join("; "),
            reason: format!("{}: {complaints} {said}", output.status),
        })
    }

    /// Runs a `show` with `| json`.
    ///
    /// # Errors
    /// [`Error::Sluice`] also when the answer has another shape.
    pub fn show<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        let command = format!("show {what} | json");
        let output = self.run(&command)?;
        serde_json::from_str(&output)
            .map_err(|error| Error::Sluice { command, reason: format!("{error} in {output:.400}") })
    }

    /// Units and pairs.
    ///
    /// # Errors
    /// As [`Sluice::show`].
    pub fn balancer(&self) -> Result<Balancer> {
        self.show("ecofilter-balancer")
    }

    /// Events after `id`.
    ///
    /// # Errors
    /// As [`Sluice::show`].
    pub fn events_after(&self, id: u64) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = self.show("events")?;
        events.retain(|event| event.id > id);
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_cli_are_read() {
        let balancer: Balancer = serde_json::from_str(
            r#"{"config-hash": "ab", "units": [{"name": "main", "state": "up", "mode": "auto",
                "pairs": [{"name": "a", "state": "down", "tx-packets": 4}]}]}"#,
        )
        .expect("balancer");
        assert_eq!(balancer.state("a"), "down");
        assert_eq!(balancer.state("b"), "absent");
        let counters: Counters = serde_json::from_str(
            r#"{"frames-in": 7, "verdicts": [{"verdict": "bypass", "reason": "pair-down", "packets": 3},
                {"verdict": "drop", "reason": "no-link", "packets": 4}]}"#,
        )
        .expect("counters");
        assert_eq!((counters.total(), counters.of("drop")), (7, 4));
        assert_eq!(counters.reasons("bypass"), "pair-down 3");
        assert_eq!(counters.reasons("return"), "none");
    }

    #[test]
    fn events_name_pair_and_state() {
        let event: Event = serde_json::from_str(
            r#"{"id": 1, "time": "2025-01-01T00:00:00Z", "kind": "pair", "subject": "main/a", "after": "down"}"#,
        )
        .expect("event");
        assert!(event.is_pair("a", "down"));
        assert!(!event.is_pair("a", "up"));
        assert_eq!(event.at_ns(), 1_735_689_600_000_000_000);
    }
}
