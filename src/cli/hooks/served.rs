//! Hooks that a host calls over HTTP: the daemon answers them as `provost hook run` does, without a process for each.
//!
//! Promises: the answer is the command's, since the same code makes it. The command learns its host from the process
//! tree; here the process that asks is the host. The token of the hook's own settings is compared before anything is
//! read. The door decides which processes may ask at all, and how many calls are analysed at once.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use super::call::HookInput;
use super::host::{Event, HookHost};
use super::run::{self, Run};
use crate::repo_context::{ClientsByName, Inside};
use crate::{CliError, RepoContext};
use provost_base::limits::HOOK_MS_MAX;
use provost_base::{AgentId, Digest};
use provost_config::Places;
use provost_config::env::Environment;
use provost_mcp::{HookCall, HookFault};
use provost_system as system;

/// The file with the token that hooks over HTTP show, in the repository's state folder.
const TOKEN_FILE: [&str; 2] = ["hooks", "http-token"];

/// Most bytes of that file that are read.
const TOKEN_BYTES_MAX: u64 = 256;

/// A host that asks over HTTP.
#[derive(Clone)]
pub(super) struct Over {
    /// Its process, which the kernel tells.
    pub(super) process: u32,
    /// The agent that its environment names.
    named: Option<String>,
    daemon: Inside,
    /// The repository's own socket: this daemon does not answer for a folder of another repository.
    socket: PathBuf,
    /// The call's place among those that are analysed, until the last clone is dropped.
    _place: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Over {
    /// Finds the repository of the host's project: that of the folder in which the host runs, which no `cd` of its
    /// shell changes, else that of the folder that its message names.
    pub(super) fn here(&self, told: &HookInput) -> Result<RepoContext, CliError> {
        let mut environment = Environment::current();
        // The daemon's own variables belong to the program that has started it.
        (environment.agent, environment.token) = (self.named.clone(), None);
        environment.expected_daemon_version = None;
        let runs_in = system::working_folder(self.process);
        let said = told.text("cwd").map(PathBuf::from).filter(|it| it.is_absolute());
        let folders = runs_in.into_iter().chain(said).filter(|it| it.is_dir());
        let mut found = folders.filter_map(|cwd| RepoContext::in_folder(cwd, environment.clone()).ok());
        let here = found.find(|it| it.places.own_socket() == self.socket).ok_or_else(|| {
            CliError::of("the host does not work in the repository of the daemon that it asks")
                .next("install the hooks in its own repository: provost hook install claude")
        })?;
        Ok(RepoContext { inside: Some(self.daemon.clone()), ..here })
    }
}

/// The daemon that answers hooks.
pub struct HookDoor {
    /// Its repository.
    pub places: Places,
    /// The runtime that carries out its work.
    pub runtime: tokio::runtime::Handle,
}

impl HookDoor {
    /// Answers a hook: JSON, or empty where the host goes on as if it had no hook. Blocks, for twenty seconds at most.
    ///
    /// # Errors
    /// A token of no hook of this repository, or a path that is no hook.
    pub fn answer(&self, call: HookCall) -> Result<String, HookFault> {
        let given = Digest::of(call.token.as_bytes());
        let is_ours = token(&self.places).is_some_and(|it| Digest::of(it.as_bytes()) == given);
        if !is_ours {
            return Err(HookFault::Unproven);
        }
        let (host, event) = call.path.split_once('/').ok_or(HookFault::Unknown)?;
        let host = HookHost::from_str(host, false).map_err(|_| HookFault::Unknown)?;
        let event = Event::from_str(event, false).map_err(|_| HookFault::Unknown)?;
        if !super::form::is_served(host, event) {
            return Err(HookFault::Unknown);
        }
        let speak_as = call.speak_as.as_deref().map(AgentId::parse).transpose();
        let speak_as = speak_as.map_err(|_| HookFault::Unknown)?;
        let clients: ClientsByName = call.clients;
        let over = Over {
            process: call.process,
            named: call.named,
            daemon: Inside { runtime: self.runtime.clone(), clients },
            socket: self.places.own_socket(),
            _place: call.place,
        };
        let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
        let told = HookInput::read(&call.body).map_err(CliError::of);
        Ok(run::respond(&Run::over(host, event, speak_as, over), told, until).into_body())
    }
}

fn token_file(places: &Places) -> PathBuf {
    TOKEN_FILE.iter().fold(places.state.clone(), |path, name| path.join(name))
}

/// Returns the token of hooks over HTTP, if one was made.
pub(super) fn token(places: &Places) -> Option<String> {
    let text = system::short_text(&token_file(places), TOKEN_BYTES_MAX).ok()?;
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

/// Does the same, and makes a token if none exists. It is shared by the work trees of the repository.
///
/// # Errors
/// When it cannot be stored.
pub(super) fn token_or_new(places: &Places) -> std::io::Result<String> {
    if let Some(token) = token(places) {
        return Ok(token);
    }
    let file = token_file(places);
    system::make_private_folders(file.parent().unwrap_or_else(|| Path::new(".")))?;
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let new = file.with_extension(uuid::Uuid::new_v4().simple().to_string());
    let mut options = std::fs::OpenOptions::new();
    let mut made = system::private_file(options.write(true).create_new(true)).open(&new)?;
    std::io::Write::write_all(&mut made, token.as_bytes())?;
    made.sync_all()?;
    // Two installs at once both use the token of the first.
    let linked = std::fs::hard_link(&new, &file);
    std::fs::remove_file(&new)?;
    match linked {
        Ok(()) => Ok(token),
        Err(err) => self::token(places).ok_or(err),
    }
}
