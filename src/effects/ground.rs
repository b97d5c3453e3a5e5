//! The parts of a workspace that a scan covers, besides the whole.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;

use super::outside::Outside;
use crate::jail::Place;
use crate::workspace::integrity_scan::Ground;

impl Ground {
    /// A whole workspace, of which nothing in particular matters.
    pub(super) fn of_nothing(root: &Place) -> Self {
        Self {
            root: root.clone(),
            directory: root.clone(),
            protected: BTreeSet::new(),
            whole_repositories: false,
            ends: BTreeSet::new(),
            beside: BTreeSet::new(),
        }
    }

    /// Has what runs outside matter that cannot be held by its path.
    pub(super) fn add(&mut self, outside: &Outside) {
        let from_root = |path: &Path| {
            Some(path.strip_prefix(self.root.path()).ok()?.as_os_str().as_encoded_bytes().to_vec())
        };
        self.protected.extend(outside.told.iter().filter_map(|it| from_root(it)));
        self.beside.extend(outside.beside.iter().filter_map(|it| from_root(it)));
        self.ends.extend(outside.ends.iter().map(|it| format!("/{it}").into_bytes()));
    }
}
