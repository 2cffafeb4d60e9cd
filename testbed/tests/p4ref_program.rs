//! The project's own program runs in the reference interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use testbed::p4ref::{Program, Switch, read_info};

fn built(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/build").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn program() -> Arc<Program> {
    let info = read_info(&built("sluice.p4info.txtpb")).unwrap();
    Arc::new(Program::load(&built("sluice.bmv2.json"), &info).unwrap())
}

#[test]
fn a_frame_from_a_port_that_serves_nothing_is_dropped() {
    let mut switch = Switch::new(program()).with_cpu_port(510);
    let output = switch.process(3, &[0xff; 60], 0);
    assert_eq!(output.sent, []);
    assert_eq!(output.undefined, []);
}
