//! The switch as a process: P4Runtime on an address, frames on Linux interfaces.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use p4runtime::server::Listen;
use tokio::signal::unix::{SignalKind, signal};

use super::{Server, read_info};
use crate::error::{Doing, Error, Result};
use crate::raw::{Batch, PacketSocket, offloads_off};

/// A port and the interface that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number in the data plane, below 511.
    pub number: u16,
    /// Linux interface.
    pub interface: String,
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("`{text}` is no port; give NUMBER@INTERFACE, number below 511");
        let (number, interface) = text.split_once('@').ok_or_else(wrong)?;
        let number = number.parse().ok().filter(|number| *number < 511).ok_or_else(wrong)?;
        if interface.is_empty() { Err(wrong()) } else { Ok(Port { number, interface: interface.to_owned() }) }
    }
}

/// What the process is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Where P4Runtime is served: unix:/PATH or IP:PORT.
    #[arg(long)]
    pub listen: Listen,
    /// A port and its interface; given once for each.
    #[arg(long = "interface", value_name = "PORT@IFACE", required = true)]
    pub ports: Vec<Port>,
    /// The port that leads to the controller.
    #[arg(long, value_name = "PORT", default_value_t = 510)]
    pub cpu_port: u16,
    /// The device's number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub device_id: u64,
    /// A program to begin with: p4c's JSON. Without it, a controller brings one.
    #[arg(long, value_name = "JSON", requires = "p4info")]
    pub program: Option<PathBuf>,
    /// Its P4Info, as protobuf text.
    #[arg(long, value_name = "FILE", requires = "program")]
    pub p4info: Option<PathBuf>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// [`Error::Io`] names the interface or address; [`Error::Input`] the program.
pub fn run(options: &Options) -> Result<()> {
    let mut sockets = HashMap::new();
    for port in &options.ports {
        offloads_off(&port.interface)?;
        if sockets.insert(port.number, PacketSocket::open(&port.interface)?).is_some() {
            return Err(Error::Unsupported(format!("port {} is given twice", port.number)));
        }
    }
    let sockets = Arc::new(sockets);
    let out = Arc::clone(&sockets);
    let transmit = Box::new(move |port: u16, bytes: &[u8]| {
        // What cannot be sent is lost, as on a wire that is cut.
        let sent = out.get(&port).map(|socket| socket.send(&[bytes]));
        if let Some(Err(error)) = sent {
            eprintln!("testbed p4ref: {error}");
        }
    });
    let server = Server::new(options.device_id, options.cpu_port, transmit);
    if let (Some(program), Some(info)) = (&options.program, &options.p4info) {
        begin(&server, program, info)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .doing(|| "starting the P4Runtime server".to_owned())?;
    let (stop, stopped) = UnixStream::pair().doing(|| "making a pipe".to_owned())?;
    let frames = server.clone();
    let mover = std::thread::spawn(move || move_frames(&frames, &sockets, &stopped));
    let served = runtime.block_on(serve(&server, &options.listen));
    drop(stop);
    let moved = mover.join().unwrap_or_else(|_| Err(Error::Unsupported("moving frames was cut off".into())));
    served.and(moved)
}

fn begin(server: &Server, program: &PathBuf, info: &PathBuf) -> Result<()> {
    let json = std::fs::read(program).doing(|| format!("reading {}", program.display()))?;
    let text = std::fs::read_to_string(info).doing(|| format!("reading {}", info.display()))?;
    let wrong = |file: &PathBuf, reason: String| Error::Input { file: file.display().to_string(), reason };
    let parsed = read_info(&text).map_err(|error| wrong(info, error.to_string()))?;
    server.begin_with(json, parsed).map_err(|status| wrong(program, status.message().to_owned()))
}

async fn serve(server: &Server, listen: &Listen) -> Result<()> {
    let signals =
        || -> std::io::Result<_> { Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)) };
    let (mut terminate, mut interrupt) = signals().doing(|| "waiting for signals".to_owned())?;
    let serving = server.listen(listen).await.doing(|| format!("serving P4Runtime on {listen}"))?;
    println!("P4Runtime on {}", serving.address());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Moves frames until the other end of `stopped` is dropped.
fn move_frames(server: &Server, sockets: &HashMap<u16, PacketSocket>, stopped: &UnixStream) -> Result<()> {
    let ports: Vec<(u16, &PacketSocket)> = sockets.iter().map(|(port, socket)| (*port, socket)).collect();
    let mut batch = Batch::default();
    loop {
        let mut waiting: Vec<PollFd<'_>> =
            ports.iter().map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        waiting.push(PollFd::new(stopped.as_fd(), PollFlags::POLLIN));
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).doing(|| "waiting for frames".to_owned()),
        }
        if waiting.last().is_some_and(|stop| stop.any().unwrap_or(false)) {
            return Ok(());
        }
        for ((port, socket), _) in
            ports.iter().zip(&waiting).filter(|(_, ready)| ready.any().unwrap_or(false))
        {
            socket.receive(&mut batch)?;
            for frame in batch.iter() {
                server.receive(*port, frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_at_interfaces() {
        assert_eq!("7@veth0".parse(), Ok(Port { number: 7, interface: "veth0".to_owned() }));
        for wrong in ["7", "511@veth0", "x@veth0", "7@", "-1@veth0"] {
            assert!(wrong.parse::<Port>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
