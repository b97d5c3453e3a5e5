//! Lists all files that run outside of every jail because a path in a workspace names them: git's
//! configuration and hooks, ours, settings that are read-only for workers, and links among them. The jail
//! makes the files of this list read-only where a worker works in place; applies check the list before they write
//! a worker's files. Blocking: it asks git, and looks at files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::git::{Named, Unreadable, named_by_git};
use super::link_targets::LinkTargets;
use super::other_trees::named_in_other_trees;
use super::outside::{Outside, Seeker};
use super::scan_report::Before;
use super::sockets::Surroundings;
use provost_base::RepoPath;
use provost_base::later::{self, Row, RunsOutside, Whose};
use provost_base::limits::{PATH_LEN_MAX, SETTINGS_READ_MAX};
use provost_jail::{Missing, find_place, is_repository_name};
use provost_system as system;
use provost_workspace::integrity_scan::Ground;

/// Returns the user's home folder, for lines that name it.
pub(super) fn home() -> PathBuf {
    std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default()
}

/// Returns the files that the configuration of a workspace's own repository and its hooks name.
///
/// # Errors
/// A sentence when git cannot be asked.
pub(super) fn by_git(own: Option<&Path>, seeker: &mut Seeker<'_>) -> Result<Named, String> {
    let named = named_by_git(seeker.root, (Unreadable::IsRefused, false), seeker)?;
    if let Some(own) = own {
        let root = seeker.root;
        seeker.hooks_in(&own.join("hooks"), root);
    }
    Ok(named)
}

/// Adds the files that Provost's configuration names and protects.
pub(super) fn by_git_and_us(
    mut named: Named,
    seeker: &mut Seeker<'_>,
    protect: &[RepoPath],
    lines: &[String],
) -> Named {
    named.extend(protect.iter().map(|path| (seeker.root.join(path.as_str()), Missing::Directory)));
    let root = seeker.root;
    lines.iter().for_each(|line| seeker.line(line, root));
    for (path, missing) in &seeker.found.named {
        named.entry(path.clone()).or_insert(*missing);
    }
    named
}

/// Returns the files that the configuration of another repository in the workspace and its hooks name.
///
/// # Errors
/// A sentence when git cannot be asked.
pub(super) fn by_repository(repository: &Path, seeker: &mut Seeker<'_>) -> Result<Named, String> {
    let is_named = repository.file_name().is_some_and(|name| is_repository_name(name.as_encoded_bytes()));
    let at = if is_named { repository.parent() } else { Some(repository) };
    let Some(at) = at.filter(|it| it.is_dir()) else { return Ok(Named::new()) };
    let named = named_by_git(at, (Unreadable::RunsNothing, !is_named), seeker)?;
    seeker.hooks_in(&repository.join("hooks"), at);
    Ok(named)
}

/// Finds the files that read-only settings name: settings of a directory, and those around it. Settings near the top come
/// first: a worker can make as many below as it likes.
pub(super) fn by_settings(before: &Before, around: &Surroundings, seeker: &mut Seeker<'_>) {
    let all = before.settings().chain(around.settings.iter().map(Vec::as_slice));
    let mut all: Vec<(&str, &Row)> =
        all.filter_map(|path| Some((std::str::from_utf8(path).ok()?, row_of_settings(path)?))).collect();
    all.sort_by_key(|(path, _)| path.matches('/').count());
    for (path, row) in all.iter().take(SETTINGS_READ_MAX) {
        seeker.settings(&seeker.root.join(path), row);
    }
    if let Some((path, _)) = all.get(SETTINGS_READ_MAX) {
        seeker.is_too_much(&seeker.root.join(path));
    }
}

/// Returns the row of a settings file, by its path from the workspace, if its contents count: it is read-only for workers, and
/// no package manager has put it there. For version control, only its configuration counts.
pub(super) fn row_of_settings(path: &[u8]) -> Option<&'static Row> {
    const CONFIGURATION: [&[u8]; 5] = [b"hgrc", b"config", b"config.toml", b"defaults", b"hgrc-not-shared"];
    let row = later::row_over(path).filter(|it| it.is_read_only())?;
    let name = path.rsplit(|it| *it == b'/').next().unwrap_or_default();
    let counts = row.whose != Whose::VersionControl || CONFIGURATION.contains(&name);
    let is_fetched = path.split(|it| *it == b'/').any(later::is_fetched);
    (counts && !is_fetched).then_some(row)
}

/// Returns the whole list of a workspace, for applies of workers' changes; with the files that new settings name. `new` has the
/// paths and the texts of those settings.
///
/// # Errors
/// A sentence if the list cannot be completed.
pub fn runs_outside(
    root: &Path,
    protect: &[RepoPath],
    lines: &[String],
    new: &[(RepoPath, String)],
) -> Result<RunsOutside, String> {
    let home = home();
    // No worker works in this workspace here, so the seeker leaves nothing out.
    let mut seeker = Seeker::new(root, &home, Path::new(""));
    let own = own_repository(root);
    let named = by_git(own.as_deref(), &mut seeker)?;
    let mut named = by_git_and_us(named, &mut seeker, protect, lines);
    seeker.found.takes_over(named_in_other_trees(root, own.as_deref(), &home, lines)?, &mut named);
    let place = find_place(root).map_err(|err| err.to_string())?;
    let before = Before::look_for_an_apply(&Ground::of_nothing(&place))?;
    let top = root.join(".git");
    for repository in before.repositories().filter(|it| *it != top).collect::<BTreeSet<_>>() {
        for (path, missing) in by_repository(&repository, &mut seeker)? {
            named.entry(path).or_insert(missing);
        }
    }
    for (path, missing) in &seeker.found.named {
        named.entry(path.clone()).or_insert(*missing);
    }
    let mut by_git_or_us: BTreeSet<PathBuf> =
        named.into_keys().chain(seeker.found.ends.iter().map(PathBuf::from)).collect();
    by_git_or_us.extend(behind_links(&by_git_or_us, root));
    by_settings(&before, &Surroundings::default(), &mut seeker);
    for (path, text) in new {
        if let Some(row) = row_of_settings(path.as_str().as_bytes()) {
            seeker.settings_text(text, &root.join(path.as_str()), row);
        }
    }
    if let Some(why) = seeker.over() {
        return Err(why);
    }
    let links = before.links().filter_map(|it| std::str::from_utf8(it).ok()).map(PathBuf::from);
    let led = LinkTargets::of(links, root);
    let Outside { named, ends, beside, mut told, patterns } = seeker.found;
    told.extend(behind_links(&instructions(root), root));
    let by_settings = named.into_keys().chain(ends.into_iter().map(PathBuf::from));
    // A link to the whole workspace holds no file in particular.
    let ends = led.ends().filter(|it| !it.as_os_str().is_empty()).map(|it| root.join(it));
    Ok(RunsOutside {
        by_settings: by_settings.chain(ends).filter(|it| !by_git_or_us.contains(it)).collect(),
        by_git_or_us: by_git_or_us.into_iter().collect(),
        told: told.into_iter().collect(),
        beside: beside.into_iter().collect(),
        patterns: patterns.into_iter().collect(),
    })
}

/// Returns the links in the workspace that lie on the way to a named path or in a named folder, and the places to which they
/// lead: a write there is a write to the named file.
fn behind_links(named: &BTreeSet<PathBuf>, root: &Path) -> BTreeSet<PathBuf> {
    let from_root = |it: &Path| it.strip_prefix(root).ok().map(Path::to_path_buf);
    let within = named.iter().filter_map(|it| from_root(it)).flat_map(|at| {
        let entries =
            std::fs::read_dir(root.join(&at)).into_iter().flatten().flatten().take(SETTINGS_READ_MAX);
        let links = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_symlink()));
        let below: Vec<PathBuf> = links.map(|it| at.join(it.file_name())).collect();
        std::iter::once(at).chain(below)
    });
    let found = LinkTargets::of(within, root);
    let all = found.ends().chain(found.on_the_way()).filter(|it| !it.as_os_str().is_empty());
    all.map(|it| root.join(it)).filter(|it| !named.contains(it)).collect()
}

/// Returns the links at the top in the place of files with instructions for agents.
fn instructions(root: &Path) -> BTreeSet<PathBuf> {
    let names = later::ROWS.iter().map(|it| it.pattern).filter(|it| !it.contains(['*', '/']));
    let is_link = |it: &PathBuf| it.symlink_metadata().is_ok_and(|it| it.is_symlink());
    names.map(|it| root.join(it)).filter(is_link).collect()
}

/// Returns the folder of the repository that a workspace belongs to, also if the workspace is one of its work trees.
pub(super) fn own_repository(root: &Path) -> Option<PathBuf> {
    let has_repository = |at: &&Path| std::fs::symlink_metadata(at.join(".git")).is_ok();
    let at = root.ancestors().find(has_repository)?.join(".git");
    if std::fs::symlink_metadata(&at).ok()?.is_dir() {
        return Some(at);
    }
    let text = system::short_text(&at, 2 * PATH_LEN_MAX as u64).ok()?;
    let entry = at.parent()?.join(text.trim_end().strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let trees = entry.parent().filter(|it| it.ends_with("worktrees"))?;
    trees.parent().map(Path::to_path_buf)
}
