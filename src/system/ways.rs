//! Ways into known folders: the point at which an absolute path enters one of them through a symbolic link outside of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{real_path, shared_real_path};

/// Some folders, and the folders that were examined on the ways to them.
#[derive(Debug, Default)]
pub struct Ways {
    /// The known folders, by their real paths.
    into: Vec<PathBuf>,
    /// The targets of examined folders, for paths that share them; `None` for a folder that does not exist.
    seen: HashMap<PathBuf, Option<PathBuf>>,
    /// How many folders may still be examined.
    looks: usize,
}

impl Ways {
    /// Makes ways into these folders, for which at most `looks` folders are examined.
    pub fn new<P: AsRef<Path>>(into: impl IntoIterator<Item = P>, looks: usize) -> Self {
        // A folder that does not exist cannot be entered.
        let into = into.into_iter().filter_map(|it| real_path(it.as_ref()).ok()).collect();
        Self { into, seen: HashMap::new(), looks }
    }

    /// Returns a path from the point at which it enters one of the folders; `None` if it enters none.
    ///
    /// Links on the way to that point are followed, except those that lead each process elsewhere (`/proc/self/cwd`). The part behind
    /// it does not change, since links in the folder are followed when files are opened. Blocks for as long as the disk does.
    pub fn entering(&mut self, path: &Path) -> Option<PathBuf> {
        let mut parts = path.components();
        let (mut spelt, mut real) = (PathBuf::new(), PathBuf::new());
        for part in parts.by_ref() {
            spelt.push(part);
            real.push(part);
            real = self.leads(&spelt, real)?;
            if self.into.iter().any(|it| real.starts_with(it)) {
                let rest: Vec<OsString> = parts.map(|it| it.as_os_str().to_owned()).collect();
                return Some(real.iter().map(OsString::from).chain(rest).collect());
            }
        }
        None
    }

    /// Returns the target of a folder. The folders above it are already resolved in `real`.
    fn leads(&mut self, spelt: &Path, real: PathBuf) -> Option<PathBuf> {
        if let Some(known) = self.seen.get(spelt) {
            return known.clone();
        }
        self.looks = self.looks.checked_sub(1)?;
        let is_link = real.symlink_metadata().ok().map(|it| it.is_symlink());
        let found = match is_link {
            Some(true) => shared_real_path(&real).ok(),
            Some(false) => Some(real),
            None => None,
        };
        self.seen.insert(spelt.to_owned(), found.clone());
        found
    }
}
