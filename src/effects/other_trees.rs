//! The paths that git's configuration and ours name in other work trees of a repository, as the same paths in this one.
//!
//! All work trees of a repository share its configuration. A path in it that is absolute, or that counts from the
//! repository's folder, leads into one of them. A file that a worker writes under the same path in another work tree gets there when
//! its branch is merged or checked out, and then runs outside of every jail. Blocking: it asks git, and looks at files.

use std::path::{Path, PathBuf};

use super::git::words_of_configuration;
use super::outside::{Outside, Seeker};
use super::run_outside::{by_git, by_git_and_us};
use provost_base::limits::{OTHER_TREES_MAX, PATH_LEN_MAX};
use provost_system as system;

/// Returns the files that are named in other work trees, as paths of this one; for the folder `root` and all in it.
///
/// # Errors
/// A sentence when git cannot be asked, or if more files are named than are looked at.
pub(super) fn named_in_other_trees(
    root: &Path,
    own: Option<&Path>,
    home: &Path,
    lines: &[String],
) -> Result<Outside, String> {
    let mut found = Outside::default();
    let Some(own) = own else { return Ok(found) };
    let has_repository = |at: &&Path| std::fs::symlink_metadata(at.join(".git")).is_ok();
    let Some(top) = root.ancestors().find(has_repository) else { return Ok(found) };
    for other in other_trees(top, own)? {
        // No worker works there, so the seeker leaves nothing out.
        let mut seeker = Seeker::new(&other, home, Path::new(""));
        let named = by_git(Some(own), &mut seeker)?;
        let named = by_git_and_us(named, &mut seeker, &[], lines);
        if let Some(why) = seeker.over() {
            return Err(why);
        }
        let here = |path: &Path| {
            let below = path.strip_prefix(&other).ok()?;
            let is_own = below.as_os_str().is_empty() || below.starts_with(".git");
            (!is_own).then(|| top.join(below)).filter(|it| it.starts_with(root))
        };
        let told_here = |folder: &Path| {
            let folder = top.join(folder.strip_prefix(&other).ok()?);
            folder.starts_with(root).then_some(folder)
        };
        for (path, missing) in &named {
            if let Some(path) = here(path) {
                found.named.entry(path).or_insert(*missing);
            }
        }
        found.beside.extend(seeker.found.beside.iter().filter_map(|it| here(it)));
        found.told.extend(seeker.found.told.iter().filter_map(|it| here(it)));
        let patterns = seeker.found.patterns.iter();
        found
            .patterns
            .extend(patterns.filter_map(|(folder, pattern)| Some((told_here(folder)?, pattern.clone()))));
        found.ends.extend(seeker.found.ends);
    }
    Ok(found)
}

/// Returns the tops of the other work trees: that of the main one, and those of the linked ones that the configuration names.
fn other_trees(top: &Path, own: &Path) -> Result<Vec<PathBuf>, String> {
    let is_usual = own.file_name().is_some_and(|it| it == ".git");
    let main = own.parent().filter(|it| is_usual && *it != top).map(Path::to_path_buf);
    let linked = linked_trees(own).filter(|(it, _)| it != top).collect::<Vec<_>>();
    let words = match linked.is_empty() {
        true => Vec::new(),
        false => words_of_configuration(top)?,
    };
    let words = String::from_utf8_lossy(&words);
    // All spellings of a path contain the folder's name, unless they go through a link.
    let is_named = |(tree, entry): &(PathBuf, PathBuf)| {
        let has_name = tree.file_name().is_some_and(|it| words.contains(&*it.to_string_lossy()));
        has_name || words.contains("includeif.") || entry.join("config.worktree").symlink_metadata().is_ok()
    };
    let all: Vec<PathBuf> =
        main.into_iter().chain(linked.into_iter().filter(is_named).map(|(it, _)| it)).collect();
    match all.len() > OTHER_TREES_MAX {
        true => Err(format!(
            "git's configuration names files in more than {OTHER_TREES_MAX} work trees of this repository, which are more \
             than are looked at; remove work trees that are not needed: git worktree list"
        )),
        false => Ok(all),
    }
}

/// Returns the tops of linked work trees, each with git's folder for it, as the repository has them on record.
fn linked_trees(own: &Path) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(own.join("worktrees")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let text = system::short_text(&entry.path().join("gitdir"), 2 * PATH_LEN_MAX as u64).ok()?;
        let file = entry.path().join(text.trim_end());
        Some((file.parent()?.canonicalize().ok()?, entry.path()))
    })
}
