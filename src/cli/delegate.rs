//! `provost delegate`: delegates a task, and follows it on request.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::cli_error::{DONE, FAILED, USAGE};
use super::follow::{self, Follow};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, args, out, tasks, up};
use provost_api::wire;
use provost_base::limits::RETRIES_MAX;
use provost_base::nearest;
use provost_base::{AgentId, TaskId, Ttl, task_command};
use provost_client::Client;
use provost_config::{Copies, WorkerKind};
use provost_system::real_path;

/// `provost delegate`.
#[derive(Args, Debug)]
pub(super) struct Delegate {
    /// The task; the worker `shell` runs it as a command
    #[arg(required_unless_present = "worktree")]
    goal: Option<String>,
    /// The worker that does the task; `shell` where none is named, and with --continue that of the earlier task
    #[arg(long)]
    worker: Option<AgentId>,
    /// The worker's directory, inside the repository; relative to the current directory
    #[arg(long, value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Stop the worker after this time
    #[arg(long, value_parser = args::duration, value_name = "10m")]
    timeout: Option<Ttl>,
    /// The model that the worker uses
    #[arg(long, value_parser = super::agents::model)]
    model: Option<String>,
    /// The form of the result
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Work in a git work tree on a branch of its own, and commit the changes there; without BRANCH, on one named after the worker and the task
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "")]
    worktree: Option<String>,
    /// Go on with the session of this finished task; its worker is an agent that speaks ACP
    #[arg(long = "continue", value_name = "TASK", conflicts_with_all = ["worktree", "dir"])]
    continues: Option<TaskId>,
    /// Begin when this task has succeeded; may be given several times. If one of them fails, this task ends without having begun
    #[arg(long, value_name = "TASK")]
    after: Vec<TaskId>,
    /// Begin when this task has succeeded, or another one that is named so; may be given several times
    #[arg(long, value_name = "TASK", conflicts_with = "after")]
    after_any: Vec<TaskId>,
    /// Which of several waiting tasks begins first; only you, and agents that `[queue]` names, give `high`
    #[arg(long, value_enum)]
    priority: Option<Urgency>,
    /// Give the task to a worker of this pool; without --worker, to the one that has the least to do
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Run on a host with this label
    #[arg(long, value_name = "LABEL")]
    on: Option<String>,
    /// Wait for a host that can do it, where none can now
    #[arg(long)]
    wait_for_host: bool,
    /// Begin again so often where the run fails; by default as often as the worker's entry says. A rule or the entry may allow less
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MAX)))]
    retries: Option<u32>,
    /// The task's id; repeated commands with the same id start one task
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Speak as this agent; by default as PROVOST_AGENT or the host of this shell says, else as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// Stay, show the worker's output, and end with its exit code; 124 where its time was over, 128 and the number where a signal
    /// has ended it, 1 where it failed otherwise or never ran
    #[arg(long)]
    wait: bool,
    /// With --wait: show the output unchanged, escape sequences included
    #[arg(long, requires = "wait")]
    raw: bool,
    /// Fail if no daemon runs, instead of starting one
    #[arg(long)]
    no_start: bool,
}

/// The order in which waiting tasks begin.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Urgency {
    /// After all others
    Low,
    /// As usual
    Normal,
    /// Before all others
    High,
}

impl Urgency {
    fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// DevIt's two forms of a result.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// The worker's own form
    Default,
    /// A short form
    Compact,
}

pub(super) fn delegate(here: &RepoContext, asked: Delegate) -> Result<u8, CliError> {
    let mut request = request(here, &asked)?;
    up::start_if_absent(here, !asked.no_start)?;
    wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, asked.speak_as.clone())?).await?;
        if let Some(earlier) = &asked.continues {
            let earlier = tasks::exactly_meant(&client, earlier).await?;
            request.continues = Some(earlier.id);
            request.worker = asked.worker.as_ref().map_or(earlier.worker, ToString::to_string);
        }
        for earlier in asked.after.iter().chain(&asked.after_any) {
            request.after.push(id_meant(&client, earlier).await?);
        }
        if asked.wait && !request.worker.is_empty() && !asked.wait_for_host {
            // No host would take the task, and the wait would never end.
            if let Some(it) = stranger(here, &client, &request.worker).await? {
                return Err(CliError::of(it.what).because(it.why).next(it.next));
            }
        }
        let done = client.delegate(&request).await?;
        if done.state == "denied" {
            return denied(here, &done);
        }
        if done.state == "queued"
            && !request.worker.is_empty()
            && !asked.wait_for_host
            && let Some(it) = stranger(here, &client, &request.worker).await?
        {
            out::note(format!("{}; the task waits until one comes for it ({})", it.what, it.why));
        }
        if !here.json {
            said_of_its_entry(here, &request).iter().for_each(out::note);
        }
        if asked.wait {
            let follow = Follow { client, raw: asked.raw, json: here.json };
            return follow.to_the_end(&done.task, done.approval).await;
        }
        if here.json {
            out::json(&done)?;
        } else {
            out::line(out::one_line(&done.task, 400))?;
            match done.approval {
                Some(approval) => out::note(follow::waiting_for(&client, approval).await),
                None => {
                    let typed = task_command("task show", &done.task, "--wait");
                    let stands = standing(&client, &done).await;
                    out::note(format!("{stands}; watch it: {typed}"))
                }
            }
        }
        Ok(DONE)
    })
}

/// Returns the state of an accepted task, and what it waits for.
async fn standing(client: &Client, done: &wire::Delegated) -> String {
    let query = wire::TaskQuery { id: done.task.clone(), ..wire::TaskQuery::default() };
    let waits = match done.state.as_str() {
        "waiting" => client.task(&query).await.ok().and_then(|it| it.waits_in_words()),
        _ => None,
    };
    waits.map_or_else(|| done.state.clone(), |it| out::one_line(&it, 400))
}

/// Returns the id of the task that the person means; where no task fits, the typed text, so that the daemon explains the error.
async fn id_meant(client: &Client, id: &TaskId) -> Result<String, CliError> {
    match tasks::exactly_meant(client, id).await {
        Ok(task) => Ok(task.id),
        Err(unclear) if unclear.code() == USAGE => Err(unclear),
        Err(_) => Ok(id.to_string()),
    }
}

fn request(here: &RepoContext, asked: &Delegate) -> Result<wire::Delegate, CliError> {
    // A single word after `--worktree` is the task, not the branch.
    let (goal, worktree) = match (&asked.goal, &asked.worktree) {
        (None, Some(goal)) if !goal.is_empty() => (goal.clone(), Some(String::new())),
        (goal, worktree) => (goal.clone().unwrap_or_default(), worktree.clone()),
    };
    Ok(wire::Delegate {
        task: asked.task.as_ref().map(ToString::to_string),
        goal,
        worker: match (&asked.worker, &asked.pool) {
            (Some(worker), _) => worker.to_string(),
            // The daemon chooses the worker with the least work.
            (None, Some(_)) => String::new(),
            (None, None) => "shell".into(),
        },
        // A continued task works in the directory of the earlier one.
        working_dir: match asked.continues {
            Some(_) => None,
            None => working_dir(here, asked.dir.as_ref())?,
        },
        worktree,
        timeout_s: asked.timeout.map(|timeout| timeout.as_seconds().max(1)),
        model: asked.model.clone(),
        format: asked.format.map(|format| match format {
            Format::Default => "default".into(),
            Format::Compact => "compact".into(),
        }),
        priority: asked.priority.map(|it| it.word().into()),
        pool: asked.pool.clone(),
        on: asked.on.clone(),
        wait_for_host: asked.wait_for_host,
        after_any: asked.after_any.len() > 1,
        retries: asked.retries,
        traceparent: std::env::var("TRACEPARENT").ok(),
        ..wire::Delegate::default()
    })
}

/// Returns notes about the worker's entry: its changes are deleted, or it offers no choice of model.
fn said_of_its_entry(here: &RepoContext, request: &wire::Delegate) -> Vec<String> {
    // The daemon reports settings that cannot be read.
    let Ok(read) = here.config(None) else { return Vec::new() };
    let entry = read.config.workers.iter().find(|(id, _)| id.as_str() == request.worker);
    let Some((_, entry)) = entry else { return Vec::new() };
    let name = out::one_line(&request.worker, 60);
    let mut said = Vec::new();
    if request.worktree.is_none() && entry.copies() == Copies::Thrown {
        said.push(format!(
            "{name} works in a copy that is deleted afterwards (`copy = true`), so that nothing it changes is kept; \
             `copy = \"kept\"` in its entry keeps its changes"
        ));
    }
    let names_a_model = entry.default_model.is_some()
        || entry.allowed_models.is_some()
        || entry.args.iter().any(|it| it.contains("{model}"));
    if request.model.is_some() && entry.kind == WorkerKind::Cli && !names_a_model {
        said.push(format!(
            "{name} has no choice of model, so --model changes nothing: none of its `args` has {{model}}"
        ));
    }
    said
}

/// Returns the directory relative to the repository's root, as the daemon expects it. The default is the current
/// directory, so that a command does the same as when typed there.
fn working_dir(here: &RepoContext, dir: Option<&PathBuf>) -> Result<Option<String>, CliError> {
    let wanted = here.cwd.join(dir.map_or_else(|| PathBuf::from("."), PathBuf::clone));
    let wrong = |why: String| {
        CliError::of(format!("{} cannot be used as working directory", wanted.display()))
            .because(why)
            .next("provost delegate --dir DIRECTORY, one inside the repository")
    };
    let (real, root) = (real_path(&wanted), real_path(&here.places.root));
    let (real, root) = (real.map_err(|e| wrong(e.to_string()))?, root.map_err(|e| wrong(e.to_string()))?);
    match real.strip_prefix(&root) {
        Ok(inside) if inside.as_os_str().is_empty() => Ok(None),
        Ok(inside) => match inside.to_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(wrong("its name is not UTF-8".into())),
        },
        // A person may be anywhere with PROVOST_ROOT set, or in a worktree beside the repository.
        Err(_) if dir.is_none() => Ok(None),
        Err(_) => Err(wrong(format!("it is not inside {}", root.display()))),
    }
}

/// The note about an unknown worker: it may still come for its task, but more often its name is misspelt.
async fn stranger(here: &RepoContext, client: &Client, worker: &str) -> Result<Option<Stranger>, CliError> {
    let known = client.about().await?.workers;
    let registered = client.agents().await?.into_iter().filter(|it| it.registered_at.is_some());
    let registered: Vec<String> = registered.map(|it| it.id).collect();
    if known.iter().any(|it| it.id == worker) || registered.iter().any(|it| it == worker) {
        return Ok(None);
    }
    let is_new = |config: provost_config::Config| config.workers.keys().any(|it| it.as_str() == worker);
    if here.config(None).is_ok_and(|it| is_new(it.config)) {
        return Ok(Some(Stranger {
            what: format!("the daemon does not know the worker {} yet", out::one_line(worker, 60)),
            why: "the settings have it, and the daemon has read them before".into(),
            next: "provost daemon reload".into(),
        }));
    }
    let all = || known.iter().map(|it| it.id.as_str()).chain(registered.iter().map(String::as_str));
    let near = nearest(worker, all());
    let names: Vec<_> = known.iter().map(|it| out::one_line(&it.id, 60)).collect();
    let meant = near.map(|near| format!("did you mean {}? ", out::one_line(near, 60))).unwrap_or_default();
    let next = match near {
        Some(near) => format!("--worker {}", out::one_line(near, 60)),
        None => {
            "name one with --worker, or add it to provost.toml; without --wait the task is kept for it".into()
        }
    };
    let what = format!("no worker {} is configured and none has registered", out::one_line(worker, 60));
    Ok(Some(Stranger { what, why: format!("{meant}configured: {}", names.join(", ")), next }))
}

/// A note about a worker that is not known, in parts.
struct Stranger {
    what: String,
    why: String,
    next: String,
}

fn denied(here: &RepoContext, done: &wire::Delegated) -> Result<u8, CliError> {
    if here.json {
        out::json(done)?;
        return Err(CliError::silent(FAILED));
    }
    let word = |text: &Option<String>| out::one_line(text.as_deref().unwrap_or("unknown"), 400);
    Err(CliError::of("denied by policy")
        .because(format!("rule {}: {}", word(&done.rule), word(&done.reason)))
        .next("provost policy explain, with the same --worker and --dir"))
}
