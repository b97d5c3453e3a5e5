//! The blocks of each view, made of answers of the own API, as JSON.

use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::WebError;
use super::query::Query;
use provost_api::wire;
use provost_base::limits::{
    WEB_DECISIONS_SHOWN, WEB_EVENTS_LOOKED_AT, WEB_EVENTS_PAGE, WEB_FINISHED_PAGE, WEB_MESSAGES_PAGE,
    WEB_ROWS_MAX,
};
use provost_base::{Timestamp, visible};
use provost_client::{Client, ClientError};
use provost_view::{self as view, Filter, Lead, NeedSources, Shown};

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
    /// The text whose digest a passkey signs: a title, a state, an end and blocks.
    text: String,
    /// The core's digest of what waits.
    shown: String,
}

/// The blocks of the view of this name; with a lead, as the page over all repositories shows it.
///
/// # Errors
/// What the own API says, and a view that is not there.
pub(super) async fn answer(
    client: &Client,
    name: &str,
    query: &Query,
    now: Timestamp,
    lead: Option<&Lead>,
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
        "waits" => view::waits(&client.waits().await?, &filter, WEB_ROWS_MAX),
        "intents" => intents(client, &filter).await?,
        "messages" => messages(client, query, &filter).await?,
        "search" => search(client, query).await?,
        "events" => events(client, query, &filter, about.journal_seq).await?,
        "audit" => audit(client, query, &about).await?,
        "health" => {
            let mut shown = view::health(&about);
            shown.blocks.splice(0..0, view::numbers(&client.health().await?));
            shown
        }
        "passkeys" => view::passkeys(&client.passkeys().await?),
        _ => return Err(WebError::not_there()),
    };
    let last = about.root.rsplit(['/', '\\']).next().unwrap_or_default();
    let (name, shown) = match lead {
        // Among all repositories another one may have the same name.
        Some(lead) => (&*about.root, lead.of(shown)),
        None => (last, shown),
    };
    let repository = (visible(name), visible(&about.root));
    text(&Answered { shown, seen, now: now.rfc3339(), seq: about.journal_seq, repository })
}

/// A view that is of no one repository.
///
/// # Errors
/// One that cannot be written.
pub(super) fn over_all(shown: Shown, now: Timestamp) -> Result<String, WebError> {
    let repository = ("All repositories".to_owned(), String::new());
    text(&Answered { shown, seen: None, now: now.rfc3339(), seq: 0, repository })
}

fn text(answered: &impl Serialize) -> Result<String, WebError> {
    serde_json::to_string(answered).map_err(|err| {
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

/// What needs a person in one repository.
pub(super) async fn needs(client: &Client, about: wire::About, now: Timestamp) -> Result<Shown, WebError> {
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
        "approval_asked" | "approval_asked_again" => view::ASKED.to_owned(),
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
    // Links of an earlier version name the task alone.
    let after = query.text("after").map(str::to_owned);
    let after = after.or_else(|| query.text("before").map(|id| format!("ended:{id}")));
    let older = after.is_some();
    let asked = wire::TaskPageQuery { after, ..filter.task_query() };
    let typed = query.text("q").unwrap_or_default();
    match client.task_page(&asked).await {
        Ok(found) => Ok(view::task_page(&found, filter, typed, older)),
        // A state that there is not is none of any task.
        Err(ClientError::Refused { status: 400, .. }) if !older => {
            Ok(view::task_page(&wire::TaskPage::default(), filter, typed, older))
        }
        Err(err) => Err(err.into()),
    }
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

async fn intents(client: &Client, filter: &Filter) -> Result<Shown, WebError> {
    let (everyones, all) = (wire::Whose::default(), wire::ContractsQuery::default());
    let (met, overlaps, contracts, intents) = tokio::try_join!(
        client.meetings(),
        client.overlaps(),
        client.contracts(&all),
        client.intents(&everyones),
    )?;
    Ok(view::intents(&met, &overlaps, &contracts, &intents, filter, WEB_ROWS_MAX))
}

async fn messages(client: &Client, query: &Query, filter: &Filter) -> Result<Shown, WebError> {
    let before = query.number("before")?;
    let asked = wire::PostsQuery { before, limit: Some(WEB_MESSAGES_PAGE), ..wire::PostsQuery::default() };
    let (questions, posts) = tokio::try_join!(client.questions(), client.posts(&asked))?;
    Ok(view::messages(&questions, &posts.posts, filter, WEB_MESSAGES_PAGE, before.is_some()))
}

async fn search(client: &Client, query: &Query) -> Result<Shown, WebError> {
    let words = query.text("q").unwrap_or_default().to_owned();
    if words.trim().is_empty() {
        return Ok(view::no_search("Type words that are in a task, a message or an event."));
    }
    let asked = wire::SearchQuery { words, before: query.number("before")?, ..wire::SearchQuery::default() };
    match client.search(&asked).await {
        Ok(found) => Ok(view::search(&asked.words, &found)),
        // While one types, most of what is there is no search yet.
        Err(ClientError::Refused { status: 400, fault }) => Ok(view::no_search(&fault.message)),
        Err(err) => Err(err.into()),
    }
}

/// Kinds of events that are decisions.
const DECISIONS: [&str; 3] = ["approval_answered", "approval_expired", "denied"];

async fn audit(client: &Client, query: &Query, about: &wire::About) -> Result<Shown, WebError> {
    let (asked, mut wrong) = match view::request(query.text("q").unwrap_or_default()) {
        Ok(asked) => (asked, None),
        Err(why) => (wire::RulesQuery::default(), Some(why)),
    };
    let rules = match client.rules(&asked).await {
        Err(ClientError::Refused { status: 400, fault }) => {
            wrong = Some(fault.message);
            client.rules(&wire::RulesQuery::default()).await?
        }
        rules => rules?,
    };
    let mut decided = Vec::new();
    for kind in DECISIONS {
        let asked = wire::SearchQuery {
            words: kind.into(),
            only: Some("events".into()),
            limit: Some(WEB_DECISIONS_SHOWN),
            ..wire::SearchQuery::default()
        };
        let found = client.search(&asked).await?.hits;
        // The word may stand in another event as well.
        decided.extend(found.into_iter().filter(|it| it.what == kind));
    }
    decided.sort_by_key(|it| std::cmp::Reverse(it.seq));
    decided.truncate(WEB_DECISIONS_SHOWN);
    Ok(view::audit(about, &rules, &decided, wrong.as_deref()))
}

/// What a task's worker has written since a position; nothing hides in it but what colours it.
async fn output(client: &Client, query: &Query) -> Result<String, WebError> {
    let asked = wire::OutputQuery {
        id: query.needed("id")?.to_owned(),
        from: query.number("from")?.unwrap_or(0),
        wait_ms: query.number("wait_ms")?,
        limit: None,
    };
    text(&client.output(&asked).await?)
}
