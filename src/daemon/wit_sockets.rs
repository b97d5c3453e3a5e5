//! The places of the wit door: `.wit/daemon.sock` and `.wit/daemon.pid` in every work tree of the repository.
//!
//! wit's clients look only there, and start a daemon of their own when the number in `daemon.pid` is
//! that of no process; that daemon then takes the socket's name. So the number is written before the socket is made.
//! The daemon checks both every second, and restores those that have vanished. It never takes the live socket of
//! another process, which has clients of its own. wit, 1 and 2.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{GRACE, Shared};
use provost_api::wire::DoorAt;
use provost_base::limits::WIT_WORKTREES_MAX;
use provost_config::{Places, WitOpen};
use provost_jail::{PLACEHOLDER_MTIME, Root};
use provost_protocols::FrontDoor as _;
use provost_protocols::wit::Wit;
use provost_service::Base;
use provost_system as system;
use provost_transport::accept::{Capacity, accept_loop};
use provost_transport::listen::{Bound, Identity, bind_in, nobody_listens_in};

/// How often the sockets are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The folder in a work tree, and the files in it.
const FOLDER: &str = ".wit";
const SOCKET: &str = "daemon.sock";
const PID_FILE: &str = "daemon.pid";

/// The beginning of the notes about this door.
const NOTE: &str = "wit: ";

/// The sockets of all work trees.
pub(super) struct WitSockets {
    door: Wit,
    places: Places,
    open: WitOpen,
    tasks: TaskTracker,
    stop: CancellationToken,
    shared: Arc<Mutex<Shared>>,
    capacity: Capacity,
    at: BTreeMap<PathBuf, Result<Seat, String>>,
}

/// One socket of ours.
struct Seat {
    folder: OwnedFd,
    socket: Identity,
    pid_file: PidFile,
    stop: CancellationToken,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The accept loop removes the socket, if it is still ours.
        self.stop.cancel();
    }
}

impl WitSockets {
    pub(super) fn new(
        door: Wit,
        places: &Places,
        open: WitOpen,
        (tasks, stop, capacity): (TaskTracker, CancellationToken, Capacity),
        shared: Arc<Mutex<Shared>>,
    ) -> Self {
        Self { door, places: places.clone(), open, tasks, stop, shared, capacity, at: BTreeMap::new() }
    }

    /// Places the sockets, and keeps them in place until the daemon stops.
    pub(super) async fn keep(self) {
        let (stop, tasks) = (self.stop.clone(), self.tasks.clone());
        // A blocking thread accesses the files: a slow network disk must not stall other tasks.
        let Ok(mut sockets) = looked(self).await else { return };
        tasks.spawn(async move {
            while tokio::time::timeout(LOOK_EVERY, stop.cancelled()).await.is_err() {
                match looked(sockets).await {
                    Ok(again) => sockets = again,
                    Err(err) => return tracing::error!(%err, "the wit sockets are no longer watched"),
                }
            }
        });
    }

    /// Restores missing sockets. Without a free descriptor nothing is known to be missing, and all stay.
    fn look(&mut self) {
        let can_look = || File::open("/").is_ok();
        if !can_look() {
            return;
        }
        let wanted = self.wanted();
        if !can_look() {
            return;
        }
        self.at.retain(|top, _| wanted.contains(top));
        for top in wanted {
            let before = match self.at.get(&top) {
                Some(Ok(seat)) => match seat.look(&top) {
                    Ok(()) => continue,
                    Err(why) if is_out_of_something(&why) => continue,
                    Err(why) => {
                        tracing::warn!(door = "wit", at = %top.display(), "{why:#}; placing it again");
                        None
                    }
                },
                Some(Err(why)) => Some(why.clone()),
                None => None,
            };
            self.at.remove(&top);
            let placed = self.place(&top).map_err(|why| format!("{why:#}"));
            if let Err(why) = &placed
                && before.as_ref() != Some(why)
            {
                tracing::warn!(door = "wit", "{why}");
            }
            self.at.insert(top, placed);
        }
        self.tell();
    }

    /// Returns the work trees that should have a socket.
    fn wanted(&self) -> Vec<PathBuf> {
        if self.open == WitOpen::Never {
            return Vec::new();
        }
        let tops = self.places.worktrees(WIT_WORKTREES_MAX);
        let found = |top: &PathBuf| {
            top.join(FOLDER).symlink_metadata().is_ok_and(|meta| meta.mtime() != PLACEHOLDER_MTIME)
        };
        if self.open == WitOpen::Found && !tops.iter().any(found) { Vec::new() } else { tops }
    }

    fn place(&self, top: &Path) -> Result<Seat> {
        let root = Root::open(top).with_context(|| top.display().to_string())?;
        let door = self.door.at(Base::new(root));
        let (seat, bound) = Seat::take(top, &self.stop)?;
        tracing::info!(door = "wit", address = %bound.path().display(), "door open");
        let serve = move |stream, guard| door.serve(stream, guard);
        self.tasks.spawn(accept_loop(bound, self.capacity.clone(), seat.stop.clone(), GRACE, serve));
        Ok(seat)
    }

    /// Updates the data that `provost status` shows.
    fn tell(&self) {
        let about = &mut self.shared.lock().unwrap_or_else(PoisonError::into_inner).0;
        about.doors.retain(|it| it.door != self.door.name());
        about.notes.retain(|it| !it.starts_with(NOTE));
        for (top, at) in &self.at {
            let address = top.join(FOLDER).join(SOCKET).display().to_string();
            match at {
                Ok(_) => about.doors.push(DoorAt { door: self.door.name().into(), address }),
                Err(why) => about.notes.push(format!("{NOTE}{why}")),
            }
        }
    }
}

/// Checks whether a check failed because the daemon itself lacks descriptors or memory.
fn is_out_of_something(why: &anyhow::Error) -> bool {
    why.chain().filter_map(|it| it.downcast_ref::<io::Error>()).any(system::is_out_of_something)
        || why
            .chain()
            .filter_map(|it| it.downcast_ref::<Errno>())
            .any(|it| system::is_out_of_something(&(*it).into()))
}

async fn looked(mut sockets: WitSockets) -> Result<WitSockets, tokio::task::JoinError> {
    tokio::task::spawn_blocking(move || {
        sockets.look();
        sockets
    })
    .await
}

impl Seat {
    fn take(top: &Path, stop: &CancellationToken) -> Result<(Self, Bound)> {
        let path = top.join(FOLDER).join(SOCKET);
        let folder = wit_folder(top)?;
        if !nobody_listens_in(&folder, &path, OsStr::new(SOCKET))
            .with_context(|| format!("{}: cannot be tried", path.display()))?
        {
            let pid = pid_in(&folder);
            let who =
                pid.map_or_else(|| "another daemon".into(), |pid| format!("another daemon (process {pid})"));
            let end = pid.map_or_else(|| "stop it".into(), |pid| format!("stop it (kill {pid})"));
            bail!(
                "{}: {who} listens here; {end}, and Provost takes the address within seconds",
                path.display()
            );
        }
        // Clients read the number first, and take the socket for dead without it.
        let pid_file =
            PidFile::write(&folder).with_context(|| top.join(FOLDER).join(PID_FILE).display().to_string())?;
        let bound = bind_in(folder.try_clone()?, &path)?;
        let socket = bound.identity();
        Ok((Self { folder, socket, pid_file, stop: stop.child_token() }, bound))
    }

    /// Checks that nothing has changed; restores the number if only that is gone.
    fn look(&self, top: &Path) -> Result<()> {
        let there = open_wit(&open_top(top)?)?;
        let same = |a: &OwnedFd, b: &OwnedFd| -> io::Result<bool> {
            let (a, b) = (fstat(a)?, fstat(b)?);
            Ok((a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
        };
        if !same(&there, &self.folder)? {
            bail!("{} is another folder now", top.join(FOLDER).display());
        }
        match statat(&self.folder, SOCKET, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Identity::of(&stat) == self.socket => {}
            Ok(_) => bail!("{} was replaced", top.join(FOLDER).join(SOCKET).display()),
            Err(Errno::NOENT) => bail!("{} was removed", top.join(FOLDER).join(SOCKET).display()),
            Err(e) => return Err(io::Error::from(e).into()),
        }
        if !self.pid_file.is_ours() {
            tracing::warn!(door = "wit", at = %top.display(), "daemon.pid named another process; written again");
            self.pid_file.write_again()?;
        }
        Ok(())
    }
}

fn open_top(top: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(top, flags, Mode::empty()).with_context(|| top.display().to_string())
}

/// Opens the folder itself, never the target of a link with that name.
fn open_wit(top: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(top, FOLDER, flags, Mode::empty())
}

/// Opens the folder in a work tree, and makes it if it is missing; git ignores its contents.
fn wit_folder(top: &Path) -> Result<OwnedFd> {
    let path = top.join(FOLDER);
    let top = open_top(top)?;
    match mkdirat(&top, FOLDER, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(io::Error::from(e)).with_context(|| path.display().to_string()),
    }
    let folder = match open_wit(&top) {
        Ok(folder) => folder,
        Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
            bail!("{}: is a link or a file, and must be a folder; remove it", path.display())
        }
        Err(e) => return Err(io::Error::from(e)).with_context(|| path.display().to_string()),
    };
    // This is a jail's placeholder, which goes away with that worker. The jail must not find it filled.
    if fstat(&folder).map_err(io::Error::from)?.st_mtime == PLACEHOLDER_MTIME {
        bail!("{}: keeps the place free while a worker runs; Provost takes it afterwards", path.display());
    }
    if let Err(why) = system::trusted(&path) {
        bail!(
            "{}: {why}, who could put another socket there; run {}",
            path.display(),
            system::CLOSE_FOR_WRITING
        );
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&folder, ".gitignore", flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH) {
        Ok(file) => File::from(file).write_all(b"*\n")?,
        Err(Errno::EXIST) => {}
        Err(e) => {
            return Err(io::Error::from(e)).with_context(|| path.join(".gitignore").display().to_string());
        }
    }
    Ok(folder)
}

/// Returns the number in `daemon.pid`, as wit's clients read it.
fn pid_in(folder: &OwnedFd) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, PID_FILE, flags, Mode::empty()).ok()?;
    let is_file = fstat(&file).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile);
    let mut text = String::new();
    if is_file {
        File::from(file).take(32).read_to_string(&mut text).ok()?;
    }
    text.trim().parse().ok()
}

/// Our number in a work tree; dropping this removes it, if it is still ours.
struct PidFile {
    folder: OwnedFd,
    identity: Mutex<Identity>,
}

impl PidFile {
    fn write(folder: &OwnedFd) -> io::Result<Self> {
        let identity = Mutex::new(write_pid(folder)?);
        Ok(Self { folder: folder.try_clone()?, identity })
    }

    fn write_again(&self) -> io::Result<()> {
        *self.identity() = write_pid(&self.folder)?;
        Ok(())
    }

    fn identity(&self) -> std::sync::MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ours(&self) -> bool {
        statat(&self.folder, PID_FILE, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| Identity::of(&stat) == *self.identity())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // A file that stays behind is replaced at the next start.
            let _removed = unlinkat(&self.folder, PID_FILE, AtFlags::empty());
        }
    }
}

/// Writes the process id beside its place and moves it there, so that no client reads half of it.
fn write_pid(folder: &OwnedFd) -> io::Result<Identity> {
    let name = format!(".provost-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = File::from(openat(folder, name.as_str(), flags, mode)?);
    let written = file.write_all(std::process::id().to_string().as_bytes());
    let moved =
        written.and_then(|()| renameat(folder, name.as_str(), folder, PID_FILE).map_err(io::Error::from));
    if moved.is_err() {
        let _removed = unlinkat(folder, name.as_str(), AtFlags::empty());
    }
    moved.and_then(|()| Ok(Identity::of(&fstat(&file)?)))
}
