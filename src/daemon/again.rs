//! Starts the daemon again in its own process, from its command line alone: as a person or a service manager has started it.
//! A daemon that begins again, or that a service manager has started, waits for a database that does not answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Error, Result};

use super::supervisor::Supervisor;
use provost_base::limits::{STORE_AWAITED_S_MAX, STORE_TRIED_EVERY_MS};
use provost_engine::Lost;
use provost_store::StoreError;
use provost_system::{Signal, Signals};

/// The variable with which the daemon's next process learns since when it tries: seconds since 1970.
const SINCE: &str = "PROVOST_TRIES_SINCE";

/// The mark of an error of a start that is tried again.
#[derive(Debug)]
struct NotYet;

impl std::fmt::Display for NotYet {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the daemon does not start yet")
    }
}

/// Checks whether a daemon that has ended like this begins again: another host has taken it for dead, for instance while it was
/// suspended, or it waits for its database.
pub(super) fn is_due(ended: &Error) -> bool {
    ended.is::<NotYet>() || ended.downcast_ref::<Lost>().is_some_and(|it| it.begins_again)
}

/// Waits after a start that has failed, if only the database is missing and this daemon may wait for it: without a limit for a
/// service manager, and for [`STORE_AWAITED_S_MAX`] seconds if it begins again. A daemon that a person starts does not wait.
///
/// # Errors
/// The error of the start, or one for which [`is_due`] holds. A signal to stop ends the wait without an error.
pub(super) async fn after(err: Error, supervisor: Supervisor, signals: &mut Signals) -> Result<()> {
    let is_away = matches!(err.downcast_ref(), Some(StoreError::Away(_)));
    // This daemon had its database a moment ago: what the server refuses, it may grant soon.
    let is_refused = is_away || matches!(err.downcast_ref(), Some(StoreError::Database(_)));
    let is_in_time = since().is_some_and(|it| now() < it.saturating_add(STORE_AWAITED_S_MAX));
    if !(is_away && supervisor.is_there() || is_refused && is_in_time) {
        return Err(err);
    }
    tracing::warn!("the daemon does not start yet, and tries again: {err:#}");
    supervisor.starts_later();
    let until = tokio::time::Instant::now() + Duration::from_millis(STORE_TRIED_EVERY_MS);
    loop {
        tokio::select! {
            signal = signals.next() => if let Signal::Stop = signal { return Ok(()) },
            () = tokio::time::sleep_until(until) => return Err(err.context(NotYet)),
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns since when this daemon tries to begin again, if it does.
fn since() -> Option<u64> {
    std::env::var(SINCE).ok()?.parse().ok()
}

/// Becomes a new daemon. Returns only if that is impossible, with the reason why this one has ended.
#[cfg(unix)]
pub(super) fn begin(ended: Error) -> Error {
    use std::os::unix::process::CommandExt as _;

    // This is the running program, also if an update has put another file in its place.
    let itself = std::path::Path::new("/proc/self/exe");
    let program = if itself.exists() { Ok(itself.to_owned()) } else { std::env::current_exe() };
    let since = if ended.is::<NotYet>() { since() } else { None };
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let why = match program {
        Ok(program) => {
            let mut command = std::process::Command::new(program);
            if let Some(name) = name {
                command.arg0(name);
            }
            command.args(arguments).env(SINCE, since.unwrap_or_else(now).to_string()).exec()
        }
        Err(why) => why,
    };
    ended.context(format!("it could not begin again ({why}): start it with `provost up`"))
}

/// Returns the reason with advice, since a process cannot become another one here.
#[cfg(not(unix))]
pub(super) fn begin(ended: Error) -> Error {
    ended.context("start it again with `provost up`")
}
