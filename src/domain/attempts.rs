//! Attempts: a run that has failed begins again, as often as its worker's entry says, or as its asker wants it within what the rule or the entry
//! allows.
//!
//! ```text
//!   [queued] --> [running] --exit code, lost, or over its time--> [retrying] --its time has come--> [queued]
//!                    \                                  \
//!                     +-- anything else                  +-- cancelled
//!                     v                                  v
//!                 [finished]                         [finished]
//! ```
//! Each attempt is on record with its number; its answer and its usage are a note of the task. Rates of rules count
//! each attempt as a use of the rule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Delegate, EndRun};
use super::progress::clip;
use super::{
    Change, EventKind, Failure, Outbox, QueueEvent, State, Task, TaskNote, TaskState, Terms, Usage,
    WorkerKind,
};
use provost_base::limits::{RETRIES_MAX, RETRY_DELAY_MS_MAX};
use provost_base::{DaemonId, Json, RuleId, Timestamp, Ttl};

/// A worker's setting for how often its failed runs begin again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retries {
    /// The highest number of attempts after the first one.
    pub most: u32,
    /// The time for which the second attempt waits; each later one waits twice as long as the one before it.
    pub delay: Ttl,
    /// Whether a run that was lost with its daemon begins again, too.
    pub lost: bool,
    /// Whether a run that was over its time begins again, too.
    #[serde(default)]
    pub timeouts: bool,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 0, delay: Ttl::seconds_clamped(10), lost: false, timeouts: false }
    }
}

impl Retries {
    /// Returns how many attempts may follow the first one at most: the number of the rule, or else that of the entry. No host's
    /// configuration goes beyond the daemon's own bound.
    fn bound(&self, terms: &Terms) -> u32 {
        terms.retries.unwrap_or(self.most).min(RETRIES_MAX)
    }

    /// Returns how many attempts follow the first one of this task.
    fn most_of(&self, task: &Task) -> u32 {
        task.order.retries().unwrap_or(self.most).min(self.bound(&task.terms))
    }

    /// Returns the delay before the next attempt, after `failed` failed ones.
    pub fn delay_after(&self, failed: u32) -> Ttl {
        let doublings = failed.saturating_sub(1).min(16);
        let ms = u64::from(self.delay.as_millis()) << doublings;
        Ttl::from_millis(ms.min(RETRY_DELAY_MS_MAX)).unwrap_or(self.delay)
    }
}

impl Task {
    /// Returns the number of the attempt that runs, or ran last; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.tried.saturating_add(1)
    }

    /// Adds the number of the attempt to the metadata of a run, if it was not the only one.
    pub(super) fn with_attempt(&self, metadata: Option<Json>) -> Option<Json> {
        if self.tried == 0 {
            return metadata;
        }
        numbered(self, metadata)
    }
}

fn numbered(task: &Task, metadata: Option<Json>) -> Option<Json> {
    let mut block = metadata.map_or_else(|| serde_json::json!({}), |it| it.value());
    if let Some(members) = block.as_object_mut() {
        members.insert("attempt".into(), task.attempt().into());
    }
    Some(Json::from_value(&block))
}

impl State {
    /// Returns why a request may not have the attempts that it asks for; `None` where it may, or where the host that takes the task decides.
    pub(super) fn over_attempts(&self, order: &Delegate, rule: &RuleId, terms: &Terms) -> Option<Box<str>> {
        let asked = order.retries()?;
        // Where this host cannot begin it, the entry of the host that takes it counts.
        let is_for_here = self.here.is_alone() || self.fits_here(order);
        let entry = self.settings.workers.get(&order.worker).filter(|_| is_for_here).map(|it| it.retries);
        let says = match (terms.retries, entry) {
            (Some(most), _) if asked > most => format!("`limit.retries` of rule {rule} is {most}"),
            (None, Some(entry)) if asked > entry.most => format!(
                "`retries` of worker {} is {}, and rule {rule} has no `limit.retries` that allows more",
                order.worker, entry.most
            ),
            _ => return None,
        };
        Some(format!("{asked} further attempts were asked for: {says}").into())
    }

    /// Returns when a failed run begins again; `None` if it does not.
    fn begins_again(
        &self,
        now: Timestamp,
        task: &Task,
        ended: &EndRun,
        out: &mut Outbox,
    ) -> Option<Timestamp> {
        let own = || self.settings.workers.get(&task.order.worker).map(|it| it.retries);
        let retries = task.travel.as_ref().map(|it| it.retries).or_else(own)?;
        let is_meant = match ended.failure.as_ref()? {
            Failure::WorkerFailed { .. } => exit_code(ended).is_some_and(|code| code > 0),
            Failure::Lost => retries.lost,
            Failure::RunTimeout { .. } => retries.timeouts,
            _ => false,
        };
        // The job of an editor has its own way to try again, and words said to an agent are said once.
        let has_words = task.talk.as_ref().is_some_and(|it| !it.sayings.is_empty());
        if !is_meant || task.tried >= retries.most_of(task) || task.order.errand.is_some() || has_words {
            return None;
        }
        if let Some(rate) = task.terms.rate {
            self.quota.spend(now, &task.rule, &task.share(), rate, out).ok()?;
        }
        Some(now.after(retries.delay_after(task.attempt())))
    }

    /// Records a failed attempt that another one follows. Returns `false` if none follows.
    pub(super) fn tries_again(
        &self,
        now: Timestamp,
        task: &Arc<Task>,
        ended: &EndRun,
        out: &mut Outbox,
    ) -> bool {
        if task.kind != WorkerKind::Cli {
            return false;
        }
        let Some(at) = self.begins_again(now, task, ended, out) else { return false };
        let mut report = ended.report.clone();
        report.summary = clip(&report.summary);
        report.metadata = numbered(task, task.with_files(report.metadata));
        out.append_event(EventKind::Queue(QueueEvent::AttemptFailed {
            task: task.id().clone(),
            attempt: task.attempt(),
            failure: ended.failure.clone(),
            report: report.digest(),
            usage: Usage::of_metadata(report.metadata.as_ref()).map(Box::new),
            again_at: at,
        }));
        self.free_locks_of(task, out);
        self.drop_questions_of(task.id(), out);
        let note = TaskNote {
            at: now,
            from: task.order.worker.clone(),
            said: "failed".into(),
            report,
            failure: ended.failure.clone(),
            message: None,
        };
        let mut task = Task::clone(task).with_note(note);
        task.tried += 1;
        task.state = TaskState::Retrying { at };
        if task.travel.is_some() {
            // The next attempt runs on the host that takes it then.
            task.daemon = DaemonId::default();
        }
        // The next attempt begins as the first one did; taint of the workspace stays on record.
        (task.talk, task.watched, task.model_used) = (None, None, None);
        task.beside.clear();
        out.put(Change::PutTask(Arc::new(task)));
        true
    }

    /// Puts a task in the queue again, since the time of its next attempt has come.
    pub(super) fn try_again(&self, now: Timestamp, task: &Task, out: &mut Outbox) {
        let (task_id, attempt) = (task.id().clone(), task.attempt());
        out.append_event(EventKind::Queue(QueueEvent::AttemptBegins { task: task_id, attempt }));
        self.hand_over(now, task.clone(), out);
    }
}

/// Returns the exit code of a run's process, if it has one.
fn exit_code(ended: &EndRun) -> Option<i64> {
    ended.report.metadata.as_ref()?.value().get("exit_code")?.as_i64()
}
