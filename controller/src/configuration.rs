//! Requests about the configuration: the candidate of a session, and its way into force.

use api::{Changed, Format, LoadMode, Request, Source};
use serde_json::Value;
use tree::{Defaults, Path, Tree, json, line, set_lines, xml};

use crate::access;
use crate::datastore::{ApplyError, Datastores, Options, read_text, xml_document};
use crate::early;
use crate::session::Session;

/// Keys that one answer lists.
const KEYS: usize = 1000;
/// Longest comment of an apply, in characters.
const LONGEST_COMMENT: usize = 1000;
/// Longest time that an apply waits to be confirmed, in minutes: a week.
const LONGEST_WAIT: u32 = 7 * 24 * 60;

/// A request about the configuration that is refused; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// An apply, or a datastore.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A text or a line that is not understood.
    #[error("{0}")]
    Text(String),
    /// Words that are no path.
    #[error("{0}")]
    Path(String),
    /// A time.
    #[error("confirmed {0}: must be 1..{LONGEST_WAIT} minutes")]
    Minutes(u32),
    /// A comment.
    #[error("comment: must be at most {LONGEST_COMMENT} characters, none of them a control character")]
    Comment,
    /// The answer.
    #[error("the answer cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// Where words from the top lead.
fn path_of(datastores: &Datastores, words: &[String]) -> Result<Path, ConfigurationError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    line::show(datastores.schema(), &Path::default(), &words)
        .map_err(|fault| ConfigurationError::Path(fault.to_string()))
}

/// A configuration, as far as the session may see it.
fn tree_of(datastores: &Datastores, session: &Session, source: Source) -> Result<Tree, ConfigurationError> {
    let tree = match source {
        Source::Running => datastores.running().tree.clone(),
        Source::Candidate => match session.candidate() {
            Some(candidate) => candidate.tree().clone(),
            None => datastores.running().tree.clone(),
        },
        Source::Startup => datastores.startup().map_err(ApplyError::from)?,
        Source::Rollback(number) => datastores.revision(number)?.tree.clone(),
    };
    Ok(access::visible(&tree, session.role))
}

/// Answers a request about the configuration; `None` for any other.
///
/// # Errors
/// [`ConfigurationError`].
pub async fn answer(
    datastores: &std::sync::Arc<Datastores>,
    session: &mut Session,
    request: Request,
) -> Result<Option<Value>, ConfigurationError> {
    let changed = |changes| Changed { changes, notes: Vec::new() };
    let value = match request {
        Request::ShowConfiguration => {
            json::value(&tree_of(datastores, session, Source::Running)?, &Path::default())
        }
        Request::Schema => serde_json::to_value(&**datastores.schema())?,
        Request::ShowTree { source, path, format, defaults } => {
            let tree = tree_of(datastores, session, source)?;
            let defaults = if defaults { Defaults::All } else { Defaults::Explicit };
            let at = path_of(datastores, &path)?;
            Value::String(match format {
                Format::Set => set_lines::write(&tree, &at),
                Format::Json => json::write(&tree, &at, defaults),
                Format::Xml if at.is_empty() => xml_document(&tree, defaults),
                Format::Xml => xml::write(&tree, &at, defaults),
            })
        }
        Request::Keys { path, prefix } => {
            let tree = tree_of(datastores, session, Source::Candidate)?;
            let list = path_of(datastores, &path)?;
            let keys = tree.keys(&list, &[]);
            let keys: Vec<&str> =
                keys.into_iter().filter(|key| key.starts_with(&prefix)).take(KEYS).collect();
            serde_json::to_value(keys)?
        }
        Request::Edit { lines } => {
            let candidate = session.candidate_mut(datastores);
            let mut next = candidate.tree().clone();
            set_lines::read(&mut next, &lines.join("\n"))
                .map_err(|fault| ConfigurationError::Text(fault.to_string()))?;
            serde_json::to_value(changed(candidate.replace(next)))?
        }
        Request::Load { mode, text } => serde_json::to_value(load(datastores, session, mode, &text)?)?,
        Request::Rollback { number } => {
            let tree = datastores.revision(number)?.tree.clone();
            if number == 0 {
                // What others applied meanwhile is taken, so that it is no conflict any more.
                let was = session.candidate_mut(datastores).tree().clone();
                session.discard();
                let changes = tree::diff(&was, &tree).len();
                return Ok(Some(serde_json::to_value(changed(changes))?));
            }
            serde_json::to_value(changed(session.candidate_mut(datastores).replace(tree)))?
        }
        Request::Discard => {
            let before = session.candidate_mut(datastores).tree().clone();
            session.discard();
            let after = &datastores.running().tree;
            serde_json::to_value(changed(tree::diff(&before, after).len()))?
        }
        Request::Compare { with } => {
            let from = tree_of(datastores, session, with)?;
            let to = tree_of(datastores, session, Source::Candidate)?;
            serde_json::to_value(tree::compare_lines(&from, &to))?
        }
        Request::Check => serde_json::to_value(datastores.check(session.candidate_mut(datastores)).await?)?,
        Request::Apply { confirmed, comment } => {
            let confirmed = match confirmed {
                Some(minutes) if !(1..=LONGEST_WAIT).contains(&minutes) => {
                    return Err(ConfigurationError::Minutes(minutes));
                }
                minutes => minutes.map(|minutes| std::time::Duration::from_secs(60 * u64::from(minutes))),
            };
            if let Some(comment) = &comment
                && (comment.chars().count() > LONGEST_COMMENT || comment.contains(char::is_control))
            {
                return Err(ConfigurationError::Comment);
            }
            let options = Options { confirmed, comment, ..Options::default() };
            let who = session.who.clone();
            let candidate = session.candidate_mut(datastores);
            serde_json::to_value(datastores.apply(&who, candidate, options).await?)?
        }
        Request::LoadReplace { text, origin } => {
            let tree = read_text(datastores.schema(), &text).map_err(ConfigurationError::Text)?;
            let mut candidate = datastores.candidate();
            candidate.replace(tree);
            let options = Options { comment: Some(format!("load replace {origin}")), ..Options::default() };
            let applied = datastores.apply(&session.who, &mut candidate, options).await?;
            serde_json::to_value(applied)?
        }
        Request::Save => {
            datastores.save(&session.who).await?;
            Value::Null
        }
        Request::ShowRollbacks => serde_json::to_value(datastores.revisions())?,
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn load(
    datastores: &Datastores,
    session: &mut Session,
    mode: LoadMode,
    text: &str,
) -> Result<Changed, ConfigurationError> {
    let candidate = session.candidate_mut(datastores);
    let fault = ConfigurationError::Text;
    let (next, notes) = match mode {
        LoadMode::Replace => (read_text(datastores.schema(), text).map_err(fault)?, Vec::new()),
        LoadMode::Merge => {
            let mut next = candidate.tree().clone();
            next.overlay(&read_text(datastores.schema(), text).map_err(fault)?);
            (next, Vec::new())
        }
        LoadMode::Set => {
            let mut next = candidate.tree().clone();
            set_lines::read(&mut next, text).map_err(|error| fault(error.to_string()))?;
            (next, Vec::new())
        }
        LoadMode::Early => {
            let early = early::read(datastores.schema(), text).map_err(|error| fault(error.to_string()))?;
            (early.tree, early.notes)
        }
    };
    Ok(Changed { changes: candidate.replace(next), notes })
}
