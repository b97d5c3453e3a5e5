//! One job, from its first phase to its end. A6s 6.2 to 6.5.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{JobOutput, LOOK_EVERY, Order};
use crate::base::limits::{JOB_ANSWER_BYTES_MAX, JOB_ERROR_BYTES_MAX, JOB_OUTPUT_BYTES_MAX};
use crate::base::{Json, TaskId, Ttl};
use crate::domain::command::{Delegated, EndJob, MoveJob, Status, Tool};
use crate::domain::{
    Answer, Delegate, Errand, Failure, Job, JobKind, JobResult, JobState, PhaseName, PhaseState, Refusal,
    Task, TaskState,
};
use crate::jail::{LiveOutput, Stream, plain_text};
use crate::service::Provost;

/// Longer than any worker may run; the worker's own limit is what counts.
const NO_SHORTER: Ttl = Ttl::minutes(7 * 24 * 60);
/// A worker that was never seen to end is taken to need so long.
const USUAL: Duration = Duration::from_secs(60);
/// How long a task that waits is left alone; whatever happens to it is heard at once.
const WAIT: Duration = Duration::from_secs(60);
/// How far a run that has not ended may seem to be.
const NEARLY: u64 = 95;

/// How a job ends.
struct Outcome {
    state: JobState,
    error: Option<String>,
    result: JobResult,
}

/// What ended a job before its time.
enum Stop {
    /// It failed, for this reason.
    Failed(String),
    /// Somebody has taken its task back.
    Cancelled,
    /// It is over already, or the daemon is.
    Over,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TaskFinished | Refusal::Unavailable { .. } => Stop::Over,
            refusal => Stop::Failed(refusal.to_string()),
        }
    }
}

/// Whether a task waits still, so that the next daemon runs it.
fn has_not_run(task: &Task) -> bool {
    matches!(task.state, TaskState::Awaiting { .. } | TaskState::Queued { .. })
}

/// Whether a task has ended before its worker began.
fn never_ran(task: &Task) -> bool {
    let refused = |failure: &Failure| {
        failure.is_denial() || matches!(failure, Failure::JailRefused { .. } | Failure::WorkerAway { .. })
    };
    task.state.is_finished() && task.failure.as_ref().is_some_and(refused)
}

impl Provost {
    /// Carries a job out, beside whoever asked for it.
    pub(super) fn drive(&self, job: Arc<Job>, order: Order) {
        let drive = Drive { provost: self.clone(), job, order };
        tokio::spawn(drive.carry_out());
    }
}

struct Drive {
    provost: Provost,
    job: Arc<Job>,
    order: Order,
}

impl Drive {
    async fn carry_out(self) {
        let mut kept = JobResult::default();
        let outcome = match self.run(&mut kept).await {
            Ok(()) => Outcome { state: JobState::Completed, error: None, result: kept },
            Err(Stop::Failed(why)) => Outcome { state: JobState::Failed, error: Some(why), result: kept },
            Err(Stop::Cancelled) => {
                Outcome { state: JobState::Cancelled, error: Some("cancelled".into()), result: kept }
            }
            Err(Stop::Over) => return self.provost.pulses().end(&self.job.id),
        };
        let end = EndJob {
            job: self.job.id.clone(),
            state: outcome.state,
            error: outcome.error.map(Into::into),
            result: Some(Arc::new(outcome.result)),
        };
        if let Err(refusal) = self.provost.submit(self.provost.host(), end).await
            && refusal != Refusal::TaskFinished
        {
            tracing::error!(%refusal, job = %self.job.id, "how a job ended is not on record");
        }
        self.provost.pulses().end(&self.job.id);
    }

    async fn run(&self, kept: &mut JobResult) -> Result<(), Stop> {
        self.begin(PhaseName::Research).await?;
        self.finish(PhaseName::Research).await?;
        self.begin(PhaseName::Inspect).await?;
        let task = self.delegate().await?;
        let task = self.until_it_runs(task).await?;
        if never_ran(&task) {
            return self.judge(&task, kept);
        }
        self.finish(PhaseName::Inspect).await?;
        self.begin(PhaseName::Generate).await?;
        let task = self.until_it_ends(task, kept).await?;
        self.judge(&task, kept)?;
        self.collect(&task, kept).await?;
        self.finish(PhaseName::Generate).await?;
        self.begin(PhaseName::Optimize).await?;
        self.finish(PhaseName::Optimize).await?;
        self.begin(PhaseName::Review).await?;
        self.finish(PhaseName::Review).await
    }

    /// Whether its parts are told.
    fn has_phases(&self) -> bool {
        self.job.kind == JobKind::Execution
    }

    async fn begin(&self, phase: PhaseName) -> Result<(), Stop> {
        self.phase(phase, PhaseState::Running).await
    }

    async fn finish(&self, phase: PhaseName) -> Result<(), Stop> {
        self.phase(phase, PhaseState::Completed).await
    }

    async fn phase(&self, phase: PhaseName, state: PhaseState) -> Result<(), Stop> {
        if self.is_past(phase, state) {
            return Ok(());
        }
        let verb = MoveJob { job: self.job.id.clone(), phase: Some((phase, state)), task: None };
        self.provost.submit(self.provost.host(), verb).await?;
        Ok(())
    }

    /// Whether an earlier daemon came further.
    fn is_past(&self, phase: PhaseName, state: PhaseState) -> bool {
        let known = self.job.phases.iter().find(|(name, _)| *name == phase).map(|(_, it)| it.state);
        known == Some(PhaseState::Completed) || known == Some(state)
    }

    /// Hands the work to the worker: judged like any other delegation.
    async fn delegate(&self) -> Result<TaskId, Stop> {
        if let Some(task) = self.job.tasks.last() {
            return Ok(task.clone());
        }
        let task = TaskId::parse(&format!("job_{}", self.job.id)).map_err(|err| failed(&err))?;
        let tied = MoveJob { job: self.job.id.clone(), phase: None, task: Some(task.clone()) };
        self.provost.submit(self.provost.host(), tied).await?;
        let verb = Delegate {
            task: task.clone(),
            goal: self.order.prompt.clone(),
            worker: self.job.worker.clone(),
            return_to: None,
            tool: Tool { name: self.job.method.clone(), ..Tool::default() },
            timeout: NO_SHORTER,
            model: None,
            context: None,
            watch_patterns: Vec::new(),
            working_dir: self.order.working_dir.clone(),
            format: None,
            payload: Json::from_value(&serde_json::json!({})),
            errand: self.errand().map(Box::new),
        };
        match self.provost.delegate(&self.job.who, verb).await? {
            Answer::Done(Delegated { task, .. }) => Ok(task),
            Answer::Parked(_) => Ok(task),
            Answer::Denied(denial) => {
                Err(Stop::Failed(format!("denied by rule {}: {}", denial.rule, denial.reason)))
            }
        }
    }

    /// What an agent is told of what its work is a part of.
    fn errand(&self) -> Option<Errand> {
        self.order.by_agent.then(|| Errand {
            job: format!("job_{}", self.job.id).into(),
            method: self.job.method.clone(),
            phase: PhaseName::Generate.word().into(),
            schema: None,
            harvest: true,
            copy: None,
            command: None,
        })
    }

    /// What an agent has answered and changed, as it was kept before its task ended.
    async fn collect(&self, task: &Task, kept: &mut JobResult) -> Result<(), Stop> {
        if !self.order.by_agent {
            return Ok(());
        }
        let (artifacts, id) = (self.provost.artifacts(), task.id().clone());
        let found = tokio::task::spawn_blocking(move || artifacts.of(&id)).await.map_err(|_| Stop::Over)?;
        let found = found.map_err(|err| failed(&err))?.unwrap_or_default();
        kept.left_out = found.left_out().map(Into::into);
        kept.artifacts = found.artifacts;
        kept.text = Some(clip(&found.answer, JOB_ANSWER_BYTES_MAX).into());
        Ok(())
    }

    /// Waits for a place, and for whoever has to say yes.
    async fn until_it_runs(&self, task: TaskId) -> Result<Arc<Task>, Stop> {
        loop {
            let now = self.provost.task_after(&task, has_not_run, WAIT).await?;
            if !has_not_run(&now) {
                return Ok(now);
            }
        }
    }

    async fn until_it_ends(&self, mut task: Arc<Task>, kept: &mut JobResult) -> Result<Arc<Task>, Stop> {
        let phase = self.has_phases().then_some(PhaseName::Generate);
        let (began, usual) = (Instant::now(), self.usual().await);
        let mut live = None;
        while !task.state.is_finished() {
            live = live.or_else(|| self.provost.outputs().get(task.id()));
            let so_far = began.elapsed().as_millis().saturating_mul(100) / usual.as_millis().max(1);
            let percent = u64::try_from(so_far).unwrap_or(NEARLY).min(NEARLY);
            self.provost.pulses().tell(&self.job.id, phase, u8::try_from(percent).unwrap_or(0));
            task = self.provost.task_after(task.id(), |task| !task.state.is_finished(), LOOK_EVERY).await?;
        }
        live = live.or_else(|| self.provost.outputs().get(task.id()));
        if let Some(live) = live {
            let said = said(&live);
            (kept.output, kept.earlier) = (Some(said.text.into()), said.earlier);
            kept.text = Some(clip(plain_text(&live.text(Stream::Out)).trim(), JOB_ANSWER_BYTES_MAX).into());
        }
        Ok(task)
    }

    /// How long such a run takes: the mean of those that are remembered.
    async fn usual(&self) -> Duration {
        let Ok(jobs) = self.provost.jobs(&[JobKind::Execution, JobKind::Background, JobKind::Code]).await
        else {
            return USUAL;
        };
        let same = jobs.iter().filter(|job| {
            (job.kind, job.state) == (self.job.kind, JobState::Completed) && job.worker == self.job.worker
        });
        let took: Vec<i64> = same.filter_map(|job| Some(job.ended_at?.0 - job.opened_at.0)).collect();
        let mean = took.iter().sum::<i64>().checked_div(i64::try_from(took.len()).unwrap_or(1));
        mean.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0).map_or(USUAL, Duration::from_millis)
    }

    /// Whether the run did what was asked.
    fn judge(&self, task: &Task, kept: &JobResult) -> Result<(), Stop> {
        let TaskState::Finished { status, .. } = task.state else { return Err(Stop::Over) };
        match status {
            Status::Completed => Ok(()),
            Status::Cancelled => Err(Stop::Cancelled),
            _ => {
                let summary = task.notes.last().map(|note| &*note.report.summary).unwrap_or_default();
                let line = summary.lines().next().filter(|line| !line.trim().is_empty());
                let tail =
                    kept.output.as_deref().map(|said| tail(said, JOB_ERROR_BYTES_MAX)).unwrap_or_default();
                let why = format!("{}\n{tail}", line.unwrap_or("the worker failed"));
                Err(Stop::Failed(why.trim_end().to_owned()))
            }
        }
    }
}

fn failed(why: &impl ToString) -> Stop {
    Stop::Failed(why.to_string())
}

/// What a worker has said, both streams as they came, for people.
pub(super) fn said(live: &LiveOutput) -> JobOutput {
    let total = live.total();
    let from = total.saturating_sub(JOB_OUTPUT_BYTES_MAX as u64);
    let (mut text, mut next, mut first) = (Vec::new(), from, None);
    loop {
        let page = live.read_from(next);
        if page.chunks.is_empty() {
            break;
        }
        first = first.or_else(|| page.chunks.first().map(|chunk| chunk.at));
        page.chunks.iter().for_each(|chunk| text.extend_from_slice(&chunk.bytes));
        next = page.next;
    }
    let earlier = first.unwrap_or(from);
    JobOutput { text: plain_text(&String::from_utf8_lossy(&text)), earlier }
}

/// The beginning of a text, of at most so many bytes.
fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The end of a text, of at most so many bytes.
fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}
