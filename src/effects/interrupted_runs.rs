//! Finds repositories of runs whose end no daemon saw, because it was killed with its workers, and disables them.
//! This happens at the next start, before another scan takes them for the user's own. Blocking.
//!
//! Beside the folder of private copies is another one, where a file for each run in a directory of the user's says
//! which repositories existed when the run began. The file is on disk before the worker runs and is removed after the
//! scan that follows the run, so a file that exists at a start of the daemon belongs to a run without that scan.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::scan_report::put_out_of_force;
use provost_base::TaskId;
use provost_domain::ScanReport;
use provost_domain::artifact::shelf;
use provost_jail::{Repositories, ResolvedPath, find_place};
use provost_system as system;
use provost_workspace::integrity_scan::{Entry, Ground, ScanFindings};

/// The extension of the folder of such files.
const LOOKS: &str = "looks";

/// The state of the workspace before a run, as far as a later daemon needs it.
#[derive(Serialize, Deserialize)]
struct RunMark {
    task: TaskId,
    root: ResolvedPath,
    directory: ResolvedPath,
    repositories: Repositories,
    /// Folders that could not be looked into before the run: they stay shut. Folders that a worker has shut are opened.
    closed: Vec<(Vec<u8>, Entry)>,
}

/// The leftovers of such a run, for its report.
#[derive(Debug)]
pub(super) struct InterruptedRun {
    pub(super) task: TaskId,
    pub(super) report: ScanReport,
}

/// The file that stands for a run that has not been compared yet.
#[derive(Debug)]
pub(super) struct Trace(PathBuf);

impl Trace {
    /// Writes the file beside the folder of copies, and syncs it to the disk.
    pub(super) fn leave(
        copies: &Path,
        task: &TaskId,
        (ground, before): (&Ground, &ScanFindings),
        repositories: &Repositories,
    ) -> io::Result<Self> {
        let closed = before.entries.iter().filter(|(_, entry)| entry.closed);
        let then = RunMark {
            task: task.clone(),
            root: ground.root.clone(),
            directory: ground.directory.clone(),
            repositories: repositories.clone(),
            closed: closed.map(|(path, entry)| (path.clone(), entry.clone())).collect(),
        };
        let folder = copies.with_extension(LOOKS);
        system::make_private_folders(&folder)?;
        let trace = Self(folder.join(shelf(task)));
        let mut file = fs::File::create(&trace.0)?;
        file.write_all(&serde_json::to_vec(&then)?)?;
        file.sync_all()?;
        Ok(trace)
    }

    /// Removes the file, since the run was compared, or has never begun.
    pub(super) fn remove(self) {
        if let Err(err) = fs::remove_file(&self.0) {
            tracing::warn!(%err, "the note about a finished run was not removed");
        }
    }
}

/// Disables the repositories that such runs have made. Called at the start of a daemon, before the scan of a new run.
pub(super) fn look_for(copies: &Path) -> Vec<InterruptedRun> {
    let all = fs::read_dir(copies.with_extension(LOOKS)).into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let unseen = match then(&entry.path()) {
            Ok(then) => Some(then.compare()),
            Err(err) => {
                let path = entry.path();
                tracing::error!(
                    %err, path = %path.display(),
                    "the workspace's state before a run is not known: look for repositories that are not yours before you use git"
                );
                None
            }
        };
        Trace(entry.path()).remove();
        unseen
    })
    .collect()
}

fn then(path: &Path) -> io::Result<RunMark> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

impl RunMark {
    fn compare(self) -> InterruptedRun {
        const WHY: &str = "the daemon ended while it ran, so there is nothing to compare with";
        let Self { task, root, directory, repositories, closed } = self;
        // A device can have another number after the machine has restarted.
        let again = |place: ResolvedPath| find_place(place.path()).unwrap_or(place);
        let root = again(root);
        let ground = Ground { directory: again(directory), ..Ground::of_nothing(&root) };
        let before = ScanFindings { entries: closed.into_iter().collect(), ..ScanFindings::default() };
        let later = ground.look_after(&before);
        let (findings, made) = put_out_of_force(&ground, &repositories, &later);
        let unknown = match (&made, &later.incomplete) {
            (Some(made), _) => {
                format!("{WHY}; a git repository was there that the run, or a person since, has made: {made}")
            }
            (None, Some(why)) => format!("{WHY}, and it may have left a git repository: {why}"),
            (None, None) => WHY.to_owned(),
        };
        if let Some(made) = &made {
            tracing::warn!(%task, %made, "a git repository was there that a lost run, or a person since, has made");
        }
        InterruptedRun { task, report: ScanReport { findings, ..ScanReport::unknown(&unknown) } }
    }
}
