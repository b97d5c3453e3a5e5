//! `agents.invoke` and `background.launch`: one run, with five phases or none. A6s 6.2 and 6.3.

use serde::{Deserialize, Serialize};

use super::runner::{JobRunner, Stop};
use super::runs::{Ran, RunRequest, never_ran};
use crate::ChecksConfig;
use crate::prompts::{Ask, PromptFor};
use provost_base::AgentId;
use provost_base::limits::SURROUNDINGS_BYTES_MAX;
use provost_domain::{JobResult, PhaseName};

/// The user's wish, in the parts from which prompts are made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Wanted {
    /// The task, in the user's words.
    pub task: Box<str>,
    /// The context that the editor has sent; may be empty.
    pub context: Box<str>,
    /// The text about the agent's role; may be empty.
    pub preamble: Box<str>,
}

impl JobRunner {
    /// Carries out an execution in its five phases.
    pub(super) async fn phases(&self, wanted: &Wanted, kept: &mut JobResult) -> Result<(), Stop> {
        let around = self.around();
        let context = self.research(wanted, &around).await?;
        let known = RunContext { wanted, context };
        let answer = match around.pipeline {
            true => self.one_run_each(&known, &around, kept).await?,
            false => self.one_run(&known, &around, kept).await?,
        };
        let answer = self.optimize(&known, &around, answer, kept).await?;
        self.review(&known, &around, &answer, kept).await
    }

    /// Carries out a job by one run, without steps around it.
    pub(super) async fn once(&self, kept: &mut JobResult) -> Result<(), Stop> {
        let ran = self.run(self.whole_run()).await?;
        self.keep(ran, kept).map(drop)
    }

    /// Collects the context for the agent before the first run.
    async fn research(&self, wanted: &Wanted, around: &ChecksConfig) -> Result<String, Stop> {
        self.begin(PhaseName::Research).await?;
        let looks = self.is_by_template().then(|| self.service.surroundings());
        let of = 2 + u32::from(around.pipeline);
        self.part(PhaseName::Research, 1, of);
        let mut context = wanted.context.trim().to_owned();
        if let Some(looks) = looks {
            let told = tokio::task::spawn_blocking(move || looks.told()).await.map_err(|_| Stop::Over)?;
            let told = told.unwrap_or_else(|why| format!("unknown: {why}"));
            let told = &told[..told.floor_char_boundary(SURROUNDINGS_BYTES_MAX.min(told.len()))];
            if !told.is_empty() {
                context =
                    format!("{context}\n\nThe workspace, as `git status` has it:\n{told}").trim().to_owned();
            }
        }
        self.part(PhaseName::Research, 2, of);
        if !around.pipeline {
            self.finish(PhaseName::Research).await?;
        }
        Ok(context)
    }

    /// Lets the agent do all phases in one run.
    async fn one_run(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        kept: &mut JobResult,
    ) -> Result<String, Stop> {
        self.begin(PhaseName::Inspect).await?;
        let run = RunRequest { prompt: self.prompt(known)?, copy: self.copy(around), ..self.whole_run() };
        let task =
            self.start_telling(&run, Some(PhaseName::Inspect)).await.map_err(in_phase(PhaseName::Inspect))?;
        if never_ran(&task) {
            let ended = self.follow(&run, task).await?.done().err();
            return Err(in_phase(PhaseName::Inspect)(ended.unwrap_or(Stop::Over)));
        }
        self.finish(PhaseName::Inspect).await?;
        self.begin(PhaseName::Generate).await?;
        let ran = self.follow(&run, task).await?;
        let answer = self.keep(ran, kept).map_err(in_phase(PhaseName::Generate))?;
        self.finish(PhaseName::Generate).await?;
        Ok(answer)
    }

    /// Runs each of the first three phases by itself, each with the answer of the one before.
    async fn one_run_each(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        kept: &mut JobResult,
    ) -> Result<String, Stop> {
        let mut answer = String::new();
        for phase in [PhaseName::Research, PhaseName::Inspect, PhaseName::Generate] {
            self.begin(phase).await?;
            // The first phase has begun with the collection of context.
            let (before, of) = if phase == PhaseName::Research { (2, 3) } else { (0, 1) };
            self.set_part(before, of);
            let harvest = phase == PhaseName::Generate;
            let run = self.run_of(known, around, phase, &answer)?;
            let ran = self.run(RunRequest { harvest, ..run }).await;
            let said = ran.and_then(|ran| match harvest {
                true => self.keep(ran, kept),
                false => ran.done().map(|ran| ran.answer),
            });
            answer = said.map_err(in_phase(phase))?;
            self.finish(phase).await?;
        }
        Ok(answer)
    }

    /// Returns the request for a phase that is a run of its own.
    pub(super) fn run_of(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        phase: PhaseName,
        previous: &str,
    ) -> Result<RunRequest, Stop> {
        let worker = self.agent_for(around, phase).map_err(|why| in_phase(phase)(Stop::Failed(why)))?;
        let ask = Ask { previous, ..known.ask() };
        let prompt = self.service.configured().prompts.render(PromptFor::Phase(phase), &ask);
        let prompt = prompt.map_err(|err| in_phase(phase)(Stop::Failed(err.to_string())))?.into();
        Ok(RunRequest { phase, worker, prompt, copy: self.copy(around), harvest: false, ..self.whole_run() })
    }

    /// Returns the agent for a phase that is a run of its own.
    fn agent_for(&self, around: &ChecksConfig, phase: PhaseName) -> Result<AgentId, String> {
        let agents = self.service.configured();
        let reviewer = around.reviewer.as_ref().filter(|_| phase == PhaseName::Review);
        let named = reviewer.or_else(|| agents.phases.get(&phase)).unwrap_or(&self.job.worker);
        match agents.get(named) {
            Some(_) => Ok(named.clone()),
            None => Err(format!("no agent that can be used is called {named}")),
        }
    }

    /// Checks whether the prompt is made from a template; a worker that is no agent of the configuration gets the task alone.
    fn is_by_template(&self) -> bool {
        self.order.prompt.is_empty()
    }

    /// Returns the prompt of an agent that does all phases in one run.
    fn prompt(&self, known: &RunContext<'_>) -> Result<Box<str>, Stop> {
        if !self.is_by_template() {
            return Ok(self.order.prompt.clone());
        }
        let prompts = &self.service.configured().prompts;
        let all = prompts.render(PromptFor::Invoke, &known.ask());
        // If the prompt is too long, it leaves out the state of the workspace.
        let bare =
            || prompts.render(PromptFor::Invoke, &Ask { context: &known.wanted.context, ..known.ask() });
        let prompt = all.or_else(|_| bare());
        prompt.map(Into::into).map_err(|err| in_phase(PhaseName::Inspect)(Stop::Failed(err.to_string())))
    }

    /// Takes over the results of a run, however it has ended, and returns its answer.
    pub(super) fn keep(&self, ran: Ran, kept: &mut JobResult) -> Result<String, Stop> {
        kept.text = Some(ran.answer.as_str().into());
        self.keep_files(ran, kept).done().map(|ran| ran.answer)
    }

    /// Takes over the files of a run. A run that has left none does not remove those of earlier runs.
    pub(super) fn keep_files(&self, mut ran: Ran, kept: &mut JobResult) -> Ran {
        if ran.has_left {
            let (artifacts, left_out) = (std::mem::take(&mut ran.artifacts), ran.left_out.take());
            (kept.artifacts, kept.left_out, kept.incomplete) = (artifacts, left_out, ran.incomplete);
        }
        ran
    }

    /// Returns the request for the run that the job was opened for.
    pub(super) fn whole_run(&self) -> RunRequest {
        RunRequest {
            phase: PhaseName::Generate,
            worker: self.job.worker.clone(),
            by_agent: self.order.by_agent,
            prompt: self.order.prompt.clone(),
            working_dir: self.order.working_dir.clone(),
            schema: None,
            copy: None,
            command: None,
            harvest: true,
        }
    }
}

/// The context when the runs begin.
pub(super) struct RunContext<'a> {
    wanted: &'a Wanted,
    /// The context that came with the task, and the state of the workspace.
    context: String,
}

impl RunContext<'_> {
    pub(super) fn ask(&self) -> Ask<'_> {
        let (task, preamble) = (&*self.wanted.task, &*self.wanted.preamble);
        Ask { task, preamble, context: &self.context, ..Ask::default() }
    }
}

/// Adds to a failure the phase in which it happened. A6s 6.2.
pub(super) fn in_phase(phase: PhaseName) -> impl Fn(Stop) -> Stop {
    move |stop| match stop {
        Stop::Failed(why) => Stop::Failed(format!("{}: {why}", phase.as_str())),
        stop => stop,
    }
}
