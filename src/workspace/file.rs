//! Reads one file of the workspace, and changes it in one step.
//!
//! It opens folders one by one, holds each open, and follows no link on the way nor at its end: even if another
//! program swaps a folder meanwhile, no file outside is read or written. A new content is complete on disk under
//! another name in the same folder before the two files are exchanged. Then it checks the replaced file again, and
//! puts it back if the change was made for another content.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};

use cap_std::fs::Dir;

use provost_base::limits::ARTIFACT_BYTES_MAX;
use provost_base::{Digest, RepoPath};
use provost_system::{
    file_inside, folder_inside, mode_of, name_inside, new_file_inside, set_mode, swap_inside, sync_folder,
};

/// The permissions of a new file if the change names none: those that editors use.
pub const MODE: u32 = 0o644;

/// Reduces a mode to the one right that a worker decides: whether the file is a program.
pub fn plain_mode(mode: u32) -> u32 {
    if mode & 0o100 != 0 { 0o755 } else { MODE }
}

/// The reason why a file is neither read nor written. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// A symbolic link, which could lead anywhere.
    #[error("a symbolic link is on the way")]
    Link,
    /// A file where a folder is needed.
    #[error("a part of the path is no folder")]
    NoFolder,
    /// A folder where a file is needed.
    #[error("it is a folder")]
    Folder,
    /// A pipe, socket or device.
    #[error("{0}")]
    NoFile(&'static str),
    /// The file is larger than an undo keeps.
    #[error("the file is larger than {} MiB, which is more than is kept for an undo", ARTIFACT_BYTES_MAX >> 20)]
    TooLarge,
    /// The system refused a step.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The present content of a file.
pub struct Found {
    /// The content.
    pub bytes: Vec<u8>,
    /// The digest of the content.
    pub digest: Digest,
    /// The file's permission bits; `None` on a system without them.
    pub mode: Option<u32>,
}

/// The new state of a file.
pub enum New<'a> {
    /// The file gets this content.
    Says {
        /// The new content.
        bytes: &'a [u8],
        /// The permission bits; `None` means those of a plain file, 0o644.
        mode: Option<u32>,
    },
    /// The file is removed.
    Gone,
}

/// The outcome of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// The change is on disk.
    Changed,
    /// The file has changed a moment ago; nothing was written.
    Moved,
}

/// Returns the folders on the way to a file, and its name.
fn parts(path: &RepoPath) -> (impl Iterator<Item = &str>, &str) {
    let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    (folders.split('/').filter(|it| !it.is_empty()), name)
}

fn is_link(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok_and(|it| it.is_symlink())
}

/// Opens a folder in a folder; `None` if it does not exist.
fn enter(dir: &Dir, name: &str) -> Result<Option<Dir>, Trouble> {
    match folder_inside(dir, name) {
        Ok(found) => Ok(Some(found)),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        Err(_) if is_link(dir, name) => Err(Trouble::Link),
        Err(err) if err.kind() == ErrorKind::NotADirectory => Err(Trouble::NoFolder),
        Err(err) => Err(err.into()),
    }
}

/// Opens a folder of the workspace, with no link on the way; `None` if it does not exist.
pub fn folder_at(root: &Dir, path: &RepoPath) -> Result<Option<Dir>, Trouble> {
    match folder(root, path)? {
        Some(dir) => enter(&dir, parts(path).1),
        None => Ok(None),
    }
}

/// Opens the folder of a file; `None` if it does not exist yet.
fn folder(root: &Dir, path: &RepoPath) -> Result<Option<Dir>, Trouble> {
    let mut dir = root.try_clone()?;
    for name in parts(path).0 {
        match enter(&dir, name)? {
            Some(inner) => dir = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(dir))
}

/// Returns the folders above a file that do not exist yet, the outermost first.
pub fn missing_folders(root: &Dir, path: &RepoPath) -> Result<Vec<RepoPath>, Trouble> {
    let (mut dir, mut at, mut missing) = (Some(root.try_clone()?), String::new(), Vec::new());
    for name in parts(path).0 {
        at = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        dir = dir.map_or(Ok(None), |dir| enter(&dir, name))?;
        if dir.is_none() {
            missing.extend(RepoPath::parse(&at));
        }
    }
    Ok(missing)
}

/// Opens the folder of a file, and makes it if it is missing.
fn make_folder(root: &Dir, path: &RepoPath) -> Result<Dir, Trouble> {
    let mut dir = root.try_clone()?;
    for name in parts(path).0 {
        if let Some(inner) = enter(&dir, name)? {
            dir = inner;
            continue;
        }
        match dir.create_dir(name) {
            Err(err) if err.kind() != ErrorKind::AlreadyExists => return Err(err.into()),
            _ => sync_folder(&dir)?,
        }
        dir = enter(&dir, name)?.ok_or(ErrorKind::NotFound).map_err(io::Error::from)?;
    }
    Ok(dir)
}

/// Removes folders that an apply has made, if they are empty.
pub fn remove_folders(root: &Dir, folders: &[RepoPath]) {
    for path in folders.iter().rev() {
        let Ok(Some(dir)) = folder(root, path) else { continue };
        // The folder is not empty, or is gone: another program uses it then.
        if dir.remove_dir(parts(path).1).is_err() {
            return;
        }
    }
}

/// Reads a file; `None` if it does not exist.
pub fn look(root: &Dir, path: &RepoPath) -> Result<Option<Found>, Trouble> {
    match folder(root, path)? {
        Some(dir) => look_inside(&dir, parts(path).1),
        None => Ok(None),
    }
}

fn look_inside(dir: &Dir, name: &str) -> Result<Option<Found>, Trouble> {
    match file_inside(dir, name) {
        Ok(file) => read(file).map(Some),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        Err(_) if is_link(dir, name) => Err(Trouble::Link),
        Err(err) => match dir.symlink_metadata(name) {
            Ok(meta) if meta.is_dir() => Err(Trouble::Folder),
            Ok(meta) if !meta.is_file() => Err(Trouble::NoFile("it is no regular file")),
            _ => Err(err.into()),
        },
    }
}

fn read(file: File) -> Result<Found, Trouble> {
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(Trouble::Folder);
    }
    if !meta.is_file() {
        return Err(Trouble::NoFile("it is no regular file"));
    }
    let (most, mode) = (ARTIFACT_BYTES_MAX as u64, mode_of(&file)?);
    if meta.len() > most {
        return Err(Trouble::TooLarge);
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Trouble::TooLarge);
    }
    Ok(Found { digest: Digest::of(&bytes), bytes, mode })
}

/// Returns the digest of a file; `None` if it does not exist.
fn says(dir: &Dir, name: &str) -> Option<Digest> {
    look_inside(dir, name).ok().flatten().map(|it| it.digest)
}

/// Changes a file whose content is `old` at this moment, by way of another name in its folder that
/// no other writer uses.
pub fn change(
    root: &Dir,
    path: &RepoPath,
    beside: &str,
    old: Option<Digest>,
    new: &New<'_>,
) -> Result<Done, Trouble> {
    let name = parts(path).1;
    let (dir, done) = match new {
        New::Says { bytes, mode } => {
            let dir = make_folder(root, path)?;
            put(&dir, beside, bytes, *mode)?;
            let done = match old {
                None => appear(&dir, beside, name)?,
                Some(old) => replace(&dir, beside, name, old)?,
            };
            (dir, done)
        }
        New::Gone => {
            let Some(dir) = folder(root, path)? else { return Ok(Done::Moved) };
            let done = vanish(&dir, beside, name, old)?;
            (dir, done)
        }
    };
    if done == Done::Changed {
        sync_folder(&dir)?;
    }
    Ok(done)
}

/// Writes a whole file under the other name, to disk.
fn put(dir: &Dir, beside: &str, bytes: &[u8], mode: Option<u32>) -> Result<(), Trouble> {
    let mut file = new_file_inside(dir, beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| set_mode(&file, mode.unwrap_or(MODE)))
        .and_then(|()| file.sync_all());
    Ok(written.inspect_err(|_| drop(dir.remove_file(beside)))?)
}

/// Removes the other name: our own file, or the replaced one, which is kept for an undo.
fn clear(dir: &Dir, beside: &str) {
    if let Err(err) = dir.remove_file(beside) {
        tracing::warn!(%err, name = beside, "a file that an apply has left was not removed");
    }
}

/// Makes a file appear where none was.
fn appear(dir: &Dir, beside: &str, name: &str) -> Result<Done, Trouble> {
    let appeared = match name_inside(dir, beside, name) {
        Err(err) if err.kind() == ErrorKind::Unsupported => match dir.symlink_metadata(name) {
            Err(err) if err.kind() == ErrorKind::NotFound => dir.rename(beside, dir, name),
            _ => Err(ErrorKind::AlreadyExists.into()),
        },
        appeared => appeared,
    };
    let done = match appeared {
        Ok(()) => return Ok(Done::Changed),
        Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(Done::Moved),
        Err(err) => Err(err.into()),
    };
    clear(dir, beside);
    done
}

/// Replaces a file whose content is `old`.
fn replace(dir: &Dir, beside: &str, name: &str, old: Digest) -> Result<Done, Trouble> {
    let done = match swap_inside(dir, beside, name) {
        Ok(()) if says(dir, beside) == Some(old) => Ok(Done::Changed),
        Ok(()) => {
            // Another program was quicker: its file is put back. If that is impossible, it stays under the other name.
            swap_inside(dir, beside, name)?;
            Ok(Done::Moved)
        }
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(Done::Moved),
        Err(err) if err.kind() == ErrorKind::Unsupported => match says(dir, name) {
            now if now != Some(old) => Ok(Done::Moved),
            _ => match dir.rename(beside, dir, name) {
                Ok(()) => return Ok(Done::Changed),
                Err(err) => Err(err.into()),
            },
        },
        Err(err) => Err(err.into()),
    };
    clear(dir, beside);
    done
}

/// Removes a file whose content is `old`.
fn vanish(dir: &Dir, beside: &str, name: &str, old: Option<Digest>) -> Result<Done, Trouble> {
    match name_inside(dir, name, beside) {
        Ok(()) if says(dir, beside) == old => {
            dir.remove_file(beside)?;
            Ok(Done::Changed)
        }
        Ok(()) => {
            name_inside(dir, beside, name)?;
            Ok(Done::Moved)
        }
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(Done::Moved),
        Err(err) if err.kind() == ErrorKind::Unsupported => {
            if says(dir, name) != old {
                return Ok(Done::Moved);
            }
            dir.remove_file(name)?;
            Ok(Done::Changed)
        }
        Err(err) => Err(err.into()),
    }
}

/// Cleans up after a change that was broken off, which leaves the old file or the new one. Returns whether it is the new one.
pub fn settle(
    root: &Dir,
    path: &RepoPath,
    beside: &str,
    (old, new): (Option<Digest>, Option<Digest>),
) -> Result<bool, Trouble> {
    let Some(dir) = folder(root, path)? else { return Ok(new.is_none() && old.is_some()) };
    let name = parts(path).1;
    let left = match look_inside(&dir, beside) {
        Ok(found) => found.map(|it| it.digest),
        Err(Trouble::TooLarge) => Some(Digest::default()),
        Err(trouble) => return Err(trouble),
    };
    let now = says(&dir, name);
    if let Some(left) = left {
        let is_known = Some(left) == old || Some(left) == new;
        let swapped = now == new && now != old;
        match (is_known, swapped, now) {
            // This is another program's newer content, which was to be put back when the daemon ended.
            (false, true, Some(_)) => dir.rename(beside, &dir, name)?,
            (false, true, None) => drop(name_inside(&dir, beside, name)),
            // This is the removed or replaced file, which is kept for an undo, or one of ours, complete or not.
            _ => dir.remove_file(beside)?,
        }
        sync_folder(&dir)?;
    }
    Ok(says(&dir, name) == new)
}
