//! The files that an apply never writes, or shows apart, because they run outside of every jail: programs and hooks that
//! git's or Provost's configuration names, protected paths of the configuration, repositories under any name, and files
//! that settings name. Blocking.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{ApplyItem, Instead};
use crate::Provost;
use provost_base::RepoPath;
use provost_base::later::{self, Row, RunsOutside};
use provost_domain::CollectedArtifact;
use provost_jail::RepositoryParts;
use provost_workspace::artifact_path::{self, plain};
use provost_workspace::change_plan::{FileWrite, Want};

/// Finds the files that run outside of every jail in the checkout at this path, also according to the new contents
/// of these files; the error is the reason why they are not known.
pub type Held = Box<dyn Fn(&Path, &[(RepoPath, String)]) -> Result<RunsOutside, String> + Send + Sync>;

/// The decision about one file of an apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FileDecision {
    /// It is an ordinary file.
    Free,
    /// It runs later, and the approver sees it apart.
    RunsLater,
    /// The apply does not write it, for this reason.
    No(String),
}

impl Provost {
    /// Marks the files of an undo that run later; an undo restores them without a setting. If the daemon cannot
    /// find out which files run later, it marks all.
    pub(super) fn mark_what_runs_later(&self, orders: &mut [FileWrite]) {
        if orders.is_empty() {
            return;
        }
        let root = self.root().place().path().to_path_buf();
        let outside = (self.0.applying.bounds().held)(&root, &[]);
        for order in orders {
            let is_named = match &outside {
                Err(_) => true,
                Ok(outside) => word_of(&root, outside, &order.path, true) != FileDecision::Free,
            };
            order.runs_later = is_named || artifact_path::setting(&order.path).is_some();
        }
    }

    /// Returns, for each file, why a commit in the work tree at this path leaves it out, by the rules for applies;
    /// `None` for a file that is committed.
    pub(crate) fn not_to_be_written(&self, root: &Path, all: &[CollectedArtifact]) -> Vec<Option<String>> {
        let bounds = self.0.applying.bounds();
        let text = root.to_string_lossy();
        let path_of = |it: &CollectedArtifact| {
            let path = artifact_path::read(&text, &it.artifact.path)?;
            artifact_path::denied(bounds.deny.as_ref().map_err(String::clone)?, &path)?;
            bounds.set_apart(&path).map(|()| path)
        };
        let paths: Vec<Result<RepoPath, String>> = all.iter().map(path_of).collect();
        let is_setting = |path: &RepoPath| artifact_path::setting(path).is_some_and(Row::is_read_only);
        let settings = paths.iter().zip(all).filter_map(|(path, it)| {
            let path = path.as_ref().ok().filter(|path| is_setting(path))?;
            Some((path.clone(), it.artifact.content.to_string()))
        });
        let outside = (bounds.held)(root, &settings.collect::<Vec<_>>());
        let coming: BTreeSet<RepoPath> = paths.iter().filter_map(|it| it.as_ref().ok()).cloned().collect();
        let repositories = repositories(root, &coming, &coming);
        let why = |path: &RepoPath, it: &CollectedArtifact| {
            // A new file that a setting names is only reported, as after a run in place.
            let settings = bounds.settings || it.artifact.base_hash.is_none();
            let word = match &outside {
                Err(why) => FileDecision::No(why.clone()),
                Ok(outside) => word_of(root, outside, path, settings),
            };
            let why = if let FileDecision::No(why) = word { Some(why) } else { None };
            why.or_else(|| repositories.iter().find(|it| is_in(path, it)).map(becomes_one))
        };
        let all = paths.into_iter().zip(all);
        all.map(|(path, it)| path.map_or_else(Some, |path| why(&path, it))).collect()
    }

    /// Returns, for each of these paths from the top of the repository, whether the file runs outside of every jail or the configuration
    /// keeps it from being written. The caller says whether each is a link: a link above such a file would replace it.
    ///
    /// # Errors
    /// The reason why that is not known.
    pub(crate) fn are_held(&self, paths: &[(String, bool)]) -> Result<Vec<bool>, String> {
        let bounds = self.0.applying.bounds();
        let root = self.root().place().path().to_path_buf();
        let top = root.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok()).unwrap_or(&root);
        let workspace = root.strip_prefix(top).unwrap_or(Path::new(""));
        let deny = bounds.deny.as_ref().map_err(String::clone)?;
        let outside = (bounds.held)(&root, &[])?;
        let is_denied = |path: &RepoPath| {
            let below = Path::new(path.as_str()).strip_prefix(workspace).ok().and_then(Path::to_str);
            let below = below.and_then(|it| RepoPath::parse(it).ok());
            below.is_some_and(|it| artifact_path::denied(deny, &it).is_err())
        };
        let coming: BTreeSet<RepoPath> = paths.iter().filter_map(|(it, _)| RepoPath::as_is(it)).collect();
        let repositories = repositories(top, &coming, &coming);
        let is_above = |path: &RepoPath| {
            let at = top.join(path.as_str());
            outside.by_git_or_us.iter().chain(&outside.by_settings).any(|it| it.starts_with(&at))
        };
        let is_held = |(path, is_link): &(String, bool)| {
            // Another system may read a text that is no path of ours as any path.
            let Some(path) = RepoPath::as_is(path) else { return true };
            word_of(top, &outside, &path, false) != FileDecision::Free
                || is_denied(&path)
                || artifact_path::guarded(&path).is_some()
                || repositories.iter().any(|it| is_in(&path, it))
                || (*is_link && is_above(&path))
        };
        Ok(paths.iter().map(is_held).collect())
    }

    /// Refuses the artifacts of a call that an apply never writes.
    pub(super) fn withhold(&self, asked: &mut [ApplyItem]) {
        let root = self.root().place().path().to_path_buf();
        let paths: BTreeSet<RepoPath> =
            asked.iter().filter_map(|it| it.way.as_ref().ok()).map(|it| it.path.clone()).collect();
        if paths.is_empty() {
            return;
        }
        let bounds = self.0.applying.bounds();
        let outside = (bounds.held)(&root, &new_settings(asked));
        let repositories = repositories(&root, &paths, &paths);
        for asked in asked {
            let Ok(order) = &mut asked.way else { continue };
            let word = match &outside {
                Err(why) => FileDecision::No(why.clone()),
                Ok(outside) => word_of(&root, outside, &order.path, bounds.settings),
            };
            order.runs_later = word != FileDecision::Free || artifact_path::setting(&order.path).is_some();
            let why = if let FileDecision::No(why) = word { Some(why) } else { None };
            let within = || repositories.iter().find(|it| is_in(&order.path, it)).map(becomes_one);
            if let Some(why) = why.or_else(within) {
                asked.way = Err(Instead::Refused(why));
            }
        }
    }
}

/// Returns the settings among the files of a call, with their new contents.
fn new_settings(asked: &[ApplyItem]) -> Vec<(RepoPath, String)> {
    let orders = asked.iter().filter_map(|it| it.way.as_ref().ok());
    let settings = orders.filter(|it| artifact_path::setting(&it.path).is_some_and(Row::is_read_only));
    let says = |order: &FileWrite| match &order.want {
        Want::Says { bytes, .. } => Some((order.path.clone(), String::from_utf8(bytes.to_vec()).ok()?)),
        Want::Bytes | Want::Kept { .. } | Want::Gone { .. } => None,
    };
    settings.filter_map(says).collect()
}

/// Decides about one file. Names are equal despite case, invisible characters, and dots and spaces at the end, as on some systems.
pub(super) fn word_of(root: &Path, outside: &RunsOutside, path: &RepoPath, settings: bool) -> FileDecision {
    let folded = |path: &Path| path.iter().map(|it| plain(&it.to_string_lossy())).collect::<PathBuf>();
    let (at, below) = (folded(&root.join(path.as_str())), folded(Path::new(path.as_str())));
    let is_it = |held: &&PathBuf| match held.is_absolute() {
        true => at.starts_with(folded(held)),
        false => below.ends_with(folded(held)),
    };
    let shown = |name: &Path| name.strip_prefix(root).unwrap_or(name).display().to_string();
    if let Some(name) = outside.by_git_or_us.iter().find(is_it) {
        return FileDecision::No(format!(
            "git or the configuration of Provost runs {} outside of every jail, or protects it",
            shown(name)
        ));
    }
    let is_there = |it: &Path| it.symlink_metadata().is_ok();
    if let Some(name) = outside.by_settings.iter().find(is_it) {
        // A worker in place could also create a file that does not exist yet, and the report would name it.
        let is_held =
            is_there(if name.is_absolute() { name.clone() } else { root.join(path.as_str()) }.as_path());
        return match is_held && !settings {
            true => FileDecision::No(format!(
                "a setting that runs later runs {}, or leads to it; an apply writes such a file only if \
                 a6s.apply_settings is true",
                shown(name)
            )),
            false => FileDecision::RunsLater,
        };
    }
    let is_beside = || {
        let beside: BTreeSet<Vec<u8>> =
            outside.beside.iter().filter_map(|it| it.strip_prefix(root).ok()).map(bytes_of).collect();
        later::is_module_in(path.as_str().as_bytes(), |folder| beside.contains(folder))
            && !is_there(&root.join(path.as_str()))
    };
    let is_in_a_pattern = |(folder, pattern): &(PathBuf, String)| {
        let name = Path::new(path.as_str());
        let below = folder.strip_prefix(root).ok().and_then(|it| name.strip_prefix(it).ok());
        below.is_some_and(|it| later::fits_pattern(pattern.as_bytes(), &bytes_of(it)))
    };
    let is_told = outside.told.iter().any(|it| is_it(&it)) || outside.patterns.iter().any(is_in_a_pattern);
    if is_told || is_beside() { FileDecision::RunsLater } else { FileDecision::Free }
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// Returns the text for a file in a folder that is a repository.
pub(super) fn becomes_one(folder: &RepoPath) -> String {
    let folder = if folder.is_root() { "the workspace" } else { folder.as_str() };
    format!("{folder} is a repository, or becomes one, and git runs what its files name")
}

fn is_in(path: &RepoPath, folder: &RepoPath) -> bool {
    below(path.as_str(), folder.as_str()).is_some()
}

/// Returns the rest of a path below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// The names that make a folder a repository.
const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Returns the part of a repository that a name means on some system.
pub(super) fn part(name: &str) -> Option<&'static str> {
    let name = plain(name);
    PARTS.into_iter().find(|it| name == plain(it))
}

/// Returns the folders around these files that git takes for repositories once the coming files exist.
pub(super) fn repositories(
    root: &Path,
    coming: &BTreeSet<RepoPath>,
    around: &BTreeSet<RepoPath>,
) -> Vec<RepoPath> {
    // Git takes the workspace itself for a repository only if it has no `.git`.
    let has_git = || std::fs::symlink_metadata(root.join(".git")).is_ok();
    let top = (!around.is_empty() && !has_git()).then_some("");
    let above = |path: &str| path.match_indices('/').map(|(end, _)| end).collect::<Vec<_>>();
    let folders = around.iter().map(RepoPath::as_str);
    let folders = folders.flat_map(|path| above(path).into_iter().map(|end| &path[..end]));
    let mut folders: BTreeMap<&str, RepositoryParts> =
        top.into_iter().chain(folders).map(|it| (it, RepositoryParts::default())).collect();
    for path in coming {
        let path = path.as_str();
        let ends = path.match_indices('/').map(|(end, _)| end);
        for folder in std::iter::once("").chain(ends.map(|end| &path[..end])) {
            let name = below(path, folder).and_then(|rest| rest.split('/').next()).and_then(part);
            if let (Some(parts), Some(name)) = (folders.get_mut(folder), name) {
                parts.add(name.as_bytes());
            }
        }
    }
    let is_one = |(folder, mut parts): (&str, RepositoryParts)| {
        for name in PARTS {
            if std::fs::symlink_metadata(root.join(folder).join(name)).is_ok() {
                parts.add(name.as_bytes());
            }
        }
        parts.are_a_repository().then(|| RepoPath::parse(folder).ok()).flatten()
    };
    folders.into_iter().filter_map(is_one).collect()
}
