//! A jailed worker's reports about its task while it runs.
//!
//! Such a report does not change the task's state: the task is under way because its process runs, and ends with
//! that process. All reports count as progress. A report that the work is done is kept, and the task still ends
//! with the process.

use std::sync::Arc;

use serde_json::{Value, json};

use super::command::{ReportTask, Reported, Status};
use super::progress::clip;
use super::{Change, Outbox, Principal, Refusal, Report, State, Task, TaskNote, TaskState};
use provost_base::{Json, Timestamp};

/// Words for progress that are passed on as they are.
const PROGRESS: [&str; 3] = ["progress", "in_progress", "blocked"];

impl State {
    /// Records a report of a jailed worker. It may report on the task of its run and on no other; it does not even
    /// learn whether other tasks exist.
    pub(super) fn report_from_inside(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReportTask,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<Reported, Refusal> {
        let its = |task: &&Arc<Task>| who.works_inside_on(task.id()) && task.order.worker == *who.agent();
        let task = self.tasks.get(&verb.task).or(past).filter(its).ok_or(Refusal::TaskNotFound)?;
        let state = match task.state {
            state @ TaskState::Running { .. } => state,
            TaskState::Finished { .. } => return Err(Refusal::TaskFinished),
            from => return Err(Refusal::TaskCannot { from }),
        };
        if verb.message.is_some() && task.notes.iter().any(|note| note.message == verb.message) {
            return Ok(Reported { state });
        }
        let (said, report) = as_progress(verb);
        for listener in task.listeners(false) {
            self.mail.thin_out_progress(&listener, task.id(), out);
        }
        self.announce_progress(now, who, Status::InProgress, task, (&said, &report), out);
        let note = TaskNote {
            at: now,
            from: who.agent().clone(),
            said,
            report,
            failure: None,
            message: verb.message.clone(),
        };
        out.put(Change::PutTask(Arc::new(Task::clone(task).with_note(note))));
        Ok(Reported { state })
    }
}

/// Turns a report into one of progress. The message as it came is not passed on: it could claim an end that has not come.
fn as_progress(verb: &ReportTask) -> (Box<str>, Report) {
    let relayed = verb.report.relay.as_ref().map(Json::value);
    let word = relayed.as_ref().and_then(|it| it.get("status")?.as_str());
    let word = word.unwrap_or(verb.status.as_str()).to_ascii_lowercase();
    let mut report = Report { relay: None, summary: clip(&verb.report.summary), ..verb.report.clone() };
    if PROGRESS.contains(&&*word) {
        return (word.into(), report);
    }
    let mut metadata = match report.metadata.as_ref().map(Json::value) {
        Some(block @ Value::Object(_)) => block,
        Some(other) => json!({ "metadata": other }),
        None => json!({}),
    };
    metadata["worker_said"] = json!(clip(&word));
    report.metadata = Some(Json::from_value(&metadata));
    ("progress".into(), report)
}
