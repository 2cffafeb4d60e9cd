//! `sluice`: shell and single commands for sluiced.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use cli::execute::Executor;
use cli::session::Interrupt;
use cli::terminal::{Terminal, say};
use cli::{script, shell};

/// Shows and controls a running sluiced.
///
/// Without -c it is a shell; from a pipe or file it runs the lines up to the first that fails.
/// Exit status: 0 done, 1 refused or sluiced cannot be reached, 2 the line is no command.
#[derive(Debug, Parser)]
#[command(name = "sluice", version)]
struct Options {
    /// Socket of sluiced.
    #[arg(long, env = "SLUICE_SOCKET", value_name = "PATH", default_value = api::DEFAULT_SOCKET)]
    socket: PathBuf,
    /// Run one command, such as "show ports | json".
    #[arg(short = 'c', value_name = "COMMAND")]
    command: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let interrupt = match Interrupt::new() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            say(&format!("cannot take over SIGINT: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let terminal = Terminal::of_this_process();
    if options.command.is_none() && terminal.keys {
        return match shell::run(&options.socket, interrupt, terminal) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&error.to_string());
                ExitCode::FAILURE
            }
        };
    }
    let mut executor = Executor::new(&options.socket, interrupt, terminal);
    ExitCode::from(match options.command {
        Some(line) => script::once(&mut executor, &line),
        None => script::lines(&mut executor),
    })
}
