//! MCP over standard input and output: a message a line.
//!
//! Promises: a line that is too long, no JSON or no message gets an error, under the id of its request if it has
//! one, and the next line is read; memory is bounded.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use memchr::memchr;
use rmcp::ServiceExt as _;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::error::Category;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Mcp;
use super::deferred::kept;
use super::extension_content::Whole;
use super::outline::Outline;
use super::repeated::repeated_member;
use super::task_revisions::Announcing;
use provost_base::limits::{MCP_BEAT_EVERY_S, MCP_BODY_BYTES_MAX, MCP_LINES_UNREAD_MAX, MCP_WHY_CHARS_MAX};
use provost_client::Client;

/// The reason why a server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The host did not begin in the way of the protocol.
    #[error("the host does not speak MCP: {0}")]
    Beginning(String),
    /// An internal error.
    #[error("serving has failed: {0}")]
    Inside(String),
}

/// Serves a host until it closes standard input.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(mcp: Mcp) -> Result<(), ServeError> {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    let beginning = |error: &dyn std::fmt::Display| ServeError::Beginning(error.to_string());
    let there = stay_there(mcp.client.clone());
    let lines = Announcing(Lines::new(reader, writer));
    let running = Whole::of(mcp).serve(lines).await.map_err(|error| beginning(&error))?;
    tokio::select! {
        served = running.waiting() => served.map_err(|error| ServeError::Inside(error.to_string()))?,
        never = there => match never {},
    };
    Ok(())
}

/// Sends signs of life to the crew while the host is connected, if its agent has joined: claims are freed when a
/// member falls silent, and a model may think for minutes.
async fn stay_there(client: Client) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_secs(MCP_BEAT_EVERY_S)).await;
        // The daemon refuses an agent that is not in the crew; a daemon that is away gets the next sign.
        let _heard = client.beat_crew().await;
    }
}

/// The host's messages, one per line.
struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// The outline of a line that is too long to keep.
    outline: Option<Outline>,
    /// An error for a line that was no message, not sent yet.
    owed: Option<Vec<u8>>,
    /// Whether there was a request: before the first one, the library takes any other message for the end.
    asked: bool,
    /// The channel to the writing task: a line, once begun, is always written to its end.
    to: Option<mpsc::Sender<Vec<u8>>>,
    writing: JoinHandle<io::Result<()>>,
}

/// A line from the host, as it was read.
enum Sent {
    Line(Vec<u8>),
    TooLong(Outline),
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new(reader: R, mut writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (to, mut lines) = mpsc::channel::<Vec<u8>>(MCP_LINES_UNREAD_MAX);
        let writing = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                writer.write_all(&line).await?;
                writer.flush().await?;
            }
            Ok(())
        });
        let from = BufReader::new(reader);
        Self { from, line: Vec::new(), outline: None, owed: None, asked: false, to: Some(to), writing }
    }

    /// Returns the next line, or `None` at the end. May be cancelled at any point and called again.
    async fn next(&mut self) -> io::Result<Option<Sent>> {
        loop {
            let there = self.from.fill_buf().await?;
            if there.is_empty() {
                return Ok(None);
            }
            let end = memchr(b'\n', there);
            let part = &there[..end.unwrap_or(there.len())];
            match &mut self.outline {
                Some(outline) => outline.read(part),
                None if self.line.len() + part.len() > MCP_BODY_BYTES_MAX => {
                    let mut outline = Outline::of(&self.line);
                    outline.read(part);
                    self.outline = Some(outline);
                    self.line = Vec::new();
                }
                None => self.line.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(self.outline.take().map_or(Sent::Line(line), Sent::TooLong)));
            }
        }
    }

    /// Sends the owed error, if the channel has room. May be cancelled, too.
    async fn pay(&mut self) -> Option<()> {
        if self.owed.is_some() {
            let place = self.to.as_ref()?.reserve().await.ok()?;
            if let Some(answer) = self.owed.take() {
                place.send(answer);
            }
        }
        Some(())
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to = self.to.clone();
        async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            to.ok_or_else(gone)?.send(written(&message)?).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.pay().await?;
            let understood = match self.next().await {
                Ok(Some(Sent::Line(line))) => message(&kept(&line).map_or(line, |(kept, _)| kept)),
                Ok(Some(Sent::TooLong(outline))) => Err(too_long(outline)),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "what the host says cannot be read");
                    return None;
                }
            };
            match understood {
                Ok(Some(message)) => {
                    self.asked |= matches!(message, JsonRpcMessage::Request(_));
                    if self.asked {
                        return Some(message);
                    }
                }
                Ok(None) | Err(None) => {}
                Err(Some(fault)) => self.owed = written(&fault.into_message()).ok(),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The writer ends after the last line.
        self.to = None;
        (&mut self.writing).await.map_err(io::Error::other)?
    }
}

fn written(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The reason why a line is no message, and the id for the error, if the line has one.
struct MalformedMessage {
    error: ErrorData,
    id: Option<RequestId>,
}

impl MalformedMessage {
    fn new(error: ErrorData, id: Option<RequestId>) -> Self {
        Self { error, id }
    }

    fn into_message(self) -> TxJsonRpcMessage<RoleServer> {
        TxJsonRpcMessage::<RoleServer>::error(self.error, self.id)
    }
}

/// Parses a line; `None` if it is empty. The error is present if the host must be told.
fn message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Option<MalformedMessage>> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let read = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line);
    let why = match read {
        // A request with an invalid id would otherwise be read as a notice, and its sender would wait for ever.
        Ok(JsonRpcMessage::Notification(_)) if Outline::of(line).has_id() => {
            "an id is a whole number or text".to_owned()
        }
        Ok(message) => match repeated_member(line) {
            Some(why) => why,
            None => return Ok(Some(message)),
        },
        Err(error) => {
            let why: String = error.to_string().chars().take(MCP_WHY_CHARS_MAX).collect();
            if matches!(error.classify(), Category::Syntax | Category::Eof) {
                let why = format!("this is no JSON: {why}");
                return Err(Some(MalformedMessage::new(
                    ErrorData::new(ErrorCode::PARSE_ERROR, why, None),
                    None,
                )));
            }
            why
        }
    };
    let outline = Outline::of(line);
    let why = format!("this is no message of MCP: {why}");
    Err((!outline.is_told())
        .then(|| MalformedMessage::new(ErrorData::invalid_request(why, None), outline.id())))
}

/// Returns the error for a body over HTTP that is no message.
pub(super) fn refusal(body: &[u8]) -> Option<String> {
    let fault = match message(body) {
        Ok(Some(_)) | Err(None) => return None,
        Ok(None) => {
            MalformedMessage::new(ErrorData::new(ErrorCode::PARSE_ERROR, "there is no message", None), None)
        }
        Err(Some(fault)) => fault,
    };
    serde_json::to_string(&fault.into_message()).ok()
}

fn too_long(outline: Outline) -> Option<MalformedMessage> {
    let why = format!("a message has at most {MCP_BODY_BYTES_MAX} bytes; nothing was done");
    (!outline.is_told()).then(|| MalformedMessage::new(ErrorData::invalid_request(why, None), outline.id()))
}
