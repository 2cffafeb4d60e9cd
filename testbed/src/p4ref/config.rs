//! `SetForwardingPipelineConfig` and `GetForwardingPipelineConfig`: the device configuration is p4c's JSON.

use std::sync::Arc;

use p4runtime::proto::p4::v1::entity::Entity as Kind;
use p4runtime::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::proto::p4::v1::write_request::Atomicity;
use p4runtime::proto::p4::v1::{
    CloneSessionEntry, Entity, ForwardingPipelineConfig, PacketReplicationEngineEntry, TableEntry, Update,
};
use tonic::Status;

use super::program::Program;
use super::switch::Switch;

/// The configuration in force with its switch, and one that is saved and waits for its commit.
pub(super) struct Config {
    cpu_port: u16,
    committed: Option<(ForwardingPipelineConfig, Switch)>,
    saved: Option<(ForwardingPipelineConfig, Switch)>,
}

impl Config {
    pub(super) fn new(cpu_port: u16) -> Self {
        Config { cpu_port, committed: None, saved: None }
    }

    /// The switch that packets go through.
    pub(super) fn switch_mut(&mut self) -> Option<&mut Switch> {
        self.committed.as_mut().map(|(_, switch)| switch)
    }

    /// The switch that reads and writes mean: that of the saved configuration, if there is one.
    pub(super) fn tables_mut(&mut self) -> Result<&mut Switch, Status> {
        let switch = self.saved.as_mut().or(self.committed.as_mut()).map(|(_, switch)| switch);
        switch.ok_or_else(|| {
            Status::failed_precondition(
                "no forwarding pipeline is set; call SetForwardingPipelineConfig first",
            )
        })
    }

    fn switch(&self, config: &ForwardingPipelineConfig) -> Result<Switch, Status> {
        let info = config.p4info.as_ref();
        let info = info.ok_or_else(|| Status::invalid_argument("the config has no P4Info"))?;
        let json = std::str::from_utf8(&config.p4_device_config)
            .map_err(|_| Status::invalid_argument("p4_device_config is no JSON for BMv2"))?;
        let program =
            Program::load(json, info).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Switch::new(Arc::new(program)).with_cpu_port(self.cpu_port))
    }

    /// Puts a configuration in force, with empty tables.
    pub(super) fn commit(&mut self, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let switch = self.switch(&config)?;
        (self.committed, self.saved) = (Some((config, switch)), None);
        Ok(())
    }

    pub(super) fn apply(
        &mut self,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        if action == Action::Commit {
            if config.is_some() {
                return Err(Status::invalid_argument("COMMIT takes no config; it is the saved one's"));
            }
            let saved = self.saved.take();
            self.committed = Some(saved.ok_or_else(|| {
                Status::not_found("no config is saved; VERIFY_AND_SAVE comes before COMMIT")
            })?);
            return Ok(());
        }
        let config = config.ok_or_else(|| Status::invalid_argument("the request has no config"))?;
        match action {
            Action::Verify => self.switch(&config).map(drop),
            Action::VerifyAndSave => {
                let switch = self.switch(&config)?;
                self.saved = Some((config, switch));
                Ok(())
            }
            Action::VerifyAndCommit => self.commit(config),
            Action::ReconcileAndCommit => self.reconcile(config),
            Action::Unspecified | Action::Commit => {
                Err(Status::invalid_argument("the request's action is unspecified"))
            }
        }
    }

    /// Puts a configuration in force and keeps everything that was written, if that fits the new program.
    fn reconcile(&mut self, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let mut switch = self.switch(&config)?;
        if let Some((old, before)) = self.committed.take() {
            if old.p4info == config.p4info && old.p4_device_config == config.p4_device_config {
                switch = before;
            } else if let Err(fault) = switch.write_all(&before) {
                self.committed = Some((old, before));
                return Err(Status::invalid_argument(format!(
                    "an entry does not fit the new program: {fault}"
                )));
            }
        }
        (self.committed, self.saved) = (Some((config, switch)), None);
        Ok(())
    }

    pub(super) fn read(&self, wanted: ResponseType) -> Option<ForwardingPipelineConfig> {
        let (config, _) = self.saved.as_ref().or(self.committed.as_ref())?;
        Some(ForwardingPipelineConfig {
            p4info: match wanted {
                ResponseType::All | ResponseType::P4infoAndCookie => config.p4info.clone(),
                ResponseType::CookieOnly | ResponseType::DeviceConfigAndCookie => None,
            },
            p4_device_config: match wanted {
                ResponseType::All | ResponseType::DeviceConfigAndCookie => config.p4_device_config.clone(),
                ResponseType::CookieOnly | ResponseType::P4infoAndCookie => Vec::new(),
            },
            cookie: config.cookie,
        })
    }
}

impl Switch {
    /// Writes everything that another switch was told: entries, written default entries, clone sessions.
    fn write_all(&mut self, other: &Switch) -> Result<(), p4runtime::Fault> {
        let sessions = PacketReplicationEngineEntry {
            r#type: Some(Replication::CloneSessionEntry(CloneSessionEntry::default())),
        };
        let filters: [Entity; 2] = [TableEntry::default().into(), sessions.into()];
        let (found, _) = other.read(&filters);
        let own = found.into_iter().filter(|entity| match &entity.entity {
            Some(Kind::TableEntry(entry)) => !entry.is_const,
            _ => true,
        });
        let defaults = other.written_defaults().into_iter().map(Update::modify);
        let updates: Vec<Update> = own.map(Update::insert).chain(defaults).collect();
        match self.write(&updates, Atomicity::RollbackOnError) {
            Ok(()) => Ok(()),
            Err(outcomes) => {
                let aborted = |fault: &p4runtime::Fault| fault.code() == tonic::Code::Aborted;
                let faults = outcomes.into_iter().filter_map(Result::err);
                Err(faults.into_iter().find(|fault| !aborted(fault)).unwrap_or_else(|| {
                    p4runtime::Fault::new(tonic::Code::Internal, "a batch failed without a fault")
                }))
            }
        }
    }
}
