//! A host's configuration file: read and replaced whole, within the work tree or a folder of the user's own.
//!
//! One of the work tree is reached from its top, folder by folder, and no link is followed: who may write into the work
//! tree must not choose which file of the user's we write. What was there before us is kept in the state folder, so that
//! taking our part out again brings it back to the byte.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use crate::{CliError, RepoContext};
use provost_base::Digest;
use provost_base::limits::HOST_FILE_BYTES_MAX;
use provost_system as system;

/// Where a host's file is.
pub(super) struct HostFile {
    top: Dir,
    folders: Vec<&'static str>,
    name: &'static str,
    /// For people.
    pub(super) shown: PathBuf,
    /// Where it is kept what was there before us.
    kept: PathBuf,
}

/// What was read.
pub(super) struct Seen {
    /// What it says.
    pub(super) text: String,
    meta: Metadata,
}

/// What was there before us.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// What it said; `None` if there was no file.
    before: Option<String>,
    /// Folders that were made for it.
    folders: usize,
    /// Of what we have written.
    after: Digest,
}

impl HostFile {
    /// A file of the work tree, by its path from the top.
    pub(super) fn at(here: &RepoContext, path: &'static str) -> Result<Self, CliError> {
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        let mut file = Self::in_folder(here, &here.places.worktree, path)?;
        (file.folders, file.name) = (folders, name);
        Ok(file)
    }

    /// A file in a folder of the user's own.
    pub(super) fn in_folder(here: &RepoContext, folder: &Path, name: &'static str) -> Result<Self, CliError> {
        let shown = folder.join(name);
        let id = Digest::of(shown.as_os_str().as_encoded_bytes()).to_string();
        let kept = here.places.state.join("hooks").join(format!("{}.json", &id[..16]));
        let opened = Dir::open_ambient_dir(folder, ambient_authority());
        let top = opened.map_err(|err| unchanged(&shown, err))?;
        Ok(Self { top, folders: Vec::new(), name, shown, kept })
    }

    /// What is wrong with it, for a person.
    pub(super) fn wrong(&self, why: impl std::fmt::Display) -> CliError {
        unchanged(&self.shown, why)
    }

    /// The folder that it is in, and how many had to be made for that.
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

    /// What it says; `None` if it is not there.
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

    /// Replaces it, if it still is what was read, and keeps what it says without us.
    pub(super) fn write(
        &self,
        seen: Option<&Seen>,
        without: Option<String>,
        text: &str,
    ) -> Result<(), CliError> {
        let made = self.put(seen, text)?;
        let (before, folders) = match (self.kept(), seen) {
            // It has not changed since: what was there before us is known to the byte.
            (Some(kept), Some(seen)) if kept.after == Digest::of(seen.text.as_bytes()) => {
                (kept.before, kept.folders)
            }
            _ => (without, made),
        };
        let kept = Kept { before, folders, after: Digest::of(text.as_bytes()) };
        // Without it, what we have put in is taken out part by part.
        let _unheard = self.keep(&kept);
        Ok(())
    }

    /// The same for the last time: nothing of ours is in it.
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
            // A run of ours that was killed has left it.
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

    /// How many folders were made for it.
    pub(super) fn made(&self) -> usize {
        self.kept().map_or(0, |it| it.folders)
    }

    /// Brings back what was there before us, if it has not changed since; whether that was so. Where there was no file,
    /// so many of its folders go with it, as far as nothing else is in them.
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
            // Another program has put something into it by now.
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

    /// What was there before us does not matter any more.
    fn forget(&self) {
        let _unheard = std::fs::remove_file(&self.kept);
    }
}

fn unchanged(shown: &Path, why: impl std::fmt::Display) -> CliError {
    CliError::refusal(format!("{} stays as it is", shown.display()))
        .because(why)
        .next("mend that, then once more; docs/hooks.md says what can be put there by hand")
}
