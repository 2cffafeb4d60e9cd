//! Programs that nobody here wrote, between the hosts: ping, curl, iperf3.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::load::{first_ends, first_few};
use crate::appliance::Side;
use crate::check::Findings;
use crate::error::{Doing, Error, Result};
use crate::lab::Lab;
use crate::netns::feed;
use crate::plan::Path;
use crate::rng::Rng;

const HTTP_PORT: u16 = 8080;
const IPERF_PORT: u16 = 5201;
const HTTP_BYTES: usize = 3_000_000;

/// A server that ends when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(mut command: Command) -> Result<Server> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Server).doing(|| format!("starting {command:?}"))
}

fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// Runs what is installed; says what isn't.
pub(super) fn check_all(lab: &mut Lab, findings: &mut Findings, paths: &[Path], seconds: f64) -> Result<()> {
    let programs: [(&str, &str); 3] = [("ping", "iputils-ping"), ("curl", "curl"), ("iperf3", "iperf3")];
    for (program, package) in programs {
        if !installed(program) {
            findings
                .note(format!("{program} isn't installed, its check is left out (apt package {package})"));
            continue;
        }
        match program {
            "ping" => ping(lab, findings, paths)?,
            "curl" => http(lab, findings, paths)?,
            _ => iperf3(lab, findings, paths, seconds)?,
        }
    }
    Ok(())
}

fn ping(lab: &Lab, findings: &mut Findings, paths: &[Path]) -> Result<()> {
    let mut failed = Vec::new();
    let mut count = 0;
    for path in paths {
        for ipv6 in [false, true] {
            let (from, to) = first_ends(path, Side::Lan, ipv6);
            let whole = lab.topology.mtu - if ipv6 { 48 } else { 28 };
            for size in [56, whole] {
                let mut command = lab.host_command(Side::Lan, "ping");
                command.args(["-n", "-q", "-c", "3", "-i", "0.05", "-W", "2", "-M", "do"]);
                command.args(["-s", &size.to_string(), "-I", &from.to_string(), &to.to_string()]);
                count += 3;
                if let Err(error) = feed(command, "") {
                    failed.push(format!("{} {to} with {size} bytes: {error}", path.name));
                }
            }
        }
    }
    findings.check(
        "ping, small and filling the MTU, IPv4 and IPv6",
        failed.is_empty(),
        if failed.is_empty() {
            format!("{count} answers over {} paths, MTU {}", paths.len(), lab.topology.mtu)
        } else {
            first_few(&failed)
        },
    );
    Ok(())
}

fn http(lab: &mut Lab, findings: &mut Findings, paths: &[Path]) -> Result<()> {
    let directory = lab.run().directory().join("www");
    std::fs::create_dir_all(&directory).doing(|| format!("making {}", directory.display()))?;
    let mut rng = Rng::new(80);
    let body: Vec<u8> = (0..HTTP_BYTES).map(|_| rng.next_u64() as u8).collect();
    std::fs::write(directory.join("body"), &body).doing(|| "writing the HTTP body".into())?;
    let mut command = lab.host_command(Side::Wan, "python3");
    command
        .args(["-m", "http.server", "--bind", "::", "--directory"])
        .arg(&directory)
        .arg(HTTP_PORT.to_string());
    let _server = serve(command)?;
    let mut failed = Vec::new();
    let mut fetched = 0;
    for path in paths {
        for ipv6 in [false, true] {
            let (from, to) = first_ends(path, Side::Lan, ipv6);
            let host = if ipv6 { format!("[{to}]") } else { to.to_string() };
            let received = directory.join("received");
            let mut command = lab.host_command(Side::Lan, "curl");
            // The server needs a moment after its start.
            command.args(["-sS", "--fail", "--retry", "20", "--retry-connrefused", "--retry-delay", "0"]);
            command.args([
                "--retry-max-time",
                "20",
                "--max-time",
                "20",
                "--interface",
                &from.to_string(),
                "-o",
            ]);
            command.arg(&received).arg(format!("http://{host}:{HTTP_PORT}/body"));
            match feed(command, "") {
                Ok(_) if std::fs::read(&received).is_ok_and(|bytes| bytes == body) => fetched += 1,
                Ok(_) => {
                    failed.push(format!("{} from {to}: the bytes are not those of the server", path.name))
                }
                Err(error) => failed.push(format!("{} from {to}: {error}", path.name)),
            }
        }
    }
    findings.check(
        "HTTP by curl, every byte right",
        failed.is_empty(),
        if failed.is_empty() {
            format!("{fetched} downloads of {:.1} MB", HTTP_BYTES as f64 / 1e6)
        } else {
            first_few(&failed)
        },
    );
    Ok(())
}

fn iperf3(lab: &mut Lab, findings: &mut Findings, paths: &[Path], seconds: f64) -> Result<()> {
    let mut command = lab.host_command(Side::Wan, "iperf3");
    command.args(["-s", "-p", &IPERF_PORT.to_string()]);
    let _server = serve(command)?;
    let mut failed = Vec::new();
    let mut figures = Vec::new();
    let seconds = (seconds.ceil() as u64).max(1).to_string();
    for path in paths {
        let (from, to) = first_ends(path, Side::Lan, false);
        let port = IPERF_PORT.to_string();
        let client = |lab: &Lab| {
            let mut command = lab.host_command(Side::Lan, "iperf3");
            command.args(["-c", &to.to_string(), "-B", &from.to_string(), "-p", &port, "-t", &seconds, "-J"]);
            let report: serde_json::Value = serde_json::from_str(&feed(command, "")?).unwrap_or_default();
            Ok(match report["end"]["sum_received"]["bits_per_second"].as_f64() {
                Some(rate) if rate > 0.0 => Ok(rate),
                _ => Err(report["error"].as_str().unwrap_or("nothing received").to_string()),
            })
        };
        // Its server takes one client at a time and needs a moment after its start and after each client.
        let outcome = lab.wait_until("iperf3", Duration::from_secs(10), |lab| {
            client(lab).or_else(|error: Error| Ok(Err(error.to_string())))
        });
        match outcome {
            Ok(rate) => figures.push(format!("{} {:.0} Mbit/s", path.name, rate / 1e6)),
            Err(error) => failed.push(format!("{}: {error}", path.name)),
        }
    }
    findings.check(
        "iperf3 carries data over every path",
        failed.is_empty(),
        if failed.is_empty() { figures.join(", ") } else { first_few(&failed) },
    );
    Ok(())
}
