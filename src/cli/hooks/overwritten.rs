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

/// The file in a folder that says by its time when the command began.
const BEGAN: &str = "began";

/// The list in a folder of what was put aside.
const LIST: &str = "list";

/// What a note says of a write whose outcome is not known.
const ANYTHING: &str = "*";

/// A file of a work tree: the top of that, and the path from there.
pub(super) type Place = (PathBuf, String);

/// Files that others hold, each with its holders.
pub(super) type HeldFiles = BTreeMap<Place, BTreeSet<String>>;

/// One of the versions of a file.
#[derive(Debug)]
enum Version {
    /// There is no such file.
    Absent,
    /// What it says.
    Text(Vec<u8>),
    /// It is larger than what is compared by its parts; a copy of it, if it is not too large to be kept either.
    Large(Option<PathBuf>),
    /// It is as large, and still in its place.
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
    /// Which.
    pub(super) place: Place,
    /// Who held something of it before the command.
    pub(super) holders: BTreeSet<String>,
    before: Version,
    after: Version,
}

impl Changed {
    /// The change as an edit, by which it is found out whose it touches.
    pub(super) fn edit(&self) -> wire::Edit {
        let texts = self.before.text().zip(self.after.text());
        let (before, after) = texts.map(|(a, b)| (STANDARD.encode(a), STANDARD.encode(b))).unzip();
        wire::Edit { path: self.place.1.clone(), before, after, ..wire::Edit::default() }
    }

    /// Keeps both versions; says where they lie, or what there was.
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
fn note_of(places: &Places, place: &Place) -> PathBuf {
    aside(places).join(format!("note-{}", short(&place.0.join(&place.1).to_string_lossy())))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    system::private_file(&mut options).open(path)?.write_all(bytes)
}

/// Copies what a file says, if it is no more than so many bytes; how many it has.
fn copied(from: impl io::Read, to: &Path, most: u64) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut to = system::private_file(&mut options).open(to)?;
    let bytes = io::copy(&mut from.take(most + 1), &mut to)?;
    if bytes > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// A file of a work tree as it is; `None` where there is none. Other agents choose what is held: a pipe is not waited for, and no
/// link leads out of the tree.
///
/// # Errors
/// It is no file, or cannot be read.
fn open(place: &Place) -> io::Result<Option<cap_std::fs::File>> {
    let tree = Dir::open_ambient_dir(&place.0, ambient_authority())?;
    let file = match tree.open_with(&place.1, &system::reading_without_waiting()) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// By what it is known that a large file was not written: its size and its times.
fn mark(file: &cap_std::fs::File) -> io::Result<String> {
    let meta = file.metadata()?;
    let since = |at: cap_std::time::SystemTime| {
        at.into_std().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
    };
    Ok(format!("{} {}", meta.len(), since(meta.modified()?)))
}

/// A file as it is now; of a large one, its mark.
fn version(place: &Place) -> io::Result<(Version, Option<String>)> {
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

/// A file that was put aside, as the list of a call has it.
#[derive(Serialize, Deserialize)]
struct Aside {
    tree: PathBuf,
    path: String,
    holders: BTreeSet<String>,
    /// Whether there is no such file.
    absent: bool,
    /// Of a large file, its size and time.
    mark: Option<String>,
}

impl Aside {
    fn place(&self) -> Place {
        (self.tree.clone(), self.path.clone())
    }
}

/// What was put aside for one call, in its folder: the list, and for each entry of it a copy with its number.
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

    /// Where stands what a holder's own write since then was to leave.
    fn next(&self, number: usize) -> PathBuf {
        self.0.join(format!("{number}-next"))
    }

    /// Puts one file aside; `None` where it cannot be compared. Of large files, as many are copied as there is room for.
    fn put(&self, number: usize, place: &Place, holders: &BTreeSet<String>, room: &mut u64) -> Option<Aside> {
        let (version, mark) = version(place).ok()?;
        match &version {
            Version::Absent => {}
            Version::Text(text) => write(&self.copy(number), text).ok()?,
            Version::Large(_) | Version::LargeInPlace => {
                let size =
                    open(place).ok().flatten().and_then(|it| copied(it, &self.copy(number), *room).ok());
                match size {
                    Some(size) => *room -= size,
                    // What is half a copy is none.
                    None => drop(fs::remove_file(self.copy(number))),
                }
            }
        }
        let (tree, path) = place.clone();
        let absent = matches!(version, Version::Absent);
        Some(Aside { tree, path, holders: holders.clone(), absent, mark })
    }

    /// A file as it was put aside.
    fn before(&self, number: usize, it: &Aside) -> Option<Version> {
        let copy = self.copy(number);
        match (it.absent, &it.mark) {
            (true, _) => Some(Version::Absent),
            (false, Some(_)) => Some(Version::Large(copy.is_file().then_some(copy))),
            (false, None) => fs::read(copy).ok().map(Version::Text),
        }
    }
}

/// Puts files aside before a command: those that others hold. The folder is made in any case: who begins to hold a file while the
/// command runs puts it aside there.
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
        // What cannot be read cannot be compared either.
        list.extend(call.put(list.len(), place, holders, &mut room));
    }
    let _kept = call.put_list(&list);
}

/// What a command has changed, and the copies of what was there before, which go when this is dropped.
pub(super) struct Found {
    pub(super) changed: Vec<Changed>,
    folder: PathBuf,
}

impl Drop for Found {
    fn drop(&mut self) {
        let _not_there = fs::remove_dir_all(&self.folder);
    }
}

/// Takes what was put aside before a command, and says which of it has changed since by no write that a hook knows of.
pub(super) fn take_changed(here: &RepoContext, agent: &AgentId, call: &Value) -> Found {
    let call = Call(of_call(&here.places, agent, call));
    let put_at = fs::metadata(call.0.join(BEGAN)).and_then(|it| it.modified()).ok();
    let list = call.list();
    let mut found = Found { changed: Vec::new(), folder: call.0.clone() };
    for (number, it) in list.into_iter().enumerate() {
        let Some(before) = call.before(number, &it) else { continue };
        let place = it.place();
        // A link or a folder has taken the place of all that was there.
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
        // What a holder has written while the command ran is what the command has overwritten.
        let next = fs::read(call.next(number)).ok();
        if next.as_deref().zip(after.text()).is_some_and(|(next, after)| next == after) {
            continue;
        }
        let before = next.map_or(before, Version::Text);
        found.changed.push(Changed { place, holders: it.holders, before, after });
    }
    found
}

/// Puts a file aside for the commands of others that run now: its writer begins to hold it, or goes on. `next` is what the write
/// will leave, where that is known.
fn put_aside_for_others(places: &Places, agent: &AgentId, place: &Place, next: Option<&[u8]>) {
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
        // Without it, the version before the holder's write is what is kept.
        let _kept = next.map(|it| write(&call.next(number), it));
    }
}

/// Whether a write of another agent's since then left a file so. What it has written before may have come back by the command.
fn is_theirs(
    places: &Places,
    agent: &AgentId,
    place: &Place,
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

/// Notes what a write of an agent's will leave of a file; without a content, anything.
pub(super) fn note(places: &Places, agent: &AgentId, place: &Place, content: Option<&[u8]>) {
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
    // Without it, a holder's own write may be told as the command's.
    let _unheard = file.and_then(|mut it| it.write_all(line.as_bytes()));
}

/// The folders of calls whose names begin so.
fn calls(places: &Places, begin: &str) -> Vec<fs::DirEntry> {
    let entries = fs::read_dir(aside(places)).into_iter().flatten().flatten();
    entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(begin.as_bytes())).collect()
}

/// Forgets the calls of sessions that have ended without a word.
fn forget_old(places: &Places) {
    for entry in calls(places, "call-") {
        let at = entry.metadata().and_then(|it| it.modified()).ok();
        let age = at.and_then(|it| SystemTime::now().duration_since(it).ok());
        if age.is_some_and(|it| it.as_millis() > u128::from(HOOK_ASIDE_AGE_MS_MAX)) {
            let _not_there = fs::remove_dir_all(entry.path());
        }
    }
}

/// Forgets what was put aside for the calls of a session that is over.
pub(super) fn forget_calls(places: &Places, agent: &AgentId) {
    forget_oldest(places, agent, 0);
}

/// Forgets what was put aside for the oldest calls of an agent beyond a number. Of a command that was
/// refused or left behind, hosts do not say that it has ended.
fn forget_oldest(places: &Places, agent: &AgentId, most: usize) {
    let entries = calls(places, &calls_of(agent)).into_iter();
    let put_at = |it: &fs::DirEntry| it.metadata().and_then(|it| it.modified()).ok();
    let mut calls: Vec<_> = entries.map(|it| (put_at(&it), it.path())).collect();
    calls.sort();
    for (_, old) in calls.iter().take(calls.len().saturating_sub(most)) {
        let _not_there = fs::remove_dir_all(old);
    }
}
