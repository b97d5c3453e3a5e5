//! Makes the plan of a jail from a task and its worker's profile. Blocking: it opens,
//! hashes and copies files.
//!
//! It checks the facts of the permission again, and refuses a directory or program that has been replaced since: the
//! permission was for the first one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::acp::{self, AcpRun};
use super::agent_run::{self, RunFolders, WriteTree};
use super::door::{self, OpenDoor, WorkersDoor};
use super::engine_handle::now;
use super::kept_sessions::{KeptSessions, SessionLease};
use super::mcp::{self, Call};
use super::network;
use super::read_only_paths::{PlanPurpose, shield};
use super::result::requested_model;
use super::scan_report::Before;
use super::secrets;
use super::shared_checkout::CheckoutLease;
use super::work_tree_run::{self, TreeRun};
use provost_base::limits::{ARGUMENT_BYTES_MAX, GOAL_ENV_BYTES_MAX};
use provost_base::{Digest, Ttl};
use provost_domain::command::Record;
use provost_domain::{Directory, Failure, Task, TaskState, Tier};
use provost_egress::Outlets;
use provost_jail::{
    self as jail, Copies, Draft, Environment, Fill, ForbiddenPaths, Limits, Plan, Profile, Program, Resolved,
    ResolvedPath, Root, Supervisor, find_place, resolve_program,
};
use provost_vault::Vault;
use provost_workspace::work_trees::WorkTrees;

/// Variables in which secrets travel; no worker gets them, even if its profile names them.
const SECRETS: [&str; 1] = ["DEVIT_SECRET"];
const OUR_PREFIX: &str = "PROVOST_";

/// The places and stores that runs use.
pub(super) struct RunEnvironment {
    /// The top directory of the workspace.
    pub(super) root: Root,
    /// The user's home, and the folders of the daemon.
    pub(super) forbidden_paths: ForbiddenPaths,
    /// Folder for the copies of workers that work in one.
    pub(super) copies: PathBuf,
    /// The store of secrets for workers.
    pub(super) vault: Vault,
    /// Opens the way back to the daemon.
    pub(super) doors: Option<OpenDoor>,
    /// The program of this daemon, with which a script in the jail speaks at its door; `None` without doors.
    pub(super) program: Option<PathBuf>,
    /// The git work trees of runs; `None` where no run is on record.
    pub(super) trees: Option<Arc<WorkTrees>>,
    /// Returns the span of a task's run.
    pub(super) trace_parent: Option<super::TraceParent>,
    /// Writes the files of a commit.
    pub(super) commits: WriteTree,
    /// The homes of agents' sessions; `None` where no run is on record.
    pub(super) sessions: Option<KeptSessions>,
    /// Whether the plan is for a run, or only to be shown.
    pub(super) trying: PlanPurpose,
}

/// Everything that one run needs.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    /// The record of the secrets that the run gets, to be written before it starts.
    pub(super) secrets: Option<Record>,
    /// The network access of the run; taken when the worker starts.
    pub(super) outlets: Option<Outlets>,
    pub(super) tier: Tier,
    pub(super) limit: Ttl,
    pub(super) model: Option<String>,
    /// The workspace before the run; `None` for a worker whose changes are thrown away.
    pub(super) before: Option<Before>,
    pub(super) door: Option<WorkersDoor>,
    /// The request to the worker, if the daemon speaks with it.
    pub(super) call: Option<Speech>,
    #[expect(
        dead_code,
        reason = "held open until the worker runs, so that no other directory gets its inode"
    )]
    directory: Resolved,
    /// The bytes for the worker's standard input; taken when it starts.
    pub(super) input: Option<Vec<u8>>,
    /// The run's own folders, removed when this is dropped.
    pub(super) private: RunFolders,
    /// The session of the run, if its home is kept.
    pub(super) session: Option<SessionLease>,
}

/// The request to a worker that the daemon speaks with, by its protocol.
#[derive(Clone, Debug)]
pub(super) enum Speech {
    Mcp(Call),
    Acp(AcpRun),
}

impl Speech {
    /// Returns the request to a task's worker; `None` for a worker that the daemon does not speak with.
    fn of(
        profile: &Profile,
        task: &Task,
        limit: Ttl,
        (folders, model, session): ((String, String), Option<&str>, Option<&SessionLease>),
    ) -> Option<Self> {
        let mcp = Call::of(profile, task, limit, model).map(Self::Mcp);
        mcp.or_else(|| AcpRun::of(profile, task, folders, (model, session)).map(Self::Acp))
    }

    /// Returns the name of such a worker in the errors of its runs.
    pub(super) fn whose(&self) -> &'static str {
        match self {
            Speech::Mcp(_) => mcp::WHOSE,
            Speech::Acp(_) => acp::WHOSE,
        }
    }
}

impl Prepared {
    /// Returns the supervisor that starts the worker. A run in a copy keeps no spares, since no later run uses the copy.
    pub(super) fn supervisor(&self, usual: &Supervisor) -> Supervisor {
        match self.private.copy() {
            Some(_) => usual.clone().without_spares(),
            None => usual.clone(),
        }
    }
}

/// Makes the plan of a task.
///
/// # Errors
/// A [`Failure`] that becomes the task's end.
pub(super) fn prepare(
    place: &RunEnvironment,
    task: &Task,
    profile: &Arc<Profile>,
    tier: Tier,
    lent: Option<CheckoutLease>,
) -> Result<Prepared, Failure> {
    if tier == Tier::Job && profile.copies == Copies::No {
        let why = "in tier job a worker works in a copy: set `copy = true` for it";
        return Err(jail_refused(why));
    }
    let words = agent_run::its_arguments(task);
    prepare_words(place, task, profile, (tier, lent), words)
}

/// Makes the plan of a task with these arguments instead of those that the profile makes.
pub(super) fn prepare_words(
    place: &RunEnvironment,
    task: &Task,
    profile: &Arc<Profile>,
    (tier, lent): (Tier, Option<CheckoutLease>),
    words: Option<Vec<String>>,
) -> Result<Prepared, Failure> {
    let asked = requested_model(task.order.model.as_deref(), task.order.context.as_ref());
    let model = profile.model(asked.as_deref(), None).map_err(worker_failed)?;
    check_terms(task, tier)?;
    let program = program(profile, task.program)?;
    let (directory, mut private) = folders(place, task, profile, lent)?;
    let copied = private.copy().is_some();
    let work = match private.copy() {
        Some(copy) => find_place(copy).map_err(jail_refused)?,
        None => directory.place().clone(),
    };
    let folders = (text(work.path())?, text(directory.place().path())?);
    // A command that runs in the worker's place asks and tells nothing.
    let instead = task.order.command().is_some();
    let root = private.tree().map_or(&place.root, |it| &it.root).place().clone();
    let workspace = text(if copied { work.path() } else { root.path() })?;
    let fill = Fill {
        goal: &task.order.goal,
        workspace: &workspace,
        task_id: task.id().as_str(),
        model: model.as_deref(),
    };
    let mut draft = Draft::new(program, environment(profile, &fill, asked.as_deref(), !instead)?, work);
    draft.args = fit(words.map_or_else(|| profile.arguments(&fill).map_err(worker_failed), Ok)?)?;
    draft.tier = tier;
    private.open_repository(&mut draft, profile);
    private.tell(&mut draft, task, place)?;
    let (secrets, outlets) = give(&mut draft, task, profile, (place, tier))?;
    let session = session(place, task, profile, &draft)?;
    draft.kept_home = session.as_ref().map(|it| it.home.clone());
    session.iter().for_each(|it| private.write_down(&it.base()));
    let limit = left_of(limit(profile, task), task);
    draft.limits = limits(profile, task, limit);
    private.narrow(&mut draft.limits)?;
    let around = (!copied && *directory.place() != root).then(|| root.clone());
    show(&mut draft, profile, around)?;
    // The door is opened last, so that none is opened for a worker that cannot start.
    let open = |open: &OpenDoor| open(task, tier).map_err(|e| jail_refused(format!("its own door: {e}")));
    let door = place.doors.as_ref().filter(|_| !instead).map(open).transpose()?;
    door.as_ref().map_or(Ok(()), |door| door::show(&mut draft, door, place.program.as_ref()))?;
    let before = match copied {
        true => None,
        false => Some(shield(profile, tier, (&root, directory.place()), place.trying)?.over(&mut draft)),
    };
    private.tree().map_or(Ok(()), |tree| tree.cover_sockets(&mut draft, tier))?;
    let plan = draft.check(&place.forbidden_paths).map_err(jail_refused)?;
    let call = Speech::of(profile, task, limit, (folders, model.as_deref(), session.as_ref()));
    let input = agent_run::input(task, profile);
    Ok(Prepared {
        plan,
        secrets,
        outlets,
        tier,
        limit,
        model,
        door,
        call,
        before,
        directory,
        input,
        private,
        session,
    })
}

/// Shows the run the folders that it may read: those of its worker, and the workspace around its directory.
fn show(draft: &mut Draft, profile: &Profile, around: Option<ResolvedPath>) -> Result<(), Failure> {
    for path in &profile.read_only {
        draft.toolchain(find_place(path).map_err(jail_refused)?);
    }
    around.into_iter().for_each(|it| draft.surroundings(it));
    Ok(())
}

/// Gives the run its secrets and its network. Returns the record of the secrets, and the network's outlets.
fn give(
    draft: &mut Draft,
    task: &Task,
    profile: &Profile,
    (place, tier): (&RunEnvironment, Tier),
) -> Result<(Option<Record>, Option<Outlets>), Failure> {
    let given = secrets::given(task, profile, &place.vault).map_err(jail_refused)?;
    let secrets = given.on_record(task.id());
    draft.home_files = given.files;
    for (name, value) in &given.variables {
        draft.environment.set(name, value).map_err(jail_refused)?;
    }
    // Without a collector of ours, its worker is within the span that has asked for it.
    let of_run = place.trace_parent.as_ref().map(|parent| parent(task));
    if let Some(parent) = of_run.or_else(|| task.order.trace.as_ref().map(ToString::to_string)) {
        draft.environment.set("TRACEPARENT", &parent).map_err(jail_refused)?;
    }
    let outlets = network::way_of(task, tier, given.keyed).map_err(jail_refused)?.map(|way| {
        draft.network = way.network;
        draft.outlets = way.outlets.ports();
        way.outlets
    });
    for (name, value) in outlets.iter().flat_map(Outlets::environment) {
        draft.environment.set(name, value).map_err(jail_refused)?;
    }
    Ok((secrets, outlets))
}

/// Returns the session of a run, if its home can be kept for a later run.
///
/// # Errors
/// The reason why a session cannot be gone on with.
fn session(
    place: &RunEnvironment,
    task: &Task,
    profile: &Profile,
    draft: &Draft,
) -> Result<Option<SessionLease>, Failure> {
    let is_kept = profile.acp.is_some() && draft.tier == jail::Tier::Ns && draft.home_files.is_empty();
    let sessions = place.sessions.as_ref().filter(|_| is_kept);
    let resumed = task.talk.as_ref().and_then(|it| it.session.as_ref());
    let earlier = resumed.or_else(|| task.order.continues.as_ref().and_then(|it| it.session.as_ref()));
    match (sessions, earlier.map(|it| it.kept.as_ref())) {
        (Some(sessions), Some(Some(first))) => sessions.go_on(first).map(Some).map_err(jail_refused),
        (_, Some(_)) => Err(jail_refused(
            "its session cannot be continued: its worker's entry keeps no home any more, which needs tier ns, type acp and no \
             secrets in files",
        )),
        (Some(sessions), None) => sessions.begin(task.id()).map(Some).map_err(jail_refused),
        (None, None) => Ok(None),
    }
}

/// Returns a task's directory, in the workspace or in its work tree, and the folders that its run has for itself.
fn folders(
    place: &RunEnvironment,
    task: &Task,
    profile: &Profile,
    lent: Option<CheckoutLease>,
) -> Result<(Resolved, RunFolders), Failure> {
    if let Some(tree) = TreeRun::of(place.trees.as_deref(), task, &place.copies)? {
        return Ok((work_tree_run::directory(&tree.root, known(task)?)?, tree.into()));
    }
    let directory = directory(&place.root, task)?;
    let private = RunFolders::of(place, task, profile, &directory, lent)?;
    Ok((directory, private))
}

/// Returns the shortest limit of worker, task and policy.
pub(super) fn limit(profile: &Profile, task: &Task) -> Ttl {
    let asked = profile.timeout.min(task.order.timeout);
    task.terms.timeout.map_or(asked, |most| asked.min(most))
}

/// Returns the rest of the time of a run that has begun before.
fn left_of(limit: Ttl, task: &Task) -> Ttl {
    match task.state {
        TaskState::Running { since, .. } => {
            let left = u64::from(limit.as_millis()).saturating_sub(now().since_ms(since));
            Ttl::from_millis(left).unwrap_or(Ttl::seconds_clamped(1))
        }
        _ => limit,
    }
}

fn limits(profile: &Profile, task: &Task, wall: Ttl) -> Limits {
    let usual = Limits::default();
    let bounds = &profile.bounds;
    let memory = bounds.memory.into_iter().chain(task.terms.memory).min();
    let processes = bounds.processes.into_iter().chain(task.terms.processes).min();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    Limits {
        processes: processes.unwrap_or(usual.processes),
        data_bytes: memory.unwrap_or(usual.data_bytes),
        resident_bytes: memory.unwrap_or(usual.resident_bytes),
        // People set the wall time; the limit of processor time must not end a run before it.
        cpu_seconds: bounds
            .cpu_seconds
            .unwrap_or_else(|| wall.as_seconds().saturating_add(1).saturating_mul(cores)),
        open_files: bounds.open_files.unwrap_or(usual.open_files),
        file_bytes: bounds.file_bytes.unwrap_or(usual.file_bytes),
        tmp_bytes: bounds.tmp_bytes.unwrap_or(usual.tmp_bytes),
        growth_bytes: bounds.growth_bytes.unwrap_or(usual.growth_bytes),
        growth_entries: bounds.growth_entries.unwrap_or(usual.growth_entries),
        wall,
        output_bytes: usual.output_bytes,
    }
}

fn check_terms(task: &Task, tier: Tier) -> Result<(), Failure> {
    if let Some(least) = task.terms.tier_min.filter(|least| tier < *least) {
        let (has, least) = (tier.name(), least.name());
        return Err(jail_refused(format!(
            "its worker runs in tier {has}, and rule {} asks for {least}",
            task.rule
        )));
    }
    Ok(())
}

/// Returns the directory that the task was allowed to work in.
fn known(task: &Task) -> Result<&Directory, Failure> {
    let missing = || Failure::Sandbox { why: "the task has no working directory on record".into() };
    task.directory.as_ref().ok_or_else(missing)
}

/// Returns the task's directory, opened, if it is still the same one.
fn directory(root: &Root, task: &Task) -> Result<Resolved, Failure> {
    let sandbox = |why: String| Failure::Sandbox { why: why.into() };
    let known = known(task)?;
    let found = root.resolve_dir(&known.relative).map_err(|err| sandbox(format!("working_dir {err}")))?;
    let place = found.place();
    if (place.dev(), place.ino()) != (known.dev, known.ino) || place.path() != Path::new(&*known.absolute) {
        let why = format!(
            "working_dir '{}' is not the directory any more that the task was allowed for; delegate it again",
            known.relative
        );
        return Err(sandbox(why));
    }
    Ok(found)
}

/// Returns the executable that the task was allowed to start, if its content and its configuration are still the same.
fn program(profile: &Profile, known: Option<Digest>) -> Result<Program, Failure> {
    let program = resolve_program(&profile.program).map_err(jail_refused)?;
    if known != Some(profile.fingerprint(program.digest())) {
        let why = format!(
            "{} or its configuration is not what the task was allowed for; delegate it again",
            profile.program.display()
        );
        return Err(jail_refused(why));
    }
    Ok(program)
}

/// Makes the environment by DevIt 1.10, "Env added", without any variable that the daemon has inherited or keeps secret.
fn environment(
    profile: &Profile,
    fill: &Fill<'_>,
    asked: Option<&str>,
    told: bool,
) -> Result<Environment, Failure> {
    let host = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let mut environment = Environment::new(host);
    for (name, value) in &profile.env {
        let upper = name.to_ascii_uppercase();
        if SECRETS.contains(&upper.as_str()) || upper.starts_with(OUR_PREFIX) {
            return Err(jail_refused(format!("`{name}` is never given to a worker; remove it from its env")));
        }
        environment.set(name, value).map_err(jail_refused)?;
    }
    // A goal that is longer, or that no variable can hold, is among the arguments all the same.
    let goal =
        Some(fill.goal).filter(|goal| told && goal.len() <= GOAL_ENV_BYTES_MAX && !goal.contains('\0'));
    let variables = [
        ("DEVIT_TASK_ID", Some(fill.task_id)),
        ("DEVIT_GOAL", goal),
        ("DEVIT_WORKSPACE", Some(fill.workspace)),
        ("DEVIT_MODEL_REQUESTED", asked),
        ("DEVIT_MODEL_USED", fill.model),
    ];
    for (name, value) in variables {
        if let Some(value) = value {
            environment.set(name, value).map_err(jail_refused)?;
        }
    }
    Ok(environment)
}

fn fit(args: Vec<String>) -> Result<Vec<String>, Failure> {
    if let Some(long) = args.iter().find(|arg| arg.len() > ARGUMENT_BYTES_MAX) {
        let why = format!(
            "the goal makes an argument of {} bytes, and a program takes at most {ARGUMENT_BYTES_MAX}; \
             put it into a file and name that",
            long.len()
        );
        return Err(worker_failed(why));
    }
    Ok(args)
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| jail_refused(format!("{}: is not a path that a worker can be told", path.display())))
}

pub(super) fn jail_refused(why: impl ToString) -> Failure {
    Failure::JailRefused { why: why.to_string().into() }
}

pub(super) fn worker_failed(why: impl ToString) -> Failure {
    Failure::WorkerFailed { why: why.to_string().into() }
}
