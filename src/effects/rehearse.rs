//! The plan of a run without a request: the paths, variables and limits that a worker would get now, to show or to
//! try.
//!
//! It uses the same preparation as every run; only the task is invented here.

use std::path::PathBuf;
use std::sync::Arc;

use super::agent_run::WriteTree;
use super::prepare::{Prepared, RunEnvironment, prepare_words};
use super::read_only_paths::PlanPurpose;
use super::reason::sentence;
use super::scan_report::{Before, Compared};
use provost_base::{AgentId, RepoPath, RuleId, TaskId, Timestamp, Ttl};
use provost_domain::{
    Credentials, Delegate, Directory, Door, Failure, Network, ScanReport, Task, TaskState, Terms, Tier,
    WorkerKind,
};
use provost_jail::{Fill, ForbiddenPaths, Plan, Profile, Root, resolve_program};
use provost_vault::Vault;

/// The task id that a worker sees in a rehearsal.
const ID: &str = "rehearsal";

/// The run that is rehearsed.
pub struct Rehearsal {
    /// The profile of the worker whose run is rehearsed.
    pub profile: Profile,
    /// The top directory of the workspace.
    pub root: Root,
    /// The paths that no worker ever sees.
    pub forbidden_paths: ForbiddenPaths,
    /// Folder for the copy of a worker that works in one.
    pub copies: PathBuf,
    /// The store of secrets for workers.
    pub vault: Vault,
    /// The network access that the run may have.
    pub network: Network,
    /// The tier of the jail.
    pub tier: Tier,
    /// The directory to work in; `None` for the worker's usual one, or else the workspace.
    pub directory: Option<RepoPath>,
    /// The arguments to run instead of the worker's own; the program is the worker's.
    pub words: Option<Vec<String>>,
    /// The limit of time; `None` for the worker's own.
    pub timeout: Option<Ttl>,
}

/// A plan, and the resources that have to be held while the plan is used.
pub struct Rehearsed {
    /// The plan that a run would get now.
    pub plan: Plan,
    prepared: Prepared,
}

/// The leftovers of a program in the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Left {
    /// Files that run later, or links that lead out.
    pub report: ScanReport,
    /// Repositories that the program has made, and their present names, in words.
    pub made: Option<String>,
}

impl Rehearsed {
    /// Compares the workspace with its state before. Blocking; called when no process of the program is left.
    pub fn left(self) -> Left {
        let before = self.prepared.before.as_ref();
        let Compared { report, made } = before.map_or_else(Compared::default, Before::compare);
        Left { report, made }
    }
}

/// Makes the plan. Blocking: it opens, hashes and copies files.
///
/// # Errors
/// The reason why such a run would not begin.
pub fn rehearse(asked: Rehearsal) -> Result<Rehearsed, String> {
    planned(asked).map_err(|failure| sentence(&failure))
}

fn planned(asked: Rehearsal) -> Result<Rehearsed, Failure> {
    let refused = |why: String| Failure::JailRefused { why: why.into() };
    let program = resolve_program(&asked.profile.program).map_err(|e| refused(e.to_string()))?;
    let program = asked.profile.fingerprint(program.digest());
    let directory = directory(&asked)?;
    let mut task = task(&asked.profile, asked.timeout);
    if let Network::Hosts(hosts) = &asked.network {
        task.terms.hosts.clone_from(hosts);
    }
    // No policy is asked here, so the configuration alone decides how secrets are given.
    task.terms.credentials = Some(Credentials::Env);
    task.network = asked.network.clone();
    (task.program, task.directory) = (Some(program), Some(directory));
    let trying = if asked.words.is_some() { PlanPurpose::InEarnest } else { PlanPurpose::ToShow };
    let Rehearsal { root, forbidden_paths, copies, vault, .. } = asked;
    // There is no door, since a door leads to a daemon, and none may run.
    // Nothing is rehearsed on a commit.
    let commits: WriteTree = Arc::new(|_, _| Err("a rehearsal has no commit".into()));
    let place = RunEnvironment {
        root,
        forbidden_paths,
        copies,
        vault,
        doors: None,
        program: None,
        trees: None,
        trace_parent: None,
        commits,
        sessions: None,
        trying,
    };
    let prepared = prepare_words(&place, &task, &Arc::new(asked.profile), (asked.tier, None), asked.words)?;
    Ok(Rehearsed { plan: prepared.plan.clone(), prepared })
}

fn task(profile: &Profile, timeout: Option<Ttl>) -> Task {
    let id = |text| AgentId::parse(text).expect("a constant that is a valid id");
    // A worker that needs a model gets one that it would be given.
    let model = profile.default_model.clone().or_else(|| profile.allowed_models.first().cloned());
    let order = Delegate {
        model: Some(model.unwrap_or_else(|| "model".into()).into()),
        ..Delegate::of(
            TaskId::parse(ID).expect("a constant that is a valid id"),
            "".into(),
            profile.id.clone(),
            timeout.unwrap_or(profile.timeout),
        )
    };
    Task {
        request: order.digest(),
        order,
        asked_by: id("user"),
        asked_from: None,
        worked_from: None,
        asked_via: Door::Own,
        kind: WorkerKind::Cli,
        state: TaskState::Queued { until: Timestamp(0) },
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        rule: RuleId::parse(ID).expect("a constant that is a valid id"),
        terms: Terms::default(),
        directory: None,
        program: None,
        network: Network::None,
        tried: 0,
        waits: Vec::new(),
        depth: 0,
        above: None,
        approval: None,
        model_used: None,
        capture: false,
        beside: Vec::new(),
        handoff: None,
        watched: None,
        changes: None,
        talk: None,
        daemon: Default::default(),
        travel: None,
        failure: None,
        notes: Vec::new(),
    }
}

/// Returns the directory of the run, as it is now.
fn directory(asked: &Rehearsal) -> Result<Directory, Failure> {
    let sandbox = |why: String| Failure::Sandbox { why: why.into() };
    let root = asked.root.place().path().to_string_lossy().into_owned();
    let relative = match (&asked.directory, &asked.profile.working_dir) {
        (Some(named), _) => named.clone(),
        (None, None) => RepoPath::default(),
        (None, Some(own)) => {
            let fill = Fill { goal: "", workspace: &root, task_id: ID, model: Some("model") };
            let own = asked.profile.filled(own, &fill).map_err(|e| sandbox(e.to_string()))?;
            let inside = own.strip_prefix(&*root).unwrap_or(&own).trim_start_matches('/').to_owned();
            RepoPath::parse(&inside).map_err(|e| sandbox(format!("working_dir '{own}' {e}")))?
        }
    };
    let found = asked.root.resolve_dir(&relative).map_err(|e| sandbox(e.to_string()))?;
    let place = found.place();
    let inside = place.path().strip_prefix(asked.root.place().path()).unwrap_or(place.path());
    let relative =
        RepoPath::parse(&inside.to_string_lossy()).map_err(|e| sandbox(format!("the directory {e}")))?;
    let absolute = place.path().to_string_lossy().into();
    Ok(Directory { relative, absolute, dev: place.dev(), ino: place.ino() })
}
