//! The daemon's own log.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result};

use super::Start;
use provost_base::limits::LOG_LINES_WAITING_MAX;
use provost_config::Config;
use provost_system as system;

/// Starts the log: rolling files in the state folder, and standard error if the daemon is in the foreground.
pub(super) fn start_log(
    start: &Start,
    config: &Config,
) -> Result<Option<tracing_appender::non_blocking::WorkerGuard>> {
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let level = if start.debug { "debug" } else { config.log.level.as_str() };
    let dir = config.log.dir.clone().unwrap_or_else(|| start.places.state.join("log"));
    system::make_private_folders(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let file = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("provost")
        .filename_suffix("log")
        .max_log_files(config.log.max_files as usize)
        .build(&dir)
        .with_context(|| format!("cannot write logs to {}", dir.display()))?;
    let waiting = tracing_appender::non_blocking::NonBlockingBuilder::default();
    let (file, guard) = waiting.buffered_lines_limit(LOG_LINES_WAITING_MAX).finish(file);
    let to_file = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(file);
    // Colours are for a person at a terminal: a program that collects standard error needs plain text.
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let to_stderr = start
        .foreground
        .then(|| tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr));
    let filter = tracing_subscriber::EnvFilter::new(format!("warn,rmcp=off,provost={level}"));
    // A second daemon in one process, which exists only in tests, keeps the first one's log.
    let _ = tracing_subscriber::registry().with(filter).with(to_file).with(to_stderr).try_init();
    Ok(Some(guard))
}
