//! A worker of the configuration: the making of its command, its confinement, and the reading of its output.
//!
//! DevIt 1.10, `[workers.<id>]` of type `cli`. Pure data; `plan` makes the plan of one run from it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::read_only::Git;
use super::transcript::Reader;
use provost_base::{AgentId, Digest, Json, RepoPath, Ttl};

/// The format of a worker's standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseMode {
    /// The whole output is one JSON value, or else its last line that is one.
    Json,
    /// The whole output is text.
    Text,
}

/// A worker that is a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name that tasks are delegated to.
    pub id: AgentId,
    /// The executable, absolute.
    pub program: PathBuf,
    /// Arguments with placeholders; without `{goal}` (or an agent's `{prompt}`) among them, the goal becomes
    /// the last one.
    pub args: Vec<String>,
    /// The format of the worker's output.
    pub parse: ParseMode,
    /// The call, for a worker that speaks MCP over its standard input and output.
    pub mcp: Option<McpCall>,
    /// The session, for an agent that speaks the Agent Client Protocol.
    pub acp: Option<AcpSession>,
    /// The folder where the worker works, relative to the workspace, with placeholders; `None` if the task decides.
    pub working_dir: Option<String>,
    /// Longest run; a task may ask for less.
    pub timeout: Ttl,
    /// Longest output kept in a result, in bytes.
    pub response_bytes_max: Option<usize>,
    /// The model for tasks that name none.
    pub default_model: Option<String>,
    /// The models that a task may name; empty means any.
    pub allowed_models: Vec<String>,
    /// Extra environment, by name.
    pub env: BTreeMap<String, String>,
    /// Secrets that the worker may get: each with its name and the digest of the way in which it is given.
    pub secrets: Vec<(String, Digest)>,
    /// Folders outside the workspace that the worker may read (toolchains).
    pub read_only: Vec<PathBuf>,
    /// Paths in the workspace that stay read-only for the worker, in addition to the usual ones.
    pub protect: Vec<RepoPath>,
    /// Command lines that run outside of any jail, in the workspace: the files that they name there stay
    /// read-only, too.
    pub run_outside: Vec<String>,
    /// The worker's access to the repository that it works in; in a copy's repository it may do anything.
    pub git: Git,
    /// Whether the worker's tasks work in the workspace or in a copy.
    pub copies: Copies,
    /// The worker's limits, if they differ from the usual ones.
    pub bounds: Bounds,
    /// Set for an agent that editors ask.
    pub agent: Option<AsAgent>,
}

/// The place where the tasks of a worker work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Copies {
    /// The workspace itself.
    #[default]
    No,
    /// A copy of their directory, which is thrown away.
    Thrown,
    /// A private copy, whose changes are kept until they are applied.
    Kept,
    /// A git work tree on a branch of its own, on which its changes are committed.
    WorkTree,
}

/// The additional settings of a worker that is an agent of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsAgent {
    /// Whether the agent reads its goal on its standard input; otherwise the goal is an argument.
    pub by_stdin: bool,
    /// The format of the agent's standard output.
    pub reader: Reader,
    /// Whether the agent's changes in its copy are kept.
    pub edits: bool,
    /// The number of the agent's tasks that may run at the same time.
    pub parallel: u32,
}

/// The settings of a session of an agent that speaks ACP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AcpSession {
    /// The id of the mode to set; `None` for the mode that asks, if the agent has one.
    pub mode: Option<String>,
    /// The id of the method to sign in; `None` for a method by a key in the agent's environment.
    pub sign_in: Option<String>,
}

/// The call of a worker that speaks MCP. DevIt 1.10, "mcp worker".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpCall {
    /// The name of the tool that is called.
    pub tool: String,
    /// Arguments that win over those of the task.
    pub arguments: Json,
}

/// A worker's own limits; `None` stands for the usual one of [`Limits`](super::Limits).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// Largest data segment of one process, in bytes; also the most memory of all processes together.
    pub memory: Option<u64>,
    /// Most processes and threads.
    pub processes: Option<u32>,
    /// Most open descriptors of one process.
    pub open_files: Option<u32>,
    /// Largest file, in bytes.
    pub file_bytes: Option<u64>,
    /// Most temporary files, in bytes.
    pub tmp_bytes: Option<u64>,
    /// Most processor time of one process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// By how much the worker's directories may grow during a run, in bytes.
    pub growth_bytes: Option<u64>,
    /// By how many files and directories the worker's directories may grow.
    pub growth_entries: Option<u64>,
}

const GOAL: &str = "{goal}";

/// The values of the placeholders of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fill<'a> {
    /// `{goal}`, and an agent's `{prompt}`.
    pub goal: &'a str,
    /// `{workspace}`: the workspace root as the worker sees it.
    pub workspace: &'a str,
    /// `{task_id}`.
    pub task_id: &'a str,
    /// `{model}`, if there is one.
    pub model: Option<&'a str>,
}

/// The reason why no command could be made from a profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRun {
    /// `{model}` is used, and neither task, context nor profile names a model.
    #[error("worker {worker} needs a model: name one in the task or set default_model")]
    NoModel {
        /// The worker's name in the configuration.
        worker: AgentId,
    },
    /// The task names a model that the profile does not allow.
    #[error("model '{model}' is not allowed for worker '{worker}'; allowed: {allowed}")]
    ModelNotAllowed {
        /// The worker's name in the configuration.
        worker: AgentId,
        /// The model that the task names.
        model: String,
        /// The accepted models, in words.
        allowed: String,
    },
}

impl Profile {
    /// Returns the digest that an allowed run is bound to: of the executable's content, and of all settings of its start. A
    /// worker whose configuration has changed since is another worker.
    pub fn fingerprint(&self, program: Digest) -> Digest {
        // Every field is in the debugging text, in a fixed order; it is hashed and never shown. `run_outside` is left out: it
        // takes rights away from a worker and gives it none.
        let own = Self { run_outside: Vec::new(), ..self.clone() };
        Digest::of_fields([program.as_bytes().as_slice(), format!("{own:?}").as_bytes()])
    }

    /// Returns the same worker with another program in its place, which gets no goal, no model and no secrets,
    /// and whose output is lines of text. Its confinement, environment and bounds stay.
    #[must_use]
    pub fn instead(&self, program: PathBuf) -> Self {
        let agent = self.agent.map(|it| AsAgent { by_stdin: false, reader: Reader::Lines, ..it });
        Self {
            program,
            args: Vec::new(),
            parse: ParseMode::Text,
            mcp: None,
            acp: None,
            default_model: None,
            allowed_models: Vec::new(),
            secrets: Vec::new(),
            agent,
            ..self.clone()
        }
    }

    /// Returns the model of a run: the task's, or else its context's, or else the default.
    ///
    /// # Errors
    /// [`BadRun::ModelNotAllowed`] if it is not among [`Profile::allowed_models`].
    pub fn model(&self, asked: Option<&str>, context: Option<&str>) -> Result<Option<String>, BadRun> {
        let named = |it: Option<&str>| it.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        let model = named(asked).or_else(|| named(context)).or_else(|| self.default_model.clone());
        match model {
            Some(model) if !self.allowed_models.is_empty() && !self.allowed_models.contains(&model) => {
                let (worker, allowed) = (self.id.clone(), self.allowed_models.join(", "));
                Err(BadRun::ModelNotAllowed { worker, model, allowed })
            }
            model => Ok(model),
        }
    }

    /// Returns the arguments of a run. No argument is split or interpreted.
    ///
    /// # Errors
    /// [`BadRun::NoModel`].
    pub fn arguments(&self, fill: &Fill<'_>) -> Result<Vec<String>, BadRun> {
        let mut args = Vec::with_capacity(self.args.len() + 1);
        for arg in &self.args {
            args.push(self.filled(arg, fill)?);
        }
        let prompt = |arg: &String| self.agent.is_some() && arg.contains("{prompt}");
        let placed = || self.args.iter().any(|arg| arg.contains("{goal}") || prompt(arg));
        // A worker that speaks MCP or ACP gets its goal in the call.
        if self.mcp.is_none() && self.acp.is_none() && !self.reads_its_goal() && !placed() {
            args.push(fill.goal.to_owned());
        }
        Ok(args)
    }

    /// Checks whether the worker reads its goal on its standard input.
    pub fn reads_its_goal(&self) -> bool {
        self.agent.is_some_and(|it| it.by_stdin)
    }

    /// Returns a text with its placeholders replaced, in a single pass, so that a goal that contains `{model}`
    /// stays as it is.
    ///
    /// # Errors
    /// [`BadRun::NoModel`].
    pub fn filled(&self, text: &str, fill: &Fill<'_>) -> Result<String, BadRun> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let values = [
                (GOAL, Some(fill.goal)),
                (if self.agent.is_some() { "{prompt}" } else { GOAL }, Some(fill.goal)),
                ("{workspace}", Some(fill.workspace)),
                ("{task_id}", Some(fill.task_id)),
                ("{model}", fill.model),
            ];
            match values.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, Some(value))) => {
                    out.push_str(value);
                    rest = &rest[name.len()..];
                }
                Some((_, None)) => return Err(BadRun::NoModel { worker: self.id.clone() }),
                None => {
                    out.push('{');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }
}
