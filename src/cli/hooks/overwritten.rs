//! Files of others that a shell command has changed. The changes cannot be foreseen, so the files that others hold are
//! copied before the command, and compared afterwards. The daemon's state folder keeps both versions of each changed file.
//!
//! A holder may itself write while the command runs. Each hook notes the content that a write will leave, and a file
//! with just that content was not changed by the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RepoContext;
use provost_api::wire;
use provost_base::limits::{
    HOOK_ASIDE_AGE_MS_MAX, HOOK_ASIDE_BYTES_MAX, HOOK_ASIDE_FILES_MAX, HOOK_ASIDE_KEPT_MAX,
    HOOK_CALLS_ASIDE_MAX, HOOK_CALLS_TOLD_MAX, HOOK_NOTES_BYTES_MAX, SOURCE_BYTES_MAX,
};
use provost_base::{AgentId, Digest};
use provost_config::Places;
use provost_system as system;

/// The file in a call's folder whose time is the beginning of the command.
const BEGAN: &str = "began";

/// The list of copied files in a call's folder.
const LIST: &str = "list";

/// The note for a write whose result is not known.
const ANYTHING: &str = "*";

/// A file of a work tree: the top of the tree, and the path from there.
pub(super) type TreePath = (PathBuf, String);

/// Files that others hold, each with its holders.
pub(super) type HeldFiles = BTreeMap<TreePath, BTreeSet<String>>;

/// A version of a file.
#[derive(Debug)]
enum Version {
    /// The file does not exist.
    Absent,
    /// The file has this content.
    Text(Vec<u8>),
    /// The file is too large to compare part by part; a copy of it, if it was not too large to copy either.
    Large(Option<PathBuf>),
    /// The file is as large, and still in its place.
    LargeInPlace,
}

impl Version {
    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => Some(&[]),
            Self::Text(text) => Some(text),
            Self::Large(_) | Self::LargeInPlace => None,
        }
    }
}

/// A file that was changed, with both of its versions.
pub(super) struct Changed {
    /// The file.
    pub(super) place: TreePath,
    /// The agents that held a part of it before the command.
    pub(super) holders: BTreeSet<String>,
    before: Version,
    after: Version,
}

impl Changed {
    /// Returns the change as an edit, which tells whose places it touches.
    pub(super) fn edit(&self) -> wire::Edit {
        let texts = self.before.text().zip(self.after.text());
        let (before, after) = texts.map(|(a, b)| (STANDARD.encode(a), STANDARD.encode(b))).unzip();
        wire::Edit { path: self.place.1.clone(), before, after, ..wire::Edit::default() }
    }

    /// Stores both versions; returns their folder, or a note about the old version.
    pub(super) fn keep(&self, places: &Places) -> io::Result<String> {
        let all = places.state.join("overwritten");
        system::make_private_folders(&all)?;
        forget(&all, HOOK_ASIDE_KEPT_MAX);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let folder = all.join(format!("{:015}-{}", since.as_millis(), std::process::id()));
        let whole = self.place.0.join(&self.place.1);
        let folder = folder.join(&Digest::of(whole.as_os_str().as_encoded_bytes()).to_string()[..8]);
        system::make_private_folders(&folder)?;
        let name = self.place.1.rsplit('/').next().unwrap_or("file");
        let kept = |word: &str, version: &Version, none: &str| {
            let at = folder.join(format!("{word}-{name}"));
            match version {
                Version::Absent => return Ok(format!("{word}: {none}")),
                Version::Text(text) => write(&at, text)?,
                Version::Large(Some(copy)) => {
                    fs::rename(copy, &at).or_else(|_| fs::copy(copy, &at).map(drop))?
                }
                Version::Large(None) => return Ok(format!("{word}: it is too large to be kept")),
                Version::LargeInPlace => {
                    let size = open(&self.place)?.map(|it| copied(it, &at, HOOK_ASIDE_BYTES_MAX));
                    if !matches!(size, Some(Ok(_))) {
                        let _half = fs::remove_file(&at);
                        return Ok(format!("{word}: it is too large to be kept"));
                    }
                }
            }
            Ok::<_, io::Error>(format!("{word}: {}", at.display()))
        };
        let before = kept("before", &self.before, "there was no such file")?;
        Ok(format!("{before}; {}", kept("after", &self.after, "there is no such file")?))
    }
}

/// Returns a digest of a text for a file's name, since a text may have any characters.
fn short(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string().chars().take(16).collect()
}

fn aside(places: &Places) -> PathBuf {
    places.runtime.join("aside")
}

/// Returns the folder of one call of a tool in a work tree.
fn of_call(places: &Places, agent: &AgentId, told: &Value) -> PathBuf {
    let call = short(&format!("{} {told}", places.worktree.display()));
    aside(places).join(format!("{}{call}", calls_of(agent)))
}

/// Returns the prefix of an agent's folders.
fn calls_of(agent: &AgentId) -> String {
    format!("call-{}-", short(agent.as_str()))
}

/// Returns the path of a file's note; the same path in another work tree is another file.
fn note_of(places: &Places, place: &TreePath) -> PathBuf {
    aside(places).join(format!("note-{}", short(&place.0.join(&place.1).to_string_lossy())))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    system::private_file(&mut options).open(path)?.write_all(bytes)
}

/// Copies a file of at most `most` bytes; returns the number of its bytes.
fn copied(from: impl io::Read, to: &Path, most: u64) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut to = system::private_file(&mut options).open(to)?;
    let bytes = io::copy(&mut from.take(most + 1), &mut to)?;
    if bytes > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Opens a file of a work tree; `None` where it does not exist. Other agents choose the held paths, so this does not
/// wait at a pipe, and follows no link out of the tree.
///
/// # Errors
/// It is no regular file, or cannot be read.
fn open(place: &TreePath) -> io::Result<Option<cap_std::fs::File>> {
    let tree = Dir::open_ambient_dir(&place.0, ambient_authority())?;
    let file = match tree.open_with(&place.1, &system::reading_without_waiting()) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Returns a mark that shows whether a large file was written: its size and its times.
fn mark(file: &cap_std::fs::File) -> io::Result<String> {
    let meta = file.metadata()?;
    let since = |at: cap_std::time::SystemTime| {
        at.into_std().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
    };
    Ok(format!("{} {}", meta.len(), since(meta.modified()?)))
}

/// Returns the present version of a file; for a large one, also its mark.
fn version(place: &TreePath) -> io::Result<(Version, Option<String>)> {
    let Some(mut file) = open(place)? else { return Ok((Version::Absent, None)) };
    let mut bytes = Vec::new();
    io::Read::by_ref(&mut file).take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > SOURCE_BYTES_MAX {
        true => Ok((Version::LargeInPlace, Some(mark(&file)?))),
        false => Ok((Version::Text(bytes), None)),
    }
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

/// A copied file, as an entry in the list of a call.
#[derive(Serialize, Deserialize)]
struct Aside {
    tree: PathBuf,
    path: String,
    holders: BTreeSet<String>,
    /// Whether the file did not exist.
    absent: bool,
    /// For a large file, its size and time.
    mark: Option<String>,
}

impl Aside {
    fn place(&self) -> TreePath {
        (self.tree.clone(), self.path.clone())
    }
}

/// The folder with the copies for one call: the list, and for each entry of it a copy with its number.
struct Call(PathBuf);

impl Call {
    fn list(&self) -> Vec<Aside> {
        let text = fs::read(self.0.join(LIST)).ok();
        text.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default()
    }

    fn put_list(&self, list: &[Aside]) -> io::Result<()> {
        let text = serde_json::to_vec(list).map_err(io::Error::other)?;
        write(&self.0.join(LIST), &text)
    }

    fn copy(&self, number: usize) -> PathBuf {
        self.0.join(number.to_string())
    }

    /// Returns the path of the content that a holder's own later write was to leave.
    fn next(&self, number: usize) -> PathBuf {
        self.0.join(format!("{number}-next"))
    }

    /// Copies one file; `None` where it cannot be compared. Large files are copied as long as there is room.
    fn put(
        &self,
        number: usize,
        place: &TreePath,
        holders: &BTreeSet<String>,
        room: &mut u64,
    ) -> Option<Aside> {
        let (version, mark) = version(place).ok()?;
        match &version {
            Version::Absent => {}
            Version::Text(text) => write(&self.copy(number), text).ok()?,
            Version::Large(_) | Version::LargeInPlace => {
                let size =
                    open(place).ok().flatten().and_then(|it| copied(it, &self.copy(number), *room).ok());
                match size {
                    Some(size) => *room -= size,
                    // A partial copy is removed.
                    None => drop(fs::remove_file(self.copy(number))),
                }
            }
        }
        let (tree, path) = place.clone();
        let absent = matches!(version, Version::Absent);
        Some(Aside { tree, path, holders: holders.clone(), absent, mark })
    }

    /// Returns a file's version from before the command.
    fn before(&self, number: usize, it: &Aside) -> Option<Version> {
        let copy = self.copy(number);
        match (it.absent, &it.mark) {
            (true, _) => Some(Version::Absent),
            (false, Some(_)) => Some(Version::Large(copy.is_file().then_some(copy))),
            (false, None) => fs::read(copy).ok().map(Version::Text),
        }
    }
}

/// Copies the files that others hold, before a command. The folder is made in any case, since an agent that begins to
/// hold a file while the command runs puts a copy there.
pub(super) fn put_aside(here: &RepoContext, agent: &AgentId, call: &Value, held: &HeldFiles) {
    let call = Call(of_call(&here.places, agent, call));
    let _not_there = fs::remove_dir_all(&call.0);
    forget_oldest(&here.places, agent, HOOK_CALLS_ASIDE_MAX - 1);
    forget_old(&here.places);
    if system::make_private_folders(&call.0).is_err() || write(&call.0.join(BEGAN), &[]).is_err() {
        return;
    }
    let (mut list, mut room) = (Vec::new(), HOOK_ASIDE_BYTES_MAX);
    for (place, holders) in held.iter().take(HOOK_ASIDE_FILES_MAX) {
        // A file that cannot be read cannot be compared either.
        list.extend(call.put(list.len(), place, holders, &mut room));
    }
    let _kept = call.put_list(&list);
}

/// The files that a command has changed, and the copies of their old versions, which are removed when this is dropped.
pub(super) struct Found {
    pub(super) changed: Vec<Changed>,
    folder: PathBuf,
}

impl Drop for Found {
    fn drop(&mut self) {
        let _not_there = fs::remove_dir_all(&self.folder);
    }
}

/// Takes the copies from before a command, and returns the files that have changed since by no write that a hook has noted.
pub(super) fn take_changed(here: &RepoContext, agent: &AgentId, call: &Value) -> Found {
    let call = Call(of_call(&here.places, agent, call));
    let put_at = fs::metadata(call.0.join(BEGAN)).and_then(|it| it.modified()).ok();
    let list = call.list();
    let mut found = Found { changed: Vec::new(), folder: call.0.clone() };
    for (number, it) in list.into_iter().enumerate() {
        let Some(before) = call.before(number, &it) else { continue };
        let place = it.place();
        // A link or a folder has replaced the file.
        let (after, mark) = version(&place).unwrap_or((Version::Absent, None));
        let is_same = match (&before, &after) {
            (Version::Absent, Version::Absent) => true,
            (Version::Text(before), Version::Text(after)) => before == after,
            (Version::Large(_), Version::LargeInPlace) => it.mark == mark,
            _ => false,
        };
        let is_theirs = after.text().is_some_and(|it| is_theirs(&here.places, agent, &place, it, put_at));
        if is_same || (is_theirs && !matches!(after, Version::Absent)) {
            continue;
        }
        // If a holder has written while the command ran, the command has overwritten that content.
        let next = fs::read(call.next(number)).ok();
        if next.as_deref().zip(after.text()).is_some_and(|(next, after)| next == after) {
            continue;
        }
        let before = next.map_or(before, Version::Text);
        found.changed.push(Changed { place, holders: it.holders, before, after });
    }
    found
}

/// Copies a file for the running commands of other agents, since its writer now holds it. `next` is the content that
/// the write will leave, where it is known.
fn put_aside_for_others(places: &Places, agent: &AgentId, place: &TreePath, next: Option<&[u8]>) {
    let ours = calls_of(agent);
    let others = calls(places, "call-").into_iter();
    let is_other = |it: &fs::DirEntry| !it.file_name().as_encoded_bytes().starts_with(ours.as_bytes());
    for entry in others.filter(is_other).take(HOOK_CALLS_TOLD_MAX) {
        let call = Call(entry.path());
        let mut list = call.list();
        let known = list.iter().position(|it| it.tree == place.0 && it.path == place.1);
        let number = match known {
            Some(number) => number,
            None if list.len() < HOOK_ASIDE_FILES_MAX => {
                let holders = BTreeSet::from([agent.to_string()]);
                let number = list.len();
                let Some(it) = call.put(number, place, &holders, &mut 0) else { continue };
                list.push(it);
                if call.put_list(&list).is_err() {
                    continue;
                }
                number
            }
            None => continue,
        };
        // Without this file, the version before the holder's write is kept.
        let _kept = next.map(|it| write(&call.next(number), it));
    }
}

/// Checks whether a later write of another agent left this content. An earlier write does not count, since the command may
/// have restored its content.
fn is_theirs(
    places: &Places,
    agent: &AgentId,
    place: &TreePath,
    content: &[u8],
    put_at: Option<SystemTime>,
) -> bool {
    let Ok(text) = fs::read_to_string(note_of(places, place)) else { return false };
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

/// Notes the content that an agent's write will leave in a file; without a content, any.
pub(super) fn note(places: &Places, agent: &AgentId, place: &TreePath, content: Option<&[u8]>) {
    let at = note_of(places, place);
    if system::make_private_folders(&aside(places)).is_err() {
        return;
    }
    put_aside_for_others(places, agent, place, content);
    let is_long = fs::metadata(&at).is_ok_and(|it| it.len() > HOOK_NOTES_BYTES_MAX);
    let what = content.map_or_else(|| ANYTHING.to_owned(), |it| Digest::of(it).to_string());
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(!is_long).truncate(is_long);
    let file = system::private_file(&mut options).open(at);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let line = format!("{} {what} {}\n", short(agent.as_str()), since.as_millis());
    // Without the note, a holder's own write may be blamed on the command.
    let _unheard = file.and_then(|mut it| it.write_all(line.as_bytes()));
}

/// Returns the folders of calls with this prefix.
fn calls(places: &Places, begin: &str) -> Vec<fs::DirEntry> {
    let entries = fs::read_dir(aside(places)).into_iter().flatten().flatten();
    entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(begin.as_bytes())).collect()
}

/// Removes the copies of sessions that have ended without a report.
fn forget_old(places: &Places) {
    for entry in calls(places, "call-") {
        let at = entry.metadata().and_then(|it| it.modified()).ok();
        let age = at.and_then(|it| SystemTime::now().duration_since(it).ok());
        if age.is_some_and(|it| it.as_millis() > u128::from(HOOK_ASIDE_AGE_MS_MAX)) {
            let _not_there = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the copies for the calls of a session that is over.
pub(super) fn forget_calls(places: &Places, agent: &AgentId) {
    forget_oldest(places, agent, 0);
}

/// Removes the copies for the oldest calls of an agent beyond a number. Hosts do not report the end of a command that
/// was refused or left behind.
fn forget_oldest(places: &Places, agent: &AgentId, most: usize) {
    let entries = calls(places, &calls_of(agent)).into_iter();
    let put_at = |it: &fs::DirEntry| it.metadata().and_then(|it| it.modified()).ok();
    let mut calls: Vec<_> = entries.map(|it| (put_at(&it), it.path())).collect();
    calls.sort();
    for (_, old) in calls.iter().take(calls.len().saturating_sub(most)) {
        let _not_there = fs::remove_dir_all(old);
    }
}
