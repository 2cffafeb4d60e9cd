//! A blocking client of the socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::{Request, Response};

/// How long a client waits unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to `sluiced`.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// Why a request got no answer, or not the one it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("cannot reach sluiced on {}: {source}; is it running? (--socket or SLUICE_SOCKET names its socket)", .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to sluiced broke: {0}")]
    Io(#[from] io::Error),
    /// Refused by sluiced.
    #[error("{0}")]
    Refused(String),
    /// The answer is not of this version's schema.
    #[error("sluiced gave an answer that this client does not understand: {0}")]
    Answer(#[from] serde_json::Error),
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let connect = || {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|source| ClientError::Connect { path: path.to_owned(), source })?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Waits that long at most for every part of the answers to come; a minute without it.
    ///
    /// # Errors
    /// [`ClientError::Io`]; no time at all is one.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), ClientError> {
        self.stream.get_ref().set_read_timeout(Some(patience))?;
        self.stream.get_ref().set_write_timeout(Some(patience))?;
        Ok(())
    }

    /// The other end has closed the connection, as far as is known without asking anything.
    pub fn is_closed(&mut self) -> bool {
        if self.stream.get_ref().set_nonblocking(true).is_err() {
            return true;
        }
        let closed = match self.stream.fill_buf() {
            Ok(answer) => answer.is_empty(),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        self.stream.get_ref().set_nonblocking(false).is_err() || closed
    }

    /// Asks and waits for the answer, at most a minute unless [`Client::set_patience`] says otherwise.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with sluiced's reason; else what broke.
    pub fn ask(&mut self, request: &Request) -> Result<serde_json::Value, ClientError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        match self.stream.get_mut().write_all(&line) {
            // Who is sent away is told why before anything was asked.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => match self.answer() {
                Err(refused @ ClientError::Refused(_)) => Err(refused),
                _ => Err(error.into()),
            },
            written => {
                written?;
                self.answer()
            }
        }
    }

    fn answer(&mut self) -> Result<serde_json::Value, ClientError> {
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(ClientError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_str(&answer)? {
            Response::Ok(value) => Ok(value),
            Response::Error(reason) => Err(ClientError::Refused(reason)),
        }
    }

    /// [`Client::ask`] with the answer's type.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn ask_as<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ClientError> {
        Ok(serde_json::from_value(self.ask(request)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_sent_away_at_once_hears_why() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let refusal = serde_json::to_string(&Response::Error("no role".to_owned())).unwrap();
        theirs.write_all(format!("{refusal}\n").as_bytes()).unwrap();
        drop(theirs);
        let mut client = Client { stream: BufReader::new(ours) };
        let error = client.ask(&Request::ShowVersion).unwrap_err();
        assert!(matches!(&error, ClientError::Refused(reason) if reason == "no role"), "{error}");
        assert!(matches!(client.ask(&Request::ShowVersion), Err(ClientError::Io(_))));
    }
}
