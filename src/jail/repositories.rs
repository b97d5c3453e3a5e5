//! The repositories in a worker's writable directories, and the recognition of a new one.
//!
//! Git runs the programs that a repository's own files name, wherever it meets one: in a folder that a prompt or an editor
//! looks into, or behind a link in an index. So a worker may make none in a workspace, and the supervisor
//! that watches it ends the run when there is one more. A work tree that a person has added meanwhile is
//! recognised by its entry in the repository that it belongs to, which no worker can write.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::PathBuf;
#[cfg(unix)]
use std::{ffi::CStr, fs::File, io::Read as _, os::fd::BorrowedFd, path::Path};

#[cfg(unix)]
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

#[cfg(unix)]
use provost_base::{limits::PATH_LEN_MAX, plain_path};

/// The repositories that exist before a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Repositories {
    /// The path of each: its folder or file `.git`.
    pub known: BTreeSet<PathBuf>,
    /// The folder of the workspace's own repository, if no worker can write there.
    pub own: Option<PathBuf>,
}

/// Checks whether git takes a file or folder of this name for a repository, on any kind of file system.
pub fn is_repository_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// The parts by which git recognises a folder as a repository, collected name by name: a head, and objects and
/// references of its own or of another repository.
#[derive(Clone, Copy, Default, Debug)]
pub struct RepositoryParts {
    head: bool,
    objects: bool,
    refs: bool,
    common: bool,
}

impl RepositoryParts {
    /// Adds one more name in the folder.
    pub fn add(&mut self, name: &[u8]) {
        self.head |= name == b"HEAD";
        self.objects |= name == b"objects";
        self.refs |= name == b"refs";
        self.common |= name == b"commondir";
    }

    /// Checks whether git takes the folder for a repository, by its parts alone.
    pub fn are_a_repository(self) -> bool {
        self.head && (self.common || (self.objects && self.refs))
    }
}

#[cfg(unix)]
impl Repositories {
    /// Checks whether a folder with all parts of a repository, but another name than `.git`, is new: git obeys it for each
    /// program that starts in it or below it. A folder inside of a repository is not another one.
    pub fn is_one_more_folder(&self, at: &Path) -> bool {
        let is_inside = at.iter().any(|name| is_repository_name(name.as_encoded_bytes()));
        !is_inside && !self.known.iter().any(|known| at.starts_with(known))
    }

    /// Checks whether the entry `name` of a folder, at the path `at`, is a repository that was not there before. An
    /// empty folder is none yet, and an entry that has vanished since it was seen is none any more.
    pub fn is_one_more(&self, folder: BorrowedFd<'_>, name: &CStr, at: &Path) -> bool {
        is_repository_name(name.to_bytes())
            && !self.known.contains(at)
            && !is_empty(folder, name)
            && !self.is_own_work_tree(folder, name, at)
    }

    /// Checks whether a file leads to an entry of our own repository that leads back to it.
    fn is_own_work_tree(&self, folder: BorrowedFd<'_>, name: &CStr, at: &Path) -> bool {
        let leads_back = || {
            let trees = self.own.as_ref()?.join("worktrees");
            let text = line_of(folder, name)?;
            let to = plain_path(&at.parent()?.join(text.strip_prefix("gitdir: ")?));
            let entry = to.strip_prefix(&trees).ok().filter(|below| below.components().count() == 1)?;
            let entry = trees.join(entry);
            let opened = rustix::fs::openat(CWD, &entry, directory_flags(), Mode::empty()).ok()?;
            Some(plain_path(&entry.join(line_of(rustix::fd::AsFd::as_fd(&opened), c"gitdir")?)) == at)
        };
        leads_back().unwrap_or(false)
    }
}

#[cfg(unix)]
fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(unix)]
fn is_empty(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    let opened = rustix::fs::openat(folder, name, directory_flags(), Mode::empty());
    // The entry has vanished since it was seen, as the placeholder of another run in a folder below does.
    if opened.as_ref().is_err_and(|err| *err == rustix::io::Errno::NOENT) {
        return true;
    }
    let listed = opened.and_then(|opened| Dir::read_from(&opened));
    let is_dot = |name: &[u8]| matches!(name, b"." | b"..");
    listed.is_ok_and(|mut all| all.all(|it| it.is_ok_and(|it| is_dot(it.file_name().to_bytes()))))
}

/// Returns the one line of a short file; follows no link, and does not wait for a pipe.
#[cfg(unix)]
fn line_of(folder: BorrowedFd<'_>, name: &CStr) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    let is_file = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode).is_file();
    let mut text = String::new();
    File::from(file).take(is_file.then_some(2 * PATH_LEN_MAX as u64)?).read_to_string(&mut text).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    (!line.contains('\n')).then(|| line.to_owned())
}
