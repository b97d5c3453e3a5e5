//! Ways into known folders: where an absolute path enters one of them through a symbolic link that lies outside of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{real_path, shared_real_path};

/// Some folders, and what was looked at on the ways to them.
#[derive(Debug, Default)]
pub struct Ways {
    /// The known folders, by their real paths.
    into: Vec<PathBuf>,
    /// Where folders lead, for paths that share them; `None` for what is not there.
    seen: HashMap<PathBuf, Option<PathBuf>>,
    /// How many folders may still be looked at.
    looks: usize,
}

impl Ways {
    /// Ways into these folders, for which no more than so many folders are looked at.
    pub fn new<P: AsRef<Path>>(into: impl IntoIterator<Item = P>, looks: usize) -> Self {
        // A folder that is not there cannot be entered.
        let into = into.into_iter().filter_map(|it| real_path(it.as_ref()).ok()).collect();
        Self { into, seen: HashMap::new(), looks }
    }

    /// A path as it is behind the point at which it enters one of the folders; `None` for one that enters none.
    ///
    /// Links on the way to that point are followed, but for those that lead each process elsewhere (`/proc/self/cwd`). What is behind it stays as it is, since links in the folder are followed
    /// where files are opened. Blocks for as long as the disk does.
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

    /// Where a folder leads. The folders above it are already resolved in `real`.
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
