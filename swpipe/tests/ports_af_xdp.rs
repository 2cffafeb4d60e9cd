//! Ports that come and go over AF_XDP: the tests of `ports.rs` with the other back end.

#[path = "ports.rs"]
mod over_af_xdp;
