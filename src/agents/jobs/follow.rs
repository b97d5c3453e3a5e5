//! Follows a run while it lasts: writes its worker's output into the job's log, and reports its estimated progress.
//!
//! The end of the task, new output and the next percent each wake it; nothing is polled.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::output_reader::OutputReader;
use super::runner::{JobRunner, Stop};
use super::runs::{NO_SHORTER, RunRequest};
use provost_base::{AgentId, TaskId};
use provost_domain::{JobKind, JobState, Refusal, Task};
use provost_jail::{LiveOutput, OutputBoard, Reader};

/// The expected time of a worker that was never seen to end.
const USUAL: Duration = Duration::from_secs(60);
/// The highest progress of a run that has not ended, in percent.
const NEARLY: u32 = 95;
/// The shortest time between two reports of a progress that follows the time.
const PROGRESS_STEP_MIN: Duration = Duration::from_millis(100);
/// Output that comes within this time after a write is written together.
const GATHERED_FOR: Duration = Duration::from_millis(50);
/// After this silence, an unfinished line is written, such as a question that waits for its answer.
const QUIET: Duration = Duration::from_millis(250);

/// The usual effort of a worker's run.
struct Usual {
    time: Duration,
    /// The usual number of steps, for a worker that reports its steps.
    steps: Option<u64>,
}

/// The output of a run so far.
struct OutputFollower {
    board: OutputBoard,
    task: TaskId,
    reader: OutputReader,
    /// The run's output, once there is one.
    live: Option<LiveOutput>,
    /// Output that comes before this moment is written at this moment.
    gathers_until: Instant,
}

impl JobRunner {
    /// Follows a run until its task is over. Returns the task as it is then, and the worker's output, if it has run.
    pub(super) async fn until_it_ends(
        &self,
        run: &RunRequest,
        task: Arc<Task>,
    ) -> Result<(Arc<Task>, Option<LiveOutput>), Stop> {
        let began = Instant::now();
        let usual = self.usual(&run.worker).await;
        let mut hearing = self.hearing(run, &task);
        let mut end = std::pin::pin!(self.end_of(&task));
        loop {
            // A task that has never run has no progress.
            if !task.state.is_finished() {
                let percent = usual.progress(began.elapsed(), &hearing.reader);
                let phase = self.has_phases().then_some(run.phase);
                self.service.pulses().tell(&self.job, phase, self.of_phase(percent));
            }
            let next = usual.next_change(began, &hearing.reader);
            let ended = tokio::select! {
                biased;
                ended = &mut end => Some(ended?),
                () = hearing.has_news() => None,
                () = until(next) => continue,
            };
            hearing = hearing.hear(ended.is_some()).await?;
            if hearing.live.is_some() {
                self.service.pulses().has_moved();
            }
            if let Some(task) = ended {
                let steps = if hearing.reader.counts() { hearing.reader.steps() } else { 0 };
                self.steps.fetch_add(steps, Ordering::Relaxed);
                return Ok((task, hearing.live));
            }
        }
    }

    fn hearing(&self, run: &RunRequest, task: &Task) -> OutputFollower {
        let reader = if run.command.is_some() { Reader::Lines } else { self.reader_of(&run.worker) };
        let reader = OutputReader::new(self.service.job_logs(), self.job.id.clone(), reader);
        let (board, task) = (self.service.provost().outputs().clone(), task.id().clone());
        OutputFollower { board, task, reader, live: None, gathers_until: Instant::now() }
    }

    /// Waits for a task, and returns it when it is over.
    async fn end_of(&self, task: &Task) -> Result<Arc<Task>, Refusal> {
        let goes_on = |it: &Task| !it.state.is_finished();
        loop {
            let now = self.service.provost().task_after(task.id(), goes_on, NO_SHORTER.as_duration()).await?;
            if !goes_on(&now) {
                return Ok(now);
            }
        }
    }

    fn reader_of(&self, worker: &AgentId) -> Reader {
        let profile = self.service.provost().profiles().get(worker).cloned();
        profile.and_then(|it| it.agent.map(|agent| agent.reader)).unwrap_or(Reader::Lines)
    }

    /// Returns the usual effort of such a run: the mean of the remembered ones.
    async fn usual(&self, worker: &AgentId) -> Usual {
        const RUNS: &[JobKind] = &[JobKind::Execution, JobKind::Background, JobKind::Code, JobKind::Step];
        let jobs = self.service.jobs(RUNS).await.unwrap_or_default();
        let same = jobs
            .iter()
            .filter(|job| (job.kind, job.state, &job.worker) == (self.job.kind, JobState::Completed, worker));
        let took: Vec<(u64, u64)> = same
            .filter_map(|job| Some((u64::try_from(job.ended_at?.0 - job.opened_at.0).ok()?, job.steps)))
            .collect();
        let number = u64::try_from(took.len()).unwrap_or(u64::MAX);
        let mean = |sum: u64| sum.checked_div(number).filter(|it| *it > 0);
        Usual {
            time: mean(took.iter().map(|it| it.0).sum()).map_or(USUAL, Duration::from_millis),
            steps: mean(took.iter().map(|it| it.1).sum()),
        }
    }
}

impl Usual {
    /// Returns the usual number of steps, if the run counts its own.
    fn steps(&self, reader: &OutputReader) -> Option<u64> {
        self.steps.filter(|_| reader.counts())
    }

    /// Returns the estimated progress of a run, in percent.
    fn progress(&self, since: Duration, reader: &OutputReader) -> u8 {
        let so_far = match self.steps(reader) {
            Some(usual) => reader.steps().saturating_mul(100) / usual,
            None => {
                let so_far = since.as_millis().saturating_mul(100) / self.time.as_millis().max(1);
                u64::try_from(so_far).unwrap_or(u64::MAX)
            }
        };
        u8::try_from(so_far.min(NEARLY.into())).unwrap_or(0)
    }

    /// Returns the moment of the next change of a progress that follows the time; `None` if it does not follow it.
    fn next_change(&self, began: Instant, reader: &OutputReader) -> Option<Instant> {
        let (now, last) = (began.elapsed(), self.time.saturating_mul(NEARLY) / 100);
        if self.steps(reader).is_some() || now >= last {
            return None;
        }
        let step = (self.time / 100).max(PROGRESS_STEP_MIN);
        let passed = now.as_millis() / step.as_millis().max(1);
        let next = step.saturating_mul(u32::try_from(passed + 1).unwrap_or(u32::MAX));
        began.checked_add(next)
    }
}

impl OutputFollower {
    /// Waits until there is output to write.
    async fn has_news(&mut self) {
        let live = match &self.live {
            Some(live) => live,
            None => {
                let live = self.board.appears(&self.task).await;
                self.live.insert(live)
            }
        };
        let quiet = self.reader.is_within_a_line().then(|| self.gathers_until + QUIET);
        tokio::select! {
            () = until(quiet) => {}
            () = async {
                sleep_until(self.gathers_until).await;
                live.grows_beyond(self.reader.at()).await;
            } => {}
        }
    }

    /// Writes the new output, on a thread that may block.
    async fn hear(mut self, is_over: bool) -> Result<Self, Stop> {
        self.live = self.live.or_else(|| self.board.get(&self.task));
        let Some(live) = self.live.clone() else { return Ok(self) };
        let heard = tokio::task::spawn_blocking(move || {
            self.reader.hear(&live, is_over);
            self.gathers_until = Instant::now() + GATHERED_FOR;
            self
        });
        heard.await.map_err(|_| Stop::Over)
    }
}

/// Waits until the given moment; for ever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
