//! One run of a worker for a job: a task that is judged, jailed and shown like any other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::output_reader::last_words;
use super::runner::{JobRunner, Stop, failed};
use provost_base::limits::{JOB_ANSWER_BYTES_MAX, JOB_ERROR_BYTES_MAX};
use provost_base::{AgentId, JobId, Json, TaskId, Ttl};
use provost_domain::command::{Delegated, MoveJob, Status, Tool};
use provost_domain::{Answer, Artifact, Delegate, Failure, JobContext, PhaseName, Task, TaskState};
use provost_jail::{Stream, plain_text};

/// Longer than any worker may run; only the worker's own limit counts.
pub(super) const NO_SHORTER: Ttl = Ttl::minutes(7 * 24 * 60);
/// How long collecting the changes of a stopped run may take: the run has a moment to end by itself, and then
/// its copy is searched.
pub const KEPT_WITHIN: Duration = Duration::from_secs(15);

/// The request for one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RunRequest {
    /// The part of the job that the run belongs to.
    pub(super) phase: PhaseName,
    /// The worker that runs.
    pub(super) worker: AgentId,
    /// Whether the worker is an agent, which works in a private copy.
    pub(super) by_agent: bool,
    /// The prompt, which is the task's goal.
    pub(super) prompt: Box<str>,
    /// The directory where the worker works, relative to the workspace.
    pub(super) working_dir: Option<Box<str>>,
    /// The JSON Schema of the worker's answer.
    pub(super) schema: Option<Json>,
    /// The job in whose private copy the worker works; `None` for a copy of its own.
    pub(super) copy: Option<JobId>,
    /// The command that runs instead of the worker's own program.
    pub(super) command: Option<Vec<Box<str>>>,
    /// Whether the run's changes are kept.
    pub(super) harvest: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// The task of the run, as it was at its end.
    pub(super) task: Arc<Task>,
    /// The worker's answer, as text.
    pub(super) answer: String,
    /// Files with a proposed content.
    pub(super) artifacts: Vec<Artifact>,
    /// Changes that are no artifacts.
    pub(super) left_out: Option<Box<str>>,
    /// Whether there are files among the changes that are no artifacts.
    pub(super) incomplete: bool,
    /// Whether the run's copy was searched for changes.
    pub(super) has_left: bool,
    /// The end of the worker's standard error.
    pub(super) last_words: String,
}

impl Ran {
    /// Checks whether the run has succeeded.
    pub(super) fn done(self) -> Result<Self, Stop> {
        let TaskState::Finished { status, .. } = self.task.state else { return Err(Stop::Over) };
        match status {
            Status::Completed => Ok(self),
            Status::Cancelled => Err(Stop::Cancelled),
            _ => {
                let why = format!("{}\n{}", self.summary().unwrap_or("the worker failed"), self.last_words);
                Err(Stop::Failed(why.trim_end().to_owned()))
            }
        }
    }

    /// Returns the summary of the run's end, in one line.
    pub(super) fn summary(&self) -> Option<&str> {
        let summary = self.task.notes.last().map(|note| &*note.report.summary).unwrap_or_default();
        summary.lines().next().filter(|line| !line.trim().is_empty())
    }
}

/// Checks whether a task still waits, so that the next daemon runs it.
fn has_not_run(task: &Task) -> bool {
    awaits_approval(task)
        || matches!(task.state, TaskState::Waiting | TaskState::Retrying { .. } | TaskState::Queued { .. })
}

fn awaits_approval(task: &Task) -> bool {
    matches!(task.state, TaskState::Awaiting { .. })
}

/// Checks whether a task has ended before its worker began.
pub(super) fn never_ran(task: &Task) -> bool {
    let refused = |failure: &Failure| {
        failure.is_denial()
            || matches!(
                failure,
                Failure::JailRefused { .. }
                    | Failure::WorkerAway { .. }
                    | Failure::NotBegun { .. }
                    | Failure::NoHost { .. }
            )
    };
    task.state.is_finished() && task.failure.as_ref().is_some_and(refused)
}

impl JobRunner {
    /// Does a run from its beginning to its end.
    pub(super) async fn run(&self, run: RunRequest) -> Result<Ran, Stop> {
        let task = self.start(&run).await?;
        self.follow(&run, task).await
    }

    /// Delegates the work, and waits for approval and a place. The task may be over then.
    pub(super) async fn start(&self, run: &RunRequest) -> Result<Arc<Task>, Stop> {
        self.start_telling(run, None).await
    }

    /// Does the same, while a phase shows the progress: the wait for approval, then for a place.
    pub(super) async fn start_telling(
        &self,
        run: &RunRequest,
        phase: Option<PhaseName>,
    ) -> Result<Arc<Task>, Stop> {
        let task = self.delegate(run).await?;
        let mut now = self.service.provost().task(&task).await?;
        loop {
            let awaits = awaits_approval(&now);
            if let Some(phase) = phase {
                self.part(phase, 2 - u32::from(awaits), 3);
            }
            if !has_not_run(&now) {
                if !never_ran(&now) {
                    self.runs_now().await?;
                }
                return Ok(now);
            }
            let waits = |it: &Task| has_not_run(it) && awaits_approval(it) == awaits;
            now = self.service.provost().task_after(&task, waits, NO_SHORTER.as_duration()).await?;
        }
    }

    /// Follows a run until it ends.
    pub(super) async fn follow(&self, run: &RunRequest, task: Arc<Task>) -> Result<Ran, Stop> {
        let (task, live) = self.until_it_ends(run, task).await?;
        let was_seen = live.is_some();
        self.count(&task);
        let last_words = live.as_ref().map(|live| last_words(live, JOB_ERROR_BYTES_MAX)).unwrap_or_default();
        let said = live.map(|live| plain_text(&live.text(Stream::Out))).unwrap_or_default();
        let answer = clip(said.trim(), JOB_ANSWER_BYTES_MAX).to_owned();
        let keeps = was_seen && (run.harvest || run.copy.is_some());
        let (artifacts, left_out) = (Vec::new(), None);
        let ran = Ran { task, answer, artifacts, left_out, incomplete: false, has_left: false, last_words };
        if run.by_agent && !never_ran(&ran.task) { self.collect(ran, keeps).await } else { Ok(ran) }
    }

    /// Delegates the work to the worker, which is judged like any other delegation.
    async fn delegate(&self, run: &RunRequest) -> Result<TaskId, Stop> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let known = self.job.tasks.get(number);
        if let Some(task) = known
            && self.service.provost().task(task).await.is_ok()
        {
            // An earlier daemon has delegated it already.
            return Ok(task.clone());
        }
        let id = match number {
            0 => format!("job_{}", self.job.id),
            later => format!("job_{}.{}", self.job.id, later + 1),
        };
        let task = TaskId::parse(&id).map_err(|err| failed(&err))?;
        // The earlier daemon may have named the task, and died before it existed.
        if known.is_none() {
            let tied =
                MoveJob { job: self.job.id.clone(), phase: None, task: Some(task.clone()), runs: false };
            self.service.provost().submit(self.service.provost().system(), tied).await?;
        }
        let verb = Delegate {
            tool: Tool { name: self.job.method.clone(), ..Tool::default() },
            working_dir: run.working_dir.clone(),
            payload: Json::from_value(&serde_json::json!({})),
            errand: self.errand(run).map(Box::new),
            ..Delegate::of(task.clone(), run.prompt.clone(), run.worker.clone(), NO_SHORTER)
        };
        match self.service.provost().delegate(&self.job.who, verb).await? {
            Answer::Done(Delegated { task, .. }) => Ok(task),
            Answer::Parked(_) => Ok(task),
            Answer::Denied(denial) => {
                Err(Stop::Failed(format!("denied by rule {}: {}", denial.rule, denial.reason)))
            }
        }
    }

    /// Returns the job context of an agent's task.
    fn errand(&self, run: &RunRequest) -> Option<JobContext> {
        run.by_agent.then(|| JobContext {
            job: format!("job_{}", self.job.id).into(),
            method: self.job.method.clone(),
            phase: run.phase.as_str().into(),
            schema: run.schema.clone(),
            harvest: run.harvest,
            copy: run.copy.clone(),
            command: run.command.clone(),
            commit: None,
        })
    }

    /// Notes that the job has a running task from now on.
    pub(super) async fn runs_now(&self) -> Result<(), Stop> {
        if self.is_running.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let verb = MoveJob { job: self.job.id.clone(), phase: None, task: None, runs: true };
        self.service.provost().submit(self.service.provost().system(), verb).await?;
        Ok(())
    }

    /// Takes over the answer and changes of an agent, which were kept before its run ended. A cancelled task is over
    /// before its run is: this function waits for the run then.
    async fn collect(&self, mut ran: Ran, keeps: bool) -> Result<Ran, Stop> {
        let done = matches!(ran.task.state, TaskState::Finished { status: Status::Completed, .. });
        let until = Instant::now() + if keeps && !done { KEPT_WITHIN } else { Duration::ZERO };
        let mut kept = self.service.provost().keeps();
        loop {
            let (artifacts, id) = (self.service.provost().artifacts(), ran.task.id().clone());
            let found =
                tokio::task::spawn_blocking(move || artifacts.of(&id)).await.map_err(|_| Stop::Over)?;
            if let Some(found) = found.map_err(|err| failed(&err))? {
                ran.left_out = found.left_out().map(Into::into);
                (ran.incomplete, ran.has_left) = (found.incomplete, true);
                ran.artifacts = found.artifacts;
                clip(&found.answer, JOB_ANSWER_BYTES_MAX).clone_into(&mut ran.answer);
                return Ok(ran);
            }
            if !matches!(timeout_at(until, kept.changed()).await, Ok(Ok(()))) {
                return Ok(ran);
            }
        }
    }
}

/// Returns the beginning of a text, at most `most` bytes.
fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most.min(text.len()))]
}
