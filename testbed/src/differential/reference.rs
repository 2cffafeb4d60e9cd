//! The compiled P4 program in the reference interpreter, as a data plane under test.

use std::path::Path;
use std::sync::Arc;

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::schema::counters;
use p4runtime::proto::p4::v1::Entity;
use p4runtime::proto::p4::v1::write_request::Atomicity;
use swpipe::counters::Count;

use super::plane::{Counts, Ending, Outcome, Plane, ending};
use super::wire::{self, CPU_PORT, PacketIns};
use crate::error::{Doing, Error, Result};
use crate::p4ref::{Program, Switch, read_info};

/// Time between two frames, ns.
const STEP: u64 = 10_000;

/// What p4c made: the program, and its P4Info.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// JSON for BMv2.
    pub json: String,
    /// P4Info as protobuf text.
    pub p4info: String,
}

impl Compiled {
    /// Reads both from a directory.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn load(directory: &Path) -> Result<Self> {
        let read = |name: &str| {
            let file = directory.join(name);
            std::fs::read_to_string(&file).doing(|| format!("reading {}", file.display()))
        };
        Ok(Compiled { json: read("sluice.bmv2.json")?, p4info: read("sluice.p4info.txtpb")? })
    }
}

/// The reference interpreter with a program.
pub struct Reference {
    program: Arc<Program>,
    packet_ins: PacketIns,
    switch: Switch,
    now: u64,
    verdicts: Vec<Count>,
    entries: Vec<Entry>,
}

fn broke(reason: impl ToString) -> Error {
    Error::Plane { plane: "p4ref".into(), reason: reason.to_string() }
}

impl Reference {
    /// Loads a program.
    ///
    /// # Errors
    /// What the interpreter says against it.
    pub fn new(compiled: &Compiled) -> Result<Self> {
        let p4info = read_info(&compiled.p4info).map_err(broke)?;
        let program = Arc::new(Program::load(&compiled.json, &p4info).map_err(broke)?);
        Ok(Reference {
            packet_ins: PacketIns::of(&p4info).map_err(broke)?,
            switch: switch(&program),
            program,
            now: 0,
            verdicts: Vec::new(),
            entries: Vec::new(),
        })
    }

    fn read(&self, filters: &[Entity]) -> Result<Vec<Entity>> {
        let (found, outcomes) = self.switch.read(filters);
        match outcomes.into_iter().find_map(std::result::Result::err) {
            Some(fault) => Err(broke(fault)),
            None => Ok(found),
        }
    }

    fn verdicts(&self) -> Result<Vec<Count>> {
        self.read(&[wire::array(counters::VERDICTS.id)]).map(wire::cells)
    }
}

fn switch(program: &Arc<Program>) -> Switch {
    Switch::new(Arc::clone(program)).with_cpu_port(CPU_PORT)
}

impl Plane for Reference {
    fn name(&self) -> &str {
        "p4ref"
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.switch = switch(&self.program);
        self.now = 0;
        let updates = wire::updates(entries);
        self.switch.write(&updates, Atomicity::ContinueOnError).map_err(|results| {
            let fault = results
                .into_iter()
                .zip(&updates)
                .find_map(|(result, update)| Some(format!("{}: {update:?}", result.err()?)));
            broke(fault.unwrap_or_default())
        })?;
        self.entries = entries.to_vec();
        self.verdicts = self.verdicts()?;
        Ok(())
    }

    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome> {
        self.now += STEP;
        let output = self.switch.process(port.0, bytes, self.now);
        let mut sent: Vec<(PortId, Vec<u8>)> =
            output.sent.into_iter().map(|(port, frame)| (PortId(port), frame)).collect();
        sent.sort();
        let mut to_controller = None;
        let mut odd = Vec::new();
        for packet in &output.to_cpu {
            if to_controller.replace(self.packet_ins.read(packet).map_err(broke)?).is_some() {
                odd.push("several packet-ins".to_owned());
            }
        }
        odd.extend(output.undefined.iter().map(|undefined| format!("undefined: {undefined}")));
        let verdicts = self.verdicts()?;
        let ending =
            if odd.is_empty() { ending(&self.verdicts, &verdicts) } else { Ending::Odd(odd.join("; ")) };
        self.verdicts = verdicts;
        Ok(Outcome { sent, to_controller, ending })
    }

    fn counts(&mut self) -> Result<Counts> {
        wire::counts(self.read(&wire::all_counters())?, &self.entries).map_err(broke)
    }
}
