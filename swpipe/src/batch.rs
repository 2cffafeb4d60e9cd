//! A batch of frames of one port, run to completion: every step of [`pipeline`](crate::pipeline) for all frames before
//! the next one, so that what a step needs from memory is on its way while others are worked on.
//!
//! Per frame: no allocation, no lock, no system call.

use std::sync::Arc;

use dataplane::frame::{Limits, ParseLimits, Unlimited};
use dataplane::tables::PortRole;
use dataplane::{LinkIndex, PairId, PortId, Reason};

use crate::counters::{Block, Sum};
use crate::cpu::{Baseline, Cpu, Isa, Work};
use crate::flow_cache::{FlowCache, Place};
use crate::headers::Headers;
use crate::io::{BATCH, Frame};
use crate::pipeline::{Aim, CopyTo, Fate, LinkPort, PairPort};
use crate::prefetch::prefetch;
use crate::tables::{Matched, RuleSlot, Rules, Snapshot};
use crate::worker::Outlets;

/// Runs batches through the pipeline: one worker's part of it.
pub struct Forwarder {
    counters: Arc<Block>,
    cache: FlowCache,
    headers: Box<[Headers; BATCH]>,
    places: [Place; BATCH],
    matched: [Option<Matched>; BATCH],
    aims: [Option<Aim>; BATCH],
    fates: [Fate; BATCH],
    /// Taken when they are sent.
    copies: [Option<CopyTo>; BATCH],
    has_copies: bool,
    cpu: Cpu,
}

/// The part of a link's batch that is worth to be compiled for more than one kind of processor.
struct Decide<'f, 't> {
    forwarder: &'f mut Forwarder,
    at: &'f LinkPort<'t>,
    rules: &'f Rules,
    frames: &'f [Frame<'f>],
}

impl Work for Decide<'_, '_> {
    #[inline(always)]
    fn run(self, isa: impl Isa) {
        self.forwarder.decide(self.at, Unlimited, self.rules, self.frames, isa);
    }
}

impl Forwarder {
    /// Counts in this block.
    #[must_use]
    pub fn new(counters: Arc<Block>) -> Self {
        Forwarder::with_cpu(counters, Cpu::detect())
    }

    /// The same, with no more of the processor than that; the results are the same too.
    #[must_use]
    pub fn with_cpu(counters: Arc<Block>, cpu: Cpu) -> Self {
        Forwarder {
            cpu,
            counters,
            cache: FlowCache::default(),
            headers: Box::new([Headers::EMPTY; BATCH]),
            places: [Place::default(); BATCH],
            matched: [None; BATCH],
            aims: [None; BATCH],
            copies: [None; BATCH],
            has_copies: false,
            fates: [Fate::ending(Reason::NoFlow); BATCH],
        }
    }

    /// Where it counts.
    #[must_use]
    pub fn counters(&self) -> &Block {
        &self.counters
    }

    /// Decides about every frame of a batch, which came in by `port`, sends it and counts it.
    #[inline]
    pub fn forward(&mut self, tables: &Snapshot, port: PortId, frames: &[Frame<'_>], out: &mut Outlets) {
        let mut received = Sum::default();
        frames.iter().for_each(|frame| received.add(frame.bytes.len()));
        self.counters.count_in(port, received);
        match tables.ports.role(port) {
            Some(PortRole::Link { link, side, peer }) => {
                let at = LinkPort { tables: tables.view(), link, side, peer };
                for frames in frames.chunks(BATCH) {
                    let cpu = self.cpu;
                    if tables.limits.is_none() {
                        cpu.run(Decide { forwarder: self, at: &at, rules: &tables.rules, frames });
                    } else {
                        self.decide_within(&at, tables.limits, &tables.rules, frames);
                    }
                    self.send(&at, frames, out);
                }
            }
            Some(PortRole::Pair { pair, side, copy }) => {
                self.return_frames(&PairPort { tables: tables.view(), side, copy }, pair, frames, out);
            }
            None => self.counters.count_unknown_port(received),
        }
    }

    /// Apart, so that the way without limits is compiled as if there were no other.
    #[inline(never)]
    fn decide_within(&mut self, at: &LinkPort<'_>, limits: ParseLimits, rules: &Rules, frames: &[Frame<'_>]) {
        self.decide(at, limits, rules, frames, Baseline);
    }

    /// Steps 1 to 7, but for sending.
    #[inline(always)]
    pub(crate) fn decide(
        &mut self,
        at: &LinkPort<'_>,
        limits: impl Limits,
        rules: &Rules,
        frames: &[Frame<'_>],
        isa: impl Isa,
    ) {
        let Forwarder { cache, headers, places, matched, aims, fates, copies, has_copies, .. } = self;
        let at = *at;
        cache.follow(rules);
        for frame in frames {
            frame.bytes.first().into_iter().for_each(prefetch);
        }
        // 1. Parse.
        for (frame, headers) in frames.iter().zip(headers.iter_mut()) {
            headers.read(at.link, limits, frame.bytes);
        }
        // 2. Rules.
        if cache.is_worth(rules) {
            for (headers, place) in headers.iter().zip(places.iter_mut()).take(frames.len()) {
                *place = cache.seek(rules, headers);
            }
            for ((headers, place), matched) in
                headers.iter().zip(places.iter()).zip(matched.iter_mut()).take(frames.len())
            {
                *matched = cache.lookup(rules, headers, *place, isa);
            }
        } else {
            for (headers, matched) in headers.iter().zip(matched.iter_mut()).take(frames.len()) {
                *matched = rules.first_match(headers, isa);
            }
        }
        // 3 to 5. Unit, hash, bucket.
        for ((((frame, headers), matched), aim), fate) in
            frames.iter().zip(headers.iter()).zip(matched.iter()).zip(aims.iter_mut()).zip(fates.iter_mut())
        {
            match at.aim(headers, *matched, frame.bytes.len(), isa, &mut ()) {
                Ok(found) => {
                    at.seek(found);
                    *aim = Some(found);
                }
                Err(ended) => (*aim, *fate) = (None, ended),
            }
        }
        // 5 to 7. Pair, state, header.
        for (((frame, aim), fate), copy) in
            frames.iter().zip(aims.iter()).zip(fates.iter_mut()).zip(copies.iter_mut())
        {
            if let Some(aim) = aim {
                let (found, copied) = at.hit(*aim, frame.bytes.len(), &mut ());
                *fate = found;
                if copied.is_some() {
                    (*copy, *has_copies) = (copied, true);
                }
            }
        }
    }

    /// Sends and counts what was decided.
    fn send(&mut self, at: &LinkPort<'_>, frames: &[Frame<'_>], out: &mut Outlets) {
        let counters = &*self.counters;
        let copies = &std::mem::take(&mut self.has_copies);
        let mut tally = LinkTally {
            counters,
            link: at.link,
            reason: Reason::Forwarded,
            ended: Sum::default(),
            rule: None,
            hits: Sum::default(),
        };
        for (((frame, matched), fate), copy) in
            frames.iter().zip(&self.matched).zip(&self.fates).zip(&mut self.copies)
        {
            let length = frame.bytes.len();
            let mut reason = fate.reason;
            if *copies && let Some(copy) = copy.take() {
                let sent = copy.exit.is_some_and(|exit| out.send(exit.port, frame.bytes, exit.edit, length));
                counters.count_copy(copy.pair, length, sent);
            }
            if let Some((port, edit)) = fate.exit {
                if out.send(port, frame.bytes, edit, length) {
                    if let Some(pair) = fate.forwarded {
                        counters.count_forwarded(pair, at.side, length);
                    }
                } else {
                    reason = Reason::PortFull;
                }
            }
            tally.add(reason, matched.map(|(slot, _)| slot), length);
        }
        tally.end();
        out.count(counters);
    }

    #[inline(always)]
    fn return_frames(&mut self, at: &PairPort<'_>, pair: PairId, frames: &[Frame<'_>], out: &mut Outlets) {
        let counters = &*self.counters;
        let (mut last, mut ended) = (Reason::Returned, Sum::default());
        for frame in frames {
            let mut back = at.serve(frame.bytes);
            if let Some(exit) = &back.exit {
                if out.send(exit.port, frame.bytes, exit.edit, back.counted) {
                    if let Some(link) = back.link {
                        counters.count_returned(link, at.side, Sum::of(back.counted));
                    }
                } else {
                    back.reason = Reason::PortFull;
                }
            }
            if back.reason != last {
                counters.count_pair_verdict(pair, last, std::mem::take(&mut ended));
                last = back.reason;
            }
            ended.add(back.counted);
        }
        counters.count_pair_verdict(pair, last, ended);
        out.count(counters);
    }
}

/// How frames of a link ended and by which rules: neighbours mostly alike, and counted together.
struct LinkTally<'b> {
    counters: &'b Block,
    link: LinkIndex,
    reason: Reason,
    ended: Sum,
    rule: Option<RuleSlot>,
    hits: Sum,
}

impl LinkTally<'_> {
    #[inline(always)]
    fn add(&mut self, reason: Reason, rule: Option<RuleSlot>, bytes: usize) {
        if reason != self.reason {
            self.counters.count_link_verdict(self.link, self.reason, std::mem::take(&mut self.ended));
            self.reason = reason;
        }
        self.ended.add(bytes);
        if rule != self.rule {
            self.end_rule();
            self.rule = rule;
        }
        self.hits.add(bytes);
    }

    #[inline(always)]
    fn end_rule(&mut self) {
        let hits = std::mem::take(&mut self.hits);
        if let Some(rule) = self.rule {
            self.counters.count_rule(rule, hits);
        }
    }

    #[inline(always)]
    fn end(mut self) {
        self.end_rule();
        self.counters.count_link_verdict(self.link, self.reason, self.ended);
    }
}
