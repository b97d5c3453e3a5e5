//! A host's file: read and replaced as a whole, so that no reader ever sees half of it and no edit is lost.
//!
//! The adapter reaches it from the top of the work tree, folder by folder, and follows no link: a program that can write into the
//! work tree must not choose which of the user's files the adapter writes. A change is made from the content that was read, put
//! beside the file, and exchanged with it in one step; if the replaced content is not what was read, the two are exchanged again.

use std::fs::TryLockError;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::host::AgentHost;
use super::section::{self, Damage, Rest};
use crate::cli_error::USAGE;
use crate::{CliError, RepoContext};
use provost_base::Digest;
use provost_base::limits::HOST_FILE_BYTES_MAX;
use provost_system as system;

/// A file that was written less than this ago may be about to be written again: editors empty a file first.
const QUIET_FOR: Duration = Duration::from_millis(150);

/// The time that a constantly written file is waited for; after that the adapter writes between two of those writes.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(2);

/// The time that a replaced file is watched for a program that had it open already.
const LATE_FOR: Duration = Duration::from_millis(40);

/// The time that another adapter is waited for that changes the same file.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);

/// The number of times that a change is tried when others interfere.
const TRIES: usize = 50;

/// The place of a host's file.
#[derive(Debug)]
pub(super) struct HostFile {
    host: AgentHost,
    top: Dir,
    folders: Vec<String>,
    name: String,
    /// Its path, for people.
    pub(super) shown: PathBuf,
    /// Locked while the file is changed, so that adapters wait for each other.
    turn: std::fs::File,
}

/// The file's number, its length, and the time of its last write.
pub(super) type Mark = (u64, u64, SystemTime);

/// The file as it was read.
struct Seen {
    text: Vec<u8>,
    meta: Metadata,
    number: u64,
}

/// The result of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// The file was written.
    Written,
    /// The file has this content already.
    Unchanged,
    /// The file was removed, since it was made for the section.
    Removed,
}

/// The reason why a file is not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The file is of a kind that must not be changed.
    #[error("{0}")]
    Unfit(String),
    /// The markers do not fit together.
    #[error("{0}")]
    Damaged(#[from] Damage),
    /// Other programs change it all the time.
    #[error("it keeps changing")]
    Restless,
    /// The system's error.
    #[error("{0}")]
    Broken(#[from] io::Error),
}

impl FileError {
    /// Makes the error for a person.
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

/// Returns the place of a file that the command line names: its path in words, without links, below the top of the work tree.
fn place(
    here: &RepoContext,
    host: AgentHost,
    typed: Option<&Path>,
) -> Result<(PathBuf, Vec<String>), CliError> {
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
    /// Finds the file of a host, or the one that the person has typed. `locks` is the folder of the locks by which adapters wait.
    pub(super) fn find(
        here: &RepoContext,
        host: AgentHost,
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

    /// Returns the folder of the file; missing folders are created, and counted, if `make` is set.
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

    /// Reads the file; `None` if it does not exist.
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

    /// Returns a mark that shows changes without reading the file; `None` if it does not exist.
    pub(super) fn mark(&self) -> Option<Mark> {
        let (folder, _) = self.folder(false).ok()??;
        let meta = folder.symlink_metadata(&self.name).ok()?;
        Some((system::number_of(&meta), meta.len(), meta.modified().ok()?.into_std()))
    }

    /// Puts the section into the file. Blocks until it is on disk.
    pub(super) fn put(&self, body: &str) -> Result<Done, FileError> {
        self.in_turn(|it| it.try_put(body))
    }

    /// Takes the section out of the file. Blocks until the change is on disk.
    pub(super) fn take_out(&self) -> Result<Done, FileError> {
        self.in_turn(Self::try_take_out)
    }

    /// Tries a change again as long as others interfere; `None` from `change` means that another program did.
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

    /// Removes the folders that were made for the file, as far as they are empty.
    fn remove_folders(&self, made: usize) {
        for depth in (1..=self.folders.len()).rev().take(made) {
            let path: PathBuf = self.folders[..depth].iter().collect();
            if self.top.remove_dir(path).is_err() {
                return;
            }
        }
    }

    /// Does the same as `read`, once the file was left alone for a moment.
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

    /// Returns the name beside the file of the adapter whose turn it is.
    fn beside(&self) -> String {
        format!(".{}.provost-new", self.name)
    }

    /// Removes the copy that a killed adapter has left beside the file, unless another program's edit is in it.
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

    /// Returns the name under which an edit is kept that could not stay.
    fn kept(&self) -> String {
        format!("{}.provost-kept", self.name)
    }

    /// Writes a file beside it, with the rights of the old file if it exists.
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

    /// Creates the file; returns `false` if another program has created it in the meantime.
    fn create(&self, folder: &Dir, text: &[u8]) -> Result<bool, FileError> {
        self.write_beside(folder, text, None)?;
        // Unlike a rename, a hard link is refused where a file exists.
        let linked = folder.hard_link(self.beside(), folder, &self.name);
        let _unheard = folder.remove_file(self.beside());
        match linked {
            Ok(()) => synced(folder).map(|()| true),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(err) => Err(err.into()),
        }
    }

    /// Replaces the file; returns `false` if its content was no longer what was read. Then the other program's content stays.
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
        // From here on, the file beside it may have another program's edit.
        if self.was_left_alone(folder, before) {
            let _unheard = folder.remove_file(&beside);
            return synced(folder).map(|()| true);
        }
        system::exchange(folder, &beside, &self.name)?;
        if system::number_of(&folder.symlink_metadata(&beside)?) == ours {
            let _unheard = folder.remove_file(&beside);
            return Ok(false);
        }
        // Two edits in that moment: the later one stays, and the other is kept under another name.
        system::exchange(folder, &beside, &self.name)?;
        folder.rename(&beside, folder, self.kept())?;
        let why = format!(
            "another program has edited it twice in one moment; the other edit is in {}",
            self.kept()
        );
        Err(FileError::Unfit(why))
    }

    /// Removes the file; returns `false` if its content was no longer what was read.
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

    /// Checks whether the file beside it is still what was read, and stays so for a moment: another program may have had it open.
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

/// Reads a whole file, up to the bound of a host's file.
fn contents(file: &mut File) -> Result<Vec<u8>, FileError> {
    let mut text = Vec::new();
    file.take(HOST_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > HOST_FILE_BYTES_MAX {
        return Err(FileError::Unfit(format!("it is larger than {HOST_FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Puts the names in a folder on disk. Not every system can do that for folders.
fn synced(folder: &Dir) -> Result<(), FileError> {
    let _unheard = folder.open(".").and_then(|it| it.sync_all());
    Ok(())
}

/// Opens a file for taking turns.
fn lock_file(path: &Path) -> io::Result<std::fs::File> {
    if let Some(folder) = path.parent() {
        system::make_private_folders(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    system::private_file(&mut options).open(path)
}

/// A lock that lasts while an adapter of this host keeps this file.
pub(super) struct Alone(#[expect(dead_code, reason = "closing it is what ends it")] std::fs::File);

impl Alone {
    /// Takes the lock, so that no other adapter of this host keeps the same file.
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
