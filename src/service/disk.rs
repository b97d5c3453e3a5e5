//! The size of the store, and the free space on its disk.

use std::path::Path;

/// The files of the store, without the one that has the size of a page.
const STORE_FILES: [&str; 2] = ["provost.db", "provost.db-wal"];

/// The known sizes of a store and its disk, in bytes; `None` for one that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Disk {
    /// The size of the store.
    pub store: Option<u64>,
    /// The space that is free for this user.
    pub free: Option<u64>,
    /// The size of the disk.
    pub all: Option<u64>,
}

/// Reads the sizes for a state folder; blocks for as long as the disk does.
pub fn disk(state: &Path) -> Disk {
    let sizes = STORE_FILES.map(|name| std::fs::metadata(state.join(name)).ok().map(|it| it.len()));
    let store = sizes[0].map(|it| it.saturating_add(sizes[1].unwrap_or(0)));
    let space = provost_system::disk_space(state);
    Disk { store, free: space.map(|it| it.0), all: space.map(|it| it.1) }
}
