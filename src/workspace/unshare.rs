//! Files of a task's directory that have other names outside of it (a cache of packages, a local clone): a write to
//! one name, or a change of its permissions or times, changes the other too. Before a worker starts, each file gets
//! its own content here, with shared blocks if the file system can do so, or becomes read-only; otherwise the worker does
//! not start. Blocking.
//!
//! The name outside keeps the old file; the file here is new, with the same content, permissions and times. It is
//! complete on disk before it replaces the other.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Gid, Mode, Timespec, Timestamps, XattrFlags};

use super::copy::share;
use super::integrity_scan::{Ground, ScanFindings, open_place};
use super::path_text::shown;
use super::shared_file::Shared;
use provost_base::later;
use provost_base::limits::{SETTINGS_HELD_MAX, UNSHARED_BYTES_MAX, UNSHARED_FILES_MAX, XATTR_BYTES_MAX};
use provost_system::{file_inside, folder_inside, new_file_inside, swap_inside};

/// The outcome for the files with other names.
#[derive(Debug, Default)]
pub struct Unshared {
    /// The number of files that have a content of their own now.
    pub made: usize,
    /// The files that have to be read-only, from the workspace.
    pub held: BTreeSet<String>,
}

/// One name of a file that has to get a content of its own.
struct Wanted<'a> {
    inode: (u64, u64),
    file: &'a Shared,
    path: &'a str,
}

impl Ground {
    /// Makes sure that no file of the findings is shared with a path outside, except for paths in `held`. Without mounts, no path
    /// can be held.
    ///
    /// # Errors
    /// The reason why that is impossible, and the remedy.
    pub fn unshare(
        &self,
        findings: &ScanFindings,
        mounts: bool,
        held: &BTreeSet<String>,
    ) -> Result<Unshared, String> {
        let mut unshared = Unshared::default();
        let mut wanted = Vec::new();
        for (inode, file) in findings.shared.iter().filter(|(_, file)| file.matters(mounts)) {
            for (path, _) in file.paths.iter().filter(|(_, is_held)| !(mounts && *is_held)) {
                let text = std::str::from_utf8(path).map_err(|_| {
                    refused(
                        &shown(path),
                        "has other names outside of the task's directory, and is not text itself",
                    )
                })?;
                wanted.push(Wanted { inode: *inode, file, path: text });
            }
        }
        wanted.retain(|it| !it.path.match_indices('/').any(|(at, _)| held.contains(&it.path[..at])));
        wanted.retain(|it| !held.contains(it.path));
        if is_too_much(&wanted) && mounts {
            // A folder above the directory cannot be mounted upon, and the directory itself is the worker's.
            let above = self.directory.path().strip_prefix(self.root.path()).unwrap_or(Path::new(""));
            let above = above.as_os_str().len();
            let fetched = wanted.iter().filter_map(|it| fetched_folder(it.path, above));
            unshared.held = fetched.map(str::to_owned).collect();
            wanted.retain(|it| fetched_folder(it.path, above).is_none());
        }
        if is_too_much(&wanted) {
            let first = wanted.first().map(|it| shown(it.path.as_bytes())).unwrap_or_default();
            let why = format!(
                "and other files have names outside of the task's directory, {} of them: more than \
                 {UNSHARED_FILES_MAX} files or {UNSHARED_BYTES_MAX} bytes, too many to be copied",
                wanted.len()
            );
            return Err(refused(&first, &why));
        }
        self.each(&wanted, mounts, &mut unshared)?;
        if unshared.held.len() + held.len() > SETTINGS_HELD_MAX {
            return Err(refused("too many files", "have other names outside of the task's directory"));
        }
        Ok(unshared)
    }

    fn each(&self, wanted: &[Wanted<'_>], mounts: bool, unshared: &mut Unshared) -> Result<(), String> {
        if wanted.is_empty() {
            return Ok(());
        }
        let failed = |err: io::Error| refused("the workspace", &format!("cannot be opened: {err}"));
        let root = Dir::from_std_file(File::from(open_place(&self.root).map_err(failed)?));
        let mut drafts = Vec::new();
        for (number, it) in wanted.iter().enumerate() {
            let beside = format!(".provost-own-{}-{number}", uuid::Uuid::new_v4().simple());
            let made = if it.file.own {
                draft(&root, it, &beside)
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            };
            match made {
                Ok(()) => drafts.push((it, beside)),
                Err(_) if !it.file.own && !is_writable(&root, it.path) => {}
                Err(_) if mounts => drop(unshared.held.insert(it.path.to_owned())),
                Err(err) => {
                    drafts.iter().for_each(|(it, beside)| forget(&root, it.path, beside));
                    let why = format!(
                        "has other names outside of the task's directory, and cannot be copied: {err}"
                    );
                    return Err(refused(&shown(it.path.as_bytes()), &why));
                }
            }
        }
        // One flush for all of them, before the first replaces its original.
        flush(&root);
        for (it, beside) in drafts {
            match take_place(&root, it, &beside) {
                // The next scan sees a change that another process has made meanwhile.
                Ok(()) => unshared.made += 1,
                Err(err) => {
                    forget(&root, it.path, &beside);
                    return Err(refused(
                        &shown(it.path.as_bytes()),
                        &format!("cannot be replaced by a copy: {err}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn refused(what: &str, why: &str) -> String {
    format!("{what} {why}; a worker would change them out there. Let it work in a copy (copy = true)")
}

fn is_too_much(wanted: &[Wanted<'_>]) -> bool {
    let bytes = wanted.iter().fold(0_u64, |sum, it| sum.saturating_add(it.file.size));
    wanted.len() > UNSHARED_FILES_MAX || bytes > UNSHARED_BYTES_MAX
}

/// Returns the outermost folder of fetched packages that a path lies in, if its path is longer than `above` bytes.
fn fetched_folder(path: &str, above: usize) -> Option<&str> {
    let mut ends = path.match_indices('/').map(|(at, _)| at).filter(|end| *end > above);
    ends.find(|end| {
        let name = path[..*end].rsplit('/').next().unwrap_or_default();
        later::is_fetched(name.as_bytes())
    })
    .map(|end| &path[..end])
}

/// Returns the folder of a file, opened step by step, and the file's name in it.
fn parent<'a>(root: &Dir, path: &'a str) -> io::Result<(Dir, &'a str)> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = root.try_clone()?;
    for folder in folders.split('/').filter(|it| !it.is_empty()) {
        dir = folder_inside(&dir, folder)?;
    }
    Ok((dir, name))
}

/// Checks whether we may write another user's file.
fn is_writable(root: &Dir, path: &str) -> bool {
    let writable = |(dir, name): (Dir, &str)| {
        rustix::fs::accessat(&dir, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    };
    parent(root, path).map_or(true, writable)
}

/// Makes a complete copy of a file under another name beside it.
fn draft(root: &Dir, wanted: &Wanted<'_>, beside: &str) -> io::Result<()> {
    let (dir, name) = parent(root, wanted.path)?;
    let source = file_inside(&dir, name)?;
    let target = new_file_inside(&dir, beside)?;
    filled(&source, &target, wanted).inspect_err(|_| drop(dir.remove_file(beside)))
}

fn filled(mut source: &File, mut target: &File, wanted: &Wanted<'_>) -> io::Result<()> {
    let stat = rustix::fs::fstat(source)?;
    if (stat.st_dev, stat.st_ino) != wanted.inode || !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(io::Error::other("it is another file by now"));
    }
    if share(source, target).is_err() {
        let copied = io::copy(&mut source.by_ref().take(wanted.file.size + 1), &mut target)?;
        if copied != wanted.file.size {
            return Err(io::Error::other("it was written to meanwhile"));
        }
    }
    copy_attributes(source, target)?;
    if rustix::fs::fstat(target)?.st_gid != stat.st_gid {
        rustix::fs::fchown(target, None, Some(Gid::from_raw(stat.st_gid)))?;
    }
    rustix::fs::fchmod(target, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    Ok(rustix::fs::futimens(target, &times(&stat))?)
}

fn times(stat: &rustix::fs::Stat) -> Timestamps {
    let nanoseconds = |it: u64| i64::try_from(it).unwrap_or_default();
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: nanoseconds(stat.st_atime_nsec) },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: nanoseconds(stat.st_mtime_nsec) },
    }
}

/// Copies extended attributes, with access lists among them. Fails if an attribute cannot be copied.
fn copy_attributes(source: &File, target: &File) -> io::Result<()> {
    let mut names = vec![0_u8; XATTR_BYTES_MAX];
    let length = match rustix::fs::flistxattr(source, &mut names[..]) {
        Err(rustix::io::Errno::NOTSUP) => return Ok(()),
        length => length?,
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0_u8; XATTR_BYTES_MAX];
        let size = rustix::fs::fgetxattr(source, name, &mut value[..])?;
        // The system itself gives some labels to files, which are there already.
        let mut has = vec![0_u8; XATTR_BYTES_MAX];
        let same =
            rustix::fs::fgetxattr(target, name, &mut has[..]).is_ok_and(|it| has[..it] == value[..size]);
        if !same {
            rustix::fs::fsetxattr(target, name, &value[..size], XattrFlags::empty())?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn flush(root: &Dir) {
    if let Err(err) = rustix::fs::syncfs(root) {
        tracing::warn!(%err, "copies of shared files may not be on disk yet");
    }
}

#[cfg(not(target_os = "linux"))]
fn flush(_root: &Dir) {
    rustix::fs::sync();
}

/// Gives the copy the file's name, unless the file has changed since.
fn take_place(root: &Dir, wanted: &Wanted<'_>, beside: &str) -> io::Result<()> {
    let (dir, name) = parent(root, wanted.path)?;
    let stat = |name: &str| rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
    // The copy has its original's time of modification.
    let is_copied = |old: &str, new: &str| -> io::Result<bool> {
        let (old, new) = (stat(old)?, stat(new)?);
        let written = |it: &rustix::fs::Stat| (it.st_mtime, it.st_mtime_nsec, it.st_size);
        Ok((old.st_dev, old.st_ino) == wanted.inode && written(&old) == written(&new))
    };
    if !is_copied(name, beside)? {
        return Err(io::Error::other("it was written to meanwhile; delegate again"));
    }
    match swap_inside(&dir, beside, name) {
        Err(err) if err.kind() == io::ErrorKind::Unsupported => return dir.rename(beside, &dir, name),
        swapped => swapped?,
    }
    if !is_copied(beside, name)? {
        // Another process was quicker: its file is put back.
        swap_inside(&dir, beside, name)?;
        return Err(io::Error::other("it was written to meanwhile; delegate again"));
    }
    dir.remove_file(beside)
}

fn forget(root: &Dir, path: &str, beside: &str) {
    let removed = parent(root, path).and_then(|(dir, _)| dir.remove_file(beside));
    if let Err(err) = removed {
        tracing::warn!(%err, path, "a copy of a shared file was not removed");
    }
}
