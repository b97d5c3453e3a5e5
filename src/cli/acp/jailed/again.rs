//! A session that an editor resumes after its earlier editor had gone: its turns are the tasks that name it, among the tasks that its agent
//! has asked for. Its past comes from the updates that the daemon has kept of them, or else from their records.
//!
//! A session is stored only in its turns. So a session without any turn cannot be resumed.

use serde_json::{Value, json};

use super::output::{Output, told};
use super::session::{Session, SessionContext};
use crate::{CliError, changes};
use provost_api::wire;
use provost_base::limits::{
    ACP_JAILED_PAST_BYTES_MAX, ACP_JAILED_PAST_MAX, ACP_JAILED_PAST_PAGES_MAX, ACP_JAILED_PAST_TEXT_MAX,
};
use provost_base::{AgentId, task_command, visible};
use provost_client::ClientError;

/// How often a turn is read again from its beginning if it was rewritten meanwhile.
const READINGS_MAX: u32 = 3;

/// The updates that repeat a session's past, in order; empty if the session has no turn on record.
pub(super) type Past = Vec<Value>;

/// The session that is resumed.
pub(super) struct Taken<'a> {
    /// The session's id.
    pub(super) id: &'a str,
    /// The agent in its jail.
    pub(super) worker: &'a AgentId,
    /// Whether the session speaks under a name of its own, so that all tasks of that name are its past.
    pub(super) has_own_name: bool,
}

/// Reads the past of a session, and has the session continue its latest turn.
///
/// # Errors
/// When the daemon does not answer.
pub(super) async fn past(session: &mut Session, taken: &Taken<'_>) -> Result<Past, CliError> {
    let place = session.place();
    let tasks = turns(&place, taken).await?;
    let goes_on = |it: &&wire::Task| !is_over(it) || it.session.as_ref().is_some_and(|it| it.goes_on);
    session.goes_on_with = tasks.iter().rev().find(goes_on).map(|it| it.id.clone());
    let (mut room, mut told) = (ACP_JAILED_PAST_BYTES_MAX, Vec::new());
    // The newest turns first: of the oldest turns of a long session only the words are repeated.
    for task in tasks.iter().rev() {
        let kept = if room > 0 { kept(&place, task, taken.worker).await? } else { Vec::new() };
        room = room.saturating_sub(kept.iter().map(|it| it.to_string().len()).sum());
        told.push(turn(task, kept));
    }
    let mut past: Past = told.into_iter().rev().flatten().collect();
    past.extend(tasks.last().into_iter().flat_map(|it| stands(it, session.goes_on_with.is_some())));
    Ok(past)
}

/// Finds the session's newest turns, oldest first.
async fn turns(place: &SessionContext, taken: &Taken<'_>) -> Result<Vec<wire::Task>, CliError> {
    let mut query = wire::MyTasksQuery {
        after: None,
        limit: Some(ACP_JAILED_PAST_MAX),
        session: (!taken.has_own_name).then(|| taken.id.to_owned()),
    };
    let mut tasks = Vec::new();
    // A page has fewer tasks if many tasks of other agents lie between.
    for _ in 0..ACP_JAILED_PAST_PAGES_MAX {
        let page = place.client.my_tasks(&query).await?;
        tasks.extend(page.tasks.into_iter().filter(|it| it.worker == taken.worker.as_str()));
        query.after = page.next;
        if query.after.is_none() || tasks.len() >= ACP_JAILED_PAST_MAX {
            break;
        }
    }
    tasks.truncate(ACP_JAILED_PAST_MAX);
    tasks.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    Ok(tasks)
}

/// The words for a person where the end of a turn is missing.
const CHANGES: &str = "This turn changed each time that it was read, so its end is missing here. Open the session again when the turn is over.";

/// Reads what the daemon has kept of a turn, with the editor's paths. If the turn changes each time that it is read, what there is of the last
/// reading is told, and that its end is missing.
async fn kept(place: &SessionContext, task: &wire::Task, worker: &AgentId) -> Result<Vec<Value>, CliError> {
    let mut output = Output::of(worker.clone());
    if let Some(copy) = task.session.as_ref().and_then(|it| it.folder.as_deref()) {
        output.works_in(copy, &place.folder);
    }
    let Pages { updates, is_whole } = all_pages(place, &task.id).await?;
    let updates = updates.into_iter().filter_map(|it| output.update(it));
    Ok(updates.chain((!is_whole).then(|| told(CHANGES))).collect())
}

/// Updates of a turn as they were at one moment.
struct Pages {
    updates: Vec<Value>,
    /// Whether these are all.
    is_whole: bool,
}

/// Reads all kept pages of a turn. If the turn was rewritten meanwhile, the reading begins with the first page again; after [`READINGS_MAX`] times
/// it ends with the pages that it has.
async fn all_pages(place: &SessionContext, id: &str) -> Result<Pages, CliError> {
    let begin = || wire::MyTurnQuery { id: id.to_owned(), ..Default::default() };
    let (mut updates, mut query, mut again) = (Vec::new(), begin(), 0);
    loop {
        let page = match place.client.my_turn(&query).await {
            Err(ClientError::Refused { fault, .. }) if fault.error == wire::TURN_CHANGED => {
                if again == READINGS_MAX {
                    return Ok(Pages { updates, is_whole: false });
                }
                (updates, query, again) = (Vec::new(), begin(), again + 1);
                continue;
            }
            page => page?,
        };
        updates.extend(page.updates);
        match page.next.filter(|it| *it > query.from) {
            Some(next) => (query.from, query.as_of) = (next, Some(page.as_of)),
            None => return Ok(Pages { updates, is_whole: true }),
        }
    }
}

fn is_over(task: &wire::Task) -> bool {
    matches!(task.state.as_str(), "completed" | "failed" | "cancelled")
}

/// Makes the updates of a turn: the person's words, and the agent's updates, or the answer on record if no updates are kept.
fn turn(task: &wire::Task, kept: Vec<Value>) -> Vec<Value> {
    let last = task.notes.last().filter(|_| is_over(task));
    let says = |who: &str, text: &str| {
        let text = visible(&text[..text.floor_char_boundary(ACP_JAILED_PAST_TEXT_MAX.min(text.len()))]);
        json!({ "sessionUpdate": who, "content": { "type": "text", "text": text } })
    };
    let asked = says("user_message_chunk", &task.goal);
    let summary = last.map(|it| &*it.summary).filter(|it| !it.is_empty());
    if !kept.is_empty() {
        let failed = summary.filter(|_| task.state == "failed");
        let failed = failed.map(|it| told(&format!("This turn has failed: {}", visible(it))));
        return [asked].into_iter().chain(kept).chain(failed).collect();
    }
    let answer = last.and_then(|it| it.details.as_ref()?["stdout"].as_str());
    let answer = answer.filter(|it| !it.trim().is_empty()).or(summary);
    [asked].into_iter().chain(answer.map(|it| says("agent_message_chunk", it))).collect()
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
