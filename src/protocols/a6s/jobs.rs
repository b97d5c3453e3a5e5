//! Executions and background tasks: starting, showing, cancelling. A6s 6.2 and 6.3.

use std::sync::Arc;

use super::A6s;
use super::audience::Hold;
use super::envelope::{A6sError, Said};
use super::fleet::ResolvedWorker;
use super::map::{IN_BACKGROUND, background, execution_id, task_id};
use super::session::{Outcome, Session};
use super::wire::{Feedback, Invoke, Launch, Launched, Signal, Started, Words};
use provost_agents::{Ask, JobAsk, Plan, PromptFor, Wanted, fresh_job_id};
use provost_base::JobId;
use provost_base::limits::A6S_LISTED_MAX;
use provost_domain::command::{NoteFeedback, SayToTask};
use provost_domain::{Job, JobKind, JobResult, Refusal};

/// An execution that is recorded.
pub(super) struct Begun {
    /// The id of the execution for editors.
    pub(super) id: String,
    /// The id by which feedback refers to it.
    pub(super) log: String,
}

impl A6s {
    /// Answers `agents.invoke`. No event about the execution is sent before the answer is on its way.
    pub(super) async fn invoke(&self, session: &Session, asked: &Invoke) -> Outcome {
        let context = asked.context.as_ref().map(|it| it.as_str());
        let (name, task) = (asked.agent_type.as_str(), asked.task.as_str());
        let (begun, hold) = self.begin(session, name, task, context).await?;
        let mut said = Said::new(&Started { execution_id: begun.id })?;
        said.log = Some(begun.log);
        Ok((said, hold))
    }

    /// Begins an execution, which the caller's connection watches before it starts.
    pub(super) async fn begin(
        &self,
        session: &Session,
        name: &str,
        task: &str,
        context: Option<&str>,
    ) -> Result<(Begun, Option<Hold>), A6sError> {
        const METHOD: &str = "agents.invoke";
        let meant = self.meant(name, METHOD).await?;
        let id = fresh_job_id()?;
        let execution = execution_id(&id);
        let hold = session.listener().map(|listener| self.audience().hold(listener, &execution));
        let mut prompt = self.prompt(&meant, task, context)?;
        if meant.by_agent {
            // The runner renders the prompt when the worker starts, with the data of that moment. It is rendered
            // here only so that a prompt that is too long is refused now.
            prompt.clear();
        }
        let ask = JobAsk {
            id,
            kind: JobKind::Execution,
            method: METHOD,
            title: task.trim().to_owned(),
            agent: name.trim().to_owned(),
            prompt,
            // This holds for every agent: only an apply changes an editor's files.
            by_agent: true,
            worker: meant.worker,
            working_dir: None,
            key: None,
            plan: Plan::Phases(Wanted {
                task: task.trim().into(),
                context: context.unwrap_or_default().into(),
                preamble: meant.preamble.unwrap_or_default(),
            }),
        };
        let job = self.service().begin_job(&session.who, ask).await?;
        Ok((Begun { id: execution, log: format!("job_{}", job.id) }, hold))
    }

    /// Answers `execution.status`. The asking connection gets events from now on.
    pub(super) async fn execution_status(&self, session: &Session, id: &str) -> Result<Said, A6sError> {
        let job = self.execution(id).await?;
        session.listener().inspect(|listener| self.audience().watch(*listener, &execution_id(&job.id)));
        let result = match job.state.is_over() {
            true => self.service().job_result(&job.id).await?,
            false => JobResult::default(),
        };
        let pulse = self.service().pulses().of(&job.id);
        Said::new(&self.whole(&job, result, pulse.as_ref()).await?)
    }

    /// Answers `background.launch`.
    pub(super) async fn launch(&self, session: &Session, asked: &Launch) -> Outcome {
        const METHOD: &str = "background.launch";
        let meant = self.meant(asked.agent_type.as_str(), METHOD).await?;
        let id = fresh_job_id()?;
        let task = task_id(&id);
        let hold = session.listener().map(|listener| self.audience().hold(listener, &task));
        let ask = JobAsk {
            id,
            kind: JobKind::Background,
            method: METHOD,
            title: asked.task.as_str().trim().to_owned(),
            agent: asked.agent_type.as_str().trim().to_owned(),
            prompt: self.prompt(&meant, asked.task.as_str(), None)?,
            // This holds for every agent: only an apply changes an editor's files.
            by_agent: true,
            worker: meant.worker,
            working_dir: None,
            key: None,
            plan: Plan::Once,
        };
        self.service().begin_job(&session.who, ask).await?;
        Ok((Said::new(&Launched { task_id: task })?, hold))
    }

    /// Answers `background.list`: newest last; of the jobs that are over, only the newest.
    pub(super) async fn background(&self) -> Result<Said, A6sError> {
        let jobs = self.service().jobs(IN_BACKGROUND).await?;
        let over = jobs.iter().filter(|job| job.state.is_over()).count();
        let mut left_out = over.saturating_sub(A6S_LISTED_MAX);
        let shown = jobs.iter().filter(|job| {
            let hidden = job.state.is_over() && left_out > 0;
            left_out -= usize::from(hidden);
            !hidden
        });
        let mut rows = Vec::new();
        for job in shown {
            let (pulse, waits) = (self.service().pulses().of(&job.id), self.waits(job).await?);
            rows.push(background(job, pulse.as_ref(), waits.as_deref()));
        }
        Said::new(&rows)
    }

    /// Returns the approval for which a job waits, and how a person gives it; `None` if it waits for none.
    pub(super) async fn waits(&self, job: &Job) -> Result<Option<String>, A6sError> {
        if job.state.is_over() {
            return Ok(None);
        }
        let mut waits_for = self.service().so_far(job).await?.waits_for;
        if job.kind == JobKind::Workflow {
            for step in self.service().job_steps(&job.id).await?.iter().filter(|it| !it.state.is_over()) {
                waits_for = waits_for.or(self.service().so_far(step).await?.waits_for);
            }
        }
        Ok(waits_for.map(|approval| format!("waits for approval {approval}: provost approve {approval}")))
    }

    /// Answers `background.cancel` and `workflows.cancel`; either accepts any kind of id.
    pub(super) async fn cancel(&self, session: &Session, id: &str, what: &str) -> Result<Said, A6sError> {
        let job = self.found(id, what).await?;
        self.service().cancel_job(&session.who, &job.id).await?;
        Said::new(&())
    }

    /// Answers `background.output`.
    pub(super) async fn output(&self, session: &Session, id: &str) -> Result<Said, A6sError> {
        let job = self.found(id, "task").await?;
        let output = self.service().job_output(&job.id).await?;
        let text = match output.from {
            0 if output.text.is_empty() => self.waits(&job).await?.unwrap_or_default(),
            0 => output.text,
            earlier => {
                format!("[... {earlier} earlier bytes, see provost log job_{}]\n{}", job.id, output.text)
            }
        };
        match self.quirks().objects_to_neovim && session.is_neovim() {
            true => Said::new(&serde_json::json!({ "output": text })),
            false => Said::new(&text),
        }
    }

    /// Answers `background.say`: passes words to the agent that works on a job, or on the running step of a workflow.
    pub(super) async fn say(&self, session: &Session, asked: &Words) -> Result<Said, A6sError> {
        let mut job = self.found(asked.task_id.as_str(), "task").await?;
        let text = asked.text.as_str();
        if job.kind == JobKind::Workflow {
            let steps = self.service().job_steps(&job.id).await?;
            job = steps.into_iter().find(|it| !it.state.is_over()).unwrap_or(job);
        }
        let task = job.tasks.last().cloned().ok_or_else(|| {
            A6sError::new("background.say: no agent works at it yet; say it again when one does")
        })?;
        let verb = SayToTask { task, text: text.into(), now: asked.now };
        let said = self.provost().submit(&session.who, verb).await?;
        Said::new(&serde_json::json!({ "ok": true, "number": said.number, "waiting": said.waiting }))
    }

    /// Answers `feedback.submit`.
    pub(super) async fn feedback(&self, session: &Session, asked: &Feedback) -> Result<Said, A6sError> {
        let job = self.found(asked.conversation_log_id.as_str(), "conversation").await?;
        let signal = match asked.signal {
            Signal::Accept => "accept",
            Signal::Reject => "reject",
        };
        let reason = asked.reason.as_ref().map(|it| it.as_str().into());
        let verb = NoteFeedback { job: job.id.clone(), signal: signal.into(), reason };
        self.service().judge_job(&session.who, verb).await?;
        Said::new(&serde_json::json!({ "ok": true }))
    }

    /// Returns the prompt for a worker: made from the template of agents, or the task unchanged.
    fn prompt(&self, meant: &ResolvedWorker, task: &str, context: Option<&str>) -> Result<String, A6sError> {
        if !meant.by_agent {
            return Ok(task.trim().to_owned());
        }
        let preamble = meant.preamble.as_deref().unwrap_or_default();
        let context = context.unwrap_or_default();
        let ask = Ask { task: task.trim(), context, preamble, ..Ask::default() };
        let prompts = &self.service().configured().prompts;
        prompts.render(PromptFor::Invoke, &ask).map_err(|err| A6sError::new(err.to_string()))
    }

    async fn execution(&self, id: &str) -> Result<Arc<Job>, A6sError> {
        self.found(id, "execution").await
    }

    async fn found(&self, id: &str, what: &str) -> Result<Arc<Job>, A6sError> {
        let unknown = || A6sError::new(format!("Unknown {what}: {}", id.trim()));
        match self.service().job(&JobId::of_any_kind(id).ok_or_else(unknown)?).await {
            Err(Refusal::TaskNotFound) => Err(unknown()),
            found => Ok(found?),
        }
    }
}
