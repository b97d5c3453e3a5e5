//! Finds sockets and links around the directory of a task: local sockets of the user's programs, to which a worker
//! must not connect, and links among settings, which may lead into the directory. Blocking.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;

use cap_std::fs::Dir;

use super::run_outside::row_of_settings;
use provost_base::later;
use provost_base::limits::SURVEY_ENTRIES_MAX;
use provost_jail::{ResolvedPath, is_repository_name};
use provost_system::walk::{Entry, Folder, Kind, Step, Unopened, Unread, Visitor, walk};
use provost_workspace::integrity_scan::{Stop, open_place, survey_bounds};

/// The findings in a workspace around a directory, as paths from the workspace.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Local sockets, and named pipes.
    pub(super) sockets: Vec<Vec<u8>>,
    /// Folders that could not be listed: a process that knows the name of a socket in one can connect to it.
    pub(super) shut: Vec<Vec<u8>>,
    /// Symbolic links among settings and in repositories.
    pub(super) links: Vec<Vec<u8>>,
    /// Settings files that are read-only for workers: they name programs, also in the directory.
    pub(super) settings: BTreeSet<Vec<u8>>,
    /// Repositories, whose configuration names programs, too.
    pub(super) repositories: BTreeSet<Vec<u8>>,
}

/// Scans a workspace around a directory, without the directory itself.
///
/// # Errors
/// The reason why not every folder could be scanned: there may be more.
pub(super) fn surroundings(root: &ResolvedPath, but: &ResolvedPath) -> Result<Surroundings, String> {
    let mut around = Around { but: (but.dev(), but.ino()), found: Surroundings::default() };
    let top = Dir::from_std_file(File::from(open_place(root).map_err(|err| Stop::Io(err).why())?));
    let bounds = survey_bounds(SURVEY_ENTRIES_MAX);
    walk(&mut around, (top, OsStr::new("")), (), bounds).map_err(Stop::why)?;
    Ok(around.found)
}

/// A scan around a directory.
struct Around {
    /// The directory, by device and inode.
    but: (u64, u64),
    found: Surroundings,
}

impl Visitor for Around {
    type Here = ();
    type Stop = Stop;

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, Stop> {
        let path = at.path().as_bytes();
        if is_repository_name(at.name().as_bytes()) && !is_within_a_repository(path) {
            self.found.repositories.insert(path.to_vec());
        }
        if matches!(at.kind(), Kind::File | Kind::Link) && row_of_settings(path).is_some() {
            self.found.settings.insert(path.to_vec());
        }
        match at.kind() {
            Kind::Socket | Kind::Pipe => self.found.sockets.push(path.to_vec()),
            Kind::Link if is_among_settings(path) => self.found.links.push(path.to_vec()),
            Kind::Folder => return self.look_into(at),
            _ => {}
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), Stop> {
        Err(why.into())
    }
}

impl Around {
    fn look_into(&mut self, at: Entry<'_>) -> Result<Step<()>, Stop> {
        let inner = match at.open() {
            Ok(inner) => inner,
            // The folder has vanished since it was listed.
            Err(Unopened::Gone(_)) => return Ok(Step::Over),
            // A process that knows the name of an entry in it can still reach the entry.
            Err(Unopened::Shut(_)) => {
                self.found.shut.push(at.path().as_bytes().to_vec());
                return Ok(Step::Over);
            }
            Err(Unopened::Failed(error)) => return Err(Stop::Io(error)),
        };
        let stat = rustix::fs::fstat(&inner)?;
        Ok(if (stat.st_dev, stat.st_ino) == self.but { Step::Over } else { Step::Into(inner, ()) })
    }
}

fn is_within_a_repository(path: &[u8]) -> bool {
    path.split(|it| *it == b'/').rev().skip(1).any(is_repository_name)
}

/// Checks whether a link is a setting that stays read-only, or lies in such a setting or in a repository.
fn is_among_settings(path: &[u8]) -> bool {
    let mut names = path.split(|it| *it == b'/');
    let is_gits = is_within_a_repository(path);
    let is_setting = later::row_over(path).is_some_and(later::Row::is_read_only);
    (is_setting || is_gits) && !names.any(later::is_fetched)
}
