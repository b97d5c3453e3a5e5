//! A session that an editor takes up after its earlier editor had gone: it is found by the name that it speaks as,
//! which follows from its id, and its past is read from the records of its tasks.
//!
//! A session is stored only in its tasks. So a session without any turn cannot be taken up.

use serde_json::{Value, json};

use super::output::told;
use super::session::Session;
use crate::{CliError, changes};
use provost_api::wire;
use provost_base::limits::{ACP_JAILED_PAST_MAX, ACP_JAILED_PAST_TEXT_MAX};
use provost_base::{AgentId, task_command, visible};

/// How the ids of sessions begin, before 32 digits.
const PREFIX: &str = "provost-";
const DIGITS: usize = 32;

/// The updates that repeat a session's past, in order; empty where it has no turn on record.
pub(super) type Past = Vec<Value>;

/// The id of a new session.
pub(super) fn new_id() -> String {
    format!("{PREFIX}{}", uuid::Uuid::new_v4().simple())
}

/// Whether an id is one that this program gives.
pub(super) fn is_ours(id: &str) -> bool {
    let digits = id.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// The past of a session, which goes on with its latest turn from now on.
///
/// # Errors
/// When the daemon does not say.
pub(super) async fn past(session: &mut Session, worker: &AgentId) -> Result<Past, CliError> {
    let query = wire::MyTasksQuery { limit: Some(ACP_JAILED_PAST_MAX), ..wire::MyTasksQuery::default() };
    let mut tasks = session.place().client.my_tasks(&query).await?.tasks;
    tasks.retain(|it| it.worker == worker.as_str());
    tasks.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    let goes_on = |it: &&wire::Task| !is_over(it) || it.session.as_ref().is_some_and(|it| it.goes_on);
    session.goes_on_with = tasks.iter().rev().find(goes_on).map(|it| it.id.clone());
    let mut past: Past = tasks.iter().flat_map(turn).collect();
    past.extend(tasks.last().into_iter().flat_map(|it| stands(it, session.goes_on_with.is_some())));
    Ok(past)
}

fn is_over(task: &wire::Task) -> bool {
    matches!(task.state.as_str(), "completed" | "failed" | "cancelled")
}

/// A turn: the person's words, and the agent's answer as far as it is on record.
fn turn(task: &wire::Task) -> Vec<Value> {
    let last = task.notes.last().filter(|_| is_over(task));
    let answer = last.and_then(|it| it.details.as_ref()?["stdout"].as_str());
    let answer = answer.filter(|it| !it.trim().is_empty()).or_else(|| last.map(|it| &*it.summary));
    let says = |who: &str, text: &str| {
        let text = visible(&text[..text.floor_char_boundary(ACP_JAILED_PAST_TEXT_MAX.min(text.len()))]);
        json!({ "sessionUpdate": who, "content": { "type": "text", "text": text } })
    };
    let asked = says("user_message_chunk", &task.goal);
    let answered = answer.filter(|it| !it.is_empty()).map(|it| says("agent_message_chunk", it));
    [asked].into_iter().chain(answered).collect()
}

/// Returns the facts about the latest turn that the person needs before the next one.
fn stands(task: &wire::Task, goes_on: bool) -> Vec<Value> {
    let mut told_of = Vec::new();
    if !is_over(task) {
        let (watch, stop) =
            (task_command("task show", &task.id, "--wait"), task_command("task cancel", &task.id, ""));
        told_of.push(told(&format!("This turn is still under way. Watch it: {watch}; stop it: {stop}")));
    } else if !goes_on {
        told_of.push(told("The agent cannot go on with its session: it has forgotten what was said here."));
    }
    let changed = changes::of_task(task);
    if !changed.is_empty() {
        told_of.push(told(&format!(
            "Changes of task {}:\n{}",
            task.id,
            super::prompt::fenced(changed.trim_end())
        )));
    }
    told_of
}
