//! The entries of `[workers]`, the same in Provost's files and in DevIt's; the same rules check agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::devit;
use super::load::{File, Loading, RefusedWorker, Severity, join};
use super::resources::Needs;
use super::table::{key, section};
use super::value::{
    ByteSize, Context, Git, Mark, Network, ParseMode, Row, Tier, Value, checked, quoted, words,
};
use provost_base::limits::{MODEL_NAME_BYTES_MAX, OUTLETS_MAX, RETRIES_MAX, SECRETS_PER_WORKER_MAX};
use provost_base::nearest;
use provost_base::{AgentId, Destination, Json, RepoPath, Ttl};

words! {
    /// The way in which a worker gets its tasks.
    WorkerKind {
        /// The daemon starts it once per task.
        Cli = "cli",
        /// The daemon starts it once per task, and speaks MCP with it.
        Mcp = "mcp",
        /// The daemon starts it once per task, and speaks the Agent Client Protocol with it.
        Acp = "acp",
        /// The worker connects by itself, and collects its tasks.
        Polling = "polling",
    }
}

words! {
    /// What happens to an agent's turn when the editor that asked for it, such as `provost acp`, disconnects.
    EditorGone {
        /// The turn's task is cancelled.
        Cancel = "cancel",
        /// The turn's task goes on, and its changes are kept.
        Continue = "continue",
    }
}

section! {
    /// One `[workers.<ident>]` entry: a program that does delegated work, in the jail unless its type is `polling`.
    Worker {
        /// `cli`: run once per task; `mcp`: an MCP server over stdio; `acp`: an agent that speaks the Agent Client Protocol over stdio; `polling`: connects by itself and no jail confines it.
        kind as "type": WorkerKind = WorkerKind::Polling, "", Required;
        /// The program, absolute or found on `PATH`; needed unless the type is `polling`, and never with `..` in it.
        binary: Option<String> = None, "program";
        /// Its arguments; `{goal}`, `{workspace}`, `{task_id}` and `{model}` are filled in. Without `{goal}` the goal comes last.
        args: Vec<String> = Vec::new(), "";
        /// The daemon stops the worker after this time, or sooner if the task says so.
        timeout_secs: u64 = 300, "seconds" within 1..=604_800;
        /// Whether standard output is one JSON value or plain text. A worker of type `mcp` always speaks JSON.
        parse_mode: ParseMode = ParseMode::Json, "";
        /// The directory it starts in, with placeholders; by default the task's, else the workspace.
        working_dir: Option<String> = None, "path";
        /// Standard output beyond this is cut off and marked as truncated.
        max_response_chars: Option<u64> = None, "bytes" within Some(1)..=Some(1 << 30);
        /// The tool that the daemon calls on a worker of type `mcp`.
        mcp_tool: String = "devit_delegate".into(), "tool";
        /// Arguments added to that call; they override the task's.
        mcp_arguments: Option<Json> = None, "";
        /// The mode that the daemon sets on a worker of type `acp`; without it, `default`, in which agents ask, where the agent has that mode.
        acp_mode: Option<String> = None, "mode", Strict;
        /// The way by which such a worker is signed in where it asks for that; without it, the first way by an API key.
        acp_sign_in: Option<String> = None, "method";
        /// What becomes of a turn when the editor goes that uses such a worker by `provost acp`: `cancel` its task, or let it `continue`.
        editor_gone: EditorGone = EditorGone::Cancel, "";
        /// The model used when the task names none.
        default_model: Option<String> = None, "model";
        /// The models that a task may ask for; by default any.
        allowed_models: Option<Vec<String>> = None, "model", Strict;
        /// `ns`: own namespaces; `ll`: Landlock only, where the system allows no namespaces; `job`: on Windows, only prevents writing, needs `copy`, and a rule that names it. Policy sets the minimum.
        tier: Tier = Tier::Ns, "", Strict;
        /// `none`; `ports`: the local ports listed; `hosts`: the hosts listed, through a proxy. The latter two need tier `ns`.
        network: Network = Network::None, "", Strict;
        /// Local ports that it may reach; never those of Provost's own doors.
        ports: Vec<u16> = Vec::new(), "port", Strict;
        /// Hosts that it may reach, as `host:port`. A name leads to public addresses only; `host:port=address` sets the address, `address:port` means exactly that address.
        hosts: Vec<String> = Vec::new(), "host:port", Strict;
        /// Paths outside the workspace that the worker may read.
        read_only: Vec<PathBuf> = Vec::new(), "path", Strict;
        /// Paths in the workspace that this worker may not change, besides those of `workspace.protect`.
        protect: Vec<RepoPath> = Vec::new(), "path", Strict;
        /// Environment variables of the worker; it inherits none besides `PATH`, the locale and the documented ones.
        env: BTreeMap<String, String> = BTreeMap::new(), "";
        /// Names of the secrets that a task of this worker may get; policy decides in which form.
        secrets: Vec<String> = Vec::new(), "name", Strict;
        /// Private memory that each of its processes may have.
        memory: ByteSize = ByteSize(4 << 30), "bytes" within ByteSize(16 << 20)..=ByteSize(1 << 50), Strict;
        /// Processes and threads that it may have at once.
        processes: u32 = 256, "processes" within 1..=65_536, Strict;
        /// Descriptors that each of its processes may have open. With 1,024 or more it can keep other programs of yours from passing descriptors to each other.
        open_files: u32 = 768, "descriptors" within 64..=1_048_576, Strict;
        /// The largest file that it may write.
        file_size: ByteSize = ByteSize(1 << 30), "bytes" within ByteSize(1 << 10)..=ByteSize(1 << 50), Strict;
        /// The size of `/tmp`, `/dev/shm` and its home together; in tier `ll` the daemon watches it, without a hard limit.
        tmp_size: ByteSize = ByteSize(512 << 20), "bytes" within ByteSize(1 << 20)..=ByteSize(1 << 50), Strict;
        /// Processor time of each of its processes; by default the time limit times the number of cores.
        cpu_secs: Option<u64> = None, "seconds" within Some(1)..=Some(604_800 * 1_024), Strict;
        /// By how much the directories that it may change may grow while it runs, including other programs' writes; the daemon checks about once a second, and ends the worker beyond it.
        growth: ByteSize = ByteSize(16 << 30), "bytes" within ByteSize(1 << 20)..=ByteSize(1 << 50), Strict;
        /// By how many files and directories they may grow.
        growth_files: u64 = 1_000_000, "files" within 1..=1_000_000_000, Strict;
        /// Its access to the repository that it works in: `read`; or `write`: commit, stage, move branches, which a rule has to allow by `when.git`. Hooks, settings and other repositories in the workspace stay read-only. In a copy a worker commits freely.
        git: Git = Git::Read, "", Strict;
        /// The place of its tasks. `false`: the directory itself; `true`: a copy of it, which is deleted afterwards; `"kept"`: a private copy of the files that git does not ignore, whose changes `provost apply` writes; `"worktree"`: a git work tree on a branch of its own, on which its changes are committed. By default `"kept"` for an entry of type `acp`, and for one of type `cli` that speaks with a model: one that has `secrets`, `default_model`, `allowed_models` or `{model}` among its `args`; and `false` for others and with `git = "write"`.
        copy: Option<Copies> = None, "", Strict;
        /// Whether tasks that are asked for on another host run here also where `copy` is `false`: then they work in this clone, if it is at the commit of the asker's, without changes.
        other_hosts: bool = false, "", Strict;
        /// Resources that each of its runs has for itself, such as `@db:test`: a task waits for them before it takes one of `limits.workers`, and its run gives them back.
        needs: Needs = Needs::default(), "", Strict;
        /// How long a task waits for them before it fails.
        needs_wait: Ttl = Ttl::minutes(30), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60);
        /// How often a task begins again whose run has ended with an exit code other than zero, unless its asker or a rule's `limit.retries` says another number; rates of rules and budgets count each attempt. Not for jobs of editors.
        retries: u32 = 0, "attempts" within 0..=RETRIES_MAX, Strict;
        /// How long the second attempt waits; each later one waits twice as long as the one before it, an hour at the most.
        retry_delay: Ttl = Ttl::seconds_clamped(10), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(60);
        /// Whether a run that was lost since the daemon ended begins again, too. Only for work that may be done twice.
        retry_lost: bool = false, "", Strict;
        /// Whether a run that was over its time begins again, too, with the whole time.
        retry_timeouts: bool = false, "", Strict;
    }
}

/// The place in which a worker's tasks work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Copies {
    /// The worker works in the directory itself.
    No,
    /// The worker works in a copy, which is deleted afterwards.
    Thrown,
    /// The worker works in a private copy, whose changes are kept until a person applies them.
    Kept,
    /// The worker works in a git work tree on a branch of its own, on which the daemon commits its changes.
    WorkTree,
}

impl Value for Copies {
    const NAME: &'static str = "false, true, \"kept\" or \"worktree\"";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        match (value.as_bool(), value.as_str()) {
            (Some(false), _) => Ok(Copies::No),
            (Some(true), _) => Ok(Copies::Thrown),
            (None, Some("kept")) => Ok(Copies::Kept),
            (None, Some("worktree")) => Ok(Copies::WorkTree),
            _ => Err(format!("expected {}", Self::NAME)),
        }
    }
    fn print(&self) -> Option<String> {
        Some(match self {
            Copies::No => "false".into(),
            Copies::Thrown => "true".into(),
            Copies::Kept => "\"kept\"".into(),
            Copies::WorkTree => "\"worktree\"".into(),
        })
    }
}

impl Worker {
    /// Returns the place of its tasks: the one in its entry, or else the one that fits its kind.
    pub fn copies(&self) -> Copies {
        // A worker that speaks MCP is a server, and works in the directory that DevIt defines.
        let is_agent = match self.kind {
            WorkerKind::Cli => self.speaks_with_a_model(),
            WorkerKind::Acp => true,
            WorkerKind::Mcp | WorkerKind::Polling => false,
        };
        let is_apart = is_agent && self.git == Git::Read;
        self.copy.unwrap_or(if is_apart { Copies::Kept } else { Copies::No })
    }

    /// Checks whether its entry shows that a model decides its actions.
    fn speaks_with_a_model(&self) -> bool {
        !self.secrets.is_empty()
            || self.default_model.is_some()
            || self.allowed_models.is_some()
            || self.args.iter().any(|arg| arg.contains("{model}"))
    }
}

impl Loading {
    /// Reads the entries of `[workers]`: each stands alone, and replaces the entry of an earlier file with the same name.
    pub(super) fn workers(&mut self, file: &File<'_>, workers: &DeTable<'_>) {
        for (name, entry) in workers {
            let (name, at) = (name.get_ref().to_string(), name.span().start);
            let full = join("workers", &name);
            if self.done.origins.get(&join("agent", &name)).is_some_and(|it| it == file.name) {
                let message =
                    "is the name of an `[[agent]]` in this file; the agent counts, this entry does not";
                self.note(file, at, &full, message.into(), Severity::Error);
                continue;
            }
            self.done.config.refused_workers.remove(&name);
            let id = AgentId::parse(&name).map_err(|why| format!("the name {why}"));
            if let Ok(id) = &id {
                self.done.config.workers.remove(id);
                // This agent may come from an earlier file.
                self.done.config.agents.retain(|agent| agent.id != *id);
            }
            let worker = match entry.get_ref() {
                DeValue::Table(table) => self.worker(file, &full, table),
                other => Err(format!("expected a table, found {}", other.type_str())),
            };
            match id.and_then(|id| Ok((id, worker?))) {
                Ok((id, worker)) => {
                    self.done.config.workers.insert(id, worker);
                    self.done.origins.insert(full, file.name.into());
                }
                Err(reason) => {
                    self.note(file, at, &full, format!("{reason}; this worker is refused"), Severity::Error);
                    let refused = RefusedWorker { file: file.name.into(), reason, is_agent: false };
                    self.done.config.refused_workers.insert(name, refused);
                }
            }
        }
    }

    fn worker(&mut self, file: &File<'_>, full: &str, table: &DeTable<'_>) -> Result<Worker, String> {
        let (mut worker, rows) = (Worker::default(), Worker::rows());
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match worker.set(name, value.get_ref(), &file.context) {
                Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
                None => {
                    let message = match devit::worker_key(name) {
                        Some(known) => known.into(),
                        None => unknown(name, &rows, "a worker")?,
                    };
                    self.note(file, key.span().start, &join(full, name), message, Severity::Warning);
                }
            }
        }
        if let Some(row) =
            rows.iter().find(|row| row.marks.contains(&Mark::Required) && !table.contains_key(row.key))
        {
            return Err(format!("`{}` is missing: write {}", row.key, row.words.join(" or ")));
        }
        fit_together(worker)
    }
}

/// Returns the warning about a key that a worker, or an agent, does not have.
///
/// # Errors
/// The same text, for callers that ask for the worker, when the key was meant to restrict it.
pub(super) fn unknown(key: &str, rows: &[Row], of: &str) -> Result<String, String> {
    let meant = nearest(key, rows.iter().map(|row| row.key));
    let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let restricts = rows.iter().any(|row| meant == Some(row.key) && row.marks.contains(&Mark::Strict));
    if restricts {
        return Err(format!("`{key}` is not a setting of {of}{hint}"));
    }
    Ok(format!("is not a setting of {of}{hint}"))
}

/// Checks the keys of a worker against each other.
pub(super) fn fit_together(worker: Worker) -> Result<Worker, String> {
    let refuse = |reason: &str| Err(reason.to_string());
    match (&worker.binary, worker.kind) {
        (None, WorkerKind::Cli | WorkerKind::Mcp | WorkerKind::Acp) => {
            return refuse("`binary` is missing: name the program to run");
        }
        (Some(_), WorkerKind::Polling) => {
            return refuse("a `polling` worker connects by itself: remove `binary`");
        }
        (Some(binary), _) if Path::new(binary).components().any(|part| part == Component::ParentDir) => {
            return refuse("`binary` must not contain `..`");
        }
        _ => {}
    }
    if worker.copy == Some(Copies::WorkTree)
        && (worker.kind == WorkerKind::Polling || worker.tier != Tier::Ns)
    {
        return refuse(
            "a work tree is for a worker that the daemon starts in tier `ns`, which keeps it from writing `.git`: use \
             `tier = \"ns\"`, or another `copy`",
        );
    }
    if worker.kind != WorkerKind::Acp && (worker.acp_mode.is_some() || worker.acp_sign_in.is_some()) {
        return refuse(
            "`acp_mode` and `acp_sign_in` are for a worker of type `acp`, or an agent with `stream = \"acp\"`",
        );
    }
    if worker.kind == WorkerKind::Polling && !worker.needs.0.is_empty() {
        return refuse("a `polling` worker begins by itself: remove `needs`, and have it lock what it needs");
    }
    if worker.kind == WorkerKind::Polling && worker.retries > 0 {
        return refuse("a `polling` worker begins by itself: remove `retries`");
    }
    if worker.needs.0.iter().any(|it| it.kind() == "git") {
        return refuse("`needs`: what begins with `@git` is taken by git's commands themselves");
    }
    if worker
        .default_model
        .as_ref()
        .is_some_and(|it| it.len() > MODEL_NAME_BYTES_MAX || it.chars().any(char::is_control))
    {
        return refuse(&format!(
            "`default_model` has more than {MODEL_NAME_BYTES_MAX} bytes or a control character"
        ));
    }
    if let (Some(model), Some(allowed)) = (&worker.default_model, &worker.allowed_models)
        && !allowed.contains(model)
    {
        return Err(format!("`default_model` {model:?} is not among `allowed_models`"));
    }
    let worker = network_fits(worker)?;
    if worker.secrets.len() > SECRETS_PER_WORKER_MAX {
        return Err(format!("`secrets` may list at most {SECRETS_PER_WORKER_MAX}"));
    }
    for name in worker.env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("`env`: {name:?} cannot be the name of a variable"));
        }
        if name == "DEVIT_SECRET" {
            return refuse("`env`: a worker never gets DEVIT_SECRET; it is recognised without it");
        }
    }
    Ok(worker)
}

/// Checks the settings of the network, and puts them into the one spelling that rules and the proxy compare.
fn network_fits(mut worker: Worker) -> Result<Worker, String> {
    let refuse = |reason: &str| Err(reason.to_string());
    if worker.network != Network::Hosts && !worker.hosts.is_empty() {
        return refuse("`hosts` needs `network = \"hosts\"`");
    }
    if worker.network != Network::Ports && !worker.ports.is_empty() {
        return refuse("`ports` needs `network = \"ports\"`");
    }
    match worker.network {
        Network::None if worker.tier == Tier::Job && worker.copies() == Copies::No => {
            return refuse(
                "tier `job` cannot protect files in the workspace, so that a worker works in a copy of it: add \
                 `copy = true`",
            );
        }
        Network::None => return Ok(worker),
        _ if worker.tier == Tier::Job => {
            return refuse(
                "tier `job` cannot wall a network in, so that nothing can be granted which is not open already: \
                 remove `network`",
            );
        }
        _ if worker.tier == Tier::Ll => {
            return refuse(
                "tier `ll` has no network of its own, and a port granted there would be that port of every machine: \
                 use `tier = \"ns\"` or remove `network`",
            );
        }
        Network::Ports if worker.ports.is_empty() => return refuse("`network = \"ports\"` needs `ports`"),
        Network::Hosts if worker.hosts.is_empty() => return refuse("`network = \"hosts\"` needs `hosts`"),
        Network::Ports | Network::Hosts => {}
    }
    if worker.ports.contains(&0) {
        return refuse("`ports`: 0 is not a port");
    }
    let mut known = BTreeSet::new();
    for host in &mut worker.hosts {
        let read = Destination::parse(host).map_err(|why| format!("`hosts`: {host:?} {why}"))?;
        *host = read.to_string();
        if !known.insert(read.authority) {
            return Err(format!("`hosts`: {host:?} is there twice"));
        }
    }
    worker.ports.sort_unstable();
    worker.ports.dedup();
    // Each address of this machine has a port in the jail, and the proxy has one too.
    match worker.ports.len().max(worker.hosts.len()) < OUTLETS_MAX {
        true => Ok(worker),
        false => Err(format!("`ports` and `hosts` may list at most {}", OUTLETS_MAX - 1)),
    }
}

/// Returns the worker that needs no configuration: the system's shell with the goal, in the strongest jail of the system.
pub(super) fn built_in_workers() -> BTreeMap<AgentId, Worker> {
    let (program, before) = provost_system::shell();
    let shell = Worker {
        kind: WorkerKind::Cli,
        binary: Some(program.to_string_lossy().into_owned()),
        args: before.iter().copied().chain(["{goal}"]).map(str::to_owned).collect(),
        parse_mode: ParseMode::Text,
        tier: if cfg!(windows) { Tier::Job } else { Tier::Ns },
        copy: Some(if cfg!(windows) { Copies::Thrown } else { Copies::No }),
        ..Worker::default()
    };
    let id = AgentId::parse("shell").expect("a constant that is a valid id");
    BTreeMap::from([(id, shell)])
}
