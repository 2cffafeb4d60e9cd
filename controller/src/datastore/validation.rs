//! From a configuration to the site that it describes, through all rules.

use std::fmt;

use serde_json::Value;
use site::{Site, SiteError};
use tree::{Path, Tree, json};
use yang::Yang;

/// A configuration that breaks rules.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// Of the YANG modules.
    #[error("{}", lines(.0))]
    Model(Vec<yang::Fault>),
    /// Of this version of the balancer, or of what the modules cannot say.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// A fault of the model itself.
    #[error("the configuration cannot be checked: {0}")]
    Yang(#[from] yang::YangError),
}

fn lines(faults: &[impl fmt::Display]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The site of a configuration, by way of the one that is in force.
///
/// Where nothing but flows differs, only those are read and checked, beside everything that is no flow: no rule of the
/// modules leads from one flow to another, and what holds between them [`Site::with_flows`] checks.
///
/// # Errors
/// [`Invalid`], every fault of the first kind that there is.
pub fn site_of(yang: &Yang, running: (&Tree, &Site), next: &Tree) -> Result<Site, Invalid> {
    let (tree, site) = running;
    let Some(list) = Path::to(next.schema(), &["ecofilter-balancer", "flow"]) else {
        return whole(yang, next, None);
    };
    let (rest, was) = (next.without(&list), tree.without(&list));
    if rest != was {
        return whole(yang, next, Some(&list));
    }
    let changed: Vec<(String, Option<Value>)> = tree
        .entries_that_differ(next, &list)
        .into_iter()
        .map(|entry| {
            let name = entry.last_key().unwrap_or_default().to_owned();
            let value = next.contains(&entry).then(|| json::entry_value(next, &entry));
            (name, value)
        })
        .collect();
    let mut few = rest;
    for (name, value) in &changed {
        if value.is_some() {
            few.copy_from(next, &list.with_key(name));
        }
    }
    check(yang, &few)?;
    Ok(site.with_flows(changed)?)
}

/// The site of a configuration that nothing is known of.
///
/// # Errors
/// [`Invalid`].
pub fn site_from_nothing(yang: &Yang, next: &Tree) -> Result<Site, Invalid> {
    whole(yang, next, Path::to(next.schema(), &["ecofilter-balancer", "flow"]).as_ref())
}

fn whole(yang: &Yang, next: &Tree, flows: Option<&Path>) -> Result<Site, Invalid> {
    check(yang, next)?;
    let Some(list) = flows else { return Ok(Site::from_parts(&json::value(next), [])?) };
    let rest = json::value(&next.without(list));
    Ok(Site::from_parts(&rest, next.entries(list).map(|entry| json::entry_value(next, &entry)))?)
}

fn check(yang: &Yang, tree: &Tree) -> Result<(), Invalid> {
    let faults = yang.validate(&json::write(tree, &Path::default()))?;
    if faults.is_empty() { Ok(()) } else { Err(Invalid::Model(faults)) }
}
