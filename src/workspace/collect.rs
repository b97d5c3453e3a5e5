//! Collects a run's changes in its private copy as artifacts. Blocking; it runs when all processes of the run have
//! ended.
//!
//! The copy is hostile: its worker may have made anything in it. The scan uses handles that follow no link, and has
//! bounds. Links and special files are never artifacts; the result names them. It leaves out files that git ignores,
//! except those that existed before.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::ops::Bound::{Excluded, Included};
use std::path::Path;
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use super::diff::lines_changed;
use super::path_text::named as shown;
use super::snapshot::{Base, Stamp, Was, add_rules, is_fit, open_file};
use provost_base::limits::{
    ARTIFACT_BYTES_MAX, CHANGED_BYTES_USUAL, CHANGED_FILES_USUAL, COPY_DEPTH_MAX, DIFF_MS_MAX,
    HARVEST_ENTRIES_MAX, LEFT_OUT_MAX,
};
use provost_base::{Digest, IgnoreRules, TaskId};
use provost_domain::artifact::{artifact_id, is_test, language_by_name};
use provost_domain::{Artifact, Changeset, CollectedArtifact};
use provost_system::walk::{Bound, Bounds, Entry, Folder, Name, Step, Unread, Visitor, walk};

/// A file that has changed since the copy was made.
enum Found {
    /// The file exists, and is new or changed.
    Content { path: String, stamp: Stamp, bytes: Vec<u8> },
    /// The file was there before, and is gone.
    Gone { path: String },
}

impl Found {
    fn path(&self) -> &str {
        match self {
            Found::Content { path, .. } | Found::Gone { path } => path,
        }
    }
}

/// How much of one run's changes is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangesRoom {
    /// The number of files.
    pub files: usize,
    /// The total of their contents, in bytes.
    pub bytes: u64,
}

impl Default for ChangesRoom {
    fn default() -> Self {
        Self { files: CHANGED_FILES_USUAL, bytes: CHANGED_BYTES_USUAL }
    }
}

/// Collects the changes in a copy.
pub fn gather(copy: &Path, base: &Base, task: &TaskId, room: ChangesRoom) -> Changeset {
    let mut look = Collector {
        base,
        found: Vec::new(),
        seen: std::collections::BTreeSet::new(),
        left_out: LeftOut::default(),
        room,
        bytes: room.bytes,
        more: 0,
        large: 0,
    };
    let top = Dir::open_ambient_dir(copy, ambient_authority());
    let bounds = Bounds { entries: HARVEST_ENTRIES_MAX, depth: COPY_DEPTH_MAX, until: None };
    let here = Here { rules: base.above.clone(), ignored: false };
    let walked = top
        .map_err(Stop::Io)
        .and_then(|top| walk(&mut look, (top, OsStr::new(base.below.as_str())), here, bounds));
    match walked {
        // Only a scan that has seen everything can tell which files are missing.
        Ok(()) => look.missing(),
        Err(stop) => look.left_out.lose(stop.why()),
    }
    look.harvest(task)
}

/// The reason why a changed file is not kept.
struct Unkept {
    why: String,
    /// Whether the file is left out since its content found no room.
    is_large: bool,
}

/// The reason why a scan was given up.
enum Stop {
    TooMany,
    TooDeep,
    Io(io::Error),
}

impl Stop {
    fn why(self) -> String {
        match self {
            Stop::TooMany => format!("everything beyond {HARVEST_ENTRIES_MAX} files and folders"),
            Stop::TooDeep => format!("everything nested deeper than {COPY_DEPTH_MAX}"),
            Stop::Io(error) => format!("files that could not be read: {error}"),
        }
    }
}

#[derive(Default)]
struct LeftOut {
    said: Vec<Box<str>>,
    more: usize,
    /// Whether files are missing in the result that could have been offered.
    incomplete: bool,
}

impl LeftOut {
    fn say(&mut self, what: String) {
        match self.said.len() < LEFT_OUT_MAX {
            true => self.said.push(what.into()),
            false => self.more += 1,
        }
    }

    /// Does the same for files that would have been offered if there had been room, or a way to read them.
    fn lose(&mut self, what: String) {
        self.incomplete = true;
        self.say(what);
    }

    fn done(mut self) -> Vec<Box<str>> {
        if self.more > 0 {
            self.said.push(format!("{} more", self.more).into());
        }
        self.said
    }
}

struct Collector<'a> {
    base: &'a Base,
    found: Vec<Found>,
    seen: std::collections::BTreeSet<String>,
    left_out: LeftOut,
    room: ChangesRoom,
    /// The bytes that may still be read into memory.
    bytes: u64,
    /// The number of changed files for which there was no room.
    more: usize,
    /// The number of changed files whose contents found no room.
    large: usize,
}

/// The state of the scan in a folder.
struct Here {
    rules: IgnoreRules,
    ignored: bool,
}

impl Visitor for Collector<'_> {
    type Here = Here;
    type Stop = Stop;

    fn folder(&mut self, folder: Folder<'_>, names: &mut Vec<Name>, here: &mut Here) -> Result<(), Stop> {
        // A folder whose name is no text is not entered.
        let path = folder.path().to_str().unwrap_or_default();
        add_rules(&mut here.rules, folder.dir, ".gitignore", path);
        names.retain(|it| it.name != ".git");
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, here: &mut Here) -> Result<Step<Here>, Stop> {
        let Ok(meta) = at.metadata() else { return Ok(Step::Over) };
        let Some(path) = at.text().filter(|it| is_fit(it)).map(str::to_owned) else {
            let path = at.path().to_string_lossy();
            // The file exists, also if its name means another path elsewhere.
            let below = self.below(&path);
            self.seen.extend(below.into_iter().chain([path.clone().into_owned()]));
            self.left_out
                .say(format!("{}: is no name that a file can be offered under", shown(path.as_bytes())));
            return Ok(Step::Over);
        };
        let ignored = here.ignored || here.rules.ignores(&path, meta.is_dir());
        if meta.is_dir() {
            if ignored && !self.had_below(&path) {
                return Ok(Step::Over);
            }
            return match at.open() {
                Ok(inner) => Ok(Step::Into(inner, Here { rules: here.rules.clone(), ignored })),
                Err(error) => {
                    // The folder exists, with unknown contents.
                    self.seen.extend(self.below(&path));
                    let error = io::Error::from(error);
                    self.left_out.lose(format!("{}: cannot be looked into: {error}", shown(path.as_bytes())));
                    Ok(Step::Over)
                }
            };
        }
        self.file(at, &meta, path, ignored);
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), Stop> {
        Err(match why {
            Unread::Beyond(Bound::Depth) => Stop::TooDeep,
            Unread::Beyond(Bound::Entries | Bound::Time) => Stop::TooMany,
            Unread::Failed(error) => Stop::Io(error),
        })
    }
}

impl Collector<'_> {
    /// Examines an entry that is no folder.
    fn file(&mut self, at: Entry<'_>, meta: &Metadata, path: String, ignored: bool) {
        let (dir, name) = (at.dir, at.name());
        let was = self.base.was.get(&path);
        if was.is_some() {
            self.seen.insert(path.clone());
        } else if ignored || is_placeholder(meta) {
            return;
        }
        if meta.is_symlink() {
            let same = matches!(was, Some(Was::Link(target)) if dir.read_link_contents(name).is_ok_and(|it| it == *target));
            if !same {
                self.left_out.say(format!("{}: is a symbolic link", shown(path.as_bytes())));
            }
        } else if !meta.is_file() {
            self.left_out.say(format!("{}: is neither a file nor a folder", shown(path.as_bytes())));
        } else if !matches!(was, Some(Was::File { copy, .. }) if *copy == Stamp::of(meta)) {
            self.changed(dir, name, path);
        }
    }

    fn changed(&mut self, dir: &Dir, name: &OsStr, path: String) {
        match self.read(dir, name) {
            Ok((stamp, bytes)) if self.differs(&path, &stamp, &bytes) => {
                if self.found.len() >= self.room.files {
                    self.more += 1;
                } else {
                    self.bytes -= bytes.len() as u64;
                    self.found.push(Found::Content { path, stamp, bytes });
                }
            }
            Ok(_) => {}
            Err(unkept) => {
                self.large += usize::from(unkept.is_large);
                self.left_out.lose(format!("{}: {}", shown(path.as_bytes()), unkept.why));
            }
        }
    }

    fn read(&self, dir: &Dir, name: &OsStr) -> Result<(Stamp, Vec<u8>), Unkept> {
        let unread = |error: io::Error| Unkept { why: format!("cannot be read: {error}"), is_large: false };
        let file = open_file(dir, name).map_err(unread)?;
        let meta = file.metadata().map_err(unread)?;
        if !meta.is_file() {
            return Err(Unkept { why: "is neither a file nor a folder".into(), is_large: false });
        }
        let most = self.room.bytes;
        let one = ARTIFACT_BYTES_MAX as u64;
        let too_large = |size: u64| match size > most.min(one) {
            true if one < most => {
                Unkept { why: format!("has {size} bytes, more than one file may have"), is_large: false }
            }
            true => Unkept { why: format!("has {size} bytes, too many"), is_large: true },
            false => {
                let why = format!("has {size} bytes, and with the others it is more than {most}");
                Unkept { why, is_large: true }
            }
        };
        let left = self.bytes.min(one);
        if meta.len() > left {
            return Err(too_large(meta.len()));
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read: one byte more than there is room for tells that.
        file.take(left + 1).read_to_end(&mut bytes).map_err(unread)?;
        match bytes.len() as u64 > left {
            true => Err(too_large(bytes.len() as u64)),
            false => Ok((Stamp::of(&meta), bytes)),
        }
    }

    /// Checks whether a file's content has changed; touching it is no change.
    fn differs(&self, path: &str, stamp: &Stamp, bytes: &[u8]) -> bool {
        match self.base.was.get(path) {
            Some(Was::File { copy, hash: Some(hash), .. }) => {
                *hash != Digest::of(bytes) || is_program(copy.mode) != is_program(stamp.mode)
            }
            _ => true,
        }
    }

    fn had_below(&self, folder: &str) -> bool {
        self.below(folder).next().is_some()
    }

    fn below(&self, folder: &str) -> impl Iterator<Item = String> + use<> {
        let (from, to) = (format!("{folder}/"), format!("{folder}0"));
        // `0` is the character after `/`.
        let range = self.base.was.range::<str, _>((Included(&*from), Excluded(&*to)));
        range.map(|(path, _)| path.clone()).collect::<Vec<_>>().into_iter()
    }

    fn missing(&mut self) {
        for (path, was) in &self.base.was {
            if self.seen.contains(path) {
                continue;
            }
            match was {
                Was::Link(_) => {
                    self.left_out
                        .say(format!("{}: was a symbolic link, and is gone", shown(path.as_bytes())));
                }
                Was::File { .. } if self.found.len() >= self.room.files => self.more += 1,
                Was::File { .. } => self.found.push(Found::Gone { path: path.clone() }),
            }
        }
    }

    fn harvest(mut self, task: &TaskId) -> Changeset {
        if self.more > 0 {
            let (more, most) = (self.more, self.room.files);
            self.left_out.lose(format!("{more} more changed files, since `changes.files` is {most}"));
        }
        let beyond = self.beyond();
        self.found.sort_by(|a, b| a.path().cmp(b.path()));
        let (base, until) = (self.base, Instant::now() + Duration::from_millis(DIFF_MS_MAX));
        let artifact =
            |(number, found): (usize, Found)| gathered((base, until), artifact_id(task, number + 1), found);
        let collected = self.found.into_iter().enumerate().map(artifact).collect();
        let incomplete = self.left_out.incomplete;
        Changeset { collected, left_out: self.left_out.done(), incomplete, beyond }
    }

    /// Describes how many files have changed and how many found room; `None` if all did.
    fn beyond(&self) -> Option<Box<str>> {
        let fit = self.found.len();
        let all = fit + self.more + self.large;
        let files = (self.more > 0).then(|| format!("`changes.files` is {}", self.room.files));
        let size = (self.large > 0).then(|| format!("`changes.size` is {} bytes", self.room.bytes));
        let settings: Vec<String> = files.into_iter().chain(size).collect();
        (all > fit).then(|| format!("{all} changed files, {fit} fit: {}", settings.join(", and ")).into())
    }
}

/// Checks whether a file is the placeholder of a jail whose supervisor was killed.
#[cfg(unix)]
fn is_placeholder(meta: &Metadata) -> bool {
    use cap_std::fs::MetadataExt as _;
    meta.is_file() && meta.len() <= 2 && meta.mtime() == provost_jail::PLACEHOLDER_MTIME
}

#[cfg(not(unix))]
fn is_placeholder(_meta: &Metadata) -> bool {
    false
}

fn is_program(mode: u32) -> bool {
    mode & 0o111 != 0
}

fn gathered((base, until): (&Base, Instant), id: Box<str>, found: Found) -> CollectedArtifact {
    let (old_mode, base_hash, before) = match base.was.get(found.path()) {
        Some(Was::File { mode, copy, hash, at }) => {
            let content = at.and_then(|at| base.content(at, copy.size).ok());
            // A content that cannot be read back counts as not kept.
            (Some(*mode), *hash, content.filter(|it| *hash == Some(Digest::of(it))))
        }
        _ => (None, None, None),
    };
    let path: Box<str> = found.path().into();
    let language = language_by_name(&path).into();
    let artifact = |kind: &str, content: String, mode| Artifact {
        id,
        kind: kind.into(),
        content: content.into(),
        language,
        base_hash,
        mode,
        base_mode: old_mode.filter(|_| mode.is_some()),
        path: path.clone(),
    };
    // If the earlier content of a file is not kept, its new lines are unknown.
    let known = before.is_some() || base_hash.is_none();
    let new = if let Found::Content { bytes, .. } = &found { bytes.as_slice() } else { &[] };
    let lines = lines_changed(before.as_deref().unwrap_or_default(), new, until);
    let (added, removed) = if known { (lines.1, lines.0) } else { (0, 0) };
    let lines = (added, removed);
    match found {
        Found::Gone { .. } => {
            let artifact = artifact("delete", String::new(), None);
            CollectedArtifact { artifact, bytes: None, base: before, lines }
        }
        Found::Content { stamp, bytes, .. } => {
            let mode = Some(mode_of(old_mode, is_program(stamp.mode)));
            match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => {
                    let kind = if is_test(&path) { "test" } else { "file" };
                    CollectedArtifact {
                        artifact: artifact(kind, text, mode),
                        bytes: None,
                        base: before,
                        lines,
                    }
                }
                other => {
                    let bytes = other.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
                    CollectedArtifact {
                        artifact: artifact("binary", String::new(), mode),
                        bytes: Some(bytes),
                        base: before,
                        lines,
                    }
                }
            }
        }
    }
}

/// Returns the old mode, changed only by whether the file is a program; a worker's own umask does not affect the user's files.
fn mode_of(old: Option<u32>, program: bool) -> u32 {
    match (old, program) {
        (Some(old), true) if is_program(old) => old,
        (Some(old), true) => old | (old & 0o444) >> 2,
        (Some(old), false) => old & !0o111,
        (None, true) => 0o755,
        (None, false) => 0o644,
    }
}
