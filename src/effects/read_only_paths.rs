//! Finds the paths in a task's directory that stay read-only in addition to the usual ones: repositories, paths that git's
//! configuration names, settings that run later, and paths that our configuration adds. Blocking.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::git::{Named, Unreadable, has_in_its_index, submodules};
use super::heavy::typed;
use super::link_targets::LinkTargets;
use super::other_trees::named_in_other_trees;
use super::outside::Seeker;
use super::prepare::jail_refused;
use super::run_outside::{by_git, by_git_and_us, by_repository, by_settings, home, own_repository};
use super::scan_report::Before;
use super::sockets::{Surroundings, surroundings};
use provost_base::RepoPath;
use provost_base::later::{self, GitHooks};
use provost_base::limits::{REPOSITORIES_MAX, TRACKED_LEVELS_MAX, UNSHARE_LOOKS_MAX};
use provost_domain::{Failure, Tier};
use provost_jail::{
    Draft, Git, Missing, Profile, ReadOnlyPath, Repositories, RepositoryParts, ResolvedPath,
    is_repository_name,
};
use provost_workspace::integrity_scan::Ground;

/// The guards for the jail, and the workspace as it was.
pub(super) struct ReadOnlyPaths {
    guards: Vec<ReadOnlyPath>,
    /// Local sockets in the part of the workspace that the worker sees.
    sockets: Vec<PathBuf>,
    /// Folders in that part that cannot be listed, in which there may be more sockets.
    shut: Vec<PathBuf>,
    repositories: Option<Repositories>,
    hooks: GitHooks,
    before: Before,
}

impl ReadOnlyPaths {
    /// Hands the findings to the jail's plan, and returns the state before the run for comparison.
    pub(super) fn over(self, draft: &mut Draft) -> Before {
        draft.guards = self.guards;
        draft.sockets = self.sockets;
        draft.hidden.extend(self.shut);
        draft.repositories = self.repositories;
        draft.hooks = self.hooks;
        self.before
    }
}

/// The purpose of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlanPurpose {
    /// For a program that is started.
    InEarnest,
    /// For a plan that is shown: no file of the directory is touched.
    ToShow,
}

/// Finds the paths to protect, and scans the workspace.
///
/// # Errors
/// A [`Failure`] if something cannot be protected: the worker does not run then.
pub(super) fn shield(
    profile: &Profile,
    tier: Tier,
    (root, directory): (&ResolvedPath, &ResolvedPath),
    trying: PlanPurpose,
) -> Result<ReadOnlyPaths, Failure> {
    let home = home();
    let mut seeker = Seeker::new(root.path(), &home, directory.path());
    let own = own_repository(root.path());
    let (hooks, named) =
        named_by_configuration(profile, own.as_deref(), &home, &mut seeker).map_err(jail_refused)?;
    let prefix = directory.path().strip_prefix(root.path()).unwrap_or(Path::new(""));
    if later::row_over(prefix.as_os_str().as_encoded_bytes()).is_some_and(later::Row::is_read_only) {
        let why =
            "holds settings that run later, which no worker changes; give the task another working directory";
        return Err(jail_refused(format!("{} {why}", directory.path().display())));
    }
    let (mut guards, protected) = guards_of(&named, root, directory)?;
    // Changes that a jail cannot prevent, or that this worker may make, have to be reported in full.
    let whole_repositories = tier != Tier::Ns || profile.git == Git::Write;
    let mut ground = Ground {
        root: root.clone(),
        directory: directory.clone(),
        protected,
        whole_repositories,
        ..Ground::of_nothing(root)
    };
    let around = around(root, directory)?;
    let looked = |ground: &Ground| match trying {
        PlanPurpose::InEarnest => look_at_what_is_its_own(ground, tier == Tier::Ns),
        PlanPurpose::ToShow => Ok((Before::look(ground.clone()), BTreeSet::new())),
    };
    seeker.found.reported_by(&mut ground);
    let (mut before, mut alone) = looked(&ground)?;
    let led = led(&before, &around, root, directory)?;
    let (known, more_guards) = guard_repositories(&before, root, directory, &mut seeker)?;
    guards.extend(more_guards);
    guards.extend(guard_what_others_name(&around, root, directory, &mut seeker)?);
    by_settings(&before, &around, &mut seeker);
    if let Some(why) = seeker.over() {
        return Err(jail_refused(why));
    }
    let (more_guards, found) = guards_of(&seeker.found.named, root, directory)?;
    guards.extend(more_guards);
    let mut more = ground.clone();
    more.protected.extend(found);
    more.protected.extend(led.paths());
    seeker.found.reported_by(&mut more);
    if more != ground {
        // The targets of links matter as well.
        (before, alone) = looked(&more)?;
    }
    // A worker may have chosen these names: a path that no mount can hold is reported, since refusing it would refuse all later workers.
    for (path, missing) in led.held(root.path()) {
        if let Ok(below) = root.path().join(path).strip_prefix(directory.path()) {
            guards.extend(guard(below, missing));
        }
    }
    // Paths outside of the task's directory are out of its reach.
    let below = |path| Path::new(path).strip_prefix(prefix).ok().filter(|it| !it.as_os_str().is_empty());
    guards.extend(before.held().filter_map(|path| guard(below(path)?, Missing::Leave).ok()));
    for path in alone.iter().filter_map(|path| below(path)) {
        guards.push(guard(path, Missing::Leave)?);
    }
    let own = own.filter(|_| tier == Tier::Ns);
    let repositories = before.expect(Repositories { known, own });
    let sockets = sockets(&before, &around, root)?;
    let shut = if tier == Tier::Ns { shut(&before, &around, root)? } else { Vec::new() };
    Ok(ReadOnlyPaths { guards, sockets, shut, repositories, hooks, before })
}

/// Returns the paths that git's configuration and ours name, in this work tree and, by the same paths, in others of the
/// repository; and whether git runs hooks here.
fn named_by_configuration(
    profile: &Profile,
    own: Option<&Path>,
    home: &Path,
    seeker: &mut Seeker<'_>,
) -> Result<(GitHooks, Named), String> {
    let by_git = by_git(own, seeker)?;
    let hooks = hooks_of(own, &by_git);
    let mut named = by_git_and_us(by_git, seeker, &profile.protect, &profile.run_outside);
    let elsewhere = named_in_other_trees(seeker.root, own, home, &profile.run_outside)?;
    seeker.found.takes_over(elsewhere, &mut named);
    Ok((hooks, named))
}

/// Makes guards for all existing repositories, and for the places of submodules. Returns the
/// repositories and the guards.
fn guard_repositories(
    before: &Before,
    root: &ResolvedPath,
    directory: &ResolvedPath,
    seeker: &mut Seeker<'_>,
) -> Result<(BTreeSet<PathBuf>, Vec<ReadOnlyPath>), Failure> {
    let mut guards = Vec::new();
    let known: BTreeSet<PathBuf> = before.repositories().collect();
    if known.contains(directory.path()) || is_in_a_repository(root, directory) {
        return Err(jail_refused(format!(
            "{} lies in a repository itself, of which git runs what its files name; give the task another working \
             directory",
            directory.path().display()
        )));
    }
    if known.len() > REPOSITORIES_MAX {
        return Err(jail_refused(format!(
            "there are more than {REPOSITORIES_MAX} repositories in {}, too many to be protected one by one: let the \
             worker work in a copy (copy = true), or delegate for a folder of it",
            directory.path().display()
        )));
    }
    let top = directory.path().join(".git");
    for repository in known.iter().filter(|it| **it != top) {
        let below = repository.strip_prefix(directory.path()).unwrap_or(repository);
        guards.push(guard(below, Missing::Directory)?);
        let named = by_repository(repository, seeker).map_err(jail_refused)?;
        guards.extend(guards_of(&named, root, directory)?.0);
    }
    guard_submodules(&known, root, directory, &mut guards)?;
    Ok((known, guards))
}

/// Makes guards for the paths in a task's directory that repositories around it name.
fn guard_what_others_name(
    around: &Surroundings,
    root: &ResolvedPath,
    directory: &ResolvedPath,
    seeker: &mut Seeker<'_>,
) -> Result<Vec<ReadOnlyPath>, Failure> {
    let mut guards = Vec::new();
    let all = around.repositories.iter().filter_map(|path| std::str::from_utf8(path).ok());
    for path in all.filter(|path| *path != ".git") {
        let named = by_repository(&root.path().join(path), seeker).map_err(jail_refused)?;
        // A folder that the task would work in is skipped: the hooks of another repository must not refuse the task.
        let named = named.into_iter().filter(|(path, _)| !directory.path().starts_with(path)).collect();
        guards.extend(guards_of(&named, root, directory)?.0);
    }
    Ok(guards)
}

/// Makes guards for the places of submodules: those of the workspace, and those of the repositories in it.
fn guard_submodules(
    known: &BTreeSet<PathBuf>,
    root: &ResolvedPath,
    directory: &ResolvedPath,
    guards: &mut Vec<ReadOnlyPath>,
) -> Result<(), Failure> {
    let own = root.path().ancestors().find(|at| has_repository(at));
    let inner = known
        .iter()
        .filter(|it| it.file_name().is_some_and(|name| is_repository_name(name.as_encoded_bytes())));
    let inner = inner.filter_map(|it| it.parent()).filter(|it| Some(*it) != own);
    let all = own.map(|it| (it, Unreadable::IsRefused)).into_iter();
    for (work_tree, unreadable) in all.chain(inner.map(|it| (it, Unreadable::RunsNothing))) {
        for place in submodules(root.path(), work_tree, unreadable).map_err(jail_refused)? {
            let at = work_tree.join(place).join(".git");
            if let Ok(below) = at.strip_prefix(directory.path())
                && !known.contains(&at)
                && no_link_leads_to(directory.path(), below)
            {
                guards.push(guard(below, Missing::Directory)?);
            }
        }
    }
    Ok(())
}

/// Scans the workspace around a task's directory.
fn around(root: &ResolvedPath, directory: &ResolvedPath) -> Result<Surroundings, Failure> {
    if directory == root {
        return Ok(Surroundings::default());
    }
    surroundings(root, directory).map_err(|why| {
        jail_refused(format!(
            "{why}, so it is not known which local sockets of yours the worker could connect to, and which links lead into \
             its directory; let the worker work in a copy (copy = true)"
        ))
    })
}

/// Returns the targets of links among settings, in the task's directory and around it.
fn led(
    before: &Before,
    around: &Surroundings,
    root: &ResolvedPath,
    directory: &ResolvedPath,
) -> Result<LinkTargets, Failure> {
    let links = before.links().chain(around.links.iter().map(Vec::as_slice));
    // A path that is no text cannot be held by a mount, and a change of it is reported.
    let links = links.filter_map(|it| std::str::from_utf8(it).ok()).map(PathBuf::from);
    LinkTargets::by(links, root, directory)
}

/// Returns the local sockets in the part of the workspace that a worker sees.
fn sockets(before: &Before, around: &Surroundings, root: &ResolvedPath) -> Result<Vec<PathBuf>, Failure> {
    let mut sockets = Vec::new();
    for socket in before.sockets().chain(around.sockets.iter().map(Vec::as_slice)) {
        let socket = std::str::from_utf8(socket).map_err(|_| {
            let shown = String::from_utf8_lossy(socket);
            jail_refused(format!(
                "{shown:?} is a local socket, and cannot be covered: its name is not text; remove it"
            ))
        })?;
        sockets.push(root.path().join(socket));
    }
    Ok(sockets)
}

/// Returns the folders that cannot be listed in the part of the workspace that a worker sees. The worker sees them empty, since it
/// could connect to a socket in such a folder by a name that it knows.
fn shut(before: &Before, around: &Surroundings, root: &ResolvedPath) -> Result<Vec<PathBuf>, Failure> {
    let all = before.shut().chain(around.shut.iter().map(Vec::as_slice));
    all.map(|folder| {
        let text = std::str::from_utf8(folder).map_err(|_| {
            let shown = String::from_utf8_lossy(folder);
            jail_refused(format!(
                "{shown:?} is a folder that cannot be listed, and cannot be covered: its name is not text; make it \
                 readable, or remove it"
            ))
        })?;
        Ok(root.path().join(text))
    })
    .collect()
}

/// Checks whether git runs hooks in a workspace: a file among its hooks that is no sample. A folder that cannot be read counts, too.
fn hooks_of(own: Option<&Path>, named: &Named) -> GitHooks {
    let usual = own.map(|it| it.join("hooks"));
    // Of the named paths, folders are those in which git looks for hooks.
    let folders =
        named.iter().filter(|(_, missing)| **missing == Missing::Directory).map(|(path, _)| path.clone());
    let is_in_use = |folder: PathBuf| match std::fs::read_dir(folder) {
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(entries) => entries.into_iter().any(|entry| {
            entry.map_or(true, |entry| !entry.file_name().as_encoded_bytes().ends_with(b".sample"))
        }),
    };
    if usual.into_iter().chain(folders).any(is_in_use) { GitHooks::Installed } else { GitHooks::None }
}

/// Returns guards for the paths that lie in the directory, and the paths that matter to the report, from the workspace.
fn guards_of(
    named: &Named,
    root: &ResolvedPath,
    directory: &ResolvedPath,
) -> Result<(Vec<ReadOnlyPath>, BTreeSet<Vec<u8>>), Failure> {
    let (mut guards, mut protected) = (Vec::new(), BTreeSet::new());
    for (path, missing) in named {
        // Paths elsewhere are out of a worker's reach.
        let Ok(from_root) = path.strip_prefix(root.path()) else { continue };
        if directory.path().starts_with(path) {
            let why = "is protected, by `protect` or git's core.hooksPath, and the task would work in it; \
                       give it another working directory";
            return Err(jail_refused(format!("{} {why}", path.display())));
        }
        if !from_root.starts_with(".git") {
            protected.insert(from_root.as_os_str().as_encoded_bytes().to_vec());
        }
        if let Ok(below) = path.strip_prefix(directory.path()) {
            guards.push(guard(below, *missing)?);
        }
    }
    Ok((guards, protected))
}

/// Checks whether a directory, or one around it up to the workspace, is a repository's own, by its name
/// or its content.
fn is_in_a_repository(root: &ResolvedPath, directory: &ResolvedPath) -> bool {
    let own = directory.path().ancestors().take_while(|at| *at != root.path());
    own.into_iter().any(|at| {
        let mut parts = RepositoryParts::default();
        for name in ["HEAD", "objects", "refs", "commondir"] {
            if std::fs::symlink_metadata(at.join(name)).is_ok() {
                parts.add(name.as_bytes());
            }
        }
        let is_named = at.file_name().is_some_and(|name| is_repository_name(name.as_encoded_bytes()));
        is_named || parts.are_a_repository()
    })
}

fn has_repository(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(".git")).is_ok()
}

/// Checks that no link lies on the way: a placeholder cannot be put behind a link, which a worker may change anyway.
fn no_link_leads_to(directory: &Path, below: &Path) -> bool {
    let mut at = directory.to_path_buf();
    below.iter().all(|part| {
        at.push(part);
        std::fs::symlink_metadata(&at).map_or(true, |found| !found.is_symlink())
    })
}

/// Scans until no file of the directory is shared with a path outside, and copies shared files. Returns the files that stay
/// read-only instead.
fn look_at_what_is_its_own(ground: &Ground, mounts: bool) -> Result<(Before, BTreeSet<String>), Failure> {
    let mut held = BTreeSet::new();
    for _ in 0..UNSHARE_LOOKS_MAX {
        let before = Before::look(ground.clone());
        if let Some(why) = before.incomplete() {
            return Err(jail_refused(format!(
                "{why}, so it is not known which of its files have other names outside, where the worker would change \
                 them too; {}",
                way_out_of(&before, ground.root.path())
            )));
        }
        let unshared = before.unshare(mounts, &held).map_err(jail_refused)?;
        held.extend(unshared.held);
        if unshared.made == 0 {
            return Ok((before, held));
        }
        tracing::info!(files = unshared.made, "files with names outside of a task's directory were copied");
    }
    let why = "files of the task's directory are given names outside of it all the time, as an installer of packages \
               does; delegate again when that is over";
    Err(jail_refused(why))
}

/// Returns the advice for a workspace that is too large to scan. A folder that git does not know is more often a worker's
/// than a person's.
fn way_out_of(before: &Before, root: &Path) -> String {
    const ELSE: &str =
        "delegate for a smaller directory of it, or let the worker work in a copy (copy = true)";
    let left = || {
        let ends = before.stopped_at()?.match_indices('/').map(|(end, _)| end).take(TRACKED_LEVELS_MAX);
        let at = before.stopped_at()?;
        let mut folders = ends.chain([at.len()]).map(|end| &at[..end]);
        let left = folders.find_map(|folder| match has_in_its_index(root, folder) {
            Some(true) => None,
            known => Some(known.map(|_| folder)),
        })??;
        let name = root.file_name()?.to_str()?;
        let to = root.with_file_name(format!("{name}.{}", left.replace('/', "-")));
        let command = format!("mv {} {}", typed(&root.join(left))?, typed(&to)?);
        Some(format!(
            "it is in {left}, of which git knows nothing: if a worker has left that, `{command}` puts it right; else "
        ))
    };
    left().unwrap_or_default() + ELSE
}

fn guard(below: &Path, missing: Missing) -> Result<ReadOnlyPath, Failure> {
    let refused = |why: String| jail_refused(format!("{below:?} is to be protected and cannot be: it {why}"));
    let text = below.to_str().ok_or_else(|| refused("is not text".into()))?;
    let path = RepoPath::parse(text).map_err(|err| refused(err.to_string()))?;
    if path.as_str() != text {
        return Err(refused(format!("would be taken for {:?}; give it another name", path.as_str())));
    }
    Ok(ReadOnlyPath { path, missing })
}
