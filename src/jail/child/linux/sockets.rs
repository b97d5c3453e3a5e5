//! Covers sockets and named pipes of the host that a worker sees: a program that listens there takes the
//! worker for the user, whose user id it has.
//!
//! They are covered before the worker runs. The plan names the sockets that were found in the workspace; the
//! kernel's own list adds those elsewhere, such as in a toolchain. A socket that is made while the worker
//! runs is not covered; but if it takes the place of a covered one, the run ends.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::mount_stubs::find;
use crate::plan::Plan;
use crate::root::ResolvedPath;
use provost_base::limits::SOCKETS_COVERED_MAX;

/// The kernel's list of sockets, if it has one.
const LIST: &str = "/proc/net/unix";

/// The number of fields of a line before the path.
const FIELDS: usize = 7;

/// Returns the sockets in the worker's sight, each at its own path.
pub(super) fn in_reach(plan: &Plan) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let list = match std::fs::read(LIST) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        list => list?,
    };
    let seen: Vec<&Path> = plan.writable.iter().chain(&plan.read_only).map(ResolvedPath::path).collect();
    let listed = list.split(|byte| *byte == b'\n').filter_map(path_of);
    let listed = listed.filter(|path| seen.iter().any(|place| path.starts_with(place)));
    let paths: BTreeSet<&Path> = listed.chain(plan.sockets.iter().map(PathBuf::as_path)).collect();
    let mut found = Vec::new();
    for path in paths {
        let Some(socket) = socket_at(path)? else { continue };
        if found.len() >= SOCKETS_COVERED_MAX {
            let why = format!(
                "there are more than {SOCKETS_COVERED_MAX} local sockets and pipes in what it would see, {path:?} among them: \
                 remove those that a worker has left (`find . -type s -o -type p` lists them)"
            );
            return Err(io::Error::other(why));
        }
        found.push((path.to_owned(), socket));
    }
    Ok(found)
}

/// Returns the path of a line, if it has one that is not cut.
fn path_of(line: &[u8]) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..FIELDS {
        let begin = rest.iter().position(|byte| *byte != b' ')?;
        let end = rest[begin..].iter().position(|byte| *byte == b' ')? + begin;
        rest = &rest[end..];
    }
    let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
    path.is_absolute().then_some(path)
}

/// Opens the socket or pipe at a path, if there is one. A socket behind a link is found at its own path.
pub(super) fn socket_at(path: &Path) -> io::Result<Option<OwnedFd>> {
    use rustix::io::Errno;
    let found = match find(path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(e) => {
            let errno = Errno::from_io_error(&e);
            let no_way = [Errno::LOOP, Errno::NOTDIR, Errno::ACCESS, Errno::NAMETOOLONG];
            return if errno.is_some_and(|it| no_way.contains(&it)) { Ok(None) } else { Err(e) };
        }
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
    Ok(matches!(kind, FileType::Socket | FileType::Fifo).then_some(found))
}
