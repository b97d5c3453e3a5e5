//! Speaks MCP with a worker in its jail: one handshake, one look at its tools, one call.
//!
//! DevIt 1.10, "mcp worker". The worker is hostile: a line, its whole output, lines that are no messages, and the
//! handshake have bounds; the call lasts as long as its task may. The result is kept as the worker wrote it, so that
//! members unknown to MCP are not lost.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ProtocolVersion, ServerResult,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::timeout;

use super::conversation::{Spoke, Untold};
use super::result::{clip, requested_model};
use provost_base::Ttl;
use provost_base::limits::{MCP_BYTES_MAX, MCP_GARBAGE_LINES_MAX, MCP_HANDSHAKE_MS_MAX, MCP_LINE_BYTES_MAX};
use provost_domain::Task;
use provost_jail::{OurEnd, Profile};

/// The name of a worker in the errors of its runs.
pub(super) const WHOSE: &str = "MCP worker";
/// How long a server may take to close after its last answer.
const CLOSING: Duration = Duration::from_secs(1);
/// How many tools an error names if a worker lacks the right one, and the longest name in bytes.
const TOOLS_NAMED: usize = 20;
const NAME_LEN: usize = 64;

/// The call that a worker is asked to make.
#[derive(Clone, Debug)]
pub(super) struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

fn untold(why: impl AsRef<str>) -> Untold {
    Untold::new(WHOSE, why.as_ref())
}

impl Call {
    /// Returns the call for a task; `None` for a worker that does not speak MCP. The configuration wins over the task.
    pub(super) fn of(profile: &Profile, task: &Task, limit: Ttl, model: Option<&str>) -> Option<Self> {
        let mcp = profile.mcp.as_ref()?;
        let order = &task.order;
        let asked = requested_model(order.model.as_deref(), order.context.as_ref());
        let optional = [
            ("working_dir", order.working_dir.as_deref()),
            ("format", order.format.as_deref()),
            ("model", model.or(asked.as_deref())),
        ];
        let mut arguments = Map::from_iter([
            ("goal".to_owned(), json!(order.goal)),
            ("prompt".to_owned(), json!(order.goal)),
            ("timeout".to_owned(), json!(limit.as_seconds())),
        ]);
        arguments.extend(optional.into_iter().filter_map(|(name, it)| Some((name.to_owned(), json!(it?)))));
        if let Value::Object(configured) = mcp.arguments.value() {
            arguments.extend(configured);
        }
        Some(Self { tool: mcp.tool.clone(), arguments })
    }
}

/// Holds the whole conversation; afterwards the worker's input is closed.
pub(super) async fn converse(ours: OurEnd, call: Call) -> Result<Spoke, Untold> {
    let tap = Tap::default();
    let (read, write) = tokio::io::split(ours);
    let transport = AsyncRwTransport::new_client(Tapped { inner: read, tap: tap.clone() }, write)
        .with_max_line_length(MCP_LINE_BYTES_MAX + 2);
    let client = Implementation::new("provost", env!("CARGO_PKG_VERSION"));
    let info = ClientConfig::new(ClientCapabilities::default(), client)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let handshake = timeout(Duration::from_millis(MCP_HANDSHAKE_MS_MAX), serve_client(info, transport));
    let mut service = match handshake.await {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return Err(tap.explained(unmet(&error))),
        Err(_) => {
            let seconds = MCP_HANDSHAKE_MS_MAX / 1000;
            return Err(tap.explained(untold(format!(": no handshake within {seconds}s"))));
        }
    };
    let said = ask(&service, call, &tap).await;
    // If the service does not close, its drop cancels it.
    let _closed = service.close_with_timeout(CLOSING).await;
    said.map(Spoke::Mcp)
}

async fn ask(
    service: &RunningService<RoleClient, ClientConfig>,
    call: Call,
    tap: &Tap,
) -> Result<Value, Untold> {
    let failed = |error: ServiceError| tap.explained(unanswered(&error));
    let tools = service.list_all_tools().await.map_err(failed)?;
    if !tools.iter().any(|tool| *tool.name == *call.tool) {
        let names: Vec<&str> =
            tools.iter().take(TOOLS_NAMED).map(|tool| clip(&tool.name, NAME_LEN)).collect();
        let more = if tools.len() > TOOLS_NAMED { ", ..." } else { "" };
        let has = if names.is_empty() { "none".into() } else { format!("{}{more}", names.join(", ")) };
        return Err(untold(format!(
            ": it has no tool '{}'; it has: {has}. Set mcp_tool in its entry",
            call.tool
        )));
    }
    let params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    match service.send_request(request).await.map_err(failed)? {
        ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_) => {
            Err(untold(": it answered with a question or a task; a result is needed"))
        }
        _ => tap.result().ok_or_else(|| untold(": its result cannot be read")),
    }
}

fn unmet(error: &ClientInitializeError) -> Untold {
    match error {
        ClientInitializeError::JsonRpcError(error) => untold(format!(" {}: {}", error.code.0, error.message)),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            Untold { closed: true, ..untold(": it closed the connection during the handshake") }
        }
        _ => untold(": what it answers to the handshake is not MCP"),
    }
}

fn unanswered(error: &ServiceError) -> Untold {
    match error {
        ServiceError::McpError(error) => untold(format!(" {}: {}", error.code.0, error.message)),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            Untold { closed: true, ..untold(": it closed the connection before it answered") }
        }
        _ => untold(": what it answers is not MCP"),
    }
}

/// The observations on a worker's output while it is read.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    line: Vec<u8>,
    total: usize,
    garbage: usize,
    /// The latest answer; the call is the last request.
    result: Option<Value>,
    trouble: Option<String>,
}

impl Tap {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Each change leaves the value valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prefers the trouble for which the daemon hung up, since it explains an error better than the worker's words.
    fn explained(&self, error: Untold) -> Untold {
        match self.seen().trouble.take() {
            Some(trouble) => untold(format!(": {trouble}")),
            None => error,
        }
    }

    fn result(&self) -> Option<Value> {
        self.seen().result.take()
    }
}

impl Seen {
    /// Examines the bytes that were read; `false` if the caller shall read no more.
    fn look(&mut self, bytes: &[u8]) -> bool {
        self.total = self.total.saturating_add(bytes.len());
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > MCP_LINE_BYTES_MAX {
                self.trouble = Some(format!("it wrote a line of more than {MCP_LINE_BYTES_MAX} bytes"));
            } else if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.line_ended(&line);
            }
        }
        if self.total > MCP_BYTES_MAX {
            self.trouble = Some(format!("it wrote more than {MCP_BYTES_MAX} bytes"));
        }
        self.trouble.is_none()
    }

    fn line_ended(&mut self, line: &[u8]) {
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        if !text.starts_with(b"{") && !text.starts_with(b"[") {
            self.garbage += 1;
            if self.garbage > MCP_GARBAGE_LINES_MAX {
                let begin = String::from_utf8_lossy(&text[..text.len().min(NAME_LEN)]).into_owned();
                self.trouble = Some(format!("its standard output is not MCP; it says '{begin}'"));
            }
        } else if memchr::memmem::find(text, b"\"result\"").is_some() {
            let message = serde_json::from_slice::<Value>(text).ok().filter(|it| it.get("id").is_some());
            let result = message.and_then(|mut it| it.get_mut("result").map(Value::take));
            self.result = result.or(self.result.take());
        }
    }
}

/// A worker's output on its way to the reader of messages.
struct Tapped<R> {
    inner: R,
    tap: Tap,
}

impl<R: AsyncRead + Unpin> AsyncRead for Tapped<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        let go_on = self.tap.seen().look(&buf.filled()[before..]);
        Poll::Ready(if go_on { read } else { Err(io::ErrorKind::InvalidData.into()) })
    }
}
