//! The compiled P4 program in the reference interpreter, as a data plane under test.

use std::path::Path;
use std::sync::Arc;

use dataplane::PortId;
use dataplane::entry::{Entry, Update};
use dataplane::schema::counters;
use dataplane::tables::Family;
use p4runtime::entry::{place_from_wire, update_to_wire};
use p4runtime::metadata::{PACKET_IN, PacketLayout};
use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::write_request::Atomicity;
use p4runtime::proto::p4::v1::{
    self as wire, CounterData, CounterEntry, DirectCounterEntry, Entity, PacketIn, TableEntry,
};
use swpipe::counters::Count;

use super::bytes::{links_of, without_steering_header};
use super::plane::{Counts, Ending, Outcome, Plane, ending};
use crate::error::{Doing, Error, Result};
use crate::p4ref::{Program, Switch, read_info};

/// Port of the controller in the program for BMv2.
const CPU_PORT: u16 = 510;
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
    packet_in: PacketLayout,
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
            packet_in: PacketLayout::of(&p4info, PACKET_IN).map_err(broke)?,
            switch: switch(&program),
            program,
            now: 0,
            verdicts: Vec::new(),
            entries: Vec::new(),
        })
    }

    fn read(&self, filter: impl Into<Entity>) -> Result<Vec<Kind>> {
        let (found, outcomes) = self.switch.read(&[filter.into()]);
        if let Some(fault) = outcomes.into_iter().find_map(std::result::Result::err) {
            return Err(broke(fault));
        }
        Ok(found.into_iter().filter_map(|entity| entity.entity).collect())
    }

    fn array(&self, id: u32) -> Result<Vec<Count>> {
        let filter = CounterEntry { counter_id: id, ..CounterEntry::default() };
        let cells = self.read(filter)?.into_iter().map(|kind| match kind {
            Kind::CounterEntry(cell) => Ok(count(cell.data.as_ref())),
            other => Err(broke(format!("a counter was asked for, {other:?} came"))),
        });
        cells.collect()
    }

    fn received(&self, packet: &PacketIn) -> Result<(PortId, Vec<u8>)> {
        let values = self.packet_in.decode(&packet.metadata).map_err(broke)?;
        let port = values.get("ingress_port").copied().unwrap_or(u128::MAX);
        let port = u16::try_from(port).map_err(|_| broke(format!("packet-in from port {port}")))?;
        Ok((PortId(port), packet.payload.clone()))
    }
}

fn switch(program: &Arc<Program>) -> Switch {
    Switch::new(Arc::clone(program)).with_cpu_port(CPU_PORT)
}

fn count(data: Option<&CounterData>) -> Count {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or_default();
    data.map_or(Count::default(), |data| Count {
        packets: unsigned(data.packet_count),
        bytes: unsigned(data.byte_count),
    })
}

impl Plane for Reference {
    fn name(&self) -> &str {
        "p4ref"
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.switch = switch(&self.program);
        self.now = 0;
        let updates: Vec<wire::Update> = entries
            .iter()
            .cloned()
            .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
            .map(|update| update_to_wire(&update))
            .collect();
        self.switch.write(&updates, Atomicity::ContinueOnError).map_err(|results| {
            let fault = results
                .into_iter()
                .zip(&updates)
                .find_map(|(result, update)| Some(format!("{}: {update:?}", result.err()?)));
            broke(fault.unwrap_or_default())
        })?;
        self.entries = entries.to_vec();
        self.verdicts = self.array(counters::VERDICTS.id)?;
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
            if to_controller.replace(self.received(packet)?).is_some() {
                odd.push("several packet-ins".to_owned());
            }
        }
        odd.extend(output.undefined.iter().map(|undefined| format!("undefined: {undefined}")));
        let verdicts = self.array(counters::VERDICTS.id)?;
        let ending =
            if odd.is_empty() { ending(&self.verdicts, &verdicts) } else { Ending::Odd(odd.join("; ")) };
        self.verdicts = verdicts;
        Ok(Outcome { sent, to_controller, ending })
    }

    fn counts(&mut self) -> Result<Counts> {
        let mut counts = Counts::default();
        for array in counters::ALL {
            let cells = self.array(array.id)?;
            let rose = cells.into_iter().enumerate().filter(|(_, count)| *count != Count::default());
            counts.cells.extend(rose.map(|(cell, count)| ((array.id, cell), count)));
        }
        for family in Family::BOTH {
            let table = TableEntry { table_id: family.table(), ..TableEntry::default() };
            for kind in self.read(DirectCounterEntry { table_entry: Some(table), data: None })? {
                let Kind::DirectCounterEntry(direct) = kind else { continue };
                let count = count(direct.data.as_ref());
                let place = direct.table_entry.as_ref().map(place_from_wire);
                if let (Some(place), true) = (place, count != Count::default()) {
                    counts.rules.insert(place.map_err(broke)?, count);
                }
            }
        }
        Ok(without_steering_header(counts, &links_of(&self.entries)))
    }
}
