//! `provost hooks`: hooks of agents' hosts, so that a write to what somebody else has is refused where it is made.
//!
//! Promises: what stands in a host's configuration stays as it is, and what `install` put in, `remove` takes out, to the
//! byte where nobody has changed the file since. A hook never hangs; of a write that could not be checked it says so, and
//! refuses it; it never says yes in anybody's place. `host` says what is wanted of each host, `install`, `json` and `file`
//! put it there, `run` is what the hooks call, and `call`, `patch` and `shell` find out what a tool call would write.

mod call;
mod file;
mod host;
mod install;
mod json;
mod patch;
mod rule;
mod run;
mod shell;
mod shown;
mod trust;
mod wide;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::args::duration;
use super::complaint::{DONE, USAGE};
use super::{Complaint, Here, git, out};
use crate::base::{AgentId, Ttl};
use host::{Host, Wish};

/// Longest that a person's answer is waited for. Hosts give a hook ten minutes.
const PATIENCE_MAX: Ttl = Ttl::minutes(9);

/// `provost hooks`.
#[derive(Subcommand, Debug)]
pub(super) enum Hooks {
    /// Put the hooks of a host in place, or git's
    #[command(
        after_help = "Examples:\n  provost hooks install claude\n  provost hooks install cursor --agent cursor-ada\n  provost hooks install git"
    )]
    Install(Install),
    /// Take them out, and put back what was there before
    #[command(after_help = "Example:\n  provost hooks remove claude")]
    Remove(Remove),
    /// Show which are in place
    #[command(
        after_help = "Examples:\n  provost hooks status\n  provost hooks status codex\n  provost hooks status --json"
    )]
    Status(Status),
    /// What the hooks call: reads on standard input what the host says, and answers in its form
    #[command(
        after_help = "Example:\n  provost hooks run claude pre-tool-use < call.json\n\nExit codes: 0 the host goes by the answer on standard output, or as if there were no hook; 2 refused, for the reason on standard error."
    )]
    Run(run::Run),
}

/// Whose hooks.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Git, as `provost git install`
    Git,
}

impl Whose {
    fn host(self) -> Option<Host> {
        match self {
            Whose::Claude => Some(Host::Claude),
            Whose::Codex => Some(Host::Codex),
            Whose::Cursor => Some(Host::Cursor),
            Whose::Git => None,
        }
    }
}

/// `provost hooks install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// Whose
    whose: Whose,
    /// For everybody who works on the repository: in the file that is committed, and calling `provost` by its name. Of
    /// git: also where core.hooksPath leads to a folder that other repositories use
    #[arg(long)]
    shared: bool,
    /// The agent as which the host speaks, where it is not to be named after its session; `provost mcp --as` then has to
    /// name the same
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    /// How long somebody's answer to a permission request is waited for, before the host itself asks; 0s not at all
    #[arg(long, value_name = "TIME", value_parser = patience, default_value = "1m")]
    permission_wait: u64,
}

/// `provost hooks remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// Whose
    whose: Whose,
}

/// `provost hooks status`.
#[derive(Args, Debug)]
pub(super) struct Status {
    /// Whose; everybody's if nothing is said
    whose: Option<Whose>,
}

fn patience(text: &str) -> Result<u64, String> {
    if text.trim_end_matches(['s', 'm']).parse() == Ok(0) {
        return Ok(0);
    }
    let time = duration(text)?;
    match time <= PATIENCE_MAX {
        true => Ok(time.as_seconds().max(1)),
        false => Err("hosts wait ten minutes for a hook; nine at most".into()),
    }
}

pub(super) fn hooks(asked: Hooks, json: bool) -> Result<u8, Complaint> {
    match asked {
        // It has words of its own, whatever is wrong.
        Hooks::Run(it) => run::run(&it),
        Hooks::Install(it) => install(&Here::find(json)?, &it),
        Hooks::Remove(it) => {
            let here = Here::find(json)?;
            match it.whose.host() {
                Some(host) => install::remove(&here, host),
                None => git::uninstall(&here),
            }
        }
        Hooks::Status(it) => status(&Here::find(json)?, it.whose),
    }
}

fn install(here: &Here, asked: &Install) -> Result<u8, Complaint> {
    let Some(host) = asked.whose.host() else { return git::install(here, asked.shared) };
    let agent = asked.agent.as_ref().map(AgentId::as_str);
    let plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || "._:/-".contains(c)) && !name.starts_with('-')
    };
    if let Some(name) = agent.filter(|it| !plain(it)) {
        return Err(Complaint::of(format!("{} is no name for a host's agent", out::one_line(name, 200)))
            .because("it stands in command lines")
            .next("use letters, digits and . _ : / - with --agent")
            .with_code(USAGE));
    }
    here.places.create()?;
    let program = install::program()?;
    let wish = Wish { program: &program, shared: asked.shared, agent, patience_s: asked.permission_wait };
    install::install(here, host, &wish)
}

fn status(here: &Here, whose: Option<Whose>) -> Result<u8, Complaint> {
    let hosts = match whose {
        Some(whose) => whose.host().into_iter().collect(),
        None => vec![Host::Claude, Host::Codex, Host::Cursor],
    };
    let of_git = matches!(whose, None | Some(Whose::Git));
    if here.json {
        let hosts = install::standings(here, &hosts)?;
        let git = if of_git { git::standings(here)? } else { Vec::new() };
        return out::json(&json!({ "hosts": hosts, "git": git })).map(|()| DONE);
    }
    install::status(here, &hosts)?;
    if of_git { git::status(here) } else { Ok(DONE) }
}
