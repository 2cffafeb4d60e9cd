//! What an operator works at: the session with sluiced, and where in the configuration one is. The commands
//! and what completes them share it, so that both see the same candidate.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{EventFilter, Request};
use serde_json::Value;
use tree::Schema;

use crate::commands::{CONFIGURE, ROOT};
use crate::grammar::{Args, Names, Source, Step};
use crate::session::{Interrupt, Session};
use crate::token::quote;

/// Names older than this are asked for anew.
const FRESH: Duration = Duration::from_secs(2);
/// Completion does without what takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Subjects are those of so many events.
const SUBJECTS: usize = 1000;

/// Of what kind, and of which unit.
type Known = HashMap<(Source, Option<String>), (Instant, Vec<String>)>;

/// The session, and where one is.
#[derive(Debug)]
pub struct Desk {
    session: RefCell<Session>,
    /// In configuration mode the levels that `exit` goes back to, the one where one is the last; else none. In
    /// words: another sluiced may have another schema.
    levels: RefCell<Vec<Vec<String>>>,
    known: RefCell<Known>,
    /// Until when an apply must be confirmed.
    confirm_by: Cell<Option<Instant>>,
}

impl Desk {
    /// In operational mode; the session connects with the first question.
    pub fn new(socket: &Path, interrupt: Interrupt) -> Self {
        let session = RefCell::new(Session::new(socket, interrupt));
        Desk { session, levels: RefCell::default(), known: RefCell::default(), confirm_by: Cell::new(None) }
    }

    /// The session. Nobody keeps it beyond a question.
    pub fn session(&self) -> RefMut<'_, Session> {
        self.session.borrow_mut()
    }

    /// In configuration mode.
    pub fn configuring(&self) -> bool {
        !self.levels.borrow().is_empty()
    }

    /// The commands of the mode.
    pub fn root(&self) -> &'static Step {
        if self.configuring() { &CONFIGURE } else { &ROOT }
    }

    /// `[edit ...]`, in configuration mode.
    pub fn banner(&self) -> Option<String> {
        if !self.configuring() {
            return None;
        }
        let words: String = self.level().iter().map(|word| format!(" {}", quote(word))).collect();
        Some(format!("[edit{words}]"))
    }

    /// Into configuration mode, at the top or a level.
    pub fn enter(&self, level: Vec<String>) {
        *self.levels.borrow_mut() = vec![level];
    }

    /// Down to a level.
    pub fn edit(&self, level: Vec<String>) {
        self.levels.borrow_mut().push(level);
    }

    /// Back up to a level. `exit` goes on from there to what was above it.
    pub fn up(&self, level: Vec<String>) {
        let mut levels = self.levels.borrow_mut();
        levels.retain(|above| above.len() < level.len() && level.starts_with(above));
        levels.push(level);
    }

    /// Back to the level before; `false` where there is none.
    pub fn back(&self) -> bool {
        let mut levels = self.levels.borrow_mut();
        let back = levels.len() > 1;
        if back {
            levels.pop();
        }
        back
    }

    /// From now on an apply waits so long to be confirmed, or none does.
    pub fn await_confirmation(&self, time: Option<Duration>) {
        self.confirm_by.set(time.map(|time| Instant::now() + time));
    }

    /// How long an apply still waits to be confirmed; none where none does.
    pub fn unconfirmed(&self) -> Option<Duration> {
        let left = self.confirm_by.get()?.saturating_duration_since(Instant::now());
        Some(left).filter(|left| !left.is_zero())
    }

    /// Out of configuration mode.
    pub fn leave(&self) {
        self.levels.borrow_mut().clear();
    }
}

impl Names for Desk {
    fn names(&self, source: Source, args: &Args) -> Vec<String> {
        let unit = args.text("unit").filter(|_| source == Source::Pairs);
        let known = (source, unit.clone());
        if let Some((since, names)) = self.known.borrow().get(&known)
            && since.elapsed() < FRESH
        {
            return names.clone();
        }
        let (request, field) = match source {
            Source::Units => (Request::ShowUnit { unit: None }, "name"),
            Source::Ports => (Request::ShowPorts, "name"),
            Source::Flows => (Request::ShowFlow { flow: None }, "name"),
            Source::Profiles => (Request::ShowLiveness { profile: None }, "profile"),
            Source::Links => (Request::ShowLink, "name"),
            Source::Pairs => (Request::ShowUnit { unit }, "name"),
            Source::Subjects => (
                Request::ShowEvents { after: 0, last: Some(SUBJECTS), filter: EventFilter::default() },
                "subject",
            ),
        };
        let Ok(Value::Array(mut things)) = self.session().ask_within(&request, PATIENCE) else {
            return Vec::new();
        };
        if source == Source::Pairs {
            let pairs = things.iter_mut().map(|unit| unit["pairs"].take());
            things = pairs.filter_map(|pairs| pairs.as_array().cloned()).flatten().collect();
        }
        let mut names: Vec<String> =
            things.iter().filter_map(|thing| thing[field].as_str().map(String::from)).collect();
        names.sort();
        names.dedup();
        self.known.borrow_mut().insert(known, (Instant::now(), names.clone()));
        names
    }

    fn schema(&self) -> Option<Arc<Schema>> {
        self.session().schema().ok()
    }

    fn level(&self) -> Vec<String> {
        self.levels.borrow().last().cloned().unwrap_or_default()
    }

    fn keys(&self, list: &[String], prefix: &str) -> Vec<String> {
        let request = Request::Keys { path: list.to_vec(), prefix: prefix.into() };
        let answer = self.session().ask_within(&request, PATIENCE);
        answer.ok().and_then(|keys| serde_json::from_value(keys).ok()).unwrap_or_default()
    }

    fn values(&self, leaf: &[String], prefix: &str) -> Vec<String> {
        let request = Request::ShowTree {
            source: api::Source::Candidate,
            path: leaf.to_vec(),
            format: api::Format::Json,
            defaults: false,
        };
        let answer = self.session().ask_within(&request, PATIENCE).ok();
        let text = answer.as_ref().and_then(Value::as_str).unwrap_or("[]");
        let values: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        let values = values.into_iter().map(|value| value.as_str().map_or(value.to_string(), String::from));
        values.filter(|value| value.starts_with(prefix)).collect()
    }
}
