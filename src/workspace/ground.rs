//! The parts of a workspace that a scan covers in addition to the whole.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::integrity_scan::Ground;
use provost_jail::ResolvedPath;

impl Ground {
    /// Makes a ground of a whole workspace, without further paths that matter.
    pub fn of_nothing(root: &ResolvedPath) -> Self {
        Self {
            root: root.clone(),
            directory: root.clone(),
            protected: BTreeSet::new(),
            whole_repositories: false,
            ends: BTreeSet::new(),
            beside: BTreeSet::new(),
            patterns: BTreeSet::new(),
        }
    }

    /// Adds files, as absolute paths, whose changes are reported although no mount holds them.
    pub fn report_files<'a>(&mut self, files: impl IntoIterator<Item = &'a PathBuf>) {
        let below = files.into_iter().filter_map(|it| from_root(&self.root, it));
        self.protected.extend(below);
    }

    /// Adds folders, as absolute paths, in which new modules of an interpreter are reported.
    pub fn report_modules_in<'a>(&mut self, folders: impl IntoIterator<Item = &'a PathBuf>) {
        let below = folders.into_iter().filter_map(|it| from_root(&self.root, it));
        self.beside.extend(below);
    }

    /// Adds folders, as absolute paths, with patterns of paths in them whose changes are reported.
    pub fn report_patterns<'a>(&mut self, patterns: impl IntoIterator<Item = &'a (PathBuf, String)>) {
        let below = patterns.into_iter().filter_map(|(folder, pattern)| {
            Some((from_root(&self.root, folder)?, pattern.clone().into_bytes()))
        });
        self.patterns.extend(below);
    }

    /// Adds ends of paths, made of whole names, of files whose changes are reported in any folder.
    pub fn report_ends<'a>(&mut self, ends: impl IntoIterator<Item = &'a String>) {
        self.ends.extend(ends.into_iter().map(|it| format!("/{it}").into_bytes()));
    }
}

/// Returns the path from the workspace's root, as bytes; `None` for a path outside of the workspace.
fn from_root(root: &ResolvedPath, path: &Path) -> Option<Vec<u8>> {
    Some(path.strip_prefix(root.path()).ok()?.as_os_str().as_encoded_bytes().to_vec())
}
