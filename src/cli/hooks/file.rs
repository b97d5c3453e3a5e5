//! A host's configuration file: read and replaced as a whole, within the work tree or a folder of the user's own.
//!
//! A file of the work tree is reached from its top, folder by folder, and no link is followed: a program that can
//! write into the work tree must not choose which of the user's files Provost writes. The content before Provost's
//! first change is kept in the state folder, so that removing the hooks restores it byte by byte.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use crate::{CliError, RepoContext};
use provost_base::Digest;
use provost_base::limits::HOST_FILE_BYTES_MAX;
use provost_system as system;

/// The place of a host's file.
pub(super) struct HostFile {
    top: Dir,
    folders: Vec<&'static str>,
    name: &'static str,
    /// Its path, for people.
    pub(super) shown: PathBuf,
    /// The copy of the content before Provost's first change.
    kept: PathBuf,
}

/// The file as it was read.
pub(super) struct Seen {
    /// Its content.
    pub(super) text: String,
    meta: Metadata,
}

/// The file before Provost's first change.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Its content; `None` if it did not exist.
    before: Option<String>,
    /// The number of folders that were made for it.
    folders: usize,
    /// The digest of the content that Provost has written.
    after: Digest,
}

impl HostFile {
    /// Makes a file of the work tree, by its path from the top.
    pub(super) fn at(here: &RepoContext, path: &'static str) -> Result<Self, CliError> {
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        let mut file = Self::in_folder(here, &here.places.worktree, path)?;
        (file.folders, file.name) = (folders, name);
        Ok(file)
    }

    /// Makes a file in a folder of the user's own.
    pub(super) fn in_folder(here: &RepoContext, folder: &Path, name: &'static str) -> Result<Self, CliError> {
        let shown = folder.join(name);
        let id = Digest::of(shown.as_os_str().as_encoded_bytes()).to_string();
        let kept = here.places.state.join("hooks").join(format!("{}.json", &id[..16]));
        let opened = Dir::open_ambient_dir(folder, ambient_authority());
        let top = opened.map_err(|err| unchanged(&shown, err))?;
        Ok(Self { top, folders: Vec::new(), name, shown, kept })
    }

    /// Makes the error about it, for a person.
    pub(super) fn wrong(&self, why: impl std::fmt::Display) -> CliError {
        unchanged(&self.shown, why)
    }

    /// Returns the folder of the file, and the number of folders that had to be made.
    fn folder(&self, make: bool) -> Result<Option<(Dir, usize)>, CliError> {
        let broken = |err: io::Error| self.wrong(err);
        let (mut folder, mut made) = (self.top.try_clone().map_err(broken)?, 0);
        for name in &self.folders {
            match folder.symlink_metadata(name) {
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) if meta.is_symlink() => {
                    return Err(self.wrong(format!("its folder {name} is a symbolic link")));
                }
                Ok(_) => return Err(self.wrong(format!("{name} is no folder"))),
                Err(err) if err.kind() == io::ErrorKind::NotFound && make => {
                    folder.create_dir(name).map_err(broken)?;
                    made += 1;
                }
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(err) => return Err(broken(err)),
            }
            folder = folder.open_dir(name).map_err(broken)?;
        }
        Ok(Some((folder, made)))
    }

    /// Reads the file; `None` if it does not exist.
    pub(super) fn read(&self) -> Result<Option<Seen>, CliError> {
        let Some((folder, _)) = self.folder(false)? else { return Ok(None) };
        self.read_in(&folder)
    }

    fn read_in(&self, folder: &Dir) -> Result<Option<Seen>, CliError> {
        let meta = match folder.symlink_metadata(self.name) {
            Ok(meta) => meta,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(self.wrong(err)),
        };
        match () {
            () if meta.is_symlink() => return Err(self.wrong("it is a symbolic link")),
            () if !meta.is_file() => return Err(self.wrong("it is no regular file")),
            () if meta.len() > HOST_FILE_BYTES_MAX => {
                return Err(self.wrong(format!("it is larger than {HOST_FILE_BYTES_MAX} bytes")));
            }
            () => {}
        }
        let file = folder.open_with(self.name, &system::reading_without_waiting());
        let mut file = file.map_err(|err| self.wrong(err))?.take(HOST_FILE_BYTES_MAX);
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|err| self.wrong(err))?;
        Ok(Some(Seen { text, meta }))
    }

    /// Replaces the file, if it still is as it was read, and keeps its content without Provost's part.
    pub(super) fn write(
        &self,
        seen: Option<&Seen>,
        without: Option<String>,
        text: &str,
    ) -> Result<(), CliError> {
        let made = self.put(seen, text)?;
        let (before, folders) = match (self.kept(), seen) {
            // The file has not changed since Provost wrote it, so the earlier content is known to the byte.
            (Some(kept), Some(seen)) if kept.after == Digest::of(seen.text.as_bytes()) => {
                (kept.before, kept.folders)
            }
            _ => (without, made),
        };
        let kept = Kept { before, folders, after: Digest::of(text.as_bytes()) };
        // Without this copy, Provost's parts are removed one by one.
        let _unheard = self.keep(&kept);
        Ok(())
    }

    /// Does the same for the last time: the new text has no part of Provost's.
    pub(super) fn let_go(&self, seen: &Seen, text: &str) -> Result<(), CliError> {
        self.put(Some(seen), text)?;
        self.forget();
        Ok(())
    }

    fn put(&self, seen: Option<&Seen>, text: &str) -> Result<usize, CliError> {
        if let Some(seen) = seen {
            if seen.meta.permissions().readonly() {
                return Err(self.wrong("it is read-only"));
            }
            system::replaceable(&seen.meta).map_err(|why| self.wrong(why))?;
        }
        let changed = || self.wrong("another process has changed it at this moment");
        let (folder, made) = self.folder(true)?.ok_or_else(changed)?;
        let beside = format!(".{}.provost-new", self.name);
        let write = || -> io::Result<()> {
            // A killed run of this program has left it.
            let _gone = folder.remove_file(&beside);
            let mut file = folder.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
            if let Some(seen) = seen {
                file.set_permissions(seen.meta.permissions())?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        let replaced = write().map_err(|err| self.wrong(err)).and_then(|()| {
            let now = self.read_in(&folder)?;
            if now.map(|it| it.text) != seen.map(|it| it.text.clone()) {
                return Err(changed());
            }
            folder.rename(&beside, &folder, self.name).map_err(|err| self.wrong(err))
        });
        if replaced.is_err() {
            let _unheard = folder.remove_file(&beside);
        }
        replaced.map(|()| made)
    }

    /// Returns the number of folders that were made for it.
    pub(super) fn made(&self) -> usize {
        self.kept().map_or(0, |it| it.folders)
    }

    /// Restores the content before Provost's first change, if the file has not changed since; returns whether it did.
    /// A file that did not exist is removed with at most this many of its folders, as far as they are empty.
    pub(super) fn bring_back(&self, seen: &Seen, folders: usize) -> Result<bool, CliError> {
        let Some(kept) = self.kept().filter(|it| it.after == Digest::of(seen.text.as_bytes())) else {
            return Ok(false);
        };
        match &kept.before {
            Some(before) => drop(self.put(Some(seen), before)?),
            None => self.delete(folders)?,
        }
        self.forget();
        Ok(true)
    }

    fn delete(&self, made: usize) -> Result<(), CliError> {
        let Some((folder, _)) = self.folder(false)? else { return Ok(()) };
        folder.remove_file(self.name).map_err(|err| self.wrong(err))?;
        for depth in (1..=self.folders.len()).rev().take(made) {
            let path: PathBuf = self.folders[..depth].iter().collect();
            // Another program has put a file into this folder in the meantime.
            if self.top.remove_dir(path).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn kept(&self) -> Option<Kept> {
        serde_json::from_slice(&std::fs::read(&self.kept).ok()?).ok()
    }

    fn keep(&self, kept: &Kept) -> io::Result<()> {
        if let Some(folder) = self.kept.parent() {
            system::make_private_folders(folder)?;
        }
        let new = self.kept.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        let mut file = system::private_file(options.write(true).create(true).truncate(true)).open(&new)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.kept)
    }

    /// Drops the copy of the earlier content, which does not matter any more.
    fn forget(&self) {
        let _unheard = std::fs::remove_file(&self.kept);
    }
}

fn unchanged(shown: &Path, why: impl std::fmt::Display) -> CliError {
    CliError::refusal(format!("{} stays as it is", shown.display()))
        .because(why)
        .next("mend that, then once more; docs/hooks.md says what can be put there by hand")
}
