//! The age of kept files, in time that the daemon has seen pass: a clock that is set ahead makes no file old.
//!
//! A file records the time that has passed so far, and the moment of that record: in the machine's time since its
//! boot, which cannot be set, and by the system's clock. Within one boot the first counts. Over a reboot the second
//! counts, for a day at most. A file's age begins when the daemon first sees it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{boot_name, boot_time, private_file, wall_time};
use provost_base::limits::AGE_OVER_A_START_S_MAX;

/// The passed time that was recorded, and the moment of the record; in seconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Seen {
    passed: u64,
    /// The start of the machine, and the time since then.
    boot: Box<str>,
    since_boot: u64,
    wall: u64,
    /// When each kept file was first seen, by its name.
    first: BTreeMap<Box<str>, u64>,
}

/// The ages of the kept files in a folder. Blocking.
#[derive(Debug)]
pub struct Ages {
    path: PathBuf,
    seen: Seen,
}

impl Ages {
    /// Reads the clocks, and the names of the files that are kept now. If the record is missing or cannot be read, all files are young.
    pub fn look(path: PathBuf, kept: impl Iterator<Item = Box<str>>) -> Self {
        let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Seen>(&bytes).ok());
        let mut seen = read.unwrap_or_default();
        let (boot, since_boot, wall) = (boot_name(), boot_time().as_secs(), wall_time().as_secs());
        let is_the_same = !boot.is_empty() && seen.boot == boot;
        let passed = match is_the_same {
            true => since_boot.saturating_sub(seen.since_boot),
            false => wall.saturating_sub(seen.wall).min(AGE_OVER_A_START_S_MAX),
        };
        let passed = seen.passed.saturating_add(passed);
        let first = kept.map(|name| {
            let first = seen.first.remove(&name).unwrap_or(passed);
            (name, first)
        });
        let first = first.collect();
        seen = Seen { passed, boot, since_boot, wall, first };
        Self { path, seen }
    }

    /// Returns how long a file has been kept.
    pub fn of(&self, name: &str) -> Duration {
        let first = self.seen.first.get(name).copied().unwrap_or(self.seen.passed);
        Duration::from_secs(self.seen.passed - first.min(self.seen.passed))
    }

    /// Writes the record, completely or not at all.
    ///
    /// # Errors
    /// The disk's error.
    pub fn keep(&self) -> io::Result<()> {
        // Another record may lie beside this one, under the same name with another extension.
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        write_private(&beside, &serde_json::to_vec(&self.seen)?)?;
        fs::rename(&beside, &self.path)
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    let mut file = private_file(options.write(true).create(true).truncate(true)).open(path)?;
    file.write_all(bytes)
}
