//! Names that the RFCs gave.

/// Messages and operations (RFC 6241).
pub const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
/// Subscriptions (RFC 5277).
pub const NOTIFICATION: &str = "urn:ietf:params:xml:ns:netconf:notification:1.0";
/// Streams (RFC 5277, 3.2.5).
pub const NETMOD_NOTIFICATION: &str = "urn:ietf:params:xml:ns:netmod:notification";
/// State of the server (RFC 6022).
pub const MONITORING: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring";
/// The parameter `with-defaults` (RFC 6243).
pub const WITH_DEFAULTS: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-with-defaults";
/// The attribute `default` of report-all-tagged (RFC 6243, 6).
pub const DEFAULT_ATTRIBUTE: &str = "urn:ietf:params:xml:ns:netconf:default:1.0";
/// Attributes of edit-config for data (RFC 7950, 7.8.6).
pub const YANG: &str = "urn:ietf:params:xml:ns:yang:1";
/// The modules of a server (RFC 7895).
pub const YANG_LIBRARY: &str = "urn:ietf:params:xml:ns:yang:ietf-yang-library";
/// `xmlns` attributes.
pub const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
