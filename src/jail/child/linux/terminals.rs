//! The worker's own terminals: an instance of the kernel's file system for terminals that has none of the host's.
//!
//! Shells of agents ask for a pseudo terminal. A terminal that is made here has its number here and no name outside, and the
//! operations that the filter refuses on terminals are refused on these, too.
#![forbid(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::sys::{self, NOEXEC, NOSUID};

/// The folder of the terminals.
pub(super) const FOLDER: &str = "/dev/pts";

/// How many may be open at once. The kernel has some 3,000 for all instances other than the host's own.
const TERMINALS_MAX: u32 = 32;

/// Makes a new instance, not attached yet; `None` if the kernel has no terminals of this kind.
pub(super) fn new_instance() -> io::Result<Option<OwnedFd>> {
    let option = |value: String| sys::c_string(value);
    let options: [(&CStr, CString); 3] = [
        (c"mode", option("0600".into())?),
        (c"ptmxmode", option("0666".into())?),
        (c"max", option(TERMINALS_MAX.to_string())?),
    ];
    match sys::new_filesystem(c"devpts", &options, NOSUID | NOEXEC) {
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        made => made.map(Some),
    }
}

/// Attaches an instance beneath the directory that becomes the root, which is the current one.
pub(super) fn attach(instance: OwnedFd) -> io::Result<()> {
    let folder = Path::new("dev/pts");
    std::fs::create_dir(folder)?;
    sys::attach_mount(instance, super::landlock::open_strictly(folder)?)?;
    Ok(rustix::fs::symlink("pts/ptmx", "dev/ptmx")?)
}
