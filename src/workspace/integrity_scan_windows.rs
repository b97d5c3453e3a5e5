//! The scan of a workspace, which does not exist on Windows: no worker runs in the workspace there, and the report
//! says that it was not compared.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use provost_domain::FindingKind;
use provost_jail::{Repositories, ResolvedPath};

/// The metadata of a file. Two equal stamps mean the same file, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp;

/// A file that matters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The file's state at the scan, with which a later scan compares.
    pub stamp: Stamp,
    /// The reason why the file's name or place matters.
    pub kind: Option<FindingKind>,
    /// Whether the file is a link that leads out of the workspace.
    pub leaves: bool,
    /// Whether the file has the setuid or the setgid bit.
    pub setuid: bool,
    /// Whether any user may run the file.
    pub executable: bool,
    /// Whether the file is a local socket.
    pub socket: bool,
    /// Whether the file is a directory that could not be looked into.
    pub closed: bool,
    /// Whether the file is a named pipe.
    pub pipe: bool,
    /// Whether the file matters only if it is new.
    pub only_new: bool,
    /// Whether the file is an object of git's, named by its content.
    pub by_content: bool,
}

/// The findings, by path from the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScanFindings {
    /// Files and folders that matter.
    pub entries: BTreeMap<Vec<u8>, Entry>,
    /// Settings that stay read-only. Never known here.
    pub held: BTreeSet<Vec<u8>>,
    /// Links among the findings. Never known here.
    pub links: BTreeSet<Vec<u8>>,
    /// Files with several names. Never known here.
    pub shared: BTreeMap<(u64, u64), Shared>,
    /// Repositories. Never known here.
    pub repositories: BTreeSet<Vec<u8>>,
    /// The reason why the findings are incomplete.
    pub incomplete: Option<String>,
    /// The folder in which the scan stopped at its bound. Never known here.
    pub stopped_at: Option<Vec<u8>>,
}

/// A file with several names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shared {
    /// The names that were seen, and whether they lie in a read-only path.
    pub paths: Vec<(Vec<u8>, bool)>,
}

impl Shared {
    /// Always `false`: files with several names are not known here.
    pub fn is_elsewhere(&self) -> bool {
        false
    }
}

/// The outcome of unsharing: none, since every worker works in a copy here.
#[derive(Debug, Default)]
pub struct Unshared {
    /// How many files were replaced by private copies.
    pub made: usize,
    /// Files that are read-only for the run instead.
    pub held: BTreeSet<String>,
}

/// The part of a workspace that a scan covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    /// The top directory of the workspace.
    pub root: ResolvedPath,
    /// The directory that the worker may change, in it.
    pub directory: ResolvedPath,
    /// Further paths that matter with all that lies below, from the workspace.
    pub protected: BTreeSet<Vec<u8>>,
    /// Whether all of a repository matters.
    pub whole_repositories: bool,
    /// Ends of paths of files that matter, with a separator before them.
    pub ends: BTreeSet<Vec<u8>>,
    /// Folders, from the workspace, in which new modules of interpreters matter.
    pub beside: BTreeSet<Vec<u8>>,
    /// Folders, from the workspace, with patterns of the paths in them that matter.
    pub patterns: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Ground {
    /// Returns findings that say that nothing was scanned.
    pub fn look(&self) -> ScanFindings {
        let (root, directory) = (self.root.path().display(), self.directory.path().display());
        let protected = self.protected.len();
        let why = format!(
            "{root} was not looked at ({directory}, {protected} protected paths): there is no scan report on Windows in this version"
        );
        ScanFindings { incomplete: Some(why), ..ScanFindings::default() }
    }

    /// Scans nothing, and finds nothing.
    pub fn look_for_an_apply(&self) -> ScanFindings {
        ScanFindings::default()
    }

    /// Scans nothing, as `look` does.
    pub fn look_after(&self, _before: &ScanFindings) -> ScanFindings {
        self.look()
    }

    /// Does nothing, since no worker runs in the workspace here.
    pub fn unshare(
        &self,
        _findings: &ScanFindings,
        _mounts: bool,
        _held: &BTreeSet<String>,
    ) -> Result<Unshared, String> {
        Ok(Unshared::default())
    }

    /// Returns none, since repositories are not looked for.
    pub fn one_more(&self, _known: &Repositories, _later: &ScanFindings) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Does nothing, since there are no pipes here.
    pub fn remove_pipes(&self, _before: &ScanFindings, _later: &ScanFindings) {}

    /// Moves nothing, and says so.
    pub fn set_aside(&self, _at: &std::path::Path) -> (Option<PathBuf>, String) {
        (None, "still in force: remove it before you use git there".into())
    }
}
