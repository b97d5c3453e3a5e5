//! The files of a state folder: private, ours, reached without following links, and held by one daemon.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{DATABASE, JOURNAL_KEY, LEASE, StoreError};
use crate::base::Secret;
use crate::system;

/// Length of the journal's key, in bytes: as long as the MAC.
const KEY_LEN: usize = 32;

/// Makes the folder if need be, and gives its name without links in it.
pub(super) fn state_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    private::dir_mode(&mut builder);
    builder.create(dir).map_err(StoreError::io(dir))?;
    existing_dir(dir)
}

/// The name of a folder that has to be there, without links in it.
pub(super) fn existing_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let dir = system::real_path(dir).map_err(StoreError::io(dir))?;
    private::check_dir(&dir)?;
    Ok(dir)
}

/// The database file, made empty if it is not there. SQLite gives its companions the same mode.
pub(super) fn database(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(DATABASE);
    match private::create_new(&path) {
        Ok(file) => {
            private::make_private(&file, &path)?;
            sync_dir(dir)?;
        }
        Err(err) if err.kind() == ErrorKind::AlreadyExists => existing_database(dir).map(drop)?,
        Err(err) => return Err(StoreError::io(&path)(err)),
    }
    Ok(path)
}

/// The database file, which has to be there.
pub(super) fn existing_database(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(DATABASE);
    let file = private::open(OpenOptions::new().read(true), &path).map_err(StoreError::io(&path))?;
    private::check_file(&file, &path)?;
    Ok(path)
}

/// The journal's key, if it is there.
pub(super) fn journal_key(dir: &Path) -> Result<Option<Secret>, StoreError> {
    let path = dir.join(JOURNAL_KEY);
    let mut file = match private::open(OpenOptions::new().read(true), &path) {
        Ok(file) => file,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(StoreError::io(&path)(err)),
    };
    private::check_file(&file, &path)?;
    let mut bytes = Vec::with_capacity(KEY_LEN + 1);
    let most = KEY_LEN as u64 + 1;
    Read::by_ref(&mut file).take(most).read_to_end(&mut bytes).map_err(StoreError::io(&path))?;
    if bytes.len() != KEY_LEN {
        return Err(StoreError::Key(
            format!("{} is not a journal key: bring it back from a backup", path.display()).into(),
        ));
    }
    Ok(Some(Secret::new(bytes)))
}

/// Makes a key. It appears under its name only when it is whole and on disk.
pub(super) fn make_journal_key(dir: &Path) -> Result<Secret, StoreError> {
    let (path, half) = (dir.join(JOURNAL_KEY), dir.join("journal.key.new"));
    let mut bytes = vec![0; KEY_LEN];
    getrandom::fill(&mut bytes).map_err(|err| StoreError::Key(format!("no random numbers: {err}").into()))?;
    let key = Secret::new(bytes);
    match std::fs::remove_file(&half) {
        Err(err) if err.kind() != ErrorKind::NotFound => return Err(StoreError::io(&half)(err)),
        _ => {}
    }
    let mut file = private::create_new(&half).map_err(StoreError::io(&half))?;
    private::make_private(&file, &half)?;
    file.write_all(key.expose()).and_then(|()| file.sync_all()).map_err(StoreError::io(&half))?;
    std::fs::rename(&half, &path).map_err(StoreError::io(&path))?;
    sync_dir(dir)?;
    Ok(key)
}

/// How long a lease may outlive its daemon, and how often one looks whether it does.
const LEASE_LINGERS: Duration = Duration::from_millis(500);
const LEASE_LOOK: Duration = Duration::from_millis(10);

/// The right to write, for as long as this lives. The kernel takes it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lease {
    _file: File,
}

impl Lease {
    /// Takes the lease, or says who has it.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(LEASE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = private::open(&mut options, &path).map_err(StoreError::io(&path))?;
        private::make_private(&file, &path)?;
        // What a killed daemon was just starting has the file open, too, until it has become its own program.
        let until = Instant::now() + LEASE_LINGERS;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LEASE_LOOK),
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { pid: holder(&mut file) }),
                Err(TryLockError::Error(err)) => return Err(StoreError::io(&path)(err)),
            }
        }
        let pid = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(pid.as_bytes()))
            .map_err(StoreError::io(&path))?;
        Ok(Self { _file: file })
    }
}

/// The process id in a lease, once its holder has written it.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::io(dir))?;
    }
    Ok(())
}

#[cfg(unix)]
mod private {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use rustix::fs::OFlags;

    use crate::store::StoreError;

    pub(super) fn dir_mode(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    /// Opens without following a link, and without waiting should someone have put a pipe there.
    pub(super) fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path)
    }

    pub(super) fn create_new(path: &Path) -> std::io::Result<File> {
        open(OpenOptions::new().read(true).write(true).create_new(true), path)
    }

    /// Sets the mode whatever the umask, once it is sure that the file is ours.
    pub(super) fn make_private(file: &File, path: &Path) -> Result<(), StoreError> {
        let meta = file.metadata().map_err(StoreError::io(path))?;
        check_ours(&meta, path)?;
        if meta.mode() & 0o777 != 0o600 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(StoreError::io(path))?;
        }
        Ok(())
    }

    pub(super) fn check_file(file: &File, path: &Path) -> Result<(), StoreError> {
        let meta = file.metadata().map_err(StoreError::io(path))?;
        check_ours(&meta, path)?;
        if meta.mode() & 0o077 != 0 {
            return Err(not_safe(path, "can be read or changed by other users: run `chmod 600` on it"));
        }
        Ok(())
    }

    pub(super) fn check_dir(path: &Path) -> Result<(), StoreError> {
        let meta = std::fs::symlink_metadata(path).map_err(StoreError::io(path))?;
        if !meta.is_dir() {
            return Err(not_safe(path, "is not a folder"));
        }
        check_owner(&meta, path)?;
        if meta.mode() & 0o022 != 0 {
            return Err(not_safe(path, "can be changed by other users: run `chmod 700` on it"));
        }
        Ok(())
    }

    fn check_ours(meta: &Metadata, path: &Path) -> Result<(), StoreError> {
        if !meta.is_file() {
            return Err(not_safe(path, "is not a regular file"));
        }
        if meta.nlink() > 1 {
            return Err(not_safe(path, "has a second name elsewhere: remove one of them"));
        }
        check_owner(meta, path)
    }

    fn check_owner(meta: &Metadata, path: &Path) -> Result<(), StoreError> {
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(not_safe(path, "belongs to another user"));
        }
        Ok(())
    }

    fn not_safe(path: &Path, why: &str) -> StoreError {
        StoreError::Unsafe { path: path.display().to_string().into(), why: why.into() }
    }
}

/// Where the user's profile folder is private already.
#[cfg(not(unix))]
mod private {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::path::Path;

    use crate::store::StoreError;

    pub(super) fn dir_mode(_: &mut DirBuilder) {}

    pub(super) fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
        options.open(path)
    }

    pub(super) fn create_new(path: &Path) -> std::io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path)
    }

    pub(super) fn make_private(_: &File, _: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn check_file(_: &File, _: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn check_dir(_: &Path) -> Result<(), StoreError> {
        Ok(())
    }
}
