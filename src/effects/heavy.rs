//! Finds what makes a directory too large for a copy, for the sentence that says so. Blocking.

use std::path::{Path, PathBuf};

use super::git::has_in_its_index;
use super::prepare::jail_refused;
use provost_base::limits::{COPY_DEPTH_MAX, COPY_ENTRIES_MAX, HEAVY_FOLDERS_MAX, HEAVY_NAMED_MAX};
use provost_domain::Failure;
use provost_workspace::copy::NoCopy;

/// The largest files of a directory, and the folder that has most in it.
#[derive(Debug, Default)]
struct Heavy {
    files: Vec<(u64, PathBuf)>,
    folder: Option<(u64, PathBuf)>,
    left: u64,
}

/// Why a worker does not get its copy, with what is too large in its directory, and what to do about that.
pub(super) fn no_copy(why: &NoCopy, root: &Path, directory: &Path) -> Failure {
    let is_large = matches!(why, NoCopy::TooLarge);
    if !is_large && !matches!(why, NoCopy::TooMany | NoCopy::TooManyFiles) {
        return jail_refused(why);
    }
    let mut heavy = Heavy { left: 2 * COPY_ENTRIES_MAX, ..Heavy::default() };
    heavy.look(directory);
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

/// The command for what git knows nothing of: that is more often a worker's than a person's.
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
    /// Looks as deep as a copy goes, one folder after the other: a worker can have made them deeper than a thread or the
    /// daemon's descriptors reach.
    fn look(&mut self, directory: &Path) {
        let mut folders = vec![(directory.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let mut count = 0;
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(left) = self.left.checked_sub(1) else { return };
                (self.left, count) = (left, count + 1);
                // Of the entry itself, and of nothing that a link leads to.
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_file() {
                    self.file(meta.len(), entry.path());
                } else if meta.is_dir()
                    && entry.file_name() != ".git"
                    && depth < COPY_DEPTH_MAX
                    && folders.len() < HEAVY_FOLDERS_MAX
                {
                    folders.push((entry.path(), depth + 1));
                }
            }
            if self.folder.as_ref().is_none_or(|it| it.0 < count) {
                self.folder = Some((count, folder));
            }
        }
    }

    fn file(&mut self, size: u64, path: PathBuf) {
        let at = self.files.partition_point(|it| it.0 >= size);
        if at < HEAVY_NAMED_MAX {
            self.files.insert(at, (size, path));
            self.files.truncate(HEAVY_NAMED_MAX);
        }
    }
}

/// A path as a shell takes it; `None` for one that a worker may have chosen to be misread.
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
