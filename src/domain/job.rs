//! Jobs: an editor's requests, from the question to the answer.
//!
//! ```text
//!  opened --> [queued] --> [running] --> [completed | failed | cancelled]     (and then forgotten)
//!                |             |                 ^
//!                +-------------+-----------------+
//! ```
//! Tasks carry a job out: each is judged, jailed and visible at every door like any other. The daemon itself
//! updates a job; its opener, or the operator, cancels it, and its tasks with it. The result of a job is in the
//! store, not in memory. A6s 3 and 6.

mod phase;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use phase::{Phase, PhaseName, PhaseState, Phases};

use super::artifact::Artifact;
use super::command::{
    CancelJob, CancelTask, EndJob, FeedbackNoted, JobCancelled, JobEnded, JobMoved, JobOpened, KeepResult,
    MoveJob, NoteFeedback, OpenJob, ResultKept, Status,
};
use super::owing::{self, Deed};
use super::{Change, EventKind, Outbox, Principal, Refusal, Scope, State, TaskState, Usage};
use provost_base::limits::{JOBS_KEPT_MAX, JOBS_LIVE_MAX, JOBS_OF_ONE_MAX};
use provost_base::{AgentId, Digest, JobId, Json, TaskId, Timestamp, Ttl};

/// The time for which a job that is over is remembered.
const KEPT_FOR: Ttl = Ttl::minutes(7 * 24 * 60);

/// The kind of request that a job answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// `agents.invoke`: five phases, artifacts.
    Execution,
    /// `background.launch`: one run, its output.
    Background,
    /// `code.*`: one answer.
    Code,
    /// `workflows.run`: several steps.
    Workflow,
    /// `scan.*`: a report.
    Scan,
    /// One step of a workflow.
    Step,
}

impl JobKind {
    /// Returns the word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            JobKind::Execution => "execution",
            JobKind::Background => "background",
            JobKind::Code => "code",
            JobKind::Workflow => "workflow",
            JobKind::Scan => "scan",
            JobKind::Step => "step",
        }
    }
}

/// The state of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its worker does not run yet.
    Queued,
    /// Its worker runs, or has run.
    Running,
    /// Ended, with the requested result.
    Completed,
    /// Ended, without the requested result.
    Failed,
    /// Ended, since its opener or the operator cancelled it.
    Cancelled,
}

impl JobState {
    /// Returns the word that clients get.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Completed => "completed",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Checks whether the job has ended.
    pub fn is_over(self) -> bool {
        matches!(self, JobState::Completed | JobState::Failed | JobState::Cancelled)
    }
}

/// The step of a workflow that a job carries out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepOf {
    /// The job of the whole workflow.
    pub job: JobId,
    /// The number of the step, from zero.
    pub number: u16,
    /// The part of the workflow that the step belongs to.
    pub phase: PhaseName,
}

/// A job. Only the store has the request itself, for the runner that carries it out; it is dropped once the job is
/// over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The id, without the prefix by which clients tell kinds of jobs apart.
    pub id: JobId,
    /// The kind of request that the job answers.
    pub kind: JobKind,
    /// The method of the protocol that was called.
    pub method: Box<str>,
    /// The work to do, in a line for lists.
    pub title: Box<str>,
    /// The agent, as the client named it.
    pub agent: Box<str>,
    /// The worker that carries out this agent's tasks.
    pub worker: AgentId,
    /// The principal that opened the job.
    pub who: Principal,
    /// The digest by which the same question is recognised; `None` for questions that may be asked twice.
    pub key: Option<Digest>,
    /// The workflow and step that the job carries out; `None` for a job of its own.
    #[serde(default)]
    pub step: Option<StepOf>,
    /// The state of the whole job.
    pub state: JobState,
    /// The progress of each part.
    pub phases: Phases,
    /// The tasks that carry it out, in order.
    pub tasks: Vec<TaskId>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The reason for the failure; `None` if the job did not fail.
    pub error: Option<Box<str>>,
    /// The client's feedback, once it has sent some.
    pub feedback: Option<Box<str>>,
    /// The number of messages and calls of tools that its workers have reported.
    #[serde(default)]
    pub steps: u64,
}

/// The result of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobResult {
    /// The answer as text, for people.
    pub text: Option<Box<str>>,
    /// The answer as JSON that satisfies the schema, if the request had one.
    pub answer: Option<Json>,
    /// Files that its runs have changed, offered for the user's own files.
    pub artifacts: Vec<Artifact>,
    /// Changes that are not artifacts, with the reasons.
    pub left_out: Option<Box<str>>,
    /// Tokens and cost, as its workers report them.
    pub usage: Option<Usage>,
    /// Whether changed files are missing here, because they were too many or too large.
    pub incomplete: bool,
}

impl JobResult {
    /// Returns the digest for the log, which does not hold the result.
    pub fn digest(&self) -> Digest {
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}

/// An event of a job, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEvent {
    /// A job was asked for.
    JobOpened {
        /// The id of the new job.
        job: JobId,
        /// The kind of request that the job answers.
        kind: JobKind,
        /// The agent, as the client named it.
        agent: Box<str>,
        /// The worker that carries out this agent's tasks.
        worker: AgentId,
    },
    /// A job is under way, or a part of it has begun or ended.
    JobMoved {
        /// The job that has moved.
        job: JobId,
        /// The part that has begun or ended, and its state now.
        phase: Option<(PhaseName, PhaseState)>,
        /// The task that carries the job out from now on.
        task: Option<TaskId>,
    },
    /// A job is over.
    JobEnded {
        /// The job that has ended.
        job: JobId,
        /// Whether it was completed, failed or cancelled.
        state: JobState,
        /// The digest of the result.
        result: Option<Digest>,
    },
    /// A job was over before its last run was, and its result until then was kept.
    JobKept {
        /// The job that was over before.
        job: JobId,
        /// The digest of the result.
        result: Digest,
    },
    /// The asker has sent feedback.
    JobJudged {
        /// The job that the feedback is about.
        job: JobId,
        /// `accept` or `reject`.
        signal: Box<str>,
    },
}

impl JobEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            JobEvent::JobOpened { .. } => "job_opened",
            JobEvent::JobMoved { .. } => "job_moved",
            JobEvent::JobEnded { .. } => "job_ended",
            JobEvent::JobKept { .. } => "job_kept",
            JobEvent::JobJudged { .. } => "job_judged",
        }
    }

    /// Returns the job that the event is about.
    pub fn job(&self) -> &JobId {
        match self {
            JobEvent::JobOpened { job, .. }
            | JobEvent::JobMoved { job, .. }
            | JobEvent::JobEnded { job, .. }
            | JobEvent::JobKept { job, .. }
            | JobEvent::JobJudged { job, .. } => job,
        }
    }
}

/// A change to a row of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    /// A new job, or a change to a known one.
    Put(Arc<Job>),
    /// The request of the job. Only the store keeps it.
    PutOrder(JobId, Json),
    /// The request is not needed any more. Only the store has it.
    DropOrder(JobId),
    /// The result of a job. Only the store keeps it.
    PutResult(JobId, Arc<JobResult>),
    /// A job that is forgotten, with its request and its result.
    Drop(JobId),
}

/// All jobs that were not forgotten.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jobs {
    all: BTreeMap<JobId, Arc<Job>>,
    live: usize,
}

impl Jobs {
    /// Checks whether the job named by a job context is over: it may have been cancelled since the request for its next task was sent.
    pub(super) fn has_ended(&self, errand: &str) -> bool {
        let id = errand.split_once('_').and_then(|(_, id)| JobId::parse(id).ok());
        id.and_then(|id| self.all.get(&id)).is_some_and(|job| job.state.is_over())
    }

    /// Returns the job with this id, if it is remembered.
    pub fn get(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.all.get(id)
    }

    /// Returns all jobs that are remembered, in no order of time.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.all.values()
    }

    /// Returns the newest job that answers the same question.
    pub fn same(&self, key: &Digest) -> Option<&Arc<Job>> {
        self.all.values().filter(|job| job.key.as_ref() == Some(key)).max_by_key(|job| job.opened_at)
    }

    /// Returns the steps of a workflow, in no order.
    pub fn steps_of(&self, workflow: &JobId) -> impl Iterator<Item = &Arc<Job>> {
        self.all.values().filter(move |job| job.step.as_ref().is_some_and(|step| step.job == *workflow))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn apply(&mut self, change: &JobChange) {
        match change {
            JobChange::Put(job) => {
                self.live += usize::from(!job.state.is_over());
                let old = self.all.insert(job.id.clone(), job.clone());
                self.live -= usize::from(old.is_some_and(|old| !old.state.is_over()));
            }
            JobChange::PutOrder(..) | JobChange::DropOrder(_) | JobChange::PutResult(..) => {}
            JobChange::Drop(id) => {
                let old = self.all.remove(id);
                self.live -= usize::from(old.is_some_and(|old| !old.state.is_over()));
            }
        }
    }

    /// Forgets jobs that were over long ago, and the oldest if there are too many.
    pub(super) fn expire(&self, now: Timestamp, out: &mut Outbox) {
        let over = self.all.values().filter_map(|job| Some((job.ended_at?, job)));
        let mut over: Vec<(Timestamp, &Arc<Job>)> = over.collect();
        over.sort_by_key(|(at, job)| (*at, job.opened_at));
        let too_many = over.len().saturating_sub(JOBS_KEPT_MAX);
        let gone = over.iter().enumerate().filter(|(n, (at, _))| *n < too_many || at.after(KEPT_FOR) <= now);
        gone.for_each(|(_, (_, job))| out.put(JobChange::Drop(job.id.clone()).into()));
    }
}

impl From<JobChange> for Change {
    fn from(change: JobChange) -> Self {
        Change::Job(change)
    }
}

impl State {
    /// Opens a job. Any caller that may delegate can do this. While the same question is being answered, the answer is that job.
    pub(super) fn open_job(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &OpenJob,
        out: &mut Outbox,
    ) -> Result<JobOpened, Refusal> {
        self.switches.takes_on(&verb.worker)?;
        if self.jobs.all.contains_key(&verb.job) {
            return Err(Refusal::Exists { what: "a job" });
        }
        let same = verb.key.as_ref().and_then(|key| self.jobs.same(key));
        if let Some(same) = same.filter(|job| !job.state.is_over()) {
            return Ok(JobOpened { job: same.clone() });
        }
        if self.jobs.live >= JOBS_LIVE_MAX {
            return Err(Refusal::busy("too many unfinished jobs; wait for some to end or cancel them"));
        }
        let share = who.share();
        let own = self.jobs.iter().filter(|it| !it.state.is_over() && it.who.share() == share).count();
        if own >= JOBS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many unfinished jobs as the processes of one agent can have under all their names",
                JOBS_OF_ONE_MAX,
                "wait for some to end, or cancel them",
            ));
        }
        if let Some(step) = &verb.step {
            // A step of a workflow that is over would have no runner to end it.
            self.unfinished_job(&step.job)?;
        }
        let job = Arc::new(Job {
            id: verb.job.clone(),
            kind: verb.kind,
            method: verb.method.clone(),
            title: verb.title.clone(),
            agent: verb.agent.clone(),
            worker: verb.worker.clone(),
            who: who.clone(),
            key: verb.key,
            step: verb.step.clone(),
            state: JobState::Queued,
            phases: Phases::default(),
            tasks: Vec::new(),
            opened_at: now,
            ended_at: None,
            error: None,
            feedback: None,
            steps: 0,
        });
        let (job_id, agent) = (job.id.clone(), job.agent.clone());
        let opened = JobEvent::JobOpened { job: job_id, kind: job.kind, agent, worker: job.worker.clone() };
        out.append_event(EventKind::Job(opened));
        out.put(JobChange::Put(job.clone()).into());
        out.put(JobChange::PutOrder(job.id.clone(), verb.order.clone()).into());
        if job.step.is_none() {
            owing::owe_job(&job.id, out);
        }
        Ok(JobOpened { job })
    }

    /// Records that a part of a job has begun or ended, or that a task carries it out from now on.
    pub(super) fn move_job(
        &self,
        now: Timestamp,
        verb: &MoveJob,
        out: &mut Outbox,
    ) -> Result<JobMoved, Refusal> {
        let mut job = self.unfinished_job(&verb.job)?;
        if let Some((name, state)) = verb.phase {
            job.phases.move_to(now, name, state);
        }
        if verb.runs && job.state != JobState::Running {
            job.state = JobState::Running;
            self.start_deed(&Deed::Job(job.id.clone()), out);
        }
        job.tasks.extend(verb.task.clone());
        let (id, job) = (job.id.clone(), Arc::new(job));
        out.append_event(EventKind::Job(JobEvent::JobMoved {
            job: id,
            phase: verb.phase,
            task: verb.task.clone(),
        }));
        out.put(JobChange::Put(job.clone()).into());
        Ok(JobMoved { job })
    }

    /// Ends a job. A job that was cancelled meanwhile stays cancelled.
    pub(super) fn end_job(
        &self,
        now: Timestamp,
        verb: &EndJob,
        out: &mut Outbox,
    ) -> Result<JobEnded, Refusal> {
        let mut job = self.unfinished_job(&verb.job)?;
        (job.error, job.steps) = (verb.error.clone(), verb.steps);
        self.end_steps(now, &job, "its workflow is over", out)?;
        // A run that still waits, for example for approval, would be useless.
        let waits = |task: &&TaskId| {
            let task = self.tasks.get(task);
            task.is_some_and(|it| {
                matches!(
                    it.state,
                    TaskState::Awaiting { .. }
                        | TaskState::Waiting
                        | TaskState::Retrying { .. }
                        | TaskState::Queued { .. }
                )
            })
        };
        for task in job.tasks.iter().filter(waits) {
            let cancel = CancelTask { task: task.clone(), reason: "its job is over".into() };
            self.cancel(now, &job.who, &cancel, None, out)?;
        }
        Ok(JobEnded { job: self.over(now, job, verb.state, verb.result.clone(), out) })
    }

    /// Keeps the result of a job that was cancelled, or that ended with its daemon. A job that ended by itself has
    /// reported its result.
    pub(super) fn keep_result(&self, verb: &KeepResult, out: &mut Outbox) -> Result<ResultKept, Refusal> {
        let job = self.jobs.get(&verb.job).ok_or(Refusal::TaskNotFound)?;
        if !matches!(job.state, JobState::Failed | JobState::Cancelled) {
            return Err(Refusal::TaskFinished);
        }
        let result = verb.result.digest();
        out.append_event(EventKind::Job(JobEvent::JobKept { job: verb.job.clone(), result }));
        out.put(JobChange::PutResult(verb.job.clone(), verb.result.clone()).into());
        Ok(ResultKept)
    }

    /// Cancels a job and the tasks that carry it out; a job that is over stays as it is.
    pub(super) fn cancel_job(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &CancelJob,
        out: &mut Outbox,
    ) -> Result<JobCancelled, Refusal> {
        let job = self.jobs.get(&verb.job).ok_or(Refusal::TaskNotFound)?;
        if job.who.agent() != who.agent() && !who.may(Scope::Operate) {
            return Err(Refusal::TaskNotYours { owner: job.who.agent().clone() });
        }
        if job.state.is_over() {
            return Ok(JobCancelled { job: job.clone() });
        }
        self.end_steps(now, job, &verb.reason, out)?;
        Ok(JobCancelled { job: self.take_back(now, job, &verb.reason, out)? })
    }

    /// Ends the steps of a workflow, since none goes on without it.
    fn end_steps(
        &self,
        now: Timestamp,
        workflow: &Job,
        reason: &str,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        if workflow.kind != JobKind::Workflow {
            return Ok(());
        }
        for step in self.jobs.steps_of(&workflow.id).filter(|step| !step.state.is_over()) {
            self.take_back(now, step, reason, out)?;
        }
        Ok(())
    }

    /// Cancels a job, and the tasks that carry it out.
    fn take_back(
        &self,
        now: Timestamp,
        job: &Job,
        reason: &str,
        out: &mut Outbox,
    ) -> Result<Arc<Job>, Refusal> {
        for task in job.tasks.iter().filter(|task| self.tasks.get(task).is_some()) {
            let cancel = CancelTask { task: task.clone(), reason: reason.into() };
            // The cancelling is done in the name of the job's asker: a caller that may cancel the job may cancel its tasks.
            self.cancel(now, &job.who, &cancel, None, out)?;
        }
        let mut job = job.clone();
        job.error = Some("cancelled".into());
        Ok(self.over(now, job, JobState::Cancelled, None, out))
    }

    /// Keeps a client's feedback on the outcome of a job.
    pub(super) fn note_feedback(
        &self,
        verb: &NoteFeedback,
        out: &mut Outbox,
    ) -> Result<FeedbackNoted, Refusal> {
        let mut job = Job::clone(self.jobs.get(&verb.job).ok_or(Refusal::TaskNotFound)?);
        let reason = verb.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        job.feedback = Some(format!("{}{reason}", verb.signal).into());
        let judged = JobEvent::JobJudged { job: job.id.clone(), signal: verb.signal.clone() };
        out.append_event(EventKind::Job(judged));
        out.put(JobChange::Put(Arc::new(job)).into());
        Ok(FeedbackNoted)
    }

    fn unfinished_job(&self, id: &JobId) -> Result<Job, Refusal> {
        let job = self.jobs.get(id).ok_or(Refusal::TaskNotFound)?;
        if job.state.is_over() { Err(Refusal::TaskFinished) } else { Ok(Job::clone(job)) }
    }

    /// Records that a job is over, and so not owed any more.
    fn over(
        &self,
        now: Timestamp,
        mut job: Job,
        state: JobState,
        result: Option<Arc<JobResult>>,
        out: &mut Outbox,
    ) -> Arc<Job> {
        (job.state, job.ended_at) = (state, Some(now));
        job.phases.close(now, state);
        let (job, digest) = (Arc::new(job), result.as_ref().map(|it| it.digest()));
        out.append_event(EventKind::Job(JobEvent::JobEnded { job: job.id.clone(), state, result: digest }));
        out.put(JobChange::Put(job.clone()).into());
        out.put(JobChange::DropOrder(job.id.clone()).into());
        if let Some(result) = result {
            out.put(JobChange::PutResult(job.id.clone(), result).into());
        }
        self.settle_deed(&Deed::Job(job.id.clone()), out);
        job
    }
}

/// Returns the state of a job whose task ended like this.
impl From<Status> for JobState {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => JobState::Queued,
            Status::InProgress => JobState::Running,
            Status::Completed => JobState::Completed,
            Status::Failed => JobState::Failed,
            Status::Cancelled => JobState::Cancelled,
        }
    }
}
