//! `swpipe replay`: frames of captures through the pipeline, without any interface.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dataplane::entry::{Entry, Update};
use dataplane::target::TargetProfile;
use dataplane::{PortId, Reason};
use serde::Serialize;
use site::{Condition, Ids, PairName, Site};

use crate::capture::{self, CaptureError, CaptureFile, Captured};
use crate::device::{Atomicity, Device};
use crate::edit::edited;
use crate::pipeline::{Decision, decide};
use crate::tables::RuleSlot;

/// What to replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Port name and capture file, in the order given.
    pub inputs: Vec<(String, PathBuf)>,
    /// Pairs held down, by `PAIR` or `UNIT/PAIR`.
    pub down: Vec<String>,
    /// Where one capture a port goes.
    pub out: PathBuf,
    /// Where one JSON line a frame goes.
    pub verdicts: PathBuf,
    /// The target whose limits the pipeline has.
    pub profile: &'static TargetProfile,
}

/// Why nothing, or not all, was replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A capture is unreadable, or cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// `--in` names a port that the configuration does not have.
    #[error("--in {port}: the configuration has no such port; it has {known}")]
    UnknownPort {
        /// The name.
        port: String,
        /// The ports there are.
        known: String,
    },
    /// `--down` names a pair that the configuration does not have.
    #[error("--down {pair}: the configuration has no such pair; it has {known}")]
    UnknownPair {
        /// The name.
        pair: String,
        /// The pairs there are.
        known: String,
    },
    /// The tables refuse the configuration: it does not fit the target.
    #[error("the data plane refuses the configuration: {0}")]
    Refused(String),
    /// An output would overwrite an input.
    #[error("{}: is the same file as --in {port}={}, which would be overwritten; choose another --out or --verdicts", .output.display(), .input.display())]
    Overwrites {
        /// Port of the input.
        port: String,
        /// The input.
        input: PathBuf,
        /// The capture or the verdicts that would be written.
        output: PathBuf,
    },
    /// An output cannot be written.
    #[error("{}: {source}", .path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// One line of the verdicts; absent values are null.
#[derive(Debug, Serialize)]
struct Line<'a> {
    port: &'a str,
    index: usize,
    verdict: &'static str,
    reason: Option<&'static str>,
    flow: Option<&'a str>,
    unit: Option<&'a str>,
    hash: Option<String>,
    bucket: Option<u16>,
    pair: Option<&'a str>,
    core: Option<u8>,
    out_port: Option<&'a str>,
    out_len: Option<usize>,
}

/// A device that is programmed with a site, and the names of what is in it.
pub struct Programmed {
    /// The device.
    pub device: Device,
    links_ports: HashMap<PortId, String>,
    units: HashMap<dataplane::UnitId, String>,
    pairs: HashMap<dataplane::PairId, String>,
    rules: HashMap<RuleSlot, String>,
}

/// Writes a site's tables into an empty device, the pairs that `up` names being up; the numbers given.
///
/// # Errors
/// [`ReplayError::Refused`] where the site does not fit the device's target.
pub fn program(device: &Device, site: &Site, up: impl Fn(&PairName) -> bool) -> Result<Ids, ReplayError> {
    let (ids, entries) = entries(site, up);
    let updates: Vec<Update> = entries
        .into_iter()
        .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
        .collect();
    device.write(&updates, Atomicity::AllOrNothing).map_err(|results| {
        let first = results.into_iter().find_map(Result::err);
        ReplayError::Refused(first.map(|fault| fault.to_string()).unwrap_or_default())
    })?;
    Ok(ids)
}

/// The entries that a site asks for, and the numbers in them.
#[must_use]
pub fn entries(site: &Site, up: impl Fn(&PairName) -> bool) -> (Ids, Vec<Entry>) {
    let ids = Ids::allocate(site, &Ids::default());
    let entries = site::desired(site, &ids, &Condition::with_up(site, up));
    (ids, entries)
}

impl Programmed {
    /// Programs a device of a target with the site's tables, all pairs but `down` being up.
    ///
    /// # Errors
    /// [`ReplayError::Refused`] where the site does not fit the target.
    pub fn with_down(
        site: &Site,
        down: &BTreeSet<PairName>,
        profile: &'static TargetProfile,
    ) -> Result<Self, ReplayError> {
        let device = Device::new(profile);
        let ids = program(&device, site, |pair| !down.contains(pair))?;
        Ok(Programmed {
            rules: device.rule_names(),
            device,
            links_ports: site.ports.values().map(|port| (port.id, port.name.clone())).collect(),
            units: ids.units.iter().map(|(name, id)| (*id, name.clone())).collect(),
            pairs: ids.pairs.iter().map(|(name, id)| (*id, name.pair.clone())).collect(),
        })
    }

    fn line<'a>(&'a self, port: &'a str, index: usize, decision: &Decision) -> Line<'a> {
        let serving = decision.balanced.and_then(|balanced| balanced.serving);
        Line {
            port,
            index,
            verdict: decision.reason.verdict().as_str(),
            reason: decision.reason.as_str(),
            flow: decision.rule.and_then(|slot| self.rules.get(&slot)).map(String::as_str),
            unit: decision.unit.and_then(|unit| self.units.get(&unit)).map(String::as_str),
            hash: decision.balanced.map(|balanced| format!("{:08x}", balanced.hash)),
            bucket: decision.balanced.map(|balanced| balanced.bucket.0),
            pair: serving.and_then(|(pair, _)| self.pairs.get(&pair)).map(String::as_str),
            core: serving.map(|(_, core)| core.0),
            out_port: decision.exit.and_then(|exit| self.links_ports.get(&exit.port)).map(String::as_str),
            out_len: decision.exit.map(|exit| exit.length),
        }
    }
}

/// How many frames ended in each reason.
pub type Totals = BTreeMap<Reason, usize>;

/// Replays: reads all inputs first, so that a bad one leaves nothing behind.
///
/// # Errors
/// [`ReplayError`]; outputs are only begun when every input was readable.
pub fn replay(site: &Site, replay: &Replay) -> Result<Totals, ReplayError> {
    let down = pairs_named(site, &replay.down)?;
    let frames = read_inputs(site, &replay.inputs)?;
    let captures: Vec<(PortId, PathBuf)> = serving_ports(site)
        .iter()
        .filter_map(|port| site.ports.get(port))
        .map(|port| (port.id, replay.out.join(format!("{}.pcap", port.name))))
        .collect();
    keep_inputs(&replay.inputs, captures.iter().map(|(_, path)| path).chain([&replay.verdicts]))?;
    let programmed = Programmed::with_down(site, &down, replay.profile)?;
    let snapshot = programmed.device.snapshot().load_full();
    let output = |path: &Path| {
        let path = path.to_owned();
        move |source| ReplayError::Output { path, source }
    };

    fs::create_dir_all(&replay.out).map_err(output(&replay.out))?;
    let verdicts = File::create(&replay.verdicts).map_err(output(&replay.verdicts))?;
    let mut verdicts = BufWriter::new(verdicts);
    let nanoseconds = frames.iter().any(|frame| frame.captured.time % 1000 != 0);
    let mut files: HashMap<PortId, CaptureFile> = HashMap::new();
    for (port, path) in &captures {
        files.insert(*port, CaptureFile::create(path, nanoseconds)?);
    }

    let mut totals = Totals::new();
    for Input { port, id, index, captured } in &frames {
        let decision = decide(&snapshot, *id, &captured.bytes);
        *totals.entry(decision.reason).or_default() += 1;
        let copy = decision.copy.and_then(|copy| copy.exit);
        for exit in [decision.exit, copy].into_iter().flatten() {
            if let Some(file) = files.get_mut(&exit.port) {
                file.append(captured.time, &edited(&captured.bytes, exit.edit))?;
            }
        }
        let line = programmed.line(port, *index, &decision);
        serde_json::to_writer(&mut verdicts, &line)
            .map_err(std::io::Error::from)
            .and_then(|()| verdicts.write_all(b"\n"))
            .map_err(output(&replay.verdicts))?;
    }
    verdicts.flush().map_err(output(&replay.verdicts))?;
    for file in files.into_values() {
        file.finish()?;
    }
    Ok(totals)
}

struct Input {
    port: String,
    id: PortId,
    index: usize,
    captured: Captured,
}

/// All frames in the order of their capture times; equal times in the order of the inputs.
fn read_inputs(site: &Site, inputs: &[(String, PathBuf)]) -> Result<Vec<Input>, ReplayError> {
    let mut frames = Vec::new();
    for (port, path) in inputs {
        let id = site.ports.get(port).map(|port| port.id).ok_or_else(|| ReplayError::UnknownPort {
            port: port.clone(),
            known: site.ports.keys().cloned().collect::<Vec<_>>().join(", "),
        })?;
        for (index, captured) in capture::read(path)?.into_iter().enumerate() {
            frames.push(Input { port: port.clone(), id, index, captured });
        }
    }
    frames.sort_by_key(|frame| frame.captured.time);
    Ok(frames)
}

/// Refuses outputs that are an input, by whatever path or link.
fn keep_inputs<'a>(
    inputs: &[(String, PathBuf)],
    outputs: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), ReplayError> {
    // Writing to a device or a pipe destroys nothing; what is not there yet is no input.
    let identity = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((file.dev(), file.ino()))
    };
    let read: HashMap<(u64, u64), &(String, PathBuf)> =
        inputs.iter().filter_map(|input| Some((identity(&input.1)?, input))).collect();
    for output in outputs {
        if let Some((port, input)) = identity(output).and_then(|file| read.get(&file).copied()) {
            return Err(ReplayError::Overwrites {
                port: port.clone(),
                input: input.clone(),
                output: output.clone(),
            });
        }
    }
    Ok(())
}

fn pairs_named(site: &Site, names: &[String]) -> Result<BTreeSet<PairName>, ReplayError> {
    let mut pairs = BTreeSet::new();
    for name in names {
        let found: Vec<PairName> =
            site.pair_names().filter(|pair| pair.pair == *name || pair.to_string() == *name).collect();
        if found.is_empty() {
            return Err(ReplayError::UnknownPair {
                pair: name.clone(),
                known: site.pair_names().map(|pair| pair.to_string()).collect::<Vec<_>>().join(", "),
            });
        }
        pairs.extend(found);
    }
    Ok(pairs)
}

/// Names of the ports that serve a link or a pair.
fn serving_ports(site: &Site) -> BTreeSet<String> {
    let links = site.links.iter().flat_map(|link| [&link.lan_port, &link.wan_port]);
    let pairs = site
        .units
        .values()
        .flat_map(|unit| unit.pairs.values())
        .flat_map(|pair| [&pair.lan_port, &pair.wan_port]);
    links.chain(pairs).cloned().collect()
}
