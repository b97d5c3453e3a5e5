//! Finds the targets of symbolic links among settings and hooks. A target counts as a setting, and so does every link
//! on the way, which a worker could change. Blocking.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::prepare::jail_refused;
use provost_base::limits::LINKS_FOLLOWED_MAX;
use provost_domain::Failure;
use provost_jail::{Missing, ResolvedPath};

/// Links and their targets, as paths from the workspace.
#[derive(Debug, Default)]
pub(super) struct LinkTargets {
    /// Links on the way.
    links: BTreeSet<PathBuf>,
    /// The targets, existing or not, each with one of the links that lead to it.
    ends: BTreeMap<PathBuf, PathBuf>,
}

impl LinkTargets {
    /// Follows links of a workspace, given by their paths from it. A target outside of it is out of a worker's reach.
    pub(super) fn of(links: impl Iterator<Item = PathBuf>, root: &Path) -> Self {
        let mut led = Self::default();
        for link in links {
            if let Some(end) = led.follow(root, &link) {
                led.ends.entry(end).or_insert(link);
            }
        }
        led
    }

    /// Follows the links for a task.
    ///
    /// # Errors
    /// A [`Failure`] if the task would work in the target of a link.
    pub(super) fn by(
        links: impl Iterator<Item = PathBuf>,
        root: &ResolvedPath,
        directory: &ResolvedPath,
    ) -> Result<Self, Failure> {
        let led = Self::of(links, root.path());
        let is_worked_in = |end: &Path| directory.path().starts_with(root.path().join(end));
        match led.ends.iter().find(|(end, _)| is_worked_in(end)) {
            None => Ok(led),
            Some((end, link)) => Err(jail_refused(format!(
                "{} leads to {}, and holds settings that run later, which no worker changes: the task would work in \
                 it; give it another working directory",
                link.display(),
                root.path().join(end).display()
            ))),
        }
    }

    /// Returns the target of a link, and remembers the links on the way. `None` for a target outside of the workspace, or for a circle.
    fn follow(&mut self, root: &Path, link: &Path) -> Option<PathBuf> {
        let (mut at, mut hops) = (PathBuf::new(), 0);
        let mut ahead: VecDeque<OsString> = names_of(link).collect();
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                if !at.pop() {
                    return None;
                }
                continue;
            }
            at.push(name);
            let Ok(target) = root.join(&at).read_link() else { continue };
            hops += 1;
            // Links may lead in a circle.
            if hops > LINKS_FOLLOWED_MAX {
                return None;
            }
            if at != link {
                self.links.insert(at.clone());
            }
            at.pop();
            let below = match target.is_absolute() {
                true => {
                    at = PathBuf::new();
                    target.strip_prefix(root).ok()?
                }
                false => &target,
            };
            names_of(below).collect::<Vec<_>>().into_iter().rev().for_each(|it| ahead.push_front(it));
        }
        Some(at)
    }

    /// Returns all links and targets, in the form in which the survey has its paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = Vec<u8>> {
        self.links.iter().chain(self.ends.keys()).map(|path| path.as_os_str().as_encoded_bytes().to_vec())
    }

    /// Returns the targets, from the workspace.
    pub(super) fn ends(&self) -> impl Iterator<Item = &Path> {
        self.ends.keys().map(PathBuf::as_path)
    }

    /// Returns the links on the way to the targets, from the workspace.
    pub(super) fn on_the_way(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().map(PathBuf::as_path)
    }

    /// Returns the paths that have to be read-only, from the workspace. A missing target gets a placeholder if a worker could make it in
    /// one step; a target in a missing folder is reported instead, since such a folder is more often made for something else.
    pub(super) fn held(&self, root: &Path) -> impl Iterator<Item = (&Path, Missing)> {
        self.ends.keys().map(move |end| {
            let stands = root.join(end).parent().is_some_and(Path::is_dir);
            (end.as_path(), if stands { Missing::Directory } else { Missing::Leave })
        })
    }
}

fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.components().filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir));
    names.map(|it| it.as_os_str().to_owned())
}
