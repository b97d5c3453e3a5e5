//! The unsigned parts beside an approval: earlier decisions, and the places to colour in its difference.

use serde_json::Value;

use super::WebError;
use provost_api::wire;
use provost_base::limits::{WEB_ANSWER_WITHIN, WEB_EARLIER_LOOKED_AT, WEB_EARLIER_SHOWN};
use provost_client::views::became;
use provost_client::{Client, ClientError};
use provost_view::{self as view, Block, DiffFile, LineMarks};

/// Returns the marks of a difference; they are made on a thread apart from those that answer.
pub(super) async fn marks(files: Vec<DiffFile>, paths: Vec<String>) -> Vec<Vec<LineMarks>> {
    if files.is_empty() {
        return Vec::new();
    }
    let made = tokio::task::spawn_blocking(move || {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        view::marks(&files, &paths)
    });
    // Without marks the difference is shown plain.
    made.await.unwrap_or_default()
}

/// Adds marks to a difference that no passkey signs.
pub(super) async fn marked(mut block: Block, paths: Vec<String>) -> Block {
    if let Block::Diff { files, .. } = &mut block {
        let found = marks(files.clone(), paths).await;
        files.iter_mut().zip(found).for_each(|(file, marks)| file.marks = marks);
    }
    block
}

/// Returns the outcomes of earlier questions of the same rule about the same worker.
pub(super) async fn earlier(
    client: &Client,
    now: &wire::Approval,
    known: &wire::Passkeys,
) -> Result<Block, WebError> {
    let asked = wire::SearchQuery {
        words: format!("approval_asked \"{}\"", now.rule.replace('"', " ")),
        only: Some("events".into()),
        limit: Some(WEB_EARLIER_LOOKED_AT),
        ..wire::SearchQuery::default()
    };
    let found = match client.search(&asked).await {
        Ok(found) => found.hits,
        // A rule whose name has no word that can be searched.
        Err(ClientError::Refused { status: 400, .. }) => Vec::new(),
        Err(err) => return Err(err.into()),
    };
    let mut earlier = Vec::new();
    for hit in found.iter().filter(|it| it.what == "approval_asked") {
        if earlier.len() >= WEB_EARLIER_SHOWN {
            break;
        }
        earlier.extend(one(client, hit, now, known).await?);
    }
    Ok(view::earlier(now, &earlier))
}

/// Returns one of them, unless it is about another rule or worker, or is the one that waits now.
async fn one(
    client: &Client,
    hit: &wire::Hit,
    now: &wire::Approval,
    known: &wire::Passkeys,
) -> Result<Option<view::Earlier>, WebError> {
    let Some(before) = hit.seq.and_then(|it| it.checked_sub(1)) else { return Ok(None) };
    // The events soon after a question mostly contain its answer.
    let asked = wire::EventsQuery { after: Some(before), limit: Some(WEB_ANSWER_WITHIN), wait_ms: None };
    let page = client.events(&asked).await?;
    let Some(about) = page.events.first().and_then(|it| it.get("kind")?.get("approval_asked")) else {
        return Ok(None);
    };
    let Some(number) = about.get("approval").and_then(Value::as_u64) else { return Ok(None) };
    if number == now.id || about.get("rule").and_then(Value::as_str) != Some(&now.rule) {
        return Ok(None);
    }
    let task = match about.get("task").and_then(Value::as_str) {
        Some(id) => {
            let asked = wire::TaskQuery { id: id.to_owned(), ..wire::TaskQuery::default() };
            match client.task(&asked).await {
                Ok(task) => Some(task),
                // The task was pruned.
                Err(ClientError::Refused { status: 404, .. }) => None,
                Err(err) => return Err(err.into()),
            }
        }
        None => None,
    };
    if now.worker.is_some() && task.as_ref().map(|it| &it.worker) != now.worker.as_ref() {
        return Ok(None);
    }
    let mut said = page.events.iter().skip(1).filter_map(|event| became(event, number, Some(known)));
    let decided = said.find(|(_, _, what)| what != view::ASKED);
    let (by, what) = decided.map_or((None, None), |(_, by, what)| (Some(by), Some(what)));
    let (asked_at, asked_by) = (hit.at.clone(), hit.actor.clone());
    Ok(Some(view::Earlier { approval: number, asked_at, asked_by, what, by, task }))
}
