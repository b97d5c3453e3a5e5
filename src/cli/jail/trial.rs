//! `provost jail try`: the command gets this process's standard input through a pipe. Its output is passed on:
//! unchanged to a program, and without control characters to a terminal; the command never holds the terminal itself.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::super::args::duration;
use super::super::cli_error::{INTERRUPTED, PIPE_CLOSED};
use super::super::repo_context::wait_for;
use super::super::{CliError, Rehearsal, RepoContext, out};
use super::{InTier, Words, question, refused};
use provost_base::{AgentId, Ttl};
use provost_jail::{
    Chunk, Exit, ExitReason, Handed, Limits, LiveOutput, Plan, Running, Space, Stream, Supervisor, Tier,
    become_subreaper, harden_daemon, launch_with, size,
};

/// The command ran out of time; timeout(1) uses the same code.
const OUT_OF_TIME: u8 = 124;
/// The jail could not be built, and nothing ran.
const NOT_STARTED: u8 = 125;
/// The command was killed for exceeding a limit; shells use the same code.
const KILLED: u8 = 137;
/// The number that is added to a signal's number, as shells do.
const SIGNALLED: i32 = 128;

/// `provost jail try`.
#[derive(Args, Debug)]
pub(crate) struct Try {
    /// The worker whose jail the command runs in
    #[arg(long, default_value = "shell")]
    worker: AgentId,
    /// A tier other than the configured one
    #[arg(long, value_enum)]
    tier: Option<InTier>,
    /// The directory; by default the worker's own, else the current one
    #[arg(long, visible_alias = "dir", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// End the command after this time, such as 30s or 10m; by default after the worker's time
    #[arg(long, visible_alias = "time-out", value_parser = duration)]
    timeout: Option<Ttl>,
    /// Show the output unchanged on a terminal, too
    #[arg(long)]
    raw: bool,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

pub(super) fn run(here: &RepoContext, asked: Try, rehearse: &Rehearsal) -> Result<u8, CliError> {
    let not_started = |error: CliError| error.with_code(NOT_STARTED);
    let mut question = question(here, asked.worker, asked.cwd.as_ref()).map_err(not_started)?;
    question.tier = asked.tier.map(Tier::from);
    question.timeout = asked.timeout;
    question.command = Some(words(asked.command));
    let worker = question.worker.clone();
    let rehearsed = rehearse(question).map_err(|err| not_started(refused(&worker, &err)))?;
    // This process protects itself as a daemon does: a worker cannot read from it what it must not read from a daemon.
    let prepared = harden_daemon().and_then(|()| become_subreaper());
    prepared.map_err(|e| not_started(CliError::of("this process cannot be protected").because(e)))?;
    let supervisor = Supervisor::default().keeping_spares_in(here.places.spares());
    let done = wait_for(carry_out(&supervisor, &rehearsed.plan, asked.raw));
    for line in (rehearsed.left)() {
        out::note(out::one_line(&format!("provost: {line}"), 800));
    }
    done
}

/// Returns the command line that starts the command inside: the program is looked for there, and may be a script of the workspace.
fn words(command: Vec<String>) -> Words {
    let (program, before) = provost_system::shell();
    let before = before.iter().map(|word| (*word).to_owned());
    let args = if cfg!(windows) {
        // This shell takes one text.
        before.chain([command.join(" ")]).collect()
    } else {
        before.chain(["exec \"$@\"".into(), "provost".into()]).chain(command).collect()
    };
    Words { program, args }
}

async fn carry_out(supervisor: &Supervisor, plan: &Plan, raw: bool) -> Result<u8, CliError> {
    let output = LiveOutput::paced();
    let handed =
        given().map_err(|e| CliError::of("no pipe can be made").because(e).with_code(NOT_STARTED))?;
    let launched = launch_with(supervisor, plan, handed, output.clone()).await;
    let mut running = launched.map_err(|error| {
        CliError::of(error).next("provost doctor shows what this host can do").with_code(NOT_STARTED)
    })?;
    let early = tokio::select! {
        shown = show_all(&output, raw) => shown.err(),
        _interrupted = tokio::signal::ctrl_c() => Some(CliError::silent(INTERRUPTED)),
    };
    if let Some(early) = early {
        output.let_go();
        running.stop();
        running.wait().await;
        return Err(early);
    }
    let exit = ended(&mut running).await;
    Ok(code(exit, plan.limits()))
}

/// Passes this process's input on to the command through a pipe, so that this process keeps its terminal.
fn given() -> io::Result<Handed> {
    let (reader, mut writer) = io::pipe()?;
    // The thread ends with this process at the latest; text that is typed too late is not waited for.
    std::thread::Builder::new().spawn(move || io::copy(&mut io::stdin().lock(), &mut writer))?;
    Ok(Handed { stdin: Some(reader.into()), ..Handed::default() })
}

async fn ended(running: &mut Running) -> Exit {
    tokio::select! {
        exit = running.wait() => exit,
        // The command has closed its output and goes on.
        _interrupted = tokio::signal::ctrl_c() => {
            running.stop();
            running.wait().await
        }
    }
}

/// Shows all output until no more will follow.
async fn show_all(output: &LiveOutput, raw: bool) -> Result<(), CliError> {
    let mut cursor = 0;
    let mut shown = Shown::new(raw);
    loop {
        let page = output.follow(cursor).await;
        cursor = page.next;
        // A write may wait for the reader of the pipe.
        let written = tokio::task::spawn_blocking(move || {
            let done = page.chunks.iter().try_for_each(|chunk| shown.write(chunk));
            (shown, done)
        });
        let (back, done) = written.await.map_err(CliError::of)?;
        shown = back;
        done.map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => CliError::silent(PIPE_CLOSED),
            _ => CliError::of("the output cannot be written").because(e),
        })?;
        output.has_been_read(cursor);
        if page.finished {
            return shown.finish().map_err(CliError::writing);
        }
    }
}

/// The target of the output, and the incomplete character of each stream.
struct Shown {
    clean: [bool; 2],
    rest: [Vec<u8>; 2],
}

impl Shown {
    fn new(raw: bool) -> Self {
        let clean = [io::stdout().is_terminal() && !raw, io::stderr().is_terminal() && !raw];
        Self { clean, rest: [Vec::new(), Vec::new()] }
    }

    fn write(&mut self, chunk: &Chunk) -> io::Result<()> {
        let stream = usize::from(chunk.stream == Stream::Err);
        if !self.clean[stream] {
            return put(stream, &chunk.bytes);
        }
        let rest = &mut self.rest[stream];
        rest.extend_from_slice(&chunk.bytes);
        // Bytes that could still become a character wait for the next ones.
        let whole = match std::str::from_utf8(rest) {
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        let text = String::from_utf8_lossy(&rest[..whole]).into_owned();
        rest.drain(..whole);
        put(stream, out::plain(&text).as_bytes())
    }

    fn finish(&mut self) -> io::Result<()> {
        for stream in 0..2 {
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.rest[stream])).into_owned();
            put(stream, out::plain(&text).as_bytes())?;
        }
        Ok(())
    }
}

fn put(stream: usize, bytes: &[u8]) -> io::Result<()> {
    match stream {
        0 => {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        _ => io::stderr().lock().write_all(bytes),
    }
}

/// Returns the exit code of this process; explains it in a note, where the code alone does not.
fn code(exit: Exit, limits: &Limits) -> u8 {
    let killed = |why: String| {
        out::note(format!("provost: the command was ended: {why}"));
        KILLED
    };
    if exit.processes_reached {
        out::note(format!("provost: it was at its limit of {} processes and threads", limits.processes));
    }
    match exit.reason {
        ExitReason::Code(code) => (code & 0xff) as u8,
        ExitReason::Signal(signal) => u8::try_from(SIGNALLED + signal).unwrap_or(KILLED),
        ExitReason::Cancelled => INTERRUPTED,
        ExitReason::TimedOut => {
            out::note(format!("provost: the command was ended after {} s", limits.wall.as_seconds()));
            OUT_OF_TIME
        }
        ExitReason::OverMemory => killed(format!("more than {} of memory", size(limits.resident_bytes))),
        ExitReason::OverSpace(Space::Bytes) => {
            killed(format!("its directories grew by more than {}", size(limits.growth_bytes)))
        }
        ExitReason::OverSpace(Space::Entries) => {
            killed(format!("its directories grew by more than {} files", limits.growth_entries))
        }
        ExitReason::OverSpace(Space::Depth) => killed("directories deeper than can be watched".into()),
        ExitReason::OverSpace(Space::Temporary) => {
            killed(format!("more than {} of temporary files", size(limits.tmp_bytes)))
        }
        ExitReason::ProtectionLost => {
            killed("a protected file was replaced from outside; look at the settings in the workspace".into())
        }
        ExitReason::RepositoryMade => killed(
            "it made a git repository in the workspace, whose programs git would run; remove its `.git`, or examine it first"
                .into(),
        ),
        ExitReason::SupervisorLost => killed("its supervisor died".into()),
    }
}
