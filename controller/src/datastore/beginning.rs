//! What a start begins with: what was in force before a restart of the process alone, else the startup file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::Severity;
use site::Site;
use tree::Tree;
use yang::Yang;

use super::files::read_text;
use super::journal::{Authorship, Journal, JournalError, Revision};
use super::validation::site_from_nothing;
use crate::clock;
use crate::daemon::DEFAULT_CONFIG;
use crate::state_dir::digest;

/// Origin of a configuration that came from the startup file.
const STARTUP: &str = "startup";

/// What the datastores begin with.
#[derive(Debug)]
pub struct Beginning {
    /// Startup file.
    pub startup: PathBuf,
    /// Journal.
    pub journal: Journal,
    /// Revisions, newest last; never empty.
    pub revisions: Vec<Revision>,
    /// Of the newest revision.
    pub site: Arc<Site>,
    /// What there is to tell, with its severity.
    pub news: Vec<(Severity, String)>,
    /// Why a device that has links is left alone until something is applied.
    pub held: Option<String>,
}

/// There is nothing to begin with.
#[derive(Debug, thiserror::Error)]
pub enum BeginningError {
    /// The startup file.
    #[error("{}: {reason}", .path.display())]
    Startup {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Beginning {
    /// Reads the startup file and the journal in the state directory. A startup file that is not there is an empty
    /// configuration, unless it was named.
    ///
    /// # Errors
    /// [`BeginningError`].
    pub fn find(yang: &Yang, config: Option<&Path>, state_dir: &Path) -> Result<Self, BeginningError> {
        let startup = config.unwrap_or(Path::new(DEFAULT_CONFIG)).to_owned();
        let fault = |reason: String| BeginningError::Startup { path: startup.clone(), reason };
        let mut news = Vec::new();
        let mut held = None;
        let text = match fs::read_to_string(&startup) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && config.is_none() => {
                let reason = format!("{} is not there: the configuration is empty", startup.display());
                held = Some(format!(
                    "{reason}, but the data plane has links; it is left as it is until a configuration is applied"
                ));
                news.push((Severity::Warning, reason));
                "{}".to_owned()
            }
            Err(error) => return Err(fault(error.to_string())),
        };
        let schema = yang.schema();
        let from_startup = || -> Result<(Tree, Site), BeginningError> {
            let tree = read_text(schema, &text).map_err(fault)?;
            let site = site_from_nothing(yang, &tree).map_err(|invalid| fault(invalid.to_string()))?;
            Ok((tree, site))
        };
        let (mut journal, found) = Journal::open(&state_dir.join("history"), schema, &digest(&text))?;
        news.extend(found.unreadable.into_iter().map(|reason| (Severity::Error, reason)));
        let mut revisions = found.revisions;
        if let Some(newest) = revisions.last().filter(|_| found.resume) {
            match site_from_nothing(yang, &newest.tree) {
                Ok(site) => {
                    if newest.by.origin != STARTUP {
                        let reason = format!(
                            "what was applied over {} is in force, until that file changes or the machine starts again",
                            startup.display()
                        );
                        news.push((Severity::Info, reason));
                    }
                    return Ok(Beginning {
                        startup,
                        journal,
                        revisions,
                        site: Arc::new(site),
                        news,
                        held: None,
                    });
                }
                Err(invalid) => {
                    news.push((
                        Severity::Error,
                        format!("what was applied last is not usable any more: {invalid}"),
                    ));
                }
            }
        }
        let (tree, site) = from_startup()?;
        let revision = Revision {
            sequence: revisions.last().map_or(1, |newest| newest.sequence + 1),
            by: Authorship {
                user: "sluiced".to_owned(),
                origin: STARTUP.to_owned(),
                time: clock::calendar(clock::now()),
                comment: Some(startup.display().to_string()),
            },
            tree,
            unconfirmed: None,
        };
        let kept = match revisions.last() {
            Some(before) => journal.change(before, &revision),
            None => Ok(()),
        };
        // A full disk is no reason not to forward.
        if let Err(error) = kept.and_then(|()| journal.saved(&revision, &digest(&text))) {
            news.push((
                Severity::Error,
                format!("{error}; what is applied is in force, but a restart would not find it"),
            ));
        }
        revisions.push(revision);
        Ok(Beginning { startup, journal, revisions, site: Arc::new(site), news, held })
    }
}
