//! `workflows.*`: listing, running, and showing. Cancelling one is cancelling its job. A6s 3.0 and 6.9.

use super::A6s;
use super::envelope::{A6sError, Said};
use super::map::{execution, execution_id};
use super::session::{Outcome, Session};
use super::wire::{self, RunWorkflow, Started, WorkflowRow, WorkflowsWanted};
use provost_agents::{
    Agents, Assignee, Flow, Inputs, JobAsk, JobProgress, Plan, Step, Workflow, fresh_job_id,
};
use provost_config::BUILT_IN_FILE;
use provost_domain::{Job, JobKind, JobResult, JobState};

/// The method's name, for the check whether an agent accepts it.
const RUN: &str = "workflows.run";

impl A6s {
    /// Answers `workflows.list`.
    pub(super) fn workflows(&self, asked: &WorkflowsWanted) -> Result<Said, A6sError> {
        let agents = self.service().configured();
        let wanted = asked.domain.as_ref().map(|it| it.as_str().trim().to_ascii_lowercase());
        let of_domain = |it: &&Workflow| wanted.as_ref().is_none_or(|wanted| it.domain() == wanted);
        Said::new(&agents.workflows.iter().filter(of_domain).map(|it| row(it, &agents)).collect::<Vec<_>>())
    }

    /// Answers `workflows.run`. No event about the execution is sent before the answer is on its way.
    pub(super) async fn run_workflow(&self, session: &Session, asked: &RunWorkflow) -> Outcome {
        let agents = self.service().configured();
        let workflow = find(&agents, asked.workflow_id.as_str())?;
        let steps: Vec<Step<Assignee>> =
            workflow.steps.iter().map(|step| whose(workflow, step, &agents)).collect::<Result<_, _>>()?;
        let value =
            |it: &Option<wire::Json>| it.as_ref().and_then(|it| serde_json::from_str(it.as_str()).ok());
        let inputs = Inputs::of(value(&asked.inputs), value(&asked.input));
        let inputs = inputs.map_err(|why| A6sError::new(format!("{RUN}: {why}")))?;
        let id = fresh_job_id()?;
        let execution = execution_id(&id);
        let hold = session.listener().map(|listener| self.audience().hold(listener, &execution));
        let first = steps.first().ok_or_else(|| A6sError::new(format!("{} has no steps", workflow.id)))?;
        let ask = JobAsk {
            id,
            kind: JobKind::Workflow,
            method: RUN,
            title: workflow.name.to_string(),
            agent: workflow.id.to_string(),
            worker: first.who.worker.clone(),
            prompt: inputs.text.to_string(),
            working_dir: None,
            by_agent: true,
            key: None,
            plan: Plan::Workflow(Box::new(Flow {
                pattern: workflow.pattern,
                max_rounds: workflow.max_rounds,
                steps,
                inputs,
                priority: asked.priority.map(|it| it.as_str().into()),
            })),
        };
        let job = self.service().begin_job(&session.who, ask).await?;
        let mut said = Said::new(&Started { execution_id: execution })?;
        said.log = Some(format!("job_{}", job.id));
        Ok((said, hold))
    }

    /// Encodes a job as an execution; for a workflow, with its id and the states of its steps.
    pub(super) async fn whole(
        &self,
        job: &Job,
        result: JobResult,
        pulse: Option<&JobProgress>,
    ) -> Result<wire::Execution, A6sError> {
        let mut whole = execution(job, result, pulse);
        if let Some(waits) = self.waits(job).await? {
            whole.phase = format!("{}, {waits}", whole.phase).into();
        }
        if job.kind == JobKind::Workflow {
            whole.workflow_id = Some(job.agent.to_string());
            let steps = self.service().job_steps(&job.id).await?;
            whole.steps = steps.iter().map(|step| self.step(step)).collect();
        }
        Ok(whole)
    }

    fn step(&self, job: &Job) -> wire::Step {
        let status = match job.state {
            JobState::Queued => "pending",
            // Its workflow was over before the step's turn.
            JobState::Cancelled if job.tasks.is_empty() => "pending",
            JobState::Running => "running",
            JobState::Completed => "completed",
            JobState::Failed | JobState::Cancelled => "failed",
        };
        let progress = match job.state {
            JobState::Completed => 100,
            JobState::Running => {
                self.service().pulses().of(&job.id).map_or(0, |pulse| pulse.progress.min(99))
            }
            _ => 0,
        };
        wire::Step { name: job.title.to_string(), agent: job.agent.to_string(), status, progress }
    }
}

fn row(it: &Workflow, agents: &Agents) -> WorkflowRow {
    let first = || agents.first().map(|agent| agent.id.as_str());
    let mut names: Vec<String> = Vec::new();
    for name in it.steps.iter().filter_map(|step| step.who.as_deref().or_else(first)) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    WorkflowRow {
        id: it.id.to_string(),
        name: it.name.to_string(),
        domain: it.domain().to_owned(),
        description: it.description.to_string(),
        pattern: it.pattern.as_str(),
        step_count: it.steps.len(),
        agents: names,
    }
}

fn find<'a>(agents: &'a Agents, id: &str) -> Result<&'a Workflow, A6sError> {
    let id = id.trim();
    agents.workflows.iter().find(|it| *it.id == *id).ok_or_else(|| match agents.refused_workflows.get(id) {
        Some(why) => A6sError::new(format!("Workflow {id} cannot be used: {why}")),
        None => A6sError::new(format!("Unknown workflow: {id}")),
    })
}

/// Assigns an agent to a step. The built-in workflows must work with any single agent, under any name.
fn whose(
    workflow: &Workflow,
    step: &Step<Option<Box<str>>>,
    agents: &Agents,
) -> Result<Step<Assignee>, A6sError> {
    let Some(first) = agents.first() else {
        return Err(A6sError::new(format!(
            "{} needs an agent, and no `[[agent]]` is configured",
            workflow.id
        )));
    };
    let named = step.who.as_deref().map(|name| (name, agents.find(name)));
    let (shown, agent, preamble) = match named {
        Some((name, Some(meant))) => (name, meant.agent, meant.preamble),
        Some((name, None)) if !workflow.place.starts_with(BUILT_IN_FILE) => {
            return Err(A6sError::new(format!(
                "Unknown agent: {name}, in step {} of {} ({}). Configured: {}",
                step.name,
                workflow.id,
                workflow.place,
                agents.ids()
            )));
        }
        _ => (first.id.as_str(), first, None),
    };
    if !agent.takes(RUN) {
        let takes = agent.methods.join(", ");
        return Err(A6sError::new(format!("{} is not for {RUN}: its `methods` are {takes}", agent.id)));
    }
    let who = Assignee { shown: shown.into(), worker: agent.id.clone(), preamble: preamble.map(Into::into) };
    Ok(Step {
        who,
        name: step.name.clone(),
        prompt: step.prompt.clone(),
        command: step.command.clone(),
        until: step.until.clone(),
        max_rounds: step.max_rounds,
        phase: step.phase,
    })
}
