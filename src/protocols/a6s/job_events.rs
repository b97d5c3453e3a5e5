//! Turns events about jobs into events for editors. A6s 4.

use std::collections::BTreeMap;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::A6s;
use super::events::A6sEvent;
use super::map::{IN_BACKGROUND, execution_id, has_phases, task_id, task_progress};
use provost_agents::{KEPT_WITHIN, Pulse};
use provost_base::JobId;
use provost_domain::{EventKind, Job, JobEvent, JobKind, JobState, PhaseState};

impl A6s {
    /// Tells editors what becomes of jobs, until the daemon stops.
    pub async fn tell(self, stop: CancellationToken) {
        let mut events = self.provost().engine().subscribe_beside_posts();
        let mut pulses = self.service().pulses().follow();
        let mut late = Late::default();
        loop {
            tokio::select! {
                // How far a part is comes after that it has begun.
                biased;
                () = stop.cancelled() => break,
                event = events.recv() => match event {
                    Ok(event) => {
                        if let EventKind::Job(event) = &event.kind {
                            self.tell_of(event, &mut late).await;
                        }
                    }
                    // A client that asks for the status sees what it has missed.
                    Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "editors were not told of everything"),
                    Err(RecvError::Closed) => break,
                },
                job = late.next() => self.tell_end_of(&job).await,
                pulse = pulses.recv() => match pulse {
                    Ok(pulse) => self.tell_pulse(pulse),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                },
            }
        }
        // The ends of jobs that end with the daemon are sent before the connections end.
        while let Ok(event) = events.try_recv() {
            if let EventKind::Job(event) = &event.kind {
                self.tell_of(event, &mut late).await;
            }
        }
        for job in std::mem::take(&mut late.0).into_keys() {
            self.tell_end_of(&job).await;
        }
        self.told().cancel();
    }

    /// Tells it now, or as soon as it may be told.
    fn tell_on_time(&self, told: A6sEvent) {
        let Some(mut later) = self.hub().tell(told, Instant::now().into_std()) else { return };
        let hub = self.hub().clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep_until(later.at.into()).await;
                match hub.tell_waiting(&later.about, Instant::now().into_std()) {
                    Some(at) => later.at = at,
                    None => return,
                }
            }
        });
    }

    async fn tell_end_of(&self, job: &JobId) {
        if let Ok(job) = self.service().job(job).await {
            self.tell_end(&job).await;
        }
    }

    async fn tell_of(&self, event: &JobEvent, late: &mut Late) {
        let Ok(job) = self.service().job(event.job()).await else { return };
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
            // Its run is being stopped, and then it is known what it has changed.
            JobEvent::JobEnded { state: JobState::Cancelled, .. }
                if self.service().pulses().of(&job.id).is_some() =>
            {
                late.wait_for(&job.id);
            }
            JobEvent::JobEnded { .. } => self.tell_end(&job).await,
            JobEvent::JobKept { .. } if late.0.remove(&job.id).is_some() => self.tell_end(&job).await,
            _ => {}
        }
    }

    fn tell_task(&self, job: &Job) {
        let progress = task_progress(job, self.service().pulses().of(&job.id).as_ref());
        let (task, status) = (task_id(&job.id).into(), job.state.as_str());
        self.tell_on_time(A6sEvent::Task { task, status, progress });
    }

    /// A job without files is nothing that an editor could look at.
    async fn tell_end(&self, job: &Job) {
        let result = match self.service().job_result(&job.id).await {
            Ok(result) => result,
            Err(err) => return tracing::error!(%err, job = %job.id, "editors are not told of an end"),
        };
        let unattended = self.waiters().end(&job.id);
        match job.kind {
            JobKind::Execution | JobKind::Workflow => {}
            // The connections that got the error about the delay are told; if no request has got the
            // answer, every connection is.
            JobKind::Code => {
                let is_news = unattended && !result.artifacts.is_empty();
                if !is_news && !self.hub().is_watched(&execution_id(&job.id)) {
                    return;
                }
            }
            _ if result.artifacts.is_empty() => return,
            _ => {}
        }
        // A part that was under way has ended with it.
        if has_phases(job)
            && let Some((name, phase)) = job.phases.current()
            && job.state != JobState::Completed
        {
            let execution = execution_id(&job.id).into();
            let (phase, status) = (name.as_str(), phase.state.as_str());
            self.tell_on_time(A6sEvent::Phase { execution, phase, status, progress: 0 });
        }
        let whole = match self.whole(job, result, None).await {
            Ok(whole) => whole,
            Err(err) => {
                return tracing::error!(err = err.as_str(), job = %job.id, "editors are not told of an end");
            }
        };
        let Ok(result) = serde_json::value::to_raw_value(&whole) else { return };
        self.tell_on_time(A6sEvent::Complete { execution: execution_id(&job.id).into(), result });
    }

    fn tell_pulse(&self, pulse: Pulse) {
        let Pulse { job, kind, phase, progress } = pulse;
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

/// Jobs that were taken back, of which it is not known yet what they had changed, and until when that is waited for.
#[derive(Default)]
struct Late(BTreeMap<JobId, Instant>);

impl Late {
    fn wait_for(&mut self, job: &JobId) {
        self.0.insert(job.clone(), Instant::now() + KEPT_WITHIN);
    }

    /// One that is not waited for any longer. May be dropped while it waits.
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
