//! The requests behind a screen or a detail of one repository: answers of its daemon's own API, as blocks of `view`.

use super::Screen;
use super::text::of_a_worker;
use provost_api::wire;
use provost_base::Timestamp;
use provost_client::approvals::{facts, words};
use provost_client::{Client, ClientError};
use provost_view::{self as view, Block, Cell, Empty, Filter, Line, Shown, Tone};

/// The name on whose behalf a person answers agents, as `provost answer` does.
const SUPERVISOR: &str = "supervisor";

/// The time that one request waits for more of a worker's output, in milliseconds.
const OUTPUT_WAIT_MS: u64 = 20_000;

/// The time that one request waits for the end of a check of the journal, in milliseconds.
const CHECK_WAIT_MS: u64 = 500;

/// A request to a daemon.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UiRequest {
    /// The list of a screen.
    List {
        /// The screen.
        screen: Screen,
        /// The filter, as the person typed it.
        filter: String,
    },
    /// An approval, by its number.
    Approval(u64),
    /// A task, by its id.
    Task(String),
    /// An event, by its number.
    Event(u64),
    /// The changes of a task.
    Changes(String),
    /// The changes that two agents have made in a file.
    Both(Both),
    /// A check of the whole journal: a new one, or the one of this number.
    Check(Option<u64>),
    /// The decisions that these ready-made rules would have made about the newest requests.
    Replay(String),
    /// The output of a task's worker from a position on; the daemon waits for more where it has none yet.
    Log {
        /// The task.
        task: String,
        /// The position.
        from: u64,
    },
}

/// A file, and two agents that are in each other's way in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Both {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// One agent.
    pub one: String,
    /// The other one.
    pub other: String,
}

/// An answer of a daemon.
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
        /// The approvers that its rule lets answer.
        by: String,
    },
    /// An approval that does not wait any more.
    Gone(Box<Shown>),
    /// The progress of a check of the journal, or its findings.
    Checked(Box<wire::JournalCheck>),
    /// The changes of a task.
    Changes(Box<Block>),
    /// More of a worker's output.
    Log {
        /// The text, with hidden characters shown.
        text: String,
        /// The position after it.
        next: u64,
        /// Whether the output has ended.
        done: bool,
        /// The reason why no output comes though the worker runs.
        note: Option<String>,
    },
}

/// Sends a request to a daemon.
///
/// # Errors
/// The daemon's error, or the reason why it gave no answer.
pub(super) async fn ask(client: &Client, asked: &UiRequest, now: Timestamp) -> Result<Got, ClientError> {
    Ok(match asked {
        UiRequest::List { screen, filter } => {
            let read = Filter::parse(filter);
            Got::Shown(Box::new(list(client, *screen, (&read, filter), now).await?))
        }
        UiRequest::Approval(id) => approval(client, *id).await?,
        UiRequest::Task(id) => Got::Shown(Box::new(client.view_of_task(id).await?)),
        UiRequest::Event(seq) => {
            let empty = || Shown::new(format!("Event {seq}"), vec![gone(*seq)]);
            Got::Shown(Box::new(client.view_of_event(*seq).await?.unwrap_or_else(empty)))
        }
        UiRequest::Changes(task) => {
            let found =
                client.preview_task(&wire::OfTask { task: task.clone(), ..wire::OfTask::default() }).await?;
            Got::Changes(Box::new(coloured(vec![view::changes(&found)]).await.remove(0)))
        }
        UiRequest::Both(it) => Got::Shown(Box::new(both(client, it).await?)),
        UiRequest::Check(check) => {
            let asked = wire::JournalCheckQuery { check: *check, wait_ms: Some(CHECK_WAIT_MS) };
            Got::Checked(Box::new(client.journal_check(&asked).await?))
        }
        UiRequest::Replay(rules) => {
            let asked = wire::ReplayRules { builtin: Some(rules.clone()), ..wire::ReplayRules::default() };
            Got::Shown(Box::new(view::replayed(&client.replay_rules(&asked).await?)))
        }
        UiRequest::Log { task, from } => log(client, task, *from).await?,
    })
}

async fn list(
    client: &Client,
    screen: Screen,
    (filter, typed): (&Filter, &str),
    now: Timestamp,
) -> Result<Shown, ClientError> {
    match screen {
        Screen::Needs => Ok(passing(client.view_of_needs(client.about().await?, now).await?, filter)),
        Screen::Tasks => client.view_of_tasks(filter, typed, None).await,
        Screen::Agents => client.view_of_agents(filter).await,
        Screen::Locks => client.view_of_locks(filter, now).await,
        Screen::Waits => client.view_of_waits(filter).await,
        Screen::Events => client.view_of_events(filter, None, client.about().await?.journal_seq).await,
        Screen::Messages => client.view_of_messages(filter, None).await,
        Screen::Intents => client.view_of_intents(filter).await,
    }
}

async fn both(client: &Client, it: &Both) -> Result<Shown, ClientError> {
    let asked =
        wire::BothChangesQuery { file: it.file.clone(), one: it.one.clone(), other: it.other.clone() };
    let mut shown = view::both_changes(&it.file, &client.both_changes(&asked).await?);
    shown.blocks = coloured(std::mem::take(&mut shown.blocks)).await;
    Ok(shown)
}

/// Returns the text in place of an event that the journal does not have.
fn gone(seq: u64) -> Block {
    let text = format!("The journal has no event {seq} any more.");
    Block::Notice(Line { text, tone: Tone::Quiet })
}

/// Keeps the rows that pass a filter, for lists whose view takes no filter.
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

/// Returns the text of a cell.
pub(super) fn text_of(cell: &Cell) -> &str {
    match cell {
        Cell::Text { text } | Cell::Said { text } | Cell::Code { text } | Cell::Link { text, .. } => text,
        Cell::Share { text, .. } | Cell::Place { text, .. } => text,
        Cell::State(word) => &word.word,
        Cell::Time { at } | Cell::Until { at, .. } | Cell::Took { from: at, .. } => at,
        Cell::None => "",
    }
}

async fn approval(client: &Client, id: u64) -> Result<Got, ClientError> {
    // The head is read before the approvals, so that events in between are looked through as well.
    let head = client.about().await?.journal_seq;
    let waiting = client.approvals().await?;
    if let Some(found) = waiting.into_iter().find(|it| it.id == id) {
        let mut shown = Box::new(view::approval(&found, facts(&found, str::to_owned), words(&found)));
        shown.blocks = coloured(std::mem::take(&mut shown.blocks)).await;
        return Ok(Got::Approval { shown, digest: found.digest, by: found.by });
    }
    Ok(Got::Gone(Box::new(client.view_of_gone(id, head, None).await?)))
}

/// Returns the same blocks with marks in their differences; a thread apart from those that answer computes them.
async fn coloured(mut blocks: Vec<Block>) -> Vec<Block> {
    if !blocks.iter().any(|it| matches!(it, Block::Diff { .. })) {
        return blocks;
    }
    let plain = blocks.clone();
    let made = tokio::task::spawn_blocking(move || {
        for block in &mut blocks {
            if let Block::Diff { files, .. } = block {
                view::mark(files);
            }
        }
        blocks
    });
    made.await.unwrap_or(plain)
}

async fn log(client: &Client, task: &str, from: u64) -> Result<Got, ClientError> {
    let asked = wire::OutputQuery {
        id: task.to_owned(),
        from,
        wait_ms: Some(OUTPUT_WAIT_MS),
        limit: None,
        in_words: true,
    };
    let output = client.output(&asked).await?;
    let text: String = output.chunks.iter().map(|it| it.text.as_str()).collect();
    Ok(Got::Log { text: of_a_worker(&text), next: output.next, done: output.done, note: output.note })
}

/// Writes the same text to each of these agents, as the person.
pub(super) async fn tell(client: &Client, to: &[String], text: &str) -> Result<String, ClientError> {
    for (n, agent) in to.iter().enumerate() {
        let payload = serde_json::json!({ "from": "user", "errors": [text] });
        let message = serde_json::json!({ "type": "agent.feedback", "agent_id": agent, "payload": payload });
        match client.publish_post(&wire::PublishPost { message }).await {
            Ok(_) => {}
            Err(err) if n == 0 => return Err(err),
            Err(err) => {
                let had = super::telling::named(&to[..n]);
                return Ok(format!("{had} have it, and then: {err}"));
            }
        }
    }
    Ok(format!("sent to {}", super::telling::named(to)))
}

/// Answers an agent's question, as `provost answer` does.
pub(super) async fn say(client: &Client, question: u64, text: &str) -> Result<String, ClientError> {
    let open = client.questions().await?;
    let Some(found) = open.iter().find(|it| it.seq == question) else {
        return Ok(format!("question {question} is not open any more; nothing was sent"));
    };
    client.answer_agent((SUPERVISOR, &found.agent), text, Some(found)).await?;
    Ok(format!("answered {}", provost_base::visible(&found.agent)))
}
