//! What stays read-only in a task's directory besides the usual: what git's configuration names, links of
//! submodules, and what our configuration adds. Blocking.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::git::named_by_git;
use super::handoff::Before;
use super::prepare::jail_refused;
use super::survey::Ground;
use crate::base::RepoPath;
use crate::base::limits::GIT_LINKS_MAX;
use crate::domain::Failure;
use crate::jail::{Guard, Missing, Place};

/// Guards for the jail, and the workspace as it was.
pub(super) struct Shield {
    pub(super) guards: Vec<Guard>,
    pub(super) before: Before,
}

/// Finds out what is to be protected and looks around.
///
/// # Errors
/// A [`Failure`] when something cannot be protected: then the worker does not run.
pub(super) fn shield(protect: &[RepoPath], root: &Place, directory: &Place) -> Result<Shield, Failure> {
    let mut named = named_by_git(root.path()).map_err(jail_refused)?;
    named.extend(protect.iter().map(|path| (root.path().join(path.as_str()), Missing::Directory)));
    let (mut guards, mut protected) = (Vec::new(), BTreeSet::new());
    for (path, missing) in named {
        // What lies elsewhere is out of a worker's reach.
        let Ok(from_root) = path.strip_prefix(root.path()) else { continue };
        if directory.path().starts_with(&path) {
            let why = "is protected, by `protect` or git's core.hooksPath, and the task would work in it; \
                       give it another working directory";
            return Err(jail_refused(format!("{} {why}", path.display())));
        }
        if !from_root.starts_with(".git") {
            protected.insert(from_root.as_os_str().as_encoded_bytes().to_vec());
        }
        if let Ok(below) = path.strip_prefix(directory.path()) {
            guards.push(guard(below, missing)?);
        }
    }
    let ground = Ground { root: root.clone(), directory: directory.clone(), protected };
    let before = Before::look(ground);
    let prefix = directory.path().strip_prefix(root.path()).unwrap_or(Path::new(""));
    for link in before.git_links().take(GIT_LINKS_MAX) {
        let link = std::str::from_utf8(link).map(PathBuf::from).map_err(|_| {
            let shown = String::from_utf8_lossy(link);
            jail_refused(format!("{shown:?} is to be protected and cannot be: it is not text"))
        })?;
        guards.push(guard(link.strip_prefix(prefix).unwrap_or(&link), Missing::Leave)?);
    }
    Ok(Shield { guards, before })
}

fn guard(below: &Path, missing: Missing) -> Result<Guard, Failure> {
    let refused = |why: String| jail_refused(format!("{below:?} is to be protected and cannot be: it {why}"));
    let text = below.to_str().ok_or_else(|| refused("is not text".into()))?;
    let path = RepoPath::parse(text).map_err(|err| refused(err.to_string()))?;
    Ok(Guard { path, missing })
}
