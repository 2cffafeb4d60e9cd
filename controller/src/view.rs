//! What the controller knows at one instant, for everything that only looks.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use dataplane::PortId;
use dataplane::target::TargetProfile;
use site::{Condition, Ids, PairName, Site};
use swpipe::device::{Atomicity, Device};

use crate::difference::{Tables, Updates};

/// One instant; a change makes a new one.
#[derive(Clone)]
pub struct View {
    /// The running configuration.
    pub site: Arc<Site>,
    /// Numbers in force.
    pub ids: Arc<Ids>,
    /// Pairs and units as the tables have them.
    pub condition: Arc<Condition>,
    /// Units' modes by hand; the others are in auto.
    pub modes: Arc<BTreeMap<String, api::UnitMode>>,
    /// The entries of the data plane.
    pub tables: Arc<Tables>,
    /// Applied configurations and repairs since the start.
    pub epoch: u64,
    profile: &'static TargetProfile,
    /// Made on the first look-up.
    model: Arc<OnceLock<Device>>,
}

impl View {
    /// A view without a model yet.
    #[must_use]
    pub fn new(
        site: Arc<Site>,
        ids: Arc<Ids>,
        condition: Arc<Condition>,
        modes: Arc<BTreeMap<String, api::UnitMode>>,
        tables: Arc<Tables>,
        epoch: u64,
        profile: &'static TargetProfile,
    ) -> Self {
        View { site, ids, condition, modes, tables, epoch, profile, model: Arc::default() }
    }

    /// The data plane's tables in the software pipeline's model of them.
    #[must_use]
    pub fn model(&self) -> &Device {
        self.model.get_or_init(|| {
            let device = Device::new(self.profile);
            let mut updates = Updates::default();
            updates.add(&Default::default(), &self.tables.rest);
            updates.add(&Default::default(), &self.tables.rules);
            let updates = updates.in_order();
            // What the data plane took, its model takes; a fault would be shown by the look-up itself.
            if let Err(results) = device.write(&updates, Atomicity::ContinueOnError) {
                let faults = results.iter().filter(|result| result.is_err()).count();
                tracing::error!(faults, "the model refuses entries that the data plane has");
            }
            device
        })
    }

    /// Name of the port with this number.
    #[must_use]
    pub fn port_name(&self, id: PortId) -> Option<&str> {
        self.site.ports.values().find(|port| port.id == id).map(|port| port.name.as_str())
    }

    /// Name of the pair with this number.
    #[must_use]
    pub fn pair_name(&self, id: dataplane::PairId) -> Option<&PairName> {
        self.ids.pairs.iter().find(|(_, other)| **other == id).map(|(name, _)| name)
    }

    /// Name of the unit with this number.
    #[must_use]
    pub fn unit_name(&self, id: dataplane::UnitId) -> Option<&str> {
        self.ids.units.iter().find(|(_, other)| **other == id).map(|(name, _)| name.as_str())
    }
}
