//! The files of a state folder: private, owned by this user, reached without following links, and held by one daemon.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{DATABASE, IN_DATABASE, JOURNAL_KEY, LEASE, StoreError, WAYS_BACK};
use provost_base::limits::STORE_CHECKED_BYTES_MAX;
use provost_base::{Secret, Timestamp};
use provost_system as system;

/// The length of the journal's key, in bytes: as long as the MAC.
const KEY_LEN: usize = 32;

/// The first bytes of a file of SQLite.
const DATABASE_HEAD: &[u8; 16] = b"SQLite format 3\0";

/// Makes the folder if necessary, and returns its path without links.
pub(super) fn state_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    private::dir_mode(&mut builder);
    builder.create(dir).map_err(StoreError::io(dir))?;
    existing_dir(dir)
}

/// Returns the path of an existing folder, without links.
pub(super) fn existing_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let dir = system::real_path(dir).map_err(StoreError::io(dir))?;
    private::check_dir(&dir)?;
    Ok(dir)
}

/// Returns the database file, after making it empty if it does not exist. SQLite gives its companions the same mode.
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

/// Returns the database file, which must exist. It is not opened to find that out: when a process closes any
/// descriptor of a file, the system drops all locks that SQLite has on it in the same process.
pub(super) fn existing_database(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(DATABASE);
    let meta = std::fs::symlink_metadata(&path).map_err(StoreError::io(&path))?;
    private::check_meta(&meta, &path)?;
    Ok(path)
}

/// Checks whether there is a database at all.
pub(super) fn has_database(dir: &Path) -> bool {
    dir.join(DATABASE).symlink_metadata().is_ok_and(|meta| meta.len() > 0)
}

/// Checks whether the database is small enough for a start to check all of its pages.
pub(super) fn is_small(dir: &Path) -> bool {
    dir.join(DATABASE).symlink_metadata().is_ok_and(|meta| meta.len() <= STORE_CHECKED_BYTES_MAX)
}

/// Refuses a folder that has the key of a journal, or its marks, and no database: a new one would issue the same
/// numbers again.
pub(super) fn must_not_be_gone(dir: &Path, marked: bool) -> Result<(), StoreError> {
    let keyed = dir.join(JOURNAL_KEY).symlink_metadata().is_ok();
    if has_database(dir) || !(keyed || marked) {
        return Ok(());
    }
    let what = if keyed { "its key beside it" } else { "the notes about its journal" };
    Err(StoreError::Gone { path: dir.join(DATABASE).display().to_string().into(), what })
}

/// Returns the database and its companions, as SQLite names them.
fn companions(dir: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| dir.join(format!("{DATABASE}{end}")))
}

/// The identity of the file at a path; empty if the system does not tell.
pub(super) type Identity = private::Stamp;

/// Returns the identity of the file at a path; `None` if there is none.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    private::stamp(path).map(private::Stamp::identity)
}

/// The state of the files of an open database, and of its key, without which no later start can read the data. The
/// content of the shared-memory file does not count, since readers write to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamps {
    files: [PathBuf; 4],
    seen: Seen,
}

type Seen = [Option<private::Stamp>; 4];

fn seen(files: &[PathBuf; 4]) -> Seen {
    let [database, log, shared, key] = files;
    let identity = |path| private::stamp(path).map(private::Stamp::identity);
    [private::stamp(database), private::stamp(log), identity(shared), identity(key)]
}

impl Stamps {
    /// Returns their present state.
    pub(super) fn of(dir: &Path) -> Self {
        let [database, log, shared] = companions(dir);
        let files = [database, log, shared, dir.join(JOURNAL_KEY)];
        let seen = seen(&files);
        Self { files, seen }
    }

    /// Takes over their state after one of the daemon's own writes, if they are the same files.
    pub(super) fn renew(&mut self) {
        for (then, now) in self.seen.iter_mut().zip(seen(&self.files)) {
            let same =
                then.clone().map(private::Stamp::identity) == now.clone().map(private::Stamp::identity);
            if same {
                *then = now;
            }
        }
    }

    /// Checks that they are the same files, and in the same state. After one of the daemon's own writes has failed,
    /// their state is not known: then they only have to be the same files.
    pub(super) fn check(&self, settled: bool) -> Result<(), StoreError> {
        let counts = |it: &Option<private::Stamp>| match settled {
            true => it.clone(),
            false => it.clone().map(private::Stamp::identity),
        };
        let now = seen(&self.files);
        let other = self.seen.iter().zip(&now).position(|(then, now)| counts(then) != counts(now));
        other
            .map_or(Ok(()), |n| Err(StoreError::Swapped { path: self.files[n].display().to_string().into() }))
    }
}

/// Renames the database and its companions out of the way; returns the new name of the database.
pub(super) fn set_aside(dir: &Path, now: Timestamp) -> Result<Option<PathBuf>, StoreError> {
    rename_aside(dir, &format!("{DATABASE}.damaged-{}", now.0))
}

/// Renames them to a name that was chosen before.
pub(super) fn rename_aside(dir: &Path, name: &str) -> Result<Option<PathBuf>, StoreError> {
    let aside = dir.join(name);
    let mut done = None;
    for (from, end) in companions(dir).iter().zip(["", "-wal", "-shm"]) {
        let to = dir.join(format!("{name}{end}"));
        match std::fs::rename(from, &to) {
            Ok(()) => done = Some(aside.clone()),
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => return Err(StoreError::io(from)(err)),
        }
    }
    sync_dir(dir)?;
    Ok(done)
}

/// Renames the key out of the way.
pub(super) fn set_key_aside(dir: &Path, now: Timestamp) -> Result<(), StoreError> {
    let path = dir.join(JOURNAL_KEY);
    match std::fs::rename(&path, dir.join(format!("{JOURNAL_KEY}.damaged-{}", now.0))) {
        Err(err) if err.kind() != ErrorKind::NotFound => Err(StoreError::io(&path)(err)),
        _ => sync_dir(dir),
    }
}

/// Replaces the present key with another one; the old key is kept beside it.
pub(super) fn replace_journal_key(dir: &Path, key: &Secret, now: Timestamp) -> Result<(), StoreError> {
    set_key_aside(dir, now)?;
    put_journal_key(dir, key)
}

/// Returns the path of a backup until it has been checked.
pub(super) fn half(dir: &Path) -> PathBuf {
    dir.join("provost.db.new")
}

/// Removes the remains of an interrupted backup or move, with SQLite's companions.
#[cfg(feature = "postgres")]
pub(super) fn remove_half(dir: &Path) -> Result<(), StoreError> {
    let half = half(dir);
    ["", "-journal", "-wal", "-shm"].into_iter().try_for_each(|end| {
        let mut name = half.clone().into_os_string();
        name.push(end);
        remove(Path::new(&name))
    })
}

/// Removes a file of the daemon, if it exists, so that it stays removed.
pub(super) fn forget(path: &Path) -> Result<(), StoreError> {
    remove(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(err) if err.kind() != ErrorKind::NotFound => Err(StoreError::io(path)(err)),
        _ => Ok(()),
    }
}

/// Returns the path of a file that will be made, without links: SQLite follows none.
pub(super) fn to_be_made(path: &Path) -> Result<PathBuf, StoreError> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = system::real_path(folder).map_err(StoreError::io(folder))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Makes a new file that only this user can read.
pub(super) fn new_private(path: &Path) -> Result<File, StoreError> {
    let file = private::create_new(path).map_err(StoreError::io(path))?;
    private::make_private(&file, path)?;
    Ok(file)
}

/// Copies a file of the user, which must be a database, to a new private one.
pub(super) fn fetch(from: &Path, to: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(to) {
        Err(err) if err.kind() != ErrorKind::NotFound => return Err(StoreError::io(to)(err)),
        _ => {}
    }
    // Reading a pipe would block, and a device may have no end.
    let is_file = std::fs::metadata(from).map_err(StoreError::io(from))?.is_file();
    let mut source = is_file.then(|| File::open(from)).transpose().map_err(StoreError::io(from))?;
    let mut head = [0; DATABASE_HEAD.len()];
    let read = source.as_mut().map(|it| it.read_exact(&mut head));
    let Some(mut source) = source.filter(|_| read.is_some_and(|it| it.is_ok()) && head == *DATABASE_HEAD)
    else {
        return Err(StoreError::no_backup(from));
    };
    let mut target = new_private(to)?;
    let copied = target.write_all(&head).and_then(|()| std::io::copy(&mut source, &mut target));
    copied.map(drop).map_err(|err| {
        drop(std::fs::remove_file(to));
        StoreError::io(to)(err)
    })
}

/// Gives a checked backup the database's name.
pub(super) fn rename_into_place(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(DATABASE);
    std::fs::rename(half(dir), &path).map_err(StoreError::io(&path))?;
    sync_dir(dir)
}

/// Waits until a file is on the disk.
pub(super) fn sync(path: &Path) -> Result<(), StoreError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(StoreError::io(path))
}

/// Opens a file with marks; makes it, with its folder, if `make` says so.
pub(super) fn open_mark(path: &Path, make: bool) -> Result<File, StoreError> {
    if make && let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        private::dir_mode(&mut builder);
        builder.create(folder).map_err(StoreError::io(folder))?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(make).create(make).truncate(false);
    let file = private::open(&mut options, path).map_err(StoreError::io(path))?;
    if make {
        private::make_private(&file, path)?;
    }
    private::check_file(&file, path)?;
    Ok(file)
}

/// The next step for a lost key of a state in a database, which no backup of Provost has.
const OF_EACH_HOST: &str = ". It is in each copy of this folder, and has the same content on each full host; with another host, this machine can join as a new one: `provost host join` in a folder without a state";

/// Returns the journal's key, if it exists.
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
        // Of a state in a database, no backup has it.
        let ways = if dir.join(IN_DATABASE).exists() { OF_EACH_HOST } else { WAYS_BACK };
        return Err(StoreError::Key(
            format!("{} is not a journal key: bring it back{ways}", path.display()).into(),
        ));
    }
    Ok(Some(Secret::new(bytes)))
}

/// Makes a random key, and writes it to its file.
pub(super) fn make_journal_key(dir: &Path) -> Result<Secret, StoreError> {
    let mut bytes = vec![0; KEY_LEN];
    getrandom::fill(&mut bytes).map_err(|err| StoreError::Key(format!("no random numbers: {err}").into()))?;
    let key = Secret::new(bytes);
    put_journal_key(dir, &key)?;
    Ok(key)
}

/// Writes a key. It appears under its name only when it is whole and on the disk.
pub(super) fn put_journal_key(dir: &Path, key: &Secret) -> Result<(), StoreError> {
    put_private(dir, JOURNAL_KEY, key.expose())
}

/// Writes a file that only this user can read. It appears under its name only when it is whole and on the disk.
pub(super) fn put_private(dir: &Path, name: &str, content: &[u8]) -> Result<(), StoreError> {
    let (path, half) = (dir.join(name), dir.join(format!("{name}.new")));
    match std::fs::remove_file(&half) {
        Err(err) if err.kind() != ErrorKind::NotFound => return Err(StoreError::io(&half)(err)),
        _ => {}
    }
    let mut file = private::create_new(&half).map_err(StoreError::io(&half))?;
    private::make_private(&file, &half)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(StoreError::io(&half))?;
    std::fs::rename(&half, &path).map_err(StoreError::io(&path))?;
    sync_dir(dir)
}

/// Returns the text of such a file, if it exists.
pub(super) fn private_text(dir: &Path, name: &str, most: u64) -> Result<Option<String>, StoreError> {
    let path = dir.join(name);
    let file = match private::open(OpenOptions::new().read(true), &path) {
        Ok(file) => file,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(StoreError::io(&path)(err)),
    };
    private::check_file(&file, &path)?;
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(StoreError::io(&path))?;
    Ok(Some(text))
}

/// The time for which a lease may outlive its daemon, and for which the next daemon tries.
const LEASE_LINGERS: Duration = Duration::from_millis(500);
const LEASE_LOOK: Duration = Duration::from_millis(10);

/// The right to write, for as long as this value lives. The kernel takes it back when the process ends, in any way.
#[derive(Debug)]
pub(super) struct Lease {
    _file: File,
}

impl Lease {
    /// Takes the lease, or returns who has it.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(LEASE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = private::open(&mut options, &path).map_err(StoreError::io(&path))?;
        private::make_private(&file, &path)?;
        // A process that a killed daemon was just starting has the file open, too, until it has executed its own program.
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

/// Returns the process id in a lease, once its holder has written it.
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

    use crate::StoreError;

    pub(super) fn dir_mode(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    /// The identity of a file, its length, and the time of the last write to it.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(crate) struct Stamp {
        file: (u64, u64),
        wrote: Option<(u64, i64, i64)>,
    }

    impl Stamp {
        /// Returns the stamp with the file's identity alone.
        pub(crate) fn identity(self) -> Self {
            Self { wrote: None, ..self }
        }
    }

    pub(super) fn stamp(path: &Path) -> Option<Stamp> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let wrote = Some((meta.len(), meta.mtime(), meta.mtime_nsec()));
        Some(Stamp { file: (meta.dev(), meta.ino()), wrote })
    }

    /// Opens a file without following a link, and without waiting if another program has put a pipe there.
    pub(super) fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path)
    }

    pub(super) fn create_new(path: &Path) -> std::io::Result<File> {
        open(OpenOptions::new().read(true).write(true).create_new(true), path)
    }

    /// Sets the mode regardless of the umask, once it is certain that the file is this user's.
    pub(super) fn make_private(file: &File, path: &Path) -> Result<(), StoreError> {
        let meta = file.metadata().map_err(StoreError::io(path))?;
        check_ours(&meta, path)?;
        if meta.mode() & 0o777 != 0o600 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(StoreError::io(path))?;
        }
        Ok(())
    }

    pub(super) fn check_file(file: &File, path: &Path) -> Result<(), StoreError> {
        check_meta(&file.metadata().map_err(StoreError::io(path))?, path)
    }

    pub(super) fn check_meta(meta: &Metadata, path: &Path) -> Result<(), StoreError> {
        check_ours(meta, path)?;
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

/// Systems on which the user's profile folder is already private.
#[cfg(not(unix))]
mod private {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::path::Path;

    use crate::StoreError;

    pub(super) fn dir_mode(_: &mut DirBuilder) {}

    /// On these systems, an open file can be neither moved nor removed.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(crate) struct Stamp;

    impl Stamp {
        pub(crate) fn identity(self) -> Self {
            self
        }
    }

    pub(super) fn stamp(_: &Path) -> Option<Stamp> {
        None
    }

    pub(super) fn check_meta(_: &std::fs::Metadata, _: &Path) -> Result<(), StoreError> {
        Ok(())
    }

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
