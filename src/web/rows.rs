//! The blocks of each view, made of answers of the own API, as JSON.

use hyper::StatusCode;
use serde::Serialize;

use super::query::Query;
use super::session::{Sees, not_for_the_invited};
use super::{WebError, beside, events};
use provost_api::wire;
use provost_base::limits::{
    STATUS_FINISHED_MAX, WEB_APPLIES_SHOWN, WEB_COST_MS, WEB_DECISIONS_SHOWN, WEB_ROWS_MAX,
};
use provost_base::{Timestamp, visible};
use provost_client::{Client, ClientError};
use provost_view::{self as view, Filter, Lead, Shown};

/// A view, with the data about the daemon that its reader needs.
#[derive(Serialize)]
struct Answered {
    #[serde(flatten)]
    shown: Shown,
    /// The text that a passkey signs, if the view shows such a thing: then the script draws that text alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    /// The marks in the lines of its difference, file by file: places without text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<Vec<view::LineMarks>>,
    /// The daemon's time.
    now: String,
    /// The number of the last event that the view includes.
    seq: u64,
    /// The repository, by the last part of its path, and the whole path.
    repository: (String, String),
    /// The full path of the shown thing, if the address has only the beginning of its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<String>,
}

/// The shortest beginning of a task's id that leads to the task, in characters.
const TASK_PREFIX_MIN: usize = 4;

/// An approval in the form in which it is signed.
#[derive(Serialize)]
struct Seen {
    /// The text whose digest a passkey signs: a title, a state, an end and blocks.
    text: String,
    /// The core's digest of the waiting command.
    shown: String,
}

/// Returns the blocks of the view of this name; with a lead, in the form for the page over all repositories.
///
/// # Errors
/// The errors of the own API, and a view that does not exist.
pub(super) async fn answer(
    client: &Client,
    name: &str,
    query: &Query,
    now: Timestamp,
    sees: Sees,
    lead: Option<&Lead>,
) -> Result<String, WebError> {
    // An invited reader gets only views that are marked as states, and no filter: it would reveal the hidden words that it finds.
    if sees == Sees::States && (!view::has_states(name) || query.text("q").is_some()) {
        return Err(not_for_the_invited());
    }
    if let Some(said) = plain(client, name, query).await? {
        return Ok(said);
    }
    // This comes before the rows: an event in between is shown twice, but never missed.
    let about = client.about().await?;
    let filter = Filter::parse(query.text("q").unwrap_or_default());
    let (mut seen, mut marks, mut not_yet, mut moved) = (None, Vec::new(), 0, None);
    let mut behind = |(shown, count): (Shown, u64)| {
        not_yet = count;
        shown
    };
    let shown = match name {
        "needs-you" => client.view_of_needs(about.clone(), now).await?,
        "approval" => {
            let found = approval(client, query, about.journal_seq).await?;
            (seen, marks) = (found.seen, found.marks);
            found.shown
        }
        "tasks" => tasks(client, query, &filter, &about).await?,
        "task" => {
            let (shown, whole) = task(client, query.needed("id")?).await?;
            moved = whole;
            shown
        }
        "changes" => changes(client, query).await?,
        "agents" => client.view_of_agents(&filter).await?,
        "locks" => client.view_of_locks(&filter, now).await?,
        "waits" => client.view_of_waits(&filter).await?,
        "intents" => client.view_of_intents(&filter).await?,
        "both" => both(client, query).await?,
        "messages" => client.view_of_messages(&filter, query.number("before")?).await?,
        "search" => behind(search(client, query).await?),
        "event" => one_event(client, query.needed("id")?).await?,
        "events" => behind(events::shown(client, query, &filter, about.journal_seq).await?),
        "audit" => behind(audit(client, query, &about).await?),
        "health" => health(client, &about).await?,
        "passkeys" => passkeys(client).await?,
        _ => return Err(WebError::not_there()),
    };
    let last = about.root.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown = match sees {
        Sees::All => shown,
        Sees::States => view::states(name, shown),
    };
    let (called, shown) = match lead {
        // Among all repositories, another one may have the same name.
        Some(lead) => (about.root.as_str(), lead.of(shown)),
        None => (last, shown),
    };
    let whole = if sees == Sees::All { about.root.as_str() } else { last };
    let repository = (visible(called), visible(whole));
    let seq = about.journal_seq.saturating_sub(not_yet);
    text(&Answered { shown, seen, marks, now: now.rfc3339(), seq, repository, moved })
}

/// Returns an answer that is no view of blocks.
async fn plain(client: &Client, name: &str, query: &Query) -> Result<Option<String>, WebError> {
    Ok(Some(match name {
        "output" => output(client, query).await?,
        "would-write" => would_write(client, query).await?,
        "would-delegate" => would_delegate(client, query).await?,
        "export" => events::lines(client, query).await?,
        "journal-check" => {
            let asked =
                wire::JournalCheckQuery { check: query.number("check")?, wait_ms: query.number("wait_ms")? };
            text(&client.journal_check(&asked).await?)?
        }
        _ => return Ok(None),
    }))
}

/// Returns a view that belongs to no single repository.
///
/// # Errors
/// A view that cannot be serialized.
pub(super) fn over_all(shown: Shown, now: Timestamp) -> Result<String, WebError> {
    let repository = ("All repositories".to_owned(), String::new());
    text(&Answered {
        shown,
        seen: None,
        marks: Vec::new(),
        now: now.rfc3339(),
        seq: 0,
        repository,
        moved: None,
    })
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

/// An approval: the signed text while it waits, its outcome afterwards.
struct OneApproval {
    shown: Shown,
    seen: Option<Seen>,
    marks: Vec<Vec<view::LineMarks>>,
}

async fn approval(client: &Client, query: &Query, head: u64) -> Result<OneApproval, WebError> {
    let named = query.needed("id")?;
    let id = named.parse::<u64>().map_err(|_| {
        let name = provost_base::visible_name(named, 60);
        let message = format!(
            "`id` is no number: there is no approval {name}; an approval goes by its number, as in /a/7"
        );
        WebError::new(StatusCode::BAD_REQUEST, "bad_query", message)
    })?;
    let (waiting, known) = tokio::try_join!(client.approvals(), client.passkeys())?;
    if let Some(found) = waiting.iter().find(|it| it.id == id) {
        match client.approval(&wire::ApprovalQuery { id }).await {
            Ok(it) => {
                let mut blocks = view::answering(found, &known);
                blocks.extend(view::touches(&it.touches));
                blocks.push(beside::earlier(client, found, &known).await?);
                let files = view::difference(found);
                let paths = files.iter().map(|it| it.path.clone()).collect();
                let marks = beside::marks(files, paths).await;
                let shown = Shown::new(format!("Approval {id}"), blocks);
                return Ok(OneApproval { shown, seen: Some(Seen { text: it.view, shown: it.shown }), marks });
            }
            // It was answered at this moment.
            Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {}
            Err(err) => return Err(err.into()),
        }
    }
    let shown = client.view_of_gone(id, head, Some(&known)).await?;
    Ok(OneApproval { shown, seen: None, marks: Vec::new() })
}

/// Returns the task of an id; for the beginning of only one id, also the path with the full id; for the beginning of several, their list.
async fn task(client: &Client, id: &str) -> Result<(Shown, Option<String>), WebError> {
    let missing = match client.view_of_task(id).await {
        Ok(shown) => return Ok((shown, None)),
        Err(err @ ClientError::Refused { status: 400 | 404, .. }) => err,
        Err(err) => return Err(err.into()),
    };
    if id.chars().count() < TASK_PREFIX_MIN {
        return Err(missing.into());
    }
    let asked = wire::TasksQuery { limit: Some(STATUS_FINISHED_MAX), ..wire::TasksQuery::default() };
    let mut found = client.tasks(&asked).await?;
    found.active.retain(|it| it.id.starts_with(id));
    found.finished.retain(|it| it.id.starts_with(id));
    let mut all = found.active.iter().chain(&found.finished);
    match (all.next(), all.next()) {
        (None, _) => Err(missing.into()),
        (Some(one), None) => {
            Ok((Shown::new("Task", Vec::new()), Some(format!("/t/{}", view::encoded(&one.id)))))
        }
        (Some(_), Some(_)) => {
            found.truncated = false;
            let mut shown = view::tasks(&found, &Filter::default(), WEB_ROWS_MAX, false);
            shown.title = format!("Tasks whose names begin with {}", provost_base::visible_name(id, 80));
            Ok((shown, None))
        }
    }
}

async fn tasks(
    client: &Client,
    query: &Query,
    filter: &Filter,
    about: &wire::About,
) -> Result<Shown, WebError> {
    // Links of an earlier version have only the task's id.
    let after = query.text("after").map(str::to_owned);
    let after = after.or_else(|| query.text("before").map(|id| format!("ended:{id}")));
    let first = after.is_none();
    let mut shown = client.view_of_tasks(filter, query.text("q").unwrap_or_default(), after).await?;
    if first {
        shown.blocks.insert(0, view::delegating(&about.workers));
    }
    Ok(shown)
}

async fn changes(client: &Client, query: &Query) -> Result<Shown, WebError> {
    let task = query.needed("id")?.to_owned();
    let found = client.preview_task(&wire::OfTask { task, ..wire::OfTask::default() }).await?;
    let paths = found.iter().map(|it| it.path.clone()).collect();
    Ok(Shown::new("Changes", vec![beside::marked(view::changes(&found), paths).await]))
}

/// Returns the search results, and the number of events that cannot be searched yet.
async fn search(client: &Client, query: &Query) -> Result<(Shown, u64), WebError> {
    let words = query.text("q").unwrap_or_default().to_owned();
    if words.trim().is_empty() {
        return Ok((view::no_search("Type words that are in a task, a message or an event."), 0));
    }
    let asked = wire::SearchQuery { words, before: query.number("before")?, ..wire::SearchQuery::default() };
    match client.search(&asked).await {
        Ok(found) => Ok((view::search(&asked.words, &found), found.not_yet)),
        // While a person types, most texts are no valid search yet.
        Err(ClientError::Refused { status: 400, fault }) => Ok((view::no_search(&fault.message), 0)),
        Err(err) => Err(err.into()),
    }
}

/// Returns the changes of two agents to a file.
async fn both(client: &Client, query: &Query) -> Result<Shown, WebError> {
    let of = |name: &str| query.needed(name).map(str::to_owned);
    let asked = wire::BothChangesQuery { file: of("file")?, one: of("one")?, other: of("other")? };
    let sides = client.both_changes(&asked).await?;
    let mut shown = view::both_changes(&asked.file, &sides);
    for block in std::mem::take(&mut shown.blocks) {
        shown.blocks.push(beside::marked(block, vec![asked.file.clone()]).await);
    }
    Ok(shown)
}

async fn one_event(client: &Client, named: &str) -> Result<Shown, WebError> {
    let name = provost_base::visible_name(named, 60);
    let seq = named.parse::<u64>().map_err(|_| {
        let message =
            format!("`id` is no number: there is no event {name}; an event goes by its number, as in /e/7");
        WebError::new(StatusCode::BAD_REQUEST, "bad_query", message)
    })?;
    client.view_of_event(seq).await?.ok_or_else(|| {
        let message = format!("the journal has no event {name} any more, or has none yet");
        WebError::new(StatusCode::NOT_FOUND, "event_not_found", message)
    })
}

async fn health(client: &Client, about: &wire::About) -> Result<Shown, WebError> {
    let mut shown = view::health(about);
    let health = client.health().await?;
    // A notice that repeats a finding is left out.
    let is_told = |text: &str| health.findings.iter().any(|it| visible(&it.says) == text);
    shown.blocks.retain(|it| !matches!(it, view::Block::Notice(line) if is_told(&line.text)));
    shown.blocks.splice(0..0, view::numbers(&health));
    shown.blocks.extend(match costs(client).await {
        Ok(costs) => costs,
        // Costs are of the past, which the store alone has. The rest is shown all the same.
        Err(ClientError::Refused { status: 503, fault }) => {
            let text = format!("What was used is not known: {}", visible(&fault.message));
            vec![view::Block::Notice(view::Line { text, tone: view::Tone::Bad })]
        }
        Err(err) => return Err(err.into()),
    });
    Ok(shown)
}

/// Returns the passkeys, and the browsers that know them or get notices.
async fn passkeys(client: &Client) -> Result<Shown, WebError> {
    let (known, push) = tokio::try_join!(client.passkeys(), client.browsers())?;
    let mut shown = view::passkeys(&known);
    shown.blocks.push(view::web_sessions(&client.web_sessions().await?));
    shown.blocks.extend(view::browsers(&push, &known));
    Ok(shown)
}

/// Returns the usage of the runs of the last two weeks.
async fn costs(client: &Client) -> Result<Vec<view::Block>, ClientError> {
    let asked = |by: &str| wire::CostQuery {
        by: Some(by.into()),
        within_ms: Some(WEB_COST_MS),
        ..wire::CostQuery::default()
    };
    let (agents, days) = (asked("agent"), asked("day"));
    let (by_agent, by_day) = tokio::try_join!(client.cost(&agents), client.cost(&days))?;
    Ok(view::costs(&by_agent, &by_day))
}

/// The kinds of events that are decisions.
const DECISIONS: [&str; 3] = ["approval_answered", "approval_expired", "denied"];

/// Returns the rules and decisions, and the number of events that cannot be searched yet.
async fn audit(client: &Client, query: &Query, about: &wire::About) -> Result<(Shown, u64), WebError> {
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
    let (mut decided, mut not_yet) = (Vec::new(), 0);
    for kind in DECISIONS {
        let asked = wire::SearchQuery {
            words: kind.into(),
            only: Some("events".into()),
            limit: Some(WEB_DECISIONS_SHOWN),
            ..wire::SearchQuery::default()
        };
        let found = client.search(&asked).await?;
        not_yet = found.not_yet.max(not_yet);
        // The word may occur in events of another kind, too.
        decided.extend(found.hits.into_iter().filter(|it| it.what == kind));
    }
    decided.sort_by_key(|it| std::cmp::Reverse(it.seq));
    decided.truncate(WEB_DECISIONS_SHOWN);
    let mut shown = view::audit(about, &rules, &decided, wrong.as_deref());
    let applies = client.applies().await?;
    shown.blocks.push(view::applies(&applies.iter().collect::<Vec<_>>(), WEB_APPLIES_SHOWN));
    Ok((shown, not_yet))
}

/// Returns the writes that an apply or an undo would make, as the text whose digest is signed.
async fn would_write(client: &Client, query: &Query) -> Result<String, WebError> {
    let asked = wire::ViewApply {
        task: query.text("task").map(str::to_owned),
        paths: Vec::new(),
        apply: query.number("apply")?,
        force: query.text("force") == Some("true"),
    };
    text(&client.view_apply(&asked).await?)
}

/// Returns the decision of the rules about work that the person delegates by signature.
async fn would_delegate(client: &Client, query: &Query) -> Result<String, WebError> {
    let asked = wire::RulesQuery {
        worker: Some(query.needed("worker")?.to_owned()),
        dir: query.text("dir").map(str::to_owned),
        by_passkey: true,
        ..wire::RulesQuery::default()
    };
    let wire::Rules { digest, outcome, .. } = client.rules(&asked).await?;
    text(&serde_json::json!({ "digest": digest, "outcome": outcome }))
}

/// Returns a worker's output since a position, with messages as text; of control sequences, only colours stay.
async fn output(client: &Client, query: &Query) -> Result<String, WebError> {
    let asked = wire::OutputQuery {
        id: query.needed("id")?.to_owned(),
        from: query.number("from")?.unwrap_or(0),
        wait_ms: query.number("wait_ms")?,
        limit: None,
        in_words: true,
    };
    text(&client.output(&asked).await?)
}
