//! `provost web open --all` and `provost web close`: the page over all repositories, a process of its own.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cli_error::{DONE, FAILED, NOT_RUNNING, USAGE};
use super::web::Open;
use super::{CliError, RepoContext, out, up};
use provost_base::limits::READY_MS_MAX;
use provost_config::{Config, HubRecord, Sources, load};
use provost_system::{self as system, Process};
use provost_web::hub::{self, Failed};

/// Reads the settings of the user, without those of a repository.
fn settings(here: &RepoContext) -> Result<Config, CliError> {
    Ok(load(&Sources::usual(&here.places, Vec::new(), None), &here.environment)?.config)
}

/// Opens the page, in this process or in one of its own.
pub(super) fn open(here: &RepoContext, asked: &Open) -> Result<u8, CliError> {
    let config = settings(here)?;
    let names: Vec<String> = config.web.names.iter().map(|it| it.as_str().to_owned()).collect();
    if asked.foreground {
        return serve(here, names, config.web.all_port, asked.ready_on_stdout);
    }
    if let Some(at) = HubRecord::of_running(&here.environment) {
        let name = names.first().map_or("localhost", String::as_str);
        return told(here, &format!("http://{name}:{}/", at.port));
    }
    let cannot = |err: std::io::Error| {
        CliError::of("the page cannot be opened").because(err).next("provost web --all --foreground")
    };
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(["web", "open", "--all", "--foreground", "--ready-on-stdout"]).current_dir(&here.cwd);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = system::detach(&mut command).spawn().map_err(cannot)?;
    let said =
        up::first_words(&mut child, "the page over all repositories", "provost web --all --foreground")?;
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    if let Some(address) = text("address") {
        return told(here, address);
    }
    let ended = child.wait().map(|it| it.to_string()).unwrap_or_default();
    let why = text("why").map_or_else(|| format!("it ended at once ({ended})"), str::to_owned);
    let next = text("next").unwrap_or("provost web --all --foreground");
    Err(cannot_be_opened(Failed { why, next: next.to_owned() }))
}

fn cannot_be_opened(failed: Failed) -> CliError {
    CliError::of("the page over all repositories cannot be opened").because(failed.why).next(failed.next)
}

fn told(here: &RepoContext, address: &str) -> Result<u8, CliError> {
    match here.json {
        true => out::json(&json!({ "address": address })),
        false => out::line(out::one_line(address, 400)),
    }
    .map(|()| DONE)
}

/// Serves the page in this process until a signal ends it; a process that waits for the page gets one line.
fn serve(here: &RepoContext, names: Vec<String>, port: u16, is_awaited: bool) -> Result<u8, CliError> {
    if here.json && !is_awaited {
        return Err(CliError::of("a page that stays in the terminal has no JSON")
            .because("it is open until you end it")
            .next("provost web --all --json")
            .with_code(USAGE));
    }
    if is_awaited {
        // A process without a terminal never counts as a person.
        system::own_session();
    }
    let opened = Box::new(move |address: &str| {
        let said = match is_awaited {
            true => json!({ "address": address }).to_string(),
            false => out::one_line(address, 400),
        };
        // The page is open even if the line cannot be written.
        let _unheard = out::line(said);
    });
    match hub::run(hub::Start { environment: here.environment.clone(), names, port, opened }) {
        Ok(()) => Ok(DONE),
        Err(Failed { why, next }) if is_awaited => {
            out::line(json!({ "why": why, "next": next }))?;
            Ok(FAILED)
        }
        Err(failed) => Err(cannot_be_opened(failed)),
    }
}

/// Ends the page over all repositories.
pub(super) fn close(here: &RepoContext) -> Result<u8, CliError> {
    let Some(at) = HubRecord::of_running(&here.environment) else {
        return Err(CliError::of("no page over all repositories is open")
            .next("provost web --all")
            .with_code(NOT_RUNNING));
    };
    // The process is held before it ends, so that its number cannot come to mean another process.
    let process = Process::hold(at.pid);
    terminate(at.pid)?;
    let deadline = Instant::now() + Duration::from_millis(READY_MS_MAX);
    let mut progress = out::Progress::begin("waiting for the page to end");
    while !process.has_ended(Duration::from_millis(200)) {
        if Instant::now() > deadline {
            return Err(CliError::of("the page does not end")
                .because(format!("process {} was told to end, and still runs", at.pid))
                .next(format!("kill -9 {}", at.pid)));
        }
        progress.tick();
    }
    drop(progress);
    match here.json {
        true => out::json(&json!({ "closed": at.port }))?,
        false => out::line("closed")?,
    }
    Ok(DONE)
}

#[cfg(unix)]
fn terminate(pid: u32) -> Result<(), CliError> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid =
        pid.ok_or_else(|| CliError::of("the record of the page names no process").next("provost web --all"))?;
    kill_process(pid, Signal::TERM).map_err(|err| {
        CliError::of("the page cannot be ended").because(err).next(format!("kill {}", pid.as_raw_nonzero()))
    })
}

#[cfg(not(unix))]
fn terminate(pid: u32) -> Result<(), CliError> {
    Err(CliError::of("this system has no signal that ends the page")
        .because("it is a process of its own")
        .next(format!("end process {pid} in the list of tasks")))
}
