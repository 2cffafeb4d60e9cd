//! Compiles the service without protoc.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

/// The protocol stands beside the other things that clients go by.
const PROTO: &str = "../api/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let mut descriptors = protox::compile(["sluice/status/v1/status.proto"], [PROTO])?;
    tonic_prost_build::configure().compile_fds(descriptors.clone())?;

    // Reflection needs the declarations, not where they stand or what is said about them.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("status.fds"), descriptors.encode_to_vec())?;
    Ok(())
}
