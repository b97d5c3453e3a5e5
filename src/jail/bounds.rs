//! The limits of one worker, and the part of the system that enforces each.
//!
//! There is no unset limit: each has a number, and zero is refused. Some are walls, which the kernel keeps at
//! every moment (resource limits of a process, the size of a temporary file system). Others are watched: the
//! supervisor checks them at regular times and ends a worker that exceeds one. A control group that was
//! delegated to the daemon makes walls of memory and processes, too.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use super::plan::Tier;
use provost_base::Ttl;
use provost_base::limits::OUTPUT_BYTES_MAX;

/// Bounds of one worker. Each is always set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads at once. In `ll` the kernel also counts the user's other ones, which are added to the limit.
    pub processes: u32,
    /// Open descriptors per process.
    pub open_files: u32,
    /// Size of one file, in bytes.
    pub file_bytes: u64,
    /// Private writable memory of one process, in bytes.
    pub data_bytes: u64,
    /// Resident memory of all processes together, in bytes; checked once a second.
    pub resident_bytes: u64,
    /// Processor time of one process, in seconds.
    pub cpu_seconds: u64,
    /// `/tmp`, `/dev/shm` and the home directory together, in bytes. A wall in `ns`, watched in `ll`.
    pub tmp_bytes: u64,
    /// By how much the worker's writable directories may grow during the run, in bytes on the disk; watched.
    pub growth_bytes: u64,
    /// By how many files and directories the writable directories may grow; watched.
    pub growth_entries: u64,
    /// Wall time of the whole run.
    pub wall: Ttl,
    /// Bytes that are kept of each output stream; at most [`OUTPUT_BYTES_MAX`].
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 256,
            open_files: 768,
            file_bytes: 1 << 30,
            data_bytes: 4 << 30,
            resident_bytes: 6 << 30,
            cpu_seconds: 3600,
            tmp_bytes: 512 << 20,
            growth_bytes: 16 << 30,
            growth_entries: 1_000_000,
            wall: Ttl::minutes(20),
            output_bytes: OUTPUT_BYTES_MAX,
        }
    }
}

impl Limits {
    /// Checks whether a limit is zero, that of open files below 3, or the output to keep beyond its bound.
    pub(super) fn are_wrong(&self) -> bool {
        let numbers = [
            self.file_bytes,
            self.data_bytes,
            self.resident_bytes,
            self.cpu_seconds,
            self.tmp_bytes,
            self.growth_bytes,
            self.growth_entries,
        ];
        let few = self.processes == 0 || self.open_files < 3 || self.output_bytes == 0;
        few || numbers.contains(&0) || self.output_bytes > OUTPUT_BYTES_MAX
    }

    /// Returns each limit in words, with the part of the system that enforces it.
    pub(super) fn describe(&self, tier: Tier) -> Vec<String> {
        if tier == Tier::Job {
            return self.describe_job();
        }
        let processes = match tier {
            Tier::Ns => "kernel: RLIMIT_NPROC in a user namespace of its own",
            Tier::Ll | Tier::Job => "kernel: RLIMIT_NPROC, above what the user runs at the start",
        };
        let temporary = match tier {
            Tier::Ns => "kernel: size of its temporary file system",
            Tier::Ll | Tier::Job => "watched",
        };
        let watched = "watched, looked at once a second or as often as a look takes";
        vec![
            format!("{} s of wall time for the run (daemon)", self.wall.as_seconds()),
            format!("{} s of processor time per process (kernel: RLIMIT_CPU)", self.cpu_seconds),
            format!("{} processes and threads ({processes})", self.processes),
            format!("{} open files per process (kernel: RLIMIT_NOFILE)", self.open_files),
            format!("{} of private memory per process (kernel: RLIMIT_DATA)", size(self.data_bytes)),
            format!(
                "{} of memory for all its processes together (watched, looked at once a second; a wall where a \
                 control group with memory is delegated)",
                size(self.resident_bytes)
            ),
            format!("{} per file (kernel: RLIMIT_FSIZE)", size(self.file_bytes)),
            format!("{} of temporary files ({temporary})", size(self.tmp_bytes)),
            format!(
                "{} and {} files more than before in what it may change ({watched})",
                size(self.growth_bytes),
                self.growth_entries
            ),
            format!("{} of output kept per stream (daemon)", size(self.output_bytes as u64)),
            "no core files, no locked memory beyond 64 KiB, no real-time priority (kernel)".into(),
            match tier {
                Tier::Ns => {
                    "a share of the inotify instances and watches, waiting signals and message queues that this user \
                     may have; half is left to the user (kernel)"
                }
                Tier::Ll | Tier::Job => {
                    "a share of the waiting signals that this user may have, no inotify and no message queues (kernel)"
                }
            }
            .into(),
        ]
    }

    /// Does the same for Windows, where the job object enforces some limits and others are not enforced.
    fn describe_job(&self) -> Vec<String> {
        let watched = "watched, looked at once a second or as often as a look takes";
        vec![
            format!("{} s of wall time for the run (daemon)", self.wall.as_seconds()),
            format!("{} s of processor time in user mode per process (job object)", self.cpu_seconds),
            format!("{} processes (job object; threads are not counted)", self.processes),
            format!("{} of memory committed per process (job object)", size(self.data_bytes)),
            format!(
                "{} of memory committed by all its processes together (job object)",
                size(self.resident_bytes)
            ),
            format!("{} of temporary files ({watched})", size(self.tmp_bytes)),
            format!(
                "{} and {} files more than before in what it may change ({watched})",
                size(self.growth_bytes),
                self.growth_entries
            ),
            format!("{} of output kept per stream (daemon)", size(self.output_bytes as u64)),
            "no bound of open files and of the size of one file: Windows has none to set".into(),
        ]
    }
}

/// The kind of space that a worker has used too much of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Space {
    /// Bytes in the worker's writable directories.
    Bytes,
    /// Files and directories in the worker's writable directories.
    Entries,
    /// Directories nested deeper than the supervisor can watch.
    Depth,
    /// Bytes in the worker's private folder for temporary files.
    Temporary,
}

/// Writes a number of bytes for people: in the largest unit that leaves no fraction.
pub fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(shift, _): &(u32, &str)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift);
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}
