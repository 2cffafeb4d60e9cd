//! Short ways to make updates, entities and pipelines.

use crate::proto::p4::config::v1::P4Info;
use crate::proto::p4::v1::entity::Entity as Kind;
use crate::proto::p4::v1::forwarding_pipeline_config::Cookie;
use crate::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use crate::proto::p4::v1::update::Type;
use crate::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterEntry, DigestEntry,
    DirectCounterEntry, DirectMeterEntry, Entity, ExternEntry, ForwardingPipelineConfig, MeterEntry,
    MulticastGroupEntry, PacketReplicationEngineEntry, RegisterEntry, TableEntry, Update, ValueSetEntry,
};

impl Update {
    /// Inserts an entity that is not there yet.
    pub fn insert(entity: impl Into<Entity>) -> Self {
        Self { r#type: Type::Insert.into(), entity: Some(entity.into()) }
    }

    /// Replaces the whole of an entity that is there.
    pub fn modify(entity: impl Into<Entity>) -> Self {
        Self { r#type: Type::Modify.into(), entity: Some(entity.into()) }
    }

    /// Deletes the entity with this key; the rest of it does not count.
    pub fn delete(entity: impl Into<Entity>) -> Self {
        Self { r#type: Type::Delete.into(), entity: Some(entity.into()) }
    }
}

impl ForwardingPipelineConfig {
    /// A compiled program: its P4Info, what the target itself needs, and the controller's mark on it.
    pub fn new(p4info: P4Info, device_config: Vec<u8>, cookie: u64) -> Self {
        Self { p4info: Some(p4info), p4_device_config: device_config, cookie: Some(Cookie { cookie }) }
    }
}

macro_rules! entities {
    ($($message:ident),*) => {
        $(impl From<$message> for Entity {
            fn from(entry: $message) -> Self {
                Self { entity: Some(Kind::$message(entry)) }
            }
        })*
    };
}

entities!(
    ExternEntry,
    TableEntry,
    ActionProfileMember,
    ActionProfileGroup,
    MeterEntry,
    DirectMeterEntry,
    CounterEntry,
    DirectCounterEntry,
    PacketReplicationEngineEntry,
    ValueSetEntry,
    RegisterEntry,
    DigestEntry
);

impl From<MulticastGroupEntry> for Entity {
    fn from(entry: MulticastGroupEntry) -> Self {
        PacketReplicationEngineEntry { r#type: Some(Replication::MulticastGroupEntry(entry)) }.into()
    }
}

impl From<CloneSessionEntry> for Entity {
    fn from(entry: CloneSessionEntry) -> Self {
        PacketReplicationEngineEntry { r#type: Some(Replication::CloneSessionEntry(entry)) }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_carry_their_type_and_entity() {
        let entry = TableEntry { table_id: 7, ..Default::default() };
        for (update, r#type) in [
            (Update::insert(entry.clone()), Type::Insert),
            (Update::modify(entry.clone()), Type::Modify),
            (Update::delete(entry.clone()), Type::Delete),
        ] {
            assert_eq!(update.r#type(), r#type);
            assert_eq!(update.entity, Some(Entity { entity: Some(Kind::TableEntry(entry.clone())) }));
        }
        let clone: Entity = CloneSessionEntry { session_id: 3, ..Default::default() }.into();
        assert!(matches!(clone.entity, Some(Kind::PacketReplicationEngineEntry(_))));
    }
}
