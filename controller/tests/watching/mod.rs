//! What the tests of what watches share: a controller over a plane, certificates, clients.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Clients of this version.
pub(crate) const PACKAGES: [&str; 4] =
    ["prometheus-client==0.21.1", "grpcio==1.71.0", "grpcio-reflection==1.71.0", "protobuf==5.29.4"];

/// The Python that has them.
pub(crate) fn python() -> Option<PathBuf> {
    thirdparty::python("watching", &PACKAGES)
}

/// A TCP port that nobody has now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A script beside this file.
pub(crate) fn script(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watching").join(name));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// A script that runs; it is killed when dropped.
pub(crate) struct Script {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Script {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Script { child, out }
    }

    /// The next line that it writes.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// It ends well, with `ok` as its last line.
    pub(crate) fn ends_well(mut self) {
        let line = self.line();
        assert!(line.starts_with("ok"), "{line}");
        assert!(self.child.wait().unwrap().success());
    }
}

/// An authority that signs certificates, in files.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
    pub(crate) file: PathBuf,
}

impl Authority {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let file = directory.join(format!("{name}.pem"));
        std::fs::write(&file, certificate.pem()).unwrap();
        Authority { issuer: Issuer::new(parameters, key), directory: directory.to_owned(), file }
    }

    /// Files of a certificate for this name, which is also that of a host where `hosts` has any, and of its key.
    pub(crate) fn sign(&self, name: &str, hosts: &[&str]) -> (PathBuf, PathBuf) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut parameters = CertificateParams::new(hosts).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let files = ["crt", "key"].map(|end| self.directory.join(format!("{name}.{end}")));
        std::fs::write(&files[0], certificate.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        let [certificate, key] = files;
        (certificate, key)
    }
}
