//! The entries of `[workers]`, the same in Provost's files and in DevIt's; the same rules check agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use toml::de::{DeTable, DeValue};

use super::devit;
use super::load::{File, Loading, RefusedWorker, Severity, join};
use super::table::Worker;
use super::value::{Context, Git, Mark, Network, ParseMode, Row, Tier, Value, WorkerKind};
use provost_base::limits::{MODEL_NAME_BYTES_MAX, OUTLETS_MAX, SECRETS_PER_WORKER_MAX};
use provost_base::nearest;
use provost_base::{AgentId, Destination};

/// Where the tasks of a worker work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Copies {
    /// The worker works in the directory itself.
    No,
    /// The worker works in a copy, which is thrown away.
    Thrown,
    /// In a private copy, whose changes are kept until a person applies them.
    Kept,
}

impl Value for Copies {
    const NAME: &'static str = "false, true or \"kept\"";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        match (value.as_bool(), value.as_str()) {
            (Some(false), _) => Ok(Copies::No),
            (Some(true), _) => Ok(Copies::Thrown),
            (None, Some("kept")) => Ok(Copies::Kept),
            _ => Err(format!("expected {}", Self::NAME)),
        }
    }
    fn print(&self) -> Option<String> {
        Some(match self {
            Copies::No => "false".into(),
            Copies::Thrown => "true".into(),
            Copies::Kept => "\"kept\"".into(),
        })
    }
}

impl Worker {
    /// Where its tasks work: what its entry says, or else what fits its kind.
    pub fn copies(&self) -> Copies {
        // One that is asked through MCP is a server, and works where DevIt says.
        let is_started = self.kind == WorkerKind::Cli;
        let is_apart = is_started && self.git == Git::Read && self.speaks_with_a_model();
        self.copy.unwrap_or(if is_apart { Copies::Kept } else { Copies::No })
    }

    /// Whether its entry shows that a model decides what it does.
    fn speaks_with_a_model(&self) -> bool {
        !self.secrets.is_empty()
            || self.default_model.is_some()
            || self.allowed_models.is_some()
            || self.args.iter().any(|arg| arg.contains("{model}"))
    }
}

impl Loading {
    /// The entries of `[workers]`: each stands alone, and replaces what an earlier file said about its name.
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
                // An earlier file's.
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

/// The warning about a key that a worker, or an agent, does not have.
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

/// Checks the demands that the keys of a worker make on each other.
pub(super) fn fit_together(worker: Worker) -> Result<Worker, String> {
    let refuse = |reason: &str| Err(reason.to_string());
    match (&worker.binary, worker.kind) {
        (None, WorkerKind::Cli | WorkerKind::Mcp) => {
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
    if worker.kind == WorkerKind::Polling && !worker.needs.0.is_empty() {
        return refuse("a `polling` worker begins by itself: remove `needs`, and have it lock what it needs");
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

/// What is said of the network, in the one spelling that rules and the proxy compare.
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
    // Each address of this machine has a port inside, and the proxy has one too.
    match worker.ports.len().max(worker.hosts.len()) < OUTLETS_MAX {
        true => Ok(worker),
        false => Err(format!("`ports` and `hosts` may list at most {}", OUTLETS_MAX - 1)),
    }
}

/// The worker that needs no configuration: the system's shell with the goal, in the strongest jail of the system.
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
