//! What no apply writes because it runs outside of every jail: programs and hooks that git's configuration or ours names,
//! what the configuration protects, and repositories, whatever they are called. Blocking.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::path::plain;
use super::{Asked, Instead};
use crate::base::RepoPath;
use crate::jail::Parts;
use crate::service::Provost;

/// Tells which files and folders are held, absolute, or by the ends of their paths; or why that is not known.
pub type Held = Box<dyn Fn() -> Result<Vec<PathBuf>, String> + Send + Sync>;

impl Provost {
    /// Refuses those artifacts of a call that are held.
    pub(super) fn withhold(&self, asked: &mut [Asked]) {
        let root = self.root().place().path().to_path_buf();
        let paths: BTreeSet<RepoPath> =
            asked.iter().filter_map(|it| it.way.as_ref().ok()).map(|it| it.path.clone()).collect();
        if paths.is_empty() {
            return;
        }
        let held = (self.0.applying.bounds().held)();
        let repositories = repositories(&root, &paths);
        for asked in asked {
            let Ok(order) = &asked.way else { continue };
            let why = match &held {
                Err(why) => Some(why.clone()),
                Ok(held) => why_held(&root, held, &order.path),
            };
            let within = || {
                let folder = repositories
                    .iter()
                    .find(|folder| order.path.as_str().starts_with(&format!("{folder}/")))?;
                Some(format!("{folder} is a repository, or becomes one, and git runs what its files name"))
            };
            if let Some(why) = why.or_else(within) {
                asked.way = Err(Instead::Refused(why));
            }
        }
    }
}

/// Sizes of letters make no difference on some systems, nor does what cannot be seen, or dots and spaces at the end.
fn why_held(root: &Path, held: &[PathBuf], path: &RepoPath) -> Option<String> {
    let folded = |path: &Path| path.iter().map(|it| plain(&it.to_string_lossy())).collect::<PathBuf>();
    let (at, below) = (folded(&root.join(path.as_str())), folded(Path::new(path.as_str())));
    let is_it = |held: &&PathBuf| match held.is_absolute() {
        true => at.starts_with(folded(held)),
        false => below.ends_with(folded(held)),
    };
    let name = held.iter().find(is_it)?;
    let name = name.strip_prefix(root).unwrap_or(name).display();
    Some(format!("git or the configuration of Provost runs {name} outside of every jail, or protects it"))
}

/// Folders that git takes for repositories once all of these files are there.
fn repositories(root: &Path, paths: &BTreeSet<RepoPath>) -> Vec<RepoPath> {
    let mut folders: BTreeMap<&str, Parts> = BTreeMap::new();
    for path in paths {
        let path = path.as_str();
        for (end, _) in path.match_indices('/') {
            let name = path[end + 1..].split('/').next().unwrap_or_default();
            folders.entry(&path[..end]).or_default().add(name.as_bytes());
        }
    }
    let is_one = |(folder, mut parts): (&str, Parts)| {
        for name in ["HEAD", "objects", "refs", "commondir"] {
            if std::fs::symlink_metadata(root.join(folder).join(name)).is_ok() {
                parts.add(name.as_bytes());
            }
        }
        parts.are_a_repository().then(|| RepoPath::parse(folder).ok()).flatten()
    };
    folders.into_iter().filter_map(is_one).collect()
}
