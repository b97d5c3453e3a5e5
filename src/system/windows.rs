//! Windows: consoles, handles and access tokens in the place of terminals, descriptors and users.

mod access;
mod pipes;
mod security;
mod token;

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0};
use windows_sys::Win32::Storage::FileSystem::{BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle};
use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, GetConsoleScreenBufferInfo, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE,
    STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS, GetCurrentProcess, OpenProcess, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};

use super::Signal;
use provost_base::Digest;

pub use access::{owned, private, trusted};
pub use pipes::{cancel_io, is_end_of_pipe, is_pipe_busy, pipe_instance, process_behind, process_serving};
pub use security::SecurityDescriptor;
pub use token::Token;

/// The variables that name the user's home.
pub const HOME: &[&str] = &["HOME", "USERPROFILE"];
/// Variables that name the folder of the user's configuration; the first that is set counts.
pub const CONFIG_HOME: &[&str] = &["XDG_CONFIG_HOME", "APPDATA"];
/// Variables that name the folder of programs' state; the first that is set counts.
pub const STATE_HOME: &[&str] = &["XDG_STATE_HOME", "LOCALAPPDATA"];
/// Variables that have the user's name; the first that is set counts.
pub const USER_NAME: &[&str] = &["USERNAME", "USER"];
/// The folder of configuration and rules that an administrator has made; no other user can write there.
pub const SYSTEM_CONFIG: &str = r"C:\Program Files\Provost";
/// The rules in that folder.
pub const SYSTEM_POLICY: &str = r"C:\Program Files\Provost\policy.toml";
/// The longest name of a pipe, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// A command that removes all access of other users to a folder.
pub const CLOSE: &str = "`icacls . /inheritance:r /grant:r \"%USERNAME%:(OI)(CI)F\"` in it";
/// A command that removes other users' right to write.
pub const CLOSE_FOR_WRITING: &str = CLOSE;

/// The smallest length that a plain path cannot have.
const PLAIN_PATH_MAX: usize = 260;

/// The beginning of every local pipe's name.
const PIPES: &str = r"\\.\pipe\";

/// Variables without which no program runs, and which a worker gets unchanged.
pub const NEEDED_VARIABLES: &[&str] = &[
    "COMSPEC",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "WINDIR",
];
/// Variables that a jail sets itself on this system, in addition to those of every system: they lead to a home, or
/// name the system's programs.
pub const JAIL_VARIABLES: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "WINDIR",
];
/// Whether names of variables that differ only in case are the same.
pub const VARIABLES_FOLD: bool = true;
/// The separator of the folders in `PATH`.
pub const PATH_SEPARATOR: char = ';';

/// Returns the system's own folder.
fn system_root() -> PathBuf {
    std::env::var_os("SystemRoot").map_or_else(|| r"C:\Windows".into(), PathBuf::from)
}

/// Returns the folders with the system's programs, in the form of `PATH`.
pub fn program_folders() -> String {
    let root = system_root();
    let folders = [root.join("System32"), root.clone(), root.join(r"System32\WindowsPowerShell\v1.0")];
    folders.map(|folder| folder.to_string_lossy().into_owned()).join(";")
}

/// Returns the shell, and its arguments before a command line.
pub fn shell() -> (PathBuf, &'static [&'static str]) {
    (system_root().join(r"System32\cmd.exe"), &["/d", "/s", "/c"])
}

/// Makes a file in a folder that vanishes with its last handle, when the last process has
/// closed it. No other process can open it meanwhile.
///
/// # Errors
/// The system's error.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let path = folder.join(uuid::Uuid::new_v4().simple().to_string());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).share_mode(0).custom_flags(DELETE_ON_CLOSE);
    options.open(path)
}

/// Returns the number of a file's volume, and the file's number on it.
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "the standard library has no stable word for it")]
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open for as long as `file` is borrowed; the structure is writable and outlives the call.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let number = u64::from(found.nFileIndexHigh) << 32 | u64::from(found.nFileIndexLow);
    Ok((found.dwVolumeSerialNumber.into(), number))
}

/// The usual name of the account that may do everything.
pub const SUPERUSER: &str = "an administrator";

/// Returns 0: users have no numbers here; a peer's token identifies its user.
pub fn user_number() -> u32 {
    0
}

/// Checks whether this process runs elevated, so that our actions may affect the whole machine.
pub fn is_superuser() -> bool {
    // If that is unknown, the process counts as elevated.
    Token::of_this_process().and_then(|token| token.is_elevated()).unwrap_or(true)
}

/// Does nothing: the access list of their folder makes new files the user's alone.
pub fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes a folder, and the missing ones above it. Existing folders do not change.
///
/// # Errors
/// The system's error.
pub fn make_private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Returns a path without links in it, in the form that people and programs know.
///
/// # Errors
/// The system's error.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let plain = real.to_str().and_then(|text| text.strip_prefix(r"\\?\")).filter(|plain| {
        // Long paths, and those on other machines, exist in the other form alone.
        plain.len() < PLAIN_PATH_MAX && plain.as_bytes().get(1) == Some(&b':')
    });
    Ok(plain.map_or(real.clone(), PathBuf::from))
}

/// Does the same for a path that means the same to every process, as all paths do here.
///
/// # Errors
/// The system's error.
pub fn shared_real_path(path: &Path) -> io::Result<PathBuf> {
    real_path(path)
}

/// Returns the version of a file's state: the times when it was made and written, and its length.
pub fn version_of(meta: &Metadata) -> (u64, i64, i64) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    (meta.creation_time(), signed(meta.last_write_time()), signed(meta.file_size()))
}

/// Returns the time when a file was last written.
pub fn changed_at(meta: &Metadata) -> io::Result<SystemTime> {
    meta.modified()
}

/// Returns options to open a file for reading.
pub fn reading_without_waiting() -> cap_std::fs::OpenOptions {
    let mut options = cap_std::fs::OpenOptions::new();
    options.read(true);
    options
}

/// Checks that a file can be replaced by another one of its name without losing any other property.
///
/// # Errors
/// Never, on this system.
pub fn replaceable(_meta: &cap_std::fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// Returns 0, since this system has no number that no other file in the folder has.
pub fn number_of(_meta: &cap_std::fs::Metadata) -> u64 {
    0
}

/// Returns `false`, since this system cannot exchange two names in one step.
///
/// # Errors
/// Never: nothing is tried.
pub fn exchange(_folder: &cap_std::fs::Dir, _one: &str, _other: &str) -> io::Result<bool> {
    Ok(false)
}

/// Returns the pipe of a door of this name. Pipes have no folders: the name contains a digest of the folder where a socket would
/// be, which differs for every user and repository.
pub fn socket(runtime: &Path, name: &str) -> PathBuf {
    let digest = Digest::of(runtime.as_os_str().as_encoded_bytes()).to_string();
    PathBuf::from(format!("{PIPES}provost-{}-{name}", &digest[..32]))
}

/// Returns a pipe's full name, as a person has typed it. DevIt 1.1: `\\.\pipe\NAME`, `pipe:NAME`, or a name alone.
///
/// # Errors
/// The fault of the name.
pub fn address(_cwd: &Path, given: &Path) -> Result<PathBuf, String> {
    let text = given.to_str().ok_or("the name of a pipe must be plain text")?.trim();
    let name = match text.get(..PIPES.len()) {
        Some(start) if start.eq_ignore_ascii_case(PIPES) => &text[PIPES.len()..],
        _ => text.strip_prefix("pipe:").unwrap_or(text),
    };
    if name.contains(':') {
        return Err(format!("{text}: TCP is not offered here; name a pipe, like {PIPES}devitd"));
    }
    if name.is_empty() || name.contains(['\\', '/']) {
        return Err(format!("{text}: is not the name of a pipe; write {PIPES}NAME or pipe:NAME"));
    }
    Ok(PathBuf::from(format!("{PIPES}{name}")))
}

/// Returns the columns of the console on standard output, if it is one.
#[expect(unsafe_code, reason = "the console has no safe words for its size")]
pub fn terminal_width() -> Option<u16> {
    // SAFETY: takes a number and gives a handle that no owner has to close, or none.
    let output = unsafe { GetStdHandle(STD_OUTPUT_HANDLE) };
    let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: `info` is writable, has the size that the call expects and outlives it; a handle that is no console's
    // makes the call fail.
    let known = unsafe { GetConsoleScreenBufferInfo(output, &raw mut info) };
    let columns = i32::from(info.srWindow.Right) - i32::from(info.srWindow.Left) + 1;
    (known != 0).then(|| u16::try_from(columns).ok()).flatten()
}

/// Returns standard output, for a process that goes on using it when all others have closed it.
///
/// # Errors
/// Standard output is closed.
pub fn standard_output() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Returns this very program. Its file cannot be replaced while it runs.
pub fn this_program() -> PathBuf {
    // A name that does not exist cannot be started, and the error says so.
    std::env::current_exe().unwrap_or_default()
}

/// Prepares a command that outlives us, and our console. It does not get our own standard output either,
/// since another program may wait for the end of that.
pub fn detach(command: &mut Command) -> &mut Command {
    for which in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        keep_from_children(which);
    }
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP)
}

#[expect(unsafe_code, reason = "no safe word for it")]
fn keep_from_children(which: STD_HANDLE) {
    // SAFETY: takes a number and gives a handle that no owner has to close, or none.
    let handle = unsafe { GetStdHandle(which) };
    // SAFETY: the handle stays open as long as the process; without one the call fails, and nothing is inherited.
    let _none = unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0) };
}

/// Does nothing: [`detach`] has already separated the process from the console.
pub fn own_session() {}

/// Does nothing: only memory bounds the number of handles.
pub fn take_all_descriptors() {}

/// Succeeds: this system has no such limits that a daemon could lack.
///
/// # Errors
/// Never, on this system.
pub fn check_headroom() -> Result<(), String> {
    Ok(())
}

/// Returns the largest number: this system has no limit of descriptors.
pub fn descriptors_max() -> u64 {
    u64::MAX
}

/// Does nothing: threads keep their priority here.
pub fn lower_priority() {}

/// A process whose end a caller waits for; `None` in it if the process has ended already.
#[derive(Debug)]
pub struct Process(Option<OwnedHandle>);

impl Process {
    /// Holds a process, so that its number cannot come to mean another one.
    #[expect(unsafe_code, reason = "the standard library holds only processes that it has started")]
    pub fn hold(pid: u32) -> Self {
        // SAFETY: takes numbers, and gives a new handle or null.
        let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid) };
        if handle.is_null() {
            return Self(None);
        }
        // SAFETY: the call succeeded, so this is a new handle that no other value owns.
        Self(Some(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// Waits for the end of the process, at most for the given time.
    #[expect(unsafe_code, reason = "the standard library waits only for processes that it has started")]
    pub fn has_ended(&self, at_most: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let at_most = u32::try_from(at_most.as_millis()).unwrap_or(u32::MAX - 1);
        // SAFETY: the handle is open for as long as `self` is borrowed.
        unsafe { WaitForSingleObject(process.as_raw_handle(), at_most) == WAIT_OBJECT_0 }
    }
}

/// Makes all processes that this one starts from now on end with it, in every case.
///
/// # Errors
/// The system's error; no process is bound then.
#[expect(unsafe_code, reason = "no safe words for jobs")]
pub fn end_children_with_us() -> io::Result<()> {
    let null = std::ptr::null();
    // SAFETY: without a name and attributes; gives a new handle or null.
    let job = unsafe { CreateJobObjectW(null, null.cast()) };
    if job.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    // SAFETY: the handle is new and stays open: its closing, with our end, is what ends the others. The structure is
    // the one that this class has, and outlives the call.
    let limited = unsafe {
        SetInformationJobObject(
            job,
            JobObjectExtendedLimitInformation,
            (&raw const limits).cast(),
            size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32,
        )
    };
    // SAFETY: both handles are open; the second stands for this process.
    if limited == 0 || unsafe { AssignProcessToJobObject(job, GetCurrentProcess()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Does nothing: on this system every file may be run.
///
/// # Errors
/// Never: nothing is changed.
pub fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Always false: no bit says here whether a file may be executed.
pub fn is_executable(_meta: &cap_std::fs::Metadata) -> bool {
    false
}

/// Always false: the system does not report this for a whole process.
pub fn is_stopped(_pid: u32) -> bool {
    false
}

/// Fails, since nothing is bound to a process here.
///
/// # Errors
/// Always.
pub fn process_began(_pid: u32) -> io::Result<Option<u64>> {
    Err(io::Error::other("this system has no locks that end with a process"))
}

/// Always `None`: the parent is not looked up on this system.
pub fn parent_process() -> Option<u32> {
    None
}

/// Always `None`: the folder of another process is not looked up here.
pub fn working_folder(_pid: u32) -> Option<PathBuf> {
    None
}

/// Always empty: nothing here is recognised by the processes above it.
pub fn processes_above() -> Vec<u32> {
    Vec::new()
}

/// Always `None`: no process is examined here.
pub fn started_as(_pid: u32, _variables: &[&str]) -> Option<(String, bool)> {
    None
}

/// Always `None`: no process is examined here.
pub fn arguments_of(_pid: u32) -> Option<Vec<String>> {
    None
}

/// Always empty: no process is examined here.
pub fn screens_of(_name: &str) -> Vec<super::Screen> {
    Vec::new()
}

/// The signals that this process receives.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    break_: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Catches the signals, so that they do not end the process by themselves. Must be called within the runtime.
    ///
    /// # Errors
    /// The system's error.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            break_: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Returns the next signal. Can be cancelled while it waits without losing one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.break_.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
        Signal::Stop
    }
}

/// A console that does not echo typing; not offered here.
pub struct HiddenTyping(());

impl HiddenTyping {
    /// Fails, since typing would be shown here.
    ///
    /// # Errors
    /// Always; a pipe or a file has to be read instead.
    pub fn begin() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "it would be shown here; give it by a pipe or a file"))
    }
}
