//! Linux, macOS and their like.
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
/// Those that name the folder of the user's configuration, the first that is set counting.
pub const CONFIG_HOME: &[&str] = &["XDG_CONFIG_HOME"];
/// Variables that name the folder of programs' state; the first that is set counts.
pub const STATE_HOME: &[&str] = &["XDG_STATE_HOME"];
/// Variables that have the user's name; the first that is set counts.
pub const USER_NAME: &[&str] = &["USER", "LOGNAME"];
/// The folder of configuration and rules that an administrator has made.
pub const SYSTEM_CONFIG: &str = "/etc/provost";
/// The rules among them.
pub const SYSTEM_POLICY: &str = "/etc/provost/policy.toml";
/// The longest address of a socket, in bytes, on every system that we know; longer ones cannot be bound.
pub const ADDRESS_BYTES_MAX: usize = 103;

/// Variables without which nothing runs, and which a worker gets as we have them.
pub const NEEDED_VARIABLES: &[&str] = &[];
/// Variables that a jail sets itself on this system, besides those that it sets everywhere.
pub const JAIL_VARIABLES: &[&str] = &[];
/// Whether names of variables that differ in the size of their letters alone are the same.
pub const VARIABLES_FOLD: bool = false;
/// The separator of the folders in `PATH`.
pub const PATH_SEPARATOR: char = ':';

/// The folders with the system's programs, as `PATH` has them.
pub fn program_folders() -> String {
    "/usr/local/bin:/usr/bin:/bin".into()
}

/// The shell, and what comes before a command line for it.
pub fn shell() -> (PathBuf, &'static [&'static str]) {
    ("/bin/sh".into(), &["-c"])
}

/// A file in a folder that has no name by the time this returns, so that nothing is left of it when the last
/// process has closed it. Only ours to read and write.
///
/// # Errors
/// What the system says.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(uuid::Uuid::new_v4().simple().to_string());
    let file = private_file(OpenOptions::new().read(true).write(true).create_new(true)).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Device and inode of a file, which no other file has at the same time.
///
/// # Errors
/// What the system says.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let meta = file.metadata()?;
    Ok((meta.dev(), meta.ino()))
}

/// The name that users have for the account that may do everything.
pub const SUPERUSER: &str = "root";

/// A command that takes all access to a folder from other users.
pub const CLOSE: &str = "`chmod 700` on it";
/// A command that takes the right to write from other users.
pub const CLOSE_FOR_WRITING: &str = "`chmod go-w` on it";

/// The user's number.
pub fn user_number() -> u32 {
    geteuid().as_raw()
}

/// Whether whatever we do concerns the whole machine.
pub fn is_superuser() -> bool {
    geteuid().is_root()
}

/// Files made with these options are the user's alone.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes a folder, and those above it that are missing, for the user alone. What is there already stays as it is.
///
/// # Errors
/// What the system says.
pub fn make_private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A path without links in it.
///
/// # Errors
/// What the system says.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// The same for a path that is the same to every process: links such as `/proc/self/cwd` lead the daemon to a place of its own, and
/// are refused.
///
/// # Errors
/// What the system says.
pub fn shared_real_path(path: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    }
    real_path(path)
}

/// Whether only we can read and write it. A link is judged itself, and is open to others.
///
/// # Errors
/// A sentence about who else can.
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

/// Whether only we and root can write it. A group of our own, as Debian gives every user, counts as us.
///
/// # Errors
/// A sentence about who else can.
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

/// Whether it belongs to us or to root.
///
/// # Errors
/// Whom it belongs to.
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

/// What tells one state of a file from the next: its inode, and the second and nanosecond of its last change,
/// which no program can set.
pub fn version_of(meta: &Metadata) -> (u64, i64, i64) {
    (meta.ino(), meta.ctime(), meta.ctime_nsec())
}

/// When a file last changed, by the kernel's own account, which no program can set back.
pub fn changed_at(meta: &Metadata) -> io::Result<SystemTime> {
    let seconds = u64::try_from(meta.ctime()).unwrap_or(0);
    let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
}

/// How a file is opened for reading without waiting for a pipe's other end, and without taking a terminal over.
pub fn reading_without_waiting() -> cap_std::fs::OpenOptions {
    use cap_std::fs::OpenOptionsExt as _;
    let mut options = cap_std::fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Whether a file can be replaced by another one of its name without more than that changing.
///
/// # Errors
/// A sentence about what would change.
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

/// A number that tells a file from all others in its folder.
pub fn number_of(meta: &cap_std::fs::Metadata) -> u64 {
    cap_std::fs::MetadataExt::ino(meta)
}

/// Has two names in a folder change places, in one step; `false` where the system cannot.
///
/// # Errors
/// What the system says.
#[cfg(target_os = "linux")]
pub fn exchange(folder: &cap_std::fs::Dir, one: &str, other: &str) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, one, folder, other, rustix::fs::RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

/// Has two names in a folder change places, in one step; `false` where the system cannot.
///
/// # Errors
/// What the system says.
#[cfg(not(target_os = "linux"))]
pub fn exchange(_folder: &cap_std::fs::Dir, _one: &str, _other: &str) -> io::Result<bool> {
    Ok(false)
}

/// Where a door of this name is, given the folder of the repository's sockets.
pub fn socket(runtime: &Path, name: &str) -> PathBuf {
    runtime.join(format!("{name}.sock"))
}

/// A socket's address as a person has typed it, made absolute.
///
/// # Errors
/// Never here; where addresses have a form of their own, what is wrong with this one.
pub fn address(cwd: &Path, given: &Path) -> Result<PathBuf, String> {
    Ok(cwd.join(given))
}

/// The columns of the terminal on standard output, if it is one.
pub fn terminal_width() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col)
}

/// Standard output, for a process that goes on using it when all others have closed it.
///
/// # Errors
/// When it is closed.
pub fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// This very program, even if its file has been replaced since, where the system can name it so.
pub fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// Prepares a command that outlives us; what is left to do the new process does with [`own_session`].
pub fn detach(command: &mut Command) -> &mut Command {
    command
}

/// Takes this process out of its terminal's hands.
pub fn own_session() {
    // Already the leader of a session when started by hand that way; then nothing is to be done.
    let _own_session = rustix::process::setsid();
}

/// Lets other threads go before this one, where systems have priorities for threads.
pub fn lower_priority() {
    // On Linux a process number of 0 means this thread alone; elsewhere all of them, which would be too many.
    #[cfg(target_os = "linux")]
    let _at_the_old_one_otherwise = rustix::process::setpriority_process(None, LOW_PRIORITY);
}

/// As `nice` has it without a number.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;

/// Takes as many descriptors as the system lets this user have: shells allow few by default, and every client takes
/// two. What a worker may have is set for each.
pub fn take_all_descriptors() {
    let most = getrlimit(Resource::Nofile).maximum;
    // It is raised to what is allowed; if that fails after all, fewer clients find room.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// How many descriptors this process may have open.
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether something failed because this process or the system has no more of what it takes: descriptors, or memory.
/// It says nothing about what was looked at, and may work the next moment.
pub fn is_out_of_something(error: &std::io::Error) -> bool {
    let out = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|it| out.contains(&it))
}

/// A process whose end is waited for; nothing when it has ended already.
#[derive(Debug)]
pub struct Process(Option<OwnedFd>);

impl Process {
    /// Holds a process, so that its number cannot come to mean another one.
    pub fn hold(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Self(pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    /// Waits for its end, but not for longer than this.
    pub fn has_ended(&self, at_most: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        let patience = Timespec::try_from(at_most).ok();
        rustix::event::poll(&mut polled, patience.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

/// Lets every user run a file who can reach its folder.
///
/// # Errors
/// What the system says.
pub fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))
}

/// Whether any user may execute a file.
pub fn is_executable(meta: &cap_std::fs::Metadata) -> bool {
    use cap_std::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o111 != 0
}

/// When a process began, in the system's own unit: with its number it means this process and no later one. `None` when
/// there is none, or it has ended and only its parent has not taken notice.
///
/// # Errors
/// It cannot be found out, which does not say that it has ended.
pub fn process_began(pid: u32) -> io::Result<Option<u64>> {
    Ok(process_of(pid)?.map(|(began, _)| began))
}

/// When a process began, as [`process_began`] says it, and its user. Both are of the same process, also where its number comes to
/// mean another one in between.
///
/// # Errors
/// It cannot be found out, which does not say that it has ended.
pub fn process_of(pid: u32) -> io::Result<Option<(u64, u32)>> {
    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    // The open folder stands for its process alone; below it nothing is found once that has ended.
    let look = || {
        let process = rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty())?;
        let stat = rustix::fs::openat(&process, "stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // The kernel writes all of it at once: some fifty numbers, and a name of 64 bytes at the most.
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

/// The time in what `/proc/PID/stat` says; `None` of a process that has ended.
fn began_in(stat: &[u8]) -> io::Result<Option<u64>> {
    // The name is in parentheses and may contain anything, parentheses included; the state follows it, and the time
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

/// Whether a process is stopped, by a signal or a debugger: then it answers nothing until it is let go on. `false` also where that
/// cannot be found out.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state is the first word behind the name, which stands in parentheses.
    let after = stat.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &stat[at + 1..]);
    matches!(after.iter().find(|byte| **byte != b' '), Some(b'T' | b't'))
}

/// How many processes above this one are looked at.
const ABOVE_MAX: usize = 64;

/// The process that started this one.
pub fn parent_process() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// The folder in which a process runs, where the system shows it.
pub fn working_folder(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The processes above this one, its parent first, as far as the system shows them; the first process is left out.
pub fn processes_above() -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let first = parent_process().filter(|pid| *pid > 1);
    std::iter::successors(first, |pid| parent_of(*pid).filter(|pid| *pid > 1)).take(ABOVE_MAX).collect()
}

/// What the program of a process is called, and whether it was started with one of these variables; `None` where the system
/// does not show it.
pub fn started_as(pid: u32, variables: &[&str]) -> Option<(String, bool)> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut set = environment.split(|byte| *byte == 0).filter_map(|it| it.split(|byte| *byte == b'=').next());
    let has = set.any(|it| variables.iter().any(|name| name.as_bytes() == it));
    Some((name.trim_end().to_owned(), has))
}

/// The arguments with which a process was started, its program's name first; `None` where the system does not show them.
pub fn arguments_of(pid: u32) -> Option<Vec<String>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).map(|it| String::from_utf8_lossy(it).into_owned());
    Some(words.collect())
}

/// The processes whose programs have this name, and that a terminal controls. Blocking: it looks through all processes.
pub fn screens_of(name: &str) -> Vec<super::Screen> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    // Both clocks are read once: the search takes time, and two readings would tell two times of one moment.
    let machine_began = SystemTime::now().checked_sub(super::boot_time());
    let screen = |pid: u32| {
        let after = Duration::from_millis(process_began(pid).ok()??.saturating_mul(1_000 / TICKS_A_SECOND));
        let began = machine_began?.checked_add(after)?;
        Some(super::Screen { pid, folder: working_folder(pid)?, began })
    };
    numbers.filter(|pid| is_named_at_a_terminal(*pid, name)).filter_map(screen).collect()
}

/// The unit of the times in `/proc`, the same on each processor that Provost runs on.
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

/// The signals that this process gets.
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// Caught and never read: a write past the limit of `ulimit -f` then fails like one on a full disk, and the process
    /// that has written lives to say so. Programs that it starts have the system's own way with the signal.
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    /// From now on signals do not end the process by themselves. Must be called within the runtime.
    ///
    /// # Errors
    /// What the system says.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The next one. May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }
}

/// A terminal that does not show what is typed, until this is dropped.
pub struct HiddenTyping(rustix::termios::Termios);

impl HiddenTyping {
    /// Hides what is typed from now on.
    ///
    /// # Errors
    /// Standard input is no terminal, or has gone.
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
        // Fails only for a terminal that has gone.
        let _restored =
            rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
