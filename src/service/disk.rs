//! The store's size, and what is left on its disk.

use std::path::Path;

/// The files of the store, without those that are as large as a page.
const STORE_FILES: [&str; 2] = ["provost.db", "provost.db-wal"];

/// What is known of the disk that a store is on, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Disk {
    /// The size of the store.
    pub store: Option<u64>,
    /// What is free for this user.
    pub free: Option<u64>,
    /// The size of the disk.
    pub all: Option<u64>,
}

/// Looks at the disk of a state folder; blocks for as long as that does.
pub fn disk(state: &Path) -> Disk {
    let sizes = STORE_FILES.map(|name| std::fs::metadata(state.join(name)).ok().map(|it| it.len()));
    let store = sizes[0].map(|it| it.saturating_add(sizes[1].unwrap_or(0)));
    let space = provost_system::disk_space(state);
    Disk { store, free: space.map(|it| it.0), all: space.map(|it| it.1) }
}
