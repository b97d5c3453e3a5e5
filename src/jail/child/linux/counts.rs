//! What the kernel counts for a whole user, wherever the user's processes run: a worker that used it up would
//! take it from the user's own programs.
//!
//! A user namespace has limits of its own for some of it, which hold besides the host's; resource limits hold
//! for the rest. Each worker has a share, and half is left to the user. Keys, io_uring, performance counters,
//! BPF and fanotify are refused by the system call filter; without a user namespace inotify is, too.
#![forbid(unsafe_code)]

use std::fs;
use std::io;

use rustix::process::Resource;

use super::namespaces::tell;

/// Where a user namespace has its limits.
const LIMITS: &str = "/proc/sys/user";

/// Of how many parts a worker has one, and what the limits of its user namespace are to be.
pub(super) struct Shares {
    parts: u64,
    limits: Vec<(String, u64)>,
    /// Of namespaces of all kinds but the two that are needed to build the jail.
    namespaces: Vec<String>,
}

impl Shares {
    /// Looks at what the user has. Called outside of the jail, whose own limits say nothing yet.
    pub(super) fn among(workers: u32) -> io::Result<Self> {
        let parts = 2 * u64::from(workers.max(1));
        let entries = match fs::read_dir(LIMITS) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
            // A kernel without namespaces.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        let (mut limits, mut namespaces) = (Vec::new(), Vec::new());
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with("max_inotify_") {
                let has = fs::read_to_string(entry.path())?;
                limits.push((name, has.trim().parse::<u64>().map_err(io::Error::other)? / parts));
            } else if name.ends_with("_namespaces") && name != "max_mnt_namespaces" {
                // Mounts that are not attached yet, of which a root directory is built, count as namespaces
                // of mounts.
                namespaces.push(name);
            }
        }
        Ok(Self { parts, limits, namespaces })
    }

    /// Lets no further namespaces be made in the user namespace in which this process is the first.
    pub(super) fn keep_from_nesting(&self) -> io::Result<()> {
        self.namespaces.iter().try_for_each(|name| tell(&format!("{LIMITS}/{name}"), "0"))
    }

    /// Sets the limits of the user namespace in which this process is the first. They hold for it and all
    /// below it.
    pub(super) fn keep(&self) -> io::Result<()> {
        let mut limits = self.limits.iter();
        limits.try_for_each(|(name, most)| tell(&format!("{LIMITS}/{name}"), &most.to_string()))
    }

    /// A resource limit that is counted for the user: so much, or the share if that is less.
    pub(super) fn of(&self, resource: Resource, most: u64) -> u64 {
        let has = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        most.min(has / self.parts)
    }
}
