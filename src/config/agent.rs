//! The entries of `[[agent]]` and `[role.<id>]`: programs that do what editors ask for.
//!
//! An agent is a worker of the same name with a private copy of the workspace, plus a description for editors and the
//! format of its messages. The entry's settings of confinement, network, secrets and bounds are a worker's, and are
//! checked by a worker's rules. An invalid entry is refused by itself.

use std::path::{Component, Path};

use toml::de::{DeArray, DeTable, DeValue};

use super::checks::{Checks, Commands, Mode};
use super::load::{File, Loading, RefusedWorker, Severity, join};
use super::table::{key, section};
use super::value::{Context, Mark, ParseMode, Row, Tier, Value, checked, integer, quoted, words};
use super::worker::{Copies, Worker, WorkerKind, fit_together, unknown};
use provost_base::limits::{AGENTS_CONFIGURED_MAX, TEMPLATE_BYTES_MAX};
use provost_base::nearest;
use provost_base::{AgentId, Ttl};

/// The methods that editors ask agents for; the setting `methods` chooses among them.
pub const METHODS: [&str; 9] = [
    "agents.invoke",
    "background.launch",
    "code.explain",
    "code.generateTests",
    "code.refactor",
    "code.review",
    "scan.modernize",
    "scan.techDebt",
    "workflows.run",
];

words! {
    /// The way in which an agent gets its prompt.
    PromptBy {
        /// The prompt is on the agent's standard input.
        Stdin = "stdin",
        /// The prompt is one of the agent's arguments.
        Argument = "argument",
    }
    /// The form of an agent's work.
    Output {
        /// The agent changes files in its copy.
        Edit = "edit",
        /// The agent answers with JSON.
        Json = "json",
        /// The agent answers with text.
        Text = "text",
    }
    /// The format of an agent's standard output.
    Reader {
        /// Every line is text of the answer, unchanged.
        Lines = "lines",
        /// The format of `claude --output-format stream-json`.
        Claude = "claude-json",
        /// The format of `codex exec --json`.
        Codex = "codex-jsonl",
        /// The format of `gemini -o stream-json`.
        Gemini = "gemini-json",
        /// The format of `opencode run --format json`.
        OpenCode = "opencode-json",
        /// The format of `copilot --output-format json`.
        Copilot = "copilot-json",
        /// The agent speaks the Agent Client Protocol over its standard input and output.
        Acp = "acp",
    }
}

section! {
    /// One `[[agent]]` entry: a program that does what editors ask for, always in the jail and in a private copy of the workspace. It is a worker of the same name too.
    AgentConfig {
        /// What it is called everywhere: by editors, in rules, in `provost delegate --worker`.
        id: AgentId = nobody(), "ident", Required, Strict;
        /// Its name for people; without one, its id.
        name: Option<String> = None, "";
        /// What it is good for, in a sentence.
        description: Option<String> = None, "";
        /// What it can do, by which editors choose: `BUILD`, `OPERATE`, `SECURE`, `GOVERN`, `OPTIMIZE`, `EVOLVE`, or a word of one's own.
        capability: String = "BUILD".into(), "word";
        /// Where it runs, for those who ask; everything runs here.
        region: String = "local".into(), "word";
        /// The program and its arguments; `{prompt}`, `{workspace}`, `{task_id}` and `{model}` are filled in.
        command: Vec<String> = Vec::new(), "", Required, Strict;
        /// How it is given its prompt; without this, as an argument where `command` has `{prompt}`, and on its standard input otherwise.
        prompt: Option<PromptBy> = None, "", Strict;
        /// `edit`: it changes files in its copy, which become artifacts; `json`, `text`: it answers on its standard output.
        output: Output = Output::Edit, "", Strict;
        /// How its standard output is read, for progress and for its answer.
        stream: Reader = Reader::Lines, "", Strict;
        /// It is stopped after this long, or sooner where the task says so. `timeout_s = 900` is the same.
        timeout: Ttl = Ttl::minutes(15), "duration", Strict;
        /// Tasks of it that run at the same time; further ones wait.
        max_parallel: u32 = 1, "tasks" within 1..=64, Strict;
        /// What it may be asked for, as the A6s protocol calls it: `code.review`, `code.*`, `*`.
        methods: Vec<String> = vec!["*".into()], "method", Strict;
        /// Commands that tidy up what it has changed, one after the other, in its copy: a formatter, a linter that mends. They run in its jail, without network and secrets; each is a program and its arguments, as in `[["cargo", "fmt"]]`. When one fails, the execution does.
        fix: Commands = Commands::default(), "command", Strict;
        /// Commands that check what it has changed, tests say, likewise; what they change is not kept.
        check: Commands = Commands::default(), "command", Strict;
        /// What a check that fails means, and a reviewer that does: `reported`: it is told in `.provost/checks.md` among the artifacts; `required`: the execution fails too.
        checks: Checks = Checks::Reported, "", Strict;
        /// An agent that looks at what was changed, in the same copy; what it says is `.provost/review.md` among the artifacts.
        reviewer: Option<AgentId> = None, "ident", Strict;
        /// How the phases of its executions are done; without this, as `[a6s]` says.
        mode: Option<Mode> = None, "", Strict;
        /// Whether its delegated tasks work in a git work tree on a branch of their own, on which their changes are committed, instead of a private copy. What editors ask of it is done in a copy all the same. It needs tier `ns`.
        worktree: bool = false, "", Strict;
        /// Whether it works at all.
        enabled: bool = true, "", Strict;
    }
}

section! {
    /// One `[role.<id>]` entry: another name for an agent, with a sentence in front of its prompts.
    Role {
        /// The agent behind it; without it, the first one.
        agent: Option<AgentId> = None, "ident";
        /// What its prompts begin with; without it, the built-in sentence for this id, if there is one.
        preamble: Option<String> = None, "";
    }
}

/// The keys that an agent shares with a worker.
const SHARED: [&str; 27] = [
    "tier",
    "network",
    "ports",
    "hosts",
    "read_only",
    "protect",
    "needs",
    "needs_wait",
    "retries",
    "retry_delay",
    "retry_lost",
    "retry_timeouts",
    "env",
    "secrets",
    "memory",
    "processes",
    "open_files",
    "file_size",
    "tmp_size",
    "cpu_secs",
    "growth",
    "growth_files",
    "default_model",
    "allowed_models",
    "acp_mode",
    "acp_sign_in",
    "editor_gone",
];

fn nobody() -> AgentId {
    AgentId::parse("agent").expect("a plain word")
}

impl AgentConfig {
    /// Returns the rows of an entry: its own, and those that it shares with a worker.
    pub fn all_rows() -> Vec<Row> {
        let shared = Worker::rows().into_iter().filter(|row| SHARED.contains(&row.key));
        Self::rows().into_iter().chain(shared).collect()
    }

    /// Returns the way in which the agent gets its prompt: the setting, or the one that fits `command`.
    pub fn prompt_by(&self) -> PromptBy {
        let placed = self.command.iter().skip(1).any(|arg| has_prompt(arg));
        self.prompt.unwrap_or(if placed { PromptBy::Argument } else { PromptBy::Stdin })
    }
}

fn has_prompt(arg: &str) -> bool {
    arg.contains("{prompt}") || arg.contains("{goal}")
}

fn admits(pattern: &str, method: &str) -> bool {
    pattern == "*"
        || pattern == method
        || pattern
            .strip_suffix(".*")
            .is_some_and(|domain| method.strip_prefix(domain).is_some_and(|rest| rest.starts_with('.')))
}

impl Loading {
    /// Reads the entries of `[[agent]]`: each stands alone, and replaces the entry of an earlier file with the same id.
    pub(super) fn agents(&mut self, file: &File<'_>, list: &DeArray<'_>) {
        for entry in list {
            let at = entry.span().start;
            let read = match entry.get_ref() {
                DeValue::Table(table) => self.agent(file, table),
                other => Err((None, format!("expected a table, found {}", other.type_str()))),
            };
            match read {
                Ok((agent, worker)) => self.put_agent(file, agent, worker),
                Err((id, reason)) => self.refuse_agent(file, at, id, reason),
            }
        }
    }

    /// Notes agents that may run more tasks at the same time than all workers together, since the user would not
    /// notice otherwise.
    pub(super) fn note_capped_agents(&mut self) {
        let workers = self.done.config.limits.workers;
        let capped = self.done.config.agents.iter().filter(|agent| agent.max_parallel > workers);
        let capped: Vec<(String, u32)> =
            capped.map(|agent| (agent.id.to_string(), agent.max_parallel)).collect();
        for (id, wanted) in capped {
            let key = join("agent", &id);
            let name = self.done.origins.get(&key).cloned().unwrap_or_default();
            let message = format!(
                "`max_parallel = {wanted}` is more than `limits.workers = {workers}`, which counts for all workers \
                 together: no more than {workers} of its tasks run at the same time; raise `limits.workers`, or lower this"
            );
            self.note_of(&name, &key, message, Severity::Warning);
        }
    }

    fn put_agent(&mut self, file: &File<'_>, agent: AgentConfig, worker: Worker) {
        let config = &mut self.done.config;
        config.refused_workers.remove(agent.id.as_str());
        config.workers.insert(agent.id.clone(), worker);
        self.done.origins.insert(join("agent", agent.id.as_str()), file.name.into());
        match config.agents.iter_mut().find(|known| known.id == agent.id) {
            Some(known) => *known = agent,
            None => config.agents.push(agent),
        }
    }

    /// Refuses every agent of this name, also one of an earlier file, since the later file was meant to replace it.
    fn refuse_agent(&mut self, file: &File<'_>, at: usize, id: Option<AgentId>, reason: String) {
        let full = id.as_ref().map_or("agent".into(), |id| join("agent", id.as_str()));
        self.note(file, at, &full, format!("{reason}; this agent is refused"), Severity::Error);
        let Some(id) = id else { return };
        self.done.config.agents.retain(|known| known.id != id);
        self.done.config.workers.remove(&id);
        let refused = RefusedWorker { file: file.name.into(), reason, is_agent: true };
        self.done.config.refused_workers.insert(id.as_str().into(), refused);
    }

    fn agent(
        &mut self,
        file: &File<'_>,
        table: &DeTable<'_>,
    ) -> Result<(AgentConfig, Worker), (Option<AgentId>, String)> {
        let id = self.agent_id(file, table).map_err(|why| (None, why))?;
        let read = self.agent_entry(file, table, &id);
        read.map_err(|why| (Some(id), why))
    }

    /// Reads the id, under which all other notes about the entry are shown.
    fn agent_id(&self, file: &File<'_>, table: &DeTable<'_>) -> Result<AgentId, String> {
        let value = table.get("id").ok_or("`id` is missing: give it a name")?;
        let id = AgentId::read(value.get_ref(), &file.context).map_err(|why| format!("`id`: {why}"))?;
        if id.as_str() == "shell" {
            return Err("`id`: `shell` is the name of the built-in worker; choose another one".into());
        }
        if self.done.origins.get(&join("agent", id.as_str())).is_some_and(|it| it == file.name) {
            return Err(format!("`id`: `{id}` is there twice; the first one counts"));
        }
        let known = self.done.config.agents.iter().any(|it| it.id == id);
        if !known && self.done.config.agents.len() >= AGENTS_CONFIGURED_MAX {
            return Err(format!("there may be at most {AGENTS_CONFIGURED_MAX} agents"));
        }
        Ok(id)
    }

    fn agent_entry(
        &mut self,
        file: &File<'_>,
        table: &DeTable<'_>,
        id: &AgentId,
    ) -> Result<(AgentConfig, Worker), String> {
        let (mut agent, mut worker, rows) =
            (AgentConfig::default(), Worker::default(), AgentConfig::all_rows());
        for (key, value) in table {
            let (name, value) = (key.get_ref().as_ref(), value.get_ref());
            let set = match spelled_otherwise(name, value, &file.context) {
                Some(meant) => Some(meant.map(|meant| meant.put(&mut agent, &mut worker))),
                None if SHARED.contains(&name) => worker.set(name, value, &file.context),
                None => agent.set(name, value, &file.context),
            };
            match set {
                Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
                None => {
                    let message = unknown(name, &rows, "an agent")?;
                    let full = join(&join("agent", id.as_str()), name);
                    self.note(file, key.span().start, &full, message, Severity::Warning);
                }
            }
        }
        if !table.contains_key("command") {
            return Err("`command` is missing: name the program and its arguments".into());
        }
        let worker = fit_together(as_worker(&agent, worker)?)?;
        Ok((agent, worker))
    }

    /// Reads the entries of `[role]`.
    pub(super) fn roles(&mut self, file: &File<'_>, roles: &DeTable<'_>) {
        let rows = Role::rows();
        for (name, entry) in roles {
            let (name, at) = (name.get_ref().to_string(), name.span().start);
            let full = join("role", &name);
            let read = AgentId::parse(&name).map_err(|why| format!("the name {why}")).and_then(|id| {
                let DeValue::Table(table) = entry.get_ref() else {
                    return Err(format!("expected a table, found {}", entry.get_ref().type_str()));
                };
                let mut role = Role::default();
                for (key, value) in table {
                    match role.set(key.get_ref(), value.get_ref(), &file.context) {
                        Some(result) => result.map_err(|why| format!("`{}`: {why}", key.get_ref()))?,
                        None => {
                            let message = unknown(key.get_ref(), &rows, "a role")?;
                            let at = key.span().start;
                            self.note(file, at, &join(&full, key.get_ref()), message, Severity::Warning);
                        }
                    }
                }
                Ok((id, role))
            });
            match read {
                Ok((id, role)) => {
                    self.done.config.roles.insert(id, role);
                    self.done.origins.insert(full, file.name.into());
                }
                Err(why) => {
                    self.note(file, at, &full, format!("{why}; this role is refused"), Severity::Error);
                    self.done.config.roles.retain(|known, _| known.as_str() != name);
                }
            }
        }
    }

    /// Refuses roles without an agent, once everything is read: a request to one could not be answered.
    pub(super) fn join_roles(&mut self) {
        let config = &self.done.config;
        let is_agent = |id: &AgentId| config.agents.iter().any(|agent| agent.id == *id);
        let complaint = |(id, role): (&AgentId, &Role)| {
            let named = role.agent.as_ref();
            if is_agent(id) {
                return Some((id.clone(), "is an agent's id; this role is refused".to_owned()));
            }
            let missing = named.filter(|agent| !is_agent(agent))?;
            let near = nearest(missing.as_str(), config.agents.iter().map(|agent| agent.id.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Some((
                id.clone(),
                format!("no agent that can be used is called `{missing}`{hint}; this role is refused"),
            ))
        };
        let complaints: Vec<_> = config.roles.iter().filter_map(complaint).collect();
        for (id, message) in complaints {
            let full = join("role", id.as_str());
            let name = self.done.origins.remove(&full).unwrap_or_default();
            self.done.config.roles.remove(&id);
            self.note_of(&name, &full, message, Severity::Error);
        }
    }
}

/// The meaning of a key that an agent's entry may spell differently.
enum OtherSpelling {
    Timeout(Ttl),
    Tier(Tier),
    Secrets(Vec<String>),
    NoNetwork,
    ByArgument,
}

impl OtherSpelling {
    fn put(self, agent: &mut AgentConfig, worker: &mut Worker) {
        match self {
            OtherSpelling::Timeout(timeout) => agent.timeout = timeout,
            OtherSpelling::Tier(tier) => worker.tier = tier,
            OtherSpelling::Secrets(names) => worker.secrets.extend(names),
            OtherSpelling::NoNetwork => {}
            OtherSpelling::ByArgument => agent.prompt = Some(PromptBy::Argument),
        }
    }
}

fn spelled_otherwise(
    key: &str,
    value: &DeValue<'_>,
    context: &Context,
) -> Option<Result<OtherSpelling, String>> {
    Some(match (key, value) {
        ("timeout_s" | "timeout_secs", _) => integer(value).and_then(|seconds| {
            let ms = seconds.checked_mul(1_000).and_then(Ttl::from_millis);
            ms.map(OtherSpelling::Timeout).ok_or_else(|| "must lie between 1 and 604800".into())
        }),
        ("sandbox", _) => match value.as_str() {
            Some("default") => Ok(OtherSpelling::Tier(Worker::default().tier)),
            _ => Tier::read(value, context)
                .map(OtherSpelling::Tier)
                .map_err(|why| format!("{why} or \"default\"")),
        },
        // A list names secrets; a table sets the variables themselves.
        ("env", DeValue::Array(_)) => Vec::read(value, context).map(OtherSpelling::Secrets),
        ("network", DeValue::Boolean(false)) => Ok(OtherSpelling::NoNetwork),
        ("network", DeValue::Boolean(true)) => Err(
            "the whole network is never open: name what it needs, with `network = \"hosts\"` and `hosts = \
                 [\"api.example.com:443\"]`"
                .into(),
        ),
        ("prompt", DeValue::String(text)) if text == "{prompt}" => Ok(OtherSpelling::ByArgument),
        _ => return None,
    })
}

/// Makes the worker that stands behind an agent.
fn as_worker(agent: &AgentConfig, shared: Worker) -> Result<Worker, String> {
    let (program, args) = agent.command.split_first().ok_or("`command` is empty: name the program first")?;
    if Path::new(program).components().any(|part| part == Component::ParentDir) {
        return Err("`command`: the program must not contain `..`".into());
    }
    if has_prompt(program) {
        return Err("`command`: the program itself cannot be the prompt".into());
    }
    if agent.prompt == Some(PromptBy::Stdin) && args.iter().any(|arg| has_prompt(arg)) {
        return Err("`prompt` is \"stdin\", and `command` has `{prompt}`: remove one of them".into());
    }
    for method in &agent.methods {
        if !METHODS.iter().any(|known| admits(method, known)) {
            let near = nearest(method, METHODS);
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!(
                "`methods`: nothing is called {method:?}{hint} There are {} and `*`",
                METHODS.join(", ")
            ));
        }
    }
    let is_spoken_to = agent.stream == Reader::Acp;
    if is_spoken_to && (agent.prompt.is_some() || args.iter().any(|arg| has_prompt(arg))) {
        return Err(
            "`stream` is \"acp\", where the daemon gives the prompt itself: remove `prompt` and `{prompt}`"
                .into(),
        );
    }
    Ok(Worker {
        kind: if is_spoken_to { WorkerKind::Acp } else { WorkerKind::Cli },
        binary: Some(program.clone()),
        args: args.to_vec(),
        parse_mode: ParseMode::Text,
        timeout_secs: agent.timeout.as_seconds().max(1),
        copy: Some(if agent.worktree { Copies::WorkTree } else { Copies::Kept }),
        ..shared
    })
}

/// A template of prompts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct Template(pub String);

impl Template {
    /// The names that may stand between braces.
    pub const PLACEHOLDERS: [&str; 10] = [
        "task",
        "previous",
        "code",
        "language",
        "file",
        "instructions",
        "review_focus",
        "schema",
        "context",
        "preamble",
    ];
}

impl Value for Template {
    const NAME: &'static str = "text";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let text = String::read(value, context)?;
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(format!("is longer than {TEMPLATE_BYTES_MAX} bytes"));
        }
        // Other braces, for instance of JSON, are left alone; a misspelt name is an error.
        let mut known = false;
        for word in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(word, _)| word) {
            known |= Self::PLACEHOLDERS.contains(&word);
            let plain = !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
            if let Some(near) = nearest(word, Self::PLACEHOLDERS).filter(|near| plain && *near != word) {
                return Err(format!("`{{{word}}}` is not a placeholder; did you mean `{{{near}}}`?"));
            }
        }
        match known {
            true => Ok(Self(text)),
            false => Err("has no placeholder, so that every prompt would be the same".into()),
        }
    }
    fn print(&self) -> Option<String> {
        self.0.print()
    }
}

/// Parses an ident that is written in the table of settings.
pub(super) fn ours(ident: &str) -> AgentId {
    AgentId::parse(ident).expect("idents in the table of settings are short plain words")
}
