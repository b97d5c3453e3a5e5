//! `workflows.run`: steps, each a job of its own, taken in the order of a pattern. A6s 6.9.
//!
//! A workflow's phases begin and end with its steps. Its result is the final state of its copy; under `parallel`,
//! where each step has a copy, the combined state of all copies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::plan::Plan;
use super::runner::{JobRunner, Stop, failed};
use super::runs::{Ran, RunRequest, never_ran};
use super::{JobAsk, JobProgress, RESTARTED, fresh_job_id};
use crate::prompts::{Ask, PromptFor};
use crate::workflows::{Assignee, Flow, Pattern, Step, TemplateValues};
use provost_base::Json;
use provost_base::limits::{JOB_ERROR_BYTES_MAX, WORKFLOW_TOLD_BYTES_MAX};
use provost_domain::{Artifact, Failure, Job, JobKind, JobResult, JobState, PhaseName, Refusal, StepOf};

/// Exit codes by which a check reports that it was not possible, as for `git bisect run` and in the shell.
const NOT_CHECKED: std::ops::RangeInclusive<u8> = 125..=127;

/// A workflow that is being carried out.
pub(super) struct WorkflowRun<'a> {
    pub(super) runner: &'a JobRunner,
    pub(super) flow: &'a Flow,
    steps: Vec<JobRunner>,
    /// The index of the present phase.
    at: AtomicUsize,
}

/// The results and answers so far.
#[derive(Default)]
pub(super) struct SoFar {
    /// The answers of steps, in their order.
    pub(super) answers: Vec<(Box<str>, String)>,
    /// Files with a proposed content.
    artifacts: Vec<Artifact>,
    left_out: Option<Box<str>>,
    incomplete: bool,
}

/// The outcome of a check command.
pub(super) enum Checked {
    /// The command has succeeded, with this output.
    Passed(String),
    /// The command has failed, with this output.
    Failed(String),
}

impl JobRunner {
    /// Carries out all steps of a workflow.
    pub(super) async fn workflow(&self, flow: &Flow, kept: &mut JobResult) -> Result<(), Stop> {
        self.begin(PhaseName::Research).await?;
        let flowing =
            WorkflowRun { runner: self, flow, steps: self.open_steps(flow).await?, at: AtomicUsize::new(0) };
        let first = flow.steps.first().map_or(PhaseName::Generate, |step| step.phase);
        flowing.reach(first.min(PhaseName::Inspect)).await?;
        let mut so_far = SoFar::default();
        let went = match flow.pattern {
            Pattern::Sequential => flowing.in_sequence(&mut so_far).await,
            Pattern::Parallel => flowing.at_once(&mut so_far).await,
            Pattern::Supervisor => flowing.supervised(&mut so_far).await,
            Pattern::MakerChecker => flowing.made_and_checked(&mut so_far).await,
        };
        (kept.artifacts, kept.left_out) = (so_far.artifacts, so_far.left_out);
        kept.incomplete = so_far.incomplete;
        for used in flowing.steps.iter().filter_map(JobRunner::has_used) {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).add(&used);
        }
        kept.text = so_far.answers.pop().map(|(_, answer)| answer.into());
        went?;
        flowing.reach(PhaseName::Review).await?;
        self.finish(PhaseName::Review).await
    }

    /// Opens a job for each step. If an earlier daemon has opened them and none has begun, takes those.
    async fn open_steps(&self, flow: &Flow) -> Result<Vec<JobRunner>, Stop> {
        let known = self.service.job_steps(&self.job.id).await?;
        // A step that had begun may have changed files; beginning it again could do its work twice.
        if known.iter().any(|step| step.state != JobState::Queued) {
            return Err(Stop::Failed(RESTARTED.into()));
        }
        let mut steps = Vec::with_capacity(flow.steps.len());
        for (number, step) in (0_u16..).zip(&flow.steps) {
            let is = |job: &&Arc<Job>| job.step.as_ref().is_some_and(|it| it.number == number);
            let ask = JobAsk {
                id: fresh_job_id()?,
                kind: JobKind::Step,
                method: "workflows.run",
                title: step.name.to_string(),
                agent: step.who.shown.to_string(),
                worker: step.who.worker.clone(),
                prompt: step.prompt.as_deref().unwrap_or_default().to_owned(),
                working_dir: None,
                by_agent: true,
                key: None,
                plan: Plan::Once,
            };
            let (job, order) = match known.iter().find(is) {
                Some(job) => (job.clone(), self.order.clone()),
                None => {
                    let of = StepOf { job: self.job.id.clone(), number, phase: step.phase };
                    self.service.record_job(&self.job.who, ask, Some(of)).await?
                }
            };
            steps.push(JobRunner::new(self.service.clone(), job, order));
        }
        Ok(steps)
    }
}

impl WorkflowRun<'_> {
    /// Takes the steps one after another, up to the first that fails.
    async fn in_sequence(&self, so_far: &mut SoFar) -> Result<(), Stop> {
        for (number, step) in self.flow.steps.iter().enumerate() {
            let went = match (&step.prompt, step.until.is_empty()) {
                (None, _) => {
                    self.command(number, &step.command, so_far).await.and_then(|checked| match checked {
                        Checked::Passed(said) => Ok(said),
                        Checked::Failed(said) => Err(unsuccessful("it has failed", &said)),
                    })
                }
                (Some(_), true) => self.ask(number, "", "", so_far).await,
                (Some(_), false) => self.until(number, step, so_far).await,
            };
            self.over(number, went, so_far).await?;
        }
        Ok(())
    }

    /// Asks an agent until a command succeeds.
    async fn until(&self, number: usize, step: &Step<Assignee>, so_far: &mut SoFar) -> Result<String, Stop> {
        let mut answer = String::new();
        for round in 0..=step.max_rounds {
            let said = match self.command(number, &step.until, so_far).await? {
                Checked::Passed(said) => return Ok(if answer.is_empty() { said } else { answer }),
                Checked::Failed(said) => said,
            };
            if round == step.max_rounds {
                return Err(unsuccessful(&format!("the check fails after {round} rounds"), &said));
            }
            answer = self.ask(number, &said, "", so_far).await?;
        }
        Ok(answer)
    }

    /// Takes all steps at once. If two of them have changed one file in different ways, the workflow fails:
    /// no rule could choose between them.
    async fn at_once(&self, so_far: &mut SoFar) -> Result<(), Stop> {
        let each = self.flow.steps.iter().enumerate().map(|(number, step)| async move {
            let mut its = SoFar::default();
            let went = match &step.prompt {
                Some(_) => self.ask(number, "", "", &mut its).await,
                None => {
                    self.command(number, &step.command, &mut its).await.and_then(|checked| match checked {
                        Checked::Passed(said) => Ok(said),
                        Checked::Failed(said) => Err(unsuccessful("it has failed", &said)),
                    })
                }
            };
            let went = self.over(number, went, &mut its).await;
            (step.name.clone(), its, went)
        });
        let (mut first_fault, mut quarrels) = (None, Vec::new());
        let mut makers: Vec<Box<str>> = Vec::new();
        for (name, its, went) in join_all(each).await {
            so_far.answers.extend(its.answers);
            so_far.left_out = so_far.left_out.take().or(its.left_out);
            so_far.incomplete |= its.incomplete;
            for artifact in its.artifacts {
                match so_far.artifacts.iter().position(|known| known.path == artifact.path) {
                    None => {
                        so_far.artifacts.push(artifact);
                        makers.push(name.clone());
                    }
                    Some(at) if is_the_same(&so_far.artifacts[at], &artifact) => {}
                    Some(at) => quarrels.push(format!("{} ({} and {name})", artifact.path, makers[at])),
                }
            }
            first_fault = first_fault.or(went.err());
        }
        match (first_fault, quarrels.is_empty()) {
            (Some(fault), _) => Err(fault),
            (None, true) => Ok(()),
            (None, false) => {
                let files = quarrels.join(", ");
                Err(Stop::Failed(format!("two steps have changed the same file in different ways: {files}")))
            }
        }
    }

    /// Asks a step's agent with its own prompt, and returns its answer.
    pub(super) async fn ask(
        &self,
        number: usize,
        check: &str,
        task: &str,
        so_far: &mut SoFar,
    ) -> Result<String, Stop> {
        let step = &self.flow.steps[number];
        let known = TemplateValues { inputs: &self.flow.inputs, answers: &so_far.answers, check, task };
        let says = known.prompt(step.prompt.as_deref().unwrap_or_default());
        self.ask_for(number, &says, None, so_far).await
    }

    /// Asks a step's agent with the given words, and for the given form.
    pub(super) async fn ask_for(
        &self,
        number: usize,
        says: &str,
        schema: Option<&Json>,
        so_far: &mut SoFar,
    ) -> Result<String, Stop> {
        let prompts = &self.runner.service.configured().prompts;
        let preamble = self.flow.steps[number].who.preamble.as_deref().unwrap_or_default();
        let ask = Ask { task: says, preamble, ..Ask::default() };
        let prompt = prompts.render(PromptFor::Invoke, &ask).map_err(|err| failed(&err))?;
        self.tell(number, prompt, schema, so_far).await
    }

    /// Passes a prompt to a step's agent unchanged.
    pub(super) async fn tell(
        &self,
        number: usize,
        prompt: String,
        schema: Option<&Json>,
        so_far: &mut SoFar,
    ) -> Result<String, Stop> {
        let run = RunRequest { schema: schema.cloned(), ..self.run_of(number, prompt.into(), None) };
        let ran = self.run(number, run, so_far).await?.done()?;
        Ok(ran.answer)
    }

    /// Runs a command in the place of a step's agent.
    pub(super) async fn command(
        &self,
        number: usize,
        command: &[Box<str>],
        so_far: &mut SoFar,
    ) -> Result<Checked, Stop> {
        let known =
            TemplateValues { inputs: &self.flow.inputs, answers: &so_far.answers, check: "", task: "" };
        let command: Vec<Box<str>> = command.iter().map(|part| known.argument(part).into()).collect();
        let run = self.run_of(number, command.join(" ").into(), Some(command));
        let ran = self.run(number, run, so_far).await?;
        let said = format!("{}\n{}", ran.answer, ran.last_words).trim().to_owned();
        let said =
            said[said.ceil_char_boundary(said.len().saturating_sub(WORKFLOW_TOLD_BYTES_MAX))..].to_owned();
        match exit_code(&ran) {
            Some(code) if !NOT_CHECKED.contains(&code) => Ok(Checked::Failed(said)),
            _ => ran.done().map(|_| Checked::Passed(said)),
        }
    }

    fn run_of(&self, number: usize, prompt: Box<str>, command: Option<Vec<Box<str>>>) -> RunRequest {
        let shared = self.flow.pattern != Pattern::Parallel;
        let step = &self.flow.steps[number];
        RunRequest {
            phase: step.phase,
            worker: step.who.worker.clone(),
            by_agent: true,
            prompt,
            working_dir: self.runner.order.working_dir.clone(),
            schema: None,
            copy: shared.then(|| self.runner.job.id.clone()),
            command,
            harvest: true,
        }
    }

    /// Does one run for a step. The workflow's phase begins with it, and its progress is that of the phase's steps.
    async fn run(&self, number: usize, run: RunRequest, so_far: &mut SoFar) -> Result<Ran, Stop> {
        let step = &self.steps[number];
        let work = async {
            let task = step.start(&run).await?;
            if !never_ran(&task) {
                self.runner.runs_now().await?;
                self.reach(run.phase).await?;
            }
            step.follow(&run, task).await
        };
        let mut pulses = self.runner.service.pulses().follow();
        let mut work = std::pin::pin!(work);
        let ran = loop {
            tokio::select! {
                ran = &mut work => break ran?,
                () = gets_on(&mut pulses, &step.job) => self.tell_progress(run.phase).await,
            }
        };
        if ran.has_left {
            so_far.artifacts.clone_from(&ran.artifacts);
            so_far.left_out.clone_from(&ran.left_out);
            so_far.incomplete = ran.incomplete;
        }
        Ok(ran)
    }

    async fn tell_progress(&self, phase: PhaseName) {
        let pulses = self.runner.service.pulses();
        // If the steps cannot be read, the next change reports the progress.
        let steps = self.runner.service.job_steps(&self.runner.job.id).await.unwrap_or_default();
        let of_phase = steps.iter().filter(|job| job.step.as_ref().is_some_and(|it| it.phase == phase));
        let each: Vec<u32> = of_phase
            .map(|job| match job.state {
                JobState::Completed => 100,
                _ => pulses.of(&job.id).map_or(0, |pulse| pulse.progress.into()),
            })
            .collect();
        let number = u32::try_from(each.len()).unwrap_or(u32::MAX);
        let mean = each.iter().sum::<u32>().checked_div(number).unwrap_or(0);
        if self.at.load(Ordering::Relaxed) == phase as usize {
            pulses.tell(&self.runner.job, Some(phase), u8::try_from(mean).unwrap_or(0).min(99));
        }
    }

    /// Begins a phase, and finishes those before it. For a second step in the phase, does nothing.
    async fn reach(&self, phase: PhaseName) -> Result<(), Stop> {
        let from = self.at.fetch_max(phase as usize, Ordering::Relaxed);
        let order = PhaseName::ALL.windows(2).skip(from).take((phase as usize).saturating_sub(from));
        for pair in order {
            self.runner.finish(pair[0]).await?;
            self.runner.begin(pair[1]).await?;
        }
        Ok(())
    }

    /// Records the end of a step, and makes its answer known to later steps.
    pub(super) async fn over(
        &self,
        number: usize,
        went: Result<String, Stop>,
        so_far: &mut SoFar,
    ) -> Result<(), Stop> {
        let name = &self.flow.steps[number].name;
        let (state, error, text, result) = match went {
            Ok(answer) => {
                so_far.answers.push((name.clone(), answer.clone()));
                (JobState::Completed, None, Some(answer.into()), Ok(()))
            }
            Err(Stop::Failed(why)) => {
                let told = Stop::Failed(format!("{name}: {why}"));
                (JobState::Failed, Some(why), None, Err(told))
            }
            Err(Stop::Cancelled) => {
                (JobState::Cancelled, Some("cancelled".into()), None, Err(Stop::Cancelled))
            }
            Err(Stop::Over) => return Err(Stop::Over),
        };
        let kept = JobResult { text, usage: self.steps[number].has_used(), ..JobResult::default() };
        match self.steps[number].end(state, error, kept).await {
            Err(Refusal::TaskFinished) | Ok(()) => {
                self.tell_progress(self.flow.steps[number].phase).await;
                result
            }
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// Waits until a step's progress changes.
async fn gets_on(pulses: &mut Receiver<JobProgress>, step: &Job) {
    loop {
        match pulses.recv().await {
            Ok(pulse) if pulse.job == step.id => return,
            Ok(_) => {}
            // A missed change may be the step's.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn is_the_same(one: &Artifact, other: &Artifact) -> bool {
    (&one.kind, &one.content, one.mode) == (&other.kind, &other.content, other.mode) && &*one.kind != "binary"
}

/// Returns a failure with the end of the output.
pub(super) fn unsuccessful(what: &str, said: &str) -> Stop {
    let from = said.ceil_char_boundary(said.len().saturating_sub(JOB_ERROR_BYTES_MAX));
    Stop::Failed(format!("{what}\n{}", &said[from..]).trim_end().to_owned())
}

/// Returns the exit code of a run that has failed by itself.
fn exit_code(ran: &Ran) -> Option<u8> {
    let Some(Failure::WorkerFailed { why }) = &ran.task.failure else { return None };
    let code = why.strip_prefix("exit code ")?;
    code.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}
