//! The frame path: one frame and one snapshot in, one decision out (contract, "What happens to a frame").
//!
//! Pure: counting and sending are the worker's. Nothing here allocates, blocks or panics.

use dataplane::frame::Unlimited;
use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use dataplane::steering::STEERING_HEADER;
use dataplane::tables::{
    BucketForwarding, CloneSessionId, LinkForwarding, PairForwarding, PortRole, RuleAction, UnitMode,
};
use dataplane::{BucketIndex, Core, LinkIndex, NotIp, PairId, PortId, Reason, Side, UnitId};

use crate::cpu::{Baseline, Isa};
use crate::headers::Headers;
use crate::io::Edit;
use crate::tables::{Matched, RuleSlot, Snapshot, View};

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

impl Exit {
    const fn of(port: PortId, edit: Edit, length: usize) -> Self {
        let length = match edit {
            Edit::Keep => length,
            Edit::Push(_) => length + STEERING_HEADER,
            Edit::Pop => length - STEERING_HEADER,
        };
        Exit { port, edit, length }
    }
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

/// What becomes of a frame, and nothing about how that came.
#[derive(Clone, Copy)]
pub(crate) struct Fate {
    pub(crate) reason: Reason,
    /// Port and edit.
    pub(crate) exit: Option<(PortId, Edit)>,
    /// The pair that it goes to.
    pub(crate) forwarded: Option<PairId>,
}

/// What becomes of a frame that an appliance may get a copy of.
pub(crate) type Copied = (Fate, Option<CopyTo>);

impl Fate {
    #[inline(always)]
    pub(crate) const fn ending(reason: Reason) -> Self {
        Fate { reason, exit: None, forwarded: None }
    }
}

/// The bucket of a frame, and what else of its rule and unit matters behind it.
#[derive(Clone, Copy)]
pub(crate) struct Aim {
    hash: u32,
    unit: UnitId,
    bucket: BucketIndex,
    primary: bool,
    copy: bool,
}

/// What came of a frame of a pair.
#[derive(Clone, Copy)]
pub(crate) struct Return {
    pub(crate) reason: Reason,
    pub(crate) exit: Option<Exit>,
    /// The link that it returns to.
    pub(crate) link: Option<LinkIndex>,
    /// Bytes without the steering header.
    pub(crate) counted: usize,
}

/// Who wants to know how a decision came about. The frame path does not.
pub(crate) trait Trace {
    /// The unit of the rule.
    fn unit(&mut self, _: UnitId) {}
    /// How the session was balanced.
    fn balanced(&mut self, _: Balanced) {}
}

impl Trace for () {}

impl Trace for Decision {
    fn unit(&mut self, unit: UnitId) {
        self.unit = Some(unit);
    }

    fn balanced(&mut self, balanced: Balanced) {
        self.balanced = Some(balanced);
    }
}

/// Decides about a frame that came in by `port`: all steps of the contract, one after the other. Workers take the same
/// steps for a batch at a time ([`batch`](crate::batch)).
#[must_use]
pub fn decide(tables: &Snapshot, port: PortId, frame: &[u8]) -> Decision {
    let mut decision = Decision {
        reason: Reason::UnknownPort,
        origin: Origin::Unknown,
        rule: None,
        unit: None,
        balanced: None,
        returned: None,
        forwarded: None,
        exit: None,
        copy: None,
        counted: frame.len(),
        received: frame.len(),
    };
    match tables.ports.role(port) {
        Some(PortRole::Link { link, side, peer }) => {
            decision.origin = Origin::Link(link);
            let at = LinkPort { tables: tables.view(), link, side, peer };
            // 1. Parse.
            let mut headers = Headers::EMPTY;
            if tables.limits.is_none() {
                headers.read(link, Unlimited, frame);
            } else {
                headers.read(link, tables.limits, frame);
            }
            // 2. Rules.
            let matched = tables.rules.lookup(&headers);
            decision.rule = matched.map(|(slot, _)| slot);
            let aim = at.aim(&headers, matched, frame.len(), Baseline, &mut decision);
            let (fate, copy) = match aim {
                Ok(aim) => at.hit(aim, frame.len(), &mut decision),
                Err(fate) => (fate, None),
            };
            decision.reason = fate.reason;
            decision.exit = fate.exit.map(|(port, edit)| Exit::of(port, edit, frame.len()));
            decision.copy = copy;
            decision.forwarded = fate.forwarded.map(|pair| (pair, side));
        }
        Some(PortRole::Pair { pair, side, copy }) => {
            decision.origin = Origin::Pair(pair);
            let back = PairPort { tables: tables.view(), side, copy }.serve(frame);
            decision.reason = back.reason;
            decision.exit = back.exit;
            decision.returned = back.link.map(|link| (link, side));
            decision.counted = back.counted;
        }
        None => {}
    }
    decision
}

/// The port of a link, by the tables of a batch.
#[derive(Clone, Copy)]
pub(crate) struct LinkPort<'t> {
    pub(crate) tables: View<'t>,
    pub(crate) link: LinkIndex,
    pub(crate) side: Side,
    pub(crate) peer: PortId,
}

impl LinkPort<'_> {
    /// Out by the peer port, unchanged, if its MTU admits the frame.
    #[inline(always)]
    fn bypass(&self, reason: Reason, length: usize) -> Fate {
        if !self.tables.mtus.admits(self.peer, length) {
            return Fate::ending(Reason::MtuExceeded);
        }
        Fate { exit: Some((self.peer, Edit::Keep)), ..Fate::ending(reason) }
    }

    /// From the rule to the bucket; what becomes of a frame that goes to none.
    #[inline(always)]
    pub(crate) fn aim(
        &self,
        headers: &Headers,
        matched: Option<Matched>,
        length: usize,
        isa: impl Isa,
        trace: &mut impl Trace,
    ) -> Result<Aim, Fate> {
        let (unit, copy) = match matched {
            None => return Err(self.bypass(Reason::NoFlow, length)),
            Some((_, RuleAction::Bypass)) => return Err(self.bypass(Reason::FlowBypass, length)),
            Some((_, RuleAction::Drop)) => return Err(Fate::ending(Reason::FlowDrop)),
            Some((_, RuleAction::ToUnit(unit))) => (unit, false),
            Some((_, RuleAction::CopyToUnit(unit))) => (unit, true),
        };
        trace.unit(unit);
        // 3. No IP header.
        if let Some(why) = headers.not_ip() {
            let reason = match why {
                NotIp::VlanTooDeep => Reason::VlanTooDeep,
                NotIp::MplsTooDeep => Reason::MplsTooDeep,
                NotIp::NotIp => Reason::NotIp,
            };
            return Err(self.bypass(reason, length));
        }
        // 4. Unit state.
        let (unit, method, bucket_mask, primary) = match self.tables.units.mode(unit) {
            UnitMode::Balance { method, bucket_mask, primary } => (unit, method, bucket_mask, primary),
            UnitMode::Backup { method, bucket_mask, unit } => (unit, method, bucket_mask, false),
            UnitMode::Bypass => return Err(self.bypass(Reason::UnitBypass, length)),
        };
        // 5. Hash and bucket.
        let hash = isa.hash(headers, method, self.side);
        Ok(Aim { hash, unit, bucket: BucketIndex(hash as u16 & bucket_mask), primary, copy })
    }

    /// Has the entry of the bucket brought near.
    #[inline(always)]
    pub(crate) fn seek(&self, aim: Aim) {
        self.tables.buckets.prefetch(aim.unit, aim.bucket);
    }

    /// Steps 5 to 7: from the bucket to the pair's port.
    #[inline(always)]
    pub(crate) fn hit(&self, aim: Aim, length: usize, trace: &mut impl Trace) -> Copied {
        let alone = |fate| (fate, None);
        let Aim { hash, unit, bucket, primary, copy } = aim;
        // 5. Pair and core.
        let forwarding = self.tables.buckets.forwarding(unit, bucket);
        trace.balanced(Balanced {
            hash,
            unit,
            bucket,
            serving: forwarding.and_then(BucketForwarding::serving),
        });
        let (pair, core) = match forwarding {
            Some(BucketForwarding::Pair { pair, core }) => (pair, core),
            Some(BucketForwarding::Drop) if !copy => return alone(Fate::ending(Reason::CoreDownDrop)),
            Some(BucketForwarding::Drop) => return alone(self.bypass(Reason::CoreDownBypass, length)),
            Some(BucketForwarding::Bypass(why)) => return alone(self.bypass(why.reason(), length)),
            None => return alone(self.bypass(Reason::NoBucket, length)),
        };
        // 6. Pair state.
        let forwarding = if primary { PairForwarding::Up } else { self.tables.pair_states.forwarding(pair) };
        let out = match (forwarding, self.tables.pair_ports.port(pair, self.side)) {
            (PairForwarding::Up, Some(out)) => out,
            (PairForwarding::Drop, _) if !copy => return alone(Fate::ending(Reason::PairDownDrop)),
            _ => return alone(self.bypass(Reason::PairDownBypass, length)),
        };
        // 7. Steering header, port of the side that the frame came in on.
        if copy {
            // The replication engine makes no copy for a session that it does not have.
            let out = self.tables.clones.replica(CloneSessionId::of(out));
            let steered =
                |out| self.steered(out, core, length).map(|(port, edit)| Exit::of(port, edit, length));
            let copy = out.map(|out| CopyTo { pair, exit: steered(out) });
            return (self.bypass(Reason::Copy, length), copy);
        }
        alone(match self.steered(out, core, length) {
            None => Fate::ending(Reason::MtuExceeded),
            exit => Fate { exit, forwarded: Some(pair), ..Fate::ending(Reason::Forwarded) },
        })
    }

    /// With a steering header, where the port's MTU admits that.
    #[inline(always)]
    fn steered(&self, port: PortId, core: Core, length: usize) -> Option<(PortId, Edit)> {
        let edit = Edit::Push(self.tables.steering.encode(core, self.link));
        self.tables.mtus.admits(port, length + STEERING_HEADER).then_some((port, edit))
    }
}

/// The port of a pair, by the tables of a batch.
#[derive(Clone, Copy)]
pub(crate) struct PairPort<'t> {
    pub(crate) tables: View<'t>,
    pub(crate) side: Side,
    pub(crate) copy: bool,
}

impl PairPort<'_> {
    #[inline(always)]
    pub(crate) fn serve(&self, frame: &[u8]) -> Return {
        let ending = |reason, counted| Return { reason, exit: None, link: None, counted };
        // 1. Keep-alive.
        if ethertype(frame) == Some(KEEP_ALIVE_ETHERTYPE) {
            return ending(Reason::KeepAlive, frame.len());
        }
        // 3. What comes back from a copy.
        if self.copy {
            return ending(Reason::CopyReturn, frame.len());
        }
        // 2. Steering header.
        let Some(header) = self.tables.steering.decode(frame) else {
            return ending(Reason::NoSteeringHeader, frame.len());
        };
        let length = frame.len() - STEERING_HEADER;
        let port = match self.tables.links.forwarding(header.link, self.side) {
            Some(LinkForwarding::Port(port)) => port,
            // A probe goes up as it came.
            Some(LinkForwarding::Controller) => return ending(Reason::KeepAlive, frame.len()),
            None => return ending(Reason::UnknownLink, length),
        };
        if !self.tables.mtus.admits(port, length) {
            return ending(Reason::MtuExceeded, length);
        }
        let exit = Some(Exit { port, edit: Edit::Pop, length });
        Return { reason: Reason::Returned, exit, link: Some(header.link), counted: length }
    }
}

#[inline(always)]
fn ethertype(frame: &[u8]) -> Option<u16> {
    frame.get(12..).and_then(|rest| rest.first_chunk()).map(|bytes| u16::from_be_bytes(*bytes))
}
