//! A configuration in the place of the running one: all or nothing, and in an order in which no frame leaves by a
//! wrong link.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::{Applied, EventKind, Severity};
use dataplane::{LinkIndex, PairId};
use site::{Ids, PairName, Site, UnitForwarding};
use swpipe::run::PortSpec;
use tokio::sync::watch;

use super::{Engine, EngineError, recover, supervised};
use crate::clock;
use crate::difference::{Tables, Updates, by_place, tally};
use crate::event::News;
use crate::keepalives::Command as LivenessCommand;
use crate::target::{Standing, Target, TargetError};

/// How long appliances get to give back what they have before steering headers change.
const EMPTY_AFTER: Duration = Duration::from_secs(1);
/// How long, ns, the index of a link that is gone is given to no other: longer than appliances keep frames.
const RETIRED_FOR: u64 = 10_000_000_000;
impl<T: Target> Engine<T> {
    pub(super) async fn apply(
        &mut self,
        site: Arc<Site>,
        origin: &str,
        standing: &watch::Receiver<Standing>,
    ) -> Result<Applied, EngineError> {
        let result = self.try_apply(site, standing).await;
        let news = |severity, reason| News::now(severity, EventKind::Configuration, "running", reason);
        match &result {
            Ok(applied) => {
                let Applied { inserted, modified, deleted, .. } = applied;
                self.events.log(news(
                    Severity::Info,
                    format!(
                        "applied from {origin}: {inserted} inserted, {modified} modified, {deleted} deleted"
                    ),
                ));
            }
            Err(error) => {
                self.events
                    .log(news(Severity::Error, format!("refused from {origin}, nothing changed: {error}")));
            }
        }
        result
    }

    pub(super) fn effects(&self, site: &Site) -> Result<Vec<String>, EngineError> {
        self.checked(site)?;
        Ok(self.site.effects(site))
    }

    /// Numbers of a site that could be put in force, for all that is known before anything is touched.
    fn checked(&self, site: &Site) -> Result<Ids, EngineError> {
        site.fits(self.target.profile())?;
        let mut previous = self.ids.clone();
        for link in self.site.moved_links(site) {
            // A frame that is inside an appliance must not come back to a port that was another link's.
            previous.links.remove(link);
        }
        let mut retired: BTreeSet<LinkIndex> = self.retired.keys().copied().collect();
        retired.extend(self.ids.links.values().copied());
        let ids = Ids::allocate_but(site, &previous, &retired);
        supervised(site, &ids, &self.kept.unit_modes, &BTreeSet::new())?;
        Ok(ids)
    }

    /// All units into bypass until what is inside appliances has come back: what carries the old header after that
    /// finds no link.
    async fn empty_appliances(&mut self) -> Result<(), TargetError> {
        let mut condition = self.condition.clone();
        for unit in self.site.units.keys() {
            condition.units.insert(unit.clone(), UnitForwarding::Bypass);
        }
        let wanted = tokio::task::block_in_place(|| {
            by_place(site::desired_but_rules(&self.site, &self.ids, &condition))
        });
        self.change_to(wanted).await?;
        tokio::time::sleep(EMPTY_AFTER).await;
        Ok(())
    }

    async fn try_apply(
        &mut self,
        site: Arc<Site>,
        standing: &watch::Receiver<Standing>,
    ) -> Result<Applied, EngineError> {
        self.checked(&site)?;
        match self.held.take() {
            Some(_) => self.adopt(standing).await?,
            None => self.reachable(standing).await?,
        }
        let ids = self.checked(&site)?;
        let recabled = recabled(&self.site, &site);
        let up = self
            .condition
            .up
            .iter()
            .filter(|name| site.pair(name).is_some_and(|pair| pair.admin != site::Admin::Down))
            .filter(|name| !recabled.contains(*name))
            .cloned()
            .collect();
        let condition = self.condition_of(&site, &up);
        let now = clock::now();
        self.retired.retain(|_, since| now.since(*since).0 < RETIRED_FOR);
        // New ports are open before the tables send frames to them, and gone ones close after; a change that does
        // not get that far is taken back.
        let opening = match &self.ports {
            Some(ports) => Some(tokio::task::block_in_place(|| ports.open(&PortSpec::of_site(&site)))?),
            None => None,
        };
        let emptied = self.site.steering != site.steering && !self.site.units.is_empty();
        if emptied {
            self.empty_appliances().await?;
        }
        let updates = tokio::task::block_in_place(|| {
            let mut updates = Updates::default();
            let wanted = by_place(site::desired_but_rules(&site, &ids, &condition));
            updates.add(&self.actual.clone().unwrap_or_default().rest, &wanted);
            if self.rules_known {
                updates.add_rules((&self.site, &self.ids), (&site, &ids));
            } else {
                let actual = self.actual.clone().unwrap_or_default();
                updates.add(&actual.rules, &by_place(site::rules(&site, &ids)));
            }
            updates.in_order()
        });
        if let Err(cause) = self.target.write(updates.clone()).await {
            tokio::task::block_in_place(|| drop(opening));
            if emptied || !matches!(cause, TargetError::Refused { .. }) {
                self.actual = None;
                if self.repair().await.is_err() {
                    return Err(EngineError::Repairing { cause });
                }
            }
            return Err(cause.into());
        }
        if let Some(opening) = opening {
            tokio::task::block_in_place(|| opening.commit());
        }
        let mut warnings: Vec<String> = site.warnings().iter().map(ToString::to_string).collect();
        for link in &self.site.links {
            if !site.links.iter().any(|next| next.name == link.name) {
                warnings.push(format!("link {} is gone: its channel is cut from now on", link.name));
            }
        }
        self.site = site;
        let links = std::mem::replace(&mut self.ids, ids).links;
        let given: BTreeSet<LinkIndex> = self.ids.links.values().copied().collect();
        self.retired.extend(links.into_values().filter(|link| !given.contains(link)).map(|link| (link, now)));
        self.condition = condition;
        self.wrote(&updates);
        self.keep_numbers();
        self.kept.unit_modes.retain(|unit, _| self.site.units.contains_key(unit));
        if let Err(error) = self.state_dir.save(&self.kept) {
            // The tables are changed already; a restart would find the file's configuration.
            warnings.push(format!("it is in force, but a restart would not find it: {error}"));
            self.events.log(News::now(
                Severity::Error,
                EventKind::Configuration,
                "running",
                error.to_string(),
            ));
        }
        if !recabled.is_empty() {
            // Taken out first, so that they start afresh.
            let mut measured = supervised(&self.site, &self.ids, &self.kept.unit_modes, &self.condition.up)?;
            for unit in &mut measured.units {
                unit.pairs.retain(|pair| {
                    !self.pair_name(PairId(pair.key.0)).is_some_and(|name| recabled.contains(&name))
                });
            }
            self.keepalives.tell(LivenessCommand::Configure(Box::new(measured)))?;
        }
        self.measure(&self.site.clone(), &self.ids.clone(), &self.condition.up.clone())?;
        if let Err(error) = self.settle().await {
            tracing::warn!("{error}; trying again");
        }
        let (inserted, modified, deleted) = tally(&updates);
        Ok(Applied { inserted, modified, deleted, warnings, ..Applied::default() })
    }

    /// Takes a device as it is, with its numbers and the pairs that are up there.
    async fn adopt(&mut self, standing: &watch::Receiver<Standing>) -> Result<(), EngineError> {
        self.connected(standing)?;
        let found = Tables::of(self.target.entries().await?);
        let kept = self.kept.numbers.clone().filter(|_| !self.target.profile().keeps_metadata);
        let recovered = recover(&found, kept.map(Ids::from));
        self.ids = recovered.ids;
        self.condition.up = recovered.up;
        self.actual = Some(found);
        self.rules_known = false;
        self.started = true;
        Ok(())
    }
}

/// Pairs of both sites that are cabled to other ports now: measurements of the old ones say nothing of them.
fn recabled(running: &Site, next: &Site) -> BTreeSet<PairName> {
    let ports = |site: &Site, name: &PairName| {
        let pair = site.pair(name)?;
        let port = |name: &str| site.ports.get(name).map(|port| (port.id, port.interface.clone()));
        Some((port(&pair.lan_port)?, port(&pair.wan_port)?))
    };
    next.pair_names()
        .filter(|name| running.pair(name).is_some() && ports(running, name) != ports(next, name))
        .collect()
}
