//! Pictures of the screen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::Call;
use crate::tool::{About, AliasError, Entry, Kind, Said, ToolError, done};
use provost_api::wire;
use provost_base::limits::{MCP_WAIT_S_MAX, THUMB_BYTES_MAX, THUMB_WIDTH_MAX};
use provost_base::percent_encoded_path;
use provost_client::{Client, ClientError};

/// The greatest width of a small picture, in pixels, if the caller names none.
const THUMB_WIDTH: u32 = 480;

/// How long a call waits for a picture, in seconds, if the caller names no time.
const WAIT_S: u64 = 20;

/// The largest picture that DevIt's tool embeds, in KiB, if the caller names no size.
const INLINE_KB: u64 = 512;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "screenshot",
            title: "Take a picture of the screen",
            description: "Has a picture of the screen taken, and shows a small one; the whole picture is a file. A person may have to say yes first: then the answer says which approval it waits for, and later screenshot with that task_id has the picture.",
            kind: Kind::Begins,
        }
        .answers::<Ask, Taken, _>(take),
    ]
}

pub(super) fn devit_tools() -> Vec<Entry> {
    vec![
        About {
            name: "devit_screenshot",
            title: "Take a picture of the screen",
            description: "Takes a picture of the screen. The same as screenshot, by DevIt's name.",
            kind: Kind::Begins,
        }
        .alias(devit),
    ]
}

/// The picture, and the size of the small one.
#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// An earlier request's task; a new picture when absent.
    task_id: Option<String>,
    /// Greatest width of the small one, in pixels.
    thumb_width: Option<u32>,
    /// How long to wait for it, in seconds, up to 45; 20 when absent.
    max_wait_s: Option<u64>,
}

/// The outcome of a request for a picture.
#[derive(Serialize, JsonSchema)]
struct Taken {
    /// The id of the task that takes the picture.
    task_id: String,
    /// `awaiting`, `queued`, `running`, `completed`, `failed`, `cancelled`.
    state: String,
    /// The approval that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<u64>,
    /// The absolute path of the picture's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Its format, as a file extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    /// The size of the picture's file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The reason why no small picture is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_shown: Option<String>,
    /// The next call, as text; absent when the picture is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Returns a picture's task as it is at the end of the wait.
async fn settled(client: &Client, id: &str, wait_s: u64) -> Result<wire::Task, ClientError> {
    let until = Instant::now() + std::time::Duration::from_secs(wait_s);
    let mut seen = None;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait_ms = Some(u64::try_from(left.as_millis()).unwrap_or(0));
        let task = client.task(&wire::TaskQuery { id: id.to_owned(), seen, wait_ms }).await?;
        let waits = matches!(task.state.as_str(), "queued" | "assigned" | "running");
        if !waits || left.is_zero() {
            return Ok(task);
        }
        seen = Some(task.updated_at);
    }
}

/// Asks for a picture, or finds the requested one.
async fn asked_for(client: &Client, task: Option<String>, wait_s: u64) -> Result<wire::Task, Denied> {
    let id = match task {
        Some(id) => id,
        None => {
            let begun = client.screenshot(&wire::Screenshot::default()).await?;
            if begun.state == "denied" {
                let (rule, reason) = (begun.rule.unwrap_or_default(), begun.reason.unwrap_or_default());
                return Err(Denied::Rule(format!("denied by rule {rule}: {reason}")));
            }
            begun.task
        }
    };
    Ok(settled(client, &id, wait_s).await?)
}

/// The reason why there is no picture.
enum Denied {
    Rule(String),
    Client(ClientError),
}

impl From<ClientError> for Denied {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Denied> for ToolError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Rule(why) => ToolError::new(why),
            Denied::Client(error) => error.into(),
        }
    }
}

impl From<Denied> for AliasError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Rule(why) => AliasError::invalid(why),
            Denied::Client(error) => error.into(),
        }
    }
}

async fn take(call: Call, asked: Ask) -> Result<CallToolResponse, ToolError> {
    let wait_s = asked.max_wait_s.unwrap_or(WAIT_S).min(MCP_WAIT_S_MAX);
    let task = asked_for(call.client(), asked.task_id, wait_s).await?;
    let mut answer = Taken {
        task_id: task.id.clone(),
        state: task.state.clone(),
        approval_id: task.approval,
        path: None,
        format: None,
        bytes: None,
        not_shown: None,
        next: None,
    };
    if task.state != "completed" {
        let why = task.notes.last().map(|note| format!(": {}", note.summary)).unwrap_or_default();
        if matches!(task.state.as_str(), "failed" | "cancelled") {
            return Err(ToolError::new(format!("picture {} is {}{why}", task.id, task.state)));
        }
        let text = match task.approval {
            Some(approval) => format!("Picture {} waits for approval {approval}.", task.id),
            None => format!("Picture {} is {}.", task.id, task.state),
        };
        answer.next = Some(format!("screenshot with task_id {}", task.id));
        return Ok(done(&Said { text, answer }).into());
    }
    let width = asked.thumb_width.unwrap_or(THUMB_WIDTH).clamp(1, THUMB_WIDTH_MAX);
    let found = call.client().picture(&wire::PictureQuery { task: task.id, width }).await?;
    let shown = found.thumb.filter(|it| it.png.len() <= THUMB_BYTES_MAX);
    answer.not_shown = match &shown {
        Some(_) => None,
        None => Some(found.why.unwrap_or_else(|| "the small one is too large; ask for less width".into())),
    };
    let text = format!("The picture is {}.", found.path);
    let link = link(&found.path, &found.format, found.bytes);
    (answer.path, answer.format, answer.bytes) = (Some(found.path), Some(found.format), Some(found.bytes));
    let mut result = done(&Said { text, answer });
    result.content.extend(shown.map(|it| ContentBlock::image(it.png, "image/png")));
    result.content.push(link);
    Ok(result.into())
}

/// Returns the block that links to the whole picture.
fn link(path: &str, format: &str, bytes: u64) -> ContentBlock {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    let kind = if matches!(format, "jpg" | "jpeg") { "jpeg" } else { format };
    let uri = format!("file://{}", percent_encoded_path(path));
    let resource = Resource::new(uri, name).with_mime_type(format!("image/{kind}"));
    ContentBlock::resource_link(resource.with_size(bytes))
}

/// The arguments of DevIt's tool.
#[derive(Deserialize, JsonSchema)]
struct Devit {
    /// Whether a small one is embedded.
    #[serde(default = "yes")]
    inline: bool,
    /// Its greatest size, in KiB.
    max_inline_kb: Option<u64>,
    /// Its greatest width, in pixels.
    thumb_width: Option<u32>,
    /// Kept for DevIt's clients: the small one is PNG, which loses nothing.
    thumb_quality: Option<u8>,
}

fn yes() -> bool {
    true
}

async fn devit(call: Call, asked: Devit) -> Result<CallToolResult, AliasError> {
    if asked.thumb_quality.is_some_and(|it| !(1..=100).contains(&it)) || asked.thumb_width == Some(0) {
        return Err(AliasError::invalid("thumb_quality is from 1 to 100, and thumb_width at least 1"));
    }
    let task = asked_for(call.client(), None, WAIT_S).await?;
    if task.state != "completed" {
        let why = match (task.approval, task.notes.last()) {
            (Some(approval), _) => {
                format!("Screenshot needs approval {approval} first; ask again once it is granted")
            }
            (None, Some(note)) => format!("Screenshot is {}: {}", task.state, note.summary),
            (None, None) => format!("Screenshot {} is {}; ask again", task.id, task.state),
        };
        let mut result = CallToolResult::success(vec![ContentBlock::text(why)]);
        result.is_error = Some(true);
        return Ok(result);
    }
    let width = asked.thumb_width.unwrap_or(THUMB_WIDTH).clamp(1, THUMB_WIDTH_MAX);
    let found = call.client().picture(&wire::PictureQuery { task: task.id, width }).await?;
    let most = asked.max_inline_kb.unwrap_or(INLINE_KB).saturating_mul(1 << 10);
    let fits = |it: &wire::Thumb| u64::try_from(bytes_of(&it.png)).unwrap_or(u64::MAX) <= most;
    let thumb = found.thumb.filter(|it| it.png.len() <= THUMB_BYTES_MAX);
    let embedded = thumb.as_ref().filter(|it| asked.inline && fits(it));
    let small = thumb.as_ref().map_or(
        Value::Null,
        |it| json!({ "width": it.width, "height": it.height, "format": "png", "bytes": bytes_of(&it.png) }),
    );
    let said = format!("Screenshot captured: {} ({} bytes)", found.path, found.bytes);
    let mut result = CallToolResult::success(vec![ContentBlock::text(said)]);
    result.content.extend(embedded.map(|it| ContentBlock::image(it.png.clone(), "image/png")));
    result.structured_content = Some(json!({ "image": {
        "embedded": embedded.is_some(),
        "format": found.format,
        "inline": asked.inline,
        "path": found.path,
        "size": found.bytes,
        "thumbnail": small,
    } }));
    Ok(result)
}

/// Returns the size of the decoded bytes.
fn bytes_of(base64: &str) -> usize {
    STANDARD.decode(base64).map_or(0, |it| it.len())
}
