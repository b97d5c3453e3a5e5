//! Jobs and applies in the storm: each is owed from its beginning to its end, through all events in between.

use provost::base::{ApplyId, DaemonId, JobId, RepoPath};
use provost::domain::command::{ApplyFiles, CancelJob, EndApply, EndJob, MoveJob, OpenJob};
use provost::domain::{ApplyFile, Deed, Job, JobKind, JobState, Owed, StepOf};

use super::*;

impl Sim {
    pub(super) fn deed(&mut self) {
        match self.dice.roll(5) {
            0 | 1 => self.open_job(),
            2 => {
                let Some(job) = self.some_job() else { return };
                let who = if self.dice.roll(2) == 0 { job.who.clone() } else { self.someone() };
                self.say(&who, CancelJob { job: job.id.clone(), reason: "enough".into() }).ok();
            }
            3 => {
                let Some(job) = self.some_job() else { return };
                let state = self.pick(&[JobState::Completed, JobState::Failed]);
                self.end_job(&job.id, state).ok();
            }
            _ => self.begin_apply(),
        }
    }

    fn some_job(&mut self) -> Option<Arc<Job>> {
        let jobs: Vec<_> = self.core.state().jobs.iter().cloned().collect();
        (!jobs.is_empty()).then(|| self.pick(&jobs))
    }

    fn open_job(&mut self) {
        self.number += 1;
        let who = self.someone();
        let kind = self.pick(&[JobKind::Execution, JobKind::Workflow, JobKind::Background]);
        let workflow = self.some_job().filter(|job| job.kind == JobKind::Workflow && self.dice.roll(2) == 0);
        let step = workflow.map(|job| StepOf {
            job: job.id.clone(),
            number: 0,
            phase: provost::domain::PhaseName::Generate,
        });
        let verb = OpenJob {
            job: JobId::parse(&format!("j{}", self.number)).unwrap(),
            kind: if step.is_some() { JobKind::Step } else { kind },
            method: "agents.invoke".into(),
            title: "mend it".into(),
            agent: "Claude".into(),
            worker: agent("cli"),
            order: Json::null(),
            key: None,
            step,
        };
        if self.say(&who, verb).is_ok() {
            self.said.count("jobs");
        }
    }

    fn end_job(&mut self, job: &JobId, state: JobState) -> Said {
        self.say(&host(), EndJob { job: job.clone(), state, error: None, result: None, steps: 0 })
    }

    fn begin_apply(&mut self) {
        let files = vec![ApplyFile { path: RepoPath::parse("a").unwrap(), gone: false }];
        self.number += 1;
        let digest = Digest::of(format!("apply {}", self.number).as_bytes());
        let verb = ApplyFiles {
            digest,
            files,
            later: Vec::new(),
            diff: Box::default(),
            undoes: None,
            of: None,
            worker: None,
        };
        // A person is not asked, so that no approval without a task waits.
        self.say(&person("owner"), verb).unwrap();
        self.said.count("applies");
    }

    pub(super) fn run_job(&mut self, job: JobId, started: bool) -> Said {
        match started {
            true => self.end_job(&job, JobState::Failed),
            false => self.say(&host(), MoveJob { job, phase: None, task: None, runs: true }),
        }
    }

    pub(super) fn end_apply(&mut self, apply: ApplyId, by: AgentId) -> Said {
        self.say(&host(), EndApply { apply, by, applied: 1, skipped: 0, errors: 0, broken_off: false })
    }

    /// Sets the jobs and applies that a start finds, and the numbers given until then.
    pub(super) fn restore_deeds(&self, fresh: &mut State) {
        fresh.counters = self.model.folded.counters;
        fresh.jobs = self.model.folded.jobs.clone();
        for (id, (effect, started)) in &self.model.owed {
            let owed = Owed { id: *id, effect: effect.clone(), started: *started, by: DaemonId::default() };
            owed.in_memory().iter().for_each(|change| fresh.apply(change));
        }
    }

    pub(super) fn check_deeds(&self) {
        let (state, owed) = (self.core.state(), &self.model.owed);
        assert!(state.jobs == self.model.folded.jobs, "jobs are the fold of what was stored");
        for job in state.jobs.iter() {
            let has_begun = job.state == JobState::Running;
            let is_its = |effect: &Effect| matches!(effect, Effect::RunJob { job: it } if *it == job.id);
            let effects = owed.values().filter(|(effect, started)| is_its(effect) && *started == has_begun);
            let goes_on = !job.state.is_over() && job.step.is_none();
            assert_eq!(effects.count(), usize::from(goes_on), "{} is {:?}", job.id, job.state);
            assert_eq!(state.owing.has(&Deed::Job(job.id.clone())), goes_on);
        }
        let applies: BTreeSet<ApplyId> = owed
            .values()
            .filter_map(|(effect, _)| match effect {
                Effect::WriteFiles { apply, .. } => Some(*apply),
                _ => None,
            })
            .collect();
        assert!(state.owing.applies().eq(applies), "an apply is owed until its end");
    }
}
