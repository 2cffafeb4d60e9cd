//! `sluiced`: the controller as a program.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Parser};
use controller::daemon::{Plane, Settings, run};
use controller::logging::Log;
use dataplane::target::TargetProfile;

/// Sluice's controller: programs a data plane, measures its pairs, serves the CLI.
#[derive(Parser)]
#[command(version, about)]
#[command(group(ArgGroup::new("plane").args(["target", "embedded"])))]
struct Arguments {
    /// Startup configuration: JSON (RFC 7951), XML or `set` lines. Without it /etc/sluice/site.json, which `save` makes
    /// where it is not there yet.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Data plane to program: grpc://HOST:PORT or unix:/PATH, any P4Runtime device with our pipeline.
    #[arg(long)]
    target: Option<p4runtime::client::Target>,
    /// What that data plane is, with its limits: swpipe, bmv2 or tofino1.
    #[arg(long, default_value = "swpipe")]
    target_profile: &'static TargetProfile,
    /// Folder with the compiled pipeline, sluice.bmv2.json for bmv2; the built-in one without it.
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Run the software pipeline in this process (the default where the configuration names interfaces).
    #[arg(long)]
    embedded: bool,
    /// Back end of the embedded pipeline's ports.
    #[arg(long, value_enum, default_value = "auto")]
    io: swpipe::io::Backend,
    /// Worker threads of the embedded pipeline; as many as cores without it.
    #[arg(long)]
    workers: Option<usize>,
    /// Where clients connect.
    #[arg(long, default_value = api::DEFAULT_SOCKET)]
    socket: PathBuf,
    /// What must outlive the process.
    #[arg(long, default_value = "/var/lib/sluice")]
    state_dir: PathBuf,
    /// Append events to this file, one JSON object a line, where the configuration (`logger event-file`) names none.
    #[arg(long)]
    events: Option<PathBuf>,
    /// P4Runtime device id.
    #[arg(long, default_value_t = 1)]
    device_id: u64,
    /// P4Runtime election id; the seconds since 1970 without it, so that the latest controller wins.
    #[arg(long)]
    election_id: Option<u128>,
    /// Fail this share of data plane operations on purpose, percent: for trials only.
    #[arg(long, default_value_t = 0.0, value_parser = percent)]
    chaos: f64,
    /// Read a password from standard input, print the hash for `set access user NAME password-hash`, and end.
    #[arg(long)]
    hash_password: bool,
}

/// The hash of a line of standard input.
fn hash_password() -> Result<String, String> {
    let mut password = String::new();
    std::io::stdin().read_line(&mut password).map_err(|error| format!("standard input: {error}"))?;
    match password.trim_end_matches(['\r', '\n']) {
        "" => Err("no password on standard input".to_owned()),
        password => netconf::credentials::hash(password).map_err(|error| error.to_string()),
    }
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value / 100.0),
        _ => Err("must be 0..100".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.hash_password {
        return match hash_password() {
            Ok(hash) => {
                println!("{hash}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("sluiced: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let log = match Log::start() {
        Ok(log) => Some(log),
        Err(error) => {
            eprintln!("sluiced: {error}");
            None
        }
    };
    let pipeline = swpipe::run::Options {
        backend: arguments.io,
        workers: arguments.workers,
        pin: false,
        device_id: arguments.device_id,
        profile: arguments.target_profile,
    };
    let plane = match (arguments.target, arguments.embedded) {
        (Some(target), _) => Some(Plane::External(target)),
        (None, true) => Some(Plane::Embedded(pipeline.clone())),
        (None, false) => None,
    };
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let settings = Settings {
        config: arguments.config,
        plane,
        pipeline,
        profile: arguments.target_profile,
        compiled: arguments.pipeline,
        socket: arguments.socket,
        state_dir: arguments.state_dir,
        events: arguments.events,
        log,
        device_id: arguments.device_id,
        election_id: arguments.election_id.unwrap_or(seconds.into()),
        chaos: arguments.chaos,
    };
    // All threads inherit it; the workers of an embedded pipeline take it back.
    swpipe::priority::urgent();
    let result = tokio::runtime::Builder::new_multi_thread()
        // More than cores: one that writes a large configuration must not hold up the others.
        .worker_threads(4)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run(settings)).map_err(|error| error.to_string()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluiced: {error}");
            ExitCode::FAILURE
        }
    }
}
