//! A target over P4Runtime: another process, another machine, or the pipeline in this process.

use std::collections::HashMap;
use std::time::Duration;

use dataplane::PortId;
use dataplane::entry::{Entry, P4Id, Update};
use dataplane::schema::{PACKET_IN, PACKET_OUT};
use dataplane::tables::Family;
use dataplane::target::TargetProfile;
use p4runtime::client::{
    Atomicity, Error, Inbox, Options, PipelineAction, ResponseType, Retry, Session, State, Supervisor,
    Uplink, WriteError,
};
use p4runtime::metadata::PacketLayout;
use p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, Entity, ForwardingPipelineConfig, Index, PacketOut, TableEntry, entity,
};
use p4runtime::{ElectionId, entry};
use swpipe::counters::Count;
use tokio::sync::watch;

use super::{PacketIn, Packets, Program, Standing, Target, TargetError};

/// Keep-alives that wait for the controller.
const PACKETS: usize = 16_384;

/// Receives frames from a device over P4Runtime.
pub struct P4rtPackets {
    inbox: Inbox,
    layout: PacketLayout,
}

impl Packets for P4rtPackets {
    async fn next(&mut self) -> Option<PacketIn> {
        loop {
            let packet = self.inbox.packets.recv().await?;
            if let Some(packet) = self.read(packet) {
                return Some(packet);
            }
        }
    }

    fn ready(&mut self) -> Option<PacketIn> {
        while let Ok(packet) = self.inbox.packets.try_recv() {
            if let Some(packet) = self.read(packet) {
                return Some(packet);
            }
        }
        None
    }
}

impl P4rtPackets {
    fn read(&self, packet: p4runtime::proto::p4::v1::PacketIn) -> Option<PacketIn> {
        let metadata = match self.layout.decode(&packet.metadata) {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::warn!("packet-in with unknown metadata: {error}");
                return None;
            }
        };
        Some(PacketIn {
            port: PortId(u16::try_from(*metadata.get("ingress_port")?).ok()?),
            received: u64::try_from(*metadata.get("receive_time")?).ok()?,
            frame: packet.payload,
        })
    }
}

/// A target over P4Runtime.
pub struct P4rt {
    address: String,
    uplink: Uplink,
    standing: watch::Receiver<Standing>,
    program: Program,
    packet_out: PacketLayout,
}

impl P4rt {
    /// Begins to connect, and goes on for as long as the process lives.
    ///
    /// # Errors
    /// The P4Info lacks the packet headers: a bug of ours.
    pub fn start(
        target: p4runtime::client::Target,
        address: String,
        device_id: u64,
        election_id: u128,
        program: Program,
    ) -> Result<(Self, P4rtPackets), p4runtime::metadata::MetadataError> {
        let layout = PacketLayout::of(&program.p4info, PACKET_IN.name)?;
        let packet_out = PacketLayout::of(&program.p4info, PACKET_OUT.name)?;
        let mut options = Options::new(device_id, Some(ElectionId(election_id)));
        options.batch = program.profile.writes.updates;
        options.batch_bytes = program.profile.writes.bytes;
        options.packets = PACKETS;
        // A write of 100,000 rules is one request.
        options.call_deadline = Duration::from_secs(60);
        let retry = Retry {
            first: Duration::from_millis(50),
            most: Duration::from_secs(1),
            probe: Duration::from_secs(2),
        };
        let (supervisor, uplink, inbox) = Supervisor::new(target, options, retry);
        tokio::spawn(supervisor.run());
        let (report, standing) = watch::channel(Standing::Lost("not connected yet".to_owned()));
        tokio::spawn(follow(uplink.clone(), report));
        let packets = P4rtPackets { inbox, layout };
        Ok((P4rt { address, uplink, standing, program, packet_out }, packets))
    }

    fn session(&self) -> Result<Session, TargetError> {
        self.uplink.primary().ok_or_else(|| TargetError::Lost {
            address: self.address.clone(),
            reason: match self.uplink.state() {
                State::Lost { reason, .. } => reason,
                State::Backup { .. } => "another controller is its primary".to_owned(),
                State::Connecting | State::Primary(_) => "connecting".to_owned(),
            },
        })
    }

    fn unanswered(&self, what: &str, reason: &dyn std::fmt::Display) -> TargetError {
        TargetError::Unanswered {
            address: self.address.clone(),
            what: what.to_owned(),
            reason: reason.to_string(),
        }
    }

    fn write_error(&self, error: &WriteError, updates: &[Update]) -> TargetError {
        let first = error.rejections.iter().find(|rejection| rejection.fault.code() != tonic::Code::Aborted);
        let address = self.address.clone();
        let all_or_nothing = self.program.profile.writes.all_or_nothing;
        match (first, &error.stopped) {
            (Some(rejection), _) => {
                let what = updates.get(rejection.index).map_or_else(String::new, named);
                let reason = rejection.fault.message().to_owned();
                if all_or_nothing {
                    TargetError::Refused { address, what, reason }
                } else {
                    TargetError::Partly { address, what, reason }
                }
            }
            (None, Some(stopped)) => self.unanswered("a write", &stopped.cause),
            (None, None) => self.unanswered("a write", error),
        }
    }

    /// What the program's restrictions do not allow is not even sent: a target may not know them.
    fn check(&self, updates: &[Update]) -> Result<(), TargetError> {
        for update in updates {
            let checked = match update {
                Update::Insert(entry) | Update::Modify(entry) => {
                    dataplane::tables::TableEntry::parse(entry).map(drop)
                }
                Update::Delete(_) => Ok(()),
            };
            checked.map_err(|fault| TargetError::Refused {
                address: self.address.clone(),
                what: named(update),
                reason: fault.to_string(),
            })?;
        }
        Ok(())
    }
}

/// The entry that an update is of, for messages.
fn named(update: &Update) -> String {
    let entry = update.entry();
    let table = dataplane::tables::by_id(entry.table).map_or("?", |table| table.name);
    let name = String::from_utf8_lossy(&entry.metadata);
    format!("an entry of table {table} {name}").trim_end().to_owned()
}

/// Reduces the session's states to what the controller acts on. Where no controller is primary any more, this one
/// claims the device: its pairs must not go unwatched.
async fn follow(uplink: Uplink, report: watch::Sender<Standing>) {
    let mut states = uplink.watch();
    let mut connection = 0;
    loop {
        let standing = match &*states.borrow_and_update() {
            State::Primary(_) => {
                connection += 1;
                Some(Standing::Primary(connection))
            }
            State::Backup { primary: false, highest, .. } => {
                // P4Runtime, "Client Arbitration": only an id that is not below the highest seen becomes primary.
                uplink.claim(highest.map(|id| ElectionId(id.0.saturating_add(1))));
                None
            }
            State::Backup { .. } => Some(Standing::Backup),
            State::Lost { reason, .. } => Some(Standing::Lost(reason.clone())),
            State::Connecting => None,
        };
        if let Some(standing) = standing {
            report.send_replace(standing);
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

fn count(data: Option<&CounterData>) -> Count {
    data.map_or_else(Count::default, |data| Count {
        packets: u64::try_from(data.packet_count).unwrap_or(0),
        bytes: u64::try_from(data.byte_count).unwrap_or(0),
    })
}

impl Target for P4rt {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn profile(&self) -> &'static TargetProfile {
        self.program.profile
    }

    fn pipeline(&self) -> String {
        format!("{:016x}", self.program.digest())
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    async fn prepare(&self) -> Result<bool, TargetError> {
        let session = self.session()?;
        let Program { p4info, device_config, .. } = self.program.clone();
        let wanted = ForwardingPipelineConfig::new(p4info, device_config, self.program.digest());
        // A device without a pipeline answers FAILED_PRECONDITION, which is no fault here.
        let current = session.pipeline(ResponseType::CookieOnly).await.ok().flatten();
        if current.and_then(|config| config.cookie) == wanted.cookie {
            return Ok(false);
        }
        session.set_pipeline(PipelineAction::VerifyAndCommit, Some(wanted)).await.map_err(
            |error| match error {
                Error::Refused { code, message, .. } if is_answer(code) => TargetError::Pipeline {
                    address: self.address.clone(),
                    digest: self.pipeline(),
                    profile: self.program.profile,
                    reason: message,
                },
                error => self.unanswered("the pipeline configuration", &error),
            },
        )?;
        Ok(true)
    }

    async fn write(&self, updates: Vec<Update>) -> Result<(), TargetError> {
        if updates.is_empty() {
            return Ok(());
        }
        self.check(&updates)?;
        let wire = updates.iter().map(entry::update_to_wire).collect();
        let session = self.session()?;
        let atomicity = if self.program.profile.writes.all_or_nothing {
            Atomicity::DataplaneAtomic
        } else {
            Atomicity::ContinueOnError
        };
        session.write(wire, atomicity).await.map_err(|error| self.write_error(&error, &updates))
    }

    async fn entries(&self) -> Result<Vec<Entry>, TargetError> {
        let entities = self
            .session()?
            .read(entry::every_entry())
            .await
            .map_err(|error| self.unanswered("a read of its tables", &error))?;
        let mut entries = Vec::with_capacity(entities.len());
        for entity in entities {
            let read = entry::from_entity(&entity)
                .map_err(|fault| self.unanswered("a read of its tables", &fault.message()))?;
            entries.extend(read);
        }
        Ok(entries)
    }

    async fn counters(&self, cells: Vec<(P4Id, usize)>) -> Result<Vec<Count>, TargetError> {
        let filters = cells
            .iter()
            .map(|(counter, index)| {
                Entity::from(CounterEntry {
                    counter_id: *counter,
                    index: Some(Index { index: *index as i64 }),
                    data: None,
                })
            })
            .collect();
        let entities = self
            .session()?
            .read(filters)
            .await
            .map_err(|error| self.unanswered("a read of counters", &error))?;
        let mut values: HashMap<(P4Id, usize), Count> = HashMap::with_capacity(entities.len());
        for entity in entities {
            if let Some(entity::Entity::CounterEntry(cell)) = entity.entity {
                let index = cell.index.map_or(0, |index| index.index) as usize;
                values.insert((cell.counter_id, index), count(cell.data.as_ref()));
            }
        }
        Ok(cells.iter().map(|cell| values.get(cell).copied().unwrap_or_default()).collect())
    }

    async fn rule_counters(&self) -> Result<Vec<(Entry, Count)>, TargetError> {
        let filters = Family::BOTH
            .iter()
            .map(|family| {
                Entity::from(TableEntry {
                    table_id: family.table(),
                    counter_data: Some(CounterData::default()),
                    ..TableEntry::default()
                })
            })
            .collect();
        let entities = self
            .session()?
            .read(filters)
            .await
            .map_err(|error| self.unanswered("a read of rule counters", &error))?;
        let mut rules = Vec::with_capacity(entities.len());
        for entity in entities {
            if let Some(entity::Entity::TableEntry(wire)) = entity.entity {
                let value = count(wire.counter_data.as_ref());
                let entry = entry::from_wire(&wire)
                    .map_err(|fault| self.unanswered("a read of rule counters", &fault.message()))?;
                rules.push((entry, value));
            }
        }
        Ok(rules)
    }

    async fn send(&self, port: PortId, frame: Vec<u8>) -> Result<(), TargetError> {
        let metadata = self
            .packet_out
            .encode(&[("egress_port", port.0.into())])
            .map_err(|error| self.unanswered("a packet-out", &error))?;
        self.session()?
            .send_packet(PacketOut { payload: frame, metadata })
            .await
            .map_err(|error| self.unanswered("a packet-out", &error))
    }
}

/// A code by which a server judges, not one by which a connection breaks.
fn is_answer(code: tonic::Code) -> bool {
    use tonic::Code::{Cancelled, DeadlineExceeded, PermissionDenied, Unavailable};
    // Permission is denied to who is not primary any more.
    !matches!(code, Cancelled | DeadlineExceeded | Unavailable | PermissionDenied)
}
