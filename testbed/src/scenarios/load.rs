//! Background traffic of the fault scenarios: TCP and UDP sessions opened from both sides that go on until told
//! to finish, and what they report.

use std::collections::{BTreeMap, BTreeSet};

use crate::appliance::Side;
use crate::check::Findings;
use crate::error::Result;
use crate::frame::SessionKey;
use crate::lab::Lab;
use crate::plan::{Path, sides};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::sluice::Lookup;
use crate::traffic::{Ends, tcp, udp};

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_NAME: &str = "tcp";
const UDP_NAME: &str = "udp";

/// Sessions that run.
pub(super) struct Load {
    udp: [Vec<Ends>; 2],
    tcp: [Vec<Ends>; 2],
}

/// What the sessions reported in the end.
pub(super) struct Outcome {
    pub(super) tcp: Vec<tcp::SessionReport>,
    pub(super) udp: Vec<udp::SessionReport>,
}

/// Which pair serves which session.
pub(super) type Places = BTreeMap<SessionKey, String>;

impl Load {
    /// Starts it; a quarter of the sessions is opened from the WAN side.
    pub(super) fn start(lab: &mut Lab, scenario: &Scenario, paths: &[Path]) -> Result<Load> {
        let mut rng = Rng::new(scenario.seed);
        let load = &scenario.load;
        let shares = |total: u64| [total - total / 4, total / 4];
        let mut started = Load { udp: Default::default(), tcp: Default::default() };
        for side in sides() {
            let udp = lab.draw_sessions(&mut rng, shares(load.udp)[side as usize], side, paths);
            let tcp = lab.draw_sessions(&mut rng, shares(load.tcp)[side as usize], side, paths);
            let pace =
                udp::Pace { interval_us: load.udp_interval_us, payload: load.udp_payload, count: None };
            let work = tcp::Work { rounds: None, bytes: (500, 20_000), pause_ms: 50, seed: scenario.seed };
            lab.start_udp(side, UDP_NAME, &udp, pace)?;
            lab.start_tcp(side, TCP_NAME, &tcp, work)?;
            started.udp[side as usize] = udp;
            started.tcp[side as usize] = tcp;
        }
        Ok(started)
    }

    /// Every session's key and ends.
    pub(super) fn keys(&self) -> Vec<(SessionKey, Ends)> {
        let udp = self.udp.iter().flatten().map(|ends| (ends.key(UDP), *ends));
        udp.chain(self.tcp.iter().flatten().map(|ends| (ends.key(TCP), *ends))).collect()
    }

    /// Asks the CLI for the pair of every session.
    pub(super) fn places(&self, lab: &Lab) -> Result<Places> {
        let sluice = lab.sluice()?;
        let link = &lab.topology.links[0].name;
        let mut places = Places::new();
        for (key, ends) in self.keys() {
            let found: Lookup = sluice.show(&lookup(&ends, key.proto, link))?;
            if let Some(pair) = found.pair {
                places.insert(key, pair);
            }
        }
        Ok(places)
    }

    /// Ends the sessions.
    pub(super) fn finish(self, lab: &mut Lab) -> Result<Outcome> {
        let finished = lab.finish(&[TCP_NAME, UDP_NAME])?;
        Ok(Outcome { tcp: finished.tcp, udp: finished.udp })
    }
}

/// The CLI's lookup of a session.
pub(super) fn lookup(ends: &Ends, proto: u8, link: &str) -> String {
    format!(
        "ecofilter-balancer lookup src {} dst {} proto {proto} src-port {} dst-port {} link {link}",
        ends.client.ip(),
        ends.server.ip(),
        ends.client.port(),
        ends.server.port()
    )
}

impl Outcome {
    /// Every TCP session lived to its goodbye with every byte right, also as the servers saw it.
    pub(super) fn check_tcp(&self, lab: &mut Lab, findings: &mut Findings) -> Result<()> {
        let broken: Vec<String> = self
            .tcp
            .iter()
            .filter_map(|report| {
                let ends = &report.ends;
                report.error.as_ref().map(|error| format!("{} -> {}: {error}", ends.client, ends.server))
            })
            .collect();
        let bytes: u64 = self.tcp.iter().map(|report| report.up + report.down).sum();
        let rounds: u64 = self.tcp.iter().map(|report| u64::from(report.rounds)).sum();
        let longest = self.tcp.iter().map(|report| report.longest_round_ms).max().unwrap_or(0);
        let idle = self.tcp.iter().filter(|report| report.error.is_none() && report.rounds == 0).count();
        findings.check(
            "every TCP session completed with every byte right",
            broken.is_empty() && idle == 0 && !self.tcp.is_empty(),
            if broken.is_empty() {
                format!(
                    "{} sessions, {rounds} rounds, {:.1} MB verified, longest round {longest} ms",
                    self.tcp.len(),
                    bytes as f64 / 1e6
                )
            } else {
                format!("{} of {} broke: {}", broken.len(), self.tcp.len(), first_few(&broken))
            },
        );
        let mut errors = Vec::new();
        for side in sides() {
            errors.extend(lab.served(side)?.tcp.errors);
        }
        findings.check(
            "TCP servers saw nothing wrong",
            errors.is_empty(),
            if errors.is_empty() { "no error".into() } else { first_few(&errors) },
        );
        Ok(())
    }

    /// No datagram was lost, doubled or changed.
    pub(super) fn check_udp(&self, findings: &mut Findings) {
        self.check_udp_of("no UDP datagram lost", findings, |_| true);
    }

    /// The same for some sessions.
    pub(super) fn check_udp_of(&self, name: &str, findings: &mut Findings, of: impl Fn(&SessionKey) -> bool) {
        let chosen: Vec<_> = self.udp.iter().filter(|report| of(&report.ends.key(UDP))).collect();
        let sum =
            |figure: fn(&udp::SessionReport) -> u64| chosen.iter().map(|report| figure(report)).sum::<u64>();
        let (sent, lost) = (sum(|r| r.sent), sum(|r| r.lost.len() as u64));
        let (doubled, reordered, corrupt) = (sum(|r| r.duplicates), sum(|r| r.reordered), sum(|r| r.corrupt));
        let errors: Vec<String> = chosen.iter().filter_map(|report| report.error.clone()).collect();
        let clean = lost == 0 && doubled == 0 && corrupt == 0 && errors.is_empty() && sent > 0;
        let mut figure = format!(
            "{} sessions sent {sent}: {lost} lost, {doubled} doubled, {corrupt} changed, {reordered} reordered",
            chosen.len()
        );
        if !errors.is_empty() {
            figure += &format!("; {}", first_few(&errors));
        }
        findings.check(name, clean, figure);
    }

    /// Sending instants (ns) of lost datagrams of some sessions, in order.
    pub(super) fn losses(&self, of: impl Fn(&SessionKey) -> bool) -> Vec<u64> {
        let chosen = self.udp.iter().filter(|report| of(&report.ends.key(UDP)));
        let all: BTreeSet<u64> = chosen.flat_map(|report| report.lost.iter().map(|(_, at)| *at)).collect();
        all.into_iter().collect()
    }
}

/// The first three of a list, and how many more there are.
pub(super) fn first_few(list: &[String]) -> String {
    let mut text = list.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    if list.len() > 3 {
        text += &format!("; and {} more", list.len() - 3);
    }
    text
}

/// Paths through one link.
pub(super) fn symmetric(lab: &Lab) -> Vec<Path> {
    lab.plan.paths.iter().filter(|path| path.is_symmetric()).cloned().collect()
}

/// Paths with requests and answers on different links.
pub(super) fn crossing(lab: &Lab) -> Vec<Path> {
    lab.plan.paths.iter().filter(|path| !path.is_symmetric()).cloned().collect()
}

/// The other end of what a side sends.
pub(super) fn first_ends(path: &Path, opened_by: Side, ipv6: bool) -> (std::net::IpAddr, std::net::IpAddr) {
    (path.host(opened_by, 0, ipv6), path.host(opened_by.other(), 1, ipv6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut() {
        let list: Vec<String> = (0..5).map(|n| n.to_string()).collect();
        assert_eq!(first_few(&list), "0; 1; 2; and 2 more");
        assert_eq!(first_few(&list[..2]), "0; 1");
    }

    #[test]
    fn losses_have_the_instants_of_the_chosen_sessions() {
        let report = |id: u64, lost: Vec<(u64, u64)>| udp::SessionReport {
            ends: Ends {
                id,
                client: ([10, 1, 0, 1], id as u16).into(),
                server: ([10, 129, 0, 1], 7000).into(),
            },
            error: None,
            sent: 9,
            echoed: 9 - lost.len() as u64,
            duplicates: 0,
            reordered: 0,
            corrupt: 0,
            lost,
        };
        let outcome =
            Outcome { tcp: Vec::new(), udp: vec![report(1, vec![(3, 30)]), report(2, vec![(1, 10)])] };
        assert_eq!(outcome.losses(|_| true), [10, 30]);
        let second = outcome.udp[1].ends.key(UDP);
        assert_eq!(outcome.losses(|key| *key == second), [10]);
    }
}
