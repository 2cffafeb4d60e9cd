//! A frame's parse and hashes in the shape of the published vectors.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::frame::{Addresses, parse};
use crate::hash::{Method, hash};
use crate::ids::Side;

#[derive(Serialize)]
struct Description {
    vlans: Vec<u16>,
    mpls: u8,
    pppoe: bool,
    tunnel: bool,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(flatten)]
    session: Option<SessionDescription>,
}

#[derive(Serialize)]
struct SessionDescription {
    version: u8,
    src: String,
    dst: String,
    proto: u8,
    fragment: bool,
    sport: Option<u16>,
    dport: Option<u16>,
    hash: Hashes,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Hashes {
    #[serde(rename = "layer-3")]
    layer_3: String,
    #[serde(rename = "layer-4")]
    layer_4: String,
    dst_ip: String,
    src_ip: String,
}

/// Parse and hashes of `frame` as one JSON object, with the keys that the vectors' `expect` has.
#[must_use]
pub fn describe(frame: &[u8], side: Side) -> serde_json::Value {
    let parsed = parse(frame);
    let session = parsed.session.map(|session| {
        let (src, dst) = match session.addresses {
            Addresses::V4 { src, dst } => (Ipv4Addr::from(src).to_string(), Ipv4Addr::from(dst).to_string()),
            Addresses::V6 { src, dst } => (Ipv6Addr::from(src).to_string(), Ipv6Addr::from(dst).to_string()),
        };
        let hex = |method| format!("{:08x}", hash(&session, method, side));
        SessionDescription {
            version: session.addresses.version(),
            src,
            dst,
            proto: session.proto,
            fragment: session.fragment,
            sport: session.ports.map(|ports| ports.src),
            dport: session.ports.map(|ports| ports.dst),
            hash: Hashes {
                layer_3: hex(Method::Layer3),
                layer_4: hex(Method::Layer4),
                dst_ip: hex(Method::DstIp),
                src_ip: hex(Method::SrcIp),
            },
        }
    });
    let description = Description {
        vlans: parsed.vlans().to_vec(),
        mpls: parsed.mpls_depth,
        pppoe: parsed.pppoe,
        tunnel: parsed.tunnel,
        found: session.is_some(),
        why: parsed.not_ip().map(|why| why.as_str()),
        session,
    };
    serde_json::to_value(description).unwrap_or_default()
}
