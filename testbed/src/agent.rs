//! Processes of ours inside a namespace: the first line on standard input is their set-up, every further line a
//! request; each is answered by one line on standard output. The end of standard input ends the process, so none
//! outlives its runner.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Doing, Error, Result};

/// How an agent answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The result of the request.
    Ok(Value),
    /// Why it failed.
    Error(String),
}

/// The runner's end of an agent.
#[derive(Debug)]
pub struct Agent {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Agent {
    /// Starts `command` and waits until it has understood its set-up.
    ///
    /// # Errors
    /// [`Error::Agent`] with the agent's own words when it refuses.
    pub fn start(name: &str, mut command: Command, setup: &impl Serialize) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing(|| format!("starting {name} ({command:?})"))?;
        let requests = child.stdin.take();
        let Some(output) = child.stdout.take() else {
            return Err(Error::Agent { agent: name.into(), reason: "has no standard output".into() });
        };
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut agent = Agent { name: name.into(), child, requests, answers };
        agent.ask::<Value>(setup, Duration::from_secs(20))?;
        Ok(agent)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`Error::Agent`] when the agent answers with an error, with something else, too late or is gone.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize, patience: Duration) -> Result<T> {
        self.tell(request)?;
        self.hear(patience)
    }

    /// Sends a request; [`Agent::hear`] fetches the answer.
    ///
    /// # Errors
    /// [`Error::Agent`] when the agent is gone.
    pub fn tell(&mut self, request: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(request).map_err(|error| self.fault(error.to_string()))?;
        line.push(b'\n');
        match &mut self.requests {
            Some(pipe) => pipe.write_all(&line).doing(|| format!("asking {}", self.name)),
            None => Err(self.fault("was told to end".into())),
        }
    }

    /// Waits for the answer to the oldest request.
    ///
    /// # Errors
    /// As [`Agent::ask`].
    pub fn hear<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T> {
        let line = match self.answers.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(self.fault(format!("gave no answer within {} s", patience.as_secs())));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                return Err(self.fault(format!("ended with {status}")));
            }
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Ok(value)) => serde_json::from_value(value)
                .map_err(|error| self.fault(format!("answered something unexpected: {error}"))),
            Ok(Answer::Error(reason)) => Err(self.fault(reason)),
            Err(error) => Err(self.fault(format!("wrote {line:?}: {error}"))),
        }
    }

    fn fault(&self, reason: String) -> Error {
        Error::Agent { agent: self.name.clone(), reason }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.requests = None;
        // Ends by itself at the end of its input; the kill is for one that is stuck.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agent's end: reads the set-up.
///
/// # Errors
/// [`Error::Agent`] when the line isn't what the agent wants; it has been answered.
pub fn read_setup<T: DeserializeOwned>(name: &str) -> Result<T> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).doing(|| format!("reading the set-up of {name}"))?;
    serde_json::from_str(&line).map_err(|error| {
        let reason = format!("set-up not understood: {error}");
        respond(Err::<Value, _>(&reason));
        Error::Agent { agent: name.into(), reason }
    })
}

/// The agent's end: answers requests until the input ends.
pub fn serve<R: DeserializeOwned, T: Serialize, E: std::fmt::Display>(
    mut answer: impl FnMut(R) -> std::result::Result<T, E>,
) {
    for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
        match serde_json::from_str(&line) {
            Ok(request) => respond(answer(request)),
            Err(error) => respond(Err::<Value, _>(format!("request {line:?} not understood: {error}"))),
        }
    }
}

/// The agent's end: writes one answer.
pub fn respond<T: Serialize, E: std::fmt::Display>(result: std::result::Result<T, E>) {
    let answer = match result.map(|value| serde_json::to_value(value)) {
        Ok(Ok(value)) => Answer::Ok(value),
        Ok(Err(error)) => Answer::Error(error.to_string()),
        Err(error) => Answer::Error(error.to_string()),
    };
    if let Ok(line) = serde_json::to_string(&answer) {
        let mut output = std::io::stdout().lock();
        // A runner that is gone closes our input too, which ends us.
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    }
}
