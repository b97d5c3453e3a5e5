//! The agent on whose behalf a host's session speaks: its hooks, its shells and its `provost mcp` use one name, so
//! that no part of a session is kept from what the others hold.
//!
//! The name comes from the session's id; the host passes it to hooks, and may set it in the environment of the other processes. A
//! host can go on with another session in the same process (`/clear`), and its MCP servers then keep the first session's name. So
//! each `provost mcp` leaves a note of its name while it runs, under the process that has started it, and hooks of that process
//! use it. The name of a session stays recorded as long as its host's process runs, since the host reports the end of a session
//! after its MCP servers have gone. Where an adapter keeps CLAUDE.md current, the first session gets the adapter's name, which
//! stands in that file. The same holds for Codex, whose hooks, calls over MCP and shells all name the session. All conversations
//! of Cursor use the name of its adapter while that runs, since its shells do not name their conversation.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use provost_base::AgentId;
use provost_config::Places;
use provost_mcp::{CallOf, agent_of, folder, of_process, recorded_for, recorded_in};
use provost_system as system;

use super::screens;

/// The variables in which Claude Code tells its session's id and its process.
const CLAUDE: [&str; 2] = ["CLAUDE_CODE_SESSION_ID", "CLAUDE_PID"];
/// The variables in which Codex gives shells its session's id.
const CODEX: [&str; 2] = ["CODEX_SESSION_ID", "CODEX_THREAD_ID"];

/// Most notes that are read; each running `provost mcp` has one.
const NOTES_MAX: usize = 1_000;

/// Most bytes of a note that are read.
const NOTE_BYTES_MAX: u64 = 4 << 10;

/// A session of a host.
pub(super) struct Session<'a> {
    /// The word for the host.
    pub(super) host: &'a str,
    /// Its id.
    pub(super) id: &'a str,
    /// The host's process.
    pub(super) process: Option<u32>,
}

impl Session<'_> {
    /// Returns the name that it has by its id alone.
    fn own(&self) -> Option<AgentId> {
        agent_of(self.host, self.id)
    }

    fn mark(&self) -> Option<(u32, u64)> {
        let pid = self.process?;
        Some((pid, system::process_began(pid).ok()??))
    }

    /// Returns the agent on whose behalf it speaks.
    pub(super) fn agent(&self, places: &Places) -> Option<AgentId> {
        // Shells of Cursor do not name their conversation: all of them speak as the agent in its file.
        if self.host == "cursor"
            && let Some(name) = adapted(places, self.host)
        {
            return Some(name);
        }
        let (own, folder) = (self.own()?, folder(&places.runtime));
        if let Some(known) = recorded_in(&folder.join(format!("session-{own}"))) {
            return Some(known);
        }
        // A name that cannot be recorded would be given to every session.
        let adapted = adapted(places, self.host).filter(|_| self.mark().is_some());
        let Some(name) = adapted else { return Some(own) };
        // One session at a time checks whether the name is free, and takes it: two that begin together are two agents.
        let Some(_turn) = turn(&folder) else { return Some(own) };
        match called(&folder).contains(&name) {
            true => Some(own),
            false => self.is_called(places, name),
        }
    }

    /// Does the same for a session that its host begins; one that continues an ended session gets that one's name.
    pub(super) fn begun(&self, places: &Places, goes_on: bool) -> Option<AgentId> {
        let before = self.mark().and_then(|(pid, _)| recorded_for(&places.runtime, pid));
        let name = match before.filter(|_| goes_on) {
            Some(before) => before,
            None => self.agent(places)?,
        };
        self.is_called(places, name)
    }

    /// Removes the record of its name: it has ended, and another session of its process may have the name.
    pub(super) fn is_over(&self, places: &Places) {
        if let Some(own) = self.own() {
            let _unheard = std::fs::remove_file(folder(&places.runtime).join(format!("session-{own}")));
        }
    }

    /// Records that it exists, until its host's process or the session itself ends: for a host with several sessions
    /// in one process.
    pub(super) fn is_there(&self, places: &Places, name: &AgentId) {
        if let Some((own, (pid, began))) = self.own().zip(self.mark()) {
            // Without the record, it counts as existing while it gives signs of life.
            let _unheard =
                put(&folder(&places.runtime), &format!("session-{own}"), &format!("{pid} {began} {name}"));
        }
    }

    /// Records its name, as long as its host's process runs.
    pub(super) fn is_called(&self, places: &Places, name: AgentId) -> Option<AgentId> {
        let own = self.own()?;
        if let Some((pid, began)) = self.mark() {
            let folder = folder(&places.runtime);
            let text = format!("{pid} {began} {name}");
            // Without the record, the session's id is its name.
            let _unheard = put(&folder, &format!("host-{pid}"), &text)
                .and_then(|()| put(&folder, &format!("session-{own}"), &text));
        }
        Some(name)
    }
}

/// Takes a turn at the names of sessions, which the system takes back when this process ends for any reason.
fn turn(folder: &Path) -> Option<File> {
    system::make_private_folders(folder).ok()?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = system::private_file(&mut options).open(folder.join(".names")).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Returns the names of sessions that still run.
fn called(folder: &Path) -> BTreeSet<AgentId> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(NOTES_MAX);
    let sessions = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(b"session-"));
    sessions.filter_map(|it| recorded_in(&it.path())).collect()
}

fn put(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
    system::make_private_folders(folder)?;
    forget_the_dead(folder);
    let new = folder.join(format!(".{name}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    system::private_file(&mut options).open(&new)?.write_all(text.as_bytes())?;
    std::fs::rename(&new, folder.join(name))
}

/// Returns the name that the adapter of a host keeps in the file of this work tree, while it runs.
fn adapted(places: &Places, host: &str) -> Option<AgentId> {
    AgentId::parse(&read(&adapter(places, host))?).ok()
}

/// Checks whether an adapter keeps the file of a host current.
pub(super) fn is_adapted(places: &Places, host: &str) -> bool {
    adapted(places, host).is_some()
}

fn adapter(places: &Places, host: &str) -> PathBuf {
    let at = provost_base::Digest::of(places.worktree.as_os_str().as_encoded_bytes()).to_string();
    folder(&places.runtime).join(format!("adapter-{host}-{}", &at[..16]))
}

/// Leaves a note of the name that an adapter keeps in the file of a host.
pub(super) fn note_adapter(places: &Places, host: &str, agent: &AgentId) -> Option<Note> {
    noted_at(adapter(places, host), agent)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|it| !it.is_empty())
}

/// Returns the agent of the host that has started this process, if the host names its session.
pub(super) fn agent_of_the_host(places: &Places) -> Option<AgentId> {
    let (id, process) = (variable(CLAUDE[0])?, variable(CLAUDE[1]).and_then(|it| it.parse().ok()));
    Session { host: "claude", id: &id, process }.agent(places)
}

/// Does the same for an MCP server. Claude Code gives it the session, but not its process, which is this one's
/// parent; the server may run before Claude Code calls its hooks.
pub(super) fn agent_of_the_servers_host(places: &Places) -> Option<AgentId> {
    Session { host: "claude", id: &variable(CLAUDE[0])?, process: system::parent_process() }.agent(places)
}

/// Returns the agent of the session whose shell has started this process.
pub(super) fn agent_of_the_shell(places: &Places) -> Option<AgentId> {
    let of_codex = || of_codex(&CODEX.into_iter().find_map(variable)?).agent(places);
    agent_of_the_host(places).or_else(of_codex)
}

/// Returns the process of the host whose shell has started this one, if the host names its session and runs.
pub(super) fn process_of_the_shell() -> Option<u32> {
    let of_claude = || variable(CLAUDE[0]).and_then(|_| variable(CLAUDE[1])?.parse().ok());
    let of_codex =
        || last_of_codex(&CODEX.into_iter().find_map(variable)?, std::env::current_dir().ok().as_deref());
    let process = of_claude().or_else(of_codex)?;
    let runs = system::process_began(process).ok().flatten().is_some();
    runs.then_some(process)
}

/// Programs through which a host starts others.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash"];

/// Returns a session of the Codex that has started this process, as a hook, as an MCP server or from a shell: Codex
/// itself is the nearest process above that is no shell and was not given the session.
pub(super) fn of_codex(id: &str) -> Session<'_> {
    let is_codex = |pid: &u32| {
        let started = system::started_as(*pid, &CODEX);
        started.is_none_or(|(name, told)| !told && !SHELLS.contains(&name.as_str()))
    };
    Session { host: "codex", id, process: system::processes_above().into_iter().find(is_codex) }
}

/// Returns the process whose end ends everything that a session of Codex holds that works in a folder. Codex' screen lets a process in the
/// background work, which keeps the session for a minute after the screen has gone. So this is the screen, where it is known which one.
pub(super) fn last_of_codex(id: &str, folder: Option<&Path>) -> Option<u32> {
    let process = of_codex(id).process?;
    let started = system::arguments_of(process).unwrap_or_default();
    let is_behind_screens =
        started.get(1).is_some_and(|it| it == "app-server") && started.iter().any(|it| it == "--listen");
    let Some(folder) = folder.filter(|_| is_behind_screens) else { return Some(process) };
    screens::of_session(id, folder).or(Some(process))
}

/// Returns the agent on whose behalf a call over MCP speaks, if its host names the session, or itself.
pub(super) fn agent_of_the_call(places: &Places, call: &CallOf<'_>) -> Option<AgentId> {
    match call {
        CallOf::Codex(session) => of_codex(session).agent(places),
        CallOf::Cursor => adapted(places, "cursor"),
    }
}

/// Records the name of the session of the host that has started this process.
pub(super) fn settle(places: &Places, agent: &AgentId) {
    if let Ok(id) = std::env::var(CLAUDE[0]) {
        let session = Session { host: "claude", id: &id, process: system::parent_process() };
        let _kept = session.is_called(places, agent.clone());
    }
}

/// Checks whether the host whose shell this is keeps it from reaching the daemon.
pub(super) fn is_shut_in() -> bool {
    std::env::var_os("CODEX_SANDBOX_NETWORK_DISABLED").is_some_and(|it| it == "1")
}

/// Returns the agent of a host that names no session: one for each process.
pub(super) fn agent_of_the_process() -> Option<AgentId> {
    AgentId::parse(&of_process(std::process::id())).ok()
}

/// A note of a name; it lasts until this is dropped.
pub(super) struct Note {
    path: PathBuf,
    /// Locked: the system releases the lock when this process ends for any reason.
    _file: File,
}

impl Drop for Note {
    fn drop(&mut self) {
        let _unheard = std::fs::remove_file(&self.path);
    }
}

/// Leaves a note of the agent on whose behalf this process's host speaks. Without one, hooks use the session's id.
pub(super) fn note(places: &Places, agent: &AgentId) -> Option<Note> {
    let name = format!("{}-{}", system::parent_process()?, std::process::id());
    noted_at(folder(&places.runtime).join(name), agent)
}

fn noted_at(path: PathBuf, agent: &AgentId) -> Option<Note> {
    let folder = path.parent()?;
    system::make_private_folders(folder).ok()?;
    forget_the_dead(folder);
    let new = folder.join(format!(".{}-{}", path.file_name()?.to_str()?, std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let mut file = system::private_file(&mut options).open(&new).ok()?;
    // The file is put in place only when it is locked; otherwise it would look like that of a killed process.
    file.try_lock().ok()?;
    file.write_all(agent.as_str().as_bytes()).ok()?;
    std::fs::rename(&new, &path).ok()?;
    Some(Note { path, _file: file })
}

fn forget_the_dead(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(NOTES_MAX) {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.as_encoded_bytes();
        let is_dead = match name.first() {
            Some(first) if first.is_ascii_digit() || name.starts_with(b"adapter-") => read(&path).is_none(),
            Some(_) if name.starts_with(b"session-") || name.starts_with(b"host-") => {
                recorded_in(&path).is_none()
            }
            _ => false,
        };
        if is_dead {
            let _unheard = std::fs::remove_file(entry.path());
        }
    }
}

/// Reads a note whose process still runs.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
    let mut text = String::new();
    file.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the agent on whose behalf the host that has started this process speaks over MCP; `None` if it does not, or as several agents.
pub(super) fn noted(places: &Places) -> Option<AgentId> {
    noted_by(places, system::parent_process()?)
}

/// Does the same for a host's process.
pub(super) fn noted_by(places: &Places, process: u32) -> Option<AgentId> {
    let ours = format!("{process}-");
    let entries = std::fs::read_dir(folder(&places.runtime)).ok()?.flatten().take(NOTES_MAX);
    let ours = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(ours.as_bytes()));
    let names: BTreeSet<String> = ours.filter_map(|it| read(&it.path())).collect();
    let [name] = names.into_iter().collect::<Vec<_>>().try_into().ok()?;
    AgentId::parse(&name).ok()
}
