//! A world on Windows: profile folders and pipes. The runner bounds how long anything may take.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Pipes::PeekNamedPipe;

/// The command that becomes a daemon. Under Wine every process looks elevated.
pub(crate) const UP: &[&str] = &["up", "--foreground", "--allow-root"];

/// The user's configuration, from the home.
pub(super) const CONFIG_DIR: &str = r"AppData\Roaming\provost";

/// The state of all repositories, from the home.
pub(super) const STATE_DIR: &str = r"AppData\Local\provost";

/// `ERROR_PIPE_BUSY`.
const PIPE_BUSY: i32 = 231;

pub(super) fn is_root() -> bool {
    false
}

/// Folders of a profile are the user's alone already.
pub(super) fn close_to_others(_: &Path) {}

/// As much of a repository as Provost looks at.
pub(super) fn init_repository(path: &Path) {
    std::fs::create_dir(path.join(".git")).unwrap();
    std::fs::write(path.join(r".git\HEAD"), "ref: refs/heads/main\n").unwrap();
}

/// Sets the environment of a program of the world that has this folder.
pub(super) fn environment(command: &mut Command, _world: &Path, home: &Path) {
    for name in ["SystemRoot", "SystemDrive", "PATH", "TEMP", "TMP", "ComSpec"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
        .env("USERPROFILE", home)
        .env("APPDATA", home.join(r"AppData\Roaming"))
        .env("LOCALAPPDATA", home.join(r"AppData\Local"))
        .env("USERNAME", "tester")
        .envs(provost::base::Door::over_loopback().map(|(_, at)| (at.port_variable, "0")));
}

/// The pipe of a door that a daemon in the foreground has told of.
pub(super) fn find_socket(world: &Path, name: &str) -> Option<PathBuf> {
    let ending = format!("-{}", name.trim_end_matches(".sock"));
    let log = std::fs::read_to_string(world.join("daemon.log")).ok()?;
    let addresses = log.split_whitespace().filter_map(|word| word.strip_prefix("address="));
    let mut pipes = addresses.filter(|address| address.ends_with(&ending));
    pipes.next().map(PathBuf::from)
}

/// There is no signal that would reach it alone; a test that wants an orderly end uses `provost down`.
pub(super) fn terminate(child: &Child) {
    panic!("process {} is to be ended with `provost down`", child.id());
}

/// A connection to a door.
pub(crate) struct Connection {
    pipe: File,
    /// Read already, and not asked for yet: asking a pipe for every byte takes long.
    ahead: VecDeque<u8>,
}

impl Connection {
    pub(crate) fn to(pipe: &Path) -> io::Result<Self> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match OpenOptions::new().read(true).write(true).open(pipe) {
                Err(err) if err.raw_os_error() == Some(PIPE_BUSY) && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return opened.map(|pipe| Self { pipe, ahead: VecDeque::new() }),
            }
        }
    }

    /// A pipe ends with the process that made it.
    pub(super) fn is_of_the_living(&self) -> bool {
        true
    }

    /// Whether something has come that was not read yet.
    #[expect(unsafe_code, reason = "a pipe has no safe words for it")]
    pub(crate) fn has_something(&self) -> bool {
        let mut waiting = 0;
        let none = std::ptr::null_mut();
        // SAFETY: the handle is open; `waiting` is writable and outlives the call; nothing else is asked for.
        let known = unsafe {
            PeekNamedPipe(self.pipe.as_raw_handle(), none, 0, none.cast(), &raw mut waiting, none.cast())
        };
        known != 0 && waiting > 0
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            let mut more = [0; 1 << 16];
            match self.pipe.read(&mut more) {
                // The other end has closed.
                Err(err) if err.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
                read => self.ahead.extend(&more[..read?]),
            }
        }
        self.ahead.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pipe.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nothing is known of trees of processes here.
pub(super) fn elsewhere(_world: &Path, socket: &Path) -> PathBuf {
    socket.to_owned()
}
