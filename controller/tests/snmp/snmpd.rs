//! net-snmp's programs, each with files and ports of its own.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The MIB.
pub(crate) const MIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/mib/SLUICE-MIB.txt");
const MIB_DIRS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snmp/mibs:", env!("CARGO_MANIFEST_DIR"), "/../configs/mib");

/// `sluiceObjects`.
pub(crate) const BASE: &str = ".1.3.6.1.4.1.32473.1.1";

const ENGINE: &str = "0x80001f8804736c75696365";
const KEYS: [&str; 8] = ["-l", "authPriv", "-a", "SHA", "-A", "authentic", "-x", "AES"];
const SECRET: &str = "encrypted";
const DEADLINE: Duration = Duration::from_secs(15);

/// Whether net-snmp's programs are here; says so where they are not.
pub(crate) fn tools() -> bool {
    let here = |tool: &str| tool_path(tool).is_some();
    let all =
        ["snmpd", "snmptrapd", "snmpbulkwalk", "snmpbulkget", "snmptable", "snmpset"].into_iter().all(here);
    if !all {
        println!("skipped: snmpd, snmptrapd or net-snmp's tools are not installed");
    }
    all
}

fn tool_path(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    dirs.map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// Where smilint finds the modules that the MIB imports from; `None` without them or without smilint. SMIPATH names
/// further places.
pub(crate) fn base_modules() -> Option<String> {
    tool_path("smilint")?;
    let path = std::env::var("SMIPATH").unwrap_or_default();
    let known = [
        "/usr/share/snmp/mibs/ietf",
        "/usr/share/mibs/ietf",
        "/var/lib/mibs/ietf",
        "/var/lib/snmp/mibs/ietf",
    ];
    let has = |dir: &&str| {
        let holds = |name: &str| {
            ["", ".txt", ".mib"].iter().any(|end| Path::new(dir).join(format!("{name}{end}")).is_file())
        };
        ["SNMPv2-SMI", "SNMPv2-TC", "SNMPv2-CONF"].into_iter().all(holds)
    };
    path.split(':').chain(known).find(has).map(str::to_owned)
}

/// Names of all objects of the MIB that can be read.
pub(crate) fn readable() -> Vec<&'static str> {
    let text: &'static str = include_str!("../../../configs/mib/SLUICE-MIB.txt");
    let mut name = "";
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(object) = line.strip_suffix(" OBJECT-TYPE").filter(|object| !object.contains(' ')) {
            name = object;
        } else if line.trim() == "MAX-ACCESS  read-only" {
            names.push(name);
        }
    }
    names
}

/// Lines of snmptrapd with the time at which they came.
type Lines = Arc<(Mutex<Vec<(Instant, String)>>, Condvar)>;

/// snmpd and snmptrapd; killed when dropped.
pub(crate) struct Snmp {
    dir: TempDir,
    port: u16,
    trap_port: u16,
    snmpd: Option<Child>,
    snmptrapd: Option<Child>,
    lines: Lines,
}

impl Drop for Snmp {
    fn drop(&mut self) {
        for child in [&mut self.snmpd, &mut self.snmptrapd].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that nobody has just now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Snmp {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("snmpd")).unwrap();
        std::fs::create_dir(dir.path().join("tools")).unwrap();
        let snmp = Snmp {
            dir,
            port: free_port(),
            trap_port: free_port(),
            snmpd: None,
            snmptrapd: None,
            lines: Lines::default(),
        };
        let user = format!("SHA authentic AES {SECRET}");
        let snmpd = format!(
            "agentAddress udp:127.0.0.1:{}\nmaster agentx\nagentXSocket unix:{}\n\
             exactEngineID {ENGINE}\ncreateUser watch {user}\nrwuser watch priv\n\
             trapsess -v 3 -e {ENGINE} -u teller -l authPriv -a SHA -A authentic -x AES -X {SECRET} 127.0.0.1:{}\n\
             createUser teller {user}\n",
            snmp.port,
            snmp.master().display(),
            snmp.trap_port
        );
        std::fs::write(snmp.dir.path().join("snmpd.conf"), snmpd).unwrap();
        let snmptrapd = format!(
            "createUser -e {ENGINE} teller {user}\nauthUser log teller priv\n\
             format2 %V; %v\\n\n",
        );
        std::fs::write(snmp.dir.path().join("snmptrapd.conf"), snmptrapd).unwrap();
        snmp
    }

    /// The AgentX socket.
    pub(crate) fn master(&self) -> PathBuf {
        self.dir.path().join("master")
    }

    fn command(&self, tool: &str, own: &str) -> Command {
        let mut command = Command::new(tool_path(tool).unwrap());
        let own = self.dir.path().join(own);
        command
            .env("SNMP_PERSISTENT_DIR", &own)
            .env("SNMPCONFPATH", &own)
            .env("MIBDIRS", MIB_DIRS)
            .env("MIBS", "SLUICE-MIB")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts snmpd and waits until it takes subagents.
    pub(crate) fn start(&mut self) {
        let config = self.dir.path().join("snmpd.conf");
        let mut command = self.command("snmpd", "snmpd");
        command
            .args(["-f", "-Lf", "/dev/null", "-C", "-c"])
            .arg(config)
            .env("MIBS", "")
            .stdout(Stdio::null());
        self.snmpd = Some(command.spawn().unwrap());
        let deadline = Instant::now() + DEADLINE;
        while std::os::unix::net::UnixStream::connect(self.master()).is_err() {
            assert!(Instant::now() < deadline, "snmpd does not listen on {}", self.master().display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        let mut snmpd = self.snmpd.take().unwrap();
        snmpd.kill().unwrap();
        snmpd.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.snmpd.as_ref().unwrap().id() as i32), signal).unwrap();
    }

    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Starts snmptrapd and waits until it listens.
    pub(crate) fn listen(&mut self) {
        let mut command = self.command("snmptrapd", "tools");
        let config = self.dir.path().join("snmptrapd.conf");
        let mut child = command
            .args(["-f", "-Lo", "-C", "-c"])
            .arg(config)
            .arg(format!("udp:127.0.0.1:{}", self.trap_port))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        self.snmptrapd = Some(child);
        let lines = self.lines.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                lines.0.lock().unwrap().push((Instant::now(), line));
                lines.1.notify_all();
            }
        });
        self.trap(0, &["NET-SNMP version"]);
    }

    /// Lines that have come.
    pub(crate) fn traps(&self) -> usize {
        self.lines.0.lock().unwrap().len()
    }

    /// The first line from `from` on that has all the words: what follows it, and when it came.
    pub(crate) fn trap(&self, from: usize, words: &[&str]) -> (usize, Instant) {
        let deadline = Instant::now() + DEADLINE;
        let mut lines = self.lines.0.lock().unwrap();
        loop {
            let found = lines
                .iter()
                .enumerate()
                .skip(from)
                .find(|(_, (_, line))| words.iter().all(|word| line.contains(word)));
            if let Some((at, (when, _))) = found {
                return (at + 1, *when);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no line with {words:?} in {:#?}",
                lines.iter().skip(from).collect::<Vec<_>>()
            );
            lines = self.lines.1.wait_timeout(lines, left).unwrap().0;
        }
    }

    /// What a tool says; its complaints where it says nothing else.
    pub(crate) fn ask(&self, tool: &str, options: &[&str], about: &[&str]) -> String {
        let output = self
            .command(tool, "tools")
            .args(["-v3", "-u", "watch"])
            .args(KEYS)
            .args(["-X", SECRET, "-t", "5", "-r", "1"])
            .args(options)
            .arg(format!("udp:127.0.0.1:{}", self.port))
            .args(about)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        String::from_utf8_lossy(&said).into_owned()
    }
}
