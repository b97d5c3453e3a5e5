//! A look at a workspace, which is not taken on Windows: no worker runs there yet, and the report says that nothing
//! was looked at.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::FindingKind;
use crate::jail::Place;

/// What is known of a file. Two that are alike are the same file, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp;

/// A file that matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) stamp: Stamp,
    /// Why its name or place matters.
    pub(super) kind: Option<FindingKind>,
    /// A link that leads out of the workspace.
    pub(super) leaves: bool,
    pub(super) setuid: bool,
    pub(super) executable: bool,
    /// A directory that could not be looked into.
    pub(super) closed: bool,
}

impl Entry {
    /// Never known here.
    pub(super) fn is_file(&self) -> bool {
        false
    }
}

/// What was found, by path from the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Survey {
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
    /// Why it is incomplete.
    pub(super) incomplete: Option<String>,
}

/// What is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The workspace.
    pub(super) root: Place,
    /// The directory that the worker may change, in it.
    pub(super) directory: Place,
    /// Further paths that matter with all that lies below, from the workspace.
    pub(super) protected: BTreeSet<Vec<u8>>,
}

impl Ground {
    /// Says that nothing was looked at.
    pub(super) fn look(&self) -> Survey {
        let (root, directory) = (self.root.path().display(), self.directory.path().display());
        let protected = self.protected.len();
        let why = format!(
            "{root} was not looked at ({directory}, {protected} protected paths): there is no hand-off report on Windows in this version"
        );
        Survey { entries: BTreeMap::new(), incomplete: Some(why) }
    }
}
