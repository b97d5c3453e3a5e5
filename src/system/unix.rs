//! Linux, macOS and similar systems.
#![forbid(unsafe_code)]

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, geteuid, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::Signal;

/// The variable that names the user's home.
pub const HOME: &[&str] = &["HOME"];
/// Variables that name the folder of the user's configuration; the first that is set counts.
pub const CONFIG_HOME: &[&str] = &["XDG_CONFIG_HOME"];
/// Variables that name the folder of programs' state; the first that is set counts.
pub const STATE_HOME: &[&str] = &["XDG_STATE_HOME"];
/// Variables that have the user's name; the first that is set counts.
pub const USER_NAME: &[&str] = &["USER", "LOGNAME"];
/// The folder of configuration and rules that an administrator has made.
pub const SYSTEM_CONFIG: &str = "/etc/provost";
/// The rules in that folder.
pub const SYSTEM_POLICY: &str = "/etc/provost/policy.toml";
/// The longest address of a socket, in bytes, on every system that we know; a longer one cannot be bound.
pub const ADDRESS_BYTES_MAX: usize = 103;

/// Variables without which no program runs, and which a worker gets unchanged.
pub const NEEDED_VARIABLES: &[&str] = &[];
/// Variables that a jail sets itself on this system, in addition to those of every system.
pub const JAIL_VARIABLES: &[&str] = &[];
/// Whether names of variables that differ only in case are the same.
pub const VARIABLES_FOLD: bool = false;
/// The separator of the folders in `PATH`.
pub const PATH_SEPARATOR: char = ':';

/// Returns the folders with the system's programs, as `PATH` has them.
pub fn program_folders() -> String {
    "/usr/local/bin:/usr/bin:/bin".into()
}

/// Returns the shell, and its arguments before a command line.
pub fn shell() -> (PathBuf, &'static [&'static str]) {
    ("/bin/sh".into(), &["-c"])
}

/// Makes a file in a folder that has no name any more when this returns, so that it vanishes when the last
/// process has closed it. Only this user may read and write it.
///
/// # Errors
/// The system's error.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(uuid::Uuid::new_v4().simple().to_string());
    let file = private_file(OpenOptions::new().read(true).write(true).create_new(true)).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Returns the device and inode of a file, which no other file has at the same time.
///
/// # Errors
/// The system's error.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let meta = file.metadata()?;
    Ok((meta.dev(), meta.ino()))
}

/// The usual name of the account that may do everything.
pub const SUPERUSER: &str = "root";

/// A command that removes all access of other users to a folder.
pub const CLOSE: &str = "`chmod 700` on it";
/// A command that removes other users' right to write.
pub const CLOSE_FOR_WRITING: &str = "`chmod go-w` on it";

/// Returns the user's number.
pub fn user_number() -> u32 {
    geteuid().as_raw()
}

/// Checks whether our actions may affect the whole machine.
pub fn is_superuser() -> bool {
    geteuid().is_root()
}

/// Makes new files with these options accessible to the user alone.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes a folder, and the missing ones above it, for the user alone. Existing folders do not change.
///
/// # Errors
/// The system's error.
pub fn make_private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns a path without links in it.
///
/// # Errors
/// The system's error.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Does the same for a path that means the same to every process: links such as `/proc/self/cwd`, which would lead the daemon to a
/// folder of its own, are refused.
///
/// # Errors
/// The system's error.
pub fn shared_real_path(path: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    }
    real_path(path)
}

/// Checks that only we can read and write a file. A link itself is judged, and counts as open to others.
///
/// # Errors
/// A sentence about others who can.
pub fn private(path: &Path) -> Result<(), String> {
    let meta = known(std::fs::symlink_metadata(path))?;
    let us = user_number();
    if meta.uid() != us {
        return Err(format!("belongs to uid {} and not to us, uid {us}", meta.uid()));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(format!("is open to others (mode {:03o})", meta.mode() & 0o777));
    }
    Ok(())
}

/// Checks that only we and root can write to a file. A group of our own, as Debian gives every user, counts as us.
///
/// # Errors
/// A sentence about others who can.
pub fn trusted(path: &Path) -> Result<(), String> {
    owned(path)?;
    let meta = known(std::fs::metadata(path))?;
    let own_group = meta.gid() == meta.uid() && meta.gid() == rustix::process::getegid().as_raw();
    let others = if own_group { 0o002 } else { 0o022 };
    if meta.mode() & others != 0 {
        return Err(format!("can be written by others (mode {:03o})", meta.mode() & 0o777));
    }
    Ok(())
}

/// Checks that a file belongs to us or to root.
///
/// # Errors
/// The owner.
pub fn owned(path: &Path) -> Result<(), String> {
    let meta = known(std::fs::metadata(path))?;
    if meta.uid() != user_number() && meta.uid() != 0 {
        return Err(format!("belongs to uid {}, neither to us nor to root", meta.uid()));
    }
    Ok(())
}

fn known(meta: io::Result<Metadata>) -> Result<Metadata, String> {
    meta.map_err(|e| format!("cannot be examined: {e}"))
}

/// Returns the version of a file's state: its inode, and the second and nanosecond of its last change,
/// which no program can set.
pub fn version_of(meta: &Metadata) -> (u64, i64, i64) {
    (meta.ino(), meta.ctime(), meta.ctime_nsec())
}

/// Returns the time of a file's last change, by the kernel's own record, which no program can set back.
pub fn changed_at(meta: &Metadata) -> io::Result<SystemTime> {
    let seconds = u64::try_from(meta.ctime()).unwrap_or(0);
    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
}

/// Returns options to open a file for reading without waiting for a pipe's other end, and without getting a controlling terminal.
pub fn reading_without_waiting() -> cap_std::fs::OpenOptions {
    use cap_std::fs::OpenOptionsExt as _;
    let mut options = cap_std::fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Checks that a file can be replaced by another one of its name without losing any other property.
///
/// # Errors
/// A sentence about the property that would change.
pub fn replaceable(meta: &cap_std::fs::Metadata) -> Result<(), String> {
    use cap_std::fs::MetadataExt as _;
    let us = user_number();
    match () {
        () if meta.uid() != us => Err(format!("it belongs to uid {} and not to us, uid {us}", meta.uid())),
        () if meta.nlink() > 1 => {
            Err(format!("it has {} names (hard links), and would lose the others", meta.nlink()))
        }
        () => Ok(()),
    }
}

/// Returns a number that no other file in its folder has.
pub fn number_of(meta: &cap_std::fs::Metadata) -> u64 {
    cap_std::fs::MetadataExt::ino(meta)
}

/// Exchanges two names in a folder in one step; `false` if the system cannot do that.
///
/// # Errors
/// The system's error.
#[cfg(target_os = "linux")]
pub fn exchange(folder: &cap_std::fs::Dir, one: &str, other: &str) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, one, folder, other, rustix::fs::RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

/// Exchanges two names in a folder in one step; `false` if the system cannot do that.
///
/// # Errors
/// The system's error.
#[cfg(not(target_os = "linux"))]
pub fn exchange(_folder: &cap_std::fs::Dir, _one: &str, _other: &str) -> io::Result<bool> {
    Ok(false)
}

/// Returns the path of a door of this name, given the folder of the repository's sockets.
pub fn socket(runtime: &Path, name: &str) -> PathBuf {
    runtime.join(format!("{name}.sock"))
}

/// Returns a socket's address, as a person has typed it, as an absolute path.
///
/// # Errors
/// None on this system; on others, the fault of the address.
pub fn address(cwd: &Path, given: &Path) -> Result<PathBuf, String> {
    Ok(cwd.join(given))
}

/// Returns the columns of the terminal on standard output, if it is one.
pub fn terminal_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col)
}

/// Returns standard output, for a process that goes on using it when all others have closed it.
///
/// # Errors
/// Standard output is closed.
pub fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns this very program, even if its file has been replaced since, if the system can name it so.
pub fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// Prepares a command that outlives us; the new process does the rest with [`own_session`].
pub fn detach(command: &mut Command) -> &mut Command {
    command
}

/// Detaches this process from its terminal.
pub fn own_session() {
    // A process that was started by hand as the leader of a session stays it.
    let _own_session = rustix::process::setsid();
}

/// Lets other threads run before this one, on systems with priorities for threads.
pub fn lower_priority() {
    // On Linux a process number of 0 means this thread alone; elsewhere all threads, which would be too many.
    #[cfg(target_os = "linux")]
    let _at_the_old_one_otherwise = rustix::process::setpriority_process(None, LOW_PRIORITY);
}

/// The value of `nice` without a number.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;

/// Raises the limit of descriptors as far as the system lets this user: shells allow few by default, and every client takes
/// two. The limits of workers are set for each.
pub fn take_all_descriptors() {
    let most = getrlimit(Resource::Nofile).maximum;
    // If raising to the allowed limit fails after all, fewer clients find room.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// Returns how many descriptors this process may have open.
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Checks whether a call failed because this process or the system has run out of descriptors or memory.
/// The error says nothing about the file, and the call may work the next moment.
pub fn is_out_of_something(error: &std::io::Error) -> bool {
    let out = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|it| out.contains(&it))
}

/// A process whose end a caller waits for; `None` in it if the process has ended already.
#[derive(Debug)]
pub struct Process(Option<OwnedFd>);

impl Process {
    /// Holds a process, so that its number cannot come to mean another one.
    pub fn hold(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Self(pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    /// Waits for the end of the process, at most for the given time.
    pub fn has_ended(&self, at_most: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        let patience = Timespec::try_from(at_most).ok();
        rustix::event::poll(&mut polled, patience.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

/// Lets every user who can reach its folder run a file.
///
/// # Errors
/// The system's error.
pub fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))
}

/// Checks whether any user may execute a file.
pub fn is_executable(meta: &cap_std::fs::Metadata) -> bool {
    use cap_std::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o111 != 0
}

/// Returns the time when a process began, in the system's own unit: together with its number it means this process and no later
/// one. `None` if there is none, or if it has ended and only its parent has not noticed.
///
/// # Errors
/// The time cannot be found out, which does not mean that the process has ended.
pub fn process_began(pid: u32) -> io::Result<Option<u64>> {
    Ok(process_of(pid)?.map(|(began, _)| began))
}

/// Returns the time when a process began, as [`process_began`], and its user. Both belong to the same process, even if its number
/// is reused in between.
///
/// # Errors
/// The time and the user cannot be found out, which does not mean that the process has ended.
pub fn process_of(pid: u32) -> io::Result<Option<(u64, u32)>> {
    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    // The open folder stands for its process alone; no file is found below it once that has ended.
    let look = || {
        let process = rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty())?;
        let stat = rustix::fs::openat(&process, "stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // The kernel writes all of it at once: some fifty numbers, and a name of at most 64 bytes.
        let mut bytes = [0; 2048];
        let read = rustix::io::read(&stat, &mut bytes)?;
        Ok((began_in(&bytes[..read]), rustix::fs::fstat(&process)?.st_uid))
    };
    match look() {
        Ok((Ok(began), user)) => Ok(began.map(|began| (began, user))),
        Ok((Err(error), _)) => Err(error),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads the time in `/proc/PID/stat`; `None` for a process that has ended.
fn began_in(stat: &[u8]) -> io::Result<Option<u64>> {
    // The name is in parentheses and may contain anything, even parentheses; the state follows it, and the time
    // is the twentieth word from there.
    let after = stat.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &stat[at + 1..]);
    let after = String::from_utf8_lossy(after);
    let mut words = after.split_ascii_whitespace();
    let state = words.next();
    match words.nth(18).and_then(|word| word.parse().ok()) {
        Some(_) if matches!(state, Some("Z" | "X" | "x")) => Ok(None),
        Some(began) => Ok(Some(began)),
        None => Err(io::Error::other("/proc has an unknown form")),
    }
}

/// Checks whether a process is stopped, by a signal or a debugger: it answers nothing then until it goes on. `false` also if that
/// is unknown.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state is the first word behind the name, which stands in parentheses.
    let after = stat.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &stat[at + 1..]);
    matches!(after.iter().find(|byte| **byte != b' '), Some(b'T' | b't'))
}

/// How many processes above this one are examined.
const ABOVE_MAX: usize = 64;

/// Returns the process that started this one.
pub fn parent_process() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// Returns the folder in which a process runs, if the system shows it.
pub fn working_folder(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Returns the processes above this one, its parent first, as far as the system shows them, without the first process.
pub fn processes_above() -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let first = parent_process().filter(|pid| *pid > 1);
    std::iter::successors(first, |pid| parent_of(*pid).filter(|pid| *pid > 1)).take(ABOVE_MAX).collect()
}

/// Returns the name of a process's program, and whether it was started with one of these variables; `None` if the system
/// does not show it.
pub fn started_as(pid: u32, variables: &[&str]) -> Option<(String, bool)> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut set = environment.split(|byte| *byte == 0).filter_map(|it| it.split(|byte| *byte == b'=').next());
    let has = set.any(|it| variables.iter().any(|name| name.as_bytes() == it));
    Some((name.trim_end().to_owned(), has))
}

/// Returns the arguments with which a process was started, its program's name first; `None` if the system does not show them.
pub fn arguments_of(pid: u32) -> Option<Vec<String>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).map(|it| String::from_utf8_lossy(it).into_owned());
    Some(words.collect())
}

/// Returns the processes whose programs have this name, and that have a controlling terminal. Blocking: it reads all processes.
pub fn screens_of(name: &str) -> Vec<super::Screen> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    // Both clocks are read once: the search takes time, and two readings would give two times for one moment.
    let machine_began = SystemTime::now().checked_sub(super::boot_time());
    let screen = |pid: u32| {
        let after = Duration::from_millis(process_began(pid).ok()??.saturating_mul(1_000 / TICKS_A_SECOND));
        let began = machine_began?.checked_add(after)?;
        Some(super::Screen { pid, folder: working_folder(pid)?, began })
    };
    numbers.filter(|pid| is_named_at_a_terminal(*pid, name)).filter_map(screen).collect()
}

/// The number of units in a second of the times in `/proc`, the same on each processor that Provost runs on.
const TICKS_A_SECOND: u64 = 100;

fn is_named_at_a_terminal(pid: u32, name: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((before, after)) = stat.rsplit_once(')') else { return false };
    // State, parent, group, session and terminal follow the name.
    let mut words = after.split_ascii_whitespace();
    let is_alive = words.next().is_some_and(|it| it != "Z" && it != "X");
    let terminal = words.nth(3).unwrap_or("0");
    is_alive && terminal != "0" && before.split_once('(').is_some_and(|(_, it)| it == name)
}

/// The signals that this process receives.
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// Caught and never read: a write past the limit of `ulimit -f` then fails like one on a full disk, and the writing process
    /// survives to report it. Programs that it starts have the system's default for the signal.
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    /// Catches the signals, so that they do not end the process by themselves. Must be called within the runtime.
    ///
    /// # Errors
    /// The system's error.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Returns the next signal. Can be cancelled while it waits without losing one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }
}

/// A terminal that does not echo typing, until this is dropped.
pub struct HiddenTyping(rustix::termios::Termios);

impl HiddenTyping {
    /// Stops echoing from now on.
    ///
    /// # Errors
    /// Standard input is no terminal, or is gone.
    pub fn begin() -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenTyping {
    fn drop(&mut self) {
        // This fails only for a terminal that is gone.
        let _restored =
            rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
