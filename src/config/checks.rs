//! Settings around the run of an agent: commands that fix and check its changes, and its reviewer. A6s 6.2.

use std::path::{Component, Path};

use toml::de::DeValue;

use super::agent::AgentConfig;
use super::load::{Loading, RefusedWorker, Severity, join};
use super::table::{A6sPipeline, Config};
use super::value::{Context, Value, quoted, words};
use provost_base::AgentId;
use provost_base::limits::{AGENT_COMMANDS_MAX, ARGUMENT_BYTES_MAX};
use provost_base::nearest;

words! {
    /// The effect of a failed check.
    Checks {
        /// The failure is reported, and the execution still succeeds.
        Reported = "reported",
        /// The execution fails, too.
        Required = "required",
    }
    /// The way in which the five phases of an execution are carried out.
    Mode {
        /// One run of the agent.
        Single = "single",
        /// A run for each phase, which is told the answer of the one before.
        Pipeline = "pipeline",
    }
}

/// Commands, each a program and its arguments.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug, Default)]
pub struct Commands(pub Vec<Vec<String>>);

impl Value for Commands {
    const NAME: &'static str = "list of lists of text";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        const FORM: &str = "expected a list of commands, each a list: [[\"cargo\", \"fmt\"]]";
        let list = value.as_array().ok_or(FORM)?;
        if list.len() > AGENT_COMMANDS_MAX {
            return Err(format!("may list at most {AGENT_COMMANDS_MAX} commands"));
        }
        let one = |entry: &toml::Spanned<DeValue<'_>>| {
            let words = entry.get_ref().as_array().ok_or(FORM)?;
            let words = words.iter().map(|word| Raw::read(word.get_ref(), context).map(|it| it.0));
            command(words.collect::<Result<Vec<String>, String>>()?)
        };
        list.iter().map(one).collect::<Result<_, _>>().map(Self)
    }
    fn print(&self) -> Option<String> {
        let one = |words: &Vec<String>| words.print();
        Some(format!("[{}]", self.0.iter().filter_map(one).collect::<Vec<_>>().join(", ")))
    }
}

/// Any text: an argument may be empty.
struct Raw(String);

impl Raw {
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text =
            value.as_str().ok_or_else(|| format!("expected text in quotes, found {}", value.type_str()))?;
        Ok(Self(text.to_owned()))
    }
}

/// Checks whether a jail can run a command.
fn command(words: Vec<String>) -> Result<Vec<String>, String> {
    let program = words.first().filter(|it| !it.trim().is_empty()).ok_or("a command needs a program")?;
    let path = Path::new(program);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{program:?} must not contain `..`"));
    }
    if !path.is_absolute() && path.components().count() > 1 {
        return Err(format!(
            "{program:?} is neither a name nor an absolute path; for a script of the project, name what runs it: \
             [\"sh\", {program:?}]"
        ));
    }
    match words.iter().find(|word| word.len() > ARGUMENT_BYTES_MAX || word.contains('\0')) {
        Some(_) => {
            Err(format!("a word of a command has more than {ARGUMENT_BYTES_MAX} bytes, or a zero byte"))
        }
        None => Ok(words),
    }
}

impl A6sPipeline {
    /// Returns every phase, in order, with the agent that carries it out.
    pub fn agents(&self) -> [(&'static str, Option<&AgentId>); 5] {
        [
            ("research", self.research.as_ref()),
            ("inspect", self.inspect.as_ref()),
            ("generate", self.generate.as_ref()),
            ("optimize", self.optimize.as_ref()),
            ("review", self.review.as_ref()),
        ]
    }
}

impl Loading {
    /// Refuses agents whose reviewer does not exist, once everything is read.
    pub(super) fn join_reviewers(&mut self) {
        let lost = |config: &Config| {
            let why =
                |agent: &AgentConfig| Some((agent.id.clone(), missing(config, agent.reviewer.as_ref()?)?));
            config.agents.iter().find_map(why)
        };
        while let Some((id, why)) = lost(&self.done.config) {
            let why = format!("`reviewer`: {why}");
            let full = join("agent", id.as_str());
            let name = self.done.origins.get(&full).cloned().unwrap_or_default();
            self.note_of(&name, &full, format!("{why}; this agent is refused"), Severity::Error);
            self.done.config.agents.retain(|agent| agent.id != id);
            self.done.config.workers.remove(&id);
            self.done
                .config
                .refused_workers
                .insert(id.as_str().into(), RefusedWorker { file: name, reason: why, is_agent: true });
        }
        let config = &self.done.config;
        let phases = config.pipeline.agents();
        let lost = |(phase, id): (&'static str, Option<&AgentId>)| Some((phase, missing(config, id?)?));
        let lost: Vec<(&str, String)> = phases.into_iter().filter_map(lost).collect();
        for (phase, why) in lost {
            let full = join("a6s.pipeline", phase);
            let name = self.done.origins.get(&full).cloned().unwrap_or_default();
            self.note_of(&name, &full, format!("{why}; this phase fails"), Severity::Error);
        }
    }
}

/// Says why an agent cannot be asked, if it does not exist.
fn missing(config: &Config, id: &AgentId) -> Option<String> {
    if config.agents.iter().any(|agent| agent.id == *id) {
        return None;
    }
    let near = nearest(id.as_str(), config.agents.iter().map(|agent| agent.id.as_str()));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(format!("no agent that can be used is called `{id}`{hint}"))
}
