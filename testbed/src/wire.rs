//! The appliance that takes no time: a Linux bridge for each pair, which passes everything until it hangs.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::appliance::PairPorts;
use crate::clock::now_ns;
use crate::error::{Doing, Error, Result};
use crate::netns::Run;

/// The bridges of one appliance.
#[derive(Debug)]
pub struct Wires {
    pairs: Vec<String>,
    /// Does a line as soon as it has it: starting a program would take longer than some faults may.
    ip: Child,
    lines: ChildStdin,
}

impl Wires {
    /// Builds them in the appliance's namespace.
    ///
    /// # Errors
    /// When ip fails.
    pub fn build(run: &Run, namespace: &str, pairs: &[PairPorts]) -> Result<Wires> {
        let mut lines = Vec::new();
        for (number, pair) in pairs.iter().enumerate() {
            let bridge = bridge(number);
            lines.push(format!("link add {bridge} type bridge stp_state 0 mcast_snooping 0 forward_delay 0"));
            for port in [&pair.lan, &pair.wan] {
                lines.push(format!("link set dev {port} master {bridge}"));
            }
            lines.push(format!("link set dev {bridge} up"));
        }
        run.ip(Some(namespace), &lines)?;
        let mut ip = Command::new("ip")
            .args(["-n", &run.name(namespace), "-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .doing(|| "starting ip".into())?;
        let lines = ip.stdin.take().ok_or_else(|| Error::Unsupported("ip has no standard input".into()))?;
        Ok(Wires { pairs: pairs.iter().map(|pair| pair.name.clone()).collect(), ip, lines })
    }

    /// Makes a pair swallow everything, with its carrier up, or pass it again; the instant (ns) before that.
    ///
    /// # Errors
    /// When the pair isn't here, or ip has ended.
    pub fn hang(&mut self, pair: &str, hangs: bool) -> Result<u64> {
        let number = self.pairs.iter().position(|name| name == pair);
        let number =
            number.ok_or_else(|| Error::Unsupported(format!("no pair {pair} ends at these wires")))?;
        let at = now_ns();
        let line = format!("link set dev {} {}\n", bridge(number), if hangs { "down" } else { "up" });
        self.lines.write_all(line.as_bytes()).doing(|| format!("telling ip: {line}"))?;
        Ok(at)
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.ip.kill();
        let _ = self.ip.wait();
    }
}

fn bridge(number: usize) -> String {
    format!("br{number}")
}
