//! A configuration with candidates, as sluiced keeps it, in memory.

use std::sync::{Arc, OnceLock};

use api::{Applied, Changed, Checked, Format, LoadMode, Request, Revision, Source};
use serde_json::{Value, json};
use tree::defaults::Defaults;
use tree::{Path, Schema, Tree};

/// What runs in the beginning.
const SITE: &str = include_str!("../../../configs/examples/site.json");

pub fn schema() -> Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    Arc::clone(SCHEMA.get_or_init(|| Arc::clone(yang::Yang::load().unwrap().schema())))
}

/// Everything but the candidates.
pub struct Device {
    pub running: Tree,
    pub startup: Tree,
    /// The newest first; the first is what runs.
    pub revisions: Vec<(Revision, Tree)>,
    /// Connections so far.
    pub sessions: usize,
    /// The data plane does not answer now.
    pub stuck: bool,
    /// Goes away when it shall apply.
    pub vanish: bool,
    /// Lines with this text are refused.
    pub refuse: Option<String>,
}

impl Default for Device {
    fn default() -> Self {
        let running = tree::json::read(&schema(), SITE).unwrap();
        let revision = Revision {
            number: 0,
            user: "root".into(),
            origin: "startup".into(),
            time: "2026-11-30T00:35:55Z".into(),
            comment: None,
            changes: 40,
            confirm_by: None,
        };
        Device {
            startup: running.clone(),
            revisions: vec![(revision, running.clone())],
            running,
            sessions: 0,
            stuck: false,
            vanish: false,
            refuse: None,
        }
    }
}

fn place(words: &[String]) -> Result<Path, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    tree::line::show(&schema(), &Path::default(), &words).map_err(|fault| fault.to_string())
}

/// What the YANG modules say.
fn check(tree: &Tree) -> Result<(), String> {
    let json = tree::json::write(tree, &Path::default(), Defaults::Explicit);
    let faults = yang::Yang::load().unwrap().validate(&json).err().unwrap_or_default();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

fn read(text: &str, into: &Tree) -> Result<Tree, String> {
    let mut tree = into.clone();
    let faults = |faults: Vec<tree::read::ReadFault>| {
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    if text.trim_start().starts_with('{') {
        tree.overlay(&tree::json::read(&schema(), text).map_err(faults)?);
    } else if text.trim_start().starts_with('<') {
        tree.overlay(&tree::xml::read(&schema(), text).map_err(faults)?);
    } else {
        tree::set_lines::read(&mut tree, text).map_err(|fault| fault.to_string())?;
    }
    Ok(tree)
}

impl Device {
    fn source<'a>(&'a self, source: Source, candidate: Option<&'a Tree>) -> Result<&'a Tree, String> {
        match source {
            Source::Running => Ok(&self.running),
            Source::Startup => Ok(&self.startup),
            Source::Candidate => Ok(candidate.unwrap_or(&self.running)),
            Source::Rollback(number) => {
                let revision = self.revisions.get(number as usize);
                revision.map(|(_, tree)| tree).ok_or(format!("there is no revision {number}"))
            }
        }
    }

    /// Answers what is about the configuration. The candidate is the connection's.
    pub fn answer(
        &mut self,
        request: &Request,
        candidate: &mut Option<Tree>,
    ) -> Option<Result<Value, String>> {
        self.ask(request, candidate).transpose()
    }

    fn ask(&mut self, request: &Request, candidate: &mut Option<Tree>) -> Result<Option<Value>, String> {
        let now = candidate.clone().unwrap_or_else(|| self.running.clone());
        let empty = Tree::new(schema());
        let mut notes = Vec::new();
        let new = match request {
            Request::Schema => return Ok(Some(serde_json::to_value(&*schema()).unwrap())),
            Request::ShowTree { source, path, format, defaults } => {
                let defaults = if *defaults { Defaults::All } else { Defaults::Explicit };
                let tree = self.source(*source, candidate.as_ref())?;
                let text = match format {
                    Format::Set => tree::set_lines::write(tree, &place(path)?),
                    Format::Json => tree::json::write(tree, &place(path)?, defaults),
                    Format::Xml => tree::xml::write(tree, &place(path)?, defaults),
                };
                return Ok(Some(json!(text)));
            }
            Request::Keys { path, prefix } => {
                let list = place(path)?;
                let keys = now.keys(&list, &[]).into_iter().filter(|key| key.starts_with(prefix.as_str()));
                return Ok(Some(json!(keys.collect::<Vec<_>>())));
            }
            Request::Compare { with } => {
                let with = self.source(*with, candidate.as_ref())?;
                return Ok(Some(json!(tree::compare_lines(with, &now))));
            }
            Request::Check => {
                check(&now)?;
                let changes = tree::compare_lines(&self.running, &now).len();
                let checked = Checked { changes, effects: vec!["no session moves".into()], warnings: vec![] };
                return Ok(Some(serde_json::to_value(checked).unwrap()));
            }
            Request::Apply { confirmed, comment } => {
                check(&now)?;
                let changes = tree::compare_lines(&self.running, &now).len();
                for (revision, _) in &mut self.revisions {
                    revision.number += 1;
                    revision.confirm_by = None;
                }
                let revision = Revision {
                    number: 0,
                    user: "eng".into(),
                    origin: "cli".into(),
                    time: "2026-11-30T08:00:00Z".into(),
                    comment: comment.clone(),
                    changes,
                    confirm_by: confirmed.map(|minutes| format!("2026-11-30T08:{minutes:02}:00Z")),
                };
                self.revisions.insert(0, (revision, now.clone()));
                self.running = now;
                *candidate = None;
                let applied = Applied { inserted: changes, changes, ..Applied::default() };
                return Ok(Some(serde_json::to_value(applied).unwrap()));
            }
            Request::Save => {
                self.startup = self.running.clone();
                return Ok(Some(Value::Null));
            }
            Request::ShowRollbacks => {
                let revisions: Vec<_> = self.revisions.iter().map(|(revision, _)| revision).collect();
                return Ok(Some(json!(revisions)));
            }
            Request::Edit { lines }
                if self.refuse.as_ref().is_some_and(|word| lines.iter().any(|line| line.contains(word))) =>
            {
                return Err(format!("{} is refused", self.refuse.as_deref().unwrap_or_default()));
            }
            Request::Edit { lines } => read(&lines.join("\n"), &now)?,
            Request::Load { mode: LoadMode::Merge | LoadMode::Set, text } => read(text, &now)?,
            Request::Load { mode: LoadMode::Replace, text } => read(text, &empty)?,
            Request::Load { mode: LoadMode::Early, .. } => {
                notes.push("nat-unit-queues has no counterpart".into());
                self.startup.clone()
            }
            Request::Rollback { number } => self.source(Source::Rollback(*number), None)?.clone(),
            Request::Discard => self.running.clone(),
            _ => return Ok(None),
        };
        let changes = tree::compare_lines(&now, &new).len();
        *candidate = Some(new).filter(|_| *request != Request::Discard);
        Ok(Some(serde_json::to_value(Changed { changes, notes }).unwrap()))
    }
}
