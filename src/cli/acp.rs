//! `provost acp`: an agent of the Agent Client Protocol on standard input and output, for editors, in front of any such agent.
//!
//! Promises: a message that needs no change passes unchanged, byte by byte, and in the order of its session; policy judges
//! a permission request first, and an answer counts once; a file that the editor would write for the agent is locked for
//! the session, or the write is refused; the agent's processes end with this one, and so does everything that its sessions
//! hold. `proxy` has the loop, `agent_side` and `editor_side` the handling of messages, `judge` the requests to the daemon.

mod agent_side;
mod editor_side;
mod jailed;
mod judge;
mod lines;
mod message;
mod modes;
mod outlet;
mod program;
mod proxy;
mod question;
mod sessions;
mod setup;

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueHint};

use super::cli_error::USAGE;
use super::identity::IdentityArgs;
use super::{CliError, RepoContext, out};
use program::Program;
use provost_base::{AgentId, nearest};
use provost_config::{Config, Worker, WorkerKind};

/// The variable that tells programs started behind this one that it asks for permission in their stead; its value is this process's id.
pub(crate) const BEHIND: &str = "PROVOST_ACP";

/// `provost acp`.
#[derive(Subcommand, Debug)]
pub(super) enum Acp {
    /// Serve ACP on standard input and output, for an editor that starts it, in front of an agent
    #[command(after_help = "\
Examples:
  provost acp serve -- claude-agent-acp
  provost acp serve --as coder -- gemini --acp
  provost acp serve --agent qwen             # in its jail, and in a copy
  provost acp serve --agent qwen --no-jail

For the editor's configuration:
  Zed        agent_servers in settings.json, with \"type\": \"custom\" beside what JetBrains has
  JetBrains  agent_servers in ~/.jetbrains/acp.json:
             {\"Claude\": {\"command\": \"provost\", \"args\": [\"acp\", \"--\", \"claude-agent-acp\"]}}
  Neovim     codecompanion.nvim, in an adapter: commands = { default = { \"provost\", \"acp\", \"--\", \"claude-agent-acp\" } }
  Emacs      acp.el: (acp-make-client :command \"provost\" :command-params '(\"acp\" \"--\" \"claude-agent-acp\"))

Exit codes: 0 the editor has closed its side; 1 the agent has ended before; 126, 127 the agent cannot be started.")]
    Serve(Serve),
}

/// `provost acp serve`.
#[derive(Args, Debug)]
pub(super) struct Serve {
    /// The agent's entry in the configuration; it works in its jail. By default the only one that speaks ACP, where no command is given
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    agent: Option<AgentId>,
    /// Start the entry's program without its jail, as you would start it yourself
    #[arg(long)]
    no_jail: bool,
    /// The agent that all sessions speak as; by default PROVOST_AGENT, else a name of its own for each session
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// The agent's program and its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

pub(super) fn acp(here: &RepoContext, asked: Acp) -> Result<u8, CliError> {
    let Acp::Serve(asked) = asked;
    if asked.command.first().is_some_and(|it| it.trim().is_empty()) {
        return Err(CliError::of("the agent's command is empty")
            .because("its first word, behind --, has no characters but blanks")
            .next("provost acp -- COMMAND, such as provost acp -- claude-agent-acp")
            .with_code(USAGE));
    }
    let named = IdentityArgs::named_plainly(here, asked.speak_as.clone())?;
    if asked.command.is_empty() && !asked.no_jail {
        let (worker, _) = entry(here, &asked)?;
        return run(jailed::serve(jailed::Served { worker, speaks_as: named }));
    }
    let (words, variables) = match asked.command.is_empty() {
        true => of_entry(here, &asked)?,
        false => (asked.command, BTreeMap::new()),
    };
    let program = Program { words, variables, agent: named.clone() };
    let ours = std::env::current_exe()
        .map_err(|err| CliError::of("this program does not know where it is").because(err))?;
    run(proxy::serve(&program, ours, named, here.cwd.clone()))
}

/// Serves an editor until the editor or the agent ends.
fn run(serving: impl Future<Output = Result<u8, CliError>>) -> Result<u8, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| CliError::of("the system has no resources left").because(e))?;
    let served = runtime.block_on(serving);
    // One thread of the runtime waits for the editor's next message, and ends with this process.
    runtime.shutdown_background();
    served
}

/// Returns the entry of the chosen agent, which speaks ACP.
fn entry(here: &RepoContext, asked: &Serve) -> Result<(AgentId, Worker), CliError> {
    let config = here.config(None)?.config;
    let id = match &asked.agent {
        Some(id) => id.clone(),
        None => only_one(&config)?,
    };
    let Some(worker) = config.workers.get(&id) else { return Err(unknown(&config, &id)) };
    if worker.kind != WorkerKind::Acp {
        return Err(CliError::refusal(format!("{id} does not speak ACP"))
            .because("its entry has neither `type = \"acp\"` nor `stream = \"acp\"`")
            .next("name another agent, or its command: provost acp -- COMMAND"));
    }
    Ok((id, worker.clone()))
}

/// Returns the command and the variables of an agent's entry.
fn of_entry(here: &RepoContext, asked: &Serve) -> Result<(Vec<String>, BTreeMap<String, String>), CliError> {
    let (id, worker) = entry(here, asked)?;
    let Some(binary) = &worker.binary else {
        return Err(CliError::refusal(format!("the entry of {id} names no program")));
    };
    if let Some(placeholder) = worker.args.iter().find(|it| it.contains("{goal}") || it.contains("{prompt}"))
    {
        return Err(CliError::refusal(format!("{id} cannot serve an editor"))
            .because(format!("its arguments have {}", out::one_line(placeholder, 100)))
            .next("name its command: provost acp -- COMMAND"));
    }
    let words = [binary.clone()].into_iter().chain(worker.args.iter().cloned()).collect();
    Ok((words, worker.env.clone()))
}

/// Returns the only agent that speaks ACP.
fn only_one(config: &Config) -> Result<AgentId, CliError> {
    let all: Vec<&AgentId> =
        config.workers.iter().filter(|(_, it)| it.kind == WorkerKind::Acp).map(|(id, _)| id).collect();
    let names: Vec<&str> = all.iter().map(|it| it.as_str()).collect();
    match all.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(CliError::of("no agent is named, and the configuration has none that speaks ACP")
            .next("provost acp -- COMMAND, such as provost acp -- claude-agent-acp")
            .with_code(USAGE)),
        _ => Err(CliError::of("several agents speak ACP")
            .because(names.join(", "))
            .next("name one: provost acp --agent NAME")
            .with_code(USAGE)),
    }
}

fn unknown(config: &Config, id: &AgentId) -> CliError {
    let names = || config.workers.keys().map(AgentId::as_str);
    let next = match nearest(id.as_str(), names()) {
        Some(near) => format!("did you mean {near}? Or name its command: provost acp -- COMMAND"),
        None => "name its command: provost acp -- COMMAND".into(),
    };
    CliError::of(format!("there is no agent {}", out::one_line(id.as_str(), 100))).next(next).with_code(USAGE)
}
