//! Vector files: tables, frames and what must become of them, one format for every data plane.
//! `docs/vectors.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dataplane::entry::Entry;
use dataplane::schema::counters;
use dataplane::{PortId, Reason, Verdict};
use serde::{Deserialize, Serialize};
use site::{Condition, Ids, Site, UnitForwarding};
use swpipe::counters::Count;

use super::compare::in_words;
use super::entry_text::EntryText;
use super::plane::{Ending, Outcome, Plane};
use crate::error::{Doing, Error, Result};

/// A vector file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VectorFile {
    /// What it shows, and the contract's section.
    pub about: String,
    /// Table entries; or `site`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryText>,
    /// A site's configuration, as `swpipe run --config` takes it; or `entries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<serde_json::Value>,
    /// With `site`: pairs that are down, as `UNIT/PAIR`; all others are up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs_down: Vec<String>,
    /// With `site`: units that are set by hand.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitByHand>,
    /// Frames, in the order in which they are sent.
    pub frames: Vec<FrameText>,
    /// Counters after all frames; those that are not named are not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterText>,
}

/// A unit's state when it is set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitByHand {
    /// Everything to the peer port.
    Bypass,
    /// Pair states are ignored.
    Primary,
}

/// A frame and what must become of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrameText {
    /// Its name within the file.
    pub name: String,
    /// Port that it comes in by.
    pub port: PortId,
    /// The frame from the destination MAC, without FCS, in hexadecimal digits.
    pub hex: String,
    /// The verdict that it ends in.
    pub verdict: Verdict,
    /// The reason, where the verdict has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What leaves; a keep-alive to the controller is said by its verdict.
    pub outputs: Vec<OutputText>,
}

/// A frame that leaves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutputText {
    /// The port.
    pub port: PortId,
    /// The frame, in hexadecimal digits.
    pub hex: String,
}

/// A counter after all frames, bytes as the contract counts them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CounterText {
    /// Name of the array.
    pub counter: String,
    /// The cell.
    pub cell: usize,
    /// Frames.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How one frame, or one counter, of a file came out.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// What differs, in words; none where all is right.
    pub differs: Option<String>,
}

impl VectorFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not there, or is no vector file.
    pub fn load(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).doing(|| format!("reading {}", file.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Input { file: file.display().to_string(), reason: error.to_string() })
    }

    /// Writes a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn save(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        std::fs::write(file, text + "\n").doing(|| format!("writing {}", file.display()))
    }

    /// The entries that it asks for.
    ///
    /// # Errors
    /// A name that the schema does not have, or a site that is wrong.
    pub fn table_entries(&self) -> Result<Vec<Entry>> {
        let Some(site) = &self.site else {
            return self.entries.iter().map(EntryText::entry).collect();
        };
        let wrong = |reason: String| Error::Input { file: "site".into(), reason };
        let site = Site::from_json(&site.to_string()).map_err(|error| wrong(error.to_string()))?;
        for pair in &self.pairs_down {
            if !site.pair_names().any(|name| name.to_string() == *pair) {
                return Err(wrong(format!("pairs-down names {pair}, which the site does not have")));
            }
        }
        let mut condition = Condition::with_up(&site, |pair| !self.pairs_down.contains(&pair.to_string()));
        for (unit, by_hand) in &self.units {
            if !site.units.contains_key(unit) {
                return Err(wrong(format!("units names {unit}, which the site does not have")));
            }
            let forwarding = match by_hand {
                UnitByHand::Bypass => UnitForwarding::Bypass,
                UnitByHand::Primary => UnitForwarding::Primary,
            };
            condition.units.insert(unit.clone(), forwarding);
        }
        Ok(site::desired(&site, &Ids::allocate(&site, &Ids::default()), &condition))
    }

    /// Ports that its frames come in and leave by.
    #[must_use]
    pub fn ports(&self) -> BTreeSet<PortId> {
        let ports = |frame: &FrameText| {
            std::iter::once(frame.port)
                .chain(frame.outputs.iter().map(|output| output.port))
                .collect::<Vec<_>>()
        };
        self.frames.iter().flat_map(ports).collect()
    }

    /// Runs it on a data plane.
    ///
    /// # Errors
    /// The file is wrong, or the data plane broke.
    pub fn run(&self, plane: &mut dyn Plane) -> Result<Vec<Checked>> {
        plane.load(&self.table_entries()?)?;
        let mut checked = Vec::new();
        let mut all_sent = true;
        for text in &self.frames {
            let expected = text.expected()?;
            let sent = bytes(&text.hex)?;
            if !plane.takes(&sent) {
                let name = format!("{} (not sent: {} takes no such frame)", text.name, plane.name());
                checked.push(Checked { name, differs: None });
                all_sent = false;
                continue;
            }
            plane.expect(&expected);
            let found = plane.frame(text.port, &sent)?;
            let differs = (found != expected)
                .then(|| format!("  expected: {}\n  found: {}", in_words(&expected), in_words(&found)));
            checked.push(Checked { name: text.name.clone(), differs });
        }
        // Counters of frames that were not sent would be missing.
        if self.counters.is_empty() || !all_sent {
            return Ok(checked);
        }
        let counts = plane.counts()?;
        for text in &self.counters {
            let array = counters::ALL.iter().find(|array| array.name == text.counter).ok_or_else(|| {
                Error::Input {
                    file: "counters".into(),
                    reason: format!("there is no counter {}", text.counter),
                }
            })?;
            let found = counts.cells.get(&(array.id, text.cell)).copied().unwrap_or_default();
            let expected = Count { packets: text.packets, bytes: text.bytes };
            let differs =
                (found != expected).then(|| format!("  expected: {expected:?}\n  found: {found:?}"));
            checked.push(Checked { name: format!("{}[{}]", text.counter, text.cell), differs });
        }
        Ok(checked)
    }
}

fn bytes(digits: &str) -> Result<Vec<u8>> {
    hex::decode(digits)
        .map_err(|error| Error::Input { file: "frame".into(), reason: format!("{digits:?}: {error}") })
}

impl FrameText {
    /// A frame with what became of it; none where that is no reason of the contract.
    #[must_use]
    pub fn of(name: &str, port: PortId, frame: &[u8], outcome: &Outcome) -> Option<Self> {
        let Ending::Counted(reason) = outcome.ending else { return None };
        Some(FrameText {
            name: name.to_owned(),
            port,
            hex: hex::encode(frame),
            verdict: reason.verdict(),
            reason: reason.as_str().map(str::to_owned),
            outputs: outcome
                .sent
                .iter()
                .map(|(port, frame)| OutputText { port: *port, hex: hex::encode(frame) })
                .collect(),
        })
    }

    fn expected(&self) -> Result<Outcome> {
        let reason = Reason::ALL
            .iter()
            .copied()
            .find(|reason| reason.verdict() == self.verdict && reason.as_str() == self.reason.as_deref())
            .ok_or_else(|| Error::Input {
                file: format!("frame {}", self.name),
                reason: format!("verdict {} has no reason {:?}", self.verdict, self.reason),
            })?;
        let mut sent = self
            .outputs
            .iter()
            .map(|output| Ok((output.port, bytes(&output.hex)?)))
            .collect::<Result<Vec<_>>>()?;
        sent.sort();
        let to_controller = match reason {
            Reason::KeepAlive => Some((self.port, bytes(&self.hex)?)),
            _ => None,
        };
        Ok(Outcome { sent, to_controller, ending: Ending::Counted(reason) })
    }
}
