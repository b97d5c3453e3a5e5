//! Differences between systems about open files, under one name for each function.
#![forbid(unsafe_code)]

pub(super) use provost_system::identity;
pub(super) use system::{may_be_executed, may_be_written_by_all, open, path_of, stamp};

#[cfg(unix)]
mod system {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    /// Opens a file or directory for reading. Does not wait for a pipe's other end, and
    /// does not make a terminal the controlling one.
    pub(in super::super) fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
    }

    /// Returns the time of the file's last change, by the kernel's own record, which no program can set back.
    pub(in super::super) fn stamp(meta: &Metadata) -> (i64, i64) {
        (meta.ctime(), meta.ctime_nsec())
    }

    /// Checks whether any user may execute the file.
    pub(in super::super) fn may_be_executed(meta: &Metadata) -> bool {
        meta.permissions().mode() & 0o111 != 0
    }

    /// Checks whether every user may write to the file.
    pub(in super::super) fn may_be_written_by_all(meta: &Metadata) -> bool {
        meta.permissions().mode() & 0o002 != 0
    }

    /// Returns the path at which an open file is now.
    #[cfg(target_os = "linux")]
    pub(in super::super) fn path_of(file: &File, _asked: &Path) -> io::Result<PathBuf> {
        use std::os::fd::AsRawFd;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        if !path.is_absolute() || path.to_string_lossy().ends_with(" (deleted)") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(path)
    }

    /// Returns the path at which an open file was found.
    #[cfg(not(target_os = "linux"))]
    pub(in super::super) fn path_of(_file: &File, asked: &Path) -> io::Result<PathBuf> {
        asked.canonicalize()
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};

    /// The flag by which directories can be opened, too.
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;

    /// Opens a file or directory for reading.
    pub(in super::super) fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
    }

    /// Returns the time when the file was last written.
    pub(in super::super) fn stamp(meta: &Metadata) -> (i64, i64) {
        (i64::try_from(meta.last_write_time()).unwrap_or(i64::MAX), 0)
    }

    /// Always true: the name decides when the file is executed.
    pub(in super::super) fn may_be_executed(_meta: &Metadata) -> bool {
        true
    }

    /// Always false: access lists decide, which are not read here.
    pub(in super::super) fn may_be_written_by_all(_meta: &Metadata) -> bool {
        false
    }

    /// Returns the path at which an open file was found.
    pub(in super::super) fn path_of(_file: &File, asked: &Path) -> io::Result<PathBuf> {
        provost_system::real_path(asked)
    }
}
