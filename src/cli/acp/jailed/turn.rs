//! One turn: the person's words become a task, its agent's updates are shown as they come, and its changes are offered at the end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::output::{Output, told};
use super::session::{SessionContext, Stop};
use super::{Dialog, Served, UNREAD_MAX, changes};
use crate::acp::message;
use crate::acp::outlet::Outlet;
use crate::{CliError, follow, out, tasks};
use provost_api::wire;
use provost_base::limits::ACP_JAILED_LATE_MS;
use provost_base::{AgentId, acp, task_command};
use provost_client::Client;

/// How long one request to the daemon waits for changes, in milliseconds.
const WAIT_MS: u64 = 10_000;

/// The reasons for the end of a turn. ACP v1, `StopReason`.
const OVER: &str = "end_turn";
const CANCELLED: &str = "cancelled";
const REFUSED: &str = "refusal";

/// A turn, before it is carried out.
pub(super) struct Turn {
    pub(super) served: Arc<Served>,
    pub(super) editor: ToEditor,
    pub(super) place: SessionContext,
    /// What is to be told first.
    pub(super) notice: Option<String>,
    /// The task whose session the turn continues.
    pub(super) continues: Option<String>,
    pub(super) words: String,
    pub(super) stopped: oneshot::Receiver<Stop>,
}

/// The connection of a turn to its editor.
#[derive(Clone)]
pub(super) struct ToEditor {
    pub(super) session: String,
    pub(super) outlet: Arc<Outlet>,
    pub(super) ask: mpsc::UnboundedSender<Dialog>,
}

impl ToEditor {
    pub(super) async fn show(&self, update: &Value) {
        // Waits for an editor that does not read, so that the queue stays bounded.
        while !self.outlet.has_room(UNREAD_MAX) {
            self.outlet.moves().await;
        }
        let params = json!({ "sessionId": self.session, "update": update });
        let told = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        self.outlet.send(message::line(&told));
    }

    pub(super) async fn tell(&self, text: &str) {
        self.show(&told(&out::plain(text))).await;
    }

    /// Asks for permission; returns the chosen option, `None` if none was chosen.
    pub(super) async fn ask(&self, call: &Value, options: &Value) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        let params = json!({ "sessionId": self.session, "toolCall": call, "options": options });
        self.ask.send(Dialog { params, answer }).ok()?;
        let outcome = answered.await.ok()?;
        outcome["outcome"]["optionId"].as_str().map(str::to_owned)
    }
}

impl Turn {
    /// Carries the turn out; returns the reason for its end, and the task that the next turn continues.
    pub(super) async fn carry_out(mut self) -> (Result<&'static str, CliError>, Option<String>) {
        if let Some(notice) = self.notice.take() {
            self.editor.tell(&notice).await;
        }
        let made = self.place.client.delegate(&self.order()).await;
        let made = match made {
            Ok(made) if made.state == "denied" => {
                let word = |it: &Option<String>| out::one_line(it.as_deref().unwrap_or("unknown"), 400);
                let (rule, reason) = (word(&made.rule), word(&made.reason));
                self.editor.tell(&format!("Provost has denied this: rule {rule}: {reason}")).await;
                return (Ok(REFUSED), None);
            }
            Ok(made) => made,
            Err(error) => return (Err(error.into()), None),
        };
        if let Some(approval) = made.approval {
            let waits = follow::waiting_for(&self.place.client, approval).await;
            self.editor.tell(&format!("This is {waits}")).await;
        }
        let (ended, task) = self.until_the_end(&made.task).await;
        let goes_on = task.filter(|it| it.session.as_ref().is_some_and(|it| it.goes_on)).map(|it| it.id);
        (ended, goes_on)
    }

    fn order(&self) -> wire::Delegate {
        wire::Delegate {
            goal: self.words.clone(),
            worker: self.served.worker.to_string(),
            // A continued task works in the directory of the earlier one.
            working_dir: self.place.working_dir.clone().filter(|_| self.continues.is_none()),
            continues: self.continues.clone(),
            // An editor that resumes the session finds its turns by this member.
            context: Some(json!({ acp::EDITOR_SESSION: self.editor.session })),
            ..wire::Delegate::default()
        }
    }

    async fn until_the_end(self, task: &str) -> (Result<&'static str, CliError>, Option<wire::Task>) {
        let Self { editor, place, served, mut stopped, .. } = self;
        let client = &place.client;
        let mut watched = Watched::of(task, &editor, (&place, &served.worker));
        let mut run = std::pin::pin!(watched.run());
        let mut asked = std::pin::pin!(tell_of_questions(client, task, &editor));
        let (mut is_stopped, mut listens) = (false, true);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut run => break ended,
                stop = &mut stopped, if !is_stopped => {
                    is_stopped = true;
                    if stop == Ok(Stop::Leave) {
                        return (Ok(CANCELLED), None);
                    }
                    let reason = Some("the turn was cancelled in the editor".to_owned());
                    // If the task has ended in the meantime, the cancel has no effect.
                    let _over = client.cancel(&wire::Cancel { task: task.to_owned(), reason }).await;
                }
                () = &mut asked, if listens => listens = false,
            }
        };
        let task = match ended {
            Ok(task) => task,
            Err(error) => return (Err(error), None),
        };
        if task.tainted == Some(true) {
            editor.tell("It has left files that run later; look at them before you run anything.").await;
        }
        if task.changes.as_ref().is_some_and(wire::Changes::wait)
            && (!is_stopped || task.state != "cancelled")
        {
            let offering = changes::offer(client, &editor, &task);
            tokio::select! {
                () = offering => {}
                // Changes that wait for an approval are applied by hand later.
                _stop = &mut stopped, if !is_stopped => changes::tell(&editor, &task).await,
            }
        } else if is_stopped {
            changes::tell(&editor, &task).await;
        }
        (outcome(&task), Some(task))
    }
}

/// Returns the reason for the end of a turn, once its task has ended.
fn outcome(task: &wire::Task) -> Result<&'static str, CliError> {
    match task.state.as_str() {
        "completed" => Ok(OVER),
        "cancelled" => Ok(CANCELLED),
        state => {
            let failure = tasks::failure_in_words(task);
            let summary = task.notes.last().map(|it| out::one_line(&it.summary, 800));
            let why = failure.into_iter().chain(summary.filter(|it| !it.is_empty()));
            Err(CliError::of(format!("task {} has {state}", out::one_line(&task.id, 400)))
                .because(why.collect::<Vec<_>>().join(" "))
                .next(task_command("task show", &task.id, "")))
        }
    }
}

/// A task that is watched for an editor.
struct Watched<'a> {
    task: &'a str,
    editor: &'a ToEditor,
    place: &'a SessionContext,
    output: Output,
    read: u64,
}

impl<'a> Watched<'a> {
    fn of(task: &'a str, editor: &'a ToEditor, (place, worker): (&'a SessionContext, &AgentId)) -> Self {
        Self { task, editor, place, output: Output::of(worker.clone()), read: 0 }
    }

    /// Shows the agent's updates, until the task is over and its changes are known.
    async fn run(&mut self) -> Result<wire::Task, CliError> {
        let mut task = self.look(None, 0).await?;
        loop {
            let seen = Some(task.updated_at.clone());
            match task.state.as_str() {
                "completed" | "failed" | "cancelled" => break,
                "running" => {
                    let is_done = self.show(WAIT_MS).await?;
                    // Output ends a moment before its task does.
                    task = self.look(seen, if is_done { WAIT_MS } else { 0 }).await?;
                }
                _ => task = self.look(seen, WAIT_MS).await?,
            }
        }
        let late = tokio::time::Instant::now() + Duration::from_millis(ACP_JAILED_LATE_MS);
        while task.may_still_run() && tokio::time::Instant::now() < late {
            task = self.look(Some(task.updated_at.clone()), 1_000).await?;
        }
        while !self.show(0).await? {}
        Ok(task)
    }

    async fn look(&self, seen: Option<String>, wait_ms: u64) -> Result<wire::Task, CliError> {
        let query = wire::TaskQuery { id: self.task.to_owned(), seen, wait_ms: Some(wait_ms) };
        Ok(self.place.client.task(&query).await?)
    }

    /// Shows another page of the output; returns whether it was the last one.
    async fn show(&mut self, wait_ms: u64) -> Result<bool, CliError> {
        let query = wire::OutputQuery {
            id: self.task.to_owned(),
            from: self.read,
            wait_ms: Some(wait_ms),
            limit: None,
            in_words: false,
        };
        let page = self.place.client.output(&query).await?;
        self.read = page.next;
        if !self.output.knows_folder()
            && !page.chunks.is_empty()
            && let Some(copy) = self.look(None, 0).await?.session.and_then(|it| it.folder)
        {
            self.output.works_in(&copy, &self.place.folder);
        }
        let is_empty = page.chunks.is_empty();
        for chunk in page.chunks.iter().filter(|it| it.stream != "stderr") {
            for update in self.output.read(&chunk.text) {
                self.editor.show(&update).await;
            }
        }
        Ok(page.done && (wait_ms > 0 || is_empty))
    }
}

/// Tells the person about each request of the task's agent that waits for an approval. An answer in the editor would prove nothing.
async fn tell_of_questions(client: &Client, task: &str, editor: &ToEditor) {
    let Ok(about) = client.about().await else { return };
    let Ok(mut events) = client.event_stream(about.journal_seq).await else { return };
    let mut told = Vec::new();
    loop {
        let waiting = client.approvals().await.unwrap_or_default();
        let ours = waiting.into_iter().filter(|it| it.inside.as_deref() == Some(task));
        for approval in ours.filter(|it| !told.contains(&it.id)).collect::<Vec<_>>() {
            told.push(approval.id);
            let waits = follow::waiting_for(client, approval.id).await;
            let tool = out::one_line(&approval.tool, 60);
            editor.tell(&format!("The agent asks to use {tool}, {waits}")).await;
        }
        loop {
            match events.next().await {
                Ok(event) if event["kind"].get("approval_asked").is_some() => break,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}
