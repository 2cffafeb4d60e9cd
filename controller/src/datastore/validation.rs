//! From a configuration to the site that it describes, through all rules.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use site::{FlowPart, Site, SiteError};
use tree::data::Keys;
use tree::{Data, Defaults, Fields, Kind, NodeId, Path, Schema, Tree, json};
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
    let Some(list) = path_to(next.schema(), &["ecofilter-balancer", "flow"]) else {
        return whole(yang, next, None, None);
    };
    let (rest, was) = (without(next, &list), without(tree, &list));
    if rest != was {
        return whole(yang, next, Some(&list), Some(running));
    }
    let mut few = rest;
    let mut changed: Vec<(String, Option<Value>)> = Vec::new();
    for path in differing(&list, tree, next) {
        let name =
            path.0.last().and_then(|step| step.keys.first()).map(ToString::to_string).unwrap_or_default();
        let value = next.contains(&path).then(|| {
            few.overlay(&next.only(&path));
            json::value(next, &path)
        });
        changed.push((name, value));
    }
    check(yang, &few)?;
    Ok(site.with_flows(changed)?)
}

/// The path of a node outside of lists.
#[must_use]
pub fn path_to(schema: &Schema, names: &[&str]) -> Option<Path> {
    let mut path = Path::default();
    for name in names {
        path = path.child(schema.child(path.node(), name)?.id);
    }
    Some(path)
}

/// A configuration without what is at a path.
#[must_use]
pub fn without(tree: &Tree, path: &Path) -> Tree {
    let mut rest = tree.clone();
    rest.remove(path);
    rest
}

/// Entries of a list that are not the same in two trees.
fn differing(list: &Path, before: &Tree, after: &Tree) -> Vec<Path> {
    let Some(node) = list.node() else { return Vec::new() };
    let entries = |tree: &Tree| -> BTreeMap<Keys, Fields> {
        tree.entries(list).map(|(keys, fields)| (keys.clone(), fields.clone())).collect()
    };
    let (before, after) = (entries(before), entries(after));
    let parent = list.parent().unwrap_or_default();
    let gone = before.keys().filter(|keys| !after.contains_key(*keys));
    let others =
        after.iter().filter(|(keys, fields)| before.get(*keys) != Some(*fields)).map(|(keys, _)| keys);
    gone.chain(others).map(|keys| parent.step(node, keys.clone())).collect()
}

/// The site of a configuration that nothing is known of.
///
/// # Errors
/// [`Invalid`].
pub(super) fn site_from_nothing(yang: &Yang, next: &Tree) -> Result<Site, Invalid> {
    whole(yang, next, path_to(next.schema(), &["ecofilter-balancer", "flow"]).as_ref(), None)
}

/// All rules. Flows that are as in `running` are taken from there, so that both sites share them.
fn whole(
    yang: &Yang,
    next: &Tree,
    flows: Option<&Path>,
    running: Option<(&Tree, &Site)>,
) -> Result<Site, Invalid> {
    check(yang, next)?;
    let list = flows.and_then(|list| Some((list, list.node()?, list.parent().unwrap_or_default())));
    let Some((list, node, parent)) = list else {
        return Ok(Site::from_parts(&json::value(next, &Path::default()), [])?);
    };
    let rest = json::value(&without(next, list), &Path::default());
    let before: BTreeMap<&Keys, &Fields> =
        running.map(|(tree, _)| tree.entries(list).collect()).unwrap_or_default();
    let flows = next.entries(list).map(|(keys, fields)| {
        let same = before.get(keys).is_some_and(|was| *was == fields);
        let known = running.filter(|_| same).and_then(|(_, site)| site.flows.get(keys.first()?.as_ref()));
        match known {
            Some(flow) => FlowPart::Known(flow.clone()),
            None => FlowPart::Written(json::value(next, &parent.step(node, keys.clone()))),
        }
    });
    Ok(Site::from_parts(&rest, flows)?)
}

fn check(yang: &Yang, tree: &Tree) -> Result<(), Invalid> {
    // First of all: rules between the entries of a list take time with the square of their number.
    let mut faults = Vec::new();
    too_many(tree.schema(), &Path::default(), tree.root(), &mut faults);
    if !faults.is_empty() {
        return Err(Invalid::Model(faults));
    }
    yang.validate(&json::write(tree, &Path::default(), Defaults::Explicit)).map_err(Invalid::Model)?;
    let faults = unreadable_keys(tree);
    if faults.is_empty() { Ok(()) } else { Err(Invalid::Model(faults)) }
}

/// Keys of users that look like keys and are none: whoever has one would stay outside.
fn unreadable_keys(tree: &Tree) -> Vec<yang::Fault> {
    let schema = tree.schema();
    let Some(users) = path_to(schema, &["access", "user"]) else { return Vec::new() };
    let (Some(node), Some(parent)) = (users.node(), users.parent()) else { return Vec::new() };
    let Some(leaf) = schema.child(Some(node), "ssh-key") else { return Vec::new() };
    let mut faults = Vec::new();
    for (keys, _) in tree.entries(&users) {
        let at = parent.step(node, keys.clone()).child(leaf.id);
        for line in json::value(tree, &at).as_array().into_iter().flatten().filter_map(|line| line.as_str()) {
            if let Err(reason) = netconf::credentials::check_key(line) {
                faults.push(yang::Fault {
                    path: at.words(schema),
                    instance: at.xpath(schema),
                    at: at.clone(),
                    value: Some(line.to_owned()),
                    message: format!("is no public key as in authorized_keys ({reason})"),
                    app_tag: None,
                    kind: yang::FaultKind::Pattern,
                });
            }
        }
    }
    faults
}

/// Lists with more entries than the modules allow.
fn too_many(schema: &Schema, at: &Path, fields: &Fields, faults: &mut Vec<yang::Fault>) {
    for (node, data) in fields.iter() {
        match data {
            Data::Fields(inside) => too_many(schema, &at.child(node), inside, faults),
            Data::Entries(entries) => {
                let here = at.child(node);
                if let Kind::List { max: Some(max), .. } = schema.node(node).kind
                    && entries.len() > max as usize
                {
                    faults.push(yang::Fault {
                        path: here.words(schema),
                        instance: here.xpath(schema),
                        at: here,
                        value: Some(format!("{} entries", entries.len())),
                        message: format!("at most {max}"),
                        app_tag: Some("too-many-elements".to_owned()),
                        kind: yang::FaultKind::Elements,
                    });
                } else if has_lists(schema, node) {
                    for (keys, inside) in entries.iter() {
                        too_many(schema, &at.step(node, keys.clone()), inside, faults);
                    }
                }
            }
            Data::Leaf(_) | Data::Values(_) => {}
        }
    }
}

/// Whether there are lists below a node that can have too many entries.
fn has_lists(schema: &Schema, node: NodeId) -> bool {
    schema
        .below(Some(node))
        .any(|child| matches!(child.kind, Kind::List { max: Some(_), .. }) || has_lists(schema, child.id))
}
