//! A regular file with several names, as a scan finds it.
#![forbid(unsafe_code)]

/// A regular file with several names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shared {
    /// How many names the system counts.
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it is this user's.
    pub own: bool,
    /// Those of its names that were seen, from the workspace, and whether they lie in what is read-only.
    pub paths: Vec<(Vec<u8>, bool)>,
    /// Whether one of its names is of a file that runs outside of jails: a hook, a setting, a script that these name.
    pub runs_later: bool,
}

impl Shared {
    /// Whether it has names outside of what was looked at.
    pub fn is_elsewhere(&self) -> bool {
        self.links > self.paths.len() as u64
    }

    /// Whether a worker that writes it changes something that it is not to change. Without mounts nothing is read-only.
    pub fn matters(&self, mounts: bool) -> bool {
        let (held, open) = (self.paths.iter().any(|it| it.1), self.paths.iter().any(|it| !it.1));
        let leads_there = held || self.runs_later && self.paths.len() > 1;
        self.is_elsewhere() && (open || !mounts) || mounts && leads_there && open
    }
}
