//! The frame path: one frame and one snapshot in, one decision out (contract, "What happens to a frame").
//!
//! Pure: counting and sending are the worker's. Nothing here allocates, blocks or panics.

use dataplane::frame::{Limits, Unlimited, parse_into};
use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use dataplane::steering::STEERING_HEADER;
use dataplane::tables::{
    BucketForwarding, CloneSessionId, LinkForwarding, PairForwarding, PortRole, RuleAction, UnitMode,
};
use dataplane::{BucketIndex, Core, LinkIndex, NotIp, PairId, Parsed, PortId, Reason, Side, UnitId, hash};

use crate::io::Edit;
use crate::tables::{RuleSlot, Snapshot};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The port.
    pub port: PortId,
    /// What to change on the way.
    pub edit: Edit,
    /// Length on the way out, without FCS.
    pub length: usize,
}

/// A copy to an appliance, beside the frame itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyTo {
    /// The pair.
    pub pair: PairId,
    /// Where to; `None` where the copy is longer than the port's MTU.
    pub exit: Option<Exit>,
}

/// Who the frame came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A link port.
    Link(LinkIndex),
    /// A pair port.
    Pair(PairId),
    /// A port that serves nothing.
    Unknown,
}

/// How the balancing of a session came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balanced {
    /// The hash.
    pub hash: u32,
    /// Whose bucket it is: another unit's where that stands in.
    pub unit: UnitId,
    /// The bucket.
    pub bucket: BucketIndex,
    /// Pair and core; `None` where the bucket has no entry, or none of a pair.
    pub serving: Option<(PairId, Core)>,
}

/// All that was decided about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The counter it ends in.
    pub reason: Reason,
    /// Who it came from.
    pub origin: Origin,
    /// The rule that decided.
    pub rule: Option<RuleSlot>,
    /// The unit of that rule.
    pub unit: Option<UnitId>,
    /// How the session was balanced, where it came to that.
    pub balanced: Option<Balanced>,
    /// For frames that return: the link they return to.
    pub returned: Option<(LinkIndex, Side)>,
    /// For frames to an appliance: pair and side.
    pub forwarded: Option<(PairId, Side)>,
    /// Where it leaves; `None` for drops and keep-alives.
    pub exit: Option<Exit>,
    /// A copy to an appliance.
    pub copy: Option<CopyTo>,
    /// Bytes that counters count: the frame as it is on the link, without the steering header.
    pub counted: usize,
    /// Bytes that came in by the port, with the steering header of a frame that returns.
    pub received: usize,
}

impl Decision {
    #[inline(always)]
    fn new(reason: Reason, origin: Origin, received: usize) -> Self {
        Decision {
            reason,
            origin,
            rule: None,
            unit: None,
            balanced: None,
            returned: None,
            forwarded: None,
            exit: None,
            copy: None,
            counted: received,
            received,
        }
    }
}

/// Decides about a frame that came in by `port`.
#[inline]
#[must_use]
pub fn decide(tables: &Snapshot, port: PortId, frame: &[u8]) -> Decision {
    let role = tables.ports.role(port);
    if tables.limits.is_none() {
        decide_as(tables, role, Unlimited, frame)
    } else {
        decide_as(tables, role, tables.limits, frame)
    }
}

/// [`decide`] for a port whose role is known, by the target's limits: both are the same for a whole batch.
#[inline(always)]
#[must_use]
pub fn decide_as(tables: &Snapshot, role: Option<PortRole>, limits: impl Limits, frame: &[u8]) -> Decision {
    // Filled in place: handing it on by value would copy it right after its fields were written.
    let mut decision = Decision::new(Reason::UnknownPort, Origin::Unknown, frame.len());
    match role {
        Some(PortRole::Link { link, side, peer }) => {
            decision.origin = Origin::Link(link);
            let at = LinkFrame { tables, link, side, peer, length: frame.len() };
            from_link(&at, limits, &mut decision, frame);
        }
        Some(PortRole::Pair { pair, side, copy }) => {
            decision.origin = Origin::Pair(pair);
            from_pair(tables, &mut decision, side, copy, frame);
        }
        None => {}
    }
    decision
}

/// Where a frame of a link stands between the steps of the contract.
struct LinkFrame<'f> {
    tables: &'f Snapshot,
    link: LinkIndex,
    side: Side,
    peer: PortId,
    length: usize,
}

impl LinkFrame<'_> {
    /// Out by the peer port, unchanged, if its MTU admits the frame.
    #[inline(always)]
    fn to_peer(&self, decision: &mut Decision, reason: Reason) {
        if self.tables.mtus.admits(self.peer, self.length) {
            decision.reason = reason;
            decision.exit = Some(Exit { port: self.peer, edit: Edit::Keep, length: self.length });
        } else {
            decision.reason = Reason::MtuExceeded;
        }
    }
}

#[inline(always)]
fn from_link(at: &LinkFrame<'_>, limits: impl Limits, decision: &mut Decision, frame: &[u8]) {
    // 1. Parse.
    let mut parsed = Parsed::EMPTY;
    parse_into(frame, limits, &mut parsed);
    // 2. Rules.
    let Some((slot, action)) = at.tables.rules.lookup(at.link, &parsed) else {
        at.to_peer(decision, Reason::NoFlow);
        return;
    };
    decision.rule = Some(slot);
    match action {
        RuleAction::Bypass => at.to_peer(decision, Reason::FlowBypass),
        RuleAction::Drop => decision.reason = Reason::FlowDrop,
        RuleAction::ToUnit(unit) => balance(at, decision, unit, &parsed, false),
        RuleAction::CopyToUnit(unit) => balance(at, decision, unit, &parsed, true),
    }
}

/// Steps 3 to 7: from the unit to the pair's port.
#[inline(always)]
fn balance(at: &LinkFrame<'_>, decision: &mut Decision, unit: UnitId, parsed: &Parsed, copy: bool) {
    decision.unit = Some(unit);
    // 3. No IP header.
    let Some(session) = &parsed.session else {
        let reason = match parsed.not_ip() {
            Some(NotIp::VlanTooDeep) => Reason::VlanTooDeep,
            Some(NotIp::MplsTooDeep) => Reason::MplsTooDeep,
            _ => Reason::NotIp,
        };
        at.to_peer(decision, reason);
        return;
    };
    // 4. Unit state.
    let (unit, method, bucket_mask, primary) = match at.tables.units.mode(unit) {
        UnitMode::Balance { method, bucket_mask, primary } => (unit, method, bucket_mask, primary),
        UnitMode::Backup { method, bucket_mask, unit } => (unit, method, bucket_mask, false),
        UnitMode::Bypass => {
            at.to_peer(decision, Reason::UnitBypass);
            return;
        }
    };
    // 5. Hash, bucket, pair and core.
    let hash = hash(session, method, at.side);
    let bucket = BucketIndex(hash as u16 & bucket_mask);
    let forwarding = at.tables.buckets.forwarding(unit, bucket);
    let serving = forwarding.and_then(BucketForwarding::serving);
    decision.balanced = Some(Balanced { hash, unit, bucket, serving });
    let (pair, core) = match forwarding {
        Some(BucketForwarding::Pair { pair, core }) => (pair, core),
        Some(BucketForwarding::Drop) if !copy => {
            decision.reason = Reason::CoreDownDrop;
            return;
        }
        Some(BucketForwarding::Drop) => {
            at.to_peer(decision, Reason::CoreDownBypass);
            return;
        }
        Some(BucketForwarding::Bypass(why)) => {
            at.to_peer(decision, why.reason());
            return;
        }
        None => {
            at.to_peer(decision, Reason::NoBucket);
            return;
        }
    };
    // 6. Pair state.
    let forwarding = if primary { PairForwarding::Up } else { at.tables.pair_states.forwarding(pair) };
    let out = at.tables.pair_ports.port(pair, at.side);
    let out = match (forwarding, out) {
        (PairForwarding::Up, Some(out)) => out,
        (PairForwarding::Drop, _) if !copy => {
            decision.reason = Reason::PairDownDrop;
            return;
        }
        _ => {
            at.to_peer(decision, Reason::PairDownBypass);
            return;
        }
    };
    // 7. Steering header, port of the side that the frame came in on.
    // The replication engine makes no copy for a session that it does not have.
    let out = if copy { at.tables.clones.replica(CloneSessionId::of(out)) } else { Some(out) };
    let Some(out) = out else {
        at.to_peer(decision, Reason::Copy);
        return;
    };
    let length = at.length + STEERING_HEADER;
    let exit = at.tables.mtus.admits(out, length).then(|| Exit {
        port: out,
        edit: Edit::Push(at.tables.steering.encode(core, at.link)),
        length,
    });
    if copy {
        at.to_peer(decision, Reason::Copy);
        decision.copy = Some(CopyTo { pair, exit });
        return;
    }
    if exit.is_none() {
        decision.reason = Reason::MtuExceeded;
        return;
    }
    decision.reason = Reason::Forwarded;
    decision.forwarded = Some((pair, at.side));
    decision.exit = exit;
}

#[inline(always)]
fn from_pair(tables: &Snapshot, decision: &mut Decision, side: Side, copy: bool, frame: &[u8]) {
    // 1. Keep-alive.
    if ethertype(frame) == Some(KEEP_ALIVE_ETHERTYPE) {
        decision.reason = Reason::KeepAlive;
        return;
    }
    // 3. What comes back from a copy.
    if copy {
        decision.reason = Reason::CopyReturn;
        return;
    }
    // 2. Steering header.
    let Some(header) = tables.steering.decode(frame) else {
        decision.reason = Reason::NoSteeringHeader;
        return;
    };
    let length = frame.len() - STEERING_HEADER;
    let out = match tables.links.forwarding(header.link, side) {
        // A probe goes up as it came.
        Some(LinkForwarding::Controller) => {
            decision.reason = Reason::KeepAlive;
            return;
        }
        Some(LinkForwarding::Port(out)) => out,
        None => {
            decision.counted = length;
            decision.reason = Reason::UnknownLink;
            return;
        }
    };
    decision.counted = length;
    if !tables.mtus.admits(out, length) {
        decision.reason = Reason::MtuExceeded;
        return;
    }
    decision.reason = Reason::Returned;
    decision.returned = Some((header.link, side));
    decision.exit = Some(Exit { port: out, edit: Edit::Pop, length });
}

#[inline(always)]
fn ethertype(frame: &[u8]) -> Option<u16> {
    frame.get(12..).and_then(|rest| rest.first_chunk()).map(|bytes| u16::from_be_bytes(*bytes))
}
