//! `lookup`: a frame of the session in question, sent through the model of the data plane's tables.

use std::net::IpAddr;

use api::{Lookup, LookupQuery};
use swpipe::pipeline::decide;

use crate::view::View;

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Not an address.
    #[error("{what} {value:?} is no IPv4 or IPv6 address")]
    Address {
        /// `src` or `dst`.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// One is IPv4, the other IPv6.
    #[error("src {src} and dst {dst} are of different families")]
    Families {
        /// Source.
        src: IpAddr,
        /// Destination.
        dst: IpAddr,
    },
    /// No such link.
    #[error("link {link:?} does not exist; there are: {known}")]
    Link {
        /// The name.
        link: String,
        /// The names there are.
        known: String,
    },
    /// Neither lan nor wan.
    #[error("side {0:?} is neither lan nor wan")]
    Side(String),
    /// Not a VLAN id.
    #[error("vlan {0} is no VLAN id; it must be 0..4095")]
    Vlan(u16),
    /// More tags than are parsed.
    #[error("{0} VLAN tags are given; more than 3 are never balanced")]
    Depth(usize),
}

/// Answers where the session goes now.
///
/// # Errors
/// What of the question is wrong.
pub fn lookup(view: &View, query: &LookupQuery) -> Result<Lookup, LookupError> {
    let known = || view.site.links.iter().map(|link| link.name.clone()).collect::<Vec<_>>().join(", ");
    let link = match &query.link {
        Some(name) => view.site.links.iter().find(|link| link.name == *name),
        None => view.site.links.first(),
    }
    .ok_or_else(|| LookupError::Link { link: query.link.clone().unwrap_or_default(), known: known() })?;
    let port = match query.side.as_deref() {
        None | Some("lan") => &link.lan_port,
        Some("wan") => &link.wan_port,
        Some(other) => return Err(LookupError::Side(other.to_owned())),
    };
    let frame = frame(query)?;
    let port = view.site.ports.get(port).map(|port| port.id).unwrap_or_default();
    let model = view.model();
    let snapshot = model.snapshot().load();
    let decision = decide(&snapshot, port, &frame);
    let names = model.rule_names();
    let serving = decision.balanced.and_then(|balanced| balanced.serving);
    Ok(Lookup {
        flow: decision.rule.and_then(|slot| names.get(&slot).cloned()),
        verdict: decision.reason.verdict().as_str().to_owned(),
        reason: decision.reason.as_str().map(str::to_owned),
        unit: decision.unit.and_then(|unit| view.unit_name(unit)).map(str::to_owned),
        hash: decision.balanced.map(|balanced| format!("{:08x}", balanced.hash)),
        bucket: decision.balanced.map(|balanced| balanced.bucket.0),
        pair: serving.and_then(|(pair, _)| view.pair_name(pair)).map(|name| name.pair.clone()),
        core: serving.map(|(_, core)| core.0),
        out_port: decision.exit.and_then(|exit| view.port_name(exit.port)).map(str::to_owned),
    })
}

fn address(what: &'static str, value: &str) -> Result<IpAddr, LookupError> {
    value.parse().map_err(|_| LookupError::Address { what, value: value.to_owned() })
}

/// A frame as short as it can be.
fn frame(query: &LookupQuery) -> Result<Vec<u8>, LookupError> {
    let src = address("src", &query.src)?;
    let dst = address("dst", &query.dst)?;
    let proto = query.proto.unwrap_or(6);
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    if query.vlan.len() > dataplane::frame::MAX_VLAN_TAGS {
        return Err(LookupError::Depth(query.vlan.len()));
    }
    for vid in &query.vlan {
        if *vid > 4095 {
            return Err(LookupError::Vlan(*vid));
        }
        frame.extend([0x81, 0x00]);
        frame.extend(vid.to_be_bytes());
    }
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            frame.extend([0x08, 0x00, 0x45, 0, 0, 24, 0, 0, 0, 0, 64, proto, 0, 0]);
            frame.extend(src.octets());
            frame.extend(dst.octets());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 4, proto, 64]);
            frame.extend(src.octets());
            frame.extend(dst.octets());
        }
        (src, dst) => return Err(LookupError::Families { src, dst }),
    }
    frame.extend(query.src_port.unwrap_or(0).to_be_bytes());
    frame.extend(query.dst_port.unwrap_or(0).to_be_bytes());
    Ok(frame)
}
