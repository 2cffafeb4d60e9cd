//! Frames that others made: published vectors and captures.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Doing, Error, Result};
use crate::garbage;

#[derive(Deserialize)]
struct Published {
    frame: String,
}

/// The published frames, and those of captures, in `vectors` (as `dataplane/vectors`).
///
/// # Errors
/// A file that is not there or unreadable.
pub fn published(vectors: &Path) -> Result<Vec<Vec<u8>>> {
    let file = vectors.join("hash.json");
    let text = std::fs::read_to_string(&file).doing(|| format!("reading {}", file.display()))?;
    let wrong = |reason: String| Error::Input { file: file.display().to_string(), reason };
    let published: Vec<Published> = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut frames = published
        .iter()
        .map(|published| hex::decode(&published.frame).map_err(|error| wrong(error.to_string())))
        .collect::<Result<Vec<_>>>()?;
    for capture in garbage::captures(vectors).unwrap_or_default() {
        frames.extend(garbage::read_capture(&capture)?);
    }
    Ok(frames)
}

/// The frames of every capture in a directory; none where there is no such directory. Files that are no captures
/// are left out.
pub fn captured(directory: &Path) -> Option<Vec<Vec<u8>>> {
    let captures: Vec<PathBuf> = garbage::captures(directory)?;
    Some(captures.iter().filter_map(|capture| garbage::read_capture(capture).ok()).flatten().collect())
}
