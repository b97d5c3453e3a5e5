//! A world on Unix: modes, sockets, signals.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// The command that becomes a daemon.
pub(crate) const UP: &[&str] = &["up", "--foreground"];

/// The user's configuration, from the home.
pub(super) const CONFIG_DIR: &str = ".config/provost";

/// The state of all repositories, from the home.
pub(super) const STATE_DIR: &str = ".local/state/provost";

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a file or folder the user's alone.
pub(super) fn close_to_others(path: &Path) {
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(super) fn init_repository(path: &Path) {
    let git = Command::new("git").args(["init", "-q"]).arg(path).status().unwrap();
    assert!(git.success());
}

/// Sets the environment of a program of the world that has this folder.
pub(super) fn environment(command: &mut Command, world: &Path, home: &Path) {
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("USER", "tester")
        .env("XDG_RUNTIME_DIR", world.join("run"))
        // Many daemons run at once here, and none is to wait for another's port.
        .envs(provost::base::Door::over_loopback().map(|(_, at)| (at.port_variable, "0")));
}

/// A daemon's socket of this name, once it is there.
pub(super) fn find_socket(world: &Path, name: &str) -> Option<PathBuf> {
    let below = std::fs::read_dir(world.join("run/provost")).ok()?;
    below.flatten().map(|it| it.path().join(name)).find(|it| it.exists())
}

pub(super) fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// A connection to a door, on which nothing is waited for longer than twenty seconds.
pub(crate) struct Connection {
    stream: UnixStream,
    /// Read already, and not asked for yet: asking the kernel for every byte of a megabyte takes long.
    ahead: VecDeque<u8>,
}

impl Connection {
    pub(crate) fn to(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, ahead: VecDeque::new() })
    }

    /// Whether the process that began to listen here still lives. A child of a daemon that was killed, not yet the program that it is to
    /// become, holds its sockets for a moment longer.
    pub(super) fn is_of_the_living(&self) -> bool {
        let peer = rustix::net::sockopt::socket_peercred(&self.stream).unwrap();
        rustix::process::test_kill_process(peer.pid) != Err(rustix::io::Errno::SRCH)
    }

    /// Whether something has come that was not read yet.
    pub(crate) fn has_something(&self) -> bool {
        !self.ahead.is_empty() || rustix::io::ioctl_fionread(&self.stream).unwrap() > 0
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            let mut more = [0; 1 << 16];
            let read = self.stream.read(&mut more)?;
            self.ahead.extend(&more[..read]);
        }
        self.ahead.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Runs a command, whose whole environment the caller sets, as a process that was not started by this process: what
/// runs below a process that has spoken as an agent is no person, and tests speak as agents.
pub(crate) fn apart(command: &Command) -> std::process::Output {
    use std::os::unix::process::ExitStatusExt as _;
    let dir = tempfile::tempdir().unwrap();
    let ended = dir.path().join("ended");
    let mut other = Command::new("setsid");
    other.args(["--fork", "sh", "-c", "\"$@\"; echo $? > \"$ENDED\"", "sh"]);
    other.arg(command.get_program()).args(command.get_args()).env_clear();
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("ENDED", &ended);
    if let Some(dir) = command.get_current_dir() {
        other.current_dir(dir);
    }
    let mut output = other.stdin(std::process::Stdio::null()).output().unwrap();
    // Its output has ended; the file is written just before.
    super::eventually("its end", || std::fs::read_to_string(&ended).is_ok_and(|text| text.ends_with('\n')));
    let code: i32 = std::fs::read_to_string(&ended).unwrap().trim().parse().unwrap();
    output.status = std::process::ExitStatus::from_raw(code << 8);
    output
}

const RELAY: &str = r#"
import os, socket, sys, threading
def pass_on(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        for it in (one, other):
            try: it.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def serve(listener, to):
    while True:
        one, _ = listener.accept()
        other = socket.socket(socket.AF_UNIX)
        try: other.connect(to)
        except OSError: one.close(); continue
        for ends in ((one, other), (other, one)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen(64)
os.rename(sys.argv[1] + ".new", sys.argv[1])
threading.Thread(target=serve, args=(listener, sys.argv[2]), daemon=True).start()
sys.stdin.read()
"#;

/// The words of a command that passes on what comes in at the first socket to the second one, until its own
/// input ends.
pub(crate) fn relay(at: &Path, to: &Path) -> [String; 5] {
    let path = |it: &Path| it.to_str().unwrap().to_owned();
    ["python3".into(), "-c".into(), RELAY.into(), path(at), path(to)]
}

/// A socket at which a process of another session answers for this one, and passes on: a tree of processes
/// that asks gives no answer.
pub(super) fn elsewhere(world: &Path, socket: &Path) -> PathBuf {
    let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let at = world.join(format!("elsewhere-{name}"));
    if !at.exists() {
        let mut other = Command::new("setsid");
        other.arg("--fork").args(relay(&at, socket)).stdin(std::process::Stdio::piped());
        let mut relay = other.spawn().unwrap();
        // Its input ends with this process.
        std::mem::forget(relay.stdin.take());
        assert!(relay.wait().unwrap().success());
        super::eventually("the relay", || at.exists());
    }
    at
}
