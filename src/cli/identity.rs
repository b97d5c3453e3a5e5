//! The agent that a command for locks, intents and contracts speaks as, and the meaning of its paths.

use std::path::{Component, Path, PathBuf};

use clap::Args;

use super::cli_error::USAGE;
use super::{CliError, RepoContext, session, up};
use provost_base::limits::{WAY_FOLDERS_MAX, WIT_WORKTREES_MAX};
use provost_base::{AgentId, Resource, WITH_BACKSLASH, shell_word};
use provost_client::Client;
use provost_system::{Ways, real_path};

/// The speaking agent.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct IdentityArgs {
    /// Speak as this agent; by default as PROVOST_AGENT, WIT_SESSION or CLAUDE_SESSION_ID says, in a shell of Claude
    /// Code or Codex as its session, else as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
}

impl IdentityArgs {
    /// Returns the agent that a flag, the environment, or the host of this shell names; `None` is the user.
    pub(super) fn named(here: &RepoContext, flag: Option<AgentId>) -> Result<Option<AgentId>, CliError> {
        Ok(Self::named_plainly(here, flag)?.or_else(|| session::agent_of_the_shell(&here.places)))
    }

    /// Does the same, without a host's sessions.
    pub(super) fn named_plainly(
        here: &RepoContext,
        flag: Option<AgentId>,
    ) -> Result<Option<AgentId>, CliError> {
        let Some(name) = flag.is_none().then_some(here.environment.agent.as_deref()).flatten() else {
            return Ok(flag);
        };
        AgentId::parse(name).map(Some).map_err(|err| {
            CliError::of("the environment names no usable agent")
                .because(format!("PROVOST_AGENT, WIT_SESSION or CLAUDE_SESSION_ID {err}"))
                .next("set PROVOST_AGENT to a short plain name, or use --as AGENT")
                .with_code(USAGE)
        })
    }

    /// Returns a client of the daemon that speaks as this agent.
    pub(super) async fn daemon(&self, here: &RepoContext) -> Result<Client, CliError> {
        here.daemon(Self::named(here, self.speak_as.clone())?).await
    }

    /// Returns the process of the host in whose shell the command runs, unless `--as` names an agent.
    pub(super) fn host_process(&self) -> Option<u32> {
        session::process_of_the_shell().filter(|_| self.speak_as.is_none())
    }

    /// Starts a daemon if none runs.
    pub(super) fn start(here: &RepoContext) -> Result<(), CliError> {
        up::start_if_absent(here, true)
    }
}

impl RepoContext {
    /// Returns the caller's work tree, if it is not the daemon's own.
    pub(super) fn linked_worktree(&self) -> Option<String> {
        (self.places.worktree != self.places.root)
            .then(|| self.places.worktree.to_str().map(str::to_owned))
            .flatten()
    }

    /// Returns a path relative to the repository's root; it may be typed in any folder of any of its work trees.
    pub(super) fn path(&self, typed: &Path) -> Result<String, CliError> {
        self.place(typed).map(|it| it.1)
    }

    /// Does the same, and also returns the top of the work tree that contains the path.
    pub(super) fn place(&self, typed: &Path) -> Result<(PathBuf, String), CliError> {
        let place = self.place_as_is(typed)?;
        match place.1.contains('\\') {
            true => Err(CliError::of(format!("{} cannot be named here", shell_word(&place.1)))
                .because(WITH_BACKSLASH)
                .next("write / between folders, or give the file another name")
                .with_code(USAGE)),
            false => Ok(place),
        }
    }

    /// Does the same for every name that the system allows, even one with a backslash, which would be another path in Provost.
    pub(super) fn place_as_is(&self, typed: &Path) -> Result<(PathBuf, String), CliError> {
        let wrong = |why: &str| {
            CliError::of(format!("{} names no file of the repository", typed.display()))
                .because(why)
                .next("name a file below the current directory, or by its path from there")
                .with_code(USAGE)
        };
        let real = |path: &Path| real_path(path).map_err(|err| wrong(&err.to_string()));
        let (root, cwd) = (real(&self.places.root)?, real(&self.cwd)?);
        let tops = self.places.worktrees(WIT_WORKTREES_MAX);
        // With PROVOST_ROOT set a person may be anywhere; paths then begin at the repository.
        let from = if tops.iter().any(|top| cwd.starts_with(top)) { cwd } else { root };
        let whole = plain(&from.join(typed)).ok_or_else(|| wrong("it leads out of it"))?;
        let below = |path: &Path| {
            // One work tree may lie in another; the innermost counts.
            let below = tops.iter().filter_map(|top| Some((top.clone(), path.strip_prefix(top).ok()?)));
            let inner = below.min_by_key(|it| it.1.components().count());
            inner.map(|(top, it)| (top, it.to_owned()))
        };
        let through_links = || {
            let folder = Ways::new(&tops, WAY_FOLDERS_MAX).entering(whole.parent()?)?;
            below(&folder.join(whole.file_name()?))
        };
        let (top, found) = below(&whole).or_else(through_links).ok_or_else(|| wrong("it is not in there"))?;
        let text = found.to_str().ok_or_else(|| wrong("its name is not UTF-8"))?;
        Ok((top, text.replace(std::path::MAIN_SEPARATOR, "/")))
    }

    /// Does the same for `file:symbol`; a file alone stands for everything in it.
    pub(super) fn symbol(&self, typed: &str) -> Result<String, CliError> {
        let (file, symbol) = typed.split_once(':').unwrap_or((typed, ""));
        let path = self.path(Path::new(file))?;
        if path.is_empty() {
            return Err(CliError::of(format!("{} names no file", shell_word(typed)))
                .because("it is the top of the repository, which has no symbols")
                .next("name a file, or a symbol in it as FILE:SYMBOL")
                .with_code(USAGE));
        }
        Ok(format!("{path}:{symbol}"))
    }

    /// Does the same for a symbol or a resource. A file whose name begins with `@` is written with `./` before it.
    pub(super) fn lockable(&self, typed: &str) -> Result<String, CliError> {
        if Resource::is_meant(typed) {
            return resource(typed).map(|it| it.to_string());
        }
        let symbol = self.symbol(typed)?;
        Ok(if Resource::is_meant(&symbol) { format!("./{symbol}") } else { symbol })
    }
}

/// Parses the name of a resource, as typed.
pub(super) fn resource(typed: &str) -> Result<Resource, CliError> {
    Resource::parse(typed).map_err(|err| {
        CliError::of(format!(
            "{} is no resource",
            provost_base::visible(typed).chars().take(200).collect::<String>()
        ))
        .because(format!("it {err}"))
        .next("a resource is @KIND or @KIND:VALUE, such as @db:test; a file is written ./@NAME")
        .with_code(USAGE)
    })
}

/// Returns a path without `.` and `..`, resolved lexically.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir => return None,
            part => plain.push(part),
        }
    }
    Some(plain)
}
