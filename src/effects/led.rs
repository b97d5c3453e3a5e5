//! Where symbolic links among settings and hooks lead: what is at their end is as much a setting, and so is every link on
//! the way, which a worker could turn. Blocking.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::prepare::jail_refused;
use crate::base::limits::LINKS_FOLLOWED_MAX;
use crate::domain::Failure;
use crate::jail::{Missing, Place};

/// Paths from the workspace.
#[derive(Debug, Default)]
pub(super) struct Led {
    /// Links on the way.
    links: BTreeSet<PathBuf>,
    /// What is at an end, there or not.
    ends: BTreeSet<PathBuf>,
}

impl Led {
    /// Follows links of a workspace, given by their paths from it. What leads out of it is out of a worker's reach.
    ///
    /// # Errors
    /// A [`Failure`] where a task would work in what a link leads to.
    pub(super) fn by(
        links: impl Iterator<Item = PathBuf>,
        root: &Place,
        directory: &Place,
    ) -> Result<Self, Failure> {
        let mut led = Self::default();
        for link in links {
            let Some(end) = led.follow(root.path(), &link) else { continue };
            if directory.path().starts_with(root.path().join(&end)) {
                return Err(jail_refused(format!(
                    "{} leads to {}, and holds settings that run later, which no worker changes: the task would work in \
                     it; give it another working directory",
                    link.display(),
                    root.path().join(&end).display()
                )));
            }
            led.ends.insert(end);
        }
        Ok(led)
    }

    /// Where one leads; remembers those on the way. `None` for out of the workspace, or round in circles.
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

    /// All of it, as the survey has its paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = Vec<u8>> {
        self.links.iter().chain(&self.ends).map(|path| path.as_os_str().as_encoded_bytes().to_vec())
    }

    /// What is to be read-only, from the workspace. Something stands in for what is missing where a worker could make it in
    /// one step; what it can make with a folder of its own is reported, since a folder is more often made for something else.
    pub(super) fn held(&self, root: &Path) -> impl Iterator<Item = (&Path, Missing)> {
        self.ends.iter().map(move |end| {
            let stands = root.join(end).parent().is_some_and(Path::is_dir);
            (end.as_path(), if stands { Missing::Directory } else { Missing::Leave })
        })
    }
}

fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.components().filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir));
    names.map(|it| it.as_os_str().to_owned())
}
