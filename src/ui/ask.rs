//! What a screen or a detail shows of one repository: answers of its daemon's own API, as blocks of `view`.

use serde_json::{Value, json};

use super::Screen;
use super::text::of_a_worker;
use provost_api::wire;
use provost_base::Timestamp;
use provost_base::limits::{WEB_EVENTS_LOOKED_AT, WEB_EVENTS_PAGE, WEB_FINISHED_PAGE, WEB_ROWS_MAX};
use provost_client::approvals::{facts, words};
use provost_client::{Client, ClientError};
use provost_view::{self as view, Block, Cell, Empty, Filter, NeedSources, Row, Rows, Shown, Tone, Word};

/// The name as which the page reads, which is no agent.
const PAGE: &str = "web-page";

/// For how long one request waits for more of a worker's output, in milliseconds.
const OUTPUT_WAIT_MS: u64 = 20_000;

/// Something to ask a daemon.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Asked {
    /// The list of a screen.
    List {
        /// The screen.
        screen: Screen,
        /// The filter, as it was typed.
        filter: String,
    },
    /// An approval, by its number.
    Approval(u64),
    /// A task, by its id.
    Task(String),
    /// The changes of a task.
    Changes(String),
    /// What a task's worker writes, from a position on; waits for more where there is none.
    Log {
        /// The task.
        task: String,
        /// The position.
        from: u64,
    },
}

/// What a daemon has answered.
#[derive(Clone, PartialEq, Debug)]
pub enum Got {
    /// A list, or a task.
    Shown(Box<Shown>),
    /// An approval that waits.
    Approval {
        /// The view about it.
        shown: Box<Shown>,
        /// The digest that an answer carries.
        digest: String,
        /// Whom its rule lets answer.
        by: String,
    },
    /// An approval that does not wait any more.
    Gone(Box<Shown>),
    /// The changes of a task.
    Changes(Box<Block>),
    /// More of what a worker has written.
    Log {
        /// The text, in which nothing hides.
        text: String,
        /// Where it goes on.
        next: u64,
        /// Whether nothing more comes.
        done: bool,
    },
}

/// Asks a daemon.
///
/// # Errors
/// What the daemon says, or why it says nothing.
pub(super) async fn ask(client: &Client, asked: &Asked, now: Timestamp) -> Result<Got, ClientError> {
    Ok(match asked {
        Asked::List { screen, filter } => {
            let filter = Filter::parse(filter);
            Got::Shown(Box::new(list(client, *screen, &filter, now).await?))
        }
        Asked::Approval(id) => approval(client, *id).await?,
        Asked::Task(id) => {
            let asked = wire::TaskQuery { id: id.clone(), ..wire::TaskQuery::default() };
            Got::Shown(Box::new(view::task(&client.task(&asked).await?)))
        }
        Asked::Changes(task) => {
            let found = client.preview_task(&wire::OfTask { task: task.clone(), paths: Vec::new() }).await?;
            Got::Changes(Box::new(view::changes(&found)))
        }
        Asked::Log { task, from } => log(client, task, *from).await?,
    })
}

async fn list(
    client: &Client,
    screen: Screen,
    filter: &Filter,
    now: Timestamp,
) -> Result<Shown, ClientError> {
    let everyones = wire::Whose::default();
    Ok(match screen {
        Screen::Needs => passing(needs(client, now).await?, filter),
        Screen::Tasks => {
            let found = client.tasks(&of_tasks("all", WEB_FINISHED_PAGE)).await?;
            view::tasks(&found, filter, WEB_ROWS_MAX, false)
        }
        Screen::Agents => {
            let active = of_tasks("active", WEB_ROWS_MAX);
            let (mut known, locks, live) =
                tokio::try_join!(client.agents(), client.locks(&everyones), client.tasks(&active))?;
            known.retain(|it| it.id != PAGE);
            view::agents(&known, &locks, &live.active, filter, WEB_ROWS_MAX)
        }
        Screen::Locks => {
            let all = wire::ClaimsQuery::default();
            let (locks, claims) = tokio::try_join!(client.locks(&everyones), client.claims(&all))?;
            view::locks(&locks, &claims, filter, WEB_ROWS_MAX, &now.rfc3339())
        }
        Screen::Waits => {
            let active = of_tasks("active", WEB_ROWS_MAX);
            let (locks, live) = tokio::try_join!(client.locks(&everyones), client.tasks(&active))?;
            passing(waits(&locks, &live.active), filter)
        }
        Screen::Events => {
            let head = client.about().await?.journal_seq;
            let after = head.saturating_sub(u64::from(WEB_EVENTS_PAGE));
            let asked = wire::EventsQuery { after: Some(after), limit: Some(WEB_EVENTS_PAGE), wait_ms: None };
            view::events(&client.events(&asked).await?.events, filter)
        }
        Screen::Messages => passing(messages(&client.posts(&wire::PostsQuery::default()).await?), filter),
    })
}

fn of_tasks(filter: &str, limit: usize) -> wire::TasksQuery {
    wire::TasksQuery { filter: Some(filter.into()), limit: Some(limit), before: None }
}

async fn needs(client: &Client, now: Timestamp) -> Result<Shown, ClientError> {
    let (everyones, finished) = (wire::Whose::default(), of_tasks("all", WEB_FINISHED_PAGE));
    let (about, approvals, questions, overlaps, locks, finished) = tokio::try_join!(
        client.about(),
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

/// The rows that pass a filter, for lists whose view takes none.
fn passing(mut shown: Shown, filter: &Filter) -> Shown {
    if filter.is_empty() {
        return shown;
    }
    for block in &mut shown.blocks {
        if let Block::List(rows) = block {
            rows.rows.retain(|row| {
                let texts: Vec<&str> = row.cells.iter().map(text_of).collect();
                filter.takes(&texts)
            });
            rows.empty = Empty::new("Nothing passes the filter.", None);
        }
    }
    shown
}

/// The text of a cell.
pub(super) fn text_of(cell: &Cell) -> &str {
    match cell {
        Cell::Text { text } | Cell::Said { text } | Cell::Code { text } | Cell::Link { text, .. } => text,
        Cell::State(word) => &word.word,
        Cell::Time { at } | Cell::Until { at } => at,
        Cell::None => "",
    }
}

/// Who waits for what: for a lock, for a resource, and for an approval.
fn waits(locks: &wire::Locks, live: &[wire::Task]) -> Shown {
    let holder = |symbol: &str| {
        let held = locks.locks.iter().find(|it| it.symbol == symbol);
        held.map_or(Cell::None, |it| Cell::code(&it.holder))
    };
    let mut rows: Vec<(String, Row)> = Vec::new();
    let mut add = |since: &str, key: String, to: Option<String>, cells: Vec<Cell>| {
        rows.push((since.to_owned(), Row { key, to, cells, commands: Vec::new() }));
    };
    for it in &locks.waiting {
        let (to, until) = (it.task.as_deref().map(to_task), Cell::Until { at: it.until.clone() });
        let state = Cell::State(Word::new("a lock", Tone::Waiting));
        let cells = vec![
            Cell::code(&it.agent),
            state,
            Cell::code(&it.symbol),
            holder(&it.symbol),
            Cell::time(Some(&it.since)),
            until,
        ];
        add(&it.since, format!("{} {}", it.agent, it.symbol), to, cells);
    }
    for it in live {
        let mut row = |kind: &str, what: Cell, holder: Cell| {
            let state = Cell::State(Word::new(kind, Tone::Waiting));
            let key = format!("{} {} {}", it.id, kind, text_of(&what));
            let cells =
                vec![Cell::code(&it.id), state, what, holder, Cell::time(Some(&it.updated_at)), Cell::None];
            add(&it.updated_at, key, Some(to_task(&it.id)), cells);
        };
        if it.state == "awaiting" {
            let number = it.approval.map_or_else(String::new, |n| n.to_string());
            row("an approval", Cell::text(&number), Cell::None);
        }
        for need in &it.waits_for {
            let holder = need.holder.as_ref().map_or(Cell::None, |it| Cell::code(it));
            row("a resource", Cell::code(&need.resource), holder);
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    list_of(
        "Waits",
        "Waiting, longest first",
        &["Who", "Waits for", "Which", "Held by", "Since", "Until"],
        rows.into_iter().map(|it| it.1).collect(),
        "No agent and no task waits.",
    )
}

/// The newest messages between agents.
fn messages(found: &wire::Posts) -> Shown {
    let row = |it: &wire::Post| {
        let text = |name: &str| it.message.get(name).and_then(Value::as_str).unwrap_or_default();
        let cells = vec![
            Cell::text(&it.seq.to_string()),
            Cell::time(Some(&it.at)),
            Cell::code(text("agent_id")),
            Cell::code(text("type")),
            Cell::said(&it.text),
        ];
        Row { key: it.seq.to_string(), to: None, cells, commands: Vec::new() }
    };
    list_of(
        "Messages",
        "Newest first",
        &["No.", "When", "About", "Kind", "Message"],
        found.posts.iter().rev().map(row).collect(),
        "No agent has written a message.",
    )
}

fn list_of(title: &str, heading: &str, columns: &[&'static str], rows: Vec<Row>, empty: &str) -> Shown {
    let rows = Rows {
        title: heading.into(),
        columns: columns.to_vec(),
        rows,
        more: 0,
        empty: Empty::new(empty, None),
    };
    Shown::new(title, vec![Block::List(rows)])
}

/// The path of the view about a task, as `view` writes it.
fn to_task(id: &str) -> String {
    format!("/t/{}", view::encoded(id))
}

async fn approval(client: &Client, id: u64) -> Result<Got, ClientError> {
    // Before the approvals: what happens between is looked through as well.
    let head = client.about().await?.journal_seq;
    let waiting = client.approvals().await?;
    if let Some(found) = waiting.into_iter().find(|it| it.id == id) {
        let shown = Box::new(view::approval(&found, facts(&found, str::to_owned), words(&found)));
        return Ok(Got::Approval { shown, digest: found.digest, by: found.by });
    }
    let mut said = Vec::new();
    let mut after = head.saturating_sub(WEB_EVENTS_LOOKED_AT);
    loop {
        let asked = wire::EventsQuery { after: Some(after), ..wire::EventsQuery::default() };
        let page = client.events(&asked).await?;
        said.extend(page.events.iter().filter_map(|event| became(event, id)));
        if page.events.is_empty() || page.next >= head {
            return Ok(Got::Gone(Box::new(view::gone(id, &said))));
        }
        after = page.next;
    }
}

/// What an event says of an approval: when, who, and what.
pub(super) fn became(event: &Value, id: u64) -> Option<(String, String, String)> {
    let (kind, about) = event.get("kind")?.as_object()?.iter().next()?;
    if about.get("approval")?.as_u64()? != id {
        return None;
    }
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = match kind.as_str() {
        "approval_asked" => view::ASKED.to_owned(),
        "approval_answered" => format!("{} (proof: {})", text(about, "verdict"), text(about, "proof")),
        "approval_expired" => "expired, which denies it".to_owned(),
        "grant_failed" => format!("granted, and not carried out: {}", text(about, "why")),
        "task_delegated" => format!("carried out as task {}", text(about, "task")),
        other => other.replace('_', " "),
    };
    Some((text(event, "at"), text(event, "actor"), what))
}

async fn log(client: &Client, task: &str, from: u64) -> Result<Got, ClientError> {
    let asked = wire::OutputQuery { id: task.to_owned(), from, wait_ms: Some(OUTPUT_WAIT_MS), limit: None };
    let output = client.output(&asked).await?;
    let text: String = output.chunks.iter().map(|it| it.text.as_str()).collect();
    Ok(Got::Log { text: of_a_worker(&text), next: output.next, done: output.done })
}

/// Answers an agent's question, as `provost answer` does.
pub(super) async fn say(client: &Client, question: u64, text: &str) -> Result<String, ClientError> {
    let open = client.questions().await?;
    let Some(question) = open.iter().find(|it| it.seq == question) else {
        return Ok(format!("question {question} is not open any more; nothing was sent"));
    };
    let payload = json!({ "from": "supervisor", "answer": text, "re": question.text });
    let answer = json!({ "type": "agent.answer", "agent_id": question.agent, "payload": payload });
    let feedback = json!({
        "type": "agent.feedback", "agent_id": question.agent,
        "payload": { "from": "supervisor", "errors": [text] },
    });
    client.publish_post(&wire::PublishPost { message: answer }).await?;
    client.publish_post(&wire::PublishPost { message: feedback }).await?;
    Ok(format!("answered {}", provost_base::visible(&question.agent)))
}
