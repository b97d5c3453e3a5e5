//! Measures from time to time how much a worker has written, since the system has no wall for that.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bounds::{Limits, Space};
use crate::plan::Plan;
use provost_base::limits::SURVEY_DEPTH_MAX;

/// The folders that a worker may change, and their size at the start.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    folders: Vec<PathBuf>,
    scratch: PathBuf,
    before: Amount,
}

/// A number of bytes and files.
#[derive(Clone, Copy, Default, Debug)]
struct Amount {
    bytes: u64,
    entries: u64,
}

/// There are more levels of folders than are looked into.
struct TooDeep;

impl Ground {
    /// Measures the folders as they are now. Blocking.
    pub(super) fn of(plan: &Plan, scratch: &Path) -> io::Result<Self> {
        let folders: Vec<PathBuf> = plan.writable.iter().map(|place| place.path().to_path_buf()).collect();
        let before =
            total(&folders).map_err(|TooDeep| io::Error::other("is nested too deep to be watched"))?;
        Ok(Self { folders, scratch: scratch.to_path_buf(), before })
    }

    /// Returns the bound that is exceeded now. Blocking.
    pub(super) fn beyond(&self, limits: &Limits) -> Option<Space> {
        let (Ok(now), Ok(temporary)) = (total(&self.folders), amount(&self.scratch)) else {
            return Some(Space::Depth);
        };
        if now.bytes.saturating_sub(self.before.bytes) > limits.growth_bytes {
            return Some(Space::Bytes);
        }
        if now.entries.saturating_sub(self.before.entries) > limits.growth_entries {
            return Some(Space::Entries);
        }
        (temporary.bytes > limits.tmp_bytes).then_some(Space::Temporary)
    }
}

fn total(folders: &[PathBuf]) -> Result<Amount, TooDeep> {
    folders.iter().try_fold(Amount::default(), |sum, folder| {
        let more = amount(folder)?;
        Ok(Amount {
            bytes: sum.bytes.saturating_add(more.bytes),
            entries: sum.entries.saturating_add(more.entries),
        })
    })
}

/// Measures the files below a folder. Files that cannot be read are gone, or ours to remove anyway; links are not followed.
fn amount(folder: &Path) -> Result<Amount, TooDeep> {
    let mut found = Amount::default();
    let mut left = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = left.pop() {
        if depth > SURVEY_DEPTH_MAX {
            return Err(TooDeep);
        }
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            found.entries += 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push((entry.path(), depth + 1)),
                _ => found.bytes = found.bytes.saturating_add(entry.metadata().map_or(0, |meta| meta.len())),
            }
        }
    }
    Ok(found)
}
