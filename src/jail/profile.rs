//! A worker of the configuration: how its command is made, confined and read.
//!
//! DevIt 1.10, `[workers.<id>]` of type `cli`. Pure data; the plan for one run is made from it in `plan`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::guards::Git;
use super::transcript::Reader;
use provost_base::{AgentId, Digest, Json, RepoPath, Ttl};

/// How a worker's standard output is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseMode {
    /// All of it is one JSON value, or else its last line that is one.
    Json,
    /// All of it is text.
    Text,
}

/// A worker that is a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name tasks are delegated to.
    pub id: AgentId,
    /// The executable, absolute.
    pub program: PathBuf,
    /// Arguments with placeholders; without `{goal}` (or an agent's `{prompt}`) among them, the goal becomes
    /// the last one.
    pub args: Vec<String>,
    /// How its output is read.
    pub parse: ParseMode,
    /// Set for a worker that is spoken to over its standard input and output.
    pub mcp: Option<McpCall>,
    /// Set for an agent that is spoken to in the Agent Client Protocol.
    pub acp: Option<AcpSession>,
    /// Where it works, relative to the workspace, with placeholders; otherwise where the task says.
    pub working_dir: Option<String>,
    /// Longest run; a task may ask for less.
    pub timeout: Ttl,
    /// Longest output kept in a result, in bytes.
    pub response_bytes_max: Option<usize>,
    /// The model used when a task names none.
    pub default_model: Option<String>,
    /// The models a task may name; empty means any.
    pub allowed_models: Vec<String>,
    /// Extra environment, by name.
    pub env: BTreeMap<String, String>,
    /// Secrets that it may be given: the name, and the digest of how.
    pub secrets: Vec<(String, Digest)>,
    /// Folders outside the workspace that it may read (toolchains).
    pub read_only: Vec<PathBuf>,
    /// Paths in the workspace that stay read-only for it, besides the usual.
    pub protect: Vec<RepoPath>,
    /// Command lines that are run outside of any jail, in the workspace: what they name there stays
    /// read-only, too.
    pub run_outside: Vec<String>,
    /// What it may do with the repository that it works in; with that of a copy it does what it likes.
    pub git: Git,
    /// Whether its tasks work in the workspace or in a copy.
    pub copies: Copies,
    /// What it may use, other than the usual.
    pub bounds: Bounds,
    /// Set for one that editors ask.
    pub agent: Option<AsAgent>,
}

/// Where the tasks of a worker work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Copies {
    /// In the workspace itself.
    #[default]
    No,
    /// In a copy of their directory, which is thrown away.
    Thrown,
    /// In a private copy, whose changes are kept until they are applied.
    Kept,
    /// In a git work tree on a branch of its own, on which its changes are committed.
    WorkTree,
}

/// What is different for a worker that is an agent of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsAgent {
    /// Whether its goal is what it reads on its standard input; otherwise it is an argument.
    pub by_stdin: bool,
    /// How its standard output is read.
    pub reader: Reader,
    /// Whether what it changes in its copy is kept.
    pub edits: bool,
    /// Tasks of it that run at the same time.
    pub parallel: u32,
}

/// How a session of an agent that speaks ACP is set up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AcpSession {
    /// The id of the mode that is set; without one, the mode that asks, where the agent has one.
    pub mode: Option<String>,
    /// The id of the way by which it is signed in; without one, a way by a key in its environment.
    pub sign_in: Option<String>,
}

/// How a worker that speaks MCP is called. DevIt 1.10, "mcp worker".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpCall {
    /// The name of the tool that is called.
    pub tool: String,
    /// Arguments that win over those of the task.
    pub arguments: Json,
}

/// What a worker may use; where nothing is said, the usual of [`Limits`](super::Limits).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// Largest data segment of one process, in bytes; also the most memory of all of them together.
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
    /// By how much its directories may grow during a run, in bytes.
    pub growth_bytes: Option<u64>,
    /// By how many files and directories.
    pub growth_entries: Option<u64>,
}

const GOAL: &str = "{goal}";

/// What the placeholders of one run stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fill<'a> {
    /// `{goal}`, and an agent's `{prompt}`.
    pub goal: &'a str,
    /// `{workspace}`: the workspace root as the worker sees it.
    pub workspace: &'a str,
    /// `{task_id}`.
    pub task_id: &'a str,
    /// `{model}`, when one could be resolved.
    pub model: Option<&'a str>,
}

/// Why a command could not be made from a profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRun {
    /// `{model}` is used and neither task, context nor profile names one.
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
        /// The models that would be accepted, in words.
        allowed: String,
    },
}

impl Profile {
    /// What an allowed run is bound to: the executable's content, and everything that says how it is started. A
    /// worker that is configured otherwise afterwards is another one.
    pub fn fingerprint(&self, program: Digest) -> Digest {
        // Every field is in the debugging text, in a fixed order; it is hashed and never shown. What is run
        // elsewhere takes something away from a worker and gives it nothing.
        let own = Self { run_outside: Vec::new(), ..self.clone() };
        Digest::of_fields([program.as_bytes().as_slice(), format!("{own:?}").as_bytes()])
    }

    /// The same worker with another program in its place, which is given no goal, no model and no secrets,
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

    /// The model of a run: the task's, else its context's, else the default.
    ///
    /// # Errors
    /// [`BadRun::ModelNotAllowed`] when it is not among [`Profile::allowed_models`].
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

    /// The arguments of a run. Nothing is split or interpreted: each stays one argument.
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
        // One that is spoken to hears its goal in the call.
        if self.mcp.is_none() && self.acp.is_none() && !self.reads_its_goal() && !placed() {
            args.push(fill.goal.to_owned());
        }
        Ok(args)
    }

    /// Whether its goal comes on its standard input.
    pub fn reads_its_goal(&self) -> bool {
        self.agent.is_some_and(|it| it.by_stdin)
    }

    /// One text with its placeholders replaced, in a single pass, so that a goal that contains `{model}` is
    /// left as it is.
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
