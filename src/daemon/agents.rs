//! Translates the configuration's agents into profiles of workers, and into the agents that doors list.

mod surroundings;
mod workflows;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;

use provost_agents::{
    AgentOutput, AgentService, Agents, ChecksConfig, ConfiguredAgent, FleetAgent, PromptFor, Prompts, Role,
};
use provost_auth::role;
use provost_base::{AgentId, PostSeq, TaskId};
use provost_config::{self as config, Config};
use provost_domain::command::WithdrawQuestion;
use provost_domain::post::Post;
use provost_domain::view::OpenQuestions;
use provost_domain::{Answer, Changeset, Event, EventKind, PhaseName, Settings, Task};
use provost_effects::{
    DeedHands, Keep, PermissionJudge, PermissionVerdict, QuestionAsker, RoomNow, Share, Withhold, WriteTree,
};
use provost_jail::{AsAgent, Page, Profile, Reader};
use provost_service::Provost;

pub(super) use surroundings::surroundings;

/// Returns the profile of a worker, with the settings of an agent if it is one.
///
/// # Errors
/// The reason why the agent cannot be used, as a sentence.
pub(super) fn profile(profile: Profile, agent: Option<&config::AgentConfig>) -> Result<Profile, String> {
    let Some(agent) = agent else { return Ok(profile) };
    if !agent.enabled {
        return Err("it is switched off: `enabled = false` in its entry".into());
    }
    let as_agent = AsAgent {
        by_stdin: agent.stream != config::Reader::Acp && agent.prompt_by() == config::PromptBy::Stdin,
        reader: reader(agent.stream),
        edits: agent.output == config::Output::Edit,
        parallel: agent.max_parallel,
    };
    Ok(Profile { agent: Some(as_agent), timeout: agent.timeout, ..profile })
}

fn reader(reader: config::Reader) -> Reader {
    match reader {
        config::Reader::Lines => Reader::Lines,
        config::Reader::Claude => Reader::Claude,
        config::Reader::Codex => Reader::Codex,
        config::Reader::Gemini => Reader::Gemini,
        config::Reader::OpenCode => Reader::OpenCode,
        config::Reader::Copilot => Reader::Copilot,
        config::Reader::Acp => Reader::Acp,
    }
}

/// Returns the judge of permission requests of agents in their jails; a person answers them if a rule says so.
pub(super) fn permission_judge(provost: &Provost) -> PermissionJudge {
    let provost = provost.clone();
    Arc::new(move |task: &Task, question| {
        let (provost, who) = (provost.clone(), role::jailed_asker(task.order.worker.clone(), task.id()));
        let patience = question.wait.as_duration();
        Box::pin(async move {
            let denied = |why: String| PermissionVerdict::Denied(why.into());
            match provost.permission(&who, question, None, patience).await {
                Ok(Answer::Done(_)) => PermissionVerdict::Allowed,
                Ok(Answer::Parked(approval)) => {
                    denied(format!("approval {approval} was not answered in time"))
                }
                Ok(Answer::Denied(denial)) => denied(format!("rule {}: {}", denial.rule, denial.reason)),
                Err(refusal) => denied(refusal.to_string()),
            }
        })
    })
}

/// Returns the function that puts the questions of agents in their jails among those that wait for a person, and waits for the answers.
pub(super) fn question_asker(provost: &Provost) -> QuestionAsker {
    let provost = provost.clone();
    Arc::new(move |task: &Task, question| {
        let (provost, who) = (provost.clone(), role::worker(task.order.worker.clone(), task.id()));
        Box::pin(async move {
            let mut events = provost.engine().subscribe();
            let post = Post::Question { agent: who.agent().clone(), question: question.as_str().into() };
            let asked = provost.ask_in_form(&who, post).await.ok()?;
            let asked = AskedForm { provost: &provost, question: asked };
            loop {
                match events.recv().await {
                    Ok(event) => {
                        if let Some(answer) = answer_to(&event, asked.question) {
                            return Some(answer);
                        }
                    }
                    // The answer may be among the missed events. Otherwise the person still sees the question as open.
                    Err(RecvError::Lagged(_)) if asked.is_open().await => {}
                    Err(_) => return None,
                }
            }
        })
    })
}

/// A question for whose answer an agent's program waits. Dropping this withdraws the question.
struct AskedForm<'a> {
    provost: &'a Provost,
    question: PostSeq,
}

impl AskedForm<'_> {
    async fn is_open(&self) -> bool {
        let open = self.provost.view(OpenQuestions).await;
        open.is_ok_and(|it| it.iter().any(|it| it.n == self.question))
    }
}

impl Drop for AskedForm<'_> {
    fn drop(&mut self) {
        let (provost, question) = (self.provost.clone(), self.question);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A question that cannot be withdrawn now ends with its task.
                let _ = provost.submit(&role::system(), WithdrawQuestion { question }).await;
            });
        }
    }
}

/// Returns the answer that an event gives to a question of an agent's program. The core accepts it only from people and the task's asker.
fn answer_to(event: &Event, question: PostSeq) -> Option<String> {
    match &event.kind {
        EventKind::Published { post: Post::Answer { answer, .. }, answers: Some(it), .. } => {
            (*it == question).then(|| answer.to_string())
        }
        _ => None,
    }
}

/// Returns the agents as doors show them. The core's settings already say which of them cannot be used.
pub(super) fn agents(config: &Config, settings: &Settings) -> Agents {
    let agent = |it: &config::AgentConfig| ConfiguredAgent {
        id: it.id.clone(),
        name: it.name.as_deref().unwrap_or(it.id.as_str()).into(),
        description: it.description.as_deref().unwrap_or_default().into(),
        capability: it.capability.as_str().into(),
        region: it.region.as_str().into(),
        output: match it.output {
            config::Output::Edit => AgentOutput::Edit,
            config::Output::Json => AgentOutput::Json,
            config::Output::Text => AgentOutput::Text,
        },
        reader: reader(it.stream),
        parallel: it.max_parallel,
        timeout: it.timeout,
        methods: it.methods.iter().map(|it| it.as_str().into()).collect(),
        enabled: it.enabled,
        trouble: settings.workers.get(&it.id).and_then(|it| it.broken.clone()),
        checks: checks(config, it),
    };
    let role = |(id, it): (&AgentId, &config::Role)| {
        let preamble = it.preamble.as_deref().map(Into::into);
        (id.clone(), Role { id: id.clone(), agent: it.agent.clone(), preamble })
    };
    let refused = config.refused_workers.iter().filter(|(_, it)| it.is_agent);
    let refused =
        refused.map(|(name, it)| (name.as_str().into(), format!("{}: {}", it.file, it.reason).into()));
    Agents {
        refused: refused.collect(),
        agents: config.agents.iter().map(agent).collect(),
        roles: config.roles.iter().map(role).collect(),
        list_roles: config.a6s.list_roles,
        role_aliases: config.a6s.role_aliases,
        prompts: prompts(config),
        phases: phases(config),
        code_agent: config.a6s.code_agent.clone(),
        soft_deadline: config.a6s.soft_deadline,
        workflows: workflows::usable(config),
        refused_workflows: workflows::refused(config),
        scans: config.a6s.scans,
    }
}

/// Returns the commands, the reviewer and the mode around an agent's work.
fn checks(config: &Config, agent: &config::AgentConfig) -> ChecksConfig {
    let commands = |of: &config::Commands| -> Vec<Vec<Box<str>>> {
        of.0.iter().map(|words| words.iter().map(|word| word.as_str().into()).collect()).collect()
    };
    ChecksConfig {
        fix: commands(&agent.fix),
        check: commands(&agent.check),
        required: agent.checks == config::Checks::Required,
        reviewer: agent.reviewer.clone(),
        pipeline: agent.mode.unwrap_or(config.a6s.mode) == config::Mode::Pipeline,
    }
}

/// Returns the agent of each phase that has one of its own.
fn phases(config: &Config) -> BTreeMap<PhaseName, AgentId> {
    let named = PhaseName::ALL.into_iter().zip(config.pipeline.agents());
    named.filter_map(|(phase, (_, agent))| Some((phase, agent?.clone()))).collect()
}

/// Returns an agent for the list of those that could begin now.
pub(super) fn in_the_fleet(agent: &config::AgentConfig, workers: u32) -> FleetAgent {
    FleetAgent {
        id: agent.id.clone(),
        name: agent.name.as_deref().unwrap_or(agent.id.as_str()).into(),
        description: agent.description.as_deref().unwrap_or_default().into(),
        capability: agent.capability.as_str().into(),
        region: agent.region.as_str().into(),
        // All workers together have no more places than `workers`.
        max_parallel: agent.max_parallel.min(workers),
        enabled: agent.enabled,
    }
}

fn prompts(config: &Config) -> Prompts {
    let (from, phases) = (&config.prompts, &config.phase_prompts);
    let templates = [
        (PromptFor::Invoke, &from.invoke),
        (PromptFor::Explain, &from.explain),
        (PromptFor::Refactor, &from.refactor),
        (PromptFor::GenerateTests, &from.generate_tests),
        (PromptFor::Review, &from.review),
        (PromptFor::Repair, &from.repair),
        (PromptFor::Scan, &from.scan),
        (PromptFor::Phase(PhaseName::Research), &phases.research),
        (PromptFor::Phase(PhaseName::Inspect), &phases.inspect),
        (PromptFor::Phase(PhaseName::Generate), &phases.generate),
        (PromptFor::Phase(PhaseName::Optimize), &phases.optimize),
        (PromptFor::Phase(PhaseName::Review), &phases.review),
    ];
    let mut prompts = Prompts::default();
    for (what, template) in templates {
        if let Some(template) = template {
            prompts.set(what, &template.0);
        }
    }
    prompts
}

/// Returns the hands that carry out jobs, settle applies, run merges and discard changes.
pub(super) fn deed_hands(service: &AgentService) -> DeedHands {
    let (jobs, applies, discards) = (service.clone(), service.provost().clone(), service.provost().clone());
    let merges = service.provost().clone();
    DeedHands {
        jobs: Box::new(move |job, had_begun| {
            let jobs = jobs.clone();
            Box::pin(async move { jobs.take_up_job(job, had_begun).await })
        }),
        applies: Box::new(move |apply, by| {
            let applies = applies.clone();
            Box::pin(async move { applies.settle_apply(apply, by).await })
        }),
        merges: Box::new(move |numbers, asker| {
            let merges = merges.clone();
            Box::pin(async move { merges.carry_out_merges(numbers, asker).await })
        }),
        discards: Box::new(move |task| {
            let discards = discards.clone();
            Box::pin(async move { discards.drop_changes(&task).await })
        }),
    }
}

/// Returns the function that stores agents' changes and removes those that are too old. First removes what an earlier daemon left
/// unfinished.
pub(super) fn keeper(provost: &Provost) -> Keep {
    let provost = provost.clone();
    provost.artifacts().remove_unfinished();
    provost.artifacts().remove_old();
    Arc::new(move |(task, attempt): (&TaskId, u32), harvest: &Changeset, answer: &str| {
        // The numbers that are kept are those of the present configuration.
        let artifacts = provost.artifacts();
        artifacts.keep((task, attempt), harvest, answer).map_err(|error| {
            tracing::error!(%error, %task, "what a run has changed is not kept");
            error.to_string()
        })?;
        provost.has_kept();
        artifacts.remove_old();
        Ok(())
    })
}

/// Returns the function that leaves a run's changes and output for other hosts.
pub(super) fn share(provost: &Provost) -> Share {
    let provost = provost.clone();
    Arc::new(move |run: (&TaskId, u32), output: &Page| {
        provost.artifacts().share(run, output.to_bytes(usize::MAX)).map_err(|error| error.to_string())
    })
}

/// Returns the function that names the changes of a run in a work tree that are not committed, by the rules for applies.
pub(super) fn withhold(provost: &Provost) -> Withhold {
    let provost = provost.clone();
    Arc::new(move |root: &Path, changes: &Changeset| provost.withheld(root, changes))
}

/// Returns the function that writes the files of a commit of this repository into a folder.
pub(super) fn commits(provost: &Provost) -> WriteTree {
    let provost = provost.clone();
    Arc::new(move |commit, folder| provost.write_commit(commit, folder).map_err(|error| error.to_string()))
}

/// Returns the function that says how much of one run's changes is kept in the present configuration.
pub(super) fn room(provost: &Provost) -> RoomNow {
    let provost = provost.clone();
    Arc::new(move || provost.changes_room())
}
