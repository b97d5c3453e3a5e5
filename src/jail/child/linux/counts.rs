//! Resources that the kernel counts for a whole user, wherever the user's processes run: a worker that used them up would
//! take them from the user's own programs.
//!
//! A user namespace has limits of its own for some of them, which hold in addition to the host's; resource limits hold
//! for the rest. Each worker has a share, and half is left to the user. The system call filter refuses keys, io_uring, performance
//! counters, BPF and fanotify; without a user namespace also inotify.
#![forbid(unsafe_code)]

use std::fs;
use std::io;

use rustix::process::Resource;

use super::namespaces::tell;

/// The folder with the limits of a user namespace.
const LIMITS: &str = "/proc/sys/user";

/// A worker's share of the counted resources, and the limits of its user namespace.
pub(super) struct Shares {
    parts: u64,
    limits: Vec<(String, u64)>,
    /// The limits of all kinds of namespaces except the two that are needed to build the jail.
    namespaces: Vec<String>,
}

impl Shares {
    /// Reads the user's limits. Called outside of the jail, whose own limits say nothing yet.
    pub(super) fn among(workers: u32) -> io::Result<Self> {
        let parts = 2 * u64::from(workers.max(1));
        let entries = match fs::read_dir(LIMITS) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
            // The kernel has no namespaces.
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
                // A root directory is built of mounts that are not attached yet, and these count as mount
                // namespaces.
                namespaces.push(name);
            }
        }
        Ok(Self { parts, limits, namespaces })
    }

    /// Forbids further namespaces in the user namespace in which this process is the first.
    pub(super) fn keep_from_nesting(&self) -> io::Result<()> {
        self.namespaces.iter().try_for_each(|name| tell(&format!("{LIMITS}/{name}"), "0"))
    }

    /// Sets the limits of the user namespace in which this process is the first. They hold for it and all user namespaces
    /// below it.
    pub(super) fn keep(&self) -> io::Result<()> {
        let mut limits = self.limits.iter();
        limits.try_for_each(|(name, most)| tell(&format!("{LIMITS}/{name}"), &most.to_string()))
    }

    /// Returns a resource limit that is counted for the user: `most`, or the worker's share if that is less.
    pub(super) fn of(&self, resource: Resource, most: u64) -> u64 {
        let has = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        most.min(has / self.parts)
    }
}
