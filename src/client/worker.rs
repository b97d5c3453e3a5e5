//! Talks to the daemon from inside a jail: signed frames at the door that was made for this run.
//!
//! Every request has an id, and every answer names its request. So several processes of a worker can share an
//! inherited connection; a lock in the worker's own temporary folder lets them take turns.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use serde_json::Value;

use provost_auth::frame::{Form, Frame, Outgoing};
use provost_base::limits::FRAME_LEN_MAX;
use provost_base::{AgentId, Json, Secret, TaskId};

/// The time that an answer may take. A flooded door answers slowly, but within seconds.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The pause between two looks at a lock that another process of this worker holds.
const TURN_PAUSE: Duration = Duration::from_millis(20);

/// The reason why a message got no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The daemon refused the message.
    #[error("{message}")]
    Refused {
        /// DevIt's word for it, such as `E_FORBIDDEN`.
        code: String,
        /// The daemon's sentence about the refusal.
        message: String,
    },
    /// No process answers at the door.
    #[error("the daemon does not answer at this run's door: {0}")]
    Gone(#[from] io::Error),
    /// The answer is malformed: the daemon did not write it.
    #[error("the answer makes no sense: {0}")]
    Broken(String),
}

/// The way to this run's door.
#[derive(Debug)]
pub enum DoorAddress {
    /// A socket at this path, which the jail has mounted.
    Socket(PathBuf),
    /// A connection that this process has inherited, and the folder in which processes take turns.
    Inherited(OwnedFd, PathBuf),
}

/// A worker in its jail.
pub struct Worker {
    /// The way to the door.
    pub way: DoorAddress,
    /// The worker's name.
    pub ident: AgentId,
    /// The id of the task that it works on.
    pub task: TaskId,
    /// The secret that signs messages, for this run only.
    pub secret: Secret,
}

impl Worker {
    /// Sends a message and returns the daemon's answer.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn say(&self, msg_type: &str, payload: &Value) -> Result<Value, WorkerError> {
        let (stream, _turn) = self.connect()?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        let id = uuid::Uuid::new_v4().to_string();
        let line = self.sign(msg_type, &id, payload);
        (&stream).write_all(format!("{line}\n").as_bytes())?;
        let mut reader = BufReader::new(&stream);
        let until = Instant::now() + ANSWER_MAX;
        while Instant::now() < until {
            let line = read_line(&mut reader)?;
            // A line for another process of this worker, which has stopped waiting, is skipped.
            let Some(payload) = self.answer(&line, &id)? else { continue };
            return match payload["code"].as_str() {
                Some(code) => Err(WorkerError::Refused {
                    code: code.to_owned(),
                    message: payload["message"].as_str().unwrap_or("refused").to_owned(),
                }),
                None => Ok(payload),
            };
        }
        Err(WorkerError::Gone(io::ErrorKind::TimedOut.into()))
    }

    fn connect(&self) -> Result<(UnixStream, Option<File>), WorkerError> {
        match &self.way {
            DoorAddress::Socket(path) => Ok((UnixStream::connect(path)?, None)),
            DoorAddress::Inherited(socket, folder) => {
                let turn = take_turn(folder)?;
                Ok((UnixStream::from(socket.try_clone()?), Some(turn)))
            }
        }
    }

    fn sign(&self, msg_type: &str, msg_id: &str, payload: &Value) -> String {
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let nonce = uuid::Uuid::new_v4().to_string();
        let payload = Json::from_value(payload);
        let (from, to) = (self.ident.as_str(), "orchestrator");
        let outgoing = Outgoing { msg_type, msg_id, from, to, ts, nonce: &nonce, payload: &payload };
        outgoing.sign(&self.secret, Form::Standard)
    }

    /// Returns the payload of the answer to a message; `None` when the line answers another one.
    fn answer(&self, line: &str, msg_id: &str) -> Result<Option<Value>, WorkerError> {
        let broken = |why: &dyn std::fmt::Display| WorkerError::Broken(why.to_string());
        if line.trim().is_empty() {
            return Ok(None);
        }
        let frame = Frame::parse(line.as_bytes()).map_err(|e| broken(&e))?;
        let payload: Value = serde_json::from_str(frame.payload).map_err(|e| broken(&e))?;
        if frame.hmac.is_empty() {
            let text = payload["message"].as_str().unwrap_or("it was refused").to_owned();
            return Err(WorkerError::Refused { code: "E_AUTH".into(), message: text });
        }
        frame.verify(&self.secret).map_err(|e| broken(&e))?;
        Ok((payload["in_reply_to"] == msg_id).then_some(payload))
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    // The status of one task is far smaller; the daemon sends nothing larger.
    let read = io::Read::take(&mut *reader, 4 * FRAME_LEN_MAX as u64).read_line(&mut line)?;
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
}

/// Waits for this process's turn to send and receive. Dropping the file ends the turn.
fn take_turn(folder: &Path) -> io::Result<File> {
    let lock = File::options().create(true).append(true).open(folder.join(".provost-worker"))?;
    let until = Instant::now() + ANSWER_MAX;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) if Instant::now() < until => {
                std::thread::sleep(TURN_PAUSE);
            }
            Err(e) => return Err(e.into()),
        }
    }
}
