//! A host's file: read and replaced whole, so that nobody ever sees half of it and no edit of anybody's is lost.
//!
//! It is reached from the top of the work tree, folder by folder, and no link is followed: who may write into the work
//! tree must not choose which file of the user's we write. A change is made from what was read, put beside it, and
//! exchanged with it in one step; if what was taken away is not what was read, the two change places again.

use std::fs::TryLockError;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::host::Host;
use super::section::{self, Damage, Rest};
use crate::cli_error::USAGE;
use crate::{CliError, RepoContext};
use provost_base::Digest;
use provost_base::limits::HOST_FILE_BYTES_MAX;
use provost_system as system;

/// A file that was written less than this ago may be about to be written on: editors empty a file first.
const QUIET_FOR: Duration = Duration::from_millis(150);

/// How long is waited for a file that is written again and again; then it is changed between two of those.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long what was replaced is watched for somebody who had it open already.
const LATE_FOR: Duration = Duration::from_millis(40);

/// How long is waited for another adapter that is changing the same file.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often a change is tried that others get in the way of.
const TRIES: usize = 50;

/// Where a host's file is.
#[derive(Debug)]
pub(super) struct HostFile {
    host: Host,
    top: Dir,
    folders: Vec<String>,
    name: String,
    /// For people.
    pub(super) shown: PathBuf,
    /// Held while it is changed, so that adapters wait for each other.
    turn: std::fs::File,
}

/// Which file it is, how long, and when it was written.
pub(super) type Mark = (u64, u64, SystemTime);

/// What was read.
struct Seen {
    text: Vec<u8>,
    meta: Metadata,
    number: u64,
}

/// What has become of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// It was written.
    Written,
    /// It is so already.
    Unchanged,
    /// The file is not there any more: it was made for the section.
    Removed,
}

/// Why a file is not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It is something that is not to be changed.
    #[error("{0}")]
    Unfit(String),
    /// The markers do not fit together.
    #[error("{0}")]
    Damaged(#[from] Damage),
    /// Others change it all the time.
    #[error("it keeps changing")]
    Restless,
    /// The system says no.
    #[error("{0}")]
    Broken(#[from] io::Error),
}

impl FileError {
    /// For a person.
    pub(super) fn error(&self, shown: &Path) -> CliError {
        let error = CliError::refusal(format!("{} stays as it is", shown.display())).because(self);
        error.next(match self {
            FileError::Unfit(_) => "fix that, or name another file with --file".to_owned(),
            FileError::Damaged(_) => {
                "remove the rest of the section, including the lines with `provost:begin` and `provost:end`; it is written again"
                    .to_owned()
            }
            FileError::Restless => "find the program that writes it, and try again".to_owned(),
            FileError::Broken(_) => format!("make {} and its folder writable for you", shown.display()),
        })
    }
}

/// Where a name from the command line leads, without links and by its words alone: below the top of the work tree.
fn place(here: &RepoContext, host: Host, typed: Option<&Path>) -> Result<(PathBuf, Vec<String>), CliError> {
    let shown = typed.map_or_else(|| here.places.worktree.join(host.file()), |it| here.cwd.join(it));
    let wrong = |why: String| {
        CliError::refusal(format!("{} is not written to", shown.display()))
            .because(why)
            .next("name a file of this repository with --file")
            .with_code(USAGE)
    };
    let real = |path: &Path| system::real_path(path).map_err(|err| wrong(err.to_string()));
    let top = real(&here.places.worktree)?;
    let whole = match typed {
        Some(typed) => real(&here.cwd)?.join(typed),
        None => top.join(host.file()),
    };
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    let below = plain.strip_prefix(&top).map_err(|_| wrong(format!("it is outside of {}", top.display())))?;
    let parts: Option<Vec<String>> =
        below.components().map(|it| it.as_os_str().to_str().map(str::to_owned)).collect();
    let parts = parts.ok_or_else(|| wrong("its name is not UTF-8".into()))?;
    match parts.iter().any(|it| it.eq_ignore_ascii_case(".git")) {
        true => Err(wrong("it is git's own".into())),
        false if parts.is_empty() => Err(wrong("it is a folder".into())),
        false => Ok((top, parts)),
    }
}

impl HostFile {
    /// The file of a host, or the one that somebody has typed. `locks` is where files are that adapters wait by.
    pub(super) fn find(
        here: &RepoContext,
        host: Host,
        typed: Option<&Path>,
        locks: &Path,
    ) -> Result<Self, CliError> {
        let (top, mut folders) = place(here, host, typed)?;
        let name = folders.pop().unwrap_or_default();
        let shown = folders.iter().fold(top.clone(), |path, it| path.join(it)).join(&name);
        let broken = |err: io::Error| FileError::Broken(err).error(&shown);
        let id = Digest::of(shown.as_os_str().as_encoded_bytes()).to_string();
        let turn = lock_file(&locks.join(format!("{}.turn", &id[..16]))).map_err(broken)?;
        let top = Dir::open_ambient_dir(&top, ambient_authority()).map_err(broken)?;
        Ok(Self { host, top, folders, name, shown, turn })
    }

    /// The folder that it is in; missing ones are made, and counted, if `make` says so.
    fn folder(&self, make: bool) -> Result<Option<(Dir, usize)>, FileError> {
        let (mut folder, mut made) = (self.top.try_clone()?, 0);
        for name in &self.folders {
            match folder.symlink_metadata(name) {
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) if meta.is_symlink() => {
                    return Err(FileError::Unfit(format!("its folder {name} is a symbolic link")));
                }
                Ok(_) => return Err(FileError::Unfit(format!("{name} is no folder"))),
                Err(err) if err.kind() == io::ErrorKind::NotFound && make => {
                    folder.create_dir(name)?;
                    made += 1;
                }
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(err) => return Err(err.into()),
            }
            folder = folder.open_dir(name)?;
        }
        Ok(Some((folder, made)))
    }

    /// What it says; `None` if it is not there.
    fn read(&self, folder: &Dir) -> Result<Option<Seen>, FileError> {
        let meta = match folder.symlink_metadata(&self.name) {
            Ok(meta) => meta,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err.into()),
        };
        let unfit = |why: &str| FileError::Unfit(why.into());
        match () {
            () if meta.is_symlink() => return Err(unfit("it is a symbolic link")),
            () if !meta.is_file() => return Err(unfit("it is no regular file")),
            () if meta.len() > HOST_FILE_BYTES_MAX => {
                return Err(FileError::Unfit(format!("it is larger than {HOST_FILE_BYTES_MAX} bytes")));
            }
            () => system::replaceable(&meta).map_err(FileError::Unfit)?,
        }
        let number = system::number_of(&meta);
        let mut file = folder.open_with(&self.name, &system::reading_without_waiting())?;
        if system::number_of(&file.metadata()?) != number {
            return Err(FileError::Restless);
        }
        let text = contents(&mut file)?;
        if text.contains(&0) {
            return Err(unfit("it is no text"));
        }
        Ok(Some(Seen { text, meta, number }))
    }

    /// What tells whether it has changed, without reading it; `None` if it is not there.
    pub(super) fn mark(&self) -> Option<Mark> {
        let (folder, _) = self.folder(false).ok()??;
        let meta = folder.symlink_metadata(&self.name).ok()?;
        Some((system::number_of(&meta), meta.len(), meta.modified().ok()?.into_std()))
    }

    /// Puts the section into it. Blocks until the disk has it.
    pub(super) fn put(&self, body: &str) -> Result<Done, FileError> {
        self.in_turn(|it| it.try_put(body))
    }

    /// Takes the section out of it. Blocks until the disk has it.
    pub(super) fn take_out(&self) -> Result<Done, FileError> {
        self.in_turn(Self::try_take_out)
    }

    /// Tries again as long as others get in the way; `None` is that somebody has.
    fn in_turn(&self, change: impl Fn(&Self) -> Result<Option<Done>, FileError>) -> Result<Done, FileError> {
        let until = Instant::now() + TURN_WAIT_MAX;
        while let Err(err) = self.turn.try_lock() {
            match err {
                TryLockError::Error(err) => return Err(err.into()),
                TryLockError::WouldBlock if Instant::now() < until => std::thread::sleep(LATE_FOR),
                TryLockError::WouldBlock => return Err(FileError::Restless),
            }
        }
        let mut done = self.tidy().and(Err(FileError::Restless));
        for _ in 0..TRIES {
            done = match change(self) {
                Ok(None) | Err(FileError::Restless) => continue,
                Ok(Some(done)) => Ok(done),
                Err(err) => Err(err),
            };
            break;
        }
        self.turn.unlock()?;
        done
    }

    fn try_put(&self, body: &str) -> Result<Option<Done>, FileError> {
        let Some((folder, folders)) = self.folder(true)? else { return Ok(None) };
        let Some(before) = self.read_quiet(&folder)? else {
            let text = section::put(self.host.head().as_bytes(), self.host, body, folders + 1)?;
            return Ok(self.create(&folder, &text)?.then_some(Done::Written));
        };
        let text = section::put(&before.text, self.host, body, 0)?;
        if text == before.text {
            return Ok(Some(Done::Unchanged));
        }
        Ok(self.replace(&folder, &before, &text)?.then_some(Done::Written))
    }

    fn try_take_out(&self) -> Result<Option<Done>, FileError> {
        let Some((folder, _)) = self.folder(false)? else { return Ok(Some(Done::Unchanged)) };
        let Some(before) = self.read_quiet(&folder)? else { return Ok(Some(Done::Unchanged)) };
        let Some(Rest { text, made }) = section::take_out(&before.text, self.host)? else {
            return Ok(Some(Done::Unchanged));
        };
        if made == 0 || !(text.is_empty() || text == self.host.head().as_bytes()) {
            return Ok(self.replace(&folder, &before, &text)?.then_some(Done::Written));
        }
        if !self.delete(&folder, &before)? {
            return Ok(None);
        }
        self.remove_folders(made - 1);
        Ok(Some(Done::Removed))
    }

    /// Folders that were made for it, as far as nothing else is in them by now.
    fn remove_folders(&self, made: usize) {
        for depth in (1..=self.folders.len()).rev().take(made) {
            let path: PathBuf = self.folders[..depth].iter().collect();
            if self.top.remove_dir(path).is_err() {
                return;
            }
        }
    }

    /// The same as `read`, once it has been left alone for a moment.
    fn read_quiet(&self, folder: &Dir) -> Result<Option<Seen>, FileError> {
        let until = Instant::now() + QUIET_WAIT_MAX;
        loop {
            let seen = self.read(folder)?;
            let modified = seen.as_ref().and_then(|it| it.meta.modified().ok());
            let age = modified.and_then(|it| it.into_std().elapsed().ok());
            match age {
                Some(age) if age < QUIET_FOR && Instant::now() < until => {
                    std::thread::sleep(QUIET_FOR.saturating_sub(age));
                }
                _ => return Ok(seen),
            }
        }
    }

    /// The name beside it of whoever's turn it is.
    fn beside(&self) -> String {
        format!(".{}.provost-new", self.name)
    }

    /// Clears away what an adapter has left beside it that was killed: a copy, unless somebody's edit was in it.
    fn tidy(&self) -> Result<(), FileError> {
        let Some((folder, _)) = self.folder(false)? else { return Ok(()) };
        let Ok(mut left) = folder.open_with(self.beside(), &system::reading_without_waiting()) else {
            return Ok(());
        };
        let outside = |text: &[u8]| match section::take_out(text, self.host) {
            Ok(Some(rest)) => rest.text,
            _ => text.to_owned(),
        };
        let left = contents(&mut left)?;
        let is_copy = match self.read(&folder)? {
            Some(now) => outside(&left) == outside(&now.text),
            None => outside(&left) == self.host.head().as_bytes(),
        };
        match left.is_empty() || is_copy {
            true => folder.remove_file(self.beside())?,
            false => folder.rename(self.beside(), &folder, self.kept())?,
        }
        Ok(())
    }

    /// Where an edit is kept that could not stay.
    fn kept(&self) -> String {
        format!("{}.provost-kept", self.name)
    }

    /// Writes a file beside it, with its rights if there are any to keep.
    fn write_beside(&self, folder: &Dir, text: &[u8], like: Option<&Metadata>) -> Result<File, FileError> {
        let name = self.beside();
        let mut file = folder.open_with(&name, OpenOptions::new().write(true).read(true).create_new(true))?;
        let write = || -> io::Result<()> {
            if let Some(like) = like {
                file.set_permissions(like.permissions())?;
            }
            file.write_all(text)?;
            file.sync_all()
        };
        if let Err(err) = { write }() {
            let _unheard = folder.remove_file(&name);
            return Err(err.into());
        }
        Ok(file)
    }

    /// Makes it; `false` if somebody else has meanwhile.
    fn create(&self, folder: &Dir, text: &[u8]) -> Result<bool, FileError> {
        self.write_beside(folder, text, None)?;
        // A second name, unlike a new one, is refused where there is a file.
        let linked = folder.hard_link(self.beside(), folder, &self.name);
        let _unheard = folder.remove_file(self.beside());
        match linked {
            Ok(()) => synced(folder).map(|()| true),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(err) => Err(err.into()),
        }
    }

    /// Replaces it; `false` if it was not any more what was read. Then it is as somebody has left it.
    fn replace(&self, folder: &Dir, before: &Seen, text: &[u8]) -> Result<bool, FileError> {
        let beside = self.beside();
        self.write_beside(folder, text, Some(&before.meta))?;
        let ours = system::number_of(&folder.symlink_metadata(&beside)?);
        if !self.is_still(folder, before) {
            folder.remove_file(&beside)?;
            return Ok(false);
        }
        if !system::exchange(folder, &beside, &self.name)? {
            folder.rename(&beside, folder, &self.name)?;
            return synced(folder).map(|()| true);
        }
        // From here on what lies beside it is somebody's file.
        if self.was_left_alone(folder, before) {
            let _unheard = folder.remove_file(&beside);
            return synced(folder).map(|()| true);
        }
        system::exchange(folder, &beside, &self.name)?;
        if system::number_of(&folder.symlink_metadata(&beside)?) == ours {
            let _unheard = folder.remove_file(&beside);
            return Ok(false);
        }
        // Two edits in that moment: the later one stays, the other one is kept.
        system::exchange(folder, &beside, &self.name)?;
        folder.rename(&beside, folder, self.kept())?;
        let why = format!(
            "another program has edited it twice in one moment; the other edit is in {}",
            self.kept()
        );
        Err(FileError::Unfit(why))
    }

    /// Removes it; `false` if it was not any more what was read.
    fn delete(&self, folder: &Dir, before: &Seen) -> Result<bool, FileError> {
        if !self.is_still(folder, before) {
            return Ok(false);
        }
        folder.rename(&self.name, folder, self.beside())?;
        if self.was_left_alone(folder, before) {
            folder.remove_file(self.beside())?;
            return synced(folder).map(|()| true);
        }
        folder.hard_link(self.beside(), folder, &self.name)?;
        folder.remove_file(self.beside())?;
        Ok(false)
    }

    fn is_still(&self, folder: &Dir, before: &Seen) -> bool {
        let now = self.read(folder).ok().flatten();
        now.is_some_and(|now| now.number == before.number && now.text == before.text)
    }

    /// Whether what lies beside it by now is what was read, and stays so for a moment: somebody may have had it open.
    fn was_left_alone(&self, folder: &Dir, before: &Seen) -> bool {
        let is_same = || {
            let opened = folder.open_with(self.beside(), &system::reading_without_waiting());
            opened.is_ok_and(|mut file| contents(&mut file).is_ok_and(|text| text == before.text))
        };
        is_same() && {
            std::thread::sleep(LATE_FOR);
            is_same()
        }
    }
}

/// The whole of a file, up to what a host's may have.
fn contents(file: &mut File) -> Result<Vec<u8>, FileError> {
    let mut text = Vec::new();
    file.take(HOST_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > HOST_FILE_BYTES_MAX {
        return Err(FileError::Unfit(format!("it is larger than {HOST_FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// The names in a folder are on disk. Not every system can say so of folders.
fn synced(folder: &Dir) -> Result<(), FileError> {
    let _unheard = folder.open(".").and_then(|it| it.sync_all());
    Ok(())
}

/// A file for taking turns.
fn lock_file(path: &Path) -> io::Result<std::fs::File> {
    if let Some(folder) = path.parent() {
        system::make_private_folders(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    system::private_file(&mut options).open(path)
}

/// Held as long as an adapter of this host keeps this file.
pub(super) struct Alone(#[expect(dead_code, reason = "closing it is what ends it")] std::fs::File);

impl Alone {
    /// Makes sure that no other adapter of this host keeps the same file.
    pub(super) fn with(file: &HostFile, locks: &Path) -> Result<Self, CliError> {
        let id = Digest::of(file.shown.as_os_str().as_encoded_bytes()).to_string();
        let path = locks.join(format!("{}.{}", &id[..16], file.host.word()));
        let mut lock = lock_file(&path).map_err(|err| FileError::Broken(err).error(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _unknown = lock.read_to_string(&mut pid);
                let keeps = format!(
                    "another `provost adapter run {}` keeps {}",
                    file.host.word(),
                    file.shown.display()
                );
                return Err(CliError::refusal(keeps)
                    .because(format!("it is process {}", pid.trim()))
                    .next("end that one first, or name another file with --file"));
            }
            Err(TryLockError::Error(err)) => return Err(FileError::Broken(err).error(&path)),
        }
        let told =
            lock.set_len(0).and_then(|()| lock.write_all(format!("{}\n", std::process::id()).as_bytes()));
        told.map_err(|err| FileError::Broken(err).error(&path))?;
        Ok(Self(lock))
    }
}
