//! The waits of a hook, each with a bound: for its host's message, its own work, and the daemon.
//!
//! A daemon that was stopped (SIGSTOP, a debugger) accepts connections and answers none. A hook does not wait for it,
//! and treats it as down.

use std::io::Read as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::cli_error::NOT_RUNNING;
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext};
use provost_base::limits::{HOOK_INPUT_BYTES_MAX, HOOK_STACK_BYTES, HOOK_STOPPED_LOOKS_MS};
use provost_config::WhenDown;

/// Reads the whole message of the host.
pub(super) fn read(until: Instant) -> Result<Vec<u8>, CliError> {
    let (give, take) = mpsc::channel();
    // The thread ends with this program if the host sends nothing.
    let reads = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let most = HOOK_INPUT_BYTES_MAX as u64 + 1;
        give.send(std::io::stdin().lock().take(most).read_to_end(&mut text).map(|_| text))
    });
    reads.map_err(|err| CliError::of("what the host says cannot be waited for").because(err))?;
    let left = until.saturating_duration_since(Instant::now());
    let text = take.recv_timeout(left).map_err(|_| CliError::of("what the host says does not end"))?;
    let text = text.map_err(|err| CliError::of("what the host says cannot be read").because(err))?;
    match text.len() > HOOK_INPUT_BYTES_MAX {
        true => Err(CliError::of(format!("the host says more than {} MiB", HOOK_INPUT_BYTES_MAX >> 20))),
        false => Ok(text),
    }
}

/// Returns the result of work with the daemon, if it ends in time and the daemon is not stopped in the meantime.
pub(super) fn within<T>(
    here: &RepoContext,
    until: Instant,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let slow = || CliError::of("the daemon did not answer in time");
    if let Some(inside) = &here.inside {
        let bounded = async { tokio::time::timeout_at(until.into(), work).await };
        return inside.runtime.block_on(bounded).unwrap_or_else(|_| Err(slow()));
    }
    wait_for(async {
        tokio::select! {
            biased;
            done = tokio::time::timeout_at(until.into(), work) => done.unwrap_or_else(|_| Err(slow())),
            process = stopped(here) => Err(is_stopped(process)),
        }
    })
}

/// Ends when the daemon is found to be stopped, with its process. It looks a few times while the hook waits for an answer.
async fn stopped(here: &RepoContext) -> u32 {
    for wait in HOOK_STOPPED_LOOKS_MS {
        tokio::time::sleep(Duration::from_millis(wait)).await;
        let socket = here.places.own_socket();
        let found = tokio::task::spawn_blocking(move || provost_client::stopped_process(&socket)).await;
        if let Ok(Some(process)) = found {
            return process;
        }
    }
    std::future::pending().await
}

fn is_stopped(process: u32) -> CliError {
    let what = format!("its process {process} is suspended; `kill -CONT {process}` lets it go on");
    CliError::of("the daemon does not answer").because(what).with_code(NOT_RUNNING)
}

/// Returns the result of a check; `None` where the daemon is stopped, and the settings let writes pass when it is down.
pub(super) fn unless_stopped<T>(
    here: &RepoContext,
    checked: Result<T, CliError>,
) -> Result<Option<T>, CliError> {
    match checked {
        Err(error) if error.is_not_running() => match here.config(None)?.config.hooks.when_down {
            WhenDown::Pass => Ok(None),
            WhenDown::Start | WhenDown::Block => Err(error),
        },
        checked => checked.map(Some),
    }
}

/// Returns the result of work on a thread of its own; `None` if it does not end in time, or panics. The thread ends with this program.
pub(super) fn apart<T: Send + 'static>(
    until: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, take) = mpsc::channel();
    let works = std::thread::Builder::new().stack_size(HOOK_STACK_BYTES).spawn(move || give.send(work()));
    works.ok()?;
    take.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}
