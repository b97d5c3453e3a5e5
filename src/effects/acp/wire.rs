//! JSON-RPC with an agent, one message on each line. ACP v1, "Transports", stdio.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf};

use super::{Untold, clip, untold};
use provost_base::limits::{ACP_BYTES_MAX, ACP_GARBAGE_LINES_MAX, ACP_LINE_BYTES_MAX, STREAM_LINE_BYTES_MAX};
use provost_jail::{LiveOutput, OurEnd, Stream};

/// The codes of JSON-RPC for an invalid message and for a method that is not offered.
const NO_MESSAGE: i64 = -32_600;
const NO_METHOD: i64 = -32_601;
/// The member that marks the daemon's own lines in a run's output.
const OURS: &str = "provost";
/// The most bytes that an error quotes of a line that is no message.
const QUOTED: usize = 64;
/// The most bytes that are quoted of an agent's own error message.
const ERROR_TEXT_MAX: usize = 500;

/// An agent's answer to a request.
pub(super) type Answer = Result<Value, RpcError>;

/// An error in an agent's answer.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) code: i64,
    message: String,
}

impl RpcError {
    fn of(error: &Value) -> Self {
        let text = |at: &str| error.pointer(at).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
        let message = text("/message").unwrap_or("it does not say why");
        let detail = text("/data/details").or(text("/data/message")).or(text("/data"));
        let message = detail.map_or_else(|| message.to_owned(), |it| format!("{message}: {it}"));
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        Self { code, message: clip(&message, ERROR_TEXT_MAX).to_owned() }
    }

    /// Returns the reason for which this error ends the conversation.
    pub(super) fn untold(&self, method: &str) -> Untold {
        untold(format!(" {} to {method}: {}", self.code, self.message))
    }
}

/// A message from the agent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The answer to the request with this number.
    Answer(u64, Answer),
    /// A request.
    Request { id: Value, method: String, params: Value },
    /// A notification.
    Told { method: String, params: Value },
}

/// Both directions of a conversation.
pub(super) struct Wire {
    from: BufReader<ReadHalf<OurEnd>>,
    to: WriteHalf<OurEnd>,
    live: LiveOutput,
    line: Vec<u8>,
    total: usize,
    garbage: usize,
    next: u64,
    session: Option<String>,
    /// Updates that came before the session's id was known.
    early: VecDeque<Value>,
    /// Bytes to send that the agent has not read yet.
    outgoing: Vec<u8>,
}

impl Wire {
    pub(super) fn new(ours: OurEnd, live: LiveOutput) -> Self {
        let (from, to) = tokio::io::split(ours);
        let (line, early) = (Vec::new(), VecDeque::new());
        Self {
            from: BufReader::new(from),
            to,
            live,
            line,
            total: 0,
            garbage: 0,
            next: 0,
            session: None,
            early,
            outgoing: Vec::new(),
        }
    }

    /// Sends a request and waits for its answer. Meanwhile it refuses the agent's own requests, and keeps its updates of the session.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Answer, Untold> {
        let asked = self.send_request(method, params).await?;
        loop {
            match self.next().await? {
                Incoming::Answer(id, answer) if id == asked => return Ok(answer),
                // An answer to a request that is not open.
                Incoming::Answer(..) => {}
                Incoming::Request { id, method, .. } => self.refuse(&id, &method).await?,
                Incoming::Told { method, params } => self.told(&method, params),
            }
        }
    }

    /// Sends a request without waiting for its answer; returns the request's number.
    pub(super) async fn send_request(&mut self, method: &str, params: Value) -> Result<u64, Untold> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Sends the agent a notification.
    pub(super) fn notify(&mut self, method: &str, params: Value) -> Result<(), Untold> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Checks whether the agent has read everything that was sent.
    pub(super) fn all_is_sent(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Answers a request of the agent.
    pub(super) async fn answer(&mut self, id: &Value, result: Value) -> Result<(), Untold> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Answers that a method is not offered.
    pub(super) async fn refuse(&mut self, id: &Value, method: &str) -> Result<(), Untold> {
        let message = format!("the client does not offer {}", clip(method, QUOTED));
        self.fail(id, NO_METHOD, &message).await
    }

    /// Answers a request with an error.
    pub(super) async fn fail(&mut self, id: &Value, code: i64, message: &str) -> Result<(), Untold> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
    }

    /// Queues a message, which goes out while the daemon waits for the next one: an agent may write much before it reads.
    fn send(&mut self, message: &Value) -> Result<(), Untold> {
        self.outgoing.extend_from_slice(message.to_string().as_bytes());
        self.outgoing.push(b'\n');
        match self.outgoing.len() > ACP_LINE_BYTES_MAX {
            true => Err(untold(": it does not read its input")),
            false => Ok(()),
        }
    }

    /// Accepts from now on only updates of this session.
    pub(super) fn expect_session(&mut self, id: &str) {
        self.session = Some(id.to_owned());
        for params in std::mem::take(&mut self.early) {
            self.told("session/update", params);
        }
    }

    /// Drops the updates that came before the session's id was known.
    pub(super) fn forget_updates(&mut self) {
        self.early.clear();
    }

    /// Writes an update of the session into the run's output. Removes the member that marks the daemon's own lines, so that
    /// the agent cannot forge one.
    pub(super) fn told(&mut self, method: &str, mut params: Value) {
        if method != "session/update" {
            return;
        }
        match &self.session {
            None if self.early.len() < ACP_GARBAGE_LINES_MAX => self.early.push_back(params),
            Some(ours) if params["sessionId"] == ours.as_str() => {
                if let Some(members) = params.get_mut("update").and_then(Value::as_object_mut) {
                    members.remove(OURS);
                }
                self.show(&params["update"]);
            }
            // An update of another session, or beyond the bound.
            _ => {}
        }
    }

    /// Writes a line of the run's output. A line that is too long for its readers is written without its contents.
    pub(super) fn show(&self, update: &Value) {
        let mut line = update.to_string();
        if line.len() >= STREAM_LINE_BYTES_MAX {
            let mut less = update.clone();
            if let Some(members) = less.as_object_mut() {
                members.retain(|name, value| name != "content" && (value.is_string() || value.is_number()));
                members.insert("shortened".into(), true.into());
            }
            line = less.to_string();
        }
        line.push('\n');
        self.live.push(Stream::Out, line.as_bytes());
    }

    /// Returns the next message. If the future is dropped before the message's end, the part that was read stays for the next call.
    ///
    /// # Errors
    /// When the agent has closed its side, or has broken a bound.
    pub(super) async fn next(&mut self) -> Result<Incoming, Untold> {
        loop {
            self.read_line().await?;
            let line = std::mem::take(&mut self.line);
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Value>(text) {
                Ok(message @ Value::Object(_)) => match incoming(message) {
                    Some(incoming) => return Ok(incoming),
                    None => self.no_message(text)?,
                },
                Ok(Value::Array(_)) => {
                    self.no_message(text)?;
                    self.fail(&Value::Null, NO_MESSAGE, "batches are not part of ACP").await?;
                }
                _ => self.no_message(text)?,
            }
        }
    }

    async fn read_line(&mut self) -> Result<(), Untold> {
        loop {
            let Self { from, to, outgoing, .. } = &mut *self;
            let written = tokio::select! {
                biased;
                written = to.write(outgoing), if !outgoing.is_empty() => Some(written),
                _ = from.fill_buf() => None,
            };
            if let Some(written) = written {
                let length = written.map_err(|_| closed())?;
                self.outgoing.drain(..length);
                continue;
            }
            // The bytes are in the buffer already.
            let read = self.from.fill_buf().await.map_err(|_| closed())?;
            if read.is_empty() {
                return Err(closed());
            }
            let (part, ends) = match memchr::memchr(b'\n', read) {
                Some(at) => (&read[..=at], true),
                None => (read, false),
            };
            self.line.extend_from_slice(part);
            let length = part.len();
            self.from.consume(length);
            self.total = self.total.saturating_add(length);
            if self.line.len() > ACP_LINE_BYTES_MAX {
                return Err(untold(format!(": it wrote a line of more than {ACP_LINE_BYTES_MAX} bytes")));
            }
            if self.total > ACP_BYTES_MAX {
                return Err(untold(format!(": it wrote more than {ACP_BYTES_MAX} bytes")));
            }
            if ends {
                return Ok(());
            }
        }
    }

    fn no_message(&mut self, text: &[u8]) -> Result<(), Untold> {
        self.garbage += 1;
        let begin = String::from_utf8_lossy(&text[..text.len().min(QUOTED)]).into_owned();
        if self.garbage > ACP_GARBAGE_LINES_MAX {
            return Err(untold(format!(": its standard output is not ACP; it says '{begin}'")));
        }
        self.live.push(Stream::Err, format!("{begin}\n").as_bytes());
        Ok(())
    }
}

/// Returns the kind of a message; `None` if it is not JSON-RPC.
fn incoming(mut message: Value) -> Option<Incoming> {
    let members = message.as_object_mut()?;
    let params = members.remove("params").unwrap_or_default();
    let id = members.remove("id");
    if let Some(Value::String(method)) = members.remove("method") {
        return Some(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Told { method, params },
        });
    }
    let id = id?.as_u64()?;
    if let Some(error) = members.remove("error").filter(|it| !it.is_null()) {
        return Some(Incoming::Answer(id, Err(RpcError::of(&error))));
    }
    Some(Incoming::Answer(id, Ok(members.remove("result")?)))
}

fn closed() -> Untold {
    Untold { closed: true, ..untold(": it closed the connection before it answered") }
}
