//! Finds the files or the folder that make a directory too large for a copy, and names them in the error. Blocking.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::git::has_in_its_index;
use super::prepare::jail_refused;
use provost_base::limits::{COPY_DEPTH_MAX, COPY_ENTRIES_MAX, HEAVY_NAMED_MAX};
use provost_domain::Failure;
use provost_system::walk::{Bound, Bounds, Entry, Folder, Name, Step, Unread, Visitor, walk};
use provost_workspace::copy::NoCopy;

/// The largest files of a directory, and the folder that has the most entries.
#[derive(Debug, Default)]
struct Heavy {
    directory: PathBuf,
    files: Vec<(u64, PathBuf)>,
    folder: Option<(usize, PathBuf)>,
}

/// Returns the failure of a worker that gets no copy: the reason, the largest files or folder, and a command that helps.
pub(super) fn no_copy(why: &NoCopy, root: &Path, directory: &Path) -> Failure {
    let is_large = matches!(why, NoCopy::TooLarge);
    if !is_large && !matches!(why, NoCopy::TooMany | NoCopy::TooManyFiles) {
        return jail_refused(why);
    }
    let mut heavy = Heavy { directory: directory.to_owned(), ..Heavy::default() };
    heavy.look();
    let shown = |path: &Path| provost_workspace::path_text::of_path(path.strip_prefix(root).unwrap_or(path));
    let (named, all) = if is_large {
        let named: Vec<String> =
            heavy.files.iter().map(|(size, path)| format!("{} ({size} bytes)", shown(path))).collect();
        let all: Vec<PathBuf> = heavy.files.into_iter().map(|(_, path)| path).collect();
        (format!("the largest files are {}", named.join(", ")), all)
    } else {
        let Some((count, path)) = heavy.folder else { return jail_refused(why) };
        (format!("most are in {} ({count})", shown(&path)), vec![path])
    };
    jail_refused(format!("{why}; {named}{}", put_right(root, &all, is_large).unwrap_or_default()))
}

/// Returns the command that removes files which git does not know: those are more often a worker's than a person's.
fn put_right(root: &Path, all: &[PathBuf], are_files: bool) -> Option<String> {
    let is_unknown = |it: &&PathBuf| {
        let below = it.strip_prefix(root).ok().and_then(Path::to_str).filter(|it| !it.is_empty());
        below.is_some_and(|it| has_in_its_index(root, it) == Some(false))
    };
    let words: Vec<String> = all.iter().filter(is_unknown).filter_map(|it| typed(it)).collect();
    let command = if are_files { "rm" } else { "rm -r" };
    let words = words.join(" ");
    (!words.is_empty()).then(|| {
        format!("; git knows nothing of these: if a worker has left them, `{command} {words}` puts it right")
    })
}

impl Heavy {
    /// Looks as deep as a copy goes, at twice as many entries.
    fn look(&mut self) {
        let Ok(top) = Dir::open_ambient_dir(&self.directory, ambient_authority()) else { return };
        let bounds = Bounds { entries: 2 * COPY_ENTRIES_MAX, depth: COPY_DEPTH_MAX + 1, until: None };
        // The files found before the bound are named all the same.
        let _seen = walk(self, (top, OsStr::new("")), (), bounds);
    }

    fn file(&mut self, size: u64, path: PathBuf) {
        let at = self.files.partition_point(|it| it.0 >= size);
        if at < HEAVY_NAMED_MAX {
            self.files.insert(at, (size, path));
            self.files.truncate(HEAVY_NAMED_MAX);
        }
    }
}

/// Stops the walk: there are more entries than the bound.
struct Enough;

impl Visitor for Heavy {
    type Here = ();
    type Stop = Enough;

    fn folder(&mut self, folder: Folder<'_>, names: &mut Vec<Name>, _here: &mut ()) -> Result<(), Enough> {
        if self.folder.as_ref().is_none_or(|it| it.0 < names.len()) {
            let is_top = folder.path().is_empty();
            let path = if is_top { self.directory.clone() } else { self.directory.join(folder.path()) };
            self.folder = Some((names.len(), path));
        }
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, Enough> {
        // The metadata is that of the entry itself, and never that of a link's target.
        let Ok(meta) = at.metadata() else { return Ok(Step::Over) };
        if meta.is_file() {
            self.file(meta.len(), self.directory.join(at.path()));
        } else if meta.is_dir()
            && at.name() != ".git"
            && let Ok(inner) = at.open()
        {
            return Ok(Step::Into(inner, ()));
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), Enough> {
        match why {
            Unread::Beyond(Bound::Entries | Bound::Time) => Err(Enough),
            Unread::Beyond(Bound::Depth) | Unread::Failed(_) => Ok(()),
        }
    }
}

/// Returns a path as a shell reads it; `None` for a path that a worker may have chosen to be misread.
pub(super) fn typed(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,:".contains(c);
    let is_harmless = |c: char| c.is_alphanumeric() || " /._-+@,:#()[]{}~=&!$".contains(c);
    match text {
        _ if text.chars().all(is_plain) => Some(text.to_owned()),
        _ if text.chars().all(is_harmless) => Some(format!("'{text}'")),
        _ => None,
    }
}
