//! The blocks of each view, made of answers of the own API, as JSON.

use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::WebError;
use super::query::Query;
use provost_api::wire;
use provost_base::limits::{WEB_EVENTS_LOOKED_AT, WEB_EVENTS_PAGE, WEB_FINISHED_PAGE, WEB_ROWS_MAX};
use provost_base::{Timestamp, visible};
use provost_client::{Client, ClientError};
use provost_view::{self as view, Filter, NeedSources, Shown};

/// A view, with what its reader needs to know of the daemon.
#[derive(Serialize)]
struct Answered {
    #[serde(flatten)]
    shown: Shown,
    /// What a passkey signs, where the view is about that: the script draws it and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    /// The daemon's time.
    now: String,
    /// The last event that is in it.
    seq: u64,
    /// The repository, by the last part of its path, and the whole path.
    repository: (String, String),
}

/// An approval as it is signed.
#[derive(Serialize)]
struct Seen {
    /// The text of which a passkey signs the digest: a title, a state, an end and blocks.
    text: String,
    /// The core's digest of what waits.
    shown: String,
}

/// The blocks of the view of this name.
///
/// # Errors
/// What the own API says, and a view that is not there.
pub(super) async fn answer(
    client: &Client,
    name: &str,
    query: &Query,
    now: Timestamp,
) -> Result<String, WebError> {
    if name == "output" {
        return output(client, query).await;
    }
    // Before the rows: an event that comes between is shown twice, and never missed.
    let about = client.about().await?;
    let filter = Filter::parse(query.text("q").unwrap_or_default());
    let mut seen = None;
    let shown = match name {
        "needs-you" => needs(client, about.clone(), now).await?,
        "approval" => {
            let (shown, text) = approval(client, query, about.journal_seq).await?;
            seen = text;
            shown
        }
        "tasks" => tasks(client, query, &filter).await?,
        "task" => task(client, query).await?,
        "changes" => changes(client, query).await?,
        "agents" => agents(client, &filter).await?,
        "locks" => locks(client, &filter, now).await?,
        "events" => events(client, query, &filter, about.journal_seq).await?,
        "health" => view::health(&about),
        "passkeys" => view::passkeys(&client.passkeys().await?),
        _ => return Err(WebError::not_there()),
    };
    let last = about.root.rsplit(['/', '\\']).next().unwrap_or_default();
    let repository = (visible(last), visible(&about.root));
    let answered = Answered { shown, seen, now: now.rfc3339(), seq: about.journal_seq, repository };
    serde_json::to_string(&answered).map_err(|err| {
        WebError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "unavailable",
            format!("this cannot be shown: {err}"),
        )
    })
}

fn of_tasks(filter: &str, limit: usize, before: Option<&str>) -> wire::TasksQuery {
    wire::TasksQuery { filter: Some(filter.into()), limit: Some(limit), before: before.map(str::to_owned) }
}

async fn needs(client: &Client, about: wire::About, now: Timestamp) -> Result<Shown, WebError> {
    let (everyones, finished) = (wire::Whose::default(), of_tasks("all", WEB_FINISHED_PAGE, None));
    let (approvals, questions, overlaps, locks, finished) = tokio::try_join!(
        client.approvals(),
        client.questions(),
        client.overlaps(),
        client.locks(&everyones),
        client.tasks(&finished),
    )?;
    let notes = about.broken.into_iter().chain(about.notes).collect();
    let (waiting, finished, workers) = (locks.waiting, finished.finished, about.workers);
    let from = NeedSources { approvals, questions, overlaps, waiting, finished, workers, notes };
    Ok(view::needs(from, now.0))
}

/// An approval with what is signed of it while it waits; what became of it once it does not.
async fn approval(client: &Client, query: &Query, head: u64) -> Result<(Shown, Option<Seen>), WebError> {
    let Some(id) = query.number("id")? else {
        return Err(WebError::new(StatusCode::BAD_REQUEST, "bad_query", "`id` is missing"));
    };
    let (waiting, known) = tokio::try_join!(client.approvals(), client.passkeys())?;
    if let Some(found) = waiting.iter().find(|it| it.id == id) {
        match client.approval(&wire::ApprovalQuery { id }).await {
            Ok(it) => {
                let shown = Shown::new(format!("Approval {id}"), view::answering(found, &known));
                return Ok((shown, Some(Seen { text: it.view, shown: it.shown })));
            }
            // It was answered at this moment.
            Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {}
            Err(err) => return Err(err.into()),
        }
    }
    let mut said = Vec::new();
    let mut after = head.saturating_sub(WEB_EVENTS_LOOKED_AT);
    loop {
        let asked = wire::EventsQuery { after: Some(after), ..wire::EventsQuery::default() };
        let page = client.events(&asked).await?;
        said.extend(page.events.iter().filter_map(|event| became(event, id, &known)));
        if page.events.is_empty() || page.next >= head {
            return Ok((view::gone(id, &said), None));
        }
        after = page.next;
    }
}

/// What an event says of an approval: when, who, and what.
fn became(event: &Value, id: u64, known: &wire::Passkeys) -> Option<(String, String, String)> {
    let (kind, about) = event.get("kind")?.as_object()?.iter().next()?;
    if about.get("approval")?.as_u64()? != id {
        return None;
    }
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = match kind.as_str() {
        "approval_asked" => view::ASKED.to_owned(),
        "approval_answered" => {
            let credential = about.get("signed").map(|it| text(it, "credential"));
            let key = known.passkeys.iter().find(|it| Some(&it.id) == credential.as_ref());
            let key = key.map(|it| format!(", {}", visible(&it.name))).unwrap_or_default();
            format!("{} (proof: {}{key})", text(about, "verdict"), text(about, "proof"))
        }
        "approval_expired" => "expired, which denies it".to_owned(),
        "grant_failed" => format!("granted, and not carried out: {}", text(about, "why")),
        "task_delegated" => format!("carried out as task {}", text(about, "task")),
        other => other.replace('_', " "),
    };
    Some((text(event, "at"), text(event, "actor"), what))
}

async fn tasks(client: &Client, query: &Query, filter: &Filter) -> Result<Shown, WebError> {
    let before = query.text("before");
    let found = client.tasks(&of_tasks("all", WEB_FINISHED_PAGE, before)).await?;
    Ok(view::tasks(&found, filter, WEB_ROWS_MAX, before.is_some()))
}

async fn task(client: &Client, query: &Query) -> Result<Shown, WebError> {
    let asked = wire::TaskQuery { id: query.needed("id")?.to_owned(), ..wire::TaskQuery::default() };
    Ok(view::task(&client.task(&asked).await?))
}

async fn changes(client: &Client, query: &Query) -> Result<Shown, WebError> {
    let task = query.needed("id")?.to_owned();
    let found = client.preview_task(&wire::OfTask { task, paths: Vec::new() }).await?;
    Ok(Shown::new("Changes", vec![view::changes(&found)]))
}

async fn agents(client: &Client, filter: &Filter) -> Result<Shown, WebError> {
    let (everyones, active) = (wire::Whose::default(), of_tasks("active", WEB_ROWS_MAX, None));
    let (mut known, locks, live) =
        tokio::try_join!(client.agents(), client.locks(&everyones), client.tasks(&active))?;
    // The page itself is no agent.
    known.retain(|it| it.id != super::READER);
    Ok(view::agents(&known, &locks, &live.active, filter, WEB_ROWS_MAX))
}

async fn locks(client: &Client, filter: &Filter, now: Timestamp) -> Result<Shown, WebError> {
    let (everyones, all) = (wire::Whose::default(), wire::ClaimsQuery::default());
    let (locks, claims) = tokio::try_join!(client.locks(&everyones), client.claims(&all))?;
    Ok(view::locks(&locks, &claims, filter, WEB_ROWS_MAX, &now.rfc3339()))
}

async fn events(client: &Client, query: &Query, filter: &Filter, head: u64) -> Result<Shown, WebError> {
    let before = query.number("before")?.unwrap_or_else(|| head.saturating_add(1));
    let most = before.saturating_sub(1).min(u64::from(WEB_EVENTS_PAGE));
    let after = before.saturating_sub(1).saturating_sub(most);
    let limit = u16::try_from(most).ok();
    let asked = wire::EventsQuery { after: Some(after), limit, wait_ms: None };
    let mut page = client.events(&asked).await?;
    page.events.retain(|it| it.get("seq").and_then(Value::as_u64).is_some_and(|seq| seq < before));
    Ok(view::events(&page.events, filter))
}

/// What a task's worker has written since a position; nothing hides in it but what colours it.
async fn output(client: &Client, query: &Query) -> Result<String, WebError> {
    let asked = wire::OutputQuery {
        id: query.needed("id")?.to_owned(),
        from: query.number("from")?.unwrap_or(0),
        wait_ms: query.number("wait_ms")?,
        limit: None,
    };
    let output = client.output(&asked).await?;
    serde_json::to_string(&output).map_err(|err| {
        WebError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "unavailable",
            format!("this cannot be shown: {err}"),
        )
    })
}
