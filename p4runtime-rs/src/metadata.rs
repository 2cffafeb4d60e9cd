//! Metadata of packet-ins and packet-outs, as the P4Info lays them out (P4Runtime, "Packet I/O").

use std::collections::BTreeMap;

use thiserror::Error;
use tonic::Code;

use crate::bytestring::{BytestringError, canonical, parse_bytes};
use crate::proto::p4::config::v1::P4Info;
use crate::proto::p4::v1::{PacketMetadata, PacketOut, PacketOutError, StreamError, stream_error};

/// Name of the P4Info's controller header for frames to the controller.
pub const PACKET_IN: &str = "packet_in";
/// Name of the P4Info's controller header for frames from the controller.
pub const PACKET_OUT: &str = "packet_out";

/// Metadata that do not fit the P4Info.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// The P4Info has no such controller header.
    #[error("the P4Info has no controller header `{header}`")]
    Header {
        /// Name asked for.
        header: String,
    },
    /// A field's value is a translated string, which this crate does not read.
    #[error("metadata field `{field}` of `{header}` has no width in bits")]
    Translated {
        /// Name of the header.
        header: String,
        /// Name of the field.
        field: String,
    },
    /// An id or a name that the header lacks.
    #[error("`{header}` has no metadata field {field}")]
    Unknown {
        /// Name of the header.
        header: String,
        /// Id or name given.
        field: String,
    },
    /// A field is given more than once.
    #[error("metadata field `{field}` of `{header}` is given twice")]
    Twice {
        /// Name of the header.
        header: String,
        /// Name of the field.
        field: String,
    },
    /// A field is not given.
    #[error("metadata field `{field}` of `{header}` is missing")]
    Missing {
        /// Name of the header.
        header: String,
        /// Name of the field.
        field: String,
    },
    /// A value does not fit its field.
    #[error("metadata field `{field}`: {source}")]
    Value {
        /// Name of the field.
        field: String,
        /// What is wrong with the value.
        source: BytestringError,
    },
}

impl MetadataError {
    /// The message a server sends to the client whose packet-out it dropped.
    pub fn stream_error(&self, packet: PacketOut) -> StreamError {
        StreamError {
            canonical_code: Code::InvalidArgument as i32,
            message: self.to_string(),
            details: Some(stream_error::Details::PacketOut(PacketOutError { packet_out: Some(packet) })),
            ..Default::default()
        }
    }
}

#[derive(Clone, Debug)]
struct Field {
    id: u32,
    name: String,
    bits: u32,
}

/// Layout of one controller header.
#[derive(Clone, Debug)]
pub struct PacketLayout {
    header: String,
    fields: Vec<Field>,
}

impl PacketLayout {
    /// Layout of the controller header with this name, [`PACKET_IN`] or [`PACKET_OUT`].
    ///
    /// # Errors
    /// The P4Info has no such header, or a field of it has no width in bits.
    pub fn of(info: &P4Info, header: &str) -> Result<Self, MetadataError> {
        let declared = info
            .controller_packet_metadata
            .iter()
            .find(|h| h.preamble.as_ref().is_some_and(|p| p.name == header || p.alias == header))
            .ok_or_else(|| MetadataError::Header { header: header.into() })?;
        let fields = declared
            .metadata
            .iter()
            .map(|field| match u32::try_from(field.bitwidth) {
                Ok(bits) if bits > 0 => Ok(Field { id: field.id, name: field.name.clone(), bits }),
                _ => Err(MetadataError::Translated { header: header.into(), field: field.name.clone() }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { header: header.into(), fields })
    }

    /// Metadata from values by field name: each field exactly once.
    ///
    /// # Errors
    /// A field is missing, unknown or given twice, or a value is too wide for its field.
    pub fn encode(&self, values: &[(&str, u128)]) -> Result<Vec<PacketMetadata>, MetadataError> {
        let mut metadata = Vec::with_capacity(values.len());
        for &(name, value) in values {
            let field = self.field(|f| f.name == name, || format!("`{name}`"))?;
            metadata.push(PacketMetadata { metadata_id: field.id, value: canonical(value) });
        }
        self.decode(&metadata)?;
        Ok(metadata)
    }

    /// Values by field name, from metadata that hold each field exactly once.
    ///
    /// # Errors
    /// A field is missing, unknown or given twice, or a value does not fit its field.
    pub fn decode(&self, metadata: &[PacketMetadata]) -> Result<BTreeMap<&str, u128>, MetadataError> {
        let mut values = BTreeMap::new();
        for given in metadata {
            let field = self.field(|f| f.id == given.metadata_id, || given.metadata_id.to_string())?;
            let value = parse_bytes(&given.value, field.bits)
                .map_err(|source| MetadataError::Value { field: field.name.clone(), source })?;
            if values.insert(field.name.as_str(), value).is_some() {
                return Err(MetadataError::Twice { header: self.header.clone(), field: field.name.clone() });
            }
        }
        match self.fields.iter().find(|f| !values.contains_key(f.name.as_str())) {
            Some(field) => {
                Err(MetadataError::Missing { header: self.header.clone(), field: field.name.clone() })
            }
            None => Ok(values),
        }
    }

    fn field(
        &self,
        matches: impl Fn(&Field) -> bool,
        label: impl Fn() -> String,
    ) -> Result<&Field, MetadataError> {
        self.fields
            .iter()
            .find(|f| matches(f))
            .ok_or_else(|| MetadataError::Unknown { header: self.header.clone(), field: label() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4::config::v1::controller_packet_metadata::Metadata;
    use crate::proto::p4::config::v1::{ControllerPacketMetadata, Preamble};

    fn info() -> P4Info {
        let field =
            |id, name: &str, bitwidth| Metadata { id, name: name.into(), bitwidth, ..Default::default() };
        P4Info {
            controller_packet_metadata: vec![ControllerPacketMetadata {
                preamble: Some(Preamble { name: PACKET_OUT.into(), ..Default::default() }),
                metadata: vec![field(1, "egress_port", 9), field(2, "mark", 16)],
            }],
            ..Default::default()
        }
    }

    #[test]
    fn values_travel_in_the_shortest_form_and_come_back() {
        let layout = PacketLayout::of(&info(), PACKET_OUT).unwrap();
        let metadata = layout.encode(&[("mark", 5), ("egress_port", 0x1ff)]).unwrap();
        assert_eq!(metadata[0], PacketMetadata { metadata_id: 2, value: vec![5] });
        assert_eq!(metadata[1], PacketMetadata { metadata_id: 1, value: vec![1, 0xff] });
        let values = layout.decode(&metadata).unwrap();
        assert_eq!((values["mark"], values["egress_port"]), (5, 0x1ff));
    }

    #[test]
    fn metadata_that_do_not_match_the_p4info_are_refused() {
        let layout = PacketLayout::of(&info(), PACKET_OUT).unwrap();
        let one = |id, value: &[u8]| PacketMetadata { metadata_id: id, value: value.into() };
        assert!(matches!(layout.decode(&[one(1, &[1])]), Err(MetadataError::Missing { .. })));
        assert!(matches!(layout.decode(&[one(1, &[1]), one(1, &[1])]), Err(MetadataError::Twice { .. })));
        assert!(matches!(layout.decode(&[one(7, &[1])]), Err(MetadataError::Unknown { .. })));
        assert!(matches!(layout.decode(&[one(1, &[2, 0])]), Err(MetadataError::Value { .. })));
        assert!(matches!(layout.decode(&[one(1, &[])]), Err(MetadataError::Value { .. })));
        assert!(matches!(
            layout.encode(&[("egress_port", 512), ("mark", 0)]),
            Err(MetadataError::Value { .. })
        ));
        assert!(matches!(layout.encode(&[("port", 1), ("mark", 0)]), Err(MetadataError::Unknown { .. })));
        assert!(matches!(PacketLayout::of(&info(), PACKET_IN), Err(MetadataError::Header { .. })));
    }

    #[test]
    fn a_field_without_a_width_is_refused() {
        let mut info = info();
        info.controller_packet_metadata[0].metadata[1].bitwidth = 0;
        assert!(matches!(PacketLayout::of(&info, PACKET_OUT), Err(MetadataError::Translated { .. })));
    }

    #[test]
    fn stream_error_sends_the_packet_back() {
        let layout = PacketLayout::of(&info(), PACKET_OUT).unwrap();
        let packet = PacketOut { payload: vec![1, 2, 3], metadata: vec![] };
        let error = layout.decode(&packet.metadata).unwrap_err().stream_error(packet.clone());
        assert_eq!(error.canonical_code, 3);
        let Some(stream_error::Details::PacketOut(details)) = error.details else { panic!("no details") };
        assert_eq!(details.packet_out, Some(packet));
    }
}
