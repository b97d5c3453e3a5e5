//! Starts the daemon again in its own process, from its command line alone: as a person or a service manager has started it.
//! A daemon that begins again, or that a service manager has started, waits for a database that does not answer.

use std::time::Duration;

use anyhow::{Error, Result};
use tokio::time::{Instant, sleep_until};

use super::supervisor::Supervisor;
use provost_base::limits::{
    STORE_AWAITED_S_MAX, STORE_SLOW_TRIES, STORE_TOLD_EVERY_TRIES, STORE_TRIED_EVERY_MS,
};
use provost_config::Places;
use provost_config::awaiting::Record;
use provost_engine::Lost;
use provost_store::StoreError;
use provost_system::{Signal, Signals};

/// The variable with which the daemon learns that it begins again: its process id, which it keeps, and which the programs that it
/// starts do not have.
const BEGINS_AGAIN: &str = "PROVOST_BEGINS_AGAIN";

/// Checks whether a daemon that has ended like this begins again: another host has taken it for dead, for instance while it was
/// suspended.
pub(super) fn is_due(ended: &Error) -> bool {
    ended.downcast_ref::<Lost>().is_some_and(|it| it.begins_again)
}

/// Opens the store. If the database does not answer, and this daemon may wait for it, tries again: without a limit for a service
/// manager, and for [`STORE_AWAITED_S_MAX`] seconds if it begins again. A daemon that a person starts tries again only if the server is
/// silent, [`STORE_SLOW_TRIES`] times. Returns
/// `None` after a signal to stop, or if `provost down` has removed the record of it. Nothing else runs in the daemon yet that the open could keep waiting.
///
/// # Errors
/// The last error of `open`.
pub(super) async fn opened<T>(
    open: impl Fn() -> Result<T>,
    places: &Places,
    (supervisor, signals): (Supervisor, &mut Signals),
) -> Result<Option<T>> {
    let begins_again = std::env::var(BEGINS_AGAIN).is_ok_and(|it| it == std::process::id().to_string());
    let until = Instant::now() + Duration::from_secs(STORE_AWAITED_S_MAX);
    let (mut tries, mut record) = (0_u64, None);
    loop {
        let err = match open() {
            Ok(opened) => {
                return Ok(Some(opened).filter(|_| !record.as_ref().is_some_and(Record::is_removed)));
            }
            Err(err) => err,
        };
        let is_away = matches!(err.downcast_ref(), Some(StoreError::Away(_)));
        // A daemon that begins again had its database a moment ago: what the server refuses, it may grant soon.
        let may_pass = is_away || matches!(err.downcast_ref(), Some(StoreError::Database(_)));
        let is_silent = err.downcast_ref().is_some_and(|it: &StoreError| it.silent().is_some());
        let is_slow = is_silent && tries < STORE_SLOW_TRIES;
        if !(is_slow
            || is_away && supervisor.is_there()
            || may_pass && begins_again && Instant::now() < until)
        {
            return Err(err);
        }
        if tries.is_multiple_of(STORE_TOLD_EVERY_TRIES) {
            tracing::warn!("the daemon does not start yet, and tries again: {err:#}");
        }
        // Without it, the daemon ends by a signal alone.
        record = record.or_else(|| Record::keep(places, &format!("{err:#}")).ok());
        tries += 1;
        supervisor.starts_later();
        if is_to_stop(signals).await || record.as_ref().is_some_and(Record::is_removed) {
            return Ok(None);
        }
    }
}

/// Waits until the next try is due; returns whether a signal to stop came before. Without a daemon there is nothing to reload.
async fn is_to_stop(signals: &mut Signals) -> bool {
    let due = Instant::now() + Duration::from_millis(STORE_TRIED_EVERY_MS);
    loop {
        tokio::select! {
            signal = signals.next() => if let Signal::Stop = signal { return true },
            () = sleep_until(due) => return false,
        }
    }
}

/// Becomes a new daemon. Returns only if that is impossible, with the reason why this one has ended.
#[cfg(unix)]
pub(super) fn begin(ended: Error) -> Error {
    use std::os::unix::process::CommandExt as _;

    // This is the running program, also if an update has put another file in its place.
    let itself = std::path::Path::new("/proc/self/exe");
    let program = if itself.exists() { Ok(itself.to_owned()) } else { std::env::current_exe() };
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let why = match program {
        Ok(program) => {
            let mut command = std::process::Command::new(program);
            if let Some(name) = name {
                command.arg0(name);
            }
            command.args(arguments).env(BEGINS_AGAIN, std::process::id().to_string()).exec()
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
