//! Compiles the protocol's messages without protoc.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut descriptors = protox::compile(["p4/v1/p4runtime.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors.clone())?;

    // Reflection needs the declarations, not where they stand or what is said about them.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("p4runtime.fds"), descriptors.encode_to_vec())?;
    Ok(())
}
