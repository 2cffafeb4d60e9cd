//! A switch that runs a program: packets in, packets out, as BMv2's simple_switch does it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use p4runtime::metadata::MetadataError;
use p4runtime::proto::p4::v1::{PacketIn, PacketMetadata, PacketOut};

use super::action::{DROP_PORT, Machine};
use super::bits::{self, Writer};
use super::counter::Count;
use super::entry::{Entry, Place};
use super::layout::FieldId;
use super::packet::{CloneRequest, Packet, Undefined};
use super::pipeline::State;
use super::program::Program;
use super::session::Session;

/// Kinds of packets in `standard_metadata.instance_type`.
const NORMAL: u64 = 0;
const INGRESS_CLONE: u64 = 1;
const EGRESS_CLONE: u64 = 2;

/// Copies that one packet may make: a clone of a clone has no end.
const COPIES: usize = 64;

/// What came of a packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Packets that leave by a port, in order. Ports need not exist.
    pub sent: Vec<(u16, Vec<u8>)>,
    /// Packets to the controller: those that left by the CPU port.
    pub to_cpu: Vec<PacketIn>,
    /// Where the program relied on what is undefined, the first 64.
    pub undefined: Vec<Undefined>,
}

/// An entry in its table.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) entry: Entry,
    pub(super) slot: usize,
    pub(super) is_const: bool,
}

/// A switch.
pub struct Switch {
    pub(super) program: Arc<Program>,
    pub(super) state: State,
    /// Entries of each table, by the table's place in the P4Info.
    pub(super) stored: Vec<HashMap<Place, Stored>>,
    /// Default entries that were written.
    pub(super) defaults: Vec<Option<Entry>>,
    pub(super) sessions: BTreeMap<u32, Session>,
    cpu_port: Option<u16>,
    spare: Option<Packet>,
    key: Vec<u128>,
}

impl Switch {
    /// A switch without entries, apart from those that the program comes with.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        let mut switch = Switch {
            state: program.initial(),
            stored: Vec::new(),
            defaults: vec![None; program.info.tables.len()],
            sessions: BTreeMap::new(),
            cpu_port: None,
            spare: None,
            key: Vec::new(),
            program,
        };
        switch.stored = switch.const_entries();
        switch
    }

    /// The same switch with a port to the controller: what the program sends there becomes a packet-in.
    #[must_use]
    pub fn with_cpu_port(mut self, port: u16) -> Self {
        self.cpu_port = Some(port);
        self
    }

    /// The program that it runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs a packet that came in by a port at a time (nanoseconds since the switch began; the program sees
    /// microseconds, as on BMv2).
    pub fn process(&mut self, port: u16, bytes: &[u8], now_ns: u64) -> Output {
        let mut packet = self.spare.take().unwrap_or_else(|| Packet::new(&self.program.layout));
        let output = Pass { switch: self, now_us: now_ns / 1000, output: Output::default() }.run(
            &mut packet,
            port,
            bytes,
        );
        self.spare = Some(packet);
        output
    }

    /// Runs a packet of the controller: its metadata become the header `packet_out` in front of it, and it comes
    /// in by the CPU port.
    ///
    /// # Errors
    /// The metadata do not fit the P4Info, or there is no CPU port.
    pub fn packet_out(&mut self, packet: &PacketOut, now_ns: u64) -> Result<Output, MetadataError> {
        let missing = || MetadataError::Header { header: p4runtime::metadata::PACKET_OUT.to_owned() };
        let fields = self.program.info.packet_out.as_ref().ok_or_else(missing)?;
        let port = self.cpu_port.ok_or_else(missing)?;
        let layout = p4runtime::metadata::PacketLayout::of(
            &self.program.info.p4info,
            p4runtime::metadata::PACKET_OUT,
        )?;
        let values = layout.decode(&packet.metadata)?;
        let mut out = Writer::default();
        for field in fields {
            let value = values.get(field.name.as_str()).copied().unwrap_or_default();
            out.push(&value.into(), field.bits as usize);
        }
        out.extend(&packet.payload);
        Ok(self.process(port, &out.finish(), now_ns))
    }

    /// A cell of a counter array, by the array's full name; `None` where there is no such cell.
    #[must_use]
    pub fn counter(&self, name: &str, cell: usize) -> Option<Count> {
        let array = self.state.counters.find(name)?;
        self.state.counters.cells(array).get(cell).copied()
    }

    /// The packet-in of a packet to the CPU port: its first bytes are the header `packet_in`, whatever the
    /// program put there. `None` if it is too short for that.
    fn packet_in(&self, bytes: Vec<u8>) -> Option<PacketIn> {
        let fields = self.program.info.packet_in.as_deref().unwrap_or_default();
        let total = fields.iter().map(|field| field.bits as usize).sum::<usize>() / 8;
        let payload = bytes.get(total..)?.to_vec();
        let mut at = 0;
        let metadata = fields
            .iter()
            .map(|field| {
                let value = bits::read(&bytes, at, field.bits as usize);
                at += field.bits as usize;
                let value = p4runtime::bytestring::canonical(value.low_u128());
                PacketMetadata { metadata_id: field.id, value }
            })
            .collect();
        Some(PacketIn { payload, metadata })
    }
}

/// One packet's way, with all copies of it.
struct Pass<'s> {
    switch: &'s mut Switch,
    now_us: u64,
    output: Output,
}

impl Pass<'_> {
    fn run(mut self, packet: &mut Packet, port: u16, bytes: &[u8]) -> Output {
        let program = Arc::clone(&self.switch.program);
        let standard = program.intrinsic;
        packet.load(&program.layout, bytes);
        self.set(packet, standard.ingress_port, port.into());
        self.set(packet, standard.packet_length, bytes.len() as u64);
        self.set(packet, standard.ingress_timestamp, self.now_us);
        self.parse(packet);
        self.set(packet, standard.parser_error, packet.parser_error as u64);
        self.set(packet, standard.checksum_error, packet.checksum_error.into());
        self.block(packet, false);
        packet.exit = false;

        let mut queue = VecDeque::new();
        if let Some(request) = packet.clone.take() {
            self.ingress_clone(packet, port, bytes, request, &mut queue);
        }
        let group = self.get(packet, standard.mcast_grp);
        let egress_spec = self.get(packet, standard.egress_spec);
        if group != 0 {
            packet.note(Undefined::Multicast(group));
        } else if egress_spec != DROP_PORT {
            self.set(packet, standard.instance_type, NORMAL);
            queue.push_back((egress_spec as u16, packet.clone()));
        }
        let mut left = COPIES;
        while let Some((port, mut packet)) = queue.pop_front() {
            self.leave(&mut packet, port, &mut queue);
            self.output.undefined.extend(packet.take_undefined());
            left -= 1;
            if left == 0 && !queue.is_empty() {
                self.output.undefined.push(Undefined::Endless);
                break;
            }
        }
        // What the copies noted themselves was theirs; the packet's own list has gone with its clone.
        if self.output.undefined.is_empty() {
            self.output.undefined = packet.take_undefined();
        }
        self.output
    }

    fn set(&self, packet: &mut Packet, field: Option<FieldId>, value: u64) {
        if let Some(field) = field {
            packet.write(&self.switch.program.layout, field, &value.into());
        }
    }

    fn get(&self, packet: &Packet, field: Option<FieldId>) -> u64 {
        field.map_or(0, |field| packet.raw(field).low_u64())
    }

    fn machine<'a>(program: &'a Program, state: &'a mut State, packet: &'a mut Packet) -> Machine<'a> {
        Machine {
            layout: &program.layout,
            calculations: &program.calculations,
            counters: &mut state.counters,
            packet,
        }
    }

    /// Parses, and verifies checksums.
    fn parse(&mut self, packet: &mut Packet) {
        let program = Arc::clone(&self.switch.program);
        program.parser.parse(&mut Self::machine(&program, &mut self.switch.state, packet));
        let right = |checksum: &super::calculation::Checksum| {
            checksum.is_right(&program.layout, &program.calculations, packet)
        };
        packet.checksum_error = !program.checksums.iter().all(right);
    }

    /// Runs ingress or egress.
    fn block(&mut self, packet: &mut Packet, egress: bool) {
        let program = Arc::clone(&self.switch.program);
        let State { tables, counters } = &mut self.switch.state;
        let mut machine =
            Machine { layout: &program.layout, calculations: &program.calculations, counters, packet };
        let block = if egress { &program.egress } else { &program.ingress };
        block.run(&program.tables, &program.actions, tables, &mut machine, &mut self.switch.key);
    }

    /// BMv2 parses the packet anew as it came in, then clears all metadata but those of the field list.
    fn ingress_clone(
        &mut self,
        original: &Packet,
        port: u16,
        bytes: &[u8],
        request: CloneRequest,
        queue: &mut VecDeque<(u16, Packet)>,
    ) {
        let Some(session) = self.switch.sessions.get(&request.session).cloned() else { return };
        let program = Arc::clone(&self.switch.program);
        let mut copy = Packet::new(&program.layout);
        copy.load(&program.layout, bytes);
        self.set(&mut copy, program.intrinsic.ingress_port, port.into());
        self.parse(&mut copy);
        self.keep_fields(&mut copy, original, request, INGRESS_CLONE);
        self.replicate(&copy, &session, queue);
    }

    fn keep_fields(&self, copy: &mut Packet, original: &Packet, request: CloneRequest, kind: u64) {
        let program = &self.switch.program;
        copy.clear_metadata(&program.layout);
        for field in program.field_lists.get(&request.fields).into_iter().flatten() {
            let value = original.raw(*field).clone();
            copy.write(&program.layout, *field, &value);
        }
        self.set(copy, program.intrinsic.instance_type, kind);
    }

    fn replicate(&self, copy: &Packet, session: &Session, queue: &mut VecDeque<(u16, Packet)>) {
        for replica in &session.replicas {
            let mut copy = copy.clone();
            self.set(&mut copy, self.switch.program.intrinsic.egress_rid, replica.instance.into());
            queue.push_back((replica.port, copy));
        }
    }

    /// Egress and deparser.
    fn leave(&mut self, packet: &mut Packet, port: u16, queue: &mut VecDeque<(u16, Packet)>) {
        let program = Arc::clone(&self.switch.program);
        let standard = program.intrinsic;
        self.set(packet, standard.enq_timestamp, self.now_us);
        self.set(packet, standard.egress_timestamp, self.now_us);
        self.set(packet, standard.egress_port, port.into());
        // BMv2 writes the number after the drop port, which the field cuts to 0.
        self.set(packet, standard.egress_spec, DROP_PORT + 1);
        self.set(packet, standard.packet_length, u64::try_from(packet.length).unwrap_or_default());
        self.block(packet, true);
        if let Some(request) = packet.clone.take()
            && let Some(session) = self.switch.sessions.get(&request.session).cloned()
        {
            let mut copy = packet.clone();
            copy.exit = false;
            copy.take_undefined();
            self.keep_fields(&mut copy, packet, request, EGRESS_CLONE);
            self.replicate(&copy, &session, queue);
        }
        if self.get(packet, standard.egress_spec) == DROP_PORT {
            return;
        }
        for checksum in &program.checksums {
            checksum.update(&program.layout, &program.calculations, packet);
        }
        for action in &program.deparser_actions {
            action.run(&mut Self::machine(&program, &mut self.switch.state, packet), &[]);
        }
        let mut out = Writer::default();
        for header in program.emitted.iter().filter(|header| packet.is_valid(**header)) {
            packet.emit(&program.layout, *header, &mut out);
        }
        out.extend(packet.payload());
        let bytes = out.finish();
        if self.switch.cpu_port == Some(port) {
            self.output.to_cpu.extend(self.switch.packet_in(bytes));
        } else {
            self.output.sent.push((port, bytes));
        }
    }
}
