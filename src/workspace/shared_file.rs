//! A regular file with several names, as a scan finds it.
#![forbid(unsafe_code)]

/// A regular file with several names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shared {
    /// The number of names that the system counts.
    pub links: u64,
    /// The file's size in bytes.
    pub size: u64,
    /// Whether the file belongs to this user.
    pub own: bool,
    /// The names that were seen, from the workspace, and whether they lie in a read-only path.
    pub paths: Vec<(Vec<u8>, bool)>,
    /// Whether one of the names is that of a file that runs outside of jails: a hook, a setting, or a script that one of these names.
    pub runs_later: bool,
}

impl Shared {
    /// Checks whether the file has names outside of the scanned directory.
    pub fn is_elsewhere(&self) -> bool {
        self.links > self.paths.len() as u64
    }

    /// Checks whether a worker that writes to it would change a file that it must not change. Without mounts no file is read-only.
    pub fn matters(&self, mounts: bool) -> bool {
        let (held, open) = (self.paths.iter().any(|it| it.1), self.paths.iter().any(|it| !it.1));
        let leads_there = held || self.runs_later && self.paths.len() > 1;
        self.is_elsewhere() && (open || !mounts) || mounts && leads_there && open
    }
}
