//! `swpipe`: the software pipeline as a program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dataplane::Side;
use dataplane::target::TargetProfile;
use site::Site;
use swpipe::io::Backend;
use swpipe::replay::{Replay, entries, replay};
use swpipe::run::{Options, Pipeline, PortSpec};
use swpipe::server::Listen;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Sluice's software pipeline.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Forward frames between the configuration's interfaces, as a controller says over P4Runtime.
    Run {
        /// Configuration, RFC 7951 JSON; its ports with an `interface` are the pipeline's. Read again on SIGHUP.
        #[arg(long)]
        config: PathBuf,
        /// Address of the P4Runtime server: unix:/PATH, tcp://IP:PORT or IP:PORT.
        #[arg(long)]
        listen: Listen,
        /// How interfaces are read and written.
        #[arg(long, default_value = "auto")]
        io: Backend,
        /// Workers; one a core by default.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        workers: Option<u16>,
        /// Bind each worker to a core of its own.
        #[arg(long)]
        pin: bool,
        /// The device's number in P4Runtime.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        device_id: u64,
        /// Target whose limits to keep, in parsing and in the sizes of tables: swpipe, bmv2 or tofino1.
        #[arg(long, default_value = "swpipe")]
        profile: &'static TargetProfile,
    },
    /// Print the digests of the bucket tables: one line a unit, then the device's.
    ConfigHash {
        /// Configuration, RFC 7951 JSON.
        #[arg(long)]
        config: PathBuf,
    },
    /// Print the parse and hashes of a frame as one JSON object.
    Decode {
        /// Side of the link that the frame came in by.
        #[arg(long, value_parser = side)]
        side: Side,
        /// The frame from its destination MAC, in hex.
        frame: String,
    },
    /// Run the frames of captures through the pipeline, in the order of their capture times.
    Replay {
        /// Configuration, RFC 7951 JSON.
        #[arg(long)]
        config: PathBuf,
        /// PORT=FILE: frames that come in by a port; what an appliance sends back comes in by pair ports.
        #[arg(long = "in", value_parser = input, required = true)]
        inputs: Vec<(String, PathBuf)>,
        /// Folder for one capture a port.
        #[arg(long)]
        out: PathBuf,
        /// File for one JSON line a frame.
        #[arg(long)]
        verdicts: PathBuf,
        /// Hold a pair down: PAIR or UNIT/PAIR.
        #[arg(long)]
        down: Vec<String>,
        /// Target whose limits to keep, in parsing and in the sizes of tables: swpipe, bmv2 or tofino1.
        #[arg(long, default_value = "swpipe")]
        profile: &'static TargetProfile,
    },
}

fn side(text: &str) -> Result<Side, String> {
    match text {
        "lan" => Ok(Side::Lan),
        "wan" => Ok(Side::Wan),
        _ => Err("a side is lan or wan".to_owned()),
    }
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    let (port, file) = text.split_once('=').ok_or("an input is PORT=FILE")?;
    Ok((port.to_owned(), PathBuf::from(file)))
}

fn load(path: &PathBuf) -> Result<Site, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let site = Site::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    for warning in site.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(site)
}

/// A configuration that a target has room for.
fn load_for(path: &PathBuf, profile: &TargetProfile) -> Result<Site, String> {
    let site = load(path)?;
    site.fits(profile).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(site)
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Run { config, listen, io, workers, pin, device_id, profile } => {
            let options = Options { backend: io, workers: workers.map(usize::from), pin, device_id, profile };
            let site = match load_for(&config, profile) {
                // The controller's `save` makes it; until then there is no port.
                Err(_) if !config.exists() => {
                    eprintln!("warning: {} is not there: no port is open", config.display());
                    Site::from_json("{}").map_err(|error| error.to_string())?
                }
                site => site?,
            };
            forward(&config, &site, &options, &listen)
        }
        Command::ConfigHash { config } => {
            let (units, device) = load(&config)?.config_hashes();
            for (unit, digest) in units {
                println!("ecofilter-unit {unit} {digest}");
            }
            println!("device {device}");
            Ok(())
        }
        Command::Decode { side, frame } => {
            let bytes = hex::decode(frame.trim()).map_err(|error| {
                format!("the frame is no hex string: {error} (two digits a byte, no spaces)")
            })?;
            println!("{}", dataplane::describe::describe(&bytes, side));
            Ok(())
        }
        Command::Replay { config, inputs, out, verdicts, down, profile } => {
            let site = load_for(&config, profile)?;
            let totals = replay(&site, &Replay { inputs, down, out, verdicts, profile })
                .map_err(|error| error.to_string())?;
            for (reason, frames) in totals {
                let name = reason.as_str().map(|name| format!(" ({name})")).unwrap_or_default();
                println!("{:>10} {}{name}", frames, reason.verdict());
            }
            Ok(())
        }
    }
}

/// Runs the pipeline until SIGTERM or SIGINT.
///
/// Until a controller has programmed it, links are bypassed as the configuration has them: it fails open.
fn forward(config: &PathBuf, site: &Site, options: &Options, listen: &Listen) -> Result<(), String> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(std::io::stderr).init();
    // The threads of the runtime write tables; workers take their priority back.
    swpipe::priority::urgent();
    // More threads than cores: one that takes a large write must not hold up keep-alives.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let say = |error: std::io::Error| format!("cannot catch signals: {error}");
        let mut terminate = signal(SignalKind::terminate()).map_err(say)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(say)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(say)?;
        let pipeline =
            Pipeline::start(&PortSpec::of_site(site), options).map_err(|error| error.to_string())?;
        pipeline.set_initial_tables(&entries(site, |_| false).1);
        let serving = pipeline.serve(listen).await.map_err(|error| error.to_string())?;
        tracing::info!(
            "swpipe: ready, {} ports, P4Runtime on {}",
            pipeline.ports().len(),
            serving.address()
        );
        loop {
            tokio::select! {
                _ = hangup.recv() => match tokio::task::block_in_place(|| reload(&pipeline, config, options)) {
                    Ok(()) => tracing::info!("swpipe: {} read, {} ports", config.display(), pipeline.ports().len()),
                    Err(error) => tracing::error!("swpipe: refused, nothing changed: {error}"),
                },
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        tracing::info!("swpipe: stopping");
        drop(serving);
        let stopped = tokio::task::spawn_blocking(move || pipeline.stop());
        // A second signal does not wait for that.
        tokio::select! {
            _ = stopped => {}
            _ = terminate.recv() => std::process::exit(1),
            _ = interrupt.recv() => std::process::exit(1),
        }
        Ok(())
    })
}

/// Takes the ports from the configuration as it is now, and the tables while no controller has set any.
fn reload(pipeline: &Pipeline, config: &PathBuf, options: &Options) -> Result<(), String> {
    let site = load_for(config, options.profile)?;
    let ports = PortSpec::of_site(&site);
    if ports.is_empty() && !pipeline.ports().is_empty() {
        return Err(format!(
            "{}: no port in it has an interface, and {} forward; stop swpipe to give up all of them",
            config.display(),
            pipeline.ports().len()
        ));
    }
    let opening = pipeline.ports().open(&ports).map_err(|error| error.to_string())?;
    pipeline.set_initial_tables(&entries(&site, |_| false).1);
    opening.commit();
    Ok(())
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("swpipe: {error}");
            ExitCode::FAILURE
        }
    }
}
