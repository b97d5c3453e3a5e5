//! What a shell command has changed of what others hold. It cannot be foreseen: so what others hold is put aside before the
//! command, and compared with what is there afterwards. The daemon's state folder keeps both versions of each changed file.
//!
//! A holder may itself write while the command runs. Each hook notes what a write will leave, and a file that says just that
//! was not changed by the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};

use crate::RepoContext;
use provost_api::wire;
use provost_base::limits::{
    HOOK_ASIDE_FILES_MAX, HOOK_ASIDE_KEPT_MAX, HOOK_CALLS_ASIDE_MAX, HOOK_NOTES_BYTES_MAX, SOURCE_BYTES_MAX,
};
use provost_base::{AgentId, Digest};
use provost_config::Places;
use provost_system as system;

/// The list in a folder of what was put aside.
const LIST: &str = "list";

/// What a note says of a write whose outcome is not known.
const ANYTHING: &str = "*";

/// A file that was changed, with both of its versions.
pub(super) struct Changed {
    /// Its path, from the top of the repository.
    pub(super) path: String,
    /// Who held something of it before the command.
    pub(super) holders: BTreeSet<String>,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Changed {
    /// The change as an edit, by which it is found out whose it touches.
    pub(super) fn edit(&self) -> wire::Edit {
        wire::Edit {
            path: self.path.clone(),
            before: Some(STANDARD.encode(&self.before)),
            after: Some(STANDARD.encode(&self.after)),
            ..wire::Edit::default()
        }
    }

    /// Keeps both versions; where they lie.
    pub(super) fn keep(&self, places: &Places) -> io::Result<(PathBuf, PathBuf)> {
        let all = places.state.join("overwritten");
        system::make_private_folders(&all)?;
        forget(&all, HOOK_ASIDE_KEPT_MAX);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let folder = all.join(format!("{:015}-{}", since.as_millis(), std::process::id()));
        let folder = folder.join(&Digest::of(self.path.as_bytes()).to_string()[..8]);
        system::make_private_folders(&folder)?;
        let name = self.path.rsplit('/').next().unwrap_or("file");
        let (before, after) = (folder.join(format!("before-{name}")), folder.join(format!("after-{name}")));
        write(&before, &self.before)?;
        write(&after, &self.after)?;
        Ok((before, after))
    }
}

/// The part of a name that is a text's digest, since texts may have anything in them.
fn short(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string().chars().take(16).collect()
}

fn aside(places: &Places) -> PathBuf {
    places.runtime.join("aside")
}

/// The folder of one call of a tool in a work tree.
fn of_call(places: &Places, agent: &AgentId, told: &Value) -> PathBuf {
    let call = short(&format!("{} {told}", places.worktree.display()));
    aside(places).join(format!("{}{call}", calls_of(agent)))
}

/// How the names of an agent's folders begin.
fn calls_of(agent: &AgentId) -> String {
    format!("call-{}-", short(agent.as_str()))
}

/// The note of a file; in another work tree it is another file.
fn note_of(here: &RepoContext, path: &str) -> PathBuf {
    aside(&here.places).join(format!("note-{}", short(&here.places.worktree.join(path).to_string_lossy())))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    system::private_file(&mut options).open(path)?.write_all(bytes)
}

/// A file of the work tree as it is; `None` for what is no file, or too large. Other agents choose what is held: a pipe is not
/// waited for, and no link leads out of the tree.
fn read(here: &RepoContext, path: &str) -> io::Result<Option<Vec<u8>>> {
    let tree = Dir::open_ambient_dir(&here.places.worktree, ambient_authority())?;
    let file = match tree.open_with(path, &system::reading_without_waiting()) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Some(Vec::new())),
        Err(err) => return Err(err),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= SOURCE_BYTES_MAX).then_some(bytes))
}

/// Removes the oldest entries of a folder beyond a number, by their names.
fn forget(folder: &Path, most: usize) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let mut names: Vec<PathBuf> = names.collect();
    names.sort();
    for old in names.iter().take(names.len().saturating_sub(most)) {
        let _not_there = fs::remove_dir_all(old);
    }
}

/// Files that others hold, each with its holders.
pub(super) type HeldFiles = BTreeMap<String, BTreeSet<String>>;

/// Puts files aside before a command: those that others hold.
pub(super) fn put_aside(here: &RepoContext, agent: &AgentId, call: &Value, held: &HeldFiles) {
    let folder = of_call(&here.places, agent, call);
    let _not_there = fs::remove_dir_all(&folder);
    if held.is_empty() {
        return;
    }
    forget_oldest(&here.places, agent, HOOK_CALLS_ASIDE_MAX - 1);
    if system::make_private_folders(&folder).is_err() {
        return;
    }
    let mut list = Vec::new();
    for (number, (path, holders)) in held.iter().take(HOOK_ASIDE_FILES_MAX).enumerate() {
        // What cannot be read cannot be compared either.
        let Ok(Some(bytes)) = read(here, path) else { continue };
        if write(&folder.join(number.to_string()), &bytes).is_ok() {
            list.push(json!([number, path, holders]));
        }
    }
    let _kept = write(&folder.join(LIST), json!(list).to_string().as_bytes());
}

/// Takes what was put aside before a command, and says which of it has changed since by no write that a hook knows of.
pub(super) fn take_changed(here: &RepoContext, agent: &AgentId, call: &Value) -> Vec<Changed> {
    let folder = of_call(&here.places, agent, call);
    let list = fs::read(folder.join(LIST)).ok().and_then(|it| serde_json::from_slice(&it).ok());
    let list: Vec<(usize, String, BTreeSet<String>)> = list.unwrap_or_default();
    let put_at = fs::metadata(folder.join(LIST)).and_then(|it| it.modified()).ok();
    let mut found = Vec::new();
    for (number, path, holders) in list {
        let Ok(before) = fs::read(folder.join(number.to_string())) else { continue };
        // A link, a folder, or what is too large now has taken the place of all that was there.
        let after = read(here, &path).ok().flatten();
        let is_other = after.as_ref() != Some(&before);
        let is_theirs = after.as_ref().is_some_and(|it| is_theirs(here, agent, &path, it, put_at));
        if is_other && !is_theirs {
            found.push(Changed { path, holders, before, after: after.unwrap_or_default() });
        }
    }
    let _not_there = fs::remove_dir_all(&folder);
    found
}

/// Whether a write of another agent's since then left a file so. What it has written before may have come back by the command.
fn is_theirs(
    here: &RepoContext,
    agent: &AgentId,
    path: &str,
    content: &[u8],
    put_at: Option<SystemTime>,
) -> bool {
    let Ok(text) = fs::read_to_string(note_of(here, path)) else { return false };
    let content = Digest::of(content).to_string();
    let since = put_at.and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line.split(' ');
        let (who, what) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let at = words.next().and_then(|it| it.parse::<u128>().ok()).unwrap_or_default();
        let is_new = at >= since.as_millis();
        is_new && who != short(agent.as_str()) && (what == content || what == ANYTHING)
    })
}

/// Notes what a write of an agent's will leave of a file; without a content, anything.
pub(super) fn note(here: &RepoContext, agent: &AgentId, path: &str, content: Option<&[u8]>) {
    let at = note_of(here, path);
    if system::make_private_folders(&aside(&here.places)).is_err() {
        return;
    }
    let is_long = fs::metadata(&at).is_ok_and(|it| it.len() > HOOK_NOTES_BYTES_MAX);
    let what = content.map_or_else(|| ANYTHING.to_owned(), |it| Digest::of(it).to_string());
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(!is_long).truncate(is_long);
    let file = system::private_file(&mut options).open(at);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let line = format!("{} {what} {}\n", short(agent.as_str()), since.as_millis());
    // Without it, a holder's own write may be told as the command's.
    let _unheard = file.and_then(|mut it| it.write_all(line.as_bytes()));
}

/// Forgets what was put aside for the calls of a session that is over.
pub(super) fn forget_calls(places: &Places, agent: &AgentId) {
    forget_oldest(places, agent, 0);
}

/// Forgets what was put aside for the oldest calls of an agent beyond a number. Of a command that was
/// refused or left behind, hosts do not say that it has ended.
fn forget_oldest(places: &Places, agent: &AgentId, most: usize) {
    let ours = calls_of(agent);
    let entries = fs::read_dir(aside(places)).into_iter().flatten().flatten();
    let entries = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(ours.as_bytes()));
    let put_at = |it: &fs::DirEntry| it.metadata().and_then(|it| it.modified()).ok();
    let mut calls: Vec<_> = entries.map(|it| (put_at(&it), it.path())).collect();
    calls.sort();
    for (_, old) in calls.iter().take(calls.len().saturating_sub(most)) {
        let _not_there = fs::remove_dir_all(old);
    }
}
