//! How a daemon is to be started.

use std::path::PathBuf;

use super::TakenPorts;
use provost_base::Secret;
use provost_config::{Config, Places};

/// The form in which DevIt's clients start a daemon. DevIt 1.14.
pub struct DevitdForm {
    /// The path of its socket.
    pub socket: PathBuf,
    /// The secret of that door, for this run.
    pub secret: Option<Secret>,
}

/// How a daemon is to be started.
pub struct Start {
    /// The folders and files of this daemon.
    pub places: Places,
    /// The configuration file named on the command line, if any.
    pub config_file: Option<PathBuf>,
    /// Whether log lines also go to standard error.
    pub foreground: bool,
    /// Set when started in DevIt's form.
    pub devitd: Option<DevitdForm>,
    /// Stop after so many seconds without work; overrides the configuration.
    pub auto_shutdown_after: Option<u64>,
    /// What to do about a port that is taken.
    pub ports: TakenPorts,
    /// Whether root may run it.
    pub allow_root: bool,
    /// Whether debug messages are logged.
    pub debug: bool,
    /// Told `ready`, or why not.
    pub ready: Option<std::fs::File>,
}

impl Start {
    /// After how many seconds without work it stops, if it does.
    pub(super) fn auto_shutdown_s(&self, config: &Config) -> Option<u64> {
        let configured = || config.daemon.auto_shutdown_after.map(|it| it.as_seconds());
        self.auto_shutdown_after.or_else(configured).filter(|it| *it > 0)
    }
}
