//! What a data plane is set to run: the P4Info that every entry refers to, and what its target itself needs.

use std::path::{Path, PathBuf};

use dataplane::target::{BMV2, TargetProfile};
use p4runtime::entry::p4info_of;
use p4runtime::proto::p4::config::v1::P4Info;
use prost::Message as _;
use sha2::{Digest, Sha256};

/// The program as p4c compiled it for BMv2.
const BMV2_JSON: &[u8] = include_bytes!("../../../p4/build/sluice.bmv2.json");

/// A pipeline for one target.
#[derive(Clone, Debug)]
pub struct Program {
    /// The target.
    pub profile: &'static TargetProfile,
    /// What can be addressed.
    pub p4info: P4Info,
    /// Compiled for the target; empty where it has the program built in.
    pub device_config: Vec<u8>,
}

/// A pipeline that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The compiled file.
    #[error("pipeline {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder for a target that takes none.
    #[error("--pipeline: target {0} has its program built in; the folder is for --target-profile bmv2")]
    BuiltIn(&'static TargetProfile),
}

impl Program {
    /// The pipeline of a target: its compiled form from `folder`, or the one that is built in.
    ///
    /// # Errors
    /// [`ProgramError`]
    pub fn of(profile: &'static TargetProfile, folder: Option<&Path>) -> Result<Self, ProgramError> {
        let device_config = match folder {
            Some(_) if profile != &BMV2 => return Err(ProgramError::BuiltIn(profile)),
            Some(folder) => {
                let path = folder.join("sluice.bmv2.json");
                std::fs::read(&path).map_err(|source| ProgramError::File { path, source })?
            }
            None if profile == &BMV2 => BMV2_JSON.to_vec(),
            None => Vec::new(),
        };
        Ok(Program { profile, p4info: p4info_of(profile), device_config })
    }

    /// Tells one pipeline from another; never 0. The device keeps it as its configuration's cookie.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Sha256::new();
        digest.update(self.p4info.encode_to_vec());
        digest.update(&self.device_config);
        digest.finalize().first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use dataplane::target::{SWPIPE, TOFINO1};

    use super::*;

    #[test]
    fn targets_and_compiled_forms_have_digests_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sluice.bmv2.json");
        std::fs::write(&file, "{}").unwrap();
        let compiled = Program::of(&BMV2, Some(folder.path())).unwrap();
        assert_eq!(compiled.device_config, b"{}");
        assert_ne!(compiled.digest(), Program::of(&BMV2, None).unwrap().digest());
        let digests = [
            Program::of(&SWPIPE, None).unwrap().digest(),
            Program::of(&TOFINO1, None).unwrap().digest(),
            compiled.digest(),
        ];
        assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[1] != digests[2]);
        assert_eq!(Program::of(&SWPIPE, None).unwrap().digest(), digests[0]);
    }

    #[test]
    fn a_pipeline_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Program::of(&BMV2, Some(folder.path())).unwrap_err().to_string();
        assert!(error.contains("sluice.bmv2.json"), "{error}");
        let error = Program::of(&SWPIPE, Some(folder.path())).unwrap_err().to_string();
        assert!(error.contains("swpipe") && error.contains("bmv2"), "{error}");
    }
}
