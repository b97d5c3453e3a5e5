//! The options of a daemon's start.

use std::path::PathBuf;

use super::TakenPorts;
use provost_base::Secret;
use provost_config::{Config, Places};

/// The form in which DevIt's clients start a daemon. DevIt 1.14.
pub struct DevitdForm {
    /// The path of DevIt's socket.
    pub socket: PathBuf,
    /// The secret of that door, for this run.
    pub secret: Option<Secret>,
}

/// The options of a daemon's start.
pub struct Start {
    /// The folders and files of this daemon.
    pub places: Places,
    /// The configuration file named on the command line, if any.
    pub config_file: Option<PathBuf>,
    /// Whether log lines also go to standard error.
    pub foreground: bool,
    /// Set when started in DevIt's form.
    pub devitd: Option<DevitdForm>,
    /// The seconds without work after which the daemon stops; overrides the configuration.
    pub auto_shutdown_after: Option<u64>,
    /// The treatment of ports that are taken.
    pub ports: TakenPorts,
    /// Whether root may run the daemon.
    pub allow_root: bool,
    /// Whether debug messages are logged.
    pub debug: bool,
    /// The pipe for `ready`, or for the reason of a failure.
    pub ready: Option<std::fs::File>,
}

impl Start {
    /// Returns the seconds without work after which the daemon stops; `None` if it does not stop by itself.
    pub(super) fn auto_shutdown_s(&self, config: &Config) -> Option<u64> {
        let configured = || config.daemon.auto_shutdown_after.map(|it| it.as_seconds());
        self.auto_shutdown_after.or_else(configured).filter(|it| *it > 0)
    }
}
