//! The whole pipeline over AF_XDP: the tests of `run.rs` with the other back end.

#[path = "run.rs"]
mod over_af_xdp;
