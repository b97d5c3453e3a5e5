//! The programs that take pictures of the screen, and how they are run. Blocking.
//!
//! They need the user's display and so cannot be jailed. They run with restrictions instead: their output goes to a
//! folder of the daemon that is removed afterwards, their environment has only the display and the locale, and they
//! have limits of time, size and processor. The daemon checks their output before it becomes a picture.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::capture_config::{Backend, CaptureConfig};
use super::prepare::worker_failed;
use super::result::clip;
pub(super) use super::screenshot_folder::StoredScreenshot;
use provost_base::limits::{CAPTURE_MS_MAX, PICTURE_BYTES_MAX};
use provost_domain::Failure;
use provost_jail::{plain_text, resolve_program, start_restricted};

/// The variables that such a program gets, in addition to the folder for temporary files.
const SEEN: [&str; 6] = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "LANG", "LANGUAGE"];
const LOCALE_PREFIX: &str = "LC_";

/// A shell line that sets limits before it starts the program: no core dump with a screen in it, a largest file, processor seconds. A
/// second shell waits beside it and ends the whole group when the daemon, which holds the other end of its input, is gone.
const LIMITED: &str = r#"ulimit -c 0 && ulimit -f "$1" && ulimit -t "$2" && shift 2 && exec 3<&0 </dev/null || exit 126
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec "$@""#;
/// The size of the blocks in which `ulimit` counts files, in bytes.
const BLOCK_BYTES: u64 = 512;
/// How many bytes of a program's error output are kept, and how many are shown.
const SAID_BYTES_MAX: usize = 4 << 10;
const SHOWN_BYTES_MAX: usize = 400;

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Backend::Scrot => "scrot",
            Backend::Import => "import",
            Backend::Grim => "grim",
        }
    }

    /// Returns the name of the variable without which the program sees no screen.
    fn needs(self) -> &'static str {
        match self {
            Backend::Scrot | Backend::Import => "DISPLAY",
            Backend::Grim => "WAYLAND_DISPLAY",
        }
    }

    fn arguments(self, format: &str) -> Result<Vec<&'static str>, String> {
        Ok(match (self, format) {
            (Backend::Scrot, _) => vec!["--overwrite", "--silent"],
            (Backend::Import, _) => vec!["-window", "root"],
            (Backend::Grim, "png") => vec!["-t", "png"],
            (Backend::Grim, "jpg" | "jpeg") => vec!["-t", "jpeg"],
            (Backend::Grim, other) => {
                return Err(format!("grim writes png and jpg, not {other}; change `[screenshot] format`"));
            }
        })
    }
}

impl CaptureConfig {
    /// Takes a picture. Ends early when the caller drops the other end of `stopped`.
    ///
    /// # Errors
    /// [`Failure::Sandbox`] when there is no place for it, [`Failure::RunTimeout`], or [`Failure::WorkerFailed`].
    pub(super) fn snap(&self, stopped: &PipeReader) -> Result<StoredScreenshot, Failure> {
        let outside = |why: &String| Failure::Sandbox { why: why.as_str().into() };
        let album = self.folder.as_ref().map_err(outside)?.open()?;
        let (backend, program) = self.program().map_err(worker_failed)?;
        let arguments = backend.arguments(self.format).map_err(worker_failed)?;
        let folder = Staging::new(&self.staging)
            .map_err(|err| worker_failed(format!("{}: {err}", self.staging.display())))?;
        let file = folder.0.join(format!("screen.{}", self.format));
        let mut command = limited(&program);
        command.args(arguments).arg(&file).current_dir(&folder.0);
        command.env_clear().envs(self.seen()).env("TMPDIR", &folder.0);
        run(backend.name(), command, &folder.0, stopped)?;
        album.take_in(&file, self.format, backend.name())
    }

    /// Removes the unfinished pictures of an earlier daemon.
    pub(super) fn sweep(&self) {
        for entry in std::fs::read_dir(&self.staging).into_iter().flatten().flatten() {
            if let Err(err) = std::fs::remove_dir_all(entry.path()) {
                tracing::warn!(%err, path = %entry.path().display(), "a half-done picture was not removed");
            }
        }
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Returns the variables from which a program learns the screen and the language.
    fn seen(&self) -> Vec<(OsString, OsString)> {
        let is_seen = |name: &OsStr| {
            name.to_str().is_some_and(|it| SEEN.contains(&it) || it.starts_with(LOCALE_PREFIX))
        };
        let mut seen: Vec<_> = self.environment.iter().filter(|(name, _)| is_seen(name)).cloned().collect();
        // X11 clients find this file by themselves, but only if they know where home is.
        let usual = self.variable("HOME").map(|home| Path::new(home).join(".Xauthority"));
        if self.variable("XAUTHORITY").is_none()
            && let Some(file) = usual.filter(|file| file.is_file())
        {
            seen.push(("XAUTHORITY".into(), file.into()));
        }
        seen
    }

    /// Returns the program to use: the configured one, or else the first one that suits the session.
    fn program(&self) -> Result<(Backend, PathBuf), String> {
        let has_screen = |backend: Backend| self.variable(backend.needs()).is_some();
        if let Some(backend) = self.backend {
            if !has_screen(backend) {
                return Err(format!(
                    "{} needs {}, which the daemon does not have; start it from within the desktop session",
                    backend.name(),
                    backend.needs()
                ));
            }
            let missing =
                || format!("the screenshot backend {} is not available; install it", backend.name());
            return self.find(backend).map(|path| (backend, path)).ok_or_else(missing);
        }
        let suitable: Vec<_> = [Backend::Grim, Backend::Scrot, Backend::Import]
            .into_iter()
            .filter(|it| has_screen(*it))
            .collect();
        if suitable.is_empty() {
            return Err("there is no screen: the daemon has neither DISPLAY nor WAYLAND_DISPLAY; \
                        start it from within the desktop session"
                .into());
        }
        let found = suitable.iter().find_map(|backend| Some((*backend, self.find(*backend)?)));
        let names: Vec<_> = suitable.iter().map(|it| it.name()).collect();
        found.ok_or_else(|| format!("no screenshot backend is available; install {}", names.join(" or ")))
    }

    /// Looks for the program on the daemon's `PATH`, without folders that any user or a worker may write to.
    fn find(&self, backend: Backend) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.variable("PATH")?).collect::<Vec<_>>();
        let paths = folders.into_iter().filter(|it| it.is_absolute()).map(|it| it.join(backend.name()));
        paths.filter(|path| path.exists()).find(|path| match resolve_program(path) {
            Ok(program) => !program.place().path().starts_with(&self.workspace),
            Err(refused) => {
                tracing::warn!(%refused, "not used for pictures of the screen");
                false
            }
        })
    }
}

/// A folder for one run; it is removed with everything in it.
struct Staging(PathBuf);

impl Staging {
    fn new(within: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(within)?;
        let folder = within.join(uuid::Uuid::new_v4().simple().to_string());
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(err) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%err, path = %self.0.display(), "not removed; the next start tries again");
        }
    }
}

fn limited(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", LIMITED, "sh"]);
    command.arg((PICTURE_BYTES_MAX / BLOCK_BYTES).to_string());
    command.arg((CAPTURE_MS_MAX / 1_000).to_string());
    command.arg(program);
    // The program gets a group of its own, so that its children end with it.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    command
}

/// Runs a program until it ends. Kills it when it takes too long or when the picture is not wanted any more.
fn run(name: &str, command: Command, writable: &Path, stopped: &PipeReader) -> Result<(), Failure> {
    let failed = |why: String| worker_failed(format!("{name} {why}"));
    let mut child =
        start_restricted(command, writable).map_err(|err| failed(format!("could not be started: {err}")))?;
    let mut said = Vec::new();
    let stderr = child.stderr.take();
    let ended = watch(&child, stderr, stopped, &mut said);
    // Kill the group before the program is reaped: until then its number, and so its group's, is not
    // given to another process.
    let _gone_already = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().map_err(|err| failed(format!("could not be waited for: {err}")))?;
    match ended.map_err(|err| failed(format!("could not be watched: {err}")))? {
        Ended::ByItself if status.success() => Ok(()),
        Ended::ByItself => Err(failed(how(status, &said))),
        Ended::TooLate => Err(Failure::RunTimeout { timeout_s: CAPTURE_MS_MAX / 1_000 }),
        Ended::Stopped => Err(failed("was stopped".into())),
    }
}

enum Ended {
    ByItself,
    TooLate,
    Stopped,
}

/// Waits until the program ends, its time is over, or no agent wants the picture any more. Meanwhile keeps the
/// beginning of the program's error output.
fn watch(
    child: &Child,
    mut stderr: Option<ChildStderr>,
    stopped: &PipeReader,
    said: &mut Vec<u8>,
) -> io::Result<Ended> {
    let until = Instant::now() + Duration::from_millis(CAPTURE_MS_MAX);
    let process = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Ended::TooLate);
        }
        let (done, stop, speaks) = wait(process.as_fd(), stopped.as_fd(), stderr.as_ref(), left)?;
        if speaks {
            let mut block = [0; 4 << 10];
            let read = stderr.as_mut().map_or(Ok(0), |pipe| pipe.read(&mut block))?;
            if read == 0 {
                stderr = None;
            }
            let room = SAID_BYTES_MAX - said.len();
            said.extend_from_slice(&block[..read.min(room)]);
        }
        if stop {
            return Ok(Ended::Stopped);
        }
        // The program's last output is in the pipe before the program is gone.
        if done && !speaks {
            return Ok(Ended::ByItself);
        }
    }
}

fn wait(
    process: BorrowedFd<'_>,
    stopped: BorrowedFd<'_>,
    stderr: Option<&ChildStderr>,
    left: Duration,
) -> io::Result<(bool, bool, bool)> {
    let mut fds = vec![PollFd::from_borrowed_fd(process, PollFlags::IN)];
    fds.push(PollFd::from_borrowed_fd(stopped, PollFlags::IN));
    fds.extend(stderr.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    match poll(&mut fds, Some(&left)) {
        Err(rustix::io::Errno::INTR) | Ok(_) => {}
        Err(errno) => return Err(errno.into()),
    }
    let happened = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
    Ok((happened(0), happened(1), happened(2)))
}

/// Describes how a program failed, with its own error output if it had any.
fn how(status: ExitStatus, said: &[u8]) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let said = plain_text(&String::from_utf8_lossy(said));
    let said = clip(said.trim(), SHOWN_BYTES_MAX);
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) if signal == Signal::XFSZ.as_raw() => {
            "wrote more than a picture may have".into()
        }
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    };
    if said.is_empty() { end } else { format!("{end}: {said}") }
}
