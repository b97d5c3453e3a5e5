//! `provost hook`: hooks of agents' hosts, which refuse a write to a place that another agent holds.
//!
//! Promises: `install` keeps everything else in a host's configuration, and `remove` takes out exactly what `install`
//! added, to the byte if the file has not changed since. A hook never hangs; it refuses a write that it could not check,
//! and says so; it never approves in a person's place. `host` and `form` describe the entries for each host, `install`,
//! `json` and `file` write them, the hooks call `run`, over HTTP through `served`, and `call`, `patch` and `shell` find the
//! files that a tool call would write. `settled` finds the permission requests that the host decides alone.

mod afterwards;
mod call;
mod ends;
mod file;
mod form;
mod host;
mod inbox;
mod index;
mod install;
mod json;
mod links;
mod overwritten;
mod patch;
mod permission;
mod record;
mod refusal;
mod rule;
mod run;
mod said;
mod served;
mod settled;
mod shell;
mod shown;
mod trees;
mod trust;
mod waits;
mod wide;
mod writes;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::args::duration;
use super::cli_error::{DONE, USAGE};
use super::{CliError, RepoContext, git, hook, out};
use form::Form;
use host::{HookHost, Wish};
use provost_base::{AgentId, Ttl};

pub(crate) use call::names_in;
pub(crate) use run::reachable;
pub use served::HookDoor;
pub(crate) use writes::{Writes, line_of, obstacle};

/// Longest wait for a person's answer. Hosts give a hook ten minutes.
const PATIENCE_MAX: Ttl = Ttl::minutes(9);

/// `provost hook`.
#[derive(Subcommand, Debug)]
pub(super) enum Hook {
    /// Install the hooks of a host, or those of git
    #[command(
        after_help = "Examples:\n  provost hook install claude\n  provost hook install cursor --agent cursor-ada\n  provost hook install git"
    )]
    Install(Install),
    /// Remove the hooks, and restore the earlier configuration
    #[command(after_help = "Example:\n  provost hook remove claude")]
    Remove(Remove),
    /// Show which hooks are installed
    #[command(
        after_help = "Examples:\n  provost hook status\n  provost hook status codex\n  provost hook status --json"
    )]
    Status(Status),
    /// Run a hook; installed hooks call this, with the host's message on standard input
    #[command(
        after_help = "Example:\n  provost hook run claude pre-tool-use < call.json\n\nExit codes: 0 the host goes by the answer on standard output, or as if there were no hook; 2 refused, for the reason on standard error."
    )]
    Run(run::Run),
    /// Wait, in a notification hook, until its notification is acknowledged
    #[command(after_help = "\
Examples:
  provost hook wait --timeout 30s && echo seen
  provost hook wait --timeout 10s || notify-send \"$DEVIT_NOTIFY_SUMMARY\"

Exit codes: 0 acknowledged; 1 not within the timeout; 2 this is no notification hook; 3 the daemon has gone.")]
    Wait(hook::Wait),
}

/// The owner of the hooks.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Git, as `provost git install`
    Git,
}

impl Owner {
    fn host(self) -> Option<HookHost> {
        match self {
            Owner::Claude => Some(HookHost::Claude),
            Owner::Codex => Some(HookHost::Codex),
            Owner::Cursor => Some(HookHost::Cursor),
            Owner::Git => None,
        }
    }
}

/// `provost hook install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// The host; `git` installs the hooks of git
    #[arg(value_name = "HOST")]
    owner: Owner,
    /// Install for all users of the repository: in the committed file, with `provost` called by its name. For git:
    /// install also if core.hooksPath leads to a folder that other repositories use
    #[arg(long)]
    shared: bool,
    /// The agent that the host speaks as, instead of a name made from its session; `provost mcp --as` then has to
    /// name the same agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    /// How long the hook waits for an answer to a permission request before the host itself asks; 0s means not at all
    #[arg(long, value_name = "TIME", value_parser = patience, default_value = "5s")]
    permission_wait: u64,
    /// The form of Claude Code's hooks: a request to the daemon for each, or a command
    #[arg(long, value_enum, default_value = "auto")]
    form: Form,
}

/// `provost hook remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The host; `git` removes the hooks of git
    #[arg(value_name = "HOST")]
    owner: Owner,
}

/// `provost hook status`.
#[derive(Args, Debug)]
pub(super) struct Status {
    /// The host; by default all hosts, and git
    #[arg(value_name = "HOST")]
    owner: Option<Owner>,
}

fn patience(text: &str) -> Result<u64, String> {
    if text.trim_end_matches(['s', 'm']).parse() == Ok(0) {
        return Ok(0);
    }
    let time = duration(text)?;
    match time <= PATIENCE_MAX {
        true => Ok(time.as_seconds().max(1)),
        false => Err("hosts wait ten minutes for a hook, so use nine minutes at most".into()),
    }
}

pub(super) fn hook(asked: Hook, json: bool) -> Result<u8, CliError> {
    match asked {
        // It reports its errors itself, also without a repository.
        Hook::Run(it) => run::run(&it),
        Hook::Install(it) => install(&RepoContext::find(json)?, &it),
        Hook::Remove(it) => {
            let here = RepoContext::find(json)?;
            match it.owner.host() {
                Some(host) => install::remove(&here, host),
                None => git::uninstall(&here),
            }
        }
        Hook::Status(it) => status(&RepoContext::find(json)?, it.owner),
        Hook::Wait(it) => hook::wait(it, json),
    }
}

fn install(here: &RepoContext, asked: &Install) -> Result<u8, CliError> {
    let Some(host) = asked.owner.host() else { return git::install(here, asked.shared) };
    let agent = asked.agent.as_ref().map(AgentId::as_str);
    let plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || "._:/-".contains(c)) && !name.starts_with('-')
    };
    if let Some(name) = agent.filter(|it| !plain(it)) {
        return Err(CliError::of(format!("{} is no name for a host's agent", out::one_line(name, 200)))
            .because("it stands in command lines")
            .next("use letters, digits and . _ : / - with --agent")
            .with_code(USAGE));
    }
    here.places.create()?;
    let program = install::program()?;
    let (http, why) = form::choose(here, (host, asked.shared), asked.form)?;
    let http = http.as_ref();
    let wish =
        Wish { program: &program, shared: asked.shared, agent, patience_s: asked.permission_wait, http };
    let done = install::install(here, host, &wish)?;
    if let Some(why) = why {
        out::note(out::one_line(&format!("{}: the hooks are called {why}", host.word()), 400));
    }
    Ok(done)
}

/// Returns the state of the hooks of each host that has any: the host, whether all is well, and a sentence.
pub(super) fn standings(here: &RepoContext) -> Result<Vec<(&'static str, bool, String)>, CliError> {
    let all = install::standings(here, &[HookHost::Claude, HookHost::Codex, HookHost::Cursor])?;
    Ok(all.iter().filter_map(install::Standing::in_short).collect())
}

fn status(here: &RepoContext, owner: Option<Owner>) -> Result<u8, CliError> {
    let hosts = match owner {
        Some(owner) => owner.host().into_iter().collect(),
        None => vec![HookHost::Claude, HookHost::Codex, HookHost::Cursor],
    };
    let of_git = matches!(owner, None | Some(Owner::Git));
    if here.json {
        let hosts = install::standings(here, &hosts)?;
        let git = if of_git { git::standings(here)? } else { Vec::new() };
        return out::json(&json!({ "hosts": hosts, "git": git })).map(|()| DONE);
    }
    install::status(here, &hosts)?;
    if of_git { git::status(here) } else { Ok(DONE) }
}
