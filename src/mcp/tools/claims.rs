//! Claims of the crew on whole files.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::Call;
use crate::page::{self, Page};
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{first_of, listed, more, one_line};
use provost_api::wire;
use provost_client::ClientError;

/// The most warnings that are shown.
const WARNINGS: usize = 20;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "claims",
            title: "List claims",
            description: "Lists whole files that agents have claimed, that the lead has locked, or about which there is a conflict.",
            kind: Kind::Reads,
        }
        .does(list),
        About {
            name: "claim_acquire",
            title: "Claim a file",
            description: "Claims a whole file in the crew's list, which joins you to the crew. Use it where the agents of this repository work with claims; otherwise lock_acquire. The claim ends with claim_release, or when nothing is heard of you for a while.",
            kind: Kind::Steady,
        }
        .does(acquire),
        About {
            name: "claim_release",
            title: "Give a claim back",
            description: "Gives up your claim on a file. Call it as soon as you are done with the file.",
            kind: Kind::Ends,
        }
        .does(release),
    ]
}

/// A filter of claims; without members, all claims.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only your own.
    #[serde(default)]
    mine: bool,
    /// Only this file.
    file: Option<String>,
    /// From the last answer.
    cursor: Option<String>,
    /// Most rows, up to 100.
    limit: Option<usize>,
}

async fn list(call: Call, asked: Which) -> Result<Said<Page<wire::HeldFile>>, ToolError> {
    let query = wire::ClaimsQuery { mine: asked.mine, file: asked.file };
    let all = call.client().claims(&query).await?;
    let found = page::page(&call, (asked.cursor, asked.limit), all, |it| it.file.clone()).await?;
    let lines = found.rows.iter().map(|it| {
        let since = it.since.as_deref().map(|it| format!(" since {it}")).unwrap_or_default();
        let what = it.task.as_deref().map(|it| format!(", for {}", one_line(it, 100))).unwrap_or_default();
        format!("{} is {} by {}{since}{what}", one_line(&it.file, 300), it.how, it.holder)
    });
    let text = listed(&format!("{} files.", found.rows.len()), lines) + &more(found.cursor.as_deref());
    Ok(Said { text, answer: found })
}

/// The file, and the purpose of the claim.
#[derive(Deserialize, JsonSchema)]
struct Acquire {
    /// The file, such as `src/app.py`.
    path: String,
    /// The task's id or name.
    task: Option<String>,
}

async fn acquire(call: Call, asked: Acquire) -> Result<Said<wire::Claimed>, ToolError> {
    let request = wire::ClaimFile { path: asked.path, task: asked.task };
    let mut done = call.client().claim(&request).await;
    if let Err(ClientError::Refused { fault, .. }) = &done
        && fault.error == "not_in_crew"
    {
        call.client().join_crew(&wire::JoinCrew { tool: tool(&call), ..wire::JoinCrew::default() }).await?;
        done = call.client().claim(&request).await;
    }
    let mut claimed = done?;
    claimed.warnings = first_of(&claimed.warnings, WARNINGS);
    let warnings: String = claimed.warnings.iter().map(|it| format!(" Warning: {it}.")).collect();
    let text = format!("{} is yours until you release it.{warnings}", claimed.file);
    Ok(Said { text, answer: claimed })
}

/// Returns the program that the host says it is.
fn tool(call: &Call) -> String {
    let said = call.context().peer.peer_info().map(|it| it.client_info.name.clone());
    let said = said.map(|it| one_line(&it, 60)).filter(|it| !it.is_empty());
    said.unwrap_or_else(|| "mcp".into())
}

/// The file whose claim is released.
#[derive(Deserialize, JsonSchema)]
struct Release {
    /// The file, such as `src/app.py`.
    path: String,
}

async fn release(call: Call, asked: Release) -> Result<Said<wire::Released>, ToolError> {
    let done = call
        .client()
        .release_claim(&wire::ReleaseClaim { path: asked.path, ..wire::ReleaseClaim::default() })
        .await?;
    let text = if done.released { "It is free." } else { "It was not yours; nothing has changed." };
    Ok(Said { text: text.into(), answer: done })
}
