//! Jobs, at one moment.

use std::sync::Arc;

use super::View;
use crate::{Job, JobKind, State};
use provost_base::{Digest, JobId, Timestamp};

/// The query for the job with this id, if it is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OneJob(pub JobId);

impl View for OneJob {
    type Out = Option<Arc<Job>>;

    fn look(self, _now: Timestamp, state: &State) -> Option<Arc<Job>> {
        state.jobs.get(&self.0).cloned()
    }
}

/// The query for the newest job that answers the same question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SameJob(pub Digest);

impl View for SameJob {
    type Out = Option<Arc<Job>>;

    fn look(self, _now: Timestamp, state: &State) -> Option<Arc<Job>> {
        state.jobs.same(&self.0).cloned()
    }
}

/// The query for the jobs of these kinds, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobsOf(pub &'static [JobKind]);

impl View for JobsOf {
    type Out = Vec<Arc<Job>>;

    fn look(self, _now: Timestamp, state: &State) -> Vec<Arc<Job>> {
        let mut jobs: Vec<Arc<Job>> =
            state.jobs.iter().filter(|job| self.0.contains(&job.kind)).cloned().collect();
        jobs.sort_by(|a, b| (a.opened_at, &a.id).cmp(&(b.opened_at, &b.id)));
        jobs
    }
}

/// The query for the jobs that are not over, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfinishedJobs;

impl View for UnfinishedJobs {
    type Out = Vec<Arc<Job>>;

    fn look(self, _now: Timestamp, state: &State) -> Vec<Arc<Job>> {
        let mut jobs: Vec<Arc<Job>> = state.jobs.iter().filter(|job| !job.state.is_over()).cloned().collect();
        jobs.sort_by(|a, b| (a.opened_at, &a.id).cmp(&(b.opened_at, &b.id)));
        jobs
    }
}

/// The query for the steps of a workflow, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepsOf(pub JobId);

impl View for StepsOf {
    type Out = Vec<Arc<Job>>;

    fn look(self, _now: Timestamp, state: &State) -> Vec<Arc<Job>> {
        let mut steps: Vec<Arc<Job>> = state.jobs.steps_of(&self.0).cloned().collect();
        steps.sort_by_key(|job| job.step.as_ref().map(|step| step.number));
        steps
    }
}
