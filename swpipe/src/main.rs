//! `swpipe`: the software pipeline as a program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dataplane::Side;
use site::Site;
use swpipe::replay::{Replay, replay};

/// Sluice's software pipeline.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
    for warning in &site.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(site)
}

fn run(command: Command) -> Result<(), String> {
    match command {
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
        Command::Replay { config, inputs, out, verdicts, down } => {
            let site = load(&config)?;
            let totals =
                replay(&site, &Replay { inputs, down, out, verdicts }).map_err(|error| error.to_string())?;
            for (reason, frames) in totals {
                let name = reason.as_str().map(|name| format!(" ({name})")).unwrap_or_default();
                println!("{:>10} {}{name}", frames, reason.verdict());
            }
            Ok(())
        }
    }
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
