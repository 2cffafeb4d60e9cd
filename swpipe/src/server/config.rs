//! `SetForwardingPipelineConfig` and `GetForwardingPipelineConfig`: there is one program, built in; a
//! configuration names it by its P4Info.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use dataplane::entry::Entry;
use p4runtime::entry::p4info_of;
use p4runtime::proto::p4::config::v1::{P4Info, Preamble};
use p4runtime::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::proto::p4::v1::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
};
use tonic::Status;

use super::Shared;
use crate::device::Device;

/// The configuration in force, and one that is saved and waits for its commit with tables of its own.
pub(super) struct Forwarding {
    pub(super) device: Arc<Device>,
    committed: Option<ForwardingPipelineConfig>,
    saved: Option<(ForwardingPipelineConfig, Arc<Device>)>,
}

impl Forwarding {
    pub(super) fn new(device: Arc<Device>) -> Self {
        Forwarding { device, committed: None, saved: None }
    }

    /// The tables that reads and writes mean: those of the saved configuration, if there is one.
    pub(super) fn tables(&self) -> Result<&Arc<Device>, Status> {
        match (&self.saved, &self.committed) {
            (Some((_, tables)), _) => Ok(tables),
            (None, Some(_)) => Ok(&self.device),
            (None, None) => Err(Status::failed_precondition(
                "no forwarding pipeline is set; call SetForwardingPipelineConfig first",
            )),
        }
    }

    /// While no controller has set or saved a configuration.
    pub(super) fn set_initial_tables(&self, entries: &[Entry]) -> bool {
        let unset = self.committed.is_none() && self.saved.is_none();
        if unset {
            self.device.replace(entries);
        }
        unset
    }

    fn apply(&mut self, action: Action, config: Option<ForwardingPipelineConfig>) -> Result<(), Status> {
        if action == Action::Commit {
            if config.is_some() {
                return Err(Status::invalid_argument("COMMIT takes no config; it is the saved one's"));
            }
            let (config, tables) = self.saved.take().ok_or_else(|| {
                Status::not_found("no config is saved; VERIFY_AND_SAVE comes before COMMIT")
            })?;
            self.device.replace(&tables.entries(None));
            self.committed = Some(config);
            return Ok(());
        }
        let config = config.ok_or_else(|| Status::invalid_argument("the request has no config"))?;
        let info = config.p4info.as_ref();
        let info = info.ok_or_else(|| Status::invalid_argument("the config has no P4Info"))?;
        if let Err(difference) = compare(&p4info_of(self.device.profile()), info) {
            return Err(Status::invalid_argument(format!(
                "the P4Info is not that of this device, which has the limits of {}: {difference}",
                self.device.profile()
            )));
        }
        match action {
            Action::Verify => {}
            Action::VerifyAndSave => {
                let tables = Arc::new(Device::new(self.device.profile()));
                self.saved = Some((config, tables));
            }
            Action::VerifyAndCommit => {
                self.device.replace(&[]);
                (self.committed, self.saved) = (Some(config), None);
            }
            // The program is the same, so all entries can stay.
            Action::ReconcileAndCommit => (self.committed, self.saved) = (Some(config), None),
            Action::Unspecified | Action::Commit => {
                return Err(Status::invalid_argument("the request's action is unspecified"));
            }
        }
        Ok(())
    }
}

impl Shared {
    pub(super) fn set_config(
        &self,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<SetForwardingPipelineConfigResponse, Status> {
        let _permit = self.controllers.admit(&request)?;
        let action = request.action();
        self.forwarding().apply(action, request.config)?;
        Ok(SetForwardingPipelineConfigResponse {})
    }

    pub(super) fn get_config(
        &self,
        request: &GetForwardingPipelineConfigRequest,
    ) -> Result<GetForwardingPipelineConfigResponse, Status> {
        self.check_device(request.device_id)?;
        let wanted = request.response_type();
        let forwarding = self.forwarding();
        let saved = forwarding.saved.as_ref().map(|(config, _)| config);
        let config = saved.or(forwarding.committed.as_ref()).map(|config| ForwardingPipelineConfig {
            p4info: match wanted {
                ResponseType::All | ResponseType::P4infoAndCookie => config.p4info.clone(),
                ResponseType::CookieOnly | ResponseType::DeviceConfigAndCookie => None,
            },
            p4_device_config: match wanted {
                ResponseType::All | ResponseType::DeviceConfigAndCookie => config.p4_device_config.clone(),
                ResponseType::CookieOnly | ResponseType::P4infoAndCookie => Vec::new(),
            },
            cookie: config.cookie,
        });
        Ok(GetForwardingPipelineConfigResponse { config })
    }
}

/// Compares what a P4Info means: ids, names, widths, kinds, sizes. Order, documentation, annotations and the
/// package's own description do not matter.
fn compare(ours: &P4Info, theirs: &P4Info) -> Result<(), String> {
    let (ours, theirs) = (parts(ours), parts(theirs));
    for (what, ours) in &ours {
        match theirs.get(what) {
            None => return Err(format!("{what} is missing")),
            Some(theirs) if theirs != ours => return Err(format!("{what} is {theirs}, here it is {ours}")),
            Some(_) => {}
        }
    }
    match theirs.keys().find(|what| !ours.contains_key(*what)) {
        Some(what) => Err(format!("{what} is unknown here")),
        None => Ok(()),
    }
}

/// Each part of a P4Info by what it is, and what it means.
fn parts(info: &P4Info) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut note = |what: String, meaning: &dyn Debug| {
        parts.insert(what, format!("{meaning:?}"));
    };
    let label = |kind: &str, preamble: &Option<Preamble>| {
        let (id, name) = preamble.as_ref().map_or((0, ""), |preamble| (preamble.id, preamble.name.as_str()));
        format!("{kind} {id:#010x} {name}")
    };
    for table in &info.tables {
        let of = label("table", &table.preamble);
        for field in &table.match_fields {
            note(format!("{of} match field {} {}", field.id, field.name), &(field.bitwidth, &field.r#match));
        }
        for action in &table.action_refs {
            note(format!("{of} action {:#010x}", action.id), &action.scope());
        }
        let default = table.initial_default_action.as_ref().filter(|_| table.const_default_action_id == 0);
        note(format!("{of} default action"), &(table.const_default_action_id, default));
        note(format!("{of} size"), &table.size);
        note(format!("{of} direct resources"), &table.direct_resource_ids);
        note(format!("{of} implementation"), &table.implementation_id);
    }
    for action in &info.actions {
        let of = label("action", &action.preamble);
        note(of.clone(), &action.params.len());
        for param in &action.params {
            note(format!("{of} parameter {} {}", param.id, param.name), &param.bitwidth);
        }
    }
    for counter in &info.counters {
        note(label("counter", &counter.preamble), &(counter.size, counter.spec));
    }
    for counter in &info.direct_counters {
        note(label("direct counter", &counter.preamble), &(counter.direct_table_id, counter.spec));
    }
    for header in &info.controller_packet_metadata {
        let of = label("controller header", &header.preamble);
        for field in &header.metadata {
            note(format!("{of} field {} {}", field.id, field.name), &field.bitwidth);
        }
    }
    let others = [
        ("action profile", info.action_profiles.iter().map(|it| &it.preamble).collect::<Vec<_>>()),
        ("meter", info.meters.iter().map(|it| &it.preamble).collect()),
        ("direct meter", info.direct_meters.iter().map(|it| &it.preamble).collect()),
        ("value set", info.value_sets.iter().map(|it| &it.preamble).collect()),
        ("register", info.registers.iter().map(|it| &it.preamble).collect()),
        ("digest", info.digests.iter().map(|it| &it.preamble).collect()),
    ];
    for (kind, preambles) in others {
        for preamble in preambles {
            note(label(kind, preamble), &"there");
        }
    }
    for kind in &info.externs {
        note(format!("extern {:#010x} {}", kind.extern_type_id, kind.extern_type_name), &"there");
    }
    parts
}

#[cfg(test)]
mod tests {
    use p4runtime::entry::p4info;

    use super::*;

    #[test]
    fn order_and_documentation_do_not_matter() {
        let mut theirs = p4info();
        theirs.tables.reverse();
        theirs.actions.reverse();
        theirs.pkg_info = None;
        for table in &mut theirs.tables {
            table.match_fields.reverse();
            if let Some(preamble) = &mut table.preamble {
                preamble.doc = None;
                preamble.annotations.push("@hidden".to_owned());
            }
        }
        assert_eq!(compare(&p4info(), &theirs), Ok(()));
    }

    #[test]
    fn first_difference_is_named() {
        let differs = |spoil: &dyn Fn(&mut P4Info), said: &str| {
            let mut theirs = p4info();
            spoil(&mut theirs);
            let difference = compare(&p4info(), &theirs).unwrap_err();
            assert!(difference.contains(said), "{difference}");
        };
        differs(
            &|info| info.tables[1].match_fields[0].bitwidth = 10,
            "ports match field 1 ingress_port is (10",
        );
        differs(&|info| drop(info.tables.remove(3)), "rules_v6");
        differs(&|info| drop(info.actions[1].params.pop()), "link_port");
        differs(&|info| info.counters[0].size = 7, "verdicts is (7");
        differs(&|info| info.meters.push(Default::default()), "meter 0x00000000  is unknown here");
        differs(&|info| info.tables[0].size = 2, "steering size is 2, here it is 1");
    }
}
