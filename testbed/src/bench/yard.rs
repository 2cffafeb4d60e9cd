//! The cables of a bench: one link and its pairs, from a namespace that has the generator and the sinks to the one
//! of the system under test.

use std::num::NonZeroU32;

use xdp::{Action, Assembler, Attachment, Mode, Program, Register};

use super::sink::Sink;
use crate::appliance::Side;
use crate::error::{Doing, Result};
use crate::netns::Run;
use crate::plan::sides;
use crate::raw::offloads_off;

/// The namespace of the system under test.
pub const BOX: &str = "box";
/// The namespace of the generator, of the sinks, and of the cable that stands for no system.
pub const OUTSIDE: &str = "out";
/// Both ends of that cable.
const CABLE: [&str; 2] = ["c0", "c1"];
/// Ethernet payload of the link's ports: two tags more than hosts send.
const LINK_MTU: u32 = 1508;
/// The same of the pairs' ports: the steering header more.
const PAIR_MTU: u32 = 1512;

/// How frames go through the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// In by the link's LAN port, out by the pairs' LAN ports: the way to the appliances.
    ToAppliance,
    /// On by the appliances, back by the pairs' WAN ports, out by the link's WAN port: the whole way.
    Through,
    /// In by both ports of the link, out by the pairs' ports of the same side.
    BothWays,
}

/// Cables with a sink at every far end.
#[derive(Debug)]
pub struct Yard {
    /// Taken off before the namespaces go.
    attachments: Vec<Attachment>,
    sink: Sink,
    /// How many pairs.
    pairs: usize,
    way: Way,
    run: Run,
}

/// The link's port of a side.
#[must_use]
pub fn link_port(side: Side) -> String {
    format!("l1{}", side_text(side))
}

/// A pair's port of a side; pairs count from 1.
#[must_use]
pub fn pair_port(pair: usize, side: Side) -> String {
    format!("p{pair}{}", side_text(side))
}

fn link_end(side: Side) -> String {
    format!("g{}", side_text(side))
}

fn pair_end(pair: usize, side: Side) -> String {
    format!("f{pair}{}", side_text(side))
}

fn side_text(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

impl Yard {
    /// Lays the cables, with the ends outside up and a sink at each.
    ///
    /// # Errors
    /// Whatever can't be made; what was made is removed again.
    pub fn lay(run: Run, pairs: usize, way: Way) -> Result<Yard> {
        run.ip(None, &[BOX, OUTSIDE].map(|space| format!("netns add {}", run.name(space))))?;
        for space in [BOX, OUTSIDE] {
            // Nothing but the generator's frames may appear on the cables.
            let quiet = ["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"];
            run.set_parameters(space, &quiet.map(|path| (path, "1")))?;
        }
        let (inner, outer) = (run.name(BOX), run.name(OUTSIDE));
        let cables: Vec<(String, String, u32)> = ends(pairs);
        let mut lines: Vec<String> = cables
            .iter()
            .map(|(port, end, mtu)| {
                format!("link add {port} mtu {mtu} netns {inner} type veth peer name {end} mtu {mtu} netns {outer}")
            })
            .collect();
        let [c0, c1] = CABLE;
        lines.push(format!(
            "link add {c0} mtu {LINK_MTU} netns {outer} type veth peer name {c1} mtu {LINK_MTU} netns {outer}"
        ));
        run.ip(None, &lines)?;
        let outside: Vec<&str> = cables.iter().map(|(_, end, _)| end.as_str()).chain(CABLE).collect();
        bring_up(&run, OUTSIDE, outside.iter().copied())?;
        bring_up(&run, BOX, cables.iter().map(|(port, _, _)| port.as_str()))?;
        let (sink, attachments) = run.inside(OUTSIDE, || attach(pairs, way, &outside))?;
        Ok(Yard { attachments, sink, pairs, way, run })
    }

    /// The namespaces and files.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// How many pairs there are.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// How frames go.
    #[must_use]
    pub fn way(&self) -> Way {
        self.way
    }

    /// What counts.
    #[must_use]
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// All ports of the system: of the link, then of the pairs, LAN before WAN.
    #[must_use]
    pub fn ports(&self) -> Vec<String> {
        ends(self.pairs).into_iter().map(|(port, _, _)| port).collect()
    }

    /// The ports by which frames come in.
    #[must_use]
    pub fn inlets(&self) -> Vec<String> {
        let lan = link_port(Side::Lan);
        match self.way {
            Way::ToAppliance => vec![lan],
            Way::BothWays => vec![lan, link_port(Side::Wan)],
            Way::Through => {
                [lan].into_iter().chain((1..=self.pairs).map(|pair| pair_port(pair, Side::Wan))).collect()
            }
        }
    }

    /// Interfaces for the generator to send by.
    ///
    /// # Errors
    /// One is gone.
    pub fn sources(&self) -> Result<Vec<NonZeroU32>> {
        let both = sides().map(link_end).collect::<Vec<_>>();
        self.outside(if self.way == Way::BothWays { &both } else { &both[..1] })
    }

    /// Interfaces at which frames end.
    ///
    /// # Errors
    /// One is gone.
    pub fn ends(&self) -> Result<Vec<NonZeroU32>> {
        match self.way {
            Way::ToAppliance => self.appliances(&[Side::Lan]),
            Way::BothWays => self.appliances(&[Side::Lan, Side::Wan]),
            Way::Through => self.outside(&[link_end(Side::Wan)]),
        }
    }

    /// Interfaces of the appliances at which frames arrive; over them the split is judged.
    ///
    /// # Errors
    /// One is gone.
    pub fn split(&self) -> Result<Vec<NonZeroU32>> {
        self.appliances(if self.way == Way::BothWays { &[Side::Lan, Side::Wan] } else { &[Side::Lan] })
    }

    /// The two ends of the cable that stands for no system.
    ///
    /// # Errors
    /// One is gone.
    pub fn cable(&self) -> Result<Vec<NonZeroU32>> {
        self.outside(&CABLE.map(str::to_owned))
    }

    fn appliances(&self, sides: &[Side]) -> Result<Vec<NonZeroU32>> {
        let names: Vec<String> =
            sides.iter().flat_map(|side| (1..=self.pairs).map(|pair| pair_end(pair, *side))).collect();
        self.outside(&names)
    }

    fn outside(&self, names: &[String]) -> Result<Vec<NonZeroU32>> {
        self.run.inside(OUTSIDE, || names.iter().map(|name| index(name)).collect())
    }

    /// Lets ports of the system take frames that were never packets: veth does that where the port polls, and it
    /// polls with a program. This one passes all to the kernel's stack. Not for systems with a program of their own.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn let_ports_poll(&self) -> Result<Vec<Attachment>> {
        let mut code = Assembler::new();
        code.mov(Register::R0, Action::Pass as i32).exit();
        let program = Program::load("pass", &code.finish()?)?;
        self.run.inside(BOX, || {
            let attach = |port: &String| Ok(Attachment::to(&program, index(port)?, Mode::Native)?);
            self.inlets().iter().map(attach).collect()
        })
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.attachments.clear();
    }
}

/// Index of an interface of the calling thread's namespace.
///
/// # Errors
/// There is none of this name.
pub fn index(interface: &str) -> Result<NonZeroU32> {
    let index =
        nix::net::if_::if_nametoindex(interface).doing(|| format!("looking up interface {interface}"))?;
    Ok(NonZeroU32::new(index).unwrap_or(NonZeroU32::MIN))
}

/// Every port with the far end of its cable and the MTU of both.
fn ends(pairs: usize) -> Vec<(String, String, u32)> {
    let links = sides().map(|side| (link_port(side), link_end(side), LINK_MTU));
    let pairs = (1..=pairs)
        .flat_map(|pair| sides().map(move |side| (pair_port(pair, side), pair_end(pair, side), PAIR_MTU)));
    links.chain(pairs).collect()
}

fn bring_up<'a>(
    run: &Run,
    space: &str,
    interfaces: impl Iterator<Item = &'a str> + Clone + Send,
) -> Result<()> {
    let names = interfaces.clone();
    run.inside(space, || names.into_iter().try_for_each(offloads_off))?;
    run.ip(Some(space), &interfaces.map(|name| format!("link set dev {name} up")).collect::<Vec<_>>())
}

fn attach(pairs: usize, way: Way, outside: &[&str]) -> Result<(Sink, Vec<Attachment>)> {
    let sink = Sink::load()?;
    let mut attachments = Vec::new();
    let through = (1..=pairs).map(|pair| (pair_end(pair, Side::Lan), pair_end(pair, Side::Wan)));
    let through: Vec<(String, String)> = if way == Way::Through { through.collect() } else { Vec::new() };
    for (lan, wan) in &through {
        attachments.push(sink.pass_on(index(lan)?, index(wan)?)?);
    }
    for end in outside.iter().filter(|end| through.iter().all(|(lan, _)| lan != *end)) {
        attachments.push(sink.end(index(end)?)?);
    }
    Ok((sink, attachments))
}
