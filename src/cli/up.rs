//! Starts and stops the daemon: in this terminal, or in the background with a handshake.
//!
//! The background daemon is another process of this program, in a session of its own, whose standard output is a pipe
//! to this one. It writes one line there: `ready` when the doors are open, or the reason why they are not.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};

use super::cli_error::{DONE, FAILED, NOT_RUNNING, WENT_BACK};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, Run, git, out};
use provost_api::wire::{self, About};
use provost_base::Secret;
use provost_base::limits::READY_MS_MAX;
use provost_config::{Places, awaiting};
use provost_store::StoreError;
use provost_system::{self as system, Process};

/// The line that the background process writes when its doors are open.
const READY: &str = "ready";

/// The number of checks, and their interval, for a daemon that another process has started at the same moment.
const RIVAL_LOOKS: u32 = 10;
const RIVAL_PAUSE: Duration = Duration::from_millis(50);

/// Longest line that is read from the background process, in bytes.
const WORDS_BYTES_MAX: u64 = 64 << 10;

/// `provost daemon start`.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Up {
    /// Stay in this terminal; Ctrl-C ends the daemon
    #[arg(long)]
    foreground: bool,
    /// An additional configuration file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Write more to the log
    #[arg(long)]
    debug: bool,
    /// End after this many seconds without clients and work; 0 means never
    #[arg(long, value_name = "SECONDS")]
    auto_shutdown_after: Option<u64>,
    /// If a port is taken, use a free one; `provost env` and `provost status` show it
    #[arg(long)]
    auto_ports: bool,
    /// Start even if a port is taken, as an automatic start does
    #[arg(long, hide = true, conflicts_with = "auto_ports")]
    unattended: bool,
    /// Permit running as root, as in a container; workers then run as `daemon.worker_uid`
    #[arg(long)]
    allow_root: bool,
    /// Standard output is a pipe to the process that waits for the doors
    #[arg(long, hide = true, requires = "foreground")]
    ready_on_stdout: bool,
}

/// The options of a daemon in this process.
pub struct Serve {
    /// The repository's places.
    pub places: Places,
    /// The directory in which it was started.
    pub cwd: PathBuf,
    /// The configuration file that the command line names, if any.
    pub config_file: Option<PathBuf>,
    /// Whether a person reads standard error.
    pub foreground: bool,
    /// The start options of DevIt's programs, if one of them started the daemon.
    pub devitd: Option<Devitd>,
    /// The daemon ends after this many seconds without clients and work; zero means never.
    pub auto_shutdown_after: Option<u64>,
    /// The reaction to a taken port.
    pub ports: Ports,
    /// Whether root is accepted.
    pub allow_root: bool,
    /// Whether to log more.
    pub debug: bool,
    /// The file that gets the line `ready` when the doors are open.
    pub ready: Option<File>,
}

/// The reaction to a port that another process has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// Uses another port; refuses to start if the configuration names this port.
    AsConfigured,
    /// Starts without the door, or with another port.
    Unattended,
    /// Uses another port.
    Any,
}

/// One more address of the DevIt door, and its secret, for this run alone.
pub struct Devitd {
    /// The socket.
    pub socket: PathBuf,
    /// The secret, checked; the key ring's when absent.
    pub secret: Option<Secret>,
}

pub(super) fn up(here: &RepoContext, up: Up, run: &Run) -> Result<u8, CliError> {
    if up.ready_on_stdout {
        return in_background(here, up, run);
    }
    // With --foreground the caller wants to run this daemon itself; the store refuses if another one runs already.
    if !up.foreground
        && let Some(about) = running(here)?
    {
        if !here.json {
            out::note(format!("already running since {}", short_time(&about.started_at)));
        }
        return announce(here, &about);
    }
    if up.foreground {
        // The daemon writes its own messages to standard error.
        run(serve(here, up, None)).map_err(failed)?;
        return Ok(DONE);
    }
    if !here.json
        && let Some(missing) = git::without_git(here)
    {
        out::note(format!("note: {missing}"));
    }
    start(here, &up)?;
    let about = wait_for(async { Ok(here.client().about().await?) })?;
    tell_moved(here, &about);
    announce(here, &about)
}

/// Reports ports that were taken: only the command that has started the daemon does so.
fn tell_moved(here: &RepoContext, about: &About) {
    if !here.json {
        about.moved.iter().for_each(|it| out::note(format!("note: {}", out::plain(it))));
    }
}

pub(super) fn down(here: &RepoContext) -> Result<u8, CliError> {
    // A caller that names itself as an agent gets a refusal.
    let agent = IdentityArgs::named_plainly(here, None)?;
    let is_agent = agent.is_some();
    // It settles what is under way, for which its database may have to answer.
    let mut progress = out::Progress::begin("waiting for the daemon");
    let told = wait_for(progress.during(async {
        let client = here.client().speaking_as(agent);
        let about = client.about().await?;
        let pid = about.pid;
        // The process is held before it ends, so that its number cannot come to mean another process.
        let process = Process::hold(pid);
        Ok((pid, about.broken, process, client.stop().await?))
    }));
    drop(progress);
    let (pid, broken, process, said) = match told {
        Err(error) if error.is_not_running() && !is_agent => return end_waiting(here, error),
        told => told?,
    };
    until_ended(pid, &process)?;
    if let Some(why) = broken {
        return Err(CliError::of("the daemon has stopped, and the last requests are not kept")
            .because(why)
            .next("provost doctor"));
    }
    if here.json {
        out::json(&said)?
    } else {
        out::line("stopped")?
    }
    Ok(DONE)
}

/// Waits until the process of a daemon that was told to end has ended.
fn until_ended(pid: u32, process: &Process) -> Result<(), CliError> {
    let mut progress = out::Progress::begin("waiting for the daemon to end");
    let deadline = Instant::now() + Duration::from_millis(READY_MS_MAX);
    while !process.has_ended(Duration::from_millis(200)) {
        if Instant::now() > deadline {
            return Err(CliError::of("the daemon does not end")
                .because(format!("process {pid} was told to end, and still runs"))
                .next(format!("kill {pid}")));
        }
        progress.tick();
    }
    Ok(())
}

/// Ends a daemon that waits for its database and answers no request yet; returns the error if there is none.
fn end_waiting(here: &RepoContext, none_runs: CliError) -> Result<u8, CliError> {
    let Some(waiting) = awaiting::awaiting(&here.places) else { return Err(none_runs) };
    let process = Process::hold(waiting.pid);
    awaiting::end(&here.places).map_err(|err| {
        CliError::of("the daemon waits for its database, and cannot be told to end")
            .because(err)
            .next(format!("kill {}", waiting.pid))
    })?;
    until_ended(waiting.pid, &process)?;
    let message = "stopped; it was waiting for its database";
    if here.json {
        out::json(&wire::Done { message: message.into() })?;
    } else {
        out::line(message)?;
    }
    Ok(DONE)
}

pub(super) fn reload(here: &RepoContext) -> Result<u8, CliError> {
    // As in `down`.
    let agent = IdentityArgs::named_plainly(here, None)?;
    let (done, about) = wait_for(async {
        let client = here.daemon(agent).await?;
        Ok((client.reload().await?, client.about().await?))
    })?;
    if here.json {
        out::json(&done)?
    } else {
        out::line(out::plain(&done.message))?
    }
    // Otherwise ignored settings would look as if they were in force.
    about.notes.iter().for_each(|note| out::note(format!("note: {}", out::plain(note))));
    Ok(DONE)
}

/// Returns the daemon of this repository, if one runs.
pub(super) fn running(here: &RepoContext) -> Result<Option<About>, CliError> {
    let about = wait_for(async { here.client().about().await.map_err(CliError::from) });
    match about {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.is_not_running() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Does the same after a failed start: another process may have started a daemon a moment earlier.
pub(super) fn running_soon(here: &RepoContext) -> Result<Option<About>, CliError> {
    for _ in 0..RIVAL_LOOKS {
        if let Some(about) = running(here)? {
            return Ok(Some(about));
        }
        std::thread::sleep(RIVAL_PAUSE);
    }
    running(here)
}

/// Starts the daemon for a command that needs it, unless one runs or the environment forbids it.
pub(super) fn start_if_absent(here: &RepoContext, may: bool) -> Result<(), CliError> {
    if running(here)?.is_some() {
        return Ok(());
    }
    if !may || !here.environment.auto_start {
        let why = match may {
            true => "DEVIT_NO_AUTO_START or CI is set, so none was started",
            false => "--no-start was given",
        };
        return Err(CliError::of("no daemon runs for this repository")
            .because(why)
            .next("provost up")
            .with_code(NOT_RUNNING));
    }
    start(here, &Up { unattended: true, ..Up::default() })?;
    if let Some(about) = running(here)? {
        tell_moved(here, &about);
    }
    Ok(())
}

/// Prints one line for each door, with its address.
fn announce(here: &RepoContext, about: &About) -> Result<u8, CliError> {
    if here.json {
        out::json(about)?;
        return Ok(DONE);
    }
    let doors = about.doors.iter().map(|at| [out::one_line(&at.door, 40), out::one_line(&at.address, 4096)]);
    out::text_as_is(&out::table(&doors.collect::<Vec<_>>()))?;
    about.notes.iter().for_each(|note| out::note(format!("note: {}", out::plain(note))));
    Ok(DONE)
}

fn serve(here: &RepoContext, up: Up, ready: Option<File>) -> Serve {
    Serve {
        places: here.places.clone(),
        cwd: here.cwd.clone(),
        config_file: up.config,
        foreground: ready.is_none(),
        devitd: None,
        auto_shutdown_after: up.auto_shutdown_after,
        ports: match (up.auto_ports, up.unattended) {
            (true, _) => Ports::Any,
            (_, true) => Ports::Unattended,
            (false, false) => Ports::AsConfigured,
        },
        allow_root: up.allow_root,
        debug: up.debug,
        ready,
    }
}

pub(super) fn failed(err: anyhow::Error) -> CliError {
    let code = match err.chain().find_map(|it| it.downcast_ref::<StoreError>()) {
        Some(StoreError::WentBack { .. }) => WENT_BACK,
        _ => FAILED,
    };
    CliError::of("the daemon could not go on")
        .because(format!("{err:#}"))
        .next("provost doctor")
        .with_code(code)
}

/// Runs the background process: it reports every failure to the process that waits.
fn in_background(here: &RepoContext, up: Up, run: &Run) -> Result<u8, CliError> {
    system::own_session();
    let ready =
        system::standard_output().map_err(|e| CliError::of("standard output is closed").because(e))?;
    // The daemon itself tells the waiting process why it could not start.
    run(serve(here, up, Some(ready))).map_err(failed)?;
    Ok(DONE)
}

/// Starts the background process and waits until its doors are open.
fn start(here: &RepoContext, up: &Up) -> Result<(), CliError> {
    let cannot = |e: std::io::Error| {
        CliError::of("the daemon cannot be started").because(e).next("provost up --foreground")
    };
    let program = std::env::current_exe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(["daemon", "start", "--foreground", "--ready-on-stdout"]);
    command.args(up.config.iter().flat_map(|path| ["--config".as_ref(), path.as_os_str()]));
    command
        .args(up.auto_shutdown_after.iter().flat_map(|it| ["--auto-shutdown-after".into(), it.to_string()]));
    command.args(
        [
            ("--allow-root", up.allow_root),
            ("--debug", up.debug),
            ("--auto-ports", up.auto_ports),
            ("--unattended", up.unattended),
        ]
        .iter()
        .filter(|it| it.1)
        .map(|it| it.0),
    );
    command.current_dir(&here.cwd);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = system::detach(&mut command).spawn().map_err(cannot)?;
    let said = first_words(&mut child, "the daemon", "provost up --foreground")?;
    if said.trim_end() == READY || running_soon(here)?.is_some() {
        return Ok(());
    }
    let status = child.wait().ok();
    let code = status
        .and_then(|it| it.code())
        .filter(|it| *it == i32::from(WENT_BACK))
        .map_or(FAILED, |_| WENT_BACK);
    let ended = status.map(|it| it.to_string()).unwrap_or_default();
    let said = said.trim();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let cause = if said.is_empty() { format!("it ended at once ({ended})") } else { said.to_owned() };
    Err(CliError::of("the daemon did not start")
        .because(cause)
        .next("provost doctor, or provost up --foreground")
        .with_code(code))
}

/// Returns the line of a background process, or an error if it ends without one; `what` names the process, and `by_hand`
/// the command that runs it in the terminal.
pub(super) fn first_words(child: &mut Child, what: &str, by_hand: &str) -> Result<String, CliError> {
    let pipe = child.stdout.take();
    let (sender, words) = mpsc::channel();
    let reads = std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        if let Some(pipe) = pipe {
            // Output that cannot be read counts as no output.
            let _read = BufReader::new(pipe.take(WORDS_BYTES_MAX)).read_line(&mut line);
        }
        // Without a receiver the wait is over, and the line is not needed.
        let _unheard = sender.send(line);
    });
    reads.map_err(|err| CliError::of(format!("the first line of {what} cannot be read")).because(err))?;
    let deadline = Instant::now() + Duration::from_millis(READY_MS_MAX);
    let mut progress = out::Progress::begin(format!("starting {what}"));
    while Instant::now() < deadline {
        match words.recv_timeout(Duration::from_millis(200)) {
            Ok(text) => return Ok(text),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => progress.tick(),
        }
    }
    let pid = child.id();
    Err(CliError::of(format!("{what} is not ready"))
        .because(format!("process {pid} did not open its doors within {} s", READY_MS_MAX / 1000))
        .next(format!("kill {pid}; provost doctor; {by_hand}")))
}

/// Checks whether standard error is a terminal.
pub(super) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}
