//! `provost hook wait`: waits for the ACK of a notification hook, for scripts without a socket tool.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use serde_json::json;

use super::args::duration;
use super::cli_error::{CliError, DONE, NOT_RUNNING, USAGE};
use super::out;
use line::Line;
use provost_base::Ttl;

#[cfg_attr(windows, path = "hook/line_windows.rs")]
mod line;

/// Interval between two checks for the marker.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The byte that releases a hook. DevIt 1.9.
const RELEASE: u8 = 1;

/// `provost hook wait`.
#[derive(Args, Debug)]
pub(super) struct Wait {
    /// Give up after this time; the daemon ends the hook after `hooks.notify.timeout` in any case
    #[arg(long, value_parser = duration, default_value = "1m")]
    timeout: Ttl,
    /// The hook's ACK socket; on Windows its pipe
    #[arg(long, env = line::VARIABLE, hide_env_values = true, value_hint = ValueHint::FilePath)]
    socket: Option<PathBuf>,
    /// The file that appears with the ACK, if there is no socket
    #[arg(long, env = "DEVIT_ACK_MARKER", hide_env_values = true, value_hint = ValueHint::FilePath)]
    marker: Option<PathBuf>,
}

/// The end of waiting.
enum Waited {
    Acknowledged,
    TimedOut,
    DaemonGone,
}

pub(super) fn wait(asked: Wait, json: bool) -> Result<u8, CliError> {
    let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
    let (socket, marker) = (given(asked.socket), given(asked.marker));
    let until = Instant::now() + asked.timeout.as_duration();
    let line = socket.as_deref().map(Line::to);
    let waited = match (line, &marker) {
        (Some(Ok(line)), _) => at_socket(line, marker.as_deref(), until),
        (_, Some(marker)) => for_marker(marker, until),
        (Some(Err(err)), None) => {
            return Err(CliError::of("no daemon acknowledges at this socket")
                .because(err)
                .next("run it in a notification hook, while that runs")
                .with_code(NOT_RUNNING));
        }
        (None, None) => {
            return Err(CliError::of("this is no notification hook")
                .because(format!("neither {} nor DEVIT_ACK_MARKER is set", line::VARIABLE))
                .next(
                    "set [hooks.notify] command in ~/.config/provost/provost.toml, and wait in that command",
                )
                .with_code(USAGE));
        }
    };
    match waited.map_err(|err| CliError::of("the ACK cannot be waited for").because(err))? {
        Waited::Acknowledged if json => out::json(&json!({ "acknowledged": true })).map(|()| DONE),
        Waited::Acknowledged => out::line("acknowledged").map(|()| DONE),
        Waited::TimedOut => {
            Err(CliError::of(format!("not acknowledged within {} ms", asked.timeout.as_millis()))
                .next("provost task report TASK --status ack, by the notified agent"))
        }
        Waited::DaemonGone => Err(CliError::of("the daemon ended the wait without an ACK")
            .next("nothing; if it stopped, the hook runs again after its next start")
            .with_code(NOT_RUNNING)),
    }
}

/// Waits for the one byte that releases the hook; if the connection ends without it, no ACK will come.
fn at_socket(mut line: Line, marker: Option<&Path>, until: Instant) -> io::Result<Waited> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
        let mut byte = [0];
        match line.read_within(&mut byte, left) {
            Ok(1) if byte[0] == RELEASE => return Ok(Waited::Acknowledged),
            Ok(1) => {}
            Ok(_) if marker.is_some_and(is_there) => return Ok(Waited::Acknowledged),
            Ok(_) => return Ok(Waited::DaemonGone),
            Err(err) if err.kind() == io::ErrorKind::ConnectionReset => return Ok(Waited::DaemonGone),
            Err(err)
                if matches!(
                    err.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(err) => return Err(err),
        }
    }
}

fn for_marker(marker: &Path, until: Instant) -> io::Result<Waited> {
    loop {
        if is_there(marker) {
            return Ok(Waited::Acknowledged);
        }
        if marker.parent().is_some_and(|folder| !folder.is_dir()) {
            return Ok(Waited::DaemonGone);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// Checks whether the daemon's file exists; a link does not count.
fn is_there(marker: &Path) -> bool {
    marker.symlink_metadata().is_ok_and(|meta| meta.is_file())
}
