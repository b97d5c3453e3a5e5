//! As whom a host's session speaks: its hooks and its `provost mcp` go by one name, so that nobody is kept from what is
//! their own.
//!
//! The name comes from the session's id, which hooks are told, and `provost mcp` where the host says it in the environment.
//! A host can go on with another session in the same process, and its MCP servers then keep the first one's name: so each
//! leaves a note of its name while it runs, under the process that has started it, and hooks of that process go by it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::base::AgentId;
use crate::config::Places;
use crate::mcp::{agent_of, of_process};
use crate::system;

/// The variable in which Claude Code tells its session's id.
const CLAUDE: &str = "CLAUDE_CODE_SESSION_ID";

/// Notes that are looked through; there is one for each `provost mcp` that runs.
const NOTES_MAX: usize = 1_000;

/// Size of a note that is read, in bytes.
const NOTE_BYTES_MAX: u64 = 4 << 10;

/// The agent of the host that has started this process, if it says which session it is.
pub(super) fn agent_of_the_host() -> Option<AgentId> {
    std::env::var(CLAUDE).ok().and_then(|it| agent_of("claude", &it))
}

/// The agent of a host that does not say: one for each process.
pub(super) fn agent_of_the_process() -> Option<AgentId> {
    AgentId::parse(&of_process(std::process::id())).ok()
}

/// A note of a name, as long as it is kept.
pub(super) struct Note {
    path: PathBuf,
    /// Locked: the system lets go of it with this process, however that ends.
    _file: File,
}

impl Drop for Note {
    fn drop(&mut self) {
        let _unheard = std::fs::remove_file(&self.path);
    }
}

fn folder(places: &Places) -> PathBuf {
    places.runtime.join("hosts")
}

/// Leaves a note of the agent as which the host of this process speaks. Without one, hooks go by the session's id.
pub(super) fn note(places: &Places, agent: &AgentId) -> Option<Note> {
    let folder = folder(places);
    system::make_private_folders(&folder).ok()?;
    forget_the_dead(&folder);
    let name = format!("{}-{}", system::parent_process()?, std::process::id());
    let (new, path) = (folder.join(format!(".{name}")), folder.join(&name));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let mut file = system::private_file(&mut options).open(&new).ok()?;
    // In place only when it is locked, or it would look like a dead one's.
    file.try_lock().ok()?;
    file.write_all(agent.as_str().as_bytes()).ok()?;
    std::fs::rename(&new, &path).ok()?;
    Some(Note { path, _file: file })
}

fn forget_the_dead(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(NOTES_MAX) {
        let is_note = entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if is_note && read(&entry.path()).is_none() {
            let _unheard = std::fs::remove_file(entry.path());
        }
    }
}

/// What a note says whose process is still there.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
    let mut text = String::new();
    file.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The agent as which the host that has started this process speaks over MCP; `None` if it does not, or as several.
pub(super) fn noted(places: &Places) -> Option<AgentId> {
    let ours = format!("{}-", system::parent_process()?);
    let entries = std::fs::read_dir(folder(places)).ok()?.flatten().take(NOTES_MAX);
    let ours = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(ours.as_bytes()));
    let names: BTreeSet<String> = ours.filter_map(|it| read(&it.path())).collect();
    let [name] = names.into_iter().collect::<Vec<_>>().try_into().ok()?;
    AgentId::parse(&name).ok()
}
