//! `provost jail`: shows what a worker may access, and runs a command in its jail. Reads files and builds jails; asks
//! no daemon.
//!
//! It checks no rule either: the person who types the command could run it without a jail as well.

mod trial;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde_json::json;

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, Rehearsal, RepoContext, out};
use provost_base::{AgentId, Ttl, nearest};
use provost_config::{Config, Copies, Places, Worker};
use provost_jail::{OPEN_IN_JOB, OPEN_IN_LL, Plan, Supervisor, Tier, Topic, probe};

/// `provost jail`.
#[derive(Subcommand, Debug)]
pub(super) enum Jail {
    /// Print what a worker may access, and which layer enforces it
    #[command(
        after_help = "Examples:\n  provost jail explain shell\n  provost jail explain claude_code --cwd src --json\n  provost jail explain shell --tier ll"
    )]
    Explain(Explain),
    /// Run a command in the jail of a worker, from this terminal
    #[command(
        after_help = "Examples:\n  provost jail try -- ls -la ~\n  provost jail try -- sh -c 'curl https://example.org || echo no network'\n  provost jail try --worker claude_code --timeout 30s -- cargo test\n\n\
                      The command is started by /bin/sh, as the built-in worker starts its goals, and may change what the worker may.\n\
                      Exit codes: the command's own; 124 if its time was over; 125 if the jail could not be built, and nothing ran; \
                      137 if it went beyond a limit; 128 and the signal's number if a signal ended it."
    )]
    Try(trial::Try),
}

/// `provost jail explain`.
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The worker whose jail it is
    #[arg(default_value = "shell")]
    worker: AgentId,
    /// The directory; by default the worker's own, else the current one
    #[arg(long, visible_alias = "dir", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// The tier of the jail; by default the configured one
    #[arg(long, value_enum)]
    tier: Option<InTier>,
}

/// A tier, as typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InTier {
    /// Namespaces and everything else
    Ns,
    /// Landlock, system call filter and limits
    Ll,
    /// On Windows: a job object, and a token that restricts writing
    Job,
}

impl From<InTier> for Tier {
    fn from(tier: InTier) -> Self {
        match tier {
            InTier::Ns => Tier::Ns,
            InTier::Ll => Tier::Ll,
            InTier::Job => Tier::Job,
        }
    }
}

/// The worker and the command of a plan.
pub struct Rehearse {
    /// The places of Provost's files.
    pub places: Places,
    /// The configuration that a daemon would use if it started now.
    pub config: Config,
    /// The worker.
    pub worker: AgentId,
    /// The working directory, absolute; by default the worker's own, else the workspace.
    pub directory: Option<PathBuf>,
    /// The tier, if it is not the worker's.
    pub tier: Option<Tier>,
    /// The command that replaces the worker's own.
    pub command: Option<Words>,
    /// The time limit, if it is not the worker's.
    pub timeout: Option<Ttl>,
}

/// A command.
pub struct Words {
    /// The executable, absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// The requested plan.
pub struct Rehearsed {
    /// The paths, variables and limits of the worker.
    pub plan: Plan,
    /// Reports the files that a program has left in the workspace, a line each, once none of its processes runs;
    /// until then it holds the resources of the plan.
    pub left: Box<dyn FnOnce() -> Vec<String>>,
}

pub(super) fn jail(here: &RepoContext, asked: Jail, rehearse: &Rehearsal) -> Result<u8, CliError> {
    match asked {
        Jail::Explain(it) => explain(here, it, rehearse),
        Jail::Try(it) => trial::run(here, it, rehearse),
    }
}

/// Makes the request for a plan of an existing worker.
pub(super) fn question(
    here: &RepoContext,
    worker: AgentId,
    cwd: Option<&PathBuf>,
) -> Result<Rehearse, CliError> {
    let config = here.config(None)?.config;
    let worker = known(&config, worker)?;
    // With PROVOST_ROOT set a person may be anywhere, so the current directory counts only inside; a named one always counts.
    let root = config.workspace.sandbox_root.as_ref().unwrap_or(&here.places.root);
    let inside = |dir: &PathBuf| {
        dir.canonicalize().is_ok_and(|dir| root.canonicalize().is_ok_and(|r| dir.starts_with(r)))
    };
    let own = config.workers.get(&worker).is_some_and(|it| it.working_dir.is_some());
    let directory = match cwd {
        Some(named) => Some(here.cwd.join(named)),
        None => Some(here.cwd.clone()).filter(|cwd| !own && inside(cwd)),
    };
    Ok(Rehearse {
        places: here.places.clone(),
        config,
        worker,
        directory,
        tier: None,
        command: None,
        timeout: None,
    })
}

fn known(config: &Config, worker: AgentId) -> Result<AgentId, CliError> {
    if config.workers.contains_key(&worker) {
        return Ok(worker);
    }
    if let Some(refused) = config.refused_workers.get(worker.as_str()) {
        let error = CliError::of(format!("worker {worker} cannot be used"));
        return Err(error.because(format!("{}: {}", refused.file, refused.reason)).next("provost doctor"));
    }
    let names = || config.workers.keys().map(AgentId::as_str);
    let next = match nearest(worker.as_str(), names()) {
        Some(near) => format!("did you mean {near}? Or add {worker} to provost.toml"),
        None => "name one of them, or add it to provost.toml".into(),
    };
    let all = names().collect::<Vec<_>>().join(", ");
    Err(CliError::of(format!("there is no worker {worker}"))
        .because(format!("the configuration has {all}"))
        .next(next))
}

fn refused(worker: &AgentId, err: &anyhow::Error) -> CliError {
    CliError::of(format!("worker {worker} would not be started"))
        .because(format!("{err:#}"))
        .next("provost doctor, and look at the worker's entry in provost.toml")
}

fn explain(here: &RepoContext, asked: Explain, rehearse: &Rehearsal) -> Result<u8, CliError> {
    let mut question = question(here, asked.worker, asked.cwd.as_ref())?;
    question.tier = asked.tier.map(Tier::from);
    let worker = question.worker.clone();
    let entry = question.config.workers.get(&worker);
    let copies = entry.map_or(Copies::No, Worker::copies);
    let by_itself = entry.is_some_and(|it| it.copy.is_none());
    let rehearsed = rehearse(question).map_err(|err| refused(&worker, &err))?;
    let plan = &rehearsed.plan;
    let mut facts = plan.describe();
    if copies != Copies::No {
        facts.retain(|(topic, _)| *topic != Topic::Git);
    }
    facts.extend(way_of(copies, by_itself));
    if plan.tier() != Tier::Job {
        let door = "also a door to the daemon, made for each run";
        facts.push((Topic::Network, door.into()));
    }
    facts.sort_by_key(|(topic, _)| *topic);
    let host = wait_for(async { Ok(probe(&Supervisor::default()).await) })?;
    let runs = host.tiers.contains(&plan.tier());
    let open = stays_open(plan.tier());
    let unwell = host.findings.iter().filter(|it| !it.works);
    let notes: Vec<String> = unwell.map(|it| format!("{}: {}", it.name, it.note)).collect();
    if here.json {
        let mut grouped: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (topic, text) in &facts {
            grouped.entry(word(*topic)).or_default().push(text);
        }
        let open: BTreeMap<_, _> = open.into_iter().collect();
        out::json(&json!({ "worker": worker, "may": grouped, "open": open,
                           "host": { "runs_this_tier": runs, "notes": notes } }))?;
        return Ok(DONE);
    }
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut last = String::new();
    for (topic, text) in &facts {
        let name = word(*topic);
        let shown = if name == last { String::new() } else { name.clone() };
        rows.push([shown, out::one_line(text, 4_096)]);
        last = name;
    }
    let mut more = |name: &str, texts: Vec<String>| {
        for (at, text) in texts.into_iter().enumerate() {
            rows.push([if at == 0 { name.to_owned() } else { String::new() }, out::one_line(&text, 4_096)]);
        }
    };
    let open: Vec<String> = open.iter().map(|(name, what)| format!("{what} ({name})")).collect();
    more("stays open", if open.is_empty() { vec!["nothing that is known".into()] } else { open });
    let can = if runs {
        "can run workers of this tier"
    } else {
        "CANNOT run workers of this tier: they are refused"
    };
    more("this host", [vec![can.to_owned()], notes].concat());
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

/// Says where a worker works, and why, if its entry does not tell it.
fn way_of(copies: Copies, by_itself: bool) -> Vec<(Topic, String)> {
    let way = match copies {
        Copies::Kept => {
            "in a private copy: its changes are kept, and reach the directory when you apply them \
             (provost apply TASK)"
        }
        Copies::Thrown => "in a copy, which is deleted afterwards, not in the directory itself",
        Copies::WorkTree => {
            "in a git work tree on a branch of its own: its changes are committed there, and reach your branch when you \
             merge it (provost merge BRANCH); shown here is the directory itself"
        }
        Copies::No => "in the directory itself: its changes take effect at once",
    };
    let why = "because its entry speaks with a model (a key, or a model's name); `copy = false` has it work in the \
               directory itself";
    let own = "the copy has a repository of its own, which the worker may write, except hooks and settings";
    let why = (copies == Copies::Kept && by_itself).then(|| (Topic::Write, why.to_owned()));
    let tree = "read-only: git shows history and status; the daemon commits when the run has ended";
    let own = match copies {
        Copies::No => None,
        Copies::WorkTree => Some((Topic::Git, tree.to_owned())),
        Copies::Thrown | Copies::Kept => Some((Topic::Git, own.to_owned())),
    };
    [(Topic::Write, way.to_owned())].into_iter().chain(why).chain(own).collect()
}

/// Returns the heading of a topic's facts.
fn word(topic: Topic) -> String {
    serde_json::to_value(topic).ok().and_then(|it| Some(it.as_str()?.to_owned())).unwrap_or_default()
}

/// Returns the attempts that succeed in a jail of this tier although they should not: the name and the description of each.
fn stays_open(tier: Tier) -> Vec<(&'static str, &'static str)> {
    match tier {
        Tier::Ns => Vec::new(),
        Tier::Job => OPEN_IN_JOB.iter().map(|open| (open.attempt, open.what)).collect(),
        Tier::Ll => OPEN_IN_LL.iter().map(|open| (open.attempt, open.what)).collect(),
    }
}
