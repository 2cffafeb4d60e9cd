//! Numbers of links, units, pairs and rules in the data plane: given once, kept while the thing lives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use dataplane::{LinkIndex, PairId, UnitId};

use crate::check::Site;
use crate::order;
use crate::profile::Reference;

/// A pair by the names of its unit and its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairName {
    /// The unit's name.
    pub unit: String,
    /// The pair's name.
    pub pair: String,
}

impl fmt::Display for PairName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.unit, self.pair)
    }
}

impl PairName {
    /// What a reference is known by; no pair is, since no unit has an empty name.
    #[must_use]
    pub fn of_reference(reference: &Reference) -> Option<PairName> {
        let pair = match reference {
            Reference::None => return None,
            Reference::Controller => "controller".to_owned(),
            Reference::Ports { lan_port, wan_port } => format!("{lan_port}:{wan_port}"),
        };
        Some(PairName { unit: String::new(), pair })
    }

    /// A reference, not a pair of a unit.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.unit.is_empty()
    }
}

impl FromStr for PairName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (unit, pair) = text.split_once('/').ok_or(())?;
        Ok(PairName { unit: unit.to_owned(), pair: pair.to_owned() })
    }
}

/// The numbers in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Indices in steering headers.
    pub links: BTreeMap<String, LinkIndex>,
    /// Units.
    pub units: BTreeMap<String, UnitId>,
    /// Pairs, and the references that are probed as pairs are.
    pub pairs: BTreeMap<PairName, PairId>,
    /// The index in the steering headers of probes, which no link has; `None` where links have them all.
    pub probe: Option<LinkIndex>,
    /// Table priorities of flows.
    pub flows: BTreeMap<String, i32>,
}

impl Ids {
    /// Numbers for `site`: what `previous` has stays, the rest gets the lowest free ones in the order in
    /// which the configuration lists them.
    #[must_use]
    pub fn allocate(site: &Site, previous: &Ids) -> Ids {
        Ids::allocate_but(site, previous, &BTreeSet::new())
    }

    /// [`Ids::allocate`] that gives a new link none of these indices while there are others: frames that an appliance
    /// still has may carry them.
    #[must_use]
    pub fn allocate_but(site: &Site, previous: &Ids, retired: &BTreeSet<LinkIndex>) -> Ids {
        let mut flows: Vec<(u16, &str)> =
            site.flows.values().map(|flow| (flow.priority, flow.name.as_str())).collect();
        // The table wants the winner highest: lower priority first, and of equals the later name first.
        flows.sort_by(|(p, a), (q, b)| p.cmp(q).then_with(|| b.cmp(a)));
        let ordered: Vec<&str> = flows.into_iter().map(|(_, name)| name).collect();
        // A number from a longer list of links may have no VID above a new base.
        let links: BTreeMap<String, LinkIndex> = previous
            .links
            .iter()
            .filter(|(_, link)| site.steering.can_name(**link))
            .map(|(name, link)| (name.clone(), *link))
            .collect();
        let links = keep_or_give(site.links.iter().map(|link| link.name.clone()), &links, retired, |id| {
            u8::try_from(id).ok().map(LinkIndex).filter(|link| site.steering.can_name(*link))
        });
        let is_free =
            |link: &LinkIndex| site.steering.can_name(*link) && !links.values().any(|taken| taken == link);
        // The last one, which links get last.
        let probe = previous.probe.into_iter().chain((0..=u8::MAX).rev().map(LinkIndex)).find(is_free);
        Ids {
            links,
            probe,
            units: keep_or_give(site.units.keys().cloned(), &previous.units, &BTreeSet::new(), |id| {
                u8::try_from(id).ok().map(UnitId)
            }),
            pairs: keep_or_give(
                site.pair_names().chain(site.references()),
                &previous.pairs,
                &BTreeSet::new(),
                |id| u16::try_from(id).ok().map(PairId),
            ),
            flows: order::number(&ordered, &previous.flows),
        }
    }
}

/// The check bounds how many there are, so that numbers never run out.
fn keep_or_give<N: Ord + Clone, I: Ord + Copy>(
    names: impl Iterator<Item = N>,
    previous: &BTreeMap<N, I>,
    retired: &BTreeSet<I>,
    id: impl Fn(usize) -> Option<I>,
) -> BTreeMap<N, I> {
    let names: Vec<N> = names.collect();
    let mut given: BTreeMap<N, I> =
        names.iter().filter_map(|name| previous.get(name).map(|id| (name.clone(), *id))).collect();
    let taken: BTreeSet<I> = given.values().copied().collect();
    let all = || (0..).map_while(&id).filter(|id| !taken.contains(id));
    let mut free = all().filter(|id| !retired.contains(id)).chain(all().filter(|id| retired.contains(id)));
    for name in names {
        if !given.contains_key(&name)
            && let Some(id) = free.next()
        {
            given.insert(name, id);
        }
    }
    given
}
