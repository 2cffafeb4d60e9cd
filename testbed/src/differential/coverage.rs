//! What a run has seen: frames by reason, rules that were hit, sessions of each kind. A run that covers nothing
//! shows it.

use std::collections::BTreeMap;
use std::fmt;

use dataplane::{NotIp, Reason, parse};

use super::plane::{Counts, Ending, Outcome};

/// What a run has seen.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    reasons: BTreeMap<Reason, u64>,
    kinds: BTreeMap<&'static str, u64>,
    rules: u64,
    rules_hit: u64,
    frames_by_rule: u64,
}

impl Coverage {
    /// Notes a frame and what became of it; only what comes in by a link is parsed.
    pub fn note(&mut self, frame: &[u8], outcome: &Outcome, from_link: bool) {
        if let Ending::Counted(reason) = outcome.ending {
            *self.reasons.entry(reason).or_default() += 1;
        }
        if from_link {
            for kind in kinds(frame) {
                *self.kinds.entry(kind).or_default() += 1;
            }
        }
    }

    /// Notes how many rules there were and which of them counted frames.
    pub fn note_rules(&mut self, rules: usize, counts: &Counts) {
        self.rules += rules as u64;
        self.rules_hit += counts.rules.len() as u64;
        self.frames_by_rule += counts.rules.values().map(|count| count.packets).sum::<u64>();
    }

    /// Reasons that no frame ended in. A full port is no matter of the tables: the planes under test have none.
    #[must_use]
    pub fn missing(&self) -> Vec<Reason> {
        Reason::ALL
            .iter()
            .copied()
            .filter(|reason| *reason != Reason::PortFull && !self.reasons.contains_key(reason))
            .collect()
    }
}

/// What kind of frame this is, in every respect that the parse knows.
fn kinds(frame: &[u8]) -> Vec<&'static str> {
    let parsed = parse(frame);
    let mut kinds = vec![match (parsed.session, parsed.not_ip()) {
        (Some(session), _) if session.addresses.version() == 4 => "ipv4",
        (Some(_), _) => "ipv6",
        (None, Some(NotIp::VlanTooDeep)) => "4th tag",
        (None, Some(NotIp::MplsTooDeep)) => "7th label",
        (None, _) => "not ip",
    }];
    kinds.extend(match parsed.vlans().len() {
        0 => None,
        1 => Some("1 tag"),
        2 => Some("2 tags"),
        _ => Some("3 tags"),
    });
    let mut note = |is: bool, kind| kinds.extend(is.then_some(kind));
    note(frame.len() < 14, "shorter than 14");
    note(parsed.mpls_depth > 0, "labels");
    note(parsed.mpls_depth == 6, "6 labels");
    note(parsed.pppoe, "pppoe");
    note(parsed.tunnel, "tunnel");
    note(parsed.llc.is_some(), "llc");
    if let Some(session) = parsed.session {
        note(session.fragment, "fragment");
        note(session.ports.is_some(), "ports");
        note(session.ports.is_some() && parsed.tunnel, "ports in a tunnel");
        note(session.fragment && session.ports.is_some(), "first fragment with ports");
        note(parsed.mpls_depth > 0, "ip below labels");
    }
    kinds
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "frames by reason:")?;
        for reason in Reason::ALL.iter().filter(|reason| **reason != Reason::PortFull) {
            let seen = self.reasons.get(reason).copied().unwrap_or_default();
            let note = if seen == 0 { "   NEVER SEEN" } else { "" };
            writeln!(f, "  {:<28}{seen:>10}{note}", Ending::Counted(*reason).to_string())?;
        }
        writeln!(f, "frames from links by kind:")?;
        for (kind, seen) in &self.kinds {
            writeln!(f, "  {kind:<28}{seen:>10}")?;
        }
        write!(f, "rules: {} of {} were hit, by {} frames", self.rules_hit, self.rules, self.frames_by_rule)
    }
}
