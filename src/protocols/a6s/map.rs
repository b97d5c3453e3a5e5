//! Translates jobs into the protocol's words. A6s 3.0, and 5 where document and clients differ.

use super::wire;
use provost_agents::{Issue, JobProgress, Review};
use provost_base::JobId;
use provost_domain::{Artifact, Job, JobKind, JobResult, JobState, Phase, PhaseName, PhaseState, Usage};

/// Returns the id of a job as an execution.
pub(super) fn execution_id(job: &JobId) -> String {
    format!("exec_{job}")
}

/// Returns the id of a job as a background task.
pub(super) fn task_id(job: &JobId) -> String {
    format!("task_{job}")
}

/// Returns whether editors get events of a job's phases.
pub(super) fn has_phases(job: &Job) -> bool {
    matches!(job.kind, JobKind::Execution | JobKind::Workflow)
}

/// Returns the content of `execution.status` and `execution.complete`.
pub(super) fn execution(job: &Job, result: JobResult, pulse: Option<&JobProgress>) -> wire::Execution {
    let phases: Vec<wire::Phase> = job.phases.iter().map(|(name, it)| phase(name, it, pulse)).collect();
    let (name, progress) = match job.phases.current() {
        Some((name, it)) => (name, progress(name, it, pulse)),
        None => (PhaseName::Research, 0),
    };
    wire::Execution {
        execution_id: execution_id(&job.id),
        workflow_id: None,
        status: match job.state {
            JobState::Queued | JobState::Running => "running",
            JobState::Completed => "success",
            JobState::Failed | JobState::Cancelled => "failure",
        },
        phases,
        artifacts: result.artifacts.iter().map(artifact).collect(),
        phase: name.as_str().into(),
        progress: if job.state == JobState::Completed { 100 } else { progress },
        error: job.error.as_deref().or(result.left_out.as_deref()).map(Into::into),
        cancelled: job.state == JobState::Cancelled,
        steps: Vec::new(),
        usage: result.usage.as_ref().map(used),
    }
}

pub(super) fn used(it: &Usage) -> wire::Used {
    wire::Used {
        input_tokens: it.input,
        output_tokens: it.output,
        reasoning_tokens: it.reasoning,
        cache_read_tokens: it.cache_read,
        cache_write_tokens: it.cache_write,
        cost_usd: it.cost_microusd.map(|it| it as f64 / 1e6),
        model: it.model.as_deref().map(Into::into),
    }
}

fn phase(name: PhaseName, it: &Phase, pulse: Option<&JobProgress>) -> wire::Phase {
    let took = it.began_at.zip(it.ended_at).map(|(began, ended)| ended.0.saturating_sub(began.0));
    wire::Phase {
        name: name.as_str(),
        status: it.state.as_str(),
        progress: progress(name, it, pulse),
        duration: took.and_then(|ms| u64::try_from(ms).ok()),
    }
}

fn progress(name: PhaseName, it: &Phase, pulse: Option<&JobProgress>) -> u8 {
    match it.state {
        PhaseState::Completed => 100,
        PhaseState::Running => {
            pulse.filter(|pulse| pulse.phase == Some(name)).map_or(0, |pulse| pulse.progress)
        }
        PhaseState::Pending | PhaseState::Failed => 0,
    }
}

/// Encodes the findings of a review.
pub(super) fn review(it: &Review) -> wire::Review {
    let issue = |it: &Issue| wire::Issue {
        severity: it.severity.name(),
        message: it.message.clone(),
        line: it.line,
        suggestion: it.suggestion.clone(),
    };
    wire::Review { issues: it.issues.iter().map(issue).collect(), summary: it.summary.clone() }
}

/// Returns a row of `background.list`.
pub(super) fn background(
    job: &Job,
    pulse: Option<&JobProgress>,
    waits: Option<&str>,
) -> wire::BackgroundTask {
    wire::BackgroundTask {
        id: task_id(&job.id),
        // This is the only text of a row that every client shows.
        task: waits.map_or_else(|| job.title.to_string(), |waits| format!("[{waits}] {}", job.title)),
        agent_type: job.agent.as_ref().into(),
        status: job.state.as_str(),
        progress: task_progress(job, pulse),
        started_at: job.opened_at.rfc3339(),
        completed_at: job.ended_at.map(|at| at.rfc3339()),
        error_msg: job.error.as_deref().map(Into::into),
    }
}

/// Returns the progress of a job without parts; 100 once it is done.
pub(super) fn task_progress(job: &Job, pulse: Option<&JobProgress>) -> u8 {
    match job.state {
        JobState::Completed => 100,
        JobState::Running => pulse.map_or(0, |it| it.progress.min(99)),
        JobState::Queued | JobState::Failed | JobState::Cancelled => 0,
    }
}

/// The kinds of jobs that clients know as background tasks: those launched as such, slow answers, and scans.
pub(super) const IN_BACKGROUND: &[JobKind] = &[JobKind::Background, JobKind::Code, JobKind::Scan];

/// Encodes an artifact.
pub(super) fn artifact(it: &Artifact) -> wire::Artifact {
    wire::Artifact {
        id: it.id.as_ref().into(),
        kind: it.kind.as_ref().into(),
        path: it.path.as_ref().into(),
        content: it.content.as_ref().into(),
        language: it.language.as_ref().into(),
        base_hash: it.base_hash.map(|hash| hash.to_string()),
    }
}
