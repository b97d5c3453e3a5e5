//! Turns events about jobs into events for editors. A6s 4.

use std::collections::BTreeMap;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::A6s;
use super::audience::Written;
use super::events::A6sEvent;
use super::map::{IN_BACKGROUND, execution_id, has_phases, task_id, task_progress};
use super::pace::Pace;
use provost_agents::{JobProgress, KEPT_WITHIN};
use provost_base::JobId;
use provost_domain::{Event, EventKind, Job, JobEvent, JobKind, JobState, PhaseState};

impl A6s {
    /// Sends the events of jobs to editors from this call on, until the daemon stops.
    pub fn tell(self, stop: CancellationToken) -> impl Future<Output = ()> + Send {
        let mut events = self.provost().engine().follow_beside_posts();
        let mut pulses = self.service().pulses().follow();
        let mut teller = Teller { door: self, pace: Pace::default(), late: Late::default() };
        async move {
            loop {
                tokio::select! {
                    // The beginning of a part is sent before its progress.
                    biased;
                    () = stop.cancelled() => break,
                    event = events.next() => match event {
                        Ok(event) => teller.tell_of(&event).await,
                        Err(why) => {
                            // A client that asks for the status gets the missed state.
                            tracing::warn!(%why, "editors are not told of everything");
                            events = teller.door.provost().engine().follow_beside_posts();
                        }
                    },
                    job = teller.late.next() => teller.tell_end_of(&job).await,
                    () = due(teller.pace.next_due()) => teller.tell_due(),
                    pulse = pulses.recv() => match pulse {
                        Ok(pulse) => teller.tell_progress(pulse),
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => break,
                    },
                }
            }
            // The ends of jobs that end with the daemon are sent before the connections end.
            while let Ok(Some(event)) = events.ready().await {
                teller.tell_of(&event).await;
            }
            for job in std::mem::take(&mut teller.late.0).into_keys() {
                teller.tell_end_of(&job).await;
            }
            teller.door.told().cancel();
        }
    }
}

/// Returns at the given moment; never if there is none.
async fn due(at: Option<std::time::Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// The task that sends events to all connections.
struct Teller {
    door: A6s,
    pace: Pace,
    late: Late,
}

impl Teller {
    /// Sends an event now, or as soon as its pace allows.
    fn tell_on_time(&mut self, event: A6sEvent) {
        let written = self.pace.tell(event, Instant::now().into_std());
        self.send(written);
    }

    /// Sends the events that have waited until now.
    fn tell_due(&mut self) {
        let written = self.pace.due(Instant::now().into_std());
        self.send(written);
    }

    fn send(&self, written: Option<Written>) {
        if let Some(written) = written {
            self.door.audience().tell(&written);
        }
    }

    async fn tell_end_of(&mut self, job: &JobId) {
        if let Ok(job) = self.door.service().job(job).await {
            self.tell_end(&job).await;
        }
    }

    async fn tell_of(&mut self, event: &Event) {
        let EventKind::Job(event) = &event.kind else { return };
        let Ok(job) = self.door.service().job(event.job()).await else { return };
        if IN_BACKGROUND.contains(&job.kind) {
            self.tell_task(&job);
        }
        match event {
            JobEvent::JobMoved { phase: Some((name, state)), .. } if has_phases(&job) => {
                let progress = if *state == PhaseState::Completed { 100 } else { 0 };
                let execution = execution_id(&job.id).into();
                let (phase, status) = (name.as_str(), state.as_str());
                self.tell_on_time(A6sEvent::Phase { execution, phase, status, progress });
            }
            // Its run is being stopped; its changes are known only afterwards.
            JobEvent::JobEnded { state: JobState::Cancelled, .. }
                if self.door.service().pulses().of(&job.id).is_some() =>
            {
                self.late.wait_for(&job.id);
            }
            JobEvent::JobEnded { .. } => self.tell_end(&job).await,
            JobEvent::JobKept { .. } if self.late.0.remove(&job.id).is_some() => self.tell_end(&job).await,
            _ => {}
        }
    }

    fn tell_task(&mut self, job: &Job) {
        let progress = task_progress(job, self.door.service().pulses().of(&job.id).as_ref());
        let (task, status) = (task_id(&job.id).into(), job.state.as_str());
        self.tell_on_time(A6sEvent::Task { task, status, progress });
    }

    /// Sends the end of a job. A job without files has nothing for an editor to show.
    async fn tell_end(&mut self, job: &Job) {
        let result = match self.door.service().job_result(&job.id).await {
            Ok(result) => result,
            Err(err) => return tracing::error!(%err, job = %job.id, "editors are not told of an end"),
        };
        let unattended = self.door.waiters().end(&job.id);
        match job.kind {
            JobKind::Execution | JobKind::Workflow => {}
            // The connections that got the error about the delay are told; if no request has got the answer, every
            // connection is.
            JobKind::Code => {
                let is_news = unattended && !result.artifacts.is_empty();
                if !is_news && !self.door.audience().is_watched(&execution_id(&job.id)) {
                    return;
                }
            }
            _ if result.artifacts.is_empty() => return,
            _ => {}
        }
        // A part in progress has ended with the job.
        if has_phases(job)
            && let Some((name, phase)) = job.phases.current()
            && job.state != JobState::Completed
        {
            let execution = execution_id(&job.id).into();
            let (phase, status) = (name.as_str(), phase.state.as_str());
            self.tell_on_time(A6sEvent::Phase { execution, phase, status, progress: 0 });
        }
        let whole = match self.door.whole(job, result, None).await {
            Ok(whole) => whole,
            Err(err) => {
                return tracing::error!(err = err.as_str(), job = %job.id, "editors are not told of an end");
            }
        };
        let Ok(result) = serde_json::value::to_raw_value(&whole) else { return };
        self.tell_on_time(A6sEvent::Complete { execution: execution_id(&job.id).into(), result });
    }

    fn tell_progress(&mut self, pulse: JobProgress) {
        let JobProgress { job, kind, phase, progress } = pulse;
        let told = match phase {
            Some(phase) => A6sEvent::Phase {
                execution: execution_id(&job).into(),
                phase: phase.as_str(),
                status: PhaseState::Running.as_str(),
                progress,
            },
            None if IN_BACKGROUND.contains(&kind) => running(&job, progress),
            None => return,
        };
        self.tell_on_time(told);
    }
}

/// The cancelled jobs whose changes are not known yet, and until when the task waits for each.
#[derive(Default)]
struct Late(BTreeMap<JobId, Instant>);

impl Late {
    fn wait_for(&mut self, job: &JobId) {
        self.0.insert(job.clone(), Instant::now() + KEPT_WITHIN);
    }

    /// Returns a job when its time is over. May be cancelled while it waits.
    async fn next(&mut self) -> JobId {
        let Some((job, until)) = self.0.iter().min_by_key(|(_, until)| **until) else {
            return std::future::pending().await;
        };
        let job = job.clone();
        tokio::time::sleep_until(*until).await;
        self.0.remove(&job);
        job
    }
}

fn running(job: &JobId, progress: u8) -> A6sEvent {
    A6sEvent::Task { task: task_id(job).into(), status: JobState::Running.as_str(), progress }
}
