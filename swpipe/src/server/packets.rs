//! Packet-in and packet-out: keep-alives to the primary, frames of the primary to a port.

use dataplane::{Nanos, PortId};
use p4runtime::metadata::MetadataError;
use p4runtime::proto::p4::v1::{
    DigestListAckError, PacketIn, PacketOut, PacketOutError, StreamError, StreamOtherError, stream_error,
};
use p4runtime::server::{Delivery, Inbound};
use tonic::Code;

use super::Shared;
use crate::packet_io::{PacketOutFault, Sent};

impl PacketOutFault {
    fn code(&self) -> Code {
        match self {
            PacketOutFault::NoPort(_) | PacketOutFault::Short(_) | PacketOutFault::Long { .. } => {
                Code::InvalidArgument
            }
            PacketOutFault::Full(_) | PacketOutFault::System { .. } => Code::Unavailable,
        }
    }
}

impl Shared {
    /// Queues a keep-alive for the primary; `false` where there is none, or it reads too slowly.
    pub(super) fn packet_in(&self, port: PortId, frame: &[u8], time: Nanos) -> bool {
        let values = [("ingress_port", u128::from(port.0)), ("receive_time", u128::from(time.0))];
        let Some(Ok(metadata)) = self.packet_in.as_ref().map(|layout| layout.encode(&values)) else {
            return false;
        };
        let packet = PacketIn { payload: frame.to_vec(), metadata };
        self.controllers.packet_in(packet) == Delivery::Queued
    }

    /// Carries out what the primary sends on its stream.
    pub(super) fn carry_out(&self, inbound: Inbound) -> Option<StreamError> {
        let fault = |code: Code, message: &str, details| {
            let canonical_code = code as i32;
            Some(StreamError {
                canonical_code,
                message: message.to_owned(),
                details: Some(details),
                ..Default::default()
            })
        };
        match inbound {
            Inbound::Packet(packet) => self.packet_out(packet),
            Inbound::DigestAck(ack) => {
                let details = DigestListAckError { digest_list_ack: Some(ack) };
                let details = stream_error::Details::DigestListAck(details);
                fault(Code::InvalidArgument, "the P4Info has no digests", details)
            }
            Inbound::Other(other) => {
                let details = stream_error::Details::Other(StreamOtherError { other: Some(other) });
                fault(Code::Unimplemented, "messages of other architectures are unknown here", details)
            }
        }
    }

    fn packet_out(&self, packet: PacketOut) -> Option<StreamError> {
        let refuse = |code: Code, message: String, packet: PacketOut| {
            let details = stream_error::Details::PacketOut(PacketOutError { packet_out: Some(packet) });
            Some(StreamError {
                canonical_code: code as i32,
                message,
                details: Some(details),
                ..Default::default()
            })
        };
        let (Some(layout), Some(way)) = (&self.packet_out_layout, &self.packet_out) else {
            return refuse(Code::Unimplemented, "this device sends no packets".to_owned(), packet);
        };
        let port = match layout.decode(&packet.metadata) {
            Ok(values) => values.get("egress_port").copied(),
            Err(error) => return Some(error.stream_error(packet)),
        };
        let Some(port) = port else {
            let missing = MetadataError::Missing { header: "packet_out".into(), field: "egress_port".into() };
            return Some(missing.stream_error(packet));
        };
        match way.send(port, packet.payload.clone()) {
            Ok(Sent::Out) => None,
            Ok(Sent::Back { port, frame, received }) => {
                // Where the primary does not read them its probes are late, and it says so.
                let _ = self.packet_in(port, &frame, received);
                None
            }
            Err(error) => refuse(error.code(), error.to_string(), packet),
        }
    }
}
